/*
** The inside of wl_tablets, shared by the files of this folder.
*/
#ifndef WL_TABLETS_IMPL_H
#define WL_TABLETS_IMPL_H

#include "tablet/table/table.h"
#include "tablet/write/write.h"
#include "value/exchange.h"
#include "value/scratch.h"

enum { WL_FORMAT = 1 }; /* the version that is written, and the newest that is read */

/* Statements on the shadow tables; shadow.c has their texts. */
typedef enum wl_shadow {
  WL_SH_INFO_GET,
  WL_SH_INFO_SET,
  WL_SH_INFO_ADD,
  WL_SH_INFO_PLACE,
  WL_SH_RECOUNT, /* sets as INFO_SET does, but so many times, for changes() */
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
  WL_SH_DELTA_RANGE, /* how many, the least and the greatest between two rowids */
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

/* A dictionary in memory; counted, since held segments read through it. */
typedef struct wl_dict_box {
  int refs;
  wl_file_dict d;
  size_t size_places, size_heap;
  int n_parts;
  wl_u64 *sums;   /* [n_parts] */
  wl_u32 *slots;  /* hash table: code + 1; NULL until texts are looked for */
  wl_u32 n_slots; /* a power of two */
} wl_dict_box;

struct wl_held_segment {
  int refs; /* one is the cache's */
  wl_held_segment *next, *newer, *older;
  int col;
  wl_u64 sum;
  bool coded;
  wl_segment s;
  wl_dict_box *dict; /* of a coded one, held */
  size_t n_bytes;
};

enum { WL_HELD_SLOTS = 1024, WL_HELD_BYTES = 128 << 20 };

/* See spill.c. */
enum { WL_SPILL_LEVELS = 16 };
typedef struct wl_spill {
  int n_savepoints;               /* that are open */
  int n_spilled[WL_SPILL_LEVELS]; /* pages that SQLite had spilled when each was opened */
  int limit;                      /* of SQLite's, to be put back; 0: it was not changed */
  unsigned n_writes;
  char mode;   /* 'w': WAL, 'o': another; 0: not asked */
  bool safe;   /* nothing is to be done for the newest savepoint */
  bool loose;  /* SQLite spills, though a savepoint is open */
  bool doomed; /* the transaction must not be committed */
} wl_spill;

struct wl_tablets {
  wl_tablets *next;
  int refs; /* objects of SQLite that are this table */
  sqlite3 *db;
  wl_u64 serial; /* see wl_tablets_serial */
  char *schema, *name;
  wl_arena arena;
  wl_decl *decl;
  int n_cols;
  sqlite3_stmt *stmts[WL_SH_N];
  sqlite3_stmt **keys;         /* [n_keys * WL_KEY_N] */
  bool reading;                /* WL_SH_SEGMENT_GET stands on a row */
  int shapes_at;               /* WL_SH_INFO_GET's re-prepare count plus one when the shapes … */
                               /* … of the shadow tables were looked at; 0: they were not */
  bool shared;                 /* its database is in a shared cache: see wl_tablets_refresh */
  sqlite3_stmt *uncommitted;   /* PRAGMA read_uncommitted, asked in a shared cache */
  sqlite3_stmt *idle[WL_SH_N]; /* scans that nobody uses at the moment … */
  sqlite3_stmt **walks;        /* … likewise [n_keys * WL_WALK_N], or NULL */
  wl_u32 epoch;                /* moves when kept statements go: older ones are not kept */

  wl_tablet *tablets;
  int n_tablets, size_tablets;
  wl_i64 id;      /* t_info's: no other table has it, not even one of the same name */
  wl_i64 last_id; /* of a tablet */
  wl_u64 sums;    /* of all tablets together, which t_info has too: none can be missing */
  bool loaded, stale, dirty;
  bool unread, newer; /* t_info is damaged, or of a later format */
  bool stamped; /* the state in the file is this transaction's own */
  wl_spill spill;
  /* While the version is top_version, top is the largest rowid; and made was one more than the
  ** largest when the version was made_version. */
  wl_i64 top, made;
  wl_u64 top_version, made_version;
  wl_u32 data_version;
  wl_u64 state;   /* t_info's number */
  wl_u64 version; /* see wl_tablets_version */
  wl_u64 layout;  /* moves when tablets do: cursors look for their place again */
  wl_i64 n_delta, n_gone;
  wl_dict_box **dicts; /* [n_cols]; NULL: not read */

  wl_held_segment *held[WL_HELD_SLOTS];
  wl_held_segment *newest, *oldest;
  size_t held_bytes;

  wl_u64 n_planned;
  wl_vctx values; /* text made for the row at hand */
  wl_u32 fault;
  struct wl_checker *checker; /* CHECK constraints; or NULL */
  struct wl_dmlrun *run;      /* whose rows SQLite counts now, or NULL */
  wl_val *old_row;            /* [n_cols] room for a row that goes */
};

/* When SQLite reads its schema again inside a transaction (ALTER TABLE, ROLLBACK TO over a change
** of it), a table that was written is opened a second time, and the first object of it still hears
** of the commit. Both are one wl_tablets: it is counted. */
wl_status wl_tablets_open(sqlite3 *db, const char *schema, const char *name, bool create,
                          const char *const *args, int n_args, wl_tablets **out,
                          wl_error *err) WL_MUST;
void wl_tablets_close(wl_tablets *t);
wl_status wl_tablets_create(wl_tablets *t, wl_error *err) WL_MUST; /* the shadow tables */
void wl_tablets_set_name(wl_tablets *t, char *name);               /* takes it */
void wl_held_clear(wl_tablets *t);
void wl_tablets_quiet(wl_tablets *t); /* finalizes the statements; they come back */
wl_status wl_tablets_destroy(wl_tablets *t, wl_error *err) WL_MUST; /* drops the shadow tables */
wl_status wl_tablets_rename(wl_tablets *t, const char *name, wl_error *err) WL_MUST;
bool wl_tablets_shadow_name(const char *suffix);
wl_status wl_tablets_sync(wl_tablets *t, wl_error *err) WL_MUST; /* before a commit */
void wl_tablets_committed(wl_tablets *t);
void wl_tablets_rolled_back(wl_tablets *t, bool all);

/* A prepared statement, reset; borrowed. */
wl_status wl_tablets_stmt(wl_tablets *t, wl_shadow which, sqlite3_stmt **out,
                          wl_error *err) WL_MUST;
wl_status wl_tablets_key_stmt(wl_tablets *t, int key, int which, sqlite3_stmt **out,
                              wl_error *err) WL_MUST;
enum { WL_WALK_N = 8 }; /* kinds of walks over one key; walk.c */
/* A statement of its own, for a scan; the caller finalizes it, or gives it back. */
wl_status wl_tablets_scan(wl_tablets *t, wl_shadow which, wl_i64 lo, wl_i64 hi, sqlite3_stmt **out,
                          wl_error *err) WL_MUST;
/* Gives one back that was made at t->epoch == epoch; NULL is fine. */
void wl_tablets_unscan(wl_tablets *t, wl_shadow which, sqlite3_stmt *s, wl_u32 epoch);
/*
** Steps a statement on the shadow tables. They are ordinary tables: nothing that happens inside
** comes back to a tablet table. In a hostile file it may, by a view or a virtual table in the
** place of one, or by a trigger; then what is inside fails with WL_REENTERED.
*/
enum { WL_REENTERED = SQLITE_CORRUPT | 0x7f00 };
int wl_tablets_step(wl_tablets *t, sqlite3_stmt *s);
/* Whether SQLite calls while a step is under way; such a call must fail. */
bool wl_tablets_inside_step(const wl_tablets *t);
wl_status wl_tablets_reentered(wl_tablets *t, wl_error *err); /* its error */
/* Whether the shadow tables are ordinary tables of the right columns (shadow_shape.c). */
wl_status wl_tablets_check_shapes(wl_tablets *t, wl_error *err) WL_MUST;
/* Steps a statement that gives no rows, to its end. */
wl_status wl_tablets_run(wl_tablets *t, sqlite3_stmt *s, wl_error *err) WL_MUST;
/* The error of a step. */
wl_status wl_tablets_error(wl_tablets *t, int rc, wl_error *err);
/* SQLITE_CORRUPT, naming table, column (or none, < 0) and tablet (or none, < 0). */
wl_status wl_tablets_corrupt(wl_tablets *t, int col, wl_i64 tablet, wl_error *err, const char *fmt,
                             ...) __attribute__((format(printf, 5, 6)));
const char *wl_tablets_column_name(const wl_tablets *t, int col);
/* Before the first write of a statement; the table differs from now on. */
wl_status wl_tablets_touch(wl_tablets *t, wl_error *err) WL_MUST;

/* Where a rowid would be among the tablets: the last whose lo is not above it, or -1. */
int wl_tablets_place(const wl_tablets *t, wl_i64 rowid);
/* The slot of a rowid in tablet i, dead or alive; -1: it has none. */
wl_status wl_tablets_slot(wl_tablets *t, int i, wl_i64 rowid, wl_i32 *slot, wl_error *err) WL_MUST;
WL_FN bool wl_tablet_is_dead(const wl_tablet *a, wl_i32 slot) {
  return a->dead && (a->dead[slot >> 3] >> (slot & 7) & 1);
}
/* Whether it has any rows, dead ones included. */
WL_FN bool wl_tablets_any(const wl_tablets *t) {
  return t->n_tablets || t->n_delta;
}
/* First and last rowid of the range of tablet i. */
void wl_tablets_range(const wl_tablets *t, int i, wl_i64 *lo, wl_i64 *hi);

/* ---- spill.c: what SQLite may write before a commit, in WAL mode */
void wl_spill_write(wl_tablets *t);            /* before a write */
void wl_spill_savepoint(wl_tablets *t, int n); /* xSavepoint … */
void wl_spill_released(wl_tablets *t, int n);
void wl_spill_rolled_back(wl_tablets *t, int n);
void wl_spill_end(wl_tablets *t); /* … of the transaction */
/* Whether the transaction may be committed. */
wl_status wl_spill_check(const wl_tablets *t, wl_error *err) WL_MUST;

/* ---- dict.c */
wl_status wl_tablets_dict_box(wl_tablets *t, int col, wl_dict_box **out, wl_error *err) WL_MUST;
void wl_dict_box_drop(wl_dict_box *b);
/* Codes of texts; new ones are added to the file's dictionary. *fits false: it would grow too
** large; nothing was added. */
wl_status wl_tablets_encode(wl_tablets *t, int col, const wl_u64 *places, const wl_u8 *heap,
                            wl_i32 n, wl_u32 *codes, bool *fits, wl_error *err) WL_MUST;
/* Takes a column's dictionary away; no segment refers to it any more. */
wl_status wl_tablets_dict_clear(wl_tablets *t, int col, wl_error *err) WL_MUST;
/* Puts a dictionary in order; see sort_dictionaries.c. */
wl_status wl_tablets_sort_dict(wl_tablets *t, int col, wl_error *err) WL_MUST;
/* Compares what is in memory with t_dict, and forgets what differs. */
wl_status wl_tablets_recheck_dicts(wl_tablets *t, wl_error *err) WL_MUST;

/* ---- store_tablets.c: tablets into the shadow tables */
/* Makes a segment what the file holds: codes of its own become the column's, or texts again. */
wl_status wl_put_coded(wl_tablets *t, int col, wl_segment *s, bool *coded, wl_error *err) WL_MUST;
/* Codes become others: codes[old]. */
wl_status wl_put_recode(wl_segment *s, const wl_u32 *codes) WL_MUST;
/* Writes one segment's blob and notes its zone. */
wl_status wl_put_blob(wl_tablets *t, wl_i64 id, int col, const wl_u8 *blob, const wl_zone *z,
                      wl_error *err) WL_MUST;
/* Writes the directory row of tablet a. */
wl_status wl_put_tablet(wl_tablets *t, wl_tablet *a, wl_error *err) WL_MUST;
/* A new tablet of staged rows (rowids in stages[n_cols]) at place i of the directory. */
wl_status wl_put_stages(wl_tablets *t, int i, const wl_stage *stages, wl_error *err) WL_MUST;
/* Notes that a directory row has another sum now, 0 for none. */
wl_status wl_put_sum(wl_tablets *t, wl_tablet *a, wl_u64 sum, wl_error *err) WL_MUST;
/* A column of texts and blobs ends its tablet when it has so many bytes: SQLite's longest blob must
** hold its segment, the last row's value too. */
size_t wl_put_cap(const wl_tablets *t);
bool wl_put_full(const wl_stage *stages, int n, size_t cap); /* whether one of them has */
/* Room for one more tablet at place i, empty. */
wl_status wl_put_room(wl_tablets *t, int i, wl_error *err) WL_MUST;
/* Takes tablet i away, its segments too. */
wl_status wl_put_drop(wl_tablets *t, int i, wl_error *err) WL_MUST;

/* ---- merge.c */
void wl_merge_limit(wl_merge *m, wl_i32 n_rows); /* of a chunk */
void wl_merge_cap(wl_merge *m, size_t n_bytes);  /* likewise: see wl_put_cap */
/* Of a merge of the delta alone (i past the last tablet): between two rowids. */
wl_status wl_merge_within(wl_merge *m, wl_i64 lo, wl_i64 hi, wl_error *err) WL_MUST;
/* How many rows the delta has in a range, and where they begin and end; likewise the gone. */
wl_status wl_tablets_in_range(wl_tablets *t, wl_shadow which, wl_i64 lo, wl_i64 hi, wl_i64 *n,
                              wl_i64 *least, wl_i64 *most, wl_error *err) WL_MUST;

/* ---- affinity.c */
/* A value as a column of that affinity stores it. */
wl_val wl_store_affinity(wl_vctx *x, char affinity, wl_val v);
/* Whether every value of these types is stored as it is. */
bool wl_affinity_keeps(char affinity, const wl_domain *d);

/* ---- default_safe.c */
wl_status wl_default_check(wl_tablets *t, int col, wl_error *err) WL_MUST;

/* ---- checker.c */
/* The number of the first CHECK constraint that a row breaks, or -1. */
wl_status wl_checker_row(wl_tablets *t, const wl_val *values, wl_i64 rowid, int *broken,
                         wl_error *err) WL_MUST;
/* Rows that come, as they will be stored. */
typedef struct wl_bulk_rows {
  wl_column *const *cols; /* [n_cols]; the rowid's is not looked at */
  const wl_i64 *rowids;   /* or NULL: first, first + 1, … */
  wl_i64 first, n;
} wl_bulk_rows;
/* The first row that breaks one; r->n: there is none. */
wl_status wl_checker_rows(wl_tablets *t, const wl_bulk_rows *r, wl_i64 *row, wl_error *err) WL_MUST;
void wl_checker_close(struct wl_checker *c);

#endif
