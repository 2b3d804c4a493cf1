/*
** Aggregates: chooses the accumulator of each, and derives what its result can be. Part of the
** compiler. The accumulators themselves are in value/aggregates.h.
**
** Invariants:
** 1. Aggregates that accumulate the same values share an accumulator.
** 2. A result that depends on the order of rows (overflow of sum(), visible ties, group_concat) is
**    taken only if SQLite would also read the rows in rowid order.
*/
#include "program/compile_impl.h"
#include <math.h>
#include <string.h>

static const char *const names[WL_N_AGGREGATES] = {
#define WL_AGGREGATE(name, sql, least, most, marks, empty) sql,
#include "value/aggregates.def"
#undef WL_AGGREGATE
};

static wl_status accumulator(wl_compiler *c, wl_opcode op, const wl_operand *a, int coll,
                             int *out) {
  wl_program *p = c->p;
  for (int i = 0; i < p->n_code; i++) {
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

/* Whether no sum of these integers, over any of the rows, leaves 64 bits. */
static bool ints_fit(const wl_compiler *c, const wl_domain *d) {
  return d->lo > d->hi || (__int128)wl_domain_magnitude(d) * c->max_rows <= WL_I64_MAX;
}

bool wl_compile_sums_fit(const wl_compiler *c) {
  const wl_query *q = c->in->query;
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL);
  for (int k = 0; k < q->n_aggs; k++) {
    wl_operand a;
    if (q->aggs[k].fn != WL_FN_SUM) continue;
    if (wl_compile_type(c, q->aggs[k].arg, &a) || !wl_only(&a, I | F)) return false;
    if (!wl_only(&a, F) && !ints_fit(c, &a.dom)) return false;
  }
  return true;
}

/* Chooses the accumulator that adds these values and derives what the sum can be. */
static wl_status sum_accumulator(wl_compiler *c, wl_operand *a, wl_agg_fn fn, int *acc,
                                 wl_domain *dom) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL);
  wl_status rc = WL_OK;
  if (!wl_only(a, I | F))
    rc = wl_compile_emit(c, WL_OP__SumArg, a, &wl_no_operand, &wl_no_operand, 0,
                         wl_domain_any(I | F | (a->dom.mask & WL_M(WL_T_NULL))), a);
  if (rc) return rc;
  wl_opcode op;
  if (wl_only(a, I)) {
    __int128 most = (__int128)wl_domain_magnitude(&a->dom) * c->max_rows;
    op = most <= WL_I64_MAX ? WL_OP__AggSumI : WL_OP__AggSumX;
    *dom = op == WL_OP__AggSumI ? wl_domain_int((wl_i64)-most, (wl_i64)most, true)
                                : wl_domain_int(WL_I64_MIN, WL_I64_MAX, true);
  } else {
    op = wl_only(a, F) ? WL_OP__AggSumF : WL_OP__AggSumV;
    *dom = wl_domain_any((op == WL_OP__AggSumV ? I | F : F) | WL_M(WL_T_NULL));
  }
  if (fn != WL_FN_SUM)
    *dom = wl_domain_any(F | WL_M(WL_T_NULL));
  else if (c->in->unordered && (op == WL_OP__AggSumX || ints_fit(c, &a->dom)))
    ; /* the run checks whether some order overflows, or none can */
  else if ((op == WL_OP__AggSumX || op == WL_OP__AggSumV) && !c->in->rowid_order)
    return wl_not_taken(c->err, "sum() may overflow, and SQLite would add in index order");
  return accumulator(c, op, a, 0, acc);
}

/* Whether equal values can look different: 1 and 1.0, or text that is equal under a collation. */
bool wl_compile_ties(const wl_compiler *c, const wl_operand *a, int coll) {
  if (wl_has(a, WL_T_INT) && wl_has(a, WL_T_REAL)) return true;
  /* SQLite never shows the sign of a zero; it is kept if the order of rows is known */
  if (!c->in->unordered && wl_has(a, WL_T_REAL) && a->dom.flo <= 0 && a->dom.fhi >= 0)
    return true; /* 0.0 and -0.0 */
  return wl_has(a, WL_T_TEXT) && coll != WL_COLL_BINARY;
}

wl_status wl_compile_check_ties(const wl_compiler *c, const wl_domain *d, int coll,
                                const char *what) {
  wl_operand o = {.dom = *d};
  if (c->in->rowid_order || !wl_compile_ties(c, &o, coll)) return WL_OK;
  return wl_not_taken(c->err, "%s has ties, and SQLite would read them in index order", what);
}

/* The set of an aggregate's distinct values. Aggregates share it if they can. */
static wl_status distinct_values(wl_compiler *c, const wl_operand *a, int coll, wl_distinct_use use,
                                 int *out) {
  wl_program *p = c->p;
  for (int k = 0; k < p->n_sets; k++) {
    wl_acc *acc = &p->accs[p->sets[k].acc];
    bool apart = (acc->distinct == WL_DISTINCT_CONCAT) != (use == WL_DISTINCT_CONCAT);
    int pc = 0;
    while (p->code[pc].op != WL_OP__AggDistinct || p->code[pc].d != p->sets[k].acc) pc++;
    if (apart || p->code[pc].a != a->x || p->sets[k].coll != coll) continue;
    if (use > acc->distinct) acc->distinct = use;
    *out = p->sets[k].acc;
    return WL_OK;
  }
  double lo = a->dom.flo < 0 ? -a->dom.flo : a->dom.flo,
         hi = a->dom.fhi < 0 ? -a->dom.fhi : a->dom.fhi;
  bool numbers = wl_only(a, WL_M(WL_T_INT) | WL_M(WL_T_REAL));
  double bound = !numbers ? INFINITY : lo > hi ? lo : hi; /* a text may be any number */
  *out = p->n_accs;
  p->accs[p->n_accs++] = (wl_acc){.op = WL_OP__AggDistinct,
                                  .coll = (wl_u8)coll,
                                  .bound = bound,
                                  .distinct = use,
                                  .set = p->n_sets};
  wl_domain d = wl_operand_held(a);
  p->sets[p->n_sets++] = (wl_set){*out, (wl_u8)coll, wl_domain_reg(d), d};
  return wl_compile_append(c, (wl_instr){WL_OP__AggDistinct, (wl_i16)*out, a->x, 0, (wl_i16)coll});
}

/* What the sum of distinct values can be. */
static wl_status distinct_sum(wl_compiler *c, const wl_operand *a, wl_agg_fn fn, wl_domain *dom) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL);
  __int128 most = (__int128)wl_domain_magnitude(&a->dom) * c->max_rows;
  bool fits = wl_only(a, I) && most <= WL_I64_MAX;
  *dom = wl_domain_any((wl_only(a, F) ? F : I | F) | WL_M(WL_T_NULL));
  if (wl_only(a, I))
    *dom = wl_domain_int(fits ? (wl_i64)-most : WL_I64_MIN, fits ? (wl_i64)most : WL_I64_MAX, true);
  if (fn != WL_FN_SUM)
    *dom = wl_domain_any(F | WL_M(WL_T_NULL));
  else if (!fits && !wl_only(a, F) && !c->in->rowid_order)
    return wl_not_taken(c->err, "sum() may overflow, and SQLite would add in index order");
  return WL_OK;
}

/* The argument of json_quote() in what the binder made of an aggregate's argument, which may be
** CASE WHEN filter THEN argument END. NULL: it is not one plain value. */
static const wl_bexpr *quoted(const wl_bagg *g) {
  const wl_bexpr *e = g->filtered ? g->arg->list[1] : g->arg;
  if (g->fn == WL_FN_JSON_OBJECT) e = e->a->a; /* (name || ':') || value */
  return e->kind == WL_B_CALL && strcmp(e->text, "\"json_quote\"(?1)") == 0 ? e->list[0] : NULL;
}

/* json_group_array(DISTINCT x) is computed from the distinct texts of json_quote(x). They must be
** different if and only if the values are, which the texts of reals are not. */
static wl_status check_json_distinct(wl_compiler *c, const wl_bagg *g) {
  const wl_bexpr *e = quoted(g);
  wl_operand x;
  wl_status rc = e ? wl_compile_expr(c, e, &x) : WL_OK;
  if (!rc && (!e || wl_has(&x, WL_T_REAL) || wl_bexpr_coll(e) != WL_COLL_BINARY))
    rc =
        wl_not_taken(c->err, "json_group_array() of DISTINCT values that are not integers or text");
  return rc;
}

/* SQLite's versions differ in what they do with a name that is NULL. */
static wl_status check_json_name(wl_compiler *c, const wl_bagg *g) {
  const wl_bexpr *e = quoted(g);
  wl_operand x;
  wl_status rc = e ? wl_compile_expr(c, e, &x) : WL_OK;
  if (!rc && (!e || wl_nullable(&x)))
    rc = wl_not_taken(c->err, "json_group_object() with a name that may be NULL");
  return rc;
}

static wl_agg_final text_final(wl_agg_fn fn) {
  return fn == WL_FN_CONCAT       ? WL_AGG_CONCAT
         : fn == WL_FN_JSON_ARRAY ? WL_AGG_JSON_ARRAY
                                  : WL_AGG_JSON_OBJECT;
}
/* What a joined text can be. A JSON text is never NULL. */
static wl_domain text_domain(wl_agg_fn fn) {
  return wl_domain_any(WL_M(WL_T_TEXT) | (fn == WL_FN_CONCAT ? WL_M(WL_T_NULL) : 0));
}

static wl_status distinct_aggregate(wl_compiler *c, int k, wl_operand *a) {
  const wl_bagg *g = &c->in->query->aggs[k];
  wl_agg *out = &c->p->aggs[k];
  int coll = wl_bexpr_coll(g->arg);
  wl_status rc = WL_OK;
  wl_distinct_use use = WL_DISTINCT_SUM;
  if (g->fn == WL_FN_COUNT) {
    use = WL_DISTINCT_COUNT;
    out->final = WL_AGG_COUNT;
    c->agg_domains[k] = wl_domain_int(0, c->max_rows, false);
  } else if (wl_agg_joins_text(g->fn)) {
    use = WL_DISTINCT_CONCAT;
    out->final = text_final(g->fn);
    c->agg_domains[k] = text_domain(g->fn);
    if (g->fn != WL_FN_CONCAT) rc = check_json_distinct(c, g);
  } else {
    out->final = g->fn == WL_FN_SUM ? WL_AGG_SUM : g->fn == WL_FN_TOTAL ? WL_AGG_TOTAL : WL_AGG_AVG;
    rc = distinct_sum(c, a, g->fn, &c->agg_domains[k]);
    /* if equal values differ as numbers, the result shows which of them was added */
    if (!rc && !c->in->rowid_order && (wl_compile_ties(c, a, coll) || !wl_only(a, WL_M(WL_T_INT))))
      rc = wl_not_taken(c->err, "DISTINCT values that SQLite would read in index order");
  }
  if (!rc && use == WL_DISTINCT_CONCAT && !c->in->rowid_order)
    rc = wl_not_taken(c->err, "%s(), and SQLite would read the rows in index order", names[g->fn]);
  out->reg = wl_domain_reg(c->agg_domains[k]);
  return rc ? rc : distinct_values(c, a, coll, use, &out->acc);
}

static wl_status concat(wl_compiler *c, int k, wl_operand *a) {
  const wl_bagg *g = &c->in->query->aggs[k];
  wl_program *p = c->p;
  wl_operand separator;
  if (!c->in->rowid_order)
    return wl_not_taken(c->err, "%s(), and SQLite would read the rows in index order",
                        names[g->fn]);
  wl_status rc = g->fn == WL_FN_JSON_OBJECT ? check_json_name(c, g) : WL_OK;
  if (!rc && !wl_only_null(a)) rc = wl_compile_text(c, a);
  if (!rc)
    rc = g->separator ? wl_compile_expr(c, g->separator, &separator)
                      : wl_compile_constant(c, wl_text((const wl_u8 *)",", 1), &separator);
  if (!rc && !wl_only_null(&separator)) rc = wl_compile_text(c, &separator);
  if (rc) return rc;
  p->in_order = true;
  p->aggs[k].final = text_final(g->fn);
  p->aggs[k].acc = p->n_accs;
  c->agg_domains[k] = text_domain(g->fn);
  p->accs[p->n_accs++] = (wl_acc){.op = WL_OP__AggConcat};
  return wl_compile_append(
      c, (wl_instr){WL_OP__AggConcat, (wl_i16)p->aggs[k].acc, a->x, separator.x, 0});
}

wl_status wl_compile_aggregate(wl_compiler *c, int k) {
  const wl_bagg *g = &c->in->query->aggs[k];
  wl_agg *out = &c->p->aggs[k];
  wl_operand a = wl_no_operand;
  wl_status rc = WL_OK;
  int coll = g->arg ? wl_bexpr_coll(g->arg) : WL_COLL_BINARY;
  bool extreme = g->fn == WL_FN_MIN || g->fn == WL_FN_MAX;
  bool by_code = (g->fn == WL_FN_COUNT && !g->distinct) ||
                 ((g->fn == WL_FN_COUNT || extreme) && coll == WL_COLL_BINARY);
  if (g->arg) rc = wl_compile_coded(c, g->arg, &a);
  if (!rc) rc = wl_compile_value(c, &a);
  if (!rc && !by_code) rc = wl_compile_plain(c, &a);
  if (rc) return rc;
  /* rowids are distinct, and duplicates do not change min() and max() */
  bool unique =
      g->arg && g->arg->kind == WL_B_COLUMN && g->arg->index < 0 && c->in->query->n_sources == 1;
  if (g->distinct && !unique && g->fn != WL_FN_MIN && g->fn != WL_FN_MAX)
    return distinct_aggregate(c, k, &a);
  switch (g->fn) {
  case WL_FN_CONCAT:
  case WL_FN_JSON_ARRAY:
  case WL_FN_JSON_OBJECT: rc = concat(c, k, &a); break;
  case WL_FN_COUNT:
    out->final = WL_AGG_COUNT;
    c->agg_domains[k] = wl_domain_int(0, c->max_rows, false);
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
    rc = sum_accumulator(c, &a, g->fn, &out->acc, &c->agg_domains[k]);
    break;
  case WL_FN_MIN:
  case WL_FN_MAX: {
    bool min = g->fn == WL_FN_MIN, F = wl_only(&a, WL_M(WL_T_REAL));
    bool N = wl_only(&a, WL_M(WL_T_INT) | WL_M(WL_T_REAL));
    bool I = wl_only(&a, WL_M(WL_T_INT)) || a.dict || a.date;
    if (wl_compile_ties(c, &a, coll) && !c->in->rowid_order)
      return wl_not_taken(c->err, "%s() has ties, and SQLite would read them in index order",
                          min ? "min" : "max");
    out->final = WL_AGG_MINMAX;
    c->agg_domains[k] = wl_domain_with_null(a.dom, true);
    rc = accumulator(c,
                     I   ? (min ? WL_OP__AggMinI : WL_OP__AggMaxI)
                     : F ? (min ? WL_OP__AggMinF : WL_OP__AggMaxF)
                     : N ? (min ? WL_OP__AggMinN : WL_OP__AggMaxN)
                         : (min ? WL_OP__AggMinV : WL_OP__AggMaxV),
                     &a, I || F || N ? 0 : coll, &out->acc);
    if (c->in->query->bare && c->in->query->decides == k) c->p->accs[out->acc].rowed = true;
    break;
  }
  }
  out->reg = wl_domain_reg(c->agg_domains[k]);
  if (extreme && (a.dict || a.date)) {
    out->dict = a.dict;
    out->date = a.date;
    out->reg.type = WL_R_INT;
  }
  return rc;
}
