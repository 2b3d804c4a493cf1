/*
** How the running SQLite answers where versions differ; see quirks.h.
*/
#include "base/quirks.h"
#include "base/sqlite.h"
#include <pthread.h>
#include <string.h>

int wl_quirks_ask(sqlite3 *db, const char *sql) {
  sqlite3_stmt *q = NULL;
  int n = 0;
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
    n = sqlite3_column_int(q, 0);
  sqlite3_finalize(q);
  return n;
}

/* The number of digits with which printf gives the same texts as CAST. */
static int find_digits(sqlite3 *db) {
  enum { LEAST = 15, MOST = 17 };
  int digits = LEAST;
  for (; digits < MOST; digits++) {
    char sql[300];
    sqlite3_snprintf(
        (int)sizeof sql, sql,
        "SELECT sum(CAST(x AS TEXT) <> printf('%%!.%dg', x)) = 0 FROM (SELECT 0.1+0.2 AS "
        "x UNION ALL SELECT 1.0/3 UNION ALL SELECT 9007199254740992.0 UNION ALL "
        "SELECT 1e22 UNION ALL SELECT -2.5e-8)",
        digits);
    if (wl_quirks_ask(db, sql)) break;
  }
  return digits;
}

static wl_quirks quirks = {.real_digits = 15};

static void find(void) {
  sqlite3 *db = NULL;
  if (sqlite3_open_v2(":memory:", &db,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      NULL) == 0) {
    quirks.real_digits = find_digits(db);
    quirks.between_collates =
        wl_quirks_ask(db, "SELECT CASE WHEN 1 BETWEEN 0 AND (9 COLLATE NOCASE) THEN 'a' END = 'A'");
    sqlite3_exec(db,
                 "CREATE TABLE l(x TEXT COLLATE NOCASE); CREATE TABLE r(x TEXT COLLATE NOCASE);"
                 "INSERT INTO l VALUES('q')",
                 NULL, NULL, NULL);
    quirks.in_parentheses = wl_quirks_ask(db, "SELECT 2 IN ((SELECT 1 UNION ALL SELECT 2))");
    quirks.compound_affinity =
        wl_quirks_ask(db, "SELECT x = '2' FROM (SELECT 2 AS x UNION ALL SELECT CAST('3' AS INT))");
    quirks.with_taken_in = wl_quirks_ask(db, "WITH w AS (SELECT 1 AS f, x FROM l WHERE x = 'none') "
                                             "SELECT f, count(*), (SELECT count(*) FROM w) FROM w");
    quirks.using_as_column = wl_quirks_ask(db, "SELECT x = 'Q' FROM l FULL JOIN r USING(x)");
  }
  sqlite3_close(db);
}

wl_quirks wl_quirks_get(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find);
  return quirks;
}
