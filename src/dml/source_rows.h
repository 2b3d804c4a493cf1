/*
** The rows that a change reads. It reads all of them before it writes the first, or, for a very
** large INSERT, one piece at a time.
*/
#ifndef WL_SOURCE_ROWS_H
#define WL_SOURCE_ROWS_H

#include "dml/change.h"
#include "route/answer.h"

/*
** Few rows are cells, many are columns. If more is set, the next piece comes from the batches of a
** native answer, or from SQLite's statement `rest`, which stands on its next row.
**
** If an error follows rows of an INSERT, those rows may have to be written first. Then late keeps
** the error, and the next piece consists of it alone.
*/
typedef struct wl_source_rows {
  int n_cols;
  wl_i64 n;
  wl_arena arena; /* texts of the cells */
  wl_val *cells;  /* row by row */
  wl_i64 size_cells;
  wl_column **cols;
  wl_i64 *order; /* row k is order[k]; NULL: they are sorted */
  bool native;
  char reason[400]; /* the engine that found them, and why */
  bool more;        /* there is another piece */
  wl_i64 limit;     /* bytes of a piece; 0: one piece only */
  wl_i64 row_bytes; /* bytes that each row needs besides its columns */
  wl_answer answer;
  wl_batch *batches[2]; /* the next batches of a native answer */
  bool ended;           /* there are no later batches */
  sqlite3_stmt *rest;
  bool owns_rest; /* rest must be finalized, not reset */
  bool keeps_late;
  wl_error late;
} wl_source_rows;

/* What to read, and how. */
typedef struct wl_source_query {
  const wl_request *request; /* for WL_AT_PREPARE */
  sqlite3_value **params;    /* params[i] is the value of parameter i + 1, or NULL */
  int n_params;
  const wl_mask *mask;     /* NULL, or the authorizer's answers; then the request is refused */
  sqlite3_stmt **stmt;     /* the statement if SQLite runs it, kept for later runs */
  wl_i64 limit, row_bytes; /* of a piece; see wl_source_rows */
  wl_tablets *target;      /* the table that is written between pieces */
  bool keeps_late;         /* a row before an error may fail first */
} wl_source_query;

wl_val wl_source_rows_value(const wl_source_rows *r, wl_i64 row, int col);
void wl_source_rows_close(wl_source_rows *r);
/* Runs a SELECT to its end, or to the end of the first piece. */
wl_status wl_source_rows_read(wl_conn *c, const wl_source_query *x, wl_source_rows *out,
                              wl_error *err) WL_MUST;
/* Replaces the rows by the next piece. There must be one (more). */
wl_status wl_source_rows_more(wl_conn *c, wl_source_rows *r, wl_error *err) WL_MUST;
/* Sorts the rows by their first column, an integer. Of equal ones keeps the last. *twice: there
** were equal ones. */
wl_status wl_source_rows_sort(wl_source_rows *r, bool *twice, wl_error *err) WL_MUST;
/* Makes the rows sorted columns. */
wl_status wl_source_rows_columns(wl_source_rows *r, wl_error *err) WL_MUST;

#endif
