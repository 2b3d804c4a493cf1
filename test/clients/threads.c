/*
** Threads: a query stopped from another thread or by a progress handler, many connections
** at once, one connection and one statement shared. Made for the thread sanitizer too.
**
** Invariants:
** 1. A stopped query gives SQLITE_INTERRUPT soon, and the connection works on.
** 2. Results found under load are compared with values known beforehand.
*/
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../engines.h"
#include "../rows.h"
#include "../tap.h"

enum { N_ROWS = TEST_SANITIZED ? 200000 : 2000000, N_THREADS = 4 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fill(sqlite3 *db, int n) {
  char *sql = sqlite3_mprintf(
      "CREATE TABLE t(a INTEGER, b REAL, c TEXT);"
      "INSERT INTO t WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<%d)"
      " SELECT n, n/8.0, 'w'||(n%%100) FROM k",
      n);
  if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
    tap_bad("set-up", "%s", sqlite3_errmsg(db));
  sqlite3_free(sql);
}

static sqlite3 *open_db(const char *file, const char *engine) {
  sqlite3 *db;
  if (sqlite3_open(file, &db) || !use_engine(db, engine)) {
    tap_bad("threads", "cannot open: %s", sqlite3_errmsg(db));
    exit(tap_done());
  }
  return db;
}

/* A query of many operations a row, so that it takes a while on any machine. */
static char *heavy_query(int n_ops) {
  size_t cap = (size_t)n_ops * 24 + 100, n;
  char *sql = must(malloc(cap));
  n = (size_t)snprintf(sql, cap, "SELECT sum((a");
  for (int i = 0; i < n_ops; i++)
    n += (size_t)snprintf(sql + n, cap - n, "*%d%%1000003", i % 7 + 2);
  snprintf(sql + n, cap - n, ")) FROM t WHERE b>=0");
  return sql;
}

/* ---- interrupt and progress handler */

typedef struct stopper {
  sqlite3 *db;
  double after_s;
  atomic_int done;
  double first; /* when the first interrupt was sent */
} stopper;

static void *stop_it(void *p) {
  stopper *s = p;
  usleep((useconds_t)(s->after_s * 1e6));
  s->first = now();
  while (!atomic_load(&s->done)) { /* again and again: one may come before the query began */
    sqlite3_interrupt(s->db);
    usleep(1000);
  }
  return NULL;
}

static void check_interrupt(sqlite3 *db, const char *label, const char *sql, double after_s,
                            double most_s) {
  stopper s = {.db = db, .after_s = after_s};
  pthread_t thread;
  rows r;
  memset(&r, 0, sizeof r);
  pthread_create(&thread, NULL, stop_it, &s);
  rows_query(&r, db, warplite_prepare, sql);
  double end = now();
  atomic_store(&s.done, 1);
  pthread_join(thread, NULL);
  if (r.rc != SQLITE_INTERRUPT)
    tap_bad(label, "code %d (%s), not SQLITE_INTERRUPT; %s", r.rc, r.err, warplite_reason(db));
  else if (end - s.first > (TEST_SANITIZED ? 10.0 : most_s))
    tap_bad(label, "stopped only after %.2f s", end - s.first);
  else
    tap_ok(label);
  rows_free(&r);
}

typedef struct progress {
  atomic_int n_calls;
  int stop_at;
} progress;

static int on_progress(void *p) {
  progress *s = p;
  int n = atomic_fetch_add(&s->n_calls, 1) + 1;
  return s->stop_at && n >= s->stop_at;
}

static void check_stops(const char *engine) {
  sqlite3 *db = open_db(":memory:", engine);
  char *sql = heavy_query(150), label[100], why[900];
  const char *plain = "SELECT count(*), sum(a), max(b) FROM t WHERE a>10";
  rows a, b;
  memset(&a, 0, sizeof a);
  memset(&b, 0, sizeof b);
  fill(db, strcmp(engine, "cpu") ? N_ROWS / 4 : N_ROWS);
  snprintf(label, sizeof label, "interrupt while loading [%s]", engine);
  check_interrupt(db, label, sql, 0.004, strcmp(engine, "sim") ? 1.0 : 5.0);
  rows_query(&b, db, sqlite3_prepare_v2, plain);
  rows_query(&a, db, warplite_prepare, plain);
  snprintf(label, sizeof label, "a query after an interrupt [%s]", engine);
  if (rows_same(&a, &b, false, why, sizeof why))
    tap_ok(label);
  else
    tap_bad(label, "%s", why);
  snprintf(label, sizeof label, "and it is native [%s]", engine);
  CHECK(label, !strncmp(warplite_reason(db), engine_prefix(engine), 4));
  rows_query(&a, db, warplite_prepare, "SELECT sum(a), sum(b) FROM t WHERE b>=0"); /* loads all */
  snprintf(label, sizeof label, "interrupt while running [%s]", engine);
  check_interrupt(db, label, sql, 0.004, strcmp(engine, "sim") ? 1.0 : 5.0);

  progress p = {.stop_at = 2};
  sqlite3_progress_handler(db, 100, on_progress, &p);
  rows_query(&a, db, warplite_prepare, sql);
  snprintf(label, sizeof label, "a progress handler stops a query [%s]", engine);
  if (a.rc == SQLITE_INTERRUPT)
    tap_ok(label);
  else
    tap_bad(label, "code %d (%s) after %d calls", a.rc, a.err, atomic_load(&p.n_calls));
  p.stop_at = 0;
  atomic_store(&p.n_calls, 0);
  rows_query(&a, db, warplite_prepare, sql);
  snprintf(label, sizeof label, "a progress handler that lets go on is called [%s]", engine);
  if (a.rc == SQLITE_DONE && atomic_load(&p.n_calls) > 1)
    tap_ok(label);
  else
    tap_bad(label, "code %d, %d calls", a.rc, atomic_load(&p.n_calls));
  sqlite3_progress_handler(db, 0, NULL, NULL);
  if (strcmp(engine, "cpu") == 0) {
    rows_query(&b, db, sqlite3_prepare_v2, sql);
    snprintf(label, sizeof label, "and its answer is right [%s]", engine);
    if (rows_same(&a, &b, false, why, sizeof why))
      tap_ok(label);
    else
      tap_bad(label, "%s", why);
  }
  snprintf(label, sizeof label, "closes after being stopped [%s]", engine);
  CHECK(label, sqlite3_close(db) == SQLITE_OK);
  rows_free(&a);
  rows_free(&b);
  free(sql);
}

/* Functions that take a millisecond or more a call: a tablet of them takes a minute. */
static void check_slow_calls(const char *engine, const char *threads) {
  static const char *const queries[] = {
      "SELECT max(length(printf('%2000000d',a))) FROM t",
      "SELECT hex(zeroblob(1000000+a)) FROM t",
      "SELECT a FROM t WHERE length(hex(zeroblob(1000000+a)))=7",
      "SELECT a FROM t ORDER BY length(printf('%2000000d',a)), a",
      "SELECT length(printf('%2000000d',a)), count(*) FROM t GROUP BY 1",
      "SELECT a, length(printf('%2000000d',sum(a))) FROM t GROUP BY a",
      "SELECT t.a FROM t JOIN u ON u.a=length(printf('%2000000d',t.a))",
      "SELECT t.a FROM t JOIN u ON t.b=u.b AND length(printf('%2000000d',u.a))=length(t.c)",
      "SELECT max(length(printf('%2000000s',c))) FROM t",       /* once per dictionary entry */
      "SELECT max(length(printf('%2000000d',a%60000))) FROM t", /* … or integer */
      "SELECT a FROM t WHERE a>0 AND length(hex(zeroblob(1000000+a)))<>7 AND b<length(hex(a))"};
  sqlite3 *db = open_db(":memory:", engine);
  char label[160];
  rows r = {0};
  fill(db, 200000);
  sqlite3_exec(db,
               "CREATE TABLE u AS SELECT * FROM t LIMIT 150000;"
               "UPDATE t SET c='w'||(a%20000);",
               NULL, NULL, NULL);
  use_setting(db, "threads", threads);
  rows_query(&r, db, warplite_prepare, "SELECT sum(a), sum(b), max(c) FROM t"); /* loads */
  rows_query(&r, db, warplite_prepare, "SELECT sum(a), sum(b), max(c) FROM u");
  for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
    snprintf(label, sizeof label, "interrupt between slow calls [%s, %s threads]: %s", engine,
             threads, queries[i]);
    check_interrupt(db, label, queries[i], 0.1, 0.4);
  }
  progress p = {.stop_at = 3};
  sqlite3_progress_handler(db, 100, on_progress, &p);
  double start = now();
  rows_query(&r, db, warplite_prepare, queries[0]);
  snprintf(label, sizeof label, "a progress handler between slow calls [%s, %s threads]", engine,
           threads);
  CHECK(label, r.rc == SQLITE_INTERRUPT && now() - start < (TEST_SANITIZED ? 20 : 2));
  sqlite3_progress_handler(db, 0, NULL, NULL);
  rows_free(&r);
  CHECK("closes after slow calls", sqlite3_close(db) == SQLITE_OK);
}

/* ---- many connections */

typedef struct worker {
  int no;
  const char *file;
  sqlite3 *db; /* shared, or NULL to open one */
  int n_rounds;
  char why[900];
} worker;

static void *work(void *p) {
  static const char *const list[] = {
      "SELECT count(*), sum(a), min(b), max(c) FROM t",
      "SELECT a, b FROM t WHERE a%97=5",
      "SELECT c, a*2 FROM t WHERE c='w7' LIMIT 30 OFFSET 5",
      "SELECT total(b), avg(a) FROM t WHERE c>'w5'",
  };
  worker *w = p;
  sqlite3 *db = w->db ? w->db : open_db(w->file, w->no % 3 == 2 ? "sim" : "cpu");
  rows a, b;
  memset(&a, 0, sizeof a);
  memset(&b, 0, sizeof b);
  for (int i = 0; i < w->n_rounds && !w->why[0]; i++) {
    const char *sql = list[(i + w->no) % 4];
    char why[900];
    rows_query(&a, db, warplite_prepare, sql);
    rows_query(&b, db, sqlite3_prepare_v2, sql);
    if (!rows_same(&a, &b, false, why, sizeof why)) memcpy(w->why, why, sizeof why);
    if (!w->db && i % 5 == 4) { /* opening and closing meanwhile, too */
      sqlite3_close(db);
      db = open_db(w->file, "cpu");
    }
  }
  if (!w->db && sqlite3_close(db) != SQLITE_OK) snprintf(w->why, sizeof w->why, "does not close");
  rows_free(&a);
  rows_free(&b);
  return NULL;
}

static void run_workers(const char *label, const char *file, sqlite3 *db, int n_rounds) {
  worker w[N_THREADS];
  pthread_t thread[N_THREADS];
  bool good = true;
  memset(w, 0, sizeof w);
  for (int i = 0; i < N_THREADS; i++) {
    w[i].no = i;
    w[i].file = file;
    w[i].db = db;
    w[i].n_rounds = n_rounds;
    pthread_create(&thread[i], NULL, work, &w[i]);
  }
  for (int i = 0; i < N_THREADS; i++) {
    pthread_join(thread[i], NULL);
    if (w[i].why[0] && good) good = tap_bad(label, "thread %d: %s", i, w[i].why);
  }
  if (good) tap_ok(label);
}

/* ---- one statement, two threads, taking turns at every row */

typedef struct shared_stmt {
  sqlite3_stmt *st;
  pthread_mutex_t lock;
  int64_t n, sum;
  bool ended;
} shared_stmt;

static void *take_rows(void *p) {
  shared_stmt *s = p;
  for (bool more = true; more;) {
    pthread_mutex_lock(&s->lock);
    if (!s->ended) {
      if (sqlite3_step(s->st) == SQLITE_ROW) {
        s->n++;
        s->sum += sqlite3_column_int64(s->st, 0);
      } else {
        s->ended = true;
      }
    }
    more = !s->ended;
    pthread_mutex_unlock(&s->lock);
  }
  return NULL;
}

static void check_shared_stmt(void) {
  sqlite3 *db = open_db(":memory:", "cpu");
  shared_stmt s = {.lock = PTHREAD_MUTEX_INITIALIZER};
  pthread_t thread[2];
  fill(db, 20000);
  CHECK("shared statement: prepares",
        warplite_prepare(db, "SELECT a FROM t WHERE a>100", -1, &s.st, NULL) == SQLITE_OK);
  for (int round = 0; round < 2; round++) {
    s.n = s.sum = 0;
    s.ended = false;
    for (int i = 0; i < 2; i++) pthread_create(&thread[i], NULL, take_rows, &s);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    CHECK("shared statement: every row once",
          s.n == 19900 && s.sum == 20000ll * 20001 / 2 - 100ll * 101 / 2);
    sqlite3_reset(s.st);
  }
  sqlite3_finalize(s.st);
  CHECK("shared statement: closes", sqlite3_close(db) == SQLITE_OK);
}

/* The same bits with any number of threads, on every run. */
static void check_determinism(void) {
  static const char *const counts[] = {"1", "2", "3", "8"};
  sqlite3 *db = open_db(":memory:", "cpu");
  rows a, b;
  char label[80], why[900];
  memset(&a, 0, sizeof a);
  memset(&b, 0, sizeof b);
  fill(db, 300000);
  sqlite3_exec(db, "UPDATE t SET b=b/3.0 + 1e15*(a%2) - 1e14*(a%7)", NULL, NULL, NULL);
  for (int i = 0; i < 4; i++) {
    snprintf(label, sizeof label, "the same bits on %s threads", counts[i]);
    if (!use_setting(db, "threads", counts[i])) {
      tap_bad(label, "%s", sqlite3_errmsg(db));
      continue;
    }
    for (int k = 0; k < 3; k++) {
      rows_query(i || k ? &a : &b, db, warplite_prepare,
                 "SELECT sum(b), total(b*a), avg(b), sum(a) FROM t WHERE a%5<>1");
      if ((i || k) && !rows_same(&a, &b, false, why, sizeof why)) {
        tap_bad(label, "%s", why);
        break;
      }
      if (k == 2) tap_ok(label);
    }
  }
  CHECK("threads: closes", sqlite3_close(db) == SQLITE_OK);
  rows_free(&a);
  rows_free(&b);
}

int main(void) {
  const char *tmp = getenv("TMPDIR");
  char file[260];
  snprintf(file, sizeof file, "%s/threads-XXXXXX", tmp && strlen(tmp) < 150 ? tmp : "/tmp");
  int fd = mkstemp(file);
  if (fd < 0) {
    tap_bad("threads", "cannot make a file %s", file);
    return tap_done();
  }
  close(fd);
  CHECK("SQLite is serialized", sqlite3_threadsafe() == 1);
  check_stops("cpu");
  check_stops("sim");
  check_slow_calls("cpu", "1");
  check_slow_calls("cpu", "3");
  check_slow_calls("sim", "2");
  sqlite3 *db = open_db(file, "cpu");
  fill(db, 20000);
  run_workers("a connection a thread", file, NULL, TEST_SANITIZED ? 10 : 40);
  run_workers("one connection, many threads", file, db, TEST_SANITIZED ? 10 : 40);
  CHECK("threads: the shared connection closes", sqlite3_close(db) == SQLITE_OK);
  check_shared_stmt();
  check_determinism();
  unlink(file);
  return tap_done();
}
