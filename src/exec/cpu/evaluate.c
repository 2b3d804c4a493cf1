/*
** Compile-time evaluation; see evaluate.h. It runs on the calling thread.
*/
#include "exec/cpu/evaluate.h"
#include "exec/cpu/exec.h"

static wl_i64 most_rows(const wl_evaluation *e) {
  wl_i64 most = 1;
  for (int k = 0; k < e->n_ranges; k++)
    if (e->ranges[k].n > most) most = e->ranges[k].n;
  return most;
}

wl_status wl_cpu_evaluate(const wl_evaluation *e, wl_evaluated *out, wl_error *err) {
  wl_exec *x = NULL;
  wl_batch **end = &out->batches;
  wl_stop stop = {.check = e->check, .arg = e->check_arg};
  wl_status rc = wl_program_pool(e->program, most_rows(e), &out->pool, err);
  if (!rc) rc = wl_exec_open(e->program, 0, e->cols, NULL, e->max_text, &x, err);
  if (!rc) wl_exec_stop_by(x, &stop, true);
  for (int k = 0; k < e->n_ranges && !rc; k++) {
    const wl_row_range *r = &e->ranges[k];
    wl_batch *b;
    rc = wl_batch_take(out->pool, &b, err);
    if (rc) break;
    *end = b;
    end = &b->next;
    rc = wl_exec_run(x, r->tablet, r->first, r->n, b, -1, NULL, err);
  }
  wl_exec_close(x);
  return wl_stop_or(&stop, rc, err);
}
