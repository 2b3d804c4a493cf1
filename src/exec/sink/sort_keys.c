/*
** The sink that sorts row numbers; see sort_keys.h.
*/
#include "exec/sink/sort_keys.h"
#include "plan/cut.h"

static wl_status begin(wl_sink *sink, wl_row_piece *q, int worker, wl_exec_io *io, bool *full,
                       wl_error *err) {
  io->sorter = ((wl_sort_keys_sink *)sink)->sorter;
  io->worker = worker;
  return WL_OK;
}

static wl_status finish(wl_sink *sink, wl_error *err) {
  wl_sort_keys_sink *s = (wl_sort_keys_sink *)sink;
  wl_status rc = wl_sorter_finish(s->sorter, s->threads, s->stop, &s->rows, &s->n, err);
  if (s->most >= 0 && s->n > s->most) s->n = s->most;
  sink->n_left = s->n;
  return rc;
}

static void close_sorter(wl_sink *sink) {
  wl_sorter_close(((wl_sort_keys_sink *)sink)->sorter);
}

wl_status wl_sort_keys_sink_open(wl_sort_keys_sink *s, const wl_program *p, wl_column *const *cols,
                                 wl_i64 n_rows, int threads, wl_budget *budget, wl_stop *stop,
                                 wl_error *err) {
  wl_i64 most = wl_cut_needed(p->offset, p->limit);
  s->sink = (wl_sink){.begin = begin, .finish = finish, .close = close_sorter};
  s->most = most;
  s->threads = threads;
  s->stop = stop;
  wl_i64 left = wl_budget_left(budget);
  s->sink.n_held = wl_sorter_bytes(p, n_rows, most); /* as long as the run lives */
  wl_budget_hold(budget, s->sink.n_held);
  if (wl_budget_full(budget)) return wl_budget_fail("the rows to sort", left, err);
  return wl_sorter_open(p, cols, n_rows, most, threads, &s->sorter, err);
}
