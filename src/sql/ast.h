/*
** The syntax tree of a SELECT statement, as the parser leaves it. Names are not resolved and
** nothing has a type yet. It covers SQLite's whole SELECT syntax, even the parts that only SQLite
** runs.
**
** Invariants:
** 1. Every node lives in the arena given to wl_parse and points only into it.
** 2. Lists are singly linked through next, in the order of the text.
** 3. Names are NUL-terminated and unquoted, with doubled quotes made single. `quoted` of a name
**    expression says which quote it had, because "x" may turn out to be a string.
*/
#ifndef WL_AST_H
#define WL_AST_H

#include "base/arena.h"
#include "base/status.h"

/* SQLite's own limits: the deepest expression and the longest compound. */
enum { WL_MAX_DEPTH = 1000, WL_MAX_COMPOUND = 500 };

typedef struct wl_expr wl_expr;
typedef struct wl_select wl_select;

typedef enum wl_expr_kind {
  WL_E_NULL,
  WL_E_INT,     /* i; a literal too large for 64 bits is WL_E_REAL */
  WL_E_REAL,    /* text as written (text, n_text): SQLite converts it */
  WL_E_TEXT,    /* text, n_text: contents of the '…' literal */
  WL_E_BLOB,    /* text, n_text: the bytes of x'…' */
  WL_E_NOW,     /* CURRENT_TIME, CURRENT_DATE, CURRENT_TIMESTAMP: name, upper case */
  WL_E_PARAM,   /* i: parameter index from 1, by SQLite's numbering rule */
  WL_E_NAME,    /* [schema.][table.]name; quoted is name's: 0, '"', '[', '`' or '\'' */
  WL_E_UNARY,   /* op, a */
  WL_E_BINARY,  /* op, a, b */
  WL_E_IS,      /* a IS [NOT] b, negated; IS [NOT] DISTINCT FROM becomes its opposite */
  WL_E_ISNULL,  /* a ISNULL | NOTNULL | NOT NULL, negated */
  WL_E_BETWEEN, /* a [NOT] BETWEEN b AND c, negated */
  WL_E_LIKE,    /* a [NOT] LIKE|GLOB|REGEXP|MATCH b [ESCAPE c]; name is the operator, lower case */
  WL_E_IN,      /* a [NOT] IN (list) or (select) or table (name [schema.], list = arguments) */
  WL_E_CASE,    /* CASE [a] list = when, then, when, then … [ELSE b] END */
  WL_E_CAST,    /* CAST(a AS name); name is the type as written, one space between words */
  WL_E_COLLATE, /* a COLLATE name */
  WL_E_CALL,    /* name(list) [FILTER (WHERE a)] [OVER window]; distinct, star */
  WL_E_VECTOR,  /* (list), two or more */
  WL_E_SELECT,  /* (select) as a value */
  WL_E_EXISTS,  /* EXISTS (select) */
  WL_E_RAISE    /* RAISE(name[, text]); name is the action, lower case */
} wl_expr_kind;

typedef enum wl_op {
  WL_OP_NONE,
  /* unary */
  WL_OP_NEG,
  WL_OP_POS,
  WL_OP_NOT,
  WL_OP_BITNOT,
  /* binary */
  WL_OP_OR,
  WL_OP_AND,
  WL_OP_EQ,
  WL_OP_NE,
  WL_OP_LT,
  WL_OP_LE,
  WL_OP_GT,
  WL_OP_GE,
  WL_OP_BITAND,
  WL_OP_BITOR,
  WL_OP_SHL,
  WL_OP_SHR,
  WL_OP_ADD,
  WL_OP_SUB,
  WL_OP_MUL,
  WL_OP_DIV,
  WL_OP_REM,
  WL_OP_CONCAT,
  WL_OP_ARROW, /* -> */
  WL_OP_ARROW2 /* ->> */
} wl_op;

typedef struct wl_expr_list {
  struct wl_expr_list *next;
  wl_expr *expr;
} wl_expr_list;

int wl_list_length(const wl_expr_list *l);

typedef struct wl_order_term {
  struct wl_order_term *next;
  wl_expr *expr;
  bool desc;
  signed char nulls; /* 0: not given, 1: NULLS FIRST, 2: NULLS LAST */
} wl_order_term;

typedef struct wl_window {
  struct wl_window *next;
  const char *name; /* of a WINDOW clause entry, or the name after OVER if ref is set */
  const char *base; /* base window name inside the parentheses, or NULL */
  bool ref;         /* OVER name */
  wl_expr_list *partition;
  wl_order_term *order;
  const char *frame; /* frame clause as written, or NULL */
} wl_window;

struct wl_expr {
  wl_expr_kind kind;
  wl_op op;
  bool negated;
  bool distinct; /* f(DISTINCT …) */
  bool star;     /* f(*) */
  char quoted;
  const char *name, *table, *schema;
  const char *text;
  size_t n_text;
  int64_t i;
  wl_expr *a, *b, *c;
  wl_expr_list *list;
  bool has_list; /* IN (…) with a list, even an empty one */
  wl_select *select;
  wl_window *window;
  size_t pos, end; /* the expression's text is [pos, end), including parentheses around it */
  int depth;       /* 1 for a leaf; at most WL_MAX_DEPTH, so functions may recurse over the tree */
};

typedef struct wl_result_col {
  struct wl_result_col *next;
  wl_expr *expr;     /* NULL for * and t.* */
  const char *alias; /* AS alias, or NULL */
  bool star;         /* * or star_table.* */
  const char *star_table;
} wl_result_col;

typedef enum wl_join_kind {
  WL_JOIN_NONE, /* the first table */
  WL_JOIN_COMMA,
  WL_JOIN_INNER,
  WL_JOIN_CROSS,
  WL_JOIN_LEFT,
  WL_JOIN_RIGHT,
  WL_JOIN_FULL
} wl_join_kind;

/*
** One source of FROM. A join in parentheses is a source whose `nested` is that list. Parentheses
** that mean nothing to SQLite are removed: those around the first sources of a list if no alias
** follows, and those around a single source. An alias inside the latter is then lost, as in SQLite,
** unless the source came first and the parentheses had no alias.
*/
typedef struct wl_from_item {
  struct wl_from_item *next;
  wl_join_kind join; /* how it joins with the sources to its left */
  bool natural;
  const char *schema, *name; /* a table, view, CTE or table-valued function */
  wl_expr_list *args;        /* table-valued function arguments */
  bool is_call;              /* name(...) */
  wl_select *select;         /* (SELECT …) */
  struct wl_from_item *nested;
  const char *alias;
  const char *indexed_by; /* INDEXED BY name */
  bool not_indexed;
  wl_expr *on;
  wl_expr_list *using_cols; /* WL_E_NAME each */
} wl_from_item;

typedef struct wl_cte {
  struct wl_cte *next;
  const char *name;
  wl_expr_list *columns;    /* WL_E_NAME each */
  signed char materialized; /* 0: not given, 1: MATERIALIZED, 2: NOT MATERIALIZED */
  wl_select *select;
} wl_cte;

typedef enum wl_compound {
  WL_COMPOUND_NONE,
  WL_COMPOUND_UNION,
  WL_COMPOUND_UNION_ALL,
  WL_COMPOUND_INTERSECT,
  WL_COMPOUND_EXCEPT
} wl_compound;

/*
** One SELECT core, or the rows of VALUES. A compound is a chain: `prior` is the part to the left,
** joined by `compound`. WITH, ORDER BY and LIMIT belong to the last (rightmost) core.
*/
struct wl_select {
  wl_select *prior;
  wl_compound compound;
  wl_cte *with;
  bool recursive;
  bool distinct, all;
  bool is_values;
  wl_expr_list *values; /* VALUES: one WL_E_VECTOR for each row, even if it has one expression */
  wl_result_col *cols;
  wl_from_item *from;
  wl_expr *where;
  wl_expr_list *group_by;
  wl_expr *having;
  wl_window *windows;
  wl_order_term *order_by;
  wl_expr *limit, *offset;
  int depth; /* depth of the deepest expression in it, including subqueries and WITH */
};

typedef enum wl_stmt_kind {
  WL_STMT_EMPTY,  /* only spaces and comments */
  WL_STMT_SELECT, /* SELECT, VALUES or WITH … SELECT */
  WL_STMT_OTHER   /* starts with any other word; not parsed further */
} wl_stmt_kind;

typedef enum wl_explain { WL_EXPLAIN_NONE, WL_EXPLAIN_PROGRAM, WL_EXPLAIN_PLAN } wl_explain;

/* Whether a text starts with EXPLAIN ANALYZE followed by SELECT, WITH or VALUES. SQLite does not
** know that statement. [*from, *to) is then the two words and the space between them. */
bool wl_explain_analyze(const char *sql, size_t n, size_t *from, size_t *to);

typedef struct wl_stmt {
  wl_stmt_kind kind;
  wl_explain explain;  /* whether EXPLAIN or EXPLAIN QUERY PLAN came before it */
  size_t body;         /* offset of the first byte after EXPLAIN [QUERY PLAN] */
  const char *verb;    /* first keyword in upper case ("SELECT", "INSERT", …) or "" */
  wl_select *select;   /* the rightmost core of the statement */
  int n_params;        /* the largest parameter index */
  const char **params; /* [n_params]: name with its prefix, "?" for a plain ?, NULL if unused */
} wl_stmt;

/*
** Parses one statement of n bytes; a ';' at the end is allowed. Returns WL_ERROR with a message if
** the text does not match the grammar. The caller has asked SQLite first, so it then lets SQLite
** run the statement. The tree contains copies, so the text may be freed after the call.
*/
wl_status wl_parse(wl_arena *arena, const char *sql, size_t n, wl_stmt **out,
                   wl_error *err) WL_MUST;

/* For a CREATE VIEW as SQLite stores it: the column names in parentheses after the view's name, if
** any (WL_E_NAME each), and where its SELECT starts. */
wl_status wl_parse_view(wl_arena *arena, const char *sql, size_t n, wl_expr_list **columns,
                        size_t *body, wl_error *err) WL_MUST;

/* Whether the (compound) SELECT or a subquery in one of its expressions has a FROM clause. */
bool wl_select_reads_table(const wl_select *s);

#endif
