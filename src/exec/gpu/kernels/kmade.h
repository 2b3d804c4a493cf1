/*
** Result rows become columns that stay on the device: for later pipelines (wl_made,
** wl_text_values), or for the user (wl_stay). Included by kernels.h.
**
** Grid: any number of blocks. A warp handles 32 rows at a time, so that it writes whole words of
** the bitmap. No shared memory. The facts are joined by atomics; their order does not matter.
*/
#ifndef WL_KMADE_H
#define WL_KMADE_H

#include "exec/gpu/kernels/kernels.h"

/* A number whose order is that of the values. */
WL_FN wl_u64 km_rank(wl_u64 v, wl_u32 real) {
  const wl_u64 top = 1ULL << 63;
  return real && v & top ? ~v : v ^ top;
}

WL_FN void km_join(wl_u64 *to, wl_u64 v) {
  for (wl_u32 o = 16; o > 0; o >>= 1) {
    wl_u64 other = simt_shfl_xor_u64(v, o);
    v = other > v ? other : v;
  }
  if (simt_lane() == 0) (void)simt_atomic_max_u64(to, v);
}

WL_KERNEL_OF(wl_made, wl_kmade, 512) {
  const wl_u64 n_warps = (wl_u64)simt_gdim() * (simt_bdim() / 32);
  const wl_u64 mine = (wl_u64)simt_bid() * (simt_bdim() / 32) + simt_warp();
  wl_u64 greatest = 0, least = 0, n_values = 0;
  for (wl_u64 first = mine * 32; first < args->n; first += n_warps * 32) {
    wl_u64 i = first + simt_lane();
    int there = i < args->n, valid = there && (!args->t || args->t[i]);
    wl_u64 v = there ? args->v[i] : 0, rank = km_rank(v, args->real);
    if (there) args->data[i] = v;
    if (valid && rank > greatest) greatest = rank;
    if (valid && ~rank > least) least = ~rank;
    wl_u32 word = simt_ballot(valid);
    n_values += k_popcount(word);
    if (args->valid && simt_lane() == 0) args->valid[first / 32] = word;
  }
  km_join(&args->facts[WL_KM_GREATEST], greatest);
  km_join(&args->facts[WL_KM_LEAST], least);
  if (simt_lane() == 0 && n_values) (void)simt_atomic_add_u64(&args->facts[WL_KM_VALUES], n_values);
}

WL_KERNEL_OF(wl_text_bases, wl_ktextbases, 512) {
  KO_EACH(t, args->n_tablets + 1) {
    args->bases[t] = args->places[t < args->n_tablets ? t << WL_K_TABLET_SHIFT : args->n];
  }
}

WL_KERNEL_OF(wl_text_values, wl_ktextcolumn, 512) {
  const wl_u64 n_warps = (wl_u64)simt_gdim() * (simt_bdim() / 32);
  const wl_u64 mine = (wl_u64)simt_bid() * (simt_bdim() / 32) + simt_warp();
  const wl_kout *from = &args->from;
  for (wl_u64 first = mine * 32; first < args->n; first += n_warps * 32) {
    wl_u64 i = first + simt_lane();
    int there = i < args->n;
    wl_u8 t = there && (!from->t || from->t[i]) ? WL_T_TEXT : WL_T_NULL;
    if (t && from->type == WL_R_ANY) t = from->t[i];
    wl_u64 v = 0;
    if (t >= WL_T_TEXT)
      v = (args->places[i] - args->bases[i >> WL_K_TABLET_SHIFT]) | (wl_u64)from->n[i] << 32;
    else if (t != WL_T_NULL)
      v = from->v[i];
    if (there) args->data[i] = v;
    if (there && args->tags) args->tags[i] = t;
    wl_u32 word = simt_ballot(t != WL_T_NULL);
    if (args->valid && simt_lane() == 0) args->valid[first / 32] = word;
  }
}

WL_KERNEL_OF(wl_stay, wl_kstay, 512) {
  const wl_u64 n_warps = (wl_u64)simt_gdim() * (simt_bdim() / 32);
  const wl_u64 mine = (wl_u64)simt_bid() * (simt_bdim() / 32) + simt_warp();
  wl_u64 n_values = 0;
  for (wl_u64 first = mine * 32; first < args->n; first += n_warps * 32) {
    wl_u64 i = first + simt_lane();
    int there = i < args->n, valid = there && (!args->t || args->t[i]);
    wl_u64 v = there ? args->v[i] : 0;
    if (there && args->data)
      args->data[i] = args->t[i] == WL_T_INT ? wl_f64_bits((double)(wl_i64)v) : v;
    if (there && args->lengths) args->lengths[i] = valid ? (wl_u32)(args->places[v] >> 32) : 0;
    wl_u32 word = simt_ballot(valid);
    n_values += k_popcount(word);
    if (args->valid && simt_lane() == 0) args->valid[first / 32] = word;
  }
  if (args->n_valid && simt_lane() == 0 && n_values)
    (void)simt_atomic_add_u64(args->n_valid, n_values);
}

#endif
