/*
** What the files of the codec share: the header in memory, and the functions that write and read
** payloads of numbers (codec_numbers.c, codec_bits.c, codec_decimal.c), payloads of texts and mixed
** values (codec_texts.c), and compress them (codec_zstd.c).
**
** Invariants:
** 1. A writer gets a draft whose zone map is set. It allocates the blob with room for the header,
**    writes the payload after the header, and sets enc, phys, width and n_payload.
** 2. A reader gets a payload whose header passed codec.c's check_header and whose checksum matches.
**    Sizes and values inside may still be anything. The reader sets *ok to false if the payload is
**    malformed.
** 3. The payload begins with the NULL bitmap, if wl_bitmap_bytes is not 0.
*/
#ifndef WL_CODEC_IMPL_H
#define WL_CODEC_IMPL_H

#include "tablet/format/codec.h"
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "arrays go to the file as they are");

enum {
  WL_E_CONST = 1, /* one value for every row that is not NULL */
  WL_E_STEP,      /* base + row * stride */
  WL_E_NARROW,    /* the array as it is in memory */
  WL_E_PACKED,    /* integers minus the least of them, in width bits */
  WL_E_RUNS,      /* values, then run lengths minus one, 2 bytes each */
  WL_E_TEXT,      /* lengths of width bytes, then the texts in row order */
  WL_E_PLACED,    /* places, then a heap that rows share */
  WL_E_ANY,       /* tags, values or places, heap */
  WL_E_PART,      /* a part of a dictionary: like TEXT, with any number of rows */
  WL_E_DECIMAL    /* reals k / 10^e; the integers k are packed */
};
enum { WL_F_NULLS = 1, WL_F_CODED = 2, WL_F_ZSTD = 4 };
enum { WL_HEADER_BYTES = 96 };

typedef struct wl_header {
  wl_u8 enc, phys, flags, width;
  wl_i32 n_rows, n_nulls;
  wl_domain domain;
  wl_u64 t_lo, t_hi;
  wl_u64 n_payload; /* before compression */
  wl_u64 n_stored;  /* the bytes after the header */
  wl_u64 sum;
} wl_header;

/* A blob that is being written. */
typedef struct wl_draft {
  wl_header h;
  const wl_segment *s;
  wl_u8 *blob;
} wl_draft;

WL_FN bool wl_header_coded(const wl_header *h) {
  return (h->flags & WL_F_CODED) != 0;
}
/* The types of the rows, without NULL. */
WL_FN unsigned wl_header_types(const wl_header *h) {
  return h->domain.mask & ~WL_M(WL_T_NULL);
}
WL_FN size_t wl_bitmap_bytes(const wl_header *h) {
  bool has = h->n_nulls > 0 && h->n_nulls < h->n_rows && h->enc != WL_E_ANY;
  return has ? ((size_t)h->n_rows + 7) / 8 : 0;
}

WL_FN void wl_put64(wl_u8 *p, wl_u64 v) {
  memcpy(p, &v, sizeof v);
}
WL_FN wl_u64 wl_get64(const wl_u8 *p) {
  wl_u64 v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* A bit for each of the rows 64w to 64w + 63: 1 if the row is NULL. valid is not NULL. */
WL_FN wl_u64 wl_null_word(const wl_u8 *valid, wl_i32 n, wl_i32 w) {
  wl_u64 bits = 0;
  wl_i32 left = n - w * 64;
  if (left >= 64) return ~wl_get64(valid + 8 * (size_t)w);
  memcpy(&bits, valid + 8 * (size_t)w, ((size_t)left + 7) / 8);
  return ~bits & (((wl_u64)1 << left) - 1);
}

/* Runs the statement that follows for each NULL row, with its number in R. */
#define WL_EACH_NULL(R, VALID, N)                                                                  \
  for (wl_i32 w_ = 0; w_ * 64 < (N); w_++)                                                         \
    for (wl_u64 b_ = wl_null_word((VALID), (N), w_), r_; b_; b_ &= b_ - 1)                         \
      if (r_ = (wl_u64)w_ * 64 + (wl_u64)__builtin_ctzll(b_), (R) = (wl_i32)r_, true)

/* ---- writing */
wl_status wl_write_numbers(wl_draft *d, wl_error *err) WL_MUST;
wl_status wl_write_texts(wl_draft *d, wl_error *err) WL_MUST;
wl_status wl_write_any(wl_draft *d, wl_error *err) WL_MUST;
/* Writes a part of a dictionary. d->s is not used. */
wl_status wl_write_part(wl_draft *d, const wl_u64 *places, const wl_u8 *heap,
                        wl_error *err) WL_MUST;
/* Allocates the blob for the NULL bitmap and n_payload bytes: sets h.n_payload and copies the
** bitmap. Returns where the bytes after the bitmap go. */
wl_u8 *wl_draft_open(wl_draft *d, size_t n_payload);
/* Compresses the payload if that makes it much smaller. */
wl_status wl_payload_compress(wl_draft *d, wl_error *err) WL_MUST;

/* ---- reading: *ok is false if the payload is malformed */

/* Decompresses a payload. The caller frees *out. */
wl_status wl_payload_decompress(const wl_header *h, const wl_u8 *stored, wl_u8 **out, bool *ok,
                                wl_error *err) WL_MUST;
/* p and n are the payload after the bitmap. s has its bitmap already; these make its data, of type
** phys. */
wl_status wl_read_numbers(const wl_header *h, const wl_u8 *p, size_t n, wl_u8 phys, wl_segment *s,
                          bool *ok) WL_MUST;
wl_status wl_read_texts(const wl_header *h, const wl_u8 *p, size_t n, wl_segment *s,
                        bool *ok) WL_MUST;
wl_status wl_read_any(const wl_header *h, const wl_u8 *p, size_t n, wl_segment *s,
                      bool *ok) WL_MUST;

/* ---- bit-packed integers: blocks of 1,024 values, which take 128 bytes per bit (codec_bits.c) */
int wl_bits_of(wl_u64 most);
size_t wl_packed_bytes(wl_i32 n, int bits);
/* Packs v, n integers of type phys. NULL rows are packed as zero; valid may be NULL. */
void wl_pack(wl_u8 *to, const void *v, wl_u8 phys, const wl_u8 *valid, wl_i32 n, wl_i64 base,
             int bits);
void wl_unpack(void *to, wl_u8 phys, const wl_u8 *from, wl_i32 n, wl_i64 base, int bits);

/* ---- reals that are decimals (codec_decimal.c) */
typedef struct wl_decimal {
  wl_i64 *k; /* owned; NULL: the values are not such decimals */
  wl_i64 lo;
  int e, bits;
  size_t n_bytes;
} wl_decimal;
wl_status wl_decimal_try(const void *v, wl_u8 phys, wl_i32 n, wl_decimal *out) WL_MUST;
void wl_decimal_write(wl_u8 *p, const wl_decimal *d, wl_i32 n);
bool wl_decimal_read(const wl_header *h, const wl_u8 *p, size_t n, wl_u8 phys, void *to);

#endif
