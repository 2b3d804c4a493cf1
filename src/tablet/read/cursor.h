/*
** Reads a tablet table row by row, for SQLite. Rows come in order of rowid, from tablets and delta
** merged. Whole tablets are skipped if their zone maps exclude what the query looks for.
**
** Invariants:
** 1. A constraint only excludes rows that cannot meet it. SQLite tests every row again.
** 2. A write through the same connection may move tablets under an open cursor. The cursor then
**    finds its place again: the row it stands on when a value is read, the row after it when it
**    moves on. A row that was deleted meanwhile has no values, as with SQLite's own cursors.
*/
#ifndef WL_CURSOR_H
#define WL_CURSOR_H

#include "tablet/table/table_impl.h"

/* A constraint that a value must meet. */
typedef struct wl_bound {
  int col;  /* n_cols: the rowid */
  char op;  /* = < l > g, where l is <= and g is >= */
  wl_val v; /* the cursor owns its text */
} wl_bound;

typedef struct wl_row_reader {
  wl_tablets *t;
  wl_i64 lo, hi; /* the range of rowids to read */
  wl_bound *bounds;
  int n_bounds;
  bool end;
  wl_i64 rowid; /* of the current row */
  bool in_delta;
  /* The next row of a tablet. layout is the table's layout when it was found. */
  wl_u64 layout;
  int tablet;
  wl_i32 slot, n_rows;
  wl_i64 slot_rowid;
  wl_cached_segment *rowids;    /* of this tablet */
  wl_cached_segment **segments; /* [n_cols] of this tablet */
  /* The current row, if it is in a tablet and the table's layout is at_layout. at_slot is -1 if the
  ** row was deleted. */
  int at_tablet;
  wl_i32 at_slot;
  wl_u64 at_layout;
  /* The scans of t_delta and t_gone, taken in this epoch, and the rowids at which they stand. */
  sqlite3_stmt *delta, *gone;
  wl_u32 epoch;
  bool has_delta, has_gone, delta_used;
  wl_i64 delta_rowid, gone_rowid;
} wl_row_reader;

wl_status wl_row_reader_open(wl_row_reader *r, wl_tablets *t, wl_error *err) WL_MUST;
void wl_row_reader_close(wl_row_reader *r);
/* Moves to the first row with a rowid from lo to hi. bounds must stay valid until the next start or
** close. */
wl_status wl_row_reader_start(wl_row_reader *r, wl_i64 lo, wl_i64 hi, wl_bound *bounds,
                              int n_bounds, wl_error *err) WL_MUST;
wl_status wl_row_reader_next(wl_row_reader *r, wl_error *err) WL_MUST;
/* A value of the current row. A text lives until the cursor moves. */
wl_status wl_row_reader_value(wl_row_reader *r, int col, wl_val *out, wl_error *err) WL_MUST;

#endif
