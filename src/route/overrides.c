/*
** See overrides.h.
*/
#include "route/overrides.h"
#include "base/mem.h"
#include <string.h>

static wl_status unlisted(wl_conn *c, int rc, wl_error *err) {
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  return wl_not_taken(err, "the functions cannot be listed: %.300s", sqlite3_errmsg(c->db));
}

/* Adds a name to the list. A function has one entry for each number of arguments. */
static wl_status add(wl_function_list *l, const char *name, wl_error *err) {
  size_t n = strlen(name) + 1;
  if (l->n_bytes + n > l->size) {
    size_t size = 2 * (l->size + n);
    char *more = wl_mem_realloc(l->names, l->size, size);
    if (!more) return wl_nomem(err);
    l->names = more;
    l->size = size;
  }
  memcpy(l->names + l->n_bytes, name, n);
  l->n_bytes += n;
  return WL_OK;
}

/* Lists the functions that are not SQLite's own, and those that are, if builtins is not NULL.
** SQLite puts the list into the statement when it is prepared, so the statement cannot be kept. */
static wl_status list(wl_conn *c, wl_function_list *builtins, wl_error *err) {
  enum { NAME, BUILTIN };
  wl_function_list *l = &c->functions;
  sqlite3_stmt *s = NULL;
  wl_status st = WL_OK;
  l->n_bytes = 0;
  int rc = sqlite3_prepare_v2(c->db, "PRAGMA function_list", -1, &s, NULL);
  if (rc) return unlisted(c, rc, err);
  while (!st && (rc = sqlite3_step(s)) == SQLITE_ROW) {
    wl_function_list *to = sqlite3_column_int(s, BUILTIN) ? builtins : l;
    const char *name = to ? (const char *)sqlite3_column_text(s, NAME) : NULL;
    if (to) st = name ? add(to, name, err) : wl_nomem(err);
  }
  if (!st && rc != SQLITE_DONE) st = unlisted(c, rc, err);
  sqlite3_finalize(s);
  return st;
}

/* The name as it is in the list, or NULL. */
static const char *find(const wl_function_list *l, const char *name) {
  for (size_t at = 0; at < l->n_bytes; at += strlen(l->names + at) + 1)
    if (sqlite3_stricmp(l->names + at, name) == 0) return l->names + at;
  return NULL;
}

wl_status wl_overrides_check(wl_conn *c, const wl_query *q, wl_error *err) {
  if (!q->n_calls || c->no_functions) return WL_OK;
  wl_status rc = list(c, NULL, err);
  if (rc) return rc;
  for (int k = 0; k < q->n_calls; k++) {
    const char *name = find(&c->functions, q->calls[k]);
    if (name) return wl_not_taken(err, "the application has replaced %.200s()", name);
  }
  return WL_OK;
}

wl_status wl_overrides_check_all(wl_conn *c, wl_error *err) {
  wl_function_list *l = &c->functions, builtins = {0};
  wl_status rc = list(c, &builtins, err);
  for (size_t at = 0; at < l->n_bytes && !rc; at += strlen(l->names + at) + 1)
    if (find(&builtins, l->names + at))
      rc = wl_not_taken(err, "the application has replaced %.200s()", l->names + at);
  wl_mem_free(builtins.names);
  return rc;
}
