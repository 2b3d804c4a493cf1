/*
** The CUDA plugin: the functions of wl_device, written with the CUDA runtime, and the kernels,
** compiled by nvcc. It is loaded at run time. No other part of warplite needs CUDA.
**
** Invariants:
** 1. There is one device, and one caller at a time (the core holds the device's lock). Each queue
**    has a stream, each mark an event.
** 2. Device memory comes from CUDA's stream-ordered pool, which does not return freed memory to
**    the driver, so that an allocation takes microseconds. Pinned host blocks are reused for the
**    same reason: pinning is slow. They are mapped, so that kernels can read them.
** 3. The pool never makes one stream wait for memory that another stream freed. A stream reuses
**    the memory that it freed itself.
*/
#include "exec/gpu/device.h"
#include "exec/gpu/kernels/kernels.h"
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>
#include <cuda_runtime.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

namespace {

struct pinned {
  void *p;
  size_t n;
  bool used;
  int until; /* it is free when this queue is finished; -1: that is not known yet */
};

struct cuda_impl {
  cudaStream_t streams[WL_QUEUES];
  cudaEvent_t events[WL_EVENTS], followed;
  cudaMemPool_t pool;
  pinned *blocks;
  int n_blocks, size_blocks;
  int n_later;   /* blocks with a queue in `until` */
  size_t n_idle; /* bytes pinned and not used */
};

const size_t idle_most = (size_t)4 << 30;

void set_error(wl_error *err, wl_status code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  if (err) {
    err->code = code;
    vsnprintf(err->text, sizeof err->text, fmt, ap);
  }
  va_end(ap);
}

wl_device *opened; /* the device of this plugin, when it is open */

/* After some errors (a kernel that ran too long or was killed, a failed memory cell, a driver that
** was reset) nothing works any more in this process. Then the device is lost. */
void note_loss(cudaError_t e) {
  static char why[160];
  if (!opened || __atomic_load_n(&opened->lost, __ATOMIC_ACQUIRE)) return;
  cudaError_t now = cudaDeviceSynchronize();
  if (now == cudaSuccess || now == cudaErrorMemoryAllocation) return;
  snprintf(why, sizeof why, "%s", cudaGetErrorString(e));
  __atomic_store_n(&opened->lost, (const char *)why, __ATOMIC_RELEASE);
}

/* Turns a CUDA result into a status: WL_FULL if memory ran out, else WL_NOT_TAKEN. */
wl_status check(cudaError_t e, const char *what, wl_error *err) {
  if (e == cudaSuccess) return WL_OK;
  cudaGetLastError();
  if (e != cudaErrorMemoryAllocation) note_loss(e);
  wl_status code = e == cudaErrorMemoryAllocation ? WL_FULL : WL_NOT_TAKEN;
  set_error(err, code, "CUDA cannot %s: %s", what, cudaGetErrorString(e));
  return code;
}

cuda_impl *impl(wl_device *d) {
  return (cuda_impl *)d->impl;
}

cudaStream_t stream_of(wl_device *d) {
  return impl(d)->streams[d->queue];
}

/* If there is no memory, waits until all streams have freed theirs, and tries again. */
wl_status cuda_alloc(wl_device *d, size_t n, void **out, wl_error *err) {
  cudaError_t e = cudaMallocAsync(out, n, stream_of(d));
  if (e == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    for (int k = 0; k < WL_QUEUES; k++) cudaStreamSynchronize(impl(d)->streams[k]);
    cudaMemPoolTrimTo(impl(d)->pool, 0);
    cudaGetLastError();
    e = cudaMallocAsync(out, n, stream_of(d));
  }
  return check(e, "allocate device memory", err);
}
/* CUB asks for the last error, so none may be left. */
void drop(wl_device *d, void *p) {
  if (cudaFreeAsync(p, stream_of(d))) cudaGetLastError();
}
void cuda_free(wl_device *d, void *p, size_t) {
  drop(d, p);
}

/* Returns a block to the list of free ones, or to the system if there are many. */
void free_block(cuda_impl *c, pinned *b) {
  b->used = false;
  c->n_idle += b->n;
  if (c->n_idle <= idle_most) return;
  c->n_idle -= b->n;
  if (cudaFreeHost(b->p)) cudaGetLastError();
  *b = c->blocks[--c->n_blocks];
}

wl_status finish(wl_device *d, const char *what, wl_error *err) {
  cuda_impl *c = impl(d);
  d->n_waits++;
  wl_status rc = check(cudaStreamSynchronize(stream_of(d)), what, err);
  for (int i = c->n_blocks - 1; i >= 0 && c->n_later; i--) {
    if (c->blocks[i].until != d->queue) continue;
    c->blocks[i].until = -1;
    c->n_later--;
    free_block(c, &c->blocks[i]);
  }
  return rc;
}
wl_status cuda_finish(wl_device *d, wl_error *err) {
  return finish(d, "run the kernel", err);
}
/* The wait refers to what the event stands for now. It may be used again at once. */
wl_status cuda_follow(wl_device *d, int other, wl_error *err) {
  cuda_impl *c = impl(d);
  cudaError_t e = cudaEventRecord(c->followed, c->streams[other]);
  if (!e) e = cudaStreamWaitEvent(stream_of(d), c->followed, 0);
  return check(e, "order two queues", err);
}
wl_status cuda_mark(wl_device *d, int event, wl_error *err) {
  return check(cudaEventRecord(impl(d)->events[event], stream_of(d)), "mark a copy", err);
}
wl_status cuda_wait(wl_device *d, int event, wl_error *err) {
  d->n_waits++;
  return check(cudaEventSynchronize(impl(d)->events[event]), "wait for a copy", err);
}

/* From pinned memory. */
wl_status cuda_copy_in_later(wl_device *d, void *to, const void *from, size_t n, wl_error *err) {
  if (n == 0) return WL_OK;
  return check(cudaMemcpyAsync(to, from, n, cudaMemcpyHostToDevice, stream_of(d)),
               "copy to the device", err);
}
wl_status cuda_copy_out(wl_device *d, void *to, const void *from, size_t n, wl_error *err) {
  if (n == 0) return WL_OK;
  wl_status rc = check(cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToHost, stream_of(d)),
                       "copy from the device", err);
  return rc ? rc : finish(d, "run the kernel", err);
}
wl_status cuda_copy_out_later(wl_device *d, void *to, const void *from, size_t n, wl_error *err) {
  if (n == 0) return WL_OK;
  return check(cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToHost, stream_of(d)),
               "copy from the device", err);
}
wl_status cuda_copy_on(wl_device *d, void *to, const void *from, size_t n, wl_error *err) {
  if (n == 0) return WL_OK;
  return check(cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToDevice, stream_of(d)),
               "copy on the device", err);
}
wl_status cuda_fill(wl_device *d, void *p, int byte, size_t n, wl_error *err) {
  return check(cudaMemsetAsync(p, byte, n, stream_of(d)), "fill device memory", err);
}

/* No default: the compiler says if one is missing (-Werror=switch). */
const void *kernel_of(wl_kernel k) {
  switch (k) {
  case WL_K_INTERP_NUMBERS: return (const void *)wl_interp_numbers;
  case WL_K_INTERP: return (const void *)wl_interp;
  case WL_K_INTERP_LONG: return (const void *)wl_interp_long;
  case WL_K_GROUP_LONG: return (const void *)wl_group_long;
  case WL_K_GROUP_SETS: return (const void *)wl_group_sets;
  case WL_K_GROUP_SETS_LONG: return (const void *)wl_group_sets_long;
  case WL_K_EXPAND: return (const void *)wl_expand;
  case WL_K_ROUND: return (const void *)wl_round;
  case WL_K_MAKE_LISTS: return (const void *)wl_lists;
  case WL_K_GATHER: return (const void *)wl_gather;
  case WL_K_TILES: return (const void *)wl_tiles;
  case WL_K_PACK: return (const void *)wl_pack_rows;
  case WL_K_GROUP_NUMBERS: return (const void *)wl_group_numbers;
  case WL_K_GROUP: return (const void *)wl_group;
  case WL_K_GROUP_PACK: return (const void *)wl_group_pack;
  case WL_K_ORDER_KEYS: return (const void *)wl_order_keys;
  case WL_K_ORDER_FIRST: return (const void *)wl_order_first;
  case WL_K_ORDER_KEPT: return (const void *)wl_order_kept;
  case WL_K_ORDER_PERMUTE: return (const void *)wl_order_permute;
  case WL_K_TIES_SKIP: return (const void *)wl_ties_skip;
  case WL_K_TIES_WORDS: return (const void *)wl_ties_words;
  case WL_K_TIES_RUNS: return (const void *)wl_ties_runs;
  case WL_K_TIES_SPLIT: return (const void *)wl_ties_split;
  case WL_K_TIES_NEXT: return (const void *)wl_ties_next;
  case WL_K_FINISH_KEEP: return (const void *)wl_finish_keep;
  case WL_K_FINISH_WORDS: return (const void *)wl_finish_words;
  case WL_K_FINISH: return (const void *)wl_finish;
  case WL_K_MADE: return (const void *)wl_made;
  case WL_K_TEXT_BASES: return (const void *)wl_text_bases;
  case WL_K_TEXT_COLUMN: return (const void *)wl_text_values;
  case WL_K_STAY: return (const void *)wl_stay;
  case WL_N_KERNELS: break;
  }
  return nullptr;
}

/* Kernels with dynamic shared memory. A block may use all that it can have for it. */
const wl_kernel with_shared[] = {WL_K_INTERP_NUMBERS, WL_K_INTERP,         WL_K_INTERP_LONG,
                                 WL_K_GROUP_NUMBERS,  WL_K_GROUP,          WL_K_GROUP_LONG,
                                 WL_K_GROUP_SETS,     WL_K_GROUP_SETS_LONG};

/* The kernel's signature says how many bytes of args it takes. */
wl_status cuda_launch(wl_device *d, wl_kernel k, const void *args, size_t, unsigned grid,
                      unsigned block, size_t n_shared, wl_error *err) {
  void *all[] = {(void *)args};
  return check(cudaLaunchKernel(kernel_of(k), dim3(grid), dim3(block), all, n_shared, stream_of(d)),
               "launch the kernel", err);
}

/* The first sum is 0, the others are sums up to and including an element. So in[n], which may be
** behind the end of its memory, is not read. */
wl_status cuda_scan(wl_device *d, const wl_u32 *in, wl_u64 *sums, wl_i64 n, wl_error *err) {
  size_t n_temp = 0;
  void *temp = nullptr;
  cudaStream_t stream = stream_of(d);
  const auto plus = cuda::std::plus<wl_u64>();
  const wl_u64 zero = 0;
  wl_status rc = check(cudaMemsetAsync(sums, 0, sizeof *sums, stream), "scan", err);
  if (rc || n == 0) return rc;
  rc = check(
      cub::DeviceScan::InclusiveScanInit(nullptr, n_temp, in, sums + 1, plus, zero, n, stream),
      "scan", err);
  if (!rc) rc = check(cudaMallocAsync(&temp, n_temp, stream), "allocate device memory", err);
  if (rc) return rc;
  rc = check(cub::DeviceScan::InclusiveScanInit(temp, n_temp, in, sums + 1, plus, zero, n, stream),
             "scan", err);
  drop(d, temp);
  return rc;
}

/* The caller provides both halves of each double buffer, so CUB needs little extra memory. */
wl_status cuda_sort(wl_device *d, wl_u64 *keys[2], wl_u32 *values[2], wl_i64 n, int n_bits, int *at,
                    wl_error *err) {
  size_t n_temp = 0;
  void *temp = nullptr;
  cudaStream_t stream = stream_of(d);
  cub::DoubleBuffer<wl_u64> k(keys[0], keys[1]);
  cub::DoubleBuffer<wl_u32> v(values[0], values[1]);
  *at = 0;
  if (n == 0 || n_bits == 0) return WL_OK;
  wl_status rc = check(cub::DeviceRadixSort::SortPairs(nullptr, n_temp, k, v, n, 0, n_bits, stream),
                       "sort", err);
  if (!rc) rc = check(cudaMallocAsync(&temp, n_temp, stream), "allocate device memory", err);
  if (rc) return rc;
  rc =
      check(cub::DeviceRadixSort::SortPairs(temp, n_temp, k, v, n, 0, n_bits, stream), "sort", err);
  drop(d, temp);
  /* In each pass, keys and values move to the other buffer together. */
  if (!rc && k.selector != v.selector) {
    set_error(err, WL_NOT_TAKEN, "CUDA cannot sort: keys and values are in different buffers");
    return WL_NOT_TAKEN;
  }
  *at = k.selector;
  return rc;
}

/* Returns an idle block that is large enough and at most twice as large as needed, or a new one. */
wl_status cuda_host_alloc(wl_device *d, size_t n, void **out, wl_error *err) {
  cuda_impl *c = impl(d);
  size_t size = 1 << 16;
  while (size < n) size = size < ((size_t)64 << 20) ? size * 2 : size + ((size_t)64 << 20);
  for (int i = 0; i < c->n_blocks; i++) {
    pinned *b = &c->blocks[i];
    if (b->used || b->n < size || b->n > 2 * size) continue;
    b->used = true;
    c->n_idle -= b->n;
    *out = b->p;
    return WL_OK;
  }
  wl_status rc = check(cudaHostAlloc(out, size, cudaHostAllocMapped), "pin host memory", err);
  if (rc) return rc;
  if (c->n_blocks == c->size_blocks) {
    int more = c->size_blocks ? c->size_blocks * 2 : 64;
    pinned *p = (pinned *)realloc(c->blocks, (size_t)more * sizeof *p);
    if (!p) {
      cudaFreeHost(*out);
      set_error(err, WL_NOMEM, "out of memory");
      return WL_NOMEM;
    }
    c->blocks = p;
    c->size_blocks = more;
  }
  pinned b = {*out, size, true, -1};
  c->blocks[c->n_blocks++] = b;
  return WL_OK;
}

wl_status cuda_host_address(wl_device *, void *p, void **out, wl_error *err) {
  return check(cudaHostGetDevicePointer(out, p, 0), "map host memory", err);
}

pinned *block_of(cuda_impl *c, const void *p) {
  for (int i = 0; p && i < c->n_blocks; i++)
    if (c->blocks[i].p == p) return &c->blocks[i];
  return nullptr;
}
void cuda_host_free(wl_device *d, void *p) {
  pinned *b = block_of(impl(d), p);
  if (b) free_block(impl(d), b);
}
void cuda_host_free_later(wl_device *d, void *p) {
  pinned *b = block_of(impl(d), p);
  if (!b) return;
  const int most = 64; /* blocks of statements that never waited for this queue */
  b->until = d->queue;
  if (++impl(d)->n_later < most) return;
  wl_error ignored;
  (void)finish(d, "run the kernel", &ignored);
}

/* The caller may change or free the source at once. CUDA does not promise that for memory that is
** not pinned: where the device can read such memory itself, it may do so later. So few bytes go
** through a pinned block, and for more this waits. */
wl_status cuda_copy_in(wl_device *d, void *to, const void *from, size_t n, wl_error *err) {
  const size_t few = (size_t)1 << 16;
  void *block = nullptr;
  if (n == 0) return WL_OK;
  if (n > few) {
    wl_status rc = cuda_copy_in_later(d, to, from, n, err);
    return rc ? rc : finish(d, "copy to the device", err);
  }
  wl_status rc = cuda_host_alloc(d, n, &block, err);
  if (rc) return rc;
  memcpy(block, from, n);
  rc = cuda_copy_in_later(d, to, block, n, err);
  cuda_host_free_later(d, block);
  return rc;
}

} // namespace

extern "C" __attribute__((visibility("default"))) wl_status
wl_device_open_cuda(wl_device *d, char *message, size_t n_message) {
  int n = 0, driver = 0;
  cudaDriverGetVersion(&driver);
  cudaError_t e = cudaGetDeviceCount(&n);
  if (e == cudaErrorInsufficientDriver && driver == 0) {
    snprintf(message, n_message, "there is no CUDA driver");
    return WL_NOT_TAKEN;
  }
  if (e == cudaErrorInsufficientDriver) {
    snprintf(message, n_message,
             "the CUDA driver is too old: it supports CUDA %d.%d, and %d.%d is needed",
             driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    return WL_NOT_TAKEN;
  }
  if (e != cudaSuccess || n == 0) {
    snprintf(message, n_message, "there is no CUDA device (%s)",
             e ? cudaGetErrorString(e) : "none is installed");
    return WL_NOT_TAKEN;
  }
  cudaDeviceProp prop;
  cuda_impl *c = (cuda_impl *)calloc(1, sizeof *c);
  e = c ? cudaGetDeviceProperties(&prop, 0) : cudaErrorMemoryAllocation;
  if (!e) e = cudaSetDevice(0);
  for (int k = 0; k < WL_QUEUES && !e; k++)
    e = cudaStreamCreateWithFlags(&c->streams[k], cudaStreamNonBlocking);
  for (int k = 0; k < WL_EVENTS && !e; k++)
    e = cudaEventCreateWithFlags(&c->events[k], cudaEventDisableTiming);
  if (!e) e = cudaEventCreateWithFlags(&c->followed, cudaEventDisableTiming);
  size_t free_bytes = 0, all_bytes = 0;
  if (!e) e = cudaMemGetInfo(&free_bytes, &all_bytes);
  unsigned long long keep = ~0ULL;
  int no = 0;
  if (!e) e = cudaDeviceGetDefaultMemPool(&c->pool, 0);
  if (!e) e = cudaMemPoolSetAttribute(c->pool, cudaMemPoolAttrReleaseThreshold, &keep);
  if (!e) e = cudaMemPoolSetAttribute(c->pool, cudaMemPoolReuseAllowInternalDependencies, &no);
  int shared = 0;
  if (!e) e = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  for (wl_kernel k : with_shared)
    if (!e) e = cudaFuncSetAttribute(kernel_of(k), attribute, shared);
  if (e) {
    snprintf(message, n_message, "the CUDA device cannot be opened: %s", cudaGetErrorString(e));
    free(c);
    return WL_NOT_TAKEN;
  }
  d->impl = c;
  snprintf(d->name, sizeof d->name, "%.*s", (int)sizeof d->name - 1, prop.name);
  snprintf(d->version, sizeof d->version, "driver %d, runtime %d", driver, CUDART_VERSION);
  d->memory = (wl_i64)all_bytes;
  d->free_memory = d->budget = (wl_i64)(free_bytes / 10 * 9);
  d->n_processors = prop.multiProcessorCount;
  d->max_shared = shared;
  d->block_threads = 256;
  d->blocks_each = 8;
  d->least_build = 1024;
  d->least_tablets = 12;
  d->n_stage = (size_t)16 << 20;
  d->alloc = cuda_alloc;
  d->free = cuda_free;
  d->copy_in = cuda_copy_in;
  d->copy_out = cuda_copy_out;
  d->fill = cuda_fill;
  d->copy_on = cuda_copy_on;
  d->launch = cuda_launch;
  d->scan = cuda_scan;
  d->sort = cuda_sort;
  d->copy_in_later = cuda_copy_in_later;
  d->copy_out_later = cuda_copy_out_later;
  d->follow = cuda_follow;
  d->finish = cuda_finish;
  d->mark = cuda_mark;
  d->wait = cuda_wait;
  d->host_alloc = cuda_host_alloc;
  d->host_address = cuda_host_address;
  d->host_free = cuda_host_free;
  d->host_free_later = cuda_host_free_later;
  opened = d;
  return WL_OK;
}
