/*
** Small read-only virtual tables; see rowset.h. xFilter computes the rows, which live in the
** cursor's arena.
*/
#include "route/rowset.h"
#include "base/authorizer.h"
#include "base/mem.h"
#include "base/vtab.h"
#include <string.h>

typedef struct rowset_module {
  wl_conn *conn;
  const wl_rowset_def *def;
} rowset_module;

typedef struct rowset_table {
  sqlite3_vtab base;
  const rowset_module *e;
} rowset_table;

typedef struct rowset_cursor {
  sqlite3_vtab_cursor base;
  wl_rowset rows;
  int at;
} rowset_cursor;

wl_cell *wl_rowset_row(wl_rowset *r) {
  if (r->n_rows == r->size_rows) {
    int size = r->size_rows ? r->size_rows * 2 : 16;
    wl_cell *p = WL_NEW_N(&r->arena, wl_cell, size * r->n_cols);
    if (!p) return NULL;
    if (r->n_rows) memcpy(p, r->cells, (size_t)r->n_rows * (size_t)r->n_cols * sizeof *p);
    r->cells = p;
    r->size_rows = size;
  }
  return r->cells + r->n_cols * r->n_rows++;
}

void wl_cell_int(wl_cell *c, wl_i64 i) {
  c->t = WL_T_INT;
  c->i = i;
}
void wl_cell_real(wl_cell *c, double r) {
  c->t = WL_T_REAL;
  c->r = r;
}
void wl_cell_text(wl_rowset *r, wl_cell *c, const char *s) {
  if (!s) return;
  c->t = WL_T_TEXT;
  c->s = wl_arena_strndup(&r->arena, s, strlen(s));
}

static int xconnect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                    char **msg) {
  (void)argc;
  (void)argv;
  (void)msg;
  const rowset_module *e = aux;
  int rc = wl_vtab_new(db, e->def->declaration, e->def->n_hidden > 0, sizeof(rowset_table), out);
  if (!rc) ((rowset_table *)*out)->e = e;
  return rc;
}

enum { UNASKED = 1 }; /* idxNum, as in api/vtab.c */

static int xbest_index(sqlite3_vtab *v, sqlite3_index_info *info) {
  const wl_rowset_def *d = ((rowset_table *)v)->e->def;
  int n_given, text, rc = wl_vtab_arguments(info, d->n_cols, &n_given, &text);
  if (rc) return rc;
  info->idxNum = d->n_hidden && !((rowset_table *)v)->e->conn->preparing ? UNASKED : 0;
  info->estimatedCost = 10;
  info->estimatedRows = 10;
  return d->n_hidden && text < 0 ? SQLITE_ERROR : SQLITE_OK;
}
static int xopen(sqlite3_vtab *v, sqlite3_vtab_cursor **out) {
  (void)v;
  return wl_vtab_new_cursor(sizeof(rowset_cursor), out);
}

static int xclose(sqlite3_vtab_cursor *p) {
  wl_arena_close(&((rowset_cursor *)p)->rows.arena);
  sqlite3_free(p);
  return SQLITE_OK;
}

/* Whether the authorizer allows a statement. */
static wl_status ask(wl_conn *c, const char *sql, wl_error *err) {
  sqlite3_stmt *s = NULL;
  wl_mask *mask = NULL;
  int rc = wl_ask_prepare(c->db, sql, -1, &s, NULL, &mask);
  bool ignored = wl_mask_ignores(mask);
  sqlite3_finalize(s);
  wl_mask_free(mask);
  if (rc) return wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(c->db));
  return ignored ? wl_fail(err, (wl_status)SQLITE_AUTH, WL_IGNORED) : WL_OK;
}

static int xfilter(sqlite3_vtab_cursor *p, int idx, const char *str, int argc,
                   sqlite3_value **argv) {
  (void)str;
  rowset_cursor *c = (rowset_cursor *)p;
  const rowset_module *e = ((rowset_table *)p->pVtab)->e;
  wl_arena_close(&c->rows.arena);
  memset(&c->rows, 0, sizeof c->rows);
  c->rows.n_cols = e->def->n_cols;
  c->at = 0;
  c->rows.args = argc > 1 ? argv[1] : NULL;
  wl_error err = {0};
  const char *text = argc ? (const char *)sqlite3_value_text(argv[0]) : NULL;
  if (e->def->n_hidden && !text) return SQLITE_OK;
  wl_status rc = idx == UNASKED ? ask(e->conn, text, &err) : WL_OK;
  if (!rc) rc = e->def->fill(e->conn, text, &c->rows, &err);
  c->rows.args = NULL;
  if (!rc && c->rows.arena.failed) rc = wl_nomem(&err);
  if (!rc) return SQLITE_OK;
  wl_vtab_say(p->pVtab, err.text);
  return rc == WL_NOT_TAKEN ? SQLITE_ERROR : (int)rc;
}
static int xnext(sqlite3_vtab_cursor *p) {
  ((rowset_cursor *)p)->at++;
  return SQLITE_OK;
}
static int xeof(sqlite3_vtab_cursor *p) {
  return ((rowset_cursor *)p)->at >= ((rowset_cursor *)p)->rows.n_rows;
}
static int xcolumn(sqlite3_vtab_cursor *p, sqlite3_context *ctx, int col) {
  rowset_cursor *c = (rowset_cursor *)p;
  if (col >= c->rows.n_cols) return SQLITE_OK;
  const wl_cell *cell = &c->rows.cells[c->at * c->rows.n_cols + col];
  if (cell->t == WL_T_INT)
    sqlite3_result_int64(ctx, cell->i);
  else if (cell->t == WL_T_REAL)
    sqlite3_result_double(ctx, cell->r);
  else if (cell->t == WL_T_TEXT)
    sqlite3_result_text(ctx, cell->s, -1, SQLITE_TRANSIENT);
  return SQLITE_OK;
}
static int xrowid(sqlite3_vtab_cursor *p, sqlite3_int64 *out) {
  *out = ((rowset_cursor *)p)->at + 1;
  return SQLITE_OK;
}

static const sqlite3_module module = {
    .xConnect = xconnect,
    .xDisconnect = wl_vtab_free,
    .xBestIndex = xbest_index,
    .xOpen = xopen,
    .xClose = xclose,
    .xFilter = xfilter,
    .xNext = xnext,
    .xEof = xeof,
    .xColumn = xcolumn,
    .xRowid = xrowid,
};

int wl_rowset_register(wl_conn *c, const wl_rowset_def *def) {
  rowset_module *e = wl_mem_zalloc(sizeof *e);
  if (!e) return SQLITE_NOMEM;
  e->conn = c;
  e->def = def;
  return sqlite3_create_module_v2(c->db, def->name, &module, e, wl_mem_free);
}
