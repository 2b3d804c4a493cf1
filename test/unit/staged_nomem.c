/*
** Out of memory in the calls of include/sphyraena.h and in warplite_load(name, select): allocation
** number 1, 2, 3, … of the library's own fails, and all after it, until everything comes through.
**
** Invariants:
** 1. Each failure is SPHYRAENA_ERR_MEM or SQLITE_NOMEM, or the rows are right.
** 2. After each one the same calls on the same connection give the right rows.
** 3. Nothing is lost: sqlite3_close() succeeds, and under asan no block is left behind.
*/
#include "../tap.h"
#include "base/mem.h"
#include "sphyraena.h"
#include <string.h>

enum { MAX_N = 5000 };

static const char schema[] =
    "CREATE TABLE t(a INTEGER, b REAL, c TEXT, x);"
    "INSERT INTO t WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM k WHERE i<150)"
    " SELECT i, i/4.0, CASE WHEN i%5 THEN 'text '||(i%10) END,"
    " CASE i%4 WHEN 0 THEN i WHEN 1 THEN 'x' WHEN 2 THEN x'00ff' END FROM k;";

/* All calls with one sphyraena. Returns the first error, and the number of bytes that came back. */
static int use(sqlite3 *db, const char *device, size_t *size, char *message) {
  sphyraena s;
  int rc = sphyraena_init(&s, db, 0, 0, 1);
  if (!rc) rc = sphyraena_set_device(&s, device);
  if (!rc) rc = sphyraena_prepare_data(&s, "SELECT p.*, q.c FROM t AS p JOIN t AS q ON p.a = q.b");
  if (!rc) rc = sphyraena_transfer_data(&s);
  if (!rc) rc = sphyraena_select(&s, "SELECT a, b, c, x, c || a FROM t WHERE a > ?1", 0);
  if (!rc) rc = sqlite3_bind_int(s.stmt_cpu, 1, 7) ? SPHYRAENA_ERR_MEM : SPHYRAENA_SUCCESS;
  if (!rc) rc = sphyraena_vm(&s);
  if (!rc) rc = sphyraena_transfer_results(&s);
  *size = rc ? 0 : s.results_cpu->size;
  snprintf(message, 200, "%s", sphyraena_errmsg(&s));
  sphyraena_cleanup(&s);
  return rc;
}

/* The same for rows under a name. */
static int load(sqlite3 *db, size_t *size, char *message) {
  const char *sql = "SELECT warplite_load('staged', 'SELECT c, count(*), x FROM t GROUP BY c, x')";
  sqlite3_stmt *s = NULL;
  int rc = warplite_enable(db);
  if (!rc) rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
  if (!rc) rc = sqlite3_step(s) == SQLITE_ROW ? SQLITE_OK : SQLITE_ERROR;
  *size = rc ? 0 : (size_t)sqlite3_column_int(s, 0);
  int end = sqlite3_finalize(s);
  snprintf(message, 200, "%s", sqlite3_errmsg(db));
  rc = end ? end : rc;
  return rc == SQLITE_NOMEM ? SPHYRAENA_ERR_MEM : rc;
}

static int try(sqlite3 *db, const char *device, size_t *size, char *message) {
  return device ? use(db, device, size, message) : load(db, size, message);
}

static void check(const char *device) {
  char name[100], message[200];
  size_t want = 0, got = 0;
  sqlite3 *db;
  int n, n_failed = 0;
  snprintf(name, sizeof name, "nomem %s", device ? device : "warplite_load(name, select)");
  sqlite3_open(":memory:", &db);
  sqlite3_exec(db, schema, NULL, NULL, NULL);
  if (try(db, device, &want, message) || !want) {
    tap_bad(name, "without any failure: %s", message);
    return;
  }
  for (n = 1; n <= MAX_N; n += n < 100 ? 1 : 7) {
    wl_mem_fail_after(n);
    int rc = try(db, device, &got, message);
    bool reached = wl_mem_fail_after(0);
    n_failed += rc != 0;
    if (rc ? rc != SPHYRAENA_ERR_MEM : got != want) {
      tap_bad(name, "allocation %d: code %d, %zu: %s", n, rc, got, message);
      return;
    }
    if (!reached) break;
    rc = try(db, device, &got, message);
    if (rc || got != want) {
      tap_bad(name, "after allocation %d: code %d, %zu: %s", n, rc, got, message);
      return;
    }
  }
  if (n > MAX_N || n_failed < 10)
    tap_bad(name, "%d failures of %d", n_failed, n);
  else if (sqlite3_close(db) != SQLITE_OK)
    tap_bad(name, "the connection does not close");
  else
    tap_ok(name);
}

int main(void) {
  check("cpu");
  check("sim");
  check(NULL);
  return tap_done();
}
