/*
** Dictionaries: a column of TEXT that repeats itself is kept as codes, small integers into a
** sorted list of its distinct values. Work that depends on such a column alone is done once
** per entry (program/entries.c), and order among texts is order among integers.
**
** Invariants:
** 1. Entries are distinct and in BINARY order: a < b as text just when code(a) < code(b).
** 2. A segment with entries of its own (while a column is being made) has codes of 2 bytes
**    into them, in order of first appearance; no finished column has such segments.
*/
#ifndef WL_DICT_H
#define WL_DICT_H

#include "column/column.h"

typedef struct wl_dict {
  wl_i32 n;
  wl_u64 *places; /* [n] offset | length << 32 in heap */
  wl_u8 *heap;
  size_t n_heap;
  atomic_int more; /* holders beside the first */
} wl_dict;

WL_FN wl_val wl_dict_value(const wl_dict *d, wl_i64 code) {
  wl_u64 p = d->places[code];
  return wl_text(d->heap + (wl_u32)p, (wl_u32)(p >> 32));
}

/* The code of a text, or -1. */
WL_FN wl_i32 wl_dict_find(const wl_dict *d, wl_val text) {
  wl_i32 lo = 0, hi = d->n;
  while (lo < hi) {
    wl_i32 mid = lo + (hi - lo) / 2;
    if (wl_cmp_val(wl_dict_value(d, mid), text, WL_COLL_BINARY) < 0)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < d->n && wl_cmp_val(wl_dict_value(d, lo), text, WL_COLL_BINARY) == 0 ? lo : -1;
}

wl_dict *wl_dict_hold(wl_dict *d);
void wl_dict_free(wl_dict *d); /* when the last holder does; NULL is fine */

/* Gives staged texts codes of the segment's own where they repeat enough; *done: it did. */
wl_status wl_dict_segment(const wl_stage *st, wl_segment *s, bool *done) WL_MUST;

/* Brings all segments to one dictionary if that pays (small: that of a small table does); else
** *out is NULL and every segment is plain text again. */
wl_status wl_dict_join(wl_segment *segments, int n, int n_threads, bool small,
                       wl_dict **out) WL_MUST;

/* Distinct values among n texts, sorted: a dictionary in the arena, and each value's code.
** Values that are not text get code -1. */
struct wl_arena;
wl_status wl_dict_of(struct wl_arena *arena, const wl_val *values, wl_i64 n, wl_i32 *codes,
                     const wl_dict **out) WL_MUST;

/* The same of texts that are all different, on the heap: codes[i] is that of values[i]. */
wl_status wl_dict_make(const wl_val *values, wl_i32 n, wl_u32 *codes, wl_dict **out) WL_MUST;

/* A segment with entries of its own becomes plain text; of others nothing is changed. */
wl_status wl_dict_uncode(wl_segment *s) WL_MUST;

/* Each entry's rank under a collation; entries that are equal there have one rank. */
wl_status wl_dict_ranks(const wl_dict *d, int coll, wl_i32 *ranks) WL_MUST;

#endif
