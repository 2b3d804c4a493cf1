/*
** Kills: a process that writes tablet tables is killed at a random time. The file must then hold
** exactly the transactions that it said were committed; the one under way may be there or not.
**
**     kills [--kills N] [--seed S] [--kind K] [--ordinary] [BUILD]
**
** Each kind of work gets N kills:
**   failing   random transactions in WAL mode, of which every other statement fails after many rows
**   bulk      INSERT … SELECT, UPDATE and DELETE of thousands of rows, every journal mode
**   mixed     all that changes.h makes, every journal mode
**   append    warplite_append(), also of streams that are refused after their first array
**   import    .import of the shell, into a table with constraints and into one without
** Pages are small and the cache holds ten of them: transactions spill. --ordinary takes ordinary
** tables, to try the test itself.
**
** Invariants:
** 1. What a step does depends on the seed and its number alone: the parent does the same to its
**    model.
** 2. The writer says C before it commits (or R, before it rolls back) and D after it.
*/
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include "model.h"

extern char **environ;

enum { N_FILES = 6, LOST_ROWS = TEST_SANITIZED ? 20000 : 200000 };

static const char *const kinds[] = {"failing", "bulk", "mixed", "append", "import"};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static bool is_kind(const char *kind, const char *name) {
  return strcmp(kind, name) == 0;
}

/* ---- random transactions */

static changes_kind kind_of_changes(const char *kind, const char *mode, bool tablets) {
  if (is_kind(kind, "failing")) return CHANGES_FAILING;
  if (is_kind(kind, "bulk")) return CHANGES_BULK;
  return kind_of(mode, tablets);
}

/* ---- warplite_append: streams of warplite_query, one after the other */

typedef struct chain {
  struct ArrowArrayStream in[3];
  int n, at;
} chain;

static int chain_schema(struct ArrowArrayStream *s, struct ArrowSchema *out) {
  chain *c = s->private_data;
  return c->in[0].get_schema(&c->in[0], out);
}

static int chain_next(struct ArrowArrayStream *s, struct ArrowArray *out) {
  chain *c = s->private_data;
  for (;; c->at++) {
    int rc = c->in[c->at].get_next(&c->in[c->at], out);
    if (rc || out->release || c->at + 1 == c->n) return rc;
  }
}

static const char *chain_error(struct ArrowArrayStream *s) {
  (void)s;
  return "the chain broke";
}

static void chain_release(struct ArrowArrayStream *s) {
  chain *c = s->private_data;
  for (int i = 0; i < c->n; i++)
    if (c->in[i].release) c->in[i].release(&c->in[i]);
  s->release = NULL;
}

/* The rows of a step: n_parts SELECTs, the last of which breaks NOT NULL if refused. */
typedef struct portion {
  char sql[3][200];
  int n_parts;
  bool refused, alone;
} portion;

static void make_portion(uint64_t seed, portion *p) {
  rng r = {seed};
  p->n_parts = 1 + rng_below(&r, 3);
  p->refused = rng_chance(&r, 40);
  p->alone = rng_chance(&r, 40);
  for (int i = 0; i < p->n_parts; i++) {
    int k = rng_below(&r, 100000), most = 100 + rng_below(&r, 5100);
    bool last = p->refused && i + 1 == p->n_parts;
    snprintf(p->sql[i], sizeof p->sql[i], "SELECT n+%d, w||%d, %s FROM seq WHERE n<=%d", k, k % 9,
             last ? "CASE WHEN n>5 THEN n*0.25 END" : "n*0.5", most);
  }
}

static int append_portion(sqlite3 *db, const portion *p) {
  chain c = {.n = p->n_parts};
  for (int i = 0; i < p->n_parts; i++) {
    int rc = warplite_query(db, p->sql[i], &c.in[i]);
    if (rc) return rc;
  }
  struct ArrowArrayStream s = {chain_schema, chain_next, chain_error, chain_release, &c};
  return warplite_append(db, NULL, "b", &s);
}

static int insert_portion(sqlite3 *db, const portion *p) {
  char sql[300];
  for (int i = 0; i < p->n_parts && !p->refused; i++) {
    snprintf(sql, sizeof sql, "INSERT INTO b(k,w,f) %s", p->sql[i]);
    int rc = run_sql(db, sql, false);
    if (rc) return rc;
  }
  return SQLITE_OK;
}

static int note_step(sqlite3 *db, int step) {
  char sql[100];
  snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO o VALUES(%d, 'step')", 1000000 + step);
  return run_sql(db, sql, false);
}

/* ---- .import */

/* Step k imports file k % N_FILES: even ones into b, odd ones into t, where some rows are refused.
 */
static void import_sql(int step, char *out, size_t n) {
  int file = step % N_FILES;
  if (file % 2 == 0)
    snprintf(out, n, "SELECT n+%d, w||%d, n*0.25 FROM seq WHERE n<=%d", file * 7, file,
             5200 >> file);
  else
    snprintf(out, n,
             "SELECT %d+n, n%%50, w, n*0.5, 'import', ''||((n*%d)%%900) FROM seq WHERE n<=%d",
             1000000 * (file + 1), file, 400 * file);
}

static void write_files(world *w) {
  for (int i = 0; i < N_FILES; i++) {
    char name[400], sql[300];
    sqlite3_stmt *q = NULL;
    snprintf(name, sizeof name, "%s/%d.csv", w->dir, i);
    FILE *f = fopen(name, "w");
    import_sql(i, sql, sizeof sql);
    must_do(sqlite3_prepare_v2(w->model, sql, -1, &q, NULL), w->model, "rows to import");
    if (!f) must_do(SQLITE_CANTOPEN, NULL, name);
    while (sqlite3_step(q) == SQLITE_ROW) {
      for (int k = 0; k < sqlite3_column_count(q); k++)
        fprintf(f, k ? ",%s" : "%s", (const char *)sqlite3_column_text(q, k));
      fputc('\n', f);
    }
    sqlite3_finalize(q);
    fclose(f);
  }
}

static void unlink_files(const world *w) {
  char name[400];
  for (int i = 0; i < N_FILES; i++) {
    snprintf(name, sizeof name, "%s/%d.csv", w->dir, i);
    unlink(name);
  }
  snprintf(name, sizeof name, "%s/script", w->dir);
  unlink(name);
}

/* What the shell reads: far more steps than it will come to. */
static void write_script(const world *w, int from, const char *mode) {
  char name[400];
  snprintf(name, sizeof name, "%s/script", w->dir);
  FILE *f = fopen(name, "w");
  if (!f) must_do(SQLITE_CANTOPEN, NULL, name);
  fprintf(f,
          ".bail off\nPRAGMA cache_size=10;\nPRAGMA journal_mode=%s;\n"
          "PRAGMA wal_autocheckpoint=30;\n",
          mode);
  for (int k = from; k < from + 500; k++)
    fprintf(f, ".print C\n.import --csv %s/%d.csv %s\n.print D\n", w->dir, k % N_FILES,
            k % N_FILES % 2 ? "t" : "b");
  fclose(f);
}

/* ---- steps, as the parent's model does them; committed, or left open */

static void model_step(world *w, const char *kind, const char *mode, uint64_t seed, int step,
                       bool open) {
  char sql[400], rows[300];
  sqlite3 *db = w->model;
  bool commit = true;
  must_do(run_sql(db, "BEGIN", false), db, "model");
  if (is_kind(kind, "append")) {
    portion p;
    make_portion(seed + (uint64_t)step, &p);
    must_do(insert_portion(db, &p), db, "model");
    if (!p.alone) must_do(note_step(db, step), db, "model");
  } else if (is_kind(kind, "import")) {
    import_sql(step, rows, sizeof rows);
    snprintf(sql, sizeof sql, "INSERT OR IGNORE INTO %s %s", step % N_FILES % 2 ? "t" : "b", rows);
    must_do(run_sql(db, sql, false), db, "model");
  } else {
    changes *x = disk_must(malloc(sizeof *x));
    rng r = {seed + (uint64_t)step};
    changes_make(&r, x, kind_of_changes(kind, mode, w->tablets));
    for (int i = 0; i < x->n; i++) run_change(db, &x->at[i], false);
    commit = x->commit;
    free(x);
  }
  if (!open) must_do(run_sql(db, commit ? "COMMIT" : "ROLLBACK", false), db, "model");
}

/* ---- the process that is killed */

static bool say(const char *text) {
  return write(1, text, 1) == 1;
}

static int append_step(sqlite3 *db, uint64_t seed, int step) {
  portion p;
  make_portion(seed + (uint64_t)step, &p);
  if (!p.alone && run_sql(db, "BEGIN", false)) return 3;
  if (p.alone && !say("C")) return 3;
  int rc = append_portion(db, &p);
  if (rc != (p.refused ? SQLITE_CONSTRAINT : SQLITE_OK)) return 4;
  if (p.alone) return 0;
  return note_step(db, step) || !say("C") || run_sql(db, "COMMIT", false) ? 3 : 0;
}

static int change_step(sqlite3 *db, const char *kind, const char *mode, uint64_t seed, int step,
                       bool tablets, changes *x) {
  rng r = {seed + (uint64_t)step};
  changes_make(&r, x, kind_of_changes(kind, mode, tablets));
  if (run_sql(db, "BEGIN", false)) return 3;
  for (int i = 0; i < x->n; i++) run_change(db, &x->at[i], tablets);
  if (!say(x->commit ? "C" : "R")) return 3;
  return run_sql(db, x->commit ? "COMMIT" : "ROLLBACK", false) ? 3 : 0;
}

static int be_writer(const char *kind, const char *file, uint64_t seed, int from, const char *mode,
                     bool tablets) {
  changes *x = disk_must(malloc(sizeof *x));
  sqlite3 *db = open_db(file, NULL);
  configure(db, mode, true); /* ordinary tables spill, too: --ordinary shows what SQLite does */
  run_sql(db, "PRAGMA synchronous=NORMAL", false); /* a kill loses nothing that was written */
  for (int step = from;; step++) {
    int rc = is_kind(kind, "append") ? append_step(db, seed, step)
                                     : change_step(db, kind, mode, seed, step, tablets, x);
    if (rc || !say("D")) return rc ? rc : 3;
  }
}

/* ---- killing */

static void pause_us(long us) {
  struct timespec t = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&t, NULL);
}

static pid_t start(char **argv, const char *in, int *out) {
  int ends[2];
  pid_t pid;
  posix_spawn_file_actions_t actions;
  if (pipe2(ends, O_CLOEXEC)) must_do(SQLITE_ERROR, NULL, "pipe");
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, in, O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  if (strcmp(in, "/dev/null") != 0) /* the shell tells of rows that are refused */
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ))
    must_do(SQLITE_ERROR, NULL, argv[0]);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  *out = ends[0];
  return pid;
}

typedef struct killed {
  int n_done, status;
  bool unsure;
} killed;

/* Kills the process some time after its first word, and reads what it said. */
static killed kill_later(pid_t pid, int out, long us) {
  killed k = {0};
  char got[4096];
  ssize_t n = read(out, got, 1);
  pause_us(us);
  kill(pid, SIGKILL);
  waitpid(pid, &k.status, 0);
  for (; n > 0; n = read(out, got, sizeof got))
    for (ssize_t i = 0; i < n; i++) {
      if (strchr("CRD", got[i])) k.unsure = got[i] == 'C';
      k.n_done += got[i] == 'D';
    }
  close(out);
  return k;
}

static pid_t start_writer(world *w, const char *kind, const char *mode, uint64_t seed, int step,
                          int *out) {
  char number[40], from[20], name[400], shell[400];
  if (is_kind(kind, "import")) {
    write_script(w, step, mode);
    snprintf(name, sizeof name, "%s/script", w->dir);
    snprintf(shell, sizeof shell, "%.*s/warplite", (int)(strrchr(w->self, '/') - w->self), w->self);
    char *argv[] = {shell, "-batch", w->file, NULL};
    return start(argv, name, out);
  }
  snprintf(number, sizeof number, "%llu", (unsigned long long)seed);
  snprintf(from, sizeof from, "%d", step);
  char *argv[] = {(char *)w->self,
                  "--writer",
                  (char *)kind,
                  w->file,
                  number,
                  from,
                  (char *)mode,
                  w->tablets ? "tablets" : "ordinary",
                  NULL};
  return start(argv, "/dev/null", out);
}

static void kill_once(world *w, const char *kind, const char *mode, uint64_t seed, int *step,
                      long us) {
  char what[200];
  int out;
  pid_t pid = start_writer(w, kind, mode, seed, *step, &out);
  killed k = kill_later(pid, out, us);
  snprintf(what, sizeof what, "kill: %s, seed %llu, %s, steps %d to %d%s", kind,
           (unsigned long long)seed, mode, *step, *step + k.n_done, k.unsure ? ", in COMMIT" : "");
  if (!WIFSIGNALED(k.status)) {
    char why[80];
    snprintf(why, sizeof why, "the writer ended by itself, status %d", WEXITSTATUS(k.status));
    bad(w, what, why);
  }
  for (int i = 0; i < k.n_done; i++) model_step(w, kind, mode, seed, (*step)++, false);
  if (k.unsure) model_step(w, kind, mode, seed, (*step), true);
  w->n_crashes++;
  w->n_txns += k.n_done;
  compare(w, k.unsure, what);
  *step += k.unsure; /* there or not, the next writer goes on behind it */
}

static void kills(world *w, const char *kind, int n) {
  rng r = {w->seed ^ 99};
  char name[200];
  long n_bad = w->n_bad, bad_before = n_bad, n_txns = w->n_txns;
  int step = 0;
  for (int k = 0; k < n; k++) {
    const char *mode = modes[is_kind(kind, "failing") ? N_MODES - 1 : rng_below(&r, N_MODES)];
    if (k % 8 == 0 || w->n_bad != n_bad) {
      n_bad = w->n_bad;
      start_over(w);
      step = 0;
    }
    kill_once(w, kind, mode, rng_next(&r) >> 16, &step,
              rng_below(&r, 1 << (8 + rng_below(&r, 11))));
  }
  snprintf(name, sizeof name, "kills: %s: %d, of %ld transactions", kind, n, w->n_txns - n_txns);
  if (w->n_bad == bad_before)
    tap_ok(name);
  else
    tap_bad(name, "%ld of them wrong", w->n_bad - bad_before);
}

/* ---- the smallest case: all settings are SQLite's own */

static int be_loser(const char *file) {
  char sql[300];
  sqlite3 *db = open_db(file, NULL);
  snprintf(sql, sizeof sql,
           "INSERT INTO lost WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE "
           "n<%d) SELECT n, CASE n WHEN %d THEN 48271 ELSE n*48271%%2147483647 END FROM k",
           LOST_ROWS, LOST_ROWS);
  for (int taken = 0; taken < 2; taken++) {
    run_sql(db, "BEGIN", false);
    if (run_sql(db, sql, taken) == SQLITE_OK) return 4;
    for (int i = 1; i <= 3; i++) {
      char done[60];
      snprintf(done, sizeof done, "INSERT INTO done VALUES(%d); COMMIT; %s", 3 * taken + i,
               i < 3 ? "BEGIN" : "");
      if (run_sql(db, done, false)) return 3;
    }
    if (taken) raise(SIGKILL);
  }
  return 5;
}

static void lose(world *w) {
  char why[300];
  int out;
  start_over(w);
  sqlite3 *db = open_db(w->file, NULL);
  must_do(run_sql(db,
                  "PRAGMA journal_mode=WAL; CREATE TABLE done(i);"
                  "CREATE VIRTUAL TABLE lost USING tablet(i, u UNIQUE)",
                  false),
          db, "lose");
  sqlite3_close(db);
  char *argv[] = {(char *)w->self, "--loser", w->file, NULL};
  pid_t pid = start(argv, "/dev/null", &out);
  killed k = {0};
  waitpid(pid, &k.status, 0);
  close(out);
  CHECK("kills: the writer of the smallest case comes to its end", WIFSIGNALED(k.status));
  db = open_db(w->file, NULL);
  one_text(db, "SELECT group_concat(i) || (SELECT ' ' || count(*) FROM lost) FROM done", why,
           sizeof why);
  if (strcmp(why, "1,2,3,4,5,6 0") == 0)
    tap_ok("kills: commits after a statement of many rows that failed");
  else
    tap_bad("kills: commits after a statement of many rows that failed", "%s", why);
  sqlite3_close(db);
}

int main(int argc, char **argv) {
  world w = {.tablets = true, .seed = 1};
  int n = TEST_SANITIZED ? 3 : 12;
  const char *only = NULL;
  if (argc == 8 && strcmp(argv[1], "--writer") == 0)
    return be_writer(argv[2], argv[3], strtoull(argv[4], NULL, 10), atoi(argv[5]), argv[6],
                     !strcmp(argv[7], "tablets"));
  if (argc == 3 && strcmp(argv[1], "--loser") == 0) return be_loser(argv[2]);
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--ordinary") == 0) w.tablets = false;
    if (i + 1 < argc && strcmp(argv[i], "--kills") == 0) n = atoi(argv[++i]);
    if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) w.seed = strtoull(argv[++i], NULL, 10);
    if (i + 1 < argc && strcmp(argv[i], "--kind") == 0) only = argv[++i];
  }
  if (!world_open(&w, "kills")) return 2;
  new_model(&w);
  write_files(&w);
  if (!only && w.tablets) lose(&w);
  for (int k = 0; k < N_KINDS; k++) {
    bool wanted = only ? is_kind(only, kinds[k]) : w.tablets || k < 3; /* the others need tablets */
    if (wanted) kills(&w, kinds[k], n);
  }
  printf("-- %ld kills (%ld in COMMIT, of which %ld came through), %ld transactions\n", w.n_crashes,
         w.n_in_commit, w.n_kept, w.n_txns);
  unlink_files(&w);
  world_close(&w);
  return tap_done();
}
