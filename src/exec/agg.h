/*
** Accumulators: what an Agg opcode gathers over a stretch of rows, how two stretches join,
** and what becomes of the whole. CPU workers fill them directly; a device's partial
** results are brought into the same form.
**
** Invariants:
** 1. Joining is in row order: wl_acc_join(a, b) needs every row of a before every row of b.
** 2. low and high are the smallest and largest prefix sums of the integers seen before
**    the first REAL, the empty prefix included. Unordered: the sums of those below and above 0,
**    which no order of the rows can leave.
*/
#ifndef WL_AGG_H
#define WL_AGG_H

#include "base/status.h"
#include "program/program.h"
#include "value/fsum.h"

typedef struct wl_acc_state {
  wl_i64 count; /* rows that counted: all rows, or those not NULL */
  __int128 sum; /* of integers */
  __int128 low, high;
  bool seen_real;
  bool unordered; /* the rows of a join, whose order is SQLite's own */
  wl_fsum reals;
  wl_val best;   /* of min and max; WL_T_NULL: none yet */
  wl_u8 *copy;   /* owned bytes of best, if text or blob */
  wl_u32 n_copy; /* room there */
} wl_acc_state;

wl_status wl_acc_best(wl_acc_state *s, wl_val v) WL_MUST; /* makes v the best, copying it */
bool wl_acc_better(wl_u16 op, const wl_acc_state *s, wl_val v, int coll);
wl_status wl_acc_join(const wl_acc *acc, wl_acc_state *into, wl_acc_state *from) WL_MUST;
void wl_acc_reset(wl_acc_state *s); /* frees what it owns */
/* The finished aggregate; text stays owned by s. "integer overflow" is an error. */
wl_status wl_acc_final(const wl_program *p, const wl_agg *agg, const wl_acc_state *s, wl_val *out,
                       wl_error *err) WL_MUST;

#endif
