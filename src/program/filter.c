/*
** WHERE and HAVING. Each conjunct drops rows independently, so their order only affects cost. A
** conjunct's cost is estimated from its nodes. The share of rows it keeps is measured on a few
** thousand rows of the table. Part of the compiler.
**
** Invariants:
** 1. The order never changes the result, because opcodes are pure. If a call into SQLite may raise
**    an error, all conjuncts keep the order of the text, as in SQLite. Otherwise an error could be
**    missed. (An extra error does no harm: SQLite then runs the statement.)
*/
#include "base/mem.h"
#include "program/compile_impl.h"
#include "program/evaluate.h"
#include <string.h>

/* Tables with SAMPLE_FROM rows or more are sampled, if there are at most SAMPLE_MOST conjuncts. A
** sample has SAMPLES ranges of SAMPLE_ROWS rows. */
enum { SAMPLE_FROM = 100000, SAMPLES = 32, SAMPLE_ROWS = 128, SAMPLE_MOST = 64 };

/* The share that conditions keep if no row of the sample passes them. */
#define UNSEEN_SHARE (0.5 / (SAMPLES * SAMPLE_ROWS))

typedef struct filter_term {
  const wl_bexpr *e;
  double cost; /* simple operations per row */
  double kept; /* share of rows it keeps */
} filter_term;

/* The number of simple operations per row. What entries.c computes per dictionary entry counts as
** one lookup. */
static double cost_in(wl_compiler *c, const wl_bexpr *e, bool *seen, bool *fallible) {
  if (!e || e->kind == WL_B_CONST || e->kind == WL_B_PARAM || seen[e->id]) return 0;
  seen[e->id] = true; /* a node is computed once, however often it is read */
  int leaf = wl_compile_leaf(c, e);
  if (leaf >= 0) {
    bool text = c->over_table && c->in->cols[leaf]->phys >= WL_P_TEXT;
    return text ? 4 : 0.5;
  }
  double cost = 1;
  if (e->kind == WL_B_CALL) {
    cost = e->index == WL_NATIVE_NONE ? 500 : 20;
    *fallible |= e->fallible;
  }
  /* strings near the default limit do not fit a batch, so only a lower limit matters */
  *fallible |= e->kind == WL_B_ARITH && e->op == WL_OP_CONCAT && c->in->max_text < WL_MAX_TEXT;
  for (int k = 0; k < e->n_list; k++) cost += cost_in(c, e->list[k], seen, fallible);
  return cost + cost_in(c, e->a, seen, fallible) + cost_in(c, e->b, seen, fallible);
}

static double cost_of(wl_compiler *c, const wl_bexpr *e, bool *fallible) {
  bool *seen = WL_NEW_N(c->arena, bool, c->in->query->n_exprs + 1);
  return seen ? cost_in(c, e, seen, fallible) : 0; /* the caller checks arena->failed */
}

static int count(const wl_bexpr *e) {
  int n = 1;
  for (; e->kind == WL_B_AND; e = e->a) n += count(e->b);
  return n;
}

/* Writes the conjuncts of e before `end`, in the order of the text, and returns the first one. */
static filter_term *collect(wl_compiler *c, const wl_bexpr *e, filter_term *end, bool *fallible) {
  for (; e->kind == WL_B_AND; e = e->a) end = collect(c, e->b, end, fallible);
  *--end = (filter_term){.e = e, .cost = cost_of(c, e, fallible), .kept = 0.5};
  return end;
}

/* Compiles a program that returns the truths of all conjuncts. */
static wl_status truths_of(wl_compiler *side, const filter_term *list, int n) {
  wl_status rc = WL_OK;
  for (int k = 0; k < n && !rc; k++) {
    wl_operand o;
    rc = wl_compile_truth(side, list[k].e, &o);
    if (!rc) rc = wl_compile_value(side, &o);
    if (!rc) wl_compile_side_give(side, &o);
  }
  return rc ? rc : wl_compile_side_end(side);
}

/* Spreads ranges of rows evenly over the table and returns their number. A small table is in them
** as a whole. */
static int sample_ranges(wl_i64 n_rows, wl_row_range *out) {
  bool whole = n_rows <= SAMPLES * SAMPLE_ROWS;
  int n_ranges = whole ? (int)((n_rows + SAMPLE_ROWS - 1) / SAMPLE_ROWS) : SAMPLES;
  for (int s = 0; s < n_ranges; s++) {
    wl_i64 row = whole ? (wl_i64)s * SAMPLE_ROWS : (n_rows - SAMPLE_ROWS) / (SAMPLES - 1) * s;
    wl_i64 first = row & (WL_TABLET_ROWS - 1), n = n_rows - row;
    if (n > SAMPLE_ROWS) n = SAMPLE_ROWS;
    if (first > WL_TABLET_ROWS - n) first = WL_TABLET_ROWS - n;
    out[s] = (wl_row_range){(int)(row >> WL_TABLET_SHIFT), (wl_i32)first, (wl_i32)n};
  }
  return n_ranges;
}

/* Clears left[i] for rows where a column is not true, and returns how many are true. */
static int keep_true(const wl_batch *b, wl_reg reg, int col, wl_i64 from, int n, wl_u8 *left) {
  const wl_outcol *c = &b->cols[col];
  int kept = 0;
  for (int i = 0; i < n; i++) {
    wl_i64 at = from + i;
    wl_u8 is;
    if (reg.type == WL_R_INT) {
      is = (wl_u8)((c->v[at] != 0) & (!c->t || c->t[at]));
    } else {
      wl_val v = wl_batch_value(b, wl_pool_regs(b->pool), col, at);
      is = v.t == WL_T_INT && v.v;
    }
    kept += is;
    left[i] &= is;
  }
  return kept;
}

/* Computes the share of rows that each of n conjuncts keeps, and that all of them keep. */
static void count_shares(const wl_evaluated *r, filter_term *list, int n, double *all) {
  enum { BLOCK = 256 };
  wl_u8 left[BLOCK];
  double n_rows = 0, n_all = 0;
  for (int k = 0; k < n; k++) list[k].kept = 0;
  for (const wl_batch *b = r->batches; b; b = b->next)
    for (wl_i64 from = 0; from < b->n_rows; from += BLOCK) {
      int some = b->n_rows - from < BLOCK ? (int)(b->n_rows - from) : BLOCK;
      memset(left, 1, sizeof left);
      for (int k = 0; k < n; k++)
        list[k].kept += keep_true(b, wl_pool_regs(r->pool)[k], k, from, some, left);
      for (int i = 0; i < some; i++) n_all += left[i];
      n_rows += some;
    }
  for (int k = 0; k < n; k++) list[k].kept = n_rows > 0 ? list[k].kept / n_rows : 0.5;
  *all = n_rows > 0 ? n_all / n_rows : 0.5;
}

/* Measures the share of rows that each conjunct keeps, and that all of them keep, on a sample. If
** an error occurs, the estimates stay, unless it is an interrupt. */
static wl_status measure(wl_compiler *c, filter_term *list, int n, double *all) {
  const wl_compile_in *in = c->in;
  wl_error ignored = {0}, *err = c->err;
  wl_compiler side;
  c->err = &ignored;
  wl_status rc = wl_compile_side(c, n, &side);
  c->err = err;
  if (!rc) rc = truths_of(&side, list, n);
  wl_compile_side_close(&side);
  for (int pc = 0; pc < side.p->n_code && !rc; pc++) /* a sample would bring all of it here */
    if (side.p->code[pc].op == WL_OP__Column && wl_column_is_remote(in->cols[side.p->code[pc].a]))
      return WL_OK;
  wl_row_range ranges[SAMPLES];
  wl_evaluation e = {.program = side.p,
                     .cols = in->cols,
                     .ranges = ranges,
                     .n_ranges = sample_ranges(in->n_rows, ranges),
                     .max_text = in->max_text,
                     .check = in->check,
                     .check_arg = in->check_arg};
  wl_evaluated results = {0};
  if (!rc) rc = in->evaluate(&e, &results, &ignored);
  if (!rc) count_shares(&results, list, n, all);
  wl_evaluated_close(&results);
  if (rc != WL_INTERRUPT) return WL_OK;
  *c->err = ignored;
  return rc;
}

/* The cost of dropping one row. Smaller values come first. */
static double rank(const filter_term *k) {
  return k->cost / (1.001 - k->kept);
}

/* Emits tests of the conjuncts, cheapest first unless one may fail. */
static wl_status test_all(wl_compiler *c, filter_term *list, int n, bool fallible, bool scan) {
  bool big = scan && c->in->n_rows >= SAMPLE_FROM;
  if (n > 1 && n <= SAMPLE_MOST && big && !fallible) {
    double all;
    wl_status rc = measure(c, list, n, &all);
    if (rc) return rc;
  }
  for (int i = 1; i < n && !fallible; i++) {
    filter_term k = list[i];
    int j = i;
    for (; j > 0 && rank(&k) < rank(&list[j - 1]); j--) list[j] = list[j - 1];
    list[j] = k;
  }
  for (int i = 0; i < n; i++) {
    wl_operand t;
    wl_status rc = wl_compile_truth(c, list[i].e, &t);
    if (rc) return rc;
    if (wl_is_const(&t) && wl_const_value(c, &t).t != WL_T_NULL && wl_const_value(c, &t).v)
      continue;
    /* wl_compile_end sets the jump */
    rc = wl_compile_append(c, (wl_instr){WL_OP__IfNot, 0, t.x, 0, 0});
    if (rc) return rc;
  }
  return WL_OK;
}

wl_status wl_compile_filter(wl_compiler *c, const wl_bexpr *e) {
  bool fallible = false;
  int n = count(e);
  filter_term *list = WL_NEW_N(c->arena, filter_term, n);
  if (!list) return wl_nomem(c->err);
  collect(c, e, list + n, &fallible);
  return test_all(c, list, n, fallible, c->over_table);
}

wl_status wl_compile_conjuncts(wl_compiler *c, const wl_jlist *of, bool scan) {
  bool fallible = false;
  filter_term *list = WL_NEW_N(c->arena, filter_term, of->n + 1);
  if (!list) return wl_nomem(c->err);
  for (int i = 0; i < of->n; i++)
    list[i] = (filter_term){.e = of->e[i], .cost = cost_of(c, of->e[i], &fallible), .kept = 0.5};
  return test_all(c, list, of->n, fallible, scan);
}

double wl_compile_share(wl_arena *arena, const wl_compile_in *in, int source, const wl_jlist *of) {
  wl_error ignored = {0};
  wl_compile_in over = *in;
  over.n_rows = in->source_rows[source];
  wl_compiler c = {.arena = arena, .in = &over, .err = &ignored};
  double share = 1, all = -1; /* -1: not measured */
  wl_status rc = wl_compile_open(&c);
  bool fallible = false;
  filter_term *list = WL_NEW_N(arena, filter_term, of->n + 1);
  if (!rc && list) {
    c.over_table = true;
    c.places[source] = 0;
    for (int i = 0; i < c.in->query->n_cols; i++)
      if (c.in->query->cols[i].source == source) c.p->column_sources[i] = 0;
    for (int i = 0; i < of->n; i++) list[i] = (filter_term){.e = of->e[i], .kept = 0.5};
    for (int i = 0; i < of->n; i++) cost_of(&c, of->e[i], &fallible);
    /* An interrupt is reported by the next check. */
    if (!fallible && of->n <= SAMPLE_MOST) rc = measure(&c, list, of->n, &all);
    for (int i = 0; i < of->n; i++) share *= list[i].kept;
    /* Conditions on one column often depend on each other. If the sample has no row that passes all
    ** of them, there are few. */
    if (all > 0)
      share = all;
    else if (all == 0 && share > UNSEEN_SHARE)
      share = UNSEEN_SHARE;
  }
  wl_compile_close(&c);
  return share;
}

/* The most rows that a join of all sources can have. */
static wl_i64 most_rows(const wl_compile_in *in) {
  __int128 n = 1;
  for (int s = 0; s < in->query->n_sources && n < 1LL << 62; s++)
    if (!wl_how_finds_one(in->query->sources[s].how) && in->source_rows[s] > 1)
      n *= in->source_rows[s];
  return n < 1LL << 62 ? (wl_i64)n : 1LL << 62;
}

bool wl_compile_may_fail(wl_arena *arena, const wl_compile_in *in) {
  const wl_query *q = in->query;
  wl_error ignored = {0};
  wl_compiler c = {.arena = arena, .in = in, .err = &ignored};
  bool fails = wl_compile_open(&c) != WL_OK;
  if (!fails) {
    c.over_table = true;
    c.max_rows = most_rows(in);
    cost_of(&c, q->where, &fails);
    cost_of(&c, q->having, &fails);
    for (int k = 0; k < q->n_sources; k++) cost_of(&c, q->sources[k].on, &fails);
    for (int k = 0; k < q->n_results; k++) cost_of(&c, q->results[k], &fails);
    for (int k = 0; k < q->n_groups; k++) cost_of(&c, q->groups[k], &fails);
    for (int k = 0; k < q->n_aggs; k++) cost_of(&c, q->aggs[k].arg, &fails);
    fails = fails || !wl_compile_sums_fit(&c);
  }
  wl_compile_close(&c);
  return fails || arena->failed;
}
