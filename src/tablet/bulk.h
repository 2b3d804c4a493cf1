/*
** Many rows at once: what bulk.c (changing and deleting), bulk_append.c and bulk_keys.c (UNIQUE)
** share.
*/
#ifndef WL_BULK_H
#define WL_BULK_H

#include "tablet/table_impl.h"

enum { WL_BULK_WAVE = 8 }; /* tablets a thread, between two rounds of writing */

/* Rows that come, as they will be stored. */
typedef struct wl_bulk_rows {
  wl_column *const *cols; /* [n_cols]; the rowid's is not looked at */
  const wl_i64 *rowids;   /* or NULL: first, first + 1, … */
  wl_i64 first, n;
} wl_bulk_rows;

/* The column as one of that affinity stores it: the same, held, or another. */
wl_status wl_bulk_convert(char affinity, wl_column *c, wl_column **out, wl_error *err) WL_MUST;

/* WL_NOT_TAKEN: cols[k], for column set[k] (set NULL: k), has a NULL where there may be none. */
wl_status wl_bulk_check_nulls(const wl_tablets *t, const int *set, int n_set,
                              wl_column *const *cols, wl_error *err) WL_MUST;

/* Whether the rows' keys are like no others (WL_NOT_TAKEN: they are not); or writes them. */
wl_status wl_bulk_keys(wl_tablets *t, const wl_bulk_rows *r, bool write, wl_error *err) WL_MUST;
/* Takes the keys of rows of one tablet away. */
wl_status wl_bulk_unkey(wl_tablets *t, int tablet, const wl_i64 *rowids, const wl_i32 *slots,
                        wl_i64 n, wl_error *err) WL_MUST;

#endif
