/*
** Which column goes when memory is short: of the six least recently used, the least used one.
** One rule for host memory (column/cache.c) and for devices (exec/gpu/devcol.c), which ask again
** until enough bytes are free.
*/
#ifndef WL_EVICT_H
#define WL_EVICT_H

#include "value/types.h"

enum { WL_EVICT_POOL = 6 };

/* The pool, filled one column at a time. */
typedef struct wl_evict {
  int n;
  struct {
    void *item;
    wl_i64 last_use, uses;
  } pool[WL_EVICT_POOL]; /* least recently used first */
} wl_evict;

/* Offers a column that may go. Use counts are those of the cache that is short of memory. */
void wl_evict_offer(wl_evict *e, void *item, wl_i64 last_use, wl_i64 uses);
/* The one to go, or NULL when none was offered. Of equally used ones the older goes. */
void *wl_evict_choice(const wl_evict *e);

#endif
