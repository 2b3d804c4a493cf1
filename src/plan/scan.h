/*
** The order in which SQLite would meet the rows of a statement over one table: what decides
** between rows that ORDER BY calls equal, and which rows LIMIT lets through.
**
** Asked by route/statement_text.c when a statement's text is new and that order can be seen.
*/
#ifndef WL_SCAN_H
#define WL_SCAN_H

#include "base/sqlite.h"
#include "sql/bind.h"

/* Rows ascend by this column (-1 is the rowid), or descend; NULLs are the smallest. */
typedef struct wl_scan_key {
  int column;
  wl_u8 coll;
  bool desc;
} wl_scan_key;

typedef struct wl_scan {
  bool storage; /* the order in which the table is kept, and loaded; the keys say it too */
  int n_keys;   /* 0: there is at most one row */
  wl_scan_key *keys;
  int alias; /* the column that is the rowid, or -1 */
} wl_scan;

/* Reads it from SQLite's own program for the statement. WL_NOT_TAKEN where the program is not
** one loop over the table or over one of its indexes. */
wl_status wl_plan_scan(sqlite3 *db, const char *sql, size_t n, const wl_store *store,
                       const wl_table *t, wl_arena *arena, wl_scan *out, wl_error *err) WL_MUST;

/* Where it is known to be that of the rowids. */
wl_status wl_scan_rowids(const wl_table *t, wl_arena *arena, wl_scan *out, wl_error *err) WL_MUST;

/* Makes it the last sort keys of a bound query. */
wl_status wl_scan_apply(wl_arena *arena, const wl_table *t, const wl_scan *s, wl_query *q,
                        wl_error *err) WL_MUST;

#endif
