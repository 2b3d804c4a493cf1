/*
** The sides that are compared, and running one query on one of them.
**
** Stands between the loop over queries and runs (measure.h) and the engines.
**
** 1. Settings are changed before the clock starts. The clock covers preparing the text, running it,
**    reading the result and releasing it. In a cold run it also covers opening the file.
** 2. A warplite side's run counts only if warplite_reason() names the engine it asked for; anything
**    else is a failure, never a time. Where the suite allows for it (b->lenient), it is a time with
**    a note of who ran it (timing.elsewhere).
** 3. The files are filled before any side runs, and no side writes.
*/
#ifndef BENCH_SIDE_H
#define BENCH_SIDE_H

#include <time.h>
#include <unistd.h>
#include "digest.h"
#include "duck.h"
#include "query.h"

#define MAX_RUNS    101
#define MAX_SETS    16
#define MAX_SIDES   32
#define MAX_THREADS 4
#define WHY         512

/* The three times of a query: docs/benchmarks.md says what they mean. */
enum time_kind { COLD, FRESH, REPEATED, N_TIMES };
static const char *const time_names[N_TIMES] = {"cold", "fresh", "repeated"};

enum side_kind { SIDE_SQLITE, SIDE_DUCK, SIDE_ARROW, SIDE_DEVICE, SIDE_ROWS };

struct side {
  char name[24];
  enum side_kind kind;
  const char *engine; /* warplite sides: what engine= is set to and the reason begins with */
  const char *device;
  int threads; /* 0: all cores */
  bool judged; /* compared with DuckDB in the report */
  const char *what;
};

/* SQLite is the first. */
static const struct side known_sides[] = {
    {"sqlite", SIDE_SQLITE, NULL, NULL, 1, false, "SQLite, every row stepped and read"},
    {"duckdb", SIDE_DUCK, NULL, NULL, 0, false, "DuckDB, all threads, chunks"},
    {"cpu1", SIDE_ARROW, "cpu", NULL, 1, false, "warplite_query, one thread"},
    {"cpu", SIDE_ARROW, "cpu", NULL, 0, true, "warplite_query, all threads"},
    {"cuda", SIDE_ARROW, "gpu", "cuda", 0, true, "warplite_query on the GPU"},
    {"cuda-device", SIDE_DEVICE, "gpu", "cuda", 0, false,
     "warplite_query_device: the rows stay on the GPU"},
    {"sim", SIDE_ARROW, "gpu", "sim", 0, false, "warplite_query on the simulated GPU"},
    {"sim-device", SIDE_DEVICE, "gpu", "sim", 0, false, "warplite_query_device, simulated"},
    {"prepare", SIDE_ROWS, "cpu", NULL, 0, false, "warplite_prepare, all threads, rows stepped"},
    {"prepare-cuda", SIDE_ROWS, "gpu", "cuda", 0, false,
     "warplite_prepare on the GPU, rows stepped"},
    {"auto", SIDE_ARROW, "auto", "cuda", 0, false, "warplite_query, engine by cost"},
};
enum { N_KNOWN_SIDES = sizeof known_sides / sizeof *known_sides };

struct setting {
  const char *name, *value;
};

struct bench {
  sqlite3 *db;
  struct duck duck;
  bool duck_float;
  const char *file, *duck_file; /* what a cold run opens */
  struct side sides[MAX_SIDES]; /* SQLite first, then those asked for */
  bool on[MAX_SIDES];           /* false: left out */
  int n_sides;
  bool times[N_TIMES];           /* which are taken */
  bool fresh;                    /* a fresh run is going on: keep=0 */
  const char *keep;              /* that setting in the other runs, from --set; NULL: 1 */
  struct setting sets[MAX_SETS]; /* from --set, applied before a side's own */
  int n_sets;
  int n_runs, n_sqlite_runs; /* timed runs; 0 of SQLite: it only checks */
  double sqlite_limit_s;     /* a statement in SQLite is stopped after so long; 0: never */
  double deadline;           /* of the statement that runs now; 0: none */
  bool verbose;
  bool lenient; /* this suite's queries may run elsewhere than was asked */
  int n_failures;
};

static inline double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static inline int n_cores(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : (int)n;
}

/* ---- which sides there are ---- */

/* -1: none of this name */
static inline int side_called(const struct bench *b, const char *name) {
  for (int s = 0; s < b->n_sides; s++)
    if (strcmp(b->sides[s].name, name) == 0) return s;
  return -1;
}

static inline const struct side *known_side(const char *name, size_t n) {
  for (int i = 0; i < N_KNOWN_SIDES; i++)
    if (strlen(known_sides[i].name) == n && strncmp(known_sides[i].name, name, n) == 0)
      return &known_sides[i];
  return NULL;
}

/* The side of DuckDB that a side is compared with: the one with as many threads. -1: none */
static inline int duck_for(const struct bench *b, int side) {
  int found = -1;
  for (int s = b->n_sides - 1; s >= 0; s--)
    if (b->sides[s].kind == SIDE_DUCK && b->on[s] &&
        (found < 0 || b->sides[s].threads == b->sides[side].threads))
      found = s;
  return found;
}

static inline bool add_side(struct bench *b, const struct side *known, int threads, bool several) {
  if (b->n_sides == MAX_SIDES) return false;
  struct side *s = &b->sides[b->n_sides];
  *s = *known;
  if (known->threads == 0 && threads > 0) {
    s->threads = threads;
    if (several) snprintf(s->name, sizeof s->name, "%.12s-%d", known->name, threads);
  }
  b->on[b->n_sides++] = true;
  return true;
}

/* Numbers by commas; returns how many, or 0 if the text is something else. */
static inline int parse_threads(const char *list, int threads[MAX_THREADS]) {
  int n = 0;
  for (char *end; list && *list; list = end + (*end == ',')) {
    long v = strtol(list, &end, 10);
    if (end == list || (*end && *end != ',') || v < 1 || v > 256 || n == MAX_THREADS) return 0;
    threads[n++] = (int)v;
  }
  return n;
}

/*
** The sides of a list of names, each with every number of threads; threads may be NULL. SQLite is
** there even if it is not listed, but then it is not on. False after a message on stderr.
*/
static inline bool choose_sides(struct bench *b, const char *list, const char *threads) {
  int counts[MAX_THREADS] = {0}, n_counts = threads ? parse_threads(threads, counts) : 1;
  bool listed[N_KNOWN_SIDES] = {false};
  if (n_counts == 0) {
    fprintf(stderr, "--threads %s: at most %d numbers from 1 to 256, by commas\n", threads,
            MAX_THREADS);
    return false;
  }
  for (size_t n; *list; list += n + (list[n] == ',')) {
    n = strcspn(list, ",");
    const struct side *known = known_side(list, n);
    if (!known) {
      fprintf(stderr, "no side is called \"%.*s\"\n", (int)n, list);
      return false;
    }
    listed[known - known_sides] = true;
  }
  b->n_sides = 0;
  for (int i = 0; i < N_KNOWN_SIDES; i++)
    for (int k = 0; k < (known_sides[i].threads ? 1 : n_counts); k++)
      if (listed[i] || i == 0) add_side(b, &known_sides[i], counts[k], n_counts > 1);
  b->on[0] = listed[0];
  return true;
}

/* Names of times by commas; false: one is unknown. */
static inline bool choose_times(struct bench *b, const char *list) {
  memset(b->times, 0, sizeof b->times);
  for (size_t n; *list; list += n + (list[n] == ',')) {
    bool known = false;
    n = strcspn(list, ",");
    for (int t = 0; t < N_TIMES; t++)
      if (strlen(time_names[t]) == n && strncmp(time_names[t], list, n) == 0)
        b->times[t] = known = true;
    if (!known) return false;
  }
  return true;
}

/* DuckDB's library, for the sides that are DuckDB's: they are left out, with a word, if it is not
** there. path may be NULL. */
static inline void find_duck(struct bench *b, const char *path, bool wanted) {
  char why[WHY] = "its library was not named; bench/run fetches it";
  bool found = false, tried = false;
  for (int s = 0; s < b->n_sides; s++) {
    if (b->sides[s].kind != SIDE_DUCK) continue;
    if (!tried) found = wanted && path && duck_find(&b->duck, path, why, sizeof why);
    if (!tried && !found && wanted) printf("duckdb: left out (%s)\n", why);
    tried = true;
    b->on[s] = found;
  }
  if (!found) b->duck.lib = NULL;
}

static inline bool has_duck(const struct bench *b) {
  return duck_for(b, 0) >= 0;
}

static inline void leave_out_duck(struct bench *b, const char *why) {
  printf("duckdb: left out (%s)\n", why);
  for (int s = 0; s < b->n_sides; s++)
    if (b->sides[s].kind == SIDE_DUCK) b->on[s] = false;
}

/* ---- settings ---- */

static inline bool set_one(sqlite3 *db, const char *name, const char *value, char *why) {
  sqlite3_stmt *stmt = NULL;
  bool ok = sqlite3_prepare_v2(db, "SELECT warplite_set(?, ?)", -1, &stmt, NULL) == SQLITE_OK &&
            sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC) == SQLITE_OK &&
            sqlite3_bind_text(stmt, 2, value, -1, SQLITE_STATIC) == SQLITE_OK &&
            sqlite3_step(stmt) == SQLITE_ROW;
  if (!ok) snprintf(why, WHY, "setting %s=%s: %s", name, value, sqlite3_errmsg(db));
  sqlite3_finalize(stmt);
  return ok;
}

/* A setting from the options; false: there are too many. */
static inline bool add_setting(struct bench *b, const char *name, const char *value) {
  if (strcmp(name, "keep") == 0) {
    b->keep = value;
    return true;
  }
  if (b->n_sets == MAX_SETS) return false;
  b->sets[b->n_sets++] = (struct setting){name, value};
  return true;
}

static inline bool set_extra(struct bench *b, char *why) {
  const char *keep = b->fresh ? "0" : b->keep ? b->keep : "1";
  if (!set_one(b->db, "keep", keep, why)) return false;
  for (int i = 0; i < b->n_sets; i++)
    if (!set_one(b->db, b->sets[i].name, b->sets[i].value, why)) return false;
  return true;
}

/* Whatever the router says, SQLite included. */
static inline bool by_cost(const struct side *s) {
  return strcmp(s->engine, "auto") == 0;
}

static inline bool set_side(struct bench *b, const struct side *s, char *why) {
  char threads[16];
  snprintf(threads, sizeof threads, "%d", s->threads ? s->threads : n_cores());
  return set_one(b->db, "threads", threads, why) && set_extra(b, why) &&
         (!s->threads || set_one(b->db, "threads", threads, why)) &&
         (!s->device || set_one(b->db, "device", s->device, why)) &&
         set_one(b->db, "engine", s->engine, why) &&
         set_one(b->db, "route", by_cost(s) ? "cost" : "always", why) &&
         set_one(b->db, "strict", b->lenient ? "0" : "1", why);
}

/* The rows of a device side must also stay on the device. */
static inline bool ran_there(const struct bench *b, const struct side *s) {
  const char *reason = warplite_reason(b->db);
  if (s->kind == SIDE_DEVICE && strstr(reason, "rows on the host")) return false;
  return by_cost(s) || strncmp(reason, s->engine, strlen(s->engine)) == 0;
}

/* ---- running ---- */

/*
** One run on the open connection. d says whether to read all (full) or to touch; why gets the
** message on false.
*/
static inline bool side_run(struct bench *b, const struct side *s, const char *sql,
                            struct digest *d, double *ms, char *why) {
  *d = (struct digest){.full = d->full, .keep = d->keep};
  if (s->engine && !set_side(b, s, why)) return false;
  if (s->kind == SIDE_DUCK &&
      !duck_threads(&b->duck, s->threads ? s->threads : n_cores(), why, WHY))
    return false;

  double start = now_ms();
  switch (s->kind) {
  case SIDE_SQLITE:
  case SIDE_ROWS: {
    sqlite3_stmt *stmt = NULL;
    int rc = s->kind == SIDE_ROWS ? warplite_prepare(b->db, sql, -1, &stmt, NULL)
                                  : sqlite3_prepare_v2(b->db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK) rc = digest_sqlite(d, stmt);
    if (rc != SQLITE_OK) snprintf(why, WHY, "%s", sqlite3_errmsg(b->db));
    sqlite3_finalize(stmt);
    if (rc != SQLITE_OK) return false;
    break;
  }
  case SIDE_DUCK:
    if (!duck_run(&b->duck, sql, d, why, WHY)) return false;
    break;
  case SIDE_ARROW: {
    struct ArrowArrayStream stream = {0};
    if (warplite_query(b->db, sql, &stream) != SQLITE_OK) {
      snprintf(why, WHY, "%s", warplite_errmsg(b->db));
      return false;
    }
    if (!digest_arrow(d, &stream, why, WHY)) return false;
    break;
  }
  case SIDE_DEVICE: {
    struct ArrowDeviceArrayStream stream = {0};
    if (warplite_query_device(b->db, sql, &stream) != SQLITE_OK) {
      snprintf(why, WHY, "%s", warplite_errmsg(b->db));
      return false;
    }
    if (!digest_device(d, &stream, why, WHY)) return false;
    break;
  }
  }
  *ms = now_ms() - start;
  if (d->keep) {
    d->keep->n_rows = d->n_rows;
    d->keep->n_columns = d->n_columns;
  }

  if (s->engine && !b->lenient && !ran_there(b, s)) {
    snprintf(why, WHY, "wanted the engine %s, got \"%s\"", s->engine, warplite_reason(b->db));
    return false;
  }
  return true;
}

static inline int stop_late(void *arg) {
  const struct bench *b = arg;
  return b->deadline > 0 && now_ms() > b->deadline;
}

/* Opens b->file; SQLite keeps all pages once read, as it would in a database in memory. */
static inline bool open_file(struct bench *b, bool enable, char *why) {
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  bool ok = sqlite3_open_v2(b->file, &b->db, flags, NULL) == SQLITE_OK &&
            sqlite3_exec(b->db, "PRAGMA cache_size=-16000000", NULL, NULL, NULL) == SQLITE_OK;
  if (!ok) {
    snprintf(why, WHY, "%s: %s", b->file, sqlite3_errmsg(b->db));
  } else if (enable && warplite_enable(b->db) != SQLITE_OK) {
    snprintf(why, WHY, "warplite_enable: %s", warplite_errmsg(b->db));
    ok = false;
  }
  if (b->sqlite_limit_s > 0) sqlite3_progress_handler(b->db, 100000, stop_late, b);
  return ok;
}

static inline void close_file(struct bench *b) {
  sqlite3_close(b->db);
  b->db = NULL;
}

/* Opens the side's file with nothing in memory; ms gets the time that it took. */
static inline bool open_cold(struct bench *b, const struct side *s, double *ms, char *why) {
  double start = now_ms();
  bool ok = s->kind == SIDE_DUCK ? duck_open(&b->duck, b->duck_file, why, WHY)
                                 : open_file(b, s->engine != NULL, why);
  *ms = now_ms() - start;
  return ok;
}

static inline void close_cold(struct bench *b, const struct side *s) {
  if (s->kind == SIDE_DUCK)
    duck_close(&b->duck);
  else
    close_file(b);
}

static inline int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static inline double sorted_median(const double *v, int n) {
  return n == 0 ? 0 : n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

#endif
