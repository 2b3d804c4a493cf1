/*
** fork() and the state that belongs to the process. A child has only the thread that forked, so
** a lock that another thread held at that moment would never be free again.
**
** Invariants:
** 1. fork() first takes every lock registered here and releases it on both sides. The child finds
**    whole what these locks guard.
** 2. The locks registered here are never held together, so the order of taking them is free.
*/
#ifndef WL_FORK_H
#define WL_FORK_H

#include <pthread.h>

/* Registers a lock of the process, once, when the library is loaded. */
void wl_fork_lock(pthread_mutex_t *lock);
/* Registers what a child must do before it goes on. The locks are held while it runs. */
void wl_fork_child(void (*fn)(void));

#endif
