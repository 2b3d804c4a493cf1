/*
** The grammar of INSERT, UPDATE and DELETE: whatever SQLite takes must be taken here, for SQLite
** has been asked first; parameters get SQLite's numbers; the clauses lie where they should.
*/
#include "../tap.h"
#include "base/mem.h"
#include "sql/dml.h"
#include <sqlite3.h>
#include <string.h>

static const char *const forms[] = {
    "INSERT INTO t VALUES(1,2,3)",
    "insert or ignore into main.t as x(a, \"b\") values(?, :b), (?1, ?) returning *, a+1 as q, x",
    "REPLACE INTO t(a) SELECT a FROM u WHERE b > ?3",
    "INSERT INTO t DEFAULT VALUES RETURNING rowid",
    "WITH w(x) AS (SELECT 1), replace AS (VALUES(2)) INSERT INTO t WITH v AS (SELECT * FROM w) "
    "SELECT x, 2, 3 FROM v UNION ALL SELECT 4, 5, 6 ORDER BY 1 LIMIT 2",
    "INSERT INTO t SELECT * FROM u WHERE true ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES(1,2,3) ON CONFLICT(a COLLATE nocase, b DESC) WHERE c > 1 DO UPDATE SET "
    "a = excluded.a, (b, c) = (SELECT 1, 2) WHERE t.a < excluded.a ON CONFLICT(c) DO NOTHING ON "
    "CONFLICT DO UPDATE SET c = 1 RETURNING a AS abort, b fail",
    "UPDATE t SET a = 1",
    "UPDATE OR ROLLBACK t AS x INDEXED BY i SET a = 1, (b, c) = (1, ?) FROM u JOIN v ON u.a = v.a "
    "WHERE x.a = u.a RETURNING *",
    "UPDATE OR FAIL t NOT INDEXED SET conflict = do, do = ignore WHERE (SELECT 1) ORDER BY a DESC "
    "LIMIT 3 OFFSET ?",
    "DELETE FROM t",
    "DELETE FROM t AS x NOT INDEXED WHERE a IN (SELECT b FROM u) RETURNING a ORDER BY b LIMIT 1, 2",
    "EXPLAIN QUERY PLAN WITH RECURSIVE r(i) AS (VALUES(1) UNION SELECT i+1 FROM r) DELETE FROM t "
    "WHERE a IN r;",
};

static unsigned long long seed = 88172645463325252ull;
static unsigned below(unsigned n) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (unsigned)((seed >> 11) % n);
}

static bool taken(const char *sql, wl_dml **out, wl_arena *arena) {
  wl_error err = {0};
  return wl_parse_dml(arena, sql, strlen(sql), out, &err) == WL_OK && *out;
}

/* SQLite takes its syntax, and it is one statement; whether names exist is another matter. */
static bool sqlite_takes(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = NULL;
  const char *tail = sql;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, &tail);
  bool dml = rc == SQLITE_OK && s && !sqlite3_stmt_readonly(s);
  sqlite3_finalize(s);
  return dml && !*tail;
}

/* Words of all forms, and of none, in place of others. */
static void test_mutations(sqlite3 *db, int n) {
  static const char *const words[] = {"a",          "t",      ",",       "(",  ")",    "=",
                                      "RETURNING",  "WHERE",  "ON",      "DO", "SET",  "NOTHING",
                                      "SELECT",     "VALUES", "DEFAULT", "OR", "FROM", "AS",
                                      "UPDATE",     "LIMIT",  "IGNORE",  "*",  "1",    "?",
                                      "excluded.a", "INTO",   "REPLACE"};
  int n_taken = 0;
  for (int i = 0; i < n; i++) {
    char text[2000] = "", *save = NULL;
    char *copy = strdup(forms[below(sizeof forms / sizeof *forms)]);
    if (!copy) abort();
    for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
      unsigned what = below(24);
      if (what == 0) continue;
      if (what == 1) w = (char *)words[below(sizeof words / sizeof *words)];
      strcat(strcat(text, w), " ");
      if (what == 2) strcat(strcat(text, words[below(sizeof words / sizeof *words)]), " ");
    }
    free(copy);
    if (!sqlite_takes(db, text)) continue;
    wl_arena arena;
    wl_dml *d = NULL;
    wl_arena_init(&arena);
    n_taken++;
    if (!taken(text, &d, &arena)) tap_bad("mutation", "SQLite takes it: %s", text);
    wl_arena_close(&arena);
  }
  char name[80];
  snprintf(name, sizeof name, "%d mutations that SQLite takes", n_taken);
  CHECK(name, n_taken > n / 20);
}

static bool span_is(const char *sql, wl_span s, const char *text) {
  while (s.pos < s.end && sql[s.pos] == ' ') s.pos++;
  return s.end - s.pos == strlen(text) && memcmp(sql + s.pos, text, s.end - s.pos) == 0;
}

static void test_places(void) {
  const char *insert =
      "WITH w AS (SELECT ?2) INSERT INTO t(a, b) SELECT 1, :x WHERE 1 ON CONFLICT(a) "
      "DO UPDATE SET a = ? RETURNING a, ?2";
  const char *update = "UPDATE t SET a = 1 FROM u WHERE b RETURNING c ORDER BY d LIMIT 1";
  wl_arena arena;
  wl_dml *d = NULL;
  wl_arena_init(&arena);
  bool ok = taken(insert, &d, &arena);
  CHECK("INSERT is parsed", ok);
  if (ok) {
    CHECK("WITH", span_is(insert, d->with_at, "WITH w AS (SELECT ?2) "));
    CHECK("columns", span_is(insert, d->columns_at, "(a, b)") && d->columns->next);
    CHECK("source", span_is(insert, d->source_at, "SELECT 1, :x WHERE 1"));
    CHECK("ON CONFLICT", span_is(insert, d->upserts_at, "ON CONFLICT(a) DO UPDATE SET a = ?"));
    CHECK("RETURNING", span_is(insert, d->returning_at, "RETURNING a, ?2"));
    CHECK("parameters", d->n_params == 4 && !d->params[0] && d->n_param_at == 4 &&
                            d->param_at[1].index == 3 && d->param_at[2].index == 4 &&
                            d->param_at[3].index == 2);
  }
  ok = taken(update, &d, &arena);
  CHECK("UPDATE is parsed", ok);
  if (ok) {
    CHECK("FROM and WHERE", span_is(update, d->from_at, "FROM u WHERE b"));
    CHECK("RETURNING before ORDER BY", span_is(update, d->returning_at, "RETURNING c"));
    CHECK("ORDER BY and LIMIT", span_is(update, d->tail_at, "ORDER BY d LIMIT 1"));
  }
  wl_dml *none = (wl_dml *)1;
  wl_error err = {0};
  CHECK("a SELECT is none of them",
        wl_parse_dml(&arena, "SELECT 1", 8, &none, &err) == WL_OK && !none);
  wl_arena_close(&arena);
}

static void test_memory(void) {
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    for (long k = 1;; k++) {
      wl_arena arena;
      wl_dml *d = NULL;
      wl_error err = {0};
      wl_arena_init(&arena);
      wl_mem_fail_after(k);
      wl_status rc = wl_parse_dml(&arena, forms[i], strlen(forms[i]), &d, &err);
      bool reached = wl_mem_fail_after(0);
      wl_arena_close(&arena);
      if (reached && rc != WL_NOMEM) tap_bad("memory", "allocation %ld of form %zu", k, i);
      if (!reached) break;
    }
  }
  tap_ok("out of memory anywhere");
}

int main(void) {
  sqlite3 *db = NULL;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK) return 1;
  sqlite3_exec(db,
               "CREATE TABLE t(a UNIQUE, b, c, conflict, do, ignore); CREATE TABLE u(a, b); CREATE "
               "TABLE v(a); CREATE INDEX i ON t(a);",
               NULL, NULL, NULL);
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    wl_arena arena;
    wl_dml *d = NULL;
    wl_arena_init(&arena);
    CHECK(forms[i], taken(forms[i], &d, &arena));
    wl_arena_close(&arena);
  }
  test_mutations(db, 60000);
  test_places();
  test_memory();
  sqlite3_close(db);
  return tap_done();
}
