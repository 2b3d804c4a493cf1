/*
** Detects that a ROLLBACK has ended running statements. SQLite lets readers continue after a
** ROLLBACK, unless it undoes a change of the schema. Then their next step fails with
** SQLITE_ABORT_ROLLBACK. A native statement reads no b-tree, so SQLite does not stop it. This code
** does.
**
** While native statements run, a helper statement stays on a row of a b-tree. Such a ROLLBACK
** expires all statements, which takes a nanosecond to check. Other events expire them too, so an
** expired helper is stepped once: it fails if the cause was a ROLLBACK.
**
** Invariants:
** 1. The helper stands on a row while n_watching > 0, unless it could not be started.
** 2. n_aborts counts the ROLLBACKs that were detected. A statement that began at another count has
**    ended.
*/
#include "route/conn.h"
#include <string.h>

/* Never ends: it reads the schema table again and again. */
static const char endless[] = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT 1 FROM c) "
                              "SELECT 1 FROM c LEFT JOIN main.sqlite_schema";

/* SQLite may have been built without this call. Then no ROLLBACK is detected. */
static bool expired(const wl_watch *w) {
  return w->on_row && sqlite3_api->expired && sqlite3_expired(w->helper);
}

static void start(wl_watch *w, sqlite3 *db) {
  if (!w->helper &&
      sqlite3_prepare_v3(db, endless, -1, SQLITE_PREPARE_PERSISTENT, &w->helper, NULL))
    return;
  w->on_row = sqlite3_step(w->helper) == SQLITE_ROW;
  if (!w->on_row) sqlite3_reset(w->helper);
}

/* Tries whether the helper can still move. If so, restarts it, which makes it valid again. */
static void look(wl_watch *w, sqlite3 *db) {
  sqlite3_step(w->helper);
  if (sqlite3_reset(w->helper) == SQLITE_OK) {
    start(w, db);
    return;
  }
  w->on_row = false;
  if (sqlite3_extended_errcode(db) == SQLITE_ABORT_ROLLBACK) w->n_aborts++;
}

wl_i64 wl_watch_open(wl_conn *c) {
  wl_watch *w = &c->watch;
  if (expired(w)) look(w, c->db);
  if (!w->on_row) start(w, c->db);
  w->n_watching++;
  return w->n_aborts;
}

void wl_watch_close(wl_conn *c) {
  wl_watch *w = &c->watch;
  if (--w->n_watching > 0 || !w->on_row) return;
  sqlite3_reset(w->helper);
  w->on_row = false;
}

bool wl_watch_aborted(wl_conn *c, wl_i64 since) {
  wl_watch *w = &c->watch;
  if (expired(w)) look(w, c->db);
  return w->n_aborts != since;
}

void wl_watch_quiet(wl_watch *w) {
  sqlite3_finalize(w->helper);
  w->helper = NULL;
  w->on_row = false;
}

bool wl_watch_matters(wl_conn *c, const char *sql) {
  sqlite3_stmt *q = NULL;
  bool sorted = false;
  char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
  int rc = text ? sqlite3_prepare_v2(c->db, text, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(text);
  while (!rc && sqlite3_step(q) == SQLITE_ROW) {
    const char *detail = (const char *)sqlite3_column_text(q, 3);
    sorted |= detail && (strcmp(detail, "USE TEMP B-TREE FOR ORDER BY") == 0 ||
                         strcmp(detail, "USE TEMP B-TREE FOR GROUP BY") == 0);
  }
  sqlite3_finalize(q);
  return !sorted;
}
