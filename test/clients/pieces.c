/*
** An INSERT whose rows do not fit in memory is written in pieces. dml.c and dmlfuzz.c show, with a
** small host_budget, that the rows are right; this program shows that the memory is bounded, with
** and without a key, for a query that SQLite runs, also one that reads the table it writes.
*/
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "changes.h"

extern char **environ;

/* Megabytes that the process may have had at most: without pieces it has 210 after the first INSERT
** and 300 after the one that reads the table itself, for which 128 MB of segments are kept. */
enum { ROWS = 300000, FIRST_MB = 120, SECOND_MB = 240 };

/* Some 120 MB of text. */
static const char *const rows_sql =
    "WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<300000) "
    "SELECT n, printf('%0400d', n*7919%300007), n*0.5 FROM k";

/* getrusage() would tell of the parent as it was at the spawn, too. */
static bool is_within(long most_mb) {
  char line[200];
  long kb = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f)) sscanf(line, "VmHWM: %ld", &kb);
  if (f) fclose(f);
  if (TEST_SANITIZED || (kb && kb / 1024 <= most_mb)) return true;
  fprintf(stderr, "%ld MB, not %ld\n", kb / 1024, most_mb);
  return false;
}

static int insert(sqlite3 *db, char *sql) {
  int rc = run_sql(db, sql, true);
  if (rc) fprintf(stderr, "%s: %d %s\n", sql, rc, sqlite3_errmsg(db));
  if (!rc && !strstr(warplite_reason(db), "in bulk, in pieces")) rc = SQLITE_ERROR;
  sqlite3_free(sql);
  return rc;
}

static int be_writer(const char *file, const char *declaration, const char *mode) {
  sqlite3 *db = NULL;
  char *sql = sqlite3_mprintf("PRAGMA journal_mode=%s; PRAGMA synchronous=OFF;"
                              "CREATE VIRTUAL TABLE t USING tablet(%s)",
                              mode, declaration);
  if (sqlite3_open(file, &db) || !use_engine(db, "cpu") || run_sql(db, sql, false) ||
      !use_setting(db, "host_budget", "67108864") || !use_setting(db, "threads", "2"))
    return 3;
  sqlite3_free(sql);
  if (insert(db, sqlite3_mprintf("INSERT INTO t %s", rows_sql))) return 4;
  if (!is_within(FIRST_MB)) return 5;
  if (insert(db, sqlite3_mprintf("INSERT INTO t SELECT a+1000000, b||'+', c FROM t WHERE a>75000")))
    return 6;
  if (!is_within(SECOND_MB)) return 7;
  return sqlite3_close(db) ? 8 : 0;
}

static void one(const char *self, const char *file, const char *declaration, const char *mode) {
  char name[200], text[200];
  int status = 0;
  pid_t pid;
  snprintf(name, sizeof name, "pieces: %d rows, %s, %s", ROWS, mode, declaration);
  char *argv[] = {(char *)self, "--writer", (char *)file, (char *)declaration, (char *)mode, NULL};
  unlink(file);
  if (posix_spawn(&pid, self, NULL, NULL, argv, environ)) exit(2);
  waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status)) {
    tap_bad(name, "the writer's status is %d", WEXITSTATUS(status));
    return;
  }
  sqlite3 *db = NULL;
  if (sqlite3_open(file, &db) || !use_engine(db, "cpu")) exit(2);
  one_text(db, "SELECT warplite_check('t')", text, sizeof text);
  if (strcmp(text, "ok") == 0)
    one_text(db, "SELECT count(*) || ' ' || sum(a) || ' ' || sum(c) FROM t", text, sizeof text);
  if (strcmp(text, "525000 312187762500 43593881250.0") == 0)
    tap_ok(name);
  else
    tap_bad(name, "%s", text);
  sqlite3_close(db);
  unlink(file);
}

int main(int argc, char **argv) {
  char self[300], file[300];
  const char *tmp = getenv("TMPDIR");
  if (argc == 5 && strcmp(argv[1], "--writer") == 0) return be_writer(argv[2], argv[3], argv[4]);
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  self[n > 0 ? n : 0] = 0;
  snprintf(file, sizeof file, "%s/pieces-%d.db", tmp ? tmp : "/tmp", (int)getpid());
  one(self, file, "a, b TEXT, c REAL", "DELETE");
  one(self, file, "a UNIQUE, b TEXT, c REAL", "WAL");
  return tap_done();
}
