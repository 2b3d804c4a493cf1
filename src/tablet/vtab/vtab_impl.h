/*
** The inside of the module `tablet`, shared by vtab.c (life, transactions, the cursor's steps),
** vtab_plan.c (xBestIndex), vtab_filter.c (xFilter) and vtab_write.c (xUpdate).
**
** What xBestIndex tells xFilter. idxStr lists what each argument is: a letter and numbers.
**   r<op>        a constraint on the rowid
**   k<key>       the next column of a key, all of which are given
**   z<op><col>;  a constraint that zone maps can use
**   w<op><col>;  the same, on the column of the key that is walked along
** idxNum is the key + 1 where one is looked up, -(key + 1) where one is walked along. Such a text
** begins with o or d where the rows come in the order of the key, rising or falling. Z and W are z
** and w where the value is a literal.
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
  wl_rows rows;
  wl_bound *bounds;
  int n_bounds;
  wl_walk walk;  /* on: the rows are those that it gives … */
  wl_i64 lo, hi; /* … and whose rowids lie here */
} wl_tablet_cursor;

WL_FN bool wl_tablets_is_rowid(const wl_tablets *t, int col) {
  return col < 0 || col == t->decl->rowid_col;
}

/* How many rows the table has, for estimates. */
wl_i64 wl_tablets_rows_about(const wl_tablets *t);

int wl_tablet_best_index(sqlite3_vtab *v, sqlite3_index_info *info);
int wl_tablet_filter(sqlite3_vtab_cursor *p, int idx, const char *text, int argc,
                     sqlite3_value **argv);
int wl_tablet_next(sqlite3_vtab_cursor *p);
void wl_tablet_drop_bounds(wl_tablet_cursor *c);
int wl_tablet_update(sqlite3_vtab *p, int argc, sqlite3_value **argv, sqlite3_int64 *rowid);

#endif
