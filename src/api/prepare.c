/*
** warplite_prepare(): SQLite prepares the statement, then ours may replace it.
*/
#include "api/enable.h"
#include "api/vtab.h"
#include "base/authorizer.h"
#include "dml/dml.h"
#include "explain/explain.h"
#include "route/error.h"
#include "base/mem.h"
#include "sql/lex.h"
#include "warplite.h"
#include <stdio.h>
#include <string.h>

/* Prepares the statement again. SQLite may have prepared it with an old schema. By now it knows the
** new one, and the names and types of the columns must come from that. */
static wl_status prepare_again(wl_conn *c, const wl_statement_text *t, sqlite3_stmt **stmt,
                               wl_error *err) {
  sqlite3_stmt *again = NULL;
  int rc = sqlite3_prepare_v2(c->db, t->sql, -1, &again, NULL);
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  if (rc || sqlite3_column_count(again) != t->query->n_results) {
    sqlite3_finalize(again);
    return wl_not_taken(err, "the schema changed while it was being prepared");
  }
  sqlite3_finalize(*stmt);
  *stmt = again;
  return WL_OK;
}

static void replace(sqlite3_stmt **stmt, sqlite3_stmt *ours) {
  sqlite3_finalize(*stmt);
  *stmt = ours;
}

/* Replaces *stmt by a statement that the native engine runs. n_shapes: the store's count before the
** decision. */
static wl_status take(wl_conn *c, const wl_decision *d, wl_i64 n_shapes, sqlite3_stmt **stmt,
                      wl_error *err) {
  wl_statement_text *t = d->text;
  sqlite3_stmt *ours = NULL;
  wl_status rc = WL_OK;
  if (wl_store_n_shapes(c->store) != n_shapes) rc = prepare_again(c, t, stmt, err);
  if (!rc && sqlite3_column_count(*stmt) != t->query->n_results)
    rc = wl_not_taken(err, "SQLite gives %d columns, not %d", sqlite3_column_count(*stmt),
                      t->query->n_results);
  if (!rc) rc = wl_vtab_prepare(c, t, *stmt, &ours, err);
  if (!rc) replace(stmt, ours);
  return rc;
}

/* Decides who runs a statement other than EXPLAIN. Replaces *stmt if that is not SQLite. */
static wl_status route(wl_conn *c, const char *sql, size_t n, const char *refused,
                       sqlite3_stmt **stmt, wl_decision *d, wl_error *err) {
  wl_request q = {.sql = sql, .n_sql = n, .refused = refused, .as_table = true};
  wl_i64 n_shapes = wl_store_n_shapes(c->store);
  wl_status rc = wl_route(c, &q, d, err);
  if (rc || d->engine == WL_ENGINE_SQLITE) return rc;
  wl_conn_set_reason(c, d->reason); /* SQLite's plan shows it for the virtual table */
  rc = take(c, d, n_shapes, stmt, err);
  return rc ? wl_route_leave(c, &q, rc, d, err) : WL_OK;
}

/* Prepares a text that ran natively before, without asking SQLite about it again. False: the normal
** way is needed. */
static bool prepare_seen(sqlite3 *db, const char *sql, size_t n, sqlite3_stmt **out) {
  wl_error err;
  wl_decision d = {0};
  wl_conn *c = wl_conn_find(db);
  wl_statement_text *t = c && c->ready ? wl_statement_text_seen(c, sql, n) : NULL;
  if (!t || !t->stand_in) {
    wl_statement_text_drop(t);
    return false;
  }
  c->preparing = true;
  wl_request q = {.sql = sql, .n_sql = n, .as_table = true, .seen = true};
  wl_status rc = wl_route(c, &q, &d, &err);
  if (!rc && d.text == t && d.engine != WL_ENGINE_SQLITE) {
    wl_conn_set_reason(c, d.reason); /* SQLite's plan shows it for the virtual table */
    rc = wl_vtab_prepare_seen(c, t, out, &err);
  }
  c->preparing = false;
  wl_decision_close(&d);
  wl_statement_text_drop(t);
  return !rc && *out;
}

/* Replaces SQLite's EXPLAIN by ours, if there is one. */
static wl_status explain(wl_conn *c, const char *sql, size_t n, const char *refused,
                         sqlite3_stmt **stmt, wl_decision *d, wl_error *err) {
  sqlite3_stmt *ours = NULL;
  wl_status rc = wl_explain_prepare(c, sql, n, refused, *stmt, d, &ours, err);
  if (!rc) replace(stmt, ours);
  return rc;
}

/* Rewrites a change of a tablet table. *done: it was rewritten, or SQLite runs it best and the
** reason is set. */
static wl_status change(wl_conn *c, const char *sql, size_t n, sqlite3_stmt **stmt, bool *done,
                        wl_error *err) {
  sqlite3_stmt *ours = NULL;
  int code;
  wl_status rc = wl_dml_prepare(c, sql, n, *stmt, &ours, &code, err);
  *done = rc == WL_OK;
  if (!*done) return rc == WL_NOMEM ? rc : WL_OK;
  if (ours)
    replace(stmt, ours);
  else
    wl_conn_log(c, c->reason, sql, n, -1, 0);
  return WL_OK;
}

/* Replaces what SQLite has prepared by ours, if that is possible and faster. ignored: the
** authorizer answered IGNORE. */
static int prepared(wl_conn *c, const char *sql, size_t n, bool ignored, sqlite3_stmt **stmt) {
  wl_error err = {0};
  wl_decision d = {0};
  bool done = false, explained = sqlite3_stmt_isexplain(*stmt) != 0;
  const char *refused = ignored ? WL_IGNORED : NULL;
  bool writes = !sqlite3_stmt_readonly(*stmt);
  wl_status rc = writes && !ignored ? change(c, sql, n, stmt, &done, &err) : WL_OK;
  if (rc || done) goto done;
  rc = explained ? explain(c, sql, n, refused, stmt, &d, &err)
                 : route(c, sql, n, refused, stmt, &d, &err);
  bool ours = !rc && (explained || d.engine != WL_ENGINE_SQLITE);
  if (d.about_warplite) {
    rc = WL_OK;
    goto done;
  }
  if (explained && rc && rc != WL_NOMEM) { /* SQLite's EXPLAIN, unless it explains a change */
    snprintf(d.reason, sizeof d.reason, "sqlite: %s", err.text);
    rc = ignored ? WL_OK : change(c, sql, n, stmt, &done, &err);
  }
  if (done) goto done;
  if (*d.reason) wl_conn_set_reason(c, d.reason);
  /* A native statement is logged after its run. A statement of SQLite's is logged now, because we
  ** do not see it run. */
  if (!rc && !ours && !explained) wl_conn_log(c, c->reason, sql, n, -1, 0);
done:
  wl_decision_close(&d);
  if (!rc) return SQLITE_OK;
  sqlite3_finalize(*stmt);
  *stmt = NULL;
  return rc == WL_NOMEM ? SQLITE_NOMEM : wl_fail_prepare(c->db, SQLITE_ERROR, err.text);
}

/* Prepares EXPLAIN ANALYZE. SQLite does not know it, and gets only the statement. *tail is
** SQLite's. */
static int prepare_analysis(sqlite3 *db, const char *sql, char *text, sqlite3_stmt **out,
                            const char **tail) {
  sqlite3_stmt *original = NULL;
  const char *end = NULL;
  wl_mask *mask = NULL;
  int rc = wl_ask_prepare(db, text, -1, &original, &end, &mask);
  *tail = end ? sql + (end - text) : sql;
  if (rc == SQLITE_OK) rc = warplite_enable(db);
  wl_conn *c = rc ? NULL : wl_conn_find(db);
  if (c) {
    wl_error err = {0};
    c->preparing = true;
    wl_status st = wl_mask_ignores(mask)
                       ? wl_fail(&err, WL_ERROR, "EXPLAIN ANALYZE: %s", WL_IGNORED)
                       : wl_analyze_prepare(c, text, (size_t)(end - text), original, out, &err);
    c->preparing = false;
    if (st == WL_NOMEM)
      rc = SQLITE_NOMEM;
    else if (st)
      rc = wl_fail_prepare(db, SQLITE_ERROR, err.text);
  }
  sqlite3_finalize(original);
  wl_mask_free(mask);
  return rc;
}

/* Prepares a statement that SQLite has refused again, so that the error has its position in the
** text. If SQLite accepts it now, sets the first code and message. */
static int refuse_again(sqlite3 *db, const char *sql, int n_bytes, int code, const char *message,
                        const wl_mask *mask) {
  sqlite3_stmt *s = NULL;
  int rc = wl_masked_prepare(db, sql, n_bytes, mask, &s, NULL);
  sqlite3_finalize(s);
  return rc == code ? rc : wl_fail_prepare(db, code, message);
}

/* Prepares a change that SQLite refuses for virtual tables but that works on a tablet table. first
** and message are SQLite's error, which stays in any other case. mask: the authorizer's answers. */
static int prepare_refused(sqlite3 *db, const char *sql, int n_bytes, sqlite3_stmt **out,
                           const char **tail, int first, const char *message, const wl_mask *mask) {
  wl_lexer lex;
  wl_token t;
  wl_error err = {0};
  int kind, rc = first;
  wl_conn *c = wl_conn_find(db); /* there is one, because tablet tables need it */
  wl_lex_init(&lex, sql, n_bytes < 0 ? strlen(sql) : (size_t)n_bytes);
  bool begun = false;
  do {
    kind = wl_lex_next(&lex, &t);
    bool ends = kind == WL_LEX_END || kind == WL_LEX_ILLEGAL || sql[t.pos] == ';';
    if (begun && ends) break;
    begun |= !ends;
  } while (kind > 0);
  c->preparing = true;
  wl_status st = wl_dml_prepare(c, sql, lex.pos, NULL, out, &rc, &err);
  c->preparing = false;
  if (st == WL_OK) {
    *tail = sql + lex.pos;
    return SQLITE_OK;
  }
  if (st == WL_NOMEM) return SQLITE_NOMEM;
  if (st == WL_ERROR) return rc;
  return refuse_again(db, sql, n_bytes, first, message, mask);
}

/*
** Preparing reads the database to count rows and to find a table's shape. If such a read fails with
** a disk error inside a transaction, SQLite rolls the transaction back. The statement must then
** fail, because it would run outside the transaction.
*/
static int still_inside(sqlite3 *db, sqlite3_stmt **stmt) {
  if (!sqlite3_get_autocommit(db)) return SQLITE_OK;
  sqlite3_finalize(*stmt);
  *stmt = NULL;
  return wl_fail_prepare(db, SQLITE_ERROR,
                         "a disk error rolled back the transaction while the statement was "
                         "prepared");
}

/* warplite_prepare() without setting the connection's error. */
static int prepare(sqlite3 *db, const char *zSql, int nByte, sqlite3_stmt **ppStmt,
                   const char **pzTail) {
  const char *tail = NULL;
  bool inside = !sqlite3_get_autocommit(db);
  size_t n = nByte < 0 ? strlen(zSql) : strnlen(zSql, (size_t)nByte);
  if (prepare_seen(db, zSql, n, ppStmt)) {
    if (pzTail) *pzTail = zSql + n;
    return inside ? still_inside(db, ppStmt) : SQLITE_OK;
  }
  char *analyzed = wl_analyze_text(zSql, nByte);
  if (analyzed) {
    int st = prepare_analysis(db, zSql, analyzed, ppStmt, &tail);
    sqlite3_free(analyzed);
    if (pzTail) *pzTail = tail;
    return st;
  }
  wl_mask *mask = NULL;
  int rc = wl_ask_prepare(db, zSql, nByte, ppStmt, &tail, &mask);
  bool refused = rc == SQLITE_ERROR && wl_conn_find(db) != NULL;
  if (refused)
    refused = wl_dml_refused(sqlite3_errmsg(db), zSql, nByte < 0 ? strlen(zSql) : (size_t)nByte);
  char *message = refused ? wl_mem_strdup(sqlite3_errmsg(db)) : NULL;
  if (message) rc = prepare_refused(db, zSql, nByte, ppStmt, &tail, rc, message, mask);
  wl_mem_free(message);
  if (pzTail) *pzTail = tail;
  if (rc == SQLITE_OK && *ppStmt && !refused) {
    rc = warplite_enable(db);
    if (rc == SQLITE_OK) {
      wl_conn *c = wl_conn_find(db);
      c->preparing = true;
      rc = prepared(c, zSql, (size_t)(tail - zSql), wl_mask_ignores(mask), ppStmt);
      c->preparing = false;
    } else {
      sqlite3_finalize(*ppStmt);
      *ppStmt = NULL;
    }
  }
  if (inside && rc == SQLITE_OK && wl_conn_find(db)) rc = still_inside(db, ppStmt);
  wl_mask_free(mask);
  return rc;
}

int warplite_prepare(sqlite3 *db, const char *zSql, int nByte, sqlite3_stmt **ppStmt,
                     const char **pzTail) {
  if (ppStmt) *ppStmt = NULL;
  if (!db || !ppStmt || !zSql) return SQLITE_MISUSE;
  if (!wl_api_bind(NULL)) return SQLITE_ERROR;
  sqlite3_mutex *m = sqlite3_db_mutex(db);
  sqlite3_mutex_enter(m);
  int rc = prepare(db, zSql, nByte, ppStmt, pzTail);
  if (rc == SQLITE_OK)
    wl_clear_error(db);
  else if ((sqlite3_errcode(db) & 0xff) != (rc & 0xff))
    wl_fail_prepare(db, rc, rc == SQLITE_NOMEM ? "out of memory" : warplite_errmsg(db));
  sqlite3_mutex_leave(m);
  return rc;
}
