/*
** Turns groups that a device accumulated into the CPU's form, so that joining and finishing exist
** only once; see group.h.
*/
#include "exec/cpu/group/group_impl.h"
#include <string.h>

enum { MAX_KEYS = 64 };

/* Adds a sum of reals from its digits. The high parts count 2^32 each. */
static wl_status put_digits(const wl_grouping *g, wl_arena *arena, int k, const wl_group_part *p,
                            wl_i64 *digits, wl_fsum **more) {
  for (int j = 0; j < 3; j++) {
    digits[j] += p->digits[j];
    if (!p->high[j]) continue;
    if (!*more && !(*more = wl_arena_alloc(arena, sizeof **more))) return WL_NOMEM;
    wl_fsum_add_scaled(*more, p->high[j], g->anchors[k] - WL_FSUM_DIGIT * j + 32);
  }
  return WL_OK;
}

static wl_status put_state(const wl_grouping *g, wl_arena *arena, int k, wl_u8 *e,
                           const wl_group_part *p) {
  void *state = entry_state(g, e, k);
  wl_val none = wl_null();
  switch (g->kinds[k]) {
  case STATE_COUNT: *(wl_i64 *)state += p->count; return WL_OK;
  case STATE_SUM:
    ((sum_state *)state)->count += p->count;
    ((sum_state *)state)->sum += (wl_i64)p->sum;
    return WL_OK;
  case STATE_REALS: {
    reals_state *s = state;
    s->count += p->count;
    return put_digits(g, arena, k, p, s->digit, &s->more);
  }
  case STATE_BEST:
  case STATE_ROWED:
    /* its count only says whether there is a value */
    if (p->best.t == WL_T_NULL) return WL_OK;
    return wl_group_add_value(g, arena, k, e, p->best, none, 0, 0);
  case STATE_CONCAT: return WL_NOT_TAKEN; /* devices do not compute it */
  case STATE_LONG: break;
  }
  long_state *s = state;
  s->count += p->count;
  s->sum += p->sum;
  s->magnitude += p->magnitude;
  if (p->best.t != WL_T_NULL) s->best = p->best; /* the only one: groups are added once */
  if (g->p->accs[k].op != WL_OP__AggSumF || p->count == 0) return WL_OK;
  s->seen_real = true;
  return put_digits(g, arena, k, p, s->digits, &s->reals);
}

wl_status wl_groups_import(wl_groups *g, const wl_val *keys, const wl_group_part *parts,
                           wl_u32 *out) {
  const wl_grouping *plan = g->plan;
  const wl_program *p = plan->p;
  wl_vec vec[MAX_KEYS];
  wl_u64 v[MAX_KEYS];
  wl_u32 n[MAX_KEYS];
  wl_u8 t[MAX_KEYS];
  wl_i64 row = 0;
  if (p->n_keys > MAX_KEYS) return WL_NOT_TAKEN;
  for (int k = 0; k < p->n_keys; k++) {
    bool tagged = p->keys[k].reg.nullable || p->keys[k].reg.type == WL_R_ANY;
    v[k] = keys[k].t == WL_T_NULL ? 0 : keys[k].v;
    n[k] = keys[k].n;
    t[k] = p->keys[k].reg.type == WL_R_ANY ? keys[k].t : keys[k].t != WL_T_NULL;
    vec[k] = (wl_vec){p->keys[k].reg.type, 1, &v[k], &n[k], tagged ? &t[k] : NULL};
  }
  wl_status rc = wl_groups_find(g, vec, &row, 1, out);
  if (rc) return rc;
  wl_u8 *e = g->table.entries + (size_t)*out * plan->width;
  for (int k = 0; k < plan->n_accs && !rc; k++) rc = put_state(plan, &g->arena, k, e, &parts[k]);
  return rc;
}

wl_status wl_groups_import_real(wl_groups *g, int acc, wl_u32 group, double v) {
  wl_u8 *e = g->table.entries + (size_t)group * g->plan->width;
  void *state = entry_state(g->plan, e, acc);
  --*(wl_i64 *)state; /* every state starts with its count */
  return wl_group_add_value(g->plan, &g->arena, acc, e, wl_real(v), wl_null(), 0, 0);
}
