/*
** Columns on a device; see devcol.h. A copy is one allocation. For a column it holds data, valid
** bits, tags and heap; for a lookup, all its arrays.
*/
#include "exec/gpu/columns/devcol_impl.h"
#include "base/mem.h"
#include "column/evict.h"
#include <assert.h>
#include <string.h>

/* Removes a resident copy from its device's list and frees it. */
static void forget(wl_devcol **at) {
  wl_devcol *c = *at;
  int slot = slot_of(c->device, c->mapped);
  *at = c->next;
  if (c->lookup)
    c->lookup->copy[slot] = NULL;
  else
    c->column->copy[slot] = NULL;
  wl_devcol_free(c);
  wl_mem_free(c);
}

static wl_devcol **head(wl_device *d) {
  return (wl_devcol **)&d->residents;
}

/* Few queries share a lookup, so its uses are not counted. */
static wl_i64 uses_of(const wl_devcol *c) {
  return c->column ? c->column->copy_uses[slot_of(c->device, c->mapped)] : 1;
}

/* Evicts one resident copy, mapped or not. Returns false if this wave uses all of them. */
static bool evict(wl_device *d, bool mapped) {
  wl_evict e = {0};
  for (wl_devcol **at = head(d); *at; at = &(*at)->next)
    if ((*at)->mapped == mapped && (*at)->last_use < d->clock)
      wl_evict_offer(&e, at, (*at)->last_use, uses_of(*at));
  wl_devcol **choice = wl_evict_choice(&e);
  if (!choice) return false;
  wl_lookup *l = (*choice)->lookup;
  wl_column *c = (*choice)->column;
  wl_error ignored; /* what only the device has is copied to the host first */
  if (l && l->on_device && wl_devlookup_fetch(d, l, &ignored)) return false;
  if (c && wl_column_is_remote(c) && wl_made_fetch(d, c, &ignored)) return false;
  forget(choice);
  return true;
}

wl_status wl_dev_alloc(wl_device *d, size_t n, void **out, wl_error *err) {
  *out = NULL;
  n = aligned(n ? n : 1);
  while (d->used + (wl_i64)n > d->budget && evict(d, false)) {
  }
  if (d->used + (wl_i64)n > d->budget)
    return wl_fail(
        err, WL_FULL,
        "%lld bytes of device memory are needed beside %lld in use; device_budget is %lld",
        (wl_i64)n, d->used, d->budget);
  wl_status rc = d->alloc(d, n, out, err);
  while (rc && evict(d, false)) rc = d->alloc(d, n, out, err);
  if (!rc) d->used += (wl_i64)n;
  return rc;
}

void wl_dev_free(wl_device *d, void *p, size_t n) {
  if (!p) return;
  n = aligned(n ? n : 1);
  assert(d->used >= (wl_i64)n);
  d->free(d, p, n);
  d->used -= (wl_i64)n;
}

/* Byte offsets of the parts of a copy, all aligned. `end` is the size of the copy. */
typedef struct layout {
  size_t data, valid, tags, heap_base, heap, end;
} layout;

/* The rows of a tablet that are among rows [first, end), and the bytes of their texts. */
typedef struct slice {
  size_t row, n; /* rows [row, row + n) of the tablet */
  size_t heap, n_heap;
} slice;

/* The bytes in the heap of the texts among n rows. */
static void find_heap(const wl_segment *s, wl_u8 phys, slice *of) {
  const wl_u64 *v = s->data;
  size_t low = s->n_heap, high = 0;
  for (size_t i = of->row; i < of->row + of->n; i++) {
    bool text =
        phys == WL_P_ANY ? s->tags[i] >= WL_T_TEXT : !s->valid || (s->valid[i >> 3] >> (i & 7) & 1);
    size_t at = (wl_u32)v[i], end = at + (v[i] >> 32);
    if (!text || end == at) continue;
    if (at < low) low = at;
    if (end > high) high = end;
  }
  of->heap = low < high ? low : 0;
  of->n_heap = low < high ? high - low : 0;
}

static slice slice_of(const wl_column *c, int t, wl_i64 first, wl_i64 end) {
  const wl_segment *s = &c->segments[t];
  wl_i64 base = (wl_i64)t << WL_TABLET_SHIFT;
  slice of = {.n = (size_t)s->n_rows, .n_heap = s->n_heap};
  if (first <= base && end - base >= s->n_rows) return of;
  of.row = first > base ? (size_t)(first - base) : 0;
  of.n = (size_t)(end - base < s->n_rows ? end - base : s->n_rows) - of.row;
  if (c->phys >= WL_P_TEXT) find_heap(s, c->phys, &of);
  return of;
}

static int tablet_of(wl_i64 row) {
  return (int)(row >> WL_TABLET_SHIFT);
}

/* One past the last tablet with rows before `end`. */
static int tablet_end(const wl_column *c, wl_i64 end) {
  int n = tablet_of(end + WL_TABLET_ROWS - 1);
  return n < c->n_tablets ? n : c->n_tablets;
}

/* Leaves room for at least `cap` rows. */
static layout lay_out_room(const wl_column *c, wl_i64 first, wl_i64 end, size_t cap) {
  layout l;
  size_t rows = 0, heap = 0;
  int from = tablet_of(first), to = tablet_end(c, end);
  for (int t = from; t < to; t++) {
    slice s = slice_of(c, t, first, end);
    rows += s.n;
    heap += s.n_heap;
  }
  if (rows < cap) rows = cap;
  bool nullable = (c->domain.mask & WL_M(WL_T_NULL)) != 0 && c->phys != WL_P_ANY;
  l.data = 0;
  l.valid = aligned(rows * (size_t)wl_phys_width(c->phys));
  l.tags = l.valid + (nullable ? aligned((rows + 7) / 8) : 0);
  l.heap_base = l.tags + (c->phys == WL_P_ANY ? aligned(rows) : 0);
  l.heap = l.heap_base + (c->phys >= WL_P_TEXT ? aligned((size_t)(to - from) * 8) : 0);
  l.end = l.heap + (c->phys >= WL_P_TEXT ? aligned(heap) : 0);
  return l;
}

static layout lay_out(const wl_column *c, wl_i64 first, wl_i64 end) {
  return lay_out_room(c, first, end, 0);
}

size_t wl_devcol_bytes(const wl_column *c, wl_i64 first, wl_i64 end) {
  return lay_out(c, first, end).end;
}

void wl_devcol_free(wl_devcol *c) {
  if (c->mapped && c->memory)
    c->device->host_free(c->device, c->memory);
  else
    wl_dev_free(c->device, c->memory, c->n_bytes);
  if (c->mapped && (c->column || c->lookup)) c->device->mapped -= (wl_i64)c->n_bytes;
  c->memory = NULL;
}

static const wl_u8 all[WL_TABLET_ROWS / 8] = {[0 ... WL_TABLET_ROWS / 8 - 1] = 0xff};

/* Lists the pieces to copy: the data of all tablets, then all valid bits, then tags, then heaps.
** Returns their number. */
static int list_pieces(const wl_column *c, wl_i64 first, wl_i64 end, const layout *l,
                       wl_u64 *heap_base, wl_piece *out) {
  size_t width = (size_t)wl_phys_width(c->phys), heap = 0;
  int n = 0, from = tablet_of(first), to = tablet_end(c, end);
  for (int part = 0; part < 4; part++) {
    size_t row = 0;
    if (part == 1 && l->tags == l->valid) continue;
    if (part == 2 && l->heap_base == l->tags) continue;
    if (part == 3 && c->phys < WL_P_TEXT) continue;
    if (part == 3)
      out[n++] = (wl_piece){l->heap_base, heap_base, (size_t)(to - from) * sizeof *heap_base};
    for (int t = from; t < to; t++) {
      const wl_segment *s = &c->segments[t];
      slice of = slice_of(c, t, first, end);
      switch (part) {
      case 0:
        out[n++] = (wl_piece){row * width, (wl_u8 *)s->data + of.row * width, of.n * width};
        break;
      case 1:
        out[n++] =
            (wl_piece){l->valid + row / 8, s->valid ? s->valid + of.row / 8 : all, (of.n + 7) / 8};
        break;
      case 2: out[n++] = (wl_piece){l->tags + row, s->tags + of.row, of.n}; break;
      default: /* offsets are those in the whole heap: of a part, the base is below 0 */
        heap_base[t - from] = heap - of.heap;
        out[n++] = (wl_piece){l->heap + heap, s->heap + of.heap, of.n_heap};
        heap += of.n_heap;
      }
      row += of.n;
    }
  }
  return n;
}

wl_status wl_devcol_open(wl_device *d, size_t n, wl_way way, wl_devcol *out, const wl_u8 **address,
                         wl_error *err) {
  memset(out, 0, sizeof *out);
  out->device = d;
  out->n_bytes = n;
  out->mapped = way == WL_WAY_MAPPED;
  wl_status rc = out->mapped ? d->host_alloc(d, n ? n : 1, &out->memory, err)
                             : wl_dev_alloc(d, n, &out->memory, err);
  void *at = out->memory;
  if (!rc && out->mapped) rc = d->host_address(d, out->memory, &at, err);
  *address = at;
  if (rc) wl_devcol_free(out);
  return rc;
}

wl_status wl_devcol_copy(wl_device *d, const wl_column *c, wl_i64 first, wl_i64 end, wl_way way,
                         int threads, wl_devcol *out, wl_error *err) {
  layout l = lay_out(c, first, end);
  const wl_u8 *base = NULL;
  wl_status rc = wl_devcol_open(d, l.end, way, out, &base, err);
  if (rc) return rc;
  out->k.phys = c->phys;
  out->k.data = base;
  if (l.tags > l.valid) out->k.valid = base + l.valid;
  if (l.heap_base > l.tags) out->k.tags = base + l.tags;
  if (c->phys >= WL_P_TEXT) {
    out->k.heap = base + l.heap;
    out->k.heap_base = (const wl_u64 *)(const void *)(base + l.heap_base);
  }
  size_t n = (size_t)(tablet_end(c, end) - tablet_of(first));
  wl_u64 *heap_base = wl_mem_zalloc(n * sizeof *heap_base);
  wl_piece *pieces = wl_mem_alloc((4 * n + 1) * sizeof *pieces);
  if (!heap_base || !pieces) rc = wl_nomem(err);
  if (!rc) {
    int n_pieces = list_pieces(c, first, end, &l, heap_base, pieces);
    rc = wl_stage_in(d, way, threads, out->memory, pieces, n_pieces, err);
  }
  wl_mem_free(pieces);
  wl_mem_free(heap_base);
  if (rc) wl_devcol_free(out);
  return rc;
}

void wl_devcol_drop_copies(void *_Atomic const *copy, void *_Atomic const *on) {
  for (int k = 0; k < WL_MAX_COPIES; k++) {
    wl_device *d = on[k];
    if (!d) continue;
    wl_device_lock(d);
    if (copy[k]) wl_devcol_forget(d, copy[k]);
    wl_device_unlock(d);
  }
}
void wl_devcol_drop(wl_column *c) {
  wl_devcol_drop_copies(c->copy, c->on);
}

void wl_devcol_forget(wl_device *d, const wl_devcol *r) {
  wl_devcol **at = head(d);
  while (*at && *at != r) at = &(*at)->next;
  if (*at) forget(at);
}

wl_status wl_devcol_map_room(wl_device *d, wl_i64 n, wl_error *err) {
  while (d->mapped + n > d->mapped_budget && evict(d, true)) {
  }
  if (d->mapped + n > d->mapped_budget)
    return wl_fail(err, WL_FULL, "host_budget leaves no room for mapped columns");
  return WL_OK;
}

void wl_devcol_settle(wl_device *d, wl_devcol *r) {
  if (r->mapped) d->mapped += (wl_i64)r->n_bytes;
  r->next = *head(d);
  *head(d) = r;
}

/* ---- making a copy from the copy of the previous version of the column */

/* Returns, for each tablet of c, the tablet of b that shares its memory, or -1. */
static int *same_tablets(const wl_column *c, const wl_column *b) {
  size_t n_slots = 64;
  while (n_slots < 2 * (size_t)b->n_tablets) n_slots *= 2;
  int *slots = wl_mem_zalloc(n_slots * sizeof *slots);
  int *from = wl_mem_alloc(((size_t)c->n_tablets + 1) * sizeof *from);
  for (int u = 0; u < b->n_tablets && slots && from; u++) {
    size_t at = (size_t)b->segments[u].data / 64 % n_slots;
    while (slots[at]) at = (at + 1) % n_slots;
    slots[at] = u + 1;
  }
  for (int t = 0; t < c->n_tablets && slots && from; t++) {
    const wl_segment *s = &c->segments[t];
    size_t at = (size_t)s->data / 64 % n_slots;
    while (slots[at] && b->segments[slots[at] - 1].data != s->data) at = (at + 1) % n_slots;
    from[t] = slots[at] && b->segments[slots[at] - 1].n_rows == s->n_rows ? slots[at] - 1 : -1;
  }
  wl_mem_free(slots);
  if (slots) return from;
  wl_mem_free(from);
  return NULL;
}

/* Copies the shared tablets within the device. Adjacent tablets are copied together. */
static wl_status copy_same(wl_device *d, const wl_column *c, const int *from, const wl_devcol *old,
                           wl_u8 *base, const layout *l, wl_error *err) {
  size_t width = (size_t)wl_phys_width(c->phys);
  wl_status rc = WL_OK;
  for (int t = 0, end; t < c->n_tablets && !rc; t = end) {
    end = t + 1;
    if (from[t] < 0) continue;
    size_t rows = (size_t)c->segments[t].n_rows, to = (size_t)t << WL_TABLET_SHIFT,
           at = (size_t)from[t] << WL_TABLET_SHIFT;
    for (; end < c->n_tablets && from[end] == from[end - 1] + 1; end++)
      rows += (size_t)c->segments[end].n_rows;
    rc = d->copy_on(d, base + to * width, (const wl_u8 *)old->k.data + at * width, rows * width,
                    err);
    if (!rc && l->tags > l->valid)
      rc = d->copy_on(d, base + l->valid + to / 8, (const wl_u8 *)old->k.valid + at / 8,
                      (rows + 7) / 8, err);
  }
  return rc;
}

/* Sends the tablets that are not shared to the device. */
static wl_status send_others(wl_device *d, const wl_column *c, const int *from, wl_u8 *base,
                             const layout *l, wl_way way, int threads, wl_error *err) {
  size_t width = (size_t)wl_phys_width(c->phys);
  wl_piece *pieces = wl_mem_alloc((2 * (size_t)c->n_tablets + 1) * sizeof *pieces);
  int n = 0;
  if (!pieces) return wl_nomem(err);
  for (int part = 0; part < (l->tags > l->valid ? 2 : 1); part++)
    for (int t = 0; t < c->n_tablets; t++) {
      const wl_segment *s = &c->segments[t];
      size_t row = (size_t)t << WL_TABLET_SHIFT, rows = (size_t)s->n_rows;
      if (from[t] >= 0) continue;
      if (part == 0)
        pieces[n++] = (wl_piece){row * width, s->data, rows * width};
      else
        pieces[n++] = (wl_piece){l->valid + row / 8, s->valid ? s->valid : all, (rows + 7) / 8};
    }
  wl_status rc = wl_stage_in(d, way, threads, base, pieces, n, err);
  wl_mem_free(pieces);
  return rc;
}

/*
** Makes the resident copy of c from the copy of c->before, the previous version of the column.
** Only changed tablets are sent. The others stay in place if the old copy is not needed any more;
** otherwise they are copied within the device. *out is NULL if this is not possible.
*/
static wl_status derive_from(wl_device *d, wl_column *c, wl_column *b, wl_way way, int threads,
                             bool *derived, wl_devcol **out, wl_error *err) {
  const bool mapped = way == WL_WAY_MAPPED;
  wl_devcol *old = b && !mapped ? b->copy[slot_of(d, mapped)] : NULL, made;
  bool nulls = (c->domain.mask & WL_M(WL_T_NULL)) != 0;
  *out = NULL;
  if (!old || b->phys != c->phys || c->phys >= WL_P_TEXT || nulls != (old->k.valid != NULL))
    return WL_OK;
  old->last_use = d->clock; /* protects it from eviction */
  size_t rows = (size_t)c->n_rows, had = old->cap_rows ? old->cap_rows : (size_t)b->n_rows;
  bool stays = rows <= had && atomic_load(&b->refs) == 1;
  size_t cap = rows <= had ? had : rows > 2 * had ? rows : 2 * had;
  layout l = lay_out_room(c, 0, c->n_rows, cap);
  int *from = same_tablets(c, b);
  if (!from) return wl_nomem(err);
  wl_status rc = WL_OK;
  wl_devcol *r = stays ? old : wl_mem_zalloc(sizeof *r);
  const wl_u8 *base = NULL;
  wl_error full = {0};
  if (!r) rc = wl_nomem(err);
  if (!rc && !stays && wl_devcol_open(d, l.end, way, &made, &base, &full)) {
    wl_mem_free(from); /* a plain copy takes less memory and may still fit */
    wl_mem_free(r);
    return WL_OK;
  }
  if (stays) { /* send moved tablets again: copying in place could overwrite their source */
    for (int t = 0; t < c->n_tablets; t++)
      if (from[t] != t) from[t] = -1;
    b->copy[slot_of(d, mapped)] = NULL;
  } else if (!rc) {
    *r = made;
    r->k.phys = c->phys;
    r->k.data = base;
    if (nulls) r->k.valid = base + l.valid;
    rc = copy_same(d, c, from, old, r->memory, &l, err);
    wl_devcol_settle(d, r);
  }
  if (r) {
    r->cap_rows = cap;
    r->column = c;
    c->copy[slot_of(d, mapped)] = r;
    c->on[slot_of(d, mapped)] = d;
    c->drop = wl_devcol_drop;
  }
  if (!rc) rc = send_others(d, c, from, r->memory, &l, way, threads, err);
  wl_mem_free(from);
  *derived = true;
  if (rc && r) { /* the copy is a mix of the old and the new version */
    wl_devcol **at = head(d);
    while (*at && *at != r) at = &(*at)->next;
    if (*at) forget(at);
    return rc;
  }
  *out = r;
  return rc;
}

static wl_status derive(wl_device *d, wl_column *c, wl_way way, int threads, wl_devcol **out,
                        wl_error *err) {
  wl_column *b = wl_column_take_before(c);
  bool derived = false;
  wl_status rc = derive_from(d, c, b, way, threads, &derived, out, err);
  wl_column_return_before(c, b, derived);
  return rc;
}

wl_status wl_devcol_resident(wl_device *d, wl_column *c, wl_way way, int threads, wl_devcol **out,
                             wl_error *err) {
  bool mapped = way == WL_WAY_MAPPED;
  int slot = slot_of(d, mapped);
  wl_devcol *r = c->copy[slot];
  if (!r) {
    wl_status rc = derive(d, c, way, threads, &r, err);
    if (rc) return rc;
  }
  if (!r) {
    wl_status rc =
        mapped ? wl_devcol_map_room(d, (wl_i64)wl_devcol_bytes(c, 0, c->n_rows), err) : WL_OK;
    if (rc) return rc;
    r = wl_mem_zalloc(sizeof *r);
    if (!r) return wl_nomem(err);
    rc = wl_devcol_copy(d, c, 0, c->n_rows, way, threads, r, err);
    if (rc) {
      wl_mem_free(r);
      return rc;
    }
    r->column = c;
    wl_devcol_settle(d, r);
    c->copy[slot] = r;
    c->on[slot] = d;
    c->drop = wl_devcol_drop;
  }
  r->last_use = d->clock; /* evict() takes only copies with an older last_use */
  *out = r;
  return WL_OK;
}

wl_devcol *wl_devcol_find(const wl_device *d, const wl_column *c, bool mapped) {
  return c->copy[slot_of(d, mapped)];
}

bool wl_devcol_is_there(const wl_device *d, wl_column *c, bool mapped) {
  return wl_column_has_copy(c, slot_of(d, mapped));
}

void wl_devcol_use(wl_device *d, wl_column *c, bool mapped) {
  int slot = slot_of(d, mapped);
  c->on[slot] = d; /* the lock of this device guards the counts */
  c->copy_uses[slot]++;
  c->copy_hits[slot] += c->copy[slot] != NULL;
}

wl_devcol_facts wl_devcol_info(const wl_column *c) {
  wl_devcol_facts f = {0, 0, 0};
  for (int k = 0; k < WL_MAX_COPIES; k++) {
    wl_device *d = c->on[k];
    if (!d) continue;
    wl_device_lock(d);
    const wl_devcol *copy = c->copy[k];
    if (copy) f.n_bytes += (wl_i64)copy->n_bytes;
    f.uses += c->copy_uses[k];
    f.hits += c->copy_hits[k];
    wl_device_unlock(d);
  }
  return f;
}

void wl_devcol_tick(wl_device *d) {
  d->clock++;
}

wl_kcol wl_devcol_from(const wl_devcol *c, wl_i64 first) {
  wl_kcol k = c->k;
  size_t rows = (size_t)first;
  k.data += rows * (size_t)wl_phys_width((wl_phys)k.phys);
  if (k.valid) k.valid += rows / 8;
  if (k.tags) k.tags += rows;
  if (k.heap_base) k.heap_base += tablet_of(first);
  return k;
}
