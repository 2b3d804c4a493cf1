/*
** A lookup that is too large for a device is divided into parts. The pipeline runs over its rows
** once for each part, while that part is on the device, and drops the rows whose keys belong to other
** parts (k_probe). So each row goes on in one pass. Rows whose keys match nothing, because one is
** NULL or out of range, belong to the first part.
**
** One part is useful, too: if few rows of a wide source are in the lookup, only their values are
** copied.
**
** A part is a range of slots. A key belongs to the part with the slot where its search begins. Rows
** of a part have numbers of their own, in the order of the slots, and only their values are on the
** device. At most one lookup of a pipeline has parts: the one that takes the most memory together
** with the columns of its source. Used by join_inputs.c, with the device locked.
**
** Invariants:
** 1. The device has the part `now` from the first launch of its pass to the last. Device memory for
**    it is held between waves.
** 2. A pipeline has parts only if it can start again at its first row on the CPU, and if its rows
**    may come in any order.
*/
#ifndef WL_JOIN_PARTS_H
#define WL_JOIN_PARTS_H

#include "exec/gpu/launch.h"

/* Divides a lookup of the pipeline if the inputs of its joins are too large and one can be divided.
** Else s->parts stays NULL. */
wl_status wl_join_parts_plan(wl_pipe *e, wl_device_state *s, wl_error *err) WL_MUST;
/* Makes sure that the device has the part of this pass. WL_FULL: it has no room. */
wl_status wl_join_parts_hold(wl_pipe *e, wl_device_state *s, wl_error *err) WL_MUST;
void wl_join_parts_close(wl_pipe *e, wl_device_state *s);

/* Whether this is the first pass, or the only one. */
bool wl_join_parts_first(const wl_device_state *s);
/* Whether a join, and whether a column, is of a part. */
bool wl_join_parts_has(const wl_device_state *s, int join);
bool wl_join_parts_has_column(const wl_pipe *e, int k);
/* Such a column. Puts the part's arrays into the arguments of its join. */
wl_kcol wl_join_parts_column(const wl_device_state *s, int k);
void wl_join_parts_join(const wl_device_state *s, wl_kjoin *out);

#endif
