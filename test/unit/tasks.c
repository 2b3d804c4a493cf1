/*
** Tasks that can fail (base/tasks.h): which error is reported, what runs before and after it, and
** what a stop does.
*/
#include "../tap.h"
#include "base/clock.h"
#include "base/tasks.h"
#include <string.h>
#include <unistd.h>

enum { N_TASKS = 400, MAX_THREADS = 8 };

typedef struct trial {
  int every; /* task t fails if t % every == every - 1; 0: none does */
  wl_status status;
  bool says; /* with a message */
  bool slow; /* low numbers take longer, so that higher ones fail first */
  atomic_int ran[N_TASKS];
  atomic_int workers[MAX_THREADS]; /* how many tasks a worker is in */
  atomic_int clash;
} trial;

static wl_status run_one(void *arg, int worker, long task, wl_error *err) {
  trial *x = arg;
  if (atomic_fetch_add(&x->workers[worker], 1)) atomic_store(&x->clash, 1);
  atomic_fetch_add(&x->ran[task], 1);
  if (x->slow && task < 8) usleep(1000 * (unsigned)(8 - task));
  atomic_fetch_sub(&x->workers[worker], 1);
  if (!x->every || task % x->every != x->every - 1) return WL_OK;
  return x->says ? wl_fail(err, x->status, "task %ld", task) : x->status;
}

static void reset(trial *x) {
  for (int i = 0; i < N_TASKS; i++) atomic_store(&x->ran[i], 0);
  for (int i = 0; i < MAX_THREADS; i++) atomic_store(&x->workers[i], 0);
  atomic_store(&x->clash, 0);
}

static int n_ran(trial *x, int from, int to) {
  int n = 0;
  for (int i = from; i < to; i++) n += atomic_load(&x->ran[i]);
  return n;
}

static void test_first_error(void) {
  static trial x;
  for (int threads = 1; threads <= MAX_THREADS; threads++)
    for (int every = 0; every <= 6; every += 2) {
      bool ok = true;
      for (int round = 0; round < 20 && ok; round++) {
        wl_error err = {0};
        long n_done = -1, first = every ? every - 1 : N_TASKS;
        char want[32];
        x.every = every;
        x.status = WL_TOOBIG;
        x.says = true;
        x.slow = round % 2;
        reset(&x);
        wl_tasks t = {threads, N_TASKS, run_one, &x, NULL};
        wl_status rc = wl_tasks_run(&t, &n_done, &err);
        snprintf(want, sizeof want, "task %ld", first);
        ok = rc == (every ? WL_TOOBIG : WL_OK) && n_done == first && !atomic_load(&x.clash);
        if (every) ok = ok && err.code == WL_TOOBIG && strcmp(err.text, want) == 0;
        ok = ok && n_ran(&x, 0, (int)first) == first; /* all before it, each once */
        /* no thread starts more than the task it had when the first one failed */
        if (every && threads == 1) ok = ok && n_ran(&x, 0, N_TASKS) == first + 1;
      }
      char name[80];
      snprintf(name, sizeof name, "%d threads, one in %d fails", threads, every);
      CHECK(name, ok);
    }
}

static void test_messages(void) {
  static trial x;
  wl_error err = {.code = WL_ERROR, .text = "old"};
  wl_tasks t = {3, N_TASKS, run_one, &x, NULL};
  x = (trial){.every = 5, .status = WL_NOMEM};
  CHECK("WL_NOMEM gets its message",
        wl_tasks_run(&t, NULL, &err) == WL_NOMEM && err.code == WL_NOMEM && *err.text);
  x = (trial){.every = 5, .status = WL_NOT_TAKEN};
  err = (wl_error){.code = WL_ERROR, .text = "old"};
  CHECK("another status without a message stays without",
        wl_tasks_run(&t, NULL, &err) == WL_NOT_TAKEN && !err.code && !*err.text);
  t.n_tasks = 0;
  long n_done = -1;
  CHECK("no tasks", wl_tasks_run(&t, &n_done, &err) == WL_OK && n_done == 0);
}

/* ---- stops */

typedef struct stopping {
  wl_stop stop;
  double until; /* tasks go on until then, unless they are stopped */
  atomic_int ran;
  atomic_int asked;
} stopping;

static wl_status check(void *arg, wl_error *err) {
  stopping *s = arg;
  return atomic_fetch_add(&s->asked, 1) < 2 ? WL_OK : wl_fail(err, WL_INTERRUPT, "interrupted");
}

/* The caller's task ends once the other one runs, so that the caller waits for it and asks. */
static wl_status long_one(void *arg, int worker, long task, wl_error *err) {
  stopping *s = arg;
  atomic_fetch_add(&s->ran, 1);
  while (wl_clock_ns() < s->until && (worker || atomic_load(&s->ran) < 2) &&
         !wl_stop_is_set(&s->stop))
    usleep(200);
  return worker ? wl_fail(err, WL_ERROR, "task %ld failed", task) : WL_OK;
}

static void test_stop(void) {
  static stopping s;
  wl_error err = {0};
  long n_done = -1;
  s.stop = (wl_stop){.check = check, .arg = &s};
  s.until = wl_clock_ns() + 20e9;
  wl_tasks t = {2, 2, long_one, &s, &s.stop};
  double start = wl_clock_ns();
  wl_status rc = wl_tasks_run(&t, &n_done, &err);
  bool ok = rc == WL_INTERRUPT && strcmp(err.text, "interrupted") == 0 && n_done == 0;
  CHECK("a stop ends the tasks and is the result", ok && wl_clock_ns() - start < 15e9);
  atomic_store(&s.ran, 0);
  rc = wl_tasks_run(&t, &n_done, &err);
  CHECK("once stopped, no task is started", rc == WL_INTERRUPT && atomic_load(&s.ran) == 0);
}

int main(void) {
  test_first_error();
  test_messages();
  test_stop();
  return tap_done();
}
