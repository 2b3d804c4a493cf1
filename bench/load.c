/*
** How long a table takes to get into memory, beside SQLite stepping it.
**
**     load [ROWS [FILE]]      (5,000,000 rows; FILE is made if it is not there)
**
** The table is the Sphyraena one, in a file with a rollback journal that the operating
** system has cached. Every figure is the best of five, on a connection of its own.
*/
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <sqlite3.h>

#include "suite.h"
#include "warplite.h"

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void die(sqlite3 *db, const char *what) {
  fprintf(stderr, "load: %s: %s\n", what, sqlite3_errmsg(db));
  exit(1);
}

static sqlite3 *open_file(const char *path) {
  sqlite3 *db;
  if (sqlite3_open(path, &db)) die(db, path);
  return db;
}

static void make(const char *path, int64_t n_rows) {
  struct suite s = suites[0];
  struct generator g = generator_start(&s);
  struct row r;
  sqlite3 *db = open_file(path);
  sqlite3_stmt *st;
  sqlite3_exec(
      db,
      "PRAGMA synchronous=OFF; CREATE TABLE test(id INTEGER PRIMARY KEY, uniformi INTEGER,"
      " normali5 INTEGER, normali20 INTEGER, uniformf REAL, normalf5 REAL, normalf20 REAL);"
      "BEGIN",
      NULL, NULL, NULL);
  if (sqlite3_prepare_v2(db, "INSERT INTO test VALUES(?,?,?,?,?,?,?)", -1, &st, NULL))
    die(db, "INSERT");
  for (int64_t i = 0; i < n_rows; i++) {
    generator_row(&g, &r);
    sqlite3_bind_int64(st, 1, r.id);
    for (int k = 0; k < 3; k++) sqlite3_bind_int(st, 2 + k, r.i[k]);
    for (int k = 0; k < 3; k++) sqlite3_bind_double(st, 5 + k, r.f[k]);
    if (sqlite3_step(st) != SQLITE_DONE) die(db, "INSERT");
    sqlite3_reset(st);
  }
  sqlite3_finalize(st);
  if (sqlite3_exec(db, "COMMIT", NULL, NULL, NULL)) die(db, "COMMIT");
  sqlite3_close(db);
}

static double step_ms(const char *path) {
  sqlite3 *db = open_file(path);
  sqlite3_stmt *st;
  double start = now_ms(), sum = 0;
  if (sqlite3_prepare_v2(db, "SELECT * FROM test", -1, &st, NULL)) die(db, "SELECT");
  while (sqlite3_step(st) == SQLITE_ROW) {
    for (int k = 0; k < 4; k++) sum += (double)sqlite3_column_int64(st, k);
    for (int k = 4; k < 7; k++) sum += sqlite3_column_double(st, k);
  }
  volatile double keep = sum;
  (void)keep;
  sqlite3_finalize(st);
  sqlite3_close(db);
  return now_ms() - start;
}

/* One statement on a fresh connection, its load included. */
static double query_ms(const char *path, const char *sql, bool warp) {
  sqlite3 *db = open_file(path);
  sqlite3_stmt *st;
  if (warp &&
      (warplite_enable(db) ||
       sqlite3_exec(db, "SELECT warplite_set('engine','cpu'), warplite_set('route','always')", NULL,
                    NULL, NULL)))
    die(db, "enable");
  double start = now_ms();
  if ((warp ? warplite_prepare : sqlite3_prepare_v2)(db, sql, -1, &st, NULL)) die(db, sql);
  while (sqlite3_step(st) == SQLITE_ROW) {
  }
  if (sqlite3_finalize(st)) die(db, sql);
  double ms = now_ms() - start;
  if (warp && strstr(sql, "FROM") && !strncmp(warplite_reason(db), "sqlite", 6))
    die(db, warplite_reason(db));
  sqlite3_close(db);
  return ms;
}

#define BEST(best, expr)                                                                           \
  for (int i = 0; i < 5; i++) {                                                                    \
    double ms = (expr);                                                                            \
    if (i == 0 || ms < best) best = ms;                                                            \
  }

int main(int argc, char **argv) {
  int64_t n_rows = argc > 1 ? strtoll(argv[1], NULL, 10) : suites[0].n_rows;
  char own[300];
  const char *dir = getenv("TMPDIR");
  snprintf(own, sizeof own, "%s/warplite-load-%d.db", dir ? dir : "/tmp", (int)getpid());
  const char *path = argc > 2 ? argv[2] : own;
  static const char *const sqls[] = {"SELECT sum(uniformi) FROM test",
                                     "SELECT sum(normalf20) FROM test",
                                     "SELECT max(normali5), min(normali5) FROM test"};
  double steps = 0, load = 0;
  if (access(path, R_OK) != 0) make(path, n_rows);
  BEST(steps, step_ms(path))
  BEST(load, query_ms(path, "SELECT warplite_load('test')", true))
  printf("%" PRId64 " rows, all columns: SQLite stepped %.0f ms, loaded %.0f ms, %.1f times\n",
         n_rows, steps, load, steps / load);
  for (size_t k = 0; k < sizeof sqls / sizeof *sqls; k++) {
    double theirs = 0, ours = 0;
    BEST(theirs, query_ms(path, sqls[k], false))
    BEST(ours, query_ms(path, sqls[k], true))
    printf("%s, first run: SQLite %.0f ms, warplite %.0f ms, %.1f times\n", sqls[k], theirs, ours,
           theirs / ours);
  }
  if (path == own) remove(own);
  return 0;
}
