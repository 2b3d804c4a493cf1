/*
** wl_parse: parses the text of one statement into its syntax tree. It looks at the first words,
** stops if they do not start a SELECT, and feeds the remaining tokens to the grammar.
**
** Invariants:
** 1. *out is set only on WL_OK, and then points only into the arena.
** 2. Nothing here or in the grammar recurses with the text. The parser's fixed stack bounds
**    nesting, and the builders bound the tree's depth.
*/
#include "base/mem.h"
#include "parse.h"
#include "sql/build.h"
#include <string.h>

/* Functions that lemon generates from the grammar. */
void *wl_lemonAlloc(void *(*alloc)(size_t), wl_parser *p);
void wl_lemon(void *lemon, int kind, wl_token token);
void wl_lemonFree(void *lemon, void (*release)(void *));

/*
** Whether the statement after a WITH is a SELECT. The first word outside parentheses that can start
** a statement decides. REPLACE can also be the name of a WITH table, so it counts only after a
** closing parenthesis.
*/
static bool with_selects(wl_lexer lex) {
  wl_token t;
  long nested = 0;
  for (;;) {
    int prev = lex.prev;
    int kind = wl_lex_next(&lex, &t);
    if (kind == WL_LEX_END || kind == WL_LEX_ILLEGAL || kind == WLT_SEMI) return true;
    if (kind == WLT_LP) nested++;
    if (kind == WLT_RP) nested--;
    if (nested) continue;
    if (kind == WLT_SELECT || kind == WLT_VALUES) return true;
    if (kind == WLT_INSERT || kind == WLT_UPDATE || kind == WLT_DELETE) return false;
    if (kind == WLT_REPLACE && prev == WLT_RP) return false;
  }
}

/* Feeds the tokens to the grammar, up to the end or a ';'. The first token has already been
** read. */
static void feed(wl_parser *p, void *lemon, wl_lexer *lex, int kind, wl_token t) {
  for (;;) {
    if (kind == WL_LEX_ILLEGAL) {
      int n = t.n > 200 ? 200 : (int)t.n;
      p->status = wl_fail(p->err, WL_ERROR, "unrecognized token: \"%.*s\"", n, p->sql + t.pos);
      return;
    }
    bool last = kind == WLT_SEMI || kind == WL_LEX_END;
    if (last) t.n = 0;
    wl_lemon(lemon, last ? 0 : kind, t);
    p->last_end = t.pos + t.n;
    if (last || p->status != WL_OK || p->arena->failed) break;
    kind = wl_lex_next(lex, &t);
  }
  while (p->status == WL_OK && kind == WLT_SEMI) {
    kind = wl_lex_next(lex, &t);
    if (kind != WLT_SEMI && kind != WL_LEX_END)
      p->status = wl_fail(p->err, WL_ERROR, "more than one statement");
  }
}

static wl_status parse_select(wl_arena *arena, wl_lexer *lex, int kind, wl_token t, wl_stmt *stmt,
                              wl_error *err) {
  wl_parser p = {.arena = arena, .sql = lex->sql, .err = err, .status = WL_OK};
  void *lemon = wl_lemonAlloc(wl_mem_alloc, &p);
  if (!lemon) return wl_nomem(err);
  feed(&p, lemon, lex, kind, t);
  wl_lemonFree(lemon, wl_mem_free);
  if (arena->failed) return wl_nomem(err);
  stmt->select = p.result;
  stmt->n_params = p.n_params;
  stmt->params = p.params;
  return p.status;
}

/* Skips EXPLAIN [QUERY PLAN] if *t is its first word, and reads the token after it. */
static int skip_explain(wl_lexer *lex, int kind, wl_token *t, wl_stmt *stmt) {
  if (kind != WLT_ID || !wl_lex_is(lex->sql, *t, "EXPLAIN")) return kind;
  stmt->explain = WL_EXPLAIN_PROGRAM;
  stmt->body = lex->pos;
  kind = wl_lex_next(lex, t);
  wl_lexer ahead = *lex;
  wl_token plan;
  if (kind == WLT_ID && wl_lex_is(lex->sql, *t, "QUERY") && wl_lex_next(&ahead, &plan) == WLT_ID &&
      wl_lex_is(lex->sql, plan, "PLAN")) {
    stmt->explain = WL_EXPLAIN_PLAN;
    *lex = ahead;
    stmt->body = lex->pos;
    kind = wl_lex_next(lex, t);
  }
  return kind;
}

bool wl_explain_analyze(const char *sql, size_t n, size_t *from, size_t *to) {
  wl_lexer lex;
  wl_token t;
  wl_lex_init(&lex, sql, n);
  int kind;
  do kind = wl_lex_next(&lex, &t);
  while (kind == WLT_SEMI);
  if (kind != WLT_ID || !wl_lex_is(sql, t, "EXPLAIN")) return false;
  *from = t.pos;
  kind = wl_lex_next(&lex, &t);
  if (kind <= 0 || !wl_lex_is(sql, t, "ANALYZE")) return false;
  *to = t.pos + t.n;
  kind = wl_lex_next(&lex, &t);
  if (kind == WLT_SELECT || kind == WLT_VALUES) return true;
  if (kind != WLT_WITH) return false;
  /* SQLite's ANALYZE accepts a table or schema with that name */
  wl_lexer ahead = lex;
  kind = wl_lex_next(&ahead, &t);
  return kind > 0 && kind != WLT_SEMI && kind != WLT_DOT && with_selects(lex);
}

wl_status wl_parse(wl_arena *arena, const char *sql, size_t n, wl_stmt **out, wl_error *err) {
  wl_lexer lex;
  wl_token t;
  wl_stmt *stmt = WL_NEW(arena, wl_stmt);
  if (!stmt) return wl_nomem(err);
  wl_lex_init(&lex, sql, n);
  int kind;
  do kind = wl_lex_next(&lex, &t);
  while (kind == WLT_SEMI);
  kind = skip_explain(&lex, kind, &t, stmt);
  stmt->verb = "";
  if (kind == WL_LEX_END || kind == WLT_SEMI) {
    if (stmt->explain) return wl_fail(err, WL_ERROR, "incomplete input");
    stmt->kind = WL_STMT_EMPTY;
    *out = stmt;
    return WL_OK;
  }
  char c = lex.sql[t.pos];
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
    wl_parser words = {.arena = arena, .sql = lex.sql};
    stmt->verb = wl_build_word(&words, t, true);
    if (!stmt->verb) return wl_nomem(err);
  }
  stmt->kind = WL_STMT_OTHER;
  if (kind == WLT_SELECT || kind == WLT_VALUES || (kind == WLT_WITH && with_selects(lex))) {
    stmt->kind = WL_STMT_SELECT;
    wl_status st = parse_select(arena, &lex, kind, t, stmt, err);
    if (st != WL_OK) return st;
  }
  *out = stmt;
  return WL_OK;
}

wl_status wl_parse_view(wl_arena *arena, const char *sql, size_t n, wl_expr_list **columns,
                        size_t *body, wl_error *err) {
  wl_lexer lex;
  wl_token t;
  wl_parser words = {.arena = arena, .sql = sql, .err = err};
  wl_expr_list **end = columns;
  bool inside = false;
  *columns = NULL;
  wl_lex_init(&lex, sql, n);
  for (;;) {
    int kind = wl_lex_next(&lex, &t);
    if (kind == WL_LEX_END || kind == WL_LEX_ILLEGAL)
      return wl_fail(err, WL_ERROR, "the text of a view cannot be parsed");
    if (kind == WLT_LP) {
      inside = true;
    } else if (kind == WLT_RP) {
      inside = false;
    } else if (inside && kind != WLT_COMMA) {
      wl_expr_list *l = WL_NEW(arena, wl_expr_list);
      if (l) l->expr = WL_NEW(arena, wl_expr);
      if (!l || !l->expr) return wl_nomem(err);
      l->expr->kind = WL_E_NAME;
      l->expr->name = wl_build_name(&words, t);
      *end = l;
      end = &l->next;
    } else if (!inside && wl_lex_is(sql, t, "AS")) {
      *body = lex.pos;
      return arena->failed ? wl_nomem(err) : WL_OK;
    }
  }
}

wl_status wl_parse_dml(wl_arena *arena, const char *sql, size_t n, wl_dml **out, wl_error *err) {
  wl_lexer lex;
  wl_token t;
  wl_stmt head = {0};
  *out = NULL;
  wl_lex_init(&lex, sql, n);
  int kind;
  do kind = wl_lex_next(&lex, &t);
  while (kind == WLT_SEMI);
  kind = skip_explain(&lex, kind, &t, &head);
  bool is = kind == WLT_INSERT || kind == WLT_REPLACE || kind == WLT_UPDATE || kind == WLT_DELETE ||
            (kind == WLT_WITH && !with_selects(lex));
  if (!is) return WL_OK;
  wl_parser p = {.arena = arena, .sql = lex.sql, .err = err, .status = WL_OK};
  void *lemon = wl_lemonAlloc(wl_mem_alloc, &p);
  if (!lemon) return wl_nomem(err);
  feed(&p, lemon, &lex, kind, t);
  wl_lemonFree(lemon, wl_mem_free);
  if (arena->failed) return wl_nomem(err);
  if (p.status || !p.dml) return p.status;
  wl_dml *d = p.dml;
  d->explain = head.explain;
  d->body = head.body;
  d->n_params = p.n_params;
  d->params = p.params;
  d->param_at = p.param_at;
  d->n_param_at = p.n_param_at;
  *out = d;
  return WL_OK;
}

/* ---- whether tables are read */

static bool list_reads(const wl_expr_list *l);

static bool expr_reads(const wl_expr *e) {
  if (!e) return false;
  bool in_table = e->kind == WL_E_IN && !e->has_list && !e->select;
  return in_table || wl_select_reads_table(e->select) || expr_reads(e->a) || expr_reads(e->b) ||
         expr_reads(e->c) || list_reads(e->list);
}

static bool list_reads(const wl_expr_list *l) {
  for (; l; l = l->next)
    if (expr_reads(l->expr)) return true;
  return false;
}

bool wl_select_reads_table(const wl_select *s) {
  for (; s; s = s->prior) {
    if (s->from || expr_reads(s->where) || list_reads(s->group_by) || expr_reads(s->having) ||
        list_reads(s->values) || expr_reads(s->limit) || expr_reads(s->offset))
      return true;
    for (const wl_result_col *c = s->cols; c; c = c->next)
      if (expr_reads(c->expr)) return true;
    for (const wl_order_term *t = s->order_by; t; t = t->next)
      if (expr_reads(t->expr)) return true;
  }
  return false;
}
