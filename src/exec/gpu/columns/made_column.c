/*
** See made_column.h.
*/
#include "exec/gpu/columns/made_column.h"
#include "base/mem.h"
#include "column/dict.h"
#include "exec/gpu/columns/devcol_impl.h"
#include "exec/gpu/kernels/kfargs.h"
#include <string.h>

/* ---- to the host */

/* Allocates the data of a segment. */
static wl_status open_segment(wl_segment *s, bool nullable) {
  bool texts = s->phys >= WL_P_TEXT;
  size_t n = (size_t)s->n_rows;
  bool any = s->phys == WL_P_ANY;
  s->data = wl_mem_alloc(n * 8 + 8);
  if (nullable || any) s->valid = wl_mem_zalloc((n + 7) / 8 + 8);
  if (any) s->tags = wl_mem_alloc(n + 8);
  if (texts) s->heap = wl_mem_alloc(s->n_heap + 8);
  bool all = s->data && (s->valid || !(nullable || any)) && (s->tags || !any);
  return all && (s->heap || !texts) ? WL_OK : WL_NOMEM;
}

static void close_segment(wl_segment *s) {
  wl_mem_free(s->data);
  wl_mem_free(s->valid);
  wl_mem_free(s->tags);
  wl_mem_free(s->heap);
  s->data = NULL;
  s->valid = s->tags = s->heap = NULL;
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
  size_t heap = 0; /* where the texts of a tablet begin */
  if (!wl_column_is_remote(c)) return WL_OK;
  for (int t = 0; t < c->n_tablets && !rc; t++) {
    wl_segment *s = &c->segments[t];
    size_t row = (size_t)t << WL_TABLET_SHIFT, n = (size_t)s->n_rows;
    if (open_segment(s, r->k.valid != NULL)) rc = wl_nomem(err);
    if (!rc) rc = d->copy_out(d, s->data, r->k.data + row * 8, n * 8, err);
    if (!rc && s->phys == WL_P_ANY) rc = fetch_tags(d, s, r->k.tags + row, err);
    if (!rc && r->k.valid) rc = d->copy_out(d, s->valid, r->k.valid + row / 8, (n + 7) / 8, err);
    if (!rc && s->n_heap) rc = d->copy_out(d, s->heap, r->k.heap + heap, s->n_heap, err);
    heap += s->n_heap;
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

/* Gives the column its memory on the device. n_heap: bytes of its texts. */
static wl_status open_memory(wl_device *d, wl_column *c, bool nullable, size_t n_heap,
                             wl_error *err) {
  bool any = c->phys == WL_P_ANY, texts = c->phys >= WL_P_TEXT;
  size_t rows = (size_t)c->n_rows, n_data = aligned(rows * 8);
  size_t n_more = any ? aligned(rows) : nullable ? aligned((rows + 7) / 8) : 0;
  size_t n_bases = texts ? aligned((size_t)c->n_tablets * 8) : 0;
  const wl_u8 *base = NULL;
  wl_devcol *r = wl_mem_zalloc(sizeof *r);
  if (!r) return wl_nomem(err);
  size_t n_bytes = n_data + n_more + n_bases + (texts ? aligned(n_heap) : 0);
  wl_status rc = wl_devcol_open(d, n_bytes, WL_WAY_DIRECT, r, &base, err);
  if (rc) {
    wl_mem_free(r);
    return rc;
  }
  int slot = slot_of(d, false);
  r->k.phys = c->phys;
  r->k.data = base;
  r->k.valid = nullable && !any ? base + n_data : NULL;
  r->k.tags = any ? base + n_data : NULL;
  if (texts) {
    r->k.heap_base = (const wl_u64 *)(const void *)(base + n_data + n_more);
    r->k.heap = base + n_data + n_more + n_bases;
  }
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

/* Makes a column of segments that have their numbers of bytes of texts. */
static wl_status make_column(wl_device *d, const wl_domain *domain, wl_segment *segments, int n,
                             wl_u8 phys, struct wl_dict *dict, wl_column **out, wl_kcol *k,
                             wl_error *err) {
  bool nullable = (domain->mask & WL_M(WL_T_NULL)) != 0;
  size_t n_heap = 0;
  for (int t = 0; t < n; t++) n_heap += segments[t].n_heap;
  *out = NULL;
  wl_status rc = wl_column_of(segments, n, dict, out, err);
  if (rc) return rc;
  wl_column *c = *out;
  c->n_bytes = sizeof *c + (size_t)n * sizeof *segments;
  c->phys = phys;
  rc = n ? open_memory(d, c, nullable, n_heap, err) : WL_OK;
  if (rc) {
    wl_column_drop(c);
    *out = NULL;
    return rc;
  }
  const wl_devcol *r = c->copy[slot_of(d, false)];
  *k = r ? r->k : (wl_kcol){.phys = c->phys};
  return WL_OK;
}

static int n_tablets(wl_i64 n_rows) {
  return (int)((n_rows + WL_TABLET_ROWS - 1) >> WL_TABLET_SHIFT);
}

wl_status wl_made_column(wl_device *d, const wl_domain *domain, wl_i64 n_rows, struct wl_dict *dict,
                         wl_column **out, wl_kcol *k, wl_error *err) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL);
  wl_u8 phys = !(domain->mask & F) ? WL_P_I64 : domain->mask & I ? WL_P_ANY : WL_P_F64;
  wl_domain held = *domain; /* a dictionary's domain is that of the texts */
  if (dict) held.mask = wl_mask_of_coded(held.mask);
  wl_segment *segments = make_segments(&held, phys, n_rows, n_tablets(n_rows));
  *out = NULL;
  if (!segments) {
    wl_dict_free(dict);
    return wl_nomem(err);
  }
  return make_column(d, domain, segments, n_tablets(n_rows), phys, dict, out, k, err);
}

/* ---- texts */

/* Device memory while texts are placed. */
typedef struct placing {
  wl_u64 *places; /* [n + 1]: where the text of each row begins in the heap */
  wl_u64 *bases;  /* [tablets + 1]: those of the first row of each tablet, and the end */
  wl_u64 *ends;   /* [tablets + 1] the same on the host */
} placing;

static wl_status place_texts(wl_device *d, const wl_kout *from, wl_u64 n, placing *x,
                             wl_error *err) {
  wl_u64 n_bases = (wl_u64)n_tablets((wl_i64)n) + 1;
  if (!(x->ends = wl_mem_alloc(n_bases * 8))) return wl_nomem(err);
  wl_status rc = wl_dev_alloc(d, (n + 1) * 8, (void **)&x->places, err);
  if (!rc) rc = wl_dev_alloc(d, n_bases * 8, (void **)&x->bases, err);
  if (!rc) rc = d->scan(d, from->n, x->places, (wl_i64)n, err);
  wl_ktextbases b = {x->places, x->bases, n, n_bases - 1};
  if (!rc) rc = wl_device_each(d, WL_K_TEXT_BASES, &b, sizeof b, n_bases, err);
  return rc ? rc : d->copy_out(d, x->ends, x->bases, n_bases * 8, err);
}

static wl_status fill_texts(wl_device *d, const wl_kout *from, wl_u64 n, const placing *x,
                            const wl_kcol *to, wl_error *err) {
  size_t n_bases = (size_t)n_tablets((wl_i64)n);
  wl_ktextcolumn a = {.from = *from,
                      .places = x->places,
                      .bases = x->bases,
                      .data = (wl_u64 *)(size_t)to->data,
                      .valid = (wl_u32 *)(size_t)to->valid,
                      .tags = (wl_u8 *)(size_t)to->tags,
                      .n = n};
  wl_kgather g = {.from = from->v,
                  .n = from->n,
                  .to = x->places,
                  .heap = (wl_u8 *)(size_t)to->heap,
                  .n_rows = n};
  wl_status rc = wl_device_each(d, WL_K_TEXT_COLUMN, &a, sizeof a, n, err);
  if (!rc) rc = d->copy_on(d, (void *)(size_t)to->heap_base, x->bases, n_bases * 8, err);
  if (rc || !x->ends[n_bases]) return rc;
  return wl_device_each(d, WL_K_GATHER, &g, sizeof g, n * 32, err);
}

wl_status wl_made_texts(wl_device *d, const wl_domain *domain, wl_i64 n_rows, const wl_kout *from,
                        wl_column **out, wl_error *err) {
  placing x = {NULL, NULL, NULL};
  int n = n_tablets(n_rows);
  wl_u8 phys = from->type == WL_R_TEXT ? WL_P_TEXT : WL_P_ANY;
  wl_segment *segments = NULL;
  wl_kcol to;
  *out = NULL;
  wl_status rc = place_texts(d, from, (wl_u64)n_rows, &x, err);
  for (int t = 0; t < n && !rc; t++)
    if (x.ends[t + 1] - x.ends[t] > 0xffffffffULL)
      rc = wl_fail(err, WL_FULL, "the texts of a tablet are too long");
  if (!rc && !(segments = make_segments(domain, phys, n_rows, n))) rc = wl_nomem(err);
  for (int t = 0; t < n && !rc; t++) segments[t].n_heap = (size_t)(x.ends[t + 1] - x.ends[t]);
  if (!rc) rc = make_column(d, domain, segments, n, phys, NULL, out, &to, err);
  if (!rc && n) rc = fill_texts(d, from, (wl_u64)n_rows, &x, &to, err);
  if (rc && *out) {
    wl_column_drop(*out);
    *out = NULL;
  }
  wl_dev_free(d, x.places, ((size_t)n_rows + 1) * 8);
  wl_dev_free(d, x.bases, ((size_t)n + 1) * 8);
  wl_mem_free(x.ends);
  return rc;
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
