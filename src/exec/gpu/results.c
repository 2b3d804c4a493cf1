/*
** Moves a launch's rows to the host. Each result column is copied to host memory, or written there
** by a kernel. Batches then borrow ranges of this memory.
**
** Invariants:
** 1. A wl_results owns the host memory of the rows. The batches share it by reference counting.
** 2. This memory is not read before the launch's queue is finished.
*/
#include "exec/gpu/launch.h"
#include "base/mem.h"
#include <stdatomic.h>
#include <string.h>

typedef wl_launch launch;
typedef wl_results arrived;

typedef struct arrived_col {
  wl_u64 *v;
  wl_u32 *n;
  wl_u8 *t;
  wl_u8 *heap;
  wl_u64 *places;  /* [rows + 1]: offsets into heap */
  wl_i32 *offsets; /* [rows + batches]: the same, relative to each batch's first row */
} arrived_col;

struct wl_results {
  atomic_int refs;
  wl_device *device;
  bool pinned;
  int n_cols;
  arrived_col cols[];
};

static void destroy(arrived *a) {
  for (int k = 0; k < a->n_cols; k++) {
    arrived_col *c = &a->cols[k];
    void *parts[] = {c->v, c->n, c->t, c->heap, c->places};
    for (int i = 0; i < 5; i++) {
      if (a->pinned && parts[i])
        a->device->host_free(a->device, parts[i]);
      else
        wl_mem_free(parts[i]);
    }
    wl_mem_free(c->offsets);
  }
  wl_mem_free(a);
}

void wl_results_drop(arrived *a) {
  if (a && atomic_fetch_sub(&a->refs, 1) == 1) destroy(a);
}

/* Releases a batch's reference. Any thread may do that at any time, so this takes the lock. */
static void release(void *p) {
  arrived *a = p;
  wl_device *d = a->device;
  if (atomic_fetch_sub(&a->refs, 1) != 1) return;
  wl_device_lock(d);
  destroy(a);
  wl_device_unlock(d);
}

/* Starts a copy of n bytes from device memory to new host memory, which the results own. The bytes
** are there when the queue is finished. Kernels write mapped memory in whole tiles. */
static wl_status bring(launch *l, const void *from, size_t n, void *out, wl_error *err) {
  wl_device *d = l->d;
  void *host = NULL, *mapped = NULL;
  wl_status rc = WL_OK;
  if (l->results->pinned)
    rc = d->host_alloc(d, n ? n : 1, &host, err);
  else if (!(host = wl_mem_alloc(n + 1)))
    rc = wl_nomem(err);
  if (rc) return rc;
  memcpy(out, &host, sizeof host);
  d->n_out += (wl_i64)n;
  if (!l->results->pinned) return d->copy_out(d, host, from, n, err);
  if (!wl_launch_mapped(l->s) || !n) return d->copy_out_later(d, host, from, n, err);
  rc = d->host_address(d, host, &mapped, err);
  wl_ktiles t = {from, mapped, (n + WL_K_TILE - 1) / WL_K_TILE};
  unsigned threads = (unsigned)d->block_threads;
  wl_u64 blocks = (t.n_tiles * 32 + threads - 1) / threads, most = (wl_u64)d->n_processors * 8;
  return rc ? rc
            : d->launch(d, WL_K_TILES, &t, sizeof t, (unsigned)(blocks < most ? blocks : most),
                        threads, 0, err);
}

/* Fetches the bytes of a text or mixed column, gathered on the device, and their places. */
static wl_status fetch_text(launch *l, const wl_kout *o, arrived_col *c, wl_u64 n, wl_error *err) {
  wl_device *d = l->d;
  wl_u64 *places = NULL;
  wl_u8 *heap = NULL;
  wl_status rc = wl_dev_alloc(d, (n + 1) * 8, (void **)&places, err);
  if (!rc) rc = d->scan(d, o->n, places, (wl_i64)n, err);
  if (!rc) rc = bring(l, places, (n + 1) * 8, &c->places, err);
  if (!rc) rc = bring(l, o->n, n * 4, &c->n, err);
  if (!rc) rc = d->finish(d, err);
  wl_u64 n_bytes = rc ? 0 : c->places[n];
  if (!rc && n_bytes) rc = wl_dev_alloc(d, n_bytes, (void **)&heap, err);
  if (!rc && n_bytes) {
    wl_kgather g = {.from = o->v, .n = o->n, .to = places, .heap = heap, .n_rows = n};
    wl_u64 blocks = (n + 7) / 8, most = (wl_u64)d->n_processors * 8;
    unsigned threads = (unsigned)d->block_threads;
    rc = d->launch(d, WL_K_GATHER, &g, sizeof g, (unsigned)(blocks < most ? blocks : most), threads,
                   0, err);
  }
  if (!rc) rc = bring(l, heap, n_bytes, &c->heap, err);
  wl_dev_free(d, places, (n + 1) * 8); /* freed in queue order, after the kernel that reads it */
  wl_dev_free(d, heap, n_bytes);
  return rc;
}

wl_status wl_results_fetch(launch *l, wl_u64 n, wl_error *err) {
  const wl_program *p = l->e->p;
  arrived *a = l->results = wl_mem_zalloc(sizeof *a + (size_t)p->n_results * sizeof *a->cols);
  if (!a) return wl_nomem(err);
  atomic_init(&a->refs, 1);
  a->device = l->d;
  a->pinned = wl_launch_mapped(l->s) || l->e->transfer.pinned;
  a->n_cols = l->n_fetch;
  wl_status rc = WL_OK;
  for (int k = 0; k < l->n_fetch && !rc; k++) {
    const wl_kout *o = &l->outs[k];
    arrived_col *c = &a->cols[k];
    if (o->type != WL_R_TEXT) rc = bring(l, o->v, n * 8, &c->v, err);
    if (!rc && o->t) rc = bring(l, o->t, n, &c->t, err);
    if (!rc && o->type >= WL_R_TEXT) rc = fetch_text(l, o, c, n, err);
  }
  return rc;
}

/* Sets up a batch's view of rows [at, at + n) of a text or mixed column. */
static wl_status cut_text(arrived_col *c, wl_u8 type, wl_u64 at, wl_u64 n, wl_u64 batch,
                          wl_outcol *o) {
  wl_u64 base = c->places[at];
  if (c->places[at + n] - base > 0x7fffffff) return WL_TOOBIG;
  o->heap = c->heap + base;
  if (type == WL_R_TEXT) {
    o->offsets = c->offsets + at + batch;
    for (wl_u64 i = 0; i <= n; i++) o->offsets[i] = (wl_i32)(c->places[at + i] - base);
  } else {
    o->n = c->n + at;
    for (wl_u64 i = 0; i < n; i++)
      if (c->t[at + i] >= WL_T_TEXT) c->v[at + i] = c->places[at + i] - base;
  }
  return WL_OK;
}

wl_status wl_results_push(launch *l, wl_error *err) {
  arrived *a = l->results;
  wl_pool *pool = ((wl_batch_sink *)l->e->sink)->pool;
  const wl_reg *regs = wl_pool_regs(pool);
  wl_u64 n = l->counters[C_OUT], n_batches = (n + WL_TABLET_ROWS - 1) / WL_TABLET_ROWS;
  for (int k = 0; k < a->n_cols; k++) {
    if (regs[k].type != WL_R_TEXT) continue;
    a->cols[k].offsets = wl_mem_alloc((n + n_batches + 1) * 4);
    if (!a->cols[k].offsets) return wl_nomem(err);
  }
  for (wl_u64 b = 0; b < n_batches; b++) {
    wl_u64 at = b * WL_TABLET_ROWS, m = n - at < WL_TABLET_ROWS ? n - at : WL_TABLET_ROWS;
    wl_batch *batch;
    wl_status rc = wl_batch_borrow(pool, a, release, &batch, err);
    if (rc) return rc;
    atomic_fetch_add(&a->refs, 1);
    batch->n_rows = (wl_i64)m;
    for (int k = 0; k < a->n_cols && !rc; k++) {
      wl_outcol *o = &batch->cols[k];
      arrived_col *c = &a->cols[k];
      if (c->v) o->v = c->v + at;
      if (c->t) o->t = c->t + at;
      if (regs[k].type >= WL_R_TEXT && cut_text(c, regs[k].type, at, m, b, o))
        rc = wl_fail(err, WL_TOOBIG, "string or blob too big");
    }
    /* the sink takes them when the device is unlocked: giving one back takes the lock */
    if (wl_collected_add(&l->s->ready, batch, err) || rc) return rc;
  }
  return WL_OK;
}
