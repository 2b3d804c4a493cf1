/*
** Zone maps: whether a tablet can contain a row that passes the filters, judging only by the types
** and ranges of its columns. The filters' opcodes run over ranges instead of rows.
**
** Invariants:
** 1. A register's range contains every value that a row of the tablet can give it. The result of an
**    opcode that is not handled here can be anything.
*/
#include "exec/zone.h"
#include "base/mem.h"
#include "program/ranges.h"
#include "sql/ast.h"
#include "column/lookup.h"

enum { MAX_REGS = 256, MAX_MAP = 4096 };
enum { F = 1, U = 2, T = 4, ALL = F | U | T };

/* What a register can be: a set of F, U, T for truths; a domain for numbers. */
typedef struct range {
  wl_u8 truths;
  bool known;
  wl_domain d;
} range;

static const range anything = {.truths = ALL};

static range of_operand(const wl_program *p, const range *regs, wl_i16 x) {
  if (!WL_IS_CONST(x)) return regs[x];
  wl_val v = p->consts[WL_CONST_OF(x)];
  range r = {.known = v.t <= WL_T_REAL, .d = wl_domain_of(v)};
  r.truths = v.t == WL_T_NULL ? U : v.t != WL_T_INT ? ALL : v.v ? T : F;
  return r;
}

/* The truths that a comparison can give if "less", "equal" and "greater" are possible or not. */
static wl_u8 compare(wl_u16 op, bool less, bool equal, bool greater) {
  bool yes = false, no = false;
  switch (op) {
  case WL_OP__EqI:
  case WL_OP__EqF: yes = equal, no = less || greater; break;
  case WL_OP__NeI:
  case WL_OP__NeF: yes = less || greater, no = equal; break;
  case WL_OP__LtI:
  case WL_OP__LtF: yes = less, no = equal || greater; break;
  case WL_OP__LeI:
  case WL_OP__LeF: yes = less || equal, no = greater; break;
  case WL_OP__GtI:
  case WL_OP__GtF: yes = greater, no = less || equal; break;
  default: yes = greater || equal, no = less; break;
  }
  return (wl_u8)((yes ? T : 0) | (no ? F : 0));
}

static range compared(wl_u16 op, bool real, const range *a, const range *b) {
  if (!a->known || !b->known) return anything;
  bool null = (a->d.mask | b->d.mask) & WL_M(WL_T_NULL);
  wl_u8 t = 0;
  if (real && a->d.flo <= a->d.fhi && b->d.flo <= b->d.fhi)
    t = compare(op, a->d.flo < b->d.fhi, a->d.flo <= b->d.fhi && b->d.flo <= a->d.fhi,
                a->d.fhi > b->d.flo);
  else if (!real && a->d.lo <= a->d.hi && b->d.lo <= b->d.hi)
    t = compare(op, a->d.lo < b->d.hi, a->d.lo <= b->d.hi && b->d.lo <= a->d.hi, a->d.hi > b->d.lo);
  return (range){.truths = (wl_u8)(t | (null ? U : 0))};
}

static range of_column(const wl_column *c, int tablet) {
  range r = {.truths = ALL, .known = true, .d = c->segments[tablet].domain};
  if (c->dict) /* the range is that of the codes */
    r.d.mask = (wl_u8)((r.d.mask & WL_M(WL_T_NULL)) | WL_M(WL_T_INT));
  r.known = (r.d.mask & ~(WL_M(WL_T_NULL) | WL_M(WL_T_INT) | WL_M(WL_T_REAL))) == 0;
  return r;
}

static range of_map(const wl_map *m, const range *a) {
  if (!a->known || (a->d.lo <= a->d.hi && (wl_u64)a->d.hi - (wl_u64)a->d.lo > MAX_MAP))
    return anything;
  wl_u8 t = 0;
  for (wl_i64 i = a->d.lo; i <= a->d.hi; i++) t |= (wl_u8)(1 << m->t[i - m->base]);
  if (a->d.mask & WL_M(WL_T_NULL)) t |= (wl_u8)(1 << m->t[m->n]);
  return (range){.truths = t};
}

/* Combines each possible pair of truths by AND (the smaller) or OR (the larger). */
static range joined(bool and, wl_u8 a, wl_u8 b) {
  wl_u8 t = 0;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      if ((a >> i & 1) && (b >> j & 1)) t |= (wl_u8)(1 << ((i < j) == and? i : j));
  return (range){.truths = t};
}

static range arith(wl_u16 op, const range *a, const range *b) {
  static const wl_op ops[] = {WL_OP_ADD, WL_OP_SUB, WL_OP_MUL};
  bool real = op == WL_OP__AddF || op == WL_OP__SubF || op == WL_OP__MulF;
  wl_op o = ops[op == WL_OP__AddI || op == WL_OP__AddF   ? 0
                : op == WL_OP__SubI || op == WL_OP__SubF ? 1
                                                         : 2];
  range r = anything;
  if (!a->known || !b->known) return r;
  bool null = (a->d.mask | b->d.mask) & WL_M(WL_T_NULL), nan = false;
  if (real) {
    double lo, hi;
    wl_domain_arith_real(o, &a->d, &b->d, &lo, &hi, &nan);
    r.d = wl_domain_real(lo, hi, null || nan);
  } else {
    wl_i64 lo, hi;
    if (!wl_domain_arith_int(o, &a->d, &b->d, &lo, &hi)) return r;
    r.d = wl_domain_int(lo, hi, null);
  }
  r.known = true;
  return r;
}

static range evaluate_op(const wl_program *p, const wl_instr *in, const range *regs,
                         wl_column **cols, int tablet) {
  wl_shape shape = wl_opcodes[in->op].shape;
  if (shape == WL_SHAPE_COLUMN && wl_column_source(p, in->a) > 0)
    return anything; /* a joined row can be any row of its source */
  if (shape == WL_SHAPE_COLUMN) return of_column(cols[in->a], tablet);
  range a = wl_shapes[shape][1] != ' ' ? of_operand(p, regs, in->a) : anything;
  range b = wl_shapes[shape][2] != ' ' ? of_operand(p, regs, in->b) : anything;
  switch (shape) {
  case WL_SHAPE_B_II: return compared(in->op, false, &a, &b);
  case WL_SHAPE_B_FF: return compared(in->op, true, &a, &b);
  case WL_SHAPE_MAP_B: return of_map(&p->maps[in->c], &a);
  case WL_SHAPE_B_BB: return joined(in->op == WL_OP__And, a.truths, b.truths);
  case WL_SHAPE_B_B:
    return (range){.truths =
                       (wl_u8)((a.truths & U) | (a.truths & F ? T : 0) | (a.truths & T ? F : 0))};
  case WL_SHAPE_I_II:
  case WL_SHAPE_F_FF:
    if (in->op == WL_OP__AddI || in->op == WL_OP__SubI || in->op == WL_OP__MulI ||
        in->op == WL_OP__AddF || in->op == WL_OP__SubF || in->op == WL_OP__MulF)
      return arith(in->op, &a, &b);
    return anything;
  case WL_SHAPE_F_I: {
    if (!a.known) return anything;
    range r = {.truths = ALL, .known = true};
    bool some = a.d.lo <= a.d.hi;
    r.d = wl_domain_real(some ? (double)a.d.lo : 1, some ? (double)a.d.hi : 0,
                         a.d.mask & WL_M(WL_T_NULL));
    return r;
  }
  default: return anything;
  }
}

/* Whether no row of the tablet has a match in a join that drops rows without one. */
static bool finds_nothing(const wl_program *p, const wl_instr *in, const range *regs) {
  const wl_join *j = &p->joins[in->c];
  const wl_lookup *l = j->lookup;
  if ((j->how != WL_HOW_INNER && j->how != WL_HOW_SEMI) || !l || l->plan.kind != WL_KEYS_INT)
    return false;
  for (int k = 0; k < j->n_keys; k++) {
    range a = of_operand(p, regs, j->keys[k]);
    const wl_key_part *part = &l->plan.parts[k];
    bool null = a.known && (a.d.mask & WL_M(WL_T_NULL)) && part->null;
    if (a.known && !null && (a.d.hi < part->lo || a.d.lo > part->hi)) return true;
  }
  return false;
}

bool wl_zone_skips(const wl_program *p, wl_column **cols, int tablet) {
  range regs[MAX_REGS];
  int last = -1;
  /* After an Expand a filter tests pairs, and a row without pairs may still be kept. A row must
  ** come as far as a Mark, even if it is dropped later. */
  for (int pc = 0; pc < p->n_code; pc++) {
    wl_u16 op = p->code[pc].op;
    if (op == WL_OP__IfNot || op == WL_OP__Probe || op == WL_OP__Expand) last = pc;
    if (op == WL_OP__Expand || op == WL_OP__Mark) break;
  }
  if (last < 0 || p->n_regs > MAX_REGS) return false;
  for (int pc = 0; pc <= last; pc++) {
    const wl_instr *in = &p->code[pc];
    if (in->op == WL_OP__Call && p->calls[in->c].fallible) return false;
    if (in->op == WL_OP__IfNot) {
      if (!(of_operand(p, regs, in->a).truths & T)) return true;
    } else if (in->op == WL_OP__Probe || in->op == WL_OP__Expand) {
      if (finds_nothing(p, in, regs)) return true;
    } else if (wl_shapes[wl_opcodes[in->op].shape][0] != ' ') {
      regs[in->d] = evaluate_op(p, in, regs, cols, tablet);
    }
  }
  return false;
}
