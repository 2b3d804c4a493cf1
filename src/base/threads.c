/*
** The thread pool; see threads.h. Jobs are on their callers' stacks, in a list under one lock. Idle
** helpers join the first job that has tasks left and needs more workers.
**
** A statement is many short jobs, and waking a sleeping thread can take longer than one of them. So
** a thread that has nothing to do first polls for a while, if there is a core for each thread.
*/
#include "base/threads.h"
#include "base/fork.h"
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 256 };

typedef struct pool_job {
  struct pool_job *next;
  wl_task fn;
  void *arg;
  long n_tasks;
  atomic_long at;
  int n_joined; /* workers that have joined so far, including the caller, which is worker 0 */
  int max_join;
  atomic_int n_busy; /* helpers inside the job. Changes under the lock */
  bool sleeps;       /* the caller waits for `done` */
} pool_job;

/* Many threads take the lock at the same time, for a few instructions. */
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
#else
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#endif
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER; /* helpers: there may be work */
static pthread_cond_t done = PTHREAD_COND_INITIALIZER; /* callers: a helper left a job */
static pool_job *jobs;
static atomic_int n_jobs;    /* jobs so far */
static atomic_int n_polling; /* helpers that poll */
static int n_helpers, n_cores;

/* A forked child has no helpers, and no thread waits for the conditions. */
static void forget_helpers(void) {
  wake = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  n_helpers = 0;
  jobs = NULL;
  atomic_store(&n_polling, 0);
}

__attribute__((constructor)) static void guard(void) {
  wl_fork_lock(&lock);
  wl_fork_child(forget_helpers);
}

int wl_threads_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (int)n : 1;
}

int wl_threads_awake(void) {
  return atomic_load(&n_polling);
}

/* ---- polling */

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Whether each thread can have a core. Called under the lock. */
static bool may_poll(void) {
  return n_helpers < n_cores;
}

/* Waits until the word has another value. Returns false if that takes too long. The thread that
** will change it may be waiting for this core, if other processes have the others. */
static bool poll_while(const atomic_int *word, int value) {
  enum { POLL_NS = 60000, ROUND = 16 };
  for (long long end = now() + POLL_NS; now() < end; sched_yield())
    for (int i = 0; i < ROUND; i++) {
      if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
      relax();
    }
  return false;
}

/* ---- jobs */

static void work(pool_job *j, int worker) {
  for (;;) {
    long t = atomic_fetch_add(&j->at, 1);
    if (t >= j->n_tasks) return;
    j->fn(j->arg, worker, t);
  }
}

/* Finds a job that has tasks left and needs more workers. Called under the lock. */
static pool_job *open_job(void) {
  for (pool_job *j = jobs; j; j = j->next)
    if (j->n_joined < j->max_join && atomic_load(&j->at) < j->n_tasks) return j;
  return NULL;
}

static void *helper(void *unused) {
  (void)unused;
  bool polled = true; /* since the last job */
  pthread_mutex_lock(&lock);
  for (;;) {
    pool_job *j = open_job();
    if (!j && !polled && may_poll()) {
      int seen = atomic_load(&n_jobs);
      atomic_fetch_add(&n_polling, 1);
      pthread_mutex_unlock(&lock);
      poll_while(&n_jobs, seen);
      atomic_fetch_sub(&n_polling, 1);
      polled = true;
      pthread_mutex_lock(&lock);
      continue;
    }
    if (!j) {
      pthread_cond_wait(&wake, &lock);
      continue;
    }
    int worker = j->n_joined++;
    atomic_fetch_add(&j->n_busy, 1);
    pthread_mutex_unlock(&lock);
    work(j, worker);
    polled = false;
    pthread_mutex_lock(&lock);
    if (j->sleeps && atomic_load(&j->n_busy) == 1) pthread_cond_broadcast(&done);
    atomic_fetch_sub(&j->n_busy, 1); /* the caller may return now */
  }
  return NULL;
}

/* Starts helpers until there are n. Called under the lock. Helpers take no signals: the handlers of
** the application run on its own threads, as without warplite. */
static void ensure(int n) {
  sigset_t all, before;
  if (!n_cores) n_cores = wl_threads_cores();
  if (n_helpers >= n) return;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (n_helpers < n && n_helpers < MAX_THREADS) {
    pthread_t t;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int rc = pthread_create(&t, &attr, helper, NULL);
    pthread_attr_destroy(&attr);
    if (rc) break;
    n_helpers++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Waits until a helper leaves a job, at most some milliseconds. Called under the lock. */
static void wait_a_bit(void) {
  enum { WAIT_NS = 5000000 };
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_nsec += WAIT_NS;
  if (t.tv_nsec >= 1000000000) {
    t.tv_nsec -= 1000000000;
    t.tv_sec++;
  }
  pthread_cond_timedwait(&done, &lock, &t);
}

void wl_threads_run(int n_threads, long n_tasks, wl_task fn, void *arg) {
  wl_threads_watch(n_threads, n_tasks, fn, arg, NULL);
}

void wl_threads_watch(int n_threads, long n_tasks, wl_task fn, void *arg,
                      void (*watch)(void *arg)) {
  if (n_threads > n_tasks) n_threads = (int)n_tasks;
  pool_job j = {.fn = fn, .arg = arg, .n_tasks = n_tasks, .n_joined = 1, .max_join = n_threads};
  atomic_init(&j.at, 0);
  if (n_threads <= 1) {
    work(&j, 0);
    return;
  }
  pthread_mutex_lock(&lock);
  ensure(n_threads - 1);
  j.next = jobs;
  jobs = &j;
  atomic_fetch_add(&n_jobs, 1);
  bool polls = may_poll();
  pthread_cond_broadcast(&wake);
  pthread_mutex_unlock(&lock);
  work(&j, 0);
  pthread_mutex_lock(&lock);
  for (pool_job **at = &jobs; *at; at = &(*at)->next) {
    if (*at == &j) {
      *at = j.next;
      break;
    }
  }
  if (j.n_busy && polls) {
    pthread_mutex_unlock(&lock);
    for (int n; (n = atomic_load(&j.n_busy)) && poll_while(&j.n_busy, n);) {
    }
    pthread_mutex_lock(&lock);
  }
  j.sleeps = true;
  while (j.n_busy) {
    if (!watch) {
      pthread_cond_wait(&done, &lock);
      continue;
    }
    wait_a_bit();
    pthread_mutex_unlock(&lock);
    watch(arg);
    pthread_mutex_lock(&lock);
  }
  pthread_mutex_unlock(&lock);
}
