/*
** The runner's ORDER BY by row numbers (exec/cpu/sorter.h): the first pipeline gathers sort keys.
** Here they are sorted, and batches are made from the rows in their new order.
*/
#include "exec/run_impl.h"
#include "base/mem.h"
#include "base/tasks.h"
#include <assert.h>
#include <string.h>

enum { WAVE = 64 }; /* most batches of a wave */

wl_status wl_run_sort_open(wl_run *r, wl_error *err) {
  if (r->p->sink == WL_SINK_GROUPS || r->config.device || r->p->n_joins || r->p->checks_cut)
    return WL_OK;
  wl_i64 most = wl_cut_needed(r->to_skip, r->to_give);
  if (r->config.host_left && wl_sorter_bytes(r->p, r->snap.n_rows, most) > r->config.host_left)
    return wl_run_no_room(r, "the rows to sort", err);
  wl_status rc = wl_sorter_open(r->p, r->snap.n_rows, most, r->config.threads, &r->sorter, err);
  if (rc || !r->sorter) return rc;
  r->collects = false;
  r->givers = wl_mem_zalloc((size_t)r->config.threads * sizeof *r->givers);
  return r->givers ? WL_OK : wl_nomem(err);
}

void wl_run_sort_close(wl_run *r) {
  for (int i = 0; r->givers && i < r->config.threads; i++) wl_exec_close(r->givers[i]);
  wl_mem_free(r->givers);
  wl_sorter_close(r->sorter);
}

typedef struct wave {
  wl_run *r;
  wl_batch *batches[WAVE];
} sort_wave;

static wl_status open_giver(wl_run *r, wl_exec **out, wl_error *err) {
  return wl_exec_open_part(r->p, r->snap.cols, NULL, WL_EXEC_ROWS, r->config.max_text, out, err);
}

static wl_status rows_task(void *arg, int worker, long task, wl_error *err) {
  sort_wave *w = arg;
  wl_run *r = w->r;
  wl_i64 room = wl_pool_rows(r->pool), at = r->at_sorted + room * task,
         n = r->n_sorted - at < room ? r->n_sorted - at : room;
  wl_status rc = wl_batch_take(r->pool, &w->batches[task], err);
  if (!rc && !r->givers[worker]) rc = open_giver(r, &r->givers[worker], err);
  if (!rc) wl_exec_stop_by(r->givers[worker], &r->stop, worker == 0);
  if (!rc) rc = wl_exec_run_rows(r->givers[worker], r->sorted + at, n, w->batches[task], err);
  return rc;
}

/* Runs n tasks and pushes the batches of those before the first that failed. */
static wl_status run_wave(wl_run *r, int n, wl_error *err) {
  sort_wave w = {.r = r};
  wl_tasks tasks = {r->config.threads, n, rows_task, &w, &r->stop};
  long n_done;
  wl_status rc = wl_tasks_run(&tasks, &n_done, err);
  for (int i = 0; i < n; i++) {
    if (i < n_done && w.batches[i])
      wl_run_push(r, w.batches[i]);
    else
      wl_batch_give(w.batches[i]);
  }
  return rc;
}

wl_status wl_run_sort(wl_run *r, wl_error *err) {
  assert(r->sorter && !r->sorted);
  wl_status rc = wl_sorter_finish(r->sorter, r->config.threads, r->config.check,
                                  r->config.check_arg, &r->sorted, &r->n_sorted, err);
  /* Rows that OFFSET skips need not be made. */
  r->at_sorted = r->to_skip < r->n_sorted ? r->to_skip : r->n_sorted;
  r->to_skip -= r->at_sorted;
  if (r->to_give >= 0 && r->n_sorted - r->at_sorted > r->to_give)
    r->n_sorted = r->at_sorted + r->to_give;
  return rc;
}

wl_status wl_run_sorted_rows(wl_run *r, bool *done, wl_error *err) {
  wl_i64 room = wl_pool_rows(r->pool), left = r->n_sorted - r->at_sorted;
  wl_status rc = wl_stop_ask(&r->stop, err);
  if (!rc && left > 0) {
    /* Two batches per thread: enough to share the work, few enough to stay in the cache. */
    wl_i64 n = (left + room - 1) / room, most = 2LL * r->config.threads;
    if (n > most) n = most;
    if (n > WAVE) n = WAVE;
    rc = run_wave(r, (int)n, err);
    r->at_sorted += n * room < left ? n * room : left;
  }
  *done = !rc && r->at_sorted >= r->n_sorted;
  return rc;
}
