/*
** Decodes the rows of a table's leaf pages. btree.c chooses the pages and makes tablets of the
** rows.
**
** Invariants:
** 1. The file may contain anything. Every length and offset is checked before it is used. A page
**    that does not fit the format ends the load with WL_NOT_TAKEN.
** 2. If SQLite would find a page corrupt, it is refused here, too.
** 3. A value is what SQLite's column access returns: a REAL column has reals, NaN is NULL, and the
**    alias of the rowid is the rowid. A column after the end of the record is tagged WL_T_DEFAULT
**    and filled in later.
** 4. Rowids rise from row to row, or the table is refused. So SQLite finds the same row when it is
**    asked for a rowid.
*/
#ifndef WL_LEAF_H
#define WL_LEAF_H

#include "column/column.h"
#include "store/pages.h"

enum {
  WL_T_DEFAULT = 5,
  WL_SHORT_WORDS = 4,
  WL_MAX_GAP = 4 /* leaves at most this many pages apart are read together */
};

/* Which columns of a record are read, and to which outputs they go. */
typedef struct wl_leaf_plan {
  int n_out;
  int n_record; /* columns of the record, up to the last one that is read */
  int *slot;    /* [n_record] the output, or WL_SLOT_ */
  /* The header of a record, read as n_short words, has none of the bits of long_types if the types
  ** of n_record columns are one byte each. n_short is 0 if these columns are too many. */
  wl_u64 long_types[WL_SHORT_WORDS];
  int n_short;
  bool *real;        /* [n_out] the column has REAL affinity */
  int rowid_slot[2]; /* outputs that are the rowid */
  int n_rowid;
  bool one_leaf;     /* the table has one leaf; only then may a leaf be empty */
  wl_u32 max_length; /* the connection's limit for a text or blob */
} wl_leaf_plan;

/* WL_SLOT_ALIAS is the alias of the rowid. It must be stored as NULL. */
enum { WL_SLOT_SKIP = -1, WL_SLOT_ALIAS = -2 };

/* Consecutive rows, stored by column. */
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
  wl_i64 *default_rowid; /* the rowid of a row that has the default */
} wl_chunk;

wl_chunk *wl_chunk_open(int n_out); /* NULL: out of memory */
void wl_chunk_close(wl_chunk *c);
void wl_chunk_clear(wl_chunk *c); /* removes the rows but keeps the memory */
size_t wl_chunk_heap_bytes(const wl_chunk *c);

/* The buffers of a thread that reads leaves. */
typedef struct wl_leaf_reader {
  wl_pages *pages;
  wl_u8 *buf; /* pages run_first .. run_first + run_n - 1 */
  wl_u32 run_first, run_n, max_run;
  wl_u8 *page; /* one page of an overflow chain */
  wl_u8 *map;  /* the pointer-map page map_page; 0: none is read */
  wl_u32 map_page;
  int n_pages_left; /* pages to come whose cells are decoded one by one */
  wl_u8 *payload;   /* the payload of a row with an overflow chain */
  size_t size_payload;
} wl_leaf_reader;

wl_status wl_leaf_reader_open(wl_leaf_reader *r, wl_pages *p, wl_u32 n_pages) WL_MUST;
void wl_leaf_reader_close(wl_leaf_reader *r);

/* Appends the rows of the leaves to the chunk. */
wl_status wl_leaf_decode(const wl_leaf_plan *plan, wl_leaf_reader *r, const wl_u32 *leaves,
                         wl_u32 n, wl_chunk *out) WL_MUST;

#endif
