/*
** Rows of collected batches by their places; see places.h.
*/
#include "exec/sink/places.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "exec/cpu/encode.h"

enum { STRETCH = 1 << 14 };

wl_status wl_places_open(wl_places *r, const wl_collected *rows, wl_pool *pool, int threads,
                         wl_stop *stop, wl_error *err) {
  int n_batches = 0;
  wl_i64 i = 0;
  *r = (wl_places){.pool = pool,
                   .regs = wl_pool_regs(pool),
                   .n = rows->n_rows,
                   .threads = threads,
                   .stop = stop};
  for (const wl_batch *b = rows->first; b; b = b->next) n_batches++;
  r->batches = wl_mem_alloc((size_t)n_batches * sizeof *r->batches + 1);
  r->at = wl_mem_alloc((size_t)r->n * sizeof *r->at + 1);
  if (!r->batches || !r->at) return wl_nomem(err);
  n_batches = 0;
  for (wl_batch *b = rows->first; b; b = b->next, n_batches++) {
    wl_status rc = wl_stop_ask(stop, err);
    if (rc) return rc;
    r->batches[n_batches] = b;
    for (wl_i64 j = 0; j < b->n_rows; j++)
      r->at[i++] = (wl_row_place){(wl_u32)n_batches, (wl_u32)j};
  }
  return WL_OK;
}

void wl_places_close(wl_places *r) {
  wl_mem_free(r->batches);
  wl_mem_free(r->at);
}

/* ---- keys as words */

typedef struct encoding {
  const wl_places *r;
  const wl_key_layout *layout;
  const int *cols;
  wl_u64 **words;
} encoding;

/* Encodes the keys of a range of rows. */
static wl_status encode_task(void *arg, int worker, long task, wl_error *err) {
  const encoding *e = arg;
  const wl_places *r = e->r;
  wl_i64 from = (wl_i64)task * STRETCH, to = from + STRETCH < r->n ? from + STRETCH : r->n;
  wl_u64 v[WL_VECTOR];
  wl_u32 len[WL_VECTOR];
  wl_u8 t[WL_VECTOR];
  for (wl_i64 at = from; at < to; at += WL_VECTOR) {
    int n = to - at < WL_VECTOR ? (int)(to - at) : WL_VECTOR;
    for (int k = 0; k < e->layout->n_parts; k++) {
      const wl_key_part *part = &e->layout->parts[k];
      int col = e->cols ? e->cols[part->key] : part->key;
      for (int i = 0; i < n; i++) {
        wl_val x = wl_places_value(r, r->at[at + i], col);
        v[i] = x.t == WL_T_NULL ? 0 : x.v;
        len[i] = x.n;
        t[i] = x.t;
      }
      /* the types serve as tags of ANY, and as NULL or not of numbers */
      wl_u8 type = part->kind == WL_PART_PREFIX ? WL_R_ANY : r->regs[col].type;
      wl_vec q = {.type = type, .stride = 1, .v = v, .n = len, .t = part->null ? t : NULL};
      bool first = k == 0 || part[-1].word != part->word;
      wl_encode_part(part, first, &q, n, e->words[part->word] + at);
    }
  }
  return WL_OK;
}

void wl_places_free(wl_u64 **words, int n_words) {
  for (int k = 0; words && k < n_words; k++) wl_mem_free(words[k]);
  wl_mem_free(words);
}

wl_status wl_places_words(const wl_places *r, const wl_key_layout *l, const int *cols,
                          wl_u64 ***out, wl_error *err) {
  wl_u64 **words = *out = wl_mem_zalloc(((size_t)l->n_words + 1) * sizeof *words);
  for (int k = 0; k < l->n_words && words; k++)
    if (!(words[k] = wl_mem_alloc((size_t)r->n * sizeof **words + 1))) return wl_nomem(err);
  if (!words) return wl_nomem(err);
  encoding e = {r, l, cols, words};
  wl_tasks tasks = {r->threads, (r->n + STRETCH - 1) / STRETCH, encode_task, &e, r->stop};
  return wl_tasks_run(&tasks, NULL, err);
}

/* ---- copying the rows in their new order */

typedef struct copying {
  const wl_places *r;
  int n_cols;
  wl_i64 n;
  wl_batch **batches;
} copying;

static wl_status copy_column(const wl_places *r, int k, wl_i64 from, wl_i64 n, wl_outcol *c) {
  for (wl_i64 i = 0; i < n; i++) {
    wl_status rc = wl_outcol_put(c, r->regs[k], i, wl_places_value(r, r->at[from + i], k));
    if (rc) return rc;
  }
  return WL_OK;
}

static wl_status copy_task(void *arg, int worker, long task, wl_error *err) {
  copying *b = arg;
  wl_i64 room = wl_pool_rows(b->r->pool), at = room * task;
  wl_status rc = wl_batch_take(b->r->pool, &b->batches[task], err);
  if (!rc) b->batches[task]->n_rows = b->n - at < room ? b->n - at : room;
  for (int k = 0; k < b->n_cols && !rc; k++) {
    rc = copy_column(b->r, k, at, b->batches[task]->n_rows, &b->batches[task]->cols[k]);
    if (rc) rc = rc == WL_TOOBIG ? wl_fail(err, rc, "string or blob too big") : wl_nomem(err);
  }
  return rc;
}

wl_status wl_places_copy(const wl_places *r, int n_cols, wl_i64 n, wl_collected *to,
                         wl_error *err) {
  wl_i64 room = wl_pool_rows(r->pool);
  size_t tasks = (size_t)((n + room - 1) / room);
  copying b = {.r = r, .n_cols = n_cols, .n = n};
  b.batches = wl_mem_zalloc((tasks + 1) * sizeof *b.batches);
  wl_tasks todo = {r->threads, (long)tasks, copy_task, &b, r->stop};
  wl_status rc = b.batches ? wl_tasks_run(&todo, NULL, err) : wl_nomem(err);
  for (size_t t = 0; t < tasks && b.batches; t++) {
    if (!b.batches[t]) continue;
    if (rc)
      wl_batch_give(b.batches[t]);
    else
      rc = wl_collected_add(to, b.batches[t], err);
  }
  wl_mem_free(b.batches);
  return rc;
}
