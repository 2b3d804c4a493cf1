/*
** Moves a launch's rows to the host. Each result column is copied to pinned host memory, or written
** there by a kernel. Columns of numbers that need fewer than 8 bytes come packed (pack.h), in
** chunks, through a few pinned buffers: while one is unpacked, others are filled. Batches then
** borrow ranges of this memory.
**
** Invariants:
** 1. A wl_results owns the host memory of the rows. The batches share it by reference counting.
** 2. Columns that come as they are are not read before the launch's queue is finished, a chunk not
**    before the event of its buffer.
** 3. A buffer is filled again when its chunk has been unpacked. One launch at a time has the
**    buffers, from wl_results_fetch to wl_results_unpack or to the end of its queue.
*/
#include "exec/gpu/pack.h"
#include "base/mem.h"
#include "exec/gpu/columns/stage.h"
#include <stdatomic.h>
#include <string.h>

typedef wl_launch launch;
typedef wl_results arrived;

typedef struct arrived_col {
  bool packed; /* v and t belong to the memory of all columns that came packed */
  wl_u64 *v;
  wl_u32 *n;
  wl_u8 *t;
  wl_u8 *heap;
  wl_u64 *places;  /* [rows + 1]: offsets into heap */
  wl_i32 *offsets; /* [rows + batches]: the same, relative to each batch's first row */
} arrived_col;

/* Packed columns on their way. */
typedef struct arriving {
  wl_packing p;
  wl_unpacked to[WL_K_PACK_COLS];
  wl_u8 *packed; /* on the device */
  wl_u8 *buffers[WL_STAGE_OUT];
} arriving;

struct wl_results {
  atomic_int refs;
  wl_device *device;
  bool pinned;
  wl_u8 *memory;    /* of the columns that came packed */
  arriving *coming; /* NULL: none is on its way */
  int n_cols;
  int n_plain; /* columns that come as they are */
  arrived_col cols[];
};

static void destroy(arrived *a) {
  for (int k = 0; k < a->n_cols; k++) {
    arrived_col *c = &a->cols[k];
    void *parts[] = {c->packed ? NULL : c->v, c->n, c->packed ? NULL : c->t, c->heap, c->places};
    for (int i = 0; i < 5; i++) {
      if (a->pinned && parts[i])
        a->device->host_free(a->device, parts[i]);
      else
        wl_mem_free(parts[i]);
    }
    wl_mem_free(c->offsets);
  }
  wl_mem_free(a->memory);
  wl_mem_free(a);
}

static void end_packed(arrived *a) {
  arriving *x = a->coming;
  if (!x) return;
  wl_dev_free(a->device, x->packed, (size_t)x->p.n_chunks * x->p.chunk_bytes);
  wl_mem_free(x);
  a->coming = NULL;
}

void wl_results_drop(arrived *a) {
  if (a) end_packed(a);
  if (a && atomic_fetch_sub(&a->refs, 1) == 1) destroy(a);
}

/* Releases a batch's reference. Any thread may do that at any time. The device has no part in
** memory that is not pinned; else this takes its lock. */
static void release(void *p) {
  arrived *a = p;
  wl_device *d = a->n_plain ? a->device : NULL;
  if (atomic_fetch_sub(&a->refs, 1) != 1) return;
  if (d) wl_device_lock(d);
  destroy(a);
  if (d) wl_device_unlock(d);
}

/* Starts a copy of n bytes to pinned host memory. Kernels write mapped memory in whole tiles. */
static wl_status send(launch *l, void *host, const void *from, size_t n, wl_error *err) {
  wl_device *d = l->d;
  void *mapped = NULL;
  if (!wl_launch_mapped(l->s) || !n) return d->copy_out_later(d, host, from, n, err);
  wl_status rc = d->host_address(d, host, &mapped, err);
  wl_ktiles t = {from, mapped, (n + WL_K_TILE - 1) / WL_K_TILE};
  return rc ? rc : wl_device_each(d, WL_K_TILES, &t, sizeof t, t.n_tiles * 32, err);
}

/* Starts a copy of n bytes from device memory to new host memory, which the results own. The bytes
** are there when the queue is finished. */
static wl_status bring(launch *l, const void *from, size_t n, void *out, wl_error *err) {
  wl_device *d = l->d;
  void *host = NULL;
  wl_status rc = WL_OK;
  if (l->results->pinned)
    rc = d->host_alloc(d, n ? n : 1, &host, err);
  else if (!(host = wl_mem_alloc(n + 1)))
    rc = wl_nomem(err);
  if (rc) return rc;
  memcpy(out, &host, sizeof host);
  d->n_out += (wl_i64)n;
  return l->results->pinned ? send(l, host, from, n, err) : d->copy_out(d, host, from, n, err);
}

/* ---- packed columns */

/* Starts the copy of a chunk to its buffer, which nothing else uses. */
static wl_status send_chunk(launch *l, wl_u64 chunk, wl_error *err) {
  wl_device *d = l->d;
  const arriving *x = l->results->coming;
  int k = (int)(chunk % WL_STAGE_OUT);
  size_t n = wl_packing_bytes(&x->p, chunk);
  d->n_out += (wl_i64)n;
  wl_status rc = send(l, x->buffers[k], x->packed + chunk * x->p.chunk_bytes, n, err);
  return rc ? rc : d->mark(d, WL_STAGE_IN + k, err);
}

static size_t aligned_64(size_t n) {
  return (n + 63) & ~(size_t)63;
}

/* Allocates the memory of the rows. Returns false if there is none. */
static bool open_unpacked(arrived *a) {
  arriving *x = a->coming;
  size_t n = (size_t)x->p.n_rows, all = 0;
  for (int k = 0; k < x->p.n_cols; k++)
    all += aligned_64(n * 8) + (x->p.cols[k].nullable ? aligned_64(n) : 0);
  wl_u8 *at = a->memory = wl_mem_alloc(all);
  for (int k = 0; k < x->p.n_cols && at; k++) {
    arrived_col *c = &a->cols[x->p.cols[k].result];
    c->packed = true;
    c->v = (wl_u64 *)(void *)at;
    at += aligned_64(n * 8);
    c->t = x->p.cols[k].nullable ? at : NULL;
    at += c->t ? aligned_64(n) : 0;
    x->to[k] = (wl_unpacked){c->v, c->t};
  }
  return a->memory != NULL;
}

/* Prepares what the packed columns need. Returns false if they must come as they are. Other columns
** are not evicted for this. */
static bool open_packed(launch *l, wl_u64 n) {
  wl_error ignored;
  wl_device *d = l->d;
  arrived *a = l->results;
  arriving *x = a->coming = a->pinned ? wl_mem_zalloc(sizeof *x) : NULL;
  if (!x) return false;
  if (!wl_packing_plan(l, n, wl_stage_out_bytes(d), &x->p)) x->p.n_chunks = 0;
  size_t n_packed = (size_t)x->p.n_chunks * x->p.chunk_bytes;
  if (n_packed && d->used + (wl_i64)(n_packed + WL_DEV_ALIGN) <= d->budget &&
      !wl_stage_out(d, x->buffers, &ignored) &&
      !wl_dev_alloc(d, n_packed, (void **)&x->packed, &ignored) && open_unpacked(a))
    return true;
  end_packed(a);
  return false;
}

/* Packs columns, and starts the copies of the first chunks. */
static wl_status fetch_packed(launch *l, wl_u64 n, wl_error *err) {
  if (!open_packed(l, n)) return WL_OK;
  const arriving *x = l->results->coming;
  wl_kpack args;
  wl_packing_args(&x->p, &args);
  args.to = x->packed;
  for (int k = 0; k < x->p.n_cols; k++) {
    args.cols[k].v = l->outs[x->p.cols[k].result].v;
    args.cols[k].t = l->outs[x->p.cols[k].result].t;
  }
  wl_status rc = wl_device_each(l->d, WL_K_PACK, &args, sizeof args, n, err);
  for (wl_u64 c = 0; c < x->p.n_chunks && c < WL_STAGE_OUT && !rc; c++) rc = send_chunk(l, c, err);
  return rc;
}

wl_status wl_results_unpack(launch *l, wl_error *err) {
  arrived *a = l->results;
  const arriving *x = a->coming;
  wl_status rc = WL_OK;
  if (!x) return WL_OK;
  if (a->n_plain && x->p.n_chunks <= WL_STAGE_OUT) { /* one wait for all */
    rc = l->d->finish(l->d, err);
    l->idle = !rc;
  }
  for (wl_u64 c = 0; c < x->p.n_chunks && !rc; c++) {
    int k = (int)(c % WL_STAGE_OUT);
    rc = wl_stop_ask(l->e->stop, err);
    if (!rc && !l->idle) rc = l->d->wait(l->d, WL_STAGE_IN + k, err);
    if (rc) return rc;
    wl_packing_unpack(&x->p, c, x->buffers[k], x->to, l->e->threads);
    if (c + WL_STAGE_OUT < x->p.n_chunks) rc = send_chunk(l, c + WL_STAGE_OUT, err);
  }
  if (rc) return rc;
  end_packed(a);
  l->idle |= !a->n_plain; /* the last chunk was the last copy */
  return WL_OK;
}

/* ---- columns that come as they are */

/* Fetches the bytes of a text or mixed column, gathered on the device, and their places. */
static wl_status fetch_text(launch *l, const wl_kout *o, arrived_col *c, wl_u64 n, wl_error *err) {
  wl_device *d = l->d;
  wl_u64 *places = NULL;
  wl_u8 *heap = NULL;
  wl_status rc = wl_dev_alloc(d, (n + 1) * 8, (void **)&places, err);
  if (!rc) rc = d->scan(d, o->n, places, (wl_i64)n, err);
  if (!rc) rc = bring(l, places, (n + 1) * 8, &c->places, err);
  if (!rc && o->type == WL_R_ANY) rc = bring(l, o->n, n * 4, &c->n, err);
  if (!rc) rc = d->finish(d, err);
  wl_u64 n_bytes = rc ? 0 : c->places[n];
  if (!rc && n_bytes) rc = wl_dev_alloc(d, n_bytes, (void **)&heap, err);
  if (!rc && n_bytes) {
    wl_kgather g = {.from = o->v, .n = o->n, .to = places, .heap = heap, .n_rows = n};
    rc = wl_device_each(d, WL_K_GATHER, &g, sizeof g, n * 32, err); /* a warp copies a text */
  }
  if (!rc) rc = bring(l, heap, n_bytes, &c->heap, err);
  wl_dev_free(d, places, (n + 1) * 8); /* freed in queue order, after the kernel that reads it */
  wl_dev_free(d, heap, n_bytes);
  return rc;
}

wl_status wl_results_fetch(launch *l, wl_u64 n, bool counted, wl_error *err) {
  const wl_program *p = l->e->p;
  arrived *a = l->results = wl_mem_zalloc(sizeof *a + (size_t)p->n_results * sizeof *a->cols);
  if (!a) return wl_nomem(err);
  atomic_init(&a->refs, 1);
  a->device = l->d;
  a->pinned = wl_launch_mapped(l->s) || l->e->transfer.pinned;
  a->n_cols = l->n_fetch;
  wl_status rc = counted ? fetch_packed(l, n, err) : WL_OK;
  for (int k = 0; k < l->n_fetch && !rc; k++) {
    const wl_kout *o = &l->outs[k];
    arrived_col *c = &a->cols[k];
    if (c->packed) continue;
    a->n_plain++;
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
  l->s->n_ready += n * wl_launch_given_bytes(l->e, l->s);
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
