/*
** What a program without warplite measures: the time of a step with type and value of three
** columns, and what a point lookup costs. bench/preload/run runs it with and without the preload
** library.
**
** Usage: step_rows rows FILE N serialized|nomutex     ns per row
**        step_rows lookup FILE N seen|again|new       instructions are counted in measured()
*/
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static sqlite3 *open_filled(const char *file, int n_rows, int flags) {
  sqlite3 *db = NULL;
  char sql[400];
  if (sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | flags, NULL)) exit(3);
  snprintf(sql, sizeof sql,
           "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b REAL, c INT, s TEXT);"
           "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<%d) "
           "INSERT INTO t SELECT i, i%%1000, i*0.5, i*7919%%1000003, 'text '||i%%777 FROM n",
           n_rows);
  sqlite3_exec(db, "PRAGMA synchronous=off", NULL, NULL, NULL);
  sqlite3_exec(db, sql, NULL, NULL, NULL); /* fails if the file is there */
  return db;
}

static int rows(sqlite3 *db) {
  double best = 1e18;
  long long sum = 0, n = 0;
  double total = 0;
  for (int run = 0; run < 4; run++) {
    sqlite3_stmt *s = NULL;
    double start = now_ns();
    if (sqlite3_prepare_v2(db, "SELECT a, b, c FROM t", -1, &s, NULL)) return 4;
    n = 0;
    while (sqlite3_step(s) == SQLITE_ROW) {
      if (sqlite3_column_type(s, 0) == SQLITE_INTEGER) sum += sqlite3_column_int64(s, 0);
      if (sqlite3_column_type(s, 1) == SQLITE_FLOAT) total += sqlite3_column_double(s, 1);
      if (sqlite3_column_type(s, 2) == SQLITE_INTEGER) sum += sqlite3_column_int64(s, 2);
      n++;
    }
    sqlite3_finalize(s);
    double ns = (now_ns() - start) / (double)n;
    if (run > 0 && ns < best) best = ns; /* the first run reads the file */
  }
  printf("%.1f ns per row, %lld rows, %lld %.1f\n", best, n, sum, total);
  return 0;
}

static sqlite3_stmt *reused;

/* One lookup. Not inlined, so that a profiler can collect here alone. */
__attribute__((noinline)) static long long measured(sqlite3 *db, const char *sql,
                                                             int key) {
  sqlite3_stmt *s = reused;
  long long found = 0;
  if (!s) sqlite3_prepare_v2(db, sql, -1, &s, NULL);
  sqlite3_bind_int(s, 1, key);
  while (sqlite3_step(s) == SQLITE_ROW) {
    if (sqlite3_column_type(s, 0) == SQLITE_INTEGER) found += sqlite3_column_int64(s, 0);
    found += sqlite3_column_bytes(s, 1);
  }
  if (reused)
    sqlite3_reset(s);
  else
    sqlite3_finalize(s);
  return found;
}

static int lookup(sqlite3 *db, int n_rows, const char *what) {
  enum { WARM = 50, N = 1000 };
  static const char text[] = "SELECT a, s FROM t WHERE id = ?";
  long long found = 0;
  if (strcmp(what, "again") == 0) sqlite3_prepare_v2(db, text, -1, &reused, NULL);
  bool fresh = strcmp(what, "new") == 0;
  double start = 0;
  for (int k = 0; k < WARM + N; k++) {
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT a, s FROM t WHERE id = ? + %d", k);
    if (k == WARM) start = now_ns();
    found += measured(db, fresh ? sql : text, k * 7919 % n_rows);
  }
  printf("%.0f ns per lookup, %lld\n", (now_ns() - start) / N, found);
  sqlite3_finalize(reused);
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 5) return 2;
  int n_rows = atoi(argv[3]);
  int flags = strcmp(argv[4], "nomutex") == 0 ? SQLITE_OPEN_NOMUTEX : SQLITE_OPEN_FULLMUTEX;
  sqlite3 *db = open_filled(argv[2], n_rows, flags);
  int rc = strcmp(argv[1], "rows") == 0 ? rows(db) : lookup(db, n_rows, argv[4]);
  sqlite3_close(db);
  return rc;
}
