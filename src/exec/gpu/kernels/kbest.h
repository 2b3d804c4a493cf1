/*
** min() and max() of texts and values of several types. Included by kgroup.h. kgargs.h shows the
** word of a record.
**
** A row's value is compared with the best one so far, which is in the memory of a coder that has
** only memory (exec/gpu/coded.h). If it is better, it is copied there, and a compare-and-swap puts
** its place and its row into the record. Of equal values the first row's is the better one.
** Ordering: the swap releases what the thread has copied, or has seen that others have copied, and
** others read the word with acquire before they read the value. A swap that fails means that another
** thread's value is the best now. Lanes read texts that other lanes have made after a barrier.
*/
#ifndef WL_KBEST_H
#define WL_KBEST_H

#include "exec/gpu/kernels/kernels.h"

/* Whether two values that are equal under the collation look the same. */
WL_FN int kb_alike(wl_val a, wl_val b) {
  if (a.t != b.t) return 0;
  return a.t < WL_T_TEXT ? a.v == b.v : wl_cmp_val(a, b, WL_COLL_BINARY) == 0;
}

/* Whether a value comes before another one, which has another row. */
WL_FN int kb_before(const wl_kcoder *c, int min, wl_val a, wl_u64 rank_a, wl_val b, wl_u64 rank_b) {
  int order = wl_cmp_val(a, b, (int)c->coll);
  if (order == 0) return c->look && rank_a > rank_b;
  return min ? order < 0 : order > 0;
}

WL_FN wl_val kb_value(const wl_kcoder *c, wl_u64 word) {
  return wl_code_value(c->heap + ((word & 0xffffffffULL) - 1));
}

WL_FN int kb_wins(const wl_kcoder *c, int min, wl_val v, wl_u64 rank, wl_u64 word) {
  return word == 0 || kb_before(c, min, v, rank, kb_value(c, word), word >> 32);
}

/* Makes v the best value of a group, unless there is a better one. */
WL_FN void kb_update(const wl_kgroup *g, wl_u32 coder, int min, wl_u64 *p, wl_val v, wl_u64 rank) {
  const wl_kcoder *c = &g->coders[coder];
  wl_u64 place = 0; /* of the copy, from 1 */
  for (;;) {
    wl_u64 word = simt_load_acquire_u64(p), now = place;
    if (!kb_wins(c, min, v, rank, word)) return;
    if (!now && word && c->look && kb_alike(v, kb_value(c, word))) now = word & 0xffffffffULL;
    if (!now) {
      now = place = kc_copy(c, v) + 1;
      if (place == 0) {
        kg_set_full(g, WL_KG_FULL_HEAP + coder); /* the scan is repeated */
        return;
      }
    }
    if (simt_atomic_cas_release_u64(p, word, rank << 32 | now) == word) return;
  }
}

/* The best value of a warp, which all lanes get. Lanes without one have NULL. */
WL_FN wl_val kb_of_warp(const wl_kcoder *c, int min, wl_val v, wl_u64 *rank) {
  for (wl_u32 o = 16; o > 0; o >>= 1) {
    wl_u64 bits = simt_shfl_xor_u64(v.v, o), rank2 = simt_shfl_xor_u64(*rank, o);
    wl_u64 form = simt_shfl_xor_u64((wl_u64)v.n << 8 | v.t, o);
    wl_val other = wl_val_make((wl_u8)form, bits, (wl_u32)(form >> 8));
    if (other.t == WL_T_NULL) continue;
    if (v.t != WL_T_NULL && !kb_before(c, min, other, rank2, v, *rank)) continue;
    v = other;
    *rank = rank2;
  }
  return v;
}

/* Runs AggMinV or AggMaxV for the rows `act` of a thread, whose groups are at the slots `group`. If
** the rows of a warp that have better values are of one group, only one of them updates it. */
WL_FN_CALLED void kg_keep_values(wl_u8 *sh, const wl_kgroup *g, const wl_kinstr *in,
                                 const wl_kopnd *a, const k_rows *rows, wl_u32 act,
                                 const wl_u32 *group) {
  const wl_kgacc *acc = &g->accs[in->d];
  const wl_u32 coder = acc->coder;
  const wl_kcoder *c = &g->coders[coder];
  const int min = acc->op == WL_OP__AggMinV;
  K_EACH {
    wl_val v = act >> k & 1 ? k_val(sh, a, K_SLOT) : wl_null();
    wl_u64 rank = kg_rank(g, rows->row[k]), *p = g->table;
    if (v.t != WL_T_NULL) {
      p = kg_record(g, group[k]) + acc->word;
      if (!kb_wins(c, min, v, rank, simt_load_acquire_u64(p))) v = wl_null();
    }
    wl_u32 winners = simt_ballot(v.t != WL_T_NULL), first = 0;
    if (!winners) continue;
    while (!(winners >> first & 1)) first++;
    wl_u64 common = simt_shfl_u64((wl_u64)(size_t)p, first);
    if (!simt_all(v.t == WL_T_NULL || (wl_u64)(size_t)p == common)) {
      if (v.t != WL_T_NULL) kb_update(g, coder, min, p, v, rank);
      continue;
    }
    simt_warp_barrier();
    v = kb_of_warp(c, min, v, &rank);
    if (simt_lane() == first) kb_update(g, coder, min, p, v, rank);
  }
}

#endif
