/*
** See lookup_cache.h.
*/
#include "exec/lookup_cache.h"
#include "base/mem.h"
#include "column/dict.h"
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static void add(XXH3_state_t *h, const void *p, size_t n) {
  if (n) XXH3_128bits_update(h, p, n);
}

static void add_value(XXH3_state_t *h, wl_val v) {
  add(h, &v.t, 1);
  add(h, &v.n, sizeof v.n);
  if (v.t >= WL_T_TEXT)
    add(h, wl_bytes(v), v.n);
  else
    add(h, &v.v, sizeof v.v);
}

static void add_map(XXH3_state_t *h, const wl_map *m) {
  size_t n = (size_t)m->n + 1;
  add(h, &m->base, sizeof m->base);
  add(h, &m->n, sizeof m->n);
  add(h, m->t, n);
  if (m->v) add(h, m->v, n * sizeof *m->v);
  if (m->len) add(h, m->len, n * sizeof *m->len);
  if (m->heap) add(h, m->heap, m->n_heap);
}

wl_lookup_key wl_lookup_cache_key(const wl_build_in *in) {
  const wl_program *p = in->p;
  XXH3_state_t h;
  XXH3_128bits_reset(&h);
  add(&h, &in->device, sizeof in->device); /* the device may have built it, and have its arrays */
  add(&h, &in->uncounted, sizeof in->uncounted);
  add(&h, &in->one_row, sizeof in->one_row);
  add(&h, p->code, (size_t)p->n_code * sizeof *p->code);
  add(&h, p->regs, (size_t)p->n_regs * sizeof *p->regs);
  for (int k = 0; k < p->n_consts; k++) add_value(&h, p->consts[k]);
  for (int k = 0; k < p->n_maps; k++) add_map(&h, &p->maps[k]);
  for (int k = 0; k < p->n_insets; k++) {
    add(&h, &p->insets[k].coll, 1);
    add(&h, &p->insets[k].has_null, 1);
    add(&h, &p->insets[k].n, sizeof p->insets[k].n);
    for (wl_i64 i = 0; i < p->insets[k].n; i++) add_value(&h, p->insets[k].v[i]);
  }
  for (int k = 0; k < p->n_calls; k++) {
    add(&h, p->calls[k].text, strlen(p->calls[k].text));
    add(&h, p->calls[k].args, (size_t)p->calls[k].n * sizeof *p->calls[k].args);
  }
  for (int k = 0; k < p->n_joins; k++) {
    const wl_join *j = &p->joins[k];
    wl_u64 id = j->lookup ? j->lookup->id : 0;
    add(&h, &id, sizeof id);
    add(&h, &j->how, sizeof j->how);
    add(&h, &j->n_keys, sizeof j->n_keys);
    add(&h, j->keys, (size_t)j->n_keys * sizeof *j->keys);
  }
  for (int pc = 0; pc < p->n_code; pc++)
    if (p->code[pc].op == WL_OP__Column)
      add(&h, &in->cols[p->code[pc].a]->id, sizeof in->cols[0]->id);
  const wl_key_plan *plan = &in->plan;
  add(&h, &plan->kind, sizeof plan->kind);
  for (int k = 0; k < plan->n; k++) {
    add(&h, &plan->parts[k].lo, sizeof plan->parts[k].lo);
    add(&h, &plan->parts[k].hi, sizeof plan->parts[k].hi);
    add(&h, &plan->parts[k].null, 1);
    add(&h, &plan->coll[k], 1);
  }
  add(&h, &in->n_rows, sizeof in->n_rows);
  add(&h, &in->max_text, sizeof in->max_text); /* a longer text is an error */
  add(&h, &in->first_only, 1);
  add(&h, &in->exists, 1);
  XXH128_hash_t out = XXH3_128bits_digest(&h);
  return (wl_lookup_key){out.high64, out.low64};
}

wl_lookup *wl_lookup_cache_find(wl_lookup_key key) {
  return wl_cache_find_lookup(key);
}

void wl_lookup_cache_add(wl_lookup_key key, const wl_build_in *in, wl_lookup *l, const char *name) {
  const wl_program *p = in->p;
  wl_u64 *ids = wl_mem_alloc(((size_t)p->n_code + 1) * sizeof *ids);
  int n = 0;
  if (!ids) return; /* then it is not cached */
  for (int pc = 0; pc < p->n_code; pc++) {
    if (p->code[pc].op != WL_OP__Column) continue;
    wl_u64 id = in->cols[p->code[pc].a]->id;
    int k = 0;
    while (k < n && ids[k] != id) k++;
    if (k == n) ids[n++] = id;
  }
  wl_cache_add_lookup(key, l, name, ids, n);
  wl_mem_free(ids);
}
