/*
** Chooses the column to evict when memory is short: of the six least recently used columns, the one
** that was used least often. Host memory (column/cache.c) and devices (exec/gpu/columns/devcol.c) both use
** this rule, and ask again until enough bytes are free.
*/
#ifndef WL_EVICT_H
#define WL_EVICT_H

#include "value/types.h"

enum { WL_EVICT_POOL = 6 };

/* The candidates, offered one at a time. */
typedef struct wl_evict {
  int n;
  struct {
    void *item;
    wl_i64 last_use, uses;
  } pool[WL_EVICT_POOL]; /* least recently used first */
} wl_evict;

/* Offers a column that may be evicted. last_use and uses count uses in the cache that is short of
** memory. */
void wl_evict_offer(wl_evict *e, void *item, wl_i64 last_use, wl_i64 uses);
/* The column to evict, or NULL if none was offered. Among equally used columns, the least recently
** used one. */
void *wl_evict_choice(const wl_evict *e);

#endif
