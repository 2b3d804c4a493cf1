/*
** Builds a lookup on a device: a pipeline over the rows of a source whose last opcode is Build.
** Keys are integers of a known range, and their words are the slots of a table. Each row puts its
** number into its slot, and the smallest one stays. So a lookup in which only the first row of a
** key matters is finished when all rows are done, and any other one if no key came twice. If some
** did, the pipeline runs again and lists words and rows, which are sorted: then the rows of each
** key are consecutive and ascending. The host learns the counts. The arrays stay on the device.
*/
#include "exec/gpu/launch.h"
#include "exec/sink/lookup.h"
#include "base/mem.h"

typedef struct building {
  const wl_build_in *in;
  wl_stop *stop;
  wl_lookup *l;
  wl_device *d;
  wl_device_build b;
  wl_u64 built[WL_K_BUILT]; /* the counts of the last run */
  /* the pairs, and what sorting them needs */
  wl_i64 n_pairs;
  wl_u64 *keys[2];
  wl_u32 *values[2];
} building;

/* The number of words of the keys; 0: a table of them would be too large. */
static wl_u64 table_words(const wl_build_in *in) {
  enum { ALWAYS = 1 << 20, A_ROW = 64, MOST = 1 << 26 };
  const wl_key_part *first = &in->plan.parts[0];
  wl_u64 span;
  if (in->plan.kind != WL_KEYS_INT || __builtin_mul_overflow(first->span, first->below, &span))
    return 0;
  bool pays = span <= ALWAYS || (double)span <= (double)in->n_rows * A_ROW;
  return pays && span <= MOST ? span : 0;
}

/* Runs the pipeline. */
static wl_status run(building *x, wl_error *err) {
  const wl_build_in *in = x->in;
  wl_device *d = x->d;
  char note[WL_PIPE_NOTE] = "";
  wl_moved moved = {0};
  wl_pipe e = {.p = in->p,
               .cols = in->cols,
               .n_rows = in->n_rows,
               .n_tablets = (int)((in->n_rows + WL_TABLET_ROWS - 1) >> WL_TABLET_SHIFT),
               .threads = in->threads,
               .needed = -1,
               .max_text = in->max_text,
               .stop = x->stop,
               .device = d,
               .device_budget = in->device_budget,
               .mapped_budget = in->mapped_budget,
               .transfer = in->transfer,
               .build = &x->b,
               .note = note,
               .moved = &moved};
  wl_status rc = WL_OK;
  while (!rc && !wl_pipe_done(&e)) {
    rc = wl_stop_ask(x->stop, err);
    if (!rc) rc = wl_pipe_wave(&e, err);
  }
  wl_pipe_close(&e);
  wl_device_lock(d);
  d->queue = 0;
  if (!rc) rc = d->copy_out(d, x->built, x->b.built, sizeof x->built, err);
  wl_device_unlock(d);
  return rc;
}

/* ---- slots */

static wl_status open_slots(building *x, wl_error *err) {
  wl_device *d = x->d;
  wl_u32 *arrays[2];
  x->l->unique = true;
  wl_device_lock(d);
  d->queue = 0;
  wl_device_allow(d, x->in->device_budget, x->in->mapped_budget);
  wl_devcol_tick(d);
  wl_status rc = wl_dev_alloc(d, sizeof x->built, (void **)&x->b.built, err);
  if (!rc) rc = wl_devlookup_open(d, x->l, arrays, err);
  if (!rc) x->b.table = arrays[0];
  x->b.n_bytes = (wl_i64)wl_devlookup_bytes(x->l);
  if (!rc) rc = d->fill(d, x->b.built, 0, sizeof x->built, err);
  if (!rc) rc = d->fill(d, x->b.table, 0xff, (size_t)x->l->span * sizeof *x->b.table, err);
  if (!rc) rc = d->finish(d, err); /* launches may use other queues */
  wl_device_unlock(d);
  return rc;
}

/* ---- lists */

/* Frees the slots and makes room for the pairs. */
static wl_status open_pairs(building *x, wl_error *err) {
  wl_device *d = x->d;
  size_t n = (size_t)x->l->n_rows;
  wl_status rc = WL_OK;
  wl_device_lock(d);
  d->queue = 0;
  wl_device_allow(d, x->in->device_budget, x->in->mapped_budget);
  wl_devlookup_close(d, x->l);
  x->b.table = NULL;
  x->l->unique = false;
  x->n_pairs = x->b.n_pairs = x->l->n_rows;
  x->b.n_bytes = 2 * x->n_pairs * (wl_i64)(sizeof *x->keys[0] + sizeof *x->values[0]);
  for (int k = 0; k < 2 && !rc; k++) {
    rc = wl_dev_alloc(d, n * sizeof *x->keys[k], (void **)&x->keys[k], err);
    if (!rc) rc = wl_dev_alloc(d, n * sizeof *x->values[k], (void **)&x->values[k], err);
  }
  if (!rc) rc = d->fill(d, x->values[0], 0, n * sizeof *x->values[0], err);
  if (!rc) rc = d->finish(d, err);
  x->b.pairs = x->keys[0];
  wl_device_unlock(d);
  return rc;
}

static wl_status sort_pairs(building *x, wl_error *err) {
  wl_device *d = x->d;
  wl_lookup *l = x->l;
  wl_u32 *arrays[2];
  int at = 0, n_bits = 32; /* rows have 32 */
  while (n_bits < 64 && l->span >> (n_bits - 32)) n_bits++;
  wl_device_lock(d);
  d->queue = 0;
  wl_device_allow(d, x->in->device_budget, x->in->mapped_budget);
  wl_status rc = d->sort(d, x->keys, x->values, x->n_pairs, n_bits, &at, err);
  if (!rc) rc = wl_devlookup_open(d, l, arrays, err);
  if (!rc) {
    wl_klists args = {x->keys[at], (wl_u64)x->n_pairs, l->span, arrays[0], arrays[1]};
    wl_u64 blocks = l->span / 256 + 1, most = (wl_u64)d->n_processors * 8;
    rc = d->launch(d, WL_K_MAKE_LISTS, &args, sizeof args,
                   (unsigned)(blocks < most ? blocks : most), (unsigned)d->block_threads, 0, err);
  }
  if (!rc) rc = d->finish(d, err);
  wl_device_unlock(d);
  return rc;
}

static wl_status build(building *x, wl_error *err) {
  wl_lookup *l = x->l;
  wl_status rc = open_slots(x, err);
  if (!rc) rc = run(x, err);
  if (rc) return rc;
  l->n_rows = (wl_i64)x->built[WL_K_BUILT_ROWS];
  l->has_null = x->built[WL_K_BUILT_NULLS] > 0;
  if (!x->built[WL_K_BUILT_AGAIN] || x->in->first_only) {
    l->n_rows -= (wl_i64)x->built[WL_K_BUILT_AGAIN];
    return WL_OK;
  }
  rc = open_pairs(x, err);
  if (!rc) rc = run(x, err);
  if (!rc && (wl_i64)x->built[WL_K_BUILT_PAIRS] != x->n_pairs)
    rc = wl_not_taken(err, "the second run over the rows of a lookup found others");
  return rc ? rc : sort_pairs(x, err);
}

wl_status wl_lookup_build_on_device(const wl_build_in *in, wl_stop *stop, wl_lookup *l,
                                    wl_error *err) {
  wl_device *d = in->device;
  building x = {.in = in, .stop = stop, .l = l, .d = d, .b.plan = &in->plan};
  l->span = d && in->n_rows >= d->least_build && !in->p->expands ? table_words(in) : 0;
  if (!l->span) return wl_not_taken(err, "not a lookup for a device");
  l->on_device = l->direct = true;
  wl_status rc = build(&x, err);
  wl_device_lock(d);
  d->queue = 0;
  for (int k = 0; k < 2; k++) {
    wl_dev_free(d, x.keys[k], (size_t)x.n_pairs * sizeof *x.keys[k]);
    wl_dev_free(d, x.values[k], (size_t)x.n_pairs * sizeof *x.values[k]);
  }
  wl_dev_free(d, x.b.built, sizeof x.built);
  if (rc)
    wl_devlookup_close(d, l);
  else
    wl_devlookup_built(d, l);
  wl_device_unlock(d);
  if (!rc) return WL_OK;
  l->on_device = l->direct = l->unique = l->has_null = false;
  l->span = 0;
  l->n_rows = 0;
  return stop->status || rc == WL_NOMEM ? rc : WL_NOT_TAKEN;
}
