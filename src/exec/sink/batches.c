/*
** What sinks of rows have in common; see batches.h.
*/
#include "exec/sink/batches.h"

enum { MOST_ROWS = 2 * WL_TABLET_ROWS }; /* of a piece that waits for those before it */

/* ---- pieces */

static wl_status begin(wl_sink *sink, wl_row_piece *q, int worker, wl_exec_io *io, bool *full,
                       wl_error *err) {
  wl_batch_sink *s = (wl_batch_sink *)sink;
  *full = q->n_batches == s->most;
  if (*full) return WL_OK;
  wl_batch *b;
  wl_status rc = wl_batch_take(s->pool, &b, err);
  if (rc) return rc;
  *q->end = b;
  q->end = &b->next;
  q->n_batches++;
  io->out = b;
  io->max_rows = s->needed < 0 ? -1 : s->needed - q->n_given;
  return WL_OK;
}

static wl_status end(wl_sink *sink, wl_row_piece *q, int worker, wl_error *err) {
  wl_i64 n = 0;
  for (const wl_batch *b = q->batches; b; b = b->next) n += b->n_rows;
  q->n_given = n;
  return WL_OK;
}

static wl_status settle(wl_sink *s, wl_row_piece *q, wl_error *err) {
  wl_status rc = WL_OK;
  while (q->batches && !rc) {
    wl_batch *b = q->batches;
    q->batches = b->next;
    if (b->n_rows)
      rc = s->take(s, b, err);
    else
      wl_batch_give(b);
  }
  q->end = &q->batches;
  q->n_batches = 0;
  q->n_given = 0;
  return rc;
}

void wl_batch_sink_init(wl_batch_sink *s, wl_pool *pool) {
  s->sink = (wl_sink){.begin = begin, .end = end, .settle = settle};
  s->pool = pool;
  s->most = (int)(MOST_ROWS / wl_pool_rows(pool));
  s->needed = -1;
}

/* ---- collected batches */

void wl_collected_init(wl_collected *c, const char *what, wl_budget *budget) {
  *c = (wl_collected){.end = &c->first, .budget = budget, .what = what};
}

/* The bytes that a batch takes while it is sorted. */
static wl_i64 batch_bytes(const wl_batch *b) {
  enum { SORTED = 64 };
  wl_i64 n = b->n_rows * SORTED;
  for (int k = 0; k < b->n_cols; k++) n += 2 * (b->n_rows * 13 + (wl_i64)b->cols[k].n_heap);
  return n;
}

/* Adds a batch to the counts, or removes it (sign -1). */
static void count(wl_collected *c, const wl_batch *b, int sign) {
  wl_i64 n = sign * batch_bytes(b);
  c->n_rows += sign * b->n_rows;
  c->n_bytes += n;
  if (c->budget) wl_budget_hold(c->budget, n);
}

wl_status wl_collected_add(wl_collected *c, wl_batch *b, wl_error *err) {
  b->next = NULL;
  *c->end = b;
  c->end = &b->next;
  count(c, b, 1);
  if (!c->budget || !wl_budget_full(c->budget)) return WL_OK;
  return wl_budget_fail(c->what, c->budget->most - c->budget->held + c->n_bytes, err);
}

wl_batch *wl_collected_next(wl_collected *c) {
  wl_batch *b = c->first;
  if (!b) return NULL;
  count(c, b, -1);
  c->first = b->next;
  if (!c->first) c->end = &c->first;
  return b;
}

void wl_collected_clear(wl_collected *c) {
  for (wl_batch *b; (b = wl_collected_next(c));) wl_batch_give(b);
}

wl_status wl_collected_give(wl_collected *c, wl_sink *to, wl_error *err) {
  wl_status rc = WL_OK;
  for (wl_batch *b; !rc && (b = wl_collected_next(c));) rc = to->take(to, b, err);
  return rc;
}

/* ---- sinks that collect */

static wl_status take(wl_sink *sink, wl_batch *b, wl_error *err) {
  return wl_collected_add(&((wl_collecting_sink *)sink)->rows, b, err);
}

static void clear(wl_sink *sink) {
  wl_collected_clear(&((wl_collecting_sink *)sink)->rows);
  sink->n_collected = 0;
}

void wl_collecting_sink_init(wl_collecting_sink *s, const char *what, wl_pool *pool,
                             wl_budget *budget) {
  wl_batch_sink_init(&s->base, pool);
  s->base.sink.take = take;
  s->base.sink.clear = s->base.sink.close = clear;
  wl_collected_init(&s->rows, what, budget);
}

void wl_collecting_sink_note(wl_collecting_sink *s) {
  wl_sink *sink = &s->base.sink;
  sink->n_collected += s->rows.n_rows;
  if (s->rows.n_bytes > sink->n_held) sink->n_held = s->rows.n_bytes;
}

wl_status wl_collecting_sink_end(wl_collecting_sink *s, wl_status rc, wl_collected *out,
                                 wl_error *err) {
  s->base.sink.n_left = out->n_rows;
  if (!rc) rc = wl_collected_give(out, s->to, err);
  wl_collected_clear(out);
  return rc;
}
