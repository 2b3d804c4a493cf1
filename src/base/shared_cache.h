/*
** Databases whose page cache several connections share (sqlite3_enable_shared_cache(),
** SQLITE_OPEN_SHAREDCACHE, cache=shared). There a read transaction is no snapshot: a connection is
** kept from a table's rows, and others from writing them, only by the lock that SQLite takes when
** a statement opens that table. What is answered from memory takes no lock.
*/
#ifndef WL_BASE_SHARED_CACHE_H
#define WL_BASE_SHARED_CACHE_H

#include "base/sqlite.h"
#include "base/status.h"
#include <stdbool.h>

/* Whether other connections can share the cache of a database, now or later. *sure false: an
** authorizer keeps us from knowing, and it is whether they do so now. */
wl_status wl_shared_cache(sqlite3 *db, const char *schema, bool *out, bool *sure,
                          wl_error *err) WL_MUST;

#endif
