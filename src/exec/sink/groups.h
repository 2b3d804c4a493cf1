/*
** The sink of groups: every worker has its own groups (exec/cpu/group/group.h), which are joined
** after the last row.
*/
#ifndef WL_SINK_GROUPS_H
#define WL_SINK_GROUPS_H

#include "exec/sink/sink.h"

typedef struct wl_groups_sink {
  wl_sink sink;
  wl_grouping *grouping;
  wl_groups **groups; /* [threads]: opened when a worker needs them; the caller closes them */
} wl_groups_sink;

void wl_groups_sink_init(wl_groups_sink *s, wl_grouping *grouping, wl_groups **groups);

#endif
