/* The inside of wl_run, shared by run.c, the CPU part and the device part. */
#ifndef WL_RUN_IMPL_H
#define WL_RUN_IMPL_H

#include "exec/agg.h"
#include "exec/cpu/exec.h"
#include "value/cut.h"
#include "exec/run.h"

typedef struct wl_expanding wl_expanding; /* pieces under way (run_expand.c) */

struct wl_run {
  wl_run_config config;
  wl_arena arena;
  const wl_program *p;
  wl_snapshot snap;
  wl_pool *pool;
  int table_block;         /* pc of the Parallel over the table */
  int second_block;        /* pc of the one over the aggregates, or -1 */
  wl_i64 to_skip, to_give; /* OFFSET and LIMIT rows left; to_give < 0: no limit */
  wl_batch *ready, **ready_end;
  int next_tablet, n_tablets;
  int wave; /* tablets in the next wave */
  bool aggregated;
  bool collects; /* DISTINCT or ORDER BY: nothing is given before everything has arrived */
  bool collected;
  bool holds_back; /* nothing is given before the last row is there, though in no new order: a row
                   ** may be SQLite's, and it could not go on behind rows in another order */
  wl_i64 n_collected; /* bytes … */
  wl_i64 n_rows_collected;
  bool pruned; /* some were left out since, because LIMIT has no use for them */
  wl_grouping *grouping;
  wl_groups **groups;         /* [config.threads]: of GROUP BY, each worker's */
  wl_finished finished;       /* the groups as the second block's source */
  wl_error late;              /* raised once the rows before it have been given, as SQLite does */
  bool in_order;              /* groups are being filled in row order, by one worker */
  wl_exec **workers;          /* [config.threads] */
  wl_sorter *sorter;          /* ORDER BY without collecting, or NULL … */
  wl_exec **givers;           /* … [config.threads]: workers of the second pass */
  const wl_u32 *sorted;       /* rows in order, once there … */
  wl_i64 n_sorted, at_sorted; /* … and how many have been given */
  wl_acc_state *accs;         /* [n_accs]: the whole table so far */
  char detour[200];
  char note[120];     /* what the device did beside the scan, or why the host did it */
  char transfer[200]; /* set after each of a device's waves */
  wl_stop stop;       /* asked within waves too, where rows take long */
  void *device_state;
  int n_held;              /* lookups of the program's joins that are held */
  wl_expanding *expanding; /* of a program with an Expand; made by the first wave */
};

/* A worker of the table block. */
wl_status wl_run_worker(wl_run *r, wl_exec_part part, wl_exec **out, wl_error *err) WL_MUST;
/* What groups or a sort would take is over host_budget: SQLite's business. */
wl_status wl_run_no_room(const wl_run *r, const char *what, wl_error *err) WL_MUST;
void wl_run_push(wl_run *r, wl_batch *b); /* appends a batch to the ready ones */
/* One wave of tablets on the CPU: batches pushed, or accumulators joined. */
wl_status wl_run_cpu_wave(wl_run *r, wl_error *err) WL_MUST;
/* Counts what ORDER BY and DISTINCT collect against host_left. */
wl_status wl_run_collect(wl_run *r, const wl_batch *b, wl_error *err) WL_MUST;
/* The same for a program with an Expand: goes on with pieces of source 0 (run_expand.c). */
wl_status wl_run_expand_wave(wl_run *r, wl_error *err) WL_MUST;
void wl_run_expand_close(wl_run *r);
/* The same on a device: a group of tablets. WL_NOT_TAKEN: the CPU must do it. */
wl_status wl_run_device_wave(wl_run *r, wl_error *err) WL_MUST;
void wl_run_device_close(wl_run *r);
/* ORDER BY by way of row numbers (sort_run.c): one step, if there is a sorter. */
wl_status wl_run_sort_open(wl_run *r, wl_error *err) WL_MUST;
wl_status wl_run_sort_step(wl_run *r, bool *done, wl_error *err) WL_MUST;
void wl_run_sort_close(wl_run *r);

#endif
