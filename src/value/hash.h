/*
** Hashes values. Values that are equal in SQLite have the same hash: 1 and 1.0, and text that is
** equal under the collation.
*/
#ifndef WL_HASH_H
#define WL_HASH_H

#include "value/value.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

static inline wl_u64 wl_hash_mix(wl_u64 h, wl_u64 v) {
  v ^= h * 0x9e3779b97f4a7c15ULL + 0x7f4a7c15ULL;
  v *= 0xff51afd7ed558ccdULL;
  v ^= v >> 32;
  v *= 0xc4ceb9fe1a85ec53ULL;
  return v ^ v >> 29;
}

static inline wl_u64 wl_hash_val(wl_val v, int coll) {
  switch (v.t) {
  case WL_T_NULL: return 0x5bd1e995;
  case WL_T_INT: {
    /* an integer that equals a real must have the hash of that real */
    double r = (double)(wl_i64)v.v;
    return wl_hash_mix(
        1, r < 9223372036854775808.0 && (wl_i64)r == (wl_i64)v.v ? wl_f64_bits(r + 0.0) : v.v);
  }
  case WL_T_REAL: {
    double r = wl_as_f64(v.v);
    return wl_hash_mix(1, wl_f64_bits(r == 0.0 ? 0.0 : r));
  }
  case WL_T_BLOB: return XXH3_64bits_withSeed(wl_bytes(v), v.n, 4);
  default: break;
  }
  const wl_u8 *p = wl_bytes(v);
  wl_u32 n = v.n;
  if (coll == WL_COLL_RTRIM)
    while (n > 0 && p[n - 1] == ' ') n--;
  if (coll != WL_COLL_NOCASE) return XXH3_64bits_withSeed(p, n, 3);
  wl_u64 h = 3;
  /* NOCASE compares up to a NUL, and then lengths */
  for (wl_u32 i = 0; i < n && p[i]; i++) h = (h ^ wl_to_lower(p[i])) * 1099511628211ULL;
  return wl_hash_mix(h, n);
}

#endif
