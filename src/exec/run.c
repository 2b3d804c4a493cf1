/*
** The runner: from program to batches; see run.h. Called by route/answer.c; calls the engines.
*/
#include "exec/run_impl.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "program/zone.h"
#include "column/lookup.h"
#include "exec/order.h"
#include <stdio.h>
#include <string.h>

enum { MAX_WAVE = 64, LEAST_ROWS = 4096 };

const wl_program *wl_run_program(const wl_run *r) {
  return r->p;
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

static void find_blocks(wl_run *r) {
  r->table_block = r->second_block = -1;
  for (int pc = 0; pc < r->p->n_code; pc++) {
    if (r->p->code[pc].op != WL_OP__Parallel) continue;
    if (r->p->code[pc].a == WL_SOURCE_TABLE)
      r->table_block = pc;
    else
      r->second_block = pc;
  }
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
  r->ready_end = &r->ready;
  r->to_skip = program->offset;
  r->to_give = program->limit;
  r->n_tablets = (int)((r->snap.n_rows + WL_TABLET_ROWS - 1) >> WL_TABLET_SHIFT);
  if (r->config.threads < 1) r->config.threads = 1;
  r->wave = r->config.threads;
  find_blocks(r);
  r->collects = program->distinct || program->n_order > 0;
  r->holds_back = program->may_fail && !program->as_sqlite && r->second_block < 0 && !r->collects;
  while (r->n_held < program->n_joins) {
    const wl_lookup *l = program->joins[r->n_held++].lookup;
    if (l) wl_lookup_hold((wl_lookup *)(size_t)l);
  }
  wl_i64 most = r->snap.n_rows;
  if (program->expands && most > 0) most = most < LEAST_ROWS / 4 ? LEAST_ROWS : most * 4;
  if (most > WL_TABLET_ROWS) most = WL_TABLET_ROWS;
  wl_status rc = wl_program_pool(program, most, &r->pool, err);
  r->workers = wl_mem_zalloc((size_t)r->config.threads * sizeof *r->workers);
  r->groups = wl_mem_zalloc((size_t)r->config.threads * sizeof *r->groups);
  r->in_order = program->in_order;
  if (!rc && (!r->workers || !r->groups)) rc = wl_nomem(err);
  if (!rc && program->grouped)
    rc = wl_grouping_open(program, r->snap.n_rows * (program->expands ? 16 : 1), config->host_left,
                          r->config.threads, &r->grouping, err);
  if (rc) {
    wl_run_close(r);
    *out = NULL;
  }
  return rc;
}

void wl_run_close(wl_run *r) {
  if (!r) return;
  wl_run_device_close(r);
  wl_run_sort_close(r);
  wl_run_expand_close(r);
  while (r->ready) {
    wl_batch *b = r->ready;
    r->ready = b->next;
    wl_batch_give(b);
  }
  for (int i = 0; r->workers && i < r->config.threads; i++) wl_exec_close(r->workers[i]);
  wl_mem_free(r->workers);
  for (int i = 0; r->groups && i < r->config.threads; i++) wl_groups_close(r->groups[i]);
  wl_mem_free(r->groups);
  wl_finished_close(&r->finished);
  wl_grouping_close(r->grouping);
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

/* ---- the CPU's waves */

wl_status wl_run_worker(wl_run *r, wl_exec_part part, wl_exec **out, wl_error *err) {
  wl_status rc = wl_exec_open_part(r->p, r->table_block, r->snap.cols, NULL, part,
                                   r->config.max_text, out, err);
  if (!rc && r->config.stats && part != WL_EXEC_ROWS)
    rc = wl_exec_watch(*out, r->config.stats->tally, err);
  return rc;
}

typedef struct wave {
  wl_run *r;
  int n;
  wl_i64 max_rows; /* most rows of a batch; LIMIT would cut off more */
  wl_batch *batches[MAX_WAVE];
} wave;

static wl_status wave_task(void *arg, int worker, long task, wl_error *err) {
  wave *w = arg;
  wl_run *r = w->r;
  wl_status rc = WL_OK;
  if (wl_zone_skips(r->p, r->table_block, r->snap.cols, r->next_tablet + (int)task)) return WL_OK;
  if (!r->workers[worker]) rc = wl_run_worker(r, WL_EXEC_ALL, &r->workers[worker], err);
  if (!rc && r->p->grouped && !r->groups[worker])
    rc = wl_groups_open(r->grouping, &r->groups[worker], err);
  if (!rc && r->second_block < 0) rc = wl_batch_take(r->pool, &w->batches[task], err);
  if (!rc) {
    int tablet = r->next_tablet + (int)task;
    wl_exec_stop_by(r->workers[worker], &r->stop, worker == 0);
    wl_i64 left = r->snap.n_rows - ((wl_i64)tablet << WL_TABLET_SHIFT);
    rc = wl_exec_run(r->workers[worker], tablet, 0,
                     (wl_i32)(left < WL_TABLET_ROWS ? left : WL_TABLET_ROWS), w->batches[task],
                     w->max_rows, r->groups[worker], err);
  }
  return rc;
}

wl_status wl_run_cpu_wave(wl_run *r, wl_error *err) {
  wave w = {.r = r, .n = r->n_tablets - r->next_tablet};
  if (w.n > r->wave) w.n = r->wave;
  if (w.n > MAX_WAVE) w.n = MAX_WAVE;
  w.max_rows = r->collects ? -1 : wl_cut_needed(r->to_skip, r->to_give);
  wl_tasks tasks = {r->in_order ? 1 : r->config.threads, w.n, wave_task, &w, &r->stop};
  long n_done;
  wl_status rc = WL_OK, failed = wl_tasks_run(&tasks, &n_done, err);
  if (failed == WL_NOT_TAKEN && !err->code) failed = wl_run_no_room(r, "the groups", err);
  for (int i = 0; i < w.n; i++) {
    if (i == n_done && !rc) rc = failed; /* an error of the rows before it comes first */
    if (!w.batches[i]) continue;
    if (!rc && (r->collects || r->holds_back)) rc = wl_run_collect(r, w.batches[i], err);
    if (!rc && w.batches[i]->n_rows)
      wl_run_push(r, w.batches[i]);
    else
      wl_batch_give(w.batches[i]);
  }
  if (!rc) rc = failed;
  r->next_tablet += w.n;
  /* Waves with batches stay small, so that the batches stay in the cache. Others may grow. */
  if ((r->second_block >= 0 || r->collects) && r->wave < MAX_WAVE) r->wave *= 2;
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
  wl_status rc = wl_stop_ask(&r->stop, err);
  if (rc) return rc;
  if (r->config.device) {
    rc = wl_run_device_wave(r, err);
    if (rc != WL_NOT_TAKEN) return rc;
    leave_device(r, err->text);
  }
  if (r->p->expands) return wl_run_expand_wave(r, err);
  return wl_run_cpu_wave(r, err);
}

/* ---- the second block: over the groups */

typedef struct second {
  wl_run *r;
  const wl_srccol *source;
  wl_i64 n, step; /* rows of the source, and rows per task */
  wl_exec **workers;
  wl_batch **batches; /* [tasks] */
} second;

static wl_status second_task(void *arg, int worker, long task, wl_error *err) {
  second *s = arg;
  wl_run *r = s->r;
  wl_status rc = WL_OK;
  if (!s->workers[worker])
    rc = wl_exec_open(r->p, r->second_block, NULL, s->source, r->config.max_text,
                      &s->workers[worker], err);
  if (!rc) rc = wl_batch_take(r->pool, &s->batches[task], err);
  if (!rc) wl_exec_stop_by(s->workers[worker], &r->stop, worker == 0);
  wl_i64 at = s->step * task, n = s->n - at < s->step ? s->n - at : s->step;
  while (n > 0 && !rc) {
    /* A call must stay within one tablet of the source. */
    wl_i64 m = WL_TABLET_ROWS - (at & (WL_TABLET_ROWS - 1));
    if (m > n) m = n;
    rc = wl_exec_run(s->workers[worker], (int)(at >> WL_TABLET_SHIFT),
                     (wl_i32)(at & (WL_TABLET_ROWS - 1)), (wl_i32)m, s->batches[task], -1, NULL,
                     err);
    at += m;
    n -= m;
  }
  return rc;
}

static wl_status second_block(wl_run *r, const wl_srccol *source, wl_i64 n, wl_error *err) {
  if (n == 0) return WL_OK;
  second s = {.r = r, .source = source, .n = n, .step = wl_pool_rows(r->pool)};
  size_t tasks = (size_t)((n + s.step - 1) / s.step), threads = (size_t)r->config.threads;
  s.workers = wl_mem_zalloc(threads * sizeof *s.workers);
  s.batches = wl_mem_zalloc(tasks * sizeof *s.batches);
  wl_status rc = WL_OK, failed = s.workers && s.batches ? WL_OK : wl_nomem(err);
  wl_tasks todo = {r->config.threads, (long)tasks, second_task, &s, &r->stop};
  long n_done = 0;
  if (!failed) failed = wl_tasks_run(&todo, &n_done, err);
  for (size_t t = 0; t < tasks && s.batches; t++) {
    if ((long)t == n_done && !rc) rc = failed; /* an error of the rows before it comes first */
    if (!rc && s.batches[t] && r->collects) rc = wl_run_collect(r, s.batches[t], err);
    if (!rc && s.batches[t] && s.batches[t]->n_rows)
      wl_run_push(r, s.batches[t]);
    else
      wl_batch_give(s.batches[t]);
  }
  for (size_t t = 0; s.workers && t < threads; t++) wl_exec_close(s.workers[t]);
  wl_mem_free(s.workers);
  wl_mem_free(s.batches);
  return rc ? rc : failed;
}

/* Joins the workers' groups and runs the second block over them. Sets *again if they must be
** gathered again in row order. */
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
    wl_finished_close(&r->finished);
    return wl_not_taken(err, "sum() may overflow, depending on the order of the join's rows");
  }
  if (*again) {
    wl_finished_close(&r->finished);
    for (int i = 0; i < r->config.threads; i++) {
      wl_groups_close(r->groups[i]);
      r->groups[i] = NULL;
    }
    if (r->config.device)
      leave_device(r, "sum() may overflow, which only a run in row order can tell");
    wl_run_expand_close(r); /* its pieces begin again, too */
    r->in_order = true;
    r->next_tablet = 0;
    return WL_OK;
  }
  if (!rc && r->finished.late.code) {
    if (r->p->n_order) {
      *err = r->finished.late;
      rc = r->finished.late.code;
    } else {
      r->late = r->finished.late;
    }
  }
  if (r->config.stats && r->p->n_keys) r->config.stats->n_groups = r->finished.n;
  if (!rc) rc = second_block(r, r->finished.cols, r->finished.n, err);
  wl_finished_close(&r->finished);
  return rc;
}

/* Sorts the collected rows, and keeps those that LIMIT and OFFSET need. */
static wl_status order(wl_run *r, wl_order_of of, wl_error *err) {
  wl_i64 most = wl_cut_needed(r->to_skip, r->to_give);
  wl_status rc = wl_order_batches(r->p, r->pool, of, &r->ready, most, r->config.threads,
                                  r->config.check, r->config.check_arg, err);
  r->ready_end = &r->ready;
  while (*r->ready_end) r->ready_end = &(*r->ready_end)->next;
  return rc;
}

/* With LIMIT, keeps only those of the collected rows that can still be among the first. Not with a
** device, because it may have to remove its own batches from the list (wl_expansion_leave). */
static wl_status prune(wl_run *r, wl_error *err) {
  enum { FEW = 1 << 18 };
  const wl_program *p = r->p;
  if (!r->collects || r->collected || r->config.device || !p->n_order || p->distinct ||
      r->n_rows_collected < FEW)
    return WL_OK;
  wl_i64 most = wl_cut_needed(r->to_skip, r->to_give);
  if (most < 0 || most > r->n_rows_collected / 8) return WL_OK;
  wl_status rc = order(r, WL_ORDER_SOME, err);
  r->pruned = true;
  r->n_collected = r->n_rows_collected = 0;
  for (const wl_batch *b = r->ready; b && !rc; b = b->next) rc = wl_run_collect(r, b, err);
  return rc;
}

/* Makes one step towards the next batch. Sets *done if there will be no more. */
static wl_status advance(wl_run *r, bool *done, wl_error *err) {
  *done = false;
  if (r->collects && r->next_tablet == 0 && !r->ready && !r->sorter) {
    wl_status rc = wl_run_sort_open(r, err);
    if (rc) return rc;
  }
  if (r->sorter) return wl_run_sort_step(r, done, err);
  wl_status pruned = prune(r, err);
  if (pruned) return pruned;
  if (r->next_tablet < r->n_tablets) return one_wave(r, err);
  if (r->second_block >= 0 && !r->aggregated) {
    bool again = false;
    wl_status rc = finish_groups(r, &again, err);
    r->aggregated = !again;
    return rc;
  }
  if (r->collects && !r->collected) {
    r->collected = true;
    return order(r, r->pruned ? WL_ORDER_LEFT : WL_ORDER_ALL, err);
  }
  if (r->late.code) {
    *err = r->late;
    return r->late.code;
  }
  *done = true;
  return WL_OK;
}

/* ---- measuring */

static wl_phase phase_of(const wl_run *r) {
  if (r->next_tablet < r->n_tablets) return WL_PHASE_SCAN;
  if (r->sorter) return WL_PHASE_SORT;
  return r->second_block >= 0 && !r->aggregated ? WL_PHASE_GROUP : WL_PHASE_SORT;
}

/* Like advance(), but also records its time and the number of rows it sorts. */
static wl_status advance_noted(wl_run *r, bool *done, wl_error *err) {
  wl_run_stats *s = r->config.stats;
  if (!s) return advance(r, done, err);
  wl_phase phase = phase_of(r);
  bool sorts = phase == WL_PHASE_SORT && r->collects && !r->collected;
  for (const wl_batch *b = sorts ? r->ready : NULL; b; b = b->next) s->n_sorted += b->n_rows;
  double start = wl_clock_ns();
  wl_status rc = advance(r, done, err);
  s->ns[phase] += wl_clock_ns() - start;
  return rc;
}

/* Whether ready batches must be held back for now. */
static bool waits(const wl_run *r) {
  return (r->collects && !r->collected) || (r->holds_back && r->next_tablet < r->n_tablets);
}

bool wl_run_more(const wl_run *r) {
  return r->to_give != 0 && (r->ready || r->late.code || r->next_tablet < r->n_tablets ||
                             (r->sorter && r->at_sorted < r->n_sorted));
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
