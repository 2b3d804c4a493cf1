/*
** Prepares INSERT, UPDATE and DELETE of a tablet table. SQLite prepares the original first, so a
** wrong statement fails with SQLite's own error. SQLite refuses some correct statements because the
** table is virtual. Those parts are removed or rewritten, and SQLite checks the result.
*/
#include "dml/dml.h"
#include "dml/text.h"
#include "base/mem.h"
#include "route/error.h"
#include "sql/lex.h"
#include <stdio.h>
#include <string.h>

/* For RETURNING SQLite reports the error first and then continues. So another message may follow,
** such as that there is no table with the name of a WITH entry. */
bool wl_dml_refused(const char *message, const char *sql, size_t n) {
  if (strncmp(message, "UPSERT not implemented for virtual table", 40) == 0) return true;
  wl_lexer lex;
  wl_token t;
  wl_lex_init(&lex, sql, n);
  while (wl_lex_next(&lex, &t) > 0)
    if (wl_lex_is(sql, t, "RETURNING")) return true;
  return false;
}

/* Sets SQLite's message again, but without the position, which is one in another text. */
static int repeat_message(wl_conn *c, int rc) {
  char *message = rc == SQLITE_ERROR ? wl_mem_strdup(sqlite3_errmsg(c->db)) : NULL;
  if (message) rc = wl_fail_prepare(c->db, rc, message);
  wl_mem_free(message);
  return rc;
}

/* Prepares a text only for its errors, with SQLite's message, and for the authorizer's answers.
** Frees the text. part: it is an expression of the application inside a SELECT of ours. */
static int check_text(wl_conn *c, char *sql, bool part, wl_mask **mask) {
  sqlite3_stmt *s = NULL;
  if (!sql) return SQLITE_NOMEM;
  int rc =
      part ? wl_ask_part(c->db, sql, &s, mask) : wl_ask_prepare(c->db, sql, -1, &s, NULL, mask);
  sqlite3_free(sql);
  if (!rc) sqlite3_finalize(s);
  return repeat_message(c, rc);
}

/* Inside ON CONFLICT, a table named excluded would hide the row of that name. */
static bool hides_excluded(const wl_change *m) {
  const wl_dml *d = m->d;
  size_t n = d->upserts_at.end;
  wl_lexer lex;
  wl_token t;
  wl_lex_init(&lex, m->sql, n);
  lex.pos = d->upserts_at.pos;
  for (int kind; (kind = wl_lex_next(&lex, &t)) > 0;) {
    if (!wl_lex_is(m->sql, t, "EXCLUDED") && !wl_lex_is(m->sql, t, "\"EXCLUDED\"")) continue;
    wl_lexer ahead = lex;
    if (wl_lex_next(&ahead, &t) <= 0 || m->sql[t.pos] != '.') return true;
  }
  return false;
}

/* Checks ON CONFLICT(columns), and asks the authorizer about them. A column that it ignores does
** not count. */
static int check_target(wl_change *m, const wl_clause *c, wl_mask **mask) {
  wl_mask *own = NULL;
  if (!c->u->target) return SQLITE_OK;
  int rc = check_text(m->conn, wl_change_target_sql(m, c), true, &own);
  if (!rc && wl_mask_ignores(own)) {
    char message[100] = "", which[16] = "";
    if (m->n_clauses > 1)
      sqlite3_snprintf((int)sizeof which, which, "%r ", (int)(c - m->clauses) + 1);
    sqlite3_snprintf((int)sizeof message, message, WL_NO_TARGET, which);
    rc = wl_fail_prepare(m->conn->db, SQLITE_ERROR, message);
  }
  if (!*mask)
    *mask = own;
  else
    wl_mask_free(own);
  return rc;
}

/* Checks the parts that SQLite did not check because it refused the statement for virtual
** tables. */
static int check_rest(wl_change *m, wl_mask **mask, wl_error *err) {
  wl_conn *c = m->conn;
  int rc = check_text(c, wl_change_checked_sql(m), false, mask);
  if (rc) return rc;
  wl_status st = wl_change_bind(m, err);
  if (st == WL_NOMEM) return SQLITE_NOMEM;
  if (st) return wl_fail_prepare(c->db, SQLITE_ERROR, err->text);
  if (m->n_clauses && hides_excluded(m))
    return wl_fail_prepare(c->db, SQLITE_ERROR,
                           "a table named excluded cannot be used in ON CONFLICT here");
  for (int k = 0; k < m->n_clauses && !rc; k++) rc = check_target(m, &m->clauses[k], mask);
  for (int k = 0; k < m->n_clauses && !rc; k++)
    if (m->clauses[k].u->updates)
      rc = check_text(c, wl_change_clause_sql(m, &m->clauses[k]), false, mask);
  return rc;
}

/* Sets the reason with the engine that will find the rows, as far as it is known. */
static wl_status foresee(wl_change *m, wl_error *err) {
  static const char *const verbs[] = {"INSERT", "UPDATE", "DELETE"};
  wl_decision d;
  char *sql = m->d->default_values ? sqlite3_mprintf("") : wl_change_source_sql(m);
  if (!sql) return wl_nomem(err);
  wl_request q = wl_change_request(m, sql);
  wl_status rc = wl_route(m->conn, &q, &d, err);
  size_t engine = strcspn(d.reason, ":");
  if (!rc) {
    char name[8];
    snprintf(name, sizeof name, "%.*s", (int)engine, d.reason);
    wl_conn_reason(m->conn, name, "%s of tablet table %.100s; its rows: %.300s", verbs[m->d->kind],
                   wl_tablets_name(m->t), d.reason + engine + 2);
  }
  wl_decision_close(&d);
  sqlite3_free(sql);
  return rc;
}

/* Whether the change is rewritten at all. *stays: SQLite runs it best, through xUpdate, and the
** reason is set. WL_NOT_TAKEN: it uses functions or tables of warplite. */
static wl_status ask_whole(const wl_change *m, bool *stays, wl_error *err) {
  char why[160];
  wl_decision d;
  wl_request q = {.sql = m->sql, .n_sql = strlen(m->sql), .is_part = true, .refused = "rewritten"};
  if (wl_change_small(m)) {
    sqlite3_snprintf((int)sizeof why, why, "a change of a row or two of tablet table %.100s",
                     wl_tablets_name(m->t));
    q.cheap = why;
  }
  wl_status rc = wl_route(m->conn, &q, &d, err);
  *stays = !rc && d.is_cheap;
  if (*stays) wl_conn_set_reason(m->conn, d.reason);
  if (!rc && d.about_warplite) rc = wl_not_taken(err, "it uses functions or tables of warplite");
  wl_decision_close(&d);
  return rc;
}

wl_status wl_dml_prepare(wl_conn *c, const char *sql, size_t n, sqlite3_stmt *original,
                         sqlite3_stmt **out, int *rc, wl_error *err) {
  wl_change m;
  wl_mask *mask = NULL;
  *out = NULL;
  *rc = SQLITE_OK;
  wl_status st = wl_change_open(c, sql, n, &m, err);
  if (st) return st;
  st = wl_conn_keep_helpers(c, err);
  if (st) goto done;
  if (original) {
    st = wl_change_bind(&m, err);
    if (st && st != WL_NOMEM) st = wl_not_taken(err, "%s", err->text);
  } else {
    *rc = check_rest(&m, &mask, err);
    st = *rc == SQLITE_NOMEM ? wl_nomem(err) : *rc ? WL_ERROR : WL_OK;
  }
  if (st) goto done;
  bool stays = false;
  if (original) st = ask_whole(&m, &stays, err);
  if (st || stays) goto done;
  if (m.d->returning) st = wl_dml_module(c, m.decl->n_cols, err);
  if (!st) st = foresee(&m, err);
  if (st) goto done;
  bool ignored = wl_mask_ignores(mask);
  if (ignored) wl_conn_reason(c, "sqlite", WL_IGNORED);
  char *answers = ignored ? wl_mask_text(mask) : NULL;
  char *text = ignored && !answers ? NULL : wl_change_outer_sql(&m, answers);
  sqlite3_free(answers);
  if (!text)
    *rc = SQLITE_NOMEM;
  else if (original)
    *rc = sqlite3_prepare_v2(c->db, text, -1, out, NULL);
  else
    *rc = wl_ask_part(c->db, text, out, &mask); /* SQLite has not checked RETURNING yet */
  sqlite3_free(text);
  if (*rc == SQLITE_NOMEM) st = wl_nomem(err);
  if (!st && *rc && !original) *rc = repeat_message(c, *rc);
  if (!st && *rc) st = original ? wl_not_taken(err, "%.300s", sqlite3_errmsg(c->db)) : WL_ERROR;
  if (!st && original &&
      sqlite3_bind_parameter_count(*out) != sqlite3_bind_parameter_count(original)) {
    sqlite3_finalize(*out);
    *out = NULL;
    st = wl_not_taken(err, "its parameters cannot be passed to warplite");
  }
done:
  wl_mask_free(mask);
  wl_change_close(&m);
  return st;
}

wl_status wl_dml_ask(wl_conn *c, const char *sql, wl_mask **mask, int *rc, wl_error *err) {
  wl_change m;
  wl_status st = wl_change_open(c, sql, strlen(sql), &m, err);
  if (st) return st;
  *rc = check_rest(&m, mask, err);
  wl_change_close(&m);
  return *rc == SQLITE_NOMEM ? wl_nomem(err) : WL_OK;
}
