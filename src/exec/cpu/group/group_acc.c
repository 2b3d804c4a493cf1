/*
** Adding vectors to the accumulators of groups, joining groups and finishing them; see
** group_impl.h. The states are those of value/aggregates.h. The loops here do what wl_agg_add()
** does, for vectors of plain numbers.
*/
#include "exec/cpu/group/group_impl.h"
#include <math.h>
#include <string.h>

/* ---- sums of reals */

/*
** Splits a vector into digits, like wl_digits(). Returns false if some value does not fit. Adding
** the magic number leaves the digit in the low bits of the sum, so subtracting the bit patterns
** gives it as an integer.
*/
static WL_CLONES int split_digits(const double *v, int n, double unit, wl_i64 *restrict d0,
                                  wl_i64 *restrict d1, wl_i64 *restrict d2, wl_i64 *last) {
  const double down = 1.0 / 1099511627776.0, shift = 6755399441055744.0;
  const double u1 = unit * down, u2 = u1 * down, most = unit * 1099511627776.0;
  const double m0 = shift * unit, m1 = shift * u1, m2 = shift * u2;
  const wl_i64 b0 = (wl_i64)wl_f64_bits(m0), b1 = (wl_i64)wl_f64_bits(m1),
               b2 = (wl_i64)wl_f64_bits(m2);
  wl_i64 bad = 0, any = 0;
  for (int i = 0; i < n; i++) {
    double x = v[i], s0 = x + m0, r = x - (s0 - m0), s1 = r + m1;
    r = r - (s1 - m1);
    double s2 = r + m2;
    r = r - (s2 - m2);
    d0[i] = (wl_i64)wl_f64_bits(s0) - b0;
    d1[i] = (wl_i64)wl_f64_bits(s1) - b1;
    d2[i] = (wl_i64)wl_f64_bits(s2) - b2;
    any |= d2[i];
    bad |= !(fabs(x) < most) | (r != 0.0);
  }
  *last = any;
  return !bad;
}

static wl_status add_reals(wl_groups *g, int k, const wl_u32 *groups, const wl_vec *v, int n) {
  const wl_grouping *p = g->plan;
  const wl_agg_how *h = &p->accs[k];
  wl_u8 *base = g->table.entries + p->places[k];
  const size_t width = p->width;
  const double *x = (const double *)v->v;
  wl_i64 *d0 = (wl_i64 *)g->scratch, *d1 = d0 + WL_VECTOR, *d2 = d1 + WL_VECTOR, last;
  /* The value of a NULL is zero, which adds nothing. */
  if (!split_digits(x, n, h->unit, d0, d1, d2, &last)) {
    wl_status rc = WL_OK;
    for (int i = 0; i < n && !rc; i++) {
      if (v->t && !v->t[i]) continue;
      wl_reals_state *s = (wl_reals_state *)(void *)(base + groups[i] * width);
      s->count++;
      rc = wl_reals_add(h, &s->reals, x[i], s->count, &g->arena);
    }
    return rc;
  }
  for (int i = 0; i < n; i++) {
    wl_reals_state *s = (wl_reals_state *)(void *)(base + groups[i] * width);
    s->reals.digit[0] += d0[i];
    s->reals.digit[1] += d1[i];
  }
  if (last)
    for (int i = 0; i < n; i++)
      ((wl_reals_state *)(void *)(base + groups[i] * width))->reals.digit[2] += d2[i];
  for (int i = 0; i < n; i++) {
    wl_reals_state *s = (wl_reals_state *)(void *)(base + groups[i] * width);
    s->count += v->t ? v->t[i] : 1;
    if ((s->count & (WL_AGG_MOVE_AFTER - 1)) == 0 && s->count &&
        wl_reals_move(h, &s->reals, &g->arena))
      return WL_NOMEM;
  }
  return WL_OK;
}

/* ---- min and max */

static void add_best(wl_groups *g, int k, const wl_u32 *groups, const wl_vec *v, int n) {
  const wl_grouping *p = g->plan;
  wl_u8 *base = g->table.entries + p->places[k];
  wl_u64 *ranks = g->scratch;
  int min = p->accs[k].flags & WL_AGG_MIN;
  if (p->accs[k].flags & WL_AGG_REAL)
    for (int i = 0; i < n; i++) ranks[i] = wl_agg_rank(min, 1, v->v[i]);
  else
    for (int i = 0; i < n; i++) ranks[i] = wl_agg_rank(min, 0, v->v[i]);
  if (v->t)
    for (int i = 0; i < n; i++) ranks[i] = v->t[i] ? ranks[i] : 0;
  for (int i = 0; i < n; i++) {
    wl_best_state *s = (wl_best_state *)(void *)(base + groups[i] * p->width);
    s->best = ranks[i] > s->best ? ranks[i] : s->best;
    s->count += v->t ? v->t[i] : 1;
  }
}

/* The rows may come in any order, as with wl_agg_merge_ROWED(). */
static void add_rowed(wl_groups *g, int k, const wl_u32 *groups, const wl_vec *v,
                      const wl_i64 *rows, int n) {
  const wl_grouping *p = g->plan;
  wl_u8 *base = g->table.entries + p->places[k];
  int min = p->accs[k].flags & WL_AGG_MIN, real = p->accs[k].flags & WL_AGG_REAL;
  for (int i = 0; i < n; i++) {
    wl_rowed_state *s = (wl_rowed_state *)(void *)(base + groups[i] * p->width);
    if (v->t && !v->t[i]) {
      if (!s->count && rows[i] > s->row) s->row = rows[i];
      continue;
    }
    wl_u64 r = wl_agg_rank(min, real, v->v[i]);
    if (r > s->best || !s->count || (r == s->best && rows[i] < s->row)) {
      s->best = r;
      s->bits = v->v[i];
      s->row = rows[i];
    }
    s->count++;
  }
}

/* ---- any state */

wl_status wl_group_add_values(wl_groups *g, int k, const wl_u32 *groups, const wl_vec *v,
                              const wl_vec *b, const wl_i64 *rows, int n, wl_u64 max_text) {
  const wl_grouping *p = g->plan;
  const wl_agg_how *h = &p->accs[k];
  wl_u8 *base = g->table.entries + p->places[k];
  wl_agg_in in = {.b = wl_null(), .max_text = max_text, .arena = &g->arena};
  wl_status rc = WL_OK;
  for (int i = 0; i < n && !rc; i++) {
    in.v = wl_vec_get(v, i);
    if (b) in.b = wl_vec_get(b, i);
    in.row = rows[i];
    rc = wl_agg_add(h, base + (groups ? groups[i] * p->width : 0), &in);
  }
  return rc;
}

wl_status wl_groups_add(wl_groups *g, int k, const wl_u32 *groups, const wl_vec *v, const wl_vec *b,
                        const wl_i64 *rows, int n, wl_u64 max_text) {
  const wl_grouping *p = g->plan;
  const wl_acc *acc = &p->p->accs[k];
  if (acc->op == WL_OP__AggDistinct) return wl_group_set_add(g, acc->set, v, rows, n);
  if (p->p->n_keys == 0) return wl_group_add_one(g, k, v, b, rows, n, max_text);
  if (p->scatter && !g->adding) {
    wl_group_scatter_add(g, k, v, n);
    return WL_OK;
  }
  wl_u8 *base = g->table.entries + p->places[k];
  const size_t width = p->width;
  bool plain = v->stride && v->type <= WL_R_REAL;
  if (acc->op == WL_OP__AggRows) {
    for (int i = 0; i < n; i++) ++*(wl_i64 *)(void *)(base + groups[i] * width);
    return WL_OK;
  }
  switch (p->accs[k].state) {
  case WL_STATE_COUNT:
    if (!v->stride || v->type == WL_R_ANY || !v->t) break;
    for (int i = 0; i < n; i++) *(wl_i64 *)(void *)(base + groups[i] * width) += v->t[i];
    return WL_OK;
  case WL_STATE_SUM:
    if (!plain) break;
    for (int i = 0; i < n; i++) {
      wl_sum_state *s = (wl_sum_state *)(void *)(base + groups[i] * width);
      s->sum += (wl_i64)v->v[i]; /* the value of a NULL is zero */
      s->count += v->t ? v->t[i] : 1;
    }
    return WL_OK;
  case WL_STATE_REALS:
    if (!plain) break;
    return add_reals(g, k, groups, v, n);
  case WL_STATE_BEST:
    if (!plain) break;
    add_best(g, k, groups, v, n);
    return WL_OK;
  case WL_STATE_ROWED:
    if (!plain) break;
    add_rowed(g, k, groups, v, rows, n);
    return WL_OK;
  default: break;
  }
  return wl_group_add_values(g, k, groups, v, b, rows, n, max_text);
}

/* ---- joining and finishing */

wl_status wl_group_join(const wl_grouping *g, wl_arena *arena, wl_u8 *into, const wl_u8 *from) {
  /* The values of the earliest row represent the group. */
  if (g->has_first) {
    wl_u8 *source = (wl_u8 *)(size_t)from;
    if (*entry_first(g, source) < *entry_first(g, into))
      memcpy(into, from, g->has_signs ? g->signs_at + 8 : g->first_at + 8);
  }
  wl_status rc = WL_OK;
  for (int k = 0; k < g->n_accs && !rc; k++)
    rc = wl_agg_merge(&g->accs[k], into + g->places[k], from + g->places[k], arena);
  return rc;
}

wl_status wl_group_final(const wl_grouping *g, const wl_agg *agg, wl_u8 *e, bool in_order,
                         wl_val *out, wl_error *err) {
  in_order |= g->p->accs[agg->acc].op == WL_OP__AggDistinct; /* added in row order */
  return wl_agg_finish(&g->accs[agg->acc], entry_state(g, e, agg->acc), agg->final, in_order, out,
                       err);
}
