/*
** Appends the rows of an Arrow array to a tablet table in bulk, for warplite_append(). The array
** reaches xUpdate as a pointer in the table's hidden column. So the code that writes it is run by
** SQLite inside a statement.
*/
#ifndef WL_APPEND_H
#define WL_APPEND_H

#include "tablet/table/table.h"
#include "warplite.h"

#define WL_APPEND_TYPE "warplite_append" /* the type name for SQLite's pointer passing interface   \
                                          */

typedef struct wl_append {
  const struct ArrowSchema *schema;
  const struct ArrowArray *rows;
  int n_threads;
  wl_status status; /* result: WL_NOT_TAKEN if the rows must be inserted one by one */
} wl_append;

/* Appends the rows and sets *rowid to the last row's. WL_NOT_TAKEN: nothing was written, and the
** caller should insert row by row, which works or tells what is wrong. */
wl_status wl_append_rows(wl_tablets *t, const struct ArrowSchema *schema,
                         const struct ArrowArray *rows, int n_threads, wl_i64 *rowid,
                         wl_error *err) WL_MUST;

#endif
