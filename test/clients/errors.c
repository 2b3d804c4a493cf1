/*
** The connection's error after warplite_prepare() and sqlite3_step(), beside SQLite's: result
** codes, sqlite3_errcode(), sqlite3_extended_errcode() and sqlite3_errmsg(), after success as
** after failure.
**
** Invariant: SQLite's side runs the same statement over an ordinary table on a connection that
** warplite has never seen.
*/
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../engines.h"
#include "../tap.h"

#define COLUMNS "id INTEGER PRIMARY KEY, a INT NOT NULL, b TEXT UNIQUE, c CHECK(c<10)"
#define ROWS    ";INSERT INTO t VALUES(1,1,'x',1),(2,2,'y',2)"
#define VIEW    ";CREATE VIEW v AS SELECT id, a FROM t"
#define TRIGGER ";CREATE TRIGGER tr INSTEAD OF INSERT ON w BEGIN SELECT 1; END"

static const char ordinary[] =
    "CREATE TABLE t(" COLUMNS ")" ROWS VIEW ";CREATE VIEW w AS SELECT * FROM t" TRIGGER;
static const char tablet[] = "CREATE VIRTUAL TABLE t USING tablet(" COLUMNS ")" ROWS VIEW
                             ";CREATE VIEW w AS SELECT * FROM t" TRIGGER;

static const char *const statements[] = {
    "SELECT FROM",
    "SELECT * FROM nosuch",
    "SELECT nope FROM t",
    "SELECT a FROM t",
    "SELECT sum(a) FROM t GROUP BY b",
    "SELECT a FROM t WHERE json(b)",
    "SELECT abs(-9223372036854775808) FROM t",
    "SELECT abs(a - 9223372036854775807 - 2) FROM t",
    "SELECT a FROM t LIMIT 'x'",
    "SELECT 1 FROM t WHERE a LIKE 'b' ESCAPE 'long'",
    "EXPLAIN SELECT * FROM nosuch",
    "EXPLAIN QUERY PLAN SELECT FROM",
    "PRAGMA encoding=bogus",
    "PRAGMA nonsense",
    "CREATE TABLE t(a)",
    "CREATE TABLE",
    "DROP TABLE nosuch",
    "ATTACH 'no/such/folder/x.db' AS y",
    "COMMIT",
    "VALUES(1),(2,3)",
    "",
    "-- nothing",
    ";",
    "INSERT INTO t(a) VALUES(5)",
    "INSERT INTO t(a) VALUES(NULL)",
    "INSERT INTO t(a,b) VALUES(1,'x')",
    "INSERT INTO t(a,nope) VALUES(1,2)",
    "INSERT INTO t VALUES(1)",
    "INSERT INTO t SELECT 1",
    "INSERT INTO t DEFAULT VALUES",
    "INSERT INTO t(a,c) VALUES(1,50)",
    "INSERT INTO t(id,a) VALUES('z',1)",
    "INSERT INTO t(id,a) VALUES(1,1)",
    "INSERT INTO t(a) VALUES(1) RETURNING nope",
    "INSERT INTO t(a) VALUES(1) RETURNING a, b",
    "INSERT INTO t(a) VALUES(sum(1)) RETURNING a",
    "INSERT INTO t(a) SELECT a FROM nosuch RETURNING a",
    "INSERT INTO t(a) VALUES(1) ON CONFLICT(nope) DO NOTHING",
    "INSERT INTO t(a) VALUES(1) ON CONFLICT(a) DO NOTHING",
    "INSERT INTO t(id,a) VALUES(1,1) ON CONFLICT(id) DO UPDATE SET a=7",
    "INSERT INTO t(id,a) VALUES(1,1) ON CONFLICT(id) DO UPDATE SET nope=7",
    "INSERT INTO t(a) VALUES(1) ON CONFLICT DO UPDATE SET a=2",
    "UPDATE t SET nope=1",
    "UPDATE t SET a=nope",
    "UPDATE t SET a=NULL",
    "UPDATE t SET a=NULL WHERE id=2 RETURNING a",
    "UPDATE t SET b='x'",
    "UPDATE OR FAIL t SET b='x'",
    "UPDATE t SET id='q'",
    "UPDATE t SET a=a+1 FROM nosuch RETURNING a",
    "DELETE FROM t WHERE nope",
    "DELETE FROM t WHERE sum(a)",
    "DELETE FROM t RETURNING nope",
    "DELETE FROM t WHERE id=1 RETURNING a",
    "INSERT INTO v VALUES(1,2)",
    "INSERT INTO v DEFAULT VALUES RETURNING *",
    "DELETE FROM v RETURNING *",
    "INSERT INTO w(id,a) VALUES(1,2)",
    "INSERT INTO w(id,a) VALUES(1,2) RETURNING a",
};

/* What a statement leaves behind, in words. */
typedef struct trace {
  char text[1200];
  size_t n;
} trace;

static void note(trace *t, sqlite3 *db, const char *what, int rc) {
  /* beside a row SQLite may show the message of an error that it has mended */
  const char *message = rc == SQLITE_ROW ? "" : sqlite3_errmsg(db);
  if (t->n < sizeof t->text)
    t->n += (size_t)snprintf(t->text + t->n, sizeof t->text - t->n, "%s %d, error %d/%d '%s'; ",
                             what, rc, sqlite3_errcode(db), sqlite3_extended_errcode(db), message);
}

static sqlite3 *open_with(const char *engine, const char *schema, bool extended) {
  sqlite3 *db = NULL;
  if (sqlite3_open(":memory:", &db) || (engine && !use_engine(db, engine)) ||
      sqlite3_exec(db, schema, NULL, NULL, NULL)) {
    tap_bad("set-up", "%s", sqlite3_errmsg(db));
    exit(tap_done());
  }
  sqlite3_extended_result_codes(db, extended);
  return db;
}

static void run(const char *engine, const char *schema, const char *sql, bool extended, trace *t) {
  sqlite3 *db = open_with(engine, schema, extended);
  sqlite3_stmt *stmt = NULL;
  int rc = engine ? warplite_prepare(db, sql, -1, &stmt, NULL)
                  : sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
  note(t, db, "prepare", rc);
  for (int i = 0; stmt && i < 8; i++) {
    rc = sqlite3_step(stmt);
    note(t, db, "step", rc);
    if (rc != SQLITE_ROW) break;
  }
  if (stmt) note(t, db, "reset", sqlite3_reset(stmt));
  if (stmt) note(t, db, "finalize", sqlite3_finalize(stmt));
  sqlite3_close(db);
}

static void check_codes(const char *engine, const char *kind, const char *schema, bool extended) {
  char name[100];
  int n_bad = 0;
  snprintf(name, sizeof name, "the connection's error, %s table [%s]%s", kind, engine,
           extended ? ", extended codes" : "");
  for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
    trace got = {.n = 0}, want = {.n = 0};
    run(NULL, ordinary, statements[i], extended, &want);
    run(engine, schema, statements[i], extended, &got);
    if (strcmp(got.text, want.text) == 0) continue;
    n_bad++;
    tap_bad(name, "%s\n#   warplite: %s\n#   SQLite:   %s", statements[i], got.text, want.text);
  }
  if (!n_bad) tap_ok(name);
}

/* Enabling warplite reads nothing, so that a PRAGMA which must come first still does. */
static void check_encoding(void) {
  char file[] = "errors.XXXXXX";
  sqlite3 *db = NULL, *plain = NULL;
  int fd = mkstemp(file);
  if (fd >= 0) close(fd);
  sqlite3_open(file, &plain);
  sqlite3_exec(plain, "CREATE TABLE t(a)", NULL, NULL, NULL);
  sqlite3_close(plain);
  for (int i = 0; i < 2; i++) {
    sqlite3_stmt *stmt = NULL;
    sqlite3_open(file, &db);
    bool enabled = i == 0 || warplite_enable(db) == SQLITE_OK;
    int rc = warplite_prepare(db, "PRAGMA encoding=bogus", -1, &stmt, NULL);
    CHECK(i ? "PRAGMA encoding first, after enabling" : "PRAGMA encoding first",
          enabled && rc == SQLITE_ERROR &&
              !strcmp(sqlite3_errmsg(db), "unsupported encoding: bogus"));
    sqlite3_finalize(stmt);
    sqlite3_close(db);
  }
  unlink(file);
}

/* ---- a virtual table that cannot be connected at the first try */

static int n_connects;

static int flaky_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **msg) {
  if (n_connects++ == 0) {
    *msg = sqlite3_mprintf("not now");
    return SQLITE_ERROR;
  }
  *out = sqlite3_malloc(sizeof **out);
  if (!*out) return SQLITE_NOMEM;
  memset(*out, 0, sizeof **out);
  return sqlite3_declare_vtab(db, "CREATE TABLE x(a)");
}
static int flaky_disconnect(sqlite3_vtab *v) {
  sqlite3_free(v);
  return SQLITE_OK;
}
static int flaky_best_index(sqlite3_vtab *v, sqlite3_index_info *info) {
  return SQLITE_OK;
}
static const sqlite3_module flaky = {
    .xConnect = flaky_connect, .xDisconnect = flaky_disconnect, .xBestIndex = flaky_best_index};

/* What SQLite refuses is refused, also where a second try would do. */
static void check_second_try(void) {
  sqlite3 *db = open_with("cpu", ordinary, false);
  sqlite3_stmt *stmt = NULL;
  sqlite3_create_module(db, "flaky", &flaky, NULL);
  n_connects = 0;
  int rc =
      warplite_prepare(db, "INSERT INTO t(a) SELECT a FROM flaky RETURNING a", -1, &stmt, NULL);
  CHECK("no second try", rc == SQLITE_ERROR && !stmt && sqlite3_errcode(db) == SQLITE_ERROR &&
                             !strcmp(sqlite3_errmsg(db), "not now"));
  sqlite3_finalize(stmt);
  sqlite3_close(db);
}

/* Settings that cannot be applied: the message is the connection's too. */
static void check_settings(void) {
  sqlite3 *db = NULL;
  sqlite3_stmt *stmt = NULL;
  setenv("WARPLITE_SET", "threads=none", 1);
  sqlite3_open(":memory:", &db);
  int rc = warplite_prepare(db, "SELECT 1", -1, &stmt, NULL);
  CHECK("settings that cannot be applied", rc == SQLITE_ERROR &&
                                               sqlite3_errcode(db) == SQLITE_ERROR &&
                                               strstr(sqlite3_errmsg(db), "threads") &&
                                               !strcmp(sqlite3_errmsg(db), warplite_errmsg(db)));
  sqlite3_finalize(stmt);
  sqlite3_close(db);
  unsetenv("WARPLITE_SET");
}

/* ---- what happens to a running SELECT when other statements run between its steps */

static const char *const readers[] = {
    "SELECT a FROM t WHERE a > 0",
    "SELECT a FROM t ORDER BY b DESC",
    "SELECT a FROM t ORDER BY id DESC",
    "SELECT b, count(*) FROM t GROUP BY b || ''",
    "SELECT DISTINCT a FROM t",
    "SELECT x.a FROM t x JOIN t y ON x.a = y.id",
    "SELECT a FROM t UNION ALL SELECT id FROM t",
    "SELECT a FROM t LIMIT 3",
    "SELECT sum(a) FROM t",
};
static const char *const others[] = {
    "BEGIN; CREATE TABLE z(a); ROLLBACK",
    "BEGIN; CREATE INDEX i ON t(a); ROLLBACK",
    "BEGIN; INSERT INTO z0 VALUES(9); ROLLBACK",
    "BEGIN; CREATE TABLE z(a); ROLLBACK; BEGIN; COMMIT",
    "BEGIN; CREATE TEMP TABLE z(a); ROLLBACK",
    "CREATE TABLE z(a)",
    "BEGIN; SAVEPOINT s; CREATE TABLE z(a); ROLLBACK TO s; COMMIT",
    "SAVEPOINT s; CREATE TABLE z(a); ROLLBACK TO s; RELEASE s",
    "ANALYZE",
    "ROLLBACK",
};

static void read_around(const char *engine, const char *before, const char *sql, const char *other,
                        trace *t) {
  sqlite3 *db = open_with(engine, ordinary, false);
  sqlite3_stmt *stmt = NULL, *second = NULL;
  sqlite3_exec(db, "CREATE TABLE z0(a); INSERT INTO t VALUES(3,3,'z',3),(4,4,'w',4)", NULL, NULL,
               NULL);
  sqlite3_exec(db, before, NULL, NULL, NULL);
  note(t, db, "prepare", warplite_prepare(db, sql, -1, &stmt, NULL));
  note(t, db, "step", sqlite3_step(stmt));
  /* another one that has begun, so that there are two to be ended */
  if (!warplite_prepare(db, "SELECT id FROM t", -1, &second, NULL)) sqlite3_step(second);
  t->n += (size_t)snprintf(t->text + t->n, sizeof t->text - t->n, "other %d; ",
                           sqlite3_exec(db, other, NULL, NULL, NULL));
  note(t, db, "step", sqlite3_step(stmt));
  note(t, db, "step", sqlite3_step(stmt));
  note(t, db, "second", sqlite3_step(second));
  sqlite3_finalize(second);
  note(t, db, "finalize", sqlite3_finalize(stmt));
  sqlite3_close(db);
}

static void check_running(const char *engine) {
  static const char *const befores[] = {"", "BEGIN"};
  char name[60];
  int n_bad = 0;
  snprintf(name, sizeof name, "other statements between the steps [%s]", engine);
  for (size_t r = 0; r < sizeof readers / sizeof *readers; r++)
    for (size_t o = 0; o < sizeof others / sizeof *others; o++)
      for (int b = 0; b < 2; b++) {
        trace got = {.n = 0}, want = {.n = 0};
        const char *other = others[o];
        if (b && !strncmp(other, "BEGIN; ", 7)) other += 7;
        read_around("sqlite", befores[b], readers[r], other, &want);
        read_around(engine, befores[b], readers[r], other, &got);
        if (strcmp(got.text, want.text) == 0) continue;
        n_bad++;
        tap_bad(name, "%s; %s; then %s\n#   warplite: %s\n#   SQLite:   %s", befores[b], readers[r],
                other, got.text, want.text);
      }
  if (!n_bad) tap_ok(name);
}

int main(void) {
  static const char *const engines[] = {"sqlite", "cpu", "sim"};
  for (int e = 0; e < 3; e++) {
    for (int extended = 0; extended < 2; extended++) {
      check_codes(engines[e], "ordinary", ordinary, extended);
      check_codes(engines[e], "tablet", tablet, extended);
    }
  }
  check_running("cpu");
  check_running("sim");
  check_encoding();
  check_second_try();
  check_settings();
  return tap_done();
}
