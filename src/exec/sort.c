/*
** Sorting by words; see sort.h. In one pass over memory, all threads distribute the rows to 256
** buckets by the highest bits that differ. Then each bucket is a separate task: it is distributed
** again while it is large, and finished in the cache from the lowest bits up. Only bits that differ
** between rows are used. If key and row number fit one word together, that word is sorted, else a
** pair.
*/
#include "exec/sort.h"
#include "base/mem.h"
#include "base/threads.h"
#include <string.h>

enum { DIGIT = 256, SMALL = 24, IN_CACHE = 1 << 14, SERIAL = 1 << 14 };

typedef struct pair {
  wl_u64 key;
  wl_u32 row;
} pair;

/*
** The sorts over an item type T whose sort bits are KEY(x). name_range sorts a[0 … n) by the bits
** [lo, hi) of their keys; t has room for n items. Bits from hi up are equal in all items.
*/
#define SORTS(name, T, KEY)                                                                        \
  static void name##_insert(T *a, wl_i64 n) {                                                      \
    for (wl_i64 i = 1; i < n; i++) {                                                               \
      T x = a[i];                                                                                  \
      wl_i64 j = i;                                                                                \
      for (; j > 0 && KEY(a[j - 1]) > KEY(x); j--) a[j] = a[j - 1];                                \
      a[j] = x;                                                                                    \
    }                                                                                              \
  }                                                                                                \
  static void name##_upward(T *a, T *t, wl_i64 n, int lo, int hi) {                                \
    T *from = a, *to = t;                                                                          \
    for (int at = lo; at < hi; at += 8) {                                                          \
      wl_u32 count[DIGIT] = {0}, sum = 0;                                                          \
      wl_u64 mask = hi - at >= 8 ? 255 : (1ULL << (hi - at)) - 1;                                  \
      for (wl_i64 i = 0; i < n; i++) count[KEY(from[i]) >> at & mask]++;                           \
      if (count[KEY(from[0]) >> at & mask] == n) continue;                                         \
      for (int d = 0; d < DIGIT; d++) {                                                            \
        wl_u32 c = count[d];                                                                       \
        count[d] = sum;                                                                            \
        sum += c;                                                                                  \
      }                                                                                            \
      for (wl_i64 i = 0; i < n; i++) to[count[KEY(from[i]) >> at & mask]++] = from[i];             \
      T *swap = from;                                                                              \
      from = to;                                                                                   \
      to = swap;                                                                                   \
    }                                                                                              \
    if (from != a) memcpy(a, from, (size_t)n * sizeof *a);                                         \
  }                                                                                                \
  static void name##_range(T *a, T *t, wl_i64 n, int lo, int hi) {                                 \
    if (n <= 1 || lo >= hi) return;                                                                \
    if (n <= SMALL) {                                                                              \
      name##_insert(a, n);                                                                         \
      return;                                                                                      \
    }                                                                                              \
    if (n <= IN_CACHE || hi - lo <= 8) {                                                           \
      name##_upward(a, t, n, lo, hi);                                                              \
      return;                                                                                      \
    }                                                                                              \
    wl_u32 count[DIGIT + 1] = {0}, place[DIGIT];                                                   \
    int at = hi - 8;                                                                               \
    for (wl_i64 i = 0; i < n; i++) count[(KEY(a[i]) >> at & 255) + 1]++;                           \
    for (int d = 0; d < DIGIT; d++) count[d + 1] += count[d];                                      \
    memcpy(place, count, sizeof place);                                                            \
    for (wl_i64 i = 0; i < n; i++) t[place[KEY(a[i]) >> at & 255]++] = a[i];                       \
    memcpy(a, t, (size_t)n * sizeof *a);                                                           \
    for (int d = 0; d < DIGIT; d++)                                                                \
      name##_range(a + count[d], t + count[d], (wl_i64)count[d + 1] - count[d], lo, at);           \
  }

#define WORD_KEY(x) (x)
#define PAIR_KEY(x) ((x).key)
SORTS(word, wl_u64, WORD_KEY)
SORTS(pair, pair, PAIR_KEY)

typedef struct sort_job {
  const wl_sort *s;
  wl_u32 *out;
  bool packed;
  int row_bits;
  int lo, hi; /* the bits [lo, hi) of the first word differ */
  int at;     /* the lowest bit of the first digit */
  int n_chunks;
  wl_u64 *varies; /* [n_chunks] */
  wl_u32 (*counts)[DIGIT];
  wl_u32 starts[DIGIT + 1];
  wl_u64 *words, *words2;
  pair *pairs, *pairs2;
} sort_job;

static wl_i64 chunk_at(const sort_job *g, long k) {
  return g->s->n * k / g->n_chunks;
}

static WL_CLONES wl_u64 bits_that_vary(const wl_u64 *w, wl_i64 n, wl_u64 first) {
  wl_u64 x = 0;
  for (wl_i64 i = 0; i < n; i++) x |= w[i] ^ first;
  return x;
}

static void vary_task(void *arg, int worker, long k) {
  sort_job *g = arg;
  (void)worker;
  const wl_u64 *w = g->s->words[0];
  wl_i64 from = chunk_at(g, k), to = chunk_at(g, k + 1);
  g->varies[k] = bits_that_vary(w + from, to - from, w[0]);
}

static void count_task(void *arg, int worker, long k) {
  sort_job *g = arg;
  (void)worker;
  const wl_u64 *w = g->s->words[0];
  wl_u32 *count = g->counts[k];
  memset(count, 0, sizeof g->counts[k]);
  wl_i64 to = chunk_at(g, k + 1);
  for (wl_i64 i = chunk_at(g, k); i < to; i++) count[w[i] >> g->at & 255]++;
}

static void deal_task(void *arg, int worker, long k) {
  sort_job *g = arg;
  (void)worker;
  const wl_u64 *w = g->s->words[0];
  wl_u32 *place = g->counts[k];
  wl_i64 to = chunk_at(g, k + 1);
  if (g->packed) {
    wl_u64 mask = g->hi - g->lo == 64 ? ~0ULL : (1ULL << (g->hi - g->lo)) - 1;
    for (wl_i64 i = chunk_at(g, k); i < to; i++)
      g->words[place[w[i] >> g->at & 255]++] = (w[i] >> g->lo & mask) << g->row_bits | (wl_u64)i;
  } else {
    for (wl_i64 i = chunk_at(g, k); i < to; i++)
      g->pairs[place[w[i] >> g->at & 255]++] = (pair){w[i], (wl_u32)i};
  }
}

/* Sorts rows with equal words by s->tie. Stable. */
static void by_tie(const wl_sort *s, pair *a, pair *t, wl_i64 n) {
  if (n <= SMALL) {
    for (wl_i64 i = 1; i < n; i++) {
      pair x = a[i];
      wl_i64 j = i;
      for (; j > 0 && s->tie(s->tie_arg, a[j - 1].row, x.row) > 0; j--) a[j] = a[j - 1];
      a[j] = x;
    }
    return;
  }
  wl_i64 m = n / 2, i = 0, j = m, k = 0;
  by_tie(s, a, t, m);
  by_tie(s, a + m, t + m, n - m);
  if (s->tie(s->tie_arg, a[m - 1].row, a[m].row) <= 0) return;
  while (i < m && j < n) t[k++] = s->tie(s->tie_arg, a[j].row, a[i].row) < 0 ? a[j++] : a[i++];
  while (i < m) t[k++] = a[i++];
  while (j < n) t[k++] = a[j++];
  memcpy(a, t, (size_t)n * sizeof *a);
}

/* Sorts ranges that are equal so far by word k and those after it. */
static void by_next(const wl_sort *s, pair *a, pair *t, wl_i64 n, int k) {
  if (k == s->n_words && !s->tie) return;
  for (wl_i64 from = 0, to; from < n; from = to) {
    for (to = from + 1; to < n && a[to].key == a[from].key;) to++;
    wl_i64 m = to - from;
    if (m == 1) continue;
    if (k == s->n_words) {
      by_tie(s, a + from, t + from, m);
      continue;
    }
    wl_u64 x = 0, first = s->words[k][a[from].row];
    for (wl_i64 i = from; i < to; i++) {
      a[i].key = s->words[k][a[i].row];
      x |= a[i].key ^ first;
    }
    if (x) pair_range(a + from, t + from, m, __builtin_ctzll(x), 64 - __builtin_clzll(x));
    by_next(s, a + from, t + from, m, k + 1);
  }
}

static void bucket_task(void *arg, int worker, long d) {
  sort_job *g = arg;
  (void)worker;
  wl_i64 from = g->starts[d], n = (wl_i64)g->starts[d + 1] - from;
  if (g->packed) {
    wl_u64 *a = g->words + from, mask = (1ULL << g->row_bits) - 1;
    word_range(a, g->words2 + from, n, g->row_bits, g->row_bits + g->at - g->lo);
    for (wl_i64 i = 0; i < n; i++) g->out[from + i] = (wl_u32)(a[i] & mask);
    return;
  }
  pair *a = g->pairs + from;
  pair_range(a, g->pairs2 + from, n, g->lo, g->at);
  by_next(g->s, a, g->pairs2 + from, n, 1);
  for (wl_i64 i = 0; i < n; i++) g->out[from + i] = a[i].row;
}

static wl_status ask(const wl_sort *s, wl_error *err) {
  return s->check ? s->check(s->check_arg, err) : WL_OK;
}

wl_i64 wl_sort_bytes(wl_i64 n) {
  return n * 2 * (wl_i64)sizeof(pair);
}

wl_status wl_sort_rows(const wl_sort *s, wl_u32 *out, wl_error *err) {
  sort_job g = {.s = s, .out = out};
  for (wl_i64 i = 0; i < s->n && s->n <= 1; i++) out[i] = 0;
  if (s->n <= 1) return WL_OK;
  int threads = s->n < SERIAL ? 1 : s->threads;
  g.n_chunks = threads == 1 ? 1 : threads * 4;
  g.varies = wl_mem_alloc((size_t)g.n_chunks * sizeof *g.varies);
  g.counts = wl_mem_alloc((size_t)g.n_chunks * sizeof *g.counts);
  wl_status rc = g.varies && g.counts ? WL_OK : wl_nomem(err);
  wl_u64 x = 0;
  if (!rc) {
    wl_threads_run(threads, g.n_chunks, vary_task, &g);
    for (int k = 0; k < g.n_chunks; k++) x |= g.varies[k];
    g.lo = x ? __builtin_ctzll(x) : 0;
    g.hi = x ? 64 - __builtin_clzll(x) : 0;
    g.at = g.hi - 8 > g.lo ? g.hi - 8 : g.lo;
    g.row_bits = 64 - __builtin_clzll((wl_u64)s->n);
    g.packed = s->n_words == 1 && !s->tie && g.hi - g.lo + g.row_bits <= 64;
    size_t n = (size_t)s->n;
    if (g.packed) {
      g.words = wl_mem_alloc(n * sizeof *g.words);
      g.words2 = wl_mem_alloc(n * sizeof *g.words2);
    } else {
      g.pairs = wl_mem_alloc(n * sizeof *g.pairs);
      g.pairs2 = wl_mem_alloc(n * sizeof *g.pairs2);
    }
    if (!(g.packed ? g.words && g.words2 : g.pairs && g.pairs2)) rc = wl_nomem(err);
  }
  if (!rc) {
    wl_threads_run(threads, g.n_chunks, count_task, &g);
    wl_u32 sum = 0;
    for (int d = 0; d < DIGIT; d++) {
      g.starts[d] = sum;
      for (int k = 0; k < g.n_chunks; k++) {
        wl_u32 c = g.counts[k][d];
        g.counts[k][d] = sum;
        sum += c;
      }
    }
    g.starts[DIGIT] = sum;
    rc = ask(s, err);
  }
  if (!rc) {
    wl_threads_run(threads, g.n_chunks, deal_task, &g);
    rc = ask(s, err);
  }
  if (!rc) wl_threads_run(threads, DIGIT, bucket_task, &g);
  wl_mem_free(g.varies);
  wl_mem_free(g.counts);
  wl_mem_free(g.words);
  wl_mem_free(g.words2);
  wl_mem_free(g.pairs);
  wl_mem_free(g.pairs2);
  return rc;
}
