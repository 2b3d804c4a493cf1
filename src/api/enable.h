/*
** Enabling warplite on a connection: finding SQLite's functions, the connection's state, and all
** that SQL can name.
*/
#ifndef WL_ENABLE_H
#define WL_ENABLE_H

#include "route/conn.h"

bool wl_api_bind(const sqlite3_api_routines *api); /* false: there is no SQLite to be found */
/* The connection's state; enables warplite on it first if need be. NULL: out of memory, or settings
** in the environment that cannot be applied; err says which. */
wl_conn *wl_enable(sqlite3 *db, wl_error *err);
/* Whether SQLite's own sqlite3_set_authorizer() is ours, in this program. */
bool wl_authorizer_linked(void);

#endif
