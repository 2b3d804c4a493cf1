/*
** What the three parts of the benchmark of tablet tables have in common: options, statements,
** the report's file.
**
** 1. `ordinary` is a table of SQLite's, reached through sqlite3_prepare_v2; `tablet` one of the
**    module tablet, reached through warplite_prepare.
** 2. A statement that fails, or a difference between the two, is a failure of the benchmark; it
**    is told on stderr and the exit status is 1.
*/
#ifndef BENCH_TABLETS_H
#define BENCH_TABLETS_H

#include <errno.h>
#include "../json.h"
#include "../suite.h"

struct tablets {
  struct bench facts; /* for json_facts */
  int64_t n_rows;     /* of part dml */
  int64_t n_keys;     /* of part kv */
  int64_t sizes[8];   /* of part functions */
  int n_sizes;
  int n_runs;
  const char *engine; /* of part functions: cpu, sim or cuda */
  const char *only;   /* of part functions: one of them; NULL: all */
  const char *route;  /* of part functions: always, or cost */
  const char *dir;
  bool verbose, keep, check;
  int n_failures;
};

typedef int prepare_call(sqlite3 *db, const char *sql, int n, sqlite3_stmt **out, const char **end);

static inline void tablets_fail(struct tablets *b, const char *what, const char *why) {
  fprintf(stderr, "tablets: %s: %s\n", what, why);
  b->n_failures++;
}

/* Runs one statement to its end; false after a message. */
static inline bool tablets_run(struct tablets *b, sqlite3 *db, prepare_call *prepare,
                               const char *sql) {
  sqlite3_stmt *st = NULL;
  int rc = prepare(db, sql, -1, &st, NULL);
  if (rc == SQLITE_OK) {
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) continue;
    rc = sqlite3_finalize(st);
  }
  if (rc != SQLITE_OK) tablets_fail(b, sql, sqlite3_errmsg(db));
  if (b->verbose && prepare == warplite_prepare) printf("  %s\n    %s\n", sql, warplite_reason(db));
  return rc == SQLITE_OK;
}

/* The first row of a query as text, values apart by bars. */
static inline bool tablets_ask(struct tablets *b, sqlite3 *db, prepare_call *prepare,
                               const char *sql, char *out, size_t n) {
  sqlite3_stmt *st = NULL;
  size_t used = 0;
  int rc = prepare(db, sql, -1, &st, NULL);
  *out = 0;
  if (rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
    for (int i = 0; i < sqlite3_column_count(st) && used < n; i++) {
      const char *z = (const char *)sqlite3_column_text(st, i);
      used += (size_t)snprintf(out + used, n - used, "%s%s", i ? "|" : "", z ? z : "NULL");
    }
  int rc2 = sqlite3_finalize(st);
  if (rc == SQLITE_OK) rc = rc2;
  if (rc != SQLITE_OK) tablets_fail(b, sql, sqlite3_errmsg(db));
  if (b->verbose && prepare == warplite_prepare) printf("  %s\n    %s\n", sql, warplite_reason(db));
  return rc == SQLITE_OK;
}

static inline double median(double *v, int n) {
  qsort(v, (size_t)n, sizeof *v, compare_doubles);
  return sorted_median(v, n);
}

void tablets_dml(struct tablets *b, struct json *j);
void tablets_kv(struct tablets *b, struct json *j);
void tablets_functions(struct tablets *b, struct json *j);

#endif
