/*
** How all files of the library call SQLite: through the routine table of the SQLite that owns the
** connection, never by linked symbols. So the shared library also works in programs that contain
** their own SQLite.
**
** Statements that the library prepares, steps or executes with sqlite3_prepare_v2 and so on count
** as its own: the application's authorizer is not asked about them and cannot change them.
** Statements of the application go through base/authorizer.h.
*/
#ifndef WL_SQLITE_H
#define WL_SQLITE_H

#include <sqlite3ext.h>

extern const sqlite3_api_routines *sqlite3_api;

int wl_own_prepare_v2(sqlite3 *db, const char *sql, int n_bytes, sqlite3_stmt **out,
                      const char **tail);
int wl_own_prepare_v3(sqlite3 *db, const char *sql, int n_bytes, unsigned flags, sqlite3_stmt **out,
                      const char **tail);
int wl_own_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *arg,
                char **message);
int wl_own_step(sqlite3_stmt *s); /* needed because stepping may prepare it again */

#undef sqlite3_prepare_v2
#undef sqlite3_prepare_v3
#undef sqlite3_exec
#undef sqlite3_step
#define sqlite3_prepare_v2 wl_own_prepare_v2
#define sqlite3_prepare_v3 wl_own_prepare_v3
#define sqlite3_exec       wl_own_exec
#define sqlite3_step       wl_own_step

#endif
