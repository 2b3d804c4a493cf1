/*
** The fast loader: columns of an ordinary rowid table, by decoding the pages of its b-tree
** in parallel. Used by load.c, which has SQLite step the table where this one says no.
**
** Invariants:
** 1. Called inside the read transaction of wl_store_begin; nothing is read outside it.
** 2. WL_NOT_TAKEN (with the reason) leaves no trace: the other loader starts afresh.
** 3. The columns are those the other loader would have made, row for row.
*/
#ifndef WL_BTREE_H
#define WL_BTREE_H

#include "store/store_impl.h"

/*
** Loads cols[0..n) (-1 is the rowid) into out[0..n), one hold each, the caller's. WL_FULL:
** they take more than limit bytes, if that is not 0; WL_TOOBIG: a tablet's texts exceed 4 GiB.
*/
wl_status wl_btree_load(wl_store *s, wl_table *t, const int *cols, int n, size_t limit,
                        wl_column **out, wl_i64 *n_rows, wl_error *err) WL_MUST;

#endif
