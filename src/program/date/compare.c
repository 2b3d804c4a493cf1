/*
** Comparisons of coded texts with a constant text. The codes have the order of the texts, so the
** comparison is one of integers. If the codes of a date function grow with an integer column, the
** column itself is compared, and zone maps can rule out tablets. Part of the compiler.
*/
#include "program/date/date.h"

#define T(x) WL_M(WL_T_##x)

/* A growing sequence of texts over integers: those of an operand with codes, or, if it is NULL,
** those of times. */
typedef struct texts {
  const wl_operand *coded;
  wl_int_times times;
  wl_val plan;
  wl_i64 fields;
} texts;

static wl_val text_at(wl_compiler *c, const texts *t, wl_i64 i) {
  const wl_operand *o = t->coded;
  if (o && o->dict) return wl_dict_value(o->dict, (wl_i32)i);
  if (o) return wl_op_DateText(&c->fold, wl_int(i), o->date->plan, 0);
  wl_i64 code = wl_op_DateFields(i * t->times.scale + t->times.offset, t->fields);
  return wl_op_DateText(&c->fold, wl_int(code), t->plan, 0);
}

/* The first integer of the range whose text is not before k, or, if `after`, is after it. */
static wl_i64 bound(wl_compiler *c, const texts *t, wl_i64 lo, wl_i64 hi, wl_val k, bool after) {
  while (lo < hi) {
    wl_i64 mid = lo + (hi - lo) / 2;
    int cmp = wl_cmp_val(text_at(c, t, mid), k, WL_COLL_BINARY);
    if (cmp < 0 || (after && cmp == 0))
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

static wl_op mirrored(wl_op op) {
  return op == WL_OP_LT   ? WL_OP_GT
         : op == WL_OP_LE ? WL_OP_GE
         : op == WL_OP_GT ? WL_OP_LT
         : op == WL_OP_GE ? WL_OP_LE
                          : op;
}

/* Where integer x is from first to before end: the truth of `text op k`. */
static wl_status compare_range(wl_compiler *c, wl_op op, const wl_operand *x, wl_i64 first,
                               wl_i64 end, wl_operand *out) {
  wl_operand lo, hi, above, below;
  wl_domain d = wl_truth_domain(wl_nullable(x));
  wl_status rc = wl_compile_constant(c, wl_int(first), &lo);
  if (!rc) rc = wl_compile_constant(c, wl_int(end), &hi);
  if (rc) return rc;
  switch (op) {
  case WL_OP_LT: return wl_compile_emit2(c, WL_OP__LtI, x, &lo, d, out);
  case WL_OP_LE: return wl_compile_emit2(c, WL_OP__LtI, x, &hi, d, out);
  case WL_OP_GE: return wl_compile_emit2(c, WL_OP__GeI, x, &lo, d, out);
  case WL_OP_GT: return wl_compile_emit2(c, WL_OP__GeI, x, &hi, d, out);
  default: break;
  }
  if (end == first + 1)
    return wl_compile_emit2(c, op == WL_OP_EQ ? WL_OP__EqI : WL_OP__NeI, x, &lo, d, out);
  rc = wl_compile_emit2(c, WL_OP__GeI, x, &lo, d, &above);
  if (!rc) rc = wl_compile_emit2(c, WL_OP__LtI, x, &hi, d, &below);
  if (!rc) rc = wl_compile_emit2(c, WL_OP__And, &above, &below, d, out);
  return rc || op == WL_OP_EQ ? rc : wl_compile_emit1(c, WL_OP__Not, out, d, out);
}

/* text op k, where the text is that of integer x. */
static wl_status compare_texts(wl_compiler *c, wl_op op, const texts *t, const wl_operand *x,
                               wl_val k, wl_operand *out) {
  wl_i64 lo = x->dom.lo, hi = x->dom.hi + 1, first = bound(c, t, lo, hi, k, false),
         end = bound(c, t, first, hi, k, true);
  return c->fault ? wl_nomem(c->err) : compare_range(c, op, x, first, end, out);
}

wl_status wl_compile_compare_codes(wl_compiler *c, wl_op op, const wl_operand *a,
                                   const wl_operand *b, bool *done, wl_operand *out) {
  *done = false;
  if (wl_is_const(a)) {
    const wl_operand *other = a;
    a = b;
    b = other;
    op = mirrored(op);
  }
  if ((!a->date && !a->dict) || !wl_is_const(b)) return WL_OK;
  wl_val k = wl_const_value(c, b);
  if (k.t != WL_T_TEXT) return WL_OK;
  wl_operand x = {.x = a->x, .dom = wl_operand_held(a)};
  *done = true;
  return compare_texts(c, op, &(texts){.coded = a}, &x, k, out);
}

static bool is_date_call(const wl_bexpr *e) {
  return e->kind == WL_B_CALL && e->index >= WL_NATIVE_DATE;
}

wl_status wl_compile_compare_times(wl_compiler *c, const wl_bexpr *e, bool *done, wl_operand *out) {
  const wl_bexpr *call = is_date_call(e->a) ? e->a : e->b, *other = call == e->a ? e->b : e->a;
  int at = wl_date_time_at((wl_native)call->index), n = call->n_list;
  wl_operand k, *args = NULL;
  texts t = {0};
  wl_val plan;
  *done = false;
  bool constant = other->kind == WL_B_CONST || other->kind == WL_B_PARAM;
  if (!is_date_call(call) || !constant || wl_compile_leaf(c, call) >= 0) return WL_OK;
  wl_status rc = wl_compile_expr(c, other, &k);
  if (rc || wl_const_value(c, &k).t != WL_T_TEXT) return rc;
  args = WL_NEW_N(c->arena, wl_operand, n + 1);
  if (!args) return wl_nomem(c->err);
  for (int i = 0; i < n && !rc; i++) {
    rc = wl_compile_expr(c, call->list[i], &args[i]);
    if (!rc) rc = wl_compile_value(c, &args[i]);
  }
  if (rc || wl_date_plan_of_call(c, (wl_native)call->index, args, n, &plan) != WL_DATE_PLANNED)
    return rc;
  if (wl_only_null(&args[at]) || !wl_only(&args[at], T(INT))) return WL_OK;
  wl_date_beginning b = wl_date_beginning_of(&args[at], plan);
  if (!wl_date_are_times(&args[at], &b, &t.times)) return WL_OK;
  t.plan = wl_date_plan_after(c->arena, plan, b.n_steps);
  if (t.plan.t == WL_T_NULL) return wl_nomem(c->err);
  wl_i64 first = args[at].dom.lo * t.times.scale + t.times.offset;
  t.fields = wl_date_plan_of(t.plan).fields;
  if (first < WL_FIRST_YEAR_MS || !t.fields || !wl_date_ascends(t.plan)) return WL_OK;
  *done = true;
  return compare_texts(c, call == e->a ? e->op : mirrored(e->op), &t, &args[at],
                       wl_const_value(c, &k), out);
}
