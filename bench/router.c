/*
** Does any query get slower because warplite might run it? Runs many query shapes over tables of
** many sizes, in plain SQLite and through warplite with its default settings.
**
**     router [--quick] [--sizes N,N,…] [--only TEXT] [--states new,warm,write] [--index 0|1]
**            [--runs N] [--limit SECONDS] [--dir FOLDER] [--queries FOLDER] [--preload] [--check]
**            [-v]
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
** The shapes are in bench/queries/router. See router_shapes.h for the format. With --preload the
** warplite side is plain sqlite3_prepare_v2 in a process that runs under the preload library.
*/
#include <errno.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "query.h"
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

static void fatal(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fprintf(stderr, "router: ");
  vfprintf(stderr, fmt, args);
  fprintf(stderr, "\n");
  va_end(args);
  exit(2);
}

/* ---- data */

static void exec(sqlite3 *db, const char *sql) {
  char *message = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) fatal("%s: %s", sql, message);
}

static sqlite3_stmt *prepared(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
    fatal("%s: %s", sql, sqlite3_errmsg(db));
  return s;
}

static void insert(sqlite3_stmt *s) {
  if (sqlite3_step(s) != SQLITE_DONE) fatal("INSERT: %s", sqlite3_errmsg(sqlite3_db_handle(s)));
  sqlite3_reset(s);
}

/* t: the large table. a is unique and random, k has 100 rows per value, ts rises with the rowid, s
** is text, c has 8 values of very different frequency, z is 1 in a thousandth of the rows, u is
** mostly NULL. */
static void fill_t(sqlite3 *db, long n, long n_d, struct generator *g) {
  static const char *const colors[] = {"red", "green", "blue", "black", "white", "grey", "pink"};
  sqlite3_stmt *s = prepared(db, "INSERT INTO t VALUES(?,?,?,?,?,?,?,?,?,?,?,?)");
  char text[32], note[64];
  uint64_t step = 2654435761u % (uint64_t)n | 1;
  while (n % (long)step == 0 && step > 1) step += 2;
  for (long i = 1; i <= n; i++) {
    uint64_t r = generator_bits(g);
    sqlite3_bind_int64(s, 1, i);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)((uint64_t)i * step % (uint64_t)n));
    sqlite3_bind_int64(s, 3, (sqlite3_int64)(r % (uint64_t)(n / 100 + 5)));
    sqlite3_bind_int64(s, 4, 1600000000 + i * 10 + (long)(r >> 20 & 31));
    snprintf(text, sizeof text, "name%08lu", (unsigned long)((r >> 8) % (uint64_t)n));
    sqlite3_bind_text(s, 5, text, -1, SQLITE_TRANSIENT);
    unsigned color = (unsigned)__builtin_ctz((unsigned)(r >> 33) | 64);
    sqlite3_bind_text(s, 6, colors[color], -1, SQLITE_STATIC);
    sqlite3_bind_double(s, 7, (double)(r >> 40 & 4095) * 0.25);
    sqlite3_bind_int64(s, 8, (sqlite3_int64)((r >> 12) % 1000));
    sqlite3_bind_int(s, 9, (r >> 5) % 1000 == 0);
    if (r % 4)
      sqlite3_bind_null(s, 10);
    else
      sqlite3_bind_int64(s, 10, (sqlite3_int64)(r >> 50));
    sqlite3_bind_int64(s, 11, 1 + (sqlite3_int64)((r >> 17) % (uint64_t)n_d));
    snprintf(note, sizeof note, "note %lx about %lu", (unsigned long)(r & 0xffffff),
             (r >> 30) % 97);
    sqlite3_bind_text(s, 12, note, -1, SQLITE_TRANSIENT);
    insert(s);
  }
  sqlite3_finalize(s);
}

static void fill_others(sqlite3 *db, long n, long n_d, struct generator *g) {
  char text[32];
  sqlite3_stmt *s = prepared(db, "INSERT INTO d VALUES(?,?,?)");
  for (long i = 1; i <= n_d; i++) {
    sqlite3_bind_int64(s, 1, i);
    snprintf(text, sizeof text, "dim%05ld", i);
    sqlite3_bind_text(s, 2, text, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)(generator_bits(g) % 20));
    insert(s);
  }
  sqlite3_finalize(s);
  s = prepared(db, "INSERT INTO e(t, q, p) VALUES(?,?,?)");
  for (long i = 1; i <= n / 2; i++) {
    uint64_t r = generator_bits(g);
    sqlite3_bind_int64(s, 1, 1 + (sqlite3_int64)(r % (uint64_t)n));
    sqlite3_bind_int64(s, 2, (sqlite3_int64)((r >> 32) % 50));
    sqlite3_bind_double(s, 3, (double)(r >> 40 & 1023) * 0.25);
    insert(s);
  }
  sqlite3_finalize(s);
  s = prepared(db, "INSERT INTO w VALUES(?,?,?)");
  for (long i = 1; i <= n / 4; i++) {
    uint64_t r = generator_bits(g);
    sqlite3_bind_int64(s, 1, (sqlite3_int64)(r % (uint64_t)(n / 50 + 1)));
    sqlite3_bind_int64(s, 2, i);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)(r >> 54));
    insert(s);
  }
  sqlite3_finalize(s);
}

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
static int read_all(sqlite3_stmt *s, struct outcome *out) {
  int rc, n = sqlite3_column_count(s);
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
    uint64_t h = 1;
    for (int i = 0; i < n; i++) {
      int type = sqlite3_column_type(s, i);
      double real;
      uint64_t v = 0;
      switch (type) {
      case SQLITE_INTEGER: v = (uint64_t)sqlite3_column_int64(s, i); break;
      case SQLITE_FLOAT:
        real = sqlite3_column_double(s, i);
        memcpy(&v, &real, sizeof v);
        break;
      case SQLITE_NULL: break;
      default:
        for (const unsigned char *p = sqlite3_column_text(s, i); p && *p; p++) v = v * 31 + *p;
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
static struct outcome run_once(sqlite3 *db, bool ours, const char *sql, const struct binds *binds) {
  struct outcome out = {0};
  sqlite3_stmt *s = NULL;
  double start = now_us();
  int rc = (ours ? warplite_prepare : sqlite3_prepare_v2)(db, sql, -1, &s, NULL);
  for (int i = 0; rc == SQLITE_OK && i < binds->n; i++)
    rc = binds->is_text[i] ? sqlite3_bind_text(s, i + 1, binds->text[i], -1, SQLITE_STATIC)
                           : sqlite3_bind_int64(s, i + 1, binds->number[i]);
  if (rc == SQLITE_OK) rc = read_all(s, &out);
  int rc2 = sqlite3_finalize(s);
  out.us = now_us() - start;
  out.ok = rc == SQLITE_OK && rc2 == SQLITE_OK;
  if (!out.ok) snprintf(out.why, sizeof out.why, "%s", sqlite3_errmsg(db));
  return out;
}

static sqlite3 *open_side(const char *path, bool ours) {
  sqlite3 *db;
  if (sqlite3_open(path, &db) != SQLITE_OK) fatal("%s: %s", path, sqlite3_errmsg(db));
  sqlite3_busy_timeout(db, 10000);
  if (!ours) sqlite3_progress_handler(db, 10000, past_deadline, NULL);
  return db;
}

/* The child process of the state `new`: opens, runs once, prints the outcome. */
static int child(const char *path, bool ours, double limit_us, const char *sql, int n_binds,
                 char **texts) {
  struct binds binds;
  if (!binds_read(&binds, n_binds, texts)) fatal("bad binds");
  double start = now_us();
  deadline = ours ? 0 : start + limit_us;
  sqlite3 *db = open_side(path, ours);
  struct outcome out = run_once(db, ours, sql, &binds);
  const char *why = ours && out.ok ? warplite_reason(db) : out.why;
  char reason[400];
  snprintf(reason, sizeof reason, "%s", why ? why : "");
  sqlite3_close(db);
  printf("%d %.3f %llu %llu %s\n", out.ok, now_us() - start, (unsigned long long)out.rows,
         (unsigned long long)out.hash, reason);
  return 0;
}

static struct outcome run_child(const struct bench *b, const char *path, enum side side,
                                const char *sql, const struct binds *binds) {
  struct outcome out = {0};
  char number[32], line[1024] = "";
  char *args[8 + MAX_BINDS];
  int n = 0, ends[2], status;
  pid_t pid;
  posix_spawn_file_actions_t actions;
  snprintf(number, sizeof number, "%.0f", b->limit * 1e6);
  args[n++] = (char *)b->self;
  args[n++] = "--child";
  args[n++] = (char *)path;
  args[n++] = side == OURS && !b->preload ? "1" : "0";
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
  struct outcome out = run_once(p->db[side], side == OURS && !b->preload, p->sql, &p->binds);
  if (side == OURS && out.ok && !b->preload)
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

static void open_point(struct point *p, bool ours_plain) {
  p->db[PLAIN] = p->db[OURS] = p->writer = NULL;
  if (p->state == NEW) return;
  p->db[PLAIN] = open_side(p->path, false);
  p->db[OURS] = open_side(p->path, !ours_plain);
  if (p->state == WRITE) p->writer = open_side(p->path, false);
}

static void close_point(struct point *p) {
  for (int side = 0; side < N_SIDES; side++) sqlite3_close(p->db[side]);
  sqlite3_close(p->writer);
}

static void run_point(struct bench *b, struct point *p) {
  deadline = 0;
  open_point(p, b->preload);
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

int main(int argc, char **argv) {
  static struct bench b = {.dir = ".",
                           .n_runs = 7,
                           .index = -1,
                           .limit = 10,
                           .times = 1.05,
                           .plus_us = 50,
                           .plus_new_us = 3000,
                           .states = {true, true, true}};
  char self[4096];
  if (argc >= 6 && strcmp(argv[1], "--child") == 0)
    return child(argv[2], argv[3][0] == '1', atof(argv[4]), argv[5], argc - 6, argv + 6);
  read_sizes(&b, "100,1000,10000,100000,1000000,10000000");
  read_options(&b, argc, argv);
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n < 0) fatal("cannot find the program itself");
  self[n] = 0;
  b.self = self;
  for (int size = 0; size < b.n_sizes; size++)
    for (int indexed = 0; indexed < 2; indexed++)
      if (b.index < 0 || b.index == indexed) run_database(&b, size, indexed);
  printf("%d shapes, %ld points: %ld lost, %ld with wrong rows, %ld left out because SQLite takes "
         "longer than %g s\n",
         b.shapes.n, b.n_points, b.n_lost, b.n_wrong, b.n_left_out, b.limit);
  bool good = !b.n_lost && !b.n_wrong && b.n_points > 0;
  if (b.check) printf("%s router%s\n", good ? "ok" : "not ok", good ? "" : " - see above");
  shapes_free(&b.shapes);
  return good ? 0 : 1;
}
