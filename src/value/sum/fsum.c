/*
** Exact sums; see fsum.h for the layout and invariants.
*/
#include "value/sum/fsum.h"
#include "value/value.h"
#include <math.h>
#include <string.h>

/* Propagates carries: every word except the top one gets into [0, 2^32). */
static void normalise(wl_fsum *s) {
  wl_i64 carry = 0;
  for (int k = 0; k < WL_FSUM_WORDS - 1; k++) {
    wl_i64 w = s->word[k] + carry;
    carry = w >> 32;
    s->word[k] = w & 0xffffffff;
  }
  s->word[WL_FSUM_WORDS - 1] += carry;
  s->n_added = 0;
}

static void added(wl_fsum *s) {
  if (++s->n_added >= 1 << 28) normalise(s);
}

void wl_fsum_add_scaled(wl_fsum *s, wl_i64 k, int e) {
  if (k == 0) return;
  int p = e + 1074;
  if (p < 0) {
    k >>= -p < 63 ? -p : 63; /* the bits that are shifted out are zero */
    p = 0;
  }
  __int128 v = (__int128)((unsigned __int128)(__int128)k << (p & 31));
  wl_i64 *w = &s->word[p >> 5];
  w[0] += (wl_i64)((wl_u64)v & 0xffffffff);
  w[1] += (wl_i64)((wl_u64)(v >> 32) & 0xffffffff);
  w[2] += (wl_i64)(v >> 64);
  added(s);
}

void wl_fsum_add_i128(wl_fsum *s, __int128 v) {
  wl_fsum_add_scaled(s, (wl_i64)((wl_u64)v & 0xffffffff), 0);
  wl_fsum_add_scaled(s, (wl_i64)((wl_u64)(v >> 32) & 0xffffffff), 32);
  wl_fsum_add_scaled(s, (wl_i64)(v >> 64), 64);
}

void wl_fsum_add(wl_fsum *s, double x) {
  wl_u64 bits = wl_f64_bits(x);
  int e = (int)(bits >> 52 & 0x7ff);
  wl_i64 m = (wl_i64)(bits & 0xfffffffffffffULL);
  if (e == 0x7ff) {
    if (x > 0)
      s->n_plus_inf++;
    else
      s->n_minus_inf++;
    return;
  }
  if (e)
    m |= 1LL << 52;
  else
    e = 1;
  wl_fsum_add_scaled(s, x < 0 ? -m : m, e - 1075);
}

int wl_fsum_anchor(double largest) {
  int e = 0;
  if (largest > 0 && largest <= 1.7976931348623157e308) frexp(largest, &e);
  e += 4 - WL_FSUM_DIGIT;
  return e == 0 ? 1 : e; /* 0 means none */
}

int wl_fsum_anchor_within(double bound) {
  int e = wl_fsum_anchor(bound <= 1.7976931348623157e308 ? bound : 1e9);
  return e < WL_FSUM_MIN_ANCHOR   ? WL_FSUM_MIN_ANCHOR
         : e > WL_FSUM_MAX_ANCHOR ? WL_FSUM_MAX_ANCHOR
                                  : e;
}

enum { LANES = 8 };

static double largest_of(const double *x, int n) {
  double most = 0;
  for (int i = 0; i < n; i++) {
    double a = fabs(x[i]);
    if (a > most && a <= 1.7976931348623157e308) most = a;
  }
  return most;
}

/*
** Splits at most 1024 values into three digits each and adds up the digits as doubles. Each digit
** is a multiple of its unit and below 2^40 units, so the sums are exact. Returns 0 if some value
** does not fit the three digits. This is the vector form of wl_digits (value/sum/digits.h).
*/
static WL_CLONES int digits(const double *x, int n, double unit, double out[3]) {
  const double shift = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to whole units */
  const double u1 = unit * 0x1p-40, u2 = unit * 0x1p-80;
  const double m0 = shift * unit, m1 = shift * u1, m2 = shift * u2, most = unit * 0x1p40;
  double s0[LANES] = {0}, s1[LANES] = {0}, s2[LANES] = {0}, bad[LANES] = {0};
  int i = 0;
  for (; i + LANES <= n; i += LANES) {
    for (int j = 0; j < LANES; j++) {
      double v = x[i + j];
      double d0 = (v + m0) - m0, r = v - d0;
      double d1 = (r + m1) - m1;
      r -= d1;
      double d2 = (r + m2) - m2;
      r -= d2;
      s0[j] += d0;
      s1[j] += d1;
      s2[j] += d2;
      bad[j] = ((fabs(v) < most) & (r == 0.0)) ? bad[j] : 1.0;
    }
  }
  for (; i < n; i++) {
    double v = x[i];
    double d0 = (v + m0) - m0, r = v - d0;
    double d1 = (r + m1) - m1;
    r -= d1;
    double d2 = (r + m2) - m2;
    r -= d2;
    s0[0] += d0;
    s1[0] += d1;
    s2[0] += d2;
    if (!(fabs(v) < most) || r != 0.0) bad[0] = 1.0;
  }
  out[0] = out[1] = out[2] = 0;
  double any = 0;
  for (int j = 0; j < LANES; j++) {
    out[0] += s0[j];
    out[1] += s1[j];
    out[2] += s2[j];
    any += bad[j];
  }
  return any == 0.0;
}

void wl_fsum_vector(wl_fsum *s, const double *x, int n) {
  while (n > 1024) {
    wl_fsum_vector(s, x, 1024);
    x += 1024;
    n -= 1024;
  }
  if (n <= 0) return;
  if (s->anchor == 0) s->anchor = wl_fsum_anchor(largest_of(x, n));
  if (s->anchor >= WL_FSUM_MIN_ANCHOR && s->anchor <= WL_FSUM_MAX_ANCHOR) {
    double d[3];
    if (digits(x, n, ldexp(1.0, s->anchor), d)) {
      for (int k = 0; k < 3; k++) {
        int e = s->anchor - WL_FSUM_DIGIT * k;
        wl_fsum_add_scaled(s, (wl_i64)ldexp(d[k], -e), e);
      }
      return;
    }
  }
  for (int i = 0; i < n; i++) wl_fsum_add(s, x[i]);
  s->anchor = 0; /* choose again from the next values */
}

void wl_fsum_merge(wl_fsum *s, const wl_fsum *from) {
  normalise(s);
  wl_fsum other = *from;
  normalise(&other);
  for (int k = 0; k < WL_FSUM_WORDS; k++) s->word[k] += other.word[k];
  normalise(s);
  s->n_plus_inf += from->n_plus_inf;
  s->n_minus_inf += from->n_minus_inf;
}

double wl_fsum_round(const wl_fsum *from) {
  if (from->n_plus_inf && from->n_minus_inf) return NAN;
  if (from->n_plus_inf || from->n_minus_inf) return from->n_plus_inf ? INFINITY : -INFINITY;
  wl_fsum s = *from;
  normalise(&s);
  int negative = s.word[WL_FSUM_WORDS - 1] < 0;
  if (negative) {
    for (int k = 0; k < WL_FSUM_WORDS; k++) s.word[k] = -s.word[k];
    normalise(&s);
  }
  int top = WL_FSUM_WORDS - 1;
  while (top >= 0 && s.word[top] == 0) top--;
  if (top < 0) return 0.0;
  /* the top three words hold at least 65 bits from the leading one down */
  unsigned __int128 m = 0;
  for (int k = 0; k < 3; k++) m = m << 32 | (top - k >= 0 ? (wl_u64)s.word[top - k] : 0);
  int e = 32 * (top - 2) - 1074, sticky = 0;
  for (int k = top - 3; k >= 0 && !sticky; k--) sticky = s.word[k] != 0;
  int width = 128;
  while (!(m >> (width - 1) & 1)) width--;
  int drop = width - 53;
  if (drop > 0) {
    unsigned __int128 half = (unsigned __int128)1 << (drop - 1), rest = m & ((half << 1) - 1);
    m >>= drop;
    e += drop;
    if (rest > half || (rest == half && (sticky || (m & 1)))) m++;
  }
  double r = ldexp((double)(wl_u64)m, e);
  return negative ? -r : r;
}
