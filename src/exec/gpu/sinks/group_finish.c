/*
** The groups of a device become columns, which stay there; see group_device.h. The kernels are in
** kernels/kfinish.h.
*/
#include "exec/gpu/sinks/group_device_impl.h"
#include "base/mem.h"
#include "column/dict.h"
#include "exec/gpu/kernels/kfargs.h"
#include "exec/gpu/columns/made_column.h"
#include "value/sum/fsum.h"
#include "value/sum/wide.h"
#include <string.h>

/* Whether the kernel can compute this from the words of a group. */
static bool can_finish(const wl_program *p, const wl_agg *a) {
  const wl_acc *acc = &p->accs[a->acc];
  bool codes = acc->op == WL_OP__AggDistinct && wl_adds_codes(p, &p->sets[acc->set]);
  if (acc->op == WL_OP__AggSumV || codes) return wl_wide_holds(wl_fsum_anchor_within(acc->bound));
  bool best = acc->op == WL_OP__AggMinN || acc->op == WL_OP__AggMaxN || wl_keeps_values(acc);
  return a->reg.type <= WL_R_REAL || best;
}

bool wl_gpu_finishes(const wl_program *p) {
  bool can = !p->n_bares && !p->n_finds;
  for (int k = 0; k < p->n_aggs; k++) can &= can_finish(p, &p->aggs[k]);
  return can;
}

/* What one call needs. */
typedef struct finishing {
  wl_dgroups *g;
  wl_u64 n;     /* rows: the groups, or all slots */
  wl_u32 *live; /* if the rows are all slots: a bit for each that has a group */
  wl_dlist list;
  bool listed; /* the groups are in the order of the list */
  wl_kfcol *cols;
  wl_kout *texts; /* [n_cols]: of columns with texts, their values before the column is made */
  size_t n_cols;
} finishing;

/* ---- the groups */

/* Whether all slots become rows, with a bit for each that has a group. Groups must be in the order
** of their slots, and slots not too many. Then the host need not wait for the number of groups. */
static bool takes_slots(const wl_dgroups *g) {
  enum { MOST = 1 << 19 };
  return g->k.mode < WL_KG_HASH && g->k.n_slots <= MOST;
}

/* exact: their number must be known. */
static wl_status find_groups(finishing *x, bool exact, wl_rows *out, wl_stop *stop, wl_error *err) {
  x->n = 1;
  if (!x->g->p->n_keys) return WL_OK;
  if (!exact && takes_slots(x->g)) {
    wl_domain bits = wl_domain_any(WL_M(WL_T_INT));
    wl_kcol to;
    x->n = x->g->k.n_slots;
    wl_status rc =
        wl_made_column(x->g->d, &bits, (wl_i64)(x->n + 63) / 64, NULL, &out->live, &to, err);
    x->live = (wl_u32 *)(size_t)to.data;
    return rc;
  }
  wl_status rc = wl_dgroups_list(x->g, &x->list, stop, err);
  x->n = x->list.n;
  x->listed = true;
  return rc;
}

/* ---- columns */

static wl_u32 kind_of(wl_agg_final f) {
  switch (f) {
  case WL_AGG_COUNT: return WL_KF_COUNT;
  case WL_AGG_SUM: return WL_KF_SUM;
  case WL_AGG_TOTAL: return WL_KF_TOTAL;
  case WL_AGG_AVG: return WL_KF_AVG;
  default: return WL_KF_BEST;
  }
}

/* Where a key is in the words of the groups. */
wl_kfcol wl_dgroups_key_column(const wl_dgroups *g, int key) {
  wl_kfcol c = {.kind = WL_KF_KEY};
  wl_u32 n_reals = 0;
  for (int k = g->layout.n_parts - 1; k >= 0; k--)
    if (g->parts[k].key == key) c.part = (wl_u32)k;
  for (wl_u32 k = 0; k < c.part; k++) n_reals += g->parts[k].kind == WL_PART_REAL;
  if (g->parts[c.part].kind == WL_PART_REAL && g->k.first_word) c.zero = 1 + n_reals;
  if (g->coded.n) c.coder = (wl_u32)(g->coded.look_of_key[key] + 1);
  return c;
}

static wl_status compute(wl_dgroups *g, const wl_kfcol *cols, int n_cols, const wl_u32 *slots,
                         wl_u32 *live, wl_u64 n, wl_u64 *unsure, wl_error *err) {
  wl_device *d = g->d;
  size_t n_bytes = (size_t)n_cols * sizeof *cols;
  wl_kfcol *d_cols = NULL;
  wl_status rc = wl_dgroups_take(g, n_bytes, &d_cols, err);
  if (!rc) rc = d->copy_in(d, d_cols, cols, n_bytes, err);
  wl_kfinish a = {g->k, d_cols, slots, live, unsure, n, (wl_u32)n_cols};
  if (!rc) rc = wl_device_each(d, WL_K_FINISH, &a, sizeof a, n, err);
  wl_dgroups_drop(g, d_cols, n_bytes);
  return rc;
}

wl_status wl_dgroups_compute(wl_dgroups *g, const wl_kfcol *cols, int n_cols, const wl_u32 *slots,
                             wl_u64 n, wl_error *err) {
  return compute(g, cols, n_cols, slots, NULL, n, g->counters + C_PACKED, err);
}

/* The values that a column of these registers can have. */
static wl_domain domain_in(wl_reg reg, const wl_domain *known) {
  wl_domain d = wl_domain_any(reg.type == WL_R_TEXT   ? WL_M(WL_T_TEXT)
                              : reg.type == WL_R_ANY  ? WL_M(WL_T_INT) | WL_M(WL_T_REAL)
                              : reg.type == WL_R_REAL ? WL_M(WL_T_REAL)
                                                      : WL_M(WL_T_INT));
  if (known && known->mask) d = *known;
  return wl_domain_with_null(d, reg.nullable);
}

static const wl_key *key_of(const finishing *x, int k) {
  const wl_program *p = x->g->whole;
  return k < p->n_keys ? &p->keys[k] : NULL;
}
static const wl_agg *agg_of(const finishing *x, int k) {
  const wl_program *p = x->g->whole;
  return k < p->n_keys ? NULL : &p->aggs[k - p->n_keys];
}
static wl_domain domain_of(const finishing *x, int k) {
  const unsigned ANY = WL_M(WL_T_INT) | WL_M(WL_T_REAL) | WL_M(WL_T_TEXT) | WL_M(WL_T_BLOB);
  const wl_key *key = key_of(x, k);
  const wl_agg *a = agg_of(x, k);
  if (key) return domain_in(key->reg, &key->domain);
  wl_domain any = wl_domain_any(ANY);
  bool keeps = a->reg.type == WL_R_ANY && wl_keeps_values(&x->g->whole->accs[a->acc]);
  return domain_in(a->reg, keeps ? &any : NULL);
}

/* Memory for texts, or values that may be texts. When they are computed, they become a column. */
static wl_status open_texts(finishing *x, int k, wl_u8 type, wl_error *err) {
  wl_dgroups *g = x->g;
  wl_kout *o = &x->texts[k];
  o->type = type;
  wl_status rc = wl_dgroups_take(g, x->n * 8, &o->v, err);
  if (!rc) rc = wl_dgroups_take(g, (x->n + 1) * 4, &o->n, err);
  if (!rc) rc = wl_dgroups_take(g, x->n, &o->t, err);
  wl_kfcol *c = &x->cols[k];
  c->v = o->v;
  c->lengths = o->n;
  c->tags = o->t;
  if (rc || !x->live) return rc;
  rc = g->d->fill(g->d, o->n, 0, x->n * 4, err); /* slots without a group are not computed */
  return rc ? rc : g->d->fill(g->d, o->t, 0, x->n, err);
}

/* Opens column k of the groups. */
static wl_status open_column(finishing *x, int k, wl_rows *out, wl_error *err) {
  const wl_key *key = key_of(x, k);
  const wl_agg *a = agg_of(x, k);
  wl_kfcol *c = &x->cols[k];
  wl_kcol to;
  wl_domain domain = domain_of(x, k);
  wl_reg reg = key ? key->reg : a->reg;
  if (key) {
    *c = wl_dgroups_key_column(x->g, k);
  } else {
    *c = (wl_kfcol){.kind = kind_of(a->final),
                    .acc = (wl_u32)a->acc,
                    .anchor = wl_fsum_anchor_within(x->g->p->accs[a->acc].bound)};
  }
  if (domain.mask & (WL_M(WL_T_TEXT) | WL_M(WL_T_BLOB))) return open_texts(x, k, reg.type, err);
  wl_status rc = wl_made_column(x->g->d, &domain, (wl_i64)x->n, NULL, &out->cols[k], &to, err);
  c->v = (wl_u64 *)(size_t)to.data;
  c->valid = (wl_u32 *)(size_t)to.valid;
  c->tags = (wl_u8 *)(size_t)to.tags;
  return rc;
}

/* Whether the device finds out only at the end that the host must compute this. */
static bool may_be_unsure(const wl_dgroups *g, const wl_agg *a) {
  wl_u32 op = g->k.accs[a->acc].op;
  if (op == WL_OP__AggMinN || op == WL_OP__AggMaxN) return true;
  return op == WL_OP__AggSumV || (op == WL_OP__AggSumX && a->final == WL_AGG_SUM);
}

static wl_status make_columns(finishing *x, wl_rows *out, bool *unsure, wl_error *err) {
  wl_dgroups *g = x->g;
  wl_device *d = g->d;
  wl_u64 *flag = g->counters + C_PACKED, set = 0;
  int n = out->n_cols;
  wl_status rc = WL_OK;
  bool wide = false;
  for (int k = 0; k < g->p->n_aggs; k++) wide |= may_be_unsure(g, &g->p->aggs[k]);
  for (int k = 0; k < n && !rc; k++) rc = open_column(x, k, out, err);
  if (!rc && wide) rc = d->fill(d, flag, 0, 8, err);
  if (!rc)
    rc = compute(g, x->cols, n, x->listed ? x->list.slots[0] : NULL, x->live, x->n, flag, err);
  if (!rc && wide) rc = d->copy_out(d, &set, flag, 8, err);
  *unsure = set != 0;
  for (int k = 0; k < n && !rc && !*unsure; k++) {
    wl_domain domain = domain_of(x, k);
    if (x->texts[k].n)
      rc = wl_made_texts(d, &domain, (wl_i64)x->n, &x->texts[k], &out->cols[k], err);
  }
  return rc;
}

static wl_status open_work(finishing *x, wl_rows *out, wl_error *err) {
  x->cols = wl_mem_zalloc((x->n_cols + 1) * sizeof *x->cols);
  x->texts = wl_mem_zalloc((x->n_cols + 1) * sizeof *x->texts);
  out->cols = wl_mem_zalloc((x->n_cols + 1) * sizeof *out->cols);
  out->n_cols = (int)x->n_cols;
  return x->cols && x->texts && out->cols ? WL_OK : wl_nomem(err);
}

static void close_work(finishing *x) {
  wl_dgroups *g = x->g;
  for (size_t k = 0; k < x->n_cols && x->texts; k++) {
    wl_dgroups_drop(g, x->texts[k].v, x->n * 8);
    wl_dgroups_drop(g, x->texts[k].n, (x->n + 1) * 4);
    wl_dgroups_drop(g, x->texts[k].t, x->n);
  }
  wl_dgroups_list_close(g, &x->list);
  wl_mem_free(x->cols);
  wl_mem_free(x->texts);
}

wl_status wl_dgroups_finish(wl_dgroups *g, bool exact, wl_rows *out, bool *done, wl_stop *stop,
                            wl_error *err) {
  const wl_program *p = g->whole;
  finishing x = {.g = g, .n_cols = (size_t)(p->n_keys + p->n_aggs)};
  bool unsure = false;
  *done = false;
  memset(out, 0, sizeof *out);
  bool passes = g->k.n_parts > 1 || (g->k.mode == WL_KG_DIRECT && g->total > g->k.n_slots);
  if (passes || g->n_side) return WL_OK;
  g->d->queue = 0;
  wl_status rc = open_work(&x, out, err);
  if (!rc) rc = find_groups(&x, exact, out, stop, err);
  if (!rc) rc = make_columns(&x, out, &unsure, err);
  out->n_rows = (wl_i64)x.n;
  close_work(&x);
  *done = !rc && !unsure;
  if (!*done) wl_rows_close(out);
  return rc == WL_FULL ? WL_OK : rc; /* without room for it, the host finishes them */
}
