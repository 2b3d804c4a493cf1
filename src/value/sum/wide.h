/*
** A wide integer, for sums of digits (value/sum/digits.h) that are rounded once. Compiled by the host
** compiler, by nvcc and for the simulator. The host has more in value/sum/fsum.h.
**
** Invariants:
** 1. The number is word[0] + word[1] * 2^64 + word[2] * 2^128, in two's complement.
*/
#ifndef WL_WIDE_H
#define WL_WIDE_H

#include "value/value.h"

enum { WL_WIDE_WORDS = 3 };

typedef struct wl_wide {
  wl_u64 word[WL_WIDE_WORDS];
} wl_wide;

/* Adds v * 2^shift. The sum must fit. 0 <= shift < 128 */
WL_FN void wl_wide_add(wl_wide *s, wl_i64 v, int shift) {
  wl_u64 sign = v < 0 ? ~0ULL : 0, part[WL_WIDE_WORDS + 1] = {0, 0, 0, 0};
  int first = shift / 64, bits = shift % 64;
  for (int k = first; k < WL_WIDE_WORDS; k++) {
    wl_u64 low = k == first ? (wl_u64)v : sign, before = k == first       ? 0
                                                         : k - 1 == first ? (wl_u64)v
                                                                          : sign;
    part[k] = bits ? low << bits | before >> (64 - bits) : low;
  }
  wl_u64 carry = 0;
  for (int k = 0; k < WL_WIDE_WORDS; k++) {
    wl_u64 sum = s->word[k] + part[k], all = sum + carry;
    carry = (wl_u64)(sum < part[k]) | (wl_u64)(all < sum);
    s->word[k] = all;
  }
}

/* Whether bit `at` of a number that is not negative is set. */
WL_FN wl_u64 wl_wide_bit(const wl_wide *s, int at) {
  return at < 0 ? 0 : s->word[at / 64] >> (at % 64) & 1;
}

/* v * 2^e, exactly: the result has no more bits than v, or is infinite. */
WL_FN double wl_wide_scale(double v, int e) {
  const double up = 1.0715086071862673e301, down = 9.332636185032189e-302; /* 2^1000, 2^-1000 */
  for (; e > 1000; e -= 1000) v = v * up;
  for (; e < -1000; e += 1000) v = v * down;
  return v * wl_as_f64((wl_u64)(e + 1023) << 52);
}

/* The double that is nearest to s * 2^exponent, and of two the even one. */
WL_FN double wl_wide_round(const wl_wide *from, int exponent) {
  wl_wide s = *from;
  int negative = (int)(s.word[WL_WIDE_WORDS - 1] >> 63), top = 64 * WL_WIDE_WORDS - 1;
  if (negative) {
    wl_u64 carry = 1;
    for (int k = 0; k < WL_WIDE_WORDS; k++) {
      s.word[k] = ~s.word[k] + carry;
      carry = carry && !s.word[k];
    }
  }
  while (top >= 0 && !wl_wide_bit(&s, top)) top--;
  if (top < 0) return 0.0;
  int drop = top - 52, least = -1074 - exponent; /* bits below 2^-1074 are dropped, too */
  if (drop < least) drop = least;
  if (drop < 0) drop = 0;
  wl_u64 m = 0, rest = 0;
  for (int k = top; k >= drop; k--) m = m << 1 | wl_wide_bit(&s, k);
  for (int k = 0; k < drop - 1 && !rest; k++) rest = wl_wide_bit(&s, k);
  if (wl_wide_bit(&s, drop - 1) && (rest || (m & 1))) m++;
  double r = wl_wide_scale((double)m, exponent + drop);
  return negative ? -r : r;
}

/* The sum of reals that a device has gathered in digits around an anchor, plus an integer, rounded
** once: for all j, (low[j] + high[j] * 2^32) * 2^(anchor - 40 j). The digits are the words low 0 to
** 2 and high 0 to 2. If the integer is not 0, wl_wide_holds(anchor). */
WL_FN int wl_wide_holds(int anchor) {
  return anchor <= 80 && anchor >= 80 - 127;
}
WL_FN double wl_wide_of_digits(const wl_u64 digits[6], wl_i64 plus, int anchor) {
  wl_wide s = {{0, 0, 0}};
  for (int j = 0; j < 3; j++) {
    wl_wide_add(&s, (wl_i64)digits[j], 80 - 40 * j);
    wl_wide_add(&s, (wl_i64)digits[3 + j], 112 - 40 * j);
  }
  if (plus) wl_wide_add(&s, plus, 80 - anchor);
  return wl_wide_round(&s, anchor - 80);
}

#endif
