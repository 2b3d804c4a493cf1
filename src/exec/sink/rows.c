/*
** The sink of result rows; see rows.h.
*/
#include "exec/sink/rows.h"

enum { MOST_ROWS = 2 * WL_TABLET_ROWS }; /* of a piece that waits for those before it */

static wl_status begin(wl_sink *sink, wl_row_piece *q, int worker, wl_exec_io *io, bool *full,
                       wl_error *err) {
  wl_rows_sink *s = (wl_rows_sink *)sink;
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

static wl_status settle(wl_sink *sink, wl_row_piece *q, wl_error *err) {
  wl_rows_sink *s = (wl_rows_sink *)sink;
  wl_status rc = WL_OK;
  while (q->batches && !rc) {
    wl_batch *b = q->batches;
    q->batches = b->next;
    if (b->n_rows)
      rc = s->take(s->arg, b, err);
    else
      wl_batch_give(b);
  }
  q->end = &q->batches;
  q->n_batches = 0;
  q->n_given = 0;
  return rc;
}

void wl_rows_sink_init(wl_rows_sink *s, wl_pool *pool) {
  s->sink = (wl_sink){"Rows", begin, end, settle};
  s->pool = pool;
  s->most = (int)(MOST_ROWS / wl_pool_rows(pool));
  s->needed = -1;
}
