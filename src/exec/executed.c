/*
** Counts of what has been executed; see executed.h.
*/
#include "exec/executed.h"

wl_executed wl_executed_counts[WL_N_PLACES];

void wl_executed_pipeline(int place, const wl_program *p) {
  wl_executed_add(&wl_executed_counts[place].sources[p->source]);
  if (p->sink != WL_SINK_DISTINCT && p->sink != WL_SINK_SORT) wl_executed_sink(place, p->sink);
}
