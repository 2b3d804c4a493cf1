/*
** The bound tree: names resolved, affinities and collations settled, sugar gone. Made from
** the syntax tree; what the planner and the compiler read.
**
** A query runs over sources: tables, or rows that other queries give (derived). Subqueries, views
** and CTEs have become sources of the query they stand in, or values that are known before it
** starts; compounds are derived sources of several arms; RIGHT and FULL joins are LEFT ones.
**
** Invariants:
** 1. Everything lives in the arena of the statement.
** 2. BETWEEN and alias references share children, so the tree is a graph
**    without cycles; the compiler computes a shared node once.
** 3. A table is named, not pointed to: it is looked up again for every run, and
**    table_id tells whether its shape is still the one bound here.
** 4. There is one node for each column of a source that is read; its slot is its place in cols.
** 5. A finished query has no WL_B_OUTER: what refers outwards was turned into a join.
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
  WL_B_COLUMN,  /* index; -1 is the rowid */
  WL_B_AGG,     /* index into the query's aggregates */
  WL_B_ARITH,   /* op: + - * / % & | << >> || and, with b NULL, ~ */
  WL_B_COMPARE, /* op, cmp_affinity, cmp_coll; index 1: of IN, which applies REAL affinity */
  WL_B_IS,      /* a IS b: cmp_affinity, cmp_coll */
  WL_B_IN,      /* a IN (list): cmp_affinity, cmp_coll */
  WL_B_ISNULL,
  WL_B_AND,
  WL_B_OR,
  WL_B_NOT,
  WL_B_TRUTH, /* a IS TRUE */
  WL_B_CASE,  /* list: when, then, …, else */
  WL_B_CAST,  /* to affinity */
  WL_B_CALL,  /* text, an SQL expression over ?1 …, which are the list; index is a wl_native */
  WL_B_OUTER, /* a, an expression of the query round this one; while binding */
  WL_B_SUB,   /* the value of the query's sub `index`; op: WL_OP_NONE, or EXISTS as WL_OP_NOT's */
  WL_B_FOUND, /* whether source `source`, joined as MARK or LEFT, has a row here */
  WL_B_INSUB  /* a IN (the rows of the query's sub `index`): cmp_affinity, cmp_coll */
} wl_bkind;

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
  const char *text; /* of a call */
  bool of_time;     /* a call that may ask for the current time */
  bool fallible;    /* a call that may raise an error */
  bool json;        /* a call with a JSON function in it */
  bool of_row;      /* a column of a subquery without FROM: of no row, it is NULL */
  wl_u8 gives;      /* types a call can give: 1 << WL_T_ */
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

/* Rows that queries give, one after the other; run once, however many sources they are. */
typedef struct wl_derived {
  struct wl_query **arms;
  int n_arms;
  int n_cols;
  bool typed;  /* a compound in FROM, to whose columns SQLite may apply the affinity of the first
               ** arm, or not, by its plan: values must not depend on it */
  bool *mixed; /* of a compound inside a query: columns whose collation differs between arms, so
                ** that which one counts is SQLite's affair: they must have no text; or NULL */
  int id;      /* its number in the statement */
} wl_derived;

/* What a query reads from. */
typedef struct wl_bsource {
  wl_join_how how;    /* how it joins with those before; of the first: INNER */
  bool single;        /* a scalar subquery: LEFT, and a second match is SQLite's affair */
  const char *schema; /* a table, as written … */
  const char *table;
  wl_u64 table_id;
  wl_derived *derived; /* … or NULL and this; neither: one row without columns */
  const char *name;    /* what it is called, for listings */
  wl_bexpr *on;        /* of INNER it is in the WHERE */
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
  bool combines; /* UNION and the like: which of equal rows stands for them is SQLite's affair */
  bool simple;   /* over one table and nothing else: SQLite's scan of it can be known */
  wl_bsource *sources;
  int n_sources;
  wl_bsub *subs;
  int n_subs;
  wl_bcol *cols; /* columns read, in the order of first use */
  int n_cols;
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
  wl_border *scan; /* what decides between rows equal in ORDER BY: the order SQLite scans in, … */
  int n_scan;      /* … where that is not the order the rows are in anyway */
  bool scan_known; /* equal rows come in the order of the scan: by these keys, or anyway */
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

/* Binds a SELECT. WL_NOT_TAKEN with the reason when it is not (yet) one for us. */
wl_status wl_bind(wl_arena *arena, const char *sql, const wl_stmt *stmt, const wl_catalog *catalog,
                  wl_query **out, wl_error *err) WL_MUST;

#endif
