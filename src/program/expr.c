/*
** Expressions: one pass over the bound graph, a register per distinct value. Part of the compiler;
** compile.c asks for the expressions of each block, call.c does functions, entries.c what needs
** doing once per dictionary entry only.
**
** Invariants:
** 1. An operand is a constant or a register of the block being compiled, with the domain
**    of its values; the register's type follows from the domain alone (wl_domain_reg).
** 2. Opcodes are pure, so an instruction that stands in the block already is not
**    written again.
*/
#include "program/compile_impl.h"
#include "value/conv.h"
#include <stdlib.h>
#include <string.h>

/* ---- emitting */

/* Doubles an arena array when it is full. */
wl_status wl_compile_room(wl_compiler *c, void **array, int n, int *size, size_t width, int most) {
  if (n < *size) return WL_OK;
  if (n >= most) return wl_not_taken(c->err, "the query needs more than %d operations", most);
  int more = *size ? *size * 2 : 32;
  void *p = wl_arena_alloc(c->arena, (size_t)more * width);
  if (!p) return wl_nomem(c->err);
  if (n) memcpy(p, *array, (size_t)n * width);
  *array = p;
  *size = more;
  return WL_OK;
}

wl_status wl_compile_constant(wl_compiler *c, wl_val v, wl_operand *out) {
  wl_program *p = c->p;
  memset(out, 0, sizeof *out);
  out->dom = wl_domain_of(v);
  for (int k = p->n_consts > 256 ? p->n_consts - 256 : 0; k < p->n_consts; k++) {
    if (p->consts[k].t == v.t && p->consts[k].v == v.v && p->consts[k].n == v.n) {
      out->x = WL_CONST(k);
      return WL_OK;
    }
  }
  wl_status rc = wl_compile_room(c, (void **)&p->consts, p->n_consts, &c->size_consts,
                                 sizeof *p->consts, WL_MAX_REGS);
  if (rc) return rc;
  if (v.t >= WL_T_TEXT) {
    char *copy = wl_arena_strndup(c->arena, (const char *)wl_bytes(v), v.n);
    if (!copy) return wl_nomem(c->err);
    v.v = (wl_u64)(size_t)copy;
  }
  out->x = WL_CONST(p->n_consts);
  p->consts[p->n_consts++] = v;
  return WL_OK;
}

wl_status wl_compile_append(wl_compiler *c, wl_instr in) {
  wl_program *p = c->p;
  wl_status rc = wl_compile_room(c, (void **)&p->code, p->n_code, &c->size_code, sizeof *p->code,
                                 WL_MAX_INSTR);
  if (!rc) p->code[p->n_code++] = in;
  if (wl_opcodes[in.op].host_only && p->host_op < 0) p->host_op = in.op;
  return rc;
}

/* The result of op into a register of type r, from an equal instruction if there is one. */
wl_status wl_compile_reg(wl_compiler *c, wl_opcode op, wl_reg r, wl_i16 a, wl_i16 b, wl_i16 k,
                         wl_i16 *out) {
  wl_program *p = c->p;
  int first = p->n_code - c->stage > 500 ? p->n_code - 500 : c->stage;
  for (int i = first; i < p->n_code; i++) {
    const wl_instr *q = &p->code[i];
    if (q->op == op && q->a == a && q->b == b && q->c == k &&
        wl_shapes[wl_opcodes[op].shape][0] != ' ' && p->regs[q->d].type == r.type &&
        p->regs[q->d].nullable == r.nullable) {
      *out = q->d;
      return WL_OK;
    }
  }
  wl_status rc =
      wl_compile_room(c, (void **)&p->regs, p->n_regs, &c->size_regs, sizeof *p->regs, WL_MAX_REGS);
  if (rc) return rc;
  p->regs[p->n_regs] = r;
  *out = (wl_i16)p->n_regs++;
  return wl_compile_append(c, (wl_instr){op, *out, a, b, k});
}

const wl_operand wl_no_operand = {.x = WL_CONST(0)};

/* op over a, b and truth t or number k, folded when all are constants. dom: what it yields. */
wl_status wl_compile_emit(wl_compiler *c, wl_opcode op, const wl_operand *a, const wl_operand *b,
                          const wl_operand *t, int k, wl_domain dom, wl_operand *out) {
  const char *want = wl_shapes[wl_opcodes[op].shape];
  bool has_b = want[2] != ' ', has_t = want[3] != ' ';
  if (wl_is_const(a) && (!has_b || wl_is_const(b)) && (!has_t || wl_is_const(t))) {
    wl_val v;
    wl_val bv = has_b ? wl_const_value(c, b) : wl_null(),
           tv = has_t ? wl_const_value(c, t) : wl_null();
    if (wl_fold(&c->fold, op, wl_const_value(c, a), bv, tv, k, &v)) {
      if (c->fault == WL_FAULT_TOOBIG)
        return wl_not_taken(c->err, "a constant is too big a string");
      if (c->fault) return wl_nomem(c->err);
      wl_status rc = wl_compile_constant(c, v, out);
      out->truth = want[0] == 'B';
      return rc;
    }
  }
  if ((dom.mask & ~WL_M(WL_T_NULL)) == 0 && want[0] != 'B')
    return wl_compile_constant(c, wl_null(), out);
  wl_i16 ax = a->x, bx = has_b ? b->x : 0,
         cx = has_t ? t->x : (wl_i16)k; /* out may be one of them */
  memset(out, 0, sizeof *out);
  out->dom = dom;
  out->truth = want[0] == 'B';
  wl_reg r = wl_domain_reg(dom);
  if (want[0] == 'I') r.type = WL_R_INT;
  if (want[0] == 'F') r.type = WL_R_REAL;
  if (want[0] == 'B') r = (wl_reg){WL_R_TRUTH, false};
  return wl_compile_reg(c, op, r, ax, bx, cx, &out->x);
}
static wl_status emit2(wl_compiler *c, wl_opcode op, const wl_operand *a, const wl_operand *b,
                       wl_domain dom, wl_operand *out) {
  return wl_compile_emit(c, op, a, b, &wl_no_operand, 0, dom, out);
}
static wl_status emit1(wl_compiler *c, wl_opcode op, const wl_operand *a, wl_domain dom,
                       wl_operand *out) {
  return wl_compile_emit(c, op, a, &wl_no_operand, &wl_no_operand, 0, dom, out);
}

static wl_domain truth_domain(bool null) {
  return wl_domain_int(0, 1, null);
}

/* ---- conversions between operand types */

/* A truth as the integer 0, 1 or NULL; other operands as they are. */
wl_status wl_compile_value(wl_compiler *c, wl_operand *o) {
  if (!o->truth) return WL_OK;
  o->truth = false;
  if (wl_is_const(o)) return WL_OK;
  return emit1(c, WL_OP__TruthToInt, o, o->dom, o);
}

wl_status wl_compile_real(wl_compiler *c, wl_operand *o) {
  if (wl_only_null(o) && wl_is_const(o)) return WL_OK;
  if (!wl_has(o, WL_T_INT) && !wl_only_null(o)) return WL_OK;
  double lo = o->dom.lo > o->dom.hi ? 0 : (double)o->dom.lo,
         hi = o->dom.lo > o->dom.hi ? 0 : (double)o->dom.hi;
  return emit1(c, WL_OP__IntToReal, o, wl_domain_real(lo, hi, wl_nullable(o)), o);
}

static wl_status as_int(wl_compiler *c, wl_operand *o) {
  wl_status rc = wl_compile_value(c, o);
  if (rc || wl_only(o, WL_M(WL_T_INT))) return rc;
  wl_domain full = wl_domain_int(WL_I64_MIN, WL_I64_MAX, wl_nullable(o));
  if (!wl_only(o, WL_M(WL_T_REAL))) return emit1(c, WL_OP__ToInt, o, full, o);
  full.lo = wl_f64_to_i64(o->dom.flo);
  full.hi = wl_f64_to_i64(o->dom.fhi);
  return emit1(c, WL_OP__RealToInt, o, full, o);
}

wl_status wl_compile_text(wl_compiler *c, wl_operand *o) {
  wl_status rc = wl_compile_value(c, o);
  if (rc || wl_only(o, WL_M(WL_T_TEXT))) return rc;
  wl_domain d = wl_domain_any(WL_M(WL_T_TEXT) | (o->dom.mask & WL_M(WL_T_NULL)));
  return emit1(c, wl_has(o, WL_T_REAL) ? WL_OP__ToText : WL_OP__IntToText, o, d, o);
}

static wl_status as_truth(wl_compiler *c, wl_operand *o) {
  if (o->truth) return WL_OK;
  wl_domain d = truth_domain(wl_nullable(o));
  if (wl_is_const(o) && wl_only_null(o)) {
    o->truth = true;
    return WL_OK;
  }
  if (!wl_only(o, WL_M(WL_T_INT) | WL_M(WL_T_REAL))) {
    wl_status rc = emit1(c, WL_OP__CastReal, o,
                         wl_domain_real(-__builtin_inf(), __builtin_inf(), wl_nullable(o)), o);
    if (rc) return rc;
  }
  wl_opcode op = wl_only(o, WL_M(WL_T_INT))    ? WL_OP__TruthI
                 : wl_only(o, WL_M(WL_T_REAL)) ? WL_OP__TruthF
                                               : WL_OP__TruthV;
  return emit1(c, op, o, d, o);
}

/* ---- operators */

wl_status wl_compile_arith(wl_compiler *c, wl_op op, wl_operand *a, wl_operand *b,
                           wl_operand *out) {
  static const wl_opcode table[][3] = {
      [WL_OP_ADD] = {WL_OP__AddI, WL_OP__AddF, WL_OP__AddV},
      [WL_OP_SUB] = {WL_OP__SubI, WL_OP__SubF, WL_OP__SubV},
      [WL_OP_MUL] = {WL_OP__MulI, WL_OP__MulF, WL_OP__MulV},
      [WL_OP_DIV] = {WL_OP__DivI, WL_OP__DivF, WL_OP__DivV},
      [WL_OP_REM] = {WL_OP__RemI, WL_OP__RemF, WL_OP__RemV},
  };
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL);
  wl_status rc = wl_compile_value(c, a);
  if (!rc) rc = wl_compile_value(c, b);
  if (rc) return rc;
  if (!wl_only(a, I | F) || !wl_only(b, I | F)) {
    int sign = op == WL_OP_ADD   ? '+'
               : op == WL_OP_SUB ? '-'
               : op == WL_OP_MUL ? '*'
               : op == WL_OP_DIV ? '/'
                                 : '%';
    return wl_compile_emit(c, WL_OP__TextArith, a, b, &wl_no_operand, sign,
                           wl_domain_any(I | F | WL_M(WL_T_NULL)), out);
  }
  if (wl_only_null(a) || wl_only_null(b)) return wl_compile_constant(c, wl_null(), out);
  bool null = wl_nullable(a) || wl_nullable(b), by = op == WL_OP_DIV || op == WL_OP_REM;
  wl_i64 lo, hi;
  if (wl_only(a, I) && wl_only(b, I) && wl_domain_arith_int(op, &a->dom, &b->dom, &lo, &hi)) {
    if (by && b->dom.lo <= 0 && b->dom.hi >= 0) null = true;
    return emit2(c, table[op][0], a, b, wl_domain_int(lo, hi, null), out);
  }
  /* % of an integer and a real takes the integer as it is, not through a real */
  bool mixed = wl_only(a, I) != wl_only(b, I);
  if ((wl_only(a, I) || wl_only(a, F)) && (wl_only(b, I) || wl_only(b, F)) &&
      !(wl_only(a, I) && wl_only(b, I)) && !(mixed && op == WL_OP_REM)) {
    double flo, fhi;
    bool nan;
    rc = wl_compile_real(c, a);
    if (!rc) rc = wl_compile_real(c, b);
    if (rc) return rc;
    wl_domain_arith_real(op, &a->dom, &b->dom, &flo, &fhi, &nan);
    return emit2(c, table[op][1], a, b, wl_domain_real(flo, fhi, null || nan), out);
  }
  /* Numbers of both kinds: the rows decide. NULL comes also from Inf - Inf and the like. */
  bool ints = wl_only(a, I) && wl_only(b, I);
  wl_domain d = wl_domain_any(I | F | (null || by || !ints ? WL_M(WL_T_NULL) : 0));
  if (ints) {
    d.flo = -1e39;
    d.fhi = 1e39;
  } else if (!by) {
    wl_domain_arith_mixed(op, &a->dom, &b->dom, null, &d);
  }
  return emit2(c, table[op][2], a, b, d, out);
}

static wl_status bits(wl_compiler *c, wl_op op, wl_operand *a, wl_operand *b, wl_operand *out) {
  wl_opcode code = op == WL_OP_BITAND  ? WL_OP__BitAndI
                   : op == WL_OP_BITOR ? WL_OP__BitOrI
                   : op == WL_OP_SHL   ? WL_OP__ShlI
                                       : WL_OP__ShrI;
  wl_i64 lo, hi;
  wl_status rc = as_int(c, a);
  if (!rc) rc = as_int(c, b);
  if (rc) return rc;
  if (wl_only_null(a) || wl_only_null(b)) return wl_compile_constant(c, wl_null(), out);
  if (!wl_domain_arith_int(op, &a->dom, &b->dom, &lo, &hi)) return WL_ERROR;
  return emit2(c, code, a, b, wl_domain_int(lo, hi, wl_nullable(a) || wl_nullable(b)), out);
}

static wl_status arith_node(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_operand a, b;
  wl_status rc = wl_compile_expr(c, e->a, &a);
  if (!rc && e->b) rc = wl_compile_expr(c, e->b, &b);
  if (rc) return rc;
  switch (e->op) {
  case WL_OP_BITNOT:
    rc = as_int(c, &a);
    if (rc) return rc;
    if (wl_only_null(&a)) return wl_compile_constant(c, wl_null(), out);
    return emit1(c, WL_OP__BitNotI, &a, wl_domain_int(WL_I64_MIN, WL_I64_MAX, wl_nullable(&a)),
                 out);
  case WL_OP_BITAND:
  case WL_OP_BITOR:
  case WL_OP_SHL:
  case WL_OP_SHR: return bits(c, e->op, &a, &b, out);
  case WL_OP_CONCAT:
    rc = wl_compile_text(c, &a);
    if (!rc) rc = wl_compile_text(c, &b);
    if (rc) return rc;
    if (wl_only_null(&a) || wl_only_null(&b)) return wl_compile_constant(c, wl_null(), out);
    return emit2(
        c, WL_OP__Concat, &a, &b,
        wl_domain_with_null(wl_domain_any(WL_M(WL_T_TEXT)), wl_nullable(&a) || wl_nullable(&b)),
        out);
  default: return wl_compile_arith(c, e->op, &a, &b, out);
  }
}

/* What SQLite does to both sides of a comparison first. */
wl_status wl_compile_affinity(wl_compiler *c, char affinity, wl_operand *a, wl_operand *b) {
  const unsigned T = WL_M(WL_T_TEXT), N = WL_M(WL_T_INT) | WL_M(WL_T_REAL);
  wl_operand *side[2] = {a, b};
  wl_domain before[2] = {a->dom, b->dom};
  wl_operand was[2] = {*a, *b};
  for (int k = 0; k < 2; k++) {
    wl_operand *o = side[k];
    wl_status rc = WL_OK;
    if (affinity >= 'C' && (before[k].mask & T)) {
      rc = emit1(c, WL_OP__NumAffinity, o, wl_domain_union(o->dom, wl_domain_any(N)), o);
    } else if (affinity == 'B' && (before[k].mask & N) && (before[1 - k].mask & T)) {
      wl_domain d = o->dom;
      d.mask |= T;
      if ((before[1 - k].mask & ~T & ~WL_M(WL_T_NULL)) == 0 && !wl_has(o, WL_T_BLOB))
        rc = wl_compile_text(c, o);
      else
        rc = emit2(c, WL_OP__TextAffinity, o, &was[1 - k], d, o);
    }
    if (rc) return rc;
  }
  return WL_OK;
}

static bool exact_as_real(const wl_operand *o) {
  return o->dom.lo >= -(1LL << 53) && o->dom.hi <= (1LL << 53);
}

wl_status wl_compile_compare(wl_compiler *c, wl_op op, char affinity, int coll, wl_operand *a,
                             wl_operand *b, wl_operand *out) {
  static const wl_opcode table[][3] = {
      [WL_OP_EQ] = {WL_OP__EqI, WL_OP__EqF, WL_OP__EqV},
      [WL_OP_NE] = {WL_OP__NeI, WL_OP__NeF, WL_OP__NeV},
      [WL_OP_LT] = {WL_OP__LtI, WL_OP__LtF, WL_OP__LtV},
      [WL_OP_LE] = {WL_OP__LeI, WL_OP__LeF, WL_OP__LeV},
      [WL_OP_GT] = {WL_OP__GtI, WL_OP__GtF, WL_OP__GtV},
      [WL_OP_GE] = {WL_OP__GeI, WL_OP__GeF, WL_OP__GeV},
  };
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL);
  wl_status rc = wl_compile_value(c, a);
  if (!rc) rc = wl_compile_value(c, b);
  if (!rc) rc = wl_compile_affinity(c, affinity, a, b);
  if (rc) return rc;
  if (wl_only_null(a) || wl_only_null(b)) {
    rc = wl_compile_constant(c, wl_null(), out);
    out->truth = true;
    return rc;
  }
  wl_domain d = truth_domain(wl_nullable(a) || wl_nullable(b));
  if (wl_only(a, I) && wl_only(b, I)) return emit2(c, table[op][0], a, b, d, out);
  if ((wl_only(a, F) || (wl_only(a, I) && exact_as_real(a))) &&
      (wl_only(b, F) || (wl_only(b, I) && exact_as_real(b)))) {
    rc = wl_compile_real(c, a);
    if (!rc) rc = wl_compile_real(c, b);
    return rc ? rc : emit2(c, table[op][1], a, b, d, out);
  }
  return wl_compile_emit(c, table[op][2], a, b, &wl_no_operand, coll, d, out);
}

wl_status wl_compile_is_null(wl_compiler *c, wl_operand *a, wl_operand *out) {
  wl_status rc;
  if (!wl_nullable(a) || (wl_is_const(a) && wl_only_null(a))) {
    rc = wl_compile_constant(c, wl_int(wl_nullable(a)), out);
    out->truth = true;
    return rc;
  }
  return emit1(c, WL_OP__IsNull, a, truth_domain(false), out);
}

static wl_status is_node(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_operand a, b;
  wl_status rc = wl_compile_expr(c, e->a, &a);
  if (!rc) rc = wl_compile_expr(c, e->b, &b);
  if (!rc) rc = wl_compile_value(c, &a);
  if (!rc) rc = wl_compile_value(c, &b);
  if (rc) return rc;
  if (wl_is_const(&b) && wl_only_null(&b)) return wl_compile_is_null(c, &a, out);
  if (wl_is_const(&a) && wl_only_null(&a)) return wl_compile_is_null(c, &b, out);
  if (!wl_nullable(&a) && !wl_nullable(&b))
    return wl_compile_compare(c, WL_OP_EQ, e->cmp_affinity, e->cmp_coll, &a, &b, out);
  rc = wl_compile_affinity(c, e->cmp_affinity, &a, &b);
  return rc ? rc
            : wl_compile_emit(c, WL_OP__IsV, &a, &b, &wl_no_operand, e->cmp_coll,
                              truth_domain(false), out);
}

/* a AND b, a OR b, of truths */
static wl_status either(wl_compiler *c, bool and, wl_operand *a, wl_operand *b, wl_operand *out) {
  /* A constant side that decides, or that does not matter. */
  for (int k = 0; k < 2; k++) {
    wl_operand *x = k ? b : a, *y = k ? a : b;
    if (!wl_is_const(x) || wl_const_value(c, x).t == WL_T_NULL) continue;
    *out = (wl_const_value(c, x).v != 0) == and? *y : *x;
    return WL_OK;
  }
  return emit2(c, and? WL_OP__And : WL_OP__Or, a, b, truth_domain(wl_nullable(a) || wl_nullable(b)),
               out);
}

/* ---- IN */

/* x = list[first] OR … up to end, as a tree: the list may be longer than the stack is deep. */
static wl_status in_any(wl_compiler *c, const wl_bexpr *e, int first, int end, wl_operand *out) {
  wl_operand x, y;
  if (end - first == 1) {
    wl_status rc = wl_compile_expr(c, e->a, &x);
    if (!rc) rc = wl_compile_expr(c, e->list[first], &y);
    return rc ? rc : wl_compile_compare(c, WL_OP_EQ, e->cmp_affinity, e->cmp_coll, &x, &y, out);
  }
  int mid = first + (end - first) / 2;
  wl_status rc = in_any(c, e, first, mid, &x);
  if (!rc) rc = in_any(c, e, mid, end, &y);
  return rc ? rc : either(c, false, &x, &y, out);
}

static int by_value(const void *a, const void *b, void *coll) {
  return wl_cmp_val(*(const wl_val *)a, *(const wl_val *)b, *(wl_u8 *)coll);
}

static void sort_set(wl_inset *s) {
  qsort_r(s->v, (size_t)s->n, sizeof *s->v, by_value, &s->coll);
  wl_i64 n = 0;
  for (wl_i64 k = 0; k < s->n; k++)
    if (k == 0 || wl_cmp_val(s->v[n - 1], s->v[k], s->coll) != 0) s->v[n++] = s->v[k];
  s->n = n;
}

/* A constant of the list as x's affinity makes it; *ok: it is one. */
static wl_status in_constant(wl_compiler *side, const wl_bexpr *e, char affinity, bool x_text,
                             wl_val *out, bool *ok) {
  const unsigned N = WL_M(WL_T_INT) | WL_M(WL_T_REAL);
  wl_operand y;
  wl_status rc = wl_compile_expr(side, e, &y);
  if (!rc) rc = wl_compile_value(side, &y);
  *ok = !rc && wl_is_const(&y);
  if (!*ok) return rc;
  if (affinity >= 'C' && wl_has(&y, WL_T_TEXT))
    rc = emit1(side, WL_OP__NumAffinity, &y, y.dom, &y);
  else if (affinity == 'B' && (y.dom.mask & N) && x_text)
    rc = wl_compile_text(side, &y);
  if (!rc) *out = wl_const_value(side, &y);
  return rc;
}

/* The list as constants. *ok: all of them are, and x is the same whichever it meets. */
static wl_status in_constants(wl_compiler *c, const wl_bexpr *e, const wl_operand *x, wl_inset *set,
                              bool *ok) {
  wl_compiler side; /* its constants are its own: a list may be long */
  *ok = true;
  /* TEXT affinity turns a number into text only where the other side is text */
  if (e->cmp_affinity == 'B' && (wl_has(x, WL_T_INT) || wl_has(x, WL_T_REAL))) *ok = false;
  if (!*ok) return WL_OK;
  wl_status rc = wl_compile_side(c, 0, &side);
  set->v = rc ? NULL : WL_NEW_N(c->arena, wl_val, e->n_list);
  if (!rc && !set->v) rc = wl_nomem(c->err);
  for (int k = 0; k < e->n_list && !rc && *ok; k++) {
    wl_val v = wl_null();
    rc = in_constant(&side, e->list[k], e->cmp_affinity, wl_has(x, WL_T_TEXT), &v, ok);
    if (v.t == WL_T_NULL)
      set->has_null = true;
    else
      set->v[set->n++] = v;
  }
  wl_compile_side_close(&side);
  return rc;
}

/* x IN a set of constants. */
static wl_status in_set(wl_compiler *c, const wl_bexpr *e, wl_operand x, wl_inset set,
                        wl_operand *out) {
  wl_status rc;
  if (e->cmp_affinity >= 'C' && wl_has(&x, WL_T_TEXT)) {
    wl_domain d = wl_domain_union(x.dom, wl_domain_any(WL_M(WL_T_INT) | WL_M(WL_T_REAL)));
    rc = emit1(c, WL_OP__NumAffinity, &x, d, &x);
    if (rc) return rc;
  }
  sort_set(&set);
  wl_program *p = c->p;
  rc = wl_compile_room(c, (void **)&p->insets, p->n_insets, &c->size_insets, sizeof *p->insets,
                       WL_MAX_REGS);
  if (rc) return rc;
  p->insets[p->n_insets++] = set;
  memset(out, 0, sizeof *out);
  out->truth = true;
  out->dom = truth_domain(wl_nullable(&x) || set.has_null);
  return wl_compile_reg(c, WL_OP__InSet, (wl_reg){WL_R_TRUTH, false}, x.x, 0,
                        (wl_i16)(p->n_insets - 1), &out->x);
}

static const wl_bexpr *under_collate(const wl_bexpr *x) {
  while (x->kind == WL_B_CAST && x->op == WL_OP_POS) x = x->a;
  return x;
}

/* SQLite (3.40) makes reals of a group's REAL column integers when it looks for them in a list, and
** its sort of the groups then keeps them so: 0.0 comes out as 0. */
static bool shows_integers(const wl_compiler *c, const wl_bexpr *e) {
  const wl_bexpr *x = under_collate(e->a);
  return !c->entries && !c->over_table && c->in->query->n_order > 0 && e->n_list > 2 &&
         e->cmp_affinity == 'E' && x->kind == WL_B_COLUMN;
}

static wl_status in_node(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_operand x;
  wl_inset set = {.coll = e->cmp_coll};
  bool constants = false;
  if (shows_integers(c, e))
    return wl_not_taken(c->err, "IN of a REAL column beside groups that are sorted");
  wl_status rc = wl_compile_expr(c, e->a, &x);
  if (!rc) rc = wl_compile_value(c, &x);
  if (!rc && e->n_list > 3 && !wl_is_const(&x)) rc = in_constants(c, e, &x, &set, &constants);
  if (rc) return rc;
  return constants ? in_set(c, e, x, set, out) : in_any(c, e, 0, e->n_list, out);
}

/* SQLite 3.40 applies the affinity of IN (SELECT …) to the group's own value, which it then shows
** and goes on with: 5.0 or '5' becomes 5, and beside REALs 5 becomes 5.0. */
static bool changes_group(const wl_bexpr *e, const wl_operand *x) {
  wl_bkind kind = under_collate(e->a)->kind;
  /* constants and CASE: columns of a subquery that was taken in */
  bool own = kind == WL_B_COLUMN || kind == WL_B_AGG || kind == WL_B_CONST || kind == WL_B_CASE;
  int other = e->cmp_affinity == 'E' ? WL_T_INT : WL_T_REAL;
  return own && e->cmp_affinity >= 'C' && (wl_has(x, WL_T_TEXT) || wl_has(x, other));
}

/* x IN (a subquery that has been run): its rows are constants. */
static wl_status insub_node(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  enum { MOST = 1 << 20 };
  const wl_column *col = c->in->sub_lists[e->index];
  int n = (int)col->n_rows;
  if (col->n_rows > MOST) return wl_not_taken(c->err, "IN beside groups, of a long list");
  wl_operand x;
  wl_inset set = {.coll = e->cmp_coll, .v = WL_NEW_N(c->arena, wl_val, n + 1)};
  wl_status rc = wl_compile_expr(c, e->a, &x);
  if (!rc) rc = wl_compile_value(c, &x);
  if (rc) return rc;
  if (!set.v) return wl_nomem(c->err);
  if (e->cmp_affinity == 'B' && (wl_has(&x, WL_T_INT) || wl_has(&x, WL_T_REAL)))
    return wl_not_taken(c->err, "IN beside groups, of numbers as text");
  if (changes_group(e, &x))
    return wl_not_taken(c->err, "IN beside groups, of values that SQLite changes");
  if (n == 0) {
    rc = wl_compile_constant(c, wl_int(0), out);
    out->truth = true;
    return rc;
  }
  for (int k = 0; k < n && !rc; k++) {
    wl_val v = wl_column_value(col, k);
    if (v.t >= WL_T_TEXT) {
      char *copy = wl_arena_strndup(c->arena, (const char *)wl_bytes(v), v.n);
      if (!copy) return wl_nomem(c->err);
      v.v = (wl_u64)(size_t)copy;
    }
    if (e->cmp_affinity >= 'C' && v.t == WL_T_TEXT) v = wl_conv_affinity(&c->fold, v);
    if (e->cmp_affinity == 'B' && (v.t == WL_T_INT || v.t == WL_T_REAL))
      return wl_not_taken(c->err, "IN beside groups, of numbers as text");
    if (v.t == WL_T_NULL)
      set.has_null = true;
    else
      set.v[set.n++] = v;
  }
  return in_set(c, e, x, set, out);
}

static wl_status logic(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_operand a, b;
  wl_status rc = wl_compile_truth(c, e->a, &a);
  if (!rc) rc = wl_compile_truth(c, e->b, &b);
  return rc ? rc : either(c, e->kind == WL_B_AND, &a, &b, out);
}

static wl_status truth_node(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_operand one;
  wl_status rc = wl_compile_expr(c, e->a, out);
  if (!rc) rc = as_truth(c, out);
  if (rc || e->kind == WL_B_NOT) return rc ? rc : emit1(c, WL_OP__Not, out, out->dom, out);
  if (!wl_nullable(out)) return WL_OK; /* a IS TRUE is a, where a is not NULL */
  rc = wl_compile_value(c, out);
  if (!rc) rc = wl_compile_constant(c, wl_int(1), &one);
  return rc ? rc
            : wl_compile_emit(c, WL_OP__IsV, out, &one, &wl_no_operand, 0, truth_domain(false),
                              out);
}

static wl_status case_node(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL);
  wl_status rc = wl_compile_expr(c, e->list[e->n_list - 1], out);
  if (!rc) rc = wl_compile_value(c, out);
  for (int k = e->n_list - 3; k >= 0 && !rc; k -= 2) {
    wl_operand when, then;
    rc = wl_compile_expr(c, e->list[k], &when);
    if (!rc) rc = as_truth(c, &when);
    if (!rc) rc = wl_compile_expr(c, e->list[k + 1], &then);
    if (!rc) rc = wl_compile_value(c, &then);
    if (rc) break;
    if (wl_is_const(&when)) {
      wl_val v = wl_const_value(c, &when);
      if (v.t != WL_T_NULL && v.v) *out = then;
      continue;
    }
    wl_domain d = wl_domain_union(then.dom, out->dom);
    unsigned types = d.mask & ~WL_M(WL_T_NULL);
    wl_opcode op = types == I ? WL_OP__SelectI : types == F ? WL_OP__SelectF : WL_OP__SelectV;
    rc = wl_compile_emit(c, op, &then, out, &when, 0, d, out);
  }
  return rc;
}

static wl_status cast_node(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL);
  wl_status rc = wl_compile_expr(c, e->a, out);
  if (!rc) rc = wl_compile_value(c, out);
  if (rc || wl_only_null(out)) return rc;
  unsigned null = out->dom.mask & WL_M(WL_T_NULL);
  switch (e->affinity) {
  case 'D': return as_int(c, out);
  case 'E':
    if (wl_only(out, F)) return WL_OK;
    if (wl_only(out, I)) return wl_compile_real(c, out);
    return emit1(c, WL_OP__CastReal, out, wl_domain_real(-__builtin_inf(), __builtin_inf(), null),
                 out);
  case 'B': return wl_compile_text(c, out);
  case 'A':
    if (wl_only(out, WL_M(WL_T_BLOB))) return WL_OK;
    if (wl_has(out, WL_T_INT) || wl_has(out, WL_T_REAL)) rc = wl_compile_text(c, out);
    return rc ? rc : emit1(c, WL_OP__ToBlob, out, wl_domain_any(WL_M(WL_T_BLOB) | null), out);
  default:
    if (wl_only(out, I | F)) return WL_OK;
    return emit1(c, WL_OP__CastNumeric, out, wl_domain_any(I | F | null), out);
  }
}

/* ---- leaves: columns of the table, or keys and aggregates of the second block */

/* In the second block, an expression that is a group key is that key's column. */
static int key_of(const wl_compiler *c, const wl_bexpr *e) {
  for (int k = 0; k < c->n_groups && !c->over_table; k++)
    if (wl_bexpr_same(c->groups[k], e)) return k;
  return -1;
}

/* The place of a table's column among the bare ones: read from one row of each group. */
static int bare_of(wl_compiler *c, int slot) {
  wl_program *p = c->leaves;
  int k = 0;
  while (k < p->n_bares && p->bares[k].column != slot) k++;
  if (k < p->n_bares) return k;
  const wl_column *col = c->in->cols[slot];
  wl_reg reg = wl_column_reg(col);
  reg.nullable |= p->one_group; /* there may be no row */
  int decides = c->in->query->decides;
  p->bares[p->n_bares++] = (wl_bare){slot, decides < 0 ? -1 : p->aggs[decides].acc, reg};
  return k;
}

int wl_compile_leaf(wl_compiler *c, const wl_bexpr *e) {
  const wl_query *q = c->in->query;
  int key = key_of(c, e);
  if (key >= 0) return key;
  if (e->kind == WL_B_AGG && !c->over_table) return c->n_groups + e->index;
  if (e->kind != WL_B_COLUMN) return -1;
  if (c->entries) return 0; /* there is one leaf, and it stands for them */
  return c->over_table ? e->slot : c->n_groups + q->n_aggs + bare_of(c, e->slot);
}

wl_status wl_compile_leaf_operand(wl_compiler *c, int leaf, wl_operand *out) {
  const wl_program *p = c->leaves;
  wl_domain dom;
  wl_reg r;
  int slot = leaf;
  memset(out, 0, sizeof *out);
  if (c->entries) {
    dom = c->entries->domain;
    r = wl_column_reg(c->entries);
    slot = 0;
  } else if (c->over_table) {
    const wl_column *col = c->in->cols[leaf];
    int source = c->in->query->cols[leaf].source;
    if (c->places[source] < 0)
      return wl_fail(c->err, WL_ERROR, "compiler: a column of a source that has no row yet");
    dom = col->domain;
    r = wl_column_reg(col);
    out->dict = col->dict;
    if (c->maybe >> source & 1) {
      if (!(dom.mask & ~WL_M(WL_T_NULL))) return wl_compile_constant(c, wl_null(), out);
      dom = wl_domain_with_null(dom, true);
      r.nullable = true;
    }
  } else if (leaf < p->n_keys) {
    const wl_key *k = &p->keys[leaf];
    dom = k->domain;
    if (k->dict) dom = wl_domain_with_null(wl_domain_any(WL_M(WL_T_TEXT)), k->reg.nullable);
    r = k->reg;
    out->dict = k->dict;
  } else if (leaf < p->n_keys + p->n_aggs) {
    const wl_agg *a = &p->aggs[leaf - p->n_keys];
    dom = c->agg_domains[leaf - p->n_keys];
    r = a->reg;
    out->dict = a->dict;
  } else {
    const wl_bare *b = &p->bares[leaf - p->n_keys - p->n_aggs];
    const wl_column *col = c->in->cols[b->column];
    dom = wl_domain_with_null(col->domain, b->reg.nullable);
    r = b->reg;
    out->dict = col->dict;
  }
  if ((dom.mask & ~WL_M(WL_T_NULL)) == 0) {
    out->dict = NULL;
    return wl_compile_constant(c, wl_null(), out);
  }
  out->dom = dom;
  return wl_compile_reg(c, WL_OP__Column, r, (wl_i16)slot, 0, 0, &out->x);
}

/* ---- expressions */

wl_status wl_compile_in_real(wl_compiler *c, const wl_bexpr *e, const wl_operand *a,
                             const wl_operand *b) {
  if (e->index != 1 || e->cmp_affinity != 'E') return WL_OK;
  if ((wl_has(a, WL_T_INT) && !exact_as_real(a)) || (wl_has(b, WL_T_INT) && !exact_as_real(b)))
    return wl_not_taken(c->err, "IN of large integers as reals");
  return WL_OK;
}

static wl_status expr_new(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_operand a, b;
  wl_status rc;
  int leaf = wl_compile_leaf(c, e);
  if (leaf >= 0) return wl_compile_leaf_operand(c, leaf, out);
  if (e->kind == WL_B_CAST && e->op == WL_OP_POS) {
    rc = wl_compile_coded(c, e->a, out); /* the value as it is */
    return rc ? rc : wl_compile_value(c, out);
  }
  if (!c->entries) {
    bool done;
    rc = wl_compile_entries(c, e, &done, out);
    if (rc || done) return rc;
  }
  switch (e->kind) {
  case WL_B_CONST: return wl_compile_constant(c, e->value, out);
  case WL_B_PARAM:
    if (e->index > c->in->n_params) return wl_compile_constant(c, wl_null(), out);
    return wl_compile_constant(c, c->in->params[e->index - 1], out);
  case WL_B_ARITH: return arith_node(c, e, out);
  case WL_B_COMPARE:
    rc = wl_compile_coded(c, e->a, &a);
    if (!rc) rc = wl_compile_coded(c, e->b, &b);
    if (!rc) rc = wl_compile_in_real(c, e, &a, &b);
    if (!rc && a.dict && b.dict && e->cmp_affinity < 'C' && e->cmp_coll == WL_COLL_BINARY) {
      rc = wl_compile_common(c, &a, &b);
    } else if (!rc) {
      rc = wl_compile_plain(c, &a);
      if (!rc) rc = wl_compile_plain(c, &b);
    }
    return rc ? rc : wl_compile_compare(c, e->op, e->cmp_affinity, e->cmp_coll, &a, &b, out);
  case WL_B_IS: return is_node(c, e, out);
  case WL_B_IN: return in_node(c, e, out);
  case WL_B_ISNULL:
    rc = wl_compile_coded(c, e->a, &a);
    if (!rc) rc = wl_compile_value(c, &a);
    return rc ? rc : wl_compile_is_null(c, &a, out);
  case WL_B_AND:
  case WL_B_OR: return logic(c, e, out);
  case WL_B_NOT:
  case WL_B_TRUTH: return truth_node(c, e, out);
  case WL_B_CASE: return case_node(c, e, out);
  case WL_B_CAST: return cast_node(c, e, out);
  case WL_B_CALL: return wl_compile_call(c, e, out);
  case WL_B_SUB: return wl_compile_constant(c, c->in->subs[e->index], out);
  case WL_B_FOUND: return wl_compile_found(c, e, out);
  case WL_B_INSUB: return insub_node(c, e, out);
  case WL_B_COLUMN:
  case WL_B_OUTER:
  case WL_B_SUBQUERY:
  case WL_B_AGG: break;
  }
  return wl_fail(c->err, WL_ERROR, "compiler: unknown node %d", e->kind);
}

wl_status wl_compile_coded(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  if (c->known[e->id]) {
    *out = c->memo[e->id];
    return WL_OK;
  }
  wl_status rc = expr_new(c, e, out);
  if (!rc) {
    c->memo[e->id] = *out;
    c->known[e->id] = true;
  }
  return rc;
}

wl_status wl_compile_expr(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_status rc = wl_compile_coded(c, e, out);
  return rc ? rc : wl_compile_plain(c, out);
}

wl_status wl_compile_truth(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_status rc = wl_compile_expr(c, e, out);
  return rc ? rc : as_truth(c, out);
}
