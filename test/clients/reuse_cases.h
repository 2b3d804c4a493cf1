/*
** One change at a time, for reuse.c: a text runs twice, something changes, it runs again, the
** change is undone, it runs again. Each case is about one thing that an answer depends on.
*/
#ifndef TEST_REUSE_CASES_H
#define TEST_REUSE_CASES_H

static void set_reversed(world *w) {
  static int yes;
  sqlite3_create_collation(w->db, "NOCASE", SQLITE_UTF8, &yes, collate);
}
static void set_nocase(world *w) {
  sqlite3_create_collation(w->db, "NOCASE", SQLITE_UTF8, NULL, collate);
}
static void deny(world *w) {
  answer_now = SQLITE_DENY;
  sqlite3_set_authorizer(w->db, authorize, NULL);
}
static void ignore(world *w) {
  answer_now = SQLITE_IGNORE;
  sqlite3_set_authorizer(w->db, authorize, NULL);
}
static void allow(world *w) {
  answer_now = SQLITE_OK;
  sqlite3_set_authorizer(w->db, authorize, NULL);
}
static void deny_quietly(world *w) {
  (void)w;
  answer_now = SQLITE_DENY;
}
static void no_authorizer(world *w) {
  sqlite3_set_authorizer(w->db, NULL, NULL);
}
static void least_args(world *w) {
  sqlite3_limit(w->db, SQLITE_LIMIT_FUNCTION_ARG, 1);
}
static void least_depth(world *w) {
  sqlite3_limit(w->db, SQLITE_LIMIT_EXPR_DEPTH, 3);
}
static void short_pattern(world *w) {
  sqlite3_limit(w->db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 3);
}
static void short_text(world *w) {
  sqlite3_limit(w->db, SQLITE_LIMIT_LENGTH, 500);
}
static void no_limits(world *w) {
  for (int i = 0; i <= SQLITE_LIMIT_WORKER_THREADS; i++) sqlite3_limit(w->db, i, w->limits[i]);
}
static void east(world *w) {
  (void)w;
  setenv("TZ", "XXX-3", 1);
  tzset();
}
static void west(world *w) {
  (void)w;
  setenv("TZ", "YYY+5", 1);
  tzset();
}
static void no_strings(world *w) {
  sqlite3_db_config(w->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
}
static void strings(world *w) {
  sqlite3_db_config(w->db, SQLITE_DBCONFIG_DQS_DML, 1, NULL);
}
static void any_abs(world *w) {
  sqlite3_create_function(w->db, "abs", -1, SQLITE_UTF8, NULL, fn_hundred, NULL, NULL);
}
static void any_upper(world *w) {
  sqlite3_create_function(w->db, "upper", 1, SQLITE_UTF16, NULL, fn_hundred, NULL, NULL);
}

static const struct {
  const char *name, *sql;    /* the text that runs before and after the change */
  const char *change, *undo; /* SQL, or NULL */
  void (*call)(world *), (*back)(world *);
  bool by_other; /* another connection makes the change */
} cases[] = {
    {"rows", "SELECT id, a FROM t ORDER BY id LIMIT 3", "UPDATE t SET a=a+1", "UPDATE t SET a=7",
     .by_other = false},
    {"rows of another", "SELECT sum(a) FROM t", "UPDATE t SET a=a+1", NULL, .by_other = true},
    {"no columns", "SELECT count(*) FROM t", "DELETE FROM t WHERE id>140",
     "INSERT INTO t(a) VALUES(1)", .by_other = false},
    {"types", "SELECT id, a+1 FROM t ORDER BY id", "UPDATE t SET a='x'||id", "UPDATE t SET a=id",
     .by_other = false},
    {"dictionary", "SELECT id FROM t WHERE b='word3' ORDER BY id", "UPDATE t SET b='word'||id%5",
     "UPDATE t SET b=id", .by_other = false},
    {"a column's name", "SELECT * FROM t WHERE id<3", "ALTER TABLE t RENAME COLUMN d TO e",
     "ALTER TABLE t RENAME COLUMN e TO d", .by_other = false},
    {"a column more", "SELECT * FROM t WHERE id<3", "ALTER TABLE t ADD COLUMN f", NULL,
     .by_other = true},
    {"another table", "SELECT * FROM u",
     "DROP TABLE u; CREATE TABLE u(y, x); INSERT INTO u "
     "VALUES(1,2)",
     NULL, .by_other = true},
    {"another view", "SELECT * FROM v", "DROP VIEW v; CREATE VIEW v AS SELECT id AS k FROM t",
     "DROP VIEW v; CREATE VIEW v AS SELECT a AS k FROM t", .by_other = false},
    {"TEMP table", "SELECT count(*), max(a) FROM t",
     "CREATE TEMP TABLE t(id,a); INSERT INTO temp.t VALUES(1,2)", "DROP TABLE temp.t",
     .by_other = false},
    {"TEMP view", "SELECT count(*) FROM u",
     "CREATE TEMP VIEW u AS SELECT 1 AS x UNION ALL SELECT 2", "DROP VIEW temp.u",
     .by_other = false},
    {"a lookup's table", "SELECT count(*), sum(t.id) FROM t, u WHERE u.x=t.id%5",
     "INSERT INTO u VALUES(4,4)", "DELETE FROM u WHERE x=4", .by_other = false},
    {"a subquery's rows", "SELECT count(*) FROM t WHERE id > (SELECT max(x) FROM u)",
     "INSERT INTO u VALUES(100,4)", "DELETE FROM u WHERE x=100", .by_other = false},
    {"keep", "SELECT count(*), sum(t.id) FROM t, u WHERE u.x=t.id%5",
     "SELECT warplite_set('keep','0')", "SELECT warplite_set('keep','1')", .by_other = false},
    {"host_budget", "SELECT id, a FROM t ORDER BY a, id", "SELECT warplite_set('host_budget','1')",
     "SELECT warplite_set('host_budget','0')", .by_other = false},
    {"case_sensitive_like", "SELECT count(*) FROM t WHERE b LIKE 'WORD%'",
     "PRAGMA case_sensitive_like=1", "PRAGMA case_sensitive_like=0", .by_other = false},
    {"column names", "SELECT t.id, t.a FROM t WHERE id<3",
     "PRAGMA full_column_names=1; PRAGMA short_column_names=0",
     "PRAGMA full_column_names=0; PRAGMA short_column_names=1", .by_other = false},
    {"an index", "SELECT id, b FROM t ORDER BY b LIMIT 4", "CREATE INDEX tb ON t(b)",
     "DROP INDEX tb", .by_other = false},
    {"a collation", "SELECT id, b FROM t ORDER BY b COLLATE NOCASE, id LIMIT 4",
     .call = set_reversed, .back = set_nocase},
    {"authorizer: deny", "SELECT id, b FROM t WHERE id<4", .call = deny, .back = no_authorizer},
    {"authorizer: ignore", "SELECT id, b FROM t WHERE id<4", .call = ignore, .back = no_authorizer},
    {"authorizer: allow", "SELECT id, b FROM t WHERE id<4", .call = allow},
    {"authorizer: other answer", "SELECT id, b FROM t WHERE id<4", .call = deny_quietly,
     .back = no_authorizer},
    {"limit: arguments", "SELECT max(coalesce(a, 1)) FROM t", .call = least_args,
     .back = no_limits},
    {"limit: depth", "SELECT ((id+1)*2+3)*4 FROM t WHERE id<5", .call = least_depth,
     .back = no_limits},
    {"limit: pattern", "SELECT count(*) FROM t WHERE b LIKE 'word%'", .call = short_pattern,
     .back = no_limits},
    {"limit: length", "SELECT max(length(b||'" T100 T100 T100 T100 "'||b||'" T100 "')) FROM t",
     .call = short_text, .back = no_limits},
    {"time zone", "SELECT strftime('%H', 1000000, 'unixepoch', 'localtime'), count(*) FROM t",
     .call = east, .back = west},
    {"strings in double quotes", "SELECT id, \"nosuch\" FROM t WHERE id<4", .call = no_strings,
     .back = strings},
    {"a function: abs", "SELECT max(abs(a)) FROM t", .call = any_abs},
    {"a function: upper", "SELECT max(upper(b)) FROM t", .call = any_upper},
};

/* Runs the text of a case; its answer must be SQLite's. */
static void check_case(world *w, const char *sql, const char *what) {
  static const param none[2];
  char name[128], why[600];
  snprintf(name, sizeof name, "%s [%s]", what, w->engine);
  query(w, warplite_prepare, sql, none, &w->got);
  query(w, sqlite3_prepare_v2, sql, none, &w->want);
  if (rows_same(&w->got, &w->want, true, why, sizeof why))
    tap_ok(name);
  else
    tap_bad(name, "%s: %s (%s)", sql, why, warplite_reason(w->db));
}

static void one_by_one(const char *engine) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    world w = {.r = {1}, .engine = engine};
    char what[100];
    if (!set_up(&w)) {
      tap_bad("reuse", "cannot be set up");
      return;
    }
    if (cases[i].call == deny_quietly) allow(&w);
    for (int k = 0; k < 2; k++) check_case(&w, cases[i].sql, "before a change");
    if (cases[i].call) cases[i].call(&w);
    if (cases[i].change) run(&w, cases[i].by_other ? w.other : w.db, cases[i].change);
    snprintf(what, sizeof what, "after a change: %s", cases[i].name);
    for (int k = 0; k < 2; k++) check_case(&w, cases[i].sql, what);
    if (cases[i].back) cases[i].back(&w);
    if (cases[i].undo) run(&w, w.db, cases[i].undo);
    snprintf(what, sizeof what, "after it is undone: %s", cases[i].name);
    check_case(&w, cases[i].sql, what);
    shut(&w);
  }
}

#endif
