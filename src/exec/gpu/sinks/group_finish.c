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
  if (acc->op == WL_OP__AggSumV) return wl_wide_holds(wl_fsum_anchor_within(acc->bound));
  return a->reg.type <= WL_R_REAL || acc->op == WL_OP__AggMinN || acc->op == WL_OP__AggMaxN;
}

bool wl_gpu_finishes(const wl_program *p) {
  bool can = !p->n_bares && !p->by_first && !p->n_finds;
  for (int k = 0; k < p->n_keys; k++) can &= p->keys[k].reg.type <= WL_R_REAL;
  for (int k = 0; k < p->n_aggs; k++) can &= can_finish(p, &p->aggs[k]);
  return can;
}

/* Device memory of one call. */
typedef struct finishing {
  wl_dgroups *g;
  wl_u64 n;     /* groups */
  wl_u32 *live; /* if the rows are all slots: a bit for each that has a group */
  bool listed;
  wl_u32 *slots[2]; /* if listed, slots[0] has the slots of the groups, in their order */
  wl_u64 *keys[2];
  wl_u32 *keep;
  wl_u64 *places;
  wl_u64 n_slots, n_sorted; /* the sizes of these arrays */
  wl_kfcol *cols;
  size_t n_cols;
} finishing;

/* ---- the order of the groups */

/* Lists the slots that have groups, by address. */
static wl_status list_slots(finishing *x, wl_error *err) {
  wl_dgroups *g = x->g;
  wl_device *d = g->d;
  x->n_slots = g->k.n_slots;
  wl_status rc = wl_dgroups_take(g, x->n_slots * 4, &x->keep, err);
  if (!rc) rc = wl_dgroups_take(g, (x->n_slots + 1) * 8, &x->places, err);
  if (!rc) rc = wl_dgroups_take(g, x->n_slots * 4, &x->slots[0], err);
  wl_kfkeep keep = {g->k.table, x->keep, x->n_slots, g->k.words, g->k.rows_word};
  if (!rc) rc = wl_device_each(d, WL_K_FINISH_KEEP, &keep, sizeof keep, x->n_slots, err);
  if (!rc) rc = d->scan(d, x->keep, x->places, (wl_i64)x->n_slots, err);
  wl_kokept kept = {x->keep, x->places, x->slots[0], x->n_slots};
  if (!rc) rc = wl_device_each(d, WL_K_ORDER_KEPT, &kept, sizeof kept, x->n_slots, err);
  if (!rc) rc = d->copy_out(d, &x->n, x->places + x->n_slots, 8, err);
  x->listed = true;
  return rc;
}

/* Sorts the list by the words of the keys, from the last word to the first. */
static wl_status sort_slots(finishing *x, wl_error *err) {
  wl_dgroups *g = x->g;
  wl_device *d = g->d;
  wl_status rc = WL_OK;
  x->n_sorted = x->n;
  for (int k = 0; k < 2 && !rc; k++) rc = wl_dgroups_take(g, x->n * 8, &x->keys[k], err);
  if (!rc) rc = wl_dgroups_take(g, x->n_slots * 4, &x->slots[1], err);
  for (int w = g->layout.n_words - 1; w >= 0 && !rc; w--) {
    bool one = g->k.mode == WL_KG_HASH;
    int at = 0, n_bits = wl_key_bits(wl_key_layout_used(&g->layout, w) - 1);
    wl_kfwords a = {g->k.table, x->slots[0], x->keys[0], x->n, g->k.words, one ? 0 : 1 + (wl_u32)w,
                    one};
    rc = wl_device_each(d, WL_K_FINISH_WORDS, &a, sizeof a, x->n, err);
    if (!rc) rc = d->sort(d, x->keys, x->slots, (wl_i64)x->n, n_bits, &at, err);
    if (!at) continue;
    wl_u32 *s = x->slots[0];
    x->slots[0] = x->slots[1];
    x->slots[1] = s;
  }
  return rc;
}

/* Whether all slots become rows, with a bit for each that has a group. Groups must be in the order
** of their slots, and slots not too many. Then the host need not wait for the number of groups. */
static bool takes_slots(const wl_dgroups *g) {
  enum { MOST = 1 << 19 };
  return g->k.mode < WL_KG_HASH && g->k.n_slots <= MOST;
}

/* exact: their number must be known. */
static wl_status find_groups(finishing *x, bool exact, wl_rows *out, wl_error *err) {
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
  wl_status rc = list_slots(x, err);
  return rc || x->g->k.mode < WL_KG_HASH || x->n < 2 ? rc : sort_slots(x, err);
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
static void place_key(const wl_dgroups *g, int key, wl_kfcol *c) {
  wl_u32 n_reals = 0;
  c->kind = WL_KF_KEY;
  for (int k = g->layout.n_parts - 1; k >= 0; k--)
    if (g->parts[k].key == key) c->part = (wl_u32)k;
  for (wl_u32 k = 0; k < c->part; k++) n_reals += g->parts[k].kind == WL_PART_REAL;
  if (g->parts[c->part].kind == WL_PART_REAL && g->k.first_word) c->zero = 1 + n_reals;
}

/* The values that a column of these registers can have. */
static wl_domain domain_of(wl_reg reg, const wl_domain *known) {
  wl_domain d = wl_domain_any(reg.type == WL_R_ANY    ? WL_M(WL_T_INT) | WL_M(WL_T_REAL)
                              : reg.type == WL_R_REAL ? WL_M(WL_T_REAL)
                                                      : WL_M(WL_T_INT));
  if (known && known->mask) d = *known;
  return wl_domain_with_null(d, reg.nullable);
}

/* Makes column k of the groups. */
static wl_status make_column(finishing *x, int k, wl_rows *out, wl_error *err) {
  const wl_program *p = x->g->p;
  const wl_agg *a = k < p->n_keys ? NULL : &p->aggs[k - p->n_keys];
  const wl_key *key = a ? NULL : &p->keys[k];
  wl_kfcol *c = &x->cols[k];
  wl_kcol to;
  wl_domain domain = domain_of(a ? a->reg : key->reg, a ? NULL : &key->domain);
  memset(c, 0, sizeof *c);
  if (a) {
    c->kind = kind_of(a->final);
    c->acc = (wl_u32)a->acc;
    c->anchor = wl_fsum_anchor_within(p->accs[a->acc].bound);
  } else {
    place_key(x->g, k, c);
  }
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
  wl_kfcol *cols = NULL;
  wl_u64 *flag = g->counters + C_PACKED, set = 0;
  size_t n_bytes = x->n_cols * sizeof *cols;
  wl_status rc = WL_OK;
  bool wide = false;
  for (int k = 0; k < g->p->n_aggs; k++) wide |= may_be_unsure(g, &g->p->aggs[k]);
  for (int k = 0; k < out->n_cols && !rc; k++) rc = make_column(x, k, out, err);
  if (!rc) rc = wl_dgroups_take(g, n_bytes, &cols, err);
  if (!rc) rc = d->copy_in(d, cols, x->cols, n_bytes, err);
  if (!rc && wide) rc = d->fill(d, flag, 0, 8, err);
  wl_kfinish a = {
      g->k, cols, x->listed ? x->slots[0] : NULL, x->live, flag, x->n, (wl_u32)x->n_cols};
  if (!rc) rc = wl_device_each(d, WL_K_FINISH, &a, sizeof a, x->n, err);
  if (!rc && wide) rc = d->copy_out(d, &set, flag, 8, err);
  wl_dgroups_drop(g, cols, n_bytes);
  *unsure = set != 0;
  return rc;
}

static void close_work(finishing *x) {
  wl_dgroups *g = x->g;
  wl_dgroups_drop(g, x->keep, x->n_slots * 4);
  wl_dgroups_drop(g, x->places, (x->n_slots + 1) * 8);
  for (int k = 0; k < 2; k++) {
    wl_dgroups_drop(g, x->slots[k], x->n_slots * 4);
    wl_dgroups_drop(g, x->keys[k], x->n_sorted * 8);
  }
  wl_mem_free(x->cols);
}

wl_status wl_dgroups_finish(wl_dgroups *g, bool exact, wl_rows *out, bool *done, wl_error *err) {
  const wl_program *p = g->p;
  finishing x = {.g = g, .n_cols = (size_t)(p->n_keys + p->n_aggs)};
  bool unsure = false;
  *done = false;
  memset(out, 0, sizeof *out);
  bool passes = g->k.n_parts > 1 || (g->k.mode == WL_KG_DIRECT && g->total > g->k.n_slots);
  if (passes || g->n_side) return WL_OK;
  g->d->queue = 0;
  x.cols = wl_mem_alloc((x.n_cols + 1) * sizeof *x.cols);
  out->cols = wl_mem_zalloc((x.n_cols + 1) * sizeof *out->cols);
  out->n_cols = (int)x.n_cols;
  wl_status rc = x.cols && out->cols ? find_groups(&x, exact, out, err) : wl_nomem(err);
  if (!rc) rc = make_columns(&x, out, &unsure, err);
  out->n_rows = (wl_i64)x.n;
  close_work(&x);
  *done = !rc && !unsure;
  if (!*done) wl_rows_close(out);
  return rc == WL_FULL ? WL_OK : rc; /* without room for it, the host finishes them */
}
