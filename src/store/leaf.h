/*
** Decoding the rows of a table's leaf pages. Stands under btree.c, which says which pages
** and puts what comes out into tablets.
**
** Invariants:
** 1. A page is bytes from a file that may hold anything: every length and offset is checked
**    before it is used, and what does not fit the format ends the load with WL_NOT_TAKEN.
** 2. Where SQLite would find the same bytes corrupt, they are refused here too.
** 3. A value comes out as SQLite's column access gives it: REAL columns as reals, NaN as
**    NULL, the alias of the rowid as the rowid; a column that the record is too short for
**    is tagged WL_T_DEFAULT and filled in later.
** 4. Rowids rise from row to row, or the table is refused: SQLite can then be asked for a
**    row by its rowid, and it is that row.
*/
#ifndef WL_LEAF_H
#define WL_LEAF_H

#include "column/column.h"
#include "store/pages.h"

enum {
  WL_T_DEFAULT = 5,
  WL_MAX_GAP = 4 /* leaves that are no further apart are read in one go */
};

/* Where the values of a record go. */
typedef struct wl_leaf_plan {
  int n_out;
  int n_record;      /* columns of the record up to the last wanted */
  int *slot;         /* [n_record] place among the outputs, or WL_SLOT_ */
  bool *real;        /* [n_out] of REAL affinity */
  int rowid_slot[2]; /* outputs that are the rowid */
  int n_rowid;
  bool one_leaf;     /* only such a leaf may be empty */
  wl_u32 max_length; /* of a text or blob, the connection's limit */
} wl_leaf_plan;

enum { WL_SLOT_SKIP = -1, WL_SLOT_ALIAS = -2 /* stored as NULL, or something is wrong */ };

/* Consecutive rows, column by column. */
typedef struct wl_chunk {
  wl_status status;
  wl_i64 first_row; /* in the table */
  wl_i64 low, high; /* rowids of the first and the last row */
  wl_i32 n, size;
  int n_out;
  wl_u64 **v;     /* [n_out][size] */
  wl_u8 **t;      /* [n_out][size] */
  wl_stage *heap; /* [n_out] texts and blobs; only the heap of the stage is used */
  bool *has_default;
  wl_i64 *default_rowid; /* of a row that showed it */
} wl_chunk;

wl_chunk *wl_chunk_open(int n_out); /* NULL: out of memory */
void wl_chunk_close(wl_chunk *c);
void wl_chunk_clear(wl_chunk *c); /* keeps the memory, for other rows */
size_t wl_chunk_heap_bytes(const wl_chunk *c);

/* A thread's own room for reading. */
typedef struct wl_leaf_reader {
  wl_pages *pages;
  wl_u8 *buf; /* pages run_first .. run_first + run_n - 1 */
  wl_u32 run_first, run_n, max_run;
  wl_u8 *page; /* one page of an overflow chain */
  wl_u8 *map;  /* the pointer-map page map_page, 0: none */
  wl_u32 map_page;
  wl_u8 *payload; /* of a row that has one, put together */
  size_t size_payload;
} wl_leaf_reader;

wl_status wl_leaf_reader_open(wl_leaf_reader *r, wl_pages *p, wl_u32 n_pages) WL_MUST;
void wl_leaf_reader_close(wl_leaf_reader *r);

/* Appends the rows of the leaves to the chunk. */
wl_status wl_leaf_decode(const wl_leaf_plan *plan, wl_leaf_reader *r, const wl_u32 *leaves,
                         wl_u32 n, wl_chunk *out) WL_MUST;

#endif
