/*
** References to lookups, and the plan of how keys become words; see lookup.h.
*/
#include "column/lookup.h"
#include "base/mem.h"
#include <assert.h>
#include <string.h>

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
  wl_mem_free(l->bits);
  wl_mem_free(l);
}

void wl_key_plan_make(wl_key_plan *plan, const wl_reg *regs, const wl_domain *domains, int n) {
  wl_key_part parts[2 * WL_LOOKUP_KEYS];
  wl_key_layout l = {.parts = parts};
  bool ints = n > 0, real = n == 1 && regs[0].type == WL_R_REAL && !regs[0].nullable;
  assert(n <= WL_LOOKUP_KEYS);
  memset(plan->parts, 0, sizeof plan->parts);
  plan->n = n;
  for (int k = 0; k < n; k++) {
    plan->parts[k].null = regs[k].nullable;
    /* for codes of a dictionary, the caller passes the domain of the codes */
    ints &= regs[k].type == WL_R_INT && !(domains[k].mask & ~(WL_M(WL_T_NULL) | WL_M(WL_T_INT)));
    if (ints || real) wl_key_layout_add(&l, k, regs[k], &domains[k], WL_KEY_NULL_LAST);
  }
  ints &= l.n_words == 1 && l.used != 0;
  plan->kind = n == 0 ? WL_KEYS_NONE : ints ? WL_KEYS_INT : real ? WL_KEYS_REAL : WL_KEYS_VALUES;
  if (ints || real) memcpy(plan->parts, parts, (size_t)n * sizeof *parts);
}
