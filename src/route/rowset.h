/*
** Small read-only virtual tables whose rows are computed when a query starts. Each has a list of
** column names and a function that fills the cells. warplite's own tables and EXPLAIN use them.
*/
#ifndef WL_ROWSET_H
#define WL_ROWSET_H

#include "route/conn.h"

typedef struct wl_cell {
  wl_u8 t; /* WL_T_NULL, WL_T_INT, WL_T_REAL or WL_T_TEXT */
  wl_i64 i;
  double r;
  const char *s;
} wl_cell;

typedef struct wl_rowset {
  wl_arena arena;
  wl_cell *cells;
  int n_cols, n_rows, size_rows;
  sqlite3_value *args; /* the second hidden argument while rows are filled, or NULL */
} wl_rowset;

/* Appends a row of NULL cells. Returns NULL if out of memory. */
wl_cell *wl_rowset_row(wl_rowset *r);
void wl_cell_int(wl_cell *c, wl_i64 i);
void wl_cell_real(wl_cell *c, double r);
void wl_cell_text(wl_rowset *r, wl_cell *c, const char *s); /* copies s; NULL stays NULL */

/* Fills the rows. text is the first hidden argument, or NULL. r->args has the second. */
typedef wl_status (*wl_rowset_fill)(wl_conn *c, const char *text, wl_rowset *r, wl_error *err);

/* The text argument of a table is a statement. The authorizer is asked about it, unless
** warplite_prepare() wrote the query. */
typedef struct wl_rowset_def {
  const char *name;
  const char *declaration; /* CREATE TABLE x(…); its last columns are the hidden arguments */
  int n_cols;              /* without the hidden ones */
  int n_hidden;            /* arguments: "sql HIDDEN", and "args HIDDEN", which is optional */
  wl_rowset_fill fill;
} wl_rowset_def;

/* def must outlive the connection. */
int wl_rowset_register(wl_conn *c, const wl_rowset_def *def);

#endif
