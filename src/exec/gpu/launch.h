/*
** A launch of the interpreter kernel over a block of tablets, and the rows it gives: shared by
** launch.c, which starts it and waits, run_device.c, which plans the blocks of a run, and
** results.c, which brings rows to the host.
** All of it under the device's lock.
*/
#ifndef WL_LAUNCH_H
#define WL_LAUNCH_H

#include "base/clock.h"
#include "exec/gpu/devcol.h"
#include "exec/gpu/group_device.h"
#include "exec/gpu/limits.h"
#include "exec/gpu/lower.h"
#include "exec/gpu/order_device.h"
#include "exec/run_impl.h"

/* Counters at the head of the argument block. */
enum { C_TICKET, C_OUT, C_SIDE, C_TEXT, C_FAULT, COUNTERS = 8 };

typedef struct wl_results wl_results; /* rows in host memory; results.c */

/* A run's state between waves. */
typedef struct wl_device_state {
  wl_arena arena;
  wl_lowered low;                 /* the whole block, or the last part of one with Expands … */
  struct wl_expansion *expansion; /* … whose other parts are here (expand_device.c); else NULL */
  wl_transfer_mode mode;          /* never auto */
  bool resident;                  /* whole columns are there, on the device or mapped */
  int depth;                      /* launches under way at once */
  struct wl_launch *ring;         /* [WL_STREAM_BLOCKS_MOST] */
  wl_i64 n_in, n_out;             /* bytes moved */
  double ns[3];                   /* waited for data, kernels, results */
  int group, most;                /* tablets in the next block, and at most */
  wl_u64 text_room;               /* bytes for text that the kernel makes */
  __int128 *magnitude;            /* [n_accs]: sum of |v| so far, of AggSumX */
  wl_dgroups *groups;             /* of GROUP BY, until the host has them; else NULL */
  wl_dorder order;                /* what the device does of DISTINCT and ORDER BY */
  bool *far;           /* [n_columns + n_joins]: what joins read, columns and lookups: mapped */
  wl_i64 n_join_bytes; /* bytes of it on the device */
} wl_device_state;

typedef struct wl_launch {
  wl_run *r;
  wl_device *d;
  wl_device_state *s;
  const wl_lowered *low; /* what it runs */
  int queue;
  int first, end;        /* tablets, of a launch that scans */
  bool combined;         /* else it is over n_rows combinations … */
  const wl_klist *lists; /* … [low->n_ins]: with these row numbers */
  wl_u64 row0;           /* the first row's number, in the table or of all combinations */
  wl_u64 n_rows, n_tiles;
  unsigned grid;
  wl_devcol *cols;    /* temporary copies, or unused */
  wl_u8 *host, *blob; /* the argument block on both sides, pinned here */
  size_t n_blob;
  wl_u64 *tiles, *partial, *side;
  wl_u8 *text;
  wl_u64 n_side;
  wl_kout outs[WL_GPU_MAX_RESULTS];
  int n_fetch;      /* result columns that the host wants */
  bool ordered;     /* the rows are all there are, in their final order */
  wl_u64 *counters; /* at the head of host, once the kernel is done */
  wl_results *results;
  wl_kargs args;
} wl_launch;

/* Kernels read and write host memory. */
static inline bool wl_launch_mapped(const wl_device_state *s) {
  return s->mode == WL_TRANSFER_MAPPED;
}

/* How columns get to the device. */
static inline wl_way wl_launch_way(const wl_run *r, const wl_device_state *s) {
  return wl_launch_mapped(s)         ? WL_WAY_MAPPED
         : r->config.transfer.pinned ? WL_WAY_STAGED
                                     : WL_WAY_DIRECT;
}

/* Adds the time since then to one of the sums in wl_device_state.ns. */
enum { WL_TIME_DATA, WL_TIME_KERNEL, WL_TIME_RESULTS };
static inline void wl_launch_took(wl_device_state *s, int what, double since) {
  s->ns[what] += wl_clock_ns() - since;
}

static inline size_t wl_tile_rows(const wl_lowered *low) {
  return (size_t)low->threads * WL_K_ROWS;
}

/* launch.c: a launch that r, d, s, low and its rows are set of. Given to its queue; waited for,
** with what it gathered joined or its rows sent back; its rows pushed; done with. */
wl_status wl_launch_open(wl_launch *l, wl_error *err) WL_MUST;
wl_status wl_launch_finish(wl_launch *l, wl_u64 *text_room, wl_error *err) WL_MUST;
wl_status wl_launch_take(wl_launch *l, wl_error *err) WL_MUST;
void wl_launch_close(wl_launch *l);
/* Device memory for what a row of the launch gives, and a row of the whole block. */
size_t wl_launch_row_bytes(const wl_launch *l);
size_t wl_launch_given_bytes(const wl_run *r, const wl_device_state *s);

/* expand_device.c: blocks with Expands. */
wl_status wl_expansion_open(wl_run *r, wl_device_state *s, wl_error *err) WL_MUST;
void wl_expansion_forget(wl_run *r, wl_device_state *s); /* all that is under way */
void wl_expansion_close(wl_run *r, wl_device_state *s);
/* Some launches; r->next_tablet moves when all that its tablets expand to is done. */
wl_status wl_expansion_wave(wl_run *r, wl_device_state *s, wl_error *err) WL_MUST;
/* Makes the run such that the CPU can go on, or begin anew. */
void wl_expansion_leave(wl_run *r, wl_device_state *s);

/* join_inputs.c: sees to it that what joins read is there, and stays there for this wave.
 *WL_NOT_TAKEN:
 ** there is no room. */
wl_status wl_join_inputs_hold(wl_run *r, wl_device_state *s, wl_error *err) WL_MUST;
/* Whether column k is one of those: of a joined source, or of any in a block with Expands. */
bool wl_join_inputs_has(const wl_run *r, int k);
/* Column k of those, and join k as the kernel wants it, with its keys. */
wl_kcol wl_join_inputs_column(const wl_launch *l, int k);
wl_kjoin wl_join_inputs_join(const wl_launch *l, int k, wl_kjkey *keys);

/* gather.c: DISTINCT and ORDER BY over the rows of a launch, before they are fetched. If it gave
** all rows, only the columns to be given are fetched, and nothing is left to do. */
wl_status wl_gather_order(wl_launch *l, wl_error *err) WL_MUST;
/* A wave's launches have ended: looks after the groups, and gives them to the run after the last
** tablet; r->next_tablet says where to go on. */
wl_status wl_gather_wave(wl_run *r, wl_device_state *s, wl_error *err) WL_MUST;
/* Forgets all that the groups gathered; the first tablet is next. */
wl_status wl_gather_restart(wl_run *r, wl_device_state *s, wl_error *err) WL_MUST;
void wl_gather_forget(wl_run *r); /* the host's share of that */

/* Sends the rows on their way, in the launch's queue: there when it is finished. */
wl_status wl_results_fetch(wl_launch *l, wl_error *err) WL_MUST;
/* Hands the rows, which are there, to the run as batches. */
wl_status wl_results_push(wl_launch *l, wl_error *err) WL_MUST;
/* Gives up the launch's share; NULL is fine. */
void wl_results_drop(wl_results *results);

#endif
