/*
** Subqueries in expressions: a scalar subquery, EXISTS, IN. Each becomes a WL_B_SUBQUERY node with
** a bound query. The planner decides how it runs (plan/rewrite/subquery.c). Part of the binder.
*/
#include "sql/bind_impl.h"
#include <string.h>

static wl_status subquery_node(binder *b, wl_query *q, wl_subquery_kind kind, wl_bexpr **out) {
  wl_bexpr *x = *out = wl_edit_node(&b->edit, WL_B_SUBQUERY);
  if (!x) return wl_nomem(b->edit.err);
  x->query = q;
  x->index = kind;
  x->beside_groups = b->after_groups && !b->in_agg;
  return WL_OK;
}

/* Binds a subquery whose values are used. In an expression, the last arm of a compound decides the
** affinity of its columns; in FROM it is the first arm. */
static wl_status bind_values(binder *b, const wl_select *s, wl_query **q) {
  binder *child;
  wl_status rc = wl_bind_select(b, s, false, &child, q);
  const wl_query *last = rc ? NULL : child->last_arm;
  if (last) (*q)->sources[0].derived->mixed = child->mixed;
  for (int k = 0; last && k < last->n_results; k++)
    (*q)->results[k]->affinity = last->results[k]->affinity;
  return rc;
}

wl_status wl_bind_scalar(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_query *q;
  wl_status rc = bind_values(b, e->select, &q);
  if (rc) return rc;
  if (q->n_results != 1)
    return wl_not_taken(b->edit.err, "a scalar subquery with several columns is not native");
  rc = subquery_node(b, q, WL_SUBQUERY_VALUE, out);
  if (!rc) (*out)->affinity = q->results[0]->affinity;
  return rc;
}

wl_status wl_bind_exists(binder *b, const wl_expr *e, wl_bexpr **out) {
  binder *child;
  wl_query *q;
  wl_status rc = wl_bind_select(b, e->select, false, &child, &q);
  return rc ? rc : subquery_node(b, q, WL_SUBQUERY_EXISTS, out);
}

/* x IN table is x IN (SELECT * FROM table). */
static wl_status select_of(binder *b, const wl_expr *e, const wl_select **out) {
  *out = e->select;
  if (e->select) return WL_OK;
  if (e->list) return wl_not_taken(b->edit.err, "IN a table-valued function");
  wl_select *s = WL_NEW(b->edit.arena, wl_select);
  wl_from_item *f = WL_NEW(b->edit.arena, wl_from_item);
  wl_result_col *c = WL_NEW(b->edit.arena, wl_result_col);
  if (!s || !f || !c) return wl_nomem(b->edit.err);
  f->name = e->name;
  f->schema = e->schema;
  c->star = true;
  s->cols = c;
  s->from = f;
  *out = s;
  return WL_OK;
}

wl_status wl_bind_in_select(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_query *q;
  const wl_select *select = NULL;
  bool row = e->a->kind == WL_E_VECTOR;
  int n = row ? wl_list_length(e->a->list) : 1, k = 0;
  if (row && b->has_right) /* SQLite 3.40 returns some rows several times */
    return wl_not_taken(b->edit.err,
                        "row values IN (SELECT ...) together with a RIGHT or FULL JOIN");
  wl_bexpr **left = WL_NEW_N(b->edit.arena, wl_bexpr *, n);
  wl_status rc = left ? select_of(b, e, &select) : wl_nomem(b->edit.err);
  if (!rc && !row) rc = wl_bind_expr(b, e->a, &left[0]);
  for (const wl_expr_list *l = row ? e->a->list : NULL; l && !rc; l = l->next)
    rc = wl_bind_expr(b, l->expr, &left[k++]);
  if (!rc) rc = bind_values(b, select, &q);
  if (!rc) rc = subquery_node(b, q, WL_SUBQUERY_IN, out);
  if (rc) return rc;
  (*out)->list = left;
  (*out)->n_list = n;
  return wl_edit_negate(&b->edit, e->negated, out);
}
