/*
** The virtual table module `tablet`: how SQLite sees a tablet table. vtab_plan.c and vtab_filter.c
** choose the rows to read, cursor.c and walk.c read them, vtab_write.c and row.c write. table.c
** handles the end of a transaction.
*/
#include "tablet/vtab/vtab.h"
#include "tablet/vtab/vtab_impl.h"
#include <string.h>

/* ---- creating, opening, dropping */

static int open_table(sqlite3 *db, bool create, int argc, const char *const *argv,
                      sqlite3_vtab **out, char **msg) {
  wl_error err = {0};
  wl_tablets *t = NULL;
  wl_tablet_table *v = sqlite3_malloc(sizeof *v);
  if (!v) return SQLITE_NOMEM;
  memset(v, 0, sizeof *v);
  wl_status rc = wl_tablets_open(db, argv[1], argv[2], create, argv + 3, argc - 3, &t, &err);
  if (rc) {
    *msg = sqlite3_mprintf("%s", err.text);
    sqlite3_free(v);
    return rc == WL_NOT_TAKEN ? SQLITE_ERROR : (int)rc;
  }
  char *sql = wl_decl_vtab_sql(&t->arena, t->decl, t->name);
  int st = sql ? sqlite3_declare_vtab(db, sql) : SQLITE_NOMEM;
  if (!st) st = sqlite3_vtab_config(db, SQLITE_VTAB_CONSTRAINT_SUPPORT, 1);
  if (!st) st = sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
  if (st) {
    *msg = sqlite3_mprintf("%s", sqlite3_errmsg(db));
    wl_tablets_close(t);
    sqlite3_free(v);
    return st;
  }
  v->t = t;
  *out = &v->base;
  return SQLITE_OK;
}

static int xcreate(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                   char **msg) {
  (void)aux;
  return open_table(db, true, argc, argv, out, msg);
}

static int xconnect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                    char **msg) {
  (void)aux;
  return open_table(db, false, argc, argv, out, msg);
}

static int xdisconnect(sqlite3_vtab *v) {
  wl_tablets_close(((wl_tablet_table *)v)->t);
  return wl_vtab_free(v);
}

static int xdestroy(sqlite3_vtab *v) {
  wl_error err = {0};
  if (wl_tablets_destroy(((wl_tablet_table *)v)->t, &err)) return wl_vtab_fail(v, &err);
  return xdisconnect(v);
}

static int xrename(sqlite3_vtab *v, const char *name) {
  wl_error err = {0};
  return wl_tablets_rename(((wl_tablet_table *)v)->t, name, &err) ? wl_vtab_fail(v, &err)
                                                                  : SQLITE_OK;
}

static int xshadow_name(const char *suffix) {
  return wl_tablets_shadow_name(suffix);
}

/* ---- transactions */

static int xbegin(sqlite3_vtab *v) {
  (void)v;
  return SQLITE_OK;
}

static int xsync(sqlite3_vtab *v) {
  wl_tablets *t = ((wl_tablet_table *)v)->t;
  wl_error err = {0};
  sqlite3_int64 last = sqlite3_last_insert_rowid(t->db);
  wl_status rc = wl_tablets_sync(t, &err);
  sqlite3_set_last_insert_rowid(t->db, last);
  return rc ? wl_vtab_fail(v, &err) : SQLITE_OK;
}

static int xcommit(sqlite3_vtab *v) {
  wl_tablets_committed(((wl_tablet_table *)v)->t);
  return SQLITE_OK;
}

static int xrollback(sqlite3_vtab *v) {
  wl_tablets_rolled_back(((wl_tablet_table *)v)->t, true);
  return SQLITE_OK;
}

static int xsavepoint(sqlite3_vtab *v, int n) {
  wl_spill_savepoint(((wl_tablet_table *)v)->t, n);
  return SQLITE_OK;
}

static int xrelease(sqlite3_vtab *v, int n) {
  wl_spill_released(((wl_tablet_table *)v)->t, n);
  return SQLITE_OK;
}

static int xrollback_to(sqlite3_vtab *v, int n) {
  wl_spill_rolled_back(((wl_tablet_table *)v)->t, n);
  wl_tablets_rolled_back(((wl_tablet_table *)v)->t, false);
  return SQLITE_OK;
}

/* ---- reading */

static int xopen(sqlite3_vtab *v, sqlite3_vtab_cursor **out) {
  wl_error err = {0};
  int rc = wl_vtab_new_cursor(sizeof(wl_tablet_cursor), out);
  if (rc || !wl_row_reader_open(&((wl_tablet_cursor *)*out)->rows, ((wl_tablet_table *)v)->t, &err))
    return rc;
  sqlite3_free(*out);
  *out = NULL;
  return wl_vtab_fail(v, &err);
}

static int xclose(sqlite3_vtab_cursor *p) {
  wl_tablet_cursor *c = (wl_tablet_cursor *)p;
  wl_walk_stop(&c->walk, c->rows.t);
  wl_row_reader_close(&c->rows);
  wl_tablet_drop_bounds(c);
  sqlite3_free(c);
  return SQLITE_OK;
}

static int xeof(sqlite3_vtab_cursor *p) {
  return ((wl_tablet_cursor *)p)->rows.end;
}

static int xcolumn(sqlite3_vtab_cursor *p, sqlite3_context *ctx, int col) {
  wl_tablet_cursor *c = (wl_tablet_cursor *)p;
  wl_error err = {0};
  wl_val v;
  if (col >= c->rows.t->n_cols) return SQLITE_OK; /* the hidden column for commands is NULL */
  if (wl_row_reader_value(&c->rows, col, &v, &err)) return wl_vtab_fail(p->pVtab, &err);
  wl_sqlite_result(ctx, v, SQLITE_TRANSIENT);
  return SQLITE_OK;
}

static int xrowid(sqlite3_vtab_cursor *p, sqlite3_int64 *out) {
  *out = ((wl_tablet_cursor *)p)->rows.rowid;
  return SQLITE_OK;
}

static sqlite3_module module = {
    .iVersion = 3,
    .xCreate = xcreate,
    .xConnect = xconnect,
    .xBestIndex = wl_tablet_best_index,
    .xDisconnect = xdisconnect,
    .xDestroy = xdestroy,
    .xOpen = xopen,
    .xClose = xclose,
    .xFilter = wl_tablet_filter,
    .xNext = wl_tablet_next,
    .xEof = xeof,
    .xColumn = xcolumn,
    .xRowid = xrowid,
    .xUpdate = wl_tablet_update,
    .xBegin = xbegin,
    .xSync = xsync,
    .xCommit = xcommit,
    .xRollback = xrollback,
    .xRename = xrename,
    .xSavepoint = xsavepoint,
    .xRelease = xrelease,
    .xRollbackTo = xrollback_to,
    .xShadowName = xshadow_name,
};

int wl_tablet_register(sqlite3 *db) {
  return sqlite3_create_module_v2(db, "tablet", &module, NULL, NULL);
}
