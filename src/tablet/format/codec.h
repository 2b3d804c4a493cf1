/*
** A segment as a blob of the file, and back. docs/format.md has the layout.
**
** Invariants:
** 1. A blob has no pointers, is little-endian, and begins with a fixed header: magic, encoding,
**    width, number of rows and NULLs, the zone map, sizes, and an XXH3 checksum over everything
**    else in the blob.
** 2. wl_codec_read may be given any bytes: it says SQLITE_CORRUPT, or gives a segment that keeps
**    every invariant of column.h (places inside the heap, tags that exist, zeros for NULLs, ranges
**    that hold), as far as it concerns memory safety: it never crashes and never reads outside.
** 3. What is read is the narrowest physical type for the rows of the segment, as wl_segment_make
**    would make it: phys, domain and n_nulls agree with it bit for bit.
** 4. A coded segment holds codes of the column's dictionary: phys is an integer type, the mask of
**    its domain speaks of texts, lo and hi of the codes.
*/
#ifndef WL_CODEC_H
#define WL_CODEC_H

#include "column/column.h"

/* What the directory keeps of each segment: enough to skip it, and to know it again. */
typedef struct wl_zone {
  wl_u64 sum;     /* the blob's checksum: two segments with one sum and size are the same */
  wl_u32 n_bytes; /* of the blob */
  wl_i32 n_nulls;
  wl_domain domain;  /* of a coded segment lo and hi are of the codes */
  wl_u64 t_lo, t_hi; /* of texts: the first eight bytes of the least and the greatest, most
                     ** significant first, ended by zeros; 0 and all ones where it is not known */
  bool coded;
} wl_zone;

/* Encodes a segment. coded: its integers are codes of the column's dictionary (the mask of
** s->domain says TEXT). *blob is wl_mem_alloc'ed, the caller's. */
wl_status wl_codec_write(const wl_segment *s, bool coded, wl_u8 **blob, wl_zone *zone,
                         wl_error *err) WL_MUST;

/* Reads the header alone: of any bytes. */
wl_status wl_codec_zone(const wl_u8 *blob, size_t n, wl_zone *out, wl_i32 *n_rows,
                        wl_error *err) WL_MUST;

/* Decodes. max_code: the dictionary has so many entries (a coded segment's codes are below it). */
wl_status wl_codec_read(const wl_u8 *blob, size_t n, wl_i64 max_code, wl_segment *out, bool *coded,
                        wl_error *err) WL_MUST;

/* The same, where the column needs a wider type: out->phys is phys, which holds at least what the
** segment holds (as column/segment.c's convert would). One pass. */
wl_status wl_codec_read_as(const wl_u8 *blob, size_t n, wl_i64 max_code, wl_u8 phys,
                           wl_segment *out, bool *coded, wl_error *err) WL_MUST;

/* The same, of numbers and codes: their data goes into room, which has place for it, and stays the
** caller's; of other segments it is not looked at (out->data tells). */
wl_status wl_codec_read_into(const wl_u8 *blob, size_t n, wl_i64 max_code, wl_u8 phys, void *room,
                             wl_segment *out, bool *coded, wl_error *err) WL_MUST;
/* What wl_codec_read would make of a blob, by its header alone. */
wl_status wl_codec_phys(const wl_u8 *blob, size_t n, wl_u8 *out, wl_error *err) WL_MUST;

/* A dictionary's part: texts in a row. */
wl_status wl_codec_write_texts(const wl_u64 *places, const wl_u8 *heap, wl_i32 n, wl_u8 **blob,
                               size_t *n_bytes, wl_u64 *sum, wl_error *err) WL_MUST;
/* Gives places into a heap of its own, both wl_mem_alloc'ed. */
wl_status wl_codec_read_texts(const wl_u8 *blob, size_t n, wl_u64 **places, wl_u8 **heap,
                              size_t *n_heap, wl_i32 *n_texts, wl_u64 *sum, wl_error *err) WL_MUST;

#endif
