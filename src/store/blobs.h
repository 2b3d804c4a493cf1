/*
** Reads large blobs of a table by rowid, from the pages of its b-tree. It is used for the segments
** of tablet tables. The pages of a blob are mostly consecutive and are read together; SQLite would
** read them one by one.
**
** Invariants:
** 1. The table has the columns (id INTEGER PRIMARY KEY, data BLOB).
** 2. The file may contain anything. Every place and length is checked before it is used. If
**    something does not fit, the blob is not found and the caller asks SQLite instead.
** 3. A reader belongs to one thread. Any number of readers may share the wl_pages.
*/
#ifndef WL_BLOBS_H
#define WL_BLOBS_H

#include "store/pages.h"

typedef struct wl_blobs wl_blobs;

wl_status wl_blobs_open(wl_pages *p, wl_u32 root, wl_blobs **out, wl_error *err) WL_MUST;
void wl_blobs_close(wl_blobs *b); /* b may be NULL */

/* Reads the blob of a row, which has n bytes. False: there is no such row, or it has another
** size. */
bool wl_blobs_read(wl_blobs *b, wl_i64 rowid, wl_u8 *out, size_t n);

#endif
