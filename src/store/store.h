/*
** What one connection knows about its tables: their shapes, and which columns in the process's
** cache (column/cache.h) are of the version that it sees. The binder asks it for shapes, the runner
** for columns.
**
** Invariants (freshness):
** 1. A connection keeps using a set of columns only while the schema cookie, the data version, the
**    file and the helper statement's re-prepare count are those under which it got the set, all
**    read inside a read transaction on its database. It gets a set by loading the columns itself,
**    or by a key that proves that they are of the same version (identity.h).
** 2. The cache is not used while the database is in a write transaction of this connection that may
**    have written, while read_uncommitted or reverse_unordered_selects is on, or for a database in
**    a shared cache. Kinds of tables with their own versions (kind.h) are used inside write
**    transactions too.
*/
#ifndef WL_STORE_H
#define WL_STORE_H

#include "base/sqlite.h"
#include "column/source.h"
#include "sql/catalog.h"

typedef struct wl_store wl_store;

wl_status wl_store_open(sqlite3 *db, wl_store **out, wl_error *err) WL_MUST;
void wl_store_close(wl_store *s);
/* Finalizes the helper statements, so that the connection can close. They are prepared again when
** needed. */
void wl_store_quiet(wl_store *s);

void wl_store_set_budget(wl_store *s, wl_i64 n_bytes);
wl_i64 wl_store_budget(const wl_store *s); /* host_budget, limited by SQLite's hard heap limit */
void wl_store_set_threads(wl_store *s, int n); /* threads for a load; default: all cores */
/* Sets a function that is called from time to time during a load. If it does not return WL_OK, the
** load ends (an interrupt). */
void wl_store_set_check(wl_store *s, wl_status (*check)(void *arg, wl_error *err), void *arg);

/* Reports the progress of a load. The last call of each load has done == total. See
** warplite_progress(). */
typedef void wl_progress(void *arg, const char *table, sqlite3_int64 done, sqlite3_int64 total);
void wl_store_set_progress(wl_store *s, wl_progress *progress, void *arg);

/* Finds the table that a name means now. WL_NOT_TAKEN: it is a view, or cannot be read natively;
** err says why. */
wl_status wl_store_table(wl_store *s, const char *schema, const char *name, wl_table **out,
                         wl_error *err) WL_MUST;

/* The same, but also finds views. */
wl_status wl_store_named(wl_store *s, const char *schema, const char *name, wl_table **out,
                         wl_error *err) WL_MUST;

/* How often a shape has been read. Reading one makes SQLite check its own copy of the schema, so a
** statement that was prepared before the count changed may be out of date. */
wl_i64 wl_store_n_shapes(const wl_store *s);

/* WL_NOT_TAKEN if a database cannot be read now, for example because it is locked. */
wl_status wl_store_readable(wl_store *s, const char *schema, wl_error *err) WL_MUST;

/* WL_NOT_TAKEN for a database of sqlite3_deserialize(). The application may replace its contents,
** and then neither cookie nor data version nor file changes. */
wl_status wl_store_steady(wl_store *s, const char *schema, wl_error *err) WL_MUST;

/* For statements without tables: WL_NOT_TAKEN unless SQLite stores text as we do. For others the
** table's shape tells. *n_changes: how often other collations were found. */
wl_status wl_store_text_like_ours(wl_store *s, wl_u32 *n_changes, wl_error *err) WL_MUST;

/* The catalog for the binder: tables and views by wl_store_named(), collations by testing them. */
wl_catalog wl_store_catalog(wl_store *s);

/* Whether a collation is the built-in one, as far as the test shows. */
bool wl_store_collation(const wl_store *s, int coll);

/* Ends the read transaction of wl_source_begin(), for any table. */
void wl_store_end(wl_store *s);

/* Whether the table with that id still has the version with that stamp (wl_source_stamp). */
bool wl_store_same(wl_store *s, wl_u64 id, wl_u64 stamp);

/* Between these two calls, the first read of a database opens a read transaction on it, which stays
** open until the last scope is left. So all reads of a statement see one version, and what the
** first one found (cookie, data version, file) is not asked again. Scopes nest. No statement that
** writes may run inside of one. */
void wl_store_enter(wl_store *s);
void wl_store_leave(wl_store *s);
/* Inside a scope: opens the transaction on the database of a table or view. */
wl_status wl_store_hold(wl_store *s, const char *schema, const char *name, wl_error *err) WL_MUST;

/* Calls fn for every known table, until it returns something other than WL_OK. */
wl_status wl_store_each(wl_store *s, wl_status (*fn)(void *arg, const wl_table *t), void *arg);
/* Bytes in the cache that belong to its tables. */
size_t wl_store_bytes(const wl_store *s);
/* The connection as a member of the cache. */
const struct wl_cache_member *wl_store_member(const wl_store *s);

/* For tests: whether the last load of a table decoded pages, and if not, why. */
bool wl_store_loaded_by_pages(const wl_table *t, const char **why_not);

#endif
