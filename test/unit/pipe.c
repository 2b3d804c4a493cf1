/*
** A pipeline that starts on one thread (exec/pipe.h): how many threads go on, and that the rows are
** SQLite's where pieces and tablets begin and end, whether the other threads sleep or poll.
*/
#include "../tap.h"
#include "exec/pipe.h"
#include "warplite.h"
#include <sqlite3.h>
#include <unistd.h>

static void test_rule(void) {
  enum { N = 2048, MANY = 1 << 30 };
  CHECK("a short piece says nothing", wl_pipe_threads(16, N, 2e3, false, MANY) == 1);
  CHECK("a first piece opens things", wl_pipe_threads(16, N, 40e3, true, MANY) == 1);
  CHECK("a long first piece counts", wl_pipe_threads(16, N, 60e3, true, MANY) == 16);
  CHECK("no rows left", wl_pipe_threads(16, N, 1e9, false, 0) == 1);
  CHECK("10 us left", wl_pipe_threads(16, N, 10e3, false, N) == 1);
  CHECK("99 us left", wl_pipe_threads(16, 1000, 99e3, false, 1000) == 1);
  CHECK("101 us left", wl_pipe_threads(16, 1000, 101e3, false, 1000) == 2);
  CHECK("half a millisecond left", wl_pipe_threads(16, 1000, 5e3, false, 101000) == 10);
  CHECK("no more threads than there are", wl_pipe_threads(2, 1000, 1e6, false, MANY) == 2);
  CHECK("one thread", wl_pipe_threads(1, 1000, 1e6, false, MANY) == 1);
}

/* All rows of a statement in one number, and how it ends. */
static int digest(sqlite3_stmt *s, unsigned long long *h) {
  int rc;
  *h = 1469598103934665603u;
  while ((rc = sqlite3_step(s)) == SQLITE_ROW)
    for (int c = 0; c < sqlite3_column_count(s); c++) {
      *h = (*h ^ (unsigned)sqlite3_column_type(s, c)) * 1099511628211u;
      const unsigned char *p = sqlite3_column_blob(s, c);
      for (int i = 0; i < sqlite3_column_bytes(s, c); i++) *h = (*h ^ p[i]) * 1099511628211u;
    }
  sqlite3_finalize(s);
  return rc;
}

static bool must(sqlite3 *db, const char *sql) {
  return !sqlite3_exec(db, sql, NULL, NULL, NULL) ||
         tap_bad("pipe", "%s: %s", sql, sqlite3_errmsg(db));
}

static void compare(sqlite3 *db, const char *sql, int n_rows) {
  char name[500];
  for (int asleep = 0; asleep < 2; asleep++) {
    sqlite3_stmt *a = NULL, *b = NULL;
    unsigned long long want = 0, got = 1;
    int rc = sqlite3_prepare_v2(db, sql, -1, &a, NULL);
    if (!rc) rc = digest(a, &want);
    if (asleep) usleep(2000); /* threads poll for a shorter time */
    int rc2 = warplite_prepare(db, sql, -1, &b, NULL);
    if (!rc2) rc2 = digest(b, &got);
    snprintf(name, sizeof name, "%d rows%s: %s", n_rows, asleep ? ", threads asleep" : "", sql);
    CHECK(name, rc == rc2 && want == got);
  }
}

/* The last rows, where something special happens, are at the beginning of the last piece or near
** the end of one. */
static void test_rows(int n_rows) {
  static const char *const texts[] = {
      "SELECT a, b FROM t WHERE a >= %d - 3",
      "SELECT a, b FROM t WHERE c < 3 LIMIT 7 OFFSET 5",
      "SELECT a, b FROM t ORDER BY c, a DESC",
      "SELECT a FROM t WHERE b IS NULL ORDER BY c, a LIMIT 9",
      "SELECT c, count(*), sum(a), min(b), max(b) FROM t GROUP BY c",
      "SELECT count(*), sum(b), group_concat(CASE WHEN a > %d - 3 THEN a END) FROM t",
      "SELECT DISTINCT c FROM t",
      "SELECT x.a, y.a FROM t x JOIN t y ON y.a = x.a + 1 WHERE x.c = 5",
      "SELECT x.a, y.b FROM t x LEFT JOIN t y ON y.a = x.a + 1 AND y.c = 5 WHERE x.c = 4",
      "SELECT abs(CASE WHEN a = %d - 1 THEN -9223372036854775808 ELSE a END) FROM t WHERE c < 9",
  };
  sqlite3 *db = NULL;
  char sql[400];
  sqlite3_open(":memory:", &db);
  snprintf(sql, sizeof sql,
           "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c INTEGER); INSERT INTO t WITH RECURSIVE "
           "n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d - 1) SELECT i, "
           "iif(i %% 11 = 3, NULL, i * 7 %% 1000), i * 37 %% 101 FROM n LIMIT %d",
           n_rows, n_rows);
  bool ok = must(db, sql) && !warplite_enable(db) &&
            must(db, "SELECT warplite_set('engine', 'cpu'), warplite_set('route', 'always'), "
                     "warplite_set('threads', 4)");
  for (size_t k = 0; ok && k < sizeof texts / sizeof *texts; k++) {
    snprintf(sql, sizeof sql, texts[k], n_rows);
    compare(db, sql, n_rows);
  }
  sqlite3_close(db);
}

int main(void) {
  static const int sizes[] = {0,
                              1,
                              2048,
                              2049,
                              65536,
                              65537,
                              65536 + 2048,
                              65536 + 6145,
                              131072,
                              131073,
                              3 * 65536 + 30721};
  test_rule();
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    if (!TEST_SANITIZED || k % 2) test_rows(sizes[k]);
  return tap_done();
}
