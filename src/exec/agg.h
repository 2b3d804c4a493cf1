/*
** Accumulators: what an Agg opcode gathers over a range of rows, how two ranges are joined, and
** the final result. CPU workers fill them directly. A device's partial results are converted to
** the same form.
**
** Invariants:
** 1. Joining is in row order: wl_acc_join(a, b) needs every row of a before every row of b.
** 2. low and high are the smallest and largest prefix sums of the integers before the first REAL,
**    including the empty prefix. If unordered, they are the sums of the negative and of the
**    positive integers, which bound the prefix sums for every order of the rows.
*/
#ifndef WL_AGG_H
#define WL_AGG_H

#include "base/status.h"
#include "program/program.h"
#include "value/fsum.h"

typedef struct wl_acc_state {
  wl_i64 count; /* rows counted: all rows, or those that are not NULL */
  __int128 sum; /* sum of the integers */
  __int128 low, high;
  bool seen_real;
  bool unordered; /* rows of a join, whose order in SQLite is not known */
  wl_fsum reals;
  wl_val best;   /* result of min or max so far; WL_T_NULL: none yet */
  wl_u8 *copy;   /* owned bytes of best, if it is text or a blob */
  wl_u32 n_copy; /* allocated bytes of copy */
} wl_acc_state;

wl_status wl_acc_best(wl_acc_state *s, wl_val v) WL_MUST; /* makes a copy of v the best */
bool wl_acc_better(wl_u16 op, const wl_acc_state *s, wl_val v, int coll);
wl_status wl_acc_join(const wl_acc *acc, wl_acc_state *into, wl_acc_state *from) WL_MUST;
void wl_acc_reset(wl_acc_state *s); /* frees what it owns */
/* Computes the result of the aggregate. s owns its text. An overflow is the error "integer
** overflow". */
wl_status wl_acc_final(const wl_program *p, const wl_agg *agg, const wl_acc_state *s, wl_val *out,
                       wl_error *err) WL_MUST;

#endif
