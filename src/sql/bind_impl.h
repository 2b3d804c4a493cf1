/*
** The inside of the binder, shared by bind.c (names, operators, clauses) and func.c (functions).
*/
#ifndef WL_BIND_IMPL_H
#define WL_BIND_IMPL_H

#include "sql/bind.h"

typedef struct binder {
  wl_arena *arena;
  wl_store *store;
  wl_query *q;
  wl_table *table;
  const wl_source *source;
  const wl_select *select;
  wl_bexpr **columns; /* the one node of each column, [n_cols + 1], rowid last */
  int size_aggs;
  bool in_agg;
  bool in_where;
  bool sees_alias; /* where SQLite lets names mean result columns: not in these, not in LIMIT */
  bool in_alias;   /* in a result column that was named so */
  char where;      /* which clause is being bound, as in wl_bagg */
  wl_error *err;
} binder;

wl_bexpr *wl_bind_node(binder *b, wl_bkind kind); /* NULL: out of memory */
wl_status wl_bind_expr(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
wl_status wl_bind_constant(binder *b, wl_val v, wl_bexpr **out) WL_MUST;
wl_status wl_bind_compare(binder *b, wl_bkind kind, wl_op op, wl_bexpr *l, wl_bexpr *r,
                          wl_bexpr **out) WL_MUST;
wl_status wl_bind_binary(binder *b, wl_bkind kind, wl_op op, wl_bexpr *l, wl_bexpr *r,
                         wl_bexpr **out) WL_MUST;
wl_status wl_bind_negate(binder *b, bool negated, wl_bexpr **x) WL_MUST;
void wl_bind_collation(wl_bexpr *x); /* an explicit COLLATE of an operand goes up */

/* Notes that a function of SQLite is computed by us, so that it must not be overridden. */
wl_status wl_bind_uses(binder *b, const char *name) WL_MUST;
/* A scalar function, or one of the operators -> and ->>. */
wl_status wl_bind_function(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
wl_status wl_bind_like(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;

#endif
