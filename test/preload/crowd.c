/*
** Many threads, each with several connections, read and write one file. Every answer must belong to
** a state that some commit left: each writer keeps sums that do not change.
** Usage: crowd FOLDER [--threads N] [--connections N] [--seconds N] [--shared]
*/
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 20000, MAX_CONNECTIONS = 16 };

static const char *folder;
static int n_threads = 16, n_connections = 4;
static double seconds = 3;
static bool shared; /* all threads use the same connections */
static sqlite3 *common[MAX_CONNECTIONS];
static atomic_long n_read, n_written, n_busy, n_wrong;
static double until;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static sqlite3 *open_one(void) {
  char path[1000];
  sqlite3 *db = NULL;
  snprintf(path, sizeof path, "%s/crowd.db", folder);
  if (sqlite3_open(path, &db)) exit(3);
  sqlite3_busy_timeout(db, 10000);
  return db;
}

static void wrong(sqlite3 *db, const char *what, int rc, long long value) {
  if (atomic_fetch_add(&n_wrong, 1) < 10)
    printf("wrong: %s: %d %lld %s\n", what, rc, value, sqlite3_errmsg(db));
}

/* The sum of all rows is always 0, and their number ROWS. */
static void read_sums(sqlite3 *db) {
  sqlite3_stmt *s = NULL;
  int rc =
      sqlite3_prepare_v2(db, "SELECT sum(v), count(*), min(k) FROM t WHERE k >= ?", -1, &s, NULL);
  if (rc) return wrong(db, "prepare", rc, 0);
  sqlite3_bind_int(s, 1, 0);
  for (int again = 0; again < 2; again++) {
    rc = sqlite3_step(s);
    if (rc == SQLITE_ROW && (sqlite3_column_int64(s, 0) != 0 || sqlite3_column_int64(s, 1) != ROWS))
      wrong(db, "sum", rc, sqlite3_column_int64(s, 0));
    if (rc == SQLITE_BUSY)
      n_busy++;
    else if (rc != SQLITE_ROW)
      wrong(db, "sum", rc, 0);
    sqlite3_reset(s);
    n_read++;
  }
  sqlite3_finalize(s);
}

/* The same by rows, with a reset half-way now and then. */
static void read_rows(sqlite3 *db, unsigned seed) {
  sqlite3_stmt *s = NULL;
  long long sum = 0, n = 0;
  int rc = sqlite3_prepare_v2(db, "SELECT v, k, name FROM t", -1, &s, NULL);
  if (rc) return wrong(db, "prepare", rc, 0);
  bool half = seed % 5 == 0;
  while ((rc = sqlite3_step(s)) == SQLITE_ROW && !(half && n == ROWS / 2)) {
    sum += sqlite3_column_int64(s, 0);
    if (sqlite3_column_bytes(s, 2) < 4 || sqlite3_column_text(s, 2)[0] != 'n')
      wrong(db, "name", rc, n);
    n++;
  }
  /* On a shared connection SQLite may see half of a change that another thread makes meanwhile. */
  if (rc == SQLITE_DONE && ((sum != 0 && !shared) || n != ROWS)) wrong(db, "rows", (int)n, sum);
  if (rc == SQLITE_BUSY)
    n_busy++;
  else if (rc != SQLITE_DONE && rc != SQLITE_ROW)
    wrong(db, "rows", rc, n);
  sqlite3_finalize(s);
  n_read++;
}

static void look_up(sqlite3 *db, unsigned seed) {
  sqlite3_stmt *s = NULL;
  int rc = sqlite3_prepare_v2(db, "SELECT k, name FROM t WHERE k = ?", -1, &s, NULL);
  if (rc) return wrong(db, "prepare", rc, 0);
  for (int i = 0; i < 20; i++) {
    int key = (int)((seed * 2654435761u + (unsigned)i * 97) % ROWS);
    sqlite3_bind_int(s, 1, key);
    rc = sqlite3_step(s);
    if (rc == SQLITE_BUSY)
      n_busy++;
    else if (rc != SQLITE_ROW || (!shared && sqlite3_column_int(s, 0) != key))
      wrong(db, "look up", rc, key);
    sqlite3_reset(s);
  }
  sqlite3_finalize(s);
}

/* Moves an amount from one row to another, in one statement. */
static void write_some(sqlite3 *db, unsigned seed) {
  char sql[300];
  unsigned a = seed * 7919u % ROWS, b = (a + 1 + seed % 1000) % ROWS;
  if (a == b) return;
  snprintf(sql, sizeof sql,
           "UPDATE t SET v = v + CASE k WHEN %u THEN %u ELSE -%u END WHERE k IN (%u, %u)", a,
           seed % 100, seed % 100, a, b);
  int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
    n_busy++;
  else if (rc)
    wrong(db, "write", rc, 0);
  n_written++;
}

static void *work(void *arg) {
  unsigned seed = (unsigned)(size_t)arg * 1000003u + 1;
  sqlite3 *own[MAX_CONNECTIONS] = {NULL};
  for (int i = 0; i < n_connections; i++) own[i] = shared ? common[i] : open_one();
  while (now() < until) {
    seed = seed * 1103515245u + 12345u;
    unsigned r = seed >> 8;
    sqlite3 *db = own[r % (unsigned)n_connections];
    switch (r / 16 % 8) {
    case 0: write_some(db, r); break;
    case 1:
    case 2: read_rows(db, r); break;
    case 3:
    case 4: look_up(db, r); break;
    default: read_sums(db);
    }
  }
  for (int i = 0; i < n_connections && !shared; i++)
    if (sqlite3_close(own[i])) wrong(own[i], "close", 0, i);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  folder = argv[1];
  for (int i = 2; i < argc; i++) {
    if (strcmp(argv[i], "--threads") == 0)
      n_threads = atoi(argv[++i]);
    else if (strcmp(argv[i], "--connections") == 0)
      n_connections = atoi(argv[++i]);
    else if (strcmp(argv[i], "--seconds") == 0)
      seconds = atof(argv[++i]);
    else if (strcmp(argv[i], "--shared") == 0)
      shared = true;
  }
  if (n_connections > MAX_CONNECTIONS) n_connections = MAX_CONNECTIONS;
  char path[1000];
  snprintf(path, sizeof path, "%s/crowd.db", folder);
  unlink(path);
  sqlite3 *db = open_one();
  char sql[500];
  snprintf(sql, sizeof sql,
           "PRAGMA journal_mode=wal; PRAGMA synchronous=off; CREATE TABLE t(k INTEGER PRIMARY KEY, "
           "v INT, name TEXT); WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i+1 FROM n WHERE "
           "i<%d) INSERT INTO t SELECT i, 0, 'name '||i FROM n",
           ROWS - 1);
  if (sqlite3_exec(db, sql, NULL, NULL, NULL)) return 4;
  for (int i = 0; i < n_connections && shared; i++) common[i] = open_one();
  until = now() + seconds;
  pthread_t *threads = calloc((size_t)n_threads, sizeof *threads);
  for (int i = 0; i < n_threads; i++) pthread_create(&threads[i], NULL, work, (void *)(size_t)i);
  for (int i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < n_connections && shared; i++) sqlite3_close(common[i]);
  read_sums(db);
  sqlite3_close(db);
  free(threads);
  printf("reads %ld writes %ld busy %ld\nwrong %ld\n", n_read, n_written, n_busy, n_wrong);
  return n_wrong != 0;
}
