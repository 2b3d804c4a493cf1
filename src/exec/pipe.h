/*
** Runs one pipeline on the CPU. Its source is cut into pieces, which run on all threads in waves.
** What they fill goes to the sink, in row order.
**
** Invariants:
** 1. Pieces are in row order. The sink settles a piece only when all pieces before it are done.
** 2. Rows may multiply in a join (Expand). A piece of such a pipeline that fills batches has its
**    own worker, so that it can stop when its batches are full and go on in a later wave. Other
**    pieces run to their end, unless the run is stopped.
** 3. The error of a piece counts only when all pieces before it are done, so the number of threads
**    does not change which error is reported.
** 4. Only the calling thread asks `stop`.
*/
#ifndef WL_PIPE_H
#define WL_PIPE_H

#include "exec/sink/sink.h"

enum { WL_MAX_PIECES = 64 };

typedef struct wl_pipe {
  const wl_program *p;
  wl_exec_part part;
  wl_column **cols;        /* the columns of a table source */
  const wl_srccol *groups; /* the columns of groups, if they are the source */
  struct wl_marks *marks;  /* of the run, or NULL */
  wl_i64 n_rows;           /* rows of the source */
  wl_i64 step;             /* rows of a piece: a power of 2, at most a tablet */
  int threads;
  bool in_order; /* one worker runs all pieces in row order */
  bool streams;  /* the rows leave after each wave, so waves stay small */
  bool fills;    /* pieces fill batches */
  wl_i64 needed; /* most rows that are needed of those to come; -1: all */
  wl_u64 max_text;
  wl_stop *stop;
  wl_tally *tally; /* counts for the instructions, or NULL */
  wl_sink *sink;
  /* in progress */
  wl_i64 next_row;
  int wave; /* pieces in the next wave */
  wl_exec **workers;
  wl_row_piece *pieces[WL_MAX_PIECES];
  int n_pieces;
  wl_row_piece *work[WL_MAX_PIECES]; /* the pieces that run in this wave */
  wl_exec *idle[WL_MAX_PIECES];      /* workers of pieces that are done */
  int n_idle;
  atomic_int pause;
  atomic_long failed; /* the first row of the first piece that failed, or LONG_MAX */
} wl_pipe;

/* The rows of a piece. multiplies: a row may become many rows. */
wl_i64 wl_pipe_step(wl_i64 n_rows, int threads, bool multiplies);
/* The caller has set the fields above "in progress" and may set next_row. */
wl_status wl_pipe_open(wl_pipe *e, wl_error *err) WL_MUST;
void wl_pipe_close(wl_pipe *e);
bool wl_pipe_done(const wl_pipe *e); /* all rows have been settled */
wl_status wl_pipe_wave(wl_pipe *e, wl_error *err) WL_MUST;

#endif
