/*
** What came of a suite: tables for people, JSON for programs.
**
** Stands last: it reads results and computes only sums, means and ratios of them.
**
** 1. A time is the median of its runs. cpu/duckdb below 1 and sqlite/cpu above 1 mean that warplite
**    is faster. A side is compared with DuckDB on as many threads.
** 2. Sums, means and extremes are over the queries that have a time on both sides concerned, and
**    say over how many. Twins (query.h) count in none.
** 3. A query that ran elsewhere than asked counts with the time it took there. It has a star, and
**    its reason stands below the table.
*/
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "json.h"
#include "measure.h"

static inline double median_of(const struct timing *t) {
  double sorted[MAX_RUNS];
  memcpy(sorted, t->ms, sizeof *sorted * (size_t)t->n);
  qsort(sorted, (size_t)t->n, sizeof *sorted, compare_doubles);
  return sorted_median(sorted, t->n);
}

/* 0: there is none; side -1 has none. */
static inline double time_on(const struct result *r, enum time_kind kind, int side) {
  return side < 0 ? 0 : median_of(&r->time[kind][side]);
}

/* One side's time over some queries, beside DuckDB's and SQLite's. */
struct summary {
  double ms;
  bool whole; /* every query has a time */
  int n_duck, n_sqlite, n_elsewhere;
  double duck_mean, duck_worst, sqlite_least;
  const char *duck_worst_name, *sqlite_least_name;
};

static inline struct summary summary_of(const struct bench *b, struct result *const *r, int n,
                                        enum time_kind kind, int side) {
  struct summary t = {.whole = true};
  double logs = 0;
  for (int q = 0; q < n; q++) {
    double ours = time_on(r[q], kind, side), duck = time_on(r[q], kind, duck_for(b, side)),
           sqlite = time_on(r[q], kind, 0);
    if (r[q]->query->twin) continue;
    t.ms += ours;
    t.whole &= ours > 0;
    if (ours <= 0) continue;
    t.n_elsewhere += r[q]->time[kind][side].elsewhere;
    if (duck > 0) {
      t.n_duck++;
      logs += log(ours / duck);
      if (ours / duck > t.duck_worst) {
        t.duck_worst = ours / duck;
        t.duck_worst_name = r[q]->query->name;
      }
    }
    if (sqlite > 0 && (t.n_sqlite++ == 0 || sqlite / ours < t.sqlite_least)) {
      t.sqlite_least = sqlite / ours;
      t.sqlite_least_name = r[q]->query->name;
    }
  }
  if (t.n_duck) t.duck_mean = exp(logs / t.n_duck);
  return t;
}

/* ---- for people ---- */

static inline void put_ratio(double a, double b, int width, int digits) {
  if (a > 0 && b > 0)
    printf("%*.*f", width, digits, a / b);
  else
    printf("%*s", width, "-");
}

/* The lines below a table: what the judged sides are beside DuckDB and SQLite. */
static inline void put_judgement(const struct bench *b, struct result *const *r, int n,
                                 enum time_kind kind) {
  for (int s = 0; s < b->n_sides; s++) {
    const char *name = b->sides[s].name;
    if (!b->on[s] || !b->sides[s].judged) continue;
    struct summary t = summary_of(b, r, n, kind, s);
    if (t.n_duck)
      printf("%s, %s/%s: geometric mean %.2f over %d, maximum %.2f (%s)\n", time_names[kind], name,
             b->sides[duck_for(b, s)].name, t.duck_mean, t.n_duck, t.duck_worst, t.duck_worst_name);
    if (t.n_sqlite)
      printf("%s, sqlite/%s: smallest %.1f (%s) over %d\n", time_names[kind], name, t.sqlite_least,
             t.sqlite_least_name, t.n_sqlite);
    if (t.n_elsewhere) printf("%s, %s: %d ran elsewhere\n", time_names[kind], name, t.n_elsewhere);
  }
}

static inline void put_row_of(const struct bench *b, const struct result *r, enum time_kind kind) {
  printf("%-6s%10lld", r->query->name, (long long)r->n_rows[kind]);
  for (int s = 0; s < b->n_sides; s++) {
    if (!b->on[s]) continue;
    if (r->time[kind][s].n > 0)
      printf("%12.2f%c", time_on(r, kind, s), r->time[kind][s].elsewhere ? '*' : ' ');
    else
      printf("%12s ", "-");
  }
  for (int s = 0; s < b->n_sides; s++) {
    if (!b->on[s] || !b->sides[s].judged) continue;
    put_ratio(time_on(r, kind, s), time_on(r, kind, duck_for(b, s)), 15, 2);
    put_ratio(time_on(r, kind, 0), time_on(r, kind, s), 15, 1);
  }
  printf("\n");
}

static inline void put_table_of(const struct bench *b, struct result *const *r, int n,
                                enum time_kind kind) {
  static const char *const what[N_TIMES] = {
      "cold: the file opened by a new connection, nothing in memory",
      "fresh: columns in memory, other literals in every run, nothing kept",
      "repeated: the same text again, default settings",
  };
  char head[64];
  printf("\n%s\n%-6s%10s", what[kind], "query", "rows");
  for (int s = 0; s < b->n_sides; s++)
    if (b->on[s]) printf("%12s ", b->sides[s].name);
  for (int s = 0; s < b->n_sides; s++) {
    if (!b->on[s] || !b->sides[s].judged) continue;
    snprintf(head, sizeof head, "%s/duckdb", b->sides[s].name);
    printf("%15s", head);
    snprintf(head, sizeof head, "sqlite/%s", b->sides[s].name);
    printf("%15s", head);
  }
  printf("\n");
  for (int q = 0; q < n; q++) put_row_of(b, r[q], kind);
  printf("%-16s", "sum");
  for (int s = 0; s < b->n_sides; s++) {
    if (!b->on[s]) continue;
    struct summary t = summary_of(b, r, n, kind, s);
    printf("%12.2f%c", t.ms, t.whole ? ' ' : '+'); /* +: without the queries that have no time */
  }
  printf("\n");
  put_judgement(b, r, n, kind);
  for (int q = 0; q < n; q++)
    for (int s = 0; s < b->n_sides; s++)
      if (b->on[s] && r[q]->time[kind][s].elsewhere)
        printf("* %s on %s: %s\n", r[q]->query->name, b->sides[s].name, r[q]->time[kind][s].reason);
}

/* title: the suite, its size. */
static inline void report_tables(const struct bench *b, const char *title, struct result *const *r,
                                 int n) {
  printf("\n%s: milliseconds, median of %d runs (cold: %d)\n", title, b->n_runs,
         b->n_runs < N_COLD ? b->n_runs : N_COLD);
  for (int kind = 0; kind < N_TIMES; kind++)
    if (b->times[kind]) put_table_of(b, r, n, (enum time_kind)kind);
  fflush(stdout);
}

/* ---- for programs ---- */

static inline void json_timing(struct json *j, const char *name, const struct timing *t,
                               int64_t n_rows) {
  double least = t->n ? t->ms[0] : 0;
  if (t->n == 0) return;
  for (int i = 1; i < t->n; i++) least = fmin(least, t->ms[i]);
  json_open(j, name, '{');
  json_number(j, "median_ms", median_of(t));
  json_number(j, "min_ms", least);
  json_number(j, "rows", (double)n_rows);
  json_open(j, "runs_ms", '[');
  for (int i = 0; i < t->n; i++) json_number(j, NULL, t->ms[i]);
  json_close(j, ']');
  if (t->reason[0]) json_string(j, "reason", t->reason);
  json_close(j, '}');
}

static inline void json_queries(struct json *j, const struct bench *b, struct result *const *r,
                                int n) {
  json_open(j, "queries", '[');
  for (int q = 0; q < n; q++) {
    json_open(j, NULL, '{');
    json_string(j, "name", r[q]->query->name);
    json_string(j, "sql", r[q]->texts.sql[0]);
    json_open(j, "sides", '{');
    for (int s = 0; s < b->n_sides; s++) {
      bool same = true;
      if (!b->on[s]) continue;
      json_open(j, b->sides[s].name, '{');
      for (int kind = 0; kind < N_TIMES; kind++) {
        same &= !r[q]->time[kind][s].failed;
        json_timing(j, time_names[kind], &r[q]->time[kind][s], r[q]->n_rows[kind]);
      }
      json_bool(j, "same", same);
      json_close(j, '}');
    }
    json_close(j, '}');
    json_close(j, '}');
  }
  json_close(j, ']');
}

static inline void json_sums(struct json *j, const struct bench *b, struct result *const *r,
                             int n) {
  json_open(j, "sums", '{');
  for (int kind = 0; kind < N_TIMES; kind++) {
    if (!b->times[kind]) continue;
    json_open(j, time_names[kind], '{');
    for (int s = 0; s < b->n_sides; s++) {
      struct summary t = summary_of(b, r, n, (enum time_kind)kind, s);
      if (!b->on[s] || t.ms <= 0) continue;
      json_open(j, b->sides[s].name, '{');
      json_number(j, "median_ms", t.ms);
      json_bool(j, "all_queries", t.whole);
      if (t.n_duck && b->sides[s].engine) {
        json_number(j, "duckdb_geometric_mean", t.duck_mean);
        json_number(j, "duckdb_maximum", t.duck_worst);
        json_string(j, "duckdb_maximum_query", t.duck_worst_name);
      }
      if (t.n_sqlite && b->sides[s].engine) {
        json_number(j, "sqlite_least", t.sqlite_least);
        json_string(j, "sqlite_least_query", t.sqlite_least_name);
      }
      if (b->sides[s].engine) json_number(j, "elsewhere", t.n_elsewhere);
      json_close(j, '}');
    }
    json_close(j, '}');
  }
  json_close(j, '}');
}

#endif
