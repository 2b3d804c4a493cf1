/*
** References to lookups, and the plan of how keys become words; see lookup.h.
*/
#include "column/lookup.h"
#include "base/mem.h"
#include <assert.h>

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

/* Plans integer keys, if their ranges together fit into one word. */
static bool plan_ints(wl_key_plan *plan, const wl_reg *regs, const wl_domain *domains, int n) {
  unsigned __int128 below = 1;
  for (int k = n - 1; k >= 0; k--) {
    if (regs[k].type != WL_R_INT) return false;
    /* for codes of a dictionary, the caller passes the domain of the codes */
    if (domains[k].mask & ~(WL_M(WL_T_NULL) | WL_M(WL_T_INT))) return false;
    bool has_values = (domains[k].mask & WL_M(WL_T_INT)) && domains[k].lo <= domains[k].hi;
    plan->lo[k] = has_values ? domains[k].lo : 0;
    plan->hi[k] = has_values ? domains[k].hi : -1;
    plan->below[k] = (wl_u64)below;
    __int128 span = (__int128)plan->hi[k] - plan->lo[k] + 1 + plan->null_equal[k];
    below *= (unsigned __int128)(span > 0 ? span : 1);
    if (below >= (unsigned __int128)1 << 63) return false;
  }
  return true;
}

void wl_key_plan_make(wl_key_plan *plan, const wl_reg *regs, const wl_domain *domains, int n) {
  assert(n <= WL_LOOKUP_KEYS);
  plan->n = n;
  plan->kind = WL_KEYS_VALUES;
  if (n == 0)
    plan->kind = WL_KEYS_NONE;
  else if (plan_ints(plan, regs, domains, n))
    plan->kind = WL_KEYS_INT;
  else if (n == 1 && regs[0].type == WL_R_REAL && !plan->null_equal[0])
    plan->kind = WL_KEYS_REAL;
}
