/*
** Batches and their pool; see batch.h. A pool lives on after its run while a batch is in use.
*/
#include "column/batch.h"
#include "base/mem.h"
#include "column/dict.h"
#include <assert.h>
#include <pthread.h>
#include <string.h>

enum { MAX_IDLE = 64 };

struct wl_pool {
  pthread_mutex_t lock;
  int refs; /* the owner, and every batch in use */
  wl_batch *idle;
  int n_idle;
  int n_cols;
  wl_reg *regs;
  const wl_dict **dicts; /* of each column, or NULL */
  size_t max_rows;
};

wl_status wl_pool_open(const wl_reg *regs, const wl_dict *const *dicts, int n_cols, wl_i64 max_rows,
                       wl_pool **out, wl_error *err) {
  assert(max_rows <= WL_TABLET_ROWS);
  wl_pool *q = *out = wl_mem_zalloc(sizeof *q);
  if (!q) return wl_nomem(err);
  q->regs = wl_mem_zalloc((size_t)n_cols * sizeof *q->regs);
  q->dicts = wl_mem_zalloc((size_t)n_cols * sizeof *q->dicts);
  if (!q->regs || !q->dicts) {
    wl_mem_free(q->regs);
    wl_mem_free(q->dicts);
    wl_mem_free(q);
    *out = NULL;
    return wl_nomem(err);
  }
  pthread_mutex_init(&q->lock, NULL);
  q->refs = 1;
  q->n_cols = n_cols;
  q->max_rows = (size_t)(max_rows > 0 ? max_rows : 1);
  for (int k = 0; k < n_cols; k++) {
    q->regs[k] = regs[k];
    q->dicts[k] = dicts[k];
  }
  return WL_OK;
}

wl_i64 wl_pool_rows(const wl_pool *p) {
  return (wl_i64)p->max_rows;
}

const struct wl_dict *wl_batch_dict(const wl_batch *b, int col) {
  return b->pool->dicts[col];
}

const wl_reg *wl_pool_regs(const wl_pool *p) {
  return p->regs;
}

static void batch_free(wl_batch *b) {
  for (int k = 0; b->cols && k < b->n_cols; k++) {
    wl_mem_free(b->cols[k].v);
    wl_mem_free(b->cols[k].t);
    wl_mem_free(b->cols[k].n);
    wl_mem_free(b->cols[k].offsets);
    wl_mem_free(b->cols[k].heap);
  }
  wl_mem_free(b->cols);
  wl_mem_free(b);
}

/* Drops one reference; the last one frees everything. */
static void pool_unref(wl_pool *p) {
  pthread_mutex_lock(&p->lock);
  int left = --p->refs;
  pthread_mutex_unlock(&p->lock);
  if (left) return;
  while (p->idle) {
    wl_batch *b = p->idle;
    p->idle = b->next;
    batch_free(b);
  }
  pthread_mutex_destroy(&p->lock);
  wl_mem_free(p->regs);
  wl_mem_free(p->dicts);
  wl_mem_free(p);
}

void wl_pool_close(wl_pool *p) {
  if (p) pool_unref(p);
}

static wl_status batch_new(wl_pool *p, wl_batch **out, wl_error *err) {
  wl_batch *b = *out = wl_mem_zalloc(sizeof *b);
  if (!b) return wl_nomem(err);
  b->n_cols = p->n_cols;
  b->cols = wl_mem_zalloc((size_t)p->n_cols * sizeof *b->cols);
  bool ok = b->cols != NULL;
  size_t n = p->max_rows;
  for (int k = 0; ok && k < p->n_cols; k++) {
    wl_outcol *c = &b->cols[k];
    wl_reg r = p->regs[k];
    if (r.type != WL_R_TEXT) ok &= (c->v = wl_mem_alloc(n * 8)) != NULL;
    if (r.type == WL_R_TEXT) ok &= (c->offsets = wl_mem_alloc((n + 1) * 4)) != NULL;
    if (r.type == WL_R_ANY) ok &= (c->n = wl_mem_alloc(n * 4)) != NULL;
    if (r.nullable || r.type == WL_R_ANY) ok &= (c->t = wl_mem_alloc(n)) != NULL;
  }
  if (ok) return WL_OK;
  batch_free(b);
  *out = NULL;
  return wl_nomem(err);
}

wl_status wl_batch_take(wl_pool *p, wl_batch **out, wl_error *err) {
  pthread_mutex_lock(&p->lock);
  wl_batch *b = p->idle;
  if (b) {
    p->idle = b->next;
    p->n_idle--;
  }
  p->refs++;
  pthread_mutex_unlock(&p->lock);
  wl_status rc = WL_OK;
  if (!b) rc = batch_new(p, &b, err);
  if (rc) {
    pool_unref(p);
    return rc;
  }
  b->pool = p;
  b->next = NULL;
  b->n_rows = b->skip = 0;
  for (int k = 0; k < b->n_cols; k++) {
    b->cols[k].n_heap = 0;
    if (b->cols[k].offsets) b->cols[k].offsets[0] = 0;
  }
  *out = b;
  return WL_OK;
}

wl_status wl_batch_borrow(wl_pool *p, void *owner, void (*release)(void *), wl_batch **out,
                          wl_error *err) {
  wl_batch *b = *out = wl_mem_zalloc(sizeof *b);
  if (b) b->cols = wl_mem_zalloc((size_t)p->n_cols * sizeof *b->cols);
  if (!b || !b->cols) {
    wl_mem_free(b);
    *out = NULL;
    return wl_nomem(err);
  }
  pthread_mutex_lock(&p->lock);
  p->refs++;
  pthread_mutex_unlock(&p->lock);
  b->pool = p;
  b->n_cols = p->n_cols;
  b->owner = owner;
  b->release = release;
  return WL_OK;
}

void wl_batch_give(wl_batch *b) {
  if (!b) return;
  wl_pool *p = b->pool;
  if (b->release) {
    /* the columns belong to somebody else, so the batch cannot be used again */
    b->release(b->owner);
    wl_mem_free(b->cols);
    wl_mem_free(b);
    pool_unref(p);
    return;
  }
  pthread_mutex_lock(&p->lock);
  bool keep = p->n_idle < MAX_IDLE;
  if (keep) {
    b->next = p->idle;
    p->idle = b;
    p->n_idle++;
  }
  pthread_mutex_unlock(&p->lock);
  if (!keep) batch_free(b);
  pool_unref(p);
}

wl_status wl_outcol_room(wl_outcol *c, size_t n) {
  if (c->n_heap + n <= c->size_heap) return WL_OK;
  if (c->n_heap + n > 0x7fffffff) return WL_TOOBIG;
  size_t size = c->size_heap ? c->size_heap * 2 : 65536;
  while (size < c->n_heap + n) size *= 2;
  wl_u8 *p = wl_mem_realloc(c->heap, c->n_heap, size);
  if (!p) return WL_NOMEM;
  c->heap = p;
  c->size_heap = size;
  return WL_OK;
}

wl_val wl_batch_value(const wl_batch *b, const wl_reg *regs, int col, wl_i64 i) {
  const wl_outcol *c = &b->cols[col];
  switch (regs[col].type) {
  case WL_R_INT: return c->t && !c->t[i] ? wl_null() : wl_val_make(WL_T_INT, c->v[i], 0);
  case WL_R_REAL: return c->t && !c->t[i] ? wl_null() : wl_val_make(WL_T_REAL, c->v[i], 0);
  case WL_R_TEXT:
    if (c->t && !c->t[i]) return wl_null();
    return wl_text(c->heap + c->offsets[i], (wl_u32)(c->offsets[i + 1] - c->offsets[i]));
  default:
    if (c->t[i] >= WL_T_TEXT)
      return wl_val_make(c->t[i], (wl_u64)(size_t)(c->heap + c->v[i]), c->n[i]);
    return wl_val_make(c->t[i], c->v[i], 0);
  }
}
