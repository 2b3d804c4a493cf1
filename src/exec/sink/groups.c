/*
** The sink of groups; see groups.h.
*/
#include "exec/sink/groups.h"
#include "base/mem.h"

static wl_status begin(wl_sink *sink, wl_row_piece *q, int worker, wl_exec_io *io, bool *full,
                       wl_error *err) {
  wl_groups_sink *s = (wl_groups_sink *)sink;
  wl_status rc = WL_OK;
  if (!s->groups[worker]) rc = wl_groups_open(s->grouping, &s->groups[worker], err);
  io->groups = s->groups[worker];
  return rc;
}

wl_status wl_groups_sink_full(const wl_groups_sink *s, wl_error *err) {
  return wl_not_taken(err,
                      "the groups need more than the %lld bytes that host_budget leaves and more "
                      "than TMPDIR has room for: raise host_budget",
                      s->left);
}

static wl_status finish(wl_sink *sink, wl_error *err) {
  wl_groups_sink *s = (wl_groups_sink *)sink;
  wl_finishing f = {.plan = s->grouping,
                    .workers = s->groups,
                    .n_workers = s->threads,
                    .in_order = s->in_order,
                    .cols = s->cols,
                    .max_text = s->max_text,
                    .stop = s->stop};
  wl_status rc = wl_groups_finish(&f, &s->finished, err);
  sink->n_left = s->finished.n;
  sink->n_held = s->finished.n_bytes;
  wl_budget_hold(s->budget, s->finished.n_bytes);
  return rc == WL_NOT_TAKEN ? wl_groups_sink_full(s, err) : rc;
}

static void clear(wl_sink *sink) {
  wl_groups_sink *s = (wl_groups_sink *)sink;
  wl_budget_hold(s->budget, -s->finished.n_bytes);
  wl_finished_close(&s->finished);
  for (int i = 0; s->groups && i < s->threads; i++) {
    wl_groups_close(s->groups[i]);
    s->groups[i] = NULL;
  }
}

static void close_groups(wl_sink *sink) {
  wl_groups_sink *s = (wl_groups_sink *)sink;
  clear(sink);
  wl_mem_free(s->groups);
  wl_grouping_close(s->grouping);
}

wl_status wl_groups_sink_open(wl_groups_sink *s, const wl_program *p, wl_column **cols,
                              wl_i64 n_rows, int threads, wl_budget *budget, wl_u64 max_text,
                              wl_stop *stop, bool for_device, wl_error *err) {
  *s = (wl_groups_sink){
      .sink = {.begin = begin, .finish = finish, .clear = clear, .close = close_groups},
      .cols = cols,
      .threads = threads,
      .budget = budget,
      .left = wl_budget_left(budget),
      .max_text = max_text,
      .in_order = p->in_order,
      .stop = stop};
  s->groups = wl_mem_zalloc((size_t)threads * sizeof *s->groups);
  if (!s->groups) return wl_nomem(err);
  return wl_grouping_open(p, n_rows, s->left, threads, for_device, &s->grouping, err);
}
