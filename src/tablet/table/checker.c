/*
** CHECK constraints. SQLite evaluates them in a separate database in memory. A table with the same
** columns there gives them their affinities and collations.
*/
#include "base/mem.h"
#include "tablet/table/table_impl.h"

typedef struct wl_checker {
  sqlite3 *db;
  sqlite3_stmt *insert; /* inserts a row into that table */
  sqlite3_stmt *test;   /* a constraint that a row of that table breaks, or -1 if none breaks one */
} wl_checker;

void wl_checker_close(wl_checker *c) {
  if (!c) return;
  sqlite3_finalize(c->insert);
  sqlite3_finalize(c->test);
  sqlite3_close(c->db);
  wl_mem_free(c);
}

static wl_status checker_failed(wl_checker *c, wl_error *err) {
  return wl_fail(err, WL_ERROR, "a CHECK constraint cannot be evaluated: %s",
                 sqlite3_errmsg(c->db));
}

static wl_status open_checker(wl_tablets *t, wl_error *err) {
  if (t->checker) return WL_OK;
  wl_checker *c = t->checker = wl_mem_zalloc(sizeof *c);
  if (!c) return wl_nomem(err);
  const wl_decl *d = t->decl;
  /* The file may have changed, so check again that SQLite accepts the constraints. A subquery could
  ** run forever here, where nobody can interrupt it. */
  wl_status sound = wl_declare_verify(d, t->name, err);
  if (sound) {
    wl_checker_close(c);
    t->checker = NULL;
    return sound;
  }
  const char *rowid = wl_decl_rowid_name(d);
  char *columns = wl_decl_delta_sql(&t->arena, d);
  int rc = columns ? sqlite3_open(":memory:", &c->db) : SQLITE_NOMEM;
  char *sql = rc ? NULL : sqlite3_mprintf("CREATE TABLE \"%w\"(%s)", t->name, columns);
  if (!rc) rc = sql ? sqlite3_exec(c->db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (!rc) {
    sqlite3_str *s = sqlite3_str_new(c->db);
    sqlite3_str_appendf(s, "REPLACE INTO \"%w\"(", t->name);
    if (d->rowid_col < 0) sqlite3_str_appendf(s, "%s,", rowid);
    for (int i = 0; i < d->n_cols; i++)
      sqlite3_str_appendf(s, i ? ",\"%w\"" : "\"%w\"", d->cols[i].name);
    sqlite3_str_appendall(s, ") VALUES(");
    if (d->rowid_col < 0) sqlite3_str_appendf(s, "?%d,", d->n_cols + 1);
    for (int i = 0; i < d->n_cols; i++) sqlite3_str_appendf(s, i ? ",?%d" : "?%d", i + 1);
    sqlite3_str_appendall(s, ")");
    sql = sqlite3_str_finish(s);
    rc = sql ? sqlite3_prepare_v2(c->db, sql, -1, &c->insert, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
  }
  if (!rc) {
    sqlite3_str *s = sqlite3_str_new(c->db);
    sqlite3_str_appendall(s, "SELECT CASE");
    for (int i = 0; i < d->n_checks; i++)
      sqlite3_str_appendf(s, " WHEN NOT (%s) THEN %d", d->checks[i].text, i);
    sqlite3_str_appendf(s, " ELSE -1 END AS wl_broken FROM \"%w\" ORDER BY wl_broken < 0 LIMIT 1",
                        t->name);
    sql = sqlite3_str_finish(s);
    rc = sql ? sqlite3_prepare_v2(c->db, sql, -1, &c->test, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
  }
  if (!rc) return WL_OK;
  wl_status st = rc == SQLITE_NOMEM ? wl_nomem(err) : checker_failed(c, err);
  wl_checker_close(c);
  t->checker = NULL;
  return st;
}

/* Removes the rows again. st is the result of the last step: SQLITE_ROW if all went well. */
static wl_status finish_test(wl_checker *c, int st, wl_error *err) {
  wl_status rc = WL_OK;
  if (st != SQLITE_ROW)
    rc = st == SQLITE_NOMEM ? wl_nomem(err)
                            : wl_fail(err, (wl_status)st, "%s", sqlite3_errmsg(c->db));
  sqlite3_reset(c->test);
  sqlite3_clear_bindings(c->insert);
  sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
  return rc;
}

wl_status wl_checker_row(wl_tablets *t, const wl_val *values, wl_i64 rowid, int *broken,
                         wl_error *err) {
  *broken = -1;
  if (!t->decl->n_checks) return WL_OK;
  wl_status rc = open_checker(t, err);
  if (rc) return rc;
  wl_checker *c = t->checker;
  for (int i = 0; i < t->n_cols; i++)
    wl_sqlite_bind(c->insert, i + 1, i == t->decl->rowid_col ? wl_int(rowid) : values[i],
                   SQLITE_STATIC);
  if (t->decl->rowid_col < 0) sqlite3_bind_int64(c->insert, t->n_cols + 1, rowid);
  sqlite3_exec(c->db, "BEGIN", NULL, NULL, NULL);
  int st = sqlite3_step(c->insert);
  sqlite3_reset(c->insert);
  if (st == SQLITE_DONE) {
    st = sqlite3_step(c->test);
    if (st == SQLITE_ROW) *broken = sqlite3_column_int(c->test, 0);
  }
  return finish_test(c, st, err);
}

static void bind_row(wl_tablets *t, const wl_bulk_rows *r, wl_i64 i) {
  wl_i64 rowid = r->rowids ? r->rowids[i] : r->first + i;
  for (int k = 0; k < t->n_cols; k++)
    wl_sqlite_bind(t->checker->insert, k + 1,
                   k == t->decl->rowid_col ? wl_int(rowid) : wl_column_value(r->cols[k], i),
                   SQLITE_STATIC);
  if (t->decl->rowid_col < 0) sqlite3_bind_int64(t->checker->insert, t->n_cols + 1, rowid);
}

/* Whether one of the rows from `at` to `end` breaks a constraint. */
static wl_status test_rows(wl_tablets *t, const wl_bulk_rows *r, wl_i64 at, wl_i64 end,
                           bool *broken, wl_error *err) {
  wl_checker *c = t->checker;
  int st = SQLITE_DONE;
  sqlite3_exec(c->db, "BEGIN", NULL, NULL, NULL);
  for (wl_i64 i = at; i < end && st == SQLITE_DONE; i++) {
    bind_row(t, r, i);
    st = sqlite3_step(c->insert);
    sqlite3_reset(c->insert);
  }
  if (st == SQLITE_DONE) st = sqlite3_step(c->test);
  *broken = st == SQLITE_ROW && sqlite3_column_int(c->test, 0) >= 0;
  return finish_test(c, st, err);
}

wl_status wl_checker_rows(wl_tablets *t, const wl_bulk_rows *r, wl_i64 *row, wl_error *err) {
  bool broken = false;
  *row = r->n;
  if (!t->decl->n_checks || r->n == 0) return WL_OK;
  wl_status rc = open_checker(t, err);
  wl_i64 at = 0, end = r->n;
  for (; at < r->n && !broken && !rc; at = broken ? at : end) {
    end = at + WL_TABLET_ROWS < r->n ? at + WL_TABLET_ROWS : r->n;
    rc = test_rows(t, r, at, end, &broken, err);
  }
  if (rc || !broken) return rc;
  while (end - at > 1 && !rc) { /* finds the first such row by bisection */
    wl_i64 mid = at + (end - at) / 2;
    rc = test_rows(t, r, at, mid, &broken, err);
    if (broken)
      end = mid;
    else
      at = mid;
  }
  *row = at;
  return rc;
}
