/*
** The sink of sort keys; see keys.h.
*/
#include "exec/sink/keys.h"

static wl_status begin(wl_sink *sink, wl_row_piece *q, int worker, wl_exec_io *io, bool *full,
                       wl_error *err) {
  io->sorter = ((wl_keys_sink *)sink)->sorter;
  io->worker = worker;
  return WL_OK;
}

void wl_keys_sink_init(wl_keys_sink *s, wl_sorter *sorter) {
  s->sink = (wl_sink){"Sort keys", begin, NULL, NULL};
  s->sorter = sorter;
}
