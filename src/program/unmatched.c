/*
** Pipelines over unmatched rows of RIGHT and FULL joins (wl_program.also). Part of the compiler.
**
** Such a pipeline is the rest of the first pipeline's code, from the instruction after the Mark on.
** There, no earlier register is read and every source but the marked one may have no row. So the
** code is right for rows that have only the marked source.
**
** If there are several Marks, the pipelines run in the order of the Marks. Rows that one of them
** finds at a later Mark are marked there, too.
*/
#include "program/compile_impl.h"
#include <string.h>

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
  wl_program *p = c->p, **end = &p->also;
  wl_i64 n_before = c->in->n_rows;
  for (int pc = 0; pc < p->n_code; pc++) {
    if (p->code[pc].op != WL_OP__Mark) continue;
    wl_program *a = *end = WL_NEW(c->arena, wl_program);
    wl_status rc = a ? copy_rest(c, p, pc, a) : wl_nomem(c->err);
    if (rc) return rc;
    a->unmatched = p->code[pc].c;
    a->n_before = n_before;
    n_before += p->joins[a->unmatched].n_rows;
    end = &a->also;
  }
  return WL_OK;
}

void wl_unmatched_share(wl_program *p) {
  for (wl_program *a = p->also; a; a = a->also) {
    wl_program own = *a;
    *a = *p;
    a->source = WL_SOURCE_UNMATCHED;
    a->also = own.also;
    a->unmatched = own.unmatched;
    a->n_before = own.n_before;
    a->code = own.code;
    a->n_code = own.n_code;
    a->joins = own.joins;
    a->table = p->source_names[p->joins[a->unmatched].source];
  }
}
