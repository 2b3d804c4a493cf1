/*
** Columns in host memory. A table is cut into tablets of 65,536 rows; a column of one
** tablet is a segment.
**
** Invariants:
** 1. Every tablet is full but the last; row r is in tablet r >> 16 at place r & 0xffff.
** 2. A column has one physical type for the whole table: the narrowest that holds all.
** 3. The place of a NULL holds zero; a segment without NULLs has no bitmap.
** 4. A text or blob is (offset | length << 32) into its segment's heap.
** 5. A finished column never changes. It is counted: whoever runs over it holds it. Two versions
**    of a table's column may share segments, which are counted too (shared).
** 6. A column with a dictionary holds integers, the codes of its texts (column/dict.h); its
**    domain is that of the texts, but a segment's range is that of its codes.
*/
#ifndef WL_COLUMN_H
#define WL_COLUMN_H

#include "base/status.h"
#include "value/domain.h"
#include <stdatomic.h>

enum { WL_TABLET_SHIFT = 16, WL_TABLET_ROWS = 1 << WL_TABLET_SHIFT };
enum { WL_MAX_COPIES = 4 }; /* two devices, each with memory of its own and mapped memory */

/* Memory that the data of several segments is cut from: few large pages instead of many small
** ones, which the system takes long to give. It goes when the last of them does. */
typedef struct wl_slab {
  atomic_int refs; /* segments, and whoever cuts */
  wl_u8 *memory;
  size_t size, used;
} wl_slab;

typedef struct wl_segment {
  void *data;
  wl_u8 *valid; /* bit r & 7 of byte r >> 3; NULL when no row is NULL */
  wl_u8 *tags;  /* WL_P_ANY */
  wl_u8 *heap;
  size_t n_heap;
  wl_i32 n_rows, n_nulls;
  wl_domain domain; /* the zone map: types and ranges in this tablet */
  wl_u8 phys;
  wl_u64 *entries; /* while a column is made: places of the segment's own dictionary */
  wl_i32 n_entries;
  wl_slab *slab;      /* what data is cut from; NULL: it is its own block */
  atomic_int *shared; /* how many segments have these buffers; NULL: this one alone */
} wl_segment;

typedef struct wl_column {
  atomic_int refs;
  wl_u64 id; /* no other column has had it */
  wl_u8 phys;
  struct wl_dict *dict; /* owned; or NULL */
  wl_domain domain;
  wl_i64 n_rows;
  int n_tablets;
  wl_segment *segments;
  size_t n_bytes;
  /* Copies for devices, owned by exec/gpu: copy[k] and its counts are touched under the lock
  ** of on[k] alone; on[k], once set, stays. drop frees them when the column goes. */
  void *copy[WL_MAX_COPIES];
  void *_Atomic on[WL_MAX_COPIES];
  wl_i64 copy_uses[WL_MAX_COPIES], copy_hits[WL_MAX_COPIES]; /* runs; and those that found it */
  void (*drop)(struct wl_column *c);
  /* The version before of a column that a device has a copy of, held: the new copy is made from
  ** that one. Both are touched under column.c's lock alone. derived: it has been. */
  struct wl_column *before;
  bool derived;
} wl_column;

int wl_phys_width(wl_phys p);
const char *wl_column_type(const wl_column *c); /* how it is stored, in words */
wl_reg wl_column_reg(const wl_column *c);       /* the register type its values load into */

wl_u64 wl_column_new_id(void); /* for columns, and what is built from them */
wl_column *wl_column_hold(wl_column *c);
void wl_column_drop(wl_column *c); /* NULL is fine */

/* Whether its rows are integers, none NULL, each greater than the one before; *by_one: by one. */
bool wl_column_rises(const wl_column *c, bool *by_one);
void wl_column_integers(const wl_column *c, wl_i64 *out); /* of a column of integers alone */
/* c follows a column whose segments it shares; its copies on devices follow that one's. */
void wl_column_follow(wl_column *c, wl_column *before);
void wl_column_settle(wl_column *c); /* drops the one that it follows, where that has served */
/* The one that it follows, or NULL. No one else has it until it is returned. */
wl_column *wl_column_take_before(wl_column *c);
void wl_column_return_before(wl_column *c, wl_column *before, bool derived); /* NULL is fine */

/* The value at a row, as a tagged value; text points into the column. */
wl_val wl_column_value(const wl_column *c, wl_i64 row);
wl_val wl_column_stored(const wl_column *c, wl_i64 row); /* of a dictionary column, the code */

/* The value at a row of a segment, as it is stored: of codes, the code. */
wl_val wl_segment_value(const wl_segment *s, wl_i32 row);

/* ---- building: rows of one tablet, wide, become a segment; segments become a column */

/* 8 bytes and a tag a row; the value of a text or blob is its place in heap. */
typedef struct wl_stage {
  wl_u64 *v;
  wl_u8 *t;
  wl_i32 n;
  wl_u8 *heap;
  size_t n_heap, size_heap;
} wl_stage;

wl_status wl_stage_open(wl_stage *st) WL_MUST; /* room for a whole tablet */
void wl_stage_close(wl_stage *st);
wl_status wl_stage_room(wl_stage *st, size_t n_bytes) WL_MUST; /* for so much more heap */

wl_status wl_stage_add(wl_stage *st, wl_val v) WL_MUST; /* one row more; copies text */
wl_val wl_stage_value(const wl_stage *st, wl_i32 row);  /* text points into the stage */

/* The staged rows in the narrowest type of their own; the stage stays as it is. */
wl_status wl_segment_make(const wl_stage *st, wl_segment *out) WL_MUST;
wl_status wl_segment_plain(const wl_stage *st, wl_segment *out) WL_MUST; /* texts stay texts */
void wl_segment_free(wl_segment *s);
size_t wl_segment_bytes(const wl_segment *s);
wl_slab *wl_slab_open(size_t n_bytes);         /* NULL: no memory */
void wl_slab_drop(wl_slab *s);                 /* NULL is fine */
void *wl_slab_cut(wl_slab *s, size_t n_bytes); /* NULL: it is used up. A segment holds the slab */
/* Lets others have the buffers too; before anyone else knows of the segment. */
wl_status wl_segment_share(wl_segment *s) WL_MUST;
wl_segment wl_segment_hold(const wl_segment *s); /* of a shared one: another with its buffers */
/* Brings a segment that nobody shares to phys, which holds at least what the segment holds. */
wl_status wl_segment_convert(wl_segment *s, wl_u8 phys) WL_MUST;
/* Adds the rows of a segment of the same phys behind its own, which nobody shares. */
wl_status wl_segment_append(wl_segment *s, const wl_segment *more) WL_MUST;
/* Copies of the last row until there are n_rows. */
wl_status wl_segment_pad(wl_segment *s, wl_i32 n_rows) WL_MUST;

/* What narrowing and widening are made of. */
extern const wl_domain wl_domain_nothing; /* no types; ranges that any value widens */
wl_u8 wl_int_phys(const wl_domain *d);    /* the narrowest for its integers */
/* n values from one type to another of the same kind: among integers, or reals, or WL_P_ANY and
** whatever it holds. Values must fit. Neither side need be aligned. */
void wl_phys_copy(void *to, wl_u8 to_phys, const void *from, wl_u8 from_phys, wl_i32 n);
/* Gives a segment of 8-byte values of one type its tags, and NULLs their zeros. */
wl_status wl_segment_tag(wl_segment *s, wl_u8 tag) WL_MUST;

/* Takes the segments (and the array) of all tablets, also when it fails; gives the column
** with one hold, the caller's. small: texts of few rows get codes, whatever they are. */
wl_status wl_column_make(wl_segment *segments, int n, int n_threads, bool small, wl_column **out,
                         wl_error *err) WL_MUST;
/* The same of segments that are of one phys already; dict (taken) is what they are codes of. */
wl_status wl_column_of(wl_segment *segments, int n, struct wl_dict *dict, wl_column **out,
                       wl_error *err) WL_MUST;

/* ---- building row by row: append every one, then finish */
typedef struct wl_builder wl_builder;

wl_status wl_builder_open(wl_builder **out, wl_error *err) WL_MUST;
void wl_builder_plain(wl_builder *b); /* texts of few rows stay texts */
void wl_builder_close(wl_builder *b);
wl_status wl_builder_add(wl_builder *b, wl_val v) WL_MUST; /* copies text */
/* n integers, or bits of reals; valid: a byte each, 0 for NULL, or NULL. */
wl_status wl_builder_add_numbers(wl_builder *b, wl_u8 tag, const wl_u64 *v, const wl_u8 *valid,
                                 wl_i64 n) WL_MUST;
size_t wl_builder_bytes(const wl_builder *b);
/* Gives the column (one hold, the caller's) and leaves the builder empty. */
wl_status wl_builder_finish(wl_builder *b, wl_column **out, wl_error *err) WL_MUST;

#endif
