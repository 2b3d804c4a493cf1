/*
** The sink of groups; see groups.h.
*/
#include "exec/sink/groups.h"

static wl_status begin(wl_sink *sink, wl_row_piece *q, int worker, wl_exec_io *io, bool *full,
                       wl_error *err) {
  wl_groups_sink *s = (wl_groups_sink *)sink;
  wl_status rc = WL_OK;
  if (!s->groups[worker]) rc = wl_groups_open(s->grouping, &s->groups[worker], err);
  io->groups = s->groups[worker];
  return rc;
}

void wl_groups_sink_init(wl_groups_sink *s, wl_grouping *grouping, wl_groups **groups) {
  s->sink = (wl_sink){"Groups", begin, NULL, NULL};
  s->grouping = grouping;
  s->groups = groups;
}
