/*
** Connections: the process-wide table of them, the state of each from opening to closing, its
** reason, its log and the interrupt check.
*/
#include "route/conn.h"
#include "route/statement_text.h"
#include "base/vtab.h"
#include "base/authorizer.h"
#include "base/clock.h"
#include "base/fork.h"
#include "base/mem.h"
#include "value/conv.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const sqlite3_api_routines *sqlite3_api;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static wl_conn *conns;

__attribute__((constructor)) static void guard(void) {
  wl_fork_lock(&lock);
}

wl_conn *wl_conn_find(sqlite3 *db) {
  pthread_mutex_lock(&lock);
  wl_conn *c = conns;
  while (c && c->db != db) c = c->next;
  pthread_mutex_unlock(&lock);
  return c;
}

void wl_conn_reason(wl_conn *c, const char *engine, const char *fmt, ...) {
  va_list ap;
  int n = snprintf(c->reason, sizeof c->reason, "%s: ", engine);
  va_start(ap, fmt);
  vsnprintf(c->reason + n, sizeof c->reason - (size_t)n, fmt, ap);
  va_end(ap);
}

void wl_conn_set_reason(wl_conn *c, const char *reason) {
  snprintf(c->reason, sizeof c->reason, "%s", reason);
}

void wl_conn_log(wl_conn *c, const char *reason, const char *sql, size_t n, wl_i64 n_rows,
                 double ms) {
  wl_log_entry *e = &c->log[c->n_logged % WL_LOG_SIZE];
  wl_mem_free(e->sql);
  e->sql = wl_mem_alloc(n + 1); /* NULL: the log entry has no text */
  if (e->sql) {
    memcpy(e->sql, sql, n);
    e->sql[n] = 0;
  }
  e->id = ++c->n_logged;
  size_t k = strcspn(reason, ":");
  snprintf(e->engine, sizeof e->engine, "%.*s", (int)k, reason);
  snprintf(e->reason, sizeof e->reason, "%.410s", reason[k] ? reason + k + 2 : "");
  e->n_rows = n_rows;
  e->ms = ms;
}

/* About 500 steps of SQLite's virtual machine, so that progress handlers are called. They take two
** microseconds. As many steps of a recursive query take six. */
#define ROWS_10 ",(1),(1),(1),(1),(1),(1),(1),(1),(1),(1)"
#define ROWS_50 ROWS_10 ROWS_10 ROWS_10 ROWS_10 ROWS_10
#define TICK    "SELECT count(*) FROM (VALUES(1)" ROWS_50 ROWS_50 ")"

wl_status wl_conn_check(void *conn, wl_error *err) {
  wl_conn *c = conn;
  double now = wl_clock_ns();
  if (now - c->last_tick < 1e6) return WL_OK;
  c->last_tick = now;
  if (!c->has_keeper) return WL_OK; /* nothing would finalize the statement */
  if (!c->tick && sqlite3_prepare_v3(c->db, TICK, -1, SQLITE_PREPARE_PERSISTENT, &c->tick, NULL))
    return WL_OK;
  sqlite3_step(c->tick);
  if (sqlite3_reset(c->tick) == SQLITE_INTERRUPT) return wl_fail(err, WL_INTERRUPT, "interrupted");
  return WL_OK;
}

void wl_conn_quiet(wl_conn *c) {
  sqlite3_finalize(c->tick);
  c->tick = NULL;
  wl_watch_quiet(&c->watch);
  if (c->streams.n == 0) {
    sqlite3_finalize(c->streams.in_progress);
    c->streams.in_progress = NULL;
  }
  if (c->drop_changes) c->drop_changes(c);
  if (c->drop_readers) c->drop_readers(c, false);
  wl_store_quiet(c->store);
}

/* SQLite calls this when the connection closes. */
static void conn_destroy(void *p) {
  wl_conn *c = p;
  pthread_mutex_lock(&lock);
  for (wl_conn **at = &conns; *at; at = &(*at)->next) {
    if (*at == c) {
      *at = c->next;
      break;
    }
  }
  bool last = !conns;
  pthread_mutex_unlock(&lock);
  wl_authorizer_forget(c->db);
  if (c->drop_changes) c->drop_changes(c);
  if (c->drop_readers) c->drop_readers(c, true);
  wl_statement_text_flush(c);
  wl_store_close(c->store);
  for (int i = 0; i < WL_LOG_SIZE; i++) wl_mem_free(c->log[i].sql);
  wl_mem_free(c->modules);
  wl_mem_free(c->functions.names);
  wl_mem_free(c);
  wl_mem_release();
  /* A program may end SQLite now, and sees how much memory SQLite uses. */
  if (last) wl_conv_close_idle();
}

/*
** The keeper is an eponymous virtual table that is never queried. SQLite disconnects it at the
** start of sqlite3_close(), which is when the helper statements must be finalized. Its module owns
** the wl_conn.
*/
typedef struct keeper_vtab {
  sqlite3_vtab base;
  wl_conn *c;
} keeper_vtab;

static int keeper_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                          sqlite3_vtab **out, char **msg) {
  (void)argc;
  (void)argv;
  (void)msg;
  int rc = wl_vtab_new(db, "CREATE TABLE x(c)", false, sizeof(keeper_vtab), out);
  if (!rc) ((keeper_vtab *)*out)->c = aux;
  return rc;
}
static int keeper_disconnect(sqlite3_vtab *v) {
  wl_conn *c = ((keeper_vtab *)v)->c;
  wl_conn_quiet(c);
  c->has_keeper = false; /* if SQLite refuses the close, the connection lives on */
  return wl_vtab_free(v);
}
static int keeper_best_index(sqlite3_vtab *v, sqlite3_index_info *info) {
  (void)v;
  info->estimatedCost = 1;
  return SQLITE_OK;
}
static const sqlite3_module keeper = {
    .xConnect = keeper_connect, .xDisconnect = keeper_disconnect, .xBestIndex = keeper_best_index};

wl_status wl_conn_keep_helpers(wl_conn *c, wl_error *err) {
  sqlite3_stmt *connect = NULL;
  /* Our tables are eponymous. They belong to main, and are lost when main is replaced by
  ** sqlite3_deserialize(). */
  wl_status st = wl_store_steady(c->store, "main", err);
  if (st || c->has_keeper) return st;
  int rc = sqlite3_prepare_v2(c->db, "SELECT 1 FROM wl_keeper", -1, &connect, NULL);
  sqlite3_finalize(connect);
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  if (rc) return wl_not_taken(err, "the database cannot be read: %.300s", sqlite3_errmsg(c->db));
  c->has_keeper = true;
  return WL_OK;
}

wl_conn *wl_conn_open(sqlite3 *db, wl_error *err) {
  wl_conn *c = wl_mem_zalloc(sizeof *c);
  if (!c) {
    wl_nomem(err);
    return NULL;
  }
  c->db = db;
  wl_authorizer_adopt(db);
  wl_conn_reason(c, "sqlite", "no statement yet");
  wl_settings_init(&c->set);
  const char *env = secure_getenv("WARPLITE_SET");
  wl_status rc = env ? wl_settings_list(&c->set, env, err) : WL_OK;
  if (!rc) rc = wl_store_open(db, &c->store, err);
  if (rc) {
    wl_mem_free(c);
    return NULL;
  }
  wl_store_set_budget(c->store, c->set.host_budget);
  wl_store_set_threads(c->store, c->set.threads);
  wl_store_set_check(c->store, wl_conn_check, c);
  pthread_mutex_lock(&lock);
  c->next = conns;
  conns = c;
  pthread_mutex_unlock(&lock);
  /* From here on SQLite owns c. The destructor runs even if this call fails. */
  int sq = sqlite3_create_module_v2(db, "wl_keeper", &keeper, c, conn_destroy);
  if (!sq) return c;
  wl_fail(err, (wl_status)sq, "warplite: %s", sqlite3_errstr(sq));
  return NULL;
}

wl_status wl_conn_module(wl_conn *c, const char *name, wl_error *err) {
  for (int i = 0; i < c->n_modules; i++)
    if (strcmp(c->modules[i], name) == 0) return WL_OK;
  if (c->n_modules == c->size_modules) {
    int size = c->size_modules ? c->size_modules * 2 : 16;
    size_t each = sizeof *c->modules;
    void *p = wl_mem_realloc(c->modules, (size_t)c->n_modules * each, (size_t)size * each);
    if (!p) return wl_nomem(err);
    c->modules = p;
    c->size_modules = size;
  }
  return WL_NOT_TAKEN;
}
