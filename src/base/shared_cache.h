/*
** Databases whose page cache several connections share (sqlite3_enable_shared_cache(),
** SQLITE_OPEN_SHAREDCACHE, cache=shared). There a read transaction is not a snapshot. Only the lock
** that SQLite takes when a statement opens a table separates readers of that table from writers. An
** answer from memory takes no lock.
*/
#ifndef WL_BASE_SHARED_CACHE_H
#define WL_BASE_SHARED_CACHE_H

#include "base/sqlite.h"
#include "base/status.h"
#include <stdbool.h>

/* Whether other connections can share the cache of a database, now or later. If *sure is false, an
** authorizer prevented the test, and *out says whether they share it now. */
wl_status wl_shared_cache(sqlite3 *db, const char *schema, bool *out, bool *sure,
                          wl_error *err) WL_MUST;

#endif
