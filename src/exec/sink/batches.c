/*
** What sinks of rows have in common; see batches.h.
*/
#include "exec/sink/batches.h"

enum { MOST_ROWS = 2 * WL_TABLET_ROWS }; /* of a piece that waits for those before it */

wl_status wl_sink_no_room(const char *what, wl_i64 left, wl_error *err) {
  return wl_not_taken(err,
                      "%s need more than the %lld bytes that host_budget leaves and more than "
                      "TMPDIR has room for: raise host_budget",
                      what, left);
}

/* Gives a batch to a sink. */
static wl_status give(wl_sink *to, wl_batch *b, wl_error *err) {
  wl_status rc = to->take(to, b, err);
  to->refused |= rc != WL_OK;
  return rc;
}

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
      rc = give(s, b, err);
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

void wl_collected_init(wl_collected *c, const char *what, wl_i64 left) {
  *c = (wl_collected){.end = &c->first, .left = left, .what = what};
}

wl_status wl_collected_add(wl_collected *c, wl_batch *b, wl_error *err) {
  enum { SORTED = 64 };
  b->next = NULL;
  *c->end = b;
  c->end = &b->next;
  c->n_rows += b->n_rows;
  c->n_bytes += b->n_rows * SORTED;
  for (int k = 0; k < b->n_cols; k++)
    c->n_bytes += 2 * (b->n_rows * 13 + (wl_i64)b->cols[k].n_heap);
  return c->left && c->n_bytes > c->left ? wl_sink_no_room(c->what, c->left, err) : WL_OK;
}

wl_batch *wl_collected_next(wl_collected *c) {
  wl_batch *b = c->first;
  if (!b) return NULL;
  c->first = b->next;
  if (!c->first) wl_collected_init(c, c->what, c->left);
  return b;
}

void wl_collected_clear(wl_collected *c) {
  for (wl_batch *b; (b = wl_collected_next(c));) wl_batch_give(b);
}

wl_status wl_collected_give(wl_collected *c, wl_sink *to, wl_error *err) {
  wl_status rc = WL_OK;
  for (wl_batch *b; !rc && (b = wl_collected_next(c));) rc = give(to, b, err);
  return rc;
}
