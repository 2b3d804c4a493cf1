/*
** Compares a column with a constant in the column's own narrow type. No vector of 8-byte values is
** made, so up to 8 times more values fit a register. The constant is first converted to the
** column's type in such a way that the comparison has the same result.
*/
#ifndef WL_NARROW_H
#define WL_NARROW_H

#include "column/column.h"
#include <math.h>

enum { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE };

#define NARROW_LOOP(name, T, sign)                                                                 \
  static WL_CLONES void narrow_##name(wl_u8 *restrict d, const void *data, const wl_u16 *sel,      \
                                      int n, const void *k) {                                      \
    const T *s = data, c = *(const T *)k;                                                          \
    if (sel)                                                                                       \
      for (int i = 0; i < n; i++) d[i] = (wl_u8)((s[sel[i]] sign c) << 1);                         \
    else                                                                                           \
      for (int i = 0; i < n; i++) d[i] = (wl_u8)((s[i] sign c) << 1);                              \
  }
#define NARROW_LOOPS(t, T)                                                                         \
  NARROW_LOOP(t##_eq, T, ==)                                                                       \
  NARROW_LOOP(t##_ne, T, !=)                                                                       \
  NARROW_LOOP(t##_lt, T, <)                                                                        \
  NARROW_LOOP(t##_le, T, <=)                                                                       \
  NARROW_LOOP(t##_gt, T, >)                                                                        \
  NARROW_LOOP(t##_ge, T, >=)
NARROW_LOOPS(i8, wl_i8)
NARROW_LOOPS(i16, wl_i16)
NARROW_LOOPS(i32, wl_i32)
NARROW_LOOPS(i64, wl_i64)
NARROW_LOOPS(f32, float)
NARROW_LOOPS(f64, double)

typedef void (*narrow_loop)(wl_u8 *d, const void *data, const wl_u16 *sel, int n, const void *k);

#define NARROW_ROW(t)                                                                              \
  {                                                                                                \
    narrow_##t##_eq, narrow_##t##_ne, narrow_##t##_lt, narrow_##t##_le, narrow_##t##_gt,           \
        narrow_##t##_ge                                                                            \
  }
static const narrow_loop narrow_loops[][6] = {
    [WL_P_I8] = NARROW_ROW(i8),   [WL_P_I16] = NARROW_ROW(i16), [WL_P_I32] = NARROW_ROW(i32),
    [WL_P_I64] = NARROW_ROW(i64), [WL_P_F32] = NARROW_ROW(f32), [WL_P_F64] = NARROW_ROW(f64)};

/* The comparison of an opcode, or -1. turned: the constant is on the left, so it is mirrored. */
static int narrow_op(wl_u16 op, bool turned) {
  static const int back[] = {CMP_EQ, CMP_NE, CMP_GT, CMP_GE, CMP_LT, CMP_LE};
  int c = -1;
  if (op >= WL_OP__EqI && op <= WL_OP__GeI) c = op - WL_OP__EqI;
  if (op >= WL_OP__EqF && op <= WL_OP__GeF) c = op - WL_OP__EqF;
  return c >= 0 && turned ? back[c] : c;
}

/* The result if all values are below (-1) or above (1) the constant. */
static wl_u8 narrow_all(int op, int side) {
  bool yes =
      op == CMP_NE || (side < 0 ? op == CMP_LT || op == CMP_LE : op == CMP_GT || op == CMP_GE);
  return yes ? WL_TRUE : WL_FALSE;
}

/* Compares n column values (consecutive from data, or those that sel lists) with the constant. */
static void narrow_compare(wl_u8 phys, int op, const void *data, const wl_u16 *sel, int n,
                           wl_u64 constant, wl_u8 *d) {
  static const wl_i64 most[] = {127, 32767, 2147483647, WL_I64_MAX};
  if (phys <= WL_P_I64) {
    wl_i64 k = (wl_i64)constant;
    if (k > most[phys] || k < -most[phys] - 1) {
      memset(d, narrow_all(op, k > 0 ? -1 : 1), (size_t)n);
      return;
    }
    wl_i8 k8 = (wl_i8)k;
    wl_i16 k16 = (wl_i16)k;
    wl_i32 k32 = (wl_i32)k;
    const void *at[] = {&k8, &k16, &k32, &k};
    narrow_loops[phys][op](d, data, sel, n, at[phys]);
    return;
  }
  double k = wl_as_f64(constant);
  if (phys == WL_P_F64) {
    narrow_loops[phys][op](d, data, sel, n, &k);
    return;
  }
  /* The floats around k: one that equals it, or the nearest below and above. */
  float f = (float)k, below = (double)f <= k ? f : nextafterf(f, -INFINITY),
        above = (double)f >= k ? f : nextafterf(f, INFINITY);
  if (below != above && (op == CMP_EQ || op == CMP_NE)) {
    memset(d, op == CMP_NE ? WL_TRUE : WL_FALSE, (size_t)n);
    return;
  }
  const float *use = op == CMP_LE || op == CMP_GT ? &below : &above;
  narrow_loops[phys][op](d, data, sel, n, use);
}

/* Marks the texts that are n_bytes long. */
WL_CLONES static void long_as(wl_u8 *restrict d, const wl_u64 *restrict places,
                              const wl_u16 *restrict sel, int n, wl_u32 n_bytes) {
  if (sel)
    for (int i = 0; i < n; i++)
      d[i] = (wl_u32)(places[sel[i]] >> 32) == n_bytes ? WL_TRUE : WL_FALSE;
  else
    for (int i = 0; i < n; i++) d[i] = (wl_u32)(places[i] >> 32) == n_bytes ? WL_TRUE : WL_FALSE;
}

/* Whether n bytes are equal. Most texts differ in the first eight. */
static inline bool same_bytes(const wl_u8 *a, const wl_u8 *b, wl_u32 n) {
  wl_u64 x, y;
  if (n < 8) return n == 0 || memcmp(a, b, n) == 0;
  memcpy(&x, a, 8);
  memcpy(&y, b, 8);
  return x == y && memcmp(a + 8, b + 8, n - 8) == 0;
}

#endif
