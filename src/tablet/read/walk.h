/*
** Rows in the order of a key of one column, or those of a range of it: rowids from t_key<k>. For
** cursors (vtab.c), which would scan the whole table otherwise.
**
** Invariants:
** 1. A row whose key is NULL is not in t_key<k>: a walk is for constraints that NULL does not meet.
** 2. Bounds include equality, and only ever leave out rows that cannot meet the constraint.
*/
#ifndef WL_WALK_H
#define WL_WALK_H

#include "tablet/table/table_impl.h"

typedef struct wl_walk {
  sqlite3_stmt *stmt; /* gives rowids one by one … */
  int which;
  wl_u32 epoch;
  wl_i64 *ids; /* … or they are all here */
  wl_i64 n, at;
} wl_walk;

/* Begins. A bound is NULL where there is none. */
wl_status wl_walk_start(wl_walk *w, wl_tablets *t, int key, bool desc, sqlite3_value *lower,
                        sqlite3_value *upper, wl_error *err) WL_MUST;
/* Reads all rowids now and puts them in order. *all false: there are more than most; the walk has
** ended. */
wl_status wl_walk_gather(wl_walk *w, wl_tablets *t, wl_i64 most, bool *all, wl_error *err) WL_MUST;
wl_status wl_walk_next(wl_walk *w, wl_tablets *t, wl_i64 *rowid, bool *end, wl_error *err) WL_MUST;
void wl_walk_stop(wl_walk *w, wl_tablets *t); /* twice is fine */
static inline bool wl_walk_is_on(const wl_walk *w) {
  return w->stmt || w->ids;
}

#endif
