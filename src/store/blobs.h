/*
** Large blobs of a table by their rowids, from the pages of its b-tree: those of a tablet table's
** segments. A blob's pages mostly stand in a row and are read in one go, where SQLite would read
** them one by one. Stands on pages.h, beside btree.h.
**
** Invariants:
** 1. The table has the columns (id INTEGER PRIMARY KEY, data BLOB).
** 2. Pages may hold anything: every place and length is checked before it is used. What does not
**    fit is not found, and SQLite is asked instead.
** 3. A reader belongs to one thread; any number of them share the wl_pages.
*/
#ifndef WL_BLOBS_H
#define WL_BLOBS_H

#include "store/pages.h"

typedef struct wl_blobs wl_blobs;

wl_status wl_blobs_open(wl_pages *p, wl_u32 root, wl_blobs **out, wl_error *err) WL_MUST;
void wl_blobs_close(wl_blobs *b); /* NULL is fine */

/* The n bytes of the blob of a row. False: there is no such row, or it is another size. */
bool wl_blobs_read(wl_blobs *b, wl_i64 rowid, wl_u8 *out, size_t n);

#endif
