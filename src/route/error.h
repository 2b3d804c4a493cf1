/*
** Sets the connection's error, as sqlite3_errcode() and sqlite3_errmsg() return it.
*/
#ifndef WL_ROUTE_ERROR_H
#define WL_ROUTE_ERROR_H

#include "base/sqlite.h"

/* Sets an error with the given code and message. Returns the code. */
int wl_fail_prepare(sqlite3 *db, int code, const char *message);
/* Clears an error that our own statements left, as a successful prepare does. */
void wl_clear_error(sqlite3 *db);

#endif
