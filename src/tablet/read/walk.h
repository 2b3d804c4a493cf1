/*
** Reads the rowids of rows in the order of a key with one column, or in a range of it, from
** t_key<k>. Without it a cursor (vtab.c) would scan the whole table.
**
** Invariants:
** 1. A row whose key is NULL is not in t_key<k>. So a walk needs a constraint that NULL does not
**    meet.
** 2. Bounds include equality. They only exclude rows that cannot meet the constraint.
*/
#ifndef WL_WALK_H
#define WL_WALK_H

#include "tablet/table/table_impl.h"

/* A walk in progress. Rowids come from stmt one by one, or from ids if wl_walk_gather has read them
** all. */
typedef struct wl_walk {
  sqlite3_stmt *stmt;
  int which; /* the index of stmt in the table's cached walks */
  wl_u32 epoch;
  wl_i64 *ids;
  wl_i64 n, at;
} wl_walk;

/* Begins a walk. lower or upper is NULL if there is no such bound. */
wl_status wl_walk_start(wl_walk *w, wl_tablets *t, int key, bool desc, sqlite3_value *lower,
                        sqlite3_value *upper, wl_error *err) WL_MUST;
/* Reads all rowids and sorts them. *all is false if there are more than most; then the walk has
** ended. */
wl_status wl_walk_gather(wl_walk *w, wl_tablets *t, wl_i64 most, bool *all, wl_error *err) WL_MUST;
wl_status wl_walk_next(wl_walk *w, wl_tablets *t, wl_i64 *rowid, bool *end, wl_error *err) WL_MUST;
void wl_walk_stop(wl_walk *w, wl_tablets *t); /* may be called twice */
static inline bool wl_walk_is_on(const wl_walk *w) {
  return w->stmt || w->ids;
}

#endif
