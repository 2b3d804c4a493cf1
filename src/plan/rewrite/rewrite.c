/*
** Rewrites one query: walks over it and runs the passes in order. See rewrite.h.
*/
#include "plan/rewrite/rewrite_impl.h"
#include <assert.h>
#include <string.h>

/* ---- expressions */

static wl_status copy_aggregate(wl_rewriter *r, int k) {
  wl_query *q = r->edit.q;
  if (r->copied_aggs[k]) return WL_OK;
  r->copied_aggs[k] = true;
  wl_bexpr *arg, *separator;
  wl_status rc = wl_copy_expr(&r->copy, r->bound->aggs[k].arg, &arg);
  if (!rc) rc = wl_copy_expr(&r->copy, r->bound->aggs[k].separator, &separator);
  if (rc) return rc;
  q->aggs[k].arg = arg;
  q->aggs[k].separator = separator;
  return WL_OK;
}

static wl_status copy_node(wl_copy *c, const wl_bexpr *e, wl_bexpr **out) {
  wl_rewriter *r = c->arg;
  wl_status rc = WL_OK;
  if (e->kind == WL_B_SUBQUERY) return wl_rewrite_subquery(r, e, WL_HOW_MARK, out);
  if (e->kind == WL_B_AGG) return copy_aggregate(r, e->index);
  if (e->kind != WL_B_COLUMN) return WL_OK;
  if (r->flat_cols[e->source]) {
    *out = r->flat_cols[e->source][e->index];
    return WL_OK;
  }
  rc = wl_edit_column(c->to, r->places[e->source], e->index, e->affinity, e->coll, out);
  if (!rc) (*out)->has_coll = e->has_coll;
  return rc;
}

wl_status wl_rewrite_expr(wl_rewriter *r, const wl_bexpr *e, wl_bexpr **out) {
  return wl_copy_expr(&r->copy, e, out);
}

/* Copies the WL_B_OUTER nodes first, all of them and in their order. */
static wl_status copy_outers(wl_rewriter *r) {
  wl_query *q = r->edit.q;
  for (int k = 0; k < r->bound->n_outers; k++) {
    const wl_bexpr *e = r->bound->outers[k];
    wl_status rc = WL_EDIT_ROOM(&r->edit, q->outers, q->n_outers);
    wl_bexpr *x = rc ? NULL : wl_edit_node(&r->edit, WL_B_OUTER);
    if (!x) return rc ? rc : wl_nomem(r->edit.err);
    int id = x->id;
    *x = *e;
    x->id = id;
    r->copy.map[e->id] = q->outers[q->n_outers++] = x;
  }
  return WL_OK;
}

static wl_status open_rewriter(const wl_edit *statement, const wl_query *bound, wl_rewriter **out) {
  wl_rewriter *r = *out = WL_NEW(statement->arena, wl_rewriter);
  if (!r) return wl_nomem(statement->err);
  r->bound = bound;
  r->places = WL_NEW_N(statement->arena, int, bound->n_sources + 1);
  r->flat_cols = WL_NEW_N(statement->arena, wl_bexpr **, bound->n_sources + 1);
  r->copied_aggs = WL_NEW_N(statement->arena, bool, bound->n_aggs + 1);
  if (!r->places || !r->flat_cols || !r->copied_aggs) return wl_nomem(statement->err);
  for (int k = 0; k < bound->n_sources; k++)
    r->has_right |= wl_how_keeps_unmatched(bound->sources[k].how);
  wl_status rc = wl_edit_open(&r->edit, statement);
  if (!rc) rc = wl_copy_open(&r->copy, &r->edit, bound);
  if (rc) return rc;
  r->copy.node = copy_node;
  r->copy.arg = r;
  wl_query *q = r->edit.q;
  q->distinct = bound->distinct;
  q->aggregate = bound->aggregate;
  q->grouped = bound->grouped;
  q->like_param = bound->like_param;
  q->n_call_cost = bound->n_call_cost;
  q->n_nodes_cost = bound->n_nodes_cost;
  for (int k = 0; k < bound->n_aggs && !rc; k++) {
    rc = WL_EDIT_ROOM(&r->edit, q->aggs, q->n_aggs);
    if (!rc) q->aggs[q->n_aggs++] = bound->aggs[k];
  }
  return rc ? rc : copy_outers(r);
}

/* ---- FROM */

/* Rewrites the queries of a derived source that is not flattened. A WITH entry that several sources
** read is rewritten for the first of them. */
static wl_status rewrite_arms(wl_rewriter *r, wl_derived *d) {
  if (d->rewritten) return WL_OK;
  wl_query **arms = WL_NEW_N(r->edit.arena, wl_query *, d->n_arms);
  if (!arms) return wl_nomem(r->edit.err);
  for (int k = 0; k < d->n_arms; k++) {
    wl_rewriter *arm;
    assert(d->arms[k]->n_outers == 0);
    wl_status rc = wl_rewrite_query(&r->edit, d->arms[k], &arm);
    if (rc) return rc;
    arms[k] = arm->edit.q;
  }
  d->arms = arms;
  d->rewritten = true;
  return d->ops ? wl_rewrite_compound(&r->edit, d, r->bound->n_order > 0) : WL_OK;
}

/* Rewrites a derived source: either flattens it, or keeps it as a source with rewritten arms. */
static wl_status rewrite_derived(wl_rewriter *r, int k) {
  wl_bsource s = r->bound->sources[k];
  s.on = s.inner_on = NULL;
  if (!s.derived->may_flatten) {
    wl_status rc = rewrite_arms(r, s.derived);
    return rc ? rc : wl_edit_source(&r->edit, s, &r->places[k]);
  }
  wl_rewriter *child;
  wl_status rc = wl_rewrite_inner(r, s.derived->arms[0], &child);
  if (rc) return rc;
  if (wl_can_flatten(r, &s, child)) return wl_flatten(r, child, &r->flat_cols[k]);
  if (child->edit.q->n_outers)
    return wl_not_taken(r->edit.err, "a subquery in FROM that refers to an outer query");
  s.derived->arms[0] = child->edit.q;
  s.derived->rewritten = true;
  return wl_edit_source(&r->edit, s, &r->places[k]);
}

/* Whether one of the conjuncts reads no source. */
static bool has_constant(const wl_bexpr *e) {
  if (!e) return false;
  if (e->kind == WL_B_AND) return has_constant(e->a) || has_constant(e->b);
  return wl_bexpr_sources(e) == 0;
}

static wl_status rewrite_source(wl_rewriter *r, int k) {
  wl_bsource s = r->bound->sources[k];
  wl_query *q = r->edit.q;
  int before = q->n_sources;
  wl_bexpr *on, *inner_on;
  wl_status rc;
  if (s.derived) {
    rc = rewrite_derived(r, k);
  } else {
    s.on = s.inner_on = NULL;
    rc = wl_edit_source(&r->edit, s, &r->places[k]);
  }
  if (!rc) rc = wl_rewrite_expr(r, r->bound->sources[k].on, &on);
  if (!rc) rc = wl_rewrite_expr(r, r->bound->sources[k].inner_on, &inner_on);
  if (!rc) rc = wl_edit_and(&r->edit, &q->where, inner_on);
  if (rc) return rc;
  if (on) q->sources[r->places[k]].on = on;
  /* SQLite 3.40 loses rows of a RIGHT JOIN that comes after a constant ON */
  if (r->has_right && has_constant(on))
    return wl_not_taken(r->edit.err, "a constant ON together with a RIGHT or FULL JOIN");
  if (r->has_right && q->n_sources != before + 1)
    return wl_not_taken(r->edit.err, "a subquery in the ON of a join with RIGHT or FULL JOIN");
  return WL_OK;
}

/* ---- the other clauses */

/* Rewrites WHERE one conjunct at a time, because EXISTS and IN as conjuncts become joins that
** filter rows. */
static wl_status rewrite_where(wl_rewriter *r, const wl_bexpr *e) {
  if (!e) return WL_OK;
  if (e->kind == WL_B_AND) {
    wl_status rc = rewrite_where(r, e->a);
    return rc ? rc : rewrite_where(r, e->b);
  }
  wl_bexpr *x;
  wl_status rc;
  bool negated = e->kind == WL_B_NOT && e->a->kind == WL_B_SUBQUERY;
  if (negated && e->a->index == WL_SUBQUERY_EXISTS)
    rc = wl_rewrite_subquery(r, e->a, WL_HOW_ANTI, &x);
  else if (e->kind == WL_B_SUBQUERY && e->index != WL_SUBQUERY_VALUE)
    rc = wl_rewrite_subquery(r, e, WL_HOW_SEMI, &x);
  else
    rc = wl_rewrite_expr(r, e, &x);
  return rc ? rc : wl_edit_and(&r->edit, &r->edit.q->where, x);
}

static wl_status rewrite_clauses(wl_rewriter *r) {
  const wl_query *bound = r->bound;
  wl_query *q = r->edit.q;
  q->groups = WL_NEW_N(r->edit.arena, wl_bexpr *, bound->n_groups + 1);
  q->order = WL_NEW_N(r->edit.arena, wl_border, bound->n_order + 1);
  if (!q->groups || !q->order) return wl_nomem(r->edit.err);
  wl_status rc = rewrite_where(r, bound->where);
  for (int k = 0; k < bound->n_results && !rc; k++) {
    wl_bexpr *x;
    rc = wl_rewrite_expr(r, bound->results[k], &x);
    if (!rc) rc = wl_edit_result(&r->edit, x);
  }
  for (int k = 0; k < bound->n_groups && !rc; k++)
    rc = wl_rewrite_expr(r, bound->groups[k], &q->groups[q->n_groups++]);
  if (!rc) rc = wl_rewrite_expr(r, bound->having, &q->having);
  for (int k = 0; k < bound->n_order && !rc; k++) {
    wl_border *o = &q->order[q->n_order++];
    *o = bound->order[k];
    rc = wl_rewrite_expr(r, bound->order[k].expr, &o->expr);
  }
  for (int k = 0; k < bound->n_aggs && !rc; k++) rc = copy_aggregate(r, k);
  return rc;
}

/* ---- unread columns of flattened subqueries and views */

static void mark(const wl_bexpr *e, bool *seen, bool *used) {
  if (!e || seen[e->id]) return;
  seen[e->id] = true;
  if (e->kind == WL_B_OUTER) return; /* it refers to columns of another query */
  if (e->kind == WL_B_COLUMN) used[e->slot] = true;
  for (int k = 0; k < e->n_list; k++) mark(e->list[k], seen, used);
  mark(e->a, seen, used);
  mark(e->b, seen, used);
}

static wl_status drop_unread_columns(wl_edit *to) {
  wl_query *q = to->q;
  bool *seen = WL_NEW_N(to->arena, bool, q->n_exprs + 1);
  bool *used = WL_NEW_N(to->arena, bool, q->n_cols + 1);
  if (!seen || !used) return wl_nomem(to->err);
  for (int k = 0; k < q->n_results; k++) mark(q->results[k], seen, used);
  for (int k = 0; k < q->n_groups; k++) mark(q->groups[k], seen, used);
  for (int k = 0; k < q->n_order; k++) mark(q->order[k].expr, seen, used);
  for (int k = 0; k < q->n_sources; k++) mark(q->sources[k].on, seen, used);
  for (int k = 0; k < q->n_aggs; k++) {
    mark(q->aggs[k].arg, seen, used);
    mark(q->aggs[k].separator, seen, used);
  }
  mark(q->where, seen, used);
  mark(q->having, seen, used);
  mark(q->limit, seen, used);
  mark(q->offset, seen, used);
  int n = 0;
  for (int k = 0; k < q->n_cols; k++) {
    if (!used[k]) continue;
    q->col_nodes[k]->slot = n;
    q->col_nodes[n] = q->col_nodes[k];
    q->cols[n++] = q->cols[k];
  }
  q->n_cols = n;
  return WL_OK;
}

/* ---- whole queries */

wl_status wl_rewrite_query(const wl_edit *statement, const wl_query *bound, wl_rewriter **out) {
  wl_rewriter *r;
  wl_status rc = open_rewriter(statement, bound, out);
  if (rc) return rc;
  r = *out;
  for (int k = 0; k < bound->n_sources && !rc; k++) rc = rewrite_source(r, k);
  r->n_from = r->edit.q->n_sources;
  if (!rc) rc = rewrite_clauses(r);
  if (!rc) rc = wl_rewrite_grouped_columns(r);
  if (rc) return rc;
  if (r->has_right && r->edit.q->n_outers)
    return wl_not_taken(r->edit.err, "RIGHT or FULL JOIN in a correlated subquery");
  if (r->has_right) rc = wl_rewrite_right_joins(&r->edit);
  if (!rc) rc = wl_rewrite_implied_terms(&r->edit);
  if (!rc && !r->has_right) rc = wl_rewrite_reduce_groups(&r->edit);
  if (rc) return rc;
  wl_query *q = r->edit.q;
  const wl_bsource *first = &q->sources[0];
  q->schema = first->schema;
  q->table = first->table;
  rc = wl_rewrite_expr(r, bound->limit, &q->limit);
  if (!rc) rc = wl_rewrite_expr(r, bound->offset, &q->offset);
  if (rc) return rc;
  return drop_unread_columns(&r->edit);
}

wl_status wl_rewrite_inner(wl_rewriter *r, const wl_query *bound, wl_rewriter **out) {
  wl_status rc = wl_rewrite_query(&r->edit, bound, out);
  for (int k = 0; !rc && k < (*out)->edit.q->n_outers; k++) {
    wl_bexpr *outer = (*out)->edit.q->outers[k];
    rc = wl_rewrite_expr(r, outer->a, &outer->a);
  }
  return rc;
}

/* Numbers the derived sources of a query and of all queries inside it. */
static void number_derived(wl_query *q, int *n) {
  q->outers = NULL;
  q->n_outers = 0;
  for (int s = 0; s < q->n_sources; s++) {
    wl_derived *d = q->sources[s].derived;
    if (!d || d->id >= 0) continue;
    d->id = (*n)++;
    for (int k = 0; k < d->n_arms; k++) number_derived(d->arms[k], n);
  }
  for (int k = 0; k < q->n_subs; k++) number_derived(q->subs[k].query, n);
}

wl_status wl_rewrite(wl_arena *arena, wl_query *bound, wl_query **out, wl_error *err) {
  wl_call_names calls = {bound->calls, bound->n_calls};
  wl_edit statement = {NULL, arena, &calls, err};
  wl_rewriter *r;
  wl_status rc = wl_rewrite_query(&statement, bound, &r);
  if (rc) return rc;
  if (arena->failed) return wl_nomem(err);
  wl_query *q = *out = r->edit.q;
  number_derived(q, &q->n_derived);
  q->calls = calls.names;
  q->n_calls = calls.n;
  q->deps = bound->deps;
  q->n_deps = bound->n_deps;
  assert(wl_query_is_rewritten(q));
  return WL_OK;
}
