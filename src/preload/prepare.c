/*
** The functions that prepare statements. SQLite prepares. Then the statement gets a record, if it
** is a SELECT of the application.
*/
#include "preload/preload.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

bool wl_may_select(const char *sql, size_t n) {
  const char *p = first_word(sql, sql + n);
  int c = p < sql + n ? *p | 32 : 0;
  return c == 's' ? (p[1] | 32) == 'e' : c == 'w';
}

/* The same, faster for the usual beginning. */
static inline bool may_select(const char *sql, size_t n) {
  if (WL_LIKELY(n > 1 && (sql[0] | 32) == 's' && (sql[1] | 32) == 'e')) return true;
  return wl_may_select(sql, n);
}

static inline uint64_t mix(uint64_t h, uint64_t w) {
  h = (h ^ w) * 0xD6E8FEB86659FD93u;
  return h ^ h >> 32;
}

/* The last words overlap, so that there are no single bytes to add. */
static inline uint64_t hash_text(const char *s, size_t n) {
  uint64_t h = n * 0x9E3779B97F4A7C15u, w = 0;
  if (n < 8) {
    memcpy(&w, s, n);
    return mix(h, w);
  }
  for (size_t i = 0; i + 8 < n; i += 8) {
    memcpy(&w, s + i, 8);
    h = mix(h, w);
  }
  memcpy(&w, s + n - 8, 8);
  return mix(h, w);
}

/* Removes the record of an earlier statement at this address, which SQLite has ended without our
** knowledge. */
static void forget(sqlite3_stmt *s) {
  void *stale = wl_handles_remove(&wl_statements, s);
  if (stale && stale != &wl_own_mark) wl_statement_free(stale);
}

/* Whether a text is PRAGMA case_sensitive_like. It replaces like() when it is prepared, without a
** call of sqlite3_create_function(). */
static bool replaces_like(const char *sql, size_t n) {
  static const char name[] = "case_sensitive_like";
  size_t n_name = sizeof name - 1;
  const char *p = first_word(sql, sql + n), *end = sql + n;
  if (p == end || ((*p | 32) != 'p' && (*p | 32) != 'e')) return false; /* e: EXPLAIN */
  for (; (size_t)(end - p) >= n_name; p++)
    if (strncasecmp(p, name, n_name) == 0) return true;
  return false;
}

typedef struct preparation {
  const wl_sqlite *real;
  wl_connection *conn; /* NULL: not known */
  int n_ignored;       /* answers of the authorizer before it */
} preparation;

static inline preparation begin(sqlite3 *db, void *caller) {
  const wl_sqlite *only = atomic_load_explicit(&wl_only, memory_order_acquire);
  preparation p = {WL_LIKELY(only != NULL) ? only : wl_real_find(caller), wl_connection_of(db), 0};
  if (p.conn) p.n_ignored = p.conn->n_ignored;
  wl_forget_result_if(db);
  return p;
}

/* Gives a statement that was just prepared a record, if it can be worth it. */
static inline void end(const preparation *p, sqlite3_stmt *s, const char *sql, size_t n,
                       void *caller) {
  if (WL_UNLIKELY(wl_handles_find(&wl_statements, s) != NULL)) forget(s);
  wl_connection *c = p->conn;
  if (!c) return;
  if (!may_select(sql, n)) {
    if (WL_UNLIKELY(replaces_like(sql, n))) c->n_functions++;
    return;
  }
  if (wl_inside == c || wl_within(p->real->code, caller) || wl_within(wl_warplite_code, caller) ||
      !p->real->api.stmt_readonly(s))
    return;
  wl_statement *t = wl_statement_new(s);
  if (!t) return;
  t->conn = c;
  t->hash = hash_text(sql, n);
  t->verdict = wl_verdict_get(c, t->hash);
  t->ignored = c->n_ignored != p->n_ignored;
  if (wl_handles_set(&wl_statements, s, t))
    atomic_fetch_add_explicit(&c->n_refs, 1, memory_order_relaxed);
  else
    wl_statement_give(t);
}

WL_EXPORT int sqlite3_prepare_v2(sqlite3 *db, const char *sql, int n, sqlite3_stmt **out,
                                 const char **tail) {
  preparation p = begin(db, WL_CALLER);
  const char *stop = NULL;
  int rc = p.real->api.prepare_v2(db, sql, n, out, &stop);
  if (tail) *tail = stop;
  if (rc == SQLITE_OK && *out) end(&p, *out, sql, (size_t)(stop - sql), WL_CALLER);
  return rc;
}

WL_EXPORT int sqlite3_prepare_v3(sqlite3 *db, const char *sql, int n, unsigned flags,
                                 sqlite3_stmt **out, const char **tail) {
  preparation p = begin(db, WL_CALLER);
  const char *stop = NULL;
  int rc = p.real->api.prepare_v3(db, sql, n, flags, out, &stop);
  if (tail) *tail = stop;
  if (rc == SQLITE_OK && *out) end(&p, *out, sql, (size_t)(stop - sql), WL_CALLER);
  return rc;
}

/* A text in UTF-16 is found in UTF-8 in the statement. */
static int prepared16(const preparation *p, int rc, sqlite3_stmt **out, void *caller) {
  const char *sql = rc == SQLITE_OK && *out ? p->real->api.sql(*out) : NULL;
  if (sql) end(p, *out, sql, strlen(sql), caller);
  return rc;
}

WL_EXPORT int sqlite3_prepare16_v2(sqlite3 *db, const void *sql, int n, sqlite3_stmt **out,
                                   const void **tail) {
  preparation p = begin(db, WL_CALLER);
  return prepared16(&p, p.real->api.prepare16_v2(db, sql, n, out, tail), out, WL_CALLER);
}

WL_EXPORT int sqlite3_prepare16_v3(sqlite3 *db, const void *sql, int n, unsigned flags,
                                   sqlite3_stmt **out, const void **tail) {
  preparation p = begin(db, WL_CALLER);
  return prepared16(&p, p.real->api.prepare16_v3(db, sql, n, flags, out, tail), out, WL_CALLER);
}

/* The oldest forms do not keep the text and never prepare again. SQLite runs their statements. */
static int unrecorded(sqlite3 *db, int rc, const char *sql, sqlite3_stmt **out) {
  wl_connection *c = wl_connection_of(db);
  if (rc || !*out) return rc;
  forget(*out);
  if (c && sql && replaces_like(sql, strlen(sql))) c->n_functions++;
  return rc;
}

WL_EXPORT int sqlite3_prepare(sqlite3 *db, const char *sql, int n, sqlite3_stmt **out,
                              const char **tail) {
  wl_forget_result_if(db);
  const sqlite3_api_routines *real = WL_REAL();
  int rc = real->prepare(db, sql, n, out, tail);
  return unrecorded(db, rc, rc || !*out ? NULL : real->sql(*out), out);
}

WL_EXPORT int sqlite3_prepare16(sqlite3 *db, const void *sql, int n, sqlite3_stmt **out,
                                const void **tail) {
  wl_forget_result_if(db);
  const sqlite3_api_routines *real = WL_REAL();
  int rc = real->prepare16(db, sql, n, out, tail);
  return unrecorded(db, rc, rc || !*out ? NULL : real->sql(*out), out);
}
