/*
** Sorts row numbers by keys that are unsigned words. Used at the end of a run: by ORDER BY, and to
** put groups in key order. A word may be the start of a text. Then more words of that text are
** asked for, but only where rows are equal so far.
**
** Invariants:
** 1. Stable: rows with equal keys stay in the order of their numbers.
** 2. The result does not depend on the number of threads.
*/
#ifndef WL_SORT_H
#define WL_SORT_H

#include "base/stop.h"
#include "value/keys.h"

typedef struct wl_sort {
  wl_i64 n; /* rows, below 2^32 */
  int n_words;
  wl_u64 **words; /* [n_words][rows]: compared from the first word to the last */
  /* The words may have gaps. Then rows are numbered with the gaps: counts[t] is how many rows there
  ** are from row t << WL_TABLET_SHIFT on, out of n_tablets. NULL: there are no gaps. */
  const wl_i32 *counts;
  int n_tablets;
  const wl_u32 *numbers; /* the number that the result has for a row; NULL: its own */
  /* Which words are texts, if any; may be NULL. Words after those of the layout are numbers. */
  const wl_key_layout *layout;
  /* Gets a key of some rows, which is a TEXT part of the layout. Called by all threads. */
  void (*values)(const void *arg, int key, const wl_u32 *rows, int n, wl_val *out);
  /* Compares rows whose words are equal; returns < 0, 0 or > 0. NULL: such rows are equal. */
  int (*tie)(const void *arg, wl_u32 a, wl_u32 b);
  const void *arg;
  int threads;
  wl_stop *stop; /* may be NULL */
} wl_sort;

/* Writes the row numbers in key order to out[n]. */
wl_status wl_sort_rows(const wl_sort *s, wl_u32 *out, wl_error *err) WL_MUST;

/* Bytes that sorting n rows takes in addition to words and result. */
wl_i64 wl_sort_bytes(wl_i64 n);

#endif
