/*
** Aggregates in the CPU engine: how an Agg opcode adds a vector, for the whole table or for groups.
** See exec_impl.h.
*/
#include "exec/cpu/exec_impl.h"

/* ---- sums and extremes of valid rows */

static WL_CLONES wl_i64 sum_i64(const wl_i64 *a, int n) {
  wl_i64 s = 0;
  for (int i = 0; i < n; i++) s += a[i];
  return s;
}
static WL_CLONES wl_i64 sum_u8(const wl_u8 *a, int n) {
  wl_i64 s = 0;
  for (int i = 0; i < n; i++) s += a[i];
  return s;
}
static WL_CLONES wl_i64 least_i64(const wl_i64 *a, int n) {
  wl_i64 m = a[0];
  for (int i = 1; i < n; i++) m = a[i] < m ? a[i] : m;
  return m;
}
static WL_CLONES wl_i64 most_i64(const wl_i64 *a, int n) {
  wl_i64 m = a[0];
  for (int i = 1; i < n; i++) m = a[i] > m ? a[i] : m;
  return m;
}

/* ---- aggregates */

/* Returns the values that are not NULL. If there are NULLs, packs the others into room. */
static const wl_u64 *packed(const plane *a, int n, wl_u64 *room, int *n_out) {
  *n_out = n;
  if (!a->stride) {
    if (a->t) n = *n_out = 0;
    for (int i = 0; i < n; i++) room[i] = a->v[0];
    return room;
  }
  if (!a->t) return a->v;
  int k = 0;
  for (int i = 0; i < n; i++) {
    room[k] = a->v[i];
    k += a->t[i];
  }
  *n_out = k;
  return room;
}

/* Join rows have no defined order, so low and high must hold for every order. */
static void sum_watched(wl_acc_state *s, wl_i64 v, bool joined) {
  s->sum += v;
  s->unordered = joined;
  if (joined) {
    if (v < 0) s->low += v;
    if (v > 0) s->high += v;
    return;
  }
  if (s->sum < s->low) s->low = s->sum;
  if (s->sum > s->high) s->high = s->sum;
}

static wl_status aggregate(wl_exec *x, const wl_instr *in, wl_acc_state *s, int n) {
  if (in->op == WL_OP__AggRows) { /* it has no operand, and reading one would load a column */
    s->count += n;
    return WL_OK;
  }
  const plane *a = wl_exec_operand(x, in->a);
  bool joined = x->p->n_joins > 0;
  wl_status rc = WL_OK;
  int k;
  switch (in->op) {
  case WL_OP__AggCount:
    if (a->stride && a->t && a->type != WL_R_ANY && a->type != WL_R_TRUTH)
      s->count += sum_u8(a->t, n);
    else
      for (int i = 0; i < n; i++) s->count += get(a, i).t != WL_T_NULL;
    return WL_OK;
  case WL_OP__AggSumV:
    for (int i = 0; i < n; i++) {
      wl_val v = get(a, i);
      if (v.t == WL_T_NULL) continue;
      s->count++;
      if (v.t == WL_T_REAL) {
        s->seen_real = true;
        wl_fsum_add(&s->reals, wl_as_f64(v.v));
      } else if (s->seen_real && !joined) {
        s->sum += (wl_i64)v.v;
      } else {
        sum_watched(s, (wl_i64)v.v, joined);
      }
    }
    return WL_OK;
  case WL_OP__AggMinV:
  case WL_OP__AggMaxV:
    for (int i = 0; i < n && !rc; i++) {
      wl_val v = get(a, i);
      if (wl_acc_better(in->op, s, v, in->c)) rc = wl_acc_best(s, v);
    }
    return rc;
  default: break;
  }
  const wl_u64 *v = packed(a, n, x->room, &k);
  s->count += k;
  if (k == 0) return WL_OK;
  wl_val best = wl_null();
  switch (in->op) {
  case WL_OP__AggSumI: s->sum += sum_i64((const wl_i64 *)v, k); break;
  case WL_OP__AggSumX:
    for (int i = 0; i < k; i++) sum_watched(s, (wl_i64)v[i], joined);
    break;
  case WL_OP__AggSumF:
    s->seen_real = true;
    wl_fsum_vector(&s->reals, (const double *)v, k);
    break;
  case WL_OP__AggMinI: best = wl_int(least_i64((const wl_i64 *)v, k)); break;
  case WL_OP__AggMaxI: best = wl_int(most_i64((const wl_i64 *)v, k)); break;
  case WL_OP__AggMinF:
  case WL_OP__AggMaxF: {
    const double *f = (const double *)v;
    int at = 0;
    for (int i = 1; i < k; i++)
      if (in->op == WL_OP__AggMinF ? f[i] < f[at] : f[i] > f[at]) at = i;
    best = wl_real(f[at]);
    break;
  }
  default: break;
  }
  return wl_acc_better(in->op, s, best, 0) ? wl_acc_best(s, best) : WL_OK;
}

/* ---- groups */

wl_status wl_exec_find_groups(wl_exec *x, int n) {
  const wl_program *p = x->p;
  wl_i64 base = ((wl_i64)x->tablet << WL_TABLET_SHIFT) + x->row;
  if (p->expands) { /* one row became many: number them so that those of the next vector come
                    ** after */
    base = (base << 31) + x->made;
    x->made += n;
    if (x->made > x->most) return WL_FULL;
    for (int i = 0; i < n; i++) x->rows[i] = base + i;
  } else {
    for (int i = 0; i < n; i++) x->rows[i] = base + (x->selected ? x->sel[i] : i);
  }
  for (int k = 0; k < p->n_keys; k++) x->keys[k] = vec_of(wl_exec_operand(x, p->keys[k].operand));
  return wl_groups_find(x->groups, x->keys, x->rows, n, x->group);
}

static wl_status aggregate_groups(wl_exec *x, const wl_instr *in, int n) {
  bool two = wl_opcodes[in->op].shape == WL_SHAPE_AGG_VV;
  /* AggRows has no operand, and reading one would load a column. */
  wl_vec a = in->op == WL_OP__AggRows ? (wl_vec){0} : vec_of(wl_exec_operand(x, in->a));
  wl_vec b = two ? vec_of(wl_exec_operand(x, in->b)) : a;
  return wl_groups_add(x->groups, in->d, x->group, &a, two ? &b : NULL, x->rows, n,
                       x->ctx.max_text);
}

wl_status wl_exec_aggregate(wl_exec *x, const wl_instr *in, wl_acc_state *accs, int n) {
  return x->groups ? aggregate_groups(x, in, n) : aggregate(x, in, &accs[in->d], n);
}
