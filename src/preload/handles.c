/*
** See handles.h.
*/
#include "preload/handles.h"
#include <stddef.h>

wl_handles wl_statements, wl_connections;

static char slot_taken; /* the key of a slot that is being filled */

bool wl_handles_set(wl_handles *t, void *key, void *record) {
  wl_slot *s = wl_handles_bucket(t, key);
  for (int i = 0; i < WL_HANDLE_WAYS; i++) {
    void *none = NULL;
    if (!atomic_compare_exchange_strong(&s[i].key, &none, &slot_taken)) continue;
    atomic_store_explicit(&s[i].record, record, memory_order_relaxed);
    atomic_store_explicit(&s[i].key, key, memory_order_release);
    return true;
  }
  return false;
}

void *wl_handles_remove(wl_handles *t, const void *key) {
  wl_slot *s = wl_handles_bucket(t, key);
  for (int i = 0; i < WL_HANDLE_WAYS; i++) {
    if (atomic_load_explicit(&s[i].key, memory_order_acquire) != key) continue;
    void *record = atomic_load_explicit(&s[i].record, memory_order_relaxed);
    atomic_store_explicit(&s[i].key, NULL, memory_order_release);
    return record;
  }
  return NULL;
}
