/*
** Keeps lookups for later statements. A lookup that the same program built from the same columns is
** found again, by any connection. The column cache owns the lookups (column/cache.h), within the
** same budget. This module makes their keys.
**
** Invariants:
** 1. A key covers everything that a lookup depends on: the ids of the columns, which are never
**    reused in a process; the program with its constants and maps; the lookups that it probes; the
**    key plan.
** 2. With the setting keep=0, query.c neither searches for a lookup nor adds one.
*/
#ifndef WL_LOOKUP_CACHE_H
#define WL_LOOKUP_CACHE_H

#include "column/cache.h"
#include "exec/sink/lookup.h"

/* The key of the lookup that this build would make. */
wl_lookup_key wl_lookup_cache_key(const wl_build_in *in);
/* The lookup with that key, or NULL. The caller holds a reference to it. */
wl_lookup *wl_lookup_cache_find(wl_lookup_key key);
/* Adds a lookup that was built. */
void wl_lookup_cache_add(wl_lookup_key key, const wl_build_in *in, wl_lookup *l, const char *name);

#endif
