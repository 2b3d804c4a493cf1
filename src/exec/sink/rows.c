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

void wl_rows_sink_next(wl_rows_sink *s, wl_batch **out) {
  *out = NULL;
  for (wl_batch *b; s->to_give != 0 && (b = wl_collected_next(&s->ready));) {
    b->skip = s->to_skip < b->n_rows ? s->to_skip : b->n_rows;
    s->to_skip -= b->skip;
    wl_i64 n = b->n_rows - b->skip;
    if (s->to_give >= 0 && n > s->to_give) {
      n = s->to_give;
      wl_executed_limit(WL_ON_CPU);
      b->n_rows = b->skip + n;
    }
    if (s->to_give >= 0) s->to_give -= n;
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
