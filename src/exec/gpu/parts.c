/*
** Cuts a pipeline into parts; see parts.h.
*/
#include "exec/gpu/parts.h"

/* Whether there is code between an Expand and its Match. */
static bool has_test(const wl_program *p, int pc) {
  const wl_join *j = &p->joins[p->code[pc].c];
  return j->match > pc + 1 && j->how != WL_HOW_INNER;
}

bool wl_parts_finds_one(const wl_program *p, int pc) {
  const wl_instr *in = &p->code[pc];
  if (in->op != WL_OP__Expand) return in->op == WL_OP__Probe;
  return wl_how_finds_one(p->joins[in->c].how) && !has_test(p, pc);
}

/* Finds part `number`, if there are as many. Returns how many there are up to it. */
static int find(const wl_program *p, int number, wl_gpu_part *out) {
  wl_gpu_part at = {.join = -1, .again = -1};
  int n = 0;
  for (int pc = 0; pc < p->n_code; pc++) {
    int join = p->code[pc].c;
    if (p->code[pc].op != WL_OP__Expand || wl_parts_finds_one(p, pc)) continue;
    int match = p->joins[join].match;
    bool tests = has_test(p, pc), twice = tests && p->joins[join].how == WL_HOW_LEFT;
    *out = (wl_gpu_part){WL_PART_EXPAND, 0, at.first, pc + 1, join, at.again};
    if (n++ == number) return n;
    if (tests) {
      *out = (wl_gpu_part){WL_PART_TEST, 0, pc + 1, match, join, -1};
      if (n++ == number) return n;
    }
    at.first = match == pc + 1 || (tests && !twice) ? match + 1 : pc + 1;
    at.again = twice ? join : -1;
  }
  *out = (wl_gpu_part){WL_PART_LAST, 0, at.first, p->n_code, -1, at.again};
  return n + 1;
}

int wl_parts_count(const wl_program *p) {
  wl_gpu_part ignored;
  return find(p, -1, &ignored);
}

wl_gpu_part wl_parts_at(const wl_program *p, int number) {
  wl_gpu_part part;
  find(p, number, &part);
  part.number = number;
  return part;
}

wl_status wl_parts_fit(const wl_program *p, wl_error *err) {
  for (int pc = 0; pc < p->n_code; pc++) {
    wl_u16 op = p->code[pc].op;
    if (wl_opcodes[op].host_only && op != WL_OP__Expand)
      return wl_not_taken(err, "%s runs on the CPU only", wl_opcodes[op].name);
  }
  return WL_OK;
}
