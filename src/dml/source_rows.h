/*
** The rows that a change reads: all of them before it writes the first, or, of an INSERT with very
** many, a piece of them at a time.
*/
#ifndef WL_SOURCE_ROWS_H
#define WL_SOURCE_ROWS_H

#include "dml/change.h"
#include "route/answer.h"

/*
** Few rows are cells, many are columns. Where there is another piece (more), it comes from batches
** of a native answer, or from SQLite's statement `rest`, which stands on its next row.
**
** An error that is met behind rows of an INSERT may have to wait until these are written (late):
** then the next piece is no more than that error.
*/
typedef struct wl_source_rows {
  int n_cols;
  wl_i64 n;
  wl_arena arena; /* texts of the cells */
  wl_val *cells;  /* row by row */
  wl_i64 size_cells;
  wl_column **cols;
  wl_i64 *order; /* row k is order[k]; NULL: they are in order */
  bool native;
  char reason[400]; /* the engine that made them, and why */
  bool more;        /* there is another piece */
  wl_i64 limit;     /* bytes of a piece; 0: it is all one */
  wl_i64 row_bytes; /* bytes that each row takes besides its columns */
  wl_answer answer;
  wl_batch *batches[2]; /* of a native answer: those that come next */
  bool ended;           /* no batch comes behind these */
  sqlite3_stmt *rest;
  bool owns_rest; /* it is to be finalized, not reset */
  bool keeps_late;
  wl_error late;
} wl_source_rows;

/* What is read. */
typedef struct wl_source_query {
  const wl_request *request; /* at WL_AT_PREPARE */
  sqlite3_value **params;    /* params[i]: of parameter i + 1, or NULL */
  int n_params;
  const wl_mask *mask;     /* NULL, or the authorizer's answers; then the request is refused */
  sqlite3_stmt **stmt;     /* its statement where SQLite runs it, for the next time too */
  wl_i64 limit, row_bytes; /* of a piece: see wl_source_rows */
  wl_tablets *target;      /* what is written between pieces */
  bool keeps_late;         /* one of the rows before an error may fail first */
} wl_source_query;

wl_val wl_source_rows_value(const wl_source_rows *r, wl_i64 row, int col);
void wl_source_rows_close(wl_source_rows *r);
/* Runs a SELECT to its end, or to that of the first piece. */
wl_status wl_source_rows_read(wl_conn *c, const wl_source_query *x, wl_source_rows *out,
                              wl_error *err) WL_MUST;
/* The next piece takes the rows' place; there is one (more). */
wl_status wl_source_rows_more(wl_conn *c, wl_source_rows *r, wl_error *err) WL_MUST;
/* Puts rows in order of their first column, an integer; of equal ones the last stays. *twice:
** there were equal ones. */
wl_status wl_source_rows_sort(wl_source_rows *r, bool *twice, wl_error *err) WL_MUST;
/* Columns, in order, whatever they were. */
wl_status wl_source_rows_columns(wl_source_rows *r, wl_error *err) WL_MUST;

#endif
