/*
** Does any query get slower because warplite might run it? Runs many query shapes over tables of
** many sizes, in plain SQLite and through warplite with its default settings.
**
**     router [--quick] [--sizes N,N,…] [--only TEXT] [--states new,warm,write] [--index 0|1]
**            [--part I/N] [--runs N] [--limit SECONDS] [--dir FOLDER] [--queries FOLDER] [--preload]
**            [--check] [-v]
**
** A point is a shape, a size, with or without indexes, and a state:
**   new    a process that opens the file, runs the query once and ends
**   warm   a connection that has run the query before
**   write  a connection that has run the query before, after another one has changed a row
**
** 1. Each side prepares, binds, steps through all rows, reads all columns and finalizes. The sides
**    take turns. The medians are compared.
** 2. A point is lost if warplite takes more than 1.05 times SQLite's time plus 50 us (a new
**    process: plus 3 ms). It is then measured twice more, with more runs, before it is reported.
** 3. Both sides must return the same rows. Reals are multiples of 0.25, so their sums are exact.
** 4. SQLite gets at most --limit seconds for a query. A shape that takes longer is left out at this
**    size, and counted.
** 5. The exit status is 0 only if no point is lost and all rows agree. --check is the test: small
**    sizes, and a bar of 2 times plus 3 ms, so that a busy machine does not fail it.
**
** The shapes are in bench/queries/router. See router_shapes.h for the format. With --part I/N only
** every N-th shape runs, from the I-th on, so that N runs together cover all of them. The numbers in
** their last lines can be added up.
**
** With --preload the program starts itself again under the preload library. The warplite side is
** then sqlite3_prepare_v2() as a program calls it that knows nothing of warplite. The other side
** calls SQLite through the addresses in its own library.
*/
#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "query.h"
#include "router_data.h"
#include "router_shapes.h"
#include "warplite.h"

extern char **environ;

enum { MAX_RUNS = 101, MAX_SIZES = 16, WARM_UPS = 6 };
enum state { NEW, WARM, WRITE, N_STATES };
enum side { PLAIN, OURS, N_SIDES };
static const char *const state_names[N_STATES] = {"new", "warm", "write"};

struct bench {
  struct shapes shapes;
  const char *dir, *only, *self;
  long sizes[MAX_SIZES];
  int n_sizes, n_runs, index; /* index: -1 is both */
  int part, n_parts;          /* --part; from 0 */
  bool states[N_STATES], preload, check, verbose;
  double limit, times, plus_us, plus_new_us;
  long n_points, n_lost, n_wrong, n_left_out;
};

/* The result of one run. */
struct outcome {
  bool ok;
  double us;
  uint64_t rows, hash;
  char why[400];
};

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- SQLite's functions */

#define CALLS(X)                                                                                   \
  X(open) X(close) X(errmsg) X(busy_timeout) X(progress_handler) X(prepare_v2) X(bind_text)        \
  X(bind_int64) X(step) X(finalize) X(column_count) X(column_type) X(column_int64)                 \
  X(column_double) X(column_text)

/* The functions that a side calls. Under the preload library, those of the plain side are SQLite's
** own, and the others are those that every program gets. */
struct calls {
#define MEMBER(name) __typeof__(&sqlite3_##name) name;
  CALLS(MEMBER)
#undef MEMBER
};

static struct calls calls_of[N_SIDES];

static void find_calls(void) {
  void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_NOLOAD);
  if (!library) fatal("SQLite's library is not loaded");
#define FIND(name)                                                                                 \
  calls_of[OURS].name = sqlite3_##name;                                                            \
  *(void **)(void *)&calls_of[PLAIN].name = dlsym(library, "sqlite3_" #name);                      \
  if (!calls_of[PLAIN].name) fatal("SQLite has no sqlite3_" #name);
  CALLS(FIND)
#undef FIND
}

/* ---- data */

/* Makes the database if it is not there from an earlier run. Every second size is in WAL mode and
** has statistics. */
static char *make_database(const struct bench *b, int size, bool indexed) {
  char *path = sqlite3_mprintf("%s/router-%ld-%d.db", b->dir, b->sizes[size], indexed);
  char *temp = sqlite3_mprintf("%s.new", path);
  long n = b->sizes[size], n_d = n / 100 < 10 ? 10 : n / 100;
  struct generator g = {0x70c7e5 + (uint64_t)n, 1, 0};
  sqlite3 *db;
  if (access(path, R_OK) == 0) return path;
  remove(temp);
  if (sqlite3_open(temp, &db) != SQLITE_OK) fatal("cannot create %s", temp);
  exec(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-200000; BEGIN;"
           "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, k INTEGER, ts INTEGER, s TEXT,"
           " c TEXT, x REAL, y INTEGER, z INTEGER, u INTEGER, d INTEGER, note TEXT);"
           "CREATE TABLE d(id INTEGER PRIMARY KEY, name TEXT, kind INTEGER);"
           "CREATE TABLE e(id INTEGER PRIMARY KEY, t INTEGER, q INTEGER, p REAL);"
           "CREATE TABLE w(g INTEGER, h INTEGER, v INTEGER, PRIMARY KEY(g, h)) WITHOUT ROWID;"
           "CREATE VIEW recent AS SELECT id, ts, s, x, d FROM t ORDER BY ts DESC LIMIT 100;"
           "CREATE VIEW plain AS SELECT id, a, k, ts, x, d FROM t;"
           "CREATE VIEW joined AS SELECT t.id, t.a, t.x, d.name, d.kind FROM t JOIN d ON d.id=t.d;"
           "CREATE VIEW both AS SELECT id, a AS v FROM t UNION ALL SELECT id, t AS v FROM e;");
  fill_t(db, n, n_d, &g);
  fill_others(db, n, n_d, &g);
  if (indexed)
    exec(db, "CREATE UNIQUE INDEX t_a ON t(a); CREATE INDEX t_k_ts ON t(k, ts);"
             "CREATE INDEX t_ts ON t(ts); CREATE INDEX t_s ON t(s); CREATE INDEX t_c ON t(c);"
             "CREATE INDEX t_x ON t(x DESC); CREATE INDEX t_y ON t(y); CREATE INDEX t_z ON t(z);"
             "CREATE INDEX t_d ON t(d); CREATE INDEX e_t ON e(t); CREATE INDEX e_q ON e(q);"
             "CREATE INDEX d_kind ON d(kind); CREATE INDEX w_v ON w(v);");
  exec(db, "COMMIT");
  if (size % 2) exec(db, "ANALYZE; PRAGMA journal_mode=WAL");
  sqlite3_close(db);
  if (rename(temp, path) != 0) fatal("cannot rename %s: %s", temp, strerror(errno));
  sqlite3_free(temp);
  return path;
}

/* ---- running */

static uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
  return h ^ h >> 29;
}

/* Steps through all rows. The hash is a sum over rows, so it does not depend on their order. */
static int read_all(const struct calls *f, sqlite3_stmt *s, struct outcome *out) {
  int rc, n = f->column_count(s);
  while ((rc = f->step(s)) == SQLITE_ROW) {
    uint64_t h = 1;
    for (int i = 0; i < n; i++) {
      int type = f->column_type(s, i);
      double real;
      uint64_t v = 0;
      switch (type) {
      case SQLITE_INTEGER: v = (uint64_t)f->column_int64(s, i); break;
      case SQLITE_FLOAT:
        real = f->column_double(s, i);
        memcpy(&v, &real, sizeof v);
        break;
      case SQLITE_NULL: break;
      default:
        for (const unsigned char *p = f->column_text(s, i); p && *p; p++) v = v * 31 + *p;
      }
      h = mix(h, v + (uint64_t)type);
    }
    out->rows++;
    out->hash += h;
  }
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static double deadline;
static int past_deadline(void *arg) {
  return deadline > 0 && now_us() > deadline;
}

/* Runs a shape once on an open connection. */
static struct outcome run_once(const struct bench *b, sqlite3 *db, enum side side, const char *sql,
                               const struct binds *binds) {
  const struct calls *f = &calls_of[side];
  struct outcome out = {0};
  sqlite3_stmt *s = NULL;
  double start = now_us();
  int rc = (side == OURS && !b->preload ? warplite_prepare : f->prepare_v2)(db, sql, -1, &s, NULL);
  for (int i = 0; rc == SQLITE_OK && i < binds->n; i++)
    rc = binds->is_text[i] ? f->bind_text(s, i + 1, binds->text[i], -1, SQLITE_STATIC)
                           : f->bind_int64(s, i + 1, binds->number[i]);
  if (rc == SQLITE_OK) rc = read_all(f, s, &out);
  int rc2 = f->finalize(s);
  out.us = now_us() - start;
  out.ok = rc == SQLITE_OK && rc2 == SQLITE_OK;
  if (!out.ok) snprintf(out.why, sizeof out.why, "%s", f->errmsg(db));
  return out;
}

static sqlite3 *open_side(const char *path, enum side side) {
  const struct calls *f = &calls_of[side];
  sqlite3 *db;
  if (f->open(path, &db) != SQLITE_OK) fatal("%s: %s", path, f->errmsg(db));
  f->busy_timeout(db, 10000);
  if (side == PLAIN) f->progress_handler(db, 10000, past_deadline, NULL);
  return db;
}

/* The child process of the state `new`: opens, runs once, prints the outcome. */
static int child(const struct bench *b, const char *path, enum side side, const char *sql,
                 int n_binds, char **texts) {
  struct binds binds;
  if (!binds_read(&binds, n_binds, texts)) fatal("bad binds");
  double start = now_us();
  deadline = side == OURS ? 0 : start + b->limit * 1e6;
  sqlite3 *db = open_side(path, side);
  struct outcome out = run_once(b, db, side, sql, &binds);
  const char *why = side == OURS && out.ok ? warplite_reason(db) : out.why;
  char reason[400];
  snprintf(reason, sizeof reason, "%s", why ? why : "");
  calls_of[side].close(db);
  printf("%d %.3f %llu %llu %s\n", out.ok, now_us() - start, (unsigned long long)out.rows,
         (unsigned long long)out.hash, reason);
  return 0;
}

static struct outcome run_child(const struct bench *b, const char *path, enum side side,
                                const char *sql, const struct binds *binds) {
  struct outcome out = {0};
  char number[32], line[1024] = "";
  char *args[8 + MAX_BINDS]; /* as main() reads them */
  int n = 0, ends[2], status;
  pid_t pid;
  posix_spawn_file_actions_t actions;
  snprintf(number, sizeof number, "%.0f", b->limit * 1e6);
  args[n++] = (char *)b->self;
  args[n++] = "--child";
  args[n++] = (char *)path;
  args[n++] = side == PLAIN ? "plain" : b->preload ? "preload" : "ours";
  args[n++] = number;
  args[n++] = (char *)sql;
  for (int i = 0; i < binds->n; i++) args[n++] = (char *)binds->source[i];
  args[n] = NULL;
  if (pipe(ends) != 0) fatal("pipe: %s", strerror(errno));
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  int rc = posix_spawn(&pid, b->self, &actions, NULL, args, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (rc) fatal("cannot start %s: %s", b->self, strerror(rc));
  size_t at = 0;
  ssize_t got;
  while (at + 1 < sizeof line && (got = read(ends[0], line + at, sizeof line - 1 - at)) > 0)
    at += (size_t)got;
  close(ends[0]);
  waitpid(pid, &status, 0);
  int ok = 0, used = 0;
  unsigned long long rows, hash;
  if (sscanf(line, "%d %lf %llu %llu %n", &ok, &out.us, &rows, &hash, &used) < 4) {
    snprintf(out.why, sizeof out.why, "the process ended with status %d", status);
    return out;
  }
  out.ok = ok;
  out.rows = rows;
  out.hash = hash;
  snprintf(out.why, sizeof out.why, "%.*s", (int)strcspn(line + used, "\n"), line + used);
  return out;
}

/* ---- points */

struct point {
  const struct shape *shape;
  const char *path, *sql;
  long size;
  bool indexed;
  enum state state;
  struct binds binds;
  sqlite3 *db[N_SIDES], *writer;
  double us[N_SIDES];
  char reason[400];
  char wrong[600]; /* why the rows are wrong, or empty */
  bool left_out;
};

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The row gets the same values each time, so that all runs have the same results. */
static void change_a_row(struct point *p) {
  exec(p->writer, "UPDATE t SET note = 'a note that was changed about 7' WHERE id = 7");
}

static struct outcome run_side(const struct bench *b, struct point *p, enum side side) {
  if (p->state == WRITE) change_a_row(p);
  if (p->state == NEW) return run_child(b, p->path, side, p->sql, &p->binds);
  deadline = side == PLAIN ? now_us() + b->limit * 1e6 : 0;
  struct outcome out = run_once(b, p->db[side], side, p->sql, &p->binds);
  if (side == OURS && out.ok)
    snprintf(out.why, sizeof out.why, "%s", warplite_reason(p->db[side]));
  return out;
}

/* Measures both sides in turn and sets the medians. */
static void measure(const struct bench *b, struct point *p, int n_runs) {
  double us[N_SIDES][MAX_RUNS];
  struct outcome plain = run_side(b, p, PLAIN), ours;
  if (!plain.ok) {
    p->left_out = strcmp(plain.why, "interrupted") == 0;
    if (!p->left_out) snprintf(p->wrong, sizeof p->wrong, "SQLite fails: %s", plain.why);
    return;
  }
  double slow = plain.us / 1e6;
  if (slow > 0.2) n_runs = slow > 1 ? 3 : 5;
  int warm_ups = p->state == NEW ? 1 : slow > 1 || b->check ? 3 : WARM_UPS;
  for (int i = 0; i < warm_ups; i++) {
    ours = run_side(b, p, OURS);
    if (!ours.ok) {
      snprintf(p->wrong, sizeof p->wrong, "warplite fails: %s", ours.why);
      return;
    }
    if (ours.rows != plain.rows || ours.hash != plain.hash) {
      snprintf(p->wrong, sizeof p->wrong, "%llu rows where SQLite has %llu, or other values (%s)",
               (unsigned long long)ours.rows, (unsigned long long)plain.rows, ours.why);
      return;
    }
  }
  for (int i = 0; i < n_runs; i++) {
    plain = run_side(b, p, i % 2 ? OURS : PLAIN);
    ours = run_side(b, p, i % 2 ? PLAIN : OURS);
    if (i % 2) {
      struct outcome x = plain;
      plain = ours;
      ours = x;
    }
    if (!plain.ok || !ours.ok) {
      p->left_out = true;
      return;
    }
    us[PLAIN][i] = plain.us;
    us[OURS][i] = ours.us;
  }
  snprintf(p->reason, sizeof p->reason, "%s", ours.why);
  for (int side = 0; side < N_SIDES; side++) {
    qsort(us[side], (size_t)n_runs, sizeof(double), by_value);
    p->us[side] = us[side][n_runs / 2];
  }
}

static bool is_lost(const struct bench *b, const struct point *p) {
  double plus = p->state == NEW ? b->plus_new_us : b->plus_us;
  return p->us[OURS] > b->times * p->us[PLAIN] + plus;
}

static void open_point(struct point *p) {
  p->db[PLAIN] = p->db[OURS] = p->writer = NULL;
  if (p->state == NEW) return;
  for (int side = 0; side < N_SIDES; side++) p->db[side] = open_side(p->path, (enum side)side);
  if (p->state == WRITE) p->writer = open_side(p->path, OURS);
}

static void close_point(struct point *p) {
  for (int side = 0; side < N_SIDES; side++) calls_of[side].close(p->db[side]);
  sqlite3_close(p->writer);
}

static void run_point(struct bench *b, struct point *p) {
  deadline = 0;
  open_point(p);
  measure(b, p, b->n_runs);
  int n_again = b->check ? 5 : 2, n_more = b->check ? 7 : b->n_runs * 2 + 1;
  for (int again = 0; again < n_again && !*p->wrong && !p->left_out && is_lost(b, p); again++)
    measure(b, p, n_more < MAX_RUNS ? n_more : MAX_RUNS);
  close_point(p);
  b->n_points++;
  b->n_left_out += p->left_out;
  b->n_wrong += *p->wrong != 0;
  bool lost = !*p->wrong && !p->left_out && is_lost(b, p);
  b->n_lost += lost;
  if (!lost && !*p->wrong && !b->verbose) return;
  printf("%s %-22s %8ld rows %-7s %-5s",
         *p->wrong     ? "wrong "
         : p->left_out ? "long  "
         : lost        ? "lost  "
                       : "      ",
         p->shape->name, p->size, p->indexed ? "indexed" : "plain", state_names[p->state]);
  if (*p->wrong)
    printf(" %s", p->wrong);
  else if (!p->left_out)
    printf(" %10.1f us against %10.1f in SQLite  %s", p->us[OURS], p->us[PLAIN], p->reason);
  printf("\n");
  if (lost || *p->wrong) printf("         %s\n", p->sql);
  fflush(stdout);
}

static void run_database(struct bench *b, int size, bool indexed) {
  char *path = make_database(b, size, indexed);
  for (int i = 0; i < b->shapes.n; i++) {
    const struct shape *shape = &b->shapes.list[i];
    if (b->only && !strstr(shape->name, b->only)) continue;
    if (i % b->n_parts != b->part) continue;
    for (int state = 0; state < N_STATES; state++) {
      if (!b->states[state]) continue;
      struct point p = {.shape = shape,
                        .path = path,
                        .size = b->sizes[size],
                        .indexed = indexed,
                        .state = (enum state)state};
      char *sql = shape_text(shape->sql, b->sizes[size]);
      if (!shape_binds(shape, b->sizes[size], &p.binds)) fatal("%s: bad binds", shape->name);
      p.sql = sql;
      run_point(b, &p);
      if (p.left_out) state = N_STATES; /* the other states take as long */
      free(sql);
      binds_free(&p.binds);
    }
  }
  sqlite3_free(path);
}

/* ---- the command line */

static void read_sizes(struct bench *b, const char *text) {
  for (b->n_sizes = 0; *text && b->n_sizes < MAX_SIZES;) {
    char *end;
    b->sizes[b->n_sizes++] = strtol(text, &end, 10);
    if (end == text || b->sizes[b->n_sizes - 1] < 10) fatal("bad sizes");
    text = *end == ',' ? end + 1 : end;
  }
}

static void set_quick(struct bench *b) {
  read_sizes(b, "100,10000,100000");
  b->n_runs = 3;
}

static void read_part(struct bench *b, const char *text) {
  int part, n;
  if (sscanf(text, "%d/%d", &part, &n) != 2 || part < 1 || part > n)
    fatal("--part: I/N, where I is from 1 to N");
  b->part = part - 1;
  b->n_parts = n;
}

static void read_options(struct bench *b, int argc, char **argv) {
  const char *queries = "bench/queries/router";
  for (int i = 1; i < argc; i++) {
    const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (strcmp(name, "--quick") == 0) {
      set_quick(b);
    } else if (strcmp(name, "--check") == 0) {
      read_sizes(b, "1000,50000");
      b->check = true;
      b->n_runs = 1;
      b->limit = 0.1;
      b->times = 2;
      b->plus_us = 3000;
      b->plus_new_us = 20000;
    } else if (strcmp(name, "--preload") == 0) {
      b->preload = true;
    } else if (strcmp(name, "-v") == 0) {
      b->verbose = true;
    } else if (!value) {
      fatal("unknown option %s; see the top of bench/router.c", name);
    } else {
      i++;
      if (strcmp(name, "--sizes") == 0)
        read_sizes(b, value);
      else if (strcmp(name, "--only") == 0)
        b->only = value;
      else if (strcmp(name, "--part") == 0)
        read_part(b, value);
      else if (strcmp(name, "--runs") == 0)
        b->n_runs = atoi(value);
      else if (strcmp(name, "--index") == 0)
        b->index = atoi(value);
      else if (strcmp(name, "--dir") == 0)
        b->dir = value;
      else if (strcmp(name, "--limit") == 0)
        b->limit = atof(value);
      else if (strcmp(name, "--queries") == 0)
        queries = value;
      else if (strcmp(name, "--states") == 0)
        for (int k = 0; k < N_STATES; k++) b->states[k] = strstr(value, state_names[k]) != NULL;
      else
        fatal("unknown option %s; see the top of bench/router.c", name);
    }
  }
  if (b->n_runs < 1 || b->n_runs > MAX_RUNS) fatal("--runs: 1 to %d", MAX_RUNS);
  char why[300];
  if (!shapes_read(&b->shapes, queries, why, sizeof why)) fatal("%s", why);
}

/* Starts the program again under the preload library, which is in the same folder. */
#define UNDER_PRELOAD "ROUTER_UNDER_PRELOAD"

static void start_under_preload(const char *self, char **argv) {
  const char *slash = strrchr(self, '/');
  char *library = sqlite3_mprintf("%.*s/libwarplite_preload.so", (int)(slash - self), self);
  if (access(library, R_OK) != 0) fatal("cannot read %s", library);
  setenv("LD_PRELOAD", library, 1);
  setenv(UNDER_PRELOAD, "1", 1);
  execv(self, argv);
  fatal("cannot start %s: %s", self, strerror(errno));
}

int main(int argc, char **argv) {
  static struct bench b = {.dir = ".",
                           .n_runs = 7,
                           .index = -1,
                           .n_parts = 1,
                           .limit = 10,
                           .times = 1.05,
                           .plus_us = 50,
                           .plus_new_us = 3000,
                           .states = {true, true, true}};
  char self[4096];
  find_calls();
  if (argc >= 6 && strcmp(argv[1], "--child") == 0) {
    b.preload = strcmp(argv[3], "preload") == 0;
    b.limit = atof(argv[4]) / 1e6;
    enum side side = strcmp(argv[3], "plain") == 0 ? PLAIN : OURS;
    return child(&b, argv[2], side, argv[5], argc - 6, argv + 6);
  }
  read_sizes(&b, "100,1000,10000,100000,1000000,10000000");
  read_options(&b, argc, argv);
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n < 0) fatal("cannot find the program itself");
  self[n] = 0;
  b.self = self;
  if (b.preload && !getenv(UNDER_PRELOAD)) start_under_preload(self, argv);
  for (int size = 0; size < b.n_sizes; size++)
    for (int indexed = 0; indexed < 2; indexed++)
      if (b.index < 0 || b.index == indexed) run_database(&b, size, indexed);
  printf("%ld points: %ld lost, %ld with wrong rows, %ld left out because SQLite takes longer than "
         "%g s\n",
         b.n_points, b.n_lost, b.n_wrong, b.n_left_out, b.limit);
  bool good = !b.n_lost && !b.n_wrong && b.n_points > 0;
  if (b.check) printf("%s router%s\n", good ? "ok" : "not ok", good ? "" : " - see above");
  shapes_free(&b.shapes);
  return good ? 0 : 1;
}
