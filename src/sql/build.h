/*
** The functions that the grammar's rules call to build the syntax tree. Private to the parser
** (parse.y and ast.c).
**
** Invariants:
** 1. A builder that runs out of memory leaves arena->failed set and returns NULL or a shorter list.
**    Every builder accepts such a result. The parse then ends with WL_NOMEM.
** 2. A builder that refuses its input sets status and message. Only the first refusal counts.
** 3. When a rule is reduced, last_end is the end of the rule's last token. The parser's lookahead
**    token has not been shifted yet.
*/
#ifndef WL_BUILD_H
#define WL_BUILD_H

#include "sql/dml.h"
#include "sql/lex.h"

typedef struct wl_parser {
  wl_arena *arena;
  const char *sql;
  wl_error *err;
  wl_status status;
  size_t last_end;
  wl_select *result;
  wl_dml *dml;           /* for INSERT, UPDATE and DELETE, instead of result */
  wl_param_at *param_at; /* every parameter that occurs, in the order of the text */
  int n_param_at, cap_param_at;
  int n_params, cap_params;
  const char **params;
} wl_parser;

/* Lists that are being built. */
typedef struct wl_exprs {
  wl_expr_list *head, *tail;
} wl_exprs;
typedef struct wl_orders {
  wl_order_term *head, *tail;
} wl_orders;
typedef struct wl_cols {
  wl_result_col *head, *tail;
} wl_cols;
typedef struct wl_sources {
  wl_from_item *head, *tail;
} wl_sources;
typedef struct wl_windows {
  wl_window *head, *tail;
} wl_windows;
typedef struct wl_ctes {
  wl_cte *head, *tail;
} wl_ctes;

/* Rule values that hold two things. */
typedef struct wl_joinop {
  wl_join_kind kind;
  bool natural;
} wl_joinop;
typedef struct wl_join_cond {
  wl_expr *on;
  wl_expr_list *using_cols;
} wl_join_cond;
typedef struct wl_limits {
  wl_expr *limit, *offset;
} wl_limits;
typedef struct wl_over {
  wl_expr *filter;
  wl_window *window;
} wl_over;
typedef struct wl_qname {
  const char *schema, *name;
} wl_qname;
typedef struct wl_indexing {
  const char *by;
  bool none;
} wl_indexing;

typedef struct wl_insert_word {
  size_t pos;
  wl_conflict conflict;
} wl_insert_word;
typedef struct wl_sets {
  wl_assign *head, *tail;
} wl_sets;
typedef struct wl_upserts {
  wl_upsert *head, *tail;
} wl_upserts;

/* Convert tokens to strings in the arena. A missing token gives NULL. */
const char *wl_build_name(wl_parser *p, wl_token t);             /* unquoted */
const char *wl_build_word(wl_parser *p, wl_token t, bool upper); /* as written, in upper or lower
                                                                 ** case */
const char *wl_build_text(wl_parser *p, size_t from, size_t to); /* as written */
const char *wl_build_type(wl_parser *p, wl_token t); /* as written, one space for each gap */

/*
** A copy of the given node with its end and depth set. pos must already be set. The rules call it
** through WL_NODE.
*/
wl_expr *wl_build_expr(wl_parser *p, const wl_expr *node);
#define WL_NODE(start, ...) wl_build_expr(p, &(wl_expr){.pos = (start), __VA_ARGS__})
#define WL_START(e)         ((e) ? (e)->pos : 0)

wl_expr *wl_build_binary(wl_parser *p, wl_op op, wl_expr *a, wl_expr *b);
wl_expr *wl_build_unary(wl_parser *p, wl_op op, wl_token t, wl_expr *a);
wl_expr *wl_build_paren(wl_parser *p, wl_token lp, wl_expr *a);
wl_expr *wl_build_integer(wl_parser *p, wl_token t);
wl_expr *wl_build_string(wl_parser *p, wl_token t);
wl_expr *wl_build_blob(wl_parser *p, wl_token t);
wl_expr *wl_build_param(wl_parser *p, wl_token t);
wl_expr *wl_build_column(wl_parser *p, wl_token schema, wl_token table, wl_token name);
wl_expr *wl_build_raise(wl_parser *p, wl_token start, wl_token action, wl_token message);

wl_exprs wl_build_append(wl_parser *p, wl_exprs list, wl_expr *e);
wl_orders wl_build_order(wl_parser *p, wl_orders list, const wl_order_term *term);
wl_cols wl_build_col(wl_parser *p, wl_cols list, const wl_result_col *col);
wl_windows wl_build_window(wl_parser *p, wl_windows list, wl_window *w, wl_token name);
wl_window *wl_build_spec(wl_parser *p, const wl_window *w);
wl_ctes wl_build_cte(wl_parser *p, wl_ctes list, const wl_cte *cte);

/* The kind of join that up to three words (CROSS, LEFT, OUTER …) name together. */
wl_joinop wl_build_joinop(wl_parser *p, wl_token a, wl_token b, wl_token c);
wl_from_item *wl_build_source(wl_parser *p, const wl_from_item *s, wl_join_cond cond);
/* Adds a source. Removes parentheses around it where SQLite does. */
wl_sources wl_build_join(wl_parser *p, wl_sources list, wl_joinop op, wl_from_item *s);

wl_select *wl_build_select(wl_parser *p, const wl_select *s);
wl_select *wl_build_compound(wl_parser *p, wl_select *left, wl_compound op, wl_select *right);
wl_select *wl_build_with(wl_parser *p, wl_select *s, wl_ctes with, bool recursive);

wl_sets wl_build_set(wl_parser *p, wl_sets list, const wl_assign *set);
wl_upserts wl_build_upsert(wl_parser *p, wl_upserts list, const wl_upsert *clause);
wl_dml *wl_build_dml(wl_parser *p, const wl_dml *d);
wl_dml *wl_build_dml_with(wl_dml *d, wl_token with, wl_ctes ctes, bool recursive);

void wl_build_syntax_error(wl_parser *p, wl_token near);
void wl_build_too_deep(wl_parser *p);

#endif
