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

/* xConnect of an eponymous table: declares it and makes a sqlite3_vtab of that many bytes, zeroed
** but for what SQLite fills in. direct_only: no view or trigger may name it. */
int wl_vtab_new(sqlite3 *db, const char *declaration, bool direct_only, size_t n_bytes,
                sqlite3_vtab **out);
/* xBestIndex of a table whose hidden columns, from `first` on, are arguments: each that is given by
** equality becomes an argument of xFilter. *n_given: how many there are. *text: the constraint that
** gives the first of them, or -1. SQLITE_CONSTRAINT: one is not usable in this order of loops. */
int wl_vtab_arguments(sqlite3_index_info *info, int first, int *n_given, int *text);

/* xDisconnect and xClose for objects that are one block of SQLite's memory. */
int wl_vtab_free(sqlite3_vtab *v);
int wl_vtab_free_cursor(sqlite3_vtab_cursor *c);
/* xOpen: allocates a zeroed cursor of n_bytes. */
int wl_vtab_new_cursor(size_t n_bytes, sqlite3_vtab_cursor **out);

#endif
