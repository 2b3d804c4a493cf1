/*
** DISTINCT and ORDER BY on a device, over the rows that one launch gave, before they are
** brought to the host. Stands between the runner's device part (run_device.c) and the kernels
** (korder.h) and the device's sort.
**
** Invariants:
** 1. Of equal rows the first in scan order stays; rows with equal sort keys stay in scan order.
** 2. Where a table takes several launches, each one's rows are distinct and, under LIMIT, the
**    first in order; the host, whose own DISTINCT and sort are as stable, makes one of them.
** 3. WL_FULL leaves the rows as they were.
*/
#ifndef WL_ORDER_DEVICE_H
#define WL_ORDER_DEVICE_H

#include "program/program.h"
#include "exec/gpu/device.h"
#include "exec/gpu/kernels/kgargs.h"

/* What the device can do of a program's DISTINCT and ORDER BY, by their columns. */
typedef struct wl_dorder {
  bool distinct, order;
  const char *why; /* not all of it, or NULL */
} wl_dorder;

wl_dorder wl_dorder_plan(const wl_program *p);
size_t wl_dorder_row_bytes(const wl_dorder *o); /* device memory it takes for a while */

/*
** Puts the *n rows of outs (columns with room for `room` rows) in order; *n becomes the rows
** that are left, at most `most` if that is not negative. n_cols columns are moved.
*/
wl_status wl_dorder_run(wl_device *d, const wl_program *p, const wl_dorder *o, wl_kout *outs,
                        int n_cols, wl_u64 room, wl_u64 *n, wl_i64 most, wl_error *err) WL_MUST;

#endif
