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
