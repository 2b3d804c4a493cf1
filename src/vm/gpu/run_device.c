/*
** The runner's device part: a group of tablets at a time, on the CUDA device or the simulator.
**
** Invariants:
** 1. The device is locked for the whole of a group and holds nothing of the run between
**    groups but the resident columns.
** 2. WL_NOT_TAKEN leaves the run where it was, so that the CPU can go on from there.
** 3. Results lie in pinned host memory owned by an `arrived`, shared by the batches cut
**    from it.
*/
#include "vm/gpu/devcol.h"
#include "vm/gpu/limits.h"
#include "vm/gpu/lower.h"
#include "vm/run_impl.h"
#include "base/mem.h"
#include <stdatomic.h>
#include <string.h>

enum { COUNTERS = 8, SIDE_MOST = 1 << 20 };
enum { C_TICKET, C_OUT, C_SIDE, C_TEXT, C_FAULT };

typedef struct state {
  wl_arena arena;
  wl_lowered low;
  bool resident;
  int group;           /* tablets in the next group */
  wl_u64 text_room;    /* bytes for text that the kernel makes */
  __int128 *magnitude; /* [n_accs]: sum of |v| so far, of AggSumX */
} state;

/* ---- results on the host */

typedef struct arrived_col {
  wl_u64 *v;
  wl_u32 *n;
  wl_u8 *t;
  wl_u8 *heap;
  wl_u64 *places;  /* [rows + 1] into heap */
  wl_i32 *offsets; /* [rows + batches]: what batches use */
} arrived_col;

typedef struct arrived {
  atomic_int refs;
  wl_device *device;
  int n_cols;
  arrived_col cols[];
} arrived;

static void arrived_release(void *p) {
  arrived *a = p;
  if (atomic_fetch_sub(&a->refs, 1) != 1) return;
  wl_device_lock(a->device);
  for (int k = 0; k < a->n_cols; k++) {
    arrived_col *c = &a->cols[k];
    a->device->host_free(a->device, c->v);
    a->device->host_free(a->device, c->t);
    a->device->host_free(a->device, c->heap);
    wl_mem_free(c->n);
    wl_mem_free(c->places);
    wl_mem_free(c->offsets);
  }
  wl_device_unlock(a->device);
  wl_mem_free(a);
}

/* ---- one launch */

typedef struct launch {
  wl_run *r;
  wl_device *d;
  state *s;
  int first, end; /* tablets */
  wl_u64 n_rows, n_tiles;
  unsigned grid;
  wl_devcol *cols;    /* temporary copies, or unused */
  wl_u8 *host, *blob; /* the argument block on both sides */
  size_t n_blob;
  wl_u64 *tiles, *partial, *side;
  wl_u8 *text;
  wl_u64 n_side;
  wl_kout outs[64];
  wl_u64 counters[COUNTERS];
  wl_kargs args;
} launch;

static size_t tile_rows(const state *s) {
  return (size_t)s->low.threads * WL_K_ROWS;
}

static size_t out_row_bytes(wl_reg r) {
  return 8 + (r.type >= WL_R_TEXT ? 12 : 0) + (r.nullable || r.type == WL_R_ANY ? 1 : 0);
}

static wl_status alloc_outs(launch *l, wl_error *err) {
  const wl_program *p = l->r->p;
  wl_status rc = WL_OK;
  for (int k = 0; k < p->n_results && l->r->second_block < 0 && !rc; k++) {
    wl_reg reg = wl_result_reg(&p->results[k]);
    wl_kout *o = &l->outs[k];
    o->type = reg.type;
    o->operand = WL_IS_CONST(p->results[k].operand) ? p->n_regs + WL_CONST_OF(p->results[k].operand)
                                                    : p->results[k].operand;
    rc = wl_dev_alloc(l->d, l->n_rows * 8, (void **)&o->v, err);
    if (!rc && reg.type >= WL_R_TEXT)
      rc = wl_dev_alloc(l->d, (l->n_rows + 1) * 4, (void **)&o->n, err);
    if (!rc && (reg.nullable || reg.type == WL_R_ANY))
      rc = wl_dev_alloc(l->d, l->n_rows, (void **)&o->t, err);
  }
  return rc;
}

/* Appends n bytes to the argument block; gives their device address. */
static void *blob_put(launch *l, size_t *at, const void *from, size_t n) {
  size_t place = *at;
  if (l->host && n) memcpy(l->host + place, from, n);
  *at = (place + n + 15) & ~(size_t)15;
  return l->blob ? l->blob + place : NULL;
}

/*
** The argument block: counters, code, operands, constants and their text, columns, maps,
** outputs, accumulators. Walked twice: once to measure, once to fill.
*/
static void blob_fill(launch *l) {
  const wl_program *p = l->r->p;
  const wl_lowered *low = &l->s->low;
  wl_kargs *a = &l->args;
  size_t at = 0;
  wl_u64 zero[COUNTERS] = {0};
  wl_kmap maps[WL_GPU_MAX_MAPS];
  wl_u64 *counters = blob_put(l, &at, zero, sizeof zero);
  a->code = blob_put(l, &at, low->code, low->n_code * sizeof *low->code);
  a->opnds = blob_put(l, &at, low->opnds, low->n_opnds * sizeof *low->opnds);
  size_t consts = at;
  a->consts = blob_put(l, &at, p->consts, (size_t)p->n_consts * sizeof *p->consts);
  for (int k = 0; k < p->n_consts; k++) {
    wl_val v = p->consts[k];
    if (v.t < WL_T_TEXT) continue;
    v.v = (wl_u64)(size_t)blob_put(l, &at, wl_bytes(v), v.n);
    if (l->host) memcpy(l->host + consts + (size_t)k * sizeof v, &v, sizeof v);
  }
  for (int k = 0; k < p->n_columns; k++) {
    const wl_column *c = l->r->snap.cols[k];
    wl_kcol kc = l->s->resident ? wl_devcol_from(c->copy[l->d->index], l->first)
                 : l->cols      ? l->cols[k].k
                                : (wl_kcol){0};
    wl_kcol *where = blob_put(l, &at, &kc, sizeof kc);
    if (k == 0) a->cols = where;
  }
  for (int k = 0; k < p->n_maps; k++) {
    const wl_map *m = &p->maps[k];
    size_t rows = (size_t)m->n + 1;
    wl_kmap km = {.base = m->base, .n = m->n};
    km.t = blob_put(l, &at, m->t, rows);
    if (m->v) km.v = blob_put(l, &at, m->v, rows * sizeof *m->v);
    if (m->len) km.len = blob_put(l, &at, m->len, rows * sizeof *m->len);
    if (m->len) km.heap = blob_put(l, &at, m->heap, m->n_heap);
    maps[k] = km;
  }
  a->maps = blob_put(l, &at, maps, (size_t)p->n_maps * sizeof *maps);
  a->outs = blob_put(l, &at, l->outs, sizeof l->outs);
  a->accs = blob_put(l, &at, low->accs, (size_t)p->n_accs * sizeof *low->accs);
  l->n_blob = at;
  if (!l->blob) return;
  a->n_code = low->n_code;
  a->n_opnds = low->n_opnds;
  a->n_regs = (wl_u32)p->n_regs;
  a->n_consts = low->n_consts;
  a->n_outs = l->r->second_block < 0 ? (wl_u32)p->n_results : 0;
  a->n_accs = (wl_u32)p->n_accs;
  a->n_slots = low->n_slots;
  a->const_offset = low->const_offset;
  a->count_offset = low->count_offset;
  a->acc_offset = low->acc_offset;
  a->n_rows = l->n_rows;
  a->n_tiles = l->n_tiles;
  a->ticket = counters + C_TICKET;
  a->n_out = counters + C_OUT;
  a->n_side = counters + C_SIDE;
  a->tiles = l->tiles;
  a->partial = l->partial;
  a->side = l->side;
  a->side_size = l->n_side;
  a->ctx.text = l->text;
  a->ctx.used = counters + C_TEXT;
  a->ctx.size = l->s->low.makes_text ? l->s->text_room : 0;
  a->ctx.max_text = l->r->config.max_text;
  a->ctx.fault = (wl_u32 *)(void *)(counters + C_FAULT);
}

static unsigned grid_size(const launch *l) {
  wl_u64 each = (wl_u64)l->d->max_shared / (l->s->low.n_shared + 1024);
  if (each < 1) each = 1;
  if (each > (wl_u64)l->d->blocks_each) each = (wl_u64)l->d->blocks_each;
  wl_u64 most = each * (wl_u64)l->d->n_processors;
  return (unsigned)(l->n_tiles < most ? l->n_tiles : most);
}

static int count_real_sums(const wl_program *p) {
  int n = 0;
  for (int k = 0; k < p->n_accs; k++) n += p->accs[k].op == WL_OP__AggSumF;
  return n;
}

static wl_status launch_open(launch *l, wl_error *err) {
  wl_run *r = l->r;
  state *s = l->s;
  wl_i64 left = r->snap.n_rows - ((wl_i64)l->first << WL_TABLET_SHIFT),
         most = (wl_i64)(l->end - l->first) << WL_TABLET_SHIFT;
  l->n_rows = (wl_u64)(left < most ? left : most);
  l->n_tiles = (l->n_rows + tile_rows(s) - 1) / tile_rows(s);
  l->grid = grid_size(l);
  wl_status rc = WL_OK;
  if (!s->resident) {
    l->cols = wl_mem_zalloc((size_t)r->p->n_columns * sizeof *l->cols + 1);
    if (!l->cols) return wl_nomem(err);
    for (int k = 0; k < r->p->n_columns && !rc; k++)
      rc = wl_devcol_copy(l->d, r->snap.cols[k], l->first, l->end, &l->cols[k], err);
  }
  if (!rc) rc = alloc_outs(l, err);
  if (!rc && r->second_block < 0) rc = wl_dev_alloc(l->d, l->n_tiles * 8, (void **)&l->tiles, err);
  if (!rc && r->second_block < 0) rc = l->d->clear(l->d, l->tiles, l->n_tiles * 8, err);
  if (!rc && s->low.n_slots)
    rc = wl_dev_alloc(l->d, (size_t)l->grid * s->low.n_slots * 8, (void **)&l->partial, err);
  l->n_side = (l->n_rows < SIDE_MOST ? l->n_rows : SIDE_MOST) * (wl_u64)count_real_sums(r->p);
  if (!rc && l->n_side) rc = wl_dev_alloc(l->d, l->n_side * 16, (void **)&l->side, err);
  if (!rc && s->low.makes_text) rc = wl_dev_alloc(l->d, s->text_room, (void **)&l->text, err);
  if (rc) return rc;
  blob_fill(l);
  rc = wl_dev_alloc(l->d, l->n_blob, (void **)&l->blob, err);
  if (rc) return rc;
  l->host = wl_mem_zalloc(l->n_blob);
  if (!l->host) return wl_nomem(err);
  blob_fill(l);
  rc = l->d->copy_in(l->d, l->blob, l->host, l->n_blob, err);
  if (!rc)
    rc = l->d->launch(l->d, WL_K_INTERP, &l->args, sizeof l->args, l->grid, s->low.threads,
                      s->low.n_shared, err);
  return rc ? rc : l->d->copy_out(l->d, l->counters, l->blob, sizeof l->counters, err);
}

static void launch_close(launch *l) {
  wl_device *d = l->d;
  for (int k = 0; l->cols && k < l->r->p->n_columns; k++)
    if (l->cols[k].memory) wl_devcol_free(&l->cols[k]);
  wl_mem_free(l->cols);
  for (int k = 0; k < 64; k++) {
    wl_dev_free(d, l->outs[k].v, l->n_rows * 8);
    wl_dev_free(d, l->outs[k].n, (l->n_rows + 1) * 4);
    wl_dev_free(d, l->outs[k].t, l->n_rows);
  }
  wl_dev_free(d, l->tiles, l->n_tiles * 8);
  wl_dev_free(d, l->partial, (size_t)l->grid * l->s->low.n_slots * 8);
  wl_dev_free(d, l->side, l->n_side * 16);
  wl_dev_free(d, l->text, l->s->text_room);
  wl_dev_free(d, l->blob, l->n_blob);
  wl_mem_free(l->host);
}

/* ---- results */

/* The bytes of a text or mixed column, gathered on the device, and their places. */
static wl_status fetch_text(launch *l, const wl_kout *o, arrived_col *c, wl_u64 n, wl_error *err) {
  wl_device *d = l->d;
  wl_u64 *places = NULL;
  wl_u8 *heap = NULL;
  wl_status rc = wl_dev_alloc(d, (n + 1) * 8, (void **)&places, err);
  if (!rc) rc = d->scan(d, o->n, places, (wl_i64)n, err);
  c->places = wl_mem_alloc((n + 1) * 8);
  c->n = wl_mem_alloc(n * 4);
  if (!rc && (!c->places || !c->n)) rc = wl_nomem(err);
  if (!rc) rc = d->copy_out(d, c->places, places, (n + 1) * 8, err);
  if (!rc) rc = d->copy_out(d, c->n, o->n, n * 4, err);
  wl_u64 n_bytes = rc ? 0 : c->places[n];
  if (!rc && n_bytes) rc = wl_dev_alloc(d, n_bytes, (void **)&heap, err);
  if (!rc) rc = d->host_alloc(d, n_bytes + 1, (void **)&c->heap, err);
  if (!rc && n_bytes) {
    wl_kgather g = {o->v, o->n, places, heap, n};
    wl_u64 blocks = (n + 7) / 8, most = (wl_u64)d->n_processors * 8;
    unsigned threads = (unsigned)d->block_threads;
    rc = d->launch(d, WL_K_GATHER, &g, sizeof g, (unsigned)(blocks < most ? blocks : most), threads,
                   0, err);
    if (!rc) rc = d->copy_out(d, c->heap, heap, n_bytes, err);
  }
  wl_dev_free(d, places, (n + 1) * 8);
  wl_dev_free(d, heap, n_bytes);
  return rc;
}

static wl_status fetch(launch *l, arrived **out, wl_error *err) {
  const wl_program *p = l->r->p;
  wl_u64 n = l->counters[C_OUT];
  arrived *a = *out = wl_mem_zalloc(sizeof *a + (size_t)p->n_results * sizeof *a->cols);
  if (!a) return wl_nomem(err);
  atomic_init(&a->refs, 1);
  a->device = l->d;
  a->n_cols = p->n_results;
  wl_status rc = WL_OK;
  for (int k = 0; k < p->n_results && !rc; k++) {
    const wl_kout *o = &l->outs[k];
    arrived_col *c = &a->cols[k];
    if (o->type != WL_R_TEXT) {
      rc = l->d->host_alloc(l->d, n * 8, (void **)&c->v, err);
      if (!rc) rc = l->d->copy_out(l->d, c->v, o->v, n * 8, err);
    }
    if (!rc && o->t) {
      rc = l->d->host_alloc(l->d, n, (void **)&c->t, err);
      if (!rc) rc = l->d->copy_out(l->d, c->t, o->t, n, err);
    }
    if (!rc && o->type >= WL_R_TEXT) rc = fetch_text(l, o, c, n, err);
  }
  return rc;
}

/* Rows [at, at + n) of a text or mixed column as a batch wants them. */
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

static wl_status push_batches(launch *l, arrived *a, wl_error *err) {
  const wl_reg *regs = wl_pool_regs(l->r->pool);
  wl_u64 n = l->counters[C_OUT], n_batches = (n + WL_TABLET_ROWS - 1) / WL_TABLET_ROWS;
  for (int k = 0; k < a->n_cols; k++) {
    if (regs[k].type != WL_R_TEXT) continue;
    a->cols[k].offsets = wl_mem_alloc((n + n_batches + 1) * 4);
    if (!a->cols[k].offsets) return wl_nomem(err);
  }
  for (wl_u64 b = 0; b < n_batches; b++) {
    wl_u64 at = b * WL_TABLET_ROWS, m = n - at < WL_TABLET_ROWS ? n - at : WL_TABLET_ROWS;
    wl_batch *batch;
    wl_status rc = wl_batch_borrow(l->r->pool, a, arrived_release, &batch, err);
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
    wl_run_push(l->r, batch);
    if (rc) return rc;
  }
  return WL_OK;
}

/* ---- aggregates */

static __int128 limbs(wl_u64 lo, wl_i64 hi) {
  return (__int128)hi * ((__int128)1 << 32) + lo;
}

/* Joins what the blocks gathered into the run's accumulators. */
static wl_status join(launch *l, const wl_u64 *partial, const wl_u64 *side, wl_error *err) {
  wl_run *r = l->r;
  const wl_program *p = r->p;
  for (int k = 0; k < p->n_accs; k++) {
    const wl_kacc *acc = &l->s->low.accs[k];
    wl_acc_state *into = &r->accs[k];
    wl_u64 best_row = 0;
    wl_val best = wl_null();
    for (unsigned b = 0; b < l->grid; b++) {
      const wl_u64 *v = partial + (size_t)b * l->s->low.n_slots + acc->slot;
      switch (acc->op) {
      case WL_OP__AggRows:
      case WL_OP__AggCount: into->count += (wl_i64)v[0]; break;
      case WL_OP__AggSumI:
        into->sum += (wl_i64)v[0];
        into->count += (wl_i64)v[1];
        break;
      case WL_OP__AggSumX:
        into->sum += limbs(v[0], (wl_i64)v[1]);
        into->count += (wl_i64)v[4];
        l->s->magnitude[k] += limbs(v[2], (wl_i64)v[3]);
        break;
      case WL_OP__AggSumF:
        for (int j = 0; j < 3; j++)
          wl_fsum_add_scaled(&into->reals, (wl_i64)v[j], l->s->low.anchors[k] - WL_FSUM_DIGIT * j);
        into->count += (wl_i64)v[3];
        if (v[3]) into->seen_real = true;
        break;
      default: {
        bool real = acc->op == WL_OP__AggMinF || acc->op == WL_OP__AggMaxF;
        wl_val x = wl_val_make(real ? WL_T_REAL : WL_T_INT, v[0], 0);
        if (v[1] == 0) break;
        int c = best_row ? wl_cmp_val(x, best, 0) : 0;
        bool min = acc->op == WL_OP__AggMinI || acc->op == WL_OP__AggMinF;
        if (!best_row || (min ? c < 0 : c > 0) || (c == 0 && v[1] < best_row)) {
          best = x;
          best_row = v[1];
        }
      }
      }
    }
    if (wl_acc_better(acc->op, into, best, 0) && wl_acc_best(into, best)) return wl_nomem(err);
  }
  for (wl_u64 i = 0; i < l->counters[C_SIDE]; i++)
    wl_fsum_add(&r->accs[side[2 * i]].reals, wl_as_f64(side[2 * i + 1]));
  return WL_OK;
}

/* A sum() whose prefixes may have overflowed must be judged in row order: by the CPU, anew. */
static bool overflow_possible(const wl_run *r, const state *s) {
  for (int k = 0; k < r->p->n_aggs; k++) {
    int acc = r->p->aggs[k].acc;
    if (r->p->aggs[k].final == WL_AGG_SUM && r->p->accs[acc].op == WL_OP__AggSumX &&
        s->magnitude[acc] > WL_I64_MAX)
      return true;
  }
  return false;
}

static wl_status gather_aggregates(launch *l, wl_error *err) {
  wl_run *r = l->r;
  size_t n = (size_t)l->grid * l->s->low.n_slots * 8;
  wl_u64 *partial = wl_mem_alloc(n), *side = wl_mem_alloc(l->counters[C_SIDE] * 16 + 16);
  wl_status rc = partial && side ? WL_OK : wl_nomem(err);
  if (!rc) rc = l->d->copy_out(l->d, partial, l->partial, n, err);
  if (!rc && l->counters[C_SIDE])
    rc = l->d->copy_out(l->d, side, l->side, l->counters[C_SIDE] * 16, err);
  if (!rc) rc = join(l, partial, side, err);
  wl_mem_free(partial);
  wl_mem_free(side);
  if (!rc && overflow_possible(r, l->s)) {
    for (int k = 0; k < r->p->n_accs; k++) wl_acc_reset(&r->accs[k]);
    r->next_tablet = 0;
    return wl_not_taken(err, "sum() may overflow, which is judged in row order");
  }
  return rc;
}

/* ---- groups */

/* Device bytes one tablet needs besides the resident columns. */
static size_t tablet_bytes(const wl_run *r, const state *s) {
  size_t n = 4096;
  for (int k = 0; k < r->p->n_columns && !s->resident; k++) {
    const wl_column *c = r->snap.cols[k];
    size_t most = 0;
    for (int t = 0; t < c->n_tablets; t++) {
      size_t b = wl_devcol_bytes(c, t, t + 1);
      if (b > most) most = b;
    }
    n += most;
  }
  for (int k = 0; k < r->p->n_results && r->second_block < 0; k++)
    n += WL_TABLET_ROWS * out_row_bytes(wl_result_reg(&r->p->results[k]));
  n += WL_TABLET_ROWS * 16 * (size_t)count_real_sums(r->p);
  return n + WL_TABLET_ROWS / tile_rows(s) * 8;
}

/* Sees to it that the columns are on the device, and stay there for this wave. */
static void hold_residents(wl_run *r, state *s) {
  for (int k = 0; k < r->p->n_columns && s->resident; k++) {
    wl_devcol *c;
    wl_error why;
    if (wl_devcol_resident(r->config.device, r->snap.cols[k], &c, &why)) s->resident = false;
  }
}

/* Chooses residency and the size of groups. */
static wl_status plan_groups(wl_run *r, state *s, wl_error *err) {
  wl_device *d = r->config.device;
  wl_i64 n_bytes = 0;
  for (int k = 0; k < r->p->n_columns; k++)
    n_bytes += (wl_i64)wl_devcol_bytes(r->snap.cols[k], 0, r->n_tablets);
  s->resident = n_bytes <= d->budget / 2;
  hold_residents(r, s);
  s->text_room = s->low.makes_text ? (wl_u64)1 << 20 : 0;
  wl_i64 room = d->budget - (s->resident ? n_bytes : 0) - (1 << 16) - (wl_i64)s->text_room;
  wl_i64 each = (wl_i64)tablet_bytes(r, s), n = room / each;
  if (n < 1)
    return wl_not_taken(err, "a tablet needs %lld bytes on the device; device_budget is %lld", each,
                        d->budget);
  s->group = n < r->n_tablets ? (int)n : r->n_tablets;
  if (r->to_give >= 0 && !r->collects && s->group > 4) s->group = 4;
  return WL_OK;
}

static wl_status open_state(wl_run *r, wl_error *err) {
  state *s = wl_mem_zalloc(sizeof *s);
  if (!s) return wl_nomem(err);
  r->device_state = s;
  wl_arena_init(&s->arena);
  s->magnitude = WL_NEW_N(&s->arena, __int128, r->p->n_accs);
  if (!s->magnitude) return wl_nomem(err);
  wl_status rc = wl_lower(&s->arena, r->p, r->config.device, &s->low, err);
  return rc ? rc : plan_groups(r, s, err);
}

void wl_run_device_close(wl_run *r) {
  state *s = r->device_state;
  if (!s) return;
  wl_arena_close(&s->arena);
  wl_mem_free(s);
  r->device_state = NULL;
}

/* One group. WL_FULL and faults may be mended by a smaller group or more room for text. */
static wl_status one_group(wl_run *r, state *s, bool *again, wl_error *err) {
  launch l;
  memset(&l, 0, sizeof l);
  l.r = r;
  l.d = r->config.device;
  l.s = s;
  l.first = r->next_tablet;
  l.end = l.first + s->group < r->n_tablets ? l.first + s->group : r->n_tablets;
  arrived *a = NULL;
  *again = false;
  wl_status rc = launch_open(&l, err);
  wl_u32 fault = rc ? 0 : (wl_u32)l.counters[C_FAULT];
  if (!rc && fault == WL_FAULT_TOOBIG) rc = wl_fail(err, WL_TOOBIG, "string or blob too big");
  if (!rc && fault == WL_FAULT_ROOM) {
    rc = wl_fail(err, WL_FULL, "the text made needs %llu bytes on the device", l.counters[C_TEXT]);
    if (l.counters[C_TEXT] > s->text_room && (wl_i64)l.counters[C_TEXT] < l.d->budget / 4) {
      launch_close(&l);
      s->text_room = l.counters[C_TEXT];
      *again = true;
      return WL_OK;
    }
  }
  if (!rc && l.counters[C_SIDE] > l.n_side)
    rc = wl_fail(err, WL_FULL, "too many reals that the device's digits do not hold");
  if (!rc && r->second_block >= 0) rc = gather_aggregates(&l, err);
  if (!rc && r->second_block < 0 && l.counters[C_OUT]) {
    rc = fetch(&l, &a, err);
    if (!rc) rc = push_batches(&l, a, err);
  }
  launch_close(&l);
  if (a) {
    wl_device_unlock(l.d); /* the release takes the lock */
    arrived_release(a);
    wl_device_lock(l.d);
  }
  if (rc == WL_FULL && l.end - l.first > 1) {
    s->group = (l.end - l.first + 1) / 2;
    *again = true;
    return WL_OK;
  }
  if (rc == WL_FULL) return WL_NOT_TAKEN; /* with the message that says why */
  if (!rc) {
    r->next_tablet = l.end;
    if (r->to_give >= 0 && !r->collects) s->group *= 2;
  }
  return rc;
}

wl_status wl_run_device_wave(wl_run *r, wl_error *err) {
  wl_device *d = r->config.device;
  wl_device_lock(d);
  wl_status rc = WL_OK;
  d->budget = r->config.device_budget ? r->config.device_budget : d->free_memory;
  wl_devcol_tick(d);
  if (!r->device_state) {
    rc = open_state(r, err);
  } else {
    state *s = r->device_state;
    bool was = s->resident;
    hold_residents(r, s);
    if (was && !s->resident) rc = plan_groups(r, s, err);
  }
  bool again = !rc;
  while (!rc && again) rc = one_group(r, r->device_state, &again, err);
  wl_device_unlock(d);
  return rc;
}
