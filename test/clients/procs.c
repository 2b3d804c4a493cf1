/*
** Processes on one file: two write tablet tables in a loop, four read them, in WAL mode and with a
** rollback journal. Every transaction keeps a sum and a count right, and every read must find them
** so, through SQLite and through warplite_prepare; warplite_check must find nothing wrong.
**
**     procs [--secs N] [--ordinary] [BUILD]
**
** accounts.h has what they do.
*/
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "accounts.h"

extern char **environ;

enum { N_WRITERS = 2, N_READERS = 4, N_PROCS = N_WRITERS + N_READERS };

static int be_worker(const char *file, const char *role, uint64_t seed, double until,
                     bool tablets) {
  worker k = {.until = until, .r = {seed}};
  bool writes = strcmp(role, "writer") == 0;
  if (sqlite3_open(file, &k.db) || !use_engine(k.db, "cpu")) return 3;
  sqlite3_busy_timeout(k.db, writes ? 3000 : (int)(seed % 3) * 100);
  run_sql(k.db, "PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=100", false);
  while (now_s() < k.until && !k.why[0]) {
    if (writes)
      write_once(&k, tablets);
    else
      read_once(&k, tablets);
  }
  sqlite3_close(k.db);
  printf("%ld %ld %ld %s\n", k.n_done, k.n_busy, k.n_checks, k.why);
  return 0;
}

/* ---- the parent */

static void setup(const char *file, const char *mode, bool tablets) {
  sqlite3 *db;
  if (sqlite3_open(file, &db) || !use_engine(db, "cpu") || setup_accounts(db, mode, tablets)) {
    tap_bad("procs: set-up", "%s", sqlite3_errmsg(db));
    exit(tap_done());
  }
  sqlite3_close(db);
}

static void finish(const char *file, const char *mode, bool tablets) {
  char why[700], name[200];
  worker k = {0};
  snprintf(name, sizeof name, "procs: %s: the file at the end", mode);
  if (sqlite3_open(file, &k.db) || !use_engine(k.db, "cpu"))
    tap_bad(name, "cannot open it");
  else if (accounts_are_sound(&k, tablets, why, sizeof why))
    tap_ok(name);
  else
    tap_bad(name, "%s", why);
  sqlite3_close(k.db);
}

static void run_mode(const char *self, const char *file, const char *mode, double secs,
                     bool tablets) {
  pid_t pids[N_PROCS];
  int ends[N_PROCS];
  long n[2] = {0}, busy[2] = {0}, n_checks = 0;
  char until[40], name[200];
  setup(file, mode, tablets);
  snprintf(until, sizeof until, "%.3f", now_s() + secs);
  for (int i = 0; i < N_PROCS; i++) {
    int out[2];
    char seed[20];
    snprintf(seed, sizeof seed, "%d", i + 1);
    char *argv[] = {(char *)self,
                    "--worker",
                    (char *)file,
                    i < N_WRITERS ? "writer" : "reader",
                    seed,
                    until,
                    tablets ? "tablets" : "ordinary",
                    NULL};
    posix_spawn_file_actions_t actions;
    if (pipe2(out, O_CLOEXEC)) exit(2);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    if (posix_spawn(&pids[i], self, &actions, NULL, argv, environ)) exit(2);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    ends[i] = out[0];
  }
  for (int i = 0; i < N_PROCS; i++) {
    char text[1000];
    size_t at = 0;
    ssize_t got;
    int status, used = 0;
    long done = 0, wait = 0, checks = 0;
    while (at < sizeof text - 1 && (got = read(ends[i], text + at, sizeof text - 1 - at)) > 0)
      at += (size_t)got;
    text[at] = 0;
    close(ends[i]);
    waitpid(pids[i], &status, 0);
    snprintf(name, sizeof name, "procs: %s: %s %d", mode, i < N_WRITERS ? "writer" : "reader", i);
    bool told = sscanf(text, "%ld %ld %ld %n", &done, &wait, &checks, &used) == 3;
    n[i >= N_WRITERS] += done;
    busy[i >= N_WRITERS] += wait;
    n_checks += checks;
    if (!told || status)
      tap_bad(name, "ended with status %d", status);
    else if (text[used] && text[used] != '\n')
      tap_bad(name, "%.600s", text + used);
    else
      tap_ok(name);
  }
  snprintf(name, sizeof name, "procs: %s: both sides came along", mode);
  CHECK(name, n[0] > 0 && n[1] > 0 && (n_checks > 0 || !tablets));
  finish(file, mode, tablets);
  printf(
      "-- %s: %ld transactions written (busy %ld times), %ld reads (busy %ld times), %ld checks\n",
      mode, n[0], busy[0], n[1], busy[1], n_checks);
}

int main(int argc, char **argv) {
  double secs = TEST_SANITIZED ? 5 : 2.5;
  bool tablets = true;
  if (argc == 7 && strcmp(argv[1], "--worker") == 0)
    return be_worker(argv[2], argv[3], strtoull(argv[4], NULL, 10), atof(argv[5]),
                     strcmp(argv[6], "tablets") == 0);
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--ordinary") == 0) tablets = false;
    if (i + 1 < argc && strcmp(argv[i], "--secs") == 0) secs = atof(argv[++i]);
  }
  const char *tmp = getenv("TMPDIR");
  char dir[200], self[300], file[300];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  self[n > 0 ? n : 0] = 0;
  snprintf(dir, sizeof dir, "%s/procs-XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(dir)) return 2;
  static const char *const modes[] = {"WAL", "DELETE"};
  for (int m = 0; m < 2; m++) {
    snprintf(file, sizeof file, "%s/%s.db", dir, modes[m]);
    run_mode(self, file, modes[m], secs, tablets);
    static const char *const suffixes[] = {"", "-journal", "-wal", "-shm"};
    for (int i = 0; i < 4; i++) {
      char name[400];
      snprintf(name, sizeof name, "%s%s", file, suffixes[i]);
      unlink(name);
    }
  }
  rmdir(dir);
  return tap_done();
}
