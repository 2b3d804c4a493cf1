/*
** The binder's internal interface. A SELECT goes through these files in this order: select.c (a
** whole SELECT, compounds), from.c (sources and joins), nested.c (joins in parentheses), names.c
** (what names mean), clauses.c (results, WHERE, GROUP BY, ORDER BY), bind.c (operators),
** aggregate.c, func.c (functions), subquery.c (subqueries in expressions).
*/
#ifndef WL_BIND_IMPL_H
#define WL_BIND_IMPL_H

#include "sql/query_edit.h"

struct binder;

enum { WL_MAX_NESTING = 60 }; /* how deep queries and views may nest */

/*
** One item of FROM that names can refer to: a table, a derived source with named columns, or a join
** in parentheses.
*/
typedef struct wl_item {
  const char *name;      /* the qualifier of its columns, as in name.column */
  const char *schema;    /* the database of a table without alias; else NULL */
  const wl_table *table; /* NULL: not a table; `names` then has the column names */
  const char **names;
  int n_cols;
  struct wl_nested *nested; /* NULL: not a join in parentheses */
  int source;
  wl_join_kind join;
  const char **using_names; /* the columns that USING or NATURAL joins by */
  int n_using;
  bool before_right; /* a RIGHT or FULL join follows it */
} wl_item;

/* A column of a join in parentheses. It is either column k of the item `member` inside, or, if
** member is NULL, the column that USING makes there. The query can write it as schema.table.column;
** a column that USING makes has only the last part. */
typedef struct wl_nested_col {
  const char *schema, *table, *column;
  wl_item *member;
  int k;
  bool no_expand; /* * leaves it out */
  int result;     /* 1 + its place among the results of the query that the join is; 0: not yet */
} wl_nested_col;

/* A join in parentheses; its item has the names of its columns, made unique. */
typedef struct wl_nested {
  wl_item *members;
  int n_members;
  wl_nested_col *cols;
  struct binder *inner; /* the binder of its query; NULL: its sources are part of the outer query */
} wl_nested;

/* A WITH entry that names can refer to. An entry that is used several times is bound once:
** `derived` then gives its rows, and `names` has the names of its columns. */
typedef struct wl_with_entry {
  const struct wl_with_entry *next;
  const wl_cte *cte;
  struct binder *home; /* the query that the WITH belongs to */
  wl_derived *derived;
  const char **names;
  bool open; /* it is being bound now, so a mention inside is recursion */
  int n_uses;
} wl_with_entry;

/* State shared by all binders of a statement. */
typedef struct wl_binding {
  wl_bdep *deps;
  int n_deps;
  int n_unnamed; /* columns that SQLite names with a random number */
  int depth;     /* how deep queries nest here, including views */
} wl_binding;

/*
** The state of binding one SELECT.
**
** parent is the outer query, whose names this one may use. If in_from is set, this query is in the
** FROM of parent; then it may use only the names of parent's outer queries.
*/
typedef struct binder {
  wl_edit edit; /* the query that is built */
  const wl_catalog *catalog;
  wl_binding *all;
  struct binder *parent;
  bool in_from;
  const char *schema;         /* inside a view: the schema of names that give none */
  const char *sql;            /* the text that expression positions refer to */
  const wl_with_entry *named; /* WITH entries that are visible here */
  const wl_select *select;
  wl_item *items;
  int n_items;
  const wl_result_col **result_cols; /* the syntax of each result; NULL: it comes from a star */
  const char **result_names;         /* names of the results that come from a star */
  struct binder *first_arm;          /* for a compound: its first core, which names its columns */
  wl_query *last_arm;     /* for a compound: its last core, whose affinities the compound has inside
                          ** an expression */
  bool *mixed;            /* for a compound: the value of wl_derived.mixed, or NULL */
  bool affinities_differ; /* for a compound: some column has different affinities in different
                          ** arms */
  bool in_compound;       /* a core of a compound: ORDER BY and LIMIT belong to the compound */
  bool has_right;         /* there is a RIGHT or FULL join */
  bool in_agg;            /* inside the argument of an aggregate */
  bool in_where;          /* inside a clause that allows no aggregates */
  bool after_groups;      /* inside a clause that sees groups, not rows */
  bool aggregated;        /* the query has groups or aggregates, judging by its text */
  bool sees_alias;        /* inside a clause where names can mean result columns */
  bool in_alias;          /* inside a result column that was found by its alias */
  char where;             /* the clause that is being bound, as in wl_bagg */
} binder;

/* Looks up a table or view in the catalog. */
static inline wl_status wl_bind_table(const binder *b, const char *schema, const char *name,
                                      wl_table **out, wl_error *err) {
  return b->catalog->find(b->catalog->of, schema, name, out, err);
}

/* ---- bind.c */
wl_status wl_bind_expr(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
/* Compares l with r. Notes whether the arms of a compound disagree about the affinity. */
wl_status wl_bind_compare(binder *b, wl_bkind kind, wl_op op, wl_bexpr *l, wl_bexpr *r,
                          wl_bexpr **out) WL_MUST;
wl_status wl_bind_collate(binder *b, const char *name, wl_bexpr *a, wl_bexpr **out) WL_MUST;

/* ---- aggregate.c */
/* A call of an aggregate or of a scalar function. */
wl_status wl_bind_call(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
bool wl_bind_aggregated(const wl_select *s); /* has groups or aggregates */

/* ---- func.c */
/* A scalar function, or one of the operators -> and ->>. */
wl_status wl_bind_function(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
wl_status wl_bind_like(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
/* coalesce() of values that are already bound. */
wl_status wl_bind_coalesce(binder *b, wl_bexpr **args, int n, wl_bexpr **out) WL_MUST;
/* The column that USING makes from the columns it joins, if the first of them may be NULL. */
wl_status wl_bind_joined(binder *b, wl_bexpr **columns, int n, wl_bexpr **out) WL_MUST;

/* ---- names.c */
bool wl_bind_is_rowid(const char *name);
/* Column k of an item (n_cols: the rowid of a table). */
wl_status wl_bind_item(binder *b, wl_item *item, int k, wl_bexpr **out) WL_MUST;
int wl_bind_item_find(const wl_item *item, const char *name); /* or -1 */
bool wl_bind_item_hides(const wl_item *item, int k);          /* is left out of * */
const char *wl_bind_item_name(const wl_item *item, int k);
bool wl_bind_item_joins(const wl_item *item, const char *name); /* joins by this name with USING or
                                                                ** NATURAL */
/* What a name means among these items (FROM or a part of it). *out is NULL if none of them has
** it. */
wl_status wl_bind_among(binder *b, wl_item *items, int n_items, const wl_expr *e,
                        wl_bexpr **out) WL_MUST;
/* The expression that a name means. *out is NULL if it means none. */
wl_status wl_bind_name(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;

/* ---- nested.c */
/* Turns an item into the join in parentheses of these members. */
wl_status wl_nested_open(binder *b, wl_item *members, int n_members, binder *inner,
                         wl_item *item) WL_MUST;
wl_status wl_nested_column(binder *b, wl_item *item, int k, wl_bexpr **out) WL_MUST;
bool wl_nested_means(const wl_nested_col *c, const wl_expr *e); /* whether e can mean this column */
/* Changes names[k] if it equals an earlier name, in the same way as SQLite. *clash: the name
** equalled one that is set in by_using (which may be NULL). */
wl_status wl_bind_unique(binder *b, const char **names, int k, const bool *by_using,
                         bool *clash) WL_MUST;

/* ---- from.c */
wl_status wl_bind_from(binder *b, const wl_from_item *from) WL_MUST;
wl_status wl_bind_ctes(binder *b, const wl_cte *with) WL_MUST;
/* Records a table or view that the statement depends on. */
wl_status wl_bind_depends(binder *b, const char *schema, const char *name, wl_u64 id) WL_MUST;

/* ---- clauses.c */
wl_status wl_bind_core(binder *b) WL_MUST; /* a SELECT without compounds, except its FROM */
/* Whether a term of ORDER BY or GROUP BY is a number, with any signs before it. */
bool wl_bind_term_number(const wl_expr *e, wl_i64 *out);

/* ---- select.c */
/* Opens a binder for a query inside that of parent. s is NULL if there is no SELECT for it. */
wl_status wl_bind_open(binder *parent, const wl_select *s, bool in_from, binder **out) WL_MUST;
/* Binds a whole SELECT as a separate query. *child is its binder. */
wl_status wl_bind_select(binder *parent, const wl_select *s, bool in_from, binder **child,
                         wl_query **out) WL_MUST;
/* The names of a SELECT's result columns. */
wl_status wl_bind_names(binder *b, const wl_select *s, const wl_query *q,
                        const char ***out) WL_MUST;

/* ---- subquery.c */
wl_status wl_bind_scalar(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
wl_status wl_bind_exists(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
wl_status wl_bind_in_select(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;

#endif
