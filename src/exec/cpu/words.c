/*
** Keys as words; see words.h.
*/
#include "exec/cpu/words.h"
#include <string.h>

/* Appends a part: to the last word if it has room, else to a new word. */
static void add_part(wl_words *w, wl_part part, bool fresh) {
  unsigned __int128 product = (unsigned __int128)w->used * part.span;
  bool wide = part.span == 0;
  if (w->n_words == 0 || fresh || wide || w->used == 0 || product >> 64) {
    w->n_words++;
    product = part.span;
  }
  part.word = w->n_words - 1;
  part.below = 1;
  for (int k = 0; k < w->n_parts && !wide; k++)
    if (w->parts[k].word == part.word) w->parts[k].below *= part.span;
  w->used = wide ? 0 : (wl_u64)product;
  w->parts[w->n_parts++] = part;
}

bool wl_words_key(wl_words *w, int key, wl_reg reg, const wl_domain *d, bool desc, bool null_last,
                  bool fresh) {
  wl_part part = {.key = key, .null = reg.nullable, .desc = desc, .null_last = null_last};
  if (reg.type == WL_R_REAL) {
    part.kind = WL_PART_REAL;
    w->zero |= d->flo <= 0 && d->fhi >= 0;
    add_part(w, part, fresh);
    return w->n_words <= WL_MAX_WORDS;
  }
  if (reg.type != WL_R_INT) return false;
  __int128 span = (__int128)d->hi - d->lo + 1;
  if (!(d->mask & WL_M(WL_T_INT)) || span < 0) span = 0;
  if (span) {
    part.lo = d->lo;
    part.hi = d->hi;
  }
  if (span + part.null < (__int128)1 << 63) {
    part.kind = WL_PART_INT;
    part.span = (wl_u64)span + part.null;
    if (part.span == 0) part.span = 1;
    add_part(w, part, fresh);
    return w->n_words <= WL_MAX_WORDS;
  }
  if (part.null) {
    wl_part null = part;
    null.kind = WL_PART_NULL;
    null.span = 2;
    add_part(w, null, fresh);
  }
  part.kind = WL_PART_WIDE;
  add_part(w, part, fresh);
  return w->n_words <= WL_MAX_WORDS;
}

/* out = out * span + code. If the part opens its word, out = code. */
static WL_CLONES void encode_ints(wl_u64 *restrict out, const wl_i64 *v, int n, wl_u64 base,
                                  wl_u64 span, bool open, bool turn) {
  if (open && !turn)
    for (int i = 0; i < n; i++) out[i] = (wl_u64)v[i] - base;
  else if (open)
    for (int i = 0; i < n; i++) out[i] = base - (wl_u64)v[i];
  else if (!turn)
    for (int i = 0; i < n; i++) out[i] = out[i] * span + ((wl_u64)v[i] - base);
  else
    for (int i = 0; i < n; i++) out[i] = out[i] * span + (base - (wl_u64)v[i]);
}

static WL_CLONES void encode_reals(wl_u64 *restrict out, const double *v, int n, wl_u64 turn) {
  for (int i = 0; i < n; i++) out[i] = wl_sort_real(v[i]) ^ turn;
}

void wl_words_part(const wl_part *p, bool open, const wl_vec *q, int n, wl_u64 *out) {
  /* If NULL comes first, values start at 1. */
  wl_u64 step = p->null && !p->null_last;
  wl_u64 base = p->desc ? (wl_u64)p->hi + step : (wl_u64)p->lo - step;
  if (q->stride && !(p->null && q->t)) {
    if (p->kind == WL_PART_INT) {
      encode_ints(out, (const wl_i64 *)q->v, n, base, p->span, open, p->desc);
      return;
    }
    if (p->kind == WL_PART_REAL) {
      encode_reals(out, (const double *)q->v, n, p->desc ? ~0ULL : 0);
      return;
    }
  }
  for (int i = 0; i < n; i++) {
    wl_u64 v = q->v[q->stride ? i : 0], code = 0;
    bool there = !q->t || q->t[i];
    switch (p->kind) {
    case WL_PART_INT:
      code = there ? (p->desc ? base - v : v - base) : p->null_last ? p->span - 1 : 0;
      break;
    case WL_PART_NULL: code = there != p->null_last; break;
    case WL_PART_WIDE:
      if (there) code = p->desc ? ~wl_sort_int((wl_i64)v) : wl_sort_int((wl_i64)v);
      break;
    case WL_PART_REAL:
      code = there ? wl_sort_real(wl_as_f64(v)) : 0;
      if (there ? p->desc : p->null_last) code = ~code;
      break;
    }
    out[i] = open || p->span == 0 ? code : out[i] * p->span + code;
  }
}

void wl_words_encode(const wl_words *w, const wl_vec *keys, int n, wl_u64 *out) {
  if (w->n_parts == 0) memset(out, 0, (size_t)n * sizeof *out);
  for (int k = 0; k < w->n_parts; k++) {
    const wl_part *p = &w->parts[k];
    bool open = k == 0 || w->parts[k - 1].word != p->word;
    wl_words_part(p, open, &keys[p->key], n, out + (size_t)p->word * WL_VECTOR);
  }
}

wl_val wl_words_decode(const wl_words *w, int key, const wl_u64 *words, bool minus) {
  for (int k = 0; k < w->n_parts; k++) {
    const wl_part *p = &w->parts[k];
    if (p->key != key) continue;
    wl_u64 code = words[p->word], null = p->null_last ? p->span - 1 : 0;
    if (p->span) code = code / p->below % p->span;
    switch (p->kind) {
    case WL_PART_INT: {
      wl_u64 step = p->null && !p->null_last;
      if (p->null && code == null) return wl_null();
      return wl_int((wl_i64)(p->desc ? (wl_u64)p->hi + step - code : code + (wl_u64)p->lo - step));
    }
    case WL_PART_NULL:
      if (code == null) return wl_null();
      continue; /* the value is in the next part */
    case WL_PART_WIDE: return wl_int((wl_i64)((p->desc ? ~code : code) ^ 1ULL << 63));
    case WL_PART_REAL:
      if (p->null && code == (p->null_last ? ~0ULL : 0)) return wl_null();
      if (minus) return wl_real(-0.0);
      return wl_real(wl_sort_unreal(p->desc ? ~code : code));
    }
  }
  return wl_null();
}
