/*
** See exchange.h.
*/
#include "value/exchange.h"

wl_val wl_sqlite_val(sqlite3_value *v) {
  switch (sqlite3_value_type(v)) {
  case SQLITE_INTEGER: return wl_int(sqlite3_value_int64(v));
  case SQLITE_FLOAT: return wl_real(sqlite3_value_double(v));
  case SQLITE_TEXT: { /* read the text first, because reading it may change its length */
    const wl_u8 *p = sqlite3_value_text(v);
    return wl_text(p, (wl_u32)sqlite3_value_bytes(v));
  }
  case SQLITE_BLOB: {
    const void *p = sqlite3_value_blob(v);
    return wl_val_make(WL_T_BLOB, (wl_u64)(size_t)p, (wl_u32)sqlite3_value_bytes(v));
  }
  default: return wl_null();
  }
}

wl_val wl_sqlite_column(sqlite3_stmt *s, int i) {
  sqlite3_mutex *m = sqlite3_db_mutex(sqlite3_db_handle(s));
  sqlite3_mutex_enter(m); /* a column's value is not protected without it */
  wl_val v = wl_sqlite_val(sqlite3_column_value(s, i));
  sqlite3_mutex_leave(m);
  return v;
}

static const void *bytes_of(wl_val v) {
  return v.t >= WL_T_TEXT && v.n ? (const void *)wl_bytes(v) : "";
}

int wl_sqlite_bind(sqlite3_stmt *s, int i, wl_val v, sqlite3_destructor_type life) {
  switch (v.t) {
  case WL_T_INT: return sqlite3_bind_int64(s, i, (wl_i64)v.v);
  case WL_T_REAL: return sqlite3_bind_double(s, i, wl_as_f64(v.v));
  case WL_T_TEXT: return sqlite3_bind_text64(s, i, bytes_of(v), v.n, life, SQLITE_UTF8);
  case WL_T_BLOB: return sqlite3_bind_blob64(s, i, bytes_of(v), v.n, life);
  default: return sqlite3_bind_null(s, i);
  }
}

void wl_sqlite_result(sqlite3_context *ctx, wl_val v, sqlite3_destructor_type life) {
  switch (v.t) {
  case WL_T_INT: sqlite3_result_int64(ctx, (wl_i64)v.v); break;
  case WL_T_REAL: sqlite3_result_double(ctx, wl_as_f64(v.v)); break;
  case WL_T_TEXT: sqlite3_result_text64(ctx, bytes_of(v), v.n, life, SQLITE_UTF8); break;
  case WL_T_BLOB: sqlite3_result_blob64(ctx, bytes_of(v), v.n, life); break;
  default: sqlite3_result_null(ctx);
  }
}
