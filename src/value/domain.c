/*
** See domain.h.
*/
#include "value/domain.h"

#define INF __builtin_inf()

wl_domain wl_domain_any(unsigned mask) {
  wl_domain d = {(wl_u8)mask, WL_I64_MIN, WL_I64_MAX, -INF, INF};
  if (!(mask & WL_M(WL_T_INT))) {
    d.lo = WL_I64_MAX;
    d.hi = WL_I64_MIN;
  }
  if (!(mask & WL_M(WL_T_REAL))) {
    d.flo = INF;
    d.fhi = -INF;
  }
  return d;
}

wl_domain wl_domain_int(wl_i64 lo, wl_i64 hi, bool nullable) {
  wl_domain d = wl_domain_any(nullable ? WL_M(WL_T_NULL) : 0);
  d.mask |= (wl_u8)WL_M(WL_T_INT);
  d.lo = lo;
  d.hi = hi;
  return d;
}

wl_domain wl_domain_real(double lo, double hi, bool nullable) {
  wl_domain d = wl_domain_any(nullable ? WL_M(WL_T_NULL) : 0);
  d.mask |= (wl_u8)WL_M(WL_T_REAL);
  d.flo = lo;
  d.fhi = hi;
  return d;
}

wl_domain wl_domain_of(wl_val v) {
  if (v.t == WL_T_INT) return wl_domain_int((wl_i64)v.v, (wl_i64)v.v, false);
  if (v.t == WL_T_REAL) return wl_domain_real(wl_as_f64(v.v), wl_as_f64(v.v), false);
  return wl_domain_any(WL_M(v.t));
}

wl_reg wl_domain_reg(wl_domain d) {
  unsigned types = d.mask & ~WL_M(WL_T_NULL);
  wl_reg r;
  r.type = types == 0 || types == WL_M(WL_T_INT) ? WL_R_INT
           : types == WL_M(WL_T_REAL)            ? WL_R_REAL
           : types == WL_M(WL_T_TEXT)            ? WL_R_TEXT
                                                 : WL_R_ANY;
  r.nullable = (d.mask & WL_M(WL_T_NULL)) != 0;
  return r;
}

bool wl_domain_one_type(const wl_domain *d, wl_u8 *type) {
  const wl_i64 exact = 1LL << 53;
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL);
  unsigned types = d->mask & ~WL_M(WL_T_NULL);
  *type = WL_T_NULL;
  for (wl_u8 t = WL_T_INT; t <= WL_T_BLOB; t++)
    if (types == WL_M(t)) *type = t;
  if (types == (I | F) && d->lo >= -exact && d->hi <= exact) *type = WL_T_REAL;
  return *type != WL_T_NULL || !types;
}

wl_domain wl_domain_union(wl_domain a, wl_domain b) {
  a.mask |= b.mask;
  if (b.lo < a.lo) a.lo = b.lo;
  if (b.hi > a.hi) a.hi = b.hi;
  if (b.flo < a.flo) a.flo = b.flo;
  if (b.fhi > a.fhi) a.fhi = b.fhi;
  return a;
}

wl_domain wl_domain_with_null(wl_domain d, bool null) {
  if (null)
    d.mask |= (wl_u8)WL_M(WL_T_NULL);
  else
    d.mask &= (wl_u8)~WL_M(WL_T_NULL);
  return d;
}

wl_u64 wl_domain_magnitude(const wl_domain *d) {
  if (!(d->mask & WL_M(WL_T_INT))) return 0;
  wl_u64 lo = d->lo < 0 ? 0 - (wl_u64)d->lo : (wl_u64)d->lo;
  wl_u64 hi = d->hi < 0 ? 0 - (wl_u64)d->hi : (wl_u64)d->hi;
  return lo > hi ? lo : hi;
}
