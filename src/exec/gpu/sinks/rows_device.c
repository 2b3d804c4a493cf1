/*
** The rows of a pipeline become columns that stay on the device, for later pipelines of the
** statement. The host learns how many rows there are and which values, since plans depend on that.
** Called by launch.c, under the device's lock.
*/
#include "exec/gpu/launch.h"
#include "column/dict.h"
#include "exec/gpu/columns/made_column.h"
#include "exec/gpu/kernels/kfargs.h"
#include "base/mem.h"
#include <math.h>
#include <string.h>

typedef struct keeping {
  wl_launch *l;
  wl_u64 n;
  wl_u64 *facts; /* [columns][WL_KM_FACTS] */
  wl_rows *out;
} keeping;

/* ---- which rows can stay */

/* Codes of a dictionary stay codes, unless it has many more texts than there are rows. */
static bool dict_stays(const wl_dict *d, wl_u64 n) {
  enum { SMALL = 1024 };
  return !d || (!d->in_arena && ((wl_u64)d->n <= n || d->n <= SMALL));
}

bool wl_rows_can_stay(const wl_launch *l) {
  const wl_pipe *e = l->e;
  const wl_program *p = e->p;
  bool several = p->also || p->source == WL_SOURCE_UNMATCHED; /* pipelines into this sink */
  bool whole = l->whole && !l->combined && !several;
  bool last = (p->sink == WL_SINK_ROWS && !p->next) || l->ordered;
  const wl_program *end = wl_program_last(p);
  if (!e->made || !whole || !last || l->s->expansion || end->limit >= 0 || end->offset)
    return false;
  for (int k = 0; k < p->n_given; k++)
    if (wl_result_reg(&p->results[k]).type > WL_R_REAL ||
        !dict_stays(p->results[k].dict, l->counters[C_OUT]))
      return false;
  return true;
}

/* ---- columns */

/* What the values of a column can be before they have been looked at. */
static wl_domain any_of(wl_reg reg) {
  wl_domain d = wl_domain_any(WL_M(reg.type == WL_R_REAL ? WL_T_REAL : WL_T_INT));
  return wl_domain_with_null(d, reg.nullable);
}

/* A column of NULLs, for a result that nobody reads. */
static wl_status keep_nothing(keeping *x, int k, wl_error *err) {
  wl_domain null = wl_domain_any(WL_M(WL_T_NULL));
  wl_device *d = x->l->d;
  wl_kcol to;
  wl_status rc = wl_made_column(d, &null, (wl_i64)x->n, NULL, &x->out->cols[k], &to, err);
  if (rc || !x->n) return rc;
  rc = d->fill(d, (void *)(size_t)to.data, 0, x->n * 8, err);
  return rc ? rc : d->fill(d, (void *)(size_t)to.valid, 0, (x->n + 7) / 8, err);
}

static wl_status keep_column(keeping *x, int k, wl_error *err) {
  const wl_kout *o = &x->l->outs[k];
  const wl_result *r = &x->l->e->p->results[k];
  wl_reg reg = wl_result_reg(r);
  wl_domain any = any_of(reg);
  wl_device *d = x->l->d;
  wl_dict *dict = r->dict ? wl_dict_hold((wl_dict *)(size_t)r->dict) : NULL;
  wl_kcol to;
  wl_status rc = wl_made_column(d, &any, (wl_i64)x->n, dict, &x->out->cols[k], &to, err);
  if (rc || !x->n) return rc;
  wl_kmade a = {o->v,
                o->t,
                (wl_u64 *)(size_t)to.data,
                (wl_u32 *)(size_t)to.valid,
                x->facts + k * WL_KM_FACTS,
                x->n,
                reg.type == WL_R_REAL};
  return wl_device_each(d, WL_K_MADE, &a, sizeof a, x->n, err);
}

static wl_u64 unrank(wl_u64 rank, bool real) {
  const wl_u64 top = 1ULL << 63;
  return real && !(rank & top) ? ~rank : rank ^ top;
}

/* The values of a column, as the kernel has found them. */
static wl_domain domain_of(const wl_u64 *facts, wl_u64 n, bool real) {
  bool nulls = facts[WL_KM_VALUES] < n;
  if (!facts[WL_KM_VALUES]) return wl_domain_any(WL_M(WL_T_NULL));
  wl_u64 hi = unrank(facts[WL_KM_GREATEST], real), lo = unrank(~facts[WL_KM_LEAST], real);
  return real ? wl_domain_real(wl_as_f64(lo), wl_as_f64(hi), nulls)
              : wl_domain_int((wl_i64)lo, (wl_i64)hi, nulls);
}

static wl_status keep_columns(keeping *x, wl_error *err) {
  const wl_pipe *e = x->l->e;
  wl_device *d = x->l->d;
  int n_cols = x->out->n_cols;
  size_t n_bytes = (size_t)(n_cols * WL_KM_FACTS) * sizeof *x->facts;
  wl_u64 *facts = wl_mem_alloc(n_bytes);
  wl_status rc = facts ? WL_OK : wl_nomem(err);
  if (!rc) rc = wl_dev_alloc(d, n_bytes, (void **)&x->facts, err);
  if (!rc) rc = d->fill(d, x->facts, 0, n_bytes, err);
  for (int k = 0; k < n_cols && !rc; k++)
    rc = e->needed_results && !e->needed_results[k] ? keep_nothing(x, k, err)
                                                    : keep_column(x, k, err);
  if (!rc) rc = d->copy_out(d, facts, x->facts, n_bytes, err);
  for (int k = 0; k < n_cols && !rc; k++) {
    wl_domain found = domain_of(facts + k * WL_KM_FACTS, x->n,
                                wl_result_reg(&e->p->results[k]).type == WL_R_REAL);
    wl_made_set_domain(x->out->cols[k], &found);
  }
  wl_dev_free(d, x->facts, n_bytes);
  wl_mem_free(facts);
  return rc;
}

wl_status wl_rows_keep(wl_launch *l, wl_error *err) {
  wl_rows *out = l->e->made;
  int n_cols = l->e->p->n_given;
  keeping x = {.l = l, .n = l->counters[C_OUT], .out = out};
  out->cols = wl_mem_zalloc(((size_t)n_cols + 1) * sizeof *out->cols);
  if (!out->cols) return wl_nomem(err);
  out->n_cols = n_cols;
  out->n_rows = (wl_i64)x.n;
  wl_status rc = keep_columns(&x, err);
  if (rc) wl_rows_close(out);
  return rc;
}
