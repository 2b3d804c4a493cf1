/*
** DISTINCT of numbers and ORDER BY on a device, over the rows that one launch produced, before they
** are moved to the host. Used by gather.c; uses the kernels of korder.h, the device's sort, and
** ties_device.h for sort keys that are not numbers.
**
** Invariants:
** 1. DISTINCT keeps the first of equal rows in scan order. Rows with equal sort keys stay in scan
**    order.
** 2. If a table takes several launches, the rows of each launch are distinct and, with LIMIT, cut
**    to the first rows in order. The host merges the launches with its own stable DISTINCT and
**    sort.
** 3. WL_FULL leaves the rows as they were.
*/
#ifndef WL_ORDER_DEVICE_H
#define WL_ORDER_DEVICE_H

#include "base/stop.h"
#include "program/program.h"
#include "exec/gpu/device.h"
#include "exec/gpu/kernels/kgargs.h"

/* What the device can do of the sinks Distinct and Sort, judged by their columns. It can sort the
** rows of Distinct at once, which is the next pipeline. */
typedef struct wl_dorder {
  bool distinct, order;
  bool texts;             /* some sort key is a text or of several types */
  const char *why;        /* why it cannot do all of it; NULL if it can */
  const wl_program *sort; /* the pipeline that sorts: this one or the next; NULL: none */
} wl_dorder;

wl_dorder wl_dorder_plan(const wl_program *p);
size_t wl_dorder_row_bytes(const wl_dorder *o); /* temporary device memory, in bytes per row */

/*
** Puts the *n rows of outs (columns with room for `room` rows) in order. *n becomes the number of
** rows that are left, at most `most` if that is not negative. The first n_cols columns are moved.
*/
wl_status wl_dorder_run(wl_device *d, const wl_program *p, const wl_dorder *o, wl_kout *outs,
                        int n_cols, wl_u64 room, wl_u64 *n, wl_i64 most, wl_stop *stop,
                        wl_error *err) WL_MUST;

#endif
