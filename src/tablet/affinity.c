/*
** What a column makes of a value that is stored in it: SQLite's rules of affinity, and values
** between SQLite and us.
*/
#include "base/mem.h"
#include "tablet/table_impl.h"
#include "vm/conv.h"
#include <string.h>

wl_val wl_sqlite_val(sqlite3_value *v) {
  switch (sqlite3_value_type(v)) {
  case SQLITE_INTEGER: return wl_int(sqlite3_value_int64(v));
  case SQLITE_FLOAT: return wl_real(sqlite3_value_double(v));
  case SQLITE_TEXT: {
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
  return wl_sqlite_val(sqlite3_column_value(s, i));
}

int wl_sqlite_bind(sqlite3_stmt *s, int i, wl_val v) {
  static const char empty[1] = "";
  const char *p = v.t >= WL_T_TEXT && v.n ? (const char *)wl_bytes(v) : empty;
  switch (v.t) {
  case WL_T_INT: return sqlite3_bind_int64(s, i, (wl_i64)v.v);
  case WL_T_REAL: return sqlite3_bind_double(s, i, wl_as_f64(v.v));
  case WL_T_TEXT: return sqlite3_bind_text64(s, i, p, v.n, SQLITE_STATIC, SQLITE_UTF8);
  case WL_T_BLOB: return sqlite3_bind_blob64(s, i, p, v.n, SQLITE_STATIC);
  default: return sqlite3_bind_null(s, i);
  }
}

/* A real that is an integer becomes one, but for the ends of the range. */
static wl_val to_integer(wl_val v) {
  double r = wl_as_f64(v.v);
  if (r > -9223372036854775808.0 && r < 9223372036854775808.0) {
    wl_i64 i = (wl_i64)r;
    if ((double)i == r && i > WL_I64_MIN && i < WL_I64_MAX) return wl_int(i);
  }
  return v;
}

static wl_val to_text(wl_vctx *x, wl_val v) {
  if (v.t == WL_T_REAL) return wl_conv_text(x, wl_as_f64(v.v));
  char digits[24];
  sqlite3_snprintf((int)sizeof digits, digits, "%lld", (wl_i64)v.v);
  wl_u32 n = (wl_u32)strlen(digits);
  wl_u8 *p = wl_scratch(x, n);
  if (!p) return wl_null();
  memcpy(p, digits, n);
  return wl_text(p, n);
}

wl_val wl_store_affinity(wl_vctx *x, char affinity, wl_val v) {
  if (affinity == 'B') return v.t == WL_T_INT || v.t == WL_T_REAL ? to_text(x, v) : v;
  if (affinity < 'C') return v;
  if (v.t == WL_T_TEXT) v = wl_conv_affinity(x, v);
  if (v.t == WL_T_REAL) v = to_integer(v);
  if (affinity == 'E' && v.t == WL_T_INT) v = wl_real((double)(wl_i64)v.v);
  return v;
}

bool wl_affinity_keeps(char affinity, const wl_domain *d) {
  unsigned integers = WL_M(WL_T_INT), reals = WL_M(WL_T_REAL), texts = WL_M(WL_T_TEXT);
  switch (affinity) {
  case 'A': return true;
  case 'B': return !(d->mask & (integers | reals));
  case 'E': return !(d->mask & (integers | texts)) && !(d->flo <= 0 && d->fhi >= 0);
  default: return !(d->mask & (reals | texts));
  }
}
