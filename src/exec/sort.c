/*
** Sorting by words; see sort.h. In one pass over memory, all threads distribute the rows to some
** hundred buckets by the highest bits that differ. A sample of the rows decides which of these bits
** go to which bucket, so that the buckets have about the same size: the highest bits of reals are
** mostly equal. Then each bucket is a separate task: it is distributed again while it is large, and
** finished in the cache from the lowest bits up. Only bits that differ between rows are used. If
** key and row number fit one word together, that word is sorted, else a pair.
*/
#include "exec/sort.h"
#include "base/mem.h"
#include "base/tasks.h"
#include <string.h>

enum {
  PREFIX_BITS = 16, /* of the first digit */
  BUCKETS = 256,    /* of about the same size */
  MOST_BUCKETS = 2 * BUCKETS + 2,
  SAMPLE = 1 << 15
};
enum { DIGIT = 256, SMALL = 24, IN_CACHE = 1 << 14, SERIAL = 1 << 14, CHUNK = 1 << 17 };

typedef struct pair {
  wl_u64 key;
  wl_u32 row;
} pair;

/* Asks whether to stop, after every OFTEN rows of a worker. */
typedef struct watcher {
  wl_stop *stop;
  int worker;
  wl_i64 n; /* rows since it last asked */
  bool stopped;
} watcher;

/* Called before work on n rows. Returns whether to stop. */
static bool stops(watcher *w, wl_i64 n) {
  enum { OFTEN = 1 << 15 };
  w->n += n;
  if (w->n < OFTEN || w->stopped) return w->stopped;
  w->n = 0;
  return w->stopped = wl_stop_now(w->stop, w->worker);
}

/* Where the chunk that starts at row i of n ends. Between chunks a worker may stop. */
static wl_i64 chunk_end(wl_i64 i, wl_i64 n) {
  return n - i < CHUNK ? n : i + CHUNK;
}

/*
** The sorts over an item type T whose sort bits are KEY(x). name_range sorts a[0 … n) by the bits
** [lo, hi) of their keys; t has room for n items. Bits from hi up are equal in all items. If w
** stops, a is left in any order.
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
  static void name##_count(const T *a, wl_i64 n, int at, wl_u64 mask, wl_u32 *count, watcher *w) { \
    for (wl_i64 i = 0, to; i < n && !stops(w, (to = chunk_end(i, n)) - i);)                        \
      for (; i < to; i++) count[KEY(a[i]) >> at & mask]++;                                         \
  }                                                                                                \
  static void name##_deal(const T *a, wl_i64 n, int at, wl_u64 mask, wl_u32 *place, T *out,        \
                          watcher *w) {                                                            \
    for (wl_i64 i = 0, to; i < n && !stops(w, (to = chunk_end(i, n)) - i);)                        \
      for (; i < to; i++) out[place[KEY(a[i]) >> at & mask]++] = a[i];                             \
  }                                                                                                \
  static void name##_copy(T *a, const T *from, wl_i64 n, watcher *w) {                             \
    for (wl_i64 i = 0, to; i < n && !stops(w, (to = chunk_end(i, n)) - i); i = to)                 \
      memcpy(a + i, from + i, (size_t)(to - i) * sizeof *a);                                       \
  }                                                                                                \
  static void name##_upward(T *a, T *t, wl_i64 n, int lo, int hi, watcher *w) {                    \
    T *from = a, *to = t;                                                                          \
    for (int at = lo; at < hi; at += 8) {                                                          \
      wl_u32 count[DIGIT] = {0}, sum = 0;                                                          \
      wl_u64 mask = hi - at >= 8 ? 255 : (1ULL << (hi - at)) - 1;                                  \
      name##_count(from, n, at, mask, count, w);                                                   \
      if (count[KEY(from[0]) >> at & mask] == n) continue;                                         \
      for (int d = 0; d < DIGIT; d++) {                                                            \
        wl_u32 c = count[d];                                                                       \
        count[d] = sum;                                                                            \
        sum += c;                                                                                  \
      }                                                                                            \
      if (w->stopped) return;                                                                      \
      name##_deal(from, n, at, mask, count, to, w);                                                \
      if (w->stopped) return;                                                                      \
      T *swap = from;                                                                              \
      from = to;                                                                                   \
      to = swap;                                                                                   \
    }                                                                                              \
    if (from != a) name##_copy(a, from, n, w);                                                     \
  }                                                                                                \
  static void name##_range(T *a, T *t, wl_i64 n, int lo, int hi, watcher *w) {                     \
    if (n <= 1 || lo >= hi || w->stopped) return;                                                  \
    if (n <= SMALL) {                                                                              \
      name##_insert(a, n);                                                                         \
      return;                                                                                      \
    }                                                                                              \
    if (n <= IN_CACHE || hi - lo <= 8) {                                                           \
      name##_upward(a, t, n, lo, hi, w);                                                           \
      return;                                                                                      \
    }                                                                                              \
    wl_u32 count[DIGIT + 1] = {0}, place[DIGIT];                                                   \
    int at = hi - 8;                                                                               \
    name##_count(a, n, at, 255, count + 1, w);                                                     \
    for (int d = 0; d < DIGIT; d++) count[d + 1] += count[d];                                      \
    memcpy(place, count, sizeof place);                                                            \
    if (w->stopped) return;                                                                        \
    name##_deal(a, n, at, 255, place, t, w);                                                       \
    if (w->stopped) return;                                                                        \
    name##_copy(a, t, n, w);                                                                       \
    for (int d = 0; d < DIGIT; d++)                                                                \
      name##_range(a + count[d], t + count[d], (wl_i64)count[d + 1] - count[d], lo, at, w);        \
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
  wl_u64 prefix_mask;
  wl_u16 *bucket_of; /* of each first digit */
  int n_buckets;
  wl_u8 tops[MOST_BUCKETS]; /* the bits from this one on are equal in a bucket */
  int n_chunks;
  wl_u64 *varies; /* [n_chunks] */
  wl_u32 (*counts)[MOST_BUCKETS];
  wl_u32 starts[MOST_BUCKETS + 1];
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

static wl_status vary_task(void *arg, int worker, long k, wl_error *err) {
  sort_job *g = arg;
  (void)worker, (void)err;
  const wl_u64 *w = g->s->words[0];
  wl_i64 from = chunk_at(g, k), to = chunk_at(g, k + 1);
  g->varies[k] = bits_that_vary(w + from, to - from, w[0]);
  return WL_OK;
}

/* Divides the first digits among the buckets, by a sample. A digit that many rows have gets a
** bucket of its own. */
static wl_status choose_buckets(sort_job *g, wl_error *err) {
  const wl_u64 *w = g->s->words[0];
  int bits = g->hi - g->lo < PREFIX_BITS ? g->hi - g->lo : PREFIX_BITS;
  wl_i64 n = g->s->n, m = n < SAMPLE ? n : SAMPLE;
  size_t n_digits = (size_t)1 << bits, first = 0;
  g->at = g->hi - bits;
  g->prefix_mask = n_digits - 1;
  g->bucket_of = wl_mem_alloc(n_digits * sizeof *g->bucket_of);
  wl_u32 *counts = wl_mem_zalloc(n_digits * sizeof *counts), full = 0;
  wl_status rc = g->bucket_of && counts ? WL_OK : wl_nomem(err);
  for (wl_i64 i = 0; i < m && !rc; i++) counts[w[n / m * i] >> g->at & g->prefix_mask]++;
  wl_u32 most = (wl_u32)(m / BUCKETS) + 1;
  for (size_t d = 0; d < n_digits && !rc; d++) {
    bool next = d > first && full + counts[d] > most;
    if (next) {
      g->n_buckets++;
      first = d;
      full = 0;
    }
    full += counts[d];
    g->bucket_of[d] = (wl_u16)g->n_buckets;
    g->tops[g->n_buckets] =
        (wl_u8)(d == first ? g->at : g->at + 64 - __builtin_clzll((wl_u64)(d ^ first)));
  }
  g->n_buckets++;
  wl_mem_free(counts);
  return rc;
}

static inline wl_u32 bucket_of(const sort_job *g, wl_u64 w) {
  return g->bucket_of[w >> g->at & g->prefix_mask];
}

static wl_status count_task(void *arg, int worker, long k, wl_error *err) {
  sort_job *g = arg;
  (void)worker, (void)err;
  const wl_u64 *w = g->s->words[0];
  wl_u32 *count = g->counts[k];
  memset(count, 0, sizeof g->counts[k]);
  wl_i64 to = chunk_at(g, k + 1);
  for (wl_i64 i = chunk_at(g, k); i < to; i++) count[bucket_of(g, w[i])]++;
  return WL_OK;
}

static wl_status deal_task(void *arg, int worker, long k, wl_error *err) {
  sort_job *g = arg;
  (void)worker, (void)err;
  const wl_u64 *w = g->s->words[0];
  wl_u32 *place = g->counts[k];
  wl_i64 to = chunk_at(g, k + 1);
  if (g->packed) {
    wl_u64 mask = g->hi - g->lo == 64 ? ~0ULL : (1ULL << (g->hi - g->lo)) - 1;
    for (wl_i64 i = chunk_at(g, k); i < to; i++)
      g->words[place[bucket_of(g, w[i])]++] = (w[i] >> g->lo & mask) << g->row_bits | (wl_u64)i;
  } else {
    for (wl_i64 i = chunk_at(g, k); i < to; i++)
      g->pairs[place[bucket_of(g, w[i])]++] = (pair){w[i], (wl_u32)i};
  }
  return WL_OK;
}

/* Sorts rows with equal words by s->tie. Stable. A comparison takes much longer than that of
** words. */
static void by_tie(const wl_sort *s, pair *a, pair *t, wl_i64 n, watcher *w) {
  enum { COST = 32, EVERY = 1024 };
  if (stops(w, n <= SMALL ? n * COST : COST)) return;
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
  by_tie(s, a, t, m, w);
  by_tie(s, a + m, t + m, n - m, w);
  if (s->tie(s->tie_arg, a[m - 1].row, a[m].row) <= 0) return;
  while (i < m && j < n) {
    if (k % EVERY == 0 && stops(w, k ? EVERY * COST : COST)) return;
    t[k++] = s->tie(s->tie_arg, a[j].row, a[i].row) < 0 ? a[j++] : a[i++];
  }
  while (i < m) t[k++] = a[i++];
  while (j < n) t[k++] = a[j++];
  memcpy(a, t, (size_t)n * sizeof *a);
}

/* Sorts ranges that are equal so far by word k and those after it. */
static void by_next(const wl_sort *s, pair *a, pair *t, wl_i64 n, int k, watcher *w) {
  if (k == s->n_words && !s->tie) return;
  for (wl_i64 from = 0, to; from < n && !w->stopped; from = to) {
    for (to = from + 1; to < n && a[to].key == a[from].key;) to++;
    wl_i64 m = to - from;
    if (stops(w, m)) return;
    if (m == 1) continue;
    if (k == s->n_words) {
      by_tie(s, a + from, t + from, m, w);
      continue;
    }
    wl_u64 x = 0, first = s->words[k][a[from].row];
    for (wl_i64 i = from; i < to; i++) {
      a[i].key = s->words[k][a[i].row];
      x |= a[i].key ^ first;
    }
    if (x) pair_range(a + from, t + from, m, __builtin_ctzll(x), 64 - __builtin_clzll(x), w);
    by_next(s, a + from, t + from, m, k + 1, w);
  }
}

static wl_status bucket_task(void *arg, int worker, long d, wl_error *err) {
  sort_job *g = arg;
  (void)err; /* wl_tasks_run() knows the reason to stop */
  watcher w = {.stop = g->s->stop, .worker = worker};
  wl_i64 from = g->starts[d], n = (wl_i64)g->starts[d + 1] - from;
  if (g->packed) {
    wl_u64 *a = g->words + from, mask = (1ULL << g->row_bits) - 1;
    word_range(a, g->words2 + from, n, g->row_bits, g->row_bits + g->tops[d] - g->lo, &w);
    for (wl_i64 i = 0; i < n; i++) g->out[from + i] = (wl_u32)(a[i] & mask);
    return WL_OK;
  }
  pair *a = g->pairs + from;
  pair_range(a, g->pairs2 + from, n, g->lo, g->tops[d], &w);
  by_next(g->s, a, g->pairs2 + from, n, 1, &w);
  for (wl_i64 i = 0; i < n; i++) g->out[from + i] = a[i].row;
  return WL_OK;
}

/* Runs one of the tasks above. */
static wl_status run_tasks(sort_job *g, int threads, long n, wl_task_fn task, wl_error *err) {
  wl_tasks t = {threads, n, task, g, g->s->stop};
  return wl_tasks_run(&t, NULL, err);
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
  if (g.n_chunks < s->n >> 20) g.n_chunks = (int)(s->n >> 20); /* a chunk takes milliseconds */
  g.varies = wl_mem_alloc((size_t)g.n_chunks * sizeof *g.varies);
  g.counts = wl_mem_alloc((size_t)g.n_chunks * sizeof *g.counts);
  wl_status rc = g.varies && g.counts ? WL_OK : wl_nomem(err);
  wl_u64 x = 0;
  if (!rc) rc = run_tasks(&g, threads, g.n_chunks, vary_task, err);
  if (!rc) {
    for (int k = 0; k < g.n_chunks; k++) x |= g.varies[k];
    g.lo = x ? __builtin_ctzll(x) : 0;
    g.hi = x ? 64 - __builtin_clzll(x) : 0;
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
  if (!rc) rc = choose_buckets(&g, err);
  if (!rc) rc = run_tasks(&g, threads, g.n_chunks, count_task, err);
  if (!rc) {
    wl_u32 sum = 0;
    for (int d = 0; d < g.n_buckets; d++) {
      g.starts[d] = sum;
      for (int k = 0; k < g.n_chunks; k++) {
        wl_u32 c = g.counts[k][d];
        g.counts[k][d] = sum;
        sum += c;
      }
    }
    g.starts[g.n_buckets] = sum;
    rc = run_tasks(&g, threads, g.n_chunks, deal_task, err);
  }
  if (!rc) rc = run_tasks(&g, threads, g.n_buckets, bucket_task, err);
  wl_mem_free(g.varies);
  wl_mem_free(g.counts);
  wl_mem_free(g.bucket_of);
  wl_mem_free(g.words);
  wl_mem_free(g.words2);
  wl_mem_free(g.pairs);
  wl_mem_free(g.pairs2);
  return rc;
}
