/*
** Runs a bound query: first the queries it depends on, then its lookups, then the program itself.
** It calls the planner and the compiler, which need to know the data, and then the runner.
**
** Invariants:
** 1. All tables of a statement are read in one read transaction on their databases. It ends when
**    everything is in memory, before the first row is emitted.
*/
#ifndef WL_QUERY_H
#define WL_QUERY_H

#include "plan/join.h"
#include "plan/place.h"
#include "exec/run.h"

struct wl_device;
struct wl_lookup;

struct wl_code;
struct wl_pipelines;

typedef struct wl_query_env {
  wl_store *store;
  const wl_settings *set;
  const wl_val *params;
  int n_params;
  wl_u64 max_text;
  int max_pattern;
  wl_i64 host_left; /* bytes for groups, sorts and lookups; 0: no limit */
  wl_i64 mapped_budget;
  struct wl_device *device; /* the device to use if possible, or NULL */
  wl_status (*check)(void *arg, wl_error *err);
  void *check_arg;
  struct wl_pipelines *pipelines; /* where to list them for EXPLAIN (exec/pipelines.h), or NULL */
  struct wl_code **code; /* where the statement's code is kept for its next run, or NULL (code.h) */
} wl_query_env;

/* The version of a table that a run read (wl_store_same). */
typedef struct wl_seen {
  wl_u64 table, stamp;
} wl_seen;

/* A query that is ready to run. */
typedef struct wl_ready {
  /* The program lives in the arena of the code if there is one, in the list of pipelines if they
  ** are listed for EXPLAIN, else in the arena. */
  wl_arena arena;
  struct wl_code *code;
  wl_program *program;
  wl_snapshot snap;
  struct wl_lookup **lookups; /* references, released when it runs */
  int n_lookups;
  struct wl_device *device;
  char why_cpu[200]; /* if there is a device, why it is not used */
  int n_on_device;   /* number of queries before it that the device ran */
  wl_seen *seen;     /* tables of the whole statement; NULL after the caller has taken them */
  int n_seen;
  bool refused;     /* only this is set if the compiler has refused the columns as they are */
  wl_budget budget; /* with what its lookups and the rows of other queries hold */
} wl_ready;

/* Makes the statement's query ready to run. rowid_order: for a scan of one table, SQLite's plan
** is in rowid order. */
wl_status wl_query_ready(const wl_query_env *env, const wl_query *q, bool rowid_order,
                         wl_ready *out, wl_error *err) WL_MUST;
void wl_ready_close(wl_ready *r);

/* Starts the run. Closes r, even if it fails. */
/* made, needed, stays: see wl_run_config. */
wl_status wl_ready_run(const wl_query_env *env, wl_ready *r, struct wl_rows *made,
                       const bool *needed, struct wl_device_rows *stays, wl_run **out,
                       wl_error *err) WL_MUST;

/* Calls fn for each source of the query and of its subqueries that is a table. The columns that are
** read are those of q->cols with that source. (A source that reduces another is left out: an outer
** query reads the same.) */
void wl_query_each_table(wl_store *store, const wl_query *q,
                         void (*fn)(void *arg, const wl_query *q, int source, wl_table *t),
                         void *arg);
/* The sizes of all tables that the query and its subqueries read. */
wl_query_size wl_query_size_of(wl_store *store, const wl_query *q);
/* Notes that SQLite runs the query because columns are not loaded. This takes ns longer. */
void wl_query_lose(wl_store *store, const wl_query *q, double ns);
/* Its columns, as a device sees them. Those that are not loaded yet are estimated. mapped: kernels
** read them in host memory. */
wl_query_copies wl_query_copies_of(wl_store *store, const wl_query *q,
                                   const struct wl_device *device, bool mapped);
/* Notes that the CPU runs the query because columns are not on the device. This takes ns longer. */
void wl_query_not_copied(wl_store *store, const wl_query *q, const struct wl_device *device,
                         double ns);
/* Estimated number of row combinations that joins without an equality examine. */
double wl_query_pairs(wl_store *store, const wl_query *q);

#endif
