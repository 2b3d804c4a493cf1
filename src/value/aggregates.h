/*
** Aggregates: the state of each kind of accumulator, and how one value is added to it, how two
** states are merged, and how the result is computed. aggregates.def lists them. Each is written
** here once, for one group and for many, and also for the values of DISTINCT aggregates.
**
** The first part compiles for a device too. A device adds values by atomics to words of its own,
** but it makes codes, digits and limbs of them with these functions.
**
** Invariants:
** 1. A state of all zeros has seen no rows. Each state begins with its count of values.
** 2. Integers are added exactly, in 128 bits, and reals exactly, so the order of rows and merges
**    is not visible in a sum. Results that do depend on the order of rows (which of several equal
**    values is kept) are decided by row number.
** 3. low and high of wl_ints are the smallest and largest prefix sums of the integers before the
**    first REAL, including the empty prefix. They are valid only if one worker added all rows in
**    order. For every order of rows, all prefix sums are between sum - positive and positive.
** 4. The only pointers in a state are to memory of the arena that was passed with the values.
*/
#ifndef WL_AGGREGATES_H
#define WL_AGGREGATES_H

#include "value/keys.h"
#include "value/sum/digits.h"
#include "value/kinds.h"
#include "value/value.h"

/* ---- for every machine */

/* A value of min or max as a word, so that the largest word wins. 0.0 and -0.0 give one word. */
WL_FN wl_u64 wl_agg_rank(int min, int real, wl_u64 bits) {
  wl_u64 k = real ? wl_word_of_real(wl_as_f64(bits)) : wl_word_of_int((wl_i64)bits);
  return min ? ~k : k;
}
/* The value of a word. A zero is 0.0. */
WL_FN wl_val wl_agg_unrank(int min, int real, wl_u64 k) {
  if (min) k = ~k;
  return real ? wl_real(wl_real_of_word(k)) : wl_int(wl_int_of_word(k));
}

/* An integer and its magnitude as limbs: the low 32 bits, then the rest with its sign. Sums of
** limbs do not overflow for 2^31 values. */
WL_FN void wl_agg_limbs(wl_i64 v, wl_u64 limb[4]) {
  wl_u64 m = v < 0 ? 0 - (wl_u64)v : (wl_u64)v;
  limb[0] = (wl_u64)v & 0xffffffffULL;
  limb[1] = (wl_u64)(v >> 32);
  limb[2] = m & 0xffffffffULL;
  limb[3] = m >> 32;
}

/* ---- for the host */

#ifndef __CUDACC__

#include "base/arena.h"
#include "base/status.h"
#include "base/sqlite.h"
#include "value/sum/fsum.h"
#include <math.h>

typedef enum wl_agg_state {
#define WL_AGG_STATE(name, type) WL_STATE_##name,
#include "value/aggregates.def"
#undef WL_AGG_STATE
} wl_agg_state;

enum { WL_AGG_NONE = 0, WL_AGG_MIN = 1, WL_AGG_REAL = 2, WL_AGG_ROWS = 4 };

/* An accumulator: what is the same for its states in all groups. */
typedef struct wl_agg_how {
  wl_agg_state state;
  int flags; /* WL_AGG_MIN, ... */
  int coll;
  int anchor;  /* exponent of the digits of reals */
  double unit; /* 2^anchor */
} wl_agg_how;

/* A value to be added. */
typedef struct wl_agg_in {
  wl_val v, b; /* b: the second argument */
  wl_i64 row;
  wl_u64 max_text; /* the most bytes of a text */
  wl_arena *arena; /* for text and large sums */
} wl_agg_in;

typedef struct wl_count_state {
  wl_i64 count;
} wl_count_state;

typedef struct wl_sum_state {
  wl_i64 count, sum;
} wl_sum_state;

typedef struct wl_ints {
  __int128 sum, low, high;
  __int128 positive; /* the sum of those above zero */
} wl_ints;
typedef struct wl_wide_state {
  wl_i64 count;
  wl_ints ints;
} wl_wide_state;

typedef struct wl_reals {
  wl_i64 digit[3]; /* relative to the accumulator's anchor */
  wl_fsum *more;   /* the sum of what the digits could not hold, or NULL */
} wl_reals;
typedef struct wl_reals_state {
  wl_i64 count;
  wl_reals reals;
} wl_reals_state;

typedef struct wl_numbers_state {
  wl_i64 count;
  wl_i64 n_reals;
  wl_ints ints;
  wl_reals reals;
} wl_numbers_state;

typedef struct wl_best_state {
  wl_i64 count;
  wl_u64 best; /* the largest rank */
} wl_best_state;

typedef struct wl_rowed_state {
  wl_i64 count;
  wl_u64 best, bits;
  wl_i64 row; /* the first row with this value; if there is no value, the last row */
} wl_rowed_state;

typedef struct wl_value_state {
  wl_i64 count;
  wl_i64 row; /* as in wl_rowed_state */
  wl_val best;
  wl_u64 size; /* bytes of memory at best.v, if it is text or a blob */
} wl_value_state;

typedef struct wl_text_state {
  wl_i64 count;
  wl_u8 *text;    /* one free byte, the text, and at least one more free byte */
  wl_u64 n, size; /* bytes of the text, and room for it */
} wl_text_state;

/* ---- parts of states */

WL_FN void wl_ints_add(wl_ints *s, wl_i64 v, bool watched) {
  s->sum += v;
  if (v > 0) s->positive += v;
  if (!watched) return;
  if (s->sum < s->low) s->low = s->sum;
  if (s->sum > s->high) s->high = s->sum;
}
/* low and high of the result are valid if the rows of from come after those of into. */
WL_FN void wl_ints_merge(wl_ints *into, const wl_ints *from, bool watched) {
  if (watched) {
    if (into->sum + from->low < into->low) into->low = into->sum + from->low;
    if (into->sum + from->high > into->high) into->high = into->sum + from->high;
  }
  into->sum += from->sum;
  into->positive += from->positive;
}
/* Whether the prefix sums leave 64 bits in some order of the rows. */
WL_FN bool wl_ints_unsure(const wl_ints *s) {
  return s->positive > WL_I64_MAX || s->sum - s->positive < WL_I64_MIN;
}
WL_FN bool wl_ints_overflow(const wl_ints *s) {
  return s->low < WL_I64_MIN || s->high > WL_I64_MAX;
}

enum { WL_AGG_MOVE_AFTER = 1 << 20 }; /* the digits of this many values always fit in 63 bits */

WL_FN wl_status wl_reals_more(wl_reals *s, wl_arena *arena) {
  if (!s->more) s->more = (wl_fsum *)wl_arena_alloc(arena, sizeof *s->more);
  return s->more ? WL_OK : WL_NOMEM;
}
/* Adds the digits to the full sum and clears them. */
WL_FN wl_status wl_reals_move(const wl_agg_how *h, wl_reals *s, wl_arena *arena) {
  if (wl_reals_more(s, arena)) return WL_NOMEM;
  for (int j = 0; j < 3; j++) {
    wl_fsum_add_scaled(s->more, s->digit[j], h->anchor - WL_FSUM_DIGIT * j);
    s->digit[j] = 0;
  }
  return WL_OK;
}
/* Adds the n-th real. */
WL_FN wl_status wl_reals_add(const wl_agg_how *h, wl_reals *s, double v, wl_i64 n,
                             wl_arena *arena) {
  wl_i64 digit[3];
  if (wl_digits(v, h->unit, digit)) {
    for (int j = 0; j < 3; j++) s->digit[j] += digit[j];
    return n % WL_AGG_MOVE_AFTER ? WL_OK : wl_reals_move(h, s, arena);
  }
  if (wl_reals_more(s, arena)) return WL_NOMEM;
  wl_fsum_add(s->more, v);
  return WL_OK;
}
WL_FN wl_status wl_reals_merge(const wl_agg_how *h, wl_reals *into, const wl_reals *from,
                               wl_arena *arena) {
  const wl_i64 large = (wl_i64)1 << 61;
  bool full = false;
  for (int j = 0; j < 3; j++) {
    into->digit[j] += from->digit[j];
    full |= into->digit[j] > large || into->digit[j] < -large;
  }
  if (full && wl_reals_move(h, into, arena)) return WL_NOMEM;
  if (!from->more) return WL_OK;
  if (wl_reals_more(into, arena)) return WL_NOMEM;
  wl_fsum_merge(into->more, from->more);
  return WL_OK;
}
/* The sum of the reals and an integer, rounded once. */
WL_FN double wl_reals_round(const wl_agg_how *h, const wl_reals *s, __int128 plus) {
  const wl_i64 small = (wl_i64)1 << 46;
  if (!s->more && !plus && s->digit[0] < small && s->digit[0] > -small) {
    const __int128 step = (__int128)1 << WL_FSUM_DIGIT;
    __int128 v = (s->digit[0] * step + s->digit[1]) * step + s->digit[2];
    return ldexp((double)v, h->anchor - 2 * WL_FSUM_DIGIT);
  }
  wl_fsum all = {0};
  if (s->more) all = *s->more;
  for (int j = 0; j < 3; j++) wl_fsum_add_scaled(&all, s->digit[j], h->anchor - WL_FSUM_DIGIT * j);
  wl_fsum_add_i128(&all, plus);
  return wl_fsum_round(&all);
}

/* sum(), total() or avg() of count reals whose sum is this. */
WL_FN wl_val wl_agg_of_sum(wl_agg_final what, wl_i64 count, double sum) {
  if (what == WL_AGG_TOTAL) return wl_real(count ? sum : 0.0);
  if (!count) return wl_null();
  return wl_real(what == WL_AGG_AVG ? sum / (double)count : sum);
}

/* ---- COUNT */

WL_FN wl_status wl_agg_add_COUNT(const wl_agg_how *h, wl_count_state *s, const wl_agg_in *in) {
  s->count += (h->flags & WL_AGG_ROWS) || in->v.t != WL_T_NULL;
  return WL_OK;
}
WL_FN wl_status wl_agg_merge_COUNT(const wl_agg_how *h, wl_count_state *into,
                                   const wl_count_state *from, wl_arena *arena) {
  into->count += from->count;
  return WL_OK;
}
WL_FN wl_status wl_agg_finish_COUNT(const wl_agg_how *h, const wl_count_state *s, wl_agg_final what,
                                    bool in_order, wl_val *out, wl_error *err) {
  *out = wl_int(s->count);
  return WL_OK;
}

/* ---- SUM: integers whose sum is known to fit */

WL_FN wl_status wl_agg_add_SUM(const wl_agg_how *h, wl_sum_state *s, const wl_agg_in *in) {
  if (in->v.t == WL_T_NULL) return WL_OK;
  s->count++;
  s->sum += (wl_i64)in->v.v;
  return WL_OK;
}
WL_FN wl_status wl_agg_merge_SUM(const wl_agg_how *h, wl_sum_state *into, const wl_sum_state *from,
                                 wl_arena *arena) {
  into->count += from->count;
  into->sum += from->sum;
  return WL_OK;
}
WL_FN wl_status wl_agg_finish_SUM(const wl_agg_how *h, const wl_sum_state *s, wl_agg_final what,
                                  bool in_order, wl_val *out, wl_error *err) {
  *out = what != WL_AGG_SUM ? wl_agg_of_sum(what, s->count, (double)s->sum)
         : s->count         ? wl_int(s->sum)
                            : wl_null();
  return WL_OK;
}

/* ---- WIDE: other integers */

WL_FN wl_status wl_agg_add_WIDE(const wl_agg_how *h, wl_wide_state *s, const wl_agg_in *in) {
  if (in->v.t == WL_T_NULL) return WL_OK;
  s->count++;
  wl_ints_add(&s->ints, (wl_i64)in->v.v, true);
  return WL_OK;
}
WL_FN wl_status wl_agg_merge_WIDE(const wl_agg_how *h, wl_wide_state *into,
                                  const wl_wide_state *from, wl_arena *arena) {
  into->count += from->count;
  wl_ints_merge(&into->ints, &from->ints, true);
  return WL_OK;
}
WL_FN wl_status wl_agg_finish_WIDE(const wl_agg_how *h, const wl_wide_state *s, wl_agg_final what,
                                   bool in_order, wl_val *out, wl_error *err) {
  *out = wl_null();
  if (what != WL_AGG_SUM) {
    wl_reals none = {{0, 0, 0}, NULL};
    *out = wl_agg_of_sum(what, s->count, wl_reals_round(h, &none, s->ints.sum));
  } else if (s->count) {
    if (in_order && wl_ints_overflow(&s->ints)) return wl_fail(err, WL_ERROR, "integer overflow");
    *out = wl_int((wl_i64)s->ints.sum);
  }
  return WL_OK;
}

/* ---- REALS */

WL_FN wl_status wl_agg_add_REALS(const wl_agg_how *h, wl_reals_state *s, const wl_agg_in *in) {
  if (in->v.t == WL_T_NULL) return WL_OK;
  s->count++;
  return wl_reals_add(h, &s->reals, wl_as_f64(in->v.v), s->count, in->arena);
}
WL_FN wl_status wl_agg_merge_REALS(const wl_agg_how *h, wl_reals_state *into,
                                   const wl_reals_state *from, wl_arena *arena) {
  into->count += from->count;
  return wl_reals_merge(h, &into->reals, &from->reals, arena);
}
WL_FN wl_status wl_agg_finish_REALS(const wl_agg_how *h, const wl_reals_state *s, wl_agg_final what,
                                    bool in_order, wl_val *out, wl_error *err) {
  double sum = s->count ? wl_reals_round(h, &s->reals, 0) : 0.0;
  *out = wl_agg_of_sum(what, s->count, sum);
  return WL_OK;
}

/* ---- NUMBERS: integers and reals */

WL_FN wl_status wl_agg_add_NUMBERS(const wl_agg_how *h, wl_numbers_state *s, const wl_agg_in *in) {
  if (in->v.t == WL_T_NULL) return WL_OK;
  s->count++;
  if (in->v.t == WL_T_REAL)
    return wl_reals_add(h, &s->reals, wl_as_f64(in->v.v), ++s->n_reals, in->arena);
  wl_ints_add(&s->ints, (wl_i64)in->v.v, !s->n_reals);
  return WL_OK;
}
WL_FN wl_status wl_agg_merge_NUMBERS(const wl_agg_how *h, wl_numbers_state *into,
                                     const wl_numbers_state *from, wl_arena *arena) {
  wl_ints_merge(&into->ints, &from->ints, !into->n_reals);
  into->count += from->count;
  into->n_reals += from->n_reals;
  return wl_reals_merge(h, &into->reals, &from->reals, arena);
}
WL_FN wl_status wl_agg_finish_NUMBERS(const wl_agg_how *h, const wl_numbers_state *s,
                                      wl_agg_final what, bool in_order, wl_val *out,
                                      wl_error *err) {
  *out = wl_null();
  if (what == WL_AGG_SUM && s->count) {
    bool over = in_order && wl_ints_overflow(&s->ints);
    /* Since 3.43 a REAL that comes after the overflow makes the sum REAL instead. */
    if (over && s->n_reals && sqlite3_libversion_number() >= 3043000) over = false;
    if (over) return wl_fail(err, WL_ERROR, "integer overflow");
    if (!s->n_reals) {
      *out = wl_int((wl_i64)s->ints.sum);
      return WL_OK;
    }
  }
  *out = wl_agg_of_sum(what, s->count, wl_reals_round(h, &s->reals, s->ints.sum));
  return WL_OK;
}

/* ---- BEST: min or max of numbers of one type */

WL_FN wl_status wl_agg_add_BEST(const wl_agg_how *h, wl_best_state *s, const wl_agg_in *in) {
  if (in->v.t == WL_T_NULL) return WL_OK;
  wl_u64 r = wl_agg_rank(h->flags & WL_AGG_MIN, h->flags & WL_AGG_REAL, in->v.v);
  if (r > s->best) s->best = r;
  s->count++;
  return WL_OK;
}
WL_FN wl_status wl_agg_merge_BEST(const wl_agg_how *h, wl_best_state *into,
                                  const wl_best_state *from, wl_arena *arena) {
  if (from->best > into->best) into->best = from->best;
  into->count += from->count;
  return WL_OK;
}
WL_FN wl_status wl_agg_finish_BEST(const wl_agg_how *h, const wl_best_state *s, wl_agg_final what,
                                   bool in_order, wl_val *out, wl_error *err) {
  *out =
      s->count ? wl_agg_unrank(h->flags & WL_AGG_MIN, h->flags & WL_AGG_REAL, s->best) : wl_null();
  return WL_OK;
}

/* ---- ROWED: the same, with the row of the value */

WL_FN wl_status wl_agg_add_ROWED(const wl_agg_how *h, wl_rowed_state *s, const wl_agg_in *in) {
  bool null = in->v.t == WL_T_NULL;
  wl_u64 r = null ? 0 : wl_agg_rank(h->flags & WL_AGG_MIN, h->flags & WL_AGG_REAL, in->v.v);
  if (null ? !s->count : r > s->best || !s->count) {
    s->best = r;
    s->bits = null ? 0 : in->v.v;
    s->row = in->row;
  }
  s->count += !null;
  return WL_OK;
}
WL_FN wl_status wl_agg_merge_ROWED(const wl_agg_how *h, wl_rowed_state *into,
                                   const wl_rowed_state *from, wl_arena *arena) {
  bool take = from->count == 0           ? into->count == 0 && from->row > into->row
              : into->count == 0         ? true
              : from->best != into->best ? from->best > into->best
                                         : from->row < into->row;
  if (take) {
    into->best = from->best;
    into->bits = from->bits;
    into->row = from->row;
  }
  into->count += from->count;
  return WL_OK;
}
WL_FN wl_status wl_agg_finish_ROWED(const wl_agg_how *h, const wl_rowed_state *s, wl_agg_final what,
                                    bool in_order, wl_val *out, wl_error *err) {
  *out =
      s->count ? wl_val_make(h->flags & WL_AGG_REAL ? WL_T_REAL : WL_T_INT, s->bits, 0) : wl_null();
  return WL_OK;
}

/* ---- VALUE: min or max of any values */

/* Whether a value replaces the best so far. */
WL_FN bool wl_value_wins(const wl_agg_how *h, const wl_value_state *s, wl_val v, wl_i64 row) {
  if (s->best.t == WL_T_NULL) return true;
  int c = wl_cmp_val(v, s->best, h->coll);
  return c == 0 ? row < s->row : h->flags & WL_AGG_MIN ? c < 0 : c > 0;
}
WL_FN wl_status wl_agg_add_VALUE(const wl_agg_how *h, wl_value_state *s, const wl_agg_in *in) {
  wl_val v = in->v;
  if (v.t == WL_T_NULL) {
    if (s->best.t == WL_T_NULL && in->row > s->row) s->row = in->row;
    return WL_OK;
  }
  s->count++;
  if (!wl_value_wins(h, s, v, in->row)) return WL_OK;
  if (v.t >= WL_T_TEXT) { /* copied, over the text before it if there is room */
    wl_u8 *p = (wl_u8 *)(size_t)s->best.v;
    if (s->best.t < WL_T_TEXT || v.n > s->size) {
      s->size = (wl_u64)v.n * 2 + 16;
      p = (wl_u8 *)wl_arena_alloc(in->arena, s->size);
      if (!p) return WL_NOMEM;
    }
    if (v.n) memcpy(p, wl_bytes(v), v.n);
    v.v = (wl_u64)(size_t)p;
  }
  s->best = v;
  s->row = in->row;
  return WL_OK;
}
WL_FN wl_status wl_agg_merge_VALUE(const wl_agg_how *h, wl_value_state *into,
                                   const wl_value_state *from, wl_arena *arena) {
  if (from->best.t == WL_T_NULL) {
    if (into->best.t == WL_T_NULL && from->row > into->row) into->row = from->row;
    return WL_OK;
  }
  into->count += from->count;
  if (!wl_value_wins(h, into, from->best, from->row)) return WL_OK;
  into->best = from->best; /* the worker that found it owns its text */
  into->size = 0;
  into->row = from->row;
  return WL_OK;
}
WL_FN wl_status wl_agg_finish_VALUE(const wl_agg_how *h, const wl_value_state *s, wl_agg_final what,
                                    bool in_order, wl_val *out, wl_error *err) {
  *out = s->best;
  return WL_OK;
}

/* ---- TEXT: texts with separators between them. Rows are added in order, by one worker. */

WL_FN wl_status wl_text_append(wl_text_state *s, wl_val v, const wl_agg_in *in) {
  if (s->n + v.n > in->max_text) return WL_TOOBIG;
  if (s->n + v.n > s->size || !s->text) {
    wl_u64 least = s->n + v.n + 16, size = s->size * 2 > least ? s->size * 2 : least;
    wl_u8 *p = (wl_u8 *)wl_arena_alloc(in->arena, size + 2);
    if (!p) return WL_NOMEM;
    if (s->n) memcpy(p + 1, s->text + 1, s->n);
    s->text = p;
    s->size = size;
  }
  if (v.n) memcpy(s->text + 1 + s->n, wl_bytes(v), v.n);
  s->n += v.n;
  return WL_OK;
}
WL_FN wl_status wl_agg_add_TEXT(const wl_agg_how *h, wl_text_state *s, const wl_agg_in *in) {
  if (in->v.t == WL_T_NULL) return WL_OK;
  if (s->count++ && in->b.t != WL_T_NULL) {
    wl_status rc = wl_text_append(s, in->b, in);
    if (rc) return rc;
  }
  return wl_text_append(s, in->v, in);
}
WL_FN wl_status wl_agg_merge_TEXT(const wl_agg_how *h, wl_text_state *into,
                                  const wl_text_state *from, wl_arena *arena) {
  if (into->count && from->count) return WL_ERROR; /* there is one worker with one table */
  if (from->count) *into = *from;
  return WL_OK;
}
WL_FN wl_status wl_agg_finish_TEXT(const wl_agg_how *h, const wl_text_state *s, wl_agg_final what,
                                   bool in_order, wl_val *out, wl_error *err) {
  if (what == WL_AGG_CONCAT) {
    *out = s->count ? wl_text(s->text + 1, (wl_u32)s->n) : wl_null();
    return WL_OK;
  }
  const char *brackets = what == WL_AGG_JSON_ARRAY ? "[]" : "{}";
  *out = wl_text((const wl_u8 *)brackets, 2);
  if (!s->count) return WL_OK;
  s->text[0] = (wl_u8)brackets[0]; /* into the free bytes around the text */
  s->text[1 + s->n] = (wl_u8)brackets[1];
  *out = wl_text(s->text, (wl_u32)s->n + 2);
  return WL_OK;
}

/* ---- any state */

WL_FN size_t wl_agg_bytes(wl_agg_state state) {
  static const size_t bytes[] = {
#define WL_AGG_STATE(name, type) sizeof(type),
#include "value/aggregates.def"
#undef WL_AGG_STATE
  };
  return bytes[state];
}
WL_FN size_t wl_agg_alignment(wl_agg_state state) {
  static const size_t alignment[] = {
#define WL_AGG_STATE(name, type) _Alignof(type),
#include "value/aggregates.def"
#undef WL_AGG_STATE
  };
  return alignment[state];
}
WL_FN wl_status wl_agg_add(const wl_agg_how *h, void *s, const wl_agg_in *in) {
  switch (h->state) {
#define WL_AGG_STATE(name, type)                                                                   \
  case WL_STATE_##name:                                                                            \
    return wl_agg_add_##name(h, (type *)s, in);
#include "value/aggregates.def"
#undef WL_AGG_STATE
  }
  return WL_ERROR;
}
WL_FN wl_status wl_agg_merge(const wl_agg_how *h, void *into, const void *from, wl_arena *arena) {
  switch (h->state) {
#define WL_AGG_STATE(name, type)                                                                   \
  case WL_STATE_##name:                                                                            \
    return wl_agg_merge_##name(h, (type *)into, (const type *)from, arena);
#include "value/aggregates.def"
#undef WL_AGG_STATE
  }
  return WL_ERROR;
}
/* in_order: the rows were added in SQLite's order, so a sum() that overflows is an error. The
** result may point into the state. */
WL_FN wl_status wl_agg_finish(const wl_agg_how *h, const void *s, wl_agg_final what, bool in_order,
                              wl_val *out, wl_error *err) {
  if (what == WL_AGG_COUNT) { /* every state begins with its count */
    *out = wl_int(*(const wl_i64 *)s);
    return WL_OK;
  }
  switch (h->state) {
#define WL_AGG_STATE(name, type)                                                                   \
  case WL_STATE_##name:                                                                            \
    return wl_agg_finish_##name(h, (const type *)s, what, in_order, out, err);
#include "value/aggregates.def"
#undef WL_AGG_STATE
  }
  return WL_ERROR;
}

/* Whether a sum() must be added in row order, because it overflows in some order of the rows. */
WL_FN bool wl_agg_unsure(const wl_agg_how *h, const void *s) {
  if (h->state == WL_STATE_WIDE) return wl_ints_unsure(&((const wl_wide_state *)s)->ints);
  if (h->state == WL_STATE_NUMBERS) return wl_ints_unsure(&((const wl_numbers_state *)s)->ints);
  return false;
}
/* The row of a min or max: the first with its value, or the last row if there is no value. */
WL_FN wl_i64 wl_agg_row(const wl_agg_how *h, const void *s) {
  return h->state == WL_STATE_ROWED ? ((const wl_rowed_state *)s)->row
                                    : ((const wl_value_state *)s)->row;
}

#endif
#endif
