/*
** A pool of threads for the whole process. A job is a count of tasks; the caller works on
** them too, so a pool that cannot start a thread still finishes.
**
** Invariants:
** 1. wl_threads_run returns after every task has returned.
** 2. Tasks are handed out in increasing order.
** 3. worker is a number below the n_threads asked for, held by one thread at a time.
*/
#ifndef WL_THREADS_H
#define WL_THREADS_H

typedef void (*wl_task)(void *arg, int worker, long task);

int wl_threads_cores(void); /* how many this process may use */
void wl_threads_run(int n_threads, long n_tasks, wl_task fn, void *arg);
/* The same; while the caller (worker 0) only waits for the others it calls watch every few ms. */
void wl_threads_watch(int n_threads, long n_tasks, wl_task fn, void *arg, void (*watch)(void *arg));

#endif
