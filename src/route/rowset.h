/*
** Small read-only virtual tables whose rows are made when a query starts: a list of
** column names and a function that fills text cells. Used for warplite's own tables
** and for EXPLAIN.
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
  sqlite3_value *args; /* the second hidden argument while it is filled, or NULL */
} wl_rowset;

/* Appends a row of empty (NULL) cells; NULL: out of memory. */
wl_cell *wl_rowset_row(wl_rowset *r);
void wl_cell_int(wl_cell *c, wl_i64 i);
void wl_cell_real(wl_cell *c, double r);
void wl_cell_text(wl_rowset *r, wl_cell *c, const char *s); /* copied; NULL stays NULL */

/* Fills the rows. text and args: the hidden argument and those after it, if it has them. */
typedef wl_status (*wl_rowset_fill)(wl_conn *c, const char *text, wl_rowset *r, wl_error *err);

/* The text of a table with arguments is a statement. Unless warplite_prepare() has written it there,
** the authorizer is asked about it. */
typedef struct wl_rowset_def {
  const char *name;
  const char *declaration; /* CREATE TABLE x(…); a last column "sql HIDDEN" is the argument */
  int n_cols;              /* without the hidden one */
  int n_hidden;            /* arguments: the text, and "args HIDDEN", which may be left out */
  wl_rowset_fill fill;
} wl_rowset_def;

/* def must outlive the connection. */
int wl_rowset_register(wl_conn *c, const wl_rowset_def *def);

#endif
