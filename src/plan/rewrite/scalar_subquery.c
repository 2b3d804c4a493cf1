/*
** Correlated scalar subqueries are joined LEFT, by group keys or by the outer values that they
** depend on. Part of rewriting subqueries.
**
** Invariants:
** 1. Such a join never duplicates a row. It is either by group keys, or it is `single`: SQLite runs
**    the statement if a second row matches.
*/
#include "plan/rewrite/rewrite_impl.h"

static wl_val value_over_no_rows(wl_agg_fn fn) {
  switch (fn) {
#define WL_AGGREGATE(name, sql, least, most, marks, empty)                                         \
  case WL_FN_##name: return empty;
#include "value/aggregates.def"
#undef WL_AGGREGATE
  }
  return wl_null();
}

/* Replaces each aggregate in an expression by its value over no rows. */
static wl_status aggregate_over_no_rows(wl_copy *c, const wl_bexpr *e, wl_bexpr **out) {
  if (e->kind == WL_B_COLUMN) return wl_edit_constant(c->to, wl_null(), out);
  if (e->kind != WL_B_AGG) return WL_OK;
  return wl_edit_constant(c->to, value_over_no_rows(c->from->aggs[e->index].fn), out);
}

/* The value if the join found a row, else the value that the expression has over no rows. */
static wl_status value_or_empty(wl_edit *to, const wl_query *q, const wl_bexpr *result, int source,
                                wl_bexpr *value, wl_bexpr **out) {
  *out = value;
  if (result->kind == WL_B_AGG && value_over_no_rows(q->aggs[result->index].fn).t == WL_T_NULL)
    return WL_OK; /* NULL, like a column of a missing row */
  wl_copy c;
  wl_bexpr *has_row, *empty;
  wl_status rc = wl_copy_open(&c, to, q);
  if (rc) return rc;
  c.node = aggregate_over_no_rows;
  rc = wl_rewrite_found(to, source, &has_row);
  if (!rc) rc = wl_copy_expr(&c, result, &empty);
  if (!rc) rc = wl_edit_case(to, has_row, value, empty, out);
  if (!rc) (*out)->affinity = value->affinity;
  return rc;
}

/* Adds the rows of the subquery as a source that is joined LEFT. The caller adds its ON. */
static wl_status join_left(wl_edit *to, wl_query *q, int *place) {
  wl_derived *d = NULL;
  wl_status rc = wl_edit_derived(to, q, &d);
  wl_bsource s = {.how = WL_HOW_LEFT, .single = true, .derived = d, .name = "subquery"};
  return rc ? rc : wl_edit_source(to, s, place);
}

/* The subquery's value: result k of its rows. */
static wl_status value_of(wl_edit *to, const wl_query *q, int place, int k, wl_bexpr **out) {
  wl_status rc = wl_edit_column(to, place, k, q->results[k]->affinity, WL_COLL_BINARY, out);
  if (!rc) (*out)->has_coll = false;
  return rc;
}

/* ---- by group keys */

/* An equality between an expression of the subquery and one of the outer query. */
typedef struct wl_outer_key {
  const wl_bexpr *cond;
  const wl_bexpr *inner, *outer;
} wl_outer_key;

bool wl_groups_as_compared(const wl_bexpr *equality, const wl_bexpr *inner) {
  if (equality->cmp_affinity >= 'C' && inner->affinity < 'C') return false;
  if (equality->cmp_affinity == 'B' && inner->affinity != 'B') return false;
  return equality->cmp_coll == wl_bexpr_coll(inner);
}

/* Whether grouping by the inner side of an equality finds exactly the rows that the equality
** would. */
static bool is_key(const wl_bexpr *e, wl_outer_key *k) {
  if (e->kind != WL_B_COMPARE || e->op != WL_OP_EQ) return false;
  bool turned = wl_has_outer(e->a);
  k->cond = e;
  k->outer = turned ? e->a : e->b;
  k->inner = turned ? e->b : e->a;
  if (wl_has_inner(k->outer) || wl_has_outer(k->inner) || !wl_has_inner(k->inner)) return false;
  return wl_groups_as_compared(e, k->inner);
}

/* Whether all conjuncts are such equalities. *n counts them. */
static bool all_keys(const wl_bexpr *e, int *n) {
  wl_outer_key k;
  if (!e) return true;
  if (e->kind == WL_B_AND) return all_keys(e->a, n) && all_keys(e->b, n);
  ++*n;
  return is_key(e, &k);
}

static void list_keys(const wl_bexpr *e, wl_outer_key *keys, int *n) {
  if (!e) return;
  if (e->kind == WL_B_AND) {
    list_keys(e->a, keys, n);
    list_keys(e->b, keys, n);
  } else {
    is_key(e, &keys[(*n)++]);
  }
}

/* outer = key column for each key, compared by the rules of the original equality. */
static wl_status equal_keys(wl_edit *to, const wl_query *q, const wl_outer_key *keys, int n,
                            int place, wl_bexpr **on) {
  wl_copy c;
  wl_status rc = wl_copy_open(&c, to, q);
  for (int k = 0; k < n && !rc; k++) {
    const wl_bexpr *inner = keys[k].inner;
    wl_bexpr *col, *outer, *eq;
    rc = wl_edit_column(to, place, k, inner->affinity, wl_bexpr_coll(inner), &col);
    if (!rc) col->has_coll = inner->has_coll;
    if (!rc) rc = wl_copy_expr(&c, keys[k].outer, &outer);
    if (!rc) rc = wl_edit_compare(to, WL_B_COMPARE, WL_OP_EQ, outer, col, &eq);
    if (rc) break;
    eq->cmp_affinity = keys[k].cond->cmp_affinity; /* which side was on the left matters */
    eq->cmp_coll = keys[k].cond->cmp_coll;
    rc = wl_edit_and(to, on, eq);
  }
  return rc;
}

/* An aggregate whose references to the outer query are all equalities: one group for each of their
** values. */
static wl_status join_by_keys(wl_rewriter *r, wl_rewriter *child, wl_bexpr *inner,
                              const wl_bexpr *outer, int n, wl_bexpr **out) {
  wl_query *q = child->edit.q;
  wl_bexpr *result = q->results[0], *on = NULL, *value;
  wl_outer_key *keys = WL_NEW_N(r->edit.arena, wl_outer_key, n + 1);
  wl_bexpr **groups = WL_NEW_N(r->edit.arena, wl_bexpr *, n + 1);
  int place, m = 0;
  if (!keys || !groups) return wl_nomem(r->edit.err);
  list_keys(outer, keys, &m);
  for (int k = 0; k < n; k++) groups[k] = (wl_bexpr *)(size_t)keys[k].inner;
  q->where = inner;
  wl_status rc = wl_prepend_results(&child->edit, groups, n, true);
  if (!rc) rc = join_left(&r->edit, q, &place);
  if (!rc) rc = equal_keys(&r->edit, q, keys, n, place, &on);
  if (!rc) rc = value_of(&r->edit, q, place, n, &value);
  if (rc) return rc;
  r->edit.q->sources[place].on = on;
  return value_or_empty(&r->edit, q, result, place, value, out);
}

/* ---- by outer values */

static wl_status join_by_values(wl_rewriter *r, wl_rewriter *child, bool one_row, wl_bexpr **out) {
  wl_query *q = child->edit.q;
  wl_bexpr *result = q->results[0], *on = NULL, *value, **outers;
  int n, place;
  wl_status rc = wl_join_outer_values(r, child, &outers, &n);
  if (!rc) rc = join_left(&r->edit, q, &place);
  if (!rc) rc = wl_same_values(&r->edit, outers, n, place, &on);
  if (!rc) rc = value_of(&r->edit, q, place, n, &value);
  if (rc) return rc;
  r->edit.q->sources[place].on = on;
  *out = value;
  return one_row ? value_or_empty(&r->edit, q, result, place, value, out) : WL_OK;
}

wl_status wl_join_scalar(wl_rewriter *r, wl_rewriter *child, wl_bexpr **out) {
  wl_query *q = child->edit.q;
  wl_bexpr *inner = NULL, *outer = NULL;
  int n = 0;
  if (q->aggregate && wl_has_outer(q->results[0]))
    return wl_not_taken(r->edit.err,
                        "a result that combines an aggregate with a value of the outer query");
  wl_status rc = wl_split_conjuncts(&child->edit, q->where, &inner, &outer);
  if (rc) return rc;
  bool one_row = q->aggregate && !q->grouped; /* for any outer values */
  if (q->having && one_row) return wl_not_taken(r->edit.err, "HAVING in a correlated subquery");
  if ((q->limit || q->offset) && !(one_row && wl_limit_keeps_one(q)))
    return wl_not_taken(r->edit.err, "LIMIT in a correlated subquery");
  if (child->has_right)
    return wl_not_taken(r->edit.err, "RIGHT or FULL JOIN in a correlated scalar subquery");
  if (one_row && !q->bare && !wl_outer_elsewhere(q, true) && all_keys(outer, &n))
    return join_by_keys(r, child, inner, outer, n, out);
  return join_by_values(r, child, one_row, out);
}
