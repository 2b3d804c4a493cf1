/*
** The pipelines as a tree; see plantree.h.
**
** The last pipeline, which gives the results, comes first. The lines under a pipeline are its steps
** in the order in which they run, then what its sink does with all rows. The pipelines that a step
** reads from are under that step. A pipeline that several others read is drawn once; the others
** refer to it by its number.
*/
#include "explain/plantree.h"
#include "base/mem.h"
#include "explain/exprtext.h"
#include <string.h>

typedef struct tree {
  wl_conn *c;
  const wl_pipelines *list;
  wl_rowset *r;
  wl_arena *a;
  int next_id;
  bool *drawn; /* by number: whether a pipeline is in the tree */
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

/* The estimate. If the rows are 10 times as many, or a tenth, it says so: the plan may be bad. */
static const char *estimate_beside(wl_arena *a, const wl_actual *x) {
  enum { FAR = 10, FEW = 100 };
  double n = x->n_rows > 1 ? (double)x->n_rows : 1, e = x->estimated > 1 ? x->estimated : 1;
  if (n >= FAR * e && n > FEW)
    return say(a, " (estimated %.0f, got %.0f times as many)", x->estimated, n / e);
  if (e >= FAR * n && e > FEW && !x->may_stop)
    return say(a, " (estimated %.0f, %.0f times too many)", x->estimated, e / n);
  return say(a, " (estimated %.0f)", x->estimated);
}

const char *wl_plantree_actual(wl_arena *a, const wl_actual *x) {
  const char *s = "";
  if (x->n_rows >= 0 && x->of >= 0)
    s = say(a, "%lld row%s from %lld", x->n_rows, plural(x->n_rows), x->of);
  else if (x->n_rows >= 0)
    s = say(a, "%lld row%s", x->n_rows, plural(x->n_rows));
  if (x->estimated >= 0 && x->n_rows >= 0) s = say(a, "%s%s", s, estimate_beside(a, x));
  if (x->ns >= 0) s = say(a, "%s%s%.3f ms", s, *s ? ", " : "", x->ns / 1e6);
  if (x->n_bytes >= 0) s = say(a, "%s%s%s", s, *s ? ", " : "", bytes_words(a, x->n_bytes));
  if (x->n_bytes >= 0 && x->ns > 0) s = say(a, "%s, %.2f GB/s", s, (double)x->n_bytes / x->ns);
  if (x->n_held > 0) s = say(a, "%s, holds %s", s, bytes_words(a, x->n_held));
  if (x->device) s = say(a, "%s%s%s", s, *s ? ", " : "", x->device);
  return *s ? say(a, " | %s", s) : "";
}

static const wl_actual nothing = {.n_rows = -1, .of = -1, .n_bytes = -1, .estimated = -1, .ns = -1};

static const char *machine(bool on_device) {
  return on_device ? "gpu" : "cpu";
}

/* The estimate, if there are no measurements beside which it is shown. */
static const char *estimate_words(tree *t, double n) {
  return t->list->measures || n < 0 ? ""
                                    : say(t->a, " (estimated %.0f row%s)", n, plural((wl_i64)n));
}

static void pipeline_lines(tree *t, const wl_pipeline *p, int parent);

static void need_lines(tree *t, int number, int parent) {
  const wl_pipeline *p = wl_pipelines_find(t->list, number);
  if (p) pipeline_lines(t, p, parent);
}

/* ---- steps */

static const char *source_name(tree *t, const wl_pipeline *p, int source) {
  if (source < 0) return p->program->table; /* what the pipeline before left */
  const wl_bsource *src = &p->q->sources[source];
  if (!src->table && !src->derived) return "one row";
  if (src->table && src->name && sqlite3_stricmp(src->table, src->name) != 0)
    return say(t->a, "%s AS %s", src->table, src->name);
  return src->name ? src->name : "a subquery";
}

/* " FILTER …", or nothing. */
static const char *filter_words(tree *t, const wl_pipeline *p, const wl_jlist *l) {
  return l->n ? say(t->a, " FILTER %s", wl_exprtext_list(t->a, t->c->store, p->q, l)) : "";
}

/* Whether the pipeline may end before it has read all rows: LIMIT, or a subquery's first row. */
static bool may_stop(const wl_pipeline *p) {
  wl_sink_kind sink = p->program->sink;
  if (!wl_sink_takes_rows(sink) || sink == WL_SINK_SORT) return false;
  return p->program->limit >= 0 || (p->sub && p->sub->kind != 'l');
}

/* The measurements of a step, or of the sink. */
static wl_actual flow_numbers(const wl_pipeline *p, int part, double estimated) {
  if (!wl_pipeline_counted(p)) return nothing;
  wl_flow f = wl_pipeline_flow(p, part);
  wl_actual x = {f.n_out, f.n_in, f.n_bytes, estimated, f.ns, machine(p->on_device), 0, false};
  x.may_stop = may_stop(p);
  if (p->steps[0].source < 0) x.n_bytes = -1;         /* only columns of tables are counted */
  if (f.ns <= 0 && !f.n_bytes) x.ns = x.n_bytes = -1; /* it has no instructions of its own */
  return x;
}

static void load_line(tree *t, const wl_column_load *l, int parent) {
  wl_actual got = nothing;
  if (!l) return;
  if (t->list->measures) got = (wl_actual){l->n_rows, -1, l->n_bytes, -1, l->ns, "cpu", 0, false};
  line(t, parent,
       say(t->a, "LOAD %d column%s %s%s", l->n_cols, plural(l->n_cols), l->from,
           wl_plantree_actual(t->a, &got)));
}

/* Whether pipeline p, which is needed by `by`, leaves rows of the source that `by` scans. */
static bool is_source(const wl_pipeline *p, const wl_pipeline *by) {
  int s = by->steps[0].source;
  bool marks = by->program->source == WL_SOURCE_UNMATCHED && p->q == by->q && p->program->also;
  if (marks) return true;
  return s < 0 || (p->derived && p->derived == by->q->sources[s].derived);
}

/* "SCAN orders columns a, b (10 rows) FILTER …" */
static void scan_lines(tree *t, const wl_pipeline *p, int parent) {
  const wl_pipeline_step *scan = &p->steps[0];
  wl_actual got = flow_numbers(p, 0, scan->estimated);
  const char *columns = "", *rows = "";
  int n = 0;
  for (int k = 0; k < p->q->n_cols; k++) n += p->q->cols[k].source == scan->source;
  if (n)
    columns = say(t->a, " column%s %s", plural(n),
                  wl_exprtext_columns(t->a, t->c->store, p->q, scan->source));
  if (scan->source >= 0)
    rows = say(t->a, " (%lld row%s)", p->n_source_rows, plural(p->n_source_rows));
  int id = line(
      t, parent,
      say(t->a, "%s %s%s%s%s%s%s", p->program->source == WL_SOURCE_UNMATCHED ? "UNMATCHED" : "SCAN",
          source_name(t, p, scan->source), columns, rows, filter_words(t, p, &scan->filters),
          scan->filters.n ? estimate_words(t, scan->estimated) : "",
          wl_plantree_actual(t->a, &got)));
  load_line(t, p->load, id);
  for (int k = 0; k < p->n_needs; k++) {
    const wl_pipeline *need = wl_pipelines_find(t->list, p->needs[k]);
    if (need && is_source(need, p)) pipeline_lines(t, need, id);
  }
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

static const char *on_words(tree *t, const wl_pipeline *p, const wl_jstep *st) {
  wl_jlist l = {WL_NEW_N(t->a, const wl_bexpr *, st->n_keys + st->tests.n + 1), 0};
  if (!l.e) return "";
  for (int k = 0; k < st->n_keys; k++) l.e[l.n++] = st->keys[k].cond;
  for (int k = 0; k < st->tests.n; k++) l.e[l.n++] = st->tests.e[k];
  return l.n ? say(t->a, " ON %s", wl_exprtext_list(t->a, t->c->store, p->q, &l)) : "";
}

static void join_lines(tree *t, const wl_pipeline *p, int k, int parent) {
  const wl_pipeline_step *step = &p->steps[k];
  wl_actual got = flow_numbers(p, k, step->estimated);
  bool marks = wl_how_keeps_unmatched(step->join->how);
  const char *what = step->reduces
                         ? "REDUCED BY"
                         : say(t->a, "%s JOIN", how_words(marks ? step->join->how : step->how));
  int id = line(t, parent,
                say(t->a, "%s %s%s%s%s%s", what, source_name(t, p, step->source),
                    on_words(t, p, step->join), filter_words(t, p, &step->filters),
                    estimate_words(t, step->estimated), wl_plantree_actual(t->a, &got)));
  need_lines(t, step->lookup, id);
}

/* ---- the sink */

static const char *lookup_words(tree *t, const wl_pipeline *p) {
  const wl_lookup *l = p->lookup;
  int n = p->program->joins[0].n_keys;
  const char *kind = n ? say(t->a, "LOOKUP by %d key%s", n, plural(n)) : "LOOKUP of all rows";
  kind = say(t->a, "%s over %s", kind, source_name(t, p, p->steps[0].source));
  if (!l) return kind; /* it failed */
  return say(t->a, "%s (%s%sholds %s)", kind,
             l->plan.kind == WL_KEYS_NONE     ? ""
             : l->direct                      ? "by value, "
             : l->plan.kind == WL_KEYS_VALUES ? "hash of values, "
                                              : "hash, ",
             l->plan.kind == WL_KEYS_NONE ? ""
             : l->unique                  ? "one row a key, "
                                          : "several rows a key, ",
             bytes_words(t->a, (wl_i64)l->n_bytes));
}

static const char *groups_words(tree *t, const wl_pipeline *p) {
  int n_keys = p->program->n_keys, n = p->program->n_accs;
  const char *keys = "", *functions = "";
  if (!n_keys && !n) return "GROUP of all rows";
  if (n_keys)
    keys = say(t->a, "%s %d key%s", p->q->grouped ? "GROUP BY" : "DISTINCT by", n_keys,
               plural(n_keys));
  const wl_program *m = p->program;
  for (int k = 0, n_rows = 0; k < m->n_finds; k++)
    if (m->finds[k].column >= 0)
      keys = say(t->a, "%s%s%s", keys, n_rows++ ? " and " : ", by row of ",
                 m->source_names[m->finds[k].column]);
  if (n) functions = say(t->a, "%sAGGREGATE %d function%s", n_keys ? ", " : "", n, plural(n));
  return say(t->a, "%s%s", keys, functions);
}

static const char *sink_words(tree *t, const wl_pipeline *p) {
  const wl_program *m = p->program;
  if (m->also &&
      wl_sink_takes_rows(m->sink)) /* the last pipeline into the sink says what it does */
    return say(t->a, "RESULT %d column%s", m->n_given, plural(m->n_given));
  switch (m->sink) {
  case WL_SINK_LOOKUP: return lookup_words(t, p);
  case WL_SINK_GROUPS: return groups_words(t, p);
  case WL_SINK_DISTINCT:
    return say(t->a, "DISTINCT by %d column%s", m->n_given, plural(m->n_given));
  case WL_SINK_SORT:
  case WL_SINK_SORT_KEYS: return say(t->a, "ORDER BY %d term%s", m->n_order, plural(m->n_order));
  default: return say(t->a, "RESULT %d column%s", m->n_given, plural(m->n_given));
  }
}

/* Where the device runs the steps, but the host sorts or compares the rows, or a LIMIT cuts them.
 */
static void finish_lines(tree *t, const wl_pipeline *p, int parent) {
  const wl_program *m = p->program;
  const wl_run_stats *run = p->run;
  wl_actual got = nothing, limit = nothing;
  bool sorts = m->sink == WL_SINK_SORT || m->sink == WL_SINK_DISTINCT;
  if (run) {
    got = (wl_actual){run->n_left, run->n_collected, -1, -1, run->ns_finish, "cpu", 0, false};
    limit.n_rows = run->n_left;
  }
  /* A device sorts within its launches. What the host collects, the host sorts. */
  if (sorts && p->on_device && (run ? run->n_collected > 0 : !p->orders_on_device))
    line(t, parent,
         say(t->a, "%s on the cpu%s", m->sink == WL_SINK_SORT ? "ORDER BY" : "DISTINCT",
             wl_plantree_actual(t->a, &got)));
  if (wl_program_after(m) || (m->limit < 0 && m->offset == 0)) return;
  const char *text = m->limit < 0 ? "" : say(t->a, "LIMIT %lld", m->limit);
  if (m->offset > 0) text = say(t->a, "%s%sOFFSET %lld", text, *text ? " " : "", m->offset);
  line(t, parent, say(t->a, "%s%s", text, wl_plantree_actual(t->a, &limit)));
}

/* The functions that SQLite computes row by row, each with its share of the pipeline's time. */
static void call_lines(tree *t, const wl_pipeline *p, int parent) {
  const wl_program *m = p->program;
  double all = 0;
  bool counted = wl_pipeline_counted(p);
  for (int pc = 0; counted && pc < m->n_code; pc++) all += p->run->tally[pc].ns;
  for (int pc = 0; pc < m->n_code; pc++) {
    if (m->code[pc].op != WL_OP__Call) continue;
    const char *share = "";
    if (counted && all > 0) {
      const wl_tally *x = &p->run->tally[pc];
      share = say(t->a, " | %lld row%s, %.3f ms, %.0f %% of the time", x->n_rows, plural(x->n_rows),
                  p->run->ns_rows * (x->ns / all) / 1e6, 100 * x->ns / all);
    }
    line(t, parent,
         say(t->a, "CALL of SQLite: %s%s", some(wl_program_call_text(m, &m->code[pc], t->a)),
             share));
  }
}

/* ---- a pipeline */

static wl_actual pipeline_numbers(const wl_pipeline *p) {
  const wl_run_stats *run = p->run;
  wl_actual x = nothing;
  if (!run) return x;
  x.estimated = p->estimated;
  x.may_stop = may_stop(p);
  x.n_rows = !p->kept ? run->n_left : p->lookup->uncounted ? -1 : p->lookup->n_rows;
  if (p->kept) return x; /* nothing ran */
  x.ns = run->ns_rows + run->ns_finish;
  x.n_held = run->n_held;
  x.device = machine(p->on_device);
  if (p->on_device && p->n_col_bytes) x.n_bytes = p->n_col_bytes;
  if (!wl_pipeline_counted(p)) return x;
  x.of = wl_pipeline_flow(p, p->n_steps).n_in;
  if (p->steps[0].source < 0) return x;
  x.n_bytes = 0;
  for (int k = 0; k <= p->n_steps; k++) x.n_bytes += wl_pipeline_flow(p, k).n_bytes;
  return x;
}

static void subquery_lines(tree *t, const wl_pipeline *p, int parent) {
  for (int k = 0; k < p->n_needs; k++) {
    const wl_pipeline *need = wl_pipelines_find(t->list, p->needs[k]);
    if (!need || !need->sub) continue;
    char kind = need->sub->kind;
    int id = line(t, parent,
                  say(t->a, "SUBQUERY %d, %s", (int)(need->sub - p->q->subs) + 1,
                      kind == 'v'   ? "for its value"
                      : kind == 'e' ? "for whether it has rows"
                                    : "for the list of its rows"));
    pipeline_lines(t, need, id);
  }
}

static void pipeline_lines(tree *t, const wl_pipeline *p, int parent) {
  if (t->drawn[p->number]) {
    line(t, parent, say(t->a, "PIPELINE %d, as above", p->number));
    return;
  }
  t->drawn[p->number] = true;
  const char *words = sink_words(t, p);
  wl_actual got = pipeline_numbers(p);
  int id =
      line(t, parent,
           say(t->a, "PIPELINE %d on the %s%s leaves %s: %s%s%s", p->number, machine(p->on_device),
               p->kept ? ", kept from an earlier statement," : "", p->leaves, words,
               estimate_words(t, p->estimated), wl_plantree_actual(t->a, &got)));
  if (p->on_device && p->n_col_bytes)
    line(t, id,
         say(t->a, "TRANSFER %s, columns of %.1f MB", wl_transfer_name(t->c->set.transfer.mode),
             (double)p->n_col_bytes / 1e6));
  subquery_lines(t, p, id);
  scan_lines(t, p, id);
  for (int k = 1; k < p->n_steps; k++) join_lines(t, p, k, id);
  call_lines(t, p, id);
  finish_lines(t, p, id);
}

wl_status wl_plantree_pipelines(wl_conn *c, const wl_pipelines *list, int parent, int next_id,
                                wl_rowset *r, wl_error *err) {
  tree t = {.c = c, .list = list, .r = r, .a = &r->arena, .next_id = next_id};
  t.drawn = WL_NEW_N(t.a, bool, list->n + 1);
  if (!t.drawn) return wl_nomem(err);
  if (list->last) pipeline_lines(&t, list->last, parent);
  return t.a->failed ? wl_nomem(err) : WL_OK;
}
