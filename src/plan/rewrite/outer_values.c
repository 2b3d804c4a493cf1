/*
** Gives a correlated subquery the outer values that it depends on as one of its sources. The
** distinct values of the expressions it refers to are computed first. The subquery is then
** uncorrelated: it returns its results for each of these values, and is joined by them. One of the
** ways to rewrite a correlated subquery.
*/
#include "plan/rewrite/rewrite_impl.h"
#include <string.h>

/* Whether it can be computed from columns alone. */
static bool of_columns(const wl_bexpr *e) {
  if (!e) return true;
  if (e->kind == WL_B_OUTER || e->kind == WL_B_SUB || e->kind == WL_B_INSUB ||
      e->kind == WL_B_FOUND || e->kind == WL_B_AGG)
    return false;
  for (int k = 0; k < e->n_list; k++)
    if (!of_columns(e->list[k])) return false;
  return of_columns(e->a) && of_columns(e->b);
}

/* Copies the conjuncts of WHERE that read only these sources. The rows that they drop need no
** values. */
static wl_status copy_where(wl_copy *c, const wl_bexpr *e, wl_u64 sources) {
  if (!e) return WL_OK;
  if (e->kind == WL_B_AND) {
    wl_status rc = copy_where(c, e->a, sources);
    return rc ? rc : copy_where(c, e->b, sources);
  }
  wl_bexpr *x;
  if ((wl_bexpr_sources(e) & ~sources) || !of_columns(e)) return WL_OK;
  wl_status rc = wl_copy_expr(c, e, &x);
  return rc ? rc : wl_edit_and(c->to, &c->to->q->where, x);
}

/* Copies the join of FROM: source `only`, or all sources if that is negative. */
static wl_status copy_from(const wl_rewriter *r, wl_copy *c, int only) {
  const wl_query *q = r->edit.q;
  wl_status rc = WL_OK;
  int place;
  for (int s = 0; s < r->n_from && !rc; s++) {
    if (only >= 0 && s != only) continue;
    wl_bsource copy = q->sources[s];
    copy.on = NULL;
    if (only < 0 && copy.how != WL_HOW_INNER && copy.how != WL_HOW_LEFT)
      return wl_not_taken(r->edit.err, "a subquery that refers to a join with subqueries");
    rc = wl_edit_source(c->to, copy, &place);
  }
  for (int s = 0; s < r->n_from && !rc && only < 0; s++) {
    const wl_bexpr *on = q->sources[s].on;
    if (on && r->n_from < WL_MAX_SOURCES && wl_bexpr_sources(on) >> r->n_from)
      return wl_not_taken(r->edit.err, "a subquery that refers to a join with subqueries");
    rc = wl_copy_expr(c, on, &c->to->q->sources[s].on);
  }
  if (only >= 0) c->source_base = -only;
  return rc;
}

/* The query for the distinct values of the outer expressions. */
static wl_status outer_values(const wl_rewriter *r, const wl_query *child, wl_edit *to) {
  const wl_query *q = r->edit.q;
  wl_u64 mask = 0, all = r->n_from < WL_MAX_SOURCES ? (1ULL << r->n_from) - 1 : ~0ULL;
  for (int k = 0; k < child->n_outers; k++) {
    if (wl_has_outer(child->outers[k]->a))
      return wl_not_taken(r->edit.err, "a subquery that refers to a query more than one level out");
    mask |= wl_bexpr_sources(child->outers[k]->a);
  }
  if (r->has_right)
    return wl_not_taken(r->edit.err, "a correlated subquery together with a RIGHT or FULL JOIN");
  if (!r->n_from) return wl_not_taken(r->edit.err, "a correlated subquery in the ON of a join");
  if (mask == 0 || (mask & ~all))
    return wl_not_taken(r->edit.err,
                        "a subquery that refers to a constant or to another subquery's value");
  wl_copy c;
  wl_status rc = wl_edit_open(to, &r->edit);
  if (!rc) rc = wl_copy_open(&c, to, q);
  if (rc) return rc;
  to->q->distinct = true;
  /* one source is enough only if it is an INNER source: others may have no row, so their columns
  ** can be NULL */
  int only = __builtin_ctzll(mask);
  bool one = (mask & (mask - 1)) == 0 && q->sources[only].how == WL_HOW_INNER;
  rc = copy_from(r, &c, one ? only : -1);
  if (!rc) rc = copy_where(&c, q->where, one ? mask : all);
  for (int k = 0; k < child->n_outers && !rc; k++) {
    wl_bexpr *x;
    rc = wl_copy_expr(&c, child->outers[k]->a, &x);
    if (!rc) rc = wl_edit_result(to, x);
  }
  return rc;
}

/* Makes the outer values a source of the subquery. References to them become columns of that
** source. */
static wl_status add_outer_source(const wl_rewriter *r, wl_edit *child) {
  wl_edit values;
  wl_derived *d = NULL;
  int place;
  wl_status rc = outer_values(r, child->q, &values);
  if (!rc) rc = wl_edit_derived(&r->edit, values.q, &d);
  wl_bsource s = {.derived = d, .name = "outer values"};
  if (!rc) rc = wl_edit_source(child, s, &place);
  for (int k = 0; !rc && k < child->q->n_outers; k++) {
    wl_bexpr *o = child->q->outers[k], *col;
    rc = wl_edit_column(child, place, k, o->affinity, wl_bexpr_coll(o), &col);
    if (rc) break;
    col->has_coll = o->has_coll;
    o->kind = WL_B_CAST; /* unary plus: the unchanged value */
    o->op = WL_OP_POS;
    o->a = col;
  }
  return rc;
}

wl_status wl_prepend_results(wl_edit *to, wl_bexpr **exprs, int n, bool grouped) {
  wl_query *q = to->q;
  wl_bexpr **results = WL_NEW_N(to->arena, wl_bexpr *, n + q->n_results + 1);
  wl_bexpr **groups = WL_NEW_N(to->arena, wl_bexpr *, n + q->n_groups + 1);
  if (!results || !groups) return wl_nomem(to->err);
  memcpy(results, exprs, (size_t)n * sizeof *results);
  memcpy(groups, exprs, (size_t)n * sizeof *groups);
  if (q->n_results) memcpy(results + n, q->results, (size_t)q->n_results * sizeof *results);
  if (q->n_groups) memcpy(groups + n, q->groups, (size_t)q->n_groups * sizeof *groups);
  q->results = results;
  q->n_results += n;
  if (grouped) {
    q->groups = groups;
    q->n_groups += n;
    q->grouped = q->aggregate = true;
  }
  q->order = NULL;
  q->n_order = 0;
  q->limit = NULL;
  return WL_OK;
}

wl_status wl_join_outer_values(wl_rewriter *r, wl_rewriter *child, wl_bexpr ***outers, int *n) {
  wl_query *q = child->edit.q;
  wl_bexpr **list = *outers = WL_NEW_N(r->edit.arena, wl_bexpr *, q->n_outers + 1);
  if (!list) return wl_nomem(r->edit.err);
  *n = q->n_outers;
  for (int k = 0; k < *n; k++) list[k] = q->outers[k]->a;
  wl_status rc = add_outer_source(r, &child->edit);
  if (!rc) rc = wl_prepend_results(&child->edit, q->outers, *n, q->aggregate);
  if (!rc && !q->aggregate) q->distinct = true;
  return rc;
}

wl_status wl_same_values(wl_edit *to, wl_bexpr **outers, int n, int source, wl_bexpr **on) {
  for (int k = 0; k < n; k++) {
    wl_bexpr *col, *same;
    wl_status rc = wl_edit_column(to, source, k, outers[k]->affinity, outers[k]->coll, &col);
    if (!rc) rc = wl_edit_compare(to, WL_B_IS, WL_OP_EQ, outers[k], col, &same);
    if (rc) return rc;
    same->cmp_affinity = '@';
    same->cmp_coll = WL_COLL_BINARY;
    rc = wl_edit_and(to, on, same);
    if (rc) return rc;
  }
  return WL_OK;
}
