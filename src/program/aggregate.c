/*
** Groups and aggregates: chooses what groups are found by, the accumulator of each aggregate, and
** derives what its result can be. Part of the compiler. The accumulators themselves are in
** value/aggregates.h.
**
** Invariants:
** 1. Aggregates that accumulate the same values share an accumulator.
** 2. A result that depends on the order of rows (overflow of sum(), visible ties, group_concat) is
**    taken only if SQLite would also read the rows in rowid order.
** 3. Groups are found by row numbers (wl_program.finds) only if the states of several groups can be
**    joined, and equal keys look the same.
*/
#include "program/compile_impl.h"
#include "column/lookup.h"
#include "column/statistics.h"
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
  *out = p->n_accs;
  p->accs[p->n_accs++] = (wl_acc){.op = WL_OP__AggDistinct,
                                  .coll = (wl_u8)coll,
                                  .bound = lo > hi ? lo : hi,
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

/* ---- groups */

static bool has_minmax(const wl_query *q) {
  for (int k = 0; k < q->n_aggs; k++)
    if (q->aggs[k].fn == WL_FN_MIN || q->aggs[k].fn == WL_FN_MAX) return true;
  return false;
}

static wl_status key_operand(wl_compiler *c, int k, wl_operand *o) {
  wl_status rc = wl_compile_coded(c, c->groups[k], o);
  if (!rc) rc = wl_compile_value(c, o);
  if (!rc && wl_bexpr_coll(c->groups[k]) != WL_COLL_BINARY) rc = wl_compile_plain(c, o);
  return rc;
}

static wl_key key_of(const wl_compiler *c, int k, const wl_operand *o) {
  const wl_query *q = c->in->query;
  /* as in SQLite: if ORDER BY has as many terms, the groups use their directions */
  bool desc = q->grouped && q->n_order == q->n_groups && q->order[k].desc;
  wl_domain held = wl_operand_held(o);
  return (wl_key){.operand = o->x,
                  .coll = (wl_u8)wl_bexpr_coll(c->groups[k]),
                  .desc = desc,
                  .reg = wl_domain_reg(held),
                  .domain = held,
                  .dict = o->dict,
                  .date = o->date,
                  .column = -1,
                  .computed = -1};
}

/* Whether the states of groups can be joined without knowing the order of the rows. */
static bool joins_states(const wl_compiler *c) {
  const wl_query *q = c->in->query;
  for (int k = 0; k < q->n_aggs; k++) {
    const wl_bagg *a = &q->aggs[k];
    if (wl_agg_joins_text(a->fn)) return false;
    if (a->distinct && a->fn != WL_FN_MIN && a->fn != WL_FN_MAX) return false;
  }
  return !q->bare && wl_compile_sums_fit(c);
}

/* The estimated rows of a source that the pipeline can find, and the rows that reach its end. */
static double rows_found(const wl_compiler *c, int source, double *at_end) {
  const wl_jplan *plan = c->in->plan;
  double n = plan->n_first;
  *at_end = plan->n_first;
  for (int k = 0; k < plan->n_steps; k++) {
    const wl_lookup *l = c->in->lookups[k];
    if (plan->steps[k].source == source) n = l ? (double)l->n_rows : plan->steps[k].n_build;
    *at_end = plan->steps[k].n_out;
  }
  return n;
}

/* Rows of a source, at least 1. Some column of it is read. */
static wl_i64 rows_of_source(const wl_compiler *c, int source) {
  const wl_query *q = c->in->query;
  for (int i = 0; i < q->n_cols; i++)
    if (q->cols[i].source == source && c->in->cols[i] && c->in->cols[i]->n_rows)
      return c->in->cols[i]->n_rows;
  return 1;
}

/* Whether finding groups by rows of a source pays, if keys are texts: fewer texts are hashed, but
** rows with equal keys are sorted one by one, and there may be an array with a place for every row
** of the source. n_values: the number of different keys; 0: unknown. */
static bool rows_pay(const wl_compiler *c, int source, double n_values) {
  enum { SORT_COST = 6, PLACES = 100 }; /* sorting a row costs 6 texts, hashing one 100 places */
  double at_end, n = rows_found(c, source, &at_end);
  if ((double)rows_of_source(c, source) > at_end * PLACES) return false;
  if (n > at_end) n = at_end;
  if (n_values == 0) n_values = n / 2;
  return at_end >= SORT_COST * (n - n_values);
}

/* Whether e reads texts or values of several types that have no dictionary. */
static bool reads_plain_values(const wl_compiler *c, const wl_bexpr *e) {
  if (!e) return false;
  if (e->kind == WL_B_COLUMN) return wl_column_reg(c->in->cols[e->slot]).type > WL_R_REAL;
  for (int k = 0; k < e->n_list; k++)
    if (reads_plain_values(c, e->list[k])) return true;
  return reads_plain_values(c, e->a) || reads_plain_values(c, e->b);
}

/* Whether e asks whether a source has a row. */
static bool asks_for_row(const wl_bexpr *e) {
  if (!e || e->kind == WL_B_FOUND) return e != NULL;
  for (int k = 0; k < e->n_list; k++)
    if (asks_for_row(e->list[k])) return true;
  return asks_for_row(e->a) || asks_for_row(e->b);
}

/* The source that a key depends on, if its row number may stand for the key; else -1. Rows of the
** source must come more than once. */
static int source_of_key(const wl_compiler *c, int k) {
  const wl_bexpr *e = c->groups[k];
  wl_u64 sources = wl_bexpr_sources(e);
  if (!sources || (sources & (sources - 1))) return -1;
  int s = __builtin_ctzll(sources), place = c->places[s];
  bool repeats = place > 0 || (place == 0 && c->p->expands);
  if (!repeats || rows_of_source(c, s) >= 0xffffffffLL) return -1;
  return asks_for_row(e) ? -1 : s;
}

typedef struct key_facts {
  wl_key key;
  int source; /* see source_of_key() */
} key_facts;

/* Whether some key is a plain value, or some source has several keys. Others are found quickly. */
static bool has_dear_keys(const wl_compiler *c, key_facts *keys) {
  bool dear = false;
  wl_u64 seen = 0;
  for (int k = 0; k < c->n_groups; k++) {
    int s = keys[k].source = source_of_key(c, k);
    if (s < 0) continue;
    dear |= (seen >> s & 1) || reads_plain_values(c, c->groups[k]);
    seen |= 1ULL << s;
  }
  return dear;
}

/* Learns the types of the keys in a temporary program. *same: equal keys look the same. */
static wl_status learn_keys(wl_compiler *c, key_facts *keys, bool *same) {
  wl_compiler side;
  wl_status rc = wl_compile_side(c, 0, &side);
  *same = true;
  for (int k = 0; k < c->n_groups && !rc; k++) {
    wl_operand o;
    rc = key_operand(&side, k, &o);
    if (rc) break;
    keys[k].key = key_of(c, k, &o);
    if (wl_is_const(&o)) keys[k].source = -1;
    *same &= !wl_compile_ties(c, &o, keys[k].key.coll);
  }
  /* a function of SQLite may fail for a row */
  for (int k = 0; k < c->n_groups && !rc && wl_compile_may_stop(&side, side.p); k++)
    if (c->groups[k]->kind != WL_B_COLUMN) keys[k].source = -1;
  wl_compile_side_close(&side);
  return rc;
}

/* The number of words that the keys take; 0: they are not all numbers. by_row: sources whose row
** number stands for their keys. */
static int n_key_words(wl_compiler *c, const key_facts *keys, wl_u64 by_row) {
  wl_key_layout l = {.parts = WL_NEW_N(c->arena, wl_key_part, 2 * c->n_groups + 1)};
  wl_u64 added = 0;
  for (int k = 0; l.parts && k < c->n_groups; k++) {
    int s = keys[k].source;
    if (s >= 0 && by_row >> s & 1) {
      wl_domain rows = wl_domain_int(0, rows_of_source(c, s) - 1, true);
      if (added >> s & 1) continue;
      added |= 1ULL << s;
      if (!wl_key_layout_add(&l, k, (wl_reg){WL_R_INT, true}, &rows, 0)) return 0;
    } else if (!wl_key_layout_add(&l, k, keys[k].key.reg, &keys[k].key.domain, 0)) {
      return 0;
    }
  }
  return l.parts ? l.n_words : 0;
}

/* Whether the number of a source's row should stand for its keys. */
static bool source_pays(const wl_compiler *c, const key_facts *keys, int source) {
  int n = 0;
  bool plain = false;
  double n_values = 0;
  for (int k = 0; k < c->n_groups; k++) {
    if (keys[k].source != source) continue;
    const wl_bexpr *e = c->groups[k];
    double d = e->kind == WL_B_COLUMN ? wl_column_distinct(c->in->cols[e->slot]) : 0;
    if (d > n_values) n_values = d;
    plain |= keys[k].key.reg.type > WL_R_REAL;
    n++;
  }
  return (plain || n > 1) && rows_pay(c, source, n_values);
}

/* Whether some key is a text or of several types, and has no dictionary. */
static bool has_plain_keys(const wl_compiler *c, const key_facts *keys) {
  for (int k = 0; k < c->n_groups; k++)
    if (keys[k].key.reg.type > WL_R_REAL) return true;
  return false;
}

/* The sources whose row number stands for their keys, a bit for each. That pays for keys that are
** texts or take several words. A device is fast with words, and finishes groups that have them. */
static wl_status choose_rows(wl_compiler *c, key_facts *keys, wl_u64 *out) {
  enum { MOST_WORDS = 4 };
  bool same;
  *out = 0;
  if (!c->in->plan || !c->in->plan->n_steps || !has_dear_keys(c, keys)) return WL_OK;
  wl_status rc = learn_keys(c, keys, &same);
  if (rc || !same || !joins_states(c)) return rc;
  if (c->in->for_device && !has_plain_keys(c, keys)) return WL_OK;
  int n_words = n_key_words(c, keys, 0);
  wl_u64 by_row = 0;
  for (int s = 0; s < c->in->query->n_sources && n_words != 1; s++)
    if (source_pays(c, keys, s)) by_row |= 1ULL << s;
  int fewer = by_row ? n_key_words(c, keys, by_row) : 0;
  if (fewer && fewer <= MOST_WORDS && (!n_words || fewer < n_words)) *out = by_row;
  return WL_OK;
}

/* Compiles the program that computes the keys of a source that are expressions from its row. */
static wl_status compile_row_keys(wl_compiler *c, const key_facts *facts, int source, int by) {
  const wl_query *q = c->in->query;
  wl_compiler side;
  wl_status rc = wl_compile_side(c, c->n_groups, &side);
  wl_program *p = side.p;
  if (!rc) {
    memset(side.places, -1, sizeof side.places);
    side.places[source] = 0;
    p->n_sources = 1;
    p->source = WL_SOURCE_SORTED;
    p->may_miss = c->maybe >> source & 1;
    p->column_sources = WL_NEW_N(c->arena, wl_u8, q->n_cols + 1);
    if (!p->column_sources) rc = wl_nomem(c->err);
  }
  for (int i = 0; i < q->n_cols && !rc; i++)
    p->column_sources[i] = q->cols[i].source == source ? 0 : WL_NO_SOURCE;
  for (int k = 0; k < c->n_groups && !rc; k++) {
    wl_operand o;
    if (facts[k].source != source || c->groups[k]->kind == WL_B_COLUMN) continue;
    rc = key_operand(&side, k, &o);
    if (rc) break;
    c->p->keys[k] = key_of(c, k, &o);
    c->p->keys[k].by = by;
    c->p->keys[k].computed = p->n_results;
    c->p->keys[k].operand = WL_CONST(0);
    o.dom = wl_operand_held(&o);
    wl_compile_side_give(&side, &o);
  }
  if (!rc && p->n_results) {
    rc = wl_compile_side_end(&side);
    c->p->finds[by].row_keys = p;
  }
  wl_compile_side_close(&side);
  return rc;
}

/* Adds the number of a source's row to what groups are found by. The keys of the source are read or
** computed from the row at the end. */
static wl_status find_by_row(wl_compiler *c, const key_facts *facts, int source) {
  wl_program *p = c->p;
  int place = c->places[source], by = p->n_finds++;
  bool maybe = c->maybe >> source & 1;
  wl_key *f = &p->finds[by];
  *f = (wl_key){.reg = {WL_R_INT, maybe}, .column = place, .computed = -1};
  f->domain = wl_domain_int(0, rows_of_source(c, source) - 1, maybe);
  for (int k = 0; k < c->n_groups; k++) {
    if (facts[k].source != source || c->groups[k]->kind != WL_B_COLUMN) continue;
    p->keys[k] = facts[k].key;
    p->keys[k].operand = WL_CONST(0);
    p->keys[k].by = by;
    p->keys[k].column = c->groups[k]->slot;
  }
  wl_status rc = compile_row_keys(c, facts, source, by);
  return rc ? rc : wl_compile_reg(c, WL_OP__Row, f->reg, (wl_i16)place, 0, 0, &f->operand);
}

wl_status wl_compile_group_keys(wl_compiler *c) {
  const wl_query *q = c->in->query;
  wl_program *p = c->p;
  wl_u64 by_row, added = 0;
  if (q->bare && !c->in->rowid_order)
    return wl_not_taken(c->err, "a bare column (neither aggregated nor in GROUP BY), and SQLite "
                                "would read the rows in index order");
  key_facts *facts = WL_NEW_N(c->arena, key_facts, c->n_groups + 1);
  if (!facts) return wl_nomem(c->err);
  wl_status rc = choose_rows(c, facts, &by_row);
  for (int k = 0; k < c->n_groups && !rc; k++) {
    int coll = wl_bexpr_coll(c->groups[k]);
    wl_key *key = &p->keys[p->n_keys++];
    wl_operand o;
    if (by_row && facts[k].source >= 0 && by_row >> facts[k].source & 1) {
      if (!(added >> facts[k].source & 1)) rc = find_by_row(c, facts, facts[k].source);
      added |= 1ULL << facts[k].source;
      continue;
    }
    rc = key_operand(c, k, &o);
    if (!rc) rc = wl_compile_check_ties(c, &o.dom, coll, q->grouped ? "GROUP BY" : "DISTINCT");
    if (!rc && has_minmax(q) && wl_compile_ties(c, &o, coll))
      rc = wl_not_taken(c->err,
                        "equal group keys that look different, together with min() or max()");
    if (rc) return rc;
    *key = key_of(c, k, &o);
    if (!by_row) continue;
    key->by = p->n_finds;
    p->finds[p->n_finds++] = *key;
  }
  if (rc) return rc;
  p->grouped = true;
  p->one_group = q->aggregate && !q->grouped;
  p->by_first = c->distinct_groups;
  return wl_compile_append(c, (wl_instr){WL_OP__Group, 0, 0, (wl_i16)wl_program_n_finds(p), 0});
}
