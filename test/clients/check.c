/*
** What warplite_check() says of names that are no tablet table's, and that it works wherever a
** tablet table can be: in main, temp and attached databases, inside transactions.
*/
#include "changes.h"

/* The text of a query, or "CODE: MESSAGE" where it fails. */
static const char *ask(sqlite3 *db, const char *sql) {
  static char out[600];
  sqlite3_stmt *q = NULL;
  int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
  if (!rc) rc = sqlite3_step(q);
  if (rc == SQLITE_ROW)
    snprintf(out, sizeof out, "%s", (const char *)sqlite3_column_text(q, 0));
  else
    snprintf(out, sizeof out, "%d: %s", rc, sqlite3_errmsg(db));
  sqlite3_finalize(q);
  return out;
}

static void must_say(sqlite3 *db, const char *name, const char *want) {
  char *sql = sqlite3_mprintf("SELECT warplite_check(%Q)", name);
  const char *got = ask(db, sql);
  if (strcmp(got, want) == 0)
    tap_ok(sql);
  else
    tap_bad(sql, "says \"%s\", not \"%s\"", got, want);
  sqlite3_free(sql);
}

int main(void) {
  sqlite3 *db = NULL;
  if (sqlite3_open(":memory:", &db) || !use_engine(db, "cpu")) return 2;
  CHECK("set-up",
        run_sql(db,
                "CREATE TABLE sales(a, b); CREATE INDEX by_a ON sales(a);"
                "CREATE VIEW seen AS SELECT a FROM sales;"
                "CREATE VIEW broken AS SELECT a FROM nowhere;"
                "CREATE VIRTUAL TABLE words USING fts5(w);"
                "CREATE VIRTUAL TABLE t USING tablet(a INTEGER PRIMARY KEY, b TEXT UNIQUE);"
                "INSERT INTO t VALUES(1,'x'),(2,'y');"
                "ATTACH ':memory:' AS other;"
                "CREATE VIRTUAL TABLE other.u USING tablet(a);"
                "CREATE TABLE other.plain(a);"
                "CREATE VIRTUAL TABLE temp.w USING tablet(a);"
                "CREATE VIRTUAL TABLE \"odd \"\" na.me\" USING tablet(a)",
                false) == SQLITE_OK);
#define NOT_ONE(NAME, WHAT)                                                                        \
  must_say(db, NAME, "1: warplite_check checks tablet tables, and " NAME " is " WHAT)
  NOT_ONE("sales", "an ordinary table; PRAGMA integrity_check checks it");
  NOT_ONE("other.plain", "an ordinary table; PRAGMA integrity_check checks it");
  NOT_ONE("seen", "a view");
  NOT_ONE("broken", "a view");
  NOT_ONE("words", "a virtual table of another module");
  NOT_ONE("t_info", "a table behind a virtual table; name that one");
  NOT_ONE("by_a", "not a table of this connection");
  NOT_ONE("nothing", "not a table of this connection");
  NOT_ONE("", "not a table of this connection");
  NOT_ONE("other.nothing", "not a table of this connection");
  NOT_ONE("nobody.t", "not a table of this connection");
  CHECK("no name", strcmp(ask(db, "SELECT warplite_check(NULL)"),
                          "1: warplite_check needs the name of a tablet table") == 0);
  static const char *const whole[] = {"t", "main.t", "T", "other.u",
                                      "u", "temp.w", "w", "odd \" na.me"};
  for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) must_say(db, whole[i], "ok");
  CHECK("inside a transaction",
        run_sql(db, "BEGIN; INSERT INTO t VALUES(3,'z'); SAVEPOINT s; DELETE FROM t WHERE a=1",
                false) == SQLITE_OK);
  must_say(db, "t", "ok");
  CHECK("back to the savepoint", run_sql(db, "ROLLBACK TO s", false) == SQLITE_OK);
  must_say(db, "t", "ok");
  CHECK("the check ends with no transaction of its own",
        run_sql(db, "COMMIT", false) == SQLITE_OK && sqlite3_get_autocommit(db));
  must_say(db, "t", "ok");
  CHECK("nothing stays open", sqlite3_txn_state(db, "main") == SQLITE_TXN_NONE);
  sqlite3_close(db);
  return tap_done();
}
