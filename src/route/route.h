/*
** The front door: who runs a statement, and why. warplite_prepare(), warplite_query(), changes of
** tablet tables and EXPLAIN all ask wl_route(); nothing else decides.
**
** A statement is asked about twice. When it is prepared its values are not known and nothing is
** loaded: settings, its text and the estimated cost decide. When a native statement starts, its
** columns are loaded and its program is compiled; only then is it known whether the native engine,
** and the device, can run it. EXPLAIN asks both questions at once.
**
** Invariants:
** 1. A decision names an engine and a reason, "engine: why", also where SQLite runs the statement.
** 2. SQLite runs what the native engine cannot. That is an error only with the setting strict.
** 3. A run that was decided natively may still turn to SQLite at its first batch, when a value
*turns
**    out to be SQLite's to compute or memory is short. It does so through wl_route_leave().
*/
#ifndef WL_ROUTE_H
#define WL_ROUTE_H

#include "route/statement_text.h"
#include "exec/query.h"

typedef enum wl_route_stage {
  WL_AT_PREPARE,
  WL_AT_START,  /* natively, as was decided when it was prepared */
  WL_AT_EXPLAIN /* both, one after the other; strict is not applied */
} wl_route_stage;

typedef struct wl_request {
  const char *sql;
  size_t n_sql;
  wl_route_stage stage;
  const char *cheap;    /* NULL, or why SQLite is cheaper for sure: holds unless route=always */
  const char *refused;  /* NULL, or why SQLite must run it, whatever it is */
  bool as_table;        /* the caller gets its rows through a virtual table of main (api/vtab.c) */
  bool is_part;         /* of a change: that SQLite runs it is no error with strict */
  bool copies;          /* its rows are written to a table: whole columns are worth loading */
  sqlite3_value **args; /* values of the parameters that occur, in order; not at WL_AT_PREPARE */
  int n_args;           /* parameters without a value are NULL */
} wl_request;

typedef struct wl_decision {
  wl_engine engine;            /* WL_ENGINE_CPU, WL_ENGINE_GPU or WL_ENGINE_SQLITE */
  char reason[WL_REASON_SIZE]; /* "engine: why" */
  bool about_warplite;         /* it names warplite's own functions or tables: no reason is told */
  bool is_cheap;               /* for the reason that the request gives */
  bool unable;                 /* the native engine cannot run it; else SQLite is preferred */
  bool whole_columns;          /* its rows are columns of a table as they are (copies) */
  wl_statement_text *text;     /* NULL where it was not looked at or not understood */
  wl_placement place;          /* estimates */
  /* natively, and not at WL_AT_PREPARE: */
  wl_val *params;
  wl_query_env env;
  wl_ready ready;
} wl_decision;

/* WL_OK: decided. WL_NOMEM, WL_INTERRUPT, or WL_ERROR: strict forbids it. The decision is closed by
** the caller in any case. */
wl_status wl_route(wl_conn *c, const wl_request *q, wl_decision *out, wl_error *err) WL_MUST;

/* SQLite must run what was decided otherwise: rc and err say why. Returns as wl_route() does. */
wl_status wl_route_leave(wl_conn *c, const wl_request *q, wl_status rc, wl_decision *d,
                         wl_error *err) WL_MUST;

/* An error of getting ready or of the first batch: WL_NOT_TAKEN where SQLite may do better, which
** needs less memory, and may never compute a string that is too big. Else rc. */
wl_status wl_route_judge(wl_status rc, wl_error *err);

void wl_decision_close(wl_decision *d); /* one that is all zero is fine */

/* WL_NOT_TAKEN if the application has put a function of its own in place of one of SQLite's that
** the query uses, or without a query, of any. SQLite is asked each time (some 45 us), because
** nothing tells when one is added. */
wl_status wl_route_functions(wl_conn *c, const wl_query *q, wl_error *err) WL_MUST;

#endif
