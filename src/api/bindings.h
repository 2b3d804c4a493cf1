/*
** The values that are bound to a prepared statement. SQLite has no call that returns them, but it
** can move them to another statement, from which they are read.
*/
#ifndef WL_BINDINGS_H
#define WL_BINDINGS_H

#include "base/sqlite.h"
#include "base/status.h"

typedef struct wl_bindings {
  sqlite3_value **values; /* [n], by number of the parameter, from 1 at [0]; copies */
  int n;
} wl_bindings;

/* Copies the bound values of a statement that is not running. */
wl_status wl_bindings_read(sqlite3_stmt *s, wl_bindings *out, wl_error *err) WL_MUST;
/* Binds them to another statement with the same parameters. */
wl_status wl_bindings_bind(const wl_bindings *b, sqlite3_stmt *s, wl_error *err) WL_MUST;
void wl_bindings_close(wl_bindings *b); /* accepts an all-zero one */

/* The text that a statement was prepared from: for a native statement of warplite_prepare(), the
** original. The caller frees it with sqlite3_free(). NULL: out of memory. */
char *wl_original_text(sqlite3_stmt *s);

#endif
