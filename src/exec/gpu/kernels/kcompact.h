/*
** The rows that a pipeline leaves, written without gaps and in row order. Included by kernels.h.
**
** The blocks take tiles in order. Each publishes how many rows its tile leaves, and adds up the
** numbers of the tiles before it (look-back), so that one pass both counts and writes.
*/
#ifndef WL_KCOMPACT_H
#define WL_KCOMPACT_H

#include "exec/gpu/kernels/kernels.h"

enum { K_TILE_NONE = 0, K_TILE_COUNT = 1, K_TILE_TOTAL = 2 };

/* The sum of n over the lanes before this one. */
WL_FN wl_u32 k_sum_before(wl_u32 n) {
  wl_u32 sum = n;
  for (wl_u32 o = 1; o < 32; o <<= 1) {
    wl_u32 up = simt_shfl_up_u32(sum, o);
    if (simt_lane() >= o) sum += up;
  }
  return sum - n;
}

/* Number of rows written by all tiles before this one. The whole first warp calls it. */
WL_FN wl_u64 k_look_back(const wl_kargs *args, wl_u64 tile, wl_u64 count) {
  wl_u64 before = 0;
  wl_i64 at = (wl_i64)tile - 1;
  if (simt_lane() == 0)
    simt_store_release_u64(&args->tiles[tile],
                           count << 2 | (tile == 0 ? K_TILE_TOTAL : K_TILE_COUNT));
  while (at >= 0) {
    wl_i64 mine = at - (wl_i64)simt_lane();
    wl_u64 state = mine >= 0 ? simt_load_acquire_u64(&args->tiles[mine]) : (wl_u64)K_TILE_TOTAL;
    wl_u32 missing = simt_ballot((state & 3) == K_TILE_NONE);
    wl_u32 total = simt_ballot((state & 3) == K_TILE_TOTAL);
    /* Use the lanes up to the nearest total. If one of them is not ready, look again. */
    wl_u32 upto = total ? (total & (0u - total)) * 2u - 1u : 0xffffffffu;
    if (missing & upto) {
      simt_spin();
      continue;
    }
    wl_u64 v = upto >> simt_lane() & 1 ? state >> 2 : 0;
    for (wl_u32 o = 16; o > 0; o >>= 1) v += simt_shfl_xor_u64(v, o);
    before += v;
    if (total) break;
    at -= 32;
  }
  if (simt_lane() == 0 && tile > 0)
    simt_store_release_u64(&args->tiles[tile], (before + count) << 2 | K_TILE_TOTAL);
  return before;
}

WL_FN void k_give(const wl_kargs *args, wl_u8 *sh, wl_u32 row, wl_u32 slot, wl_u64 at, int with) {
  const wl_kopnd *opnds = (const wl_kopnd *)(const void *)sh;
  for (wl_u32 j = 0; j < args->n_outs; j++) {
    const wl_kout *o = &args->outs[j];
    if (o->type >= WL_K_OUT_PLANE) {
      o->n[at] = o->type == WL_K_OUT_SCAN ? (wl_u32)(args->row0 + row)
                                          : *k_row(args, sh, (wl_u32)o->operand, slot);
      continue;
    }
    const wl_kopnd *q = &opnds[o->operand];
    if (!(with & K_VALUES) || o->type == WL_R_INT || o->type == WL_R_REAL) {
      /* The value of a NULL is zero. */
      wl_u8 valid = q->stride || q->nullable ? k_valid(sh, q, slot) : 1;
      o->v[at] = valid ? k_bits(sh, q, slot) : 0;
      if (o->t) o->t[at] = valid;
    } else {
      wl_val v = k_val(sh, q, slot);
      o->v[at] = v.t == WL_T_NULL ? 0 : v.v;
      o->n[at] = v.t >= WL_T_TEXT ? v.n : 0;
      if (o->t) o->t[at] = o->type == WL_R_ANY ? v.t : (wl_u8)(v.t != WL_T_NULL);
    }
  }
}

/* Counts, looks back and writes. The whole block calls it; `act` are this thread's rows. Rows come
** in the order of the threads, and of the rows of each thread. */
WL_FN void k_compact(const wl_kargs *args, wl_u8 *sh, wl_u64 tile, const k_rows *rows, wl_u32 act,
                     int with) {
  const wl_u32 n_warps = simt_bdim() / 32;
  wl_u32 *counts = (wl_u32 *)(void *)(sh + args->count_offset);
  wl_u64 *before = (wl_u64 *)(void *)(sh + args->count_offset + WL_K_BEFORE);
  wl_u32 own = k_popcount(act), upto = k_sum_before(own) + own;
  if (simt_lane() == 31) counts[simt_warp()] = upto;
  simt_barrier();
  if (simt_warp() == 0) {
    wl_u32 n = simt_lane() < n_warps ? counts[simt_lane()] : 0, first = k_sum_before(n);
    wl_u32 sum = simt_shfl_u32(first + n, 31);
    if (simt_lane() < n_warps) counts[simt_lane()] = first;
    wl_u64 given = k_look_back(args, tile, sum);
    if (simt_lane() == 0) {
      *before = given;
      if (tile + 1 == args->n_tiles) *args->n_out = given + sum;
    }
  }
  simt_barrier();
  wl_u64 at = *before + counts[simt_warp()] + upto - own;
  K_EACH K_ON(act) k_give(args, sh, rows->row[k], K_SLOT, at++, with);
}

#endif
