/*
** See derived.h. It uses the same builder as tables whose pages cannot be decoded.
*/
#include "exec/derived.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "column/dict.h"
#include <string.h>

struct wl_making {
  int n_cols;
  wl_builder **builders;
  wl_i64 n_rows, left;
};

void wl_made_close(wl_made *m) {
  for (int k = 0; k < m->n_cols && m->cols; k++) wl_column_drop(m->cols[k]);
  wl_mem_free(m->cols);
  memset(m, 0, sizeof *m);
}

wl_status wl_making_open(int n_cols, wl_i64 left, wl_making **out, wl_error *err) {
  wl_making *m = *out = wl_mem_zalloc(sizeof *m);
  if (!m) return wl_nomem(err);
  m->n_cols = n_cols;
  m->left = left;
  m->builders = wl_mem_zalloc(((size_t)n_cols + 1) * sizeof *m->builders);
  wl_status rc = m->builders ? WL_OK : wl_nomem(err);
  for (int k = 0; k < n_cols && !rc; k++) rc = wl_builder_open(&m->builders[k], err);
  if (rc) {
    wl_making_close(m);
    *out = NULL;
  }
  return rc;
}

void wl_making_close(wl_making *m) {
  if (!m) return;
  for (int k = 0; k < m->n_cols && m->builders; k++) wl_builder_close(m->builders[k]);
  wl_mem_free(m->builders);
  wl_mem_free(m);
}

wl_i64 wl_making_rows(const wl_making *m) {
  return m->n_rows;
}
wl_i64 wl_making_bytes(const wl_making *m) {
  size_t n = 0;
  for (int k = 0; k < m->n_cols; k++) n += wl_builder_bytes(m->builders[k]);
  return (wl_i64)n;
}

/* A batch to add. Each column has its own builder, so columns are added in parallel. */
typedef struct adding {
  wl_making *m;
  const wl_batch *b;
  const wl_reg *regs;
  const bool *needed;
} adding;

static wl_status add_column(wl_making *m, const wl_batch *b, const wl_reg *regs, int k,
                            bool wanted) {
  const wl_dict *d = wl_batch_dict(b, k);
  const wl_outcol *c = &b->cols[k];
  wl_i64 n = b->n_rows - b->skip;
  wl_u8 type = regs[k].type;
  if (wanted && !d && (type == WL_R_INT || type == WL_R_REAL))
    return wl_builder_add_numbers(m->builders[k], type == WL_R_INT ? WL_T_INT : WL_T_REAL,
                                  c->v + b->skip, c->t ? c->t + b->skip : NULL, n);
  for (wl_i64 i = b->skip; i < b->n_rows; i++) {
    wl_val v = wanted ? wl_batch_value(b, regs, k, i) : wl_null();
    if (d && v.t == WL_T_INT) v = wl_dict_value(d, (wl_i64)v.v);
    wl_status rc = wl_builder_add(m->builders[k], v);
    if (rc) return rc;
  }
  return WL_OK;
}

static wl_status add_task(void *arg, int worker, long k, wl_error *err) {
  adding *a = arg;
  (void)worker;
  wl_status rc = add_column(a->m, a->b, a->regs, (int)k, !a->needed || a->needed[k]);
  if (rc == WL_TOOBIG) return wl_not_taken(err, "too much text in the rows of a subquery");
  return rc ? wl_nomem(err) : WL_OK;
}

wl_status wl_making_add(wl_making *m, const wl_batch *b, const wl_reg *regs, const bool *needed,
                        int threads, wl_error *err) {
  enum { FEW = 4096 };
  adding a = {m, b, regs, needed};
  wl_tasks t = {b->n_rows < FEW ? 1 : threads, m->n_cols, add_task, &a, NULL};
  wl_status rc = wl_tasks_run(&t, NULL, err);
  if (rc) return rc;
  m->n_rows += b->n_rows - b->skip;
  if (m->left && wl_making_bytes(m) > m->left)
    return wl_not_taken(err,
                        "the rows of a subquery need more than the %lld bytes that "
                        "host_budget leaves: raise host_budget",
                        m->left);
  return WL_OK;
}

typedef struct finishing {
  wl_making *m;
  wl_made *out;
} finishing;

static wl_status finish_task(void *arg, int worker, long k, wl_error *err) {
  finishing *f = arg;
  (void)worker;
  return wl_builder_finish(f->m->builders[k], &f->out->cols[k], err);
}

wl_status wl_making_finish(wl_making *m, int threads, wl_made *out, wl_error *err) {
  enum { FEW = 4096 };
  memset(out, 0, sizeof *out);
  size_t n = (size_t)m->n_cols + 1;
  finishing f = {m, out};
  wl_tasks t = {m->n_rows < FEW ? 1 : threads, m->n_cols, finish_task, &f, NULL};
  out->cols = wl_mem_zalloc(n * sizeof *out->cols);
  out->n_cols = m->n_cols;
  wl_status rc = out->cols ? wl_tasks_run(&t, NULL, err) : wl_nomem(err);
  out->n_rows = m->n_rows;
  out->done = !rc;
  if (rc) wl_made_close(out);
  return rc;
}
