/*
** What EXPLAIN QUERY PLAN says before a run is what happens in the run: the engine and the reason.
** Over random queries (the generator of joinfuzz.c) and queries of a larger table, where costs
** decide; under several settings, each time on a connection that has loaded nothing yet.
**
**     explained [BUILD] [--seed S] [--queries N] [--verbose]
**
** Invariants:
** 1. A native run may add words to its reason, behind those that EXPLAIN QUERY PLAN gave.
** 2. Only what shows while rows are computed may move a native run to another engine. Its reason
**    then begins with one of met_while_running, or names host_budget. These must stay rare.
** 3. With route=always, EXPLAIN, EXPLAIN QUERY PLAN and EXPLAIN ANALYZE show the same pipelines.
** 4. Where the plan has no line with a reason, it is SQLite's own plan, and SQLite runs the
**    statement.
*/
#include <unistd.h>

#include "../engines.h"
#include "../tablets.h"
#include "../tap.h"
#include "joinfuzz_query.h"
#include "shown_pipelines.h"

enum { PER_SCHEMA = 30, STEPS = 20000, MOST_STEPS = 250, MAX_SHOWN = 20 };

/* Settings that the same statements run under. */
static const struct {
  const char *name, *settings;
} engines[] = {{"auto", "engine=auto,route=cost"},
               {"auto, 1 thread", "engine=auto,route=cost,threads=1"},
               {"cpu", "engine=cpu,route=always"},
               {"cpu, little memory", "engine=cpu,route=always,host_budget=100000"},
               {"sim", "engine=gpu,device=sim,route=always"},
               {"sim by cost", "engine=gpu,device=sim,route=cost"},
               {"no device", "engine=gpu,device=cuda,route=always"},
               {"sqlite", "engine=sqlite"}};
enum { N_ENGINES = sizeof engines / sizeof engines[0] };

static const char *const met_while_running[] = {
    "sqlite: an SQLite function raised an error",
    "sqlite: LIMIT cuts between rows that ORDER BY treats as equal",
    "cpu: not on the gpu: sum() may overflow, which only a run in row order can tell",
    "cpu: not on the gpu: a text whose number only SQLite can compute",
    "cpu: not on the gpu: min() or max() has ties of integers and reals, and needs row order"};

typedef struct tester {
  const char *path;
  uint64_t seed;
  bool verbose;
  int steps;
  long n_native, n_compared, n_turned, n_slow, n_bad, n_other_engine, n_pipelines;
  char *binds[MAX_BINDS];
  rows plan, got;
} tester;

static int on_progress(void *arg) {
  tester *t = arg;
  return ++t->steps > MOST_STEPS;
}

static sqlite3 *open_fresh(tester *t, int engine) {
  sqlite3 *db = NULL;
  char list[200], *next;
  snprintf(list, sizeof list, "%s", engines[engine].settings);
  bool fine = sqlite3_open(t->path, &db) == SQLITE_OK && warplite_enable(db) == SQLITE_OK;
  for (char *at = list; fine && at; at = next) {
    next = strchr(at, ',');
    if (next) *next++ = 0;
    char *value = strchr(at, '=');
    *value++ = 0;
    fine = use_setting(db, at, value);
  }
  if (!fine) {
    tap_bad("explained", "cannot open a connection: %s", sqlite3_errmsg(db));
    exit(tap_done());
  }
  return db;
}

static void bind(tester *t, sqlite3 *db, sqlite3_stmt *st) {
  int n = sqlite3_bind_parameter_count(st);
  for (int i = 1; i <= n && i <= MAX_BINDS; i++) {
    sqlite3_stmt *v = NULL;
    char *sql = format("SELECT %s", t->binds[i - 1]);
    if (sqlite3_prepare_v2(db, sql, -1, &v, NULL) == SQLITE_OK && sqlite3_step(v) == SQLITE_ROW)
      sqlite3_bind_value(st, i, sqlite3_column_value(v, 0));
    sqlite3_finalize(v);
    sqlite3_free(sql);
  }
}

static void answer(tester *t, sqlite3 *db, const char *sql, rows *to) {
  sqlite3_stmt *st = NULL;
  rows_clear(to);
  t->steps = 0;
  sqlite3_progress_handler(db, STEPS, on_progress, t);
  int rc = warplite_prepare(db, sql, -1, &st, NULL);
  if (rc != SQLITE_OK) {
    rows_fail(to, db, rc);
  } else {
    bind(t, db, st);
    rows_step(to, db, st);
  }
  sqlite3_finalize(st);
  sqlite3_progress_handler(db, 0, NULL, NULL);
}

static bool begins(const char *s, const char *with) {
  return strncmp(s, with, strlen(with)) == 0;
}

static bool turned_while_running(const char *reason) {
  for (size_t k = 0; k < sizeof met_while_running / sizeof *met_while_running; k++)
    if (begins(reason, met_while_running[k])) return true;
  return strstr(reason, "that host_budget leaves") != NULL;
}

/* The reason that a plan begins with, or that SQLite runs it. */
static const char *plan_reason(const rows *plan) {
  const char *top = plan->n_rows && plan->n_col == 4 ? plan->bytes + plan->cells[3].u.off : "";
  return begins(top, "cpu: ") || begins(top, "gpu: ") || begins(top, "sqlite: ") ? top : "sqlite: ";
}

/* Compares the pipelines of EXPLAIN with those of the trees. What a run meets may change them. */
static void compare_pipelines(tester *t, sqlite3 *db, int engine, const char *sql) {
  static const char *const trees[] = {"EXPLAIN QUERY PLAN", "EXPLAIN ANALYZE"};
  static shown listed[MOST], drawn[MOST];
  char *text = format("EXPLAIN %s", sql);
  memset(listed, 0, sizeof listed);
  answer(t, db, text, &t->plan);
  sqlite3_free(text);
  int n = read_listing(&t->plan, listed);
  for (int k = 0; k < 2 && n > 0; k++) {
    text = format("%s %s", trees[k], sql);
    memset(drawn, 0, sizeof drawn);
    answer(t, db, text, &t->plan);
    sqlite3_free(text);
    if (t->plan.rc != SQLITE_DONE || turned_while_running(warplite_reason(db))) continue;
    bool good = read_tree(&t->plan, drawn) == n;
    for (int i = 1; i <= n && good; i++) good = same(&listed[i], &drawn[i]);
    t->n_pipelines += n;
    if (!good && ++t->n_bad <= MAX_SHOWN)
      printf("-- %s\n--   EXPLAIN and %s differ:\n%s;\n", engines[engine].settings, trees[k], sql);
  }
}

/* On a connection that stands as it is. */
static void compare_on(tester *t, sqlite3 *db, int engine, const char *sql) {
  char *text = format("EXPLAIN QUERY PLAN %s", sql);
  answer(t, db, text, &t->plan);
  sqlite3_free(text);
  answer(t, db, sql, &t->got);
  const char *said = plan_reason(&t->plan), *did = warplite_reason(db);
  if (!t->got.prepared) {
    t->n_bad += t->plan.prepared; /* EXPLAIN fails where the statement does */
  } else if (t->got.rc == SQLITE_INTERRUPT || t->plan.rc == SQLITE_INTERRUPT) {
    t->n_slow++;
  } else {
    bool same = t->plan.rc == SQLITE_DONE && begins(did, said);
    bool native = !begins(said, "sqlite: ");
    bool turned = native && turned_while_running(did);
    t->n_compared++;
    t->n_native += native;
    t->n_turned += turned;
    t->n_other_engine += !turned && strncmp(did, said, 3) != 0;
    if (!same && !turned && ++t->n_bad <= MAX_SHOWN)
      printf("-- %s\n--   explained: %s %s\n--   done:      %s\n%s;\n", engines[engine].settings,
             said, t->plan.err, did, sql);
    if (t->verbose) printf("%s: %s | %s\n", engines[engine].name, said, did);
    if (native && !turned && strstr(engines[engine].settings, "route=always"))
      compare_pipelines(t, db, engine, sql);
  }
}

static void compare(tester *t, int engine, const char *sql) {
  sqlite3 *db = open_fresh(t, engine);
  compare_on(t, db, engine, sql);
  sqlite3_close(db);
}

/* share: percent of the runs that must be native. */
static void report(tester *t, const char *what, int share) {
  char name[200];
  snprintf(name, sizeof name,
           "explained, %s: %ld runs, %ld native, %ld turned, %ld slow, %ld pipelines", what,
           t->n_compared, t->n_native, t->n_turned, t->n_slow, t->n_pipelines);
  if (t->n_bad)
    tap_bad(name, "%ld runs are not as they were explained, %ld of them on another engine",
            t->n_bad, t->n_other_engine);
  else if (t->n_turned * 20 > t->n_native)
    tap_bad(name, "too many turned to SQLite while they ran");
  else if (t->n_native * 100 < t->n_compared * share)
    tap_bad(name, "too few are native to prove anything");
  else
    tap_ok(name);
  t->n_bad = t->n_compared = t->n_native = t->n_turned = t->n_slow = 0;
  t->n_other_engine = t->n_pipelines = 0;
}

/* ---- random queries over small tables */

/* Views that are neither slow nor large. */
static void make_views(tester *t, maker *m, schema *s, sqlite3 *db) {
  for (int i = 0; i < MAX_VIEWS; i++) {
    relation *v = &s->rel[s->n_rels];
    char *sql = make_view(m, i % 4, v);
    snprintf(v->name, sizeof v->name, "v%d", i);
    run_sql(s, db, format("CREATE VIEW %s AS %s", v->name, sql));
    char *count = format("SELECT count(*) FROM %s", v->name);
    answer(t, db, count, &t->got);
    sqlite3_free(count);
    forget(m);
    v->n_rows = t->got.rc == SQLITE_DONE ? (double)t->got.cells[0].u.i : BIG_ROWS;
    if (v->n_rows < 2000)
      s->n_rels++;
    else
      run_sql(s, db, format("DROP VIEW %s", v->name));
  }
}

static void random_schema(tester *t, long number, long n) {
  static schema s;
  static maker m;
  sqlite3 *db = NULL;
  rng r = {.s = t->seed * 1000003u + (uint64_t)number};
  query q;
  unlink(t->path);
  sqlite3_open(t->path, &db);
  warplite_enable(db); /* for tablet tables */
  sqlite3_exec(db, "PRAGMA synchronous=OFF", NULL, NULL, NULL);
  make_tables(&r, &s, db);
  if (number % 3 == 2)
    for (int i = 0; i < s.n_tables; i++) {
      char *sql = format("SELECT warplite_convert(%Q)", s.rel[i].name); /* some cannot be */
      sqlite3_exec(db, sql, NULL, NULL, NULL);
      sqlite3_free(sql);
    }
  m = (maker){.r = &r, .s = &s};
  make_views(t, &m, &s, db);
  sqlite3_close(db);
  for (long k = 0; k < n; k++) {
    make_query(&m, &q);
    for (int i = 0; i < MAX_BINDS; i++) {
      sqlite3_free(t->binds[i]);
      t->binds[i] = value_of(&r, (kind)rng_below(&r, K_MIXED + 1));
    }
    for (int e = 0; e < N_ENGINES; e++) compare(t, e, q.sql);
    forget(&m);
  }
  free_schema(&s);
}

/* ---- a larger table, where costs decide */

static void make_large(tester *t, int n_rows) {
  sqlite3 *db = NULL;
  char *sql = format(
      "PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF; BEGIN;"
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b REAL, c TEXT, d, e INT);"
      "CREATE TABLE u(id INTEGER PRIMARY KEY, k INT, name TEXT);"
      "WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i+1 FROM n WHERE i < %d)"
      "INSERT INTO t SELECT i, i*7919 %% 10007, i*0.37, 'text '||(i*31 %% 5003), "
      "CASE i%%5 WHEN 0 THEN NULL WHEN 1 THEN i WHEN 2 THEN 'x'||i ELSE i*0.5 END, i*i FROM n;"
      "INSERT INTO u SELECT id, a, c FROM t WHERE id %% 40 = 0;"
      "CREATE INDEX t_a ON t(a); CREATE INDEX t_c ON t(c COLLATE NOCASE);"
      "CREATE VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a; COMMIT",
      n_rows - 1);
  unlink(t->path);
  sqlite3_open(t->path, &db);
  if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
    tap_bad("explained", "no table: %s", sqlite3_errmsg(db));
  sqlite3_free(sql);
  sqlite3_close(db);
}

static const char *const large_queries[] = {
    "SELECT count(*) FROM t",
    "SELECT sum(b) FROM t WHERE a > ?1",
    "SELECT * FROM t WHERE id = ?1",
    "SELECT a, sum(e) FROM t GROUP BY a",
    "SELECT a, sum(e) FROM t GROUP BY a ORDER BY 2 LIMIT 5",
    "SELECT c, count(*) FROM t GROUP BY c",
    "SELECT DISTINCT a FROM t",
    "SELECT DISTINCT c FROM t ORDER BY c",
    "SELECT id, b FROM t ORDER BY b DESC LIMIT 10",
    "SELECT id FROM t WHERE c LIKE ?2",
    "SELECT id FROM t WHERE c LIKE ?2 LIMIT 3",
    "SELECT id FROM t WHERE c LIKE 'text 1%' LIMIT 3",
    "SELECT id FROM t LIMIT 5",
    "SELECT id FROM t WHERE a BETWEEN 5 AND 7 LIMIT 2",
    "SELECT max(a) FROM t",
    "SELECT id FROM t WHERE a = 5",
    "SELECT group_concat(c, ',') FROM t WHERE id < 500",
    "SELECT sum(length(c)) FROM t",
    "SELECT upper(c), count(*) FROM t GROUP BY 1",
    "SELECT count(*) FROM t WHERE date(id) > '2000-01-01'",
    "SELECT count(*) FROM t WHERE strftime('%Y', b) = '2001'",
    "SELECT count(*) FROM t WHERE printf('%d', e) > '5'",
    "SELECT sum(printf('%.2f', b)) FROM t",
    "SELECT count(*) FROM t WHERE hex(b) LIKE '3%'",
    "SELECT avg(d) FROM t",
    "SELECT d, count(*) FROM t GROUP BY d",
    "SELECT sum(e*e) FROM t",
    "SELECT count(*) FROM t, u WHERE t.a = u.k",
    "SELECT count(*) FROM t, u WHERE t.id = u.id",
    "SELECT u.name, sum(t.b) FROM t JOIN u ON u.k = t.a GROUP BY u.name",
    "SELECT t.id FROM t LEFT JOIN u ON u.id = t.id WHERE u.id IS NULL LIMIT 7",
    "SELECT count(*) FROM t WHERE a IN (SELECT k FROM u)",
    "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.a)",
    "SELECT count(*) FROM t WHERE b > (SELECT avg(b) FROM t)",
    "SELECT (SELECT name FROM u WHERE u.id = t.id) FROM t",
    "SELECT count(*) FROM v",
    "SELECT max(n) FROM v",
    "SELECT count(*) FROM v WHERE n > ?1",
    "SELECT a FROM t UNION SELECT k FROM u",
    "SELECT a FROM t INTERSECT SELECT id FROM u",
    "SELECT a FROM t UNION ALL SELECT k FROM u LIMIT 10",
    "SELECT count(*) FROM t AS x, u AS y WHERE y.id < 1600",
    "SELECT count(*) FROM u AS x, u AS y WHERE x.k < y.k",
    "SELECT x.c FROM t AS x, t AS y WHERE x.c = y.c AND x.id = y.a ORDER BY 1 LIMIT 3",
    "WITH w AS (SELECT a, max(b) AS m FROM t GROUP BY a) SELECT count(*) FROM w, u WHERE w.a = u.k",
    "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<9) SELECT i FROM n, u",
    "SELECT row_number() OVER (ORDER BY b) FROM u",
    "SELECT random() FROM u",
    "SELECT 1+1",
    "SELECT ?1",
    "VALUES(1), (2)",
    "SELECT count(*) FROM t WHERE a+0 = ?1",
    "SELECT count(*) FROM t WHERE c = ?2",
    "SELECT id FROM t ORDER BY a LIMIT 5 OFFSET ?1",
    "SELECT id FROM t LIMIT ?1",
    "SELECT id, a FROM t ORDER BY a LIMIT ?3",
    "SELECT count(DISTINCT a) FROM t",
    "SELECT count(DISTINCT d) FROM t",
    "SELECT a, c FROM t GROUP BY a",
    "SELECT total(b), min(c), max(d) FROM t",
    "SELECT sqlite_version(), count(*) FROM u",
    "SELECT * FROM sqlite_schema",
    "SELECT id FROM t WHERE rowid > 100 AND rowid < 200",
    "SELECT c FROM t GROUP BY c HAVING count(*) > ?1 ORDER BY count(*), c LIMIT 4",
    "SELECT sum(e) FROM t WHERE c GLOB 'text 1*' OR d = 'x7'",
    "SELECT substr(c, 1, 3), sum(a) FROM t GROUP BY 1 ORDER BY 2",
    "SELECT t.c || u.name FROM t, u WHERE t.c = u.name",
    "SELECT abs(e - 9223372036854775807 - 1) FROM t",
    "SELECT count(*) FROM t NATURAL JOIN u",
    "SELECT 9 IN (SELECT a FROM t)",
    "SELECT (SELECT count(*) FROM t) + (SELECT max(k) FROM u)",
    "SELECT zeroblob(id) FROM u LIMIT 3",
    "SELECT id FROM t WHERE d IS NOT NULL ORDER BY d, id"};

static void large(tester *t, const char *const *binds) {
  for (int i = 0; i < MAX_BINDS; i++) {
    sqlite3_free(t->binds[i]);
    t->binds[i] = format("%s", binds[i]);
  }
  for (size_t k = 0; k < sizeof large_queries / sizeof *large_queries; k++)
    for (int e = 0; e < N_ENGINES; e++) compare(t, e, large_queries[k]);
}

/* One connection for all of them, with a row written before each, or all inside a transaction that
** has written. */
static void while_written(tester *t, bool inside) {
  for (int e = 0; e < N_ENGINES; e++) {
    sqlite3 *db = open_fresh(t, e);
    if (inside) sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    for (size_t k = 0; k < sizeof large_queries / sizeof *large_queries; k++) {
      if (k % 3 < 2)
        sqlite3_exec(db, "INSERT INTO t(a, b, c, e) SELECT max(id), 0.5, 'new', 7 FROM t", NULL,
                     NULL, NULL);
      compare_on(t, db, e, large_queries[k]);
    }
    if (inside) sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(db);
  }
}

int main(int argc, char **argv) {
  static const char *const binds[][MAX_BINDS] = {{"3", "'text 1%'", "4"},
                                                 {"-1", "'%7'", "0"},
                                                 {"NULL", "NULL", "9223372036854775807"},
                                                 {"'a'", "5", "1.5"}};
  tester *t = must(calloc(1, sizeof *t));
  char path[300];
  const char *dir = getenv("TMPDIR");
  long n = TEST_SANITIZED ? 30 : 300;
  t->seed = 1;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--seed") && i + 1 < argc)
      t->seed = strtoull(argv[++i], NULL, 10);
    else if (!strcmp(argv[i], "--queries") && i + 1 < argc)
      n = atol(argv[++i]);
    else if (!strcmp(argv[i], "--verbose"))
      t->verbose = true;
  }
  snprintf(path, sizeof path, "%s/explained-%d.db", dir ? dir : "/tmp", (int)getpid());
  t->path = path;
  for (long k = 0; k * PER_SCHEMA < n; k++) random_schema(t, k, PER_SCHEMA);
  report(t, "random queries over small tables", 20);
  for (int rows = 300; rows <= (TEST_SANITIZED ? 300 : 30000); rows *= 10) {
    make_large(t, rows);
    for (size_t k = 0; k < (TEST_SANITIZED || rows > 3000 ? 1 : rows > 300 ? 2 : 4); k++)
      large(t, binds[k]);
    char what[60];
    snprintf(what, sizeof what, "a table of %d rows", rows);
    report(t, what, 20);
    while_written(t, false);
    snprintf(what, sizeof what, "a table of %d rows that grows", rows);
    report(t, what, 20);
  }
  while_written(t, true);
  report(t, "inside a transaction that writes", 0);
  unlink(path);
  rows_free(&t->plan);
  rows_free(&t->got);
  for (int i = 0; i < MAX_BINDS; i++) sqlite3_free(t->binds[i]);
  free(t);
  return tap_done();
}
