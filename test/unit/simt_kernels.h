/*
** Kernels that try out exec/gpu/kernels/simt.h, in the common subset of C11 and CUDA C++: the host
** compiler builds them for the simulator, nvcc builds the same text for a GPU.
** Some are wrong on purpose (k_wrong_...): the simulator must bring that to light.
*/
#ifndef SIMT_KERNELS_H
#define SIMT_KERNELS_H

#include "exec/gpu/kernels/kentry.h"
#include "exec/gpu/kernels/simt.h"

typedef struct wl_kargs {
  const wl_u32 *in;
  wl_u32 n;
  wl_u32 *count;
  wl_u64 *state;
  wl_u64 *out;
} wl_kargs;

/*
** One block sums one tile of bdim elements into out[bid]. Shared: bdim u64. A tree with
** a barrier a level; the tile's tail reads as 0.
*/
WL_KERNEL(k_block_sum) {
  wl_u64 *s = (wl_u64 *)simt_shared();
  wl_u32 tid = simt_tid(), at = simt_bid() * simt_bdim() + tid, half, n;
  s[tid] = at < args->n ? args->in[at] : 0;
  simt_barrier();
  for (n = simt_bdim(); n > 1; n = half) {
    half = (n + 1) / 2;
    if (tid + half < n) s[tid] += s[tid + half];
    simt_barrier();
  }
  if (tid == 0) args->out[simt_bid()] = s[0];
}

#define WARP_OPS 15
/* Every warp operation once; thread i of the grid writes out[i * WARP_OPS ...]. */
WL_KERNEL(k_warp_ops) {
  wl_u32 lane = simt_lane(), id = simt_bid() * simt_bdim() + simt_tid();
  wl_u64 *o = args->out + (wl_u64)id * WARP_OPS;
  wl_u64 big = ((wl_u64)id << 32) | (id * 7u + 1u);
  wl_u32 small = id * 3u + 1u;
  o[0] = simt_ballot(lane % 3 == 0);
  o[1] = simt_any(lane == 31);
  o[2] = simt_any(lane == 32);
  o[3] = simt_all(lane < 32);
  o[4] = simt_all(lane != 5);
  o[5] = simt_shfl_u32(small, 31u - lane);
  o[6] = simt_shfl_u64(big, lane + 1u); /* the lane number wraps round */
  o[7] = simt_shfl_up_u32(small, 2);
  o[8] = simt_shfl_up_u64(big, 31);
  o[9] = simt_shfl_down_u64(big, 5);
  o[10] = simt_shfl_xor_u64(big, 17);
  o[11] = simt_shfl_down_u32(small, 16);
  o[12] = simt_shfl_xor_u32(small, 1);
  o[13] = simt_ballot((wl_u64)(lane & 1) << 40); /* true is any bit */
  o[14] = ((wl_u64)simt_warp() << 32) | simt_gdim();
}

/*
** Every fourth thread returns, later another quarter; the rest must still get through the
** block's barrier and vote among themselves.
*/
WL_KERNEL(k_exits) {
  wl_u32 tid = simt_tid(), *n_left = (wl_u32 *)simt_shared();
  if (tid == 0) *n_left = 0;
  simt_barrier();
  if (tid % 4 == 3) return;
  simt_atomic_add_u32(n_left, 1);
  simt_barrier();
  args->out[tid] = simt_ballot(1) | ((wl_u64)*n_left << 32);
  if (tid % 4 == 2) return;
  args->out[tid] |= (wl_u64)simt_all(tid % 4 < 2) << 63;
}

/*
** Exclusive prefix sum of in, one tile of bdim elements a block, in one pass: the block
** takes a tile by ticket (count[0]), publishes its sum in state[tile], then looks back
** over the tiles before until it finds one whose whole prefix is known.
** state: top two bits 0 nothing, 1 the tile's sum, 2 the sum of all up to it.
** Shared: a word for the ticket, one for the prefix, one for each warp's sum.
*/
#define SCAN_SUM   (1ull << 62)
#define SCAN_UP_TO (2ull << 62)
#define SCAN_VALUE (SCAN_SUM - 1ull)

WL_FN wl_u64 scan_look_back(const wl_kargs *args, wl_u32 tile) {
  wl_u64 before = 0;
  while (tile > 0) {
    wl_u64 s = simt_load_acquire_u64(&args->state[tile - 1]);
    if ((s & ~SCAN_VALUE) == 0) {
      simt_spin();
      continue;
    }
    before += s & SCAN_VALUE;
    if ((s & ~SCAN_VALUE) == SCAN_UP_TO) break;
    tile--;
  }
  return before;
}

WL_KERNEL_OF(k_scan, wl_kargs, 256) {
  wl_u64 *s = (wl_u64 *)simt_shared();
  wl_u32 tid = simt_tid(), lane = simt_lane(), warp = simt_warp(), d, i, tile, at;
  wl_u64 mine, sum, up, total = 0, before = 0;
  if (tid == 0) s[0] = simt_atomic_add_u32(&args->count[0], 1);
  simt_barrier();
  tile = (wl_u32)s[0];
  at = tile * simt_bdim() + tid;
  mine = at < args->n ? args->in[at] : 0;
  sum = mine;
  for (d = 1; d < SIMT_WARP; d *= 2) {
    up = simt_shfl_up_u64(sum, d);
    if (lane >= d) sum += up;
  }
  if (lane == SIMT_WARP - 1) s[2 + warp] = sum;
  simt_barrier();
  for (i = 0; i < simt_bdim() / SIMT_WARP; i++) {
    if (i < warp) before += s[2 + i];
    total += s[2 + i];
  }
  if (tid == 0) {
    if (tile > 0) simt_store_release_u64(&args->state[tile], SCAN_SUM | total);
    s[1] = scan_look_back(args, tile);
    simt_store_release_u64(&args->state[tile], SCAN_UP_TO | (s[1] + total));
  }
  simt_barrier();
  if (at < args->n) args->out[at] = s[1] + before + sum - mine;
}

/* count: 0 sum, 1 maximum, 2 bits, 3 the complement of a minimum; state: 0 sum, 1 a sum by
 * compare-and-swap. */
WL_KERNEL(k_atomics) {
  wl_u32 id = simt_bid() * simt_bdim() + simt_tid();
  wl_u64 seen = simt_load_acquire_u64(&args->state[1]), was;
  args->out[id] = simt_atomic_add_u32(&args->count[0], 1);
  simt_atomic_max_u32(&args->count[1], (id * 2654435761u) >> 8);
  simt_atomic_or_u32(&args->count[2], 1u << (id % 32u));
  wl_u32 *least = (wl_u32 *)(void *)simt_shared();
  if (simt_tid() == 0) *least = 0xffffffffu;
  simt_barrier();
  simt_atomic_min_u32(least, (id * 2654435761u) >> 8);
  simt_barrier();
  if (simt_tid() == 0) simt_atomic_max_u32(&args->count[3], ~*least);
  simt_atomic_add_u64(&args->state[0], ((wl_u64)id << 20) + 1u);
  while ((was = simt_atomic_cas_u64(&args->state[1], seen, seen + id)) != seen) seen = was;
}

/* A lock around a plain counter, taken by one thread of every warp. */
WL_KERNEL(k_lock) {
  if (simt_lane() != 0) return;
  while (simt_atomic_cas_u64(&args->state[0], 0, 1) != 0) simt_spin();
  (void)simt_load_acquire_u64(&args->state[0]); /* the compare-and-swap orders nothing */
  wl_u64 seen = args->state[1];
  (void)simt_load_acquire_u64(&args->state[2]); /* a place to be preempted at */
  args->state[1] = seen + 1;
  simt_store_release_u64(&args->state[0], 0);
}

/* All threads want the entry state[0], state[1]. One writes it, also for those of its own warp. */
#define PUBLISHED 777u
WL_KERNEL(k_publish) {
  wl_u64 *p = args->state, tag = ke_claim(p, simt_load_acquire_u64(p));
  if (tag == KE_FREE) {
    p[1] = PUBLISHED;
    simt_store_release_u64(p, 5);
  }
  args->out[simt_bid() * simt_bdim() + simt_tid()] = p[1];
}

/* The same, but a compare-and-swap that fails is taken for an acquire load. */
WL_KERNEL(k_wrong_no_acquire) {
  wl_u64 *p = args->state, tag = simt_atomic_cas_u64(p, KE_FREE, KE_BUSY);
  if (tag == KE_FREE) {
    p[1] = PUBLISHED;
    simt_store_release_u64(p, 5);
  }
  if (tag > KE_BUSY) args->out[simt_bid() * simt_bdim() + simt_tid()] = p[1];
}

/* k_lock without the lock: updates are lost. */
WL_KERNEL(k_wrong_no_lock) {
  if (simt_lane() != 0) return;
  wl_u64 seen = args->state[1];
  (void)simt_load_acquire_u64(&args->state[2]);
  args->state[1] = seen + 1;
}

/* Every thread reads its neighbour's word with no barrier after the write. */
WL_KERNEL(k_wrong_no_barrier) {
  wl_u32 *s = (wl_u32 *)simt_shared(), tid = simt_tid();
  s[tid] = tid;
  args->out[tid] = s[(tid + 1) % simt_bdim()];
}

/* A vote orders nothing. */
WL_KERNEL(k_wrong_vote) {
  wl_u32 *s = (wl_u32 *)simt_shared(), tid = simt_tid();
  s[tid] = tid;
  (void)simt_any(1);
  args->out[tid] = s[tid ^ 1];
}

/* Two uses of one word need a barrier between the read and the next write too. */
WL_KERNEL(k_wrong_one_barrier) {
  wl_u32 *s = (wl_u32 *)simt_shared(), i;
  wl_u64 sum = 0;
  for (i = 0; i < 8; i++) {
    if (simt_tid() == i) s[0] = i + 1;
    simt_barrier();
    sum += s[0];
  }
  args->out[simt_tid()] = sum;
}

/* Half the threads wait at the barrier, half for a flag that nobody sets. */
WL_KERNEL(k_wrong_flag) {
  if (simt_tid() % 2 == 0) {
    while (simt_load_acquire_u64(&args->state[0]) == 0) simt_spin();
  }
  simt_barrier();
}

/* Half of each warp votes, half waits at the barrier: all wait, none spins. */
WL_KERNEL(k_wrong_split) {
  if (simt_tid() % 2 == 0) args->out[simt_tid()] = simt_ballot(1);
  simt_barrier();
}

/* Lanes of a warp meet in two different operations. */
WL_KERNEL(k_wrong_mixed) {
  if (simt_tid() % 2 == 0)
    args->out[simt_tid()] = simt_ballot(1);
  else
    args->out[simt_tid()] = simt_shfl_u32(7, 0);
}

/* Waits for the block before by block number, which may not have started. */
WL_KERNEL(k_wrong_no_ticket) {
  wl_u32 bid = simt_bid();
  if (simt_tid() == 0) {
    while (bid > 0 && simt_load_acquire_u64(&args->state[bid - 1]) == 0) simt_spin();
    simt_store_release_u64(&args->state[bid], 1);
  }
  simt_barrier();
}

WL_KERNEL(k_wrong_past_shared) {
  if (simt_tid() == 0) simt_shared()[args->n] = 1; /* n is the size of shared memory */
}

/* Shared memory as a block finds it; then written, for the next block to find. */
WL_KERNEL(k_unwritten) {
  wl_u32 *s = (wl_u32 *)simt_shared(), id = simt_bid() * simt_bdim() + simt_tid();
  args->out[id] = s[simt_tid()];
  s[simt_tid()] = 12345;
}

/* in[0] barriers and little else: what a barrier costs. */
WL_KERNEL(k_barriers) {
  wl_u32 i, n = args->in[0];
  for (i = 0; i < n; i++) simt_barrier();
}

WL_KERNEL(k_shuffles) {
  wl_u32 i, n = args->in[0];
  wl_u64 v = simt_tid();
  for (i = 0; i < n; i++) v += simt_shfl_xor_u64(v, 1);
  args->out[simt_tid()] = v;
}

WL_KERNEL(k_nothing) {
  if (simt_bid() == 0 && simt_tid() == 0) args->out[0] = args->n;
}

#endif
