/*
** The binder and the rewrites: a bound query says what the text says, and a rewritten one says what
** runs.
** Both are written in a short form and compared with what is expected.
**
** A query is its sources in braces, each with the letter of its join (I inner, L left, R right, F
** full, S semi, A anti, M mark) and its table's name, or what it is derived from; behind them D for
** DISTINCT. Arms have a comma between them, or the operator (|, & and - for UNION, INTERSECT and
** EXCEPT). Subqueries of WHERE and of results follow as ?{…}, subs as ={…}.
*/
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "plan/rewrite/rewrite.h"
#include "warplite.h"
#include "api/enable.h"

/* By its own name: the library's table of SQLite's functions is filled by warplite_enable(). */
#undef sqlite3_open
extern int sqlite3_open(const char *, sqlite3 **);

static char form[2000];

static void put(const char *s) {
  strncat(form, s, sizeof form - strlen(form) - 1);
}

static void put_query(const wl_query *q);

static void put_subqueries(const wl_bexpr *e) {
  if (!e) return;
  if (e->kind == WL_B_SUBQUERY) {
    put("?");
    put_query(e->query);
  }
  for (int k = 0; k < e->n_list; k++) put_subqueries(e->list[k]);
  put_subqueries(e->a);
  put_subqueries(e->b);
}

static void put_derived(const wl_derived *d) {
  static const char *const ops[] = {"", "|", ",", "&", "-"};
  put("(");
  for (int k = 0; k < d->n_arms; k++) {
    if (k) put(d->ops ? ops[d->ops[k]] : ",");
    put_query(d->arms[k]);
  }
  put(")");
}

static void put_query(const wl_query *q) {
  static const char *const hows[] = {"I", "L", "S", "A", "M", "R", "F"};
  put("{");
  for (int k = 0; k < q->n_sources; k++) {
    const wl_bsource *s = &q->sources[k];
    put(k ? " " : "");
    put(hows[s->how]);
    if (s->derived)
      put_derived(s->derived);
    else
      put(s->table ? s->table : "1");
  }
  put(q->distinct ? " D" : "");
  put("}");
  put_subqueries(q->where);
  for (int k = 0; k < q->n_results; k++) put_subqueries(q->results[k]);
  for (int k = 0; k < q->n_subs; k++) {
    put("=");
    put_query(q->subs[k].query);
  }
}

static void check_form(const char *sql, const char *stage, const char *want) {
  char name[600];
  snprintf(name, sizeof name, "%s: %s", stage, sql);
  if (strcmp(form, want) == 0)
    tap_ok(name);
  else
    tap_bad(name, "%s, not %s", form, want);
}

static void check(wl_store *store, const char *sql, const char *bound_form,
                  const char *form_after) {
  wl_arena arena;
  wl_stmt *stmt;
  wl_query *bound, *q;
  wl_error err = {0};
  wl_arena_init(&arena);
  wl_status rc = wl_parse(&arena, sql, strlen(sql), &stmt, &err);
  wl_catalog catalog = wl_store_catalog(store);
  if (!rc) rc = wl_bind(&arena, sql, stmt, &catalog, &bound, &err);
  if (!rc) {
    form[0] = 0;
    put_query(bound);
    check_form(sql, "bound", bound_form);
    CHECK("is bound", wl_query_is_bound(bound));
    bool same = strcmp(bound_form, form_after) == 0; /* else it must not pass for rewritten */
    CHECK("is not rewritten", same || !wl_query_is_rewritten(bound));
    rc = wl_rewrite(&arena, bound, &q, &err);
  }
  if (!rc) {
    form[0] = 0;
    put_query(q);
    check_form(sql, "rewritten", form_after);
    CHECK("is rewritten", wl_query_is_rewritten(q));
  }
  if (rc) tap_bad(sql, "%s", err.text);
  wl_arena_close(&arena);
}

static const char *const texts[][3] = {
    {"SELECT a FROM t", "{It}", "{It}"},
    /* joins */
    {"SELECT t.a FROM t RIGHT JOIN u ON t.a=u.a", "{It Ru}", "{Iu Lt}"},
    {"SELECT t.a FROM t FULL JOIN u ON t.a=u.a", "{It Fu}", "{It Fu}"},
    {"SELECT t.a FROM t JOIN u USING (a) RIGHT JOIN w USING (a)", "{It Iu Rw}", "{It Iu Rw}"},
    {"SELECT t.a FROM t RIGHT JOIN u USING (a) FULL JOIN w USING (a) JOIN v USING (a)",
     "{It Ru Fw I({It Iu})}", "{Iu Lt Fw I({It Iu})}"},
    /* FROM */
    {"SELECT s.a FROM (SELECT a FROM t WHERE b>1) s JOIN u ON u.a=s.a", "{I({It}) Iu}", "{It Iu}"},
    {"SELECT v.a FROM v", "{I({It Iu})}", "{It Iu}"},
    {"SELECT s.a FROM u LEFT JOIN (SELECT a FROM t) s ON u.a=s.a", "{Iu L({It})}", "{Iu L({It})}"},
    {"SELECT s.a FROM (SELECT DISTINCT a FROM t) s", "{I({It D})}", "{I({It D})}"},
    {"WITH c AS (SELECT a FROM t) SELECT 1 FROM c", "{I({It})}", "{It}"},
    {"WITH c AS (SELECT a FROM t) SELECT x.a FROM c x, c y", "{I({It}) I({It})}",
     "{I({It}) I({It})}"},
    /* subqueries of expressions */
    {"SELECT a FROM t WHERE a=(SELECT max(a) FROM u)", "{It}?{Iu}", "{It}={Iu}"},
    {"SELECT a FROM t WHERE EXISTS(SELECT 1 FROM u WHERE u.a=t.a)", "{It}?{Iu}", "{It Su}"},
    {"SELECT a FROM t WHERE NOT EXISTS(SELECT 1 FROM u WHERE u.a=t.a)", "{It}?{Iu}", "{It Au}"},
    {"SELECT a FROM t WHERE a IN (SELECT a FROM u)", "{It}?{Iu}", "{It Su}"},
    {"SELECT a NOT IN (SELECT a FROM u) FROM t", "{It}?{Iu}", "{It Mu}"},
    {"SELECT a, (SELECT sum(b) FROM u WHERE u.a=t.a) FROM t", "{It}?{Iu}", "{It L({Iu})}"},
    {"SELECT a, (SELECT sum(b) FROM u WHERE u.a>t.a) FROM t", "{It}?{Iu}",
     "{It L({Iu I({It D})})}"},
    {"SELECT a, (SELECT count(*)+(SELECT 5) FROM u WHERE u.a=t.a) FROM t", "{It}?{Iu}?{I1}",
     "{It L({Iu}={I1})}={I1}"},
    /* conditions on other sources that reduce groups */
    {"SELECT a, (SELECT sum(b) FROM u WHERE u.a=t.a) FROM t WHERE b=1", "{It}?{Iu}",
     "{It L({Iu St})}"},
    {"SELECT t.a FROM t, (SELECT a, max(b) AS m FROM u GROUP BY a) g WHERE g.a=t.a AND t.b<m",
     "{It I({Iu})}", "{It I({Iu})}"},
    {"SELECT t.a FROM t, (SELECT a, max(b) AS m FROM u GROUP BY a) g WHERE g.a=t.a AND t.b<3",
     "{It I({Iu})}", "{It I({Iu St})}"},
    {"SELECT t.a FROM t, (SELECT a, max(b) AS m FROM u GROUP BY a) g WHERE g.m=t.a AND t.b<3",
     "{It I({Iu})}", "{It I({Iu})}"},
    {"SELECT t.a FROM t LEFT JOIN (SELECT a, max(b) AS m FROM u GROUP BY a) g ON g.a=t.a AND t.b=1",
     "{It L({Iu})}", "{It L({Iu})}"},
    {"SELECT t.a FROM t FULL JOIN (SELECT a, max(b) AS m FROM u GROUP BY a) g ON g.a=t.a WHERE "
     "t.b=1",
     "{It F({Iu})}", "{It F({Iu})}"},
    {"SELECT t.a FROM t LEFT JOIN w ON w.a=t.a AND w.b=1, (SELECT a, max(b) AS m FROM u GROUP BY "
     "a) "
     "g WHERE g.a=w.a",
     "{It Lw I({Iu})}", "{It Lw I({Iu})}"},
    {"SELECT t.a FROM t WHERE a IN (SELECT a FROM w WHERE b=1) AND b>(SELECT avg(b) FROM u WHERE "
     "u.a=t.a)",
     "{It}?{Iw}?{Iu}", "{It Sw L({Iu Sw})}"},
    {"SELECT a FROM t WHERE b=1 AND NOT EXISTS(SELECT 1 FROM (SELECT a FROM u GROUP BY a) g WHERE "
     "g.a=t.a)",
     "{It}?{I({Iu})}", "{It A({Iu St})}"},
    {"SELECT t.a FROM t, (SELECT a, group_concat(b) FROM u GROUP BY a) g WHERE g.a=t.a AND t.b<3",
     "{It I({Iu})}", "{It I({Iu})}"},
    {"SELECT t.a FROM t, (SELECT a, b FROM u GROUP BY a) g WHERE g.a=t.a AND t.b<3", "{It I({Iu})}",
     "{It I({Iu})}"},
    {"SELECT t.a FROM t, (SELECT a FROM u GROUP BY a LIMIT 9) g WHERE g.a=t.a AND t.b<3",
     "{It I({Iu})}", "{It I({Iu})}"},
    {"WITH c AS (SELECT a, max(b) AS m FROM u GROUP BY a) SELECT t.a FROM t, c WHERE c.a=t.a AND "
     "t.b<3 AND t.a<(SELECT max(m) FROM c)",
     "{It I({Iu})}?{I({Iu})}", "{It I({Iu})}={I({Iu})}"},
    {"SELECT t.a FROM t, (SELECT a FROM u GROUP BY a) g WHERE g.a=t.a AND abs(t.b)=3",
     "{It I({Iu})}", "{It I({Iu})}"},
    /* compounds */
    {"SELECT a FROM t UNION ALL SELECT a FROM u", "{I({It},{Iu})}", "{I({It},{Iu})}"},
    {"SELECT a FROM t UNION SELECT a FROM u", "{I({It}|{Iu})}", "{I({I({It},{Iu}) D})}"},
    {"SELECT a FROM t INTERSECT SELECT a FROM u", "{I({It}&{Iu})}", "{I({I({It}) S({Iu}) D})}"},
    {"SELECT a FROM t EXCEPT SELECT DISTINCT a FROM u", "{I({It}-{Iu D})}",
     "{I({I({It}) A({Iu}) D})}"},
    {"SELECT a FROM t UNION ALL SELECT DISTINCT a FROM u ORDER BY 1", "{I({It},{Iu D})}",
     "{I({It},{Iu D})}"},
};

/* A query over so many tables that all of them would not fit the grouped query. */
static void check_many(wl_store *store) {
  enum { N = 60, N_INNER = 10 };
  char sql[6000], tables[1000] = "{It", groups[500] = "{Iu", want[2000];
  size_t n = 0;
#define SAY(...) n += (size_t)snprintf(sql + n, sizeof sql - n, __VA_ARGS__)
  SAY("SELECT t0.a FROM t t0");
  for (int k = 1; k < N; k++) SAY(", t t%d", k);
  SAY(", (SELECT u0.a FROM u u0");
  for (int k = 1; k < N_INNER; k++) SAY(" JOIN u u%d USING (a)", k);
  SAY(" GROUP BY u0.a) g WHERE g.a=t0.a AND t0.b=0");
  for (int k = 1; k < N; k++) SAY(" AND t%d.a=t0.a AND t%d.b=%d", k, k, k);
#undef SAY
  for (int k = 1; k < N; k++) strcat(tables, " It");
  for (int k = 1; k < N_INNER; k++) strcat(groups, " Iu");
  char bound[2000];
  snprintf(bound, sizeof bound, "%s I(%s})}", tables, groups);
  snprintf(want, sizeof want, "%s I(%s St St St St St St})}", tables, groups);
  check(store, sql, bound, want);
}

int main(void) {
  sqlite3 *db;
  wl_error err = {0};
  if (sqlite3_open(":memory:", &db) || warplite_enable(db) ||
      sqlite3_exec(db,
                   "CREATE TABLE t(a INTEGER, b INTEGER); CREATE TABLE u(a INTEGER, b INTEGER);"
                   "CREATE TABLE w(a INTEGER, b INTEGER);"
                   "CREATE VIEW v AS SELECT t.a, u.b FROM t JOIN u ON u.a=t.a",
                   NULL, NULL, NULL)) {
    tap_bad("rewrite", "%s", sqlite3_errmsg(db));
    return tap_done();
  }
  wl_conn *c = wl_enable(db, &err);
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
    check(c->store, texts[k][0], texts[k][1], texts[k][2]);
  check_many(c->store);
  sqlite3_close(db);
  return tap_done();
}
