/*
** Converts a value to what a column stores, by SQLite's rules of affinity.
*/
#include "base/mem.h"
#include "tablet/table/table_impl.h"
#include "value/conv.h"
#include <string.h>

/* Converts a real with an integer value to an integer, except at the ends of the range. */
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
  if (v.t == WL_T_TEXT) v = wl_conv_number(x, v, WL_NUMBER_AFFINITY);
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
