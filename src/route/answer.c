/*
** Runs a statement. Where wl_route() chooses a native engine, the first batch is computed at once.
** Otherwise SQLite runs it.
*/
#include "route/answer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "exec/gpu/device.h"
#include "exec/gpu/sinks/device_rows.h"
#include "plan/row_order.h"
#include "route/place_query.h"
#include <stdio.h>
#include <string.h>

/* Adds details to the reason that are known only after the start. */
static void say_started(wl_answer *a, const wl_decision *d, const struct wl_device *device) {
  const char *detour = wl_run_detour(a->run), *note = wl_run_note(a->run);
  if (detour)
    wl_conn_reason(a->conn, "cpu", "not on the gpu: %s", detour);
  else if (device && note)
    wl_conn_reason(a->conn, "gpu", "%s (%s), %s; %s", device->name, device->kind, d->place.reason,
                   note);
}

/* Rows that are to stay on the device: prepares for them, or says why they cannot. */
static wl_device_rows *rows_that_stay(const wl_request *q, const wl_decision *d) {
  if (!q->stays) return NULL;
  q->stays->device = d->ready.device;
  if (q->stays->device && !wl_device_rows_typed(d->ready.program))
    wl_device_rows_refuse(q->stays, "a column may have values of several types");
  return q->stays->device && !q->stays->refused ? q->stays : NULL;
}

/* The run has ended, or has a batch for the host. Says where the rows are. rc: how it went. False:
** some are on the device and others are not, so that the statement must run again. */
static bool settle_rows(wl_answer *a, wl_device_rows *r, wl_status rc) {
  wl_conn *c = a->conn;
  bool detour = a->run && wl_run_detour(a->run), host = rc || a->first || detour;
  if (!r || rc == WL_INTERRUPT) return true;
  if (host && r->first) return false;
  r->on_device = r->device && !r->refused && !host;
  if (r->on_device || detour || rc || !r->device) return true;
  wl_device_rows_refuse(r, "the last step ran on the cpu");
  size_t n = strlen(c->reason);
  snprintf(c->reason + n, sizeof c->reason - n, "; rows on the host: %s", r->why);
  return true;
}

/* Starts a prepared native run and computes the first batch. Until rows have been returned, SQLite
** can still take over. *again: it must start once more, with its rows on the host. */
static wl_status start(wl_answer *a, const wl_request *q, wl_decision *d, bool *again,
                       wl_error *err) {
  struct wl_device *device = d->ready.device;
  a->n_cols = d->text->query->n_results;
  a->over.scans_table = wl_query_scans_table(d->text->query);
  a->over.seen = d->ready.seen;
  a->over.n_seen = d->ready.n_seen;
  d->ready.seen = NULL;
  wl_device_rows *stays = rows_that_stay(q, d);
  wl_status rc = wl_ready_run(&d->env, &d->ready, NULL, NULL, stays, &a->run, err);
  bool running = !rc;
  if (running) {
    wl_conn_set_reason(a->conn, d->reason);
    rc = wl_run_next(a->run, &a->first, err);
    say_started(a, d, rc ? NULL : device);
  }
  *again = !settle_rows(a, q->stays, rc);
  if (*again && rc) wl_device_rows_refuse(q->stays, err->text);
  if (*again) rc = WL_NOT_TAKEN;
  if (rc && !*again) rc = wl_route_judge(rc, err);
  /* SQLite returns the groups before the failing one. With strict, the error comes at once. */
  if (rc == WL_ERROR && running && d->text->query->grouped && !(a->conn->set.strict && !q->is_part))
    rc = wl_not_taken(err, "a group fails: %.300s", err->text);
  if (!rc && wl_run_more(a->run)) rc = wl_handover_keep(a, q->args, q->n_args, err);
  a->has_first = !rc;
  /* an error of the query itself, which SQLite would raise too */
  a->failed = running && rc && rc != WL_NOT_TAKEN;
  if (!rc) return WL_OK;
  wl_batch_give(a->first);
  a->first = NULL;
  wl_run_close(a->run);
  a->run = NULL;
  wl_handover_close(a);
  return rc;
}

wl_status wl_answer_next(wl_answer *a, wl_batch **out, wl_error *err) {
  wl_status rc = WL_OK;
  if (a->over.done) return wl_handover_next(a, out, err);
  if (!a->has_first) rc = wl_run_next(a->run, out, err);
  if (rc == WL_NOT_TAKEN || rc == WL_TOOBIG) {
    rc = wl_handover(a, err);
    return rc ? rc : wl_handover_next(a, out, err);
  }
  if (a->has_first) *out = a->first;
  a->first = NULL;
  a->has_first = false;
  if (!rc && *out) a->over.n_given += (*out)->n_rows - (*out)->skip;
  if (!rc && !*out && a->over.late.code) {
    *err = a->over.late;
    rc = err->code;
  }
  return rc;
}

wl_status wl_answer_sqlite(wl_answer *a, sqlite3_value **args, int n_args, const wl_mask *mask,
                           wl_error *err) {
  wl_conn *c = a->conn;
  int rc = wl_masked_prepare(c->db, a->sql, -1, mask, &a->stmt, NULL);
  if (rc) return wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(c->db));
  a->n_cols = sqlite3_column_count(a->stmt);
  /* Arguments are the values of the parameters that occur, in the order of their numbers. */
  wl_arena arena;
  wl_stmt *s;
  wl_arena_init(&arena);
  wl_status st = n_args ? wl_parse(&arena, a->sql, strlen(a->sql), &s, err) : WL_OK;
  for (int i = 0, k = 0; !st && n_args && i < s->n_params && k < n_args; i++)
    if (s->params[i]) sqlite3_bind_value(a->stmt, i + 1, args[k++]);
  wl_arena_close(&arena);
  return st;
}

wl_status wl_answer_labels(wl_answer *a, wl_u64 *out, wl_error *err) {
  wl_statement_text *t = a->conn->texts; /* the text of a native run is the latest */
  sqlite3_stmt *s = NULL;
  bool known = a->run && t && strcmp(t->sql, a->sql) == 0;
  *out = a->stmt ? wl_stmt_labels(a->stmt) : known ? t->labels : 0;
  if (*out) return WL_OK;
  if (sqlite3_prepare_v2(a->conn->db, a->sql, -1, &s, NULL))
    return wl_fail(err, WL_ERROR, "%s", sqlite3_errmsg(a->conn->db));
  *out = wl_stmt_labels(s);
  if (known) t->labels = *out;
  sqlite3_finalize(s);
  return WL_OK;
}

/* Sets up an answer that has not started. */
static wl_status begin(wl_conn *c, const wl_request *q, wl_answer *a, wl_error *err) {
  memset(a, 0, sizeof *a);
  a->conn = c;
  a->started = wl_clock_ns();
  a->sql = wl_mem_alloc(q->n_sql + 1);
  if (!a->sql) return wl_nomem(err);
  memcpy(a->sql, q->sql, q->n_sql);
  a->sql[q->n_sql] = 0;
  return WL_OK;
}

/* Decides who runs the statement, and starts a native run. again: see start(). */
static wl_status route_and_start(wl_answer *a, const wl_request *q, wl_decision *d, bool *again,
                                 wl_error *err) {
  *again = false;
  wl_status rc = wl_route(a->conn, q, d, err);
  if (rc || d->engine == WL_ENGINE_SQLITE) return rc;
  rc = start(a, q, d, again, err);
  if (*again) return rc;
  if (!rc && !d->place.loads && !q->stays && !wl_run_more(a->run))
    wl_place_measured(a->conn, d->text, &d->place, wl_clock_ns() - a->started);
  if (rc == WL_NOT_TAKEN) wl_place_gave_up(d->text);
  return rc && !a->failed ? wl_route_leave(a->conn, q, rc, d, err) : rc;
}

wl_status wl_answer_open(wl_conn *c, const wl_request *q, const wl_mask *mask, wl_answer *a,
                         wl_error *err) {
  wl_decision d = {0};
  bool again = false;
  wl_status rc = begin(c, q, a, err);
  if (!rc) rc = route_and_start(a, q, &d, &again, err);
  if (again) {
    wl_decision_close(&d);
    d = (wl_decision){0};
    wl_device_rows_clear(q->stays);
    wl_device_rows_refuse(q->stays, "the device could not finish the statement");
    rc = route_and_start(a, q, &d, &again, err);
  }
  if (d.engine == WL_ENGINE_SQLITE && *d.reason) wl_conn_set_reason(c, d.reason);
  /* Under preload the application's own statement runs then. */
  if (!rc && d.engine == WL_ENGINE_SQLITE && q->stage != WL_AT_EXECUTE)
    rc = wl_answer_sqlite(a, q->args, q->n_args, mask, err);
  memcpy(a->reason, c->reason, sizeof a->reason);
  wl_decision_close(&d);
  if (rc) wl_answer_close(a);
  return rc;
}

wl_status wl_answer_open_sqlite(wl_conn *c, const wl_request *q, const char *reason,
                                sqlite3_stmt *stmt, wl_answer *a, wl_error *err) {
  wl_status rc = begin(c, q, a, err);
  wl_conn_set_reason(c, reason);
  memcpy(a->reason, c->reason, sizeof a->reason);
  a->stmt = stmt;
  a->n_cols = stmt ? sqlite3_column_count(stmt) : 0;
  return rc || stmt ? rc : wl_answer_sqlite(a, q->args, q->n_args, NULL, err);
}

void wl_answer_close(wl_answer *a) {
  wl_run_close(wl_answer_finish(a));
}

wl_run *wl_answer_finish(wl_answer *a) {
  wl_run *run = a->run;
  if (!a->conn) return NULL;
  const char *detour = a->run ? wl_run_detour(a->run) : NULL;
  if (detour) {
    wl_conn_reason(a->conn, "cpu", "not on the gpu: %s", detour);
    memcpy(a->reason, a->conn->reason, sizeof a->reason);
  }
  const char *transfer = a->run && !detour ? wl_run_transfer(a->run) : NULL;
  if (transfer) {
    /* else the reason belongs to a later statement */
    bool latest = strcmp(a->reason, a->conn->reason) == 0;
    size_t n = strlen(a->reason);
    sqlite3_snprintf((int)(sizeof a->reason - n), a->reason + n, ", %s", transfer);
    if (latest) memcpy(a->conn->reason, a->reason, sizeof a->reason);
  }
  enum { MANY_STEPS = 50000 };
  int n_steps = a->stmt ? sqlite3_stmt_status(a->stmt, SQLITE_STMTSTATUS_VM_STEP, 0) : 0;
  if (n_steps > MANY_STEPS) (void)wl_place_sqlite_took(a->conn, a->sql, strlen(a->sql), n_steps);
  if ((a->run || a->stmt) && !a->unlogged)
    wl_conn_log(a->conn, a->reason, a->sql, strlen(a->sql), a->n_rows,
                (wl_clock_ns() - a->started) / 1e6);
  wl_batch_give(a->first);
  sqlite3_finalize(a->stmt);
  wl_handover_close(a);
  wl_mem_free(a->sql);
  memset(a, 0, sizeof *a);
  return run;
}
