/*
** See query.h. The steps to make a query ready: subqueries, derived sources and columns of tables,
** the join's plan, lookups from the last step to the first, the program.
*/
#include "exec/query.h"
#include "base/mem.h"
#include "base/clock.h"
#include "program/compile.h"
#include "exec/cpu/evaluate.h"
#include "exec/lookup_cache.h"
#include "exec/derived.h"
#include "exec/notes.h"
#include "plan/row_order.h"
#include "exec/gpu/device.h"
#include "exec/gpu/limits.h"
#include <stdio.h>
#include <string.h>

/* One statement's run. */
typedef struct running {
  const wl_query_env *env;
  wl_made *made;  /* [n_derived]: the rows of derived sources */
  bool **needed;  /* [n_derived]: which of their columns are read */
  wl_arena arena; /* memory for making the query ready */
  int n_on_device;
  bool computes_unread; /* SQLite also computes columns of subqueries that are not read */
  wl_seen *seen;        /* every table that was read */
  int n_seen;
} running;

static wl_status ready(running *x, const wl_query *q, const bool *needed, bool rowid_order,
                       bool top, wl_ready *out, wl_error *err);

/* ---- which columns of derived sources are read */

/* Whether computing e may raise an error, or may be refused because it changes a group's value (see
** changes_group in program/expr.c). seen: marks visited nodes, so that each is visited once. */
static bool may_fail(const wl_bexpr *e, bool *seen) {
  if (!e || seen[e->id]) return false;
  seen[e->id] = true;
  bool fails = e->fallible || e->kind == WL_B_INSUB || may_fail(e->a, seen) || may_fail(e->b, seen);
  for (int k = 0; k < e->n_list && !fails; k++) fails = may_fail(e->list[k], seen);
  return fails;
}

/* Marks columns as needed that are not read but may raise an error: SQLite may compute all columns
** of a subquery before it reads the first row. */
static wl_status need_errors(running *x, const wl_derived *d, wl_error *err) {
  for (int k = 0; k < d->n_arms; k++) {
    const wl_query *q = d->arms[k];
    bool *seen = WL_NEW_N(&x->arena, bool, q->n_exprs + 1);
    if (!seen) return wl_nomem(err);
    for (int i = 0; i < q->n_results; i++) {
      memset(seen, 0, (size_t)q->n_exprs * sizeof *seen);
      if (may_fail(q->results[i], seen)) x->needed[d->id][i] = true;
    }
  }
  return WL_OK;
}

static wl_status note_needed(running *x, const wl_query *q, wl_error *err) {
  wl_status rc = WL_OK;
  for (int s = 0; s < q->n_sources && !rc; s++) {
    const wl_derived *d = q->sources[s].derived;
    if (!d) continue;
    bool first = !x->needed[d->id];
    if (first) x->needed[d->id] = WL_NEW_N(&x->arena, bool, d->arms[0]->n_results + 1);
    if (!x->needed[d->id]) return wl_nomem(err);
    if (first && x->computes_unread) rc = need_errors(x, d, err);
    for (int k = 0; k < q->n_cols; k++)
      if (q->cols[k].source == s) x->needed[d->id][q->cols[k].column] = true;
    for (int k = 0; k < d->n_arms && first && !rc; k++) rc = note_needed(x, d->arms[k], err);
  }
  for (int k = 0; k < q->n_subs && !rc; k++) rc = note_needed(x, q->subs[k].query, err);
  return rc;
}

/* ---- queries that others depend on */

/* Runs a query, and stores its rows (at least `most` of them, < 0: all) as columns. */
static wl_status run_into(running *x, const wl_query *q, const bool *needed, wl_making *to,
                          wl_i64 most, bool *unordered, wl_error *err) {
  wl_ready r = {0};
  wl_run *run = NULL;
  double start = x->env->notes ? wl_clock_ns() : 0;
  wl_status rc = ready(x, q, needed, false, false, &r, err);
  wl_query_note *note = r.note;
  *unordered = !rc && r.program->unordered;
  bool device = !rc && r.device;
  if (!rc)
    rc = wl_ready_run(x->env, &r, &run, err);
  else
    wl_ready_close(&r);
  while (!rc) {
    wl_batch *b;
    rc = wl_run_next(run, &b, err);
    if (rc || !b) break;
    if (note) note->n_given += b->n_rows - b->skip;
    rc = wl_making_add(to, b, wl_run_regs(run), needed, x->env->set->threads, err);
    wl_batch_give(b);
    if (most >= 0 && wl_making_rows(to) >= most) break;
  }
  if (!rc && device && !wl_run_detour(run)) x->n_on_device++;
  if (note && run && wl_run_detour(run)) note->on_device = false;
  wl_run_close(run);
  if (note) note->ns = wl_clock_ns() - start;
  if (rc && rc != WL_NOMEM && rc != WL_INTERRUPT && rc != WL_NOT_TAKEN &&
      rc != (wl_status)SQLITE_SCHEMA)
    rc = wl_not_taken(err, "an error in a subquery that SQLite might not evaluate");
  return rc;
}

/* Whether an affinity would change a value of these types. */
static bool changes(char affinity, unsigned types) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL), T = WL_M(WL_T_TEXT);
  switch (affinity) {
  case 'B': return types & (I | F);
  case 'C':
  case 'D': return types & (F | T);
  case 'E': return types & (I | T);
  default: return false;
  }
}

static wl_status make_derived(running *x, const wl_derived *d, wl_error *err) {
  wl_made *m = &x->made[d->id];
  if (m->done) return WL_OK;
  wl_making *to = NULL;
  int n_cols = d->arms[0]->n_results;
  wl_status rc = wl_making_open(n_cols, x->env->host_left, &to, err);
  for (int k = 0; k < d->n_arms && !rc; k++) {
    bool unordered;
    rc = run_into(x, d->arms[k], x->needed[d->id], to, -1, &unordered, err);
  }
  if (!rc) rc = wl_making_finish(to, x->env->set->threads, m, err);
  for (int k = 0; k < n_cols && !rc && d->typed; k++)
    if (changes(d->arms[0]->results[k]->affinity, m->cols[k]->domain.mask))
      rc = wl_not_taken(err, "a compound whose arms are of several types");
  for (int k = 0; k < n_cols && !rc && d->mixed; k++)
    if (d->mixed[k] && (m->cols[k]->domain.mask & WL_M(WL_T_TEXT)))
      rc = wl_not_taken(err, "a compound whose arms differ in collation, inside a query");
  wl_making_close(to);
  return rc;
}

/* Runs a subquery. The result is its value, or its rows as a column. */
static wl_status run_sub(running *x, const wl_bsub *sub, wl_arena *arena, wl_val *value,
                         wl_column **list, wl_error *err) {
  const wl_query *q = sub->query;
  wl_making *to = NULL;
  wl_made m = {0};
  bool unordered = false;
  wl_status rc = wl_making_open(q->n_results, x->env->host_left, &to, err);
  bool *none = WL_NEW_N(&x->arena, bool, q->n_results + 1);
  if (!rc && !none) rc = wl_nomem(err);
  if (!rc)
    rc = run_into(x, q, sub->kind == 'e' && !q->distinct ? none : NULL, to,
                  sub->kind == 'l' ? -1 : 2, &unordered, err);
  if (!rc) rc = wl_making_finish(to, 1, &m, err);
  wl_making_close(to);
  if (!rc && sub->kind == 'e') *value = wl_int(m.n_rows > 0);
  if (!rc && sub->kind == 'l') *list = wl_column_hold(m.cols[0]);
  if (!rc && sub->kind == 'v') {
    *value = m.n_rows ? wl_column_value(m.cols[0], 0) : wl_null();
    if (value->t >= WL_T_TEXT) {
      char *copy = wl_arena_strndup(arena, (const char *)wl_bytes(*value), value->n);
      if (!copy) rc = wl_nomem(err);
      value->v = (wl_u64)(size_t)copy;
    }
    if (!rc && m.n_rows > 1 && unordered && !wl_query_order_total(q))
      rc = wl_not_taken(err,
                        "a scalar subquery returns several rows, of which SQLite takes the first");
  }
  wl_made_close(&m);
  return rc;
}

/* ---- columns */

/* Records the table's version. Called inside a read transaction. */
static wl_status note_seen(running *x, const wl_table *t, wl_error *err) {
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
static wl_status source_columns(running *x, const wl_query *q, int s, wl_column **cols,
                                wl_column **live, const char **names, wl_i64 *n_rows,
                                wl_load_note *note, wl_arena *arena, wl_error *err) {
  const wl_bsource *src = &q->sources[s];
  if (src->derived) {
    wl_status rc = make_derived(x, src->derived, err);
    if (rc) return rc;
    const wl_made *m = &x->made[src->derived->id];
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
  if (!rc && note) wl_load_note_begin(note, t, want, n);
  if (!rc) rc = wl_source_acquire(t->source, want, n, &snap, err);
  if (!rc && note) wl_load_note_end(note, t, &snap);
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

/* Builds a lookup, or finds one that an earlier statement built. Only lookups over table columns
** are kept, and none with keep=0. */
static wl_status lookup(running *x, const wl_query *q, const wl_build_in *b, int source,
                        bool *found, wl_lookup **out, wl_error *err) {
  const wl_program *p = b->p;
  bool lasts = x->env->set->keep;
  for (int pc = 0; pc < p->n_code; pc++)
    if (p->code[pc].op == WL_OP__Column)
      lasts &= q->sources[q->cols[p->code[pc].a].source].table != NULL;
  wl_lookup_key key = {0, 0};
  if (lasts) {
    key = wl_lookup_cache_key(b);
    *out = wl_lookup_cache_find(key);
    *found = *out != NULL;
    if (*found) return WL_OK;
  }
  wl_status rc = wl_lookup_build(b, out, err);
  if (!rc && lasts && x->env->set->keep) /* the build may have run SQL that set keep=0 */
    wl_lookup_cache_add(key, b, *out, q->sources[source].name);
  return rc;
}

/* Builds the lookups of all steps. The later ones are built first, since they reduce the rows of
** the others. */
static wl_status build_lookups(running *x, wl_compile_in *in, wl_ready *r, wl_error *err) {
  const wl_query_env *env = x->env;
  const wl_jplan *plan = in->plan;
  wl_status rc = WL_OK;
  for (int k = plan->n_steps - 1; k >= 0 && !rc; k--) {
    wl_program *p;
    wl_build_in b = {.cols = r->snap.cols,
                     .n_rows = in->source_rows[plan->steps[k].source],
                     .threads = env->set->threads,
                     .max_text = env->max_text,
                     .left = env->host_left,
                     .check = env->check,
                     .check_arg = env->check_arg};
    rc = wl_compile_build(&r->arena, in, k, &p, &b.plan, err);
    const wl_jstep *st = &plan->steps[k];
    b.p = p;
    b.n_probes = k ? plan->steps[k - 1].n_out : plan->n_first;
    b.first_only = st->how >= WL_HOW_SEMI && !st->tests.n && b.plan.kind != WL_KEYS_VALUES &&
                   b.plan.n == st->n_keys;
    double start = r->note ? wl_clock_ns() : 0;
    bool found = false;
    if (!rc && r->note) rc = wl_notes_tally(x->env->notes, p, &b.tally, err);
    if (!rc) rc = lookup(x, in->query, &b, st->source, &found, &r->lookups[k], err);
    if (!rc && r->note)
      wl_build_note_end(&r->note->builds[k], &b, r->lookups[k], found, wl_clock_ns() - start);
  }
  return rc;
}

/* ---- a query */

/* in_order: LIMIT cuts rows that have no ORDER BY. */
static void choose_device(const running *x, bool in_order, wl_ready *r) {
  wl_error why = {0};
  r->device = NULL;
  if (!x->env->device) return;
  if (r->program->expands && in_order)
    snprintf(r->why_cpu, sizeof r->why_cpu, "rows of a join that must keep their order");
  else if (wl_gpu_fits(r->program, x->env->device, &why))
    snprintf(r->why_cpu, sizeof r->why_cpu, "%.190s", why.text);
  else
    r->device = x->env->device;
}

static wl_status ready(running *x, const wl_query *q, const bool *needed, bool rowid_order,
                       bool top, wl_ready *r, wl_error *err) {
  const wl_query_env *env = x->env;
  wl_arena_init(&r->arena);
  r->snap.n_cols = q->n_cols;
  size_t most = (size_t)q->n_cols + (size_t)q->n_sources + 1;
  r->snap.cols = wl_mem_zalloc(most * sizeof *r->snap.cols);
  r->lookups = wl_mem_zalloc(((size_t)q->n_sources + 1) * sizeof *r->lookups);
  r->n_lookups = q->n_sources;
  wl_i64 *rows = WL_NEW_N(&r->arena, wl_i64, q->n_sources + 1);
  const char **names = WL_NEW_N(&r->arena, const char *, most);
  wl_column **live = WL_NEW_N(&r->arena, wl_column *, q->n_sources + 1);
  wl_val *subs = WL_NEW_N(&r->arena, wl_val, q->n_subs + 1);
  wl_column **lists = WL_NEW_N(&r->arena, wl_column *, q->n_subs + 1);
  wl_status rc =
      r->snap.cols && r->lookups && rows && names && live && subs && lists ? WL_OK : wl_nomem(err);
  if (!rc && env->notes) rc = wl_notes_add(env->notes, q, &r->note, err);
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
  if (!rc) {
    wl_query_order(env->store, q, rowid_order, top, &in.rowid_order, &in.unordered);
    rc = wl_query_cut(q, in.unordered, err); /* refuse before running anything */
  }
  for (int k = 0; k < q->n_subs && !rc; k++)
    rc = run_sub(x, &q->subs[k], &r->arena, &subs[k], &lists[k], err);
  for (int s = 0; s < q->n_sources && !rc; s++)
    rc = source_columns(x, q, s, r->snap.cols, &live[s], names, &rows[s],
                        r->note ? &r->note->loads[s] : NULL, &r->arena, err);
  if (!rc) rc = add_live(q, r, live, names, &in, err);
  if (!rc && q->n_sources > 1) {
    share_arg s = {&x->arena, &in};
    wl_jplan_in pin = {.q = q,
                       .n_rows = rows,
                       .cols = r->snap.cols,
                       .share = share,
                       .arg = &s,
                       .driver = top ? q->ordered_by - 1 : -1,
                       .for_device = env->device != NULL};
    wl_jplan *plan;
    rc = wl_jplan_make(env->notes ? &env->notes->arena : &r->arena, &pin, &plan, err);
    if (!rc) in.plan = r->plan = plan;
    if (!rc) rc = build_lookups(x, &in, r, err);
  }
  if (!rc) r->snap.n_rows = in.n_rows = rows[in.plan ? in.plan->driver : 0];
  if (!rc) rc = wl_compile(&r->arena, &in, &r->program, err);
  if (!rc) choose_device(x, top && q->ordered_by, r);
  if (!rc && r->note) {
    share_arg s = {&x->arena, &in};
    rc = wl_query_note_ready(env->notes, r->note, r->plan, r->program, rows, share, &s, err);
    r->note->on_device = r->device != NULL;
    for (int k = 0; k < q->n_cols; k++) r->note->n_col_bytes += (wl_i64)r->snap.cols[k]->n_bytes;
  }
  for (int k = 0; k < q->n_subs && lists; k++) wl_column_drop(lists[k]);
  for (int s = 0; s < q->n_sources && live; s++) wl_column_drop(live[s]);
  return rc;
}

wl_status wl_query_ready(const wl_query_env *env, const wl_query *q, bool rowid_order,
                         wl_ready *out, wl_error *err) {
  running x = {.env = env, .computes_unread = q->computes_unread};
  memset(out, 0, sizeof *out);
  wl_arena_init(&x.arena);
  x.made = wl_mem_zalloc(((size_t)q->n_derived + 1) * sizeof *x.made);
  x.needed = WL_NEW_N(&x.arena, bool *, q->n_derived + 1);
  wl_status rc = x.made && x.needed ? note_needed(&x, q, err) : wl_nomem(err);
  for (int k = 0; k < q->n_deps && !rc; k++)
    rc = wl_store_hold(env->store, q->deps[k].schema, q->deps[k].name, err);
  if (!rc) rc = ready(&x, q, NULL, rowid_order, true, out, err);
  wl_store_release(env->store);
  out->n_on_device = x.n_on_device;
  out->seen = x.seen;
  out->n_seen = x.n_seen;
  for (int k = 0; k < q->n_derived && x.made; k++) wl_made_close(&x.made[k]);
  wl_mem_free(x.made);
  wl_arena_close(&x.arena);
  if (rc) wl_ready_close(out);
  return rc;
}

void wl_ready_close(wl_ready *r) {
  for (int k = 0; k < r->n_lookups && r->lookups; k++) wl_lookup_drop(r->lookups[k]);
  wl_mem_free(r->lookups);
  for (int k = 0; k < r->snap.n_cols && r->snap.cols; k++) wl_column_drop(r->snap.cols[k]);
  wl_mem_free(r->snap.cols);
  wl_mem_free(r->seen);
  wl_arena_close(&r->arena);
  memset(r, 0, sizeof *r);
}

wl_status wl_ready_run(const wl_query_env *env, wl_ready *r, wl_run **out, wl_error *err) {
  wl_run_config config = {.threads = env->set->threads,
                          .max_text = env->max_text,
                          .device = r->device,
                          .device_budget = env->set->device_budget,
                          .mapped_budget = env->mapped_budget,
                          .transfer = env->set->transfer,
                          .host_left = env->host_left,
                          .check = env->check,
                          .check_arg = env->check_arg,
                          .stats = r->note ? &r->note->run : NULL};
  wl_status rc = wl_run_open(&config, &r->arena, r->program, &r->snap, out, err);
  wl_ready_close(r); /* the run has its own references */
  return rc;
}

/* ---- sizes, before anything is loaded */

wl_i64 wl_query_rows(wl_store *store, const wl_query *q, bool *exact, int *n_missing) {
  wl_i64 n = 0;
  wl_error ignored;
  wl_table *t;
  for (int s = 0; s < q->n_sources; s++) {
    const wl_bsource *src = &q->sources[s];
    for (int k = 0; src->derived && k < src->derived->n_arms; k++)
      n += wl_query_rows(store, src->derived->arms[k], exact, n_missing);
    if (!src->table || wl_store_table(store, src->schema, src->table, &t, &ignored)) continue;
    bool sure;
    n += wl_source_estimate(t->source, &sure);
    *exact &= sure;
    /* Loading from segments costs little compared with the rest. */
    for (int k = 0; k < q->n_cols && !t->source->in_segments; k++)
      if (q->cols[k].source == s)
        *n_missing += !sure || !wl_source_columns(t->source, &q->cols[k].column, 1, NULL);
  }
  for (int k = 0; k < q->n_subs; k++) n += wl_query_rows(store, q->subs[k].query, exact, n_missing);
  return n;
}

/* Whether some conjunct is an equality that joins source s with another source. */
static bool linked(const wl_bexpr *e, int s) {
  if (!e) return false;
  if (e->kind == WL_B_AND) return linked(e->a, s) || linked(e->b, s);
  if (!((e->kind == WL_B_COMPARE && e->op == WL_OP_EQ) || e->kind == WL_B_IS)) return false;
  wl_u64 a = wl_bexpr_sources(e->a), b = wl_bexpr_sources(e->b), me = 1ULL << s;
  return (a == me && b && !(b & me)) || (b == me && a && !(a & me));
}

double wl_query_pairs(wl_store *store, const wl_query *q) {
  double pairs = 0, product = 1, most = 1;
  bool loose = false;
  wl_table *t;
  wl_error ignored;
  for (int s = 0; s < q->n_sources; s++) {
    const wl_bsource *src = &q->sources[s];
    double n = src->derived ? 1000 : 1;
    bool exact;
    for (int k = 0; src->derived && k < src->derived->n_arms; k++)
      pairs += wl_query_pairs(store, src->derived->arms[k]);
    if (src->table && !wl_store_table(store, src->schema, src->table, &t, &ignored))
      n = (double)wl_source_estimate(t->source, &exact);
    if (q->n_sources > 1 && !linked(q->where, s) && !linked(src->on, s)) {
      product *= n < 1 ? 1 : n;
      loose |= s > 0;
    } else if (n > most) {
      most = n;
    }
  }
  for (int k = 0; k < q->n_subs; k++) pairs += wl_query_pairs(store, q->subs[k].query);
  return pairs + (loose ? product * most : 0);
}

wl_i64 wl_query_rows_of(wl_store *store, const wl_query *q, const char *name) {
  wl_error ignored;
  wl_table *t;
  bool exact;
  wl_i64 n = -1;
  for (int s = 0; s < q->n_sources && n < 0; s++) {
    const wl_bsource *src = &q->sources[s];
    if (src->table && src->name && sqlite3_stricmp(src->name, name) == 0 &&
        !wl_store_table(store, src->schema, src->table, &t, &ignored))
      return wl_source_estimate(t->source, &exact);
    for (int k = 0; src->derived && k < src->derived->n_arms && n < 0; k++)
      n = wl_query_rows_of(store, src->derived->arms[k], name);
  }
  for (int k = 0; k < q->n_subs && n < 0; k++) n = wl_query_rows_of(store, q->subs[k].query, name);
  return n;
}
