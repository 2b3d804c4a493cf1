/*
** Rows that wait in shared memory. After a selective filter few rows of a tile are left, and a warp
** would run the rest of the code for one or two of its lanes. So the code can be cut into stages.
** The rows that a stage leaves go to a queue of the block, and the next stage runs when there are
** enough rows for all threads, or when no others come. Included by kernels.h.
**
** An entry of a queue is the number of the row in the scanned table, and the numbers of the rows of
** joined sources that later stages read. Registers are not kept: each stage computes its own.
** Rows leave a queue in any order, so only sinks have stages whose result does not depend on it.
**
** Phases of an iteration (k_loop in kernels.h): wait for all entries; choose a stage and take
** entries; wait until all threads have chosen; run; append entries.
*/
#ifndef WL_KQUEUE_H
#define WL_KQUEUE_H

#include "exec/gpu/kernels/kernels.h"

/* What a block runs next: `stage` over n entries of its queue, or over a tile if it is 0. It is
** n_cuts + 1 if nothing is left. */
typedef struct k_turn {
  wl_u32 stage, from, n;
} k_turn;

WL_FN wl_u32 *k_queue_count(const wl_kargs *args, wl_u8 *sh, wl_u32 cut) {
  return (wl_u32 *)(void *)(sh + args->count_offset + WL_K_QUEUE_COUNTS) + cut;
}

/* Entries of plane number i of a queue; 0 has the rows of the scanned table. */
WL_FN wl_u32 *k_queue(const wl_kcut *c, wl_u8 *sh, wl_u32 i) {
  return (wl_u32 *)(void *)(sh + c->offset) + i * 2 * simt_bdim() * WL_K_ROWS;
}

/* more: there may be tiles. The whole block calls it. */
WL_FN k_turn k_choose(const wl_kargs *args, wl_u8 *sh, wl_u32 more) {
  const wl_u32 full = simt_bdim() * WL_K_ROWS;
  k_turn t = {args->n_cuts, 0, 0};
  simt_barrier();
  while (t.stage && *k_queue_count(args, sh, t.stage - 1) < full) t.stage--;
  if (!t.stage && !more)
    for (t.stage = 1; t.stage <= args->n_cuts && !*k_queue_count(args, sh, t.stage - 1);) t.stage++;
  if (t.stage && t.stage <= args->n_cuts) {
    wl_u32 has = *k_queue_count(args, sh, t.stage - 1);
    t.n = has < full ? has : full;
    t.from = has - t.n;
  }
  simt_barrier();
  if (t.n && simt_tid() == 0) *k_queue_count(args, sh, t.stage - 1) = t.from;
  return t;
}

/* Takes the thread's entries. Returns the rows that exist. */
WL_FN wl_u32 k_take(const wl_kargs *args, wl_u8 *sh, const k_turn *t, k_rows *rows) {
  const wl_kcut *c = &args->cuts[t->stage - 1];
  wl_u32 act = 0;
  rows->first = 0;
  K_EACH {
    rows->row[k] = 0;
    if (K_SLOT < t->n) act |= 1u << k;
  }
  K_EACH K_ON(act) {
    rows->row[k] = k_queue(c, sh, 0)[t->from + K_SLOT];
    *k_row(args, sh, c->row_plane, K_SLOT) = rows->row[k];
  }
  for (wl_u32 i = 0; i < c->n_planes; i++)
    K_EACH K_ON(act)
      *k_row(args, sh, c->planes[i], K_SLOT) = k_queue(c, sh, i + 1)[t->from + K_SLOT];
  return act;
}

/* Appends the rows that a stage has left. */
WL_FN void k_append(const wl_kargs *args, wl_u8 *sh, wl_u32 cut, const k_rows *rows, wl_u32 act) {
  const wl_kcut *c = &args->cuts[cut];
  wl_u32 own = k_popcount(act), before = k_sum_before(own), at = 0;
  if (simt_lane() == 31 && before + own)
    at = simt_atomic_add_u32(k_queue_count(args, sh, cut), before + own);
  at = simt_shfl_u32(at, 31) + before;
  K_EACH K_ON(act) {
    k_queue(c, sh, 0)[at] = rows->row[k];
    for (wl_u32 i = 0; i < c->n_planes; i++)
      k_queue(c, sh, i + 1)[at] = *k_row(args, sh, c->planes[i], K_SLOT);
    at++;
  }
}

#endif
