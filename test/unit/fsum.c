/*
** Exact sums: the fast vector way, the full accumulator and any order give the same bits,
** and those bits are right where the right answer is known another way.
*/
#include "value/sum/fsum.h"
#include "value/value.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed;
static void check(int ok, const char *what) {
  printf("%s %s\n", ok ? "ok" : "not ok", what);
  failed |= !ok;
}

static unsigned long long seed = 88172645463325252ULL;
static unsigned long long rnd(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

/* kinds of values, from tame to wild */
static double value(int kind) {
  double u = (double)(rnd() >> 11) * 0x1p-53;
  switch (kind) {
  case 0: return (u - 0.5) * 198;
  case 1: return (float)((u - 0.5) * 198);
  case 2: return ldexp(u - 0.5, (int)(rnd() % 200) - 100);
  case 3: return ldexp(u - 0.5, (int)(rnd() % 2000) - 1000);
  case 4: return wl_as_f64(rnd() & 0x800fffffffffffffULL); /* subnormal */
  default: return (rnd() & 1 ? 1 : -1) * 1.7976931348623157e308;
  }
}

static double all(const double *x, int n, int how) {
  wl_fsum s;
  memset(&s, 0, sizeof s);
  if (how == 0) {
    for (int i = 0; i < n; i++) wl_fsum_add(&s, x[i]);
  } else if (how == 1) {
    wl_fsum_vector(&s, x, n);
  } else {
    wl_fsum parts[7];
    memset(parts, 0, sizeof parts);
    for (int i = 0; i < n; i += 97)
      wl_fsum_vector(&parts[(i / 97) % 7], x + i, n - i < 97 ? n - i : 97);
    for (int k = 6; k >= 0; k--) wl_fsum_merge(&s, &parts[k]);
  }
  return wl_fsum_round(&s);
}

int main(void) {
  static double x[5000], y[5000];
  static const char *const names[] = {"uniform",   "floats",    "wide",
                                      "very wide", "subnormal", "largest"};
  for (int kind = 0; kind < 6; kind++) {
    int same = 1, zero = 1, scaled = 1;
    for (int round = 0; round < 200; round++) {
      int n = 1 + (int)(rnd() % 5000);
      for (int i = 0; i < n; i++) x[i] = value(kind);
      wl_u64 a = wl_f64_bits(all(x, n, 0));
      for (int how = 1; how < 3; how++) same &= a == wl_f64_bits(all(x, n, how));
      for (int i = 0; i < n; i++) y[i] = x[n - 1 - i];
      same &= a == wl_f64_bits(all(y, n, 1));
      /* x and -x together are exactly zero, whatever stands between */
      int m = n / 2;
      for (int i = 0; i < m; i++) {
        y[i] = x[i];
        y[m + i] = -x[i];
      }
      zero &= wl_f64_bits(all(y, 2 * m, 1)) == 0;
      /* one value and the rest cancelling leaves the value */
      if (m) {
        y[2 * m < 5000 ? 2 * m : 4999] = x[0];
        scaled &= 2 * m >= 5000 || all(y, 2 * m + 1, 1) == x[0];
      }
    }
    char text[100];
    snprintf(text, sizeof text, "fsum: %s: every way and order the same bits", names[kind]);
    check(same, text);
    snprintf(text, sizeof text, "fsum: %s: x and -x cancel to 0.0", names[kind]);
    check(zero && scaled, text);
  }
  /* rounding: against 80-bit arithmetic where that is exact */
  int right = 1;
  for (int i = 0; i < 100000; i++) {
    double a = ldexp((double)(rnd() >> 11), -53),
           b = ldexp((double)(rnd() >> 11), -53 - (int)(rnd() % 11));
    double s[2] = {a, b};
    right &= all(s, 2, (int)(rnd() % 3)) == (double)((long double)a + (long double)b);
  }
  check(right, "fsum: a + b rounded as 80-bit arithmetic rounds it");
  double tie[] = {9007199254740992.0, 1.0}, up[] = {9007199254740992.0, 1.0, 0x1p-1074},
         odd[] = {9007199254740994.0, 1.0};
  check(all(tie, 2, 1) == 9007199254740992.0, "fsum: a tie goes to even");
  check(all(up, 3, 1) == 9007199254740994.0, "fsum: the last bit of a subnormal breaks a tie");
  check(all(odd, 2, 1) == 9007199254740996.0, "fsum: a tie goes to even, upwards");
  double big[] = {1.7976931348623157e308, 1.7976931348623157e308, -1.7976931348623157e308};
  check(all(big, 3, 1) == 1.7976931348623157e308, "fsum: no overflow in between");
  check(isinf(all(big, 2, 1)), "fsum: overflow at the end");
  double inf[] = {1, INFINITY, 2}, both[] = {INFINITY, -INFINITY}, minus[] = {-0.0, -0.0};
  check(all(inf, 3, 1) == INFINITY && isnan(all(both, 2, 1)), "fsum: infinities");
  check(wl_f64_bits(all(minus, 2, 1)) == 0, "fsum: -0.0 and -0.0 are 0.0");
  wl_fsum s;
  memset(&s, 0, sizeof s);
  wl_fsum_add_i128(&s, (__int128)WL_I64_MAX * WL_I64_MAX);
  wl_fsum_add_i128(&s, -(__int128)WL_I64_MAX * (WL_I64_MAX - 1));
  check(wl_fsum_round(&s) == 9223372036854775807.0, "fsum: 128-bit integers");
  return failed;
}
