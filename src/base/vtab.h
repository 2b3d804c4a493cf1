/*
** Helpers for the callbacks of all our virtual tables.
*/
#ifndef WL_BASE_VTAB_H
#define WL_BASE_VTAB_H

#include "base/sqlite.h"
#include "base/status.h"

/* Sets the error message of a callback. The text is copied. */
void wl_vtab_say(sqlite3_vtab *v, const char *text);
/* Sets the error message from err. Returns the result code for the callback. */
int wl_vtab_fail(sqlite3_vtab *v, const wl_error *err);

/* xDisconnect and xClose for objects that are one block of SQLite's memory. */
int wl_vtab_free(sqlite3_vtab *v);
int wl_vtab_free_cursor(sqlite3_vtab_cursor *c);
/* xOpen: allocates a zeroed cursor of n_bytes. */
int wl_vtab_new_cursor(size_t n_bytes, sqlite3_vtab_cursor **out);

#endif
