/*
** Whether long work shall end early: an interrupt, or a progress handler that says so. Only the
** thread that called may ask; what it is told all workers see.
**
** Invariants:
** 1. Once set it stays set: status and why are those of the first answer that was not WL_OK.
*/
#ifndef WL_STOP_H
#define WL_STOP_H

#include "base/status.h"
#include <stdatomic.h>

typedef struct wl_stop {
  wl_status (*check)(void *arg, wl_error *err); /* NULL: nothing stops it */
  void *arg;
  atomic_int set;
  wl_status status;
  wl_error why;
} wl_stop;

/* On the calling thread only. */
static inline wl_status wl_stop_ask(wl_stop *s, wl_error *err) {
  if (!s->status && s->check) s->status = s->check(s->arg, &s->why);
  if (!s->status) return WL_OK;
  atomic_store(&s->set, 1);
  *err = s->why;
  return s->status;
}

/* rc, or what stopped the work behind the back of those who did it. */
static inline wl_status wl_stop_or(const wl_stop *s, wl_status rc, wl_error *err) {
  if (rc || !s->status) return rc;
  *err = s->why;
  return s->status;
}

static inline bool wl_stop_is_set(wl_stop *s) {
  return atomic_load_explicit(&s->set, memory_order_relaxed) != 0;
}

#endif
