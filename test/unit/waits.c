/*
** How often a statement waits for the device, and what it moves. Each wait costs some ten
** microseconds, in which the device has nothing to do. The columns are resident, and nothing is
** kept from the run before.
*/
#include "../engines.h"
#include "../tap.h"
#include "exec/gpu/device.h"

static sqlite3 *db;

static void run(const char *sql) {
  char *msg = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &msg)) tap_bad("waits", "%s: %s", sql, msg);
  sqlite3_free(msg);
}

/* Steps through a statement. Returns the number of rows, or -1. */
static int step_all(const char *sql) {
  sqlite3_stmt *s = NULL;
  int n = 0, rc = warplite_prepare(db, sql, -1, &s, NULL);
  while (!rc && (rc = sqlite3_step(s)) == SQLITE_ROW) {
    n++;
    rc = SQLITE_OK;
  }
  sqlite3_finalize(s);
  return rc == SQLITE_DONE ? n : -1;
}

static void check(wl_device *d, const char *sql, int n_rows, int most) {
  int n = step_all(sql); /* copies the columns */
  wl_i64 before = d->n_waits;
  if (n == n_rows) n = step_all(sql);
  int waits = (int)(d->n_waits - before);
  const char *reason = warplite_reason(db);
  if (n != n_rows)
    tap_bad(sql, "%d rows, not %d: %s", n, n_rows, sqlite3_errmsg(db));
  else if (strncmp(reason, "gpu:", 4) != 0)
    tap_bad(sql, "%s", reason);
  else if (waits > most)
    tap_bad(sql, "it waits %d times, not %d", waits, most);
  else
    tap_ok(sql);
}

/* The rows of a subquery must not come to the host: the result is one row. */
static void check_stays(wl_device *d, const char *sql) {
  int n = step_all(sql);
  wl_i64 in = d->n_in, out = d->n_out;
  if (n == 1) n = step_all(sql);
  in = d->n_in - in;
  out = d->n_out - out;
  if (n != 1 || strncmp(warplite_reason(db), "gpu:", 4) != 0)
    tap_bad(sql, "%d rows: %s", n, warplite_reason(db));
  else if (out > 100 || in > 20000)
    tap_bad(sql, "%lld bytes to the host, %lld to the device", (long long)out, (long long)in);
  else
    tap_ok(sql);
}

/* Reads a device stream to its end. Returns the number of rows, or -1. */
static int read_stream(const char *sql) {
  struct ArrowDeviceArrayStream s;
  struct ArrowDeviceArray a;
  int n = 0;
  if (warplite_query_device(db, sql, &s)) return -1;
  while (s.get_next(&s, &a) == 0 && a.array.release) {
    n += (int)a.array.length;
    a.array.release(&a.array);
  }
  s.release(&s);
  return n;
}

/* The rows stay on the device for the user: the host only learns how many there are. */
static void check_given(wl_device *d, const char *sql, int n_rows, int most) {
  char name[200];
  snprintf(name, sizeof name, "given on the device: %.150s", sql);
  int n = read_stream(sql);
  wl_i64 waits = d->n_waits, in = d->n_in, out = d->n_out, used = d->used;
  if (n == n_rows) n = read_stream(sql);
  waits = d->n_waits - waits;
  in = d->n_in - in;
  out = d->n_out - out;
  const char *reason = warplite_reason(db);
  if (n != n_rows)
    tap_bad(name, "%d rows, not %d: %s", n, n_rows, warplite_errmsg(db));
  else if (strncmp(reason, "gpu:", 4) != 0 || strstr(reason, "rows on the host"))
    tap_bad(name, "%s", reason);
  else if (waits > most)
    tap_bad(name, "it waits %d times, not %d", (int)waits, most);
  else if (out > 100 || in > 20000)
    tap_bad(name, "%lld bytes to the host, %lld to the device", (long long)out, (long long)in);
  else if (d->used != used)
    tap_bad(name, "%lld bytes of device memory are left", (long long)(d->used - used));
  else
    tap_ok(name);
}

int main(void) {
  wl_error err = {0};
  sqlite3_open(":memory:", &db);
  if (!use_engine(db, "sim")) return 2;
  wl_device *d = wl_device_get("sim", &err);
  run("SELECT warplite_set('keep', 0)");
  run("CREATE TABLE f(a INTEGER, b INTEGER, w INTEGER, r REAL)");
  run("INSERT INTO f WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i+1 FROM n WHERE i<20000) "
      "SELECT i%1000, i%40, i%500*1000000007, i*0.1 FROM n");
  run("CREATE TABLE g(k INTEGER PRIMARY KEY, c INTEGER, w INTEGER)");
  run("INSERT INTO g WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i+1 FROM n WHERE i<999) "
      "SELECT i, i%7, i*1000000007 FROM n");
  run("CREATE TABLE h(k INTEGER PRIMARY KEY, c INTEGER)");
  run("INSERT INTO h WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i+1 FROM n WHERE i<39) "
      "SELECT i, i%3 FROM n");
  check(d, "SELECT sum(a) FROM f", 1, 1);
  check(d, "SELECT a, r FROM f WHERE a = 3", 20, 2);
  check(d, "SELECT b, count(*), sum(a) FROM f GROUP BY b", 40, 1);
  check(d, "SELECT b, count(*), sum(r) FROM f GROUP BY b", 40, 2);
  check(d, "SELECT b, count(*) AS n FROM f WHERE b < 9 GROUP BY b HAVING n > 3 AND b > 2", 6, 1);
  check(d, "SELECT a, b FROM f ORDER BY r DESC LIMIT 5", 5, 2);
  check(d, "SELECT sum(a) FROM f, g WHERE a = k AND c = 2", 1, 1);
  check(d, "SELECT sum(r) FROM f, g WHERE a = k AND c = 2", 1, 2);
  check(d, "SELECT c, sum(b) FROM f, g WHERE a = k GROUP BY c ORDER BY c", 7, 1);
  check(d, "SELECT c, sum(r) FROM f, g WHERE f.w = g.w GROUP BY c ORDER BY c", 7, 3);
  run("CREATE TABLE texts(k INTEGER PRIMARY KEY, t TEXT, m)");
  run("INSERT INTO texts WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i+1 FROM n WHERE i<20000) "
      "SELECT NULL, (i*7919%20011*40503)||' is a number', CASE i%3 WHEN 0 THEN i ELSE 'row '||i "
      "END FROM n");
  /* a round for the first bytes, one for those after them; the rows, and the bytes of their texts
   */
  check(d, "SELECT k, t FROM texts ORDER BY t", 20001, 5);
  check(d, "SELECT k FROM texts ORDER BY t DESC LIMIT 10", 10, 4);
  check(d, "SELECT k FROM texts ORDER BY m LIMIT 10", 10, 4);
  check(
      d,
      "SELECT g.c, h.c, sum(b) FROM f, g, h WHERE a = g.k AND b = h.k GROUP BY 1, 2 ORDER BY 1, 2",
      21, 1);
  check_stays(d,
              "SELECT sum(n), max(s), count(*) FROM (SELECT a, count(*) AS n, sum(r) AS s FROM f "
              "GROUP BY a)");
  check_stays(d, "SELECT count(*) FROM f WHERE r > (SELECT avg(x.r) FROM f x WHERE x.a = f.b)");
  check_stays(d, "SELECT sum(q.a + f.b) FROM (SELECT a, b + 1 AS c FROM f WHERE w > 5) q, f WHERE "
                 "f.a = q.c AND f.b = 7");
  run("CREATE TABLE s(i INTEGER, t TEXT, k TEXT)");
  run("INSERT INTO s SELECT a, CASE WHEN b THEN 'text '||a||' '||r END, 'kind '||b%3 FROM f");
  check_given(d, "SELECT a, r FROM f", 20001, 1);
  check_given(d, "SELECT a, b, r FROM f WHERE a < 900", 18001, 1);
  check_given(d, "SELECT a, r FROM f WHERE a = 3", 20, 2);
  check_given(d, "SELECT sum(a) FROM f", 1, 3);
  check_given(d, "SELECT max(a), min(a) FROM f", 1, 3);
  check_given(d, "SELECT avg(a) FROM f WHERE a > 7", 1, 3);
  check_given(d, "SELECT b, count(*), sum(a) FROM f GROUP BY b", 40, 4);
  check_given(d, "SELECT a, b FROM f ORDER BY r DESC", 20001, 2);
  check_given(d, "SELECT a, b FROM f ORDER BY r DESC LIMIT 5", 5, 2);
  check_given(d, "SELECT c, r FROM f, g WHERE a = k", 20001, 2);
  check_given(d, "SELECT i, t FROM s", 20001, 3);
  check_given(d, "SELECT i, t, k FROM s WHERE i < 500", 10001, 3);
  sqlite3_close(db);
  return tap_done();
}
