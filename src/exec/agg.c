/*
** Accumulators; see agg.h. They are joined in row order, so that overflow and ties are the same as
** in SQLite.
*/
#include "exec/agg.h"
#include "base/mem.h"
#include "base/sqlite.h"
#include <string.h>

void wl_acc_reset(wl_acc_state *s) {
  wl_mem_free(s->copy);
  memset(s, 0, sizeof *s);
}

wl_status wl_acc_best(wl_acc_state *s, wl_val v) {
  if (v.t >= WL_T_TEXT) {
    if (v.n > s->n_copy || !s->copy) {
      wl_u8 *p = wl_mem_alloc((size_t)v.n * 2 + 16);
      if (!p) return WL_NOMEM;
      wl_mem_free(s->copy);
      s->copy = p;
      s->n_copy = v.n * 2 + 16;
    }
    if (v.n) memcpy(s->copy, wl_bytes(v), v.n);
    v.v = (wl_u64)(size_t)s->copy;
  }
  s->best = v;
  return WL_OK;
}

bool wl_acc_better(wl_u16 op, const wl_acc_state *s, wl_val v, int coll) {
  if (v.t == WL_T_NULL) return false;
  if (s->best.t == WL_T_NULL) return true;
  int c = wl_cmp_val(v, s->best, coll);
  bool min = op == WL_OP__AggMinI || op == WL_OP__AggMinF || op == WL_OP__AggMinV;
  return min ? c < 0 : c > 0;
}

wl_status wl_acc_join(const wl_acc *acc, wl_acc_state *into, wl_acc_state *from) {
  if (from->unordered || into->unordered) {
    into->unordered = true;
    into->low += from->low;
    into->high += from->high;
  } else if (!into->seen_real) {
    if (into->sum + from->low < into->low) into->low = into->sum + from->low;
    if (into->sum + from->high > into->high) into->high = into->sum + from->high;
  }
  into->sum += from->sum;
  into->count += from->count;
  into->seen_real |= from->seen_real;
  if (acc->op == WL_OP__AggSumF || acc->op == WL_OP__AggSumV)
    wl_fsum_merge(&into->reals, &from->reals);
  return wl_acc_better(acc->op, into, from->best, acc->coll) ? wl_acc_best(into, from->best)
                                                             : WL_OK;
}

static double real_sum(const wl_acc_state *s) {
  wl_fsum all = s->reals;
  wl_fsum_add_i128(&all, s->sum);
  return wl_fsum_round(&all);
}

wl_status wl_acc_final(const wl_program *p, const wl_agg *agg, const wl_acc_state *s, wl_val *out,
                       wl_error *err) {
  (void)p;
  *out = wl_null();
  switch (agg->final) {
  case WL_AGG_COUNT: *out = wl_int(s->count); return WL_OK;
  case WL_AGG_MINMAX:
  case WL_AGG_CONCAT: *out = s->best; return WL_OK;
  case WL_AGG_TOTAL: *out = wl_real(s->count ? real_sum(s) : 0.0); return WL_OK;
  case WL_AGG_AVG:
    if (s->count) *out = wl_real(real_sum(s) / (double)s->count);
    return WL_OK;
  case WL_AGG_SUM: break;
  }
  if (!s->count) return WL_OK;
  bool over = s->low < WL_I64_MIN || s->high > WL_I64_MAX;
  if (over && s->unordered)
    return wl_not_taken(err, "sum() may overflow, depending on the order of the join's rows");
  /* Since 3.43 a REAL that comes after the overflow makes the sum REAL instead. */
  if (over && s->seen_real && sqlite3_libversion_number() >= 3043000) over = false;
  if (over) return wl_fail(err, WL_ERROR, "integer overflow");
  *out = s->seen_real ? wl_real(real_sum(s)) : wl_int((wl_i64)s->sum);
  return WL_OK;
}
