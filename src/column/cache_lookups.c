/*
** Lookups that are kept for later statements; see cache.h.
*/
#include "base/mem.h"
#include "column/cache_impl.h"
#include "column/lookup.h"
#include <string.h>

typedef struct wl_cached_lookup {
  struct wl_cached_lookup *next; /* most recently used first */
  wl_lookup_key key;
  wl_lookup *lookup;
  wl_i64 uses;
  char name[64];
  int n_columns;
  wl_u64 columns[];
} wl_cached_lookup;

static wl_cached_lookup *first;

static void take_out(wl_cached_lookup **at, wl_cache_trash *t) {
  wl_cached_lookup *e = *at;
  *at = e->next;
  wl_cache.n_bytes -= e->lookup->n_bytes;
  wl_cache.n_lookup_bytes -= e->lookup->n_bytes;
  e->next = t->lookups;
  t->lookups = e;
}

void wl_cache_free_lookups(wl_cached_lookup *list) {
  while (list) {
    wl_cached_lookup *e = list;
    list = e->next;
    wl_lookup_drop(e->lookup);
    wl_mem_free(e);
  }
}

static bool depends(const wl_cached_lookup *e, wl_u64 column) {
  for (int i = 0; i < e->n_columns; i++)
    if (e->columns[i] == column) return true;
  return false;
}

void wl_cache_forget_lookups(wl_u64 column, wl_cache_trash *t) {
  for (wl_cached_lookup **at = &first; *at;) {
    if (depends(*at, column))
      take_out(at, t);
    else
      at = &(*at)->next;
  }
}

void wl_cache_drop_lookups(wl_cache_trash *t) {
  while (first) take_out(&first, t);
}

static wl_cached_lookup *find(wl_lookup_key key) {
  for (wl_cached_lookup **at = &first; *at; at = &(*at)->next) {
    wl_cached_lookup *e = *at;
    if (e->key.high != key.high || e->key.low != key.low) continue;
    *at = e->next;
    e->next = first;
    first = e;
    return e;
  }
  return NULL;
}

wl_lookup *wl_cache_find_lookup(wl_lookup_key key) {
  wl_cache_lock();
  wl_cached_lookup *e = find(key);
  if (e) e->uses++;
  wl_lookup *l = e ? wl_lookup_hold(e->lookup) : NULL;
  wl_cache_unlock();
  return l;
}

/* Whether all columns are still in a set. If not, the lookup could not be found again. */
static bool columns_are_cached(const wl_u64 *ids, int n) {
  int n_there = 0;
  for (const wl_column_set *set = wl_cache.sets; set; set = set->next)
    for (int i = 0; i <= set->n_cols; i++)
      for (int k = 0; k < n && set->slots[i].column; k++)
        n_there += set->slots[i].column->id == ids[k];
  return n_there == n;
}

void wl_cache_add_lookup(wl_lookup_key key, wl_lookup *l, const char *name, const wl_u64 *columns,
                         int n_columns) {
  wl_cache_trash trash = {0};
  wl_cached_lookup *e = wl_mem_zalloc(sizeof *e + (size_t)n_columns * sizeof *columns);
  if (!e) return; /* out of memory: it is not kept */
  e->key = key;
  strncpy(e->name, name ? name : "", sizeof e->name - 1);
  e->n_columns = n_columns;
  if (n_columns) memcpy(e->columns, columns, (size_t)n_columns * sizeof *columns);
  wl_cache_lock();
  wl_i64 budget = wl_cache_budget();
  size_t most = budget ? (size_t)budget / 4 : (size_t)1 << 30;
  bool keeps = l->n_bytes <= most && !find(key) && columns_are_cached(columns, n_columns);
  if (keeps) {
    e->lookup = wl_lookup_hold(l);
    e->next = first;
    first = e;
    wl_cache.n_bytes += l->n_bytes;
    wl_cache.n_lookup_bytes += l->n_bytes;
  }
  while (wl_cache.n_lookup_bytes > most) {
    wl_cached_lookup **at = &first;
    while ((*at)->next) at = &(*at)->next;
    take_out(at, &trash);
  }
  wl_cache_unlock();
  wl_cache_empty_trash(&trash);
  if (!keeps) wl_mem_free(e);
}

size_t wl_cache_lookup_bytes(void) {
  wl_cache_lock();
  size_t n = wl_cache.n_lookup_bytes;
  wl_cache_unlock();
  return n;
}

static bool used_by(const wl_cached_lookup *e, const wl_cache_member *m) {
  for (const wl_cache_user *u = m->users; u; u = u->next_source)
    for (int i = 0; u->set && i <= u->set->n_cols; i++)
      if (u->set->slots[i].column && depends(e, u->set->slots[i].column->id)) return true;
  return false;
}

void wl_cache_drop_lookups_of(const wl_cache_member *m) {
  wl_cache_trash trash = {0};
  wl_cache_lock();
  for (wl_cached_lookup **at = &first; *at;) {
    if ((*at)->n_columns == 0 || used_by(*at, m))
      take_out(at, &trash);
    else
      at = &(*at)->next;
  }
  wl_cache_unlock();
  wl_cache_empty_trash(&trash);
}

bool wl_cache_lookup_entry(const wl_cache_member *m, int i, wl_lookup_entry *out) {
  wl_cache_lock();
  const wl_cached_lookup *e = first;
  for (; e; e = e->next)
    if ((e->n_columns == 0 || used_by(e, m)) && i-- == 0) break;
  if (e) {
    memcpy(out->name, e->name, sizeof out->name);
    out->lookup = wl_lookup_hold(e->lookup);
    out->uses = e->uses;
  }
  wl_cache_unlock();
  return e != NULL;
}
