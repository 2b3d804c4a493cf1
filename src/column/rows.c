/*
** See rows.h. A column is built by the same builder as columns of tables whose pages cannot be
** decoded.
**
** Invariants:
** 1. A column with a dictionary has been built from codes only, all of that dictionary.
*/
#include "column/rows.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "column/dict.h"
#include <string.h>

typedef struct maker_column {
  wl_builder *builder;
  wl_dict *dict; /* held; the builder has codes of it. NULL: values */
} maker_column;

struct wl_rows_maker {
  int n_cols;
  maker_column *cols;
  wl_i64 n_rows, left;
};

void wl_rows_close(wl_rows *r) {
  for (int k = 0; k < r->n_cols && r->cols; k++) wl_column_drop(r->cols[k]);
  wl_column_drop(r->live);
  wl_mem_free(r->cols);
  memset(r, 0, sizeof *r);
}

wl_status wl_rows_maker_open(int n_cols, wl_i64 left, wl_rows_maker **out, wl_error *err) {
  wl_rows_maker *m = *out = wl_mem_zalloc(sizeof *m);
  if (!m) return wl_nomem(err);
  m->n_cols = n_cols;
  m->left = left;
  m->cols = wl_mem_zalloc(((size_t)n_cols + 1) * sizeof *m->cols);
  wl_status rc = m->cols ? WL_OK : wl_nomem(err);
  for (int k = 0; k < n_cols && !rc; k++) rc = wl_builder_open(&m->cols[k].builder, err);
  if (rc) {
    wl_rows_maker_close(m);
    *out = NULL;
  }
  return rc;
}

void wl_rows_maker_close(wl_rows_maker *m) {
  if (!m) return;
  for (int k = 0; k < m->n_cols && m->cols; k++) {
    wl_builder_close(m->cols[k].builder);
    wl_dict_free(m->cols[k].dict);
  }
  wl_mem_free(m->cols);
  wl_mem_free(m);
}

wl_i64 wl_rows_maker_rows(const wl_rows_maker *m) {
  return m->n_rows;
}
wl_i64 wl_rows_maker_bytes(const wl_rows_maker *m) {
  size_t n = 0;
  for (int k = 0; k < m->n_cols; k++) n += wl_builder_bytes(m->cols[k].builder);
  return (wl_i64)n;
}

/* ---- adding batches */

/* Replaces the codes so far by their texts. */
static wl_status decode(maker_column *c, wl_error *err) {
  wl_column *codes = NULL;
  wl_status rc = wl_builder_finish(c->builder, &codes, err);
  for (wl_i64 i = 0; !rc && i < codes->n_rows; i++) {
    wl_val v = wl_column_value(codes, i);
    rc = wl_builder_add(c->builder, v.t == WL_T_INT ? wl_dict_value(c->dict, (wl_i64)v.v) : v);
  }
  wl_column_drop(codes);
  wl_dict_free(c->dict);
  c->dict = NULL;
  return rc;
}

/* A batch to add. Each column has its own builder, so columns are added in parallel. */
typedef struct adding {
  wl_rows_maker *m;
  const wl_batch *b;
  const wl_reg *regs;
  const bool *needed;
} adding;

static wl_status add_column(const adding *a, int k, wl_error *err) {
  const wl_batch *b = a->b;
  maker_column *to = &a->m->cols[k];
  bool wanted = !a->needed || a->needed[k];
  const wl_dict *d = wanted ? wl_batch_dict(b, k) : NULL;
  const wl_outcol *c = &b->cols[k];
  wl_i64 n = b->n_rows - b->skip;
  wl_u8 type = a->regs[k].type;
  if (d && a->m->n_rows == 0 && !d->in_arena) to->dict = wl_dict_hold((wl_dict *)(size_t)d);
  if (to->dict && d != to->dict) {
    wl_status rc = decode(to, err);
    if (rc) return rc;
  }
  if (wanted && d == to->dict && (type == WL_R_INT || type == WL_R_REAL))
    return wl_builder_add_numbers(to->builder, type == WL_R_INT ? WL_T_INT : WL_T_REAL,
                                  c->v + b->skip, c->t ? c->t + b->skip : NULL, n);
  for (wl_i64 i = b->skip; i < b->n_rows; i++) {
    wl_val v = wanted ? wl_batch_value(b, a->regs, k, i) : wl_null();
    if (d && v.t == WL_T_INT) v = wl_dict_value(d, (wl_i64)v.v);
    wl_status rc = wl_builder_add(to->builder, v);
    if (rc) return rc;
  }
  return WL_OK;
}

/* The status and message of a failure to store rows. */
static wl_status failure(wl_status rc, wl_error *err) {
  if (rc == WL_TOOBIG) return wl_not_taken(err, "too much text in the rows of a subquery");
  return rc ? wl_nomem(err) : WL_OK;
}

static wl_status add_task(void *arg, int worker, long k, wl_error *err) {
  (void)worker;
  return failure(add_column(arg, (int)k, err), err);
}

wl_status wl_rows_maker_add(wl_rows_maker *m, const wl_batch *b, const wl_reg *regs,
                            const bool *needed, int threads, wl_error *err) {
  enum { FEW = 4096 };
  adding a = {m, b, regs, needed};
  if (b->n_rows == b->skip) return WL_OK;
  wl_tasks t = {b->n_rows < FEW ? 1 : threads, m->n_cols, add_task, &a, NULL};
  wl_status rc = wl_tasks_run(&t, NULL, err);
  if (rc) return rc;
  m->n_rows += b->n_rows - b->skip;
  if (m->left && wl_rows_maker_bytes(m) > m->left)
    return wl_not_taken(err,
                        "the rows of a subquery need more than the %lld bytes that "
                        "host_budget leaves: raise host_budget",
                        m->left);
  return WL_OK;
}

/* ---- finishing */

typedef struct finishing {
  wl_rows_maker *m;
  wl_rows *out;
} finishing;

/* Work that is done for every entry of the dictionary must stay less than that for the rows. */
static bool dict_pays(const wl_dict *d, wl_i64 n_rows) {
  return d->n <= n_rows || d->n <= 1024;
}

/* Makes a column of integers one of codes. The column takes over the dictionary. */
static void name_codes(wl_column *c, wl_dict *d) {
  c->dict = d;
  c->domain.mask = wl_mask_of_coded(c->domain.mask);
  c->domain.lo = wl_domain_nothing.lo; /* only the segments have ranges of codes */
  c->domain.hi = wl_domain_nothing.hi;
  for (int t = 0; t < c->n_tablets; t++)
    c->segments[t].domain.mask = wl_mask_of_coded(c->segments[t].domain.mask);
  c->n_bytes += (size_t)d->n * sizeof *d->places + d->n_heap;
}

static wl_status finish_task(void *arg, int worker, long k, wl_error *err) {
  finishing *f = arg;
  maker_column *c = &f->m->cols[k];
  (void)worker;
  wl_status rc = WL_OK;
  if (c->dict && !dict_pays(c->dict, f->m->n_rows)) rc = decode(c, err);
  if (!rc) rc = wl_builder_finish(c->builder, &f->out->cols[k], err);
  if (rc || !c->dict) return failure(rc, err);
  wl_column *col = f->out->cols[k];
  if (!(col->domain.mask & WL_M(WL_T_INT))) return WL_OK; /* no row has a text */
  name_codes(col, c->dict);
  c->dict = NULL;
  return WL_OK;
}

wl_status wl_rows_maker_finish(wl_rows_maker *m, int threads, wl_rows *out, wl_error *err) {
  enum { FEW = 4096 };
  memset(out, 0, sizeof *out);
  finishing f = {m, out};
  wl_tasks t = {m->n_rows < FEW ? 1 : threads, m->n_cols, finish_task, &f, NULL};
  out->cols = wl_mem_zalloc(((size_t)m->n_cols + 1) * sizeof *out->cols);
  out->n_cols = m->n_cols;
  wl_status rc = out->cols ? wl_tasks_run(&t, NULL, err) : wl_nomem(err);
  out->n_rows = m->n_rows;
  if (rc) wl_rows_close(out);
  return rc;
}
