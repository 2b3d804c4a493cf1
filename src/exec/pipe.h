/*
** Runs one pipeline: from its source through its steps to its sink, on the CPU or on a device.
**
** On the CPU the source is cut into pieces, which run on all threads in waves. What they fill goes
** to the sink, in row order. On a device (exec/gpu/run_device.c), a wave is a few launches.
**
** Invariants:
** 1. Pieces are in row order. The sink settles a piece only when all pieces before it are done.
** 2. Rows may multiply in a join (Expand). A piece of such a pipeline that fills batches has its
**    own worker, so that it can stop when its batches are full and go on in a later wave. Other
**    pieces run to their end, unless the run is stopped.
** 3. The error of a piece counts only when all pieces before it are done, so the number of threads
**    does not change which error is reported.
** 4. Only the calling thread asks `stop`.
** 5. If the other threads sleep, a scan that streams starts on the calling thread alone, with
**    small pieces. Their time says how many threads to wake for the rest. Pieces of one tablet
**    never run at the same time, except if rows multiply.
** 6. If a wave on a device returns WL_NOT_TAKEN, wl_pipe_leave_device makes the CPU go on, or start
**    again. If the sink refused the rows (`refused`), some of them are lost, and the run must end.
*/
#ifndef WL_PIPE_H
#define WL_PIPE_H

#include "column/transfer.h"
#include "exec/sink/sink.h"

struct wl_device;
struct wl_device_state;

enum { WL_MAX_PIECES = 128, WL_PIPE_NOTE = 200 };

/* What the pipelines of a run have moved to a device and back. */
enum { WL_TIME_DATA, WL_TIME_KERNEL, WL_TIME_RESULTS, WL_TIMES };
typedef struct wl_moved {
  const char *mode; /* of the pipeline over a table; NULL: nothing has run on a device */
  bool staged;
  wl_i64 n_in, n_out;  /* bytes */
  double ns[WL_TIMES]; /* spent waiting for data, kernels and results */
} wl_moved;

typedef struct wl_pipe {
  const wl_program *p;
  wl_sink *sink;
  wl_column **cols;        /* the columns of the table, or of the rows of other pipelines */
  const wl_srccol *groups; /* the columns of groups, if they are the source */
  wl_column *live;         /* on a device: which rows of the source count (wl_rows.live); or NULL */
  const wl_u32 *numbers;   /* the rows of the table in their order, if the source is sorted */
  struct wl_marks *marks;  /* of the run, or NULL */
  wl_i64 n_rows;           /* rows of the source */
  wl_i64 step;             /* rows of a piece; of a table a power of 2, at most a tablet */
  int threads;
  bool in_order; /* one worker runs all pieces in row order */
  bool streams;  /* the rows leave after each wave, so waves stay small */
  wl_i64 needed; /* most rows that are needed of those to come; -1: all */
  wl_u64 max_text;
  wl_stop *stop;
  wl_tally *tally; /* counts for the instructions, or NULL */
  /* on a device */
  struct wl_device *device; /* NULL: the CPU runs it */
  wl_i64 device_budget;     /* bytes of device memory that it may use; 0: all that is free */
  wl_i64 mapped_budget;     /* bytes of host memory for columns that kernels read there */
  wl_transfer transfer;
  struct wl_rows *made; /* takes the rows of the last pipeline if they can stay on the device */
  const bool *needed_results;    /* which of their columns are read; NULL: all */
  struct wl_device_rows *stays;  /* takes the rows of the result that stay on the device; or NULL */
  struct wl_device_build *build; /* the lookup that a device builds (exec/gpu/launch.h), or NULL */
  wl_sink *results;              /* takes the rows if the device has also sorted them */
  char *note;        /* [WL_PIPE_NOTE]: how the device did groups and sorts, or why the host did */
  wl_moved *moved;   /* what the run has moved */
  wl_i64 n_repeated; /* after WL_NOT_TAKEN: rows that left and that the CPU will make again */
  bool refused;      /* after WL_NOT_TAKEN: the sink has no room, so the CPU cannot help */
  struct wl_device_state *state;
  /* in progress */
  wl_i64 next_row;   /* the rows before it have been given to workers or, on a device, are done */
  bool fetched;      /* the lookups of its joins are in host memory */
  int wave;          /* pieces in the next wave */
  int n_threads;     /* that run it; 1: the calling thread is alone so far */
  wl_i64 alone_step; /* while it is alone: the most rows of the next piece; else 0 */
  wl_exec **workers;
  wl_row_piece *pieces[WL_MAX_PIECES];
  int n_pieces;
  wl_row_piece *work[WL_MAX_PIECES]; /* the pieces that run in this wave */
  wl_exec *idle[WL_MAX_PIECES];      /* workers of pieces that are done */
  int n_idle;
  atomic_int pause;
  atomic_long failed; /* the first row of the first piece that failed, or LONG_MAX */
} wl_pipe;

/* The rows of a piece of a table. */
wl_i64 wl_pipe_step(const wl_program *p, wl_i64 n_rows, int threads);
/* The calling thread has run n rows in ns alone. Returns how many threads the n_left rows that are
** left are worth. 1 also if it is too early to say. first: these were the first rows. */
int wl_pipe_threads(int threads, wl_i64 n, double ns, bool first, wl_i64 n_left);
/* The caller has set the fields above "in progress" and may set next_row. */
wl_status wl_pipe_open(wl_pipe *e, wl_error *err) WL_MUST;
void wl_pipe_close(wl_pipe *e);
bool wl_pipe_done(const wl_pipe *e); /* all rows have been settled */
wl_status wl_pipe_wave(wl_pipe *e, wl_error *err) WL_MUST;
void wl_pipe_leave_device(wl_pipe *e);

/* exec/gpu/run_device.c: runs a wave on the device. WL_NOT_TAKEN: the CPU must run it. */
wl_status wl_device_wave(wl_pipe *e, wl_error *err) WL_MUST;
void wl_device_end(wl_pipe *e); /* frees what the pipeline has on the device */

#endif
