/*
** The estimated number of distinct values of a column, against the number that was put in, for
** values that are random, stored together, periodic, sparse, reals, NULL.
*/
#include "../tap.h"
#include "column/statistics.h"
#include <math.h>

enum { LARGE = 600000 };

static wl_u64 seed = 88172645463325252ULL;
static wl_u64 rnd(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

typedef enum shape { RANDOM, TOGETHER, PERIODIC, SPARSE, REALS, NULLS } shape;
static const char *const names[] = {"random", "together", "periodic", "sparse", "reals", "NULLs"};

static wl_val value(shape s, wl_i64 i, wl_i64 n_rows, wl_i64 n_distinct) {
  wl_i64 v = (wl_i64)(rnd() % (wl_u64)n_distinct);
  switch (s) {
  case RANDOM: return wl_int(v);
  case TOGETHER: return wl_int(i * n_distinct / n_rows);
  case PERIODIC: return wl_int(i % n_distinct);
  case SPARSE: return wl_int(v * 1000003 - ((wl_i64)1 << 52));
  case REALS: return wl_real((double)v * 0.37);
  default: return i % 3 ? wl_int(v * 7919) : wl_null();
  }
}

static double estimated(shape s, wl_i64 n_rows, wl_i64 n_distinct) {
  wl_builder *b;
  wl_column *c = NULL;
  wl_error err;
  wl_status rc = wl_builder_open(&b, &err);
  for (wl_i64 i = 0; i < n_rows && !rc; i++)
    rc = wl_builder_add(b, value(s, i, n_rows, n_distinct));
  if (!rc) rc = wl_builder_finish(b, &c, &err);
  double n = rc ? -1 : wl_column_distinct(c), again = rc ? -1 : wl_column_distinct(c);
  wl_builder_close(b);
  wl_column_drop(c);
  return n == again ? n : -1;
}

int main(void) {
  static const wl_i64 counts[] = {1, 2, 100, 4096, 10000, 100000, 300000};
  for (shape s = RANDOM; s <= NULLS; s++)
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
      char name[100];
      double n = estimated(s, LARGE, counts[k]), most = 1;
      /* of values that are drawn at random some are not drawn */
      double drawn =
          (double)counts[k] * -expm1(-(s == NULLS ? 2.0 / 3 : 1.0) * LARGE / (double)counts[k]);
      double want = s == TOGETHER || s == PERIODIC ? (double)counts[k] : drawn;
      most = n > want ? n / want : want / n;
      snprintf(name, sizeof name, "statistics: %lld distinct values, %s", counts[k], names[s]);
      if (n > 0 && most < 2.2)
        tap_ok(name);
      else
        tap_bad(name, "estimated %.0f", n);
    }
  static const wl_i64 sizes[] = {0, 1, 2, 4095, 4096, 4097, 65536, 65537};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    wl_i64 n = sizes[k];
    double all = estimated(PERIODIC, n, n ? n : 1), one = estimated(PERIODIC, n, 1);
    double want = n ? (double)n : 1;
    CHECK("statistics: small columns", one == 1 && all <= want && all >= want / 2);
  }
  return tap_done();
}
