/*
** See arrange.h.
*/
#include "exec/gpu/arrange.h"
#include "exec/gpu/coded.h"
#include "column/lookup.h"
#include <math.h>
#include <string.h>

/* A cut pays if less than this share of the rows is expected to go on, and more than a little is
** left to do for them. Conditions on a single table are not estimated. */
static const double CUT_SHARE = 0.5, UNKNOWN_SHARE = 0.3;
enum { LEAST_WORK = 3 };

typedef struct arranger {
  const wl_program *p;
  wl_arena *arena;
  wl_arranged *out;
  int *set_at;    /* [p->n_regs]: the instruction that sets a register, or -1 */
  int *n_reads;   /* [p->n_regs]: how many operands read it */
  wl_i16 *now;    /* [p->n_regs]: its number in this stage, or -1: it has no value yet */
  int *cut_after; /* [WL_K_CUTS]: instructions of p after which the code is cut */
  int n_cuts, stage;
  int room; /* instructions that fit in the new code */
} arranger;

static bool is_set(const wl_instr *in) {
  return wl_shapes[wl_opcodes[in->op].shape][0] != ' ';
}

static bool is_agg(const wl_instr *in) {
  return in->op >= WL_OP__AggRows;
}

/* ---- what can be arranged */

static bool is_plain(const wl_program *p) {
  if (p->source == WL_SOURCE_UNMATCHED) return false;
  for (int r = 0; r < p->n_regs; r++)
    if (p->regs[r].type > WL_R_TRUTH) return false;
  for (int pc = 0; pc < p->n_code; pc++) {
    wl_u16 op = p->code[pc].op;
    if (wl_opcodes[op].host_only || op == WL_OP__Expand || op == WL_OP__Match) return false;
  }
  return true;
}

/* Fills set_at and n_reads. Returns false if a register is set twice. */
static bool find_uses(arranger *x) {
  const wl_program *p = x->p;
  for (int r = 0; r < p->n_regs; r++) {
    x->set_at[r] = -1;
    x->n_reads[r] = 0;
  }
  for (int pc = 0; pc < p->n_code; pc++) {
    const wl_instr *in = &p->code[pc];
    for (int k = 0; k < wl_program_n_reads(p, in); k++) {
      wl_i16 r = wl_program_read(p, in, k);
      if (!WL_IS_CONST(r)) x->n_reads[r]++;
    }
    if (!is_set(in)) continue;
    if (x->set_at[in->d] >= 0) return false;
    x->set_at[in->d] = pc;
  }
  return true;
}

/* The column of a register that is nothing but a column; -1: it is something else. */
static int column_of(const arranger *x, wl_i16 reg) {
  if (WL_IS_CONST(reg) || x->set_at[reg] < 0) return -1;
  const wl_instr *in = &x->p->code[x->set_at[reg]];
  return in->op == WL_OP__Column ? in->a : -1;
}

/* ---- filters */

static bool int_range(wl_u16 op, wl_i64 c, wl_krange *r) {
  wl_i64 lo = INT64_MIN, hi = INT64_MAX;
  r->outside = op == WL_OP__NeI;
  switch (op) {
  case WL_OP__EqI:
  case WL_OP__NeI: lo = hi = c; break;
  case WL_OP__LtI: /* no value is less than the least one */
    if (c == INT64_MIN) return false;
    hi = c - 1;
    break;
  case WL_OP__LeI: hi = c; break;
  case WL_OP__GtI:
    if (c == INT64_MAX) return false;
    lo = c + 1;
    break;
  case WL_OP__GeI: lo = c; break;
  default: return false;
  }
  wl_i64 lo32 = lo < INT32_MIN ? INT32_MIN : lo, hi32 = hi > INT32_MAX ? INT32_MAX : hi;
  r->lo = lo;
  r->span = (wl_u64)hi - (wl_u64)lo;
  r->no_32 = lo32 > hi32;
  r->lo32 = r->no_32 ? 0 : (wl_i32)lo32;
  r->span32 = r->no_32 ? 0 : (wl_u32)(hi32 - lo32);
  return true;
}

static bool real_range(wl_u16 op, double c, wl_krange *r) {
  r->real = 1;
  r->flo = -INFINITY;
  r->fhi = INFINITY;
  r->outside = op == WL_OP__NeF;
  switch (op) {
  case WL_OP__EqF:
  case WL_OP__NeF: r->flo = r->fhi = c; return true;
  case WL_OP__LtF: r->fhi = nextafter(c, -INFINITY); return c > -INFINITY;
  case WL_OP__LeF: r->fhi = c; return true;
  case WL_OP__GtF: r->flo = nextafter(c, INFINITY); return c < INFINITY;
  case WL_OP__GeF: r->flo = c; return true;
  default: return false;
  }
}

/* The comparison with its operands exchanged. */
static wl_u16 exchanged(wl_u16 op) {
  switch (op) {
  case WL_OP__LtI: return WL_OP__GtI;
  case WL_OP__LeI: return WL_OP__GeI;
  case WL_OP__GtI: return WL_OP__LtI;
  case WL_OP__GeI: return WL_OP__LeI;
  case WL_OP__LtF: return WL_OP__GtF;
  case WL_OP__LeF: return WL_OP__GeF;
  case WL_OP__GtF: return WL_OP__LtF;
  case WL_OP__GeF: return WL_OP__LeF;
  default: return op;
  }
}

/* Whether an IfNot tests a column of the scanned table against a constant. */
static bool is_filter(const arranger *x, const wl_instr *in, int *column, wl_krange *r) {
  memset(r, 0, sizeof *r);
  if (in->op != WL_OP__IfNot || WL_IS_CONST(in->a) || x->n_reads[in->a] != 1) return false;
  const wl_instr *test = &x->p->code[x->set_at[in->a]];
  wl_u8 shape = wl_opcodes[test->op].shape;
  if (test->op == WL_OP__TruthI) {
    *column = column_of(x, test->a);
    return *column >= 0 && wl_column_source(x->p, *column) == 0 && int_range(WL_OP__NeI, 0, r);
  }
  if (shape != WL_SHAPE_B_II && shape != WL_SHAPE_B_FF) return false;
  bool turned = WL_IS_CONST(test->a);
  wl_i16 reg = turned ? test->b : test->a, other = turned ? test->a : test->b;
  wl_u16 op = turned ? exchanged(test->op) : test->op;
  *column = column_of(x, reg);
  if (*column < 0 || !WL_IS_CONST(other) || wl_column_source(x->p, *column) != 0) return false;
  wl_val c = x->p->consts[WL_CONST_OF(other)];
  if (shape == WL_SHAPE_B_II) return c.t == WL_T_INT && int_range(op, (wl_i64)c.v, r);
  return c.t == WL_T_REAL && real_range(op, wl_as_f64(c.v), r);
}

/* ---- direct operands */

/* The column that is the only key of a Probe or Build; -1: there is none. */
static int direct_key(const arranger *x, const wl_instr *in) {
  const wl_join *j = &x->p->joins[in->c];
  return j->n_keys == 1 ? column_of(x, j->keys[0]) : -1;
}

static int direct_operand(const arranger *x, const wl_instr *in) {
  if (in->op == WL_OP__Probe || in->op == WL_OP__Build) return direct_key(x, in);
  if (is_agg(in) && x->p->grouped && x->p->one_group && wl_gathers_in_slots(x->p) &&
      in->op != WL_OP__AggRows && !wl_opcodes[in->op].is_long)
    return column_of(x, in->a);
  return -1;
}

/* ---- cuts */

/* The estimated share of rows that an instruction lets pass. */
static double share_of(const wl_program *p, const wl_instr *in) {
  if (in->op == WL_OP__Probe) return p->joins[in->c].keeps;
  return in->op == WL_OP__IfNot ? 0 : 1;
}

/* What the instructions from pc on do for each row, roughly in loads. */
static int work_from(const arranger *x, int pc) {
  int n = 0;
  for (; pc < x->p->n_code; pc++) {
    const wl_instr *in = &x->p->code[pc];
    if (in->op == WL_OP__Group) n += 2 * wl_program_n_listed(x->p, in);
    if (in->op == WL_OP__Probe || in->op == WL_OP__Build) n += 2;
    if (is_agg(in) && in->op != WL_OP__AggRows) n += direct_operand(x, in) < 0 ? 2 : 1;
  }
  return n;
}

/* Chooses the instructions after which the code is cut. */
static void choose_cuts(arranger *x) {
  const wl_program *p = x->p;
  double share = 1;
  bool filtered = false;
  if (p->sink != WL_SINK_GROUPS && p->sink != WL_SINK_LOOKUP) return;
  for (int pc = 0; pc < p->n_code && x->n_cuts < WL_K_CUTS; pc++) {
    const wl_instr *in = &p->code[pc];
    bool drops = in->op == WL_OP__IfNot || in->op == WL_OP__Probe;
    if (in->op == WL_OP__Probe && direct_key(x, in) < 0) break; /* its key needs a register */
    if (in->op == WL_OP__IfNot && !filtered) {
      share *= p->keeps > 0 ? p->keeps : UNKNOWN_SHARE;
      filtered = true;
    } else if (drops) {
      share *= in->op == WL_OP__Probe ? share_of(p, in) : 1;
    }
    int next = pc + 1;
    while (next < p->n_code && is_set(&p->code[next])) next++;
    bool more = next < p->n_code && p->code[next].op == WL_OP__IfNot;
    if (!drops || more || share > CUT_SHARE || work_from(x, next) < LEAST_WORK) continue;
    x->cut_after[x->n_cuts++] = pc;
    share = 1;
  }
}

/* ---- the new code */

static wl_instr *append(arranger *x, wl_instr in) {
  wl_arranged *o = x->out;
  int pc = o->p.n_code++;
  o->p.code[pc] = in;
  o->filter[pc] = o->column[pc] = -1;
  return &o->p.code[pc];
}

/* A register of this stage that stands for one of the program. */
static wl_i16 new_register(arranger *x, wl_i16 reg) {
  if (x->stage == x->n_cuts) return reg;
  wl_program *p = &x->out->p;
  p->regs[p->n_regs] = p->regs[reg];
  return (wl_i16)p->n_regs++;
}

/* Appends what sets a register, if this stage does not have it yet. */
static void need(arranger *x, wl_i16 reg) {
  if (WL_IS_CONST(reg) || x->now[reg] >= 0) return;
  wl_instr in = x->p->code[x->set_at[reg]];
  const char *shape = wl_shapes[wl_opcodes[in.op].shape];
  for (int k = 0; k < wl_program_n_reads(x->p, &in); k++) need(x, wl_program_read(x->p, &in, k));
  wl_i16 *operands[] = {&in.a, &in.b, &in.c};
  for (int k = 0; k < 3; k++)
    if (shape[k + 1] != ' ' && !WL_IS_CONST(*operands[k])) *operands[k] = x->now[*operands[k]];
  in.d = x->now[reg] = new_register(x, reg);
  append(x, in);
}

/* Appends an instruction that sets no register, after all that it needs. */
static void arrange_one(arranger *x, int pc) {
  wl_arranged *o = x->out;
  wl_instr in = x->p->code[pc];
  wl_krange r;
  int column = -1;
  if (x->stage == 0 && is_filter(x, &in, &column, &r)) {
    in.a = WL_CONST(0);
    append(x, in);
    o->filter[o->p.n_code - 1] = (wl_i16)o->n_ranges;
    o->column[o->p.n_code - 1] = (wl_i16)column;
    o->ranges[o->n_ranges++] = r;
    return;
  }
  column = direct_operand(x, &in);
  if (column < 0)
    for (int k = 0; k < wl_program_n_reads(x->p, &in); k++) need(x, wl_program_read(x->p, &in, k));
  if (column < 0 && wl_shapes[wl_opcodes[in.op].shape][1] != ' ' && !WL_IS_CONST(in.a))
    in.a = x->now[in.a];
  if (column < 0 && wl_shapes[wl_opcodes[in.op].shape][2] != ' ' && !WL_IS_CONST(in.b))
    in.b = x->now[in.b];
  append(x, in);
  o->column[o->p.n_code - 1] = (wl_i16)column;
}

static void begin_stage(arranger *x) {
  for (int r = 0; r < x->p->n_regs; r++) x->now[r] = -1;
}

static void arrange(arranger *x) {
  choose_cuts(x);
  begin_stage(x);
  for (int pc = 0; pc < x->p->n_code; pc++) {
    if (!is_set(&x->p->code[pc])) arrange_one(x, pc);
    if (x->stage == x->n_cuts || pc != x->cut_after[x->stage]) continue;
    x->out->cuts[x->out->n_cuts++] = x->out->p.n_code;
    x->stage++;
    begin_stage(x);
  }
}

/* The code as it is. */
static void copy_code(arranger *x) {
  for (int pc = 0; pc < x->p->n_code; pc++) append(x, x->p->code[pc]);
}

wl_status wl_arrange(wl_arena *arena, const wl_program *p, wl_arranged *out, wl_error *err) {
  size_t n_regs = (size_t)p->n_regs + 1, n_code = (size_t)(p->n_code + 1) * (WL_K_CUTS + 1);
  int cut_after[WL_K_CUTS];
  memset(out, 0, sizeof *out);
  arranger x = {.p = p, .arena = arena, .out = out, .cut_after = cut_after};
  x.set_at = WL_NEW_N(arena, int, n_regs);
  x.n_reads = WL_NEW_N(arena, int, n_regs);
  x.now = WL_NEW_N(arena, wl_i16, n_regs);
  out->p = *p;
  out->p.n_code = 0;
  out->p.code = WL_NEW_N(arena, wl_instr, n_code);
  out->p.regs = WL_NEW_N(arena, wl_reg, n_regs *(WL_K_CUTS + 1));
  out->filter = WL_NEW_N(arena, wl_i16, n_code);
  out->column = WL_NEW_N(arena, wl_i16, n_code);
  out->ranges = WL_NEW_N(arena, wl_krange, n_code);
  if (arena->failed) return wl_nomem(err);
  if (p->n_regs) memcpy(out->p.regs, p->regs, (size_t)p->n_regs * sizeof *p->regs);
  if (is_plain(p) && find_uses(&x))
    arrange(&x);
  else
    copy_code(&x);
  return WL_OK;
}
