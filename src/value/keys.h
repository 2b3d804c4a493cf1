/*
** The key codec: encodes the values of keys as unsigned words, and decodes them. GROUP BY,
** DISTINCT, ORDER BY and the lookups of joins use it on every machine, so this header compiles as
** C, as CUDA
** and for the simulator.
**
** A layout is a list of parts. Each key has one part, or two: whether it is NULL, then its integer.
** A part gives a value a code below `span`. Parts of small spans share a word, first part on top:
**
**     word = (code 0 * span 1 + code 1) * span 2 + code 2     below of part 0 = span 1 * span 2
**
**   INT     v - lo, or hi - v with desc. If NULL is a value, it is one more code, before or after.
**   NULL    1 bit for an integer that has no code left for NULL. Its INT part follows.
**   REAL    64 bits that sort as the reals do. NULL is 0 or ~0, which no real has.
**   TEXT    64 bits: the first bytes of a text and what follows. There are words for the next
**           bytes, too.
**   PREFIX  64 bits: the type of a value and its first bytes. This part is the last of its layout.
**   CLASS   2 bits for a value of any type: NULL, number, text or blob. A VALUE part follows.
**   VALUE   64 bits: the value, or its first bytes. Like TEXT, it has more words.
**
** Invariants:
** 1. Words, compared from first to last, have the order of the keys, with desc and null_last.
** 2. Without a TEXT, VALUE or PREFIX part, keys are equal if and only if their words are equal;
**    -0.0 and 0.0 are equal. With one, rows with equal words must be compared. With a TEXT or VALUE
**    part, invariant 1 holds if its next words are compared where it is equal, before later parts.
** 3. Decoding returns the encoded value. A zero comes back as 0.0.
** 4. INT: the caller encodes only values of the range [lo, hi]. wl_key_holds() tells. If there are
**    none, lo is 0 and hi is -1.
*/
#ifndef WL_KEYS_H
#define WL_KEYS_H

#include "value/value.h"
#ifndef __CUDACC__
#include "value/domain.h"
#include <string.h>
#endif

typedef enum wl_part_kind {
  WL_PART_INT,
  WL_PART_NULL,
  WL_PART_REAL,
  WL_PART_TEXT,
  WL_PART_PREFIX,
  WL_PART_CLASS,
  WL_PART_VALUE
} wl_part_kind;

typedef struct wl_key_part {
  wl_i64 lo, hi; /* INT: the range of the values */
  wl_u64 span;   /* number of codes; 0: 2^64 */
  wl_u64 below;  /* product of the spans after it in its word */
  wl_i32 key;    /* number of the key; in a kernel, of its operand */
  wl_u16 word;
  wl_u8 kind;
  wl_u8 null; /* NULL is a value */
  wl_u8 null_last, desc;
  wl_u8 coll; /* TEXT, PREFIX and VALUE */
} wl_key_part;

/* ---- numbers as words of the same order; -0.0 and 0.0 have one word */

WL_FN wl_u64 wl_word_of_int(wl_i64 v) {
  return (wl_u64)v ^ 1ULL << 63;
}
WL_FN wl_i64 wl_int_of_word(wl_u64 w) {
  return (wl_i64)(w ^ 1ULL << 63);
}
WL_FN wl_u64 wl_word_of_real(double d) {
  wl_u64 k = wl_f64_bits(d + 0.0); /* -0.0 + 0.0 is 0.0 */
  return k ^ ((wl_u64)((wl_i64)k >> 63) | 1ULL << 63);
}
WL_FN double wl_real_of_word(wl_u64 w) {
  return wl_as_f64(w >> 63 ? w & ~(1ULL << 63) : ~w);
}

/* ---- one part */

/* INT: the code of v is v - base, or base - v with desc. A part of 2^64 codes has none for NULL,
** and a NULL part before it. */
WL_FN wl_u64 wl_key_base(const wl_key_part *p) {
  wl_u64 step = p->null && !p->null_last && p->span; /* NULL has code 0, so values start at 1 */
  return p->desc ? (wl_u64)p->hi + step : (wl_u64)p->lo - step;
}

/* The code of a number. there: it is not NULL. */
WL_FN wl_u64 wl_key_code(const wl_key_part *p, wl_u64 bits, int there) {
  if (!there) return p->null_last ? p->span - 1 : 0;
  if (p->kind == WL_PART_NULL) return !p->null_last;
  if (p->kind == WL_PART_REAL) {
    wl_u64 w = wl_word_of_real(wl_as_f64(bits));
    return p->desc ? ~w : w;
  }
  return p->desc ? wl_key_base(p) - bits : bits - wl_key_base(p);
}

/* The word with one more part. It is 0 before its first part. */
WL_FN wl_u64 wl_key_append(const wl_key_part *p, wl_u64 word, wl_u64 code) {
  return word * p->span + code;
}

/* Whether an INT or REAL part has a code for a value, which may be outside the range. */
WL_FN int wl_key_holds(const wl_key_part *p, wl_u64 bits, int there) {
  if (!there) return p->null;
  return p->kind == WL_PART_REAL || ((wl_i64)bits >= p->lo && (wl_i64)bits <= p->hi);
}

/* The value of a part, from its word. A NULL part gives NULL, or 0 if the next part has the value.
 */
WL_FN wl_val wl_key_decode(const wl_key_part *p, wl_u64 word) {
  wl_u64 code = p->below == 1 ? word : word / p->below;
  if (p->span && code >= p->span) code %= p->span;
  if (p->null && (p->span || p->kind == WL_PART_REAL) && code == wl_key_code(p, 0, 0))
    return wl_null();
  if (p->kind == WL_PART_NULL) return wl_int(0);
  if (p->kind == WL_PART_REAL) return wl_real(wl_real_of_word(p->desc ? ~code : code));
  return wl_int((wl_i64)(p->desc ? wl_key_base(p) - code : code + wl_key_base(p)));
}

/* ---- the start of any value */

/* The first bytes of a text as a word that sorts as the text does under the collation. */
WL_FN wl_u64 wl_word_of_text(const wl_u8 *p, wl_u32 n, int coll) {
  wl_u64 k = 0;
  if (coll == WL_COLL_RTRIM)
    while (n > 0 && p[n - 1] == ' ') n--;
  for (wl_u32 i = 0; i < 8; i++) {
    wl_u8 c = i < n ? p[i] : 0;
    if (coll == WL_COLL_NOCASE && i < n && c == 0) /* NOCASE stops comparing at a NUL */
      return i ? k << 8 * (8 - i) : 0;
    k = k << 8 | (coll == WL_COLL_NOCASE ? wl_to_lower(c) : c);
  }
  return k;
}

/* The code of any value in a PREFIX part: 4 bits of type, and the first 60 bits of its word. An
** integer is rounded to a real, because it is compared with reals too. */
WL_FN wl_u64 wl_key_prefix(const wl_key_part *p, wl_val v) {
  wl_u64 type = v.t == WL_T_REAL ? WL_T_INT : v.t, w = 0;
  if (v.t == WL_T_NULL) return p->null_last ? ~0ULL : 0;
  if (v.t == WL_T_INT) w = wl_word_of_real((double)(wl_i64)v.v);
  if (v.t == WL_T_REAL) w = wl_word_of_real(wl_as_f64(v.v));
  if (v.t == WL_T_TEXT) w = wl_word_of_text(wl_bytes(v), v.n, p->coll);
  if (v.t == WL_T_BLOB) w = wl_word_of_text(wl_bytes(v), v.n, WL_COLL_BINARY);
  w = type << 60 | w >> 4;
  return p->desc ? ~w : w;
}

/* The code of a value in any part but TEXT. */
WL_FN wl_u64 wl_key_code_of(const wl_key_part *p, wl_val v) {
  return p->kind == WL_PART_PREFIX ? wl_key_prefix(p, v) : wl_key_code(p, v.v, v.t != WL_T_NULL);
}

/* ---- hashing */

/* Where the search for a word starts in a hashed lookup. Spreads neighbouring keys: the low bits,
** which choose the slot, depend on all bits. */
WL_FN wl_u64 wl_key_hash(wl_u64 word) {
  word ^= word >> 32;
  word *= 0xd6e8feb86659fd93ULL;
  word ^= word >> 32;
  word *= 0xd6e8feb86659fd93ULL;
  return word ^ word >> 32;
}

/* ---- texts as words
**
** A sequence of words for each text, which sorts as the texts do under a collation. A sort compares
** the first words, and asks for the next ones only where words are equal.
**
**     word = seven bytes, with zeros after the end of the text | one byte that says what follows
**
**   1 + c   nothing: c of the seven bytes belong to the text
**   9       a word with the length of the text. NOCASE compares only up to a NUL, then lengths
**   10      more bytes
**
** NULL is 0 or ~0, which no text has. With desc all bits are inverted, except those of NULL. Texts
** whose words are equal so far continue at the same place. They are equal under the collation if
** nothing follows. */

enum { WL_TEXT_BYTES = 7 };           /* of a word */
#define WL_TEXT_AT_LENGTH 0xffffffffu /* the place of the word with the length */

/* Eight bytes, the first one on top. A GPU loads only words at multiples of 8. Both such words hold
** some of the bytes, so they can be read. */
WL_FN wl_u64 wl_load_bytes(const wl_u8 *p) {
  wl_u64 w;
#ifdef __CUDACC__
  const wl_u64 *at = (const wl_u64 *)(const void *)((size_t)p & ~(size_t)7);
  wl_u32 shift = 8 * (wl_u32)((size_t)p & 7);
  w = shift ? at[0] >> shift | at[1] << (64 - shift) : at[0];
  return (wl_u64)__byte_perm((wl_u32)w, 0, 0x0123) << 32 |
         __byte_perm((wl_u32)(w >> 32), 0, 0x0123);
#else
  memcpy(&w, p, 8);
  return __builtin_bswap64(w);
#endif
}

/* The number of zero bits before the first one from the top. w is not 0. */
WL_FN wl_u32 wl_zeros_before(wl_u64 w) {
#ifdef __CUDACC__
  return (wl_u32)__clzll((wl_i64)w);
#else
  return (wl_u32)__builtin_clzll(w);
#endif
}

/* The eight bytes of a text from `at` on, the first one on top, with zeros after the end. left:
** bytes from `at` to the end. */
WL_FN wl_u64 wl_text_load(const wl_u8 *p, wl_u32 n, wl_u32 at, wl_u32 left) {
  wl_u64 w = 0;
  if (left >= 8) return wl_load_bytes(p + at);
  if (left == 0) return 0;
  if (n >= 8) return wl_load_bytes(p + n - 8) << 8 * (8 - left); /* the last eight bytes */
  for (wl_u32 i = 0; i < left; i++) w |= (wl_u64)p[at + i] << (56 - 8 * i);
  return w;
}

/* The bytes of a word in lower case. */
WL_FN wl_u64 wl_text_lower(wl_u64 w) {
  const wl_u64 ones = 0x0101010101010101ULL, high = ones << 7;
  wl_u64 low = w & ~high, from_a = low + (128 - 'A') * ones, after_z = low + (127 - 'Z') * ones;
  return w | ((from_a & ~after_z & ~w & high) >> 2);
}

/* The number of bytes before the first zero byte, from the top; 8: there is none. */
WL_FN wl_u32 wl_text_before_nul(wl_u64 w) {
  const wl_u64 low = 0x7f7f7f7f7f7f7f7fULL;
  wl_u64 zeros = ~(((w & low) + low) | w | low);
  return zeros ? wl_zeros_before(zeros) / 8 : 8;
}

/* The length of a text without the spaces at its end. */
WL_FN wl_u32 wl_text_trimmed(const wl_u8 *p, wl_u32 n) {
  while (n >= 8 && wl_load_bytes(p + n - 8) == 0x2020202020202020ULL) n -= 8;
  while (n > 0 && p[n - 1] == ' ') n--;
  return n;
}

/* The word of a text of n bytes at a place, without desc. */
WL_FN wl_u64 wl_bytes_word(const wl_u8 *p, wl_u32 n, wl_u32 at, int coll) {
  if (at == WL_TEXT_AT_LENGTH) return n;
  if (coll == WL_COLL_RTRIM) n = wl_text_trimmed(p, n);
  wl_u32 left = n - at, follows = left > WL_TEXT_BYTES ? 10 : 1 + left;
  wl_u64 w = wl_text_load(p, n, at, left);
  if (coll == WL_COLL_NOCASE) {
    wl_u32 z = wl_text_before_nul(w);
    if (z < 8 && z < left) {
      follows = 9;
      w = z ? w & ~0ULL << (64 - 8 * z) : 0;
    }
    w = wl_text_lower(w);
  }
  return (w & ~0xffULL) | follows;
}

/* The word of a text or NULL at a place: 0, or what wl_text_next() returned. */
WL_FN wl_u64 wl_text_word(const wl_key_part *p, wl_val v, wl_u32 at) {
  if (v.t == WL_T_NULL) return p->null_last ? ~0ULL : 0;
  return wl_bytes_word(wl_bytes(v), v.n, at, p->coll) ^ (p->desc ? ~0ULL : 0);
}

/* Where the texts go on whose word at this place is `word`; 0: nothing follows. */
WL_FN wl_u32 wl_text_next(const wl_key_part *p, wl_u64 word, wl_u32 at) {
  if (at == WL_TEXT_AT_LENGTH || word == (p->null_last ? ~0ULL : 0)) return 0;
  wl_u8 follows = (wl_u8)(p->desc ? ~word : word);
  return follows == 10 ? at + WL_TEXT_BYTES : follows == 9 ? WL_TEXT_AT_LENGTH : 0;
}

/* The length of the start that two texts have in common under a collation, at most `most`. The
** search begins at `at`: the texts are equal up to there. It is not beyond what NOCASE compares. */
WL_FN wl_u32 wl_bytes_common(const wl_u8 *x, wl_u32 nx, const wl_u8 *y, wl_u32 ny, wl_u32 at,
                             wl_u32 most, int coll) {
  if (coll == WL_COLL_RTRIM) {
    nx = wl_text_trimmed(x, nx);
    ny = wl_text_trimmed(y, ny);
  }
  wl_u32 n = nx < ny ? nx : ny;
  if (n > most) n = most;
  while (at < n) {
    wl_u64 a = wl_text_load(x, nx, at, nx - at), b = wl_text_load(y, ny, at, ny - at);
    wl_u32 same = n - at < 8 ? n - at : 8;
    if (coll == WL_COLL_NOCASE) {
      wl_u32 z = wl_text_before_nul(a);
      if (z < same) n = at + (same = z);
      a = wl_text_lower(a);
      b = wl_text_lower(b);
    }
    if (a != b && wl_zeros_before(a ^ b) / 8 < same) return at + wl_zeros_before(a ^ b) / 8;
    at += same;
  }
  return at;
}

/* ---- values of any type as words
**
** Their classes are compared first. NULL has no words. A number is the real that it rounds to, and
** at place 1 what an integer differs from that. Texts and blobs are as above. */

/* The code of the class of a value. desc leaves NULL where null_last says. */
WL_FN wl_u64 wl_key_class(const wl_key_part *p, wl_u8 t) {
  if (t == WL_T_NULL) return p->null_last ? 3 : 0;
  wl_u64 code = t <= WL_T_REAL ? 0 : t - WL_T_TEXT + 1; /* of those that are not NULL */
  return (p->desc ? 2 - code : code) + !p->null_last;
}

/* The word of a value at a place: 0, or what wl_value_next() returned. */
WL_FN wl_u64 wl_value_word(const wl_key_part *p, wl_val v, wl_u32 at) {
  wl_u64 w = 0;
  if (v.t == WL_T_NULL) return 0;
  if (v.t >= WL_T_TEXT) {
    w = wl_bytes_word(wl_bytes(v), v.n, at, v.t == WL_T_TEXT ? p->coll : WL_COLL_BINARY);
  } else {
    double d = v.t == WL_T_INT ? (double)(wl_i64)v.v : wl_as_f64(v.v);
    if (at == 0) {
      w = wl_word_of_real(d);
    } else if (v.t == WL_T_INT) { /* at most 512 away; 2^63 is no integer */
      w = v.v - (d >= 9223372036854775808.0 ? 1ULL << 63 : (wl_u64)(wl_i64)d);
    }
    if (at) w = wl_word_of_int((wl_i64)w);
  }
  return w ^ (p->desc ? ~0ULL : 0);
}

/* Where values go on whose word at this place is `word`; 0: nothing follows. t: the type of one. */
WL_FN wl_u32 wl_value_next(const wl_key_part *p, wl_u8 t, wl_u64 word, wl_u32 at) {
  wl_u64 w = p->desc ? ~word : word;
  if (t == WL_T_NULL) return 0;
  if (t <= WL_T_REAL) { /* integers up to 2^53 are not rounded */
    double d = wl_real_of_word(w);
    return at == 0 && (d >= 9007199254740992.0 || d <= -9007199254740992.0);
  }
  if (at == WL_TEXT_AT_LENGTH) return 0;
  wl_u8 follows = (wl_u8)w;
  return follows == 10 ? at + WL_TEXT_BYTES : follows == 9 ? WL_TEXT_AT_LENGTH : 0;
}

#ifndef __CUDACC__
/* Compares texts or NULLs as their words do: -1, 0 or 1. Texts are equal up to `at`. */
static inline int wl_text_compare(const wl_key_part *p, wl_val a, wl_val b, wl_u32 at) {
  if (a.t == WL_T_NULL || b.t == WL_T_NULL)
    return a.t == b.t ? 0 : (a.t == WL_T_NULL) == p->null_last ? 1 : -1;
  int c = wl_cmp_text(wl_bytes(a) + at, a.n - at, wl_bytes(b) + at, b.n - at, p->coll);
  return p->desc ? -c : c;
}

/* The code of a value in any part. Of a text it is the first word. */
static inline wl_u64 wl_key_first_code(const wl_key_part *p, wl_val v) {
  return p->kind == WL_PART_TEXT ? wl_text_word(p, v, 0) : wl_key_code_of(p, v);
}

/* ---- layouts: which keys share a word (keys.c) */

enum { WL_MAX_WORDS = 16 }; /* layouts with more words are not used on the CPU */

typedef struct wl_key_layout {
  wl_key_part *parts; /* the owner gives room for two parts per key */
  int n_parts, n_words;
  wl_u64 used; /* number of values that the last word can have; 0: 2^64 */
  bool zero;   /* some real may be -0.0 */
  bool prefix; /* the last part is a PREFIX: no key can follow */
} wl_key_layout;

enum { WL_KEY_DESC = 1, WL_KEY_NULL_LAST = 2, WL_KEY_NEW_WORD = 4 };

/* Appends a key. NULL is a value if reg.nullable is set. Returns false if the key is not a number;
** then nothing is appended. */
bool wl_key_layout_add(wl_key_layout *l, int key, wl_reg reg, const wl_domain *d, unsigned flags);
/* Appends a key that is a text or NULL, whose first bytes become a word. */
void wl_key_layout_add_text(wl_key_layout *l, int key, wl_u8 coll, unsigned flags);
/* Appends the start of a key of any type. It is the last key. */
void wl_key_layout_add_prefix(wl_key_layout *l, int key, wl_u8 coll, unsigned flags);
/* Appends a key of any type: its class, and its first word. */
void wl_key_layout_add_value(wl_key_layout *l, int key, wl_u8 coll, unsigned flags);
/* Sets the range of an INT part that is alone in its word. lo > hi: there is no value. */
void wl_key_part_set_range(wl_key_part *p, wl_i64 lo, wl_i64 hi);
/* Number of values that word `word` can have; 0: 2^64. */
wl_u64 wl_key_layout_used(const wl_key_layout *l, int word);
/* The bits of a number that is at most this. */
static inline int wl_key_bits(wl_u64 most) {
  return most ? 64 - __builtin_clzll(most) : 0;
}
/* Computes the words of a row of values, given by key. */
void wl_key_layout_encode(const wl_key_layout *l, const wl_val *keys, wl_u64 *words);
/* The value of a key, from its words. minus: it is a zero, and that is -0.0. */
wl_val wl_key_layout_decode(const wl_key_layout *l, int key, const wl_u64 *words, bool minus);
#endif

#endif
