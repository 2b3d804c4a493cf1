/*
** Subqueries in expressions. An uncorrelated subquery runs before the query (as a sub: a value, a
** truth, a list), or is joined (IN). A correlated one becomes a join:
**
**   EXISTS, IN          A SEMI, ANTI or MARK join. With one table, it joins that table with the
**                       subquery's WHERE as the condition. With several, it joins the rows of
**                       their join.
**   scalar aggregate    If all references to the outer query are equalities: grouped by their inner
**                       sides, and joined LEFT by these keys.
**   all others          The distinct outer values that it depends on become one of its sources. Its
**                       results for each of them are joined by these values.
**
** This file decides which. subquery_join.c, scalar_subquery.c and outer_values.c do the work. One
** of the rewrites of a query.
*/
#include "plan/rewrite/rewrite_impl.h"
#include <string.h>

/* ---- questions about subqueries */

bool wl_has_outer(const wl_bexpr *e) {
  if (!e) return false;
  if (e->kind == WL_B_OUTER) return true;
  for (int k = 0; k < e->n_list; k++)
    if (wl_has_outer(e->list[k])) return true;
  return wl_has_outer(e->a) || wl_has_outer(e->b);
}

bool wl_has_inner(const wl_bexpr *e) {
  if (!e || e->kind == WL_B_OUTER) return false;
  if (e->kind == WL_B_COLUMN || e->kind == WL_B_AGG || e->kind == WL_B_FOUND) return true;
  for (int k = 0; k < e->n_list; k++)
    if (wl_has_inner(e->list[k])) return true;
  return wl_has_inner(e->a) || wl_has_inner(e->b);
}

bool wl_outer_elsewhere(const wl_query *q, bool results) {
  bool yes = wl_has_outer(q->having) || wl_has_outer(q->limit) || wl_has_outer(q->offset);
  for (int k = 0; k < q->n_results && results; k++) yes |= wl_has_outer(q->results[k]);
  for (int k = 0; k < q->n_groups; k++) yes |= wl_has_outer(q->groups[k]);
  for (int k = 0; k < q->n_aggs; k++)
    yes |= wl_has_outer(q->aggs[k].arg) || wl_has_outer(q->aggs[k].separator);
  for (int k = 0; k < q->n_sources; k++) yes |= wl_has_outer(q->sources[k].on);
  return yes;
}

wl_status wl_split_conjuncts(wl_edit *to, wl_bexpr *e, wl_bexpr **inner, wl_bexpr **outer) {
  if (!e) return WL_OK;
  if (e->kind == WL_B_AND) {
    wl_status rc = wl_split_conjuncts(to, e->a, inner, outer);
    return rc ? rc : wl_split_conjuncts(to, e->b, inner, outer);
  }
  return wl_edit_and(to, wl_has_outer(e) ? outer : inner, e);
}

bool wl_limit_keeps_one(const wl_query *q) {
  if (q->offset) return false;
  return !q->limit || (q->limit->kind == WL_B_CONST && q->limit->value.t == WL_T_INT &&
                       (wl_i64)q->limit->value.v != 0);
}

static bool limit_keeps_none(const wl_query *q) {
  return q->limit && q->limit->kind == WL_B_CONST && q->limit->value.t == WL_T_INT &&
         q->limit->value.v == 0;
}

static bool has_aggregate(const wl_bexpr *e) {
  if (!e) return false;
  if (e->kind == WL_B_AGG) return true;
  for (int k = 0; k < e->n_list; k++)
    if (has_aggregate(e->list[k])) return true;
  return has_aggregate(e->a) || has_aggregate(e->b);
}

/* ---- subqueries that are computed for groups */

/* Whether a comparison under this affinity leaves x unchanged. A REAL that is compared with an
** integer column, or searched in a list, becomes an integer. */
static bool keeps_value(char affinity, const wl_bexpr *x, const wl_bexpr *other, int n_list) {
  if (x->affinity == 'E')
    return other ? other->affinity < 'C' || other->affinity == 'E' : n_list < 3;
  return affinity >= 'C' ? x->affinity >= 'C' : x->affinity == 'B';
}

/* Whether a comparison applies a foreign affinity to an outer value. In a query with groups, SQLite
** 3.40 then changes the group's own value. */
static bool changes_outer(const wl_bexpr *e) {
  if (!e) return false;
  for (int k = 0; e->cmp_affinity > 'A' && k < 2 + e->n_list; k++) {
    const wl_bexpr *side = k == 0 ? e->a : k == 1 ? e->b : e->list[k - 2];
    const wl_bexpr *other = k == 0 ? e->b : e->a;
    if (wl_has_outer(side) && !keeps_value(e->cmp_affinity, side, other, e->n_list)) return true;
  }
  for (int k = 0; k < e->n_list; k++)
    if (changes_outer(e->list[k])) return true;
  return changes_outer(e->a) || changes_outer(e->b);
}

/* For a subquery e that is computed for groups: collects what it and the left side of IN refer to.
** That must be the same within a group. Collects nothing for other subqueries. */
static wl_status refers_to(wl_rewriter *r, const wl_bexpr *e, const wl_query *q, wl_bexpr **left,
                           int n_left, wl_group_subquery *to) {
  memset(to, 0, sizeof *to);
  if (!e->beside_groups) return WL_OK;
  if (changes_outer(q->where))
    return wl_not_taken(r->edit.err,
                        "a subquery in a grouped query that compares the group's values "
                        "under another affinity");
  to->refers_to = WL_NEW_N(r->edit.arena, wl_bexpr *, q->n_outers + n_left + 1);
  if (!to->refers_to) return wl_nomem(r->edit.err);
  for (int k = 0; k < q->n_outers + n_left; k++) {
    wl_bexpr *x = k < n_left ? left[k] : q->outers[k - n_left]->a;
    if (has_aggregate(x))
      return wl_not_taken(r->edit.err, "a subquery that refers to an aggregate of the outer query");
    to->refers_to[to->n++] = x;
  }
  return WL_OK;
}

static wl_status note_group_subquery(wl_rewriter *r, wl_group_subquery s, wl_bexpr *value) {
  if (!s.refers_to) return WL_OK;
  s.value = value;
  wl_status rc = WL_EDIT_ROOM(&r->edit, r->group_subqueries, r->n_group_subqueries);
  if (!rc) r->group_subqueries[r->n_group_subqueries++] = s;
  return rc;
}

/* ---- the kinds of subqueries */

wl_status wl_rewrite_add_sub(wl_edit *to, wl_query *q, char kind, int *out) {
  wl_status rc = WL_EDIT_ROOM(to, to->q->subs, to->q->n_subs);
  if (rc) return rc;
  *out = to->q->n_subs;
  to->q->subs[to->q->n_subs++] = (wl_bsub){q, kind};
  return WL_OK;
}

wl_status wl_rewrite_found(wl_edit *to, int source, wl_bexpr **out) {
  *out = wl_edit_node(to, WL_B_FOUND);
  if (!*out) return wl_nomem(to->err);
  (*out)->source = source;
  return WL_OK;
}

/* The value of a query that runs before this one. */
static wl_status sub_value(wl_rewriter *r, wl_query *q, char kind, wl_bexpr **out) {
  int k;
  wl_status rc = wl_rewrite_add_sub(&r->edit, q, kind, &k);
  *out = rc ? NULL : wl_edit_node(&r->edit, kind == 'l' ? WL_B_INSUB : WL_B_SUB);
  if (!*out) return rc ? rc : wl_nomem(r->edit.err);
  (*out)->index = k;
  return WL_OK;
}

static wl_status exists(wl_rewriter *r, const wl_bexpr *e, wl_join_how how, wl_bexpr **out) {
  wl_rewriter *child;
  wl_group_subquery refers;
  int place;
  bool anti = how == WL_HOW_ANTI;
  wl_status rc = wl_rewrite_inner(r, e->query, &child);
  if (rc) return rc;
  wl_query *q = child->edit.q;
  if (q->n_outers == 0) {
    rc = sub_value(r, q, 'e', out);
    return rc ? rc : wl_edit_negate(&r->edit, anti, out);
  }
  if (limit_keeps_none(q)) return wl_edit_constant(&r->edit, wl_int(anti), out);
  rc = refers_to(r, e, q, NULL, 0, &refers);
  if (rc) return rc;
  bool one = q->aggregate && !q->grouped; /* an aggregate returns a row even if there are no rows */
  if (one && !q->having && wl_limit_keeps_one(q))
    return wl_edit_constant(&r->edit, wl_int(!anti), out);
  if (one) return wl_not_taken(r->edit.err, "EXISTS over an aggregate with HAVING");
  rc = wl_join_subquery(r, child, NULL, 0, how, &place);
  if (rc || how != WL_HOW_MARK) return rc;
  rc = wl_rewrite_found(&r->edit, place, out);
  return rc ? rc : note_group_subquery(r, refers, *out);
}

/* x IN (uncorrelated subquery), computed for groups: x is searched in the list of its values. */
static wl_status in_list(wl_rewriter *r, wl_query *q, wl_bexpr *x, wl_bexpr **out) {
  wl_status rc = sub_value(r, q, 'l', out);
  if (rc) return rc;
  (*out)->a = x;
  (*out)->cmp_affinity = wl_compare_affinity(x, q->results[0]);
  (*out)->cmp_coll = wl_compare_coll(x, q->results[0]);
  return WL_OK;
}

static wl_status in_rows(wl_rewriter *r, const wl_bexpr *e, wl_join_how how, wl_bexpr **out) {
  wl_rewriter *child;
  wl_group_subquery refers;
  int place, n = e->n_list;
  wl_bexpr **left = WL_NEW_N(r->edit.arena, wl_bexpr *, n + 1);
  wl_status rc = left ? WL_OK : wl_nomem(r->edit.err);
  for (int k = 0; k < n && !rc; k++) rc = wl_rewrite_expr(r, e->list[k], &left[k]);
  if (!rc) rc = wl_rewrite_inner(r, e->query, &child);
  if (rc) return rc;
  wl_query *q = child->edit.q;
  bool correlated = q->n_outers > 0;
  if (n > 1 && how == WL_HOW_MARK)
    return wl_not_taken(r->edit.err,
                        "row values IN (SELECT ...) are native only as a condition of WHERE");
  if (e->beside_groups && !correlated) return in_list(r, q, left[0], out);
  rc = refers_to(r, e, q, left, n, &refers);
  if (!rc && correlated && q->aggregate && !q->grouped)
    return wl_not_taken(r->edit.err, "IN over an aggregate in a correlated subquery");
  if (!rc) rc = wl_join_subquery(r, child, left, n, how, &place);
  if (rc || how != WL_HOW_MARK) return rc;
  rc = wl_rewrite_found(&r->edit, place, out);
  if (rc) return rc;
  (*out)->a = left[0];
  (*out)->op = WL_OP_EQ; /* IN: if no row matches, NULLs decide between false and NULL */
  (*out)->index = correlated;
  return note_group_subquery(r, refers, *out);
}

static wl_status scalar(wl_rewriter *r, const wl_bexpr *e, wl_bexpr **out) {
  wl_rewriter *child;
  wl_group_subquery refers;
  wl_status rc = wl_rewrite_inner(r, e->query, &child);
  if (rc) return rc;
  wl_query *q = child->edit.q;
  if (q->n_outers == 0) {
    rc = sub_value(r, q, 'v', out);
    if (!rc) (*out)->affinity = q->results[0]->affinity;
    return rc;
  }
  rc = refers_to(r, e, q, NULL, 0, &refers);
  if (!rc) rc = wl_join_scalar(r, child, out);
  return rc ? rc : note_group_subquery(r, refers, *out);
}

wl_status wl_rewrite_subquery(wl_rewriter *r, const wl_bexpr *e, wl_join_how how, wl_bexpr **out) {
  *out = NULL;
  if (e->index == WL_SUBQUERY_EXISTS) return exists(r, e, how, out);
  return e->index == WL_SUBQUERY_IN ? in_rows(r, e, how, out) : scalar(r, e, out);
}
