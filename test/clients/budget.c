/*
** Memory budgets: the same answers whether a table is resident on the device, goes through
** it a few tablets at a time, or does not fit at all, in every mode of transfer; what the
** reason and warplite_cache say of each.
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
    "SELECT sum(id), count(i), max(i) FROM t WHERE i > -40",
};

static long long ask(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = NULL;
  long long n = -1;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
    n = sqlite3_column_int64(s, 0);
  sqlite3_finalize(s);
  return n;
}

/* A query of the list in SQLite, once. */
static struct {
  unsigned long long h;
  long n;
  int rc;
} want[sizeof queries / sizeof *queries];

/* One query against what SQLite gave; the reason must begin with it and hold some words. */
static void one(sqlite3 *db, const char *label, int k, const char *engine, const char *words) {
  sqlite3_stmt *ours = NULL;
  long n;
  int rc1;
  char what[400], detail[900];
  int rc = warplite_prepare(db, queries[k], -1, &ours, NULL);
  unsigned long long h = digest(ours, &n, &rc1);
  const char *reason = warplite_reason(db);
  snprintf(what, sizeof what, "%s: %s", label, queries[k]);
  snprintf(detail, sizeof detail, "%d, %d against %d, %ld rows against %ld (%s)", rc, rc1,
           want[k].rc, n, want[k].n, reason);
  check(rc == 0 && rc1 == want[k].rc && n == want[k].n && h == want[k].h &&
            (!engine || strncmp(reason, engine, strlen(engine)) == 0) &&
            (!words || strstr(reason, words)),
        what, detail);
}

enum { N_QUERIES = sizeof queries / sizeof *queries };

/* Every mode of transfer under every budget: the same rows. */
static void test_modes(sqlite3 *db, const char *device) {
  static const char *const modes[] = {"auto", "serial", "stream", "mapped", "cached"};
  /* plenty; a quarter of the columns; a sixteenth, which is less than the results of one tablet
  ** need; next to nothing: the CPU steps in, and says so */
  static const char *const names[] = {"none", "a quarter", "a sixteenth", "tiny"};
  run(db, "SELECT warplite_load('t')");
  long long all = ask(db, "SELECT sum(bytes) FROM warplite_cache");
  check(all > 4000000, "the table is in memory", "warplite_cache says otherwise");
  long long budgets[] = {0, all / 4, all / 16, 65536};
  for (int m = 0; m < 5; m++) {
    for (int b = 0; b < 4; b++) {
      for (int more = 0; more < (b == 0 && m >= 1 && m <= 3 ? 3 : 1); more++) {
        char label[200], words[40];
        run(db,
            "SELECT warplite_set('transfer','%s'), warplite_set('device_budget','%lld'), "
            "warplite_set('stream_blocks','%d'), warplite_set('pinned','%d'), "
            "warplite_set('block_threads','%d')",
            modes[m], budgets[b],
            more == 1   ? 2
            : more == 2 ? 5
                        : 3,
            more != 1,
            more == 1   ? 128
            : more == 2 ? 32
                        : 0);
        snprintf(label, sizeof label, "%s, transfer=%s, device_budget %s, variant %d", device,
                 modes[m], names[b], more);
        snprintf(words, sizeof words, "transfer=%s", m ? modes[m] : "cached");
        for (int k = 0; k < N_QUERIES; k++)
          one(db, label, k,
              b == 0 && k != 4 ? "gpu: "
              : b == 3         ? "cpu: "
                               : NULL,
              b == 0 && k != 4 ? words
              : b == 3         ? "device_budget"
                               : NULL);
      }
    }
  }
  /* narrow columns, aggregates: little besides the columns, so that a sixteenth is enough */
  long long narrow = ask(db, "SELECT sum(bytes) FROM warplite_cache WHERE \"column\" IN('id','i')");
  for (int m = 0; m < 5; m++)
    for (int b = 0; b < 2; b++) {
      char label[200], words[40];
      run(db, "SELECT warplite_set('transfer','%s'), warplite_set('device_budget','%lld')",
          modes[m], narrow / (b ? 2 : 1));
      snprintf(label, sizeof label, "%s, transfer=%s, device_budget 1/%d of the columns", device,
               modes[m], b + 1);
      snprintf(words, sizeof words, "transfer=%s", m == 0 || m == 4 ? "stream" : modes[m]);
      one(db, label, 7, "gpu: ", words);
    }
  /* mapped, and host_budget leaves no room for a second copy of the columns */
  run(db,
      "SELECT warplite_set('transfer','mapped'), warplite_set('device_budget','0'), "
      "warplite_unload('t'), warplite_load('t'), warplite_set('host_budget','%lld')",
      all + 1000);
  for (int k = 0; k < N_QUERIES; k++) {
    char label[200];
    snprintf(label, sizeof label, "%s, transfer=mapped, host_budget full", device);
    if (k != 4) one(db, label, k, "gpu: ", "transfer=mapped (staged)");
  }
  run(db, "SELECT warplite_set('transfer','auto'), warplite_set('host_budget','1G'), "
          "warplite_set('stream_blocks','3'), warplite_set('pinned','1'), "
          "warplite_set('block_threads','0')");
}

/* What warplite_cache counts, and who has to go when the device's budget is short. */
static void test_cache(sqlite3 *db, const char *device) {
  static const char *const sql[] = {"SELECT sum(a) FROM u", "SELECT sum(a) FROM u",
                                    "SELECT sum(a), max(b) FROM u", "SELECT sum(c) FROM u"};
  char what[200];
  run(db, "CREATE TABLE u(a INT, b INT, c INT);"
          "INSERT INTO u SELECT id, id + 1, id + 2 FROM t");
  run(db, "SELECT warplite_unload('t'), warplite_set('transfer','cached'), "
          "warplite_set('device_budget','0')");
  for (int k = 0; k < 4; k++) {
    sqlite3_stmt *s = NULL;
    long n;
    int rc;
    /* at the end there is room for two columns: b was used once, a three times */
    if (k == 3) run(db, "SELECT warplite_set('device_budget','2000000')");
    warplite_prepare(db, sql[k], -1, &s, NULL);
    digest(s, &n, &rc);
    check(strncmp(warplite_reason(db), "gpu: ", 5) == 0 &&
              strstr(warplite_reason(db), "transfer=cached"),
          sql[k], warplite_reason(db));
    if (k != 2) continue;
    snprintf(what, sizeof what, "%s: warplite_cache counts uses and hits", device);
    check(ask(db, "SELECT count(*) FROM warplite_cache WHERE \"table\"='u' AND on_device AND "
                  "last_use BETWEEN datetime('now','-1 hour') AND datetime('now') AND "
                  "device_bytes>=800000 AND CASE \"column\" WHEN 'a' THEN uses=3 AND hits=2 AND "
                  "device_uses=3 AND device_hits=2 WHEN 'b' THEN uses=1 AND hits=0 AND "
                  "device_uses=1 AND device_hits=0 END") == 2,
          what, "other numbers");
  }
  snprintf(what, sizeof what, "%s: the least used column leaves the device", device);
  check(ask(db, "SELECT group_concat(on_device,'')='101' FROM (SELECT on_device FROM "
                "warplite_cache WHERE \"table\"='u' ORDER BY \"column\")") == 1,
        what, warplite_reason(db));
  sqlite3_stmt *plan = NULL;
  int said = 0;
  warplite_prepare(db, "EXPLAIN QUERY PLAN SELECT sum(c) FROM u", -1, &plan, NULL);
  while (sqlite3_step(plan) == SQLITE_ROW)
    said |= strcmp((const char *)sqlite3_column_text(plan, 3),
                   "TRANSFER cached, columns of 0.8 MB") == 0;
  sqlite3_finalize(plan);
  check(said, "EXPLAIN QUERY PLAN names the mode and the bytes", "it does not");
  check(ask(db, "SELECT reason GLOB '*transfer=cached, 0.8 MB in, * out, data * ms, kernel * ms, "
                "results * ms' FROM warplite_log WHERE sql='SELECT sum(c) FROM u'") == 1,
        "warplite_log has the bytes and times", "it has not");
  /* the same in host memory */
  run(db, "SELECT warplite_unload('u'), warplite_set('engine','cpu'), "
          "warplite_set('host_budget','3000000')");
  for (int k = 0; k < 4; k++) {
    sqlite3_stmt *s = NULL;
    long n;
    int rc;
    warplite_prepare(db, sql[k], -1, &s, NULL);
    digest(s, &n, &rc);
  }
  check(ask(db, "SELECT group_concat(\"column\",'')='ac' FROM (SELECT \"column\" FROM "
                "warplite_cache WHERE \"table\"='u' ORDER BY \"column\")") == 1,
        "the least used column leaves host memory", warplite_reason(db));
  run(db, "DROP TABLE u; SELECT warplite_set('transfer','auto'), warplite_set('engine','gpu'), "
          "warplite_set('host_budget','1G')");
}

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
  for (int k = 0; k < N_QUERIES; k++) {
    sqlite3_stmt *s = NULL;
    sqlite3_prepare_v2(db, queries[k], -1, &s, NULL);
    want[k].h = digest(s, &want[k].n, &want[k].rc);
  }
  /* plenty; a few tablets at a time; one at a time; parts of a tablet; none */
  static const char *const budgets[] = {"900M", "20M", "9M", "1M", "64K"};
  for (int b = 0; b < 5; b++) {
    run(db, "SELECT warplite_set('device_budget','%s'), warplite_unload('t')", budgets[b]);
    for (int k = 0; k < N_QUERIES; k++) {
      char label[200];
      snprintf(label, sizeof label, "%s, device_budget %s", device, budgets[b]);
      /* the fifth overflows 63 bits in the sum of magnitudes and is the CPU's business */
      one(db, label, k,
          b == 4   ? "cpu: "
          : k == 4 ? NULL
                   : "gpu: ",
          b == 4 ? "device_budget" : NULL);
    }
  }
  test_modes(db, device);
  test_cache(db, device);
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

/* A table by value of sparse keys is faster for many searches. If it does not fit, they are hashed.
 */
static void test_sparse_keys(sqlite3 *db, const char *engine) {
  char what[100];
  run(db, "CREATE TABLE w(k INTEGER, v INTEGER);"
          "INSERT INTO w VALUES(1, 10), (399999, 20), (200001, 30), (7, 40);"
          "SELECT warplite_set('host_budget', 1500000)");
  sqlite3_stmt *s = NULL;
  warplite_prepare(db, "SELECT sum(w.v) FROM t JOIN w ON w.k = t.id*2-1", -1, &s, NULL);
  int ok = s && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) == 100;
  sqlite3_finalize(s);
  snprintf(what, sizeof what, "%s: few sparse keys", engine);
  check(ok && strncmp(warplite_reason(db), "sqlite: ", 8) != 0, what, warplite_reason(db));
}

/*
** What host_budget leaves beside the columns is what groups and sorts may take: they go through
** temporary files, or leave the statement to SQLite and name the setting. With enough of it
** all of these are native. A device gives its rows to the same sinks, and it needs less of them.
*/
static void test_sinks(const char *device) {
  const char *engine = device ? "gpu" : "cpu";
  static const struct {
    const char *sql;
    int small;         /* whether it is native with the small budget too */
    const char *words; /* what needs too much memory, if it is not */
  } some[] = {
      {"SELECT id%10000, count(*), sum(i), avg(r), max(id) FROM t GROUP BY id%10000", 1, NULL},
      {"SELECT id*7919%20011/2, count(*), total(r) FROM t GROUP BY 1 ORDER BY 2, 1", 1, NULL},
      {"SELECT r, count(*), sum(id) FROM t GROUP BY r", 1, NULL},
      {"SELECT count(DISTINCT id*3), count(DISTINCT r) FROM t", 1, NULL},
      {"SELECT id, r FROM t ORDER BY r, id LIMIT 20", 1, NULL},
      {"SELECT id*3, count(*), sum(r) FROM t GROUP BY 1", 0, "the groups need"},
      {"SELECT b.r, b.id, count(*) FROM t a JOIN t b ON b.id=a.id%3000 GROUP BY 1, 2 ORDER BY 1, 2",
       1, NULL},
      {"SELECT b.r, b.id, sum(a.r) FROM t a JOIN t b ON b.id=a.id GROUP BY 1, 2 ORDER BY 1, 2", 0,
       " need"},
      {"SELECT id, i, r FROM t ORDER BY r DESC", 0, "the rows to sort need"},
      {"SELECT DISTINCT id*3, r FROM t", 0, "the groups need"},
      {"SELECT i, group_concat(id*3) FROM t GROUP BY i", 0, "the groups need"},
      {"SELECT id || 'x', count(*) FROM t GROUP BY 1", 0, "the groups need"},
      {"SELECT id, i FROM t ORDER BY id || 'x'", 0, "the rows to sort need"},
      {"SELECT DISTINCT id || 'x', r FROM t", 0, " need"},
      {"SELECT count(DISTINCT id||'x') FROM t", 1, NULL},
      {"SELECT group_concat(DISTINCT id) FROM t", 0, "the groups need"},
      {"SELECT DISTINCT id%50000, i FROM t ORDER BY r", 0, "the distinct rows need"},
      {"SELECT id, id||'y' FROM t ORDER BY 2", 0, "the rows to sort need"},
      {"SELECT t.id, u.v FROM t JOIN u ON u.k=t.i ORDER BY u.v, t.id", 0, "the rows to sort need"},
      {"SELECT t.id, u.v FROM t JOIN u ON u.k=t.i ORDER BY u.v, t.id LIMIT 9", 0,
       "the rows to sort need"},
      {"SELECT id%100000, max(r) FROM t GROUP BY 1 ORDER BY 2, 1", 0, " need"},
      {"SELECT sum(b.r) FROM t a JOIN t b ON b.id=a.id*7919%200003", 1, NULL},
      {"SELECT count(*) FROM t WHERE id*3.5 IN (SELECT id*9.5 FROM t)", 0, " need"},
      {"WITH d AS MATERIALIZED (SELECT id*9 a, r*3 b FROM t) SELECT sum(a), max(b) FROM d", 1,
       NULL},
      {"WITH d AS MATERIALIZED (SELECT id||'-'||r a, id||'q' b FROM t) SELECT max(a), max(b) FROM "
       "d",
       0, "the rows of a subquery need"},
      /* one of them fits, two do not */
      {"WITH d AS MATERIALIZED (SELECT id a, id||'q' b FROM t) SELECT min(b), max(b) FROM d", 1,
       NULL},
      {"WITH d AS MATERIALIZED (SELECT id a, id||'q' b FROM t), e AS MATERIALIZED (SELECT id a, "
       "id||'r' "
       "b FROM t) SELECT min(d.b), max(e.b) FROM d JOIN e USING(a)",
       0, " need"},
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
  run(db,
      "CREATE TABLE u(k INTEGER, v INTEGER);"
      "INSERT INTO u SELECT id-50, id*7%%11 FROM t LIMIT 101;"
      "SELECT warplite_set('route','always'), warplite_set('device','%s'),"
      " warplite_set('engine','%s'), warplite_set('keep','0'), warplite_set('threads','2')",
      device ? device : "sim", engine);
  for (int b = 0; b < 2; b++) {
    const char *budget = b ? "5M" : "1G";
    run(db, "SELECT warplite_set('host_budget','%s')", budget);
    for (int k = 0; k < (int)(sizeof some / sizeof *some); k++) {
      sqlite3_stmt *ours = NULL, *theirs = NULL;
      long n1, n2;
      int rc1, rc2;
      char what[300], detail[800];
      snprintf(what, sizeof what, "%s, host_budget %s: %s", device ? device : engine, budget,
               some[k].sql);
      int rc = warplite_prepare(db, some[k].sql, -1, &ours, NULL);
      sqlite3_prepare_v2(db, some[k].sql, -1, &theirs, NULL);
      unsigned long long h1 = digest(ours, &n1, &rc1), h2 = digest(theirs, &n2, &rc2);
      const char *reason = warplite_reason(db);
      snprintf(detail, sizeof detail, "%d, %d against %d, %ld rows against %ld (%s)", rc, rc1, rc2,
               n1, n2, reason);
      int ok = rc == 0 && rc1 == rc2 && n1 == n2 && h1 == h2;
      int native = strncmp(reason, "sqlite: ", 8) != 0;
      if (ok && (!b || some[k].small)) ok = native;
      /* a device may need no memory of the host */
      if (ok && b && !some[k].small && (!native || strcmp(engine, "gpu")))
        ok = !native && strstr(reason, "host_budget") && strstr(reason, some[k].words);
      check(ok, what, detail);
    }
  }
  test_sparse_keys(db, engine);
  check(sqlite3_close(db) == SQLITE_OK, "the connection closes", sqlite3_errmsg(db));
}

int main(void) {
  test_sinks(NULL);
  test_sinks("sim");
  test("sim");
  if (getenv("WL_TEST_CUDA")) test_sinks("cuda");
  if (getenv("WL_TEST_CUDA")) test("cuda");
  return failed;
}
