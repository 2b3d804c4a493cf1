/*
** wl_dml is the table-valued function whose rows are the changes of a statement: wl_dml('<SQL>',
** token [, wl_args(…) [, mask]]). mask is the authorizer's answers if one is IGNORE. Its column k
** is the token that xUpdate of the changed table reads. For RETURNING, wl_dml_<n> also has r, the
** rowid, and c0, c1, …, the row of n columns. Without RETURNING k is not read: the token is a
** constant of the text and the second argument of wl_dml.
**
** wl_rowids is a list of rowids that our statements pass by pointer.
*/
#include "dml/dml.h"
#include "dml/run.h"
#include "route/args.h"
#include "base/mem.h"
#include "base/vtab.h"
#include "value/exchange.h"
#include <stdio.h>
#include <string.h>

typedef struct module_data {
  wl_conn *conn;
  int n_cols; /* columns of the row; -1: wl_dml */
} module_data;

typedef struct dml_table {
  sqlite3_vtab base;
  const module_data *data;
} dml_table;

typedef struct dml_cursor {
  sqlite3_vtab_cursor base;
  wl_running r;
  wl_i64 rowid;
  bool end;
} dml_cursor;

static int first_hidden(const module_data *d) {
  return d->n_cols < 0 ? 1 : d->n_cols + 2;
}

static int xconnect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                    char **msg) {
  (void)argc;
  (void)argv;
  (void)msg;
  const module_data *d = aux;
  sqlite3_str *s = sqlite3_str_new(db);
  sqlite3_str_appendall(s, d->n_cols < 0 ? "CREATE TABLE x(k" : "CREATE TABLE x(k,r");
  for (int i = 0; i < d->n_cols; i++) sqlite3_str_appendf(s, ",c%d", i);
  sqlite3_str_appendall(s, ",sql HIDDEN,token HIDDEN,args HIDDEN,mask HIDDEN)");
  char *sql = sqlite3_str_finish(s);
  int rc = wl_vtab_new(db, sql, true, sizeof(dml_table), out);
  sqlite3_free(sql);
  if (!rc) ((dml_table *)*out)->data = d;
  return rc;
}

enum { UNASKED = 1, MASKED }; /* idxNum, as in api/vtab.c */

/* Asks the authorizer about the original when SQLite prepares a statement again. */
static int check_again(wl_conn *c, sqlite3_index_info *info, int at) {
  sqlite3_value *text = NULL;
  info->idxNum = UNASKED;
  if (sqlite3_vtab_rhs_value(info, at, &text) != SQLITE_OK || !text) return SQLITE_OK;
  const char *sql = (const char *)sqlite3_value_text(text);
  if (!sql) return SQLITE_OK;
  info->idxNum = 0;
  wl_mask *mask = NULL;
  wl_error err;
  int rc;
  wl_status st = wl_dml_ask(c, sql, &mask, &rc, &err);
  if (!st && rc == SQLITE_AUTH) {
    info->idxNum = UNASKED;
  } else if (!st && wl_mask_ignores(mask)) {
    info->idxNum = MASKED;
    info->idxStr = wl_mask_text(mask);
    info->needToFreeIdxStr = 1;
    if (!info->idxStr) st = WL_NOMEM;
  }
  wl_mask_free(mask);
  return st == WL_NOMEM ? SQLITE_NOMEM : SQLITE_OK;
}

static int xbest_index(sqlite3_vtab *v, sqlite3_index_info *info) {
  const module_data *d = ((dml_table *)v)->data;
  int n_given, text, rc = wl_vtab_arguments(info, first_hidden(d), &n_given, &text);
  if (rc) return rc;
  if (text < 0) {
    wl_vtab_say(v, "wl_dml needs the text of a statement");
    return SQLITE_ERROR;
  }
  rc = d->conn->preparing ? SQLITE_OK : check_again(d->conn, info, text);
  if (rc) return rc;
  if (info->idxNum != MASKED) info->idxStr = sqlite3_mprintf("%s", d->conn->reason);
  info->needToFreeIdxStr = 1;
  info->estimatedCost = 1;
  info->estimatedRows = 1000;
  return SQLITE_OK;
}

static int xopen(sqlite3_vtab *v, sqlite3_vtab_cursor **out) {
  (void)v;
  return wl_vtab_new_cursor(sizeof(dml_cursor), out);
}

static int xclose(sqlite3_vtab_cursor *p) {
  wl_running_close(&((dml_cursor *)p)->r);
  sqlite3_free(p);
  return SQLITE_OK;
}

static int step(dml_cursor *c) {
  if (wl_running_count(&c->r, &c->end)) return SQLITE_OK;
  wl_error err = {0};
  return wl_running_next(&c->r, &c->end, &err) ? wl_vtab_fail(c->base.pVtab, &err) : SQLITE_OK;
}

/* The authorizer's answers for the run; see api/vtab.c. */
static wl_status masked(wl_conn *c, const char *sql, int idx, const char *answers, wl_mask **mask,
                        wl_error *err) {
  int rc = SQLITE_OK;
  if (idx == UNASKED) {
    wl_status st = wl_dml_ask(c, sql, mask, &rc, err);
    if (!st && rc) st = wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(c->db));
    if (st || !wl_mask_ignores(*mask)) {
      wl_mask_free(*mask);
      *mask = NULL;
    }
    return st;
  }
  if (answers) *mask = wl_mask_read(answers);
  return answers && !*mask ? wl_nomem(err) : WL_OK;
}

static int xfilter(sqlite3_vtab_cursor *p, int idx, const char *str, int argc,
                   sqlite3_value **argv) {
  dml_cursor *c = (dml_cursor *)p;
  const module_data *d = ((dml_table *)p->pVtab)->data;
  wl_error err = {0};
  wl_running_close(&c->r);
  c->end = true;
  c->rowid = 1;
  const char *sql = argc ? (const char *)sqlite3_value_text(argv[0]) : NULL;
  if (!sql) return SQLITE_OK;
  sqlite3_value **args = NULL;
  int n_args = argc > 2 ? wl_args_values(argv[2], &args) : 0;
  wl_i64 token = argc > 1 ? sqlite3_value_int64(argv[1]) : 0;
  wl_mask *mask = NULL;
  if (masked(d->conn, sql, idx,
             idx == MASKED ? str
             : argc > 3    ? (const char *)sqlite3_value_text(argv[3])
                           : NULL,
             &mask, &err))
    return wl_vtab_fail(p->pVtab, &err);
  if (wl_running_open(d->conn, sql, token, args, n_args, mask, &c->r, &err))
    return wl_vtab_fail(p->pVtab, &err);
  if (d->n_cols >= 0 && d->n_cols != c->r.m->decl->n_cols) {
    wl_fail(&err, WL_ERROR, "the table's columns have changed; prepare the statement again");
    return wl_vtab_fail(p->pVtab, &err);
  }
  return step(c);
}

static int xnext(sqlite3_vtab_cursor *p) {
  ((dml_cursor *)p)->rowid++;
  return step((dml_cursor *)p);
}

static int xeof(sqlite3_vtab_cursor *p) {
  return ((dml_cursor *)p)->end;
}

static int xcolumn(sqlite3_vtab_cursor *p, sqlite3_context *ctx, int col) {
  dml_cursor *c = (dml_cursor *)p;
  const module_data *d = ((dml_table *)p->pVtab)->data;
  if (col == 0) {
    wl_dmlrun_number(&c->r.run, ctx);
  } else if (col < first_hidden(d) && c->r.run.kind != WL_DMLROW_FAILS) {
    if (col == 1)
      sqlite3_result_int64(ctx, c->r.run.rowid);
    else
      wl_sqlite_result(ctx, c->r.row[col - 2], SQLITE_TRANSIENT);
  }
  return SQLITE_OK;
}

static int xrowid(sqlite3_vtab_cursor *p, sqlite3_int64 *out) {
  *out = ((dml_cursor *)p)->rowid;
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

/* ---- wl_rowids(pointer) */

typedef struct list_cursor {
  sqlite3_vtab_cursor base;
  const wl_rowlist *list;
  wl_i64 at;
} list_cursor;

static int list_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                        sqlite3_vtab **out, char **msg) {
  (void)aux;
  (void)argc;
  (void)argv;
  (void)msg;
  return wl_vtab_new(db, "CREATE TABLE x(id INTEGER, list HIDDEN)", false, sizeof **out, out);
}

static int list_best_index(sqlite3_vtab *v, sqlite3_index_info *info) {
  (void)v;
  int n_given, text;
  info->estimatedCost = 1;
  info->estimatedRows = 100;
  return wl_vtab_arguments(info, 1, &n_given, &text);
}

static int list_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out) {
  (void)v;
  return wl_vtab_new_cursor(sizeof(list_cursor), out);
}

static int list_filter(sqlite3_vtab_cursor *p, int idx, const char *str, int argc,
                       sqlite3_value **argv) {
  (void)idx;
  (void)str;
  list_cursor *c = (list_cursor *)p;
  c->list = argc ? sqlite3_value_pointer(argv[0], WL_ROWLIST_TYPE) : NULL;
  c->at = 0;
  return SQLITE_OK;
}

static int list_next(sqlite3_vtab_cursor *p) {
  ((list_cursor *)p)->at++;
  return SQLITE_OK;
}

static int list_eof(sqlite3_vtab_cursor *p) {
  const list_cursor *c = (const list_cursor *)p;
  return !c->list || c->at >= c->list->n;
}

static int list_column(sqlite3_vtab_cursor *p, sqlite3_context *ctx, int col) {
  const list_cursor *c = (const list_cursor *)p;
  if (col == 0) sqlite3_result_int64(ctx, c->list->rowids[c->at]);
  return SQLITE_OK;
}

static int list_rowid(sqlite3_vtab_cursor *p, sqlite3_int64 *out) {
  *out = ((list_cursor *)p)->at;
  return SQLITE_OK;
}

static const sqlite3_module list_module = {
    .xConnect = list_connect,
    .xDisconnect = wl_vtab_free,
    .xBestIndex = list_best_index,
    .xOpen = list_open,
    .xClose = wl_vtab_free_cursor,
    .xFilter = list_filter,
    .xNext = list_next,
    .xEof = list_eof,
    .xColumn = list_column,
    .xRowid = list_rowid,
};

/* ---- */

static int make_module(wl_conn *c, const char *name, int n_cols) {
  module_data *d = wl_mem_alloc(sizeof *d);
  if (!d) return SQLITE_NOMEM;
  *d = (module_data){c, n_cols};
  return sqlite3_create_module_v2(c->db, name, &module, d, wl_mem_free);
}

wl_status wl_dml_module(wl_conn *c, int n_cols, wl_error *err) {
  char name[WL_MODULE_NAME];
  snprintf(name, sizeof name, "wl_dml_%d", n_cols);
  wl_status rc = wl_conn_module(c, name, err);
  if (rc != WL_NOT_TAKEN) return rc;
  int st = make_module(c, name, n_cols);
  if (st) return wl_fail(err, (wl_status)st, "%s", sqlite3_errmsg(c->db));
  memcpy(c->modules[c->n_modules++], name, sizeof name);
  return WL_OK;
}

/* wl_real(x) returns x, but as a real if it is an integer that SQLite stored for a whole real. */
static void as_real(sqlite3_context *ctx, int n, sqlite3_value **args) {
  (void)n;
  if (sqlite3_value_type(args[0]) == SQLITE_FLOAT)
    sqlite3_result_double(ctx, sqlite3_value_double(args[0]));
  else
    sqlite3_result_value(ctx, args[0]);
}

int wl_dml_register(wl_conn *c) {
  c->drop_changes = wl_change_drop_all;
  int rc = make_module(c, "wl_dml", -1);
  if (!rc)
    rc = sqlite3_create_function_v2(c->db, "wl_real", 1,
                                    SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
                                    as_real, NULL, NULL, NULL);
  return rc ? rc : sqlite3_create_module_v2(c->db, "wl_rowids", &list_module, NULL, NULL);
}
