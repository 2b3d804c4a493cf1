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
#include "program/date/date.h"
#include <string.h>

#define T(x) WL_M(WL_T_##x)

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

wl_date_beginning wl_date_beginning_of(const wl_operand *a, wl_val plan) {
  int n_steps = wl_date_plan_of(plan).n_steps;
  wl_date_beginning b = {0};
  if (n_steps) {
    wl_u8 kind = wl_date_step_of(plan, 0).kind;
    bool large = wl_only(a, T(INT)) ? a->dom.lo >= 5373485 : a->dom.flo >= 5373484.5;
    b.unix = kind == WL_STEP_UNIXEPOCH || (kind == WL_STEP_AUTO && large);
    b.n_steps = kind <= WL_STEP_UNIXEPOCH;
  }
  for (; b.n_steps < n_steps; b.n_steps++) {
    wl_date_step s = wl_date_step_of(plan, (wl_u32)b.n_steps);
    bool adds = s.kind == WL_STEP_ADD || s.kind == WL_STEP_CLOCK;
    if (!adds || s.ms > WL_LAST_MS || s.ms < -WL_LAST_MS || b.later > WL_LAST_MS ||
        b.later < -WL_LAST_MS)
      break;
    b.later += s.ms;
  }
  return b;
}

bool wl_date_are_times(const wl_operand *a, const wl_date_beginning *b, wl_int_times *out) {
  wl_i64 scale = b->unix ? 1000 : WL_DAY_MS, offset = b->unix ? WL_EPOCH_MS : 0;
  for (int k = 0; k < 2; k++, offset += b->later) {
    __int128 lo = (__int128)a->dom.lo * scale + offset, hi = (__int128)a->dom.hi * scale + offset;
    if (lo < 0 || hi > WL_LAST_MS) return false;
  }
  *out = (wl_int_times){*a, scale, offset - b->later};
  return true;
}

/* Times in milliseconds, and what is left of the plan. */
typedef struct moment {
  wl_operand ms;
  wl_val rest;
} moment;

static wl_status as_moment(wl_compiler *c, const wl_operand *a, wl_val plan, moment *m,
                           bool *done) {
  wl_int_times t;
  *done = false;
  if (wl_only_null(a) || !(wl_only(a, T(INT)) || wl_only(a, T(REAL)))) return WL_OK;
  wl_date_beginning b = wl_date_beginning_of(a, plan);
  m->rest = wl_date_plan_after(c->arena, plan, b.n_steps);
  if (m->rest.t == WL_T_NULL) return wl_nomem(c->err);
  if (wl_only(a, T(REAL))) return from_reals(c, a, b.unix, b.later, &m->ms, done);
  *done = wl_date_are_times(a, &b, &t);
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
  bool years = m->ms.dom.lo >= WL_FIRST_YEAR_MS;
  wl_i64 n = wl_date_n_codes(m->rest, years), packed = p.fields;
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

wl_date_answer wl_date_plan_of_call(wl_compiler *c, wl_native f, const wl_operand *args, int n,
                                    wl_val *out) {
  int at = wl_date_time_at(f);
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
  int at = wl_date_time_at(f);
  wl_val plan;
  wl_date_answer answer = wl_date_plan_of_call(c, f, args, n, &plan);
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
