/*
** The CUDA device is opened in the background: a statement does not wait for it, says so, and the
** process can fork and end in the meantime. The plugin is slow_plugin, which takes a second.
**
** The program runs itself again with WARPLITE_PLUGINS, which the library reads when it is loaded.
*/
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../engines.h"
#include "../tap.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static sqlite3 *db;

static bool run(const char *sql) {
  sqlite3_stmt *s = NULL;
  int rc = warplite_prepare(db, sql, -1, &s, NULL);
  while (!rc && (rc = sqlite3_step(s)) == SQLITE_ROW) rc = SQLITE_OK;
  sqlite3_finalize(s);
  return rc == SQLITE_DONE;
}

/* Runs as a child: nothing of the parent's device may be used, and nothing may hang. */
static int in_child(void) {
  bool fine = use_setting(db, "engine", "gpu") && run("SELECT sum(a) FROM t");
  return fine && strstr(warplite_reason(db), "not on the gpu") ? 0 : 1;
}

static int statements(void) {
  static const char *const query = "SELECT a % 100, sum(b) FROM t GROUP BY 1";
  sqlite3_open(":memory:", &db);
  if (warplite_enable(db)) return 2;
  run("CREATE TABLE t(a INTEGER, b REAL)");
  run("INSERT INTO t WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i+1 FROM n WHERE i<299999) "
      "SELECT i, i * 0.5 FROM n");
  double start = now();
  bool fine = run(query) && run(query);
  double took = now() - start;
  if (!fine || (took > 0.7 && !TEST_SANITIZED))
    tap_bad("opening: statements do not wait", "%.3f s", took);
  else
    tap_ok("opening: statements do not wait");
  if (strstr(warplite_reason(db), "; the GPU is being opened"))
    tap_ok("opening: the reason says so");
  else
    tap_bad("opening: the reason says so", "%s", warplite_reason(db));
  pid_t pid = fork();
  if (pid == 0) _exit(in_child());
  int status = -1;
  waitpid(pid, &status, 0);
  if (status)
    tap_bad("opening: a child", "status %d", status);
  else
    tap_ok("opening: a child");
  fine = use_setting(db, "engine", "gpu") && run(query);
  if (fine && strstr(warplite_reason(db), "a slow plugin"))
    tap_ok("opening: engine=gpu waits");
  else
    tap_bad("opening: engine=gpu waits", "%s", warplite_reason(db));
  sqlite3_close(db);
  return tap_done();
}

/* Ends while the device is being opened. */
static int leave(void) {
  sqlite3_open(":memory:", &db);
  if (warplite_enable(db)) return 2;
  run("CREATE TABLE t(a INTEGER, b REAL)");
  run("INSERT INTO t WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i+1 FROM n WHERE i<299999) "
      "SELECT i, i * 0.5 FROM n");
  return run("SELECT a % 100, sum(b) FROM t GROUP BY 1") ? 0 : 1;
}

static int again(const char *self, const char *what) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    execl(self, self, what, (char *)NULL);
    _exit(127);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

int main(int argc, char **argv) {
  char plugin[1024];
  if (argc > 1 && strcmp(argv[1], "statements") == 0) return statements();
  if (argc > 1 && strcmp(argv[1], "leave") == 0) return leave();
  snprintf(plugin, sizeof plugin, "%s/slow_plugin.so", argc > 1 ? argv[1] : "build");
  char *path = realpath(plugin, NULL);
  if (!path || mkdir("plugins", 0777) || symlink(path, "plugins/libwarplite_cuda.so")) {
    tap_bad("opening", "no plugin %s", plugin);
    return tap_done();
  }
  free(path);
  setenv("WARPLITE_PLUGINS", "plugins", 1);
  int status = again(argv[0], "statements");
  int left = again(argv[0], "leave");
  if (status) tap_bad("opening: statements", "status %d", status);
  if (left)
    tap_bad("opening: the process ends", "status %d", left);
  else
    tap_ok("opening: the process ends");
  return tap_done();
}
