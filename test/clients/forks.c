/*
** fork() after queries, as preforking servers and Python's multiprocessing do: a child that opens
** a connection of its own must get its answer. (While another thread is inside SQLite a fork
** leaves SQLite's own locks taken; unit_fork tests ours.)
**
** Invariants:
** 1. A child ends by itself or is ended by its alarm, which counts as a failure.
** 2. A child says by its exit status which step failed: 0 none.
*/
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../engines.h"
#include "../rows.h"
#include "../tap.h"

enum { N_ROWS = 300000, SECONDS = TEST_SANITIZED ? 120 : 30 };

static const char query[] = "SELECT sum(a*2), max(b) FROM t WHERE c <> 'w7'";
static const char answer[] = "89100558000|37500.0";

static char file[] = "forks.XXXXXX";

static bool fill(sqlite3 *db) {
  char *sql = sqlite3_mprintf(
      "CREATE TABLE t(a INTEGER, b REAL, c TEXT);"
      "INSERT INTO t WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<%d)"
      " SELECT n, n/8.0, 'w'||(n%%100) FROM k",
      N_ROWS);
  int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  sqlite3_free(sql);
  return rc == SQLITE_OK;
}

static sqlite3 *open_db(const char *name, const char *engine) {
  sqlite3 *db = NULL;
  if (sqlite3_open(name, &db) || !use_engine(db, engine) || !use_setting(db, "threads", "4")) {
    sqlite3_close(db);
    return NULL;
  }
  return db;
}

/* Runs the query: 0, or which step failed. prefix: NULL, or how the reason must begin. */
static int ask(sqlite3 *db, const char *prefix) {
  sqlite3_stmt *stmt = NULL;
  char got[64] = "";
  if (warplite_prepare(db, query, -1, &stmt, NULL)) return 2;
  if (sqlite3_step(stmt) == SQLITE_ROW)
    snprintf(got, sizeof got, "%s|%s", (const char *)sqlite3_column_text(stmt, 0),
             (const char *)sqlite3_column_text(stmt, 1));
  sqlite3_finalize(stmt);
  if (strcmp(got, answer)) return 3;
  return prefix && strncmp(warplite_reason(db), prefix, strlen(prefix)) ? 4 : 0;
}

/* What a child does: a connection of its own, twice; then the same in a child of the child. */
static int child(const char *engine, const char *prefix, int depth) {
  alarm(SECONDS);
  for (int i = 0; i < 2; i++) {
    sqlite3 *db = open_db(file, engine);
    int rc = db ? ask(db, prefix) : 1;
    sqlite3_close(db);
    if (rc) return rc;
  }
  if (depth == 0) return 0;
  pid_t pid = fork();
  if (pid == 0) _exit(child(engine, prefix, depth - 1));
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 9;
}

/* Forks and waits: 0, or what went wrong. inherited: asked in the child too, or NULL. */
static int fork_once(const char *engine, const char *prefix, sqlite3 *inherited) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    int rc = inherited ? ask(inherited, NULL) : 0;
    _exit(rc ? rc + 10 : child(engine, prefix, 1));
  }
  int status = -1;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static void check_forks(const char *name, const char *engine, const char *prefix,
                        sqlite3 *inherited, int n) {
  int rc = 0, i = 0;
  if (TEST_TSAN && strcmp(engine, "sim") == 0) {
    tap_skip(name, "the thread sanitizer fails an internal check when a forked child of a threaded "
                   "program runs fibers");
    return;
  }
  for (; i < n && !rc; i++) rc = fork_once(engine, prefix, inherited);
  if (rc)
    tap_bad(name, "child %d of %d: %s %d", i, n, rc > 100 ? "killed by signal" : "step",
            rc > 100 ? rc - 100 : rc);
  else
    tap_ok(name);
}

static void check_engine(const char *engine) {
  char name[80];
  const char *prefix = engine_prefix(engine);
  /* The driver does not let a child use its parent's device: the CPU takes over and says so. */
  const char *in_child = strcmp(engine, "cuda") ? prefix : "cpu:";
  sqlite3 *db = open_db(file, engine), *memory = open_db(":memory:", engine);
  snprintf(name, sizeof name, "before the fork [%s]", engine);
  if (!CHECK(name, db && memory && fill(memory) && !ask(db, prefix) && !ask(memory, prefix)))
    return;
  snprintf(name, sizeof name, "children after a query [%s]", engine);
  check_forks(name, engine, in_child, NULL, 20);
  snprintf(name, sizeof name, "children use a database in memory too [%s]", engine);
  check_forks(name, engine, in_child, memory, 5);
  snprintf(name, sizeof name, "the parent goes on [%s]", engine);
  CHECK(name, !ask(db, prefix) && !ask(memory, prefix));
  sqlite3_close(db);
  sqlite3_close(memory);
}

int main(void) {
  int fd = mkstemp(file);
  if (fd < 0) return 1;
  close(fd);
  sqlite3 *db = NULL;
  if (!CHECK("set-up", sqlite3_open(file, &db) == SQLITE_OK && fill(db))) return 1;
  sqlite3_close(db);
  check_engine("cpu");
  check_engine("sim");
  if (getenv("WL_TEST_CUDA")) check_engine("cuda");
  unlink(file);
  return tap_done();
}
