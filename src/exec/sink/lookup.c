/*
** The sink of a lookup: every piece gives (word, row) pairs. After the last one they become a
** direct table, a hash table (lookup_table.c) or a list. If only the existence of a row matters,
** the pieces set bits instead. See lookup.h and column/lookup.h.
**
** Invariants:
** 1. The pairs of all tablets, one tablet after the other, are in row order.
** 2. The result does not depend on the number of threads, except for the slot of a hashed word.
*/
#include "exec/sink/lookup_impl.h"
#include "base/mem.h"
#include "exec/pipe.h"
#include "value/keys.h"
#include <string.h>

enum { PAIR_BYTES = 12, ALONE = 50000 };

bool wl_build_fits(const wl_build *b, wl_i64 n) {
  return !b->in->left || b->n_bytes + n <= b->in->left;
}

wl_status wl_build_spend(wl_build *b, wl_i64 n, wl_error *err) {
  b->n_bytes += n;
  if (b->in->left && b->n_bytes > b->in->left)
    return wl_budget_fail("the rows of a join", b->in->left, err);
  return WL_OK;
}

/* ---- pairs */

static wl_status sink_room(wl_build_sink *s) {
  if (!s->words) s->words = wl_mem_alloc(WL_TABLET_ROWS * sizeof *s->words);
  if (!s->rows) s->rows = wl_mem_alloc(WL_TABLET_ROWS * sizeof *s->rows);
  return s->words && s->rows ? WL_OK : WL_NOMEM;
}

/* Takes the pairs from the worker's room. Takes the room itself if they fill most of it. */
static wl_status keep_pairs(wl_build_sink *s, wl_build_part *t) {
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

/* ---- bits */

/* Prepares a lookup that only has bits, if there can be such a one. They are set while rows are
** read, so the range of the keys must be known before. */
static wl_status open_bits(wl_build *b, wl_error *err) {
  enum { ALWAYS = 1 << 16, A_ROW = 64, MOST = 1 << 28 };
  const wl_build_in *in = b->in;
  wl_u64 span = in->plan.kind == WL_KEYS_INT ? wl_key_plan_span(&in->plan) : 0;
  if (!in->exists || !span || span > MOST) return WL_OK;
  if (span > ALWAYS && (double)span > (double)in->n_rows * A_ROW) return WL_OK;
  b->l->span = span;
  b->l->direct = b->l->unique = b->l->only_bits = true;
  wl_status rc = wl_build_spend(b, (wl_i64)wl_lookup_bits_bytes(b->l), err);
  if (rc) return rc;
  b->l->bits = wl_mem_zalloc(wl_lookup_bits_bytes(b->l));
  return b->l->bits ? WL_OK : wl_nomem(err);
}

/* Several threads set bits at the same time. Most words are there already, or come in order. */
static void set_bits(wl_u8 *bits, const wl_u64 *words, wl_i64 n) {
  for (wl_i64 i = 0; i < n; i++) {
    wl_u8 *p = &bits[words[i] >> 3], bit = (wl_u8)(1 << (words[i] & 7));
    if (!(__atomic_load_n(p, __ATOMIC_RELAXED) & bit)) __atomic_fetch_or(p, bit, __ATOMIC_RELAXED);
  }
}

/* ---- the sink */

static wl_status begin(wl_sink *sink, wl_row_piece *q, int worker, wl_exec_io *io, bool *full,
                       wl_error *err) {
  wl_build *b = (wl_build *)sink;
  wl_build_sink *s = io->build = &b->sinks[worker];
  s->plan = &b->in->plan;
  s->n = 0;
  s->has_null = false;
  return sink_room(s) ? wl_nomem(err) : WL_OK;
}

static wl_status end(wl_sink *sink, wl_row_piece *q, int worker, wl_error *err) {
  wl_build *b = (wl_build *)sink;
  wl_build_sink *s = &b->sinks[worker];
  wl_build_part *t = &b->parts[q->first >> WL_TABLET_SHIFT];
  if (!q->done) return WL_OK;
  if (!b->l->only_bits) return keep_pairs(s, t);
  set_bits(b->l->bits, s->words, s->n);
  t->n = s->n;
  t->has_null = s->has_null;
  return WL_OK;
}

static wl_status settle(wl_sink *sink, wl_row_piece *q, wl_error *err) {
  wl_build *b = (wl_build *)sink;
  const wl_build_part *t = &b->parts[q->first >> WL_TABLET_SHIFT];
  if (!q->done) return WL_OK;
  b->n += t->n;
  b->l->has_null |= t->has_null;
  if (t->n && t->lo < b->lo) b->lo = t->lo;
  if (t->n && t->hi > b->hi) b->hi = t->hi;
  return b->l->only_bits ? WL_OK : wl_build_spend(b, t->n * PAIR_BYTES, err);
}

/* Runs the pipeline. */
static wl_status collect(wl_build *b, wl_error *err) {
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
    rc = wl_stop_ask(&b->stop, err);
    if (!rc) rc = wl_pipe_wave(&e, err);
  }
  wl_pipe_close(&e);
  return rc;
}

/* ---- all rows */

static wl_status make_list(wl_build *b, wl_error *err) {
  wl_lookup *l = b->l;
  l->unique = b->n <= 1;
  if (b->n == b->in->n_rows) return WL_OK; /* every row is in it, so no list is needed */
  wl_status rc = wl_build_spend(b, b->n * 4, err);
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
static bool direct_pays(const wl_build *b, wl_u64 span) {
  enum { ALWAYS = 1 << 16, NEAR = 1 << 18, FAR = 1 << 23, SLOT_BYTES = 5 /* with bits */ };
  wl_u64 rows = (wl_u64)b->n;
  if (span <= FAR && (double)span <= b->in->n_probes * 2 &&
      wl_build_fits(b, (wl_i64)span * SLOT_BYTES))
    return true;
  return span <= ALWAYS || span <= 16 * rows || (span <= NEAR && span <= 1024 * rows) ||
         (span <= FAR && span <= 64 * rows);
}

/* Makes the lookup of the collected rows. */
static wl_status make(wl_sink *sink, wl_error *err) {
  wl_build *b = (wl_build *)sink;
  wl_lookup *l = b->l;
  wl_key_plan *plan = &l->plan;
  l->n_rows = b->n;
  if (l->only_bits) return WL_OK;
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
    if (direct_pays(b, l->span)) return wl_build_direct(b, err);
  }
  return wl_build_hash(b, err);
}

wl_status wl_lookup_build(const wl_build_in *in, wl_lookup **out, wl_error *err) {
  wl_build b = {.sink = {.begin = begin, .end = end, .settle = settle, .finish = make},
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
    rc = wl_lookup_build_on_device(in, &b.stop, b.l, err);
  }
  if (rc == WL_NOT_TAKEN) {
    rc = open_bits(&b, err);
    if (!rc) rc = collect(&b, err);
    if (!rc) rc = b.sink.finish(&b.sink, err);
  }
  for (size_t i = 0; i < threads && b.sinks; i++) {
    wl_mem_free(b.sinks[i].words);
    wl_mem_free(b.sinks[i].rows);
  }
  for (int k = 0; k < b.n_parts && b.parts; k++) {
    wl_mem_free(b.parts[k].words);
    wl_mem_free(b.parts[k].rows);
  }
  wl_mem_free(b.parts);
  wl_mem_free(b.sinks);
  wl_build_close_tables(&b);
  if (rc) {
    if (b.l) atomic_init(&b.l->refs, 1);
    wl_lookup_drop(b.l);
    return rc;
  }
  wl_lookup *l = b.l;
  size_t words = l->direct && !l->only_bits ? (size_t)l->span + 2 : 0,
         slots = l->words || (l->on_device && !l->direct) ? (size_t)l->mask + 1 : 0;
  bool counted = l->counts || (l->on_device && !l->unique);
  l->n_bytes = sizeof *l + 4 * words + (l->bits || l->only_bits ? wl_lookup_bits_bytes(l) : 0) +
               slots * (12 + (counted ? 4 : 0)) +
               (l->rows || (l->on_device && !l->unique) ? 4 * (size_t)l->n_rows : 0);
  *out = l;
  return WL_OK;
}
