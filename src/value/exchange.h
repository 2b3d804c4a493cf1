/*
** Values to SQLite and from it: the one place that knows both.
**
** Invariants:
** 1. A value read is borrowed: its bytes live as long as SQLite's own.
** 2. Text of no bytes and blobs of no bytes go to SQLite as such, never as NULL.
** 3. `life` is SQLite's word for how long the bytes given to it stay: SQLITE_STATIC or
**    SQLITE_TRANSIENT.
*/
#ifndef WL_EXCHANGE_H
#define WL_EXCHANGE_H

#include "base/sqlite.h"
#include "value/value.h"
#include <stdbool.h>

wl_val wl_sqlite_val(sqlite3_value *v);
wl_val wl_sqlite_column(sqlite3_stmt *s, int i);
/* Whether memory ran out over the text while it was read. */
WL_FN bool wl_sqlite_lost(wl_val v) {
  return v.t == WL_T_TEXT && v.v == 0;
}

int wl_sqlite_bind(sqlite3_stmt *s, int i, wl_val v, sqlite3_destructor_type life);
void wl_sqlite_result(sqlite3_context *ctx, wl_val v, sqlite3_destructor_type life);

#endif
