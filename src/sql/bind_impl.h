/*
** The inside of the binder, in the order in which a SELECT goes through it: select.c (a whole
** SELECT, compounds), from.c (sources and joins), nested.c (joins in parentheses), names.c (what
** names mean), clauses.c (results, WHERE, GROUP BY, ORDER BY), bind.c (operators), aggregate.c,
** func.c (functions), subquery.c (subqueries of expressions).
*/
#ifndef WL_BIND_IMPL_H
#define WL_BIND_IMPL_H

#include "sql/query_edit.h"

struct binder;

enum { WL_MAX_NESTING = 60 }; /* of queries and views in one another */

/*
** One item of FROM that names can mean: a table, a derived source with the names of its columns, or
** a join in parentheses.
*/
typedef struct wl_item {
  const char *name;      /* what qualifies its columns */
  const char *schema;    /* of a table without alias, its database; else NULL */
  const wl_table *table; /* NULL: not a table, and `names` has the names of the columns */
  const char **names;
  int n_cols;
  struct wl_nested *nested; /* NULL: not a join in parentheses */
  int source;
  wl_join_kind join;
  const char **using_names; /* of USING and NATURAL */
  int n_using;
  bool before_right; /* a RIGHT or FULL join follows */
} wl_item;

/* A column of a join in parentheses. */
typedef struct wl_nested_col {
  const char *schema, *table, *column; /* what can be written for it; of a column that USING gives
                                       ** the last alone */
  wl_item *member; /* the item inside, or NULL: what `column` means there, by USING */
  int k;           /* … its column */
  bool no_expand;  /* * leaves it out */
  int result;      /* 1 + its place among the results of the query that the join is; 0: not yet */
} wl_nested_col;

/* A join in parentheses; its item has the names of its columns, made unique. */
typedef struct wl_nested {
  wl_item *members;
  int n_members;
  wl_nested_col *cols;
  struct binder *inner; /* of the query it is; NULL: its sources are those of the query round it */
} wl_nested;

/* A WITH entry that names can mean. One that is used several times is bound once: then `derived`
** gives its rows, and `names` has the names of its columns. */
typedef struct wl_with_entry {
  const struct wl_with_entry *next;
  const wl_cte *cte;
  struct binder *home; /* where it was written */
  wl_derived *derived;
  const char **names;
  bool open; /* it is being bound: a mention inside is recursion */
  int n_uses;
} wl_with_entry;

/* What all binders of a statement share. */
typedef struct wl_binding {
  wl_bdep *deps;
  int n_deps;
  int n_unnamed; /* columns whose name nobody can know */
  int depth;     /* of queries within queries, views included */
} wl_binding;

/*
** The state of binding one SELECT.
**
** parent is the query round this one, whose names it may use; if in_from, this stands in the FROM
** of that one, and only the names round that one can be used.
*/
typedef struct binder {
  wl_edit edit; /* the query that is made */
  const wl_catalog *catalog;
  wl_binding *all;
  struct binder *parent;
  bool in_from;
  const char *schema;         /* inside a view: where its names without a schema belong */
  const char *sql;            /* the text that positions of expressions count in */
  const wl_with_entry *named; /* WITH entries that can be seen */
  const wl_select *select;
  wl_item *items;
  int n_items;
  const wl_result_col **result_cols; /* what each result was written as; NULL: part of a star */
  const char **result_names;         /* of a result that is part of a star */
  struct binder *first_arm;          /* of a compound: its leftmost core, whose names it has */
  wl_query *last_arm;     /* of a compound: its last core, whose affinities it has inside an
                          ** expression */
  bool *mixed;            /* of a compound: the columns of wl_derived.mixed, or NULL */
  bool affinities_differ; /* of a compound: those of a column are not the same in all arms */
  bool in_compound;       /* a core of a compound: ORDER BY and LIMIT are not its own */
  bool has_right;         /* there is a RIGHT or FULL join */
  bool in_agg;            /* in the argument of an aggregate */
  bool in_where;          /* in a clause that has no aggregates */
  bool after_groups;      /* in a clause that sees groups, not rows */
  bool aggregated;        /* the query has groups, going by its text */
  bool sees_alias;        /* in a clause where names can mean result columns */
  bool in_alias;          /* in a result column that was named so */
  char where;             /* which clause is being bound, as in wl_bagg */
} binder;

/* The table or view that a name means, by the catalog. */
static inline wl_status wl_bind_table(const binder *b, const char *schema, const char *name,
                                      wl_table **out, wl_error *err) {
  return b->catalog->find(b->catalog->of, schema, name, out, err);
}

/* ---- bind.c */
wl_status wl_bind_expr(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
wl_status wl_bind_collate(binder *b, const char *name, wl_bexpr *a, wl_bexpr **out) WL_MUST;

/* ---- aggregate.c */
/* A call of an aggregate or of a scalar function. */
wl_status wl_bind_call(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
bool wl_bind_aggregated(const wl_select *s); /* whether it has groups or aggregates */

/* ---- func.c */
/* A scalar function, or one of the operators -> and ->>. */
wl_status wl_bind_function(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
wl_status wl_bind_like(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
/* coalesce() of values that are bound already. */
wl_status wl_bind_coalesce(binder *b, wl_bexpr **args, int n, wl_bexpr **out) WL_MUST;
/* The column that USING makes of those it joins, where the first may be NULL. */
wl_status wl_bind_joined(binder *b, wl_bexpr **columns, int n, wl_bexpr **out) WL_MUST;

/* ---- names.c */
bool wl_bind_is_rowid(const char *name);
/* Column k of an item (n_cols: the rowid of a table). */
wl_status wl_bind_item(binder *b, wl_item *item, int k, wl_bexpr **out) WL_MUST;
int wl_bind_item_find(const wl_item *item, const char *name); /* or -1 */
bool wl_bind_item_hides(const wl_item *item, int k);          /* not part of * */
const char *wl_bind_item_name(const wl_item *item, int k);
bool wl_bind_item_joins(const wl_item *item, const char *name); /* by USING or NATURAL */
/* What a name means among these items, which are FROM or a part of it; NULL if nothing. */
wl_status wl_bind_among(binder *b, wl_item *items, int n_items, const wl_expr *e,
                        wl_bexpr **out) WL_MUST;
/* The expression a name means; *out is NULL if it means none. */
wl_status wl_bind_name(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;

/* ---- nested.c */
/* Makes an item the join in parentheses of these members. */
wl_status wl_nested_open(binder *b, wl_item *members, int n_members, binder *inner,
                         wl_item *item) WL_MUST;
wl_status wl_nested_column(binder *b, wl_item *item, int k, wl_bexpr **out) WL_MUST;
bool wl_nested_means(const wl_nested_col *c, const wl_expr *e); /* whether a name can mean it */
/* Makes names[k] another name than those before it, as SQLite does. *clash: one that it would have
** been is by_using (which may be NULL). */
wl_status wl_bind_unique(binder *b, const char **names, int k, const bool *by_using,
                         bool *clash) WL_MUST;

/* ---- from.c */
wl_status wl_bind_from(binder *b, const wl_from_item *from) WL_MUST;
wl_status wl_bind_ctes(binder *b, const wl_cte *with) WL_MUST;
/* Notes a table or view that the statement depends on. */
wl_status wl_bind_depends(binder *b, const char *schema, const char *name, wl_u64 id) WL_MUST;

/* ---- clauses.c */
wl_status wl_bind_core(binder *b) WL_MUST; /* a SELECT without compounds, all but its FROM */
/* Whether a term of ORDER BY or GROUP BY is a number, signs and all. */
bool wl_bind_term_number(const wl_expr *e, wl_i64 *out);

/* ---- select.c */
/* A binder for a query inside that of parent. s: NULL if it is not a SELECT of its own. */
wl_status wl_bind_open(binder *parent, const wl_select *s, bool in_from, binder **out) WL_MUST;
/* A whole SELECT, as a query of its own; *child: its binder */
wl_status wl_bind_select(binder *parent, const wl_select *s, bool in_from, binder **child,
                         wl_query **out) WL_MUST;
/* The names of its result columns. */
wl_status wl_bind_names(binder *b, const wl_select *s, const wl_query *q,
                        const char ***out) WL_MUST;

/* ---- subquery.c */
wl_status wl_bind_scalar(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
wl_status wl_bind_exists(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
wl_status wl_bind_in_select(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;

#endif
