/*
** See made_column.h.
*/
#include "exec/gpu/columns/made_column.h"
#include "base/mem.h"
#include "column/dict.h"
#include "exec/gpu/columns/devcol_impl.h"
#include <string.h>

/* ---- to the host */

/* Allocates the data of a segment. */
static wl_status open_segment(wl_segment *s, bool nullable) {
  size_t n = (size_t)s->n_rows;
  bool any = s->phys == WL_P_ANY;
  s->data = wl_mem_alloc(n * 8 + 8);
  if (nullable || any) s->valid = wl_mem_zalloc((n + 7) / 8 + 8);
  if (any) s->tags = wl_mem_alloc(n + 8);
  return s->data && (s->valid || !(nullable || any)) && (s->tags || !any) ? WL_OK : WL_NOMEM;
}

static void close_segment(wl_segment *s) {
  wl_mem_free(s->data);
  wl_mem_free(s->valid);
  wl_mem_free(s->tags);
  s->data = NULL;
  s->valid = s->tags = NULL;
}

/* Copies the tags of a segment, and makes its bitmap of them. */
static wl_status fetch_tags(wl_device *d, wl_segment *s, const wl_u8 *from, wl_error *err) {
  wl_status rc = d->copy_out(d, s->tags, from, (size_t)s->n_rows, err);
  for (wl_i32 i = 0; i < s->n_rows && !rc; i++)
    if (s->tags[i] != WL_T_NULL) s->valid[i >> 3] |= (wl_u8)(1 << (i & 7));
  return rc;
}

/* Counts the NULLs of a segment. If there are none, it has no bitmap. */
static void count_nulls(wl_segment *s) {
  wl_i32 n = 0;
  for (wl_i32 i = 0; i < s->n_rows && s->valid; i++) n += s->valid[i >> 3] >> (i & 7) & 1;
  s->n_nulls = s->valid ? s->n_rows - n : 0;
  if (s->n_nulls) return;
  wl_mem_free(s->valid);
  s->valid = NULL;
}

wl_status wl_made_fetch(wl_device *d, wl_column *c, wl_error *err) {
  const wl_devcol *r = c->copy[slot_of(d, false)];
  wl_status rc = WL_OK;
  if (!wl_column_is_remote(c)) return WL_OK;
  for (int t = 0; t < c->n_tablets && !rc; t++) {
    wl_segment *s = &c->segments[t];
    size_t row = (size_t)t << WL_TABLET_SHIFT, n = (size_t)s->n_rows;
    if (open_segment(s, r->k.valid != NULL)) rc = wl_nomem(err);
    if (!rc) rc = d->copy_out(d, s->data, r->k.data + row * 8, n * 8, err);
    if (!rc && s->phys == WL_P_ANY) rc = fetch_tags(d, s, r->k.tags + row, err);
    if (!rc && r->k.valid) rc = d->copy_out(d, s->valid, r->k.valid + row / 8, (n + 7) / 8, err);
  }
  for (int t = 0; t < c->n_tablets; t++)
    if (rc)
      close_segment(&c->segments[t]);
    else
      count_nulls(&c->segments[t]);
  if (!rc) atomic_store(&c->on_host, true);
  return rc;
}

static wl_status fetch(wl_column *c, wl_error *err) {
  wl_device *d = NULL;
  for (int k = 0; k < WL_MAX_COPIES && !d; k++) d = c->on[k];
  assert(d);
  wl_device_lock(d);
  d->queue = 0;
  wl_status rc = wl_made_fetch(d, c, err);
  wl_device_unlock(d);
  if (!rc || rc == WL_NOMEM || rc == WL_NOT_TAKEN) return rc;
  return wl_not_taken(err, "a column cannot be copied from the device");
}

/* ---- making */

/* Segments without data. */
static wl_segment *make_segments(const wl_domain *domain, wl_u8 phys, wl_i64 n_rows, int n) {
  wl_segment *s = wl_mem_zalloc(((size_t)n + 1) * sizeof *s);
  for (int t = 0; s && t < n; t++) {
    wl_i64 left = n_rows - ((wl_i64)t << WL_TABLET_SHIFT);
    s[t].n_rows = (wl_i32)(left < WL_TABLET_ROWS ? left : WL_TABLET_ROWS);
    s[t].phys = phys;
    s[t].domain = *domain;
  }
  return s;
}

/* Gives the column its memory on the device. */
static wl_status open_memory(wl_device *d, wl_column *c, bool nullable, wl_error *err) {
  bool any = c->phys == WL_P_ANY;
  size_t rows = (size_t)c->n_rows, n_data = aligned(rows * 8);
  size_t n_more = any ? aligned(rows) : nullable ? aligned((rows + 7) / 8) : 0;
  const wl_u8 *base = NULL;
  wl_devcol *r = wl_mem_zalloc(sizeof *r);
  if (!r) return wl_nomem(err);
  wl_status rc = wl_devcol_open(d, n_data + n_more, WL_WAY_DIRECT, r, &base, err);
  if (rc) {
    wl_mem_free(r);
    return rc;
  }
  int slot = slot_of(d, false);
  r->k.phys = c->phys;
  r->k.data = base;
  r->k.valid = nullable && !any ? base + n_data : NULL;
  r->k.tags = any ? base + n_data : NULL;
  r->column = c;
  r->last_use = d->clock;
  wl_devcol_settle(d, r);
  c->copy[slot] = r;
  c->on[slot] = d;
  c->drop = wl_devcol_drop;
  c->fetch = fetch;
  c->on_device = true;
  return WL_OK;
}

wl_status wl_made_column(wl_device *d, const wl_domain *domain, wl_i64 n_rows, struct wl_dict *dict,
                         wl_column **out, wl_kcol *k, wl_error *err) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL);
  wl_u8 phys = !(domain->mask & F) ? WL_P_I64 : domain->mask & I ? WL_P_ANY : WL_P_F64;
  bool nullable = (domain->mask & WL_M(WL_T_NULL)) != 0;
  int n = (int)((n_rows + WL_TABLET_ROWS - 1) >> WL_TABLET_SHIFT);
  *out = NULL;
  wl_domain held = *domain; /* a dictionary's domain is that of the texts */
  if (dict) held.mask = wl_mask_of_coded(held.mask);
  wl_segment *segments = make_segments(&held, phys, n_rows, n);
  if (!segments) {
    wl_dict_free(dict);
    return wl_nomem(err);
  }
  wl_status rc = wl_column_of(segments, n, dict, out, err);
  if (rc) return rc;
  wl_column *c = *out;
  c->n_bytes = sizeof *c + (size_t)n * sizeof *segments;
  c->phys = phys;
  rc = n ? open_memory(d, c, nullable, err) : WL_OK;
  if (rc) {
    wl_column_drop(c);
    *out = NULL;
    return rc;
  }
  const wl_devcol *r = c->copy[slot_of(d, false)];
  *k = r ? r->k : (wl_kcol){.phys = c->phys};
  return WL_OK;
}

void wl_made_set_domain(wl_column *c, const wl_domain *values) {
  wl_domain held = *values;
  double n = (double)c->n_rows, span = (double)values->hi - (double)values->lo + 1;
  if (values->mask & WL_M(WL_T_INT) && span < n) n = span;
  if (c->dict) held.mask = wl_mask_of_coded(held.mask);
  for (int t = 0; t < c->n_tablets; t++) c->segments[t].domain = held;
  c->domain = held;
  if (c->dict) { /* only the segments have ranges of codes */
    c->domain.lo = wl_domain_nothing.lo;
    c->domain.hi = wl_domain_nothing.hi;
  }
  atomic_store(&c->n_distinct,
               n < 1 ? 1 : n); /* at most so many; a sample would have to be fetched */
}
