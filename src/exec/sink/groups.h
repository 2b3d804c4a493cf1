/*
** The sink of groups: every worker has its own groups (exec/cpu/group/group.h), which are joined
** after the last row. Or a device has gathered them. Then it has made columns of them, or has given
** them to the workers.
*/
#ifndef WL_SINK_GROUPS_H
#define WL_SINK_GROUPS_H

#include "column/rows.h"
#include "exec/sink/sink.h"

typedef struct wl_groups_sink {
  wl_sink sink;
  const wl_program *program;
  wl_grouping *grouping;
  wl_groups **groups;   /* [threads]: opened when a worker needs them */
  wl_finished finished; /* the joined groups, after finish */
  bool on_device;       /* the groups are made, a device has finished them */
  wl_rows made;
  wl_column **cols;     /* of the source; borrowed */
  int threads;
  wl_budget *budget;
  wl_i64 left; /* bytes that the groups may take; 0: no limit */
  wl_u64 max_text;
  bool in_order; /* one worker sees all rows in order */
  wl_stop *stop;
} wl_groups_sink;

/* n_rows: about how many rows will come. */
wl_status wl_groups_sink_open(wl_groups_sink *s, const wl_program *p, wl_column **cols,
                              wl_i64 n_rows, int threads, wl_budget *budget, wl_u64 max_text,
                              wl_stop *stop, bool for_device, wl_error *err) WL_MUST;
/* If a device has finished the groups, some of its rows may not count (wl_rows.live). Sets *at to the
** number of those before row *at that do. */
wl_status wl_groups_sink_count(wl_groups_sink *s, wl_i64 *at, wl_error *err) WL_MUST;
/* Brings groups that a device has finished to the host, so that `finished` has their columns. */
wl_status wl_groups_sink_fetch(wl_groups_sink *s, wl_error *err) WL_MUST;
/* Fails with WL_NOT_TAKEN: the groups fit neither into memory nor into a temporary file. */
wl_status wl_groups_sink_full(const wl_groups_sink *s, wl_error *err) WL_MUST;

#endif
