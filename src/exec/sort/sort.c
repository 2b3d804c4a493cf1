/*
** Sorting by words; see sort.h. In one pass over memory, all threads distribute the rows to some
** hundred buckets. A sample of the rows decides which words go to which bucket, so that the buckets
** have about the same size, whatever the values are. A word that many rows have gets a bucket of
** its own. Then each bucket is a separate task (sort_items.c). A bucket of equal words is not
** sorted. If it is large and its rows can differ in later words, all threads distribute it again
** by the next word. If key and row number fit one word together, that word is sorted, else an
** item.
*/
#include "exec/sort/sort_impl.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "column/column.h"
#include <assert.h>
#include <string.h>

enum {
  PREFIX_BITS = 16, /* of the digit by which a bucket is looked up */
  BUCKETS = 256,    /* of about the same size */
  MOST_BUCKETS = 2 * BUCKETS + 2,
  SAMPLE = 1 << 13,
  SERIAL = 1 << 14, /* fewer rows are sorted by one thread */
  CHUNKS = 8,       /* of a thread */
  STRETCH = 1 << 16 /* rows that one task copies */
};

/* A task of the last step: items [from, from + n). */
typedef struct sort_part {
  wl_u32 from, n;
  sort_next next; /* how they are sorted: not at all, by s->tie, by words */
} sort_part;

/* Equal rows that are to be distributed again. */
typedef struct sort_equals {
  wl_i64 from, n;
  sort_place place; /* the next word */
  sort_item *items, *room;
} sort_equals;

typedef struct sort_job {
  const wl_sort *s;
  wl_u32 *out;
  bool packed;
  int row_bits;
  int threads, n_chunks;
  wl_i64 end;                /* the last row is before it */
  wl_i64 heavy;              /* a bucket with more rows is large */
  wl_u64 *words, *words2;    /* packed */
  sort_item *items, *items2; /* not packed */
  /* what is distributed now */
  wl_i64 from, n;
  sort_place place;
  sort_item *src, *dst;           /* src is NULL at first: the rows have only words */
  wl_u64 first;                   /* the word of the first row */
  int lo, hi;                     /* the bits [lo, hi) differ */
  int at;                         /* the lowest bit of the digit */
  wl_u64 mask;                    /* of the digit */
  int first_step;                 /* of the search for a bucket */
  wl_u16 *first_of;               /* the first bucket of each digit */
  wl_u64 upper[2 * MOST_BUCKETS]; /* the largest word of each bucket, then ~0 */
  bool same[MOST_BUCKETS];        /* the bucket has one word */
  int n_buckets;
  wl_u16 *buckets; /* of each row */
  wl_u64 *varies;  /* [n_chunks] */
  wl_u32 *common;  /* [n_chunks] */
  wl_u32 (*counts)[MOST_BUCKETS];
  wl_u32 starts[MOST_BUCKETS + 1];
  sort_part *parts;
  int n_parts, size_parts;
  sort_equals equals[MOST_BUCKETS];
  int n_equals;
} sort_job;

/* Runs one of the tasks below. */
static wl_status run_tasks(sort_job *g, long n, wl_task_fn task, wl_error *err) {
  wl_tasks t = {g->threads, n, task, g, g->s->stop};
  return wl_tasks_run(&t, NULL, err);
}

/* ---- the rows of a chunk */

/* Rows [from, to) without a gap. */
typedef struct stretch {
  wl_i64 from, to, end; /* end: of the chunk */
} stretch;

/* At first, chunks are equal parts of all numbers of rows; then, of the items. */
static stretch chunk(const sort_job *g, long k) {
  wl_i64 n = g->src ? g->n : g->end;
  wl_i64 from = n * k / g->n_chunks, end = n * (k + 1) / g->n_chunks;
  return (stretch){from, from, end};
}

/* Moves to the next stretch of rows of a chunk. Returns false if there is none. */
static bool next_stretch(const sort_job *g, stretch *c) {
  const wl_i32 *counts = g->src ? NULL : g->s->counts;
  c->from = c->to;
  for (; counts && c->from < c->end; c->from = c->to) {
    wl_i64 tablet = c->from >> WL_TABLET_SHIFT, first = tablet << WL_TABLET_SHIFT;
    c->to = first + WL_TABLET_ROWS < c->end ? first + WL_TABLET_ROWS : c->end;
    wl_i64 last = first + counts[tablet] < c->to ? first + counts[tablet] : c->to;
    if (last <= c->from) continue;
    /* The gap is skipped next time, as an empty stretch. */
    c->to = last;
    return true;
  }
  if (!counts) c->to = c->end;
  return c->from < c->to;
}

/* ---- which bits vary */

static WL_CLONES wl_u64 bits_that_vary(const wl_u64 *w, wl_i64 n, wl_u64 first) {
  wl_u64 x = 0;
  for (wl_i64 i = 0; i < n; i++) x |= w[i] ^ first;
  return x;
}

/* The word of the first row. */
static wl_u64 first_word(const sort_job *g) {
  wl_i64 tablet = 0;
  if (g->src) return g->src[0].key;
  while (g->s->counts && !g->s->counts[tablet]) tablet++;
  return g->s->words[0][tablet << WL_TABLET_SHIFT];
}

/* Also computes the words of items. */
static wl_status vary_task(void *arg, int worker, long k, wl_error *err) {
  sort_job *g = arg;
  (void)worker, (void)err;
  wl_u64 first = g->first, x = 0;
  for (stretch c = chunk(g, k); next_stretch(g, &c);) {
    wl_i64 n = c.to - c.from;
    x |= g->src ? wl_sort_fill(g->s, g->place, g->src + c.from, n, first)
                : bits_that_vary(g->s->words[0] + c.from, n, first);
  }
  g->varies[k] = x;
  return WL_OK;
}

static wl_status common_task(void *arg, int worker, long k, wl_error *err) {
  sort_job *g = arg;
  (void)worker, (void)err;
  stretch c = chunk(g, k);
  g->common[k] = wl_sort_common(g->s, g->place, g->src[0].row, g->src + c.from, c.end - c.from,
                                WL_TEXT_AT_LENGTH - 1);
  return WL_OK;
}

/* Finds out which bits vary. They are none if *x is 0. */
static wl_status find_bits(sort_job *g, wl_u64 *x, wl_error *err) {
  *x = 0;
  if (g->src) wl_sort_fill(g->s, g->place, g->src, 1, 0);
  g->first = first_word(g);
  wl_status rc = run_tasks(g, g->n_chunks, vary_task, err);
  for (int k = 0; k < g->n_chunks && !rc; k++) *x |= g->varies[k];
  g->lo = *x ? __builtin_ctzll(*x) : 0;
  g->hi = *x ? 64 - __builtin_clzll(*x) : 0;
  return rc;
}

/* Skips the bytes that all texts have in common. */
static wl_status skip_common(sort_job *g, wl_error *err) {
  wl_status rc = run_tasks(g, g->n_chunks, common_task, err);
  wl_u32 common = WL_TEXT_AT_LENGTH - 1;
  for (int k = 0; k < g->n_chunks && !rc; k++)
    if (g->common[k] < common) common = g->common[k];
  if (!rc) g->place.at = common;
  return rc;
}

/* ---- buckets */

static int sample_words(const sort_job *g, wl_u64 *sample) {
  wl_i64 step = g->n / SAMPLE + 1, skip = step / 2;
  int m = 0;
  stretch c = {.end = g->src ? g->n : g->end};
  while (next_stretch(g, &c)) {
    wl_i64 i = c.from + skip;
    for (; i < c.to && m < SAMPLE; i += step)
      sample[m++] = g->src ? g->src[i].key : g->s->words[0][i];
    skip = i - c.to;
  }
  return m;
}

static void end_bucket(sort_job *g, wl_u64 upper, bool same) {
  assert(g->n_buckets < MOST_BUCKETS);
  g->upper[g->n_buckets] = upper;
  g->same[g->n_buckets++] = same;
}

/* Divides the words among the buckets, by a sorted sample. */
static void divide(sort_job *g, const wl_u64 *sample, int m) {
  int most = m / BUCKETS + 1, full = 0;
  g->n_buckets = 0;
  for (int i = 0, next; i < m; i = next) {
    for (next = i + 1; next < m && sample[next] == sample[i];) next++;
    bool alone = next - i > most;
    if (full && full + next - i > most) {
      end_bucket(g, sample[i] - 1, false);
      full = 0;
    }
    full += next - i;
    if (!alone) continue;
    if (!g->n_buckets || g->upper[g->n_buckets - 1] != sample[i] - 1)
      if (sample[i] > 0) end_bucket(g, sample[i] - 1, false);
    end_bucket(g, sample[i], true);
    full = 0;
  }
  if (!g->n_buckets || g->upper[g->n_buckets - 1] != ~0ULL) end_bucket(g, ~0ULL, false);
  for (int b = g->n_buckets; b < 2 * MOST_BUCKETS; b++) g->upper[b] = ~0ULL;
}

/* Makes the table that finds a bucket by the highest bits that vary. */
static void index_buckets(sort_job *g) {
  int bits = g->hi - g->lo < PREFIX_BITS ? g->hi - g->lo : PREFIX_BITS, most = 0, b = 0;
  size_t n_digits = (size_t)1 << bits;
  wl_u64 above = g->hi == 64 ? 0 : g->first >> g->hi << g->hi; /* the same in all words */
  g->at = g->hi - bits;
  g->mask = n_digits - 1;
  for (size_t d = 0; d < n_digits; d++) {
    wl_u64 least = above | (wl_u64)d << g->at;
    int before = b;
    while (g->upper[b] < least) b++;
    g->first_of[d] = (wl_u16)b;
    if (d && b - before > most) most = b - before;
  }
  if (g->n_buckets - 1 - b > most) most = g->n_buckets - 1 - b;
  for (g->first_step = most > 0; g->first_step * 2 <= most && most;) g->first_step *= 2;
}

/* One bucket for all rows. */
static void choose_none(sort_job *g) {
  g->n_buckets = 0;
  end_bucket(g, ~0ULL, false);
  g->first_of[0] = 0;
  g->at = g->first_step = 0;
  g->mask = 0;
}

static wl_status choose_buckets(sort_job *g, wl_error *err) {
  if (g->n < SERIAL) {
    choose_none(g);
    return WL_OK;
  }
  wl_u64 *sample = wl_mem_alloc(2 * (size_t)SAMPLE * sizeof *sample);
  if (!sample) return wl_nomem(err);
  sort_watcher w = {.stop = NULL};
  int m = sample_words(g, sample);
  wl_sort_range(sample, sample + SAMPLE, m, g->lo, g->hi, &w);
  divide(g, sample, m);
  index_buckets(g);
  wl_mem_free(sample);
  return WL_OK;
}

/* Finds the buckets of n words. upper: the largest word of each. */
static WL_CLONES void find_buckets(const wl_u64 *w, int n, int at, wl_u64 mask,
                                   const wl_u16 *first_of, const wl_u64 *upper, wl_u32 first_step,
                                   wl_u32 *restrict b) {
  for (int i = 0; i < n; i++) b[i] = first_of[w[i] >> at & mask];
  for (wl_u32 step = first_step; step; step >>= 1)
    for (int i = 0; i < n; i++) b[i] += w[i] > upper[b[i] + step - 1] ? step : 0;
}

/* Finds and counts the buckets of the rows. */
static wl_status count_task(void *arg, int worker, long k, wl_error *err) {
  sort_job *g = arg;
  (void)worker, (void)err;
  enum { AT_ONCE = 256 };
  wl_u32 *count = g->counts[k], b[AT_ONCE];
  wl_u64 keys[AT_ONCE];
  memset(count, 0, sizeof g->counts[k]);
  for (stretch c = chunk(g, k); next_stretch(g, &c);)
    for (wl_i64 i = c.from; i < c.to; i += AT_ONCE) {
      int n = c.to - i < AT_ONCE ? (int)(c.to - i) : AT_ONCE;
      for (int r = 0; r < n && g->src; r++) keys[r] = g->src[i + r].key;
      find_buckets(g->src ? keys : g->s->words[0] + i, n, g->at, g->mask, g->first_of, g->upper,
                   (wl_u32)g->first_step, b);
      for (int r = 0; r < n; r++) {
        count[b[r]]++;
        g->buckets[i + r] = (wl_u16)b[r];
      }
    }
  return WL_OK;
}

static wl_status deal_task(void *arg, int worker, long k, wl_error *err) {
  sort_job *g = arg;
  (void)worker, (void)err;
  const wl_u64 *w = g->s->words[0];
  const wl_u16 *bucket = g->buckets;
  wl_u32 *place = g->counts[k];
  wl_u64 mask = g->hi - g->lo == 64 ? ~0ULL : (1ULL << (g->hi - g->lo)) - 1;
  for (stretch c = chunk(g, k); next_stretch(g, &c);) {
    if (g->src)
      for (wl_i64 i = c.from; i < c.to; i++) g->dst[place[bucket[i]]++] = g->src[i];
    else if (g->packed)
      for (wl_i64 i = c.from; i < c.to; i++)
        g->words[place[bucket[i]]++] = (w[i] >> g->lo & mask) << g->row_bits | (wl_u64)i;
    else
      for (wl_i64 i = c.from; i < c.to; i++)
        g->dst[place[bucket[i]]++] = (sort_item){w[i], (wl_u32)i};
  }
  return WL_OK;
}

/* Turns the counts of the chunks into the places where their rows go. */
static void place_rows(sort_job *g) {
  wl_u32 sum = 0;
  for (int d = 0; d < g->n_buckets; d++) {
    g->starts[d] = sum;
    for (int k = 0; k < g->n_chunks; k++) {
      wl_u32 c = g->counts[k][d];
      g->counts[k][d] = sum;
      sum += c;
    }
  }
  g->starts[g->n_buckets] = sum;
  assert(sum == g->n);
}

/* ---- the last step */

static wl_status add_part(sort_job *g, wl_i64 from, wl_i64 n, sort_next next, wl_error *err) {
  if (g->n_parts == g->size_parts) {
    int size = g->size_parts * 2 + MOST_BUCKETS;
    sort_part *p =
        wl_mem_realloc(g->parts, (size_t)g->n_parts * sizeof *p, (size_t)size * sizeof *p);
    if (!p) return wl_nomem(err);
    g->parts = p;
    g->size_parts = size;
  }
  g->parts[g->n_parts++] = (sort_part){(wl_u32)from, (wl_u32)n, next};
  return WL_OK;
}

/* Rows that are in order already. */
static wl_status add_equal(sort_job *g, wl_i64 from, wl_i64 n, wl_error *err) {
  wl_status rc = WL_OK;
  for (wl_i64 i = 0; i < n && !rc; i += STRETCH)
    rc = add_part(g, from + i, n - i < STRETCH ? n - i : STRETCH, SORT_EQUAL, err);
  return rc;
}

static inline wl_u32 number_of(const wl_sort *s, wl_u32 row) {
  return s->numbers ? s->numbers[row] : row;
}

/* Sorts a part, and writes its numbers. */
static wl_status part_task(void *arg, int worker, long d, wl_error *err) {
  sort_job *g = arg;
  (void)err; /* wl_tasks_run() knows the reason to stop */
  const wl_sort *s = g->s;
  sort_watcher w = {.stop = s->stop, .worker = worker};
  wl_i64 from = g->parts[d].from, n = g->parts[d].n;
  sort_next next = g->parts[d].next;
  wl_u32 *out = g->out + g->from + from;
  if (g->packed) {
    wl_u64 *a = g->words + from, mask = (1ULL << g->row_bits) - 1, x = 0;
    if (next == SORT_MORE) x = bits_that_vary(a, n, a[0]) & ~mask;
    if (x) wl_sort_range(a, g->words2 + from, n, __builtin_ctzll(x), 64 - __builtin_clzll(x), &w);
    for (wl_i64 i = 0; i < n; i++) out[i] = number_of(s, (wl_u32)(a[i] & mask));
    return WL_OK;
  }
  sort_item *a = g->dst + from, *t = (g->src ? g->src : g->items2) + from;
  if (next == SORT_MORE) wl_sort_items(s, a, t, n, g->place, &w);
  if (next == SORT_COMPARE) wl_sort_ties(s, a, t, n, &w);
  for (wl_i64 i = 0; i < n; i++) out[i] = number_of(s, a[i].row);
  return WL_OK;
}

/* Makes the tasks of the last step. Large buckets of equal words are kept for later. */
static wl_status make_parts(sort_job *g, wl_error *err) {
  wl_status rc = WL_OK;
  g->n_parts = 0;
  for (int d = 0; d < g->n_buckets && !rc; d++) {
    wl_i64 from = g->starts[d], n = (wl_i64)g->starts[d + 1] - from;
    sort_place next = g->place;
    sort_next how = SORT_MORE;
    if (g->same[d]) how = g->packed ? SORT_EQUAL : wl_sort_advance(g->s, g->upper[d], &next);
    if (how == SORT_EQUAL) {
      rc = add_equal(g, from, n, err);
    } else if (g->same[d] && how == SORT_MORE && n > g->heavy) {
      sort_item *room = g->src ? g->src : g->items2;
      assert(g->n_equals < MOST_BUCKETS);
      g->equals[g->n_equals++] = (sort_equals){g->from + from, n, next, g->dst + from, room + from};
    } else if (n) {
      rc = add_part(g, from, n, how, err);
    }
  }
  return rc;
}

/* ---- all steps */

/* Writes the numbers of all rows, or makes items of them, in their order. */
static wl_status list_task(void *arg, int worker, long k, wl_error *err) {
  sort_job *g = arg;
  (void)worker, (void)err;
  wl_i64 at = g->counts[k][0];
  for (stretch c = chunk(g, k); next_stretch(g, &c);) {
    if (g->items)
      for (wl_i64 i = c.from; i < c.to; i++) g->items[at++].row = (wl_u32)i;
    else
      for (wl_i64 i = c.from; i < c.to; i++) g->out[at++] = number_of(g->s, (wl_u32)i);
  }
  return WL_OK;
}

static wl_status list_rows(sort_job *g, wl_error *err) {
  wl_u32 sum = 0;
  for (int k = 0; k < g->n_chunks; k++) {
    g->counts[k][0] = sum;
    for (stretch c = chunk(g, k); next_stretch(g, &c);) sum += (wl_u32)(c.to - c.from);
  }
  return run_tasks(g, g->n_chunks, list_task, err);
}

static wl_status make_items(sort_job *g, wl_error *err) {
  size_t n = (size_t)g->n;
  g->items = g->dst = wl_mem_alloc(n * sizeof *g->items);
  g->items2 = wl_mem_alloc(n * sizeof *g->items2);
  return g->items && g->items2 ? WL_OK : wl_nomem(err);
}

static wl_status make_words(sort_job *g, wl_error *err) {
  size_t n = (size_t)g->n;
  g->packed = true;
  g->words = wl_mem_alloc(n * sizeof *g->words);
  g->words2 = wl_mem_alloc(n * sizeof *g->words2);
  return g->words && g->words2 ? WL_OK : wl_nomem(err);
}

/* Moves to the next word of rows that have the same one. *done: there is none. */
static wl_status pass_equal(sort_job *g, bool *done, wl_error *err) {
  wl_status rc = WL_OK;
  sort_next next = wl_sort_advance(g->s, g->first, &g->place);
  *done = next != SORT_MORE;
  if (!g->src && next != SORT_EQUAL) rc = make_items(g, err);
  if (!g->src && !rc) rc = list_rows(g, err);
  if (!g->src && (rc || next == SORT_EQUAL)) return rc;
  if (!g->src) {
    g->src = g->items;
    g->dst = g->items2;
  }
  if (next == SORT_MORE) return WL_OK;
  sort_item *items = g->src;
  g->src = g->dst;
  g->dst = items;
  g->n_parts = 0;
  rc = next == SORT_EQUAL ? add_equal(g, 0, g->n, err) : add_part(g, 0, g->n, next, err);
  return rc ? rc : run_tasks(g, g->n_parts, part_task, err);
}

/* Sorts rows that are equal before g->place. */
static wl_status sort_level(sort_job *g, wl_error *err) {
  wl_u64 x = 0;
  bool done = false;
  wl_status rc = WL_OK;
  for (int k = 0;; k++) {
    rc = find_bits(g, &x, err);
    if (rc || x) break;
    rc = pass_equal(g, &done, err);
    if (rc || done) return rc;
    if (k && g->place.at && g->place.at != WL_TEXT_AT_LENGTH) rc = skip_common(g, err);
    if (rc) return rc;
  }
  if (!rc && !g->src) {
    bool exact = g->s->n_words == 1 && !g->s->tie && !wl_sort_text(g->s, 0);
    rc = exact && g->hi - g->lo + g->row_bits <= 64 ? make_words(g, err) : make_items(g, err);
  }
  if (!rc) rc = choose_buckets(g, err);
  if (!rc) rc = run_tasks(g, g->n_chunks, count_task, err);
  if (!rc) place_rows(g);
  if (!rc) rc = run_tasks(g, g->n_chunks, deal_task, err);
  if (!rc) rc = make_parts(g, err);
  if (!rc) rc = run_tasks(g, g->n_parts, part_task, err);
  return rc;
}

static wl_status open_job(sort_job *g, wl_error *err) {
  const wl_sort *s = g->s;
  g->n = s->n;
  g->end = s->counts ? (wl_i64)s->n_tablets << WL_TABLET_SHIFT : s->n;
  g->row_bits = 64 - __builtin_clzll((wl_u64)g->end);
  g->threads = s->n < SERIAL ? 1 : s->threads;
  g->n_chunks = g->threads == 1 ? 1 : g->threads * CHUNKS;
  if (g->n_chunks < s->n >> 20) g->n_chunks = (int)(s->n >> 20); /* a chunk takes milliseconds */
  g->heavy = g->threads == 1 ? s->n : s->n / (g->threads < 64 ? 4 * g->threads : BUCKETS);
  if (g->heavy < SERIAL) g->heavy = SERIAL;
  size_t chunks = (size_t)g->n_chunks;
  g->varies = wl_mem_alloc(chunks * sizeof *g->varies);
  g->common = wl_mem_alloc(chunks * sizeof *g->common);
  g->counts = wl_mem_alloc(chunks * sizeof *g->counts);
  size_t n_digits = s->n < SERIAL ? 1 : (size_t)1 << PREFIX_BITS;
  g->first_of = wl_mem_alloc(n_digits * sizeof *g->first_of);
  g->buckets = wl_mem_alloc((size_t)g->end * sizeof *g->buckets);
  bool ok = g->varies && g->common && g->counts && g->first_of && g->buckets;
  return ok ? WL_OK : wl_nomem(err);
}

static void close_job(sort_job *g) {
  wl_mem_free(g->varies);
  wl_mem_free(g->common);
  wl_mem_free(g->counts);
  wl_mem_free(g->first_of);
  wl_mem_free(g->buckets);
  wl_mem_free(g->words);
  wl_mem_free(g->words2);
  wl_mem_free(g->items);
  wl_mem_free(g->items2);
  wl_mem_free(g->parts);
  wl_mem_free(g);
}

wl_i64 wl_sort_bytes(wl_i64 n) {
  return n * (2 * (wl_i64)sizeof(sort_item) + (wl_i64)sizeof(wl_u16));
}

wl_status wl_sort_rows(const wl_sort *s, wl_u32 *out, wl_error *err) {
  if (s->n == 0) return WL_OK;
  sort_job *g = wl_mem_zalloc(sizeof *g);
  if (!g) return wl_nomem(err);
  g->s = s;
  g->out = out;
  wl_status rc = open_job(g, err);
  if (!rc) rc = sort_level(g, err);
  while (!rc && g->n_equals) {
    sort_equals h = g->equals[--g->n_equals];
    g->from = h.from;
    g->n = h.n;
    g->place = h.place;
    g->src = h.items;
    g->dst = h.room;
    rc = sort_level(g, err);
  }
  close_job(g);
  return rc;
}
