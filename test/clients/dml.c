/*
** INSERT, UPDATE and DELETE of tablet tables, one statement after the other: each runs through
** warplite_prepare() on a tablet table and through SQLite on an ordinary table of the same
** declaration, in two connections. Rows, column names, codes and messages, changes(),
** last_insert_rowid() and, at the end, the tables must be the same.
**
**     dml [--engine sqlite|cpu|sim|cuda]...
**
** Invariants:
** 1. TABLE name(…) makes the table on both sides; everything else is the same text.
** 2. What a statement leaves is checked after each one, so the first that differs is named.
*/
#include <ctype.h>
#include "../engines.h"
#include "../rows.h"
#include "../tap.h"

static const char *const statements[] = {
    "TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT DEFAULT 'dd', c REAL NOT NULL DEFAULT 1.5, "
    "UNIQUE(a, b))",
    "INSERT INTO t VALUES(1, 10, 'x', 1), (2, 20, 'y', 2.5)",
    "INSERT INTO t(a) VALUES(30), (31) RETURNING *",
    "INSERT INTO t(a, b) SELECT a + 1, b FROM t RETURNING id, a, b || '!' AS q, rowid, typeof(c)",
    "UPDATE t SET a = a + 100 WHERE id > 2",
    "UPDATE t SET a = a + 1, b = a || b WHERE id = 1 RETURNING *",
    "DELETE FROM t WHERE a > 125 RETURNING id, a, c, *",
    /* conflicts */
    "INSERT INTO t VALUES(1, 1, 'q', 3)",
    "INSERT OR IGNORE INTO t VALUES(1, 1, 'q', 3), (50, 50, 'q', 3)",
    "INSERT OR REPLACE INTO t VALUES(1, 1, 'q', 3), (51, 50, 'q', 3)",
    "INSERT INTO t VALUES(NULL, 5, 'n', NULL)",
    "INSERT OR REPLACE INTO t VALUES(NULL, 5, 'n', NULL) RETURNING *",
    "INSERT INTO t VALUES('abc', 5, 'n', 1)",
    "INSERT INTO t VALUES('200', 5, 'n2', 1) RETURNING *",
    "INSERT INTO t VALUES(201.0, 5, 'n3', 1) RETURNING *",
    "INSERT INTO t VALUES(201.5, 5, 'n3', 1) RETURNING *",
    "INSERT INTO t DEFAULT VALUES",
    "INSERT INTO t DEFAULT VALUES RETURNING *",
    "UPDATE t SET id = NULL WHERE id = 1",
    "UPDATE t SET c = NULL WHERE id = 1",
    "UPDATE OR IGNORE t SET c = CASE id WHEN 1 THEN NULL ELSE 4 END",
    "UPDATE OR REPLACE t SET c = NULL WHERE id = 2 RETURNING c",
    "UPDATE t SET a = 50, b = 'q'",
    /* ON CONFLICT */
    "INSERT INTO t VALUES(1, 1, 'zz', 3) ON CONFLICT(id) DO UPDATE SET b = excluded.b || t.b, "
    "c = c + excluded.c",
    "INSERT INTO t VALUES(1, 1, 'zz', 3) ON CONFLICT DO NOTHING",
    /* excluded: before the affinity by the rowid, after it by a key */
    "INSERT INTO t VALUES(1, 7.0, 8, '9') ON CONFLICT(id) DO UPDATE SET b = typeof(excluded.a) || "
    "typeof(excluded.b) || typeof(excluded.c) RETURNING *",
    "INSERT INTO t VALUES(98, 50.0, 'q', '9') ON CONFLICT(a, b) DO UPDATE SET b = "
    "typeof(excluded.a) || typeof(excluded.b) || typeof(excluded.c) RETURNING *",
    "INSERT INTO t VALUES(99, 50, 'q', 3) ON CONFLICT(a, b) DO UPDATE SET a = a + 1 RETURNING *",
    "INSERT INTO t VALUES(99, 51, 'q', 3) ON CONFLICT(b, a) DO UPDATE SET id = excluded.id "
    "RETURNING *",
    "INSERT INTO t(a, b) VALUES(51, 'q') ON CONFLICT(id) DO NOTHING ON CONFLICT(a, b) DO UPDATE "
    "SET b = typeof(excluded.rowid) || excluded.c || (excluded.b = 'Q') RETURNING *",
    "INSERT INTO t AS x(id, a) VALUES(1, 3) ON CONFLICT(id) DO UPDATE SET a = x.a + excluded.a "
    "WHERE excluded.a < 3 RETURNING *",
    "INSERT INTO t(id) VALUES(1) ON CONFLICT(id) DO UPDATE SET (a, b) = (SELECT 5, excluded.b) "
    "RETURNING a, b",
    "INSERT OR FAIL INTO t(id, a, b) VALUES(700, 1, 1), (1, 2, 2) ON CONFLICT(id) DO UPDATE SET "
    "(a, b) = (50, 'q'), id = 200",
    /* SET */
    "UPDATE t SET (a, b) = (SELECT 7, 'seven') WHERE id = 1 RETURNING *",
    "UPDATE t SET (a, b) = ((SELECT 8), 'eight'), c = 9 WHERE id = 1 RETURNING *",
    "UPDATE t SET a = 1, a = 2 WHERE id = 1 RETURNING a",
    "UPDATE t SET a = (SELECT max(a) FROM t) + id RETURNING id, a",
    "UPDATE t SET a = (SELECT count(*) + sum(a) FROM t z WHERE z.id < t.id) RETURNING id, a",
    "UPDATE OR REPLACE t SET id = id + 1 RETURNING *",
    /* other tables, WITH, LIMIT */
    "CREATE TABLE o(k, v)",
    "INSERT INTO o VALUES(1, 10), (2, 20), (2, 21), (203, 5)",
    "INSERT INTO t(id, a, b) SELECT k, v, 'o' FROM o WHERE true ON CONFLICT(id) DO UPDATE SET "
    "b = b || excluded.a RETURNING *",
    "UPDATE t SET c = v FROM o WHERE o.k = t.id RETURNING *",
    "UPDATE t AS x SET c = v + x.a FROM (SELECT * FROM o) AS o WHERE o.k = x.id",
    "UPDATE t SET c = p.v + q.v FROM o AS p JOIN o AS q ON p.k = q.k WHERE p.k = t.id AND p.k = 1",
    "DELETE FROM t ORDER BY a DESC LIMIT 2",
    "UPDATE t SET b = 'lim' ORDER BY id LIMIT 1 OFFSET 1",
    "WITH q AS (SELECT 500 AS z) INSERT INTO t(id, a) SELECT z, z FROM q RETURNING *",
    "WITH q(z) AS (VALUES(1)) INSERT INTO t(a) WITH r AS (SELECT z + 1 AS y FROM q) SELECT y FROM "
    "r",
    "WITH q(z) AS (VALUES(2), (500)) DELETE FROM t WHERE id IN (SELECT z FROM q) RETURNING *",
    "WITH q(z) AS (VALUES(1)) UPDATE t SET b = (SELECT z FROM q) || id RETURNING *",
    "REPLACE INTO t(id, a) VALUES(1, 2) RETURNING *",
    /* what is wrong */
    "INSERT INTO t(nocol) VALUES(1)",
    "UPDATE t SET nocol = 1",
    "UPDATE t SET nocol = 1 RETURNING a",
    "UPDATE t SET a = 1 RETURNING nocol",
    "UPDATE t SET a = nocol RETURNING a",
    "UPDATE t AS x SET a = 1 RETURNING x.a",
    "UPDATE t SET a = sum(a) RETURNING a",
    "DELETE FROM t WHERE nocol RETURNING a",
    "INSERT INTO t VALUES(1, 1, 1, 1) ON CONFLICT(nocol) DO NOTHING",
    "INSERT INTO t VALUES(1, 1, 1, 1) ON CONFLICT(c) DO NOTHING",
    "INSERT INTO t VALUES(1, 1, 1, 1) ON CONFLICT(a, id) DO NOTHING",
    "INSERT INTO t VALUES(1, 1, 1, 1) ON CONFLICT(id) DO NOTHING ON CONFLICT(c) DO NOTHING",
    "INSERT INTO t VALUES(1, 1, 1, 1) ON CONFLICT(id) DO UPDATE SET a = nocol",
    "INSERT INTO t VALUES(1, 1, 1, 1) ON CONFLICT(id) DO UPDATE SET a = count(*)",
    "INSERT INTO t VALUES(1, 1, 1, 1) ON CONFLICT(id) DO UPDATE SET a = excluded.nocol",
    /* a transaction */
    "BEGIN",
    "INSERT OR FAIL INTO t(id, a) VALUES(900, 1), (901, 4), (900, 3), (902, 4)",
    "INSERT OR ABORT INTO t(id, a) VALUES(910, 5), (911, 6), (910, 3)",
    "SAVEPOINT s",
    "DELETE FROM t",
    "ROLLBACK TO s",
    "INSERT OR ROLLBACK INTO t(id, a) VALUES(920, 7), (921, 8), (920, 3)",
    /* many rows */
    "CREATE TABLE g AS WITH RECURSIVE g(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM g LIMIT "
    "20000) "
    "SELECT i, i % 100 AS m, 'n' || (i % 50) AS s, i * 0.25 AS r FROM g",
    "TABLE w(id INTEGER PRIMARY KEY, a INT, b TEXT, c REAL NOT NULL)",
    "INSERT INTO w SELECT * FROM g",
    "UPDATE w SET a = a + id, b = 'x' || b WHERE a < 50",
    "UPDATE w SET c = NULL WHERE id > 10",
    "UPDATE OR IGNORE w SET c = CASE WHEN id % 2 THEN c + 1 END WHERE id > 10",
    "UPDATE w SET a = 1000000",
    "UPDATE w SET c = g.r + a FROM g WHERE g.i = w.id AND g.m > 20",
    "UPDATE w SET b = (SELECT s FROM g WHERE g.i = w.id) WHERE a > 60 AND id % 50 = 0",
    "DELETE FROM w WHERE a % 3 = 0",
    "INSERT INTO w(a, c) SELECT m, r FROM g",
    "INSERT INTO w SELECT id, a, b, c FROM w",
    "INSERT OR REPLACE INTO w SELECT id, a + 1, b, c FROM w WHERE id < 6000",
    "DELETE FROM w",
    /* a row of the query fails behind one that breaks a constraint, and before it */
    "TABLE e(k INTEGER PRIMARY KEY, a INT UNIQUE, b INT NOT NULL CHECK(b <> 9000))",
    "CREATE VIEW late AS SELECT i, abs(CASE i WHEN 9500 THEN -9223372036854775808 ELSE i END) AS n "
    "FROM g",
    "INSERT INTO e SELECT i, i % 1000, 1 FROM late WHERE n > 0",
    "INSERT OR FAIL INTO e SELECT i, i % 1000, n FROM late",
    "INSERT INTO e SELECT i + 5000, i + 5000, n FROM late",
    "INSERT INTO e SELECT i + 5000, i + 5000, n FROM late WHERE i <> 9000",
    "INSERT INTO e SELECT i + 5000, i + 5000, n FROM late WHERE i < 15 OR i > 9400",
    "INSERT INTO e SELECT i + 5000, i + 5000, nullif(n, 9400) FROM late WHERE i > 9300",
    "INSERT INTO e SELECT i + 5000, i + 5000, nullif(n, 9600) FROM late WHERE i > 9300",
    "INSERT INTO e SELECT i + 5000, i % 5, n FROM late ORDER BY i DESC",
    "INSERT INTO e SELECT i + 5000, m, n FROM late JOIN (SELECT DISTINCT m FROM g) ON m = i % 200",
    "INSERT INTO e SELECT i + 5000, i % 1000, n FROM late WHERE i > 9300 RETURNING k",
    "INSERT INTO e SELECT k, a, abs(a - 9223372036854775807 - 11) FROM e",
    "DELETE FROM e",
    /* a rollback takes codes back, which other texts take then; beside texts without codes, too */
    "BEGIN",
    "INSERT INTO w SELECT i, i, 'old' || (i % 3), 0 FROM g",
    "ROLLBACK",
    "INSERT INTO w SELECT i, i, 'new' || (i % 3), 0 FROM g",
    "INSERT INTO w SELECT i + 100000, i, 'k' || i, 0 FROM g",
    "BEGIN",
    "INSERT INTO w SELECT i + 200000, i, 'past' || (i % 3), 0 FROM g",
    "ROLLBACK",
    "INSERT INTO w SELECT i + 200000, i, 'next' || (i % 3), 0 FROM g",
    "DELETE FROM w",
    /* many rows of which a late one fails: nothing is written before it is found */
    "TABLE k(id INTEGER PRIMARY KEY, a INT NOT NULL, b TEXT UNIQUE, c INT, UNIQUE(c, a), "
    "CHECK(c <> 13), CHECK(id <> 77777))",
    "INSERT INTO k SELECT i, i, 'b' || i, i + 100 FROM g",
    "BEGIN",
    "INSERT INTO k(a, b, c) SELECT i, 'n' || min(i, 4990), i FROM g WHERE i > 20",
    "INSERT INTO k(a, b, c) SELECT i, 'n' || i, i + (i = 4995) * 100 FROM g WHERE i > 20",
    "INSERT INTO k(a, b, c) SELECT i, iif(i = 4990, 'b7', 'n' || i), -i FROM g",
    "INSERT INTO k(a, b, c) SELECT nullif(i, 4980), 'n' || i, iif(i > 4970, 13, -i) FROM g",
    "INSERT INTO k(a, b, c) SELECT nullif(i, 4980), 'n' || i, iif(i > 4990, 13, -i) FROM g",
    "INSERT INTO k(a, b, c) SELECT nullif(i, 4980), 'n' || min(i, 4900), iif(i > 4990, 13, -i) "
    "FROM g",
    "INSERT INTO k(a, b, c) SELECT nullif(i, 4980), 'b' || i, iif(i > 1, 13, -i) FROM g",
    "INSERT INTO k(a, b, c) SELECT nullif(i, 1), 'b' || i, 13 FROM g",
    "INSERT INTO k SELECT i + 72790, i, 'n' || i, -i FROM g",
    "INSERT OR FAIL INTO k SELECT i + 6000, i, 'f' || min(i, 4500), -i FROM g",
    "INSERT OR IGNORE INTO k SELECT i + 12000, i, 'g' || min(i, 4900), -6000 - i FROM g",
    "INSERT OR ABORT INTO k SELECT i + 18000, i, 'h' || min(i, 4900), -i - 20000 FROM g",
    "UPDATE k SET a = nullif(a, 4000)",
    "UPDATE k SET a = a + 1, b = b",
    "UPDATE k SET c = nullif(c, 13)",
    "INSERT OR ROLLBACK INTO k SELECT i + 18000, i, 'h' || min(i, 4900), -i - 20000 FROM g",
    "SELECT count(*), sum(id), sum(a), count(DISTINCT b), sum(c) FROM k",
    "TABLE v(a INT CHECK(a < 1000000), b TEXT COLLATE NOCASE UNIQUE, CONSTRAINT pos CHECK(a >= 0))",
    "INSERT INTO v SELECT i, 'k' || i FROM g",
    "UPDATE v SET a = a + 990000",
    "UPDATE OR IGNORE v SET a = a + 990000",
    "UPDATE v SET b = upper(b) WHERE a > 4",
    "UPDATE v SET b = 'K1' WHERE a = 2",
    "INSERT INTO v SELECT -i, NULL FROM g",
    "INSERT INTO v VALUES(1, 'K5') ON CONFLICT(b) DO UPDATE SET a = a + excluded.a, "
    "b = excluded.b || lower(b) RETURNING rowid, *",
    /* NOT NULL columns that have a default, and those that have none */
    "TABLE n(x NOT NULL DEFAULT NULL, y NOT NULL, z REAL NOT NULL DEFAULT 3)",
    "REPLACE INTO n DEFAULT VALUES",
    "INSERT INTO n DEFAULT VALUES",
    "INSERT OR REPLACE INTO n VALUES(NULL, 1, NULL)",
    "INSERT OR REPLACE INTO n VALUES(NULL, NULL, NULL)",
    "INSERT OR REPLACE INTO n VALUES(12, 1, NULL) RETURNING *, coalesce(z, x)",
    "UPDATE OR REPLACE n SET x = NULL, y = NULL",
    "UPDATE OR REPLACE n SET x = NULL",
    "UPDATE n SET z = 6 RETURNING z, coalesce(z, x), z + 1, (z)",
    "INSERT INTO n VALUES(13, 'n', 0.5), (14, 'm', 7)",
    "DELETE FROM n WHERE x < 14 RETURNING coalesce(z, rowid), z, n.z, z AS r, (z), n.z AS q, "
    "CASE WHEN z THEN z END, max(z, 1), x, n.x, x + 1, (SELECT z)",
    "DELETE FROM n RETURNING *, -z, z || '', nullif(z, 1) AS u, typeof(z)",
    "INSERT INTO n VALUES(1, 2, 3), (2, 3, 4), (3, 4, 5)",
    "UPDATE n SET x = x + 10 WHERE rowid = '3.'",
    "UPDATE n SET x = x + 10 WHERE rowid = 2.0",
    "UPDATE n SET x = x + 10 WHERE rowid = 2.5",
    "UPDATE n SET x = x + 10 WHERE rowid = '2x'",
    "UPDATE n SET x = x + 10 WHERE rowid = 1e19",
    "DELETE FROM n WHERE rowid = '3.0'",
    /* a dictionary that is rolled back, and another with the same codes */
    "TABLE d(k)",
    "BEGIN",
    "INSERT INTO d SELECT 'one' FROM g",
    "SELECT min(k), max(k), k FROM d",
    "ROLLBACK",
    "INSERT INTO d SELECT 'two' FROM g",
    "SELECT min(k), max(k), k FROM d",
    "SELECT k FROM d WHERE rowid = 77",
    "UPDATE d SET k = k || 'x' WHERE rowid = 5 RETURNING k",
    /* a table that is made anew in a transaction, and is not after all */
    "BEGIN",
    "INSERT INTO n VALUES(1, 2, 3)",
    "SAVEPOINT s",
    "DROP TABLE n",
    "TABLE n(p, q)",
    "INSERT INTO n SELECT i, m FROM g",
    "ROLLBACK TO s",
    "COMMIT",
    "SELECT * FROM n",
    "BEGIN",
    "SAVEPOINT s",
    "TABLE m(p, q)",
    "INSERT INTO m SELECT i, m FROM g",
    "INSERT INTO m VALUES(5, 6)",
    "ROLLBACK TO s",
    "COMMIT",
    "BEGIN",
    "INSERT INTO n VALUES(4, 5, 6)",
    "SAVEPOINT s",
    "ALTER TABLE n RENAME TO o2",
    "INSERT INTO o2 VALUES(5, 6, 7)",
    "ROLLBACK TO s",
    "INSERT INTO n VALUES(8, 9, 7)",
    "COMMIT",
    "SELECT * FROM n",
};

typedef struct side {
  sqlite3 *db;
  prepare_fn *prepare;
  rows r;
} side;

static char *text_for(const char *sql, bool tablet) {
  if (strncmp(sql, "TABLE ", 6) != 0) return sqlite3_mprintf("%s", sql);
  const char *open = strchr(sql, '(');
  return tablet ? sqlite3_mprintf("CREATE VIRTUAL TABLE %.*s USING tablet%s", (int)(open - sql - 6),
                                  sql + 6, open)
                : sqlite3_mprintf("CREATE %s", sql);
}

static void run(side *s, const char *sql, bool tablet) {
  char *text = text_for(sql, tablet);
  rows_query(&s->r, s->db, s->prepare, text);
  sqlite3_free(text);
}

static bool same_state(side *a, side *b, const char *name) {
  if (sqlite3_changes(a->db) != sqlite3_changes(b->db))
    return tap_bad(name, "changes() is %d, SQLite's %d", sqlite3_changes(b->db),
                   sqlite3_changes(a->db));
  if (sqlite3_last_insert_rowid(a->db) != sqlite3_last_insert_rowid(b->db))
    return tap_bad(name, "last_insert_rowid() is %lld, SQLite's %lld",
                   sqlite3_last_insert_rowid(b->db), sqlite3_last_insert_rowid(a->db));
  return sqlite3_get_autocommit(a->db) == sqlite3_get_autocommit(b->db) ||
         tap_bad(name, "autocommit differs");
}

/* Whether a statement may have changed the table. Those that write name it; others end or undo
** something. */
static bool may_change(const char *sql, const char *table) {
  static const char *const writes[] = {"INSERT", "REPLACE", "UPDATE", "DELETE", "WITH"};
  bool write = !strncmp(sql, "SELECT", 6);
  for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
    write |= !strncmp(sql, writes[i], strlen(writes[i]));
  if (!write) return true;
  for (const char *at = sql; (at = strstr(at, table)); at++)
    if ((at == sql || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[strlen(table)]))
      return true;
  return false;
}

static bool same_tables(side *a, side *b, const char *statement, const char *name) {
  static const char *const tables[] = {"t", "w", "v", "n", "k"};
  char why[900];
  for (int k = 0; k < 5; k++) {
    if (!may_change(statement, tables[k])) continue;
    if (sqlite3_table_column_metadata(a->db, NULL, tables[k], NULL, NULL, NULL, NULL, NULL, NULL))
      continue; /* not made yet */
    char *sql = sqlite3_mprintf("SELECT * FROM %s", tables[k]);
    for (int native = 0; native < 2; native++) {
      rows_query(&a->r, a->db, sqlite3_prepare_v2, sql);
      rows_query(&b->r, b->db, native ? warplite_prepare : sqlite3_prepare_v2, sql);
      if (rows_same(&b->r, &a->r, false, why, sizeof why)) continue;
      sqlite3_free(sql);
      return tap_bad(name, "then table %s: %s", tables[k], why);
    }
    sqlite3_free(sql);
  }
  return true;
}

/* budget: NULL, or a host_budget that makes the rows of an INSERT come in pieces. */
static void test(const char *engine, const char *route, const char *budget) {
  side a = {.prepare = sqlite3_prepare_v2}, b = {.prepare = warplite_prepare};
  char name[600], why[900];
  int n_bulk = 0, n_live = 0;
  if (sqlite3_open(":memory:", &a.db) || sqlite3_open(":memory:", &b.db) ||
      !use_engine(b.db, engine) || !use_setting(b.db, "route", route) ||
      (budget && !use_setting(b.db, "host_budget", budget))) {
    tap_bad(engine, "cannot be set up: %s", sqlite3_errmsg(b.db));
    return;
  }
  for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++) {
    const char *sql = statements[i];
    snprintf(name, sizeof name, "%s %s%s%s: %s", engine, route, budget ? " host_budget=" : "",
             budget ? budget : "", sql);
    run(&a, sql, false);
    run(&b, sql, true);
    n_bulk += strstr(warplite_reason(b.db), " in bulk") != NULL;
    n_live += strstr(warplite_reason(b.db), " one by one") != NULL;
    if (!rows_same(&b.r, &a.r, false, why, sizeof why)) {
      tap_bad(name, "%s (%s)", why, warplite_reason(b.db));
      continue;
    }
    if (same_state(&a, &b, name) && same_tables(&a, &b, sql, name)) tap_ok(name);
  }
  snprintf(name, sizeof name, "%s %s: some in bulk, some row by row", engine, route);
  CHECK(name, n_bulk >= 6 && n_live >= 20);
  rows_free(&a.r);
  rows_free(&b.r);
  sqlite3_close(a.db);
  CHECK("the connection closes", sqlite3_close(b.db) == SQLITE_OK);
}

/* ---- statements as the interface sees them */

static long number(sqlite3 *db, const char *sql) {
  rows r = {0};
  rows_query(&r, db, warplite_prepare, sql);
  long n = r.n_cells ? (long)r.cells[0].u.i : -1;
  rows_free(&r);
  return n;
}

static int deny_delete(void *arg, int action, const char *a, const char *b, const char *c,
                       const char *d) {
  (void)b;
  (void)c;
  (void)d;
  (void)arg;
  return action == SQLITE_DELETE && a && !strcmp(a, "t") ? SQLITE_DENY : SQLITE_OK;
}

static void test_interface(void) {
  sqlite3 *db = NULL;
  sqlite3_stmt *s = NULL;
  enum { N = 2500 };
  if (sqlite3_open(":memory:", &db) || !use_engine(db, "cpu")) abort();
  sqlite3_exec(db, "CREATE VIRTUAL TABLE t USING tablet(a UNIQUE, b)", NULL, NULL, NULL);
  /* more parameters than a function takes */
  sqlite3_str *text = sqlite3_str_new(db);
  sqlite3_str_appendall(text, "INSERT INTO t VALUES");
  for (int i = 0; i < N; i++) sqlite3_str_appendf(text, i ? ",(?,:b)" : "(?,:b)");
  sqlite3_str_appendall(text, " ON CONFLICT(a) DO UPDATE SET b = b + :b + :c");
  char *sql = sqlite3_str_finish(text);
  CHECK("many parameters", warplite_prepare(db, sql, -1, &s, NULL) == SQLITE_OK);
  sqlite3_free(sql);
  CHECK("all counted", sqlite3_bind_parameter_count(s) == N + 2);
  CHECK("names stay", sqlite3_bind_parameter_index(s, ":b") == 2 &&
                          sqlite3_bind_parameter_index(s, ":c") == N + 2);
  for (int i = 1; i <= N + 1; i++) sqlite3_bind_int(s, i, i == 2 ? 7 : i % 2000);
  sqlite3_bind_int(s, N + 2, 100);
  CHECK("runs", sqlite3_step(s) == SQLITE_DONE && sqlite3_changes(db) == N);
  CHECK("rows", number(db, "SELECT count(*) FROM t") == 2000);
  CHECK("updated", number(db, "SELECT count(*) FROM t WHERE b = 114") == N - 2000);
  /* again, after the schema has changed under it */
  sqlite3_reset(s);
  sqlite3_exec(db, "CREATE TABLE other(x)", NULL, NULL, NULL);
  CHECK("runs again", sqlite3_step(s) == SQLITE_DONE && sqlite3_changes(db) == N);
  sqlite3_finalize(s);
  /* the source of the rewritten statement is no way to write */
  sqlite3_exec(db, "BEGIN IMMEDIATE; INSERT INTO other VALUES(1)", NULL, NULL, NULL);
  CHECK("a SELECT changes nothing", sqlite3_exec(db, "SELECT * FROM wl_dml('DELETE FROM t')", NULL,
                                                 NULL, NULL) == SQLITE_ERROR);
  sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
  CHECK("nothing", number(db, "SELECT count(*) FROM t") == 2000);
  CHECK("prepared", warplite_prepare(db, "DELETE FROM t WHERE b > 0", -1, &s, NULL) == SQLITE_OK);
  CHECK("it writes", !sqlite3_stmt_readonly(s));
  sqlite3_set_authorizer(db, deny_delete, NULL);
  CHECK("an authorizer set later is asked", sqlite3_step(s) == SQLITE_AUTH);
  sqlite3_finalize(s);
  CHECK("and one set before",
        warplite_prepare(db, "DELETE FROM t WHERE b > 0 RETURNING a", -1, &s, NULL) == SQLITE_AUTH);
  sqlite3_set_authorizer(db, NULL, NULL);
  /* the engine is told before it runs */
  bool told = false;
  warplite_prepare(db, "EXPLAIN QUERY PLAN UPDATE t SET b = 1 RETURNING b", -1, &s, NULL);
  while (s && sqlite3_step(s) == SQLITE_ROW)
    told |=
        strstr((const char *)sqlite3_column_text(s, 3), "cpu: UPDATE of tablet table t") != NULL;
  CHECK("EXPLAIN QUERY PLAN names the engine", told);
  sqlite3_finalize(s);
  /* a command to the table is no change */
  rows r = {0};
  rows_query(&r, db, warplite_prepare, "INSERT INTO t(t) VALUES('fold')");
  CHECK("commands go through", r.rc == SQLITE_DONE);
  rows_query(&r, db, warplite_prepare,
             "SELECT reason FROM warplite_log WHERE sql LIKE 'INSERT INTO t VALUES(?%'");
  CHECK("the log has a line a run", r.n_rows == 2);
  rows_free(&r);
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}

/* Tablets that go while a statement stands on a row of one of them. */
static void test_moving(void) {
  static const char *const moves[] = {"INSERT INTO t(t) VALUES('optimize')",
                                      "DELETE FROM t WHERE a < 190000",
                                      "DELETE FROM t WHERE a > 190000"};
  for (int k = 0; k < 3; k++) {
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    rows r = {0};
    if (sqlite3_open(":memory:", &db) || !use_engine(db, "cpu")) abort();
    rows_query(&r, db, warplite_prepare, "CREATE VIRTUAL TABLE t USING tablet(a, b TEXT)");
    rows_query(&r, db, warplite_prepare,
               "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) "
               "INSERT INTO t SELECT i, 'b' || i FROM n");
    rows_query(&r, db, warplite_prepare, "DELETE FROM t WHERE a % 2");
    sqlite3_prepare_v2(db,
                       "SELECT x, iif(x = 1, 'first', a || b) FROM t CROSS JOIN (SELECT 1 AS x "
                       "UNION ALL SELECT 2) WHERE t.rowid >= 199000",
                       -1, &s, NULL);
    CHECK("stands on a row", sqlite3_step(s) == SQLITE_ROW);
    rows_query(&r, db, warplite_prepare, moves[k]);
    CHECK("they go", r.rc == SQLITE_DONE);
    CHECK("the same row", sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) == 2);
    const char *text = (const char *)sqlite3_column_text(s, 1);
    CHECK("its values, or none", k == 2 ? !text : text && !strcmp(text, "199000b199000"));
    CHECK("the next row", sqlite3_step(s) == (k == 2 ? SQLITE_DONE : SQLITE_ROW));
    sqlite3_finalize(s);
    rows_free(&r);
    CHECK("closes after it", sqlite3_close(db) == SQLITE_OK);
  }
}

/* A DROP that fails, because a table behind it is being read, leaves nothing in memory. */
static void test_failed_drops(void) {
  sqlite3_int64 before = 0;
  for (int n = 0; n < 60; n++) { /* what is kept for all connections is there after the first */
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    bool ok = sqlite3_open(":memory:", &db) == SQLITE_OK && use_engine(db, "cpu") &&
              sqlite3_exec(db,
                           "CREATE VIRTUAL TABLE t USING tablet(a, b UNIQUE);"
                           "INSERT INTO t VALUES(1, 1), (2, 2)",
                           NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_prepare_v2(db, "SELECT * FROM t_delta", -1, &s, NULL);
    ok &= sqlite3_step(s) == SQLITE_ROW;
    for (int k = 0; k < 3; k++)
      ok &= sqlite3_exec(db, "DROP TABLE t", NULL, NULL, NULL) == SQLITE_LOCKED;
    sqlite3_finalize(s);
    if (n % 2) ok &= sqlite3_exec(db, "DROP TABLE t", NULL, NULL, NULL) == SQLITE_OK;
    ok &= sqlite3_close(db) == SQLITE_OK;
    if (n == 9) before = sqlite3_memory_used();
    if (!ok) CHECK("a DROP fails while a table behind it is read", ok);
  }
  CHECK("DROPs that fail keep no memory", sqlite3_memory_used() <= before);
}

int main(int argc, char **argv) {
  bool any = false;
  for (int i = 1; i + 1 < argc; i++) {
    if (strcmp(argv[i], "--engine")) continue;
    test(argv[++i], "always", NULL);
    any = true;
  }
  if (!any) {
    test("cpu", "always", NULL);
    test("cpu", "cost", NULL);
    test("sqlite", "always", NULL);
    test("sqlite", "always", "65536");
    test("cpu", "always", "65536");
    test_interface();
    test_moving();
    test_failed_drops();
  }
  return tap_done();
}
