/*
** Columns on a device: resident copies of whole columns, kept between statements inside the
** device's budget, and copies of a few tablets for one launch.
**
** Invariants:
** 1. Everything here is called under the device's lock.
** 2. device->used counts every byte taken through wl_dev_alloc.
*/
#ifndef WL_DEVCOL_H
#define WL_DEVCOL_H

#include "store/column.h"
#include "vm/gpu/device.h"
#include "vm/gpu/kargs.h"

typedef struct wl_devcol {
  struct wl_devcol *next;
  wl_device *device;
  wl_column *column; /* whose copy it is; NULL for a temporary one */
  wl_kcol k;         /* addresses */
  void *memory;
  size_t n_bytes;
  wl_i64 last_use;
} wl_devcol;

/* WL_FULL when the budget does not allow it, even after giving up other resident columns. */
wl_status wl_dev_alloc(wl_device *d, size_t n_bytes, void **out, wl_error *err) WL_MUST;
void wl_dev_free(wl_device *d, void *p, size_t n_bytes);

/* Bytes that tablets [first, end) of a column take on a device. */
size_t wl_devcol_bytes(const wl_column *c, int first, int end);
/* Copies tablets [first, end). */
wl_status wl_devcol_copy(wl_device *d, const wl_column *c, int first, int end, wl_devcol *out,
                         wl_error *err) WL_MUST;
void wl_devcol_free(wl_devcol *c);
/* The resident copy of a column, made if need be; evicts others for it. */
wl_status wl_devcol_resident(wl_device *d, wl_column *c, wl_devcol **out, wl_error *err) WL_MUST;
/* Its addresses as seen from tablet first on. */
wl_kcol wl_devcol_from(const wl_devcol *c, int first);
/* A run begins: columns it asks for from now on are not evicted until the next one. */
void wl_devcol_tick(void);

#endif
