/*
** The bound tree: names are resolved, affinities and collations settled, and shorthand (BETWEEN,
** USING, NATURAL, *) is written out. The binder makes it from the syntax tree. The planner rewrites
** it (plan/rewrite.h). The compiler reads what the rewrites leave.
**
** A query runs over sources: tables, or the rows that other queries give (derived).
**
** Invariants of every bound tree:
** 1. Everything lives in the arena of the statement.
** 2. BETWEEN and references to an alias share children, so the tree is a graph without cycles. The
**    compiler computes a shared node once.
** 3. A table is named, not pointed to. It is looked up again for every run, and table_id tells
**    whether its shape is still the one bound here.
** 4. There is one node for each column of a source that is read: col_nodes has it at the same place
**    as cols has the column, and its slot is that place.
**
** A query as the binder gives it says what the text says:
** 5. Sources are those of FROM, in its order, joined INNER, LEFT, RIGHT or FULL.
** 6. A subquery of an expression is a WL_B_SUBQUERY node. What it refers to in the query round it
**    is a WL_B_OUTER node of the subquery, one for each such expression, all listed in outers.
** 7. A compound is a query over one derived source, whose arms are the SELECTs that it has.
** 8. There is no WL_B_SUB, WL_B_INSUB or WL_B_FOUND, and no derived source has a number.
**
** A query that has been rewritten runs as it stands:
** 9. Sources are joined INNER, LEFT, SEMI, ANTI or MARK. Those that are INNER have no ON: it is in
**    WHERE.
** 10. There is no WL_B_SUBQUERY and no WL_B_OUTER: such subqueries are subs or sources.
** 11. The arms of a derived source are read one after the other, all their rows.
** 12. Derived sources are numbered from 0 to n_derived - 1 over the whole statement.
**
** wl_query_is_bound() and wl_query_is_rewritten() check what can be checked of these.
*/
#ifndef WL_BIND_H
#define WL_BIND_H

#include "sql/ast.h"
#include "sql/catalog.h"
#include "sql/join_how.h"
#include "value/value.h"

typedef enum wl_bkind {
  WL_B_CONST,   /* value */
  WL_B_PARAM,   /* index from 1 */
  WL_B_COLUMN,  /* column `index` of source `source`; -1 is the rowid */
  WL_B_AGG,     /* index into the query's aggregates */
  WL_B_ARITH,   /* op: + - * / % & | << >> || and, with b NULL, ~ */
  WL_B_COMPARE, /* op, cmp_affinity, cmp_coll; index 1: of IN, which applies REAL affinity */
  WL_B_IS,      /* a IS b: cmp_affinity, cmp_coll */
  WL_B_IN,      /* a IN (list): cmp_affinity, cmp_coll */
  WL_B_ISNULL,
  WL_B_AND,
  WL_B_OR,
  WL_B_NOT,
  WL_B_TRUTH,    /* a IS TRUE */
  WL_B_CASE,     /* list: when, then, …, else */
  WL_B_CAST,     /* to affinity */
  WL_B_CALL,     /* text, an SQL expression over ?1 …, which are the list; index is a wl_native */
  WL_B_OUTER,    /* a, an expression of the query round this one */
  WL_B_SUBQUERY, /* query, by `index`: a wl_subquery_kind; list: the left sides of IN */
  WL_B_SUB,      /* the value of the query's sub `index` */
  WL_B_FOUND,    /* whether source `source`, joined as MARK or LEFT, has a row here; op WL_OP_EQ: of
                 ** IN, with left side a; index 1: which refers outwards */
  WL_B_INSUB     /* a IN (the rows of the query's sub `index`): cmp_affinity, cmp_coll */
} wl_bkind;

/* What an expression wants of a subquery. */
typedef enum wl_subquery_kind {
  WL_SUBQUERY_VALUE, /* the first column of its first row */
  WL_SUBQUERY_EXISTS,
  WL_SUBQUERY_IN
} wl_subquery_kind;

/* Functions that have opcodes, for arguments that allow it. */
typedef enum wl_native {
  WL_NATIVE_NONE,
  WL_NATIVE_ABS,
  WL_NATIVE_ROUND,
  WL_NATIVE_SIGN,
  WL_NATIVE_TYPEOF,
  WL_NATIVE_LENGTH,
  WL_NATIVE_UPPER,
  WL_NATIVE_LOWER,
  WL_NATIVE_SUBSTR,
  WL_NATIVE_INSTR,
  WL_NATIVE_TRIM,
  WL_NATIVE_LTRIM,
  WL_NATIVE_RTRIM,
  WL_NATIVE_LIKE, /* (pattern, text [, escape]), as the functions have it */
  WL_NATIVE_GLOB
} wl_native;

typedef struct wl_bexpr {
  wl_bkind kind;
  wl_op op;
  char affinity;     /* of the expression as SQLite sees it: '@' is none */
  char cmp_affinity; /* applied to both sides of a comparison */
  wl_u8 coll;        /* of the expression */
  wl_u8 cmp_coll;    /* under which COMPARE and IS compare */
  bool has_coll;     /* the expression names a collation, by column or COLLATE */
  bool explicit_coll;
  int index;
  int source, slot; /* of a column */
  int id;           /* its number, for the compiler's notes */
  wl_val value;
  struct wl_bexpr *a, *b;
  struct wl_bexpr **list;
  int n_list;
  const char *text;       /* of a call */
  bool of_time;           /* a call that may ask for the current time */
  bool fallible;          /* a call that may raise an error */
  bool json;              /* a call with a JSON function in it */
  bool of_row;            /* a column of a subquery without FROM: of no row, it is NULL */
  wl_u8 gives;            /* types a call can give: 1 << WL_T_ */
  struct wl_query *query; /* of a subquery */
  bool beside_groups;     /* a subquery that is computed for groups, not for rows */
} wl_bexpr;

typedef enum wl_agg_fn {
  WL_FN_COUNT,
  WL_FN_SUM,
  WL_FN_TOTAL,
  WL_FN_AVG,
  WL_FN_MIN,
  WL_FN_MAX,
  WL_FN_CONCAT
} wl_agg_fn;
enum { WL_N_AGGREGATES = WL_FN_CONCAT + 1 };

/* An aggregate. FILTER is gone: its argument is NULL where the filter is not true. */
typedef struct wl_bagg {
  wl_agg_fn fn;
  wl_bexpr *arg;       /* NULL for count(*) */
  wl_bexpr *separator; /* of group_concat(), or NULL for a comma */
  bool distinct;
  bool filtered;
  char where; /* r: in the result list, h: in HAVING, o: in ORDER BY */
} wl_bagg;

typedef struct wl_border {
  wl_bexpr *expr;
  bool desc, nulls_last;
} wl_border;

struct wl_query;

/*
** Rows that queries give, one after the other. They are run once, however many sources read them.
**
** ops: of a compound as the binder gives it, the operator before each arm; NULL is UNION ALL
**   throughout.
** may_flatten: a subquery, view or WITH entry in FROM, which can become part of the query round it.
** shared: a WITH entry that is used several times.
** typed: a compound in FROM. SQLite may apply the affinity of the first arm to its columns, or not,
**   by its plan. So values must not depend on it. typed_steps: the same of what the operators
*before
**   the last one give.
** mixed: of a compound inside a query, the columns whose collation differs between arms. Which one
**   counts is not known, so they must have no text. NULL: there are none.
** rewritten: the arms are rewritten queries.
** id: its number in the statement; -1 before it has one.
*/
typedef struct wl_derived {
  struct wl_query **arms;
  int n_arms;
  int n_cols;
  wl_compound *ops;
  bool may_flatten, shared, typed, typed_steps, rewritten;
  bool *mixed;
  int id;
} wl_derived;

/*
** What a query reads from: a table (schema and table, as written), a derived source, or, where both
** are NULL, one row without columns.
*/
typedef struct wl_bsource {
  wl_join_how how; /* how it joins with those before; of the first: INNER */
  bool single; /* a scalar subquery, joined LEFT: with a second match, SQLite runs the statement */
  const char *schema, *table;
  wl_u64 table_id;
  wl_derived *derived;
  const char *name;   /* what it is called, for listings */
  wl_bexpr *on;       /* the condition of the join */
  wl_bexpr *inner_on; /* from the binder: the ON of an inner join of all sources up to this one; it
                      ** counts as part of WHERE */
} wl_bsource;

enum { WL_MAX_SOURCES = 64 };

/* A column that is read. -1 is the rowid. */
enum { WL_COLUMN_LIVE = -2 }; /* in a copy of a query, behind its own: which rows count */
typedef struct wl_bcol {
  int source, column;
} wl_bcol;

/* A query whose outcome is known before this one starts. */
typedef struct wl_bsub {
  struct wl_query *query;
  char kind; /* v: the value of its first row, e: whether there is one, l: the list of its rows */
} wl_bsub;

/* A table or view that a statement reads: bound anew when it is not the same any more. */
typedef struct wl_bdep {
  const char *schema, *name;
  wl_u64 id;
} wl_bdep;

typedef struct wl_query {
  const char *schema, *table; /* of a simple query: as written */
  wl_u64 table_id;
  bool combines; /* UNION and the like: it is not known which of equal rows SQLite gives */
  bool simple;   /* over one table and nothing else: SQLite's scan of it can be known */
  wl_bsource *sources;
  int n_sources;
  wl_bsub *subs;
  int n_subs;
  wl_bcol *cols; /* columns read, in the order of first use */
  wl_bexpr **col_nodes;
  int n_cols;
  wl_bexpr **outers; /* the WL_B_OUTER nodes, from the binder */
  int n_outers;
  bool no_from;  /* it has no FROM clause; of a compound: its last SELECT */
  int n_derived; /* of the whole statement, as are these: in its outermost query */
  wl_bdep *deps;
  int n_deps;
  wl_bexpr *where;
  wl_bexpr **results;
  int n_results;
  const char **calls; /* of the whole statement: functions of SQLite that we compute, which must
                      ** not be overridden */
  int n_calls;
  bool like_param; /* LIKE or GLOB with a parameter: SQLite plans anew once it is known */
  int n_call_cost; /* calls of SQLite itself that a row may need */
  bool aggregate;
  wl_bagg *aggs;
  int n_aggs;
  wl_bexpr **groups; /* GROUP BY */
  int n_groups;
  bool grouped; /* there is a GROUP BY */
  wl_bexpr *having;
  bool bare;   /* columns beside the groups are read, from one row of each group */
  int decides; /* the aggregate, a min() or max(), whose row that is, or -1: the first one */
  bool distinct;
  wl_border *order; /* ORDER BY */
  int n_order;
  wl_border *scan; /* keys behind those of ORDER BY, for rows that are equal in it: the order SQLite
                   ** scans in, where that is not the order of the rows here */
  int n_scan;
  bool scan_known;  /* rows equal in ORDER BY come in the order SQLite scans in */
  bool ties_hidden; /* rows equal in ORDER BY are equal in all they show, by its own rules */
  wl_bexpr *limit, *offset;
  bool computes_unread; /* SQLite's plan gathers the rows of a subquery, with columns that nobody
                        ** reads; of the outermost query */
  int ordered_by; /* 1 + the source in whose order SQLite gives the rows of this join, one of it a
                  ** row at most; 0: none is known. Set where LIMIT needs it (plan/row_order.c). */
  int n_exprs;
  int n_nodes_cost; /* operators a row passes, for the cost estimate */
} wl_query;

/* The sources that an expression needs, a bit each. */
wl_u64 wl_bexpr_sources(const wl_bexpr *e);

/* Whether two bound expressions are the same computation. */
bool wl_bexpr_same(const wl_bexpr *a, const wl_bexpr *b);

/* Whether the tree keeps the invariants above. For asserts. */
bool wl_query_is_bound(const wl_query *q);
bool wl_query_is_rewritten(const wl_query *q);

/* Binds a SELECT. WL_NOT_TAKEN with the reason when it is not (yet) one for us. */
wl_status wl_bind(wl_arena *arena, const char *sql, const wl_stmt *stmt, const wl_catalog *catalog,
                  wl_query **out, wl_error *err) WL_MUST;

#endif
