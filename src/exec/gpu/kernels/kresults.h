/*
** Results on their way to the host. Included by kernels.h.
*/
#ifndef WL_KRESULTS_H
#define WL_KRESULTS_H

#include "exec/gpu/kernels/kernels.h"

/* Copies results from device memory to mapped host memory. A warp copies a tile, so that the bus
** transfers whole aligned lines, whatever the width of the results. */
WL_KERNEL_OF(wl_tiles, wl_ktiles, 512) {
  const wl_u64 n_warps = (wl_u64)simt_gdim() * (simt_bdim() / 32);
  for (wl_u64 tile = (wl_u64)simt_bid() * (simt_bdim() / 32) + simt_warp(); tile < args->n_tiles;
       tile += n_warps)
    for (wl_u64 i = tile * (WL_K_TILE / 8) + simt_lane(); i < (tile + 1) * (WL_K_TILE / 8); i += 32)
      args->to[i] = args->from[i];
}

/* Writes one value of a column, the i-th of those at `to`. */
WL_FN void kr_put(void *to, wl_u32 phys, wl_u64 i, wl_u64 v, wl_u64 base) {
  switch (phys) {
  case WL_P_I8: ((wl_u8 *)to)[i] = (wl_u8)(v - base); break;
  case WL_P_I16: ((wl_u16 *)to)[i] = (wl_u16)(v - base); break;
  case WL_P_I32: ((wl_u32 *)to)[i] = (wl_u32)(v - base); break;
  default: ((float *)to)[i] = (float)wl_as_f64(v); break;
  }
}

/* Packs results. A warp handles 32 rows at a time, so that it writes whole words of bitmaps. They
** are of one chunk. */
WL_KERNEL_OF(wl_pack_rows, wl_kpack, 512) {
  const wl_u64 n_warps = (wl_u64)simt_gdim() * (simt_bdim() / 32);
  const wl_u64 mine = (wl_u64)simt_bid() * (simt_bdim() / 32) + simt_warp();
  const wl_u64 last = (args->n - 1) / args->chunk_rows;
  for (wl_u64 first = mine * 32; first < args->n; first += n_warps * 32) {
    const wl_u64 chunk = first / args->chunk_rows, at = first - chunk * args->chunk_rows;
    const wl_u64 row = first + simt_lane();
    const wl_u32 there = row < args->n, which = chunk == last;
    wl_u8 *to = args->to + chunk * args->chunk_bytes;
    for (wl_u32 k = 0; k < args->n_cols; k++) {
      const wl_kpack_col *c = &args->cols[k];
      const wl_u32 valid = there && (!c->t || c->t[row]);
      if (there)
        kr_put(to + c->values[which], c->phys, at + simt_lane(), valid ? c->v[row] : 0, c->base);
      if (!c->t) continue;
      const wl_u32 word = simt_ballot((int)valid);
      if (simt_lane() == 0) ((wl_u32 *)(void *)(to + c->valid[which]))[at / 32] = word;
    }
  }
}

/* Copies the bytes of text results into one heap. A warp copies one row at a time. */
WL_KERNEL_OF(wl_gather, wl_kgather, 512) {
  const wl_u64 n_warps = (wl_u64)simt_gdim() * (simt_bdim() / 32);
  for (wl_u64 row = (wl_u64)simt_bid() * (simt_bdim() / 32) + simt_warp(); row < args->n_rows;
       row += n_warps) {
    const wl_u8 *from = args->dict_places
                            ? args->dict_heap + (wl_u32)args->dict_places[args->from[row]]
                            : (const wl_u8 *)(size_t)args->from[row];
    wl_u8 *to = args->heap + args->to[row];
    for (wl_u32 i = simt_lane(); i < args->n[row]; i += 32) to[i] = from[i];
  }
}

#endif
