/*
** Makes one query ready to run; see schedule.h. The steps: columns of tables and derived sources,
** the join's plan, lookups from the last step to the first, the program.
*/
#include "exec/schedule.h"
#include "base/mem.h"
#include "base/clock.h"
#include "program/compile.h"
#include "exec/code.h"
#include "exec/cpu/evaluate.h"
#include "exec/lookup_cache.h"
#include "exec/pipelines.h"
#include "plan/row_order.h"
#include "exec/gpu/columns/devcol.h"
#include "exec/gpu/device.h"
#include "exec/gpu/limits.h"
#include "exec/gpu/sinks/order_device.h"
#include <stdio.h>
#include <string.h>

/* ---- columns */

/* Records the table's version. Called inside a read transaction. */
static wl_status note_seen(wl_schedule *x, const wl_table *t, wl_error *err) {
  for (int k = 0; k < x->n_seen; k++)
    if (x->seen[k].table == t->id) return WL_OK;
  size_t n = (size_t)x->n_seen, each = sizeof *x->seen;
  wl_seen *p = wl_mem_realloc(x->seen, n * each, (n + 1) * each);
  if (!p) return wl_nomem(err);
  x->seen = p;
  p[x->n_seen++] = (wl_seen){t->id, wl_source_stamp(t->source)};
  return WL_OK;
}

/* Gets the columns of one source that q reads. Stores references to them in `cols`. */
static wl_status source_columns(wl_schedule *x, const wl_query *q, int s, wl_column **cols,
                                wl_column **live, const char **names, wl_i64 *n_rows,
                                wl_column_load *load, wl_arena *arena, wl_error *err) {
  const wl_bsource *src = &q->sources[s];
  if (src->derived) {
    const wl_rows *m = &x->of_derived[src->derived->id]->rows;
    *n_rows = m->n_rows;
    for (int k = 0; k < q->n_cols; k++)
      if (q->cols[k].source == s) {
        cols[k] = wl_column_hold(m->cols[q->cols[k].column]);
        names[k] = wl_arena_printf(arena, "column %d", q->cols[k].column + 1);
      }
    return WL_OK;
  }
  *n_rows = 1;
  if (!src->table) return WL_OK;
  wl_table *t;
  bool changed;
  wl_snapshot snap = {0};
  int *want = WL_NEW_N(arena, int, q->n_cols + 1), n = 0;
  wl_status rc =
      want ? wl_store_table(x->env->store, src->schema, src->table, &t, err) : wl_nomem(err);
  if (rc) return rc;
  for (int k = 0; k < q->n_cols; k++)
    if (q->cols[k].source == s) want[n++] = q->cols[k].column;
  rc = wl_source_begin(t->source, &changed, err);
  if (!rc && (changed || t->id != src->table_id))
    rc = wl_fail(err, (wl_status)SQLITE_SCHEMA,
                 "the schema changed while the statement was starting");
  if (!rc && load) wl_column_load_begin(load, t, want, n);
  if (!rc) rc = wl_source_acquire(t->source, want, n, &snap, err);
  if (!rc && load) wl_column_load_end(load, t, &snap);
  if (!rc) rc = note_seen(x, t, err);
  wl_source_end(t->source);
  if (rc) {
    wl_snapshot_release(&snap);
    return rc;
  }
  *n_rows = snap.n_rows;
  n = 0;
  for (int k = 0; k < q->n_cols; k++)
    if (q->cols[k].source == s) {
      int c = q->cols[k].column;
      cols[k] = wl_column_hold(snap.cols[n++]);
      names[k] = wl_arena_printf(arena, "%s", c < 0 ? "rowid" : t->cols[c].name);
    }
  *live = snap.live; /* the caller takes over the reference */
  snap.live = NULL;
  wl_snapshot_release(&snap);
  return arena->failed ? wl_nomem(err) : WL_OK;
}

/*
** Appends the columns that say which rows are live to those that the query reads. If there are any,
** a copy of the query is compiled instead. The snapshot takes over the references of live.
*/
static wl_status add_live(const wl_query *q, wl_ready *r, wl_column **live, const char **names,
                          wl_compile_in *in, wl_error *err) {
  int n = 0, *slots = WL_NEW_N(&r->arena, int, q->n_sources + 1);
  wl_bcol *cols = WL_NEW_N(&r->arena, wl_bcol, q->n_cols + q->n_sources + 1);
  wl_query *copy = WL_NEW(&r->arena, wl_query);
  if (!slots || !cols || !copy) return wl_nomem(err);
  if (q->n_cols) memcpy(cols, q->cols, (size_t)q->n_cols * sizeof *cols);
  for (int s = 0; s < q->n_sources; s++) {
    slots[s] = -1;
    if (!live[s]) continue;
    slots[s] = q->n_cols + n++;
    cols[slots[s]] = (wl_bcol){.source = s, .column = WL_COLUMN_LIVE};
    names[slots[s]] = "live";
    r->snap.cols[slots[s]] = live[s];
    live[s] = NULL;
  }
  if (!n) return WL_OK;
  *copy = *q;
  copy->cols = cols;
  copy->n_cols = r->snap.n_cols = q->n_cols + n;
  in->query = copy;
  in->live = slots;
  return WL_OK;
}

/* ---- joins */

typedef struct share_arg {
  wl_arena *arena;
  const wl_compile_in *in;
} share_arg;

static double share(void *arg, int source, const wl_jlist *list) {
  share_arg *s = arg;
  return wl_compile_share(s->arena, s->in, source, list);
}

/* ---- lists of pipelines, for EXPLAIN */

/* Where a query's program lives: in the list if there is one, which outlives the run. */
static wl_arena *arena_of(const wl_schedule *x, wl_ready *r) {
  if (x->env->pipelines) return &x->env->pipelines->arena;
  return r->code ? &r->code->arena : &r->arena;
}

/* Where a join's plan and the programs that build its lookups live. The query's program does not
** refer to them. */
static wl_arena *plan_arena(const wl_schedule *x, wl_ready *r) {
  return x->env->pipelines ? &x->env->pipelines->arena : &r->arena;
}

/* The numbers of pipelines that another one needs. */
typedef struct numbers {
  int *v, n;
} numbers;

/* Each needed pipeline comes before, so there are no more of them than the list has by now. */
static wl_status open_numbers(const wl_schedule *x, numbers *to, wl_error *err) {
  wl_pipelines *l = x->env->pipelines;
  *to = (numbers){WL_NEW_N(&l->arena, int, l->n + 1), 0};
  return to->v ? WL_OK : wl_nomem(err);
}

static void need(numbers *to, int pipeline) {
  for (int k = 0; k < to->n; k++)
    if (to->v[k] == pipeline) return;
  to->v[to->n++] = pipeline;
}

static void need_node(const wl_node *n, numbers *to) {
  for (int k = 0; k < n->n_pipelines; k++) need(to, n->pipelines[k]);
}

static void need_source(const wl_schedule *x, const wl_query *q, int source, numbers *to) {
  const wl_derived *d = q->sources[source].derived;
  if (d) need_node(x->of_derived[d->id], to);
}

/* The subqueries that an expression uses. seen: marks visited nodes, so that each is visited
** once. */
static void need_subs(const wl_schedule *x, const wl_query *q, const wl_bexpr *e, bool *seen,
                      numbers *to) {
  if (!e || seen[e->id]) return;
  seen[e->id] = true;
  if (e->kind == WL_B_SUB || e->kind == WL_B_INSUB)
    need_node(wl_schedule_sub(x, &q->subs[e->index]), to);
  need_subs(x, q, e->a, seen, to);
  need_subs(x, q, e->b, seen, to);
  for (int k = 0; k < e->n_list; k++) need_subs(x, q, e->list[k], seen, to);
}

/* What a pipeline needs that scans a table, rows of other pipelines, or unmatched rows. */
static wl_status scan_needs(wl_schedule *x, const wl_query *q, const wl_pipeline *p, numbers *to,
                            wl_error *err) {
  wl_status rc = open_numbers(x, to, err);
  if (rc) return rc;
  for (int k = 0; k < q->n_subs; k++) need_node(wl_schedule_sub(x, &q->subs[k]), to);
  need_source(x, q, p->steps[0].source, to);
  for (int k = 1; k < p->n_steps; k++) need(to, p->steps[k].lookup);
  return WL_OK;
}

/* Lists the pipelines of a query, which are about to run. */
static wl_status list_query(wl_schedule *x, wl_node *node, const wl_listed *of, wl_ready *r,
                            wl_error *err) {
  const char *rows = node->derived ? "rows for later" : node->sub ? "a subquery's rows" : "results";
  numbers done; /* the pipelines into the same sink, or into the one before */
  wl_status rc = open_numbers(x, &done, err);
  if (!rc) rc = wl_pipelines_add(x->env->pipelines, of, r->program, err);
  if (rc) return rc;
  wl_pipeline *first = x->env->pipelines->query;
  first->on_device = r->device != NULL;
  first->orders_on_device = r->device && !wl_dorder_plan(r->program).why;
  for (int k = 0; k < r->snap.n_cols; k++)
    first->n_col_bytes += first->on_device
                              ? (wl_i64)wl_devcol_bytes(r->snap.cols[k], 0, r->snap.cols[k]->n_rows)
                              : (wl_i64)r->snap.cols[k]->n_bytes;
  bool of_rows = first->orders_on_device; /* a device also does the pipeline over these rows */
  const wl_program *groups = NULL;
  for (wl_pipeline *p = first; p && !rc; p = p->next) {
    numbers needs = done;
    wl_source_kind source = p->program->source;
    bool scans = source == WL_SOURCE_TABLE || source == WL_SOURCE_UNMATCHED;
    wl_error ignored;
    if (source == WL_SOURCE_ROWS) /* a device sorts them with the pipeline before */
      p->on_device = p->orders_on_device = of_rows;
    if (source == WL_SOURCE_UNMATCHED)
      p->on_device = r->device && !wl_gpu_fits(p->program, r->device, &ignored);
    if (source == WL_SOURCE_GROUPS) { /* a device does nothing without rows */
      p->on_device = r->device && !r->program->also && r->snap.n_rows > 0 &&
                     wl_gpu_finishes(groups) && !wl_gpu_fits(p->program, r->device, &ignored);
      p->orders_on_device = of_rows = p->on_device && !wl_dorder_plan(p->program).why;
    }
    if (p->program->sink == WL_SINK_GROUPS) groups = p->program;
    if (scans) rc = scan_needs(x, of->q, p, &needs, err);
    for (int k = 0; k < done.n && !rc && scans; k++) need(&needs, done.v[k]); /* their marks */
    p->needs = needs.v;
    p->n_needs = needs.n;
    if (!rc && !scans) rc = open_numbers(x, &done, err);
    if (!rc) need(&done, p->number);
    if (p->program->next) continue;
    p->leaves = rows;
    p->derived = node->derived;
    p->sub = node->sub;
    node->pipelines[node->n_pipelines++] = p->number;
  }
  return rc;
}

/* Lists the pipeline that builds the lookup of step k. */
static wl_status list_lookup(wl_schedule *x, const wl_listed *of, int k, const wl_program *p,
                             wl_pipeline **out, wl_error *err) {
  const wl_query *q = of->q;
  const wl_jstep *st = &of->plan->steps[k];
  numbers needs;
  bool *seen = WL_NEW_N(&x->arena, bool, q->n_exprs + 1);
  wl_status rc = seen ? open_numbers(x, &needs, err) : wl_nomem(err);
  if (!rc) rc = wl_pipelines_add_lookup(x->env->pipelines, of, k, p, out, err);
  if (rc) return rc;
  for (int i = 0; i < st->filters.n; i++) need_subs(x, q, st->filters.e[i], seen, &needs);
  for (int i = 0; i < st->n_keys; i++) need_subs(x, q, st->keys[i].inner, seen, &needs);
  need_source(x, q, st->source, &needs);
  for (int i = 1; i < (*out)->n_steps; i++) need(&needs, (*out)->steps[i].lookup);
  (*out)->needs = needs.v;
  (*out)->n_needs = needs.n;
  return WL_OK;
}

/* ---- lookups */

/* The number of the pipeline that left this lookup in the same statement; 0: there is none. */
static int pipeline_of(const wl_schedule *x, const wl_lookup *l) {
  const wl_pipeline *p = x->env->pipelines->first;
  while (p && p->lookup != l) p = p->next;
  return p ? p->number : 0;
}

/* Builds the lookup of step k, or finds one that was built before. Only lookups over table columns
** are kept, and none with keep=0. *number: its pipeline, if it is listed. *to_find: the key by
** which it is kept, or zero. */
static wl_status lookup(wl_schedule *x, const wl_query *q, const wl_listed *of, wl_build_in *b,
                        int k, int *number, wl_lookup_key *to_find, wl_lookup **out,
                        wl_error *err) {
  const wl_program *p = b->p;
  bool lists = x->env->pipelines != NULL, reads = false, lasts = x->env->set->keep;
  wl_pipeline *listed = NULL;
  wl_status rc = WL_OK;
  for (int pc = 0; pc < p->n_code; pc++)
    if (p->code[pc].op == WL_OP__Column) {
      reads = true;
      lasts &= q->sources[q->cols[p->code[pc].a].source].table != NULL;
    }
  lasts &= reads; /* without columns, the key would not tell tables apart */
  wl_lookup_key key = lasts ? wl_lookup_cache_key(b) : (wl_lookup_key){0, 0};
  *to_find = key;
  if (lasts) *out = wl_lookup_cache_find(key);
  bool kept = *out != NULL;
  if (lists && kept) *number = pipeline_of(x, *out);
  if (lists && !*number) {
    rc = list_lookup(x, of, k, p, &listed, err);
    if (rc) return rc;
    *number = listed->number;
    listed->kept = kept;
    if (listed->run) b->tally = listed->run->tally;
  }
  double start = listed ? wl_clock_ns() : 0;
  if (!kept) rc = wl_lookup_build(b, out, err);
  bool on_device = !rc && (*out)->on_device;
  if (!rc && !kept && !on_device) wl_budget_hold(&x->budget, (wl_i64)(*out)->n_bytes);
  if (listed) listed->on_device = on_device;
  if (!rc && listed) listed->lookup = wl_lookup_hold(*out);
  if (!rc && listed && listed->run && !kept) {
    listed->run->ns_rows = wl_clock_ns() - start;
    listed->run->n_left = (*out)->n_rows;
  }
  if (!rc && !kept && lasts && x->env->set->keep) /* the build may have run SQL that set keep=0 */
    wl_lookup_cache_add(key, b, *out, q->sources[of->plan->steps[k].source].name);
  return rc;
}

/* Estimates how often the lookup of a step is searched: for each row before the step, and for each
** row of the earlier steps that it reduces. Reducers that leave fewer rows come before it. */
static double n_searches(const wl_compile_in *in, int step) {
  const wl_jplan *plan = in->plan;
  double n = step ? plan->steps[step - 1].n_out : plan->n_first;
  for (int k = 0; k < step; k++) {
    const wl_jstep *s = &plan->steps[k];
    double rows = (double)in->source_rows[s->source];
    if (!(s->reducers >> step & 1)) continue;
    for (int j = k + 1; j < plan->n_steps; j++)
      if ((s->reducers >> j & 1) && plan->steps[j].left < plan->steps[step].left)
        rows *= plan->steps[j].left;
    n += rows;
  }
  return n;
}

/* Whether a key of the step is the rowid of a table, so that each key has at most one row. */
static bool finds_by_rowid(const wl_schedule *x, const wl_query *q, const wl_jstep *st) {
  for (int k = 0; k < st->n_keys; k++)
    if (wl_query_is_rowid(x->env->store, q, st->keys[k].inner, st->source)) return true;
  return false;
}

/* Builds the lookups of all steps. The later ones are built first, since they reduce the rows of
** the others. numbers: their pipelines. */
static wl_status build_lookups(wl_schedule *x, wl_compile_in *in, const wl_listed *of, wl_ready *r,
                               int *numbers, wl_lookup_key *keys, wl_error *err) {
  const wl_query_env *env = x->env;
  const wl_jplan *plan = in->plan;
  wl_status rc = WL_OK;
  for (int k = plan->n_steps - 1; k >= 0 && !rc; k--) {
    wl_program *p;
    wl_build_in b = {.cols = r->snap.cols,
                     .n_rows = in->source_rows[plan->steps[k].source],
                     .threads = env->set->threads,
                     .max_text = env->max_text,
                     .left = wl_budget_left(&x->budget),
                     .check = env->check,
                     .check_arg = env->check_arg,
                     .device = env->device,
                     .device_budget = env->set->device_budget,
                     .mapped_budget = env->mapped_budget,
                     .transfer = env->set->transfer};
    rc = wl_compile_build(plan_arena(x, r), in, k, &p, &b.plan, err);
    const wl_jstep *st = &plan->steps[k];
    b.p = p;
    b.n_probes = n_searches(in, k);
    b.n_build = st->n_build;
    b.first_only = wl_how_finds_one(st->how) && !st->tests.n && b.plan.kind != WL_KEYS_VALUES &&
                   b.plan.n == st->n_keys;
    b.exists = b.first_only;
    b.one_row = b.plan.n == st->n_keys && finds_by_rowid(x, in->query, st);
    b.uncounted = st->how == WL_HOW_INNER || st->how == WL_HOW_SEMI || st->how == WL_HOW_ANTI;
    b.watched = env->pipelines != NULL;
    if (!rc) rc = lookup(x, in->query, of, &b, k, &numbers[k], &keys[k], &r->lookups[k], err);
  }
  return rc;
}

/* ---- a query */

/* in_order: LIMIT cuts rows that have no ORDER BY. */
static wl_status choose_device(const wl_schedule *x, bool in_order, wl_ready *r, wl_error *err) {
  wl_error why = {0};
  wl_status rc = WL_OK;
  r->device = NULL;
  if (!x->env->device) return WL_OK;
  if (r->program->expands && in_order)
    snprintf(r->why_cpu, sizeof r->why_cpu, "rows of a join that must keep their order");
  else if ((rc = wl_gpu_fits(r->program, x->env->device, &why)))
    snprintf(r->why_cpu, sizeof r->why_cpu, "%.190s", why.text);
  else
    r->device = x->env->device;
  return rc == WL_NOMEM ? wl_nomem(err) : WL_OK; /* the next run must not find this as a reason */
}

/* The result of a subquery, which has run. A text is copied, as the schedule does not outlive the
** preparation. */
static wl_status sub_result(const wl_schedule *x, const wl_bsub *sub, wl_ready *r, wl_val *value,
                            wl_column **list, wl_error *err) {
  const wl_node *n = wl_schedule_sub(x, sub);
  *value = n->value;
  *list = n->list;
  if (value->t < WL_T_TEXT) return WL_OK;
  char *copy = wl_arena_strndup(arena_of(x, r), (const char *)wl_bytes(*value), value->n);
  value->v = (wl_u64)(size_t)copy;
  return copy ? WL_OK : wl_nomem(err);
}

/* Whether dropping rows early could hide an error that SQLite raises. */
static bool hides_errors(wl_arena *arena, const wl_compile_in *in) {
  for (int s = 0; s < in->query->n_sources; s++)
    if (in->query->sources[s].reduces) return wl_compile_may_fail(arena, in);
  return false;
}

/* in_order: as for choose_device(). */
static wl_status compile(const wl_schedule *x, wl_arena *arena, bool in_order, wl_compile_in *in,
                         wl_ready *r, wl_error *err) {
  wl_status rc = wl_compile(arena, in, &r->program, err);
  if (rc) return rc;
  rc = choose_device(x, in_order, r, err);
  if (rc) return rc;
  if (in->for_device && !r->device &&
      (r->program->sink == WL_SINK_SORT || r->program->sink == WL_SINK_DISTINCT ||
       (r->program->n_keys && r->program->n_joins))) {
    /* the CPU sorts row numbers, has distinct rows as groups, and groups by rows of a source */
    in->for_device = false;
    rc = wl_compile(arena, in, &r->program, err);
  }
  return rc;
}

/* Whether the code of a query may be kept: it is the statement, and needs no other query. */
static bool keeps_code(const wl_schedule *x, const wl_query *q, bool top) {
  if (!top || !x->env->code || x->env->pipelines || q->n_subs) return false;
  for (int s = 0; s < q->n_sources; s++)
    if (q->sources[s].derived) return false;
  return true;
}

/* Uses the code of an earlier run, if it fits. */
static bool use_code(const wl_schedule *x, const wl_compile_in *in, wl_ready *r) {
  wl_code *c = *x->env->code;
  if (!c || !wl_code_fits(c, x->env, in, r->snap.n_cols) || !wl_code_find_lookups(c, r->lookups))
    return false;
  wl_code_drop(r->code);
  r->code = wl_code_hold(c);
  r->program = c->program;
  r->device = c->device;
  memcpy(r->why_cpu, c->why_cpu, sizeof r->why_cpu);
  return true;
}

/* Keeps the code for the next run. */
static void keep_code(const wl_schedule *x, const wl_compile_in *in, wl_ready *r,
                      const wl_lookup_key *keys) {
  wl_code *c = r->code;
  c->program = r->program;
  c->device = r->device;
  c->driver = in->plan ? in->plan->driver : 0;
  memcpy(c->why_cpu, r->why_cpu, sizeof c->why_cpu);
  wl_code_drop(*x->env->code);
  *x->env->code = NULL;
  if (wl_code_finish(c, x->env, in, r->snap.n_cols, keys, in->plan ? in->plan->n_steps : 0))
    *x->env->code = wl_code_hold(c);
}

wl_status wl_ready_make(wl_schedule *x, wl_node *node, const wl_query *q, const bool *needed,
                        bool rowid_order, bool top, wl_ready *r, wl_error *err) {
  const wl_query_env *env = x->env;
  wl_pipelines *list = env->pipelines;
  wl_arena_init(&r->arena);
  bool keeps = keeps_code(x, q, top), known = false;
  if (keeps) r->code = wl_code_new();
  if (keeps && !r->code) return wl_nomem(err);
  wl_arena *arena = arena_of(x, r);
  r->snap.n_cols = q->n_cols;
  size_t most = (size_t)q->n_cols + (size_t)q->n_sources + 1;
  r->snap.cols = wl_mem_zalloc(most * sizeof *r->snap.cols);
  r->lookups = wl_mem_zalloc(((size_t)q->n_sources + 1) * sizeof *r->lookups);
  r->n_lookups = q->n_sources;
  wl_i64 *rows = WL_NEW_N(&r->arena, wl_i64, q->n_sources + 1);
  const char **names = WL_NEW_N(arena, const char *, most);
  wl_column **live = WL_NEW_N(&r->arena, wl_column *, q->n_sources + 1);
  wl_val *subs = WL_NEW_N(&r->arena, wl_val, q->n_subs + 1);
  wl_column **lists = WL_NEW_N(&r->arena, wl_column *, q->n_subs + 1);
  int *numbers = WL_NEW_N(&r->arena, int, q->n_sources + 1); /* the pipelines of the lookups */
  wl_lookup_key *keys = WL_NEW_N(&r->arena, wl_lookup_key, q->n_sources + 1);
  wl_column_load *loads = list ? wl_pipelines_loads(list, q) : NULL;
  wl_status rc =
      r->snap.cols && r->lookups && rows && names && live && subs && lists && numbers && keys
          ? WL_OK
          : wl_nomem(err);
  if (!rc && list && !loads) rc = wl_nomem(err);
  wl_compile_in in = {.query = q,
                      .names = names,
                      .source_rows = rows,
                      .lookups = r->lookups,
                      .subs = subs,
                      .sub_lists = lists,
                      .needed = needed,
                      .cols = r->snap.cols,
                      .params = env->params,
                      .n_params = env->n_params,
                      .for_device = env->device != NULL,
                      .check = env->check,
                      .check_arg = env->check_arg,
                      .evaluate = wl_cpu_evaluate,
                      .max_text = env->max_text,
                      .max_pattern = env->max_pattern};
  if (!rc) wl_query_order(env->store, q, rowid_order, top, &in.rowid_order, &in.unordered);
  for (int k = 0; k < q->n_subs && !rc; k++)
    rc = sub_result(x, &q->subs[k], r, &subs[k], &lists[k], err);
  for (int s = 0; s < q->n_sources && !rc; s++)
    rc = source_columns(x, q, s, r->snap.cols, &live[s], names, &rows[s], loads ? &loads[s] : NULL,
                        arena, err);
  if (!rc) rc = add_live(q, r, live, names, &in, err);
  share_arg arg = {&x->arena, &in};
  wl_listed of = {.q = q,
                  .lookups = r->lookups,
                  .lookup_pipeline = numbers,
                  .n_rows = rows,
                  .loads = loads,
                  .share = share,
                  .arg = &arg};
  if (!rc && keeps) known = use_code(x, &in, r);
  if (!rc && !known && q->n_sources > 1) {
    wl_jplan_in pin = {.q = q,
                       .n_rows = rows,
                       .cols = r->snap.cols,
                       .share = share,
                       .arg = &arg,
                       .driver = top ? q->ordered_by - 1 : -1,
                       .may_fail = hides_errors(&x->arena, &in),
                       .for_device = env->device != NULL};
    wl_jplan *plan;
    rc = wl_jplan_make(plan_arena(x, r), &pin, &plan, err);
    if (!rc) in.plan = of.plan = plan;
    if (!rc) rc = build_lookups(x, &in, &of, r, numbers, keys, err);
  }
  int driver = known ? r->code->driver : in.plan ? in.plan->driver : 0;
  if (!rc) r->snap.n_rows = in.n_rows = rows[driver];
  if (!rc && !known) {
    rc = compile(x, arena, top && q->ordered_by, &in, r, err);
    r->refused = rc == WL_NOT_TAKEN;
  }
  if (!rc && keeps && !known) keep_code(x, &in, r, keys);
  if (!rc && list) rc = list_query(x, node, &of, r, err);
  for (int s = 0; s < q->n_sources && live; s++) wl_column_drop(live[s]);
  r->budget = x->budget;
  return rc;
}

void wl_ready_close(wl_ready *r) {
  for (int k = 0; k < r->n_lookups && r->lookups; k++) wl_lookup_drop(r->lookups[k]);
  wl_mem_free(r->lookups);
  for (int k = 0; k < r->snap.n_cols && r->snap.cols; k++) wl_column_drop(r->snap.cols[k]);
  wl_mem_free(r->snap.cols);
  wl_mem_free(r->seen);
  wl_code_drop(r->code);
  wl_arena_close(&r->arena);
  memset(r, 0, sizeof *r);
}

wl_status wl_ready_run(const wl_query_env *env, wl_ready *r, wl_rows *made, const bool *needed,
                       struct wl_device_rows *stays, wl_run **out, wl_error *err) {
  wl_run_config config = {.threads = env->set->threads,
                          .max_text = env->max_text,
                          .device = r->device,
                          .device_budget = env->set->device_budget,
                          .mapped_budget = env->mapped_budget,
                          .transfer = env->set->transfer,
                          .budget = r->budget,
                          .check = env->check,
                          .check_arg = env->check_arg,
                          .stats = env->pipelines ? env->pipelines->query->run : NULL,
                          .made = made,
                          .stays = stays,
                          .needed = needed,
                          .code = r->code};
  wl_status rc = wl_run_open(&config, &r->arena, r->program, &r->snap, out, err);
  wl_ready_close(r); /* the run has its own references */
  return rc;
}
