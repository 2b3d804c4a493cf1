/*
** Finds the record of a statement or a connection by its address, without a lock.
**
** Invariants:
** 1. The table has a fixed size. If there is no room, a handle is not entered, and SQLite alone
**    serves it.
** 2. Only the thread that creates or destroys a handle enters or removes it. Other threads may look
**    up other handles meanwhile.
*/
#ifndef WL_HANDLES_H
#define WL_HANDLES_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WL_HANDLE_BITS = 13, WL_HANDLE_WAYS = 4 };

typedef struct wl_slot {
  _Atomic(void *) key; /* the handle, NULL, or wl_slot_taken */
  _Atomic(void *) record;
} wl_slot;

typedef struct wl_handles {
  wl_slot slots[1 << WL_HANDLE_BITS][WL_HANDLE_WAYS];
} wl_handles;

extern __attribute__((visibility("hidden"))) wl_handles wl_statements, wl_connections;

static inline wl_slot *wl_handles_bucket(wl_handles *t, const void *key) {
  return t->slots[((uint64_t)(uintptr_t)key >> 4) * 0x9E3779B97F4A7C15u >> (64 - WL_HANDLE_BITS)];
}

/* The record of a handle, or NULL. */
static inline void *wl_handles_find(wl_handles *t, const void *key) {
  wl_slot *s = wl_handles_bucket(t, key);
  for (int i = 0; i < WL_HANDLE_WAYS; i++)
    if (atomic_load_explicit(&s[i].key, memory_order_acquire) == key)
      return key ? atomic_load_explicit(&s[i].record, memory_order_relaxed) : NULL;
  return NULL;
}

/* Enters a handle. False: there is no room. */
bool wl_handles_set(wl_handles *t, void *key, void *record);
/* Removes a handle and returns its record, or NULL. */
void *wl_handles_remove(wl_handles *t, const void *key);

/* The record of all of libwarplite's own statements. It never runs natively. */
extern __attribute__((visibility("hidden"))) struct wl_statement wl_own_mark;

#endif
