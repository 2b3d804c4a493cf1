/*
** See ranges.h. The bounds are correct because rounding is monotone.
*/
#include "program/ranges.h"

#define INF __builtin_inf()

static bool fits(__int128 lo, __int128 hi, wl_i64 *out_lo, wl_i64 *out_hi) {
  *out_lo = (wl_i64)lo;
  *out_hi = (wl_i64)hi;
  return lo >= WL_I64_MIN && hi <= WL_I64_MAX;
}

bool wl_domain_arith_int(wl_op op, const wl_domain *a, const wl_domain *b, wl_i64 *lo, wl_i64 *hi) {
  __int128 al = a->lo, ah = a->hi, bl = b->lo, bh = b->hi;
  /* a side without integers gives only NULL, so any interval is correct */
  if (al > ah) al = ah = 0;
  if (bl > bh) bl = bh = 0;
  switch (op) {
  case WL_OP_ADD: return fits(al + bl, ah + bh, lo, hi);
  case WL_OP_SUB: return fits(al - bh, ah - bl, lo, hi);
  case WL_OP_MUL: {
    __int128 p[4] = {al * bl, al * bh, ah * bl, ah * bh}, mn = p[0], mx = p[0];
    for (int i = 1; i < 4; i++) {
      if (p[i] < mn) mn = p[i];
      if (p[i] > mx) mx = p[i];
    }
    return fits(mn, mx, lo, hi);
  }
  case WL_OP_DIV:
  case WL_OP_REM: {
    if (op == WL_OP_DIV && al == WL_I64_MIN && bl <= -1 && bh >= -1) return false;
    /* |a / b| <= |a|; |a % b| <= |a| and < |b|, with the sign of a */
    __int128 m = -al > ah ? -al : ah, d = -bl > bh ? -bl : bh;
    if (m < 0) m = 0;
    if (op == WL_OP_REM && d > 0 && m > d - 1) m = d - 1;
    __int128 least = op == WL_OP_REM ? (al >= 0 ? 0 : -m) : al >= 0 && bl >= 0 ? 0 : -m;
    __int128 most = op == WL_OP_REM && ah <= 0 ? 0 : m;
    *lo = least < WL_I64_MIN ? WL_I64_MIN : (wl_i64)least;
    *hi = most > WL_I64_MAX ? WL_I64_MAX : (wl_i64)most;
    return true;
  }
  case WL_OP_BITAND:
    *lo = al >= 0 || bl >= 0 ? 0 : WL_I64_MIN;
    *hi = al >= 0 && bl >= 0 ? (wl_i64)(ah < bh ? ah : bh)
          : al >= 0          ? (wl_i64)ah
          : bl >= 0          ? (wl_i64)bh
                             : WL_I64_MAX;
    return true;
  default:
    *lo = WL_I64_MIN;
    *hi = WL_I64_MAX;
    return true;
  }
}

void wl_domain_arith_real(wl_op op, const wl_domain *a, const wl_domain *b, double *lo, double *hi,
                          bool *nan) {
  double al = a->flo, ah = a->fhi, bl = b->flo, bh = b->fhi;
  if (al > ah) al = ah = 0;
  if (bl > bh) bl = bh = 0;
  bool a_inf = al == -INF || ah == INF, b_inf = bl == -INF || bh == INF;
  *nan = a_inf || b_inf;
  *lo = -INF;
  *hi = INF;
  if (op == WL_OP_DIV || op == WL_OP_REM) {
    *nan = true;
    return;
  }
  if (*nan) return;
  if (op == WL_OP_ADD) {
    *lo = al + bl;
    *hi = ah + bh;
  } else if (op == WL_OP_SUB) {
    *lo = al - bh;
    *hi = ah - bl;
  } else {
    double p[4] = {al * bl, al * bh, ah * bl, ah * bh};
    *lo = *hi = p[0];
    for (int i = 1; i < 4; i++) {
      if (p[i] < *lo) *lo = p[i];
      if (p[i] > *hi) *hi = p[i];
    }
  }
}

/* All its numbers as one interval of reals. */
static wl_domain as_reals(const wl_domain *d) {
  wl_domain r = *d;
  if (d->lo <= d->hi && (d->mask & WL_M(WL_T_INT))) {
    if ((double)d->lo < r.flo) r.flo = (double)d->lo;
    if ((double)d->hi > r.fhi) r.fhi = (double)d->hi;
  }
  return r;
}

void wl_domain_arith_mixed(wl_op op, const wl_domain *a, const wl_domain *b, bool nullable,
                           wl_domain *out) {
  wl_domain x = as_reals(a), y = as_reals(b);
  bool nan;
  *out = wl_domain_any(WL_M(WL_T_INT) | WL_M(WL_T_REAL));
  wl_domain_arith_real(op, &x, &y, &out->flo, &out->fhi, &nan);
  if (nullable || nan) out->mask |= (wl_u8)WL_M(WL_T_NULL);
  if (!(a->mask & b->mask & WL_M(WL_T_INT))) {
    out->lo = WL_I64_MAX;
    out->hi = WL_I64_MIN;
  } else if (!wl_domain_arith_int(op, a, b, &out->lo, &out->hi)) {
    out->lo = WL_I64_MIN;
    out->hi = WL_I64_MAX;
  }
}
