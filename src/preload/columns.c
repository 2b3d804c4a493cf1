/*
** The values of a native row, as sqlite3_column_…() return them.
**
** Numbers come straight from the batch. A text is copied once, because SQLite's texts end in a NUL
** byte. For every other conversion the value is bound to a statement `SELECT ?1`, the mirror, and
** SQLite converts it there. From then on the mirror answers for this column, up to the next row:
** some conversions change what SQLite reports later. Those that were done without the mirror are
** repeated in it. For example, sqlite3_column_bytes16() does not convert a text that has been read
** as a blob.
*/
#include "preload/preload.h"
#include <stdlib.h>
#include <string.h>

/* The value of a column in the current row. Texts and blobs are addresses in the batch. */
static inline wl_val value_at(const wl_statement *t, int i) {
  const wl_native_column *c = &t->rows.columns[i];
  wl_i64 row = t->row;
  switch (c->type) {
  case WL_R_INT:
    if (c->t && !c->t[row]) return wl_null();
    if (!c->places) return wl_val_make(WL_T_INT, c->v[row], 0);
    {
      wl_u64 place = c->places[c->v[row]];
      return wl_text(c->heap + (wl_u32)place, (wl_u32)(place >> 32));
    }
  case WL_R_REAL:
    if (c->t && !c->t[row]) return wl_null();
    return wl_val_make(WL_T_REAL, c->v[row], 0);
  case WL_R_TEXT: {
    if (c->t && !c->t[row]) return wl_null();
    wl_i32 at = c->offsets[row];
    return wl_text(c->heap + at, (wl_u32)(c->offsets[row + 1] - at));
  }
  default:
    if (c->t[row] < WL_T_TEXT) return wl_val_make(c->t[row], c->v[row], 0);
    return wl_val_make(c->t[row], (wl_u64)(size_t)(c->heap + c->v[row]), c->n[row]);
  }
}

/* SQLite will set the error SQLITE_RANGE if the statement has no such value. Then ours is over. */
static void ask_sqlite(sqlite3_stmt *s, int i) {
  const sqlite3_api_routines *real = WL_REAL();
  if (s && atomic_load_explicit(&wl_n_results, memory_order_relaxed) &&
      (unsigned)i >= (unsigned)real->data_count(s))
    wl_forget_result(real->db_handle(s));
}

/* The record of a statement that has this column in its current native row, or NULL: SQLite
** answers, also where there is an error. */
static inline wl_statement *on_row(sqlite3_stmt *s, int i) {
  wl_statement *t = wl_handles_find(&wl_statements, s);
  if (WL_LIKELY(t && (unsigned)i < (unsigned)t->n_on_row)) return t;
  ask_sqlite(s, i);
  return NULL;
}

/* The mirror of a column if it already answers for this row. */
static inline sqlite3_stmt *mirrored(const wl_statement *t, int i) {
  if (WL_LIKELY(!t->n_mirrors)) return NULL;
  return t->cells[i].mirror_of == t->stamp ? t->cells[i].mirror : NULL;
}

/* Lets the mirror answer for a column. NULL: out of memory. */
static sqlite3_stmt *mirror(wl_statement *t, int i) {
  static const char empty[] = "";
  wl_connection *c = t->conn;
  const sqlite3_api_routines *api = &c->real->api;
  wl_row_cell *cell = &t->cells[i];
  sqlite3_stmt *m = mirrored(t, i);
  if (m) return m;
  wl_enter(c);
  wl_silent++;
  m = cell->mirror;
  if (!m) m = cell->mirror = wl_library_if_open()->mirror(t->run, i);
  if (m) {
    wl_val v = value_at(t, i);
    const void *bytes = v.n ? (const void *)wl_bytes(v) : empty;
    api->reset(m);
    switch (v.t) {
    case WL_T_INT: api->bind_int64(m, 1, (wl_i64)v.v); break;
    case WL_T_REAL: api->bind_double(m, 1, wl_as_f64(v.v)); break;
    case WL_T_TEXT: api->bind_text64(m, 1, bytes, v.n, SQLITE_STATIC, SQLITE_UTF8); break;
    case WL_T_BLOB: api->bind_blob64(m, 1, bytes, v.n, SQLITE_STATIC); break;
    default: api->bind_null(m, 1);
    }
    if (wl_library_if_open()->step(m) != SQLITE_ROW) m = NULL;
    if (m && cell->text_of == t->stamp) api->column_text(m, 0);
    if (m && cell->blob_of == t->stamp) api->column_blob(m, 0);
  }
  wl_silent--;
  if (m) {
    cell->mirror_of = t->stamp;
    t->n_mirrors++;
  } else {
    wl_set_result(c, SQLITE_NOMEM, NULL);
  }
  wl_leave(c);
  return m;
}

/* Room for n bytes and a NUL in the cell's text. */
static char *room(wl_statement *t, wl_row_cell *cell, wl_u32 n) {
  if (cell->size > n) return cell->text;
  size_t size = (size_t)n + 1 + n / 2 + 32;
  if (size > 0xffffffffu) size = (size_t)n + 1;
  char *p = realloc(cell->text, size);
  if (!p) {
    wl_set_result(t->conn, SQLITE_NOMEM, NULL);
    return NULL;
  }
  cell->text = p;
  cell->size = (wl_u32)size;
  return p;
}

/* The text of an integer, a text, or NULL of other values, which the caller gives to the mirror. */
static const char *plain_text(wl_statement *t, int i, wl_val v) {
  wl_row_cell *cell = &t->cells[i];
  if (cell->text_of == t->stamp) return cell->text;
  if (v.t == WL_T_TEXT) {
    char *p = room(t, cell, v.n);
    if (!p) return NULL;
    if (v.n) memcpy(p, wl_bytes(v), v.n);
    p[v.n] = 0;
    cell->n_text = v.n;
  } else {
    char digits[24], *d = digits + sizeof digits;
    wl_i64 x = (wl_i64)v.v;
    wl_u64 u = x < 0 ? 0 - (wl_u64)x : (wl_u64)x;
    do *--d = (char)('0' + u % 10);
    while (u /= 10);
    if (x < 0) *--d = '-';
    wl_u32 n = (wl_u32)(digits + sizeof digits - d);
    char *p = room(t, cell, n);
    if (!p) return NULL;
    memcpy(p, d, n);
    p[n] = 0;
    cell->n_text = n;
  }
  cell->text_of = t->stamp;
  return cell->text;
}

/* ---- the interface */

static __attribute__((noinline)) int native_type(sqlite3_stmt *s, int i, void *caller) {
  wl_statement *t = on_row(s, i);
  if (WL_LIKELY(!t)) return wl_real_api(caller)->column_type(s, i);
  static const unsigned char types[] = {SQLITE_NULL, SQLITE_INTEGER, SQLITE_FLOAT, SQLITE_TEXT,
                                        SQLITE_BLOB};
  sqlite3_stmt *m = mirrored(t, i);
  if (WL_UNLIKELY(m != NULL)) return t->conn->real->api.column_type(m, 0);
  const wl_native_column *c = &t->rows.columns[i];
  if (c->type == WL_R_ANY) return types[c->t[t->row]];
  return c->t && !c->t[t->row] ? SQLITE_NULL : c->sqlite_type;
}

WL_EXPORT int sqlite3_column_type(sqlite3_stmt *s, int i) {
  if (WL_LIKELY(!wl_is_awake())) return WL_REAL()->column_type(s, i);
  return native_type(s, i, WL_CALLER);
}

/* As SQLite casts a REAL to an INTEGER. */
static wl_i64 to_integer(double r) {
  if (r <= (double)WL_I64_MIN) return WL_I64_MIN;
  if (r >= (double)WL_I64_MAX) return WL_I64_MAX;
  return (wl_i64)r;
}

static sqlite3_int64 other_integer(wl_statement *t, int i) {
  wl_val v = value_at(t, i);
  if (WL_LIKELY(v.t == WL_T_INT)) return (wl_i64)v.v;
  if (v.t == WL_T_NULL) return 0;
  if (v.t == WL_T_REAL) return to_integer(wl_as_f64(v.v));
  sqlite3_stmt *m = mirror(t, i);
  return m ? t->conn->real->api.column_int64(m, 0) : 0;
}

static inline sqlite3_int64 integer(wl_statement *t, int i) {
  const wl_native_column *c = &t->rows.columns[i];
  if (WL_LIKELY(c->sqlite_type == SQLITE_INTEGER))
    return c->t && !c->t[t->row] ? 0 : (wl_i64)c->v[t->row];
  return other_integer(t, i);
}

static __attribute__((noinline)) sqlite3_int64 native_int64(sqlite3_stmt *s, int i, void *caller) {
  wl_statement *t = on_row(s, i);
  return WL_LIKELY(!t) ? wl_real_api(caller)->column_int64(s, i) : integer(t, i);
}

WL_EXPORT sqlite3_int64 sqlite3_column_int64(sqlite3_stmt *s, int i) {
  if (WL_LIKELY(!wl_is_awake())) return WL_REAL()->column_int64(s, i);
  return native_int64(s, i, WL_CALLER);
}

static __attribute__((noinline)) int native_int(sqlite3_stmt *s, int i, void *caller) {
  wl_statement *t = on_row(s, i);
  return WL_LIKELY(!t) ? wl_real_api(caller)->column_int(s, i) : (int)integer(t, i);
}

WL_EXPORT int sqlite3_column_int(sqlite3_stmt *s, int i) {
  if (WL_LIKELY(!wl_is_awake())) return WL_REAL()->column_int(s, i);
  return native_int(s, i, WL_CALLER);
}

static __attribute__((noinline)) double native_double(sqlite3_stmt *s, int i, void *caller) {
  wl_statement *t = on_row(s, i);
  if (WL_LIKELY(!t)) return wl_real_api(caller)->column_double(s, i);
  const wl_native_column *c = &t->rows.columns[i];
  if (WL_LIKELY(c->sqlite_type == SQLITE_FLOAT))
    return c->t && !c->t[t->row] ? 0 : wl_as_f64(c->v[t->row]);
  wl_val v = value_at(t, i);
  if (v.t == WL_T_REAL) return wl_as_f64(v.v);
  if (v.t == WL_T_INT) return (double)(wl_i64)v.v;
  if (v.t == WL_T_NULL) return 0;
  sqlite3_stmt *m = mirror(t, i);
  return m ? t->conn->real->api.column_double(m, 0) : 0;
}

WL_EXPORT double sqlite3_column_double(sqlite3_stmt *s, int i) {
  if (WL_LIKELY(!wl_is_awake())) return WL_REAL()->column_double(s, i);
  return native_double(s, i, WL_CALLER);
}

static __attribute__((noinline)) const unsigned char *native_text(sqlite3_stmt *s, int i,
                                                                  void *caller) {
  wl_statement *t = on_row(s, i);
  if (WL_LIKELY(!t)) return wl_real_api(caller)->column_text(s, i);
  sqlite3_stmt *m = mirrored(t, i);
  wl_val v = value_at(t, i);
  if (!m && v.t == WL_T_NULL) return NULL;
  if (!m && (v.t == WL_T_TEXT || v.t == WL_T_INT))
    return (const unsigned char *)plain_text(t, i, v);
  if (!m) m = mirror(t, i);
  return m ? t->conn->real->api.column_text(m, 0) : NULL;
}

WL_EXPORT const unsigned char *sqlite3_column_text(sqlite3_stmt *s, int i) {
  if (WL_LIKELY(!wl_is_awake())) return WL_REAL()->column_text(s, i);
  return native_text(s, i, WL_CALLER);
}

static __attribute__((noinline)) const void *native_blob(sqlite3_stmt *s, int i, void *caller) {
  wl_statement *t = on_row(s, i);
  if (WL_LIKELY(!t)) return wl_real_api(caller)->column_blob(s, i);
  sqlite3_stmt *m = mirrored(t, i);
  wl_val v = value_at(t, i);
  if (!m && v.t == WL_T_NULL) return NULL;
  if (!m && v.t == WL_T_TEXT) t->cells[i].blob_of = t->stamp;
  if (!m && v.t >= WL_T_TEXT && v.n == 0) return NULL;
  if (!m && v.t == WL_T_BLOB) return wl_bytes(v);
  if (!m && v.t == WL_T_TEXT) return plain_text(t, i, v);
  if (!m) m = mirror(t, i);
  return m ? t->conn->real->api.column_blob(m, 0) : NULL;
}

WL_EXPORT const void *sqlite3_column_blob(sqlite3_stmt *s, int i) {
  if (WL_LIKELY(!wl_is_awake())) return WL_REAL()->column_blob(s, i);
  return native_blob(s, i, WL_CALLER);
}

static __attribute__((noinline)) int native_bytes(sqlite3_stmt *s, int i, void *caller) {
  wl_statement *t = on_row(s, i);
  if (WL_LIKELY(!t)) return wl_real_api(caller)->column_bytes(s, i);
  sqlite3_stmt *m = mirrored(t, i);
  wl_val v = value_at(t, i);
  if (!m && v.t == WL_T_NULL) return 0;
  if (!m && v.t >= WL_T_TEXT) return (int)v.n;
  if (!m && v.t == WL_T_INT) return plain_text(t, i, v) ? (int)t->cells[i].n_text : 0;
  if (!m) m = mirror(t, i);
  return m ? t->conn->real->api.column_bytes(m, 0) : 0;
}

WL_EXPORT int sqlite3_column_bytes(sqlite3_stmt *s, int i) {
  if (WL_LIKELY(!wl_is_awake())) return WL_REAL()->column_bytes(s, i);
  return native_bytes(s, i, WL_CALLER);
}

static __attribute__((noinline)) int native_bytes16(sqlite3_stmt *s, int i, void *caller) {
  wl_statement *t = on_row(s, i);
  if (WL_LIKELY(!t)) return wl_real_api(caller)->column_bytes16(s, i);
  sqlite3_stmt *m = mirror(t, i);
  return m ? t->conn->real->api.column_bytes16(m, 0) : 0;
}

WL_EXPORT int sqlite3_column_bytes16(sqlite3_stmt *s, int i) {
  if (WL_LIKELY(!wl_is_awake())) return WL_REAL()->column_bytes16(s, i);
  return native_bytes16(s, i, WL_CALLER);
}

static __attribute__((noinline)) const void *native_text16(sqlite3_stmt *s, int i, void *caller) {
  wl_statement *t = on_row(s, i);
  if (WL_LIKELY(!t)) return wl_real_api(caller)->column_text16(s, i);
  sqlite3_stmt *m = mirror(t, i);
  return m ? t->conn->real->api.column_text16(m, 0) : NULL;
}

WL_EXPORT const void *sqlite3_column_text16(sqlite3_stmt *s, int i) {
  if (WL_LIKELY(!wl_is_awake())) return WL_REAL()->column_text16(s, i);
  return native_text16(s, i, WL_CALLER);
}

static __attribute__((noinline)) sqlite3_value *native_value(sqlite3_stmt *s, int i, void *caller) {
  wl_statement *t = on_row(s, i);
  if (WL_LIKELY(!t)) return wl_real_api(caller)->column_value(s, i);
  sqlite3_stmt *m = mirror(t, i);
  return m ? t->conn->real->api.column_value(m, 0) : wl_real_api(caller)->column_value(s, -1);
}

WL_EXPORT sqlite3_value *sqlite3_column_value(sqlite3_stmt *s, int i) {
  if (WL_LIKELY(!wl_is_awake())) return WL_REAL()->column_value(s, i);
  return native_value(s, i, WL_CALLER);
}
