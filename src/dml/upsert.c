/*
** ON CONFLICT … DO NOTHING and DO UPDATE.
**
** SQLite looks for conflicts of a new row in this order: first the constraints that clauses name,
** in the order of the clauses; then the rowid, if no clause names it; then all other keys. If the
** first clause has no target, the order is that of any INSERT.
*/
#include "dml/run.h"
#include "dml/text.h"
#include "value/exchange.h"
#include <string.h>

/* Whether the rowid or the key is in use. */
static wl_status look(wl_running *r, int key, const wl_val *values, wl_i64 rowid, bool *found,
                      wl_i64 *at, wl_error *err) {
  const wl_decl *d = r->m->decl;
  *at = rowid;
  *found = false;
  if (key == WL_KEY_ROWID) return wl_row_there(r->m->t, rowid, found, err);
  for (int i = 0; i < d->keys[key].n; i++) {
    int col = d->keys[key].cols[i];
    if (col != d->rowid_col && values[col].t == WL_T_NULL) return WL_OK; /* NULL equals nothing */
  }
  return wl_row_find_key(r->m->t, key, values, rowid, found, at, err);
}

static const wl_clause *clause_of(const wl_change *m, int key) {
  for (int k = 0; k < m->n_clauses; k++)
    if (m->clauses[k].key == key || m->clauses[k].key == WL_KEY_ANY) return &m->clauses[k];
  return NULL;
}

static bool named(const wl_change *m, int key, int n_before) {
  for (int k = 0; k < n_before; k++)
    if (m->clauses[k].key == key) return true;
  return false;
}

wl_status wl_upsert_conflict(wl_running *r, const wl_val *values, wl_i64 rowid, bool given,
                             wl_violation *v, const wl_clause **clause, wl_error *err) {
  const wl_change *m = r->m;
  int n_named = 0, n_keys = m->decl->n_keys;
  bool found = false, rowid_done = !given;
  wl_status rc = WL_OK;
  int key = WL_KEY_ANY;
  memset(v, 0, sizeof *v);
  *clause = NULL;
  while (n_named < m->n_clauses && m->clauses[n_named].key != WL_KEY_ANY) n_named++;
  for (int k = 0; k < n_named && !rc && !found; k++) {
    key = m->clauses[k].key;
    if (named(m, key, k) || (key == WL_KEY_ROWID && rowid_done)) continue;
    if (key == WL_KEY_ROWID) rowid_done = true;
    rc = look(r, key, values, rowid, &found, &v->rowid, err);
  }
  if (!rc && !found && !rowid_done) {
    key = WL_KEY_ROWID;
    rc = look(r, key, values, rowid, &found, &v->rowid, err);
  }
  for (int k = 0; k < n_keys && !rc && !found; k++) {
    if (named(m, k, n_named)) continue;
    key = k;
    rc = look(r, key, values, rowid, &found, &v->rowid, err);
  }
  if (rc || !found) return rc;
  *clause = clause_of(m, key);
  v->key = key;
  wl_row_say_unique(m->t, key, v);
  return WL_OK;
}

wl_status wl_upsert_values(wl_running *r, const wl_clause *clause, const wl_val *values,
                           wl_i64 rowid, wl_i64 old, bool *updates, wl_error *err) {
  const wl_change *m = r->m;
  sqlite3 *db = m->conn->db;
  sqlite3_stmt **s = &m->upserts[clause - m->clauses];
  wl_status rc = WL_OK;
  *updates = false;
  if (!*s) rc = wl_running_prepare(r, wl_change_upsert_sql(m, clause), s, err);
  if (rc) return rc;
  if (!r->bound[clause - m->clauses]) wl_params_bind(*s, r->params, r->n_params);
  r->bound[clause - m->clauses] = true;
  int n = sqlite3_bind_parameter_count(*s); /* parameters that are not read have no position */
  for (int i = WL_COL_ROWID; i < m->decl->n_cols && !rc; i++) {
    int p = wl_change_excluded(m, i);
    if (p <= n &&
        wl_sqlite_bind(*s, p, i == WL_COL_ROWID ? wl_int(rowid) : values[i], SQLITE_TRANSIENT))
      rc = wl_nomem(err);
  }
  sqlite3_bind_int64(*s, wl_change_at(m), old);
  int st = rc ? SQLITE_DONE : wl_text_step(*s);
  if (st == SQLITE_ROW) {
    *updates = true;
    rc = wl_running_read(r, *s, 0, clause->n_sets, r->news, err);
  } else if (st != SQLITE_DONE) {
    rc = wl_fail(err, (wl_status)sqlite3_extended_errcode(db), "%s", sqlite3_errmsg(db));
  }
  sqlite3_reset(*s);
  return rc;
}
