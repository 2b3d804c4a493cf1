/*
** Detects that a ROLLBACK has ended running statements; see watch.c.
*/
#ifndef WL_WATCH_H
#define WL_WATCH_H

#include "base/sqlite.h"
#include "value/types.h"

struct wl_conn;

typedef struct wl_watch {
  sqlite3_stmt *helper;
  bool on_row;
  int n_watching;
  wl_i64 n_aborts;
} wl_watch;

/* Call when a native statement starts to return rows. Returns the value for wl_watch_aborted(). */
wl_i64 wl_watch_open(struct wl_conn *c);
void wl_watch_close(struct wl_conn *c);
bool wl_watch_aborted(struct wl_conn *c, wl_i64 since);
/* Whether SQLite would read a table at the next step of the statement. If not, it returns rows that
** it has already sorted, and a ROLLBACK does not end it. */
bool wl_watch_matters(struct wl_conn *c, const char *sql);
/* Finalizes the helper statement. */
void wl_watch_quiet(wl_watch *w);

#endif
