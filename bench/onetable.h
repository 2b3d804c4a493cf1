/*
** The third suite: what people ask of one table. Groups, order, distinct values, strings.
**
** Stands beside the two published suites (suite.h). Its numbers are those of the Sphyraena
** table; its strings are made here, the same ones for SQLite and for DuckDB.
**
** 1. Every string is distinct, of lower-case letters, digits and spaces, 30 bytes on
**    average. So LIKE, which minds the case in DuckDB and not in SQLite, has one answer.
** 2. DuckDB runs the same texts, but for dates. It owes no order to GROUP BY and none to the ties
**    of ORDER BY, so there its rows are compared as a bag, and by themselves the columns that ORDER
**    BY names (query.duck_order).
** 3. `listed` queries count in the verdict of bench.c, the others are for information.
*/
#ifndef BENCH_ONETABLE_H
#define BENCH_ONETABLE_H

#include "query.h"

static const struct query onetable_queries[] = {
    {.name = "G199",
     .what = "199 groups, five aggregates",
     .sql = "SELECT uniformi, count(*), sum(normali5), avg(normali20), min(uniformf), "
            "max(normalf5) FROM test GROUP BY uniformi",
     .duck_bag = true,
     .listed = true},
    {.name = "G1M",
     .what = "a million groups",
     .sql = "SELECT id % {{999980..1000019:1000000}}, count(*), sum(normali20) FROM test GROUP BY "
            "id % {{999980..1000019:1000000}}",
     .duck_bag = true,
     .listed = true},
    {.name = "G1Mo",
     .what = "a million groups, ORDER BY said",
     .sql = "SELECT id % {{999980..1000019:1000000}}, count(*), sum(normali20) FROM test GROUP BY "
            "1 ORDER BY 1"},
    {.name = "O1",
     .what = "full ORDER BY, one real key",
     .sql = "SELECT id, uniformi, normalf20 FROM test ORDER BY normalf20",
     .duck_bag = true,
     .duck_order = 1 << 2,
     .listed = true},
    {.name = "O2",
     .what = "full ORDER BY, two integer keys",
     .sql = "SELECT id, uniformi, normali20 FROM test ORDER BY uniformi, normali20 DESC",
     .duck_bag = true,
     .duck_order = 1 << 1 | 1 << 2,
     .listed = true},
    {.name = "T10",
     .what = "top 10",
     .sql =
         "SELECT id, uniformi, normalf20 FROM test ORDER BY normalf20 DESC, id LIMIT {{8..16:10}}",
     .listed = true},
    {.name = "D199",
     .what = "count(DISTINCT), few values",
     .sql = "SELECT count(DISTINCT uniformi) FROM test",
     .listed = true},
    {.name = "D5M",
     .what = "count(DISTINCT), many values",
     .sql = "SELECT count(DISTINCT normalf20) FROM test",
     .listed = true},
    {.name = "Os", .what = "full ORDER BY, a text", .sql = "SELECT id, s FROM strings ORDER BY s"},
    {.name = "Gd",
     .what = "GROUP BY the month of a date",
     .sql = "SELECT strftime('%Y-%m', id * {{58..62:60}}, 'unixepoch'), count(*), sum(id) "
            "FROM strings GROUP BY 1",
     .duck_sql = "SELECT strftime(make_timestamp(id * {{58..62:60}}000000::BIGINT), '%Y-%m'), "
                 "count(*), sum(id) FROM strings GROUP BY 1",
     .duck_bag = true},
    {.name = "L",
     .what = "LIKE over distinct strings",
     .sql = "SELECT count(*) FROM strings WHERE s LIKE '%{{word:warp}}%'",
     .listed = true},
    {.name = "Lrow",
     .what = "LIKE, the rows themselves",
     .sql = "SELECT id, s FROM strings WHERE s LIKE '%{{word#1:warp}}%{{word#2:weft}}%'"},
    {.name = "Gs3",
     .what = "GROUP BY the first letters of a text",
     .sql = "SELECT substr(s, 1, 3), count(*), max(id) FROM strings WHERE id > {{0..40:0}} GROUP BY 1",
     .duck_bag = true},
    {.name = "Sum", .what = "one sum", .sql = "SELECT sum(normali20) FROM test"},
    {.name = "Tg",
     .what = "GROUP BY a text of few values",
     .sql = "SELECT kind, count(*), sum(id), max(id) FROM strings GROUP BY kind",
     .duck_bag = true},
    {.name = "Tf",
     .what = "filter on a text of few values",
     .sql = "SELECT id, kind FROM strings WHERE kind = "
            "'{{red|orange|yellow|green|indigo|grey|violet|white|brown:violet}}' OR kind < 'blue'"},
};

enum { STRING_MAX = 64 };

/* The string of a row: words, and the row's number, which makes it the only one. */
static inline int string_of(struct generator *g, int64_t id, char *out) {
  static const char *const words[] = {
      "warp",  "weft",   "loom",   "thread", "shuttle", "heddle", "reed",   "selvage",
      "yarn",  "cotton", "linen",  "wool",   "silk",    "hemp",   "twill",  "satin",
      "plain", "basket", "carpet", "rug",    "cloth",   "canvas", "denim",  "velvet",
      "lace",  "felt",   "knit",   "spin",   "card",    "dye",    "bleach", "finish"};
  uint64_t bits = generator_bits(g);
  int n = 0, n_words = 3 + (int)(bits & 1);
  for (bits >>= 1; n_words > 0; n_words--, bits >>= 5) {
    const char *w = words[bits & 31];
    while (*w) out[n++] = *w++;
    out[n++] = ' ';
  }
  return n + snprintf(out + n, (size_t)(STRING_MAX - n), "%010lld", (long long)id);
}

static inline const char *kind_of(struct generator *g) {
  static const char *const kinds[] = {"red",  "orange", "yellow", "green", "blue",  "indigo",
                                      "grey", "violet", "white",  "black", "brown", "azure"};
  return kinds[generator_bits(g) % 12];
}

#endif
