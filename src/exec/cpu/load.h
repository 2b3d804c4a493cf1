/*
** The loops that bring a column's narrow values and NULL bits to vectors of the CPU machine.
*/
#ifndef WL_LOAD_H
#define WL_LOAD_H

#include "value/ops.h"

/* Column values to 8 bytes, in a row or picked by sel. */
#define WIDEN(name, T, R)                                                                          \
  static WL_CLONES void widen_##name(void *dv, const void *sv, const wl_u16 *sel, int n) {         \
    R *restrict d = dv;                                                                            \
    const T *s = sv;                                                                               \
    if (sel)                                                                                       \
      for (int i = 0; i < n; i++) d[i] = (R)s[sel[i]];                                             \
    else                                                                                           \
      for (int i = 0; i < n; i++) d[i] = (R)s[i];                                                  \
  }
WIDEN(i8, wl_i8, wl_i64)
WIDEN(i16, wl_i16, wl_i64)
WIDEN(i32, wl_i32, wl_i64)
WIDEN(f32, float, double)
WIDEN(64, wl_u64, wl_u64)
WIDEN(u8, wl_u8, wl_u8)

/* A bitmap's bits from row first on, as bytes 0 and 1. */
static void spread_bits(wl_u8 *d, const wl_u8 *bits, wl_i32 first, const wl_u16 *sel, int n) {
  if (sel) {
    for (int i = 0; i < n; i++) {
      wl_i32 r = first + sel[i];
      d[i] = bits[r >> 3] >> (r & 7) & 1;
    }
    return;
  }
  for (int i = 0; i < n; i++) d[i] = bits[(first + i) >> 3] >> ((first + i) & 7) & 1;
}

#endif
