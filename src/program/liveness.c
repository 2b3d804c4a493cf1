/*
** Liveness and places of registers; see liveness.h.
*/
#include "program/liveness.h"
#include <assert.h>
#include <string.h>

static bool sets(const wl_instr *in) {
  return wl_shapes[wl_opcodes[in->op].shape][0] != ' ';
}

/* The k-th operand that an instruction reads, or -1 if it is a constant. */
static int register_read(const wl_program *p, const wl_instr *in, int k) {
  wl_i16 x = wl_program_read(p, in, k);
  return WL_IS_CONST(x) ? -1 : x;
}

/* Whether the instruction can raise an error that counts, so that it must run. */
static bool may_fail(const wl_program *p, const wl_instr *in) {
  if (in->op == WL_OP__Concat) return p->may_fail;
  return in->op == WL_OP__Call && p->calls[in->c].fallible;
}

void wl_liveness_skip(const wl_program *p, const bool *results, bool filtered, bool *skip,
                      bool *wanted) {
  memset(wanted, 0, (size_t)p->n_regs);
  for (int pc = p->n_code - 1; pc >= 0; pc--) { /* backwards: readers come before what they read */
    const wl_instr *in = &p->code[pc];
    skip[pc] = in->op == WL_OP__IfNot ? filtered : sets(in) && !wanted[in->d] && !may_fail(p, in);
    for (int k = 0; k < wl_program_n_reads(p, in) && !skip[pc]; k++) {
      int r = register_read(p, in, k);
      if (r >= 0 && (in->op != WL_OP__Result || results[k])) wanted[r] = true;
    }
  }
}

void wl_liveness_find(const wl_live_block *b, wl_liveness *out) {
  for (int r = 0; r < b->p->n_regs; r++) {
    out->set_at[r] = -1;
    out->last_read[r] = -1;
  }
  for (int pc = b->first; pc < b->end; pc++) {
    const wl_instr *in = &b->p->code[pc];
    for (int k = 0; k < wl_program_n_reads(b->p, in); k++) {
      int r = register_read(b->p, in, k);
      if (r >= 0) out->last_read[r] = pc;
    }
    if (sets(in)) out->set_at[in->d] = pc;
  }
}

static bool same_type(wl_reg a, wl_reg b) {
  return a.type == b.type && a.nullable == b.nullable;
}

int wl_liveness_place(const wl_live_block *b, const wl_liveness *l, bool by_type, int *place,
                      int *owner) {
  const wl_reg *regs = b->p->regs;
  int n = 0;
  for (int pc = b->first; pc < b->end; pc++) {
    const wl_instr *in = &b->p->code[pc];
    if (!sets(in)) continue;
    assert(l->set_at[in->d] == pc); /* a register is set once */
    int k = 0;
    while (k < n && (l->last_read[owner[k]] >= pc || l->set_at[owner[k]] >= pc ||
                     (by_type && !same_type(regs[owner[k]], regs[in->d]))))
      k++;
    if (k == n) n++;
    owner[k] = in->d;
    place[in->d] = k;
  }
  return n;
}
