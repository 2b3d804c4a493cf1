/*
** The fast loader: reads columns of an ordinary rowid table by decoding the pages of its b-tree in
** parallel. If it refuses a table, load.c steps through the table with SQLite instead.
**
** Invariants:
** 1. The loader runs inside the read transaction that wl_source_begin opened and reads nothing outside it.
** 2. After WL_NOT_TAKEN, which comes with a reason, nothing is left behind. The other loader starts
**    from the beginning.
** 3. The columns are the same, row for row, as those of the other loader.
*/
#ifndef WL_BTREE_H
#define WL_BTREE_H

#include "store/store_impl.h"

/*
** Loads cols[0..n) (-1 is the rowid) into out[0..n). The caller gets one reference to each.
** WL_FULL: they take more than limit bytes, if limit is not 0. WL_TOOBIG: a tablet's texts exceed 4
** GiB.
*/
wl_status wl_btree_load(wl_store *s, wl_table *t, const int *cols, int n, size_t limit,
                        wl_column **out, wl_i64 *n_rows, wl_error *err) WL_MUST;

#endif
