/*
** Adding vectors to the one group of a query without GROUP BY; see group_impl.h. A vector is summed
** up first, and then the state is changed once.
*/
#include "exec/cpu/group/group_impl.h"

/* ---- loops over valid rows */

static WL_CLONES wl_i64 sum_i64(const wl_i64 *a, int n) {
  wl_i64 s = 0;
  for (int i = 0; i < n; i++) s += a[i];
  return s;
}
static WL_CLONES wl_i64 sum_u8(const wl_u8 *a, int n) {
  wl_i64 s = 0;
  for (int i = 0; i < n; i++) s += a[i];
  return s;
}
static WL_CLONES wl_i64 least_i64(const wl_i64 *a, int n) {
  wl_i64 m = a[0];
  for (int i = 1; i < n; i++) m = a[i] < m ? a[i] : m;
  return m;
}
static WL_CLONES wl_i64 most_i64(const wl_i64 *a, int n) {
  wl_i64 m = a[0];
  for (int i = 1; i < n; i++) m = a[i] > m ? a[i] : m;
  return m;
}

/* The least (or, times -1, the largest) of n reals. Several lanes, because the compiler does not
** reorder comparisons of reals. */
static WL_CLONES double least_f64(const double *a, int n, double sign) {
  enum { LANES = 8 };
  double m[LANES];
  int i = 0;
  for (int j = 0; j < LANES; j++) m[j] = a[0] * sign;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; j++) m[j] = a[i + j] * sign < m[j] ? a[i + j] * sign : m[j];
  for (; i < n; i++) m[0] = a[i] * sign < m[0] ? a[i] * sign : m[0];
  for (int j = 1; j < LANES; j++) m[0] = m[j] < m[0] ? m[j] : m[0];
  return m[0] * sign;
}

/* The sum, and the sum of the positive values, of integers below 2^52 in size. Returns false if
** some are larger. */
static WL_CLONES bool sum_small(const wl_i64 *a, int n, wl_i64 *sum, wl_i64 *positive) {
  wl_u64 s = 0, p = 0; /* they may overflow if some are larger */
  wl_i64 all = 0;
  for (int i = 0; i < n; i++) {
    s += (wl_u64)a[i];
    p += (wl_u64)(a[i] & ~(a[i] >> 63));
    all |= a[i] ^ a[i] >> 63;
  }
  *sum = (wl_i64)s;
  *positive = (wl_i64)p;
  return all >> 52 == 0;
}

/* ---- states */

/* The number of values, which are those that are not NULL. */
static wl_i64 count_of(const wl_vec *v, int n) {
  return v->t ? sum_u8(v->t, n) : n;
}

/* Returns the values that are not NULL, moved together in room if there are NULLs. */
static const wl_u64 *packed(const wl_vec *v, int n, wl_u64 *room, int *n_out) {
  *n_out = n;
  if (!v->t) return v->v;
  int k = 0;
  for (int i = 0; i < n; i++) {
    room[k] = v->v[i];
    k += v->t[i];
  }
  *n_out = k;
  return room;
}

static void add_ints(wl_ints *s, const wl_i64 *v, int n) {
  wl_i64 sum, positive;
  if (!sum_small(v, n, &sum, &positive)) {
    for (int i = 0; i < n; i++) wl_ints_add(s, v[i], true);
    return;
  }
  if (positive && sum != positive) { /* both signs: the extremes may be inside the vector */
    wl_i64 at = 0, low = 0, high = 0;
    for (int i = 0; i < n; i++) {
      at += v[i];
      low = at < low ? at : low;
      high = at > high ? at : high;
    }
    if (s->sum + low < s->low) s->low = s->sum + low;
    if (s->sum + high > s->high) s->high = s->sum + high;
  }
  s->sum += sum;
  s->positive += positive;
  if (s->sum < s->low) s->low = s->sum;
  if (s->sum > s->high) s->high = s->sum;
}

static wl_u64 best_of(const wl_agg_how *h, const wl_u64 *v, int n) {
  bool min = h->flags & WL_AGG_MIN;
  if (h->flags & WL_AGG_REAL) return wl_f64_bits(least_f64((const double *)v, n, min ? 1 : -1));
  return (wl_u64)(min ? least_i64((const wl_i64 *)v, n) : most_i64((const wl_i64 *)v, n));
}

static void add_rowed(const wl_agg_how *h, wl_rowed_state *s, const wl_vec *v, const wl_i64 *rows,
                      int n, wl_u64 *room) {
  int k, min = h->flags & WL_AGG_MIN, real = h->flags & WL_AGG_REAL;
  const wl_u64 *values = packed(v, n, room, &k);
  if (k == 0) {
    if (!s->count && n) s->row = rows[n - 1];
    return;
  }
  wl_u64 r = wl_agg_rank(min, real, best_of(h, values, k));
  if (r > s->best || !s->count) { /* the first row with a value of this rank */
    int i = 0;
    while ((v->t && !v->t[i]) || wl_agg_rank(min, real, v->v[i]) != r) i++;
    s->best = r;
    s->bits = v->v[i];
    s->row = rows[i];
  }
  s->count += k;
}

wl_status wl_group_add_one(wl_groups *g, int k, const wl_vec *v, const wl_vec *b,
                           const wl_i64 *rows, int n, wl_u64 max_text) {
  const wl_agg_how *h = &g->plan->accs[k];
  void *state = entry_state(g->plan, g->table.entries, k);
  wl_vec filled = *v;
  if (h->flags & WL_AGG_ROWS) {
    ((wl_count_state *)state)->count += n;
    return WL_OK;
  }
  if (!v->stride && v->type <= WL_R_REAL && !v->t) { /* a constant: as many values as rows */
    filled.v = g->scratch + 2 * WL_VECTOR;
    filled.stride = 1;
    for (int i = 0; i < n; i++) g->scratch[2 * WL_VECTOR + i] = v->v[0];
    v = &filled;
  }
  if (h->state == WL_STATE_COUNT && v->stride && v->type != WL_R_ANY) {
    ((wl_count_state *)state)->count += count_of(v, n);
    return WL_OK;
  }
  if (!v->stride || v->type > WL_R_REAL)
    return wl_group_add_values(g, k, NULL, v, b, rows, n, max_text);
  switch (h->state) {
  case WL_STATE_SUM: {
    wl_sum_state *s = state;
    s->count += count_of(v, n);
    s->sum += sum_i64((const wl_i64 *)v->v, n); /* the value of a NULL is zero */
    return WL_OK;
  }
  case WL_STATE_WIDE: {
    wl_wide_state *s = state;
    s->count += count_of(v, n);
    add_ints(&s->ints, (const wl_i64 *)v->v, n);
    return WL_OK;
  }
  case WL_STATE_REALS: {
    wl_reals_state *s = state;
    if (wl_reals_more(&s->reals, &g->arena)) return WL_NOMEM;
    s->count += count_of(v, n);
    wl_fsum_vector(s->reals.more, (const double *)v->v, n);
    return WL_OK;
  }
  case WL_STATE_BEST: {
    wl_best_state *s = state;
    int m;
    const wl_u64 *values = packed(v, n, g->scratch, &m);
    if (m == 0) return WL_OK;
    wl_u64 r = wl_agg_rank(h->flags & WL_AGG_MIN, h->flags & WL_AGG_REAL, best_of(h, values, m));
    if (r > s->best) s->best = r;
    s->count += m;
    return WL_OK;
  }
  case WL_STATE_ROWED: add_rowed(h, state, v, rows, n, g->scratch); return WL_OK;
  default: return wl_group_add_values(g, k, NULL, v, b, rows, n, max_text);
  }
}
