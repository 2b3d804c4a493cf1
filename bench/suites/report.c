/*
** What came of a suite: a table for people, JSON for programs.
**
** 1. Sums and means are over the queries that have a time on both sides concerned, and say
**    over how many.
** 2. The twins over numbers are shown beside the queries over strings, and nowhere else.
*/
#include "run.h"

static void put_ms(const struct result *r, int s) {
  if (r->side[s].n == 0)
    printf("%12s", "-");
  else
    printf("%12.2f", median_of(r, s));
}

/* The words before the colon of a reason: who ran it. */
static void put_engine(const struct timing *t) {
  printf("  %.*s", (int)strcspn(t->reason, ":"), t->reason);
}

static void put_row_of(const struct bench *b, const struct result *r) {
  int duck = side_called("duckdb");
  printf("%-6s%10lld", r->query->name, (long long)r->n_rows);
  for (int s = 0; s < N_SIDES; s++)
    if (b->on[s]) put_ms(r, s);
  for (int k = 0; k < N_JUDGED; k++) {
    int s = side_called(judged[k]);
    if (!b->on[s]) continue;
    put_ratio(time_on(b, r, s), time_on(b, r, duck), 14, 2);
    put_ratio(time_on(b, r, 0), time_on(b, r, s), 13, 1);
  }
  for (int s = 0; s < N_SIDES; s++)
    if (b->on[s] && sides[s].engine) put_engine(&r->side[s]);
  printf("\n");
}

static void put_sums(const struct bench *b, const struct result *r, const bool *twin, int n) {
  int duck = side_called("duckdb");
  printf("%-16s", "sum");
  for (int s = 0; s < N_SIDES; s++) {
    double ms = 0;
    bool whole = true;
    if (!b->on[s]) continue;
    for (int q = 0; q < n; q++) {
      if (twin[q]) continue;
      ms += median_of(&r[q], s);
      whole &= r[q].side[s].n > 0;
    }
    printf("%12.2f", ms);
    if (!whole) printf("\b%s", "+"); /* without the queries that have no time */
  }
  printf("\n");
  for (int k = 0; k < N_JUDGED; k++) {
    double logs = 0, worst = 0, least = 0;
    const char *worst_name = "", *least_name = "";
    int n_duck = 0, n_sqlite = 0, n_elsewhere = 0, s = side_called(judged[k]);
    if (!b->on[s]) continue;
    for (int q = 0; q < n; q++) {
      double ours = time_on(b, &r[q], s), theirs = time_on(b, &r[q], duck);
      if (twin[q] || ours <= 0) continue;
      n_elsewhere += r[q].side[s].elsewhere;
      if (theirs > 0) {
        logs += log(ours / theirs);
        n_duck++;
        if (ours / theirs > worst) {
          worst = ours / theirs;
          worst_name = r[q].query->name;
        }
      }
      theirs = time_on(b, &r[q], 0);
      if (theirs > 0 && (!n_sqlite++ || theirs / ours < least)) {
        least = theirs / ours;
        least_name = r[q].query->name;
      }
    }
    if (n_duck)
      printf("%s/duckdb: geometric mean %.2f over %d, worst %.2f (%s)\n", judged[k],
             exp(logs / n_duck), n_duck, worst, worst_name);
    if (n_sqlite)
      printf("sqlite/%s: smallest %.1f (%s) over %d\n", judged[k], least, least_name, n_sqlite);
    if (n_elsewhere) printf("%s: %d ran elsewhere\n", judged[k], n_elsewhere);
  }
}

static const struct result *result_called(const struct result *r, int n, const char *name) {
  for (int q = 0; q < n; q++)
    if (strcmp(r[q].query->name, name) == 0) return &r[q];
  return NULL;
}

/* A condition over strings against one over numbers: the same rows, or the paper's pair. */
static void put_pairs(const struct bench *b, const struct result *r, int n) {
  static const char *const pairs[][2] = {{"1", "n1"}, {"2", "n2"}, {"5", "9"}};
  printf("strings over numbers, times as long:\n");
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    const struct result *text = result_called(r, n, pairs[i][0]);
    const struct result *number = result_called(r, n, pairs[i][1]);
    if (!text || !number) continue;
    printf("  %s over %-4s", pairs[i][0], pairs[i][1]);
    for (int s = 0; s < N_SIDES; s++) {
      if (!b->on[s]) continue;
      printf("  %s", sides[s].name);
      put_ratio(time_on(b, text, s), time_on(b, number, s), 6, 2);
    }
    printf("\n");
  }
}

void suite_report(const struct bench *b, const struct many *u, double scale, const struct result *r,
                  const bool *twin, int n) {
  bool paired = false;
  printf("\n%s, %g %s, keep=%s: milliseconds, median\n\n%-6s%10s", u->title, scale, u->what,
         keep_of(b), "query", "rows");
  for (int s = 0; s < N_SIDES; s++)
    if (b->on[s]) printf("%12s", sides[s].name);
  for (int k = 0; k < N_JUDGED; k++)
    if (b->on[side_called(judged[k])]) printf("%7s/duckdb   sqlite/%-4s", judged[k], judged[k]);
  printf(" ran on\n");
  for (int q = 0; q < n; q++) {
    put_row_of(b, &r[q]);
    paired |= twin[q];
  }
  put_sums(b, r, twin, n);
  if (paired) put_pairs(b, r, n);
  for (int q = 0; q < n; q++)
    for (int s = 0; s < N_SIDES; s++)
      if (b->on[s] && r[q].side[s].elsewhere)
        printf("* %s on %s: %s\n", r[q].query->name, sides[s].name, r[q].side[s].reason);
  fflush(stdout);
}

void suite_json(struct json *j, const struct bench *b, const struct many *u, double scale,
                const struct result *r, int n) {
  json_open(j, NULL, '{');
  json_string(j, "suite", u->title);
  json_number(j, "scale", scale);
  json_devices(j, b->db);
  json_open(j, "queries", '[');
  for (int q = 0; q < n; q++) {
    json_open(j, NULL, '{');
    json_string(j, "name", r[q].query->name);
    json_number(j, "rows", (double)r[q].n_rows);
    json_open(j, "sides", '{');
    for (int s = 0; s < N_SIDES; s++) {
      const struct timing *t = &r[q].side[s];
      if (!b->on[s]) continue;
      json_open(j, sides[s].name, '{');
      json_bool(j, "same", t->same);
      if (t->n > 0) {
        json_number(j, "median_ms", sorted_median(t->ms, t->n));
        json_number(j, "min_ms", t->ms[0]);
        json_number(j, "runs", t->n);
      }
      if (t->reason[0]) json_string(j, "reason", t->reason);
      json_close(j, '}');
    }
    json_close(j, '}');
    json_close(j, '}');
  }
  json_close(j, ']');
  json_close(j, '}');
}
