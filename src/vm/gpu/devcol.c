/*
** Columns on a device; see devcol.h. A copy is one allocation: data, valid bits, tags, heap.
*/
#include "vm/gpu/devcol.h"
#include "base/mem.h"
#include <string.h>

enum { ALIGN = 256 };
static size_t aligned(size_t n) {
  return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* Takes a resident copy out of its device's list and frees it. */
static void forget(wl_devcol **at) {
  wl_devcol *c = *at;
  *at = c->next;
  c->column->copy[c->device->index] = NULL;
  wl_devcol_free(c);
  wl_mem_free(c);
}

static wl_devcol **head(wl_device *d) {
  return (wl_devcol **)&d->residents;
}

/* Gives up the resident column used longest ago; false when all are in use by this wave. */
static bool evict(wl_device *d) {
  wl_devcol **oldest = NULL;
  for (wl_devcol **at = head(d); *at; at = &(*at)->next)
    if ((*at)->last_use < d->clock && (!oldest || (*at)->last_use < (*oldest)->last_use))
      oldest = at;
  if (oldest) forget(oldest);
  return oldest != NULL;
}

wl_status wl_dev_alloc(wl_device *d, size_t n, void **out, wl_error *err) {
  *out = NULL;
  n = aligned(n ? n : 1);
  while (d->used + (wl_i64)n > d->budget && evict(d)) {
  }
  if (d->used + (wl_i64)n > d->budget)
    return wl_fail(
        err, WL_FULL,
        "%lld bytes of device memory are needed beside %lld in use; device_budget is %lld",
        (wl_i64)n, d->used, d->budget);
  wl_status rc = d->alloc(d, n, out, err);
  while (rc && evict(d)) rc = d->alloc(d, n, out, err);
  if (!rc) d->used += (wl_i64)n;
  return rc;
}

void wl_dev_free(wl_device *d, void *p, size_t n) {
  if (!p) return;
  n = aligned(n ? n : 1);
  d->free(d, p, n);
  d->used -= (wl_i64)n;
}

/* The parts of a copy, each at an aligned offset. */
typedef struct layout {
  size_t data, valid, tags, heap_base, heap, end;
} layout;

static layout lay_out(const wl_column *c, int first, int end) {
  layout l;
  size_t rows = 0, heap = 0;
  for (int t = first; t < end; t++) {
    rows += (size_t)c->segments[t].n_rows;
    heap += c->segments[t].n_heap;
  }
  bool nullable = (c->domain.mask & WL_M(WL_T_NULL)) != 0 && c->phys != WL_P_ANY;
  l.data = 0;
  l.valid = aligned(rows * (size_t)wl_phys_width(c->phys));
  l.tags = l.valid + (nullable ? aligned((rows + 7) / 8) : 0);
  l.heap_base = l.tags + (c->phys == WL_P_ANY ? aligned(rows) : 0);
  l.heap = l.heap_base + (c->phys >= WL_P_TEXT ? aligned((size_t)(end - first) * 8) : 0);
  l.end = l.heap + (c->phys >= WL_P_TEXT ? aligned(heap) : 0);
  return l;
}

size_t wl_devcol_bytes(const wl_column *c, int first, int end) {
  return lay_out(c, first, end).end;
}

void wl_devcol_free(wl_devcol *c) {
  wl_dev_free(c->device, c->memory, c->n_bytes);
  c->memory = NULL;
}

wl_status wl_devcol_copy(wl_device *d, const wl_column *c, int first, int end, wl_devcol *out,
                         wl_error *err) {
  layout l = lay_out(c, first, end);
  memset(out, 0, sizeof *out);
  out->device = d;
  out->n_bytes = l.end;
  wl_status rc = wl_dev_alloc(d, l.end, &out->memory, err);
  if (rc) return rc;
  wl_u8 *base = out->memory, all[WL_TABLET_ROWS / 8];
  wl_u64 *heap_base = wl_mem_zalloc((size_t)(end - first) * 8 + 8);
  if (!heap_base) rc = wl_nomem(err);
  memset(all, 0xff, sizeof all);
  out->k.phys = c->phys;
  out->k.data = base;
  if (l.tags > l.valid) out->k.valid = base + l.valid;
  if (l.heap_base > l.tags) out->k.tags = base + l.tags;
  if (c->phys >= WL_P_TEXT) {
    out->k.heap = base + l.heap;
    out->k.heap_base = (const wl_u64 *)(const void *)(base + l.heap_base);
  }
  size_t row = 0, heap = 0, width = (size_t)wl_phys_width(c->phys);
  for (int t = first; t < end && !rc; t++) {
    const wl_segment *s = &c->segments[t];
    size_t n = (size_t)s->n_rows;
    rc = d->copy_in(d, base + row * width, s->data, n * width, err);
    if (!rc && out->k.valid)
      rc = d->copy_in(d, base + l.valid + row / 8, s->valid ? s->valid : all, (n + 7) / 8, err);
    if (!rc && out->k.tags) rc = d->copy_in(d, base + l.tags + row, s->tags, n, err);
    if (!rc && c->phys >= WL_P_TEXT)
      rc = d->copy_in(d, base + l.heap + heap, s->heap, s->n_heap, err);
    if (!rc) heap_base[t - first] = heap;
    row += n;
    heap += s->n_heap;
  }
  if (!rc && c->phys >= WL_P_TEXT)
    rc = d->copy_in(d, base + l.heap_base, heap_base, (size_t)(end - first) * 8, err);
  wl_mem_free(heap_base);
  if (rc) wl_devcol_free(out);
  return rc;
}

/* The column goes: so do its copies. */
static void drop(wl_column *c) {
  for (int k = 0; k < WL_MAX_DEVICES; k++) {
    wl_device *d = c->on[k];
    if (!d) continue;
    wl_device_lock(d);
    for (wl_devcol **at = head(d); *at; at = &(*at)->next) {
      if (*at != c->copy[k]) continue;
      forget(at);
      break;
    }
    wl_device_unlock(d);
  }
}

wl_status wl_devcol_resident(wl_device *d, wl_column *c, wl_devcol **out, wl_error *err) {
  wl_devcol *r = c->copy[d->index];
  if (!r) {
    r = wl_mem_zalloc(sizeof *r);
    if (!r) return wl_nomem(err);
    wl_status rc = wl_devcol_copy(d, c, 0, c->n_tablets, r, err);
    if (rc) {
      wl_mem_free(r);
      return rc;
    }
    r->column = c;
    r->next = *head(d);
    *head(d) = r;
    c->copy[d->index] = r;
    c->on[d->index] = d;
    c->drop = drop;
  }
  r->last_use = d->clock; /* evict takes only what is older */
  *out = r;
  return WL_OK;
}

bool wl_devcol_is_resident(const wl_column *c) {
  bool found = false;
  for (int k = 0; k < WL_MAX_DEVICES && !found; k++) {
    wl_device *d = c->on[k];
    if (!d) continue;
    wl_device_lock(d);
    found = c->copy[k] != NULL;
    wl_device_unlock(d);
  }
  return found;
}

void wl_devcol_tick(wl_device *d) {
  d->clock++;
}

wl_kcol wl_devcol_from(const wl_devcol *c, int first) {
  wl_kcol k = c->k;
  size_t rows = (size_t)first << WL_TABLET_SHIFT;
  k.data += rows * (size_t)wl_phys_width((wl_phys)k.phys);
  if (k.valid) k.valid += rows / 8;
  if (k.tags) k.tags += rows;
  if (k.heap_base) k.heap_base += first;
  return k;
}
