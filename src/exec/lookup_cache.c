/*
** See lookup_cache.h.
*/
#include "exec/lookup_cache.h"
#include "base/mem.h"
#include "column/dict.h"
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct entry {
  struct entry *next; /* most recently used first */
  wl_kept_key key;
  wl_lookup *lookup;
  wl_i64 uses;
  char name[64];
} entry;

struct wl_kept {
  entry *first;
};

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

wl_kept_key wl_kept_key_of(const wl_build_in *in) {
  const wl_program *p = in->p;
  XXH3_state_t h;
  XXH3_128bits_reset(&h);
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
    add(&h, &plan->lo[k], sizeof plan->lo[k]);
    add(&h, &plan->hi[k], sizeof plan->hi[k]);
    add(&h, &plan->null_equal[k], 1);
    add(&h, &plan->coll[k], 1);
  }
  add(&h, &in->n_rows, sizeof in->n_rows);
  add(&h, &in->max_text, sizeof in->max_text); /* past it a text is an error */
  add(&h, &in->first_only, 1);
  XXH128_hash_t out = XXH3_128bits_digest(&h);
  return (wl_kept_key){out.high64, out.low64};
}

wl_lookup *wl_kept_find(wl_kept *k, wl_kept_key key) {
  for (entry **at = k ? &k->first : NULL; at && *at; at = &(*at)->next) {
    entry *e = *at;
    if (e->key.high != key.high || e->key.low != key.low) continue;
    *at = e->next;
    e->next = k->first;
    k->first = e;
    e->uses++;
    return wl_lookup_hold(e->lookup);
  }
  return NULL;
}

size_t wl_kept_bytes(const wl_kept *k) {
  size_t n = 0;
  for (const entry *e = k ? k->first : NULL; e; e = e->next) n += e->lookup->n_bytes;
  return n;
}

static void drop_last(wl_kept *k) {
  entry **at = &k->first;
  while ((*at)->next) at = &(*at)->next;
  wl_lookup_drop((*at)->lookup);
  wl_mem_free(*at);
  *at = NULL;
}

void wl_kept_put(wl_kept **k, wl_kept_key key, wl_lookup *l, const char *name, wl_i64 budget) {
  size_t most = budget > 0 ? (size_t)budget / 4 : (size_t)1 << 30;
  if (l->n_bytes > most) return;
  if (!*k) *k = wl_mem_zalloc(sizeof **k);
  entry *e = *k ? wl_mem_zalloc(sizeof *e) : NULL;
  if (!e) return; /* not kept, then */
  e->key = key;
  e->lookup = wl_lookup_hold(l);
  strncpy(e->name, name ? name : "", sizeof e->name - 1);
  e->next = (*k)->first;
  (*k)->first = e;
  while (wl_kept_bytes(*k) > most) drop_last(*k);
}

void wl_kept_close(wl_kept *k) {
  if (!k) return;
  while (k->first) drop_last(k);
  wl_mem_free(k);
}

bool wl_kept_entry(const wl_kept *k, int i, const char **name, const wl_lookup **l, wl_i64 *uses) {
  const entry *e = k ? k->first : NULL;
  while (e && i-- > 0) e = e->next;
  if (!e) return false;
  *name = e->name;
  *l = e->lookup;
  *uses = e->uses;
  return true;
}
