/*
** Loads column values by row number: for the columns of joined sources, and for rows in another
** order.
*/
#ifndef WL_PICK_H
#define WL_PICK_H

#include "column/lookup.h"

/* Loads values by row number and prefetches those of the row AHEAD places later. */
enum { AHEAD = 32 };
#define PLACE(T, r) ((const T *)data[(r) >> WL_TABLET_SHIFT])[(r) & (WL_TABLET_ROWS - 1)]
#define PICK(name, T, R)                                                                           \
  static void pick_##name(void *dv, const void *const *data, const wl_u32 *rows, bool misses,      \
                          bool one, int n) {                                                       \
    R *restrict d = dv;                                                                            \
    if (misses)                                                                                    \
      for (int i = 0; i < n; i++) {                                                                \
        wl_u32 next = rows[i + AHEAD < n ? i + AHEAD : i];                                         \
        if (next != WL_NO_ROW) __builtin_prefetch(&PLACE(T, next));                                \
        d[i] = rows[i] == WL_NO_ROW ? 0 : (R)PLACE(T, rows[i]);                                    \
      }                                                                                            \
    else if (one)                                                                                  \
      for (int i = 0; i < n; i++) d[i] = (R)((const T *)data[0])[rows[i]];                         \
    else {                                                                                         \
      int i = 0;                                                                                   \
      for (; i + AHEAD < n; i++) {                                                                 \
        __builtin_prefetch(&PLACE(T, rows[i + AHEAD]));                                            \
        d[i] = (R)PLACE(T, rows[i]);                                                               \
      }                                                                                            \
      for (; i < n; i++) d[i] = (R)PLACE(T, rows[i]);                                              \
    }                                                                                              \
  }
PICK(i8, wl_i8, wl_i64)
PICK(i16, wl_i16, wl_i64)
PICK(i32, wl_i32, wl_i64)
PICK(f32, float, double)
PICK(64, wl_u64, wl_u64)

#endif
