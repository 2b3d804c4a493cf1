/*
** Segments of texts, segments of mixed values, and parts of dictionaries.
**
** Invariants:
** 1. Texts that rows do not share are stored in row order, so their lengths alone tell where they
**    are. A heap that rows share is stored as it is, with the places.
** 2. After reading, every place lies inside the heap, whatever the bytes were.
*/
#include "base/mem.h"
#include "tablet/format/codec_impl.h"

#define MOST_HEAP 0xffffffffu /* offsets have 32 bits */

static wl_u32 length_of(wl_u64 place) {
  return (wl_u32)(place >> 32);
}

static bool is_valid(const wl_u8 *valid, wl_i32 i) {
  return !valid || (valid[i >> 3] >> (i & 7) & 1);
}

/* The first eight bytes of a text, most significant first, padded with zeros. room: the number of
** bytes that may be read at p. */
static wl_u64 text_prefix(const wl_u8 *p, wl_u32 n, wl_u64 room) {
  static const wl_u64 masks[9] = {0, /* masks[n] selects the first n bytes */
                                  ~0ULL << 56, ~0ULL << 48, ~0ULL << 40, ~0ULL << 32,
                                  ~0ULL << 24, ~0ULL << 16, ~0ULL << 8,  ~0ULL};
  wl_u64 v = 0;
  if (room >= 8) /* masks the bytes of the next text, without a branch */
    return __builtin_bswap64(wl_get64(p)) & masks[n < 8 ? n : 8];
  for (wl_u32 i = 0; i < n; i++) v |= (wl_u64)p[i] << (56 - 8 * i);
  return v;
}

typedef struct text_list {
  const wl_u64 *places;
  const wl_u8 *heap, *valid;
  wl_u64 n_heap;
  wl_i32 n;
  /* Set by scan_texts. */
  wl_u64 n_bytes; /* the sum of the lengths */
  wl_u32 longest; /* the length of the longest text */
  wl_u64 lo, hi;  /* the range of the prefixes */
  wl_i32 first;   /* the first row that is not NULL */
  bool all_equal; /* all rows that are not NULL are equal */
} text_list;

/* Measures the texts, and compares each to the first as long as all are equal. */
static void scan_texts(text_list *t) {
  wl_u64 lo = ~(wl_u64)0, hi = 0, n_bytes = 0;
  wl_u32 longest = 0;
  t->first = -1;
  t->all_equal = true;
  for (wl_i32 i = 0; i < t->n; i++) {
    wl_u64 place = t->places[i];
    if (!is_valid(t->valid, i)) continue;
    wl_u32 n = length_of(place);
    wl_u64 x = text_prefix(t->heap + (wl_u32)place, n, t->n_heap - (wl_u32)place);
    n_bytes += n;
    longest = n > longest ? n : longest;
    lo = x < lo ? x : lo;
    hi = x > hi ? x : hi;
    if (!t->all_equal) continue;
    if (t->first < 0) t->first = i;
    wl_u64 a = t->places[t->first];
    t->all_equal =
        length_of(a) == n && (n == 0 || !memcmp(t->heap + (wl_u32)a, t->heap + (wl_u32)place, n));
  }
  t->lo = lo;
  t->hi = hi;
  t->n_bytes = n_bytes;
  t->longest = longest;
}

#define LENGTHS(T)                                                                                 \
  for (wl_i32 i = 0; i < t->n; i++) {                                                              \
    T length = (T)(t->places[i] >> 32);                                                            \
    memcpy(p + (size_t)i * sizeof(T), &length, sizeof(T));                                         \
  }

static WL_CLONES void write_lengths(wl_u8 *p, int width, const text_list *t) {
  if (width == 1)
    LENGTHS(wl_u8)
  else if (width == 2)
    LENGTHS(wl_u16)
  else
    LENGTHS(wl_u32)
}

/* Writes the bytes in row order. Texts that are adjacent in the heap are copied together. A NULL
** has no bytes. */
static void write_bytes(wl_u8 *p, const text_list *t) {
  wl_u64 from = 0, end = 0; /* the piece to be copied next */
  for (wl_i32 i = 0; i < t->n; i++) {
    wl_u32 n = length_of(t->places[i]), at = (wl_u32)t->places[i];
    if (n == 0) continue;
    if (at != end) {
      if (end > from) memcpy(p, t->heap + from, end - from);
      p += end - from;
      from = end = at;
    }
    end += n;
  }
  if (end > from) memcpy(p, t->heap + from, end - from);
}

static int length_width(wl_u32 longest) {
  return longest < 256 ? 1 : longest < 65536 ? 2 : 4;
}

static wl_status too_big(wl_error *err) {
  return wl_fail(err, WL_TOOBIG, "the texts of a segment are larger than 4 GiB");
}

static wl_status write_in_order(wl_draft *d, const text_list *t, wl_error *err) {
  wl_header *h = &d->h;
  if (t->n_bytes > MOST_HEAP) return too_big(err);
  h->width = (wl_u8)length_width(t->longest);
  size_t n_lengths = (size_t)t->n * h->width;
  wl_u8 *p = wl_draft_open(d, n_lengths + t->n_bytes);
  if (!p) return wl_nomem(err);
  write_lengths(p, h->width, t);
  write_bytes(p + n_lengths, t);
  return WL_OK;
}

wl_status wl_write_texts(wl_draft *d, wl_error *err) {
  wl_header *h = &d->h;
  const wl_segment *s = d->s;
  text_list t = {.places = s->data, .heap = s->heap, .n_heap = s->n_heap, .n = s->n_rows};
  t.valid = h->n_nulls ? s->valid : NULL;
  wl_u8 *p;
  scan_texts(&t);
  h->phys = WL_P_TEXT;
  h->t_lo = t.lo;
  h->t_hi = t.hi;
  if (t.all_equal) {
    wl_u64 a = t.places[t.first];
    h->enc = WL_E_CONST;
    if (!(p = wl_draft_open(d, length_of(a)))) return wl_nomem(err);
    if (length_of(a)) memcpy(p, t.heap + (wl_u32)a, length_of(a));
    return WL_OK;
  }
  size_t n = (size_t)s->n_rows;
  if (t.n_bytes + n * (size_t)length_width(t.longest) <= s->n_heap + n * 8) {
    h->enc = WL_E_TEXT;
    return write_in_order(d, &t, err);
  }
  if (s->n_heap > MOST_HEAP) return too_big(err);
  h->enc = WL_E_PLACED;
  if (!(p = wl_draft_open(d, n * 8 + s->n_heap))) return wl_nomem(err);
  memcpy(p, s->data, n * 8);
  memcpy(p + n * 8, s->heap, s->n_heap);
  return WL_OK;
}

wl_status wl_write_part(wl_draft *d, const wl_u64 *places, const wl_u8 *heap, wl_error *err) {
  text_list t = {.places = places, .heap = heap, .n = d->h.n_rows};
  for (wl_i32 i = 0; i < t.n; i++) {
    wl_u64 end = (wl_u64)(wl_u32)places[i] + (places[i] >> 32);
    t.n_heap = end > t.n_heap ? end : t.n_heap;
  }
  scan_texts(&t);
  if (t.n) {
    d->h.t_lo = t.lo;
    d->h.t_hi = t.hi;
  }
  d->h.phys = WL_P_TEXT;
  d->h.enc = WL_E_PART;
  return write_in_order(d, &t, err);
}

wl_status wl_write_any(wl_draft *d, wl_error *err) {
  wl_header *h = &d->h;
  const wl_segment *s = d->s;
  const wl_u64 *v = s->data;
  size_t n = (size_t)s->n_rows;
  wl_u64 lo = ~(wl_u64)0, hi = 0;
  if (s->phys != WL_P_ANY) return wl_fail(err, WL_MISUSE, "a segment of mixed types has no tags");
  if (s->n_heap > MOST_HEAP) return too_big(err);
  for (size_t i = 0; i < n; i++) {
    if (s->tags[i] != WL_T_TEXT) continue;
    wl_u64 x = text_prefix(s->heap + (wl_u32)v[i], length_of(v[i]), s->n_heap - (wl_u32)v[i]);
    lo = x < lo ? x : lo;
    hi = x > hi ? x : hi;
  }
  if (lo <= hi) {
    h->t_lo = lo;
    h->t_hi = hi;
  }
  h->phys = WL_P_ANY;
  h->enc = WL_E_ANY;
  wl_u8 *p = wl_draft_open(d, n * 9 + s->n_heap);
  if (!p) return wl_nomem(err);
  memcpy(p, s->tags, n);
  memcpy(p + n, v, n * 8);
  if (s->n_heap) memcpy(p + n * 9, s->heap, s->n_heap);
  return WL_OK;
}

/* ---- reading */

#define PLACES(T)                                                                                  \
  for (wl_i32 i = 0; i < n; i++) {                                                                 \
    T length;                                                                                      \
    memcpy(&length, p + (size_t)i * sizeof(T), sizeof(T));                                         \
    places[i] = (wl_u32)at | (wl_u64)length << 32;                                                 \
    at += length;                                                                                  \
  }

/* Computes the places from the lengths. Returns where the last text ends. At most 2^31 lengths of
** 32 bits cannot overflow the sum. */
static wl_u64 read_places(wl_u64 *places, const wl_u8 *p, int width, wl_i32 n) {
  wl_u64 at = 0;
  if (width == 1)
    PLACES(wl_u8)
  else if (width == 2)
    PLACES(wl_u16)
  else
    PLACES(wl_u32)
  return at;
}

static wl_status copy_heap(wl_segment *s, const wl_u8 *p, size_t n, bool *ok) {
  if (!(*ok = n <= MOST_HEAP)) return WL_OK;
  s->heap = wl_mem_alloc(n);
  if (!s->heap) return WL_NOMEM;
  if (n) memcpy(s->heap, p, n);
  s->n_heap = n;
  return WL_OK;
}

static wl_u64 outside_heap(wl_u64 place, size_t n_heap) {
  return (wl_u64)(wl_u32)place + (place >> 32) > n_heap;
}

wl_status wl_read_texts(const wl_header *h, const wl_u8 *p, size_t n, wl_segment *s, bool *ok) {
  wl_i32 n_rows = h->n_rows, r;
  size_t n_array = (size_t)n_rows * (h->enc == WL_E_CONST    ? 0
                                     : h->enc == WL_E_PLACED ? 8
                                                             : h->width);
  *ok = n >= n_array;
  if (!*ok) return WL_OK;
  wl_u64 *places = s->data = wl_mem_alloc((size_t)n_rows * sizeof *places);
  if (!places) return WL_NOMEM;
  wl_status rc = copy_heap(s, p + n_array, n - n_array, ok);
  if (rc || !*ok) return rc;
  wl_u64 bad = 0;
  if (h->enc == WL_E_CONST) {
    for (wl_i32 i = 0; i < n_rows; i++) places[i] = (wl_u64)s->n_heap << 32;
    if (s->valid) WL_EACH_NULL(r, s->valid, n_rows)
    places[r] = 0;
  } else if (h->enc == WL_E_PLACED) {
    memcpy(places, p, n_array);
    for (wl_i32 i = 0; i < n_rows; i++) bad |= outside_heap(places[i], s->n_heap);
    if (s->valid) WL_EACH_NULL(r, s->valid, n_rows)
    bad |= places[r];
  } else {
    bad = read_places(places, p, h->width, n_rows) != s->n_heap;
    if (s->valid) WL_EACH_NULL(r, s->valid, n_rows) {
        bad |= places[r] >> 32;
        places[r] = 0;
      }
  }
  *ok = bad == 0;
  return WL_OK;
}

wl_status wl_read_any(const wl_header *h, const wl_u8 *p, size_t n, wl_segment *s, bool *ok) {
  const wl_domain *d = &h->domain;
  size_t n_rows = (size_t)h->n_rows;
  *ok = n >= n_rows * 9;
  if (!*ok) return WL_OK;
  wl_u64 *v = s->data = wl_mem_alloc(n_rows * sizeof *v);
  s->tags = wl_mem_alloc(n_rows);
  if (h->n_nulls) s->valid = wl_mem_zalloc((n_rows + 7) / 8);
  if (!v || !s->tags || (h->n_nulls && !s->valid)) return WL_NOMEM;
  wl_status rc = copy_heap(s, p + n_rows * 9, n - n_rows * 9, ok);
  if (rc || !*ok) return rc;
  memcpy(s->tags, p, n_rows);
  memcpy(v, p + n_rows, n_rows * 8);
  unsigned mask = 0;
  wl_i32 n_nulls = 0;
  bool bad = false;
  for (size_t i = 0; i < n_rows && !bad; i++) {
    wl_u8 t = s->tags[i];
    if (t > WL_T_BLOB) {
      bad = true;
      break;
    }
    mask |= WL_M(t);
    switch (t) {
    case WL_T_NULL:
      bad = v[i] != 0;
      n_nulls++;
      break;
    case WL_T_INT: bad = (wl_i64)v[i] < d->lo || (wl_i64)v[i] > d->hi; break;
    case WL_T_REAL: bad = !(wl_as_f64(v[i]) >= d->flo && wl_as_f64(v[i]) <= d->fhi); break;
    default: bad = outside_heap(v[i], s->n_heap);
    }
    if (s->valid) s->valid[i >> 3] |= (wl_u8)((t != WL_T_NULL) << (i & 7));
  }
  *ok = !bad && mask == d->mask && n_nulls == h->n_nulls;
  return WL_OK;
}
