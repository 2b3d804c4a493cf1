/*
** Out of memory, at every place where it can happen: allocation number 1, 2, 3, … of the
** library's own fails, and all after it, until a statement comes through without.
**
** Invariants:
** 1. Each failure is SQLITE_NOMEM (ENOMEM from a stream), or SQLite runs the statement and
**    the rows are right.
** 2. After each one the same statement on the same connection gives the right rows.
** 3. Nothing is lost: sqlite3_close() succeeds, and under asan no block is left behind.
*/
#include "../tap.h"
#include "api/enable.h"
#include "base/mem.h"
#include "warplite.h"
#include <errno.h>
#include <string.h>
#undef sqlite3_open
#undef sqlite3_close
#undef sqlite3_exec
#undef sqlite3_prepare_v2

extern int sqlite3_open(const char *, sqlite3 **);
extern int sqlite3_close(sqlite3 *);
extern int sqlite3_exec(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *,
                        char **);
extern int sqlite3_prepare_v2(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);

enum { MAX_N = 5000, SMALL = 150, LARGE = 66000 };

typedef int (*prepare_call)(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);

/* A number that differs where the rows do. */
static wl_u64 mix(wl_u64 h, const void *p, size_t n) {
  for (size_t i = 0; i < n; i++) h = (h ^ ((const unsigned char *)p)[i]) * 1099511628211u;
  return h;
}

static int run(sqlite3 *db, prepare_call prepare, const char *sql, wl_u64 *digest) {
  sqlite3_stmt *st = NULL;
  wl_u64 h = 14695981039346656037u;
  int rc = prepare(db, sql, -1, &st, NULL);
  while (!rc && (rc = sqlite3_step(st)) == SQLITE_ROW) {
    rc = SQLITE_OK;
    for (int i = 0; i < sqlite3_column_count(st); i++) {
      int type = sqlite3_column_type(st, i);
      h = mix(h, &type, sizeof type);
      const void *p = type == SQLITE_NULL ? "" : sqlite3_column_blob(st, i);
      if (p) h = mix(h, p, (size_t)sqlite3_column_bytes(st, i));
    }
  }
  sqlite3_finalize(st);
  *digest = h;
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* All batches of a stream; the number of rows for a digest. */
static int run_arrow(sqlite3 *db, const char *sql, wl_u64 *digest) {
  struct ArrowArrayStream s;
  struct ArrowSchema schema;
  struct ArrowArray a;
  *digest = 0;
  int rc = warplite_query(db, sql, &s);
  if (rc) return rc;
  int e = s.get_schema(&s, &schema);
  if (!e) schema.release(&schema);
  while (!e && (e = s.get_next(&s, &a)) == 0 && a.release) {
    *digest += (wl_u64)a.length;
    a.release(&a);
  }
  s.release(&s);
  return e == ENOMEM ? SQLITE_NOMEM : e ? SQLITE_ERROR : SQLITE_OK;
}

/* The same of a device stream. */
static int run_device(sqlite3 *db, const char *sql, wl_u64 *digest) {
  struct ArrowDeviceArrayStream s;
  struct ArrowSchema schema;
  struct ArrowDeviceArray a;
  *digest = 0;
  int rc = warplite_query_device(db, sql, &s);
  if (rc) return rc;
  int e = s.get_schema(&s, &schema);
  if (!e) schema.release(&schema);
  while (!e && (e = s.get_next(&s, &a)) == 0 && a.array.release) {
    *digest += (wl_u64)a.array.length;
    a.array.release(&a.array);
  }
  s.release(&s);
  return e == ENOMEM ? SQLITE_NOMEM : e ? SQLITE_ERROR : SQLITE_OK;
}

/* How the rows are read. */
typedef enum reader { STEPS, ARROW, DEVICE } reader;

static int run_any(sqlite3 *db, const char *sql, reader by, wl_u64 *digest) {
  if (by == DEVICE) return run_device(db, sql, digest);
  return by == ARROW ? run_arrow(db, sql, digest) : run(db, warplite_prepare, sql, digest);
}

static sqlite3 *open_db(int n_rows) {
  sqlite3 *db = NULL;
  char sql[600];
  snprintf(sql, sizeof sql,
           "CREATE TABLE t(a INTEGER, b REAL, c TEXT, x);"
           "INSERT INTO t WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM k WHERE i<%d)"
           " SELECT i, i/4.0, CASE WHEN i%%5 THEN 'text '||(i%%100) END,"
           " CASE i%%4 WHEN 0 THEN i WHEN 1 THEN 'x' WHEN 2 THEN x'00ff' END FROM k;",
           n_rows);
  if (sqlite3_open(":memory:", &db) || sqlite3_exec(db, sql, NULL, NULL, NULL)) {
    sqlite3_close(db);
    return NULL;
  }
  return db;
}

static const char *engine = "cpu";

static bool settings(sqlite3 *db) {
  char sql[200];
  snprintf(sql, sizeof sql,
           "SELECT warplite_set('engine','%s'), warplite_set('device','sim'), "
           "warplite_set('route','always'), warplite_set('threads','2')",
           engine);
  return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* cold: every try on a connection of its own, so that enabling and loading fail too. */
static void check(const char *sql, reader arrow, bool cold, int n_rows) {
  char label[200];
  wl_u64 want = 0, got;
  int n = 0, n_failed = 0;
  bool good = true;
  snprintf(label, sizeof label, "nomem %s %s%s%d rows: %.120s", engine,
           arrow == DEVICE ? "device "
           : arrow         ? "arrow "
                           : "",
           cold ? "cold " : "", n_rows, sql);
  sqlite3 *db = open_db(n_rows);
  if (!db || warplite_enable(db) || !settings(db) || run_any(db, sql, arrow, &want)) {
    tap_bad(label, "without any failure: %s", db ? sqlite3_errmsg(db) : "no database");
    sqlite3_close(db);
    return;
  }
  if (!arrow && run(db, sqlite3_prepare_v2, sql, &got) == SQLITE_OK && got != want &&
      strncmp(sql, "EXPLAIN", 7) != 0) {
    tap_bad(label, "differs from SQLite without any failure");
    sqlite3_close(db);
    return;
  }
  for (n = 1; n <= MAX_N && good; n++) {
    if (cold) {
      sqlite3_close(db);
      db = open_db(n_rows);
      if (!db) break;
    }
    wl_mem_fail_after(n);
    int rc = cold ? warplite_enable(db) : SQLITE_OK;
    if (!rc && cold) rc = settings(db) ? SQLITE_OK : SQLITE_NOMEM;
    if (!rc) rc = run_any(db, sql, arrow, &got);
    bool reached = wl_mem_fail_after(0);
    n_failed += rc != SQLITE_OK;
    if (rc != SQLITE_OK && rc != SQLITE_NOMEM) {
      good = tap_bad(label, "allocation %d: code %d: %s", n, rc, sqlite3_errmsg(db));
      break;
    }
    if (rc == SQLITE_OK && got != want) {
      good = tap_bad(label, "allocation %d: other rows", n);
      break;
    }
    if (!reached && rc == SQLITE_OK) break;
    /* it works again */
    if (cold && (warplite_enable(db) != SQLITE_OK || !settings(db) ||
                 sqlite3_exec(db, "SELECT * FROM warplite_log, warplite_cache", NULL, NULL, NULL) !=
                     SQLITE_OK)) {
      good =
          tap_bad(label, "allocation %d: cannot be enabled afterwards: %s", n, warplite_errmsg(db));
      break;
    }
    rc = run_any(db, sql, arrow, &got);
    if (rc != SQLITE_OK || got != want || strncmp(warplite_reason(db), engine, 3) != 0) {
      good = tap_bad(label, "allocation %d: afterwards code %d, %s rows, %s", n, rc,
                     got == want ? "right" : "other", warplite_reason(db));
      break;
    }
  }
  if (sqlite3_close(db) != SQLITE_OK)
    tap_bad(label, "the connection does not close");
  else if (!good)
    return;
  else if (n > MAX_N)
    tap_bad(label, "still fails at allocation %d", n);
  else if (n_failed < 3)
    tap_bad(label, "only %d failures were seen", n_failed);
  else
    tap_ok(label);
}

int main(void) {
  static const char *const list[] = {
      "SELECT a, b, c, x FROM t WHERE a>3 AND b<30.5",
      "SELECT count(*), sum(a), total(b), avg(b), min(c), max(x) FROM t WHERE a%3=0",
      ("SELECT a||c, CASE WHEN x IS NULL THEN 'none' ELSE x END, CAST(b AS TEXT), a IN (1,2,3) "
       "FROM t LIMIT 40 OFFSET 2"),
      "SELECT * FROM main.t",
  };
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    for (int arrow = 0; arrow < 2; arrow++) {
      check(list[i], arrow, true, SMALL);
      check(list[i], arrow, false, SMALL);
    }
  }
  check("SELECT a, c, x FROM t WHERE a%1000=7", false, false, LARGE);
  check("SELECT sum(a), sum(b), max(c) FROM t", true, false, LARGE);
  /* the lines are counted: no column is loaded, so they are the same every time */
  for (int cold = 0; cold < 2; cold++)
    check("EXPLAIN ANALYZE SELECT count(*) FROM t, (SELECT 1 AS k UNION ALL SELECT 2) AS q WHERE "
          "q.k < 2",
          true, cold, SMALL);
  static const char *const joined =
      "SELECT q.k, count(*) FROM (SELECT 1 AS k UNION ALL SELECT 2) AS p JOIN (SELECT 1 AS k UNION "
      "ALL SELECT 3) AS q ON p.k = q.k WHERE q.k < (SELECT count(*) FROM t) GROUP BY q.k HAVING "
      "count(*) > 0 ORDER BY 2 LIMIT 3";
  static const char *const forms[] = {"EXPLAIN", "EXPLAIN QUERY PLAN", "EXPLAIN ANALYZE"};
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    char sql[600];
    snprintf(sql, sizeof sql, "%s %s", forms[i], joined);
    check(sql, true, false, SMALL);
  }
  check("EXPLAIN SELECT p.a, q.c FROM t AS p JOIN t AS q ON p.a = q.a + 1", true, false, SMALL);
  /* every kind of source and sink */
  static const char *const kinds[] = {
      "SELECT c, count(*), max(x), group_concat(a) FROM t GROUP BY c HAVING count(*) > 1",
      "SELECT DISTINCT c, a%3 FROM t ORDER BY 2 DESC, 1 LIMIT 9",
      "SELECT a, c FROM t ORDER BY b DESC, a LIMIT 5 OFFSET 2",
      "SELECT p.a, q.c FROM t AS p JOIN t AS q ON p.c = q.c AND p.a < q.a WHERE p.a < 20",
      "SELECT p.c, count(q.b), sum(p.a) FROM t AS p LEFT JOIN t AS q ON p.a = q.a + 1 GROUP BY p.c",
      "SELECT p.a, q.a, r.a FROM t AS p FULL JOIN t AS q ON p.a = q.a + 9 FULL JOIN t AS r"
      " ON r.a = q.a * 2 ORDER BY p.a, q.a, r.a",
      "SELECT p.c, count(*), sum(q.a) FROM t AS p JOIN t AS r ON p.a = r.a RIGHT JOIN t AS q"
      " ON p.a = q.a + 1 GROUP BY p.c",
      "WITH w AS MATERIALIZED (SELECT c, a FROM t WHERE a%2) SELECT c, count(*) FROM w GROUP BY c",
      "SELECT c, count(*) FROM (SELECT c FROM t UNION ALL SELECT c || 'x' FROM t) GROUP BY c",
      "SELECT c FROM t WHERE c IN (SELECT c FROM t WHERE a < 9) EXCEPT SELECT max(c) FROM t",
      "SELECT a, (SELECT max(c) FROM t) FROM t WHERE EXISTS (SELECT 1 FROM t WHERE a = 3)",
      "SELECT DISTINCT c, a%3 FROM t ORDER BY b",
      "SELECT a, b FROM t ORDER BY b DESC LIMIT 20 OFFSET 10",
      "SELECT a, c || x FROM t ORDER BY 2, a",
      "SELECT p.a, q.c FROM t AS p JOIN t AS q ON p.a = q.a ORDER BY q.b, p.a LIMIT 5 OFFSET 1",
      "SELECT c, max(b) FROM t GROUP BY c ORDER BY 2 DESC",
      "SELECT count(DISTINCT c), sum(DISTINCT b), group_concat(DISTINCT c) FROM t",
      "SELECT count(*) FROM t AS p FULL JOIN t AS q ON p.a = q.a + 100",
  };
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) check(kinds[i], false, false, SMALL);
  /* no join, because the listing of a lookup also says whether it is kept */
  check("EXPLAIN SELECT (SELECT max(a) FROM t), max(c) FROM (SELECT c FROM t UNION ALL SELECT c "
        "FROM t) GROUP BY c",
        false, false, SMALL);
  engine = "gpu";
  check("SELECT a%7, count(*), sum(b), min(a), total(b*1e300) FROM t GROUP BY a%7", false, false,
        SMALL);
  check("SELECT b, a, count(*), sum(a) FROM t GROUP BY b, a", true, false, SMALL);
  check("SELECT a, c FROM t ORDER BY b DESC, a", false, false, SMALL);
  check("SELECT DISTINCT a%5, b FROM t ORDER BY 1, 2 DESC LIMIT 50", false, true, SMALL);
  check("SELECT a, b FROM t ORDER BY b DESC LIMIT 20 OFFSET 10", false, false, SMALL);
  check("SELECT a, c FROM t ORDER BY c, a", false, false, SMALL);
  check("SELECT a, b FROM t WHERE a%3=1", false, false, LARGE);
  check("SELECT p.a, q.b FROM t AS p JOIN t AS q ON p.a = q.a ORDER BY q.b", false, false, SMALL);
  check("SELECT a, b, c, c || a FROM t WHERE a%3=1", DEVICE, false, SMALL);
  check("SELECT a, b, c, c || a FROM t WHERE a%3=1", DEVICE, true, SMALL);
  check("SELECT a%7, count(*), sum(b), min(a) FROM t GROUP BY a%7", DEVICE, false, SMALL);
  check("SELECT a, c FROM t ORDER BY b DESC, a LIMIT 30 OFFSET 4", DEVICE, false, SMALL);
  check("SELECT x, a FROM t", DEVICE, false, SMALL);
  check("SELECT a, b FROM t WHERE a%3=1", DEVICE, false, LARGE);
  check("SELECT p.c, count(*), sum(q.b) FROM t AS p JOIN t AS q ON p.a = q.a GROUP BY p.c", false,
        false, SMALL);
  return tap_done();
}
