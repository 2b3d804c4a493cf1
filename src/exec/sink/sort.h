/*
** The sink that sorts rows. With a LIMIT it keeps only the rows that can be among the first.
*/
#ifndef WL_SINK_SORT_H
#define WL_SINK_SORT_H

#include "exec/sink/batches.h"

typedef struct wl_sort_sink {
  wl_collecting_sink c;
  bool pruned; /* rows that LIMIT cuts off have been dropped */
} wl_sort_sink;

void wl_sort_sink_init(wl_sort_sink *s, wl_pool *pool, wl_budget *budget);

#endif
