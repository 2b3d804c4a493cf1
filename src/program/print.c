/*
** The listing of a program, line by line, for EXPLAIN.
*/
#include "program/program.h"
#include "base/sqlite.h"
#include "column/lookup.h"
#include "value/collation.h"
#include "value/date/plan.h"
#include <stdlib.h>
#include <string.h>

static const char *operand(const wl_program *p, wl_arena *arena, char want, wl_i16 x) {
  if (want == ' ') return "";
  if (!WL_IS_CONST(x)) return wl_arena_printf(arena, "r%d", x);
  wl_val v = p->consts[WL_CONST_OF(x)];
  char buf[64];
  switch (v.t) {
  case WL_T_NULL: return "NULL";
  case WL_T_INT: return wl_arena_printf(arena, "%lld", v.v);
  case WL_T_REAL:
    sqlite3_snprintf((int)sizeof buf, buf, "%!.15g", wl_as_f64(v.v));
    return wl_arena_strndup(arena, buf, __builtin_strlen(buf));
  case WL_T_TEXT:
    return wl_arena_printf(arena, "'%.*s%s'", v.n > 40 ? 40 : (int)v.n, (const char *)wl_bytes(v),
                           v.n > 40 ? "…" : "");
  default: return wl_arena_printf(arena, "blob(%u)", v.n);
  }
}

static const char *type_name(wl_reg r) {
  static const char *const names[] = {"integer", "real", "truth", "text", "any"};
  return names[r.type];
}

/* An argument of a call: a constant, a column or something else. */
static const char *argument(const wl_program *p, wl_i16 x, wl_arena *arena) {
  if (WL_IS_CONST(x)) return operand(p, arena, 'V', x);
  for (int pc = 0; pc < p->n_code; pc++)
    if (p->code[pc].op == WL_OP__Column && p->code[pc].d == x && p->column_names &&
        p->column_names[p->code[pc].a])
      return p->column_names[p->code[pc].a];
  return "…";
}

const char *wl_program_call_text(const wl_program *p, const wl_instr *in, wl_arena *arena) {
  const wl_call *c = &p->calls[in->c];
  const char *s = "", *at = c->text;
  while (*at && s) {
    int n = (int)strcspn(at, "?\"");
    s = wl_arena_printf(arena, "%s%.*s", s, n, at);
    at += n;
    if (*at == '?') {
      long k = strtol(at + 1, (char **)&at, 10);
      s = wl_arena_printf(arena, "%s%s", s, argument(p, c->args[k - 1], arena));
    } else if (*at) {
      at++;
    }
  }
  return s;
}

/* A join in words: "customer by r3: inner, direct, unique, 30000 rows". */
static const char *join_text(const wl_program *p, const wl_instr *in, wl_arena *arena) {
  static const char *const hows[] = {"inner", "left", "semi", "anti", "mark"};
  const wl_join *j = &p->joins[in->c];
  const wl_lookup *l = j->lookup;
  if (in->op == WL_OP__Match) return hows[j->how];
  const char *name =
      p->source_names && p->source_names[j->source] ? p->source_names[j->source] : "";
  if (in->op == WL_OP__Mark) return wl_arena_printf(arena, "%s", name);
  const char *list = "";
  for (int k = 0; k < j->n_keys && list; k++) {
    const char *x = operand(p, arena, 'V', j->keys[k]);
    list = wl_arena_printf(arena, "%s%s%s", list, k ? " " : "by ", x ? x : "");
  }
  if (!list || in->op == WL_OP__Build || !l) return list;
  return wl_arena_printf(arena, "%s%s%s: %s, %s%s%s%lld rows", name, *name && *list ? " " : "", list,
                         hows[j->how],
                         l->plan.kind == WL_KEYS_NONE ? ""
                         : l->direct                  ? "direct, "
                                                      : "hash, ",
                         l->unique && l->plan.kind != WL_KEYS_NONE ? "unique, " : "",
                         l->uncounted ? "at most " : "", l->n_rows);
}

/* ---- source and sink */

/* What the sink does with all rows, after the last one: in this order, if at all. The last pipeline
** into the sink shows it. */
typedef enum sink_line { LINE_DISTINCT, LINE_SORT, LINE_LIMIT, N_SINK_LINES } sink_line;

static bool has_line(const wl_program *p, sink_line k) {
  if (p->also) return false;
  return k == LINE_DISTINCT ? p->sink == WL_SINK_DISTINCT
         : k == LINE_SORT   ? p->n_order > 0
                            : !p->next && (p->limit >= 0 || p->offset > 0);
}

static const char *order_text(const wl_program *p, wl_arena *arena) {
  const char *list = "";
  for (int k = 0; k < p->n_order && k < 16 && list; k++)
    list = wl_arena_printf(arena, "%s%s%d%s%s", list, k ? ", " : "", p->order[k].result + 1,
                           p->order[k].desc ? " DESC" : "",
                           p->order[k].nulls_last == p->order[k].desc ? ""
                           : p->order[k].nulls_last                   ? " NULLS LAST"
                                                                      : " NULLS FIRST");
  return list;
}

static wl_status print_sink(const wl_program *p, sink_line k, wl_arena *arena, wl_listing *out) {
  switch (k) {
  case LINE_DISTINCT:
    *out = (wl_listing){"Distinct", "", "", "", "", "keep only the first of equal rows"};
    break;
  case LINE_SORT:
    *out = (wl_listing){"Sort",
                        "",
                        "",
                        "",
                        order_text(p, arena),
                        p->sink == WL_SINK_SORT ? "sort the rows by the sort keys"
                                                : "sort the row numbers by the sort keys"};
    break;
  default:
    *out = (wl_listing){"Limit", "", "", "", "", "return at most p1 rows after skipping p2"};
    out->p1 = p->limit < 0 ? "all" : wl_arena_printf(arena, "%lld", p->limit);
    out->p2 = wl_arena_printf(arena, "%lld", p->offset);
  }
  return arena->failed ? WL_NOMEM : WL_OK;
}

static wl_status print_source(const wl_program *p, int end, wl_arena *arena, wl_listing *out) {
  *out = (wl_listing){"Scan", "", "", "", "", "run up to p3 for every row of the source"};
  if (p->source == WL_SOURCE_UNMATCHED) {
    out->opcode = "Unmatched";
    out->comment = "run up to p3 for every row of the source that was not marked";
  }
  out->p3 = wl_arena_printf(arena, "%d", end);
  out->p4 = wl_arena_printf(arena, "%s (%d columns)", p->table,
                            p->source == WL_SOURCE_ROWS ? p->n_results : p->n_columns);
  return arena->failed ? WL_NOMEM : WL_OK;
}

int wl_program_n_lines(const wl_program *p) {
  int n = 1 + p->n_code;
  for (int k = 0; k < N_SINK_LINES; k++) n += has_line(p, (sink_line)k);
  return n;
}

static wl_status print_step(const wl_program *p, int pc, int base, wl_arena *arena,
                            wl_listing *out) {
  const wl_instr *in = &p->code[pc];
  const wl_opcode_info *o = &wl_opcodes[in->op];
  const char *want = wl_shapes[o->shape];
  out->opcode = o->name;
  out->p4 = "";
  out->comment = o->text;
  switch (o->shape) {
  case WL_SHAPE_PROBE:
  case WL_SHAPE_MATCH:
  case WL_SHAPE_MARK:
    out->p1 = in->op == WL_OP__Build ? "" : wl_arena_printf(arena, "%d", p->joins[in->c].source);
    out->p2 =
        o->shape != WL_SHAPE_PROBE ? "" : wl_arena_printf(arena, "%d", p->joins[in->c].n_keys);
    out->p3 = "";
    out->p4 = join_text(p, in, arena);
    break;
  case WL_SHAPE_FOUND:
  case WL_SHAPE_ROW:
    out->p1 = wl_arena_printf(arena, "r%d", in->d);
    out->p2 = wl_arena_printf(arena, "%d", in->a);
    out->p3 = "";
    break;
  case WL_SHAPE_GROUP:
  case WL_SHAPE_CALL:
  case WL_SHAPE_RESULT: {
    /* a copy: the listing outlives the program */
    const char *list =
        o->shape == WL_SHAPE_CALL ? wl_arena_printf(arena, "%s", p->calls[in->c].text) : "";
    if (!list) return WL_NOMEM;
    for (int k = 0; k < wl_program_n_listed(p, in) && k < 16; k++) {
      wl_i16 x = wl_program_listed(p, in, k);
      list = wl_arena_printf(arena, "%s%s%s", list, *list ? " " : "", operand(p, arena, 'V', x));
      if (!list) return WL_NOMEM;
    }
    out->p1 = want[0] == ' ' ? "" : wl_arena_printf(arena, "r%d", in->d);
    out->p2 = wl_arena_printf(arena, "%d", wl_program_n_listed(p, in));
    out->p3 = "";
    out->p4 = list;
    break;
  }
  case WL_SHAPE_COLUMN:
    out->p1 = wl_arena_printf(arena, "r%d", in->d);
    out->p2 = wl_arena_printf(arena, "%d", in->a);
    out->p3 = "";
    out->p4 = type_name(p->regs[in->d]);
    if (p->regs[in->d].nullable) out->p4 = wl_arena_printf(arena, "%s or NULL", out->p4);
    if (p->column_names && p->column_names[in->a])
      out->comment =
          p->source_names && p->source_names[wl_column_source(p, in->a)]
              ? wl_arena_printf(arena, "d = column a of the source: %s.%s",
                                p->source_names[wl_column_source(p, in->a)], p->column_names[in->a])
              : wl_arena_printf(arena, "d = column a of the source: %s", p->column_names[in->a]);
    break;
  default:
    out->p1 = want[0] != ' '             ? wl_arena_printf(arena, "r%d", in->d)
              : o->shape >= WL_SHAPE_AGG ? wl_arena_printf(arena, "acc%d", in->d)
                                         : "";
    out->p2 = operand(p, arena, want[1], in->a);
    out->p3 = operand(p, arena, want[2], in->b);
    if (in->op == WL_OP__Date || in->op == WL_OP__DateCode || in->op == WL_OP__DateText)
      out->p3 = wl_date_plan_words(arena, p->consts[WL_CONST_OF(in->b)]);
    if (o->shape == WL_SHAPE_FILTER) out->p3 = wl_arena_printf(arena, "%d", base + in->c);
    if (want[3] != ' ')
      out->p4 = operand(p, arena, want[3], in->c);
    else if (o->shape >= WL_SHAPE_MAP_B && o->shape <= WL_SHAPE_MAP_V)
      out->p4 = wl_arena_printf(arena, "map %d of %lld", in->c, p->maps[in->c].n);
    else if (o->shape == WL_SHAPE_IN)
      out->p4 = wl_arena_printf(arena, "set %d of %lld", in->c, p->insets[in->c].n);
    else if (in->op == WL_OP__Like)
      out->p4 = in->c ? wl_arena_printf(arena, "escape %d", in->c) : "";
    else if (in->op == WL_OP__TextArith)
      out->p4 = wl_arena_printf(arena, "%c", in->c);
    else if ((in->c == WL_COLL_NOCASE || in->c == WL_COLL_RTRIM) && o->shape != WL_SHAPE_FILTER)
      out->p4 = wl_collation_name(in->c);
  }
  return arena->failed ? WL_NOMEM : WL_OK;
}

wl_status wl_program_print(const wl_program *p, int line, int base, wl_arena *arena,
                           wl_listing *out) {
  int first = base + 1; /* the address of the first instruction */
  if (line == 0) return print_source(p, first + p->n_code, arena, out);
  if (line <= p->n_code) return print_step(p, line - 1, first, arena, out);
  int k = 0;
  for (line -= p->n_code + 1; !has_line(p, (sink_line)k) || line > 0; k++)
    line -= has_line(p, (sink_line)k);
  return print_sink(p, (sink_line)k, arena, out);
}
