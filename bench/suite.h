/*
** The two published query suites and their data, and the list of all suites.
**
** Stands before every side of the benchmark: it says what is asked and makes the rows
** that are asked about, the same rows for SQLite and for DuckDB.
**
** 1. The generator is a function of the seed alone: two generators with one seed give
**    the same rows, so no side needs a copy of another side's data.
** 2. Real columns hold values that a 4-byte float holds exactly, as in the papers.
** 3. The literals of the queries change from run to run (suites/literals.h), by so
**    little that about as many rows are found. Those without a literal have nothing to change.
** 4. Odd queries are over integers, the even one after it is its twin over reals (the
**    last three Sphyraena queries are aggregates and stand alone).
*/
#ifndef BENCH_SUITE_H
#define BENCH_SUITE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "onetable.h"
#include "query.h"

#define SUITE_COLUMNS 7

struct suite {
  char letter;
  const char *title;
  int64_t n_rows;
  int range; /* uniform columns lie in [-range, range] */
  uint64_t seed;
  const struct query *queries;
  int n_queries;
  bool strings; /* a second table, and results only as batches; see onetable.h */
};

static const struct query sphyraena_queries[] = {
    {.name = "S1",
     .sql =
         "SELECT id, uniformi, normali5 FROM test WHERE uniformi > {{56..64:60}} AND normali5 < 0",
     .listed = true},
    {.name = "S2",
     .sql = "SELECT id, uniformf, normalf5 FROM test WHERE uniformf > {{58.00..62.00:60}} AND "
            "normalf5 < 0",
     .listed = true},
    {.name = "S3",
     .sql = "SELECT id, uniformi, normali5 FROM test WHERE uniformi > {{-64..-56:-60}} AND "
            "normali5 < 5",
     .listed = true},
    {.name = "S4",
     .sql = "SELECT id, uniformf, normalf5 FROM test WHERE uniformf > {{-62.00..-58.00:-60}} AND "
            "normalf5 < 5",
     .listed = true},
    {.name = "S5",
     .sql = "SELECT id, normali5, normali20 FROM test WHERE (normali20 + {{38..42:40}}) > "
            "(uniformi - {{8..12:10}})",
     .listed = true},
    {.name = "S6",
     .sql = "SELECT id, normalf5, normalf20 FROM test WHERE (normalf20 + {{38.00..42.00:40}}) > "
            "(uniformf - {{8.00..12.00:10}})",
     .listed = true},
    {.name = "S7",
     .sql = "SELECT id, normali5, normali20 FROM test WHERE normali5 * normali20 BETWEEN "
            "{{-6..-4:-5}} AND {{4..6:5}}",
     .listed = true},
    {.name = "S8",
     .sql = "SELECT id, normalf5, normalf20 FROM test WHERE normalf5 * normalf20 BETWEEN "
            "{{-5.50..-4.50:-5}} AND {{4.50..5.50:5}}",
     .listed = true},
    {.name = "S9",
     .sql = "SELECT id, uniformi, normali5, normali20 FROM test "
            "WHERE NOT uniformi OR NOT normali5 OR NOT normali20",
     .listed = true},
    {.name = "S10",
     .sql = "SELECT id, uniformf, normalf5, normalf20 FROM test "
            "WHERE NOT uniformf OR NOT normalf5 OR NOT normalf20",
     .listed = true},
    {.name = "S11",
     .sql = "SELECT SUM(normalf20) FROM test",
     .abs_sql = "SELECT SUM(ABS(normalf20)) FROM test",
     .listed = true},
    {.name = "S12",
     .sql = "SELECT AVG(uniformi) FROM test WHERE uniformi > {{-4..4:0}}",
     .listed = true},
    {.name = "S13", .sql = "SELECT MAX(normali5), MIN(normali5) FROM test", .listed = true},
};

static const struct query virginian_queries[] = {
    {.name = "V1",
     .sql =
         "SELECT id, uniformi, normali5 FROM test WHERE uniformi > {{56..64:60}} AND normali5 < 0"},
    {.name = "V2",
     .sql = "SELECT id, uniformf, normalf5 FROM test WHERE uniformf > {{58.00..62.00:60}} AND "
            "normalf5 < 0"},
    {.name = "V3",
     .sql = "SELECT id, uniformi, normali5 FROM test WHERE uniformi > {{-64..-56:-60}} AND "
            "normali5 < 5"},
    {.name = "V4",
     .sql = "SELECT id, uniformf, normalf5 FROM test WHERE uniformf > {{-62.00..-58.00:-60}} AND "
            "normalf5 < 5"},
    {.name = "V5",
     .sql = "SELECT id, uniformi, normali20 FROM test WHERE (normali20 + {{38..42:40}}) > "
            "(uniformi - {{8..12:10}})"},
    {.name = "V6",
     .sql = "SELECT id, uniformf, normalf20 FROM test WHERE (normalf20 + {{38.00..42.00:40}}) > "
            "(uniformf - {{8.00..12.00:10}})"},
    {.name = "V7",
     .sql = "SELECT id, normali5, normali20 FROM test "
            "WHERE normali5 * normali20 >= {{-6..-4:-5}} AND normali5 * normali20 <= {{4..6:5}}"},
    {.name = "V8",
     .sql = "SELECT id, normalf5, normalf20 FROM test "
            "WHERE normalf5 * normalf20 >= {{-5.50..-4.50:-5}} AND normalf5 * normalf20 <= "
            "{{4.50..5.50:5}}"},
    {.name = "V9",
     .sql = "SELECT id, uniformi, normali5, normali20 FROM test WHERE uniformi >= {{-9..7:-1}} "
            "AND uniformi <= {{-9..7+2:1}} "
            "OR normali5 >= -1 AND normali5 <= 1 OR normali20 >= -1 AND normali20 <= 1"},
    {.name = "V10",
     .sql =
         "SELECT id, uniformf, normalf5, normalf20 FROM test WHERE uniformf >= {{-9.00..7.00:-1}} "
         "AND uniformf <= {{-9.00..7.00+2.00:1}} "
         "OR normalf5 >= -1 AND normalf5 <= 1 OR normalf20 >= -1 AND normalf20 <= 1"},
};

static const struct suite suites[] = {
    {'s', "Sphyraena", 5000000, 99, 0x5fa17eULL, sphyraena_queries,
     sizeof sphyraena_queries / sizeof *sphyraena_queries, false},
    {'v', "Virginian", 8000000, 100, 0x7ab1e7ULL, virginian_queries,
     sizeof virginian_queries / sizeof *virginian_queries, false},
    {'t', "One table", 5000000, 99, 0x5fa17eULL, onetable_queries,
     sizeof onetable_queries / sizeof *onetable_queries, true},
};

struct row {
  int64_t id;
  int i[3];   /* uniformi normali5 normali20 */
  float f[3]; /* uniformf normalf5 normalf20 */
};

static const char *const suite_columns[SUITE_COLUMNS] = {
    "id", "uniformi", "normali5", "normali20", "uniformf", "normalf5", "normalf20"};

static inline struct generator generator_start(const struct suite *s) {
  return (struct generator){s->seed, 1, s->range};
}

/* Box-Muller: two independent normal values of deviation 1. */
static inline void generator_normal(struct generator *g, double out[2]) {
  double radius = sqrt(-2.0 * log(generator_unit(g)));
  double angle = 6.283185307179586 * generator_unit(g);
  out[0] = radius * cos(angle);
  out[1] = radius * sin(angle);
}

static inline void generator_row(struct generator *g, struct row *r) {
  double a[2], b[2];
  r->id = g->next_id++;
  generator_normal(g, a);
  generator_normal(g, b);
  r->i[0] = (int)(generator_bits(g) % (uint64_t)(2 * g->range + 1)) - g->range;
  r->i[1] = (int)lrint(a[0] * 5);
  r->i[2] = (int)lrint(a[1] * 20);
  r->f[0] = (float)((generator_unit(g) * 2 - 1) * g->range);
  r->f[1] = (float)(b[0] * 5);
  r->f[2] = (float)(b[1] * 20);
}

#endif
