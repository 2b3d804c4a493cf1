/*
** The host memory of a statement: what its sinks hold, counted in one place. Columns of tables are
** counted by the cache.
**
** Invariants:
** 1. Only the thread that runs the statement uses it.
** 2. A sink may hold more than is left: it finds out and spills, or gives up with WL_NOT_TAKEN.
*/
#ifndef WL_BUDGET_H
#define WL_BUDGET_H

#include "base/status.h"
#include "value/types.h"
#include <stdbool.h>

typedef struct wl_budget {
  wl_i64 most; /* bytes that all sinks may hold together; 0: no limit */
  wl_i64 held;
} wl_budget;

/* Adds n bytes, which may be negative. */
static inline void wl_budget_hold(wl_budget *b, wl_i64 n) {
  b->held += n;
}

/* Bytes that one more sink may hold; 0: no limit. */
static inline wl_i64 wl_budget_left(const wl_budget *b) {
  if (!b->most) return 0;
  return b->held < b->most ? b->most - b->held : 1;
}

/* Whether more is held than allowed. */
static inline bool wl_budget_full(const wl_budget *b) {
  return b->most && b->held > b->most;
}

/* Fails with WL_NOT_TAKEN: `what` need more than the bytes that are left for them. */
static inline wl_status wl_budget_fail(const char *what, wl_i64 left, wl_error *err) {
  return wl_not_taken(err,
                      "%s need more than the %lld bytes that host_budget leaves: raise host_budget",
                      what, left);
}

#endif
