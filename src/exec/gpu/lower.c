/*
** Translates a program for the interpreter kernel; see lower.h.
*/
#include "exec/gpu/lower.h"
#include "exec/gpu/coded.h"
#include "exec/gpu/arrange.h"
#include "value/sum/fsum.h"
#include "exec/gpu/sinks/group_device.h"
#include "exec/gpu/limits.h"
#include "column/lookup.h"
#include "program/liveness.h"
#include <math.h>
#include <string.h>

/* The bytes that a register takes for each row: value, length, and a valid flag, tag or truth. */
static wl_u32 row_bytes(wl_reg r) {
  if (r.type == WL_R_TRUTH) return 1;
  return 8 + (r.type >= WL_R_TEXT ? 4 : 0) + (r.nullable || r.type == WL_R_ANY ? 1 : 0);
}

static wl_u32 acc_slots(wl_u16 op) {
  switch (op) {
  case WL_OP__AggRows:
  case WL_OP__AggCount: return 1;
  case WL_OP__AggSumX: return 5;
  case WL_OP__AggSumF: return 4;
  case WL_OP__AggSumV: return 9;
  case WL_OP__AggMinN:
  case WL_OP__AggMaxN: return 4;
  default: return 2;
  }
}

/* Assigns a place to each register, as the bytes per row before it. *per_row: bytes per row of
** all. */
static wl_status place_registers(wl_arena *arena, const wl_program *p, int first, int end,
                                 wl_u32 **place, wl_u32 *per_row, wl_error *err) {
  size_t n_regs = (size_t)p->n_regs + 1;
  wl_live_block block = {.p = p, .first = first, .end = end};
  wl_liveness live = {WL_NEW_N(arena, int, n_regs), WL_NEW_N(arena, int, n_regs)};
  int *number = WL_NEW_N(arena, int, n_regs), *owner = WL_NEW_N(arena, int, n_regs);
  wl_u32 *bytes = *place = WL_NEW_N(arena, wl_u32, n_regs);
  wl_u32 *begin = WL_NEW_N(arena, wl_u32, n_regs); /* where each place starts */
  if (arena->failed) return wl_nomem(err);
  wl_liveness_find(&block, &live);
  wl_liveness_place(&block, &live, true, number, owner);
  int n = 0;
  *per_row = 0;
  for (int pc = first; pc < end; pc++) {
    const wl_instr *in = &p->code[pc];
    if (wl_shapes[wl_opcodes[in->op].shape][0] == ' ') continue;
    if (number[in->d] == n) {
      begin[n++] = *per_row;
      *per_row += row_bytes(p->regs[in->d]);
    }
    bytes[in->d] = begin[number[in->d]];
  }
  return WL_OK;
}

/* ---- joins */

/* The source whose row an instruction reads, or -1. */
static int source_read(const wl_arranged *x, int pc) {
  const wl_instr *in = &x->p.code[pc];
  if (x->column[pc] >= 0) return wl_column_source(&x->p, x->column[pc]);
  switch (in->op) {
  case WL_OP__Column: return wl_column_source(&x->p, in->a);
  case WL_OP__Found:
  case WL_OP__Row: return in->a;
  case WL_OP__Mark: return x->p.joins[in->c].source;
  case WL_OP__Match: /* it ends a test that is run again */
    return pc > 0 && x->p.joins[in->c].how == WL_HOW_LEFT && x->p.code[pc - 1].op != WL_OP__Expand
               ? x->p.joins[in->c].source
               : -1;
  default: return -1;
  }
}

/* Whether one of the instructions [pc, end) reads the source's row. */
static bool read_in(const wl_arranged *x, int pc, int end, int source) {
  for (; pc < end; pc++)
    if (source_read(x, pc) == source) return true;
  return false;
}

static bool read_from(const wl_arranged *x, int pc, int source) {
  return read_in(x, pc, x->p.n_code, source);
}

/* Whether one of the first n instructions joins a source. */
static bool joined_by(const wl_program *p, int n, int source) {
  for (int k = 0; k < n; k++)
    if ((p->code[k].op == WL_OP__Probe || p->code[k].op == WL_OP__Expand) &&
        p->joins[p->code[k].c].source == source)
      return true;
  return false;
}

/* Whether the row of a source is known at pc. Of unmatched rows it is for all sources that are not
** joined: all but one have none. */
static bool known_at(const wl_program *p, int pc, int source) {
  bool from_start =
      p->source == WL_SOURCE_UNMATCHED ? !joined_by(p, p->n_code, source) : source == 0;
  return from_start || joined_by(p, pc, source);
}

/* The source of which a pipeline scans the unmatched rows, or -1. */
static int marked_source(const wl_program *p) {
  return p->source == WL_SOURCE_UNMATCHED ? p->joins[p->unmatched].source : -1;
}

/* Gives a plane to each source whose row is read, if the part starts with that row or finds it. */
static void place_rows(const wl_arranged *arranged, wl_lowered *out) {
  const wl_program *p = &arranged->p;
  int number = out->part.number, first = out->part.first, end = out->part.end;
  int last = out->part.kind == WL_PART_TEST ? end : p->n_code; /* no other part follows a test */
  bool scans = number == 0 && p->source != WL_SOURCE_UNMATCHED;
  for (int s = 0; s < p->n_sources && !scans; s++)
    if (known_at(p, first, s) &&
        (read_in(arranged, first, last, s) || (number == 0 && s == marked_source(p)))) {
      out->planes[s] = (wl_u8)++out->n_planes;
      out->ins[out->n_ins++] = (wl_u8)s;
    }
  for (int pc = first; pc < end; pc++) {
    const wl_join *j = wl_parts_finds_one(p, pc) ? &p->joins[p->code[pc].c] : NULL;
    if (j && j->how != WL_HOW_SEMI && j->how != WL_HOW_ANTI && read_from(arranged, pc, j->source))
      out->planes[j->source] = (wl_u8)++out->n_planes;
  }
  if (out->part.kind == WL_PART_LAST) return;
  out->start = ++out->n_planes; /* of a test: the tuple and the candidate of each row */
  out->count = ++out->n_planes;
  if (out->part.kind == WL_PART_TEST) return;
  for (int s = 0; s < p->n_sources; s++)
    if (known_at(p, end - 1, s) && read_from(arranged, end, s)) out->outs[out->n_outs++] = (wl_u8)s;
}

/* ---- instructions */

/* n_regs: registers of the program, before the constants. Those that stages add come after. */
static wl_i16 opnd_index(const wl_program *p, int n_regs, wl_i16 x) {
  if (WL_IS_CONST(x)) return (wl_i16)(n_regs + WL_CONST_OF(x));
  return x < n_regs ? x : (wl_i16)(x + p->n_consts);
}

/* The plane with the row numbers of an instruction's source, in a stage. */
static wl_i16 plane_of(const wl_lowered *low, int source, int pc) {
  if (source == 0 && low->n_cuts && pc >= (int)low->cuts[0].pc)
    return (wl_i16)low->cuts[0].row_plane;
  return low->planes[source];
}

static bool makes_text(wl_u16 op) {
  return op == WL_OP__Concat || op == WL_OP__IntToText || op == WL_OP__IntTextAffinity ||
         op == WL_OP__Upper || op == WL_OP__Lower || op == WL_OP__Date || op == WL_OP__DateText;
}

static void lower_one(const wl_arranged *arranged, int n_regs, int pc, wl_kinstr *k,
                      wl_lowered *out) {
  const wl_program *p = &arranged->p;
  const wl_instr *in = &p->code[pc];
  const char *want = wl_shapes[wl_opcodes[in->op].shape];
  int source = source_read(arranged, pc), column = arranged->column[pc], at = pc - out->part.first;
  k->op = in->op == WL_OP__Expand ? (wl_u16)WL_OP__Probe : in->op;
  k->d = want[0] != ' ' ? opnd_index(p, n_regs, in->d) : in->d;
  k->a = in->op == WL_OP__Column || want[1] == ' ' ? in->a : opnd_index(p, n_regs, in->a);
  k->b = want[2] == ' ' ? 0 : opnd_index(p, n_regs, in->b);
  k->c = want[3] == ' ' ? 0 : opnd_index(p, n_regs, in->c);
  k->number = source >= 0 && column < 0 ? plane_of(out, source, at) : in->c;
  if (in->op == WL_OP__IfNot) k->number = out->part.again >= 0 && in->c < p->n_code;
  if (in->op == WL_OP__Match && source < 0) k->number = 0;
  if (in->op == WL_OP__Row && source == 0) k->number = out->planes[0];
  if (in->op == WL_OP__Mark) k->a = in->c;
  if (in->op >= WL_OP__AggRows) k->acc_slot = (wl_i16)out->accs[in->d].slot;
  if (arranged->filter[pc] >= 0) {
    k->op = WL_K_FILTER;
    k->number = arranged->filter[pc];
  }
  if (column >= 0) {
    k->a = (wl_i16)column;
    k->b = plane_of(out, source, at);
    k->direct = 1;
  }
  out->has_long |= wl_opcodes[in->op].is_long;
  out->makes_text |= makes_text(in->op);
}

/* Whether a part begins with the unmatched rows. */
static bool unmarks(const wl_program *p, const wl_gpu_part *part) {
  return p->source == WL_SOURCE_UNMATCHED && part->number == 0;
}

static void lower_code(const wl_arranged *arranged, int n_regs, wl_lowered *out) {
  const wl_gpu_part *part = &out->part;
  wl_kinstr *k = out->code;
  if (part->again >= 0) {
    int plane = out->planes[arranged->p.joins[part->again].source];
    *k++ = (wl_kinstr){.op = WL_K_ASIDE, .number = (wl_i16)plane};
  }
  if (unmarks(&arranged->p, part)) {
    const wl_program *p = &arranged->p;
    *k++ = (wl_kinstr){.op = WL_K_UNMARKED,
                       .a = (wl_i16)p->unmatched,
                       .b = (wl_i16)p->joins[p->unmatched].live,
                       .number = out->planes[marked_source(p)]};
  }
  for (int pc = part->first; pc < part->end; pc++) lower_one(arranged, n_regs, pc, k++, out);
  if (part->kind == WL_PART_TEST)
    *k++ = (wl_kinstr){.op = WL_K_PASSED, .a = (wl_i16)out->start, .b = (wl_i16)out->count};
}

/* Makes WL_K_CODE of the instructions that set registers of codes. */
static void mark_codes(const wl_coded *coded, const wl_program *p, wl_lowered *out) {
  const wl_gpu_part *part = &out->part;
  wl_kinstr *code = out->code + (part->again >= 0) + unmarks(p, part);
  for (int pc = part->first; pc < part->end && coded->n; pc++) {
    const wl_instr *in = &p->code[pc];
    wl_kinstr *k = &code[pc - part->first];
    if (in->op != WL_CODE_OPCODE || in->d < coded->first || in->d >= coded->first + coded->n)
      continue;
    k->op = WL_K_CODE;
    k->number = (wl_i16)(in->d - coded->first);
  }
}

/* Whether an instruction works on numbers and truths alone. */
static bool is_of_numbers(const wl_program *p, const wl_instr *in) {
  switch ((wl_shape)wl_opcodes[in->op].shape) {
  case WL_SHAPE_B_VV:
  case WL_SHAPE_B_V:
  case WL_SHAPE_V_VV:
  case WL_SHAPE_V_V:
  case WL_SHAPE_IN:
  case WL_SHAPE_MAP_V:
  case WL_SHAPE_SELECT_V: return false;
  case WL_SHAPE_PROBE: {
    const wl_lookup *l = p->joins[in->c].lookup;
    return !l || l->plan.kind != WL_KEYS_VALUES;
  }
  default: return !wl_opcodes[in->op].is_long;
  }
}

/* Whether the kernels that know only numbers and truths can run a part. */
static bool has_only_numbers(const wl_program *p, const wl_gpu_part *part) {
  bool only = true;
  for (int r = 0; r < p->n_regs; r++) only &= p->regs[r].type <= WL_R_TRUTH;
  for (int k = 0; k < p->n_consts; k++) only &= p->consts[k].t < WL_T_TEXT;
  for (int k = 0; k < p->n_results; k++) only &= wl_result_reg(&p->results[k]).type <= WL_R_REAL;
  for (int pc = part->first; pc < part->end; pc++) only &= is_of_numbers(p, &p->code[pc]);
  return only;
}

/* ---- stages */

/* The cuts, and what each queue keeps. */
static void place_cuts(const wl_arranged *arranged, wl_lowered *out) {
  const wl_program *p = &arranged->p;
  wl_u32 row_plane = arranged->n_cuts ? ++out->n_planes : 0;
  for (int c = 0; c < arranged->n_cuts; c++) {
    wl_kcut *cut = &out->cuts[out->n_cuts++];
    *cut = (wl_kcut){.pc = (wl_u32)arranged->cuts[c], .row_plane = row_plane};
    for (int s = 1; s < p->n_sources; s++)
      if (out->planes[s] && known_at(p, arranged->cuts[c], s) &&
          read_from(arranged, arranged->cuts[c], s))
        cut->planes[cut->n_planes++] = out->planes[s];
  }
}

static void lower_accs(const wl_program *p, wl_lowered *out) {
  for (int k = 0; k < p->n_accs; k++) {
    out->accs[k].op = p->accs[k].op;
    out->accs[k].slot = out->n_slots;
    out->accs[k].unit = ldexp(1.0, wl_fsum_anchor_within(p->accs[k].bound));
    /* else groups have their own memory; only the last part accumulates */
    if (wl_gathers_in_slots(p) && out->part.kind == WL_PART_LAST)
      out->n_slots += acc_slots(p->accs[k].op);
  }
}

static void lower_operands(const wl_program *p, int n_regs, const wl_u32 *place, wl_u32 registers,
                           wl_lowered *out) {
  wl_u32 rows = out->threads * WL_K_ROWS;
  for (int r = 0; r < p->n_regs; r++) {
    wl_kopnd *o = &out->opnds[opnd_index(p, n_regs, (wl_i16)r)];
    wl_reg reg = p->regs[r];
    wl_u32 base = registers + place[r] * rows;
    o->type = reg.type;
    o->stride = 1;
    o->nullable = reg.nullable && reg.type != WL_R_TRUTH;
    o->v = base;
    o->n = base + 8 * rows;
    o->t = reg.type == WL_R_TRUTH ? base : base + (reg.type >= WL_R_TEXT ? 12 : 8) * rows;
  }
  for (int k = 0; k < p->n_consts; k++) {
    wl_kopnd *o = &out->opnds[n_regs + k];
    wl_val v = p->consts[k];
    o->v = out->const_offset + 16 * (wl_u32)k;
    o->n = o->v + 8;
    o->t = o->v + 13;
    o->nullable = v.t == WL_T_NULL;
    o->type = v.t == WL_T_TEXT   ? WL_R_TEXT
              : v.t == WL_T_BLOB ? WL_R_ANY
              : v.t == WL_T_REAL ? WL_R_REAL
                                 : WL_R_INT;
  }
}

/* Checks the limits of the kernel. */
static wl_status limits_fit(const wl_program *p, int n_code, wl_error *err) {
  const struct {
    int n, most;
    const char *what;
  } limits[] = {{n_code, WL_GPU_MAX_INSTR, "operations"},
                {p->n_columns, WL_GPU_MAX_COLUMNS, "columns"},
                {p->n_results, WL_GPU_MAX_RESULTS, "results"},
                {p->n_accs, WL_GPU_MAX_ACCS, "aggregates"},
                {p->n_maps, WL_GPU_MAX_MAPS, "maps"},
                {p->n_insets, WL_GPU_MAX_MAPS, "sets"},
                {p->n_joins, WL_GPU_MAX_JOINS, "joins"},
                {p->n_sources, WL_GPU_MAX_JOINS + 1, "sources"}};
  for (size_t k = 0; k < sizeof limits / sizeof *limits; k++)
    if (limits[k].n > limits[k].most)
      return wl_not_taken(err, "the program has %d %s, the kernel takes %d", limits[k].n,
                          limits[k].what, limits[k].most);
  return WL_OK;
}

/* Lays out a block's shared memory, with as many threads as it has room for. */
static wl_status lay_out(const wl_device *d, int threads, wl_u32 per_row, wl_lowered *out,
                         wl_u32 *registers, wl_error *err) {
  out->const_offset = out->n_opnds * (wl_u32)sizeof(wl_kopnd);
  out->code_offset = out->const_offset + 16 * out->n_consts;
  out->count_offset = out->code_offset + out->n_code * (wl_u32)sizeof(wl_kinstr);
  *registers = (out->count_offset + WL_K_COUNTS + 15) & ~15u;
  for (out->threads = (wl_u32)(threads ? threads : d->block_threads);; out->threads /= 2) {
    wl_u32 rows = out->threads * WL_K_ROWS;
    out->plane_offset = (*registers + per_row * rows + 15) & ~15u;
    wl_u32 at = out->plane_offset + 4 * out->n_planes * rows;
    for (wl_u32 c = 0; c < out->n_cuts; c++) {
      out->cuts[c].offset = at;
      at += 2 * 4 * (1 + out->cuts[c].n_planes) * rows;
    }
    out->acc_offset = (at + 15) & ~15u;
    out->n_shared = out->acc_offset + 8 * out->n_slots * out->threads;
    if (out->n_shared <= (wl_u32)d->max_shared) return WL_OK;
    if (out->threads <= 32)
      return wl_not_taken(err, "the program needs %u bytes of registers, a block has %d",
                          out->n_shared, d->max_shared);
  }
}

static wl_status alloc_lowered(wl_arena *arena, const wl_program *p, wl_lowered *out,
                               wl_error *err) {
  out->code = WL_NEW_N(arena, wl_kinstr, out->n_code);
  out->opnds = WL_NEW_N(arena, wl_kopnd, out->n_opnds);
  out->accs = WL_NEW_N(arena, wl_kacc, p->n_accs);
  out->planes = WL_NEW_N(arena, wl_u8, p->n_sources + 1);
  out->ins = WL_NEW_N(arena, wl_u8, p->n_sources + 1);
  out->outs = WL_NEW_N(arena, wl_u8, p->n_sources + 1);
  return arena->failed ? wl_nomem(err) : WL_OK;
}

wl_status wl_lower(wl_arena *arena, const wl_program *whole, const wl_device *d, int threads,
                   int number, wl_lowered *out, wl_error *err) {
  wl_arranged arranged;
  wl_coded coded;
  memset(out, 0, sizeof *out);
  wl_status rc = wl_parts_fit(whole, err);
  if (!rc && whole->grouped) rc = wl_dgroups_fit(whole, err);
  if (!rc) rc = wl_code_keys(arena, whole, &coded, err);
  if (!rc) rc = wl_arrange(arena, &coded.p, &arranged, err);
  if (rc) return rc;
  const wl_program *p = &arranged.p;
  const wl_gpu_part *part = &out->part;
  out->part = wl_parts_at(p, number);
  int added = (part->again >= 0) + (part->kind == WL_PART_TEST) + unmarks(p, part);
  out->n_code = (wl_u32)(part->end - part->first + added);
  rc = limits_fit(p, (int)out->n_code, err);
  wl_u32 *place = NULL, per_row = 0, registers;
  if (!rc) rc = place_registers(arena, p, part->first, part->end, &place, &per_row, err);
  if (rc) return rc;
  out->n_consts = (wl_u32)p->n_consts;
  out->n_opnds = (wl_u32)(p->n_regs + p->n_consts);
  out->ranges = arranged.ranges;
  out->n_ranges = (wl_u32)arranged.n_ranges;
  rc = alloc_lowered(arena, p, out, err);
  if (rc) return rc;
  place_rows(&arranged, out);
  place_cuts(&arranged, out);
  lower_accs(p, out);
  rc = lay_out(d, threads, per_row, out, &registers, err);
  if (rc) return rc;
  lower_operands(p, whole->n_regs, place, registers, out);
  lower_code(&arranged, whole->n_regs, out);
  mark_codes(&coded, p, out);
  for (int k = 0; k < whole->n_sets; k++) out->has_long |= wl_adds_codes(whole, &whole->sets[k]);
  out->only_numbers = !coded.n && has_only_numbers(p, part);
  return WL_OK;
}

wl_status wl_gpu_fits(const wl_program *p, const wl_device *d, wl_error *err) {
  wl_arena arena;
  wl_lowered ignored;
  wl_arena_init(&arena);
  wl_status rc = WL_OK;
  if (!wl_gpu_has(p))
    rc = wl_not_taken(err, "devices do not have the source or the sink of the pipeline");
  else if (!p->n_results && !p->grouped && !p->n_aggs)
    rc = wl_not_taken(err, "rows without columns are counted on the CPU");
  for (int k = 0; k < wl_parts_count(p) && !rc; k++)
    rc = wl_lower(&arena, p, d, 0, k, &ignored, err);
  wl_arena_close(&arena);
  return rc;
}
