/*
** The inside of rewriting. See rewrite.h for the passes and their order.
*/
#ifndef WL_PLAN_REWRITE_IMPL_H
#define WL_PLAN_REWRITE_IMPL_H

#include "plan/copy_expr.h"
#include "plan/rewrite.h"
#include "sql/query_edit.h"

/* A subquery that refers to the query and is computed for its groups. Its value is joined to the
** rows. It is the same for a whole group if all that it refers to is; then it becomes one more
** group key. */
typedef struct wl_group_subquery {
  wl_bexpr *value;
  wl_bexpr **refers_to;
  int n;
} wl_group_subquery;

/* The state of rewriting one query. */
typedef struct wl_rewriter {
  wl_edit edit;          /* the query that is made */
  const wl_query *bound; /* the query it is made from */
  wl_copy copy;          /* from that one to this one */
  int *places;           /* of each bound source: its place here */
  wl_bexpr ***flat_cols; /* of each bound source: NULL, or what its columns are now */
  bool *copied_aggs;     /* of each bound aggregate: its argument has been copied */
  int n_from;            /* sources that FROM gave; 0 while FROM is rewritten */
  bool has_right;        /* there is a RIGHT or FULL join */
  bool has_of_row;       /* there are expressions that are of_row */
  wl_group_subquery *group_subqueries;
  int n_group_subqueries;
} wl_rewriter;

/* ---- rewrite.c */
/* Rewrites a query inside a statement. What its WL_B_OUTER nodes refer to are still expressions of
** the bound query round it. */
wl_status wl_rewrite_query(const wl_edit *statement, const wl_query *bound,
                           wl_rewriter **out) WL_MUST;
/* The same for a query inside that of r. What it refers to are expressions of r's new query. */
wl_status wl_rewrite_inner(wl_rewriter *r, const wl_query *bound, wl_rewriter **out) WL_MUST;
/* The copy of an expression of the bound query; NULL: NULL. */
wl_status wl_rewrite_expr(wl_rewriter *r, const wl_bexpr *e, wl_bexpr **out) WL_MUST;

/* ---- compound.c */
/* Makes the rewritten arms of a compound arms that are read one after the other. ordered: it has an
** ORDER BY. */
wl_status wl_rewrite_compound(const wl_edit *statement, wl_derived *d, bool ordered) WL_MUST;

/* ---- flatten.c */
/* Whether the rewritten query of bound source s can be part of r's query. */
bool wl_can_flatten(const wl_rewriter *r, const wl_bsource *s, const wl_rewriter *child);
/* Makes it so; *cols: what its columns are. */
wl_status wl_flatten(wl_rewriter *r, const wl_rewriter *child, wl_bexpr ***cols) WL_MUST;

/* ---- rewrite_subquery.c */
/* A WL_B_SUBQUERY of the bound query. how: SEMI or ANTI, where only rows are kept that have a match
** or none; then *out may be NULL. Else MARK, and *out is its value. */
wl_status wl_rewrite_subquery(wl_rewriter *r, const wl_bexpr *e, wl_join_how how,
                              wl_bexpr **out) WL_MUST;
/* One more query that runs before this one; kind as in wl_bsub. */
wl_status wl_rewrite_add_sub(wl_edit *to, wl_query *q, char kind, int *out) WL_MUST;
/* Whether source `source` has a row. */
wl_status wl_rewrite_found(wl_edit *to, int source, wl_bexpr **out) WL_MUST;
/* Whether LIMIT leaves at least one row of any, without OFFSET. */
bool wl_limit_keeps_one(const wl_query *q);
bool wl_has_outer(const wl_bexpr *e); /* whether it refers to the query round its own */
bool wl_has_inner(const wl_bexpr *e); /* whether it reads rows of its own query */
/* Whether a query refers outwards elsewhere than in WHERE and ORDER BY; results: if not, results
 *are
 ** left out. */
bool wl_outer_elsewhere(const wl_query *q, bool results);
/* The conjuncts of e that refer outwards, and the others. */
wl_status wl_split_conjuncts(wl_edit *to, wl_bexpr *e, wl_bexpr **inner, wl_bexpr **outer) WL_MUST;

/* ---- subquery_join.c: EXISTS (n_left = 0) or IN as a join; *place: the new source */
wl_status wl_join_subquery(wl_rewriter *r, wl_rewriter *child, wl_bexpr **left, int n_left,
                           wl_join_how how, int *place) WL_MUST;

/* ---- scalar_subquery.c: the value of a subquery that refers outwards */
wl_status wl_join_scalar(wl_rewriter *r, wl_rewriter *child, wl_bexpr **out) WL_MUST;

/* ---- outer_values.c */
/* Makes a subquery one that gives, for the different outer values that it depends on, these values
** and then its results. *outers: the values, in r's query. */
wl_status wl_join_outer_values(wl_rewriter *r, wl_rewriter *child, wl_bexpr ***outers,
                               int *n) WL_MUST;
/* Puts n expressions before a subquery's results; grouped: before its group keys, too. */
wl_status wl_prepend_results(wl_edit *to, wl_bexpr **exprs, int n, bool grouped) WL_MUST;
/* *on AND outer IS column, for each outer value; the columns are the first ones of a source. */
wl_status wl_same_values(wl_edit *to, wl_bexpr **outers, int n, int source, wl_bexpr **on) WL_MUST;

/* ---- grouped_columns.c */
wl_status wl_rewrite_grouped_columns(wl_rewriter *r) WL_MUST;

/* ---- rewrite_right_join.c: *edit then edits another query */
wl_status wl_rewrite_right_joins(wl_edit *edit) WL_MUST;

/* ---- implied_terms.c */
wl_status wl_rewrite_implied_terms(wl_edit *to) WL_MUST;

#endif
