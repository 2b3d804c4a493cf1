/*
** Writing many rows at once: what bulk.c (updates and deletes), update_patch.c and rewrite.c
** (segments that an update changes), bulk_append.c and bulk_keys.c (UNIQUE) share.
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

/* New values of n rows of a segment. */
typedef struct wl_rewrite {
  int tablet, col;
  const wl_column *values;
  const wl_u32 *codes; /* values' codes to codes of the file; NULL: they have no codes there */
  const wl_i64 *rows;  /* the rows of values; NULL: from, from + 1 and so on */
  wl_i64 from, n;
  const wl_i32 *slots; /* the rows of the segment, ascending */
} wl_rewrite;
/* Whether the new values can be stored as codes: they have some, or are NULL. */
bool wl_rewrite_has_codes(const wl_rewrite *w);
/* New value i, or its code in the file. */
wl_val wl_rewrite_value(const wl_rewrite *w, bool as_code, wl_i64 i);

/* Writes n segments with their new values again, without patches. The caller writes the directory
** rows. */
wl_status wl_rewrite_segments(wl_tablets *t, const wl_rewrite *list, int n, int n_threads,
                              wl_error *err) WL_MUST;

/* Makes patches of updates. */
typedef struct wl_patcher {
  wl_tablets *t;
  wl_stage stage;
  wl_u16 slots[WL_PATCH_ROWS];
} wl_patcher;
wl_status wl_patcher_open(wl_patcher *p, wl_tablets *t, wl_error *err) WL_MUST;
/* Patches the segment in the directory in memory. The caller writes the directory row. *done is
** false if the segment must be written again. */
wl_status wl_patcher_rows(wl_patcher *p, const wl_rewrite *w, bool *done, wl_error *err) WL_MUST;
void wl_patcher_close(wl_patcher *p);

/* Adds the texts that a column with a dictionary uses to the file's dictionary. *codes maps its
** codes to the file's; the caller frees it. *plain: the file's would grow too large. */
wl_status wl_bulk_codes(wl_tablets *t, int col, const wl_column *c, wl_u32 **codes, bool *plain,
                        wl_error *err) WL_MUST;

#endif
