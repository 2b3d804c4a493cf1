/*
** The order in which SQLite would read the rows of a statement over one table. It decides the order
** of rows that ORDER BY treats as equal, and which rows LIMIT keeps.
**
** Called by route/statement_text.c when a statement's text is new and its result depends on that order.
*/
#ifndef WL_SCAN_H
#define WL_SCAN_H

#include "base/sqlite.h"
#include "sql/bind.h"
#include "store/store.h"

/* Rows are in ascending order of this column (-1: the rowid), or descending. NULLs are the
** smallest. */
typedef struct wl_scan_key {
  int column;
  wl_u8 coll;
  bool desc;
} wl_scan_key;

typedef struct wl_scan {
  bool storage; /* the order in which the table is stored and loaded; the keys state it too */
  int n_keys;   /* 0: there is at most one row */
  wl_scan_key *keys;
  int alias; /* the INTEGER PRIMARY KEY column, which is the rowid, or -1 */
} wl_scan;

/* Reads the order from SQLite's own program for the statement. Returns WL_NOT_TAKEN if the program
** is not one loop over the table or over one of its indexes. */
wl_status wl_plan_scan(sqlite3 *db, const char *sql, size_t n, const wl_store *store,
                       const wl_table *t, wl_arena *arena, wl_scan *out, wl_error *err) WL_MUST;

/* Sets the order if it is known to be rowid order. */
wl_status wl_scan_rowids(const wl_table *t, wl_arena *arena, wl_scan *out, wl_error *err) WL_MUST;

/* Makes the order the last sort keys of a bound query. */
wl_status wl_scan_apply(wl_arena *arena, const wl_table *t, const wl_scan *s, wl_query *q,
                        wl_error *err) WL_MUST;

/* The same for a join whose ORDER BY does not determine the order of all rows: reads from SQLite's
** program in which order it visits the rows of each table, and makes that the last sort keys. The
** query stays as it is if the program is anything but loops over the tables, one inside the other
** (join_scan.c). */
wl_status wl_join_scan_apply(sqlite3 *db, const char *sql, size_t n, wl_store *store,
                             wl_arena *arena, wl_query *q, wl_error *err) WL_MUST;

/* The same for a join whose groups SQLite sorts by the keys of GROUP BY. */
wl_status wl_join_groups_apply(wl_arena *arena, wl_query *q, wl_error *err) WL_MUST;

/* ---- for join_scan.c */
/* The order of a scan of the table, or of its index if index is not NULL. */
wl_status wl_scan_of_tree(sqlite3 *db, const wl_store *store, const wl_table *t, const char *index,
                          bool backwards, wl_arena *arena, wl_scan *out, wl_error *err) WL_MUST;
/* Adds a key as the last one of q->scan, which has room for it. */
wl_status wl_scan_add(wl_arena *arena, const wl_table *t, int source, const wl_scan_key *key,
                      wl_query *q, wl_error *err) WL_MUST;

#endif
