/*
** Columns as vectors, for the CPU machine (exec_impl.h). A register is loaded from its column when
** it is first read, for the rows that are left by then. Comparisons with a constant read the column
** directly and load nothing.
*/
#include "exec/cpu/exec_impl.h"
#include "exec/cpu/load.h"
#include "exec/cpu/narrow.h"
#include "exec/cpu/pick.h"
#include <string.h>

static void load_table(wl_exec *x, const wl_column *c, plane *d, int tablet, wl_i32 row, int n) {
  const wl_segment *s = &c->segments[tablet];
  const wl_u16 *sel = x->selected ? x->sel : NULL;
  const char *data = (const char *)s->data + (size_t)row * (size_t)wl_phys_width(c->phys);
  switch ((wl_phys)c->phys) {
  case WL_P_I8: widen_i8(d->v, data, sel, n); break;
  case WL_P_I16: widen_i16(d->v, data, sel, n); break;
  case WL_P_I32: widen_i32(d->v, data, sel, n); break;
  case WL_P_F32: widen_f32(d->v, data, sel, n); break;
  default: widen_64(d->v, data, sel, n);
  }
  if (c->phys == WL_P_ANY) {
    widen_u8(d->t, s->tags + row, sel, n);
  } else if (d->t) {
    if (s->valid)
      spread_bits(d->t, s->valid, row, sel, n);
    else
      memset(d->t, 1, (size_t)n);
  }
  if (c->phys < WL_P_TEXT) return;
  for (int i = 0; i < n; i++) {
    bool text = c->phys == WL_P_TEXT || d->t[i] >= WL_T_TEXT;
    d->n[i] = text ? (wl_u32)(d->v[i] >> 32) : 0;
    if (text) d->v[i] = (wl_u64)(size_t)(s->heap + (wl_u32)d->v[i]);
  }
}

/* misses: the rows may include WL_NO_ROW, which gives NULL. */
static void load_rows(const wl_exec *x, int column, plane *d, const wl_u32 *rows, bool misses,
                      int n) {
  const wl_column *c = x->cols[column];
  const void *const *data = x->tablets[column];
  bool one = c->n_tablets == 1;
  switch ((wl_phys)c->phys) {
  case WL_P_I8: pick_i8(d->v, data, rows, misses, one, n); break;
  case WL_P_I16: pick_i16(d->v, data, rows, misses, one, n); break;
  case WL_P_I32: pick_i32(d->v, data, rows, misses, one, n); break;
  case WL_P_F32: pick_f32(d->v, data, rows, misses, one, n); break;
  default: pick_64(d->v, data, rows, misses, one, n);
  }
  bool any = c->phys == WL_P_ANY, text = c->phys >= WL_P_TEXT;
  if (!any && !text && d->t && !(c->domain.mask & WL_M(WL_T_NULL))) {
    for (int i = 0; i < n; i++) d->t[i] = rows[i] != WL_NO_ROW;
    return;
  }
  for (int i = 0; i < n && (d->t || text); i++) {
    if (misses && rows[i] == WL_NO_ROW) {
      d->t[i] = 0; /* no value; also the tag of NULL */
      if (text) d->n[i] = 0;
      continue;
    }
    const wl_segment *s = &c->segments[rows[i] >> WL_TABLET_SHIFT];
    wl_u32 r = rows[i] & (WL_TABLET_ROWS - 1);
    if (d->t) d->t[i] = any ? s->tags[r] : s->valid ? s->valid[r >> 3] >> (r & 7) & 1 : 1;
    if (!text) continue;
    bool bytes = !any || d->t[i] >= WL_T_TEXT;
    d->n[i] = bytes ? (wl_u32)(d->v[i] >> 32) : 0;
    if (bytes) d->v[i] = (wl_u64)(size_t)(s->heap + (wl_u32)d->v[i]);
  }
}

const plane *wl_exec_operand(wl_exec *x, wl_i16 o) {
  if (WL_IS_CONST(o)) return &x->consts[WL_CONST_OF(o)];
  if (x->pending[o] >= 0) {
    int c = x->pending[o], s = wl_column_source(x->p, c);
    if (x->lists[s])
      load_rows(x, c, &x->regs[o], x->lists[s], x->misses[s], x->n);
    else
      load_table(x, x->cols[c], &x->regs[o], x->tablet, x->row, x->n);
    if (x->tally) wl_exec_reads(x, x->cols[c], x->n);
    x->pending[o] = -1;
  }
  return &x->regs[o];
}

bool wl_exec_compare_column(wl_exec *x, const wl_instr *in, int n) {
  bool turned = WL_IS_CONST(in->a);
  wl_i16 reg = turned ? in->b : in->a, constant = turned ? in->a : in->b;
  int op = narrow_op(in->op, turned);
  if (op < 0 || WL_IS_CONST(reg) || !WL_IS_CONST(constant) || x->pending[reg] < 0 ||
      x->lists[wl_column_source(x->p, x->pending[reg])])
    return false;
  const plane *k = &x->consts[WL_CONST_OF(constant)];
  const wl_column *c = x->cols[x->pending[reg]];
  const wl_segment *s = &c->segments[x->tablet];
  const wl_u16 *sel = x->selected ? x->sel : NULL;
  wl_u8 *d = x->regs[in->d].t;
  if (k->t || c->phys > WL_P_F64) return false;
  const char *data = (const char *)s->data + (size_t)x->row * (size_t)wl_phys_width(c->phys);
  narrow_compare(c->phys, op, data, sel, n, k->v[0], d);
  if (x->tally) wl_exec_reads(x, c, n);
  if (s->valid) {
    wl_u8 *valid = (wl_u8 *)x->room;
    spread_bits(valid, s->valid, x->row, sel, n);
    wl_exec_truth_nulls(d, valid, n);
  }
  return true;
}

bool wl_exec_equals_text(wl_exec *x, const wl_instr *in, int n) {
  bool turned = WL_IS_CONST(in->a);
  wl_i16 reg = turned ? in->b : in->a, constant = turned ? in->a : in->b;
  if ((in->op != WL_OP__EqV && in->op != WL_OP__NeV) || in->c != WL_COLL_BINARY ||
      WL_IS_CONST(reg) || !WL_IS_CONST(constant) || x->pending[reg] < 0 ||
      x->lists[wl_column_source(x->p, x->pending[reg])])
    return false;
  const plane *text = &x->consts[WL_CONST_OF(constant)];
  const wl_column *c = x->cols[x->pending[reg]];
  const wl_segment *s = &c->segments[x->tablet];
  if (c->phys != WL_P_TEXT || text->type != WL_R_TEXT) return false;
  const wl_u64 *places = (const wl_u64 *)s->data + x->row;
  wl_val want = get(text, 0);
  wl_u8 *d = x->regs[in->d].t, yes = in->op == WL_OP__EqV ? WL_TRUE : WL_FALSE,
        no = in->op == WL_OP__EqV ? WL_FALSE : WL_TRUE;
  const wl_u8 *bytes = wl_bytes(want);
  long_as(d, places, x->selected ? x->sel : NULL, n, want.n);
  int alike = wl_exec_true(x, d, n);
  memset(d, no, (size_t)n);
  for (int k = 0; k < alike; k++) {
    int i = x->keep[k];
    const wl_u8 *at = s->heap + (wl_u32)places[x->selected ? x->sel[i] : i];
    if (same_bytes(at, bytes, want.n)) d[i] = yes;
  }
  if (s->valid) {
    wl_u8 *valid = (wl_u8 *)x->room;
    spread_bits(valid, s->valid, x->row, x->selected ? x->sel : NULL, n);
    wl_exec_truth_nulls(d, valid, n);
  }
  return true;
}

void wl_exec_load_source(wl_exec *x, const wl_instr *in, int tablet, wl_i32 row, int n) {
  wl_i64 base = ((wl_i64)tablet << WL_TABLET_SHIFT) + row;
  const wl_srccol *c = &x->source[in->a];
  plane *d = &x->regs[in->d];
  const wl_u16 *sel = x->selected ? x->sel : NULL;
  widen_64(d->v, c->v + base, sel, n);
  if (d->t && c->t)
    widen_u8(d->t, c->t + base, sel, n);
  else if (d->t)
    memset(d->t, 1, (size_t)n);
  if (c->n && has_lengths(d->type))
    for (int i = 0; i < n; i++) d->n[i] = c->n[base + (sel ? sel[i] : i)];
}

void wl_exec_bits(wl_u8 *d, const wl_u8 *bits, wl_i32 first, const wl_u16 *sel, int n) {
  spread_bits(d, bits, first, sel, n);
}
