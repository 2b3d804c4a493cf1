/*
** A value of the virtual machine, and SQLite's order of values. Compiled by the host compiler, by
** nvcc and for the simulator, so that all agree.
**
** Invariants:
** 1. Tags are in SQLite's sort order of types. INTEGER and REAL compare as numbers.
** 2. A REAL is never NaN. Results that would be NaN are NULL.
** 3. Text and blob bytes have no terminator. v is their address, n their length.
*/
#ifndef WL_VALUE_H
#define WL_VALUE_H

#include "value/types.h"
#ifndef __CUDACC_RTC__
#include <string.h>
#endif

enum { WL_T_NULL = 0, WL_T_INT = 1, WL_T_REAL = 2, WL_T_TEXT = 3, WL_T_BLOB = 4 };

/* Three-valued logic: AND is the smaller, OR the larger, NOT is 2 - x. */
enum { WL_FALSE = 0, WL_UNKNOWN = 1, WL_TRUE = 2 };

enum { WL_COLL_BINARY = 0, WL_COLL_NOCASE = 1, WL_COLL_RTRIM = 2 };

typedef struct wl_val {
  wl_u64 v; /* the integer, the bits of the real, or the address */
  wl_u32 n; /* number of bytes of text or blob */
  wl_u8 t;  /* WL_T_ */
} wl_val;

WL_FN double wl_as_f64(wl_u64 v) {
  double d;
  memcpy(&d, &v, sizeof d);
  return d;
}
WL_FN wl_u64 wl_f64_bits(double d) {
  wl_u64 v;
  memcpy(&v, &d, sizeof v);
  return v;
}
WL_FN const wl_u8 *wl_bytes(wl_val a) {
  return (const wl_u8 *)(size_t)a.v;
}

WL_FN wl_val wl_val_make(wl_u8 t, wl_u64 v, wl_u32 n) {
  wl_val r;
  r.v = v;
  r.n = n;
  r.t = t;
  return r;
}
WL_FN wl_val wl_null(void) {
  return wl_val_make(WL_T_NULL, 0, 0);
}
WL_FN wl_val wl_int(wl_i64 i) {
  return wl_val_make(WL_T_INT, (wl_u64)i, 0);
}
WL_FN wl_val wl_real(double d) {
  return d == d ? wl_val_make(WL_T_REAL, wl_f64_bits(d), 0) : wl_null();
}
WL_FN wl_val wl_text(const wl_u8 *p, wl_u32 n) {
  return wl_val_make(WL_T_TEXT, (wl_u64)(size_t)p, n);
}

/* Compares an integer with a real, exactly: -1, 0 or 1. */
WL_FN int wl_cmp_if(wl_i64 i, double r) {
  if (r < -9223372036854775808.0) return 1;
  if (r >= 9223372036854775808.0) return -1;
  wl_i64 y = (wl_i64)r;
  if (i < y) return -1;
  if (i > y) return 1;
  double s = (double)i;
  return s < r ? -1 : s > r;
}

WL_FN wl_u8 wl_to_lower(wl_u8 c) {
  return c >= 'A' && c <= 'Z' ? (wl_u8)(c + 32) : c;
}

WL_FN int wl_cmp_bytes(const wl_u8 *a, wl_u32 na, const wl_u8 *b, wl_u32 nb) {
  wl_u32 n = na < nb ? na : nb;
#ifdef __CUDACC__
  for (wl_u32 i = 0; i < n; i++)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
#else
  int c = n ? memcmp(a, b, n) : 0;
  if (c) return c < 0 ? -1 : 1;
#endif
  return na < nb ? -1 : na > nb;
}

/* Compares text under a collation. NOCASE stops at a NUL byte, as in SQLite. */
WL_FN int wl_cmp_text(const wl_u8 *a, wl_u32 na, const wl_u8 *b, wl_u32 nb, int coll) {
  if (coll == WL_COLL_NOCASE) {
    wl_u32 n = na < nb ? na : nb, i = 0;
    while (i < n && a[i] != 0 && wl_to_lower(a[i]) == wl_to_lower(b[i])) i++;
    if (i < n && wl_to_lower(a[i]) != wl_to_lower(b[i]))
      return wl_to_lower(a[i]) < wl_to_lower(b[i]) ? -1 : 1;
    return na < nb ? -1 : na > nb;
  }
  if (coll == WL_COLL_RTRIM) {
    while (na > 0 && a[na - 1] == ' ') na--;
    while (nb > 0 && b[nb - 1] == ' ') nb--;
  }
  return wl_cmp_bytes(a, na, b, nb);
}

/* SQLite's order of all values, NULL first: -1, 0 or 1. */
WL_FN int wl_cmp_val(wl_val a, wl_val b, int coll) {
  if (a.t == WL_T_INT && b.t == WL_T_INT)
    return (wl_i64)a.v < (wl_i64)b.v ? -1 : (wl_i64)a.v > (wl_i64)b.v;
  int ca = a.t == WL_T_REAL ? WL_T_INT : a.t, cb = b.t == WL_T_REAL ? WL_T_INT : b.t;
  if (ca != cb) return ca < cb ? -1 : 1;
  if (ca == WL_T_NULL) return 0;
  if (ca == WL_T_TEXT) return wl_cmp_text(wl_bytes(a), a.n, wl_bytes(b), b.n, coll);
  if (ca == WL_T_BLOB) return wl_cmp_bytes(wl_bytes(a), a.n, wl_bytes(b), b.n);
  if (a.t == WL_T_INT) return wl_cmp_if((wl_i64)a.v, wl_as_f64(b.v));
  if (b.t == WL_T_INT) return -wl_cmp_if((wl_i64)b.v, wl_as_f64(a.v));
  double x = wl_as_f64(a.v), y = wl_as_f64(b.v);
  return x < y ? -1 : x > y;
}

#endif
