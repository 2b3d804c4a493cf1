/*
** The compiler: turns a bound query into a program, pipeline by pipeline. expr.c compiles
** expressions (with call.c and entries.c), filter.c conjuncts, group/ aggregates and the keys of
** groups. This file puts them together.
**
** Invariants:
** 1. The pipeline over the table comes first. If there are groups, a second pipeline over them
**    filters them (HAVING) and computes the results. More pipelines may make the results distinct
**    and sort them. pipelines.c adds those that run a part of the code of another one.
** 2. A side program (run once per dictionary entry, or over a sample) shares only the query, the
**    arena and wl_compiler.leaves, the leaves of a pipeline over groups. It has its own registers,
**    constants and notes.
*/
#include "program/compile_impl.h"
#include "plan/row_order.h"
#include "value/conv.h"
#include <string.h>

/* ---- pipelines */

void wl_compile_forget(wl_compiler *c) {
  c->stage = c->p->n_code;
  memset(c->known, 0, (size_t)c->in->query->n_exprs * sizeof *c->known);
}

void wl_compile_begin(wl_compiler *c, wl_source_kind source) {
  c->over_table = source == WL_SOURCE_TABLE;
  c->p->source = source;
  wl_compile_forget(c);
  if (c->deps) memset(c->deps, 0, (size_t)c->in->query->n_exprs * sizeof *c->deps);
  memset(c->called, 0, (size_t)c->in->query->n_exprs);
}

void wl_compile_end(wl_compiler *c, wl_sink_kind sink) {
  wl_program *p = c->p;
  p->sink = sink;
  for (int i = 0; i < p->n_code; i++) /* jumps inside the test of a join go to its Match */
    if (p->code[i].op == WL_OP__IfNot && !p->code[i].c) p->code[i].c = (wl_i16)p->n_code;
}

/* All rows of the pipeline are needed: LIMIT cuts the rows of a later one. */
static void uncut(wl_program *p) {
  p->limit = -1;
  p->offset = 0;
  p->checks_cut = false;
}

/* Starts the pipeline that reads the groups of the one before. */
static wl_status begin_groups(wl_compiler *c) {
  const wl_query *q = c->in->query;
  wl_program *before = c->p, *p = WL_NEW(c->arena, wl_program);
  wl_operand ignored;
  if (!p) return wl_nomem(c->err);
  p->host_op = -1;
  p->limit = before->limit;
  p->offset = before->offset;
  p->max_pattern = before->max_pattern;
  p->unordered = before->unordered;
  p->checks_cut = before->checks_cut;
  p->table = "groups";
  p->results = before->results;
  p->distinct_colls = before->distinct_colls;
  p->order = before->order;
  before->results = NULL;
  before->n_results = before->n_given = 0;
  uncut(before);
  /* The number of columns is known at the end: bare columns are added where results need them. */
  p->column_regs = WL_NEW_N(c->arena, wl_reg, q->n_groups + q->n_results + q->n_aggs + q->n_cols);
  if (!p->column_regs) return wl_nomem(c->err);
  before->next = c->p = p;
  c->size_code = c->size_regs = c->size_consts = 0;
  c->size_maps = c->size_calls = c->size_insets = 0;
  wl_compile_begin(c, WL_SOURCE_GROUPS);
  return wl_compile_constant(c, wl_null(), &ignored); /* unused operands name constant 0 */
}

/* The columns of the pipeline over the groups. At its end they are known. */
static void groups_columns(wl_compiler *c) {
  const wl_program *groups = c->leaves;
  wl_program *p = c->p;
  for (int k = 0; k < groups->n_keys; k++) p->column_regs[p->n_columns++] = groups->keys[k].reg;
  for (int k = 0; k < groups->n_aggs; k++) p->column_regs[p->n_columns++] = groups->aggs[k].reg;
  for (int k = 0; k < groups->n_bares; k++) p->column_regs[p->n_columns++] = groups->bares[k].reg;
}

/* Ends the pipeline that computes the results. They may have to be distinct, and then sorted. */
static wl_status end_results(wl_compiler *c) {
  wl_program *p = c->p;
  bool distinct = c->in->query->distinct && !c->distinct_groups;
  p->sorted = p->n_order > 0;
  wl_compile_end(c, distinct ? WL_SINK_DISTINCT : p->sorted ? WL_SINK_SORT : WL_SINK_ROWS);
  if (!distinct || !p->sorted) return wl_compile_split(c);
  wl_program *sort = WL_NEW(c->arena, wl_program);
  if (!sort) return wl_nomem(c->err);
  *sort = (wl_program){.source = WL_SOURCE_ROWS,
                       .sink = WL_SINK_SORT,
                       .host_op = -1,
                       .table = "rows",
                       .unordered = p->unordered,
                       .checks_cut = p->checks_cut,
                       .results = p->results,
                       .n_results = p->n_results,
                       .n_given = p->n_given,
                       .order = p->order,
                       .n_order = p->n_order,
                       .sorted = true,
                       .limit = p->limit,
                       .offset = p->offset};
  uncut(p);
  p->n_order = 0;
  p->next = c->p = sort;
  return WL_OK;
}

/* ---- side programs */

wl_status wl_compile_side(const wl_compiler *c, int n_results, wl_compiler *out) {
  size_t n = (size_t)c->in->query->n_exprs;
  wl_compiler s = {.arena = c->arena,
                   .in = c->in,
                   .leaves = c->leaves,
                   .err = c->err,
                   .over_table = c->over_table,
                   .agg_domains = c->agg_domains,
                   .max_rows = c->max_rows,
                   .maybe = c->maybe,
                   .groups = c->groups,
                   .n_groups = c->n_groups,
                   .fold = c->fold};
  *out = s;
  memcpy(out->places, c->places, sizeof out->places);
  out->fold.fault = &out->fault;
  out->fold.chunks = NULL;
  wl_program *p = out->p = WL_NEW(c->arena, wl_program);
  out->memo = WL_NEW_N(c->arena, wl_operand, n);
  out->known = WL_NEW_N(c->arena, bool, n);
  out->deps = WL_NEW_N(c->arena, int, n);
  out->called = WL_NEW_N(c->arena, wl_u8, n + 1);
  if (!p || !out->memo || !out->known || !out->deps || !out->called) return wl_nomem(c->err);
  p->results = WL_NEW_N(c->arena, wl_result, n_results + 1);
  if (!p->results) return wl_nomem(c->err);
  p->host_op = -1;
  p->limit = -1;
  p->max_pattern = c->in->max_pattern;
  p->table = c->p->table;
  p->columns = c->p->columns;
  p->column_names = c->p->column_names;
  p->column_regs = c->p->column_regs;
  p->n_columns = c->p->n_columns;
  p->column_sources = c->p->column_sources;
  p->source_names = c->p->source_names;
  p->n_sources = c->p->n_sources;
  wl_operand null;
  wl_compile_begin(out, c->over_table ? WL_SOURCE_TABLE : WL_SOURCE_GROUPS);
  return wl_compile_constant(out, wl_null(), &null); /* unused operands name this constant */
}

void wl_compile_side_give(wl_compiler *s, const wl_operand *o) {
  wl_result *r = &s->p->results[s->p->n_results++];
  r->operand = o->x;
  r->domain = o->dom;
  s->p->n_given = s->p->n_results;
}

wl_status wl_compile_side_end(wl_compiler *s) {
  wl_status rc = wl_compile_append(s, (wl_instr){WL_OP__Result, 0, 0, (wl_i16)s->p->n_results, 0});
  wl_compile_end(s, WL_SINK_ROWS);
  return rc ? rc : wl_program_verify(s->p, s->err);
}

void wl_compile_side_close(wl_compiler *s) {
  wl_scratch_close(&s->fold);
}

/* ---- the query */

/* Compiles result column k. If it is compared, its codes must be right for that collation. */
static wl_status one_result(wl_compiler *c, const wl_bexpr *e, int k, int coll) {
  wl_operand o;
  const wl_query *q = c->in->query;
  bool wanted = !c->in->needed || c->in->needed[k] || q->distinct;
  for (int i = 0; i < q->n_order; i++) wanted |= wl_bexpr_same(q->order[i].expr, e);
  wl_status rc = wanted ? wl_compile_coded(c, e, &o) : wl_compile_constant(c, wl_null(), &o);
  if (!rc) rc = wl_compile_value(c, &o);
  if (!rc && (coll != WL_COLL_BINARY || o.date)) rc = wl_compile_plain(c, &o);
  if (rc) return rc;
  c->p->results[k].operand = o.x;
  c->p->results[k].domain = o.dom;
  c->p->results[k].dict = o.dict;
  return WL_OK;
}

/* Whether the groups already come out in the required order: ORDER BY repeats GROUP BY. */
static bool ordered_by_groups(const wl_query *q) {
  if (!q->grouped || q->n_order != q->n_groups) return false;
  for (int k = 0; k < q->n_order; k++)
    if (!wl_bexpr_same(q->order[k].expr, q->groups[k]) ||
        q->order[k].nulls_last != q->order[k].desc)
      return false;
  return true;
}

/* Adds a sort key: a result column, or an extra column after the results. Text with a dictionary
** sorts by code, or by rank under a collation other than BINARY. Texts of date functions have an
** extra column for their codes. */
static wl_status sort_key(wl_compiler *c, const wl_border *o) {
  const wl_query *q = c->in->query;
  wl_program *p = c->p;
  wl_order *to = &p->order[p->n_order++];
  to->desc = o->desc;
  to->nulls_last = o->nulls_last;
  to->coll = (wl_u8)wl_bexpr_coll(o->expr);
  wl_operand x;
  wl_status rc = wl_compile_coded(c, o->expr, &x);
  if (!rc) rc = wl_compile_value(c, &x);
  if (!rc && x.date && to->coll != WL_COLL_BINARY) rc = wl_compile_plain(c, &x);
  if (rc) return rc;
  for (to->result = 0; to->result < q->n_results && !x.date; to->result++) {
    const wl_bexpr *e = q->results[to->result];
    bool same = e == o->expr || (e->kind == WL_B_COLUMN && o->expr->kind == WL_B_COLUMN &&
                                 e->slot == o->expr->slot);
    if (same && (to->coll == WL_COLL_BINARY || !p->results[to->result].dict)) return WL_OK;
  }
  to->result = p->n_results++;
  if (x.dict && to->coll != WL_COLL_BINARY) rc = wl_compile_ranks(c, to->coll, &x);
  if (rc) return rc;
  p->results[to->result].operand = x.x;
  p->results[to->result].domain = x.date ? x.date->codes : x.dom;
  p->results[to->result].dict = x.dict;
  return WL_OK;
}

/* Compiles the result columns, then the sort keys that are not among them. */
static wl_status results(wl_compiler *c) {
  const wl_query *q = c->in->query;
  wl_program *p = c->p;
  wl_status rc = WL_OK;
  bool ties = false;
  bool by_scan = q->n_order && !q->scan_known && !c->in->unordered && !wl_query_orders_groups(q);
  p->n_results = p->n_given = q->n_results;
  for (int k = 0; k < q->n_results && !rc; k++) {
    rc = one_result(c, q->results[k], k,
                    q->distinct ? wl_bexpr_coll(q->results[k]) : WL_COLL_BINARY);
    p->distinct_colls[k] = (wl_u8)wl_bexpr_coll(q->results[k]);
    wl_operand o = {.dom = p->results[k].domain};
    ties |= wl_compile_ties(c, &o, wl_bexpr_coll(q->results[k]));
    if (!rc && (q->distinct || by_scan))
      rc = wl_compile_check_ties(c, &p->results[k].domain, wl_bexpr_coll(q->results[k]),
                                 q->distinct ? "DISTINCT" : "ORDER BY");
  }
  bool unsorted = (q->aggregate && !q->grouped) || ordered_by_groups(q);
  for (int k = 0; k < q->n_order && !rc && !unsorted; k++) rc = sort_key(c, &q->order[k]);
  if (q->ties_hidden && !ties) unsorted = true; /* equal rows look the same */
  for (int k = 0; k < q->n_scan && !rc && !unsorted; k++) rc = sort_key(c, &q->scan[k]);
  return rc ? rc : wl_compile_append(c, (wl_instr){WL_OP__Result, 0, 0, (wl_i16)p->n_results, 0});
}

/* Evaluates LIMIT or OFFSET, which must be an integer. SQLite handles everything it would
** reject. */
static wl_status limit_value(wl_compiler *c, const wl_bexpr *e, wl_i64 *out) {
  wl_operand o;
  wl_status rc = wl_compile_expr(c, e, &o);
  if (!rc) rc = wl_compile_value(c, &o);
  if (rc) return rc;
  if (wl_is_const(&o)) {
    wl_val v = wl_const_value(c, &o);
    if (v.t == WL_T_TEXT) v = wl_conv_number(&c->fold, v, WL_NUMBER_AFFINITY);
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
  return wl_not_taken(c->err, "LIMIT or OFFSET is not an integer");
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

/* Whether all results are numbers or codes, which a device can sort. */
static wl_status are_numbers(const wl_compiler *c, bool *numbers) {
  const wl_query *q = c->in->query;
  wl_status rc = WL_OK;
  *numbers = true;
  for (int k = 0; k < q->n_results && *numbers && !rc; k++) {
    wl_operand o;
    rc = wl_compile_type(c, q->results[k], &o);
    if (rc) break;
    bool codes = o.dict && wl_bexpr_coll(q->results[k]) == WL_COLL_BINARY;
    *numbers = !o.date && (codes || wl_domain_reg(o.dom).type <= WL_R_REAL);
  }
  return rc;
}

/* Treats SELECT DISTINCT as GROUP BY all results, emitted in the order of first rows. A device
** sorts numbers instead. */
static wl_status choose_groups(wl_compiler *c) {
  const wl_query *q = c->in->query;
  bool numbers = false;
  c->groups = q->groups;
  c->n_groups = q->n_groups;
  if (!q->distinct || q->aggregate) return WL_OK;
  for (int k = 0; k < q->n_order; k++)
    if (!from_results(q, q->order[k].expr)) return WL_OK;
  wl_status rc = c->in->for_device ? are_numbers(c, &numbers) : WL_OK;
  if (rc || numbers) return rc;
  c->distinct_groups = true;
  c->groups = q->results;
  c->n_groups = q->n_results;
  return WL_OK;
}

bool wl_compile_may_stop(const wl_compiler *c, const wl_program *p) {
  for (int k = 0; k < p->n_calls; k++)
    if (p->calls[k].fallible || p->calls[k].of_time) return true;
  for (int pc = 0; pc < p->n_code; pc++) {
    const wl_instr *in = &p->code[pc];
    if (in->op == WL_OP__Concat && c->in->max_text < WL_MAX_TEXT) return true;
    bool date = in->op == WL_OP__Date || in->op == WL_OP__DateCode;
    if (date && !WL_IS_CONST(in->a) && p->regs[in->a].type > WL_R_REAL) return true;
  }
  return false;
}

static wl_status compile(wl_compiler *c) {
  const wl_query *q = c->in->query;
  wl_program *p = c->p;
  p->limit = -1;
  wl_status rc = WL_OK;
  c->over_table = true; /* LIMIT cannot refer to groups, although a group key may be the same
                        ** constant */
  if (q->limit) rc = limit_value(c, q->limit, &p->limit);
  if (!rc && q->offset) rc = limit_value(c, q->offset, &p->offset);
  if (rc) return rc;
  if (p->limit < 0) p->limit = -1;
  if (p->offset < 0) p->offset = 0;
  bool limited = q->limit || q->offset;
  rc = wl_query_cut(q, c->in->unordered, c->err);
  /* if equal rows are on both sides of the cut, SQLite runs the statement */
  p->checks_cut = limited && c->in->unordered && q->n_order > 0 && !q->scan_known;
  wl_compile_begin(c, WL_SOURCE_TABLE);
  if (!rc) rc = wl_compile_sources(c);
  if (!rc) rc = choose_groups(c);
  bool second = q->aggregate || c->distinct_groups;
  if (!rc && second) rc = wl_compile_group_keys(c);
  for (int k = 0; k < q->n_aggs && !rc; k++) rc = wl_compile_aggregate(c, k);
  if (!rc && !second) rc = results(c);
  if (rc) return rc;
  if (second) {
    wl_compile_end(c, WL_SINK_GROUPS);
    rc = begin_groups(c);
    if (!rc && q->having) rc = wl_compile_filter(c, q->having);
    if (!rc) rc = results(c);
    if (!rc) groups_columns(c);
  }
  if (!rc) rc = end_results(c);
  for (p = c->leaves; p; p = p->next) {
    p->as_sqlite = !c->in->unordered && (c->in->rowid_order || q->scan_known);
    p->may_fail = wl_compile_may_stop(c, p);
  }
  return rc ? rc : wl_compile_unmatched(c);
}

wl_status wl_compile_open(wl_compiler *c) {
  const wl_compile_in *in = c->in;
  const wl_query *q = in->query;
  wl_arena *arena = c->arena;
  wl_program *p = c->p = c->leaves = WL_NEW(arena, wl_program);
  if (!p) return wl_nomem(c->err);
  p->host_op = -1;
  p->limit = -1;
  p->max_pattern = c->in->max_pattern;
  p->n_columns = q->n_cols;
  p->unordered = in->unordered;
  p->columns = WL_NEW_N(arena, wl_i16, q->n_cols);
  p->column_names = WL_NEW_N(arena, const char *, q->n_cols);
  p->column_regs = WL_NEW_N(arena, wl_reg, q->n_cols);
  p->column_sources = WL_NEW_N(arena, wl_u8, q->n_cols + 1);
  p->source_names = WL_NEW_N(arena, const char *, q->n_sources + 1);
  p->joins = WL_NEW_N(arena, wl_join, 2 * q->n_sources + 2);
  p->results = WL_NEW_N(arena, wl_result, q->n_results + q->n_order + q->n_scan + 1);
  p->distinct_colls = WL_NEW_N(arena, wl_u8, q->n_results + 1);
  p->order = WL_NEW_N(arena, wl_order, q->n_order + q->n_scan);
  p->keys = WL_NEW_N(arena, wl_key, q->n_groups + q->n_results);
  p->finds = WL_NEW_N(arena, wl_key, q->n_groups + q->n_results);
  p->sets = WL_NEW_N(arena, wl_set, q->n_aggs);
  p->bares = WL_NEW_N(arena, wl_bare, q->n_cols);
  p->aggs = WL_NEW_N(arena, wl_agg, q->n_aggs);
  p->accs = WL_NEW_N(arena, wl_acc, q->n_aggs);
  c->agg_domains = WL_NEW_N(arena, wl_domain, q->n_aggs);
  c->memo = WL_NEW_N(arena, wl_operand, q->n_exprs);
  c->known = WL_NEW_N(arena, bool, q->n_exprs);
  c->deps = WL_NEW_N(arena, int, q->n_exprs);
  c->called = WL_NEW_N(arena, wl_u8, q->n_exprs + 1);
  c->max_rows = in->n_rows;
  memset(c->places, -1, sizeof c->places);
  if (arena->failed) return wl_nomem(c->err);
  for (int i = 0; i < q->n_cols; i++) {
    p->columns[i] = (wl_i16)q->cols[i].column;
    p->column_regs[i] = wl_column_reg(in->cols[i]);
    p->column_names[i] = in->names ? in->names[i] : NULL;
    p->column_sources[i] = WL_NO_SOURCE; /* until its source has a place */
  }
  c->fold.fault = &c->fault;
  c->fold.max_text = in->max_text;
  wl_operand ignored;
  wl_status rc = wl_conv_take(&c->fold.conv, c->err);
  /* unused operands name constant 0 */
  return rc ? rc : wl_compile_constant(c, wl_null(), &ignored);
}

void wl_compile_close(wl_compiler *c) {
  wl_scratch_close(&c->fold);
  wl_conv_give(c->fold.conv);
}

wl_status wl_compile(wl_arena *arena, const wl_compile_in *in, wl_program **out, wl_error *err) {
  wl_compiler c = {.arena = arena, .in = in, .err = err};
  wl_status rc = wl_compile_open(&c);
  if (!rc) {
    c.p->n_results = in->query->n_results;
    c.p->n_aggs = in->query->n_aggs;
    rc = compile(&c);
  }
  wl_compile_close(&c);
  *out = c.leaves;
  if (!rc && arena->failed) rc = wl_nomem(err);
  for (const wl_program *p = c.leaves; p && !rc; p = p->next) rc = wl_program_verify(p, err);
  for (const wl_program *p = rc ? NULL : c.leaves->also; p && !rc; p = p->also)
    rc = wl_program_verify(p, err);
  return rc;
}
