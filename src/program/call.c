/*
** Functions: emits an opcode if there is one and the arguments allow it, otherwise a call into
** SQLite. Only the CPU can run such calls.
**
** Invariants:
** 1. A call with constant arguments runs at once. If it fails or asks for the current time, SQLite
**    runs the statement.
** 2. At run time the result of a call is checked against the register's type.
*/
#include "program/compile_impl.h"
#include "value/calls.h"
#include <string.h>

#define T(x) WL_M(WL_T_##x)

static bool is_numeric(const wl_operand *o) {
  return wl_only(o, T(INT)) || wl_only(o, T(REAL));
}

static wl_status choose(wl_compiler *c, const wl_operand *when, const wl_operand *then,
                        const wl_operand *otherwise, wl_domain d, wl_operand *out) {
  if (wl_is_const(when)) {
    wl_val v = wl_const_value(c, when);
    *out = v.t != WL_T_NULL && v.v ? *then : *otherwise;
    return WL_OK;
  }
  unsigned types = d.mask & ~T(NULL);
  wl_opcode op = types == T(INT)    ? WL_OP__SelectI
                 : types == T(REAL) ? WL_OP__SelectF
                                    : WL_OP__SelectV;
  return wl_compile_emit(c, op, then, otherwise, when, 0, d, out);
}

/* abs() of an integer or a real. Text is left to a call, and so is -9223372036854775808, for which
** SQLite raises an error. */
static wl_status abs_of(wl_compiler *c, wl_operand *a, bool *done, wl_operand *out) {
  wl_operand zero, minus, below;
  bool real = wl_only(a, T(REAL));
  if (!is_numeric(a) || (!real && a->dom.lo == WL_I64_MIN)) return WL_OK;
  *done = true;
  wl_status rc = wl_compile_constant(c, real ? wl_real(0.0) : wl_int(0), &zero);
  wl_operand x = *a, y = zero;
  if (!rc) rc = wl_compile_arith(c, WL_OP_SUB, &y, &x, &minus);
  wl_operand l = *a, z = zero;
  if (!rc) rc = wl_compile_compare(c, WL_OP_LT, '@', WL_COLL_BINARY, &l, &z, &below);
  if (rc) return rc;
  wl_domain d = wl_domain_union(minus.dom, a->dom);
  if (real)
    d.flo = 0;
  else
    d.lo = 0;
  return choose(c, &below, &minus, a, d, out);
}

/* sign() of numbers: -1, 0 or 1. */
static wl_status sign_of(wl_compiler *c, wl_operand *a, bool *done, wl_operand *out) {
  if (!is_numeric(a)) return WL_OK;
  *done = true;
  wl_operand zero, one, below, above, minus, l, z, part;
  wl_status rc = wl_compile_constant(c, wl_int(0), &zero);
  if (!rc) rc = wl_compile_constant(c, wl_int(1), &one);
  l = *a, z = zero;
  if (!rc) rc = wl_compile_compare(c, WL_OP_GT, '@', WL_COLL_BINARY, &l, &z, &above);
  l = *a, z = zero;
  if (!rc) rc = wl_compile_compare(c, WL_OP_LT, '@', WL_COLL_BINARY, &l, &z, &below);
  if (!rc) rc = wl_compile_value(c, &above);
  if (!rc) rc = wl_compile_value(c, &below);
  /* (a > 0) - (a < 0), NULL if a is NULL */
  part = above, minus = below;
  return rc ? rc : wl_compile_arith(c, WL_OP_SUB, &part, &minus, out);
}

/* round() with one argument: the opcode rounds reals, and integers stay as they are. */
static wl_status round_of(wl_compiler *c, wl_operand *a, bool *done, wl_operand *out) {
  if (!is_numeric(a)) return WL_OK;
  *done = true;
  wl_status rc = wl_only(a, T(INT)) ? wl_compile_real(c, a) : WL_OK;
  wl_domain d = wl_domain_real(a->dom.flo - 0.5, a->dom.fhi + 0.5, wl_nullable(a));
  return rc ? rc : wl_compile_emit(c, WL_OP__RoundF, a, &wl_no_operand, &wl_no_operand, 0, d, out);
}

static wl_status typeof_of(wl_compiler *c, wl_operand *a, bool *done, wl_operand *out) {
  static const char *const names[] = {"null", "integer", "real", "text", "blob"};
  unsigned types = a->dom.mask & ~T(NULL);
  if (types & (types - 1)) return WL_OK; /* several types: they differ from row to row */
  wl_operand name, null, is;
  int t = 0;
  while (types >> t > 1) t++;
  *done = true;
  wl_status rc = wl_compile_constant(
      c, wl_text((const wl_u8 *)names[types ? t : 0], (wl_u32)strlen(names[types ? t : 0])), &name);
  if (!rc) rc = wl_compile_constant(c, wl_text((const wl_u8 *)"null", 4), &null);
  if (!rc) rc = wl_compile_is_null(c, a, &is);
  return rc ? rc : choose(c, &is, &null, &name, wl_domain_any(T(TEXT)), out);
}

static wl_status text_op(wl_compiler *c, wl_opcode op, wl_operand *a, wl_domain d, bool *done,
                         wl_operand *out) {
  *done = true;
  if (wl_only_null(a)) return wl_compile_constant(c, wl_null(), out);
  if (wl_nullable(a)) d.mask |= T(NULL);
  return wl_compile_emit(c, op, a, &wl_no_operand, &wl_no_operand, 0, d, out);
}

/*
** LIKE and GLOB with a constant pattern and without blobs. (SQLite may have been built so that
** blobs never match. It checks this before a NULL in ESCAPE.) Errors are left to SQLite: a pattern
** that is too long, which it checks before ESCAPE, and an ESCAPE with several characters.
*/
static wl_status like_of(wl_compiler *c, wl_native f, wl_operand *args, int n, bool *done,
                         wl_operand *out) {
  wl_val pattern, escape = wl_null();
  wl_u32 escape_char = 0;
  if (!wl_is_const(&args[0]) || wl_has(&args[1], WL_T_BLOB) || args[1].truth) return WL_OK;
  pattern = wl_const_value(c, &args[0]);
  if (pattern.t == WL_T_BLOB || pattern.t == WL_T_REAL) return WL_OK;
  if (pattern.t != WL_T_NULL) {
    wl_status rc = wl_compile_text(c, &args[0]);
    if (rc) return rc;
    pattern = wl_const_value(c, &args[0]);
    if (pattern.n > (wl_u32)c->in->max_pattern)
      return wl_not_taken(c->err, "the pattern of LIKE or GLOB is too long");
  }
  if (n == 3) {
    if (!wl_is_const(&args[2])) return WL_OK;
    escape = wl_const_value(c, &args[2]);
    if (escape.t == WL_T_NULL) {
      *done = true;
      return wl_compile_constant(c, wl_null(), out);
    }
    wl_u32 at = 0;
    if (escape.t != WL_T_TEXT) return WL_OK;
    escape_char = wl_utf8_next(wl_bytes(escape), escape.n, &at);
    if (escape_char == 0 || at != escape.n || escape_char > 0x7fff) return WL_OK;
  }
  *done = true;
  wl_status rc = wl_compile_text(c, &args[1]);
  if (rc) return rc;
  if (pattern.t == WL_T_NULL || wl_only_null(&args[1]))
    rc = wl_compile_constant(c, wl_null(), out);
  else
    return wl_compile_emit(c, f == WL_NATIVE_LIKE ? WL_OP__Like : WL_OP__Glob, &args[1], &args[0],
                           &wl_no_operand, (int)escape_char,
                           wl_domain_int(0, 1, wl_nullable(&args[1])), out);
  out->truth = true;
  return rc;
}

/* Whether a constant is a 32-bit integer, which every version of SQLite accepts unchanged. */
static bool small_int(const wl_compiler *c, const wl_operand *o, wl_i64 *out) {
  if (!wl_is_const(o)) return false;
  wl_val v = wl_const_value(c, o);
  *out = (wl_i64)v.v;
  return v.t == WL_T_INT && *out > -0x7fffffffLL && *out < 0x7fffffffLL;
}

/* substr(), instr() and trim() of text, with constants where the opcodes need them. */
static wl_status text_of(wl_compiler *c, wl_native f, wl_operand *args, int n, bool *done,
                         wl_operand *out) {
  wl_i64 first = 0, count = 0x7fffffff;
  wl_operand b;
  wl_status rc = WL_OK;
  for (int k = 0; k < n; k++)
    if (wl_has(&args[k], WL_T_BLOB) || wl_only_null(&args[k])) return WL_OK;
  wl_opcode op = f == WL_NATIVE_SUBSTR  ? WL_OP__Substr
                 : f == WL_NATIVE_INSTR ? WL_OP__Instr
                                        : WL_OP__Trim;
  int sides = f == WL_NATIVE_LTRIM ? 1 : f == WL_NATIVE_RTRIM ? 2 : f == WL_NATIVE_TRIM ? 3 : 0;
  wl_domain d = wl_domain_any(T(TEXT));
  if (op == WL_OP__Substr) {
    if (n < 2 || !small_int(c, &args[1], &first) || (n > 2 && !small_int(c, &args[2], &count)))
      return WL_OK;
    rc = wl_compile_constant(
        c, wl_int((wl_i64)((wl_u64)first << 32 | ((wl_u64)count & 0xffffffffu))), &b);
  } else if (op == WL_OP__Instr) {
    if (n != 2) return WL_OK;
    b = args[1];
    rc = wl_compile_text(c, &b);
    d = wl_domain_int(0, 0xffffffffLL, false);
  } else {
    if (n == 2 && (!wl_is_const(&args[1]) || wl_const_value(c, &args[1]).t != WL_T_TEXT))
      return WL_OK;
    if (n == 2)
      b = args[1];
    else
      rc = wl_compile_constant(c, wl_text((const wl_u8 *)" ", 1), &b);
  }
  *done = true;
  if (!rc) rc = wl_compile_text(c, &args[0]);
  if (wl_nullable(&args[0]) || wl_nullable(&b)) d.mask |= T(NULL);
  return rc ? rc : wl_compile_emit(c, op, &args[0], &b, &wl_no_operand, sides, d, out);
}

static wl_status native(wl_compiler *c, wl_native f, wl_operand *args, int n, bool *done,
                        wl_operand *out) {
  wl_operand *a = &args[0];
  *done = false;
  if (f == WL_NATIVE_LIKE || f == WL_NATIVE_GLOB)
    return n >= 2 ? like_of(c, f, args, n, done, out) : WL_OK;
  if (f >= WL_NATIVE_SUBSTR && f <= WL_NATIVE_RTRIM)
    return n >= 1 ? text_of(c, f, args, n, done, out) : WL_OK;
  if (f >= WL_NATIVE_DATE) return wl_compile_date(c, f, args, n, done, out);
  if (f == WL_NATIVE_NONE || n != 1) return WL_OK;
  if (wl_only_null(a) && f != WL_NATIVE_TYPEOF) {
    *done = true;
    return wl_compile_constant(c, wl_null(), out);
  }
  wl_status rc;
  switch (f) {
  case WL_NATIVE_ABS: return abs_of(c, a, done, out);
  case WL_NATIVE_SIGN: return sign_of(c, a, done, out);
  case WL_NATIVE_ROUND: return round_of(c, a, done, out);
  case WL_NATIVE_TYPEOF: return typeof_of(c, a, done, out);
  case WL_NATIVE_LENGTH:
    /* a number is used as its text */
    rc = wl_has(a, WL_T_INT) || wl_has(a, WL_T_REAL) ? wl_has(a, WL_T_BLOB) : 0;
    if (rc) return WL_OK;
    rc = wl_has(a, WL_T_BLOB) ? WL_OK : wl_compile_text(c, a);
    return rc ? rc : text_op(c, WL_OP__Length, a, wl_domain_int(0, 0xffffffffLL, false), done, out);
  case WL_NATIVE_UPPER:
  case WL_NATIVE_LOWER:
    rc = wl_compile_text(c, a);
    return rc ? rc
              : text_op(c, f == WL_NATIVE_UPPER ? WL_OP__Upper : WL_OP__Lower, a,
                        wl_domain_any(T(TEXT)), done, out);
  default: return WL_OK;
  }
}

/* Emits the call, or runs it at once if all arguments are constants. */
static wl_status call(wl_compiler *c, const wl_bexpr *e, const wl_operand *args, wl_operand *out) {
  wl_program *p = c->p;
  bool constant = true;
  for (int k = 0; k < e->n_list; k++) constant &= wl_is_const(&args[k]);
  if (constant) {
    wl_val *v = WL_NEW_N(c->arena, wl_val, e->n_list + 1);
    if (!v) return wl_nomem(c->err);
    for (int k = 0; k < e->n_list; k++) v[k] = wl_const_value(c, &args[k]);
    c->fault = WL_FAULT_NONE;
    bool *varies = WL_NEW_N(c->arena, bool, e->n_list + 1); /* no argument varies */
    if (!varies) return wl_nomem(c->err);
    wl_val r = wl_null();
    wl_call_rows one = {.text = e->text,
                        .args = v,
                        .varies = varies,
                        .n_args = e->n_list,
                        .n = 1,
                        .of_time = e->of_time,
                        .max_pattern = c->in->max_pattern};
    wl_calls_run(&c->fold, &one, &r);
    wl_status stopped = c->in->check ? c->in->check(c->in->check_arg, c->err) : WL_OK;
    if (stopped) return stopped;
    if (c->fault == WL_FAULT_ROOM) return wl_nomem(c->err);
    if (c->fault)
      return wl_not_taken(c->err, "%s raises an error or asks for the current time", e->text);
    return wl_compile_constant(c, r, out);
  }
  if (e->n_list > WL_CALL_ARGS)
    return wl_not_taken(c->err, "a function with more than %d arguments", WL_CALL_ARGS);
  wl_status rc = wl_compile_room(c, (void **)&p->calls, p->n_calls, &c->size_calls,
                                 sizeof *p->calls, WL_MAX_REGS);
  wl_i16 *list = rc ? NULL : WL_NEW_N(c->arena, wl_i16, e->n_list);
  if (rc || !list) return rc ? rc : wl_nomem(c->err);
  for (int k = 0; k < e->n_list; k++) list[k] = args[k].x;
  p->calls[p->n_calls++] = (wl_call){e->text, list, e->n_list, e->of_time, e->fallible, e->gives};
  memset(out, 0, sizeof *out);
  out->dom = wl_domain_any(e->gives);
  return wl_compile_reg(c, WL_OP__Call, wl_domain_reg(out->dom), 0, 0, (wl_i16)(p->n_calls - 1),
                        &out->x);
}

wl_status wl_compile_call(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_operand *args = WL_NEW_N(c->arena, wl_operand, e->n_list + 1);
  if (!args) return wl_nomem(c->err);
  wl_status rc = WL_OK;
  for (int k = 0; k < e->n_list && !rc; k++) {
    rc = wl_compile_expr(c, e->list[k], &args[k]);
    if (!rc) rc = wl_compile_value(c, &args[k]);
  }
  bool done = false;
  if (!rc) rc = native(c, (wl_native)e->index, args, e->n_list, &done, out);
  if (rc || done) return rc;
  for (int k = 0; k < e->n_list && !rc; k++) { /* compile again: the native attempt may already have
                                               ** converted some */
    rc = wl_compile_expr(c, e->list[k], &args[k]);
    if (!rc) rc = wl_compile_value(c, &args[k]);
  }
  return rc ? rc : call(c, e, args, out);
}
