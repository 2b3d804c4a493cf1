/*
** Builds a lookup on a device: a pipeline over the rows of a source whose last opcode is Build.
*Keys
** are integers of a known range, and their words are the slots of a table. Each row puts its number
** into its slot, and the smallest one stays. So a lookup in which only the first row of a key
*matters
** is finished when all rows are done, and any other one if no key came twice. The host learns the
** counts; the table stays on the device.
*/
#include "exec/gpu/launch.h"
#include "exec/sink/lookup.h"

/* The number of words of the keys; 0: a table of them would be too large. */
static wl_u64 table_words(const wl_build_in *in) {
  enum { ALWAYS = 1 << 20, A_ROW = 64, MOST = 1 << 28 };
  const wl_key_part *first = &in->plan.parts[0];
  wl_u64 span;
  if (in->plan.kind != WL_KEYS_INT || __builtin_mul_overflow(first->span, first->below, &span))
    return 0;
  bool pays = span <= ALWAYS || (double)span <= (double)in->n_rows * A_ROW;
  return pays && span <= MOST ? span : 0;
}

static wl_status open_table(wl_pipe *e, wl_device_build *b, size_t n_bytes, wl_error *err) {
  wl_device *d = e->device;
  size_t n_built = WL_K_BUILT * sizeof *b->built;
  d->queue = 0;
  wl_device_allow(e);
  wl_status rc = wl_dev_alloc(d, n_bytes, (void **)&b->table, err);
  if (!rc) rc = wl_dev_alloc(d, n_built, (void **)&b->built, err);
  if (!rc) rc = d->fill(d, b->table, 0xff, n_bytes, err);
  if (!rc) rc = d->fill(d, b->built, 0, n_built, err);
  return rc ? rc : d->finish(d, err);
}

/* Makes the lookup of the table. */
static wl_status make(const wl_build_in *in, wl_device_build *b, size_t n_bytes, wl_lookup *l,
                      wl_error *err) {
  wl_device *d = in->device;
  wl_u64 built[WL_K_BUILT];
  d->queue = 0;
  wl_status rc = d->copy_out(d, built, b->built, sizeof built, err);
  if (rc) return rc;
  if (built[WL_K_BUILT_AGAIN] && !in->first_only)
    return wl_not_taken(err, "several rows have the same key");
  rc = wl_devlookup_adopt(d, l, b->table, n_bytes, err);
  if (rc) return rc;
  b->table = NULL;
  l->direct = l->unique = true;
  l->n_rows = (wl_i64)(built[WL_K_BUILT_ROWS] - built[WL_K_BUILT_AGAIN]);
  l->has_null = built[WL_K_BUILT_NULLS] > 0;
  return WL_OK;
}

wl_status wl_lookup_build_on_device(const wl_build_in *in, wl_stop *stop, wl_lookup *l,
                                    wl_error *err) {
  wl_device *d = in->device;
  wl_u64 span = table_words(in);
  size_t n_bytes = ((size_t)span + WL_LOOKUP_MORE) * sizeof(wl_u32);
  char note[WL_PIPE_NOTE], transferred[WL_PIPE_TRANSFERRED];
  wl_device_build b = {.plan = &in->plan};
  wl_pipe e = {.p = in->p,
               .cols = in->cols,
               .n_rows = in->n_rows,
               .n_tablets = (int)((in->n_rows + WL_TABLET_ROWS - 1) >> WL_TABLET_SHIFT),
               .threads = in->threads,
               .needed = -1,
               .max_text = in->max_text,
               .stop = stop,
               .device = d,
               .device_budget = in->device_budget,
               .mapped_budget = in->mapped_budget,
               .transfer = in->transfer,
               .build = &b,
               .note = note,
               .transferred = transferred};
  if (!d || in->n_rows < d->least_build || !span || in->p->expands)
    return wl_not_taken(err, "not a lookup for a device");
  wl_device_lock(d);
  wl_status rc = open_table(&e, &b, n_bytes, err);
  wl_device_unlock(d);
  while (!rc && !wl_pipe_done(&e)) {
    rc = wl_stop_ask(stop, err);
    if (!rc) rc = wl_pipe_wave(&e, err);
  }
  wl_pipe_close(&e);
  wl_device_lock(d);
  if (!rc) rc = make(in, &b, n_bytes, l, err);
  if (!rc) l->span = span;
  wl_dev_free(d, b.table, n_bytes);
  wl_dev_free(d, b.built, WL_K_BUILT * sizeof *b.built);
  wl_device_unlock(d);
  bool stopped = stop->status != WL_OK;
  return !rc || stopped || rc == WL_NOMEM ? rc : WL_NOT_TAKEN;
}
