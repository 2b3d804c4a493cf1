/*
** RIGHT and FULL joins made into LEFT ones, once a query is bound. Part of the binder.
**
**     L RIGHT JOIN R ON c   becomes   R LEFT JOIN L ON c
**     L FULL JOIN R ON c    becomes   (L LEFT JOIN R ON c) and then (R without any L)
**
** L is all that stands to the left; if that is more than a table, it is a derived source. FULL is
** a derived source of two arms.
*/
#include "sql/bind_impl.h"
#include <string.h>

/* Where the columns of a query go. */
typedef struct moving {
  int *source;  /* by old source: the new one, where its columns keep their numbers; or -1 */
  wl_bcol *col; /* by old slot */
  bool *null;   /* by old slot: it is NULL there */
} moving;

static wl_status move_node(wl_graft *g, const wl_bexpr *e, wl_bexpr **out) {
  const moving *m = g->arg;
  if (e->kind == WL_B_COLUMN) {
    if (m->null && m->null[e->slot]) return wl_bind_constant(g->to, wl_null(), out);
    wl_status rc = wl_bind_column(g->to, m->col[e->slot].source, m->col[e->slot].column,
                                  e->affinity, e->coll, out);
    if (!rc) (*out)->has_coll = e->has_coll;
    return rc;
  }
  if (e->kind != WL_B_FOUND) return WL_OK;
  *out = wl_bind_node(g->to, WL_B_FOUND);
  if (!*out) return wl_nomem(g->to->err);
  (*out)->source = m->source[e->source];
  (*out)->op = e->op;
  (*out)->index = e->index;
  return wl_graft_expr(g, e->a, &(*out)->a);
}

static wl_status open_move(binder *b, const wl_query *q, moving *m) {
  m->source = WL_NEW_N(b->arena, int, q->n_sources + 1);
  m->col = WL_NEW_N(b->arena, wl_bcol, q->n_cols + 1);
  m->null = WL_NEW_N(b->arena, bool, q->n_cols + 1);
  if (!m->source || !m->col || !m->null) return wl_nomem(b->err);
  for (int s = 0; s < q->n_sources; s++) m->source[s] = -1;
  return WL_OK;
}

/* A binder for a query that takes up parts of b's. */
static wl_status fresh(const binder *b, binder *out) {
  *out = *b;
  out->q = WL_NEW(b->arena, wl_query);
  if (!out->q) return wl_nomem(b->err);
  out->q->decides = -1;
  out->nodes = NULL;
  out->size_cols = out->size_sources = out->size_aggs = out->size_subs = 0;
  return WL_OK;
}

static wl_status start(binder *to, const wl_query *from, moving *m, wl_graft *g) {
  wl_status rc = wl_graft_open(g, to, from);
  g->node = move_node;
  g->arg = m;
  return rc;
}

/* All of q's columns that come of the sources before `end`, as results of `to`. */
static wl_status give_columns(const wl_query *q, binder *from, wl_graft *g, int end) {
  wl_query *to = g->to->q;
  to->results = WL_NEW_N(g->to->arena, wl_bexpr *, q->n_cols + 1);
  if (!to->results) return wl_nomem(g->to->err);
  for (int k = 0; k < q->n_cols; k++) {
    if (q->cols[k].source >= end) continue;
    wl_status rc = wl_graft_expr(g, from->nodes[k], &to->results[to->n_results++]);
    if (rc) return rc;
  }
  return WL_OK;
}

/* What stands left of source k, as one source: itself, or derived. cols: where columns go in it. */
static wl_status left_side(binder *b, int k, wl_bsource *out, int *cols) {
  wl_query *q = b->q;
  for (int c = 0, n = 0; c < q->n_cols; c++)
    if (q->cols[c].source < k) cols[c] = k == 1 ? q->cols[c].column : n++;
  if (k == 1) {
    *out = q->sources[0];
    return WL_OK;
  }
  binder lb;
  wl_graft g;
  moving m;
  wl_derived *d = NULL;
  wl_status rc = fresh(b, &lb);
  if (!rc) rc = open_move(b, q, &m);
  if (!rc) rc = start(&lb, q, &m, &g);
  if (!rc) rc = wl_graft_query(&g);
  if (rc) return rc;
  for (int c = 0; c < q->n_cols; c++) m.col[c] = q->cols[c];
  for (int s = 0; s < k && !rc; s++) {
    int place;
    wl_bsource copy = q->sources[s];
    wl_bexpr *on;
    m.source[s] = s;
    rc = wl_graft_expr(&g, copy.on, &on);
    copy.on = copy.how == WL_HOW_LEFT ? on : NULL;
    if (!rc && on && copy.how == WL_HOW_INNER) rc = wl_bind_and(&lb, &lb.q->where, on);
    if (!rc) rc = wl_bind_source(&lb, copy, &place);
  }
  if (!rc) rc = give_columns(q, b, &g, k);
  if (!rc) rc = wl_bind_derived(b, lb.q, &d);
  *out = (wl_bsource){.derived = d, .name = "join"};
  return rc;
}

/* One arm of a FULL join: first, then `second` joined as how. rights: numbers of R and L here. */
static wl_status full_arm(binder *b, int k, const wl_bsource *left, const int *left_cols,
                          bool first, wl_query **out) {
  wl_query *q = b->q;
  binder ab;
  wl_graft g;
  moving m;
  int place, l = first ? 0 : 1, r = first ? 1 : 0;
  wl_bsource ls = *left, rs = q->sources[k];
  wl_bexpr *on;
  wl_status rc = fresh(b, &ab);
  if (!rc) rc = open_move(b, q, &m);
  if (!rc) rc = start(&ab, q, &m, &g);
  if (!rc) rc = wl_graft_query(&g);
  if (rc) return rc;
  for (int c = 0; c < q->n_cols; c++)
    m.col[c] = q->cols[c].source < k ? (wl_bcol){l, left_cols[c]} : (wl_bcol){r, q->cols[c].column};
  ls.on = rs.on = NULL;
  ls.how = first ? WL_HOW_INNER : WL_HOW_ANTI;
  rs.how = first ? WL_HOW_LEFT : WL_HOW_INNER;
  rc = wl_bind_source(&ab, first ? ls : rs, &place);
  if (!rc) rc = wl_bind_source(&ab, first ? rs : ls, &place);
  if (!rc) rc = wl_graft_expr(&g, q->sources[k].on, &on);
  if (rc) return rc;
  ab.q->sources[1].on = on;
  if (!first) { /* what ON needed of L is copied; results have none of it */
    rc = start(&ab, q, &m, &g);
    for (int c = 0; c < q->n_cols; c++) m.null[c] = q->cols[c].source < k;
  }
  if (!rc) rc = give_columns(q, b, &g, k + 1);
  *out = ab.q;
  return rc;
}

/* Everything of q but its first sources, into the binder's new query. */
static wl_status move_rest(const wl_query *q, binder *to, moving *m) {
  wl_graft g;
  wl_query *n = to->q;
  wl_status rc = start(to, q, m, &g);
  if (!rc) rc = wl_graft_query(&g);
  g.sub_base = 0;
  wl_query shell = *n; /* sources, columns, subs and calls are the new ones */
  *n = *q;
  n->sources = shell.sources, n->n_sources = shell.n_sources;
  n->cols = shell.cols, n->n_cols = shell.n_cols;
  n->subs = shell.subs, n->n_subs = shell.n_subs;
  n->n_exprs = shell.n_exprs;
  n->results = WL_NEW_N(to->arena, wl_bexpr *, q->n_results + 1);
  n->groups = WL_NEW_N(to->arena, wl_bexpr *, q->n_groups + 1);
  n->order = WL_NEW_N(to->arena, wl_border, q->n_order + 1);
  n->aggs = WL_NEW_N(to->arena, wl_bagg, q->n_aggs + 1);
  if (!rc && to->arena->failed) rc = wl_nomem(to->err);
  if (rc) return rc;
  n->where = NULL;
  rc = wl_graft_expr(&g, q->where, &n->where);
  for (int k = 0; k < q->n_aggs && !rc; k++) {
    n->aggs[k] = q->aggs[k];
    rc = wl_graft_expr(&g, q->aggs[k].arg, &n->aggs[k].arg);
    if (!rc) rc = wl_graft_expr(&g, q->aggs[k].separator, &n->aggs[k].separator);
  }
  for (int k = 0; k < q->n_results && !rc; k++)
    rc = wl_graft_expr(&g, q->results[k], &n->results[k]);
  for (int k = 0; k < q->n_groups && !rc; k++) rc = wl_graft_expr(&g, q->groups[k], &n->groups[k]);
  for (int k = 0; k < q->n_order && !rc; k++) {
    n->order[k] = q->order[k];
    rc = wl_graft_expr(&g, q->order[k].expr, &n->order[k].expr);
  }
  if (!rc) rc = wl_graft_expr(&g, q->having, &n->having);
  if (!rc) rc = wl_graft_expr(&g, q->limit, &n->limit);
  if (!rc) rc = wl_graft_expr(&g, q->offset, &n->offset);
  return rc;
}

/* Makes the join at source k, the first of its kind, a LEFT one. *n_first: sources it is now. */
static wl_status turn(binder *b, int k, bool full, int *n_first) {
  wl_query *q = b->q;
  binder nb;
  moving m;
  wl_bsource left, right = q->sources[k];
  wl_derived *d = NULL;
  int place, *cols = WL_NEW_N(b->arena, int, q->n_cols + 1);
  wl_status rc = cols ? left_side(b, k, &left, cols) : wl_nomem(b->err);
  if (!rc) rc = fresh(b, &nb);
  if (!rc) rc = open_move(b, q, &m);
  if (rc) return rc;
  if (full) {
    wl_query *arms[2];
    rc = full_arm(b, k, &left, cols, true, &arms[0]);
    if (!rc) rc = full_arm(b, k, &left, cols, false, &arms[1]);
    if (!rc) rc = wl_bind_derived(b, arms[0], &d);
    if (!rc) d->arms = WL_NEW_N(b->arena, wl_query *, 2);
    if (!rc && !d->arms) rc = wl_nomem(b->err);
    if (rc) return rc;
    memcpy(d->arms, arms, sizeof arms);
    d->n_arms = 2;
    rc = wl_bind_source(&nb, (wl_bsource){.derived = d, .name = "full join"}, &place);
    for (int c = 0, n = 0; c < q->n_cols; c++)
      if (q->cols[c].source <= k) m.col[c] = (wl_bcol){0, n++};
  } else {
    right.how = WL_HOW_INNER;
    right.on = NULL;
    left.how = WL_HOW_LEFT;
    left.on = NULL;
    rc = wl_bind_source(&nb, right, &place);
    if (!rc) rc = wl_bind_source(&nb, left, &place);
    for (int c = 0; c < q->n_cols; c++)
      m.col[c] = q->cols[c].source < k ? (wl_bcol){1, cols[c]} : (wl_bcol){0, q->cols[c].column};
  }
  *n_first = nb.q->n_sources;
  for (int s = k + 1; s < q->n_sources && !rc; s++) {
    rc = wl_bind_source(&nb, q->sources[s], &m.source[s]);
    for (int c = 0; c < q->n_cols; c++)
      if (q->cols[c].source == s) m.col[c] = (wl_bcol){m.source[s], q->cols[c].column};
  }
  wl_graft g;
  if (!rc) rc = start(&nb, q, &m, &g);
  wl_bexpr *on;
  if (!rc && !full) {
    rc = wl_graft_expr(&g, q->sources[k].on, &on);
    if (!rc) nb.q->sources[1].on = on;
  }
  for (int s = k + 1; s < q->n_sources && !rc; s++) {
    rc = wl_graft_expr(&g, q->sources[s].on, &on);
    if (!rc) nb.q->sources[m.source[s]].on = on;
  }
  if (!rc) rc = move_rest(q, &nb, &m);
  *b = nb;
  return rc;
}

wl_status wl_bind_right(binder *b) {
  int n = b->n_from, before = b->n_from;
  wl_join_kind *kinds = WL_NEW_N(b->arena, wl_join_kind, n + 1);
  wl_status rc = kinds ? WL_OK : wl_nomem(b->err);
  for (int i = 0; i < b->n_items && !rc; i++) kinds[b->items[i].source] = b->items[i].join;
  for (int k = 1; k < n && !rc; k++) {
    if (kinds[k] != WL_JOIN_RIGHT && kinds[k] != WL_JOIN_FULL) continue;
    int n_first;
    rc = turn(b, k, kinds[k] == WL_JOIN_FULL, &n_first);
    if (rc) return rc;
    /* the kinds behind, closed up */
    wl_join_kind *moved = WL_NEW_N(b->arena, wl_join_kind, n + 3);
    if (!moved) return wl_nomem(b->err);
    moved[1] = WL_JOIN_LEFT;
    for (int s = k + 1; s < n; s++) moved[n_first + s - k - 1] = kinds[s];
    n = n_first + n - k - 1;
    kinds = moved;
    k = n_first - 1;
  }
  b->n_from += n - before;
  /* what is left of inner joins' conditions */
  for (int s = 0; s < b->q->n_sources && !rc; s++) {
    wl_bsource *src = &b->q->sources[s];
    if (src->how != WL_HOW_INNER || !src->on) continue;
    rc = wl_bind_and(b, &b->q->where, src->on);
    src->on = NULL;
  }
  return rc;
}
