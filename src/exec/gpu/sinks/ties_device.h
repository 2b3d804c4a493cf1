/*
** Sorts rows on a device by keys with texts and values of several types. Used by order_device.c;
** uses the kernels of kties.h and the device's sort.
**
** The rows are sorted by the first word of the key. After that, only runs of rows that are equal so
** far are sorted, by their next word: of the same text, or of the next key. Each round sorts all
** runs at once. If the texts of a run agree for some bytes, the round begins after these. There
** are rounds until no run has more than one row, or no word is left.
**
** Invariants:
** 1. Rows with equal keys stay in the order of the list.
** 2. If `most` is given, the first `most` rows of the list are in order, and the others follow them
**    in any order.
** 3. After an error the list is in any order. WL_FULL: there is no memory for the rows that are
**    tied, or they need too many rounds.
*/
#ifndef WL_TIES_DEVICE_H
#define WL_TIES_DEVICE_H

#include "base/stop.h"
#include "exec/gpu/device.h"
#include "exec/gpu/kernels/ktargs.h"

typedef struct wl_ties_sort {
  wl_device *d;
  const wl_key_layout *layout; /* `key` of its parts is an index into outs */
  const wl_kout *outs;
  wl_u64 n, most; /* most: at least n if all rows are needed */
  bool listed;    /* the list is in rows[0]; else it is all rows in scan order */
  wl_u64 *keys[2];
  wl_u32 *rows[2];       /* afterwards the list is in rows[0] */
  wl_u64 *words, *kept;  /* kept: [n + 1] */
  wl_u32 *values, *keep; /* [n + 1] */
  wl_stop *stop;
} wl_ties_sort;

/* Bytes that it needs for a row, in addition to the arrays that it is given and the rows that are
** tied, of which there are mostly few. */
enum { WL_TIES_ROW_BYTES = 12 };

/* Whether a key needs this. */
static inline bool wl_ties_needed(const wl_key_layout *l) {
  for (int k = 0; k < l->n_parts; k++)
    if (l->parts[k].kind >= WL_PART_TEXT) return true;
  return false;
}

wl_status wl_ties_sort_rows(wl_ties_sort *s, wl_error *err) WL_MUST;

#endif
