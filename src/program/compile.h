/*
** Compiles a bound query into an opcode program. Types are not guessed: they come from the columns
** in memory that the program will read.
*/
#ifndef WL_COMPILE_H
#define WL_COMPILE_H

#include "program/evaluate.h"
#include "program/program.h"
#include "plan/join.h"
#include "sql/bind.h"
#include "value/keys.h"
#include "value/ops.h"

struct wl_lookup;
struct wl_key_plan;

#define WL_MAX_TEXT 1000000000 /* SQLite's default limit on the length of a string */

typedef struct wl_compile_in {
  const wl_query *query;
  const char *const *names;   /* names of query->cols, for the listing */
  wl_i64 n_rows;              /* rows of the source that is scanned */
  const wl_i64 *source_rows;  /* rows of each source */
  const wl_jplan *plan;       /* the join plan; NULL: there is one source */
  struct wl_lookup **lookups; /* by step of the plan; an entry is NULL if it is not built yet */
  const wl_val *subs;         /* values of the query's subs that are not lists */
  wl_column **sub_lists;      /* columns of the query's subs that are lists */
  const bool *needed;         /* results that are needed; NULL: all */
  const int *live;  /* by source: the slot of the column that tells which rows count, or -1; NULL:
                    ** all rows of all sources count */
  wl_column **cols; /* one for each of query->cols */
  const wl_val *params; /* [n_params] */
  int n_params;
  bool rowid_order; /* SQLite would also scan in rowid order */
  bool unordered;   /* SQLite's order of the rows is unknown */
  bool for_device;  /* the program is meant for a device, though the CPU may have to take over */
  wl_evaluate evaluate;                         /* runs small programs now; required */
  wl_status (*check)(void *arg, wl_error *err); /* called between calls of functions, or NULL */
  void *check_arg;
  wl_u64 max_text; /* SQLite's limit on the length of a string */
  int max_pattern; /* SQLite's limit on the length of a LIKE pattern */
} wl_compile_in;

/* Returns WL_NOT_TAKEN with the reason if the query cannot run natively over these values. */
wl_status wl_compile(wl_arena *arena, const wl_compile_in *in, wl_program **out,
                     wl_error *err) WL_MUST;

/* Compiles the program that builds the lookup of a step. *keys: how its keys become words. */
wl_status wl_compile_build(wl_arena *arena, const wl_compile_in *in, int step, wl_program **out,
                           struct wl_key_plan *plan, wl_error *err) WL_MUST;

/* The column that an operand is the value of, or -1. */
int wl_program_column(const wl_program *p, wl_i16 operand);
/* Lays out the sort keys of a pipeline over a table as words. Texts must be columns. False: that is
** not possible. l->parts has room for two parts a key. */
bool wl_sort_key_layout(const wl_program *p, wl_key_layout *l);

/* The share of a source's rows that pass all conjuncts of a list, estimated from a sample. */
double wl_compile_share(wl_arena *arena, const wl_compile_in *in, int source, const wl_jlist *list);

/* Whether computing the groups of a query may raise an error for some rows of its sources. */
bool wl_compile_may_fail(wl_arena *arena, const wl_compile_in *in);

/* Computes one scalar opcode over constants (program/fold.c). Returns false if op is not scalar. */
bool wl_fold(wl_vctx *x, wl_u16 op, wl_val a, wl_val b, wl_val c, int number, wl_val *out);

#endif
