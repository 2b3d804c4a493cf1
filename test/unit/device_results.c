/*
** How rows come back from a device: packed columns of every width at its edges, in several chunks
** and launches, in each mode of transfer. The rows must be SQLite's, and the number of bytes that
** come back must be that of the packed form.
**
** 1. The simulator's buffers are small (wl_device.n_stage), so a tablet has several chunks, and its
**    scans are cut into launches of a tablet.
** 2. Columns are resident and statements run twice: the second run is measured.
*/
#include "../engines.h"
#include "../rows.h"
#include "../tap.h"
#include "exec/gpu/device.h"

enum { MANY = TEST_SANITIZED ? 70000 : 140000 };

static sqlite3 *db;
static wl_device *device;

static void run(const char *sql) {
  char *msg = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &msg)) tap_bad("device results", "%s: %s", sql, msg);
  sqlite3_free(msg);
}

/* A table of n rows. The names of columns say what they hold: i or u and the bits of integers, with
** both ends of their range; b: far from zero; n: with NULLs; f and d: reals of 4 and of 8 bytes. */
static void make_table(int n) {
  char sql[2000];
  run("DROP TABLE IF EXISTS t");
  run("CREATE TABLE t(k INTEGER PRIMARY KEY, i8 INTEGER, u8 INTEGER, i16 INTEGER, u16 INTEGER, i17 "
      "INTEGER, i32 INTEGER, u32 INTEGER, i33 INTEGER, i53 INTEGER, i64 INTEGER, b8 INTEGER, b16 "
      "INTEGER, n8 INTEGER, nb8 INTEGER, m16 INTEGER, n32 INTEGER, n64 INTEGER, no INTEGER, f "
      "REAL, "
      "nf REAL, d REAL, nd REAL, mix, s TEXT, w TEXT, z BLOB, any)");
  snprintf(
      sql, sizeof sql,
      "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x < %d) INSERT INTO t "
      "SELECT x, x*7919%%256-128, x*7919%%256, x*7919%%65536-32768, x*7919%%65536, x*7919%%65537,"
      " CASE x%%3 WHEN 0 THEN -2147483648 WHEN 1 THEN 2147483647 ELSE x END,"
      " CASE x%%3 WHEN 0 THEN 4294967295 ELSE x-1 END, CASE x%%3 WHEN 0 THEN 4294967296 ELSE x-1 "
      "END,"
      " CASE x%%3 WHEN 0 THEN 9007199254740993 WHEN 1 THEN -9007199254740993 ELSE x END,"
      " CASE x%%3 WHEN 0 THEN 9223372036854775807 WHEN 1 THEN -9223372036854775807-1 ELSE x END,"
      " 9223372036854775807-x%%256, -9223372036854775807-1+x%%65536,"
      " CASE WHEN x%%5 THEN x%%200-100 END, CASE WHEN x%%5 THEN 100+x%%150 END,"
      " CASE WHEN x%%7 THEN -40000+x%%300 END, CASE WHEN x%%64 THEN x*1000 END,"
      " CASE WHEN x%%3 THEN x*1000000007*1003 END, NULL,"
      " CASE x%%6 WHEN 0 THEN 9e999 WHEN 1 THEN -9e999 WHEN 2 THEN 0.0 ELSE x*0.125 END,"
      " CASE x%%6 WHEN 0 THEN NULL WHEN 1 THEN 16777216.0 WHEN 2 THEN -0.5 WHEN 3 THEN 1e999-1e999"
      " ELSE -x*0.25 END, CASE x%%6 WHEN 0 THEN 0.1 WHEN 1 THEN 16777217.0 ELSE x*0.125 END,"
      " CASE x%%6 WHEN 0 THEN NULL WHEN 1 THEN 5e-324 WHEN 2 THEN 1.7e308 ELSE x*0.1 END,"
      " CASE x%%3 WHEN 0 THEN x WHEN 1 THEN x*0.5 END, 'text '||(x%%9), CASE WHEN x%%11 THEN 'text "
      "'"
      "||x ELSE '' END, CASE WHEN x%%4 THEN CAST('blob '||x AS BLOB) ELSE x'' END,"
      " CASE x%%5 WHEN 0 THEN x WHEN 1 THEN 'x'||x WHEN 2 THEN 0.5 WHEN 3 THEN x'00' END FROM c "
      "WHERE %d > 0",
      n, n);
  run(sql);
}

/* ---- the same rows */

/* Whether two results are equal, bit for bit. */
static bool same_rows(const rows *a, const rows *b) {
  if (a->rc != b->rc || a->n_rows != b->n_rows || a->n_cells != b->n_cells) return false;
  for (size_t k = 0; k < a->n_cells; k++) {
    const cell *x = &a->cells[k], *y = &b->cells[k];
    bool bytes = x->type == SQLITE_TEXT || x->type == SQLITE_BLOB;
    if (x->type != y->type || x->n != y->n) return false;
    if (bytes && memcmp(a->bytes + x->u.off, b->bytes + y->u.off, (size_t)x->n)) return false;
    if (!bytes && x->u.i != y->u.i) return false;
  }
  return true;
}

static void read_rows(rows *r, prepare_fn *prepare, const char *sql) {
  sqlite3_stmt *s = NULL;
  rows_clear(r);
  if (prepare(db, sql, -1, &s, NULL)) rows_fail(r, db, sqlite3_errcode(db));
  if (s) rows_step(r, db, s);
  sqlite3_finalize(s);
}

/* Runs a statement natively and in SQLite. engine: what the reason must begin with. Returns the
** bytes that came back in the second run, or -1. */
static long long check_as(const char *label, const char *sql, const char *engine) {
  static rows want, got;
  char name[500];
  snprintf(name, sizeof name, "%s: %s", label, sql);
  read_rows(&want, sqlite3_prepare_v2, sql);
  read_rows(&got, warplite_prepare, sql);
  wl_i64 before = device->n_out;
  bool same = same_rows(&want, &got);
  read_rows(&got, warplite_prepare, sql);
  before = device->n_out - before;
  const char *reason = warplite_reason(db);
  if (!same || !same_rows(&want, &got))
    tap_bad(name, "%zu rows (%d), SQLite %zu (%d): %s", got.n_rows, got.rc, want.n_rows, want.rc,
            reason);
  else if (strncmp(reason, engine, strlen(engine)) != 0)
    tap_bad(name, "%s", reason);
  else
    return tap_ok(name), before;
  return -1;
}

static long long check(const char *label, const char *sql) {
  return check_as(label, sql, "gpu:");
}

static const char *const statements[] = {
    "SELECT k, i8, u8, i16, u16, i17, i32, u32, i33, i53, i64, b8, b16 FROM t",
    "SELECT n8, nb8, m16, n32, n64, no, f, nf, d, nd FROM t",
    "SELECT k, s, i8, nf FROM t WHERE i8 > 0",
    "SELECT k, w, z, n8 FROM t WHERE k % 3 = 1",
    "SELECT mix, any, nb8, k FROM t",
    "SELECT -f, f * 2, nf + 0.1, -nf * 0.0, i8 * 3, i8 + i16, n8 - 1, u32 + 1 FROM t",
    "SELECT 5, -7, 0.5, NULL, 'x', k > 9, n8 IS NULL, n8 > 3 FROM t",
    "SELECT i8, f FROM t WHERE k % 1000 = 7",
    "SELECT i8, nb8 FROM t WHERE k < 0",
    "SELECT k, nb8, m16 FROM t LIMIT 10 OFFSET 20000",
    "SELECT k, nb8, m16 FROM t LIMIT 30000 OFFSET 60000",
    "SELECT k, nb8, nf, i16, s FROM t ORDER BY i16, k DESC",
    "SELECT k, nb8, nf, i16 FROM t ORDER BY i16, k DESC LIMIT 5000 OFFSET 70",
    "SELECT i8, n8, nf FROM t GROUP BY i8, n8, nf ORDER BY 1, 2, 3",
    "SELECT i16, count(*), sum(i8), min(nb8), max(f) FROM t GROUP BY i16",
    "SELECT a.k, b.nb8, b.f, b.i16 FROM t a LEFT JOIN t b ON b.k = a.k * 2 AND b.k < 90000",
    "SELECT count(*), sum(x), sum(y) FROM (SELECT i8 + 1 x, nb8 y FROM t)",
};
enum { N_STATEMENTS = sizeof statements / sizeof *statements };

static void check_sizes(void) {
  static const int n_rows[] = {0, 1, 257, 65536, 65537, MANY};
  for (size_t i = 0; i < sizeof n_rows / sizeof *n_rows; i++) {
    char label[40];
    make_table(n_rows[i]);
    snprintf(label, sizeof label, "%d rows", n_rows[i]);
    for (int k = 0; k < N_STATEMENTS; k++) check(label, statements[k]);
  }
}

/* Other settings, over MANY rows. */
static void check_settings(void) {
  static const char *const settings[][2] = {
      {"transfer", "serial"}, {"transfer", "stream"},   {"transfer", "mapped"},
      {"pinned", "0"},        {"stream_blocks", "1"},   {"threads", "1"},
      {"threads", "7"},       {"device_budget", "30M"}, {"device_budget", "12M"}};
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    char label[60];
    snprintf(label, sizeof label, "%s=%s", settings[i][0], settings[i][1]);
    use_setting(db, settings[i][0], settings[i][1]);
    for (int k = 0; k < N_STATEMENTS; k += TEST_SANITIZED ? 3 : 1)
      check_as(label, statements[k], strstr(label, "budget") ? "" : "gpu:");
    use_setting(db, "transfer", "auto");
    use_setting(db, "pinned", "1");
    use_setting(db, "stream_blocks", "3");
    use_setting(db, "threads", "4");
    use_setting(db, "device_budget", "0");
  }
}

/* ---- bytes */

/* Checks that a row takes so many bits on the bus. Bitmaps and counters are a little more. */
static void check_bits(const char *columns, int bits) {
  char sql[400], name[500];
  snprintf(sql, sizeof sql, "SELECT %s FROM t", columns);
  snprintf(name, sizeof name, "bytes of %s", columns);
  double n = (double)check("bytes", sql), want = MANY / 8.0 * bits;
  if (n < want || n > want * 1.02 + 5000)
    tap_bad(name, "%.0f bytes, not %.0f", n, want);
  else
    tap_ok(name);
}

static void check_bytes(void) {
  check_bits("i8", 8);
  check_bits("u8, b8", 16);
  check_bits("i16, u16, b16", 48);
  check_bits("i17, i32, u32, k", 128);
  check_bits("i33", 64);
  check_bits("i53, i64", 128);
  check_bits("f", 32);
  check_bits("d", 64);
  check_bits("n8", 9);
  check_bits("nb8", 9);
  check_bits("m16", 17); /* the zero of its NULLs is far from its values */
  check_bits("n32, nf", 66);
  check_bits("n64, nd", 144);
  check_bits("no", 9);
  check_bits("s", 8); /* codes */
  check_bits("i8 + 1, i8 * i8, f, i64", 8 + 16 + 32 + 64);
  check_bits("k > 9, 7", 16);
  use_setting(db, "transfer", "mapped");
  check_bits("i8, f, k", 72);
  use_setting(db, "transfer", "stream");
  check_bits("i8, f, k", 72);
  use_setting(db, "transfer", "auto");
  /* one thread takes longer to unpack than the bus for all bytes */
  use_setting(db, "threads", "1");
  check_bits("i8, f, k", 192);
  use_setting(db, "threads", "4");
  use_setting(db, "pinned", "0");
  check_bits("i8, f, k", 192);
  use_setting(db, "pinned", "1");
}

/* ---- what happens in the middle */

static int calls_left;
static int stop_later(void *arg) {
  (void)arg;
  return calls_left-- == 0;
}

/* An interrupt at each moment at which the run asks. */
static void check_interrupts(void) {
  const char *sql = "SELECT k, nb8, nf, i16 FROM t";
  char name[100];
  rows got = {0}, want = {0};
  int n_stopped = 0, n_wrong = 0;
  read_rows(&want, sqlite3_prepare_v2, sql);
  for (int k = 0; k < 100; k++) {
    calls_left = k;
    sqlite3_progress_handler(db, 1, stop_later, NULL);
    read_rows(&got, warplite_prepare, sql);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    n_stopped += got.rc == SQLITE_INTERRUPT;
    n_wrong += got.rc != SQLITE_INTERRUPT && !same_rows(&want, &got);
  }
  snprintf(name, sizeof name, "stopped at each moment");
  if (n_stopped < 10 || n_wrong)
    tap_bad(name, "%d stops, %d wrong results", n_stopped, n_wrong);
  else
    tap_ok(name);
  check(name, sql);
  rows_free(&got);
  rows_free(&want);
}

/* The device meets a value that only the CPU can compute, in the last rows. */
static void check_detour(void) {
  run("CREATE TABLE v(k INTEGER PRIMARY KEY, i8 INTEGER, w TEXT)");
  run("INSERT INTO v SELECT k, i8, CASE WHEN k > (SELECT max(k) FROM t) - 5 THEN "
      "'1234567890123456789012345.5' ELSE k||'.5' END FROM t");
  check_as("a detour", "SELECT k, i8, w + 0 FROM v", "cpu:");
}

/* Of finished groups, only the rows that LIMIT leaves come back. */
static void check_limit(void) {
  const char *name = "bytes of a LIMIT";
  long long n =
      check("a LIMIT over groups",
            "SELECT k % 9000 AS x, count(*) FROM t GROUP BY x ORDER BY x LIMIT 3 OFFSET 2");
  if (n > 1000)
    tap_bad(name, "%lld bytes", n);
  else
    tap_ok(name);
}

/* Arrays that the reader keeps while more come: no later chunk may overwrite them. */
static void check_held(void) {
  enum { MOST = 1000 };
  static struct ArrowArray arrays[MOST];
  struct ArrowArrayStream s;
  const char *name = "arrays that are kept";
  int n = 0;
  long long row = 0, bad = 0;
  if (warplite_query(db, "SELECT k, i64, nb8 FROM t", &s)) {
    tap_bad(name, "%s", warplite_errmsg(db));
    return;
  }
  while (n < MOST && s.get_next(&s, &arrays[n]) == 0 && arrays[n].release) n++;
  for (int a = 0; a < n; a++) {
    const struct ArrowArray *const *c = (const struct ArrowArray *const *)arrays[a].children;
    const long long *k = c[0]->buffers[1], *nb8 = c[2]->buffers[1];
    const unsigned char *valid = c[2]->buffers[0];
    for (long long i = 0; i < arrays[a].length; i++) {
      row++;
      bool there = !valid || valid[i >> 3] >> (i & 7) & 1;
      bad += k[i] != row || there != (row % 5 != 0) || (there && nb8[i] != 100 + row % 150);
    }
  }
  for (int a = 0; a < n; a++) arrays[a].release(&arrays[a]);
  s.release(&s);
  if (row != MANY || bad)
    tap_bad(name, "%lld rows, of which %lld are wrong", row, bad);
  else
    tap_ok(name);
}

/* ---- pinned memory */

static wl_device real;
static long long n_pinned, most_pinned;
static struct {
  void *p;
  size_t n;
} pinned[4096];

static wl_status count_alloc(wl_device *d, size_t n, void **out, wl_error *err) {
  wl_status rc = real.host_alloc(d, n, out, err);
  for (size_t k = 0; k < sizeof pinned / sizeof *pinned && !rc; k++)
    if (!pinned[k].p) {
      pinned[k].p = *out;
      pinned[k].n = n;
      n_pinned += (long long)n;
      break;
    }
  if (n_pinned > most_pinned) most_pinned = n_pinned;
  return rc;
}
static void count_free(wl_device *d, void *p) {
  for (size_t k = 0; k < sizeof pinned / sizeof *pinned && p; k++)
    if (pinned[k].p == p) {
      n_pinned -= (long long)pinned[k].n;
      pinned[k].p = NULL;
      break;
    }
  real.host_free(d, p);
}

/* Rows that are read batch by batch do not stay pinned: values of 8 bytes come as they are. */
static void check_pinned(void) {
  enum { N = 1000000, BYTES = 16 * N };
  const char *sql = "SELECT a, r FROM big";
  run("CREATE TABLE big(a INTEGER, r REAL)");
  run("INSERT INTO big WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x < "
      "1000000) SELECT x*1000000007, x*0.1 FROM c");
  real = *device;
  device->host_alloc = count_alloc;
  device->host_free = count_free;
  sqlite3_stmt *s = NULL;
  long long n = 0;
  warplite_prepare(db, sql, -1, &s, NULL);
  while (sqlite3_step(s) == SQLITE_ROW) n++;
  sqlite3_finalize(s);
  device->host_alloc = real.host_alloc;
  device->host_free = real.host_free;
  if (n != N || strncmp(warplite_reason(db), "gpu:", 4) != 0 || most_pinned > BYTES / 3)
    tap_bad(sql, "%lld rows, %lld bytes pinned of %d: %s", n, most_pinned, (int)BYTES,
            warplite_reason(db));
  else
    tap_ok("rows that have been read are not pinned");
}

int main(void) {
  wl_error err = {0};
  sqlite3_open(":memory:", &db);
  if (!use_engine(db, "sim")) return 2;
  use_setting(db, "threads", "4");
  run("SELECT warplite_set('keep', 0)");
  device = wl_device_get("sim", &err);
  check_sizes();
  check_settings();
  if (!TEST_SANITIZED) {
    check_bytes();
    check_pinned();
  }
  check_interrupts();
  check_detour();
  check_limit();
  check_held();
  sqlite3_close(db);
  if (device->used)
    tap_bad("device results: nothing is left", "%lld bytes of device memory", device->used);
  else
    tap_ok("device results: nothing is left");
  return tap_done();
}
