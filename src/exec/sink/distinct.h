/*
** The sink that keeps the first of equal rows, in the order of rows. (SELECT DISTINCT is a group by
** all results where that is possible; see program/compile.c.)
*/
#ifndef WL_SINK_DISTINCT_H
#define WL_SINK_DISTINCT_H

#include "exec/sink/batches.h"

typedef struct wl_distinct_sink {
  wl_batch_sink base;
  const wl_program *p;
  wl_collected rows;
  int threads;
  wl_stop *stop;
  wl_sink *to; /* takes the distinct rows */
} wl_distinct_sink;

void wl_distinct_sink_init(wl_distinct_sink *s, const wl_program *p, wl_pool *pool, int threads,
                           wl_budget *budget, wl_stop *stop, wl_sink *to);

#endif
