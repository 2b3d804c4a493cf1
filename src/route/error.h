/*
** The connection's error, as sqlite3_errcode() and sqlite3_errmsg() give it.
*/
#ifndef WL_ROUTE_ERROR_H
#define WL_ROUTE_ERROR_H

#include "base/sqlite.h"

/* Fails with a code and message of ours. Returns the code. */
int wl_fail_prepare(sqlite3 *db, int code, const char *message);
/* Clears what statements of our own left there, as a prepare that went well does. */
void wl_clear_error(sqlite3 *db);

#endif
