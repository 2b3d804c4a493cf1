/*
** Finds which pages must be read from the log of a database in WAL mode, to see the snapshot of the
** open read transaction. SQLite does not tell which snapshot that is. So one of two proofs is
** needed; otherwise the result is WL_NOT_TAKEN.
**
** Both rest on a rule: a checkpoint never copies frames that a reader must not see yet. While a
** reader uses the log, no frame after its snapshot is copied, and the log is not restarted. While a
** reader uses only the file, nothing is copied.
**
** A number of copied frames does not say that each of these frames is in the file. A checkpoint
** copies only the newest frame of each page in the log. If that frame must not be copied yet, the
** page is left out, and its older frames count as copied all the same. So the number is good only
** for snapshots that are not older than the checkpoint's view of the log.
**
** 1. The wal-index, read inside the transaction, says that every frame is copied. Then no page was
**    left out, and the file is the snapshot. For a reader that uses the log, all frames belong to
**    its snapshot. For a reader that uses only the file, it follows from the rule.
** 2. The snapshot was pinned. The index header was the same before and after a transaction began,
**    so that transaction's snapshot is the one of this header. The pager's data version has not
**    changed since; it changes whenever a transaction begins under another header. If also the log
**    was not restarted, and some frames of the snapshot are not copied yet, this reader uses the
**    log. So its frames stay where they are.
**    Only pages without a frame after the pinned number of copied frames are read from the file.
**    That number was read while the index had this very header. So the checkpoints until then knew
**    no newer frame, and a page that they left out has a frame after that number. Later checkpoints
**    write only pages that have a frame after it, too.
*/
#ifndef WL_WAL_H
#define WL_WAL_H

#include "base/sqlite.h"
#include "base/status.h"
#include "value/types.h"

struct wl_store;

/* The wal-index header that belongs to a data version of the pager. */
typedef struct wl_wal_pin {
  bool set;
  wl_u32 version;
  void *file;
  int reprepares; /* of the helper; changes when another file is attached in its place */
  wl_u32 header[12];
  wl_u32 n_copied; /* frames that were copied while the index had this header */
} wl_wal_pin;

/* The pages that must be read from the log. Empty: all are read from the file. */
typedef struct wl_wal_view {
  sqlite3_file *file;
  wl_u32 page_size; /* 0: not in WAL mode, or nothing in the log */
  wl_u32 n;
  wl_u64 *frames; /* page << 32 | frame, sorted, one for each page */
} wl_wal_view;

wl_status wl_wal_view_open(struct wl_store *s, const char *schema, sqlite3_file *file, bool wal,
                           wl_wal_view *out, wl_error *err) WL_MUST;
void wl_wal_view_close(wl_wal_view *v);
wl_i64 wl_wal_find(const wl_wal_view *v, wl_u32 page); /* the page's offset in the log, or -1 */

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

/* Pins the snapshot of the current data version, if that is useful. It must be called inside a
** read transaction that only the store's helper has open. It may end the transaction and begin
** another. */
void wl_wal_pin_make(struct wl_store *s, const char *schema);

#endif
