/*
** A tablet table of one connection: its directory of tablets, and how to read it. The table is
** stored in shadow tables of the same database (docs/format.md):
**
**   t_info     format version, and a random number that changes with every transaction
**   t_tablet   the directory: one row per tablet with rowids, counts, zone maps, delete bitmap
**   t_segment  a blob for each column of each tablet
**   t_dict     dictionaries, in parts
**   t_delta    rows written one by one that are not in tablets yet
**   t_gone     rowids of tablet rows deleted one by one that are not in delete bitmaps yet
**   t_key<k>   the k-th UNIQUE or PRIMARY KEY: its columns and the rowid
**
** To find the row of a rowid: if t_delta has the rowid, the row is there. Otherwise, if t_gone has
** it, there is no row. Otherwise the row is in the tablet whose range contains the rowid, unless
** its delete bit is set.
**
** Invariants:
** 1. Tablets have disjoint ranges of rowids, and the directory is sorted by them. Inside a tablet
**    rowids rise. A tablet has 1 to 65,536 rows, live or dead.
** 2. No rowid is both in t_delta and in t_gone. A rowid in t_gone is in a tablet.
** 3. After wl_tablets_refresh, the directory in memory is the one that the open transaction sees.
**    Every call from SQLite refreshes first. Our own writes change the directory along with the
**    shadow tables. A rollback, also to a savepoint, marks it stale.
** 4. A segment never changes. An update writes a new segment with another checksum, or a patch with
**    the new values of a few rows (patch.c), which the tablet's directory row holds.
** 5. All writes are SQL statements on the user's connection, inside the transaction of the user's
**    statement.
** 6. Shadow tables are ordinary tables with nothing attached (shadow_shape.c), and no step of a
**    statement on them leads back to a tablet table of the connection (wl_tablets_step).
*/
#ifndef WL_TABLETS_H
#define WL_TABLETS_H

#include "base/sqlite.h"
#include "column/column.h"
#include "column/dict.h"
#include "tablet/format/codec.h"
#include "tablet/table/declare.h"

/* New values for a few rows of a segment; see patch.c. */
typedef struct wl_patch {
  atomic_int refs;
  int col;
  wl_i32 n;            /* rows */
  wl_zone zone;        /* of the blob */
  wl_u64 sum;          /* identifies the segment with this patch, as zone.sum does without one */
  const wl_u16 *slots; /* [n] the rows, ascending */
  const wl_u8 *blob;   /* their values, encoded like a segment */
} wl_patch;
enum { WL_PATCH_ROWS = 2048 }; /* the most rows of a patch */

typedef struct wl_tablet {
  wl_i64 id;     /* in t_tablet; its segments are id << 12 | column, n_cols for the rowid */
  wl_i64 lo, hi; /* rowids of its first and last row, live or dead */
  wl_i32 n_rows, n_dead;
  wl_u64 sum;         /* checksum of its directory row in the file; 0: there is no row yet */
  wl_u8 *dead;        /* row r is dead if bit r & 7 of byte r >> 3 is set; NULL: none is dead */
  wl_zone *zones;     /* [n_cols + 1], the rowid last */
  wl_patch **patches; /* [n_patches], held, in the order of their columns */
  int n_patches;
} wl_tablet;

const wl_patch *wl_tablet_patch(const wl_tablet *a, int col); /* or NULL */
/* Identifies the content of a column in a tablet: its segment with its patch. */
wl_u64 wl_tablet_content(const wl_tablet *a, int col);
wl_patch *wl_patch_hold(const wl_patch *p); /* accepts NULL */
void wl_patch_drop(wl_patch *p);            /* accepts NULL */
/* Decodes the values of a patch. n_codes: as max_code of wl_codec_read. */
wl_status wl_patch_decode(const wl_patch *p, wl_i64 n_codes, wl_segment *out,
                          wl_error *err) WL_MUST;
/* Whether the values of a part of the rows (a segment or its patch) can be what the directory says
** of all. */
bool wl_zone_covers(const wl_zone *z, const wl_zone *part);

typedef struct wl_tablets wl_tablets;

/* The open tablet table of this name, or NULL if this connection has none. Valid until control
** returns to SQLite. */
wl_tablets *wl_tablets_find(sqlite3 *db, const char *schema, const char *name);

const wl_decl *wl_tablets_decl(const wl_tablets *t);
const char *wl_tablets_name(const wl_tablets *t);
wl_u64 wl_tablets_serial(const wl_tablets *t); /* unique among all tables ever opened */

/* Sets the run of warplite_prepare()'s changes that is in progress. xUpdate looks at it first. */
struct wl_dmlrun;
void wl_tablets_set_run(wl_tablets *t, struct wl_dmlrun *run);

/* Makes the directory match what the open transaction sees. A read transaction must be open on the
** database. */
wl_status wl_tablets_refresh(wl_tablets *t, wl_error *err) WL_MUST;

/* After a refresh: */
int wl_tablets_count(const wl_tablets *t);
const wl_tablet *wl_tablets_at(const wl_tablets *t, int i);
/* Changes whenever the table's content may have changed: by own writes, rollbacks, and refreshes
** that found another directory. Two states of the table never have the same version in this
** process. */
wl_u64 wl_tablets_version(const wl_tablets *t);
/* A number in the file that is another one after each transaction that wrote to the table. False:
** this connection is writing to it. */
bool wl_tablets_state(const wl_tablets *t, wl_u64 *state);
bool wl_tablets_has_delta(const wl_tablets *t); /* or gone rows */
wl_i64 wl_tablets_n_delta(const wl_tablets *t); /* rows of t_delta */
/* Counts the plans of SQLite that read the table. */
wl_u64 wl_tablets_planned(const wl_tablets *t);
/* An estimate of the number of rows, for planning. A delta row that replaces a tablet row is
** counted twice; an exact count would have to scan the delta for every statement. */
wl_i64 wl_tablets_about(const wl_tablets *t);

/* The blob of a segment. Its checksum is not checked yet. SQLite owns it until
** wl_tablets_done_blob. col n_cols is the rowid. */
wl_status wl_tablets_blob(wl_tablets *t, int i, int col, const wl_u8 **blob, size_t *n,
                          wl_error *err) WL_MUST;
void wl_tablets_done_blob(wl_tablets *t);

/*
** The dictionary of a column in the file; NULL if it has none. Texts get codes in the order in
** which they were added. sorted: code order is text order. The dictionary is valid until the next
** write or refresh. id changes when it grows. As long as first_id is the same, codes mean the same
** texts.
*/
typedef struct wl_file_dict {
  wl_i32 n;
  wl_u64 *places;
  wl_u8 *heap;
  size_t n_heap;
  bool sorted;
  wl_u64 id, first_id;
} wl_file_dict;
wl_status wl_tablets_dict(wl_tablets *t, int col, const wl_file_dict **out, wl_error *err) WL_MUST;

/* A decoded segment with the column's dictionary. It is shared and reference counted: valid until
** the caller drops it. */
typedef struct wl_cached_segment wl_cached_segment;
wl_status wl_tablets_segment(wl_tablets *t, int i, int col, wl_cached_segment **out,
                             wl_error *err) WL_MUST;
void wl_cached_drop(wl_cached_segment *h);                      /* h may be NULL */
wl_val wl_cached_value(const wl_cached_segment *h, wl_i32 row); /* texts live as long as h */
const wl_segment *wl_cached_segment_of(const wl_cached_segment *h, bool *coded);

/*
** The live rows whose rowids lie in the range of tablet i, in order of rowid, with the delta merged
** in. They come in chunks of up to 65,536 rows. The range of the first tablet begins at the least
** integer; each range ends where the next begins. A table without tablets has one range, i = 0.
*/
typedef struct wl_merge wl_merge;
wl_status wl_merge_open(wl_tablets *t, int i, const int *cols, int n_cols, wl_merge **out,
                        wl_error *err) WL_MUST;
/* Fills stages[0..n_cols) with the next rows; *n_rows 0 at the end. */
wl_status wl_merge_next(wl_merge *m, wl_stage *stages, wl_i32 *n_rows, wl_error *err) WL_MUST;
void wl_merge_close(wl_merge *m);
/* Whether t_delta or t_gone has rowids in the range of tablet i. */
wl_status wl_merge_needed(wl_tablets *t, int i, bool *out, wl_error *err) WL_MUST;

#endif
