/*
** The inside of the cache of columns, shared by cache.c (sets), cache_load.c (loading columns into
** them) and cache_lookups.c. All of this is called under the lock, unless noted otherwise.
*/
#ifndef WL_CACHE_IMPL_H
#define WL_CACHE_IMPL_H

#include "column/cache.h"
#include <pthread.h>

struct wl_cached_lookup;

/* What was removed under the lock, to be freed after it. */
typedef struct wl_cache_trash {
  wl_column **columns;
  int n_columns, size_columns;
  wl_column_set *sets;
  struct wl_cached_lookup *lookups;
} wl_cache_trash;

typedef struct wl_cache_state {
  wl_column_set *sets;
  wl_cache_member *members;
  size_t n_bytes;        /* of all sets and lookups */
  size_t n_lookup_bytes; /* of lookups alone */
  wl_i64 clock;
} wl_cache_state;

extern wl_cache_state wl_cache;

void wl_cache_lock(void);
void wl_cache_unlock(void);
void wl_cache_wait(void); /* for some milliseconds, or until wl_cache_wake() */
void wl_cache_wake(void);
void wl_cache_throw(wl_cache_trash *t, wl_column *c);
void wl_cache_empty_trash(wl_cache_trash *t); /* without the lock */

wl_i64 wl_cache_budget(void); /* the budget of the process; 0: no limit */
/* Put a column into a slot, and take one out. */
void wl_cache_fill(wl_column_set *set, int slot, wl_column *c);
void wl_cache_take_out(wl_column_set *set, int slot, wl_cache_trash *t);
/* Frees a set that has no users any more. */
void wl_cache_drop_unused(wl_column_set *set, wl_cache_trash *t);
/* Drops one column that was last used before the time `before`. False: there is none. */
bool wl_cache_evict(wl_i64 before, wl_cache_trash *t);
void wl_cache_note_extra(wl_column_set *set, size_t n_bytes);
void wl_cache_moved(void); /* a new search may find more */

/* Drops the lookups made from a column. */
void wl_cache_forget_lookups(wl_u64 column, wl_cache_trash *t);
void wl_cache_drop_lookups(wl_cache_trash *t);             /* all of them */
void wl_cache_free_lookups(struct wl_cached_lookup *list); /* without the lock */

static inline int wl_set_slot_of(const wl_column_set *set, int col) {
  return col < 0 ? set->n_cols : col;
}

#endif
