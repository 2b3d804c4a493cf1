/*
** What the files of the codec share: the header in memory, and the payloads of numbers
** (codec_numbers.c, codec_bits.c, codec_decimal.c), of texts and mixed values (codec_texts.c) and
** their compression (codec_zstd.c).
**
** Invariants:
** 1. A writer is given the draft with its zone map set; it allocates blob with room for the header,
**    fills the payload behind it and sets enc, phys, width and n_payload.
** 2. A reader is given a payload whose header is sound (codec.c's check_header) and whose checksum
**    holds; the sizes and values inside may still be anything. It says false for what is malformed.
** 3. The payload begins with the NULL bitmap, if has_bitmap says so.
*/
#ifndef WL_CODEC_IMPL_H
#define WL_CODEC_IMPL_H

#include "tablet/format/codec.h"
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "arrays go to the file as they are");

enum {
  WL_E_CONST = 1, /* one value for every row that is not NULL */
  WL_E_STEP,      /* base + row * stride */
  WL_E_NARROW,    /* the array as in memory */
  WL_E_PACKED,    /* integers less the least, in width bits */
  WL_E_RUNS,      /* values, then lengths of runs less one, 2 bytes each */
  WL_E_TEXT,      /* lengths of width bytes, then the texts in order of rows */
  WL_E_PLACED,    /* places, then a heap that rows share */
  WL_E_ANY,       /* tags, values or places, heap */
  WL_E_PART,      /* a dictionary's part: as TEXT, any number of rows */
  WL_E_DECIMAL    /* reals k / 10^e, the k packed */
};
enum { WL_F_NULLS = 1, WL_F_CODED = 2, WL_F_ZSTD = 4 };
enum { WL_HEADER_BYTES = 96 };

typedef struct wl_header {
  wl_u8 enc, phys, flags, width;
  wl_i32 n_rows, n_nulls;
  wl_domain domain;
  wl_u64 t_lo, t_hi;
  wl_u64 n_payload; /* before compression */
  wl_u64 n_stored;  /* what follows the header */
  wl_u64 sum;
} wl_header;

/* A blob that is being made. */
typedef struct wl_draft {
  wl_header h;
  const wl_segment *s;
  wl_u8 *blob;
} wl_draft;

WL_FN bool wl_header_coded(const wl_header *h) {
  return (h->flags & WL_F_CODED) != 0;
}
/* The types among the rows, NULL aside. */
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

/* The NULLs among rows 64w … 64w + 63, a bit each. valid is not NULL. */
WL_FN wl_u64 wl_null_word(const wl_u8 *valid, wl_i32 n, wl_i32 w) {
  wl_u64 bits = 0;
  wl_i32 left = n - w * 64;
  if (left >= 64) return ~wl_get64(valid + 8 * (size_t)w);
  memcpy(&bits, valid + 8 * (size_t)w, ((size_t)left + 7) / 8);
  return ~bits & (((wl_u64)1 << left) - 1);
}

/* for each row that is NULL, as R */
#define WL_EACH_NULL(R, VALID, N)                                                                  \
  for (wl_i32 w_ = 0; w_ * 64 < (N); w_++)                                                         \
    for (wl_u64 b_ = wl_null_word((VALID), (N), w_), r_; b_; b_ &= b_ - 1)                         \
      if (r_ = (wl_u64)w_ * 64 + (wl_u64)__builtin_ctzll(b_), (R) = (wl_i32)r_, true)

/* ---- writing */
wl_status wl_write_numbers(wl_draft *d, wl_error *err) WL_MUST;
wl_status wl_write_texts(wl_draft *d, wl_error *err) WL_MUST;
wl_status wl_write_any(wl_draft *d, wl_error *err) WL_MUST;
/* A dictionary's part; d->s is not looked at. */
wl_status wl_write_part(wl_draft *d, const wl_u64 *places, const wl_u8 *heap,
                        wl_error *err) WL_MUST;
/* The blob for a payload of n bytes: sets n_payload, copies the bitmap, gives where to go on. */
wl_u8 *wl_draft_open(wl_draft *d, size_t n_payload);
/* Compresses the payload, if it pays. */
wl_status wl_squeeze(wl_draft *d, wl_error *err) WL_MUST;

/* ---- reading: false in *ok for what is malformed */

/* The payload as it was before compression; wl_mem_alloc'ed. */
wl_status wl_unsqueeze(const wl_header *h, const wl_u8 *stored, wl_u8 **out, bool *ok,
                       wl_error *err) WL_MUST;
/* p and n: the payload behind the bitmap. s has its bitmap; its data is made, as phys. */
wl_status wl_read_numbers(const wl_header *h, const wl_u8 *p, size_t n, wl_u8 phys, wl_segment *s,
                          bool *ok) WL_MUST;
wl_status wl_read_texts(const wl_header *h, const wl_u8 *p, size_t n, wl_segment *s,
                        bool *ok) WL_MUST;
wl_status wl_read_any(const wl_header *h, const wl_u8 *p, size_t n, wl_segment *s,
                      bool *ok) WL_MUST;

/* ---- integers in bits: blocks of 1,024 values, each 128 bytes a bit (codec_bits.c) */
int wl_bits_of(wl_u64 most);
size_t wl_packed_bytes(wl_i32 n, int bits);
/* v: n integers of type phys; NULLs (valid may be NULL) are packed as zero. */
void wl_pack(wl_u8 *to, const void *v, wl_u8 phys, const wl_u8 *valid, wl_i32 n, wl_i64 base,
             int bits);
void wl_unpack(void *to, wl_u8 phys, const wl_u8 *from, wl_i32 n, wl_i64 base, int bits);

/* ---- reals that are decimals (codec_decimal.c) */
typedef struct wl_decimal {
  wl_i64 *k; /* owned; NULL: they are none */
  wl_i64 lo;
  int e, bits;
  size_t n_bytes;
} wl_decimal;
wl_status wl_decimal_try(const void *v, wl_u8 phys, wl_i32 n, wl_decimal *out) WL_MUST;
void wl_decimal_put(wl_u8 *p, const wl_decimal *d, wl_i32 n);
bool wl_decimal_get(const wl_header *h, const wl_u8 *p, size_t n, wl_u8 phys, void *to);

#endif
