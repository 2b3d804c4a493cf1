/*
** Runs a bound query: the queries it depends on first, then its lookups, then the program itself.
** Stands between the planner and compiler on one side, which need to know the data, and the
** runner on the other.
**
** Invariants:
** 1. All tables of a statement are read in one read transaction on their databases; it ends
**    before the first row is given, when everything is in memory.
** 2. A derived source is run once, whatever number of queries read it.
** 3. An error in a query that another depends on is no error yet, for SQLite might never have
**    run it: it is WL_NOT_TAKEN.
*/
#ifndef WL_QUERY_H
#define WL_QUERY_H

#include "plan/join.h"
#include "plan/place.h"
#include "exec/run.h"

struct wl_device;
struct wl_lookup;

struct wl_notes;
struct wl_query_note;

typedef struct wl_query_env {
  wl_store *store;
  const wl_settings *set;
  const wl_val *params;
  int n_params;
  wl_u64 max_text;
  int max_pattern;
  wl_i64 host_left; /* for groups, sorts and lookups; 0: as much as there is */
  wl_i64 mapped_budget;
  struct wl_device *device; /* to be used where it can be, or NULL */
  wl_status (*check)(void *arg, wl_error *err);
  void *check_arg;
  struct wl_notes *notes; /* of EXPLAIN ANALYZE (exec/notes.h), or NULL */
} wl_query_env;

/* A table as a run saw it (wl_store_same). */
typedef struct wl_seen {
  wl_u64 table, stamp;
} wl_seen;

/* A query that is ready to run. */
typedef struct wl_ready {
  wl_arena arena; /* of the program */
  wl_program *program;
  wl_snapshot snap;
  struct wl_lookup **lookups; /* held until it runs */
  int n_lookups;
  const wl_jplan *plan; /* in the arena */
  struct wl_device *device;
  char why_cpu[200]; /* why not the device, where there is one */
  int n_on_device;   /* queries before it that the device ran */
  wl_seen *seen;     /* tables of the whole statement; NULL once the caller has taken them */
  int n_seen;
  struct wl_query_note *note; /* what it takes, if that is noted */
} wl_ready;

/* Makes the statement's query ready: facts are those of SQLite's plan, of a simple one. */
wl_status wl_query_ready(const wl_query_env *env, const wl_query *q, bool rowid_order,
                         wl_ready *out, wl_error *err) WL_MUST;
void wl_ready_close(wl_ready *r);

/* Starts it; r is taken, also when this fails. */
wl_status wl_ready_run(const wl_query_env *env, wl_ready *r, wl_run **out, wl_error *err) WL_MUST;

/* Rows of all tables that the query and those in it read, as far as that is known. */
wl_i64 wl_query_rows(wl_store *store, const wl_query *q, bool *exact, int *n_missing);
/* Combinations of rows that joins without an equality go through, about. */
double wl_query_pairs(wl_store *store, const wl_query *q);
/* The same of the table, or derived source, that the query calls so; -1: there is none. */
wl_i64 wl_query_rows_of(wl_store *store, const wl_query *q, const char *name);

#endif
