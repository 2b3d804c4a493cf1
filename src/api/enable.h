/*
** Enables warplite on a connection: finds SQLite's functions, creates the connection's state and
** registers all names for SQL.
*/
#ifndef WL_ENABLE_H
#define WL_ENABLE_H

#include "route/conn.h"

bool wl_api_bind(const sqlite3_api_routines *api); /* false: no SQLite was found */
/* Returns the connection's state, and enables warplite on it first if necessary. NULL: out of
** memory, or the environment has settings that cannot be applied; err says which. */
wl_conn *wl_enable(sqlite3 *db, wl_error *err);
/* Whether this program's sqlite3_set_authorizer() is ours. */
bool wl_authorizer_linked(void);

#endif
