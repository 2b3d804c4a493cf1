/*
** A pool of threads for the whole process. A job is a number of tasks. The caller works on them
** too, so a job finishes even if no thread can be started.
**
** Invariants:
** 1. wl_threads_run returns after every task has returned.
** 2. Tasks are started in increasing order.
** 3. worker is a number below n_threads. One thread at a time has it.
*/
#ifndef WL_THREADS_H
#define WL_THREADS_H

typedef void (*wl_task)(void *arg, int worker, long task);

int wl_threads_cores(void); /* number of cores that this process may use */
int wl_threads_awake(void); /* number of threads that wait for a job and need not be woken */
void wl_threads_run(int n_threads, long n_tasks, wl_task fn, void *arg);
/* The same. While the caller (worker 0) waits for the others, it calls watch every few
** milliseconds. */
void wl_threads_watch(int n_threads, long n_tasks, wl_task fn, void *arg, void (*watch)(void *arg));

#endif
