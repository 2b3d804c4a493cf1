/*
** See bindings.h.
*/
#include "api/bindings.h"
#include "base/mem.h"
#include "sql/lex.h"
#include <string.h>

static wl_status sqlite_error(sqlite3_stmt *s, int rc, wl_error *err) {
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  return wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(sqlite3_db_handle(s)));
}

/* Prepares SELECT ?1, ?2, … with n parameters. */
static wl_status prepare_reader(sqlite3_stmt *s, int n, sqlite3_stmt **out, wl_error *err) {
  sqlite3_str *text = sqlite3_str_new(NULL);
  sqlite3_str_appendall(text, "VALUES");
  for (int i = 1; i <= n; i++) sqlite3_str_appendf(text, i > 1 ? ",(?%d)" : "(?%d)", i);
  char *sql = sqlite3_str_finish(text);
  if (!sql) return wl_nomem(err);
  int rc = sqlite3_prepare_v2(sqlite3_db_handle(s), sql, -1, out, NULL);
  sqlite3_free(sql);
  return rc ? sqlite_error(s, rc, err) : WL_OK;
}

/* Reads the values that the reader has. It gives one row for each. */
static wl_status copy_values(sqlite3_stmt *reader, wl_bindings *b, int n, wl_error *err) {
  for (; b->n < n; b->n++) {
    int rc = sqlite3_step(reader);
    if (rc != SQLITE_ROW) return sqlite_error(reader, rc, err);
    b->values[b->n] = sqlite3_value_dup(sqlite3_column_value(reader, 0));
    if (!b->values[b->n]) return wl_nomem(err);
  }
  return WL_OK;
}

wl_status wl_bindings_read(sqlite3_stmt *s, wl_bindings *out, wl_error *err) {
  sqlite3_stmt *reader = NULL;
  int n = sqlite3_bind_parameter_count(s);
  memset(out, 0, sizeof *out);
  if (n == 0) return WL_OK;
  if (!sqlite3_api->transfer_bindings)
    return wl_fail(err, WL_ERROR, "this SQLite has no sqlite3_transfer_bindings()");
  out->values = wl_mem_zalloc((size_t)n * sizeof *out->values);
  if (!out->values) return wl_nomem(err);
  wl_status rc = prepare_reader(s, n, &reader, err);
  int moved = rc ? SQLITE_ERROR : sqlite3_transfer_bindings(s, reader);
  if (!rc && moved) rc = sqlite_error(s, moved, err);
  if (!rc) {
    rc = copy_values(reader, out, n, err);
    sqlite3_reset(reader);
    sqlite3_transfer_bindings(reader, s); /* the statement keeps its values */
  }
  sqlite3_finalize(reader);
  return rc;
}

wl_status wl_bindings_bind(const wl_bindings *b, sqlite3_stmt *s, wl_error *err) {
  int rc = SQLITE_OK;
  for (int i = 0; i < b->n && !rc; i++) rc = sqlite3_bind_value(s, i + 1, b->values[i]);
  return rc ? sqlite_error(s, rc, err) : WL_OK;
}

void wl_bindings_close(wl_bindings *b) {
  for (int i = 0; i < b->n; i++) sqlite3_value_free(b->values[i]);
  wl_mem_free(b->values);
  memset(b, 0, sizeof *b);
}

/* Whether a token is the name of a module of native statements: wl_ and 16 hexadecimal digits. */
static bool is_native_table(const char *p, size_t n) {
  if (n != 19 || strncmp(p, "wl_", 3) != 0) return false;
  for (size_t i = 3; i < n; i++)
    if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f'))) return false;
  return true;
}

/* The value of a string literal. */
static char *unquote(const char *p, size_t n) {
  char *out = sqlite3_malloc64(n);
  size_t k = 0;
  for (size_t i = 1; out && i + 1 < n; i++) {
    out[k++] = p[i];
    if (p[i] == '\'') i++; /* it is doubled */
  }
  if (out) out[k] = 0;
  return out;
}

char *wl_original_text(sqlite3_stmt *s) {
  const char *sql = sqlite3_sql(s);
  wl_lexer lex;
  wl_token t;
  bool named = false;
  wl_lex_init(&lex, sql, strlen(sql));
  for (int kind; (kind = wl_lex_next(&lex, &t)) != WL_LEX_END && kind != WL_LEX_ILLEGAL;) {
    if (named && sql[t.pos] == '\'') return unquote(sql + t.pos, t.n);
    if (sql[t.pos] != '(') named = is_native_table(sql + t.pos, t.n);
  }
  return sqlite3_mprintf("%s", sql);
}
