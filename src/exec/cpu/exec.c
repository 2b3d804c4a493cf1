/*
** The CPU machine; see exec.h. One worker runs one pipeline, a vector of rows at a time: filter,
** compute, then accumulate or return rows.
*/
#include "exec/cpu/exec_impl.h"
#include "exec/cpu/loops.h"
#include "base/clock.h"
#include "base/mem.h"
#include "value/calls.h"
#include "value/scratch.h"
#include <pthread.h>
#include <string.h>

static pthread_once_t places_once = PTHREAD_ONCE_INIT;

void wl_exec_prepare(void) {
  pthread_once(&places_once, places_init);
}

/* ---- counting and stopping */

wl_status wl_exec_watch(wl_exec *x, wl_tally *total, wl_error *err) {
  x->tally = wl_mem_zalloc(((size_t)x->p->n_code + 1) * sizeof *x->tally);
  x->total = total;
  x->ticking = -1;
  return x->tally ? WL_OK : wl_nomem(err);
}

void wl_exec_tock(wl_exec *x) {
  double now = wl_clock_ns();
  if (x->ticking >= 0) x->tally[x->ticking].ns += now - x->ticked;
  x->ticking = -1;
  x->ticked = now;
}

void wl_exec_tick(wl_exec *x, int pc, wl_i64 n) {
  wl_exec_tock(x);
  x->ticking = pc;
  x->tally[pc].n_rows += n;
}

void wl_exec_reads(wl_exec *x, const wl_column *c, wl_i64 n) {
  if (x->ticking >= 0) x->tally[x->ticking].n_bytes += n * wl_phys_width(c->phys);
}

void wl_exec_add_up(wl_exec *x) {
  for (int pc = 0; pc < x->end; pc++) {
    x->total[pc].n_rows += x->tally[pc].n_rows;
    x->total[pc].n_bytes += x->tally[pc].n_bytes;
    x->total[pc].ns += x->tally[pc].ns;
  }
  wl_mem_free(x->tally);
}

void wl_exec_stop_by(wl_exec *x, wl_stop *s, bool asks) {
  x->stop_by = s;
  x->asks = asks;
}

/* Whether to stop. Only the calling thread asks, every few milliseconds. */
static bool stops(void *arg) {
  enum { ASK_NS = 5000000 };
  wl_exec *x = arg;
  wl_error ignored;
  if (!x->stop_by) return false;
  if (wl_stop_is_set(x->stop_by)) return true;
  if (!x->asks || !x->stop_by->check) return false;
  double now = wl_clock_ns();
  if (now - x->polled < ASK_NS) return false;
  x->polled = now;
  return wl_stop_ask(x->stop_by, &ignored) != WL_OK;
}

/* ---- values of a vector */

/* The truths of an operand that is a truth register or a constant used as one. */
static const wl_u8 *truths(const plane *q, int *stride) {
  *stride = q->stride;
  return q->stride ? q->t : (const wl_u8 *)q->v + CONST_TRUTH;
}

static inline void put(plane *q, int i, wl_val v) {
  q->v[i] = v.t == WL_T_NULL ? 0 : v.v;
  if (has_lengths(q->type)) q->n[i] = v.n;
  if (q->t) q->t[i] = q->type == WL_R_ANY ? v.t : v.t != WL_T_NULL;
}

/* ---- filters */

static void compact(plane *q, const wl_u16 *keep, int n) {
  if (q->type != WL_R_TRUTH)
    for (int i = 0; i < n; i++) q->v[i] = q->v[keep[i]];
  if (q->t)
    for (int i = 0; i < n; i++) q->t[i] = q->t[keep[i]];
  if (has_lengths(q->type))
    for (int i = 0; i < n; i++) q->n[i] = q->n[keep[i]];
}

void wl_exec_keep(wl_exec *x, int pc, int k) {
  for (int r = 0; r < x->p->n_regs; r++)
    if (x->live.set_at[r] >= 0 && x->live.set_at[r] < pc && x->live.last_read[r] > pc &&
        x->pending[r] < 0)
      compact(&x->regs[r], x->keep, k);
  for (int s = 0; s < x->p->n_sources; s++) {
    wl_u32 *rows = x->lists[s];
    if (!rows || x->set_at[s] > pc || x->last_read[s] <= pc) continue;
    for (int i = 0; i < k; i++) rows[i] = rows[x->keep[i]];
  }
  for (int i = 0; x->origin && i < k; i++) x->origin[i] = x->origin[x->keep[i]];
  if (x->depth) return;
  if (x->selected)
    for (int i = 0; i < k; i++) x->sel[i] = x->sel[x->keep[i]];
  else
    memcpy(x->sel, x->keep, (size_t)k * sizeof *x->sel);
  x->selected = true;
}

int wl_exec_true(wl_exec *x, const wl_u8 *t, int n) {
  return keep_true(t, x->keep, n);
}

void wl_exec_truth_nulls(wl_u8 *d, const wl_u8 *valid, int n) {
  truth_nulls(d, valid, n);
}

/* Keeps the rows where a is true and returns their number. */
static int filter(wl_exec *x, int pc, const plane *a, int n) {
  int stride;
  const wl_u8 *t = truths(a, &stride);
  if (!stride) return t[0] == WL_TRUE ? n : 0;
  int k = keep_true(t, x->keep, n);
  if (k < n && k > 0) wl_exec_keep(x, pc, k);
  return k;
}

/* ---- scalar opcodes */

static void typed(wl_exec *x, const wl_instr *in, int n) {
  wl_shape shape = wl_opcodes[in->op].shape;
  plane *d = &x->regs[in->d];
  if (wl_exec_compare_column(x, in, n)) return;
  const plane *a = wl_exec_operand(x, in->a), *b = NULL;
  bool two = wl_shapes[shape][2] != ' ';
  if (two) b = wl_exec_operand(x, in->b);
  int sa = a->stride, sb = two ? b->stride : 0;
  const void *av = a->v, *bv = two ? b->v : NULL;
  if (wl_shapes[shape][1] == 'B') {
    av = truths(a, &sa);
    if (two) bv = truths(b, &sb);
    exec_ops[in->op].loop(d->t, av, sa, bv, sb, n);
    return;
  }
  bool to_truth = d->type == WL_R_TRUTH;
  exec_ops[in->op].loop(to_truth ? (void *)d->t : (void *)d->v, av, sa, bv, sb, n);
  if (to_truth) {
    if (a->t) truth_nulls(d->t, a->t, n);
    if (two && b->t) truth_nulls(d->t, b->t, n);
    return;
  }
  if (!d->t) return;
  if (a->t)
    memcpy(d->t, a->t, (size_t)n);
  else
    memset(d->t, 1, (size_t)n);
  if (two && b->t) valid_and(d->t, b->t, n);
  wl_null_rule rule = wl_shape_nulls[shape];
  if (rule == WL_NULLS_ZERO && sb)
    valid_zero_rule(d->t, bv, n);
  else if (rule == WL_NULLS_ZERO && wl_null_int(rule, *(const wl_i64 *)bv))
    memset(d->t, 0, (size_t)n);
  if (rule == WL_NULLS_NAN) valid_nan_rule(d->t, (const double *)d->v, n);
  blank(d->v, d->t, n);
}

static void truth_to_int(plane *d, const plane *a, int n) {
  for (int i = 0; i < n; i++) {
    d->v[i] = a->t[i] == WL_TRUE;
    if (d->t) d->t[i] = a->t[i] != WL_UNKNOWN;
  }
}

static void choose(wl_exec *x, const wl_instr *in, int n) {
  plane *d = &x->regs[in->d];
  const plane *a = wl_exec_operand(x, in->a), *b = wl_exec_operand(x, in->b);
  int st;
  const wl_u8 *t = truths(wl_exec_operand(x, in->c), &st);
  if (wl_opcodes[in->op].shape == WL_SHAPE_SELECT_V) {
    for (int i = 0; i < n; i++) put(d, i, get(t[st ? i : 0] == WL_TRUE ? a : b, i));
    return;
  }
  for (int i = 0; i < n; i++)
    d->v[i] = t[st ? i : 0] == WL_TRUE ? a->v[a->stride ? i : 0] : b->v[b->stride ? i : 0];
  if (d->t)
    for (int i = 0; i < n; i++) {
      const plane *q = t[st ? i : 0] == WL_TRUE ? a : b;
      d->t[i] = q->t ? q->t[i] : 1;
    }
}

/* Compares texts byte by byte: row by row, or each row with one constant. */
static void text_compare(wl_u16 op, const plane *a, const plane *b, wl_u8 *d, int n) {
  static const wl_u8 truth[6][3] = {/* for less, equal, greater */
                                    {WL_FALSE, WL_TRUE, WL_FALSE}, {WL_TRUE, WL_FALSE, WL_TRUE},
                                    {WL_TRUE, WL_FALSE, WL_FALSE}, {WL_TRUE, WL_TRUE, WL_FALSE},
                                    {WL_FALSE, WL_FALSE, WL_TRUE}, {WL_FALSE, WL_TRUE, WL_TRUE}};
  const wl_u8 *is = truth[op - WL_OP__EqV];
  for (int i = 0; i < n; i++) {
    int k = b->stride ? i : 0;
    const wl_u8 *x = (const wl_u8 *)(size_t)a->v[i], *y = (const wl_u8 *)(size_t)b->v[k];
    bool null = (a->t && !a->t[i]) || (b->t && !b->t[i]);
    if (null)
      d[i] = WL_UNKNOWN;
    else if (op <= WL_OP__NeV && a->n[i] != b->n[k])
      d[i] = is[0];
    else
      d[i] = is[wl_cmp_bytes(x, a->n[i], y, b->n[k]) + 1];
  }
}

static wl_status generic(wl_exec *x, const wl_instr *in, int n) {
  enum { LONG_TEXT = 1 << 16 };
  const wl_exec_op *op = &exec_ops[in->op];
  plane *d = &x->regs[in->d];
  if (wl_exec_equals_text(x, in, n) || wl_exec_like(x, in, n)) return WL_OK;
  const plane *a = wl_exec_operand(x, in->a),
              *b = wl_shapes[wl_opcodes[in->op].shape][2] != ' ' ? wl_exec_operand(x, in->b) : a;
  if (in->op >= WL_OP__EqV && in->op <= WL_OP__GeV && in->c == WL_COLL_BINARY &&
      a->type == WL_R_TEXT && b->type == WL_R_TEXT && a->stride) {
    text_compare(in->op, a, b, d->t, n);
    return WL_OK;
  }
  wl_val w = get(b, 0);
  for (int i = 0; i < n; i++) {
    wl_val v = get(a, i);
    if (b->stride) w = get(b, i);
    if (v.t >= WL_T_TEXT && v.n > LONG_TEXT && stops(x)) {
      x->fault = WL_FAULT_STOP;
      return WL_INTERRUPT;
    }
    if (op->truth)
      d->t[i] = op->truth(&x->ctx, v, w, in->c);
    else
      put(d, i, op->value(&x->ctx, v, w, in->c));
  }
  return WL_OK;
}

/* ---- maps and calls */

static void map_truths(const wl_map *m, plane *d, const plane *a, int n) {
  const wl_u8 *t = m->t;
  const wl_i64 *v = (const wl_i64 *)a->v, base = m->base;
  if (!a->t)
    for (int i = 0; i < n; i++) d->t[i] = t[v[i] - base];
  else
    for (int i = 0; i < n; i++) d->t[i] = t[a->t[i] ? v[i] - base : m->n];
}

static void map_numbers(const wl_map *m, plane *d, const plane *a, int n) {
  const wl_i64 *v = (const wl_i64 *)a->v;
  for (int i = 0; i < n; i++) {
    wl_i64 k = !a->t || a->t[i] ? v[i] - m->base : m->n;
    d->v[i] = m->v[k];
    if (d->t) d->t[i] = m->t[k] != WL_T_NULL;
  }
}

static void map_values(const wl_map *m, plane *d, const plane *a, int n) {
  const wl_i64 *v = (const wl_i64 *)a->v;
  if (d->type == WL_R_TEXT && m->len) {
    for (int i = 0; i < n; i++) {
      wl_i64 k = !a->t || a->t[i] ? v[i] - m->base : m->n;
      bool text = m->t[k] == WL_T_TEXT;
      d->v[i] = text ? (wl_u64)(size_t)(m->heap + m->v[k]) : 0;
      d->n[i] = text ? m->len[k] : 0;
      if (d->t) d->t[i] = text;
    }
    return;
  }
  for (int i = 0; i < n; i++) {
    wl_i64 k = !a->t || a->t[i] ? v[i] - m->base : m->n;
    bool text = m->t[k] >= WL_T_TEXT;
    put(d, i,
        wl_val_make(m->t[k], text ? (wl_u64)(size_t)(m->heap + m->v[k]) : m->v[k],
                    text ? m->len[k] : 0));
  }
}

static void in_set(const wl_inset *s, plane *d, const plane *a, int n) {
  for (int i = 0; i < n; i++) d->t[i] = wl_in_set(get(a, i), s->v, s->n, s->coll, s->has_null);
}

static wl_status call(wl_exec *x, const wl_instr *in, int n) {
  const wl_call *c = &x->p->calls[in->c];
  plane *d = &x->regs[in->d];
  size_t rows = (size_t)n;
  if (!x->call_room) x->call_room = wl_mem_alloc((WL_CALL_ARGS + 1) * WL_VECTOR * sizeof(wl_val));
  if (!x->call_room) return WL_NOMEM;
  wl_val *args = x->call_room, *out = args + WL_CALL_ARGS * WL_VECTOR;
  bool varies[WL_CALL_ARGS];
  for (int k = 0; k < c->n; k++) {
    const plane *a = wl_exec_operand(x, c->args[k]);
    varies[k] = a->stride != 0;
    for (size_t i = 0; i < (varies[k] ? rows : 1); i++) args[(size_t)k * rows + i] = get(a, (int)i);
  }
  wl_call_rows r = {.text = c->text,
                    .args = args,
                    .varies = varies,
                    .n_args = c->n,
                    .n = n,
                    .of_time = c->of_time,
                    .max_pattern = x->p->max_pattern,
                    .stops = stops,
                    .stops_arg = x};
  wl_calls_run(&x->ctx, &r, out);
  for (int i = 0; i < n && !x->fault; i++) {
    if (!(c->gives & WL_M(out[i].t))) x->fault = WL_FAULT_SQL; /* not the register's type */
    put(d, i, out[i]);
  }
  return x->fault ? WL_ERROR : WL_OK; /* later rows have no value, so nothing may continue */
}

static void null_test(plane *d, const plane *a, int n) {
  for (int i = 0; i < n; i++) d->t[i] = get(a, i).t == WL_T_NULL ? WL_TRUE : WL_FALSE;
}

/* ---- results */

/* Adds up the lengths, makes room once, and copies the bytes. */
static wl_status give_texts(const plane *q, wl_outcol *c, wl_i64 at, int n) {
  enum { AHEAD = 16 };
  size_t n_bytes = 0;
  for (int i = 0; i < n; i++) n_bytes += q->t && !q->t[i] ? 0 : q->n[i];
  wl_status rc = wl_outcol_room(c, n_bytes);
  if (rc) return rc;
  for (int i = 0; i < n; i++) {
    __builtin_prefetch((const void *)(size_t)q->v[i + AHEAD < n ? i + AHEAD : i]);
    wl_u32 length = q->t && !q->t[i] ? 0 : q->n[i];
    if (length) memcpy(c->heap + c->n_heap, (const void *)(size_t)q->v[i], length);
    c->n_heap += length;
    c->offsets[at + i + 1] = (wl_i32)c->n_heap;
  }
  if (c->t && q->t)
    memcpy(c->t + at, q->t, (size_t)n);
  else if (c->t)
    memset(c->t + at, 1, (size_t)n);
  return WL_OK;
}

static wl_status give_column(const plane *q, wl_reg want, wl_outcol *c, wl_i64 at, int n) {
  bool same = q->type == want.type;
  if (same && q->stride && want.type <= WL_R_REAL) {
    bool there = q->v == c->v + at; /* already loaded into the batch */
    if (!there) memcpy(c->v + at, q->v, (size_t)n * 8);
    if (!c->t || (there && q->t)) return WL_OK;
    if (q->t)
      memcpy(c->t + at, q->t, (size_t)n);
    else
      memset(c->t + at, 1, (size_t)n);
    return WL_OK;
  }
  if (same && q->stride && want.type == WL_R_TEXT) return give_texts(q, c, at, n);
  for (int i = 0; i < n; i++) {
    wl_status rc = wl_outcol_put(c, want, at + i, get(q, i));
    if (rc) return rc;
  }
  return WL_OK;
}

/* Adds the sort keys of ORDER BY, with row numbers, to the sorter. */
static wl_status give_keys(wl_exec *x, int tablet, wl_i32 row, int n) {
  const wl_program *p = x->p;
  wl_i64 base = ((wl_i64)tablet << WL_TABLET_SHIFT) + row;
  for (int i = 0; i < n; i++) x->rows[i] = base + (x->selected ? x->sel[i] : i);
  for (int k = 0; k < p->n_order; k++)
    x->keys[k] = vec_of(wl_exec_operand(x, p->results[p->order[k].result].operand));
  return wl_sorter_add(x->sorter, x->sort_worker, tablet, x->keys, x->rows, n);
}

static wl_status give(wl_exec *x, wl_batch *out, int n) {
  for (int k = 0; k < x->p->n_results; k++) {
    const wl_result *r = &x->p->results[k];
    wl_status rc = give_column(wl_exec_operand(x, r->operand), wl_result_reg(r), &out->cols[k],
                               out->n_rows, n);
    if (rc) return rc;
  }
  out->n_rows += n;
  return WL_OK;
}

/* ---- a vector of rows */

static void found(plane *d, const wl_u32 *rows, int n) {
  for (int i = 0; i < n; i++) d->t[i] = rows[i] != WL_NO_ROW ? WL_TRUE : WL_FALSE;
}

/* Only source 0 may have no list of rows: its rows are those of the vector then. */
static WL_CLONES void number_rows(const wl_exec *x, plane *d, const wl_u32 *rows, int n) {
  wl_u64 base = ((wl_u64)x->tablet << WL_TABLET_SHIFT) + (wl_u64)x->row;
  if (rows)
    for (int i = 0; i < n; i++) d->v[i] = rows[i];
  else
    for (int i = 0; i < n; i++) d->v[i] = base + (x->selected ? x->sel[i] : (wl_u64)i);
  for (int i = 0; i < n && d->t; i++) d->t[i] = !rows || rows[i] != WL_NO_ROW;
}

wl_status wl_exec_steps(wl_exec *x, int *at, wl_batch *out) {
  const wl_program *p = x->p;
  int n = x->n, tablet = x->tablet;
  wl_i32 row = x->row;
  for (int pc = *at; pc < x->end; pc++) {
    const wl_instr *in = &p->code[pc];
    wl_status rc = WL_OK;
    if (x->tally && in->op != WL_OP__Expand && in->op != WL_OP__Match) wl_exec_tick(x, pc, n);
    x->ran[pc] = true;
    switch ((wl_shape)wl_opcodes[in->op].shape) {
    case WL_SHAPE_COLUMN:
      if (x->source) wl_exec_load_source(x, in, tablet, row, n);
      if (x->direct[in->d] >= 0) {
        wl_outcol *o = &out->cols[x->direct[in->d]];
        x->regs[in->d].v = o->v + out->n_rows;
        if (x->regs[in->d].t) x->regs[in->d].t = o->t + out->n_rows;
      }
      if (!x->source) x->pending[in->d] = in->a;
      break;
    case WL_SHAPE_FILTER: x->n = n = filter(x, pc, wl_exec_operand(x, in->a), n); break;
    case WL_SHAPE_PROBE:
      if (in->op == WL_OP__Expand) {
        *at = pc;
        return WL_OK;
      }
      if (in->op == WL_OP__Build)
        rc = wl_exec_build(x, &p->joins[in->c], n);
      else
        x->n = n = wl_exec_probe(x, pc, n);
      break;
    case WL_SHAPE_MATCH: *at = pc; return WL_OK;
    case WL_SHAPE_MARK: wl_marks_set(x->marks, in->c, x->lists[p->joins[in->c].source], n); break;
    case WL_SHAPE_FOUND: found(&x->regs[in->d], x->lists[in->a], n); break;
    case WL_SHAPE_ROW: number_rows(x, &x->regs[in->d], x->lists[in->a], n); break;
    case WL_SHAPE_RESULT: rc = x->sorter ? give_keys(x, tablet, row, n) : give(x, out, n); break;
    case WL_SHAPE_GROUP: rc = wl_exec_find_groups(x, n); break;
    case WL_SHAPE_IN:
      in_set(&p->insets[in->c], &x->regs[in->d], wl_exec_operand(x, in->a), n);
      break;
    case WL_SHAPE_CALL: rc = call(x, in, n); break;
    case WL_SHAPE_MAP_B:
      map_truths(&p->maps[in->c], &x->regs[in->d], wl_exec_operand(x, in->a), n);
      break;
    case WL_SHAPE_MAP_I:
    case WL_SHAPE_MAP_F:
      map_numbers(&p->maps[in->c], &x->regs[in->d], wl_exec_operand(x, in->a), n);
      break;
    case WL_SHAPE_MAP_V:
      map_values(&p->maps[in->c], &x->regs[in->d], wl_exec_operand(x, in->a), n);
      break;
    case WL_SHAPE_I_B: truth_to_int(&x->regs[in->d], wl_exec_operand(x, in->a), n); break;
    case WL_SHAPE_NULLTEST: null_test(&x->regs[in->d], wl_exec_operand(x, in->a), n); break;
    case WL_SHAPE_SELECT_I:
    case WL_SHAPE_SELECT_F:
    case WL_SHAPE_SELECT_V: choose(x, in, n); break;
    case WL_SHAPE_B_VV:
    case WL_SHAPE_B_V:
    case WL_SHAPE_V_VV:
    case WL_SHAPE_V_DATE:
    case WL_SHAPE_V_V: rc = generic(x, in, n); break;
    case WL_SHAPE_AGG:
    case WL_SHAPE_AGG_I:
    case WL_SHAPE_AGG_F:
    case WL_SHAPE_AGG_V:
    case WL_SHAPE_AGG_VV: rc = wl_exec_aggregate(x, in, n); break;
    default: typed(x, in, n);
    }
    if (rc) return rc;
    if (n == 0) { /* without rows, only a test has work left */
      *at = x->test_end >= 0 ? x->test_end : x->end;
      return WL_OK;
    }
  }
  *at = x->end;
  return WL_OK;
}

/* Runs a vector of rows that are given by their numbers. */
static wl_status run_vector(wl_exec *x, int n, wl_batch *out) {
  int pc = 0;
  if (stops(x)) {
    x->fault = WL_FAULT_STOP;
    return WL_INTERRUPT;
  }
  x->selected = false;
  x->tablet = 0;
  x->row = 0;
  x->n = n;
  wl_scratch_reset(&x->ctx);
  wl_status rc = wl_exec_steps(x, &pc, out);
  if (x->tally) wl_exec_tock(x);
  return rc;
}

/* The status and message for a vector that failed. */
wl_status wl_exec_failure(const wl_exec *x, wl_status rc, wl_error *err) {
  if (x->fault == WL_FAULT_STOP) return wl_fail(err, WL_INTERRUPT, "interrupted");
  if (x->fault == WL_FAULT_TOOBIG || rc == WL_TOOBIG)
    return wl_fail(err, WL_TOOBIG, "string or blob too big");
  if (rc == WL_FULL) return wl_not_taken(err, "one row becomes more than 2^31 rows in a join");
  if (x->fault == WL_FAULT_SQL)
    return wl_not_taken(err, "an SQLite function raised an error or asks for the current time");
  /* WL_NOT_TAKEN: groups need too much memory; the runner knows the limit and sets the message */
  return x->fault || rc == WL_NOMEM ? wl_nomem(err) : rc;
}

wl_status wl_exec_run_rows(wl_exec *x, const wl_u32 *rows, wl_i64 n, wl_batch *out, wl_error *err) {
  x->fault = WL_FAULT_NONE;
  wl_status rc = WL_OK;
  for (wl_i64 at = 0; at < n && !rc; at += WL_VECTOR) {
    x->lists[0] = (wl_u32 *)(size_t)(rows + at); /* no filter runs, so nothing is written there */
    rc =
        wl_exec_failure(x, run_vector(x, (int)(n - at < WL_VECTOR ? n - at : WL_VECTOR), out), err);
  }
  x->lists[0] = NULL;
  return rc;
}
