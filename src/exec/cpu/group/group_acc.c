/*
** The states of accumulators in groups: adding vectors to them, joining them, finishing them. See
** group_impl.h.
*/
#include "exec/cpu/group/group_impl.h"
#include "base/mem.h"
#include "value/digits.h"
#include <math.h>
#include <string.h>

enum { MOVE_AFTER = 1 << 20 }; /* the digits of this many values always fit in 63 bits */

static bool is_min(wl_u16 op) {
  return op == WL_OP__AggMinI || op == WL_OP__AggMinF || op == WL_OP__AggMinV;
}
static bool is_real(wl_u16 op) {
  return op == WL_OP__AggMinF || op == WL_OP__AggMaxF;
}
/* A value of min or max as a word, so that the largest word wins. */
static wl_u64 rank(wl_u16 op, wl_u64 v) {
  wl_u64 k = is_real(op) ? wl_word_of_real(wl_as_f64(v)) : wl_word_of_int((wl_i64)v);
  return is_min(op) ? ~k : k;
}
static wl_val unrank(wl_u16 op, wl_u64 k) {
  if (is_min(op)) k = ~k;
  return is_real(op) ? wl_real(wl_real_of_word(k)) : wl_int(wl_int_of_word(k));
}

/* ---- reals: digits, and a full sum for what they do not hold */

static wl_status more(wl_arena *arena, wl_fsum **s) {
  if (*s) return WL_OK;
  *s = wl_arena_alloc(arena, sizeof **s);
  return *s ? WL_OK : WL_NOMEM;
}

/* Adds the digits to the full sum and clears them. */
static wl_status move_digits(const wl_grouping *g, wl_arena *arena, int k, wl_i64 *digit,
                             wl_fsum **s) {
  if (more(arena, s)) return WL_NOMEM;
  for (int j = 0; j < 3; j++) {
    wl_fsum_add_scaled(*s, digit[j], g->anchors[k] - WL_FSUM_DIGIT * j);
    digit[j] = 0;
  }
  return WL_OK;
}

static wl_status add_real(const wl_grouping *g, wl_arena *arena, int k, wl_i64 *digits, wl_fsum **s,
                          wl_i64 count, double v) {
  wl_i64 digit[3];
  if (wl_digits(v, g->units[k], digit)) {
    for (int j = 0; j < 3; j++) digits[j] += digit[j];
    return count % MOVE_AFTER ? WL_OK : move_digits(g, arena, k, digits, s);
  }
  if (more(arena, s)) return WL_NOMEM;
  wl_fsum_add(*s, v);
  return WL_OK;
}

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
  wl_u8 *base = g->table.entries + p->places[k];
  const size_t width = p->width;
  const double *x = (const double *)v->v;
  wl_i64 *d0 = (wl_i64 *)g->scratch, *d1 = d0 + WL_VECTOR, *d2 = d1 + WL_VECTOR, last;
  /* The value of a NULL is zero, which adds nothing. */
  if (!split_digits(x, n, p->units[k], d0, d1, d2, &last)) {
    wl_status rc = WL_OK;
    for (int i = 0; i < n && !rc; i++) {
      if (v->t && !v->t[i]) continue;
      reals_state *s = (reals_state *)(void *)(base + groups[i] * width);
      s->count++;
      rc = add_real(p, &g->arena, k, s->digit, &s->more, s->count, x[i]);
    }
    return rc;
  }
  for (int i = 0; i < n; i++) {
    reals_state *s = (reals_state *)(void *)(base + groups[i] * width);
    s->digit[0] += d0[i];
    s->digit[1] += d1[i];
  }
  if (last)
    for (int i = 0; i < n; i++)
      ((reals_state *)(void *)(base + groups[i] * width))->digit[2] += d2[i];
  for (int i = 0; i < n; i++) {
    reals_state *s = (reals_state *)(void *)(base + groups[i] * width);
    s->count += v->t ? v->t[i] : 1;
    if ((s->count & (MOVE_AFTER - 1)) == 0 && s->count &&
        move_digits(p, &g->arena, k, s->digit, &s->more))
      return WL_NOMEM;
  }
  return WL_OK;
}

/* ---- vectors of the plain kinds */

static void add_best(wl_groups *g, int k, wl_u16 op, const wl_u32 *groups, const wl_vec *v, int n) {
  const wl_grouping *p = g->plan;
  wl_u8 *base = g->table.entries + p->places[k];
  wl_u64 *ranks = g->scratch;
  if (is_real(op))
    for (int i = 0; i < n; i++) ranks[i] = wl_word_of_real(wl_as_f64(v->v[i]));
  else
    for (int i = 0; i < n; i++) ranks[i] = wl_word_of_int((wl_i64)v->v[i]);
  if (is_min(op))
    for (int i = 0; i < n; i++) ranks[i] = ~ranks[i];
  if (v->t)
    for (int i = 0; i < n; i++) ranks[i] = v->t[i] ? ranks[i] : 0;
  for (int i = 0; i < n; i++) {
    best_state *s = (best_state *)(void *)(base + groups[i] * p->width);
    s->best = ranks[i] > s->best ? ranks[i] : s->best;
    s->count += v->t ? v->t[i] : 1;
  }
}

static void add_rowed(wl_groups *g, int k, wl_u16 op, const wl_u32 *groups, const wl_vec *v,
                      const wl_i64 *rows, int n) {
  const wl_grouping *p = g->plan;
  wl_u8 *base = g->table.entries + p->places[k];
  for (int i = 0; i < n; i++) {
    rowed_state *s = (rowed_state *)(void *)(base + groups[i] * p->width);
    if (v->t && !v->t[i]) {
      if (!s->count) s->row = rows[i];
      continue;
    }
    wl_u64 r = rank(op, v->v[i]);
    if (r > s->best || !s->count) {
      s->best = r;
      s->raw = v->v[i];
      s->row = rows[i];
    }
    s->count++;
  }
}

/* ---- adding one value to any state */

static wl_status keep(wl_arena *arena, wl_val *v) {
  if (v->t < WL_T_TEXT) return WL_OK;
  char *p = wl_arena_strndup(arena, (const char *)wl_bytes(*v), v->n);
  if (!p) return WL_NOMEM;
  v->v = (wl_u64)(size_t)p;
  return WL_OK;
}

static void add_int(long_state *s, wl_i64 v) {
  s->sum += v;
  s->magnitude += v < 0 ? 0 - (wl_u64)v : (wl_u64)v;
  if (s->seen_real) return;
  if (s->sum < s->low) s->low = s->sum;
  if (s->sum > s->high) s->high = s->sum;
}

static wl_status add_extreme(const wl_acc *acc, wl_arena *arena, long_state *s, wl_val v,
                             wl_i64 row) {
  if (v.t == WL_T_NULL) {
    if (s->best.t == WL_T_NULL && row > s->best_row) s->best_row = row;
    return WL_OK;
  }
  if (s->best.t != WL_T_NULL) {
    int c = wl_cmp_val(v, s->best, acc->coll);
    if (c == 0 ? row >= s->best_row : is_min(acc->op) ? c > 0 : c < 0) return WL_OK;
  }
  s->best = v;
  s->best_row = row;
  return keep(arena, &s->best);
}

static wl_status concat(wl_arena *arena, concat_state *s, const void *bytes, wl_u64 n,
                        wl_u64 max_text) {
  if (s->n + n > max_text) return WL_TOOBIG;
  if (s->n + n > s->size || !s->text) {
    wl_u64 size = s->size * 2 > s->n + n + 16 ? s->size * 2 : s->n + n + 16;
    wl_u8 *p = wl_arena_alloc(arena, size);
    if (!p) return WL_NOMEM;
    if (s->n) memcpy(p, s->text, s->n);
    s->text = p;
    s->size = size;
  }
  if (n) memcpy(s->text + s->n, bytes, n);
  s->n += n;
  return WL_OK;
}

wl_status wl_group_add_value(const wl_grouping *g, wl_arena *arena, int k, wl_u8 *e, wl_val v,
                             wl_val separator, wl_i64 row, wl_u64 max_text) {
  const wl_acc *acc = &g->p->accs[k];
  void *state = entry_state(g, e, k);
  bool null = v.t == WL_T_NULL;
  switch (g->kinds[k]) {
  case STATE_COUNT: *(wl_i64 *)state += acc->op == WL_OP__AggRows || !null; return WL_OK;
  case STATE_SUM:
    ((sum_state *)state)->count += !null;
    ((sum_state *)state)->sum += null ? 0 : (wl_i64)v.v;
    return WL_OK;
  case STATE_REALS: {
    reals_state *s = state;
    if (null) return WL_OK;
    s->count++;
    return add_real(g, arena, k, s->digit, &s->more, s->count, wl_as_f64(v.v));
  }
  case STATE_BEST: {
    best_state *s = state;
    if (null) return WL_OK;
    wl_u64 r = rank(acc->op, v.v);
    if (r > s->best) s->best = r;
    s->count++;
    return WL_OK;
  }
  case STATE_ROWED: {
    rowed_state *s = state;
    wl_u64 r = null ? 0 : rank(acc->op, v.v);
    if (null ? !s->count : r > s->best || !s->count) {
      s->best = r;
      s->raw = null ? 0 : v.v;
      s->row = row;
    }
    s->count += !null;
    return WL_OK;
  }
  case STATE_CONCAT: {
    concat_state *s = state;
    if (null) return WL_OK;
    if (s->count++ && separator.t != WL_T_NULL) {
      wl_status rc = concat(arena, s, wl_bytes(separator), separator.n, max_text);
      if (rc) return rc;
    }
    return concat(arena, s, wl_bytes(v), v.n, max_text);
  }
  case STATE_LONG: break;
  }
  long_state *s = state;
  if (acc->op == WL_OP__AggMinV || acc->op == WL_OP__AggMaxV || acc->op == WL_OP__AggMinI ||
      acc->op == WL_OP__AggMaxI || is_real(acc->op)) {
    s->count += !null;
    return add_extreme(acc, arena, s, v, row);
  }
  if (null) return WL_OK;
  s->count++;
  if (v.t == WL_T_REAL) {
    s->seen_real = true;
    return add_real(g, arena, k, s->digits, &s->reals, ++s->n_digits, wl_as_f64(v.v));
  }
  add_int(s, (wl_i64)v.v);
  return WL_OK;
}

wl_status wl_groups_add(wl_groups *g, int k, const wl_u32 *groups, const wl_vec *v,
                        const wl_vec *separator, const wl_i64 *rows, int n, wl_u64 max_text) {
  const wl_grouping *p = g->plan;
  const wl_acc *acc = &p->p->accs[k];
  if (acc->op == WL_OP__AggDistinct) return wl_group_set_add(g, acc->set, v, rows, n);
  wl_u8 *base = g->table.entries + p->places[k];
  const size_t width = p->width;
  bool plain = v->stride && v->type <= WL_R_REAL;
  if (acc->op == WL_OP__AggRows) {
    for (int i = 0; i < n; i++) ++*(wl_i64 *)(void *)(base + groups[i] * width);
    return WL_OK;
  }
  switch (p->kinds[k]) {
  case STATE_COUNT:
    if (!v->stride || v->type == WL_R_ANY || !v->t) break;
    for (int i = 0; i < n; i++) *(wl_i64 *)(void *)(base + groups[i] * width) += v->t[i];
    return WL_OK;
  case STATE_SUM:
    if (!plain) break;
    for (int i = 0; i < n; i++) {
      sum_state *s = (sum_state *)(void *)(base + groups[i] * width);
      s->sum += (wl_i64)v->v[i]; /* the value of a NULL is zero */
      s->count += v->t ? v->t[i] : 1;
    }
    return WL_OK;
  case STATE_REALS:
    if (!plain) break;
    return add_reals(g, k, groups, v, n);
  case STATE_BEST:
    if (!plain) break;
    add_best(g, k, acc->op, groups, v, n);
    return WL_OK;
  case STATE_ROWED:
    if (!plain) break;
    add_rowed(g, k, acc->op, groups, v, rows, n);
    return WL_OK;
  default: break;
  }
  wl_status rc = WL_OK;
  for (int i = 0; i < n && !rc; i++)
    rc = wl_group_add_value(p, &g->arena, k, g->table.entries + groups[i] * width, wl_vec_get(v, i),
                            separator ? wl_vec_get(separator, i) : wl_null(), rows[i], max_text);
  return rc;
}

/* ---- joining */

static wl_status join_digits(const wl_grouping *g, wl_arena *arena, int k, wl_i64 *into,
                             const wl_i64 *from, wl_fsum **more_into, const wl_fsum *more_from) {
  const wl_i64 large = (wl_i64)1 << 61;
  bool full = false;
  for (int j = 0; j < 3; j++) {
    into[j] += from[j];
    full |= into[j] > large || into[j] < -large;
  }
  if (full && move_digits(g, arena, k, into, more_into)) return WL_NOMEM;
  if (!more_from) return WL_OK;
  if (more(arena, more_into)) return WL_NOMEM;
  wl_fsum_merge(*more_into, more_from);
  return WL_OK;
}

static wl_status join_long(const wl_grouping *g, wl_arena *arena, int k, long_state *into,
                           const long_state *from) {
  /* This assumes that the rows of from come after those of into. It is used only if they do. */
  if (!into->seen_real) {
    if (into->sum + from->low < into->low) into->low = into->sum + from->low;
    if (into->sum + from->high > into->high) into->high = into->sum + from->high;
  }
  into->count += from->count;
  into->sum += from->sum;
  into->magnitude += from->magnitude;
  into->seen_real |= from->seen_real;
  if (join_digits(g, arena, k, into->digits, from->digits, &into->reals, from->reals))
    return WL_NOMEM;
  const wl_acc *acc = &g->p->accs[k];
  if (acc->op < WL_OP__AggMinI) return WL_OK;
  if (from->best.t == WL_T_NULL) {
    if (into->best.t == WL_T_NULL && from->best_row > into->best_row)
      into->best_row = from->best_row;
    return WL_OK;
  }
  if (into->best.t != WL_T_NULL) {
    int c = wl_cmp_val(from->best, into->best, acc->coll);
    if (c == 0 ? from->best_row >= into->best_row : is_min(acc->op) ? c > 0 : c < 0) return WL_OK;
  }
  into->best = from->best; /* the worker that found it owns its text */
  into->best_row = from->best_row;
  return WL_OK;
}

static void join_rowed(rowed_state *into, const rowed_state *from) {
  bool take = from->count == 0           ? into->count == 0 && from->row > into->row
              : into->count == 0         ? true
              : from->best != into->best ? from->best > into->best
                                         : from->row < into->row;
  if (take) {
    into->best = from->best;
    into->raw = from->raw;
    into->row = from->row;
  }
  into->count += from->count;
}

wl_status wl_group_join(const wl_grouping *g, wl_arena *arena, wl_u8 *into, const wl_u8 *from) {
  /* The values of the earliest row represent the group. */
  if (g->has_first) {
    wl_u8 *source = (wl_u8 *)(size_t)from;
    if (*entry_first(g, source) < *entry_first(g, into))
      memcpy(into, from, g->has_signs ? g->signs_at + 8 : g->first_at + 8);
  }
  for (int k = 0; k < g->n_accs; k++) {
    void *a = into + g->places[k];
    const void *b = from + g->places[k];
    wl_status rc = WL_OK;
    switch (g->kinds[k]) {
    case STATE_COUNT: *(wl_i64 *)a += *(const wl_i64 *)b; break;
    case STATE_SUM:
      ((sum_state *)a)->count += ((const sum_state *)b)->count;
      ((sum_state *)a)->sum += ((const sum_state *)b)->sum;
      break;
    case STATE_REALS: {
      reals_state *x = a;
      const reals_state *y = b;
      x->count += y->count;
      rc = join_digits(g, arena, k, x->digit, y->digit, &x->more, y->more);
      break;
    }
    case STATE_BEST: {
      best_state *x = a;
      const best_state *y = b;
      if (y->best > x->best) x->best = y->best;
      x->count += y->count;
      break;
    }
    case STATE_ROWED: join_rowed(a, b); break;
    case STATE_CONCAT: break; /* never joined: there is one worker with one table */
    case STATE_LONG: rc = join_long(g, arena, k, a, b); break;
    }
    if (rc) return rc;
  }
  return WL_OK;
}

/* ---- finishing */

/* The sum of the digits, rounded once. */
static double round_digits(const wl_grouping *g, int k, const wl_i64 *d, const wl_fsum *more_of) {
  const wl_i64 small = (wl_i64)1 << 46;
  if (!more_of && d[0] < small && d[0] > -small) {
    const __int128 step = (__int128)1 << WL_FSUM_DIGIT;
    __int128 v = (d[0] * step + d[1]) * step + d[2];
    return ldexp((double)v, g->anchors[k] - 2 * WL_FSUM_DIGIT);
  }
  wl_fsum all = {0};
  if (more_of) all = *more_of;
  for (int j = 0; j < 3; j++) wl_fsum_add_scaled(&all, d[j], g->anchors[k] - WL_FSUM_DIGIT * j);
  return wl_fsum_round(&all);
}

static wl_status final_long(const wl_grouping *g, const wl_agg *agg, const long_state *s,
                            bool in_order, wl_val *out, wl_error *err) {
  wl_acc_state state = {.count = s->count, .sum = s->sum, .seen_real = s->seen_real};
  state.best = s->best;
  if (s->reals) state.reals = *s->reals;
  for (int j = 0; j < 3 && s->seen_real; j++)
    wl_fsum_add_scaled(&state.reals, s->digits[j], g->anchors[agg->acc] - WL_FSUM_DIGIT * j);
  if (in_order) {
    state.low = s->low;
    state.high = s->high;
  }
  return wl_acc_final(g->p, agg, &state, out, err);
}

wl_status wl_group_final(const wl_grouping *g, const wl_agg *agg, wl_u8 *e, bool in_order,
                         wl_val *out, wl_error *err) {
  int k = agg->acc;
  void *state = entry_state(g, e, k);
  wl_i64 count = *(wl_i64 *)state;
  if (agg->final == WL_AGG_COUNT) {
    *out = wl_int(count);
    return WL_OK;
  }
  *out = wl_null();
  double sum = 0;
  switch (g->kinds[k]) {
  case STATE_COUNT: return WL_OK;
  case STATE_BEST:
    if (count) *out = unrank(g->p->accs[k].op, ((best_state *)state)->best);
    return WL_OK;
  case STATE_ROWED:
    if (count)
      *out = wl_val_make(is_real(g->p->accs[k].op) ? WL_T_REAL : WL_T_INT,
                         ((rowed_state *)state)->raw, 0);
    return WL_OK;
  case STATE_CONCAT:
    if (count) *out = wl_text(((concat_state *)state)->text, (wl_u32)((concat_state *)state)->n);
    return WL_OK;
  case STATE_LONG:
    in_order |= g->p->accs[k].op == WL_OP__AggDistinct; /* added in row order */
    return final_long(g, agg, state, in_order, out, err);
  case STATE_SUM:
    if (agg->final == WL_AGG_SUM) {
      if (count) *out = wl_int(((sum_state *)state)->sum);
      return WL_OK;
    }
    sum = (double)((sum_state *)state)->sum;
    break;
  case STATE_REALS:
    sum = count ? round_digits(g, k, ((reals_state *)state)->digit, ((reals_state *)state)->more)
                : 0.0;
    break;
  }
  if (agg->final == WL_AGG_TOTAL)
    *out = wl_real(count ? sum : 0.0);
  else if (count)
    *out = wl_real(agg->final == WL_AGG_AVG ? sum / (double)count : sum);
  return WL_OK;
}
