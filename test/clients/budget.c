/*
** Memory budgets: the same answers whether a table is resident on the device, goes through
** it a few tablets at a time, or does not fit at all; and what the reason says of each.
** On the simulator, and with WL_TEST_CUDA in the environment on CUDA too.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warplite.h>

static int failed;
static void check(int ok, const char *what, const char *detail) {
  printf("%s budget: %s%s%s\n", ok ? "ok" : "not ok", what, ok ? "" : " - ", ok ? "" : detail);
  failed |= !ok;
}

static void run(sqlite3 *db, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *sql = sqlite3_vmprintf(fmt, ap), *msg = NULL;
  va_end(ap);
  if (sqlite3_exec(db, sql, NULL, NULL, &msg)) {
    printf("not ok budget: %s - %s\n", sql, msg);
    failed = 1;
  }
  sqlite3_free(sql);
  sqlite3_free(msg);
}

/* Everything a statement gives, folded into one number with types and order. */
static unsigned long long digest(sqlite3_stmt *s, long *n_rows, int *rc) {
  unsigned long long h = 1469598103934665603ULL;
  *n_rows = 0;
  while ((*rc = sqlite3_step(s)) == SQLITE_ROW) {
    ++*n_rows;
    for (int c = 0; c < sqlite3_column_count(s); c++) {
      h = (h ^ (unsigned)sqlite3_column_type(s, c)) * 1099511628211ULL;
      const unsigned char *p = sqlite3_column_blob(s, c);
      for (int i = 0; i < sqlite3_column_bytes(s, c); i++) h = (h ^ p[i]) * 1099511628211ULL;
    }
  }
  sqlite3_finalize(s);
  return h;
}

static const char *const queries[] = {
    "SELECT id, i, r FROM t WHERE i > 20",
    "SELECT * FROM t WHERE id % 1000 < 3",
    "SELECT s || '-' || i, m FROM t WHERE i < 5",
    "SELECT count(*), sum(i), total(r), min(i), max(r), count(m) FROM t WHERE i IS NOT NULL",
    "SELECT sum(id * 4611686018427), avg(id * 4611686018427) FROM t WHERE id < 1000",
    "SELECT id FROM t WHERE s = 'text 77' LIMIT 100 OFFSET 50",
    "SELECT sum(r * r) FROM t",
};

static void test(const char *device) {
  sqlite3 *db;
  if (sqlite3_open(":memory:", &db) || warplite_enable(db)) {
    check(0, "a connection", "cannot be opened");
    return;
  }
  run(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, i INTEGER, r REAL, s TEXT, m);"
          "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x < 200000)"
          "INSERT INTO t SELECT x, CASE WHEN x%%7 THEN x%%101-50 END, (x%%4093-2000)*0.125, 'text "
          "'||(x%%1009),"
          " CASE x%%4 WHEN 0 THEN x WHEN 1 THEN x*0.5 WHEN 2 THEN 'm'||x END FROM c");
  run(db,
      "SELECT warplite_set('route','always'), warplite_set('engine','gpu'), "
      "warplite_set('device','%s')",
      device);
  /* plenty; a few tablets at a time; one at a time; none */
  static const char *const budgets[] = {"900M", "20M", "9M", "64K"};
  for (int b = 0; b < 4; b++) {
    run(db, "SELECT warplite_set('device_budget','%s'), warplite_unload('t')", budgets[b]);
    for (int k = 0; k < (int)(sizeof queries / sizeof *queries); k++) {
      sqlite3_stmt *ours = NULL, *theirs = NULL;
      long n1, n2;
      int rc1, rc2;
      char what[300], detail[800];
      snprintf(what, sizeof what, "%s, device_budget %s: %s", device, budgets[b], queries[k]);
      int rc = warplite_prepare(db, queries[k], -1, &ours, NULL);
      sqlite3_prepare_v2(db, queries[k], -1, &theirs, NULL);
      unsigned long long h1 = digest(ours, &n1, &rc1), h2 = digest(theirs, &n2, &rc2);
      const char *reason = warplite_reason(db);
      snprintf(detail, sizeof detail, "%d, %d against %d, %ld rows against %ld (%s)", rc, rc1, rc2,
               n1, n2, reason);
      int ok = rc == 0 && rc1 == rc2 && n1 == n2 && h1 == h2;
      /* the fifth overflows 63 bits in the sum of magnitudes and is the CPU's business */
      if (ok && b < 3 && k != 4) ok = strncmp(reason, "gpu: ", 5) == 0;
      if (ok && b == 3)
        ok = strncmp(reason, "cpu: ", 5) == 0 && strstr(reason, "device_budget") != NULL;
      check(ok, what, detail);
    }
  }
  /* a host budget that the table does not fit leaves it to SQLite, and says so */
  run(db, "SELECT warplite_set('device_budget','900M'), warplite_set('engine','cpu'), "
          "warplite_unload('t'), warplite_set('host_budget','200K')");
  sqlite3_stmt *s = NULL;
  long n;
  int rc;
  warplite_prepare(db, "SELECT sum(i), sum(id) FROM t", -1, &s, NULL);
  digest(s, &n, &rc);
  check(rc == SQLITE_DONE && n == 1 && strncmp(warplite_reason(db), "sqlite: ", 8) == 0 &&
            strstr(warplite_reason(db), "host_budget"),
        "a table over host_budget runs in SQLite and says so", warplite_reason(db));
  run(db, "SELECT warplite_set('host_budget','1G')");
  warplite_prepare(db, "SELECT sum(i), sum(id) FROM t", -1, &s, NULL);
  digest(s, &n, &rc);
  check(rc == SQLITE_DONE && strncmp(warplite_reason(db), "cpu: ", 5) == 0,
        "a larger host_budget takes it again", warplite_reason(db));
  check(sqlite3_close(db) == SQLITE_OK, "the connection closes", sqlite3_errmsg(db));
}

/*
** What host_budget leaves beside the columns is what groups and sorts may take: they go through
** temporary files, or leave the statement to SQLite and name the setting. With enough of it
** all of these are native.
*/
static void test_groups(void) {
  static const struct {
    const char *sql;
    int small; /* whether it is native with the small budget too */
  } some[] = {
      {"SELECT id%10000, count(*), sum(i), avg(r), max(id) FROM t GROUP BY id%10000", 1},
      {"SELECT id*7919%20011/2, count(*), total(r) FROM t GROUP BY 1 ORDER BY 2, 1", 1},
      {"SELECT r, count(*), sum(id) FROM t GROUP BY r", 1},
      {"SELECT count(DISTINCT id*3), count(DISTINCT r) FROM t", 1},
      {"SELECT id, r FROM t ORDER BY r, id LIMIT 20", 1},
      {"SELECT id*3, count(*), sum(r) FROM t GROUP BY 1", 0},
      {"SELECT id, i, r FROM t ORDER BY r DESC", 0},
      {"SELECT DISTINCT id*3, r FROM t", 0},
      {"SELECT i, group_concat(id*3) FROM t GROUP BY i", 0},
      {"SELECT id || 'x', count(*) FROM t GROUP BY 1", 0},
  };
  sqlite3 *db;
  if (sqlite3_open(":memory:", &db) || warplite_enable(db)) {
    check(0, "a connection", "cannot be opened");
    return;
  }
  run(db,
      "CREATE TABLE t(id INTEGER PRIMARY KEY, i INTEGER, r REAL);"
      "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x < 200000)"
      "INSERT INTO t SELECT x, CASE WHEN x%%7 THEN x%%101-50 END, (x*31%%4093-2000)*0.125 FROM c");
  run(db, "SELECT warplite_set('route','always'), warplite_set('engine','cpu'), "
          "warplite_set('threads','2')");
  for (int b = 0; b < 2; b++) {
    const char *budget = b ? "5M" : "1G";
    run(db, "SELECT warplite_set('host_budget','%s')", budget);
    for (int k = 0; k < (int)(sizeof some / sizeof *some); k++) {
      sqlite3_stmt *ours = NULL, *theirs = NULL;
      long n1, n2;
      int rc1, rc2;
      char what[300], detail[800];
      snprintf(what, sizeof what, "host_budget %s: %s", budget, some[k].sql);
      int rc = warplite_prepare(db, some[k].sql, -1, &ours, NULL);
      sqlite3_prepare_v2(db, some[k].sql, -1, &theirs, NULL);
      unsigned long long h1 = digest(ours, &n1, &rc1), h2 = digest(theirs, &n2, &rc2);
      const char *reason = warplite_reason(db);
      snprintf(detail, sizeof detail, "%d, %d against %d, %ld rows against %ld (%s)", rc, rc1, rc2,
               n1, n2, reason);
      int ok = rc == 0 && rc1 == rc2 && n1 == n2 && h1 == h2;
      if (ok && (!b || some[k].small)) ok = strncmp(reason, "cpu: ", 5) == 0;
      if (ok && b && !some[k].small)
        ok = strncmp(reason, "sqlite: ", 8) == 0 && strstr(reason, "host_budget") != NULL;
      check(ok, what, detail);
    }
  }
  check(sqlite3_close(db) == SQLITE_OK, "the connection closes", sqlite3_errmsg(db));
}

int main(void) {
  test_groups();
  test("sim");
  if (getenv("WL_TEST_CUDA")) test("cuda");
  return failed;
}
