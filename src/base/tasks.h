/*
** Tasks that can fail: runs them on several threads and reports the first error.
**
** Invariants:
** 1. The error reported is that of the failed task with the smallest number, so it does not depend
**    on the number of threads or on their speed. Every task before that one has run and succeeded.
** 2. After an error, tasks with larger numbers are not started.
** 3. Only the calling thread asks `stop`: before each of its tasks, and while it waits. What it is
**    told ends the tasks early and is the result, whatever else went wrong.
*/
#ifndef WL_TASKS_H
#define WL_TASKS_H

#include "base/stop.h"

/* One task. worker: a number below n_threads, which one thread at a time has. */
typedef wl_status (*wl_task_fn)(void *arg, int worker, long task, wl_error *err);

typedef struct wl_tasks {
  int n_threads;
  long n_tasks;
  wl_task_fn run;
  void *arg;
  wl_stop *stop; /* may be NULL */
} wl_tasks;

/* Returns after every task that was started has returned. WL_NOMEM may come without a message and
** gets one. *n_done (which may be NULL): how many tasks there are before the first that failed; all
** without an error, 0 if the tasks were stopped. */
wl_status wl_tasks_run(const wl_tasks *t, long *n_done, wl_error *err) WL_MUST;

#endif
