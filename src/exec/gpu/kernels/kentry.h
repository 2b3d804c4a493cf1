/*
** Entries of several words in hash tables with open addressing, which threads of all blocks add to:
** records of groups by wide keys (kgroup.h), sets (kset.h) and coders (kcode.h). Included by them.
**
** The first word is a tag: free, busy while the thread that took the entry writes the rest, or
** anything else from then on. Entries are never freed during a launch.
**
** Ordering:
** 1. The thread that took an entry writes it and publishes the tag with simt_store_release_u64().
**    It waits for nobody before that, so a thread that finds the entry busy may wait for it, also
**    in the same warp.
** 2. Whatever the tag published may be read by plain loads only after an acquire load has returned
**    that tag. A compare-and-swap that fails returns the tag as well, but it orders nothing: a
**    plain load behind it may find old bytes in the cache of the processor, which is not coherent.
*/
#ifndef WL_KENTRY_H
#define WL_KENTRY_H

#include "exec/gpu/kernels/simt.h"

enum { KE_FREE = 0, KE_BUSY = 1 };

/* Takes the entry at p if it is free, and returns KE_FREE: the caller writes and publishes it. Else
** waits until it is written, and returns its tag. What that published can be read. tag: what an
** acquire load of p has returned. */
WL_FN wl_u64 ke_claim(wl_u64 *p, wl_u64 tag) {
  if (tag == KE_FREE) {
    if (simt_atomic_cas_u64(p, KE_FREE, KE_BUSY) == KE_FREE) return KE_FREE;
    tag = simt_load_acquire_u64(p);
  }
  while (tag == KE_BUSY) {
    simt_spin();
    tag = simt_load_acquire_u64(p);
  }
  return tag;
}

#endif
