/*
** A query of the benchmark, and the random numbers that its data is made of: what the
** suites (suite.h, onetable.h) have in common.
*/
#ifndef BENCH_QUERY_H
#define BENCH_QUERY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct query {
  const char *name;
  const char *sql;
  const char *abs_sql; /* for a sum of reals: the sum of the magnitudes; else NULL */
  const char *what;    /* in words, where the text does not say it all */
  bool duck_bag;       /* DuckDB owes no order, or not all of it: rows compared as a bag … */
  unsigned duck_order; /* … and these columns (bits) in order */
  bool listed;         /* counts in the verdict */
};

struct generator {
  uint64_t state;
  int64_t next_id;
  int range;
};

/* splitmix64: short, seedable by any number, good enough for columns of test data. */
static inline uint64_t generator_bits(struct generator *g) {
  uint64_t z = (g->state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/* In (0, 1]: never 0, so that its logarithm is finite. */
static inline double generator_unit(struct generator *g) {
  return (double)((generator_bits(g) >> 11) + 1) * 0x1p-53;
}

#endif
