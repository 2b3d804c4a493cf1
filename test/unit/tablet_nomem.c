/*
** Memory that runs out while columns of a tablet table are loaded, or while few rows are updated.
** The result is an error or SQLite's answer, never a wrong one, and nothing is lost.
*/
#include "../engines.h"
#include "../tap.h"
#include "base/mem.h"

static sqlite3 *db;

static void run(const char *sql) {
  char *msg = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &msg)) tap_bad("tablet nomem", "%s: %s", sql, msg);
  sqlite3_free(msg);
}

static int ask(const char *sql, sqlite3_int64 *out) {
  sqlite3_stmt *s = NULL;
  int rc = warplite_prepare(db, sql, -1, &s, NULL);
  if (!rc) rc = sqlite3_step(s);
  if (rc == SQLITE_ROW) *out = sqlite3_column_int64(s, 0);
  sqlite3_finalize(s);
  return rc;
}

/* Memory runs out while an UPDATE makes patches, and while they are applied to columns in memory.
 */
static void patch_rows(void) {
  static const char *const sums =
      "SELECT sum(a) + count(a) * 3 + count(b) + sum(length(c)) + total(b) FROM t";
  static const char *const update =
      "UPDATE t SET a = a + 100000, b = NULL, c = 'w3' WHERE id % 700 = 3";
  sqlite3_int64 before = -1, after = -1, unused;
  int wrong = 0, failed = 0, more = 1;
  run("BEGIN");
  ask(sums, &before);
  ask(update, &unused);
  ask(sums, &after);
  run("ROLLBACK");
  for (long n = 1; more && n < 3000; n += 1 + n / 20) {
    sqlite3_int64 got = -2;
    run("BEGIN");
    ask(sums, &got); /* the columns are in memory */
    wrong += got != before;
    wl_mem_fail_after(n + 1);
    int rc = ask(update, &unused);
    more = wl_mem_fail_after(0);
    failed += rc != SQLITE_DONE;
    ask(sums, &got);
    wrong += got != (rc == SQLITE_DONE ? after : before);
    if (sqlite3_get_autocommit(db)) run("BEGIN"); /* SQLite has ended the transaction */
    if (rc != SQLITE_DONE) ask(update, &unused);
    wl_mem_fail_after(n + 1);
    rc = ask(sums, &got);
    more |= wl_mem_fail_after(0);
    wrong += rc == SQLITE_ROW && got != after;
    ask(sums, &got); /* SQLite may have rolled back */
    wrong += got != (sqlite3_get_autocommit(db) ? before : after);
    if (!sqlite3_get_autocommit(db)) run("ROLLBACK");
  }
  if (wrong || before == after || !failed)
    tap_bad("tablet nomem: patches", "%d of the answers are wrong, %d errors", wrong, failed);
  else
    tap_ok("tablet nomem: patches");
}

int main(void) {
  static const char *const sql[] = {
      "SELECT sum(a) + count(b) + sum(length(c)) + count(d) FROM t",
      "SELECT count(*) FROM t x, t y WHERE x.a = y.id AND x.c = 'w3'",
  };
  static const char *const changes[] = {
      "UPDATE t SET a = 7, c = 'brand new' WHERE id = 70",
      "DELETE FROM t WHERE id % 5 = 0",
      "INSERT INTO t(t) VALUES('fold')",
  };
  sqlite3_open(":memory:", &db);
  if (!use_engine(db, "cpu")) return 2;
  run("CREATE VIRTUAL TABLE t USING tablet(id INTEGER PRIMARY KEY, a INTEGER, b REAL, c TEXT, d)");
  run("INSERT INTO t WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<70000) "
      "SELECT i, i*7%70000, i*0.5, 'w'||(i%9), CASE i%3 WHEN 0 THEN i WHEN 1 THEN 'x' END FROM n");
  run("INSERT INTO t(t) VALUES('fold')");
  patch_rows();
  for (int c = -1; c < 3; c++) {
    if (c >= 0) run(changes[c]);
    for (int q = 0; q < 2; q++) {
      sqlite3_int64 want = -1, got;
      int wrong = 0, failed = 0, rc = ask(sql[q], &want);
      long n = 1;
      for (int more = 1; more && n < 3000; n += 1 + n / 20) {
        run("SELECT warplite_unload('t')");
        got = -2;
        wl_mem_fail_after(n + 1);
        rc = ask(sql[q], &got);
        more = wl_mem_fail_after(0);
        failed += rc != SQLITE_ROW;
        wrong += rc == SQLITE_ROW ? got != want : rc != SQLITE_NOMEM;
      }
      char name[100];
      snprintf(name, sizeof name, "tablet nomem: change %d query %d", c, q);
      if (wrong || want < 0 || !failed)
        tap_bad(name, "%d of the answers are wrong, %d errors, %lld rows", wrong, failed,
                (long long)want);
      else
        tap_ok(name);
    }
  }
  if (sqlite3_close(db) != SQLITE_OK) tap_bad("tablet nomem", "the connection does not close");
  return tap_done();
}
