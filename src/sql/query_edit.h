/*
** Functions that add to a bound query: expressions, columns, sources, results. The binder builds
** queries with them, and the planner's rewrites (plan/rewrite/rewrite.h) turn queries into others.
**
** Invariants:
** 1. An array that grows by WL_EDIT_ROOM has room for 8 entries, 16, 32 and so on. The number of
**    its entries determines its capacity, so an array that was allocated in another way must not
**    grow by it.
*/
#ifndef WL_QUERY_EDIT_H
#define WL_QUERY_EDIT_H

#include "sql/bind.h"

/* The SQLite functions that a statement computes natively. */
typedef struct wl_call_names {
  const char **names;
  int n;
} wl_call_names;

/* A query that is being built. The other fields are the same for all queries of a statement. */
typedef struct wl_edit {
  wl_query *q;
  wl_arena *arena;
  wl_call_names *calls;
  wl_error *err;
} wl_edit;

/* Opens an editor for a new, empty query of the same statement. */
wl_status wl_edit_open(wl_edit *to, const wl_edit *statement) WL_MUST;

/* Makes room for one more entry in an array of n entries. */
wl_status wl_edit_room(const wl_edit *to, void **array, int n, size_t width) WL_MUST;
#define WL_EDIT_ROOM(to, array, n) wl_edit_room(to, (void **)&(array), n, sizeof *(array))

/* ---- expressions */
wl_bexpr *wl_edit_node(wl_edit *to, wl_bkind kind); /* NULL: out of memory */
wl_status wl_edit_constant(wl_edit *to, wl_val v, wl_bexpr **out) WL_MUST;
/* CASE WHEN test THEN yes ELSE no END. The caller sets affinity and collation. */
wl_status wl_edit_case(wl_edit *to, wl_bexpr *test, wl_bexpr *yes, wl_bexpr *no,
                       wl_bexpr **out) WL_MUST;
wl_status wl_edit_compare(wl_edit *to, wl_bkind kind, wl_op op, wl_bexpr *l, wl_bexpr *r,
                          wl_bexpr **out) WL_MUST;
wl_status wl_edit_binary(wl_edit *to, wl_bkind kind, wl_op op, wl_bexpr *l, wl_bexpr *r,
                         wl_bexpr **out) WL_MUST;
wl_status wl_edit_negate(wl_edit *to, bool negated, wl_bexpr **x) WL_MUST;
/* *conjuncts = *conjuncts AND more. NULL means no condition. */
wl_status wl_edit_and(wl_edit *to, wl_bexpr **conjuncts, wl_bexpr *more) WL_MUST;
/* The node of a source's column. A new node gets this affinity and collation. */
wl_status wl_edit_column(wl_edit *to, int source, int column, char affinity, wl_u8 coll,
                         wl_bexpr **out) WL_MUST;
/* An expression as SQLite sees it through a column of a subquery or view: it keeps its collation,
** but as an implicit one. */
wl_status wl_edit_as_column(wl_edit *to, wl_bexpr *e, wl_bexpr **out) WL_MUST;

/* The affinity and the collation that a comparison of two expressions uses. */
char wl_compare_affinity(const wl_bexpr *a, const wl_bexpr *b);
wl_u8 wl_compare_coll(const wl_bexpr *a, const wl_bexpr *b);
/* An explicit COLLATE of an operand counts for the whole expression; the leftmost one wins. */
void wl_bexpr_raise_collate(wl_bexpr *x);

/* ---- parts of a query */
wl_status wl_edit_source(wl_edit *to, wl_bsource s, int *out) WL_MUST;
wl_status wl_edit_result(wl_edit *to, wl_bexpr *e) WL_MUST;
wl_status wl_edit_aggregate(wl_edit *to, wl_bagg agg, wl_bexpr **out) WL_MUST;
/* Makes the rows of a query available to sources. */
wl_status wl_edit_derived(const wl_edit *to, wl_query *q, wl_derived **out) WL_MUST;
/* Function names, indexed by wl_agg_fn. */
extern const char *const wl_aggregate_names[WL_N_AGGREGATES];
/* Records that an SQLite function is computed natively. The application must not override it. */
wl_status wl_edit_uses(const wl_edit *to, const char *function) WL_MUST;

/* ---- compounds */
/* The collation of column k of a compound: that of the first arm whose column has one. */
wl_u8 wl_arms_coll(wl_query *const *arms, int n, int k, bool *has);
/* Source 0 gives the rows of a compound of these arms. Makes all its columns results. */
wl_status wl_edit_arm_columns(wl_edit *to, wl_query *const *arms, int n) WL_MUST;

#endif
