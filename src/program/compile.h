/*
** From bound query to opcode program. Types are not guessed: they come from the columns
** that are in memory, which are what the program will run over.
*/
#ifndef WL_COMPILE_H
#define WL_COMPILE_H

#include "program/program.h"
#include "sql/bind.h"
#include "vm/ops.h"

typedef struct wl_compile_in {
  const wl_query *query;
  const wl_table *table; /* names, for the listing */
  wl_i64 n_rows;
  wl_column **cols;     /* one for each of query->cols; NULL: take the types below instead */
  const wl_val *params; /* [n_params] */
  int n_params;
  bool rowid_order; /* SQLite would scan in rowid order too */
  bool for_device;  /* it is meant for a device, though the CPU may have to take over */
  wl_u64 max_text;  /* SQLite's limit on string length … */
  int max_pattern;  /* … and on a pattern of LIKE */
} wl_compile_in;

/* WL_NOT_TAKEN when the values in hand put the query out of reach, with the reason. */
wl_status wl_compile(wl_arena *arena, const wl_compile_in *in, wl_program **out,
                     wl_error *err) WL_MUST;

/* One scalar opcode over constants (program/fold.c). False if it is none. */
bool wl_fold(wl_vctx *x, wl_u16 op, wl_val a, wl_val b, wl_val c, int number, wl_val *out);

#endif
