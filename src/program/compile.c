/*
** The compiler: one pass over the bound graph, a register per distinct value.
**
** Invariants:
** 1. An wl_operand is a constant or a register of the block being compiled, with the domain
**    of its values; the register's type follows from the domain alone (wl_domain_reg).
** 2. Opcodes are pure, so an instruction that stands in the block already is not
**    written again.
*/
#include "program/compile_impl.h"
#include "program/domain.h"
#include "vm/conv.h"
#include "vm/scratch.h"
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
  int first = p->n_code - c->block > 500 ? p->n_code - 500 : c->block;
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

/* ---- conversions between wl_operand types */

static wl_domain with_null(wl_domain d, bool null) {
  if (null)
    d.mask |= (wl_u8)WL_M(WL_T_NULL);
  else
    d.mask &= (wl_u8)~WL_M(WL_T_NULL);
  return d;
}

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
    return emit2(c, WL_OP__Concat, &a, &b,
                 with_null(wl_domain_any(WL_M(WL_T_TEXT)), wl_nullable(&a) || wl_nullable(&b)),
                 out);
  default: return wl_compile_arith(c, e->op, &a, &b, out);
  }
}

/* What SQLite does to both sides of a comparison first. */
static wl_status apply_affinity(wl_compiler *c, char affinity, wl_operand *a, wl_operand *b) {
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
  if (!rc) rc = apply_affinity(c, affinity, a, b);
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
  rc = apply_affinity(c, e->cmp_affinity, &a, &b);
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

/* A compiler beside c whose constants are its own: a list may be long. */
static wl_status aside(const wl_compiler *c, wl_compiler *out) {
  size_t n = (size_t)c->in->query->n_exprs;
  *out = *c;
  out->p = WL_NEW(c->arena, wl_program);
  out->size_code = out->size_regs = out->size_consts = 0;
  out->memo = WL_NEW_N(c->arena, wl_operand, n);
  out->known = WL_NEW_N(c->arena, bool, n);
  out->deps = WL_NEW_N(c->arena, int, n);
  if (!out->p || !out->memo || !out->known || !out->deps) return wl_nomem(c->err);
  wl_operand null;
  return wl_compile_constant(out, wl_null(), &null);
}

/* The list as constants under x's affinity. *ok: all of them are, and x stays the same. */
static wl_status in_constants(wl_compiler *c, const wl_bexpr *e, const wl_operand *x, wl_inset *set,
                              bool *ok) {
  const unsigned N = WL_M(WL_T_INT) | WL_M(WL_T_REAL), T = WL_M(WL_T_TEXT);
  wl_compiler side;
  *ok = false;
  /* TEXT affinity turns a number into text only where the other side is text */
  if (e->cmp_affinity == 'B' && (x->dom.mask & N)) return WL_OK;
  wl_status rc = aside(c, &side);
  set->v = rc ? NULL : WL_NEW_N(c->arena, wl_val, e->n_list);
  if (rc || !set->v) return rc ? rc : wl_nomem(c->err);
  for (int k = 0; k < e->n_list; k++) {
    wl_operand y;
    rc = wl_compile_expr(&side, e->list[k], &y);
    if (!rc) rc = wl_compile_value(&side, &y);
    if (rc) return rc;
    if (!wl_is_const(&y)) return WL_OK;
    wl_operand other = {.dom = {.mask = (wl_u8)(x->dom.mask & T)}};
    if (e->cmp_affinity >= 'C' && wl_has(&y, WL_T_TEXT))
      rc = emit1(&side, WL_OP__NumAffinity, &y, y.dom, &y);
    else if (e->cmp_affinity == 'B' && (y.dom.mask & N) && other.dom.mask)
      rc = wl_compile_text(&side, &y);
    if (rc) return rc;
    wl_val v = wl_const_value(&side, &y);
    if (v.t == WL_T_NULL)
      set->has_null = true;
    else
      set->v[set->n++] = v;
  }
  *ok = true;
  return WL_OK;
}

static wl_status in_node(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_operand x;
  wl_inset set = {.coll = e->cmp_coll};
  bool constants = false;
  wl_status rc = wl_compile_expr(c, e->a, &x);
  if (!rc) rc = wl_compile_value(c, &x);
  if (!rc && e->n_list > 3 && !wl_is_const(&x)) rc = in_constants(c, e, &x, &set, &constants);
  if (rc) return rc;
  if (!constants) return in_any(c, e, 0, e->n_list, out);
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
  wl_program *p = c->p;
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
  int key = key_of(c, e), slot = 0;
  if (key >= 0) return key;
  if (e->kind == WL_B_AGG && !c->over_table) return c->n_groups + e->index;
  if (e->kind != WL_B_COLUMN) return -1;
  while (q->cols[slot] != e->index) slot++;
  return c->over_table ? slot : c->n_groups + q->n_aggs + bare_of(c, slot);
}

wl_status wl_compile_leaf_operand(wl_compiler *c, int leaf, wl_operand *out) {
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
    dom = col->domain;
    r = wl_column_reg(col);
    out->dict = col->dict;
  } else if (leaf < c->p->n_keys) {
    const wl_key *k = &c->p->keys[leaf];
    dom = k->domain;
    if (k->dict) dom = with_null(wl_domain_any(WL_M(WL_T_TEXT)), k->reg.nullable);
    r = k->reg;
    out->dict = k->dict;
  } else if (leaf < c->p->n_keys + c->p->n_aggs) {
    const wl_agg *a = &c->p->aggs[leaf - c->p->n_keys];
    dom = c->agg_domains[leaf - c->p->n_keys];
    r = a->reg;
    out->dict = a->dict;
  } else {
    const wl_bare *b = &c->p->bares[leaf - c->p->n_keys - c->p->n_aggs];
    const wl_column *col = c->in->cols[b->column];
    dom = with_null(col->domain, b->reg.nullable);
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
    rc = wl_compile_expr(c, e->a, &a);
    if (!rc) rc = wl_compile_expr(c, e->b, &b);
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
  case WL_B_COLUMN:
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

/* ---- aggregates */

static wl_status accumulator(wl_compiler *c, wl_opcode op, const wl_operand *a, int coll,
                             int *out) {
  wl_program *p = c->p;
  for (int i = c->block; i < p->n_code; i++) {
    const wl_instr *q = &p->code[i];
    if (q->op == op && q->a == a->x && q->c == coll && wl_opcodes[op].shape >= WL_SHAPE_AGG) {
      *out = q->d;
      return WL_OK;
    }
  }
  *out = p->n_accs;
  double lo = a->dom.flo < 0 ? -a->dom.flo : a->dom.flo,
         hi = a->dom.fhi < 0 ? -a->dom.fhi : a->dom.fhi;
  p->accs[p->n_accs++] = (wl_acc){.op = op,
                                  .coll = (wl_u8)coll,
                                  .bound = lo > hi ? lo : hi,
                                  .zero = a->dom.flo <= 0 && a->dom.fhi >= 0};
  return wl_compile_append(c, (wl_instr){op, (wl_i16)*out, a->x, 0, (wl_i16)coll});
}

/* Which accumulator adds these values, and what the sum can be. */
static wl_status sum(wl_compiler *c, wl_operand *a, wl_agg_fn fn, int *acc, wl_domain *dom) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL);
  wl_status rc = WL_OK;
  if (!wl_only(a, I | F))
    rc = emit1(c, WL_OP__SumArg, a, wl_domain_any(I | F | (a->dom.mask & WL_M(WL_T_NULL))), a);
  if (rc) return rc;
  wl_opcode op;
  if (wl_only(a, I)) {
    __int128 most = (__int128)wl_domain_magnitude(&a->dom) * c->in->n_rows;
    op = most <= WL_I64_MAX ? WL_OP__AggSumI : WL_OP__AggSumX;
    *dom = op == WL_OP__AggSumI ? wl_domain_int((wl_i64)-most, (wl_i64)most, true)
                                : wl_domain_int(WL_I64_MIN, WL_I64_MAX, true);
  } else {
    op = wl_only(a, F) ? WL_OP__AggSumF : WL_OP__AggSumV;
    *dom = wl_domain_any((op == WL_OP__AggSumV ? I | F : F) | WL_M(WL_T_NULL));
  }
  if (fn != WL_FN_SUM)
    *dom = wl_domain_any(F | WL_M(WL_T_NULL));
  else if ((op == WL_OP__AggSumX || op == WL_OP__AggSumV) && !c->in->rowid_order)
    return wl_not_taken(c->err,
                        "sum() may overflow, and SQLite would add in the order of an index");
  return accumulator(c, op, a, 0, acc);
}

/* Equal values that look different: 1 and 1.0, or text that a collation calls equal. */
static bool ties_show(const wl_operand *a, int coll) {
  if (wl_has(a, WL_T_INT) && wl_has(a, WL_T_REAL)) return true;
  if (wl_has(a, WL_T_REAL) && a->dom.flo <= 0 && a->dom.fhi >= 0) return true; /* 0.0 and -0.0 */
  return wl_has(a, WL_T_TEXT) && coll != WL_COLL_BINARY;
}

/* The set of an aggregate's different values, shared by all that can. */
static wl_status distinct_values(wl_compiler *c, const wl_operand *a, int coll, wl_distinct_use use,
                                 int *out) {
  wl_program *p = c->p;
  for (int k = 0; k < p->n_sets; k++) {
    wl_acc *acc = &p->accs[p->sets[k].acc];
    bool apart = (acc->distinct == WL_DISTINCT_CONCAT) != (use == WL_DISTINCT_CONCAT);
    int pc = c->block;
    while (p->code[pc].op != WL_OP__AggDistinct || p->code[pc].d != p->sets[k].acc) pc++;
    if (apart || p->code[pc].a != a->x || p->sets[k].coll != coll) continue;
    if (use > acc->distinct) acc->distinct = use;
    *out = p->sets[k].acc;
    return WL_OK;
  }
  double lo = a->dom.flo < 0 ? -a->dom.flo : a->dom.flo,
         hi = a->dom.fhi < 0 ? -a->dom.fhi : a->dom.fhi;
  *out = p->n_accs;
  p->accs[p->n_accs++] = (wl_acc){.op = WL_OP__AggDistinct,
                                  .coll = (wl_u8)coll,
                                  .bound = lo > hi ? lo : hi,
                                  .distinct = use,
                                  .set = p->n_sets};
  wl_domain d = a->dict ? wl_domain_int(0, a->dict->n - 1, wl_nullable(a)) : a->dom;
  p->sets[p->n_sets++] = (wl_set){*out, (wl_u8)coll, wl_domain_reg(d), d};
  return wl_compile_append(c, (wl_instr){WL_OP__AggDistinct, (wl_i16)*out, a->x, 0, (wl_i16)coll});
}

/* What the sum of different values can be. */
static wl_status distinct_sum(wl_compiler *c, const wl_operand *a, wl_agg_fn fn, wl_domain *dom) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL);
  __int128 most = (__int128)wl_domain_magnitude(&a->dom) * c->in->n_rows;
  bool fits = wl_only(a, I) && most <= WL_I64_MAX;
  *dom = wl_domain_any((wl_only(a, F) ? F : I | F) | WL_M(WL_T_NULL));
  if (wl_only(a, I))
    *dom = wl_domain_int(fits ? (wl_i64)-most : WL_I64_MIN, fits ? (wl_i64)most : WL_I64_MAX, true);
  if (fn != WL_FN_SUM)
    *dom = wl_domain_any(F | WL_M(WL_T_NULL));
  else if (!fits && !wl_only(a, F) && !c->in->rowid_order)
    return wl_not_taken(c->err,
                        "sum() may overflow, and SQLite would add in the order of an index");
  return WL_OK;
}

static wl_status distinct_aggregate(wl_compiler *c, int k, wl_operand *a) {
  const wl_bagg *g = &c->in->query->aggs[k];
  wl_agg *out = &c->p->aggs[k];
  int coll = g->arg->has_coll ? g->arg->coll : WL_COLL_BINARY;
  wl_status rc = WL_OK;
  wl_distinct_use use = WL_DISTINCT_SUM;
  if (g->fn == WL_FN_COUNT) {
    use = WL_DISTINCT_COUNT;
    out->final = WL_AGG_COUNT;
    c->agg_domains[k] = wl_domain_int(0, c->in->n_rows, false);
  } else if (g->fn == WL_FN_CONCAT) {
    use = WL_DISTINCT_CONCAT;
    out->final = WL_AGG_CONCAT;
    c->agg_domains[k] = wl_domain_any(WL_M(WL_T_TEXT) | WL_M(WL_T_NULL));
  } else {
    out->final = g->fn == WL_FN_SUM ? WL_AGG_SUM : g->fn == WL_FN_TOTAL ? WL_AGG_TOTAL : WL_AGG_AVG;
    rc = distinct_sum(c, a, g->fn, &c->agg_domains[k]);
    /* which of equal values is added shows where they differ as numbers */
    if (!rc && !c->in->rowid_order && (ties_show(a, coll) || !wl_only(a, WL_M(WL_T_INT))))
      rc = wl_not_taken(c->err, "DISTINCT values that SQLite would meet in the order of an index");
  }
  if (!rc && use == WL_DISTINCT_CONCAT && !c->in->rowid_order)
    rc =
        wl_not_taken(c->err, "group_concat(), and SQLite would meet rows in the order of an index");
  out->reg = wl_domain_reg(c->agg_domains[k]);
  return rc ? rc : distinct_values(c, a, coll, use, &out->acc);
}

static wl_status concat(wl_compiler *c, int k, wl_operand *a) {
  const wl_bagg *g = &c->in->query->aggs[k];
  wl_program *p = c->p;
  wl_operand separator;
  if (!c->in->rowid_order)
    return wl_not_taken(c->err,
                        "group_concat(), and SQLite would meet rows in the order of an index");
  wl_status rc = wl_only_null(a) ? WL_OK : wl_compile_text(c, a);
  if (!rc)
    rc = g->separator ? wl_compile_expr(c, g->separator, &separator)
                      : wl_compile_constant(c, wl_text((const wl_u8 *)",", 1), &separator);
  if (!rc && !wl_only_null(&separator)) rc = wl_compile_text(c, &separator);
  if (rc) return rc;
  p->in_order = true;
  p->aggs[k].final = WL_AGG_CONCAT;
  p->aggs[k].acc = p->n_accs;
  c->agg_domains[k] = wl_domain_any(WL_M(WL_T_TEXT) | WL_M(WL_T_NULL));
  p->accs[p->n_accs++] = (wl_acc){.op = WL_OP__AggConcat};
  return wl_compile_append(
      c, (wl_instr){WL_OP__AggConcat, (wl_i16)p->aggs[k].acc, a->x, separator.x, 0});
}

static wl_status aggregate(wl_compiler *c, int k) {
  const wl_bagg *g = &c->in->query->aggs[k];
  wl_agg *out = &c->p->aggs[k];
  wl_operand a = wl_no_operand;
  wl_status rc = WL_OK;
  int coll = g->arg && g->arg->has_coll ? g->arg->coll : WL_COLL_BINARY;
  bool extreme = g->fn == WL_FN_MIN || g->fn == WL_FN_MAX;
  bool by_code = (g->fn == WL_FN_COUNT && !g->distinct) ||
                 ((g->fn == WL_FN_COUNT || extreme) && coll == WL_COLL_BINARY);
  if (g->arg) rc = wl_compile_coded(c, g->arg, &a);
  if (!rc) rc = wl_compile_value(c, &a);
  if (!rc && !by_code) rc = wl_compile_plain(c, &a);
  if (rc) return rc;
  /* rowids differ anyway, and so do extremes */
  bool unique = g->arg && g->arg->kind == WL_B_COLUMN && g->arg->index < 0;
  if (g->distinct && !unique && g->fn != WL_FN_MIN && g->fn != WL_FN_MAX)
    return distinct_aggregate(c, k, &a);
  switch (g->fn) {
  case WL_FN_CONCAT: rc = concat(c, k, &a); break;
  case WL_FN_COUNT:
    out->final = WL_AGG_COUNT;
    c->agg_domains[k] = wl_domain_int(0, c->in->n_rows, false);
    if (!g->arg || !wl_nullable(&a)) {
      a = wl_no_operand;
      rc = accumulator(c, WL_OP__AggRows, &a, 0, &out->acc);
    } else {
      rc = accumulator(c, WL_OP__AggCount, &a, 0, &out->acc);
    }
    break;
  case WL_FN_SUM:
  case WL_FN_TOTAL:
  case WL_FN_AVG:
    out->final = g->fn == WL_FN_SUM ? WL_AGG_SUM : g->fn == WL_FN_TOTAL ? WL_AGG_TOTAL : WL_AGG_AVG;
    rc = sum(c, &a, g->fn, &out->acc, &c->agg_domains[k]);
    break;
  case WL_FN_MIN:
  case WL_FN_MAX: {
    bool min = g->fn == WL_FN_MIN, F = wl_only(&a, WL_M(WL_T_REAL));
    bool I = wl_only(&a, WL_M(WL_T_INT)) || a.dict;
    if (ties_show(&a, coll) && !c->in->rowid_order)
      return wl_not_taken(c->err,
                          "%s() has ties, and SQLite would meet them in the order of an index",
                          min ? "min" : "max");
    out->final = WL_AGG_MINMAX;
    c->agg_domains[k] = with_null(a.dom, true);
    rc = accumulator(c,
                     I   ? (min ? WL_OP__AggMinI : WL_OP__AggMaxI)
                     : F ? (min ? WL_OP__AggMinF : WL_OP__AggMaxF)
                         : (min ? WL_OP__AggMinV : WL_OP__AggMaxV),
                     &a, I || F ? 0 : coll, &out->acc);
    if (c->in->query->bare && c->in->query->decides == k) c->p->accs[out->acc].rowed = true;
    break;
  }
  }
  out->reg = wl_domain_reg(c->agg_domains[k]);
  if (extreme && a.dict) {
    out->dict = a.dict;
    out->reg.type = WL_R_INT;
  }
  return rc;
}

/* ---- blocks */

wl_status wl_compile_begin(wl_compiler *c, wl_source_kind source) {
  c->over_table = source == WL_SOURCE_TABLE;
  c->block = c->p->n_code;
  memset(c->known, 0, (size_t)c->in->query->n_exprs * sizeof *c->known);
  if (c->deps) memset(c->deps, 0, (size_t)c->in->query->n_exprs * sizeof *c->deps);
  return wl_compile_append(c, (wl_instr){WL_OP__Parallel, 0, (wl_i16)source, 0, 0});
}

wl_status wl_compile_end(wl_compiler *c) {
  wl_program *p = c->p;
  int end = p->n_code;
  p->code[c->block].c = (wl_i16)end;
  for (int i = c->block; i < end; i++)
    if (p->code[i].op == WL_OP__IfNot) p->code[i].c = (wl_i16)end;
  return wl_compile_append(c, (wl_instr){WL_OP__Converge, 0, 0, 0, 0});
}

/* Result column k; where it is compared, its codes must be right for that collation. */
static wl_status one_result(wl_compiler *c, const wl_bexpr *e, int k, int coll) {
  wl_operand o;
  wl_status rc = wl_compile_coded(c, e, &o);
  if (!rc) rc = wl_compile_value(c, &o);
  if (!rc && coll != WL_COLL_BINARY) rc = wl_compile_plain(c, &o);
  if (rc) return rc;
  c->p->results[k].operand = o.x;
  c->p->results[k].domain = o.dom;
  c->p->results[k].dict = o.dict;
  return WL_OK;
}

/* Equal values that look different; which one stands for them depends on the order of rows. */
static wl_status check_ties(const wl_compiler *c, const wl_domain *d, int coll, const char *what) {
  wl_operand o = {.dom = *d};
  if (c->in->rowid_order || !ties_show(&o, coll)) return WL_OK;
  return wl_not_taken(c->err, "%s has ties, and SQLite would meet them in the order of an index",
                      what);
}

static int coll_of(const wl_bexpr *e) {
  return e->has_coll ? e->coll : WL_COLL_BINARY;
}

/* Whether the groups come out in the order asked for: ORDER BY is GROUP BY over again. */
static bool ordered_by_groups(const wl_query *q) {
  if (!q->grouped || q->n_order != q->n_groups) return false;
  for (int k = 0; k < q->n_order; k++)
    if (!wl_bexpr_same(q->order[k].expr, q->groups[k]) ||
        q->order[k].nulls_last != q->order[k].desc)
      return false;
  return true;
}

/* One more sort key: a result column, or one behind these. Texts of a dictionary sort by code, or
** under another collation than BINARY by their rank. */
static wl_status sort_key(wl_compiler *c, const wl_border *o) {
  const wl_query *q = c->in->query;
  wl_program *p = c->p;
  wl_order *to = &p->order[p->n_order++];
  to->desc = o->desc;
  to->nulls_last = o->nulls_last;
  to->coll = (wl_u8)coll_of(o->expr);
  for (to->result = 0; to->result < q->n_results; to->result++) {
    const wl_bexpr *e = q->results[to->result];
    bool same = e == o->expr || (e->kind == WL_B_COLUMN && o->expr->kind == WL_B_COLUMN &&
                                 e->index == o->expr->index);
    if (same && (to->coll == WL_COLL_BINARY || !p->results[to->result].dict)) return WL_OK;
  }
  to->result = p->n_results++;
  wl_operand x;
  wl_status rc = wl_compile_coded(c, o->expr, &x);
  if (!rc) rc = wl_compile_value(c, &x);
  if (!rc && x.dict && to->coll != WL_COLL_BINARY) rc = wl_compile_ranks(c, to->coll, &x);
  if (rc) return rc;
  p->results[to->result].operand = x.x;
  p->results[to->result].domain = x.dom;
  p->results[to->result].dict = x.dict;
  return WL_OK;
}

/* The result columns, and behind them the sort keys that are none of them. */
static wl_status results(wl_compiler *c) {
  const wl_query *q = c->in->query;
  wl_program *p = c->p;
  wl_status rc = WL_OK;
  bool ties = false;
  p->n_results = p->n_given = q->n_results;
  for (int k = 0; k < q->n_results && !rc; k++) {
    rc = one_result(c, q->results[k], k, q->distinct ? coll_of(q->results[k]) : WL_COLL_BINARY);
    p->distinct_colls[k] = (wl_u8)coll_of(q->results[k]);
    wl_operand o = {.dom = p->results[k].domain};
    ties |= ties_show(&o, coll_of(q->results[k]));
    if (!rc && (q->distinct || (q->n_order && !q->scan_known)))
      rc = check_ties(c, &p->results[k].domain, coll_of(q->results[k]),
                      q->distinct ? "DISTINCT" : "ORDER BY");
  }
  bool unsorted = (q->aggregate && !q->grouped) || ordered_by_groups(q);
  for (int k = 0; k < q->n_order && !rc && !unsorted; k++) rc = sort_key(c, &q->order[k]);
  if (q->ties_hidden && !ties) unsorted = true; /* nobody can tell equal rows apart */
  for (int k = 0; k < q->n_scan && !rc && !unsorted; k++) rc = sort_key(c, &q->scan[k]);
  return rc ? rc : wl_compile_append(c, (wl_instr){WL_OP__Result, 0, 0, (wl_i16)p->n_results, 0});
}

static bool has_minmax(const wl_query *q) {
  for (int k = 0; k < q->n_aggs; k++)
    if (q->aggs[k].fn == WL_FN_MIN || q->aggs[k].fn == WL_FN_MAX) return true;
  return false;
}

/* The group keys, and the opcode that finds each row's group. */
static wl_status group_keys(wl_compiler *c) {
  const wl_query *q = c->in->query;
  wl_program *p = c->p;
  if (q->bare && !c->in->rowid_order)
    return wl_not_taken(c->err, "a column beside the groups, and SQLite would meet rows in the "
                                "order of an index");
  for (int k = 0; k < c->n_groups; k++) {
    int coll = coll_of(c->groups[k]);
    wl_operand o;
    wl_status rc = wl_compile_coded(c, c->groups[k], &o);
    if (!rc) rc = wl_compile_value(c, &o);
    if (!rc && coll != WL_COLL_BINARY) rc = wl_compile_plain(c, &o);
    if (!rc) rc = check_ties(c, &o.dom, coll, q->grouped ? "GROUP BY" : "DISTINCT");
    if (!rc && has_minmax(q) && ties_show(&o, coll))
      rc = wl_not_taken(c->err, "equal group keys that look different, beside min() or max()");
    if (rc) return rc;
    /* as SQLite: with as many terms in ORDER BY, the groups take on their directions */
    bool desc = q->grouped && q->n_order == q->n_groups && q->order[k].desc;
    if (o.dict) o.dom = wl_domain_int(0, o.dict->n - 1, wl_nullable(&o));
    p->keys[k] = (wl_key){o.x, (wl_u8)coll, desc, wl_domain_reg(o.dom), o.dom, o.dict};
    p->n_keys++;
  }
  p->grouped = true;
  p->one_group = q->aggregate && !q->grouped;
  p->by_first = c->distinct_groups;
  return wl_compile_append(c, (wl_instr){WL_OP__Group, 0, 0, (wl_i16)p->n_keys, 0});
}

/* LIMIT and OFFSET must come out as integers; what SQLite would reject is left to it. */
static wl_status limit_value(wl_compiler *c, const wl_bexpr *e, wl_i64 *out) {
  wl_operand o;
  wl_status rc = wl_compile_expr(c, e, &o);
  if (!rc) rc = wl_compile_value(c, &o);
  if (rc) return rc;
  if (wl_is_const(&o)) {
    wl_val v = wl_const_value(c, &o);
    if (v.t == WL_T_TEXT) v = wl_conv_affinity(&c->fold, v);
    if (v.t == WL_T_INT) {
      *out = (wl_i64)v.v;
      return WL_OK;
    }
    if (v.t == WL_T_REAL) {
      double r = wl_as_f64(v.v);
      wl_i64 i = wl_f64_to_i64(r);
      if ((double)i == r && i > WL_I64_MIN && i < WL_I64_MAX) {
        *out = i;
        return WL_OK;
      }
    }
  }
  return wl_not_taken(c->err, "LIMIT or OFFSET is no integer");
}

/* Whether e can be computed from the results alone. */
static bool from_results(const wl_query *q, const wl_bexpr *e) {
  if (!e) return true;
  for (int k = 0; k < q->n_results; k++)
    if (wl_bexpr_same(q->results[k], e)) return true;
  if (e->kind == WL_B_COLUMN) return false;
  for (int k = 0; k < e->n_list; k++)
    if (!from_results(q, e->list[k])) return false;
  return from_results(q, e->a) && from_results(q, e->b);
}

/* Whether the aggregates need a group to gather in, though there is no GROUP BY. */
static bool needs_group(const wl_query *q) {
  bool needs = q->bare;
  for (int k = 0; k < q->n_aggs; k++) needs |= q->aggs[k].distinct || q->aggs[k].fn == WL_FN_CONCAT;
  return q->grouped || needs;
}

/* SELECT DISTINCT is GROUP BY all results, given in the order of first rows. A device does it
** by sorting instead. */
static void choose_groups(wl_compiler *c) {
  const wl_query *q = c->in->query;
  c->groups = q->groups;
  c->n_groups = q->n_groups;
  if (!q->distinct || q->aggregate || c->in->for_device) return;
  for (int k = 0; k < q->n_order; k++)
    if (!from_results(q, q->order[k].expr)) return;
  c->distinct_groups = true;
  c->groups = q->results;
  c->n_groups = q->n_results;
}

static wl_status compile(wl_compiler *c) {
  const wl_query *q = c->in->query;
  wl_program *p = c->p;
  choose_groups(c);
  bool grouped = needs_group(q) || c->distinct_groups, second = q->aggregate || c->distinct_groups;
  p->limit = -1;
  wl_status rc = WL_OK;
  if (q->limit) rc = limit_value(c, q->limit, &p->limit);
  if (!rc && q->offset) rc = limit_value(c, q->offset, &p->offset);
  if (rc) return rc;
  if (p->limit < 0) p->limit = -1;
  if (p->offset < 0) p->offset = 0;
  bool limited = q->limit || q->offset;
  rc = wl_compile_append(c, (wl_instr){WL_OP__Open, 0, 0, 0, 0});
  bool sorted = (q->distinct && !c->distinct_groups) || q->n_scan > 0 ||
                (q->n_order > 0 && !ordered_by_groups(q));
  if (!rc && limited && !second && !sorted)
    rc = wl_compile_append(c, (wl_instr){WL_OP__Limit, 0, 0, 0, 0});
  if (!rc) rc = wl_compile_begin(c, WL_SOURCE_TABLE);
  if (!rc && q->where) rc = wl_compile_filter(c, q->where);
  if (!rc && grouped) rc = group_keys(c);
  for (int k = 0; k < q->n_aggs && !rc; k++) rc = aggregate(c, k);
  if (!rc && !second) rc = results(c);
  if (!rc) rc = wl_compile_end(c);
  if (!rc && second) {
    /* What is done once to the finished aggregates runs on the host, whatever it is. */
    int host_op = p->host_op;
    if (limited && !sorted) rc = wl_compile_append(c, (wl_instr){WL_OP__Limit, 0, 0, 0, 0});
    if (!rc) rc = wl_compile_begin(c, WL_SOURCE_AGGREGATES);
    if (!rc && q->having) rc = wl_compile_filter(c, q->having);
    if (!rc) rc = results(c);
    if (!rc) rc = wl_compile_end(c);
    p->host_op = host_op;
  }
  p->distinct = q->distinct && !c->distinct_groups;
  if (!rc && p->distinct) rc = wl_compile_append(c, (wl_instr){WL_OP__Distinct, 0, 0, 0, 0});
  if (!rc && p->n_order) rc = wl_compile_append(c, (wl_instr){WL_OP__Sort, 0, 0, 0, 0});
  if (!rc && limited && sorted) rc = wl_compile_append(c, (wl_instr){WL_OP__Limit, 0, 0, 0, 0});
  return rc ? rc : wl_compile_append(c, (wl_instr){WL_OP__Halt, 0, 0, 0, 0});
}

wl_status wl_compile(wl_arena *arena, const wl_compile_in *in, wl_program **out, wl_error *err) {
  const wl_query *q = in->query;
  wl_compiler c = {.arena = arena, .in = in, .err = err};
  wl_program *p = c.p = *out = WL_NEW(arena, wl_program);
  if (!p) return wl_nomem(err);
  p->host_op = -1;
  p->table = q->table;
  p->n_columns = q->n_cols;
  p->n_results = q->n_results;
  p->n_aggs = q->n_aggs;
  p->columns = WL_NEW_N(arena, wl_i16, q->n_cols);
  p->column_names = WL_NEW_N(arena, const char *, q->n_cols);
  p->column_regs = WL_NEW_N(arena, wl_reg, q->n_cols);
  p->results = WL_NEW_N(arena, wl_result, q->n_results + q->n_order + q->n_scan);
  p->distinct_colls = WL_NEW_N(arena, wl_u8, q->n_results + 1);
  p->order = WL_NEW_N(arena, wl_order, q->n_order + q->n_scan);
  p->keys = WL_NEW_N(arena, wl_key, q->n_groups + q->n_results);
  p->sets = WL_NEW_N(arena, wl_set, q->n_aggs);
  p->bares = WL_NEW_N(arena, wl_bare, q->n_cols);
  p->aggs = WL_NEW_N(arena, wl_agg, q->n_aggs);
  p->accs = WL_NEW_N(arena, wl_acc, q->n_aggs);
  c.agg_domains = WL_NEW_N(arena, wl_domain, q->n_aggs);
  c.memo = WL_NEW_N(arena, wl_operand, q->n_exprs);
  c.known = WL_NEW_N(arena, bool, q->n_exprs);
  c.deps = WL_NEW_N(arena, int, q->n_exprs);
  if (arena->failed) return wl_nomem(err);
  for (int i = 0; i < q->n_cols; i++) {
    p->columns[i] = (wl_i16)q->cols[i];
    p->column_regs[i] = wl_column_reg(in->cols[i]);
    p->column_names[i] =
        wl_arena_printf(arena, "%s", q->cols[i] < 0 ? "rowid" : in->table->cols[q->cols[i]].name);
  }
  wl_operand ignored;
  c.fold.fault = &c.fault;
  c.fold.max_text = in->max_text;
  wl_status rc = wl_conv_take(&c.fold.conv, err);
  if (!rc)
    rc = wl_compile_constant(&c, wl_null(), &ignored); /* constant 0, which unused operands name */
  if (!rc) rc = compile(&c);
  wl_scratch_close(&c.fold);
  wl_conv_give(c.fold.conv);
  if (!rc && arena->failed) rc = wl_nomem(err);
  return rc ? rc : wl_program_verify(p, err);
}
