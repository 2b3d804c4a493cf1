/*
** A device: the few calls that the runner needs from a GPU. There are two implementations: the
** CUDA plugin, loaded at run time, and the simulator, which runs the same kernels on the host.
**
** Invariants:
** 1. One thread at a time calls a device (wl_device_lock).
** 2. Device memory comes from one pool with a budget. alloc fails with WL_FULL beyond it.
** 3. Calls that do work on the device go to the queue `queue`. Work in one queue runs in order;
**    queues run concurrently, unless one follows another. When copy_in returns, it has read its
**    source. When copy_out returns, the copy is complete. The _later calls complete by the next
**    finish; their host memory comes from host_alloc and must not be touched before that.
** 4. Memory from alloc and host_alloc may be accessed up to the next multiple of WL_DEV_ALIGN
**    bytes.
*/
#ifndef WL_DEVICE_H
#define WL_DEVICE_H

#include "base/status.h"
#include "value/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum wl_kernel {
  WL_K_INTERP_NUMBERS, /* for programs whose values are all numbers */
  WL_K_INTERP,
  WL_K_INTERP_LONG, /* for programs with LONG opcodes */
  WL_K_EXPAND,
  WL_K_ROUND,
  WL_K_MAKE_LISTS,
  WL_K_GATHER,
  WL_K_TILES,
  WL_K_PACK,
  WL_K_GROUP_NUMBERS,
  WL_K_GROUP,
  WL_K_GROUP_LONG,
  WL_K_GROUP_SETS, /* for DISTINCT aggregates, and for keys that become codes */
  WL_K_GROUP_SETS_LONG,
  WL_K_GROUP_PACK,
  WL_K_ORDER_KEYS,
  WL_K_ORDER_FIRST,
  WL_K_ORDER_KEPT,
  WL_K_ORDER_PERMUTE,
  WL_K_TIES_SKIP,
  WL_K_TIES_WORDS,
  WL_K_TIES_RUNS,
  WL_K_TIES_SPLIT,
  WL_K_TIES_NEXT,
  WL_K_FINISH_KEEP,
  WL_K_FINISH_WORDS,
  WL_K_FINISH,
  WL_K_MADE,
  WL_K_TEXT_BASES,
  WL_K_TEXT_COLUMN,
  WL_K_STAY,
  WL_N_KERNELS
} wl_kernel;

/* Queue 0 is for general use. The other queues run blocks of rows (exec/gpu/run_device.c). */
enum { WL_QUEUES = 9, WL_EVENTS = 8, WL_DEV_ALIGN = 512 };

typedef struct wl_device {
  const char *kind; /* "cuda" or "sim" */
  int index;        /* number of this device within the process */
  char name[128];
  char version[64]; /* of its driver and of the plugin's library, in words; empty: none */
  wl_i64 memory;        /* bytes on the device */
  wl_i64 free_memory;   /* bytes that were free when it was opened, minus a reserve */
  wl_i64 budget;        /* bytes of device memory that we may use; set for each wave of a run */
  wl_i64 used;          /* bytes of device memory in use */
  wl_i64 mapped_budget; /* bytes of mapped host memory that columns may use; set for each wave */
  wl_i64 mapped;        /* bytes of mapped host memory in use by columns */
  int queue;            /* the queue that calls use */
  int n_processors;
  int max_shared;     /* bytes of shared memory that a block may have */
  int block_threads;  /* threads of a block, if shared memory allows that many */
  int blocks_each;    /* blocks that a processor runs at once, at most */
  wl_i64 least_build; /* lookups over fewer rows are faster to build on the host */
  int least_tablets;  /* a scan is cut into launches of at least so many, if its rows leave */
  const char *lost;   /* atomic: why it can do nothing any more, or NULL. Any call may set it */
  void *impl;
  void *residents;    /* list of resident copies (exec/gpu/columns/devcol.c) */
  wl_i64 clock;       /* counts runs, for the last_use of resident copies */
  void *stage;        /* pinned buffers for copies (exec/gpu/columns/stage.c) */
  size_t n_stage;     /* bytes of each of those for copies to the device */
  wl_i64 n_in, n_out; /* bytes moved to the device and back so far */
  wl_i64 n_waits;     /* how often the host has waited for it so far */
  wl_status (*alloc)(struct wl_device *d, size_t n_bytes, void **out, wl_error *err);
  void (*free)(struct wl_device *d, void *p, size_t n_bytes);
  wl_status (*copy_in)(struct wl_device *d, void *to, const void *from, size_t n_bytes,
                       wl_error *err);
  wl_status (*copy_out)(struct wl_device *d, void *to, const void *from, size_t n_bytes,
                        wl_error *err);
  wl_status (*fill)(struct wl_device *d, void *p, int byte, size_t n_bytes, wl_error *err);
  /* Copies within the device. The two ranges do not overlap. */
  wl_status (*copy_on)(struct wl_device *d, void *to, const void *from, size_t n_bytes,
                       wl_error *err);
  wl_status (*launch)(struct wl_device *d, wl_kernel k, const void *args, size_t n_args,
                      unsigned grid, unsigned block, size_t n_shared, wl_error *err);
  /* sums[i] = in[0] + … + in[i - 1], for i in 0 … n. Does not read in[n]. */
  wl_status (*scan)(struct wl_device *d, const wl_u32 *in, wl_u64 *sums, wl_i64 n, wl_error *err);
  /* Stable sort of n pairs by the lowest n_bits of the keys. The input is in keys[0] and
  ** values[0]; the output is in keys[*at] and values[*at]. */
  wl_status (*sort)(struct wl_device *d, wl_u64 *keys[2], wl_u32 *values[2], wl_i64 n, int n_bits,
                    int *at, wl_error *err);
  wl_status (*copy_in_later)(struct wl_device *d, void *to, const void *from, size_t n_bytes,
                             wl_error *err);
  wl_status (*copy_out_later)(struct wl_device *d, void *to, const void *from, size_t n_bytes,
                              wl_error *err);
  /* What `queue` gets from now on begins after all that queue `other` has got so far. */
  wl_status (*follow)(struct wl_device *d, int other, wl_error *err);
  /* Waits until the queue is empty. */
  wl_status (*finish)(struct wl_device *d, wl_error *err);
  /* mark makes event 0 … WL_EVENTS - 1 stand for all work given to the queue so far; wait waits
  ** until that work is done. */
  wl_status (*mark)(struct wl_device *d, int event, wl_error *err);
  wl_status (*wait)(struct wl_device *d, int event, wl_error *err);
  /* Allocates pinned host memory that kernels can read. host_address gives the address that
  ** kernels use for it. */
  wl_status (*host_alloc)(struct wl_device *d, size_t n_bytes, void **out, wl_error *err);
  wl_status (*host_address)(struct wl_device *d, void *p, void **out, wl_error *err);
  void (*host_free)(struct wl_device *d, void *p);
  /* Frees it when all that the queue has got so far is done. */
  void (*host_free_later)(struct wl_device *d, void *p);
} wl_device;

/* Returns the process's device of a kind, and opens it on the first call. If there is none,
** returns NULL and puts the reason in err. */
wl_device *wl_device_get(const char *kind, wl_error *err);
/* The same, but does not wait: the first call starts a thread that opens it, and if it `measures`,
** finds the constants of CUDA next (wl_device_constants). Until it is open, *opening is true and the
** result NULL. */
wl_device *wl_device_ready(const char *kind, bool measures, bool *opening, wl_error *err);
/* Whether the constants of its prices are known; copies them. If it is not under way, a call for CUDA
** starts a thread that reads or measures them (calibrate.h); `again` measures in any case. Those of the
** simulator are the defaults. */
struct wl_constants;
bool wl_device_constants(wl_device *d, bool again, struct wl_constants *out);
/* The same without starting anything, and where they come from, in a word. */
const char *wl_device_constants_now(wl_device *d, struct wl_constants *out);
void wl_device_lock(wl_device *d);
void wl_device_unlock(wl_device *d);
/* Launches a kernel whose threads process n entries with a grid stride. */
wl_status wl_device_each(wl_device *d, wl_kernel k, const void *args, size_t n_args, wl_u64 n,
                         wl_error *err) WL_MUST;

/* The implementation of "sim" (exec/sim/device.c), and the function that a plugin exports. */
wl_status wl_device_open_sim(wl_device *d, wl_error *err);
typedef wl_status (*wl_device_open_fn)(wl_device *d, char *message, size_t n_message);

#ifdef __cplusplus
}
#endif
#endif
