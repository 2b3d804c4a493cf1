/*
** What the files about copies on devices share (devcol.c, devlookup.c, made_column.c). The caller holds the
** device's lock.
*/
#ifndef WL_DEVCOL_IMPL_H
#define WL_DEVCOL_IMPL_H

#include "exec/gpu/columns/devcol.h"
#include <assert.h>

static inline size_t aligned(size_t n) {
  return (n + WL_DEV_ALIGN - 1) & ~(size_t)(WL_DEV_ALIGN - 1);
}

/* The index of a copy in column->copy: each device has one in its memory and one mapped. */
static inline int slot_of(const wl_device *d, bool mapped) {
  int slot = d->index * 2 + mapped;
  assert(slot >= 0 && slot < WL_MAX_COPIES);
  return slot;
}

/* Allocates n bytes for a copy. *address is the address that kernels use. */
wl_status wl_devcol_open(wl_device *d, size_t n, wl_way way, wl_devcol *out, const wl_u8 **address,
                         wl_error *err) WL_MUST;
/* Adds a new copy to the device's list of resident copies. The caller sets its owner. */
void wl_devcol_settle(wl_device *d, wl_devcol *r);
/* Removes a resident copy from the device's list and frees it. */
void wl_devcol_forget(wl_device *d, const wl_devcol *r);
/* Frees all copies of a column or lookup that is about to be freed. */
void wl_devcol_drop_copies(void *_Atomic const *copy, void *_Atomic const *on);
/* Makes room for n more mapped bytes by evicting mapped copies. */
wl_status wl_devcol_map_room(wl_device *d, wl_i64 n, wl_error *err) WL_MUST;
void wl_devcol_drop(wl_column *c); /* frees the copies of a column that is about to be freed */
/* Copies the rows of a column that the device has made to the host, if they are not there. */
wl_status wl_made_fetch(wl_device *d, wl_column *c, wl_error *err) WL_MUST;
/* The same of the arrays of a lookup. */
wl_status wl_devlookup_fetch(wl_device *d, wl_lookup *l, wl_error *err) WL_MUST;

#endif
