/*
** Writing many rows at once: what bulk.c (updates and deletes), bulk_append.c and bulk_keys.c
** (UNIQUE) share.
*/
#ifndef WL_BULK_H
#define WL_BULK_H

#include "tablet/table/table_impl.h"

enum { WL_BULK_WAVE = 8 }; /* tablets per thread that are encoded before they are written */

/* Converts a column to an affinity. *out is a new column, or the same one with another reference.
 */
wl_status wl_bulk_convert(char affinity, wl_column *c, wl_column **out, wl_error *err) WL_MUST;

/* The first of n rows with a NULL in a NOT NULL column, or n. cols[k] has the values of column
** set[k], or of column k if set is NULL. */
wl_i64 wl_bulk_first_null(const wl_tablets *t, const int *set, int n_set, wl_column *const *cols,
                          wl_i64 n);

/* Sets *row to the first row whose key another row has, among the rows before it or in the table,
** and *key to that key. If there is none, *row is r->n. */
wl_status wl_bulk_check_keys(wl_tablets *t, const wl_bulk_rows *r, wl_i64 *row, int *key,
                             wl_error *err) WL_MUST;
wl_status wl_bulk_put_keys(wl_tablets *t, const wl_bulk_rows *r, wl_error *err) WL_MUST;
/* Deletes the keys of n rows of one tablet. */
wl_status wl_bulk_delete_keys(wl_tablets *t, int tablet, const wl_i64 *rowids, const wl_i32 *slots,
                              wl_i64 n, wl_error *err) WL_MUST;

#endif
