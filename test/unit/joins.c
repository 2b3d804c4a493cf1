/*
** Joins on the CPU machine: programs of Probe, Expand and Match made by hand over tables made by
** hand, against nested loops over the same rows. All ways to join, all kinds of keys, sizes
** around a vector and past a tablet, long runs of duplicates, NULL keys, sources without a row,
** joins of joins; one thread and three; rows, aggregates and groups; LIMIT, interrupts.
*/
#include <stdlib.h>
#include <string.h>

#include "../rng.h"
#include "../tap.h"
#include "api/enable.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/threads.h"
#include "value/domain.h"
#include "exec/sink/lookup.h"
#include "exec/run.h"

/* By its own name, so that the program is linked with SQLite. */
#undef sqlite3_libversion_number
extern int sqlite3_libversion_number(void);

enum { MAX_JOINS = 4, MAX_COLS = 64, MAX_CODE = 400, N_COLS = 5 };
enum { C_ID, C_INT, C_SMALL, C_REAL, C_ANY };
enum { K_NONE, K_INT, K_PAIR, K_REAL, K_ANY, N_KINDS };
static const char *const kind_names[] = {"none", "integer", "two integers", "real", "any"};
static const char *const how_names[] = {"inner", "left", "semi", "anti", "mark"};

static void must(wl_status rc, const wl_error *err) {
  if (!rc) return;
  tap_bad("joins", "%s", err->text);
  exit(tap_done());
}

/* ---- tables */

typedef struct table {
  int n;
  wl_val *v[N_COLS];
  wl_column *cols[N_COLS];
} table;

/* Keys of `values` different values, `nulls` percent NULL; `heavy` percent are one key. */
static table make_table(rng *r, int n, int values, int nulls, int heavy, bool distinct) {
  static char texts[64][8];
  table t = {.n = n};
  for (int c = 0; c < N_COLS; c++) t.v[c] = calloc((size_t)n + 1, sizeof(wl_val));
  for (int i = 0; i < 64; i++) snprintf(texts[i], sizeof texts[i], "k%d", i);
  int shift = distinct ? rng_below(r, 5) : 0;
  for (int i = 0; i < n; i++) {
    int k = distinct ? (i * 7 + shift) % (n % 7 ? n : n + 1)
                     : (rng_chance(r, heavy) ? 3 : rng_below(r, values));
    t.v[C_ID][i] = wl_int(i);
    t.v[C_INT][i] = rng_chance(r, nulls) ? wl_null() : wl_int(k * 3LL - 50);
    t.v[C_SMALL][i] = rng_chance(r, nulls) ? wl_null() : wl_int(k % 3);
    t.v[C_REAL][i] = rng_chance(r, nulls) ? wl_null() : wl_real(k == 0 && i % 2 ? -0.0 : k / 4.0);
    t.v[C_ANY][i] = rng_chance(r, nulls) ? wl_null()
                    : k % 3 == 0         ? wl_int(k)
                    : k % 3 == 1
                        ? wl_real(i % 2 ? k + 0.0 : k + 0.5)
                        : wl_text((const wl_u8 *)texts[k % 64], (wl_u32)strlen(texts[k % 64]));
    if (k % 3 == 1 && i % 4 == 1 && t.v[C_ANY][i].t != WL_T_NULL) t.v[C_ANY][i] = wl_int(k);
  }
  if (n)
    t.v[C_ANY][0] = wl_int(1000000); /* two texts alone would get a dictionary, whose codes no
                                     ** program here reads */
  wl_error err = {0};
  for (int c = 0; c < N_COLS; c++) {
    wl_builder *b;
    must(wl_builder_open(&b, &err), &err);
    wl_builder_plain(b);
    for (int i = 0; i < n; i++) must(wl_builder_add(b, t.v[c][i]), &err);
    must(wl_builder_finish(b, &t.cols[c], &err), &err);
    wl_builder_close(b);
  }
  return t;
}

static void free_table(table *t) {
  for (int c = 0; c < N_COLS; c++) {
    wl_column_drop(t->cols[c]);
    free(t->v[c]);
  }
}

/* ---- programs */

typedef struct asmb {
  wl_arena arena;
  wl_program *p;
  wl_column *cols[MAX_COLS]; /* not held */
  const table *tables[MAX_JOINS + 1];
  bool misses[MAX_JOINS + 1];
} asmb;

static wl_program *new_program(wl_arena *arena) {
  wl_program *p = WL_NEW(arena, wl_program);
  p->code = WL_NEW_N(arena, wl_instr, MAX_CODE);
  p->regs = WL_NEW_N(arena, wl_reg, MAX_CODE);
  p->consts = WL_NEW_N(arena, wl_val, MAX_CODE);
  p->columns = WL_NEW_N(arena, wl_i16, MAX_COLS);
  p->column_names = WL_NEW_N(arena, const char *, MAX_COLS);
  p->column_regs = WL_NEW_N(arena, wl_reg, MAX_COLS);
  p->results = WL_NEW_N(arena, wl_result, 2 * MAX_JOINS + 2);
  p->table = "t0";
  p->limit = -1;
  p->host_op = -1;
  return p;
}

static void asm_open(asmb *a, int n_sources) {
  memset(a, 0, sizeof *a);
  wl_arena_init(&a->arena);
  wl_program *p = a->p = new_program(&a->arena);
  p->column_sources = WL_NEW_N(&a->arena, wl_u8, MAX_COLS);
  p->source_names = WL_NEW_N(&a->arena, const char *, MAX_JOINS + 1);
  p->joins = WL_NEW_N(&a->arena, wl_join, MAX_JOINS);
  p->n_sources = n_sources;
}

static int emit(asmb *a, int op, int d, int x, int y, int c) {
  wl_program *p = a->p;
  p->code[p->n_code] = (wl_instr){(wl_u16)op, (wl_i16)d, (wl_i16)x, (wl_i16)y, (wl_i16)c};
  return p->n_code++;
}
static int reg(asmb *a, int type, bool nullable) {
  a->p->regs[a->p->n_regs] = (wl_reg){(wl_u8)type, nullable};
  return a->p->n_regs++;
}
static int constant(asmb *a, wl_val v) {
  a->p->consts[a->p->n_consts] = v;
  return WL_CONST(a->p->n_consts++);
}

/* A register with a column of a source. */
static int column(asmb *a, int source, int col) {
  wl_program *p = a->p;
  wl_column *c = a->tables[source]->cols[col];
  int k = 0;
  while (k < p->n_columns && (a->cols[k] != c || p->column_sources[k] != source)) k++;
  if (k == p->n_columns) {
    p->n_columns++;
    a->cols[k] = c;
    p->column_sources[k] = (wl_u8)source;
    p->column_names[k] = "c";
    p->column_regs[k] = wl_column_reg(c);
  }
  p->column_regs[k].nullable |= a->misses[source];
  int d = reg(a, p->column_regs[k].type, p->column_regs[k].nullable);
  emit(a, WL_OP__Column, d, k, 0, 0);
  return d;
}

/* IfNot (id of a source) % m <> 0, jumping to be patched (c = -1). */
static void filter(asmb *a, int source, int m) {
  int id = column(a, source, C_ID), rest = reg(a, WL_R_INT, true), t = reg(a, WL_R_TRUTH, false);
  emit(a, WL_OP__RemI, rest, id, constant(a, wl_int(m)), 0);
  emit(a, WL_OP__NeI, t, rest, constant(a, wl_int(0)), 0);
  emit(a, WL_OP__IfNot, 0, t, 0, -1);
}

static void patch(asmb *a, int from, int to) {
  for (int pc = from; pc < a->p->n_code; pc++)
    if (a->p->code[pc].op == WL_OP__IfNot && a->p->code[pc].c < 0) a->p->code[pc].c = (wl_i16)to;
}

static void verify(const asmb *a) {
  wl_error err = {0};
  must(wl_program_verify(a->p, &err), &err);
  for (int pc = 0; pc < wl_program_n_lines(a->p); pc++) {
    wl_listing l;
    wl_arena arena;
    wl_arena_init(&arena);
    if (wl_program_print(a->p, pc, 0, &arena, &l) || !l.p1 || !l.p2 || !l.p3 || !l.p4)
      tap_bad("joins: listing", "line %d", pc);
    if (getenv("WL_LIST")) printf("# %d %s %s %s %s %s\n", pc, l.opcode, l.p1, l.p2, l.p3, l.p4);
    wl_arena_close(&arena);
  }
}

/* ---- joins, and what they mean */

typedef struct join {
  int source, from; /* from: the source whose keys look for rows */
  wl_join_how how;
  int kind, keys[2], n_keys;
  bool null_equal, residual, filtered, late_filter, explicit_match;
  wl_lookup *lookup;
  bool probe;
} join;

typedef struct query {
  table tables[MAX_JOINS + 1];
  join joins[MAX_JOINS];
  int n_joins, threads;
} query;

static bool visible(const query *q, int n_joins, int source) {
  if (source == 0) return true;
  for (int k = 0; k < n_joins; k++)
    if (q->joins[k].source == source)
      return q->joins[k].how != WL_HOW_SEMI && q->joins[k].how != WL_HOW_ANTI;
  return false;
}

static wl_val value_of(const query *q, const int *rows, int source, int col) {
  return rows[source] < 0 ? wl_null() : q->tables[source].v[col][rows[source]];
}

static bool keys_equal(const query *q, const join *j, const int *rows, int candidate) {
  if (j->filtered && candidate % 3 == 0) return false;
  for (int k = 0; k < j->n_keys; k++) {
    wl_val x = value_of(q, rows, j->from, j->keys[k]),
           y = q->tables[j->source].v[j->keys[k]][candidate];
    bool null = x.t == WL_T_NULL || y.t == WL_T_NULL;
    if (null && !(j->null_equal && x.t == y.t)) return false;
    if (!null && wl_cmp_val(x, y, 0) != 0) return false;
  }
  return true;
}

/* id of the driver < id of the candidate + 2 * (its small key), which may be NULL */
static bool passes(const query *q, const join *j, const int *rows, int candidate) {
  if (!j->residual) return true;
  wl_val a = value_of(q, rows, j->from, C_ID), s = q->tables[j->source].v[C_SMALL][candidate];
  if (a.t == WL_T_NULL || s.t == WL_T_NULL) return false;
  return ((wl_i64)a.v + (wl_i64)s.v) % 2 == 0;
}

typedef struct answer {
  int *rows; /* [n][MAX_JOINS + 1]: -1: none */
  long n, size;
} answer;

static void put(answer *out, const int *rows) {
  if (out->n == out->size) {
    out->size = out->size ? out->size * 2 : 1024;
    out->rows = realloc(out->rows, (size_t)out->size * (MAX_JOINS + 1) * sizeof(int));
  }
  memcpy(out->rows + out->n++ * (MAX_JOINS + 1), rows, (MAX_JOINS + 1) * sizeof(int));
}

static void loops(const query *q, int k, int *rows, answer *out);

static void go_on(const query *q, int k, int *rows, answer *out) {
  const join *j = &q->joins[k];
  if (j->late_filter) {
    wl_val v = value_of(q, rows, j->from, C_ID);
    if (v.t == WL_T_NULL || (wl_i64)v.v % 5 == 0) return;
  }
  loops(q, k + 1, rows, out);
}

static void loops(const query *q, int k, int *rows, answer *out) {
  if (k == q->n_joins) {
    put(out, rows);
    return;
  }
  const join *j = &q->joins[k];
  int found = 0;
  for (int c = 0; c < q->tables[j->source].n; c++) {
    if (!keys_equal(q, j, rows, c) || !passes(q, j, rows, c)) continue;
    if (found++ && j->how >= WL_HOW_SEMI) break;
    rows[j->source] = c;
    if (j->how == WL_HOW_INNER || j->how == WL_HOW_LEFT) go_on(q, k, rows, out);
    if (j->how >= WL_HOW_SEMI) break;
  }
  bool again = j->how == WL_HOW_MARK || (j->how == WL_HOW_LEFT && !found) ||
               (j->how == WL_HOW_SEMI && found) || (j->how == WL_HOW_ANTI && !found);
  if (j->how != WL_HOW_MARK || !found) rows[j->source] = -1;
  if (again) go_on(q, k, rows, out);
  rows[j->source] = -1;
}

static answer oracle(const query *q) {
  answer out = {0};
  for (int i = 0; i < q->tables[0].n; i++) {
    int rows[MAX_JOINS + 1] = {i, -1, -1, -1, -1};
    loops(q, 0, rows, &out);
  }
  return out;
}

/* ---- building lookups and programs */

static wl_status build(const query *q, join *j, wl_lookup **out, wl_i64 left, wl_error *err) {
  asmb a;
  asm_open(&a, 1);
  a.tables[0] = &q->tables[j->source];
  wl_program *p = a.p;
  wl_build_in in = {.p = p, .n_rows = a.tables[0]->n, .threads = q->threads, .max_text = 1 << 20};
  in.left = left;
  if (j->filtered) filter(&a, 0, 3);
  wl_reg regs[2];
  wl_domain domains[2];
  p->n_joins = 1;
  p->joins[0].keys = WL_NEW_N(&a.arena, wl_i16, 2);
  p->joins[0].n_keys = j->n_keys;
  for (int k = 0; k < j->n_keys; k++) {
    const wl_column *c = a.tables[0]->cols[j->keys[k]];
    p->joins[0].keys[k] = (wl_i16)column(&a, 0, j->keys[k]);
    regs[k] = wl_column_reg(c);
    domains[k] = c->domain;
    regs[k].nullable = j->null_equal; /* NULL is a value of the key */
  }
  wl_key_plan_make(&in.plan, regs, domains, j->n_keys);
  for (int k = 0; k < j->n_keys; k++) {
    int type = wl_column_reg(q->tables[j->from].cols[j->keys[k]]).type;
    if ((in.plan.kind == WL_KEYS_INT && type != WL_R_INT) ||
        (in.plan.kind == WL_KEYS_REAL && type != WL_R_REAL))
      in.plan.kind = WL_KEYS_VALUES;
  }
  emit(&a, WL_OP__Build, 0, 0, 0, 0);
  patch(&a, 0, p->n_code);
  p->sink = WL_SINK_LOOKUP;
  verify(&a);
  in.cols = a.cols;
  wl_status rc = wl_lookup_build(&in, out, err);
  wl_arena_close(&a.arena);
  return rc;
}

static void emit_join(asmb *a, const query *q, int k) {
  const join *j = &q->joins[k];
  wl_program *p = a->p;
  wl_join *w = &p->joins[p->n_joins];
  *w = (wl_join){.source = j->source, .how = j->how, .lookup = j->lookup, .match = -1};
  w->keys = WL_NEW_N(&a->arena, wl_i16, 2);
  w->n_keys = j->n_keys;
  for (int i = 0; i < j->n_keys; i++) w->keys[i] = (wl_i16)column(a, j->from, j->keys[i]);
  int at = emit(a, j->probe ? WL_OP__Probe : WL_OP__Expand, 0, 0, 0, p->n_joins++);
  p->expands |= !j->probe;
  a->misses[j->source] = j->how == WL_HOW_LEFT || j->how == WL_HOW_MARK;
  bool values = j->lookup->plan.kind == WL_KEYS_VALUES;
  for (int i = 0; values && i < j->n_keys; i++) {
    int t = reg(a, WL_R_TRUTH, false), x = column(a, j->from, j->keys[i]),
        y = column(a, j->source, j->keys[i]);
    emit(a, j->null_equal ? WL_OP__IsV : WL_OP__EqV, t, x, y, WL_COLL_BINARY);
    emit(a, WL_OP__IfNot, 0, t, 0, -1);
  }
  if (j->residual) {
    int x = column(a, j->from, C_ID), y = column(a, j->source, C_SMALL);
    int sum = reg(a, WL_R_INT, true), rest = reg(a, WL_R_INT, true), t = reg(a, WL_R_TRUTH, false);
    emit(a, WL_OP__AddI, sum, x, y, 0);
    emit(a, WL_OP__RemI, rest, sum, constant(a, wl_int(2)), 0);
    emit(a, WL_OP__EqI, t, rest, constant(a, wl_int(0)), 0);
    emit(a, WL_OP__IfNot, 0, t, 0, -1);
  }
  if (!j->probe && (j->how != WL_HOW_INNER || j->explicit_match)) {
    w->match = p->n_code;
    patch(a, at, w->match);
    emit(a, WL_OP__Match, 0, 0, 0, p->n_joins - 1);
  }
  if (j->late_filter) filter(a, j->from, 5);
}

enum { MODE_ROWS, MODE_SUMS, MODE_GROUPS };

static wl_status open_run(const query *q, int mode, wl_run_config config, wl_i64 limit,
                          wl_run **out, wl_error *err) {
  asmb a;
  asm_open(&a, q->n_joins + 1);
  wl_program *p = a.p;
  for (int k = 0; k <= q->n_joins; k++) a.tables[k] = &q->tables[k];
  p->limit = limit;
  for (int k = 0; k < q->n_joins; k++) emit_join(&a, q, k);
  if (mode == MODE_ROWS) {
    for (int s = 0; s <= q->n_joins; s++) {
      if (!visible(q, q->n_joins, s)) continue;
      int id = column(&a, s, C_ID);
      p->results[p->n_results++] = (wl_result){
          .name = "id", .operand = (wl_i16)id, .domain = wl_domain_int(0, 1 << 30, a.misses[s])};
      if (!a.misses[s]) continue;
      int t = reg(&a, WL_R_TRUTH, false), i = reg(&a, WL_R_INT, false);
      emit(&a, WL_OP__Found, t, s, 0, 0);
      emit(&a, WL_OP__TruthToInt, i, t, 0, 0);
      p->results[p->n_results++] =
          (wl_result){.name = "found", .operand = (wl_i16)i, .domain = wl_domain_int(0, 1, false)};
    }
    p->n_given = p->n_results;
    emit(&a, WL_OP__Result, 0, 0, p->n_results, 0);
  } else {
    /* count(*), sum of the ids of the last visible source; groups by id 0 % 7 */
    int last = q->n_joins;
    while (!visible(q, q->n_joins, last)) last--;
    p->n_accs = p->n_aggs = 2;
    p->accs = WL_NEW_N(&a.arena, wl_acc, 2);
    p->aggs = WL_NEW_N(&a.arena, wl_agg, 2);
    p->accs[0] = (wl_acc){.op = WL_OP__AggRows, .set = -1};
    p->accs[1] = (wl_acc){.op = mode == MODE_SUMS ? WL_OP__AggSumX : WL_OP__AggSumI, .set = -1};
    p->aggs[0] = (wl_agg){.final = WL_AGG_COUNT, .acc = 0, .reg = {WL_R_INT, false}};
    p->aggs[1] = (wl_agg){.final = WL_AGG_SUM, .acc = 1, .reg = {WL_R_INT, true}};
    if (mode == MODE_GROUPS) {
      p->keys = WL_NEW_N(&a.arena, wl_key, 1);
      p->n_keys = 1;
      p->grouped = p->by_first = true;
      int id = column(&a, 0, C_ID), rest = reg(&a, WL_R_INT, true);
      emit(&a, WL_OP__RemI, rest, id, constant(&a, wl_int(7)), 0);
      p->keys[0] = (wl_key){
          .operand = (wl_i16)rest, .reg = {WL_R_INT, true}, .domain = wl_domain_int(0, 6, true)};
      emit(&a, WL_OP__Group, 0, 0, 1, 0);
    } else {
      p->grouped = p->one_group = true;
      emit(&a, WL_OP__Group, 0, 0, 0, 0);
    }
    int id = column(&a, last, C_ID);
    emit(&a, WL_OP__AggRows, 0, 0, 0, 0);
    emit(&a, p->accs[1].op, 1, id, 0, 0);
  }
  patch(&a, 0, p->n_code);
  if (mode != MODE_ROWS) {
    p->sink = WL_SINK_GROUPS;
    verify(&a);
    wl_program *g = a.p = p->next = new_program(&a.arena);
    g->source = WL_SOURCE_GROUPS;
    g->limit = limit;
    p->limit = -1;
    for (int k = 0; k < p->n_keys + 2; k++) {
      int d = reg(&a, WL_R_INT, k != p->n_keys);
      emit(&a, WL_OP__Column, d, k, 0, 0);
      g->column_regs[g->n_columns++] = g->regs[d];
      g->results[g->n_results++] =
          (wl_result){.name = "x",
                      .operand = (wl_i16)d,
                      .domain = wl_domain_int(WL_I64_MIN, WL_I64_MAX, k != p->n_keys)};
    }
    g->n_given = g->n_results;
    emit(&a, WL_OP__Result, 0, 0, g->n_results, 0);
  }
  verify(&a);
  wl_snapshot snap = {.n_rows = q->tables[0].n, .n_cols = p->n_columns};
  snap.cols = wl_mem_alloc(((size_t)p->n_columns + 1) * sizeof *snap.cols);
  for (int k = 0; k < p->n_columns; k++) snap.cols[k] = wl_column_hold(a.cols[k]);
  config.threads = q->threads;
  config.max_text = 1 << 20;
  return wl_run_open(&config, &a.arena, p, &snap, out, err);
}

/* ---- comparing */

static bool compare_rows(const char *name, const query *q, const answer *want, wl_i64 limit) {
  wl_error err = {0};
  wl_run *r;
  wl_run_config config = {0};
  must(open_run(q, MODE_ROWS, config, limit, &r, &err), &err);
  wl_i64 at = 0, n = limit >= 0 && limit < want->n ? limit : want->n;
  bool same = true;
  for (;;) {
    wl_batch *b;
    must(wl_run_next(r, &b, &err), &err);
    if (!b) break;
    for (wl_i64 i = b->skip; i < b->n_rows && same; i++, at++) {
      int col = 0;
      if (at >= n) same = tap_bad(name, "more than the %lld rows there are", n);
      for (int s = 0; s <= q->n_joins && same; s++) {
        if (!visible(q, q->n_joins, s)) continue;
        wl_val v = wl_batch_value(b, wl_run_regs(r), col++, i);
        int row = want->rows[at * (MAX_JOINS + 1) + s];
        if (row < 0 ? v.t != WL_T_NULL : v.t != WL_T_INT || (int)v.v != row)
          same = tap_bad(name, "row %lld, source %d: %lld (type %d), wanted %d", at, s, (wl_i64)v.v,
                         v.t, row);
        bool misses =
            s && (q->joins[s - 1].how == WL_HOW_LEFT || q->joins[s - 1].how == WL_HOW_MARK);
        if (misses && same && (int)wl_batch_value(b, wl_run_regs(r), col++, i).v != (row >= 0))
          same = tap_bad(name, "row %lld: Found is wrong", at);
      }
    }
    wl_batch_give(b);
    if (!same) break;
  }
  if (same && at != n) same = tap_bad(name, "%lld rows, wanted %lld", at, n);
  wl_run_close(r);
  return same;
}

static bool compare_sums(const char *name, const query *q, const answer *want, int mode) {
  wl_error err = {0};
  wl_run *r;
  wl_run_config config = {0};
  int last = q->n_joins, order[8], n = 0, n_groups = mode == MODE_GROUPS ? 7 : 1;
  while (!visible(q, q->n_joins, last)) last--;
  wl_i64 counts[7] = {0}, sums[7] = {0}, some[7] = {0};
  if (mode == MODE_SUMS) order[n++] = 0;
  for (long i = 0; i < want->n; i++) {
    const int *rows = want->rows + i * (MAX_JOINS + 1);
    int g = rows[0] % n_groups;
    if (mode == MODE_GROUPS && !counts[g]) order[n++] = g;
    counts[g]++;
    if (rows[last] >= 0) sums[g] += rows[last], some[g]++;
  }
  must(open_run(q, mode, config, -1, &r, &err), &err);
  bool same = true;
  int at = 0;
  for (;;) {
    wl_batch *b;
    must(wl_run_next(r, &b, &err), &err);
    if (!b) break;
    for (wl_i64 i = 0; i < b->n_rows && same; i++, at++) {
      int g = at < n ? order[at] : -1, col = 0;
      const wl_reg *regs = wl_run_regs(r);
      if (g < 0) same = tap_bad(name, "too many groups");
      if (same && mode == MODE_GROUPS && (int)wl_batch_value(b, regs, col++, i).v != g)
        same = tap_bad(name, "group %d is another", at);
      if (same && (wl_i64)wl_batch_value(b, regs, col++, i).v != counts[g])
        same = tap_bad(name, "group %d: count %lld, wanted %lld", g,
                       (wl_i64)wl_batch_value(b, regs, col - 1, i).v, counts[g]);
      wl_val v = same ? wl_batch_value(b, regs, col, i) : wl_null();
      if (same && (some[g] ? v.t != WL_T_INT || (wl_i64)v.v != sums[g] : v.t != WL_T_NULL))
        same = tap_bad(name, "group %d: sum %lld, wanted %lld", g, (wl_i64)v.v, sums[g]);
    }
    wl_batch_give(b);
  }
  if (same && at != n) same = tap_bad(name, "%d groups, wanted %d", at, n);
  wl_run_close(r);
  return same;
}

/* Makes the lookups; whether each join can and shall be a Probe. */
static void build_all(query *q, bool probes) {
  wl_error err = {0};
  for (int k = 0; k < q->n_joins; k++) {
    join *j = &q->joins[k];
    must(build(q, j, &j->lookup, 0, &err), &err);
    j->probe = probes && j->lookup->unique && j->lookup->plan.kind != WL_KEYS_VALUES &&
               (!j->residual || j->how == WL_HOW_INNER);
  }
}
static void drop_all(query *q) {
  for (int k = 0; k < q->n_joins; k++) wl_lookup_drop(q->joins[k].lookup);
}

static bool try_query(const char *name, query *q, bool probes) {
  answer want = oracle(q);
  bool same = true;
  for (q->threads = 1; q->threads <= 3 && same; q->threads += 2) {
    build_all(q, probes);
    same = compare_rows(name, q, &want, -1);
    if (same && want.n > 10) same = compare_rows(name, q, &want, want.n / 2);
    if (same) same = compare_sums(name, q, &want, MODE_SUMS);
    if (same) same = compare_sums(name, q, &want, MODE_GROUPS);
    drop_all(q);
  }
  free(want.rows);
  return same;
}

static void set_kind(join *j, int kind) {
  j->kind = kind;
  j->n_keys = kind == K_NONE ? 0 : kind == K_PAIR ? 2 : 1;
  j->keys[0] = kind == K_REAL ? C_REAL : kind == K_ANY ? C_ANY : C_INT;
  j->keys[1] = C_SMALL;
}

/* ---- one join: every way, kind and size */

static void single_joins(rng *r) {
  static const int sizes[] = {0, 1, 1023, 1024, 1025, 66000};
  enum { N = sizeof sizes / sizeof *sizes };
  char name[200];
  for (int kind = 0; kind < N_KINDS; kind++)
    for (int how = 0; how < 5; how++) {
      bool same = true;
      int n_tried = 0;
      for (int a = 0; a < N && same; a++)
        for (int b = 0; b < N && same; b++) {
          if (a == N - 1 && b > 2) continue; /* nested loops over 4 thousand million pairs */
          if (b == N - 1 && a > 2) continue;
          if (TEST_SANITIZED && (long)sizes[a] * sizes[b] > 2000000) continue;
          if (kind == K_NONE && sizes[a] > 1 && sizes[b] > 1025) continue;
          if (kind == K_NONE && sizes[a] > 1025 && sizes[b] > 1) continue;
          for (int form = 0; form < 8 && same; form++) {
            bool distinct = form & 1, residual = form & 2, odd = form & 4;
            if (kind == K_NONE && distinct) continue;
            bool large = sizes[a] > 1025 || sizes[b] > 1025, pairs = sizes[a] > 1 && sizes[b] > 1;
            if (large && pairs && form != how) continue; /* the loops here take long */
            if (pairs && form != how && (a + b + form) % 4) continue;
            query q = {.n_joins = 1};
            int most = sizes[a] > sizes[b] ? sizes[a] : sizes[b];
            int values = rng_chance(r, 50) ? sizes[b] / 2 + 1 : most / 4 + 1;
            q.tables[0] = make_table(r, sizes[a], values, odd ? 10 : 0, 0, false);
            q.tables[1] = make_table(r, sizes[b], values, odd && !distinct ? 10 : 0, 0, distinct);
            join *j = &q.joins[0];
            j->source = 1;
            j->how = (wl_join_how)how;
            set_kind(j, kind);
            j->residual = residual;
            j->null_equal = odd && rng_chance(r, 50);
            j->filtered = odd && rng_chance(r, 50);
            j->late_filter = rng_chance(r, 30);
            j->explicit_match = rng_chance(r, 50);
            snprintf(name, sizeof name, "joins: %s by %s, %d x %d rows, form %d%s%s%s",
                     how_names[how], kind_names[kind], sizes[a], sizes[b], form,
                     j->null_equal ? ", null = null" : "", j->filtered ? ", filtered" : "",
                     j->late_filter ? ", late filter" : "");
            same = try_query(name, &q, true);
            if (same && distinct && !large) same = try_query(name, &q, false);
            n_tried++;
            free_table(&q.tables[0]);
            free_table(&q.tables[1]);
          }
        }
      snprintf(name, sizeof name, "joins: %s by %s, %d combinations", how_names[how],
               kind_names[kind], n_tried);
      if (same) tap_ok(name);
    }
}

/* ---- runs of duplicates longer than a vector */

static void long_runs(rng *r) {
  bool same = true;
  for (int how = 0; how < 5; how++)
    for (int residual = 0; residual < 2; residual++)
      for (int kind = K_INT; kind < N_KINDS && same; kind++) {
        query q = {.n_joins = 1};
        q.tables[0] = make_table(r, 60, 20, 5, 30, false);
        q.tables[1] = make_table(r, 5000, 20, 5, 60, false);
        q.joins[0] = (join){.source = 1, .how = (wl_join_how)how, .residual = residual};
        set_kind(&q.joins[0], kind);
        same = try_query("joins: runs longer than a vector", &q, true);
        free_table(&q.tables[0]);
        free_table(&q.tables[1]);
      }
  if (same) tap_ok("joins: runs longer than a vector");
}

/* ---- large tables: ranges that leave tablets out, tables of bits, keys out of joined rows */

static void large_tables(rng *r) {
  bool same = true;
  for (int how = 0; how < 5 && same; how++) {
    query q = {.n_joins = 1};
    q.tables[0] = make_table(r, TEST_SANITIZED ? 70000 : 200000, 20, 0, 0, false);
    q.tables[1] = make_table(r, 100, 20, 0, 0, false);
    q.joins[0] = (join){.source = 1, .how = (wl_join_how)how, .n_keys = 1, .filtered = true};
    same = try_query("joins: ranges that leave tablets out", &q, how % 2);
    free_table(&q.tables[0]);
    free_table(&q.tables[1]);
  }
  if (same) tap_ok("joins: ranges that leave tablets out");
  for (int how = 0; how < 25 && same; how++) {
    query q = {.n_joins = 2};
    if (how % 5 == WL_HOW_SEMI || how % 5 == WL_HOW_ANTI) continue; /* nothing to go on from */
    q.tables[0] = make_table(r, TEST_SANITIZED ? 30 : 300, 90000, 10, 0, false);
    q.tables[1] = make_table(r, 66000, 0, 10, 0, true);
    q.tables[2] = make_table(r, 66000, 0, 0, 0, true);
    for (int k = 0; k < 2; k++) {
      q.joins[k] = (join){.source = k + 1, .from = k, .filtered = k};
      q.joins[k].how = (wl_join_how)(k ? how / 5 : how % 5);
      set_kind(&q.joins[k], K_INT);
    }
    same = try_query("joins: keys out of joined rows", &q, true);
    for (int k = 0; k < 3; k++) free_table(&q.tables[k]);
  }
  if (same) tap_ok("joins: keys out of joined rows");
}

/* ---- joins of joins */

static void random_joins(rng *r, int rounds) {
  char name[300];
  bool same = true;
  long rows = 0;
  for (int round = 0; round < rounds && same; round++) {
    query q = {.n_joins = 1 + rng_below(r, MAX_JOINS)};
    int most = q.n_joins > 2 ? 40 : 200, at;
    at = snprintf(name, sizeof name, "joins: round %d:", round);
    q.tables[0] = make_table(r, rng_below(r, most * 4), 20, rng_below(r, 20), 5, false);
    for (int k = 0; k < q.n_joins; k++) {
      join *j = &q.joins[k];
      j->source = k + 1;
      j->how = (wl_join_how)rng_below(r, 5);
      do j->from = rng_below(r, k + 1);
      while (!visible(&q, k, j->from));
      bool distinct = rng_chance(r, 50);
      q.tables[k + 1] =
          make_table(r, rng_below(r, most), 4 + rng_below(r, most), rng_below(r, 20), 5, distinct);
      set_kind(j, rng_chance(r, 10) ? K_NONE : 1 + rng_below(r, N_KINDS - 1));
      if (j->kind == K_NONE && q.n_joins > 2) set_kind(j, K_INT);
      j->residual = rng_chance(r, 40);
      j->null_equal = rng_chance(r, 20);
      j->filtered = rng_chance(r, 20);
      j->late_filter = rng_chance(r, 20);
      j->explicit_match = rng_chance(r, 50);
      at += snprintf(name + at, sizeof name - (size_t)at, " %s by %s of %d%s%s", how_names[j->how],
                     kind_names[j->kind], j->from, j->residual ? " residual" : "",
                     j->null_equal ? " null = null" : "");
    }
    answer want = oracle(&q);
    rows += want.n;
    bool small = want.n < 2000000;
    free(want.rows);
    if (small) same = try_query(name, &q, rng_chance(r, 70));
    for (int k = 0; k <= q.n_joins; k++) free_table(&q.tables[k]);
  }
  snprintf(name, sizeof name, "joins: %d random joins of up to %d tables, %ld rows", rounds,
           MAX_JOINS + 1, rows);
  if (same) tap_ok(name);
}

/* ---- long ones */

typedef struct stopper {
  double start, after;
  long n_calls;
} stopper;

static wl_status stop(void *arg, wl_error *err) {
  stopper *s = arg;
  s->n_calls++;
  return wl_clock_ns() - s->start > s->after ? wl_fail(err, WL_INTERRUPT, "interrupted") : WL_OK;
}

/* Three tables without a key between them. */
static query cross(rng *r, int n0, int n1, int n2) {
  query q = {.n_joins = 2, .threads = 3};
  q.tables[0] = make_table(r, n0, 20, 0, 0, false);
  q.tables[1] = make_table(r, n1, 20, 0, 0, false);
  q.tables[2] = make_table(r, n2, 20, 0, 0, false);
  for (int k = 0; k < 2; k++) {
    q.joins[k] = (join){.source = k + 1, .how = WL_HOW_INNER};
    set_kind(&q.joins[k], K_NONE);
  }
  build_all(&q, true);
  return q;
}
static void close_cross(query *q) {
  drop_all(q);
  for (int k = 0; k < 3; k++) free_table(&q->tables[k]);
}

static void interrupts(rng *r) {
  for (int threads = 1; threads <= 3; threads += 2) {
    for (int rows = 1; rows <= 1000; rows += 999) { /* one row: two threads have nothing to do */
      query q = cross(r, rows, 30000, 60000);
      stopper s = {.after = 5e7};
      wl_run_config config = {.check = stop, .check_arg = &s};
      wl_error err = {0};
      wl_run *run;
      wl_batch *b = NULL;
      q.threads = threads;
      must(open_run(&q, MODE_SUMS, config, -1, &run, &err), &err);
      s.start = wl_clock_ns();
      wl_status rc = wl_run_next(run, &b, &err);
      double ms = (wl_clock_ns() - s.start) / 1e6;
      char name[100];
      snprintf(name, sizeof name, "joins: an interrupt after 50 ms, %d rows, %d threads", rows,
               threads);
      if (rc != WL_INTERRUPT || ms > (TEST_SANITIZED ? 2000 : 200))
        tap_bad(name, "status %d after %.0f ms, %ld calls", rc, ms, s.n_calls);
      else
        tap_ok(name);
      wl_run_close(run);
      close_cross(&q);
    }
  }
}

static void streams(rng *r) {
  query q = cross(r, 300, 200, TEST_SANITIZED ? 10 : 100);
  wl_error err = {0};
  wl_run_config config = {0};
  wl_run *run;
  bool same = true;
  wl_i64 at = 0, n1 = q.tables[1].n, n2 = q.tables[2].n;
  must(open_run(&q, MODE_ROWS, config, -1, &run, &err), &err);
  for (;;) {
    wl_batch *b;
    must(wl_run_next(run, &b, &err), &err);
    if (!b) break;
    for (wl_i64 i = 0; i < b->n_rows; i++, at++)
      same &= (wl_i64)b->cols[0].v[i] == at / n2 / n1 && (wl_i64)b->cols[1].v[i] == at / n2 % n1 &&
              (wl_i64)b->cols[2].v[i] == at % n2;
    wl_batch_give(b);
  }
  CHECK("joins: millions of rows come in order", same && at == 300 * n1 * n2);
  wl_run_close(run);
  close_cross(&q);
  /* LIMIT: a join that would never end */
  q = cross(r, 1000, 60000, 60000);
  double start = wl_clock_ns();
  must(open_run(&q, MODE_ROWS, config, 100000, &run, &err), &err);
  for (at = 0;;) {
    wl_batch *b;
    must(wl_run_next(run, &b, &err), &err);
    if (!b) break;
    at += b->n_rows - b->skip;
    wl_batch_give(b);
  }
  CHECK("joins: LIMIT ends what would not end", at == 100000 && wl_clock_ns() - start < 5e9);
  wl_run_close(run);
  close_cross(&q);
}

/* ---- lookups themselves */

static void budgets(rng *r) {
  query q = {.n_joins = 1, .threads = 2};
  q.tables[0] = make_table(r, 1, 20, 0, 0, false);
  q.tables[1] = make_table(r, 66000, 20000, 0, 0, false);
  wl_error err = {0};
  wl_lookup *l = NULL;
  for (int kind = 0; kind < N_KINDS; kind++) {
    q.joins[0] = (join){.source = 1, .filtered = true};
    set_kind(&q.joins[0], kind);
    wl_status rc = build(&q, &q.joins[0], &l, 1000, &err);
    char name[80];
    snprintf(name, sizeof name, "joins: a lookup by %s over its budget", kind_names[kind]);
    CHECK(name, rc == WL_NOT_TAKEN && !l && strstr(err.text, "host_budget"));
  }
  free_table(&q.tables[0]);
  free_table(&q.tables[1]);
}

int main(int argc, char **argv) {
  rng r = {argc > 1 ? strtoull(argv[1], NULL, 10) : 1};
  int rounds = argc > 2 ? atoi(argv[2]) : TEST_SANITIZED ? 40 : 400;
  if (sqlite3_libversion_number() <= 0 || !wl_api_bind(NULL)) return 1;
  random_joins(&r, rounds);
  long_runs(&r);
  large_tables(&r);
  single_joins(&r);
  streams(&r);
  interrupts(&r);
  budgets(&r);
  return tap_done();
}
