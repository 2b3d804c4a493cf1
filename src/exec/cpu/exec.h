/*
** The CPU machine: runs one Parallel block over rows of a tablet, a vector of 1024 rows at
** a time.
**
** Invariants:
** 1. Rows that a filter drops leave the vector: what follows works on dense vectors of the
**    rows that are left, and sel tells which rows of the tablet they are.
** 2. A worker (wl_exec) is used by one thread at a time and allocates nothing per vector.
** 3. Rows of joined sources are row numbers beside the vector; a column of theirs is read through
**    them. An Expand makes new vectors of pairs, for which the rest of the block runs.
*/
#ifndef WL_EXEC_H
#define WL_EXEC_H

#include "column/column.h"
#include "exec/agg.h"
#include "column/batch.h"
#include "exec/cpu/group/group.h"
#include "exec/cpu/sorter.h"
#include "value/ops.h"
#include "base/stop.h"
#include "exec/tally.h"
#include <stdatomic.h>

typedef struct wl_exec wl_exec;

/* A worker for the block that starts with the Parallel at pc. cols: the table's columns;
** source: the columns of the second block's source, NULL in the first block. Both are
** borrowed. */
wl_status wl_exec_open(const wl_program *p, int pc, wl_column **cols, const wl_srccol *source,
                       wl_u64 max_text, wl_exec **out, wl_error *err) WL_MUST;
/* The same for a part of the block alone (sorter.h): the sort keys, or the results of rows that
** have passed the filters. */
typedef enum wl_exec_part { WL_EXEC_ALL, WL_EXEC_KEYS, WL_EXEC_ROWS } wl_exec_part;
wl_status wl_exec_open_part(const wl_program *p, int pc, wl_column **cols, const wl_srccol *source,
                            wl_exec_part part, wl_u64 max_text, wl_exec **out,
                            wl_error *err) WL_MUST;
void wl_exec_close(wl_exec *x);
/* From now on long work ends early when s says so. asks: x runs on the calling thread, which may
** ask. s is borrowed. */
void wl_exec_stop_by(wl_exec *x, wl_stop *s, bool asks);
/* Counts from now on; closing the worker adds its counts to total, one for each instruction. */
wl_status wl_exec_watch(wl_exec *x, wl_tally *total, wl_error *err) WL_MUST;

/* The first n rows of a tablet into the sorter; worker: the number of this one there. */
wl_status wl_exec_run_keys(wl_exec *x, int worker, int tablet, wl_i32 n, wl_sorter *sorter,
                           wl_error *err) WL_MUST;
/* The results of n rows, by their numbers in the table. */
wl_status wl_exec_run_rows(wl_exec *x, const wl_u32 *rows, wl_i64 n, wl_batch *out,
                           wl_error *err) WL_MUST;

/* Rows [first, first + n) of a tablet. out: the batch that Result fills, stopping once it
** has max_rows. accs: the accumulators that Agg opcodes fill, or groups those of a Group. */
wl_status wl_exec_run(wl_exec *x, int tablet, wl_i32 first, wl_i32 n, wl_batch *out,
                      wl_i64 max_rows, wl_acc_state *accs, wl_groups *groups,
                      wl_error *err) WL_MUST;

/* ---- blocks with an Expand: a row may become any number, so they are run bit by bit */

/* Asked every few milliseconds. */
typedef struct wl_poll {
  atomic_int *pause;                            /* not 0: come back soon, with the rest undone */
  wl_status (*check)(void *arg, wl_error *err); /* NULL: not on this thread */
  void *arg;
} wl_poll;

/* What wl_exec_run has as arguments. A batch with less room than a vector is full. */
typedef struct wl_exec_io {
  wl_batch *out;
  wl_i64 max_rows; /* rows of the batch that make an end, or -1 */
  wl_acc_state *accs;
  wl_groups *groups;
  wl_poll poll;
} wl_exec_io;

/* Rows [first, first + n) of a tablet come next. */
void wl_exec_begin(wl_exec *x, int tablet, wl_i32 first, wl_i32 n);
/* Goes on until these rows are done, the batch is full, or poll says so. */
wl_status wl_exec_go(wl_exec *x, const wl_exec_io *io, bool *done, wl_error *err) WL_MUST;

/* ---- build programs (lookup.h) */

struct wl_key_plan;

/* The keys of rows, as words, and the rows. */
typedef struct wl_build_sink {
  const struct wl_key_plan *plan;
  wl_u64 *words;
  wl_u32 *rows;
  wl_i64 n;      /* room for every row that comes */
  bool has_null; /* a row was left out for a NULL key */
} wl_build_sink;
wl_status wl_exec_run_build(wl_exec *x, int tablet, wl_i32 n, wl_build_sink *sink,
                            wl_error *err) WL_MUST;

#endif
