/*
** A launch of the interpreter kernel over a block of rows, and the rows it produces. Shared by
** run_device.c, which plans the blocks of a run, launch.c, which starts a launch and waits for it,
** and results.c, which moves rows to the host. The caller holds the device's lock.
*/
#ifndef WL_LAUNCH_H
#define WL_LAUNCH_H

#include "base/clock.h"
#include "exec/gpu/columns/devcol.h"
#include "exec/gpu/sinks/device_rows.h"
#include "exec/gpu/sinks/group_device.h"
#include "exec/gpu/limits.h"
#include "exec/gpu/lower.h"
#include "exec/gpu/sinks/order_device.h"
#include "exec/pipe.h"
#include "exec/sink/batches.h"
#include "exec/sink/groups.h"
#include "plan/cut.h"

/* Counters at the start of the argument block. */
enum { C_TICKET, C_OUT, C_TEXT, C_FAULT, C_BUILT, COUNTERS = C_BUILT + WL_K_BUILT };

typedef struct wl_results wl_results; /* rows in host memory; results.c */

/* A lookup that is being built on the device. One of table, bits and pairs is not NULL. */
typedef struct wl_device_build {
  const wl_key_plan *plan;
  wl_u64 *words;            /* HASH: the keys of its slots; else NULL */
  wl_u64 mask;              /* HASH */
  wl_u32 *table;            /* its slots */
  wl_u32 *bits;             /* the bits of one that only has bits */
  wl_u64 *pairs;            /* its slot numbers and rows */
  wl_i64 n_pairs;           /* the size of pairs */
  wl_u64 *n_listed;         /* with pairs: how many there are, on the device */
  wl_u64 built[WL_K_BUILT]; /* the counts of all launches that have ended */
  bool uncounted;           /* no counts are needed: the host need not wait for the launch */
  bool unwatched;           /* it has not waited, so there are no counts */
  wl_i64 n_bytes;           /* device memory that all this takes */
} wl_device_build;

/* A pipeline's state between waves. */
typedef struct wl_device_state {
  wl_arena arena;
  wl_lowered low;                 /* the whole block; of a block with Expands, its last part */
  struct wl_expansion *expansion; /* the other parts (expand_device.c); NULL without Expands */
  wl_transfer_mode mode;          /* never auto */
  bool resident;                  /* whole columns are resident, on the device or mapped */
  int depth;                      /* launches in progress at once */
  struct wl_launch *ring;         /* [WL_STREAM_BLOCKS_MOST] */
  double ns[WL_TIMES];            /* nanoseconds of this wave spent waiting */
  wl_i64 block, most;             /* rows in the next block, and in any block at most */
  wl_u64 text_room;               /* bytes for text that the kernel makes */
  wl_dgroups *groups;             /* groups that are on the device; else NULL */
  wl_dorder order;                /* what the device does of DISTINCT and ORDER BY */
  wl_u32 **marks; /* [n_joins]: marks of the joins (unmatched.h); NULL: there are none */
  struct wl_join_parts *parts; /* a lookup that is divided (join_parts.h); or NULL */
  bool *far;      /* [n_columns + n_joins]: this input of the joins (column, lookup) is mapped */
  wl_collected ready;  /* rows of this wave, for the sink */
  size_t n_ready;      /* bytes of them */
  bool ordered;        /* they are all rows, distinct and sorted: they are the results */
  bool groups_stay;    /* the device finishes the groups, and the next pipeline reads them there */
  bool unwatched;      /* the host has not waited for the groups */
  bool restarts;       /* after WL_NOT_TAKEN: the sink must forget its rows */
  wl_i64 n_join_bytes; /* bytes of the joins' inputs on the device */
} wl_device_state;

typedef struct wl_launch {
  wl_pipe *e;
  wl_device *d;
  wl_device_state *s;
  const wl_lowered *low; /* the code that it runs */
  int queue;
  wl_i64 first, end;     /* rows [first, end), if it scans a table */
  bool whole;            /* it makes all rows of the pipeline */
  bool combined;         /* it runs over n_rows combinations instead of a range of rows */
  const wl_klist *lists; /* [n_lists]: the row numbers of these combinations */
  int n_lists;
  wl_u32 *passed; /* of a part that tests candidates: see wl_kargs */
  wl_u64 row0;    /* number of the first row in the table, or among all combinations */
  wl_u64 n_rows, n_tiles;
  unsigned grid;
  wl_devcol *cols;    /* temporary copies, if used */
  wl_u8 *host, *blob; /* the argument block in pinned host memory and in device memory */
  size_t n_blob;
  wl_u64 *tiles;
  wl_u8 *text;
  wl_kout outs[WL_GPU_MAX_RESULTS];
  int n_fetch;      /* number of result columns to fetch */
  bool ordered;     /* these are all rows of the result, in their final order */
  bool idle;        /* its queue is finished, and has got nothing since */
  bool unwatched;   /* the host does not wait for it, since it needs nothing of it */
  wl_u64 *counters; /* the start of `host`; valid when the kernel is done */
  wl_results *results;
  wl_device_batch *kept; /* its rows, if they stay on the device for the user (device_rows.h) */
  wl_kargs args;
} wl_launch;

/* Whether kernels read and write host memory. */
static inline bool wl_launch_mapped(const wl_device_state *s) {
  return s->mode == WL_TRANSFER_MAPPED;
}

/* How columns get to the device. */
static inline wl_way wl_launch_way(const wl_pipe *e, const wl_device_state *s) {
  return wl_launch_mapped(s) ? WL_WAY_MAPPED : e->transfer.pinned ? WL_WAY_STAGED : WL_WAY_DIRECT;
}

/* Adds the time since then to one of the sums in wl_device_state.ns. */
static inline void wl_launch_took(wl_device_state *s, int what, double since) {
  s->ns[what] += wl_clock_ns() - since;
}

static inline size_t wl_tile_rows(const wl_lowered *low) {
  return (size_t)low->threads * WL_K_ROWS;
}

/* run_device.c: sets how much memory the device may use; budget 0: all that is free. */
void wl_device_allow(wl_device *d, wl_i64 budget, wl_i64 mapped_budget);

/* launch.c: the steps of a launch. The caller sets e, d, s, low and the rows. open puts it into
** its queue. finish waits, then starts the copy of its rows. take keeps the rows for the sink.
** close frees it. */
wl_status wl_launch_open(wl_launch *l, wl_error *err) WL_MUST;
wl_status wl_launch_finish(wl_launch *l, wl_u64 *text_room, wl_error *err) WL_MUST;
wl_status wl_launch_take(wl_launch *l, wl_error *err) WL_MUST;
void wl_launch_close(wl_launch *l);
/* Bytes of device memory for the output of a row of the launch, and of a row of the whole block. */
size_t wl_launch_row_bytes(const wl_launch *l);
size_t wl_launch_given_bytes(const wl_pipe *e, const wl_device_state *s);

/* Blocks have whole tablets; if a tablet has no room on the device, they are parts of one. Parts
** are multiples of the least block, so that wide loads are aligned and bitmaps begin with a word.
 */
enum { WL_BLOCK_LEAST = 4096 };

/* The largest size of a block with at most n rows. */
static inline wl_i64 wl_block_rows(wl_i64 n) {
  wl_i64 unit = n < WL_TABLET_ROWS ? WL_BLOCK_LEAST : WL_TABLET_ROWS;
  return n < unit ? unit : n / unit * unit;
}

/* The end of a block of such a size that begins at row `first`: no part goes beyond its tablet. */
static inline wl_i64 wl_block_end(const wl_pipe *e, wl_i64 first, wl_i64 size) {
  wl_i64 of_tablet = WL_TABLET_ROWS - first % WL_TABLET_ROWS;
  if (of_tablet < WL_TABLET_ROWS && size > of_tablet) size = of_tablet;
  return e->n_rows - first < size ? e->n_rows : first + size;
}

/* The room for text that kernels make, to begin with. */
static inline wl_u64 wl_launch_text_room(const wl_device *d, bool makes_text) {
  wl_u64 most = (wl_u64)d->budget / 16, room = 1 << 20;
  return !makes_text ? 0 : most < room ? most : room;
}

/* expand_device.c: blocks with Expands. */
wl_status wl_expansion_open(wl_pipe *e, wl_device_state *s, wl_error *err) WL_MUST;
void wl_expansion_forget(wl_pipe *e, wl_device_state *s); /* drops all work in progress */
void wl_expansion_close(wl_pipe *e, wl_device_state *s);
/* Makes some launches. e->next_row moves when all rows that a block expands to are done. */
wl_status wl_expansion_wave(wl_pipe *e, wl_device_state *s, wl_error *err) WL_MUST;
/* Prepares the run so that the CPU can go on, or start again. */
void wl_expansion_leave(wl_pipe *e, wl_device_state *s);

/* join_parts.c: called after the last row. Begins the pass for the next part, if there is one. */
bool wl_join_parts_next(wl_pipe *e, wl_device_state *s);
/* Begins again at the first row. */
void wl_join_parts_restart(wl_pipe *e, wl_device_state *s);

/* join_inputs.c: makes the inputs of the joins resident for this wave. WL_NOT_TAKEN: there is no
** room for them. */
wl_status wl_join_inputs_hold(wl_pipe *e, wl_device_state *s, wl_error *err) WL_MUST;
/* Whether column k is one of these inputs: it belongs to a joined source, or to any source of a
** block with Expands. */
bool wl_join_inputs_has(const wl_pipe *e, int k);
/* Whether launches scan column k, block by block. */
static inline bool wl_launch_scans(const wl_pipe *e, int k) {
  return wl_column_source(e->p, k) == 0 && !wl_join_inputs_has(e, k);
}
/* Column k of these inputs, and join k with its keys, as the kernel's arguments. */
wl_kcol wl_join_inputs_column(const wl_launch *l, int k);
wl_kjoin wl_join_inputs_join(const wl_launch *l, int k, wl_key_part *parts);

/* gather.c: DISTINCT and ORDER BY over the rows of a launch, before they are fetched. If the launch
** produced all rows, then only the columns of the result are fetched, and the rows are final. */
wl_status wl_gather_order(wl_launch *l, wl_error *err) WL_MUST;
/* Whether the device finishes the groups, and they stay there (wl_device_state.groups_stay). */
bool wl_gather_stays(const wl_pipe *e);
/* Called when a wave's launches have ended. Checks the groups, and gives them to the run after the
** last row. The caller goes on at e->next_row. */
wl_status wl_gather_wave(wl_pipe *e, wl_device_state *s, wl_error *err) WL_MUST;
/* Clears the groups. The scan begins again at the first row. */
wl_status wl_gather_restart(wl_pipe *e, wl_device_state *s, wl_error *err) WL_MUST;
void wl_gather_forget(wl_pipe *e); /* the host's part of wl_gather_restart */
/* Appends a sentence to the note of the run. */
void wl_gather_note(wl_pipe *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* rows_device.c: whether the rows of a launch can become columns that stay on the device, because a
** later pipeline of the statement reads them there; and makes them (e->made). */
bool wl_rows_can_stay(const wl_launch *l);
wl_status wl_rows_keep(wl_launch *l, wl_error *err) WL_MUST;

/* Results of at most so many bytes come at once: a launch or a wait more would take longer. */
static inline size_t wl_results_few(const wl_device *d) {
  return d->n_stage / 64;
}
/* results.c: starts the copy of n rows, in the launch's queue. counted: it is known that the launch
** has made so many; else there may be fewer. */
wl_status wl_results_fetch(wl_launch *l, wl_u64 n, bool counted, wl_error *err) WL_MUST;
/* Waits for the columns that come packed, and unpacks them. The others are there when the queue is
** finished. */
wl_status wl_results_unpack(wl_launch *l, wl_error *err) WL_MUST;
/* Makes batches of the rows, for the sink, when all columns are there. */
wl_status wl_results_push(wl_launch *l, wl_error *err) WL_MUST;
/* Releases the launch's reference. `results` may be NULL. */
void wl_results_drop(wl_results *results);

#endif
