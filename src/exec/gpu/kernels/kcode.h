/*
** Texts and values of several types as codes, for GROUP BY and DISTINCT aggregates. Included by
** kgroup.h. kgargs.h shows the entries of a coder; exec/gpu/coded.h says what codes are for.
**
** A row's value is hashed and looked for in the table. The thread that finds it missing copies it
** to the coder's memory, so that it outlives the launch. Its code is its place in the table.
** Ordering: kentry.h. Which of several equal values is copied depends on the order of threads.
** Where that can be seen, groups remember the look of their first row.
*/
#ifndef WL_KCODE_H
#define WL_KCODE_H

#include "exec/gpu/kernels/kernels.h"
#include "exec/gpu/kernels/kentry.h"

enum { KC_STEPS = 256, KC_LOST = 2 };

/* Values that are equal have the same hash. */
WL_FN wl_u64 kc_hash(wl_val v, int coll) {
  wl_u64 h = 0x9e3779b97f4a7c15ULL, w = 0;
  if (v.t == WL_T_INT) {
    double r = (double)(wl_i64)v.v; /* an integer has the hash of the real that is equal to it */
    int same = r < 9223372036854775808.0 && (wl_i64)r == (wl_i64)v.v;
    return wl_key_hash(same ? wl_f64_bits(r + 0.0) : v.v);
  }
  if (v.t == WL_T_REAL) return wl_key_hash(wl_f64_bits(wl_as_f64(v.v) + 0.0));
  const wl_u8 *p = wl_bytes(v);
  wl_u32 n = v.n;
  int text = v.t == WL_T_TEXT, lower = text && coll == WL_COLL_NOCASE;
  if (text && coll == WL_COLL_RTRIM)
    while (n > 0 && p[n - 1] == ' ') n--;
  h = h * ((wl_u64)n + 1) + (wl_u64)text;
  for (wl_u32 i = 0; i < n; i++) {
    if (lower && p[i] == 0) break; /* NOCASE compares up to a NUL, and then lengths */
    w = w << 8 | (lower ? wl_to_lower(p[i]) : p[i]);
    if ((i & 7) != 7) continue;
    h = (h ^ w) * 0xd6e8feb86659fd93ULL;
    h ^= h >> 32;
  }
  return wl_key_hash(h ^ w);
}

WL_FN int kc_same(const wl_kcoder *c, wl_val a, wl_val b) {
  if (c->look && a.t != b.t) return 0;
  if (c->look && a.t < WL_T_TEXT) return a.v == b.v;
  return wl_cmp_val(a, b, (int)c->coll) == 0;
}

/* Copies a value to the coder's memory. Returns its place, or ~0 if there is no room. */
WL_FN wl_u64 kc_copy(const wl_kcoder *c, wl_val v) {
  wl_u64 bytes = v.t >= WL_T_TEXT ? v.n : 8, n = 1 + (bytes + 7) / 8;
  wl_u64 at = simt_atomic_add_u64(c->used, n);
  if (at + n > c->size) return ~0ULL;
  wl_u64 *to = c->heap + at;
  to[0] = (wl_u64)v.n << 8 | v.t;
  if (v.t < WL_T_TEXT) {
    to[1] = v.v;
    return at;
  }
  const wl_u8 *from = wl_bytes(v);
  for (wl_u64 i = 0; i < bytes; i++) ((wl_u8 *)(to + 1))[i] = from[i];
  return at;
}

/* The code of a value that is not NULL. Returns ~0 if it did not fit, and sets *heap if that was
** for lack of memory for values. Sets *type to the type of the value of the code. */
WL_FN wl_u64 kc_find(const wl_kcoder *c, wl_val v, int *heap, wl_u8 *type) {
  const wl_u64 hash = kc_hash(v, (int)c->coll), want = hash | 1ULL << 63;
  for (wl_u64 i = 0; i < KC_STEPS && i < c->n_slots; i++) {
    wl_u64 code = (hash + i) & (c->n_slots - 1);
    wl_u64 *p = c->table + 2 * code, tag = ke_claim(p, simt_load_acquire_u64(p));
    if (tag == KE_FREE) {
      p[1] = kc_copy(c, v);
      *heap = p[1] == ~0ULL;
      simt_store_release_u64(p, *heap ? KC_LOST : want);
      return *heap ? ~0ULL : code;
    }
    if (tag != want) continue;
    wl_val known = wl_code_value(c->heap + p[1]);
    if (!kc_same(c, v, known)) continue;
    *type = known.t;
    return code;
  }
  return ~0ULL;
}

/* Runs WL_K_CODE for the rows `act` of a thread. If the coder is of looks, their groups are at the
** slots `group`, and their records keep the look of the first row. */
WL_FN_CALLED void kg_code(wl_u8 *sh, const wl_kgroup *g, wl_u32 coder, const wl_kopnd *d,
                          const wl_kopnd *a, const k_rows *rows, wl_u32 act, const wl_u32 *group) {
  const wl_kcoder *c = &g->coders[coder];
  K_EACH K_ON(act) {
    wl_val v = k_val(sh, a, K_SLOT);
    int heap = 0, there = v.t != WL_T_NULL;
    wl_u8 type = v.t;
    wl_u64 code = there ? kc_find(c, v, &heap, &type) : 0;
    if (c->strict && type != v.t) kg_set_full(g, WL_KG_TIED);
    if (code == ~0ULL) {
      kg_set_full(g, (heap ? WL_KG_FULL_HEAP : WL_KG_FULL_CODER) + coder);
      code = 0; /* the scan is repeated */
    }
    k_set_bits(sh, d, K_SLOT, code);
    k_set_valid(sh, d, K_SLOT, (wl_u8)there);
    if (c->word && there)
      k_max_word(kg_record(g, group[k]) + c->word, kg_rank(g, rows->row[k]) << 32 | code);
  }
}

#endif
