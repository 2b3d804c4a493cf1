/*
** Damaged blobs: bytes of encoded segments and parts of dictionaries are changed at random, cut,
** or made up, with the checksum as it was or made again, so that the checks behind it are reached.
** The reader must say SQLITE_CORRUPT, or give a segment that keeps the rules of column/column.h;
** blobs lie in blocks of just their size, so that a sanitizer sees any step outside.
**
**     unit_codec_fuzz [SEED [BLOBS]]
*/
#include "segments.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { HEADER = 96, AT_SUM = 88, AT_STORED = 80 };

static long n_same, n_valid, n_corrupt, n_bad, n_past_sum;
static wl_u64 touched; /* keeps the reading of texts from being left out */

static void complain(const char *what) {
  if (n_bad++ < 5) tap_bad("damaged blobs", "%s", what);
}

static void fix_sum(wl_u8 *p, size_t n) {
  if (n < HEADER) return;
  wl_u64 sum = XXH3_64bits_withSeed(p + HEADER, n - HEADER, XXH3_64bits(p, AT_SUM));
  memcpy(p + AT_SUM, &sum, sizeof sum);
}

/* A copy of exactly n bytes, damaged. */
static wl_u8 *damage(rng *r, const wl_u8 *blob, size_t *n_bytes) {
  size_t n = *n_bytes;
  if (rng_chance(r, 10)) n = rng_next(r) % (n + 1);
  wl_u8 *p = malloc(n ? n : 1);
  if (!p) abort();
  memcpy(p, blob, n);
  *n_bytes = n;
  int n_changes = n == 0 || rng_chance(r, 5) ? 0 : 1 + rng_below(r, 4);
  for (int i = 0; i < n_changes; i++) {
    size_t at = rng_next(r) % n, head = at % HEADER < n ? at % HEADER : 0;
    switch (rng_below(r, 9)) {
    case 0: p[at] ^= (wl_u8)(1 << rng_below(r, 8)); break;
    case 1: p[at] = (wl_u8)rng_next(r); break;
    case 2: p[head] ^= (wl_u8)(1 << rng_below(r, 8)); break;
    case 3: p[head] = (wl_u8)rng_below(r, 10); break;
    case 4: p[5 < n ? 5 : 0] = (wl_u8)rng_below(r, 11); break; /* the encoding */
    case 5: p[6 < n ? 6 : 0] = (wl_u8)rng_below(r, 9); break;  /* the physical type */
    case 6: p[head & ~(size_t)7] = rng_chance(r, 50) ? 0xff : 0; break;
    case 7: /* many */
      for (size_t k = at; k < n && k < at + 64; k++) p[k] = (wl_u8)rng_next(r);
      break;
    default:
      if (n > HEADER) /* all behind the header */
        for (size_t k = HEADER; k < n; k++) p[k] = (wl_u8)rng_next(r);
    }
  }
  if (rng_chance(r, 60) && n >= HEADER) { /* sizes that agree with a cut */
    wl_u64 stored = n - HEADER;
    memcpy(p + AT_STORED, &stored, sizeof stored);
    if (!(p[7] & 4)) memcpy(p + AT_STORED - 8, &stored, sizeof stored);
  }
  if (rng_chance(r, 85)) fix_sum(p, n);
  return p;
}

static void touch(const wl_u8 *heap, size_t n_heap, wl_u64 place) {
  wl_u64 at = (wl_u32)place, n = place >> 32;
  if (at + n > n_heap)
    complain("a place outside the heap");
  else
    for (wl_u64 i = 0; i < n; i++) touched += heap[at + i];
}

static void check_number(const wl_segment *s, wl_i64 v) {
  if (v < s->domain.lo || v > s->domain.hi) complain("an integer outside its range");
}
static void check_real(const wl_segment *s, double v) {
  if (!(v >= s->domain.flo && v <= s->domain.fhi)) complain("a real outside its range");
}

/* Every rule that others rely on. */
static void check_segment(const wl_segment *s, bool coded, wl_i64 max_code) {
  wl_i32 n_nulls = 0;
  unsigned mask = 0;
  if (s->n_rows < 1 || s->n_rows > WL_TABLET_ROWS || s->phys > WL_P_ANY || !s->data ||
      (s->n_nulls > 0) != (s->valid != NULL) || (s->phys == WL_P_ANY) != (s->tags != NULL)) {
    complain("the parts of a segment");
    return;
  }
  for (wl_i32 i = 0; i < s->n_rows; i++) {
    bool null = s->valid && !(s->valid[i >> 3] >> (i & 7) & 1);
    size_t width = (size_t)wl_phys_width(s->phys);
    wl_u64 bits = 0;
    wl_i64 v = 0;
    memcpy(&bits, (wl_u8 *)s->data + (size_t)i * width, width);
    wl_u8 tag = s->phys == WL_P_ANY    ? s->tags[i]
                : null                 ? WL_T_NULL
                : s->phys <= WL_P_I64  ? WL_T_INT
                : s->phys <= WL_P_F64  ? WL_T_REAL
                : s->phys == WL_P_TEXT ? WL_T_TEXT
                                       : WL_T_NULL;
    n_nulls += null;
    if (null != (tag == WL_T_NULL)) complain("a tag that is not as the bitmap");
    if (null && bits) complain("a NULL that is not zero");
    mask |= coded && tag == WL_T_INT ? WL_M(WL_T_TEXT) : WL_M(tag);
    float f;
    switch (tag) {
    case WL_T_NULL: break;
    case WL_T_INT:
      v = width == 1   ? (wl_i8)bits
          : width == 2 ? (wl_i16)bits
          : width == 4 ? (wl_i32)bits
                       : (wl_i64)bits;
      check_number(s, v);
      if (coded && (v < 0 || v >= max_code)) complain("a code beyond the dictionary");
      break;
    case WL_T_REAL:
      memcpy(&f, &bits, sizeof f);
      check_real(s, width == 4 ? (double)f : wl_as_f64(bits));
      break;
    case WL_T_TEXT:
    case WL_T_BLOB: touch(s->heap, s->n_heap, bits); break;
    default: complain("a tag that does not exist");
    }
  }
  if (n_nulls != s->n_nulls) complain("number of NULLs");
  if (mask != s->domain.mask) complain("the types");
}

static void count(wl_status rc, bool same, const wl_error *err) {
  if (rc == WL_OK)
    (*(same ? &n_same : &n_valid))++;
  else if (rc == WL_CORRUPT)
    n_corrupt++;
  else if (rc != WL_NOMEM)
    complain("another error");
  bool values = strstr(err->text, "its values") || strstr(err->text, "its texts");
  if (rc == WL_OK || (rc == WL_CORRUPT && values)) n_past_sum++;
}

static void read_segment(rng *r, const wl_u8 *p, size_t n, bool same) {
  wl_segment s;
  wl_zone zone;
  wl_error err = {0};
  wl_i32 n_rows;
  bool coded = false;
  wl_i64 max_code = rng_below(r, 3000);
  wl_status rc = wl_codec_zone(p, n, &zone, &n_rows, &err);
  if (rc && rc != WL_CORRUPT) complain("another error from the header");
  rc = rng_chance(r, 50)
           ? wl_codec_read(p, n, max_code, &s, &coded, &err)
           : wl_codec_read_as(p, n, max_code, (wl_u8)rng_below(r, WL_P_ANY + 1), &s, &coded, &err);
  count(rc, same, &err);
  if (rc) return;
  check_segment(&s, coded, max_code);
  wl_segment_free(&s);
}

static void read_part(const wl_u8 *p, size_t n, bool same) {
  wl_u64 *places, sum;
  wl_u8 *heap;
  size_t n_heap;
  wl_i32 n_texts;
  wl_error err = {0};
  wl_status rc = wl_codec_read_texts(p, n, &places, &heap, &n_heap, &n_texts, &sum, &err);
  count(rc, same, &err);
  if (rc) return;
  for (wl_i32 i = 0; i < n_texts; i++) touch(heap, n_heap, places[i]);
  wl_mem_free(places);
  wl_mem_free(heap);
}

/* A blob of any kind; small ones mostly, for the damage to hit what matters. */
static wl_u8 *make_blob(rng *r, wl_stage *st, size_t *n, bool *part) {
  static const int sizes[] = {1, 10, 100, 1100, 3000};
  int kind = rng_below(r, S_KINDS + 2);
  wl_zone zone;
  wl_error err;
  wl_u64 sum;
  wl_u8 *blob;
  *part = kind == S_KINDS + 1;
  bool coded = kind == S_KINDS;
  if (coded) kind = S_INT_BITS;
  if (*part) kind = S_TEXT_SHORT + rng_below(r, 3);
  fill_stage(st, r, kind, sizes[rng_below(r, 5)], *part || rng_chance(r, 50) ? 0 : 20);
  if (*part) {
    if (wl_codec_write_texts(st->v, st->heap, st->n, &blob, n, &sum, &err)) abort();
    return blob;
  }
  for (int i = 0; i < st->n && coded; i++)
    if (st->t[i]) st->v[i] = st->v[i] % 2000;
  wl_segment s;
  plain_segment(st, &s);
  if (coded && s.n_nulls < s.n_rows)
    s.domain.mask = (wl_u8)((s.domain.mask & WL_M(WL_T_NULL)) | WL_M(WL_T_TEXT));
  if (wl_codec_write(&s, coded, &blob, &zone, &err)) abort();
  wl_segment_free(&s);
  *n = zone.n_bytes;
  return blob;
}

int main(int argc, char **argv) {
  rng r = {argc > 1 ? strtoull(argv[1], NULL, 10) : 1};
  int n_blobs = argc > 2 ? atoi(argv[2]) : TEST_SANITIZED ? 500 : 2500;
  wl_stage stage;
  if (wl_stage_open(&stage)) return 1;
  for (int k = 0; k < n_blobs; k++) {
    size_t n;
    bool part;
    wl_u8 *blob = make_blob(&r, &stage, &n, &part);
    for (int j = 0; j < 40; j++) {
      size_t m = n;
      wl_u8 *p = damage(&r, blob, &m);
      bool same = m == n && !memcmp(p, blob, n);
      if (part)
        read_part(p, m, same);
      else
        read_segment(&r, p, m, same);
      free(p);
    }
    wl_mem_free(blob);
  }
  if (!n_bad) tap_ok("damaged blobs");
  printf(
      "-- %ld as they were, %ld others that are sound, %ld corrupt, %ld read beyond the checksum\n",
      n_same, n_valid, n_corrupt, n_past_sum);
  CHECK("damaged blobs: all happen", n_same > 0 && n_valid > 0 && n_corrupt > 0);
  CHECK("damaged blobs: many pass the header", n_past_sum > n_blobs);
  wl_stage_close(&stage);
  return tap_done();
}
