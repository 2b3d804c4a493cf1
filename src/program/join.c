/*
** Joins: turns the steps of a plan into Probe and Expand, and compiles the programs that build
** their lookups. Part of the compiler.
**
** A step that finds at most one row, by keys that words hold exactly, becomes a Probe. Any other
** step becomes an Expand: its candidates are found by the hash of the keys, or are all rows, and
** tests after it filter them.
**
** Invariants:
** 1. Both sides of a key are converted to one type: integers (including codes of one dictionary),
**    reals, or generic values. Equal sides give equal words.
** 2. How the keys of a step are converted depends only on the types of both sides. So the build and
**    the probe agree, although they are compiled separately.
*/
#include "program/compile_impl.h"
#include "column/lookup.h"
#include <string.h>

typedef enum key_form { KEY_INT, KEY_CODE, KEY_REAL, KEY_VALUE, KEY_NONE } key_form;

static wl_u64 bit(int s) {
  return 1ULL << s;
}

/* Gives a source of the query its number in the program. */
static void place_source(wl_compiler *c, int source, int at) {
  const wl_query *q = c->in->query;
  c->places[source] = (signed char)at;
  for (int i = 0; i < q->n_cols; i++)
    if (q->cols[i].source == source) c->p->column_sources[i] = (wl_u8)at;
  c->p->source_names[at] = q->sources[source].name ? q->sources[source].name : "";
  if (at >= c->p->n_sources) c->p->n_sources = at + 1;
}

/* Drops the rows of a source that do not count, before anything else reads them. */
static wl_status drop_dead(wl_compiler *c, int source) {
  int slot = c->in->live ? c->in->live[source] : -1;
  wl_operand live, zero, t;
  if (slot < 0) return WL_OK;
  wl_status rc = wl_compile_leaf_operand(c, slot, &live);
  if (!rc) rc = wl_compile_constant(c, wl_int(0), &zero);
  if (!rc)
    rc = wl_compile_emit(c, WL_OP__NeI, &live, &zero, &wl_no_operand, 0, wl_domain_int(0, 1, false),
                         &t);
  return rc ? rc : wl_compile_append(c, (wl_instr){WL_OP__IfNot, 0, t.x, 0, 0});
}

/* ---- keys */

/* Compiles an expression in a temporary program to learn its type. maybe: sources that may have no
** row there. */
static wl_status type_with(const wl_compiler *c, const wl_bexpr *e, wl_u64 maybe, wl_operand *out) {
  wl_compiler side;
  wl_compiler all = *c;
  memset(all.places, 0, sizeof all.places);
  all.maybe = maybe;
  all.over_table = true;
  wl_status rc = wl_compile_side(&all, 0, &side);
  if (!rc) rc = wl_compile_coded(&side, e, out);
  if (!rc) rc = wl_compile_value(&side, out);
  wl_compile_side_close(&side);
  return rc;
}

/* The sources that may have no row after the outer joins of the query. */
static wl_u64 sources_of_outer_joins(const wl_query *q) {
  wl_u64 all = 0;
  bool outer = false;
  for (int s = 0; s < q->n_sources; s++) {
    wl_join_how how = q->sources[s].how;
    outer |= how == WL_HOW_LEFT || wl_how_keeps_unmatched(how);
    if (how != WL_HOW_SEMI && how != WL_HOW_ANTI && how != WL_HOW_MARK) all |= bit(s);
  }
  return outer ? all : 0;
}

wl_status wl_compile_type(const wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  wl_operand wide;
  wl_u64 maybe = sources_of_outer_joins(c->in->query);
  wl_status rc = type_with(c, e, 0, out);
  if (rc || !maybe) return rc;
  rc = type_with(c, e, maybe, &wide);
  if (rc || (wide.dom.mask & ~out->dom.mask & ~WL_M(WL_T_NULL)) == 0) return rc;
  out->dict = NULL;
  out->dom = wl_domain_union(out->dom, wide.dom);
  return WL_OK;
}

/* How one key is converted. */
static wl_status form_of_key(const wl_compiler *c, const wl_jkey *k, key_form *form) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL), T = WL_M(WL_T_TEXT), N = I | F;
  wl_operand in, out;
  char aff = k->cond->cmp_affinity;
  bool is = k->cond->kind == WL_B_IS;
  wl_status rc = wl_compile_type(c, k->inner, &in);
  if (!rc) rc = wl_compile_type(c, k->outer, &out);
  if (rc) return rc;
  rc = wl_compile_in_real((wl_compiler *)(size_t)c, k->cond, &in, &out);
  if (!rc) rc = wl_compile_arms_agree(c, k->cond, &in, &out);
  if (rc) return rc;
  unsigned a = in.dom.mask & ~WL_M(WL_T_NULL), b = out.dom.mask & ~WL_M(WL_T_NULL);
  if (in.dict && out.dict && aff < 'C' && k->cond->cmp_coll == WL_COLL_BINARY &&
      (!is || in.dict == out.dict)) {
    *form = KEY_CODE;
    return WL_OK;
  }
  bool to_number = aff >= 'C' && ((a | b) & T);
  if (aff == 'B' && ((a & N && b & T) || (b & N && a & T))) {
    /* a number becomes text only if the other side is text in that row */
    bool apart = (a & ~N) == 0 ? (b & ~T) == 0 : (a & ~T) == 0 && (b & ~N) == 0;
    *form = apart ? KEY_VALUE : KEY_NONE;
    return WL_OK;
  }
  if (to_number && (a & T)) a |= N;
  if (to_number && (b & T)) b |= N;
  if ((a & ~I) == 0 && (!is || (b & ~I) == 0))
    *form = KEY_INT;
  else if ((a & ~F) == 0 && !is)
    *form = KEY_REAL;
  else
    *form = KEY_VALUE;
  return WL_OK;
}

/* How all keys of a step are converted. Keys that cannot be hashed are KEY_NONE. */
static wl_status forms_of_keys(const wl_compiler *c, const wl_jstep *st, key_form *forms, int *n) {
  bool ints = true, values = false;
  *n = 0;
  for (int k = 0; k < st->n_keys; k++) {
    wl_status rc = form_of_key(c, &st->keys[k], &forms[k]);
    if (rc) return rc;
    if (forms[k] != KEY_NONE && *n == WL_LOOKUP_KEYS) forms[k] = KEY_NONE;
    if (forms[k] == KEY_NONE) continue;
    ++*n;
    ints &= forms[k] == KEY_INT || forms[k] == KEY_CODE;
    values |= forms[k] == KEY_VALUE;
  }
  bool real = *n == 1 && !ints && !values;
  for (int k = 0; k < st->n_keys; k++)
    if (forms[k] != KEY_NONE && !ints && !real) forms[k] = KEY_VALUE;
  return WL_OK;
}

/* One side of a key as an operand. */
static wl_status key_operand(wl_compiler *c, const wl_jkey *k, key_form form, bool inner,
                             wl_operand *out) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL), T = WL_M(WL_T_TEXT);
  const wl_bexpr *e = inner ? k->inner : k->outer;
  char aff = k->cond->cmp_affinity;
  wl_operand other;
  wl_status rc;
  if (form == KEY_CODE) {
    rc = wl_compile_type(c, inner ? k->outer : k->inner, &other);
    if (!rc) rc = wl_compile_coded(c, e, out);
    return rc ? rc : wl_compile_translate(c, inner ? out->dict : other.dict, out);
  }
  rc = wl_compile_expr(c, e, out);
  if (!rc) rc = wl_compile_value(c, out);
  if (!rc) rc = wl_compile_type(c, inner ? k->outer : k->inner, &other);
  if (rc) return rc;
  if (aff >= 'C' && wl_has(out, WL_T_TEXT)) {
    wl_domain d = wl_domain_union(out->dom, wl_domain_any(I | F));
    rc = wl_compile_emit(c, WL_OP__NumAffinity, out, &wl_no_operand, &wl_no_operand, 0, d, out);
  } else if (aff == 'B' && (out->dom.mask & (I | F)) && (other.dom.mask & T)) {
    rc = wl_compile_text(c, out);
  }
  if (rc || form == KEY_VALUE) return rc;
  if (wl_only_null(out)) return wl_compile_constant(c, wl_null(), out);
  if (form == KEY_INT && !wl_only(out, I)) {
    wl_domain d = wl_domain_int(WL_I64_MIN, WL_I64_MAX, true);
    return wl_compile_emit(c, WL_OP__KeyI, out, &wl_no_operand, &wl_no_operand, 0, d, out);
  }
  if (form == KEY_REAL && !wl_only(out, F)) {
    wl_domain d = wl_domain_real(-__builtin_inf(), __builtin_inf(), true);
    return wl_compile_emit(c, WL_OP__KeyF, out, &wl_no_operand, &wl_no_operand, 0, d, out);
  }
  return WL_OK;
}

static bool is_exact(const wl_lookup *l) {
  return l->plan.kind != WL_KEYS_VALUES;
}

/* Whether at most one row can match and the lookup alone decides it. */
static bool probes(const wl_jstep *st, const wl_lookup *l, int n_hashed) {
  if (!l->unique || !is_exact(l) || n_hashed != st->n_keys || st->tests.n) return false;
  return l->plan.kind != WL_KEYS_NONE;
}

/* Adds a join to the program. */
static wl_status new_join(wl_compiler *c, wl_join j, const wl_operand *keys, int *out) {
  wl_program *p = c->p;
  j.keys = WL_NEW_N(c->arena, wl_i16, j.n_keys + 1);
  if (!j.keys) return wl_nomem(c->err);
  for (int k = 0; k < j.n_keys; k++) j.keys[k] = keys[k].x;
  *out = p->n_joins;
  p->joins[p->n_joins++] = j;
  return WL_OK;
}

static wl_status step_keys(wl_compiler *c, const wl_jstep *st, const key_form *forms, bool inner,
                           wl_operand *out, int *n) {
  *n = 0;
  for (int k = 0; k < st->n_keys; k++) {
    if (forms[k] == KEY_NONE) continue;
    wl_status rc = key_operand(c, &st->keys[k], forms[k], inner, &out[(*n)++]);
    if (rc) return rc;
  }
  return WL_OK;
}

/* ---- building */

/* Uses a later step's lookup to drop rows that would find nothing there. */
static wl_status filter_by_lookup(wl_compiler *c, int step) {
  const wl_jstep *t = &c->in->plan->steps[step];
  const wl_lookup *l = c->in->lookups[step];
  key_form *forms = WL_NEW_N(c->arena, key_form, t->n_keys + 1);
  wl_operand keys[WL_LOOKUP_KEYS];
  int n, j = 0;
  wl_status rc = forms ? forms_of_keys(c, t, forms, &n) : wl_nomem(c->err);
  if (rc || !l || !l->unique || !is_exact(l) || n != t->n_keys) return rc;
  rc = step_keys(c, t, forms, false, keys, &n);
  wl_join join = {.source = c->p->n_sources,
                  .step = step,
                  .how = WL_HOW_SEMI,
                  .lookup = l,
                  .n_keys = n,
                  .match = -1,
                  .keeps = t->left < 1 ? t->left : 1};
  c->p->source_names[c->p->n_sources++] = c->in->query->sources[t->source].name;
  if (!rc) rc = new_join(c, join, keys, &j);
  return rc ? rc : wl_compile_append(c, (wl_instr){WL_OP__Probe, 0, 0, 0, (wl_i16)j});
}

/* How long a search takes for each row that it drops. */
static double price_of_drop(const wl_compiler *c, int step) {
  enum { NEAR = 1 << 15, BITS = 1, SLOTS = 2, HASH = 5 };
  const wl_lookup *l = c->in->lookups[step];
  double left = c->in->plan->steps[step].left;
  int cost = !l || !l->direct ? HASH : l->bits || l->span <= NEAR ? BITS : SLOTS;
  return cost / (left < 1 ? 1.001 - left : 0.001);
}

/* The lookups that drop the most rows in the shortest time come first. */
static wl_status filter_by_lookups(wl_compiler *c, const wl_jstep *st) {
  wl_status rc = WL_OK;
  for (wl_u64 left = st->reducers; left && !rc;) {
    int best = -1;
    for (int k = 0; k < c->in->plan->n_steps; k++)
      if ((left >> k & 1) && (best < 0 || price_of_drop(c, k) < price_of_drop(c, best))) best = k;
    left &= ~(1ULL << best);
    rc = filter_by_lookup(c, best);
  }
  return rc;
}

static wl_status build(wl_compiler *c, int step, wl_key_plan *plan) {
  const wl_jstep *st = &c->in->plan->steps[step];
  key_form *forms = WL_NEW_N(c->arena, key_form, st->n_keys + 1);
  wl_operand keys[WL_LOOKUP_KEYS];
  wl_reg regs[WL_LOOKUP_KEYS];
  wl_domain domains[WL_LOOKUP_KEYS];
  int n = 0;
  memset(plan, 0, sizeof *plan);
  wl_status rc = forms ? forms_of_keys(c, st, forms, &n) : wl_nomem(c->err);
  if (rc) return rc;
  /* join 0 is the one being built */
  wl_join self = {.source = 0, .how = WL_HOW_INNER, .match = -1};
  c->p->joins[c->p->n_joins++] = self;
  c->over_table = true;
  place_source(c, st->source, 0);
  c->p->table = c->p->source_names[0];
  wl_compile_begin(c, WL_SOURCE_TABLE);
  rc = drop_dead(c, st->source);
  if (!rc) rc = wl_compile_conjuncts(c, &st->filters, true);
  if (!rc) rc = filter_by_lookups(c, st);
  if (!rc) rc = step_keys(c, st, forms, true, keys, &n);
  if (rc) return rc;
  int i = 0;
  for (int k = 0; k < st->n_keys; k++) {
    if (forms[k] == KEY_NONE) continue;
    bool is = st->keys[k].cond->kind == WL_B_IS;
    domains[i] = keys[i].dom;
    regs[i] = wl_is_const(&keys[i]) ? wl_domain_reg(keys[i].dom) : c->p->regs[keys[i].x];
    if (forms[k] == KEY_INT || forms[k] == KEY_CODE) regs[i].type = WL_R_INT;
    if (forms[k] == KEY_REAL) regs[i].type = WL_R_REAL;
    regs[i].nullable = is; /* NULL is a value of the key */
    plan->coll[i++] = st->keys[k].cond->cmp_coll;
  }
  wl_key_plan_make(plan, regs, domains, n);
  for (int k = 0; k < st->n_keys && n; k++)
    if (forms[k] == KEY_VALUE) plan->kind = WL_KEYS_VALUES;
  c->p->joins[0].keys = WL_NEW_N(c->arena, wl_i16, n + 1);
  if (!c->p->joins[0].keys) return wl_nomem(c->err);
  for (int k = 0; k < n; k++) c->p->joins[0].keys[k] = keys[k].x;
  c->p->joins[0].n_keys = n;
  rc = wl_compile_append(c, (wl_instr){WL_OP__Build, 0, 0, 0, 0});
  wl_compile_end(c, WL_SINK_LOOKUP);
  return rc;
}

wl_status wl_compile_build(wl_arena *arena, const wl_compile_in *in, int step, wl_program **out,
                           struct wl_key_plan *plan, wl_error *err) {
  wl_compile_in over = *in;
  over.n_rows = in->source_rows[in->plan->steps[step].source];
  wl_compiler c = {.arena = arena, .in = &over, .err = err};
  wl_status rc = wl_compile_open(&c);
  if (!rc) rc = build(&c, step, plan);
  wl_compile_close(&c);
  *out = c.p;
  return rc ? rc : wl_program_verify(c.p, err);
}

/* ---- the query's pipeline */

/* Updates the largest possible number of rows: each row can find at most all of the lookup's rows.
 */
static void multiply_rows(wl_compiler *c, const wl_lookup *l) {
  __int128 n = (__int128)c->max_rows * (l->n_rows > 1 ? l->n_rows : 1);
  c->max_rows = n > (1LL << 62) ? 1LL << 62 : (wl_i64)n;
}

/* Makes the IfNots from `first` on drop a candidate instead of the row. */
static void redirect_to_match(wl_compiler *c, int first, int match) {
  for (int i = first; i < match; i++)
    if (c->p->code[i].op == WL_OP__IfNot) c->p->code[i].c = (wl_i16)match;
}

/* How the program joins. Rows without a match that the other source keeps come later. */
static wl_join_how how_in_program(wl_join_how how) {
  return how == WL_HOW_RIGHT ? WL_HOW_INNER : how == WL_HOW_FULL ? WL_HOW_LEFT : how;
}

/* Marks the rows that the step has found. The rows that no row has found join in after this, so
** every other source may have no row from here on. */
static wl_status mark(wl_compiler *c, const wl_jstep *st, int join) {
  wl_join *j = &c->p->joins[join];
  j->n_rows = c->in->source_rows[st->source];
  j->live = c->in->live ? c->in->live[st->source] : -1;
  for (int s = 0; s < c->in->query->n_sources; s++)
    if (s != st->source && c->places[s] >= 0) c->maybe |= bit(s);
  c->max_rows = c->max_rows > (1LL << 62) - j->n_rows ? 1LL << 62 : c->max_rows + j->n_rows;
  wl_status rc = wl_compile_append(c, (wl_instr){WL_OP__Mark, 0, 0, 0, (wl_i16)join});
  wl_compile_forget(c);
  return rc;
}

static wl_status expand(wl_compiler *c, int step, const wl_lookup *l, const key_form *forms,
                        int *out) {
  const wl_jstep *st = &c->in->plan->steps[step];
  wl_program *p = c->p;
  const wl_query *q = c->in->query;
  wl_operand keys[WL_LOOKUP_KEYS];
  wl_jlist tests = {WL_NEW_N(c->arena, const wl_bexpr *, st->n_keys + st->tests.n + 1), 0};
  int n = 0, j = 0;
  wl_join_how how = how_in_program(st->how);
  bool maybe = how == WL_HOW_LEFT || how == WL_HOW_MARK;
  wl_status rc = tests.e ? step_keys(c, st, forms, false, keys, &n) : wl_nomem(c->err);
  wl_join join = {
      .source = p->n_sources, .step = step, .how = how, .lookup = l, .n_keys = n, .match = -1};
  if (!rc) rc = new_join(c, join, keys, &j);
  *out = j;
  if (!rc) rc = wl_compile_append(c, (wl_instr){WL_OP__Expand, 0, 0, 0, (wl_i16)j});
  if (rc) return rc;
  p->expands = true;
  wl_compile_forget(c);
  place_source(c, st->source, p->joins[j].source);
  for (int k = 0; k < st->n_keys; k++)
    if (forms[k] == KEY_NONE || !is_exact(l)) tests.e[tests.n++] = st->keys[k].cond;
  for (int k = 0; k < st->tests.n; k++) tests.e[tests.n++] = st->tests.e[k];
  int first = p->n_code;
  rc = wl_compile_conjuncts(c, &tests, false);
  if (rc) return rc;
  if (how == WL_HOW_INNER) {
    multiply_rows(c, l);
    return WL_OK;
  }
  p->joins[j].match = p->n_code;
  redirect_to_match(c, first, p->n_code);
  rc = wl_compile_append(c, (wl_instr){WL_OP__Match, 0, 0, 0, (wl_i16)j});
  wl_compile_forget(c);
  if (maybe) c->maybe |= bit(st->source);
  if (how == WL_HOW_LEFT && !q->sources[st->source].single) multiply_rows(c, l);
  if (how == WL_HOW_SEMI || how == WL_HOW_ANTI) c->places[st->source] = -1;
  return rc;
}

/* Whether the step only drops rows, and those have been dropped already: its lookup has reduced
** that of an earlier step. */
static bool is_decided(const wl_compiler *c, int step) {
  const wl_jstep *st = &c->in->plan->steps[step];
  if (st->how != WL_HOW_SEMI && !(st->how == WL_HOW_INNER && st->unread)) return false;
  for (int k = 0; k < step; k++)
    if (c->in->plan->steps[k].reducers >> step & 1) return true;
  return false;
}

/* The estimated share of rows that a step lets pass. */
static double share_kept(const wl_jplan *plan, int step) {
  double before = step ? plan->steps[step - 1].n_out : plan->n_first;
  double share = before > 0 ? plan->steps[step].n_out / before : 1;
  return share < 1 ? share : 1;
}

static wl_status join_step(wl_compiler *c, int step) {
  const wl_jstep *st = &c->in->plan->steps[step];
  const wl_lookup *l = c->in->lookups[step];
  key_form *forms = WL_NEW_N(c->arena, key_form, st->n_keys + 1);
  wl_operand keys[WL_LOOKUP_KEYS];
  int n, j = 0;
  wl_status rc = forms ? forms_of_keys(c, st, forms, &n) : wl_nomem(c->err);
  if (rc) return rc;
  if (c->in->query->sources[st->source].single && !l->unique)
    return wl_not_taken(c->err,
                        "a scalar subquery returns several rows, of which SQLite takes the first");
  if (!probes(st, l, n)) {
    rc = expand(c, step, l, forms, &j);
  } else if (!is_decided(c, step)) {
    wl_join_how how = how_in_program(st->how);
    bool unread = st->unread && st->how == WL_HOW_INNER;
    rc = step_keys(c, st, forms, false, keys, &n);
    wl_join join = {.source = c->p->n_sources,
                    .step = step,
                    .how = unread ? WL_HOW_SEMI : how,
                    .lookup = l,
                    .n_keys = n,
                    .match = -1,
                    .keeps = share_kept(c->in->plan, step)};
    if (!rc) rc = new_join(c, join, keys, &j);
    if (!rc) rc = wl_compile_append(c, (wl_instr){WL_OP__Probe, 0, 0, 0, (wl_i16)j});
    if (rc) return rc;
    place_source(c, st->source, join.source);
    if (how == WL_HOW_LEFT || how == WL_HOW_MARK) c->maybe |= bit(st->source);
    if (join.how == WL_HOW_SEMI || join.how == WL_HOW_ANTI) c->places[st->source] = -1;
  }
  if (!rc && wl_how_keeps_unmatched(st->how)) rc = mark(c, st, j);
  return rc ? rc : wl_compile_conjuncts(c, &st->after, false);
}

wl_status wl_compile_sources(wl_compiler *c) {
  const wl_jplan *plan = c->in->plan;
  const wl_query *q = c->in->query;
  place_source(c, plan ? plan->driver : 0, 0);
  c->p->table = plan ? c->p->source_names[0] : q->sources[0].table;
  if (!c->p->table) c->p->table = q->sources[0].name;
  wl_status rc = drop_dead(c, plan ? plan->driver : 0);
  if (rc) return rc;
  if (!plan) return q->where ? wl_compile_filter(c, q->where) : WL_OK;
  if (plan->filters.n && c->in->n_rows > 0) c->p->keeps = plan->n_first / (double)c->in->n_rows;
  rc = wl_compile_conjuncts(c, &plan->filters, true);
  for (int k = 0; k < plan->n_steps && !rc; k++) rc = join_step(c, k);
  return rc;
}

/* Whether the comparison of an IN is one of its lookup's keys. If so, the lookup knows whether the
** list contains NULLs. A constant left side is not a key: it filters the list instead. */
static wl_status in_is_key(wl_compiler *c, const wl_jstep *st, const wl_bexpr *in, bool *out) {
  int n;
  key_form *forms = WL_NEW_N(c->arena, key_form, st->n_keys + 1);
  wl_status rc = forms ? forms_of_keys(c, st, forms, &n) : wl_nomem(c->err);
  *out = false;
  for (int k = 0; k < st->n_keys && !rc; k++)
    *out |= st->keys[k].cond->a == in->a && forms[k] != KEY_NONE;
  return rc;
}

wl_status wl_compile_found(wl_compiler *c, const wl_bexpr *e, wl_operand *out) {
  int at = c->places[e->source];
  wl_status rc;
  if (!(c->maybe >> e->source & 1)) {
    rc = wl_compile_constant(c, wl_int(at >= 0), out);
    out->truth = true;
    return rc;
  }
  memset(out, 0, sizeof *out);
  out->truth = true;
  out->dom = wl_domain_int(0, 1, false);
  rc = wl_compile_reg(c, WL_OP__Found, (wl_reg){WL_R_TRUTH, false}, (wl_i16)at, 0, 0, &out->x);
  if (rc || e->op != WL_OP_EQ) return rc;
  /* IN without a match is NULL if the list contains NULL, or if x is NULL and the list is not
  ** empty */
  const wl_jplan *plan = c->in->plan;
  int step = 0;
  while (plan->steps[step].source != e->source) step++;
  const wl_lookup *l = c->in->lookups[step];
  wl_operand x, unknown, is_null;
  bool keyed;
  rc = in_is_key(c, &plan->steps[step], e, &keyed);
  if (rc) return rc;
  if (l->plan.kind == WL_KEYS_NONE || !keyed)
    return wl_not_taken(c->err, "IN with a constant on the left, or with values that affinity may "
                                "change row by row");
  if (l->n_rows == 0 && !l->has_null) return WL_OK;
  rc = wl_compile_expr(c, e->a, &x);
  if (!rc) rc = wl_compile_value(c, &x);
  if (!rc) rc = wl_compile_constant(c, wl_null(), &unknown);
  if (rc || (!l->has_null && !wl_nullable(&x))) return rc;
  if (e->index || plan->steps[step].tests.n)
    return wl_not_taken(c->err, "IN with NULLs, over a correlated subquery");
  unknown.truth = true;
  wl_domain d = wl_domain_int(0, 1, true);
  if (l->has_null) return wl_compile_emit(c, WL_OP__Or, out, &unknown, &wl_no_operand, 0, d, out);
  rc = wl_compile_is_null(c, &x, &is_null);
  if (!rc) rc = wl_compile_emit(c, WL_OP__And, &is_null, &unknown, &wl_no_operand, 0, d, &is_null);
  return rc ? rc : wl_compile_emit(c, WL_OP__Or, out, &is_null, &wl_no_operand, 0, d, out);
}
