/*
** Step, reset and finalize, and other functions that ask how far a statement has come.
*/
#include "preload/preload.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

atomic_int wl_n_awake;
wl_statement wl_own_mark;
_Thread_local int wl_silent;
_Thread_local wl_connection *wl_inside;

/* ---- native runs */

void wl_set_state(wl_statement *t, wl_state state) {
  int running = (state == WL_RUNNING) - (t->state == WL_RUNNING);
  int awake = (state >= WL_RUNNING) - (t->state >= WL_RUNNING);
  if (running) atomic_fetch_add(&t->conn->n_running, running);
  if (awake) atomic_fetch_add(&wl_n_awake, awake);
  t->state = state;
}

void wl_native_finish(wl_statement *t) {
  wl_connection *c = t->conn;
  const wl_native_calls *lib = wl_library_if_open();
  wl_silent++;
  lib->finish(t->run);
  t->run = NULL;
  if (c->closing) lib->quiet(c->db); /* the connection must be able to end with its statements */
  wl_silent--;
  wl_set_state(t, WL_ENDED);
  t->n_on_row = t->n_mirrors = 0;
  for (int k = 0; k < t->n_columns; k++) t->cells[k].mirror = NULL;
  if (WL_UNLIKELY(wl_reporting)) wl_report_end(t);
}

static int fail(wl_statement *t, int code, const char *message) {
  const sqlite3_api_routines *api = &t->conn->real->api;
  if (t->state == WL_RUNNING) wl_native_finish(t);
  wl_set_state(t, WL_ENDED);
  t->failed = code;
  api->log(code, "statement aborts at 0: [%s] %s", api->sql(t->stmt), message);
  return wl_set_result(t->conn, code, message);
}

int wl_interrupted(wl_statement *t) {
  return fail(t, SQLITE_INTERRUPT, "interrupted");
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
  wl_connection *outside = wl_inside;
  int limits[WL_N_LIFTED];
  wl_silent++;
  wl_inside = t->conn;
  wl_limits_lift(t->conn, limits);
  int rc = wl_library_if_open()->next(t->run, &t->rows, message);
  wl_limits_restore(t->conn, limits);
  wl_inside = outside;
  wl_silent--;
  if (rc == SQLITE_ROW) t->row = t->rows.first;
  return rc;
}

/* The rare parts of a step: an event to look at, or the next batch. */
static int slow_step(wl_statement *t) {
  wl_connection *c = t->conn;
  char message[WL_NATIVE_TEXT] = "";
  int rc = SQLITE_OK;
  if (atomic_load(&c->n_events) != t->n_events) rc = look(t, message);
  if (rc != SQLITE_OK) return fail(t, rc, message);
  if (t->row < t->rows.n_rows) return SQLITE_ROW;
  t->n_on_row = 0;
  rc = refill(t, message);
  if (rc == SQLITE_DONE) {
    wl_native_finish(t);
    return wl_set_result(c, SQLITE_DONE, NULL);
  }
  if (rc != SQLITE_ROW) return fail(t, rc, message);
  t->n_on_row = t->n_columns;
  return SQLITE_ROW;
}

static inline int native_step(wl_statement *t) {
  wl_connection *c = t->conn;
  t->row++;
  t->stamp++;
  t->n_mirrors = 0;
  if (WL_UNLIKELY(t->row >= t->rows.n_rows ||
                  atomic_load_explicit(&c->n_events, memory_order_relaxed) != t->n_events)) {
    int rc = slow_step(t);
    if (rc != SQLITE_ROW) return rc;
  }
  if (WL_UNLIKELY(c->trace_mask & SQLITE_TRACE_ROW))
    c->trace(SQLITE_TRACE_ROW, c->trace_arg, t->stmt, NULL);
  if (WL_UNLIKELY(atomic_load_explicit(&c->result.code, memory_order_relaxed) != SQLITE_ROW))
    wl_set_result(c, SQLITE_ROW, NULL);
  return SQLITE_ROW;
}

int wl_native_step(wl_statement *t) {
  return native_step(t);
}

/* ---- the interface */

/* A statement without a record may roll back, so native statements look whether they have ended.
** One of sqlite3_prepare() may return an error without setting it. */
static void stepped_beside(const sqlite3_api_routines *real, sqlite3_stmt *s, int rc) {
  sqlite3 *db = s ? real->db_handle(s) : NULL;
  wl_connection *c = db ? wl_connection_of(db) : NULL;
  if (c && (real->errcode(db) & 0xff) == (rc & 0xff)) wl_connection_forget_result(c);
  if (c && atomic_load(&c->n_running)) atomic_fetch_add(&c->n_events, 1);
}

WL_EXPORT int sqlite3_step(sqlite3_stmt *s) {
  wl_statement *t = wl_statement_of(s);
  if (t && t->state == WL_RUNNING) {
    wl_connection *c = t->conn;
    wl_enter(c);
    /* Another thread may have ended it. */
    int rc = WL_LIKELY(t->state == WL_RUNNING) ? native_step(t) : wl_first_step(t);
    wl_leave(c);
    return rc;
  }
  const sqlite3_api_routines *real = WL_REAL();
  if (!t) {
    int rc = real->step(s);
    if (WL_UNLIKELY(wl_is_awake())) stepped_beside(real, s, rc);
    return rc;
  }
  if (t->state != WL_IN_SQLITE) return wl_first_step(t);
  int rc = real->step(s);
  wl_forget_result_if(t->conn->db);
  if (rc != SQLITE_ROW) wl_sqlite_ended(t);
  return rc;
}

/* Whether a reset sets the connection's error: only if the statement has run since the last one,
** and did not fail as it was prepared again. SQLite tells by its error for a parameter that does
** not exist. */
static bool reset_sets_error(const wl_statement *t, sqlite3_stmt *s) {
  if (t && !t->unreset) return false;
  const sqlite3_api_routines *real = WL_REAL();
  wl_connection *c = wl_connection_of(real->db_handle(s));
  if (!c || c->result.code == WL_NO_RESULT) return true;
  wl_silent++;
  int rc = real->bind_null(s, 0);
  real->exec(c->db, "", NULL, NULL, NULL); /* clears SQLite's own error */
  wl_silent--;
  return rc == SQLITE_MISUSE;
}

/* Ends a native execution. Returns what sqlite3_reset() returns. */
static int end_native(wl_statement *t) {
  wl_connection *c = t->conn;
  wl_enter(c);
  if (t->state == WL_RUNNING) wl_native_finish(t);
  wl_set_state(t, WL_AT_REST);
  int rc = t->failed;
  t->failed = SQLITE_OK;
  if (c->result.code != rc) wl_set_result(c, rc, NULL);
  if (!c->extended_codes) rc &= 0xff;
  wl_leave(c);
  return rc;
}

WL_EXPORT int sqlite3_reset(sqlite3_stmt *s) {
  const sqlite3_api_routines *real = WL_REAL();
  wl_statement *t = wl_statement_of(s);
  if (t && t->state >= WL_RUNNING) return end_native(t);
  if (WL_UNLIKELY(wl_is_awake()) && s && reset_sets_error(t, s))
    wl_forget_result(real->db_handle(s));
  int rc = real->reset(s);
  if (t) t->unreset = false;
  if (t && t->state == WL_IN_SQLITE) wl_sqlite_ended(t);
  return rc;
}

/* Records that were freed wait here for the next statement. */
enum { N_SPARE = 64 };
static _Atomic(wl_statement *) spare[N_SPARE];

static inline _Atomic(wl_statement *) *spare_for(const sqlite3_stmt *s) {
  return &spare[((size_t)s >> 6) % N_SPARE];
}

wl_statement *wl_statement_new(sqlite3_stmt *s) {
  wl_statement *t = atomic_exchange_explicit(spare_for(s), NULL, memory_order_acq_rel);
  if (!t) t = malloc(sizeof *t);
  if (!t) return NULL;
  memset(t, 0, sizeof *t);
  t->stmt = s;
  return t;
}

void wl_statement_give(wl_statement *t) {
  wl_statement *full = NULL;
  if (!atomic_compare_exchange_strong_explicit(spare_for(t->stmt), &full, t, memory_order_acq_rel,
                                               memory_order_relaxed))
    free(t);
}

void wl_statement_free(wl_statement *t) {
  /* If SQLite has ended the statement without our knowledge, its run cannot be closed safely. */
  if (WL_UNLIKELY(t->state >= WL_RUNNING)) wl_set_state(t, WL_AT_REST);
  if (WL_UNLIKELY(t->cells != NULL)) {
    for (int k = 0; k < t->n_columns; k++) free(t->cells[k].text);
    free(t->cells);
  }
  wl_connection_drop(t->conn);
  wl_statement_give(t);
}

WL_EXPORT int sqlite3_finalize(sqlite3_stmt *s) {
  const sqlite3_api_routines *real = WL_REAL();
  wl_statement *t = s ? wl_statement_of(s) : NULL;
  if (!t) {
    if (WL_UNLIKELY(wl_is_awake()) && s && reset_sets_error(t, s))
      wl_forget_result(real->db_handle(s));
    return real->finalize(s);
  }
  wl_handles_remove(&wl_statements, s);
  if (t->state == WL_IN_SQLITE) wl_sqlite_ended(t);
  if (t->n_unread) wl_sqlite_cost(t);
  bool native = t->state >= WL_RUNNING;
  int rc = native ? end_native(t) : SQLITE_OK;
  if (WL_UNLIKELY(wl_is_awake()) && reset_sets_error(t, s)) wl_forget_result(t->conn->db);
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
