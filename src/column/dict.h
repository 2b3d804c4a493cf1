/*
** Dictionaries. A TEXT column with repeated values is stored as codes: small integers that number a
** sorted list of its distinct values. An expression of such a column alone is computed once for
** each entry (program/entries.c). Comparing texts means comparing integers.
**
** Invariants:
** 1. Entries are distinct and in BINARY order: a < b as texts exactly if code(a) < code(b).
** 2. While a column is built, a segment may have its own entries, in order of first appearance,
**    with codes of 2 bytes. A finished column has no such segments.
*/
#ifndef WL_DICT_H
#define WL_DICT_H

#include "column/column.h"

typedef struct wl_dict {
  wl_i32 n;
  wl_u64 *places; /* [n] offset | length << 32 in heap */
  wl_u8 *heap;
  size_t n_heap;
  atomic_int more; /* references, not counting the first */
  bool in_arena;   /* its memory belongs to an arena, so it cannot be held */
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
void wl_dict_free(wl_dict *d); /* drops a reference; the last one frees it. d may be NULL */

/* Makes a segment with its own dictionary, if the staged texts repeat enough. *done: it did. */
wl_status wl_dict_segment(const wl_stage *st, wl_segment *s, bool *done) WL_MUST;

/* Gives all segments one dictionary, if that saves enough (small: in a small table it always does).
** Otherwise *out is NULL and every segment has plain texts again. */
wl_status wl_dict_join(wl_segment *segments, int n, int n_threads, bool small,
                       wl_dict **out) WL_MUST;

/* Makes a dictionary of the distinct values among n texts, in the arena, and sets each value's
** code. Values that are not text get the code -1. */
struct wl_arena;
wl_status wl_dict_of(struct wl_arena *arena, const wl_val *values, wl_i64 n, wl_i32 *codes,
                     const wl_dict **out) WL_MUST;

/* Makes a dictionary of n texts that are all different, not in an arena. codes[i] is the code of
** values[i]. */
wl_status wl_dict_make(const wl_val *values, wl_i32 n, wl_u32 *codes, wl_dict **out) WL_MUST;

/* Turns a segment with its own entries into plain texts. Other segments do not change. */
wl_status wl_dict_uncode(wl_segment *s) WL_MUST;

/* Each entry's rank under a collation. Entries that are equal under it have the same rank. */
wl_status wl_dict_ranks(const wl_dict *d, int coll, wl_i32 *ranks) WL_MUST;

#endif
