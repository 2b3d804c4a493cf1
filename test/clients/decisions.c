/*
** Who runs a query with the default settings, and why: shapes that SQLite answers from a few pages
** must stay there, scans must not, and a table that is read again and again gets loaded.
*/
#include <math.h>
#include <time.h>
#include <unistd.h>
#include "../rows.h"
#include "../tap.h"
#include "warplite.h"

static sqlite3 *db;
static rows got, want;

static void exec(const char *sql) {
  if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) tap_bad(sql, "%s", sqlite3_errmsg(db));
}

/* Runs a query on both sides. The reason must begin with engine and contain words. */
static void check(const char *sql, const char *engine, const char *words) {
  char why[900];
  rows_query(&got, db, warplite_prepare, sql);
  char reason[600];
  snprintf(reason, sizeof reason, "%s", warplite_reason(db));
  rows_query(&want, db, sqlite3_prepare_v2, sql);
  if (strncmp(reason, engine, strlen(engine)) != 0 || !strstr(reason, words))
    tap_bad(sql, "%s", reason);
  else if (!rows_same(&got, &want, false, why, sizeof why))
    tap_bad(sql, "%s", why);
  else
    tap_ok(sql);
}

static void check_shapes(void) {
  static const char *const in_sqlite[] = {
      "SELECT sum(x) FROM t WHERE id BETWEEN 100000 AND 101000",
      "SELECT sum(x) FROM t WHERE a BETWEEN 5000 AND 5100",
      "SELECT sum(x) FROM t WHERE id < abs(-20)",
      "SELECT count(*) FROM t WHERE k = 17 AND ts > 1000000",
      "SELECT max(ts) FROM t",
      "SELECT EXISTS(SELECT 1 FROM t WHERE x > 3)",
      "SELECT avg(x) FROM (SELECT x FROM t ORDER BY id DESC LIMIT 1000)",
      "SELECT id, ts FROM t ORDER BY ts DESC, id LIMIT 10",
      "SELECT id, (SELECT count(*) FROM t AS o WHERE o.k = t.k) FROM t WHERE id < 5",
      "SELECT count(*) FROM t WHERE s GLOB 'n1234*'",
      "SELECT sum(x) FROM t WHERE id IN (3, 70000, 150000)",
      "SELECT sum(x) FROM t WHERE a = 77 OR s = 'n55'",
      "SELECT count(*) FROM t WHERE rare = 'b'",
      "SELECT sum(v) FROM w WHERE g = 3 AND h BETWEEN 5 AND 5000",
      "WITH q AS (SELECT * FROM t) SELECT x FROM q WHERE id = 5",
      "SELECT p.x FROM t AS p JOIN t AS q ON q.id = p.id + 1 WHERE p.a = 5",
      "SELECT y, count(*) FROM t WHERE id > 199950 GROUP BY y",
  };
  for (size_t i = 0; i < sizeof in_sqlite / sizeof *in_sqlite; i++)
    check(in_sqlite[i], "sqlite:", "rows");
  /* The columns are in memory for these, so that only the time of the run counts. */
  exec("SELECT warplite_load('t')");
  static const char *const native[] = {
      "SELECT sum(x) FROM t WHERE y > 3",
      "SELECT sum(x) FROM t WHERE id > 1000",
      "SELECT sum(x) FROM t WHERE a BETWEEN 1000 AND 190000",
      "SELECT y, count(*), sum(x) FROM t GROUP BY y",
      "SELECT count(*), sum(x) FROM t WHERE rare = 'a'",
  };
  for (size_t i = 0; i < sizeof native / sizeof *native; i++) check(native[i], "cpu:", "rows");
  for (size_t i = 0; i < sizeof in_sqlite / sizeof *in_sqlite; i++)
    check(in_sqlite[i], "sqlite:", "rows");
}

static const char *prepared_reason(const char *sql) {
  sqlite3_stmt *s = NULL;
  if (warplite_prepare(db, sql, -1, &s, NULL) != SQLITE_OK) tap_bad(sql, "%s", sqlite3_errmsg(db));
  sqlite3_finalize(s);
  return warplite_reason(db);
}

static void check_params(void) {
  static const char *const ranges[] = {"SELECT sum(x) FROM t WHERE id BETWEEN ? AND ?",
                                       "SELECT sum(x) FROM t WHERE a > ?",
                                       "SELECT sum(x) FROM t WHERE s GLOB ?"};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    const char *reason = prepared_reason(ranges[i]);
    if (strncmp(reason, "sqlite:", 7) == 0 && strstr(reason, "is not known before it runs"))
      tap_ok(ranges[i]);
    else
      tap_bad(ranges[i], "%s", reason);
  }
  const char *scan = "SELECT sum(x) FROM t WHERE y > ?";
  const char *reason = prepared_reason(scan);
  if (strncmp(reason, "cpu:", 4) == 0)
    tap_ok(scan);
  else
    tap_bad(scan, "%s", reason);
}

/* A query that alone does not pay for loading its column. After some runs the load pays. A change
** of the table starts the count again. */
static void check_loading(void) {
  static const char sql[] = "SELECT sum(z) FROM t WHERE a < 5000";
  int native_at[2] = {-1, -1};
  exec("SELECT warplite_unload('t')");
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 400 && native_at[round] < 0; i++)
      if (strncmp(prepared_reason(sql), "cpu:", 4) == 0) native_at[round] = i;
    check(sql, "cpu:", "earlier statements took longer than a load");
    check(sql, "cpu:", "rows");
    CHECK("loaded columns are used", !strstr(warplite_reason(db), "to load"));
    exec("UPDATE t SET z = z + 1 WHERE id = 7");
  }
  CHECK("the first run does not load", native_at[0] > 0);
  CHECK("the first run after a change does not load", native_at[1] > 0);
}

/* Runs that take longer than estimated raise the estimate to what they take, not above it. */
static void check_corrections(void) {
  static const char sql[] = "SELECT count(*) FROM t WHERE s LIKE '%1%2%3%' OR s LIKE '%3%2%1%'";
  double fastest = 1e9, estimate = 0;
  char unit[8] = "", name[120];
  exec("SELECT warplite_load('t')");
  exec("SELECT warplite_set('threads', 1)");
  for (int i = 0; i < 30; i++) {
    struct timespec t0, t1;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    rows_query(&got, db, warplite_prepare, sql);
    clock_gettime(CLOCK_MONOTONIC, &t1);
    double ms = (double)(t1.tv_sec - t0.tv_sec) * 1e3 + (double)(t1.tv_nsec - t0.tv_nsec) / 1e6;
    if (ms < fastest) fastest = ms;
  }
  const char *at = strstr(prepared_reason(sql), "estimated ");
  if (at) sscanf(at, "estimated %lf %7s", &estimate, unit);
  if (strcmp(unit, "us") == 0) estimate /= 1000;
  snprintf(name, sizeof name, "corrected: %.2f ms, estimated %.2f ms", fastest, estimate);
  CHECK(name, estimate > 0 && estimate < 2.5 * fastest);
  CHECK("it stays native", strncmp(prepared_reason(sql), "cpu:", 4) == 0);
}

/* The compiler refuses columns that it has to see first. It is not asked again at each run. */
static void check_refusal(void) {
  static const char sql[] = "SELECT ts, min(x) FROM t GROUP BY ts";
  exec("SELECT warplite_load('t')");
  rows_query(&got, db, warplite_prepare, sql);
  CHECK("a query that the compiler refuses", strstr(warplite_reason(db), "min() has ties") != NULL);
  CHECK("its next run is SQLite's", strstr(prepared_reason(sql), "estimated") != NULL);
}

/* LIMIT cuts between equal rows of a join with a table that is read twice, which shows only during
** the run. SQLite then begins again, and the next run of the text is SQLite's from the start. */
static void check_giving_up(void) {
  static const char sql[] = "SELECT p.id, r.z FROM t AS p JOIN w ON w.h = p.id JOIN t AS r ON "
                            "r.id = w.h ORDER BY p.y LIMIT 10";
  static const char known[] = "SELECT p.id FROM t AS p JOIN w ON w.h = p.id ORDER BY p.y LIMIT 10";
  char first[512];
  sqlite3_stmt *s = NULL;
  exec("SELECT warplite_load('t')");
  exec("SELECT warplite_load('w')");
  if (warplite_prepare(db, sql, -1, &s, NULL) != SQLITE_OK) tap_bad(sql, "%s", sqlite3_errmsg(db));
  snprintf(first, sizeof first, "%s", warplite_reason(db));
  while (sqlite3_step(s) == SQLITE_ROW) {}
  sqlite3_finalize(s);
  CHECK("a run that gives up begins natively", strncmp(first, "cpu:", 4) == 0);
  CHECK("it gives up", strstr(warplite_reason(db), "treats as equal") != NULL);
  CHECK("the next run is SQLite's", strncmp(prepared_reason(sql), "sqlite:", 7) == 0);
  /* Each table is read once, in an order that SQLite's program shows. */
  warplite_prepare(db, known, -1, &s, NULL);
  while (sqlite3_step(s) == SQLITE_ROW) {}
  sqlite3_finalize(s);
  CHECK("a known order of equal rows needs no other run",
        strncmp(warplite_reason(db), "cpu:", 4) == 0);
}

/* The rows of tables whose rowids do not say how many there are. */
static void check_sizes(void) {
  static const char *const tables[] = {"w", "sparse"};
  exec("CREATE TABLE sparse(id INTEGER PRIMARY KEY, v);"
       "INSERT INTO sparse SELECT id * 1000003, y FROM t WHERE id <= 50000");
  for (int i = 0; i < 2; i++) {
    char sql[100], name[100];
    sqlite3_stmt *s = NULL;
    snprintf(sql, sizeof sql, "SELECT v FROM %s LIMIT 1", tables[i]);
    double rows = 0, real = i ? 50000 : 200000;
    warplite_prepare(db, sql, -1, &s, NULL);
    sqlite3_finalize(s);
    sscanf(warplite_reason(db), "sqlite: about %lf rows", &rows);
    snprintf(name, sizeof name, "the rows of %s: %.0f, estimated %.0f", tables[i], real, rows);
    CHECK(name, rows > real * 0.7 && rows < real * 1.4);
  }
}

/* The rows of a change need not pass through a virtual table, so they cost less than those of a
** SELECT. SQLite reads all rows of a tablet table without a key. */
static void check_change(void) {
  static const char sql[] = "UPDATE changed SET y = y + 1 WHERE x <= 10";
  exec("CREATE VIRTUAL TABLE changed USING tablet(x INTEGER, y INTEGER, z INTEGER); "
       "INSERT INTO changed SELECT id * 7919 % 200003, id, 5 FROM t");
  rows_query(&got, db, warplite_prepare, sql);
  const char *reason = warplite_reason(db);
  if (strstr(reason, "rows from cpu"))
    tap_ok(sql);
  else
    tap_bad(sql, "%s", reason);
  exec("DROP TABLE changed");
}

int main(void) {
  const char *dir = getenv("TMPDIR");
  char path[400];
  snprintf(path, sizeof path, "%s/decisions-%d.db", dir ? dir : "/tmp", (int)getpid());
  unlink(path);
  if (sqlite3_open(path, &db)) return 1;
  exec(
      "PRAGMA synchronous=OFF; CREATE TABLE t(id INTEGER PRIMARY KEY, a, k, ts, s TEXT, rare TEXT,"
      " x REAL, y INTEGER, z INTEGER);"
      "CREATE TABLE w(g, h, v, PRIMARY KEY(g, h)) WITHOUT ROWID;"
      "INSERT INTO t WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 200000)"
      " SELECT i, i * 7919 % 200000, i % 2000, i * 10, 'n' || i, iif(i % 5000, 'a', 'b'),"
      " i % 1000 * 0.25, i % 100, i % 77 FROM c;"
      "INSERT INTO w SELECT id % 10, id, y FROM t;"
      "CREATE INDEX t_a ON t(a); CREATE INDEX t_k ON t(k, ts); CREATE INDEX t_ts ON t(ts);"
      "CREATE INDEX t_s ON t(s); CREATE INDEX t_rare ON t(rare)");
  if (warplite_enable(db) != SQLITE_OK) tap_bad("enable", "%s", sqlite3_errmsg(db));
  exec("SELECT warplite_set('threads', 2)"); /* the choices depend on the number of threads */
  check_sizes();
  check_shapes();
  check_params();
  check_loading();
  check_refusal();
  check_corrections();
  check_change();
  exec("SELECT warplite_set('threads', 16)"); /* natively much faster, if it did not give up */
  check_giving_up();
  sqlite3_close(db);
  unlink(path);
  return tap_done();
}
