/*
** Building the lookup of a join.
*/
#ifndef WL_BUILD_H
#define WL_BUILD_H

#include "column/lookup.h"
#include "exec/tally.h"
#include "program/program.h"

/*
** Runs the build program p (its last row-level opcode is Build of join 0, whose lookup is not
** there yet) over the n_rows rows of its source 0 and makes the lookup. cols: p's columns, of all
** its sources. left: bytes it may take, 0 as many as there are (WL_NOT_TAKEN past that).
*/
typedef struct wl_build_in {
  const wl_program *p;
  wl_column **cols;
  wl_i64 n_rows;
  wl_key_plan plan;
  int threads;
  wl_u64 max_text;
  wl_i64 left;
  double n_probes; /* how often it will be asked, about */
  bool first_only; /* of the rows with one key only the first matters: the others are left out, and
                      the lookup is unique */
  wl_status (*check)(void *arg, wl_error *err);
  void *check_arg;
  wl_tally *tally; /* of p's instructions, or NULL */
} wl_build_in;
wl_status wl_lookup_build(const wl_build_in *in, wl_lookup **out, wl_error *err) WL_MUST;

#endif
