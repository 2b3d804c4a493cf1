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
#include "exec/cpu/exec_impl.h"
#include "value/like.h"
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

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

/*
** HITS(at): of the 64 positions from `at` on, those where both the first and the last byte of the
** word match, as bits. It uses what WORD_FIND declares.
*/
#ifdef __x86_64__
#define HITS_OF_16(at)                                                                             \
  (wl_u64)(unsigned) _mm_movemask_epi8(_mm_and_si128(                                              \
      _mm_cmpeq_epi8(_mm_or_si128(_mm_loadu_si128((const __m128i *)(at)), _mm_set1_epi8(bit_a)),   \
                     _mm_set1_epi8(a)),                                                            \
      _mm_cmpeq_epi8(                                                                              \
          _mm_or_si128(_mm_loadu_si128((const __m128i *)((at) + last)), _mm_set1_epi8(bit_b)),     \
          _mm_set1_epi8(b))))
#define HITS_BY_16(at)                                                                             \
  (HITS_OF_16(at) | HITS_OF_16((at) + 16) << 16 | HITS_OF_16((at) + 32) << 32 |                    \
   HITS_OF_16((at) + 48) << 48)
#define HITS_OF_32(at)                                                                             \
  (wl_u64)(unsigned) _mm256_movemask_epi8(_mm256_and_si256(                                        \
      _mm256_cmpeq_epi8(                                                                           \
          _mm256_or_si256(_mm256_loadu_si256((const __m256i *)(at)), _mm256_set1_epi8(bit_a)),     \
          _mm256_set1_epi8(a)),                                                                    \
      _mm256_cmpeq_epi8(_mm256_or_si256(_mm256_loadu_si256((const __m256i *)((at) + last)),        \
                                        _mm256_set1_epi8(bit_b)),                                  \
                        _mm256_set1_epi8(b))))
#define HITS_BY_32(at) (HITS_OF_32(at) | HITS_OF_32((at) + 32) << 32)
#else
static inline wl_u64 hits_one_by_one(const wl_u8 *at, wl_u32 last, char a, char b, char bit_a,
                                     char bit_b) {
  wl_u64 hits = 0;
  for (int i = 0; i < 64; i++)
    hits |= (wl_u64)((char)(at[i] | bit_a) == a && (char)(at[i + last] | bit_b) == b) << i;
  return hits;
}
#define HITS(at) hits_one_by_one(at, last, a, b, bit_a, bit_b)
#endif

/* Returns the first occurrence of the word in [p, end), or NULL. */
#define WORD_FIND(name, HITS)                                                                      \
  static const wl_u8 *name(const wl_word *w, const wl_u8 *p, const wl_u8 *end) {                   \
    enum { STEP = 64 };                                                                            \
    const wl_u32 last = w->n - 1;                                                                  \
    const char a = (char)w->p[0], b = (char)w->p[last], bit_a = (char)case_bit(w, w->p[0]),        \
               bit_b = (char)case_bit(w, w->p[last]);                                              \
    for (; end - p >= (long)(STEP + last); p += STEP)                                              \
      for (wl_u64 hits = HITS(p); hits; hits &= hits - 1)                                          \
        if (word_at(w, p + __builtin_ctzll(hits))) return p + __builtin_ctzll(hits);               \
    for (; end - p >= (long)w->n; p++)                                                             \
      if (word_at(w, p)) return p;                                                                 \
    return NULL;                                                                                   \
  }
#ifdef __x86_64__
WORD_FIND(find_by_16, HITS_BY_16)
__attribute__((target("avx2")))
WORD_FIND(find_by_32, HITS_BY_32) static const wl_u8 *word_find(const wl_word *w, const wl_u8 *p,
                                                                const wl_u8 *end) {
  return __builtin_cpu_supports("avx2") ? find_by_32(w, p, end) : find_by_16(w, p, end);
}
#else
WORD_FIND(word_find, HITS)
#endif

/* The texts of a vector: addresses and lengths, or places (the offset in a heap, and the length in
** the upper half). */
typedef struct wl_texts {
  const wl_u64 *v;
  const wl_u32 *n;
  const wl_u64 *places;
  const wl_u8 *heap;
} wl_texts;

static inline const wl_u8 *text_start(const wl_texts *t, int r) {
  return t->places ? t->heap + (wl_u32)t->places[r] : (const wl_u8 *)(size_t)t->v[r];
}
static inline wl_u32 text_length(const wl_texts *t, int r) {
  return t->places ? (wl_u32)(t->places[r] >> 32) : t->n[r];
}

/* Sets the truths of the rows from `row` on that match. Their texts are adjacent in [p, end), apart
** from NULLs. */
static void search(const wl_word *w, const wl_texts *t, const wl_u8 *valid, int row, const wl_u8 *p,
                   const wl_u8 *end, wl_u8 *out) {
  while ((p = word_find(w, p, end)) != NULL) {
    while ((valid && !valid[row]) || p >= text_start(t, row) + text_length(t, row)) row++;
    const wl_u8 *text = text_start(t, row);
    wl_u32 n = text_length(t, row);
    if (p + w->n > text + n) { /* it begins in one row and ends in the next */
      p++;
      continue;
    }
    bool found =
        w->whole ? !memchr(text, 0, (size_t)(p - text)) : wl_like_match(&w->pattern, text, n);
    if (found) out[row] = WL_TRUE;
    p = text + n;
  }
}

/* Computes the truths for n texts in any order. */
static void search_vector(const wl_word *w, const plane *a, int n, wl_u8 *out) {
  const wl_texts t = {.v = a->v, .n = a->n};
  const wl_u8 *valid = a->t;
  for (int i = 0; i < n;) {
    if (valid && !valid[i]) {
      out[i++] = WL_UNKNOWN;
      continue;
    }
    /* The texts of rows [i, j) are adjacent, apart from NULLs. */
    const wl_u8 *start = text_start(&t, i), *end = start;
    int j = i;
    for (; j < n; j++) {
      if (valid && !valid[j]) {
        out[j] = WL_UNKNOWN;
        continue;
      }
      if (text_start(&t, j) != end) break;
      out[j] = WL_FALSE;
      end += text_length(&t, j);
    }
    search(w, &t, valid, i, start, end, out);
    i = j;
  }
}

/* Whether each text begins where the one before it ends. */
static WL_CLONES bool are_adjacent(const wl_u64 *places, int n) {
  wl_u32 gaps = 0;
  for (int i = 1; i < n; i++)
    gaps |= (wl_u32)places[i] - (wl_u32)places[i - 1] - (wl_u32)(places[i - 1] >> 32);
  return gaps == 0;
}

/* The same for a column that is not loaded yet, if all its texts are adjacent. */
static bool search_column(wl_exec *x, wl_i16 reg, const wl_word *w, int n, wl_u8 *out) {
  if (WL_IS_CONST(reg) || x->pending[reg] < 0 || x->selected ||
      x->lists[wl_column_source(x->p, x->pending[reg])])
    return false;
  const wl_column *c = x->cols[x->pending[reg]];
  const wl_segment *s = &c->segments[x->tablet];
  if (c->phys != WL_P_TEXT || s->valid) return false;
  const wl_texts t = {.places = (const wl_u64 *)s->data + x->row, .heap = s->heap};
  if (!are_adjacent(t.places, n)) return false;
  memset(out, WL_FALSE, (size_t)n);
  search(w, &t, NULL, 0, text_start(&t, 0), text_start(&t, n - 1) + text_length(&t, n - 1), out);
  if (x->tally) wl_exec_reads(x, c, n);
  return true;
}

bool wl_exec_like(wl_exec *x, const wl_instr *in, int n) {
  wl_word w;
  if ((in->op != WL_OP__Like && in->op != WL_OP__Glob) || WL_IS_CONST(in->a) ||
      x->regs[in->a].type != WL_R_TEXT)
    return false;
  if (!word_of(get(wl_exec_operand(x, in->b), 0), in->op == WL_OP__Glob, in->c, &w)) return false;
  wl_u8 *out = x->regs[in->d].t;
  if (n == 0 || search_column(x, in->a, &w, n, out)) return true;
  const plane *a = wl_exec_operand(x, in->a);
  if (!a->stride) return false;
  search_vector(&w, a, n, out);
  return true;
}
