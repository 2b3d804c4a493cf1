/*
** A real as three digits of 40 bits around an anchor, for exact sums. Values are split only here.
** Compiled by the host compiler, by nvcc and for the simulator.
*/
#ifndef WL_DIGITS_H
#define WL_DIGITS_H

#include "value/types.h"

/*
** v = digit[0] * unit + digit[1] * unit / 2^40 + digit[2] * unit / 2^80. Each digit is below 2^40
** in size, and unit is a power of two. Returns 0 if v does not fit: it is too large, infinite, or
** has bits below the last digit. Adding and subtracting 1.5 * 2^52 units rounds to whole units.
*/
WL_FN int wl_digits(double v, double unit, wl_i64 digit[3]) {
  const double down = 1.0 / 1099511627776.0, shift = 6755399441055744.0;
  const double u1 = unit * down, u2 = u1 * down;
  const double m0 = shift * unit, m1 = shift * u1, m2 = shift * u2;
  double d0 = (v + m0) - m0, r = v - d0;
  double d1 = (r + m1) - m1;
  r = r - d1;
  double d2 = (r + m2) - m2;
  r = r - d2;
  double size = v < 0 ? -v : v;
  if (!(size < unit * 1099511627776.0) || r != 0.0) return 0;
  digit[0] = (wl_i64)(d0 / unit);
  digit[1] = (wl_i64)(d1 / u1);
  digit[2] = (wl_i64)(d2 / u2);
  return 1;
}

#endif
