/*
** Vectors of keys as words; see encode.h.
*/
#include "exec/cpu/encode.h"
#include <string.h>

static WL_CLONES void encode_ints(wl_u64 *restrict out, const wl_i64 *v, int n, wl_u64 base,
                                  wl_u64 span, bool first, bool desc) {
  if (first && !desc)
    for (int i = 0; i < n; i++) out[i] = (wl_u64)v[i] - base;
  else if (first)
    for (int i = 0; i < n; i++) out[i] = base - (wl_u64)v[i];
  else if (!desc)
    for (int i = 0; i < n; i++) out[i] = out[i] * span + ((wl_u64)v[i] - base);
  else
    for (int i = 0; i < n; i++) out[i] = out[i] * span + (base - (wl_u64)v[i]);
}

/* Integers from lo on that have codes below n_values. */
static WL_CLONES void encode_within(wl_u64 *restrict out, wl_u8 *restrict ok, const wl_i64 *v,
                                    int n, wl_u64 lo, wl_u64 n_values, wl_u64 span, bool first) {
  if (first)
    for (int i = 0; i < n; i++) {
      wl_u64 code = (wl_u64)v[i] - lo;
      out[i] = code;
      ok[i] = code < n_values;
    }
  else
    for (int i = 0; i < n; i++) {
      wl_u64 code = (wl_u64)v[i] - lo;
      out[i] = out[i] * span + code;
      ok[i] &= code < n_values;
    }
}

static WL_CLONES void encode_reals(wl_u64 *restrict out, const double *v, int n, wl_u64 invert) {
  for (int i = 0; i < n; i++) out[i] = wl_word_of_real(v[i]) ^ invert;
}

/* The same with NULLs. negate is ~0 with desc: then a code is base - v. */
static WL_CLONES void encode_nullable_ints(wl_u64 *restrict out, const wl_u64 *v, const wl_u8 *t,
                                           int n, wl_u64 base, wl_u64 negate, wl_u64 null,
                                           wl_u64 span, bool first) {
  if (first)
    for (int i = 0; i < n; i++) out[i] = t[i] ? ((v[i] - base) ^ negate) - negate : null;
  else
    for (int i = 0; i < n; i++)
      out[i] = out[i] * span + (t[i] ? ((v[i] - base) ^ negate) - negate : null);
}

static WL_CLONES void encode_nullable_reals(wl_u64 *restrict out, const double *v, const wl_u8 *t,
                                            int n, wl_u64 invert, wl_u64 null) {
  for (int i = 0; i < n; i++) out[i] = t[i] ? wl_word_of_real(v[i]) ^ invert : null;
}

/* Encodes a vector of numbers, if there is a loop for the part. */
static bool encode_numbers(const wl_key_part *p, bool first, const wl_vec *q, int n, wl_u64 *out) {
  bool nulls = p->null && q->t;
  wl_u64 invert = p->desc ? ~0ULL : 0, null = wl_key_code(p, 0, 0);
  if (p->kind == WL_PART_INT && nulls)
    encode_nullable_ints(out, q->v, q->t, n, wl_key_base(p), invert, null, p->span, first);
  else if (p->kind == WL_PART_INT)
    encode_ints(out, (const wl_i64 *)q->v, n, wl_key_base(p), p->span, first, p->desc);
  else if (p->kind == WL_PART_REAL && nulls)
    encode_nullable_reals(out, (const double *)q->v, q->t, n, invert, null);
  else if (p->kind == WL_PART_REAL)
    encode_reals(out, (const double *)q->v, n, invert);
  else
    return false;
  return true;
}

void wl_encode_part(const wl_key_part *p, bool first, const wl_vec *q, int n, wl_u64 *out) {
  if (q->stride && encode_numbers(p, first, q, n, out)) return;
  if (p->kind == WL_PART_TEXT) {
    for (int i = 0; i < n; i++) out[i] = wl_text_word(p, wl_vec_get(q, i), 0);
  } else if (p->kind == WL_PART_PREFIX) {
    for (int i = 0; i < n; i++) out[i] = wl_key_prefix(p, wl_vec_get(q, i));
  } else {
    for (int i = 0; i < n; i++) {
      wl_u64 code = wl_key_code(p, q->v[q->stride ? i : 0], !q->t || q->t[i]);
      out[i] = wl_key_append(p, first ? 0 : out[i], code);
    }
  }
}

void wl_encode_within(const wl_key_part *p, bool first, const wl_vec *q, int n, wl_u64 *out,
                      wl_u8 *ok) {
  bool full = p->lo == WL_I64_MIN && p->hi == WL_I64_MAX;
  bool from_lo = p->kind == WL_PART_INT && !p->desc && wl_key_base(p) == (wl_u64)p->lo && !full;
  if (q->stride && from_lo && !(p->null && q->t)) {
    wl_u64 n_values = p->lo <= p->hi ? (wl_u64)p->hi - (wl_u64)p->lo + 1 : 0;
    encode_within(out, ok, (const wl_i64 *)q->v, n, (wl_u64)p->lo, n_values, p->span, first);
    for (int i = 0; q->t && i < n; i++) ok[i] &= q->t[i];
    return;
  }
  wl_encode_part(p, first, q, n, out);
  if (first) memset(ok, 1, (size_t)n);
  if (p->kind == WL_PART_REAL && (p->null || !q->t)) return;
  for (int i = 0; i < n; i++)
    ok[i] &= (wl_u8)wl_key_holds(p, q->v[q->stride ? i : 0], !q->t || q->t[i]);
}

void wl_encode_keys(const wl_key_layout *l, const wl_vec *keys, int n, wl_u64 *out) {
  if (l->n_parts == 0) memset(out, 0, (size_t)n * sizeof *out);
  for (int k = 0; k < l->n_parts; k++) {
    const wl_key_part *p = &l->parts[k];
    bool first = k == 0 || l->parts[k - 1].word != p->word;
    wl_encode_part(p, first, &keys[p->key], n, out + (size_t)p->word * WL_VECTOR);
  }
}
