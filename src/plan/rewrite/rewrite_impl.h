/*
** The internal interface of the rewrites. See rewrite.h for the passes and their order.
*/
#ifndef WL_PLAN_REWRITE_IMPL_H
#define WL_PLAN_REWRITE_IMPL_H

#include "plan/rewrite/copy_expr.h"
#include "plan/rewrite/rewrite.h"
#include "sql/query_edit.h"

/* A correlated subquery that is computed for groups. Its value is joined to the rows. If everything
** it refers to is the same within a group, so is the value, and it becomes one more group key. */
typedef struct wl_group_subquery {
  wl_bexpr *value;
  wl_bexpr **refers_to;
  int n;
} wl_group_subquery;

/* The state of rewriting one query. */
typedef struct wl_rewriter {
  wl_edit edit;          /* the new query */
  const wl_query *bound; /* the query that is rewritten */
  wl_copy copy;          /* copies expressions from bound to the new query */
  int *places;           /* by bound source: its number in the new query */
  wl_bexpr ***flat_cols; /* by bound source: NULL, or the expressions that replace its columns */
  bool *copied_aggs;     /* by bound aggregate: whether its argument has been copied */
  int n_from;            /* number of sources from FROM; 0 while FROM is rewritten */
  bool has_right;        /* there is a RIGHT or FULL join */
  bool has_of_row;       /* there are expressions with of_row set */
  wl_group_subquery *group_subqueries;
  int n_group_subqueries;
} wl_rewriter;

/* ---- rewrite.c */
/* Rewrites a query inside a statement. Its WL_B_OUTER nodes still refer to expressions of the bound
** outer query. */
wl_status wl_rewrite_query(const wl_edit *statement, const wl_query *bound,
                           wl_rewriter **out) WL_MUST;
/* The same for a query inside that of r. Its WL_B_OUTER nodes then refer to expressions of r's new
** query. */
wl_status wl_rewrite_inner(wl_rewriter *r, const wl_query *bound, wl_rewriter **out) WL_MUST;
/* Copies an expression of the bound query. The copy of NULL is NULL. */
wl_status wl_rewrite_expr(wl_rewriter *r, const wl_bexpr *e, wl_bexpr **out) WL_MUST;

/* ---- compound.c */
/* Turns the rewritten arms of a compound into arms that are read one after the other. ordered: the
** compound has an ORDER BY. */
wl_status wl_rewrite_compound(const wl_edit *statement, wl_derived *d, bool ordered) WL_MUST;

/* ---- flatten.c */
/* Whether the rewritten query of bound source s can become part of r's query. */
bool wl_can_flatten(const wl_rewriter *r, const wl_bsource *s, const wl_rewriter *child);
/* Makes it part of r's query. *cols: the expressions that replace its columns. */
wl_status wl_flatten(wl_rewriter *r, const wl_rewriter *child, wl_bexpr ***cols) WL_MUST;

/* ---- subquery.c */
/* Rewrites a WL_B_SUBQUERY of the bound query. how is SEMI or ANTI if only rows with or without
** a match are kept; *out may then be NULL. Otherwise how is MARK, and *out is the subquery's
** value. */
wl_status wl_rewrite_subquery(wl_rewriter *r, const wl_bexpr *e, wl_join_how how,
                              wl_bexpr **out) WL_MUST;
/* Adds a query that runs before this one. kind is as in wl_bsub. */
wl_status wl_rewrite_add_sub(wl_edit *to, wl_query *q, char kind, int *out) WL_MUST;
/* Whether source `source` has a row. */
wl_status wl_rewrite_found(wl_edit *to, int source, wl_bexpr **out) WL_MUST;
/* Whether LIMIT lets at least one row through, if there are any, and there is no OFFSET. */
bool wl_limit_keeps_one(const wl_query *q);
bool wl_has_outer(const wl_bexpr *e); /* whether it refers to the outer query */
bool wl_has_inner(const wl_bexpr *e); /* whether it reads rows of its own query */
/* Whether a query refers to the outer query outside WHERE and ORDER BY. If `results` is false,
** references in its results do not count. */
bool wl_outer_elsewhere(const wl_query *q, bool results);
/* Separates the conjuncts of e into those that refer to the outer query and the others. */
wl_status wl_split_conjuncts(wl_edit *to, wl_bexpr *e, wl_bexpr **inner, wl_bexpr **outer) WL_MUST;

/* ---- subquery_join.c: EXISTS (n_left = 0) or IN as a join. *place is the new source. */
wl_status wl_join_subquery(wl_rewriter *r, wl_rewriter *child, wl_bexpr **left, int n_left,
                           wl_join_how how, int *place) WL_MUST;

/* ---- scalar_subquery.c: the value of a correlated subquery */
wl_status wl_join_scalar(wl_rewriter *r, wl_rewriter *child, wl_bexpr **out) WL_MUST;

/* Whether grouping by `inner`, one side of an equality, puts rows into one group that the equality
** treats alike. */
bool wl_groups_as_compared(const wl_bexpr *equality, const wl_bexpr *inner);

/* ---- outer_values.c */
/* Changes a subquery so that it returns, for each distinct combination of the outer values that it
** depends on, these values and then its results. *outers: the values, in r's query. */
wl_status wl_join_outer_values(wl_rewriter *r, wl_rewriter *child, wl_bexpr ***outers,
                               int *n) WL_MUST;
/* Inserts n expressions before a subquery's results and, if grouped, before its group keys. */
wl_status wl_prepend_results(wl_edit *to, wl_bexpr **exprs, int n, bool grouped) WL_MUST;
/* Sets *on to *on AND outer IS column, for each outer value. The columns are the first ones of
** source. */
wl_status wl_same_values(wl_edit *to, wl_bexpr **outers, int n, int source, wl_bexpr **on) WL_MUST;

/* ---- grouped_columns.c */
wl_status wl_rewrite_grouped_columns(wl_rewriter *r) WL_MUST;

/* ---- right_join.c: for a query with a RIGHT or FULL join */
wl_status wl_rewrite_right_joins(wl_edit *edit) WL_MUST;

/* ---- implied_terms.c */
wl_status wl_rewrite_implied_terms(wl_edit *to) WL_MUST;

/* ---- reduce_groups.c */
wl_status wl_rewrite_reduce_groups(wl_edit *to) WL_MUST;

#endif
