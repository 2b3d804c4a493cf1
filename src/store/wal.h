/*
** A database in WAL mode: which frames of the log stand for pages of the file in the
** snapshot of the open read transaction. SQLite does not tell which snapshot that is, so
** it is proved, in one of two ways, or the answer is no.
**
** A checkpoint never copies frames that a reader must not see yet: while a reader uses the
** log, no frame beyond its snapshot is copied and the log is not restarted; while a reader
** uses the file alone, nothing is copied.
**
** 1. The wal-index, read inside the transaction, says that every frame is copied. Then the
**    file is the snapshot: a reader of the log has all of them in its snapshot, and for a
**    reader of the file it is so by the rule above.
** 2. The snapshot was pinned: the index header was the same before a transaction began and
**    after, so that transaction's snapshot was this header; and the pager's data version
**    has not moved since, which it does whenever a transaction begins under another header.
**    If besides the log was not restarted and frames of the snapshot are not copied yet,
**    this reader uses the log, so its frames stay where they are.
*/
#ifndef WL_WAL_H
#define WL_WAL_H

#include "base/sqlite.h"
#include "base/status.h"
#include "value/types.h"

struct wl_store;

/* The wal-index header that a data version of the pager stands for. */
typedef struct wl_wal_pin {
  bool set;
  wl_u32 version;
  void *file;
  int reprepares; /* of the helper: moves when another file is attached in its place */
  wl_u32 header[12];
} wl_wal_pin;

/* Pages that are to be read from the log. Empty: all are in the file. */
typedef struct wl_wal_view {
  sqlite3_file *file;
  wl_u32 page_size; /* 0: not in WAL mode, or nothing in the log */
  wl_u32 n;
  wl_u64 *frames; /* page << 32 | frame, sorted, one a page */
} wl_wal_view;

wl_status wl_wal_view_open(struct wl_store *s, const char *schema, sqlite3_file *file, bool wal,
                           wl_wal_view *out, wl_error *err) WL_MUST;
void wl_wal_view_close(wl_wal_view *v);
wl_i64 wl_wal_find(const wl_wal_view *v, wl_u32 page); /* offset in the log, or -1 */

/* The wal-index header (12 words) of the open transaction's snapshot, or one with the same rows;
** see identity.h. *no_frames: all pages are in the file. False: it cannot be proved. */
bool wl_wal_version(struct wl_store *s, const char *schema, sqlite3_file *file, wl_u32 *header,
                    bool *no_frames);

/* The header before a step that may begin the read transaction of an explicit one, which cannot be
** ended and begun again for a pin. end: after the step; pins the header if it is still the same. */
typedef struct wl_wal_watch {
  bool on;
  sqlite3_file *file;
  wl_u32 header[12];
} wl_wal_watch;
void wl_wal_watch_begin(struct wl_store *s, const char *schema, wl_wal_watch *w);
void wl_wal_watch_end(struct wl_store *s, const char *schema, const wl_wal_watch *w);

/* Inside a read transaction of the store's helper alone: makes the pin for the version that
** is current, where it is of use. It may end the transaction and begin another. */
void wl_wal_pin_make(struct wl_store *s, const char *schema);

#endif
