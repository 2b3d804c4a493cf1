/*
** See open_query.h.
*/
#include "api/open_query.h"
#include "api/collect.h"
#include "base/authorizer.h"
#include "base/mem.h"
#include "explain/explain.h"
#include "program/compile.h"
#include <stdio.h>
#include <string.h>

/* The statement that warplite_query() was called with. */
typedef struct given {
  sqlite3_stmt *original; /* SQLite's statement */
  char *text;             /* freed with sqlite3_free() */
  bool ignored;           /* the authorizer answered IGNORE */
  bool analyzed;          /* EXPLAIN ANALYZE, whose words are not in text and original */
} given;

static void given_close(given *g, bool keeps_original) {
  if (!keeps_original) sqlite3_finalize(g->original);
  sqlite3_free(g->text);
}

static wl_status read_given(wl_conn *c, const char *sql, given *g, wl_error *err) {
  const char *tail;
  wl_mask *mask = NULL;
  *g = (given){0};
  char *blank = wl_analyze_text(sql, -1);
  if (blank) sql = blank;
  int rc = wl_ask_prepare(c->db, sql, -1, &g->original, &tail, &mask);
  g->ignored = wl_mask_ignores(mask);
  g->analyzed = blank != NULL;
  wl_mask_free(mask);
  wl_status st = rc ? wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(c->db)) : WL_OK;
  if (!st && (!g->original || sqlite3_column_count(g->original) == 0))
    st = wl_fail(err, WL_ERROR, "warplite_query needs a statement that returns rows");
  if (!st) g->text = sqlite3_mprintf("%.*s", (int)(tail - sql), sql);
  if (!st && !g->text) st = wl_nomem(err);
  sqlite3_free(blank);
  return st;
}

/* Replaces SQLite's statement and text by ours. */
static wl_status replace(given *g, sqlite3_stmt *ours, wl_error *err) {
  sqlite3_finalize(g->original);
  g->original = ours;
  sqlite3_free(g->text);
  g->text = sqlite3_mprintf("%s", sqlite3_sql(ours));
  return g->text ? WL_OK : wl_nomem(err);
}

/* Starts EXPLAIN or EXPLAIN ANALYZE: a statement over tables of ours, which SQLite runs. */
static wl_status explain(wl_conn *c, given *g, wl_answer *a, wl_error *err) {
  sqlite3_stmt *ours = NULL;
  wl_decision d = {0};
  wl_status rc;
  size_t n = strlen(g->text);
  if (g->analyzed && g->ignored) return wl_fail(err, WL_ERROR, "EXPLAIN ANALYZE: %s", WL_IGNORED);
  if (g->analyzed)
    rc = wl_analyze_prepare(c, g->text, n, g->original, &ours, err);
  else
    rc = wl_explain_prepare(c, g->text, n, g->ignored ? WL_IGNORED : NULL, g->original, &d, &ours,
                            err);
  char reason[WL_REASON_SIZE] = "sqlite: EXPLAIN ANALYZE";
  if (!g->analyzed && rc)
    snprintf(reason, sizeof reason, "sqlite: %s", err->text);
  else if (!g->analyzed)
    memcpy(reason, d.reason, sizeof reason);
  wl_decision_close(&d);
  if (!rc) rc = replace(g, ours, err);
  if (rc && (g->analyzed || rc == WL_NOMEM)) return rc;
  wl_request q = {.sql = g->text, .n_sql = strlen(g->text)};
  /* SQLite's own EXPLAIN was prepared with the authorizer's answers, so it is used as it is. */
  bool own = rc != WL_OK;
  rc = wl_answer_open_sqlite(c, &q, reason, own ? g->original : NULL, a, err);
  a->unlogged = !g->analyzed; /* the reason is that of a statement that has not run */
  return rc;
}

/* The arguments of a native run: the values of the parameters that occur. The caller frees it. */
static sqlite3_value **list_args(const wl_statement_text *t, const wl_bindings *b) {
  sqlite3_value **args = wl_mem_zalloc(((size_t)t->n_args + 1) * sizeof *args);
  for (int k = 0; args && k < t->n_args; k++) args[k] = b->values[t->arg_params[k] - 1];
  return args;
}

/* Starts a native run of the text of d. */
static wl_status start_native(wl_conn *c, const wl_decision *d, wl_request *q, const wl_bindings *b,
                              wl_answer *a, wl_error *err) {
  sqlite3_value **args = b->n ? list_args(d->text, b) : NULL;
  if (b->n && !args) return wl_nomem(err);
  q->stage = WL_AT_START;
  q->args = args;
  q->n_args = b->n ? d->text->n_args : 0;
  wl_status rc = wl_answer_open(c, q, NULL, a, err);
  wl_mem_free(args);
  return rc;
}

/* Starts a statement. */
static wl_status start(wl_conn *c, given *g, const wl_bindings *b, wl_opened *o, wl_error *err) {
  wl_answer *a = &o->answer;
  if (g->analyzed || sqlite3_stmt_isexplain(g->original)) return explain(c, g, a, err);
  wl_decision d = {0};
  wl_request q = {.sql = g->text,
                  .n_sql = strlen(g->text),
                  .refused = g->ignored ? WL_IGNORED : NULL,
                  .stays = o->stays};
  wl_store_enter(c->store); /* both decisions see one version */
  wl_status rc = wl_route(c, &q, &d, err);
  bool native = !rc && d.engine != WL_ENGINE_SQLITE;
  if (native) rc = start_native(c, &d, &q, b, a, err);
  wl_store_leave(c->store);
  if (!rc && !native) {
    /* A statement that was prepared with the answer IGNORE must not be prepared again. */
    bool as_it_is = g->ignored || b->n;
    rc = wl_bindings_bind(b, g->original, err);
    if (!rc) rc = wl_answer_open_sqlite(c, &q, d.reason, as_it_is ? g->original : NULL, a, err);
  } else if (!native && *d.reason) {
    wl_conn_set_reason(c, d.reason);
  }
  wl_decision_close(&d);
  return rc;
}

/* Prepares the statement again, to read names and declared types from the current schema. */
static wl_status prepare_again(wl_conn *c, given *g, wl_error *err) {
  sqlite3_stmt *again = NULL;
  int rc = sqlite3_prepare_v2(c->db, g->text, -1, &again, NULL);
  if (rc) return wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(c->db));
  sqlite3_finalize(g->original);
  g->original = again;
  return WL_OK;
}

/* Keeps the names and declared types of the columns, as SQLite describes them. seen: kept from an
** earlier call, used if original is NULL. */
static wl_status describe(wl_opened *o, sqlite3_stmt *original, const wl_text_column *seen,
                          wl_error *err) {
  int n = o->answer.n_cols;
  o->names = wl_mem_zalloc((size_t)n * sizeof *o->names);
  o->types = wl_mem_zalloc((size_t)n * sizeof *o->types);
  if (!o->names || !o->types) return wl_nomem(err);
  o->n_cols = n;
  for (int i = 0; i < n; i++) {
    const char *name = original ? sqlite3_column_name(original, i) : seen[i].name;
    const char *type = original ? sqlite3_column_decltype(original, i) : seen[i].type;
    o->names[i] = name ? wl_mem_strdup(name) : NULL;
    o->types[i] = type ? wl_mem_strdup(type) : NULL;
    if (!o->names[i] || (type && !o->types[i])) return wl_nomem(err);
  }
  return WL_OK;
}

/* Lets SQLite compute all rows, if it runs the statement. */
static wl_status collect(wl_opened *o, wl_error *err) {
  if (o->answer.run) return WL_OK;
  wl_status rc = wl_collect(&o->answer, err);
  sqlite3_reset(o->answer.stmt);
  return rc;
}

/* Starts a text that ran natively before, without asking SQLite about it again. *done: this was
** possible. */
static wl_status open_seen(wl_conn *c, const char *sql, const wl_bindings *b, wl_opened *o,
                           bool *done, wl_error *err) {
  wl_decision d = {0};
  wl_request q = {.sql = sql, .n_sql = strlen(sql), .seen = true, .stays = o->stays};
  wl_statement_text *t = wl_statement_text_seen(c, sql, q.n_sql);
  *done = false;
  if (!t) return WL_OK;
  wl_store_enter(c->store);
  wl_status rc = wl_route(c, &q, &d, err);
  *done = !rc && d.text == t && d.engine != WL_ENGINE_SQLITE;
  if (*done) rc = start_native(c, &d, &q, b, &o->answer, err);
  wl_store_leave(c->store);
  if (*done && !rc) rc = collect(o, err);
  if (*done && !rc) rc = describe(o, o->answer.stmt, t->columns, err);
  wl_decision_close(&d);
  wl_statement_text_drop(t);
  return *done ? rc : WL_OK;
}

/* Keeps the description of a text that runs natively, for its next run. */
static wl_status keep_description(wl_conn *c, const given *g, wl_error *err) {
  wl_statement_text *t = c->texts; /* the text of a native run is the latest */
  if (!t || strcmp(t->sql, g->text) != 0) return WL_OK;
  return wl_statement_text_describe(c, t, g->original, err);
}

wl_status wl_opened_open(wl_conn *c, const char *sql, const wl_bindings *b, wl_opened *o,
                         wl_error *err) {
  given g;
  o->conn = c;
  bool done;
  wl_status st = open_seen(c, sql, b, o, &done, err);
  if (st || done) return st;
  wl_i64 n_shapes = wl_store_n_shapes(c->store);
  st = read_given(c, sql, &g, err);
  if (!st) st = start(c, &g, b, o, err);
  bool shared = g.original && g.original == o->answer.stmt;
  if (!st && !shared && wl_store_n_shapes(c->store) != n_shapes) st = prepare_again(c, &g, err);
  if (!st && o->answer.run) st = keep_description(c, &g, err);
  if (!st) st = collect(o, err);
  if (!st && o->answer.n_cols != sqlite3_column_count(g.original))
    st = wl_fail(err, (wl_status)SQLITE_SCHEMA, "the schema changed; try again");
  if (!st) st = describe(o, g.original, NULL, err);
  given_close(&g, shared);
  return st;
}

void wl_opened_close(wl_opened *o) {
  wl_answer_close(&o->answer);
  for (int i = 0; i < o->n_cols; i++) {
    wl_mem_free(o->names[i]);
    wl_mem_free(o->types[i]);
  }
  wl_mem_free(o->names);
  wl_mem_free(o->types);
  *o = (wl_opened){0};
}

void wl_streams_enter(wl_conn *c) {
  wl_open_streams *open = &c->streams;
  if (open->n++ > 0) return;
  if (!open->in_progress)
    sqlite3_prepare_v3(c->db, "SELECT 1 UNION ALL SELECT 2", -1, SQLITE_PREPARE_PERSISTENT,
                       &open->in_progress, NULL);
  if (open->in_progress) sqlite3_step(open->in_progress);
}

void wl_streams_leave(wl_conn *c) {
  wl_open_streams *open = &c->streams;
  if (--open->n > 0) return;
  sqlite3_reset(open->in_progress);
  if (c->has_keeper) return;
  sqlite3_finalize(open->in_progress); /* nothing else would */
  open->in_progress = NULL;
}
