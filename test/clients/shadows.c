/*
** Other things in the place of a tablet table's shadow tables, and a declaration that is not what
** it was: SQLITE_CORRUPT and a message that names the table and says what to do, whoever reads or
** writes; never a way back into the table itself. hostile.c does the same at random.
*/
#include <unistd.h>

#include "changes.h"

static char file[300];

static void must_do(int rc, sqlite3 *db, const char *doing) {
  if (rc == SQLITE_OK) return;
  tap_bad(doing, "%s", sqlite3_errmsg(db));
  exit(tap_done());
}

/* A new file with two tables that have tablets, rows in the delta and rows that are gone. */
static sqlite3 *make_file(const char *engine) {
  sqlite3 *db = NULL;
  unlink(file);
  must_do(sqlite3_open(file, &db), db, "open");
  if (!use_engine(db, engine)) must_do(SQLITE_ERROR, db, "enable");
  must_do(
      run_sql(db,
              "PRAGMA synchronous=OFF;"
              "CREATE VIRTUAL TABLE w USING tablet(x INT, y TEXT);"
              "CREATE VIRTUAL TABLE e USING tablet(id INTEGER PRIMARY KEY, k TEXT UNIQUE);"
              "INSERT INTO w WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE "
              "i<500) SELECT i, 'y'||i%7 FROM n;"
              "INSERT INTO e SELECT rowid, 'k'||rowid FROM w;"
              "INSERT INTO w(w) VALUES('optimize'); INSERT INTO e(e) VALUES('optimize');"
              "DELETE FROM w WHERE x=7; INSERT INTO w VALUES(-1,'late')",
              false),
      db, "set-up");
  return db;
}

static void must_say(sqlite3 *db, const char *doing, const char *sql, bool taken, int code,
                     const char *want) {
  char name[500];
  int rc = run_sql(db, sql, taken);
  snprintf(name, sizeof name, "shadows: %s: %s%s", doing, sql, taken ? " (taken)" : "");
  if ((rc & 0xff) == code && (!want || strstr(sqlite3_errmsg(db), want)))
    tap_ok(name);
  else
    tap_bad(name, "%d: %s", rc, sqlite3_errmsg(db));
}

static void check_messages(const char *engine) {
  static const struct known {
    const char *hurt, *want;
  } all[] = {
      {"DROP TABLE w_gone; CREATE VIEW w_gone AS SELECT rowid AS id FROM w", "w_gone is"},
      {"DROP TABLE w_delta; CREATE VIEW w_delta AS SELECT rowid AS id, x AS c0, y AS c1 FROM w",
       "w_delta is"},
      {"DROP TABLE w_info; CREATE VIEW w_info AS SELECT x AS k, y AS v FROM e", "w_info"},
      {"DROP TABLE w_dict", "w_dict is missing"},
      {"DROP TABLE w_gone; CREATE VIRTUAL TABLE w_gone USING fts5(id)", "w_gone"},
      {"DROP TABLE w_gone; CREATE TABLE w_gone(id TEXT PRIMARY KEY)", "w_gone has the wrong key"},
      {"ALTER TABLE w_segment RENAME COLUMN data TO dat", "w_segment does not have its columns"},
      {"ALTER TABLE w_delta DROP COLUMN c1", "w_delta does not have its columns"},
      {"CREATE INDEX i ON w_delta(abs(c0))", "index i on w_delta does not belong there: drop it"},
      {"CREATE TRIGGER r AFTER INSERT ON w_delta BEGIN DELETE FROM w; END",
       "trigger r on w_delta does not belong there: drop it"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    sqlite3 *db = NULL;
    char why[700];
    sqlite3_close(make_file(engine));
    must_do(sqlite3_open(file, &db), db, "open");
    must_do(run_sql(db, all[i].hurt, false), db, all[i].hurt);
    sqlite3_close(db);
    must_do(sqlite3_open(file, &db), db, "open");
    if (!use_engine(db, engine)) must_do(SQLITE_ERROR, db, "enable");
    for (int taken = 0; taken < 2; taken++) {
      must_say(db, all[i].hurt, "SELECT count(*) FROM w", taken, SQLITE_CORRUPT, all[i].want);
      must_say(db, all[i].hurt, "SELECT * FROM w WHERE rowid=5", taken, SQLITE_CORRUPT,
               all[i].want);
      must_say(db, all[i].hurt, "INSERT INTO w VALUES(1,'x')", taken, SQLITE_CORRUPT, all[i].want);
      must_say(db, all[i].hurt, "DELETE FROM w WHERE rowid=9", taken, SQLITE_CORRUPT, all[i].want);
    }
    one_text(db, "SELECT warplite_check('w')", why, sizeof why);
    if (strstr(why, all[i].want))
      tap_ok("shadows: warplite_check says the same");
    else
      tap_bad("shadows: warplite_check says the same", "%s: %s", all[i].hurt, why);
    CHECK("shadows: nothing is left open", sqlite3_close(db) == SQLITE_OK);
  }
}

/* The same by a connection that has the table open; and what only looks hostile. */
static void check_open_table(const char *engine) {
  sqlite3 *db = make_file(engine);
  char said[100];
  must_do(
      run_sql(db,
              "CREATE TEMP TABLE w_info(k, v); CREATE TEMP VIEW w_gone AS SELECT 1 AS id FROM w;"
              "CREATE TEMP TABLE w_delta(id, c0, c1); INSERT INTO w_delta VALUES(1,1,1);"
              "CREATE TABLE w_more(a); CREATE INDEX w_more_a ON w_more(a);"
              "CREATE TABLE w_key0(a); CREATE INDEX w_key0_a ON w_key0(a)",
              false),
      db, "tables of like names");
  one_text(db, "SELECT warplite_check('main.w')", said, sizeof said);
  CHECK("shadows: names of TEMP tables mean nothing", strcmp(said, "ok") == 0);
  must_say(db, "like names", "INSERT INTO w VALUES(1,'x')", false, SQLITE_OK, NULL);
  must_say(db, "like names", "SELECT count(*) FROM w", true, SQLITE_OK, NULL);
  must_do(
      run_sql(db,
              "DROP TABLE main.w_gone; CREATE VIEW main.w_gone AS SELECT rowid AS id FROM main.w",
              false),
      db, "a view");
  must_say(db, "while open", "SELECT count(*) FROM w", false, SQLITE_CORRUPT, "w_gone is");
  must_say(db, "while open", "SELECT count(*) FROM w", true, SQLITE_CORRUPT, "w_gone is");
  must_do(run_sql(db,
                  "BEGIN; DROP TABLE main.e_gone; CREATE VIEW main.e_gone AS SELECT id FROM main.e",
                  false),
          db, "a view");
  must_say(db, "uncommitted", "DELETE FROM e WHERE id=50", false, SQLITE_CORRUPT, NULL);
  must_say(db, "uncommitted", "SELECT warplite_check('e')", false, SQLITE_OK, NULL);
  must_say(db, "uncommitted", "ROLLBACK", false, SQLITE_OK, NULL);
  must_say(db, "rolled back", "SELECT count(*) FROM e", true, SQLITE_OK, NULL);
  CHECK("shadows: nothing is left open", sqlite3_close(db) == SQLITE_OK);
}

/* A DEFAULT is run for a writer who may not have read the schema. */
static void check_defaults(const char *engine) {
  static const char *const unsafe[][2] = {
      {"warplite_version()", "unsafe use of warplite_version()"},
      {"\"WARPLITE_VERSION\" ( )", "unsafe use of WARPLITE_VERSION()"},
      {"1 + length(/* */warplite_version())", "unsafe use of warplite_version()"},
      {"(SELECT 1)", "not constant"},
  };
  sqlite3 *db = NULL;
  must_do(sqlite3_open(":memory:", &db), db, "open");
  if (!use_engine(db, engine)) must_do(SQLITE_ERROR, db, "enable");
  for (int i = 0; i < 4; i++) {
    must_do(
        run_sql(db, "CREATE VIRTUAL TABLE t USING tablet(a NOT NULL DEFAULT (abs(1)), b)", false),
        db, "a table");
    must_do(run_text(db, sqlite3_mprintf("PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql="
                                         "'CREATE VIRTUAL TABLE t USING tablet(a NOT NULL DEFAULT "
                                         "(%q), b)' WHERE name='t'; PRAGMA writable_schema=RESET",
                                         unsafe[i][0])),
            db, "its declaration");
    for (int taken = 0; taken < 2; taken++)
      must_say(db, unsafe[i][0], "INSERT INTO t(b) VALUES(1)", taken, SQLITE_ERROR, unsafe[i][1]);
    must_do(run_sql(db, "DROP TABLE t", false), db, "its end");
  }
  must_do(
      run_sql(db,
              "CREATE VIRTUAL TABLE t USING tablet(a NOT NULL DEFAULT (upper('x')||abs(-1)), b)",
              false),
      db, "a table");
  must_say(db, "a safe default", "INSERT INTO t(b) VALUES(1)", false, SQLITE_OK, NULL);
  must_say(db, "a safe default", "INSERT INTO t(b) VALUES(1)", true, SQLITE_OK, NULL);
  sqlite3_close(db);
}

int main(void) {
  const char *tmp = getenv("TMPDIR");
  static const char *const engines[] = {"cpu", "sim"};
  char dir[200];
  snprintf(dir, sizeof dir, "%s/shadows-XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(dir)) return 2;
  snprintf(file, sizeof file, "%s/db", dir);
  for (int i = 0; i < 2; i++) {
    check_messages(engines[i]);
    check_open_table(engines[i]);
    check_defaults(engines[i]);
  }
  unlink(file);
  rmdir(dir);
  return tap_done();
}
