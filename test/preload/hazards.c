/*
** Programs in trouble: forks in the middle of a query, signals, two SQLite libraries, finalized
** statements. Each prints what it sees. The driver compares the output with and without preload.
** Usage: hazards WHAT FOLDER [LIBRARY]
*/
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../tap.h"

static sqlite3 *open_filled(const char *folder, int n_rows) {
  char path[1000], sql[300];
  sqlite3 *db = NULL;
  snprintf(path, sizeof path, "%s/hazards.db", folder);
  unlink(path);
  if (sqlite3_open(path, &db)) exit(3);
  snprintf(sql, sizeof sql,
           "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, c TEXT);"
           "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<%d) "
           "INSERT INTO t SELECT i, i%%1000, 'row '||i FROM n",
           n_rows);
  if (sqlite3_exec(db, sql, NULL, NULL, NULL)) exit(4);
  return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL)) printf("prepare: %s\n", sqlite3_errmsg(db));
  return s;
}

static void print_one(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = prepare(db, sql);
  int rc = sqlite3_step(s);
  printf("%s: %d %lld\n", sql, rc, rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1);
  sqlite3_finalize(s);
}

static void read_rows(sqlite3_stmt *s, long *n, long long *sum) {
  while (sqlite3_step(s) == SQLITE_ROW) {
    *sum += sqlite3_column_int64(s, 0) + sqlite3_column_bytes(s, 1);
    ++*n;
  }
}

/* ---- fork */

static void forks(const char *folder) {
  sqlite3 *db = open_filled(folder, 200000);
  sqlite3_stmt *s = prepare(db, "SELECT id, c FROM t");
  print_one(db, "SELECT sum(a) FROM t");
  for (int k = 0; k < 10; k++) sqlite3_step(s);
  fflush(stdout);
  for (int way = 0; way < 4; way++) {
    pid_t child = fork();
    if (child == 0) {
      /* SQLite forbids to use what was inherited. It must not crash all the same. */
      if (way == 1) sqlite3_finalize(s);
      if (way == 2) sqlite3_step(s);
      if (way == 3) sqlite3_reset(s);
      char path[1000];
      sqlite3 *own = NULL;
      snprintf(path, sizeof path, "%s/hazards.db", folder);
      sqlite3_open(path, &own);
      print_one(own, "SELECT sum(a) FROM t");
      print_one(own, "SELECT count(*) FROM t WHERE c LIKE '%9'");
      sqlite3_close(own);
      fflush(stdout);
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    printf("child %d: %d\n", way, status);
    fflush(stdout);
  }
  long n = 0;
  long long sum = 0;
  read_rows(s, &n, &sum);
  printf("parent: %ld %lld\n", n, sum);
  print_one(db, "SELECT sum(a), 2 FROM t");
  sqlite3_finalize(s);
  printf("close %d\n", sqlite3_close(db));
}

/* ---- signals */

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static sqlite3 *target;
static atomic_int n_signals, n_elsewhere;
static pthread_t main_thread;

/* The program has one thread when signals come. They must not run on a library's threads. */
static void on_signal(int number) {
  n_signals++;
  if (!pthread_equal(pthread_self(), main_thread)) n_elsewhere++;
  sqlite3_interrupt(target);
}

static atomic_bool returned;
static double first_sent; /* when the first interrupt was sent; 0: not yet */

static void *interrupt_soon(void *arg) {
  /* Once would do, but on a busy machine it may come before the query starts. */
  for (int k = 0; k < 100 && !returned; k++) {
    usleep(3000 + 2000 * k);
    if (!k) first_sent = now_ms();
    sqlite3_interrupt(arg);
  }
  return NULL;
}

/* An interrupt that comes while a query loads its table must not be lost. A query that ends before
** or just after the first one is too fast for this test, as on a GPU. */
static void interrupt_from_thread(const char *folder) {
  char path[1000];
  int n_interrupted = 0;
  snprintf(path, sizeof path, "%s/hazards.db", folder);
  for (int k = 0; k < 10; k++) {
    sqlite3 *db = NULL;
    pthread_t thread;
    sqlite3_open(path, &db);
    sqlite3_stmt *s = prepare(
        db, "SELECT sum(length(x.c) * y.a) FROM t x JOIN t y ON y.a = x.a WHERE x.id < 90000");
    first_sent = 0;
    pthread_create(&thread, NULL, interrupt_soon, db);
    int rc = sqlite3_step(s);
    double ended = now_ms();
    returned = true;
    pthread_join(thread, NULL);
    returned = false;
    bool soon = rc == SQLITE_ROW && (first_sent == 0 || ended - first_sent < 20);
    n_interrupted += soon || (rc == SQLITE_INTERRUPT && sqlite3_reset(s) == SQLITE_INTERRUPT);
    sqlite3_finalize(s);
    sqlite3_close(db);
  }
  printf("interrupted from a thread: %s\n", n_interrupted == 10 ? "always" : "not always");
}

/* The thread sanitizer delays signals. With as many as usual, queries would make no progress. */
static void signals(const char *folder) {
  target = open_filled(folder, TEST_TSAN ? 30000 : 300000);
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  main_thread = pthread_self();
  sigaction(SIGALRM, &action, NULL);
  int every = TEST_TSAN ? 7000 : 700, n_queries = TEST_TSAN ? 60 : 300;
  struct itimerval timer = {{0, every}, {0, every}};
  setitimer(ITIMER_REAL, &timer, NULL);
  static const char *const sql[] = {"SELECT id, c FROM t", "SELECT sum(a), max(c) FROM t",
                                    "SELECT c, count(*) FROM t GROUP BY c ORDER BY 2, 1"};
  bool wrong = false;
  int n_interrupted = 0, last = 0;
  for (int k = 0; k < n_queries; k++) {
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(target, sql[k % 3], -1, &s, NULL);
    wrong |= rc && rc != SQLITE_INTERRUPT; /* SQLite's parser stops too */
    if (rc) continue;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) sqlite3_column_text(s, 1);
    wrong |= rc != SQLITE_DONE && rc != SQLITE_INTERRUPT;
    if (rc == SQLITE_INTERRUPT && (sqlite3_errcode(target) != rc || sqlite3_reset(s) != rc))
      wrong = true;
    n_interrupted += rc == SQLITE_INTERRUPT;
    sqlite3_finalize(s);
  }
  timer = (struct itimerval){{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &timer, NULL);
  /* While the program blocks a signal, nobody else may take it. */
  sigset_t alarm, before;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, &before);
  kill(getpid(), SIGALRM);
  usleep(20000);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  printf("signals %s, interrupts %s, other results %s, handlers on other threads %d\n",
         n_signals > 0 ? "came" : "none", n_interrupted > 0 ? "came" : "none",
         wrong ? "came" : "none", n_elsewhere);
  interrupt_from_thread(folder);
  for (int k = 0; k < 3 && last != SQLITE_ROW; k++) {
    sqlite3_stmt *s = prepare(target, "SELECT count(*) FROM t");
    last = sqlite3_step(s);
    if (last == SQLITE_ROW) printf("count %d\n", sqlite3_column_int(s, 0));
    sqlite3_finalize(s);
  }
  printf("close %d\n", sqlite3_close(target));
}

/* ---- another SQLite */

typedef struct other_sqlite {
  int (*open)(const char *, sqlite3 **);
  int (*exec)(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
  int (*prepare)(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);
  int (*step)(sqlite3_stmt *);
  sqlite3_int64 (*column)(sqlite3_stmt *, int);
  int (*finalize)(sqlite3_stmt *);
  int (*close)(sqlite3 *);
  const char *(*errmsg)(sqlite3 *);
} other_sqlite;

static int print_row(void *arg, int n, char **v, char **names) {
  printf("other: %s=%s\n", names[0], v[0]);
  return 0;
}

static void another(const char *folder, const char *file, int flags) {
  sqlite3 *db = flags & RTLD_DEEPBIND ? NULL : open_filled(folder, 100000), *odb = NULL;
  sqlite3_stmt *s = db ? prepare(db, "SELECT id, c FROM t") : NULL;
  for (int k = 0; s && k < 5; k++) sqlite3_step(s);
  void *handle = dlopen(file, RTLD_NOW | flags);
  if (!handle) {
    printf("dlopen: %s\n", dlerror());
    return;
  }
  other_sqlite o = {
      (void *)dlsym(handle, "sqlite3_open"),         (void *)dlsym(handle, "sqlite3_exec"),
      (void *)dlsym(handle, "sqlite3_prepare_v2"),   (void *)dlsym(handle, "sqlite3_step"),
      (void *)dlsym(handle, "sqlite3_column_int64"), (void *)dlsym(handle, "sqlite3_finalize"),
      (void *)dlsym(handle, "sqlite3_close"),        (void *)dlsym(handle, "sqlite3_errmsg")};
  printf("open %d\n", o.open(":memory:", &odb));
  o.exec(odb,
         "CREATE TABLE u(x, y); WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n "
         "WHERE i<50000) INSERT INTO u SELECT i, i%7 FROM n; SELECT sum(x) FROM u",
         print_row, NULL, NULL);
  sqlite3_stmt *os = NULL;
  o.prepare(odb, "SELECT y, count(*) FROM u GROUP BY y", -1, &os, NULL);
  while (o.step(os) == SQLITE_ROW) printf("%lld %lld\n", o.column(os, 0), o.column(os, 1));
  o.finalize(os);
  o.exec(odb, "SELECT nothing", NULL, NULL, NULL);
  printf("other: %s\n", o.errmsg(odb));
  if (db) {
    long n = 0;
    long long sum = 0;
    read_rows(s, &n, &sum);
    printf("own: %ld %lld\n", n, sum);
    print_one(db, "SELECT sum(a) FROM t");
    sqlite3_finalize(s);
    printf("close %d\n", sqlite3_close(db));
  }
  printf("close %d\n", o.close(odb));
}

/* ---- statements that are gone */

static void finalized(const char *folder) {
  sqlite3 *db = open_filled(folder, 50000);
  sqlite3_stmt *s = prepare(db, "SELECT id, c FROM t");
  for (int k = 0; k < 5; k++) sqlite3_step(s);
  printf("close %d: %s\n", sqlite3_close(db), sqlite3_errmsg(db));
  printf("step %d\n", sqlite3_step(s));
  sqlite3_finalize(s);
  sqlite3_stmt *again = prepare(db, "SELECT c, id FROM t");
  printf("again %d %s\n", sqlite3_step(again), sqlite3_column_text(again, 0));
  sqlite3_finalize(again);
  for (int k = 0; k < 2000; k++) {
    s = prepare(db, k % 2 ? "SELECT sum(a) FROM t" : "SELECT a FROM t WHERE id = 5");
    sqlite3_step(s);
    if (k % 500 < 2) printf("%lld\n", sqlite3_column_int64(s, 0));
    sqlite3_finalize(s);
  }
  printf("close %d\n", sqlite3_close(db));
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  const char *what = argv[1], *folder = argv[2];
  if (strcmp(what, "fork") == 0) forks(folder);
  if (strcmp(what, "signal") == 0) signals(folder);
  if (strcmp(what, "finalized") == 0) finalized(folder);
  if (strcmp(what, "another") == 0 && argc > 3) another(folder, argv[3], RTLD_LOCAL);
  if (strcmp(what, "deepbind") == 0 && argc > 3)
    another(folder, argv[3], RTLD_LOCAL | RTLD_DEEPBIND);
  if (strcmp(what, "query") == 0) {
    sqlite3 *db = open_filled(folder, 100000);
    print_one(db, "SELECT sum(a) FROM t");
    print_one(db, "SELECT count(*) FROM t WHERE c LIKE '%9'");
    printf("close %d\n", sqlite3_close(db));
  }
  return 0;
}
