/*
** Groups on a device: where their records are, how the kernel finds them, and how they
** come back to the host, which finishes them like the CPU's groups (exec/cpu/group/group.h). Used
** by run_device.c; uses the kernels of kgroup.h.
**
** Invariants:
** 1. The records stay on the device from the first launch to the last, so a run holds device
**    memory between its waves. wl_dgroups_close frees it. The caller holds the device's lock in
**    all calls.
** 2. Either the launches add all their rows to the groups, or there is a restart: the groups are
**    cleared and the scan begins again at the first tablet.
** 3. The records take at most a quarter of the device's budget, and the other buffers half of
**    that. If the records need more, the keys are split over several passes over the table.
*/
#ifndef WL_GROUP_DEVICE_H
#define WL_GROUP_DEVICE_H

#include "exec/cpu/group/group.h"
#include "exec/gpu/device.h"
#include "column/rows.h"
#include "exec/gpu/lower.h"

typedef struct wl_dgroups wl_dgroups;

/* Checks whether the device can do a program's keys and aggregates. If not, err says why. */
wl_status wl_dgroups_fit(const wl_program *p, wl_error *err) WL_MUST;

/* Chooses a method for a table of n_rows rows. If blocks gather in shared memory, adds the size of
** that table to low->n_shared. */
wl_status wl_dgroups_open(const wl_program *p, wl_device *d, wl_i64 n_rows, wl_lowered *low,
                          wl_dgroups **out, wl_error *err) WL_MUST;
void wl_dgroups_close(wl_dgroups *g);
wl_i64 wl_dgroups_bytes(const wl_dgroups *g); /* bytes that it uses on the device */
bool wl_dgroups_one_pass(const wl_dgroups *g); /* whether the groups fit at once */
const char *wl_dgroups_way(const wl_dgroups *g);

/* Puts the kernel over the rows of a launch into the device's queue. Several may be in progress. */
wl_status wl_dgroups_launch(wl_dgroups *g, const wl_kargs *args, wl_i64 first_row, unsigned grid,
                            unsigned threads, size_t n_shared, wl_error *err) WL_MUST;
/* Called when all launches so far have ended. Sets *restart if the groups did not fit: there is
** more room now, and the scan must begin again at the first tablet. */
wl_status wl_dgroups_settle(wl_dgroups *g, bool *restart, wl_error *err) WL_MUST;
/* Clears the groups, including those of earlier passes. */
wl_status wl_dgroups_restart(wl_dgroups *g, wl_error *err) WL_MUST;

/* Where groups go on the host: workers[k] has those that thread k adds, or is NULL before that. */
typedef struct wl_groups_to {
  wl_grouping *plan;
  wl_groups **workers;
  int n_workers;
} wl_groups_to;

/* Called after the last row. Moves the groups to the host. Sets *again if another pass from tablet
** 0 must follow. */
wl_status wl_dgroups_fetch(wl_dgroups *g, const wl_groups_to *to, wl_stop *stop, bool *again,
                           wl_error *err) WL_MUST;

/* Called instead of wl_dgroups_fetch, if wl_gpu_finishes(). Makes columns of the groups, in the order
** of their keys, which stay on the device: the columns of the next pipeline. *done is false if the
** host must do it: if there are several passes, a sum() that may overflow, or reals that do not fit
** the digits. Then `out` is empty, and the groups are still there. exact: the host must know how many
** groups there are; else out->live may say which rows count. */
wl_status wl_dgroups_finish(wl_dgroups *g, bool exact, wl_rows *out, bool *done, wl_stop *stop,
                            wl_error *err) WL_MUST;
/* Whether the host need not look at the counters of the launches: nothing can be full, and no rows
** are left to the host. */
bool wl_dgroups_is_sure(const wl_dgroups *g);

#endif
