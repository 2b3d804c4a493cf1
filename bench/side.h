/*
** The sides that are compared, and running one query on one of them.
**
** Stands between the loop over queries and runs (bench.c) and the engines. Every side
** but DuckDB works on one connection to one in-memory database.
**
** 1. Settings are changed before the clock starts; the clock covers preparing the text,
**    running it, reading the result and releasing it.
** 2. A warplite side's run counts only if warplite_reason() names the engine it asked
**    for; anything else is a failure, never a time. Where the suite allows for it
**    (b->lenient), it is a time with a note of who ran it (timing.elsewhere).
** 3. The in-memory database is filled and committed before any side runs, and no side
**    writes.
*/
#ifndef BENCH_SIDE_H
#define BENCH_SIDE_H

#include <time.h>
#include <unistd.h>
#include "digest.h"
#include "duck.h"
#include "suite.h"

#define MAX_RUNS 101
#define MAX_SETS 16
#define WHY      512

enum side_kind { SIDE_SQLITE, SIDE_DUCK, SIDE_ARROW, SIDE_ROWS };

struct side {
  const char *name;
  enum side_kind kind;
  const char *engine; /* warplite sides: what engine= is set to and the reason begins with */
  const char *device;
  bool one_thread;
  const char *what;
};

static const struct side sides[] = {
    {"sqlite", SIDE_SQLITE, NULL, NULL, false, "SQLite in memory, every row stepped and read"},
    {"duckdb", SIDE_DUCK, NULL, NULL, false, "DuckDB in memory, all threads, chunks"},
    {"cpu1", SIDE_ARROW, "cpu", NULL, true, "warplite_query, one thread"},
    {"cpu", SIDE_ARROW, "cpu", NULL, false, "warplite_query, all threads"},
    {"cuda", SIDE_ARROW, "gpu", "cuda", false, "warplite_query on the GPU, rows in host memory"},
    {"sim", SIDE_ARROW, "gpu", "sim", false, "warplite_query on the simulated GPU"},
    {"prepare", SIDE_ROWS, "cpu", NULL, false, "warplite_prepare, all threads, rows stepped"},
    {"prepare-cuda", SIDE_ROWS, "gpu", "cuda", false, "warplite_prepare on the GPU, rows stepped"},
    {"auto", SIDE_ARROW, "auto", NULL, false, "warplite_query, engine by cost"},
};
enum { N_SIDES = sizeof sides / sizeof *sides };

struct setting {
  const char *name, *value;
};

struct bench {
  sqlite3 *db;
  struct duck duck;
  bool duck_float;
  bool on[N_SIDES];
  const char *keep;              /* the setting of that name, from --keep; NULL: 1 */
  struct setting sets[MAX_SETS]; /* from --set, applied before a side's own */
  int n_sets;
  int n_runs, n_sqlite_runs;
  bool verbose;
  bool lenient; /* this suite's queries may run elsewhere than was asked */
  int n_failures;
};

/* What one query took on one side. */
struct timing {
  double ms[MAX_RUNS]; /* sorted once all are in */
  int n;
  double first_ms; /* the warm-up: loads the columns if no earlier query did */
  bool same;       /* rows and checksum are SQLite's */
  bool elsewhere;  /* another engine ran it than was asked for: the reason says why */
  char reason[WHY];
};

struct result {
  const struct query *query;
  int64_t n_rows;
  struct timing side[N_SIDES];
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

static inline const char *keep_of(const struct bench *b) {
  return b->keep ? b->keep : "1";
}

/* A setting from the options; false: there are too many. keep is shown in reports, so it has its
** own place, whichever option it came from. */
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
  if (!set_one(b->db, "keep", keep_of(b), why)) return false;
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
  snprintf(threads, sizeof threads, "%d", s->one_thread ? 1 : n_cores());
  return set_one(b->db, "threads", threads, why) && set_extra(b, why) &&
         (!s->one_thread || set_one(b->db, "threads", "1", why)) &&
         (!s->device || set_one(b->db, "device", s->device, why)) &&
         set_one(b->db, "engine", s->engine, why) &&
         set_one(b->db, "route", by_cost(s) ? "cost" : "always", why) &&
         set_one(b->db, "strict", b->lenient ? "0" : "1", why);
}

static inline bool ran_there(const struct bench *b, const struct side *s) {
  return by_cost(s) || strncmp(warplite_reason(b->db), s->engine, strlen(s->engine)) == 0;
}

/*
** One run. d says whether to read all (full) or to touch; why gets the message on false.
*/
static inline bool side_run(struct bench *b, const struct side *s, const char *sql,
                            struct digest *d, double *ms, char *why) {
  *d = (struct digest){.full = d->full, .keep = d->keep};
  if (s->engine && !set_side(b, s, why)) return false;

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

/* Fills the table of strings, inside the caller's transaction. */
static inline bool sqlite_load_strings(sqlite3 *db, const struct suite *s, int64_t n_rows) {
  sqlite3_stmt *stmt = NULL;
  char text[STRING_MAX];
  bool ok =
      sqlite3_exec(db, "CREATE TABLE strings(id INTEGER PRIMARY KEY, s TEXT, kind TEXT)", NULL,
                   NULL, NULL) == SQLITE_OK &&
      sqlite3_prepare_v2(db, "INSERT INTO strings VALUES(?,?,?)", -1, &stmt, NULL) == SQLITE_OK;
  struct generator g = generator_start(s);
  for (int64_t id = 1; id <= n_rows && ok; id++) {
    int n = string_of(&g, id, text);
    sqlite3_bind_int64(stmt, 1, id);
    sqlite3_bind_text(stmt, 2, text, n, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 3, kind_of(&g), -1, SQLITE_STATIC);
    ok = sqlite3_step(stmt) == SQLITE_DONE && sqlite3_reset(stmt) == SQLITE_OK;
  }
  sqlite3_finalize(stmt);
  return ok;
}

/* A fresh in-memory database with the suite's tables; why gets the message on false. */
static inline bool sqlite_load(sqlite3 **pdb, const struct suite *s, int64_t n_rows, char *why) {
  sqlite3 *db = NULL;
  sqlite3_stmt *stmt = NULL;
  bool ok = false;
  if (sqlite3_open_v2(":memory:", &db,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      NULL) != SQLITE_OK ||
      sqlite3_exec(db,
                   "CREATE TABLE test(id INTEGER PRIMARY KEY, uniformi INTEGER, normali5 INTEGER, "
                   "normali20 INTEGER, uniformf REAL, normalf5 REAL, normalf20 REAL); BEGIN",
                   NULL, NULL, NULL) != SQLITE_OK ||
      sqlite3_prepare_v2(db, "INSERT INTO test VALUES(?,?,?,?,?,?,?)", -1, &stmt, NULL) !=
          SQLITE_OK)
    goto done;
  struct generator g = generator_start(s);
  for (int64_t n = 0; n < n_rows; n++) {
    struct row r;
    generator_row(&g, &r);
    sqlite3_bind_int64(stmt, 1, r.id);
    for (int k = 0; k < 3; k++) sqlite3_bind_int(stmt, 2 + k, r.i[k]);
    for (int k = 0; k < 3; k++) sqlite3_bind_double(stmt, 5 + k, r.f[k]);
    if (sqlite3_step(stmt) != SQLITE_DONE || sqlite3_reset(stmt) != SQLITE_OK) goto done;
  }
  sqlite3_finalize(stmt);
  stmt = NULL;
  if (s->strings && !sqlite_load_strings(db, s, n_rows)) goto done;
  ok = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
done:
  if (!ok) snprintf(why, WHY, "filling SQLite's table: %s", sqlite3_errmsg(db));
  sqlite3_finalize(stmt);
  if (ok) {
    *pdb = db;
  } else {
    sqlite3_close(db);
  }
  return ok;
}

static inline int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static inline double sorted_median(const double *v, int n) {
  return n == 0 ? 0 : n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

#endif
