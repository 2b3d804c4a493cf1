/*
** Columns on a device. Resident copies hold whole columns and stay between statements, within a
** budget. They are in the device's memory, or in pinned host memory that kernels read ("mapped").
** Temporary copies hold a range of rows for one launch. The lookups of joins have resident copies
** too.
**
** Invariants:
** 1. The caller holds the device's lock, except in wl_devcol_info and wl_devcol_is_there.
** 2. device->used counts every byte taken through wl_dev_alloc. device->mapped counts the bytes
**    of mapped resident copies.
*/
#ifndef WL_DEVCOL_H
#define WL_DEVCOL_H

#include "column/column.h"
#include "exec/gpu/device.h"
#include "exec/gpu/kernels/kargs.h"
#include "exec/gpu/columns/stage.h"
#include "column/lookup.h"

typedef struct wl_devcol {
  struct wl_devcol *next;
  wl_device *device;
  wl_column *column; /* the owner of a resident copy of a column; else NULL */
  wl_lookup *lookup; /* the owner of a resident copy of a lookup; else NULL */
  wl_kcol k;         /* addresses that kernels use */
  void *memory;      /* address on the device; for a mapped copy, address on the host */
  size_t n_bytes;
  size_t cap_rows; /* rows that fit; 0: exactly the rows of the column */
  bool mapped;
  wl_i64 last_use;
} wl_devcol;

/* Returns WL_FULL if the budget does not allow it even after evicting resident copies. */
wl_status wl_dev_alloc(wl_device *d, size_t n_bytes, void **out, wl_error *err) WL_MUST;
void wl_dev_free(wl_device *d, void *p, size_t n_bytes);

/* Number of bytes that rows [first, end) of a column take on a device. first is a multiple of 32.
** If one of them is no multiple of WL_TABLET_ROWS, and end is not behind the last row, all rows are
** of one tablet. */
size_t wl_devcol_bytes(const wl_column *c, wl_i64 first, wl_i64 end);
/* Copies such rows with up to `threads` threads. */
wl_status wl_devcol_copy(wl_device *d, const wl_column *c, wl_i64 first, wl_i64 end, wl_way way,
                         int threads, wl_devcol *out, wl_error *err) WL_MUST;
void wl_devcol_free(wl_devcol *c);
/* Returns the resident copy of a column. Makes it if there is none, and evicts others for it. */
wl_status wl_devcol_resident(wl_device *d, wl_column *c, wl_way way, int threads, wl_devcol **out,
                             wl_error *err) WL_MUST;
/* Returns the resident copy of a column, or NULL if there is none. */
wl_devcol *wl_devcol_find(const wl_device *d, const wl_column *c, bool mapped);
/* Whether a resident copy is there, or that of the version before, from which it is made. For
** estimates: the caller need not hold the lock, and the copy may be gone at once. */
bool wl_devcol_is_there(const wl_device *d, wl_column *c, bool mapped);
/* Size and resident copy of a lookup (devlookup.c). */
size_t wl_devlookup_bytes(const wl_lookup *l);
wl_status wl_devlookup_resident(wl_device *d, wl_lookup *l, wl_way way, int threads,
                                wl_error *err) WL_MUST;
/* Allocates the arrays of a lookup that a device will build (on_device). Its other fields are set.
** The lookup frees them; close does that before. */
wl_status wl_devlookup_open(wl_device *d, wl_lookup *l, wl_error *err) WL_MUST;
void wl_devlookup_close(wl_device *d, wl_lookup *l);
/* They are filled. From now on they may be evicted. */
void wl_devlookup_built(wl_device *d, wl_lookup *l);
/* The addresses of its arrays, as kernels see them; NULL: it does not have this one. The lookup must
** have a resident copy. */
typedef struct wl_devarrays {
  wl_u64 *words;
  wl_u32 *slots, *counts, *starts, *rows, *bits;
} wl_devarrays;
wl_devarrays wl_devlookup_arrays(const wl_device *d, const wl_lookup *l, bool mapped);
/* Counts that a run will use the column, in device memory or mapped. */
void wl_devcol_use(wl_device *d, wl_column *c, bool mapped);
/* Addresses of the copy, starting at row `first`. */
wl_kcol wl_devcol_from(const wl_devcol *c, wl_i64 first);
/* Starts a run. Columns that it asks for are not evicted until the next run starts. */
void wl_devcol_tick(wl_device *d);

/* Totals over the copies of a column on all devices. wl_devcol_info takes the locks itself. */
typedef struct wl_devcol_facts {
  wl_i64 n_bytes, uses, hits;
} wl_devcol_facts;
wl_devcol_facts wl_devcol_info(const wl_column *c);

#endif
