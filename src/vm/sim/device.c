/*
** The simulated device: host memory for device memory, fibers for GPU threads, plain loops
** for the library calls. Each launch is shuffled by another seed.
*/
#include "vm/gpu/device.h"
#include "vm/gpu/kernels.h"
#include "vm/sim/launch.h"
#include "base/mem.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_uint launches;

static wl_status sim_alloc(wl_device *d, size_t n, void **out, wl_error *err) {
  (void)d;
  *out = wl_mem_alloc(n);
  if (!*out) return wl_nomem(err);
  memset(*out, 0xa5, n); /* device memory comes with whatever was in it */
  return WL_OK;
}
static void sim_free(wl_device *d, void *p, size_t n) {
  (void)d;
  (void)n;
  wl_mem_free(p);
}
static wl_status sim_copy(wl_device *d, void *to, const void *from, size_t n, wl_error *err) {
  (void)d;
  (void)err;
  if (n) memcpy(to, from, n);
  return WL_OK;
}
static wl_status sim_clear(wl_device *d, void *p, size_t n, wl_error *err) {
  (void)d;
  (void)err;
  memset(p, 0, n);
  return WL_OK;
}
static wl_status sim_launch(wl_device *d, wl_kernel k, const void *args, size_t n_args,
                            unsigned grid, unsigned block, size_t n_shared, wl_error *err) {
  static void (*const kernels[WL_N_KERNELS])(const void *) = {
      [WL_K_INTERP] = wl_interp,         [WL_K_GATHER] = wl_gather,
      [WL_K_GROUP] = wl_group,           [WL_K_GROUP_PACK] = wl_group_pack,
      [WL_K_ORDER_KEYS] = wl_order_keys, [WL_K_ORDER_FIRST] = wl_order_first,
      [WL_K_ORDER_KEPT] = wl_order_kept, [WL_K_ORDER_PERMUTE] = wl_order_permute,
  };
  (void)d;
  (void)n_args;
  return wl_sim_launch(kernels[k], args, grid, block, n_shared, atomic_fetch_add(&launches, 1) + 1,
                       err);
}
static wl_status sim_scan(wl_device *d, const wl_u32 *in, wl_u64 *sums, wl_i64 n, wl_error *err) {
  (void)d;
  (void)err;
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
  (void)d;
  (void)err;
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
  *out = wl_mem_alloc(n);
  return *out ? WL_OK : wl_nomem(err);
}
static void sim_host_free(wl_device *d, void *p) {
  (void)d;
  wl_mem_free(p);
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
  d->alloc = sim_alloc;
  d->free = sim_free;
  d->copy_in = sim_copy;
  d->copy_out = sim_copy;
  d->clear = sim_clear;
  d->launch = sim_launch;
  d->scan = sim_scan;
  d->sort = sim_sort;
  d->host_alloc = sim_host_alloc;
  d->host_free = sim_host_free;
  return WL_OK;
}
