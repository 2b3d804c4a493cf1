/*
** The inside of the module `tablet`, shared by vtab.c (opening, transactions, cursors), vtab_plan.c
** (xBestIndex), vtab_filter.c (xFilter) and vtab_write.c (xUpdate).
**
** xBestIndex passes its plan to xFilter in idxNum and idxStr. idxStr describes each argument:
**   r<op>        a constraint on the rowid
**   k<col>;      a column of the key that is looked up; all its columns are given
**   z<op><col>;  a constraint that zone maps can use
**   w<op><col>;  the same, on the column of the key that the cursor walks along
** Z and W mean the same as z and w; their value is a literal. idxNum is key + 1 if a key is looked
** up, and -(key + 1) if the cursor walks along a key. In a walk whose rows must come in the order
** of the key, idxStr begins with o (ascending) or d (descending).
*/
#ifndef WL_TABLET_VTAB_IMPL_H
#define WL_TABLET_VTAB_IMPL_H

#include "base/vtab.h"
#include "tablet/read/cursor.h"
#include "tablet/read/walk.h"

typedef struct wl_tablet_table {
  sqlite3_vtab base;
  wl_tablets *t;
} wl_tablet_table;

typedef struct wl_tablet_cursor {
  sqlite3_vtab_cursor base;
  wl_row_reader rows;
  wl_bound *bounds;
  int n_bounds;
  wl_walk walk;  /* if it is on, it gives the rowids of the rows */
  wl_i64 lo, hi; /* rowids outside this range are skipped in a walk */
} wl_tablet_cursor;

WL_FN bool wl_tablets_is_rowid(const wl_tablets *t, int col) {
  return col < 0 || col == t->decl->rowid_col;
}

/* About how many rows the table has, for the cost of a plan. */
wl_i64 wl_tablets_rows_about(const wl_tablets *t);

int wl_tablet_best_index(sqlite3_vtab *v, sqlite3_index_info *info);
int wl_tablet_filter(sqlite3_vtab_cursor *p, int idx, const char *text, int argc,
                     sqlite3_value **argv);
int wl_tablet_next(sqlite3_vtab_cursor *p);
void wl_tablet_drop_bounds(wl_tablet_cursor *c);
int wl_tablet_update(sqlite3_vtab *p, int argc, sqlite3_value **argv, sqlite3_int64 *rowid);

#endif
