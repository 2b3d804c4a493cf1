/*
** EXPLAIN, EXPLAIN QUERY PLAN and EXPLAIN ANALYZE of a statement show the same pipelines: their
** machines, sources, sinks, numbers of joins, and the pipelines that they need. The rows that
** EXPLAIN ANALYZE shows are the rows that SQLite counts.
**
** Invariants:
** 1. Each statement runs under each engine with keep=1 and keep=0, so lookups are found and built.
*/
#include "../engines.h"
#include "../tap.h"
#include "shown_pipelines.h"

static rows r;

static const char *const set_up =
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b INTEGER, c TEXT, d REAL);"
    "INSERT INTO t WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<500)"
    " SELECT n, n%7, 'x'||(n%5), n/4.0 FROM k;"
    "CREATE TABLE g(id INTEGER PRIMARY KEY, n TEXT);"
    "INSERT INTO g VALUES(0,'g0'),(1,'g1'),(2,'g2'),(3,NULL);"
    "CREATE TABLE h(a INTEGER, x INTEGER); INSERT INTO h SELECT a%50, a FROM t;"
    "CREATE TABLE e(a INTEGER, x TEXT)";

/* Both have reducers: of the groups of a subquery, and of a lookup. */
#define REDUCED_GROUPS                                                                             \
  "SELECT sum(t.d) FROM t JOIN g ON g.id = t.b WHERE g.n = 'g1' AND t.a > (SELECT avg(x) FROM h "  \
  "WHERE h.a = g.id)"
#define REDUCED_LOOKUP                                                                             \
  "SELECT g.n, sum(h.x) FROM g JOIN h ON h.a = g.id JOIN t ON t.a = h.x WHERE t.c = 'x1' AND "     \
  "g.n = 'g1' AND EXISTS (SELECT 1 FROM t AS u WHERE u.a = h.x AND u.b = 3) GROUP BY 1"

static const char *const statements[] = {
    REDUCED_GROUPS,
    REDUCED_LOOKUP,
    "SELECT a FROM t",
    "SELECT a, d*2 FROM t WHERE b > 3 AND a < 400",
    "SELECT count(*), sum(d) FROM t WHERE c = 'x1'",
    "SELECT c, count(*), sum(b) FROM t GROUP BY c",
    "SELECT c, count(*) FROM t WHERE a > 20 GROUP BY c HAVING count(*) > 3 AND sum(b) > 1",
    "SELECT DISTINCT c, b FROM t ORDER BY b DESC, c LIMIT 3 OFFSET 1",
    "SELECT DISTINCT d FROM t WHERE b < 3 ORDER BY d DESC",
    "SELECT a, c FROM t ORDER BY d DESC, a LIMIT 10",
    "SELECT a FROM t LIMIT -1 OFFSET 490",
    "SELECT b, max(a) AS m FROM t GROUP BY b ORDER BY m DESC LIMIT 2",
    "SELECT t.a, g.n FROM t JOIN g ON g.id = t.b WHERE g.n <> 'g0'",
    "SELECT g.n, count(*) FROM t JOIN g ON g.id = t.b LEFT JOIN h ON h.a = t.a AND h.x > 9 "
    "WHERE t.a <= 60 GROUP BY g.n ORDER BY 2, 1",
    "SELECT count(*) FROM t LEFT JOIN e ON e.a = t.a LEFT JOIN g ON g.id = t.b",
    "SELECT count(*), sum(g.id) FROM t JOIN g ON g.id = t.b JOIN h ON h.a = g.id WHERE h.x < 90",
    "SELECT count(*) FROM g AS p JOIN g AS q ON p.id = q.id JOIN g AS s ON p.id = s.id",
    "SELECT p.id, q.id FROM g AS p, g AS q ORDER BY 1, 2",
    "SELECT count(*) FROM t RIGHT JOIN g ON g.id = t.b",
    "SELECT a FROM h UNION ALL SELECT id FROM g UNION ALL SELECT b FROM t",
    "SELECT a FROM h UNION SELECT id FROM g ORDER BY 1 DESC LIMIT 5",
    "SELECT a FROM h INTERSECT SELECT id FROM g",
    "SELECT a FROM h EXCEPT SELECT id FROM g",
    "SELECT k, count(*) FROM (SELECT a AS k FROM h UNION ALL SELECT id FROM g UNION ALL SELECT b "
    "FROM t) GROUP BY k",
    "WITH v AS (SELECT b AS k, sum(a) AS s FROM t GROUP BY 1) SELECT count(*) FROM v WHERE s > "
    "(SELECT avg(s) FROM v)",
    "WITH v AS MATERIALIZED (SELECT b AS k, count(*) AS n FROM t GROUP BY b) SELECT p.k, q.n FROM "
    "v "
    "AS p JOIN v AS q ON p.k = q.n - 70",
    "SELECT a, (SELECT max(x) FROM h) FROM t WHERE a < 10",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM h WHERE x > 499)",
    "SELECT a FROM t WHERE b > (SELECT avg(id) FROM g) AND a IN (SELECT a FROM h WHERE x > 50 "
    "UNION "
    "ALL SELECT id FROM g) ORDER BY a",
    "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM h WHERE h.a = t.a AND h.x > t.b)",
    "SELECT count(*) FROM t WHERE NOT EXISTS (SELECT 1 FROM h WHERE h.a = t.b AND h.x > 20)",
    "SELECT a, (SELECT count(*) FROM h WHERE h.a = t.a) FROM t WHERE a < 60",
    "SELECT count(*) FROM t JOIN g ON g.id = t.b WHERE g.id < (SELECT count(*) FROM e) + 3",
    "SELECT count(*) FROM t WHERE b NOT IN (SELECT id FROM g WHERE n IS NOT NULL)",
    "SELECT x.c, y.n FROM (SELECT c, count(*) AS m FROM t GROUP BY c) AS x, (SELECT n, id FROM g) "
    "AS y WHERE y.id = x.m - 99",
    "SELECT count(*), max(x) FROM e",
    "SELECT 1 + (SELECT count(*) FROM t)",
};

static int show(sqlite3 *db, const char *how, const char *sql, shown *s) {
  char *whole = must(sqlite3_mprintf("%s %s", how, sql));
  memset(s, 0, MOST * sizeof *s);
  rows_query(&r, db, warplite_prepare, whole);
  sqlite3_free(whole);
  return strcmp(how, "EXPLAIN") ? read_tree(&r, s) : read_listing(&r, s);
}

static int n_on_device; /* pipelines that were compared */

static void compare(sqlite3 *db, const char *engine, const char *keep, const char *sql) {
  static const char *const trees[] = {"EXPLAIN QUERY PLAN", "EXPLAIN ANALYZE"};
  static shown listed[MOST], drawn[MOST];
  char name[300];
  snprintf(name, sizeof name, "pipelines [%s, keep=%s]: %.200s", engine, keep, sql);
  int n = show(db, "EXPLAIN", sql, listed);
  if (n < 1 || strcmp(listed[n].leaves, "results")) {
    tap_bad(name, "EXPLAIN lists %d pipelines: %s", n, warplite_reason(db));
    return;
  }
  for (int k = 1; k <= n; k++) n_on_device += !strcmp(listed[k].machine, "gpu");
  for (int t = 0; t < 2; t++) {
    int n_drawn = show(db, trees[t], sql, drawn);
    if (n_drawn != n) {
      tap_bad(name, "%s has %d pipelines, EXPLAIN has %d", trees[t], n_drawn, n);
      return;
    }
    for (int k = 1; k <= n; k++) {
      const shown *a = &listed[k], *b = &drawn[k];
      if (same(a, b)) continue;
      tap_bad(name,
              "pipeline %d: EXPLAIN %s, %s, %s, needs %llx, %d joins; %s %s, %s, %.40s, needs "
              "%llx, %d joins",
              k, a->machine, a->source, a->leaves, a->needs, a->n_joins, trees[t], b->machine,
              b->leaves, b->source, b->needs, b->n_joins);
      return;
    }
  }
  tap_ok(name);
}

/* ---- rows */

/* A line of EXPLAIN ANALYZE, and what counts its rows and the rows from which they come. With
** keep=0: a lookup that is kept counts no rows. */
static const struct {
  const char *sql, *line, *rows, *from;
} counts[] = {
    {"SELECT a FROM t WHERE b > 3 AND a < 400", "SCAN t ",
     "SELECT count(*) FROM t WHERE b > 3 AND a < 400", "SELECT count(*) FROM t"},
    {"SELECT c, count(*) FROM t GROUP BY c HAVING sum(b) > 299", "SCAN groups ",
     "SELECT count(*) FROM (SELECT 1 FROM t GROUP BY c HAVING sum(b) > 299)",
     "SELECT count(DISTINCT c) FROM t"},
    {"SELECT c, b, count(*) FROM t WHERE a > 77 GROUP BY c, b", "GROUP BY 2 keys",
     "SELECT count(*) FROM (SELECT DISTINCT c, b FROM t WHERE a > 77)",
     "SELECT count(*) FROM t WHERE a > 77"},
    {"SELECT t.a, g.n FROM t JOIN g ON g.id = t.b WHERE g.n <> 'g0'", "INNER JOIN g ",
     "SELECT count(*) FROM t JOIN g ON g.id = t.b WHERE g.n <> 'g0'", "SELECT count(*) FROM t"},
    {"SELECT t.a, g.n FROM t JOIN g ON g.id = t.b WHERE g.n <> 'g0'", "SCAN g ",
     "SELECT count(*) FROM g WHERE g.n <> 'g0'", "SELECT count(*) FROM g"},
    {"SELECT t.a, h.x FROM t LEFT JOIN h ON h.a = t.a AND h.x > 9 WHERE t.b = 2", "LEFT JOIN h ",
     "SELECT count(*) FROM t LEFT JOIN h ON h.a = t.a AND h.x > 9 WHERE t.b = 2",
     "SELECT count(*) FROM t WHERE b = 2"},
    {"SELECT t.a, h.x FROM t JOIN h ON h.a = t.a WHERE t.b = 2 AND h.x > t.b", "RESULT 2 columns",
     "SELECT count(*) FROM t JOIN h ON h.a = t.a WHERE t.b = 2 AND h.x > t.b",
     "SELECT count(*) FROM t JOIN h ON h.a = t.a WHERE t.b = 2 AND h.x > t.b"},
    {"SELECT DISTINCT d FROM t WHERE b < 3 ORDER BY d DESC LIMIT 5", "LIMIT 5", "SELECT 5", NULL},
    {"SELECT a FROM t WHERE b = 3 ORDER BY d DESC", "ORDER BY 1 term",
     "SELECT count(*) FROM t WHERE b = 3", NULL},
    {"WITH v AS (SELECT b AS k, sum(a) AS s FROM t GROUP BY 1) SELECT count(*) FROM v WHERE s > "
     "(SELECT avg(s) FROM v)",
     "rows for later", "SELECT count(DISTINCT b) FROM t", "SELECT count(DISTINCT b) FROM t"},
    {"SELECT a FROM t WHERE a IN (SELECT a FROM h WHERE x > 50 UNION ALL SELECT id FROM g)",
     "SCAN h ", "SELECT count(*) FROM h WHERE x > 50", "SELECT count(*) FROM h"},
    {REDUCED_GROUPS, "SEMI JOIN g ", "SELECT count(*) FROM h WHERE a = 1",
     "SELECT count(*) FROM h"},
    {REDUCED_LOOKUP, "REDUCED BY t AS u ",
     "SELECT count(*) FROM h JOIN t ON t.a = h.x WHERE t.b = 3", "SELECT count(*) FROM h"},
    /* the sum may overflow, so the pipeline runs a second time in row order */
    {"SELECT sum(9223372036854775000 + a - 600) - 9223372036854775000 FROM t WHERE a < 2",
     "SCAN t ", "SELECT count(*) FROM t WHERE a < 2", "SELECT count(*) FROM t"},
    {"SELECT b, sum((a%2*2-1) * 9000000000000000000) FROM t GROUP BY b", "GROUP BY 1 key",
     "SELECT count(DISTINCT b) FROM t", "SELECT count(*) FROM t"},
};

static long long count(sqlite3 *db, const char *sql) {
  rows_query(&r, db, sqlite3_prepare_v2, sql);
  return r.n_rows ? (long long)r.cells[0].u.i : -1;
}

static void check_counts(sqlite3 *db) {
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    char name[300], want[100], after;
    long long n = count(db, counts[i].rows);
    snprintf(want, sizeof want, "| %lld row%s", n, n == 1 ? "" : "s");
    if (counts[i].from)
      snprintf(want + strlen(want), sizeof want - strlen(want), " from %lld",
               count(db, counts[i].from));
    snprintf(name, sizeof name, "rows: %s: %.200s", counts[i].line, counts[i].sql);
    char *sql = must(sqlite3_mprintf("EXPLAIN ANALYZE %s", counts[i].sql));
    rows_query(&r, db, warplite_prepare, sql);
    sqlite3_free(sql);
    const char *got = "no such line";
    for (size_t k = 0; k < r.n_rows; k++)
      if (strstr(text(&r, k, 3), counts[i].line)) got = text(&r, k, 3);
    const char *at = strstr(got, want);
    after = at ? at[strlen(want)] : 0;
    if (at && (!after || after == ' ' || after == ','))
      tap_ok(name);
    else
      tap_bad(name, "wanted %s, got: %s", want, got);
  }
}

/* ---- lookups that are kept, and compounds of many arms */

static const char *line_with(sqlite3 *db, const char *sql, int col, const char *part) {
  rows_query(&r, db, warplite_prepare, sql);
  for (size_t k = 0; k < r.n_rows; k++)
    if (strstr(text(&r, k, col), part)) return text(&r, k, col);
  return "";
}

static void check_kept(sqlite3 *db) {
  static const char *const kept = "kept from an earlier statement";
  static const char *const listed =
      "EXPLAIN SELECT count(*), max(x) FROM t JOIN h ON h.x = t.a + 7";
  static const char *const drawn =
      "EXPLAIN QUERY PLAN SELECT count(*), max(x) FROM t JOIN h ON h.x = t.a + 7";
  CHECK("kept: EXPLAIN builds it at first",
        *line_with(db, listed, 7, "leaves a lookup") && !*line_with(db, drawn + 19, 0, kept));
  CHECK("kept: EXPLAIN lists it again", strstr(line_with(db, listed, 7, "leaves a lookup"), kept));
  CHECK("kept: in the tree", strstr(line_with(db, drawn, 3, "leaves a lookup"), kept));
  use_setting(db, "keep", "0");
  use_setting(db, "keep", "1");
  CHECK("kept: no more", !strstr(line_with(db, listed, 7, "leaves a lookup"), kept));
}

static void check_reducers(sqlite3 *db) {
  CHECK("reducers: what has reduced a lookup is not searched again",
        *line_with(db, "EXPLAIN QUERY PLAN " REDUCED_LOOKUP, 3, "REDUCED BY t AS u ") &&
            !*line_with(db, "EXPLAIN QUERY PLAN " REDUCED_LOOKUP, 3, " JOIN t AS u "));
#define GROUPS(factor, where)                                                                      \
  "EXPLAIN QUERY PLAN SELECT max(v.s-t.d) FROM t JOIN (SELECT x, sum(x*" factor ") AS s FROM h "   \
  "GROUP BY x) v ON v.x = t.a WHERE " where
  CHECK("reducers: few groups are computed",
        *line_with(db, GROUPS("180", "t.b = 3"), 3, "SEMI JOIN t "));
  CHECK("reducers: a reducer that keeps most groups is left out",
        !*line_with(db, GROUPS("180", "t.b < 6"), 3, "SEMI JOIN t "));
  CHECK("reducers: all groups are computed if a sum may overflow",
        !*line_with(db, GROUPS("18000000000000000", "t.b = 3"), 3, "SEMI JOIN t "));
#undef GROUPS
}

static void check_arms(sqlite3 *db) {
  char want[1000] = "", needs[1000] = "", *sql = NULL;
  enum { ARMS = 150 };
  sqlite3_str *s = sqlite3_str_new(db);
  sqlite3_str_appendall(s, "EXPLAIN SELECT sum(k), count(*) FROM (SELECT a AS k FROM h");
  for (int i = 1; i < ARMS; i++) sqlite3_str_appendf(s, " UNION ALL SELECT id+%d FROM g", i);
  sqlite3_str_appendall(s, ")");
  sql = must(sqlite3_str_finish(s));
  for (int i = 1; i <= ARMS; i++)
    snprintf(want + strlen(want), sizeof want - strlen(want), "%s%d", i > 1 ? ", " : "", i);
  rows_query(&r, db, warplite_prepare, sql);
  for (size_t k = 0; k < r.n_rows; k++)
    if (!strcmp(text(&r, k, 1), "Scan") && strstr(text(&r, k, 7), "leaves groups"))
      snprintf(needs, sizeof needs, "%s", text(&r, k, 3));
  sqlite3_free(sql);
  CHECK("a pipeline needs all arms of the compound that it reads", !strcmp(needs, want));
}

/* A function that SQLite computes for every row says so, with its share of the time. */
static void check_calls(sqlite3 *db) {
  const char *part = "CALL of SQLite: strftime('%Y', a, 'unixepoch', 'localtime')";
  const char *sql = "SELECT strftime('%Y', a, 'unixepoch', 'localtime') FROM big";
  sqlite3_exec(db,
               "CREATE TABLE IF NOT EXISTS big AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
               "SELECT i+1 FROM n WHERE i<3000) SELECT i*100000 AS a FROM n",
               NULL, NULL, NULL);
  char *plan = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
  char *analyze = sqlite3_mprintf("EXPLAIN ANALYZE %s", sql);
  CHECK("a call is in the plan", *line_with(db, plan, 3, part));
  const char *line = line_with(db, analyze, 3, part);
  CHECK("a call has its rows and its share of the time",
        strstr(line, " | 3000 rows, ") && strstr(line, "% of the time"));
  sqlite3_free(plan);
  sqlite3_free(analyze);
}

int main(void) {
  static const char *const engines[] = {"cpu", "sim"}, *const keeps[] = {"1", "0"};
  for (int e = 0; e < 2; e++) {
    sqlite3 *db = NULL;
    if (sqlite3_open(":memory:", &db) || sqlite3_exec(db, set_up, NULL, NULL, NULL) ||
        !use_engine(db, engines[e])) {
      tap_bad("pipelines", "set-up: %s", sqlite3_errmsg(db));
      return tap_done();
    }
    for (int k = 0; k < 2; k++) {
      use_setting(db, "keep", keeps[k]);
      if (e == 0 && k == 1) check_counts(db);
      for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        compare(db, engines[e], keeps[k], statements[i]);
    }
    CHECK("the device runs pipelines if there is one", e ? n_on_device > 60 : !n_on_device);
    use_setting(db, "keep", "1");
    check_kept(db);
    check_reducers(db);
    check_arms(db);
    check_calls(db);
    CHECK("closes", sqlite3_close(db) == SQLITE_OK);
  }
  rows_free(&r);
  return tap_done();
}
