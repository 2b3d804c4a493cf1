/*
** The list of the pipelines that a statement runs. EXPLAIN, EXPLAIN QUERY PLAN and EXPLAIN ANALYZE
** all show this list. The schedule adds a record for each pipeline before it runs (query.c). Other
** statements have no list.
**
** Invariants:
** 1. The pipelines are in the order in which they run, and numbered from 1. The last one gives the
**    results of the statement.
** 2. A pipeline is in the list once, even if several others read what it leaves.
** 3. A lookup that an earlier statement built is in the list too: `kept` is set, and nothing runs.
** 4. Programs and plans of listed pipelines live in the arena of the list, and the list holds their
**    lookups. So they can be read when the run is over. The bound query must live as long.
** 5. Counts of a run are complete when it is closed.
*/
#ifndef WL_PIPELINES_H
#define WL_PIPELINES_H

#include "column/source.h"
#include "column/lookup.h"
#include "plan/join.h"
#include "exec/tally.h"
#include "program/program.h"

/* The loading of a table's columns that were not in memory. */
typedef struct wl_column_load {
  int n_cols;
  wl_i64 n_rows, n_bytes;
  double ns;
  const char *from; /* where they were loaded from, in words */
  bool *missing;    /* [columns]: which columns are being loaded */
} wl_column_load;

/* A step of a pipeline: the scan of its source, or a join. */
typedef struct wl_pipeline_step {
  int source; /* the source of q that it scans or joins; -1: it scans what the pipeline before left
               */
  const wl_jstep *join; /* NULL: a scan */
  wl_join_how how;      /* of a join, as it runs */
  bool reduces;         /* a join that only drops rows of the lookup that is being built */
  int lookup;           /* of a join: the number of the pipeline that leaves its lookup */
  wl_jlist filters;     /* the conditions that it tests, besides those of the join */
  double estimated;     /* rows after it; < 0: not known */
} wl_pipeline_step;

typedef struct wl_pipeline {
  struct wl_pipeline *next;
  int number;
  const wl_program *program;
  const char *leaves; /* what its sink leaves, in words */
  bool on_device;
  bool orders_on_device; /* DISTINCT and ORDER BY of the sink, too */
  bool kept;             /* a lookup that an earlier statement built */
  const int *needs; /* [n_needs]: the numbers of the pipelines whose rows or lookups it reads */
  int n_needs;
  const wl_query *q;          /* the query it belongs to */
  const wl_derived *derived;  /* the derived source that reads its rows, or NULL */
  const wl_bsub *sub;         /* the subquery whose result its rows are, or NULL */
  wl_i64 n_source_rows;       /* rows of its source; < 0: not known before it runs */
  const wl_column_load *load; /* the load of the columns of its source, or NULL */
  wl_i64 n_col_bytes;         /* bytes of the whole columns that it reads; 0 for a lookup */
  wl_pipeline_step *steps;    /* the first is the scan */
  int n_steps;
  double estimated;  /* rows that its sink leaves; < 0: not known */
  wl_lookup *lookup; /* the lookup that it leaves (a reference), or NULL */
  wl_run_stats *run; /* what it took; NULL if nothing is measured or nothing ran */
  int *part_of;      /* [n_code]: the step that each instruction belongs to; n_steps: the sink */
} wl_pipeline;

typedef struct wl_pipelines {
  wl_arena arena;
  wl_pipeline *first, *last;
  wl_pipeline *query; /* the first pipeline of the query that was listed last */
  int n;
  bool measures; /* for EXPLAIN ANALYZE: count and take the time */
} wl_pipelines;

void wl_pipelines_open(wl_pipelines *l, bool measures);
void wl_pipelines_clear(wl_pipelines *l); /* forgets all pipelines: the statement starts again */
void wl_pipelines_close(wl_pipelines *l);
const wl_pipeline *wl_pipelines_find(const wl_pipelines *l, int number);

/* ---- for the schedule */

/* What is known of a query when its pipelines are listed. */
typedef struct wl_listed {
  const wl_query *q;
  const wl_jplan *plan;        /* NULL: one source */
  wl_lookup *const *lookups;   /* of the steps of the plan, as far as there are any yet */
  const int *lookup_pipeline;  /* the numbers of the pipelines that left them */
  const wl_i64 *n_rows;        /* of each source */
  const wl_column_load *loads; /* of each source */
  /* Estimates the share of a source's rows that pass these conjuncts, as in wl_jplan_in. */
  double (*share)(void *arg, int source, const wl_jlist *list);
  void *arg;
} wl_listed;

/* Adds the pipeline that builds the lookup of a step of the plan. The caller sets the rest. */
wl_status wl_pipelines_add_lookup(wl_pipelines *l, const wl_listed *of, int step,
                                  const wl_program *p, wl_pipeline **out, wl_error *err) WL_MUST;
/* Adds a query's pipelines: p and all that follow it. l->query is the first. */
wl_status wl_pipelines_add(wl_pipelines *l, const wl_listed *of, const wl_program *p,
                           wl_error *err) WL_MUST;
/* Notes the end of the run of l->query: the rows that its reader took, and whether the CPU took
** over from the device. Called when the run is closed. */
void wl_pipelines_ran(wl_pipelines *l, wl_i64 n_taken, bool detour);

/* The loads of a query's sources. */
wl_column_load *wl_pipelines_loads(wl_pipelines *l, const wl_query *q);
/* Called before and after wl_source_acquire() of the columns want[0..n). */
void wl_column_load_begin(wl_column_load *l, const wl_table *t, const int *want, int n);
void wl_column_load_end(wl_column_load *l, const wl_table *t, const wl_snapshot *snap);

/* ---- after the run */

/* What went through a part of a pipeline: a step, or the sink (part n_steps). */
typedef struct wl_flow {
  wl_i64 n_in, n_out, n_bytes;
  double ns; /* its share of the elapsed time, in nanoseconds */
} wl_flow;

bool wl_pipeline_counted(const wl_pipeline *p); /* whether the rows of its steps were counted */
wl_flow wl_pipeline_flow(const wl_pipeline *p, int part);

#endif
