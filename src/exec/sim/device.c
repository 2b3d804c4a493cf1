/*
** The simulated device. Host memory serves as device memory, fibers serve as GPU threads, and
** plain loops replace the library calls. Each launch uses a different seed for its scheduling.
*/
#include "exec/gpu/device.h"
#include "exec/gpu/kernels/kernels.h"
#include "exec/sim/launch.h"
#include "base/mem.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_uint launches;

/* Copies that were requested but not done yet. They are done as late as the interface allows, so
** that tests notice a missing wait. */
enum { MOST_PENDING = 32 };
typedef struct pending {
  int n;
  struct {
    void *to;
    const void *from;
    size_t n;
  } copies[MOST_PENDING];
  int n_freed;
  void *freed[MOST_PENDING]; /* host memory that the copies may read */
} pending;

static pending queues[WL_QUEUES];

static void flush(int queue) {
  pending *p = &queues[queue];
  for (int k = 0; k < p->n; k++) memcpy(p->copies[k].to, p->copies[k].from, p->copies[k].n);
  for (int k = 0; k < p->n_freed; k++) wl_mem_free(p->freed[k]);
  p->n = p->n_freed = 0;
}

static wl_status sim_alloc(wl_device *d, size_t n, void **out, wl_error *err) {
  (void)d;
  *out = wl_mem_alloc(n);
  if (!*out) return wl_nomem(err);
  memset(*out, 0xa5, n); /* fresh device memory is not zero */
  return WL_OK;
}
static void sim_free(wl_device *d, void *p, size_t n) {
  (void)n;
  flush(d->queue);
  wl_mem_free(p);
}
static wl_status sim_copy(wl_device *d, void *to, const void *from, size_t n, wl_error *err) {
  (void)err;
  flush(d->queue);
  if (n) memcpy(to, from, n);
  return WL_OK;
}
static wl_status sim_copy_out(wl_device *d, void *to, const void *from, size_t n, wl_error *err) {
  d->n_waits++;
  return sim_copy(d, to, from, n, err);
}
static wl_status sim_copy_later(wl_device *d, void *to, const void *from, size_t n, wl_error *err) {
  (void)err;
  pending *p = &queues[d->queue];
  if (p->n == MOST_PENDING) flush(d->queue);
  if (!n) return WL_OK;
  p->copies[p->n].to = to;
  p->copies[p->n].from = from;
  p->copies[p->n++].n = n;
  return WL_OK;
}
static wl_status sim_follow(wl_device *d, int other, wl_error *err) {
  (void)d;
  (void)err;
  flush(other);
  return WL_OK;
}
static wl_status sim_finish(wl_device *d, wl_error *err) {
  (void)err;
  d->n_waits++;
  flush(d->queue);
  return WL_OK;
}
/* For each event, the queue in which it was marked. */
static int marks[WL_EVENTS];
static wl_status sim_mark(wl_device *d, int event, wl_error *err) {
  (void)err;
  marks[event] = d->queue;
  return WL_OK;
}
static wl_status sim_wait(wl_device *d, int event, wl_error *err) {
  (void)err;
  d->n_waits++;
  flush(marks[event]);
  return WL_OK;
}
static wl_status sim_copy_on(wl_device *d, void *to, const void *from, size_t n, wl_error *err) {
  (void)err;
  flush(d->queue);
  if (n) memcpy(to, from, n);
  return WL_OK;
}
static wl_status sim_fill(wl_device *d, void *p, int byte, size_t n, wl_error *err) {
  (void)err;
  flush(d->queue);
  memset(p, byte, n);
  return WL_OK;
}
static wl_status sim_launch(wl_device *d, wl_kernel k, const void *args, size_t n_args,
                            unsigned grid, unsigned block, size_t n_shared, wl_error *err) {
  static void (*const kernels[WL_N_KERNELS])(const void *) = {
      [WL_K_INTERP_NUMBERS] = wl_interp_numbers,
      [WL_K_INTERP] = wl_interp,
      [WL_K_EXPAND] = wl_expand,
      [WL_K_ROUND] = wl_round,
      [WL_K_MAKE_LISTS] = wl_lists,
      [WL_K_GATHER] = wl_gather,
      [WL_K_TILES] = wl_tiles,
      [WL_K_GROUP_NUMBERS] = wl_group_numbers,
      [WL_K_GROUP] = wl_group,
      [WL_K_GROUP_PACK] = wl_group_pack,
      [WL_K_ORDER_KEYS] = wl_order_keys,
      [WL_K_ORDER_FIRST] = wl_order_first,
      [WL_K_ORDER_KEPT] = wl_order_kept,
      [WL_K_ORDER_PERMUTE] = wl_order_permute,
      [WL_K_TIES_SKIP] = wl_ties_skip,
      [WL_K_TIES_WORDS] = wl_ties_words,
      [WL_K_TIES_RUNS] = wl_ties_runs,
      [WL_K_TIES_SPLIT] = wl_ties_split,
      [WL_K_TIES_NEXT] = wl_ties_next,
      [WL_K_FINISH_KEEP] = wl_finish_keep,
      [WL_K_FINISH_WORDS] = wl_finish_words,
      [WL_K_FINISH] = wl_finish,
      [WL_K_MADE] = wl_made,
      [WL_K_TEXT_BASES] = wl_text_bases,
      [WL_K_TEXT_COLUMN] = wl_text_values,
      [WL_K_STAY] = wl_stay,
      [WL_K_INTERP_LONG] = wl_interp_long,
      [WL_K_GROUP_LONG] = wl_group_long,
      [WL_K_GROUP_SETS] = wl_group_sets,
      [WL_K_GROUP_SETS_LONG] = wl_group_sets_long,
  };
  (void)n_args;
  flush(d->queue);
  return wl_sim_launch(kernels[k], args, grid, block, n_shared, atomic_fetch_add(&launches, 1) + 1,
                       err);
}
static wl_status sim_scan(wl_device *d, const wl_u32 *in, wl_u64 *sums, wl_i64 n, wl_error *err) {
  (void)err;
  flush(d->queue);
  wl_u64 s = 0;
  for (wl_i64 i = 0; i < n; i++) {
    sums[i] = s;
    s += in[i];
  }
  sums[n] = s;
  return WL_OK;
}
static wl_status sim_sort(wl_device *d, wl_u64 *keys[2], wl_u32 *values[2], wl_i64 n, int n_bits,
                          int *at, wl_error *err) {
  (void)err;
  flush(d->queue);
  *at = 0;
  for (int shift = 0; shift < n_bits; shift += 8) {
    int bits = n_bits - shift < 8 ? n_bits - shift : 8, from = *at;
    wl_u64 counts[257] = {0}, mask = (1u << bits) - 1;
    for (wl_i64 i = 0; i < n; i++) counts[(keys[from][i] >> shift & mask) + 1]++;
    for (int k = 0; k < 256; k++) counts[k + 1] += counts[k];
    for (wl_i64 i = 0; i < n; i++) {
      wl_u64 to = counts[keys[from][i] >> shift & mask]++;
      keys[!from][to] = keys[from][i];
      values[!from][to] = values[from][i];
    }
    *at = !from;
  }
  return WL_OK;
}
static wl_status sim_host_alloc(wl_device *d, size_t n, void **out, wl_error *err) {
  (void)d;
  *out = wl_mem_alloc((n + WL_DEV_ALIGN) & ~(size_t)(WL_DEV_ALIGN - 1));
  return *out ? WL_OK : wl_nomem(err);
}
static wl_status sim_host_address(wl_device *d, void *p, void **out, wl_error *err) {
  (void)d;
  (void)err;
  *out = p;
  return WL_OK;
}
static void sim_host_free(wl_device *d, void *p) {
  (void)d;
  wl_mem_free(p);
}
static void sim_host_free_later(wl_device *d, void *p) {
  pending *q = &queues[d->queue];
  if (q->n_freed == MOST_PENDING) flush(d->queue);
  q->freed[q->n_freed++] = p;
}

wl_status wl_device_open_sim(wl_device *d, wl_error *err) {
  (void)err;
  snprintf(d->name, sizeof d->name, "simulator");
  d->memory = (wl_i64)1 << 30;
  d->free_memory = d->budget = d->memory;
  d->n_processors = 2;
  d->max_shared = 96 * 1024;
  d->block_threads = 64;
  d->blocks_each = 2;
  d->least_build = 1;
  d->n_stage = 100 * 1024; /* small, so that a column needs several buffers */
  d->alloc = sim_alloc;
  d->free = sim_free;
  d->copy_in = sim_copy;
  d->copy_out = sim_copy_out;
  d->fill = sim_fill;
  d->copy_on = sim_copy_on;
  d->launch = sim_launch;
  d->scan = sim_scan;
  d->sort = sim_sort;
  d->copy_in_later = sim_copy_later;
  d->copy_out_later = sim_copy_later;
  d->follow = sim_follow;
  d->finish = sim_finish;
  d->mark = sim_mark;
  d->wait = sim_wait;
  d->host_alloc = sim_host_alloc;
  d->host_address = sim_host_address;
  d->host_free = sim_host_free;
  d->host_free_later = sim_host_free_later;
  return WL_OK;
}
