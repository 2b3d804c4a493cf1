/*
** Sorts row numbers by keys that are unsigned words. Used at the end of a run: by ORDER BY, and to
** put groups in key order.
**
** Invariants:
** 1. Stable: rows with equal keys stay in the order of their numbers.
** 2. The result does not depend on the number of threads.
*/
#ifndef WL_SORT_H
#define WL_SORT_H

#include "base/stop.h"
#include "value/value.h"

typedef struct wl_sort {
  wl_i64 n; /* below 2^32 */
  int n_words;
  wl_u64 **words; /* [n_words][n]: compared from the first word to the last */
  /* Compares rows whose words are equal; returns < 0, 0 or > 0. NULL: such rows are equal. */
  int (*tie)(const void *arg, wl_u32 a, wl_u32 b);
  const void *tie_arg;
  int threads;
  wl_stop *stop; /* may be NULL */
} wl_sort;

/* Writes the row numbers in key order to out[n]. */
wl_status wl_sort_rows(const wl_sort *s, wl_u32 *out, wl_error *err) WL_MUST;

/* Bytes that sorting n rows takes in addition to words and result. */
wl_i64 wl_sort_bytes(wl_i64 n);

#endif
