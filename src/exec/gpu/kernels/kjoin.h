/*
** Rows in the kernels: reading columns at row numbers, and Probe, which finds the row numbers of
** joined sources. A block with Expands runs in parts (expand_device.c). A part that ends in an
** Expand outputs row numbers and the candidates of each row; wl_expand makes combinations of them;
** the next part begins with the row numbers of these. Included by kernels.h, whose operands it
** uses.
**
** A thread has WL_K_ROWS rows. It issues the loads for all of them before it uses the first
** result: a kernel mostly waits for memory, and these waits then overlap.
** Shared memory: a plane of row numbers for each joined source whose columns are read; entry
** k * T + t belongs to thread t. WL_K_NO_ROW: the source has no row here, and its columns are NULL.
*/
#ifndef WL_KJOIN_H
#define WL_KJOIN_H

#include "exec/gpu/kernels/kernels.h"

#include "exec/gpu/kernels/kload.h"
#include "value/hash.h"

/* ---- joins */

WL_FN_CALLED wl_u64 kj_hash(wl_val v, int coll) {
  return wl_hash_val(v, coll);
}

/* Computes the hash of the keys of each row, as the CPU does (wl_exec_words). */
WL_FN wl_u32 kj_hashes(const wl_u8 *sh, const wl_kopnd *opnds, const wl_kjoin *j, wl_u32 act,
                       wl_u64 *word) {
  for (wl_u32 i = 0; i < j->n_keys; i++) {
    const wl_kopnd *o = &opnds[j->parts[i].key];
    K_EACH K_ON(act) {
      wl_val v = k_val(sh, o, K_SLOT);
      if (v.t == WL_T_NULL && !j->parts[i].null)
        act &= ~(1u << k);
      else
        word[k] = wl_hash_mix(word[k], kj_hash(v, j->coll[i]));
    }
  }
  return act;
}

/* Computes the key word of each row. Returns the rows of `act` whose keys can match something. */
WL_FN wl_u32 kj_words(const wl_u8 *sh, const wl_kopnd *opnds, const wl_kjoin *j, wl_u32 act,
                      wl_u64 *word) {
  for (wl_u32 i = 0; i < j->n_keys; i++) {
    const wl_key_part part = j->parts[i];
    const wl_kopnd *o = &opnds[part.key];
    K_EACH K_ON(act) {
      wl_u64 v = k_bits(sh, o, K_SLOT);
      int there = k_is_there(sh, o, K_SLOT);
      if (wl_key_holds(&part, v, there))
        word[k] = wl_key_append(&part, word[k], wl_key_code(&part, v, there));
      else
        act &= ~(1u << k);
    }
  }
  return act;
}

/* The same for a key that is a column. */
WL_FN wl_u32 kj_column_words(const wl_kargs *args, wl_u8 *sh, const wl_kjoin *j,
                             const wl_kinstr *in, const k_rows *rows, wl_u32 act, wl_u64 *word) {
  const wl_key_part part = j->parts[0];
  wl_u32 at[WL_K_ROWS], valid;
  wl_u64 v[WL_K_ROWS] = {0};
  (void)k_column(args, sh, &args->cols[in->a], (wl_u32)in->b, rows, act, at, v, &valid);
  K_EACH {
    int there = valid >> k & 1;
    word[k] = wl_key_code(&part, v[k], there);
    if (!wl_key_holds(&part, v[k], there)) act &= ~(1u << k);
  }
  return act;
}

WL_FN wl_u32 kj_key_words(const wl_kargs *args, wl_u8 *sh, const wl_kopnd *opnds, const wl_kjoin *j,
                          const wl_kinstr *in, const k_rows *rows, wl_u32 act, wl_u64 *word,
                          int with) {
  if ((with & K_VALUES) && j->by_value) return kj_hashes(sh, opnds, j, act, word);
  return in->direct ? kj_column_words(args, sh, j, in, rows, act, word)
                    : kj_words(sh, opnds, j, act, word);
}

/* Where the searches for the words of the rows `those` begin. Returns the rows whose search begins
** in the lookup, or in its part. */
WL_FN wl_u32 kj_places(const wl_kjoin *j, const wl_u64 *word, wl_u32 those, wl_u64 *at) {
  K_EACH at[k] = j->words ? wl_key_hash(word[k]) & j->mask : word[k];
  if (j->part) K_EACH {
      at[k] -= j->first_slot;
      if (at[k] >= j->n_own) those &= ~(1u << k);
    }
  return those;
}

/*
** Looks up the key words of the thread's rows in `those`, from the slots `at` on. start[k] becomes
** the first match, or WL_K_NO_ROW if there is none; for an Expand, count[k] becomes the number of
** matches. Open addressing ends because a hash table always has an empty slot.
*/
WL_FN void kj_seek(const wl_kjoin *j, const wl_u64 *word, wl_u32 those, wl_u64 *at, wl_u32 *start,
                   wl_u32 *count) {
  wl_u64 have[WL_K_ROWS] = {0};
  K_EACH {
    start[k] = WL_K_NO_ROW;
    count[k] = 0;
  }
  if (j->bits) {
    K_EACH K_ON(those) start[k] = j->bits[at[k] >> 5] >> (at[k] & 31) & 1 ? 0 : WL_K_NO_ROW;
    return;
  }
  if (!j->slots) {
    wl_u32 end[WL_K_ROWS] = {0};
    K_EACH K_ON(those) {
      start[k] = j->starts[at[k]];
      end[k] = j->starts[at[k] + 1];
    }
    K_EACH K_ON(those) {
      count[k] = end[k] - start[k];
      if (!count[k]) start[k] = WL_K_NO_ROW;
    }
    return;
  }
  K_EACH K_ON(those) start[k] = j->slots[at[k]];
  if (j->words) {
    K_EACH K_ON(those) have[k] = j->words[at[k]];
    K_EACH K_ON(those) while (start[k] != WL_K_NO_ROW && have[k] != word[k]) {
      at[k] = (at[k] + 1) & j->wrap;
      start[k] = j->slots[at[k]];
      have[k] = j->words[at[k]];
    }
  }
  if (j->start) K_EACH if (start[k] != WL_K_NO_ROW) count[k] = j->counts ? j->counts[at[k]] : 1;
}

WL_FN void kj_keep(const wl_kargs *args, wl_u8 *sh, wl_u32 plane, wl_u32 act, const wl_u32 *v) {
  K_EACH K_ON(act) {
    wl_u32 *row = k_row(args, sh, plane, K_SLOT);
    *row = v[k];
  }
}

/* The Probe and Expand opcodes. Returns the rows that are left. */
WL_FN wl_u32 k_probe(const wl_kargs *args, wl_u8 *sh, const wl_kopnd *opnds, const wl_kinstr *in,
                     const k_rows *rows, wl_u32 act, int with) {
  const wl_kjoin *j = &args->joins[in->number];
  wl_u64 word[WL_K_ROWS] = {0}, at[WL_K_ROWS];
  wl_u32 found[WL_K_ROWS], count[WL_K_ROWS];
  if (j->n_keys) {
    wl_u32 those = kj_key_words(args, sh, opnds, j, in, rows, act, word, with);
    wl_u32 own = kj_places(j, word, those, at);
    if (j->part) act = j->part == WL_K_FIRST_PART ? act & ~(those & ~own) : own;
    kj_seek(j, word, own, at, found, count);
  } else {
    K_EACH {
      found[k] = j->first;
      count[k] = j->n_first;
    }
  }
  wl_u32 lost = act;
  K_EACH if (found[k] != WL_K_NO_ROW) lost &= ~(1u << k);
  if (j->drops_lost) act &= ~lost;
  if (j->drops_found) act &= lost;
  if (j->start) { /* a row without candidates gives one combination */
    K_EACH K_ON(lost) count[k] = 1;
    kj_keep(args, sh, j->start, act, found);
    kj_keep(args, sh, j->count, act, count);
  } else if (j->plane) {
    if (j->rows) K_EACH if (found[k] != WL_K_NO_ROW) found[k] = j->rows[found[k]];
    kj_keep(args, sh, j->plane, act, found);
  }
  return act;
}

/* Adds the number of rows in `those` to a counter. */
WL_FN void kj_count(wl_u64 *counter, wl_u32 those) {
  wl_u32 n = 0;
  K_EACH n += k_popcount(simt_ballot(those >> k & 1));
  if (n && simt_lane() == 0) simt_atomic_add_u64(counter, n);
}

/* The slot of a word in a hash table. Takes a free one if the word has none. WL_K_NO_ROW: there is
** none for a long way from its place, so the table is too small. */
WL_FN wl_u32 kj_take_slot(const wl_kjoin *j, wl_u64 word) {
  enum { WAY = 1024 };
  wl_u64 at = wl_key_hash(word) & j->mask;
  for (wl_u32 n = 0; n < WAY && n <= j->mask; n++) {
    wl_u64 have = simt_load_u64(&j->taken[at]);
    if (have == WL_K_FREE) have = simt_atomic_cas_u64(&j->taken[at], WL_K_FREE, word);
    if (have == WL_K_FREE || have == word) return (wl_u32)at;
    at = (at + 1) & j->mask;
  }
  return WL_K_NO_ROW;
}

/* Turns the words of the rows `those` into slots. Returns the rows that have one. */
WL_FN wl_u32 kj_take_slots(const wl_kjoin *j, wl_u32 those, wl_u64 *word) {
  wl_u32 lost = 0;
  K_EACH K_ON(those) {
    word[k] = kj_take_slot(j, word[k]);
    if (word[k] == WL_K_NO_ROW) lost |= 1u << k;
  }
  kj_count(&j->built[WL_K_BUILT_LOST], lost);
  return those & ~lost;
}

/* Appends the pairs of the rows `those`. A warp takes places for all its lanes at once. */
WL_FN void kj_list(const wl_kjoin *j, const wl_u64 *word, const wl_u32 *row, wl_u32 those) {
  K_EACH {
    wl_u32 mask = simt_ballot(those >> k & 1), at = 0;
    if (mask && simt_lane() == 0) at = (wl_u32)simt_atomic_add_u64(j->n_listed, k_popcount(mask));
    at = simt_shfl_u32(at, 0) + k_popcount(mask & ((1u << simt_lane()) - 1u));
    K_ON(those) if (at < j->n_pairs) j->pairs[at] = word[k] << 32 | row[k];
  }
}

/* Sets bits. Returns the rows whose bit was set before. Keys with many rows often come together, so
** most of their bits are seen to be set. */
WL_FN wl_u32 kj_set_bits(wl_u32 *bits, const wl_u64 *word, wl_u32 those) {
  wl_u32 again = 0;
  K_EACH K_ON(those) {
    wl_u32 *p = &bits[word[k] >> 5], bit = 1u << (word[k] & 31);
    wl_u32 have = simt_load_u32(p);
    if (!(have & bit)) have = simt_atomic_or_u32(p, bit);
    if (have & bit) again |= 1u << k;
  }
  return again;
}

/* The Build opcode: puts the rows into the slots of a lookup, sets their bits, or lists them. The
** first of rows with equal keys stays in the slot. */
WL_FN void k_build(const wl_kargs *args, wl_u8 *sh, const wl_kopnd *opnds, const wl_kinstr *in,
                   const k_rows *rows, wl_u32 act, int with) {
  const wl_kjoin *j = &args->joins[in->number];
  wl_u64 word[WL_K_ROWS] = {0};
  wl_u32 row[WL_K_ROWS], those = kj_key_words(args, sh, opnds, j, in, rows, act, word, with),
                         again = 0;
  wl_u32 nulls = act & ~those;
  K_EACH row[k] = (wl_u32)(args->row0 + rows->row[k]);
  if (j->taken) those = kj_take_slots(j, those, word);
  if (j->pairs) {
    kj_list(j, word, row, those);
    return;
  }
  if (j->set) again = kj_set_bits(j->set, word, those);
  K_EACH K_ON(those & ~(j->set ? K_ALL_ROWS : 0))
  if (simt_atomic_min_u32(&j->table[word[k]], row[k]) != WL_K_NO_ROW) again |= 1u << k;
  kj_count(&j->built[WL_K_BUILT_ROWS], those);
  kj_count(&j->built[WL_K_BUILT_AGAIN], again);
  kj_count(&j->built[WL_K_BUILT_NULLS], nulls);
}

/* Notes that the combinations of the rows `act` have passed their test. tuples, candidates: the
** planes with the tuple and the candidate of each. */
WL_FN_CALLED void k_passed(const wl_kargs *args, wl_u8 *sh, wl_u32 tuples, wl_u32 candidates,
                           wl_u32 act) {
  K_EACH K_ON(act) {
    wl_u32 tuple = *k_row(args, sh, tuples, K_SLOT);
    simt_atomic_min_u32(&args->passed[tuple], *k_row(args, sh, candidates, K_SLOT));
  }
}

/* The rows of the part that have no row of a source. */
WL_FN wl_u32 k_absent(const wl_kargs *args, wl_u8 *sh, const k_rows *rows, wl_u32 plane) {
  wl_u32 absent = 0;
  K_EACH if (rows->first + k < args->n_rows && *k_row(args, sh, plane, K_SLOT) == WL_K_NO_ROW)
      absent |= 1u << k;
  return absent;
}

/* The opcode Mark. Most rows of a join with many matches are marked already. */
WL_FN_CALLED void k_mark(const wl_kargs *args, wl_u8 *sh, wl_u32 join, wl_u32 plane, wl_u32 act) {
  wl_u32 *marks = args->joins[join].marks;
  K_EACH K_ON(act) {
    wl_u32 row = *k_row(args, sh, plane, K_SLOT), bit = 1u << (row & 31);
    if (row != WL_K_NO_ROW && !(simt_load_u32(&marks[row >> 5]) & bit))
      simt_atomic_or_u32(&marks[row >> 5], bit);
  }
}

/* The rows of `act` that are not marked and count. live: the column that says which do, or -1. */
WL_FN_CALLED wl_u32 k_unmarked(const wl_kargs *args, wl_u8 *sh, wl_u32 join, wl_i32 live,
                               wl_u32 plane, wl_u32 act) {
  const wl_u32 *marks = args->joins[join].marks;
  wl_u32 at[WL_K_ROWS] = {0};
  wl_u64 counts[WL_K_ROWS] = {0};
  K_EACH K_ON(act) {
    at[k] = *k_row(args, sh, plane, K_SLOT);
    if (marks[at[k] >> 5] >> (at[k] & 31) & 1) act &= ~(1u << k);
  }
  if (live < 0) return act;
  k_gather(&args->cols[live], at, act, counts);
  K_EACH K_ON(act) if (!counts[k]) act &= ~(1u << k);
  return act;
}

/* Loads the row numbers that are the part's input. */
WL_FN void k_enter(const wl_kargs *args, wl_u8 *sh, const k_rows *rows, wl_u32 act) {
  for (wl_u32 i = 0; i < args->n_lists; i++) {
    const wl_klist *l = &args->lists[i];
    wl_u32 row[WL_K_ROWS];
    K_EACH row[k] = l->of == WL_K_LIST_SCAN ? (wl_u32)(args->row0 + rows->row[k]) : WL_K_NO_ROW;
    if (l->rows) K_EACH K_ON(act) row[k] = l->rows[rows->first + k];
    kj_keep(args, sh, l->plane, act, row);
  }
}

/* ---- the kernel that makes combinations: one per thread, ordered by tuple, then candidate */

WL_KERNEL_OF(wl_expand, wl_kexpand, 512) {
  const wl_u64 step = (wl_u64)simt_gdim() * simt_bdim();
  for (wl_u64 i = (wl_u64)simt_bid() * simt_bdim() + simt_tid(); i < args->n; i += step) {
    wl_u64 want = args->first + i, lo = 0, hi = args->n_tuples;
    while (hi - lo > 1) { /* places[lo] <= want < places[hi] */
      wl_u64 mid = (lo + hi) / 2;
      if (args->places[mid] <= want)
        lo = mid;
      else
        hi = mid;
    }
    wl_u32 at = args->start[lo];
    if (at != WL_K_NO_ROW) {
      at += (wl_u32)(args->skip + want - args->places[lo]);
      if (args->candidate) args->candidate[i] = at;
      if (args->rows) at = args->rows[at];
    }
    if (args->tuple) args->tuple[i] = (wl_u32)lo;
    if (args->found) args->found[i] = at;
    for (wl_u64 k = 0; k < args->n_lists; k++) args->to[k][i] = args->from[k][lo];
  }
}

/* ---- the kernel between two rounds of a test, one tuple per thread */

WL_KERNEL_OF(wl_round, wl_kround, 512) {
  const wl_u64 step = (wl_u64)simt_gdim() * simt_bdim();
  for (wl_u64 t = (wl_u64)simt_bid() * simt_bdim() + simt_tid(); t < args->n_tuples; t += step) {
    const wl_u32 passed = args->passed[t], start = args->start[t], count = args->count[t];
    if (!args->ended) {
      wl_u64 left = start == WL_K_NO_ROW || passed != WL_K_NO_ROW || count <= args->skip
                        ? 0
                        : count - args->skip;
      args->now[t] = (wl_u32)(left < args->most ? left : args->most);
    } else if (passed == WL_K_NO_ROW) {
      args->start[t] = WL_K_NO_ROW;
      args->count[t] = !args->drops_lost;
    } else {
      args->start[t] = passed;
      args->count[t] = args->drops_found ? 0 : args->repeats ? count - (passed - start) : 1;
    }
  }
}

/* ---- the kernel that makes lists of sorted pairs */

/* The number of pairs of slots before s. */
WL_FN wl_u32 kj_pairs_below(const wl_klists *args, wl_u64 s) {
  wl_u64 lo = 0, hi = args->n; /* pairs before lo have smaller slots, those from hi on do not */
  while (lo < hi) {
    wl_u64 mid = (lo + hi) / 2;
    if (args->pairs[mid] >> 32 < s)
      lo = mid + 1;
    else
      hi = mid;
  }
  return (wl_u32)lo;
}

WL_KERNEL_OF(wl_lists, wl_klists, 512) {
  const wl_u64 step = (wl_u64)simt_gdim() * simt_bdim();
  const wl_u64 first = (wl_u64)simt_bid() * simt_bdim() + simt_tid();
  for (wl_u64 i = first; i < args->n; i += step) args->rows[i] = (wl_u32)args->pairs[i];
  for (wl_u64 s = first; s <= args->span && args->starts; s += step)
    args->starts[s] = kj_pairs_below(args, s);
  for (wl_u64 s = first; s < args->span && !args->starts; s += step) {
    wl_u32 at = kj_pairs_below(args, s), end = kj_pairs_below(args, s + 1);
    args->slots[s] = at < end ? at : WL_K_NO_ROW;
    args->counts[s] = end - at;
  }
}

#endif
