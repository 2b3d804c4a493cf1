/*
** Joins on the simulated device, and with WL_TEST_CUDA on CUDA: programs made by hand, with
** lookups of every layout, against nested loops over the same rows. Each kind of join, that finds
** one row or several or all; keys that are NULL, out of range, real, of two columns, of a joined
** row; rows, aggregates, groups and order after them; every mode of transfer; budgets that make
** the scan stream, send what is joined to mapped memory, or the rest of a query to the CPU.
*/
#include "../rng.h"
#include "../tap.h"
#include "api/enable.h"
#include "base/mem.h"
#include "value/domain.h"
#include "exec/gpu/columns/devcol.h"
#include "exec/gpu/limits.h"
#include "column/lookup.h"
#include "exec/run.h"
#include <string.h>

/* By its own name, so that the program is linked with SQLite. */
#undef sqlite3_libversion_number
extern int sqlite3_libversion_number(void);

static const char *kind = "sim"; /* the device */

enum { MAX_COLS = 6, MAX_JOINS = 4, MAX_OUT = 24, DIM_ROWS = 150, BIG_ROWS = 400000 };

/* ---- tables */

typedef struct table {
  wl_column *cols[MAX_COLS];
  int n_cols;
  wl_i64 n_rows;
} table;

/* The fact table's columns; of a dimension: key, second key, integer, real, text. */
enum { F_A, F_B, F_R, F_V, F_ID };
enum { D_KEY, D_KEY2, D_INT, D_REAL, D_TEXT };
enum { DIM_A, DIM_B, DIM_R, DIM_EMPTY, DIM_LINK, DIM_BIG, N_DIMS };

static rng random_state = {42};

static wl_val fact_value(int col, wl_i64 row) {
  int x = rng_below(&random_state, 200);
  switch (col) {
  case F_A: return x < 10 ? wl_null() : wl_int(x - 20);
  case F_B: return x < 20 ? wl_null() : wl_int((wl_i64)x * 1000000007LL - 7);
  case F_R: return x < 10 ? wl_null() : x < 20 ? wl_real(x < 15 ? -0.0 : 0.0) : wl_real(x * 0.25);
  case F_V: return wl_int(x % 5 - 2);
  default: return wl_int(row);
  }
}

static wl_val dim_value(int dim, int col, wl_i64 row) {
  static char text[32];
  switch (col) {
  case D_KEY:
    if (row % 37 == 5 && dim != DIM_BIG) return wl_null();
    return dim == DIM_B      ? wl_int((row + 10) * 1000000007LL - 7)
           : dim == DIM_R    ? wl_real((double)row * 0.25)
           : dim == DIM_LINK ? wl_int(row - 3)
                             : wl_int(row + 3);
  case D_KEY2: return wl_int(row % 5 - 2);
  case D_INT: return row % 11 == 4 ? wl_null() : wl_int(row % 7);
  case D_REAL: return wl_real((double)row * 0.5);
  default:
    if (row % 13 == 1) return wl_null();
    snprintf(text, sizeof text, "%.*s%lld", (int)(row % 9), "abcdefghijk", row);
    return wl_text((const wl_u8 *)text, (wl_u32)strlen(text));
  }
}

static void make_table(table *t, int dim, int n_cols, wl_i64 n_rows) {
  wl_error err;
  t->n_cols = n_cols;
  t->n_rows = n_rows;
  for (int k = 0; k < n_cols; k++) {
    wl_builder *b = NULL;
    wl_status rc = wl_builder_open(&b, &err);
    if (!rc) wl_builder_plain(b);
    for (wl_i64 i = 0; i < n_rows && !rc; i++)
      rc = wl_builder_add(b, dim < 0 ? fact_value(k, i) : dim_value(dim, k, i));
    if (rc || wl_builder_finish(b, &t->cols[k], &err)) tap_bad("joins: tables", "%s", err.text);
    wl_builder_close(b);
  }
}

static void drop_table(table *t) {
  for (int k = 0; k < t->n_cols; k++) wl_column_drop(t->cols[k]);
}

static table dims[N_DIMS];

/* ---- lookups, as column/lookup.h draws them */

enum { DIRECT, HASHED };

/* Of a dimension by n_keys columns from `key` on; null: a NULL key is a key like others. */
static wl_lookup *make_lookup(const table *t, int key, int n_keys, int form, bool null) {
  wl_column *const *cols = t->cols + key;
  wl_lookup *l = wl_mem_zalloc(sizeof *l);
  wl_key_plan *plan = &l->plan;
  wl_u64 *words = wl_mem_zalloc((size_t)t->n_rows * 8 + 8);
  bool *in = wl_mem_zalloc((size_t)t->n_rows + 1);
  wl_u64 span = 1;
  atomic_init(&l->refs, 1);
  wl_reg regs[2];
  wl_domain domains[2];
  for (int k = 0; k < n_keys; k++) {
    regs[k] = (wl_reg){wl_column_reg(cols[k]).type, null && k == 0};
    domains[k] = cols[k]->domain;
  }
  wl_key_plan_make(plan, regs, domains, n_keys);
  if (n_keys && plan->kind == WL_KEYS_INT) span = plan->parts[0].span * plan->parts[0].below;
  l->direct = form == DIRECT && n_keys;
  l->unique = true;
  for (wl_i64 i = 0; i < t->n_rows; i++) {
    in[i] = true;
    for (int k = 0; k < n_keys; k++) {
      wl_val v = wl_column_value(cols[k], i);
      const wl_key_part *part = &plan->parts[k];
      words[i] = wl_key_append(part, words[i], wl_key_code_of(part, v));
      if (v.t == WL_T_NULL && !part->null) in[i] = false;
    }
    l->n_rows += in[i];
    l->has_null |= !in[i];
    for (wl_i64 j = 0; j < i && t->n_rows < BIG_ROWS; j++)
      if (in[i] && in[j] && words[i] == words[j]) l->unique = false;
  }
  if (n_keys == 0) {
    l->rows = wl_mem_alloc((size_t)t->n_rows * 4 + 4);
    for (wl_i64 i = 0; i < t->n_rows; i++) l->rows[i] = (wl_u32)i;
    wl_mem_free(words);
    wl_mem_free(in);
    return l;
  }
  l->span = l->direct ? span : 0;
  wl_u64 size = 4;
  while (size < 2 * (wl_u64)l->n_rows) size *= 2;
  l->mask = l->direct ? 0 : size - 1;
  if (l->direct) size = span + 1; /* one more word, that has no rows */
  l->rows = l->unique ? NULL : wl_mem_zalloc((size_t)l->n_rows * 4 + 4);
  l->starts = l->unique || !l->direct ? NULL : wl_mem_zalloc((size_t)(size + 1) * 4);
  l->slots = l->starts ? NULL : wl_mem_alloc((size_t)size * 4);
  l->words = l->direct ? NULL : wl_mem_zalloc((size_t)size * 8);
  l->counts = l->direct || l->unique ? NULL : wl_mem_zalloc((size_t)size * 4);
  if (l->slots) memset(l->slots, 0xff, (size_t)size * 4);
  wl_u32 n = 0; /* of rows */
  for (wl_u64 w = 0; l->starts && w <= span; w++) {
    l->starts[w] = n;
    for (wl_i64 i = 0; i < t->n_rows; i++)
      if (in[i] && words[i] == w) l->rows[n++] = (wl_u32)i;
    l->starts[w + 1] = n;
  }
  for (wl_i64 i = 0; i < t->n_rows && l->slots; i++) {
    wl_u64 at = l->direct ? words[i] : wl_key_hash(words[i]) & l->mask;
    if (!in[i]) continue;
    while (!l->direct && l->slots[at] != WL_NO_ROW && l->words[at] != words[i])
      at = (at + 1) & l->mask;
    if (l->slots[at] != WL_NO_ROW) continue; /* those of one word went in with the first */
    if (l->words) l->words[at] = words[i];
    l->slots[at] = l->unique ? (wl_u32)i : n;
    for (wl_i64 j = i; j < t->n_rows && l->rows; j++)
      if (in[j] && words[j] == words[i]) {
        l->rows[n++] = (wl_u32)j;
        l->counts[at]++;
      }
  }
  wl_mem_free(words);
  wl_mem_free(in);
  return l;
}

/* ---- a query: joins in order, and what becomes of the rows */

enum { WITH_TEST = 2 };

typedef struct side {
  int dim;
  wl_join_how how;
  int form;
  int n_keys;
  bool null; /* NULL keys match */
  int from;  /* keys are of the fact table, or the integer of joined source `from` */
  int key;   /* the fact column of the first key; the second is F_V */
  int many;  /* found by Expand …; WITH_TEST: those whose integer is greater than F_V … */
  int by;    /* … by this column of the dimension */
} side;

typedef enum after { ROWS, AGGREGATES, GROUPS, ORDER } after;

typedef struct query {
  side sides[MAX_JOINS];
  int n;
  after what;
  int of; /* source whose integer is the group or sort key */
} query;

static bool reads(const side *s) {
  return s->how != WL_HOW_SEMI && s->how != WL_HOW_ANTI;
}

/* ---- the program */

typedef struct maker {
  wl_arena arena;
  wl_program *p;
  wl_snapshot snap;
  const table *tables[1 + MAX_JOINS];
} maker;

static wl_i16 new_reg(maker *m, wl_u8 type, bool nullable) {
  m->p->regs[m->p->n_regs] = (wl_reg){type, nullable};
  return (wl_i16)m->p->n_regs++;
}
static void emit(maker *m, int op, int d, int a, int b, int c) {
  m->p->code[m->p->n_code++] = (wl_instr){(wl_u16)op, (wl_i16)d, (wl_i16)a, (wl_i16)b, (wl_i16)c};
}

/* The register of a column; null: its source may have no row. */
static wl_i16 column(maker *m, int source, int col, bool null) {
  wl_program *p = m->p;
  wl_column *c = m->tables[source]->cols[col];
  wl_reg r = wl_column_reg(c);
  r.nullable |= null;
  wl_i16 reg = new_reg(m, r.type, r.nullable);
  p->columns[p->n_columns] = (wl_i16)col;
  p->column_names[p->n_columns] = "c";
  p->column_regs[p->n_columns] = r;
  p->column_sources[p->n_columns] = (wl_u8)source;
  m->snap.cols[m->snap.n_cols++] = wl_column_hold(c);
  emit(m, WL_OP__Column, reg, p->n_columns++, 0, 0);
  return reg;
}

static void result(maker *m, wl_i16 reg, wl_domain d) {
  wl_reg r = m->p->regs[reg];
  if (r.type == WL_R_INT && !(d.mask & WL_M(WL_T_INT)))
    d = wl_domain_int(0, 0, true); /* a column without rows */
  if (r.nullable) d.mask |= WL_M(WL_T_NULL);
  m->p->results[m->p->n_results++] = (wl_result){.name = "r", .operand = reg, .domain = d};
}

static wl_domain int_domain(const maker *m, int source, int col) {
  wl_domain d = m->tables[source]->cols[col]->domain;
  return wl_domain_int(d.lo, d.hi, true);
}

static void aggregate(maker *m, int op, wl_i16 a, wl_agg_final final, wl_reg reg) {
  wl_program *p = m->p;
  emit(m, op, p->n_accs, a, 0, 0);
  p->accs[p->n_accs] = (wl_acc){.op = (wl_u16)op, .set = -1};
  p->aggs[p->n_aggs++] = (wl_agg){.final = final, .acc = p->n_accs++, .reg = reg};
}

static void make_program(maker *m, const table *fact, const query *q, wl_lookup *const *lookups) {
  memset(m, 0, sizeof *m);
  wl_arena_init(&m->arena);
  wl_program *p = m->p = WL_NEW_N(&m->arena, wl_program, 1);
  p->code = WL_NEW_N(&m->arena, wl_instr, 200);
  p->regs = WL_NEW_N(&m->arena, wl_reg, 200);
  p->consts = WL_NEW_N(&m->arena, wl_val, 4);
  p->columns = WL_NEW_N(&m->arena, wl_i16, 60);
  p->column_names = WL_NEW_N(&m->arena, const char *, 60);
  p->column_regs = WL_NEW_N(&m->arena, wl_reg, 60);
  p->column_sources = WL_NEW_N(&m->arena, wl_u8, 60);
  p->joins = WL_NEW_N(&m->arena, wl_join, MAX_JOINS);
  p->results = WL_NEW_N(&m->arena, wl_result, MAX_OUT);
  p->accs = WL_NEW_N(&m->arena, wl_acc, MAX_OUT);
  p->aggs = WL_NEW_N(&m->arena, wl_agg, MAX_OUT);
  p->keys = WL_NEW_N(&m->arena, wl_key, 2);
  p->order = WL_NEW_N(&m->arena, wl_order, 2);
  p->source_names = WL_NEW_N(&m->arena, const char *, MAX_JOINS + 1);
  for (int k = 0; k <= MAX_JOINS; k++) p->source_names[k] = "s";
  p->table = "fact";
  p->limit = -1;
  p->host_op = -1;
  p->n_sources = 1 + q->n;
  p->n_joins = q->n;
  m->snap.n_rows = fact->n_rows;
  m->snap.cols = wl_mem_zalloc(60 * sizeof *m->snap.cols);
  m->tables[0] = fact;
  for (int k = 0; k < q->n; k++) m->tables[1 + k] = &dims[q->sides[k].dim];
  for (int k = 0; k < q->n; k++) {
    const side *s = &q->sides[k];
    wl_join *j = &p->joins[k];
    *j = (wl_join){
        .source = k + 1, .how = s->how, .lookup = lookups[k], .n_keys = s->n_keys, .match = -1};
    j->keys = WL_NEW_N(&m->arena, wl_i16, 2);
    for (int i = 0; i < s->n_keys; i++)
      j->keys[i] = column(m, s->from, s->from ? D_INT : i ? F_V : s->key, s->from > 0);
    emit(m, s->many ? WL_OP__Expand : WL_OP__Probe, 0, 0, 0, k);
    p->expands |= s->many > 0;
    if (s->many == WITH_TEST) {
      wl_i16 a = column(m, k + 1, D_INT, false), b = column(m, 0, F_V, false);
      wl_i16 t = new_reg(m, WL_R_TRUTH, false);
      emit(m, WL_OP__GtI, t, a, b, 0);
      emit(m, WL_OP__IfNot, 0, t, 0, s->how == WL_HOW_INNER ? -1 : p->n_code + 1);
    }
    if (s->many && s->how != WL_HOW_INNER) {
      j->match = p->n_code;
      emit(m, WL_OP__Match, 0, 0, 0, k);
    }
  }
  wl_domain all = wl_domain_int(0, 1 << 30, false);
  wl_i16 v, id, key = 0;
  if (q->of) key = column(m, q->of, D_INT, true);
  v = column(m, 0, F_V, false);
  id = column(m, 0, F_ID, false);
  switch (q->what) {
  case ROWS:
    result(m, id, all);
    v = new_reg(m, WL_R_INT, true);
    emit(m, WL_OP__Row, v, 0, 0, 0);
    result(m, v, all);
    for (int k = 0; k < q->n; k++) {
      const side *s = &q->sides[k];
      if (!reads(s)) continue;
      bool null = s->how != WL_HOW_INNER;
      result(m, column(m, k + 1, D_INT, null), int_domain(m, k + 1, D_INT));
      result(m, column(m, k + 1, D_REAL, null), wl_domain_real(-1e9, 1e9, false));
      wl_domain texts = {.mask = WL_M(WL_T_TEXT), .lo = 1, .flo = 1};
      result(m, column(m, k + 1, D_TEXT, null), texts);
      wl_i16 t = new_reg(m, WL_R_TRUTH, false), i = new_reg(m, WL_R_INT, true);
      emit(m, WL_OP__Found, t, k + 1, 0, 0);
      emit(m, WL_OP__TruthToInt, i, t, 0, 0);
      result(m, i, wl_domain_int(0, 1, true));
      i = new_reg(m, WL_R_INT, true);
      emit(m, WL_OP__Row, i, k + 1, 0, 0);
      result(m, i, wl_domain_int(0, 1 << 30, true));
    }
    break;
  case ORDER:
    result(m, id, all);
    result(m, key, int_domain(m, q->of, D_INT));
    p->order[p->n_order++] = (wl_order){.result = 1, .desc = true, .nulls_last = true};
    p->sink = WL_SINK_SORT;
    break;
  default:
    p->grouped = true;
    p->one_group = q->what != GROUPS;
    if (p->one_group) emit(m, WL_OP__Group, 0, 0, 0, 0);
    if (q->what == GROUPS) {
      p->n_keys = 1;
      p->keys[0] = (wl_key){.operand = key, .reg = p->regs[key]};
      p->keys[0].domain = int_domain(m, q->of, D_INT);
      emit(m, WL_OP__Group, 0, 0, 1, 0);
    }
    aggregate(m, WL_OP__AggRows, 0, WL_AGG_COUNT, (wl_reg){WL_R_INT, false});
    aggregate(m, WL_OP__AggSumI, v, WL_AGG_SUM, (wl_reg){WL_R_INT, true});
    aggregate(m, WL_OP__AggMaxI, id, WL_AGG_MINMAX, (wl_reg){WL_R_INT, true});
    break;
  }
  p->n_given = p->n_results;
  if (q->what == ROWS || q->what == ORDER) emit(m, WL_OP__Result, 0, 0, p->n_results, 0);
  for (int k = 0; k < p->n_code; k++)
    if (p->code[k].op == WL_OP__IfNot && p->code[k].c < 0) p->code[k].c = (wl_i16)p->n_code;
  if (q->what == AGGREGATES || q->what == GROUPS) {
    wl_program *g = m->p = p->next = WL_NEW_N(&m->arena, wl_program, 1);
    g->code = WL_NEW_N(&m->arena, wl_instr, 60);
    g->regs = WL_NEW_N(&m->arena, wl_reg, 60);
    g->column_regs = WL_NEW_N(&m->arena, wl_reg, 60);
    g->results = WL_NEW_N(&m->arena, wl_result, MAX_OUT);
    g->source = WL_SOURCE_GROUPS;
    g->limit = g->host_op = -1;
    p->sink = WL_SINK_GROUPS;
    for (int k = 0; k < p->n_keys + p->n_aggs; k++) {
      wl_reg r = k < p->n_keys ? p->keys[k].reg : p->aggs[k - p->n_keys].reg;
      wl_i16 reg = new_reg(m, r.type, r.nullable);
      g->column_regs[g->n_columns++] = r;
      emit(m, WL_OP__Column, reg, k, 0, 0);
      result(m, reg, all);
    }
    g->n_given = g->n_results;
    emit(m, WL_OP__Result, 0, 0, g->n_results, 0);
    m->p = p;
  }
}

/* ---- the oracle */

typedef struct rows {
  wl_val *v; /* [n][n_cols] */
  wl_i64 n, size;
  int n_cols;
} rows;

static bool equal(wl_val a, wl_val b, bool null) {
  if (a.t == WL_T_NULL || b.t == WL_T_NULL) return null && a.t == b.t;
  return wl_cmp_val(a, b, 0) == 0;
}

/* The first row of a side, from `from` on, that matches, or -1. */
static wl_i64 match(const table *fact, wl_i64 row, const query *q, int k, const wl_i64 *at,
                    wl_i64 from) {
  const side *s = &q->sides[k];
  const table *t = &dims[s->dim];
  if (s->dim == DIM_BIG) { /* its keys are known */
    wl_val key = wl_column_value(fact->cols[s->key], row);
    if (key.t == WL_T_NULL || (wl_i64)key.v < from + 3) return -1;
    from = (wl_i64)key.v - 3;
  }
  for (wl_i64 i = from; i < t->n_rows; i++) {
    bool all = true;
    for (int c = 0; c < s->n_keys && all; c++) {
      wl_val key = s->from == 0 ? wl_column_value(fact->cols[c ? F_V : s->key], row)
                   : at[s->from] < 0
                       ? wl_null()
                       : wl_column_value(dims[q->sides[s->from - 1].dim].cols[D_INT], at[s->from]);
      all = equal(key, wl_column_value(t->cols[s->by + c], i), s->null && c == 0);
    }
    if (all && s->many == WITH_TEST) {
      wl_val v = wl_column_value(t->cols[D_INT], i);
      all = v.t && (wl_i64)v.v > (wl_i64)wl_column_value(fact->cols[F_V], row).v;
    }
    if (all) return i;
  }
  return -1;
}

static wl_val joined(const query *q, const wl_i64 *at, int source, int col) {
  return at[source] < 0 ? wl_null()
                        : wl_column_value(dims[q->sides[source - 1].dim].cols[col], at[source]);
}

static int by_key_down(const void *a, const void *b) {
  const wl_val *x = a, *y = b;
  int c = wl_cmp_val(y[1], x[1], 0);
  return c ? c : wl_cmp_val(x[0], y[0], 0);
}
static int by_key_up(const void *a, const void *b) {
  return wl_cmp_val(*(const wl_val *)a, *(const wl_val *)b, 0);
}

static void add_to_group(rows *out, int n_keys, wl_val key, wl_val v, wl_val id) {
  wl_i64 g = 0;
  while (g < out->n && n_keys && !equal(out->v[g * out->n_cols], key, true)) g++;
  wl_val *to = out->v + g * out->n_cols;
  if (g == out->n) {
    out->n++;
    if (n_keys) to[0] = key;
    to[n_keys] = wl_int(0);
    to[n_keys + 1] = to[n_keys + 2] = wl_null();
  }
  to[n_keys].v++;
  to[n_keys + 1] = to[n_keys + 1].t ? wl_int((wl_i64)(to[n_keys + 1].v + v.v)) : v;
  to[n_keys + 2] = id; /* they rise */
}

/* A row that all joins let through. */
static void give(const table *fact, wl_i64 row, const query *q, const wl_i64 *at, rows *out) {
  wl_val id = wl_int(row), v = wl_column_value(fact->cols[F_V], row);
  wl_val key = q->of ? joined(q, at, q->of, D_INT) : wl_null();
  if (q->what == AGGREGATES || q->what == GROUPS) {
    add_to_group(out, q->what == GROUPS, key, v, id);
    return;
  }
  size_t bytes = (size_t)out->n_cols * sizeof *out->v;
  if (out->n + 1 >= out->size) {
    out->v = wl_mem_realloc(out->v, (size_t)out->size * bytes, (size_t)out->size * 2 * bytes);
    out->size *= 2;
  }
  wl_val *to = out->v + out->n++ * out->n_cols;
  *to++ = id;
  if (q->what == ROWS) *to++ = wl_int(row);
  if (q->what == ORDER) *to++ = key;
  for (int k = 0; k < q->n && q->what == ROWS; k++) {
    if (!reads(&q->sides[k])) continue;
    *to++ = joined(q, at, k + 1, D_INT);
    *to++ = joined(q, at, k + 1, D_REAL);
    *to++ = joined(q, at, k + 1, D_TEXT);
    *to++ = wl_int(at[k + 1] >= 0);
    *to++ = at[k + 1] >= 0 ? wl_int(at[k + 1]) : wl_null();
  }
}

/* Join k and those behind it, for a row. */
static void nest(const table *fact, wl_i64 row, const query *q, int k, wl_i64 *at, rows *out) {
  if (k >= q->n || k == MAX_JOINS) {
    give(fact, row, q, at, out);
    return;
  }
  wl_join_how how = q->sides[k].how;
  wl_i64 found = at[k + 1] = match(fact, row, q, k, at, 0);
  if (how == WL_HOW_ANTI ? found >= 0 : found < 0 && (how == WL_HOW_INNER || how == WL_HOW_SEMI))
    return;
  do {
    nest(fact, row, q, k + 1, at, out);
    if (found < 0 || (how != WL_HOW_INNER && how != WL_HOW_LEFT) || !q->sides[k].many) break;
    found = at[k + 1] = match(fact, row, q, k, at, found + 1);
  } while (found >= 0);
}

static void expect(const table *fact, const query *q, rows *out) {
  memset(out, 0, sizeof *out);
  out->n_cols = q->what == ROWS ? 2 + 5 * q->n : q->what == ORDER ? 2 : 3 + (q->what == GROUPS);
  out->size = 1000;
  out->v = wl_mem_zalloc((size_t)out->size * (size_t)out->n_cols * sizeof *out->v);
  if (q->what == AGGREGATES) { /* one row even of none */
    out->n = 1;
    out->v[0] = wl_int(0);
  }
  for (wl_i64 row = 0; row < fact->n_rows; row++) {
    wl_i64 at[1 + MAX_JOINS];
    nest(fact, row, q, 0, at, out);
  }
  size_t bytes = (size_t)out->n_cols * sizeof *out->v;
  if (q->what == ORDER) qsort(out->v, (size_t)out->n, bytes, by_key_down);
  if (q->what == GROUPS) qsort(out->v, (size_t)out->n, bytes, by_key_up);
}

/* ---- running and comparing */

typedef struct setting {
  const char *name;
  wl_transfer_mode mode;
  wl_i64 budget, mapped;
  const char *way; /* what the run must say of its transfer, or in its note */
  bool far;        /* some of it must be in mapped memory */
  bool cpu;        /* there is no device */
  bool detour;     /* the device must give up, and the CPU do it … */
  int after;       /* … half-way, if not 0: it loses its memory after so many waves */
} setting;

/* Compares the run's rows with those expected; says where it differs. */
static bool compare(wl_run *r, const rows *want, int n_given, char *why, size_t n_why) {
  wl_i64 at = 0;
  wl_error err = {0};
  for (;;) {
    wl_batch *b = NULL;
    if (wl_run_next(r, &b, &err)) {
      snprintf(why, n_why, "error: %.200s", err.text);
      return false;
    }
    if (!b) break;
    bool same = true;
    for (wl_i64 i = b->skip; i < b->n_rows && same; i++, at++)
      for (int k = 0; k < n_given && same; k++) {
        wl_val v = wl_batch_value(b, wl_run_regs(r), k, i);
        same = at < want->n;
        if (!same) break;
        wl_val w = want->v[at * want->n_cols + k];
        same = v.t == w.t && wl_cmp_val(v, w, 0) == 0;
        if (!same)
          snprintf(why, n_why, "row %lld, column %d: type %d value %lld, not type %d value %lld",
                   at, k, v.t, (wl_i64)v.v, w.t, (wl_i64)w.v);
      }
    if (!same && at >= want->n) snprintf(why, n_why, "more than %lld rows", want->n);
    wl_batch_give(b);
    if (!same) return false;
  }
  if (at != want->n) snprintf(why, n_why, "%lld rows, not %lld", at, want->n);
  return at == want->n;
}

/* Takes the device's memory away when the run asks for the n-th time whether to go on. */
typedef struct thief {
  wl_device *d;
  int at, calls;
  void *memory;
  size_t n;
} thief;

static wl_status steal(void *arg, wl_error *err) {
  thief *t = arg;
  if (++t->calls != t->at) return WL_OK;
  wl_device_lock(t->d);
  t->d->budget = (wl_i64)1 << 40;
  t->n = (size_t)64 << 20;
  wl_status rc = wl_dev_alloc(t->d, t->n, &t->memory, err);
  wl_device_unlock(t->d);
  return rc;
}

static void give_back(thief *t) {
  wl_device_lock(t->d);
  wl_dev_free(t->d, t->memory, t->n);
  wl_device_unlock(t->d);
}

static void check_run(const char *name, const table *fact, const query *q,
                      wl_lookup *const *lookups, const rows *want, const setting *s) {
  char label[200], why[300] = "";
  wl_error err = {0};
  wl_run_config config = {.threads = 2, .max_text = 1 << 30};
  maker m;
  wl_run *r = NULL;
  config.device = wl_device_get(kind, &err);
  wl_i64 mapped = config.device->mapped;
  config.device_budget = s->budget;
  config.mapped_budget = s->mapped;
  config.transfer = (wl_transfer){.mode = s->mode, .stream_blocks = 3, .pinned = 1};
  snprintf(label, sizeof label, "joins [%s]: %s, %s, %lld rows", kind, name, s->name, fact->n_rows);
  make_program(&m, fact, q, lookups);
  int n_given = wl_program_last(m.p)->n_given;
  bool fits = wl_gpu_fits(m.p, config.device, &err) == WL_OK;
  thief t = {.d = config.device, .at = s->after};
  if (s->cpu) config.device = NULL;
  if (s->after) {
    config.check = steal;
    config.check_arg = &t;
  }
  wl_status rc = wl_run_open(&config, &m.arena, m.p, &m.snap, &r, &err);
  if (rc || !fits) {
    tap_bad(label, "%s", err.text);
  } else if (!compare(r, want, n_given, why, sizeof why)) {
    tap_bad(label, "%s; detour: %s", why, wl_run_detour(r) ? wl_run_detour(r) : "none");
  } else if ((wl_run_detour(r) != NULL) != s->detour) {
    tap_bad(label, "on the device or not: %s", wl_run_detour(r) ? wl_run_detour(r) : "on it");
  } else if (s->way && fact->n_rows && !strstr(wl_run_transfer(r), s->way) &&
             !(wl_run_note(r) && strstr(wl_run_note(r), s->way))) {
    tap_bad(label, "not %s: %s, %s", s->way, wl_run_transfer(r),
            wl_run_note(r) ? wl_run_note(r) : "");
  } else if (s->far && config.device && config.device->mapped <= mapped) {
    tap_bad(label, "no more than %lld bytes are mapped", mapped);
  } else {
    tap_ok(label);
  }
  wl_run_close(r);
  give_back(&t);
}

static const setting settings[] = {
    {"auto", WL_TRANSFER_AUTO, 0, 0, "cached", false, false, false, 0},
    {"serial", WL_TRANSFER_SERIAL, 0, 0, "serial", false, false, false, 0},
    {"stream", WL_TRANSFER_STREAM, 0, 0, "stream", false, false, false, 0},
    {"mapped", WL_TRANSFER_MAPPED, 0, 1 << 30, "mapped", false, false, false, 0},
    {"cached", WL_TRANSFER_CACHED, 0, 0, "cached", false, false, false, 0},
};

static void check_query(const char *name, const table *fact, const query *q, const setting *s,
                        int n_settings) {
  wl_lookup *lookups[MAX_JOINS] = {0};
  rows want;
  for (int k = 0; k < q->n; k++)
    lookups[k] = make_lookup(&dims[q->sides[k].dim], q->sides[k].by, q->sides[k].n_keys,
                             q->sides[k].form, q->sides[k].null);
  expect(fact, q, &want);
  for (int k = 0; k < n_settings; k++) check_run(name, fact, q, lookups, &want, &s[k]);
  wl_mem_free(want.v);
  for (int k = 0; k < q->n; k++) wl_lookup_drop(lookups[k]);
}

static const char *const how_names[] = {"inner", "left", "semi", "anti", "mark"};

/* Every two kinds of join, direct and hashed lookups by turns. */
static void test_kinds(const table *fact) {
  char name[100];
  for (int a = 0; a < 5; a++)
    for (int b = 0; b < 5; b++) {
      query q = {.n = 2, .what = ROWS};
      q.sides[0] = (side){DIM_A, (wl_join_how)a, (a + b) % 2, 1, false, 0, F_A, false, 0};
      q.sides[1] = (side){DIM_B, (wl_join_how)b, HASHED, 1, false, 0, F_B, false, 0};
      snprintf(name, sizeof name, "%s %s, then %s", (a + b) % 2 ? "hashed" : "direct", how_names[a],
               how_names[b]);
      check_query(name, fact, &q, settings, 1);
    }
}

static const struct {
  const char *name;
  query q;
} list[] = {
    {"real keys", {{{DIM_R, WL_HOW_LEFT, HASHED, 1, false, 0, F_R, false, 0}}, 1, ROWS, 0}},
    {"real keys, inner", {{{DIM_R, WL_HOW_INNER, HASHED, 1, false, 0, F_R, false, 0}}, 1, ROWS, 0}},
    {"two keys", {{{DIM_A, WL_HOW_LEFT, DIRECT, 2, false, 0, F_A, false, 0}}, 1, ROWS, 0}},
    {"two keys, hashed", {{{DIM_A, WL_HOW_INNER, HASHED, 2, false, 0, F_A, false, 0}}, 1, ROWS, 0}},
    {"NULL is a key, some rows several",
     {{{DIM_A, WL_HOW_MARK, DIRECT, 1, true, 0, F_A, false, 0}}, 1, ROWS, 0}},
    {"NULL is a key, hashed",
     {{{DIM_A, WL_HOW_MARK, HASHED, 1, true, 0, F_A, false, 0}}, 1, ROWS, 0}},
    {"NULL is a key of two, anti",
     {{{DIM_A, WL_HOW_ANTI, HASHED, 2, true, 0, F_A, false, 0}}, 1, ROWS, 0}},
    {"NULL is a key, semi",
     {{{DIM_A, WL_HOW_SEMI, DIRECT, 1, true, 0, F_A, false, 0}}, 1, ROWS, 0}},
    {"nothing to join",
     {{{DIM_EMPTY, WL_HOW_LEFT, HASHED, 1, false, 0, F_A, false, 0}}, 1, ROWS, 0}},
    {"nothing to join, anti",
     {{{DIM_EMPTY, WL_HOW_ANTI, HASHED, 1, false, 0, F_A, false, 0}}, 1, ROWS, 0}},
    {"nothing to join, inner",
     {{{DIM_EMPTY, WL_HOW_INNER, HASHED, 1, false, 0, F_A, false, 0}}, 1, ROWS, 0}},
    {"a key of a joined row",
     {{{DIM_A, WL_HOW_LEFT, DIRECT, 1, false, 0, F_A, false, 0},
       {DIM_LINK, WL_HOW_LEFT, DIRECT, 1, false, 1, 0, false, 0}},
      2,
      ROWS,
      0}},
    {"a chain of inner joins",
     {{{DIM_A, WL_HOW_INNER, DIRECT, 1, false, 0, F_A, false, 0},
       {DIM_LINK, WL_HOW_INNER, HASHED, 1, false, 1, 0, false, 0},
       {DIM_LINK, WL_HOW_LEFT, DIRECT, 1, false, 2, 0, false, 0},
       {DIM_B, WL_HOW_SEMI, HASHED, 1, false, 0, F_B, false, 0}},
      4,
      ROWS,
      0}},
    {"aggregates",
     {{{DIM_A, WL_HOW_INNER, DIRECT, 1, false, 0, F_A, false, 0},
       {DIM_B, WL_HOW_LEFT, HASHED, 1, false, 0, F_B, false, 0}},
      2,
      AGGREGATES,
      2}},
    {"aggregates of nothing",
     {{{DIM_EMPTY, WL_HOW_SEMI, HASHED, 1, false, 0, F_A, false, 0}}, 1, AGGREGATES, 0}},
    {"groups of a joined column",
     {{{DIM_A, WL_HOW_INNER, DIRECT, 1, false, 0, F_A, false, 0},
       {DIM_B, WL_HOW_INNER, HASHED, 1, false, 0, F_B, false, 0}},
      2,
      GROUPS,
      2}},
    {"groups of a column that may be missing",
     {{{DIM_A, WL_HOW_LEFT, HASHED, 1, false, 0, F_A, false, 0}}, 1, GROUPS, 1}},
    {"order of a joined column",
     {{{DIM_A, WL_HOW_LEFT, DIRECT, 1, false, 0, F_A, false, 0},
       {DIM_B, WL_HOW_ANTI, HASHED, 1, false, 0, F_B, false, 0}},
      2,
      ORDER,
      1}},
};

/* Joins that find several rows; those without keys are over few. */
#define MANY(dim, how, form)                                                                       \
  { dim, how, form, 1, false, 0, F_V, true, D_INT }
#define TESTED(dim, how, form, by)                                                                 \
  { dim, how, form, 1, false, 0, F_V, WITH_TEST, by }
#define ALL_TESTED(dim, how)                                                                       \
  { dim, how, HASHED, 0, false, 0, 0, WITH_TEST, 0 }
#define ALL(dim, how)                                                                              \
  { dim, how, HASHED, 0, false, 0, 0, true, 0 }
static const struct {
  const char *name;
  query q;
  bool waves; /* it surely takes several */
} several[] = {
    {"several rows", {{MANY(DIM_A, WL_HOW_INNER, DIRECT)}, 1, ROWS, 0}, true},
    {"several rows, hashed", {{MANY(DIM_B, WL_HOW_INNER, HASHED)}, 1, ROWS, 0}, true},
    {"several rows or none", {{MANY(DIM_A, WL_HOW_LEFT, HASHED)}, 1, ROWS, 0}, true},
    {"several rows, semi", {{MANY(DIM_A, WL_HOW_SEMI, DIRECT)}, 1, ROWS, 0}, false},
    {"several rows, anti", {{MANY(DIM_A, WL_HOW_ANTI, HASHED)}, 1, ROWS, 0}, false},
    {"several rows, the first", {{MANY(DIM_A, WL_HOW_MARK, DIRECT)}, 1, ROWS, 0}, false},
    {"one row, expanded",
     {{{DIM_A, WL_HOW_INNER, DIRECT, 1, false, 0, F_A, true, D_KEY},
       {DIM_B, WL_HOW_LEFT, HASHED, 1, false, 0, F_B, true, D_KEY}},
      2,
      ROWS,
      0},
     false},
    {"all rows", {{ALL(DIM_LINK, WL_HOW_INNER)}, 1, ROWS, 0}, true},
    {"all rows of nothing", {{ALL(DIM_EMPTY, WL_HOW_INNER)}, 1, ROWS, 0}, false},
    {"all rows of nothing, left", {{ALL(DIM_EMPTY, WL_HOW_LEFT)}, 1, ROWS, 0}, false},
    {"one of all rows", {{ALL(DIM_LINK, WL_HOW_SEMI)}, 1, AGGREGATES, 0}, false},
    {"a probe before and behind",
     {{{DIM_A, WL_HOW_LEFT, DIRECT, 1, false, 0, F_A, false, 0},
       MANY(DIM_A, WL_HOW_INNER, DIRECT),
       {DIM_LINK, WL_HOW_LEFT, DIRECT, 1, false, 2, 0, false, 0},
       {DIM_B, WL_HOW_SEMI, HASHED, 1, false, 0, F_B, false, 0}},
      4,
      ROWS,
      0},
     true},
    {"several rows of several, aggregates",
     {{MANY(DIM_A, WL_HOW_INNER, DIRECT), ALL(DIM_LINK, WL_HOW_INNER)}, 2, AGGREGATES, 0},
     true},
    {"several rows of several, groups",
     {{MANY(DIM_A, WL_HOW_LEFT, DIRECT), ALL(DIM_LINK, WL_HOW_INNER)}, 2, GROUPS, 2},
     true},
    {"groups of the first", {{MANY(DIM_A, WL_HOW_LEFT, DIRECT)}, 1, GROUPS, 1}, true},
    {"several rows by a joined key",
     {{{DIM_A, WL_HOW_INNER, HASHED, 1, false, 0, F_A, false, 0},
       {DIM_B, WL_HOW_LEFT, DIRECT, 1, false, 1, 0, true, D_INT}},
      2,
      AGGREGATES,
      2},
     false},
    {"tested", {{TESTED(DIM_A, WL_HOW_INNER, DIRECT, D_INT)}, 1, ROWS, 0}, true},
    {"tested or none", {{TESTED(DIM_A, WL_HOW_LEFT, HASHED, D_INT)}, 1, ROWS, 0}, true},
    {"tested, semi", {{TESTED(DIM_A, WL_HOW_SEMI, DIRECT, D_KEY2)}, 1, ROWS, 0}, false},
    {"tested, anti", {{TESTED(DIM_B, WL_HOW_ANTI, HASHED, D_KEY2)}, 1, ROWS, 0}, false},
    {"tested, the first", {{TESTED(DIM_A, WL_HOW_MARK, DIRECT, D_KEY2)}, 1, ROWS, 0}, false},
    {"one row, tested",
     {{{DIM_A, WL_HOW_LEFT, DIRECT, 1, false, 0, F_A, WITH_TEST, D_KEY},
       {DIM_B, WL_HOW_MARK, HASHED, 1, false, 0, F_B, WITH_TEST, D_KEY}},
      2,
      ROWS,
      0},
     false},
    {"all rows tested", {{ALL_TESTED(DIM_LINK, WL_HOW_LEFT)}, 1, ROWS, 0}, true},
    {"all rows tested, anti", {{ALL_TESTED(DIM_A, WL_HOW_ANTI)}, 1, AGGREGATES, 0}, false},
    {"all rows of nothing tested",
     {{ALL_TESTED(DIM_EMPTY, WL_HOW_LEFT), ALL_TESTED(DIM_EMPTY, WL_HOW_ANTI)}, 2, ROWS, 0},
     false},
    {"several tests, groups",
     {{TESTED(DIM_A, WL_HOW_LEFT, DIRECT, D_KEY2), TESTED(DIM_B, WL_HOW_SEMI, HASHED, D_KEY2),
       ALL_TESTED(DIM_LINK, WL_HOW_MARK)},
      3,
      GROUPS,
      1},
     true},
    {"a test of what a test found",
     {{TESTED(DIM_A, WL_HOW_LEFT, DIRECT, D_INT),
       {DIM_B, WL_HOW_LEFT, DIRECT, 1, false, 1, 0, WITH_TEST, D_INT},
       {DIM_LINK, WL_HOW_ANTI, HASHED, 1, false, 2, 0, WITH_TEST, D_INT}},
      3,
      AGGREGATES,
      2},
     false},
    {"order of several",
     {{{DIM_A, WL_HOW_INNER, DIRECT, 1, false, 0, F_A, true, D_KEY}}, 1, ORDER, 1},
     false},
};
static const setting cpu_and_device[] = {
    {"cpu", WL_TRANSFER_AUTO, 0, 0, NULL, false, true, false, 0},
    {"device", WL_TRANSFER_AUTO, 0, 0, NULL, false, false, false, 0},
    {"little memory", WL_TRANSFER_AUTO, 12 << 20, 4 << 20, NULL, false, false, false, 0},
};
static const setting too_little[] = {
    {"too little memory", WL_TRANSFER_AUTO, 48 << 10, 0, NULL, false, false, true, 0},
};

static const setting half_way[] = {
    {"memory lost after a wave", WL_TRANSFER_AUTO, 12 << 20, 0, NULL, false, false, true, 2},
    {"memory lost after two waves", WL_TRANSFER_AUTO, 12 << 20, 0, NULL, false, false, true, 3},
};

static void test_several(wl_i64 n_rows) {
  table fact;
  make_table(&fact, -1, 5, n_rows);
  for (size_t k = 0; k < sizeof several / sizeof *several; k++) {
    check_query(several[k].name, &fact, &several[k].q, cpu_and_device, 3);
    if (n_rows > 1000) check_query(several[k].name, &fact, &several[k].q, too_little, 1);
    if (n_rows > 60000 && several[k].waves && strcmp(kind, "sim") == 0) /* a GPU is too fast */
      check_query(several[k].name, &fact, &several[k].q, half_way, 2);
  }
  drop_table(&fact);
}

/* Budgets under which the scan streams: rows need more than what is gathered. */
static const setting tight[] = {
    {"streamed under a budget", WL_TRANSFER_STREAM, 24 << 20, 0, "stream", false, false, false, 0},
    {"streamed under a budget", WL_TRANSFER_STREAM, 3 << 20, 0, "stream", false, false, false, 0},
};
/* A lookup that is more than the half of the device's memory is mapped, if rows leave at once. */
static const setting far[] = {
    {"lookup mapped", WL_TRANSFER_AUTO, 2400 << 10, 16 << 20, NULL, true, false, false, 0},
    {"lookup mapped, scan mapped", WL_TRANSFER_MAPPED, 2400 << 10, 16 << 20, "mapped", false, false,
     false, 0},
    {"lookup on the device", WL_TRANSFER_AUTO, 8 << 20, 8 << 20, NULL, false, false, false, 0},
};
/* For groups it is divided. */
static const setting divided[] = {
    {"lookup in parts", WL_TRANSFER_AUTO, 2400 << 10, 0, "a join in 4 passes", false, false, false,
     0},
    {"lookup in more parts", WL_TRANSFER_STREAM, 1000 << 10, 0, "a join in 8 passes", false, false,
     false, 0},
    {"lookup in parts, then no memory", WL_TRANSFER_AUTO, 1000 << 10, 0, NULL, false, false, true,
     5},
    {"lookup mapped, scan mapped", WL_TRANSFER_MAPPED, 2400 << 10, 8 << 20, "mapped", false, false,
     false, 0},
    {"lookup on the device", WL_TRANSFER_AUTO, 8 << 20, 8 << 20, NULL, false, false, false, 0},
};
static const query big[] = {
    {{{DIM_BIG, WL_HOW_INNER, DIRECT, 1, false, 0, F_A, false, 0}}, 1, ROWS, 1},
    {{{DIM_BIG, WL_HOW_INNER, DIRECT, 1, false, 0, F_A, false, 0}}, 1, GROUPS, 1},
    {{{DIM_BIG, WL_HOW_LEFT, DIRECT, 1, false, 0, F_A, false, 0},
      {DIM_B, WL_HOW_SEMI, HASHED, 1, false, 0, F_B, false, 0}},
     2,
     AGGREGATES,
     1},
};

/* What is joined is sent once, as long as its lookup and columns live. */
static void test_kept(const table *fact) {
  wl_error err = {0};
  wl_device *d = wl_device_get(kind, &err);
  wl_lookup *l = make_lookup(&dims[DIM_BIG], D_KEY, 1, DIRECT, false);
  wl_i64 before = d->n_in, first = 0, used = d->used;
  rows want;
  expect(fact, &big[1], &want);
  for (int k = 0; k < 2; k++) {
    check_run("kept", fact, &big[1], &l, &want, &settings[0]);
    if (k == 0) first = d->n_in - before;
  }
  wl_i64 second = d->n_in - before - first;
  CHECK("joins: the first run sends the lookup", first > 4 * BIG_ROWS);
  CHECK("joins: the second does not", second < 65536);
  wl_mem_free(want.v);
  wl_lookup_drop(l);
  CHECK("joins: it goes from the device with its last holder", d->used < used + 4 * BIG_ROWS);
}

static void test_device(void) {
  static const wl_i64 sizes[] = {0, 1, 257, 65537};
  table fact;
  for (int k = 0; k < N_DIMS; k++)
    make_table(&dims[k], k, 5,
               k == DIM_EMPTY  ? 0
               : k == DIM_LINK ? 12
               : k == DIM_BIG  ? BIG_ROWS
                               : DIM_ROWS);
  for (int z = 0; z < 4; z++) {
    make_table(&fact, -1, 5, sizes[z]);
    for (size_t k = 0; k < sizeof list / sizeof *list; k++)
      check_query(list[k].name, &fact, &list[k].q, settings, z == 0 ? 1 : 5);
    if (sizes[z] == 257) test_kinds(&fact);
    drop_table(&fact);
  }
  make_table(&fact, -1, 5, TEST_SANITIZED ? 140000 : 300000);
  for (size_t k = 11; k < sizeof list / sizeof *list; k++)
    check_query(list[k].name, &fact, &list[k].q,
                &tight[list[k].q.what == AGGREGATES || list[k].q.what == GROUPS], 1);
  drop_table(&fact);
  make_table(&fact, -1, 5, 140000);
  check_query("a large side", &fact, &big[0], far, 3);
  for (int k = 1; k < 3; k++) check_query("a large side", &fact, &big[k], divided, 5);
  test_kept(&fact);
  drop_table(&fact);
  test_several(0);
  test_several(1);
  test_several(300);
  test_several(TEST_SANITIZED ? 3000 : 66000);
  for (int k = 0; k < N_DIMS; k++) drop_table(&dims[k]);
}

int main(void) {
  if (sqlite3_libversion_number() <= 0 || !wl_api_bind(NULL)) return 1;
  test_device();
  if (getenv("WL_TEST_CUDA")) {
    kind = "cuda";
    test_device();
  }
  return tap_done();
}
