/*
** The runner: from program to batches; see run.h. Called by route/answer.c; calls the engines.
*/
#include "exec/run_impl.h"
#include "base/clock.h"
#include "base/mem.h"
#include "column/lookup.h"
#include "exec/executed.h"
#include "exec/order.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { LEAST_ROWS = 4096 };

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
const char *wl_run_transfer(const wl_run *r) {
  return *r->transfer ? r->transfer : NULL;
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
  r->stop.check = config->check;
  r->stop.arg = config->check_arg;
  r->arena = *arena;
  memset(arena, 0, sizeof *arena);
  r->snap = *snap;
  memset(snap, 0, sizeof *snap);
  r->p = program;
  r->last = wl_program_last(program);
  r->also = program->also;
  r->ready_end = &r->ready;
  r->to_skip = r->last->offset;
  r->to_give = r->last->limit;
  r->n_tablets = (int)((r->snap.n_rows + WL_TABLET_ROWS - 1) >> WL_TABLET_SHIFT);
  if (r->config.threads < 1) r->config.threads = 1;
  r->collects = r->last->distinct || r->last->n_order > 0;
  r->holds_back = r->last->may_fail && (program->next || !program->as_sqlite) && !r->collects;
  while (r->n_held < program->n_joins) {
    const wl_lookup *l = program->joins[r->n_held++].lookup;
    if (l) wl_lookup_hold((wl_lookup *)(size_t)l);
  }
  wl_i64 most = r->snap.n_rows;
  for (const wl_program *a = r->also; a; a = a->also)
    if (program->joins[a->unmatched].n_rows > most) most = program->joins[a->unmatched].n_rows;
  if (program->expands && most > 0) most = most < LEAST_ROWS / 4 ? LEAST_ROWS : most * 4;
  if (most > WL_TABLET_ROWS) most = WL_TABLET_ROWS;
  wl_status rc = wl_program_pool(r->last, most, &r->pool, err);
  r->groups = wl_mem_zalloc((size_t)r->config.threads * sizeof *r->groups);
  r->in_order = program->in_order;
  if (!rc && !r->groups) rc = wl_nomem(err);
  if (!rc && r->also) rc = wl_marks_open(program, config->host_left, &r->marks, err);
  if (!rc && program->grouped)
    rc = wl_grouping_open(program, r->snap.n_rows * (program->expands ? 16 : 1), config->host_left,
                          r->config.threads, &r->grouping, err);
  if (rc) {
    wl_run_close(r);
    *out = NULL;
  }
  return rc;
}

static void close_pipe(wl_run *r) {
  if (r->pipe.p) wl_pipe_close(&r->pipe);
}

void wl_run_close(wl_run *r) {
  if (!r) return;
  wl_run_device_close(r);
  wl_run_sort_close(r);
  close_pipe(r);
  while (r->ready) {
    wl_batch *b = r->ready;
    r->ready = b->next;
    wl_batch_give(b);
  }
  for (int i = 0; r->groups && i < r->config.threads; i++) wl_groups_close(r->groups[i]);
  wl_mem_free(r->groups);
  wl_finished_close(&r->finished);
  wl_grouping_close(r->grouping);
  wl_marks_close(r->marks);
  wl_pool_close(r->pool);
  wl_snapshot_release(&r->snap);
  for (int k = 0; k < r->n_held; k++) wl_lookup_drop((wl_lookup *)(size_t)r->p->joins[k].lookup);
  wl_arena_close(&r->arena);
  wl_mem_free(r);
}

void wl_run_push(wl_run *r, wl_batch *b) {
  b->next = NULL;
  *r->ready_end = b;
  r->ready_end = &b->next;
}

wl_status wl_run_no_room(const wl_run *r, const char *what, wl_error *err) {
  return wl_not_taken(err,
                      "%s need more than the %lld bytes that host_budget leaves and more than "
                      "TMPDIR has room for: raise host_budget",
                      what, r->config.host_left);
}

/* Counts the memory of rows that are collected: two copies of them, and the sort. */
wl_status wl_run_collect(wl_run *r, const wl_batch *b, wl_error *err) {
  enum { SORTED = 64 };
  r->n_rows_collected += b->n_rows;
  r->n_collected += b->n_rows * SORTED;
  for (int k = 0; k < b->n_cols; k++)
    r->n_collected += 2 * (b->n_rows * 13 + (wl_i64)b->cols[k].n_heap);
  if (r->config.host_left && r->n_collected > r->config.host_left)
    return wl_run_no_room(
        r, r->holds_back ? "rows of a function that may fail" : "the rows to sort", err);
  return WL_OK;
}

/* ---- pipelines on the CPU */

/* Takes a batch from the sink of result rows. */
static wl_status take_batch(void *arg, wl_batch *b, wl_error *err) {
  wl_run *r = arg;
  wl_status rc = r->collects || r->holds_back ? wl_run_collect(r, b, err) : WL_OK;
  if (rc)
    wl_batch_give(b);
  else
    wl_run_push(r, b);
  return rc;
}

/* Opens the sink of a pipeline. */
static wl_sink *open_sink(wl_run *r, const wl_program *p) {
  if (p->sink == WL_SINK_GROUPS) {
    wl_groups_sink_init(&r->sink.groups, r->grouping, r->groups);
    return &r->sink.groups.sink;
  }
  if (r->sorter) {
    wl_keys_sink_init(&r->sink.keys, r->sorter);
    return &r->sink.keys.sink;
  }
  wl_rows_sink_init(&r->sink.rows, r->pool);
  r->sink.rows.take = take_batch;
  r->sink.rows.arg = r;
  return &r->sink.rows.sink;
}

/* The rows of a piece of which all rows fit into a batch. */
static wl_i64 batch_step(const wl_run *r) {
  wl_i64 step = 1;
  while (step * 2 <= wl_pool_rows(r->pool)) step *= 2;
  return step;
}

/* The counts of a pipeline's instructions. One over unmatched rows has the last instructions of the
** first pipeline. */
static wl_tally *tally_of(const wl_run *r, const wl_program *p) {
  if (!r->config.stats || p->source == WL_SOURCE_GROUPS) return NULL;
  return r->config.stats->tally + (r->p->n_code - p->n_code);
}

/* Opens a pipeline over the table, from next_tablet on, over the groups, or over unmatched rows. */
static wl_status open_pipe(wl_run *r, const wl_program *p, wl_error *err) {
  bool table = p->source != WL_SOURCE_GROUPS, rows = p->sink == WL_SINK_ROWS && !r->sorter;
  wl_i64 n_rows = p->source == WL_SOURCE_UNMATCHED ? p->joins[p->unmatched].n_rows
                  : table                          ? r->snap.n_rows
                                                   : r->finished.n;
  r->pipe =
      (wl_pipe){.p = p,
                .part = r->sorter ? WL_EXEC_KEYS : WL_EXEC_ALL,
                .cols = table ? r->snap.cols : NULL,
                .groups = table ? NULL : r->finished.cols,
                .marks = r->marks,
                .n_rows = n_rows,
                .step = table ? wl_pipe_step(n_rows, r->config.threads, p->expands) : batch_step(r),
                .threads = r->config.threads,
                .in_order = r->in_order && p->sink == WL_SINK_GROUPS,
                .streams = rows && !r->collects,
                .fills = rows,
                .needed = -1,
                .max_text = r->config.max_text,
                .stop = &r->stop,
                .tally = tally_of(r, p),
                .sink = open_sink(r, p),
                .next_row = p == r->p ? (wl_i64)r->next_tablet << WL_TABLET_SHIFT : 0};
  return wl_pipe_open(&r->pipe, err);
}

/* Runs a wave of pipeline p. Sets *done after the last one. */
static wl_status cpu_wave(wl_run *r, const wl_program *p, bool *done, wl_error *err) {
  wl_status rc = r->pipe.p ? WL_OK : open_pipe(r, p, err);
  if (!rc && r->pipe.fills && !r->collects)
    r->pipe.needed = r->sink.rows.needed = wl_cut_needed(r->to_skip, r->to_give);
  if (!rc) rc = wl_pipe_wave(&r->pipe, err);
  if (rc == WL_NOT_TAKEN && !err->code) rc = wl_run_no_room(r, "the groups", err);
  *done = !rc && wl_pipe_done(&r->pipe);
  if (*done) close_pipe(r);
  return rc;
}

/* ---- CPU or device */

/* Makes the CPU take over at next_tablet, which is 0 if it must start again. */
static void leave_device(wl_run *r, const char *why) {
  snprintf(r->detour, sizeof r->detour, "%.190s", why);
  wl_run_device_close(r);
  r->config.device = NULL;
}

static wl_status one_wave(wl_run *r, wl_error *err) {
  bool done = false;
  wl_status rc = wl_stop_ask(&r->stop, err);
  if (rc) return rc;
  if (r->config.device) {
    rc = wl_run_device_wave(r, err);
    if (rc == WL_NOT_TAKEN) leave_device(r, err->text);
    return rc == WL_NOT_TAKEN ? WL_OK : rc; /* the CPU's first step may be to open a sorter */
  }
  rc = cpu_wave(r, r->p, &done, err);
  if (done) r->next_tablet = r->n_tablets;
  return rc;
}

/* Runs a wave of the next pipeline over unmatched rows. */
static wl_status unmatched_wave(wl_run *r, wl_error *err) {
  bool done = false;
  wl_status rc = wl_stop_ask(&r->stop, err);
  if (!rc) rc = cpu_wave(r, r->also, &done, err);
  if (done) r->also = r->also->also;
  return rc;
}

/* ---- the groups */

/* Joins the workers' groups. Sets *again if they must be gathered again in row order. */
static wl_status finish_groups(wl_run *r, bool *again, wl_error *err) {
  wl_finishing f = {.plan = r->grouping,
                    .workers = r->groups,
                    .n_workers = r->config.threads,
                    .in_order = r->in_order,
                    .cols = r->snap.cols,
                    .max_text = r->config.max_text,
                    .check = r->config.check,
                    .check_arg = r->config.check_arg};
  wl_status rc = wl_groups_finish(&f, &r->finished, err);
  if (rc == WL_NOT_TAKEN) rc = wl_run_no_room(r, "the groups", err);
  *again = !rc && r->finished.again;
  if (*again && r->p->unordered) {
    *again = false;
    return wl_not_taken(err, "sum() may overflow, depending on the order of the join's rows");
  }
  if (*again) {
    assert(!r->marks); /* the rows of a join have no order */
    wl_finished_close(&r->finished);
    for (int i = 0; i < r->config.threads; i++) {
      wl_groups_close(r->groups[i]);
      r->groups[i] = NULL;
    }
    if (r->config.device)
      leave_device(r, "sum() may overflow, which only a run in row order can tell");
    r->in_order = true;
    r->next_tablet = 0;
    return WL_OK;
  }
  if (!rc && r->finished.late.code) {
    if (r->last->n_order) {
      *err = r->finished.late;
      rc = r->finished.late.code;
    } else {
      r->late = r->finished.late;
    }
  }
  if (r->config.stats && r->p->n_keys) r->config.stats->n_groups = r->finished.n;
  return rc;
}

/* ---- collected rows */

/* Sorts the collected rows, and keeps those that LIMIT and OFFSET need. */
static wl_status order(wl_run *r, wl_order_of of, wl_error *err) {
  wl_i64 most = wl_cut_needed(r->to_skip, r->to_give);
  if (r->last->distinct) wl_executed_end(WL_ON_CPU, WL_END_DISTINCT);
  if (r->last->n_order) wl_executed_end(WL_ON_CPU, WL_END_SORT);
  wl_status rc = wl_order_batches(r->last, r->pool, of, &r->ready, most, r->config.threads,
                                  r->config.check, r->config.check_arg, err);
  r->ready_end = &r->ready;
  while (*r->ready_end) r->ready_end = &(*r->ready_end)->next;
  return rc;
}

/* With LIMIT, keeps only those of the collected rows that can still be among the first. Not with a
** device, because it may have to remove its own batches from the list (wl_expansion_leave). */
static wl_status prune(wl_run *r, wl_error *err) {
  enum { FEW = 1 << 18 };
  const wl_program *p = r->last;
  if (!r->collects || r->config.device || !p->n_order || p->distinct || r->n_rows_collected < FEW)
    return WL_OK;
  wl_i64 most = wl_cut_needed(r->to_skip, r->to_give);
  if (most < 0 || most > r->n_rows_collected / 8) return WL_OK;
  wl_status rc = order(r, WL_ORDER_SOME, err);
  r->pruned = true;
  r->n_collected = r->n_rows_collected = 0;
  for (const wl_batch *b = r->ready; b && !rc; b = b->next) rc = wl_run_collect(r, b, err);
  return rc;
}

/* ---- stages */

static wl_run_stage after_rows(const wl_run *r) {
  return r->collects ? WL_RUN_ORDER : WL_RUN_END;
}

/* Ends the first pipeline: makes what its sink leaves ready for the next stage. */
static wl_status end_scan(wl_run *r, wl_error *err) {
  bool again = false;
  wl_status rc = WL_OK;
  if (r->sorter) {
    rc = wl_run_sort(r, err);
    r->stage = WL_RUN_SORTED;
  } else if (r->p->next) {
    rc = finish_groups(r, &again, err);
    if (!again) r->stage = r->finished.n ? WL_RUN_GROUPS : after_rows(r);
  } else {
    r->stage = after_rows(r);
  }
  return rc;
}

/* Makes one step towards the next batch. Sets *done if there will be no more. */
static wl_status advance(wl_run *r, bool *done, wl_error *err) {
  bool ended = false;
  wl_status rc = WL_OK;
  *done = false;
  switch (r->stage) {
  case WL_RUN_SCAN:
    /* Before the first row: a pipeline that collects rows has no sorter. */
    if (r->collects && r->next_tablet == 0 && !r->pipe.p && !r->ready && !r->sorter)
      rc = wl_run_sort_open(r, err);
    if (!rc) rc = prune(r, err);
    if (rc) return rc;
    if (r->next_tablet < r->n_tablets) return one_wave(r, err);
    return r->also ? unmatched_wave(r, err) : end_scan(r, err);
  case WL_RUN_GROUPS:
    rc = wl_stop_ask(&r->stop, err);
    if (!rc) rc = prune(r, err);
    if (!rc) rc = cpu_wave(r, r->last, &ended, err);
    if (!ended) return rc;
    wl_finished_close(&r->finished);
    r->stage = after_rows(r);
    return rc;
  case WL_RUN_SORTED:
    rc = wl_run_sorted_rows(r, &ended, err);
    if (ended) r->stage = WL_RUN_END;
    return rc;
  case WL_RUN_ORDER:
    r->stage = WL_RUN_END;
    r->collected = true;
    return order(r, r->pruned ? WL_ORDER_LEFT : WL_ORDER_ALL, err);
  case WL_RUN_END: break;
  }
  *done = true;
  if (!r->late.code) return WL_OK;
  *err = r->late;
  return r->late.code;
}

/* ---- measuring */

static wl_phase phase_of(const wl_run *r) {
  if (r->stage == WL_RUN_SCAN && (r->next_tablet < r->n_tablets || r->also)) return WL_PHASE_SCAN;
  if (r->sorter) return WL_PHASE_SORT;
  return r->p->next && r->stage <= WL_RUN_GROUPS ? WL_PHASE_GROUP : WL_PHASE_SORT;
}

/* Like advance(), but also records its time and the number of rows it sorts. */
static wl_status advance_noted(wl_run *r, bool *done, wl_error *err) {
  wl_run_stats *s = r->config.stats;
  if (!s) return advance(r, done, err);
  wl_phase phase = phase_of(r);
  for (const wl_batch *b = r->stage == WL_RUN_ORDER ? r->ready : NULL; b; b = b->next)
    s->n_sorted += b->n_rows;
  double start = wl_clock_ns();
  wl_status rc = advance(r, done, err);
  s->ns[phase] += wl_clock_ns() - start;
  return rc;
}

/* Whether ready batches must be held back for now. */
static bool waits(const wl_run *r) {
  return (r->collects && !r->collected) || (r->holds_back && r->stage <= WL_RUN_GROUPS);
}

bool wl_run_more(const wl_run *r) {
  bool scanned =
      r->stage == WL_RUN_SCAN && r->next_tablet == r->n_tablets && !r->also && !r->p->next;
  bool ends = r->stage == WL_RUN_END || (scanned && !r->collects && !r->sorter);
  return r->to_give != 0 && (r->ready || r->late.code || !ends);
}

wl_status wl_run_batch(wl_run *r, wl_batch **out, wl_error *err) {
  return wl_batch_take(r->pool, out, err);
}

wl_status wl_run_next(wl_run *r, wl_batch **out, wl_error *err) {
  *out = NULL;
  for (;;) {
    if (r->to_give == 0) return WL_OK;
    while (!r->ready || waits(r)) {
      bool done;
      wl_status rc = advance_noted(r, &done, err);
      if (rc || done) return rc;
    }
    wl_batch *b = r->ready;
    r->ready = b->next;
    if (!r->ready) r->ready_end = &r->ready;
    b->skip = r->to_skip < b->n_rows ? r->to_skip : b->n_rows;
    r->to_skip -= b->skip;
    wl_i64 n = b->n_rows - b->skip;
    if (r->to_give >= 0 && n > r->to_give) {
      n = r->to_give;
      wl_executed_end(WL_ON_CPU, WL_END_LIMIT);
      b->n_rows = b->skip + n;
    }
    if (r->to_give >= 0) r->to_give -= n;
    if (n == 0) {
      wl_batch_give(b);
      continue;
    }
    *out = b;
    return WL_OK;
  }
}
