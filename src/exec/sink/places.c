/*
** Rows of collected batches by their places; see places.h.
*/
#include "exec/sink/places.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "exec/cpu/encode.h"
#include <string.h>

enum { STRETCH = 1 << 14 };

/* The places of the rows of one batch. */
typedef struct listing {
  wl_places *r;
  const wl_i64 *first; /* [batch]: its first row */
} listing;

static wl_status list_task(void *arg, int worker, long task, wl_error *err) {
  const listing *l = arg;
  wl_row_place *at = l->r->at + l->first[task];
  wl_i64 n = l->r->batches[task]->n_rows;
  for (wl_i64 j = 0; j < n; j++) at[j] = (wl_row_place){(wl_u32)task, (wl_u32)j};
  return WL_OK;
}

wl_status wl_places_open(wl_places *r, const wl_collected *rows, wl_pool *pool, int threads,
                         wl_stop *stop, wl_error *err) {
  size_t n_batches = 0;
  *r = (wl_places){.pool = pool,
                   .regs = wl_pool_regs(pool),
                   .n = rows->n_rows,
                   .threads = threads,
                   .stop = stop};
  for (const wl_batch *b = rows->first; b; b = b->next) n_batches++;
  r->batches = wl_mem_alloc(n_batches * sizeof *r->batches + 1);
  r->at = wl_mem_alloc((size_t)r->n * sizeof *r->at + 1);
  wl_i64 *first = wl_mem_alloc(n_batches * sizeof *first + 1), n = 0;
  wl_status rc = r->batches && r->at && first ? WL_OK : wl_nomem(err);
  n_batches = 0;
  for (wl_batch *b = rows->first; b && !rc; b = b->next, n_batches++) {
    r->batches[n_batches] = b;
    first[n_batches] = n;
    n += b->n_rows;
  }
  listing l = {r, first};
  wl_tasks tasks = {threads, (long)n_batches, list_task, &l, stop};
  if (!rc) rc = wl_tasks_run(&tasks, NULL, err);
  wl_mem_free(first);
  return rc;
}

void wl_places_close(wl_places *r) {
  wl_mem_free(r->batches);
  wl_mem_free(r->at);
}

/* ---- a new order */

typedef struct reordering {
  const wl_row_place *from;
  wl_row_place *to;
  const wl_u32 *order;
  wl_i64 n;
} reordering;

static wl_status reorder_task(void *arg, int worker, long task, wl_error *err) {
  const reordering *o = arg;
  enum { AHEAD = 32 };
  wl_i64 from = (wl_i64)task * STRETCH, to = from + STRETCH < o->n ? from + STRETCH : o->n;
  for (wl_i64 i = from; i < to; i++) {
    __builtin_prefetch(&o->from[o->order[i + AHEAD < to ? i + AHEAD : i]]);
    o->to[i] = o->from[o->order[i]];
  }
  return WL_OK;
}

wl_status wl_places_reorder(wl_places *r, const wl_u32 *order, wl_error *err) {
  wl_row_place *at = wl_mem_alloc((size_t)r->n * sizeof *at + 1);
  reordering o = {r->at, at, order, r->n};
  wl_tasks tasks = {r->threads, (r->n + STRETCH - 1) / STRETCH, reorder_task, &o, r->stop};
  wl_status rc = at ? wl_tasks_run(&tasks, NULL, err) : wl_nomem(err);
  wl_mem_free(rc ? at : r->at);
  if (!rc) r->at = at;
  return rc;
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
      wl_u8 type = part->kind >= WL_PART_TEXT ? WL_R_ANY : r->regs[col].type;
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

enum { AHEAD = 32 };

/* Whether a value that is no ANY is there. */
static inline bool is_there(const wl_outcol *c, wl_u32 row) {
  return !c->t || c->t[row];
}

static void copy_numbers(const wl_places *r, int k, wl_i64 from, wl_i64 n, wl_outcol *c) {
  const wl_row_place *at = r->at + from;
  for (wl_i64 i = 0; i < n; i++) {
    if (i + AHEAD < n) wl_places_prefetch(r, at[i + AHEAD], k);
    const wl_outcol *q = &r->batches[at[i].batch]->cols[k];
    bool there = is_there(q, at[i].row);
    c->v[i] = there ? q->v[at[i].row] : 0;
    if (c->t) c->t[i] = there;
  }
}

/* Adds up the lengths, makes room once, and copies the bytes. */
static wl_status copy_texts(const wl_places *r, int k, wl_i64 from, wl_i64 n, wl_outcol *c) {
  const wl_row_place *at = r->at + from;
  size_t n_bytes = 0;
  for (wl_i64 i = 0; i < n; i++) {
    if (i + AHEAD < n) wl_places_prefetch(r, at[i + AHEAD], k);
    const wl_outcol *q = &r->batches[at[i].batch]->cols[k];
    bool there = is_there(q, at[i].row);
    if (there) n_bytes += (size_t)(q->offsets[at[i].row + 1] - q->offsets[at[i].row]);
    if (c->t) c->t[i] = there;
  }
  wl_status rc = wl_outcol_room(c, n_bytes);
  if (rc) return rc;
  for (wl_i64 i = 0; i < n; i++) {
    if (i + AHEAD < n) {
      const wl_outcol *q = &r->batches[at[i + AHEAD].batch]->cols[k];
      __builtin_prefetch(q->heap + q->offsets[at[i + AHEAD].row]);
    }
    const wl_outcol *q = &r->batches[at[i].batch]->cols[k];
    wl_i32 first = q->offsets[at[i].row];
    size_t length = is_there(q, at[i].row) ? (size_t)(q->offsets[at[i].row + 1] - first) : 0;
    if (length) memcpy(c->heap + c->n_heap, q->heap + first, length);
    c->n_heap += length;
    c->offsets[i + 1] = (wl_i32)c->n_heap;
  }
  return WL_OK;
}

static wl_status copy_column(const wl_places *r, int k, wl_i64 from, wl_i64 n, wl_outcol *c) {
  if (r->regs[k].type == WL_R_TEXT) return copy_texts(r, k, from, n, c);
  if (r->regs[k].type == WL_R_INT || r->regs[k].type == WL_R_REAL) {
    copy_numbers(r, k, from, n, c);
    return WL_OK;
  }
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
