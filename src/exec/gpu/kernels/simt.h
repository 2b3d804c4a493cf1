/*
** The only functions of the machine that a kernel may use: thread numbers, the block's barrier and
** shared memory, warp votes and shuffles, atomics, waiting. Under nvcc they map to CUDA
** intrinsics. Under a C11 compiler they map to the simulator in exec/sim, where every GPU thread is
** a fiber. Kernel files are written in the common subset of C11 and CUDA C++.
**
** Invariants:
** 1. Grids and blocks have one dimension; a block is 32 to 1024 threads, a multiple of
**    32; a warp is 32 consecutive threads of it.
** 2. Every lane of a warp that has not returned from the kernel takes part in each warp
**    operation, and every such thread of a block in each barrier of the block. A lane that has
**    returned votes 0 and has no value to shuffle.
** 3. Lanes of a warp do not run in lockstep. A lane may read what another lane wrote only after a
**    barrier (block or warp) or through acquire and release. Votes, shuffles and atomics order
**    nothing. What other threads may change at the same time is read and written by atomics,
**    simt_load and simt_store only: other loads may find old bytes in a cache, or be done once for
**    all. ThreadSanitizer sees each thread of the simulator as a thread, and reports what breaks
**    this rule.
** 4. A loop that waits for another thread calls simt_spin() in every iteration. It waits only for
**    blocks that have already started, so block numbers come from a ticket and not from
**    simt_bid(). The simulator reports other waits as a deadlock.
*/
#ifndef WL_SIMT_H
#define WL_SIMT_H

#include "value/types.h"

#define SIMT_WARP 32u

/*
** WL_FN         begins a function called from kernels
** WL_TABLE      begins a constant table read by kernels
** WL_KERNEL(k)  begins the definition of kernel k; its body has the parameter
**               const wl_kargs *args, and the file has declared the struct wl_kargs
** WL_KERNEL_OF(k, type, n)  the same for another argument struct, and for at most n
**               threads per block, which lets nvcc give each thread more registers
** WL_KERNEL_DECLARE(k, type)  declares a kernel that another file defines
*/
#ifdef __CUDACC__

typedef bool wl_simt_bool;

#define WL_FN    static __device__ __forceinline__
#define WL_TABLE static __device__ const

#define WL_KERNEL_BOUNDED(name, type, bounds)                                                      \
  static __device__ __forceinline__ void name##_body(const type *args);                            \
  extern "C" __global__ void bounds name(const __grid_constant__ type name##_args) {               \
    name##_body(&name##_args);                                                                     \
  }                                                                                                \
  static __device__ __forceinline__ void name##_body(const type *args)
#define WL_KERNEL(name)               WL_KERNEL_BOUNDED(name, wl_kargs, )
#define WL_KERNEL_OF(name, type, n)   WL_KERNEL_BOUNDED(name, type, __launch_bounds__(n))
#define WL_KERNEL_DECLARE(name, type) extern "C" __global__ void name(const type)

#define WL_SIMT_ALL_LANES 0xffffffffu

WL_FN wl_u32 simt_tid(void) {
  return threadIdx.x;
}
WL_FN wl_u32 simt_bid(void) {
  return blockIdx.x;
}
WL_FN wl_u32 simt_bdim(void) {
  return blockDim.x;
}
WL_FN wl_u32 simt_gdim(void) {
  return gridDim.x;
}

WL_FN unsigned char *simt_shared(void) {
  extern __shared__ __align__(16) unsigned char wl_simt_shared[];
  return wl_simt_shared;
}

WL_FN void simt_barrier(void) {
  __syncthreads();
}
WL_FN void simt_warp_barrier(void) {
  __syncwarp(WL_SIMT_ALL_LANES);
}

WL_FN wl_u32 simt_ballot(wl_simt_bool p) {
  return __ballot_sync(WL_SIMT_ALL_LANES, p);
}
WL_FN wl_simt_bool simt_any(wl_simt_bool p) {
  return __any_sync(WL_SIMT_ALL_LANES, p) != 0;
}
WL_FN wl_simt_bool simt_all(wl_simt_bool p) {
  return __all_sync(WL_SIMT_ALL_LANES, p) != 0;
}

WL_FN wl_u32 simt_shfl_u32(wl_u32 v, wl_u32 src_lane) {
  return __shfl_sync(WL_SIMT_ALL_LANES, v, (int)(src_lane & 31u));
}
WL_FN wl_u64 simt_shfl_u64(wl_u64 v, wl_u32 src_lane) {
  return __shfl_sync(WL_SIMT_ALL_LANES, v, (int)(src_lane & 31u));
}
WL_FN wl_u32 simt_shfl_up_u32(wl_u32 v, wl_u32 delta) {
  return __shfl_up_sync(WL_SIMT_ALL_LANES, v, delta);
}
WL_FN wl_u64 simt_shfl_up_u64(wl_u64 v, wl_u32 delta) {
  return __shfl_up_sync(WL_SIMT_ALL_LANES, v, delta);
}
WL_FN wl_u32 simt_shfl_down_u32(wl_u32 v, wl_u32 delta) {
  return __shfl_down_sync(WL_SIMT_ALL_LANES, v, delta);
}
WL_FN wl_u64 simt_shfl_down_u64(wl_u64 v, wl_u32 delta) {
  return __shfl_down_sync(WL_SIMT_ALL_LANES, v, delta);
}
WL_FN wl_u32 simt_shfl_xor_u32(wl_u32 v, wl_u32 mask) {
  return __shfl_xor_sync(WL_SIMT_ALL_LANES, v, (int)(mask & 31u));
}
WL_FN wl_u64 simt_shfl_xor_u64(wl_u64 v, wl_u32 mask) {
  return __shfl_xor_sync(WL_SIMT_ALL_LANES, v, (int)(mask & 31u));
}

WL_FN wl_u32 simt_atomic_add_u32(wl_u32 *p, wl_u32 v) {
  return atomicAdd(p, v);
}
WL_FN wl_u64 simt_atomic_add_u64(wl_u64 *p, wl_u64 v) {
  return atomicAdd(p, v);
}
WL_FN wl_u32 simt_atomic_max_u32(wl_u32 *p, wl_u32 v) {
  return atomicMax(p, v);
}
WL_FN wl_u32 simt_atomic_min_u32(wl_u32 *p, wl_u32 v) {
  return atomicMin(p, v);
}
WL_FN wl_u32 simt_atomic_or_u32(wl_u32 *p, wl_u32 v) {
  return atomicOr(p, v);
}
WL_FN wl_u64 simt_atomic_max_u64(wl_u64 *p, wl_u64 v) {
  return atomicMax(p, v);
}
WL_FN wl_u64 simt_atomic_cas_u64(wl_u64 *p, wl_u64 expected, wl_u64 desired) {
  return atomicCAS(p, expected, desired);
}
WL_FN wl_u64 simt_atomic_cas_release_u64(wl_u64 *p, wl_u64 expected, wl_u64 desired) {
  wl_u64 old;
  asm volatile("atom.release.gpu.cas.b64 %0, [%1], %2, %3;"
               : "=l"(old)
               : "l"(p), "l"(expected), "l"(desired)
               : "memory");
  return old;
}

WL_FN wl_u32 simt_load_u32(const wl_u32 *p) {
  return *(const volatile wl_u32 *)p;
}
WL_FN wl_u64 simt_load_u64(const wl_u64 *p) {
  return *(const volatile wl_u64 *)p;
}
WL_FN void simt_store_u64(wl_u64 *p, wl_u64 v) {
  *(volatile wl_u64 *)p = v;
}
WL_FN wl_u64 simt_load_acquire_u64(const wl_u64 *p) {
  wl_u64 v;
  asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
WL_FN void simt_store_release_u64(wl_u64 *p, wl_u64 v) {
  asm volatile("st.release.gpu.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

/* Loads 8 or 16 bytes at an address that is a multiple of that. */
WL_FN void simt_load_8(const wl_u8 *p, wl_u32 *out) {
  uint2 w = *(const uint2 *)(const void *)p;
  out[0] = w.x, out[1] = w.y;
}
WL_FN void simt_load_16(const wl_u8 *p, wl_u32 *out) {
  uint4 w = *(const uint4 *)(const void *)p;
  out[0] = w.x, out[1] = w.y, out[2] = w.z, out[3] = w.w;
}

WL_FN void simt_spin(void) {
  __nanosleep(64);
}

#else /* the simulator */

typedef _Bool wl_simt_bool;

#define WL_FN    __attribute__((unused)) static inline
#define WL_TABLE __attribute__((unused)) static const

#define WL_KERNEL_OF(name, type, n)                                                                \
  static void name##_body(const type *args);                                                       \
  WL_KERNEL_DECLARE(name, type);                                                                   \
  void name(const void *args) {                                                                    \
    name##_body((const type *)args);                                                               \
  }                                                                                                \
  static void name##_body(const type *args)
#define WL_KERNEL(name)               WL_KERNEL_OF(name, wl_kargs, 1024)
#define WL_KERNEL_DECLARE(name, type) void name(const void *args)

/* The part of the running thread's record that kernels use; it begins launch.c's `thread`. */
typedef struct wl_sim_self {
  wl_u32 tid, bid, bdim, gdim;
  unsigned char *shared;
  wl_u64 *progress; /* the launch's count of events that may end another thread's wait */
  wl_u32 fuse;      /* memory operations left until this thread is preempted */
} wl_sim_self;

/* Eight bytes of static TLS. glibc has room for that even in libraries loaded with dlopen. */
#if defined(__GLIBC__) || defined(__linux__)
#define WL_SIM_TLS __attribute__((tls_model("initial-exec")))
#else
#define WL_SIM_TLS
#endif
extern _Thread_local wl_sim_self *wl_sim_me WL_SIM_TLS;

typedef enum wl_sim_op {
  WL_SIM_SYNC,
  WL_SIM_BALLOT,
  WL_SIM_ANY,
  WL_SIM_ALL,
  WL_SIM_SHUFFLE
} wl_sim_op;

void wl_sim_barrier(void);
void wl_sim_spin(void);
void wl_sim_preempt(void);
/* Returns the lanes that voted true. *live becomes the lanes that took part. */
wl_u32 wl_sim_vote(wl_sim_op op, wl_simt_bool p, wl_u32 *live);
wl_u64 wl_sim_shuffle(wl_u64 v, wl_u32 src_lane);

/*
** Called at the end of every operation on memory that other threads may watch. The operation is
** progress if it changed something. From time to time, another thread is scheduled here. It belongs
** to the scheduler, which ThreadSanitizer does not watch (exec/sim/launch.c).
*/
#ifdef __SANITIZE_THREAD__
__attribute__((no_sanitize("thread")))
#endif
WL_FN void
wl_sim_touched(wl_simt_bool changed) {
  wl_sim_self *me = wl_sim_me;
  *me->progress += changed;
  if (--me->fuse == 0) wl_sim_preempt();
}

WL_FN wl_u32 simt_tid(void) {
  return wl_sim_me->tid;
}
WL_FN wl_u32 simt_bid(void) {
  return wl_sim_me->bid;
}
WL_FN wl_u32 simt_bdim(void) {
  return wl_sim_me->bdim;
}
WL_FN wl_u32 simt_gdim(void) {
  return wl_sim_me->gdim;
}
WL_FN unsigned char *simt_shared(void) {
  return wl_sim_me->shared;
}

WL_FN void simt_barrier(void) {
  wl_sim_barrier();
}
WL_FN void simt_warp_barrier(void) {
  wl_u32 live;
  (void)wl_sim_vote(WL_SIM_SYNC, 0, &live);
}

WL_FN wl_u32 simt_ballot(wl_simt_bool p) {
  wl_u32 live;
  return wl_sim_vote(WL_SIM_BALLOT, p, &live);
}
WL_FN wl_simt_bool simt_any(wl_simt_bool p) {
  wl_u32 live;
  return wl_sim_vote(WL_SIM_ANY, p, &live) != 0;
}
WL_FN wl_simt_bool simt_all(wl_simt_bool p) {
  wl_u32 live = 0;
  wl_u32 votes = wl_sim_vote(WL_SIM_ALL, p, &live);
  return votes == live;
}

WL_FN wl_u64 simt_shfl_u64(wl_u64 v, wl_u32 src_lane) {
  return wl_sim_shuffle(v, src_lane & 31u);
}
WL_FN wl_u64 simt_shfl_up_u64(wl_u64 v, wl_u32 delta) {
  wl_u32 lane = wl_sim_me->tid & 31u;
  return wl_sim_shuffle(v, lane < delta ? lane : lane - delta);
}
WL_FN wl_u64 simt_shfl_down_u64(wl_u64 v, wl_u32 delta) {
  wl_u32 lane = wl_sim_me->tid & 31u;
  return wl_sim_shuffle(v, delta > 31u - lane ? lane : lane + delta);
}
WL_FN wl_u64 simt_shfl_xor_u64(wl_u64 v, wl_u32 mask) {
  return wl_sim_shuffle(v, (wl_sim_me->tid ^ mask) & 31u);
}
WL_FN wl_u32 simt_shfl_u32(wl_u32 v, wl_u32 src) {
  return (wl_u32)simt_shfl_u64(v, src);
}
WL_FN wl_u32 simt_shfl_up_u32(wl_u32 v, wl_u32 d) {
  return (wl_u32)simt_shfl_up_u64(v, d);
}
WL_FN wl_u32 simt_shfl_down_u32(wl_u32 v, wl_u32 d) {
  return (wl_u32)simt_shfl_down_u64(v, d);
}
WL_FN wl_u32 simt_shfl_xor_u32(wl_u32 v, wl_u32 m) {
  return (wl_u32)simt_shfl_xor_u64(v, m);
}

WL_FN wl_u32 simt_atomic_add_u32(wl_u32 *p, wl_u32 v) {
  wl_u32 old = __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
  wl_sim_touched(v != 0);
  return old;
}
WL_FN wl_u64 simt_atomic_add_u64(wl_u64 *p, wl_u64 v) {
  wl_u64 old = __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
  wl_sim_touched(v != 0);
  return old;
}
WL_FN wl_u32 simt_atomic_or_u32(wl_u32 *p, wl_u32 v) {
  wl_u32 old = __atomic_fetch_or(p, v, __ATOMIC_RELAXED);
  wl_sim_touched((old | v) != old);
  return old;
}
WL_FN wl_u32 simt_atomic_min_u32(wl_u32 *p, wl_u32 v) {
  wl_u32 old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (old > v &&
         !__atomic_compare_exchange_n(p, &old, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  wl_sim_touched(old > v);
  return old;
}
WL_FN wl_u32 simt_atomic_max_u32(wl_u32 *p, wl_u32 v) {
  wl_u32 old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (old < v &&
         !__atomic_compare_exchange_n(p, &old, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  wl_sim_touched(old < v);
  return old;
}
WL_FN wl_u64 simt_atomic_max_u64(wl_u64 *p, wl_u64 v) {
  wl_u64 old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (old < v &&
         !__atomic_compare_exchange_n(p, &old, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  wl_sim_touched(old < v);
  return old;
}
WL_FN wl_u64 simt_atomic_cas_u64(wl_u64 *p, wl_u64 expected, wl_u64 desired) {
  wl_u64 old = expected;
  wl_simt_bool swapped =
      __atomic_compare_exchange_n(p, &old, desired, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  wl_sim_touched(swapped && expected != desired);
  return old;
}
WL_FN wl_u64 simt_atomic_cas_release_u64(wl_u64 *p, wl_u64 expected, wl_u64 desired) {
  wl_u64 old = expected;
  wl_simt_bool swapped =
      __atomic_compare_exchange_n(p, &old, desired, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
  wl_sim_touched(swapped && expected != desired);
  return old;
}

WL_FN wl_u32 simt_load_u32(const wl_u32 *p) {
  wl_u32 v = __atomic_load_n(p, __ATOMIC_RELAXED);
  wl_sim_touched(0);
  return v;
}
WL_FN wl_u64 simt_load_u64(const wl_u64 *p) {
  wl_u64 v = __atomic_load_n(p, __ATOMIC_RELAXED);
  wl_sim_touched(0);
  return v;
}
WL_FN void simt_store_u64(wl_u64 *p, wl_u64 v) {
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
  wl_sim_touched(1);
}
WL_FN wl_u64 simt_load_acquire_u64(const wl_u64 *p) {
  wl_u64 v = __atomic_load_n(p, __ATOMIC_ACQUIRE);
  wl_sim_touched(0);
  return v;
}
WL_FN void simt_store_release_u64(wl_u64 *p, wl_u64 v) {
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
  wl_sim_touched(1);
}

WL_FN void simt_load_8(const wl_u8 *p, wl_u32 *out) {
  for (int k = 0; k < 2; k++) out[k] = ((const wl_u32 *)(const void *)p)[k];
}
WL_FN void simt_load_16(const wl_u8 *p, wl_u32 *out) {
  for (int k = 0; k < 4; k++) out[k] = ((const wl_u32 *)(const void *)p)[k];
}

WL_FN void simt_spin(void) {
  wl_sim_spin();
}

#endif

WL_FN wl_u32 simt_lane(void) {
  return simt_tid() & 31u;
}
WL_FN wl_u32 simt_warp(void) {
  return simt_tid() >> 5;
}

#endif
