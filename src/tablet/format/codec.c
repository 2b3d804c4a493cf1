/*
** Segments as blobs: the header, its checks and the checksum. See codec.h, and docs/format.md for
** the layout. Tablet tables (tablet/table/table.h) write and read segments through this file. The
** files named in codec_impl.h handle the payloads.
**
** Invariants:
** 1. No header field is used before check_header has checked it. No payload byte is used before the
**    checksum was compared.
** 2. A field that a segment does not need has one fixed value, so equal segments make equal blobs.
*/
#include "tablet/format/codec.h"
#include "base/mem.h"
#include "tablet/format/codec_impl.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { VERSION = 1 };
#define MAGIC 0x67536c57u /* WlSg */

/* Byte offsets in the header. */
enum {
  AT_MAGIC = 0,
  AT_VERSION = 4,
  AT_ENC = 5,
  AT_PHYS = 6,
  AT_FLAGS = 7,
  AT_ROWS = 8,
  AT_NULLS = 12,
  AT_MASK = 16,
  AT_WIDTH = 17,
  AT_UNUSED = 18, /* 6 bytes of zero */
  AT_LO = 24,
  AT_HI = 32,
  AT_FLO = 40,
  AT_FHI = 48,
  AT_T_LO = 56,
  AT_T_HI = 64,
  AT_PAYLOAD = 72,
  AT_STORED = 80,
  AT_SUM = 88
};

static void write32(wl_u8 *p, wl_u32 v) {
  memcpy(p, &v, sizeof v);
}
static wl_u32 read32(const wl_u8 *p) {
  wl_u32 v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* The checksum of the payload, seeded with the checksum of the header. */
static wl_u64 blob_checksum(const wl_u8 *blob, wl_u64 n_stored) {
  return XXH3_64bits_withSeed(blob + WL_HEADER_BYTES, n_stored, XXH3_64bits(blob, AT_SUM));
}

static void write_header(wl_u8 *p, wl_header *h) {
  memset(p, 0, WL_HEADER_BYTES);
  write32(p + AT_MAGIC, MAGIC);
  p[AT_VERSION] = VERSION;
  p[AT_ENC] = h->enc;
  p[AT_PHYS] = h->phys;
  p[AT_FLAGS] = h->flags;
  write32(p + AT_ROWS, (wl_u32)h->n_rows);
  write32(p + AT_NULLS, (wl_u32)h->n_nulls);
  p[AT_MASK] = h->domain.mask;
  p[AT_WIDTH] = h->width;
  wl_put64(p + AT_LO, (wl_u64)h->domain.lo);
  wl_put64(p + AT_HI, (wl_u64)h->domain.hi);
  wl_put64(p + AT_FLO, wl_f64_bits(h->domain.flo));
  wl_put64(p + AT_FHI, wl_f64_bits(h->domain.fhi));
  wl_put64(p + AT_T_LO, h->t_lo);
  wl_put64(p + AT_T_HI, h->t_hi);
  wl_put64(p + AT_PAYLOAD, h->n_payload);
  wl_put64(p + AT_STORED, h->n_stored);
  h->sum = blob_checksum(p, h->n_stored);
  wl_put64(p + AT_SUM, h->sum);
}

static void read_header(const wl_u8 *p, wl_header *h) {
  h->enc = p[AT_ENC];
  h->phys = p[AT_PHYS];
  h->flags = p[AT_FLAGS];
  h->width = p[AT_WIDTH];
  h->n_rows = (wl_i32)read32(p + AT_ROWS);
  h->n_nulls = (wl_i32)read32(p + AT_NULLS);
  h->domain.mask = p[AT_MASK];
  h->domain.lo = (wl_i64)wl_get64(p + AT_LO);
  h->domain.hi = (wl_i64)wl_get64(p + AT_HI);
  h->domain.flo = wl_as_f64(wl_get64(p + AT_FLO));
  h->domain.fhi = wl_as_f64(wl_get64(p + AT_FHI));
  h->t_lo = wl_get64(p + AT_T_LO);
  h->t_hi = wl_get64(p + AT_T_HI);
  h->n_payload = wl_get64(p + AT_PAYLOAD);
  h->n_stored = wl_get64(p + AT_STORED);
  h->sum = wl_get64(p + AT_SUM);
}

/* Whether a segment of this physical type may have this encoding. */
static bool encoding_fits(const wl_header *h) {
  switch (h->enc) {
  case WL_E_CONST: return h->phys <= WL_P_TEXT;
  case WL_E_STEP: return h->phys <= WL_P_I64 && h->n_nulls == 0;
  case WL_E_PACKED: return h->phys <= WL_P_I64;
  case WL_E_DECIMAL: return h->phys == WL_P_F32 || h->phys == WL_P_F64;
  case WL_E_NARROW:
  case WL_E_RUNS: return h->phys <= WL_P_F64;
  case WL_E_TEXT: return h->phys == WL_P_TEXT;
  case WL_E_PLACED: return h->phys == WL_P_TEXT;
  case WL_E_ANY: return h->phys == WL_P_ANY;
  case WL_E_PART:
    return h->phys == WL_P_TEXT && h->n_nulls == 0 && h->domain.mask == WL_M(WL_T_TEXT);
  default: return false;
  }
}

/* The largest payload before compression. It keeps a few forged bytes from claiming any amount of
** memory. Packed numbers come in blocks of 1,024. Texts and blobs may be as long as SQLite's
** longest value, plus what a tablet holds besides it. */
static wl_u64 max_payload(const wl_header *h) {
  const wl_u64 text = ((wl_u64)1 << 31) + (64 << 20), part = 128 << 20;
  if (h->phys <= WL_P_F64) return (wl_u64)h->n_rows * 16 + (16 << 10);
  return h->enc == WL_E_PART ? part : text;
}

/* Reads and checks the header. Returns what is wrong in a few words, or NULL if it is sound. */
static const char *check_header(const wl_u8 *p, size_t n, wl_header *h) {
  static const wl_u8 zeros[AT_LO - AT_UNUSED];
  if (n < WL_HEADER_BYTES || read32(p + AT_MAGIC) != MAGIC) return "no header";
  if (p[AT_VERSION] != VERSION) return "unknown version";
  read_header(p, h);
  const wl_domain *d = &h->domain, *none = &wl_domain_nothing;
  unsigned types = wl_header_types(h);
  bool coded = wl_header_coded(h), part = h->enc == WL_E_PART;
  bool all_null = h->n_nulls == h->n_rows && !part;
  if (memcmp(p + AT_UNUSED, zeros, sizeof zeros) != 0 || h->flags >= 8) return "unknown flags";
  if (h->n_rows < (part ? 0 : 1) || (!part && h->n_rows > WL_TABLET_ROWS) || h->n_nulls < 0 ||
      h->n_nulls > h->n_rows)
    return "number of rows";
  if ((h->n_nulls > 0) != ((h->flags & WL_F_NULLS) != 0) ||
      (h->n_nulls > 0) != ((d->mask & WL_M(WL_T_NULL)) != 0) || all_null != (types == 0) ||
      d->mask >= WL_M(WL_T_BLOB + 1))
    return "types";
  if (!encoding_fits(h) || (coded && types != WL_M(WL_T_TEXT)) || (coded && part))
    return "encoding";
  bool ints = coded || (types & WL_M(WL_T_INT)) != 0;
  bool reals = (types & WL_M(WL_T_REAL)) != 0;
  if (ints ? d->lo > d->hi : d->lo != none->lo || d->hi != none->hi) return "range of integers";
  if (reals ? !(d->flo <= d->fhi) : d->flo != none->flo || d->fhi != none->fhi)
    return "range of reals";
  if (h->phys == WL_P_F32 && ((double)(float)d->flo != d->flo || (double)(float)d->fhi != d->fhi))
    return "range of reals";
  if (types == 0                                   ? h->phys != WL_P_I8 || h->enc != WL_E_CONST
      : ints && (coded || types == WL_M(WL_T_INT)) ? h->phys != wl_int_phys(d)
      : types == WL_M(WL_T_REAL)                   ? h->phys != WL_P_F32 && h->phys != WL_P_F64
      : types == WL_M(WL_T_TEXT)                   ? h->phys != WL_P_TEXT
                                                   : h->phys != WL_P_ANY)
    return "physical type";
  bool lengths = h->enc == WL_E_TEXT || part;
  if (lengths ? h->width != 1 && h->width != 2 && h->width != 4
              : h->width != 0 && h->enc != WL_E_PACKED && h->enc != WL_E_DECIMAL)
    return "width";
  if (h->t_lo > h->t_hi) return "range of texts";
  if (h->n_stored > 0xffffffffu - WL_HEADER_BYTES || h->n_payload > max_payload(h) ||
      (h->n_stored != h->n_payload && !(h->flags & WL_F_ZSTD)))
    return "sizes";
  return NULL;
}

static wl_status corrupt(wl_error *err, const char *what) {
  return wl_fail(err, WL_CORRUPT, "a segment is malformed: %s", what);
}

static void zone_of(const wl_header *h, wl_zone *out) {
  memset(out, 0, sizeof *out);
  out->sum = h->sum;
  out->n_bytes = (wl_u32)(WL_HEADER_BYTES + h->n_stored);
  out->n_nulls = h->n_nulls;
  out->domain = h->domain;
  out->t_lo = h->t_lo;
  out->t_hi = h->t_hi;
  out->coded = wl_header_coded(h);
}

/* ---- writing */

wl_u8 *wl_draft_open(wl_draft *d, size_t n_payload) {
  size_t n_bitmap = wl_bitmap_bytes(&d->h);
  d->h.n_payload = n_bitmap + n_payload;
  d->blob = wl_mem_alloc(WL_HEADER_BYTES + d->h.n_payload);
  if (!d->blob) return NULL;
  if (n_bitmap) memcpy(d->blob + WL_HEADER_BYTES, d->s->valid, n_bitmap);
  return d->blob + WL_HEADER_BYTES + n_bitmap;
}

/* Compresses the payload, writes the header and returns the blob. On an error frees the blob. */
static wl_status finish_blob(wl_draft *d, wl_status rc, bool compress, wl_u8 **blob,
                             wl_error *err) {
  *blob = NULL;
  d->h.n_stored = d->h.n_payload;
  if (!rc && compress) rc = wl_payload_compress(d, err);
  if (!rc && d->h.n_stored > 0xffffffffu - WL_HEADER_BYTES)
    rc = wl_fail(err, WL_TOOBIG, "a segment is larger than 4 GiB");
  if (rc) {
    wl_mem_free(d->blob);
    return rc;
  }
  write_header(d->blob, &d->h);
  *blob = d->blob;
  return WL_OK;
}

static wl_status write_segment(const wl_segment *s, bool coded, bool compress, wl_u8 **blob,
                               wl_zone *zone, wl_error *err) {
  wl_draft d = {.s = s, .h = {.n_rows = s->n_rows, .n_nulls = s->n_nulls, .t_hi = ~(wl_u64)0}};
  wl_header *h = &d.h;
  bool all_null = s->n_nulls == s->n_rows;
  wl_status rc;
  *blob = NULL;
  coded = coded && !all_null; /* NULLs need no dictionary */
  h->flags = (wl_u8)((s->n_nulls ? WL_F_NULLS : 0) | (coded ? WL_F_CODED : 0));
  h->domain = wl_domain_nothing;
  h->domain.mask = all_null ? WL_M(WL_T_NULL) : s->domain.mask;
  unsigned types = wl_header_types(h);
  if (!all_null && (coded || types & WL_M(WL_T_INT))) {
    h->domain.lo = s->domain.lo;
    h->domain.hi = s->domain.hi;
  }
  if (types & WL_M(WL_T_REAL)) {
    h->domain.flo = s->domain.flo;
    h->domain.fhi = s->domain.fhi;
  }
  if (s->entries || (coded && types & ~WL_M(WL_T_TEXT)) ||
      (s->n_nulls > 0) != ((h->domain.mask & WL_M(WL_T_NULL)) != 0))
    return wl_fail(err, WL_MISUSE, "a segment's types do not match its values");
  if (all_null) {
    h->phys = WL_P_I8;
    h->enc = WL_E_CONST;
    rc = wl_draft_open(&d, 0) ? WL_OK : wl_nomem(err);
  } else if (coded || types == WL_M(WL_T_INT) || types == WL_M(WL_T_REAL))
    rc = wl_write_numbers(&d, err);
  else if (types == WL_M(WL_T_TEXT))
    rc = wl_write_texts(&d, err);
  else
    rc = wl_write_any(&d, err);
  rc = finish_blob(&d, rc, compress, blob, err);
  if (!rc) zone_of(h, zone);
  return rc;
}

wl_status wl_codec_write(const wl_segment *s, bool coded, wl_u8 **blob, wl_zone *zone,
                         wl_error *err) {
  return write_segment(s, coded, true, blob, zone, err);
}

wl_status wl_codec_write_fast(const wl_segment *s, bool coded, wl_u8 **blob, wl_zone *zone,
                              wl_error *err) {
  return write_segment(s, coded, false, blob, zone, err);
}

wl_status wl_codec_write_texts(const wl_u64 *places, const wl_u8 *heap, wl_i32 n, wl_u8 **blob,
                               size_t *n_bytes, wl_u64 *sum, wl_error *err) {
  wl_draft d = {.h = {.n_rows = n, .t_hi = ~(wl_u64)0, .domain = wl_domain_nothing}};
  d.h.domain.mask = WL_M(WL_T_TEXT);
  wl_status rc = finish_blob(&d, wl_write_part(&d, places, heap, err), true, blob, err);
  if (rc) return rc;
  *n_bytes = WL_HEADER_BYTES + d.h.n_stored;
  *sum = d.h.sum;
  return WL_OK;
}

/* ---- reading */

wl_status wl_codec_zone(const wl_u8 *blob, size_t n, wl_zone *out, wl_i32 *n_rows, wl_error *err) {
  wl_header h;
  const char *wrong = check_header(blob, n, &h);
  if (!wrong && h.enc == WL_E_PART) wrong = "a part of a dictionary";
  if (wrong) return corrupt(err, wrong);
  zone_of(&h, out);
  *n_rows = h.n_rows;
  return WL_OK;
}

/* Checks the header and the checksum, and decompresses. *p is the payload: inside the blob, or in
** *own, which the caller frees. */
static wl_status check_blob(const wl_u8 *blob, size_t n, bool part, wl_header *h, const wl_u8 **p,
                            wl_u8 **own, wl_error *err) {
  bool ok = true;
  *own = NULL;
  const char *wrong = check_header(blob, n, h);
  if (!wrong && (h->enc == WL_E_PART) != part)
    wrong = part ? "not a part of a dictionary" : "a part of a dictionary";
  if (!wrong && h->n_stored != n - WL_HEADER_BYTES) wrong = "its size";
  if (!wrong && blob_checksum(blob, h->n_stored) != h->sum) wrong = "its checksum";
  if (wrong) return corrupt(err, wrong);
  *p = blob + WL_HEADER_BYTES;
  if (!(h->flags & WL_F_ZSTD)) return WL_OK;
  wl_status rc = wl_payload_decompress(h, *p, own, &ok, err);
  *p = *own;
  return rc ? rc : ok ? WL_OK : corrupt(err, "its compression");
}

/* Copies the NULL bitmap to s->valid and checks it. A segment of only NULLs gets a bitmap of
** zeros. */
static wl_status read_bitmap(const wl_header *h, const wl_u8 *p, size_t n, wl_segment *s,
                             bool *ok) {
  size_t n_map = ((size_t)h->n_rows + 7) / 8;
  wl_i32 n_nulls = 0;
  *ok = n >= wl_bitmap_bytes(h);
  if (!*ok || h->n_nulls == 0 || h->enc == WL_E_ANY) return WL_OK;
  s->valid = wl_mem_zalloc(n_map);
  if (!s->valid) return WL_NOMEM;
  if (h->n_nulls == h->n_rows) return WL_OK;
  memcpy(s->valid, p, n_map);
  for (wl_i32 w = 0; w * 64 < h->n_rows; w++)
    n_nulls += __builtin_popcountll(wl_null_word(s->valid, h->n_rows, w));
  *ok = n_nulls == h->n_nulls && (h->n_rows % 8 == 0 || !(p[n_map - 1] >> h->n_rows % 8));
  return WL_OK;
}

/* Whether a segment with this header can be read as the type phys. */
static bool can_widen(const wl_header *h, wl_u8 phys) {
  if (phys == h->phys || wl_header_types(h) == 0) return true;
  if (h->phys <= WL_P_I64 && phys <= WL_P_I64) return phys > h->phys;
  if (wl_header_coded(h)) return false;
  return phys == WL_P_ANY || (h->phys == WL_P_F32 && phys == WL_P_F64);
}

static wl_status read_as(const wl_u8 *blob, size_t n, wl_i64 max_code, const wl_u8 *want,
                         void *room, wl_segment *s, bool *coded, wl_error *err) {
  wl_header h;
  const wl_u8 *p = NULL;
  wl_u8 *own;
  bool ok = false;
  memset(s, 0, sizeof *s);
  *coded = false;
  wl_status rc = check_blob(blob, n, false, &h, &p, &own, err);
  if (rc) return rc;
  const char *wrong = "its values";
  wl_u8 phys = want ? *want : h.phys;
  size_t n_bitmap = wl_bitmap_bytes(&h), n_left = h.n_payload - n_bitmap;
  unsigned types = wl_header_types(&h);
  bool is_coded = wl_header_coded(&h);
  s->n_rows = h.n_rows;
  s->n_nulls = h.n_nulls;
  s->domain = h.domain;
  s->phys = phys;
  if (!can_widen(&h, phys)) {
    wrong = "its type does not fit its column";
    goto done;
  }
  if (is_coded && (h.domain.lo < 0 || h.domain.hi >= max_code)) {
    wrong = "codes beyond the dictionary";
    goto done;
  }
  rc = read_bitmap(&h, p, h.n_payload, s, &ok);
  if (rc || !ok) goto done;
  p += n_bitmap;
  wl_u8 tag = WL_T_TEXT;
  if (types == 0) {
    ok = n_left == 0;
    s->data = ok ? wl_mem_zalloc((size_t)h.n_rows * (size_t)wl_phys_width(phys)) : NULL;
    if (ok && !s->data) rc = WL_NOMEM;
  } else if (h.phys == WL_P_ANY)
    rc = wl_read_any(&h, p, n_left, s, &ok);
  else if (h.phys == WL_P_TEXT)
    rc = wl_read_texts(&h, p, n_left, s, &ok);
  else {
    s->data = room;
    rc = wl_read_numbers(&h, p, n_left, phys, s, &ok);
    tag = types == WL_M(WL_T_REAL) ? WL_T_REAL : WL_T_INT;
  }
  if (!rc && ok && phys == WL_P_ANY && h.phys != WL_P_ANY) rc = wl_segment_tag(s, tag);
done:
  wl_mem_free(own);
  if (!rc && ok) {
    *coded = is_coded;
    return WL_OK;
  }
  if (s->data == room) s->data = NULL; /* room belongs to the caller */
  wl_segment_free(s);
  memset(s, 0, sizeof *s);
  return rc ? wl_nomem(err) : corrupt(err, wrong);
}

wl_status wl_codec_phys(const wl_u8 *blob, size_t n, wl_u8 *out, wl_error *err) {
  wl_header h;
  const char *wrong = check_header(blob, n, &h);
  if (wrong) return corrupt(err, wrong);
  *out = h.phys;
  return WL_OK;
}

wl_status wl_codec_read_into(const wl_u8 *blob, size_t n, wl_i64 max_code, wl_u8 phys, void *room,
                             wl_segment *out, bool *coded, wl_error *err) {
  return read_as(blob, n, max_code, &phys, room, out, coded, err);
}

wl_status wl_codec_read(const wl_u8 *blob, size_t n, wl_i64 max_code, wl_segment *out, bool *coded,
                        wl_error *err) {
  return read_as(blob, n, max_code, NULL, NULL, out, coded, err);
}

wl_status wl_codec_read_as(const wl_u8 *blob, size_t n, wl_i64 max_code, wl_u8 phys,
                           wl_segment *out, bool *coded, wl_error *err) {
  return read_as(blob, n, max_code, &phys, NULL, out, coded, err);
}

wl_status wl_codec_read_texts(const wl_u8 *blob, size_t n, wl_u64 **places, wl_u8 **heap,
                              size_t *n_heap, wl_i32 *n_texts, wl_u64 *sum, wl_error *err) {
  wl_header h;
  const wl_u8 *p = NULL;
  wl_u8 *own;
  wl_segment s = {0};
  bool ok = false;
  *places = NULL;
  *heap = NULL;
  wl_status rc = check_blob(blob, n, true, &h, &p, &own, err);
  if (rc) return rc;
  rc = wl_read_texts(&h, p, h.n_payload, &s, &ok);
  wl_mem_free(own);
  if (rc || !ok) {
    wl_segment_free(&s);
    return rc ? wl_nomem(err) : corrupt(err, "its texts");
  }
  *places = s.data;
  *heap = s.heap;
  *n_heap = s.n_heap;
  *n_texts = h.n_rows;
  *sum = h.sum;
  return WL_OK;
}
