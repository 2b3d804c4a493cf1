/*
** The functions that bind values. The values are SQLite's, in the original statement. While a
** statement runs natively, or has ended and was not reset, binding is a misuse, as in SQLite.
*/
#include "preload/preload.h"

typedef void wl_destroy(void *);

/* Whether a native run forbids to bind. Then sets the error. */
static bool refused(sqlite3_stmt *s) {
  wl_statement *t = wl_statement_of(s);
  if (WL_LIKELY(!t || t->state < WL_RUNNING)) return false;
  wl_set_result(t->conn, SQLITE_MISUSE, NULL);
  t->conn->real->api.log(SQLITE_MISUSE, "bind on a busy prepared statement: [%s]",
                         t->conn->real->api.sql(s));
  return true;
}

static __attribute__((noinline)) bool busy_awake(sqlite3_stmt *s) {
  if (s && refused(s)) return true;
  if (s) wl_forget_result(WL_REAL()->db_handle(s));
  return false;
}

static inline bool busy(sqlite3_stmt *s) {
  return WL_UNLIKELY(wl_is_awake()) && busy_awake(s);
}

static int misuse(void *value, wl_destroy *destroy) {
  if (destroy != SQLITE_STATIC && destroy != SQLITE_TRANSIENT) destroy(value);
  return SQLITE_MISUSE;
}

WL_EXPORT int sqlite3_bind_blob(sqlite3_stmt *s, int i, const void *v, int n, wl_destroy *destroy) {
  if (busy(s)) return misuse((void *)v, destroy);
  return WL_REAL()->bind_blob(s, i, v, n, destroy);
}

WL_EXPORT int sqlite3_bind_blob64(sqlite3_stmt *s, int i, const void *v, sqlite3_uint64 n,
                                  wl_destroy *destroy) {
  if (busy(s)) return misuse((void *)v, destroy);
  return WL_REAL()->bind_blob64(s, i, v, n, destroy);
}

WL_EXPORT int sqlite3_bind_double(sqlite3_stmt *s, int i, double v) {
  if (busy(s)) return SQLITE_MISUSE;
  return WL_REAL()->bind_double(s, i, v);
}

WL_EXPORT int sqlite3_bind_int(sqlite3_stmt *s, int i, int v) {
  if (busy(s)) return SQLITE_MISUSE;
  return WL_REAL()->bind_int(s, i, v);
}

WL_EXPORT int sqlite3_bind_int64(sqlite3_stmt *s, int i, sqlite3_int64 v) {
  if (busy(s)) return SQLITE_MISUSE;
  return WL_REAL()->bind_int64(s, i, v);
}

WL_EXPORT int sqlite3_bind_null(sqlite3_stmt *s, int i) {
  if (busy(s)) return SQLITE_MISUSE;
  return WL_REAL()->bind_null(s, i);
}

WL_EXPORT int sqlite3_bind_text(sqlite3_stmt *s, int i, const char *v, int n, wl_destroy *destroy) {
  if (busy(s)) return misuse((void *)v, destroy);
  return WL_REAL()->bind_text(s, i, v, n, destroy);
}

WL_EXPORT int sqlite3_bind_text16(sqlite3_stmt *s, int i, const void *v, int n,
                                  wl_destroy *destroy) {
  if (busy(s)) return misuse((void *)v, destroy);
  return WL_REAL()->bind_text16(s, i, v, n, destroy);
}

WL_EXPORT int sqlite3_bind_text64(sqlite3_stmt *s, int i, const char *v, sqlite3_uint64 n,
                                  wl_destroy *destroy, unsigned char encoding) {
  if (busy(s)) return misuse((void *)v, destroy);
  return WL_REAL()->bind_text64(s, i, v, n, destroy, encoding);
}

WL_EXPORT int sqlite3_bind_value(sqlite3_stmt *s, int i, const sqlite3_value *v) {
  if (busy(s)) return SQLITE_MISUSE;
  return WL_REAL()->bind_value(s, i, v);
}

WL_EXPORT int sqlite3_bind_pointer(sqlite3_stmt *s, int i, void *v, const char *type,
                                   wl_destroy *destroy) {
  if (busy(s)) return misuse((void *)v, destroy);
  return WL_REAL()->bind_pointer(s, i, v, type, destroy);
}

WL_EXPORT int sqlite3_bind_zeroblob(sqlite3_stmt *s, int i, int n) {
  if (busy(s)) return SQLITE_MISUSE;
  return WL_REAL()->bind_zeroblob(s, i, n);
}

WL_EXPORT int sqlite3_bind_zeroblob64(sqlite3_stmt *s, int i, sqlite3_uint64 n) {
  if (busy(s)) return SQLITE_MISUSE;
  return WL_REAL()->bind_zeroblob64(s, i, n);
}
