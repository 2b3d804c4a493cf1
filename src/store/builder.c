/*
** Builds a column from values that come one by one: a tablet is staged wide, written out
** in the narrowest type of its own when it is full, and at the end all segments are
** brought to the narrowest type that serves the whole column.
**
** Invariants:
** 1. The stage holds the rows of the tablet being filled: 8 bytes and a tag each.
** 2. A flushed segment's phys is right for its own rows; wl_builder_finish makes them one.
*/
#include "store/column.h"
#include "base/mem.h"
#include <string.h>

struct wl_builder {
  wl_u64 *v;
  wl_u8 *t;
  wl_i32 n; /* rows staged */
  wl_u8 *heap;
  size_t n_heap, size_heap;
  wl_segment *segments;
  int n_segments, size_segments;
  wl_i64 n_rows;
  size_t n_bytes;
};

wl_status wl_builder_open(wl_builder **out, wl_error *err) {
  wl_builder *b = wl_mem_zalloc(sizeof *b);
  *out = b;
  if (!b) return wl_nomem(err);
  b->v = wl_mem_alloc(WL_TABLET_ROWS * sizeof *b->v);
  b->t = wl_mem_alloc(WL_TABLET_ROWS);
  if (b->v && b->t) return WL_OK;
  wl_builder_close(b);
  *out = NULL;
  return wl_nomem(err);
}

static void segment_free(wl_segment *s) {
  wl_mem_free(s->data);
  wl_mem_free(s->valid);
  wl_mem_free(s->tags);
  wl_mem_free(s->heap);
}

void wl_builder_close(wl_builder *b) {
  if (!b) return;
  for (int i = 0; i < b->n_segments; i++) segment_free(&b->segments[i]);
  wl_mem_free(b->segments);
  wl_mem_free(b->v);
  wl_mem_free(b->t);
  wl_mem_free(b->heap);
  wl_mem_free(b);
}

size_t wl_builder_bytes(const wl_builder *b) { return b->n_bytes + b->n_heap; }

static wl_u8 int_phys(const wl_domain *d) {
  if (d->lo >= -128 && d->hi <= 127) return WL_P_I8;
  if (d->lo >= -32768 && d->hi <= 32767) return WL_P_I16;
  if (d->lo >= -2147483647 - 1 && d->hi <= 2147483647) return WL_P_I32;
  return WL_P_I64;
}

/* Types, ranges and the narrowest physical type of the staged rows. */
static void examine(const wl_builder *b, wl_segment *s) {
  wl_domain d = {0, WL_I64_MAX, WL_I64_MIN, __builtin_inf(), -__builtin_inf()};
  bool narrow_real = true;
  for (wl_i32 i = 0; i < b->n; i++) {
    wl_u8 t = b->t[i];
    d.mask |= (wl_u8)WL_M(t);
    if (t == WL_T_INT) {
      wl_i64 x = (wl_i64)b->v[i];
      if (x < d.lo) d.lo = x;
      if (x > d.hi) d.hi = x;
    } else if (t == WL_T_REAL) {
      double x = wl_as_f64(b->v[i]);
      if (x < d.flo) d.flo = x;
      if (x > d.fhi) d.fhi = x;
      narrow_real &= (double)(float)x == x; /* keeps -0.0 and infinities */
    } else if (t == WL_T_NULL) {
      s->n_nulls++;
    }
  }
  s->domain = d;
  unsigned types = d.mask & ~WL_M(WL_T_NULL);
  if (types == 0) s->phys = WL_P_I8;
  else if (types == WL_M(WL_T_INT)) s->phys = int_phys(&d);
  else if (types == WL_M(WL_T_REAL)) s->phys = narrow_real ? WL_P_F32 : WL_P_F64;
  else if (types == WL_M(WL_T_TEXT)) s->phys = WL_P_TEXT;
  else s->phys = WL_P_ANY;
}

/* Writes the value of one row (an integer, the bits of a real, or a heap place) as phys. */
static void put(void *data, wl_u8 phys, wl_i32 i, wl_u64 v) {
  switch ((wl_phys)phys) {
  case WL_P_I8: ((wl_i8 *)data)[i] = (wl_i8)v; break;
  case WL_P_I16: ((wl_i16 *)data)[i] = (wl_i16)v; break;
  case WL_P_I32: ((wl_i32 *)data)[i] = (wl_i32)v; break;
  case WL_P_F32: ((float *)data)[i] = (float)wl_as_f64(v); break;
  default: ((wl_u64 *)data)[i] = v;
  }
}

/* The reverse: what put would have been given. */
static wl_u64 get(const void *data, wl_u8 phys, wl_i32 i) {
  switch ((wl_phys)phys) {
  case WL_P_I8: return (wl_u64)(wl_i64)((const wl_i8 *)data)[i];
  case WL_P_I16: return (wl_u64)(wl_i64)((const wl_i16 *)data)[i];
  case WL_P_I32: return (wl_u64)(wl_i64)((const wl_i32 *)data)[i];
  case WL_P_F32: return wl_f64_bits((double)((const float *)data)[i]);
  default: return ((const wl_u64 *)data)[i];
  }
}

static wl_status flush(wl_builder *b) {
  if (b->n_segments == b->size_segments) {
    int size = b->size_segments ? b->size_segments * 2 : 16;
    wl_segment *p = wl_mem_realloc(b->segments, (size_t)b->n_segments * sizeof *p, (size_t)size * sizeof *p);
    if (!p) return WL_NOMEM;
    b->segments = p;
    b->size_segments = size;
  }
  wl_segment *s = &b->segments[b->n_segments];
  memset(s, 0, sizeof *s);
  s->n_rows = b->n;
  examine(b, s);
  size_t n = (size_t)b->n, n_data = n * (size_t)wl_phys_width(s->phys), n_valid = 0, n_tags = 0;
  s->data = wl_mem_alloc(n_data);
  if (!s->data) goto nomem;
  for (wl_i32 i = 0; i < b->n; i++) put(s->data, s->phys, i, b->v[i]);
  if (s->n_nulls) {
    n_valid = (n + 7) / 8;
    s->valid = wl_mem_zalloc(n_valid);
    if (!s->valid) goto nomem;
    for (wl_i32 i = 0; i < b->n; i++)
      if (b->t[i]) s->valid[i >> 3] |= (wl_u8)(1 << (i & 7));
  }
  if (s->phys == WL_P_ANY) {
    n_tags = n;
    s->tags = wl_mem_alloc(n);
    if (!s->tags) goto nomem;
    memcpy(s->tags, b->t, n);
  }
  if (s->phys >= WL_P_TEXT) {
    s->heap = wl_mem_alloc(b->n_heap);
    if (!s->heap) goto nomem;
    if (b->n_heap) memcpy(s->heap, b->heap, b->n_heap);
    s->n_heap = b->n_heap;
  }
  b->n_bytes += n_data + n_valid + n_tags + s->n_heap;
  b->n_segments++;
  b->n_rows += b->n;
  b->n = 0;
  b->n_heap = 0;
  return WL_OK;
nomem:
  segment_free(s);
  return WL_NOMEM;
}

static wl_status heap_room(wl_builder *b, size_t n) {
  if (b->n_heap + n <= b->size_heap) return WL_OK;
  size_t size = b->size_heap ? b->size_heap * 2 : 65536;
  while (size < b->n_heap + n) size *= 2;
  wl_u8 *p = wl_mem_realloc(b->heap, b->n_heap, size);
  if (!p) return WL_NOMEM;
  b->heap = p;
  b->size_heap = size;
  return WL_OK;
}

wl_status wl_builder_add(wl_builder *b, wl_val v) {
  if (v.t >= WL_T_TEXT) {
    if (b->n_heap + v.n > 0xffffffffu) return WL_TOOBIG; /* places are 32 bits */
    if (heap_room(b, v.n)) return WL_NOMEM;
    if (v.n) memcpy(b->heap + b->n_heap, wl_bytes(v), v.n);
    b->v[b->n] = (wl_u64)b->n_heap | (wl_u64)v.n << 32;
    b->n_heap += v.n;
  } else {
    b->v[b->n] = v.t == WL_T_NULL ? 0 : v.v;
  }
  b->t[b->n] = v.t;
  return ++b->n == WL_TABLET_ROWS ? flush(b) : WL_OK;
}

/* The physical type that serves every segment. */
static wl_u8 common_phys(const wl_builder *b, wl_domain *d) {
  d->mask = 0;
  d->lo = WL_I64_MAX;
  d->hi = WL_I64_MIN;
  d->flo = __builtin_inf();
  d->fhi = -__builtin_inf();
  wl_u8 real = WL_P_F32;
  for (int i = 0; i < b->n_segments; i++) {
    const wl_segment *s = &b->segments[i];
    d->mask |= s->domain.mask;
    if (s->domain.lo < d->lo) d->lo = s->domain.lo;
    if (s->domain.hi > d->hi) d->hi = s->domain.hi;
    if (s->domain.flo < d->flo) d->flo = s->domain.flo;
    if (s->domain.fhi > d->fhi) d->fhi = s->domain.fhi;
    if (s->phys == WL_P_F64) real = WL_P_F64;
  }
  unsigned types = d->mask & ~WL_M(WL_T_NULL);
  if (types == 0) return WL_P_I8;
  if (types == WL_M(WL_T_INT)) return int_phys(d);
  if (types == WL_M(WL_T_REAL)) return real;
  return types == WL_M(WL_T_TEXT) ? WL_P_TEXT : WL_P_ANY;
}

/* Brings one segment to phys, which holds at least what the segment holds. */
static wl_status convert(wl_builder *b, wl_segment *s, wl_u8 phys) {
  if (s->phys == phys) return WL_OK;
  size_t n = (size_t)s->n_rows;
  void *data = wl_mem_alloc(n * (size_t)wl_phys_width(phys));
  if (!data) return WL_NOMEM;
  for (wl_i32 i = 0; i < s->n_rows; i++) put(data, phys, i, get(s->data, s->phys, i));
  if (phys == WL_P_ANY) {
    wl_u8 tag = s->phys <= WL_P_I64 ? WL_T_INT : s->phys <= WL_P_F64 ? WL_T_REAL : WL_T_TEXT;
    s->tags = wl_mem_alloc(n);
    if (!s->tags) {
      wl_mem_free(data);
      return WL_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
      bool ok = !s->valid || (s->valid[i >> 3] >> (i & 7) & 1);
      s->tags[i] = ok ? tag : WL_T_NULL;
      if (!ok) ((wl_u64 *)data)[i] = 0;
    }
    b->n_bytes += n;
  } else if (s->n_nulls == s->n_rows) {
    memset(data, 0, n * (size_t)wl_phys_width(phys));
  }
  b->n_bytes += n * (size_t)(wl_phys_width(phys) - wl_phys_width(s->phys));
  wl_mem_free(s->data);
  s->data = data;
  s->phys = phys;
  return WL_OK;
}

wl_status wl_builder_finish(wl_builder *b, wl_column **out, wl_error *err) {
  *out = NULL;
  if (b->n && flush(b)) return wl_nomem(err);
  wl_column *c = wl_mem_zalloc(sizeof *c);
  if (!c) return wl_nomem(err);
  c->phys = common_phys(b, &c->domain);
  for (int i = 0; i < b->n_segments; i++) {
    if (convert(b, &b->segments[i], c->phys)) {
      wl_mem_free(c);
      return wl_nomem(err);
    }
  }
  atomic_init(&c->refs, 1);
  c->n_rows = b->n_rows;
  c->n_tablets = b->n_segments;
  c->segments = b->segments;
  c->n_bytes = b->n_bytes + sizeof *c + (size_t)b->n_segments * sizeof(wl_segment);
  b->segments = NULL;
  b->n_segments = b->size_segments = 0;
  b->n_rows = 0;
  b->n_bytes = 0;
  *out = c;
  return WL_OK;
}
