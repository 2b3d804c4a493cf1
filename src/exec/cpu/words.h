/*
** Keys as words: integers and reals of several keys coded so that unsigned words, compared first
** to last, stand in the order of the keys. GROUP BY hashes and sorts by them, ORDER BY sorts.
**
** Invariants:
** 1. Equal keys have equal words, and different ones different; -0.0 and 0.0 are equal.
** 2. Integers whose range is known share a word while the product of their spans fits; a real,
**    and an integer of any value, has a word of its own. NULL is one more value.
*/
#ifndef WL_WORDS_H
#define WL_WORDS_H

#include "base/arena.h"
#include "program/program.h"
#include "exec/sort.h"

enum { WL_VECTOR = 1024, WL_MAX_WORDS = 16 };

/* A vector of values: as the CPU machine keeps them. stride 0: one value for all rows. */
typedef struct wl_vec {
  wl_u8 type;
  int stride;
  const wl_u64 *v;
  const wl_u32 *n;
  const wl_u8 *t; /* NULL: every row has a value */
} wl_vec;

typedef enum wl_part_kind {
  WL_PART_INT,  /* span values, NULL among them */
  WL_PART_NULL, /* whether the key has a value; WL_PART_WIDE follows */
  WL_PART_WIDE, /* any integer */
  WL_PART_REAL
} wl_part_kind;

/* What one key is in a word. */
typedef struct wl_word_part {
  int key, word;
  wl_part_kind kind;
  bool null, null_last, desc;
  wl_i64 lo, hi;
  wl_u64 span;  /* values it can take; 0: 2^64 */
  wl_u64 below; /* the product of the spans after it in its word */
} wl_word_part;

typedef struct wl_words {
  wl_word_part *parts; /* room for two a key */
  int n_parts, n_words;
  wl_u64 used; /* values the last word can take; 0: 2^64 */
  bool zero;   /* some real may be -0.0 */
} wl_words;

/* Adds a key behind those there are, in a word of its own if fresh. False: it is no number. */
bool wl_words_key(wl_words *w, int key, wl_reg reg, const wl_domain *d, bool desc, bool null_last,
                  bool fresh);
/* Words of a vector of rows: out[k * WL_VECTOR + i]; keys by number. */
void wl_words_encode(const wl_words *w, const wl_vec *keys, int n, wl_u64 *out);
/* One part of them into its word; open: it is the first there. */
void wl_words_part(const wl_word_part *p, bool open, const wl_vec *v, int n, wl_u64 *out);
/* The value of a key out of its words. minus: zero is -0.0. */
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
