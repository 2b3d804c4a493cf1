/*
** Rows in the kernels: columns read at row numbers, and Probe, which finds the row numbers of
** joined sources. Included by kernels.h, whose operands it uses.
**
** A thread has WL_K_ROWS rows. What it reads for them is asked for in one go, before the first
** answer is used: a kernel waits for memory most of the time, and four waits at once are one.
** Shared memory: a plane of row numbers for each joined source that is read; entry k * T + t is
** thread t's. WL_K_NO_ROW: the source has no row here, and its columns are NULL.
*/
#ifndef WL_KJOIN_H
#define WL_KJOIN_H

#include "vm/gpu/kernels.h"
#include "vm/key_hash.h"

#define KJ_EACH    for (wl_u32 k = 0; k < WL_K_ROWS; k++)
#define KJ_ON(set) if ((set) >> k & 1)

WL_FN wl_u32 *k_row(const wl_kargs *args, wl_u8 *sh, wl_u32 plane, wl_u32 slot) {
  wl_u32 at = (plane - 1) * simt_bdim() * WL_K_ROWS + slot;
  return (wl_u32 *)(void *)(sh + args->plane_offset) + at;
}

/* ---- columns */

#define KJ_READ(type, make)                                                                        \
  KJ_EACH KJ_ON(there) v[k] = make(((const type *)(const void *)c->data)[row[k]]);                 \
  break;
#define KJ_INT(x)  (wl_u64)(wl_i64)(x)
#define KJ_REAL(x) wl_f64_bits((double)(x))

/* Register d of the rows act is column c: at the tile's rows from base on, or where there is a
** plane at the rows it names. */
WL_FN void k_load(const wl_kargs *args, wl_u8 *sh, const wl_kopnd *d, const wl_kcol *c,
                  wl_u32 plane, wl_u64 base, wl_u32 act) {
  const wl_u32 T = simt_bdim(), tid = simt_tid();
  wl_u32 there = act;
  wl_u64 row[WL_K_ROWS], v[WL_K_ROWS] = {0};
  KJ_EACH row[k] = base + k * T + tid;
  if (plane) KJ_EACH KJ_ON(act) {
      row[k] = *k_row(args, sh, plane, k * T + tid);
      if (row[k] == WL_K_NO_ROW) there &= ~(1u << k);
    }
  wl_u32 valid = there;
  if (c->valid) {
    wl_u8 bits[WL_K_ROWS] = {0};
    KJ_EACH KJ_ON(there) bits[k] = c->valid[row[k] >> 3];
    KJ_EACH if (!(bits[k] >> (row[k] & 7) & 1)) valid &= ~(1u << k);
  }
  switch (c->phys) {
  case WL_P_I8: KJ_READ(wl_i8, KJ_INT)
  case WL_P_I16: KJ_READ(wl_i16, KJ_INT)
  case WL_P_I32: KJ_READ(wl_i32, KJ_INT)
  case WL_P_F32: KJ_READ(float, KJ_REAL)
  default: KJ_READ(wl_u64, (wl_u64))
  }
  if (c->phys == WL_P_TEXT || c->phys == WL_P_ANY) KJ_EACH KJ_ON(act) {
      wl_u32 s = k * T + tid, n = 0;
      wl_u8 tag = WL_T_NULL;
      KJ_ON(there) tag = c->phys == WL_P_TEXT ? (wl_u8)WL_T_TEXT : c->tags[row[k]];
      if (tag >= WL_T_TEXT) {
        n = (wl_u32)(v[k] >> 32);
        v[k] = (wl_u64)(size_t)(c->heap + c->heap_base[row[k] >> 16] + (wl_u32)v[k]);
      }
      *(wl_u32 *)(void *)(sh + d->n + 4 * s) = n;
      if (c->phys == WL_P_ANY) sh[d->t + s] = tag;
    }
  KJ_EACH KJ_ON(act) {
    k_set_bits(sh, d, k * T + tid, v[k]);
    if (d->type != WL_R_ANY) k_set_valid(sh, d, k * T + tid, (wl_u8)(valid >> k & 1));
  }
}

/* ---- joins */

/* The words of the rows' keys; gives the rows of act whose keys can match something. */
WL_FN wl_u32 kj_words(const wl_u8 *sh, const wl_kopnd *opnds, const wl_kjoin *j, wl_u32 act,
                      wl_u64 *word) {
  const wl_u32 T = simt_bdim(), tid = simt_tid();
  for (wl_u32 i = 0; i < j->n_keys; i++) {
    const wl_kjkey key = j->keys[i];
    const wl_kopnd *o = &opnds[key.operand];
    KJ_EACH KJ_ON(act) {
      wl_val v = k_val(sh, o, k * T + tid);
      wl_i64 x = (wl_i64)v.v;
      if (j->real && v.t == WL_T_REAL) /* alone; both zeros are one key */
        word[k] = wl_as_f64(v.v) == 0.0 ? 0 : v.v;
      else if (v.t == WL_T_INT && x >= key.lo && x <= key.hi && !j->real)
        word[k] += ((wl_u64)x - (wl_u64)key.lo) * key.below;
      else if (v.t == WL_T_NULL && key.null_equal)
        word[k] += ((wl_u64)key.hi + 1 - (wl_u64)key.lo) * key.below;
      else
        act &= ~(1u << k);
    }
  }
  return act;
}

/*
** The first row of each word, of the rows in `those`; WL_K_NO_ROW for the others. Open addressing
** ends: a lookup that hashes has an empty slot.
*/
WL_FN void kj_find(const wl_kjoin *j, const wl_u64 *word, wl_u32 those, wl_u32 *found) {
  wl_u64 at[WL_K_ROWS], have[WL_K_ROWS] = {0};
  wl_u32 end[WL_K_ROWS] = {0};
  KJ_EACH {
    found[k] = WL_K_NO_ROW;
    at[k] = j->words ? wl_key_hash(word[k]) & j->mask : word[k];
  }
  if (!j->slots) {
    KJ_EACH KJ_ON(those) {
      found[k] = j->starts[at[k]];
      end[k] = j->starts[at[k] + 1];
    }
    KJ_EACH KJ_ON(those) found[k] = found[k] < end[k] ? j->rows[found[k]] : WL_K_NO_ROW;
    return;
  }
  KJ_EACH KJ_ON(those) found[k] = j->slots[at[k]];
  if (j->words) {
    KJ_EACH KJ_ON(those) have[k] = j->words[at[k]];
    KJ_EACH KJ_ON(those) while (found[k] != WL_K_NO_ROW && have[k] != word[k]) {
      at[k] = (at[k] + 1) & j->mask;
      found[k] = j->slots[at[k]];
      have[k] = j->words[at[k]];
    }
  }
  if (j->rows) KJ_EACH if (found[k] != WL_K_NO_ROW) found[k] = j->rows[found[k]];
}

/* Probe: gives the rows that are left. */
WL_FN wl_u32 k_probe(const wl_kargs *args, wl_u8 *sh, const wl_kopnd *opnds, const wl_kjoin *j,
                     wl_u32 act) {
  const wl_u32 T = simt_bdim(), tid = simt_tid();
  wl_u64 word[WL_K_ROWS] = {0};
  wl_u32 found[WL_K_ROWS], lost = act;
  if (j->n_keys) {
    kj_find(j, word, kj_words(sh, opnds, j, act, word), found);
  } else {
    KJ_EACH found[k] = j->first;
  }
  KJ_EACH if (found[k] != WL_K_NO_ROW) lost &= ~(1u << k);
  if (j->plane) KJ_EACH KJ_ON(act) {
      wl_u32 *row = k_row(args, sh, j->plane, k * T + tid);
      *row = found[k];
    }
  if (j->drops_lost) act &= ~lost;
  if (j->drops_found) act &= lost;
  return act;
}

#endif
