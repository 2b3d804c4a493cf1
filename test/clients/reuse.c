/*
** The same text again: what is kept with a text must never give an old answer.
**
**     reuse [--engine E] [--seed N] [--n STEPS]
**
** A pool of texts with parameters runs again and again on one connection. Between the runs anything
** changes that an answer may depend on: rows, their types, the schema, attached databases, TEMP
** tables, functions, collations, settings, limits, the authorizer, PRAGMAs, the time zone. The
** oracle is SQLite: the same text, with the same parameters, on the same connection, right after.
**
** 1. One thing happens at a time, so both answers must agree, errors included.
** 2. Passing by falling back, or by never using anything again, is no pass: the share of native
**    runs and the number of texts that SQLite did not prepare again are checked.
** 3. Statements are also kept prepared and run again. They may ask to be prepared again if their
**    columns have changed, which is documented.
*/
#include <dlfcn.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../engines.h"
#include "../rng.h"
#include "../rows.h"
#include "../tap.h"

enum { N_LOG = 30, N_HELD = 6, MAX_SHOWN = 5 };
enum { WORLD = 500 }; /* steps on one connection */

/* ---- counting what SQLite prepares */

typedef int prepare_v2(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);
static const char *counted; /* the text to count, or NULL */
static long n_counted;

__attribute__((visibility("default"))) int
sqlite3_prepare_v2(sqlite3 *db, const char *sql, int n, sqlite3_stmt **out, const char **tail) {
  static prepare_v2 *real;
  if (!real) real = (prepare_v2 *)dlsym(RTLD_NEXT, "sqlite3_prepare_v2");
  if (counted && sql && strcmp(sql, counted) == 0) n_counted++;
  return real(db, sql, n, out, tail);
}

/* ---- texts */

#define T100                                                                                       \
  "1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234" \
  "567890"

static const struct text {
  const char *sql;
  bool ordered; /* ORDER BY decides the order completely */
} texts[] = {
    {"SELECT count(*), sum(a) FROM t WHERE id > ?1", true},
    {"SELECT id, a, b FROM t WHERE a = ?1", false},
    {"SELECT id, a FROM t WHERE a > ?1 ORDER BY id", true},
    {"SELECT id, a FROM t WHERE a > ?1 AND a < ?2 ORDER BY id", true},
    {"SELECT id FROM t WHERE b = ?1 ORDER BY id", true},
    {"SELECT id FROM t WHERE b = ?1 COLLATE NOCASE ORDER BY id", true},
    {"SELECT id FROM t WHERE b LIKE ?1 ORDER BY id", true},
    {"SELECT id, ?1 FROM t WHERE id < 20 ORDER BY id", true},
    {"SELECT typeof(?1), id, a + ?1 FROM t ORDER BY id LIMIT 10", true},
    {"SELECT b, count(*), min(a), max(a) FROM t GROUP BY b", false},
    {"SELECT b COLLATE NOCASE, count(*) FROM t GROUP BY 1", false},
    {"SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > ?1", false},
    {"SELECT DISTINCT a FROM t WHERE id <> ?1", false},
    {"SELECT DISTINCT typeof(a), typeof(c) FROM t", false},
    {"SELECT abs(a), length(b), upper(b) FROM t WHERE id < 30 ORDER BY id", true},
    {"SELECT max(abs(a)), count(DISTINCT b) FROM t WHERE length(b) > 2", true},
    {"SELECT sum(c), avg(c), total(a) FROM t WHERE c < ?1", true},
    {"SELECT id, c FROM t WHERE c BETWEEN ?1 AND ?2 ORDER BY id", true},
    {"SELECT id, b || 'x' || b FROM t WHERE id % 7 = 0 ORDER BY id", true},
    {"SELECT id, a FROM t ORDER BY a, id LIMIT 5", true},
    {"SELECT id, b FROM t ORDER BY b DESC, id LIMIT 7 OFFSET 3", true},
    {"SELECT id, b FROM t ORDER BY b COLLATE NOCASE, id LIMIT 9", true},
    {"SELECT t.id, u.y FROM t JOIN u ON u.x = t.id % 5 WHERE t.a > ?1", false},
    {"SELECT u.y, count(*), sum(t.id) FROM t, u WHERE u.x = t.id % 5 AND u.y <> ?1 GROUP BY u.y",
     false},
    {"SELECT count(*) FROM t LEFT JOIN u ON u.x = t.a", true},
    {"SELECT count(*) FROM t WHERE id IN (SELECT x FROM u)", true},
    {"SELECT count(*) FROM t WHERE a > (SELECT avg(x) FROM u)", true},
    {"SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.x = t.a)", true},
    {"SELECT id FROM t WHERE a IN (?1, ?2, 3) ORDER BY id", true},
    {"SELECT * FROM v WHERE k > ?1", false},
    {"SELECT count(*), sum(k) FROM v", true},
    {"SELECT v.k, u.y FROM v JOIN u ON u.x = v.k % 5", false},
    {"SELECT * FROM u", false},
    {"SELECT * FROM t WHERE id = ?1", true},
    {"SELECT p, q FROM far WHERE p > ?1", false},
    {"SELECT count(*), sum(p) FROM aux.far", true},
    {"SELECT count(*) FROM far, t WHERE far.p = t.id", true},
    {"SELECT count(*) FROM main.t WHERE id > ?1", true},
    {"SELECT strftime('%Y-%m-%d %H', 1000000 + id * 3600, 'unixepoch', 'localtime'), count(*) "
     "FROM t GROUP BY 1",
     false},
    {"SELECT id, \"a\", \"nosuch\" FROM t WHERE id < 9 ORDER BY id", true},
    {"WITH w AS (SELECT a AS z, id FROM t WHERE id < ?1) SELECT count(*), max(z) FROM w", true},
    {"SELECT id FROM t WHERE id < 40 UNION ALL SELECT x FROM u", false},
    {"SELECT CASE WHEN a > ?1 THEN 'big' ELSE b END, count(*) FROM t GROUP BY 1", false},
    {"SELECT ?1 + 1, count(*) FROM t", true},
    {"SELECT ?1 = ?2, count(*) FROM t WHERE ?1 IS NOT NULL", true},
    {"SELECT id, CAST(a AS TEXT), CAST(b AS INT) FROM t WHERE id < 25 ORDER BY id", true},
    {"SELECT group_concat(id) FROM t WHERE id < 12", true},
    {"SELECT id FROM t WHERE b GLOB ?1 ORDER BY id", true},
    {"SELECT rowid, id, a IS ?1 FROM t WHERE id < 15 ORDER BY id", true},
    {"SELECT count(*) FROM t AS l, t AS r WHERE l.a = r.a", true},
    {"SELECT id FROM t WHERE coalesce(a, ?1) = ?2 ORDER BY id", true},
    {"SELECT count(*) FROM t", true},
    {"SELECT ((id + 1) * 2 + 3) * 4 FROM t WHERE id < 5 ORDER BY id", true},
};
enum { N_TEXTS = sizeof texts / sizeof *texts };

/* ---- the world */

typedef struct held {
  sqlite3_stmt *ours, *theirs;
  const struct text *text;
} held;

typedef struct world {
  rng r;
  const char *engine;
  sqlite3 *db, *other;
  char dir[64];
  char log[N_LOG][240];
  long step, n_log, n_runs, n_native, n_seen, n_failed;
  held held[N_HELD];
  rows got, want;
  int limits[16];
  bool authorized, attached;
  int n_changes; /* makes new values */
} world;

static void note(world *w, const char *what, int rc) {
  snprintf(w->log[w->n_log++ % N_LOG], sizeof w->log[0], "%ld: %s -> %d", w->step, what, rc);
}

static void failed(world *w, const char *sql, const char *why) {
  if (w->n_failed++ >= MAX_SHOWN) return;
  printf("-- the steps before it:\n");
  for (long i = w->n_log > N_LOG ? w->n_log - N_LOG : 0; i < w->n_log; i++)
    printf("--   %s\n", w->log[i % N_LOG]);
  char *name = must(sqlite3_mprintf("reuse [%s]", w->engine));
  tap_bad(name, "step %ld: %s: %s (%s)", w->step, sql, why, warplite_reason(w->db));
  sqlite3_free(name);
}

static int run(world *w, sqlite3 *db, const char *sql) {
  int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  note(w, sql, rc);
  return rc;
}

static int runf(world *w, sqlite3 *db, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *sql = must(sqlite3_vmprintf(fmt, ap));
  va_end(ap);
  int rc = run(w, db, sql);
  sqlite3_free(sql);
  return rc;
}

/* ---- running a text both ways */

typedef struct param {
  int type;
  sqlite3_int64 i;
  double r;
  char text[16];
} param;

static param make_param(world *w) {
  static const char *const words[] = {"word1", "WORD2", "w%", "W*", "5", "", "a", "Word3"};
  param p = {.type = 1 + rng_below(&w->r, 5), .i = rng_below(&w->r, 40) - 5};
  if (rng_chance(&w->r, 40)) p.type = SQLITE_INTEGER;
  p.r = (double)p.i + (rng_chance(&w->r, 50) ? 0.5 : 0);
  snprintf(p.text, sizeof p.text, "%s", words[rng_below(&w->r, 8)]);
  return p;
}

static void bind(sqlite3_stmt *s, const param *p) {
  for (int k = 0; k < sqlite3_bind_parameter_count(s) && k < 2; k++) {
    switch (p[k].type) {
    case SQLITE_INTEGER: sqlite3_bind_int64(s, k + 1, p[k].i); break;
    case SQLITE_FLOAT: sqlite3_bind_double(s, k + 1, p[k].r); break;
    case SQLITE_TEXT: sqlite3_bind_text(s, k + 1, p[k].text, -1, SQLITE_TRANSIENT); break;
    case SQLITE_BLOB:
      sqlite3_bind_blob(s, k + 1, p[k].text, (int)strlen(p[k].text), SQLITE_TRANSIENT);
      break;
    default: sqlite3_bind_null(s, k + 1);
    }
  }
}

static void query(world *w, prepare_fn *prepare, const char *sql, const param *p, rows *out) {
  sqlite3_stmt *s = NULL;
  rows_clear(out);
  int rc = prepare(w->db, sql, -1, &s, NULL);
  if (rc) {
    rows_fail(out, w->db, rc);
  } else {
    bind(s, p);
    rows_step(out, w->db, s);
  }
  sqlite3_finalize(s);
}

static void compare(world *w, const struct text *t) {
  char why[600];
  if (!t->ordered) {
    rows_sort(&w->got);
    rows_sort(&w->want);
  }
  if (rows_same(&w->got, &w->want, true, why, sizeof why)) return;
  failed(w, t->sql, why);
}

static void note_native(world *w) {
  w->n_runs++;
  w->n_native += strncmp(warplite_reason(w->db), "sqlite", 6) != 0;
}

static void ask(world *w, const struct text *t) {
  param p[2] = {make_param(w), make_param(w)};
  int times = 1 + rng_below(&w->r, 2);
  for (int i = 0; i < times; i++) {
    counted = t->sql;
    n_counted = 0;
    query(w, warplite_prepare, t->sql, p, &w->got);
    counted = NULL;
    note_native(w);
    bool native = strncmp(warplite_reason(w->db), "sqlite", 6) != 0;
    w->n_seen += native && n_counted == 0;
    query(w, sqlite3_prepare_v2, t->sql, p, &w->want);
    compare(w, t);
  }
  note(w, t->sql, w->got.rc);
}

/* Runs a statement that stays prepared. */
static void ask_held(world *w) {
  held *h = &w->held[rng_below(&w->r, N_HELD)];
  if (!h->ours || rng_chance(&w->r, 10)) {
    sqlite3_finalize(h->ours);
    sqlite3_finalize(h->theirs);
    *h = (held){.text = &texts[rng_below(&w->r, N_TEXTS)]};
    int a = warplite_prepare(w->db, h->text->sql, -1, &h->ours, NULL);
    int b = sqlite3_prepare_v2(w->db, h->text->sql, -1, &h->theirs, NULL);
    /* Another connection may have changed the schema. Only one of the two may know it yet. */
    if (a || b) {
      sqlite3_finalize(h->ours);
      sqlite3_finalize(h->theirs);
      *h = (held){0};
      return;
    }
  }
  param p[2] = {make_param(w), make_param(w)};
  rows_clear(&w->got);
  rows_clear(&w->want);
  bind(h->ours, p);
  bind(h->theirs, p);
  rows_step(&w->got, w->db, h->ours);
  sqlite3_reset(h->ours);
  note_native(w);
  rows_step(&w->want, w->db, h->theirs);
  sqlite3_reset(h->theirs);
  bool again = strstr(w->got.err, "prepare it again") != NULL;
  if (!again) compare(w, h->text);
  if (again || w->got.rc != SQLITE_DONE) {
    sqlite3_finalize(h->ours);
    sqlite3_finalize(h->theirs);
    *h = (held){0};
  }
}

static void drop_held(world *w) {
  for (int i = 0; i < N_HELD; i++) {
    sqlite3_finalize(w->held[i].ours);
    sqlite3_finalize(w->held[i].theirs);
    w->held[i] = (held){0};
  }
}

/* ---- what changes between the runs */

static void change_rows(world *w) {
  sqlite3 *db = rng_chance(&w->r, 40) ? w->other : w->db;
  int k = ++w->n_changes;
  switch (rng_below(&w->r, 8)) {
  case 0:
    runf(w, db, "INSERT INTO main.t(a, b, c) VALUES(%d, 'Word%d', %d.5)", k, k % 9, k % 50);
    break;
  case 1: runf(w, db, "DELETE FROM main.t WHERE id = %d", 1 + rng_below(&w->r, 200)); break;
  case 2: runf(w, db, "UPDATE main.t SET a = '%d' WHERE id %% 3 = %d", k % 30, k % 3); break;
  case 3: runf(w, db, "UPDATE main.t SET a = id %% %d", 3 + k % 40); break;
  case 4:
    runf(w, db,
         "UPDATE main.t SET a = CASE id %% 4 WHEN 0 THEN NULL WHEN 1 THEN 2.5 WHEN 2 "
         "THEN 'x' ELSE x'00' END WHERE id %% %d = 0",
         1 + k % 5);
    break;
  case 5: runf(w, db, "UPDATE main.t SET b = 'wORD' || (id %% %d)", 2 + k % 100); break;
  case 6: runf(w, db, "UPDATE main.u SET x = x + 1"); break;
  default: runf(w, db, "UPDATE main.t SET c = id / 2.0 + %d", k % 7);
  }
}

static void change_schema(world *w) {
  static const char *const changes[] = {
      "ALTER TABLE main.t RENAME COLUMN d TO e",
      "ALTER TABLE main.t RENAME COLUMN e TO d",
      "CREATE INDEX IF NOT EXISTS main.ta ON t(a)",
      "DROP INDEX IF EXISTS ta",
      "CREATE INDEX IF NOT EXISTS main.tb ON t(b)",
      "DROP INDEX IF EXISTS tb",
      "DROP VIEW main.v; CREATE VIEW main.v AS SELECT id AS k, b FROM main.t WHERE id < 50",
      "DROP VIEW main.v; CREATE VIEW main.v AS SELECT a AS k FROM main.t",
      "DROP VIEW main.v; CREATE VIEW main.v AS SELECT x AS k, y AS k2 FROM main.u",
      "DROP TABLE main.u; CREATE TABLE main.u(x INT, y TEXT); INSERT INTO main.u "
      "VALUES(1,'p'),(2,'q')",
      "DROP TABLE main.u; CREATE TABLE main.u(y, x); INSERT INTO main.u VALUES(7,3),(8,4),(9,4)",
      "DROP TABLE main.u; CREATE TABLE main.u(x INTEGER PRIMARY KEY, y REAL) ; INSERT INTO main.u "
      "VALUES(0,.5),(3,1.5)",
      "ANALYZE",
  };
  /* CREATE INDEX with an authorizer that answers IGNORE makes an index of NULLs. */
  sqlite3 *db = w->authorized || rng_chance(&w->r, 40) ? w->other : w->db;
  run(w, db, changes[rng_below(&w->r, sizeof changes / sizeof *changes)]);
}

static void change_names(world *w) {
  switch (rng_below(&w->r, 7)) {
  case 0:
    run(w, w->db,
        "CREATE TEMP TABLE t(id INTEGER PRIMARY KEY, a, b, c, d); INSERT INTO temp.t "
        "VALUES(1,2,'temp',3.5,4),(5,6,'word1',7.5,8)");
    break;
  case 1: run(w, w->db, "DROP TABLE IF EXISTS temp.t"); break;
  case 2: run(w, w->db, "CREATE TEMP VIEW u AS SELECT id AS x, b AS y FROM main.t"); break;
  case 3: run(w, w->db, "DROP VIEW IF EXISTS temp.u"); break;
  case 4:
  case 5:
    drop_held(w); /* else the database is locked */
    if (w->attached) run(w, w->db, "DETACH aux");
    w->attached = runf(w, w->db, "ATTACH '%s/far%d.db' AS aux", w->dir, rng_below(&w->r, 2)) == 0;
    break;
  default:
    drop_held(w);
    if (w->attached && run(w, w->db, "DETACH aux") == 0) w->attached = false;
  }
}

static void fn_hundred(sqlite3_context *ctx, int n, sqlite3_value **args) {
  (void)args;
  sqlite3_result_int(ctx, 100 + n);
}
static void fn_step(sqlite3_context *ctx, int n, sqlite3_value **args) {
  (void)ctx;
  (void)n;
  (void)args;
}
static void fn_final(sqlite3_context *ctx) {
  sqlite3_result_int(ctx, -7);
}

/* SQLite's own function does not come back once another has taken its place. So functions are
** replaced only towards the end of a world. */
static void change_functions(world *w) {
  static const struct {
    const char *name;
    int n_args, encoding;
  } list[] = {{"abs", -1, SQLITE_UTF8},
              {"upper", 1, SQLITE_UTF16},
              {"length", 1, SQLITE_UTF8},
              {"max", 2, SQLITE_UTF8},
              {"other", 1, SQLITE_UTF8}};
  int k = rng_below(&w->r, 6), rc;
  if (w->step % WORLD < WORLD * 2 / 3) k = 4;
  if (k < 5)
    rc = sqlite3_create_function(w->db, list[k].name, list[k].n_args, list[k].encoding, NULL,
                                 fn_hundred, NULL, NULL);
  else
    rc = sqlite3_create_function(w->db, "sum", 1, SQLITE_UTF8, NULL, NULL, fn_step, fn_final);
  note(w, k < 5 ? list[k].name : "sum", rc);
}

static int fold(int c) {
  return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

/* NOCASE, as SQLite defines it or reversed. */
static int collate(void *reversed, int na, const void *a, int nb, const void *b) {
  const unsigned char *x = a, *y = b;
  int d = 0;
  for (int i = 0; i < na && i < nb && !d; i++) d = fold(x[i]) - fold(y[i]);
  if (!d) d = na - nb;
  return reversed ? -d : d;
}

static void change_collation(world *w) {
  static int yes;
  bool reversed = rng_chance(&w->r, 40);
  int rc = sqlite3_create_collation(w->db, "NOCASE", SQLITE_UTF8, reversed ? &yes : NULL, collate);
  note(w, reversed ? "NOCASE reversed" : "NOCASE", rc);
}

static void change_setting(world *w) {
  static const char *const list[][2] = {
      {"keep", "0"},     {"keep", "1"},       {"threads", "1"},     {"threads", "2"},
      {"zones", "0"},    {"zones", "1"},      {"host_budget", "0"}, {"host_budget", "100000"},
      {"route", "cost"}, {"route", "always"}, {"route", "always"},  {"host_budget", "0"}};
  const char *const *s = list[rng_below(&w->r, sizeof list / sizeof *list)];
  note(w, s[0], use_setting(w->db, s[0], s[1]));
  note(w, s[1], 0);
}

static void change_limit(world *w) {
  static const struct {
    int id, least;
  } list[] = {{SQLITE_LIMIT_LENGTH, 6000},
              {SQLITE_LIMIT_SQL_LENGTH, 60},
              {SQLITE_LIMIT_COLUMN, 5},
              {SQLITE_LIMIT_EXPR_DEPTH, 3},
              {SQLITE_LIMIT_COMPOUND_SELECT, 1},
              {SQLITE_LIMIT_FUNCTION_ARG, 1},
              {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 2},
              {SQLITE_LIMIT_VARIABLE_NUMBER, 1}};
  int k = rng_below(&w->r, sizeof list / sizeof *list);
  drop_held(w); /* the text of a native statement is longer, so it may hit a limit later */
  if (rng_chance(&w->r, 30))
    sqlite3_limit(w->db, list[k].id, list[k].least);
  else
    for (int i = 0; i <= SQLITE_LIMIT_WORKER_THREADS; i++) sqlite3_limit(w->db, i, w->limits[i]);
  note(w, "limit", list[k].id);
}

static int answer_now; /* the authorizer's answer for t.b; it changes without being set again */

static int authorize(void *arg, int code, const char *a, const char *b, const char *c,
                     const char *d) {
  (void)arg;
  (void)c;
  (void)d;
  if (code == SQLITE_READ && a && b && strcmp(a, "t") == 0 && strcmp(b, "b") == 0)
    return answer_now;
  return SQLITE_OK;
}

static void change_authorizer(world *w) {
  static const int answers[] = {SQLITE_OK, SQLITE_IGNORE, SQLITE_DENY};
  answer_now = answers[rng_below(&w->r, 3)];
  if (rng_chance(&w->r, 60) || !w->authorized) {
    w->authorized = rng_chance(&w->r, 50);
    sqlite3_set_authorizer(w->db, w->authorized ? authorize : NULL, NULL);
  }
  note(w, w->authorized ? "authorizer" : "no authorizer", answer_now);
}

static void change_pragma(world *w) {
  static const char *const list[] = {
      "PRAGMA case_sensitive_like=1",       "PRAGMA case_sensitive_like=0",
      "PRAGMA reverse_unordered_selects=1", "PRAGMA reverse_unordered_selects=0",
      "PRAGMA full_column_names=1",         "PRAGMA full_column_names=0",
      "PRAGMA short_column_names=0",        "PRAGMA short_column_names=1",
  };
  run(w, w->db, list[rng_below(&w->r, 8)]);
  if (rng_chance(&w->r, 40)) {
    int on = rng_chance(&w->r, 50);
    note(w, "DQS", sqlite3_db_config(w->db, SQLITE_DBCONFIG_DQS_DML, on, NULL));
  }
}

static void change_zone(world *w) {
  static const char *const zones[] = {"UTC", "XXX-3", "YYY+5"};
  const char *zone = zones[rng_below(&w->r, 3)];
  setenv("TZ", zone, 1);
  tzset();
  note(w, zone, 0);
}

/* A transaction that writes, and texts inside of it. */
static void change_in_transaction(world *w) {
  if (run(w, w->db, "BEGIN")) return;
  for (int i = rng_below(&w->r, 4); i >= 0; i--) {
    if (rng_chance(&w->r, 50)) runf(w, w->db, "UPDATE main.t SET a = a + 1 WHERE id < %d", i * 9);
    ask(w, &texts[rng_below(&w->r, N_TEXTS)]);
  }
  run(w, w->db, rng_chance(&w->r, 50) ? "COMMIT" : "ROLLBACK");
  if (!sqlite3_get_autocommit(w->db)) run(w, w->db, "ROLLBACK");
}

static void change(world *w) {
  int k = rng_below(&w->r, 100);
  if (k < 30)
    change_rows(w);
  else if (k < 42)
    change_schema(w);
  else if (k < 52)
    change_names(w);
  else if (k < 59)
    change_functions(w);
  else if (k < 64)
    change_collation(w);
  else if (k < 74)
    change_setting(w);
  else if (k < 80)
    change_limit(w);
  else if (k < 86)
    change_authorizer(w);
  else if (k < 91)
    change_pragma(w);
  else if (k < 94)
    change_zone(w);
  else
    change_in_transaction(w);
}

/* Everything is as in the beginning, except for rows and schema. */
static void calm(world *w) {
  for (int i = 0; i <= SQLITE_LIMIT_WORKER_THREADS; i++) sqlite3_limit(w->db, i, w->limits[i]);
  sqlite3_set_authorizer(w->db, NULL, NULL);
  w->authorized = false;
  sqlite3_create_collation(w->db, "NOCASE", SQLITE_UTF8, NULL, collate);
  sqlite3_exec(w->db,
               "PRAGMA case_sensitive_like=0; PRAGMA reverse_unordered_selects=0;"
               "PRAGMA full_column_names=0; PRAGMA short_column_names=1; DROP TABLE IF EXISTS "
               "temp.t; DROP VIEW IF EXISTS temp.u",
               NULL, NULL, NULL);
  use_setting(w->db, "route", "always");
  use_setting(w->db, "host_budget", "0");
  note(w, "calm", 0);
}

/* ---- setting up */

static bool set_up(world *w) {
  static const char start[] =
      "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b TEXT, c REAL, d);"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 150)"
      " INSERT INTO t SELECT i, i % 12, 'word' || i % 9, i / 2.0, i FROM n;"
      "CREATE TABLE u(x INT, y TEXT); INSERT INTO u VALUES(1,'one'),(2,'two'),(3,'three');"
      "CREATE VIEW v AS SELECT a AS k, b FROM t;";
  char path[128];
  snprintf(w->dir, sizeof w->dir, "reuse.XXXXXX");
  if (!mkdtemp(w->dir)) return false;
  for (int i = 0; i < 2; i++) {
    sqlite3 *far;
    snprintf(path, sizeof path, "%s/far%d.db", w->dir, i);
    if (sqlite3_open(path, &far)) return false;
    char *sql = must(sqlite3_mprintf(
        "CREATE TABLE far(p, q); INSERT INTO far VALUES(%d,'f'),(%d,'g')", i ? 3 : 10, i ? 4 : 20));
    sqlite3_exec(far, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    sqlite3_close(far);
  }
  snprintf(path, sizeof path, "%s/main.db", w->dir);
  if (sqlite3_open(path, &w->db) || sqlite3_open(path, &w->other)) return false;
  if (sqlite3_exec(w->db, start, NULL, NULL, NULL)) return false;
  for (int i = 0; i <= SQLITE_LIMIT_WORKER_THREADS; i++) w->limits[i] = sqlite3_limit(w->db, i, -1);
  return use_engine(w->db, w->engine);
}

static void shut(world *w) {
  char command[128];
  drop_held(w);
  if (sqlite3_close(w->db)) tap_bad("reuse: closes", "%s", sqlite3_errmsg(w->db));
  sqlite3_close(w->other);
  snprintf(command, sizeof command, "rm -rf '%s'", w->dir);
  if (system(command)) printf("-- %s is left\n", w->dir);
  rows_free(&w->got);
  rows_free(&w->want);
}

/* Adds up the counts of one world. */
typedef struct counts {
  long n_runs, n_native, n_seen, n_failed;
} counts;

static void one_world(const char *engine, unsigned seed, long first, long n, counts *sum) {
  world w = {.r = {seed}, .engine = engine};
  if (!set_up(&w)) {
    tap_bad("reuse", "cannot be set up: %s", w.db ? sqlite3_errmsg(w.db) : "no connection");
    sum->n_failed++;
    return;
  }
  for (w.step = first; w.step < n && w.step < first + WORLD && w.n_failed < MAX_SHOWN; w.step++) {
    int k = rng_below(&w.r, 100);
    if (w.step % 60 == 0)
      calm(&w);
    else if (k < 55)
      ask(&w, &texts[rng_below(&w.r, N_TEXTS)]);
    else if (k < 75)
      ask_held(&w);
    else
      change(&w);
  }
  shut(&w);
  sum->n_runs += w.n_runs;
  sum->n_native += w.n_native;
  sum->n_seen += w.n_seen;
  sum->n_failed += w.n_failed;
}

static void steps(const char *engine, unsigned seed, long n) {
  counts sum = {0};
  char name[64];
  for (long first = 0; first < n && sum.n_failed < MAX_SHOWN; first += WORLD)
    one_world(engine, seed * 1000 + (unsigned)(first / WORLD), first, n, &sum);
  snprintf(name, sizeof name, "reuse [%s]", engine);
  printf("-- %s: %ld runs, %ld native, %ld of them not prepared again\n", name, sum.n_runs,
         sum.n_native, sum.n_seen);
  if (!sum.n_failed) tap_ok(name);
  if (n < WORLD) return;
  snprintf(name, sizeof name, "reuse [%s]: native", engine);
  if (sum.n_native > sum.n_runs / 3)
    tap_ok(name);
  else
    tap_bad(name, "only %ld of %ld runs", sum.n_native, sum.n_runs);
  snprintf(name, sizeof name, "reuse [%s]: not prepared again", engine);
  if (sum.n_seen > sum.n_runs / 10)
    tap_ok(name);
  else
    tap_bad(name, "only %ld of %ld runs", sum.n_seen, sum.n_runs);
}

#include "reuse_cases.h"

int main(int argc, char **argv) {
  const char *engine = NULL;
  unsigned seed = 1;
  long n = TEST_SANITIZED ? 1500 : 4000;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--engine")) engine = argv[i + 1];
    if (!strcmp(argv[i], "--seed")) seed = (unsigned)strtoul(argv[i + 1], NULL, 10);
    if (!strcmp(argv[i], "--n")) n = strtol(argv[i + 1], NULL, 10);
  }
  const char *const engines[] = {"cpu", "sim"};
  for (int k = 0; k < (engine ? 1 : 2); k++) {
    one_by_one(engine ? engine : engines[k]);
    steps(engine ? engine : engines[k], seed, n);
  }
  return tap_done();
}
