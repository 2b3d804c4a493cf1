/*
** Turns EXISTS and IN into SEMI, ANTI or MARK joins: with the subquery's table, using its WHERE as
** the condition; with the rows of its join; or with its results for each of the outer values
** (outer_values.c). Part of rewriting subqueries.
**
** Invariants:
** 1. Such a join never duplicates a row: SEMI, ANTI and MARK keep a row at most once.
*/
#include "plan/rewrite/rewrite_impl.h"

/* left = result, for each value on the left side of IN. results: the subquery's results, as the
** outer query sees them. */
static wl_status equal_results(wl_edit *to, wl_bexpr **left, wl_bexpr **results, int n,
                               wl_bexpr **on) {
  for (int k = 0; k < n; k++) {
    wl_bexpr *eq;
    wl_status rc = wl_edit_compare(to, WL_B_COMPARE, WL_OP_EQ, left[k], results[k], &eq);
    if (!rc) eq->index = 1;
    if (!rc) rc = wl_edit_and(to, on, eq);
    if (rc) return rc;
  }
  return WL_OK;
}

/* IN compares with the subquery's own result, so an explicit COLLATE there counts as explicit in
** the comparison. (A column of a subquery in FROM has only an implicit collation.) */
static void copy_explicit_collate(wl_bexpr *as_seen, const wl_bexpr *result) {
  if (result->explicit_coll) as_seen->explicit_coll = true;
}

/* The subquery's only source becomes a source of the outer query. */
static wl_status join_source(wl_edit *to, const wl_query *q, wl_bexpr **left, int n_left,
                             wl_join_how how, int *place) {
  wl_copy c;
  wl_bsource s = q->sources[0];
  wl_status rc = wl_copy_open(&c, to, q);
  s.how = how;
  s.on = NULL;
  if (!rc) rc = wl_edit_source(to, s, place);
  if (rc) return rc;
  wl_copy_costs(&c);
  c.source_base = *place;
  wl_bexpr *on = NULL, **results = WL_NEW_N(to->arena, wl_bexpr *, n_left + 1);
  if (!results) return wl_nomem(to->err);
  rc = wl_copy_expr(&c, q->where, &on);
  for (int k = 0; k < n_left && !rc; k++) {
    rc = wl_copy_expr(&c, q->results[k], &results[k]);
    if (!rc) rc = wl_edit_as_column(to, results[k], &results[k]);
    if (!rc) copy_explicit_collate(results[k], q->results[k]);
  }
  if (!rc) rc = equal_results(to, left, results, n_left, &on);
  to->q->sources[*place].on = on;
  return rc;
}

/* The rows of the subquery become a source. */
static wl_status add_rows(wl_edit *to, wl_query *q, wl_join_how how, int *place) {
  wl_derived *d = NULL;
  wl_status rc = wl_edit_derived(to, q, &d);
  wl_bsource s = {.how = how, .derived = d, .name = "subquery"};
  return rc ? rc : wl_edit_source(to, s, place);
}

/* left = results `first`, first + 1, … of the rows at `place`. */
static wl_status compare_results(wl_edit *to, const wl_query *q, int place, int first,
                                 wl_bexpr **left, int n_left, wl_bexpr **on) {
  wl_bexpr **results = WL_NEW_N(to->arena, wl_bexpr *, n_left + 1);
  if (!results) return wl_nomem(to->err);
  for (int k = 0; k < n_left; k++) {
    const wl_bexpr *r = q->results[first + k];
    wl_status rc = wl_edit_column(to, place, first + k, r->affinity, wl_bexpr_coll(r), &results[k]);
    if (rc) return rc;
    if (first == 0) results[k]->has_coll = r->has_coll;
    copy_explicit_collate(results[k], r);
  }
  return equal_results(to, left, results, n_left, on);
}

/* ---- the rows of its join */

typedef struct splitting {
  wl_query *child;
  int place;
} splitting;

/* An expression that reads only the subquery's rows becomes one of its results, and then a column
** of its source. */
static wl_status split_node(wl_copy *c, const wl_bexpr *e, wl_bexpr **out) {
  splitting *s = c->arg;
  wl_query *q = s->child;
  if (wl_has_outer(e) || !wl_has_inner(e)) return WL_OK;
  int k = 0;
  while (k < q->n_results && q->results[k] != e) k++;
  if (k == q->n_results) q->results[q->n_results++] = (wl_bexpr *)(size_t)e;
  c->to->q->sources[s->place].derived->n_cols = q->n_results;
  wl_status rc = wl_edit_column(c->to, s->place, k, e->affinity, wl_bexpr_coll(e), out);
  if (!rc) (*out)->has_coll = e->has_coll;
  return rc;
}

/* Joins with the rows of the subquery's join. Its results are the values that the outer query
** needs. */
static wl_status join_rows(wl_edit *to, wl_edit *child, wl_bexpr **left, int n_left,
                           wl_join_how how, int *place) {
  wl_query *q = child->q;
  wl_bexpr *inner = NULL, *outer = NULL, *on = NULL;
  wl_bexpr **wanted = q->results, **results = WL_NEW_N(to->arena, wl_bexpr *, n_left + 1);
  wl_status rc = results ? wl_split_conjuncts(child, q->where, &inner, &outer) : wl_nomem(to->err);
  if (rc) return rc;
  int n_most = q->n_exprs + q->n_results + 4; /* each node becomes a result at most once */
  q->where = inner;
  q->results = WL_NEW_N(to->arena, wl_bexpr *, n_most);
  if (!q->results) return wl_nomem(to->err);
  q->n_results = 0;
  q->n_order = 0;
  q->limit = NULL;
  q->distinct = true;
  rc = add_rows(to, q, how, place);
  wl_copy c;
  if (!rc) rc = wl_copy_open(&c, to, q);
  if (rc) return rc;
  splitting s = {q, *place};
  c.node = split_node;
  c.arg = &s;
  rc = wl_copy_expr(&c, outer, &on);
  for (int k = 0; k < n_left && !rc; k++) {
    rc = wl_copy_expr(&c, wanted[k], &results[k]);
    if (!rc) copy_explicit_collate(results[k], wanted[k]);
  }
  if (!rc) rc = equal_results(to, left, results, n_left, &on);
  to->q->sources[*place].on = on;
  return rc;
}

/* ---- choosing between these */

/* Whether DISTINCT drops rows that differ from those it keeps under IN's comparison: 'A' and 'a'
** under NOCASE, if IN compares them in binary; 1.0 and 1, if IN compares them as text. */
static bool distinct_matters(const wl_query *q, wl_bexpr **left, int n_left) {
  for (int k = 0; q->distinct && k < n_left; k++) {
    const wl_bexpr *r = q->results[k];
    wl_bexpr as_compared = *r;
    wl_u8 coll = wl_bexpr_coll(r);
    as_compared.has_coll = true;
    if (coll != WL_COLL_BINARY && wl_compare_coll(left[k], &as_compared) != coll) return true;
    if (r->affinity != 'B' && wl_compare_affinity(left[k], r) == 'B') return true;
  }
  return false;
}

/* Joins with the subquery's results, computed once or for each of the outer values. */
static wl_status join_results(wl_rewriter *r, wl_rewriter *child, wl_bexpr **left, int n_left,
                              wl_join_how how, int *place) {
  wl_query *q = child->edit.q;
  wl_bexpr **outers = NULL, *on = NULL;
  int n = 0;
  wl_status rc = WL_OK;
  if (q->n_outers && !n_left) q->n_results = 0;
  if (q->n_outers) rc = wl_join_outer_values(r, child, &outers, &n);
  if (!rc) rc = add_rows(&r->edit, q, how, place);
  if (!rc) rc = wl_same_values(&r->edit, outers, n, *place, &on);
  if (!rc) rc = compare_results(&r->edit, q, *place, n, left, n_left, &on);
  if (!rc) r->edit.q->sources[*place].on = on;
  return rc;
}

wl_status wl_join_subquery(wl_rewriter *r, wl_rewriter *child, wl_bexpr **left, int n_left,
                           wl_join_how how, int *place) {
  wl_query *q = child->edit.q;
  if (n_left && q->n_results != n_left)
    return wl_not_taken(r->edit.err, "IN with a subquery of %d columns", q->n_results);
  bool limited = n_left && (q->limit || q->offset);
  if (limited && q->n_outers) return wl_not_taken(r->edit.err, "LIMIT in a correlated subquery");
  if (!n_left && !wl_limit_keeps_one(q))
    return wl_not_taken(r->edit.err, "EXISTS with a LIMIT that may leave no row");
  bool plain = !q->aggregate && !child->has_right && !wl_outer_elsewhere(q, false) &&
               !distinct_matters(q, left, n_left);
  if (plain && !limited && q->n_sources == 1 && q->sources[0].how == WL_HOW_INNER &&
      (q->sources[0].table || q->sources[0].derived))
    return join_source(&r->edit, q, left, n_left, how, place);
  if (plain && q->n_outers) return join_rows(&r->edit, &child->edit, left, n_left, how, place);
  return join_results(r, child, left, n_left, how, place);
}
