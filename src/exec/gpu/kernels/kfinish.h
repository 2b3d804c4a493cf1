/*
** Finishing groups: records become columns, which the next pipeline reads. Included by kernels.h.
** kgargs.h shows the layout of the records.
**
** The host first lists the slots that have groups, in the order of their keys: wl_finish_keep, a
** scan and wl_order_kept list them by address; if the address is not the order of the keys, the list is
** sorted by the words that wl_finish_words reads. Then wl_finish computes keys and aggregates. In
** all three kernels a thread handles a group at a time. No shared memory, no order among threads.
*/
#ifndef WL_KFINISH_H
#define WL_KFINISH_H

#include "exec/gpu/kernels/kernels.h"
#include "exec/gpu/kernels/kfargs.h"
#include "value/sum/wide.h"

WL_KERNEL_OF(wl_finish_keep, wl_kfkeep, 512) {
  KO_EACH(i, args->n_slots) {
    args->keep[i] = args->table[i * args->words + args->rows_word] != 0;
  }
}

WL_KERNEL_OF(wl_finish_words, wl_kfwords, 512) {
  KO_EACH(i, args->n) {
    wl_u64 word = args->table[(wl_u64)args->slots[i] * args->words + args->word] - args->minus;
    args->keys[i] = args->down ? ~word : word;
  }
}

/* The value of a key. */
WL_FN wl_val kf_key(const wl_kgroup *g, const wl_kfcol *c, const wl_u64 *record, wl_u64 slot) {
  const wl_key_part *p = &g->key_parts[c->part];
  wl_u64 word = g->mode == WL_KG_HASH   ? record[0] - 1
                : g->mode == WL_KG_WIDE ? record[1 + p->word]
                                        : slot + g->base;
  wl_val v = wl_key_decode(p, word);
  if (p->kind == WL_PART_NULL && v.t != WL_T_NULL) {
    p++;
    v = wl_key_decode(p, g->mode == WL_KG_WIDE ? record[1 + p->word] : word);
  }
  /* a zero has the sign that it has in the first row */
  if (c->zero && v.t == WL_T_REAL && wl_as_f64(v.v) == 0.0)
    v = wl_real(~record[g->first_word] >> (c->zero - 1) & 1 ? -0.0 : 0.0);
  if (!c->coder || v.t == WL_T_NULL) return v;
  const wl_kcoder *coder = &g->coders[c->coder - 1];
  wl_u64 code = coder->word ? record[coder->word] & 0xffffffffULL : v.v;
  return wl_code_value(coder->heap + coder->table[2 * code + 1]);
}

/* The least or greatest value. */
WL_FN wl_val kf_best(wl_u32 op, const wl_u64 *w) {
  if (w[0] == 0 && w[1] == 0) return wl_null();
  wl_val v = wl_agg_unrank(k_is_min(op), k_is_real(op), w[0]);
  if (k_is_real(op) && wl_as_f64(v.v) == 0.0 && (~w[1] & 1)) v = wl_real(-0.0);
  return v;
}

/* The least or greatest number. If an integer and a real are the best, the first row
** would decide. */
WL_FN wl_val kf_best_number(wl_u32 op, const wl_u64 *w, wl_u64 *unsure) {
  wl_val i = kf_best(k_best_op(op, 0), w), r = kf_best(k_best_op(op, 1), w + 2);
  if (i.t == WL_T_NULL) return r;
  if (r.t == WL_T_NULL) return i;
  int c = wl_cmp_if((wl_i64)i.v, wl_as_f64(r.v));
  if (c == 0) simt_store_u64(unsure, 1);
  return (op == WL_OP__AggMinN) == (c < 0) ? i : r;
}

/* Whether adding the integers of a wide sum may leave 64 bits, depending on their order. w: the
** words of AggSumX, or the first ones of AggSumV. */
WL_FN int kf_is_unsure(const wl_u64 *w) {
  wl_wide sum = {{0, 0, 0}}, size = {{0, 0, 0}}, most = {{0, 0, 0}};
  wl_wide_add(&sum, (wl_i64)w[0], 0);
  wl_wide_add(&sum, (wl_i64)w[1], 32);
  wl_wide_add(&size, (wl_i64)w[2], 0);
  wl_wide_add(&size, (wl_i64)w[3], 32);
  /* 2 * those above zero = size + sum, and 2 * those below = size - sum: each must be below 2^64 */
  wl_u64 carry = 0, borrow = 0;
  wl_wide up = most, down = most;
  for (int k = 0; k < WL_WIDE_WORDS; k++) {
    wl_u64 a = size.word[k], b = sum.word[k], s = a + b;
    up.word[k] = s + carry;
    carry = (wl_u64)(s < a) | (wl_u64)(up.word[k] < s);
    wl_u64 d = a - b;
    down.word[k] = d - borrow;
    borrow = (wl_u64)(a < b) | (wl_u64)(d < borrow);
  }
  return up.word[1] || up.word[2] || down.word[2] || down.word[1] > 1 ||
         (down.word[1] == 1 && down.word[0]);
}

/* How many words of an accumulator come before its count. */
WL_FN wl_u32 kf_n_sums(wl_u32 op) {
  return op == WL_OP__AggSumI   ? 1
         : op == WL_OP__AggSumX ? 4
         : op == WL_OP__AggSumF ? 6
         : op == WL_OP__AggSumV ? 11
                                : 0;
}

WL_FN wl_i64 kf_count(const wl_kgroup *g, const wl_kgacc *a, const wl_u64 *record) {
  return (wl_i64)(a->counted ? record[a->word + kf_n_sums(a->op)] : record[g->rows_word]);
}

/* sum(), total() or avg(). */
WL_FN wl_val kf_sum(const wl_kgroup *g, const wl_kfcol *c, const wl_kgacc *a, const wl_u64 *record,
                    wl_u64 *unsure) {
  const wl_u64 *w = record + a->word;
  wl_i64 count = kf_count(g, a, record);
  double real = 0;
  if (c->kind == WL_KF_TOTAL && !count) return wl_real(0.0);
  if (!count) return wl_null();
  if (a->op == WL_OP__AggSumF) {
    real = wl_wide_of_digits(w, 0, c->anchor);
  } else if (a->op == WL_OP__AggSumV && (c->kind != WL_KF_SUM || w[10])) {
    if (kf_is_unsure(w)) simt_store_u64(unsure, 1); /* the integers may need more bits */
    real = wl_wide_of_digits(w + 4, (wl_i64)(w[0] + (w[1] << 32)), c->anchor);
  } else if (c->kind == WL_KF_SUM) {
    if (a->op == WL_OP__AggSumI) return wl_int((wl_i64)w[0]);
    if (kf_is_unsure(w)) simt_store_u64(unsure, 1);
    return wl_int((wl_i64)(w[0] + (w[1] << 32)));
  } else if (a->op == WL_OP__AggSumI) {
    real = (double)(wl_i64)w[0];
  } else {
    wl_wide sum = {{0, 0, 0}};
    wl_wide_add(&sum, (wl_i64)w[0], 0);
    wl_wide_add(&sum, (wl_i64)w[1], 32);
    real = wl_wide_round(&sum, 0);
  }
  return wl_real(c->kind == WL_KF_AVG ? real / (double)count : real);
}

WL_FN wl_val kf_value(const wl_kfinish *args, const wl_kfcol *c, const wl_u64 *record,
                      wl_u64 slot) {
  const wl_kgroup *g = &args->g;
  const wl_kgacc *a = &g->accs[c->acc];
  switch (c->kind) {
  case WL_KF_KEY: return kf_key(g, c, record, slot);
  case WL_KF_COUNT: return wl_int(kf_count(g, a, record));
  case WL_KF_BEST:
    if (k_keeps_value(a->op))
      return record[a->word] ? kb_value(&g->coders[a->coder], record[a->word]) : wl_null();
    return k_n_bests(a->op) > 1 ? kf_best_number(a->op, record + a->word, args->unsure)
                                : kf_best(a->op, record + a->word);
  default: return kf_sum(g, c, a, record, args->unsure);
  }
}

/* A warp computes 32 groups, so that it writes whole words of the bitmaps. */
WL_KERNEL_OF(wl_finish, wl_kfinish, 512) {
  const wl_u64 n_warps = (wl_u64)simt_gdim() * (simt_bdim() / 32);
  const wl_u64 mine = (wl_u64)simt_bid() * (simt_bdim() / 32) + simt_warp();
  for (wl_u64 first = mine * 32; first < args->n; first += n_warps * 32) {
    wl_u64 i = first + simt_lane();
    int there = i < args->n;
    wl_u64 slot = !there ? 0 : args->slots ? args->slots[i] : i;
    const wl_u64 *record = args->g.table + slot * args->g.words;
    if (args->live) {
      there = there && record[args->g.rows_word] != 0;
      wl_u32 live = simt_ballot(there);
      if (simt_lane() == 0) args->live[first / 32] = live;
      if (!live) continue;
    }
    for (wl_u32 k = 0; k < args->n_cols; k++) {
      const wl_kfcol *c = &args->cols[k];
      wl_val v = wl_null();
      if (there) v = kf_value(args, c, record, slot);
      if (there) c->v[i] = v.t == WL_T_NULL ? 0 : v.v;
      if (there && c->tags) c->tags[i] = v.t;
      if (there && c->lengths) c->lengths[i] = v.t >= WL_T_TEXT ? v.n : 0;
      if (!c->valid) continue;
      wl_u32 valid = simt_ballot(v.t != WL_T_NULL);
      if (simt_lane() == 0) c->valid[first / 32] = valid;
    }
  }
}

#endif
