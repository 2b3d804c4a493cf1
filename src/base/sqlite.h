/*
** SQLite as every file of the library sees it: through the routine table of the
** SQLite that owns the connection, never by linked symbol, so that the one shared
** library serves programs that carry a SQLite of their own.
*/
#ifndef WL_SQLITE_H
#define WL_SQLITE_H

#include <sqlite3ext.h>

extern const sqlite3_api_routines *sqlite3_api;

#endif
