/*
** The pages of a database file as the open read transaction sees them, read through
** SQLite's own file handle. Stands between the file and the b-tree loader (btree.c).
**
** Invariants:
** 1. The file is never opened here: closing a descriptor of ours would drop SQLite's locks.
** 2. wl_pages_open says WL_OK only if every page of the transaction's snapshot can be told:
**    a rollback journal, or a WAL under one of the two proofs in wal.c.
** 3. One thread at a time is inside a file handle; not every build of SQLite reads without
**    moving the file position.
** 4. Valid while the read transaction is open and the connection's mutex is held.
*/
#ifndef WL_PAGES_H
#define WL_PAGES_H

#include "store/store_impl.h"
#include <pthread.h>

typedef struct wl_pages {
  sqlite3_file *file;
  wl_u32 page_size, n_pages;
  bool auto_vacuum; /* there are pointer-map pages */
  wl_wal_view wal;
  pthread_mutex_t lock;
} wl_pages;

/* WL_NOT_TAKEN with the reason where the pages are not all to be had. */
wl_status wl_pages_open(wl_store *s, const char *schema, wl_pages *out, wl_error *err) WL_MUST;
void wl_pages_close(wl_pages *p);

/* n pages from first on into buf. False: they cannot be read, or are not in the database. */
bool wl_pages_read(wl_pages *p, wl_u32 first, wl_u32 n, wl_u8 *buf);

#endif
