/*
** Tasks that can fail; see tasks.h.
*/
#include "base/tasks.h"
#include "base/threads.h"
#include <assert.h>
#include <pthread.h>

typedef struct task_run {
  const wl_tasks *tasks;
  atomic_long first_failed; /* the smallest number of a failed task; n_tasks: none */
  pthread_mutex_t lock;     /* for what follows, and to lower first_failed */
  wl_status status;         /* of that task */
  wl_error error;
} task_run;

static void note_failure(task_run *r, long task, wl_status status, const wl_error *error) {
  pthread_mutex_lock(&r->lock);
  if (task < atomic_load(&r->first_failed)) {
    atomic_store(&r->first_failed, task);
    r->status = status;
    r->error = *error;
  }
  pthread_mutex_unlock(&r->lock);
}

static void one_task(void *arg, int worker, long task) {
  task_run *r = arg;
  const wl_tasks *t = r->tasks;
  wl_error error;
  error.code = WL_OK;
  error.text[0] = 0;
  if (task > atomic_load(&r->first_failed) || wl_stop_now(t->stop, worker)) return;
  wl_status rc = t->run(t->arg, worker, task, &error);
  if (rc == WL_NOMEM && !error.code) rc = wl_nomem(&error);
  if (rc) note_failure(r, task, rc, &error);
}

static void watch(void *arg) {
  wl_stop_now(((task_run *)arg)->tasks->stop, 0); /* it remembers the answer */
}

wl_status wl_tasks_run(const wl_tasks *t, long *n_done, wl_error *err) {
  task_run r = {.tasks = t, .lock = PTHREAD_MUTEX_INITIALIZER};
  atomic_init(&r.first_failed, t->n_tasks);
  wl_threads_watch(t->n_threads, t->n_tasks, one_task, &r, t->stop ? watch : NULL);
  pthread_mutex_destroy(&r.lock);
  long done = atomic_load(&r.first_failed);
  assert((done == t->n_tasks) == (r.status == WL_OK));
  bool stopped = t->stop && t->stop->status;
  if (n_done) *n_done = stopped ? 0 : done;
  if (stopped) return wl_stop_or(t->stop, WL_OK, err);
  if (r.status) *err = r.error;
  return r.status;
}
