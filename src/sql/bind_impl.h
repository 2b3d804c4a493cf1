/*
** The inside of the binder, in the order in which a SELECT goes through it: select.c (a whole
** SELECT, compounds), from.c (sources and joins), nested.c (joins in parentheses), names.c (what
** names mean), bind.c (operators and clauses), func.c (functions), subquery.c (subqueries in
** expressions), implied_terms.c (what ORs imply), rewrite_right_join.c (RIGHT and FULL joins),
** copy_expr.c (expressions moved between queries).
*/
#ifndef WL_BIND_IMPL_H
#define WL_BIND_IMPL_H

#include "sql/bind.h"

struct binder;

enum { WL_MAX_NESTING = 60 }; /* of queries and views in one another */

/* One item of FROM that names can mean: a table, a derived source, or one that was taken into
** the query, so that its columns are expressions. */
typedef struct wl_item {
  const char *name;      /* what qualifies its columns */
  const char *schema;    /* of a table without alias, its database; else NULL */
  const wl_table *table; /* a table, or … */
  const char **names;    /* … the names of the columns */
  int n_cols;
  wl_bexpr **exprs; /* what they are, where it was taken in; NULL: columns of the source … */
  struct wl_nested *nested; /* … or of a join in parentheses */
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
} wl_nested_col;

/* A join in parentheses; its item has the names of its columns, made unique. */
typedef struct wl_nested {
  wl_item *members;
  int n_members;
  wl_nested_col *cols;
  struct binder *group; /* of the query it is, or NULL: it is part of the query round it */
  bool settled;         /* its columns are that query's results, all and in order */
} wl_nested;

/* A WITH entry that names can mean. */
typedef struct wl_named {
  const struct wl_named *next;
  const wl_cte *cte;
  struct binder *home; /* where it was written */
  wl_derived *derived; /* once it has been bound to be shared … */
  const char **names;  /* … with these columns */
  wl_query *query;
  bool open; /* it is being bound: a mention inside is recursion */
  int n_uses;
} wl_named;

/* A subquery beside groups that refers to the query: its value is joined to the rows, and is
** the same for a whole group if all it refers to is; then it becomes one more group key. */
typedef struct wl_beside {
  wl_bexpr *value;
  wl_bexpr **outers;
  int n;
} wl_beside;

/* What all binders of a statement share. */
typedef struct wl_binding {
  wl_arena *arena;
  const wl_catalog *catalog;
  const char **calls; /* functions of SQLite that we compute */
  int n_calls, size_calls;
  wl_bdep *deps;
  int n_deps, size_deps;
  int n_derived;
  int n_unnamed; /* columns whose name nobody can know */
  int depth;     /* of queries within queries, views included */
  wl_error *err;
} wl_binding;

typedef struct binder {
  wl_arena *arena;
  const wl_catalog *catalog;
  wl_binding *all;
  struct binder *parent; /* the query round this one, whose names it may use … */
  bool in_from;          /* … only those round that one: this stands in its FROM */
  const char *schema;    /* inside a view: where its names without a schema belong */
  const char *sql;       /* the text that positions of expressions count in */
  const wl_named *named; /* WITH entries that can be seen */
  wl_query *q;
  const wl_select *select;
  wl_item *items;
  int n_items, size_sources;
  int n_from;       /* sources that FROM gave; those behind come of subqueries */
  wl_bexpr **nodes; /* the node of each of q->cols */
  int size_cols, size_aggs, size_subs, size_results;
  const wl_result_col **result_cols; /* what each result was written as; NULL: part of a star … */
  const char **result_names;         /* … of this name */
  wl_bexpr **outers;                 /* the WL_B_OUTER nodes */
  int n_outers, size_outers;
  struct binder *first_arm; /* of a compound: its leftmost core, whose names it has; … */
  wl_query *last_arm;       /* … its last one, whose affinities it has inside an expression */
  bool *mixed;              /* … the columns of wl_derived.mixed, or NULL */
  wl_beside *beside;        /* subqueries beside groups */
  int n_beside, size_beside;
  bool in_compound; /* a core of one: ORDER BY and LIMIT are not its own */
  bool right;       /* there is a RIGHT or FULL join */
  bool of_row;      /* there are expressions of that kind */
  bool shared_with; /* it reads from a WITH entry that is used several times */
  bool affinities;  /* of a compound: a column's arms differ in affinity */
  bool in_agg;
  bool in_where;
  bool after_groups; /* in a clause that sees groups, not rows */
  bool aggregated;   /* the query has groups, going by its text */
  bool sees_alias;   /* where SQLite lets names mean result columns: not in these, not in LIMIT */
  bool in_alias;     /* in a result column that was named so */
  char where;        /* which clause is being bound, as in wl_bagg */
  wl_error *err;
} binder;

wl_bexpr *wl_bind_node(binder *b, wl_bkind kind); /* NULL: out of memory */
wl_status wl_bind_expr(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
wl_status wl_bind_constant(binder *b, wl_val v, wl_bexpr **out) WL_MUST;
wl_status wl_bind_compare(binder *b, wl_bkind kind, wl_op op, wl_bexpr *l, wl_bexpr *r,
                          wl_bexpr **out) WL_MUST;
/* The affinity and the collation that a comparison of two expressions goes by. */
char wl_bind_compare_affinity(const wl_bexpr *a, const wl_bexpr *b);
wl_u8 wl_bind_compare_coll(const wl_bexpr *a, const wl_bexpr *b);
wl_status wl_bind_binary(binder *b, wl_bkind kind, wl_op op, wl_bexpr *l, wl_bexpr *r,
                         wl_bexpr **out) WL_MUST;
wl_status wl_bind_negate(binder *b, bool negated, wl_bexpr **x) WL_MUST;
wl_status wl_bind_and(binder *b, wl_bexpr **to, wl_bexpr *more) WL_MUST; /* *to = *to AND more */
void wl_bind_collation(wl_bexpr *x); /* an explicit COLLATE of an operand goes up */
/* Room for one more in an array of n. */
wl_status wl_bind_room(binder *b, void **array, int n, int *size, size_t width) WL_MUST;
#define WL_BIND_ROOM(b, array, n, size)                                                            \
  wl_bind_room(b, (void **)&(array), n, &(size), sizeof *(array))

/* Notes that a function of SQLite is computed by us, so that it must not be overridden. */
wl_status wl_bind_uses(binder *b, const char *name) WL_MUST;
/* A scalar function, or one of the operators -> and ->>. */
wl_status wl_bind_function(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
wl_status wl_bind_like(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
/* coalesce() of values that are bound already. */
wl_status wl_bind_coalesce(binder *b, wl_bexpr **args, int n, wl_bexpr **out) WL_MUST;
/* The column that USING makes of those it joins, where the first may be NULL. */
wl_status wl_bind_joined(binder *b, wl_bexpr **columns, int n, wl_bexpr **out) WL_MUST;

/* ---- names.c */
bool wl_bind_is_rowid(const char *name);
/* The node of a column of a source, with these properties where it is new. */
wl_status wl_bind_column(binder *b, int source, int column, char affinity, wl_u8 coll,
                         wl_bexpr **out) WL_MUST;
/* Column k of an item (n_cols: the rowid of a table). */
wl_status wl_bind_item(binder *b, wl_item *item, int k, wl_bexpr **out) WL_MUST;
wl_status wl_bind_result(binder *b, wl_bexpr *e) WL_MUST;     /* one more result of the query */
int wl_bind_item_find(const wl_item *item, const char *name); /* or -1 */
bool wl_bind_item_hides(const wl_item *item, int k);          /* not part of * */
const char *wl_bind_item_name(const wl_item *item, int k);
bool wl_bind_item_joins(const wl_item *item, const char *name); /* by USING or NATURAL */
/* What a name means among these items, which are FROM or a part of it; NULL if nothing. */
wl_status wl_bind_among(binder *b, wl_item *items, int n_items, const wl_expr *e,
                        wl_bexpr **out) WL_MUST;
/* The expression a name means; *out is NULL if it means none. */
wl_status wl_bind_name(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
/* An expression as SQLite sees it through a column of a subquery or view. */
wl_status wl_bind_as_column(binder *b, wl_bexpr *e, wl_bexpr **out) WL_MUST;

/* ---- nested.c */
/* Makes an item the join in parentheses of these members. */
wl_status wl_nested_open(binder *b, wl_item *members, int n_members, binder *group,
                         wl_item *item) WL_MUST;
/* Makes all its columns results of the query that it is. */
wl_status wl_nested_settle(wl_nested *n, int n_cols) WL_MUST;
wl_status wl_nested_column(binder *b, wl_item *item, int k, wl_bexpr **out) WL_MUST;
bool wl_nested_means(const wl_nested_col *c, const wl_expr *e); /* whether a name can mean it */
/* Makes names[k] another name than those before it, as SQLite does. *clash: one that it would have
** been is by_using (which may be NULL). */
wl_status wl_bind_unique(binder *b, const char **names, int k, const bool *by_using,
                         bool *clash) WL_MUST;

/* ---- from.c */
wl_status wl_bind_from(binder *b, const wl_from_item *from) WL_MUST;
wl_status wl_bind_ctes(binder *b, const wl_cte *with) WL_MUST;
wl_status wl_bind_source(binder *b, wl_bsource s, int *out) WL_MUST; /* one more source */
/* The table or view that a name means, by the catalog. */
static inline wl_status wl_bind_table(const binder *b, const char *schema, const char *name,
                                      wl_table **out, wl_error *err) {
  return b->catalog->find(b->catalog->of, schema, name, out, err);
}
/* Notes a table or view that the statement depends on. */
wl_status wl_bind_depends(binder *b, const char *schema, const char *name, wl_u64 id) WL_MUST;

/* ---- implied_terms.c: adds to WHERE what its ORs imply */
wl_status wl_bind_implied(binder *b) WL_MUST;

/* ---- right.c: makes RIGHT and FULL joins LEFT ones */
wl_status wl_bind_right(binder *b) WL_MUST;
wl_status wl_bind_derived(binder *b, wl_query *q, wl_derived **out) WL_MUST;

/* ---- bind.c */
wl_status wl_bind_core(binder *b) WL_MUST; /* a SELECT without compounds, all but its FROM */
wl_status wl_bind_collate(binder *b, const char *name, wl_bexpr *a, wl_bexpr **out) WL_MUST;
bool wl_bind_term_number(const wl_expr *e, wl_i64 *out);

/* ---- select.c: a whole SELECT, as a query of its own; *child: its binder */
wl_status wl_bind_select(binder *parent, const wl_select *s, bool in_from, binder **child,
                         wl_query **out) WL_MUST;
/* The names of its result columns. */
wl_status wl_bind_names(binder *b, const wl_select *s, const wl_query *q,
                        const char ***out) WL_MUST;

/* ---- subquery.c */
wl_status wl_bind_scalar(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
wl_status wl_bind_exists(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
wl_status wl_bind_in_select(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;
/* A conjunct of WHERE; EXISTS and IN drop rows there, and *out is NULL. */
wl_status wl_bind_conjunct(binder *b, const wl_expr *e, wl_bexpr **out) WL_MUST;

/* ---- copy_expr.c: expressions of one query copied into another */
typedef struct wl_graft {
  binder *to;
  const wl_query *from;
  int source_base; /* its sources are those from here on … */
  int sub_base;
  wl_bexpr **map; /* by id: what was copied already */
  /* … unless this knows better: *out stays NULL for the usual */
  wl_status (*node)(struct wl_graft *g, const wl_bexpr *e, wl_bexpr **out);
  void *arg;
} wl_graft;
wl_status wl_graft_open(wl_graft *g, binder *to, const wl_query *from) WL_MUST;
wl_status wl_graft_expr(wl_graft *g, const wl_bexpr *e, wl_bexpr **out) WL_MUST; /* NULL: NULL */
/* The subs, and the functions that must be SQLite's own, of a query that is taken in. */
wl_status wl_graft_query(wl_graft *g) WL_MUST;

#endif
