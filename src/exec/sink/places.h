/*
** Rows of collected batches by their places (batch, row). Distinct and Sort work on places and copy
** the rows once, at the end.
*/
#ifndef WL_SINK_PLACES_H
#define WL_SINK_PLACES_H

#include "exec/sink/batches.h"
#include "value/keys.h"

typedef struct wl_row_place {
  wl_u32 batch, row;
} wl_row_place;

typedef struct wl_places {
  wl_pool *pool;
  const wl_reg *regs;
  wl_batch **batches;
  wl_row_place *at; /* [n] */
  wl_i64 n;
  int threads;
  wl_stop *stop;
} wl_places;

/* The places of all rows of a list of batches, which is borrowed. */
wl_status wl_places_open(wl_places *r, const wl_collected *rows, wl_pool *pool, int threads,
                         wl_stop *stop, wl_error *err) WL_MUST;
void wl_places_close(wl_places *r);

static inline wl_val wl_places_value(const wl_places *r, wl_row_place at, int col) {
  return wl_batch_value(r->batches[at.batch], r->regs, col, at.row);
}

/* Prefetches what the value is read from. */
static inline void wl_places_prefetch(const wl_places *r, wl_row_place at, int col) {
  const wl_outcol *c = &r->batches[at.batch]->cols[col];
  if (c->offsets)
    __builtin_prefetch(&c->offsets[at.row]);
  else
    __builtin_prefetch(&c->v[at.row]);
}

/* Puts the rows in a new order: order[i] is the row that becomes row i. */
wl_status wl_places_reorder(wl_places *r, const wl_u32 *order, wl_error *err) WL_MUST;

/* Computes the words of all rows: (*out)[word][row]. cols: the column of each key; NULL: key k is
** column k. The caller frees them with wl_places_free, also after a failure. */
wl_status wl_places_words(const wl_places *r, const wl_key_layout *l, const int *cols,
                          wl_u64 ***out, wl_error *err) WL_MUST;
void wl_places_free(wl_u64 **words, int n_words);

/* Copies the first n_cols columns of the first n rows to new batches, in order. */
wl_status wl_places_copy(const wl_places *r, int n_cols, wl_i64 n, wl_collected *to,
                         wl_error *err) WL_MUST;

#endif
