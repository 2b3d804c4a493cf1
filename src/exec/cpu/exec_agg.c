/*
** Aggregates in the CPU engine: Group finds the groups of a vector, and the Agg opcodes add its
** values to them. See exec_impl.h.
*/
#include "exec/cpu/exec_impl.h"

void wl_exec_use_groups(wl_exec *x, wl_groups *groups) {
  x->groups = groups;
  x->numbers_rows = groups && wl_groups_number_rows(groups);
}

/* Numbers the rows of the vector. */
static wl_status number_rows(wl_exec *x, int n) {
  wl_i64 base = x->p->n_before + ((wl_i64)x->tablet << WL_TABLET_SHIFT) + x->row;
  if (!x->p->expands) {
    for (int i = 0; i < n; i++) x->rows[i] = base + (x->selected ? x->sel[i] : i);
    return WL_OK;
  }
  /* One row became many: number them so that those of the next vector come after. */
  base = (base << 31) + x->made;
  x->made += n;
  if (x->made > x->most) return WL_FULL;
  for (int i = 0; i < n; i++) x->rows[i] = base + i;
  return WL_OK;
}

wl_status wl_exec_find_groups(wl_exec *x, int n) {
  const wl_program *p = x->p;
  wl_status rc = x->numbers_rows ? number_rows(x, n) : WL_OK;
  if (rc) return rc;
  const wl_key *finds = wl_program_finds(p);
  for (int k = 0; k < wl_program_n_finds(p); k++)
    x->keys[k] = vec_of(wl_exec_operand(x, finds[k].operand));
  return wl_groups_find(x->groups, x->keys, x->rows, n, x->group);
}

wl_status wl_exec_aggregate(wl_exec *x, const wl_instr *in, int n) {
  bool two = wl_opcodes[in->op].shape == WL_SHAPE_AGG_VV;
  /* AggRows has no operand, and reading one would load a column. */
  wl_vec a = in->op == WL_OP__AggRows ? (wl_vec){0} : vec_of(wl_exec_operand(x, in->a));
  wl_vec b = two ? vec_of(wl_exec_operand(x, in->b)) : a;
  return wl_groups_add(x->groups, in->d, x->group, &a, two ? &b : NULL, x->rows, n,
                       x->ctx.max_text);
}
