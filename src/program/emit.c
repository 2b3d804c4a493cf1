/*
** Emits instructions and constants, and converts between operand types. Part of the compiler. See
** expr.c for the invariants.
*/
#include "program/compile_impl.h"
#include "value/conv.h"
#include <string.h>

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

/* Computes op into a register of type r. Reuses an equal instruction if there is one. */
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

/* Emits op over a, b and truth t or number k. Folds it if all are constants. dom: its possible
** results. */
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
        return wl_not_taken(c->err, "a constant string is longer than SQLite allows");
      if (c->fault) return wl_nomem(c->err);
      wl_status rc = wl_compile_constant(c, v, out);
      out->truth = want[0] == 'B';
      return rc;
    }
  }
  if ((dom.mask & ~WL_M(WL_T_NULL)) == 0 && want[0] != 'B')
    return wl_compile_constant(c, wl_null(), out);
  wl_i16 ax = a->x, bx = has_b ? b->x : 0,
         cx = has_t ? t->x : (wl_i16)k; /* read them first, since out may be one of them */
  memset(out, 0, sizeof *out);
  out->dom = dom;
  out->truth = want[0] == 'B';
  wl_reg r = wl_domain_reg(dom);
  if (want[0] == 'I') r.type = WL_R_INT;
  if (want[0] == 'F') r.type = WL_R_REAL;
  if (want[0] == 'B') r = (wl_reg){WL_R_TRUTH, false};
  return wl_compile_reg(c, op, r, ax, bx, cx, &out->x);
}
wl_status wl_compile_emit2(wl_compiler *c, wl_opcode op, const wl_operand *a, const wl_operand *b,
                           wl_domain dom, wl_operand *out) {
  return wl_compile_emit(c, op, a, b, &wl_no_operand, 0, dom, out);
}

wl_status wl_compile_emit1(wl_compiler *c, wl_opcode op, const wl_operand *a, wl_domain dom,
                           wl_operand *out) {
  return wl_compile_emit(c, op, a, &wl_no_operand, &wl_no_operand, 0, dom, out);
}

/* ---- conversions between operand types */

/* Turns a truth into the integer 0, 1 or NULL. Other operands stay as they are. */
wl_status wl_compile_value(wl_compiler *c, wl_operand *o) {
  if (!o->truth) return WL_OK;
  o->truth = false;
  if (wl_is_const(o)) return WL_OK;
  return wl_compile_emit1(c, WL_OP__TruthToInt, o, o->dom, o);
}

wl_status wl_compile_real(wl_compiler *c, wl_operand *o) {
  if (wl_only_null(o) && wl_is_const(o)) return WL_OK;
  if (!wl_has(o, WL_T_INT) && !wl_only_null(o)) return WL_OK;
  double lo = o->dom.lo > o->dom.hi ? 0 : (double)o->dom.lo,
         hi = o->dom.lo > o->dom.hi ? 0 : (double)o->dom.hi;
  return wl_compile_emit1(c, WL_OP__IntToReal, o, wl_domain_real(lo, hi, wl_nullable(o)), o);
}

wl_status wl_compile_int(wl_compiler *c, wl_operand *o) {
  wl_status rc = wl_compile_value(c, o);
  if (rc || wl_only(o, WL_M(WL_T_INT))) return rc;
  wl_domain full = wl_domain_int(WL_I64_MIN, WL_I64_MAX, wl_nullable(o));
  if (!wl_only(o, WL_M(WL_T_REAL))) return wl_compile_emit1(c, WL_OP__ToInt, o, full, o);
  full.lo = wl_f64_to_i64(o->dom.flo);
  full.hi = wl_f64_to_i64(o->dom.fhi);
  return wl_compile_emit1(c, WL_OP__RealToInt, o, full, o);
}

wl_status wl_compile_text(wl_compiler *c, wl_operand *o) {
  wl_status rc = wl_compile_value(c, o);
  if (rc || wl_only(o, WL_M(WL_T_TEXT))) return rc;
  wl_domain d = wl_domain_any(WL_M(WL_T_TEXT) | (o->dom.mask & WL_M(WL_T_NULL)));
  return wl_compile_emit1(c, wl_has(o, WL_T_REAL) ? WL_OP__ToText : WL_OP__IntToText, o, d, o);
}

wl_status wl_compile_as_truth(wl_compiler *c, wl_operand *o) {
  if (o->truth) return WL_OK;
  wl_domain d = wl_truth_domain(wl_nullable(o));
  if (wl_is_const(o) && wl_only_null(o)) {
    o->truth = true;
    return WL_OK;
  }
  if (!wl_only(o, WL_M(WL_T_INT) | WL_M(WL_T_REAL))) {
    wl_status rc =
        wl_compile_emit1(c, WL_OP__CastReal, o,
                         wl_domain_real(-__builtin_inf(), __builtin_inf(), wl_nullable(o)), o);
    if (rc) return rc;
  }
  wl_opcode op = wl_only(o, WL_M(WL_T_INT))    ? WL_OP__TruthI
                 : wl_only(o, WL_M(WL_T_REAL)) ? WL_OP__TruthF
                                               : WL_OP__TruthV;
  return wl_compile_emit1(c, op, o, d, o);
}
