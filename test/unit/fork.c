/*
** The thread pool and the kept blocks of memory in children of a process whose threads use both
** at the moment of the fork.
**
** Invariant: a child that hangs is ended by its alarm, which counts as a failure.
*/
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tap.h"
#include "base/mem.h"
#include "base/threads.h"

enum { N_THREADS = 3, N_TASKS = 200, N_FORKS = TEST_SANITIZED ? 50 : 300 };

static atomic_int stop;

static void add(void *arg, int worker, long task) {
  (void)worker;
  atomic_fetch_add((atomic_long *)arg, task);
}

/* Uses the pool and a large block once; whether the sum is right. */
static bool use_both(void) {
  atomic_long sum;
  atomic_init(&sum, 0);
  wl_threads_run(4, N_TASKS, add, &sum);
  char *block = wl_mem_alloc((size_t)5 << 20);
  if (block) block[0] = 1;
  wl_mem_free(block);
  return block && atomic_load(&sum) == (long)N_TASKS * (N_TASKS - 1) / 2;
}

static void *use_them(void *unused) {
  while (!atomic_load(&stop) && use_both()) continue;
  return atomic_load(&stop) ? NULL : unused;
}

static int child(void) {
  alarm(TEST_SANITIZED ? 60 : 20);
  for (int i = 0; i < 5; i++)
    if (!use_both()) return 1;
  return 0;
}

int main(void) {
  pthread_t threads[N_THREADS];
  int status = 0, n = 0;
  bool right = true;
  for (int i = 0; i < N_THREADS; i++)
    if (pthread_create(&threads[i], NULL, use_them, threads)) return 1;
  for (; n < N_FORKS && status == 0; n++) {
    pid_t pid = fork();
    if (pid == 0) _exit(child());
    if (pid < 0 || waitpid(pid, &status, 0) != pid) status = -1;
  }
  if (status)
    tap_bad("children of a busy process", "child %d: status %d", n, status);
  else
    tap_ok("children of a busy process");
  atomic_store(&stop, 1);
  for (int i = 0; i < N_THREADS; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    right = right && !failed;
  }
  CHECK("the parent goes on", right && use_both());
  return tap_done();
}
