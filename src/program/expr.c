/*
** Expressions: one pass over the bound graph, with one register per distinct value. Part of the
** compiler. compile.c compiles the expressions of each pipeline, call.c functions, and entries.c
** what can be computed once per dictionary entry.
**
** Invariants:
** 1. An operand is a constant or a register of the current pipeline, with the domain of its values.
**    The register's type follows from the domain alone (wl_domain_reg).
** 2. Opcodes are pure, so an instruction that is already in the pipeline is not emitted again.
*/
#include "program/compile_impl.h"
#include "value/conv.h"
#include <stdlib.h>
#include <string.h>

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
    return wl_compile_emit2(c, table[op][0], a, b, wl_domain_int(lo, hi, null), out);
  }
  /* % of an integer and a real uses the integer itself, without converting it to a real */
  bool mixed = wl_only(a, I) != wl_only(b, I);
  if ((wl_only(a, I) || wl_only(a, F)) && (wl_only(b, I) || wl_only(b, F)) &&
      !(wl_only(a, I) && wl_only(b, I)) && !(mixed && op == WL_OP_REM)) {
    double flo, fhi;
    bool nan;
    rc = wl_compile_real(c, a);
    if (!rc) rc = wl_compile_real(c, b);
    if (rc) return rc;
    wl_domain_arith_real(op, &a->dom, &b->dom, &flo, &fhi, &nan);
    return wl_compile_emit2(c, table[op][1], a, b, wl_domain_real(flo, fhi, null || nan), out);
  }
  /* integers and reals: each row decides; Inf - Inf and the like also give NULL */
  bool ints = wl_only(a, I) && wl_only(b, I);
  wl_domain d = wl_domain_any(I | F | (null || by || !ints ? WL_M(WL_T_NULL) : 0));
  if (ints) {
    d.flo = -1e39;
    d.fhi = 1e39;
  } else if (!by) {
    wl_domain_arith_mixed(op, &a->dom, &b->dom, null, &d);
  }
  return wl_compile_emit2(c, table[op][2], a, b, d, out);
}

static wl_status bits(wl_compiler *c, wl_op op, wl_operand *a, wl_operand *b, wl_operand *out) {
  wl_opcode code = op == WL_OP_BITAND  ? WL_OP__BitAndI
                   : op == WL_OP_BITOR ? WL_OP__BitOrI
                   : op == WL_OP_SHL   ? WL_OP__ShlI
                                       : WL_OP__ShrI;
  wl_i64 lo, hi;
  wl_status rc = wl_compile_int(c, a);
  if (!rc) rc = wl_compile_int(c, b);
  if (rc) return rc;
  if (wl_only_null(a) || wl_only_null(b)) return wl_compile_constant(c, wl_null(), out);
  if (!wl_domain_arith_int(op, &a->dom, &b->dom, &lo, &hi)) return WL_ERROR;
  return wl_compile_emit2(c, code, a, b, wl_domain_int(lo, hi, wl_nullable(a) || wl_nullable(b)),
                          out);
}

static wl_status arith_node(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_operand a, b;
  wl_status rc = wl_compile_expr(c, e->a, &a);
  if (!rc && e->b) rc = wl_compile_expr(c, e->b, &b);
  if (rc) return rc;
  switch (e->op) {
  case WL_OP_BITNOT:
    rc = wl_compile_int(c, &a);
    if (rc) return rc;
    if (wl_only_null(&a)) return wl_compile_constant(c, wl_null(), out);
    return wl_compile_emit1(c, WL_OP__BitNotI, &a,
                            wl_domain_int(WL_I64_MIN, WL_I64_MAX, wl_nullable(&a)), out);
  case WL_OP_BITAND:
  case WL_OP_BITOR:
  case WL_OP_SHL:
  case WL_OP_SHR: return bits(c, e->op, &a, &b, out);
  case WL_OP_CONCAT:
    rc = wl_compile_text(c, &a);
    if (!rc) rc = wl_compile_text(c, &b);
    if (rc) return rc;
    if (wl_only_null(&a) || wl_only_null(&b)) return wl_compile_constant(c, wl_null(), out);
    return wl_compile_emit2(
        c, WL_OP__Concat, &a, &b,
        wl_domain_with_null(wl_domain_any(WL_M(WL_T_TEXT)), wl_nullable(&a) || wl_nullable(&b)),
        out);
  default: return wl_compile_arith(c, e->op, &a, &b, out);
  }
}

/* Applies an affinity to both sides of a comparison, as SQLite does first. */
wl_status wl_compile_affinity(wl_compiler *c, char affinity, wl_operand *a, wl_operand *b) {
  const unsigned T = WL_M(WL_T_TEXT), N = WL_M(WL_T_INT) | WL_M(WL_T_REAL);
  wl_operand *side[2] = {a, b};
  wl_domain before[2] = {a->dom, b->dom};
  wl_operand was[2] = {*a, *b};
  for (int k = 0; k < 2; k++) {
    wl_operand *o = side[k];
    wl_status rc = WL_OK;
    if (affinity >= 'C' && (before[k].mask & T)) {
      rc = wl_compile_emit1(c, WL_OP__NumAffinity, o, wl_domain_union(o->dom, wl_domain_any(N)), o);
    } else if (affinity == 'B' && (before[k].mask & N) && (before[1 - k].mask & T)) {
      wl_domain d = o->dom;
      d.mask |= T;
      if ((before[1 - k].mask & ~T & ~WL_M(WL_T_NULL)) == 0 && !wl_has(o, WL_T_BLOB))
        rc = wl_compile_text(c, o);
      else
        rc =
            wl_compile_emit2(c, wl_has(o, WL_T_REAL) ? WL_OP__TextAffinity : WL_OP__IntTextAffinity,
                             o, &was[1 - k], d, o);
    }
    if (rc) return rc;
  }
  return WL_OK;
}

bool wl_exact_as_real(const wl_operand *o) {
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
  wl_domain d = wl_truth_domain(wl_nullable(a) || wl_nullable(b));
  if (wl_only(a, I) && wl_only(b, I)) return wl_compile_emit2(c, table[op][0], a, b, d, out);
  if ((wl_only(a, F) || (wl_only(a, I) && wl_exact_as_real(a))) &&
      (wl_only(b, F) || (wl_only(b, I) && wl_exact_as_real(b)))) {
    rc = wl_compile_real(c, a);
    if (!rc) rc = wl_compile_real(c, b);
    return rc ? rc : wl_compile_emit2(c, table[op][1], a, b, d, out);
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
  return wl_compile_emit1(c, WL_OP__IsNull, a, wl_truth_domain(false), out);
}

/* The types of an operand's values. */
static unsigned types_of(const wl_operand *o) {
  return o->dict ? WL_M(WL_T_TEXT) : o->dom.mask;
}

wl_status wl_compile_arms_agree(const wl_compiler *c, const wl_bexpr *e, const wl_operand *a,
                                const wl_operand *b) {
  unsigned types = types_of(a) | types_of(b);
  bool text = types & WL_M(WL_T_TEXT), number = types & (WL_M(WL_T_INT) | WL_M(WL_T_REAL));
  if (!e->arm_affinity || !text || (e->arm_affinity == 'B' && !number)) return WL_OK;
  return wl_not_taken(c->err, "a comparison with a compound whose arms differ in affinity");
}

static wl_status is_node(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_operand a, b;
  wl_status rc = wl_compile_expr(c, e->a, &a);
  if (!rc) rc = wl_compile_expr(c, e->b, &b);
  if (!rc) rc = wl_compile_arms_agree(c, e, &a, &b);
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
                              wl_truth_domain(false), out);
}

/* a AND b, or a OR b; both are truths. */
wl_status wl_compile_either(wl_compiler *c, bool and, wl_operand *a, wl_operand *b,
                            wl_operand *out) {
  /* a constant side either decides the result or has no effect */
  for (int k = 0; k < 2; k++) {
    wl_operand *x = k ? b : a, *y = k ? a : b;
    if (!wl_is_const(x) || wl_const_value(c, x).t == WL_T_NULL) continue;
    *out = (wl_const_value(c, x).v != 0) == and? *y : *x;
    return WL_OK;
  }
  return wl_compile_emit2(c, and? WL_OP__And : WL_OP__Or, a, b,
                          wl_truth_domain(wl_nullable(a) || wl_nullable(b)), out);
}

static wl_status logic(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_operand a, b;
  wl_status rc = wl_compile_truth(c, e->a, &a);
  if (!rc) rc = wl_compile_truth(c, e->b, &b);
  return rc ? rc : wl_compile_either(c, e->kind == WL_B_AND, &a, &b, out);
}

static wl_status truth_node(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_operand one;
  wl_status rc = wl_compile_expr(c, e->a, out);
  if (!rc) rc = wl_compile_as_truth(c, out);
  if (rc || e->kind == WL_B_NOT)
    return rc ? rc : wl_compile_emit1(c, WL_OP__Not, out, out->dom, out);
  if (!wl_nullable(out)) return WL_OK; /* a IS TRUE equals a if a is not NULL */
  rc = wl_compile_value(c, out);
  if (!rc) rc = wl_compile_constant(c, wl_int(1), &one);
  return rc ? rc
            : wl_compile_emit(c, WL_OP__IsV, out, &one, &wl_no_operand, 0, wl_truth_domain(false),
                              out);
}

static wl_status case_node(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL);
  wl_status rc = wl_compile_expr(c, e->list[e->n_list - 1], out);
  if (!rc) rc = wl_compile_value(c, out);
  for (int k = e->n_list - 3; k >= 0 && !rc; k -= 2) {
    wl_operand when, then;
    rc = wl_compile_expr(c, e->list[k], &when);
    if (!rc) rc = wl_compile_as_truth(c, &when);
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
  case 'D': return wl_compile_int(c, out);
  case 'E':
    if (wl_only(out, F)) return WL_OK;
    if (wl_only(out, I)) return wl_compile_real(c, out);
    return wl_compile_emit1(c, WL_OP__CastReal, out,
                            wl_domain_real(-__builtin_inf(), __builtin_inf(), null), out);
  case 'B': return wl_compile_text(c, out);
  case 'A':
    if (wl_only(out, WL_M(WL_T_BLOB))) return WL_OK;
    if (wl_has(out, WL_T_INT) || wl_has(out, WL_T_REAL)) rc = wl_compile_text(c, out);
    return rc ? rc
              : wl_compile_emit1(c, WL_OP__ToBlob, out, wl_domain_any(WL_M(WL_T_BLOB) | null), out);
  default:
    if (wl_only(out, I | F)) return WL_OK;
    return wl_compile_emit1(c, WL_OP__CastNumeric, out, wl_domain_any(I | F | null), out);
  }
}

/* ---- leaves: columns of the table, or keys and aggregates of the groups */

/* In the pipeline over the groups, an expression that equals a group key is that key's column. */
static int key_of(const wl_compiler *c, const wl_bexpr *e) {
  for (int k = 0; k < c->n_groups && !c->over_table; k++)
    if (wl_bexpr_same(c->groups[k], e)) return k;
  return -1;
}

/* The index of a table column among the bare columns, which are read from one row of each group. */
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
  if (c->entries) return 0; /* the only leaf stands for the entries */
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
    if (k->dict || k->date)
      dom = wl_domain_with_null(wl_domain_any(WL_M(WL_T_TEXT)), k->reg.nullable);
    r = k->reg;
    out->dict = k->dict;
    out->date = k->date;
  } else if (leaf < p->n_keys + p->n_aggs) {
    const wl_agg *a = &p->aggs[leaf - p->n_keys];
    dom = c->agg_domains[leaf - p->n_keys];
    r = a->reg;
    out->dict = a->dict;
    out->date = a->date;
  } else {
    const wl_bare *b = &p->bares[leaf - p->n_keys - p->n_aggs];
    const wl_column *col = c->in->cols[b->column];
    dom = wl_domain_with_null(col->domain, b->reg.nullable);
    r = b->reg;
    out->dict = col->dict;
  }
  if ((dom.mask & ~WL_M(WL_T_NULL)) == 0) {
    out->dict = NULL;
    out->date = NULL;
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
    rc = wl_compile_coded(c, e->a, out); /* the unchanged value */
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
  case WL_B_COMPARE: {
    bool done, by_code = e->cmp_affinity < 'C' && e->cmp_coll == WL_COLL_BINARY;
    rc = by_code ? wl_compile_compare_times(c, e, &done, out) : WL_OK;
    if (rc || (by_code && done)) return rc;
    rc = wl_compile_coded(c, e->a, &a);
    if (!rc) rc = wl_compile_coded(c, e->b, &b);
    if (!rc) rc = wl_compile_in_real(c, e, &a, &b);
    if (!rc) rc = wl_compile_arms_agree(c, e, &a, &b);
    if (!rc && by_code) {
      rc = wl_compile_compare_codes(c, e->op, &a, &b, &done, out);
      if (rc || done) return rc;
    }
    if (!rc && a.dict && b.dict && by_code) {
      rc = wl_compile_common(c, &a, &b);
    } else if (!rc) {
      rc = wl_compile_plain(c, &a);
      if (!rc) rc = wl_compile_plain(c, &b);
    }
    return rc ? rc : wl_compile_compare(c, e->op, e->cmp_affinity, e->cmp_coll, &a, &b, out);
  }
  case WL_B_IS: return is_node(c, e, out);
  case WL_B_IN: return wl_compile_in_list(c, e, out);
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
  case WL_B_INSUB: return wl_compile_in_sub(c, e, out);
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
  return rc ? rc : wl_compile_as_truth(c, out);
}
