/*
** Turns groups that a device accumulated into the CPU's form, so that joining and finishing exist
** only once; see group.h.
*/
#include "exec/cpu/group/group_impl.h"
#include <string.h>

enum { MAX_KEYS = 16 }; /* devices have fewer */

/* Adds a sum of reals from its digits. The high parts count 2^32 each. */
static wl_status put_digits(const wl_agg_how *h, wl_arena *arena, const wl_group_part *p,
                            wl_reals *s) {
  for (int j = 0; j < 3; j++) {
    s->digit[j] += p->digits[j];
    if (!p->high[j]) continue;
    if (wl_reals_more(s, arena)) return WL_NOMEM;
    wl_fsum_add_scaled(s->more, p->high[j], h->anchor - WL_FSUM_DIGIT * j + 32);
  }
  return WL_OK;
}

/* Makes a state of what a device gathered. Only accumulators whose place is not HOST come here. */
static wl_status put_state(const wl_agg_how *h, wl_arena *arena, void *state,
                           const wl_group_part *p, wl_i64 row) {
  switch (h->state) {
  case WL_STATE_COUNT: ((wl_count_state *)state)->count += p->count; return WL_OK;
  case WL_STATE_SUM: {
    wl_sum_state s = {p->count, (wl_i64)p->sum};
    return wl_agg_merge(h, state, &s, arena);
  }
  case WL_STATE_WIDE: {
    /* The order is not known. If it matters, the rows are added again, in order. */
    wl_wide_state s = {.count = p->count, .ints = {.sum = p->sum}};
    s.ints.positive = ((__int128)p->magnitude + p->sum) / 2;
    return wl_agg_merge(h, state, &s, arena);
  }
  case WL_STATE_REALS: {
    wl_reals_state *s = state;
    s->count += p->count;
    return put_digits(h, arena, p, &s->reals);
  }
  case WL_STATE_NUMBERS: {
    wl_numbers_state *s = state;
    wl_ints ints = {.sum = p->sum, .positive = ((__int128)p->magnitude + p->sum) / 2};
    wl_ints_merge(&s->ints, &ints, !s->n_reals);
    s->count += p->count;
    s->n_reals += p->n_reals;
    return put_digits(h, arena, p, &s->reals);
  }
  case WL_STATE_BEST:
  case WL_STATE_ROWED:
  case WL_STATE_VALUE: {
    /* its count only says whether there is a value */
    wl_agg_in in = {.v = p->best, .row = row, .arena = arena};
    return p->best.t == WL_T_NULL ? WL_OK : wl_agg_add(h, state, &in);
  }
  default: return WL_NOT_TAKEN; /* devices do not have it */
  }
}

/* Key k of n groups as a vector; v, len and t have room for it. */
static wl_vec key_vector(const wl_key *key, const wl_val *values, int n, wl_u64 *v, wl_u32 *len,
                         wl_u8 *t) {
  bool any = key->reg.type == WL_R_ANY;
  for (int i = 0; i < n; i++) {
    v[i] = values[i].t == WL_T_NULL ? 0 : values[i].v;
    len[i] = values[i].n;
    t[i] = any ? values[i].t : values[i].t != WL_T_NULL;
  }
  return (wl_vec){key->reg.type, 1, v, len, key->reg.nullable || any ? t : NULL};
}

wl_status wl_groups_import(wl_groups *g, int n, const wl_val *keys, const wl_i64 *rows,
                           const wl_group_part *parts, wl_u32 *out) {
  const wl_grouping *plan = g->plan;
  const wl_program *p = plan->p;
  wl_vec vec[MAX_KEYS];
  wl_u64 v[MAX_KEYS][WL_IMPORT_MOST];
  wl_u32 len[MAX_KEYS][WL_IMPORT_MOST];
  wl_u8 t[MAX_KEYS][WL_IMPORT_MOST];
  const wl_key *finds = wl_program_finds(p);
  int n_finds = wl_program_n_finds(p);
  if (n_finds > MAX_KEYS) return WL_NOT_TAKEN;
  for (int k = 0; k < n_finds; k++)
    vec[k] = key_vector(&finds[k], keys + k * WL_IMPORT_MOST, n, v[k], len[k], t[k]);
  memset(out, 0, (size_t)n * sizeof *out);
  wl_status rc = wl_groups_find(g, vec, rows, n, out);
  for (int i = 0; i < n && !rc; i++) {
    wl_u8 *e = g->table.entries + (size_t)out[i] * plan->width;
    for (int k = 0; k < plan->n_accs && !rc; k++)
      rc = put_state(&plan->accs[k], &g->arena, entry_state(plan, e, k), parts++, rows[i]);
  }
  return rc;
}

wl_status wl_groups_import_real(wl_groups *g, int acc, wl_u32 group, double v) {
  wl_u8 *e = g->table.entries + (size_t)group * g->plan->width;
  void *state = entry_state(g->plan, e, acc);
  wl_agg_in in = {.v = wl_real(v), .arena = &g->arena};
  --*(wl_i64 *)state; /* every state begins with its count */
  if (g->plan->accs[acc].state == WL_STATE_NUMBERS) --((wl_numbers_state *)state)->n_reals;
  return wl_agg_add(&g->plan->accs[acc], state, &in);
}
