/*
** A native statement as SQLite sees it: a SELECT from an eponymous virtual table. Its arguments are
** the original text, a hash of the names of its columns, and its parameters. There is one module
** for each shape, that is, for the declared types of the columns and the number of parameters.
**
** Invariants:
** 1. A cursor is native (rows come from batches) or SQLite's (rows come from a nested statement).
**    This is decided again in each xFilter.
** 2. A statement holds only text. What it needs is found or built in xFilter.
** 3. There are at most MAX_HIDDEN arguments besides the text and the hash. From the sixteenth on
**    SQLite would check each argument again for each row, whatever xBestIndex says. More parameters
**    are passed as one argument (route/args.h).
** 4. Anybody can write such a SELECT by hand, with any text. Only those that warplite_prepare()
**    made run without question. For all others the authorizer is asked about the text.
*/
#include "api/vtab.h"
#include "route/args.h"
#include "route/overrides.h"
#include "base/authorizer.h"
#include "base/mem.h"
#include "base/vtab.h"
#include "column/dict.h"
#include "value/exchange.h"
#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MAX_HIDDEN = 14 };
enum { ARG_TEXT, ARG_LABELS, N_OWN_ARGS }; /* arguments before the parameters */

typedef struct shape {
  wl_conn *conn;
  char *declaration;
  int n_cols, n_args;
  bool in_one; /* the parameters are passed as one argument */
} shape;

typedef struct native_table {
  sqlite3_vtab base;
  shape *shape;
} native_table;

typedef struct native_cursor {
  sqlite3_vtab_cursor base;
  wl_answer answer;
  const wl_reg *regs;
  wl_batch *batch;
  wl_i64 row; /* position in the batch */
  wl_i64 rowid;
  wl_i64 watched_since; /* from wl_watch_open() */
  bool watched;
  bool done;
} native_cursor;

static void shape_free(void *p) {
  shape *s = p;
  wl_mem_free(s->declaration);
  wl_mem_free(s);
}

static int xconnect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                    char **msg) {
  (void)argc;
  (void)argv;
  (void)msg;
  shape *s = aux;
  int rc = wl_vtab_new(db, s->declaration, true, sizeof(native_table), out);
  if (!rc) ((native_table *)*out)->shape = s;
  return rc;
}

/* Values of idxNum: why a native run is not certain any more. UNASKED: the authorizer is asked when
** the statement runs, because it denied the statement, or the text was not known before. */
enum { MASKED = 1, UNASKED, OVERRIDDEN };

/*
** SQLite prepares a statement again after a schema change, or because an authorizer or a function
** was set. The statement must then pass the same checks as the original. So SQLite prepares the
** original here for the authorizer, and again when it runs, where errors get their proper codes.
** Other errors mean nothing here: the schema in memory may be out of date and cannot be read again
** before the run.
*/
static int check_again(native_table *t, sqlite3_index_info *info) {
  sqlite3_value *text = NULL;
  wl_conn *c = t->shape->conn;
  for (int i = 0; i < info->nConstraint; i++)
    if (info->aConstraintUsage[i].argvIndex == ARG_TEXT + 1 &&
        sqlite3_vtab_rhs_value(info, i, &text) != SQLITE_OK)
      text = NULL;
  const char *sql = text ? (const char *)sqlite3_value_text(text) : NULL;
  info->idxNum = UNASKED;
  if (!sql) return SQLITE_OK;
  info->idxNum = 0;
  sqlite3_stmt *s = NULL;
  wl_mask *mask = NULL;
  wl_error why;
  int rc = wl_ask_prepare(c->db, sql, -1, &s, NULL, &mask);
  sqlite3_finalize(s);
  if (wl_mask_denies(mask)) {
    info->idxNum = UNASKED;
  } else if (rc != SQLITE_NOMEM && mask) {
    info->idxNum = MASKED;
    info->idxStr = wl_mask_text(mask);
    info->needToFreeIdxStr = 1;
    if (!info->idxStr) rc = SQLITE_NOMEM;
  } else if (wl_overrides_check_all(c, &why) != WL_OK) {
    info->idxNum = OVERRIDDEN;
  }
  wl_mask_free(mask);
  return rc == SQLITE_NOMEM ? rc : SQLITE_OK;
}

static int xbest_index(sqlite3_vtab *v, sqlite3_index_info *info) {
  native_table *t = (native_table *)v;
  const shape *s = t->shape;
  int n, text, rc = wl_vtab_arguments(info, s->n_cols, &n, &text);
  if (rc) return rc;
  if (n != s->n_args + N_OWN_ARGS) {
    sqlite3_free(v->zErrMsg);
    v->zErrMsg = sqlite3_mprintf("a warplite statement needs its text, its hash and %d parameters",
                                 s->n_args);
    return SQLITE_ERROR;
  }
  if (!s->conn->preparing) rc = check_again(t, info);
  if (rc) return rc;
  if (info->idxNum != MASKED) info->idxStr = sqlite3_mprintf("%s", s->conn->reason);
  info->needToFreeIdxStr = 1;
  info->estimatedCost = 1;
  info->estimatedRows = 1000;
  return SQLITE_OK;
}

static int xopen(sqlite3_vtab *v, sqlite3_vtab_cursor **out) {
  (void)v;
  return wl_vtab_new_cursor(sizeof(native_cursor), out);
}

static void cursor_reset(native_cursor *c) {
  if (c->watched) wl_watch_close(c->answer.conn);
  c->watched = false;
  wl_batch_give(c->batch);
  c->batch = NULL;
  wl_answer_close(&c->answer);
}

static int xclose(sqlite3_vtab_cursor *p) {
  cursor_reset((native_cursor *)p);
  sqlite3_free(p);
  return SQLITE_OK;
}

/* Gets the next batch, or finds the end. */
static int refill(native_cursor *c) {
  wl_error err = {0};
  wl_batch_give(c->batch);
  c->batch = NULL;
  wl_status rc = wl_answer_next(&c->answer, &c->batch, &err);
  if (rc) return wl_vtab_fail(c->base.pVtab, &err);
  if (!c->batch) {
    c->done = true;
    return SQLITE_OK;
  }
  c->row = c->batch->skip;
  c->answer.n_rows += c->batch->n_rows - c->batch->skip;
  return SQLITE_OK;
}

static int step(native_cursor *c) {
  int rc = wl_text_step(c->answer.stmt);
  if (rc == SQLITE_ROW) {
    c->answer.n_rows++;
    return SQLITE_OK;
  }
  c->done = true;
  if (rc == SQLITE_DONE) return SQLITE_OK;
  wl_error err;
  sqlite3 *db = c->answer.conn->db;
  wl_fail(&err, (wl_status)sqlite3_extended_errcode(db), "%s", sqlite3_errmsg(db));
  return wl_vtab_fail(c->base.pVtab, &err);
}

/* Fails if a ROLLBACK has ended the running statements and would have ended this one in SQLite. */
static int aborted(native_cursor *c) {
  wl_error err;
  wl_conn *conn = c->answer.conn;
  c->watched_since = conn->watch.n_aborts;
  if (!wl_watch_matters(conn, c->answer.sql)) return SQLITE_OK;
  wl_fail(&err, (wl_status)SQLITE_ABORT_ROLLBACK, "abort due to ROLLBACK");
  return wl_vtab_fail(c->base.pVtab, &err);
}

/* The columns are fixed in the statement's text. If ALTER TABLE or a new view has changed them, the
** statement fails. */
static wl_status check_columns(native_cursor *c, int n_cols, wl_u64 labels, wl_error *err) {
  wl_u64 now;
  if (c->answer.n_cols != n_cols)
    return wl_fail(err, WL_ERROR,
                   "the statement has %d columns now and had %d when it was prepared; prepare it "
                   "again",
                   c->answer.n_cols, n_cols);
  wl_status rc = wl_answer_labels(&c->answer, &now, err);
  if (rc || now == labels) return rc;
  return wl_fail(err, WL_ERROR,
                 "the names of the statement's columns have changed since it was prepared; "
                 "prepare it again");
}

/* The authorizer's answers for a statement that was prepared again. If it was denied then, SQLite
** would prepare it only now, so the authorizer is asked again. */
static wl_status masked(wl_conn *c, const char *sql, int idx, const char *str, wl_mask **mask,
                        wl_error *err) {
  sqlite3_stmt *s = NULL;
  if (idx == MASKED) *mask = wl_mask_read(str);
  if (idx == MASKED && !*mask) return wl_nomem(err);
  if (idx != UNASKED) return WL_OK;
  int rc = wl_ask_prepare(c->db, sql, -1, &s, NULL, mask);
  sqlite3_finalize(s);
  return rc ? wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(c->db)) : WL_OK;
}

int wl_native_start(sqlite3_vtab_cursor *p, wl_conn *conn, const wl_request *q, const wl_mask *mask,
                    int n_cols, wl_u64 labels) {
  native_cursor *c = (native_cursor *)p;
  wl_error err = {0};
  cursor_reset(c);
  c->done = false;
  c->rowid = 1;
  wl_status rc = wl_answer_open(conn, q, mask, &c->answer, &err);
  if (rc) return wl_vtab_fail(p->pVtab, &err);
  rc = check_columns(c, n_cols, labels, &err);
  if (rc) {
    cursor_reset(c);
    return wl_vtab_fail(p->pVtab, &err);
  }
  if (!c->answer.run) return step(c);
  c->regs = wl_run_regs(c->answer.run);
  int sq = refill(c);
  if (sq || c->done || c->row + 1 >= c->batch->n_rows) return sq;
  c->watched_since = wl_watch_open(conn);
  c->watched = true;
  return SQLITE_OK;
}

static int xfilter(sqlite3_vtab_cursor *p, int idx, const char *str, int argc,
                   sqlite3_value **argv) {
  native_cursor *c = (native_cursor *)p;
  const shape *s = ((native_table *)p->pVtab)->shape;
  wl_error err = {0};
  cursor_reset(c);
  const char *sql = argc > ARG_LABELS ? (const char *)sqlite3_value_text(argv[ARG_TEXT]) : NULL;
  if (!sql) {
    c->done = true;
    return SQLITE_OK;
  }
  const char *refused =
      idx == OVERRIDDEN ? "the application has replaced a function of SQLite" : NULL;
  wl_u64 labels = (wl_u64)sqlite3_value_int64(argv[ARG_LABELS]);
  wl_request q = {.sql = sql,
                  .n_sql = strlen(sql),
                  .stage = WL_AT_START,
                  .refused = refused,
                  .args = argv + N_OWN_ARGS,
                  .n_args = argc - N_OWN_ARGS};
  wl_mask *mask = NULL;
  wl_status rc = masked(s->conn, sql, idx, str, &mask, &err);
  if (mask) q.refused = WL_IGNORED;
  if (s->in_one) q.n_args = wl_args_values(argv[N_OWN_ARGS], &q.args);
  /* An authorizer may have replaced the function by NULL. */
  if (!rc && s->in_one && !q.n_args)
    rc = wl_fail(&err, WL_ERROR, "the parameters cannot be passed to warplite");
  int sq =
      rc ? wl_vtab_fail(p->pVtab, &err) : wl_native_start(p, s->conn, &q, mask, s->n_cols, labels);
  wl_mask_free(mask);
  return sq;
}

static int xnext(sqlite3_vtab_cursor *p) {
  native_cursor *c = (native_cursor *)p;
  c->rowid++;
  if (!c->answer.run) return step(c);
  if (c->watched && wl_watch_aborted(c->answer.conn, c->watched_since)) {
    int rc = aborted(c);
    if (rc) return rc;
  }
  if (++c->row < c->batch->n_rows) return SQLITE_OK;
  return refill(c);
}

static int xeof(sqlite3_vtab_cursor *p) {
  return ((native_cursor *)p)->done;
}

static int xcolumn(sqlite3_vtab_cursor *p, sqlite3_context *ctx, int col) {
  native_cursor *c = (native_cursor *)p;
  if (!c->answer.run) {
    if (col < c->answer.n_cols)
      sqlite3_result_value(ctx, sqlite3_column_value(c->answer.stmt, col));
    return SQLITE_OK;
  }
  if (col >= c->batch->n_cols) return SQLITE_OK; /* an argument, which nobody reads */
  const wl_outcol *o = &c->batch->cols[col];
  wl_u8 type = c->regs[col].type;
  if (type <= WL_R_REAL) {
    if (o->t && !o->t[c->row]) return SQLITE_OK;
    const wl_dict *dict = wl_batch_dict(c->batch, col);
    if (dict) {
      wl_sqlite_result(ctx, wl_dict_value(dict, (wl_i64)o->v[c->row]), SQLITE_TRANSIENT);
    } else if (type == WL_R_INT)
      sqlite3_result_int64(ctx, (sqlite3_int64)o->v[c->row]);
    else
      sqlite3_result_double(ctx, wl_as_f64(o->v[c->row]));
    return SQLITE_OK;
  }
  /* SQLite must copy: the batch may be freed before the caller reads the text. */
  wl_sqlite_result(ctx, wl_batch_value(c->batch, c->regs, col, c->row), SQLITE_TRANSIENT);
  return SQLITE_OK;
}

static int xrowid(sqlite3_vtab_cursor *p, sqlite3_int64 *out) {
  *out = ((native_cursor *)p)->rowid;
  return SQLITE_OK;
}

const sqlite3_module wl_native_module = {
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

/* ---- shapes */

/* Whether a declared type can be copied into a table declaration of ours. */
static bool is_plain_type(const char *type) {
  for (const char *p = type; *p; p++) {
    if (sqlite3_strnicmp(p, "hidden", 6) == 0 || sqlite3_strnicmp(p, "generated", 9) == 0)
      return false;
    if (!strchr(" (),.+-_", *p) && !(*p >= '0' && *p <= '9') &&
        !((*p | 32) >= 'a' && (*p | 32) <= 'z'))
      return false;
  }
  return true;
}

void wl_append_type(sqlite3_str *s, const char *type) {
  if (type) sqlite3_str_appendf(s, is_plain_type(type) ? " %s" : " \"%w\"", type);
}

static char *declaration(sqlite3_stmt *original, int n_cols, int n_args, bool in_one) {
  sqlite3_str *s = sqlite3_str_new(NULL);
  sqlite3_str_appendall(s, "CREATE TABLE x(");
  for (int i = 0; i < n_cols; i++) {
    sqlite3_str_appendf(s, "c%d", i);
    wl_append_type(s, sqlite3_column_decltype(original, i));
    sqlite3_str_appendall(s, ",");
  }
  sqlite3_str_appendall(s, "sql HIDDEN,labels HIDDEN");
  for (int i = 0; i < n_args; i++) sqlite3_str_appendf(s, ",%s%d HIDDEN", in_one ? "b" : "a", i);
  sqlite3_str_appendall(s, ")");
  return sqlite3_str_finish(s);
}

/* Gives the name of the module for a shape. Registers the module if it is new. */
static wl_status module_name(wl_conn *c, sqlite3_stmt *original, int n_cols, int n_args,
                             bool in_one, char name[WL_MODULE_NAME], wl_error *err) {
  char *text = declaration(original, n_cols, n_args, in_one);
  if (!text) return wl_nomem(err);
  snprintf(name, WL_MODULE_NAME, "wl_%016llx", (unsigned long long)XXH3_64bits(text, strlen(text)));
  wl_status known = wl_conn_module(c, name, err);
  if (known != WL_NOT_TAKEN) {
    sqlite3_free(text);
    return known;
  }
  shape *s = wl_mem_zalloc(sizeof *s);
  if (s) {
    s->conn = c;
    s->n_cols = n_cols;
    s->n_args = n_args;
    s->in_one = in_one;
    s->declaration = wl_mem_strdup(text);
  }
  sqlite3_free(text);
  if (!s || !s->declaration) {
    if (s) shape_free(s);
    return wl_nomem(err);
  }
  int rc = sqlite3_create_module_v2(c->db, name, &wl_native_module, s, shape_free);
  if (rc) return wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(c->db));
  memcpy(c->modules[c->n_modules++], name, WL_MODULE_NAME);
  return WL_OK;
}

/* Writes the text that stands for a statement. */
static wl_status write_stand_in(wl_conn *c, wl_statement_text *t, sqlite3_stmt *original,
                                wl_error *err) {
  char name[WL_MODULE_NAME];
  int n_cols = sqlite3_column_count(original);
  bool in_one = t->n_args > MAX_HIDDEN;
  wl_status st = module_name(c, original, n_cols, in_one ? 1 : t->n_args, in_one, name, err);
  if (st) return st;
  const char **params = wl_mem_alloc(((size_t)t->n_args + 1) * sizeof *params);
  if (!params) return wl_nomem(err);
  for (int k = 0; k < t->n_args; k++) params[k] = t->stmt->params[t->arg_params[k] - 1];
  sqlite3_str *s = sqlite3_str_new(NULL);
  for (int i = 0; i < n_cols; i++)
    sqlite3_str_appendf(s, "%s c%d AS \"%w\"", i ? "," : "SELECT", i, t->columns[i].name);
  sqlite3_str_appendf(s, " FROM %s(%Q,%lld", name, t->sql, (sqlite3_int64)t->labels);
  if (in_one) {
    sqlite3_str_appendall(s, ",");
    wl_args_append(s, params, t->n_args);
  }
  for (int k = 0; k < t->n_args && !in_one; k++) sqlite3_str_appendf(s, ",%s", params[k]);
  sqlite3_str_appendall(s, ")");
  wl_mem_free(params);
  char *text = sqlite3_str_finish(s);
  t->stand_in = text ? wl_arena_printf(&t->arena, "%s", text) : NULL;
  sqlite3_free(text);
  return t->stand_in ? WL_OK : wl_nomem(err);
}

wl_status wl_vtab_prepare_seen(wl_conn *c, const wl_statement_text *t, sqlite3_stmt **out,
                               wl_error *err) {
  int rc = sqlite3_prepare_v2(c->db, t->stand_in, -1, out, NULL);
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  return rc ? wl_not_taken(err, "the rewritten statement fails: %.300s", sqlite3_errmsg(c->db))
            : WL_OK;
}

wl_status wl_vtab_prepare(wl_conn *c, wl_statement_text *t, sqlite3_stmt *original,
                          sqlite3_stmt **out, wl_error *err) {
  wl_status rc = wl_statement_text_describe(c, t, original, err);
  if (!rc && !t->stand_in) rc = write_stand_in(c, t, original, err);
  if (!rc) rc = wl_vtab_prepare_seen(c, t, out, err);
  if (rc || sqlite3_bind_parameter_count(*out) == sqlite3_bind_parameter_count(original)) return rc;
  sqlite3_finalize(*out);
  *out = NULL;
  t->stand_in = NULL;
  return wl_not_taken(err, "its parameters cannot be passed to warplite");
}
