/*
** Encodes a segment as a blob of the file, and decodes it. docs/format.md has the layout.
**
** Invariants:
** 1. A blob has no pointers, is little-endian, and begins with a fixed header: magic, encoding,
**    width, number of rows and NULLs, the zone map, sizes, and an XXH3 checksum over everything
**    else in the blob.
** 2. wl_codec_read accepts any bytes. It returns WL_CORRUPT, or a segment that keeps every
**    invariant of column.h that memory safety depends on: places lie inside the heap, tags exist,
**    NULLs are zeros, values lie in their range. It never crashes and never reads out of bounds.
** 3. The segment that is read has the narrowest physical type for its rows. Its phys, domain and
**    n_nulls are exactly those that wl_segment_make would give it.
** 4. A coded segment holds codes of the column's dictionary. Its phys is an integer type. The mask
**    of its domain describes the texts; lo and hi describe the codes.
*/
#ifndef WL_CODEC_H
#define WL_CODEC_H

#include "column/column.h"

/*
** What the directory stores about each segment: enough to skip it, and to recognise it.
**
** t_lo and t_hi bound the texts: they are the first eight bytes of the least and the greatest text,
** most significant byte first, padded with zeros. Where the texts are not known they are 0 and all
** ones.
*/
typedef struct wl_zone {
  wl_u64 sum;     /* the blob's checksum; segments with the same sum and size are the same */
  wl_u32 n_bytes; /* the size of the blob */
  wl_i32 n_nulls;
  wl_domain domain; /* in a coded segment, lo and hi are codes */
  wl_u64 t_lo, t_hi;
  bool coded;
} wl_zone;

/* Encodes a segment. coded: its integers are codes of the column's dictionary (the mask of
** s->domain says TEXT). *blob comes from wl_mem_alloc; the caller frees it. */
wl_status wl_codec_write(const wl_segment *s, bool coded, wl_u8 **blob, wl_zone *zone,
                         wl_error *err) WL_MUST;

/* The same without compression, for a few rows. */
wl_status wl_codec_write_fast(const wl_segment *s, bool coded, wl_u8 **blob, wl_zone *zone,
                              wl_error *err) WL_MUST;

/* Reads only the header. The bytes may be anything. */
wl_status wl_codec_zone(const wl_u8 *blob, size_t n, wl_zone *out, wl_i32 *n_rows,
                        wl_error *err) WL_MUST;

/* Decodes a segment. max_code is the number of dictionary entries: codes must be below it. */
wl_status wl_codec_read(const wl_u8 *blob, size_t n, wl_i64 max_code, wl_segment *out, bool *coded,
                        wl_error *err) WL_MUST;

/* Like wl_codec_read, for a column that needs a wider type: out->phys is phys, which can hold every
** value of the segment. Decodes and widens in one pass. */
wl_status wl_codec_read_as(const wl_u8 *blob, size_t n, wl_i64 max_code, wl_u8 phys,
                           wl_segment *out, bool *coded, wl_error *err) WL_MUST;

/* Like wl_codec_read_as, but the data of numbers and codes is written to room, which is large
** enough and stays the caller's. Other segments do not use room: out->data then points
** elsewhere. */
wl_status wl_codec_read_into(const wl_u8 *blob, size_t n, wl_i64 max_code, wl_u8 phys, void *room,
                             wl_segment *out, bool *coded, wl_error *err) WL_MUST;
/* The physical type that wl_codec_read would give the segment. Reads only the header. */
wl_status wl_codec_phys(const wl_u8 *blob, size_t n, wl_u8 *out, wl_error *err) WL_MUST;

/* Encodes a part of a dictionary: n texts. */
wl_status wl_codec_write_texts(const wl_u64 *places, const wl_u8 *heap, wl_i32 n, wl_u8 **blob,
                               size_t *n_bytes, wl_u64 *sum, wl_error *err) WL_MUST;
/* Decodes a part of a dictionary. *places point into *heap; the caller frees both. */
wl_status wl_codec_read_texts(const wl_u8 *blob, size_t n, wl_u64 **places, wl_u8 **heap,
                              size_t *n_heap, wl_i32 *n_texts, wl_u64 *sum, wl_error *err) WL_MUST;

#endif
