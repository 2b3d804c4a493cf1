/*
** Errors that come after rows have been given: functions that fail at one row of tables larger than
** a batch. SQLite gives the rows before that row and then the error. So must warplite, each row
** once, through sqlite3_step() and through Arrow; and a statement that failed can be run again.
**
**     late [folder, ignored] [seed] [rounds]
**
** Invariants:
** 1. SQLite on the same connection is the oracle: rows in order, code and message.
** 2. A query whose order SQL leaves open (SQLite's is that of an index or a join) is compared as a
**    set where it succeeds, by its error alone where it fails.
*/
#include "../engines.h"
#include "../rng.h"
#include "../rows.h"
#include "../tablets.h"
#include "../tap.h"

enum { N_ROWS = 140000 };

static const char *engine;

typedef struct shape {
  const char *sql; /* %s: a fallible expression over t.a or t.m */
  bool open;
} shape;

static const char *const calls[] = {"json_extract(t.a,'$[0]')",
                                    "t.a->>0",
                                    "abs(t.m)",
                                    "json_type(t.a)",
                                    "t.a LIKE 'x%%' ESCAPE t.e",
                                    "CASE WHEN t.m<0 THEN abs(t.m) ELSE t.i END",
                                    "json_array_length(t.a)+t.i",
                                    "upper(json_type(t.a))||t.i",
                                    "t.i"};
static const shape shapes[] = {
    {"SELECT %s FROM t", false},
    {"SELECT t.i, %s, t.g FROM t", false},
    {"SELECT t.i FROM t WHERE %s IS NOT NULL", false},
    {"SELECT t.i, t.a FROM t WHERE t.g>3 AND %s IS NOT 7", false},
    {"SELECT %s FROM t LIMIT 130000", false},
    {"SELECT %s FROM t LIMIT 100000 OFFSET 66000", false},
    {"SELECT %s FROM t WHERE t.i>?1", false},
    {"SELECT %s, ?1 FROM t ORDER BY t.g", false},
    {"SELECT %s FROM t ORDER BY t.i DESC", false},
    {"SELECT t.i, %s x FROM t ORDER BY x, t.i", false},
    {"SELECT t.i, %s FROM t ORDER BY t.m LIMIT 70000", false},
    {"SELECT t.g, count(%s) FROM t GROUP BY t.g", false},
    {"SELECT DISTINCT %s FROM t ORDER BY 1", false},
    {"SELECT DISTINCT t.g, %s FROM t ORDER BY t.m", false},
    /* over groups, over rows in the order of row numbers, over derived rows */
    {"SELECT t.i, %s FROM t GROUP BY t.i", false},
    {"SELECT t.m, max(%s) FROM t GROUP BY t.m ORDER BY 2", false},
    {"SELECT t.i, count(*) FROM t GROUP BY t.i HAVING %s IS NOT 7", false},
    {"SELECT t.g, %s FROM t ORDER BY t.m DESC, t.i LIMIT 100000 OFFSET 67000", false},
    {"WITH t AS MATERIALIZED (SELECT i, a, m, g, e FROM main.t) SELECT %s FROM t", false},
    {"WITH t AS MATERIALIZED (SELECT * FROM main.t LIMIT 139999) SELECT i, %s FROM t", false},
    {"SELECT x FROM (SELECT %s x FROM t)", false},
    {"SELECT x FROM (SELECT %s x, t.i FROM t LIMIT 150000) WHERE i>10", false},
    {"SELECT %s FROM t JOIN s ON s.k=t.g", true},
    {"SELECT %s FROM s JOIN t ON s.k=t.g WHERE t.i>?1", true},
    {"SELECT %s FROM t LEFT JOIN s ON s.k=t.i", true},
    {"SELECT s.k, t.i FROM s JOIN t ON s.k=t.g AND %s IS NOT NULL", true},
    {"SELECT %s FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.k=t.g)", true},
    {"SELECT %s FROM t UNION ALL SELECT k FROM s", true},
    {"SELECT count(%s) FROM t JOIN s ON s.k=t.g", true},
    {"SELECT t.e FROM t WHERE t.e>='' AND %s IS NOT NULL", true},
    /* columns that nobody reads: SQLite computes them or not, by its plan */
    {"SELECT count(*) FROM s FULL JOIN (SELECT %s x, t.g FROM t) ON g=k", false},
    {"SELECT count(*) FROM s LEFT JOIN (SELECT %s x, t.g FROM t) ON g=k", false},
    {"SELECT g FROM (SELECT %s x, t.g FROM t LIMIT 139990)", false},
    {"WITH w AS MATERIALIZED (SELECT %s x, t.g FROM t) SELECT count(g) FROM w", false},
    {"SELECT count(*) FROM (SELECT max(%s) x, t.g FROM t GROUP BY t.g)", false},
    {"SELECT sum(g) FROM (SELECT %s, t.g FROM t UNION ALL SELECT v, k FROM s)", false},
};

static bool run_sql(sqlite3 *db, const char *sql) {
  return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ||
         tap_bad("late", "%s: %s", sql, sqlite3_errmsg(db));
}

/* A table in which about n rows make functions fail, the first of them far behind. */
static bool make_tables(sqlite3 *db, rng *r, int n, bool indexed) {
  char *sql = sqlite3_mprintf(
      "CREATE TABLE t(i INTEGER PRIMARY KEY, a TEXT, m INTEGER, g INTEGER, e TEXT);"
      "CREATE TABLE s(k INTEGER, v TEXT);"
      "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM n WHERE x<%d)"
      " INSERT INTO t SELECT x, json_array(x%%%d), x*7919%%100003, x%%11, '\\' FROM n;"
      "INSERT INTO s VALUES(1,'a'),(1,'b'),(3,'c'),(7,NULL);",
      N_ROWS, rng_chance(r, 50) ? 100 : 1000000);
  bool ok = run_sql(db, sql);
  sqlite3_free(sql);
  for (int i = 0; i < n && ok; i++) {
    static const char *const how[] = {"a='bad'", "m=-9223372036854775807-1", "e='xx'",
                                      "a='bad', m=-9223372036854775807-1, e=''"};
    int at = rng_chance(r, 20) ? 1 + rng_below(r, 1000) : 66000 + rng_below(r, N_ROWS - 66000);
    sql = sqlite3_mprintf("UPDATE t SET %s WHERE i=%d", how[i ? rng_below(r, 4) : 3], at);
    ok = run_sql(db, sql);
    sqlite3_free(sql);
  }
  return ok && (!indexed || run_sql(db, "CREATE INDEX te ON t(e)"));
}

/* ---- one statement, both ways */

static rows got, again, want;

static bool same(const rows *a, const shape *q, char *why, size_t n) {
  rows x = *a, y = want;
  if (q->open && want.rc != SQLITE_DONE) x.n_rows = y.n_rows = x.n_cells = y.n_cells = 0;
  if (q->open && want.rc == SQLITE_DONE) {
    rows_sort(&x);
    rows_sort(&y);
  }
  return rows_same(&x, &y, false, why, n);
}

/* Counts the rows of the stream and compares its error's text. */
static bool arrow_same(sqlite3 *db, const char *sql, const shape *q, char *why, size_t n) {
  struct ArrowArrayStream s;
  size_t n_rows = 0;
  int rc = warplite_query(db, sql, &s), e = 0;
  const char *text = rc ? warplite_errmsg(db) : NULL;
  while (!rc) {
    struct ArrowArray a;
    e = s.get_next(&s, &a);
    if (e || !a.release) break;
    n_rows += (size_t)a.length;
    a.release(&a);
  }
  if (e) text = s.get_last_error(&s);
  bool ok = (text != NULL) == (want.rc != SQLITE_DONE) && (!text || !strcmp(text, want.err));
  if (!(q->open && text)) ok &= n_rows == want.n_rows;
  if (!ok)
    snprintf(why, n, "Arrow: %zu rows, then %s; SQLite %zu, then %s", n_rows,
             text ? text : "the end", want.n_rows, want.err);
  if (!rc) s.release(&s);
  return ok;
}

static bool check(sqlite3 *db, const char *sql, const shape *of) {
  shape with = *of, *q = &with;
  q->open |= !strstr(sql, "ORDER BY") && plan_uses_index(db, sql);
  sqlite3_stmt *a = NULL, *b = NULL;
  char why[600] = "";
  rows_clear(&got);
  rows_clear(&again);
  rows_clear(&want);
  if (warplite_prepare(db, sql, -1, &a, NULL) || sqlite3_prepare_v2(db, sql, -1, &b, NULL))
    return tap_bad("late", "%s: %s", sql, sqlite3_errmsg(db));
  sqlite3_bind_int(a, 1, 40);
  sqlite3_bind_int(b, 1, 40);
  rows_step(&want, db, b);
  rows_step(&got, db, a);
  char reason[500];
  snprintf(reason, sizeof reason, "%s", warplite_reason(db));
  bool ok = same(&got, q, why, sizeof why);
  /* without a reset: sqlite3_step() begins anew after an error */
  if (ok) rows_step(&again, db, a);
  ok = ok && same(&again, q, why, sizeof why);
  sqlite3_reset(a);
  sqlite3_bind_int(a, 1, 40);
  rows_clear(&again);
  if (ok) rows_step(&again, db, a);
  ok = ok && same(&again, q, why, sizeof why);
  sqlite3_finalize(a);
  sqlite3_finalize(b);
  if (ok && !strchr(sql, '?')) ok = arrow_same(db, sql, q, why, sizeof why);
  return ok || tap_bad("late", "[%s] %s: %s (%s)", engine, sql, why, reason);
}

static void random_errors(uint64_t seed, int rounds) {
  char name[100];
  int n = 0, n_failed = 0, bad = 0;
  for (int k = 0; k < rounds && bad < 3; k++) {
    rng r = {.s = seed * 1000003u + (uint64_t)k};
    sqlite3 *db;
    rng_next(&r);
    sqlite3_open(":memory:", &db);
    bool ok =
        use_engine(db, engine) && make_tables(db, &r, rng_below(&r, 4) + (k == 0), k % 3 == 1);
    if (ok && k % 3 == 2) ok = tablets_convert(db, "t", &r);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && ok; i++) {
      char *sql = sqlite3_mprintf(shapes[i].sql, calls[rng_below(&r, 9)]);
      ok = check(db, sql, &shapes[i]);
      n++;
      n_failed += want.rc != SQLITE_DONE;
      sqlite3_free(sql);
    }
    bad += !ok;
    sqlite3_close(db);
  }
  snprintf(name, sizeof name, "late [%s] seed %d: %d statements, %d of which fail", engine,
           (int)seed, n, n_failed);
  if (!bad) CHECK(name, n_failed > n / 8);
}

/* ---- by hand */

/* The example of a small join: SQLite's order is not ours. */
static void small_join(void) {
  sqlite3 *db;
  sqlite3_open(":memory:", &db);
  bool ok = use_engine(db, engine) &&
            run_sql(db, "CREATE TABLE t(a,d); CREATE TABLE s(k);"
                        "INSERT INTO t VALUES('[1]',1),('[2]',2),('[3]',5),('[4]',6),('bad',3);"
                        "INSERT INTO s VALUES(1),(1),(3);");
  const shape q = {"SELECT t.a->>0 FROM s JOIN t ON s.k=t.d", false};
  if (ok && check(db, q.sql, &q)) tap_ok("late: a small join");
  sqlite3_close(db);
}

/* Rows that the application deletes as it reads them cannot be counted by SQLite again. */
static void written_meanwhile(void) {
  sqlite3 *db;
  sqlite3_stmt *s = NULL;
  rng r = {.s = 5};
  sqlite3_open(":memory:", &db);
  /* with many threads the first batch would reach the row that fails */
  bool ok = use_engine(db, engine) && use_setting(db, "threads", "2") &&
            make_tables(db, &r, 0, false) &&
            run_sql(db, "UPDATE t SET a='bad' WHERE i=139000");
  ok = ok && warplite_prepare(db, "SELECT t.i, t.a->>0 FROM t", -1, &s, NULL) == SQLITE_OK;
  long n = 0, twice = 0, last = 0;
  int rc = SQLITE_ROW;
  while (ok && (rc = sqlite3_step(s)) == SQLITE_ROW) {
    long i = (long)sqlite3_column_int64(s, 0);
    twice += i <= last;
    last = i;
    if (n++ == 10) ok = run_sql(db, "DELETE FROM t WHERE i<=10");
  }
  char why[200];
  snprintf(why, sizeof why, "%s", sqlite3_errmsg(db));
  sqlite3_finalize(s);
  CHECK("late: a write meanwhile: no row twice", ok && twice == 0 && last < 139000);
  if (strcmp(engine, "sqlite"))
    CHECK("late: a write meanwhile: an error that says so",
          rc == SQLITE_ABORT && strstr(why, "changed while the statement ran"));
  sqlite3_close(db);
}

int main(int argc, char **argv) {
  static const char *const engines[] = {"sqlite", "cpu", "sim"};
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  int rounds = argc > 3 ? atoi(argv[3]) : 1;
  for (int i = 0; i < 3; i++) {
    engine = engines[i];
    random_errors(seed, i == 0 ? 1 : rounds);
    small_join();
    written_meanwhile();
  }
  rows_free(&got);
  rows_free(&again);
  rows_free(&want);
  return tap_done();
}
