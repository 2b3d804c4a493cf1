/*
** Sinks: what becomes of the rows of a pipeline. A pipeline runs in pieces (exec/pipe.h). Before a
** worker runs a piece, the sink says what the piece fills. When all pieces before it are done, the
** sink takes what the piece has filled, in row order.
**
** Invariants:
** 1. begin and end are called on the worker's thread, one piece at a time for each worker.
** 2. settle is called on the calling thread, for the pieces in row order: each time a piece has
**    run, and for the last time when it is done.
*/
#ifndef WL_SINK_H
#define WL_SINK_H

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
  const char *name;
  /* Sets in io what the piece fills. *full: it must wait until more has been taken from it. */
  wl_status (*begin)(wl_sink *s, wl_row_piece *q, int worker, wl_exec_io *io, bool *full,
                     wl_error *err);
  wl_status (*end)(wl_sink *s, wl_row_piece *q, int worker, wl_error *err); /* or NULL */
  wl_status (*settle)(wl_sink *s, wl_row_piece *q, wl_error *err);          /* or NULL */
};

#endif
