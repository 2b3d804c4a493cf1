/*
** Stops long work early, because of an interrupt or a progress handler. Only the calling thread may
** call check. All workers see its result.
**
** Invariants:
** 1. Once set, it stays set: status and why come from the first check that was not WL_OK.
*/
#ifndef WL_STOP_H
#define WL_STOP_H

#include "base/status.h"
#include <stdatomic.h>

typedef struct wl_stop {
  wl_status (*check)(void *arg, wl_error *err); /* NULL: the work is never stopped */
  void *arg;
  atomic_int set;
  wl_status status;
  wl_error why;
} wl_stop;

/* Calls check, unless the work is already stopped. Only the calling thread may use this. */
static inline wl_status wl_stop_ask(wl_stop *s, wl_error *err) {
  if (!s->status && s->check) s->status = s->check(s->arg, &s->why);
  if (!s->status) return WL_OK;
  atomic_store(&s->set, 1);
  *err = s->why;
  return s->status;
}

/* Returns rc if it is an error. Else returns the reason why the work was stopped, if it was. */
static inline wl_status wl_stop_or(const wl_stop *s, wl_status rc, wl_error *err) {
  if (rc || !s->status) return rc;
  *err = s->why;
  return s->status;
}

static inline bool wl_stop_is_set(wl_stop *s) {
  return atomic_load_explicit(&s->set, memory_order_relaxed) != 0;
}

/* Whether work must stop. For loops inside tasks: worker 0 is the calling thread and asks, the
** others look. s may be NULL. */
static inline bool wl_stop_now(wl_stop *s, int worker) {
  wl_error ignored;
  if (!s) return false;
  return worker == 0 ? wl_stop_ask(s, &ignored) != WL_OK : wl_stop_is_set(s);
}

/* For loops of the calling thread: asks at every 4096th row. s may be NULL. */
static inline wl_status wl_stop_at_row(wl_stop *s, long long row, wl_error *err) {
  return s && (row & 4095) == 4095 ? wl_stop_ask(s, err) : WL_OK;
}

#endif
