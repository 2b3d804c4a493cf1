/*
** warplite_convert(): tables of many declarations become tablet tables and ordinary ones again, and
** must be what they were; what cannot be converted is refused and stays as it was.
**
**     convert BUILD          (the folder is not used)
*/
#include <string.h>
#include <unistd.h>

#include "../rows.h"
#include "../tap.h"
#include "warplite.h"

static rows r;

/* The rows of a query as one text, or its error after "error: ". The result is static. */
static char *ask_by(sqlite3 *db,
                    int (*prepare)(sqlite3 *, const char *, int, sqlite3_stmt **, const char **),
                    const char *sql) {
  static char buf[65536];
  size_t n = 0;
  rows_query(&r, db, prepare, sql);
  if (r.rc != SQLITE_DONE) {
    snprintf(buf, sizeof buf, "error: %s", r.err);
    return buf;
  }
  buf[0] = 0;
  for (size_t i = 0; i < r.n_cells && n + 600 < sizeof buf; i++) {
    char cell[512];
    cell_text(&r, &r.cells[i], cell, sizeof cell);
    n += (size_t)snprintf(buf + n, sizeof buf - n, "%s%s", cell,
                          (i + 1) % (size_t)r.n_col ? "|" : "\n");
  }
  return buf;
}

static char *ask(sqlite3 *db, const char *sql) {
  return ask_by(db, sqlite3_prepare_v2, sql);
}

static void run(sqlite3 *db, const char *sql) {
  char *err = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &err) != SQLITE_OK) tap_bad(sql, "%s", err);
  sqlite3_free(err);
}

static sqlite3 *open_db(const char *path) {
  sqlite3 *db;
  if (sqlite3_open(path, &db) != SQLITE_OK || warplite_enable(db) != SQLITE_OK) {
    tap_bad("open", "%s", sqlite3_errmsg(db));
    exit(tap_done());
  }
  return db;
}

/* Everything there is to know of a table, and of the schema around it. */
static char *state_of(sqlite3 *db, const char *schema, const char *table, const char *rowid) {
  char *sql = sqlite3_mprintf("SELECT %s, * FROM \"%w\".\"%w\" ORDER BY 1", rowid, schema, table);
  char *all = must(strdup(ask(db, sql)));
  sqlite3_free(sql);
  /* SQLite does not know a virtual table's defaults */
  sql = sqlite3_mprintf("SELECT name, type, \"notnull\" FROM pragma_table_info(%Q, %Q)", table,
                        schema);
  char *out = sqlite3_mprintf("%s-- columns\n%s", all, ask(db, sql));
  sqlite3_free(sql);
  free(all);
  return out;
}

static bool is_tablet(sqlite3 *db, const char *table) {
  char *sql = sqlite3_mprintf("SELECT sql LIKE 'CREATE VIRTUAL TABLE%% USING tablet(%%' FROM "
                              "sqlite_schema WHERE name = %Q",
                              table);
  bool is = strcmp(ask(db, sql), "1\n") == 0;
  sqlite3_free(sql);
  return is;
}

/* ---- there and back */

static const struct {
  const char *columns, *values;
  const char *bad; /* a row that breaks a constraint, or NULL */
  const char *rowid;
} tables[] = {
    {"a, b", "(1,2),('x',NULL),(x'00ff',-0.5),(NULL,NULL)", NULL, "rowid"},
    {"a INTEGER PRIMARY KEY, b TEXT NOT NULL DEFAULT 'q', c REAL CHECK (c > 0)",
     "(-5,'x',1.5),(9,'',2),(9223372036854775807,'é',1e300)", "(1,'x',-1)", "rowid"},
    {"a INTEGER PRIMARY KEY, b UNIQUE, c TEXT COLLATE NOCASE UNIQUE", "(1,2,'a'),(3,4,'b')",
     "(7,8,'A')", "rowid"},
    {"a TEXT, b INT, PRIMARY KEY (a, b), UNIQUE (b, a COLLATE NOCASE)", "('a',1),('a',2),('B',1)",
     "('a',1)", "rowid"},
    {"a INTEGER PRIMARY KEY DESC, b", "(5,6),(1,2)", "(5,7)", "rowid"},
    {"a -- first, (\n, \"b c\" VARCHAR(10, 2) DEFAULT 'x,y(', [d)] /* , */ NUMERIC DEFAULT (1 + 2)",
     "(1,2,3),('1','2','3.0')", NULL, "rowid"},
    {"rowid TEXT, oid TEXT, v", "('r','o',1),('s','p',2)", NULL, "_rowid_"},
    {"key PRIMARY KEY, value", "('k1','v1'),(2,x'02'),(3.5,NULL)", "(2,'again')", "rowid"},
    {"a, CONSTRAINT small CHECK (a < 100), CHECK (a > -100)", "(1),(2),(NULL)", "(200)", "rowid"},
};

static void check_tables(void) {
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    sqlite3 *db = open_db(":memory:");
    char name[160], *sql;
    sql = sqlite3_mprintf("CREATE TABLE t(%s); INSERT INTO t VALUES%s; DELETE FROM t WHERE 0; "
                          "CREATE VIEW v AS SELECT count(*) AS n FROM t",
                          tables[i].columns, tables[i].values);
    run(db, sql);
    sqlite3_free(sql);
    char *before = state_of(db, "main", "t", tables[i].rowid);
    char bad_before[600] = "", bad[600] = "";
    sql = tables[i].bad ? sqlite3_mprintf("INSERT INTO t VALUES%s", tables[i].bad) : NULL;
    if (sql) sqlite3_snprintf(sizeof bad_before, bad_before, "%s", ask(db, sql));
    sqlite3_exec(db, "INSERT INTO v DEFAULT VALUES", NULL, NULL, NULL); /* fails: a view */
    for (int way = 0; way < 4; way++) {
      bool tablet = way % 2 == 0;
      char n[600];
      sqlite3_snprintf(sizeof n, n, "%s",
                       ask_by(db, way < 2 ? sqlite3_prepare_v2 : warplite_prepare,
                              "SELECT warplite_convert('t')"));
      snprintf(name, sizeof name, "to %s: %.60s", tablet ? "tablet" : "table", tables[i].columns);
      char *after = state_of(db, "main", "t", tables[i].rowid);
      if (sql) sqlite3_snprintf(sizeof bad, bad, "%s", ask(db, sql));
      char count[40];
      sqlite3_snprintf(sizeof count, count, "%s", ask(db, "SELECT count(*) FROM t"));
      if (strcmp(n, count) != 0)
        tap_bad(name, "it says %s for %s", n, count);
      else if (is_tablet(db, "t") != tablet)
        tap_bad(name, "the kind is wrong");
      else if (strcmp(before, after) != 0)
        tap_bad(name, "before\n%safter\n%s", before, after);
      else if (sql && strcmp(bad, bad_before) != 0)
        tap_bad(name, "a bad row: %s, not %s", bad, bad_before);
      else if (strcmp(ask(db, "SELECT n FROM v"), count) != 0)
        tap_bad(name, "the view does not see it");
      else if (strcmp(ask(db, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), "1\n"))
        tap_bad(name, "integrity: %s", ask(db, "PRAGMA integrity_check"));
      else
        tap_ok(name);
      sqlite3_free(after);
    }
    sqlite3_free(sql);
    sqlite3_free(before);
    sqlite3_close(db);
  }
}

/* ---- refusals */

static const struct {
  const char *set_up, *call, *message;
} refusals[] = {
    {"CREATE TABLE t(a)", "NULL", "a table name is needed"},
    {"CREATE TABLE t(a)", "'nosuch'", "no such table: nosuch"},
    {"CREATE TABLE t(a)", "'nosuch.t'", "no such table: nosuch.t"},
    {"CREATE TABLE t(a)", "'t', 'other'", "'tablet' or 'table', not 'other'"},
    {"CREATE VIEW t AS SELECT 1", "'t'", "it is a view"},
    {"CREATE TABLE t(a PRIMARY KEY) WITHOUT ROWID", "'t'", "WITHOUT ROWID"},
    {"CREATE TABLE t(a TEXT) STRICT", "'t'", "STRICT"},
    {"CREATE TABLE t(a); CREATE INDEX ti ON t(a)", "'t'", "it has the index ti"},
    {"CREATE TABLE t(a); CREATE TRIGGER tt AFTER INSERT ON t BEGIN SELECT 1; END", "'t'",
     "it has the trigger tt"},
    {"CREATE TABLE t(a); CREATE TEMP TRIGGER tt AFTER INSERT ON t BEGIN SELECT 1; END", "'t'",
     "it has the trigger tt"},
    {"CREATE TABLE p(x UNIQUE); CREATE TABLE t(a REFERENCES p(x))", "'t'", "foreign key to p"},
    {"CREATE TABLE t(x UNIQUE); CREATE TABLE c(a REFERENCES T(x))", "'t'",
     "a foreign key refers to it from c"},
    {"CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT)", "'t'", "AUTOINCREMENT"},
    {"CREATE TABLE t(a, b AS (a + 1))", "'t'", ""},
    {"CREATE TABLE t(a UNIQUE ON CONFLICT REPLACE)", "'t'", ""},
    {"CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT)", "'sqlite_sequence'",
     "a table of SQLite itself"},
    {"CREATE VIRTUAL TABLE t USING tablet(a)", "'t_info'", "belongs to another table"},
    {"CREATE VIRTUAL TABLE t USING fts5(a)", "'t'", "module fts5"},
    {"CREATE TABLE t(a); CREATE TABLE t_info(b)", "'t'", "t_info"},
    {"PRAGMA ignore_check_constraints = on; CREATE TABLE t(a CHECK (a > 5)); INSERT INTO t "
     "VALUES(1); PRAGMA ignore_check_constraints = off",
     "'t'", "CHECK constraint failed"},
};

static void check_refusals(void) {
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
    for (int inside = 0; inside < 2; inside++) {
      sqlite3 *db = open_db(":memory:");
      char name[200], sql[200];
      const char *schema = "SELECT * FROM sqlite_schema ORDER BY name";
      run(db, refusals[i].set_up);
      char *before = must(strdup(ask(db, schema)));
      if (inside) run(db, "BEGIN; CREATE TABLE other(x); DROP TABLE other");
      snprintf(name, sizeof name, "refused%s: %.100s: %.40s", inside ? " in BEGIN" : "",
               refusals[i].set_up, refusals[i].call);
      snprintf(sql, sizeof sql, "SELECT warplite_convert(%s)", refusals[i].call);
      char said[600];
      sqlite3_snprintf(sizeof said, said, "%s", ask(db, sql));
      if (strncmp(said, "error: ", 7) != 0 || !strstr(said, refusals[i].message))
        tap_bad(name, "it says %s", said);
      else if (sqlite3_get_autocommit(db) == inside)
        tap_bad(name, "the transaction is not as it was");
      else if (strcmp(before, ask(db, schema)) != 0)
        tap_bad(name, "the schema was\n%sand is\n%s", before, ask(db, schema));
      else
        tap_ok(name);
      free(before);
      sqlite3_close(db);
    }
}

/* ---- transactions, other statements, other databases */

static void check_transactions(void) {
  sqlite3 *db = open_db(":memory:");
  int legacy = 1;
  run(db,
      "CREATE TABLE t(a, b); INSERT INTO t VALUES(1,2),(3,4); CREATE TABLE other(x); INSERT INTO "
      "other VALUES(1),(2),(3)");
  run(db, "BEGIN; SELECT warplite_convert('t')");
  CHECK("BEGIN: converted", is_tablet(db, "t"));
  run(db, "INSERT INTO t VALUES(5,6); ROLLBACK");
  CHECK("ROLLBACK: as it was", !is_tablet(db, "t") &&
                                   !strcmp(ask(db, "SELECT * FROM t"), "1|2\n3|4\n") &&
                                   !strcmp(ask(db, "SELECT count(*) FROM sqlite_schema"), "2\n"));
  run(db, "BEGIN; SAVEPOINT s; SELECT warplite_convert('t'); ROLLBACK TO s");
  CHECK("ROLLBACK TO: as it was", !is_tablet(db, "t"));
  run(db, "SELECT warplite_convert('t'); INSERT INTO t VALUES(5,6); COMMIT");
  CHECK("COMMIT: it stays",
        is_tablet(db, "t") && !strcmp(ask(db, "SELECT * FROM t"), "1|2\n3|4\n5|6\n"));
  run(db, "BEGIN; SELECT warplite_convert('t'); ROLLBACK");
  CHECK("back, ROLLBACK",
        is_tablet(db, "t") && !strcmp(ask(db, "SELECT * FROM t"), "1|2\n3|4\n5|6\n"));

  /* another statement that reads */
  sqlite3_stmt *open = NULL;
  sqlite3_prepare_v2(db, "SELECT x FROM other", -1, &open, NULL);
  sqlite3_step(open);
  CHECK("another statement: locked, and said so",
        strstr(ask(db, "SELECT warplite_convert('t')"), "another statement") != NULL &&
            r.xrc == SQLITE_LOCKED);
  CHECK("another statement: it goes on", sqlite3_step(open) == SQLITE_ROW);
  sqlite3_finalize(open);
  CHECK("another statement: then it works",
        !strcmp(ask(db, "SELECT warplite_convert('t')"), "3\n"));
  CHECK("from a query over a table: locked",
        strstr(ask(db, "SELECT warplite_convert('t') FROM other"), "another statement") != NULL);

  /* what else the connection knows */
  sqlite3_set_last_insert_rowid(db, 77);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  CHECK("DEFENSIVE", !strcmp(ask(db, "SELECT warplite_convert('t')"), "3\n") && is_tablet(db, "t"));
  CHECK("DEFENSIVE, back",
        !strcmp(ask(db, "SELECT warplite_convert('t')"), "3\n") && !is_tablet(db, "t"));
  CHECK("last_insert_rowid stays", sqlite3_last_insert_rowid(db) == 77);
  sqlite3_db_config(db, SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, -1, &legacy);
  CHECK("legacy_alter_table stays", legacy == 0);
  CHECK("the kind that it is: nothing is done",
        !strcmp(ask(db, "SELECT warplite_convert('t', 'table')"), "3\n") && !is_tablet(db, "t"));
  CHECK("the kind that it is to be",
        !strcmp(ask(db, "SELECT warplite_convert('t', 'TABLET')"), "3\n") && is_tablet(db, "t"));

  run(db,
      "ATTACH ':memory:' AS aux; CREATE TABLE aux.q(a); INSERT INTO aux.q VALUES(1); CREATE TEMP "
      "TABLE z(a); INSERT INTO z VALUES(1),(2); CREATE TABLE \"od.d (\"\"t\"(a); INSERT INTO "
      "\"od.d (\"\"t\" VALUES(8)");
  CHECK("attached",
        !strcmp(ask(db, "SELECT warplite_convert('aux.q')"), "1\n") &&
            !strcmp(ask(db, "SELECT type = 'virtual' FROM pragma_table_list('q')"), "1\n"));
  CHECK("attached, by its name alone", !strcmp(ask(db, "SELECT warplite_convert('Q')"), "1\n"));
  CHECK("temp", !strcmp(ask(db, "SELECT warplite_convert('temp.z')"), "2\n") &&
                    !strcmp(ask(db, "SELECT a FROM z"), "1\n2\n"));
  CHECK("an odd name", !strcmp(ask(db, "SELECT warplite_convert('od.d (\"t')"), "1\n") &&
                           !strcmp(ask(db, "SELECT a FROM \"od.d (\"\"t\""), "8\n"));
  sqlite3_close(db);
}

static void check_file(void) {
  char path[] = "convert-XXXXXX";
  int fd = mkstemp(path);
  if (fd >= 0) close(fd);
  sqlite3 *db = open_db(path), *two;
  run(db,
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b TEXT, c REAL); INSERT INTO t WITH RECURSIVE "
      "n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150000) SELECT i * 3, i % 100, "
      "'text ' || (i % 1000), i / 8.0 FROM n; DELETE FROM t WHERE a = 7");
  const char *sums =
      "SELECT count(*), sum(id), sum(a), sum(c), min(b), max(b), sum(length(b)) FROM t";
  char *before = must(strdup(ask(db, sums)));
  CHECK("a file: to tablet", !strcmp(ask(db, "SELECT warplite_convert('t')"), "148500\n"));
  two = open_db(path);
  CHECK("a file: another connection sees it", !strcmp(ask(two, sums), before));
  CHECK("a file: it is locked for a reader",
        sqlite3_exec(two, "BEGIN; SELECT count(*) FROM t", NULL, NULL, NULL) == SQLITE_OK &&
            strstr(ask(db, "SELECT warplite_convert('t')"), "locked") != NULL);
  CHECK("a file: … and all is as it was", is_tablet(db, "t") && sqlite3_get_autocommit(db));
  sqlite3_exec(two, "COMMIT", NULL, NULL, NULL);
  CHECK("a file: back", !strcmp(ask(db, "SELECT warplite_convert('t')"), "148500\n"));
  CHECK("a file: the same rows", !strcmp(ask(db, sums), before) && !strcmp(ask(two, sums), before));
  free(before);
  sqlite3_close(two);
  sqlite3_close(db);
  unlink(path);
}

/* Many rows go into a tablet table in bulk; of two attached tables SQLite finds the first. */
static void check_ways(void) {
  sqlite3 *db = open_db(":memory:");
  run(db, "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE "
          "i < 10000) SELECT i AS a, 'x' || i AS b FROM n");
  CHECK("all rows", !strcmp(ask(db, "SELECT warplite_convert('t')"), "10000\n"));
  CHECK("in bulk", strstr(warplite_reason(db), "10000 rows in bulk") != NULL);
  run(db, "ATTACH ':memory:' AS one; ATTACH ':memory:' AS two; CREATE TABLE one.u(a); "
          "CREATE TABLE two.u(a)");
  CHECK("converts", !strcmp(ask(db, "SELECT warplite_convert('u')"), "0\n"));
  CHECK("the first", !strcmp(ask(db, "SELECT count(*) FROM one.u_info"), "4\n"));
  CHECK("whole", strstr(ask(db, "SELECT warplite_check('u')"), "'ok'") != NULL);
  sqlite3_close(db);
}

int main(void) {
  check_tables();
  check_ways();
  check_refusals();
  check_transactions();
  check_file();
  return tap_done();
}
