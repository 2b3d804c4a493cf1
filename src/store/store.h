/*
** What one connection knows of its tables: their shapes, and which columns in the process's cache
** (column/cache.h) are those of the version that it sees. Stands between the binder (shapes), the
** runner (columns) and SQLite.
**
** Invariants (freshness):
** 1. A connection goes on using a set of columns only while schema cookie, data version, file and
**    the helper statement's re-prepare count are those it got the set under, all read inside
**    a read transaction on its database. It gets one by loading the columns itself, or by a key
**    that proves that they are of the same version (identity.h).
** 2. Nothing is read from or put into the cache while the database is in a write
**    transaction of this connection that may have written, or while read_uncommitted or
**    reverse_unordered_selects is on, or of a database in a shared cache. Kinds of tables with
**    versions of their own (kind.h) are used inside write transactions too.
*/
#ifndef WL_STORE_H
#define WL_STORE_H

#include "base/sqlite.h"
#include "column/source.h"
#include "sql/catalog.h"

typedef struct wl_store wl_store;

wl_status wl_store_open(sqlite3 *db, wl_store **out, wl_error *err) WL_MUST;
void wl_store_close(wl_store *s);
/* Finalizes the helper statements (they come back when needed), so that the
** connection can close. */
void wl_store_quiet(wl_store *s);

void wl_store_set_budget(wl_store *s, wl_i64 n_bytes);
wl_i64 wl_store_budget(const wl_store *s);     /* what of it SQLite's hard heap limit leaves */
void wl_store_set_threads(wl_store *s, int n); /* that a load may use; all cores unless told */
/* Called now and then during a load; what is not WL_OK ends it (an interrupt). */
void wl_store_set_check(wl_store *s, wl_status (*check)(void *arg, wl_error *err), void *arg);

/* Told how far a load is; the last call of each has done == total. See warplite_progress(). */
typedef void wl_progress(void *arg, const char *table, sqlite3_int64 done, sqlite3_int64 total);
void wl_store_set_progress(wl_store *s, wl_progress *progress, void *arg);

/* The table a name means now. WL_NOT_TAKEN with the reason for views and the like. */
wl_status wl_store_table(wl_store *s, const char *schema, const char *name, wl_table **out,
                         wl_error *err) WL_MUST;

/* The same, but a view is one too. */
wl_status wl_store_named(wl_store *s, const char *schema, const char *name, wl_table **out,
                         wl_error *err) WL_MUST;

/* How often a shape has been read so far. Reading one makes SQLite check its own copy of
** the schema, so a statement prepared before the count moved may be out of date. */
wl_i64 wl_store_n_shapes(const wl_store *s);

/* Whether a database can be read now: WL_NOT_TAKEN if it is locked or the like. */
wl_status wl_store_readable(wl_store *s, const char *schema, wl_error *err) WL_MUST;

/* WL_NOT_TAKEN for a database that sqlite3_deserialize() made: it may have been made anew, and
** nothing that can be asked, neither cookie nor data version nor file, would have changed. */
wl_status wl_store_steady(wl_store *s, const char *schema, wl_error *err) WL_MUST;

/* Whether SQLite keeps text as we do, for statements without a table, whose shape would say so:
** WL_NOT_TAKEN if not. *n_changes: how often it has been found to have other collations. */
wl_status wl_store_text_like_ours(wl_store *s, wl_u32 *n_changes, wl_error *err) WL_MUST;

/* What the binder asks: tables and views by wl_store_named, collations by trying them. */
wl_catalog wl_store_catalog(wl_store *s);

/* Whether a collation is SQLite's own, as far as trying tells. */
bool wl_store_collation(const wl_store *s, int coll);

/* Ends the read transaction that wl_source_begin opened, whichever table it was for. */
void wl_store_end(wl_store *s);

/* Whether the table with that id is still of the version with that stamp (wl_source_stamp). */
bool wl_store_same(wl_store *s, wl_u64 id, wl_u64 stamp);

/* Holds the read transaction of a table's database, or view's, over several runs of these two. */
wl_status wl_store_hold(wl_store *s, const char *schema, const char *name, wl_error *err) WL_MUST;
void wl_store_release(wl_store *s); /* of all that are held */

/* Calls fn for every table that is known, until it returns something. */
wl_status wl_store_each(wl_store *s, wl_status (*fn)(void *arg, const wl_table *t), void *arg);
/* Bytes of what is cached of its tables. */
size_t wl_store_bytes(const wl_store *s);
/* The connection as the cache knows it. */
const struct wl_cache_member *wl_store_member(const wl_store *s);

/* For tests: whether the last load of a table decoded pages, and if not, why. */
bool wl_store_loaded_by_pages(const wl_table *t, const char **why_not);

#endif
