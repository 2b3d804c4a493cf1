/*
** Rows of an Arrow array appended to a tablet table, in bulk: what warplite_append() does. The
** array reaches xUpdate as a pointer in the table's hidden column, so that it is written by code
** that SQLite runs, inside its statement.
*/
#ifndef WL_APPEND_H
#define WL_APPEND_H

#include "tablet/table/table.h"
#include "warplite.h"

#define WL_APPEND_TYPE "warplite_append" /* of SQLite's pointer passing interface */

typedef struct wl_append {
  const struct ArrowSchema *schema;
  const struct ArrowArray *rows;
  int n_threads;
  wl_status status; /* out: WL_NOT_TAKEN if the rows must go in one by one */
} wl_append;

/* Appends. WL_NOT_TAKEN, with nothing written: row by row it may go, or say what is wrong.
** *rowid: of the last row. */
wl_status wl_append_rows(wl_tablets *t, const struct ArrowSchema *schema,
                         const struct ArrowArray *rows, int n_threads, wl_i64 *rowid,
                         wl_error *err) WL_MUST;

#endif
