/*
** Date functions: chooses opcodes for a call whose format and modifiers are constant. Part of the
** compiler.
**
** 1. Numbers that are known to be times become milliseconds, by plain arithmetic.
** 2. If the day of such a time decides the result, or its hour or minute, a map has the results of
**    all days in its range.
** 3. A text that has codes is computed as a code. It becomes text where a text is needed.
** 4. Everything else is the opcode Date.
**
** Invariants:
** 1. An operand of milliseconds holds only times between the year -4713 and 9999, or NULL.
*/
#include "base/mem.h"
#include "program/compile_impl.h"
#include "value/date/plan.h"
#include <string.h>

#define T(x) WL_M(WL_T_##x)

/* No year of a time from here on is before 0. */
#define FIRST_YEAR_MS (1721060 * WL_DAY_MS)

/* A plan as a constant, once for each program. */
static wl_status plan_constant(wl_compiler *c, wl_val plan, wl_operand *out) {
  for (int k = 0; k < c->p->n_consts; k++) {
    wl_val v = c->p->consts[k];
    if (v.t != WL_T_BLOB || v.n != plan.n || memcmp(wl_bytes(v), wl_bytes(plan), v.n) != 0)
      continue;
    memset(out, 0, sizeof *out);
    out->x = WL_CONST(k);
    out->dom = wl_domain_of(v);
    return WL_OK;
  }
  return wl_compile_constant(c, plan, out);
}

static wl_date_step step_of(wl_val plan, int k) {
  wl_date_step s;
  memcpy(&s, wl_bytes(plan) + sizeof(wl_date_plan) + (size_t)k * sizeof s, sizeof s);
  return s;
}

/* ---- 1. milliseconds */

/* a op k for a number k. */
static wl_status arith(wl_compiler *c, wl_op op, const wl_operand *a, wl_val k, wl_operand *out) {
  wl_operand left = *a, right;
  wl_status rc = wl_compile_constant(c, k, &right);
  return rc ? rc : wl_compile_arith(c, op, &left, &right, out);
}

/* Reals as times in milliseconds, with SQLite's roundings. later: added in the end. */
static wl_status from_reals(wl_compiler *c, const wl_operand *source, bool unix, wl_i64 later,
                            wl_operand *ms, bool *done) {
  const wl_domain *d = &source->dom;
  double lo = unix ? -210866760000.0 : 0.0, hi = unix ? 253402300799.0 : 5373484.0;
  *done = d->flo >= lo && d->fhi <= hi;
  if (!*done) return WL_OK;
  wl_status rc = arith(c, WL_OP_MUL, source, wl_real(unix ? 1000.0 : 86400000.0), ms);
  if (!rc && unix) rc = arith(c, WL_OP_ADD, ms, wl_real(210866760000000.0), ms);
  if (!rc) rc = arith(c, WL_OP_ADD, ms, wl_real(0.5), ms);
  if (!rc) rc = wl_compile_int(c, ms);
  if (rc || later == 0) return rc;
  wl_i64 least = ms->dom.lo + later, most = ms->dom.hi + later;
  *done = least >= 0 && most <= WL_LAST_MS;
  return *done ? arith(c, WL_OP_ADD, ms, wl_int(later), ms) : WL_OK;
}

/* How a plan begins: as numbers that are times, to which a constant is added. */
typedef struct beginning {
  bool unix;    /* seconds since 1970, not Julian days */
  wl_i64 later; /* milliseconds that are added */
  int n_steps;  /* of the plan that are done with this */
} beginning;

static beginning beginning_of(const wl_operand *a, wl_val plan) {
  int n_steps = wl_date_plan_of(plan).n_steps;
  beginning b = {0};
  if (n_steps) {
    wl_u8 kind = step_of(plan, 0).kind;
    bool large = wl_only(a, T(INT)) ? a->dom.lo >= 5373485 : a->dom.flo >= 5373484.5;
    b.unix = kind == WL_STEP_UNIXEPOCH || (kind == WL_STEP_AUTO && large);
    b.n_steps = kind <= WL_STEP_UNIXEPOCH;
  }
  for (; b.n_steps < n_steps; b.n_steps++) {
    wl_date_step s = step_of(plan, b.n_steps);
    bool adds = s.kind == WL_STEP_ADD || s.kind == WL_STEP_CLOCK;
    if (!adds || s.ms > WL_LAST_MS || s.ms < -WL_LAST_MS || b.later > WL_LAST_MS ||
        b.later < -WL_LAST_MS)
      break;
    b.later += s.ms;
  }
  return b;
}

/* Integers as times: source * scale + offset is the time in milliseconds. */
typedef struct int_times {
  wl_operand source;
  wl_i64 scale, offset;
} int_times;

/* Whether all values of an integer operand are times, before and after the addition. */
static bool are_times(const wl_operand *a, const beginning *b, int_times *out) {
  wl_i64 scale = b->unix ? 1000 : WL_DAY_MS, offset = b->unix ? WL_EPOCH_MS : 0;
  for (int k = 0; k < 2; k++, offset += b->later) {
    __int128 lo = (__int128)a->dom.lo * scale + offset, hi = (__int128)a->dom.hi * scale + offset;
    if (lo < 0 || hi > WL_LAST_MS) return false;
  }
  *out = (int_times){*a, scale, offset - b->later};
  return true;
}

/* Times in milliseconds, and what is left of the plan. */
typedef struct moment {
  wl_operand ms;
  wl_val rest;
} moment;

static wl_status as_moment(wl_compiler *c, const wl_operand *a, wl_val plan, moment *m,
                           bool *done) {
  int_times t;
  *done = false;
  if (wl_only_null(a) || !(wl_only(a, T(INT)) || wl_only(a, T(REAL)))) return WL_OK;
  beginning b = beginning_of(a, plan);
  m->rest = wl_date_plan_after(c->arena, plan, b.n_steps);
  if (m->rest.t == WL_T_NULL) return wl_nomem(c->err);
  if (wl_only(a, T(REAL))) return from_reals(c, a, b.unix, b.later, &m->ms, done);
  *done = are_times(a, &b, &t);
  if (!*done) return WL_OK;
  wl_status rc = arith(c, WL_OP_MUL, a, wl_int(t.scale), &m->ms);
  return rc ? rc : arith(c, WL_OP_ADD, &m->ms, wl_int(t.offset), &m->ms);
}

/* ---- 2. maps */

/* The results for all units of a range, by the opcode itself. */
static wl_status results_of(wl_compiler *c, wl_val rest, wl_date_unit by, wl_i64 first, wl_i64 n,
                            wl_val *values) {
  for (wl_i64 k = 0; k < n && !c->fault; k++) {
    wl_val time = wl_int(first + k); /* noon of a day */
    if (by == WL_DATE_BY_HOUR) time = wl_real(2451544.5 + (double)k / 24);
    if (by == WL_DATE_BY_MINUTE) time = wl_real(2451544.5 + (double)k / 1440);
    values[k] = wl_op_Date(&c->fold, time, rest, 0);
  }
  values[n] = wl_null();
  return c->fault ? wl_nomem(c->err) : WL_OK;
}

static wl_status by_map(wl_compiler *c, const moment *m, bool *done, wl_operand *out) {
  enum { MOST = 65536, ROWS_PER_VALUE = 64 };
  wl_date_unit by = wl_date_depends(m->rest);
  wl_i64 unit = by == WL_DATE_BY_DAY ? WL_DAY_MS : by == WL_DATE_BY_HOUR ? 3600000 : 60000;
  wl_operand leaf;
  *done = false;
  if (by == WL_DATE_BY_MS || m->ms.dom.lo - wl_date_reach(m->rest) < 2 * WL_DAY_MS) return WL_OK;
  wl_i64 first = by == WL_DATE_BY_DAY ? (m->ms.dom.lo + WL_NOON_MS) / WL_DAY_MS : 0;
  wl_i64 n =
      by == WL_DATE_BY_DAY ? (m->ms.dom.hi + WL_NOON_MS) / WL_DAY_MS - first + 1 : WL_DAY_MS / unit;
  if (n > MOST || n > c->in->n_rows / ROWS_PER_VALUE) return WL_OK;
  wl_status rc = arith(c, WL_OP_ADD, &m->ms, wl_int(WL_NOON_MS), &leaf);
  if (!rc && by != WL_DATE_BY_DAY) rc = arith(c, WL_OP_REM, &leaf, wl_int(WL_DAY_MS), &leaf);
  if (!rc) rc = arith(c, WL_OP_DIV, &leaf, wl_int(unit), &leaf);
  if (rc) return rc;
  wl_val *values = wl_mem_alloc((size_t)(n + 1) * sizeof *values);
  rc = values ? results_of(c, m->rest, by, first, n, values) : wl_nomem(c->err);
  if (!rc) rc = wl_compile_map(c, values, first, n, false, &leaf, out);
  wl_mem_free(values);
  *done = true;
  return rc;
}

/* ---- 3. codes */

static wl_status as_codes(wl_compiler *c, wl_val plan, wl_domain codes, wl_operand *o) {
  wl_dated *d = WL_NEW(c->arena, wl_dated);
  if (!d) return wl_nomem(c->err);
  d->plan = plan;
  d->codes = codes;
  o->date = d;
  o->dom = wl_domain_with_null(wl_domain_any(T(TEXT)), (codes.mask & T(NULL)) != 0);
  return WL_OK;
}

wl_status wl_compile_date_text(wl_compiler *c, wl_operand *o) {
  wl_operand plan, code = {.x = o->x, .dom = o->date->codes};
  wl_status rc = plan_constant(c, o->date->plan, &plan);
  return rc ? rc : wl_compile_emit2(c, WL_OP__DateText, &code, &plan, o->dom, o);
}

static wl_status fields_of(wl_compiler *c, const moment *m, bool *done, wl_operand *out) {
  wl_date_plan p = wl_date_plan_of(m->rest);
  wl_operand fields;
  bool years = m->ms.dom.lo >= FIRST_YEAR_MS;
  wl_i64 n = wl_date_n_codes(m->rest, years), packed = wl_date_packed(m->rest);
  *done = n > 0 && packed != 0 && p.n_steps == 0;
  if (!*done) return WL_OK;
  wl_domain codes = wl_domain_int(0, n - 1, wl_nullable(&m->ms));
  if (years && wl_date_ascends(m->rest)) {
    codes.lo = wl_op_DateFields(m->ms.dom.lo, packed);
    codes.hi = wl_op_DateFields(m->ms.dom.hi, packed);
  }
  wl_status rc = wl_compile_constant(c, wl_int(packed), &fields);
  if (!rc) rc = wl_compile_emit2(c, WL_OP__DateFields, &m->ms, &fields, codes, out);
  return rc ? rc : as_codes(c, m->rest, codes, out);
}

/* ---- numbers */

static wl_status number_of(wl_compiler *c, const moment *m, bool *done, wl_operand *out) {
  wl_date_plan p = wl_date_plan_of(m->rest);
  wl_status rc;
  *done = p.gives != WL_DATE_AS_TEXT && p.n_steps == 0;
  if (!*done) return WL_OK;
  switch (p.gives) {
  case WL_DATE_AS_UNIX:
    rc = arith(c, WL_OP_DIV, &m->ms, wl_int(1000), out);
    return rc ? rc : arith(c, WL_OP_SUB, out, wl_int(WL_EPOCH_MS / 1000), out);
  case WL_DATE_AS_UNIX_MS:
    rc = arith(c, WL_OP_SUB, &m->ms, wl_int(WL_EPOCH_MS), out);
    return rc ? rc : arith(c, WL_OP_DIV, out, wl_real(1000.0), out);
  default: return arith(c, WL_OP_DIV, &m->ms, wl_real(86400000.0), out);
  }
}

/* ---- all of them */

static wl_status by_moment(wl_compiler *c, const moment *m, bool *done, wl_operand *out) {
  wl_status rc = number_of(c, m, done, out);
  if (!rc && !*done && !c->entries) rc = by_map(c, m, done, out);
  if (!rc && !*done) rc = fields_of(c, m, done, out);
  return rc;
}

/* Makes the plan of a call. LEFT: the time is constant, or another argument is not. */
static wl_date_answer plan_of(wl_compiler *c, wl_native f, const wl_operand *args, int n,
                              wl_val *out) {
  int at = f == WL_NATIVE_STRFTIME ? 1 : 0;
  wl_val *v = WL_NEW_N(c->arena, wl_val, n + 1);
  if (!v) return WL_DATE_NO_MEMORY;
  if (n <= at || wl_is_const(&args[at])) return WL_DATE_LEFT;
  for (int k = 0; k < n; k++) {
    if (k != at && !wl_is_const(&args[k])) return WL_DATE_LEFT;
    if (k != at) v[k] = wl_const_value(c, &args[k]);
  }
  return wl_date_plan_make(c->arena, &c->fold, (wl_date_function)(f - WL_NATIVE_DATE), v[0],
                           v + at + 1, n - at - 1, out);
}

wl_status wl_compile_date(wl_compiler *c, wl_native f, wl_operand *args, int n, bool *done,
                          wl_operand *out) {
  int at = f == WL_NATIVE_STRFTIME ? 1 : 0;
  wl_val plan;
  wl_date_answer answer = plan_of(c, f, args, n, &plan);
  if (answer == WL_DATE_NO_MEMORY) return wl_nomem(c->err);
  if (answer == WL_DATE_LEFT) return WL_OK;
  *done = true;
  if (answer == WL_DATE_IS_NULL) return wl_compile_constant(c, wl_null(), out);
  bool taken;
  moment m;
  wl_status rc = as_moment(c, &args[at], plan, &m, &taken);
  if (!rc && taken) rc = by_moment(c, &m, &taken, out);
  if (rc || taken) return rc;
  wl_operand b;
  wl_date_plan p = wl_date_plan_of(plan);
  wl_i64 n_codes = c->entries ? 0 : wl_date_n_codes(plan, false);
  rc = plan_constant(c, plan, &b);
  if (rc) return rc;
  if (n_codes > 0) {
    wl_domain codes = wl_domain_int(0, n_codes - 1, true);
    rc = wl_compile_emit2(c, WL_OP__DateCode, &args[at], &b, codes, out);
    return rc ? rc : as_codes(c, plan, codes, out);
  }
  wl_domain d = wl_domain_any(T(TEXT) | T(NULL));
  if (p.gives == WL_DATE_AS_UNIX)
    d = wl_domain_int(-WL_EPOCH_MS / 1000, (WL_LAST_MS - WL_EPOCH_MS) / 1000, true);
  else if (p.gives != WL_DATE_AS_TEXT)
    d = wl_domain_real(-210866760000.0, 253402300800.0, true);
  return wl_compile_emit2(c, WL_OP__Date, &args[at], &b, d, out);
}

/* ---- comparisons */

/* A growing sequence of texts over integers: those of an operand with codes, or, if it is NULL,
** those of times. */
typedef struct texts {
  const wl_operand *coded;
  int_times times;
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
  int at = call->index == WL_NATIVE_STRFTIME ? 1 : 0, n = call->n_list;
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
  if (rc || plan_of(c, (wl_native)call->index, args, n, &plan) != WL_DATE_PLANNED) return rc;
  if (wl_only_null(&args[at]) || !wl_only(&args[at], T(INT))) return WL_OK;
  beginning b = beginning_of(&args[at], plan);
  if (!are_times(&args[at], &b, &t.times)) return WL_OK;
  t.plan = wl_date_plan_after(c->arena, plan, b.n_steps);
  if (t.plan.t == WL_T_NULL) return wl_nomem(c->err);
  wl_i64 first = args[at].dom.lo * t.times.scale + t.times.offset;
  t.fields = wl_date_packed(t.plan);
  if (first < FIRST_YEAR_MS || !t.fields || !wl_date_ascends(t.plan)) return WL_OK;
  *done = true;
  return compare_texts(c, call == e->a ? e->op : mirrored(e->op), &t, &args[at],
                       wl_const_value(c, &k), out);
}
