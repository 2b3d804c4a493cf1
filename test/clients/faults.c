/*
** When things go wrong: dropped tables, locks, corrupt and missing files, authorizers,
** overridden functions, odd settings, tiny budgets. The right SQLite code, a message, no
** crash, and the connection works on.
**
** Invariants:
** 1. SQLite is asked the same thing in the same state; where it has an answer, that one
**    must come. Only what SQLite has no word for is expected by hand.
** 2. After every fault a plain query runs and is right.
*/
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "../engines.h"
#include "../rows.h"
#include "../tap.h"

static char dir[200], path[260];
static rows got, want;

static void exec(sqlite3 *db, const char *sql) {
  if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
    tap_bad("set-up", "%.100s: %s", sql, sqlite3_errmsg(db));
}

static sqlite3 *open_db(const char *file, const char *engine) {
  sqlite3 *db;
  if (sqlite3_open(file, &db) || !use_engine(db, engine)) {
    tap_bad("faults", "cannot open %s: %s", file, sqlite3_errmsg(db));
    exit(tap_done());
  }
  return db;
}

static void fill(sqlite3 *db, int n) {
  char sql[500];
  snprintf(sql, sizeof sql,
           "CREATE TABLE t(a INTEGER, b REAL, c TEXT);"
           "INSERT INTO t WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<%d)"
           " SELECT n, n/4.0, 'text number '||n FROM k",
           n);
  exec(db, sql);
}

static void same(const char *name, sqlite3 *db, const char *sql) {
  char why[900], label[300];
  snprintf(label, sizeof label, "%s: %.150s", name, sql);
  rows_query(&got, db, warplite_prepare, sql);
  char reason[200];
  snprintf(reason, sizeof reason, "%s", warplite_reason(db));
  rows_query(&want, db, sqlite3_prepare_v2, sql);
  if (rows_same(&got, &want, true, why, sizeof why))
    tap_ok(label);
  else
    tap_bad(label, "%s (%s)", why, reason);
}

static void reason_is(const char *name, sqlite3 *db, const char *prefix) {
  if (!strncmp(warplite_reason(db), prefix, strlen(prefix)))
    tap_ok(name);
  else
    tap_bad(name, "the reason is %s", warplite_reason(db));
}

/* ---- the schema changes under a prepared statement */

static void check_dropped(void) {
  sqlite3 *db = open_db(":memory:", "cpu");
  sqlite3_stmt *st = NULL, *theirs = NULL;
  fill(db, 100);
  CHECK("dropped: prepares", warplite_prepare(db, "SELECT a FROM t", -1, &st, NULL) == SQLITE_OK &&
                                 sqlite3_prepare_v2(db, "SELECT a FROM t", -1, &theirs, NULL) == 0);
  exec(db, "DROP TABLE t");
  int rc = sqlite3_step(st);
  char msg[300];
  snprintf(msg, sizeof msg, "%s", sqlite3_errmsg(db));
  int rc2 = sqlite3_step(theirs);
  if (rc == rc2 && strstr(msg, "no such table: t"))
    tap_ok("dropped: the step fails as SQLite's");
  else
    tap_bad("dropped: the step fails as SQLite's", "%d %s, SQLite %d %s", rc, msg, rc2,
            sqlite3_errmsg(db));
  sqlite3_reset(st);
  fill(db, 7); /* the table is back: the statement too */
  int n = 0;
  while (sqlite3_step(st) == SQLITE_ROW) n++;
  CHECK("dropped: made again, the statement runs again", n == 7);
  sqlite3_reset(st);
  exec(db, "ALTER TABLE t RENAME COLUMN a TO z");
  CHECK("dropped: a renamed column is an error", sqlite3_step(st) == SQLITE_ERROR);
  sqlite3_finalize(st);
  sqlite3_finalize(theirs);
  same("after a drop", db, "SELECT z, c FROM t");
  CHECK("dropped: closes", sqlite3_close(db) == SQLITE_OK);
}

/* A statement's columns are written into it: others, by whatever change, are an error. */
static void check_columns(const char *name, const char *sql, const char *change, bool fails) {
  sqlite3 *db = open_db(":memory:", "cpu");
  sqlite3_stmt *st = NULL;
  exec(db, "CREATE TABLE t(a INTEGER, b TEXT); INSERT INTO t VALUES(1,'x'),(2,'y')");
  exec(db, "CREATE TABLE u(a, b); INSERT INTO u VALUES(1,2); CREATE VIEW v AS SELECT a, b FROM u");
  exec(db, "ATTACH ':memory:' AS p; CREATE TABLE p.s(a, b); INSERT INTO p.s VALUES(1,'x')");
  int rc = warplite_prepare(db, sql, -1, &st, NULL);
  reason_is(name, db, "cpu:");
  for (int i = 0; i < 2 && !rc; i++) {
    CHECK(name, sqlite3_step(st) == SQLITE_ROW);
    sqlite3_reset(st);
  }
  exec(db, change);
  rc = sqlite3_step(st);
  if (fails)
    CHECK(name, rc == SQLITE_ERROR && strstr(sqlite3_errmsg(db), "prepare it again"));
  else
    CHECK(name, rc == SQLITE_ROW);
  sqlite3_finalize(st);
  same(name, db, sql);
  CHECK(name, sqlite3_close(db) == SQLITE_OK);
}

static void check_altered(void) {
  check_columns("ADD COLUMN", "SELECT * FROM t", "ALTER TABLE t ADD COLUMN c", true);
  check_columns("DROP COLUMN", "SELECT * FROM t", "ALTER TABLE t DROP COLUMN b", true);
  check_columns("RENAME COLUMN", "SELECT * FROM t", "ALTER TABLE t RENAME COLUMN b TO c", true);
  check_columns("ADD and DROP COLUMN", "SELECT * FROM t",
                "ALTER TABLE t ADD COLUMN c; ALTER TABLE t DROP COLUMN b", true);
  check_columns("another type", "SELECT * FROM t",
                "ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN b REAL", false);
  check_columns("t.*", "SELECT count(*), t.* FROM t GROUP BY a",
                "ALTER TABLE t ADD COLUMN c; ALTER TABLE t DROP COLUMN b", true);
  check_columns("inside a view", "SELECT * FROM v", "ALTER TABLE u RENAME COLUMN b TO c", true);
  check_columns("another view", "SELECT * FROM v",
                "DROP VIEW v; CREATE VIEW v AS SELECT b, a FROM u", true);
  check_columns("an attached database", "SELECT * FROM p.s",
                "ALTER TABLE p.s ADD COLUMN c; ALTER TABLE p.s DROP COLUMN b", true);
  check_columns("upper case", "SELECT a FROM t", "ALTER TABLE t RENAME COLUMN a TO A", true);
  check_columns("a column beside", "SELECT a FROM t", "ALTER TABLE t ADD COLUMN c", false);
  check_columns("another column", "SELECT a AS x FROM t", "ALTER TABLE t DROP COLUMN b", false);
  check_columns("no change", "SELECT * FROM t", "CREATE INDEX i ON t(a)", false);
}

/* An unfinalized statement keeps a connection open, and lives on as SQLite's would. */
static void check_close(void) {
  sqlite3 *db = open_db(":memory:", "cpu");
  sqlite3_stmt *st = NULL;
  fill(db, 10);
  CHECK("close: prepares", warplite_prepare(db, "SELECT a FROM t", -1, &st, NULL) == SQLITE_OK);
  CHECK("close: first row", sqlite3_step(st) == SQLITE_ROW);
  CHECK("close: is refused while a statement lives", sqlite3_close(db) == SQLITE_BUSY);
  CHECK("close_v2: is deferred", sqlite3_close_v2(db) == SQLITE_OK);
  CHECK("close_v2: the statement goes on",
        sqlite3_step(st) == SQLITE_ROW && sqlite3_column_int(st, 0) == 2);
  CHECK("close_v2: and is finalized", sqlite3_finalize(st) == SQLITE_OK);
  db = open_db(":memory:", "cpu");
  exec(db, "CREATE TABLE u(a)");
  CHECK("close: enable twice",
        warplite_enable(db) == SQLITE_OK && warplite_enable(db) == SQLITE_OK);
  same("enabled twice", db, "SELECT a FROM u");
  CHECK("close: closes", sqlite3_close(db) == SQLITE_OK);
}

/* ---- files */

static void check_locked(void) {
  unlink(path);
  sqlite3 *a = open_db(path, "cpu"), *b = open_db(path, "cpu");
  fill(a, 1000);
  same("not yet locked", b, "SELECT sum(a) FROM t");
  exec(a, "BEGIN EXCLUSIVE");
  same("locked", b, "SELECT sum(a) FROM t");
  CHECK("locked: is SQLITE_BUSY", got.rc == SQLITE_BUSY);
  same("locked", b, "SELECT a FROM t WHERE a>990");
  exec(a, "UPDATE t SET a=a+1; COMMIT");
  same("unlocked", b, "SELECT sum(a) FROM t");
  CHECK("unlocked: sees the commit", got.rc == SQLITE_DONE && got.cells[0].u.i == 501500);
  CHECK("locked: closes", sqlite3_close(a) == SQLITE_OK && sqlite3_close(b) == SQLITE_OK);
}

static void overwrite(long at, long n) {
  FILE *f = fopen(path, "r+b");
  if (!f) return;
  fseek(f, at, SEEK_SET);
  for (long i = 0; i < n; i++) fputc((int)(i * 37 + 11) & 255, f);
  fclose(f);
}

static void check_corrupt(void) {
  static const struct {
    const char *name;
    long at, n;
  } wounds[] = {{"corrupt: leaf pages", 200 * 4096, 8 * 4096},
                {"corrupt: a page's head", 50 * 4096, 16},
                {"corrupt: a root page", 4096, 4096},
                {"corrupt: the file's head", 0, 100},
                {"corrupt: the schema", 100, 3000}};
  for (size_t i = 0; i < sizeof wounds / sizeof wounds[0]; i++) {
    unlink(path);
    sqlite3 *db = open_db(path, "cpu");
    exec(db, "PRAGMA page_size=4096");
    fill(db, 40000);
    sqlite3_close(db);
    overwrite(wounds[i].at, wounds[i].n);
    db = open_db(path, "cpu");
    same(wounds[i].name, db, "SELECT sum(a), max(c) FROM t");
    CHECK("corrupt: SQLite sees it too",
          want.rc == SQLITE_CORRUPT || want.rc == SQLITE_NOTADB || want.rc == SQLITE_ERROR);
    same(wounds[i].name, db, "SELECT a, b, c FROM t");
    same(wounds[i].name, db, "SELECT count(*) FROM t WHERE b>10");
    /* refused where not even the schema can be read */
    sqlite3_exec(db, "ATTACH ':memory:' AS m; CREATE TABLE m.x(a); INSERT INTO m.x VALUES(1)", NULL,
                 NULL, NULL);
    same("after corruption", db, "SELECT a FROM m.x");
    CHECK("corrupt: closes", sqlite3_close(db) == SQLITE_OK);
  }
  unlink(path);
  sqlite3 *db = open_db(path, "cpu");
  fill(db, 40000);
  sqlite3_close(db);
  if (truncate(path, 300 * 1024) != 0) tap_bad("truncate", "cannot");
  db = open_db(path, "cpu");
  same("cut short", db, "SELECT sum(a) FROM t");
  CHECK("cut short: closes", sqlite3_close(db) == SQLITE_OK);
}

static void check_missing(void) {
  sqlite3 *db = NULL;
  sqlite3_stmt *a = NULL, *b = NULL;
  int rc = sqlite3_open_v2("/nonexistent/folder/x.db", &db, SQLITE_OPEN_READWRITE, NULL);
  CHECK("missing: SQLite refuses", rc == SQLITE_CANTOPEN);
  int ra = warplite_prepare(db, "SELECT a FROM t", -1, &a, NULL);
  int rb = sqlite3_prepare_v2(db, "SELECT a FROM t", -1, &b, NULL);
  if (ra == rb && !a)
    tap_ok("missing: the code is SQLite's");
  else
    tap_bad("missing: the code is SQLite's", "%d, SQLite %d", ra, rb);
  CHECK("missing: reason", warplite_reason(db) != NULL);
  sqlite3_close(db);
  unlink(path);
  if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK)
    tap_bad("missing", "opened");
  sqlite3_close(db);
  /* an empty file is an empty database; a read-only one is read */
  db = open_db(path, "cpu");
  same("empty file", db, "SELECT a FROM t");
  fill(db, 50);
  sqlite3_close(db);
  if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK || !use_engine(db, "cpu"))
    tap_bad("read-only", "%s", sqlite3_errmsg(db));
  same("read-only", db, "SELECT a, c FROM t WHERE a>40");
  reason_is("read-only: is native", db, "cpu:");
  CHECK("read-only: closes", sqlite3_close(db) == SQLITE_OK);
}

/* ---- authorizer */

static int deny(void *what, int code, const char *a, const char *b, const char *c, const char *d) {
  const char *rule = what;
  if (code != SQLITE_READ || !a) return SQLITE_OK;
  if (!strcmp(rule, "deny b") && b && !strcmp(b, "b")) return SQLITE_DENY;
  if (!strcmp(rule, "ignore b") && b && !strcmp(b, "b")) return SQLITE_IGNORE;
  if (!strcmp(rule, "deny wl") && !strncmp(a, "wl_", 3)) return SQLITE_DENY;
  return SQLITE_OK;
}

static int deny_select(void *what, int code, const char *a, const char *b, const char *c,
                       const char *d) {
  return code == SQLITE_SELECT ? SQLITE_DENY : SQLITE_OK;
}

static void check_authorizer(void) {
  static const char *const list[] = {"SELECT a, b FROM t WHERE a<5", "SELECT a FROM t WHERE b>3",
                                     "SELECT sum(b) FROM t", "SELECT a, c FROM t LIMIT 3",
                                     "SELECT * FROM t LIMIT 2"};
  static const char *const rules[] = {"deny b", "ignore b", "deny wl", "allow"};
  sqlite3 *db = open_db(":memory:", "cpu");
  sqlite3_stmt *st = NULL;
  fill(db, 50);
  for (size_t r = 0; r < 4; r++) {
    sqlite3_set_authorizer(db, deny, (void *)rules[r]);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) same(rules[r], db, list[i]);
  }
  sqlite3_set_authorizer(db, deny_select, NULL);
  same("deny SELECT", db, list[0]);
  sqlite3_set_authorizer(db, NULL, NULL);
  /* one set between prepare and step makes SQLite prepare, and ask, anew */
  CHECK("authorizer: prepares", warplite_prepare(db, list[0], -1, &st, NULL) == SQLITE_OK);
  sqlite3_set_authorizer(db, deny, (void *)"deny b");
  int rc = sqlite3_step(st);
  CHECK("authorizer: set later, it still denies", rc == SQLITE_AUTH);
  sqlite3_finalize(st);
  sqlite3_set_authorizer(db, NULL, NULL);
  same("authorizer gone", db, list[0]);
  reason_is("authorizer gone: is native", db, "cpu:");
  CHECK("authorizer: closes", sqlite3_close(db) == SQLITE_OK);
}

/* ---- what the application changed */

static void my_step(sqlite3_context *ctx, int n, sqlite3_value **v) {
  int *p = sqlite3_aggregate_context(ctx, sizeof *p);
  if (p) ++*p;
}

static void my_final(sqlite3_context *ctx) {
  int *p = sqlite3_aggregate_context(ctx, sizeof *p);
  sqlite3_result_int(ctx, p ? -*p : 0);
}

static int backwards(void *x, int na, const void *a, int nb, const void *b) {
  int d = memcmp(b, a, (size_t)(na < nb ? na : nb));
  return d ? d : nb - na;
}

/* What a Unicode-aware NOCASE does: the capital e acute equals the small one. */
static int unicode(void *x, int na, const void *a, int nb, const void *b) {
  const unsigned char *p = a, *q = b;
  if (na == 2 && nb == 2 && p[0] == 0xc3 && q[0] == 0xc3 && (p[1] | 0x20) == (q[1] | 0x20))
    return 0;
  int n = na < nb ? na : nb, d = n ? strncasecmp(a, b, (size_t)n) : 0;
  return d ? d : na - nb;
}

static void check_unicode_nocase(void) {
  sqlite3 *db = open_db(":memory:", "cpu");
  exec(db, "CREATE TABLE n(x TEXT COLLATE NOCASE, y TEXT); INSERT INTO n "
           "VALUES('\xc3\xa9','e'),('E','\xc3\x89')");
  same("SQLite's NOCASE", db, "SELECT x, y FROM n WHERE x='\xc3\x89' OR x='e'");
  reason_is("SQLite's NOCASE is native", db, "cpu:");
  sqlite3_create_collation(db, "NOCASE", SQLITE_UTF8, NULL, unicode);
  same("a Unicode NOCASE", db, "SELECT x, y FROM n WHERE x='\xc3\x89' OR x='e'");
  reason_is("a Unicode NOCASE: SQLite runs it", db, "sqlite:");
  exec(db, "CREATE TABLE plain(x TEXT); INSERT INTO plain VALUES('\xc3\xa9')");
  same("a Unicode NOCASE, by name", db, "SELECT x FROM plain WHERE x='\xc3\x89' COLLATE NOCASE");
  same("and without it", db, "SELECT x FROM plain WHERE x>'a'");
  reason_is("and without it: is native", db, "cpu:");
  CHECK("NOCASE: closes", sqlite3_close(db) == SQLITE_OK);
}

/* A function overridden after the statement was prepared, and one that takes any arguments. */
static void check_late_override(void) {
  sqlite3 *db = open_db(":memory:", "cpu");
  sqlite3_stmt *st = NULL, *theirs = NULL;
  fill(db, 50);
  const char *sql = "SELECT sum(a), total(b) FROM t";
  CHECK("late override: prepares", warplite_prepare(db, sql, -1, &st, NULL) == SQLITE_OK &&
                                       sqlite3_prepare_v2(db, sql, -1, &theirs, NULL) == SQLITE_OK);
  sqlite3_create_function(db, "sum", 1, SQLITE_UTF8, NULL, NULL, my_step, my_final);
  CHECK("late override: steps",
        sqlite3_step(st) == SQLITE_ROW && sqlite3_step(theirs) == SQLITE_ROW);
  CHECK("late override: SQLite's answer",
        sqlite3_column_int(st, 0) == sqlite3_column_int(theirs, 0));
  sqlite3_finalize(st);
  sqlite3_finalize(theirs);
  sqlite3_create_function(db, "avg", -1, SQLITE_UTF8, NULL, NULL, my_step, my_final);
  same("avg() of any arguments overridden", db, "SELECT avg(a) FROM t");
  CHECK("late override: closes", sqlite3_close(db) == SQLITE_OK);
}

/* A table without schema in its name gives way to one that comes before it later. */
static void check_shadowing(void) {
  sqlite3 *db = open_db(":memory:", "cpu");
  static const char *const steps[] = {
      "ATTACH ':memory:' AS p; ATTACH ':memory:' AS q",
      "CREATE TABLE q.s(a); INSERT INTO q.s VALUES('q')",
      "CREATE TABLE p.s(a, b); INSERT INTO p.s VALUES('p', 1)",
      "CREATE VIEW main.s AS SELECT 'view' AS a",
      "CREATE TEMP TABLE s(a, z); INSERT INTO temp.s VALUES('temp', 2)",
      "DROP TABLE temp.s",
      "DROP VIEW main.s",
      "DETACH p",
  };
  for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
    exec(db, steps[i]);
    if (i) same(steps[i], db, "SELECT a FROM s");
    if (i) same(steps[i], db, "SELECT * FROM s");
  }
  reason_is("shadowing: native in the end", db, "cpu:");
  CHECK("shadowing: closes", sqlite3_close(db) == SQLITE_OK);
}

static void check_overrides(void) {
  sqlite3 *db = open_db(":memory:", "cpu");
  fill(db, 50);
  exec(db, "CREATE TABLE n(x TEXT COLLATE NOCASE); INSERT INTO n VALUES('a'),('B'),('c')");
  same("before overriding", db, "SELECT sum(a), count(*) FROM t");
  sqlite3_create_function(db, "sum", 1, SQLITE_UTF8, NULL, NULL, my_step, my_final);
  same("sum() overridden", db, "SELECT sum(a), count(*) FROM t");
  reason_is("sum() overridden: SQLite runs it", db, "sqlite:");
  sqlite3_create_function(db, "count", 0, SQLITE_UTF8, NULL, NULL, my_step, my_final);
  same("count(*) overridden", db, "SELECT count(*) FROM t");
  sqlite3_create_function(db, "max", 1, SQLITE_UTF8, NULL, NULL, my_step, my_final);
  same("max() overridden", db, "SELECT max(a), min(a) FROM t");
  sqlite3_create_collation(db, "NOCASE", SQLITE_UTF8, NULL, backwards);
  same("NOCASE overridden", db, "SELECT x FROM n WHERE x>'b'");
  same("NOCASE overridden", db, "SELECT min(x), total(1) FROM n");
  sqlite3_create_collation(db, "mine", SQLITE_UTF8, NULL, backwards);
  same("own collation", db, "SELECT x FROM n WHERE x>'b' COLLATE mine");
  reason_is("own collation: SQLite runs it", db, "sqlite:");
  CHECK("overrides: closes", sqlite3_close(db) == SQLITE_OK);
  if (sqlite3_open(":memory:", &db) != SQLITE_OK) return;
  exec(db,
       "PRAGMA encoding='UTF-16'; CREATE TABLE t(a, c TEXT); INSERT INTO t VALUES(1,'é'),(2,'z')");
  CHECK("UTF-16: engine", use_engine(db, "cpu"));
  same("UTF-16", db, "SELECT a, c, c||'!' FROM t WHERE c>'a'");
  reason_is("UTF-16: SQLite runs it", db, "sqlite:");
  same("UTF-16 without a table", db, "SELECT hex(CAST('ab' AS BLOB))");
  reason_is("UTF-16 without a table: SQLite runs it", db, "sqlite:");
  CHECK("UTF-16: closes", sqlite3_close(db) == SQLITE_OK);
}

/* What a statement without a table depends on: collations and the encoding, which may yet change.
 */
static void check_without_table(void) {
  sqlite3 *db = open_db(":memory:", "cpu");
  const char *collated = "SELECT 'a' < 'B' COLLATE NOCASE",
             *cast = "SELECT hex(CAST('ab' AS BLOB))";
  same("no table: NOCASE", db, collated);
  reason_is("no table: NOCASE is native", db, "cpu:");
  same("no table: UTF-8", db, cast);
  reason_is("no table: UTF-8 is native", db, "cpu:");
  sqlite3_create_collation(db, "NOCASE", SQLITE_UTF8, NULL, backwards);
  same("no table: NOCASE overridden", db, collated);
  reason_is("no table: NOCASE overridden, SQLite runs it", db, "sqlite:");
  exec(db, "PRAGMA encoding='UTF-16be'");
  same("no table: UTF-16", db, cast);
  reason_is("no table: UTF-16, SQLite runs it", db, "sqlite: the database is encoded in UTF-16be");
  CHECK("no table: closes", sqlite3_close(db) == SQLITE_OK);
}

static void check_shared_cache(void) {
  sqlite3 *a, *b;
  const char *uri = "file:shared?mode=memory&cache=shared";
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
  if (sqlite3_open_v2(uri, &a, flags, NULL) || sqlite3_open_v2(uri, &b, flags, NULL)) {
    tap_skip("shared cache", "not in this SQLite");
    return;
  }
  CHECK("shared cache: engine", use_engine(a, "cpu") && use_engine(b, "cpu"));
  fill(a, 20);
  same("shared cache", b, "SELECT sum(a) FROM t");
  exec(b, "PRAGMA read_uncommitted=1");
  exec(a, "BEGIN; UPDATE t SET a=a+100");
  same("shared cache, uncommitted", b, "SELECT sum(a) FROM t");
  exec(a, "ROLLBACK");
  same("shared cache, rolled back", b, "SELECT sum(a) FROM t");
  CHECK("shared cache: closes", sqlite3_close(a) == SQLITE_OK && sqlite3_close(b) == SQLITE_OK);
}

/* ---- limits */

static void check_limits(const char *engine) {
  sqlite3 *db = open_db(":memory:", engine);
  size_t cap = 200000, n;
  char *sql = must(malloc(cap));
  fill(db, 3000);
  n = (size_t)snprintf(sql, cap, "SELECT a");
  for (int i = 0; i < 900; i++) n += (size_t)snprintf(sql + n, cap - n, "+%s", i % 3 ? "a" : "b");
  snprintf(sql + n, cap - n, " FROM t WHERE a<50");
  same("900 operators", db, sql);
  n = (size_t)snprintf(sql, cap, "SELECT a");
  for (int i = 0; i < 1500; i++) n += (size_t)snprintf(sql + n, cap - n, ",a+%d", i);
  snprintf(sql + n, cap - n, " FROM t WHERE a<20");
  same("1,501 result columns", db, sql);
  n = (size_t)snprintf(sql, cap, "SELECT a FROM t WHERE a IN (-1");
  for (int i = 0; i < 5000; i++) n += (size_t)snprintf(sql + n, cap - n, ",%d", i * 3);
  snprintf(sql + n, cap - n, ")");
  same("IN with 5,001 values", db, sql);
  n = (size_t)snprintf(sql, cap, "SELECT sum(a)");
  for (int i = 0; i < 200; i++) n += (size_t)snprintf(sql + n, cap - n, ",max(a*%d+b),count(c)", i);
  snprintf(sql + n, cap - n, " FROM t");
  same("401 aggregates", db, sql);
  n = (size_t)snprintf(sql, cap, "CREATE TABLE wide(c0");
  for (int i = 1; i < 1900; i++) n += (size_t)snprintf(sql + n, cap - n, ",c%d", i);
  snprintf(sql + n, cap - n, ")");
  exec(db, sql);
  exec(db, "INSERT INTO wide(c0,c7,c1899) VALUES(1,'x',2.5),(2,NULL,3)");
  same("1,900 columns", db, "SELECT * FROM wide");
  same("1,900 columns", db, "SELECT c1899, c7 FROM wide WHERE c0>1");
  exec(db,
       "CREATE TABLE long(s TEXT); INSERT INTO long VALUES(printf('%.*c',1000000,'x')),('short'),"
       "(printf('%.*c',70000,'y'))");
  same("long text", db, "SELECT s||'!' FROM long");
  same("long text", db, "SELECT max(s), min(s) FROM long WHERE s<>'short'");
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1500000);
  same("too long a text", db, "SELECT s||s FROM long");
  same("still works", db, "SELECT count(*) FROM long");
  free(sql);
  CHECK("limits: closes", sqlite3_close(db) == SQLITE_OK);
}

/* A lowered limit on patterns: the error is SQLite's, wherever the pattern comes from. */
static void check_patterns(const char *engine) {
  static const char *const queries[] = {
      "SELECT s LIKE '%123456%' FROM p",
      "SELECT s GLOB '*12345*' FROM p",
      "SELECT count(*) FROM p WHERE s LIKE '%1234%'",
      "SELECT s FROM p WHERE s LIKE pat",
      "SELECT s FROM p WHERE s GLOB pat",
      "SELECT s FROM p WHERE pat LIKE s",
      "SELECT like(pat,s) FROM p",
      "SELECT max(s LIKE '%a'||pat) FROM p",
      "SELECT k FROM p WHERE 'text' LIKE s ESCAPE '\\'",
      "SELECT s LIKE '_____%' FROM p WHERE 0",
      "SELECT NULL LIKE '_____________' FROM p",
      "SELECT 'abc' LIKE '%123456789%', count(*) FROM p",
      "SELECT x.k FROM p x JOIN p y ON x.s LIKE y.pat",
      "SELECT k, sum(s LIKE '%1234567%') FROM p GROUP BY k",
      "SELECT (SELECT count(*) FROM p WHERE s LIKE '%1234567%')",
      "SELECT s LIKE 12345678901 FROM p"};
  static const int limits[] = {100000, 8, 7, 6, 5, 1, 0};
  sqlite3 *db = open_db(":memory:", engine);
  exec(db, "CREATE TABLE p(k INTEGER, s TEXT, pat TEXT); INSERT INTO p VALUES(1,'abc','%b%'),"
           "(1,'x123456y','%123456%'),(2,NULL,'é%é%é'),(2,'','')");
  for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
    sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, limits[l]);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
      same("a limit on patterns", db, queries[i]);
  }
  CHECK("patterns: closes", sqlite3_close(db) == SQLITE_OK);
}

/* Budgets too small for the table: another way is found, and the answer stays. */
static void check_budgets(void) {
  static const struct {
    const char *engine, *name;
  } list[] = {{"cpu", "host_budget"}, {"sim", "host_budget"}, {"sim", "device_budget"}};
  for (int i = 0; i < 3; i++) {
    sqlite3 *db = open_db(":memory:", list[i].engine);
    char label[80];
    fill(db, TEST_SANITIZED ? 70000 : 200000);
    for (int k = 0; k < 2; k++) {
      const char *value = k ? "4000000" : "1000";
      snprintf(label, sizeof label, "%s=%s under %s", list[i].name, value, list[i].engine);
      if (!use_setting(db, list[i].name, value)) {
        tap_ok(label); /* a budget refused as too small is an answer too */
        continue;
      }
      same(label, db, "SELECT sum(a), total(b), max(c), count(*) FROM t");
      same(label, db, "SELECT a, b FROM t WHERE a%10000=5");
    }
    CHECK("budgets: closes", sqlite3_close(db) == SQLITE_OK);
  }
}

/* A database put in another's place, with the same cookie, data version and file. */
static void check_deserialize(const char *schema) {
  sqlite3 *db = open_db(":memory:", "cpu");
  exec(db, "CREATE TABLE t(a); INSERT INTO t VALUES(-1); ATTACH ':memory:' AS aux");
  char label[80], sql[200];
  for (int k = 0; k < 4; k++) {
    sqlite3 *other = NULL;
    sqlite3_int64 n = 0;
    sqlite3_open(":memory:", &other);
    snprintf(sql, sizeof sql, "CREATE TABLE t(a); INSERT INTO t VALUES(%d),(%d)", k, k + 100);
    exec(other, sql);
    unsigned char *image = sqlite3_serialize(other, "main", &n, 0);
    sqlite3_close(other);
    snprintf(label, sizeof label, "deserialize %d into %s", k, schema);
    CHECK(label, sqlite3_deserialize(db, schema, image, n, n, SQLITE_DESERIALIZE_FREEONCLOSE) == 0);
    snprintf(sql, sizeof sql, "SELECT a FROM %s.t WHERE a>=0", schema);
    same(label, db, sql);
    same(label, db, "SELECT count(*) FROM main.t");
  }
  CHECK("deserialize: closes", sqlite3_close(db) == SQLITE_OK);
}

int main(void) {
  const char *tmp = getenv("TMPDIR");
  snprintf(dir, sizeof dir, "%s/faults-XXXXXX", tmp && strlen(tmp) < 150 ? tmp : "/tmp");
  if (!mkdtemp(dir)) {
    tap_bad("faults", "cannot make a folder %s", dir);
    return tap_done();
  }
  snprintf(path, sizeof path, "%s/x.db", dir);
  check_dropped();
  check_altered();
  check_close();
  check_locked();
  check_corrupt();
  check_missing();
  check_authorizer();
  check_overrides();
  check_without_table();
  check_unicode_nocase();
  check_late_override();
  check_shadowing();
  check_shared_cache();
  check_limits("cpu");
  check_limits("sim");
  check_patterns("cpu");
  check_patterns("sim");
  check_budgets();
  check_deserialize("main");
  check_deserialize("aux");
  unlink(path);
  rmdir(dir);
  rows_free(&got);
  rows_free(&want);
  return tap_done();
}
