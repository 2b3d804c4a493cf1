/*
** The sink that sorts row numbers: workers add the keys and numbers of rows to a sorter
** (exec/cpu/sorter.h). The next pipeline reads the rows in their new order.
*/
#ifndef WL_SINK_SORT_KEYS_H
#define WL_SINK_SORT_KEYS_H

#include "exec/sink/sink.h"

typedef struct wl_sort_keys_sink {
  wl_sink sink;
  wl_sorter *sorter;
  int threads;
  wl_stop *stop;
  const wl_u32 *rows; /* [n]: the row numbers in order, after finish */
  wl_i64 n, most;     /* most < 0: all are needed */
} wl_sort_keys_sink;

/* cols, n_rows: the columns and rows of the source. */
wl_status wl_sort_keys_sink_open(wl_sort_keys_sink *s, const wl_program *p, wl_column *const *cols,
                                 wl_i64 n_rows, int threads, wl_budget *budget, wl_stop *stop,
                                 wl_error *err) WL_MUST;

#endif
