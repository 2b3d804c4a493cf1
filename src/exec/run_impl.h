/* The internals of wl_run, shared by run.c, the CPU part and the device part. */
#ifndef WL_RUN_IMPL_H
#define WL_RUN_IMPL_H

#include "exec/cpu/exec.h"
#include "exec/cpu/marks.h"
#include "plan/cut.h"
#include "exec/run.h"
#include "exec/pipe.h"
#include "exec/sink/groups.h"
#include "exec/sink/keys.h"
#include "exec/sink/rows.h"

/* What a run does now, in this order; it may leave out some. */
typedef enum wl_run_stage {
  WL_RUN_SCAN,   /* runs the first pipeline */
  WL_RUN_GROUPS, /* runs the pipeline over the groups */
  WL_RUN_SORTED, /* computes the results of rows that were sorted by number */
  WL_RUN_ORDER,  /* sorts the collected rows */
  WL_RUN_END     /* returns the last rows */
} wl_run_stage;

struct wl_run {
  wl_run_config config;
  wl_arena arena;
  const wl_program *p;    /* the first pipeline, over the table */
  const wl_program *last; /* the pipeline that gives the results: p, or the one over its groups */
  const wl_program *also; /* the next pipeline over unmatched rows, after p; NULL: all have run */
  wl_marks *marks;        /* for these pipelines, or NULL */
  wl_snapshot snap;
  wl_pool *pool;
  wl_i64 to_skip, to_give; /* what is left of OFFSET and LIMIT; to_give < 0: no limit */
  wl_batch *ready, **ready_end;
  int next_tablet, n_tablets;
  wl_run_stage stage;
  wl_pipe pipe; /* the pipeline that runs on the CPU; pipe.p is NULL if there is none */
  union {
    wl_rows_sink rows;
    wl_groups_sink groups;
    wl_keys_sink keys;
  } sink;        /* of the pipeline */
  bool collects; /* DISTINCT or ORDER BY: no row is emitted before all have been collected */
  bool collected;
  bool holds_back;    /* no row is emitted before the last one is computed, because a row may fail:
                      ** SQLite then runs the statement, and its rows may come in another order */
  wl_i64 n_collected; /* bytes of the collected rows */
  wl_i64 n_rows_collected; /* number of collected rows */
  bool pruned;             /* some collected rows were dropped because of LIMIT */
  wl_grouping *grouping;
  wl_groups **groups;         /* [config.threads]: each worker's groups */
  wl_finished finished;       /* the groups as the source of the next pipeline */
  wl_error late;              /* raised after the rows before it were emitted, as SQLite does */
  bool in_order;              /* one worker fills the groups, in row order */
  wl_sorter *sorter;          /* for ORDER BY without collecting, or NULL */
  wl_exec **givers;           /* [config.threads]: with a sorter, workers of the second run */
  const wl_u32 *sorted;       /* with a sorter, the row numbers in order; NULL until sorted */
  wl_i64 n_sorted, at_sorted; /* number of sorted rows, and how many of them are done */
  char detour[200];
  char note[120];     /* what the device did in addition to the scan, or why the host did it */
  char transfer[200]; /* set after each wave on a device */
  wl_stop stop;       /* also checked within waves, as a row may take long */
  void *device_state;
  int n_held; /* number of the joins' lookups to which the run has a reference */
};

/* Fails with WL_NOT_TAKEN: groups or a sort need more than host_budget leaves. */
wl_status wl_run_no_room(const wl_run *r, const char *what, wl_error *err) WL_MUST;
void wl_run_push(wl_run *r, wl_batch *b); /* appends a batch to the ready ones */
/* Counts a collected batch. Fails with WL_NOT_TAKEN if host_left is exceeded. */
wl_status wl_run_collect(wl_run *r, const wl_batch *b, wl_error *err) WL_MUST;
/* Runs a wave on a device: a group of tablets. WL_NOT_TAKEN: the CPU must run it. */
wl_status wl_run_device_wave(wl_run *r, wl_error *err) WL_MUST;
void wl_run_device_close(wl_run *r);
/* ORDER BY by row numbers (sort_run.c): opens a sorter if that is possible, sorts the keys that the
** first pipeline has added to it, and computes the results of the next sorted rows. */
wl_status wl_run_sort_open(wl_run *r, wl_error *err) WL_MUST;
wl_status wl_run_sort(wl_run *r, wl_error *err) WL_MUST;
wl_status wl_run_sorted_rows(wl_run *r, bool *done, wl_error *err) WL_MUST;
void wl_run_sort_close(wl_run *r);

#endif
