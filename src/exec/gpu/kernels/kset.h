/*
** Aggregates of DISTINCT values in the kernels. Included by kgroup.h. kgargs.h shows the entries of
** a set.
**
** A value is looked for in the set of its aggregate, together with the slot of its group. The
** thread that finds the pair missing and puts it there also adds the value to the group's record.
** So every value is added once, in any order: sums are exact, and equal numbers add the same.
** Ordering: kentry.h.
*/
#ifndef WL_KSET_H
#define WL_KSET_H

#include "exec/gpu/kernels/kernels.h"
#include "exec/gpu/kernels/kentry.h"

/* A set is full when a search takes more steps than this: then most of its slots are taken. */
enum { KS_STEPS = 256 };

/* Puts an entry of one word into the set. 1: it is new; 0: it was there; -1: there is no room. */
WL_FN int ks_put_word(const wl_kvalues *s, wl_u64 want) {
  wl_u64 h = wl_key_hash(want);
  for (wl_u64 i = 0; i < KS_STEPS && i < s->n_slots; i++) {
    wl_u64 *p = s->table + ((h + i) & (s->n_slots - 1)), have = simt_load_u64(p);
    if (have == 0) have = simt_atomic_cas_u64(p, 0, want);
    if (have == 0) return 1;
    if (have == want) return 0;
  }
  return -1;
}

/* The same for an entry of two words. */
WL_FN int ks_put_pair(const wl_kvalues *s, wl_u64 group, wl_u64 code) {
  wl_u64 h = wl_key_hash(wl_key_hash(group) * 0x9e3779b97f4a7c15ULL + code);
  for (wl_u64 i = 0; i < KS_STEPS && i < s->n_slots; i++) {
    wl_u64 *p = s->table + 2 * ((h + i) & (s->n_slots - 1));
    wl_u64 have = ke_claim(p, simt_load_acquire_u64(p));
    if (have == KE_FREE) {
      p[1] = code;
      simt_store_release_u64(p, group);
      return 1;
    }
    if (have == group && p[1] == code) return 0;
  }
  return -1;
}

WL_FN int ks_put(const wl_kvalues *s, wl_u32 slot, wl_u64 bits) {
  wl_u64 code = wl_key_code(&s->part, bits, 1);
  if (s->alone) return ks_put_word(s, code);
  if (s->n_words == 1) return ks_put_word(s, wl_key_append(&s->part, slot, code) + 1);
  return ks_put_pair(s, (wl_u64)slot + 2, code);
}

/* Notes the first rows of groups. */
WL_FN_CALLED void kg_note_rows(const wl_kgroup *g, const k_rows *rows, wl_u32 act,
                               const wl_u32 *group) {
  K_EACH K_ON(act) k_max_word(kg_record(g, group[k]) + g->row_word, kg_rank(g, rows->row[k]));
}

/* Adds the number of the value of a code to accumulator `index`. */
WL_FN_CALLED void kg_add_coded(const wl_vctx *numbers, wl_u8 *sh, const wl_kgroup *g, wl_u32 index,
                               wl_u64 code, wl_u32 slot) {
  const wl_kcoder *c = &g->coders[g->accs[index].coder];
  wl_vctx ctx = *numbers;
  wl_val v = wl_code_value(c->heap + c->table[2 * code + 1]);
  if (v.t >= WL_T_TEXT) v = wl_op_SumArg(&ctx, v, wl_null(), 0);
  kg_add_number(sh, g, index, slot, v);
}

/* Runs AggDistinct for the rows `act` of a thread, whose groups are at the slots `group`. NULLs do
** not count. numbers: for sums of codes; NULL: there are none. */
WL_FN_CALLED void kg_add_distinct(const wl_vctx *numbers, wl_u8 *sh, const wl_kgroup *g,
                                  const wl_kinstr *in, const wl_kopnd *a, const k_rows *rows,
                                  wl_u32 act, const wl_u32 *group) {
  const wl_kgacc *acc = &g->accs[in->d];
  const wl_kvalues *s = &g->sets[acc->set - 1];
  wl_kinstr add = *in;
  add.op = (wl_u16)acc->op;
  K_EACH K_ON(act) {
    if (!k_valid(sh, a, K_SLOT)) continue;
    int put = ks_put(s, group[k], k_bits(sh, a, K_SLOT));
    if (put > 0 && acc->op == WL_OP__AggSumV && numbers)
      kg_add_coded(numbers, sh, g, (wl_u32)in->d, k_bits(sh, a, K_SLOT), group[k]);
    else if (put > 0)
      kg_add(sh, g, &add, a, K_SLOT, rows->row[k], group[k]);
    if (put < 0) kg_set_full(g, WL_KG_FULL_SET + acc->set - 1);
  }
}

#endif
