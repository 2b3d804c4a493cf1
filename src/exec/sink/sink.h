/*
** Sinks: what becomes of the rows of a pipeline. A pipeline runs in pieces (exec/pipe.h). Before a
** worker runs a piece, the sink says what the piece fills. When all pieces before it are done, the
** sink takes what the piece has filled, in row order. A device and other sinks give it batches.
**
** Invariants:
** 1. begin and end are called on the worker's thread, one piece at a time for each worker. The
**    other functions are called on the calling thread.
** 2. settle is called for the pieces in row order: each time a piece has run, and for the last time
**    when it is done.
** 3. finish is called once, after the last row. Then the next pipeline can read what the sink
**    leaves.
*/
#ifndef WL_SINK_H
#define WL_SINK_H

#include "exec/budget.h"
#include "exec/cpu/exec.h"

/* Consecutive rows of the source, which one worker runs at a time. */
typedef struct wl_row_piece {
  wl_i64 first, n; /* rows of the source */
  wl_exec *x;      /* its own worker, if it may stop half-way */
  bool begun, done;
  wl_status status;
  wl_error error;
  /* what it has filled */
  wl_batch *batches, **end;
  int n_batches;
  wl_i64 n_given; /* rows in its batches since they were last taken */
} wl_row_piece;

typedef struct wl_sink wl_sink;
struct wl_sink {
  /* Sets in io what the piece fills. *full: it must wait until more has been taken from it. */
  wl_status (*begin)(wl_sink *s, wl_row_piece *q, int worker, wl_exec_io *io, bool *full,
                     wl_error *err);
  wl_status (*end)(wl_sink *s, wl_row_piece *q, int worker, wl_error *err); /* or NULL */
  wl_status (*settle)(wl_sink *s, wl_row_piece *q, wl_error *err);          /* or NULL */
  /* Takes over a batch, even if it fails. NULL: the sink takes no batches. */
  wl_status (*take)(wl_sink *s, wl_batch *b, wl_error *err);
  wl_status (*finish)(wl_sink *s, wl_error *err);
  void (*clear)(wl_sink *s); /* forgets all rows, so that the pipeline can start again */
  void (*close)(wl_sink *s);
  wl_i64 n_left;      /* after finish: rows or groups that it leaves */
  wl_i64 n_collected; /* after finish: rows that it collected on the host */
  wl_i64 n_held;      /* after finish: the most bytes that it held */
};

#endif
