/*
** See made.h. Values go through the builder that tables without pages to decode go through.
*/
#include "query/made.h"
#include "base/mem.h"
#include "store/dict.h"
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

wl_status wl_making_add(wl_making *m, const wl_batch *b, const wl_reg *regs, int n_given,
                        const bool *needed, wl_error *err) {
  size_t n_bytes = 0;
  for (int k = 0; k < n_given; k++) {
    const wl_dict *d = wl_batch_dict(b, k);
    bool wanted = !needed || needed[k];
    for (wl_i64 i = b->skip; i < b->n_rows; i++) {
      wl_val v = wanted ? wl_batch_value(b, regs, k, i) : wl_null();
      if (d && v.t == WL_T_INT) v = wl_dict_value(d, (wl_i64)v.v);
      wl_status rc = wl_builder_add(m->builders[k], v);
      if (rc)
        return rc == WL_TOOBIG ? wl_not_taken(err, "too much text in the rows of a subquery")
                               : wl_nomem(err);
    }
    n_bytes += wl_builder_bytes(m->builders[k]);
  }
  m->n_rows += b->n_rows - b->skip;
  if (m->left && (wl_i64)n_bytes > m->left)
    return wl_not_taken(err,
                        "the rows of a subquery need more than the %lld bytes that "
                        "host_budget leaves: raise it",
                        m->left);
  return WL_OK;
}

wl_status wl_making_finish(wl_making *m, int threads, wl_made *out, wl_error *err) {
  (void)threads;
  memset(out, 0, sizeof *out);
  out->cols = wl_mem_zalloc(((size_t)m->n_cols + 1) * sizeof *out->cols);
  if (!out->cols) return wl_nomem(err);
  out->n_cols = m->n_cols;
  wl_status rc = WL_OK;
  for (int k = 0; k < m->n_cols && !rc; k++)
    rc = wl_builder_finish(m->builders[k], &out->cols[k], err);
  out->n_rows = m->n_rows;
  out->done = !rc;
  if (rc) wl_made_close(out);
  return rc;
}
