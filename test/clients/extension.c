/*
** The SQL surface: warplite as a loadable extension on a plain connection, its functions,
** tables and settings, strict mode, and the router on small tables.
**
**     extension BUILD        (the folder with libwarplite.so)
*/
#include <string.h>

#include "../engines.h"
#include "../rows.h"
#include "../tap.h"

static rows r;

/* The first value of a query by SQLite as text, or its error after "error: ". */
static const char *ask(sqlite3 *db, const char *sql) {
  static char buf[600];
  rows_query(&r, db, sqlite3_prepare_v2, sql);
  if (r.rc != SQLITE_DONE)
    snprintf(buf, sizeof buf, "error: %s", r.err);
  else if (!r.n_rows)
    snprintf(buf, sizeof buf, "no rows");
  else if (r.cells[0].type == SQLITE_TEXT)
    snprintf(buf, sizeof buf, "%.500s", r.bytes + r.cells[0].u.off);
  else
    cell_text(&r, &r.cells[0], buf, sizeof buf);
  return buf;
}

static bool has(const char *text, const char *part) {
  return strstr(text, part) != NULL;
}

static sqlite3 *plain_db(void) {
  sqlite3 *db;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
      sqlite3_exec(db,
                   "CREATE TABLE t(a INTEGER, b REAL); INSERT INTO t WITH RECURSIVE k(n) AS (SELECT"
                   " 1 UNION ALL SELECT n+1 FROM k WHERE n<100) SELECT n, n/2.0 FROM k",
                   NULL, NULL, NULL) != SQLITE_OK) {
    tap_bad("extension", "set-up: %s", sqlite3_errmsg(db));
    exit(tap_done());
  }
  return db;
}

static void check_loading(const char *build) {
  sqlite3 *db = plain_db();
  char path[600], *msg = NULL;
  snprintf(path, sizeof path, "%s/libwarplite.so", build);
  CHECK("load: not there before",
        has(ask(db, "SELECT warplite_version()"), "error: no such function"));
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
  int rc = sqlite3_load_extension(db, path, NULL, &msg);
  if (rc != SQLITE_OK)
    tap_bad("load", "%s", msg ? msg : "");
  else
    tap_ok("load");
  sqlite3_free(msg);
  CHECK("load: the version", !strcmp(ask(db, "SELECT warplite_version()"), WARPLITE_VERSION));
  msg = NULL;
  CHECK("load: twice is harmless", sqlite3_load_extension(db, path, NULL, &msg) == SQLITE_OK);
  sqlite3_free(msg);
  CHECK("load: enable after it is harmless", warplite_enable(db) == SQLITE_OK);
  CHECK("load: a setting", !has(ask(db, "SELECT warplite_set('engine','cpu')"), "error"));
  CHECK("load: a setting", !has(ask(db, "SELECT warplite_set('route','always')"), "error"));
  rows_query(&r, db, warplite_prepare, "SELECT sum(a) FROM t");
  CHECK("load: a native query", r.rc == SQLITE_DONE && r.cells[0].u.i == 5050);
  CHECK("load: its reason", has(warplite_reason(db), "cpu:"));
  CHECK("load: the reason in SQL", has(ask(db, "SELECT warplite_reason()"), "cpu:"));
  CHECK("load: SQL goes on", !strcmp(ask(db, "SELECT count(*) FROM t"), "100"));
  CHECK("load: the connection closes", sqlite3_close(db) == SQLITE_OK);
  db = plain_db();
  CHECK("load: another connection is still plain",
        has(ask(db, "SELECT warplite_version()"), "no such function"));
  sqlite3_close(db);
}

static void check_settings(void) {
  static const struct {
    const char *name, *value;
  } good[] = {{"engine", "auto"},
              {"engine", "gpu"},
              {"engine", "sqlite"},
              {"engine", "cpu"},
              {"device", "sim"},
              {"route", "cost"},
              {"route", "always"},
              {"strict", "1"},
              {"strict", "0"},
              {"keep", "0"},
              {"keep", "1"},
              {"threads", "2"},
              {"host_budget", "100000000"},
              {"device_budget", "100000000"},
              {"transfer", "serial"},
              {"transfer", "stream"},
              {"transfer", "mapped"},
              {"transfer", "cached"},
              {"transfer", "auto"},
              {"stream_blocks", "1"},
              {"stream_blocks", "8"},
              {"stream_blocks", "3"},
              {"pinned", "0"},
              {"pinned", "1"},
              {"block_threads", "32"},
              {"block_threads", "512"},
              {"block_threads", "0"},
              {"calibrate", "now"},
              {"calibrate", "off"},
              {"calibrate", "auto"}},
    bad[] = {{"nosuch", "1"},
             {"", "1"},
             {"engine", "fast"},
             {"engine", ""},
             {"device", "abacus"},
             {"route", "maybe"},
             {"strict", "2"},
             {"strict", "yes!"},
             {"keep", "2"},
             {"keep", "yes"},
             {"threads", "-1"},
             {"threads", "many"},
             {"host_budget", "lots"},
             {"device_budget", "-5"},
             {"engine ", "cpu"},
             {"threads", "1x"},
             {"host_budget", "1 "},
             {"transfer", "fast"},
             {"transfer", ""},
             {"stream_blocks", "0"},
             {"stream_blocks", "9"},
             {"pinned", "2"},
             {"pinned", "yes"},
             {"block_threads", "100"},
             {"block_threads", "1024"},
             {"block_threads", "-32"},
             {"calibrate", "1"},
             {"calibrate", ""}};
  sqlite3 *db = plain_db();
  char label[120];
  CHECK("settings: enable", warplite_enable(db) == SQLITE_OK);
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    snprintf(label, sizeof label, "setting %s=%s", good[i].name, good[i].value);
    if (use_setting(db, good[i].name, good[i].value))
      tap_ok(label);
    else
      tap_bad(label, "%s", sqlite3_errmsg(db));
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    snprintf(label, sizeof label, "refused: %s=%s", bad[i].name, bad[i].value);
    if (use_setting(db, bad[i].name, bad[i].value))
      tap_bad(label, "taken");
    else if (!has(sqlite3_errmsg(db), bad[i].name))
      tap_bad(label, "not by its name: %s", sqlite3_errmsg(db));
    else
      tap_ok(label);
  }
  CHECK("settings: an unknown name lists them",
        has(ask(db, "SELECT warplite_set('nosuch','1')"), "strict, keep, threads"));
  CHECK(
      "settings: a bad value of keep lists the good ones",
      has(ask(db, "SELECT warplite_set('keep','yes')"), "keep cannot be 'yes'; it is one of 0, 1"));
  CHECK("settings: one argument",
        has(ask(db, "SELECT warplite_set('engine')"), "error: wrong number"));
  CHECK("settings: NULL name", has(ask(db, "SELECT warplite_set(NULL,'cpu')"), "error"));
  CHECK("settings: NULL value", has(ask(db, "SELECT warplite_set('engine',NULL)"), "error"));
  CHECK("settings: the last good one stays", has(ask(db, "SELECT count(*) FROM t"), "100"));
  sqlite3_close(db);
  db = plain_db();
  setenv("WARPLITE_SET", "engine=cpu,route=always", 1);
  CHECK("WARPLITE_SET: enable", warplite_enable(db) == SQLITE_OK);
  rows_query(&r, db, warplite_prepare, "SELECT sum(a) FROM t");
  CHECK("WARPLITE_SET: is in force", has(warplite_reason(db), "cpu:"));
  sqlite3_close(db);
  static const char *const broken[] = {"nosuch=1", "engine", "engine=warp", "=",
                                       "engine=cpu,nosuch=2"};
  for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
    db = plain_db();
    setenv("WARPLITE_SET", broken[i], 1);
    snprintf(label, sizeof label, "WARPLITE_SET=%s is refused", broken[i]);
    int rc = warplite_enable(db);
    const char *part = has(broken[i], "nosuch") ? "nosuch" : has(broken[i], "warp") ? "warp" : "";
    if (rc != SQLITE_ERROR)
      tap_bad(label, "code %d", rc);
    else if (!*warplite_errmsg(db) || !has(warplite_errmsg(db), part))
      tap_bad(label, "not by its name: %s", warplite_errmsg(db));
    else
      tap_ok(label);
    sqlite3_stmt *st = NULL;
    CHECK("WARPLITE_SET: so is preparing, in words",
          warplite_prepare(db, "SELECT 1", -1, &st, NULL) == SQLITE_ERROR && !st &&
              has(warplite_errmsg(db), part) && *warplite_errmsg(db));
    CHECK("WARPLITE_SET: SQLite goes on", !strcmp(ask(db, "SELECT count(*) FROM t"), "100"));
    CHECK("WARPLITE_SET: closes", sqlite3_close(db) == SQLITE_OK);
  }
  unsetenv("WARPLITE_SET");
}

static void check_strict(void) {
  sqlite3 *db = plain_db();
  CHECK("strict: engine", use_engine(db, "cpu") && use_setting(db, "strict", "1"));
  rows_query(&r, db, warplite_prepare, "SELECT sum(a) FROM t");
  CHECK("strict: what is taken runs", r.rc == SQLITE_DONE);
  rows_query(
      &r, db, warplite_prepare,
      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<3) SELECT x FROM c");
  if (r.rc == SQLITE_ERROR && strlen(r.err) > 10)
    tap_ok("strict: what is not taken is an error in words");
  else
    tap_bad("strict: what is not taken is an error in words", "code %d: %s", r.rc, r.err);
  rows_query(
      &r, db, sqlite3_prepare_v2,
      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<3) SELECT x FROM c");
  CHECK("strict: SQLite's own call goes on", r.rc == SQLITE_DONE && r.n_rows == 3);
  CHECK("strict: a preference of the router is no error",
        use_setting(db, "route", "cost") && use_setting(db, "engine", "auto"));
  rows_query(&r, db, warplite_prepare, "SELECT sum(a) FROM t");
  CHECK("strict: a small table through the router",
        r.rc == SQLITE_DONE && has(warplite_reason(db), "sqlite:"));
  CHECK("strict: off", use_setting(db, "strict", "0") && use_setting(db, "route", "always"));
  rows_query(
      &r, db, warplite_prepare,
      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<3) SELECT x FROM c");
  CHECK("strict: off, SQLite runs it",
        r.rc == SQLITE_DONE && r.n_rows == 3 && has(warplite_reason(db), "sqlite:"));
  CHECK("strict: closes", sqlite3_close(db) == SQLITE_OK);
}

static void check_router(void) {
  sqlite3 *db = plain_db();
  CHECK("router: enable", warplite_enable(db) == SQLITE_OK);
  rows_query(&r, db, warplite_prepare, "SELECT a FROM t WHERE b>20");
  CHECK("router: 100 rows go to SQLite", r.n_rows == 60 && has(warplite_reason(db), "sqlite:"));
  CHECK("router: with a reason in words", strlen(warplite_reason(db)) > strlen("sqlite: ") + 5);
  CHECK("router: engine=sqlite",
        use_setting(db, "engine", "sqlite") && use_setting(db, "route", "always"));
  rows_query(&r, db, warplite_prepare, "SELECT a FROM t WHERE b>20");
  CHECK("router: engine=sqlite is SQLite", has(warplite_reason(db), "sqlite:"));
  CHECK("router: engine=gpu", use_setting(db, "engine", "gpu"));
  for (int k = 0; k < 2; k++) /* the second one knows how many rows there are */
    rows_query(&r, db, warplite_prepare, "SELECT a FROM t WHERE b>20");
  bool on_gpu = !strncmp(warplite_reason(db), "gpu:", 4);
  char reason[600];
  snprintf(reason, sizeof reason, "%s", warplite_reason(db));
  rows_query(&r, db, warplite_prepare, "EXPLAIN QUERY PLAN SELECT a FROM t WHERE b>20");
  CHECK("router: the plan names the engine that runs it",
        r.rc == SQLITE_DONE && !memcmp(r.bytes + r.cells[3].u.off, on_gpu ? "gpu:" : "cpu:", 4));
  const char *why = r.bytes + r.cells[3].u.off; /* a run on a device adds what it moved */
  CHECK("router: and why", !strncmp(why, reason, strlen(why)));
  use_setting(db, "engine", "cpu");
  rows_query(
      &r, db, warplite_prepare,
      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<3) SELECT x FROM c");
  rows_query(&r, db, warplite_prepare, "SELECT a FROM t WHERE a <> 'warplite_log' -- warplite_set");
  CHECK("router: a string about warplite is but a string", has(warplite_reason(db), "cpu:"));
  CHECK("router: closes", sqlite3_close(db) == SQLITE_OK);
}

static void check_tables(void) {
  static const char *const tables[] = {"warplite_devices", "warplite_cache", "warplite_log"};
  sqlite3 *db = plain_db();
  char sql[200], label[100];
  CHECK("tables: engine", use_engine(db, "cpu"));
  rows_query(&r, db, warplite_prepare, "SELECT sum(a) FROM t");
  rows_query(
      &r, db, warplite_prepare,
      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<3) SELECT x FROM c");
  for (int i = 0; i < 3; i++) {
    snprintf(sql, sizeof sql, "SELECT * FROM %s", tables[i]);
    snprintf(label, sizeof label, "%s can be read", tables[i]);
    rows_query(&r, db, sqlite3_prepare_v2, sql);
    if (r.rc == SQLITE_DONE && r.n_col > 0 && r.n_rows > 0)
      tap_ok(label);
    else
      tap_bad(label, "code %d (%s), %zu rows of %d columns", r.rc, r.err, r.n_rows, r.n_col);
    rows_query(&r, db, warplite_prepare, sql);
    snprintf(label, sizeof label, "%s through warplite", tables[i]);
    CHECK(label, r.rc == SQLITE_DONE && has(warplite_reason(db), "sqlite"));
  }
  rows_query(&r, db, sqlite3_prepare_v2, "SELECT count(*) FROM warplite_log");
  int64_t before = r.rc == SQLITE_DONE ? r.cells[0].u.i : -1;
  rows_query(&r, db, warplite_prepare, "SELECT max(b) FROM t");
  rows_query(&r, db, sqlite3_prepare_v2, "SELECT count(*) FROM warplite_log");
  CHECK("warplite_log grows with a query",
        r.rc == SQLITE_DONE && before >= 2 && r.cells[0].u.i > before);
  rows_query(
      &r, db, warplite_prepare,
      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<3) SELECT x FROM c");
  CHECK(
      "warplite_log tells of what SQLite ran",
      !strcmp(ask(db, "SELECT engine||' '||(length(reason)>5)||' '||(rows IS NULL)||(ms IS NULL)||"
                      "' '||sql FROM warplite_log ORDER BY id DESC LIMIT 1"),
              "sqlite 1 11 WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<3) "
              "SELECT x FROM c"));
  rows_query(&r, db, warplite_prepare, "SELECT a FROM t WHERE a<=7");
  CHECK(
      "warplite_log counts rows of what ran natively",
      !strcmp(
          ask(db,
              "SELECT engine||' '||rows||' '||(ms>=0) FROM warplite_log ORDER BY id DESC LIMIT 1"),
          "cpu 7 1"));
  ask(db, "SELECT warplite_unload('t')");
  rows_query(&r, db, warplite_prepare, "SELECT a FROM t");
  rows_query(&r, db, warplite_prepare, "SELECT a FROM main.t");
  rows_query(&r, db, warplite_prepare, "SELECT a FROM T AS x");
  CHECK("warplite_cache holds one copy, whatever the table is called",
        !strcmp(ask(db, "SELECT count(*) FROM warplite_cache"), "1"));
  CHECK("warplite_load", !has(ask(db, "SELECT warplite_load('t')"), "error"));
  CHECK("warplite_cache holds what was loaded",
        strcmp(ask(db, "SELECT count(*) FROM warplite_cache"), "0"));
  CHECK("warplite_unload", !has(ask(db, "SELECT warplite_unload('t')"), "error"));
  CHECK("warplite_cache is empty again",
        !strcmp(ask(db, "SELECT count(*) FROM warplite_cache"), "0"));
  CHECK("warplite_load of nothing", has(ask(db, "SELECT warplite_load('nosuch')"), "nosuch") &&
                                        has(ask(db, "SELECT warplite_load('nosuch')"), "error"));
  CHECK("warplite_load of NULL", has(ask(db, "SELECT warplite_load(NULL)"), "error"));
  CHECK("warplite_load without arguments", has(ask(db, "SELECT warplite_load()"), "wrong number"));
  CHECK("tables cannot be written", has(ask(db, "DELETE FROM warplite_log"), "error"));
  rows_query(&r, db, warplite_prepare, "SELECT sum(a) FROM t");
  CHECK("a query after unloading", r.rc == SQLITE_DONE && r.cells[0].u.i == 5050);
  CHECK("tables: closes", sqlite3_close(db) == SQLITE_OK);
}

/* The text of column 3 in the first row whose text there has this in it, or "". */
static const char *detail(const char *part) {
  for (size_t i = 3; i < r.n_cells; i += 4)
    if (r.cells[i].type == SQLITE_TEXT && has(r.bytes + r.cells[i].u.off, part))
      return r.bytes + r.cells[i].u.off;
  return "";
}

/* Every line but the first has a parent that came before it. */
static bool is_tree(void) {
  bool good = r.rc == SQLITE_DONE && r.n_rows > 1 && r.n_cells == 4 * r.n_rows;
  for (size_t i = 0; i < r.n_cells && good; i += 4) {
    bool found = i == 0 && r.cells[1].u.i == 0;
    for (size_t k = 0; k < i; k += 4) found |= r.cells[k].u.i == r.cells[i + 1].u.i;
    good = found;
  }
  return good;
}

/* SELECT count(*) FROM t WHERE a IN (?1, ?2, …), with 1 … n for values; the first cell's text. */
static const char *count_of_many(sqlite3 *db, const char *before, int n, int *n_params) {
  static char out[400];
  sqlite3_stmt *st = NULL;
  sqlite3_str *s = sqlite3_str_new(db);
  sqlite3_str_appendf(s, "%sSELECT count(*) FROM t WHERE a IN (?", before);
  for (int i = 1; i < n; i++) sqlite3_str_appendall(s, ",?");
  sqlite3_str_appendall(s, ")");
  char *sql = sqlite3_str_finish(s);
  snprintf(out, sizeof out, "no row");
  if (warplite_prepare(db, sql, -1, &st, NULL) == SQLITE_OK) {
    *n_params = sqlite3_bind_parameter_count(st);
    for (int i = 1; i <= *n_params; i++) sqlite3_bind_int(st, i, i);
    if (sqlite3_step(st) == SQLITE_ROW)
      snprintf(out, sizeof out, "%s", sqlite3_column_text(st, sqlite3_column_count(st) - 1));
  }
  sqlite3_finalize(st);
  sqlite3_free(sql);
  return out;
}

/* Parameters of a native statement, however many, and of EXPLAIN in each of its forms. */
static void check_parameters(void) {
  static const int counts[] = {1, 14, 15, 150, 1700, 12000};
  sqlite3 *db = plain_db();
  int n_params;
  CHECK("parameters: engine", use_engine(db, "cpu"));
  for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
    char name[100], want[20];
    int n = counts[k];
    snprintf(name, sizeof name, "parameters: %d of them, natively", n);
    snprintf(want, sizeof want, "%d", n < 100 ? n : 100);
    CHECK(name, !strcmp(count_of_many(db, "", n, &n_params), want) && n_params == n &&
                    has(warplite_reason(db), "cpu:"));
    snprintf(name, sizeof name, "parameters: %d of EXPLAIN QUERY PLAN", n);
    CHECK(name,
          has(count_of_many(db, "EXPLAIN QUERY PLAN ", n, &n_params), "cpu:") && n_params == n);
    snprintf(name, sizeof name, "parameters: %d of EXPLAIN", n);
    CHECK(name, !has(count_of_many(db, "EXPLAIN ", n, &n_params), "no row") && n_params == n);
    snprintf(name, sizeof name, "parameters: %d of EXPLAIN ANALYZE", n);
    CHECK(name,
          has(count_of_many(db, "EXPLAIN ANALYZE ", n, &n_params), "| 1 row") && n_params == n);
  }
  sqlite3_close(db);
}

static void check_join_plan(void) {
  static const char *const join = "SELECT g.n, count(*) FROM t JOIN g ON g.id = t.b % 3 LEFT JOIN "
                                  "h ON h.a = t.a AND h.x > 1 WHERE t.a <= 60 AND g.n <> 'g0' "
                                  "GROUP BY g.n ORDER BY 2";
  sqlite3 *db = plain_db();
  char sql[600];
  sqlite3_exec(db,
               "CREATE TABLE g(id INTEGER PRIMARY KEY, n TEXT);"
               "INSERT INTO g VALUES(0,'g0'),(1,'g1'),(2,'g2');"
               "CREATE TABLE h(a, x); INSERT INTO h SELECT a%10, a FROM t",
               NULL, NULL, NULL);
  CHECK("join plan: engine", use_engine(db, "cpu") && has(ask(db, "SELECT warplite_set('route', "
                                                                  "'always')"),
                                                          "always"));
  snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", join);
  rows_query(&r, db, warplite_prepare, sql);
  CHECK("join plan: a tree, the reason first",
        is_tree() && has(r.bytes + r.cells[3].u.off, "cpu:"));
  CHECK("join plan: the scan and its filter",
        has(detail("SCAN t"), "FILTER t.a <= 60") && has(detail("SCAN t"), "estimated"));
  CHECK("join plan: inner, by its key", has(detail("INNER JOIN g"), "g.id = t.b % 3"));
  CHECK("join plan: left", has(detail("LEFT JOIN h"), "h.a = t.a"));
  CHECK("join plan: lookups",
        *detail("LOOKUP by 1 key over g (") && has(detail("SCAN g "), "FILTER g.n <> 'g0'"));
  CHECK("join plan: groups and order", *detail("GROUP BY 1 key") && *detail("ORDER BY 1 term"));
  CHECK("join plan: columns were loaded, to know whether it can be run",
        has(ask(db, "SELECT count(*) > 4 FROM warplite_cache"), "1"));
  CHECK("join plan: nothing was run", !has(detail("SCAN t"), " ms"));

  ask(db, "SELECT warplite_unload('t') + warplite_unload('g') + warplite_unload('h')");
  snprintf(sql, sizeof sql, "explain /* and run */ analyze %s", join);
  rows_query(&r, db, warplite_prepare, sql);
  CHECK("analyze: a tree, the reason and the rows first",
        is_tree() && has(r.bytes + r.cells[3].u.off, "cpu:") &&
            has(r.bytes + r.cells[3].u.off, "| 2 rows, "));
  CHECK("analyze: what was loaded",
        has(detail("LOAD"), " ms, ") && has(detail("LOAD"), "GB/s, cpu"));
  CHECK("analyze: rows of the scan", has(detail("SCAN t"), "| 60 rows from 100 (estimated "));
  CHECK("analyze: rows of the inner join", has(detail("INNER JOIN g"), "| 40 rows from 60 "));
  CHECK("analyze: the lookup", has(detail("over g"), "one row a key") &&
                                   has(detail("over g"), "| 2 rows from 2 (estimated ") &&
                                   has(detail("SCAN g "), "| 2 rows from 3 (estimated "));
  CHECK("analyze: the second lookup",
        has(detail("over h"), "several rows a key") && has(detail("SCAN h"), " rows from 100 "));
  CHECK("analyze: groups", has(detail("GROUP BY"), "| 2 rows from 94 (estimated "));
  CHECK("analyze: estimates that are about right", !has(detail("GROUP BY"), "times"));
  CHECK("analyze: the pipeline has time, bytes, bandwidth, device",
        has(detail("AGGREGATE"), " ms, ") && has(detail("AGGREGATE"), " GB/s, ") &&
            has(detail("AGGREGATE"), ", cpu"));
  CHECK("analyze: it is in the log", has(ask(db, "SELECT rows FROM warplite_log ORDER BY id DESC "
                                                 "LIMIT 1"),
                                         "2"));

  ask(db,
      "CREATE TEMP TABLE skewed AS WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n "
      "WHERE i<2000) SELECT CASE WHEN i<=1000 THEN 1 ELSE i END AS k, i FROM n");
  rows_query(
      &r, db, warplite_prepare,
      "EXPLAIN ANALYZE SELECT count(*), sum(x.i+y.i) FROM skewed x JOIN skewed y ON x.k=y.k");
  CHECK("analyze: an estimate that is far off", has(detail("INNER JOIN"), "| 1001000 rows from ") &&
                                                    has(detail("INNER JOIN"), " times as many)"));
  ask(db, "DROP TABLE skewed");
  ask(db,
      "CREATE TEMP TABLE pairs AS WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n "
      "WHERE i<3000) SELECT i/3 AS a, i AS b, i%7 AS c FROM n");
  rows_query(
      &r, db, warplite_prepare,
      "EXPLAIN ANALYZE SELECT count(*), sum(x.c+y.c) FROM pairs x JOIN pairs y ON x.a=y.a AND "
      "x.b=y.b");
  CHECK("analyze: keys that are not independent",
        has(detail("INNER JOIN"), "| 3000 rows from ") && !has(detail("INNER JOIN"), "times"));
  ask(db, "DROP TABLE pairs");
  ask(db, "CREATE TEMP TABLE many AS WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n "
          "WHERE i<20000) SELECT i FROM n");
  rows_query(&r, db, warplite_prepare, "EXPLAIN ANALYZE SELECT i FROM many LIMIT 3");
  CHECK("analyze: LIMIT stops early, so the estimate is not far off",
        has(detail("SCAN many"), " rows from ") && has(detail("SCAN many"), "(estimated 20000)"));
  ask(db, "DROP TABLE many");

  rows_query(&r, db, warplite_prepare,
             "EXPLAIN ANALYZE WITH v AS (SELECT b%7 k, sum(a) s FROM t GROUP BY 1) SELECT count(*) "
             "FROM v WHERE s > (SELECT avg(s) FROM v)");
  CHECK("analyze: a subquery and its source once",
        is_tree() && *detail("SUBQUERY 1, for its value") && *detail("RESULT 2 columns | 7 rows") &&
            *detail("PIPELINE 2, as above"));

  sqlite3_stmt *s = NULL;
  const char *tail = NULL;
  int rc = warplite_prepare(
      db, "EXPLAIN ANALYZE SELECT b FROM t WHERE a > ?1 AND a < :hi; SELECT 1", -1, &s, &tail);
  CHECK("analyze: with parameters", rc == SQLITE_OK && sqlite3_bind_parameter_count(s) == 2 &&
                                        tail && strcmp(tail, " SELECT 1") == 0);
  sqlite3_bind_int(s, 1, 10);
  sqlite3_bind_int(s, 2, 21);
  char scan[300] = "";
  while (sqlite3_step(s) == SQLITE_ROW)
    if (has((const char *)sqlite3_column_text(s, 3), "SCAN"))
      snprintf(scan, sizeof scan, "%s", (const char *)sqlite3_column_text(s, 3));
  CHECK("analyze: parameters are bound", has(scan, "| 10 rows from 100 "));
  sqlite3_finalize(s);

  rc = sqlite3_prepare_v2(db, "EXPLAIN ANALYZE SELECT a FROM t", -1, &s, NULL);
  CHECK("analyze: unknown to SQLite",
        rc == SQLITE_ERROR && has(sqlite3_errmsg(db), "syntax error"));
  rc = warplite_prepare(db, "EXPLAIN ANALYZE SELECT nosuch FROM t", -1, &s, NULL);
  CHECK("analyze: SQLite's errors", rc == SQLITE_ERROR &&
                                        has(sqlite3_errmsg(db), "no such column") &&
                                        sqlite3_error_offset(db) == 23);
  rows_query(&r, db, warplite_prepare, "EXPLAIN ANALYZE t");
  CHECK("analyze: SQLite's own ANALYZE explained",
        r.rc == SQLITE_DONE && r.n_cells == 8 * r.n_rows);
  CHECK("analyze: engine=sqlite", use_engine(db, "sqlite"));
  rows_query(&r, db, warplite_prepare, "EXPLAIN ANALYZE SELECT a FROM t");
  CHECK("analyze: of what SQLite runs", is_tree() && *detail("sqlite: ") &&
                                            has(detail("sqlite: "), "| 100 rows, ") &&
                                            *detail("SCAN t"));
  CHECK("join plan: closes", sqlite3_close(db) == SQLITE_OK);
}

/* Bytes in use on the simulator. */
static sqlite3_int64 device_bytes(sqlite3 *db) {
  rows_query(&r, db, sqlite3_prepare_v2, "SELECT used FROM warplite_devices WHERE kind='sim'");
  return r.n_rows && r.cells[0].type == SQLITE_INTEGER ? r.cells[0].u.i : 0;
}

static bool nothing_kept(sqlite3 *db) {
  return !strcmp(ask(db, "SELECT count(*) FROM warplite_cache WHERE type LIKE 'lookup%'"), "0");
}

static bool columns_cached(sqlite3 *db) {
  return !strcmp(ask(db, "SELECT count(*) > 2 FROM warplite_cache WHERE type NOT LIKE 'lookup%'"),
                 "1");
}

/* Runs the join under EXPLAIN ANALYZE; gives the line of its lookup. */
static const char *analyzed_lookup(sqlite3 *db) {
  rows_query(&r, db, warplite_prepare,
             "EXPLAIN ANALYZE SELECT sum(t.a * g.x) FROM t JOIN g ON g.k = t.a WHERE g.x > 3");
  return is_tree() ? detail("LOOKUP by") : "";
}

/* keep=0: no lookup outlives its statement, neither on the host nor on a device. */
static void check_keep(const char *engine) {
  static const char *const note = "NO KEPT LOOKUPS (setting keep=0)";
  sqlite3 *db = plain_db();
  sqlite3_stmt *s = NULL;
  char name[80];
#define CHECK_KEEP(what, ok)                                                                       \
  CHECK((snprintf(name, sizeof name, "keep [%s]: " what, engine), name), ok)
  sqlite3_exec(db, "CREATE TABLE g(k INTEGER, x INTEGER); INSERT INTO g SELECT a, a%7 FROM t", NULL,
               NULL, NULL);
  CHECK_KEEP("engine", use_engine(db, engine));

  const char *line = analyzed_lookup(db);
  CHECK_KEEP("1 builds at first", *line && !has(line, "kept") && !*detail(note));
  CHECK_KEEP("1 finds it again",
             has(analyzed_lookup(db), "kept from an earlier statement") && !*detail(note));
  CHECK_KEEP("1 lists it", !nothing_kept(db));
  sqlite3_int64 with_lookup = device_bytes(db);

  CHECK_KEEP("0 is taken", use_setting(db, "keep", "0"));
  CHECK_KEEP("0 drops what was kept", nothing_kept(db) && columns_cached(db));
  sqlite3_int64 columns_alone = device_bytes(db);
  if (!strcmp(engine, "sim"))
    CHECK_KEEP("0 drops its copy on the device, columns stay there",
               columns_alone < with_lookup && columns_alone > 0);
  for (int i = 0; i < 2; i++) {
    line = analyzed_lookup(db);
    CHECK_KEEP("0 builds every time", *line && !has(line, "kept"));
    CHECK_KEEP("0 is said",
               *detail(note) && has(r.bytes + r.cells[3].u.off, engine_prefix(engine)));
    CHECK_KEEP("0 loads no column again", !*detail("LOAD"));
    CHECK_KEEP("0 keeps nothing", nothing_kept(db) && device_bytes(db) == columns_alone);
  }
  CHECK_KEEP("1 is taken again", use_setting(db, "keep", "1"));
  analyzed_lookup(db);
  CHECK_KEEP("1 finds lookups again", has(analyzed_lookup(db), "kept from an earlier statement"));

  /* a statement in progress holds the lookup that goes */
  int n = 0, rc = warplite_prepare(db, "SELECT t.a, g.x FROM t JOIN g ON g.k = t.a", -1, &s, NULL);
  for (; rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW; n++)
    if (n == 3 && !use_setting(db, "keep", "0")) break;
  CHECK_KEEP("0 in the middle of a statement", n == 100 && sqlite3_finalize(s) == SQLITE_OK);
  CHECK_KEEP("0 in the middle: nothing is kept", nothing_kept(db));
  CHECK_KEEP("closes", sqlite3_close(db) == SQLITE_OK);
#undef CHECK_KEEP
}

static void check_explain(void) {
  sqlite3 *db = plain_db();
  CHECK("explain: engine", use_engine(db, "cpu"));
  rows_query(&r, db, warplite_prepare, "EXPLAIN QUERY PLAN SELECT sum(a) FROM t WHERE b>1");
  bool engine = false;
  for (size_t i = 0; i < r.n_cells; i++)
    if (r.cells[i].type == SQLITE_TEXT) engine |= has(r.bytes + r.cells[i].u.off, "cpu");
  CHECK("explain: the plan names the engine", r.rc == SQLITE_DONE && engine);
  rows_query(&r, db, warplite_prepare, "EXPLAIN SELECT sum(a) FROM t WHERE b>1");
  CHECK("explain: the program", r.rc == SQLITE_DONE && r.n_rows > 3);
  rows_query(&r, db, warplite_prepare, "EXPLAIN QUERY PLAN SELECT a, count(*) OVER () FROM t");
  CHECK("explain: of what SQLite runs", r.rc == SQLITE_DONE && r.n_rows > 0);
  CHECK("explain: closes", sqlite3_close(db) == SQLITE_OK);
}

int main(int argc, char **argv) {
  check_loading(argc > 1 ? argv[1] : ".");
  check_settings();
  check_strict();
  check_router();
  check_tables();
  check_explain();
  check_parameters();
  check_join_plan();
  check_keep("cpu");
  check_keep("sim");
  rows_free(&r);
  return tap_done();
}
