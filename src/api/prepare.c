/*
** warplite_prepare(): SQLite's prepare, then ours.
*/
#include "dml/dml.h"
#include "base/authorizer.h"
#include "base/mem.h"
#include "sql/lex.h"
#include "warplite.h"
#include <stdio.h>
#include <string.h>

/* Statements about warplite itself leave the last reason alone: those that name one of its
** functions or tables, not those with such a string in them. */
static bool speaks_of_warplite(const char *sql, size_t n) {
  static const char prefix[] = "warplite_";
  wl_lexer lex;
  wl_token t;
  wl_lex_init(&lex, sql, n);
  for (int kind; (kind = wl_lex_next(&lex, &t)) != WL_LEX_END && kind != WL_LEX_ILLEGAL;) {
    const char *word = sql + t.pos;
    bool quoted = strchr("\"[`", *word) != NULL;
    if (t.n >= sizeof prefix - 1 + quoted &&
        sqlite3_strnicmp(word + quoted, prefix, sizeof prefix - 1) == 0)
      return true;
  }
  return false;
}

/* Whether it is a SELECT over some table: strict speaks of these only. */
static bool reads_table(const char *sql, size_t n) {
  wl_arena arena;
  wl_stmt *s = NULL;
  wl_error ignored;
  wl_arena_init(&arena);
  bool ok = wl_parse(&arena, sql, n, &s, &ignored) == WL_OK && s->kind == WL_STMT_SELECT &&
            wl_select_reads_table(s->select);
  wl_arena_close(&arena);
  return ok;
}

/* Replaces *stmt by a native statement where that is possible and pays. */
static wl_status take(wl_conn *c, const char *sql, size_t n, sqlite3_stmt **stmt, wl_error *err) {
  wl_sqltext *t = NULL;
  wl_placement where = {0};
  sqlite3_stmt *ours = NULL;
  wl_i64 n_shapes = wl_store_n_shapes(c->store);
  wl_status rc = wl_sqltext_get(c, sql, n, &t, err);
  if (!rc) rc = wl_answer_place(c, t, &where, err);
  if (rc) goto done;
  if (where.engine == WL_ENGINE_SQLITE) {
    wl_conn_reason(c, "sqlite", "%s", where.reason);
    goto done;
  }
  /* A virtual table of ours is of main, so SQLite will lock main too. */
  rc = wl_store_readable(c->store, "main", err);
  if (!rc) rc = wl_sqltext_settle(c, t, err);
  if (!rc && t->query->n_calls) rc = wl_answer_functions(c, t->query, err);
  if (rc) goto done;
  if (wl_store_n_shapes(c->store) != n_shapes) {
    /* SQLite may have prepared with a schema that has changed since; it knows the new one
    ** by now, and the columns' names and types must be of that. */
    sqlite3_stmt *again = NULL;
    int sq = sqlite3_prepare_v2(c->db, t->sql, -1, &again, NULL);
    if (sq == SQLITE_NOMEM)
      rc = wl_nomem(err);
    else if (sq || sqlite3_column_count(again) != t->query->n_results)
      rc = wl_not_taken(err, "the schema changed while it was being prepared");
    if (rc) {
      sqlite3_finalize(again);
      goto done;
    }
    sqlite3_finalize(*stmt);
    *stmt = again;
  }
  if (sqlite3_column_count(*stmt) != t->query->n_results) {
    rc = wl_not_taken(err, "SQLite gives %d columns, not %d", sqlite3_column_count(*stmt),
                      t->query->n_results);
    goto done;
  }
  rc = wl_vtab_prepare(c, t, *stmt, &ours, err);
  if (rc) goto done;
  sqlite3_finalize(*stmt);
  *stmt = ours;
  wl_conn_reason(c, where.engine == WL_ENGINE_GPU ? "gpu" : "cpu", "%s", where.reason);
done:
  if (rc == WL_NOT_TAKEN && t) wl_place_warn(&where, t->query, err);
  wl_sqltext_drop(c, t);
  return rc;
}

/* ignored: the authorizer answered IGNORE. */
static int prepared(wl_conn *c, const char *sql, size_t n, bool ignored, sqlite3_stmt **stmt) {
  wl_error err = {0};
  wl_arena arena;
  wl_stmt *s = NULL;
  if (speaks_of_warplite(sql, n)) return SQLITE_OK;
  sqlite3_stmt *changes = NULL;
  int code;
  wl_status rc = ignored ? WL_NOT_TAKEN : wl_dml_prepare(c, sql, n, *stmt, &changes, &code, &err);
  if (rc == WL_OK) {
    if (!changes) wl_conn_log(c, c->reason, sql, n, -1, 0);
    if (changes) sqlite3_finalize(*stmt);
    if (changes) *stmt = changes;
    return SQLITE_OK;
  }
  if (rc == WL_NOT_TAKEN) rc = WL_OK;
  bool explained = sqlite3_stmt_isexplain(*stmt) != 0;
  if (rc) {
    /* out of memory */
  } else if (c->set.engine == WL_ENGINE_SQLITE) {
    wl_conn_reason(c, "sqlite", "the setting engine=sqlite");
  } else if (ignored) {
    rc = wl_not_taken(&err, WL_IGNORED);
  } else if (explained) {
    sqlite3_stmt *ours = NULL;
    wl_arena_init(&arena);
    rc = wl_parse(&arena, sql, n, &s, &err);
    if (!rc) rc = wl_explain_prepare(c, sql, n, s, &ours, &err);
    if (!rc) {
      sqlite3_finalize(*stmt);
      *stmt = ours;
    }
    wl_arena_close(&arena);
  } else {
    rc = take(c, sql, n, stmt, &err);
  }
  if (rc == WL_NOMEM) {
    sqlite3_finalize(*stmt);
    *stmt = NULL;
    return SQLITE_NOMEM;
  }
  if (rc) wl_conn_reason(c, "sqlite", "%s", err.text);
  if (rc && c->set.strict && !explained && reads_table(sql, n)) {
    char message[600];
    snprintf(message, sizeof message, "warplite: strict, and this statement is not taken: %.450s",
             err.text);
    sqlite3_finalize(*stmt);
    *stmt = NULL;
    return wl_fail_prepare(c->db, SQLITE_ERROR, message);
  }
  /* A native statement is logged when it has run; SQLite's own are out of our sight by then. */
  if (!explained && strncmp(c->reason, "sqlite", 6) == 0) wl_conn_log(c, c->reason, sql, n, -1, 0);
  return SQLITE_OK;
}

/* EXPLAIN ANALYZE, which SQLite does not know: it sees the statement alone. *tail is SQLite's. */
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

/* A statement that SQLite has refused already, with this code and message: once more, for its place
** in the text. SQLite may accept at the second try what it refuses at the first. */
static int refuse_again(sqlite3 *db, const char *sql, int n_bytes, int code, const char *message,
                        const wl_mask *mask) {
  sqlite3_stmt *s = NULL;
  int rc = wl_masked_prepare(db, sql, n_bytes, mask, &s, NULL);
  sqlite3_finalize(s);
  return rc == code ? rc : wl_fail_prepare(db, code, message);
}

/* A change that SQLite refuses because the table is a virtual one: if it is a tablet table, it can
** be done. first: SQLite's code, with this message; they stay in any other case. mask: its
** authorizer's. */
static int prepare_refused(sqlite3 *db, const char *sql, int n_bytes, sqlite3_stmt **out,
                           const char **tail, int first, const char *message,
                           const wl_mask *mask) {
  wl_lexer lex;
  wl_token t;
  wl_error err = {0};
  int kind, rc = first;
  wl_conn *c = wl_conn_find(db); /* no tablet table without it */
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
** Preparing reads: to count rows, to know a table's shape. Where such a read meets an error of the
** disk inside a transaction, SQLite rolls the transaction back. The statement must not run then, as
** if nothing were the matter and on its own.
*/
static int still_inside(sqlite3 *db, sqlite3_stmt **stmt) {
  if (!sqlite3_get_autocommit(db)) return SQLITE_OK;
  sqlite3_finalize(*stmt);
  *stmt = NULL;
  return wl_fail_prepare(db, SQLITE_ERROR,
                         "the transaction was rolled back by an error of the disk "
                         "while the statement was prepared");
}

/* All of warplite_prepare() but the connection's error. */
static int prepare(sqlite3 *db, const char *zSql, int nByte, sqlite3_stmt **ppStmt,
                   const char **pzTail) {
  const char *tail = NULL;
  char *analyzed = wl_analyze_text(zSql, nByte);
  if (analyzed) {
    int st = prepare_analysis(db, zSql, analyzed, ppStmt, &tail);
    sqlite3_free(analyzed);
    if (pzTail) *pzTail = tail;
    return st;
  }
  bool inside = !sqlite3_get_autocommit(db);
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
