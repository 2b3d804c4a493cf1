/*
** The sink that sorts rows. With a LIMIT it keeps only the rows that can be among the first.
*/
#ifndef WL_SINK_SORT_H
#define WL_SINK_SORT_H

#include "exec/sink/batches.h"

typedef struct wl_sort_sink {
  wl_batch_sink base;
  const wl_program *p;
  wl_collected rows;
  bool pruned; /* rows that LIMIT cuts off have been dropped */
  int threads;
  wl_stop *stop;
  wl_sink *to; /* takes the sorted rows */
} wl_sort_sink;

void wl_sort_sink_init(wl_sort_sink *s, const wl_program *p, wl_pool *pool, int threads,
                       wl_budget *budget, wl_stop *stop, wl_sink *to);

#endif
