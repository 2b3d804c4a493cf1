/*
** A tablet table row by row, for SQLite: in the order of rowids, tablets and delta merged, whole
** tablets skipped where their zone maps exclude what is looked for.
**
** Invariants:
** 1. A constraint only ever leaves out rows that cannot meet it; SQLite tests every row again.
** 2. Tablets that move under an open cursor (a write through the same connection) make it look
**    for its place again: that of the row it stands on where a value is asked for, else behind it.
**    A row that is gone by then has no values, as SQLite's own cursors have it.
*/
#ifndef WL_CURSOR_H
#define WL_CURSOR_H

#include "tablet/table/table_impl.h"

enum { WL_OP_CODES = 5 }; /* of a constraint: = < l > g, where l and g include equality */

typedef struct wl_bound {
  int col; /* n_cols: the rowid */
  char op;
  wl_val v; /* text is the cursor's own */
} wl_bound;

typedef struct wl_rows {
  wl_tablets *t;
  wl_i64 lo, hi; /* rowids looked at */
  wl_bound *bounds;
  int n_bounds;
  bool only; /* rowid lo alone, already found or not: no scan */
  bool end;
  wl_i64 rowid; /* of the row it stands on */
  bool in_delta;
  wl_u64 layout;
  int tablet; /* the next row of a tablet … */
  wl_i32 slot, n_rows;
  wl_i64 slot_rowid;
  wl_held_segment *rowids;
  wl_held_segment **held; /* … of this tablet; [n_cols] */
  int at_tablet;          /* the row it stands on … */
  wl_i32 at_slot;         /* … or -1: it is gone … */
  wl_u64 at_layout;       /* … while tablets lie so */
  sqlite3_stmt *delta, *gone;
  wl_u32 epoch; /* of these two */
  bool has_delta, has_gone, delta_used;
  wl_i64 delta_rowid, gone_rowid;
} wl_rows;

wl_status wl_rows_open(wl_rows *r, wl_tablets *t, wl_error *err) WL_MUST;
void wl_rows_close(wl_rows *r);
/* Stands on the first row from lo to hi. Bounds are borrowed until the next start or close. */
wl_status wl_rows_start(wl_rows *r, wl_i64 lo, wl_i64 hi, wl_bound *bounds, int n_bounds,
                        wl_error *err) WL_MUST;
wl_status wl_rows_next(wl_rows *r, wl_error *err) WL_MUST;
/* A value of the row it stands on; text lives until the cursor moves. */
wl_status wl_rows_value(wl_rows *r, int col, wl_val *out, wl_error *err) WL_MUST;

#endif
