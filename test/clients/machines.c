/*
** The choice between CPU and GPU with a device that is measured: the plugin pretend_plugin is the
** simulator under CUDA's kind. What is measured goes to a file in the user's cache directory,
** later processes read it, and nothing depends on the file. Files made here pretend a device that
** is fast, so that engine=auto chooses it, and then find out that it is not.
**
** The program runs itself again, because the library looks for its plugin when it is loaded and
** opens a device once.
*/
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../engines.h"
#include "../tap.h"

static sqlite3 *db;
static char answer[2048];

/* Runs a statement; its first value, as text. */
static const char *ask(const char *sql) {
  sqlite3_stmt *s = NULL;
  int rc = warplite_prepare(db, sql, -1, &s, NULL);
  *answer = 0;
  for (bool first = true; !rc && sqlite3_step(s) == SQLITE_ROW; first = false)
    if (first && sqlite3_column_text(s, 0))
      snprintf(answer, sizeof answer, "%s", (const char *)sqlite3_column_text(s, 0));
  if (rc || sqlite3_finalize(s)) tap_bad("a statement", "%s: %s", sql, sqlite3_errmsg(db));
  return answer;
}

static bool ran_on(const char *engine) {
  return strncmp(warplite_reason(db), engine, strlen(engine)) == 0;
}

/* A table whose columns are loaded. */
static void open_table(void) {
  sqlite3_open(":memory:", &db);
  if (warplite_enable(db)) exit(2);
  use_setting(db, "threads", "1");
  ask("CREATE TABLE t(a INTEGER, b REAL)");
  ask("INSERT INTO t WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i+1 FROM n WHERE i<199999) "
      "SELECT i, i * 0.5 FROM n");
  ask("SELECT warplite_load('t')");
}

/* Waits until the device is there and its constants are known. */
static bool wait_for_device(void) {
  bool opening = true;
  use_setting(db, "route", "always");
  for (int k = 0; k < 600 && opening; k++) {
    struct timespec some = {0, 50 * 1000 * 1000};
    if (k > 0) nanosleep(&some, NULL);
    ask("SELECT sum(a) FROM t");
    opening = strstr(warplite_reason(db), "; the GPU is being opened");
  }
  use_setting(db, "route", "cost");
  return !opening;
}

static const char *prices(void) {
  return ask("SELECT prices FROM warplite_devices WHERE kind='cuda'");
}

/* ---- what the children do; they return 0 if all is as expected */

/* Uses the device and expects its prices from there. */
static int expect_from(const char *word) {
  open_table();
  if (!wait_for_device()) return 3;
  return strcmp(prices(), word) ? 4 : 0;
}

static int never_measured(void) {
  open_table();
  use_setting(db, "calibrate", "off");
  if (!wait_for_device()) return 3;
  return strcmp(prices(), "defaults") ? 4 : 0;
}

static int measured_again(void) {
  int rc = expect_from("from a file");
  if (rc) return rc;
  use_setting(db, "calibrate", "now");
  if (!wait_for_device()) return 5;
  return strcmp(prices(), "measured") ? 6 : 0;
}

/* Small work, or explicit engines, open no CUDA device and write nothing. */
static int no_device(void) {
  open_table();
  use_setting(db, "engine", "cpu");
  ask("SELECT sum(a) FROM t");
  use_setting(db, "engine", "gpu");
  use_setting(db, "device", "sim");
  use_setting(db, "route", "always");
  ask("SELECT sum(a) FROM t");
  return ran_on("gpu") ? 0 : 4;
}

/* The file says that the device is fast. The first run copies the columns, the second shows that it
** is slow, and then the CPU runs texts of that shape. */
static int proves_slow(void) {
  static const char *const query = "SELECT sum(a*3+b*%d) FROM t WHERE a%%7<5 AND b>%d";
  char sql[200];
  int on_gpu = 0, late = 0;
  open_table();
  if (!wait_for_device() || strcmp(prices(), "from a file")) return 3;
  for (int k = 0; k < 20; k++) {
    snprintf(sql, sizeof sql, query, k, k);
    ask(sql);
    on_gpu += ran_on("gpu");
    if (k >= 10) late += ran_on("gpu");
    if (k == 0 && (!ran_on("gpu") || !strstr(warplite_reason(db), "to copy"))) return 4;
    if (k == 1 && strstr(warplite_reason(db), "to copy")) return 5;
  }
  if (on_gpu < 2 || late) {
    fprintf(stderr, "%d of 20 runs on the GPU, %d late: %s\n", on_gpu, late, warplite_reason(db));
    return 6;
  }
  ask("SELECT sum(a*b+a-b) FROM t WHERE a%3=1"); /* another shape knows nothing of it */
  return ran_on("gpu") ? 0 : 7;
}

/* A dear copy is not made for one query, but for many. */
static int buys_copies(void) {
  char sql[200];
  int first = -1;
  open_table();
  if (!wait_for_device()) return 3;
  for (int k = 0; k < 200 && first < 0; k++) {
    snprintf(sql, sizeof sql, "SELECT sum(a*3+b*%d) FROM t WHERE a%%7<5 AND b>%d", k, k);
    ask(sql);
    if (ran_on("gpu")) first = k;
  }
  if (first < 2) fprintf(stderr, "first %d: %s\n", first, warplite_reason(db));
  return first < 2;
}

/* A function that only the host has. After the device has refused it, the CPU is chosen. */
static int refused(void) {
  open_table();
  if (!wait_for_device()) return 3;
  ask("SELECT group_concat(a) FROM t WHERE a%1000=0 AND b*2+a*3>0");
  bool tried = strstr(warplite_reason(db), "not on the gpu") != NULL;
  for (int k = 0; k < 3; k++) ask("SELECT group_concat(a) FROM t WHERE a%1000=1 AND b*2+a*3>0");
  bool again = strstr(warplite_reason(db), "not on the gpu") != NULL;
  if (!tried || again) fprintf(stderr, "%d %d: %s\n", tried, again, warplite_reason(db));
  return !tried || again;
}

static int run_child(const char *what) {
  if (!strcmp(what, "measured")) return expect_from("measured");
  if (!strcmp(what, "file")) return expect_from("from a file");
  if (!strcmp(what, "off")) return never_measured();
  if (!strcmp(what, "again")) return measured_again();
  if (!strcmp(what, "none")) return no_device();
  if (!strcmp(what, "slow")) return proves_slow();
  if (!strcmp(what, "copies")) return buys_copies();
  if (!strcmp(what, "refused")) return refused();
  return 9;
}

/* ---- the parent */

static const char *self;

static void child(const char *name, const char *what) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    execl(self, self, "--child", what, (char *)NULL);
    _exit(127);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  if (status)
    tap_bad(name, "status %d", WIFEXITED(status) ? WEXITSTATUS(status) : status);
  else
    tap_ok(name);
}

/* The only file in the folder; its path. False: there is none, or there are several. */
static bool the_file(char *out, size_t size) {
  DIR *d = opendir("cache/warplite");
  struct dirent *e;
  int n = 0;
  while (d && (e = readdir(d)))
    if (e->d_name[0] != '.' && ++n) snprintf(out, size, "cache/warplite/%s", e->d_name);
  if (d) closedir(d);
  return n == 1;
}

/* Writes the file with these constants; the others are of a device as fast as the defaults. */
static bool pretend(const char *path, double pipeline, double in_rate) {
  FILE *f = fopen(path, "w");
  if (!f) return false;
  fprintf(f,
          "gpu_pipeline_ns=%.0f\ngpu_wait_ns=1000\ngpu_node_ns=0.001\ngpu_memory_rate=1500\n"
          "pinned_in_rate=%.3f\npageable_in_rate=%.3f\nout_rate=20\ncpu_node_ns=0.1\n"
          "cpu_sharing=1\n",
          pipeline, in_rate, in_rate);
  return fclose(f) == 0;
}

int main(int argc, char **argv) {
  char plugin[4096], file[400];
  if (argc > 2 && !strcmp(argv[1], "--child")) return run_child(argv[2]);
  self = argv[0];
  snprintf(plugin, sizeof plugin, "%s/pretend_plugin.so", argc > 1 ? argv[1] : "build");
  char *path = realpath(plugin, NULL), *folder = getcwd(NULL, 0);
  char root[] = "machines.XXXXXX";
  if (!path || !folder || !mkdtemp(root) || chdir(root) || mkdir("plugins", 0700) ||
      mkdir("none", 0700) || symlink(path, "plugins/libwarplite_cuda.so")) {
    tap_bad("machines", "no plugin %s", plugin);
    return tap_done();
  }
  snprintf(plugin, sizeof plugin, "%s/%s/cache", folder, root);
  setenv("XDG_CACHE_HOME", plugin, 1);
  setenv("WARPLITE_PLUGINS", "none", 1);
  child("without a device nothing is measured", "none");
  CHECK("and nothing is written", access("cache", F_OK) != 0);
  setenv("WARPLITE_PLUGINS", "plugins", 1);
  child("engines that are asked for need no prices", "none");
  child("calibrate=off", "off");
  CHECK("neither writes", access("cache", F_OK) != 0);
  child("a new device is measured", "measured");
  CHECK("and the file written", the_file(file, sizeof file));
  child("the next process reads it", "file");
  child("calibrate=now", "again");
  CHECK("a damaged file", truncate(file, 40) == 0);
  child("is measured again", "measured");
  child("and is whole then", "file");
  setenv("XDG_CACHE_HOME", "/nowhere/at/all", 1);
  child("without a folder it is measured", "measured");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  child("without HOME it is measured", "measured");
  setenv("XDG_CACHE_HOME", plugin, 1);
  if (CHECK("a file of a fast device", pretend(file, 5000, 100))) child("it proves slow", "slow");
  child("it refuses a function", "refused");
  if (CHECK("a file of a slow bus", pretend(file, 5000, 0.1))) child("copies", "copies");
  snprintf(plugin, sizeof plugin, "rm -rf '%s/%s'", folder, root);
  free(path);
  free(folder);
  if (system(plugin)) return 1;
  return tap_done();
}
