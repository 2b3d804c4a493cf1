/*
** What SQLite's virtual table callbacks have in common, whoever's table it is.
*/
#ifndef WL_BASE_VTAB_H
#define WL_BASE_VTAB_H

#include "base/sqlite.h"
#include "base/status.h"

/* Sets the message of a callback that fails; copied. */
void wl_vtab_say(sqlite3_vtab *v, const char *text);
/* The same of an error; gives what the callback returns. */
int wl_vtab_fail(sqlite3_vtab *v, const wl_error *err);

/* xDisconnect, and xClose, of what is one block of SQLite's memory. */
int wl_vtab_free(sqlite3_vtab *v);
int wl_vtab_free_cursor(sqlite3_vtab_cursor *c);
/* xOpen: a cursor of that many bytes, zeroed. */
int wl_vtab_new_cursor(size_t n_bytes, sqlite3_vtab_cursor **out);

#endif
