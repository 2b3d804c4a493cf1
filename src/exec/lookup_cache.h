/*
** Lookups kept for later statements: one that was built from columns that are still the same, by
** the same program, is found again, by whatever connection. The cache of columns has them
** (column/cache.h), within the same budget; this says what they are found by.
**
** Invariants:
** 1. A key tells everything that a lookup depends on: the columns by their ids, which are never
**    given twice in a process, the program with its constants and maps, the lookups it probes, the
**    key plan.
** 2. With the setting keep=0 query.c neither looks for a lookup nor adds one.
*/
#ifndef WL_LOOKUP_CACHE_H
#define WL_LOOKUP_CACHE_H

#include "column/cache.h"
#include "exec/build.h"

/* The key of what a build would make. */
wl_lookup_key wl_lookup_cache_key(const wl_build_in *in);
/* The lookup of that key, held for the caller, or NULL. */
wl_lookup *wl_lookup_cache_find(wl_lookup_key key);
/* Keeps what a build has made. */
void wl_lookup_cache_add(wl_lookup_key key, const wl_build_in *in, wl_lookup *l, const char *name);

#endif
