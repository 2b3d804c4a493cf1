/*
** The bound tree: names are resolved, affinities and collations are decided, and shorthand
** (BETWEEN, USING, NATURAL, *) is written out. The binder makes it from the syntax tree. The
** planner rewrites it (plan/rewrite/rewrite.h). The compiler reads the result.
**
** A query reads sources: tables, or the rows of other queries (derived sources).
**
** Invariants of every bound tree:
** 1. Everything lives in the arena of the statement.
** 2. BETWEEN and references to an alias share children, so the tree is a graph without cycles. The
**    compiler computes a shared node once.
** 3. A table is named, not pointed to. It is looked up again for every run, and table_id tells
**    whether it still has the columns that were bound here.
** 4. Each column that is read from a source has one node. col_nodes[k] is the node of cols[k], and
**    its slot is k.
**
** A query from the binder follows the text:
** 5. Sources are those of FROM, in its order, joined INNER, LEFT, RIGHT or FULL.
** 6. A subquery in an expression is a WL_B_SUBQUERY node. Each expression of the outer query that
**    it uses is one WL_B_OUTER node of the subquery. All of them are listed in outers.
** 7. A compound is a query over one derived source, whose arms are the compound's SELECTs.
** 8. There is no WL_B_SUB, WL_B_INSUB or WL_B_FOUND, and derived sources have no id yet.
**
** A rewritten query can be compiled directly:
** 9. An INNER source has an ON only if a RIGHT or FULL join comes after it. Otherwise WHERE has its
**    condition. Source 1 is not joined RIGHT. If there is a RIGHT or FULL join, sources that are
**    joined SEMI, ANTI or MARK come after all sources of FROM.
** 10. There is no WL_B_SUBQUERY and no WL_B_OUTER: such subqueries have become subs or sources.
** 11. The arms of a derived source are read one after the other, with all their rows.
** 12. Derived sources have ids from 0 to n_derived - 1, unique in the whole statement.
**
** wl_query_is_bound() and wl_query_is_rewritten() check those that can be checked.
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
  WL_B_COMPARE, /* op, cmp_affinity, cmp_coll; index 1: made from IN, which applies REAL affinity */
  WL_B_IS,      /* a IS b: cmp_affinity, cmp_coll */
  WL_B_IN,      /* a IN (list): cmp_affinity, cmp_coll */
  WL_B_ISNULL,
  WL_B_AND,
  WL_B_OR,
  WL_B_NOT,
  WL_B_TRUTH,    /* a IS TRUE */
  WL_B_CASE,     /* list: when, then, …, else */
  WL_B_CAST,     /* CAST to affinity; with op WL_OP_POS, unary plus or COLLATE: the value of a,
                 ** unchanged, with this node's affinity and collation */
  WL_B_CALL,     /* text: an SQL expression in which ?1, ?2, … stand for `list`; index: a
                 ** wl_native */
  WL_B_OUTER,    /* a: an expression of the outer query */
  WL_B_SUBQUERY, /* query; index: a wl_subquery_kind; list: the left side of IN */
  WL_B_SUB,      /* the value of the query's sub `index` */
  WL_B_FOUND,    /* whether `source`, joined as MARK or LEFT, has a matching row; op is WL_OP_EQ for
                 ** an IN with left side a; index 1: that IN is correlated */
  WL_B_INSUB     /* a IN (the rows of the query's sub `index`): cmp_affinity, cmp_coll */
} wl_bkind;

/* What an expression needs from a subquery. */
typedef enum wl_subquery_kind {
  WL_SUBQUERY_VALUE, /* the first column of its first row */
  WL_SUBQUERY_EXISTS,
  WL_SUBQUERY_IN
} wl_subquery_kind;

/* Functions that have opcodes. Whether the opcode is used depends on the arguments. */
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
  WL_NATIVE_LIKE, /* (pattern, text [, escape]), in the order of the function's arguments */
  WL_NATIVE_GLOB,
  WL_NATIVE_DATE, /* from here on in the order of wl_date_function */
  WL_NATIVE_TIME,
  WL_NATIVE_DATETIME,
  WL_NATIVE_JULIANDAY,
  WL_NATIVE_UNIXEPOCH,
  WL_NATIVE_STRFTIME
} wl_native;

typedef struct wl_bexpr {
  wl_bkind kind;
  wl_op op;
  char affinity;     /* the expression's affinity, as SQLite sees it; '@' is none */
  char cmp_affinity; /* applied to both sides of a comparison */
  char arm_affinity; /* for a comparison with a column of a compound: SQLite may move it into the
                     ** arms. 0: they give it the same affinity. Otherwise 'B' or 'C', the strongest
                     ** that one of them gives it. */
  wl_u8 coll;        /* the expression's collation */
  wl_u8 cmp_coll;    /* the collation that COMPARE and IS use */
  bool has_coll;     /* the collation comes from a column or COLLATE, not from the default */
  bool explicit_coll;
  int index;
  int source, slot; /* for WL_B_COLUMN */
  int id;           /* its number in the statement; the compiler uses it as an index */
  wl_val value;
  struct wl_bexpr *a, *b;
  struct wl_bexpr **list;
  int n_list;
  const char *text;       /* for WL_B_CALL: SQL text */
  bool of_time;           /* a call that may ask for the current time */
  bool fallible;          /* a call that may raise an error */
  bool json;              /* a call that contains a JSON function */
  bool of_row;            /* a column of a subquery without FROM: NULL in a query with aggregates
                          ** over no rows */
  wl_u8 gives;            /* the types that a call can return: bits 1 << WL_T_... */
  struct wl_query *query; /* for WL_B_SUBQUERY */
  bool beside_groups;     /* a subquery that is computed once for each group, not for each row */
} wl_bexpr;

/* The collation used to compare an expression's values. */
static inline wl_u8 wl_bexpr_coll(const wl_bexpr *e) {
  return e->has_coll ? e->coll : WL_COLL_BINARY;
}

typedef enum wl_agg_fn {
#define WL_AGGREGATE(name, sql, least, most, marks, empty) WL_FN_##name,
#include "value/aggregates.def"
#undef WL_AGGREGATE
} wl_agg_fn;
enum {
  WL_N_AGGREGATES = 0
#define WL_AGGREGATE(name, sql, least, most, marks, empty) +1
#include "value/aggregates.def"
#undef WL_AGGREGATE
};

/* Whether it puts texts together in the order of rows: group_concat() and the JSON aggregates. */
static inline bool wl_agg_joins_text(wl_agg_fn fn) {
  return fn == WL_FN_CONCAT || fn == WL_FN_JSON_ARRAY || fn == WL_FN_JSON_OBJECT;
}

/* An aggregate. FILTER has become part of arg: arg is NULL where the filter is not true. */
typedef struct wl_bagg {
  wl_agg_fn fn;
  wl_bexpr *arg;       /* NULL for count(*) */
  wl_bexpr *separator; /* for group_concat(); NULL is a comma */
  bool distinct;
  bool filtered;
  char where; /* the clause it is in: 'r' result list, 'h' HAVING, 'o' ORDER BY */
} wl_bagg;

typedef struct wl_border {
  wl_bexpr *expr;
  bool desc, nulls_last;
} wl_border;

struct wl_query;

/*
** Rows that come from queries (arms), one arm after the other. The arms run once, however many
** sources read their rows.
**
** ops: for a compound from the binder, the operator before each arm. NULL: all are UNION ALL.
** may_flatten: a subquery, view or WITH entry in FROM that can become part of the outer query.
** shared: a WITH entry that is used several times.
** typed: a compound in FROM. Depending on its plan, SQLite may apply the affinity of the first arm
** to the columns. So no value may depend on whether it does.
** typed_steps: the same for the rows that the operators before the last one return.
** mixed: for a compound inside a query, the columns whose collation differs between arms. SQLite's
** choice is not known, so these columns must not contain text. NULL: there are none.
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
** What a query reads from: a table (schema and table as written), a derived source, or, if both are
** NULL, one row without columns.
*/
typedef struct wl_bsource {
  wl_join_how how; /* how it joins with the sources before it; INNER for the first */
  bool single;  /* a scalar subquery, joined LEFT: with a second match, SQLite runs the statement */
  bool reduces; /* joined SEMI, only to drop rows early that no one needs. The plan may leave it
                ** out. */
  const char *schema, *table;
  wl_u64 table_id;
  wl_derived *derived;
  const char *name;   /* its name in EXPLAIN */
  wl_bexpr *on;       /* the condition of the join */
  wl_bexpr *inner_on; /* from the binder: the ON of the inner join whose last source this is. It
                      ** counts as part of WHERE. */
} wl_bsource;

enum { WL_MAX_SOURCES = 64 };

/* A column that is read. -1 is the rowid. */
enum { WL_COLUMN_LIVE = -2 }; /* an extra column in copies of a query: whether the row counts */
typedef struct wl_bcol {
  int source, column;
} wl_bcol;

/* A query that runs before this one, because this one uses its result. */
typedef struct wl_bsub {
  struct wl_query *query;
  char kind; /* 'v': the value in its first row, 'e': whether it has a row, 'l': the list of its
             ** rows */
} wl_bsub;

/* A table or view that a statement reads. If it has changed, the statement is bound again. */
typedef struct wl_bdep {
  const char *schema, *name;
  wl_u64 id;
} wl_bdep;

typedef struct wl_query {
  const char *schema, *table; /* of the first source; table is NULL if it is no table */
  bool combines; /* UNION and the like: it is not known which of several equal rows SQLite
                 ** returns */
  wl_bsource *sources;
  int n_sources;
  wl_bsub *subs;
  int n_subs;
  wl_bcol *cols; /* columns read, in the order of first use */
  wl_bexpr **col_nodes;
  int n_cols;
  wl_bexpr **outers; /* the WL_B_OUTER nodes, from the binder */
  int n_outers;
  bool no_from;  /* it has no FROM clause; for a compound: its last SELECT has none */
  int n_derived; /* set in the outermost query, for the whole statement; so are deps and calls */
  wl_bdep *deps;
  int n_deps;
  wl_bexpr *where;
  wl_bexpr **results;
  int n_results;
  const char **calls; /* SQLite functions that the statement computes natively; the application must
                      ** not override them */
  int n_calls;
  bool like_param; /* LIKE or GLOB with a parameter: SQLite plans again once its value is known */
  int n_call_cost; /* how many calls into SQLite a row may need */
  bool aggregate;
  wl_bagg *aggs;
  int n_aggs;
  wl_bexpr **groups; /* GROUP BY */
  int n_groups;
  bool grouped; /* there is a GROUP BY */
  wl_bexpr *having;
  bool bare;   /* bare columns (neither aggregated nor in GROUP BY) are read, from one row of each
               ** group */
  int decides; /* the min() or max() aggregate that decides which row; -1: the first row */
  bool distinct;
  wl_border *order; /* ORDER BY */
  int n_order;
  wl_border *scan; /* more keys after ORDER BY, for rows that are equal in it: SQLite's scan order,
                   ** if it differs from the order of the rows here */
  int n_scan;
  bool scan_known;  /* rows that are equal in ORDER BY come in SQLite's scan order */
  bool ties_hidden; /* rows that are equal in ORDER BY also show equal results */
  wl_bexpr *limit, *offset;
  bool computes_unread; /* SQLite's plan materializes a subquery with columns that are never read;
                        ** set in the outermost query */
  int ordered_by; /* 1 + the source whose order gives SQLite's order of the join rows, if each of
                  ** its rows occurs at most once; 0: unknown. Set where LIMIT needs it
                  ** (plan/row_order.c). */
  int n_exprs;
  int n_nodes_cost; /* operators to compute for each row, for the cost estimate */
} wl_query;

/* The sources that an expression reads, as a bit mask. */
wl_u64 wl_bexpr_sources(const wl_bexpr *e);

/* Whether two bound expressions are the same computation. */
bool wl_bexpr_same(const wl_bexpr *a, const wl_bexpr *b);

/* Whether the tree satisfies the invariants above. For asserts. */
bool wl_query_is_bound(const wl_query *q);
bool wl_query_is_rewritten(const wl_query *q);

/* Whether a built-in function may ask for the current time, or for the time zone. */
bool wl_function_asks_time(const char *name);

/* Binds a SELECT. Returns WL_NOT_TAKEN with the reason if warplite cannot run it natively. */
wl_status wl_bind(wl_arena *arena, const char *sql, const wl_stmt *stmt, const wl_catalog *catalog,
                  wl_query **out, wl_error *err) WL_MUST;

#endif
