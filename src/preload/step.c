/*
** Step, reset and finalize, and other functions that ask how far a statement has come.
*/
#include "preload/preload.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

atomic_int wl_n_running;
_Thread_local int wl_silent;

/* ---- native runs */

void wl_native_finish(wl_statement *t) {
  wl_connection *c = t->conn;
  const wl_native_calls *lib = wl_library_if_open();
  wl_silent++;
  lib->finish(t->run);
  t->run = NULL;
  if (c->closing) lib->quiet(c->db); /* the connection must be able to end with its statements */
  wl_silent--;
  t->state = WL_ENDED;
  t->n_mirrors = 0;
  for (int k = 0; k < t->n_columns; k++) t->cells[k].mirror = NULL;
  atomic_fetch_sub(&c->n_running, 1);
  atomic_fetch_sub(&wl_n_running, 1);
  if (WL_UNLIKELY(wl_reporting)) wl_report_end(t);
}

static int fail(wl_statement *t, int code, const char *message) {
  const sqlite3_api_routines *api = &t->conn->real->api;
  wl_native_finish(t);
  t->failed = code;
  api->log(code, "statement aborts at 0: [%s] %s", api->sql(t->stmt), message);
  return wl_say(t->conn, code, message);
}

/* An interrupt or a ROLLBACK may have ended the statement. */
static int look(wl_statement *t, char message[WL_NATIVE_TEXT]) {
  t->n_events = atomic_load(&t->conn->n_events);
  wl_silent++;
  int rc = wl_library_if_open()->look(t->run, message);
  wl_silent--;
  return rc;
}

/* Gets the next batch. */
static int refill(wl_statement *t, char message[WL_NATIVE_TEXT]) {
  wl_connection *c = t->conn;
  wl_silent++;
  c->inside = true;
  int rc = wl_library_if_open()->next(t->run, &t->rows, message);
  c->inside = false;
  wl_silent--;
  if (rc == SQLITE_ROW) t->row = t->rows.first;
  return rc;
}

/* Needs the mutex. */
int wl_native_step(wl_statement *t) {
  wl_connection *c = t->conn;
  char message[WL_NATIVE_TEXT] = "";
  int rc = SQLITE_OK;
  if (WL_UNLIKELY(atomic_load_explicit(&c->n_events, memory_order_relaxed) != t->n_events))
    rc = look(t, message);
  if (WL_UNLIKELY(rc != SQLITE_OK)) return fail(t, rc, message);
  if (WL_UNLIKELY(++t->row >= t->rows.n_rows)) {
    rc = refill(t, message);
    if (rc == SQLITE_DONE) {
      wl_native_finish(t);
      return wl_say(c, SQLITE_DONE, NULL);
    }
    if (rc != SQLITE_ROW) return fail(t, rc, message);
  }
  t->stamp++;
  t->n_mirrors = 0;
  if (WL_UNLIKELY(c->trace_mask & SQLITE_TRACE_ROW))
    c->trace(SQLITE_TRACE_ROW, c->trace_arg, t->stmt, NULL);
  if (WL_UNLIKELY(!c->said.valid || c->said.code != SQLITE_ROW)) wl_say(c, SQLITE_ROW, NULL);
  return SQLITE_ROW;
}

/* ---- the interface */

/* A statement without a record may roll back, so native statements look whether they have ended. */
static void stepped_beside(const sqlite3_api_routines *real, sqlite3_stmt *s) {
  sqlite3 *db = s ? real->db_handle(s) : NULL;
  wl_connection *c = db ? wl_connection_of(db) : NULL;
  wl_unsay_if(db);
  if (c && atomic_load(&c->n_running)) atomic_fetch_add(&c->n_events, 1);
}

WL_EXPORT int sqlite3_step(sqlite3_stmt *s) {
  const sqlite3_api_routines *real = WL_REAL();
  wl_statement *t = wl_statement_of(s);
  if (!t) {
    int rc = real->step(s);
    if (WL_UNLIKELY(atomic_load_explicit(&wl_n_running, memory_order_relaxed) ||
                    atomic_load_explicit(&wl_n_said, memory_order_relaxed)))
      stepped_beside(real, s);
    return rc;
  }
  wl_connection *c = t->conn;
  if (t->state == WL_RUNNING) {
    wl_enter(c);
    /* Another thread may have ended it. */
    int rc = WL_LIKELY(t->state == WL_RUNNING) ? wl_native_step(t) : wl_first_step(t);
    wl_leave(c);
    return rc;
  }
  if (t->state != WL_IN_SQLITE) return wl_first_step(t);
  int rc = real->step(s);
  wl_unsay_if(c->db);
  if (rc != SQLITE_ROW) wl_sqlite_ended(t);
  return rc;
}

/* Ends a native execution. Returns what sqlite3_reset() returns. */
static int end_native(wl_statement *t) {
  wl_connection *c = t->conn;
  wl_enter(c);
  if (t->state == WL_RUNNING) wl_native_finish(t);
  t->state = WL_AT_REST;
  int rc = t->failed;
  t->failed = SQLITE_OK;
  bool same = c->said.valid && c->said.code == rc;
  rc = same ? rc : wl_say(c, rc, NULL);
  if (!c->extended_codes) rc &= 0xff;
  wl_leave(c);
  return rc;
}

WL_EXPORT int sqlite3_reset(sqlite3_stmt *s) {
  const sqlite3_api_routines *real = WL_REAL();
  wl_statement *t = wl_statement_of(s);
  if (t && t->state >= WL_RUNNING) return end_native(t);
  if (WL_UNLIKELY(atomic_load_explicit(&wl_n_said, memory_order_relaxed)) && s &&
      (!t || t->unreset))
    wl_unsay(real->db_handle(s));
  int rc = real->reset(s);
  if (t) t->unreset = false;
  if (t && t->state == WL_IN_SQLITE) wl_sqlite_ended(t);
  return rc;
}

void wl_statement_free(wl_statement *t) {
  if (t->state == WL_RUNNING) {
    /* SQLite has ended the statement without our knowledge. Its run cannot be closed safely. */
    atomic_fetch_sub(&t->conn->n_running, 1);
    atomic_fetch_sub(&wl_n_running, 1);
  }
  for (int k = 0; k < t->n_columns; k++) free(t->cells[k].text);
  free(t->cells);
  wl_connection_drop(t->conn);
  free(t);
}

WL_EXPORT int sqlite3_finalize(sqlite3_stmt *s) {
  const sqlite3_api_routines *real = WL_REAL();
  wl_statement *t = s ? wl_statement_of(s) : NULL;
  if (!t) {
    if (WL_UNLIKELY(atomic_load_explicit(&wl_n_said, memory_order_relaxed)) && s)
      wl_unsay(real->db_handle(s));
    return real->finalize(s);
  }
  wl_handles_remove(&wl_statements, s);
  if (t->state == WL_IN_SQLITE) wl_sqlite_ended(t);
  bool native = t->state >= WL_RUNNING;
  int rc = native ? end_native(t) : SQLITE_OK;
  if (t->unreset) wl_unsay_if(t->conn->db);
  int real_rc = real->finalize(s);
  wl_statement_free(t);
  return native ? rc : real_rc;
}

WL_EXPORT int sqlite3_data_count(sqlite3_stmt *s) {
  wl_statement *t = wl_running_of(s);
  return t ? t->n_columns : WL_REAL()->data_count(s);
}

WL_EXPORT int sqlite3_stmt_busy(sqlite3_stmt *s) {
  return wl_running_of(s) ? 1 : WL_REAL()->stmt_busy(s);
}

/* SQLite has counted trial runs too. */
WL_EXPORT int sqlite3_stmt_status(sqlite3_stmt *s, int op, int reset) {
  const sqlite3_api_routines *real = WL_REAL();
  wl_statement *t = op == SQLITE_STMTSTATUS_RUN ? wl_statement_of(s) : NULL;
  int n = real->stmt_status(s, op, reset);
  if (t) n -= t->n_extra_runs;
  if (t && reset) t->n_extra_runs = 0;
  return n;
}

WL_EXPORT sqlite3_stmt *sqlite3_next_stmt(sqlite3 *db, sqlite3_stmt *s) {
  const sqlite3_api_routines *real = WL_REAL();
  do s = real->next_stmt(db, s);
  while (s && wl_handles_find(&wl_statements, s) == &wl_own_mark);
  return s;
}

WL_EXPORT void sqlite3_log(int code, const char *format, ...) {
  char text[1000];
  va_list args;
  if (wl_silent) return;
  const sqlite3_api_routines *real = WL_REAL();
  va_start(args, format);
  real->xvsnprintf(sizeof text, text, format, args);
  va_end(args);
  real->log(code, "%s", text);
}
