/*
** The syntax tree of INSERT, UPDATE and DELETE. Expressions and SELECTs in it are those of ast.h.
** Each clause also records its place in the text, because the statements that run are put together
** from pieces of the original text (dml/text.c).
**
** Invariants:
** 1. As in ast.h, everything is in the arena and lists are in the order of the text.
** 2. The span of a clause that was left out is empty. Any other span starts at or before the
**    clause's first token (in space or comments) and ends with its last token.
*/
#ifndef WL_DML_H
#define WL_DML_H

#include "sql/ast.h"

typedef struct wl_span {
  size_t pos, end;
} wl_span;

typedef enum wl_dml_kind { WL_DML_INSERT, WL_DML_UPDATE, WL_DML_DELETE } wl_dml_kind;

typedef enum wl_conflict {
  WL_CONFLICT_NONE, /* not given, which means ABORT */
  WL_CONFLICT_ROLLBACK,
  WL_CONFLICT_ABORT,
  WL_CONFLICT_FAIL,
  WL_CONFLICT_IGNORE,
  WL_CONFLICT_REPLACE
} wl_conflict;

/* name = value, or (names) = value. */
typedef struct wl_assign {
  struct wl_assign *next;
  wl_expr_list *names; /* WL_E_NAME each */
  bool row;            /* the names were in parentheses */
  wl_expr *value;
} wl_assign;

/* ON CONFLICT [(target)] DO NOTHING | DO UPDATE SET sets [WHERE where]. A WHERE after the target is
** about partial indexes. Tablet tables have none, so it is not stored. */
typedef struct wl_upsert {
  struct wl_upsert *next;
  wl_order_term *target; /* NULL: any */
  bool updates;
  wl_assign *sets;
  wl_expr *where;
} wl_upsert;

/* A parameter and its place in the text. */
typedef struct wl_param_at {
  size_t pos;
  int index;
} wl_param_at;

typedef struct wl_dml {
  wl_dml_kind kind;
  wl_conflict conflict;
  wl_explain explain;
  size_t body;  /* offset of the first byte after EXPLAIN [QUERY PLAN] */
  size_t start; /* offset of the verb, after WITH */
  wl_cte *with;
  bool recursive;
  wl_span with_at;
  const char *schema, *name, *alias;
  const char *indexed_by;
  wl_result_col *returning;
  wl_span returning_at;
  /* INSERT */
  wl_expr_list *columns; /* WL_E_NAME each; NULL: all */
  wl_span columns_at;
  bool default_values; /* DEFAULT VALUES; if not set, `select` gives the rows */
  wl_select *select;
  wl_span source_at;
  wl_upsert *upserts;
  wl_span upserts_at;
  /* UPDATE and DELETE */
  wl_assign *sets;
  wl_from_item *from;
  wl_expr *where;
  wl_span from_at; /* the span of FROM and WHERE of an UPDATE */
  wl_order_term *order_by;
  wl_expr *limit;
  wl_span tail_at; /* the span of ORDER BY and LIMIT */
  int n_params;    /* as in wl_stmt */
  const char **params;
  wl_param_at *param_at; /* in the order of the text */
  int n_param_at;
} wl_dml;

/* Parses a statement. *out is NULL if it is not an INSERT, UPDATE or DELETE. Returns WL_ERROR if
** the text does not match the grammar. */
wl_status wl_parse_dml(wl_arena *arena, const char *sql, size_t n, wl_dml **out,
                       wl_error *err) WL_MUST;

#endif
