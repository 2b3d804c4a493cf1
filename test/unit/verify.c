/*
** The program verifier: a right program passes; each kind of wrong one is refused.
*/
#include "column/lookup.h"
#include "program/program.h"
#include <stdio.h>
#include <string.h>

static int failed;

/* SELECT a FROM t WHERE a > 1: registers 0 (column), 1 (truth) */
static wl_instr code[4];
static wl_reg regs[3], column_regs[1];
static wl_val consts[3];
static wl_result results[1];
static wl_program p;

static void reset(void) {
  const wl_instr right[] = {
      {WL_OP__Column, 0, 0, 0, 0},
      {WL_OP__GtI, 1, 0, WL_CONST(1), 0},
      {WL_OP__IfNot, 0, 1, 0, 4},
      {WL_OP__Result, 0, 0, 1, 0},
  };
  memcpy(code, right, sizeof code);
  regs[0] = (wl_reg){WL_R_INT, false};
  regs[1] = (wl_reg){WL_R_TRUTH, false};
  regs[2] = (wl_reg){WL_R_REAL, false};
  column_regs[0] = regs[0];
  consts[0] = wl_null();
  consts[1] = wl_int(1);
  consts[2] = wl_real(1.5);
  memset(&p, 0, sizeof p);
  results[0].operand = 0;
  p.code = code;
  p.n_code = 4;
  p.regs = regs;
  p.n_regs = 3;
  p.consts = consts;
  p.n_consts = 3;
  p.column_regs = column_regs;
  p.n_columns = 1;
  p.results = results;
  p.n_results = 1;
}

/* SELECT 1 FROM t JOIN u ON u.b = t.a: source 1 has column 1, join 0 is an Expand (or a Probe)
** that finds it by register 0; the test between Expand and Match is Found */
static wl_instr join_code[8];
static wl_reg join_columns[2], join_regs[4];
static wl_u8 sources[2];
static wl_join joins[1];
static wl_lookup lookup;
static wl_i16 keys[1];

static void reset_join(wl_join_how how) {
  const wl_instr right[] = {
      {WL_OP__Column, 0, 0, 0, 0}, {WL_OP__Expand, 0, 0, 0, 0}, {WL_OP__Found, 1, 1, 0, 0},
      {WL_OP__IfNot, 0, 1, 0, 4},  {WL_OP__Match, 0, 0, 0, 0},  {WL_OP__Result, 0, 0, 1, 0},
      {WL_OP__Result, 0, 0, 1, 0}, /* where one more opcode is put before it */
  };
  memcpy(join_code, right, sizeof right);
  join_columns[0] = join_columns[1] = (wl_reg){WL_R_INT, false};
  join_regs[0] = join_regs[2] = (wl_reg){WL_R_INT, false};
  join_regs[1] = (wl_reg){WL_R_TRUTH, false};
  join_regs[3] = (wl_reg){WL_R_INT, true};
  sources[1] = 1;
  keys[0] = 0;
  memset(&lookup, 0, sizeof lookup);
  lookup.plan.kind = WL_KEYS_INT;
  lookup.plan.n = 1;
  lookup.unique = true;
  joins[0] =
      (wl_join){.source = 1, .how = how, .lookup = &lookup, .keys = keys, .n_keys = 1, .match = 4};
  p.code = join_code;
  p.n_code = 6;
  p.regs = join_regs;
  p.n_regs = 4;
  p.column_regs = join_columns;
  p.n_columns = 2;
  p.column_sources = sources;
  p.n_sources = 2;
  p.joins = joins;
  p.n_joins = 1;
  p.expands = true;
  results[0].operand = WL_CONST(1);
}

/* SELECT x FROM t RIGHT JOIN u ON u.b = t.a: after the Mark, column x goes to register d. */
static void reset_mark(wl_i16 d, int x) {
  reset_join(WL_HOW_INNER);
  p.n_code = 8;
  join_code[5] = (wl_instr){WL_OP__Mark, 0, 0, 0, 0};
  join_code[6] = (wl_instr){WL_OP__Column, d, (wl_i16)x, 0, 0};
  join_code[7] = (wl_instr){WL_OP__Result, 0, 0, 1, 0};
  results[0].operand = d;
}

/* The same over the rows that were not marked: only the Column and the Result. */
static void reset_unmatched(wl_i16 d, int x) {
  reset_mark(d, x);
  p.source = WL_SOURCE_UNMATCHED;
  p.code = join_code + 6;
  p.n_code = 2;
}

static void accept(const char *what) {
  wl_error err = {0};
  wl_status rc = wl_program_verify(&p, &err);
  printf("%s verify: %s%s%s\n", rc ? "not ok" : "ok", what, rc ? " - " : "", err.text);
  failed |= rc != WL_OK;
}

static void refuse(const char *what) {
  wl_error err = {0};
  wl_status rc = wl_program_verify(&p, &err);
  int ok = rc == WL_ERROR && strncmp(err.text, "program: ", 9) == 0;
  printf("%s verify: %s%s%s\n", ok ? "ok" : "not ok", what, ok ? " - " : "", ok ? err.text : "");
  failed |= !ok;
  reset();
}

int main(void) {
  wl_error err;
  reset();
  int ok = wl_program_verify(&p, &err) == WL_OK;
  printf("%s verify: a right program\n", ok ? "ok" : "not ok");
  failed |= !ok;
  code[1].op = 9999;
  refuse("an unknown opcode");
  code[1].op = WL_OP__GtF;
  refuse("operands of another type");
  code[1].b = WL_CONST(2);
  refuse("a constant of another type");
  code[1].b = WL_CONST(7);
  refuse("a constant out of bounds");
  code[1].a = 2;
  refuse("a register read before it is set, of another type");
  code[1].op = WL_OP__GtF;
  code[1].a = 2;
  code[1].b = WL_CONST(2);
  refuse("a register read before it is set");
  code[1].d = 0;
  refuse("a result register of another type");
  code[1].d = 40;
  refuse("a result register out of bounds");
  code[0].a = 5;
  refuse("a column out of bounds");
  regs[0].type = WL_R_REAL;
  refuse("a column of another type");
  column_regs[0].nullable = true;
  refuse("NULLs into a register that cannot hold them");
  /* in the place of GtI: integers from integers, one of which is NULL */
  code[1] = (wl_instr){WL_OP__AddI, 2, 0, WL_CONST(0), 0};
  code[2] = (wl_instr){WL_OP__BitNotI, 2, 2, 0, 0};
  regs[2] = (wl_reg){WL_R_INT, false};
  refuse("a sum with NULL in a register that cannot hold it");
  code[2].c = 1;
  refuse("a jump backwards");
  code[2].c = 5;
  refuse("a jump past the end");
  p.sink = WL_SINK_GROUPS;
  refuse("an opcode of another sink");
  code[3].b = 2;
  refuse("a result list of another length");
  results[0].operand = 2;
  refuse("a result that was never set");
  code[3] = (wl_instr){WL_OP__AggSumI, 0, 0, 0, 0};
  refuse("an accumulator that is not there");
  p.n_code = 3;
  code[2].c = 3;
  refuse("no sink at the end");

  for (int how = WL_HOW_INNER; how <= WL_HOW_MARK; how++) {
    reset_join((wl_join_how)how);
    accept("a join with a test");
  }
  joins[0].match = -1;
  refuse("a join without its Match");
  reset_join(WL_HOW_INNER);
  joins[0].match = 3;
  refuse("a join whose Match is elsewhere");
  reset_join(WL_HOW_INNER);
  join_code[3].c = 6;
  refuse("a test that jumps past its Match");
  reset_join(WL_HOW_INNER);
  results[0].operand = 0;
  refuse("a register from before the Expand");
  reset_join(WL_HOW_INNER);
  join_code[1].c = 1;
  refuse("a join that is not there");
  reset_join(WL_HOW_INNER);
  keys[0] = WL_CONST(2);
  refuse("a key of another type");
  reset_join(WL_HOW_INNER);
  lookup.plan.n = 2;
  refuse("keys of another number");
  reset_join(WL_HOW_INNER);
  joins[0].lookup = NULL;
  refuse("a join without a lookup");
  reset_join(WL_HOW_INNER);
  joins[0].source = 2;
  refuse("a source out of bounds");
  reset_join(WL_HOW_INNER);
  join_code[0] = (wl_instr){WL_OP__Column, 2, 1, 0, 0};
  keys[0] = WL_CONST(1);
  refuse("a column of a source that has no row yet");
  reset_join(WL_HOW_SEMI);
  p.n_code = 7;
  join_code[5] = (wl_instr){WL_OP__Column, 2, 1, 0, 0};
  refuse("a column of a source after a semi-join");
  reset_join(WL_HOW_LEFT);
  p.n_code = 7;
  join_code[5] = (wl_instr){WL_OP__Column, 2, 1, 0, 0};
  refuse("a column that may be missing, in a register without NULL");
  reset_join(WL_HOW_LEFT);
  p.n_code = 7;
  join_code[5] = (wl_instr){WL_OP__Column, 3, 1, 0, 0};
  accept("a column that may be missing");
  reset_join(WL_HOW_INNER);
  join_code[2] = join_code[1];
  refuse("a join inside a test");
  reset_join(WL_HOW_INNER);
  join_code[4] = (wl_instr){WL_OP__Found, 1, 1, 0, 0};
  refuse("a test that does not end");
  reset_join(WL_HOW_LEFT);
  join_code[1].op = WL_OP__Probe;
  join_code[3] = join_code[4] = join_code[2];
  accept("a Probe");
  lookup.unique = false;
  refuse("a Probe that may find several rows");
  reset_join(WL_HOW_LEFT);
  join_code[1].op = WL_OP__Probe;
  join_code[3] = join_code[4] = join_code[2];
  lookup.plan.kind = WL_KEYS_VALUES;
  refuse("a Probe of hashes");
  reset_join(WL_HOW_INNER);
  join_code[1].op = WL_OP__Build;
  refuse("a Build before another sink");

  reset_mark(3, 0);
  accept("a column after a Mark");
  reset_mark(2, 1);
  accept("a column of the marked source");
  reset_mark(2, 0);
  refuse("a column that unmatched rows lack, in a register without NULL");
  reset_mark(3, 0);
  join_code[5].c = 1;
  refuse("a Mark of a join that is not there");
  reset_mark(3, 0);
  join_code[2].op = WL_OP__Mark;
  refuse("a Mark inside a test");
  reset_mark(3, 0);
  results[0].operand = 0;
  refuse("a register from before the Mark");
  reset_unmatched(2, 1);
  accept("unmatched rows");
  reset_unmatched(3, 0);
  accept("unmatched rows without their partners");
  reset_unmatched(2, 0);
  refuse("unmatched rows whose partners must be there");
  reset_unmatched(2, 1);
  p.unmatched = 1;
  refuse("unmatched rows of a join that is not there");
  return failed;
}
