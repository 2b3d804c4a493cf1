/*
** Copies expressions of one bound query into another: a subquery that is taken into the query
** round it, a join that becomes a query of its own. Part of the binder.
*/
#include "sql/bind_impl.h"
#include <string.h>

wl_status wl_graft_open(wl_graft *g, binder *to, const wl_query *from) {
  memset(g, 0, sizeof *g);
  g->to = to;
  g->from = from;
  g->map = WL_NEW_N(to->arena, wl_bexpr *, from->n_exprs + 1);
  return g->map ? WL_OK : wl_nomem(to->err);
}

static wl_status copy(wl_graft *g, const wl_bexpr *e, wl_bexpr **out) {
  binder *b = g->to;
  if (e->kind == WL_B_OUTER) { /* the query it refers to is the one it comes into */
    *out = e->a;
    return WL_OK;
  }
  if (e->kind == WL_B_COLUMN) {
    wl_status rc =
        wl_bind_column(b, g->source_base + e->source, e->index, e->affinity, e->coll, out);
    if (!rc) (*out)->has_coll = e->has_coll;
    return rc;
  }
  wl_bexpr *x = wl_bind_node(b, e->kind);
  if (!x) return wl_nomem(b->err);
  int id = x->id;
  *x = *e;
  x->id = id;
  if (e->kind == WL_B_SUB || e->kind == WL_B_INSUB) x->index += g->sub_base;
  if (e->kind == WL_B_FOUND) x->source += g->source_base;
  if (e->n_list) {
    x->list = WL_NEW_N(b->arena, wl_bexpr *, e->n_list);
    if (!x->list) return wl_nomem(b->err);
  }
  wl_status rc = wl_graft_expr(g, e->a, &x->a);
  if (!rc) rc = wl_graft_expr(g, e->b, &x->b);
  for (int k = 0; k < e->n_list && !rc; k++) rc = wl_graft_expr(g, e->list[k], &x->list[k]);
  *out = x;
  return rc;
}

wl_status wl_graft_expr(wl_graft *g, const wl_bexpr *e, wl_bexpr **out) {
  *out = NULL;
  if (!e) return WL_OK;
  if (g->map[e->id]) {
    *out = g->map[e->id];
    return WL_OK;
  }
  wl_status rc = g->node ? g->node(g, e, out) : WL_OK;
  if (!rc && !*out) rc = copy(g, e, out);
  if (!rc) g->map[e->id] = *out;
  return rc;
}

wl_status wl_graft_query(wl_graft *g) {
  binder *b = g->to;
  const wl_query *from = g->from;
  wl_query *q = b->q;
  g->sub_base = q->n_subs;
  for (int k = 0; k < from->n_subs; k++) {
    wl_status rc = WL_BIND_ROOM(b, q->subs, q->n_subs, b->size_subs);
    if (rc) return rc;
    q->subs[q->n_subs++] = from->subs[k];
  }
  q->n_nodes_cost += from->n_nodes_cost;
  q->n_call_cost += from->n_call_cost;
  q->like_param |= from->like_param;
  return WL_OK;
}
