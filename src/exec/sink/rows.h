/*
** The sink of result rows: pieces fill batches, which are handed over in row order.
*/
#ifndef WL_SINK_ROWS_H
#define WL_SINK_ROWS_H

#include "exec/sink/sink.h"

typedef struct wl_rows_sink {
  wl_sink sink;
  wl_pool *pool;
  int most;      /* most batches of a piece */
  wl_i64 needed; /* most rows that are needed of those to come; -1: all */
  /* Takes over a batch. */
  wl_status (*take)(void *arg, wl_batch *b, wl_error *err);
  void *arg;
} wl_rows_sink;

void wl_rows_sink_init(wl_rows_sink *s, wl_pool *pool);

#endif
