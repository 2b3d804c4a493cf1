/*
** Questions about bound expressions, and checks of the invariants of whole bound trees.
*/
#include "sql/bind.h"
#include <string.h>

/* Shared nodes make the tree a graph, which can have exponentially many paths. This cache of recent
** results avoids walking a shared node again. */
enum { N_CACHED = 256 };
typedef struct source_cache {
  const wl_bexpr *e[N_CACHED];
  wl_u64 sources[N_CACHED];
} source_cache;

static wl_u64 sources_of(const wl_bexpr *e, source_cache *cache) {
  if (!e || e->kind == WL_B_OUTER) return 0; /* it refers to another query's sources */
  if (e->kind == WL_B_COLUMN) return 1ULL << e->source;
  bool inner = e->a || e->b || e->n_list;
  if (inner && cache->e[e->id % N_CACHED] == e) return cache->sources[e->id % N_CACHED];
  wl_u64 m = e->kind == WL_B_FOUND ? 1ULL << e->source : 0;
  for (int k = 0; k < e->n_list; k++) m |= sources_of(e->list[k], cache);
  m |= sources_of(e->a, cache) | sources_of(e->b, cache);
  cache->e[e->id % N_CACHED] = e;
  cache->sources[e->id % N_CACHED] = m;
  return m;
}

wl_u64 wl_bexpr_sources(const wl_bexpr *e) {
  source_cache cache = {0};
  return sources_of(e, &cache);
}

bool wl_bexpr_same(const wl_bexpr *a, const wl_bexpr *b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind || a->op != b->op || a->index != b->index ||
      a->n_list != b->n_list || a->coll != b->coll || a->cmp_coll != b->cmp_coll ||
      a->affinity != b->affinity || a->cmp_affinity != b->cmp_affinity || a->source != b->source ||
      a->query != b->query)
    return false;
  if (a->kind == WL_B_CONST) {
    if (a->value.t != b->value.t || a->value.n != b->value.n) return false;
    if (a->value.t >= WL_T_TEXT)
      return memcmp(wl_bytes(a->value), wl_bytes(b->value), a->value.n) == 0;
    return a->value.v == b->value.v;
  }
  if (a->kind == WL_B_CALL && sqlite3_stricmp(a->text, b->text) != 0) return false;
  for (int k = 0; k < a->n_list; k++)
    if (!wl_bexpr_same(a->list[k], b->list[k])) return false;
  return wl_bexpr_same(a->a, b->a) && wl_bexpr_same(a->b, b->b);
}

/* ---- the invariants of bound trees */

/* The check visits a shared node once for each path to it. It stops after this many nodes. */
enum { MAX_CHECKED = 20000 };

typedef struct checker {
  const wl_query *q;
  bool rewritten;
  int *n_left;
} checker;

static bool check_query(const wl_query *q, bool rewritten, int *n_left);

static bool check_expr(const checker *c, const wl_bexpr *e) {
  const wl_query *q = c->q;
  if (!e || --*c->n_left < 0) return true;
  bool ok = e->id >= 0 && e->id < q->n_exprs;
  switch (e->kind) {
  case WL_B_COLUMN:
    return ok && e->slot < q->n_cols && q->col_nodes[e->slot] == e &&
           q->cols[e->slot].source == e->source && q->cols[e->slot].column == e->index &&
           e->source < q->n_sources;
  case WL_B_AGG: return ok && e->index < q->n_aggs;
  case WL_B_OUTER: return ok && !c->rewritten && e->a;
  case WL_B_SUBQUERY: ok = ok && !c->rewritten && check_query(e->query, false, c->n_left); break;
  case WL_B_SUB:
  case WL_B_INSUB: ok = ok && c->rewritten && e->index < q->n_subs; break;
  case WL_B_FOUND: ok = ok && c->rewritten && e->source < q->n_sources; break;
  default: break;
  }
  for (int k = 0; k < e->n_list && ok; k++) ok = check_expr(c, e->list[k]);
  return ok && check_expr(c, e->a) && check_expr(c, e->b);
}

static bool check_source(const checker *c, const wl_bsource *s) {
  const wl_derived *d = s->derived;
  bool from_rewrite = wl_how_finds_one(s->how);
  bool ok = c->rewritten ? !s->inner_on : !from_rewrite && !s->single;
  bool barrier = false;
  for (const wl_bsource *t = s; t < c->q->sources + c->q->n_sources; t++)
    barrier |= wl_how_keeps_unmatched(t->how);
  if (c->rewritten && s->how == WL_HOW_INNER && s->on) ok = ok && barrier;
  if (c->rewritten && s->how == WL_HOW_RIGHT) ok = ok && s > c->q->sources + 1;
  if (d && c->rewritten) ok = ok && d->id >= 0 && !d->ops;
  if (d && !c->rewritten) ok = ok && d->id < 0;
  for (int k = 0; d && k < d->n_arms && ok; k++)
    ok = check_query(d->arms[k], c->rewritten, c->n_left);
  return ok && check_expr(c, s->on) && check_expr(c, s->inner_on);
}

static bool check_query(const wl_query *q, bool rewritten, int *n_left) {
  checker c = {q, rewritten, n_left};
  if (--*n_left < 0) return true;
  bool ok = q->n_sources > 0 && (rewritten ? q->n_outers == 0 : q->n_subs == 0);
  for (int k = 0; k < q->n_sources && ok; k++) ok = check_source(&c, &q->sources[k]);
  for (int k = 0; k < q->n_subs && ok; k++) ok = check_query(q->subs[k].query, true, n_left);
  for (int k = 0; k < q->n_results && ok; k++) ok = check_expr(&c, q->results[k]);
  for (int k = 0; k < q->n_groups && ok; k++) ok = check_expr(&c, q->groups[k]);
  for (int k = 0; k < q->n_order && ok; k++) ok = check_expr(&c, q->order[k].expr);
  for (int k = 0; k < q->n_aggs && ok; k++)
    ok = check_expr(&c, q->aggs[k].arg) && check_expr(&c, q->aggs[k].separator);
  return ok && check_expr(&c, q->where) && check_expr(&c, q->having) && check_expr(&c, q->limit) &&
         check_expr(&c, q->offset);
}

bool wl_query_is_bound(const wl_query *q) {
  int n_left = MAX_CHECKED;
  return check_query(q, false, &n_left);
}

bool wl_query_is_rewritten(const wl_query *q) {
  int n_left = MAX_CHECKED;
  return check_query(q, true, &n_left);
}
