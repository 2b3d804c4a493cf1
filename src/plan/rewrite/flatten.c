/*
** Flattening: a subquery, view or WITH entry in FROM that is only a join with a WHERE becomes part
** of the query that reads it. Its sources are added to those of the query, its WHERE is added to
** the WHERE, and its columns become expressions. One of the rewrites of a query.
*/
#include "plan/rewrite/rewrite_impl.h"

bool wl_can_flatten(const wl_rewriter *r, const wl_bsource *s, const wl_rewriter *child) {
  const wl_query *q = child->edit.q;
  if (s->how != WL_HOW_INNER || r->has_right || child->has_right) return false;
  if (q->aggregate || q->distinct || q->limit || q->offset) return false;
  /* if it is the only source, the query may return its rows in their order */
  return !(q->n_order && r->bound->n_sources == 1);
}

wl_status wl_flatten(wl_rewriter *r, const wl_rewriter *child, wl_bexpr ***cols) {
  const wl_query *q = child->edit.q;
  wl_query *to = r->edit.q;
  wl_bexpr **exprs = *cols = WL_NEW_N(r->edit.arena, wl_bexpr *, q->n_results + 1), *x;
  wl_copy c;
  int place;
  wl_status rc = exprs ? wl_copy_open(&c, &r->edit, q) : wl_nomem(r->edit.err);
  if (rc) return rc;
  wl_copy_costs(&c);
  c.source_base = to->n_sources;
  for (int k = 0; k < q->n_sources && !rc; k++) {
    wl_bsource s = q->sources[k];
    s.on = NULL;
    rc = wl_edit_source(&r->edit, s, &place);
  }
  for (int k = 0; k < q->n_sources && !rc; k++) {
    rc = wl_copy_expr(&c, q->sources[k].on, &x);
    to->sources[c.source_base + k].on = x;
  }
  if (!rc) rc = wl_copy_expr(&c, q->where, &x);
  if (!rc) rc = wl_edit_and(&r->edit, &to->where, x);
  for (int k = 0; k < q->n_results && !rc; k++) {
    rc = wl_copy_expr(&c, q->results[k], &x);
    if (!rc) rc = wl_edit_as_column(&r->edit, x, &exprs[k]);
    if (!rc && child->bound->no_from) exprs[k]->of_row = true;
  }
  r->has_of_row |= child->has_of_row || child->bound->no_from;
  return rc;
}
