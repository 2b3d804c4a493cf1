/*
** RIGHT and FULL joins on a device: the marks of the rows that were found, and pipelines over the
** rows without one (exec/cpu/marks.h).
**
** Invariants:
** 1. While a pipeline runs on the device, its marks are there. They begin as a copy of the run's
**    marks. When the pipeline ends there, or leaves the device, they are copied back. So every
**    pipeline can run on either machine.
** 2. Launches over unmatched rows scan all rows of the marked source. WL_K_UNMARKED drops those
** that
**    were found. All columns are read at row numbers, and sources that are not joined have no row.
*/
#ifndef WL_UNMATCHED_H
#define WL_UNMATCHED_H

#include "exec/gpu/launch.h"

/* Opens the marks of the pipeline's joins. WL_NOT_TAKEN: the device has no room for them. */
wl_status wl_unmatched_open(wl_pipe *e, wl_device_state *s, wl_error *err) WL_MUST;
wl_status wl_unmatched_fetch(wl_pipe *e, const wl_device_state *s, wl_error *err) WL_MUST;
void wl_unmatched_close(wl_pipe *e, wl_device_state *s);

/* The row numbers with which a launch over unmatched rows starts. Returns how many lists. */
int wl_unmatched_lists(const wl_launch *l, wl_klist *out);

#endif
