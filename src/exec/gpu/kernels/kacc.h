/*
** Aggregates in the kernels: the words of a group's record, and the accumulators that each thread
** has in shared memory where there is no GROUP BY. Included by kernels.h, whose operands it uses.
*/
#ifndef WL_KACC_H
#define WL_KACC_H

#include "exec/gpu/kernels/kernels.h"

/* ---- accumulators: words of a group's record, which all blocks add to */

WL_FN void k_add_word(wl_u64 *to, wl_u64 v) {
  if (v) (void)simt_atomic_add_u64(to, v);
}
WL_FN void k_max_word(wl_u64 *p, wl_u64 v) {
  if (simt_load_u64(p) < v) (void)simt_atomic_max_u64(p, v);
}
WL_FN int k_is_min(wl_u32 op) {
  return op == WL_OP__AggMinI || op == WL_OP__AggMinF;
}
WL_FN int k_is_real(wl_u32 op) {
  return op == WL_OP__AggMinF || op == WL_OP__AggMaxF;
}

/* min and max of texts and of values of several types: kbest.h. */
WL_FN int k_keeps_value(wl_u32 op) {
  return op == WL_OP__AggMinV || op == WL_OP__AggMaxV;
}

/* min and max of numbers are two: of the integers, and of the reals. The number of them, and the
** opcode of one. */
WL_FN wl_u32 k_n_bests(wl_u32 op) {
  return op == WL_OP__AggMinN || op == WL_OP__AggMaxN ? 2 : 1;
}
WL_FN wl_u32 k_best_op(wl_u32 op, wl_u32 which) {
  if (op == WL_OP__AggMinN) return which ? WL_OP__AggMinF : WL_OP__AggMinI;
  if (op == WL_OP__AggMaxN) return which ? WL_OP__AggMaxF : WL_OP__AggMaxI;
  return op;
}

/*
** min and max keep the largest rank: a better value has a larger rank. Ranks are not 0, except for
** one integer; the extra word says whether that integer occurred. For reals, the extra word says
** which zero (0.0 or -0.0) came first. best and extra are both shared or both global memory, so
** that the compiler can tell which.
*/
WL_FN void k_better(wl_u64 *best, wl_u64 *extra, wl_u32 op, wl_u64 bits, wl_u64 row) {
  wl_u64 rank = wl_agg_rank(k_is_min(op), k_is_real(op), bits);
  if (rank)
    k_max_word(best, rank);
  else
    k_max_word(extra, 1);
  if (k_is_real(op) && wl_as_f64(bits) == 0.0) k_max_word(extra, ~(row << 1 | bits >> 63));
}

/* Adds digits to their low and high words. */
WL_FN void k_add_digits(wl_u64 *to, wl_u32 j, wl_u64 digit) {
  k_add_word(to + j, digit & 0xffffffffULL);
  k_add_word(to + 3 + j, (wl_u64)((wl_i64)digit >> 32));
}

/* ---- accumulators without GROUP BY: slot s of a thread */

WL_FN wl_u64 *k_acc(wl_u8 *sh, const wl_kargs *args, wl_u32 s) {
  return (wl_u64 *)(void *)(sh + args->acc_offset + 8 * (s * simt_bdim() + simt_tid()));
}
WL_FN wl_u32 k_acc_slots(const wl_kargs *args, wl_u32 k) {
  return (k + 1 < args->n_accs ? args->accs[k + 1].slot : args->n_slots) - args->accs[k].slot;
}
/* Whether (v, row) comes before the best so far. Rows are numbered from 1; 0 means no row. */
WL_FN int k_first(wl_u32 op, wl_u64 v, wl_u64 row, wl_u64 best, wl_u64 best_row) {
  if (row == 0) return 0;
  if (best_row == 0) return 1;
  if (op == WL_OP__AggMinI || op == WL_OP__AggMaxI) {
    wl_i64 a = (wl_i64)v, b = (wl_i64)best;
    if (a != b) return op == WL_OP__AggMinI ? a < b : a > b;
  } else {
    double a = wl_as_f64(v), b = wl_as_f64(best);
    if (a != b) return op == WL_OP__AggMinF ? a < b : a > b;
  }
  return row < best_row;
}

/* Adds a real to three digits of 40 bits, in slots from s on. If it does not fit, appends it to the
** side list. */
WL_FN void k_sum_real(wl_u8 *sh, const wl_kargs *args, wl_u32 index, wl_u32 s, double v) {
  wl_i64 digit[3];
  if (wl_digits(v, args->accs[index].unit, digit)) {
    for (wl_u32 j = 0; j < 3; j++) *k_acc(sh, args, s + j) += (wl_u64)digit[j];
    return;
  }
  wl_u64 at = simt_atomic_add_u64(args->n_side, 1);
  if (at < args->side_size) {
    args->side[3 * at] = index;
    args->side[3 * at + 1] = 0;
    args->side[3 * at + 2] = wl_f64_bits(v);
  }
}

WL_FN void k_sum_wide(wl_u8 *sh, const wl_kargs *args, wl_u32 s, wl_i64 v) {
  wl_u64 limb[4];
  wl_agg_limbs(v, limb);
  for (wl_u32 j = 0; j < 4; j++) *k_acc(sh, args, s + j) += limb[j];
}

WL_FN void k_keep_best(wl_u8 *sh, const wl_kargs *args, wl_u32 op, wl_u32 s, wl_u64 v, wl_u64 row) {
  wl_u64 *best = k_acc(sh, args, s);
  wl_u64 *best_row = k_acc(sh, args, s + 1);
  if (!k_first(op, v, row + 1, *best, *best_row)) return;
  *best = v;
  *best_row = row + 1;
}

/* AggSumV, AggMinN or AggMaxN for the rows `act`. Slots of a sum: limbs of the integers, digits of
** the reals, count of the reals, count. */
WL_FN_CALLED void k_aggregate_numbers(wl_u8 *sh, const wl_kargs *args, const wl_kinstr *in,
                                      const wl_kopnd *a, const k_rows *rows, wl_u32 act) {
  const wl_u32 s = (wl_u32)in->acc_slot;
  K_EACH K_ON(act) {
    wl_val v = k_val(sh, a, K_SLOT);
    wl_u32 real = v.t == WL_T_REAL;
    if (v.t == WL_T_NULL) continue;
    if (in->op != WL_OP__AggSumV) {
      k_keep_best(sh, args, k_best_op(in->op, real), s + 2 * real, v.v, rows->row[k]);
      continue;
    }
    if (real) {
      k_sum_real(sh, args, (wl_u32)in->d, s + 4, wl_as_f64(v.v));
      *k_acc(sh, args, s + 7) += 1;
    } else {
      k_sum_wide(sh, args, s, (wl_i64)v.v);
    }
    *k_acc(sh, args, s + 8) += 1;
  }
}

/* Runs an Agg opcode for the rows `act`. Its operand may be a column that has no register. */
WL_FN void k_aggregate(wl_u8 *sh, const wl_kargs *args, const wl_kinstr *in, const wl_kopnd *a,
                       const k_rows *rows, wl_u32 act) {
  const wl_u32 s = (wl_u32)in->acc_slot;
  wl_u64 v[WL_K_ROWS], sum = 0;
  wl_u32 at[WL_K_ROWS], valid = act;
  if (in->op == WL_OP__AggRows) {
    *k_acc(sh, args, s) += k_popcount(act);
    return;
  }
  if (in->direct) {
    (void)k_column(args, sh, &args->cols[in->a], (wl_u32)in->b, rows, act, at, v, &valid);
  } else if (in->op == WL_OP__AggCount) {
    K_EACH K_ON(act) if (!k_is_there(sh, a, K_SLOT)) valid &= ~(1u << k);
  } else {
    valid &= k_there(sh, a);
    k_get(sh, a, v);
  }
  switch (in->op) {
  case WL_OP__AggCount: *k_acc(sh, args, s) += k_popcount(valid); break;
  case WL_OP__AggSumI:
    K_EACH K_ON(valid) sum += v[k];
    *k_acc(sh, args, s) += sum;
    *k_acc(sh, args, s + 1) += k_popcount(valid);
    break;
  case WL_OP__AggSumX:
    K_EACH K_ON(valid) k_sum_wide(sh, args, s, (wl_i64)v[k]);
    *k_acc(sh, args, s + 4) += k_popcount(valid);
    break;
  case WL_OP__AggSumF:
    K_EACH K_ON(valid) k_sum_real(sh, args, (wl_u32)in->d, s, wl_as_f64(v[k]));
    *k_acc(sh, args, s + 3) += k_popcount(valid);
    break;
  default: K_EACH K_ON(valid) k_keep_best(sh, args, in->op, s, v[k], rows->row[k]);
  }
}

/* Merges the accumulators of thread i + half into those of thread i. */
WL_FN void k_join(wl_u8 *sh, const wl_kargs *args, wl_u32 half) {
  for (wl_u32 k = 0; k < args->n_accs; k++) {
    const wl_kacc *acc = &args->accs[k];
    wl_u32 n = k_acc_slots(args, k);
    wl_u64 *mine = k_acc(sh, args, acc->slot);
    wl_u64 *other = mine + half;
    if (acc->op >= WL_OP__AggMinI) {
      wl_u32 stride = simt_bdim();
      for (wl_u32 j = 0; j < n / 2; j++, mine += 2 * stride, other += 2 * stride) {
        wl_u32 op = k_best_op(acc->op, j);
        if (!k_first(op, other[0], other[stride], mine[0], mine[stride])) continue;
        mine[0] = other[0];
        mine[stride] = other[stride];
      }
    } else {
      for (wl_u32 j = 0; j < n; j++) mine[j * simt_bdim()] += other[j * simt_bdim()];
    }
  }
}

/* Adds the accumulators of this thread to the record. */
WL_FN void k_flush(wl_u8 *sh, const wl_kargs *args) {
  for (wl_u32 k = 0; k < args->n_accs; k++) {
    const wl_kacc *acc = &args->accs[k];
    wl_u64 *to = args->record + acc->word;
    if (acc->op >= WL_OP__AggMinI) {
      for (wl_u32 j = 0; j < k_n_bests(acc->op); j++, to += 2) {
        wl_u64 *best = k_acc(sh, args, acc->slot + 2 * j);
        wl_u64 row = best[simt_bdim()]; /* from 1; 0: there is no value */
        if (row) k_better(to, to + 1, k_best_op(acc->op, j), *best, args->row0 + row - 1);
      }
    } else {
      wl_u32 s = acc->slot, end = s + k_acc_slots(args, k);
      if (acc->op == WL_OP__AggSumV)
        for (wl_u32 j = 0; j < 4; j++) k_add_word(to++, *k_acc(sh, args, s++));
      if (acc->op == WL_OP__AggSumF || acc->op == WL_OP__AggSumV) {
        for (wl_u32 j = 0; j < 3; j++) k_add_digits(to, j, *k_acc(sh, args, s++));
        to += 6;
      }
      for (; s < end; s++) k_add_word(to++, *k_acc(sh, args, s));
    }
  }
}

#endif
