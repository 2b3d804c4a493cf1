/*
** Copies of a tablet table's columns on a device follow its changes: only what has changed is
** sent, and the results are SQLite's, after writes, rollbacks and growth.
*/
#include "../engines.h"
#include "../tap.h"
#include "exec/gpu/device.h"

static sqlite3 *db;

static void run(const char *sql) {
  char *msg = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &msg)) tap_bad("tablet device", "%s: %s", sql, msg);
  sqlite3_free(msg);
}

static sqlite3_int64
ask(int (*prepare)(sqlite3 *, const char *, int, sqlite3_stmt **, const char **), const char *sql) {
  sqlite3_stmt *s = NULL;
  sqlite3_int64 n = -1;
  if (prepare(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
    n = sqlite3_column_int64(s, 0);
  sqlite3_finalize(s);
  return n;
}

/* The device must answer as SQLite does, and may be sent so many bytes for it. */
static void check(const char *what, wl_device *d, long long most) {
  static const char *const sql = "SELECT sum(a) + count(b) * 7 + sum(b) FROM t";
  wl_i64 before = d->n_in;
  sqlite3_int64 ours = ask(warplite_prepare, sql);
  char reason[300];
  snprintf(reason, sizeof reason, "%s", warplite_reason(db));
  wl_i64 sent = d->n_in - before;
  sqlite3_int64 theirs = ask(sqlite3_prepare_v2, sql);
  if (ours != theirs)
    tap_bad(what, "it gives %lld, SQLite %lld", (long long)ours, (long long)theirs);
  else if (strncmp(reason, "gpu:", 4) != 0)
    tap_bad(what, "%s", reason);
  else if (sent > most)
    tap_bad(what, "%lld bytes were sent, not %lld at most", (long long)sent, most);
  else
    tap_ok(what);
}

int main(void) {
  wl_error err = {0};
  enum { TABLET = 65536 * (4 + 2) + 65536 / 8, SMALL = 100000 };
  sqlite3_open(":memory:", &db);
  if (!use_engine(db, "sim")) return 2;
  wl_device *d = wl_device_get("sim", &err);
  run("CREATE VIRTUAL TABLE t USING tablet(id INTEGER PRIMARY KEY, a INTEGER, b INTEGER)");
  run("INSERT INTO t WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<393216) "
      "SELECT i, i*1000, CASE WHEN i%3 THEN i%30000 END FROM n");
  run("INSERT INTO t(t) VALUES('optimize')");
  check("tablet device: all of it", d, 6 * TABLET + SMALL);
  check("tablet device: nothing new", d, SMALL);
  run("UPDATE t SET a = 5 WHERE id = 70000");
  check("tablet device: a row of the delta", d, TABLET + SMALL);
  run("INSERT INTO t(t) VALUES('fold')");
  check("tablet device: folded", d, TABLET + SMALL);
  run("BEGIN");
  run("UPDATE t SET b = NULL WHERE id BETWEEN 10 AND 20");
  check("tablet device: inside a transaction", d, TABLET + SMALL);
  run("ROLLBACK");
  check("tablet device: rolled back", d, TABLET + SMALL);
  run("INSERT INTO t SELECT id + 1000000, a, b FROM t WHERE id <= 1000");
  check("tablet device: grown", d, 2 * TABLET + SMALL);
  run("INSERT INTO t SELECT id + 2000000, a, b FROM t WHERE id <= 1000");
  check("tablet device: grown again", d, 2 * TABLET + SMALL);
  run("DELETE FROM t WHERE id = 300000");
  run("INSERT INTO t(t) VALUES('fold')");
  check("tablet device: a dead row", d, 2 * TABLET + 8 * 65536 + SMALL); /* and which are dead */
  sqlite3_close(db);
  return tap_done();
}
