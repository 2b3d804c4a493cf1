/*
** GROUP BY on a device: where the groups' records lie, how the kernel finds them, and how
** they come back to the host, where they are finished as the CPU's are (exec/cpu/group/group.h).
** Stands between the runner's device part (run_device.c) and the kernels (kgroup.h).
**
** Invariants:
** 1. The records stay on the device from the first launch to the last, so a run holds device
**    memory between its waves; wl_dgroups_close gives it back. All calls are under the device's
**    lock.
** 2. Launches either gather all their rows or need a new start: what was gathered is then
**    forgotten and the table's first tablet is next.
** 3. The records take at most a quarter of the device's budget, what comes with them half of
**    that; if they need more, the keys are done in several passes over the table.
*/
#ifndef WL_GROUP_DEVICE_H
#define WL_GROUP_DEVICE_H

#include "exec/cpu/group/group.h"
#include "exec/gpu/device.h"
#include "exec/gpu/lower.h"

typedef struct wl_dgroups wl_dgroups;

/* Whether a grouped program's keys and aggregates can be done on a device; if not, why. */
wl_status wl_dgroups_fit(const wl_program *p, wl_error *err) WL_MUST;

/* Chooses a way for a table of n_rows; the block's own table is added to low's shared memory. */
wl_status wl_dgroups_open(const wl_program *p, wl_device *d, wl_i64 n_rows, wl_lowered *low,
                          wl_dgroups **out, wl_error *err) WL_MUST;
void wl_dgroups_close(wl_dgroups *g);
wl_i64 wl_dgroups_bytes(const wl_dgroups *g); /* that it holds on the device */
const char *wl_dgroups_way(const wl_dgroups *g);

/* Gives the kernel over the rows of a launch to the device's queue; several may be under way. */
wl_status wl_dgroups_launch(wl_dgroups *g, const wl_kargs *args, wl_i64 first_row, unsigned grid,
                            unsigned threads, size_t n_shared, wl_error *err) WL_MUST;
/* All launches so far have ended: sees whether they found room. *restart: they did not, there is
** more of it now, and the first tablet is next. */
wl_status wl_dgroups_settle(wl_dgroups *g, bool *restart, wl_error *err) WL_MUST;
/* Forgets what was gathered, in earlier passes too. */
wl_status wl_dgroups_restart(wl_dgroups *g, wl_error *err) WL_MUST;

/* All rows are in: gives the groups to the host. *again: another pass, from tablet 0. */
wl_status wl_dgroups_fetch(wl_dgroups *g, wl_groups *into, bool *again, wl_error *err) WL_MUST;

#endif
