/*
** A device: the small set of calls the runner needs of a GPU, with two implementations: the
** CUDA plugin, found at run time, and the simulator, which runs the same kernels on the host.
**
** Invariants:
** 1. Calls on one device come from one thread at a time (wl_device_lock).
** 2. Device memory comes from one pool with a budget; alloc fails with WL_FULL beyond it.
** 3. launch is in order with the copies; copy_out has happened when it returns.
*/
#ifndef WL_DEVICE_H
#define WL_DEVICE_H

#include "base/status.h"
#include "vm/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum wl_kernel {
  WL_K_INTERP,
  WL_K_GATHER,
  WL_K_GROUP,
  WL_K_GROUP_PACK,
  WL_K_ORDER_KEYS,
  WL_K_ORDER_FIRST,
  WL_K_ORDER_KEPT,
  WL_K_ORDER_PERMUTE,
  WL_N_KERNELS
} wl_kernel;

typedef struct wl_device {
  const char *kind; /* "cuda" or "sim" */
  int index;        /* its number among the process's devices */
  char name[128];
  wl_i64 memory;      /* bytes on the device */
  wl_i64 free_memory; /* bytes that were free when it was opened, less a reserve */
  wl_i64 budget;      /* bytes we may take; set for each wave of a run */
  wl_i64 used;        /* bytes taken */
  int n_processors;
  int max_shared;    /* bytes of shared memory a block may have */
  int block_threads; /* of a block, where shared memory allows it */
  int blocks_each;   /* blocks a processor runs at once, at most */
  void *impl;
  void *residents; /* columns kept there (vm/gpu/devcol.c) … */
  wl_i64 clock;    /* … and their clock */
  wl_status (*alloc)(struct wl_device *d, size_t n_bytes, void **out, wl_error *err);
  void (*free)(struct wl_device *d, void *p, size_t n_bytes);
  wl_status (*copy_in)(struct wl_device *d, void *to, const void *from, size_t n_bytes,
                       wl_error *err);
  wl_status (*copy_out)(struct wl_device *d, void *to, const void *from, size_t n_bytes,
                        wl_error *err);
  wl_status (*clear)(struct wl_device *d, void *p, size_t n_bytes, wl_error *err);
  wl_status (*launch)(struct wl_device *d, wl_kernel k, const void *args, size_t n_args,
                      unsigned grid, unsigned block, size_t n_shared, wl_error *err);
  /* sums[i] = in[0] + … + in[i - 1], for i in 0 … n */
  wl_status (*scan)(struct wl_device *d, const wl_u32 *in, wl_u64 *sums, wl_i64 n, wl_error *err);
  /* Sorts n pairs by the lowest n_bits of the keys, stable. keys[0] and values[0] come in; on
  ** return *at says which of the two of each holds the result. */
  wl_status (*sort)(struct wl_device *d, wl_u64 *keys[2], wl_u32 *values[2], wl_i64 n, int n_bits,
                    int *at, wl_error *err);
  wl_status (*host_alloc)(struct wl_device *d, size_t n_bytes, void **out,
                          wl_error *err); /* pinned */
  void (*host_free)(struct wl_device *d, void *p);
} wl_device;

/* The process's device of a kind, opened at the first call; NULL and why if there is none. */
wl_device *wl_device_get(const char *kind, wl_error *err);
void wl_device_lock(wl_device *d);
void wl_device_unlock(wl_device *d);

/* What implements "sim" (vm/sim/device.c), and what a plugin exports. */
wl_status wl_device_open_sim(wl_device *d, wl_error *err);
typedef wl_status (*wl_device_open_fn)(wl_device *d, char *message, size_t n_message);

#ifdef __cplusplus
}
#endif
#endif
