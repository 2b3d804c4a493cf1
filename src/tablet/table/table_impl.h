/*
** The inside of wl_tablets, shared by the files of src/tablet.
*/
#ifndef WL_TABLETS_IMPL_H
#define WL_TABLETS_IMPL_H

#include "tablet/table/table.h"
#include "tablet/write/write.h"
#include "value/exchange.h"
#include "value/scratch.h"

/* The newest format version that is read. A table has format 1 until it gets its first patch. */
enum { WL_FORMAT = 2, WL_FORMAT_PATCHES = 2 };

/* Statements on the shadow tables. shadow.c has their SQL. */
typedef enum wl_shadow {
  WL_SH_INFO_GET,
  WL_SH_INFO_SET,
  WL_SH_INFO_ADD,
  WL_SH_INFO_PLACE,
  WL_SH_RECOUNT, /* like INFO_SET, but writes the row n times, so that changes() is n */
  WL_SH_TABLETS,
  WL_SH_TABLET_PUT,
  WL_SH_TABLET_DELETE,
  WL_SH_SEGMENT_GET,
  WL_SH_SEGMENT_PUT,
  WL_SH_SEGMENT_DELETE,
  WL_SH_DICT_LIST,
  WL_SH_DICT_GET,
  WL_SH_DICT_PUT,
  WL_SH_DICT_CLEAR,
  WL_SH_DELTA_HAS,
  WL_SH_DELTA_GET,
  WL_SH_DELTA_PUT,
  WL_SH_DELTA_DELETE,
  WL_SH_DELTA_CLEAR,
  WL_SH_DELTA_COUNT,
  WL_SH_DELTA_MAX,
  WL_SH_DELTA_RANGE, /* the number, the least and the greatest of the rowids in a range */
  WL_SH_DELTA_SCAN,
  WL_SH_GONE_HAS,
  WL_SH_GONE_PUT,
  WL_SH_GONE_DELETE,
  WL_SH_GONE_CLEAR,
  WL_SH_GONE_COUNT,
  WL_SH_GONE_RANGE,
  WL_SH_GONE_SCAN,
  WL_SH_N
} wl_shadow;

enum { WL_KEY_FIND, WL_KEY_PUT, WL_KEY_DELETE, WL_KEY_TEXTS, WL_KEY_NUMBERS, WL_KEY_N };

/* A dictionary in memory. It is reference counted, because cached segments refer to it. */
typedef struct wl_dict_box {
  int refs;
  wl_file_dict d;
  size_t size_places, size_heap;
  int n_parts;
  wl_u64 *sums;   /* [n_parts] */
  wl_u32 *slots;  /* hash table of code + 1; NULL until the first lookup of a text */
  wl_u32 n_slots; /* a power of two */
} wl_dict_box;

struct wl_cached_segment {
  int refs; /* one of them belongs to the cache */
  wl_cached_segment *next, *newer, *older;
  int col;
  wl_u64 sum;
  bool coded;
  wl_segment s;
  wl_dict_box *dict; /* if coded: counts as a reference */
  size_t n_bytes;
};

enum { WL_CACHE_SLOTS = 1024, WL_CACHE_BYTES = 128 << 20 };

/* See spill.c. */
enum { WL_SPILL_LEVELS = 16 };
typedef struct wl_spill {
  int n_savepoints;               /* open savepoints */
  int n_spilled[WL_SPILL_LEVELS]; /* pages SQLite had spilled when each savepoint was opened */
  int limit;                      /* SQLite's own limit, to be restored; 0: it is not changed */
  unsigned n_writes;
  char mode;             /* journal mode: 'w' WAL, 'o' another, 0 not asked yet */
  bool safe;             /* the newest savepoint needs no protection */
  bool spilling_allowed; /* SQLite may spill although a savepoint is open */
  bool must_roll_back;   /* the transaction must not be committed */
} wl_spill;

struct wl_tablets {
  wl_tablets *next;
  int refs; /* how many of SQLite's table objects are this table */
  sqlite3 *db;
  wl_u64 serial; /* see wl_tablets_serial */
  char *schema, *name;
  wl_arena arena;
  wl_decl *decl;
  int n_cols;
  sqlite3_stmt *stmts[WL_SH_N];
  sqlite3_stmt **keys; /* [n_keys * WL_KEY_N] */
  bool reading;        /* WL_SH_SEGMENT_GET stands on a row */
  /* The re-prepare count of WL_SH_INFO_GET plus one when the shapes of the shadow tables were last
  ** checked; 0: not checked yet. */
  int shapes_at;
  bool shared;                 /* its database is in a shared cache: see wl_tablets_refresh */
  sqlite3_stmt *uncommitted;   /* PRAGMA read_uncommitted, used in a shared cache */
  sqlite3_stmt *idle[WL_SH_N]; /* cached scan statements that are not in use */
  sqlite3_stmt **walks;        /* [n_keys * WL_WALK_N] cached walks not in use, or NULL */
  wl_u32 epoch;                /* statements prepared in an earlier epoch are not cached */

  wl_tablet *tablets;
  int n_tablets, size_tablets;
  wl_i64 id;      /* from t_info; no other table has it, not even one of the same name */
  wl_i64 last_id; /* the largest id of a tablet */
  wl_u64 sums;    /* the sum of all tablets' sums; t_info has it too, so a missing one is noticed */
  bool loaded, stale, dirty;
  bool info_damaged; /* t_info could not be read */
  bool newer_format; /* t_info has a newer format than this warplite knows */
  bool stamped;      /* this transaction has written its state to the file */
  wl_i64 format;     /* of the file */
  bool defer_sums;   /* the sum of the tablets' sums is written later: wl_tablets_write_sums */
  wl_spill spill;
  wl_i64 largest_rowid; /* the largest rowid, if version == largest_version */
  wl_u64 largest_version;
  wl_i64 next_rowid; /* one more than the largest rowid, if version == next_version */
  wl_u64 next_version;
  wl_u32 data_version;
  wl_u64 state;   /* the state number from t_info */
  wl_u64 version; /* see wl_tablets_version */
  wl_u64 layout;  /* changes when tablets move, so that cursors find their place again */
  wl_i64 n_delta, n_gone;
  wl_dict_box **dicts; /* [n_cols]; NULL: not read yet */

  wl_cached_segment *segment_cache[WL_CACHE_SLOTS];
  wl_cached_segment *newest, *oldest;
  size_t cached_bytes;

  wl_u64 n_planned;
  wl_vctx values; /* scratch for texts of the current row */
  wl_u32 fault;
  struct wl_checker *checker; /* evaluates CHECK constraints; NULL until it is needed */
  struct wl_dmlrun *run;      /* the run whose rows SQLite counts now, or NULL */
  wl_val *old_row;            /* [n_cols] scratch for a row that is deleted or changed */
};

/* SQLite may read its schema again inside a transaction (ALTER TABLE, ROLLBACK TO over a change of
** the schema). It then opens a table that was written a second time, and still tells the first
** object about the commit. Both objects share one wl_tablets, which counts them. */
wl_status wl_tablets_open(sqlite3 *db, const char *schema, const char *name, bool create,
                          const char *const *args, int n_args, wl_tablets **out,
                          wl_error *err) WL_MUST;
void wl_tablets_close(wl_tablets *t);
wl_status wl_tablets_create(wl_tablets *t, wl_error *err) WL_MUST; /* creates the shadow tables */
void wl_tablets_set_name(wl_tablets *t, char *name);               /* takes ownership of name */
void wl_cached_clear(wl_tablets *t);
/* Finalizes the prepared statements. They are prepared again when they are needed. */
void wl_tablets_quiet(wl_tablets *t);
wl_status wl_tablets_destroy(wl_tablets *t, wl_error *err) WL_MUST; /* drops the shadow tables */
wl_status wl_tablets_rename(wl_tablets *t, const char *name, wl_error *err) WL_MUST;
bool wl_tablets_shadow_name(const char *suffix);
wl_status wl_tablets_sync(wl_tablets *t, wl_error *err) WL_MUST; /* before a commit */
void wl_tablets_committed(wl_tablets *t);
void wl_tablets_rolled_back(wl_tablets *t, bool all);

/* A prepared statement of the table, reset. The caller does not finalize it. */
wl_status wl_tablets_stmt(wl_tablets *t, wl_shadow which, sqlite3_stmt **out,
                          wl_error *err) WL_MUST;
wl_status wl_tablets_key_stmt(wl_tablets *t, int key, int which, sqlite3_stmt **out,
                              wl_error *err) WL_MUST;
enum { WL_WALK_N = 8 }; /* kinds of walks over one key; walk.c */
/* A statement for a scan. The caller finalizes it, or returns it with wl_tablets_unscan. */
wl_status wl_tablets_scan(wl_tablets *t, wl_shadow which, wl_i64 lo, wl_i64 hi, sqlite3_stmt **out,
                          wl_error *err) WL_MUST;
/* Returns a scan statement that was taken when t->epoch was epoch. s may be NULL. */
void wl_tablets_unscan(wl_tablets *t, wl_shadow which, sqlite3_stmt *s, wl_u32 epoch);
/*
** Steps a statement on the shadow tables. These are ordinary tables, so the step never calls back
** into a tablet table. In a hostile file it can: a view, a virtual table or a trigger may stand in
** their place. The inner call then fails with WL_REENTERED.
*/
enum { WL_REENTERED = SQLITE_CORRUPT | 0x7f00 };
int wl_tablets_step(wl_tablets *t, sqlite3_stmt *s);
/* Whether SQLite called us during such a step. Such a call must fail. */
bool wl_tablets_inside_step(const wl_tablets *t);
wl_status wl_tablets_reentered(wl_tablets *t, wl_error *err); /* sets the error of such a call */
/* Checks that the shadow tables are ordinary tables with the right columns (shadow_shape.c). */
wl_status wl_tablets_check_shapes(wl_tablets *t, wl_error *err) WL_MUST;
/* Runs a statement that returns no rows. */
wl_status wl_tablets_run(wl_tablets *t, sqlite3_stmt *s, wl_error *err) WL_MUST;
/* Turns the result code of a step into an error. */
wl_status wl_tablets_error(wl_tablets *t, int rc, wl_error *err);
/* Sets a WL_CORRUPT error that names the table, the column (unless < 0) and the tablet (unless
** < 0). */
wl_status wl_tablets_corrupt(wl_tablets *t, int col, wl_i64 tablet, wl_error *err, const char *fmt,
                             ...) __attribute__((format(printf, 5, 6)));
const char *wl_tablets_column_name(const wl_tablets *t, int col);
/* Must be called before the first write of a statement. Gives the table a new version. */
wl_status wl_tablets_touch(wl_tablets *t, wl_error *err) WL_MUST;

/* The tablet that a rowid would be in: the last one whose lo is not above it, or -1. */
int wl_tablets_place(const wl_tablets *t, wl_i64 rowid);
/* The slot of a rowid in tablet i, dead or alive, or -1. */
wl_status wl_tablets_slot(wl_tablets *t, int i, wl_i64 rowid, wl_i32 *slot, wl_error *err) WL_MUST;
WL_FN bool wl_tablet_is_dead(const wl_tablet *a, wl_i32 slot) {
  return a->dead && (a->dead[slot >> 3] >> (slot & 7) & 1);
}
/* Whether the table has any rows, dead ones included. */
WL_FN bool wl_tablets_any(const wl_tablets *t) {
  return t->n_tablets || t->n_delta;
}
/* The first and the last rowid of the range of tablet i. */
void wl_tablets_range(const wl_tablets *t, int i, wl_i64 *lo, wl_i64 *hi);

/* ---- spill.c: controls when SQLite may write pages before a commit, in WAL mode */
void wl_spill_write(wl_tablets *t); /* called before each write */
void wl_spill_savepoint(wl_tablets *t, int n);
void wl_spill_released(wl_tablets *t, int n);
void wl_spill_rolled_back(wl_tablets *t, int n);
void wl_spill_end(wl_tablets *t); /* called at the end of the transaction */
/* Fails if the transaction must not be committed. */
wl_status wl_spill_check(const wl_tablets *t, wl_error *err) WL_MUST;

/* ---- dictionaries.c */
wl_status wl_tablets_dict_box(wl_tablets *t, int col, wl_dict_box **out, wl_error *err) WL_MUST;
void wl_dict_box_drop(wl_dict_box *b);
/* The codes of n texts. New texts are added to the file's dictionary. *fits is false if it would
** grow too large; then nothing is added. */
wl_status wl_tablets_encode(wl_tablets *t, int col, const wl_u64 *places, const wl_u8 *heap,
                            wl_i32 n, wl_u32 *codes, bool *fits, wl_error *err) WL_MUST;
/* Deletes a column's dictionary, which no segment refers to any more. */
wl_status wl_tablets_dict_clear(wl_tablets *t, int col, wl_error *err) WL_MUST;
/* Sorts a dictionary; see sort_dictionaries.c. The column has no patches. */
wl_status wl_tablets_sort_dict(wl_tablets *t, int col, wl_error *err) WL_MUST;
/* Compares the dictionaries in memory with t_dict, and drops those that differ. */
wl_status wl_tablets_recheck_dicts(wl_tablets *t, wl_error *err) WL_MUST;

/* ---- rewrite.c: writes patched segments again, without patches */
wl_status wl_tablets_fold_patches(wl_tablets *t, wl_error *err) WL_MUST;

/* ---- store_tablets.c: writes tablets to the shadow tables */
/* Prepares a segment for the file. Codes of the segment's own dictionary become codes of the
** column's (*coded is true then), or texts if the column's dictionary would grow too large. */
wl_status wl_tablet_encode(wl_tablets *t, int col, wl_segment *s, bool *coded,
                           wl_error *err) WL_MUST;
/* Replaces each code of the segment by codes[code]. */
wl_status wl_tablet_recode(wl_segment *s, const wl_u32 *codes) WL_MUST;
/* Writes one segment's blob. */
wl_status wl_tablet_write_blob(wl_tablets *t, wl_i64 id, int col, const wl_u8 *blob,
                               const wl_zone *z, wl_error *err) WL_MUST;
/* Writes the directory row of tablet a. */
wl_status wl_tablet_write_entry(wl_tablets *t, wl_tablet *a, wl_error *err) WL_MUST;
/* Writes staged rows (rowids in stages[n_cols]) as a new tablet at place i of the directory. */
wl_status wl_tablet_write_rows(wl_tablets *t, int i, const wl_stage *stages, wl_error *err) WL_MUST;
/* Records the new sum of a directory row; 0: the row is gone. */
wl_status wl_tablet_set_sum(wl_tablets *t, wl_tablet *a, wl_u64 sum, wl_error *err) WL_MUST;
/* A tablet is full when one of its columns has this many bytes of texts and blobs. The segment,
** with the value of its last row, must fit into SQLite's longest blob. */
size_t wl_tablet_max_bytes(const wl_tablets *t);
/* Whether one of n stages has at least cap bytes. */
bool wl_tablet_is_full(const wl_stage *stages, int n, size_t cap);
/* Inserts an empty tablet at place i of the directory in memory. */
wl_status wl_tablet_insert(wl_tablets *t, int i, wl_error *err) WL_MUST;
/* Deletes tablet i and its segments. */
wl_status wl_tablet_delete(wl_tablets *t, int i, wl_error *err) WL_MUST;

/* ---- patch.c */
/* Makes a patch for a segment whose checksum is segment_sum. Copies slots and blob. */
wl_status wl_patch_make(int col, const wl_u16 *slots, wl_i32 n, const wl_u8 *blob,
                        const wl_zone *zone, wl_u64 segment_sum, wl_patch **out) WL_MUST;
/* Replaces the patch of a column, takes the new one. NULL: removes it, which cannot fail. */
wl_status wl_tablet_set_patch(wl_tablet *a, int col, wl_patch *p) WL_MUST;
void wl_patches_free(wl_tablet *a);
size_t wl_patch_bytes(const wl_patch *p); /* in a directory row */
size_t wl_patches_bytes(const wl_tablet *a);
void wl_patches_write(const wl_tablet *a, wl_u8 *to);
wl_status wl_patches_read(wl_tablets *t, wl_tablet *a, const wl_u8 *from, size_t n,
                          wl_error *err) WL_MUST;
/* Makes a zone map cover the rows of another. */
void wl_zone_widen(wl_zone *z, const wl_zone *by);

/* ---- directory.c */
/* Writes the sum of all tablets' sums after changes with defer_sums set, and resets that. */
wl_status wl_tablets_write_sums(wl_tablets *t, wl_error *err) WL_MUST;
/* Reads all rows of the directory and checks them. */
wl_status wl_directory_read(wl_tablets *t, wl_error *err) WL_MUST;
void wl_directory_free(wl_tablets *t);
/* Reads a number from t_info; 0 if it is not there. In table.c. */
wl_status wl_tablets_read_info(wl_tablets *t, const char *key, wl_i64 *out, wl_error *err) WL_MUST;

/* ---- merge.c */
void wl_merge_limit(wl_merge *m, wl_i32 n_rows); /* sets the most rows of a chunk */
void wl_merge_cap(wl_merge *m, size_t n_bytes);  /* sets the most bytes: see wl_tablet_max_bytes */
/* Restricts a merge of the delta alone (i past the last tablet) to the rowids lo to hi. */
wl_status wl_merge_within(wl_merge *m, wl_i64 lo, wl_i64 hi, wl_error *err) WL_MUST;
/* The number, the least and the greatest of the rowids in a range of t_delta or t_gone (which is
** WL_SH_DELTA_RANGE or WL_SH_GONE_RANGE). */
wl_status wl_tablets_in_range(wl_tablets *t, wl_shadow which, wl_i64 lo, wl_i64 hi, wl_i64 *n,
                              wl_i64 *least, wl_i64 *most, wl_error *err) WL_MUST;

/* ---- affinity.c */
/* Converts a value as a column of that affinity stores it. */
wl_val wl_store_affinity(wl_vctx *x, char affinity, wl_val v);
/* Whether a column of that affinity stores every value of the domain unchanged. */
bool wl_affinity_keeps(char affinity, const wl_domain *d);

/* ---- default_safe.c: fails if the column's DEFAULT must not be evaluated */
wl_status wl_default_check(wl_tablets *t, int col, wl_error *err) WL_MUST;

/* ---- checker.c */
/* Sets *broken to the number of the first CHECK constraint that a row breaks, or -1. */
wl_status wl_checker_row(wl_tablets *t, const wl_val *values, wl_i64 rowid, int *broken,
                         wl_error *err) WL_MUST;
/* New rows, with the values that will be stored. If rowids is NULL, the rowids are first,
** first + 1 and so on. */
typedef struct wl_bulk_rows {
  wl_column *const *cols; /* [n_cols]; the rowid's column is not used */
  const wl_i64 *rowids;
  wl_i64 first, n;
} wl_bulk_rows;
/* Sets *row to the first row that breaks a CHECK constraint, or to r->n if none does. */
wl_status wl_checker_rows(wl_tablets *t, const wl_bulk_rows *r, wl_i64 *row, wl_error *err) WL_MUST;
void wl_checker_close(struct wl_checker *c);

#endif
