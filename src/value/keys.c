/*
** Which keys share a word; see keys.h.
*/
#include "value/keys.h"
#include <assert.h>

/* Appends a part to the last word if it has room, else to a new word. */
static void add_part(wl_key_layout *l, wl_key_part part, bool new_word) {
  unsigned __int128 product = (unsigned __int128)l->used * part.span;
  bool alone = part.span == 0;
  assert(!l->prefix);
  if (l->n_words == 0 || new_word || alone || l->used == 0 || product >> 64) {
    l->n_words++;
    product = part.span;
  }
  part.word = (wl_u16)(l->n_words - 1);
  part.below = 1;
  for (int k = 0; k < l->n_parts && !alone; k++)
    if (l->parts[k].word == part.word) l->parts[k].below *= part.span;
  l->used = (wl_u64)product;
  l->parts[l->n_parts++] = part;
}

/* The number of codes of an INT part, at least 1. */
static unsigned __int128 int_codes(const wl_key_part *p) {
  unsigned __int128 n = p->null;
  if (p->lo <= p->hi) n += (unsigned __int128)((__int128)p->hi - p->lo + 1);
  return n ? n : 1;
}

static wl_key_part new_part(int key, wl_part_kind kind, bool null, unsigned flags) {
  return (wl_key_part){.hi = -1,
                       .key = key,
                       .kind = (wl_u8)kind,
                       .null = null,
                       .null_last = (flags & WL_KEY_NULL_LAST) != 0,
                       .desc = (flags & WL_KEY_DESC) != 0};
}

bool wl_key_layout_add(wl_key_layout *l, int key, wl_reg reg, const wl_domain *d, unsigned flags) {
  bool new_word = (flags & WL_KEY_NEW_WORD) != 0;
  if (reg.type == WL_R_REAL) {
    add_part(l, new_part(key, WL_PART_REAL, reg.nullable, flags), new_word);
    l->zero |= d->flo <= 0 && d->fhi >= 0;
    return true;
  }
  if (reg.type != WL_R_INT) return false;
  wl_key_part part = new_part(key, WL_PART_INT, reg.nullable, flags);
  if ((d->mask & WL_M(WL_T_INT)) && d->lo <= d->hi) {
    part.lo = d->lo;
    part.hi = d->hi;
  }
  unsigned __int128 codes = int_codes(&part);
  bool fits = codes >> 64 == 0, has_null_part = part.null && !fits;
  if (has_null_part) {
    wl_key_part null = new_part(key, WL_PART_NULL, true, flags);
    null.span = 2;
    add_part(l, null, new_word);
  }
  part.span = fits ? (wl_u64)codes : 0;
  add_part(l, part, new_word && !has_null_part);
  return true;
}

void wl_key_layout_add_text(wl_key_layout *l, int key, wl_u8 coll, unsigned flags) {
  wl_key_part part = new_part(key, WL_PART_TEXT, true, flags);
  part.coll = coll;
  add_part(l, part, true);
}

void wl_key_layout_add_prefix(wl_key_layout *l, int key, wl_u8 coll, unsigned flags) {
  wl_key_part part = new_part(key, WL_PART_PREFIX, true, flags);
  part.coll = coll;
  add_part(l, part, true);
  l->prefix = true;
}

void wl_key_layout_add_value(wl_key_layout *l, int key, wl_u8 coll, unsigned flags) {
  wl_key_part first = new_part(key, WL_PART_CLASS, true, flags),
              value = new_part(key, WL_PART_VALUE, true, flags);
  first.span = 4;
  value.coll = coll;
  add_part(l, first, (flags & WL_KEY_NEW_WORD) != 0);
  add_part(l, value, true);
}

void wl_key_part_set_range(wl_key_part *p, wl_i64 lo, wl_i64 hi) {
  assert(p->kind == WL_PART_INT && p->below == 1);
  p->lo = lo <= hi ? lo : 0;
  p->hi = lo <= hi ? hi : -1;
  assert(int_codes(p) >> 64 == 0);
  p->span = (wl_u64)int_codes(p);
}

wl_u64 wl_key_layout_used(const wl_key_layout *l, int word) {
  for (int k = 0; k < l->n_parts; k++)
    if (l->parts[k].word == word) return l->parts[k].span * l->parts[k].below;
  return 1;
}

void wl_key_layout_encode(const wl_key_layout *l, const wl_val *keys, wl_u64 *words) {
  for (int w = 0; w < l->n_words; w++) words[w] = 0;
  for (int k = 0; k < l->n_parts; k++) {
    const wl_key_part *p = &l->parts[k];
    words[p->word] = wl_key_append(p, words[p->word], wl_key_first_code(p, keys[p->key]));
  }
}

wl_val wl_key_layout_decode(const wl_key_layout *l, int key, const wl_u64 *words, bool minus) {
  for (int k = 0; k < l->n_parts; k++) {
    const wl_key_part *p = &l->parts[k];
    if (p->key != key) continue;
    assert(p->kind < WL_PART_TEXT);
    wl_val v = wl_key_decode(p, words[p->word]);
    if (p->kind == WL_PART_NULL && v.t != WL_T_NULL) continue; /* the next part has the value */
    return minus ? wl_real(-0.0) : v;
  }
  return wl_null();
}
