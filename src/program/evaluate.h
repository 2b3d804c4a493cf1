/*
** Evaluation at compile time. The compiler runs small programs to compute dictionary entries and to
** measure filters on a sample of rows. This layer does not know how to run programs, so the
** executor passes a function (exec/cpu/evaluate.h) in wl_compile_in.
*/
#ifndef WL_EVALUATE_H
#define WL_EVALUATE_H

#include "column/batch.h"
#include "column/column.h"
#include "program/program.h"

/* Rows [first, first + n) of one tablet. */
typedef struct wl_row_range {
  int tablet;
  wl_i32 first, n;
} wl_row_range;

typedef struct wl_evaluation {
  const wl_program *program; /* its sink takes result rows */
  wl_column **cols;          /* the program's columns */
  const wl_row_range *ranges;
  int n_ranges;
  wl_u64 max_text;                              /* SQLite's limit on the length of a string */
  wl_status (*check)(void *arg, wl_error *err); /* called now and then, or NULL */
  void *check_arg;
} wl_evaluation;

/* The results: one batch for each range, in the order of the ranges. */
typedef struct wl_evaluated {
  wl_pool *pool;
  wl_batch *batches;
} wl_evaluated;

/* Fills *out. The caller zeroes *out before and closes it afterwards, even after an error. Returns
** WL_INTERRUPT if and only if check stopped it. */
typedef wl_status (*wl_evaluate)(const wl_evaluation *e, wl_evaluated *out, wl_error *err);

void wl_evaluated_close(wl_evaluated *r);

#endif
