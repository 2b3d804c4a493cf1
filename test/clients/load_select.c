/*
** warplite_load(name, select): names, types and rows of the staged table are compared with those
** of CREATE TEMP TABLE … AS, for SELECTs of all kinds. Then: later queries find the columns in
** memory and run natively; what is refused; errors leave everything as it was.
** On the CPU and the simulator, and with WL_TEST_CUDA on CUDA.
*/
#include <string.h>

#include "../engines.h"
#include "../rows.h"
#include "../tap.h"

static rows r, want;
static char message[512];

/* Runs statements. False: they failed, and `message` says why. */
static bool run(sqlite3 *db, const char *sql) {
  int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  snprintf(message, sizeof message, "%s", rc ? sqlite3_errmsg(db) : "");
  return rc == SQLITE_OK;
}

/* The first value of a query as text. */
static const char *ask(sqlite3 *db, const char *sql) {
  static char out[512];
  sqlite3_stmt *s = NULL;
  out[0] = 0;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
  if (!rc) rc = sqlite3_step(s);
  if (rc == SQLITE_ROW && sqlite3_column_text(s, 0))
    snprintf(out, sizeof out, "%s", sqlite3_column_text(s, 0));
  else if (rc != SQLITE_ROW)
    snprintf(out, sizeof out, "error %d: %s", rc, sqlite3_errmsg(db));
  sqlite3_finalize(s);
  return out;
}

/* Loads a SELECT under a name, and gives the number of rows, or the error. */
static const char *load(sqlite3 *db, const char *name, const char *select) {
  char *sql = must(sqlite3_mprintf("SELECT warplite_load(%Q, %Q)", name, select));
  static char out[512];
  snprintf(out, sizeof out, "%s", ask(db, sql));
  sqlite3_free(sql);
  return out;
}

static bool has(const char *text, const char *part) {
  return strstr(text, part) != NULL;
}

/* More rows than a tablet has; every type; both ends of 64 bits; a column of mixed types. */
static const char schema[] =
    "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b REAL, c TEXT COLLATE NOCASE, d, "
    "e VARCHAR(10), f NUMERIC);"
    "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM n WHERE x < 65537)"
    " INSERT INTO t SELECT x, x % 1000, x / 7.0, 'name ' || (x % 50),"
    "  CASE x % 5 WHEN 0 THEN x WHEN 1 THEN x + 0.5 WHEN 2 THEN 'txt' || x WHEN 3 THEN "
    "  CAST('b' || x AS BLOB) END, CASE WHEN x % 3 THEN 'v' || x END, x * 1.5 FROM n;"
    "UPDATE t SET a = 9223372036854775807 WHERE id = 3;"
    "UPDATE t SET a = -9223372036854775807 - 1, b = -0.0, c = '' WHERE id = 4;"
    "UPDATE t SET a = NULL, b = 9e999, c = NULL, d = x'' WHERE id = 5;"
    "CREATE TABLE u(id INTEGER PRIMARY KEY, name TEXT);"
    "WITH RECURSIVE n(x) AS (VALUES(0) UNION ALL SELECT x+1 FROM n WHERE x < 1200)"
    " INSERT INTO u SELECT x, 'u' || x FROM n;"
    "CREATE VIEW v AS SELECT id, c AS name FROM t;";

static const char *const selects[] = {
    "SELECT * FROM t",
    "SELECT a, b FROM t WHERE id <= 65536",
    "SELECT id, id, a AS id, b AS B, b FROM t WHERE a < 5",
    "SELECT t.id, u.name, t.b * 2 FROM t JOIN u ON u.id = t.a WHERE t.id < 9000;",
    "SELECT c, count(*), sum(a % 10), max(b) FROM t WHERE id > 5 GROUP BY c -- by name",
    "SELECT d, typeof(d) FROM t WHERE id < 200 ORDER BY id DESC",
    "SELECT id FROM t WHERE 0",
    "SELECT d FROM t WHERE id = 5",
    "SELECT a FROM t WHERE id IN (3, 4, 5)",
    "VALUES(1, 'a', NULL), (2.5, x'00ff', 3)",
    "WITH w(x) AS (SELECT a FROM t) SELECT x, CAST(x AS TEXT) AS y FROM w LIMIT 10",
    "SELECT a FROM t WHERE id < 9 UNION ALL SELECT e FROM t WHERE id < 9",
    "SELECT name FROM v WHERE id < 4000 EXCEPT SELECT name FROM u",
    "SELECT 1 AS rowid, 2 AS oid, 3 AS \"\", 4 AS \"a\"\"b\", 5, 'x''y'",
    "SELECT e, row_number() OVER (ORDER BY e) FROM t WHERE id < 50",
    "SELECT CAST(a AS REAL), CAST(b AS INTEGER), CAST(c AS NUMERIC), +a, a || '' FROM t",
    "SELECT (SELECT name FROM u WHERE u.id = t.a) AS n FROM t WHERE id < 70",
    "SELECT 1 AS x /* no ; here */ ; -- nor here",
};

static void compare(sqlite3 *db, const char *engine) {
  char name[200], why[1024];
  for (size_t i = 0; i < sizeof selects / sizeof *selects; i++) {
    snprintf(name, sizeof name, "[%s] %.150s", engine, selects[i]);
    char *as = must(sqlite3_mprintf("CREATE TEMP TABLE plain AS %s", selects[i]));
    bool made = run(db, as);
    sqlite3_free(as);
    const char *n = load(db, "staged", selects[i]);
    if (!made || has(n, "error")) {
      tap_bad(name, "%s %s", message, n);
      continue;
    }
    bool counted = strcmp(n, ask(db, "SELECT count(*) FROM plain")) == 0;
    rows_query(&want, db, sqlite3_prepare_v2, "SELECT * FROM plain");
    rows_query(&r, db, warplite_prepare, "SELECT * FROM staged");
    if (has(selects[i], " JOIN ") && !has(selects[i], "ORDER BY")) { /* they have no order */
      rows_sort(&want);
      rows_sort(&r);
    }
    bool same = rows_same(&r, &want, false, why, sizeof why);
    rows_query(&want, db, sqlite3_prepare_v2, "SELECT name, type FROM pragma_table_info('plain')");
    rows_query(&r, db, sqlite3_prepare_v2, "SELECT name, type FROM pragma_table_info('staged')");
    if (same) same = rows_same(&r, &want, false, why, sizeof why);
    if (!counted) snprintf(why, sizeof why, "returned %s", n);
    if (same && counted)
      tap_ok(name);
    else
      tap_bad(name, "%s", why);
    run(db, "DROP TABLE plain");
  }
}

/* Queries over the name find its columns in memory. */
static void resident(sqlite3 *db, const char *engine) {
  char name[200], why[1024];
  run(db, "CREATE TEMP TABLE plain AS SELECT t.id, u.name, t.b FROM t JOIN u ON u.id = t.a");
  load(db, "staged", "SELECT t.id, u.name, t.b FROM t JOIN u ON u.id = t.a");
  snprintf(name, sizeof name, "[%s] all columns are in memory", engine);
  CHECK(name,
        !strcmp(ask(db, "SELECT count(*) FROM warplite_cache WHERE \"table\" = 'staged'"), "3"));
  static const char *const queries[] = {
      "SELECT id FROM staged WHERE b < 1000 AND id > 100 ORDER BY id",
      "SELECT name, count(*), max(b) FROM staged GROUP BY name ORDER BY name"};
  for (int i = 0; i < 2; i++) {
    rows_query(&r, db, warplite_prepare, queries[i]);
    bool native = !strncmp(warplite_reason(db), engine_prefix(engine), 4);
    char *sql = must(strdup(queries[i])), *at = strstr(sql, "staged");
    memcpy(at, "plain ", 6);
    rows_query(&want, db, sqlite3_prepare_v2, sql);
    free(sql);
    snprintf(name, sizeof name, "[%s] %s", engine, queries[i]);
    if (!native)
      tap_bad(name, "%s", warplite_reason(db));
    else if (rows_same(&r, &want, false, why, sizeof why))
      tap_ok(name);
    else
      tap_bad(name, "%s", why);
  }
  snprintf(name, sizeof name, "[%s] they were found there", engine);
  CHECK(name, !strcmp(ask(db, "SELECT min(hits) > 0 FROM warplite_cache WHERE \"table\" = 'staged' "
                              "AND \"column\" <> 'rowid'"),
                      "1"));
  snprintf(name, sizeof name, "[%s] inside a transaction that writes", engine);
  run(db, "BEGIN; INSERT INTO u VALUES(5000, 'new')");
  const char *n = load(db, "inside", "SELECT * FROM u");
  bool counted = !strcmp(n, "1202");
  rows_query(&r, db, warplite_prepare, "SELECT count(*) FROM inside WHERE id > 4000");
  CHECK(name, counted && r.n_rows == 1 && r.cells[0].u.i == 1 &&
                  !strncmp(warplite_reason(db), engine_prefix(engine), 4));
  run(db, "ROLLBACK");
  snprintf(name, sizeof name, "[%s] ROLLBACK removes it", engine);
  CHECK(name, has(ask(db, "SELECT * FROM inside"), "no such table: inside"));
  run(db, "DROP TABLE plain");
}

/* What a name stands for can be replaced, also by rows that are read from it. */
static void replaced(sqlite3 *db) {
  load(db, "staged", "SELECT id, a FROM t WHERE id <= 100");
  run(db, "CREATE TEMP VIEW over AS SELECT count(*) FROM staged");
  CHECK("a SELECT may read what it replaces",
        !strcmp(load(db, "staged", "SELECT id AS k FROM staged WHERE id > 40"), "60"));
  CHECK("the new columns count", has(ask(db, "SELECT id FROM staged"), "no such column") &&
                                     !strcmp(ask(db, "SELECT min(k) FROM staged"), "41"));
  CHECK("views over it stay", !strcmp(ask(db, "SELECT * FROM over"), "60"));
  CHECK("names ignore case", !strcmp(load(db, "STAGED", "SELECT 7 AS seven"), "1") &&
                                 !strcmp(ask(db, "SELECT seven FROM staged"), "7"));
  CHECK("DROP TABLE removes it",
        run(db, "DROP VIEW over; DROP TABLE staged") &&
            has(ask(db, "SELECT 1 FROM staged"), "no such table") &&
            !strcmp(ask(db, "SELECT count(*) FROM temp.sqlite_schema"), "0"));
  CHECK("a name with quotes and dots",
        !strcmp(load(db, "it's \"temp.x\"", "SELECT 1 AS one"), "1") &&
            !strcmp(ask(db, "SELECT one FROM \"it's \"\"temp.x\"\"\""), "1"));
  CHECK("it can be unloaded and loaded",
        !strcmp(ask(db, "SELECT warplite_unload('it''s \"temp.x\"')"), "1") &&
            !strcmp(ask(db, "SELECT warplite_load('it''s \"temp.x\"')"), "1"));
  run(db, "DROP TABLE \"it's \"\"temp.x\"\"\"");
  load(db, "staged", "SELECT id FROM t WHERE id < 10");
  run(db, "DROP TABLE staged; CREATE TEMP TABLE staged(mine); INSERT INTO staged VALUES(1)");
  CHECK("a table of the program is not replaced",
        has(load(db, "staged", "SELECT 1"), "there is a table temp.staged already") &&
            !strcmp(ask(db, "SELECT mine FROM staged"), "1"));
  run(db, "DROP TABLE staged");
}

static void refused(sqlite3 *db) {
  static const struct {
    const char *name, *select, *part;
  } cases[] = {
      {"x", "SELECT nowhat FROM t", "no such column: nowhat"},
      {"x", "SELECT * FROM nowhere", "no such table: nowhere"},
      {"x", "SELEC 1", "syntax error"},
      {"x", "", "needs a SELECT"},
      {"x", "-- only a comment", "needs a SELECT"},
      {"x", "DELETE FROM t", "needs a SELECT"},
      {"x", "CREATE TABLE y(z)", "needs a SELECT"},
      {"x", "EXPLAIN SELECT 1", "needs a SELECT"},
      {"x", "PRAGMA table_info(t)", "syntax error"},
      {"x", "SELECT 1; DROP TABLE t", "needs one statement"},
      {"x", "SELECT 1) AS y, (SELECT 2", "syntax error"},
      {"x", "SELECT ?1", "without parameters"},
      {"x", NULL, "a SELECT is needed"},
      {NULL, "SELECT 1", "a name for the rows is needed"},
      {"", "SELECT 1", "a name for the rows is needed"},
      {"x", "SELECT 1 AS X", "the column X has the name of the table"},
      {"x", "SELECT 1 AS rowid, 2 AS oid, 3 AS _rowid_", "cannot all three be columns"},
      {"t", "SELECT 1", "there is a table main.t already"},
      {"v", "SELECT 1", "there is a view main.v already"},
      {"sqlite_x", "SELECT 1", "reserved for internal use"},
      {"warplite_x", "SELECT 1", "warplite's own"},
      {"x", "SELECT abs(a) FROM t ORDER BY id", "integer overflow"},
      {"x", "SELECT json(c) FROM t", "malformed JSON"},
      {"staged", "SELECT abs(a) FROM t ORDER BY id", "integer overflow"},
  };
  load(db, "staged", "SELECT id FROM t WHERE id < 4");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char name[200];
    snprintf(name, sizeof name, "refused: %s, %.100s", cases[i].name, cases[i].select);
    const char *n = load(db, cases[i].name, cases[i].select);
    if (has(n, "error") && has(n, cases[i].part))
      tap_ok(name);
    else
      tap_bad(name, "%s", n);
  }
  CHECK("nothing is left of them, and what was staged before stays",
        !strcmp(ask(db, "SELECT count(*) FROM pragma_table_list WHERE schema = 'temp' AND type = "
                        "'virtual'"),
                "1") &&
            !strcmp(ask(db, "SELECT sum(id) FROM staged"), "6") && sqlite3_get_autocommit(db));
  run(db, "BEGIN; INSERT INTO u VALUES(6000, 'kept')");
  CHECK("an error keeps the transaction",
        has(load(db, "x", "SELECT abs(a) FROM t ORDER BY id"), "overflow") &&
            !sqlite3_get_autocommit(db) && run(db, "COMMIT") &&
            !strcmp(ask(db, "SELECT name FROM u WHERE id = 6000"), "kept"));
  sqlite3_stmt *s = NULL;
  sqlite3_prepare_v2(db, "SELECT id FROM t", -1, &s, NULL);
  sqlite3_step(s);
  CHECK("refused while another statement runs", has(load(db, "x", "SELECT 1 AS y"), "is locked"));
  CHECK("and that one continues", sqlite3_step(s) == SQLITE_ROW);
  sqlite3_finalize(s);
  CHECK("works again", !strcmp(load(db, "x", "SELECT 1 AS y"), "1"));
  CHECK("not from a view", run(db, "CREATE VIEW w AS SELECT warplite_load('y', 'SELECT 1')") &&
                               has(ask(db, "SELECT * FROM w"), "unsafe use"));
  run(db, "DROP VIEW w; DROP TABLE x; DROP TABLE staged");
}

static int n_left;
static int stop_soon(void *db) {
  (void)db;
  return --n_left < 0;
}

static void interrupted(sqlite3 *db) {
  load(db, "staged", "SELECT id FROM t WHERE id < 4");
  int n_stopped = 0, n_done = 0;
  bool whole = true;
  for (int after = 0; after < 400; after += 7) {
    n_left = after;
    sqlite3_progress_handler(db, 1000, stop_soon, NULL);
    const char *n = load(db, "staged", "SELECT a.id FROM t AS a, u WHERE a.id = u.id + 1");
    bool stopped = has(n, "interrupted");
    sqlite3_progress_handler(db, 0, NULL, NULL);
    n_stopped += stopped;
    n_done += !has(n, "error");
    const char *rest = ask(db, "SELECT count(*) FROM staged");
    whole &= !strcmp(rest, "3") || (!strcmp(rest, "1202") && n_done);
  }
  CHECK("interrupted: some", n_stopped > 0 && whole);
  CHECK("interrupted: and then not", !strcmp(load(db, "staged", "SELECT id FROM u"), "1202"));
  run(db, "DROP TABLE staged");
}

static int deny_code, deny_answer;
static const char *deny_name;
static int authorizer(void *arg, int code, const char *a, const char *b, const char *c,
                      const char *d) {
  (void)arg, (void)b, (void)c, (void)d;
  return code == deny_code && a && !strcmp(a, deny_name) ? deny_answer : SQLITE_OK;
}

static void authorized(sqlite3 *db) {
  warplite_set_authorizer(db, authorizer, NULL);
  deny_code = SQLITE_READ, deny_name = "u", deny_answer = SQLITE_DENY;
  CHECK("authorizer: a table that may not be read",
        has(load(db, "x", "SELECT name FROM u"), "prohibited"));
  deny_answer = SQLITE_IGNORE;
  CHECK("authorizer: a table that is hidden", has(load(db, "x", "SELECT name FROM u"), "IGNORE"));
  deny_code = SQLITE_CREATE_TEMP_TABLE, deny_name = "x", deny_answer = SQLITE_DENY;
  CHECK("authorizer: no such temporary table",
        has(load(db, "x", "SELECT id FROM u"), "not authorized"));
  CHECK("authorizer: others may", !strcmp(load(db, "y", "SELECT id FROM u"), "1202"));
  deny_code = SQLITE_DROP_VTABLE, deny_name = "y";
  CHECK("authorizer: it may not be replaced",
        has(load(db, "y", "SELECT 1 AS a"), "not authorized") &&
            !strcmp(ask(db, "SELECT count(*) FROM y"), "1202"));
  warplite_set_authorizer(db, NULL, NULL);
  run(db, "DROP TABLE y");
}

static void small_budget(sqlite3 *db) {
  use_setting(db, "host_budget", "64K");
  CHECK("columns that do not fit are no error",
        !strcmp(load(db, "staged", "SELECT id, c, b FROM t"), "65537"));
  rows_query(&r, db, warplite_prepare, "SELECT sum(id) FROM staged");
  CHECK("SQLite runs what follows",
        r.n_rows == 1 && r.cells[0].u.i == 2147581953 && has(warplite_reason(db), "sqlite:"));
  run(db, "DROP TABLE staged");
}

int main(void) {
  const char *engines[] = {"sqlite", "cpu", "sim", getenv("WL_TEST_CUDA") ? "cuda" : NULL};
  for (int i = 0; i < 4 && engines[i]; i++) {
    sqlite3 *db;
    if (sqlite3_open(":memory:", &db) || !run(db, schema) || !use_engine(db, engines[i])) {
      tap_bad(engines[i], "%s", sqlite3_errmsg(db));
      return tap_done();
    }
    compare(db, engines[i]);
    if (i > 0) resident(db, engines[i]);
    if (i == 1) {
      replaced(db);
      refused(db);
      interrupted(db);
      authorized(db);
      small_budget(db);
    }
    CHECK("closes", sqlite3_close(db) == SQLITE_OK);
  }
  rows_free(&r);
  rows_free(&want);
  return tap_done();
}
