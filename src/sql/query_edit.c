/*
** Functions that add to a bound query. See query_edit.h.
*/
#include "sql/query_edit.h"
#include "base/sqlite.h"
#include <string.h>

const char *const wl_aggregate_names[WL_N_AGGREGATES] = {
#define WL_AGGREGATE(name, sql, least, most, marks, empty) sql,
#include "value/aggregates.def"
#undef WL_AGGREGATE
};

wl_status wl_edit_open(wl_edit *to, const wl_edit *statement) {
  *to = *statement;
  to->q = WL_NEW(to->arena, wl_query);
  if (!to->q) return wl_nomem(to->err);
  to->q->decides = -1;
  return WL_OK;
}

wl_status wl_edit_room(const wl_edit *to, void **array, int n, size_t width) {
  enum { FIRST = 8 };
  bool full = n == 0 || (n >= FIRST && (n & (n - 1)) == 0);
  if (!full) return WL_OK;
  size_t size = n == 0 ? FIRST : 2 * (size_t)n;
  void *p = wl_arena_alloc(to->arena, size * width);
  if (!p) return wl_nomem(to->err);
  if (n) memcpy(p, *array, (size_t)n * width);
  *array = p;
  return WL_OK;
}

/* ---- expressions */

wl_bexpr *wl_edit_node(wl_edit *to, wl_bkind kind) {
  wl_bexpr *x = WL_NEW(to->arena, wl_bexpr);
  if (!x) return NULL;
  x->kind = kind;
  x->affinity = '@';
  x->id = to->q->n_exprs++;
  return x;
}

wl_status wl_edit_constant(wl_edit *to, wl_val v, wl_bexpr **out) {
  *out = wl_edit_node(to, WL_B_CONST);
  if (!*out) return wl_nomem(to->err);
  (*out)->value = v;
  return WL_OK;
}

wl_status wl_edit_case(wl_edit *to, wl_bexpr *test, wl_bexpr *yes, wl_bexpr *no, wl_bexpr **out) {
  wl_bexpr *x = *out = wl_edit_node(to, WL_B_CASE);
  if (x) x->list = WL_NEW_N(to->arena, wl_bexpr *, 3);
  if (!x || !x->list) return wl_nomem(to->err);
  x->list[0] = test;
  x->list[1] = yes;
  x->list[2] = no;
  x->n_list = 3;
  return WL_OK;
}

char wl_compare_affinity(const wl_bexpr *a, const wl_bexpr *b) {
  if (a->affinity > '@' && b->affinity > '@')
    return a->affinity >= 'C' || b->affinity >= 'C' ? 'C' : 'A';
  return a->affinity > '@' ? a->affinity : b->affinity;
}

wl_u8 wl_compare_coll(const wl_bexpr *a, const wl_bexpr *b) {
  if (a->explicit_coll) return a->coll;
  if (b->explicit_coll) return b->coll;
  if (a->has_coll) return a->coll;
  return wl_bexpr_coll(b);
}

void wl_bexpr_raise_collate(wl_bexpr *x) {
  for (int k = 0; k < 2 + x->n_list && !x->explicit_coll; k++) {
    const wl_bexpr *c = k == 0 ? x->a : k == 1 ? x->b : x->list[k - 2];
    if (!c || !c->explicit_coll) continue;
    x->has_coll = x->explicit_coll = true;
    x->coll = c->coll;
  }
}

wl_status wl_edit_compare(wl_edit *to, wl_bkind kind, wl_op op, wl_bexpr *l, wl_bexpr *r,
                          wl_bexpr **out) {
  wl_status rc = wl_edit_binary(to, kind, op, l, r, out);
  if (rc) return rc;
  (*out)->cmp_affinity = wl_compare_affinity(l, r);
  (*out)->cmp_coll = wl_compare_coll(l, r);
  return WL_OK;
}

wl_status wl_edit_binary(wl_edit *to, wl_bkind kind, wl_op op, wl_bexpr *l, wl_bexpr *r,
                         wl_bexpr **out) {
  wl_bexpr *x = wl_edit_node(to, kind);
  if (!x) return wl_nomem(to->err);
  x->op = op;
  x->a = l;
  x->b = r;
  wl_bexpr_raise_collate(x);
  *out = x;
  return WL_OK;
}

wl_status wl_edit_negate(wl_edit *to, bool negated, wl_bexpr **x) {
  return negated ? wl_edit_binary(to, WL_B_NOT, WL_OP_NONE, *x, NULL, x) : WL_OK;
}

wl_status wl_edit_and(wl_edit *to, wl_bexpr **conjuncts, wl_bexpr *more) {
  if (!more) return WL_OK;
  if (!*conjuncts) {
    *conjuncts = more;
    return WL_OK;
  }
  return wl_edit_binary(to, WL_B_AND, WL_OP_AND, *conjuncts, more, conjuncts);
}

wl_status wl_edit_column(wl_edit *to, int source, int column, char affinity, wl_u8 coll,
                         wl_bexpr **out) {
  wl_query *q = to->q;
  for (int k = 0; k < q->n_cols; k++)
    if (q->cols[k].source == source && q->cols[k].column == column) {
      *out = q->col_nodes[k];
      return WL_OK;
    }
  wl_status rc = WL_EDIT_ROOM(to, q->cols, q->n_cols);
  if (!rc) rc = WL_EDIT_ROOM(to, q->col_nodes, q->n_cols);
  wl_bexpr *x = rc ? NULL : wl_edit_node(to, WL_B_COLUMN);
  if (!x) return rc ? rc : wl_nomem(to->err);
  x->source = source;
  x->index = column;
  x->slot = q->n_cols;
  x->affinity = affinity;
  x->coll = coll;
  x->has_coll = true;
  q->cols[q->n_cols] = (wl_bcol){source, column};
  q->col_nodes[q->n_cols++] = x;
  *out = x;
  return WL_OK;
}

wl_status wl_edit_as_column(wl_edit *to, wl_bexpr *e, wl_bexpr **out) {
  *out = e;
  if (e->kind == WL_B_COLUMN && e->has_coll && !e->explicit_coll) return WL_OK;
  wl_bexpr *x = wl_edit_node(to, WL_B_CAST);
  if (!x) return wl_nomem(to->err);
  x->op = WL_OP_POS;
  x->a = e;
  x->affinity = e->affinity;
  x->coll = wl_bexpr_coll(e);
  x->has_coll = true;
  *out = x;
  return WL_OK;
}

/* ---- parts of a query */

wl_status wl_edit_source(wl_edit *to, wl_bsource s, int *out) {
  wl_query *q = to->q;
  if (q->n_sources >= WL_MAX_SOURCES)
    return wl_not_taken(to->err, "more than %d tables and subqueries in one query", WL_MAX_SOURCES);
  wl_status rc = WL_EDIT_ROOM(to, q->sources, q->n_sources);
  if (rc) return rc;
  *out = q->n_sources;
  q->sources[q->n_sources++] = s;
  return WL_OK;
}

wl_status wl_edit_result(wl_edit *to, wl_bexpr *e) {
  wl_query *q = to->q;
  wl_status rc = WL_EDIT_ROOM(to, q->results, q->n_results);
  if (!rc) q->results[q->n_results++] = e;
  return rc;
}

wl_status wl_edit_aggregate(wl_edit *to, wl_bagg agg, wl_bexpr **out) {
  wl_query *q = to->q;
  wl_status rc = WL_EDIT_ROOM(to, q->aggs, q->n_aggs);
  wl_bexpr *x = rc ? NULL : wl_edit_node(to, WL_B_AGG);
  if (!x) return rc ? rc : wl_nomem(to->err);
  x->index = q->n_aggs;
  if (agg.arg && agg.arg->explicit_coll) {
    x->coll = agg.arg->coll;
    x->has_coll = x->explicit_coll = true;
  }
  q->aggs[q->n_aggs++] = agg;
  q->aggregate = true;
  *out = x;
  return wl_edit_uses(to, wl_aggregate_names[agg.fn]);
}

wl_status wl_edit_derived(const wl_edit *to, wl_query *q, wl_derived **out) {
  wl_derived *d = *out = WL_NEW(to->arena, wl_derived);
  if (d) d->arms = WL_NEW(to->arena, wl_query *);
  if (!d || !d->arms) return wl_nomem(to->err);
  d->arms[0] = q;
  d->n_arms = 1;
  d->n_cols = q->n_results;
  d->id = -1;
  return WL_OK;
}

wl_status wl_edit_uses(const wl_edit *to, const char *function) {
  wl_call_names *calls = to->calls;
  for (int k = 0; k < calls->n; k++)
    if (sqlite3_stricmp(calls->names[k], function) == 0) return WL_OK;
  wl_status rc = WL_EDIT_ROOM(to, calls->names, calls->n);
  if (!rc) calls->names[calls->n++] = function;
  return rc;
}

/* ---- compounds */

wl_u8 wl_arms_coll(wl_query *const *arms, int n, int k, bool *has) {
  *has = false;
  for (int i = 0; i < n; i++) {
    *has = arms[i]->results[k]->has_coll;
    if (*has) return arms[i]->results[k]->coll;
  }
  return WL_COLL_BINARY;
}

wl_status wl_edit_arm_columns(wl_edit *to, wl_query *const *arms, int n) {
  for (int k = 0; k < arms[0]->n_results; k++) {
    bool has;
    wl_u8 coll = wl_arms_coll(arms, n, k, &has);
    wl_bexpr *x;
    wl_status rc = wl_edit_column(to, 0, k, arms[0]->results[k]->affinity, coll, &x);
    if (!rc) x->has_coll = has;
    if (!rc) rc = wl_edit_result(to, x);
    if (rc) return rc;
  }
  return WL_OK;
}
