/*
** Copies expressions between queries. See copy_expr.h.
*/
#include "plan/rewrite/copy_expr.h"
#include <string.h>

wl_status wl_copy_open(wl_copy *c, wl_edit *to, const wl_query *from) {
  memset(c, 0, sizeof *c);
  c->to = to;
  c->from = from;
  c->map = WL_NEW_N(to->arena, wl_bexpr *, from->n_exprs + 1);
  c->sub_map = WL_NEW_N(to->arena, int, from->n_subs + 1);
  return c->map && c->sub_map ? WL_OK : wl_nomem(to->err);
}

/* The number in `to` of a sub of `from`. */
static wl_status copy_sub(wl_copy *c, int k, int *out) {
  wl_query *q = c->to->q;
  *out = k;
  if (q == c->from) return WL_OK;
  if (!c->sub_map[k]) {
    wl_status rc = WL_EDIT_ROOM(c->to, q->subs, q->n_subs);
    if (rc) return rc;
    q->subs[q->n_subs++] = c->from->subs[k];
    c->sub_map[k] = q->n_subs;
  }
  *out = c->sub_map[k] - 1;
  return WL_OK;
}

static wl_status copy(wl_copy *c, const wl_bexpr *e, wl_bexpr **out) {
  wl_edit *to = c->to;
  if (e->kind == WL_B_OUTER) { /* it refers to the query that it is copied into */
    *out = e->a;
    return WL_OK;
  }
  if (e->kind == WL_B_COLUMN) {
    wl_status rc =
        wl_edit_column(to, c->source_base + e->source, e->index, e->affinity, e->coll, out);
    if (!rc) (*out)->has_coll = e->has_coll;
    return rc;
  }
  wl_bexpr *x = wl_edit_node(to, e->kind);
  if (!x) return wl_nomem(to->err);
  int id = x->id;
  *x = *e;
  x->id = id;
  if (e->kind == WL_B_FOUND) x->source += c->source_base;
  if (e->n_list) {
    x->list = WL_NEW_N(to->arena, wl_bexpr *, e->n_list);
    if (!x->list) return wl_nomem(to->err);
  }
  bool sub = e->kind == WL_B_SUB || e->kind == WL_B_INSUB;
  wl_status rc = sub ? copy_sub(c, e->index, &x->index) : WL_OK;
  if (!rc) rc = wl_copy_expr(c, e->a, &x->a);
  if (!rc) rc = wl_copy_expr(c, e->b, &x->b);
  for (int k = 0; k < e->n_list && !rc; k++) rc = wl_copy_expr(c, e->list[k], &x->list[k]);
  *out = x;
  return rc;
}

wl_status wl_copy_expr(wl_copy *c, const wl_bexpr *e, wl_bexpr **out) {
  *out = NULL;
  if (!e) return WL_OK;
  if (c->map[e->id]) {
    *out = c->map[e->id];
    return WL_OK;
  }
  wl_status rc = c->node ? c->node(c, e, out) : WL_OK;
  if (!rc && !*out) rc = copy(c, e, out);
  if (!rc) c->map[e->id] = *out;
  return rc;
}

void wl_copy_costs(const wl_copy *c) {
  wl_query *q = c->to->q;
  q->n_nodes_cost += c->from->n_nodes_cost;
  q->n_call_cost += c->from->n_call_cost;
  q->like_param |= c->from->like_param;
}
