/*
** The keys of GROUP BY: chooses what groups are found by, the keys themselves or numbers of rows of
** joined sources. Part of the compiler.
**
** Invariant: groups are found by row numbers (wl_program.finds) only if the states of several groups
** can be joined, and equal keys look the same.
*/
#include "program/compile_impl.h"
#include "column/lookup.h"
#include "column/statistics.h"
#include <string.h>

static bool has_minmax(const wl_query *q) {
  for (int k = 0; k < q->n_aggs; k++)
    if (q->aggs[k].fn == WL_FN_MIN || q->aggs[k].fn == WL_FN_MAX) return true;
  return false;
}

static wl_status key_operand(wl_compiler *c, int k, wl_operand *o) {
  wl_status rc = wl_compile_coded(c, c->groups[k], o);
  if (!rc) rc = wl_compile_value(c, o);
  if (!rc && wl_bexpr_coll(c->groups[k]) != WL_COLL_BINARY) rc = wl_compile_plain(c, o);
  return rc;
}

static wl_key key_of(const wl_compiler *c, int k, const wl_operand *o) {
  const wl_query *q = c->in->query;
  /* as in SQLite: if ORDER BY has as many terms, the groups use their directions */
  bool desc = q->grouped && q->n_order == q->n_groups && q->order[k].desc;
  wl_domain held = wl_operand_held(o);
  return (wl_key){.operand = o->x,
                  .coll = (wl_u8)wl_bexpr_coll(c->groups[k]),
                  .desc = desc,
                  .reg = wl_domain_reg(held),
                  .domain = held,
                  .dict = o->dict,
                  .date = o->date,
                  .column = -1,
                  .computed = -1};
}

/* Whether the states of groups can be joined without knowing the order of the rows. */
static bool joins_states(const wl_compiler *c) {
  const wl_query *q = c->in->query;
  for (int k = 0; k < q->n_aggs; k++) {
    const wl_bagg *a = &q->aggs[k];
    if (wl_agg_joins_text(a->fn)) return false;
    if (a->distinct && a->fn != WL_FN_MIN && a->fn != WL_FN_MAX) return false;
  }
  return !q->bare && wl_compile_sums_fit(c);
}

/* The estimated rows of a source that the pipeline can find, and the rows that reach its end. */
static double rows_found(const wl_compiler *c, int source, double *at_end) {
  const wl_jplan *plan = c->in->plan;
  double n = plan->n_first;
  *at_end = plan->n_first;
  for (int k = 0; k < plan->n_steps; k++) {
    const wl_lookup *l = c->in->lookups[k];
    if (plan->steps[k].source == source) n = l ? (double)l->n_rows : plan->steps[k].n_build;
    *at_end = plan->steps[k].n_out;
  }
  return n;
}

/* Rows of a source, at least 1. Some column of it is read. */
static wl_i64 rows_of_source(const wl_compiler *c, int source) {
  const wl_query *q = c->in->query;
  for (int i = 0; i < q->n_cols; i++)
    if (q->cols[i].source == source && c->in->cols[i] && c->in->cols[i]->n_rows)
      return c->in->cols[i]->n_rows;
  return 1;
}

/* Whether finding groups by rows of a source pays, if keys are texts: fewer texts are hashed, but
** rows with equal keys are sorted one by one, and there may be an array with a place for every row
** of the source. n_values: the number of different keys; 0: unknown. */
static bool rows_pay(const wl_compiler *c, int source, double n_values) {
  enum { SORT_COST = 6, PLACES = 100 }; /* sorting a row costs 6 texts, hashing one 100 places */
  double at_end, n = rows_found(c, source, &at_end);
  if ((double)rows_of_source(c, source) > at_end * PLACES) return false;
  if (n > at_end) n = at_end;
  if (n_values == 0) n_values = n / 2;
  return at_end >= SORT_COST * (n - n_values);
}

/* Whether e reads texts or values of several types that have no dictionary. */
static bool reads_plain_values(const wl_compiler *c, const wl_bexpr *e) {
  if (!e) return false;
  if (e->kind == WL_B_COLUMN) return wl_column_reg(c->in->cols[e->slot]).type > WL_R_REAL;
  for (int k = 0; k < e->n_list; k++)
    if (reads_plain_values(c, e->list[k])) return true;
  return reads_plain_values(c, e->a) || reads_plain_values(c, e->b);
}

/* Whether e asks whether a source has a row. */
static bool asks_for_row(const wl_bexpr *e) {
  if (!e || e->kind == WL_B_FOUND) return e != NULL;
  for (int k = 0; k < e->n_list; k++)
    if (asks_for_row(e->list[k])) return true;
  return asks_for_row(e->a) || asks_for_row(e->b);
}

/* The source that a key depends on, if its row number may stand for the key; else -1. Rows of the
** source must come more than once. */
static int source_of_key(const wl_compiler *c, int k) {
  const wl_bexpr *e = c->groups[k];
  wl_u64 sources = wl_bexpr_sources(e);
  if (!sources || (sources & (sources - 1))) return -1;
  int s = __builtin_ctzll(sources), place = c->places[s];
  bool repeats = place > 0 || (place == 0 && c->p->expands);
  if (!repeats || rows_of_source(c, s) >= 0xffffffffLL) return -1;
  return asks_for_row(e) ? -1 : s;
}

typedef struct key_facts {
  wl_key key;
  int source; /* see source_of_key() */
} key_facts;

/* Whether some key is a plain value, or some source has several keys. Others are found quickly. */
static bool has_dear_keys(const wl_compiler *c, key_facts *keys) {
  bool dear = false;
  wl_u64 seen = 0;
  for (int k = 0; k < c->n_groups; k++) {
    int s = keys[k].source = source_of_key(c, k);
    if (s < 0) continue;
    dear |= (seen >> s & 1) || reads_plain_values(c, c->groups[k]);
    seen |= 1ULL << s;
  }
  return dear;
}

/* Learns the types of the keys in a temporary program. *same: equal keys look the same. */
static wl_status learn_keys(wl_compiler *c, key_facts *keys, bool *same) {
  wl_compiler side;
  wl_status rc = wl_compile_side(c, 0, &side);
  *same = true;
  for (int k = 0; k < c->n_groups && !rc; k++) {
    wl_operand o;
    rc = key_operand(&side, k, &o);
    if (rc) break;
    keys[k].key = key_of(c, k, &o);
    if (wl_is_const(&o)) keys[k].source = -1;
    *same &= !wl_compile_ties(c, &o, keys[k].key.coll);
  }
  /* a function of SQLite may fail for a row */
  for (int k = 0; k < c->n_groups && !rc && wl_compile_may_stop(&side, side.p); k++)
    if (c->groups[k]->kind != WL_B_COLUMN) keys[k].source = -1;
  wl_compile_side_close(&side);
  return rc;
}

/* The number of words that the keys take; 0: they are not all numbers. by_row: sources whose row
** number stands for their keys. */
static int n_key_words(wl_compiler *c, const key_facts *keys, wl_u64 by_row) {
  wl_key_layout l = {.parts = WL_NEW_N(c->arena, wl_key_part, 2 * c->n_groups + 1)};
  wl_u64 added = 0;
  for (int k = 0; l.parts && k < c->n_groups; k++) {
    int s = keys[k].source;
    if (s >= 0 && by_row >> s & 1) {
      wl_domain rows = wl_domain_int(0, rows_of_source(c, s) - 1, true);
      if (added >> s & 1) continue;
      added |= 1ULL << s;
      if (!wl_key_layout_add(&l, k, (wl_reg){WL_R_INT, true}, &rows, 0)) return 0;
    } else if (!wl_key_layout_add(&l, k, keys[k].key.reg, &keys[k].key.domain, 0)) {
      return 0;
    }
  }
  return l.parts ? l.n_words : 0;
}

/* Whether the number of a source's row should stand for its keys. */
static bool source_pays(const wl_compiler *c, const key_facts *keys, int source) {
  int n = 0;
  bool plain = false;
  double n_values = 0;
  for (int k = 0; k < c->n_groups; k++) {
    if (keys[k].source != source) continue;
    const wl_bexpr *e = c->groups[k];
    double d = e->kind == WL_B_COLUMN ? wl_column_distinct(c->in->cols[e->slot]) : 0;
    if (d > n_values) n_values = d;
    plain |= keys[k].key.reg.type > WL_R_REAL;
    n++;
  }
  return (plain || n > 1) && rows_pay(c, source, n_values);
}

/* Whether some key is a text or of several types, and has no dictionary. */
static bool has_plain_keys(const wl_compiler *c, const key_facts *keys) {
  for (int k = 0; k < c->n_groups; k++)
    if (keys[k].key.reg.type > WL_R_REAL) return true;
  return false;
}

/* The sources whose row number stands for their keys, a bit for each. That pays for keys that are
** texts or take several words. A device is fast with words, and finishes groups that have them. */
static wl_status choose_rows(wl_compiler *c, key_facts *keys, wl_u64 *out) {
  enum { MOST_WORDS = 4 };
  bool same;
  *out = 0;
  if (!c->in->plan || !c->in->plan->n_steps || !has_dear_keys(c, keys)) return WL_OK;
  wl_status rc = learn_keys(c, keys, &same);
  if (rc || !same || !joins_states(c)) return rc;
  if (c->in->for_device && !has_plain_keys(c, keys)) return WL_OK;
  int n_words = n_key_words(c, keys, 0);
  wl_u64 by_row = 0;
  for (int s = 0; s < c->in->query->n_sources && n_words != 1; s++)
    if (source_pays(c, keys, s)) by_row |= 1ULL << s;
  int fewer = by_row ? n_key_words(c, keys, by_row) : 0;
  if (fewer && fewer <= MOST_WORDS && (!n_words || fewer < n_words)) *out = by_row;
  return WL_OK;
}

/* Compiles the program that computes the keys of a source that are expressions from its row. */
static wl_status compile_row_keys(wl_compiler *c, const key_facts *facts, int source, int by) {
  const wl_query *q = c->in->query;
  wl_compiler side;
  wl_status rc = wl_compile_side(c, c->n_groups, &side);
  wl_program *p = side.p;
  if (!rc) {
    memset(side.places, -1, sizeof side.places);
    side.places[source] = 0;
    p->n_sources = 1;
    p->source = WL_SOURCE_SORTED;
    p->may_miss = c->maybe >> source & 1;
    p->column_sources = WL_NEW_N(c->arena, wl_u8, q->n_cols + 1);
    if (!p->column_sources) rc = wl_nomem(c->err);
  }
  for (int i = 0; i < q->n_cols && !rc; i++)
    p->column_sources[i] = q->cols[i].source == source ? 0 : WL_NO_SOURCE;
  for (int k = 0; k < c->n_groups && !rc; k++) {
    wl_operand o;
    if (facts[k].source != source || c->groups[k]->kind == WL_B_COLUMN) continue;
    rc = key_operand(&side, k, &o);
    if (rc) break;
    c->p->keys[k] = key_of(c, k, &o);
    c->p->keys[k].by = by;
    c->p->keys[k].computed = p->n_results;
    c->p->keys[k].operand = WL_CONST(0);
    o.dom = wl_operand_held(&o);
    wl_compile_side_give(&side, &o);
  }
  if (!rc && p->n_results) {
    rc = wl_compile_side_end(&side);
    c->p->finds[by].row_keys = p;
  }
  wl_compile_side_close(&side);
  return rc;
}

/* Adds the number of a source's row to what groups are found by. The keys of the source are read or
** computed from the row at the end. */
static wl_status find_by_row(wl_compiler *c, const key_facts *facts, int source) {
  wl_program *p = c->p;
  int place = c->places[source], by = p->n_finds++;
  bool maybe = c->maybe >> source & 1;
  wl_key *f = &p->finds[by];
  *f = (wl_key){.reg = {WL_R_INT, maybe}, .column = place, .computed = -1};
  f->domain = wl_domain_int(0, rows_of_source(c, source) - 1, maybe);
  for (int k = 0; k < c->n_groups; k++) {
    if (facts[k].source != source || c->groups[k]->kind != WL_B_COLUMN) continue;
    p->keys[k] = facts[k].key;
    p->keys[k].operand = WL_CONST(0);
    p->keys[k].by = by;
    p->keys[k].column = c->groups[k]->slot;
  }
  wl_status rc = compile_row_keys(c, facts, source, by);
  return rc ? rc : wl_compile_reg(c, WL_OP__Row, f->reg, (wl_i16)place, 0, 0, &f->operand);
}

wl_status wl_compile_group_keys(wl_compiler *c) {
  const wl_query *q = c->in->query;
  wl_program *p = c->p;
  wl_u64 by_row, added = 0;
  if (q->bare && !c->in->rowid_order)
    return wl_not_taken(c->err, "a bare column (neither aggregated nor in GROUP BY), and SQLite "
                                "would read the rows in index order");
  key_facts *facts = WL_NEW_N(c->arena, key_facts, c->n_groups + 1);
  if (!facts) return wl_nomem(c->err);
  wl_status rc = choose_rows(c, facts, &by_row);
  for (int k = 0; k < c->n_groups && !rc; k++) {
    int coll = wl_bexpr_coll(c->groups[k]);
    wl_key *key = &p->keys[p->n_keys++];
    wl_operand o;
    if (by_row && facts[k].source >= 0 && by_row >> facts[k].source & 1) {
      if (!(added >> facts[k].source & 1)) rc = find_by_row(c, facts, facts[k].source);
      added |= 1ULL << facts[k].source;
      continue;
    }
    rc = key_operand(c, k, &o);
    if (!rc) rc = wl_compile_check_ties(c, &o.dom, coll, q->grouped ? "GROUP BY" : "DISTINCT");
    if (!rc && has_minmax(q) && wl_compile_ties(c, &o, coll))
      rc = wl_not_taken(c->err,
                        "equal group keys that look different, together with min() or max()");
    if (rc) return rc;
    *key = key_of(c, k, &o);
    if (!by_row) continue;
    key->by = p->n_finds;
    p->finds[p->n_finds++] = *key;
  }
  if (rc) return rc;
  p->grouped = true;
  p->one_group = q->aggregate && !q->grouped;
  p->by_first = c->distinct_groups;
  return wl_compile_append(c, (wl_instr){WL_OP__Group, 0, 0, (wl_i16)wl_program_n_finds(p), 0});
}
