/*
** Builds a column from values that are added one by one. A stage collects the rows of a tablet as
** 64-bit values. When it is full, it becomes a segment. At the end the segments become the column.
**
** Invariants:
** 1. The stage has the rows of the tablet that is being filled.
*/
#include "column/column.h"
#include "base/mem.h"
#include <string.h>

struct wl_builder {
  wl_stage stage;
  wl_segment *segments;
  int n_segments, size_segments;
  size_t n_bytes; /* bytes of the segments */
  bool plain;
};

wl_status wl_builder_open(wl_builder **out, wl_error *err) {
  wl_builder *b = wl_mem_zalloc(sizeof *b);
  *out = b;
  if (!b) return wl_nomem(err);
  if (wl_stage_open(&b->stage) == WL_OK) return WL_OK;
  wl_builder_close(b);
  *out = NULL;
  return wl_nomem(err);
}

void wl_builder_plain(wl_builder *b) {
  b->plain = true;
}

void wl_builder_close(wl_builder *b) {
  if (!b) return;
  for (int i = 0; i < b->n_segments; i++) wl_segment_free(&b->segments[i]);
  wl_mem_free(b->segments);
  wl_stage_close(&b->stage);
  wl_mem_free(b);
}

size_t wl_builder_bytes(const wl_builder *b) {
  return b->n_bytes + b->stage.n_heap;
}

static wl_status finish_segment(wl_builder *b) {
  if (b->n_segments == b->size_segments) {
    int size = b->size_segments ? b->size_segments * 2 : 16;
    wl_segment *p =
        wl_mem_realloc(b->segments, (size_t)b->n_segments * sizeof *p, (size_t)size * sizeof *p);
    if (!p) return WL_NOMEM;
    b->segments = p;
    b->size_segments = size;
  }
  wl_segment *s = &b->segments[b->n_segments];
  wl_status rc = wl_segment_make(&b->stage, s);
  if (rc) return rc;
  b->n_segments++;
  b->n_bytes += wl_segment_bytes(s);
  b->stage.n = 0;
  b->stage.n_heap = 0;
  return WL_OK;
}

wl_status wl_builder_add(wl_builder *b, wl_val v) {
  wl_status rc = wl_stage_add(&b->stage, v);
  if (rc) return rc;
  return b->stage.n == WL_TABLET_ROWS ? finish_segment(b) : WL_OK;
}

wl_status wl_builder_add_numbers(wl_builder *b, wl_u8 tag, const wl_u64 *v, const wl_u8 *valid,
                                 wl_i64 n) {
  wl_stage *st = &b->stage;
  while (n > 0) {
    wl_i64 m = WL_TABLET_ROWS - st->n < n ? WL_TABLET_ROWS - st->n : n;
    for (wl_i64 i = 0; i < m; i++) {
      bool has_value = !valid || valid[i];
      st->v[st->n + i] = has_value ? v[i] : 0;
      st->t[st->n + i] = has_value ? tag : WL_T_NULL;
    }
    st->n += (wl_i32)m;
    v += m;
    if (valid) valid += m;
    n -= m;
    if (st->n == WL_TABLET_ROWS && finish_segment(b)) return WL_NOMEM;
  }
  return WL_OK;
}

wl_status wl_builder_finish(wl_builder *b, wl_column **out, wl_error *err) {
  *out = NULL;
  if (b->stage.n && finish_segment(b)) return wl_nomem(err);
  wl_segment *segments = b->segments;
  int n = b->n_segments;
  b->segments = NULL;
  b->n_segments = b->size_segments = 0;
  b->n_bytes = 0;
  return wl_column_make(segments, n, 1, !b->plain, out, err);
}
