/*
** LIMIT without ORDER BY over joins and subqueries: EXPLAIN QUERY PLAN says which engine will run
** the statement and warns where SQLite will take long, and that is what then happens.
*/
#include "../engines.h"
#include "../rows.h"
#include "../tap.h"

static sqlite3 *db;
static rows got, want;

static void check_cuts(void) {
  static const struct {
    const char *sql, *engine;
    bool slow; /* SQLite's estimated time is told */
  } cases[] = {
      {"SELECT a FROM far f WHERE b=(SELECT max(b) FROM far WHERE a=f.a) LIMIT 2", "", false},
      {"SELECT f.a FROM far f, far g WHERE f.b+g.b>1 LIMIT 2", "sqlite:", true},
      {"SELECT a FROM (SELECT f.a FROM t f, t g LIMIT 2)", "sqlite:", false},
      {"SELECT 3 WHERE 3 IN (SELECT a FROM t) LIMIT 2", "", false},
      {"SELECT (SELECT count(*) FROM far), EXISTS (SELECT 1 FROM t WHERE a>4) LIMIT 1", "", false},
      {"SELECT (SELECT f.a FROM far f, far g LIMIT 1)", "sqlite:", true},
      {"SELECT a FROM t WHERE a IN (SELECT f.a FROM far f, far g LIMIT 2)", "sqlite:", true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char first[600], *plan = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", cases[i].sql);
    rows_query(&got, db, warplite_prepare, plan);
    sqlite3_free(plan);
    snprintf(first, sizeof first, "%s", got.n_rows ? got.bytes + got.cells[3].u.off : got.err);
    rows_query(&got, db, warplite_prepare, cases[i].sql);
    rows_query(&want, db, sqlite3_prepare_v2, cases[i].sql);
    const char *reason = warplite_reason(db);
    char why[900];
    size_t n = strlen(cases[i].engine);
    bool sqlite = !strncmp(reason, "sqlite:", 7); /* "": warplite itself */
    if (n ? strncmp(first, cases[i].engine, n) || !sqlite : sqlite || !strncmp(first, "sqlite:", 7))
      tap_bad(cases[i].sql, "EXPLAIN says %s, it is %s", first, reason);
    else if (cases[i].slow != (strstr(first, "SQLite is estimated to take") != NULL))
      tap_bad(cases[i].sql, "EXPLAIN says %s", first);
    else if (!rows_same(&got, &want, false, why, sizeof why))
      tap_bad(cases[i].sql, "%s", why);
    else
      tap_ok(cases[i].sql);
  }
}

int main(void) {
  static const char *const engines[] = {"cpu", "sim"};
  for (int e = 0; e < 2; e++) {
    if (sqlite3_open(":memory:", &db) || !use_engine(db, engines[e]) ||
        sqlite3_exec(db,
                     "CREATE TABLE t(a INTEGER); INSERT INTO t VALUES(1),(2),(3),(4),(5);"
                     "CREATE TABLE far(a INTEGER, b INTEGER);"
                     "INSERT INTO far WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c "
                     "WHERE n<100000) SELECT n, n%7 FROM c",
                     NULL, NULL, NULL)) {
      tap_bad("cuts", "set-up: %s", sqlite3_errmsg(db));
      return tap_done();
    }
    check_cuts();
    CHECK("cuts: closes", sqlite3_close(db) == SQLITE_OK);
  }
  rows_free(&got);
  rows_free(&want);
  return tap_done();
}
