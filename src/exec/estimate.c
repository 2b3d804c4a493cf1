/*
** Sizes of a query before anything is loaded; see query.h. The costs are computed from them.
*/
#include "exec/query.h"

wl_i64 wl_query_rows(wl_store *store, const wl_query *q, bool *exact, int *n_missing) {
  wl_i64 n = 0;
  wl_error ignored;
  wl_table *t;
  for (int s = 0; s < q->n_sources; s++) {
    const wl_bsource *src = &q->sources[s];
    for (int k = 0; src->derived && k < src->derived->n_arms; k++)
      n += wl_query_rows(store, src->derived->arms[k], exact, n_missing);
    if (!src->table || wl_store_table(store, src->schema, src->table, &t, &ignored)) continue;
    bool sure;
    n += wl_source_estimate(t->source, &sure);
    *exact &= sure;
    /* Loading from segments costs little compared with the rest. */
    for (int k = 0; k < q->n_cols && !t->source->in_segments; k++)
      if (q->cols[k].source == s)
        *n_missing += !sure || !wl_source_columns(t->source, &q->cols[k].column, 1, NULL);
  }
  for (int k = 0; k < q->n_subs; k++) n += wl_query_rows(store, q->subs[k].query, exact, n_missing);
  return n;
}

/* Whether some conjunct is an equality that joins source s with another source. */
static bool linked(const wl_bexpr *e, int s) {
  if (!e) return false;
  if (e->kind == WL_B_AND) return linked(e->a, s) || linked(e->b, s);
  if (!((e->kind == WL_B_COMPARE && e->op == WL_OP_EQ) || e->kind == WL_B_IS)) return false;
  wl_u64 a = wl_bexpr_sources(e->a), b = wl_bexpr_sources(e->b), me = 1ULL << s;
  return (a == me && b && !(b & me)) || (b == me && a && !(a & me));
}

double wl_query_pairs(wl_store *store, const wl_query *q) {
  double pairs = 0, product = 1, most = 1;
  bool loose = false;
  wl_table *t;
  wl_error ignored;
  for (int s = 0; s < q->n_sources; s++) {
    const wl_bsource *src = &q->sources[s];
    double n = src->derived ? 1000 : 1;
    bool exact;
    for (int k = 0; src->derived && k < src->derived->n_arms; k++)
      pairs += wl_query_pairs(store, src->derived->arms[k]);
    if (src->table && !wl_store_table(store, src->schema, src->table, &t, &ignored))
      n = (double)wl_source_estimate(t->source, &exact);
    if (q->n_sources > 1 && !linked(q->where, s) && !linked(src->on, s)) {
      product *= n < 1 ? 1 : n;
      loose |= s > 0;
    } else if (n > most) {
      most = n;
    }
  }
  for (int k = 0; k < q->n_subs; k++) pairs += wl_query_pairs(store, q->subs[k].query);
  return pairs + (loose ? product * most : 0);
}

wl_i64 wl_query_rows_of(wl_store *store, const wl_query *q, const char *name) {
  wl_error ignored;
  wl_table *t;
  bool exact;
  wl_i64 n = -1;
  for (int s = 0; s < q->n_sources && n < 0; s++) {
    const wl_bsource *src = &q->sources[s];
    if (src->table && src->name && sqlite3_stricmp(src->name, name) == 0 &&
        !wl_store_table(store, src->schema, src->table, &t, &ignored))
      return wl_source_estimate(t->source, &exact);
    for (int k = 0; src->derived && k < src->derived->n_arms && n < 0; k++)
      n = wl_query_rows_of(store, src->derived->arms[k], name);
  }
  for (int k = 0; k < q->n_subs && n < 0; k++) n = wl_query_rows_of(store, q->subs[k].query, name);
  return n;
}
