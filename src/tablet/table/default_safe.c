/*
** Decides whether the DEFAULT of a column may be evaluated. It is part of the schema, which
** somebody else may have written. As SQLite does for its own tables, this refuses subqueries and
** functions that may only be called directly. If the schema is not trusted, it also refuses
** functions that are not innocuous.
*/
#include "parse.h"
#include "sql/lex.h"
#include "tablet/table/table_impl.h"
#include <string.h>

/* Asks SQLite whether the function may be called here. An unknown function fails later. */
static wl_status check_function(wl_tablets *t, const char *name, wl_error *err) {
  enum { NAME = 0, FLAGS = 5 }; /* columns of the PRAGMA */
  sqlite3_stmt *q = NULL;
  int trusted = 1;
  bool unsafe = false;
  sqlite3_db_config(t->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, -1, &trusted);
  int rc = sqlite3_prepare_v2(t->db, "PRAGMA function_list", -1, &q, NULL);
  while (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    const char *known = (const char *)sqlite3_column_text(q, NAME);
    int flags = sqlite3_column_int(q, FLAGS);
    if (known && sqlite3_stricmp(known, name) == 0)
      unsafe |= flags & SQLITE_DIRECTONLY || (!trusted && !(flags & SQLITE_INNOCUOUS));
    rc = SQLITE_OK;
  }
  sqlite3_finalize(q);
  if (rc != SQLITE_DONE) return wl_tablets_error(t, rc, err);
  return unsafe ? wl_fail(err, WL_ERROR, "unsafe use of %.100s()", name) : WL_OK;
}

wl_status wl_default_check(wl_tablets *t, int col, wl_error *err) {
  wl_decl_column *c = &t->decl->cols[col];
  if (c->constant || c->dflt_checked) return WL_OK;
  wl_lexer lex;
  wl_token tok = {0}, before = {0};
  wl_arena arena;
  wl_status rc = WL_OK;
  int kind;
  wl_arena_init(&arena);
  wl_lex_init(&lex, c->dflt, strlen(c->dflt));
  while (!rc && (kind = wl_lex_next(&lex, &tok)) > 0) {
    bool is_operator = kind == WLT_LIKE_KW || kind == WLT_MATCH; /* they call functions, too */
    wl_token name = is_operator ? tok : before;
    if (kind == WLT_SELECT)
      rc = wl_fail(err, WL_ERROR, "default value of column [%.100s] is not constant", c->name);
    if (!rc && (is_operator || kind == WLT_LP) && name.n) {
      char *text = wl_decl_unquoted(&arena, c->dflt + name.pos, name.n);
      rc = text ? check_function(t, text, err) : wl_nomem(err);
    }
    before = tok;
  }
  wl_arena_close(&arena);
  c->dflt_checked = !rc;
  return rc;
}
