/*
** The tables made from opcodes.def, and the verifier.
*/
#include "program/program.h"
#include "column/batch.h"
#include "column/dict.h"
#include "column/lookup.h"
#include <string.h>

const wl_opcode_info wl_opcodes[WL_N_OPCODES] = {
#define PLACE_ANY                           false, false
#define PLACE_LONG                          false, true
#define PLACE_HOST                          true, false
#define WL_OPCODE(name, shape, place, text) {#name, text, WL_SHAPE_##shape, PLACE_##place},
#include "program/opcodes.def"
#undef WL_OPCODE
};

const char *const wl_sink_leaves[WL_N_SINK_KINDS] = {
#define WL_SINK_KIND(name, leaves) leaves,
#include "program/pipelines.def"
#undef WL_SINK_KIND
};

const char wl_shapes[WL_N_SHAPES][5] = {
#define WL_SHAPE(name, letters, nulls) letters,
#include "program/shapes.def"
#undef WL_SHAPE
};

const wl_u8 wl_shape_nulls[WL_N_SHAPES] = {
#define WL_SHAPE(name, letters, nulls) WL_NULLS_##nulls,
#include "program/shapes.def"
#undef WL_SHAPE
};

int wl_program_n_listed(const wl_program *p, const wl_instr *in) {
  switch (wl_opcodes[in->op].shape) {
  case WL_SHAPE_RESULT: return p->n_results;
  case WL_SHAPE_GROUP: return wl_program_n_finds(p);
  case WL_SHAPE_PROBE: return p->joins[in->c].n_keys;
  case WL_SHAPE_CALL: return p->calls[in->c].n;
  default: return 0;
  }
}

wl_i16 wl_program_listed(const wl_program *p, const wl_instr *in, int k) {
  switch (wl_opcodes[in->op].shape) {
  case WL_SHAPE_RESULT: return p->results[k].operand;
  case WL_SHAPE_GROUP: return wl_program_finds(p)[k].operand;
  case WL_SHAPE_PROBE: return p->joins[in->c].keys[k];
  default: return p->calls[in->c].args[k];
  }
}

/* AggDistinct reads the group's keys again, with its value as one more key. */
static int n_keys_again(const wl_program *p, const wl_instr *in) {
  return in->op == WL_OP__AggDistinct ? p->n_keys : 0;
}

int wl_program_n_reads(const wl_program *p, const wl_instr *in) {
  const char *want = wl_shapes[wl_opcodes[in->op].shape];
  int n = (want[1] != ' ') + (want[2] != ' ') + (want[3] != ' ');
  return n + wl_program_n_listed(p, in) + n_keys_again(p, in);
}

wl_i16 wl_program_read(const wl_program *p, const wl_instr *in, int k) {
  const char *want = wl_shapes[wl_opcodes[in->op].shape];
  const wl_i16 operands[3] = {in->a, in->b, in->c};
  for (int j = 0; j < 3; j++)
    if (want[j + 1] != ' ' && k-- == 0) return operands[j];
  return n_keys_again(p, in) ? p->keys[k].operand : wl_program_listed(p, in, k);
}

static bool type_fits(char want, wl_regtype have) {
  switch (want) {
  case 'I': return have == WL_R_INT;
  case 'F': return have == WL_R_REAL;
  case 'B': return have == WL_R_TRUTH;
  default: return true;
  }
}

static bool const_fits(char want, wl_val v) {
  switch (want) {
  case 'I': return v.t == WL_T_INT || v.t == WL_T_NULL;
  case 'F': return v.t == WL_T_REAL || v.t == WL_T_NULL;
  case 'B': return v.t == WL_T_NULL || (v.t == WL_T_INT && v.v <= 1);
  default: return true;
  }
}

/* Checks one operand that instruction pc reads. */
static wl_status check_operand(const wl_program *p, int pc, char want, wl_i16 x,
                               const wl_u8 *defined, wl_error *err) {
  if (want == ' ') return WL_OK;
  const char *name = wl_opcodes[p->code[pc].op].name;
  if (WL_IS_CONST(x)) {
    int k = WL_CONST_OF(x);
    if (k >= p->n_consts || !const_fits(want, p->consts[k]))
      return wl_fail(err, WL_ERROR,
                     "program: %s at %d: constant %d is missing or has the wrong type", name, pc,
                     k);
    return WL_OK;
  }
  if (x >= p->n_regs || !type_fits(want, p->regs[x].type))
    return wl_fail(err, WL_ERROR, "program: %s at %d: register %d is missing or has the wrong type",
                   name, pc, x);
  if (!defined[x])
    return wl_fail(err, WL_ERROR, "program: %s at %d reads register %d before it is set", name, pc,
                   x);
  return WL_OK;
}

/* Whether a checked operand may be NULL. Truths never are: they may be unknown instead. */
static bool may_be_null(const wl_program *p, char want, wl_i16 x) {
  if (want == ' ' || want == 'B') return false;
  return WL_IS_CONST(x) ? p->consts[WL_CONST_OF(x)].t == WL_T_NULL : p->regs[x].nullable;
}

/* The verifier's position in the code. */
typedef struct verify_place {
  int test;                 /* the Match that ends the current test, or -1 */
  wl_u8 *defined;           /* by register: whether it is set */
  wl_u8 known[WL_SOURCES];  /* by source: it has a row here, unless misses says otherwise */
  wl_u8 misses[WL_SOURCES]; /* by source: it may have no row here */
} verify_place;

static bool is_int(wl_i16 x, const wl_program *p) {
  return WL_IS_CONST(x) ? const_fits('I', p->consts[WL_CONST_OF(x)]) : p->regs[x].type == WL_R_INT;
}
static bool is_real(wl_i16 x, const wl_program *p) {
  return WL_IS_CONST(x) ? const_fits('F', p->consts[WL_CONST_OF(x)]) : p->regs[x].type == WL_R_REAL;
}

/* Checks Probe, Expand and Build: the join, its lookup and keys. Operands are already checked. */
static wl_status check_join(const wl_program *p, int pc, verify_place *at, wl_error *err) {
  const wl_instr *in = &p->code[pc];
  const char *name = wl_opcodes[in->op].name;
  const wl_join *j = &p->joins[in->c];
  if (at->test >= 0 || p->source == WL_SOURCE_GROUPS)
    return wl_fail(err, WL_ERROR, "program: %s at %d is inside a test, or its source has no joins",
                   name, pc);
  if (in->op == WL_OP__Build) {
    if (in->c != 0 || p->expands)
      return wl_fail(err, WL_ERROR, "program: Build at %d has rows of several sources", pc);
    return WL_OK;
  }
  const wl_lookup *l = j->lookup;
  if (!l || l->plan.n != j->n_keys || j->n_keys > WL_LOOKUP_KEYS)
    return wl_fail(err, WL_ERROR, "program: %s at %d has no lookup with %d keys", name, pc,
                   j->n_keys);
  for (int k = 0; k < j->n_keys; k++)
    if ((l->plan.kind == WL_KEYS_INT && !is_int(j->keys[k], p)) ||
        (l->plan.kind == WL_KEYS_REAL && !is_real(j->keys[k], p)) ||
        (!WL_IS_CONST(j->keys[k]) && p->regs[j->keys[k]].type == WL_R_TRUTH))
      return wl_fail(err, WL_ERROR, "program: %s at %d has a key of the wrong type", name, pc);
  if (j->source < 1 || j->source >= p->n_sources || at->known[j->source])
    return wl_fail(err, WL_ERROR,
                   "program: %s at %d: source %d already has a row or does not exist", name, pc,
                   j->source);
  if (in->op == WL_OP__Probe && (!l->unique || l->plan.kind == WL_KEYS_VALUES))
    return wl_fail(err, WL_ERROR, "program: Probe at %d may find several rows or wrong ones", pc);
  bool seen = j->how != WL_HOW_SEMI && j->how != WL_HOW_ANTI;
  at->known[j->source] = seen || in->op == WL_OP__Expand;
  at->misses[j->source] = j->how == WL_HOW_LEFT || j->how == WL_HOW_MARK;
  if (in->op != WL_OP__Expand) return WL_OK;
  if (!p->expands || (j->match < 0 && j->how != WL_HOW_INNER) ||
      (j->match >= 0 && (j->match <= pc || j->match >= p->n_code ||
                         p->code[j->match].op != WL_OP__Match || p->code[j->match].c != in->c)))
    return wl_fail(err, WL_ERROR, "program: Expand at %d has no Match", pc);
  at->test = j->match;
  if (j->match >= 0) at->misses[j->source] = 0; /* a candidate is a row */
  memset(at->defined, 0, (size_t)p->n_regs);
  return WL_OK;
}

static wl_status check_match(const wl_program *p, int pc, verify_place *at, wl_error *err) {
  const wl_join *j = &p->joins[p->code[pc].c];
  if (at->test != pc) return wl_fail(err, WL_ERROR, "program: Match at %d does not end a test", pc);
  at->test = -1;
  at->known[j->source] = j->how != WL_HOW_SEMI && j->how != WL_HOW_ANTI;
  at->misses[j->source] = j->how == WL_HOW_LEFT || j->how == WL_HOW_MARK;
  memset(at->defined, 0, (size_t)p->n_regs);
  return WL_OK;
}

/* After a Mark, the code also runs for unmatched rows, which have only the marked source. */
static wl_status check_mark(const wl_program *p, int pc, verify_place *at, wl_error *err) {
  const wl_join *j = &p->joins[p->code[pc].c];
  if (at->test >= 0 || !at->known[j->source])
    return wl_fail(err, WL_ERROR, "program: Mark at %d marks a source that has no row there", pc);
  for (int s = 0; s < p->n_sources; s++) at->misses[s] |= s != j->source;
  memset(at->defined, 0, (size_t)p->n_regs);
  return WL_OK;
}

/* A pipeline over unmatched rows starts with a row of that source. The sources that its code does
** not join are known, too, but have no row. */
static wl_status start_unmatched(const wl_program *p, verify_place *at, wl_error *err) {
  if (p->unmatched < 0 || p->unmatched >= p->n_joins)
    return wl_fail(err, WL_ERROR, "program: it reads the rows of no join");
  memset(at->known, 1, sizeof at->known);
  memset(at->misses, 1, sizeof at->misses);
  for (int pc = 0; pc < p->n_code; pc++) {
    const wl_instr *in = &p->code[pc];
    if ((in->op != WL_OP__Probe && in->op != WL_OP__Expand) || in->c < 0 || in->c >= p->n_joins)
      continue;
    at->known[p->joins[in->c].source] = at->misses[p->joins[in->c].source] = 0;
  }
  at->misses[p->joins[p->unmatched].source] = 0;
  return WL_OK;
}

static wl_status check_row_op(const wl_program *p, int pc, verify_place *at, wl_error *err) {
  wl_u8 *defined = at->defined;
  int end = at->test >= 0 ? at->test : p->n_code;
  const wl_instr *in = &p->code[pc];
  const wl_opcode_info *o = &wl_opcodes[in->op];
  const char *want = wl_shapes[o->shape];
  if ((o->shape == WL_SHAPE_PROBE || o->shape == WL_SHAPE_MATCH || o->shape == WL_SHAPE_MARK) &&
      (in->c < 0 || in->c >= p->n_joins))
    return wl_fail(err, WL_ERROR, "program: %s at %d has no join %d", o->name, pc, in->c);
  wl_status rc = check_operand(p, pc, want[1], in->a, defined, err);
  if (!rc) rc = check_operand(p, pc, want[2], in->b, defined, err);
  if (!rc) rc = check_operand(p, pc, want[3], in->c, defined, err);
  if (rc) return rc;
  switch (o->shape) {
  case WL_SHAPE_FILTER:
    /* nothing runs for the row after the jump, so it skips no definition that is used */
    if (in->c <= pc || in->c != end)
      return wl_fail(err, WL_ERROR, "program: %s at %d jumps to %d, not to the end or its Match",
                     o->name, pc, in->c);
    break;
  case WL_SHAPE_COLUMN:
    if (in->a < 0 || in->a >= p->n_columns)
      return wl_fail(err, WL_ERROR, "program: Column at %d has no column %d", pc, in->a);
    if (in->d >= 0 && in->d < p->n_regs) {
      const wl_reg *r = &p->column_regs[in->a];
      if (r->type != p->regs[in->d].type || (r->nullable && !p->regs[in->d].nullable))
        return wl_fail(err, WL_ERROR, "program: the register of Column at %d has the wrong type",
                       pc);
      int s = wl_column_source(p, in->a);
      if (s >= WL_SOURCES || !at->known[s])
        return wl_fail(err, WL_ERROR, "program: Column at %d reads a source that has no row there",
                       pc);
      if (at->misses[s] && !p->regs[in->d].nullable && r->type != WL_R_ANY)
        return wl_fail(err, WL_ERROR,
                       "program: Column at %d may be NULL, but its register is not nullable", pc);
    }
    break;
  case WL_SHAPE_MATCH: return check_match(p, pc, at, err);
  case WL_SHAPE_MARK: return check_mark(p, pc, at, err);
  case WL_SHAPE_FOUND:
    if (in->a < 0 || in->a >= p->n_sources || in->a >= WL_SOURCES || !at->known[in->a] ||
        in->a == 0)
      return wl_fail(err, WL_ERROR, "program: Found at %d names no source", pc);
    break;
  case WL_SHAPE_ROW:
    if (in->a < 0 || in->a >= p->n_sources || in->a >= WL_SOURCES || !at->known[in->a])
      return wl_fail(err, WL_ERROR, "program: Row at %d names no source", pc);
    if (at->misses[in->a] && in->d >= 0 && in->d < p->n_regs && !p->regs[in->d].nullable)
      return wl_fail(err, WL_ERROR,
                     "program: Row at %d may be NULL, but its register is not nullable", pc);
    break;
  case WL_SHAPE_RESULT:
    if (at->test >= 0) return wl_fail(err, WL_ERROR, "program: Result at %d is inside a test", pc);
    if (in->b != p->n_results)
      return wl_fail(err, WL_ERROR, "program: Result at %d returns the wrong number of columns, %d",
                     pc, in->b);
    break;
  case WL_SHAPE_CALL:
    if (in->c < 0 || in->c >= p->n_calls)
      return wl_fail(err, WL_ERROR, "program: %s at %d has no call %d", o->name, pc, in->c);
    break;
  case WL_SHAPE_IN:
    if (in->c < 0 || in->c >= p->n_insets)
      return wl_fail(err, WL_ERROR, "program: %s at %d has no set %d", o->name, pc, in->c);
    break;
  case WL_SHAPE_MAP_B:
  case WL_SHAPE_MAP_I:
  case WL_SHAPE_MAP_F:
  case WL_SHAPE_MAP_V:
    if (in->c < 0 || in->c >= p->n_maps || WL_IS_CONST(in->a))
      return wl_fail(err, WL_ERROR, "program: %s at %d has no map %d", o->name, pc, in->c);
    break;
  case WL_SHAPE_GROUP:
    if (in->b != wl_program_n_finds(p))
      return wl_fail(err, WL_ERROR, "program: Group at %d has %d keys", pc, in->b);
    for (int k = 0; k < p->n_keys && p->n_finds; k++) {
      const wl_key *key = &p->keys[k];
      if (p->n_sets || key->by < 0 || key->by >= p->n_finds || key->column >= p->n_columns ||
          (key->computed >= 0 &&
           (!p->finds[key->by].row_keys || key->computed >= p->finds[key->by].row_keys->n_results)))
        return wl_fail(err, WL_ERROR, "program: key %d of Group at %d is in no row", k, pc);
    }
    break;
  case WL_SHAPE_AGG:
  case WL_SHAPE_AGG_I:
  case WL_SHAPE_AGG_F:
  case WL_SHAPE_AGG_V:
  case WL_SHAPE_AGG_VV:
    if (!p->grouped)
      return wl_fail(err, WL_ERROR, "program: %s at %d has no Group before it", o->name, pc);
    if (in->d < 0 || in->d >= p->n_accs || p->accs[in->d].op != in->op)
      return wl_fail(err, WL_ERROR, "program: %s at %d has no accumulator %d", o->name, pc, in->d);
    break;
  default: break;
  }
  for (int k = 0; k < wl_program_n_listed(p, in) && !rc; k++)
    rc = check_operand(p, pc, 'V', wl_program_listed(p, in, k), defined, err);
  if (!rc && o->shape == WL_SHAPE_PROBE) rc = check_join(p, pc, at, err);
  if (rc) return rc;
  if (want[0] != ' ') {
    if (in->d < 0 || in->d >= p->n_regs || !type_fits(want[0], p->regs[in->d].type))
      return wl_fail(err, WL_ERROR,
                     "program: %s at %d: result register %d is missing or has the wrong type",
                     o->name, pc, in->d);
    bool null = may_be_null(p, want[1], in->a) || may_be_null(p, want[2], in->b);
    if (null && want[0] != 'B' && wl_null_strict(wl_shape_nulls[o->shape]) &&
        !p->regs[in->d].nullable)
      return wl_fail(err, WL_ERROR,
                     "program: %s at %d may be NULL, but its register is not nullable", o->name,
                     pc);
    defined[in->d] = 1;
  }
  return WL_OK;
}

/* Whether an opcode is part of the sink and not a step. *fits: it is one of this sink. */
static bool of_sink(wl_u16 op, wl_sink_kind sink, bool *fits) {
  switch (wl_opcodes[op].shape) {
  case WL_SHAPE_RESULT: *fits = wl_sink_takes_rows(sink) || sink == WL_SINK_SORT_KEYS; return true;
  case WL_SHAPE_GROUP:
  case WL_SHAPE_AGG:
  case WL_SHAPE_AGG_I:
  case WL_SHAPE_AGG_F:
  case WL_SHAPE_AGG_V:
  case WL_SHAPE_AGG_VV: *fits = sink == WL_SINK_GROUPS; return true;
  default: *fits = sink == WL_SINK_LOOKUP; return op == WL_OP__Build;
  }
}

/* A pipeline over rows has no steps: its sink takes them as they are. */
static wl_status check_sink(const wl_program *p, bool found, wl_error *err) {
  bool bare = p->sink == WL_SINK_GROUPS; /* groups without keys may have no opcode */
  if (p->source == WL_SOURCE_ROWS ? p->n_code > 0 : !found && !bare)
    return wl_fail(err, WL_ERROR, "program: it has no sink, or steps over rows");
  if ((p->sink == WL_SINK_SORT || p->sink == WL_SINK_SORT_KEYS) != (p->n_order > 0))
    return wl_fail(err, WL_ERROR, "program: a sort without sort keys, or keys without a sort");
  for (int k = 0; k < p->n_order; k++)
    if (p->order[k].result < 0 || p->order[k].result >= p->n_results)
      return wl_fail(err, WL_ERROR, "program: sort key %d names no result", k);
  return WL_OK;
}

wl_status wl_program_verify(const wl_program *p, wl_error *err) {
  wl_arena scratch;
  wl_arena_init(&scratch);
  wl_status rc = WL_OK;
  wl_u8 *defined = wl_arena_alloc(&scratch, (size_t)p->n_regs + 1);
  if (!defined) rc = wl_nomem(err);
  verify_place at = {.test = -1, .defined = defined, .known = {1}, .misses = {p->may_miss}};
  bool sinks = false, fits = true;
  if (!rc && p->n_sources > WL_SOURCES) rc = wl_fail(err, WL_ERROR, "program: too many sources");
  if (!rc && p->source == WL_SOURCE_UNMATCHED) rc = start_unmatched(p, &at, err);
  for (int pc = 0; !rc && pc < p->n_code; pc++) {
    wl_u16 op = p->code[pc].op;
    if (op >= WL_N_OPCODES) {
      rc = wl_fail(err, WL_ERROR, "program: unknown opcode at %d", pc);
      break;
    }
    bool one = of_sink(op, p->sink, &fits);
    sinks |= one;
    if (one && !fits)
      rc = wl_fail(err, WL_ERROR, "program: %s at %d belongs to another sink", wl_opcodes[op].name,
                   pc);
    else
      rc = check_row_op(p, pc, &at, err);
  }
  if (!rc) rc = check_sink(p, sinks, err);
  if (!rc && at.test >= 0) rc = wl_fail(err, WL_ERROR, "program: a test has no end");
  for (int k = 0; !rc && k < p->n_aggs; k++)
    if (p->aggs[k].acc < 0 || p->aggs[k].acc >= p->n_accs)
      rc = wl_fail(err, WL_ERROR, "program: aggregate %d has no accumulator", k);
  for (int k = 0; !rc && k < p->n_bares; k++)
    if (p->bares[k].column < 0 || p->bares[k].column >= p->n_columns ||
        p->bares[k].acc >= p->n_accs)
      rc = wl_fail(err, WL_ERROR, "program: bare column %d names no column", k);
    else if (p->expands || p->also || wl_column_source(p, p->bares[k].column) != 0)
      rc = wl_fail(err, WL_ERROR,
                   "program: bare column %d is read from a row whose number is not kept", k);
  for (int k = 0; !rc && k < p->n_sets; k++)
    if (p->sets[k].acc < 0 || p->sets[k].acc >= p->n_accs || p->accs[p->sets[k].acc].set != k)
      rc = wl_fail(err, WL_ERROR, "program: set %d has no accumulator", k);
  wl_arena_close(&scratch);
  return rc;
}

wl_reg wl_result_reg(const wl_result *r) {
  wl_reg reg = wl_domain_reg(r->domain);
  if (r->dict) reg.type = WL_R_INT;
  return reg;
}

wl_domain wl_result_domain(const wl_result *r) {
  return r->dict ? wl_domain_int(0, r->dict->n - 1, (r->domain.mask & WL_M(WL_T_NULL)) != 0)
                 : r->domain;
}

wl_status wl_program_pool(const wl_program *p, wl_i64 max_rows, wl_pool **out, wl_error *err) {
  wl_arena scratch;
  wl_arena_init(&scratch);
  wl_reg *regs = WL_NEW_N(&scratch, wl_reg, p->n_results + 1);
  const wl_dict **dicts = WL_NEW_N(&scratch, const wl_dict *, p->n_results + 1);
  wl_status rc = regs && dicts ? WL_OK : wl_nomem(err);
  for (int k = 0; k < p->n_results && !rc; k++) {
    regs[k] = wl_result_reg(&p->results[k]);
    dicts[k] = p->results[k].dict;
  }
  if (!rc) rc = wl_pool_open(regs, dicts, p->n_results, max_rows, out, err);
  wl_arena_close(&scratch);
  return rc;
}
