/*
** See pipelines.h.
*/
#include "exec/pipelines.h"
#include "base/clock.h"
#include "column/dict.h"
#include "plan/cut.h"
#include <assert.h>

void wl_pipelines_open(wl_pipelines *l, bool measures) {
  *l = (wl_pipelines){.measures = measures};
  wl_arena_init(&l->arena);
}

void wl_pipelines_close(wl_pipelines *l) {
  for (wl_pipeline *p = l->first; p; p = p->next) wl_lookup_drop(p->lookup);
  wl_arena_close(&l->arena);
  l->first = l->last = l->query = NULL;
}

void wl_pipelines_clear(wl_pipelines *l) {
  wl_pipelines_close(l);
  wl_pipelines_open(l, l->measures);
}

const wl_pipeline *wl_pipelines_find(const wl_pipelines *l, int number) {
  const wl_pipeline *p = l->first;
  while (p && p->number != number) p = p->next;
  return p;
}

/* ---- loading */

wl_column_load *wl_pipelines_loads(wl_pipelines *l, const wl_query *q) {
  wl_column_load *loads = WL_NEW_N(&l->arena, wl_column_load, q->n_sources + 1);
  for (int s = 0; s < q->n_sources && loads; s++) {
    loads[s].missing = WL_NEW_N(&l->arena, bool, q->n_cols + 1);
    if (!loads[s].missing) return NULL;
  }
  return loads;
}

void wl_column_load_begin(wl_column_load *l, const wl_table *t, const int *want, int n) {
  for (int i = 0; i < n; i++) {
    l->missing[i] = !wl_source_columns(t->source, &want[i], 1, NULL);
    l->n_cols += l->missing[i];
  }
  l->ns = wl_clock_ns();
}

void wl_column_load_end(wl_column_load *l, const wl_table *t, const wl_snapshot *snap) {
  l->ns = wl_clock_ns() - l->ns;
  l->n_rows = snap->n_rows;
  l->from = wl_source_used(t->source).loaded_from;
  for (int i = 0; i < snap->n_cols; i++)
    if (l->missing[i]) l->n_bytes += (wl_i64)snap->cols[i]->n_bytes;
}

/* ---- estimates */

/* The number of different values: of a dictionary, or of a range of integers; else a guess. */
static double n_values(const struct wl_dict *dict, const wl_domain *d, double rows) {
  if (dict) return dict->n;
  if ((d->mask & ~WL_M(WL_T_NULL)) == WL_M(WL_T_INT)) return (double)d->hi - (double)d->lo + 1;
  return rows > 10 ? rows / 10 : rows;
}

/* Estimates what the sink leaves of so many rows (< 0: not known). */
static double rows_left(const wl_program *p, double rows) {
  double n = 1;
  if (rows < 0 && !p->one_group) return -1;
  if (p->sink == WL_SINK_GROUPS) {
    const wl_key *finds = wl_program_finds(p);
    for (int k = 0; k < wl_program_n_finds(p) && n < rows; k++)
      n *= n_values(finds[k].dict, &finds[k].domain, rows);
    return p->one_group || n < rows ? n : rows;
  }
  for (int k = 0; p->sink == WL_SINK_DISTINCT && k < p->n_given && n < rows; k++)
    n *= n_values(p->results[k].dict, &p->results[k].domain, rows);
  if (p->sink == WL_SINK_DISTINCT && n < rows) rows = n;
  double most = (double)(p->next ? wl_cut_needed(p->offset, p->limit) : p->limit);
  return p->limit >= 0 && most < rows ? most : rows;
}

/* ---- the record of a pipeline */

static bool joins(const wl_instr *in) {
  return in->op == WL_OP__Probe || in->op == WL_OP__Expand;
}

static bool takes_rows(const wl_instr *in) {
  switch ((wl_shape)wl_opcodes[in->op].shape) {
  case WL_SHAPE_RESULT:
  case WL_SHAPE_GROUP:
  case WL_SHAPE_AGG:
  case WL_SHAPE_AGG_I:
  case WL_SHAPE_AGG_F:
  case WL_SHAPE_AGG_V:
  case WL_SHAPE_AGG_VV: return true;
  default: return in->op == WL_OP__Build;
  }
}

/*
** Finds the part that each instruction belongs to. The instructions between the last one that may
** drop rows and a Probe or Expand compute the keys of that join, so they belong to its step. In the
** same way the sink has the instructions that compute what it takes.
*/
static void find_parts(wl_pipeline *x) {
  const wl_program *p = x->program;
  int part = 0, n_joins = 0, cut = 0;
  for (int pc = 0; pc < p->n_code; pc++) {
    const wl_instr *in = &p->code[pc];
    if (joins(in) || (takes_rows(in) && part < x->n_steps)) {
      part = joins(in) ? ++n_joins : x->n_steps;
      for (int k = cut; k < pc; k++) x->part_of[k] = part;
    }
    x->part_of[pc] = part;
    if (joins(in) || in->op == WL_OP__IfNot || in->op == WL_OP__Match || in->op == WL_OP__Mark)
      cut = pc + 1;
  }
}

/* The conjuncts of an expression. */
static wl_status conjuncts(wl_arena *arena, const wl_bexpr *e, wl_jlist *out, wl_error *err) {
  const wl_bexpr *at = e;
  int n = 1;
  for (; at && at->kind == WL_B_AND; at = at->a) n++;
  out->e = WL_NEW_N(arena, const wl_bexpr *, n);
  out->n = at ? n : 0;
  if (!out->e) return wl_nomem(err);
  /* a AND b AND c is (a AND b) AND c. An AND on the right side is not split. */
  for (at = e; at && at->kind == WL_B_AND; at = at->a) out->e[--n] = at->b;
  if (at) out->e[0] = at;
  return WL_OK;
}

/* Adds a record with a scan. The joins of the program become steps. */
static wl_status add_record(wl_pipelines *l, const wl_listed *of, const wl_program *p,
                            wl_run_stats *run, wl_pipeline **out, wl_error *err) {
  wl_pipeline *x = *out = WL_NEW(&l->arena, wl_pipeline);
  wl_pipeline_step *steps = WL_NEW_N(&l->arena, wl_pipeline_step, p->n_joins + 2);
  int *part_of = WL_NEW_N(&l->arena, int, p->n_code + 1);
  wl_tally *tally = l->measures ? WL_NEW_N(&l->arena, wl_tally, p->n_code + 1) : NULL;
  if (!x || !steps || !part_of || (l->measures && !tally)) return wl_nomem(err);
  *x = (wl_pipeline){.number = ++l->n,
                     .program = p,
                     .leaves = wl_sink_leaves[p->sink],
                     .q = of->q,
                     .n_source_rows = -1,
                     .steps = steps,
                     .n_steps = 1,
                     .estimated = -1,
                     .part_of = part_of};
  if (l->measures) *run = (wl_run_stats){.program = p, .tally = tally, .n_tallies = p->n_code};
  if (l->measures) x->run = run;
  if (l->measures && p->also) run->n_left = -1; /* others leave rows in the same sink */
  steps[0] = (wl_pipeline_step){.source = -1, .estimated = -1};
  for (int pc = 0; pc < p->n_code; pc++) {
    if (!joins(&p->code[pc])) continue;
    const wl_join *j = &p->joins[p->code[pc].c];
    assert(j->step < of->plan->n_steps && of->lookups[j->step] == j->lookup);
    steps[x->n_steps++] = (wl_pipeline_step){.source = of->plan->steps[j->step].source,
                                             .join = &of->plan->steps[j->step],
                                             .how = j->how,
                                             .lookup = of->lookup_pipeline[j->step],
                                             .estimated = -1};
  }
  find_parts(x);
  if (l->last)
    l->last->next = x;
  else
    l->first = x;
  l->last = x;
  return WL_OK;
}

static void scan_source(wl_pipeline *x, const wl_listed *of, int source) {
  x->steps[0].source = source;
  x->n_source_rows = of->n_rows[source];
  x->load = of->loads[source].n_cols ? &of->loads[source] : NULL;
}

wl_status wl_pipelines_add_lookup(wl_pipelines *l, const wl_listed *of, int step,
                                  const wl_program *p, wl_pipeline **out, wl_error *err) {
  const wl_jstep *st = &of->plan->steps[step];
  wl_run_stats *run = WL_NEW(&l->arena, wl_run_stats);
  wl_status rc = run ? add_record(l, of, p, run, out, err) : wl_nomem(err);
  if (rc) return rc;
  wl_pipeline *x = *out;
  scan_source(x, of, st->source);
  x->steps[0].filters = st->filters;
  for (int k = 1; k < x->n_steps; k++) x->steps[k].reduces = true;
  x->estimated = x->steps[x->n_steps - 1].estimated = st->n_build;
  return WL_OK;
}

/* The scan of the source of a query, and the joins with its other sources. */
static wl_status driving_steps(wl_pipelines *l, const wl_listed *of, wl_pipeline *x,
                               wl_error *err) {
  const wl_jplan *plan = of->plan;
  wl_pipeline_step *scan = &x->steps[0];
  scan_source(x, of, plan ? plan->driver : 0);
  for (int k = 1; k < x->n_steps; k++) {
    x->steps[k].filters = x->steps[k].join->after;
    x->steps[k].estimated = x->steps[k].join->n_out;
  }
  if (plan) {
    scan->filters = plan->filters;
    scan->estimated = plan->n_first;
    return WL_OK;
  }
  wl_status rc = conjuncts(&l->arena, of->q->where, &scan->filters, err);
  scan->estimated = (double)x->n_source_rows;
  if (!rc && scan->filters.n) scan->estimated *= of->share(of->arg, 0, &scan->filters);
  return rc;
}

/* The scan of what no join has found of a source. */
static void unmatched_steps(const wl_listed *of, wl_pipeline *x) {
  const wl_join *j = &x->program->joins[x->program->unmatched];
  x->steps[0].source = of->plan->steps[j->step].source;
  x->n_source_rows = j->n_rows;
  for (int k = 1; k < x->n_steps; k++) x->steps[k].filters = x->steps[k].join->after;
}

static wl_status add_steps(wl_pipelines *l, const wl_listed *of, wl_pipeline *x,
                           const wl_pipeline *before, wl_error *err) {
  wl_status rc = WL_OK;
  switch (x->program->source) {
  case WL_SOURCE_TABLE: return driving_steps(l, of, x, err);
  case WL_SOURCE_UNMATCHED: unmatched_steps(of, x); return WL_OK;
  case WL_SOURCE_GROUPS: rc = conjuncts(&l->arena, of->q->having, &x->steps[0].filters, err); break;
  default: break;
  }
  x->steps[0].estimated = x->steps[0].filters.n ? -1 : before->estimated;
  return rc;
}

wl_status wl_pipelines_add(wl_pipelines *l, const wl_listed *of, const wl_program *p,
                           wl_error *err) {
  int n = 0;
  for (const wl_program *at = p; at; at = wl_program_after(at)) n++;
  wl_run_stats *run = WL_NEW_N(&l->arena, wl_run_stats, n);
  wl_status rc = run ? WL_OK : wl_nomem(err);
  wl_pipeline *before = NULL;
  for (; p && !rc; p = wl_program_after(p)) {
    wl_pipeline *x;
    rc = add_record(l, of, p, run++, &x, err);
    if (rc) break;
    if (!before) l->query = x;
    rc = add_steps(l, of, x, before, err);
    x->estimated = rows_left(p, x->steps[x->n_steps - 1].estimated);
    before = x;
  }
  return rc;
}

/* ---- after the run */

void wl_pipelines_ran(wl_pipelines *l, wl_i64 n_taken, bool detour) {
  wl_pipeline *first = l->query;
  if (detour && first->run && wl_pipeline_flow(first, 0).n_in < first->n_source_rows)
    first->run->tally = NULL; /* the rows that the device has done were not counted */
  for (wl_pipeline *p = first; p; p = wl_program_after(p->program) ? p->next : NULL) {
    if (p->run && p->program->source == WL_SOURCE_GROUPS) p->on_device = p->run->on_device;
    if (detour) p->on_device = false;
    p->orders_on_device &= p->on_device;
    if (!wl_program_after(p->program) && p->run) p->run->n_left = n_taken;
  }
}

bool wl_pipeline_counted(const wl_pipeline *p) {
  return p->run && p->run->tally && !p->on_device && !p->kept;
}

/* The rows that reach the first instruction of a part; if it has none, of the next part. */
static wl_i64 rows_into(const wl_pipeline *p, int part) {
  for (int pc = 0; pc < p->program->n_code; pc++)
    if (p->part_of[pc] >= part) return p->run->tally[pc].n_rows;
  return part > p->n_steps || p->program->n_code ? p->run->n_left : p->run->n_collected;
}

wl_flow wl_pipeline_flow(const wl_pipeline *p, int part) {
  wl_flow f = {.n_in = rows_into(p, part), .n_out = rows_into(p, part + 1)};
  double all = 0;
  for (int pc = 0; pc < p->program->n_code; pc++) {
    const wl_tally *t = &p->run->tally[pc];
    all += t->ns;
    if (p->part_of[pc] != part) continue;
    f.n_bytes += t->n_bytes;
    f.ns += t->ns;
  }
  /* Its share of the elapsed time is its share of the workers' time. */
  f.ns = all > 0 ? p->run->ns_rows * (f.ns / all) : 0;
  return f;
}
