/*
** Random rows for tests of the codec: stages of many shapes, and segments made of them.
*/
#ifndef TEST_SEGMENTS_H
#define TEST_SEGMENTS_H

#include "../rng.h"
#include "../tap.h"
#include "base/mem.h"
#include "tablet/format/codec.h"
#include <string.h>

/* What the values of a stage are like. */
enum {
  S_NULLS,
  S_INT_ONE,
  S_INT_FEW,    /* in runs */
  S_INT_BITS,   /* some bits above a base */
  S_INT_RANDOM, /* any bits of some width */
  S_INT_ENDS,
  S_STEP,
  S_REAL_ONE,
  S_REAL_ZEROS, /* of both signs */
  S_REAL_FLOAT,
  S_REAL,
  S_REAL_RUNS,
  S_DECIMAL,
  S_TEXT_ONE,
  S_TEXT_SHORT,
  S_TEXT_LONG,
  S_TEXT_WORDS, /* compress well */
  S_BLOB,
  S_ANY,
  S_KINDS
};

static inline void put_bytes(wl_stage *st, wl_u8 tag, const void *p, size_t n) {
  if (wl_stage_room(st, n)) abort();
  if (n) memcpy(st->heap + st->n_heap, p, n);
  st->v[st->n] = (wl_u64)st->n_heap | (wl_u64)n << 32;
  st->t[st->n++] = tag;
  st->n_heap += n;
}

static inline void put_number(wl_stage *st, wl_u8 tag, wl_u64 v) {
  st->v[st->n] = v;
  st->t[st->n++] = tag;
}

static inline void put_text(wl_stage *st, rng *r, wl_u8 tag, int most) {
  wl_u8 buf[2000];
  int n = rng_below(r, most + 1);
  for (int i = 0; i < n; i++) buf[i] = (wl_u8)rng_next(r); /* also NUL, also not UTF-8 */
  put_bytes(st, tag, buf, (size_t)n);
}

static inline double some_real(rng *r) {
  static const double odd[] = {0.0, -0.0, 1e308, -1e308, 5e-324, __builtin_inf(), -__builtin_inf(),
                               0.1};
  if (rng_chance(r, 10)) return odd[rng_below(r, 8)];
  return (double)(wl_i64)rng_next(r) / 65536.0;
}

/* n rows of a kind; nulls: of a hundred. */
static inline void fill_stage(wl_stage *st, rng *r, int kind, int n, int nulls) {
  static const char *const words[] = {"alpha", "beta", "", "gamma of many letters", "delta"};
  static const double tens[] = {1, 10, 100, 1000, 1e4, 1e5, 1e6, 4, 1e9};
  wl_i64 base = (wl_i64)rng_next(r) >> rng_below(r, 60), last = base;
  int bits = 1 + rng_below(r, 63), stretch = 1 + rng_below(r, 200);
  double real = some_real(r);
  int most = rng_below(r, rng_chance(r, 20) ? 1500 : rng_chance(r, 50) ? 300 : 20);
  wl_i64 stride = rng_chance(r, 50) ? 1 : (wl_i64)rng_next(r) >> (20 + rng_below(r, 40));
  if (kind == S_STEP) base >>= 4;
  if (kind == S_INT_BITS) base >>= 1;
  st->n = 0;
  st->n_heap = 0;
  for (int i = 0; i < n; i++) {
    wl_u64 bit = rng_next(r);
    if (rng_chance(r, nulls) || kind == S_NULLS) {
      put_number(st, WL_T_NULL, 0);
      continue;
    }
    switch (kind == S_ANY ? rng_below(r, S_ANY) : kind) {
    case S_NULLS: put_number(st, WL_T_NULL, 0); break;
    case S_INT_ONE: put_number(st, WL_T_INT, (wl_u64)base); break;
    case S_INT_FEW:
      if (i % stretch == 0) last = (wl_i64)bit >> (bits > 55 ? 55 : bits);
      put_number(st, WL_T_INT, (wl_u64)last);
      break;
    case S_INT_BITS:
      put_number(st, WL_T_INT, (wl_u64)base + (bit >> (64 - (bits > 62 ? 62 : bits))));
      break;
    case S_INT_RANDOM: put_number(st, WL_T_INT, (wl_u64)((wl_i64)bit >> bits)); break;
    case S_INT_ENDS:
      put_number(st, WL_T_INT, (wl_u64)(bit & 1 ? WL_I64_MIN : bit & 2 ? WL_I64_MAX : 0));
      break;
    case S_STEP: put_number(st, WL_T_INT, (wl_u64)base + (wl_u64)i * (wl_u64)stride); break;
    case S_REAL_ONE: put_number(st, WL_T_REAL, wl_f64_bits(real)); break;
    case S_REAL_ZEROS: put_number(st, WL_T_REAL, wl_f64_bits(bit & 1 ? 0.0 : -0.0)); break;
    case S_REAL_FLOAT: put_number(st, WL_T_REAL, wl_f64_bits((double)(wl_i32)bit / 256)); break;
    case S_REAL: put_number(st, WL_T_REAL, wl_f64_bits(some_real(r))); break;
    case S_REAL_RUNS:
      if (i % stretch == 0) real = some_real(r);
      put_number(st, WL_T_REAL, wl_f64_bits(real));
      break;
    case S_DECIMAL:
      put_number(st, WL_T_REAL,
                 wl_f64_bits((double)((wl_i64)bit >> (bits < 14 ? 14 : bits)) / tens[most % 9]));
      break;
    case S_TEXT_ONE: put_bytes(st, WL_T_TEXT, "\0one\xff", 5); break;
    case S_TEXT_SHORT: put_text(st, r, WL_T_TEXT, 12); break;
    case S_TEXT_LONG: put_text(st, r, WL_T_TEXT, most); break;
    case S_TEXT_WORDS: {
      char buf[120];
      size_t m = 0;
      for (int k = 0; k < 4; k++)
        m += (size_t)snprintf(buf + m, sizeof buf - m, "%s %d ", words[rng_below(r, 5)],
                              rng_below(r, 1000));
      put_bytes(st, WL_T_TEXT, buf, m);
      break;
    }
    default: put_text(st, r, WL_T_BLOB, 20);
    }
  }
}

/* Makes a segment without codes of its own: texts are its rows', or shared. */
static inline void plain_segment(const wl_stage *st, wl_segment *s) {
  if (wl_segment_make(st, s)) abort();
  if (!s->entries) return;
  wl_u64 *places = wl_mem_zalloc((size_t)s->n_rows * sizeof *places);
  if (!places) abort();
  for (wl_i32 i = 0; i < s->n_rows; i++)
    if (st->t[i]) places[i] = s->entries[((wl_i16 *)s->data)[i]];
  wl_mem_free(s->data);
  wl_mem_free(s->entries);
  s->entries = NULL;
  s->n_entries = 0;
  s->data = places;
  s->phys = WL_P_TEXT;
}

#endif
