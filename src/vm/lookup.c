/*
** Lookups as counted things; see lookup.h.
*/
#include "vm/lookup.h"
#include "base/mem.h"

wl_lookup *wl_lookup_hold(wl_lookup *l) {
  atomic_fetch_add(&l->refs, 1);
  return l;
}

void wl_lookup_drop(wl_lookup *l) {
  if (!l || atomic_fetch_sub(&l->refs, 1) != 1) return;
  if (l->drop) l->drop(l);
  wl_mem_free(l->words);
  wl_mem_free(l->slots);
  wl_mem_free(l->counts);
  wl_mem_free(l->starts);
  wl_mem_free(l->rows);
  wl_mem_free(l);
}
