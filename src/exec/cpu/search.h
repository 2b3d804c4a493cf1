/*
** LIKE and GLOB over a vector of texts. They search for a word that every match must contain: all
** of the pattern between wildcards, as in LIKE '%word%', or the longest plain piece of it. The
** texts of neighbouring rows are adjacent in memory, so the bytes of many rows are searched at
** once, 32 at a time. Only rows that contain the word are examined.
**
** Invariants:
** 1. The word is ASCII without NUL: equal bytes are equal characters, whatever surrounds them.
** 2. For LIKE, a text ends at its first NUL. A word found after it does not count.
*/
#ifndef WL_SEARCH_H
#define WL_SEARCH_H

#include "value/like.h"
#include <string.h>

typedef struct wl_word {
  wl_u8 p[64]; /* in lower case if nocase */
  wl_u32 n;
  bool nocase;
  bool whole;      /* the pattern is just the word between wildcards, so a find is a match */
  wl_like pattern; /* if not whole, a row with the word must match this */
} wl_word;

static inline wl_u8 word_case(const wl_word *w, wl_u8 c) {
  return w->nocase ? wl_to_lower(c) : c;
}

/* Finds the word in a pattern. Returns false if there is none. */
static bool word_of(wl_val pattern, bool glob, int escape, wl_word *w) {
  wl_like k = w->pattern = wl_like_open(pattern, glob, escape);
  const wl_u8 *p = k.p;
  wl_u32 n = k.n, best = 0, from = 0;
  if (escape >= 0x80) return false;
  for (wl_u32 i = 0; i < n && p[i];) {
    wl_u32 end = i;
    while (end < n && p[end] && p[end] < 0x80 && p[end] != k.all && p[end] != k.one &&
           p[end] != k.escape && !(glob && p[end] == '['))
      end++;
    if (end - i > best) {
      best = end - i;
      from = i;
    }
    if (end < n && ((glob && p[end] == '[') || (escape && p[end] == k.escape)))
      break; /* the characters that follow have a special meaning */
    i = end + 1;
  }
  if (best == 0) return false;
  w->whole = from > 0 && from + best < n && best <= sizeof w->p;
  for (wl_u32 i = 0; i < n && w->whole; i++)
    w->whole = (i >= from && i < from + best) || (p[i] == k.all && k.all);
  w->n = best < sizeof w->p ? best : (wl_u32)sizeof w->p;
  w->nocase = !glob;
  for (wl_u32 i = 0; i < w->n; i++) w->p[i] = word_case(w, p[from + i]);
  return true;
}

static inline bool word_at(const wl_word *w, const wl_u8 *p) {
  wl_u32 i = 0;
  while (i < w->n && word_case(w, p[i]) == w->p[i]) i++;
  return i == w->n;
}

/* Bit 5 of a letter is its case. With that bit set, upper and lower case are equal. */
static inline wl_u8 case_bit(const wl_word *w, wl_u8 c) {
  return w->nocase && c >= 'a' && c <= 'z' ? 0x20 : 0;
}

typedef wl_u8 bytes32 __attribute__((vector_size(32)));
typedef wl_u64 words4 __attribute__((vector_size(32)));

/*
** Finds the positions where both the first and the last byte of the word match, for 32 positions
** from `from` on. It is a macro because a vector must not be passed between functions compiled for
** different instruction sets.
*/
#define WORD_ENDS(hit, from)                                                                       \
  do {                                                                                             \
    bytes32 x, y;                                                                                  \
    memcpy(&x, (from), 32);                                                                        \
    memcpy(&y, (from) + last, 32);                                                                 \
    hit = (bytes32)((x | bit_a) == a) & (bytes32)((y | bit_b) == b);                               \
  } while (0)

/* Returns the first occurrence of the word in [p, end), or NULL. */
static WL_CLONES const wl_u8 *word_find(const wl_word *w, const wl_u8 *p, const wl_u8 *end) {
  enum { STEP = 64 };
  const wl_u32 last = w->n - 1;
  const wl_u8 a = w->p[0], b = w->p[last], bit_a = case_bit(w, a), bit_b = case_bit(w, b);
  for (; end - p >= (long)(STEP + last); p += STEP) {
    bytes32 hit[2], both;
    WORD_ENDS(hit[0], p);
    WORD_ENDS(hit[1], p + 32);
    both = hit[0] | hit[1];
    words4 any;
    memcpy(&any, &both, 32);
    if ((any[0] | any[1] | any[2] | any[3]) == 0) continue;
    wl_u64 at[STEP / 8];
    memcpy(at, hit, STEP);
    for (int k = 0; k < STEP / 8; k++)
      while (at[k]) { /* bytes of ones */
        int i = __builtin_ctzll(at[k]) / 8;
        if (word_at(w, p + 8 * k + i)) return p + 8 * k + i;
        at[k] &= ~(0xffULL << 8 * i);
      }
  }
  for (; end - p >= (long)w->n; p++)
    if (word_at(w, p)) return p;
  return NULL;
}

/* Computes the truths for n texts: v are their addresses, len their lengths; valid may be NULL. */
static void word_search(const wl_word *w, const wl_u64 *v, const wl_u32 *len, const wl_u8 *valid,
                        int n, wl_u8 *out) {
  for (int i = 0; i < n;) {
    if (valid && !valid[i]) {
      out[i++] = WL_UNKNOWN;
      continue;
    }
    /* The texts of rows [i, j) are adjacent, apart from NULLs. */
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
      if (p + w->n > text + len[r]) { /* it begins in one row and ends in the next */
        p++;
        continue;
      }
      bool found = w->whole ? !memchr(text, 0, (size_t)(p - text))
                            : wl_like_match(&w->pattern, text, len[r]);
      if (found) out[r] = WL_TRUE;
      p = text + len[r];
    }
    i = j;
  }
}

#endif
