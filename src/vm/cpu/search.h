/*
** LIKE '%word%' and GLOB '*word*' over a vector of texts. Texts of neighbouring rows lie one
** behind the other in memory, so the bytes of many rows are searched in one go, 32 at a time, and
** what is found is then given to the row it lies in.
**
** Invariants:
** 1. The word is ASCII without NUL: equal bytes are equal characters, whatever surrounds them.
** 2. A text ends at its first NUL for LIKE; a find behind one does not count.
*/
#ifndef WL_SEARCH_H
#define WL_SEARCH_H

#include "vm/like.h"
#include <string.h>

typedef struct wl_word {
  wl_u8 p[64]; /* in lower case where case does not count */
  wl_u32 n;
  bool nocase;
} wl_word;

static inline wl_u8 word_case(const wl_word *w, wl_u8 c) {
  return w->nocase ? wl_to_lower(c) : c;
}

/* Whether the pattern is a plain word between wildcards for anything; if so, the word. */
static bool word_of(wl_val pattern, bool glob, int escape, wl_word *w) {
  wl_u8 all = glob ? '*' : '%';
  const wl_u8 *p = wl_bytes(pattern);
  wl_u32 n = pattern.n, first = 0;
  if (escape || n < 3 || p[0] != all || p[n - 1] != all) return false;
  while (first < n && p[first] == all) first++;
  while (n > first && p[n - 1] == all) n--;
  w->n = n - first;
  w->nocase = !glob;
  if (w->n == 0 || w->n > sizeof w->p) return false;
  for (wl_u32 i = 0; i < w->n; i++) {
    wl_u8 c = p[first + i];
    if (c == 0 || c >= 0x80 || c == all || c == (glob ? '?' : '_') || (glob && c == '['))
      return false;
    w->p[i] = word_case(w, c);
  }
  return true;
}

static inline bool word_at(const wl_word *w, const wl_u8 *p) {
  wl_u32 i = 0;
  while (i < w->n && word_case(w, p[i]) == w->p[i]) i++;
  return i == w->n;
}

/* Bit 5 of a letter is its case: set in both, two letters differ only if they are not one. */
static inline wl_u8 case_bit(const wl_word *w, wl_u8 c) {
  return w->nocase && c >= 'a' && c <= 'z' ? 0x20 : 0;
}

typedef wl_u8 bytes32 __attribute__((vector_size(32)));
typedef wl_u64 words4 __attribute__((vector_size(32)));

/* The first place of the word in [p, end), or NULL. */
static WL_CLONES const wl_u8 *word_find(const wl_word *w, const wl_u8 *p, const wl_u8 *end) {
  const wl_u32 last = w->n - 1;
  const wl_u8 a = w->p[0], b = w->p[last], bit_a = case_bit(w, a), bit_b = case_bit(w, b);
  for (; end - p >= (long)(32 + last); p += 32) {
    bytes32 x, y;
    memcpy(&x, p, 32);
    memcpy(&y, p + last, 32);
    bytes32 hit = (bytes32)((x | bit_a) == a) & (bytes32)((y | bit_b) == b);
    words4 any;
    memcpy(&any, &hit, 32);
    if ((any[0] | any[1] | any[2] | any[3]) == 0) continue;
    wl_u8 at[32];
    memcpy(at, &hit, 32);
    for (int i = 0; i < 32; i++)
      if (at[i] && word_at(w, p + i)) return p + i;
  }
  for (; end - p >= (long)w->n; p++)
    if (word_at(w, p)) return p;
  return NULL;
}

/* Truths for n texts (v addresses, len lengths, valid or NULL). */
static void word_search(const wl_word *w, const wl_u64 *v, const wl_u32 *len, const wl_u8 *valid,
                        int n, wl_u8 *out) {
  for (int i = 0; i < n;) {
    if (valid && !valid[i]) {
      out[i++] = WL_UNKNOWN;
      continue;
    }
    /* rows [i, j) lie in a row, NULLs between them aside */
    const wl_u8 *start = (const wl_u8 *)(size_t)v[i], *end = start;
    int j = i;
    for (; j < n; j++) {
      if (valid && !valid[j]) {
        out[j] = WL_UNKNOWN;
        continue;
      }
      if ((const wl_u8 *)(size_t)v[j] != end) break;
      out[j] = WL_FALSE;
      end += len[j];
    }
    const wl_u8 *p = start;
    for (int r = i; (p = word_find(w, p, end)) != NULL;) {
      while ((valid && !valid[r]) || p >= (const wl_u8 *)(size_t)v[r] + len[r]) r++;
      const wl_u8 *text = (const wl_u8 *)(size_t)v[r];
      if (p + w->n <= text + len[r] && !memchr(text, 0, (size_t)(p - text))) {
        out[r] = WL_TRUE;
        p = text + len[r];
      } else {
        p++;
      }
    }
    i = j;
  }
}

#endif
