/*
** fork() and the state that belongs to the process. A child has only the thread that forked, so
** a lock that another thread held at that moment would never be free again.
**
** Invariants:
** 1. fork() first takes every lock registered here, and releases it in the parent and in the child.
**    So the data that these locks guard is consistent in the child.
** 2. No thread holds two of these locks at once, so they can be taken in any order.
*/
#ifndef WL_FORK_H
#define WL_FORK_H

#include <pthread.h>

/* Registers a lock of the process. Called once for each, when the library is loaded. */
void wl_fork_lock(pthread_mutex_t *lock);
/* Registers a function that the child calls before fork() returns. It runs with the locks held. */
void wl_fork_child(void (*fn)(void));

#endif
