/*
** The program verifier: a right program passes; each kind of wrong one is refused.
*/
#include "program/program.h"
#include <stdio.h>
#include <string.h>

static int failed;

/* SELECT a FROM t WHERE a > 1: registers 0 (column), 1 (truth) */
static wl_instr code[8];
static wl_reg regs[3], column_regs[1];
static wl_val consts[3];
static wl_result results[1];
static wl_program p;

static void reset(void) {
  const wl_instr right[] = {
      {WL_OP__Open, 0, 0, 0, 0},     {WL_OP__Parallel, 0, WL_SOURCE_TABLE, 0, 6},
      {WL_OP__Column, 0, 0, 0, 0},   {WL_OP__GtI, 1, 0, WL_CONST(1), 0},
      {WL_OP__IfNot, 0, 1, 0, 6},    {WL_OP__Result, 0, 0, 1, 0},
      {WL_OP__Converge, 0, 0, 0, 0}, {WL_OP__Halt, 0, 0, 0, 0},
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
  p.n_code = 8;
  p.regs = regs;
  p.n_regs = 3;
  p.consts = consts;
  p.n_consts = 3;
  p.column_regs = column_regs;
  p.n_columns = 1;
  p.results = results;
  p.n_results = 1;
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
  code[3].op = 9999;
  refuse("an unknown opcode");
  code[3].op = WL_OP__GtF;
  refuse("operands of another type");
  code[3].b = WL_CONST(2);
  refuse("a constant of another type");
  code[3].b = WL_CONST(7);
  refuse("a constant out of bounds");
  code[3].a = 2;
  refuse("a register read before it is set, of another type");
  code[3].op = WL_OP__GtF;
  code[3].a = 2;
  code[3].b = WL_CONST(2);
  refuse("a register read before it is set");
  code[3].d = 0;
  refuse("a result register of another type");
  code[3].d = 40;
  refuse("a result register out of bounds");
  code[2].a = 5;
  refuse("a column out of bounds");
  regs[0].type = WL_R_REAL;
  refuse("a column of another type");
  column_regs[0].nullable = true;
  refuse("NULLs into a register that cannot hold them");
  code[4].c = 2;
  refuse("a jump backwards");
  code[4].c = 7;
  refuse("a jump past the block");
  code[1].c = 5;
  refuse("Parallel without its Converge");
  code[5].op = WL_OP__Halt;
  refuse("a plan-level opcode inside a block");
  code[0].op = WL_OP__Column;
  refuse("a row-level opcode outside a block");
  code[5].b = 2;
  refuse("a result list of another length");
  results[0].operand = 2;
  refuse("a result that was never set");
  code[5] = (wl_instr){WL_OP__AggSumI, 0, 0, 0, 0};
  refuse("an accumulator that is not there");
  p.n_code = 7;
  refuse("no Halt at the end");
  return failed;
}
