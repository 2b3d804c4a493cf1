/*
** See device_rows.h. The kernels are wl_stay (kernels/kmade.h) and wl_gather (kernels/kresults.h).
*/
#include "exec/gpu/sinks/device_rows.h"
#include "base/mem.h"
#include "column/dict.h"
#include "exec/gpu/kernels/kfargs.h"
#include "exec/gpu/launch.h"
#include "exec/sink/rows.h"
#include <stdio.h>
#include <string.h>

/* ---- batches */

static void free_buffer(wl_device *d, wl_device_buffer *b) {
  wl_dev_free(d, b->p, b->n_bytes);
  *b = (wl_device_buffer){NULL, 0};
}

/* The device is locked. */
static void free_batch(wl_device_batch *b) {
  wl_device *d = b->device;
  int queue = d->queue;
  d->queue = 0;
  for (int k = 0; k < b->n_cols; k++) {
    free_buffer(d, &b->cols[k].valid);
    free_buffer(d, &b->cols[k].data);
    free_buffer(d, &b->cols[k].bytes);
  }
  d->queue = queue;
  wl_mem_free(b);
}

wl_device_batch *wl_device_batch_hold(wl_device_batch *b) {
  atomic_fetch_add(&b->refs, 1);
  return b;
}

void wl_device_batch_drop(wl_device_batch *b) {
  if (!b || atomic_fetch_sub(&b->refs, 1) != 1) return;
  wl_device *d = b->device;
  wl_device_lock(d);
  free_batch(b);
  wl_device_unlock(d);
}

/* ---- the rows of a result */

wl_device_batch *wl_device_rows_take(wl_device_rows *r) {
  wl_device_batch *b = r->first;
  if (b) r->first = b->next;
  return b;
}

void wl_device_rows_clear(wl_device_rows *r) {
  for (wl_device_batch *b; (b = wl_device_rows_take(r));) wl_device_batch_drop(b);
  r->n_rows = 0;
}

void wl_device_rows_refuse(wl_device_rows *r, const char *why) {
  if (!r->refused) snprintf(r->why, sizeof r->why, "%.190s", why);
  r->refused = true;
}

bool wl_device_rows_typed(const wl_program *p) {
  const wl_program *last = wl_program_last(p);
  wl_u8 type;
  for (int k = 0; k < last->n_given; k++)
    if (!wl_domain_one_type(&last->results[k].domain, &type)) return false;
  return true;
}

bool wl_device_rows_can_keep(const wl_launch *l) {
  wl_device_rows *r = l->e->stays;
  const wl_program *p = l->e->p;
  if (!r || r->refused || !wl_sink_takes_rows(p->sink)) return false;
  if ((p->sink == WL_SINK_ROWS && !p->next) || l->ordered) return true;
  wl_device_rows_refuse(r, "DISTINCT or ORDER BY ended there");
  return false;
}

void wl_device_rows_add(wl_launch *l) {
  wl_device_rows *r = l->e->stays;
  wl_device_batch *b = l->kept;
  wl_i64 skip, left;
  if (!b) return;
  wl_rows_sink_cut((wl_rows_sink *)l->e->results, (wl_i64)l->counters[C_OUT], &skip, &left);
  l->kept = NULL;
  if (!b->n_rows) {
    free_batch(b);
    return;
  }
  if (r->first)
    r->last->next = b;
  else
    r->first = b;
  r->last = b;
  r->n_rows += b->n_rows;
}

void wl_device_rows_forget(wl_launch *l) {
  if (l->kept) free_batch(l->kept);
  l->kept = NULL;
}

/* ---- keeping the rows of a launch */

/* What a column needs while it is kept. */
typedef struct kept_column {
  bool taken;      /* the data is the launch's own memory */
  wl_u32 *lengths; /* of texts with a dictionary, which is on the device so long */
  wl_u64 *dict_places;
  wl_u8 *dict_heap;
  const wl_dict *dict;
} kept_column;

typedef struct keeping {
  wl_launch *l;
  wl_device *d;
  wl_device_batch *b;
  wl_u64 skip, n;       /* the rows of the launch that are kept */
  kept_column *columns; /* [n_cols] */
  wl_u64 *n_valid;      /* [n_cols] on the device; NULL: no column has NULLs */
  wl_u64 *found;        /* [2 * n_cols] pinned: how many are not NULL, then the bytes of texts */
} keeping;

static wl_status open_buffer(wl_device *d, size_t n, wl_device_buffer *b, wl_error *err) {
  wl_status rc = wl_dev_alloc(d, n, &b->p, err);
  b->n_bytes = rc ? 0 : n;
  return rc;
}

static wl_status run(keeping *x, wl_kernel k, const void *args, size_t n_args, wl_u64 threads,
                     wl_error *err) {
  x->l->idle = false;
  return wl_device_each(x->d, k, args, n_args, threads, err);
}

/* Only NULLs: words of zeros, and a bitmap of zeros. */
static wl_status keep_nulls(keeping *x, wl_device_column *c, wl_error *err) {
  size_t n_words = x->n + 1, n_valid = (x->n + 31) / 32 * 4;
  x->l->idle = false;
  c->n_nulls = (wl_i64)x->n;
  wl_status rc = open_buffer(x->d, n_words * 8, &c->data, err);
  if (!rc) rc = open_buffer(x->d, n_valid, &c->valid, err);
  if (!rc) rc = x->d->fill(x->d, c->data.p, 0, n_words * 8, err);
  return rc ? rc : x->d->fill(x->d, c->valid.p, 0, n_valid, err);
}

/* Runs wl_stay: the bitmap of a column, and what else its data needs. */
static wl_status prepare(keeping *x, int k, bool convert, wl_error *err) {
  const wl_kout *o = &x->l->outs[k];
  const kept_column *kept = &x->columns[k];
  wl_device_column *c = &x->b->cols[k];
  wl_kstay a = {.v = o->v + x->skip,
                .t = o->t ? o->t + x->skip : NULL,
                .n = x->n,
                .data = convert ? c->data.p : NULL,
                .lengths = kept->lengths,
                .places = kept->dict_places};
  wl_status rc = WL_OK;
  if (!o->t && !a.lengths) return WL_OK;
  if (o->t) {
    rc = open_buffer(x->d, (x->n + 31) / 32 * 4, &c->valid, err);
    a.valid = c->valid.p;
    a.n_valid = x->n_valid + k;
    c->n_nulls = -1; /* known at the end */
  }
  return rc ? rc : run(x, WL_K_STAY, &a, sizeof a, x->n, err);
}

/* Numbers are moved to memory of their own only if the launch's memory is much larger. */
static wl_status keep_numbers(keeping *x, int k, wl_error *err) {
  const wl_kout *o = &x->l->outs[k];
  wl_device_column *c = &x->b->cols[k];
  bool convert = o->type == WL_R_ANY;
  x->columns[k].taken = !convert && !x->skip && x->n >= x->l->n_rows / 2;
  wl_status rc = x->columns[k].taken ? WL_OK : open_buffer(x->d, x->n * 8, &c->data, err);
  if (!rc) rc = prepare(x, k, convert, err);
  if (rc || convert || x->columns[k].taken) return rc;
  x->l->idle = false;
  return x->d->copy_on(x->d, c->data.p, o->v + x->skip, x->n * 8, err);
}

/* Copies a dictionary to the device. */
static wl_status open_dict(keeping *x, kept_column *c, wl_error *err) {
  wl_device *d = x->d;
  size_t n_places = (size_t)c->dict->n * sizeof *c->dict->places, n_heap = c->dict->n_heap;
  wl_status rc = wl_dev_alloc(d, n_places, (void **)&c->dict_places, err);
  if (!rc) rc = wl_dev_alloc(d, n_heap, (void **)&c->dict_heap, err);
  if (!rc) rc = wl_dev_alloc(d, (x->n + 1) * 4, (void **)&c->lengths, err);
  d->n_in += (wl_i64)(n_places + n_heap);
  if (!rc) rc = d->copy_in(d, c->dict_places, c->dict->places, n_places, err);
  if (!rc) rc = d->copy_in(d, c->dict_heap, c->dict->heap, n_heap, err);
  return rc;
}

static void close_dict(keeping *x, kept_column *c) {
  if (!c->dict) return;
  wl_dev_free(x->d, c->dict_places, (size_t)c->dict->n * sizeof *c->dict->places);
  wl_dev_free(x->d, c->dict_heap, c->dict->n_heap);
  wl_dev_free(x->d, c->lengths, (x->n + 1) * 4);
}

/* The offsets of texts whose codes the host has. heap: gets their bytes; NULL: only counts them. */
static wl_u64 place_texts(const wl_dict *dict, const wl_u64 *codes, const wl_u8 *valid, wl_u64 n,
                          wl_u64 *offsets, wl_u8 *heap) {
  wl_u64 at = 0;
  for (wl_u64 i = 0; i < n; i++) {
    wl_val v = valid && !valid[i] ? wl_null() : wl_dict_value(dict, (wl_i64)codes[i]);
    offsets[i] = at;
    if (heap && v.n) memcpy(heap + at, wl_bytes(v), v.n);
    at += v.n;
  }
  return offsets[n] = at;
}

/* Few rows with a large dictionary: the host makes their texts, as this moves less. */
static wl_status keep_few(keeping *x, int k, const wl_dict *dict, wl_error *err) {
  wl_device *d = x->d;
  const wl_kout *o = &x->l->outs[k];
  wl_device_column *c = &x->b->cols[k];
  wl_u64 *codes = wl_mem_alloc(x->n * 8 + 8), *offsets = wl_mem_alloc(x->n * 8 + 8);
  wl_u8 *valid = o->t ? wl_mem_alloc(x->n + 1) : NULL, *heap = NULL;
  wl_status rc = codes && offsets && (valid || !o->t) ? WL_OK : wl_nomem(err);
  if (!rc) rc = d->copy_out(d, codes, o->v + x->skip, x->n * 8, err);
  if (!rc && valid) rc = d->copy_out(d, valid, o->t + x->skip, x->n, err);
  wl_u64 n_bytes = rc ? 0 : place_texts(dict, codes, valid, x->n, offsets, NULL);
  if (!rc && !(heap = wl_mem_alloc(n_bytes + 1))) rc = wl_nomem(err);
  if (!rc) (void)place_texts(dict, codes, valid, x->n, offsets, heap);
  if (!rc) rc = open_buffer(d, (x->n + 1) * 8, &c->data, err);
  if (!rc) rc = open_buffer(d, n_bytes, &c->bytes, err);
  if (!rc) rc = d->copy_in(d, c->data.p, offsets, (x->n + 1) * 8, err);
  if (!rc) rc = d->copy_in(d, c->bytes.p, heap, n_bytes, err);
  d->n_in += (wl_i64)(n_bytes + x->n * 8);
  d->n_out += (wl_i64)(x->n * 8);
  wl_mem_free(codes);
  wl_mem_free(offsets);
  wl_mem_free(valid);
  wl_mem_free(heap);
  return rc ? rc : prepare(x, k, false, err);
}

static const wl_u32 *lengths_of(const keeping *x, int k) {
  const kept_column *kept = &x->columns[k];
  return kept->dict ? kept->lengths : x->l->outs[k].n + x->skip;
}

/* The offsets of a text or blob column. Its bytes come when their number is known. */
static wl_status keep_offsets(keeping *x, int k, const wl_dict *dict, wl_error *err) {
  enum { SMALL = 4096, FEW = 8 };
  wl_device *d = x->d;
  wl_device_column *c = &x->b->cols[k];
  x->l->idle = false;
  if (dict && dict->n > SMALL && (wl_u64)dict->n / FEW > x->n) return keep_few(x, k, dict, err);
  x->columns[k].dict = dict;
  wl_status rc = open_buffer(d, (x->n + 1) * 8, &c->data, err);
  if (!rc && dict) rc = open_dict(x, &x->columns[k], err);
  if (!rc) rc = prepare(x, k, false, err);
  if (!rc) rc = d->scan(d, lengths_of(x, k), c->data.p, (wl_i64)x->n, err);
  wl_u64 *total = (wl_u64 *)c->data.p + x->n;
  return rc ? rc : d->copy_out_later(d, &x->found[x->b->n_cols + k], total, 8, err);
}

static wl_status keep_bytes(keeping *x, int k, wl_error *err) {
  const kept_column *kept = &x->columns[k];
  wl_device_column *c = &x->b->cols[k];
  wl_u64 n_bytes = x->found[x->b->n_cols + k];
  if (c->bytes.p) return WL_OK; /* the host has made them */
  wl_status rc = open_buffer(x->d, n_bytes, &c->bytes, err);
  wl_kgather g = {.from = x->l->outs[k].v + x->skip,
                  .dict_places = kept->dict_places,
                  .dict_heap = kept->dict_heap,
                  .n = lengths_of(x, k),
                  .to = c->data.p,
                  .heap = c->bytes.p,
                  .n_rows = x->n};
  return rc || !n_bytes ? rc : run(x, WL_K_GATHER, &g, sizeof g, x->n * 32, err);
}

static wl_status keep_column(keeping *x, int k, wl_error *err) {
  const wl_result *r = &wl_program_last(x->l->e->p)->results[k];
  wl_device_column *c = &x->b->cols[k];
  if (!wl_domain_one_type(&r->domain, &c->type))
    return wl_not_taken(err, "a column has values of several types");
  switch (c->type) {
  case WL_T_NULL: return keep_nulls(x, c, err);
  case WL_T_INT:
  case WL_T_REAL: return keep_numbers(x, k, err);
  default: return keep_offsets(x, k, r->dict, err);
  }
}

/* Waits for what the queue has got, if anything. */
static wl_status finish(keeping *x, wl_error *err) {
  wl_status rc = x->l->idle ? WL_OK : x->d->finish(x->d, err);
  x->l->idle |= !rc;
  return rc;
}

/* Keeps all columns, and waits for that. */
static wl_status keep_columns(keeping *x, wl_error *err) {
  wl_device *d = x->d;
  int n = x->b->n_cols;
  size_t n_bytes = (size_t)n * sizeof *x->n_valid;
  bool texts = false, nulls = false;
  wl_status rc = WL_OK;
  for (int k = 0; k < n; k++) nulls |= x->l->outs[k].t != NULL;
  if (nulls) rc = wl_dev_alloc(d, n_bytes, (void **)&x->n_valid, err);
  if (!rc && nulls) rc = d->fill(d, x->n_valid, 0, n_bytes, err);
  for (int k = 0; k < n && !rc; k++) {
    rc = keep_column(x, k, err);
    texts |= x->b->cols[k].type >= WL_T_TEXT;
  }
  if (!rc && nulls) rc = d->copy_out_later(d, x->found, x->n_valid, n_bytes, err);
  if (!rc && nulls) x->l->idle = false;
  if (!rc && texts) rc = finish(x, err);
  for (int k = 0; k < n && !rc && texts; k++)
    if (x->b->cols[k].type >= WL_T_TEXT) rc = keep_bytes(x, k, err);
  if (!rc) rc = finish(x, err);
  wl_dev_free(d, x->n_valid, n_bytes);
  for (int k = 0; k < n; k++) close_dict(x, &x->columns[k]);
  return rc;
}

/* Nothing can fail any more: takes the launch's memory, and drops bitmaps without a NULL. */
static void settle(keeping *x) {
  wl_launch *l = x->l;
  for (int k = 0; k < x->b->n_cols; k++) {
    wl_device_column *c = &x->b->cols[k];
    if (x->columns[k].taken) {
      c->data = (wl_device_buffer){l->outs[k].v, l->n_rows * 8};
      l->outs[k].v = NULL;
    }
    if (c->n_nulls >= 0) continue;
    c->n_nulls = (wl_i64)(x->n - x->found[k]);
    if (!c->n_nulls) free_buffer(x->d, &c->valid);
  }
}

static wl_status keep(keeping *x, wl_error *err) {
  wl_device *d = x->d;
  size_t n = (size_t)x->b->n_cols;
  wl_error ignored;
  x->columns = wl_mem_zalloc(n * sizeof *x->columns + 1);
  wl_status rc = x->columns ? WL_OK : wl_nomem(err);
  if (!rc) rc = d->host_alloc(d, 2 * n * sizeof *x->found + 8, (void **)&x->found, err);
  if (!rc) rc = keep_columns(x, err);
  if (!rc) settle(x);
  if (rc && finish(x, &ignored)) { /* whatever went wrong, nothing is running now */
  }
  if (x->found) d->host_free(d, x->found);
  wl_mem_free(x->columns);
  return rc;
}

wl_status wl_device_rows_keep(wl_launch *l, wl_error *err) {
  int n_cols = wl_program_last(l->e->p)->n_given;
  wl_rows_sink cut = *(const wl_rows_sink *)l->e->results;
  wl_i64 skip, left;
  wl_rows_sink_cut(&cut, (wl_i64)l->counters[C_OUT], &skip, &left);
  keeping x = {.l = l, .d = l->d, .skip = (wl_u64)skip, .n = (wl_u64)left};
  x.b = wl_mem_zalloc(sizeof *x.b + (size_t)n_cols * sizeof *x.b->cols);
  if (!x.b) return wl_nomem(err);
  x.b->device = l->d;
  atomic_init(&x.b->refs, 1);
  x.b->n_rows = left;
  x.b->n_cols = n_cols;
  l->kept = x.b;
  if (l->ordered) l->idle = false; /* the rows may still be moved */
  wl_status rc = left ? keep(&x, err) : WL_OK;
  if (rc) wl_device_rows_forget(l);
  return rc;
}
