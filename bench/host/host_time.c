/*
** The host time of a statement: what it costs besides the work on its rows.
**
**     host_time [--repeats N] [--set NAME=VALUE,...] [--only KIND] [--queries FOLDER] [--check]
**
** The tables have about 1,000 rows: one of numbers and text, a small one to join it with, and the
** star schema at a tiny scale. The settings are engine=cpu and route=always: warplite runs every
** statement natively, although SQLite would be faster. Each repetition goes from the text to the
** last row. The clock is read around each one, and medians are printed.
**
** 1. "new" changes a literal each time, so no text is seen twice. "seen" repeats one text. "again"
**    steps one prepared statement once more.
** 2. Each kind is measured through warplite_prepare() and sqlite3_step(), and through
**    warplite_query() and the first batches.
** 3. prepares: calls of sqlite3_prepare_v2 and _v3, by the program, the library and SQLite itself.
**    reads: read transactions that take a lock on the file. Both are means of one repetition.
** 4. --check fails if a median is above its bar. A kind that calls functions has a higher bar: the
**    library lists the connection's functions each time, to see whether one was replaced.
** 5. host: us less what the pipelines take by EXPLAIN ANALYZE. The bars are for this.
** 6. To count instructions: valgrind --tool=callgrind --toggle-collect='measured*'.
*/
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../suites/queries.h"
#include "../suites/store.h"
#include "warplite.h"

/* ---- what SQLite is asked for */

static long n_prepares, n_reads;

typedef int prepare_v2(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);
typedef int prepare_v3(sqlite3 *, const char *, int, unsigned, sqlite3_stmt **, const char **);

/* SQLite's routine table has these, because a program's symbols come before a library's. */
__attribute__((visibility("default"))) int
sqlite3_prepare_v2(sqlite3 *db, const char *sql, int n, sqlite3_stmt **out, const char **tail) {
  static prepare_v2 *real;
  if (!real) real = (prepare_v2 *)dlsym(RTLD_NEXT, "sqlite3_prepare_v2");
  n_prepares++;
  return real(db, sql, n, out, tail);
}

__attribute__((visibility("default"))) int sqlite3_prepare_v3(sqlite3 *db, const char *sql, int n,
                                                              unsigned flags, sqlite3_stmt **out,
                                                              const char **tail) {
  static prepare_v3 *real;
  if (!real) real = (prepare_v3 *)dlsym(RTLD_NEXT, "sqlite3_prepare_v3");
  n_prepares++;
  return real(db, sql, n, flags, out, tail);
}

/* The lock of a reader is on these many bytes. */
enum { SHARED_BYTES = 510 };

static int counted_fcntl(int fd, int command, ...) {
  va_list ap;
  va_start(ap, command);
  void *arg = va_arg(ap, void *);
  va_end(ap);
  const struct flock *l = arg;
  if (command == F_SETLK && l->l_type == F_RDLCK && l->l_len == SHARED_BYTES) n_reads++;
  return fcntl(fd, command, arg);
}

static bool count_reads(void) {
  sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
  return vfs && vfs->iVersion >= 3 &&
         vfs->xSetSystemCall(vfs, "fcntl", (sqlite3_syscall_ptr)counted_fcntl) == SQLITE_OK;
}

/* ---- kinds of statements */

struct kind {
  const char *name;
  const char *sql; /* with a %d: a literal; NULL: a query file of the star schema */
  double new_bar, seen_bar;
};

static const struct kind kinds[] = {
    {"sum", "SELECT sum(x*y), count(*), %d FROM t WHERE y > 3", 300, 150},
    {"group", "SELECT y, count(*), avg(r) FROM t WHERE x <> %d GROUP BY y", 300, 150},
    {"order", "SELECT id, s FROM t WHERE x <> %d ORDER BY r LIMIT 10", 300, 50},
    {"rows", "SELECT id, x, s FROM t WHERE y = 5 AND x <> %d", 300, 50},
    {"function", "SELECT count(*), max(abs(x)) FROM t WHERE length(s) > 4 AND x <> %d", 300, 150},
    {"subquery", "SELECT count(*) FROM t WHERE r > (SELECT avg(r) FROM t WHERE x <> %d)", 300, 150},
    {"join", "SELECT count(*), sum(t.x) FROM t, u WHERE t.y = u.y AND u.z <> %d", 600, 150},
    {"ssb 4.1", NULL, 600, 150},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static const char tables[] =
    "CREATE TABLE t(id INTEGER PRIMARY KEY, x INT, y INT, r REAL, s TEXT);"
    "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 1000)"
    " INSERT INTO t SELECT i, i*7919 % 1009, i % 10, i / 7.0, 'word' || i % 50 FROM c;"
    "CREATE TABLE u(y INT, z INT);"
    "WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i < 9)"
    " INSERT INTO u SELECT i, i*3 FROM c;";

/* ---- measuring */

enum { MOST = 100000, WHY = 512 };

struct host {
  sqlite3 *db;
  char *ssb;
  int repeats;
  const char *only;
  bool check;
  int n_failures;
  double running; /* of the present kind, in microseconds */
};

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

enum way { BY_SQLITE, BY_PREPARE, BY_QUERY };

/* Steps to the end. */
static bool step_all(sqlite3_stmt *s) {
  int rc;
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) sqlite3_column_int64(s, 0);
  return rc == SQLITE_DONE;
}

static bool by_statement(sqlite3 *db, prepare_v2 *prepare, const char *sql) {
  sqlite3_stmt *s = NULL;
  bool ok = prepare(db, sql, -1, &s, NULL) == SQLITE_OK && step_all(s);
  return sqlite3_finalize(s) == SQLITE_OK && ok;
}

static bool by_query(sqlite3 *db, const char *sql) {
  struct ArrowArrayStream stream;
  struct ArrowArray batch;
  if (warplite_query(db, sql, &stream)) return false;
  int rc;
  while ((rc = stream.get_next(&stream, &batch)) == 0 && batch.release) batch.release(&batch);
  stream.release(&stream);
  return rc == 0;
}

/* One repetition. Not inlined, so that a profiler can collect here alone. */
__attribute__((noinline)) static bool measured(sqlite3 *db, enum way way,
                                                        const char *sql) {
  switch (way) {
  case BY_SQLITE: return by_statement(db, sqlite3_prepare_v2, sql);
  case BY_PREPARE: return by_statement(db, warplite_prepare, sql);
  default: return by_query(db, sql);
  }
}

/* Makes a text of a kind. The star schema's query has no number: a comment makes it new. */
static void text_of(const struct host *h, const struct kind *k, int number, char *out, size_t n) {
  if (k->sql)
    snprintf(out, n, k->sql, number);
  else
    snprintf(out, n, "%s /* %d */", h->ssb, number);
}

struct cost {
  double us, prepares, reads;
};

static bool fail(struct host *h, const char *sql, const char *why) {
  fprintf(stderr, "host_time: %s: %s\n", sql, why);
  h->n_failures++;
  return false;
}

static bool measure(struct host *h, const struct kind *k, enum way way, bool is_new,
                    struct cost *out) {
  static int number = 100000; /* every new text is new for the whole process */
  static double us[MOST];
  static char sql[4096];
  text_of(h, k, ++number, sql, sizeof sql);
  for (int i = 0; i < 3; i++)
    if (!measured(h->db, way, sql)) return fail(h, sql, sqlite3_errmsg(h->db));
  long prepares = n_prepares, reads = n_reads;
  for (int i = 0; i < h->repeats; i++) {
    if (is_new) text_of(h, k, ++number, sql, sizeof sql);
    double start = now_us();
    bool ok = measured(h->db, way, sql);
    us[i] = now_us() - start;
    if (!ok) return fail(h, sql, way == BY_QUERY ? warplite_errmsg(h->db) : sqlite3_errmsg(h->db));
    if (way != BY_SQLITE && strncmp(warplite_reason(h->db), "sqlite", 6) == 0)
      return fail(h, sql, warplite_reason(h->db));
  }
  out->prepares = (double)(n_prepares - prepares) / h->repeats;
  out->reads = (double)(n_reads - reads) / h->repeats;
  qsort(us, (size_t)h->repeats, sizeof *us, by_size);
  out->us = us[h->repeats / 2];
  return true;
}

/* Steps one prepared statement again and again. */
static bool measure_again(struct host *h, const struct kind *k, struct cost *out) {
  static double us[MOST];
  static char sql[4096];
  sqlite3_stmt *s = NULL;
  text_of(h, k, 7, sql, sizeof sql);
  bool ok = warplite_prepare(h->db, sql, -1, &s, NULL) == SQLITE_OK && step_all(s);
  long prepares = n_prepares, reads = n_reads;
  for (int i = 0; i < h->repeats && ok; i++) {
    double start = now_us();
    sqlite3_reset(s);
    ok = step_all(s);
    us[i] = now_us() - start;
  }
  out->prepares = (double)(n_prepares - prepares) / h->repeats;
  out->reads = (double)(n_reads - reads) / h->repeats;
  sqlite3_finalize(s);
  if (!ok) return fail(h, sql, sqlite3_errmsg(h->db));
  qsort(us, (size_t)h->repeats, sizeof *us, by_size);
  out->us = us[h->repeats / 2];
  return true;
}

/* The time that the pipelines of a statement take, as EXPLAIN ANALYZE measures it. */
static double running_us(struct host *h, const struct kind *k) {
  enum { TIMES = 101 };
  static char sql[4096], text[4200];
  double us[TIMES] = {0};
  text_of(h, k, 7, sql, sizeof sql);
  snprintf(text, sizeof text, "EXPLAIN ANALYZE %s", sql);
  for (int i = 0; i < TIMES; i++) {
    sqlite3_stmt *s = NULL;
    if (warplite_prepare(h->db, text, -1, &s, NULL)) return 0;
    while (sqlite3_step(s) == SQLITE_ROW) {
      const char *line = (const char *)sqlite3_column_text(s, 3);
      const char *ms = line && strncmp(line, "PIPELINE", 8) == 0 ? strstr(line, " ms") : NULL;
      while (ms && ms > line && ms[-1] != ' ') ms--;
      if (ms) us[i] += strtod(ms, NULL) * 1e3;
    }
    sqlite3_finalize(s);
  }
  qsort(us, TIMES, sizeof *us, by_size);
  return us[TIMES / 2];
}

static void report(struct host *h, const struct kind *k, const char *call, const char *text,
                   const struct cost *c, double bar) {
  double host = c->us - h->running;
  bool over = bar > 0 && host > bar;
  printf("%-10s%-9s%-7s%10.1f", k->name, call, text, c->us);
  if (bar > 0)
    printf("%8.1f", host);
  else
    printf("%8s", "");
  printf("%10.1f%8.1f", c->prepares, c->reads);
  if (bar > 0) printf("%8.0f%s", bar, over ? "  over" : "");
  printf("\n");
  fflush(stdout);
  h->n_failures += h->check && over;
}

static void measure_kind(struct host *h, const struct kind *k) {
  struct cost c;
  h->running = running_us(h, k);
  if (measure(h, k, BY_SQLITE, false, &c)) report(h, k, "sqlite", "seen", &c, 0);
  if (measure(h, k, BY_PREPARE, true, &c)) report(h, k, "prepare", "new", &c, k->new_bar);
  if (measure(h, k, BY_PREPARE, false, &c)) report(h, k, "prepare", "seen", &c, k->seen_bar);
  if (measure_again(h, k, &c)) report(h, k, "prepare", "again", &c, k->seen_bar);
  if (measure(h, k, BY_QUERY, true, &c)) report(h, k, "query", "new", &c, k->new_bar);
  if (measure(h, k, BY_QUERY, false, &c)) report(h, k, "query", "seen", &c, k->seen_bar);
}

/* ---- setting up */

static bool settings(struct host *h, const char *list) {
  char copy[512], sql[256];
  snprintf(copy, sizeof copy, "route=always,engine=cpu%s%s", list ? "," : "", list ? list : "");
  for (char *at = strtok(copy, ","); at; at = strtok(NULL, ",")) {
    char *value = strchr(at, '=');
    if (!value) return false;
    *value++ = 0;
    sqlite3_snprintf((int)sizeof sql, sql, "SELECT warplite_set(%Q,%Q)", at, value);
    if (sqlite3_exec(h->db, sql, NULL, NULL, NULL)) return false;
  }
  return true;
}

static bool set_up(struct host *h, const char *folder, const char *list, char *file, char *why) {
  struct query_list queries;
  const double scale = 0.0002;
  char data[64] = "/tmp/host_time.XXXXXX";
  if (!mkdtemp(data)) return false;
  snprintf(file, WHY, "%s", data);
  if (!queries_read(&queries, folder, "ssb", why, WHY)) return false;
  for (int i = 0; i < queries.n; i++)
    if (strcmp(queries.query[i].name, "4.1") == 0) h->ssb = strdup(queries.query[i].published);
  queries_free(&queries);
  if (!store_sqlite(&h->db, data, &ssb_tables, scale, false, why, WHY)) return false;
  snprintf(why, WHY, "cannot be set up");
  return sqlite3_exec(h->db, tables, NULL, NULL, NULL) == SQLITE_OK &&
         warplite_enable(h->db) == SQLITE_OK && settings(h, list) && count_reads() && h->ssb;
}

static void remove_folder(const char *folder) {
  char command[WHY + 16];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (*folder && system(command)) fprintf(stderr, "host_time: %s is left\n", folder);
}

int main(int argc, char **argv) {
  struct host h = {.repeats = 2000};
  const char *list = NULL, *folder = "bench/queries";
  char why[WHY] = "", data[WHY] = "";
  for (int i = 1; i < argc; i++) {
    bool more = i + 1 < argc;
    if (strcmp(argv[i], "--check") == 0)
      h.check = true;
    else if (more && strcmp(argv[i], "--repeats") == 0)
      h.repeats = atoi(argv[++i]);
    else if (more && strcmp(argv[i], "--set") == 0)
      list = argv[++i];
    else if (more && strcmp(argv[i], "--only") == 0)
      h.only = argv[++i];
    else if (more && strcmp(argv[i], "--queries") == 0)
      folder = argv[++i];
    else {
      fprintf(stderr, "usage: host_time [--repeats N] [--set NAME=VALUE,...] [--only KIND] "
                      "[--queries FOLDER] [--check]\n");
      return 2;
    }
  }
  if (h.repeats < 1 || h.repeats > MOST) h.repeats = 2000;
  if (!set_up(&h, folder, list, data, why)) {
    fprintf(stderr, "host_time: %s: %s\n", why, h.db ? sqlite3_errmsg(h.db) : "");
    remove_folder(data);
    return 2;
  }
  printf("medians of %d, in microseconds; prepares and read transactions of one repetition\n\n",
         h.repeats);
  printf("%-10s%-9s%-7s%10s%8s%10s%8s%8s\n", "kind", "call", "text", "us", "host", "prepares",
         "reads", "bar");
  for (int k = 0; k < N_KINDS; k++)
    if (!h.only || strcmp(h.only, kinds[k].name) == 0) measure_kind(&h, &kinds[k]);
  sqlite3_close(h.db);
  free(h.ssb);
  remove_folder(data);
  return h.n_failures > 0;
}
