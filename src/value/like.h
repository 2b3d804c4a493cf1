/*
** LIKE and GLOB: matches a pattern against a text, by the rules of SQLite's own functions. Compiled
** for every machine. Uses no recursion and allocates nothing.
**
** Invariants:
** 1. Pattern and text end at their length or at a NUL byte, whichever comes first.
** 2. Characters are UTF-8. A malformed one counts as U+FFFD. Only ASCII letters have two cases.
** 3. After a mismatch only the latest % (or *) can help: it takes one more character.
*/
#ifndef WL_LIKE_H
#define WL_LIKE_H

#include "value/value.h"

/* Reads the character at *i and moves *i past it. Returns 0 at the end. */
WL_FN wl_u32 wl_utf8_next(const wl_u8 *p, wl_u32 n, wl_u32 *i) {
  if (*i >= n || p[*i] == 0) return 0;
  wl_u32 c = p[(*i)++];
  if (c < 0xc0) return c;
  c &= c < 0xe0 ? 0x1fu : c < 0xf0 ? 0x0fu : c < 0xf8 ? 0x07u : c < 0xfc ? 0x03u : 0x01u;
  if (p[*i - 1] >= 0xfe) c = 0;
  for (; *i < n && (p[*i] & 0xc0) == 0x80; (*i)++) c = c << 6 | (p[*i] & 0x3fu);
  return c < 0x80 || (c & 0xfffff800u) == 0xd800 || (c & 0xfffffffeu) == 0xfffe ? 0xfffdu : c;
}

typedef struct wl_like {
  const wl_u8 *p; /* the pattern */
  wl_u32 n;
  wl_u32 all, one, escape; /* the special characters; 0: there is none */
  int set;                 /* [...] is a set, and case matters */
} wl_like;

WL_FN wl_like wl_like_open(wl_val pattern, int glob, int escape) {
  wl_like k;
  k.p = wl_bytes(pattern);
  k.n = pattern.n;
  k.escape = (wl_u32)escape;
  k.all = glob ? '*' : k.escape == '%' ? 0 : '%';
  k.one = glob ? '?' : k.escape == '_' ? 0 : '_';
  k.set = glob;
  return k;
}

/* Whether c is in the set whose first character is at *i. Moves *i past its ]. */
WL_FN int wl_like_set(const wl_like *k, wl_u32 *i, wl_u32 c) {
  wl_u32 before = 0, x = wl_utf8_next(k->p, k->n, i);
  int in = 0, without = x == '^';
  if (without) x = wl_utf8_next(k->p, k->n, i);
  if (x == ']') {
    in = c == ']';
    x = wl_utf8_next(k->p, k->n, i);
  }
  for (; x != 0 && x != ']'; x = wl_utf8_next(k->p, k->n, i)) {
    wl_u8 follows = *i < k->n ? k->p[*i] : 0;
    if (x == '-' && follows != ']' && follows != 0 && before > 0) {
      x = wl_utf8_next(k->p, k->n, i);
      if (c >= before && c <= x) in = 1;
      before = 0;
    } else {
      if (c == x) in = 1;
      before = x;
    }
  }
  return x == ']' && in != without;
}

WL_FN wl_u8 wl_like_case(const wl_like *k, wl_u8 c) {
  return k->set ? c : wl_to_lower(c);
}
/* The plain ASCII character of the pattern at i, or 0. In lower case unless case matters. */
WL_FN wl_u8 wl_like_plain(const wl_like *k, wl_u32 i) {
  wl_u8 c = i < k->n ? k->p[i] : 0;
  if (c >= 0x80 || c == k->all || c == k->one || c == k->escape || (k->set && c == '[')) return 0;
  return wl_like_case(k, c);
}

WL_FN int wl_like_match(const wl_like *k, const wl_u8 *s, wl_u32 n) {
  wl_u32 pi = 0, si = 0;      /* current positions in pattern and text */
  wl_u32 star = 0, retry = 0; /* the position after the latest %, and where its match in the text
                              ** may restart */
  int starred = 0;
  wl_u8 next_is = 0; /* the ASCII character required after the %, or 0 */
  for (;;) {
    wl_u32 at = pi, c = wl_utf8_next(k->p, k->n, &at);
    int same;
    if (c != 0 && c == k->all && c != k->escape) {
      pi = star = at;
      retry = si;
      starred = 1;
      next_is = wl_like_plain(k, at);
      continue;
    }
    if (c == 0) {
      if (si >= n || s[si] == 0) return 1;
      if (starred && star == pi) return 1; /* nothing after the %, so it takes the rest */
      same = 0;
    } else {
      wl_u32 next = si, x = wl_utf8_next(s, n, &next);
      int literal = 0;
      if (x == 0) return 0; /* the text has ended but the pattern has not */
      if (k->set && c == '[') {
        same = wl_like_set(k, &at, x);
      } else {
        if (c == k->escape && !k->set) {
          c = wl_utf8_next(k->p, k->n, &at);
          if (c == 0) return 0; /* an escape at the end matches nothing */
          literal = 1;
        }
        same = c == x || (!literal && c == k->one) ||
               (!k->set && c < 0x80 && x < 0x80 && wl_to_lower((wl_u8)c) == wl_to_lower((wl_u8)x));
      }
      if (same) {
        pi = at;
        si = next;
        continue;
      }
    }
    if (!starred) return 0;
    if (wl_utf8_next(s, n, &retry) == 0) return 0;
    if (next_is)
      while (retry < n && s[retry] && wl_like_case(k, s[retry]) != next_is) retry++;
    si = retry;
    pi = star;
  }
}

#endif
