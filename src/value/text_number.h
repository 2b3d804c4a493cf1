/*
** The number that a text begins with, without SQLite. Compiled by the host compiler, by nvcc and
** for the simulator. Texts that need SQLite itself are not decided.
**
** Up to 3.42, SQLite multiplies or divides the digits by a power of ten in 80 bits and then rounds
** to a double. Up to 3.46, it multiplies by 10, 10^10, 1/10 and 10^-10 in 80 bits. Newer versions
** compute with more bits than can be seen in the result. The last bit of some doubles differs. So
** the caller says how the running SQLite rounds (value/rounding.h).
**
** Invariants:
** 1. A result that is decided is SQLite's, bit for bit, if SQLite rounds as the caller says.
** 2. Decided are integers that fit 64 bits, and reals of up to 18 digits whose exponent of ten is
**    between -27 and 26 when trailing zeros are removed. With WL_ROUND_NEAREST, the number must
**    also be further than 2^-20 of a unit in the last place from the middle between two doubles.
*/
#ifndef WL_TEXT_NUMBER_H
#define WL_TEXT_NUMBER_H

#include "value/value.h"

enum {
  WL_ROUND_UNKNOWN, /* only reals that are integers of up to 18 digits are decided */
  WL_ROUND_NEAREST,
  WL_ROUND_DIVIDE,  /* SQLite 3.38 to 3.42 */
  WL_ROUND_MULTIPLY /* SQLite 3.43 to 3.46 */
};

/* What to make of a text or blob. */
enum {
  WL_NUMBER_ARITH,    /* an operand of + */
  WL_NUMBER_AFFINITY, /* its number if it is nothing but a number, else the text itself */
  WL_NUMBER_REAL,     /* CAST(a AS REAL) */
  WL_NUMBER_NUMERIC   /* CAST(a AS NUMERIC) */
};

/* ---- reading */

/* The parts of a number at the start of a text: digits * 10^exponent. */
typedef struct wl_text_number {
  wl_u64 digits;
  wl_i32 exponent;
  wl_u8 negative;
  wl_u8 some;  /* it has a digit */
  wl_u8 real;  /* it has a point, or an exponent with digits */
  wl_u8 whole; /* nothing but spaces follows */
  wl_u8 hard;  /* more digits than fit, or a NUL follows */
} wl_text_number;

WL_FN int wl_number_space(wl_u8 c) {
  return c == ' ' || (c >= 9 && c <= 13);
}
WL_FN int wl_number_digit(const wl_u8 *p, wl_u32 n, wl_u32 i) {
  return i < n && p[i] >= '0' && p[i] <= '9';
}

/* Reads digits from i on. Returns the position after them. */
WL_FN wl_u32 wl_number_digits(const wl_u8 *p, wl_u32 n, wl_u32 i, wl_text_number *t) {
  const wl_u64 most = 999999999999999999u; /* one more digit still fits */
  for (; wl_number_digit(p, n, i); i++) {
    t->some = 1;
    if (t->digits > most)
      t->hard = 1;
    else
      t->digits = t->digits * 10 + (wl_u64)(p[i] - '0');
  }
  return i;
}

WL_FN wl_text_number wl_text_number_read(const wl_u8 *p, wl_u32 n) {
  wl_text_number t = {0, 0, 0, 0, 0, 0, 0};
  wl_u32 i = 0;
  int broken = 0; /* an exponent without digits */
  while (i < n && wl_number_space(p[i])) i++;
  if (i < n && (p[i] == '-' || p[i] == '+')) t.negative = p[i++] == '-';
  i = wl_number_digits(p, n, i, &t);
  if (i < n && p[i] == '.') {
    wl_u32 from = i + 1;
    i = wl_number_digits(p, n, from, &t);
    t.exponent = -(wl_i32)(i - from);
    t.real = 1;
  }
  if (i < n && (p[i] == 'e' || p[i] == 'E')) {
    wl_i32 e = 0;
    int down = 0;
    i++;
    if (i < n && (p[i] == '-' || p[i] == '+')) down = p[i++] == '-';
    broken = !wl_number_digit(p, n, i);
    for (; wl_number_digit(p, n, i); i++) e = e < 10000 ? e * 10 + (p[i] - '0') : e;
    if (e >= 10000) t.hard |= t.digits != 0;
    t.exponent += down ? -e : e;
    if (!broken) t.real = 1;
  }
  while (i < n && wl_number_space(p[i])) i++;
  t.whole = i == n && t.some && !broken;
  if (!t.some) t.real = 0;
  if (i < n && p[i] == 0) t.hard = 1;
  return t;
}

/* ---- rounding */

/* mantissa * 2^exponent, where the mantissa's top bit is set. More bits follow in `rest`, whose
** lowest bit is also set if there is anything after it. */
typedef struct wl_binary {
  wl_u64 mantissa, rest;
  wl_i32 exponent;
} wl_binary;

WL_FN int wl_leading_zeros(wl_u64 v) {
#ifdef __CUDA_ARCH__
  return __clzll((long long)v);
#else
  return v ? __builtin_clzll(v) : 64;
#endif
}

WL_FN wl_u64 wl_power_of_five(int n) {
  wl_u64 p = 1;
  for (wl_u64 square = 5; n; n >>= 1, square *= square)
    if (n & 1) p *= square;
  return p;
}

/* digits * 10^exponent with 128 bits. 0 < digits, -27 <= exponent <= 27 */
WL_FN wl_binary wl_binary_scale(wl_u64 digits, int exponent) {
  wl_binary b;
  wl_u64 five = wl_power_of_five(exponent < 0 ? -exponent : exponent);
  unsigned __int128 all;
  if (exponent >= 0) {
    all = (unsigned __int128)digits * five;
    b.exponent = exponent + 64;
  } else { /* two digits of 64 bits of the quotient of numbers with all bits used */
    int up = wl_leading_zeros(digits), down = wl_leading_zeros(five);
    wl_u64 by = five << down;
    unsigned __int128 first = (unsigned __int128)(digits << up) << 63;
    wl_u64 high = (wl_u64)(first / by);
    unsigned __int128 second = (first % by) << 64;
    wl_u64 low = (wl_u64)(second / by);
    if (second % by) low |= 1;
    all = (unsigned __int128)high << 64 | low;
    b.exponent = exponent + down - up - 63;
  }
  int shift = wl_leading_zeros((wl_u64)(all >> 64));
  if (shift == 64) shift += wl_leading_zeros((wl_u64)all);
  all <<= shift;
  b.mantissa = (wl_u64)(all >> 64);
  b.rest = (wl_u64)all;
  b.exponent -= shift;
  return b;
}

/* Rounds to 64 bits; of two equally near numbers, to the even one. */
WL_FN void wl_binary_round(wl_binary *b) {
  const wl_u64 half = 1ULL << 63;
  if (b->rest > half || (b->rest == half && (b->mantissa & 1))) {
    if (++b->mantissa == 0) {
      b->mantissa = half;
      b->exponent++;
    }
  }
  b->rest = 0;
}

/* The nearest double; of two, the even one. The result is neither too large nor too small. */
WL_FN double wl_binary_double(const wl_binary *b) {
  wl_u64 m = b->mantissa >> 11, low = b->mantissa & 0x7ff;
  if (low > 0x400 || (low == 0x400 && (b->rest || (m & 1)))) m++;
  return (double)m * wl_as_f64((wl_u64)(b->exponent + 11 + 1023) << 52);
}

/* Whether the number is near the middle between two doubles. */
WL_FN int wl_binary_near_middle(const wl_binary *b) {
  const wl_u64 half = 1ULL << 63, near = 1ULL << 44;
  wl_u64 part = b->mantissa << 53 | b->rest >> 11; /* in units of 2^-64 of the last place */
  return (part > half ? part - half : half - part) < near;
}

/* Multiplies by mantissa * 2^(exponent - 63), and rounds to 64 bits. */
WL_FN void wl_binary_multiply(wl_binary *b, wl_u64 mantissa, int exponent) {
  unsigned __int128 all = (unsigned __int128)b->mantissa * mantissa;
  b->exponent += exponent + 1;
  if (!(wl_u64)(all >> 127)) {
    all <<= 1;
    b->exponent--;
  }
  b->mantissa = (wl_u64)(all >> 64);
  b->rest = (wl_u64)all;
  wl_binary_round(b);
}
WL_FN wl_binary wl_binary_steps(wl_u64 digits, int exponent) {
  wl_binary b;
  int up = wl_leading_zeros(digits);
  b.mantissa = digits << up;
  b.rest = 0;
  b.exponent = -up;
  for (; exponent >= 10; exponent -= 10) wl_binary_multiply(&b, 0x9502f90000000000ULL, 33);
  for (; exponent >= 1; exponent--) wl_binary_multiply(&b, 0xa000000000000000ULL, 3);
  for (; exponent <= -10; exponent += 10) wl_binary_multiply(&b, 0xdbe6fecebdedd5bfULL, -34);
  for (; exponent <= -1; exponent++) wl_binary_multiply(&b, 0xcccccccccccccccdULL, -4);
  return b;
}

/* The double that SQLite makes of digits * 10^exponent. Returns 0 if that is not decided. */
WL_FN int wl_decimal_round(wl_u64 digits, int exponent, int rounding, double *out) {
  const wl_u64 most = 999999999999999999ULL, grows = 1844674407370955161ULL; /* 2^64 / 10 */
  wl_binary b;
  if (digits > most) return 0;
  while (exponent < 0 && digits % 10 == 0) {
    digits /= 10;
    exponent++;
  }
  for (; exponent > 0 && digits < grows; exponent--) digits *= 10;
  if (exponent == 0) {
    *out = (double)digits;
    return 1;
  }
  if (rounding == WL_ROUND_UNKNOWN || exponent < -27 || exponent > 26) return 0;
  if (rounding == WL_ROUND_MULTIPLY) {
    b = wl_binary_steps(digits, exponent);
  } else {
    b = wl_binary_scale(digits, exponent);
    if (rounding == WL_ROUND_NEAREST && wl_binary_near_middle(&b)) return 0;
    if (rounding == WL_ROUND_DIVIDE) wl_binary_round(&b);
  }
  *out = wl_binary_double(&b);
  return 1;
}

/* ---- results */

/* Makes the number of a text or blob. Returns 0 if it is not decided. */
WL_FN_CALLED int wl_number_of_text(wl_val a, int want, int rounding, wl_val *out) {
  const double whole_most = 1125899906842624.0; /* 2^50: SQLite keeps some larger ones as reals */
  wl_text_number t = wl_text_number_read(wl_bytes(a), a.n);
  double r = 0;
  if (want == WL_NUMBER_AFFINITY && !t.whole) {
    *out = a;
    return 1;
  }
  if (t.hard) return 0;
  if (want != WL_NUMBER_REAL && !t.real) {
    if (t.digits > (wl_u64)WL_I64_MAX) return 0;
    *out = wl_int(t.negative ? -(wl_i64)t.digits : (wl_i64)t.digits);
    return 1;
  }
  if (t.negative && !t.some) return 0; /* a lone "-" may be -0.0 */
  if (t.digits && !wl_decimal_round(t.digits, t.exponent, rounding, &r)) return 0;
  *out = wl_real(t.negative ? -r : r);
  if (want != WL_NUMBER_NUMERIC) return 1;
  if (r >= whole_most) return 0;
  if ((double)(wl_i64)r == r) *out = wl_int(t.negative ? -(wl_i64)r : (wl_i64)r);
  return 1;
}

#endif
