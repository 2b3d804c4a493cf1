/*
** The sink of aggregates without groups; see aggregates.h.
*/
#include "exec/sink/aggregates.h"
#include "base/mem.h"

static wl_status begin(wl_sink *sink, wl_row_piece *q, int worker, wl_exec_io *io, bool *full,
                       wl_error *err) {
  wl_aggregates_sink *s = (wl_aggregates_sink *)sink;
  (void)worker, (void)full;
  if (!q->accs) q->accs = wl_mem_zalloc(((size_t)s->p->n_accs + 1) * sizeof *q->accs);
  io->accs = q->accs;
  return q->accs ? WL_OK : wl_nomem(err);
}

static wl_status settle(wl_sink *sink, wl_row_piece *q, wl_error *err) {
  wl_aggregates_sink *s = (wl_aggregates_sink *)sink;
  for (int k = 0; k < s->p->n_accs && q->done; k++)
    if (wl_acc_join(&s->p->accs[k], &s->accs[k], &q->accs[k])) return wl_nomem(err);
  return WL_OK;
}

void wl_aggregates_sink_init(wl_aggregates_sink *s, const wl_program *p, wl_acc_state *accs) {
  s->sink = (wl_sink){"Aggregates", begin, NULL, settle};
  s->p = p;
  s->accs = accs;
}
