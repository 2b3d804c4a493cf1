/*
** Columns on a device: resident copies of whole columns, kept between statements inside a
** budget, in the device's memory or in pinned host memory that kernels read (mapped); and
** copies of a few tablets for one launch. Lookups of joins are kept there in the same way.
**
** Invariants:
** 1. Everything here but wl_devcol_info is called under the device's lock.
** 2. device->used counts every byte taken through wl_dev_alloc, device->mapped those of mapped
**    residents.
*/
#ifndef WL_DEVCOL_H
#define WL_DEVCOL_H

#include "column/column.h"
#include "exec/gpu/device.h"
#include "exec/gpu/kernels/kargs.h"
#include "exec/gpu/stage.h"
#include "column/lookup.h"

typedef struct wl_devcol {
  struct wl_devcol *next;
  wl_device *device;
  wl_column *column; /* whose copy it is; NULL for a temporary one, or … */
  wl_lookup *lookup; /* … of a lookup */
  wl_kcol k;         /* addresses */
  void *memory;      /* the device's, or for a mapped copy the host's address */
  size_t n_bytes;
  size_t cap_rows; /* rows there is room for; 0: just those of the column */
  bool mapped;
  wl_i64 last_use;
} wl_devcol;

/* WL_FULL when the budget does not allow it, even after giving up other resident columns. */
wl_status wl_dev_alloc(wl_device *d, size_t n_bytes, void **out, wl_error *err) WL_MUST;
void wl_dev_free(wl_device *d, void *p, size_t n_bytes);

/* Bytes that tablets [first, end) of a column take on a device. */
size_t wl_devcol_bytes(const wl_column *c, int first, int end);
/* Copies tablets [first, end) with so many threads. */
wl_status wl_devcol_copy(wl_device *d, const wl_column *c, int first, int end, wl_way way,
                         int threads, wl_devcol *out, wl_error *err) WL_MUST;
void wl_devcol_free(wl_devcol *c);
/* The resident copy of a column, made if need be; evicts others for it. */
wl_status wl_devcol_resident(wl_device *d, wl_column *c, wl_way way, int threads, wl_devcol **out,
                             wl_error *err) WL_MUST;
/* That copy, which the caller knows is there, or NULL. */
wl_devcol *wl_devcol_find(const wl_device *d, const wl_column *c, bool mapped);
/* The same for a lookup; where its arrays are is told by wl_devlookup_join. */
size_t wl_devlookup_bytes(const wl_lookup *l);
wl_status wl_devlookup_resident(wl_device *d, wl_lookup *l, wl_way way, int threads,
                                wl_error *err) WL_MUST;
/* Sets what a join reads of the lookup, whose copy is there. */
void wl_devlookup_join(const wl_device *d, const wl_lookup *l, bool mapped, wl_kjoin *out);
/* A run will use the column, in one memory or the other: counts it. */
void wl_devcol_use(wl_device *d, wl_column *c, bool mapped);
/* Its addresses as seen from tablet first on. */
wl_kcol wl_devcol_from(const wl_devcol *c, int first);
/* A run begins: columns it asks for from now on are not evicted until the next one. */
void wl_devcol_tick(wl_device *d);

/* What all devices have of a column; takes the locks itself. */
typedef struct wl_devcol_facts {
  wl_i64 n_bytes, uses, hits;
} wl_devcol_facts;
wl_devcol_facts wl_devcol_info(const wl_column *c);

#endif
