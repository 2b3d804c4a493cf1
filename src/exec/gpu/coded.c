/*
** See coded.h.
*/
#include "exec/gpu/coded.h"
#include <string.h>

static bool is_coded(wl_reg r) {
  return r.type == WL_R_TEXT || r.type == WL_R_ANY;
}

/* Whether equal values may look different. */
static bool may_tie(const wl_domain *d, wl_u8 coll) {
  return (d->mask & WL_M(WL_T_TEXT) && coll != WL_COLL_BINARY) || d->mask & WL_M(WL_T_REAL);
}

/* The coder of an operand, which the instruction at pc uses. -1: there are too many. */
static int coder_of(wl_coded *x, wl_i16 operand, wl_u8 coll, bool look, int pc) {
  int k = 0;
  while (k < x->n && (x->coders[k].keeps || x->coders[k].operand != operand ||
                      x->coders[k].coll != coll || x->coders[k].look != look))
    k++;
  if (k == WL_CODERS) return -1;
  if (k == x->n)
    x->coders[x->n++] = (wl_coder){.operand = operand, .coll = coll, .look = look, .pc = pc};
  return k;
}

/* A coder for the values of a min() or max(). */
static int keeper_of(const wl_program *p, wl_coded *x, wl_i16 operand, wl_u8 coll) {
  if (x->n == WL_CODERS) return -1;
  bool any = WL_IS_CONST(operand) || p->regs[operand].type != WL_R_TEXT;
  x->coders[x->n] = (wl_coder){.operand = operand,
                               .coll = coll,
                               .look = any || coll != WL_COLL_BINARY,
                               .keeps = true,
                               .pc = -1};
  return x->n++;
}

/* The instruction that fills an accumulator. */
static int feeder(const wl_program *p, int acc) {
  int pc = 0;
  while (p->code[pc].op < WL_OP__AggRows || p->code[pc].d != acc) pc++;
  return pc;
}

static wl_status find_coders(const wl_program *p, wl_coded *x, wl_error *err) {
  int group = 0;
  while (p->code[group].op != WL_OP__Group) group++;
  for (int k = 0; k < p->n_keys && k < WL_CODED_KEYS; k++) {
    const wl_key *key = &p->keys[k];
    x->of_key[k] = x->look_of_key[k] = -1;
    if (!is_coded(key->reg)) continue;
    x->of_key[k] = x->look_of_key[k] = coder_of(x, key->operand, key->coll, false, group);
    if (may_tie(&key->domain, key->coll) && !WL_IS_CONST(key->operand))
      x->look_of_key[k] = coder_of(x, key->operand, WL_COLL_BINARY, true, group + 1);
    x->coders[x->look_of_key[k]].shown = true;
  }
  for (int k = 0; k < p->n_sets; k++) {
    const wl_set *s = &p->sets[k];
    int pc = feeder(p, s->acc);
    x->of_set[k] = is_coded(s->reg) ? coder_of(x, p->code[pc].a, s->coll, false, pc) : -1;
    if (x->of_set[k] >= 0 && wl_adds_codes(p, s)) x->coders[x->of_set[k]].strict = true;
    if (is_coded(s->reg) && x->of_set[k] < 0)
      return wl_not_taken(err, "more than %d keys and DISTINCT values that are no numbers",
                          WL_CODERS);
  }
  for (int k = 0; k < p->n_accs; k++) {
    x->of_acc[k] = -1;
    if (!wl_keeps_values(&p->accs[k])) continue;
    x->of_acc[k] = keeper_of(p, x, p->code[feeder(p, k)].a, p->accs[k].coll);
    if (x->of_acc[k] < 0)
      return wl_not_taken(err, "more than %d keys and aggregates of values that are no numbers",
                          WL_CODERS);
  }
  return WL_OK;
}

/* Copies the code, with the new instructions. */
static void insert(const wl_program *p, wl_coded *x) {
  wl_program *to = &x->p;
  int n = 0;
  for (int pc = 0; pc <= p->n_code; pc++) {
    for (int k = 0; k < x->n; k++) {
      wl_i16 d = (wl_i16)(x->first + k);
      if (x->coders[k].pc != pc) continue;
      to->code[n++] = (wl_instr){WL_CODE_OPCODE, d, x->coders[k].operand, 0, 0};
      to->regs[d] = (wl_reg){WL_R_INT, true};
    }
    if (pc < p->n_code) to->code[n++] = p->code[pc];
  }
  to->n_code = n;
  to->n_regs += x->n;
}

void wl_coded_set_range(wl_coded *x, wl_i64 n) {
  wl_domain codes = wl_domain_int(0, n - 1, true);
  for (int k = 0; k < x->p.n_keys && x->n; k++)
    if (x->of_key[k] >= 0) x->p.keys[k].domain = codes;
  for (int k = 0; k < x->p.n_sets && x->n; k++)
    if (x->of_set[k] >= 0) x->p.sets[k].domain = codes;
}

/* The program with what finds groups as its keys. The host computes the keys from that. */
static wl_program by_finds(const wl_program *p) {
  wl_program by = *p;
  by.keys = p->n_finds ? p->finds : p->keys;
  by.n_keys = wl_program_n_finds(p);
  by.n_finds = 0;
  return by;
}

wl_status wl_code_keys(wl_arena *arena, const wl_program *whole, wl_coded *out, wl_error *err) {
  const wl_program by = by_finds(whole), *p = &by;
  *out = (wl_coded){.p = *p, .first = p->n_regs};
  if (!p->grouped) return WL_OK;
  wl_program *to = &out->p;
  out->of_set = WL_NEW_N(arena, int, p->n_sets + 1);
  out->of_acc = WL_NEW_N(arena, int, p->n_accs + 1);
  wl_status rc = out->of_set && out->of_acc ? find_coders(p, out, err) : wl_nomem(err);
  if (rc || !out->n) return rc;
  to->code = WL_NEW_N(arena, wl_instr, p->n_code + out->n);
  to->regs = WL_NEW_N(arena, wl_reg, p->n_regs + out->n);
  to->keys = WL_NEW_N(arena, wl_key, p->n_keys + 1);
  to->sets = WL_NEW_N(arena, wl_set, p->n_sets + 1);
  if (arena->failed) return wl_nomem(err);
  if (p->n_regs) memcpy(to->regs, p->regs, (size_t)p->n_regs * sizeof *p->regs);
  if (p->n_keys) memcpy(to->keys, p->keys, (size_t)p->n_keys * sizeof *p->keys);
  if (p->n_sets) memcpy(to->sets, p->sets, (size_t)p->n_sets * sizeof *p->sets);
  insert(p, out);
  wl_reg reg = {WL_R_INT, true};
  for (int k = 0; k < p->n_keys; k++) {
    if (out->of_key[k] < 0) continue;
    to->keys[k].operand = (wl_i16)(out->first + out->of_key[k]);
    to->keys[k].reg = reg;
  }
  for (int k = 0; k < p->n_sets; k++) {
    if (out->of_set[k] < 0) continue;
    to->code[feeder(to, p->sets[k].acc)].a = (wl_i16)(out->first + out->of_set[k]);
    to->sets[k].reg = reg;
  }
  wl_coded_set_range(out, 1);
  return WL_OK;
}
