/*
** The sink that keeps the first of equal rows, in the order of rows. (SELECT DISTINCT is a group by
** all results where that is possible; see program/compile.c.)
*/
#ifndef WL_SINK_DISTINCT_H
#define WL_SINK_DISTINCT_H

#include "exec/sink/batches.h"

void wl_distinct_sink_init(wl_collecting_sink *s, wl_pool *pool, wl_budget *budget);

#endif
