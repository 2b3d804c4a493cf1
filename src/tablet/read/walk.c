/*
** See walk.h. The table caches a statement of each kind from one walk to the next.
*/
#include "tablet/read/walk.h"
#include "base/mem.h"
#include <stdlib.h>

enum { LOWER = 1, UPPER = 2, DESC = 4 }; /* flags: they make WL_WALK_N kinds of walks over a key */

static wl_status take_statement(wl_tablets *t, int key, int kind, sqlite3_stmt **out,
                                wl_error *err) {
  static const char *const where[] = {"", "WHERE k0 >= ?1 ", "WHERE k0 <= ?2 ",
                                      "WHERE k0 >= ?1 AND k0 <= ?2 "};
  size_t n = (size_t)t->decl->n_keys * WL_WALK_N;
  if (!t->walks && !(t->walks = wl_mem_zalloc(n * sizeof *t->walks))) return wl_nomem(err);
  sqlite3_stmt **idle = &t->walks[key * WL_WALK_N + kind];
  if (*idle) {
    *out = *idle;
    *idle = NULL;
    return WL_OK;
  }
  char *sql = sqlite3_mprintf("SELECT id FROM \"%w\".\"%w_key%d\" %sORDER BY k0%s", t->schema,
                              t->name, key, where[kind & 3], kind & DESC ? " DESC" : "");
  if (!sql) return wl_nomem(err);
  int rc = sqlite3_prepare_v3(t->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
  sqlite3_free(sql);
  return rc ? wl_tablets_error(t, rc, err) : WL_OK;
}

wl_status wl_walk_start(wl_walk *w, wl_tablets *t, int key, bool desc, sqlite3_value *lower,
                        sqlite3_value *upper, wl_error *err) {
  int kind = (lower ? LOWER : 0) | (upper ? UPPER : 0) | (desc ? DESC : 0);
  wl_walk_stop(w, t);
  wl_status rc = take_statement(t, key, kind, &w->stmt, err);
  if (rc) return rc;
  w->which = key * WL_WALK_N + kind;
  w->epoch = t->epoch;
  int st = lower ? sqlite3_bind_value(w->stmt, 1, lower) : SQLITE_OK;
  if (!st && upper) st = sqlite3_bind_value(w->stmt, 2, upper);
  return st ? wl_tablets_error(t, st, err) : WL_OK;
}

void wl_walk_stop(wl_walk *w, wl_tablets *t) {
  if (w->stmt && t->walks && w->epoch == t->epoch && !t->walks[w->which]) {
    sqlite3_reset(w->stmt);
    sqlite3_clear_bindings(w->stmt);
    t->walks[w->which] = w->stmt;
  } else {
    sqlite3_finalize(w->stmt);
  }
  wl_mem_free(w->ids);
  *w = (wl_walk){.stmt = NULL};
}

wl_status wl_walk_next(wl_walk *w, wl_tablets *t, wl_i64 *rowid, bool *end, wl_error *err) {
  if (w->ids) {
    *end = w->at == w->n;
    if (!*end) *rowid = w->ids[w->at++];
    return WL_OK;
  }
  int st = wl_tablets_step(t, w->stmt);
  *end = st != SQLITE_ROW;
  if (!*end) *rowid = sqlite3_column_int64(w->stmt, 0);
  return st == SQLITE_ROW || st == SQLITE_DONE ? WL_OK : wl_tablets_error(t, st, err);
}

static int compare_rowids(const void *a, const void *b) {
  wl_i64 x = *(const wl_i64 *)a, y = *(const wl_i64 *)b;
  return (x > y) - (x < y);
}

wl_status wl_walk_gather(wl_walk *w, wl_tablets *t, wl_i64 most, bool *all, wl_error *err) {
  wl_i64 *ids = NULL, n = 0, size = 0, id;
  bool end = false;
  wl_status rc = WL_OK;
  *all = true;
  for (;;) {
    rc = wl_walk_next(w, t, &id, &end, err);
    if (rc || end) break;
    if (n == most) {
      *all = false;
      break;
    }
    if (n == size) {
      wl_i64 more = size ? size * 2 : 256;
      wl_i64 *p = wl_mem_realloc(ids, (size_t)n * sizeof *p, (size_t)more * sizeof *p);
      if (!p) {
        rc = wl_nomem(err);
        break;
      }
      ids = p;
      size = more;
    }
    ids[n++] = id;
  }
  wl_walk_stop(w, t);
  if (rc || !*all || (!ids && !(ids = wl_mem_alloc(sizeof *ids)))) {
    wl_mem_free(ids);
    return rc || !*all ? rc : wl_nomem(err);
  }
  qsort(ids, (size_t)n, sizeof *ids, compare_rowids);
  w->ids = ids;
  w->n = n;
  return WL_OK;
}
