/*
** sqlite3_interrupt() from another thread, at several moments of queries with every kind of source
** and sink. An interrupted query returns soon, and the connection works on.
**
**     interrupts [folder, ignored] [rows] [moments] [part of a label]
**
** Invariants:
** 1. The time from the interrupt to the return of sqlite3_step() is at most LIMIT_MS. Other programs
**    may use the cores meanwhile, so the best of some tries counts. A device asks between launches,
**    and the simulator takes much longer for one than a GPU does, so it has more time.
** 2. Each query is native, and EXPLAIN QUERY PLAN shows the source or sink under test.
** 3. A query that is not stopped in time to fail gives all its rows.
*/
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "../engines.h"
#include "../rows.h"
#include "../tap.h"

enum {
  N_ROWS = TEST_SANITIZED ? 100000 : 500000,
  LIMIT_MS = TEST_SANITIZED ? 1000 : 50,
  LIMIT_SIM_MS = 10 * LIMIT_MS,
  TRIES = 5,
};

static const char *engine;
static bool prints; /* every measured time */

static double limit_ms(void) {
  return strcmp(engine, "sim") ? LIMIT_MS : LIMIT_SIM_MS;
}

typedef struct kind {
  const char *label;
  const char *sql;
  const char *shows; /* what EXPLAIN QUERY PLAN says */
  const char *only;  /* the only engine; NULL: cpu and sim */
} kind;

static const kind kinds[] = {
    {"rows of a scan", "SELECT i, m*2, s FROM t WHERE g<>3", "leaves results: RESULT", NULL},
    {"rows cut by OFFSET", "SELECT i, m FROM t WHERE g<>3 LIMIT 10 OFFSET 400000", "LIMIT", NULL},
    {"one group", "SELECT sum(r*i), min(s), max(x), avg(m) FROM t", "leaves groups", NULL},
    {"few groups", "SELECT g, sum(r), min(s), count(x) FROM t GROUP BY g", "leaves groups", NULL},
    {"many groups", "SELECT m, count(*), sum(r) FROM t GROUP BY m", "leaves groups", NULL},
    {"many groups by hash", "SELECT m*1000003, sum(r) FROM t GROUP BY 1", "leaves groups", NULL},
    {"many groups of text", "SELECT s||'x', count(*) FROM t GROUP BY 1", "leaves groups", "cpu"},
    {"many groups of mixed types", "SELECT x, sum(i) FROM t GROUP BY x", "leaves groups", "cpu"},
    {"groups by row", "SELECT u.s, u.k, sum(r), count(t.x) FROM t JOIN u ON u.k=t.m GROUP BY 1, 2",
     "by row of ", "cpu"},
    {"groups by row, of expressions",
     "SELECT u.s||u.k, u.s, count(*) FROM t JOIN u ON u.k=t.m GROUP BY 1, 2", "by row of ", "cpu"},
    {"count(DISTINCT)", "SELECT count(DISTINCT r), count(DISTINCT s||i) FROM t", "leaves groups",
     "cpu"},
    {"count(DISTINCT) in groups", "SELECT g, count(DISTINCT m*1000003) FROM t GROUP BY g",
     "leaves groups", NULL},
    {"sum(DISTINCT)", "SELECT g, sum(DISTINCT r) FROM t GROUP BY g", "leaves groups", "cpu"},
    {"group_concat()", "SELECT g, group_concat(s,'-') FROM t GROUP BY g", "leaves groups", "cpu"},
    {"group_concat(DISTINCT)", "SELECT length(group_concat(DISTINCT s||i)) FROM t",
     "leaves groups", "cpu"},
    {"distinct rows", "SELECT DISTINCT g, m FROM t ORDER BY r", "leaves distinct rows", NULL},
    {"distinct rows of text", "SELECT DISTINCT s||g, m FROM t ORDER BY r", "leaves distinct rows",
     "cpu"},
    {"groups in another order", "SELECT m, sum(r) FROM t GROUP BY m ORDER BY 2 DESC", "ORDER BY",
     NULL},
    {"groups in the order of text", "SELECT m, max(s) FROM t GROUP BY m ORDER BY 2||'x'",
     "ORDER BY", "cpu"},
    {"joined rows in order", "SELECT t.i, u.v FROM t JOIN u ON u.k=t.i ORDER BY u.v, t.m",
     "ORDER BY", NULL},
    {"joined rows, the first ones",
     "SELECT t.i, u.v FROM t JOIN u ON u.k=t.i ORDER BY u.v, t.i LIMIT 10", "ORDER BY", NULL},
    {"joined rows, the first half",
     "SELECT t.i, u.v FROM t JOIN u ON u.k=t.i ORDER BY u.v, t.i LIMIT 250000", "ORDER BY", NULL},
    {"rows in the order of text", "SELECT i, s||g FROM t ORDER BY 2", "ORDER BY", NULL},
    {"rows in the order of text with equal starts",
     "SELECT i, 'a long start '||s FROM t ORDER BY 2", "ORDER BY", NULL},
    {"row numbers", "SELECT i, s FROM t ORDER BY r DESC, m", "ORDER BY", NULL},
    {"row numbers by two keys", "SELECT i FROM t ORDER BY g, m, r", "ORDER BY", NULL},
    {"row numbers, the first ones", "SELECT i, s FROM t ORDER BY m, r LIMIT 5", "LIMIT", NULL},
    {"row numbers, the first many", "SELECT i FROM t ORDER BY m LIMIT 50000", "LIMIT", NULL},
    {"a lookup by value", "SELECT sum(u.v) FROM t JOIN u ON u.k=t.i", "by value, one row", NULL},
    {"a lookup by value, many rows", "SELECT sum(u.v) FROM t JOIN u ON u.v=t.i",
     "by value, ", NULL},
    {"a lookup by hash", "SELECT sum(u.v) FROM t JOIN u ON u.k*1000003=t.m*1000003",
     "hash, one row", NULL},
    {"a lookup by hash, many rows", "SELECT sum(u.k) FROM t JOIN u ON u.v*1000003=t.m*1000003",
     "hash, ", NULL},
    {"a lookup by text", "SELECT sum(u.v) FROM t JOIN u ON u.s=t.s", "leaves a lookup", NULL},
    {"a lookup by an expression of text", "SELECT sum(u.v) FROM t JOIN u ON u.s||'x'=t.s||'x'",
     "leaves a lookup", "cpu"},
    {"a lookup by mixed types", "SELECT sum(u.v) FROM t JOIN u ON u.x=t.x", "leaves a lookup",
     NULL},
    {"a lookup of all rows", "SELECT count(*) FROM w JOIN u ON u.v<w.i+w.g",
     "leaves a lookup", NULL},
    {"a join that multiplies rows", "SELECT sum(t.i+w.i) FROM t JOIN w ON t.g=w.g", "JOIN", NULL},
    {"rows of a join that multiplies them", "SELECT t.i, w.i FROM t JOIN w ON t.g=w.g", "JOIN",
     NULL},
    {"derived rows",
     "WITH d AS MATERIALIZED (SELECT i, s, m*2 y FROM t) SELECT sum(y), max(s) FROM d WHERE i>9",
     "leaves rows for later", NULL},
    {"derived rows of text",
     "WITH d AS MATERIALIZED (SELECT s||g a, x y FROM t) SELECT max(a), max(y) FROM d",
     "leaves rows for later", "cpu"},
    {"derived groups", "SELECT count(*), sum(c) FROM (SELECT m, count(*) c FROM t GROUP BY m)",
     "leaves rows for later", NULL},
    {"derived rows in order",
     "SELECT count(*), sum(m) FROM (SELECT i, m FROM t ORDER BY r LIMIT 400000)",
     "leaves rows for later", NULL},
    {"UNION ALL", "SELECT sum(i) FROM (SELECT i FROM t UNION ALL SELECT m FROM t)",
     "leaves rows for later", NULL},
    {"UNION", "SELECT i FROM t UNION SELECT m FROM t", "leaves ", NULL},
    {"EXCEPT", "SELECT i FROM t EXCEPT SELECT m FROM t", "leaves ", NULL},
    {"IN (SELECT)", "SELECT count(*) FROM t WHERE m IN (SELECT k FROM u WHERE v<>5)", "leaves a",
     NULL},
    {"NOT IN (SELECT) of text", "SELECT count(*) FROM t WHERE s||'' NOT IN (SELECT s||'y' FROM u)",
     "leaves a", "cpu"},
    {"a scalar subquery", "SELECT i FROM t WHERE r>(SELECT avg(r) FROM t) AND g=2", "leaves groups",
     NULL},
    {"a correlated subquery",
     "SELECT sum((SELECT max(v) FROM u WHERE u.k=t.m)) FROM t", "leaves a lookup", NULL},
    {"unmatched rows", "SELECT count(*), sum(v) FROM t FULL JOIN u ON u.k=t.m+500000", "JOIN",
     NULL},
};

/* A call takes about a millisecond, so that all rows would take a quarter of an hour. slow() is a
** function of the application, which SQLite runs. */
static const char *const slow_queries[] = {
    "SELECT i FROM t WHERE %s<>7",
    "SELECT g, %s FROM t",
    "SELECT %s, count(*) FROM t GROUP BY 1",
    "SELECT i FROM t ORDER BY %s, i",
    "SELECT i FROM t ORDER BY %s, i LIMIT 5",
    "SELECT DISTINCT %s FROM t ORDER BY 1",
    "SELECT g, max(%s), count(DISTINCT %s) FROM t GROUP BY g",
    "SELECT m, %s FROM t GROUP BY m ORDER BY 2",
    "SELECT t.i FROM t JOIN u ON u.k=%s",
    "SELECT t.i, u.k FROM t JOIN u ON u.k=t.m AND %s<>7 ORDER BY u.v",
    "SELECT count(*) FROM u JOIN (SELECT %s y, i FROM t LIMIT 400000) d ON d.i=u.k",
    "SELECT count(*) FROM u WHERE k IN (SELECT %s FROM t)",
    "SELECT i FROM t WHERE i>(SELECT max(%s) FROM t)",
};
static const char *const slow_calls[] = {"length(printf('%2000000d',i))", "slow(i)"};

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void slow(sqlite3_context *c, int n, sqlite3_value **v) {
  (void)n;
  usleep(1000);
  sqlite3_result_value(c, v[0]);
}

/* ---- one run */

typedef struct stopper {
  sqlite3 *db;
  double after_ms;
  atomic_int done;
  double sent; /* when the first interrupt was sent; 0: none was */
} stopper;

static void *stop_it(void *arg) {
  stopper *s = arg;
  usleep((useconds_t)(s->after_ms * 1e3));
  if (!atomic_load(&s->done)) s->sent = now_ms();
  while (!atomic_load(&s->done)) { /* again and again: one may come before the first step */
    sqlite3_interrupt(s->db);
    usleep(1000);
  }
  return NULL;
}

/* What a run gave. late_ms: the time from the interrupt to the end; 0: it ended before. */
typedef struct outcome {
  int rc;
  long n_rows;
  double ms, late_ms;
} outcome;

/* after_ms < 0: no interrupt. The time ends when sqlite3_step() returns. */
static outcome run(sqlite3 *db, const char *sql, double after_ms) {
  outcome o = {0};
  stopper s = {.db = db, .after_ms = after_ms};
  pthread_t thread;
  sqlite3_stmt *stmt = NULL;
  double start = now_ms();
  if (after_ms >= 0) pthread_create(&thread, NULL, stop_it, &s);
  o.rc = warplite_prepare(db, sql, -1, &stmt, NULL);
  while (o.rc == SQLITE_OK || o.rc == SQLITE_ROW) {
    o.rc = sqlite3_step(stmt);
    o.n_rows += o.rc == SQLITE_ROW;
  }
  double end = now_ms();
  atomic_store(&s.done, 1);
  if (after_ms >= 0) pthread_join(thread, NULL);
  o.ms = end - start;
  if (s.sent && end > s.sent) o.late_ms = end - s.sent;
  sqlite3_finalize(stmt);
  return o;
}

/* ---- a query at several moments */

/* The best of some tries at one moment. False after a message. */
static bool at_moment(sqlite3 *db, const char *label, const char *sql, double ms, long n_rows,
                      double *worst) {
  double best = 1e9;
  for (int k = 0; k < TRIES && best > limit_ms(); k++) {
    outcome o = run(db, sql, ms);
    if (o.rc != SQLITE_INTERRUPT && (o.rc != SQLITE_DONE || o.n_rows != n_rows))
      return tap_bad(label, "at %.0f ms: code %d, %ld rows: %s", ms, o.rc, o.n_rows,
                     sqlite3_errmsg(db));
    if (o.late_ms < best) best = o.late_ms;
  }
  if (best > *worst) *worst = best;
  if (best <= limit_ms()) return true;
  return tap_bad(label, "an interrupt at %.0f ms acted only after %.0f ms", ms, best);
}

static bool plan_shows(sqlite3 *db, const char *sql, const char *words) {
  char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
  sqlite3_stmt *s = NULL;
  bool shows = false;
  if (warplite_prepare(db, text, -1, &s, NULL) == SQLITE_OK)
    while (sqlite3_step(s) == SQLITE_ROW)
      shows |= strstr((const char *)sqlite3_column_text(s, 3), words) != NULL;
  sqlite3_finalize(s);
  sqlite3_free(text);
  return shows;
}

static void check_kind(sqlite3 *db, const kind *q, int moments) {
  char label[200];
  snprintf(label, sizeof label, "interrupt [%s]: %s", engine, q->label);
  if (!plan_shows(db, q->sql, q->shows)) { /* this also loads the columns */
    tap_bad(label, "EXPLAIN QUERY PLAN does not show \"%s\": %s", q->shows, q->sql);
    return;
  }
  outcome whole = run(db, q->sql, -1);
  const char *reason = warplite_reason(db);
  if (whole.rc != SQLITE_DONE || !strncmp(reason, "sqlite", 6)) {
    tap_bad(label, "code %d: %s", whole.rc, reason);
    return;
  }
  double worst = 0;
  bool ok = true;
  for (int k = 0; k < moments && ok; k++)
    ok = at_moment(db, label, q->sql, whole.ms * (k + 0.5) / moments, whole.n_rows, &worst);
  if (prints) printf("# %-60s %7.0f ms, late by %5.1f ms\n", label, whole.ms, worst);
  if (ok) tap_ok(label);
}

static void check_slow(sqlite3 *db, const char *call, const char *format) {
  char label[200], *sql = sqlite3_mprintf(format, call, call);
  double worst = 0;
  snprintf(label, sizeof label, "interrupt between slow calls [%s]: %s", engine, sql);
  if (at_moment(db, label, sql, 50, -1, &worst)) tap_ok(label);
  if (prints) printf("# %s: late by %.1f ms\n", label, worst);
  sqlite3_free(sql);
}

static bool make_tables(sqlite3 *db, int n) {
  char *sql = sqlite3_mprintf(
      "CREATE TABLE t(i INTEGER PRIMARY KEY, g INTEGER, m INTEGER, r REAL, s TEXT, x);"
      "CREATE TABLE u(k INTEGER, v INTEGER, s TEXT, x);"
      "CREATE TABLE w(i INTEGER, g INTEGER);"
      "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM n WHERE x<%d)"
      " INSERT INTO t SELECT x, x%%7, x*7919%%%d, (x*31%%%d)/8.0, 'text '||x,"
      " CASE x%%3 WHEN 0 THEN x WHEN 1 THEN 'x'||x ELSE x/4.0 END FROM n;"
      "INSERT INTO u SELECT m, i%%300000, s, x FROM t;"
      "INSERT INTO w SELECT i, g FROM t LIMIT 14;",
      n, n + 3, n + 3);
  bool ok = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
  sqlite3_free(sql);
  return ok;
}

int main(int argc, char **argv) {
  static const char *const engines[] = {"cpu", "sim"};
  int n_rows = argc > 2 ? atoi(argv[2]) : N_ROWS, moments = argc > 3 ? atoi(argv[3]) : 2;
  const char *part = argc > 4 ? argv[4] : "";
  setvbuf(stdout, NULL, _IOLBF, 0);
  prints = argc > 2;
  for (int e = 0; e < 2; e++) {
    sqlite3 *db = NULL;
    engine = engines[e];
    int n = e ? n_rows / 8 : n_rows; /* the simulator is slow */
    if (sqlite3_open(":memory:", &db) || !use_engine(db, engine) || !make_tables(db, n) ||
        !use_setting(db, "threads", "2") || !use_setting(db, "keep", "0") ||
        sqlite3_create_function(db, "slow", 1, SQLITE_UTF8, NULL, slow, NULL, NULL)) {
      tap_bad("interrupts", "set-up: %s", sqlite3_errmsg(db));
      return tap_done();
    }
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
      if (strstr(kinds[k].label, part) && (!kinds[k].only || !strcmp(kinds[k].only, engine)))
        check_kind(db, &kinds[k], moments);
    for (size_t k = 0; k < sizeof slow_queries / sizeof *slow_queries && !*part; k++)
      for (int c = 0; c < 2 - e; c++) check_slow(db, slow_calls[c], slow_queries[k]);
    CHECK("interrupts: the connection closes", sqlite3_close(db) == SQLITE_OK);
  }
  return tap_done();
}
