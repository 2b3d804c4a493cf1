/*
** Sorts, groups and sets on any number of threads: the rows are SQLite's, in SQLite's order, for
** texts of many kinds, few and many groups, skewed keys, and with little memory. SQLite is asked on
** the same connection.
*/
#include "../engines.h"
#include "../rng.h"
#include "../tap.h"
#include <stdlib.h>

static void must(sqlite3 *db, const char *sql) {
  char *why = NULL;
  if (!sqlite3_exec(db, sql, NULL, NULL, &why)) return;
  printf("not ok parallel: %s - %s\n", sql, why);
  exit(1);
}

/* Everything a statement gives, folded into one number with types and order. */
static uint64_t digest(sqlite3_stmt *s, int64_t *n_rows, int *rc) {
  uint64_t h = 1469598103934665603u;
  *n_rows = 0;
  while ((*rc = sqlite3_step(s)) == SQLITE_ROW) {
    ++*n_rows;
    for (int c = 0; c < sqlite3_column_count(s); c++) {
      h = (h ^ (unsigned)sqlite3_column_type(s, c)) * 1099511628211u;
      const unsigned char *p = sqlite3_column_blob(s, c);
      for (int i = 0; i < sqlite3_column_bytes(s, c); i++) h = (h ^ p[i]) * 1099511628211u;
    }
  }
  sqlite3_finalize(s);
  return h;
}

/* ---- the table */

static const char *const kinds[] = {"random",    "shared start", "all equal", "two values",
                                    "ascending", "descending",   "with NULs", "mostly NULL"};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Binds a text of a kind. start: bytes that all share. */
static void bind_text(sqlite3_stmt *s, int at, rng *r, int kind, int start, int64_t i, int64_t n) {
  static const char letters[] = {'a', 'b', 'B', 'A', ' ', 'z', '_', '\0'};
  char text[128];
  int len = 0;
  if (rng_chance(r, kind == 7 ? 60 : kind == 2 ? 0 : 3)) {
    sqlite3_bind_null(s, at);
    return;
  }
  while (len < start) text[len] = "A shared Start of texts "[len % 24], len++;
  if (kind == 3) {
    text[len++] = rng_chance(r, 50) ? 'x' : 'y';
  } else if (kind == 4 || kind == 5) {
    len += snprintf(text + len, 20, "%08lld", (long long)(kind == 4 ? i : n - i));
  } else if (kind != 2) {
    for (int more = rng_below(r, 24); more > 0; more--)
      text[len++] = letters[rng_below(r, kind == 6 ? 8 : 7)];
  }
  sqlite3_bind_text(s, at, text, len, SQLITE_TRANSIENT);
}

/* k is unique in half of the rows and one value in the others. */
static void fill(sqlite3 *db, int kind, int start, int64_t n) {
  rng r = {.s = (uint64_t)(n * 31 + kind)};
  sqlite3_stmt *s = NULL;
  must(db, "DROP TABLE IF EXISTS t; CREATE TABLE t(id INTEGER PRIMARY KEY, s TEXT, "
           "c TEXT COLLATE NOCASE, k INT, g INT, r REAL, m); BEGIN");
  sqlite3_prepare_v2(db, "INSERT INTO t VALUES(?,?,?,?,?,?,?)", -1, &s, NULL);
  for (int64_t i = 0; i < n; i++) {
    sqlite3_bind_int64(s, 1, i + 1);
    bind_text(s, 2, &r, kind, start, i, n);
    bind_text(s, 3, &r, kind, start, i, n);
    sqlite3_bind_int64(s, 4, rng_chance(&r, 50) ? 7 : i % 150000);
    if (rng_chance(&r, 5))
      sqlite3_bind_null(s, 5);
    else
      sqlite3_bind_int64(s, 5, rng_below(&r, 5));
    sqlite3_bind_double(s, 6, rng_chance(&r, 1) ? -0.0 : rng_below(&r, 1 << 30) / 1024.0);
    if (rng_chance(&r, 30))
      sqlite3_bind_int64(s, 7, rng_below(&r, 100));
    else if (rng_chance(&r, 30))
      sqlite3_bind_double(s, 7, rng_below(&r, 100) / 2.0);
    else
      bind_text(s, 7, &r, kind, start, i, n);
    sqlite3_step(s);
    sqlite3_reset(s);
  }
  sqlite3_finalize(s);
  must(db, "COMMIT");
}

static const char *const queries[] = {
    "SELECT id, s FROM t ORDER BY s",
    "SELECT id, s FROM t ORDER BY s DESC NULLS LAST",
    "SELECT id, c FROM t ORDER BY c, g DESC",
    "SELECT s FROM t ORDER BY s COLLATE NOCASE DESC, c COLLATE BINARY",
    "SELECT id FROM t WHERE g > 1 ORDER BY s COLLATE RTRIM, id DESC",
    "SELECT id, g FROM t ORDER BY g NULLS LAST, s, c",
    "SELECT id, s FROM t ORDER BY s DESC LIMIT 20 OFFSET 3",
    "SELECT id, c FROM t WHERE g < 4 ORDER BY c LIMIT 7",
    "SELECT id, m FROM t ORDER BY m",
    "SELECT id, r FROM t ORDER BY r DESC, g",
    "SELECT a.id, b.s FROM t a JOIN t b ON b.id = a.id ORDER BY b.s, a.r",
    "SELECT a.id, b.s FROM t a JOIN t b ON b.id = a.id ORDER BY b.s DESC, a.id LIMIT 9 OFFSET 2",
    "SELECT s || 'x' FROM t ORDER BY s || 'x', id",
    "SELECT s, count(*) FROM t GROUP BY s",
    "SELECT c, g, count(*), sum(k) FROM t GROUP BY c, g",
    "SELECT DISTINCT s, g FROM t",
    "SELECT DISTINCT max(g), count(*) FROM t GROUP BY id % 50000",
    "SELECT DISTINCT s, count(*) FROM t GROUP BY s, g, k",
    "SELECT count(DISTINCT r), count(DISTINCT k), count(DISTINCT s), count(DISTINCT id * 3) FROM t",
    "SELECT g, count(DISTINCT r), total(DISTINCT k) FROM t GROUP BY g",
    "SELECT count(DISTINCT id * 1099511627776) FROM t",
    "SELECT k, count(*), sum(g), min(r), max(r), total(r), count(g) FROM t GROUP BY k",
    "SELECT k, id, max(g), sum(id * 3) FROM t WHERE g > 0 GROUP BY k",
    "SELECT k, min(r), id FROM t GROUP BY k HAVING count(*) > 0 ORDER BY 2, 1 LIMIT 50",
    "SELECT sum(DISTINCT r), avg(DISTINCT r), sum(DISTINCT k) FROM t",
};
enum { QUERIES = sizeof queries / sizeof *queries };

/* Runs a query. engine: what must run it; NULL: anything may. */
static void one(sqlite3 *db, const char *label, int q, const char *engine, uint64_t want,
                int64_t n_want) {
  char name[500];
  sqlite3_stmt *s = NULL;
  int64_t n = -1;
  int rc = warplite_prepare(db, queries[q], -1, &s, NULL), rc1 = 0;
  uint64_t h = digest(s, &n, &rc1);
  const char *why = warplite_reason(db);
  snprintf(name, sizeof name, "parallel: %s: %s", label, queries[q]);
  if (rc || rc1 != SQLITE_DONE || h != want || n != n_want)
    tap_bad(name, "%d, %d, %lld rows against %lld (%s)", rc, rc1, (long long)n, (long long)n_want,
            why);
  else if (engine && strncmp(why, engine, strlen(engine)) != 0)
    tap_bad(name, "%s", why);
  else
    tap_ok(name);
}

static void test_table(sqlite3 *db, int kind, int start, int64_t n) {
  static const char *const threads[] = {"1", "2", "3", "16"};
  static const char *const budgets[] = {"", "60000000", "20000000"};
  fill(db, kind, start, n);
  for (int q = 0; q < QUERIES; q++) {
    sqlite3_stmt *s = NULL;
    int64_t n_want;
    int rc;
    char label[200];
    sqlite3_prepare_v2(db, queries[q], -1, &s, NULL);
    uint64_t want = digest(s, &n_want, &rc);
    use_engine(db, "cpu");
    for (int t = 0; t < 4; t++) {
      if (n > 65537 && t != 3) continue;
      use_setting(db, "threads", threads[t]);
      snprintf(label, sizeof label, "%lld rows, %s, %s threads", (long long)n, kinds[kind],
               threads[t]);
      one(db, label, q, "cpu:", want, n_want);
    }
    for (int b = 1; b < 3 && n > 65537; b++) {
      use_setting(db, "host_budget", budgets[b]);
      snprintf(label, sizeof label, "%lld rows, %s, 16 threads, host_budget %s", (long long)n,
               kinds[kind], budgets[b]);
      one(db, label, q, NULL, want, n_want);
    }
    use_setting(db, "host_budget", "2000000000");
    if (n > 2000) continue;
    use_engine(db, "sim");
    snprintf(label, sizeof label, "%lld rows, %s, sim", (long long)n, kinds[kind]);
    one(db, label, q, NULL, want, n_want);
  }
}

/* Integer sums of distinct values overflow, or not, by the order of the rows. */
static void test_overflow(sqlite3 *db) {
  static const char *const orders[] = {"id", "-id", "id % 2, id"};
  must(db,
       "DROP TABLE IF EXISTS b; CREATE TABLE b(id INTEGER PRIMARY KEY, x INT); INSERT INTO b "
       "VALUES(1, 9223372036854775800), (2, -100), (3, 50), (4, 60), (5, -9223372036854775807)");
  for (int k = 0; k < 3; k++) {
    char sql[300], name[100];
    int rc[2];
    int64_t n;
    uint64_t h[2];
    snprintf(sql, sizeof sql,
             "DROP TABLE IF EXISTS o; CREATE TABLE o AS SELECT x FROM b ORDER BY %s", orders[k]);
    must(db, sql);
    for (int side = 0; side < 2; side++) {
      sqlite3_stmt *s = NULL;
      use_setting(db, "engine", side ? "cpu" : "sqlite");
      if (side)
        warplite_prepare(db, "SELECT sum(DISTINCT x) FROM o", -1, &s, NULL);
      else
        sqlite3_prepare_v2(db, "SELECT sum(DISTINCT x) FROM o", -1, &s, NULL);
      h[side] = digest(s, &n, &rc[side]);
    }
    snprintf(name, sizeof name, "parallel: sum(DISTINCT) that may overflow, ordered by %s",
             orders[k]);
    if (rc[0] == rc[1] && h[0] == h[1])
      tap_ok(name);
    else
      tap_bad(name, "code %d, not %d", rc[1], rc[0]);
  }
}

int main(void) {
  sqlite3 *db = NULL;
  if (sqlite3_open("parallel.db", &db) || !use_engine(db, "cpu")) return 1;
  must(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF");
  test_table(db, 0, 0, 0);
  test_table(db, 0, 3, 1);
  for (int kind = 0; kind < KINDS; kind++) test_table(db, kind, kind * 6 % 41, 1025);
  test_table(db, 1, 40, 65537);
  if (!TEST_SANITIZED) test_table(db, 0, 30, 300000);
  test_overflow(db);
  sqlite3_close(db);
  return tap_done();
}
