/*
** Keys as words: encodes several integer and real keys as unsigned words. The words, compared from
** first to last, have the order of the keys. GROUP BY hashes and sorts by them, ORDER BY sorts.
**
** Invariants:
** 1. Keys are equal if and only if their words are equal; -0.0 and 0.0 are equal.
** 2. Integers whose range is known share a word while the product of their spans fits. A real, and
**    an integer without a known range, has its own word. NULL is one more value.
*/
#ifndef WL_WORDS_H
#define WL_WORDS_H

#include "base/arena.h"
#include "program/program.h"
#include "exec/sort.h"

enum { WL_VECTOR = 1024, WL_MAX_WORDS = 16 };

/* A vector of values in the CPU engine. stride 0: one value for all rows. */
typedef struct wl_vec {
  wl_u8 type;
  int stride;
  const wl_u64 *v;
  const wl_u32 *n;
  const wl_u8 *t; /* NULL: every row has a value */
} wl_vec;

typedef enum wl_part_kind {
  WL_PART_INT,  /* one of `span` values, including NULL */
  WL_PART_NULL, /* whether the key has a value; WL_PART_WIDE follows */
  WL_PART_WIDE, /* any integer */
  WL_PART_REAL
} wl_part_kind;

/* The part of a word that encodes one key. */
typedef struct wl_part {
  int key, word;
  wl_part_kind kind;
  bool null, null_last, desc;
  wl_i64 lo, hi;
  wl_u64 span;  /* number of values it can have; 0: 2^64 */
  wl_u64 below; /* the product of the spans after it in its word */
} wl_part;

typedef struct wl_words {
  wl_part *parts; /* room for two parts per key */
  int n_parts, n_words;
  wl_u64 used; /* number of values the last word can have; 0: 2^64 */
  bool zero;   /* some real may be -0.0 */
} wl_words;

/* Appends a key; if fresh, in a new word. Returns false if it is not a number or there are too many
** words. */
bool wl_words_key(wl_words *w, int key, wl_reg reg, const wl_domain *d, bool desc, bool null_last,
                  bool fresh);
/* Computes the words of a vector of rows: word k of row i goes to out[k * WL_VECTOR + i]. */
void wl_words_encode(const wl_words *w, const wl_vec *keys, int n, wl_u64 *out);
/* Adds one part to its word. open: it is the first part of that word. */
void wl_words_part(const wl_part *p, bool open, const wl_vec *v, int n, wl_u64 *out);
/* The value of a key, from its words. minus: a zero is -0.0. */
wl_val wl_words_decode(const wl_words *w, int key, const wl_u64 *words, bool minus);

static inline wl_val wl_vec_get(const wl_vec *q, int i) {
  int k = q->stride ? i : 0;
  wl_u8 t = q->t ? q->t[q->stride || q->type != WL_R_ANY ? i : 0] : 1;
  switch (q->type) {
  case WL_R_INT: return t ? wl_val_make(WL_T_INT, q->v[k], 0) : wl_null();
  case WL_R_REAL: return t ? wl_val_make(WL_T_REAL, q->v[k], 0) : wl_null();
  case WL_R_TEXT: return t ? wl_val_make(WL_T_TEXT, q->v[k], q->n[k]) : wl_null();
  default: return wl_val_make(t, q->v[k], q->n[k]);
  }
}

#endif
