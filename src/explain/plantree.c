/*
** The plan as a tree; see plantree.h. Used by EXPLAIN QUERY PLAN for statements over more than one
** table, and by EXPLAIN ANALYZE.
**
** The lines of a query are nested, last step first: LIMIT, ORDER BY, DISTINCT, GROUP BY, then the
** pipeline. Its children are the scan and the join steps in their order. The lookup of a step is
** its child. The queries of a derived source are children of its first reader.
*/
#include "explain/plantree.h"
#include "base/mem.h"
#include "program/compile.h"
#include "exec/cpu/evaluate.h"
#include "explain/exprtext.h"
#include "column/dict.h"
#include <stdio.h>
#include <string.h>

typedef struct held {
  struct held *next;
  wl_column *column;
} held;

/* The estimates for a query. */
typedef struct expected {
  struct expected *next;
  const wl_query *q;
  const wl_jplan *plan;
  wl_i64 *n_rows;   /* rows of each source */
  wl_column **cols; /* the columns in memory */
  double first;     /* rows that pass the filters of the scan */
  double joined;    /* rows that also pass the joins */
  double out;       /* rows of the result */
} expected;

typedef struct tree {
  wl_conn *c;
  const wl_notes *notes;
  wl_rowset *r;
  wl_arena *a;
  int next_id;
  expected *first;
  struct held *held; /* columns that the estimates use */
  bool *told;        /* whether the lines of each derived source are written */
  wl_error *err;
} tree;

/* Returns "" for NULL, which the arena returns without memory. The arena remembers that. */
static const char *some(const char *s) {
  return s ? s : "";
}
#define say(...) some(wl_arena_printf(__VA_ARGS__))

int wl_plantree_line(wl_rowset *r, int id, int parent, const char *text) {
  wl_cell *row = wl_rowset_row(r);
  if (!row) return id;
  wl_cell_int(&row[0], id);
  wl_cell_int(&row[1], parent);
  wl_cell_int(&row[2], 0);
  wl_cell_text(r, &row[3], text);
  return id;
}

static int line(tree *t, int parent, const char *text) {
  return wl_plantree_line(t->r, t->next_id++, parent, text);
}

static const char *plural(wl_i64 n) {
  return n == 1 ? "" : "s";
}

/* ---- numbers */

static const char *bytes_words(wl_arena *a, wl_i64 n) {
  if (n < 10000) return say(a, "%lld bytes", n);
  if (n < 10000000) return say(a, "%.1f kB", (double)n / 1e3);
  return say(a, "%.1f MB", (double)n / 1e6);
}

const char *wl_plantree_actual(wl_arena *a, const wl_actual *x) {
  const char *s = "";
  if (x->n_rows >= 0 && x->of >= 0)
    s = say(a, "%lld row%s from %lld", x->n_rows, plural(x->n_rows), x->of);
  else if (x->n_rows >= 0)
    s = say(a, "%lld row%s", x->n_rows, plural(x->n_rows));
  if (x->estimated >= 0) s = say(a, "%s (estimated %.0f)", s, x->estimated);
  if (x->ns >= 0) s = say(a, "%s%s%.3f ms", s, *s ? ", " : "", x->ns / 1e6);
  if (x->n_bytes >= 0) s = say(a, "%s%s%s", s, *s ? ", " : "", bytes_words(a, x->n_bytes));
  if (x->n_bytes >= 0 && x->ns > 0) s = say(a, "%s, %.2f GB/s", s, (double)x->n_bytes / x->ns);
  if (x->device) s = say(a, "%s%s%s", s, *s ? ", " : "", x->device);
  return *s ? say(a, " | %s", s) : "";
}

static const char *machine_of(const wl_query_note *note) {
  return note->on_device ? "gpu" : "cpu";
}

static const wl_actual nothing = {.n_rows = -1, .of = -1, .n_bytes = -1, .estimated = -1, .ns = -1};

/* ---- estimates */

static const expected *expect(tree *t, const wl_query *q);

/* Guesses the share of rows that pass a condition without known statistics. Branches may be shared,
** so the depth is limited. */
static double guess(const wl_bexpr *e, int depth) {
  double a, b;
  if (depth > 12) return 0.3;
  switch (e->kind) {
  case WL_B_AND: return guess(e->a, depth + 1) * guess(e->b, depth + 1);
  case WL_B_OR:
    a = guess(e->a, depth + 1);
    b = guess(e->b, depth + 1);
    return a + b - a * b;
  case WL_B_COMPARE: return e->op == WL_OP_EQ ? 0.1 : e->op == WL_OP_NE ? 0.9 : 0.4;
  case WL_B_IS:
  case WL_B_ISNULL: return 0.1;
  case WL_B_IN: return e->n_list < 8 ? 0.1 * e->n_list : 0.8;
  case WL_B_NOT: return 1 - guess(e->a, depth + 1);
  case WL_B_CONST: return e->value.t == WL_T_INT ? e->value.v != 0 : 0.5;
  default: return 0.3;
  }
}

typedef struct sharing {
  tree *t;
  const expected *x;
} sharing;

/* Whether an expression can be evaluated on samples: its columns are in memory, and it needs
** nothing else. */
static bool is_known(const expected *x, const wl_bexpr *e, int *left) {
  if (!e) return true;
  if (--*left < 0) return false;
  if (e->kind == WL_B_COLUMN) return x->cols[e->slot] != NULL;
  if (e->kind >= WL_B_OUTER || e->kind == WL_B_PARAM || e->kind == WL_B_AGG) return false;
  for (int i = 0; i < e->n_list; i++)
    if (!is_known(x, e->list[i], left)) return false;
  return is_known(x, e->a, left) && is_known(x, e->b, left);
}

static double share(void *arg, int source, const wl_jlist *list) {
  const sharing *s = arg;
  const wl_query *q = s->x->q;
  int left = 2000;
  bool known = s->x->n_rows[source] > 0;
  for (int k = 0; k < list->n && known; k++) known = is_known(s->x, list->e[k], &left);
  /* Columns of other sources are not read, but each must exist. */
  wl_column *any = NULL, **cols = WL_NEW_N(s->t->a, wl_column *, q->n_cols + 1);
  for (int k = 0; k < q->n_cols && known; k++) {
    known = q->cols[k].source != source || s->x->cols[k] != NULL;
    if (s->x->cols[k]) any = s->x->cols[k];
  }
  known = known && any && cols;
  for (int k = 0; k < q->n_cols && known; k++) cols[k] = s->x->cols[k] ? s->x->cols[k] : any;
  double all = 1;
  for (int k = 0; k < list->n; k++) all *= guess(list->e[k], 0);
  if (!known) return all;
  wl_compile_in in = {.query = q,
                      .source_rows = s->x->n_rows,
                      .cols = cols,
                      .evaluate = wl_cpu_evaluate,
                      .max_text = 1000000000,
                      .max_pattern = 50000};
  return wl_compile_share(s->t->a, &in, source, list);
}

/* The number of different values of an expression: that of a column in memory, else a guess. */
static double n_values(const expected *x, const wl_bexpr *e, double rows) {
  const wl_column *c = e->kind == WL_B_COLUMN ? x->cols[e->slot] : NULL;
  if (c && c->dict) return c->dict->n;
  if (c && (c->domain.mask & ~WL_M(WL_T_NULL)) == WL_M(WL_T_INT))
    return (double)c->domain.hi - (double)c->domain.lo + 1;
  return rows > 10 ? rows / 10 : rows;
}

static double n_groups(const expected *x, wl_bexpr *const *e, int n, double rows) {
  double groups = 1;
  for (int k = 0; k < n && groups < rows; k++) groups *= n_values(x, e[k], rows);
  return groups < rows ? groups : rows;
}

static double given(const expected *x) {
  const wl_query *q = x->q;
  double rows = x->joined;
  if (q->grouped)
    rows = n_groups(x, q->groups, q->n_groups, rows);
  else if (q->aggregate)
    rows = 1;
  if (q->having) rows *= guess(q->having, 0);
  if (q->distinct) rows = n_groups(x, q->results, q->n_results, rows);
  if (q->limit && q->limit->kind == WL_B_CONST && q->limit->value.t == WL_T_INT) {
    double most = (double)(wl_i64)q->limit->value.v;
    if (most >= 0 && most < rows) rows = most;
  }
  return rows;
}

/* Holds a column that is in memory until the tree is complete. NULL: it is not in memory. */
static wl_column *hold_column(tree *t, const wl_table *table, int col) {
  held *h = WL_NEW(t->a, held);
  if (!h) return NULL;
  h->column = wl_source_column(table->source, col);
  h->next = t->held;
  t->held = h;
  return h->column;
}

/* The rows of a source, and those of its columns that are in memory. */
static wl_i64 source_rows(tree *t, const wl_query *q, int s, wl_column **cols) {
  const wl_bsource *src = &q->sources[s];
  wl_table *table;
  wl_error ignored;
  bool exact;
  double n = 0;
  for (int k = 0; src->derived && k < src->derived->n_arms; k++) {
    const expected *arm = expect(t, src->derived->arms[k]);
    if (arm) n += arm->out;
  }
  if (src->derived) return n < 9e18 ? (wl_i64)n : WL_I64_MAX;
  if (!src->table) return 1;
  if (wl_store_table(t->c->store, src->schema, src->table, &table, &ignored)) return 0;
  wl_i64 rows = wl_source_estimate(table->source, &exact);
  for (int k = 0; k < q->n_cols && exact; k++) {
    if (q->cols[k].source == s) cols[k] = hold_column(t, table, q->cols[k].column);
  }
  return rows;
}

/* NULL: out of memory, or the planner refuses; t->err says why. */
static const expected *expect(tree *t, const wl_query *q) {
  for (const expected *x = t->first; x; x = x->next)
    if (x->q == q) return x;
  expected *x = WL_NEW(t->a, expected);
  wl_jlist list;
  wl_status rc = WL_OK;
  if (!x) return NULL;
  x->q = q;
  x->n_rows = WL_NEW_N(t->a, wl_i64, q->n_sources + 1);
  x->cols = WL_NEW_N(t->a, wl_column *, q->n_cols + 1);
  if (!x->n_rows || !x->cols) return NULL;
  for (int s = 0; s < q->n_sources; s++) x->n_rows[s] = source_rows(t, q, s, x->cols);
  const wl_query_note *note = t->notes ? wl_notes_find(t->notes, q) : NULL;
  if (note && note->part_of) { /* the estimates of the run */
    memcpy(x->n_rows, note->n_rows, (size_t)q->n_sources * sizeof *x->n_rows);
    x->plan = note->plan;
    x->first = note->n_first;
  } else if (q->n_sources > 1) {
    sharing s = {t, x};
    wl_jplan *plan;
    wl_jplan_in in = {.q = q,
                      .n_rows = x->n_rows,
                      .cols = x->cols,
                      .share = share,
                      .arg = &s,
                      .driver = q->ordered_by - 1};
    rc = wl_jplan_make(t->a, &in, &plan, t->err);
    if (rc) return NULL;
    x->plan = plan;
    x->first = plan->n_first;
  } else {
    sharing s = {t, x};
    if (wl_conjuncts(t->a, q->where, &list, t->err)) return NULL;
    x->first = (double)x->n_rows[0] * (list.n ? share(&s, 0, &list) : 1);
  }
  const wl_jplan *plan = x->plan;
  x->joined = plan && plan->n_steps ? plan->steps[plan->n_steps - 1].n_out : x->first;
  x->out = given(x);
  x->next = t->first;
  t->first = x;
  return x;
}

/* ---- sources */

static const char *source_name(tree *t, const wl_bsource *src) {
  if (!src->table && !src->derived) return "one row";
  if (src->table && src->name && sqlite3_stricmp(src->table, src->name) != 0)
    return say(t->a, "%s AS %s", src->table, src->name);
  return src->name ? src->name : "a subquery";
}

/* "orders columns a, b (about 10 rows, 1 of 2 columns in memory)" */
static const char *source_words(tree *t, const expected *x, int s) {
  const wl_query *q = x->q;
  const wl_bsource *src = &q->sources[s];
  int n = 0, here = 0;
  bool exact = false;
  wl_table *table;
  wl_error ignored;
  for (int k = 0; k < q->n_cols; k++) {
    if (q->cols[k].source != s) continue;
    n++;
    here += x->cols[k] != NULL;
  }
  const char *names = n ? wl_exprtext_columns(t->a, t->c->store, q, s) : "";
  const char *text =
      say(t->a, "%s%s%s", source_name(t, src), n ? n == 1 ? " column " : " columns " : "", names);
  if (t->notes || (!src->table && !src->derived)) return text;
  if (src->table && !wl_store_table(t->c->store, src->schema, src->table, &table, &ignored))
    wl_source_estimate(table->source, &exact);
  text = say(t->a, "%s (%s%lld row%s", text, exact ? "" : "about ", x->n_rows[s],
             plural(x->n_rows[s]));
  if (src->table) return say(t->a, "%s, %d of %d column%s in memory)", text, here, n, plural(n));
  return say(t->a, "%s)", text);
}

static wl_status query_lines(tree *t, const wl_query *q, int parent);

/* Writes the queries of a derived source, unless they have been written. */
static wl_status derived_lines(tree *t, const wl_query *q, int s, int parent) {
  const wl_derived *d = q->sources[s].derived;
  const char *name = q->sources[s].name ? q->sources[s].name : "a subquery";
  wl_status rc = WL_OK;
  if (!d) return WL_OK;
  if (t->told[d->id]) {
    line(t, parent, say(t->a, "%s, as above", name));
    return WL_OK;
  }
  t->told[d->id] = true;
  for (int k = 0; k < d->n_arms && !rc; k++) {
    const wl_query_note *note = t->notes ? wl_notes_find(t->notes, d->arms[k]) : NULL;
    const expected *x = expect(t, d->arms[k]);
    if (!x) return t->err->code ? t->err->code : wl_nomem(t->err);
    wl_actual got = nothing;
    if (note) {
      got.n_rows = note->n_given;
      got.estimated = x->out;
      got.ns = note->ns;
    }
    const char *text = say(t->a, "QUERY %s", name);
    if (d->n_arms > 1) text = say(t->a, "%s, part %d of %d", text, k + 1, d->n_arms);
    if (t->notes && !note) text = say(t->a, "%s | not run", text);
    rc = query_lines(t, d->arms[k],
                     line(t, parent, say(t->a, "%s%s", text, wl_plantree_actual(t->a, &got))));
  }
  return rc;
}

static void load_line(tree *t, const wl_query_note *note, int s, int parent) {
  const wl_load_note *l = note ? &note->loads[s] : NULL;
  if (!l || !l->n_cols) return;
  wl_actual got = {l->n_rows, -1, l->n_bytes, -1, l->ns, "cpu"};
  line(t, parent,
       say(t->a, "LOAD %d column%s %s%s", l->n_cols, plural(l->n_cols), l->from,
           wl_plantree_actual(t->a, &got)));
}

/* ---- the pipeline */

static const char *expected_rows(tree *t, double n) {
  return t->notes ? "" : say(t->a, " (estimated %.0f rows)", n);
}

/* " FILTER …", or nothing. */
static const char *filter_words(tree *t, const wl_query *q, const wl_jlist *l) {
  return l->n ? say(t->a, " FILTER %s", wl_exprtext_list(t->a, t->c->store, q, l)) : "";
}

static wl_actual flow_numbers(const wl_query_note *note, int part, double estimated) {
  wl_flow f = wl_query_note_flow(note, part);
  wl_actual x = {f.n_out, f.n_in, f.n_bytes, estimated, f.ns, "cpu"};
  return x;
}

static wl_status scan_lines(tree *t, const expected *x, const wl_query_note *note, int parent) {
  const wl_query *q = x->q;
  int s = x->plan ? x->plan->driver : 0;
  wl_jlist own;
  wl_actual got = nothing;
  wl_status rc = WL_OK;
  if (x->plan)
    own = x->plan->filters;
  else
    rc = wl_conjuncts(t->a, q->where, &own, t->err);
  if (rc) return rc;
  if (note && note->on_device)
    got.n_rows = note->n_rows[s];
  else if (note)
    got = flow_numbers(note, 0, x->first);
  int id = line(t, parent,
                say(t->a, "SCAN %s%s%s%s", source_words(t, x, s), filter_words(t, q, &own),
                    own.n ? expected_rows(t, x->first) : "", wl_plantree_actual(t->a, &got)));
  load_line(t, note, s, id);
  return derived_lines(t, q, s, id);
}

static const char *how_words(wl_join_how how) {
  switch (how) {
  case WL_HOW_INNER: return "INNER";
  case WL_HOW_LEFT: return "LEFT";
  case WL_HOW_SEMI: return "SEMI";
  case WL_HOW_ANTI: return "ANTI";
  case WL_HOW_MARK: return "MARK";
  case WL_HOW_RIGHT: return "RIGHT";
  case WL_HOW_FULL: return "FULL";
  }
  return "";
}

static const char *on_words(tree *t, const wl_query *q, const wl_jstep *st) {
  wl_jlist l = {WL_NEW_N(t->a, const wl_bexpr *, st->n_keys + st->tests.n + 1), 0};
  if (!l.e) return "";
  for (int k = 0; k < st->n_keys; k++) l.e[l.n++] = st->keys[k].cond;
  for (int k = 0; k < st->tests.n; k++) l.e[l.n++] = st->tests.e[k];
  return l.n ? say(t->a, " ON %s", wl_exprtext_list(t->a, t->c->store, q, &l)) : "";
}

static wl_status step_lines(tree *t, const expected *x, const wl_query_note *note, int k,
                            int parent) {
  const wl_query *q = x->q;
  const wl_jstep *st = &x->plan->steps[k];
  const wl_build_note *b = note ? &note->builds[k] : NULL;
  wl_actual got = nothing, made = nothing;
  const char *reducers = "";
  if (note && !note->on_device) got = flow_numbers(note, k + 1, st->n_out);
  int id = line(t, parent,
                say(t->a, "%s JOIN %s%s%s%s%s", how_words(st->how),
                    source_name(t, &q->sources[st->source]), on_words(t, q, st),
                    filter_words(t, q, &st->after), expected_rows(t, st->n_out),
                    wl_plantree_actual(t->a, &got)));
  const char *kind =
      st->n_keys ? say(t->a, "by %d key%s", st->n_keys, plural(st->n_keys)) : "of all rows";
  if (b && b->done) {
    made = (wl_actual){b->n_kept, b->n_in, b->n_read, st->n_build, b->ns, "cpu"};
    if (b->found) made.n_bytes = -1; /* nothing was read */
    kind = say(t->a, "%s (%s%s, %s, holds %s)", kind, b->found ? "kept, " : "", b->kind,
               b->unique ? "one row a key" : "several rows a key", bytes_words(t->a, b->n_bytes));
  }
  for (int j = k + 1; j < x->plan->n_steps; j++)
    if (st->reducers >> j & 1)
      reducers = say(t->a, "%s%s%s", reducers, *reducers ? ", " : " REDUCED BY ",
                     source_name(t, &q->sources[x->plan->steps[j].source]));
  bool thins = st->filters.n || st->reducers;
  int lookup =
      line(t, id,
           say(t->a, "LOOKUP %s over %s%s%s%s%s", kind, source_words(t, x, st->source),
               filter_words(t, q, &st->filters), reducers,
               thins ? expected_rows(t, st->n_build) : "", wl_plantree_actual(t->a, &made)));
  load_line(t, note, st->source, lookup);
  return derived_lines(t, q, st->source, lookup);
}

/* ---- a query */

/* Writes the lines above the pipeline. Returns the id of the last one. */
static int upper_lines(tree *t, const expected *x, const wl_query_note *note, int id) {
  const wl_query *q = x->q;
  wl_arena *a = t->a;
  wl_actual got = nothing;
  if (q->limit || q->offset) {
    const char *text = "LIMIT";
    if (q->limit) text = say(a, "LIMIT %s", wl_exprtext_expr(a, t->c->store, q, q->limit));
    if (q->offset)
      text = say(a, "%s OFFSET %s", text, wl_exprtext_expr(a, t->c->store, q, q->offset));
    if (note) got.n_rows = note->n_given;
    id = line(t, id, say(a, "%s%s", text, wl_plantree_actual(a, &got)));
  }
  got = nothing;
  if (note) {
    /* A device sorts within its launches. What the host gathers, the host sorts. */
    bool here = !note->on_device || note->run.n_sorted;
    if (here) got.ns = note->run.ns[WL_PHASE_SORT];
    got.device = here ? "cpu" : "gpu";
    if (note->run.n_sorted)
      got.n_rows = note->run.n_sorted;
    else if (!note->on_device && !q->aggregate)
      got.n_rows = wl_query_note_flow(note, wl_query_note_last(note)).n_in;
  }
  if (q->n_order) {
    id = line(t, id,
              say(a, "ORDER BY %d term%s%s", q->n_order, plural(q->n_order),
                  wl_plantree_actual(a, &got)));
    got = nothing;
  }
  if (q->distinct && note && !q->grouped && note->run.n_groups) { /* it was computed as groups */
    got.n_rows = note->run.n_groups;
    got.ns = note->run.ns[WL_PHASE_GROUP];
    got.device = machine_of(note);
  }
  if (q->distinct) id = line(t, id, say(a, "DISTINCT%s", wl_plantree_actual(a, &got)));
  got = nothing;
  if (q->grouped) {
    double groups = n_groups(x, q->groups, q->n_groups, x->joined);
    if (note) {
      got.n_rows = note->run.n_groups;
      got.estimated = groups;
      got.ns = note->run.ns[WL_PHASE_GROUP];
      got.device = machine_of(note);
    }
    id = line(t, id,
              say(a, "GROUP BY %d key%s%s%s", q->n_groups, plural(q->n_groups),
                  expected_rows(t, groups), wl_plantree_actual(a, &got)));
  }
  return id;
}

static wl_status query_lines(tree *t, const wl_query *q, int parent) {
  const expected *x = expect(t, q);
  wl_arena *a = t->a;
  wl_status rc = WL_OK;
  if (!x) return t->err->code ? t->err->code : wl_nomem(t->err);
  const wl_query_note *note = t->notes ? wl_notes_find(t->notes, q) : NULL;
  if (note && !note->part_of) note = NULL; /* it failed before it ran */
  for (int k = 0; k < q->n_subs && !rc; k++) {
    const wl_bsub *sub = &q->subs[k];
    const wl_query_note *ran = t->notes ? wl_notes_find(t->notes, sub->query) : NULL;
    wl_actual got = nothing;
    if (ran) got = (wl_actual){ran->n_given, -1, -1, -1, ran->ns, NULL};
    const char *what = sub->kind == 'v'   ? "for its value"
                       : sub->kind == 'e' ? "for whether it has rows"
                                          : "for the list of its rows";
    rc = query_lines(
        t, sub->query,
        line(t, parent, say(a, "SUBQUERY %d, %s%s", k + 1, what, wl_plantree_actual(a, &got))));
  }
  if (rc) return rc;
  int id = upper_lines(t, x, note, parent);
  wl_actual got = nothing;
  if (note) {
    got.ns = note->run.ns[WL_PHASE_SCAN];
    got.device = machine_of(note);
    got.n_bytes = note->on_device ? note->n_col_bytes : 0;
    for (int k = 0; !note->on_device && k <= wl_query_note_last(note); k++)
      got.n_bytes += wl_query_note_flow(note, k).n_bytes;
    if (!note->on_device) got.n_rows = wl_query_note_flow(note, wl_query_note_last(note)).n_in;
  }
  int n = q->aggregate ? q->n_aggs : q->n_results;
  id = line(t, id,
            say(a, "%s %d %s%s%s", q->aggregate ? "AGGREGATE" : "RESULT", n,
                q->aggregate ? "function" : "column", plural(n), wl_plantree_actual(a, &got)));
  rc = scan_lines(t, x, note, id);
  for (int k = 0; x->plan && k < x->plan->n_steps && !rc; k++) rc = step_lines(t, x, note, k, id);
  return rc;
}

wl_status wl_plantree_query(wl_conn *c, const wl_query *q, const wl_notes *notes, int parent,
                            int next_id, wl_rowset *r, wl_error *err) {
  tree t = {.c = c, .notes = notes, .r = r, .a = &r->arena, .next_id = next_id, .err = err};
  t.told = WL_NEW_N(t.a, bool, q->n_derived + 1);
  wl_status rc = t.told ? query_lines(&t, q, parent) : wl_nomem(err);
  for (held *h = t.held; h; h = h->next) wl_column_drop(h->column);
  return rc;
}
