/*
** sqlite3_exec(). SQLite prepares and ends the statements of its own sqlite3_exec() inside, where
** they cannot be told apart from others. So a SELECT at the beginning of the text is run here, by
** the same rules, and SQLite runs the text from the first other statement on.
*/
#include "preload/preload.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef int wl_exec_callback(void *, int, char **, char **);

/* The texts and names of a row, in one array: the names, then the values and a NULL. */
typedef struct exec_row {
  char **names, **values;
  int n;
} exec_row;

static bool fill_names(exec_row *r, sqlite3_stmt *s, const sqlite3_api_routines *api) {
  r->n = api->column_count(s);
  r->names = calloc(2 * (size_t)r->n + 1, sizeof *r->names);
  for (int i = 0; r->names && i < r->n; i++) r->names[i] = (char *)api->column_name(s, i);
  return r->names != NULL;
}

/* Calls the callback for a row, or for a result without rows. SQLITE_ABORT: it wants to stop. */
static int call(exec_row *r, int rc, sqlite3_stmt *s, const sqlite3_api_routines *api,
                wl_exec_callback *callback, void *arg) {
  if (!r->names && !fill_names(r, s, api)) return SQLITE_NOMEM;
  if (rc == SQLITE_ROW) {
    r->values = r->names + r->n;
    for (int i = 0; i < r->n; i++) {
      r->values[i] = (char *)sqlite3_column_text(s, i);
      if (!r->values[i] && sqlite3_column_type(s, i) != SQLITE_NULL) return SQLITE_NOMEM;
    }
  }
  return callback(arg, r->n, r->values, r->names) ? SQLITE_ABORT : SQLITE_OK;
}

/* The deprecated PRAGMA empty_result_callbacks: call it once if there are no rows. */
static bool calls_for_nothing(wl_connection *c) {
  const wl_native_calls *lib = wl_library(c->real);
  return lib && lib->empty_result_callbacks(c->db);
}

/* Runs one statement to its end. */
static int run(wl_connection *c, sqlite3_stmt *s, wl_exec_callback *callback, void *arg) {
  const sqlite3_api_routines *api = &c->real->api;
  exec_row r = {NULL, NULL, 0};
  int rc, called = SQLITE_OK;
  do {
    rc = sqlite3_step(s);
    if (rc == SQLITE_ROW || (rc == SQLITE_DONE && !r.names && calls_for_nothing(c)))
      called = call(&r, rc, s, api, callback, arg);
  } while (rc == SQLITE_ROW && called == SQLITE_OK);
  int end = sqlite3_finalize(s);
  free(r.names);
  return called == SQLITE_OK ? end : wl_set_result(c, called, NULL);
}

static int exec(wl_connection *c, const char *sql, wl_exec_callback *callback, void *arg,
                char **message) {
  const sqlite3_api_routines *api = &c->real->api;
  int rc = SQLITE_OK;
  while (rc == SQLITE_OK && wl_may_select(sql, strlen(sql))) {
    sqlite3_stmt *s = NULL;
    const char *tail = NULL;
    rc = sqlite3_prepare_v2(c->db, sql, -1, &s, &tail);
    if (rc == SQLITE_OK && s) rc = run(c, s, callback, arg);
    sql = tail;
    while (rc == SQLITE_OK && isspace((unsigned char)*sql)) sql++;
  }
  if (rc == SQLITE_OK && *sql) {
    wl_forget_result_if(c->db);
    return api->exec(c->db, sql, callback, arg, message);
  }
  if (message) *message = rc == SQLITE_OK ? NULL : api->mprintf("%s", sqlite3_errmsg(c->db));
  return rc;
}

WL_EXPORT int sqlite3_exec(sqlite3 *db, const char *sql, wl_exec_callback *callback, void *arg,
                           char **message) {
  const sqlite3_api_routines *real = WL_REAL();
  wl_connection *c = callback && sql && db ? wl_connection_of(db) : NULL;
  wl_forget_result_if(db);
  if (!c || wl_within(c->real->code, WL_CALLER) || wl_within(wl_warplite_code, WL_CALLER) ||
      wl_connection_left(c) || wl_connection_is_small(c) || !wl_may_select(sql, strlen(sql))) {
    int rc = real->exec(db, sql, callback, arg, message);
    wl_connection *other = db && wl_is_awake() ? wl_connection_of(db) : NULL;
    if (other) atomic_fetch_add(&other->n_events, 1); /* it may have rolled back */
    wl_forget_result_if(db);
    return rc;
  }
  wl_enter(c);
  int rc = exec(c, sql, callback, arg, message);
  wl_leave(c);
  return rc;
}
