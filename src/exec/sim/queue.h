/*
** The queues of a simulated device. A real device does what it is asked for later, and in an order
** between its queues that nobody knows. So here, too, work waits in its queue until something asks
** for its result, or until chance lets it run. A program that forgets to wait, that frees or
** overwrites what waiting work still reads, or that uses in one queue what another one has not made
** yet, gets wrong rows, and a sanitizer sees the access.
**
** Invariants:
** 1. Work of one queue runs in order. Work that follows another queue runs after what that queue
**    had got before.
** 2. Nothing else is promised. A seed decides which work runs before it must, so a run can be
**    repeated.
** 3. Fresh memory, and the beginning of freed memory, is overwritten when the queue gets there.
*/
#ifndef WL_SIM_QUEUE_H
#define WL_SIM_QUEUE_H

#include "exec/gpu/device.h"

typedef struct wl_sim_queues wl_sim_queues;

typedef enum wl_sim_kind {
  WL_SIM_COPY,
  WL_SIM_FILL,
  WL_SIM_LAUNCH,
  WL_SIM_SCAN,
  WL_SIM_SORT,
  WL_SIM_FREE,      /* of device memory */
  WL_SIM_FREE_HOST, /* of host memory */
  WL_SIM_FOLLOW
} wl_sim_kind;

/* One piece of work. */
typedef struct wl_sim_work {
  wl_sim_kind kind;
  void *to;         /* of FREE and FREE_HOST: the memory */
  const void *from; /* of SCAN: the counts */
  size_t n;         /* bytes; of SCAN and SORT: entries */
  void *owned;      /* memory to free afterwards: a copy of `from`, or the arguments */
  int byte;         /* FILL */
  void (*kernel)(const void *args);
  unsigned grid, block;
  size_t n_shared;
  wl_u64 *keys[2]; /* SORT */
  wl_u32 *values[2];
  int n_bits;
  int queue;    /* FOLLOW: this queue … */
  wl_u64 until; /* … up to here */
} wl_sim_work;

/* Where SORT leaves its result: 0 or 1. */
static inline int wl_sim_sorted_at(int n_bits) {
  return (n_bits + 7) / 8 & 1;
}

wl_sim_queues *wl_sim_queues_open(void); /* NULL: out of memory */
/* Appends work to a queue, and may run some. */
wl_status wl_sim_add(wl_sim_queues *q, int queue, const wl_sim_work *w, wl_error *err) WL_MUST;
/* The number of pieces that a queue has got so far. */
wl_u64 wl_sim_end(const wl_sim_queues *q, int queue);
/* Runs a queue up to that number, and what must run before, and perhaps more. Returns the first
** error of its kernels since the last call. */
wl_status wl_sim_run(wl_sim_queues *q, int queue, wl_u64 until, wl_error *err) WL_MUST;
/* Runs everything. */
void wl_sim_run_all(wl_sim_queues *q);
/* Bytes of device memory that are allocated, with those whose turn to be freed has not come. */
wl_i64 wl_sim_held(const wl_sim_queues *q);
void wl_sim_hold(wl_sim_queues *q, size_t n);

#endif
