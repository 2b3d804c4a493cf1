/*
** Changes that may run again: parsed and bound, with the statements that their runs prepared. The
** caller's prepared statement holds only its text (dml.h). Here the text is found again, so that a
** small change that runs ten thousand times is parsed once.
**
** Invariants:
** 1. A change in the list is not running. A running change belongs to one run, so the same text can
**    run inside itself.
** 2. The table may have been dropped, and another may have its name, even its address. So a change
**    is used again only if the table found by name has the same serial number.
** 3. The statements are reset and have no bound values. They are finalized with the connection's
**    other helpers.
*/
#include "dml/change.h"
#include "base/mem.h"
#include <string.h>

enum { MOST = 32 };

void wl_change_drop_statements(wl_change *m) {
  for (int k = 0; k < m->n_clauses && m->upserts; k++) {
    sqlite3_finalize(m->upserts[k]);
    m->upserts[k] = NULL;
  }
  sqlite3_finalize(m->source);
  m->source = NULL;
}

/* Stepping an expired statement would prepare it again, and ask the authorizer about our text. */
static bool is_expired(sqlite3_stmt *s) {
  return s && (!sqlite3_api->expired || sqlite3_api->expired(s));
}

static bool has_expired(const wl_change *m) {
  bool any = is_expired(m->source);
  for (int k = 0; k < m->n_clauses; k++) any |= is_expired(m->upserts[k]);
  return any;
}

static void free_change(wl_change *m) {
  wl_change_drop_statements(m);
  sqlite3_free(m->source_sql);
  wl_arena_close(&m->room.texts);
  wl_change_close(m);
  wl_mem_free(m);
}

void wl_change_drop_all(wl_conn *c) {
  while (c->changes) {
    wl_change *m = c->changes;
    c->changes = m->next;
    free_change(m);
  }
}

static wl_status make_change(wl_conn *c, const char *sql, wl_change **out, wl_error *err) {
  wl_change *m = wl_mem_alloc(sizeof *m);
  if (!m) return wl_nomem(err);
  wl_status rc = wl_change_open(c, sql, strlen(sql), m, err);
  if (rc) {
    wl_mem_free(m);
    return rc;
  }
  rc = wl_change_bind(m, err);
  m->upserts = rc ? NULL : WL_NEW_N(&m->arena, sqlite3_stmt *, m->n_clauses + 1);
  if (!rc && !m->upserts) rc = wl_nomem(err);
  if (rc)
    free_change(m);
  else
    *out = m;
  return rc;
}

wl_status wl_change_acquire(wl_conn *c, const char *sql, wl_change **out, wl_error *err) {
  *out = NULL;
  for (wl_change **at = &c->changes; *at; at = &(*at)->next) {
    wl_change *m = *at;
    if (strcmp(m->sql, sql) != 0) continue;
    *at = m->next;
    if (wl_change_is_current(m)) {
      if (has_expired(m)) wl_change_drop_statements(m);
      *out = m;
      return WL_OK;
    }
    free_change(m);
    break;
  }
  return make_change(c, sql, out, err);
}

static void reset_for_next_run(sqlite3_stmt *s) {
  if (!s) return;
  sqlite3_reset(s);
  sqlite3_clear_bindings(s);
}

void wl_change_release(wl_change *m) {
  if (!m) return;
  wl_conn *c = m->conn;
  if (!c->has_keeper) { /* nothing would finalize its statements */
    free_change(m);
    return;
  }
  reset_for_next_run(m->source);
  for (int k = 0; k < m->n_clauses; k++) reset_for_next_run(m->upserts[k]);
  m->next = c->changes;
  c->changes = m;
  int n = 1;
  wl_change **at = &m->next;
  for (; *at && n < MOST; n++) at = &(*at)->next;
  if (!*at) return;
  wl_change *oldest = *at;
  *at = NULL;
  free_change(oldest);
}
