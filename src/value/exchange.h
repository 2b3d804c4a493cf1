/*
** Converts values to and from SQLite's. Only this module knows both.
**
** Invariants:
** 1. A value that was read is borrowed: its bytes live as long as SQLite's own.
** 2. Text and blobs of zero bytes stay text and blobs in SQLite. They never become NULL.
** 3. `life` tells SQLite how long the bytes passed to it stay valid: SQLITE_STATIC or
**    SQLITE_TRANSIENT.
*/
#ifndef WL_EXCHANGE_H
#define WL_EXCHANGE_H

#include "base/sqlite.h"
#include "value/value.h"
#include <stdbool.h>

wl_val wl_sqlite_val(sqlite3_value *v);
wl_val wl_sqlite_column(sqlite3_stmt *s, int i);
/* Whether memory ran out while the text was read. */
WL_FN bool wl_sqlite_lost(wl_val v) {
  return v.t == WL_T_TEXT && v.v == 0;
}

int wl_sqlite_bind(sqlite3_stmt *s, int i, wl_val v, sqlite3_destructor_type life);
void wl_sqlite_result(sqlite3_context *ctx, wl_val v, sqlite3_destructor_type life);

#endif
