/*
** Arranges the code of a pipeline for the interpreter kernel, which is faster over few operations
** that read columns themselves than over many that pass registers.
**
** - A comparison of a column of the scanned table with a constant, and the IfNot behind it, become
**   one filter (WL_K_FILTER).
** - A key of a join, or the operand of an aggregate without GROUP BY, that is a column is read where
**   it is used ("direct"). It needs no register.
** - An instruction runs when its result is first needed, so after the filters before that.
** - The code is cut into stages where few rows are expected to be left, if the sink takes rows in
**   any order. Rows wait in queues between stages (kernels/kqueue.h).
**
** Invariants:
** 1. Only code over rows of a table, without Expand, text and values of several types is arranged.
**    Its instructions cannot fail, so it does not matter for which rows they run.
** 2. A register is set once. Stages share no registers: what several stages need, each computes.
** 3. Registers of the program keep their numbers in the last stage, because the lists of Group and
**    Result name them. The registers of earlier stages come after all others.
*/
#ifndef WL_ARRANGE_H
#define WL_ARRANGE_H

#include "program/program.h"
#include "exec/gpu/kernels/kargs.h"

typedef struct wl_arranged {
  wl_program p;      /* a copy of the program with the new code and registers */
  wl_i16 *filter;    /* [n_code]: the number of the range that a filter tests; -1: no filter */
  wl_i16 *column;    /* [n_code]: the column that a filter tests or a direct operand is; -1: none */
  wl_krange *ranges; /* [n_ranges] */
  int n_ranges;
  int cuts[WL_K_CUTS], n_cuts; /* where stages begin, after the first */
} wl_arranged;

/* All memory comes from the arena. The code stays as it is if it cannot be arranged. */
wl_status wl_arrange(wl_arena *arena, const wl_program *p, wl_arranged *out, wl_error *err) WL_MUST;

#endif
