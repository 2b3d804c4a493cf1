/*
** Many rows at once: what bulk.c (changing and deleting), bulk_append.c and bulk_keys.c (UNIQUE)
** share.
*/
#ifndef WL_BULK_H
#define WL_BULK_H

#include "tablet/table/table_impl.h"

enum { WL_BULK_WAVE = 8 }; /* tablets a thread, between two rounds of writing */

/* The column as one of that affinity stores it: the same, held, or another. */
wl_status wl_bulk_convert(char affinity, wl_column *c, wl_column **out, wl_error *err) WL_MUST;

/* The first of n rows in which cols[k], for column set[k] (set NULL: k), has a NULL where there may
** be none; n: there is none. */
wl_i64 wl_bulk_first_null(const wl_tablets *t, const int *set, int n_set, wl_column *const *cols,
                          wl_i64 n);

/* The first row that has the key of another one, of the rows or of the table, and which key that
** is; r->n: there is none. */
wl_status wl_bulk_check_keys(wl_tablets *t, const wl_bulk_rows *r, wl_i64 *row, int *key,
                             wl_error *err) WL_MUST;
wl_status wl_bulk_put_keys(wl_tablets *t, const wl_bulk_rows *r, wl_error *err) WL_MUST;
/* Takes the keys of rows of one tablet away. */
wl_status wl_bulk_unkey(wl_tablets *t, int tablet, const wl_i64 *rowids, const wl_i32 *slots,
                        wl_i64 n, wl_error *err) WL_MUST;

#endif
