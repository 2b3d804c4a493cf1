/*
** From bound query to opcode program. Types are not guessed: they come from the columns
** that are in memory, which are what the program will run over.
*/
#ifndef WL_COMPILE_H
#define WL_COMPILE_H

#include "program/evaluate.h"
#include "program/program.h"
#include "plan/join.h"
#include "sql/bind.h"
#include "value/ops.h"

struct wl_lookup;
struct wl_key_plan;

#define WL_MAX_TEXT 1000000000 /* SQLite's own limit on the length of a string, unless lowered */

typedef struct wl_compile_in {
  const wl_query *query;
  const char *const *names;   /* of query->cols, for the listing */
  wl_i64 n_rows;              /* of the source that is scanned */
  const wl_i64 *source_rows;  /* of each source */
  const wl_jplan *plan;       /* the join's; NULL: there is one source */
  struct wl_lookup **lookups; /* of the plan's steps; NULL: not built yet */
  const wl_val *subs;         /* the values of the query's subs … */
  wl_column **sub_lists;      /* … or the columns that are lists */
  const bool *needed;         /* results that are wanted; NULL: all */
  const int *live;  /* by source: the slot of the column that tells which rows count, or -1; NULL:
                    ** all rows of all sources do */
  wl_column **cols; /* one for each of query->cols; NULL: take the types below instead */
  const wl_val *params; /* [n_params] */
  int n_params;
  bool rowid_order; /* SQLite would scan in rowid order too */
  bool unordered;   /* nothing is known of the order in which it meets the rows */
  bool one_group;   /* gather what has no GROUP BY in a group, where magnitudes are kept */
  bool for_device;  /* it is meant for a device, though the CPU may have to take over */
  wl_evaluate evaluate;                         /* runs small programs now; required */
  wl_status (*check)(void *arg, wl_error *err); /* asked between calls of functions, or NULL */
  void *check_arg;
  wl_u64 max_text; /* SQLite's limit on string length … */
  int max_pattern; /* … and on a pattern of LIKE */
} wl_compile_in;

/* WL_NOT_TAKEN when the values in hand put the query out of reach, with the reason. */
wl_status wl_compile(wl_arena *arena, const wl_compile_in *in, wl_program **out,
                     wl_error *err) WL_MUST;

/* The program that builds the lookup of a step, and how its keys become words. */
wl_status wl_compile_build(wl_arena *arena, const wl_compile_in *in, int step, wl_program **out,
                           struct wl_key_plan *plan, wl_error *err) WL_MUST;

/* The share of a source's rows that pass all conjuncts of a list, from a sample. */
double wl_compile_share(wl_arena *arena, const wl_compile_in *in, int source, const wl_jlist *list);

/* One scalar opcode over constants (program/fold.c). False if it is none. */
bool wl_fold(wl_vctx *x, wl_u16 op, wl_val a, wl_val b, wl_val c, int number, wl_val *out);

#endif
