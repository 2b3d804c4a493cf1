/*
** A tablet table of one connection: its directory of tablets, and reading it. The durable form
** is in shadow tables of the same database (docs/format.md):
**
**   t_info     format version, and a random number that changes with every transaction
**   t_tablet   the directory: a row a tablet: rowids, counts, zone maps, delete bitmap
**   t_segment  a blob for each column of each tablet
**   t_dict     dictionaries, in parts
**   t_delta    rows written one by one, not in tablets yet
**   t_gone     rowids of tablet rows deleted one by one, not in the delete bitmaps yet
**   t_key<k>   the k-th UNIQUE or PRIMARY KEY: its columns and the rowid
**
** What the table holds, for a rowid: the row in the delta, if it is there; else nothing, if it is
** gone; else the row of the tablet whose range has it, unless its delete bit is set.
**
** Invariants:
** 1. Tablets have disjoint ranges of rowids and stand in the directory in their order; inside a
**    tablet rowids rise. A tablet has 1 to 65,536 rows, live or dead.
** 2. No rowid is both in the delta and gone; what is gone is in a tablet.
** 3. The directory in memory is that of the transaction at hand after wl_tablets_refresh, which
**    every entry from SQLite calls first. Own writes change it along with the shadow tables; a
**    rollback, of a savepoint too, marks it stale.
** 4. A segment never changes; a changed one is another, with another checksum.
** 5. All writing is through SQL on the user's connection, inside the transaction of the statement
**    at hand.
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

typedef struct wl_tablet {
  wl_i64 id;     /* in t_tablet; segments are id << 12 | column, the rowid's column is n_cols */
  wl_i64 lo, hi; /* rowids of its first and last row, live or dead */
  wl_i32 n_rows, n_dead;
  wl_u64 sum;     /* of its directory row, as the file has it; 0: it has none yet */
  wl_u8 *dead;    /* bit r & 7 of byte r >> 3; NULL: none is */
  wl_zone *zones; /* [n_cols + 1], the rowid last */
} wl_tablet;

typedef struct wl_tablets wl_tablets;

/* The open table of a name, or NULL when it is no tablet table of this connection. Borrowed:
** until control goes back to SQLite. */
wl_tablets *wl_tablets_find(sqlite3 *db, const char *schema, const char *name);

const wl_decl *wl_tablets_decl(const wl_tablets *t);
const char *wl_tablets_name(const wl_tablets *t);
wl_u64 wl_tablets_serial(const wl_tablets *t); /* no other open table has had it */

/* While a run of warplite_prepare()'s changes goes on: xUpdate looks here first. */
struct wl_dmlrun;
void wl_tablets_set_run(wl_tablets *t, struct wl_dmlrun *run);

/* Makes the directory true for the open transaction (a read transaction must be open on the
** database). */
wl_status wl_tablets_refresh(wl_tablets *t, wl_error *err) WL_MUST;

/* After a refresh: */
int wl_tablets_count(const wl_tablets *t);
const wl_tablet *wl_tablets_at(const wl_tablets *t, int i);
/* Moves whenever what the table holds may have moved: own writes, rollbacks, refreshes that found
** another directory. Never the same for two states of the table in this process. */
wl_u64 wl_tablets_version(const wl_tablets *t);
/* A number in the file that is another one after each transaction that wrote to the table. False:
** this connection is writing to it. */
bool wl_tablets_state(const wl_tablets *t, wl_u64 *state);
bool wl_tablets_has_delta(const wl_tablets *t); /* or gone rows */
/* Grows with every plan of SQLite's that reads the table. */
wl_u64 wl_tablets_planned(const wl_tablets *t);
/* About how many rows there are, for planning: those of the delta that stand in place of a tablet's
** are counted twice. Told apart they would cost a scan of the delta for every statement. */
wl_i64 wl_tablets_about(const wl_tablets *t);

/* The blob of a segment, its checksum not looked at yet. Borrowed from SQLite until
** wl_tablets_done_blob. col n_cols is the rowid. */
wl_status wl_tablets_blob(wl_tablets *t, int i, int col, const wl_u8 **blob, size_t *n,
                          wl_error *err) WL_MUST;
void wl_tablets_done_blob(wl_tablets *t);

/* The dictionary of a column as the file has it: codes in the order in which texts came. NULL: it
** has none. sorted: they rise, so code order is text order. Borrowed until the next write or
** refresh; its identity is id, which changes when it grows. Codes mean the same texts as long as
** first_id is the same. */
typedef struct wl_file_dict {
  wl_i32 n;
  wl_u64 *places;
  wl_u8 *heap;
  size_t n_heap;
  bool sorted;
  wl_u64 id, first_id;
} wl_file_dict;
wl_status wl_tablets_dict(wl_tablets *t, int col, const wl_file_dict **out, wl_error *err) WL_MUST;

/* A segment decoded, with the column's dictionary. Shared and counted: hold until dropped. */
typedef struct wl_held_segment wl_held_segment;
wl_status wl_tablets_segment(wl_tablets *t, int i, int col, wl_held_segment **out,
                             wl_error *err) WL_MUST;
void wl_held_drop(wl_held_segment *h);                      /* NULL is fine */
wl_val wl_held_value(const wl_held_segment *h, wl_i32 row); /* texts live as long as h is held */
const wl_segment *wl_held_segment_of(const wl_held_segment *h, bool *coded);

/*
** The live rows whose rowids lie in the range of tablet i (the first one's begins at the least
** integer, each ends before the next begins), the delta merged in: chunks of up to 65,536 rows,
** in order. A table without tablets has one range, i = 0.
*/
typedef struct wl_merge wl_merge;
wl_status wl_merge_open(wl_tablets *t, int i, const int *cols, int n_cols, wl_merge **out,
                        wl_error *err) WL_MUST;
/* Fills stages[0..n_cols) with the next rows; *n_rows 0 at the end. */
wl_status wl_merge_next(wl_merge *m, wl_stage *stages, wl_i32 *n_rows, wl_error *err) WL_MUST;
void wl_merge_close(wl_merge *m);
/* Whether the delta or the gone have rows in the range of tablet i. */
wl_status wl_merge_needed(wl_tablets *t, int i, bool *out, wl_error *err) WL_MUST;

#endif
