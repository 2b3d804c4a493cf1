/*
** A query of the benchmark, and the random numbers of its data: what the suites (suite.h,
** onetable.h, suites/) have in common.
*/
#ifndef BENCH_QUERY_H
#define BENCH_QUERY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/*
** The texts have placeholders (suites/literals.h).
**
** Answers are compared by checksum, which large results need, or by_rows. By checksum, duck_bag
** says that DuckDB owes no order, or not all of it, and duck_order has the columns (bits) that it
** does owe. By rows, reals have a tolerance, and `ordered` has the columns (bits) that ORDER BY
** names; all bits set mean whole rows.
*/
struct query {
  const char *name;
  const char *sql;
  const char *duck_sql; /* where DuckDB needs other words; else NULL */
  const char *abs_sql;  /* for a sum of reals: the sum of the magnitudes; else NULL */
  const char *what;     /* in words, where the text does not say it all */
  bool by_rows, duck_bag;
  unsigned duck_order, ordered;
  bool listed; /* counts in the verdict */
  bool twin;   /* counts in no sum: suites/queries.h */
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

/* Whether name is one of the names in a list with commas. */
static inline bool in_list(const char *list, const char *name) {
  for (size_t n = strlen(name); list && *list; list += *list == ',') {
    size_t k = strcspn(list, ",");
    if (k == n && strncmp(list, name, n) == 0) return true;
    list += k;
  }
  return false;
}

#endif
