/*
** The CPU engine: runs a pipeline over rows of a tablet, one vector of 1024 rows at a time.
**
** Invariants:
** 1. A filter removes rows from the vector. Later instructions work on dense vectors of the rows
**    that are left, and sel says which rows of the tablet they are.
** 2. A worker (wl_exec) is used by one thread at a time and allocates nothing per vector.
** 3. For each joined source there is a vector of row numbers, through which its columns are read.
**    An Expand makes new vectors of pairs, and the rest of the code runs for each of them.
*/
#ifndef WL_EXEC_H
#define WL_EXEC_H

#include "column/column.h"
#include "column/batch.h"
#include "exec/cpu/group/group.h"
#include "exec/cpu/sorter.h"
#include "value/ops.h"
#include "base/stop.h"
#include "exec/tally.h"
#include <stdatomic.h>

typedef struct wl_exec wl_exec;

/* Opens a worker for a pipeline. cols are the table's columns. source are the columns of groups, if
** the pipeline reads groups, else NULL. Both are borrowed. */
wl_status wl_exec_open(const wl_program *p, wl_column **cols, const wl_srccol *source,
                       wl_u64 max_text, wl_exec **out, wl_error *err) WL_MUST;
void wl_exec_close(wl_exec *x);
/* From now on, long work ends early when s is set. asks: x runs on the calling thread, which may
** call wl_stop_ask. s is borrowed. */
void wl_exec_stop_by(wl_exec *x, wl_stop *s, bool asks);
/* Starts counting. Closing the worker adds its counts to total, which has one for each
** instruction. */
wl_status wl_exec_watch(wl_exec *x, wl_tally *total, wl_error *err) WL_MUST;

/* Computes the results of n rows, given by their numbers in the table. */
wl_status wl_exec_run_rows(wl_exec *x, const wl_u32 *rows, wl_i64 n, wl_batch *out,
                           wl_error *err) WL_MUST;

/* ---- pieces: consecutive rows, run in steps, as a row may become any number of rows */

/* Polled every few milliseconds. */
typedef struct wl_poll {
  atomic_int *pause;                            /* if not 0, return soon and leave the rest */
  wl_status (*check)(void *arg, wl_error *err); /* NULL: this thread must not check */
  void *arg;
} wl_poll;

/* What a piece fills: one of these. A batch is full if a whole vector does not fit any more. */
typedef struct wl_exec_io {
  wl_batch *out;
  wl_i64 max_rows; /* stop when the batch has this many rows; -1: no limit */
  wl_groups *groups;
  wl_sorter *sorter; /* takes the sort keys of rows; worker: the number of the worker there */
  int worker;
  struct wl_build_sink *build; /* takes the keys of a lookup */
  struct wl_marks *marks;      /* what Mark sets, and the source UNMATCHED reads (marks.h) */
  wl_poll poll;
} wl_exec_io;

/* Starts rows [first, first + n) of a tablet. */
void wl_exec_begin(wl_exec *x, int tablet, wl_i32 first, wl_i32 n);
/* Continues until these rows are done, the batch is full, or poll asks to stop. */
wl_status wl_exec_go(wl_exec *x, const wl_exec_io *io, bool *done, wl_error *err) WL_MUST;

/* ---- build programs (lookup.h) */

struct wl_key_plan;

/* Collects the keys of rows, as words, and the row numbers. */
typedef struct wl_build_sink {
  const struct wl_key_plan *plan;
  wl_u64 *words;
  wl_u32 *rows;
  wl_i64 n;      /* rows so far; there is room for all rows */
  bool has_null; /* a row was left out because of a NULL key */
} wl_build_sink;

#endif
