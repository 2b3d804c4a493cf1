/*
** The verdict: the queries that are asked of every engine in one list, across the suites,
** with the figures that sum them up.
**
** Stands after the suites' own tables: it reads medians and computes ratios of them.
**
** 1. warplite/DuckDB below 1 is warplite's advantage; SQLite/warplite above 1 is.
** 2. A query without a time on both sides is left out of a mean and said to be missing.
** 3. A query that ran in SQLite counts with the time it took there, and is named.
*/
#ifndef BENCH_VERDICT_H
#define BENCH_VERDICT_H

#include "report.h"

enum { VERDICT_MAX = 64 };

/* The warplite sides that are judged: all threads, and the GPU where there is one. */
static const char *const judged[] = {"cpu", "cuda"};
enum { N_JUDGED = sizeof judged / sizeof *judged };

struct verdict_row {
  const char *name;
  double sqlite, duck, ours[N_JUDGED]; /* medians; 0: none */
  bool elsewhere[N_JUDGED];
};

struct verdict {
  struct verdict_row row[VERDICT_MAX];
  int n;
};

static inline int side_called(const char *name) {
  for (int s = 0; s < N_SIDES; s++)
    if (strcmp(sides[s].name, name) == 0) return s;
  return -1;
}

static inline double time_on(const struct bench *b, const struct result *r, int s) {
  return s >= 0 && b->on[s] ? median_of(r, s) : 0;
}

static inline void verdict_add(struct verdict *v, const struct bench *b, const struct result *r) {
  if (!r->query->listed || v->n == VERDICT_MAX) return;
  struct verdict_row *to = &v->row[v->n++];
  to->name = r->query->name;
  to->sqlite = time_on(b, r, 0);
  to->duck = time_on(b, r, side_called("duckdb"));
  for (int k = 0; k < N_JUDGED; k++) {
    int s = side_called(judged[k]);
    to->ours[k] = time_on(b, r, s);
    to->elsewhere[k] = r->side[s].elsewhere;
  }
}

static inline void put_ratio(double a, double b, int width, int digits) {
  if (a > 0 && b > 0)
    printf("%*.*f", width, digits, a / b);
  else
    printf("%*s", width, "-");
}

/* The ratios of one suite query by query, and who ran what could not run where asked. */
static inline void report_ratios(const struct bench *b, const struct result *r, int n) {
  printf("\n%-6s%-34s", "query", "");
  for (int k = 0; k < N_JUDGED; k++)
    if (b->on[side_called(judged[k])]) printf("%9s/duckdb sqlite/%-5s", judged[k], judged[k]);
  printf("\n");
  for (int q = 0; q < n; q++) {
    double sqlite = time_on(b, &r[q], 0), duck = time_on(b, &r[q], side_called("duckdb"));
    printf("%-6s%-34s", r[q].query->name, r[q].query->what ? r[q].query->what : "");
    for (int k = 0; k < N_JUDGED; k++) {
      int s = side_called(judged[k]);
      double ours = time_on(b, &r[q], s);
      if (!b->on[s]) continue;
      put_ratio(ours, duck, 16, 2);
      put_ratio(sqlite, ours, 13, 1);
      printf("%s", r[q].side[s].elsewhere ? "*" : " ");
    }
    printf("\n");
  }
  for (int q = 0; q < n; q++)
    for (int s = 0; s < N_SIDES; s++)
      if (b->on[s] && r[q].side[s].elsewhere)
        printf("* %s on %s: %s\n", r[q].query->name, sides[s].name, r[q].side[s].reason);
}

static inline void verdict_side(const struct verdict *v, int k, struct json *j) {
  double logs = 0, worst = 0, least = 0;
  int n_duck = 0, n_sqlite = 0, n_elsewhere = 0;
  const char *worst_name = "-", *least_name = "-";
  for (int i = 0; i < v->n; i++) {
    const struct verdict_row *r = &v->row[i];
    if (r->ours[k] <= 0) continue;
    n_elsewhere += r->elsewhere[k];
    if (r->duck > 0) {
      double ratio = r->ours[k] / r->duck;
      logs += log(ratio);
      n_duck++;
      if (ratio > worst) {
        worst = ratio;
        worst_name = r->name;
      }
    }
    if (r->sqlite > 0) {
      double ratio = r->sqlite / r->ours[k];
      if (!n_sqlite++ || ratio < least) {
        least = ratio;
        least_name = r->name;
      }
    }
  }
  if (!n_sqlite) return;
  printf("\n%s, %d listed queries:\n", judged[k], n_sqlite);
  if (n_duck)
    printf("  %s/duckdb: geometric mean %.2f over %d, worst %.2f (%s)\n", judged[k],
           exp(logs / n_duck), n_duck, worst, worst_name);
  printf("  sqlite/%s: smallest %.1f (%s)\n", judged[k], least, least_name);
  if (n_elsewhere) printf("  %d of them ran elsewhere than on %s\n", n_elsewhere, judged[k]);
  json_open(j, judged[k], '{');
  json_number(j, "queries", n_sqlite);
  if (n_duck) {
    json_number(j, "duckdb_geometric_mean", exp(logs / n_duck));
    json_number(j, "duckdb_worst", worst);
    json_string(j, "duckdb_worst_query", worst_name);
  }
  json_number(j, "sqlite_least", least);
  json_string(j, "sqlite_least_query", least_name);
  json_number(j, "elsewhere", n_elsewhere);
  json_close(j, '}');
}

static inline void verdict_print(const struct verdict *v, struct json *j) {
  json_open(j, "verdict", '{');
  for (int k = 0; k < N_JUDGED; k++) verdict_side(v, k, j);
  json_close(j, '}');
}

#endif
