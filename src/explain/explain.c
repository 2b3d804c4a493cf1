/*
** EXPLAIN shows the program of a native statement. EXPLAIN QUERY PLAN shows the engine, the reason
** and the plan as a tree, or, for a statement that SQLite runs, the reason above SQLite's plan.
** EXPLAIN ANALYZE runs the statement, discards its rows, and shows what each step took.
*/
#include "explain/explain.h"
#include "explain/plantree.h"
#include "route/answer.h"
#include "route/args.h"
#include "base/clock.h"
#include "base/mem.h"
#include <string.h>

/* Decides as a run with the given arguments would: loads missing columns and compiles the
** statement. Lists its pipelines. The decision's reason becomes the connection's. */
static wl_status ask(wl_conn *c, const char *sql, const wl_rowset *r, wl_pipelines *list,
                     wl_decision *d, wl_error *err) {
  wl_request q = {.sql = sql,
                  .n_sql = strlen(sql),
                  .stage = WL_AT_EXPLAIN,
                  .as_table = true,
                  .pipelines = list};
  q.n_args = wl_args_values(r->args, &q.args);
  wl_pipelines_open(list, false);
  wl_status rc = wl_route(c, &q, d, err);
  if (!rc) wl_conn_set_reason(c, d->reason);
  return rc;
}

/* ---- EXPLAIN */

/* The first line of a pipeline says which machine runs it, and which pipelines run before. */
static void name_pipeline(wl_arena *a, const wl_pipeline *p, wl_listing *l) {
  const char *needs = "";
  for (int k = 0; k < p->n_needs; k++)
    needs = wl_arena_printf(a, "%s%s%d", needs, k ? ", " : "", p->needs[k]);
  l->p1 = wl_arena_printf(a, "%d", p->number);
  l->p2 = needs;
  l->comment =
      wl_arena_printf(a, "pipeline p1, on the %s%s%s: for every row run up to p3; leaves %s",
                      p->on_device ? "gpu" : "cpu", p->n_needs ? ", after p2" : "",
                      p->kept ? ", kept from an earlier statement" : "", p->leaves);
}

/* Adds the lines of a pipeline. *address: that of its first line, then of the next pipeline's. */
static wl_status list_pipeline(const wl_pipeline *p, int *address, wl_rowset *r, wl_error *err) {
  int base = *address;
  for (int k = 0; k < wl_program_n_lines(p->program); k++) {
    wl_listing l;
    if (wl_program_print(p->program, k, base, &r->arena, &l)) return wl_nomem(err);
    if (k == 0) name_pipeline(&r->arena, p, &l);
    wl_cell *row = r->arena.failed ? NULL : wl_rowset_row(r);
    if (!row) return wl_nomem(err);
    wl_cell_int(&row[0], (*address)++);
    wl_cell_text(r, &row[1], l.opcode);
    wl_cell_text(r, &row[2], l.p1);
    wl_cell_text(r, &row[3], l.p2);
    wl_cell_text(r, &row[4], l.p3);
    wl_cell_text(r, &row[5], l.p4);
    wl_cell_int(&row[6], 0);
    wl_cell_text(r, &row[7], l.comment);
  }
  return WL_OK;
}

static wl_status fill_program(wl_conn *c, const char *sql, wl_rowset *r, wl_error *err) {
  wl_decision d;
  wl_pipelines list;
  int address = 0;
  wl_status rc = ask(c, sql, r, &list, &d, err);
  if (!rc && d.engine == WL_ENGINE_SQLITE)
    rc = wl_fail(err, WL_ERROR, "%s", d.reason + strlen("sqlite: "));
  for (const wl_pipeline *p = list.first; p && !rc; p = p->next)
    rc = list_pipeline(p, &address, r, err);
  wl_decision_close(&d);
  wl_pipelines_close(&list);
  return rc;
}

/* ---- EXPLAIN QUERY PLAN */

/* Adds SQLite's plan, with its ids increased, under the first line. */
static wl_status sqlite_plan(wl_conn *c, const char *sql, const char *first, wl_rowset *r,
                             wl_error *err) {
  wl_plantree_line(r, 1, 0, first);
  sqlite3_stmt *q = NULL;
  char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
  int rc = text ? sqlite3_prepare_v2(c->db, text, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(text);
  while (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    wl_plantree_line(r, sqlite3_column_int(q, 0) + 1, sqlite3_column_int(q, 1) + 1,
                     (const char *)sqlite3_column_text(q, 3));
    rc = SQLITE_OK;
  }
  sqlite3_finalize(q);
  return rc == SQLITE_DONE ? WL_OK : wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(c->db));
}

static wl_status fill_plan(wl_conn *c, const char *sql, wl_rowset *r, wl_error *err) {
  wl_decision d;
  wl_pipelines list;
  wl_status rc = ask(c, sql, r, &list, &d, err);
  if (!rc && d.engine == WL_ENGINE_SQLITE) {
    rc = sqlite_plan(c, sql, d.reason, r, err);
  } else if (!rc) {
    wl_plantree_line(r, 1, 0, d.reason);
    rc = wl_plantree_pipelines(c, &list, 1, 2, r, err);
  }
  wl_decision_close(&d);
  wl_pipelines_close(&list);
  return rc;
}

/* ---- EXPLAIN ANALYZE */

/* Starts the statement as warplite_prepare() and a first step would. Unlike them, it accepts with
** strict that SQLite runs the statement. */
static wl_status analyze_open(wl_conn *c, const char *sql, const wl_rowset *r, wl_pipelines *list,
                              wl_answer *a, wl_error *err) {
  wl_request q = {.sql = sql, .n_sql = strlen(sql), .is_part = true};
  wl_decision d;
  wl_status rc = wl_route(c, &q, &d, err);
  q.n_args = wl_args_values(r->args, &q.args);
  if (!rc && d.engine == WL_ENGINE_SQLITE) {
    rc = wl_answer_open_sqlite(c, &q, d.reason, NULL, a, err);
  } else if (!rc) {
    q.stage = WL_AT_START;
    q.is_part = false;
    q.pipelines = list;
    rc = wl_answer_open(c, &q, NULL, a, err);
  }
  wl_decision_close(&d);
  return rc;
}

/* Counts all rows and discards them. */
static wl_status analyze_rows(wl_answer *a, wl_error *err) {
  while (a->run) {
    wl_batch *b;
    wl_status rc = wl_answer_next(a, &b, err);
    if (rc || !b) return rc;
    a->n_rows += b->n_rows - b->skip;
    wl_batch_give(b);
  }
  int rc;
  while ((rc = wl_text_step(a->stmt)) == SQLITE_ROW) a->n_rows++;
  if (rc == SQLITE_DONE) return WL_OK;
  return wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(a->conn->db));
}

static wl_status fill_analysis(wl_conn *c, const char *sql, wl_rowset *r, wl_error *err) {
  wl_statement_text *before = NULL, *t = NULL; /* before keeps it bound during the run */
  wl_pipelines list;
  wl_answer a = {0};
  wl_pipelines_open(&list, true);
  double start = wl_clock_ns();
  wl_error ignored;
  if (wl_statement_text_get(c, sql, strlen(sql), &before, &ignored)) before = NULL;
  wl_status rc = analyze_open(c, sql, r, &list, &a, err);
  if (!rc) rc = analyze_rows(&a, err);
  bool native = a.run != NULL, detour = native && wl_run_detour(a.run);
  wl_actual got = {a.n_rows, -1, -1, -1, wl_clock_ns() - start, NULL, 0, false};
  wl_answer_close(&a); /* completes its counts */
  if (rc) goto done;
  const char *first =
      wl_arena_printf(&r->arena, "%s%s", c->reason, wl_plantree_actual(&r->arena, &got));
  if (!first) rc = wl_nomem(err);
  if (!rc && native) rc = wl_statement_text_get(c, sql, strlen(sql), &t, err);
  if (!rc && native && list.last->q == t->query) {
    wl_pipelines_ran(&list, got.n_rows, detour);
    int next = 1;
    wl_plantree_line(r, next++, 0, first);
    if (!c->set.keep) wl_plantree_line(r, next++, 1, "NO KEPT LOOKUPS (setting keep=0)");
    rc = wl_plantree_pipelines(c, &list, 1, next, r, err);
  } else if (!rc) {
    rc = sqlite_plan(c, sql, first, r, err);
  }
done:
  wl_statement_text_drop(t);
  wl_statement_text_drop(before);
  wl_pipelines_close(&list);
  return rc;
}

char *wl_analyze_text(const char *sql, int n_bytes) {
  /* This is called for every statement of a long script, with the rest of the script. So look only
  ** at the beginning first. */
  enum { BEGINNING = 1 << 14 };
  size_t from, to, n = 0, most = n_bytes < 0 ? (size_t)-1 : (size_t)n_bytes;
  while (n < most && sql[n] && strchr(" \t\n\f\r;", sql[n])) n++;
  if (n == most || !sql[n] || !strchr("eE-/\xEF", sql[n])) return NULL;
  n = strnlen(sql, n_bytes >= 0 && n_bytes < BEGINNING ? (size_t)n_bytes : BEGINNING);
  if (!wl_explain_analyze(sql, n, &from, &to)) return NULL;
  n = n_bytes < 0 ? strlen(sql) : strnlen(sql, (size_t)n_bytes);
  if (!wl_explain_analyze(sql, n, &from, &to)) return NULL;
  char *text = sqlite3_mprintf("%.*s", (int)n, sql);
  if (text) memset(text + from, ' ', to - from);
  return text;
}

/* SELECT columns FROM table('text', wl_args(parameters)). */
static wl_status select_from(wl_conn *c, const char *columns, const char *table, const char *text,
                             size_t n, sqlite3_stmt *original, sqlite3_stmt **out, wl_error *err) {
  wl_arena arena;
  wl_stmt *s = NULL;
  wl_error ignored;
  wl_arena_init(&arena);
  wl_status rc = WL_OK;
  const char **params = NULL;
  int k = 0;
  if (sqlite3_bind_parameter_count(original)) {
    rc = wl_parse(&arena, text, n, &s, &ignored);
    params = rc ? NULL : WL_NEW_N(&arena, const char *, s->n_params + 1);
    for (int i = 0; params && i < s->n_params; i++)
      if (s->params[i]) params[k++] = s->params[i];
    /* a text that we cannot parse gets no values */
    rc = rc == WL_NOMEM || arena.failed ? WL_NOMEM : WL_OK;
  }
  sqlite3_str *sql = sqlite3_str_new(c->db);
  sqlite3_str_appendf(sql, "SELECT %s FROM %s(%.*Q", columns, table, (int)n, text);
  if (k) sqlite3_str_appendall(sql, ",");
  if (k) wl_args_append(sql, params, k);
  sqlite3_str_appendall(sql, ")");
  char *whole = sqlite3_str_finish(sql);
  wl_arena_close(&arena);
  if (rc || !whole) {
    sqlite3_free(whole);
    return wl_nomem(err);
  }
  int sq = sqlite3_prepare_v2(c->db, whole, -1, out, NULL);
  sqlite3_free(whole);
  return sq ? wl_fail(err, (wl_status)sq, "%s", sqlite3_errmsg(c->db)) : WL_OK;
}

#define PLAN_COLUMNS    "id, parent, notused, detail"
#define PROGRAM_COLUMNS "addr, opcode, p1, p2, p3, p4, p5, comment"

wl_status wl_analyze_prepare(wl_conn *c, const char *text, size_t n, sqlite3_stmt *original,
                             sqlite3_stmt **out, wl_error *err) {
  *out = NULL;
  wl_status rc = wl_conn_keep_helpers(c, err);
  if (rc) return rc;
  size_t skip = strspn(text, " ");
  return select_from(c, PLAN_COLUMNS, "wl_analysis", text + skip, n - skip, original, out, err);
}

/* ---- */

wl_status wl_explain_prepare(wl_conn *c, const char *sql, size_t n, const char *refused,
                             sqlite3_stmt *original, wl_decision *d, sqlite3_stmt **out,
                             wl_error *err) {
  wl_arena arena;
  wl_stmt *s = NULL;
  *out = NULL;
  wl_arena_init(&arena);
  wl_status rc = wl_parse(&arena, sql, n, &s, err);
  bool plan = !rc && s->explain == WL_EXPLAIN_PLAN;
  size_t body = rc ? 0 : s->body;
  if (!rc && s->kind != WL_STMT_SELECT)
    rc = wl_not_taken(err, "EXPLAIN of %s runs in SQLite", s->verb);
  bool reads = !rc && wl_select_reads_table(s->select);
  wl_arena_close(&arena);
  if (!rc) rc = wl_conn_keep_helpers(c, err);
  if (rc) return rc;
  body += strspn(sql + body, " \t\n\f\r"); /* the text that a run would have */
  const char *text = sql + body;
  n -= body;
  wl_request q = {.sql = text, .n_sql = n, .refused = refused, .as_table = true, .is_part = true};
  rc = wl_route(c, &q, d, err);
  if (rc) return rc;
  /* SQLite's plan is shown under our reason. These statements need no reason. */
  bool plain = refused || !reads || d->about_warplite || c->set.engine == WL_ENGINE_SQLITE;
  if (d->engine == WL_ENGINE_SQLITE && (plain || !plan))
    return wl_not_taken(err, "%s", d->reason + strlen("sqlite: "));
  rc = select_from(c, plan ? PLAN_COLUMNS : PROGRAM_COLUMNS, plan ? "wl_plan" : "wl_program", text,
                   n, original, out, err);
  return rc && rc != WL_NOMEM ? wl_not_taken(err, "%s", err->text) : rc;
}

int wl_explain_register(wl_conn *c) {
  static const wl_rowset_def defs[] = {
      {"wl_program",
       "CREATE TABLE x(addr INTEGER, opcode TEXT, p1, p2, p3, p4 TEXT, p5 INTEGER, comment TEXT, "
       "sql HIDDEN, args HIDDEN)",
       8, 2, fill_program},
      {"wl_plan",
       "CREATE TABLE x(id INTEGER, parent INTEGER, notused INTEGER, detail TEXT, sql HIDDEN, args "
       "HIDDEN)",
       4, 2, fill_plan},
      {"wl_analysis",
       "CREATE TABLE x(id INTEGER, parent INTEGER, notused INTEGER, detail TEXT, sql HIDDEN, args "
       "HIDDEN)",
       4, 2, fill_analysis},
  };
  int rc = wl_rowset_register(c, &defs[0]);
  if (!rc) rc = wl_rowset_register(c, &defs[1]);
  return rc ? rc : wl_rowset_register(c, &defs[2]);
}
