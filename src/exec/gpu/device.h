/*
** A device: the small set of calls the runner needs of a GPU, with two implementations: the
** CUDA plugin, found at run time, and the simulator, which runs the same kernels on the host.
**
** Invariants:
** 1. Calls on one device come from one thread at a time (wl_device_lock).
** 2. Device memory comes from one pool with a budget; alloc fails with WL_FULL beyond it.
** 3. Calls that work on the device go to the queue `queue` and happen there in order, queues
**    beside each other. copy_in has read its source and copy_out has happened when they return;
**    the _later ones happen by finish, and their host side is memory of host_alloc that
**    nobody touches before.
** 4. Memory of alloc and host_alloc may be touched up to the next multiple of WL_DEV_ALIGN.
*/
#ifndef WL_DEVICE_H
#define WL_DEVICE_H

#include "base/status.h"
#include "value/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum wl_kernel {
  WL_K_INTERP,
  WL_K_EXPAND,
  WL_K_GATHER,
  WL_K_TILES,
  WL_K_GROUP,
  WL_K_GROUP_PACK,
  WL_K_ORDER_KEYS,
  WL_K_ORDER_FIRST,
  WL_K_ORDER_KEPT,
  WL_K_ORDER_PERMUTE,
  WL_N_KERNELS
} wl_kernel;

/* Queue 0 is everybody's; the others are those of blocks under way (exec/gpu/run_device.c). */
enum { WL_QUEUES = 9, WL_EVENTS = 4, WL_DEV_ALIGN = 512 };

typedef struct wl_device {
  const char *kind; /* "cuda" or "sim" */
  int index;        /* its number among the process's devices */
  char name[128];
  wl_i64 memory;        /* bytes on the device */
  wl_i64 free_memory;   /* bytes that were free when it was opened, less a reserve */
  wl_i64 budget;        /* bytes we may take; set for each wave of a run */
  wl_i64 used;          /* bytes taken */
  wl_i64 mapped_budget; /* bytes of host memory for columns that kernels read there … */
  wl_i64 mapped;        /* … and taken; set and counted as budget and used */
  int queue;            /* the one that calls go to */
  int n_processors;
  int max_shared;    /* bytes of shared memory a block may have */
  int block_threads; /* of a block, where shared memory allows it */
  int blocks_each;   /* blocks a processor runs at once, at most */
  void *impl;
  void *residents;    /* columns kept there (exec/gpu/devcol.c) … */
  wl_i64 clock;       /* … and their clock */
  void *stage;        /* pinned buffers that copies go through (exec/gpu/stage.c) … */
  size_t n_stage;     /* … of so many bytes each */
  wl_i64 n_in, n_out; /* bytes copied or read to the device and back, so far */
  wl_status (*alloc)(struct wl_device *d, size_t n_bytes, void **out, wl_error *err);
  void (*free)(struct wl_device *d, void *p, size_t n_bytes);
  wl_status (*copy_in)(struct wl_device *d, void *to, const void *from, size_t n_bytes,
                       wl_error *err);
  wl_status (*copy_out)(struct wl_device *d, void *to, const void *from, size_t n_bytes,
                        wl_error *err);
  wl_status (*clear)(struct wl_device *d, void *p, size_t n_bytes, wl_error *err);
  /* from one place on the device to another, which do not overlap */
  wl_status (*copy_on)(struct wl_device *d, void *to, const void *from, size_t n_bytes,
                       wl_error *err);
  wl_status (*launch)(struct wl_device *d, wl_kernel k, const void *args, size_t n_args,
                      unsigned grid, unsigned block, size_t n_shared, wl_error *err);
  /* sums[i] = in[0] + … + in[i - 1], for i in 0 … n */
  wl_status (*scan)(struct wl_device *d, const wl_u32 *in, wl_u64 *sums, wl_i64 n, wl_error *err);
  /* Sorts n pairs by the lowest n_bits of the keys, stable. keys[0] and values[0] come in; on
  ** return *at says which of the two of each holds the result. */
  wl_status (*sort)(struct wl_device *d, wl_u64 *keys[2], wl_u32 *values[2], wl_i64 n, int n_bits,
                    int *at, wl_error *err);
  wl_status (*copy_in_later)(struct wl_device *d, void *to, const void *from, size_t n_bytes,
                             wl_error *err);
  wl_status (*copy_out_later)(struct wl_device *d, void *to, const void *from, size_t n_bytes,
                              wl_error *err);
  /* Waits for all that the queue was given. */
  wl_status (*finish)(struct wl_device *d, wl_error *err);
  /* mark: an event (0 … WL_EVENTS - 1) is what the queue was given so far; wait: for that. */
  wl_status (*mark)(struct wl_device *d, int event, wl_error *err);
  wl_status (*wait)(struct wl_device *d, int event, wl_error *err);
  wl_status (*host_alloc)(struct wl_device *d, size_t n_bytes, void **out,
                          wl_error *err); /* pinned, and readable by kernels … */
  wl_status (*host_address)(struct wl_device *d, void *p, void **out,
                            wl_error *err); /* … at this address */
  void (*host_free)(struct wl_device *d, void *p);
} wl_device;

/* The process's device of a kind, opened at the first call; NULL and why if there is none. */
wl_device *wl_device_get(const char *kind, wl_error *err);
void wl_device_lock(wl_device *d);
void wl_device_unlock(wl_device *d);

/* What implements "sim" (exec/sim/device.c), and what a plugin exports. */
wl_status wl_device_open_sim(wl_device *d, wl_error *err);
typedef wl_status (*wl_device_open_fn)(wl_device *d, char *message, size_t n_message);

#ifdef __cplusplus
}
#endif
#endif
