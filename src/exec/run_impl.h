/* The internals of wl_run, shared by run.c, the CPU part and the device part. */
#ifndef WL_RUN_IMPL_H
#define WL_RUN_IMPL_H

#include "exec/agg.h"
#include "exec/cpu/exec.h"
#include "plan/cut.h"
#include "exec/run.h"

typedef struct wl_expanding wl_expanding; /* pieces in progress (run_expand.c) */

struct wl_run {
  wl_run_config config;
  wl_arena arena;
  const wl_program *p;
  wl_snapshot snap;
  wl_pool *pool;
  int table_block;         /* pc of the Parallel over the table */
  int second_block;        /* pc of the Parallel over the aggregates or groups, or -1 */
  wl_i64 to_skip, to_give; /* what is left of OFFSET and LIMIT; to_give < 0: no limit */
  wl_batch *ready, **ready_end;
  int next_tablet, n_tablets;
  int wave; /* tablets in the next wave */
  bool aggregated;
  bool collects; /* DISTINCT or ORDER BY: no row is emitted before all have been collected */
  bool collected;
  bool holds_back;    /* no row is emitted before the last one is computed, because a row may fail:
                      ** SQLite then runs the statement, and its rows may come in another order */
  wl_i64 n_collected; /* bytes of the collected rows */
  wl_i64 n_rows_collected; /* number of collected rows */
  bool pruned;             /* some collected rows were dropped because of LIMIT */
  wl_grouping *grouping;
  wl_groups **groups;         /* [config.threads]: each worker's groups */
  wl_finished finished;       /* the groups as the second block's source */
  wl_error late;              /* raised after the rows before it were emitted, as SQLite does */
  bool in_order;              /* one worker fills the groups, in row order */
  wl_exec **workers;          /* [config.threads] */
  wl_sorter *sorter;          /* for ORDER BY without collecting, or NULL */
  wl_exec **givers;           /* [config.threads]: with a sorter, workers of the second run */
  const wl_u32 *sorted;       /* with a sorter, the row numbers in order; NULL until sorted */
  wl_i64 n_sorted, at_sorted; /* number of sorted rows, and how many of them are done */
  wl_acc_state *accs;         /* [n_accs]: aggregates of the table so far */
  char detour[200];
  char note[120];     /* what the device did in addition to the scan, or why the host did it */
  char transfer[200]; /* set after each wave on a device */
  wl_stop stop;       /* also checked within waves, as a row may take long */
  void *device_state;
  int n_held;              /* number of the joins' lookups to which the run has a reference */
  wl_expanding *expanding; /* for a program with an Expand; created by the first wave */
};

/* Opens a worker for the table's block. */
wl_status wl_run_worker(wl_run *r, wl_exec_part part, wl_exec **out, wl_error *err) WL_MUST;
/* Fails with WL_NOT_TAKEN: groups or a sort need more than host_budget leaves. */
wl_status wl_run_no_room(const wl_run *r, const char *what, wl_error *err) WL_MUST;
void wl_run_push(wl_run *r, wl_batch *b); /* appends a batch to the ready ones */
/* Runs one wave of tablets on the CPU: appends batches, or joins accumulators. */
wl_status wl_run_cpu_wave(wl_run *r, wl_error *err) WL_MUST;
/* Counts a collected batch. Fails with WL_NOT_TAKEN if host_left is exceeded. */
wl_status wl_run_collect(wl_run *r, const wl_batch *b, wl_error *err) WL_MUST;
/* Runs a wave of a program with an Expand: continues pieces of source 0 (run_expand.c). */
wl_status wl_run_expand_wave(wl_run *r, wl_error *err) WL_MUST;
void wl_run_expand_close(wl_run *r);
/* Runs a wave on a device: a group of tablets. WL_NOT_TAKEN: the CPU must run it. */
wl_status wl_run_device_wave(wl_run *r, wl_error *err) WL_MUST;
void wl_run_device_close(wl_run *r);
/* ORDER BY by row numbers (sort_run.c). step requires a sorter and makes one step. */
wl_status wl_run_sort_open(wl_run *r, wl_error *err) WL_MUST;
wl_status wl_run_sort_step(wl_run *r, bool *done, wl_error *err) WL_MUST;
void wl_run_sort_close(wl_run *r);

#endif
