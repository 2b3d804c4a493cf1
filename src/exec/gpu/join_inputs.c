/*
** What a run's joins read on a device in addition to the scan: lookups, and the columns of the
** joined sources, which are read at any row. After an Expand, the columns of source 0 are, too.
** run_device.c calls these functions with the device locked.
**
** Invariants:
** 1. They are copied as a whole in every transfer mode, and stay for the wave.
** 2. They use at most half of the device's budget as long as mapped memory has room for the rest.
**    Lookups come first. Those that the device has built stay where they are.
** 3. If they are larger than that, one of the lookups is divided into parts, if possible
**    (join_parts.h): then only the part of this pass is there, with its columns.
*/
#include "exec/gpu/join_parts.h"
#include <string.h>

/* Copies a column or a lookup. */
static wl_status copy_input(wl_pipe *e, wl_column *c, wl_lookup *l, wl_way way, wl_error *err) {
  wl_devcol *ignored;
  return c ? wl_devcol_resident(e->device, c, way, e->threads, &ignored, err)
           : wl_devlookup_resident(e->device, l, way, e->threads, err);
}

static wl_status hold(wl_pipe *e, wl_device_state *s, wl_column *c, wl_lookup *l, bool *far,
                      wl_error *err) {
  wl_i64 budget = e->device->budget,
         n = (wl_i64)(c ? wl_devcol_bytes(c, 0, c->n_rows) : wl_devlookup_bytes(l));
  wl_way near = e->transfer.pinned ? WL_WAY_STAGED : WL_WAY_DIRECT;
  wl_error other;
  bool remote = c ? wl_column_is_remote(c) : l->on_device && !atomic_load(&l->on_host);
  if (remote) { /* it is there and stays for the wave */
    *far = false;
    s->n_join_bytes += n;
    return copy_input(e, c, l, near, err);
  }
  *far = s->n_join_bytes + n > budget / 2;
  wl_status rc = copy_input(e, c, l, *far ? WL_WAY_MAPPED : near, err);
  if (rc == WL_FULL) {
    *far = !*far;
    rc = copy_input(e, c, l, *far ? WL_WAY_MAPPED : near, &other);
  }
  if (rc == WL_FULL)
    return wl_not_taken(err,
                        "the joined tables need %lld bytes on the device or mapped; device_budget "
                        "is %lld",
                        s->n_join_bytes + n, budget);
  if (rc) return wl_not_taken(err, "the joined tables cannot be copied to the device");
  if (!*far) s->n_join_bytes += n;
  return WL_OK;
}

bool wl_join_inputs_has(const wl_pipe *e, int k) {
  const wl_device_state *s = e->state;
  int source = wl_column_source(e->p, k);
  return source != WL_NO_SOURCE &&
         (source > 0 || s->expansion || e->p->source == WL_SOURCE_UNMATCHED);
}

wl_status wl_join_inputs_hold(wl_pipe *e, wl_device_state *s, wl_error *err) {
  const wl_program *p = e->p;
  wl_device *d = e->device;
  wl_i64 before = d->n_in;
  wl_status rc = WL_OK;
  bool begins = !s->far;
  if (begins) s->far = WL_NEW_N(&s->arena, bool, p->n_columns + p->n_joins + 1);
  if (!s->far) return wl_nomem(err);
  s->n_join_bytes = 0;
  if (begins) rc = wl_join_parts_plan(e, s, err);
  if (!rc && s->parts) rc = wl_join_parts_hold(e, s, err);
  if (rc == WL_FULL) rc = WL_NOT_TAKEN;
  for (int k = 0; k < p->n_joins && !rc; k++) {
    wl_lookup *l = (wl_lookup *)p->joins[k].lookup; /* this module sets its device copies */
    if (!l && e->build) continue;                   /* that of Build */
    if (!l) return wl_not_taken(err, "join %d has no lookup", k);
    if (l->n_rows && !wl_join_parts_has(s, k))
      rc = hold(e, s, NULL, l, &s->far[p->n_columns + k], err);
  }
  for (int k = 0; k < p->n_columns && !rc; k++)
    if (wl_join_inputs_has(e, k) && e->cols[k]->n_tablets && !wl_join_parts_has_column(e, k))
      rc = hold(e, s, e->cols[k], NULL, &s->far[k], err);
  /* later launches may use other queues */
  if (!rc && d->n_in != before) rc = d->finish(d, err);
  return rc;
}

wl_kcol wl_join_inputs_column(const wl_launch *l, int k) {
  const wl_column *c = l->e->cols[k];
  wl_kcol none = {.phys = c->phys};
  if (wl_join_parts_has_column(l->e, k)) return wl_join_parts_column(l->s, k);
  bool scanned =
      wl_column_source(l->e->p, k) == 0 && !l->combined && l->e->p->source != WL_SOURCE_UNMATCHED;
  wl_i64 first = scanned ? l->first : 0;
  return c->n_tablets ? wl_devcol_from(wl_devcol_find(l->d, c, l->s->far[k]), first) : none;
}

/* The keys of a join, as operands of the kernel. */
static void key_parts(const wl_program *p, const wl_join *j, const wl_key_plan *plan,
                      wl_key_part *parts, wl_kjoin *out) {
  out->n_keys = (wl_u32)j->n_keys;
  out->by_value = plan->kind == WL_KEYS_VALUES;
  memcpy(out->coll, plan->coll, (size_t)j->n_keys);
  for (int i = 0; i < j->n_keys; i++) {
    wl_i16 x = j->keys[i];
    parts[i] = plan->parts[i];
    parts[i].key = WL_IS_CONST(x) ? p->n_regs + WL_CONST_OF(x) : x;
  }
}

wl_kjoin wl_join_inputs_join(const wl_launch *launch, int k, wl_key_part *parts) {
  const wl_program *p = launch->e->p;
  const wl_lowered *low = launch->low;
  const wl_join *j = &p->joins[k];
  const wl_lookup *l = j->lookup;
  const wl_device_build *b = l ? NULL : launch->e->build;
  const wl_key_plan *plan = b ? b->plan : &l->plan;
  wl_kjoin out = {.first = WL_K_NO_ROW};
  if (b) {
    out.taken = b->words;
    out.mask = b->mask;
    out.table = b->table;
    out.set = b->bits;
    out.pairs = b->pairs;
    out.n_pairs = (wl_u64)b->n_pairs;
    out.n_listed = b->n_listed;
    out.built = (wl_u64 *)(void *)launch->blob + C_BUILT;
    key_parts(p, j, plan, parts, &out);
    return out;
  }
  bool reads = j->how != WL_HOW_SEMI && j->how != WL_HOW_ANTI;
  out.plane = reads ? low->planes[j->source] : 0;
  bool cut = low->part.kind == WL_PART_EXPAND && low->part.join == k;
  if (cut) {
    out.start = low->start;
    out.count = low->count;
  }
  out.marks = launch->s->marks ? launch->s->marks[k] : NULL;
  out.drops_lost = j->how == WL_HOW_INNER || j->how == WL_HOW_SEMI;
  out.drops_found = j->how == WL_HOW_ANTI && !cut; /* a test will tell */
  if (!l->n_rows) return out;                      /* like a join without keys: no row is found */
  out.mask = out.wrap = l->mask;
  if (wl_join_parts_has(launch->s, k)) {
    wl_join_parts_join(launch->s, &out);
    key_parts(p, j, plan, parts, &out);
    return out;
  }
  wl_devarrays a = wl_devlookup_arrays(launch->d, l, launch->s->far[p->n_columns + k]);
  out.words = a.words;
  out.slots = a.slots;
  out.counts = a.counts;
  out.starts = a.starts;
  out.rows = a.rows;
  out.bits = a.bits;
  if (plan->kind == WL_KEYS_NONE) {
    out.first = 0;
    out.n_first = (wl_u32)l->n_rows;
    return out;
  }
  key_parts(p, j, plan, parts, &out);
  return out;
}
