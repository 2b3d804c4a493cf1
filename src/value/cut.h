/*
** How LIMIT and OFFSET cut a sequence of rows: counts of rows up to 2^63 - 1, which is more than
** there ever are. A sum of counts stays at that number instead of overflowing. A limit below 0 is
** none.
*/
#ifndef WL_CUT_H
#define WL_CUT_H

#include "value/types.h"

/* Two counts of rows together. */
WL_FN wl_i64 wl_cut_add(wl_i64 a, wl_i64 b) {
  return a > WL_I64_MAX - b ? WL_I64_MAX : a + b;
}

/* How many rows from the first on are needed; -1: all of them. */
WL_FN wl_i64 wl_cut_needed(wl_i64 offset, wl_i64 limit) {
  return limit < 0 ? -1 : wl_cut_add(limit, offset);
}

#endif
