/*
** Runs statements for the preload library; see native.h.
**
** A reader is a statement that stands on a row and never ends, so that SQLite keeps its read
** transaction. It reads the schema table of each database that the native statement reads, again
** and again, so it can be stepped at any time. Its step fails where SQLite's own statement would:
** after sqlite3_interrupt(), and after a ROLLBACK that undid a change of the schema.
*/
#include "api/native.h"
#include "api/enable.h"
#include "base/mem.h"
#include "column/dict.h"
#include "route/answer.h"
#include "route/error.h"
#include "route/place_query.h"
#include "warplite.h"
#include <stdio.h>
#include <string.h>

enum { MAX_PARAMS = 1000, MAX_IDLE = 32 };

typedef enum helper_kind { READER, VALUES, MIRROR } helper_kind;

/* A statement that the connection keeps for later runs. */
typedef struct helper {
  struct helper *next;
  sqlite3_stmt *stmt;
  helper_kind kind;
  bool in_use;
} helper;

/* The helper statements of a connection. Mirrors belong to a database of their own. So they work
** after an interrupt and after sqlite3_close_v2(), leave the connection's error as it is, and are
** not traced. */
struct wl_readers {
  helper *first;
  int n_idle;
  sqlite3 *mirror_db; /* opened when first needed */
};

struct wl_native_run {
  wl_conn *conn;
  wl_answer answer;
  helper *reader;
  helper **mirrors; /* one per column, or NULL */
  wl_native_column *columns;
  wl_batch *batch, *before; /* the rows returned last, and those before them */
};

/* ---- helper statements */

static void drop_readers(wl_conn *c, bool closing) {
  if (!c->readers) return;
  for (helper **at = &c->readers->first; *at;) {
    helper *h = *at;
    if (h->in_use && !closing) {
      at = &h->next;
      continue;
    }
    *at = h->next;
    sqlite3_finalize(h->stmt);
    wl_mem_free(h);
  }
  c->readers->n_idle = 0;
  if (!closing) return;
  sqlite3_close(c->readers->mirror_db);
  wl_mem_free(c->readers);
  c->readers = NULL;
}

/* The database for a kind of helper. NULL: out of memory. */
static sqlite3 *database_of(wl_conn *c, helper_kind kind) {
  sqlite3 **own = &c->readers->mirror_db;
  if (kind != MIRROR) return c->db;
  /* Threads may read rows of different statements at the same time. */
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
  if (!*own && sqlite3_open_v2(":memory:", own, flags, NULL)) {
    sqlite3_close(*own);
    *own = NULL;
  }
  return *own;
}

/* Finds an idle helper with that text, or prepares one. NULL: it could not be prepared. */
static helper *borrow(wl_conn *c, helper_kind kind, const char *sql) {
  if (!c->readers) c->readers = wl_mem_zalloc(sizeof *c->readers);
  if (!c->readers) return NULL;
  c->drop_readers = drop_readers;
  for (helper *h = c->readers->first; h; h = h->next) {
    if (h->in_use || h->kind != kind || strcmp(sqlite3_sql(h->stmt), sql) != 0) continue;
    h->in_use = true;
    c->readers->n_idle--;
    return h;
  }
  sqlite3 *db = database_of(c, kind);
  helper *h = db ? wl_mem_zalloc(sizeof *h) : NULL;
  if (!h) return NULL;
  if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &h->stmt, NULL)) {
    wl_mem_free(h);
    return NULL;
  }
  h->kind = kind;
  h->in_use = true;
  h->next = c->readers->first;
  c->readers->first = h;
  return h;
}

static void give_back(wl_conn *c, helper *h) {
  if (!h) return;
  sqlite3_reset(h->stmt);
  if (h->kind == MIRROR) sqlite3_clear_bindings(h->stmt);
  h->in_use = false;
  if (++c->readers->n_idle <= MAX_IDLE) return;
  for (helper **at = &c->readers->first; *at; at = &(*at)->next) {
    if (*at != h) continue;
    *at = h->next;
    sqlite3_finalize(h->stmt);
    wl_mem_free(h);
    c->readers->n_idle--;
    return;
  }
}

/* Starts a statement that holds a read transaction on each database that the query reads. */
static wl_status hold(wl_conn *c, const wl_query *q, helper **out, wl_error *err) {
  sqlite3_str *s = sqlite3_str_new(NULL);
  sqlite3_str_appendall(
      s, "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT 1 FROM c) SELECT 1 FROM c");
  wl_status rc = WL_OK;
  for (int k = 0; k < q->n_deps && !rc; k++) {
    wl_table *t, *earlier;
    rc = wl_store_named(c->store, q->deps[k].schema, q->deps[k].name, &t, err);
    bool again = false;
    for (int i = 0; i < k && !rc && !again; i++) {
      rc = wl_store_named(c->store, q->deps[i].schema, q->deps[i].name, &earlier, err);
      again = !rc && sqlite3_stricmp(earlier->schema, t->schema) == 0;
    }
    if (!rc && !again)
      sqlite3_str_appendf(s, " LEFT JOIN \"%w\".sqlite_schema AS s%d", t->schema, k);
  }
  char *sql = sqlite3_str_finish(s);
  if (rc) sqlite3_free(sql);
  if (rc) return rc;
  if (!sql) return wl_nomem(err);
  helper *h = borrow(c, READER, sql);
  sqlite3_free(sql);
  if (h && sqlite3_step(h->stmt) == SQLITE_ROW) {
    *out = h;
    return WL_OK;
  }
  wl_not_taken(err, "the database cannot be read: %.300s", sqlite3_errmsg(c->db));
  give_back(c, h);
  return WL_NOT_TAKEN;
}

/*
** Reads the values of the statement's parameters. SQLite has no call for this. So they move to a
** statement that returns them, and back when its row has been used.
*/
typedef struct values {
  helper *helper;
  sqlite3_value **args;
  bool moved;
} values;

static wl_status read_values(wl_conn *c, const wl_statement_text *t, sqlite3_stmt *stmt,
                             values *out, wl_error *err) {
  int n = sqlite3_bind_parameter_count(stmt);
  if (n == 0 || t->n_args == 0) return WL_OK;
  if (n > MAX_PARAMS || !sqlite3_api->transfer_bindings)
    return wl_not_taken(err, "it has %d parameters", n);
  out->args = wl_mem_zalloc((size_t)t->n_args * sizeof *out->args);
  sqlite3_str *s = sqlite3_str_new(NULL);
  for (int k = 1; k <= n; k++) sqlite3_str_appendf(s, "%s?%d", k == 1 ? "SELECT " : ",", k);
  char *sql = sqlite3_str_finish(s);
  out->helper = sql && out->args ? borrow(c, VALUES, sql) : NULL;
  sqlite3_free(sql);
  if (!out->helper) return wl_not_taken(err, "its parameters cannot be read");
  sqlite3_stmt *row = out->helper->stmt;
  out->moved = sqlite3_api->transfer_bindings(stmt, row) == SQLITE_OK;
  if (!out->moved || sqlite3_step(row) != SQLITE_ROW)
    return wl_not_taken(err, "its parameters cannot be read");
  for (int k = 0; k < t->n_args; k++)
    out->args[k] = sqlite3_column_value(row, t->arg_params[k] - 1);
  return WL_OK;
}

static void return_values(wl_conn *c, sqlite3_stmt *stmt, values *v) {
  if (v->moved) {
    sqlite3_reset(v->helper->stmt);
    sqlite3_api->transfer_bindings(v->helper->stmt, stmt);
  }
  give_back(c, v->helper);
  wl_mem_free(v->args);
}

/* ---- the functions of the interface */

static bool bind(const sqlite3_api_routines *real, char message[WL_NATIVE_TEXT]) {
  if (real->libversion_number() < 3038000) {
    snprintf(message, WL_NATIVE_TEXT, "warplite needs SQLite 3.38 or newer; this is %s",
             real->libversion());
    return false;
  }
  /* If the program has enabled warplite itself, some authorizers may not be known. */
  if (!sqlite3_api) wl_authorizer_blind = false;
  /* The table that SQLite gives to extensions leads to the preload library. */
  sqlite3_api = real;
  return true;
}

static void *authorizer(sqlite3 *db, wl_native_authorizer *call, void *arg) {
  return wl_authorizer_know(db, call, arg);
}

static wl_conn *state_of(sqlite3 *db, wl_error *err) {
  wl_conn *c = wl_conn_find(db);
  return c ? c : wl_conn_open(db, err);
}

static bool open_conn(sqlite3 *db, char message[WL_NATIVE_TEXT]) {
  wl_error err = {0};
  bool opened = state_of(db, &err) != NULL;
  snprintf(message, WL_NATIVE_TEXT, "%s", err.text);
  return opened;
}

static wl_status answer(wl_native_run *r, const wl_native_ask *ask, wl_error *err) {
  wl_conn *c = r->conn;
  wl_statement_text *t = NULL;
  const char *sql = sqlite3_sql(ask->stmt);
  values v = {0};
  if (!sql) return wl_not_taken(err, "SQLite does not keep its text");
  wl_status rc = wl_statement_text_get(c, sql, strlen(sql), &t, err);
  if (!rc && t->query->n_deps == 0) rc = wl_not_taken(err, "it reads no table");
  if (!rc) rc = hold(c, t->query, &r->reader, err);
  if (!rc) rc = read_values(c, t, ask->stmt, &v, err);
  if (!rc) {
    wl_request q = {.sql = sql,
                    .n_sql = strlen(sql),
                    .stage = WL_AT_EXECUTE,
                    .refused = ask->refused,
                    .is_part = true, /* strict concerns warplite_prepare() */
                    .args = v.args,
                    .n_args = v.args ? t->n_args : 0};
    rc = wl_answer_open(c, &q, NULL, &r->answer, err);
  }
  return_values(c, ask->stmt, &v);
  wl_statement_text_drop(t);
  if (!rc && r->answer.run && r->answer.n_cols != sqlite3_column_count(ask->stmt))
    rc = wl_not_taken(err, "SQLite gives %d columns, not %d", sqlite3_column_count(ask->stmt),
                      r->answer.n_cols);
  return rc;
}

static void finish(wl_native_run *r) {
  wl_conn *c = r->conn;
  for (int k = 0; r->mirrors && k < r->answer.n_cols; k++) give_back(c, r->mirrors[k]);
  wl_mem_free(r->mirrors);
  wl_batch_give(r->before);
  wl_batch_give(r->batch);
  wl_answer_close(&r->answer);
  give_back(c, r->reader);
  wl_mem_free(r->columns);
  wl_mem_free(r);
}

static wl_native_run *start(const wl_native_ask *ask, char reason[WL_NATIVE_TEXT]) {
  wl_error err = {0};
  wl_native_run *r = NULL;
  wl_conn *c = state_of(ask->db, &err);
  if (!c) {
    snprintf(reason, WL_NATIVE_TEXT, "sqlite: %s", err.text);
    return NULL;
  }
  c->no_functions = ask->no_functions;
  r = wl_mem_zalloc(sizeof *r);
  wl_status rc = r ? WL_OK : wl_nomem(&err);
  if (r) r->conn = c;
  if (!rc) rc = answer(r, ask, &err);
  if (!rc && r->answer.run) {
    size_t n = (size_t)r->answer.n_cols;
    r->mirrors = wl_mem_zalloc((n + 1) * sizeof *r->mirrors);
    r->columns = wl_mem_zalloc((n + 1) * sizeof *r->columns);
    if (!r->mirrors || !r->columns) rc = wl_nomem(&err);
  }
  c->no_functions = false;
  if (rc)
    snprintf(reason, WL_NATIVE_TEXT, "sqlite: %s", err.text);
  else
    snprintf(reason, WL_NATIVE_TEXT, "%s", r->answer.reason);
  if (rc) wl_conn_set_reason(c, reason);
  if (!rc && r->answer.run) return r;
  if (r) finish(r);
  wl_clear_error(ask->db);
  return NULL;
}

static bool took(sqlite3 *db, sqlite3_stmt *stmt, int n_steps) {
  wl_conn *c = wl_conn_find(db);
  const char *sql = sqlite3_sql(stmt);
  return c && sql && wl_place_sqlite_took(c, sql, strlen(sql), n_steps);
}

static void describe(wl_native_run *r) {
  static const wl_u8 types[] = {[WL_R_INT] = SQLITE_INTEGER,
                                [WL_R_REAL] = SQLITE_FLOAT,
                                [WL_R_TEXT] = SQLITE_TEXT,
                                [WL_R_ANY] = 0};
  const wl_reg *regs = wl_run_regs(r->answer.run);
  for (int k = 0; k < r->answer.n_cols; k++) {
    const wl_outcol *o = &r->batch->cols[k];
    const wl_dict *dict = regs[k].type == WL_R_INT ? wl_batch_dict(r->batch, k) : NULL;
    r->columns[k] = (wl_native_column){.type = regs[k].type,
                                       .sqlite_type = dict ? SQLITE_TEXT : types[regs[k].type],
                                       .v = o->v,
                                       .t = o->t,
                                       .n = o->n,
                                       .offsets = o->offsets,
                                       .heap = dict ? dict->heap : o->heap,
                                       .places = dict ? dict->places : NULL};
  }
}

static int next(wl_native_run *r, wl_native_rows *out, char message[WL_NATIVE_TEXT]) {
  wl_error err = {0};
  wl_batch *b = NULL;
  do {
    wl_batch_give(b);
    wl_status rc = wl_answer_next(&r->answer, &b, &err);
    if (rc) {
      snprintf(message, WL_NATIVE_TEXT, "%s", err.text);
      return rc == WL_NOT_TAKEN ? SQLITE_ERROR : (int)rc;
    }
    if (!b) return SQLITE_DONE;
  } while (b->skip >= b->n_rows);
  wl_batch_give(r->before);
  r->before = r->batch;
  r->batch = b;
  r->answer.n_rows += b->n_rows - b->skip;
  describe(r);
  *out = (wl_native_rows){.columns = r->columns, .first = b->skip, .n_rows = b->n_rows};
  return SQLITE_ROW;
}

static int look(wl_native_run *r, char message[WL_NATIVE_TEXT]) {
  wl_conn *c = r->conn;
  sqlite3_stmt *s = r->reader->stmt;
  if (sqlite3_step(s) == SQLITE_ROW) return SQLITE_OK;
  int rc = sqlite3_extended_errcode(c->db);
  snprintf(message, WL_NATIVE_TEXT, "%s", sqlite3_errmsg(c->db));
  sqlite3_reset(s);
  /* SQLite returns rows that it has sorted even after such a ROLLBACK. */
  if (rc == SQLITE_ABORT_ROLLBACK && !wl_watch_matters(c, r->answer.sql)) {
    sqlite3_step(s);
    return SQLITE_OK;
  }
  return rc;
}

static sqlite3_stmt *mirror(wl_native_run *r, int column) {
  if (!r->mirrors[column]) r->mirrors[column] = borrow(r->conn, MIRROR, "SELECT ?1");
  return r->mirrors[column] ? r->mirrors[column]->stmt : NULL;
}

static bool empty_result_callbacks(sqlite3 *db) {
  sqlite3_stmt *s = NULL;
  sqlite3_prepare_v2(db, "PRAGMA empty_result_callbacks", -1, &s, NULL);
  bool on = s && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0);
  sqlite3_finalize(s);
  return on;
}

static void quiet(sqlite3 *db) {
  wl_conn *c = wl_conn_find(db);
  if (c) wl_conn_quiet(c);
}

WARPLITE_API const wl_native_calls *warplite_native_interface(int version) {
  static const wl_native_calls table = {.version = WL_NATIVE_VERSION,
                                        .bind = bind,
                                        .authorizer = authorizer,
                                        .authorize = wl_authorizer_ask,
                                        .open = open_conn,
                                        .start = start,
                                        .took = took,
                                        .next = next,
                                        .look = look,
                                        .mirror = mirror,
                                        .step = wl_own_step,
                                        .finish = finish,
                                        .empty_result_callbacks = empty_result_callbacks,
                                        .quiet = quiet};
  return version == WL_NATIVE_VERSION ? &table : NULL;
}
