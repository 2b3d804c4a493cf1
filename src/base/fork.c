/*
** Locks and hooks around fork(); see fork.h.
*/
#include "base/fork.h"
#include <assert.h>

enum { MOST = 16 };

static pthread_mutex_t *locks[MOST];
static int n_locks;
static void (*hooks[MOST])(void);
static int n_hooks;

static void before(void) {
  for (int i = 0; i < n_locks; i++) pthread_mutex_lock(locks[i]);
}

static void in_parent(void) {
  for (int i = n_locks; i-- > 0;) pthread_mutex_unlock(locks[i]);
}

static void in_child(void) {
  for (int i = 0; i < n_hooks; i++) hooks[i]();
  in_parent();
}

/* Constructors run one after the other, so the lists need no lock. */
static void start(void) {
  if (n_locks + n_hooks == 0) pthread_atfork(before, in_parent, in_child);
}

void wl_fork_lock(pthread_mutex_t *lock) {
  assert(n_locks < MOST);
  start();
  locks[n_locks++] = lock;
}

void wl_fork_child(void (*fn)(void)) {
  assert(n_hooks < MOST);
  start();
  hooks[n_hooks++] = fn;
}
