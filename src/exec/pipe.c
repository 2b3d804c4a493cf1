/*
** Runs one pipeline; see pipe.h.
*/
#include "exec/pipe.h"
#include "exec/executed.h"
#include "exec/sink/lookup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "base/threads.h"
#include "exec/zone.h"
#include <limits.h>
#include <string.h>

/*
** To wake a thread and to wait for it takes some ten microseconds. So a scan whose rows leave at
** once starts alone if the other threads sleep. The first piece has FIRST_ROWS rows, and each piece
** twice as many as the one before, until one takes SURE_NS. Its time says what the rows that are
** left will take. Each thread must get SHARE_NS of that. The first piece also opens workers and
** batches, so it must be long to count.
*/
enum { FIRST_ROWS = 1024 };
#define SURE_FIRST_NS 50e3
#define SURE_NS       3e3
#define SHARE_NS      50e3

/* Several pieces a thread, so that all finish at about the same time. But a piece has a price of
** its own, so it should have some rows. */
wl_i64 wl_pipe_step(const wl_program *p, wl_i64 n_rows, int threads) {
  enum { PIECES_PER_THREAD = 8, LEAST_ROWS = 4096 };
  wl_i64 share = n_rows / ((wl_i64)threads * PIECES_PER_THREAD), made = n_rows, step = 1;
  if (!p->expands) return WL_TABLET_ROWS;
  /* a join with a key makes about as many rows as either side has */
  for (int j = 0; j < p->n_joins; j++)
    if (p->joins[j].lookup && p->joins[j].lookup->n_rows > made) made = p->joins[j].lookup->n_rows;
  wl_i64 least = made ? (wl_i64)((double)n_rows / (double)made * LEAST_ROWS) : 0;
  if (share < least) share = least;
  while (step * 2 <= share && step < WL_TABLET_ROWS) step *= 2;
  return step;
}

/* Whether pieces fill batches. */
static bool fills(const wl_pipe *e) {
  return wl_sink_takes_rows(e->p->sink);
}

/* Sets the threads of the following waves. */
static void start_threads(wl_pipe *e, int n) {
  e->n_threads = n;
  e->alone_step = 0;
  /* Waves with batches stay small, so that the batches stay in the cache. */
  e->wave = !fills(e) ? WL_MAX_PIECES : e->streams && e->p->expands ? 2 * n : n;
  if (e->wave > WL_MAX_PIECES) e->wave = WL_MAX_PIECES;
}

wl_status wl_pipe_open(wl_pipe *e, wl_error *err) {
  if (!e->device) wl_executed_pipeline(WL_ON_CPU, e->p);
  bool scan = e->p->source == WL_SOURCE_TABLE && e->streams && !e->p->n_joins;
  bool awake = 2 * wl_threads_awake() >= e->threads - 1;
  bool alone = scan && e->n_rows > e->step && !awake;
  start_threads(e, alone || e->in_order ? 1 : e->threads);
  if (alone && !e->in_order) e->alone_step = FIRST_ROWS;
  e->workers = wl_mem_zalloc((size_t)e->threads * sizeof *e->workers);
  return e->workers ? WL_OK : wl_nomem(err);
}

static void close_piece(wl_pipe *e, wl_row_piece *q) {
  while (q->batches) {
    wl_batch *b = q->batches;
    q->batches = b->next;
    wl_batch_give(b);
  }
  if (q->x) e->idle[e->n_idle++] = q->x;
  wl_mem_free(q);
}

void wl_pipe_close(wl_pipe *e) {
  if (e->state) wl_device_end(e);
  for (int i = 0; i < e->n_pieces; i++) close_piece(e, e->pieces[i]);
  for (int i = 0; i < e->n_idle; i++) wl_exec_close(e->idle[i]);
  for (int i = 0; e->workers && i < e->threads; i++) wl_exec_close(e->workers[i]);
  wl_mem_free(e->workers);
  memset(e, 0, sizeof *e);
}

void wl_pipe_leave_device(wl_pipe *e) {
  wl_device_end(e);
  e->device = NULL;
  wl_executed_pipeline(WL_ON_CPU, e->p);
}

bool wl_pipe_done(const wl_pipe *e) {
  return e->n_pieces == 0 && e->next_row >= e->n_rows;
}

static wl_status open_worker(const wl_pipe *e, wl_exec **out, wl_error *err) {
  wl_status rc = wl_exec_open(e->p, e->cols, e->groups, e->max_text, out, err);
  return !rc && e->tally ? wl_exec_watch(*out, e->tally, err) : rc;
}

/* Adds the next piece, if its rows cannot be skipped. */
static wl_status next_piece(wl_pipe *e, wl_error *err) {
  wl_i64 left = e->n_rows - e->next_row;
  int tablet = (int)(e->next_row >> WL_TABLET_SHIFT);
  if (e->p->source == WL_SOURCE_TABLE && wl_zone_skips(e->p, e->cols, tablet)) {
    e->next_row = ((wl_i64)tablet + 1) << WL_TABLET_SHIFT;
    if (e->next_row > e->n_rows) e->next_row = e->n_rows;
    return WL_OK;
  }
  wl_row_piece *q = wl_mem_zalloc(sizeof *q);
  if (!q) return wl_nomem(err);
  e->pieces[e->n_pieces++] = q;
  q->first = e->next_row;
  q->n = left < e->step ? left : e->step;
  if (e->alone_step && q->n > e->alone_step) q->n = e->alone_step;
  wl_i64 of_tablet = (((wl_i64)tablet + 1) << WL_TABLET_SHIFT) - e->next_row;
  if (!e->numbers && !e->groups && q->n > of_tablet) q->n = of_tablet;
  q->end = &q->batches;
  e->next_row += q->n;
  if (!fills(e) || !e->p->expands) return WL_OK;
  if (!e->n_idle) return open_worker(e, &q->x, err);
  q->x = e->idle[--e->n_idle];
  return WL_OK;
}

static wl_status ask(void *arg, wl_error *err) {
  return wl_stop_ask(((wl_pipe *)arg)->stop, err);
}

static wl_status run_piece(wl_pipe *e, wl_row_piece *q, int worker) {
  wl_exec *x = q->x;
  wl_status rc = WL_OK;
  if (!x && !e->workers[worker]) rc = open_worker(e, &e->workers[worker], &q->error);
  if (!x) x = e->workers[worker];
  if (rc) return rc;
  if (!q->begun && !e->numbers) {
    q->begun = true;
    wl_exec_begin(x, (int)(q->first >> WL_TABLET_SHIFT), (wl_i32)(q->first & (WL_TABLET_ROWS - 1)),
                  (wl_i32)q->n);
  }
  wl_exec_stop_by(x, e->stop, worker == 0);
  while (!rc && !q->done && !atomic_load(&e->pause) && !wl_stop_is_set(e->stop)) {
    wl_exec_io io = {.max_rows = -1, .marks = e->marks, .poll.pause = q->x ? &e->pause : NULL};
    if (worker == 0 && e->stop->check) {
      io.poll.check = ask;
      io.poll.arg = e;
    }
    bool full = false;
    rc = e->sink->begin(e->sink, q, worker, &io, &full, &q->error);
    if (rc || full) break;
    if (e->numbers)
      rc = wl_exec_run_rows(x, e->numbers + q->first, q->n, io.out, &q->error);
    else
      rc = wl_exec_go(x, &io, &q->done, &q->error);
    if (e->numbers) q->done = !rc;
    if (!rc && e->sink->end) rc = e->sink->end(e->sink, q, worker, &q->error);
  }
  return rc;
}

/* The piece keeps its error. Pieces after it need not run. */
static wl_status piece_task(void *arg, int worker, long task, wl_error *err) {
  wl_pipe *e = arg;
  wl_row_piece *q = e->work[task];
  if (atomic_load(&e->pause) || q->first > atomic_load(&e->failed)) return WL_OK;
  q->status = run_piece(e, q, worker);
  long failed = atomic_load(&e->failed);
  while (q->status && q->first < failed &&
         !atomic_compare_exchange_weak(&e->failed, &failed, (long)q->first)) {
  }
  /* If the first piece has all the rows that are needed, the others need not go on. */
  if (q == e->pieces[0] && e->needed >= 0 && q->n_given >= e->needed) atomic_store(&e->pause, 1);
  return WL_OK;
}

static wl_status settle(wl_pipe *e, wl_row_piece *q, wl_error *err) {
  if (q->status == WL_NOMEM) return wl_nomem(err);
  if (q->status) *err = q->error;
  if (q->status || !e->sink->settle) return q->status;
  return e->sink->settle(e->sink, q, err);
}

int wl_pipe_threads(int threads, wl_i64 n, double ns, bool first, wl_i64 n_left) {
  if (ns < (first ? SURE_FIRST_NS : SURE_NS)) return 1;
  double shares = ns / (double)n * (double)n_left / SHARE_NS;
  return shares < 2 ? 1 : shares < threads ? (int)shares : threads;
}

/* The calling thread has run a piece alone. Decides how many threads go on. */
static void time_piece(wl_pipe *e, const wl_row_piece *q, double ns) {
  bool first = e->alone_step == FIRST_ROWS;
  int n = wl_pipe_threads(e->threads, q->n, ns, first, e->n_rows - e->next_row);
  if (!q->done) n = e->threads; /* its rows have multiplied */
  if (e->alone_step < e->step) e->alone_step *= 2;
  if (n > 1) start_threads(e, n);
}

wl_status wl_pipe_wave(wl_pipe *e, wl_error *err) {
  wl_status rc = WL_OK;
  int n_work = 0, n = 0;
  if (e->device) return wl_device_wave(e, err);
  for (int k = 0; k < e->p->n_joins && !e->fetched && !rc; k++)
    if (e->p->joins[k].lookup) rc = wl_lookup_fetch((wl_lookup *)e->p->joins[k].lookup, err);
  if (rc) return rc;
  e->fetched = true;
  bool alone = e->alone_step > 0;
  int wave = alone ? 1 : e->wave;
  while (e->n_pieces < wave && e->next_row < e->n_rows && !rc) rc = next_piece(e, err);
  if (rc) return rc;
  for (int i = 0; i < e->n_pieces; i++)
    if (!e->pieces[i]->done && !e->pieces[i]->status) e->work[n_work++] = e->pieces[i];
  atomic_store(&e->pause, 0);
  atomic_store(&e->failed, LONG_MAX);
  wl_tasks tasks = {e->n_threads, n_work, piece_task, e, e->stop};
  double start = alone ? wl_clock_ns() : 0;
  rc = wl_tasks_run(&tasks, NULL, err);
  if (alone && n_work && !rc) time_piece(e, e->work[0], wl_clock_ns() - start);
  if (rc) return rc;
  while (n < e->n_pieces && !rc) {
    rc = settle(e, e->pieces[n], err);
    if (rc || !e->pieces[n]->done) break;
    close_piece(e, e->pieces[n++]);
  }
  e->n_pieces -= n;
  memmove(e->pieces, e->pieces + n, (size_t)e->n_pieces * sizeof *e->pieces);
  if (!e->streams && !alone && e->wave < WL_MAX_PIECES) e->wave *= 2;
  if (e->wave > WL_MAX_PIECES) e->wave = WL_MAX_PIECES;
  return rc;
}
