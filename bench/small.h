/*
** The small-table check: what warplite costs where it has nothing to win.
**
** A table of 100 rows and warplite's default settings; the router is expected to leave
** every query to SQLite. Each repetition prepares, steps to the end and finalizes,
** through SQLite and through warplite in alternating blocks.
**
** 1. The clock is read around every single repetition, so that the median is a typical
**    repetition and not the mean of a block with an interruption in it.
** 2. "same" repeats one text; "new" changes a literal each time, so no text is seen
**    twice and nothing remembered about a text can help.
*/
#ifndef BENCH_SMALL_H
#define BENCH_SMALL_H

#include "json.h"
#include "tables.h"

enum { SMALL_ROWS = 100, SMALL_REPEATS = 20000, SMALL_BLOCK = 100 };
#define SMALL_BAR_US 50.0

struct small_query {
  const char *name;
  const char *sql; /* one %d: a literal that can change without changing the work */
};

static const struct small_query small_queries[] = {
    {"point", "SELECT uniformi, normalf5, %d FROM test WHERE id = 42"},
    {"filter", "SELECT id, uniformi, %d FROM test WHERE uniformi > 0 AND normali5 < 0"},
    {"sum", "SELECT count(*), sum(uniformi), avg(normalf20), %d FROM test WHERE normali20 < 0"},
    {"order", "SELECT id, uniformi, %d FROM test WHERE uniformi > 0 ORDER BY normalf5"},
};

typedef int (*prepare_call)(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);

/* One repetition in microseconds; negative when it failed. */
static inline double small_once(sqlite3 *db, prepare_call prepare, const char *sql) {
  sqlite3_stmt *stmt = NULL;
  struct digest d = {0};
  double start = now_ms();
  int rc = prepare(db, sql, -1, &stmt, NULL);
  if (rc == SQLITE_OK) rc = digest_sqlite(&d, stmt);
  int rc2 = sqlite3_finalize(stmt);
  double us = (now_ms() - start) * 1e3;
  return rc == SQLITE_OK && rc2 == SQLITE_OK ? us : -1;
}

/* Fills us[0] (SQLite) and us[1] (warplite), sorted. False and a message on failure. */
static inline bool small_measure(struct bench *b, const char *format, bool fresh, double *us[2],
                                 char *why) {
  static const prepare_call calls[2] = {sqlite3_prepare_v2, warplite_prepare};
  char sql[256];
  for (int done = 0; done < SMALL_REPEATS; done += SMALL_BLOCK) {
    for (int side = 0; side < 2; side++) {
      for (int i = done; i < done + SMALL_BLOCK; i++) {
        snprintf(sql, sizeof sql, format, fresh ? i : 42);
        us[side][i] = small_once(b->db, calls[side], sql);
        if (us[side][i] < 0) {
          snprintf(why, WHY, "%s: %s", sql, sqlite3_errmsg(b->db));
          return false;
        }
        if (side == 1 && strncmp(warplite_reason(b->db), "sqlite", 6) != 0) {
          snprintf(why, WHY, "%s: wanted the engine sqlite, got \"%s\"", sql,
                   warplite_reason(b->db));
          return false;
        }
      }
    }
  }
  for (int side = 0; side < 2; side++) qsort(us[side], SMALL_REPEATS, sizeof **us, compare_doubles);
  return true;
}

/* The whole check; the number of failures is added to b's. */
static inline void small_run(struct bench *b, struct json *j) {
  double *us[2] = {malloc(SMALL_REPEATS * sizeof(double)), malloc(SMALL_REPEATS * sizeof(double))};
  char why[WHY];
  if (!us[0] || !us[1]) {
    fprintf(stderr, "bench: out of memory\n");
    b->n_failures++;
    goto done;
  }
  if (!sqlite_load(&b->db, ":memory:", &suites[0], SMALL_ROWS, why)) goto failed;
  if (sqlite3_exec(b->db, "CREATE INDEX test_normalf5 ON test(normalf5)", NULL, NULL, NULL) ||
      warplite_enable(b->db) != SQLITE_OK) {
    snprintf(why, sizeof why, "warplite_enable: %s", warplite_errmsg(b->db));
    goto failed;
  }
  if (!set_extra(b, why)) goto failed;

  printf("%d rows: prepare, step, finalize; medians of %d in microseconds\n\n", SMALL_ROWS,
         SMALL_REPEATS);
  printf("%-8s%-6s%10s%10s%12s\n", "query", "text", "sqlite", "warplite", "difference");
  json_open(j, "small", '[');
  for (size_t q = 0; q < sizeof small_queries / sizeof *small_queries; q++) {
    for (int fresh = 0; fresh < 2; fresh++) {
      const char *text = fresh ? "new" : "same";
      if (!small_measure(b, small_queries[q].sql, fresh, us, why)) {
        fprintf(stderr, "bench: small %s: %s\n", small_queries[q].name, why);
        b->n_failures++;
        continue;
      }
      double base = sorted_median(us[0], SMALL_REPEATS);
      double ours = sorted_median(us[1], SMALL_REPEATS);
      bool over = ours - base > SMALL_BAR_US;
      printf("%-8s%-6s%10.2f%10.2f%12.2f%s\n", small_queries[q].name, text, base, ours, ours - base,
             over ? "  over the bar of 50" : "");
      if (b->verbose) printf("        %s\n", warplite_reason(b->db));
      b->n_failures += over;
      json_open(j, NULL, '{');
      json_string(j, "name", small_queries[q].name);
      json_string(j, "text", text);
      json_number(j, "sqlite_us", base);
      json_number(j, "warplite_us", ours);
      json_number(j, "difference_us", ours - base);
      json_string(j, "reason", warplite_reason(b->db));
      json_close(j, '}');
    }
  }
  json_close(j, ']');
  goto done;
failed:
  fprintf(stderr, "bench: small: %s\n", why);
  b->n_failures++;
done:
  sqlite3_close(b->db);
  b->db = NULL;
  free(us[0]);
  free(us[1]);
}

#endif
