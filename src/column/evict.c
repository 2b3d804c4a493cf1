/*
** The rule of eviction; see evict.h. Evicting simply the least recently used column would be worse:
** a query over many columns that are used only once would evict those that every query needs.
*/
#include "column/evict.h"
#include <stddef.h>

void wl_evict_offer(wl_evict *e, void *item, wl_i64 last_use, wl_i64 uses) {
  if (e->n == WL_EVICT_POOL && last_use >= e->pool[e->n - 1].last_use) return;
  int at = e->n < WL_EVICT_POOL ? e->n++ : e->n - 1;
  for (; at > 0 && e->pool[at - 1].last_use > last_use; at--) e->pool[at] = e->pool[at - 1];
  e->pool[at].item = item;
  e->pool[at].last_use = last_use;
  e->pool[at].uses = uses;
}

void *wl_evict_choice(const wl_evict *e) {
  int best = 0;
  for (int k = 1; k < e->n; k++)
    if (e->pool[k].uses < e->pool[best].uses) best = k;
  return e->n ? e->pool[best].item : NULL;
}
