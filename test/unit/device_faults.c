/*
** A device that fails in the middle of a statement. Calls of the simulated device are counted, and
** fail from a chosen one on: one call, or all of them. The rows must be SQLite's all the same, the
** next statement must run on the device again, and nothing may be left in its memory.
**
** 1. Every call of every statement fails once, in each way. A sanitizer samples them.
** 2. The keep setting is 0, so that each run makes everything again.
*/
#include "../engines.h"
#include "../rows.h"
#include "../tap.h"
#include "exec/gpu/device.h"

/* ---- the device that fails */

typedef enum way {
  REFUSED,  /* one allocation of device memory fails: another process has taken it */
  TAKEN,    /* all allocations from there on */
  UNPINNED, /* all allocations of pinned host memory from there on */
  BROKEN,   /* one call that does work fails */
  LOST,     /* all calls from there on: the device is gone */
  N_WAYS
} way;
static const char *const way_names[] = {"memory refused", "memory taken", "no pinned memory",
                                        "a call fails", "device lost"};

static wl_device real;
static way now;
static long at, n_calls; /* the call that fails, from 0; how many there were */
static bool failed;

static bool fails(bool counts, bool once) {
  if (!counts) return false;
  long call = n_calls++;
  bool yes = once ? call == at : call >= at;
  failed |= yes && at >= 0;
  return yes && at >= 0;
}
static wl_status broken(bool memory, wl_error *err) {
  if (memory) return wl_fail(err, WL_FULL, "injected: no memory on the device");
  return wl_not_taken(err, "injected: the device has failed");
}
static bool work_fails(void) {
  return fails(now == BROKEN || now == LOST, now == BROKEN);
}

static wl_status f_alloc(wl_device *d, size_t n, void **out, wl_error *err) {
  if (fails(now == REFUSED || now == TAKEN, now == REFUSED)) return broken(true, err);
  return work_fails() ? broken(false, err) : real.alloc(d, n, out, err);
}
static wl_status f_host_alloc(wl_device *d, size_t n, void **out, wl_error *err) {
  if (fails(now == UNPINNED, false)) return broken(false, err);
  return work_fails() ? broken(false, err) : real.host_alloc(d, n, out, err);
}
#define WORK(name, params, args)                                                                   \
  static wl_status f_##name params {                                                               \
    return work_fails() ? broken(false, err) : real.name args;                                     \
  }
WORK(copy_in, (wl_device * d, void *to, const void *from, size_t n, wl_error *err),
     (d, to, from, n, err))
WORK(copy_out, (wl_device * d, void *to, const void *from, size_t n, wl_error *err),
     (d, to, from, n, err))
WORK(copy_in_later, (wl_device * d, void *to, const void *from, size_t n, wl_error *err),
     (d, to, from, n, err))
WORK(copy_out_later, (wl_device * d, void *to, const void *from, size_t n, wl_error *err),
     (d, to, from, n, err))
WORK(copy_on, (wl_device * d, void *to, const void *from, size_t n, wl_error *err),
     (d, to, from, n, err))
WORK(fill, (wl_device * d, void *p, int byte, size_t n, wl_error *err), (d, p, byte, n, err))
WORK(launch,
     (wl_device * d, wl_kernel k, const void *args, size_t n_args, unsigned grid, unsigned block,
      size_t n_shared, wl_error *err),
     (d, k, args, n_args, grid, block, n_shared, err))
WORK(scan, (wl_device * d, const wl_u32 *in, wl_u64 *sums, wl_i64 n, wl_error *err),
     (d, in, sums, n, err))
WORK(sort,
     (wl_device * d, wl_u64 *keys[2], wl_u32 *values[2], wl_i64 n, int n_bits, int *where,
      wl_error *err),
     (d, keys, values, n, n_bits, where, err))
WORK(follow, (wl_device * d, int other, wl_error *err), (d, other, err))
WORK(mark, (wl_device * d, int event, wl_error *err), (d, event, err))

/* A wait that fails has waited: a real device fails it because its work has failed. */
static wl_status f_finish(wl_device *d, wl_error *err) {
  wl_status rc = real.finish(d, err);
  return work_fails() ? broken(false, err) : rc;
}
static wl_status f_wait(wl_device *d, int event, wl_error *err) {
  wl_status rc = real.wait(d, event, err);
  return work_fails() ? broken(false, err) : rc;
}

static void wrap(wl_device *d) {
  real = *d;
  d->alloc = f_alloc;
  d->host_alloc = f_host_alloc;
  d->copy_in = f_copy_in;
  d->copy_out = f_copy_out;
  d->copy_in_later = f_copy_in_later;
  d->copy_out_later = f_copy_out_later;
  d->copy_on = f_copy_on;
  d->fill = f_fill;
  d->launch = f_launch;
  d->scan = f_scan;
  d->sort = f_sort;
  d->follow = f_follow;
  d->finish = f_finish;
  d->mark = f_mark;
  d->wait = f_wait;
}

/* ---- statements */

static sqlite3 *db;
static wl_device *device;

static void run(const char *sql) {
  char *msg = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &msg)) tap_bad("device faults", "%s: %s", sql, msg);
  sqlite3_free(msg);
}

typedef int prepare(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);

/* The rows of a statement as text, malloc'ed by SQLite. NULL: it failed. */
static char *rows_of(prepare *p, const char *sql) {
  sqlite3_stmt *s = NULL;
  sqlite3_str *text = sqlite3_str_new(NULL);
  int rc = p(db, sql, -1, &s, NULL);
  while (!rc && (rc = sqlite3_step(s)) == SQLITE_ROW) {
    for (int k = 0; k < sqlite3_column_count(s); k++)
      sqlite3_str_appendf(text, "%d:%s|", sqlite3_column_type(s, k), sqlite3_column_text(s, k));
    sqlite3_str_append(text, "\n", 1);
    rc = SQLITE_OK;
  }
  sqlite3_finalize(s);
  char *all = sqlite3_str_finish(text);
  if (rc == SQLITE_DONE) return all ? all : sqlite3_mprintf("");
  sqlite3_free(all);
  return NULL;
}

/* A value of a column of a stream, as rows_of() writes it. The simulated device's memory can be
** read here. */
static void put_value(sqlite3_str *text, const struct ArrowSchema *s, const struct ArrowArray *a,
                      int64_t row) {
  const unsigned char *valid = a->n_buffers ? a->buffers[0] : NULL;
  char f = a->n_buffers ? s->format[0] : 'n';
  if (f == 'n' || (valid && !(valid[row >> 3] >> (row & 7) & 1))) {
    sqlite3_str_appendf(text, "5:|"); /* SQLite writes NULL as nothing */
  } else if (f == 'l') {
    sqlite3_str_appendf(text, "1:%lld|", ((const long long *)a->buffers[1])[row]);
  } else if (f == 'g') {
    sqlite3_str_appendf(text, "2:%!.15g|", ((const double *)a->buffers[1])[row]);
  } else {
    const long long *wide = a->buffers[1];
    const int *small = a->buffers[1];
    bool large = f == 'U';
    long long at = large ? wide[row] : small[row], end = large ? wide[row + 1] : small[row + 1];
    sqlite3_str_appendf(text, "3:%.*s|", (int)(end - at), (const char *)a->buffers[2] + at);
  }
}

/* The rows of a device stream as text. */
static char *rows_of_stream(const char *sql) {
  struct ArrowDeviceArrayStream s;
  struct ArrowSchema schema;
  struct ArrowDeviceArray a;
  if (warplite_query_device(db, sql, &s)) return NULL;
  sqlite3_str *text = sqlite3_str_new(NULL);
  int rc = s.get_schema(&s, &schema);
  while (!rc && (rc = s.get_next(&s, &a)) == 0 && a.array.release) {
    for (int64_t row = 0; row < a.array.length; row++) {
      for (int64_t k = 0; k < a.array.n_children; k++)
        put_value(text, schema.children[k], a.array.children[k], row);
      sqlite3_str_append(text, "\n", 1);
    }
    a.array.release(&a.array);
  }
  if (schema.release) schema.release(&schema);
  s.release(&s);
  char *all = sqlite3_str_finish(text);
  if (!rc) return all ? all : sqlite3_mprintf("");
  sqlite3_free(all);
  return NULL;
}

static bool streams; /* the rows come from device streams */

/* Runs the statement natively. Returns false if its rows are others. */
static bool is_right(const char *name, const char *sql, const char *want) {
  char *got = streams ? rows_of_stream(sql) : rows_of(warplite_prepare, sql);
  bool same = got && strcmp(got, want) == 0;
  if (!same)
    tap_bad(name, "call %ld, %s: %s instead of %s (%s)", at, way_names[now],
            got ? got : sqlite3_errmsg(db), want, warplite_reason(db));
  sqlite3_free(got);
  return same;
}

/* Lets each call fail once, in one way. */
static bool fail_each(const char *name, const char *sql, const char *want, way w) {
  enum { MOST = 3000 };
  long step = TEST_SANITIZED ? 5 : 1;
  now = w;
  for (at = 0; at < MOST; at += step) {
    n_calls = 0;
    failed = false;
    bool right = is_right(name, sql, want);
    bool was = failed;
    long call = at;
    at = -1;
    if (right && was && (call % 16 == 0)) {
      right = is_right(name, sql, want);
      if (right && strncmp(warplite_reason(db), "gpu:", 4) != 0)
        right = tap_bad(name, "after call %ld, %s: %s", call, way_names[w], warplite_reason(db));
    }
    at = call;
    if (!right) return false;
    if (!was) break;
  }
  at = -1;
  return true;
}

static void check(const char *sql) {
  char name[200];
  at = -1;
  char *want = rows_of(sqlite3_prepare_v2, sql);
  bool right = is_right(sql, sql, want);
  if (right && strncmp(warplite_reason(db), "gpu:", 4) != 0)
    right = tap_bad(sql, "%s", warplite_reason(db));
  for (int w = 0; w < N_WAYS && right; w++) {
    snprintf(name, sizeof name, "%s, %.150s", way_names[w], sql);
    if (fail_each(name, sql, want, (way)w)) tap_ok(name);
  }
  at = -1;
  sqlite3_free(want);
}

static void make_tables(void) {
  run("CREATE TABLE f(a INTEGER, b INTEGER, w INTEGER, r REAL, t TEXT)");
  run("INSERT INTO f WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i+1 FROM n WHERE i<3000) "
      "SELECT i%100, CASE WHEN i%9 THEN i%40 END, i%50*1000000007, i*0.125, 'text '||i%70 FROM n");
  run("CREATE TABLE g(k INTEGER, c INTEGER, w INTEGER, t TEXT)");
  run("INSERT INTO g WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i+1 FROM n WHERE i<199) "
      "SELECT i/2, i%7, i%100*1000000007, 'text '||i%20 FROM n");
  run("CREATE TABLE h(k INTEGER PRIMARY KEY, c INTEGER)");
  run("INSERT INTO h SELECT rowid, c FROM g WHERE rowid < 90");
}

/* A device that is lost is not asked again. */
static void check_lost(const char *sql) {
  char *want = rows_of(sqlite3_prepare_v2, sql);
  device->lost = "injected loss";
  bool right = is_right("lost", sql, want);
  if (right && (strncmp(warplite_reason(db), "cpu:", 4) != 0 ||
                !strstr(warplite_reason(db), "the device was lost: injected loss")))
    right = tap_bad("lost", "%s", warplite_reason(db));
  device->lost = NULL;
  if (right) right = is_right("lost", sql, want);
  if (right && strncmp(warplite_reason(db), "gpu:", 4) != 0)
    right = tap_bad("lost", "%s", warplite_reason(db));
  if (right) tap_ok("a device that was lost is not asked again");
  sqlite3_free(want);
}

int main(void) {
  static const char *const statements[] = {
      "SELECT sum(a), count(b), max(r) FROM f",
      "SELECT a, r, t FROM f WHERE b = 3",
      "SELECT a, b, r FROM f",
      "SELECT a||t, b FROM f WHERE a = 7",
      "SELECT b, count(*), sum(r), min(w) FROM f GROUP BY b",
      "SELECT w, sum(a) FROM f GROUP BY w HAVING sum(a) > 100 ORDER BY sum(a) DESC, w",
      "SELECT DISTINCT a, b FROM f ORDER BY b, a LIMIT 20",
      "SELECT a, b FROM f ORDER BY r DESC LIMIT 5 OFFSET 2",
      "SELECT a, t||a FROM f ORDER BY t||a, CASE WHEN a % 2 THEN t ELSE r END DESC",
      "SELECT a FROM f ORDER BY t||b DESC, r LIMIT 100",
      "SELECT a, c FROM f, g WHERE k = a AND a < 20 ORDER BY f.t||c, r DESC",
      "SELECT sum(r) FROM f WHERE a IN (SELECT k FROM g WHERE c = 2)",
      "SELECT c, sum(r), count(*) FROM f, g WHERE a = k GROUP BY c ORDER BY c",
      "SELECT c, sum(r), count(*) FROM f, g WHERE f.w = g.w GROUP BY c ORDER BY c",
      "SELECT count(*), sum(g.c) FROM f LEFT JOIN g ON a = k + 50",
      "SELECT h.c, sum(f.b), count(*) FROM f, h WHERE a = h.k AND h.c < 5 GROUP BY h.c",
      "SELECT b, count(DISTINCT a), sum(DISTINCT r) FROM f GROUP BY b",
      "SELECT count(DISTINCT w), avg(DISTINCT a) FROM f",
      "SELECT substr(t, 1, 6), count(*), max(a) FROM f GROUP BY 1 ORDER BY 1",
      "SELECT DISTINCT t||a FROM f WHERE a < 3",
      "SELECT count(*), sum(c) FROM f, g WHERE f.t = g.t",
      "SELECT count(*), sum(a) FROM f WHERE EXISTS (SELECT 1 FROM g WHERE k = a AND c < f.b)",
      "SELECT count(*), sum(a), sum(c) FROM f LEFT JOIN g ON k = a AND c > b",
      "SELECT count(*), sum(a), sum(c) FROM f RIGHT JOIN g ON k + 70 = a",
      "SELECT a, k, c FROM f FULL JOIN g ON k + 90 = a AND r < 20 WHERE c = 3 OR a = 95",
      ("SELECT sum(CASE WHEN a % 2 THEN a ELSE r END), max(CASE WHEN a % 3 THEN a ELSE r END) "
       "FROM f"),
      "SELECT b, total(t + a), min(CASE WHEN a % 3 THEN a ELSE r + 0.5 END) FROM f GROUP BY b",
      "SELECT n, count(*) FROM (SELECT a, count(*) n FROM f WHERE b > 3 GROUP BY a) GROUP BY n"};
  wl_error err = {0};
  at = -1;
  sqlite3_open(":memory:", &db);
  if (!use_engine(db, "sim")) return 2;
  run("SELECT warplite_set('keep', 0)");
  device = wl_device_get("sim", &err);
  make_tables();
  wrap(device);
  for (size_t k = 0; k < sizeof statements / sizeof *statements; k++) check(statements[k]);
  check_lost(statements[0]);
  static const char *const given[] = {
      "SELECT a, b, r, t FROM f", "SELECT a, b, t||a, t FROM f WHERE a = 7",
      "SELECT b, count(*), sum(a), min(r) FROM f GROUP BY b",
      "SELECT a, b, t FROM f ORDER BY r DESC LIMIT 50 OFFSET 2",
      "SELECT c, g.t, r FROM f, g WHERE a = k + 60 AND c = 3 ORDER BY r, g.w"};
  streams = true;
  for (size_t k = 0; k < sizeof given / sizeof *given; k++) check(given[k]);
  sqlite3_close(db);
  if (device->used)
    tap_bad("device faults: nothing is left", "%lld bytes of device memory", device->used);
  else
    tap_ok("device faults: nothing is left");
  return tap_done();
}
