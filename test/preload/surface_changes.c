/*
** What happens to a statement that is being read when the connection writes, rolls back, changes
** the schema, detaches, vacuums or closes.
*/
#include "surface.h"
#include <stdio.h>
#include <string.h>

static const char reading[] = "SELECT id, a, c FROM t WHERE b > 0";

/* Starts to read, does something, reads on. */
static void while_reading(sqlite3 *db, const char *query, const char *sql) {
  title("while reading %s: %s", query, sql);
  sqlite3_stmt *s = prepare(db, query);
  rows(db, s, 3, 1);
  state(db, s);
  char *message = NULL;
  int rc = sqlite3_exec(db, sql, NULL, NULL, &message);
  code(db, "exec", rc);
  say("message %s", message ? message : "(null)");
  sqlite3_free(message);
  state(db, s);
  row(s, 0);
  rows(db, s, 3, 2);
  about(s);
  code(db, "reset", sqlite3_reset(s));
  state(db, s);
  rows(db, s, 2, 3);
  done(db, s);
  if (!sqlite3_get_autocommit(db)) run(db, "ROLLBACK");
}

static void writes(sqlite3 *db) {
  static const char *const sql[] = {"INSERT INTO k VALUES(5000, 'new')",
                                    "UPDATE k SET name = name || '!'",
                                    "DELETE FROM k WHERE id = 5000",
                                    "CREATE TABLE fresh(x)",
                                    "DROP TABLE fresh",
                                    "DROP TABLE w",
                                    "CREATE INDEX ta ON t(a)",
                                    "DROP INDEX ta",
                                    "ALTER TABLE k RENAME TO k2",
                                    "ALTER TABLE k2 RENAME TO k",
                                    "ALTER TABLE t ADD COLUMN e DEFAULT 5",
                                    "ALTER TABLE t DROP COLUMN e",
                                    "VACUUM",
                                    "ANALYZE",
                                    "REINDEX",
                                    "PRAGMA wal_checkpoint(truncate)",
                                    "PRAGMA journal_mode=off",
                                    "PRAGMA journal_mode=wal",
                                    "PRAGMA journal_mode=delete",
                                    "PRAGMA user_version=5",
                                    "PRAGMA integrity_check",
                                    "BEGIN; INSERT INTO k VALUES(6000,'x'); ROLLBACK",
                                    "BEGIN; CREATE TABLE fresh(x); ROLLBACK",
                                    "BEGIN; COMMIT",
                                    "BEGIN IMMEDIATE; UPDATE k SET name=name; COMMIT",
                                    "SAVEPOINT p; UPDATE k SET name='y'; ROLLBACK TO p; RELEASE p",
                                    "SAVEPOINT p; CREATE TABLE fresh(x); ROLLBACK TO p; RELEASE p",
                                    "BEGIN; DROP TABLE k; ROLLBACK",
                                    "SELECT count(*) FROM t",
                                    NULL};
  static const char *const from[] = {reading, "SELECT a, count(*) FROM t GROUP BY a ORDER BY 2, 1",
                                     "SELECT sum(b) FROM t", NULL};
  for (int q = 0; from[q]; q++)
    for (int i = 0; sql[i]; i++) while_reading(db, from[q], sql[i]);
  run(db, surface_wal ? "PRAGMA journal_mode=wal" : "PRAGMA journal_mode=delete");
}

/* A transaction around the reading. */
static void transactions(sqlite3 *db) {
  for (int way = 0; way < 6; way++) {
    title("transaction %d", way);
    run(db, "BEGIN");
    sqlite3_stmt *s = prepare(db, reading);
    if (way % 2) run(db, "UPDATE t SET a = a + 1 WHERE id < 50");
    rows(db, s, 3, 0);
    if (way == 2) run(db, "UPDATE k SET name = 'z' WHERE id = 1");
    if (way == 4) run(db, "CREATE TABLE fresh(x)");
    rows(db, s, 2, 0);
    state(db, s);
    code(db, "end", sqlite3_exec(db, way < 2 ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL));
    state(db, s);
    rows(db, s, 3, 0);
    state(db, s);
    code(db, "reset", sqlite3_reset(s));
    state(db, s);
    rows(db, s, 2, 0);
    done(db, s);
  }
}

/* The schema changes between two executions of a statement. */
static void between(sqlite3 *db) {
  static const char *const sql[] = {"ALTER TABLE x ADD COLUMN more TEXT DEFAULT 'm'",
                                    "ALTER TABLE x RENAME COLUMN b TO renamed",
                                    "CREATE INDEX xa ON x(a)",
                                    "ANALYZE",
                                    "DROP TABLE x; CREATE TABLE x(only)",
                                    "INSERT INTO x VALUES(1),(2.5),('three')",
                                    "DROP TABLE x",
                                    "CREATE VIEW x AS SELECT id, a FROM t WHERE id < 4",
                                    "DROP VIEW x; CREATE TABLE x AS SELECT * FROM any",
                                    "CREATE TEMP TABLE x AS SELECT 'temp' AS here",
                                    "DROP TABLE temp.x",
                                    NULL};
  title("between executions");
  run(db, "CREATE TABLE x(a, b); INSERT INTO x SELECT id, c FROM t WHERE id < 6");
  sqlite3_stmt *s = prepare(db, "SELECT * FROM x");
  sqlite3_stmt *n = prepare(db, "SELECT count(*), max(rowid) FROM x WHERE rowid > ?");
  sqlite3_bind_int(n, 1, 1);
  rows(db, s, 4, 0);
  rows(db, n, 2, 0);
  for (int i = 0; sql[i]; i++) {
    say("change: %s", sql[i]);
    sqlite3_reset(s);
    sqlite3_reset(n);
    run(db, sql[i]);
    rows(db, s, 9, 0);
    about(s);
    code(db, "reset", sqlite3_reset(s));
    rows(db, n, 9, 0);
    about(n);
    code(db, "reset", sqlite3_reset(n));
  }
  done(db, s);
  done(db, n);
  run(db, "DROP TABLE x");
}

/* SQLite prepares a statement again inside its own step: a pattern that is bound decides about the
** index, and like() is replaced by the pragma, so that SQLite runs it. */
static void inside_step(sqlite3 *db) {
  static const char *const patterns[] = {"abc%", "x%", "%d", "abc%", NULL};
  title("prepared again inside a step");
  run(db, "CREATE TABLE y(x TEXT); INSERT INTO y VALUES('abc'),('abcd'),('xyz'),('ABC'),('')");
  for (int sensitive = 0; sensitive < 2; sensitive++) {
    run(db, sensitive ? "PRAGMA case_sensitive_like=on; CREATE INDEX yx ON y(x)"
                      : "PRAGMA case_sensitive_like=off");
    sqlite3_stmt *s = prepare(db, "SELECT x FROM y WHERE x LIKE ?1 ORDER BY 1");
    for (int i = 0; patterns[i]; i++) {
      sqlite3_bind_text(s, 1, patterns[i], -1, SQLITE_STATIC);
      rows(db, s, 9, 0);
      code(db, "reset", sqlite3_reset(s));
    }
    done(db, s);
  }
  run(db, "PRAGMA case_sensitive_like=off; DROP TABLE y");
}

static void closing(void) {
  title("close with statements");
  sqlite3 *db = surface_open("changes.db");
  sqlite3_stmt *s = prepare(db, reading), *u = prepare(db, "SELECT sum(a) FROM t");
  rows(db, s, 2, 0);
  code(db, "close", sqlite3_close(db));
  rows(db, s, 2, 0);
  rows(db, u, 1, 0);
  code(db, "close", sqlite3_close(db));
  code(db, "reset", sqlite3_reset(s));
  code(db, "close", sqlite3_close(db));
  rows(db, s, 2, 0);
  say("close_v2 %d", sqlite3_close_v2(db));
  for (int k = 0; k < 3; k++) {
    say("step %d", sqlite3_step(s));
    row(s, k);
  }
  say("reset %d", sqlite3_reset(s));
  say("step %d", sqlite3_step(s));
  row(s, 0);
  say("finalize %d", sqlite3_finalize(u));
  say("step %d", sqlite3_step(s));
  say("finalize %d", sqlite3_finalize(s));

  db = surface_open("changes.db");
  s = prepare(db, "SELECT count(*) FROM t");
  say("close_v2 %d", sqlite3_close_v2(db));
  say("step %d", sqlite3_step(s));
  row(s, 0);
  say("step %d", sqlite3_step(s));
  say("finalize %d", sqlite3_finalize(s));
  db = surface_open("changes.db");
  code(db, "close", sqlite3_close(db));
}

/* Other users of the file. */
static void two_connections(void) {
  sqlite3 *a = surface_open("changes.db"), *b = surface_open("changes.db");
  title("two connections");
  sqlite3_stmt *s = prepare(a, reading), *n = prepare(a, "SELECT sum(a), count(*) FROM t");
  rows(a, n, 1, 0);
  rows(a, s, 2, 0);
  code(b, "write", sqlite3_exec(b, "UPDATE t SET a = a + 1", NULL, NULL, NULL));
  rows(a, s, 2, 0);
  state(a, s);
  code(a, "reset", sqlite3_reset(n));
  rows(a, n, 1, 0);
  code(a, "upgrade", sqlite3_exec(a, "UPDATE k SET name = 'u' WHERE id = 3", NULL, NULL, NULL));
  code(a, "reset", sqlite3_reset(n));
  code(a, "reset", sqlite3_reset(s));
  code(a, "write", sqlite3_exec(a, "UPDATE k SET name = 'u' WHERE id = 3", NULL, NULL, NULL));
  rows(a, n, 1, 0);
  rows(a, s, 2, 0);
  run(b, "CREATE TABLE IF NOT EXISTS other(x)");
  sqlite3_reset(n);
  sqlite3_reset(s);
  rows(a, n, 1, 0);
  rows(a, s, 2, 0);
  sqlite3_reset(n);
  sqlite3_reset(s);
  run(b, "BEGIN EXCLUSIVE; UPDATE t SET a = a - 1");
  rows(a, n, 1, 0);
  rows(a, s, 1, 0);
  code(a, "reset", sqlite3_reset(n));
  code(a, "reset", sqlite3_reset(s));
  run(b, "COMMIT");
  rows(a, n, 1, 0);
  done(a, n);
  done(a, s);
  code(a, "close", sqlite3_close(a));
  code(b, "close", sqlite3_close(b));
}

void surface_changes(void) {
  sqlite3 *db = surface_open("changes.db");
  surface_fill(db);
  writes(db);
  transactions(db);
  between(db);
  inside_step(db);
  code(db, "close", sqlite3_close(db));
  closing();
  two_connections();
}
