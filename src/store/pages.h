/*
** Reads the pages of a database file as the open read transaction sees them, through SQLite's own
** file handle. The b-tree loader (btree.c) uses it.
**
** Invariants:
** 1. The file is never opened here, because closing our own descriptor would drop SQLite's locks.
** 2. wl_pages_open returns WL_OK only if every page of the transaction's snapshot can be found:
**    the database has a rollback journal, or a WAL with one of the two proofs in wal.h.
** 3. Only one thread at a time uses a file handle, because some builds of SQLite move the file
**    position when they read.
** 4. A wl_pages is valid while the read transaction is open and the connection's mutex is held.
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
  bool at_once; /* several threads may read at once */
  pthread_mutex_t lock;
} wl_pages;

/* WL_NOT_TAKEN, with the reason, if not all pages can be read. */
wl_status wl_pages_open(wl_store *s, const char *schema, wl_pages *out, wl_error *err) WL_MUST;
void wl_pages_close(wl_pages *p);

/* Reads n pages, starting at page first. False: they cannot be read, or do not exist. */
bool wl_pages_read(wl_pages *p, wl_u32 first, wl_u32 n, wl_u8 *buf);

#endif
