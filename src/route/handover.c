/*
** Lets SQLite finish a statement of which the native engine has returned rows. This is needed when
** a later row must be computed by SQLite, most often because a function raises an error there.
** SQLite runs the statement from the beginning, and the rows that were returned are skipped.
**
** Invariants:
** 1. A handover happens only if the returned rows are SQLite's first rows: they came in its order
**    (wl_program.as_sqlite), and no table has changed since they were read. Otherwise the statement
**    fails. No row is returned twice or left out.
** 2. The tables are checked while SQLite's statement runs, so what it reads cannot change any more.
** 3. SQLite's error is raised after the rows before it have been returned.
*/
#include "route/answer.h"
#include "base/mem.h"
#include "column/dict.h"
#include "value/exchange.h"
#include <string.h>

enum { BATCH = 1024 };

wl_status wl_handover_keep(wl_answer *a, sqlite3_value **args, int n_args, wl_error *err) {
  a->over.args = wl_mem_zalloc(((size_t)n_args + 1) * sizeof *a->over.args);
  if (!a->over.args) return wl_nomem(err);
  for (; a->over.n_args < n_args; a->over.n_args++) {
    a->over.args[a->over.n_args] = sqlite3_value_dup(args[a->over.n_args]);
    if (!a->over.args[a->over.n_args]) return wl_nomem(err);
  }
  return WL_OK;
}

void wl_handover_close(wl_answer *a) {
  for (int k = 0; k < a->over.n_args && a->over.args; k++) sqlite3_value_free(a->over.args[k]);
  wl_mem_free(a->over.args);
  wl_mem_free(a->over.seen);
  a->over.args = NULL;
  a->over.seen = NULL;
  a->over.n_args = a->over.n_seen = 0;
}

/* Whether SQLite would return the same rows first, as far as its plan shows. */
static bool in_order(const wl_answer *a) {
  const wl_program *p = wl_run_program(a->run);
  wl_plan_facts facts;
  wl_error ignored;
  if (!p->as_sqlite) return false;
  if (!a->over.scans_table || p->sorted) return true;
  return wl_plan_facts_read(a->conn->db, a->sql, strlen(a->sql), &facts, &ignored) == WL_OK &&
         facts.rowid_order;
}

static bool unchanged(const wl_answer *a) {
  for (int k = 0; k < a->over.n_seen; k++)
    if (!wl_store_same(a->conn->store, a->over.seen[k].table, a->over.seen[k].stamp)) return false;
  return true;
}

static wl_status sqlite_error(const wl_answer *a, int rc, wl_error *err) {
  return wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(a->conn->db));
}

/* Skips the rows that were returned. */
static wl_status catch_up(wl_answer *a, wl_error *err) {
  int rc = SQLITE_ROW;
  for (wl_i64 n = 0; n < a->over.n_given; n++) {
    rc = sqlite3_step(a->stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) return sqlite_error(a, rc, err);
    if (rc == SQLITE_DONE || (n == 0 && !unchanged(a)))
      return wl_fail(err, (wl_status)SQLITE_ABORT,
                     "a table changed while the statement ran; run it again");
  }
  return WL_OK;
}

wl_status wl_handover(wl_answer *a, wl_error *err) {
  wl_conn *c = a->conn;
  wl_error why = *err;
  if (!in_order(a))
    return wl_fail(err, why.code == WL_TOOBIG ? WL_TOOBIG : WL_ERROR, "%s", why.text);
  if (c->set.strict)
    return wl_fail(err, WL_ERROR,
                   "warplite: strict=1, and only SQLite can finish this statement: %.380s",
                   why.text);
  wl_status rc = wl_answer_sqlite(a, a->over.args, a->over.n_args, NULL, err);
  if (!rc) rc = catch_up(a, err);
  if (rc) return rc;
  a->over.done = true;
  /* else the reason belongs to a later statement */
  bool latest = strcmp(a->reason, c->reason) == 0;
  size_t n = strlen(a->reason);
  sqlite3_snprintf((int)(sizeof a->reason - n), a->reason + n, ", sqlite from row %lld on: %s",
                   a->over.n_given + 1, why.text);
  if (latest) memcpy(c->reason, a->reason, sizeof c->reason);
  return WL_OK;
}

/* Converts a value of SQLite's to the form of the run's batches. False: they cannot hold it. */
static bool as_held(const wl_batch *b, wl_reg reg, int col, wl_val *v) {
  const wl_dict *dict = wl_batch_dict(b, col);
  if (v->t == WL_T_NULL) return reg.nullable || reg.type == WL_R_ANY;
  if (dict) {
    wl_i32 code = v->t == WL_T_TEXT ? wl_dict_find(dict, *v) : -1;
    *v = wl_int(code);
    return code >= 0;
  }
  return reg.type == WL_R_ANY || (reg.type == WL_R_INT && v->t == WL_T_INT) ||
         (reg.type == WL_R_REAL && v->t == WL_T_REAL) ||
         (reg.type == WL_R_TEXT && v->t == WL_T_TEXT);
}

static wl_status add_row(wl_answer *a, wl_batch *b, wl_error *err) {
  const wl_reg *regs = wl_run_regs(a->run);
  for (int k = 0; k < a->n_cols; k++) {
    wl_val v = wl_sqlite_column(a->stmt, k);
    if (wl_sqlite_lost(v)) return wl_nomem(err);
    if (!as_held(b, regs[k], k, &v))
      return wl_fail(err, WL_ERROR, "column %d has a value of an unexpected type", k + 1);
    wl_status rc = wl_outcol_put(&b->cols[k], regs[k], b->n_rows, v);
    if (rc) return rc == WL_TOOBIG ? wl_fail(err, rc, "string or blob too big") : wl_nomem(err);
  }
  b->n_rows++;
  a->over.n_given++;
  return WL_OK;
}

wl_status wl_handover_next(wl_answer *a, wl_batch **out, wl_error *err) {
  wl_batch *b = NULL;
  *out = NULL;
  if (a->over.late.code) {
    *err = a->over.late;
    return err->code;
  }
  if (!a->stmt) return WL_OK;
  wl_status rc = wl_run_batch(a->run, &b, err);
  wl_i64 room = rc ? 0 : wl_pool_rows(b->pool);
  int st = SQLITE_ROW;
  while (!rc && b->n_rows < (room < BATCH ? room : BATCH) &&
         (st = sqlite3_step(a->stmt)) == SQLITE_ROW)
    rc = add_row(a, b, err);
  if (!rc && st != SQLITE_ROW && st != SQLITE_DONE) rc = sqlite_error(a, st, err);
  if (rc || st == SQLITE_DONE) {
    sqlite3_finalize(a->stmt);
    a->stmt = NULL;
  }
  if (b && b->n_rows) {
    if (rc) a->over.late = *err;
    *out = b;
    return WL_OK;
  }
  wl_batch_give(b);
  return rc;
}
