/*
** The runner's waves for blocks with an Expand, where a row may become any number of rows. Source
** 0 is split into pieces of few rows. A piece can stop half-way and continue in a later wave. Used
** instead of wl_run_cpu_wave().
**
** Invariants:
** 1. Pieces are in row order, and so are their batches: those of a piece are appended only when
**    all pieces before it are done.
** 2. A piece that gives rows has its own worker (wl_exec) and holds batches for at most MOST_ROWS
**    rows. A piece that aggregates never stops before its end, unless the run is stopped.
** 3. Only the calling thread calls config.check, which can stop all pieces.
*/
#include "exec/run_impl.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "program/zone.h"
#include <string.h>

enum { MAX_PIECES = 64, MOST_ROWS = 2 * WL_TABLET_ROWS, PER_THREAD = 16 };

typedef struct run_piece {
  wl_i64 first, n; /* rows of source 0 */
  wl_exec *x;      /* its own worker, if it gives rows */
  bool begun, done;
  wl_batch *batches, **end;
  int n_batches;
  wl_i64 n_given;
  wl_status status;
  wl_error error;
} run_piece;

struct wl_expanding {
  wl_run *r;
  wl_i64 next_row, step; /* step is a power of 2, so that a piece is within one tablet */
  run_piece *pieces[MAX_PIECES];
  int n;
  run_piece *work[MAX_PIECES]; /* the pieces of this wave */
  wl_exec *idle[MAX_PIECES];
  int n_idle;
  wl_i64 max_rows; /* most rows that LIMIT and OFFSET need; -1: all */
  int most;        /* most batches of a piece */
  atomic_int pause;
};

static void piece_close(wl_expanding *e, run_piece *q) {
  if (!q) return;
  while (q->batches) {
    wl_batch *b = q->batches;
    q->batches = b->next;
    wl_batch_give(b);
  }
  if (q->x) e->idle[e->n_idle++] = q->x;
  wl_mem_free(q);
}

void wl_run_expand_close(wl_run *r) {
  wl_expanding *e = r->expanding;
  if (!e) return;
  for (int i = 0; i < e->n; i++) piece_close(e, e->pieces[i]);
  for (int i = 0; i < e->n_idle; i++) wl_exec_close(e->idle[i]);
  wl_mem_free(e);
  r->expanding = NULL;
}

static wl_status open_expanding(wl_run *r, wl_error *err) {
  wl_expanding *e = r->expanding = wl_mem_zalloc(sizeof *e);
  if (!e) return wl_nomem(err);
  e->r = r;
  wl_i64 share = r->snap.n_rows / ((wl_i64)r->config.threads * PER_THREAD);
  e->most = (int)(MOST_ROWS / wl_pool_rows(r->pool));
  e->step = 1;
  while (e->step * 2 <= share && e->step < WL_TABLET_ROWS) e->step *= 2;
  return WL_OK;
}

/* Adds the next piece, if there is one. */
static wl_status next_piece(wl_expanding *e, wl_error *err) {
  wl_run *r = e->r;
  wl_i64 left = r->snap.n_rows - e->next_row;
  wl_i64 n = left < e->step ? left : e->step;
  int tablet = (int)(e->next_row >> WL_TABLET_SHIFT);
  if (wl_zone_skips(r->p, r->table_block, r->snap.cols, tablet)) {
    e->next_row = ((wl_i64)tablet + 1) << WL_TABLET_SHIFT;
    if (e->next_row > r->snap.n_rows) e->next_row = r->snap.n_rows;
    return WL_OK;
  }
  run_piece *q = e->pieces[e->n] = wl_mem_zalloc(sizeof *q);
  if (!q) return wl_nomem(err);
  e->n++;
  q->first = e->next_row;
  q->n = n;
  q->end = &q->batches;
  e->next_row += n;
  if (r->second_block >= 0) return WL_OK;
  if (e->n_idle) {
    q->x = e->idle[--e->n_idle];
    return WL_OK;
  }
  return wl_run_worker(r, WL_EXEC_ALL, &q->x, err);
}

/* Only the calling thread calls this. */
static wl_status ask(void *arg, wl_error *err) {
  return wl_stop_ask(&((wl_expanding *)arg)->r->stop, err);
}

static wl_status go_on(wl_expanding *e, run_piece *q, wl_exec *x, wl_groups *groups, int worker) {
  wl_run *r = e->r;
  wl_status rc = WL_OK;
  bool gives = r->second_block < 0;
  wl_exec_io io = {.max_rows = -1, .groups = groups};
  io.poll.pause = &e->pause;
  io.poll.check = worker == 0 && r->config.check ? ask : NULL;
  io.poll.arg = e;
  wl_exec_stop_by(x, &r->stop, worker == 0);
  while (!rc && !q->done && !atomic_load(&e->pause) && !wl_stop_is_set(&r->stop)) {
    wl_batch *b = NULL;
    if (gives) {
      if (q->n_batches == e->most) break;
      rc = wl_batch_take(r->pool, &b, &q->error);
      if (rc) break;
      *q->end = b;
      q->end = &b->next;
      q->n_batches++;
      io.max_rows = e->max_rows < 0 ? -1 : e->max_rows - q->n_given;
    }
    io.out = b;
    rc = wl_exec_go(x, &io, &q->done, &q->error);
    if (b) q->n_given += b->n_rows;
  }
  return rc;
}

/* The piece remembers its error, which counts only once the pieces before it are done. */
static wl_status piece_task(void *arg, int worker, long task, wl_error *err) {
  wl_expanding *e = arg;
  wl_run *r = e->r;
  run_piece *q = e->work[task];
  wl_exec *x = q->x;
  wl_status rc = WL_OK;
  (void)err;
  if (atomic_load(&e->pause)) return WL_OK;
  if (!x && !r->workers[worker]) rc = wl_run_worker(r, WL_EXEC_ALL, &r->workers[worker], &q->error);
  if (!x) x = r->workers[worker];
  if (!rc && r->p->grouped && !r->groups[worker])
    rc = wl_groups_open(r->grouping, &r->groups[worker], &q->error);
  if (!rc && !q->begun) {
    q->begun = true;
    wl_exec_begin(x, (int)(q->first >> WL_TABLET_SHIFT), (wl_i32)(q->first & (WL_TABLET_ROWS - 1)),
                  (wl_i32)q->n);
  }
  if (!rc) rc = go_on(e, q, x, r->groups[worker], worker);
  q->status = rc;
  /* If the first piece has all the rows that are needed, the others need not go on. */
  if (q == e->pieces[0] && e->max_rows >= 0 && q->n_given >= e->max_rows)
    atomic_store(&e->pause, 1);
  return WL_OK;
}

/* Gives the batches of the first piece to the run. */
static wl_status settle(wl_expanding *e, run_piece *q, wl_error *err) {
  wl_run *r = e->r;
  wl_status rc = q->status;
  if (rc) {
    *err = q->error;
    if (rc == WL_NOT_TAKEN && !err->code) rc = wl_run_no_room(r, "the groups", err);
    return rc;
  }
  while (q->batches && !rc) {
    wl_batch *b = q->batches;
    q->batches = b->next;
    if (r->collects || r->holds_back) rc = wl_run_collect(r, b, err);
    if (!rc && b->n_rows)
      wl_run_push(r, b);
    else
      wl_batch_give(b);
  }
  q->end = &q->batches;
  q->n_batches = 0;
  q->n_given = 0; /* the runner has counted these rows */
  return rc;
}

wl_status wl_run_expand_wave(wl_run *r, wl_error *err) {
  wl_status rc = r->expanding ? WL_OK : open_expanding(r, err);
  wl_expanding *e = r->expanding;
  if (rc) return rc;
  bool gives = r->second_block < 0;
  int most = gives ? 2 * r->config.threads : r->wave, n_work = 0;
  if (most > MAX_PIECES) most = MAX_PIECES;
  while (e->n < most && e->next_row < r->snap.n_rows && !rc) rc = next_piece(e, err);
  if (rc) return rc;
  e->max_rows = r->collects ? -1 : wl_cut_needed(r->to_skip, r->to_give);
  for (int i = 0; i < e->n; i++)
    if (!e->pieces[i]->done && !e->pieces[i]->status && e->pieces[i]->n_batches < e->most)
      e->work[n_work++] = e->pieces[i];
  atomic_store(&e->pause, 0);
  wl_tasks tasks = {r->in_order ? 1 : r->config.threads, n_work, piece_task, e, &r->stop};
  rc = wl_tasks_run(&tasks, NULL, err);
  if (rc) return rc;
  int n = 0;
  while (n < e->n && !rc) {
    rc = settle(e, e->pieces[n], err);
    if (rc || !e->pieces[n]->done) break;
    piece_close(e, e->pieces[n++]);
  }
  e->n -= n;
  memmove(e->pieces, e->pieces + n, (size_t)e->n * sizeof *e->pieces);
  if (!e->n && e->next_row == r->snap.n_rows) r->next_tablet = r->n_tablets;
  if (!gives && r->wave < MAX_PIECES) r->wave *= 2;
  return rc;
}
