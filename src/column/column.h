/*
** Columns in host memory. A table is divided into tablets of 65,536 rows. A column of one tablet is
** a segment.
**
** Invariants:
** 1. Every tablet except the last is full. Row r is in tablet r >> 16 at place r & 0xffff.
** 2. A column has one physical type for the whole table: the narrowest that holds all values.
** 3. The value of a NULL is zero. A segment without NULLs has no bitmap.
** 4. A text or blob is stored as its place in the segment's heap: offset | length << 32.
** 5. A finished column never changes. It is reference counted: every user has a reference. Two
**    versions of a table's column may share segments, which are counted, too (shared).
** 6. A column with a dictionary stores the codes of its texts, which are integers (column/dict.h).
**    Its domain describes the texts. The range of a segment is that of its codes.
** 7. A column that a device has made (on_device) has segments without data until the host needs them,
**    or the device its memory. Then the rows are copied, and on_host is set. Whoever reads segments
**    calls wl_column_fetch() before. Types, ranges and numbers of rows are always there.
*/
#ifndef WL_COLUMN_H
#define WL_COLUMN_H

#include "base/status.h"
#include "value/domain.h"
#include <stdatomic.h>

enum { WL_TABLET_SHIFT = 16, WL_TABLET_ROWS = 1 << WL_TABLET_SHIFT };
enum { WL_MAX_COPIES = 4 }; /* two devices, each with its own memory and mapped memory */

/* Memory that holds the data of several segments. A few large allocations are faster than many
** small ones. It is freed with the last of the segments. */
typedef struct wl_slab {
  atomic_int refs; /* the segments, and the owner while it allocates from the slab */
  wl_u8 *memory;
  size_t size, used;
} wl_slab;

typedef struct wl_segment {
  void *data;
  wl_u8 *valid; /* row r is not NULL if bit r & 7 of byte r >> 3 is set; NULL: no row is NULL */
  wl_u8 *tags;  /* WL_P_ANY */
  wl_u8 *heap;
  size_t n_heap;
  wl_i32 n_rows, n_nulls;
  wl_domain domain; /* the zone map: types and ranges in this tablet */
  wl_u8 phys;
  wl_u64 *entries; /* while a column is built: places of the segment's own dictionary */
  wl_i32 n_entries;
  wl_slab *slab;      /* the slab that has data; NULL: data is its own allocation */
  atomic_int *shared; /* the number of segments with these buffers; NULL: only this one */
} wl_segment;

typedef struct wl_column {
  atomic_int refs;
  wl_u64 id; /* unique among all columns */
  wl_u8 phys;
  struct wl_dict *dict; /* owned; or NULL */
  wl_domain domain;
  wl_i64 n_rows;
  int n_tablets;
  wl_segment *segments;
  size_t n_bytes;
  /* The estimated number of distinct values (column/statistics.h); 0: it is not known yet. */
  _Atomic double n_distinct;
  /* Copies on devices, owned by exec/gpu. copy[k] and its counts may only be used under the lock of
  ** on[k]; only whether there is a copy may be asked without it. Once on[k] is set, it does not
  ** change. drop frees the copies with the column. */
  void *_Atomic copy[WL_MAX_COPIES];
  void *_Atomic on[WL_MAX_COPIES];
  wl_i64 copy_uses[WL_MAX_COPIES], copy_hits[WL_MAX_COPIES]; /* runs, and runs that found a copy */
  void (*drop)(struct wl_column *c);
  atomic_llong not_copied_ns; /* estimated time that was lost because there is no copy */
  bool on_device;      /* a device has made it */
  atomic_bool on_host; /* with on_device: the segments have their data */
  wl_status (*fetch)(struct wl_column *c, wl_error *err);
  /* The version before of a column that a device has a copy of, held: the new copy is made from
  ** that one. Both are touched under column.c's lock alone. derived: it has been. */
  struct wl_column *before;
  bool derived;
} wl_column;

int wl_phys_width(wl_phys p);
const char *wl_column_type(const wl_column *c); /* how it is stored, in words */
wl_reg wl_column_reg(const wl_column *c);       /* the register type its values load into */

/* Whether only a device has the rows. */
static inline bool wl_column_is_remote(const wl_column *c) {
  return c->on_device && !atomic_load(&c->on_host);
}
/* Makes sure that the segments have their data. Any thread may call it, but not with a device
** locked. */
static inline wl_status wl_column_fetch(wl_column *c, wl_error *err) {
  return wl_column_is_remote(c) ? c->fetch(c, err) : WL_OK;
}

wl_u64 wl_column_new_id(void); /* a new id, for a column or for something built from columns */
wl_column *wl_column_hold(wl_column *c);
void wl_column_drop(wl_column *c); /* c may be NULL */
/* Whether a copy of the column, or of the version before, is at this place (wl_column.copy). It may
** be gone at once. */
bool wl_column_has_copy(wl_column *c, int place);
/* Whether the caller has the only reference to a column, and no device has a copy. */
bool wl_column_is_mine(const wl_column *c);

/* Whether all rows are integers, none is NULL, and each is greater than the one before. *by_one:
** each is one more than the one before. */
bool wl_column_rises(const wl_column *c, bool *by_one);
/* Copies the values of a column that has only integers. */
void wl_column_integers(const wl_column *c, wl_i64 *out);
/* Makes c the successor of a column whose segments it shares. Its copies on devices can then be
** derived from that column's copies. */
void wl_column_follow(wl_column *c, wl_column *before);
void wl_column_settle(wl_column *c); /* drops the one that it follows, where that has served */
/* The one that it follows, or NULL. No one else has it until it is returned. */
wl_column *wl_column_take_before(wl_column *c);
void wl_column_return_before(wl_column *c, wl_column *before, bool derived); /* NULL is fine */

/* The value of a row. A text points into the column. */
wl_val wl_column_value(const wl_column *c, wl_i64 row);
/* The same, but of a column with a dictionary the code. */
wl_val wl_column_stored(const wl_column *c, wl_i64 row);

/* The value of a row of a segment as it is stored. Of a segment of codes, the code. */
wl_val wl_segment_value(const wl_segment *s, wl_i32 row);

/* ---- building: a stage collects the rows of one tablet and becomes a segment; segments become a
** column */

/* 8 bytes and a tag for each row. The value of a text or blob is its place in heap. */
typedef struct wl_stage {
  wl_u64 *v;
  wl_u8 *t;
  wl_i32 n;
  wl_u8 *heap;
  size_t n_heap, size_heap;
} wl_stage;

wl_status wl_stage_open(wl_stage *st) WL_MUST; /* room for a whole tablet */
void wl_stage_close(wl_stage *st);
wl_status wl_stage_room(wl_stage *st, size_t n_bytes) WL_MUST; /* room for n_bytes more in heap */

wl_status wl_stage_add(wl_stage *st, wl_val v) WL_MUST; /* adds a row; copies text */
wl_val wl_stage_value(const wl_stage *st, wl_i32 row);  /* a text points into the stage */

/* Makes a segment of the staged rows, in the narrowest type that holds them. The stage does not
** change. Texts that repeat get codes. */
wl_status wl_segment_make(const wl_stage *st, wl_segment *out) WL_MUST;
/* The same, but texts never get codes. */
wl_status wl_segment_plain(const wl_stage *st, wl_segment *out) WL_MUST;
void wl_segment_free(wl_segment *s);
size_t wl_segment_bytes(const wl_segment *s);
wl_slab *wl_slab_open(size_t n_bytes); /* NULL: no memory */
void wl_slab_drop(wl_slab *s);         /* s may be NULL */
/* Allocates from the slab; NULL: it is used up. The segment that uses the memory must have a
** reference to the slab. */
void *wl_slab_cut(wl_slab *s, size_t n_bytes);
/* Allows other segments to share the buffers. Call it before others know the segment. */
wl_status wl_segment_share(wl_segment *s) WL_MUST;
wl_segment wl_segment_hold(const wl_segment *s); /* another segment with the shared buffers */
/* Converts a segment that is not shared to phys, which can hold all its values. */
wl_status wl_segment_convert(wl_segment *s, wl_u8 phys) WL_MUST;
/* Appends the rows of a segment of the same phys. s is not shared. */
wl_status wl_segment_append(wl_segment *s, const wl_segment *more) WL_MUST;
/* Replaces row slots[i] by row i of `by`, for every i. Both get the type that holds the rows of
** both. The range of s covers the replaced rows, too. Neither segment is shared. */
wl_status wl_segment_overlay(wl_segment *s, wl_segment *by, const wl_u16 *slots) WL_MUST;
/* Appends copies of the last row until there are n_rows. */
wl_status wl_segment_pad(wl_segment *s, wl_i32 n_rows) WL_MUST;

/* ---- narrowing and widening */
extern const wl_domain wl_domain_nothing; /* no types; ranges that any value widens */
wl_u8 wl_int_phys(const wl_domain *d);    /* the narrowest type for its integers */
/* Copies n values from one type to another of the same kind: integers to integers, reals to reals,
** or to or from WL_P_ANY. The values must fit. Neither side needs to be aligned. */
void wl_phys_copy(void *to, wl_u8 to_phys, const void *from, wl_u8 from_phys, wl_i32 n);
/* Sets the tags of a segment of 8-byte values of one type, and sets its NULLs to zero. */
wl_status wl_segment_tag(wl_segment *s, wl_u8 tag) WL_MUST;

/* Makes a column of the segments of all tablets. It owns the segments and the array from then on,
** even if it fails. The caller gets one reference. small: if there are few rows, texts always get
** codes. */
wl_status wl_column_make(wl_segment *segments, int n, int n_threads, bool small, wl_column **out,
                         wl_error *err) WL_MUST;
/* Like wl_column_make, for segments that share one physical type. dict, if not NULL, is the
** dictionary of their codes; the column owns it. */
wl_status wl_column_of(wl_segment *segments, int n, struct wl_dict *dict, wl_column **out,
                       wl_error *err) WL_MUST;

/* ---- building row by row: add each row, then finish */
typedef struct wl_builder wl_builder;

wl_status wl_builder_open(wl_builder **out, wl_error *err) WL_MUST;
void wl_builder_plain(wl_builder *b); /* if there are few rows, texts get no codes */
void wl_builder_close(wl_builder *b);
wl_status wl_builder_add(wl_builder *b, wl_val v) WL_MUST; /* copies text */
/* Adds n integers, or n reals as bits. valid has a byte for each, 0 for NULL; or it is NULL. */
wl_status wl_builder_add_numbers(wl_builder *b, wl_u8 tag, const wl_u64 *v, const wl_u8 *valid,
                                 wl_i64 n) WL_MUST;
size_t wl_builder_bytes(const wl_builder *b);
/* Makes the column and leaves the builder empty. The caller gets one reference. */
wl_status wl_builder_finish(wl_builder *b, wl_column **out, wl_error *err) WL_MUST;

#endif
