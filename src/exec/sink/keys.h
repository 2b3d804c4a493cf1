/*
** The sink of sort keys: workers add the keys and numbers of rows to a sorter (exec/cpu/sorter.h).
*/
#ifndef WL_SINK_KEYS_H
#define WL_SINK_KEYS_H

#include "exec/sink/sink.h"

typedef struct wl_keys_sink {
  wl_sink sink;
  wl_sorter *sorter;
} wl_keys_sink;

void wl_keys_sink_init(wl_keys_sink *s, wl_sorter *sorter);

#endif
