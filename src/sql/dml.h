/*
** The syntax tree of INSERT, UPDATE and DELETE. Expressions and SELECTs in it are those of
** ast.h; besides, each clause is known by its place in the text, because what runs are texts made
** of pieces of the original (dml/text.c).
**
** Invariants:
** 1. As in ast.h: all is in the arena, lists are in the order of the text.
** 2. A span is empty where the clause is left out; else it begins at or before the clause's first
**    token (in space or comments) and ends with its last.
*/
#ifndef WL_DML_H
#define WL_DML_H

#include "sql/ast.h"

typedef struct wl_span {
  size_t pos, end;
} wl_span;

typedef enum wl_dml_kind { WL_DML_INSERT, WL_DML_UPDATE, WL_DML_DELETE } wl_dml_kind;

typedef enum wl_conflict {
  WL_CONFLICT_NONE, /* not said: ABORT */
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
  bool row;            /* the names stood in parentheses */
  wl_expr *value;
} wl_assign;

/* ON CONFLICT [(target)] DO NOTHING | DO UPDATE SET sets [WHERE where]. What may stand behind the
** target as its WHERE speaks of partial indexes, which no tablet table has. */
typedef struct wl_upsert {
  struct wl_upsert *next;
  wl_order_term *target; /* NULL: any */
  bool updates;
  wl_assign *sets;
  wl_expr *where;
} wl_upsert;

/* A parameter as it stands in the text. */
typedef struct wl_param_at {
  size_t pos;
  int index;
} wl_param_at;

typedef struct wl_dml {
  wl_dml_kind kind;
  wl_conflict conflict;
  wl_explain explain;
  size_t body;  /* offset of the first byte after EXPLAIN [QUERY PLAN] */
  size_t start; /* of the verb, after WITH */
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
  bool default_values; /* else: */
  wl_select *select;
  wl_span source_at;
  wl_upsert *upserts;
  wl_span upserts_at;
  /* UPDATE and DELETE */
  wl_assign *sets;
  wl_from_item *from;
  wl_expr *where;
  wl_span from_at; /* FROM and WHERE, of UPDATE */
  wl_order_term *order_by;
  wl_expr *limit;
  wl_span tail_at; /* ORDER BY and LIMIT */
  int n_params;    /* as in wl_stmt */
  const char **params;
  wl_param_at *param_at; /* in the order of the text */
  int n_param_at;
} wl_dml;

/* Parses a statement; *out is NULL when it is none of the three. WL_ERROR when it is not
** understood. */
wl_status wl_parse_dml(wl_arena *arena, const char *sql, size_t n, wl_dml **out,
                       wl_error *err) WL_MUST;

#endif
