/*
** The rows of a result that stay on the device, for a user who goes on there
** (warplite_query_device). Each launch leaves a batch, with the layout of Arrow's arrays: numbers
** of 8 bytes, texts and blobs as 64-bit offsets and bytes, and bitmaps of the rows that are not
** NULL.
**
** Invariants:
** 1. All work on a batch is finished when it is added to the rows. Nothing changes it after that.
** 2. A batch owns its memory. Other statements cannot evict it. It counts as used memory of the
**    device until the last reference is dropped.
** 3. Batches come in row order, and OFFSET and LIMIT are applied to them.
** 4. If the host gets rows, `refused` is set, and there are no more batches. Those before are
**    of no use then: whoever asked for the rows runs the statement again.
*/
#ifndef WL_DEVICE_ROWS_H
#define WL_DEVICE_ROWS_H

#include "exec/gpu/device.h"
#include "program/program.h"
#include <stdatomic.h>

typedef struct wl_device_buffer {
  void *p;
  size_t n_bytes;
} wl_device_buffer;

typedef struct wl_device_column {
  wl_u8 type; /* of all values; WL_T_NULL: there are only NULLs */
  wl_i64 n_nulls;
  wl_device_buffer valid; /* bit r & 7 of byte r >> 3; NULL: no row is NULL */
  wl_device_buffer data;  /* values, or [n_rows + 1] offsets; of NULLs, n_rows + 1 words of zeros */
  wl_device_buffer bytes; /* of texts and blobs */
} wl_device_column;

typedef struct wl_device_batch {
  struct wl_device_batch *next;
  atomic_int refs;
  wl_device *device;
  wl_i64 n_rows;
  int n_cols;
  wl_device_column cols[];
} wl_device_batch;

/* Any thread may call these, but not with a device locked. */
wl_device_batch *wl_device_batch_hold(wl_device_batch *b);
void wl_device_batch_drop(wl_device_batch *b); /* b may be NULL */

typedef struct wl_device_rows {
  wl_device_batch *first, *last;
  wl_device *device; /* that the statement uses, or NULL */
  wl_i64 n_rows;
  bool on_device; /* after the run: these are all rows */
  bool refused;
  char why[200]; /* why the rows are on the host */
} wl_device_rows;

wl_device_batch *wl_device_rows_take(wl_device_rows *r); /* removes the first batch, or NULL */
void wl_device_rows_clear(wl_device_rows *r);            /* drops all batches */
/* Says that the host gets the rows. The first reason is kept. */
void wl_device_rows_refuse(wl_device_rows *r, const char *why);
/* Whether each result has one type, so that it can be a column there. */
bool wl_device_rows_typed(const wl_program *p);

/* ---- for the launches, under the lock of the device */

struct wl_launch;
/* Makes a batch of the rows of a launch, which has ended: l->kept. Any failure leaves the rows of
** the launch as they were, for the host. */
wl_status wl_device_rows_keep(struct wl_launch *l, wl_error *err) WL_MUST;
/* Whether the rows of a launch are rows of the result, in their order. If not, refuses. */
bool wl_device_rows_can_keep(const struct wl_launch *l);
void wl_device_rows_add(struct wl_launch *l);    /* l->kept comes next */
void wl_device_rows_forget(struct wl_launch *l); /* drops l->kept, if it was not added */

#endif
