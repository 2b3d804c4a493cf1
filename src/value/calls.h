/*
** SQLite's functions over a vector of rows. An expression over ?1, ?2 … is prepared in a private
** connection as an aggregate over a virtual table whose rows are the vector, so that SQLite goes
** through all of them in one step.
**
** Invariants:
** 1. One worker uses one wl_calls at a time.
** 2. Between two calls it is asked whether to stop: after each that took long, after every few of
**    the others.
** 3. An error of SQLite's is no error here: the fault WL_FAULT_SQL says that SQLite itself shall
**    run the statement, and raise it if it comes to it.
*/
#ifndef WL_CALLS_H
#define WL_CALLS_H

#include "base/sqlite.h"
#include "base/status.h"
#include "value/ops.h"

enum { WL_CALL_ARGS = 100 };

typedef struct wl_calls wl_calls;

wl_calls *wl_calls_open(sqlite3 *db); /* NULL: out of memory */
void wl_calls_close(wl_calls *c);     /* NULL is fine */

/* The arguments of a call for n rows: argument k of row i is args[k * n + i], or args[k * n] for
** every row unless varies[k]. */
typedef struct wl_call_rows {
  const char *text;
  const wl_val *args;
  const bool *varies;
  int n_args, n;
  bool of_time;             /* an argument "now" is a fault */
  int max_pattern;          /* the connection's limit on a pattern of LIKE and GLOB */
  bool (*stops)(void *arg); /* asked between calls, not after each quick one; or NULL */
  void *stops_arg;
} wl_call_rows;

/* What the expression gives, into out[n]; text and blobs lie in the context's scratch. Faults
** go to the context. */
void wl_calls_run(wl_vctx *x, const wl_call_rows *rows, wl_val *out);

#endif
