/*
** Limits of memory that are not settings of warplite: SQLite's hard heap limit, the cgroup that a
** process runs in; and what is given back to the system when a connection closes.
**
** Invariants:
** 1. Every case runs in a process of its own, whose memory is read from /proc/self/status.
** 2. Answers are compared with those of SQLite without limits, which the parent computes.
*/
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../engines.h"
#include "../tap.h"

enum { N_ROWS = 600000, MB = 1 << 20, SLACK = 24 * MB };

static const char *const queries[] = {
    "SELECT sum(a) FROM t WHERE b > 100",
    "SELECT sum(a), sum(b), count(c) FROM t",
    "SELECT count(*) FROM (SELECT a % 300000 AS g, sum(b) FROM t GROUP BY 1)",
    "SELECT sum(a * n) FROM (SELECT a, row AS n FROM t ORDER BY b DESC LIMIT 5 OFFSET 300000)",
    "SELECT count(DISTINCT c) FROM t",
    "SELECT count(*) FROM t x JOIN t y ON x.a = y.row",
    "SELECT max(c) FROM t WHERE c LIKE '%99%'",
};
enum { N_QUERIES = sizeof queries / sizeof *queries };

static char file[] = "memory.XXXXXX";
static char expected[N_QUERIES][80];

/* A number of kB in /proc/self/status, in bytes. */
static long status_of(const char *name) {
  char line[256];
  long n = -1;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (!strncmp(line, name, strlen(name))) n = atol(line + strlen(name) + 1) * 1024;
  if (f) fclose(f);
  return n;
}

/* The answer's first column as text. */
static int ask(sqlite3 *db, const char *sql, char *out, size_t n_out) {
  sqlite3_stmt *stmt = NULL;
  int rc = warplite_prepare(db, sql, -1, &stmt, NULL);
  if (!rc && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
    rc = SQLITE_OK;
    snprintf(out, n_out, "%s", (const char *)sqlite3_column_text(stmt, 0));
  }
  sqlite3_finalize(stmt);
  return rc;
}

static bool fill(void) {
  sqlite3 *db;
  char *sql = sqlite3_mprintf(
      "CREATE TABLE t(row INTEGER PRIMARY KEY, a INTEGER, b REAL, c TEXT);"
      "INSERT INTO t WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<%d)"
      " SELECT n, n*7919%%1200007, (n*104729%%1000003)/8.0, 'text number '||(n*31%%1200000) FROM k",
      N_ROWS);
  bool right = sqlite3_open(file, &db) == SQLITE_OK && use_engine(db, "sqlite") &&
               sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
  for (int i = 0; i < N_QUERIES && right; i++)
    right = ask(db, queries[i], expected[i], sizeof expected[i]) == SQLITE_OK;
  sqlite3_free(sql);
  sqlite3_close(db);
  return right;
}

/* Runs all queries with the default settings but route=always; 0, or which of them failed. */
static int ask_all(sqlite3 *db, int *n_native) {
  for (int i = 0; i < N_QUERIES; i++) {
    char got[80] = "";
    int rc = ask(db, queries[i], got, sizeof got);
    *n_native += !strncmp(warplite_reason(db), "cpu:", 4);
    if (rc || strcmp(got, expected[i])) {
      fprintf(stderr, "%s: %d %s, '%s' for '%s' (%s)\n", queries[i], rc, sqlite3_errmsg(db), got,
              expected[i], warplite_reason(db));
      return i + 1;
    }
  }
  return 0;
}

static sqlite3 *open_db(void) {
  sqlite3 *db;
  if (sqlite3_open(file, &db) || !use_engine(db, "cpu")) _exit(90);
  return db;
}

/* Each thread takes memory of its own, so what is measured must not depend on the machine. */
static sqlite3 *open_two_threads(void) {
  sqlite3 *db = open_db();
  if (!use_setting(db, "threads", "2")) _exit(90);
  return db;
}

/* ---- the cases, each in a child */

static int in_heap_limit(void) {
  enum { LIMIT = 20 * MB };
  int n_native = 0;
  sqlite3 *db = open_two_threads();
  long before = status_of("VmRSS:");
  sqlite3_hard_heap_limit64(LIMIT);
  int rc = ask_all(db, &n_native);
  long peak = status_of("VmHWM:") - before;
  if (!rc && peak > LIMIT + SLACK) {
    fprintf(stderr, "%ld bytes above the start\n", peak);
    rc = 80;
  }
  if (!rc && n_native == 0) rc = 81; /* what fits is still taken */
  sqlite3_close(db);
  return rc;
}

static int limit_lifted(void) {
  int n_native = 0;
  sqlite3 *db = open_two_threads();
  sqlite3_hard_heap_limit64(10 * MB);
  int rc = ask_all(db, &n_native);
  sqlite3_hard_heap_limit64(0);
  n_native = 0;
  if (!rc) rc = ask_all(db, &n_native);
  sqlite3_close(db);
  return rc ? rc : n_native == N_QUERIES ? 0 : 82;
}

static int closing(void) {
  int n_native = 0;
  /* SQLite and the pool have started, and another connection stays open. It has columns of its own:
  ** shared ones would stay for it. */
  sqlite3 *other = NULL, *db = open_two_threads();
  char uri[300];
  snprintf(uri, sizeof uri, "file:%s?immutable=1", file);
  if (sqlite3_open_v2(uri, &other, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, NULL) ||
      !use_engine(other, "cpu") || !use_setting(other, "threads", "2"))
    return 90;
  char got[80];
  if (ask(other, "SELECT count(*) FROM (SELECT 1 UNION SELECT 2)", got, sizeof got)) return 90;
  long before = status_of("VmRSS:");
  int rc = ask_all(db, &n_native);
  long full = status_of("VmRSS:");
  /* it allocates behind what the first one has */
  if (ask(other, queries[0], got, sizeof got)) return 90;
  sqlite3_close(db);
  long after = status_of("VmRSS:");
  sqlite3_close(other);
  if (rc) return rc;
  if (full - before < 30 * MB) return 83; /* nothing to give back: this would prove nothing */
  if (after - before <= 20 * MB) return 0;
  fprintf(stderr, "%ld bytes before, %ld with the columns, %ld after closing\n", before, full,
          after);
  return 84;
}

static int in_cgroup(void) {
  int n_native = 0;
  sqlite3 *db = open_db();
  int rc = ask_all(db, &n_native);
  sqlite3_close(db);
  return rc ? rc : n_native ? 0 : 85;
}

/* ---- running them */

static bool put(const char *folder, const char *name, const char *text) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  bool right = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  if (fd >= 0) close(fd);
  return right;
}

static void check(const char *name, int (*fn)(void), const char *cgroup) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    char text[32];
    snprintf(text, sizeof text, "%d", (int)getpid());
    _exit(cgroup && !put(cgroup, "cgroup.procs", text) ? 91 : fn());
  }
  int status = -1;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status))
    tap_bad(name, "killed by signal %d", WTERMSIG(status));
  else if (status)
    tap_bad(name, "step %d", WEXITSTATUS(status));
  else
    tap_ok(name);
}

/* A new cgroup with this limit, version 1 or 2; false: it cannot be made here. */
static bool make_cgroup(char *folder, size_t n_folder, const char *limit) {
  static const char *const tops[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
  static const char *const files[] = {"memory.limit_in_bytes", "memory.max"};
  for (int v = 0; v < 2; v++) {
    snprintf(folder, n_folder, "%s/warplite-test-%d", tops[v], (int)getpid());
    if (mkdir(folder, 0755)) continue;
    if (put(folder, files[v], limit)) return true;
    rmdir(folder);
  }
  return false;
}

static void check_cgroup(const char *name, const char *limit) {
  char folder[256];
  if (TEST_SANITIZED) {
    tap_skip(name, "a sanitizer needs more memory than that");
    return;
  }
  if (!make_cgroup(folder, sizeof folder, limit)) {
    tap_skip(name, "no cgroup can be made here");
    return;
  }
  check(name, in_cgroup, folder);
  rmdir(folder);
}

int main(void) {
  int fd = mkstemp(file);
  if (fd < 0) return 1;
  close(fd);
  if (!CHECK("set-up", fill())) return 1;
  if (TEST_SANITIZED) {
    tap_skip("memory that is measured", "a sanitizer takes more of it");
  } else {
    check("a hard heap limit", in_heap_limit, NULL);
    check("memory goes back when the connection closes", closing, NULL);
  }
  check("a hard heap limit that is lifted", limit_lifted, NULL);
  check_cgroup("a container of 32 MB", "33554432");
  check_cgroup("a container of 64 MB", "67108864");
  unlink(file);
  return tap_done();
}
