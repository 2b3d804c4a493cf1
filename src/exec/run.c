/*
** The runner: from program to batches; see run.h. Called by route/answer.c. It runs the pipelines
** of a program one after the other (exec/pipe.h), each into its sink.
*/
#include "exec/run.h"
#include "base/clock.h"
#include "base/mem.h"
#include "column/lookup.h"
#include "exec/code.h"
#include "exec/cpu/marks.h"
#include "exec/executed.h"
#include "exec/gpu/limits.h"
#include "exec/gpu/sinks/device_rows.h"
#include "exec/pipe.h"
#include "exec/sink/distinct.h"
#include "exec/sink/groups.h"
#include "exec/sink/rows.h"
#include "exec/sink/sort.h"
#include "exec/sink/sort_keys.h"
#include "plan/cut.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { LEAST_ROWS = 4096 };

struct wl_run {
  wl_run_config config;
  wl_arena arena;
  const wl_program *p;    /* the first pipeline, over the table */
  const wl_program *last; /* the pipeline that gives the results */
  const wl_program *now;  /* the pipeline that runs or is next; NULL: all have ended */
  wl_marks *marks;        /* for pipelines over unmatched rows, or NULL */
  wl_snapshot snap;
  wl_pool *pool;
  bool open; /* `now` is in `pipe` */
  wl_pipe pipe;
  wl_rows_sink results; /* where all result rows end; also the sink of a pipeline into rows */
  wl_groups_sink groups;
  wl_collecting_sink distinct;
  wl_sort_sink sort;
  wl_sort_keys_sink sort_keys;
  bool holds_back; /* no row is emitted before the last one is computed. A row may fail: SQLite then
                   ** runs the statement, and its rows may come in another order. Or a device may
                   ** lose the marks of a RIGHT or FULL JOIN: then the CPU starts again */
  wl_error late;   /* raised after the rows before it were emitted, as SQLite does */
  char detour[200];
  char note[WL_PIPE_NOTE];
  wl_moved moved;
  char transferred[200]; /* that in words */
  wl_stop stop;
  int n_held; /* number of the joins' lookups to which the run has a reference */
};

const wl_program *wl_run_program(const wl_run *r) {
  return r->last;
}
const wl_reg *wl_run_regs(const wl_run *r) {
  return wl_pool_regs(r->pool);
}
const char *wl_run_detour(const wl_run *r) {
  return *r->detour ? r->detour : NULL;
}
const char *wl_run_note(const wl_run *r) {
  return *r->note && !*r->detour ? r->note : NULL;
}
static void say_bytes(wl_i64 n, char *out, size_t size) {
  bool small = n < 100000;
  snprintf(out, size, small ? "%.1f KB" : "%.1f MB", (double)n / (small ? 1e3 : 1e6));
}
const char *wl_run_transfer(wl_run *r) {
  const wl_moved *m = &r->moved;
  char in[32], out[32];
  if (!m->mode) return NULL;
  say_bytes(m->n_in, in, sizeof in);
  say_bytes(m->n_out, out, sizeof out);
  snprintf(r->transferred, sizeof r->transferred,
           "transfer=%s%s, %s in, %s out, data %.2f ms, kernel %.2f ms, results %.2f ms", m->mode,
           m->staged ? " (staged)" : "", in, out, m->ns[WL_TIME_DATA] / 1e6,
           m->ns[WL_TIME_KERNEL] / 1e6, m->ns[WL_TIME_RESULTS] / 1e6);
  return r->transferred;
}
wl_status wl_run_batch(wl_run *r, wl_batch **out, wl_error *err) {
  return wl_batch_take(r->pool, out, err);
}

/* ---- opening and closing */

static wl_sink *sink_of(wl_run *r, wl_sink_kind kind) {
  switch (kind) {
  case WL_SINK_GROUPS: return &r->groups.sink;
  case WL_SINK_DISTINCT: return &r->distinct.base.sink;
  case WL_SINK_SORT: return &r->sort.c.base.sink;
  case WL_SINK_SORT_KEYS: return &r->sort_keys.sink;
  default: return &r->results.base.sink;
  }
}

static void collect(wl_run *r, const wl_program *p, wl_collecting_sink *s) {
  s->p = p;
  s->threads = r->config.threads;
  s->stop = &r->stop;
  s->to = sink_of(r, p->next ? p->next->sink : WL_SINK_ROWS);
}

static wl_status open_sink(wl_run *r, const wl_program *p, wl_error *err) {
  wl_run_config *c = &r->config;
  wl_i64 n_rows = r->snap.n_rows;
  switch (p->sink) {
  case WL_SINK_GROUPS:
    return wl_groups_sink_open(&r->groups, p, r->snap.cols, n_rows * (p->expands ? 16 : 1),
                               c->threads, &c->budget, c->max_text, &r->stop, c->device != NULL,
                               err);
  case WL_SINK_DISTINCT:
    collect(r, p, &r->distinct);
    wl_distinct_sink_init(&r->distinct, r->pool, &c->budget);
    return WL_OK;
  case WL_SINK_SORT:
    collect(r, p, &r->sort.c);
    wl_sort_sink_init(&r->sort, r->pool, &c->budget);
    return WL_OK;
  case WL_SINK_SORT_KEYS:
    return wl_sort_keys_sink_open(&r->sort_keys, p, r->snap.cols, n_rows, c->threads, &c->budget,
                                  &r->stop, err);
  default: return WL_OK;
  }
}

/* Whether rows leave only after all have been collected and sorted or compared. */
static bool collects(const wl_program *p) {
  for (; p; p = p->next)
    if (p->sink != WL_SINK_ROWS && p->sink != WL_SINK_GROUPS) return true;
  return false;
}

wl_status wl_run_open(const wl_run_config *config, wl_arena *arena, const wl_program *program,
                      wl_snapshot *snap, wl_run **out, wl_error *err) {
  wl_run *r = *out = wl_mem_zalloc(sizeof *r);
  if (!r) {
    wl_arena_close(arena);
    wl_snapshot_release(snap);
    return wl_nomem(err);
  }
  r->config = *config;
  if (config->code) wl_code_hold(config->code);
  r->stop.check = config->check;
  r->stop.arg = config->check_arg;
  r->arena = *arena;
  memset(arena, 0, sizeof *arena);
  r->snap = *snap;
  memset(snap, 0, sizeof *snap);
  r->p = r->now = program;
  r->last = wl_program_last(program);
  if (r->config.threads < 1) r->config.threads = 1;
  r->holds_back = r->last->may_fail && (program->next || !program->as_sqlite) && !collects(program);
  r->holds_back |= program->also && config->device;
  while (r->n_held < program->n_joins) {
    const wl_lookup *l = program->joins[r->n_held++].lookup;
    if (l) wl_lookup_hold((wl_lookup *)(size_t)l);
  }
  wl_i64 most = r->snap.n_rows;
  for (const wl_program *a = program->also; a; a = a->also)
    if (program->joins[a->unmatched].n_rows > most) most = program->joins[a->unmatched].n_rows;
  if (program->expands && most > 0) most = most < LEAST_ROWS / 4 ? LEAST_ROWS : most * 4;
  if (most > WL_TABLET_ROWS) most = WL_TABLET_ROWS;
  wl_status rc = wl_program_pool(r->last, most, &r->pool, err);
  if (!rc)
    wl_rows_sink_init(&r->results, r->last, r->pool, r->holds_back ? &r->config.budget : NULL);
  if (!rc && program->also) rc = wl_marks_open(program, &r->config.budget, &r->marks, err);
  for (const wl_program *p = program; p && !rc; p = p->next) rc = open_sink(r, p, err);
  if (rc) {
    wl_run_close(r);
    *out = NULL;
  }
  return rc;
}

void wl_run_close(wl_run *r) {
  if (!r) return;
  if (r->open) wl_pipe_close(&r->pipe);
  wl_sink *sinks[] = {&r->results.base.sink, &r->groups.sink, &r->distinct.base.sink,
                      &r->sort.c.base.sink, &r->sort_keys.sink};
  for (size_t k = 0; k < sizeof sinks / sizeof *sinks; k++)
    if (sinks[k]->close) sinks[k]->close(sinks[k]);
  wl_marks_close(r->marks);
  wl_pool_close(r->pool);
  wl_snapshot_release(&r->snap);
  for (int k = 0; k < r->n_held; k++) wl_lookup_drop((wl_lookup *)(size_t)r->p->joins[k].lookup);
  wl_arena_close(&r->arena);
  wl_code_drop(r->config.code);
  wl_mem_free(r);
}

/* ---- a pipeline */

/* The rows of a piece of which all rows fit into a batch. */
static wl_i64 batch_step(const wl_run *r) {
  wl_i64 step = 1;
  while (step * 2 <= wl_pool_rows(r->pool)) step *= 2;
  return step;
}

/* The groups are the source: columns on the device that has made them, or on the host. */
static wl_status set_groups(wl_run *r, wl_pipe *e, wl_error *err) {
  if (r->groups.on_device && e->device) {
    e->cols = r->groups.made.cols;
    e->live = r->groups.made.live;
    e->n_rows = r->groups.made.n_rows;
    e->transfer.mode = WL_TRANSFER_CACHED; /* they are there */
    return WL_OK;
  }
  e->device = NULL;
  wl_status rc = wl_groups_sink_fetch(&r->groups, err);
  e->cols = NULL;
  e->live = NULL;
  e->groups = r->groups.finished.cols;
  e->n_rows = r->groups.finished.n;
  return rc;
}

/* Sets the source of the pipeline that is to run. */
static wl_status set_source(wl_run *r, wl_pipe *e, wl_error *err) {
  wl_rows_sink *out = &r->results;
  switch (e->p->source) {
  case WL_SOURCE_TABLE:
    e->cols = r->snap.cols;
    e->n_rows = r->snap.n_rows;
    e->step = wl_pipe_step(e->p, e->n_rows, e->threads);
    break;
  case WL_SOURCE_UNMATCHED:
    e->cols = r->snap.cols;
    e->n_rows = e->p->joins[e->p->unmatched].n_rows;
    e->step = wl_pipe_step(e->p, e->n_rows, e->threads);
    break;
  case WL_SOURCE_GROUPS: return set_groups(r, e, err);
  case WL_SOURCE_SORTED:
    e->cols = r->snap.cols;
    e->numbers = r->sort_keys.rows;
    e->n_rows = r->sort_keys.n;
    e->step = wl_pool_rows(r->pool);
    /* Rows that OFFSET skips need not be made. */
    e->next_row = out->to_skip < e->n_rows ? out->to_skip : e->n_rows;
    out->to_skip -= e->next_row;
    if (out->to_give >= 0 && e->n_rows - e->next_row > out->to_give)
      e->n_rows = e->next_row + out->to_give;
    break;
  default: break; /* the rows are in the sink already */
  }
  return WL_OK;
}

static wl_status open_pipe(wl_run *r, wl_error *err) {
  const wl_program *p = r->now;
  const wl_run_config *c = &r->config;
  r->pipe = (wl_pipe){.p = p,
                      .sink = sink_of(r, p->sink),
                      .marks = r->marks,
                      .step = batch_step(r),
                      .threads = c->threads,
                      .in_order = p->sink == WL_SINK_GROUPS && r->groups.in_order,
                      .streams = p->sink == WL_SINK_ROWS && !r->holds_back,
                      .needed = -1,
                      .max_text = c->max_text,
                      .stop = &r->stop,
                      .tally = c->stats ? wl_run_stats_of(c->stats, p)->tally : NULL,
                      .device = wl_gpu_has(p) ? c->device : NULL,
                      .device_budget = c->device_budget,
                      .mapped_budget = c->mapped_budget,
                      .transfer = c->transfer,
                      .made = c->made,
                      .stays = c->stays,
                      .needed_results = c->needed,
                      .results = &r->results.base.sink,
                      .note = r->note,
                      .moved = &r->moved};
  wl_status rc = set_source(r, &r->pipe, err);
  if (c->stats) wl_run_stats_of(c->stats, p)->on_device = r->pipe.device != NULL;
  r->open = true;
  return rc ? rc : wl_pipe_open(&r->pipe, err);
}

static void close_pipe(wl_run *r) {
  wl_pipe_close(&r->pipe);
  r->open = false;
}

/* Makes the CPU take over from the device. */
static wl_status leave_device(wl_run *r, const char *why, wl_error *err) {
  snprintf(r->detour, sizeof r->detour, "%.190s", why);
  wl_pipe_leave_device(&r->pipe);
  if (r->config.stats) wl_run_stats_of(r->config.stats, r->now)->on_device = false;
  r->results.to_skip = wl_cut_add(r->results.to_skip, r->pipe.n_repeated);
  r->config.device = NULL;
  if (r->now->source != WL_SOURCE_GROUPS) return WL_OK;
  wl_status rc = wl_groups_sink_count(&r->groups, &r->pipe.next_row, err);
  return rc ? rc : set_groups(r, &r->pipe, err);
}

static wl_status wave(wl_run *r, wl_error *err) {
  wl_pipe *e = &r->pipe;
  wl_status rc = wl_stop_ask(&r->stop, err);
  if (rc) return rc;
  if (e->p->sink == WL_SINK_ROWS)
    e->needed = r->results.base.needed = wl_rows_sink_needed(&r->results);
  rc = wl_pipe_wave(e, err);
  if (rc == WL_NOT_TAKEN && e->device && !e->refused) {
    char why[sizeof err->text];
    memcpy(why, err->text, sizeof why);
    /* else rows of the CPU would come after rows that stay on the device: run it again */
    if (!r->config.stays || !r->config.stays->first) return leave_device(r, why, err);
  }
  if (rc == WL_NOT_TAKEN && !err->code) rc = wl_groups_sink_full(&r->groups, err);
  return rc;
}

/* ---- the end of a pipeline */

/* Looks at the finished groups. *again: they must be gathered again, in row order. */
static wl_status check_groups(wl_run *r, bool *again, wl_error *err) {
  wl_finished *f = &r->groups.finished;
  *again = f->again;
  assert(!*again || r->now->unordered || !r->marks); /* rows of such a join have no order */
  if (*again && r->now->unordered)
    return wl_not_taken(err, "sum() may overflow, depending on the order of the join's rows");
  if (*again && r->pipe.device)
    return leave_device(r, "sum() may overflow, which only a run in row order can tell", err);
  if (*again) return WL_OK;
  if (!f->late.code) return WL_OK;
  r->late = f->late;
  if (!r->last->sorted) return WL_OK;
  *err = f->late;
  return f->late.code;
}

static wl_status end_pipe(wl_run *r, wl_error *err) {
  wl_sink *sink = r->pipe.sink;
  bool again = false;
  if (r->now->also) { /* the next pipeline runs into the same sink */
    close_pipe(r);
    r->now = r->now->also;
    return WL_OK;
  }
  wl_status rc = sink->finish(sink, err);
  if (!rc && r->now->sink == WL_SINK_GROUPS) rc = check_groups(r, &again, err);
  if (rc) return rc;
  wl_run_stats *stats = wl_run_stats_of(r->config.stats, r->now);
  bool passed = r->pipe.device && wl_sink_takes_rows(r->now->sink) && !sink->n_collected;
  close_pipe(r);
  if (again) {
    sink->clear(sink);
    r->groups.in_order = true;
    wl_run_stats_restart(stats);
    return WL_OK;
  }
  if (stats) stats->n_left = passed ? -1 : sink->n_left; /* a device has done the next one, too */
  if (stats) stats->n_collected = sink->n_collected;
  if (stats) stats->n_held = sink->n_held;
  if (r->now->source == WL_SOURCE_GROUPS) r->groups.sink.clear(&r->groups.sink);
  r->now = r->now->next;
  return WL_OK;
}

/* Makes one step towards the next batch. Sets *done if there will be no more. */
static wl_status advance(wl_run *r, bool *done, wl_error *err) {
  *done = !r->now;
  if (*done) {
    if (r->late.code) *err = r->late;
    return r->late.code;
  }
  wl_status rc = r->open ? WL_OK : open_pipe(r, err);
  if (rc) return rc;
  return wl_pipe_done(&r->pipe) ? end_pipe(r, err) : wave(r, err);
}

/* ---- measuring */

/* Like advance(), but also adds its time to the pipeline that runs. */
static wl_status advance_noted(wl_run *r, bool *done, wl_error *err) {
  wl_run_stats *s = r->now ? wl_run_stats_of(r->config.stats, r->now) : NULL;
  if (!s) return advance(r, done, err);
  bool rows = !r->open || !wl_pipe_done(&r->pipe);
  double start = wl_clock_ns();
  wl_status rc = advance(r, done, err);
  *(rows ? &s->ns_rows : &s->ns_finish) += wl_clock_ns() - start;
  return rc;
}

/* ---- results */

bool wl_run_more(const wl_run *r) {
  bool last = r->now && r->now->sink == WL_SINK_ROWS && !wl_program_after(r->now);
  bool ends = !r->now || (last && r->open && wl_pipe_done(&r->pipe));
  return r->results.to_give != 0 && (r->results.ready.first || r->late.code || !ends);
}

wl_status wl_run_next(wl_run *r, wl_batch **out, wl_error *err) {
  *out = NULL;
  for (;;) {
    if (!r->holds_back || !r->now) wl_rows_sink_next(&r->results, out);
    if (*out || r->results.to_give == 0) return WL_OK;
    bool done;
    wl_status rc = advance_noted(r, &done, err);
    if (rc || done) return rc;
  }
}
