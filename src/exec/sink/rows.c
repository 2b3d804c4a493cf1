/*
** The sink of result rows; see rows.h.
*/
#include "exec/sink/rows.h"
#include "exec/executed.h"
#include "plan/cut.h"

static wl_status take(wl_sink *sink, wl_batch *b, wl_error *err) {
  return wl_collected_add(&((wl_rows_sink *)sink)->ready, b, err);
}

static wl_status finish(wl_sink *sink, wl_error *err) {
  return WL_OK;
}

static void clear(wl_sink *sink) {
  wl_collected_clear(&((wl_rows_sink *)sink)->ready);
}

void wl_rows_sink_init(wl_rows_sink *s, const wl_program *last, wl_pool *pool, wl_budget *budget) {
  wl_batch_sink_init(&s->base, pool);
  s->base.sink.take = take;
  s->base.sink.finish = finish;
  s->base.sink.clear = s->base.sink.close = clear;
  wl_collected_init(&s->ready, "rows that wait for the last one", budget);
  s->to_skip = last->offset;
  s->to_give = last->limit;
}

void wl_rows_sink_cut(wl_rows_sink *s, wl_i64 n, wl_i64 *skip, wl_i64 *left) {
  *skip = s->to_skip < n ? s->to_skip : n;
  *left = n - *skip;
  s->to_skip -= *skip;
  if (s->to_give < 0) return;
  if (*left > s->to_give) {
    *left = s->to_give;
    wl_executed_limit(WL_ON_CPU);
  }
  s->to_give -= *left;
}

void wl_rows_sink_next(wl_rows_sink *s, wl_batch **out) {
  *out = NULL;
  for (wl_batch *b; s->to_give != 0 && (b = wl_collected_next(&s->ready));) {
    wl_i64 n;
    wl_rows_sink_cut(s, b->n_rows, &b->skip, &n);
    b->n_rows = b->skip + n;
    if (n > 0) {
      *out = b;
      return;
    }
    wl_batch_give(b);
  }
}

wl_i64 wl_rows_sink_needed(const wl_rows_sink *s) {
  return wl_cut_needed(s->to_skip, s->to_give);
}
