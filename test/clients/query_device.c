/*
** warplite_query_device(): rows that stay on the device, rows that cannot, several arrays, errors.
** On the CPU, on the simulator, and with WL_TEST_CUDA on CUDA.
*/
#include "device_stream.h"

/* ---- statements */

static void check_statements(int n_rows) {
  sqlite3 *db = open_db(n_rows);
  bool many = n_rows > 1;
  check(db, "SELECT id, a, b, r FROM t", DEVICE, 0);
  check(db, "SELECT id, k, s, x FROM t", DEVICE, 0);
  check(db, "SELECT k FROM t WHERE a < 10", DEVICE, 0);
  check(db, "SELECT s, x, k FROM t WHERE a = 5", DEVICE, 0);
  check(db, "SELECT n, nt, NULL, a, z, -z FROM t WHERE a < 500", DEVICE, 0);
  check(db, "SELECT a, b FROM t WHERE a > 1000", DEVICE, 0);
  check(db, "SELECT a + b, r * 2, a > 3, 'constant', 7, 0.5, x'00ff' FROM t WHERE id % 2", DEVICE,
        0);
  check(db, "SELECT CASE WHEN a % 2 THEN a ELSE r END FROM t", DEVICE, 0);
  check(db, "SELECT s || '!', k || a, substr(s, 2, 5) FROM t WHERE r < 100", DEVICE, 0);
  /* without rows, the host makes the one group */
  enum where one = n_rows ? DEVICE : HOST;
  check(db, "SELECT sum(a), count(*), max(r), min(b), avg(r), total(a) FROM t", one, 0);
  check(db, "SELECT sum(b) FROM t WHERE a > 1000", one, 0);
  check(db, "SELECT a, count(*), sum(b) FROM t GROUP BY a", DEVICE, 0);
  check(db, "SELECT a, count(*) AS many FROM t GROUP BY a HAVING many > 1", DEVICE, 0);
  check(db, "SELECT id, a, r FROM t ORDER BY r, id", DEVICE, 0);
  check(db, "SELECT id, k, s FROM t ORDER BY b DESC, id", DEVICE, 0);
  check(db, "SELECT id, a FROM t ORDER BY a DESC, id LIMIT 10", DEVICE, 0);
  check(db, "SELECT id, a, k, s FROM t ORDER BY a DESC, id LIMIT 10 OFFSET 7", DEVICE, 0);
  check(db, "SELECT id, s, b FROM t LIMIT 9 OFFSET 4", DEVICE, 0);
  check(db, "SELECT id, s, b FROM t LIMIT 0", DEVICE, 0);
  check(db, "SELECT id FROM t LIMIT -1 OFFSET 100000", DEVICE, 0);
  check(db, "SELECT DISTINCT a, k FROM t ORDER BY a, k", DEVICE, 0);
  check(db, "SELECT DISTINCT a % 7 FROM t", DEVICE, 0);
  check(db, "SELECT t.id, u.w, u.k FROM t JOIN u ON u.k = t.a ORDER BY t.id, u.w", DEVICE, 0);
  check(db, "SELECT t.id, x.b FROM t JOIN t x ON x.a = t.a AND x.id < 40 ORDER BY t.id, x.id",
        DEVICE, 0);
  check(db, "SELECT q.a, q.n FROM (SELECT a, count(*) AS n FROM t GROUP BY a) q WHERE q.n < 90",
        DEVICE, 0);
  if (many) check(db, "SELECT s || a, count(*), max(s) FROM t GROUP BY 1", DEVICE, 0);
  if (n_rows != 1) check(db, "SELECT DISTINCT substr(s, 1, 9) FROM t ORDER BY 1", DEVICE, 0);
  /* what cannot stay */
  check(db, "SELECT m FROM t", many ? HOST : DEVICE, 0);
  check(db, "SELECT id, row_number() OVER (ORDER BY id) FROM t WHERE id < 9", HOST, 0);
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}

/* The rows of a join, whose order is not SQLite's: compares their number and sums. */
static void check_sums(sqlite3 *db, const char *a, const char *b, const char *from, int least) {
  char sql[300];
  struct ArrowDeviceArrayStream s;
  struct ArrowDeviceArray array;
  struct ArrowArray copy;
  struct ArrowSchema schema;
  rows want = {0};
  int64_t n = 0, sums[2] = {0, 0};
  int n_arrays = 0;
  if (!has_device()) return;
  snprintf(sql, sizeof sql, "SELECT count(*), total(%s), total(%s) FROM %s", a, b, from);
  rows_query(&want, db, sqlite3_prepare_v2, sql);
  snprintf(sql, sizeof sql, "SELECT %s, %s FROM %s", a, b, from);
  if (warplite_query_device(db, sql, &s)) {
    tap_bad(sql, "%s", warplite_errmsg(db));
    return;
  }
  bool good = s.get_schema(&s, &schema) == 0;
  for (; good && s.get_next(&s, &array) == 0 && array.array.release; n_arrays++) {
    good = device_copy_array(&array, &schema, &copy);
    array.array.release(&array.array);
    n += good ? copy.length : 0;
    for (int k = 0; k < 2 && good; k++)
      for (int64_t i = 0; i < copy.length; i++) {
        const char *bytes;
        cell c = stream_cell(schema.children[k], copy.children[k], i, &bytes);
        sums[k] += c.type == SQLITE_INTEGER ? c.u.i : 0;
      }
    if (good) copy.release(&copy);
  }
  schema.release(&schema);
  s.release(&s);
  if (!good || n != want.cells[0].u.i || (double)sums[0] != want.cells[1].u.r ||
      (double)sums[1] != want.cells[2].u.r || n_arrays < least)
    tap_bad(sql, "%lld rows in %d arrays, sums %lld and %lld: %s", (long long)n, n_arrays,
            (long long)sums[0], (long long)sums[1], warplite_reason(db));
  else if (strstr(warplite_reason(db), "rows on the host"))
    tap_bad(sql, "%s", warplite_reason(db));
  else
    tap_ok(sql);
  rows_free(&want);
}

/* Several launches leave several arrays: blocks that are streamed, pieces of a join, and LIMIT, for
** which a device begins with a few tablets. */
static void check_several(void) {
  sqlite3 *db = open_db(400000);
  use_setting(db, "transfer", "stream");
  use_setting(db, "device_budget", "30000000");
  check(db, "SELECT id, a, r FROM t", DEVICE, 2);
  check(db, "SELECT id, s, x FROM t WHERE a < 100", DEVICE, 2);
  check(db, "SELECT id, a, r FROM t WHERE b % 3 LIMIT 200000 OFFSET 70000", DEVICE, 1);
  check(db, "SELECT id, a FROM t ORDER BY r, id", HOST, 0);
  check(db, "SELECT DISTINCT a, r FROM t", HOST, 0);
  /* there is room for the first arrays, but not for all: the statement runs again */
  use_setting(db, "device_budget", "6000000");
  check(db, "SELECT id, a, r FROM t", HOST, 0);
  check(db, "SELECT id, a, r, s FROM t WHERE a < 700", HOST, 0);
  use_setting(db, "transfer", "auto");
  use_setting(db, "device_budget", "0");
  check(db, "SELECT id, a, r FROM t LIMIT 300000 OFFSET 10", DEVICE, 2);
  check(db, "SELECT id, k FROM t LIMIT 1", DEVICE, 1);
  must_run(db, "CREATE TABLE v(a INTEGER, w INTEGER);"
               "INSERT INTO v SELECT a % 50, id FROM t WHERE id < 600");
  check(db, "SELECT count(*), sum(y.w) FROM v x JOIN v y ON x.a = y.a", DEVICE, 1);
  check_sums(db, "x.w", "y.w", "v x JOIN v y ON x.a = y.a JOIN v z ON z.a < x.a", 2);
  check_sums(db, "x.w", "y.w", "v x FULL JOIN v y ON x.w = y.w * 2", 2);
  check_sums(db, "x.w", "y.w", "v x LEFT JOIN v y ON x.w = y.a AND y.w > x.w * 3", 1);
  /* few rows of a large dictionary */
  must_run(db,
           "CREATE TABLE d(id INTEGER PRIMARY KEY, t TEXT);"
           "INSERT INTO d SELECT id, CASE WHEN id % 13 THEN 'entry ' || (id % 6000) END FROM t");
  check(db, "SELECT id, t FROM d WHERE id > 3 AND id < 300", DEVICE, 1);
  check(db, "SELECT t FROM d WHERE t = 'entry 77' AND id > 0", DEVICE, 1);
  check(db, "SELECT t, id FROM d WHERE id = 13", DEVICE, 1);
  check(db, "SELECT id, t FROM d WHERE id % 3", DEVICE, 1);
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}
/* The ways in which columns come to the device. */
static void check_transfers(void) {
  static const char *const modes[] = {"mapped", "serial", "stream", "cached"};
  sqlite3 *db = open_db(70000);
  for (int k = 0; k < 4; k++) {
    use_setting(db, "transfer", modes[k]);
    check(db, "SELECT id, b, r, k, s, x FROM t WHERE a < 900", DEVICE, 1);
    check(db, "SELECT a, count(*), max(r) FROM t GROUP BY a", DEVICE, 1);
  }
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}

/* ---- errors */

static void check_errors(void) {
  sqlite3 *db = open_db(1000);
  struct ArrowDeviceArrayStream s;
  struct ArrowDeviceArray a;
  sqlite3_stmt *stmt = NULL;
  CHECK("no connection", warplite_query_device(NULL, "SELECT 1", &s) == SQLITE_MISUSE);
  CHECK("no text", warplite_query_device(db, NULL, &s) == SQLITE_MISUSE);
  CHECK("no stream", warplite_query_device(db, "SELECT 1", NULL) == SQLITE_MISUSE);
  CHECK("no statement", warplite_query_stmt_device(NULL, &s) == SQLITE_MISUSE);
  CHECK("a wrong text", warplite_query_device(db, "SELECT nothing FROM t", &s) == SQLITE_ERROR &&
                            strstr(warplite_errmsg(db), "nothing") && !s.release);
  CHECK("no rows", warplite_query_device(db, "DELETE FROM u", &s) == SQLITE_ERROR && !s.release);
  sqlite3_prepare_v2(db, "SELECT id FROM t", -1, &stmt, NULL);
  sqlite3_step(stmt);
  CHECK("a running statement", warplite_query_stmt_device(stmt, &s) == SQLITE_MISUSE);
  sqlite3_finalize(stmt);
  /* the error comes after the rows before it, from a stream of rows on the host */
  int rc = warplite_query_device(db,
                                 "SELECT id, abs(CASE WHEN id = 900 THEN -9223372036854775807 - 1"
                                 " ELSE id END) FROM t",
                                 &s);
  int64_t n = 0;
  int e = 0;
  while (!rc && (e = s.get_next(&s, &a)) == 0 && a.array.release) {
    n += a.array.length;
    a.array.release(&a.array);
  }
  if (rc || !e || n != 900 || !strstr(s.get_last_error(&s), "overflow"))
    tap_bad("query_device: an error at a row", "code %d, %d, %lld rows: %s", rc, e, (long long)n,
            rc ? warplite_errmsg(db) : "");
  else
    tap_ok("query_device: an error at a row");
  if (!rc) s.release(&s);
  /* the schema changes between two runs of one text */
  check(db, "SELECT * FROM u", DEVICE, 1);
  must_run(db, "ALTER TABLE u ADD COLUMN more REAL DEFAULT 0.5");
  check(db, "SELECT * FROM u", DEVICE, 1);
  must_run(db, "ALTER TABLE u RENAME COLUMN w TO words");
  rc = warplite_query_device(db, "SELECT * FROM u", &s);
  struct ArrowSchema schema;
  if (!rc && !s.get_schema(&s, &schema)) {
    CHECK("a renamed column", strcmp(schema.children[1]->name, "words") == 0);
    schema.release(&schema);
    /* between two calls of one stream */
    must_run(db, "DROP TABLE u");
    CHECK("after DROP TABLE", s.get_next(&s, &a) == 0 && a.array.length == 100);
    a.array.release(&a.array);
    s.release(&s);
  } else {
    tap_bad("a renamed column", "code %d", rc);
  }
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}
int main(void) {
  static const char *const engines[] = {"cpu", "sim", "cuda"};
  static const int sizes[] = {0, 1, 1000, 65537};
  int n = getenv("WL_TEST_CUDA") ? 3 : 2;
  for (int e = 0; e < n; e++) {
    engine = engines[e];
    for (int k = 0; k < 4; k++) check_statements(sizes[k]);
    check_several();
    check_transfers();
    check_errors();
  }
  return tap_done();
}
