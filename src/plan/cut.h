/*
** How LIMIT and OFFSET cut a sequence of rows. Counts of rows go up to 2^63 - 1, which is more than
** any table has. A sum of counts saturates at that number instead of overflowing. A negative limit
** means no limit.
*/
#ifndef WL_CUT_H
#define WL_CUT_H

#include "value/types.h"

/* The sum of two counts of rows. */
WL_FN wl_i64 wl_cut_add(wl_i64 a, wl_i64 b) {
  return a > WL_I64_MAX - b ? WL_I64_MAX : a + b;
}

/* How many of the first rows are needed; -1: all. */
WL_FN wl_i64 wl_cut_needed(wl_i64 offset, wl_i64 limit) {
  return limit < 0 ? -1 : wl_cut_add(limit, offset);
}

#endif
