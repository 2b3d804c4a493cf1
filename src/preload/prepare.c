/*
** The functions that prepare statements. SQLite prepares. Then the statement gets a record, if it
** is a SELECT of the application.
*/
#include "preload/preload.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The first word of a statement, after spaces and comments. */
static const char *first_word(const char *p, const char *end) {
  while (p < end) {
    if (isspace((unsigned char)*p) || *p == ';') {
      p++;
    } else if (end - p >= 2 && p[0] == '-' && p[1] == '-') {
      while (p < end && *p != '\n') p++;
    } else if (end - p >= 2 && p[0] == '/' && p[1] == '*') {
      const char *close = memmem(p + 2, (size_t)(end - p - 2), "*/", 2);
      p = close ? close + 2 : end;
    } else {
      break;
    }
  }
  return p;
}

static bool may_select(const char *sql, size_t n) {
  const char *p = first_word(sql, sql + n);
  int c = p < sql + n ? *p | 32 : 0;
  return c == 's' ? (p[1] | 32) == 'e' : c == 'w';
}

static uint64_t hash_text(const char *s, size_t n) {
  uint64_t h = n * 0x9E3779B97F4A7C15u, w = 0;
  for (; n >= 8; s += 8, n -= 8) {
    memcpy(&w, s, 8);
    h = (h ^ w) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  }
  w = 0;
  for (size_t i = 0; i < n; i++) w = w << 8 | (unsigned char)s[i];
  h = (h ^ w) * 0xD6E8FEB86659FD93u;
  return h ^ h >> 32;
}

/* Removes the record of an earlier statement at this address. */
static void forget(sqlite3_stmt *s) {
  void *stale = wl_handles_remove(&wl_statements, s);
  if (WL_UNLIKELY(stale && stale != &wl_own_mark)) wl_statement_free(stale);
}

void wl_prepared(const wl_sqlite *real, sqlite3 *db, sqlite3_stmt *s, const char *sql, size_t n,
                 int n_ignored_before, void *caller) {
  /* SQLite may have ended an earlier statement at this address without our knowledge. */
  forget(s);
  if (!may_select(sql, n)) return;
  wl_connection *c = wl_connection_of(db);
  if (!c || c->inside || wl_within(real->code, caller) || wl_within(wl_warplite_code, caller))
    return;
  if (!real->api.stmt_readonly(s)) return;
  wl_statement *t = calloc(1, sizeof *t);
  if (!t) return;
  t->stmt = s;
  t->conn = c;
  t->hash = hash_text(sql, n);
  t->verdict = wl_verdict_get(c, t->hash);
  t->ignored = c->n_ignored != n_ignored_before;
  if (wl_handles_set(&wl_statements, s, t))
    atomic_fetch_add_explicit(&c->n_refs, 1, memory_order_relaxed);
  else
    free(t);
}

static int n_ignored(sqlite3 *db) {
  const wl_connection *c = wl_connection_of(db);
  return c ? c->n_ignored : 0;
}

WL_EXPORT int sqlite3_prepare_v2(sqlite3 *db, const char *sql, int n, sqlite3_stmt **out,
                                 const char **tail) {
  const wl_sqlite *real = wl_real_find(WL_CALLER);
  const char *end = NULL;
  int before = n_ignored(db);
  wl_unsay_if(db);
  int rc = real->api.prepare_v2(db, sql, n, out, &end);
  if (tail) *tail = end;
  if (rc == SQLITE_OK && *out)
    wl_prepared(real, db, *out, sql, (size_t)(end - sql), before, WL_CALLER);
  return rc;
}

WL_EXPORT int sqlite3_prepare_v3(sqlite3 *db, const char *sql, int n, unsigned flags,
                                 sqlite3_stmt **out, const char **tail) {
  const wl_sqlite *real = wl_real_find(WL_CALLER);
  const char *end = NULL;
  int before = n_ignored(db);
  wl_unsay_if(db);
  int rc = real->api.prepare_v3(db, sql, n, flags, out, &end);
  if (tail) *tail = end;
  if (rc == SQLITE_OK && *out)
    wl_prepared(real, db, *out, sql, (size_t)(end - sql), before, WL_CALLER);
  return rc;
}

/* A text in UTF-16 is found in UTF-8 in the statement. */
static void prepared16(const wl_sqlite *real, sqlite3 *db, sqlite3_stmt *s, int before,
                       void *caller) {
  const char *sql = real->api.sql(s);
  if (sql) wl_prepared(real, db, s, sql, strlen(sql), before, caller);
}

WL_EXPORT int sqlite3_prepare16_v2(sqlite3 *db, const void *sql, int n, sqlite3_stmt **out,
                                   const void **tail) {
  const wl_sqlite *real = wl_real_find(WL_CALLER);
  int before = n_ignored(db);
  wl_unsay_if(db);
  int rc = real->api.prepare16_v2(db, sql, n, out, tail);
  if (rc == SQLITE_OK && *out) prepared16(real, db, *out, before, WL_CALLER);
  return rc;
}

WL_EXPORT int sqlite3_prepare16_v3(sqlite3 *db, const void *sql, int n, unsigned flags,
                                   sqlite3_stmt **out, const void **tail) {
  const wl_sqlite *real = wl_real_find(WL_CALLER);
  int before = n_ignored(db);
  wl_unsay_if(db);
  int rc = real->api.prepare16_v3(db, sql, n, flags, out, tail);
  if (rc == SQLITE_OK && *out) prepared16(real, db, *out, before, WL_CALLER);
  return rc;
}

/* The oldest forms do not keep the text and never prepare again. SQLite runs their statements. */
static int unrecorded(int rc, sqlite3_stmt **out) {
  if (!rc && *out) forget(*out);
  return rc;
}

WL_EXPORT int sqlite3_prepare(sqlite3 *db, const char *sql, int n, sqlite3_stmt **out,
                              const char **tail) {
  wl_unsay_if(db);
  return unrecorded(WL_REAL()->prepare(db, sql, n, out, tail), out);
}

WL_EXPORT int sqlite3_prepare16(sqlite3 *db, const void *sql, int n, sqlite3_stmt **out,
                                const void **tail) {
  wl_unsay_if(db);
  return unrecorded(WL_REAL()->prepare16(db, sql, n, out, tail), out);
}
