/*
** Hashes values. Values that are equal in SQLite have the same hash: 1 and 1.0, and text that is
** equal under the collation. The host and devices compute the same hashes.
*/
#ifndef WL_HASH_H
#define WL_HASH_H

#include "value/value.h"
#ifndef __CUDACC__
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

WL_FN wl_u64 wl_hash_mix(wl_u64 h, wl_u64 v) {
  v ^= h * 0x9e3779b97f4a7c15ULL + 0x7f4a7c15ULL;
  v *= 0xff51afd7ed558ccdULL;
  v ^= v >> 32;
  v *= 0xc4ceb9fe1a85ec53ULL;
  return v ^ v >> 29;
}

/* n bytes as a number, the first byte lowest. n is 4 or 8. */
WL_FN wl_u64 wl_hash_load(const wl_u8 *p, wl_u32 n) {
  wl_u64 w = 0;
#ifdef __CUDACC__
  for (wl_u32 i = 0; i < n; i++) w |= (wl_u64)p[i] << 8 * i;
#else
  memcpy(&w, p, n);
#endif
  return w;
}

WL_FN wl_u64 wl_hash_step(wl_u64 h, const wl_u8 *p) {
  h = (h ^ wl_hash_load(p, 8)) * 0xff51afd7ed558ccdULL;
  return h ^ h >> 32;
}

/* Long texts have four hashes that do not wait for each other. The last word overlaps the one
** before. */
WL_FN wl_u64 wl_hash_bytes(const wl_u8 *p, wl_u32 n, wl_u64 seed) {
  wl_u64 h = seed * 0x9e3779b97f4a7c15ULL + n;
  wl_u64 a = h, b = h + 1, c = h + 2, d = h + 3;
  const wl_u8 *end = p + n;
  for (; end - p > 32; p += 32) {
    a = wl_hash_step(a, p);
    b = wl_hash_step(b, p + 8);
    c = wl_hash_step(c, p + 16);
    d = wl_hash_step(d, p + 24);
  }
  if (n > 32) h = wl_hash_mix(wl_hash_mix(a, b), wl_hash_mix(c, d));
  for (; end - p > 8; p += 8) h = wl_hash_step(h, p);
  if (n >= 8) return wl_hash_mix(h, wl_hash_load(end - 8, 8));
  if (n >= 4) return wl_hash_mix(h, wl_hash_load(p, 4) | wl_hash_load(end - 4, 4) << 32);
  return wl_hash_mix(h, n ? (wl_u64)(p[0] | p[n / 2] << 8 | p[n - 1] << 16) : 0);
}

WL_FN wl_u64 wl_hash_val(wl_val v, int coll) {
  if (v.t == WL_T_NULL) return 0x5bd1e995;
  if (v.t == WL_T_INT) {
    /* an integer that equals a real must have the hash of that real */
    double r = (double)(wl_i64)v.v;
    int same = r < 9223372036854775808.0 && (wl_i64)r == (wl_i64)v.v;
    return wl_hash_mix(1, same ? wl_f64_bits(r + 0.0) : v.v);
  }
  if (v.t == WL_T_REAL) {
    double r = wl_as_f64(v.v);
    return wl_hash_mix(1, wl_f64_bits(r == 0.0 ? 0.0 : r));
  }
  const wl_u8 *p = wl_bytes(v);
  wl_u32 n = v.n;
  if (v.t == WL_T_BLOB) return wl_hash_bytes(p, n, 4);
  if (coll == WL_COLL_RTRIM)
    while (n > 0 && p[n - 1] == ' ') n--;
  if (coll != WL_COLL_NOCASE) return wl_hash_bytes(p, n, 3);
  wl_u64 h = 3;
  /* NOCASE compares up to a NUL, and then lengths */
  for (wl_u32 i = 0; i < n && p[i]; i++) h = (h ^ wl_to_lower(p[i])) * 1099511628211ULL;
  return wl_hash_mix(h, n);
}

#endif
