/*
** Runs SQLite's functions over a vector of rows. An expression over ?1, ?2 … is prepared in a
** private connection as an aggregate over a virtual table whose rows are the vector. SQLite then
** computes all rows in one step.
**
** Invariants:
** 1. Only one worker at a time uses a wl_calls.
** 2. Between calls, `stops` is asked whether to stop: after each slow call, and after every few
**    quick ones.
** 3. An error of SQLite is not an error here. The fault WL_FAULT_SQL means that SQLite must run the
**    statement. It raises the error if it gets there.
*/
#ifndef WL_CALLS_H
#define WL_CALLS_H

#include "base/sqlite.h"
#include "base/status.h"
#include "value/ops.h"

enum { WL_CALL_ARGS = 100 };

typedef struct wl_calls wl_calls;

wl_calls *wl_calls_open(sqlite3 *db); /* NULL: out of memory */
void wl_calls_close(wl_calls *c);     /* NULL is allowed */

/* The arguments of a call for n rows. Argument k of row i is args[k * n + i] if varies[k], else
** args[k * n]. */
typedef struct wl_call_rows {
  const char *text;
  const wl_val *args;
  const bool *varies;
  int n_args, n;
  bool of_time;             /* an argument "now" is a fault */
  int max_pattern;          /* the connection's limit on a pattern of LIKE and GLOB */
  bool (*stops)(void *arg); /* asked between calls, but not after every quick one; may be NULL */
  void *stops_arg;
} wl_call_rows;

/* Computes the expression for all rows into out[n]. Texts and blobs are in the context's scratch
** memory. Faults are set in the context. */
void wl_calls_run(wl_vctx *x, const wl_call_rows *rows, wl_val *out);

#endif
