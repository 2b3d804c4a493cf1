/*
** Pipelines that run a part of the code of another one. Part of the compiler.
**
** ORDER BY over one table is two pipelines. The first runs the filters and computes the sort keys;
** its sink sorts the numbers of the rows. The second reads these rows in their order and computes
** the results, so columns that are only returned are read for the rows that are returned.
**
** A RIGHT or FULL join has a pipeline over its unmatched rows (wl_program.also): the code after the
** Mark. There, no earlier register is read and every source but the marked one may have no row. So
** the code is right for rows that have only the marked source. If there are several Marks, the
** pipelines run in the order of the Marks. Rows that one of them finds at a later Mark are marked
** there, too.
*/
#include "program/compile_impl.h"
#include "program/liveness.h"
#include <string.h>

/* ---- sorting row numbers */

/* Making text may fail, and the error must be raised also for a row that LIMIT cuts off. Texts of
** dates are short. */
static bool makes_text(const wl_program *p) {
  for (int pc = 0; pc < p->n_code; pc++) {
    const wl_instr *in = &p->code[pc];
    if (in->op != WL_OP__Column && in->op != WL_OP__DateText &&
        wl_shapes[wl_opcodes[in->op].shape][0] != ' ' &&
        (p->regs[in->d].type == WL_R_TEXT || p->regs[in->d].type == WL_R_ANY))
      return true;
  }
  return false;
}

static wl_reg operand_reg(const wl_program *p, wl_i16 x) {
  if (!WL_IS_CONST(x)) return p->regs[x];
  wl_u8 t = p->consts[WL_CONST_OF(x)].t;
  return (wl_reg){t == WL_T_REAL                    ? WL_R_REAL
                  : t == WL_T_INT || t == WL_T_NULL ? WL_R_INT
                                                    : WL_R_ANY,
                  t == WL_T_NULL};
}

int wl_program_column(const wl_program *p, wl_i16 operand) {
  int column = -1;
  for (int pc = 0; pc < p->n_code && !WL_IS_CONST(operand); pc++) {
    const wl_instr *in = &p->code[pc];
    if (wl_shapes[wl_opcodes[in->op].shape][0] == ' ' || in->d != operand) continue;
    if (in->op != WL_OP__Column || column >= 0) return -1;
    column = in->a;
  }
  return column;
}

bool wl_sort_key_layout(const wl_program *p, wl_key_layout *l) {
  for (int k = 0; k < p->n_order; k++) {
    const wl_order *o = &p->order[k];
    const wl_result *r = &p->results[o->result];
    wl_domain domain = wl_result_domain(r);
    unsigned flags = (o->desc ? WL_KEY_DESC : 0) | (o->nulls_last ? WL_KEY_NULL_LAST : 0);
    wl_reg reg = operand_reg(p, r->operand);
    if (reg.type == WL_R_TEXT && wl_program_column(p, r->operand) >= 0)
      wl_key_layout_add_text(l, k, o->coll, flags);
    else if (!wl_key_layout_add(l, k, reg, &domain, flags))
      return false;
    if (l->n_words > WL_MAX_WORDS) return false;
  }
  return true;
}

/* Gives q the instructions of p that these results need. filtered: its rows have passed p's
** filters. */
static wl_status take_part(wl_compiler *c, const wl_program *p, const bool *results, bool filtered,
                           wl_program *q) {
  bool *skip = WL_NEW_N(c->arena, bool, p->n_code + 1);
  bool *wanted = WL_NEW_N(c->arena, bool, p->n_regs + 1);
  int *number = WL_NEW_N(c->arena, int, p->n_results + 1);
  *q = *p;
  q->code = WL_NEW_N(c->arena, wl_instr, p->n_code + 1);
  q->results = WL_NEW_N(c->arena, wl_result, p->n_results + 1);
  q->order = WL_NEW_N(c->arena, wl_order, p->n_order + 1);
  if (c->arena->failed) return wl_nomem(c->err);
  wl_liveness_skip(p, results, filtered, skip, wanted);
  q->n_code = q->n_results = q->n_given = 0;
  for (int pc = 0; pc < p->n_code; pc++)
    if (!skip[pc]) q->code[q->n_code++] = p->code[pc];
  for (int k = 0; k < p->n_results; k++) {
    if (!results[k]) continue;
    number[k] = q->n_results;
    q->results[q->n_results++] = p->results[k];
  }
  q->n_given = q->n_results;
  for (int k = 0; k < p->n_order; k++) {
    q->order[k] = p->order[k];
    q->order[k].result = number[p->order[k].result];
  }
  for (int pc = 0; pc < q->n_code; pc++) {
    if (q->code[pc].op == WL_OP__IfNot) q->code[pc].c = (wl_i16)q->n_code;
    if (q->code[pc].op == WL_OP__Result) q->code[pc].b = (wl_i16)q->n_results;
  }
  return WL_OK;
}

wl_status wl_compile_split(wl_compiler *c) {
  wl_program *p = c->p, *last;
  if (p->source != WL_SOURCE_TABLE || p->sink != WL_SINK_SORT || p->n_joins || p->checks_cut ||
      c->in->for_device || c->in->n_rows >= 0xffffffffLL || makes_text(p))
    return WL_OK;
  wl_key_layout l = {.parts = WL_NEW_N(c->arena, wl_key_part, 2 * p->n_order + 1)};
  bool *keys = WL_NEW_N(c->arena, bool, p->n_results + 1);
  bool *given = WL_NEW_N(c->arena, bool, p->n_results + 1);
  wl_program whole = *p;
  last = WL_NEW(c->arena, wl_program);
  if (c->arena->failed) return wl_nomem(c->err);
  if (!wl_sort_key_layout(p, &l)) return WL_OK;
  for (int k = 0; k < p->n_order; k++) keys[p->order[k].result] = true;
  for (int k = 0; k < p->n_given; k++) given[k] = true;
  wl_status rc = take_part(c, &whole, keys, false, p);
  if (!rc) rc = take_part(c, &whole, given, true, last);
  if (rc) return rc;
  p->sink = WL_SINK_SORT_KEYS;
  p->next = c->p = last;
  last->source = WL_SOURCE_SORTED;
  last->sink = WL_SINK_ROWS;
  last->n_order = 0;
  return WL_OK;
}

/* ---- unmatched rows */

/* Copies the code after the Mark at pc. Jumps and joins refer to its new addresses. */
static wl_status copy_rest(wl_compiler *c, const wl_program *p, int pc, wl_program *out) {
  int first = pc + 1;
  out->n_code = p->n_code - first;
  out->code = WL_NEW_N(c->arena, wl_instr, out->n_code + 1);
  out->joins = WL_NEW_N(c->arena, wl_join, p->n_joins + 1);
  if (!out->code || !out->joins) return wl_nomem(c->err);
  memcpy(out->code, p->code + first, (size_t)out->n_code * sizeof *out->code);
  memcpy(out->joins, p->joins, (size_t)p->n_joins * sizeof *out->joins);
  for (int k = 0; k < out->n_code; k++)
    if (out->code[k].op == WL_OP__IfNot) out->code[k].c = (wl_i16)(out->code[k].c - first);
  for (int k = 0; k < p->n_joins; k++)
    out->joins[k].match = p->joins[k].match >= first ? p->joins[k].match - first : -1;
  return WL_OK;
}

wl_status wl_compile_unmatched(wl_compiler *c) {
  wl_program *p = c->leaves, **end = &p->also;
  wl_i64 n_before = c->in->n_rows;
  for (int pc = 0; pc < p->n_code; pc++) {
    if (p->code[pc].op != WL_OP__Mark) continue;
    wl_program *a = WL_NEW(c->arena, wl_program);
    if (!a) return wl_nomem(c->err);
    *a = *p;
    a->also = NULL;
    a->source = WL_SOURCE_UNMATCHED;
    a->unmatched = p->code[pc].c;
    a->n_before = n_before;
    a->table = p->source_names[p->joins[a->unmatched].source];
    n_before += p->joins[a->unmatched].n_rows;
    wl_status rc = copy_rest(c, p, pc, a);
    if (rc) return rc;
    *end = a;
    end = &a->also;
  }
  return WL_OK;
}
