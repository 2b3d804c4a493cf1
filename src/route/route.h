/*
** Decides who runs a statement, and why. warplite_prepare(), warplite_query(), changes of tablet
** tables and EXPLAIN all call wl_route(). Nothing else decides.
**
** There are two decisions per statement. At prepare its values are not known and nothing is loaded:
** the settings, the text and the estimated cost decide. When a native statement starts, its columns
** are loaded and its program is compiled. Only then is it known whether the native engine and the
** device can run it. EXPLAIN makes both decisions at once. So does the preload library, at each
** execution: first the cost decides, with the values, and then the columns are loaded.
**
** Invariants:
** 1. A decision names an engine and a reason, "engine: why", also where SQLite runs the statement.
** 2. SQLite runs what the native engine cannot. That is an error only with the setting strict.
** 3. A native run may still change to SQLite at its first batch, if SQLite must compute a value or
**    memory is short. It does so through wl_route_leave().
*/
#ifndef WL_ROUTE_H
#define WL_ROUTE_H

#include "route/statement_text.h"
#include "exec/query.h"

typedef enum wl_route_stage {
  WL_AT_PREPARE,
  WL_AT_START,   /* it was decided at prepare that it runs natively */
  WL_AT_EXECUTE, /* both at once, with the values of the parameters; used by preload */
  WL_AT_EXPLAIN  /* both, one after the other; ignores strict */
} wl_route_stage;

typedef struct wl_request {
  const char *sql;
  size_t n_sql;
  wl_route_stage stage;
  const char *cheap;   /* why SQLite is surely cheaper, or NULL; ignored with route=always */
  const char *refused; /* why SQLite must run it in any case, or NULL */
  bool as_table;       /* its rows come through a virtual table of main (api/vtab.c) */
  bool is_part;        /* part of a change: SQLite may run it even with strict */
  bool seen;           /* from wl_statement_text_seen(): it names nothing of warplite's */
  bool copies;         /* its rows are written to a table, so whole columns are worth loading */
  struct wl_device_rows *stays; /* takes the rows if they can stay on the device; or NULL */
  sqlite3_value **args; /* values of the parameters that occur, in order; none at WL_AT_PREPARE */
  int n_args;           /* parameters without a value are NULL */
  struct wl_pipelines *pipelines; /* where to list them for EXPLAIN (exec/pipelines.h), or NULL */
} wl_request;

typedef struct wl_decision {
  wl_engine engine;            /* WL_ENGINE_CPU, WL_ENGINE_GPU or WL_ENGINE_SQLITE */
  char reason[WL_REASON_SIZE]; /* "engine: why" */
  bool about_warplite;         /* it uses warplite's functions or tables; it sets no reason */
  bool is_cheap;               /* SQLite runs it because of wl_request.cheap */
  bool unable;                 /* the native engine cannot run it; false: SQLite is preferred */
  bool whole_columns;          /* the result is whole columns of a table (wl_request.copies) */
  wl_statement_text *text;     /* NULL if it was not needed or could not be parsed */
  wl_placement place;          /* estimates */
  /* Set for a native engine, except at WL_AT_PREPARE. */
  wl_val *params;
  wl_query_env env;
  wl_ready ready;
} wl_decision;

/* Decides, with one read transaction on each database that the statement reads. Fails with
** WL_NOMEM, WL_INTERRUPT, or WL_ERROR if strict forbids the decision. The caller closes the
** decision in any case. */
wl_status wl_route(wl_conn *c, const wl_request *q, wl_decision *out, wl_error *err) WL_MUST;

/* Changes a decision to SQLite. rc and err say why. Returns what wl_route() would. */
wl_status wl_route_leave(wl_conn *c, const wl_request *q, wl_status rc, wl_decision *d,
                         wl_error *err) WL_MUST;

/* Judges an error of getting ready or of the first batch. Returns WL_NOT_TAKEN if SQLite may
** succeed: it needs less memory, and may never compute a string that is too big. Otherwise returns
** rc. */
wl_status wl_route_judge(wl_status rc, wl_error *err);

void wl_decision_close(wl_decision *d); /* accepts an all-zero decision */

#endif
