/*
** Segments to blobs and back: every encoding, all widths, NULLs, as read and as widened; what a
** blob says of itself; sizes that show which encoding was taken; parts of dictionaries; and no
** memory.
**
**     unit_codec [SEED]
**     unit_codec --time     prints what each encoding takes and gives
*/
#include "base/clock.h"
#include "segments.h"
#include <malloc.h>

static rng r = {1};
static wl_stage stage;

static const char *const kind_names[] = {
    "nulls",      "int one",    "int few",    "int bits", "int random", "int ends", "step",
    "real one",   "real zeros", "real float", "real",     "real runs",  "decimals", "text one",
    "text short", "text long",  "text words", "blob",     "any"};

static bool same_value(const wl_segment *a, wl_u8 tag, const wl_segment *b, wl_i32 i) {
  wl_u64 x = ((const wl_u64 *)a->data)[i], y = ((const wl_u64 *)b->data)[i];
  if (tag < WL_T_TEXT) return x == y;
  if (x >> 32 != y >> 32) return false;
  if ((y & 0xffffffffu) + (y >> 32) > b->n_heap) return false;
  return x >> 32 == 0 || !memcmp(a->heap + (wl_u32)x, b->heap + (wl_u32)y, x >> 32);
}

/* b is what a is, bit for bit, but for where texts are. */
static const char *differ(const wl_segment *a, const wl_segment *b) {
  if (a->phys != b->phys) return "phys";
  if (a->n_rows != b->n_rows || a->n_nulls != b->n_nulls) return "rows";
  if (a->domain.mask != b->domain.mask || a->domain.lo != b->domain.lo ||
      a->domain.hi != b->domain.hi || wl_f64_bits(a->domain.flo) != wl_f64_bits(b->domain.flo) ||
      wl_f64_bits(a->domain.fhi) != wl_f64_bits(b->domain.fhi))
    return "domain";
  if (!a->valid != !b->valid || !a->tags != !b->tags || b->entries) return "parts";
  size_t n = (size_t)a->n_rows;
  if (a->valid && memcmp(a->valid, b->valid, (n + 7) / 8) != 0) return "bitmap";
  if (a->tags && memcmp(a->tags, b->tags, n) != 0) return "tags";
  if (a->phys < WL_P_TEXT)
    return memcmp(a->data, b->data, n * (size_t)wl_phys_width(a->phys)) ? "values" : NULL;
  for (wl_i32 i = 0; i < a->n_rows; i++) {
    wl_u8 tag = a->tags ? a->tags[i] : WL_T_TEXT;
    if (tag == WL_T_NULL || (a->valid && !(a->valid[i >> 3] >> (i & 7) & 1))) {
      if (((wl_u64 *)b->data)[i]) return "a NULL that is not zero";
    } else if (!same_value(a, tag, b, i))
      return "values";
  }
  return NULL;
}

/* What the segment of the stage is as a wider type: rows of that type are added, and taken away
** by looking at the first segment alone. */
static wl_column *as_column(const wl_stage *st, wl_u8 phys) {
  wl_segment *two = wl_mem_zalloc(2 * sizeof *two);
  wl_stage other;
  wl_error err;
  wl_column *c;
  if (!two || wl_stage_open(&other)) abort();
  plain_segment(st, &two[0]);
  switch ((wl_phys)phys) {
  case WL_P_I8: put_number(&other, WL_T_INT, 1); break;
  case WL_P_I16: put_number(&other, WL_T_INT, 1000); break;
  case WL_P_I32: put_number(&other, WL_T_INT, 100000); break;
  case WL_P_I64: put_number(&other, WL_T_INT, (wl_u64)1 << 40); break;
  case WL_P_F32: put_number(&other, WL_T_REAL, wl_f64_bits(0.5)); break;
  case WL_P_F64: put_number(&other, WL_T_REAL, wl_f64_bits(0.1)); break;
  case WL_P_TEXT: put_bytes(&other, WL_T_TEXT, "x", 1); break;
  case WL_P_ANY: put_bytes(&other, WL_T_BLOB, "x", 1); break;
  }
  plain_segment(&other, &two[1]);
  wl_stage_close(&other);
  if (wl_column_make(two, 2, 1, false, &c, &err)) abort();
  return c;
}

static const char *round_trip(const wl_stage *st, bool widen) {
  wl_segment s, back;
  wl_zone zone, read;
  wl_error err;
  wl_u8 *blob;
  wl_i32 n_rows;
  bool coded;
  const char *why = NULL;
  plain_segment(st, &s);
  if (wl_codec_write(&s, false, &blob, &zone, &err)) return "not written";
  memset(&read, 0, sizeof read);
  if (wl_codec_zone(blob, zone.n_bytes, &read, &n_rows, &err)) why = "zone not read";
  if (!why &&
      (n_rows != s.n_rows || read.sum != zone.sum || read.n_bytes != zone.n_bytes ||
       read.n_nulls != s.n_nulls || read.coded || read.t_lo != zone.t_lo || read.t_hi != zone.t_hi))
    why = "zones differ";
  wl_u8 *shifted = wl_mem_alloc(zone.n_bytes + 1); /* blobs lie anywhere */
  memcpy(shifted + 1, blob, zone.n_bytes);
  if (!why && wl_codec_read(shifted + 1, zone.n_bytes, 0, &back, &coded, &err)) why = "not read";
  if (!why) {
    why = coded ? "coded" : differ(&s, &back);
    wl_segment_free(&back);
  }
  for (wl_u8 phys = WL_P_I8; phys <= WL_P_ANY && widen && !why; phys++) {
    wl_column *c = as_column(st, phys);
    bool holds = c->phys == phys;
    if (wl_codec_read_as(blob, zone.n_bytes, 0, phys, &back, &coded, &err)) {
      if (holds || err.code != WL_CORRUPT) why = "not widened";
    } else {
      if (phys == s.phys || holds) why = holds ? differ(&c->segments[0], &back) : NULL;
      wl_segment_free(&back);
    }
    wl_column_drop(c);
  }
  wl_mem_free(shifted);
  wl_mem_free(blob);
  wl_segment_free(&s);
  return why;
}

static void test_round_trips(void) {
  static const int sizes[] = {1, 2, 7, 8, 63, 64, 65, 100, 1000, 1024, 1025, 5000, 65535, 65536};
  for (int kind = 0; kind < S_KINDS; kind++) {
    const char *why = NULL;
    int n = 0, nulls = 0;
    for (int z = 0; z < 14 && !why; z++)
      for (int k = 0; k < (sizes[z] > 5000 ? 6 : 12) && !why; k++) {
        n = sizes[z];
        nulls = k % 3 == 0 ? 0 : k % 3 == 1 ? 10 : 95;
        if (TEST_SANITIZED && n > 5000 && k > 2) break;
        fill_stage(&stage, &r, kind, n, nulls);
        why = round_trip(&stage, true);
      }
    char name[80];
    snprintf(name, sizeof name, "codec: %s", kind_names[kind]);
    if (why)
      tap_bad(name, "%d rows, %d in 100 NULL: %s", n, nulls, why);
    else
      tap_ok(name);
  }
}

static size_t size_of(const wl_stage *st) {
  wl_segment s;
  wl_zone zone = {0};
  wl_u8 *blob;
  wl_error err;
  plain_segment(st, &s);
  if (wl_codec_write(&s, false, &blob, &zone, &err)) abort();
  wl_mem_free(blob);
  wl_segment_free(&s);
  return zone.n_bytes;
}

/* The encodings are taken where they pay: seen by the size. */
static void test_sizes(void) {
  const size_t head = 96, n = 65536;
  wl_stage *st = &stage;
#define ROWS(TAG, V)                                                                               \
  st->n = 0;                                                                                       \
  st->n_heap = 0;                                                                                  \
  for (size_t i = 0; i < n; i++) put_number(st, TAG, (wl_u64)(V))
  ROWS(WL_T_NULL, 0);
  CHECK("size: NULLs", size_of(st) == head);
  ROWS(WL_T_INT, 77);
  CHECK("size: one integer", size_of(st) == head + 8);
  ROWS(WL_T_REAL, wl_f64_bits(-0.0));
  CHECK("size: one real", size_of(st) == head + 8);
  ROWS(WL_T_INT, WL_I64_MIN + (wl_i64)i * 3);
  CHECK("size: steps", size_of(st) == head + 16);
  ROWS(WL_T_INT, WL_I64_MAX - (wl_i64)i);
  CHECK("size: steps down", size_of(st) == head + 16);
  ROWS(WL_T_INT, rng_next(&r) >> 54); /* 10 bits of 16 */
  CHECK("size: packed", size_of(st) == head + n / 8 * 10);
  ROWS(WL_T_INT, 5000000000000 + (wl_i64)(rng_next(&r) >> 20)); /* 44 bits */
  CHECK("size: packed wide", size_of(st) == head + n / 8 * 44);
  ROWS(WL_T_INT, rng_next(&r));
  CHECK("size: narrow", size_of(st) == head + n * 8);
  ROWS(WL_T_REAL, wl_f64_bits((double)rng_next(&r)));
  CHECK("size: reals", size_of(st) == head + n * 8);
  ROWS(WL_T_REAL, wl_f64_bits((double)((wl_i64)(rng_next(&r) >> 47) - 50000) / 100));
  CHECK("size: decimals", size_of(st) == head + 9 + n / 8 * 17);
  ROWS(WL_T_REAL, wl_f64_bits(i == 60000 ? -0.0 : (double)(rng_next(&r) >> 47) / 100));
  CHECK("size: decimals but for a negative zero", size_of(st) > head + n * 3);
  ROWS(WL_T_INT, (i / 1024) * 0x9e3779b97f4a7c15u);
  CHECK("size: runs", size_of(st) == head + 64 * 10);
  ROWS(WL_T_REAL, wl_f64_bits(i / 1024 ? (double)(i / 1024) : -0.0));
  CHECK("size: runs of reals", size_of(st) == head + 64 * 6);
  fill_stage(st, &r, S_TEXT_ONE, (int)n, 0);
  CHECK("size: one text", size_of(st) == head + 5);
  fill_stage(st, &r, S_TEXT_SHORT, (int)n, 0);
  CHECK("size: texts that do not shrink", size_of(st) == head + n + st->n_heap);
  fill_stage(st, &r, S_TEXT_WORDS, (int)n, 0);
  CHECK("size: texts that shrink", size_of(st) < st->n_heap / 10 * 7);
}

static void test_codes(void) {
  wl_i16 codes[300];
  wl_u8 valid[38];
  wl_segment back, s = {.data = codes, .n_rows = 300, .n_nulls = 30, .phys = WL_P_I16};
  wl_zone zone;
  wl_u8 *blob;
  wl_error err;
  bool coded;
  s.valid = valid;
  s.domain = wl_domain_nothing;
  s.domain.mask = WL_M(WL_T_TEXT) | WL_M(WL_T_NULL);
  s.domain.lo = 5;
  s.domain.hi = 104;
  memset(valid, 0, sizeof valid);
  for (int i = 0; i < 300; i++) {
    codes[i] = (wl_i16)(i % 10 == 3 ? 0 : 5 + i % 100);
    valid[i >> 3] |= (wl_u8)((i % 10 != 3) << (i & 7));
  }
  if (!CHECK("codes: written", !wl_codec_write(&s, true, &blob, &zone, &err))) return;
  CHECK("codes: the zone", zone.coded && zone.domain.lo == 5 && zone.domain.hi == 104 &&
                               zone.t_lo == 0 && zone.t_hi == ~(wl_u64)0);
  CHECK("codes: a dictionary that is too small",
        wl_codec_read(blob, zone.n_bytes, 104, &back, &coded, &err) == WL_CORRUPT);
  CHECK("codes: not as mixed values",
        wl_codec_read_as(blob, zone.n_bytes, 105, WL_P_ANY, &back, &coded, &err) == WL_CORRUPT);
  if (CHECK("codes: read", !wl_codec_read(blob, zone.n_bytes, 105, &back, &coded, &err))) {
    bool same = coded && back.phys == WL_P_I8 && !memcmp(back.valid, valid, sizeof valid);
    for (int i = 0; i < 300 && same; i++) same = ((wl_i8 *)back.data)[i] == codes[i];
    CHECK("codes: the same, and narrow", same);
    wl_segment_free(&back);
  }
  if (CHECK("codes: read wide",
            !wl_codec_read_as(blob, zone.n_bytes, 105, WL_P_I16, &back, &coded, &err))) {
    CHECK("codes: the same", coded && !differ(&s, &back));
    wl_segment_free(&back);
  }
  wl_mem_free(blob);
  codes[0] = 500; /* outside the range it claims */
  CHECK("codes: a wrong range", wl_codec_write(&s, true, &blob, &zone, &err) == WL_MISUSE);
}

static void test_zone_texts(void) {
  wl_segment s;
  wl_zone zone;
  wl_u8 *blob;
  wl_error err;
  stage.n = 0;
  stage.n_heap = 0;
  put_bytes(&stage, WL_T_TEXT, "melon", 5);
  put_number(&stage, WL_T_NULL, 0);
  put_bytes(&stage, WL_T_TEXT, "apple pie with cream", 20);
  put_bytes(&stage, WL_T_TEXT, "\xff\xfe", 2);
  plain_segment(&stage, &s);
  if (!CHECK("zone: written", !wl_codec_write(&s, false, &blob, &zone, &err))) return;
  CHECK("zone: texts", zone.t_lo == 0x6170706c65207069u && zone.t_hi == 0xfffe000000000000u &&
                           zone.domain.mask == (WL_M(WL_T_TEXT) | WL_M(WL_T_NULL)));
  wl_mem_free(blob);
  wl_segment_free(&s);
}

static void test_parts(void) {
  static const int sizes[] = {0, 1, 2, 1000, 200000};
  for (int z = 0; z < 5; z++) {
    int n = TEST_SANITIZED && sizes[z] > 20000 ? 20000 : sizes[z];
    size_t n_heap = (size_t)n * 20, at = 0, n_bytes, n_back;
    wl_u8 *heap = wl_mem_alloc(n_heap), *blob, *heap2;
    wl_u64 *places = wl_mem_alloc((size_t)n * 8), *places2, sum, sum2;
    wl_i32 n2;
    wl_error err;
    for (int i = 0; i < n; i++) {
      char text[24];
      size_t m =
          (size_t)snprintf(text, sizeof text, "%llx", (wl_u64)rng_next(&r) >> rng_below(&r, 60));
      memcpy(heap + at, text, m);
      places[i] = (wl_u64)at | (wl_u64)m << 32;
      at += m;
    }
    bool ok = !wl_codec_write_texts(places, heap, n, &blob, &n_bytes, &sum, &err) &&
              !wl_codec_read_texts(blob, n_bytes, &places2, &heap2, &n_back, &n2, &sum2, &err);
    char name[60];
    snprintf(name, sizeof name, "part of a dictionary: %d texts", n);
    if (!CHECK(name, ok)) return;
    CHECK(name, n2 == n && n_back == at && sum == sum2 && !memcmp(places, places2, (size_t)n * 8) &&
                    !memcmp(heap, heap2, at));
    wl_segment s;
    bool coded;
    CHECK("a part is no segment", wl_codec_read(blob, n_bytes, 0, &s, &coded, &err) == WL_CORRUPT);
    wl_mem_free(places);
    wl_mem_free(places2);
    wl_mem_free(heap);
    wl_mem_free(heap2);
    wl_mem_free(blob);
  }
}

/* Each allocation fails in its turn. */
static void test_no_memory(void) {
  for (int kind = 0; kind < S_KINDS; kind++) {
    wl_segment s, back;
    wl_zone zone;
    wl_u8 *blob = NULL;
    wl_error err;
    bool coded, bad = false;
    fill_stage(&stage, &r, kind, 3000, 20);
    plain_segment(&stage, &s);
    for (long k = 1;; k++) {
      wl_mem_fail_after(k);
      wl_status rc = wl_codec_write(&s, false, &blob, &zone, &err);
      bool reached = wl_mem_fail_after(0) != 0;
      bad |= rc != WL_OK && rc != WL_NOMEM;
      if (!reached) break;
      if (!rc) wl_mem_free(blob);
    }
    for (long k = 1;; k++) {
      wl_mem_fail_after(k);
      wl_status rc = wl_codec_read_as(blob, zone.n_bytes, 0, WL_P_ANY, &back, &coded, &err);
      bool reached = wl_mem_fail_after(0) != 0;
      bad |= rc != (reached ? WL_NOMEM : WL_OK);
      if (!rc) wl_segment_free(&back);
      if (!reached) break;
    }
    char name[80];
    snprintf(name, sizeof name, "no memory: %s", kind_names[kind]);
    CHECK(name, !bad);
    wl_mem_free(blob);
    wl_segment_free(&s);
  }
}

static void time_one(const char *name) {
  wl_segment s, back;
  wl_zone zone = {0};
  wl_u8 *blob = NULL;
  wl_error err;
  bool coded;
  double write = 1e18, read = 1e18, size = 0;
  plain_segment(&stage, &s);
  for (int k = 0; k < 200; k++) {
    double t = wl_clock_ns();
    if (wl_codec_write(&s, false, &blob, &zone, &err)) abort();
    double u = wl_clock_ns();
    if (wl_codec_read(blob, zone.n_bytes, 0, &back, &coded, &err)) abort();
    double v = wl_clock_ns();
    write = u - t < write ? u - t : write;
    read = v - u < read ? v - u : read;
    size = (double)zone.n_bytes;
    wl_mem_free(blob);
    wl_segment_free(&back);
  }
  printf("%-28s write %6.2f ns, read %6.2f ns, %6.2f bytes a value\n", name, write / s.n_rows,
         read / s.n_rows, size / s.n_rows);
  wl_segment_free(&s);
}

static void time_all(void) {
  wl_stage *st = &stage;
  size_t n = 65536;
  mallopt(M_MMAP_THRESHOLD, 1 << 30); /* blocks are used again: pages are not what is timed */
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ROWS(WL_T_INT, i % 7 ? rng_next(&r) >> 57 : 0);
  time_one("1 byte");
  ROWS(WL_T_INT, (wl_i16)rng_next(&r));
  time_one("2 bytes");
  ROWS(WL_T_INT, (wl_i32)rng_next(&r));
  time_one("4 bytes");
  ROWS(WL_T_INT, rng_next(&r));
  time_one("8 bytes");
  ROWS(WL_T_REAL, wl_f64_bits((float)(wl_i32)rng_next(&r) / 256));
  time_one("4-byte reals");
  ROWS(WL_T_REAL, wl_f64_bits((double)(wl_i64)rng_next(&r)));
  time_one("8-byte reals");
  ROWS(WL_T_REAL, wl_f64_bits((double)rng_below(&r, 100000) / 100));
  time_one("prices");
  ROWS(WL_T_INT, rng_next(&r) >> 60);
  time_one("packed, 4 bits of 8");
  ROWS(WL_T_INT, rng_next(&r) >> 54);
  time_one("packed, 10 bits of 16");
  ROWS(WL_T_INT, 1000000 + (rng_next(&r) >> 44));
  time_one("packed, 20 bits of 32");
  ROWS(WL_T_INT, 1700000000000 + (rng_next(&r) >> 34));
  time_one("packed, 30 bits of 64");
  ROWS(WL_T_INT, rng_next(&r) >> 20);
  time_one("packed, 44 bits of 64");
  ROWS(WL_T_INT, 1000 + i);
  time_one("steps");
  ROWS(WL_T_INT, i / 100);
  time_one("runs");
  fill_stage(st, &r, S_TEXT_SHORT, (int)n, 0);
  time_one("texts of 6 random bytes");
  fill_stage(st, &r, S_TEXT_WORDS, (int)n, 0);
  time_one("texts of some words");
  fill_stage(st, &r, S_ANY, (int)n, 10);
  time_one("mixed");
}

int main(int argc, char **argv) {
  if (wl_stage_open(&stage)) return 1;
  if (argc > 1 && !strcmp(argv[1], "--time")) {
    time_all();
    wl_stage_close(&stage);
    return 0;
  }
  if (argc > 1) r.s = strtoull(argv[1], NULL, 10);
  test_round_trips();
  test_sizes();
  test_codes();
  test_zone_texts();
  test_parts();
  test_no_memory();
  wl_stage_close(&stage);
  return tap_done();
}
