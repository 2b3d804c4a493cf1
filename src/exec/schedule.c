/*
** See schedule.h.
*/
#include "exec/schedule.h"
#include "base/mem.h"
#include "exec/pipelines.h"
#include "plan/row_order.h"
#include <string.h>

/* ---- which columns of derived sources are read */

/* Whether computing e may raise an error, or may be refused because it changes a group's value (see
** changes_group in program/expr.c). seen: marks visited nodes, so that each is visited once. */
static bool may_fail(const wl_bexpr *e, bool *seen) {
  if (!e || seen[e->id]) return false;
  seen[e->id] = true;
  bool fails = e->fallible || e->kind == WL_B_INSUB || may_fail(e->a, seen) || may_fail(e->b, seen);
  for (int k = 0; k < e->n_list && !fails; k++) fails = may_fail(e->list[k], seen);
  return fails;
}

/* Marks columns as needed that are not read but may raise an error: SQLite may compute all columns
** of a subquery before it reads the first row. */
static wl_status need_errors(wl_schedule *x, const wl_derived *d, wl_error *err) {
  for (int k = 0; k < d->n_arms; k++) {
    const wl_query *q = d->arms[k];
    bool *seen = WL_NEW_N(&x->arena, bool, q->n_exprs + 1);
    if (!seen) return wl_nomem(err);
    for (int i = 0; i < q->n_results; i++) {
      memset(seen, 0, (size_t)q->n_exprs * sizeof *seen);
      if (may_fail(q->results[i], seen)) x->needed[d->id][i] = true;
    }
  }
  return WL_OK;
}

static wl_status note_needed(wl_schedule *x, const wl_query *q, wl_error *err) {
  wl_status rc = WL_OK;
  for (int s = 0; s < q->n_sources && !rc; s++) {
    const wl_derived *d = q->sources[s].derived;
    if (!d) continue;
    bool first = !x->needed[d->id];
    if (first) x->needed[d->id] = WL_NEW_N(&x->arena, bool, d->arms[0]->n_results + 1);
    if (!x->needed[d->id]) return wl_nomem(err);
    if (first && x->computes_unread) rc = need_errors(x, d, err);
    for (int k = 0; k < q->n_cols; k++)
      if (q->cols[k].source == s) x->needed[d->id][q->cols[k].column] = true;
    for (int k = 0; k < d->n_arms && first && !rc; k++) rc = note_needed(x, d->arms[k], err);
  }
  for (int k = 0; k < q->n_subs && !rc; k++) rc = note_needed(x, q->subs[k].query, err);
  return rc;
}

/* ---- nodes */

const wl_node *wl_schedule_sub(const wl_schedule *s, const wl_bsub *sub) {
  const wl_node *n = s->first;
  while (n->sub != sub) n = n->next;
  return n;
}

static wl_status add_query(wl_schedule *x, const wl_query *q, bool rowid_order, bool top,
                           wl_node *to, wl_error *err);

static wl_node *new_node(wl_schedule *x, int n_needs, int n_queries) {
  wl_node *n = WL_NEW(&x->arena, wl_node);
  if (n) n->needs = WL_NEW_N(&x->arena, wl_node *, n_needs + 1);
  /* one for each query, and one more for each source with unmatched rows */
  if (n) n->pipelines = WL_NEW_N(&x->arena, int, n_queries + n_needs);
  return n && n->needs && n->pipelines ? n : NULL;
}

static void append(wl_schedule *x, wl_node *n) {
  *x->end = n;
  x->end = &n->next;
}

static int most_needs(const wl_query *q) {
  return q->n_subs + q->n_sources;
}

static wl_status add_derived(wl_schedule *x, const wl_derived *d, wl_error *err) {
  int n_needs = 0;
  wl_status rc = WL_OK;
  if (x->of_derived[d->id]) return WL_OK;
  for (int k = 0; k < d->n_arms; k++) n_needs += most_needs(d->arms[k]);
  wl_node *n = new_node(x, n_needs, d->n_arms);
  if (!n) return wl_nomem(err);
  n->derived = d;
  for (int k = 0; k < d->n_arms && !rc; k++) rc = add_query(x, d->arms[k], false, false, n, err);
  x->of_derived[d->id] = n;
  append(x, n);
  return rc;
}

static wl_status add_sub(wl_schedule *x, const wl_bsub *sub, wl_node **out, wl_error *err) {
  wl_node *n = *out = new_node(x, most_needs(sub->query), 1);
  if (!n) return wl_nomem(err);
  n->q = sub->query;
  n->sub = sub;
  wl_status rc = add_query(x, sub->query, false, false, n, err);
  append(x, n);
  return rc;
}

/* Adds the nodes that a query of node `to` reads. Refuses before anything runs. */
static wl_status add_query(wl_schedule *x, const wl_query *q, bool rowid_order, bool top,
                           wl_node *to, wl_error *err) {
  bool in_order, unordered;
  wl_query_order(x->env->store, q, rowid_order, top, &in_order, &unordered);
  wl_status rc = wl_query_cut(q, unordered, err);
  for (int k = 0; k < q->n_subs && !rc; k++)
    rc = add_sub(x, &q->subs[k], &to->needs[to->n_needs++], err);
  for (int s = 0; s < q->n_sources && !rc; s++) {
    const wl_derived *d = q->sources[s].derived;
    if (!d) continue;
    rc = add_derived(x, d, err);
    if (!rc) to->needs[to->n_needs++] = x->of_derived[d->id];
  }
  return rc;
}

/* ---- running the nodes that others need */

/* Runs a query of a node, and stores its rows (at least `most` of them, < 0: all) as columns: in
** `to`, or if a device has made them, in `made`, where they stay there. */
static wl_status run_into(wl_schedule *x, wl_node *n, const wl_query *q, const bool *needed,
                          wl_rows_maker *to, wl_rows *made, wl_i64 most, bool *unordered,
                          wl_error *err) {
  wl_ready r = {0};
  wl_run *run = NULL;
  wl_i64 n_taken = 0;
  wl_status rc = wl_ready_make(x, n, q, needed, false, false, &r, err);
  *unordered = !rc && r.program->unordered;
  bool device = !rc && r.device;
  if (!rc)
    rc = wl_ready_run(x->env, &r, made, needed, NULL, &run, err);
  else
    wl_ready_close(&r);
  while (!rc) {
    wl_batch *b;
    rc = wl_run_next(run, &b, err);
    if (rc || !b) break;
    n_taken += b->n_rows - b->skip;
    rc = wl_rows_maker_add(to, b, wl_run_regs(run), needed, x->env->set->threads, err);
    wl_batch_give(b);
    if (most >= 0 && wl_rows_maker_rows(to) >= most) break;
  }
  if (made && made->cols) n_taken = made->n_rows;
  bool detour = run && wl_run_detour(run);
  if (!rc && device && !detour) x->n_on_device++;
  wl_run_close(run);
  if (run && x->env->pipelines) wl_pipelines_ran(x->env->pipelines, n_taken, detour);
  if (rc && rc != WL_NOMEM && rc != WL_INTERRUPT && rc != WL_NOT_TAKEN &&
      rc != (wl_status)SQLITE_SCHEMA)
    rc = wl_not_taken(err, "an error in a subquery that SQLite might not evaluate");
  return rc;
}

/* Whether an affinity would change a value of these types. */
static bool changes(char affinity, unsigned types) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL), T = WL_M(WL_T_TEXT);
  switch (affinity) {
  case 'B': return types & (I | F);
  case 'C':
  case 'D': return types & (F | T);
  case 'E': return types & (I | T);
  default: return false;
  }
}

static wl_status run_derived(wl_schedule *x, wl_node *n, wl_error *err) {
  const wl_derived *d = n->derived;
  wl_rows_maker *to = NULL;
  int n_cols = d->arms[0]->n_results;
  wl_status rc = wl_rows_maker_open(n_cols, wl_budget_left(&x->budget), &to, err);
  for (int k = 0; k < d->n_arms && !rc; k++) {
    bool unordered;
    rc = run_into(x, n, d->arms[k], x->needed[d->id], to, d->n_arms == 1 ? &n->rows : NULL, -1,
                  &unordered, err);
  }
  if (!rc && !n->rows.cols) rc = wl_rows_maker_finish(to, x->env->set->threads, &n->rows, err);
  for (int k = 0; k < n_cols && !rc; k++)
    wl_budget_hold(&x->budget, (wl_i64)n->rows.cols[k]->n_bytes);
  for (int k = 0; k < n_cols && !rc && d->typed; k++)
    if (changes(d->arms[0]->results[k]->affinity, n->rows.cols[k]->domain.mask))
      rc = wl_not_taken(err, "a compound whose arms are of several types");
  for (int k = 0; k < n_cols && !rc && d->mixed; k++)
    if (d->mixed[k] && (n->rows.cols[k]->domain.mask & WL_M(WL_T_TEXT)))
      rc = wl_not_taken(err, "a compound whose arms differ in collation, inside a query");
  wl_rows_maker_close(to);
  return rc;
}

/* Runs a subquery. The result is its value, or its rows as a column. */
static wl_status run_sub(wl_schedule *x, wl_node *n, wl_error *err) {
  const wl_query *q = n->q;
  char kind = n->sub->kind;
  wl_rows_maker *to = NULL;
  wl_rows rows = {0};
  bool unordered = false;
  wl_status rc = wl_rows_maker_open(q->n_results, wl_budget_left(&x->budget), &to, err);
  bool *none = WL_NEW_N(&x->arena, bool, q->n_results + 1);
  if (!rc && !none) rc = wl_nomem(err);
  if (!rc)
    rc = run_into(x, n, q, kind == 'e' && !q->distinct ? none : NULL, to, NULL,
                  kind == 'l' ? -1 : 2, &unordered, err);
  if (!rc) rc = wl_rows_maker_finish(to, 1, &rows, err);
  wl_rows_maker_close(to);
  if (!rc && kind == 'e') n->value = wl_int(rows.n_rows > 0);
  if (!rc && kind == 'l') n->list = wl_column_hold(rows.cols[0]);
  if (n->list) wl_budget_hold(&x->budget, (wl_i64)n->list->n_bytes);
  if (!rc && kind == 'v') {
    n->value = rows.n_rows ? wl_column_value(rows.cols[0], 0) : wl_null();
    if (n->value.t >= WL_T_TEXT) {
      char *copy = wl_arena_strndup(&x->arena, (const char *)wl_bytes(n->value), n->value.n);
      if (!copy) rc = wl_nomem(err);
      n->value.v = (wl_u64)(size_t)copy;
    }
    if (!rc && rows.n_rows > 1 && unordered && !wl_query_order_total(q))
      rc = wl_not_taken(err,
                        "a scalar subquery returns several rows, of which SQLite takes the first");
  }
  wl_rows_close(&rows);
  return rc;
}

/* ---- the statement */

static void close_schedule(wl_schedule *x) {
  for (wl_node *n = x->first; n; n = n->next) {
    wl_rows_close(&n->rows);
    wl_column_drop(n->list);
  }
  wl_arena_close(&x->arena);
}

wl_status wl_query_ready(const wl_query_env *env, const wl_query *q, bool rowid_order,
                         wl_ready *out, wl_error *err) {
  wl_schedule x = {
      .env = env, .computes_unread = q->computes_unread, .budget = {env->host_left, 0}};
  memset(out, 0, sizeof *out);
  if (env->pipelines) wl_pipelines_clear(env->pipelines);
  x.end = &x.first;
  wl_arena_init(&x.arena);
  x.of_derived = WL_NEW_N(&x.arena, wl_node *, q->n_derived + 1);
  x.needed = WL_NEW_N(&x.arena, bool *, q->n_derived + 1);
  wl_node *statement = new_node(&x, most_needs(q), 1);
  wl_status rc = x.arena.failed || !statement ? wl_nomem(err) : note_needed(&x, q, err);
  if (!rc) rc = add_query(&x, q, rowid_order, true, statement, err);
  if (!rc) append(&x, statement);
  wl_store_enter(env->store);
  for (int k = 0; k < q->n_deps && !rc; k++)
    rc = wl_store_hold(env->store, q->deps[k].schema, q->deps[k].name, err);
  for (wl_node *n = x.first; n != statement && !rc; n = n->next)
    rc = n->derived ? run_derived(&x, n, err) : run_sub(&x, n, err);
  if (!rc) rc = wl_ready_make(&x, statement, q, NULL, rowid_order, true, out, err);
  wl_store_leave(env->store);
  out->n_on_device = x.n_on_device;
  out->seen = x.seen;
  out->n_seen = x.n_seen;
  close_schedule(&x);
  bool refused = out->refused;
  if (rc) wl_ready_close(out);
  out->refused = refused;
  return rc;
}
