/*
** Shares segments between columns, appends to segments, and replaces some of their rows. Several
** short tablets of a file become one tablet in memory (tablet/read/image_columns.c).
**
** Invariants:
** 1. A segment that is changed here is not shared. Only wl_segment_overlay changes one whose data
**    is part of a slab, because its size stays the same.
*/
#include "base/mem.h"
#include "column/column.h"
#include <assert.h>
#include <string.h>

wl_slab *wl_slab_open(size_t n_bytes) {
  wl_slab *s = wl_mem_zalloc(sizeof *s);
  if (!s) return NULL;
  atomic_init(&s->refs, 1);
  s->size = n_bytes;
  s->memory = wl_mem_alloc(n_bytes);
  if (s->memory) return s;
  wl_mem_free(s);
  return NULL;
}

void wl_slab_drop(wl_slab *s) {
  if (!s || atomic_fetch_sub(&s->refs, 1) != 1) return;
  wl_mem_free(s->memory);
  wl_mem_free(s);
}

void *wl_slab_cut(wl_slab *s, size_t n_bytes) {
  size_t n = (n_bytes + 63) & ~(size_t)63;
  if (s->size - s->used < n) return NULL;
  s->used += n;
  return s->memory + s->used - n;
}

wl_status wl_segment_share(wl_segment *s) {
  s->shared = wl_mem_alloc(sizeof *s->shared);
  if (!s->shared) return WL_NOMEM;
  atomic_init(s->shared, 1);
  return WL_OK;
}

wl_segment wl_segment_hold(const wl_segment *s) {
  assert(s->shared);
  atomic_fetch_add(s->shared, 1);
  return *s;
}

/* Makes room for n rows. nulls: there will be NULLs, so a bitmap is needed. In valid the new rows
** are NULL. */
static wl_status reserve_rows(wl_segment *s, size_t n, bool nulls) {
  assert(!s->shared && !s->slab && n >= (size_t)s->n_rows);
  size_t n_old = (size_t)s->n_rows, width = (size_t)wl_phys_width(s->phys);
  void *data = wl_mem_realloc(s->data, n_old * width, n * width);
  if (!data) return WL_NOMEM;
  s->data = data;
  if (s->tags) {
    wl_u8 *tags = wl_mem_realloc(s->tags, n_old, n);
    if (!tags) return WL_NOMEM;
    s->tags = tags;
  }
  if (!s->valid && !nulls) return WL_OK;
  wl_u8 *valid = wl_mem_zalloc((n + 7) / 8);
  if (!valid) return WL_NOMEM;
  if (s->valid)
    memcpy(valid, s->valid, (n_old + 7) / 8);
  else
    memset(valid, 0xff, n_old / 8);
  if (!s->valid && n_old & 7) valid[n_old / 8] = (wl_u8)((1u << (n_old & 7)) - 1);
  wl_mem_free(s->valid);
  s->valid = valid;
  return WL_OK;
}

static bool is_valid(const wl_segment *s, wl_i32 i) {
  return !s->valid || (s->valid[i >> 3] >> (i & 7) & 1);
}

static void widen_domain(wl_domain *d, const wl_domain *by) {
  d->mask |= by->mask;
  if (by->lo < d->lo) d->lo = by->lo;
  if (by->hi > d->hi) d->hi = by->hi;
  if (by->flo < d->flo) d->flo = by->flo;
  if (by->fhi > d->fhi) d->fhi = by->fhi;
}

wl_status wl_segment_append(wl_segment *s, const wl_segment *more) {
  assert(s->phys == more->phys);
  size_t n = (size_t)s->n_rows + (size_t)more->n_rows, width = (size_t)wl_phys_width(s->phys);
  wl_i32 first = s->n_rows;
  if (s->n_heap + more->n_heap > 0xffffffffu) return WL_TOOBIG;
  if (reserve_rows(s, n, more->valid != NULL)) return WL_NOMEM;
  if (s->phys >= WL_P_TEXT) {
    wl_u8 *heap = wl_mem_realloc(s->heap, s->n_heap, s->n_heap + more->n_heap + 1);
    if (!heap) return WL_NOMEM;
    s->heap = heap;
    if (more->n_heap) memcpy(heap + s->n_heap, more->heap, more->n_heap);
  }
  memcpy((wl_u8 *)s->data + (size_t)first * width, more->data, (size_t)more->n_rows * width);
  if (s->tags) memcpy(s->tags + first, more->tags, (size_t)more->n_rows);
  for (wl_i32 i = 0; i < more->n_rows && (s->valid || s->phys >= WL_P_TEXT); i++) {
    bool has_value = is_valid(more, i);
    wl_i32 r = first + i;
    if (s->valid) s->valid[r >> 3] |= (wl_u8)(has_value << (r & 7));
    bool text = s->phys == WL_P_TEXT ? has_value : s->phys == WL_P_ANY && s->tags[r] >= WL_T_TEXT;
    if (text) ((wl_u64 *)s->data)[r] += s->n_heap; /* its place in the common heap */
  }
  s->n_heap += more->n_heap;
  s->n_rows = (wl_i32)n;
  s->n_nulls += more->n_nulls;
  widen_domain(&s->domain, &more->domain);
  return WL_OK;
}

wl_status wl_segment_pad(wl_segment *s, wl_i32 n_rows) {
  wl_i32 last = s->n_rows - 1;
  size_t width = (size_t)wl_phys_width(s->phys);
  if (n_rows == s->n_rows) return WL_OK;
  if (reserve_rows(s, (size_t)n_rows, false)) return WL_NOMEM;
  bool has_value = is_valid(s, last);
  wl_u8 *data = s->data;
  for (wl_i32 i = last + 1; i < n_rows; i++) {
    memcpy(data + (size_t)i * width, data + (size_t)last * width, width);
    if (s->tags) s->tags[i] = s->tags[last];
    if (s->valid) s->valid[i >> 3] |= (wl_u8)(has_value << (i & 7));
  }
  if (!has_value) s->n_nulls += n_rows - s->n_rows;
  s->n_rows = n_rows;
  return WL_OK;
}

/* The physical type that can hold the rows of both segments. */
static wl_u8 common_phys(const wl_segment *a, const wl_segment *b) {
  if (a->phys == b->phys || b->n_nulls == b->n_rows) return a->phys;
  if (a->n_nulls == a->n_rows) return b->phys;
  if (a->phys <= WL_P_I64 && b->phys <= WL_P_I64) return a->phys > b->phys ? a->phys : b->phys;
  bool reals =
      a->phys > WL_P_I64 && a->phys <= WL_P_F64 && b->phys > WL_P_I64 && b->phys <= WL_P_F64;
  return reals ? WL_P_F64 : WL_P_ANY;
}

static wl_status append_heap(wl_segment *s, const wl_segment *more) {
  if (s->n_heap + more->n_heap > 0xffffffffu) return WL_TOOBIG;
  wl_u8 *heap = wl_mem_realloc(s->heap, s->n_heap, s->n_heap + more->n_heap + 1);
  if (!heap) return WL_NOMEM;
  s->heap = heap;
  if (more->n_heap) memcpy(heap + s->n_heap, more->heap, more->n_heap);
  return WL_OK;
}

wl_status wl_segment_overlay(wl_segment *s, wl_segment *by, const wl_u16 *slots) {
  wl_u8 phys = common_phys(s, by);
  if (wl_segment_convert(s, phys) || wl_segment_convert(by, phys)) return WL_NOMEM;
  size_t width = (size_t)wl_phys_width(phys), n_bitmap = ((size_t)s->n_rows + 7) / 8;
  size_t n_heap = s->n_heap;
  if (phys >= WL_P_TEXT && by->n_heap) {
    wl_status rc = append_heap(s, by);
    if (rc) return rc;
    s->n_heap += by->n_heap;
  }
  if (by->n_nulls && !s->valid) {
    s->valid = wl_mem_alloc(n_bitmap);
    if (!s->valid) return WL_NOMEM;
    memset(s->valid, 0xff, n_bitmap);
    if (s->n_rows & 7) s->valid[n_bitmap - 1] = (wl_u8)((1u << (s->n_rows & 7)) - 1);
  }
  for (wl_i32 i = 0; i < by->n_rows; i++) {
    wl_i32 r = slots[i];
    bool has_value = is_valid(by, i);
    assert(r < s->n_rows);
    memcpy((wl_u8 *)s->data + (size_t)r * width, (const wl_u8 *)by->data + (size_t)i * width,
           width);
    if (s->tags) s->tags[r] = by->tags[i];
    bool text = phys == WL_P_TEXT ? has_value : phys == WL_P_ANY && s->tags[r] >= WL_T_TEXT;
    if (text) ((wl_u64 *)s->data)[r] += n_heap; /* its place in the common heap */
    if (!s->valid) continue;
    s->n_nulls += (is_valid(s, r) ? 1 : 0) - (has_value ? 1 : 0);
    s->valid[r >> 3] = (wl_u8)((s->valid[r >> 3] & ~(1 << (r & 7))) | has_value << (r & 7));
  }
  widen_domain(&s->domain, &by->domain);
  if (s->n_nulls) return WL_OK;
  s->domain.mask &= (wl_u8)~WL_M(WL_T_NULL);
  wl_mem_free(s->valid);
  s->valid = NULL;
  return WL_OK;
}
