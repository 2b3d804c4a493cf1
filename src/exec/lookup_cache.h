/*
** Lookups kept for later: one that was built from columns that are still the same, by the same
** program, is found again. They belong to the connection, as the columns do.
**
** Invariants:
** 1. A key tells everything a lookup depends on: the columns by their numbers, which are never
**    given twice, the program with its constants and maps, the lookups it probes, the key plan.
** 2. All of them together take at most a quarter of host_budget; the one not used for longest goes.
** 3. With the setting keep=0 there are none: query.c neither looks for one nor adds one.
*/
#ifndef WL_KEPT_H
#define WL_KEPT_H

#include "exec/build.h"

typedef struct wl_kept wl_kept;

typedef struct wl_kept_key {
  wl_u64 high, low;
} wl_kept_key;

/* The key of what a build would make. */
wl_kept_key wl_kept_key_of(const wl_build_in *in);

/* The lookup of that key, held for the caller, or NULL. */
wl_lookup *wl_kept_find(wl_kept *k, wl_kept_key key);
/* Keeps one. budget: host_budget, or 0. */
void wl_kept_put(wl_kept **k, wl_kept_key key, wl_lookup *l, const char *name, wl_i64 budget);
void wl_kept_close(wl_kept *k); /* NULL is fine */

/* For the listing of the cache: entry i, or false past the last. */
bool wl_kept_entry(const wl_kept *k, int i, const char **name, const wl_lookup **l, wl_i64 *uses);
size_t wl_kept_bytes(const wl_kept *k);

#endif
