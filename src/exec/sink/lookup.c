/*
** The sink of a lookup: every piece gives (word, row) pairs. After the last one they become a
** direct table or a hash table. See lookup.h and column/lookup.h.
**
** Invariants:
** 1. The pairs of all tablets, one tablet after the other, are in row order.
** 2. The result does not depend on the number of threads, except for the slot of a hashed word.
** 3. When several threads fill one table, each has a range of it and skips words outside its range.
*/
#include "exec/sink/lookup.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "exec/pipe.h"
#include "value/keys.h"
#include <string.h>

enum { PAIR_BYTES = 12, ALONE = 50000, SPARSE = 1 << 17, STRETCH = 1 << 18 };

/* The pairs of one tablet. */
typedef struct build_part {
  wl_u64 *words;
  wl_u32 *rows;
  wl_u32 *places; /* HASH: the slot of each pair; WL_NO_ROW: none yet */
  wl_i64 n;
  wl_u64 lo, hi; /* range of the words */
  bool has_null;
} build_part;

typedef struct build {
  wl_sink sink;
  const wl_build_in *in;
  wl_lookup *l;
  build_part *parts; /* by tablet */
  int n_parts;
  int threads;
  wl_build_sink *sinks; /* by worker: room for the pairs of a tablet */
  wl_i64 n, n_bytes;
  wl_u64 lo, hi; /* range of all words */
  wl_u64 base;   /* subtracted from every word */
  atomic_bool has_duplicates;
  wl_stop stop;
} build;

static wl_status spend(build *b, wl_i64 n, wl_error *err) {
  b->n_bytes += n;
  if (b->in->left && b->n_bytes > b->in->left)
    return wl_budget_fail("the rows of a join", b->in->left, err);
  return WL_OK;
}

static wl_status check(build *b, wl_error *err) {
  return wl_stop_ask(&b->stop, err);
}

static wl_status run_tasks(build *b, long n, wl_task_fn task, wl_error *err) {
  wl_tasks t = {b->threads, n, task, b, &b->stop};
  return wl_tasks_run(&t, NULL, err);
}

/* Sets all bytes of an array of n words. Touching new memory takes time, so it may stop. */
static wl_status fill_words(build *b, wl_u32 *a, size_t n, int byte, wl_error *err) {
  wl_status rc = WL_OK;
  for (size_t i = 0; i < n && !rc; i += STRETCH) {
    memset(a + i, byte, (n - i < STRETCH ? n - i : STRETCH) * sizeof *a);
    rc = check(b, err);
  }
  return rc;
}

/* ---- pairs */

static wl_status sink_room(wl_build_sink *s) {
  if (!s->words) s->words = wl_mem_alloc(WL_TABLET_ROWS * sizeof *s->words);
  if (!s->rows) s->rows = wl_mem_alloc(WL_TABLET_ROWS * sizeof *s->rows);
  return s->words && s->rows ? WL_OK : WL_NOMEM;
}

/* Takes the pairs from the worker's room. Takes the room itself if they fill most of it. */
static wl_status keep_pairs(wl_build_sink *s, build_part *t) {
  t->n = s->n;
  t->has_null = s->has_null;
  t->lo = ~0ULL;
  for (wl_i64 i = 0; i < s->n; i++) {
    t->lo = s->words[i] < t->lo ? s->words[i] : t->lo;
    t->hi = s->words[i] > t->hi ? s->words[i] : t->hi;
  }
  if (s->n > WL_TABLET_ROWS / 2) {
    t->words = s->words;
    t->rows = s->rows;
    s->words = NULL;
    s->rows = NULL;
    return WL_OK;
  }
  if (!s->n) return WL_OK;
  t->words = wl_mem_alloc((size_t)s->n * sizeof *t->words);
  t->rows = wl_mem_alloc((size_t)s->n * sizeof *t->rows);
  if (!t->words || !t->rows) return WL_NOMEM;
  memcpy(t->words, s->words, (size_t)s->n * sizeof *t->words);
  memcpy(t->rows, s->rows, (size_t)s->n * sizeof *t->rows);
  return WL_OK;
}

static wl_status begin(wl_sink *sink, wl_row_piece *q, int worker, wl_exec_io *io, bool *full,
                       wl_error *err) {
  build *b = (build *)sink;
  wl_build_sink *s = io->build = &b->sinks[worker];
  s->plan = &b->in->plan;
  s->n = 0;
  s->has_null = false;
  return sink_room(s) ? wl_nomem(err) : WL_OK;
}

static wl_status end(wl_sink *sink, wl_row_piece *q, int worker, wl_error *err) {
  build *b = (build *)sink;
  return q->done ? keep_pairs(&b->sinks[worker], &b->parts[q->first >> WL_TABLET_SHIFT]) : WL_OK;
}

static wl_status settle(wl_sink *sink, wl_row_piece *q, wl_error *err) {
  build *b = (build *)sink;
  const build_part *t = &b->parts[q->first >> WL_TABLET_SHIFT];
  if (!q->done) return WL_OK;
  b->n += t->n;
  b->l->has_null |= t->has_null;
  if (t->n && t->lo < b->lo) b->lo = t->lo;
  if (t->n && t->hi > b->hi) b->hi = t->hi;
  return spend(b, t->n * PAIR_BYTES, err);
}

/* Runs the pipeline. */
static wl_status collect(build *b, wl_error *err) {
  const wl_build_in *in = b->in;
  wl_pipe e = {.p = in->p,
               .cols = in->cols,
               .n_rows = in->n_rows,
               .step = WL_TABLET_ROWS,
               .threads = b->threads,
               .needed = -1,
               .max_text = in->max_text,
               .stop = &b->stop,
               .tally = in->tally,
               .sink = &b->sink};
  wl_status rc = wl_pipe_open(&e, err);
  while (!rc && !wl_pipe_done(&e)) {
    rc = check(b, err);
    if (!rc) rc = wl_pipe_wave(&e, err);
  }
  wl_pipe_close(&e);
  return rc;
}

/* ---- a direct table */

/* Stores the row of each word: the first one if first_only is set. Otherwise it sets has_duplicates
** when a word has a second row, and the slots are not used. */
static wl_status slots_task(void *arg, int worker, long task, wl_error *err) {
  build *b = arg;
  const build_part *t = &b->parts[task];
  wl_u32 *slots = b->l->slots;
  if (atomic_load_explicit(&b->has_duplicates, memory_order_relaxed)) return WL_OK;
  if (b->in->first_only) {
    for (wl_i64 i = 0; i < t->n; i++) {
      wl_u32 *s = &slots[t->words[i] - b->base], row = t->rows[i];
      wl_u32 was = __atomic_load_n(s, __ATOMIC_RELAXED); /* WL_NO_ROW is larger than every row */
      while (row < was &&
             !__atomic_compare_exchange_n(s, &was, row, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      }
    }
    return WL_OK;
  }
  if (b->threads == 1) {
    wl_u32 has_duplicates = 0;
    for (wl_i64 i = 0; i < t->n; i++) {
      wl_u32 *s = &slots[t->words[i] - b->base];
      has_duplicates |= *s ^ WL_NO_ROW;
      *s = t->rows[i];
    }
    if (has_duplicates) atomic_store(&b->has_duplicates, true);
    return WL_OK;
  }
  for (wl_i64 i = 0; i < t->n; i++) {
    wl_u32 none = WL_NO_ROW;
    if (!__atomic_compare_exchange_n(&slots[t->words[i] - b->base], &none, t->rows[i], false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      atomic_store(&b->has_duplicates, true);
      return WL_OK;
    }
  }
  return WL_OK;
}

/* Makes a bitmap of the words that have rows, if it fits the cache much better than the slots. */
static wl_status make_bits(build *b, wl_error *err) {
  enum { FROM = 1 << 15 };
  wl_lookup *l = b->l;
  if (l->span < FROM || (wl_u64)b->n > l->span / 2 || l->plan.n > 1 || l->plan.parts[0].null)
    return WL_OK;
  size_t n_bytes = (size_t)(l->span / 8 + 1);
  wl_status rc = spend(b, (wl_i64)n_bytes, err);
  if (rc) return rc;
  l->bits = wl_mem_zalloc(n_bytes);
  if (!l->bits) return wl_nomem(err);
  for (int k = 0; k < b->n_parts && !rc; k++) {
    const build_part *t = &b->parts[k];
    for (wl_i64 i = 0; i < t->n; i++) {
      wl_u64 w = t->words[i] - b->base;
      l->bits[w >> 3] |= (wl_u8)(1 << (w & 7));
    }
    rc = check(b, err);
  }
  return rc;
}

/* The words [*from, *to) belong to this task. */
static void word_range(const build *b, wl_u64 span, long task, wl_u64 *from, wl_u64 *to) {
  unsigned __int128 all = span;
  *from = (wl_u64)(all * (unsigned)task / (unsigned)b->threads);
  *to = (wl_u64)(all * (unsigned)(task + 1) / (unsigned)b->threads);
}

static wl_status count_task(void *arg, int worker, long task, wl_error *err) {
  build *b = arg;
  wl_u64 from, to;
  word_range(b, b->l->span, task, &from, &to);
  wl_u32 *counts = b->l->starts + 2;
  for (int k = 0; k < b->n_parts && !wl_stop_now(&b->stop, worker); k++) {
    const build_part *t = &b->parts[k];
    if (!t->n || t->hi - b->base < from || t->lo - b->base >= to) continue;
    for (wl_i64 i = 0; i < t->n; i++) {
      wl_u64 w = t->words[i] - b->base;
      if (w - from < to - from) counts[w]++;
    }
  }
  return WL_OK;
}

static wl_status rows_task(void *arg, int worker, long task, wl_error *err) {
  build *b = arg;
  wl_u64 from, to;
  word_range(b, b->l->span, task, &from, &to);
  wl_u32 *at = b->l->starts + 1, *rows = b->l->rows;
  for (int k = 0; k < b->n_parts && !wl_stop_now(&b->stop, worker); k++) {
    const build_part *t = &b->parts[k];
    if (!t->n || t->hi - b->base < from || t->lo - b->base >= to) continue;
    for (wl_i64 i = 0; i < t->n; i++) {
      wl_u64 w = t->words[i] - b->base;
      if (w - from < to - from) rows[at[w]++] = t->rows[i];
    }
  }
  return WL_OK;
}

static wl_status make_direct(build *b, wl_error *err) {
  wl_lookup *l = b->l;
  size_t n_slots = (size_t)l->span + 2;
  l->direct = true;
  wl_status rc = spend(b, (wl_i64)n_slots * 4, err);
  if (rc) return rc;
  l->slots = wl_mem_alloc(n_slots * sizeof *l->slots);
  if (!l->slots) return wl_nomem(err);
  rc = fill_words(b, l->slots, n_slots, 0xff, err);
  if (!rc) rc = run_tasks(b, b->n_parts, slots_task, err);
  if (rc) return rc;
  l->unique = !b->has_duplicates;
  if (l->unique) return make_bits(b, err);
  rc = spend(b, b->n * 4, err);
  if (rc) return rc;
  l->starts = l->slots;
  l->slots = NULL;
  rc = fill_words(b, l->starts, n_slots, 0, err);
  if (rc) return rc;
  l->rows = wl_mem_alloc((size_t)b->n * sizeof *l->rows);
  if (!l->rows) return wl_nomem(err);
  /* Word w is counted at w + 2. After the sums, the rows of w start at the offset in w + 1. While
  ** they are placed, that offset advances to where the rows of w + 1 start. */
  rc = run_tasks(b, b->threads, count_task, err);
  for (wl_u64 w = 2; w < l->span + 2 && !rc; w++) {
    l->starts[w] += l->starts[w - 1];
    rc = wl_stop_at_row(&b->stop, (wl_i64)w, err);
  }
  return rc ? rc : run_tasks(b, b->threads, rows_task, err);
}

/* ---- a hash table */

static void place(build *b, build_part *t, wl_i64 i, wl_u64 at, wl_u64 end) {
  wl_lookup *l = b->l;
  wl_u64 w = t->words[i] - b->base;
  while (at < end && l->slots[at] != WL_NO_ROW && l->words[at] != w) at++;
  if (at == end) { /* past the task's range: place_rest() handles it */
    t->places[i] = WL_NO_ROW;
    return;
  }
  if (l->slots[at] == WL_NO_ROW) {
    l->slots[at] = t->rows[i];
    l->words[at] = w;
  } else if (!b->in->first_only) {
    atomic_store_explicit(&b->has_duplicates, true, memory_order_relaxed);
  }
  l->counts[at]++;
  t->places[i] = (wl_u32)at;
}

static wl_status place_task(void *arg, int worker, long task, wl_error *err) {
  enum { AHEAD = 16 };
  build *b = arg;
  wl_u64 from, to, mask = b->l->mask;
  word_range(b, mask + 1, task, &from, &to);
  for (int k = 0; k < b->n_parts && !wl_stop_now(&b->stop, worker); k++) {
    build_part *t = &b->parts[k];
    for (wl_i64 i = 0; i < t->n; i++) {
      if (i + AHEAD < t->n) {
        wl_u64 next = wl_key_hash(t->words[i + AHEAD] - b->base) & mask;
        if (next - from < to - from) {
          __builtin_prefetch(&b->l->slots[next], 1);
          __builtin_prefetch(&b->l->words[next], 1);
          __builtin_prefetch(&b->l->counts[next], 1);
        }
      }
      wl_u64 at = wl_key_hash(t->words[i] - b->base) & mask;
      if (at - from < to - from) place(b, t, i, at, to);
    }
  }
  return WL_OK;
}

/* Places the pairs whose slot is in the range of another task. */
static wl_status place_rest(build *b, wl_error *err) {
  wl_lookup *l = b->l;
  wl_status rc = WL_OK;
  for (int k = 0; k < b->n_parts && !rc; k++) {
    build_part *t = &b->parts[k];
    for (wl_i64 i = 0; i < t->n; i++) {
      if (t->places[i] != WL_NO_ROW) continue;
      wl_u64 w = t->words[i] - b->base, at = wl_key_hash(w) & l->mask;
      while (l->slots[at] != WL_NO_ROW && l->words[at] != w) at = (at + 1) & l->mask;
      place(b, t, i, at, at + 1);
    }
    rc = check(b, err);
  }
  return rc;
}

static wl_status runs_task(void *arg, int worker, long task, wl_error *err) {
  build *b = arg;
  wl_u64 from, to;
  word_range(b, b->l->mask + 1, task, &from, &to);
  for (int k = 0; k < b->n_parts && !wl_stop_now(&b->stop, worker); k++) {
    const build_part *t = &b->parts[k];
    for (wl_i64 i = 0; i < t->n; i++) {
      wl_u64 at = t->places[i];
      if (at - from < to - from) b->l->rows[b->l->slots[at]++] = t->rows[i];
    }
  }
  return WL_OK;
}

static wl_status make_hash(build *b, wl_error *err) {
  wl_lookup *l = b->l;
  size_t n_slots = 16;
  if (b->n > (wl_i64)1 << 30)
    return wl_not_taken(err, "a join has more rows than a hash table can hold");
  while (n_slots < (size_t)b->n * (b->n < SPARSE ? 4 : 2)) n_slots *= 2;
  l->mask = n_slots - 1;
  wl_status rc = spend(b, (wl_i64)n_slots * 16 + b->n * 4, err);
  if (rc) return rc;
  l->words = wl_mem_alloc(n_slots * sizeof *l->words);
  l->slots = wl_mem_alloc(n_slots * sizeof *l->slots);
  l->counts = wl_mem_zalloc(n_slots * sizeof *l->counts);
  if (!l->words || !l->slots || !l->counts) return wl_nomem(err);
  rc = fill_words(b, l->slots, n_slots, 0xff, err);
  if (rc) return rc;
  for (int k = 0; k < b->n_parts; k++) {
    build_part *t = &b->parts[k];
    if (t->n && !(t->places = wl_mem_alloc((size_t)t->n * sizeof *t->places))) return wl_nomem(err);
  }
  rc = run_tasks(b, b->threads, place_task, err);
  if (!rc) rc = place_rest(b, err);
  if (rc) return rc;
  l->unique = !b->has_duplicates;
  if (l->unique) {
    wl_mem_free(l->counts);
    l->counts = NULL;
    return WL_OK;
  }
  rc = spend(b, b->n * 4, err);
  if (rc) return rc;
  l->rows = wl_mem_alloc((size_t)b->n * sizeof *l->rows);
  if (!l->rows) return wl_nomem(err);
  wl_u32 start = 0;
  for (size_t i = 0; i < n_slots && !rc; i++) {
    rc = wl_stop_at_row(&b->stop, (wl_i64)i, err);
    if (!l->counts[i]) continue;
    l->slots[i] = start;
    start += l->counts[i];
  }
  if (!rc) rc = run_tasks(b, b->threads, runs_task, err);
  for (size_t from = 0, to; from < n_slots && !rc; from = to) {
    to = n_slots - from < STRETCH ? n_slots : from + STRETCH;
    for (size_t i = from; i < to; i++) l->slots[i] -= l->counts[i]; /* empty slots have no rows */
    rc = check(b, err);
  }
  return rc;
}

/* ---- all rows */

static wl_status make_list(build *b, wl_error *err) {
  wl_lookup *l = b->l;
  l->unique = b->n <= 1;
  if (b->n == b->in->n_rows) return WL_OK; /* every row is in it, so no list is needed */
  wl_status rc = spend(b, b->n * 4, err);
  if (rc) return rc;
  l->rows = wl_mem_alloc(((size_t)b->n + 1) * sizeof *l->rows);
  if (!l->rows) return wl_nomem(err);
  wl_i64 at = 0;
  for (int k = 0; k < b->n_parts; k++) {
    if (b->parts[k].n)
      memcpy(l->rows + at, b->parts[k].rows, (size_t)b->parts[k].n * sizeof *l->rows);
    at += b->parts[k].n;
  }
  return WL_OK;
}

/* Whether a direct table of `span` slots is faster than hashing. Threads read both at random
** places, so a large direct table misses the cache more often. */
static bool direct_pays(wl_u64 span, wl_i64 n, double n_probes) {
  enum { ALWAYS = 1 << 16, NEAR = 1 << 18, FAR = 1 << 23 };
  wl_u64 rows = (wl_u64)n;
  if (span <= FAR && (double)span * 2 <= n_probes) return true;
  return span <= ALWAYS || span <= 16 * rows || (span <= NEAR && span <= 1024 * rows) ||
         (span <= FAR && span <= 64 * rows);
}

/* Makes the lookup of the collected rows. */
static wl_status make(wl_sink *sink, wl_error *err) {
  build *b = (build *)sink;
  wl_lookup *l = b->l;
  wl_key_plan *plan = &l->plan;
  l->n_rows = b->n;
  if (b->n < ALONE) b->threads = 1;
  if (plan->kind == WL_KEYS_NONE) return make_list(b, err);
  if (plan->kind == WL_KEYS_INT) {
    wl_key_part *part = &plan->parts[0];
    if (plan->n == 1 && !part->null) { /* use only the range that occurs */
      wl_u64 lo = (wl_u64)part->lo;
      b->base = b->n ? b->lo : 0;
      wl_key_part_set_range(part, b->n ? (wl_i64)(lo + b->lo) : 0,
                            b->n ? (wl_i64)(lo + b->hi) : -1);
    }
    l->span = part->span * part->below;
    if (direct_pays(l->span, b->n, b->in->n_probes)) return make_direct(b, err);
  }
  return make_hash(b, err);
}

wl_status wl_lookup_build(const wl_build_in *in, wl_lookup **out, wl_error *err) {
  build b = {.sink = {.begin = begin, .end = end, .settle = settle, .finish = make},
             .in = in,
             .threads = in->threads < 1 ? 1 : in->threads,
             .lo = ~0ULL,
             .stop = {.check = in->check, .arg = in->check_arg}};
  size_t threads = (size_t)b.threads;
  *out = NULL;
  if (in->n_rows >= (wl_i64)WL_NO_ROW)
    return wl_not_taken(err, "a join has more rows than 32 bits can number");
  b.n_parts = (int)((in->n_rows + WL_TABLET_ROWS - 1) >> WL_TABLET_SHIFT);
  b.l = wl_mem_zalloc(sizeof *b.l);
  b.parts = wl_mem_zalloc(((size_t)b.n_parts + 1) * sizeof *b.parts);
  b.sinks = wl_mem_zalloc(threads * sizeof *b.sinks);
  wl_status rc = b.l && b.parts && b.sinks ? WL_OK : wl_nomem(err);
  if (!rc) {
    atomic_init(&b.l->refs, 1);
    b.l->id = wl_column_new_id();
    b.l->plan = in->plan;
    rc = collect(&b, err);
  }
  if (!rc) rc = b.sink.finish(&b.sink, err);
  for (size_t i = 0; i < threads && b.sinks; i++) {
    wl_mem_free(b.sinks[i].words);
    wl_mem_free(b.sinks[i].rows);
  }
  for (int k = 0; k < b.n_parts && b.parts; k++) {
    wl_mem_free(b.parts[k].words);
    wl_mem_free(b.parts[k].rows);
    wl_mem_free(b.parts[k].places);
  }
  wl_mem_free(b.parts);
  wl_mem_free(b.sinks);
  if (rc) {
    if (b.l) atomic_init(&b.l->refs, 1);
    wl_lookup_drop(b.l);
    return rc;
  }
  wl_lookup *l = b.l;
  size_t words = l->direct ? (size_t)l->span + 2 : 0, slots = l->words ? (size_t)l->mask + 1 : 0;
  l->n_bytes = sizeof *l + 4 * words + (l->bits ? (size_t)l->span / 8 + 1 : 0) +
               slots * (12 + (l->counts ? 4 : 0)) + (l->rows ? 4 * (size_t)l->n_rows : 0);
  *out = l;
  return WL_OK;
}
