/*
** Runs a change. First it reads all of its rows:
**
**   INSERT   the SELECT or VALUES that is inserted
**   UPDATE   the rowid and the new values of each row; live: only the rowid
**   DELETE   the rowid
**
** Then it writes everything at once (dml/bulk.c), or row by row as SQLite asks for the next one. It
** checks in SQLite's order and handles conflicts as SQLite does: OR IGNORE skips a row, OR REPLACE
** deletes the conflicting rows. Any other violation becomes the last row of wl_dml. xUpdate fails
** on it, so that SQLite itself does ROLLBACK, ABORT or FAIL.
**
** Invariants:
** 1. A row of the source makes one row of wl_dml, or none. A violation is the last row.
** 2. last_insert_rowid is set by the user's rows only, whatever was written to shadow tables.
*/
#include "dml/run.h"
#include "dml/text.h"
#include "base/clock.h"
#include "base/mem.h"
#include "value/exchange.h"
#include <stdio.h>
#include <string.h>

static void set_failure(wl_running *r, int code, const char *text) {
  r->run.kind = WL_DMLROW_FAILS;
  r->run.code = code;
  sqlite3_snprintf((int)sizeof r->run.text, r->run.text, "%s", text);
  r->ended = true;
}

static void set_change(wl_running *r, int kind, wl_i64 rowid) {
  r->run.kind = kind;
  r->run.rowid = rowid;
  r->n_changes++;
  if (kind == WL_DMLROW_NEW) r->newest = rowid;
}

/* ---- statements of the run's own */

void wl_params_bind(sqlite3_stmt *s, sqlite3_value **params, int n_params) {
  int n = sqlite3_bind_parameter_count(s);
  for (int i = 0; i < n_params && i < n; i++)
    if (params[i]) sqlite3_bind_value(s, i + 1, params[i]);
}

wl_status wl_running_prepare(wl_running *r, char *sql, sqlite3_stmt **out, wl_error *err) {
  sqlite3 *db = r->m->conn->db;
  if (!sql) return wl_nomem(err);
  int rc = wl_masked_prepare(db, sql, -1, r->mask, out, NULL);
  sqlite3_free(sql);
  if (rc) return wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(db));
  wl_params_bind(*out, r->params, r->n_params);
  return WL_OK;
}

wl_status wl_running_read(wl_running *r, sqlite3_stmt *s, int first, int n, wl_val *out,
                          wl_error *err) {
  enum { PLENTY = 1 << 20 };
  if (r->texts->n_bytes > PLENTY) {
    /* Defaults live there, too. */
    for (int i = 0; i < r->m->decl->n_cols; i++) r->known[i] = false;
    wl_arena_close(r->texts);
    wl_arena_init(r->texts);
  }
  for (int k = 0; k < n; k++) {
    out[k] = wl_sqlite_column(s, first + k);
    if (out[k].t < WL_T_TEXT) continue;
    char *copy = wl_arena_alloc(r->texts, (size_t)out[k].n + 1);
    if (!copy || wl_sqlite_lost(out[k])) return wl_nomem(err);
    if (out[k].n) memcpy(copy, wl_bytes(out[k]), out[k].n);
    out[k].v = (wl_u64)(size_t)copy;
  }
  return WL_OK;
}

/* ---- one row */

/* Handles a conflict that wl_row_conflict found. *skip: the row is left out. *again: the
** conflicting row is gone. Neither: it is a violation, and has been recorded. */
static wl_status meet_conflict(wl_running *r, wl_conflict how, const wl_violation *v, bool *skip,
                               bool *again, wl_error *err) {
  *skip = how == WL_CONFLICT_IGNORE;
  *again = how == WL_CONFLICT_REPLACE && v->key != -2;
  if (*again) {
    bool found;
    return wl_row_delete(r->m->t, v->rowid, &found, err);
  }
  if (!*skip) set_failure(r, v->code, v->text);
  return WL_OK;
}

/* Whether the authorizer tells SET to leave a column unchanged. */
static bool is_left(const wl_running *r, int col) {
  return r->mask && wl_mask_has(r->mask, SQLITE_UPDATE, wl_tablets_name(r->m->t),
                                col == WL_COL_ROWID ? "ROWID" : r->m->decl->cols[col].name);
}

/* Applies sets, whose values are in r->news, to the row at old. */
static wl_status update_row(wl_running *r, wl_i64 old, const wl_setting *sets, int n_sets,
                            wl_conflict how, bool *given, wl_error *err) {
  wl_tablets *t = r->m->t;
  const wl_decl *d = r->m->decl;
  wl_violation v;
  bool found, skip = false, again;
  wl_i64 rowid = old;
  *given = false;
  wl_status rc = wl_row_get(t, old, r->row, &found, err);
  if (rc || !found) return rc; /* OR REPLACE has deleted it */
  for (int k = 0; k < n_sets; k++) {
    if (is_left(r, sets[k].col)) continue;
    if (sets[k].col != WL_COL_ROWID) {
      r->row[sets[k].col] = r->news[k];
      continue;
    }
    bool integer;
    rc = wl_row_rowid(t, r->news[k], &integer, &rowid, err);
    if (rc) return rc;
    *given = !integer;
    if (!integer) set_failure(r, SQLITE_MISMATCH, "datatype mismatch");
    if (!integer) return WL_OK;
  }
  if (d->rowid_col >= 0) r->row[d->rowid_col] = wl_int(rowid);
  bool replace = how == WL_CONFLICT_REPLACE;
  if (replace) rc = wl_row_defaults(t, r->row, err);
  if (!rc) rc = wl_row_check(t, r->row, rowid, replace, &v, err);
  while (!rc && !v.code) {
    rc = wl_row_conflict(t, r->row, rowid, &old, &v, err);
    if (rc || !v.code) break;
    rc = meet_conflict(r, how, &v, &skip, &again, err);
    if (rc || skip || !again) break;
    v.code = 0;
  }
  if (rc || skip) return rc;
  if (v.code) {
    if (v.key == -2) rc = meet_conflict(r, how, &v, &skip, &again, err);
    *given = !skip;
    return rc;
  }
  rc = wl_row_change(t, old, rowid, r->row, err);
  if (rc) return rc;
  set_change(r, WL_DMLROW_CHANGED, rowid);
  *given = true;
  return WL_OK;
}

/* Sets the values of excluded: without the columns' affinities, except that integers of REAL
** columns become reals. SQLite applies affinities earlier only for CHECK constraints and UNIQUE
** keys. */
static void excluded_row(wl_running *r, const wl_val *row) {
  const wl_decl *d = r->m->decl;
  for (int i = 0; i < d->n_cols; i++) {
    bool real = d->cols[i].affinity == 'E' && row[i].t == WL_T_INT;
    r->raw[i] = real ? wl_real((double)(wl_i64)row[i].v) : row[i];
  }
}

/* Reads the row to insert as given, without its rowid. */
static wl_status new_row(wl_running *r, wl_i64 at, wl_error *err) {
  const wl_change *m = r->m;
  wl_status rc = WL_OK;
  for (int i = 0; i < m->decl->n_cols && !rc; i++) {
    r->row[i] = wl_null();
    if (m->from[i] >= 0)
      r->row[i] = wl_source_rows_value(&r->rows, at, m->from[i]);
    else if (i != m->decl->rowid_col)
      rc = wl_running_default(r, i, &r->row[i], err);
  }
  return rc;
}

/* Handles the row that is known to fail, at rowid r->first. */
static wl_status refuse_row(wl_running *r, wl_i64 at, bool *given, wl_error *err) {
  const wl_change *m = r->m;
  wl_violation v = {0};
  wl_status rc = new_row(r, at, err);
  if (m->decl->rowid_col >= 0) r->row[m->decl->rowid_col] = wl_int(r->first);
  if (!rc && r->refusal.key < 0) rc = wl_row_check(m->t, r->row, r->first, false, &v, err);
  if (rc) return rc;
  if (r->refusal.key >= 0) wl_row_say_unique(m->t, r->refusal.key, &v);
  set_failure(r, v.code, v.text);
  *given = true;
  return WL_OK;
}

static wl_status insert_row(wl_running *r, wl_i64 at, bool *given, wl_error *err) {
  const wl_change *m = r->m;
  wl_tablets *t = m->t;
  wl_conflict how = m->d->conflict;
  wl_violation v;
  wl_i64 rowid = 0;
  *given = false;
  if (at == r->refusal.row) return refuse_row(r, at, given, err);
  wl_status rc = new_row(r, at, err);
  wl_val key = m->rowid_from >= 0 ? wl_source_rows_value(&r->rows, at, m->rowid_from) : wl_null();
  bool told = key.t != WL_T_NULL, integer = true;
  if (!rc && told) rc = wl_row_rowid(t, key, &integer, &rowid, err);
  if (!rc && !told) rc = wl_row_new_rowid(t, &rowid, err);
  if (rc) return rc;
  if (!integer) {
    set_failure(r, SQLITE_MISMATCH, "datatype mismatch");
    *given = true;
    return WL_OK;
  }
  if (m->decl->rowid_col >= 0) r->row[m->decl->rowid_col] = wl_int(rowid);
  bool replace = how == WL_CONFLICT_REPLACE;
  if (replace) rc = wl_row_defaults(t, r->row, err);
  if (m->n_clauses) excluded_row(r, r->row);
  if (!rc) rc = wl_row_check(t, r->row, rowid, replace, &v, err);
  if (m->n_clauses && m->decl->n_checks) excluded_row(r, r->row);
  bool skip = false, again = true;
  if (!rc && v.code) {
    rc = meet_conflict(r, how, &v, &skip, &again, err);
    *given = !skip;
    return rc;
  }
  while (!rc) {
    const wl_clause *clause = NULL;
    rc = m->n_clauses ? wl_upsert_conflict(r, r->row, rowid, told, &v, &clause, err)
                      : wl_row_conflict(t, r->row, rowid, NULL, &v, err);
    if (rc || !v.code) break;
    if (clause) {
      bool updates = false;
      /* The rowid is checked last if another clause comes first. */
      if (v.key >= 0 || (clause != m->clauses && m->decl->n_keys)) excluded_row(r, r->row);
      if (clause->u->updates)
        rc = wl_upsert_values(r, clause, r->raw, rowid, v.rowid, &updates, err);
      if (rc || !updates) return rc;
      rc = update_row(r, v.rowid, clause->sets, clause->n_sets, WL_CONFLICT_ABORT, given, err);
      /* ABORT in any case, because the source of the rows fails, and not xUpdate. */
      if (!rc && r->run.kind == WL_DMLROW_FAILS)
        rc = wl_fail(err, (wl_status)r->run.code, "%s", r->run.text);
      return rc;
    }
    rc = meet_conflict(r, how, &v, &skip, &again, err);
    if (rc || again) continue;
    *given = !skip;
    return WL_OK;
  }
  if (!rc) rc = wl_row_put(t, rowid, r->row, err);
  if (rc) return rc;
  set_change(r, WL_DMLROW_NEW, rowid);
  *given = true;
  return WL_OK;
}

static wl_status delete_row(wl_running *r, wl_i64 rowid, bool *given, wl_error *err) {
  bool found = true;
  *given = false;
  wl_status rc = WL_OK;
  if (r->m->d->returning) rc = wl_row_get(r->m->t, rowid, r->row, &found, err);
  if (!rc && found) rc = wl_row_delete(r->m->t, rowid, &found, err);
  if (rc || !found) return rc;
  set_change(r, WL_DMLROW_CHANGED, rowid);
  *given = true;
  return WL_OK;
}

/* ---- rows that are computed while others change (live) */

static wl_status live_open(wl_running *r, wl_error *err) {
  wl_i64 *ids = r->rowids = wl_mem_alloc(((size_t)r->rows.n + 1) * sizeof *ids);
  r->list = wl_mem_zalloc(sizeof *r->list);
  if (!ids || !r->list) return wl_nomem(err);
  for (wl_i64 i = 0; i < r->rows.n; i++) ids[i] = (wl_i64)wl_source_rows_value(&r->rows, i, 0).v;
  *r->list = (wl_rowlist){ids, r->rows.n};
  int n = r->m->d->n_params + 1;
  wl_status rc = wl_running_prepare(r, wl_change_live_sql(r->m, n), &r->live, err);
  if (!rc && sqlite3_bind_pointer(r->live, n, r->list, WL_ROWLIST_TYPE, NULL)) rc = wl_nomem(err);
  return rc;
}

static wl_status live_row(wl_running *r, bool *given, wl_error *err) {
  sqlite3 *db = r->m->conn->db;
  *given = false;
  int st = wl_text_step(r->live);
  r->ended = st != SQLITE_ROW;
  if (st == SQLITE_DONE) return WL_OK;
  if (st != SQLITE_ROW)
    return wl_fail(err, (wl_status)sqlite3_extended_errcode(db), "%s", sqlite3_errmsg(db));
  wl_status rc = wl_running_read(r, r->live, 1, r->m->n_sets, r->news, err);
  if (rc) return rc;
  return update_row(r, sqlite3_column_int64(r->live, 0), r->m->sets, r->m->n_sets,
                    r->m->d->conflict, given, err);
}

/* ---- */

static wl_status next_row(wl_running *r, bool *given, wl_error *err) {
  const wl_change *m = r->m;
  if (r->live) return live_row(r, given, err);
  wl_i64 at = r->at - 1;
  if (m->d->kind == WL_DML_INSERT) return insert_row(r, at, given, err);
  *given = false;
  wl_val rowid = wl_source_rows_value(&r->rows, at, 0);
  if (rowid.t != WL_T_INT) return WL_OK;
  if (m->d->kind == WL_DML_DELETE) return delete_row(r, (wl_i64)rowid.v, given, err);
  for (int k = 0; k < m->n_sets; k++) r->news[k] = wl_source_rows_value(&r->rows, at, k + 1);
  return update_row(r, (wl_i64)rowid.v, m->sets, m->n_sets, m->d->conflict, given, err);
}

/* Whether all rows are done. A live statement ends by itself. */
static bool is_over(const wl_running *r) {
  return r->ended || (!r->live && r->at >= r->rows.n && !r->rows.more);
}

bool wl_running_count(wl_running *r, bool *end) {
  if (!r->counting) return false;
  *end = r->at >= r->rows.n;
  if (*end) return !r->rows.more;
  if (r->m->d->kind == WL_DML_INSERT)
    set_change(r, WL_DMLROW_NEW, r->rowids ? r->rowids[r->at] : r->first + r->at);
  else
    set_change(r, WL_DMLROW_CHANGED, 0);
  r->at++;
  return true;
}

static void say_reason(wl_running *r, const char *why) {
  static const char *const verbs[] = {"INSERT", "UPDATE", "DELETE"};
  wl_conn *c = r->m->conn;
  wl_i64 n = r->n_before + r->rows.n;
  char engine[8] = "sqlite";
  r->in_bulk |= r->counting;
  if (r->in_bulk) strcpy(engine, "cpu");
  if (r->rows.native) snprintf(engine, sizeof engine, "%.3s", r->rows.reason); /* cpu or gpu */
  wl_conn_reason(c, engine, "%s of tablet table %.60s, %lld row%s %s%s%s%.120s; rows from %.200s",
                 verbs[r->m->d->kind], wl_tablets_name(r->m->t), (long long)n, n == 1 ? "" : "s",
                 r->in_bulk ? "in bulk" : "one by one", r->n_before ? ", in pieces" : "",
                 *why ? ": " : "", why, r->rows.reason);
  memcpy(r->reason, c->reason, sizeof r->reason);
}

/* Reads the next piece of the source, and writes it in bulk if possible. */
static wl_status next_piece(wl_running *r, wl_error *err) {
  wl_error why = {0};
  r->n_before += r->rows.n;
  r->at = 0;
  r->counting = false;
  wl_mem_free(r->rowids);
  r->rowids = NULL;
  wl_status rc = wl_conn_check(r->m->conn, err);
  if (!rc) rc = wl_source_rows_more(r->m->conn, &r->rows, err);
  if (rc) return rc;
  rc = r->mask ? WL_NOT_TAKEN : wl_running_bulk(r, &why);
  if (rc && rc != WL_NOT_TAKEN) *err = why;
  if (rc == WL_NOT_TAKEN) rc = WL_OK;
  if (!rc) say_reason(r, why.text);
  return rc;
}

wl_status wl_running_next(wl_running *r, bool *end, wl_error *err) {
  wl_status rc = WL_OK;
  *end = is_over(r);
  bool given = false;
  while (!rc && !given && !*end) {
    if (!r->ended && !r->live && r->at >= r->rows.n) {
      rc = next_piece(r, err);
      given = !rc && wl_running_count(r, end);
      continue;
    }
    wl_row_begin(r->m->t);
    if ((r->at++ & 255) == 255) rc = wl_conn_check(r->m->conn, err);
    if (!rc) rc = next_row(r, &given, err);
    if (!given) *end = is_over(r);
  }
  /* After an error no xUpdate reports the rows before it. */
  sqlite3_set_last_insert_rowid(r->m->conn->db, rc ? r->newest : r->run.last_rowid);
  return rc;
}

/* ---- opening */

/* Limits the memory of an INSERT's source, including what checking and writing it needs. */
static void set_limit(const wl_change *m, wl_source_query *x) {
  enum { LEAST = 16 << 10 };
  wl_i64 n = m->conn->set.host_budget / 8;
  x->limit = n > LEAST ? n : LEAST;
  x->row_bytes = (wl_i64)sizeof(wl_i64); /* the rowid; sorted keys are added below */
  for (int k = 0; k < m->decl->n_keys; k++)
    x->row_bytes += (wl_i64)(sizeof(wl_i64) + (size_t)m->decl->keys[k].n * sizeof(wl_val));
}

/* Whether a row to insert can fail. */
static bool has_constraints(const wl_change *m) {
  bool any = m->decl->n_keys || m->decl->n_checks || m->rowid_from >= 0;
  for (int i = 0; i < m->decl->n_cols; i++) any |= m->decl->cols[i].not_null;
  return any;
}

static wl_status read_source(wl_running *r, const char *refused, wl_error *err) {
  wl_change *m = r->m;
  if (!m->source_sql) m->source_sql = wl_change_source_sql(m);
  if (!m->source_sql) return wl_nomem(err);
  wl_source_rows_close(&r->rows);
  wl_request q = wl_change_request(m, m->source_sql);
  if (refused) q.refused = refused;
  if (r->mask) q.refused = WL_IGNORED;
  if (q.refused) q.cheap = NULL;
  wl_source_query x = {.request = &q,
                       .params = r->params,
                       .n_params = r->n_params,
                       .mask = r->mask,
                       .stmt = &m->source,
                       .target = m->t};
  if (m->d->kind == WL_DML_INSERT) {
    set_limit(m, &x);
    /* With RETURNING, SQLite reads all rows before it writes the first. */
    x.keeps_late = !m->d->returning && has_constraints(m);
  }
  wl_status rc = wl_source_rows_read(m->conn, &x, &r->rows, err);
  int n = m->d->kind == WL_DML_INSERT ? m->n_source : 1 + (m->live ? 0 : m->n_sets);
  if (!rc && r->rows.n_cols != n)
    rc = wl_fail(err, WL_ERROR, "table %s has %d columns but %d values were supplied",
                 wl_tablets_name(m->t), n, r->rows.n_cols);
  return rc;
}

static wl_status read_rows(wl_running *r, wl_error *err) {
  const wl_dml *d = r->m->d;
  if (wl_mask_has(r->mask, SQLITE_INSERT, wl_tablets_name(r->m->t), NULL)) {
    sqlite3_snprintf((int)sizeof r->rows.reason, r->rows.reason, "sqlite: " WL_IGNORED);
    return WL_OK; /* SQLite inserts nothing */
  }
  if (d->default_values) {
    r->rows.n = 1;
    sqlite3_snprintf((int)sizeof r->rows.reason, r->rows.reason, "sqlite: no rows are read");
    return WL_OK;
  }
  wl_status rc = read_source(r, NULL, err);
  if (rc || d->kind == WL_DML_INSERT) return rc;
  bool twice, native = r->rows.native;
  rc = wl_source_rows_sort(&r->rows, &twice, err);
  if (rc || !twice || !native) return rc;
  rc = read_source(r, "a row has several matches, and SQLite uses the last", err);
  return rc ? rc : wl_source_rows_sort(&r->rows, &twice, err);
}

/* Whether wl_dml is used by a statement that may write, as rewritten ones do. A SELECT from wl_dml
** must not change anything. */
static bool is_rewritten(sqlite3 *db) {
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, NULL); s; s = sqlite3_next_stmt(db, s)) {
    const char *sql = sqlite3_stmt_busy(s) && !sqlite3_stmt_readonly(s) ? sqlite3_sql(s) : NULL;
    if (sql && strstr(sql, " FROM wl_dml")) return true;
  }
  return false;
}

/* Copies the arguments, in the order of the parameters' numbers. */
static wl_status take_params(wl_running *r, sqlite3_value **args, int n_args, wl_error *err) {
  const wl_dml *d = r->m->d;
  r->n_params = d->n_params;
  for (int i = 0, k = 0; i < d->n_params && k < n_args; i++) {
    if (!d->params[i]) continue;
    r->params[i] = sqlite3_value_dup(args[k++]);
    if (!r->params[i]) return wl_nomem(err);
  }
  return WL_OK;
}

/* Allocates what every run of the change needs, before the first run. */
static wl_status make_room(wl_change *m, wl_error *err) {
  wl_room *x = &m->room;
  int n = m->decl->n_cols + 1, n_news = m->n_sets;
  for (int k = 0; k < m->n_clauses; k++)
    if (m->clauses[k].n_sets > n_news) n_news = m->clauses[k].n_sets;
  x->news = WL_NEW_N(&m->arena, wl_val, n_news + 1);
  x->defaults = WL_NEW_N(&m->arena, wl_val, n);
  x->known = WL_NEW_N(&m->arena, bool, n);
  x->bound = WL_NEW_N(&m->arena, bool, m->n_clauses + 1);
  x->params = WL_NEW_N(&m->arena, sqlite3_value *, m->d->n_params + 1);
  x->raw = WL_NEW_N(&m->arena, wl_val, n);
  wl_val *row = WL_NEW_N(&m->arena, wl_val, n);
  if (m->arena.failed) return wl_nomem(err);
  x->row = row;
  return WL_OK;
}

static void use_room(wl_running *r) {
  wl_room *x = &r->m->room;
  r->row = x->row;
  r->raw = x->raw;
  r->news = x->news;
  r->defaults = x->defaults;
  r->known = x->known;
  r->bound = x->bound;
  r->params = x->params;
  r->texts = &x->texts;
  memset(r->bound, 0, sizeof *r->bound * (size_t)r->m->n_clauses);
}

wl_status wl_running_open(wl_conn *c, const char *sql, wl_i64 token, sqlite3_value **args,
                          int n_args, wl_mask *mask, wl_running *r, wl_error *err) {
  *r = (wl_running){.started = wl_clock_ns(), .mask = mask, .refusal.row = -1};
  wl_status rc = wl_change_acquire(c, sql, &r->m, err);
  if (!rc && !is_rewritten(c->db))
    rc = wl_fail(err, WL_ERROR, "only statements of warplite_prepare() can use wl_dml");
  if (rc == WL_NOT_TAKEN)
    rc = wl_fail(err, WL_ERROR, "prepare the statement again: %.300s", err->text);
  if (rc) goto done;
  if (!r->m->room.row) rc = make_room(r->m, err);
  if (!rc) use_room(r);
  if (!rc) rc = take_params(r, args, n_args, err);
  if (!rc) {
    wl_dmlrun_open(&r->run, c->db, token);
    wl_tablets_set_run(r->m->t, &r->run);
  }
  r->newest = r->run.last_rowid;
  if (!rc && mask) wl_change_drop_statements(r->m);
  if (!rc) rc = wl_tablets_refresh(r->m->t, err);
  if (!rc) rc = read_rows(r, err);
  wl_error why = {0};
  if (!rc && !r->mask) {
    rc = wl_running_bulk(r, &why);
    if (rc && rc != WL_NOT_TAKEN) *err = why;
    if (rc == WL_NOT_TAKEN) rc = WL_OK;
  }
  if (!rc) say_reason(r, why.text);
  if (!rc && r->m->live) rc = live_open(r, err);
  if (r->run.db) sqlite3_set_last_insert_rowid(c->db, r->run.last_rowid);
done:
  if (rc) wl_running_close(r);
  return rc;
}

void wl_running_close(wl_running *r) {
  if (!r->m) wl_mask_free(r->mask);
  if (!r->m) *r = (wl_running){0};
  if (!r->m) return;
  if (r->reason[0])
    wl_conn_log(r->m->conn, r->reason, r->m->sql, strlen(r->m->sql), r->n_changes,
                (wl_clock_ns() - r->started) / 1e6);
  for (int i = 0; i < r->n_params; i++) {
    sqlite3_value_free(r->params[i]);
    r->params[i] = NULL;
  }
  sqlite3_finalize(r->live);
  wl_mem_free(r->list);
  wl_mem_free(r->rowids);
  if (r->run.db) wl_tablets_set_run(r->m->t, NULL);
  wl_dmlrun_close(&r->run);
  wl_source_rows_close(&r->rows);
  if (r->mask) wl_change_drop_statements(r->m);
  wl_mask_free(r->mask);
  wl_change_release(r->m);
  *r = (wl_running){0};
}
