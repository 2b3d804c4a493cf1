/*
** Kinds of tables that are not SQLite's own: virtual tables with their own reader, whose columns
** the store can hold. A kind registers itself when the library is loaded, and the store knows
** nothing else about it. The only one is src/tablet.
**
** Invariants:
** 1. Everything but owns and describe is called inside a read transaction on the table's database.
** 2. A kind has its own versions, which also change with every write of this connection. So its
**    columns can be used inside write transactions.
*/
#ifndef WL_STORE_KIND_H
#define WL_STORE_KIND_H

#include "column/cache.h"
#include "store/store.h"

/* The version of a table that the open transaction sees. */
typedef struct wl_kind_version {
  wl_u64 own;    /* different for any two states of the table in this process */
  wl_u64 shared; /* if settled: the same for every connection that sees these rows */
  bool settled;  /* this connection has not written to the table in the open transaction */
} wl_kind_version;

typedef struct wl_table_kind {
  const char *loaded_from; /* description for EXPLAIN ANALYZE */
  bool in_segments, rowid_order_only;
  /* Whether a virtual table is of this kind. */
  bool (*owns)(sqlite3 *db, const char *schema, const char *name);
  /* Corrects what PRAGMA table_xinfo reported about its columns. */
  void (*describe)(sqlite3 *db, wl_table *t);
  wl_status (*version)(wl_store *s, const wl_table *t, wl_kind_version *out, wl_error *err);
  wl_i64 (*about)(wl_store *s, const wl_table *t); /* approximate rows; called after version */
  /* Makes what a set of the current version needs besides its columns. out->data is not NULL
  ** afterwards: load() gets it. before: the set of the version before, whose columns may be reused,
  ** or none. */
  wl_status (*open)(wl_store *s, const wl_table *t, const wl_cache_user *before, wl_set_extra *out,
                    wl_error *err);
  /* Loads columns (-1 is the rowid) of the version that `data` was opened for. WL_FULL: they take
  ** more than limit bytes (0: no limit). */
  wl_status (*load)(wl_store *s, const wl_table *t, void *data, const int *cols, int n,
                    size_t limit, wl_column **out, wl_error *err);
} wl_table_kind;

void wl_store_add_kind(const wl_table_kind *kind); /* call before any connection is opened */

#endif
