/*
** GROUP BY in the kernels. Included by kernels.h, whose operands and program loop it uses. kgargs.h
** shows the layout of the records.
**
** wl_group runs a pipeline whose rows go to groups. Grid: any number of blocks of T
** threads; a tile is T * WL_K_ROWS rows; block b processes tiles b, b + grid, …. Group finds each
** row's record and counts the row; the Agg opcodes after it add to the record by atomics.
** Shared memory: as in wl_interp but without accumulators, followed by the block's own table if
** there are few groups (WL_KG_SHARED).
** Phases: clear the table; process tiles; flush the table to global memory. The flush comes after
** the last tile and after every flush_tiles tiles, so that no sum of digits overflows 64 bits.
** Ordering: none is needed, because all sums are sums of integers, and results that depend on the
** first row use row numbers. A group exists if its record's count of rows is not 0.
*/
#ifndef WL_KGROUP_H
#define WL_KGROUP_H

#include "exec/gpu/kernels/kernels.h"
#include "exec/gpu/kernels/kentry.h"

#define KG_NONE 0xffffffffu

/* ---- the addresses of a group's words */

WL_FN wl_u64 *kg_record(const wl_kgroup *g, wl_u32 slot) {
  return g->table + (wl_u64)slot * g->words;
}
WL_FN wl_u32 kg_index(const wl_kgroup *g, wl_u32 place, wl_u32 slot, wl_u32 copy) {
  return (place * (wl_u32)g->n_slots + slot) * g->copies + copy;
}
WL_FN wl_u64 *kg_whole(wl_u8 *sh, const wl_kgroup *g, wl_u32 place, wl_u32 slot, wl_u32 copy) {
  return (wl_u64 *)(void *)(sh + g->offset) + kg_index(g, place, slot, copy);
}
WL_FN wl_u32 *kg_piece(wl_u8 *sh, const wl_kgroup *g, wl_u32 place, wl_u32 slot, wl_u32 copy) {
  wl_u32 whole = g->n_whole * (wl_u32)g->n_slots * g->copies * 8;
  return (wl_u32 *)(void *)(sh + g->offset + whole) + kg_index(g, place, slot, copy);
}
WL_FN wl_u32 kg_copy(const wl_kgroup *g) {
  return simt_lane() & (g->copies - 1);
}

/* ---- adding; `place` is an index in shared memory, `word` an index in the record */

WL_FN void kg_count(wl_u8 *sh, const wl_kgroup *g, wl_u32 slot, wl_u32 word, wl_u32 place) {
  if (g->copies)
    (void)simt_atomic_add_u32(kg_piece(sh, g, place, slot, kg_copy(g)), 1);
  else
    (void)simt_atomic_add_u64(kg_record(g, slot) + word, 1);
}

/* Adds to a 64-bit sum. In shared memory, the old value of the low half gives the carry. */
WL_FN void kg_sum(wl_u8 *sh, const wl_kgroup *g, wl_u32 slot, wl_u32 word, wl_u32 place, wl_u64 v) {
  if (v == 0) return;
  if (!g->copies) {
    (void)simt_atomic_add_u64(kg_record(g, slot) + word, v);
    return;
  }
  wl_u32 low = (wl_u32)v, high = (wl_u32)(v >> 32);
  if (low) {
    wl_u32 was = simt_atomic_add_u32(kg_piece(sh, g, place, slot, kg_copy(g)), low);
    high += (wl_u32)(was + low) < was;
  }
  if (high) (void)simt_atomic_add_u32(kg_piece(sh, g, place + 1, slot, kg_copy(g)), high);
}

/* Adds a real to the accumulator `index`, whose digits are at `word` and `place`. */
WL_FN void kg_add_real(wl_u8 *sh, const wl_kgroup *g, wl_u32 index, wl_u32 slot, wl_u32 word,
                       wl_u32 place, double v) {
  wl_i64 digit[3];
  if (wl_digits(v, g->accs[index].unit, digit)) {
    for (wl_u32 j = 0; j < 3; j++) {
      wl_u64 d = (wl_u64)digit[j];
      if (g->split) {
        kg_sum(sh, g, slot, word + j, 0, d & 0xffffffffULL);
        kg_sum(sh, g, slot, word + 3 + j, 0, (wl_u64)(digit[j] >> 32));
      } else {
        kg_sum(sh, g, slot, word + j, place + 2 * j, d);
      }
    }
    return;
  }
  wl_u64 at = simt_atomic_add_u64(g->n_side, 1);
  if (at < g->side_size) {
    g->side[3 * at] = index;
    g->side[3 * at + 1] = slot;
    g->side[3 * at + 2] = wl_f64_bits(v);
  }
}

WL_FN void kg_add_wide(wl_u8 *sh, const wl_kgroup *g, const wl_kgacc *acc, wl_u32 slot, wl_i64 v) {
  wl_u64 limb[4];
  wl_agg_limbs(v, limb);
  for (wl_u32 j = 0; j < 4; j++) kg_sum(sh, g, slot, acc->word + j, acc->place + 2 * j, limb[j]);
}

WL_FN void kg_add_best(wl_u8 *sh, const wl_kgroup *g, wl_u32 op, wl_u32 word, wl_u32 place,
                       wl_u32 slot, wl_u64 bits, wl_u64 row) {
  if (g->copies) {
    wl_u64 *best = kg_whole(sh, g, place, slot, kg_copy(g));
    k_better(best, best + g->n_slots * g->copies, op, bits, row);
  } else {
    wl_u64 *best = kg_record(g, slot) + word;
    k_better(best, best + 1, op, bits, row);
  }
}

/* Adds a number to accumulator `index`, an AggSumV. */
WL_FN void kg_add_number(wl_u8 *sh, const wl_kgroup *g, wl_u32 index, wl_u32 slot, wl_val v) {
  const wl_kgacc *acc = &g->accs[index];
  if (v.t == WL_T_REAL) {
    kg_add_real(sh, g, index, slot, acc->word + 4, acc->place + 8, wl_as_f64(v.v));
    kg_count(sh, g, slot, acc->word + 10, acc->place + 14);
  } else {
    kg_add_wide(sh, g, acc, slot, (wl_i64)v.v);
  }
  if (acc->counted) kg_count(sh, g, slot, acc->word + 11, acc->place + 15);
}

/* AggSumV, AggMinN or AggMaxN for the rows `act`. */
WL_FN_CALLED void kg_add_numbers(wl_u8 *sh, const wl_kgroup *g, const wl_kinstr *in,
                                 const wl_kopnd *a, const k_rows *rows, const wl_u32 *group,
                                 wl_u32 act) {
  const wl_kgacc *acc = &g->accs[in->d];
  K_EACH K_ON(act) {
    wl_val v = k_val(sh, a, K_SLOT);
    wl_u32 real = v.t == WL_T_REAL;
    if (v.t == WL_T_NULL) continue;
    if (in->op == WL_OP__AggSumV)
      kg_add_number(sh, g, (wl_u32)in->d, group[k], v);
    else
      kg_add_best(sh, g, k_best_op(in->op, real), acc->word + 2 * real, acc->place + 2 * real,
                  group[k], v.v, g->row0 + rows->row[k]);
  }
}

/* Runs an Agg opcode for a row of the group at `slot`. */
WL_FN void kg_add(wl_u8 *sh, const wl_kgroup *g, const wl_kinstr *in, const wl_kopnd *a, wl_u32 at,
                  wl_u64 row, wl_u32 slot) {
  const wl_kgacc *acc = &g->accs[in->d];
  if (in->op == WL_OP__AggRows) return; /* the record counts its rows */
  if (in->op == WL_OP__AggCount) {
    if (acc->counted && k_is_there(sh, a, at)) kg_count(sh, g, slot, acc->word, acc->place);
    return;
  }
  if (!k_valid(sh, a, at)) return;
  switch (in->op) {
  case WL_OP__AggSumI:
    kg_sum(sh, g, slot, acc->word, acc->place, k_bits(sh, a, at));
    if (acc->counted) kg_count(sh, g, slot, acc->word + 1, acc->place + 2);
    break;
  case WL_OP__AggSumX:
    kg_add_wide(sh, g, acc, slot, k_int(sh, a, at));
    if (acc->counted) kg_count(sh, g, slot, acc->word + 4, acc->place + 8);
    break;
  case WL_OP__AggSumF:
    kg_add_real(sh, g, (wl_u32)in->d, slot, acc->word, acc->place, k_real(sh, a, at));
    if (acc->counted) kg_count(sh, g, slot, acc->word + 6, acc->place + 6);
    break;
  default:
    kg_add_best(sh, g, acc->op, acc->word, acc->place, slot, k_bits(sh, a, at), g->row0 + row);
  }
}

/* ---- finding */

WL_FN void kg_set_full(const wl_kgroup *g, wl_u64 what) {
  simt_store_u64(g->full, what);
}

/* 2^32 - 1 less the number of a row of the launch: earlier rows have larger ranks. */
WL_FN wl_u64 kg_rank(const wl_kgroup *g, wl_u32 row) {
  return 0xffffffffULL - (g->row0 + row);
}

/* A word of a row's key: that of part *part, which is the first of its word. *part becomes the
** first part of the next word. */
WL_FN wl_u64 kg_word(const wl_u8 *sh, const wl_kgroup *g, const wl_kopnd *opnds, wl_u32 at,
                     wl_u32 *part) {
  wl_u64 word = 0;
  wl_u32 k = *part, w = g->key_parts[k].word;
  for (; k < g->n_key_parts && g->key_parts[k].word == w; k++) {
    const wl_key_part *p = &g->key_parts[k];
    const wl_kopnd *o = &opnds[p->key];
    word = wl_key_append(p, word, wl_key_code(p, k_bits(sh, o, at), k_valid(sh, o, at)));
  }
  *part = k;
  return word;
}

WL_FN wl_u32 kg_hash_find(const wl_kgroup *g, wl_u64 key) {
  wl_u64 h = wl_key_hash(key), want = key + 1;
  if ((h >> 40 & (g->n_parts - 1)) != g->part) return KG_NONE;
  for (wl_u64 i = 0; i < g->n_slots; i++) {
    wl_u32 slot = (wl_u32)((h + i) & (g->n_slots - 1));
    wl_u64 *p = kg_record(g, slot), have = simt_load_u64(p);
    if (have == 0) {
      if (simt_load_u64(g->n_made) >= g->most) break;
      have = simt_atomic_cas_u64(p, 0, want);
      if (have == 0) {
        (void)simt_atomic_add_u64(g->n_made, 1);
        return slot;
      }
    }
    if (have == want) return slot;
  }
  kg_set_full(g, WL_KG_FULL_GROUPS);
  return KG_NONE;
}

/*
** Finds a key of several words. The tag is 0 while the record is free, 1 while its creator writes
** the key words, then the hash with the top bit set.
*/
WL_FN wl_u32 kg_wide_find(const wl_u8 *sh, const wl_kgroup *g, const wl_kopnd *opnds, wl_u32 at) {
  wl_u64 h = 1;
  for (wl_u32 part = 0; part < g->n_key_parts;)
    h = wl_key_hash(h * 0x9e3779b97f4a7c15ULL + kg_word(sh, g, opnds, at, &part));
  if ((h >> 40 & (g->n_parts - 1)) != g->part) return KG_NONE;
  wl_u64 want = h | 1ULL << 63;
  for (wl_u64 i = 0; i < g->n_slots; i++) {
    wl_u32 slot = (wl_u32)((h + i) & (g->n_slots - 1));
    wl_u64 *p = kg_record(g, slot), tag = simt_load_acquire_u64(p);
    if (tag == KE_FREE && simt_load_u64(g->n_made) >= g->most) break;
    tag = ke_claim(p, tag);
    if (tag == KE_FREE) {
      (void)simt_atomic_add_u64(g->n_made, 1);
      for (wl_u32 part = 0, w = 1; part < g->n_key_parts; w++)
        p[w] = kg_word(sh, g, opnds, at, &part);
      simt_store_release_u64(p, want);
      return slot;
    }
    int same = tag == want;
    for (wl_u32 part = 0, w = 1; part < g->n_key_parts && same; w++)
      same = p[w] == kg_word(sh, g, opnds, at, &part);
    if (same) return slot;
  }
  kg_set_full(g, WL_KG_FULL_GROUPS);
  return KG_NONE;
}

/* Records the signs of zero keys, a bit for each real key. The first row's signs decide whether a
** key is 0.0 or -0.0. */
WL_FN void kg_note_zero(const wl_u8 *sh, const wl_kgroup *g, const wl_kopnd *opnds, wl_u32 at,
                        wl_u64 row, wl_u32 slot) {
  wl_u64 signs = 0;
  wl_u32 n_reals = 0;
  int zero = 0;
  for (wl_u32 k = 0; k < g->n_key_parts; k++) {
    const wl_kopnd *o = &opnds[g->key_parts[k].key];
    if (g->key_parts[k].kind != WL_PART_REAL) continue;
    wl_u32 bit = n_reals++;
    if (!k_valid(sh, o, at) || k_real(sh, o, at) != 0.0) continue;
    zero = 1;
    signs |= k_bits(sh, o, at) >> 63 << bit;
  }
  if (zero) k_max_word(kg_record(g, slot) + g->first_word, ~(row << 16 | signs));
}

/* The Group opcode for one row. Returns its slot, or KG_NONE if another pass takes the row. */
WL_FN wl_u32 kg_find(wl_u8 *sh, const wl_kgroup *g, const wl_kopnd *opnds, wl_u32 at, wl_u64 row) {
  wl_u32 slot;
  if (g->mode == WL_KG_WIDE) {
    slot = kg_wide_find(sh, g, opnds, at);
  } else {
    wl_u32 part = 0;
    wl_u64 x = kg_word(sh, g, opnds, at, &part);
    if (g->mode == WL_KG_HASH)
      slot = kg_hash_find(g, x);
    else
      slot = x - g->base < g->n_slots ? (wl_u32)(x - g->base) : KG_NONE;
  }
  if (slot == KG_NONE) return slot;
  kg_count(sh, g, slot, g->rows_word, 0);
  if (g->first_word) kg_note_zero(sh, g, opnds, at, g->row0 + row, slot);
  return slot;
}

#include "exec/gpu/kernels/kcode.h"
#include "exec/gpu/kernels/kset.h"
#include "exec/gpu/kernels/kbest.h"

/* ---- the block's own table */

WL_FN void kg_clear(wl_u8 *sh, const wl_kgroup *g) {
  wl_u32 n = (2 * g->n_whole + g->n_pieces) * (wl_u32)g->n_slots * g->copies;
  wl_u32 *p = (wl_u32 *)(void *)(sh + g->offset);
  for (wl_u32 i = simt_tid(); i < n; i += simt_bdim()) p[i] = 0;
}

/* The sum over all copies of a pair of pieces, or of a single piece. */
WL_FN wl_u64 kg_total(wl_u8 *sh, const wl_kgroup *g, wl_u32 place, wl_u32 slot, int pair) {
  wl_u64 s = 0;
  for (wl_u32 c = 0; c < g->copies; c++) {
    s += *kg_piece(sh, g, place, slot, c);
    if (pair) s += (wl_u64)*kg_piece(sh, g, place + 1, slot, c) << 32;
  }
  return s;
}
WL_FN void kg_flush_acc(wl_u8 *sh, const wl_kgroup *g, const wl_kgacc *acc, wl_u32 slot) {
  wl_u64 *to = kg_record(g, slot) + acc->word;
  wl_u32 place = acc->place, numbers = acc->op == WL_OP__AggSumV;
  wl_u32 n_sums = acc->op == WL_OP__AggSumI ? 1 : acc->op == WL_OP__AggSumX || numbers ? 4 : 0;
  if (k_keeps_value(acc->op)) return; /* it is in global memory */
  if (acc->op >= WL_OP__AggMinI) {
    for (wl_u32 c = 0; c < g->copies; c++)
      for (wl_u32 j = 0; j < 2 * k_n_bests(acc->op); j++)
        k_max_word(to + j, *kg_whole(sh, g, place + j, slot, c));
    return;
  }
  for (wl_u32 j = 0; j < n_sums; j++, place += 2) k_add_word(to++, kg_total(sh, g, place, slot, 1));
  if (acc->op == WL_OP__AggSumF || numbers) {
    for (wl_u32 j = 0; j < 3; j++, place += 2) k_add_digits(to, j, kg_total(sh, g, place, slot, 1));
    to += 6;
  }
  if (numbers) k_add_word(to++, kg_total(sh, g, place++, slot, 0));
  if (acc->counted) k_add_word(to, kg_total(sh, g, place, slot, 0));
}

/* Adds the block's table to global memory. The whole block calls it, after a barrier. */
WL_FN void kg_flush(wl_u8 *sh, const wl_kgroup *g) {
  for (wl_u32 slot = simt_tid(); slot < (wl_u32)g->n_slots; slot += simt_bdim()) {
    wl_u64 rows = kg_total(sh, g, 0, slot, 0);
    if (!rows) continue;
    k_add_word(kg_record(g, slot) + g->rows_word, rows);
    for (wl_u32 k = 0; k < g->n_accs; k++) kg_flush_acc(sh, g, &g->accs[k], slot);
  }
}

/* ---- the kernels */

/* Adds the block's table to global memory and clears it. The whole block calls it. */
WL_FN void kg_pour(wl_u8 *sh, const wl_kgroup *g) {
  simt_barrier();
  kg_flush(sh, g);
  simt_barrier();
  kg_clear(sh, g);
  simt_barrier();
}

WL_FN void k_group(const wl_kgargs *args, int with) {
  const wl_kgroup *g = &args->g;
  wl_u8 *sh = simt_shared();
  k_prepare(&args->k, sh);
  if (g->copies) kg_clear(sh, g);
  simt_barrier();
  k_loop(&args->k, sh, g, with);
  if (g->copies) {
    simt_barrier();
    kg_flush(sh, g);
  }
}
WL_KERNEL_OF(wl_group_numbers, wl_kgargs, 512) {
  k_group(args, 0);
}
WL_KERNEL_OF(wl_group, wl_kgargs, 512) {
  k_group(args, K_VALUES);
}
WL_KERNEL_OF(wl_group_long, wl_kgargs, 512) {
  k_group(args, K_VALUES | K_LONG);
}
WL_KERNEL_OF(wl_group_sets, wl_kgargs, 512) {
  k_group(args, K_VALUES | K_SETS);
}
WL_KERNEL_OF(wl_group_sets_long, wl_kgargs, 512) {
  k_group(args, K_VALUES | K_SETS | K_LONG);
}

/*
** Packs the records that hold a group. A lane handles a slot, a warp 32 slots. A warp reserves room
** for its groups with one atomic, so their order depends on the order of the warps. No shared
** memory.
*/
WL_KERNEL_OF(wl_group_pack, wl_kgpack, 512) {
  const wl_u64 n_warps = (wl_u64)simt_gdim() * (simt_bdim() / 32);
  const wl_u64 mine = (wl_u64)simt_bid() * (simt_bdim() / 32) + simt_warp();
  for (wl_u64 first = args->first + mine * 32; first < args->end; first += n_warps * 32) {
    wl_u64 slot = first + simt_lane();
    const wl_u64 *from = args->table + slot * args->words;
    int there = slot < args->end && from[args->rows_word] != 0;
    wl_u32 mask = simt_ballot(there != 0);
    wl_u64 at = 0;
    if (simt_lane() == 0 && mask) at = simt_atomic_add_u64(args->n_out, k_popcount(mask));
    at = simt_shfl_u64(at, 0) + k_popcount(mask & ((1u << simt_lane()) - 1u));
    if (!there) continue;
    wl_u64 *to = args->out + at * (1 + args->words);
    to[0] = slot;
    for (wl_u32 w = 0; w < args->words; w++) to[1 + w] = from[w];
  }
}

#endif
