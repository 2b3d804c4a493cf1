/*
** The sink of aggregates without groups: every piece has accumulators, which are joined in row
** order.
*/
#ifndef WL_SINK_AGGREGATES_H
#define WL_SINK_AGGREGATES_H

#include "exec/sink/sink.h"

typedef struct wl_aggregates_sink {
  wl_sink sink;
  const wl_program *p;
  wl_acc_state *accs; /* [n_accs]: of all pieces that are settled */
} wl_aggregates_sink;

void wl_aggregates_sink_init(wl_aggregates_sink *s, const wl_program *p, wl_acc_state *accs);

#endif
