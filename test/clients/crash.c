/*
** Crashes: a writer of tablet tables loses its power at every write and sync, and the file must
** then hold exactly the transactions that were committed. kills.c has processes that are killed.
**
**     crash [--crashes N] [--seed S] [--ordinary] [BUILD]
**
** Half of the crashes walk through one fixed series of transactions call by call, the others crash
** random ones at random calls, on the disk of disk.h. Then calls fail without a crash: the
** statement or the transaction must be undone, and the connection go on. --ordinary takes ordinary
** tables, to try the test itself.
**
** Invariants:
** 1. After a crash in COMMIT either outcome is right; everywhere else one is.
** 2. A run of one seed makes the same crashes everywhere.
*/
#include "model.h"

/* What became of a series of transactions. */
typedef struct outcome {
  bool crashed, in_commit; /* the model has the last one open if in_commit */
  int n_done;
} outcome;

/* ---- transactions, on the file and on the model */

static bool both_refuse(int ours, int theirs) {
  return (ours & 0xff) == SQLITE_CONSTRAINT && (theirs & 0xff) == SQLITE_CONSTRAINT;
}

/* One transaction; false when there was a crash. */
static bool run_changes(world *w, sqlite3 *db, const changes *x, outcome *o) {
  char why[900];
  o->in_commit = false;
  int rc = run_sql(db, "BEGIN", false);
  must_do(run_sql(w->model, "BEGIN", false), w->model, "model");
  for (int i = 0; i < x->n && !rc; i++) {
    const change *c = &x->at[i];
    rc = run_change(db, c, w->tablets);
    if (disk.crashed) break;
    int theirs = run_change(w->model, c, false);
    if (rc != theirs && !both_refuse(rc, theirs)) {
      snprintf(why, sizeof why, "%s%s: %d %s, SQLite %d %s", c->sql, c->taken ? " (taken)" : "", rc,
               sqlite3_errmsg(db), theirs, sqlite3_errmsg(w->model));
      bad(w, "a statement does what SQLite does", why);
    }
    rc = SQLITE_OK;
  }
  if (!rc && !disk.crashed) {
    o->in_commit = x->commit;
    rc = run_sql(db, x->commit ? "COMMIT" : "ROLLBACK", false);
  }
  if (disk.crashed) {
    o->crashed = true;
    if (!rc && o->in_commit) { /* it came after the commit was reported: it counts */
      o->in_commit = false;
      must_do(run_sql(w->model, "COMMIT", false), w->model, "model");
    } else if (!o->in_commit) {
      must_do(run_sql(w->model, "ROLLBACK", false), w->model, "model");
    }
    return false;
  }
  if (rc) {
    snprintf(why, sizeof why, "%s (%d)", sqlite3_errmsg(db), rc);
    bad(w, "a transaction ends", why);
    run_sql(db, "ROLLBACK", false);
  }
  must_do(run_sql(w->model, x->commit && !rc ? "COMMIT" : "ROLLBACK", false), w->model, "model");
  o->n_done++;
  w->n_txns++;
  return true;
}

/* ---- crashes by the disk */

/* From the file, with transactions of a seed until the crash; false if they ended before it. */
static bool crash_once(world *w, uint64_t seed, const char *mode, long call, int keep, int max) {
  outcome o = {0};
  char what[200];
  rng r = {seed};
  changes *x = disk_must(malloc(sizeof *x));
  disk_wipe();
  if (!disk_load(w->file, disk_name)) must_do(SQLITE_CANTOPEN, NULL, "load");
  sqlite3 *db = open_db(disk_name, "disk");
  configure(db, mode, w->tablets);
  disk_crash_at(call, seed * 31 + (uint64_t)call, keep);
  for (int i = 0; i < max; i++) {
    changes_make(&r, x, kind_of(mode, w->tablets));
    if (!run_changes(w, db, x, &o)) break;
  }
  free(x);
  must_do(sqlite3_close(db), db, "close after a crash"); /* a crash in it is one as well */
  if (!o.crashed && !disk.crashed) return false;
  snprintf(what, sizeof what, "crash: seed %llu, %s, call %ld, %d %% kept, transaction %d%s",
           (unsigned long long)seed, mode, call, keep, o.n_done, o.in_commit ? ", in COMMIT" : "");
  if (!disk_save(disk_name, w->file)) must_do(SQLITE_IOERR, NULL, "save");
  disk_wipe();
  w->n_crashes++;
  long n_bad = w->n_bad;
  compare(w, o.in_commit, what);
  if (w->n_bad != n_bad) start_over(w); /* they no longer belong together */
  return true;
}

/* How many calls a series makes. */
static long count_calls(world *w, uint64_t seed, const char *mode, int n) {
  outcome o = {0};
  rng r = {seed};
  changes *x = disk_must(malloc(sizeof *x));
  new_model(w);
  disk_wipe();
  if (!disk_load(w->base, disk_name)) must_do(SQLITE_CANTOPEN, NULL, "load");
  sqlite3 *db = open_db(disk_name, "disk");
  configure(db, mode, w->tablets);
  disk_crash_at(1L << 60, 1, 0);
  for (int i = 0; i < n; i++) {
    changes_make(&r, x, kind_of(mode, w->tablets));
    run_changes(w, db, x, &o);
  }
  free(x);
  long calls = disk.n_calls;
  must_do(sqlite3_close(db), db, "close");
  return calls;
}

static void sweep(world *w, int crashes) {
  static const int keeps[] = {50, 0, 100, 85};
  enum { N_TXNS = 6 };
  for (int m = 0; m < 4; m++) {
    int n = (crashes - m + 3) / 4;
    uint64_t seed = w->seed * 1000 + (uint64_t)m;
    long calls = count_calls(w, seed, modes[m], N_TXNS);
    for (int k = 0; k < n; k++) {
      long call = n >= calls ? 1 + k % calls : 1 + (long)((double)k * (double)calls / n);
      start_over(w);
      crash_once(w, seed, modes[m], call, keeps[(k + k / 4) % 4], N_TXNS + 1);
    }
  }
}

static void wander(world *w, int crashes) {
  rng r = {w->seed ^ 77};
  for (int k = 0; k < crashes;) {
    if (k % 12 == 0) start_over(w);
    long call = 1 + rng_below(&r, 1 << (4 + rng_below(&r, 8)));
    k += crash_once(w, rng_next(&r) >> 16, modes[rng_below(&r, 4)], call, rng_below(&r, 101), 1000);
  }
}

/* ---- failures without a crash */

typedef struct failing {
  const char *mode;
  long call;
  int code, calls;
} failing;

/* The statement failed: the model loses it, or the whole transaction, as the connection did. */
static bool still_open(world *w, sqlite3 *db, bool *open) {
  if (*open && sqlite3_get_autocommit(db)) {
    must_do(run_sql(w->model, "ROLLBACK", false), w->model, "model");
    *open = false;
  }
  return *open;
}

static void same_here(world *w, sqlite3 *db, const char *what) {
  char why[600];
  for (int taken = 0; taken < 2; taken++) {
    int rc, rc_model;
    uint64_t got = changes_digest(db, taken, &rc),
             want = changes_digest(w->model, false, &rc_model);
    if (rc == SQLITE_OK && got == want) continue;
    snprintf(why, sizeof why, "%s: %s", taken ? "taken" : "plain",
             rc ? sqlite3_errmsg(db) : "other rows");
    bad(w, what, why);
    return;
  }
  if (!is_sound(db, w->tablets, why, sizeof why)) bad(w, what, why);
}

/* Whether the failing call was reached. */
static bool fail_once(world *w, uint64_t seed, failing f) {
  rng r = {seed};
  char what[300];
  bool reached = false;
  changes *x = disk_must(malloc(sizeof *x));
  disk_wipe();
  if (!disk_load(w->base, disk_name)) must_do(SQLITE_CANTOPEN, NULL, "load");
  sqlite3 *db = open_db(disk_name, "disk");
  configure(db, f.mode, w->tablets);
  disk_fail_at(f.call, f.code, f.calls);
  for (int k = 0; k < 8 && !reached; k++) {
    bool open = true, unsure = false;
    changes_make(&r, x, kind_of(f.mode, w->tablets));
    must_do(run_sql(w->model, "BEGIN", false), w->model, "model");
    int rc = run_sql(db, "BEGIN", false);
    for (int i = 0; i < x->n && open && !rc; i++) {
      const change *c = &x->at[i];
      rc = run_change(db, c, w->tablets);
      int theirs = SQLITE_OK;
      if (!disk.failed || rc == SQLITE_OK || (rc & 0xff) == SQLITE_CONSTRAINT)
        theirs = run_change(w->model, c, false);
      snprintf(what, sizeof what, "failure: seed %llu, %s, call %ld, code %d, %d calls: %.90s%s",
               (unsigned long long)seed, f.mode, f.call, f.code, f.calls, c->sql,
               c->taken ? " (taken)" : "");
      if (disk.failed && !reached) {
        reached = true;
        disk_disarm();
        if (rc && (rc & 0xff) != SQLITE_CONSTRAINT) {
          if ((rc & 0xff) != f.code && !strstr(sqlite3_errmsg(db), "rolled back"))
            bad(w, what, sqlite3_errmsg(db));
          still_open(w, db, &open);
        }
        same_here(w, db, what);
      } else if (rc && !both_refuse(rc, theirs)) {
        bad(w, what, sqlite3_errmsg(db));
      }
      rc = SQLITE_OK;
      if (sqlite3_get_autocommit(db)) still_open(w, db, &open);
    }
    if (!open) continue;
    rc = run_sql(db, x->commit ? "COMMIT" : "ROLLBACK", false);
    snprintf(what, sizeof what, "failure: seed %llu, %s, call %ld, code %d, %d calls: at the end",
             (unsigned long long)seed, f.mode, f.call, f.code, f.calls);
    if (disk.failed && !reached) {
      reached = true;
      disk_disarm();
      unsure = rc != SQLITE_OK;
      if (rc && (rc & 0xff) != f.code) bad(w, what, sqlite3_errmsg(db));
      if (rc && !sqlite3_get_autocommit(db)) run_sql(db, "ROLLBACK", false);
    } else if (rc) {
      bad(w, what, sqlite3_errmsg(db));
    }
    if (unsure) {
      int e1, e2;
      bool kept = changes_digest(db, false, &e1) == changes_digest(w->model, false, &e2);
      must_do(run_sql(w->model, kept && x->commit ? "COMMIT" : "ROLLBACK", false), w->model,
              "model");
    } else {
      must_do(run_sql(w->model, x->commit && !rc ? "COMMIT" : "ROLLBACK", false), w->model,
              "model");
    }
    if (reached) same_here(w, db, what);
  }
  if (reached) { /* and the connection is as good as before */
    long n_bad = w->n_bad;
    outcome o = {0};
    for (int k = 0; k < 2; k++) {
      changes_make(&r, x, kind_of(f.mode, w->tablets));
      run_changes(w, db, x, &o);
    }
    snprintf(what, sizeof what, "after a failure: seed %llu, %s, call %ld, code %d",
             (unsigned long long)seed, f.mode, f.call, f.code);
    if (w->n_bad == n_bad) same_here(w, db, what);
  }
  free(x);
  must_do(sqlite3_close(db), db, "close after a failure");
  return reached;
}

static long failures(world *w, int n) {
  rng r = {w->seed ^ 55};
  long n_reached = 0;
  for (int k = 0; k < n; k++) {
    failing f = {.mode = modes[rng_below(&r, 4)],
                 .call = 1 + rng_below(&r, 1 << (4 + rng_below(&r, 7))),
                 .code = rng_chance(&r, 50) ? SQLITE_FULL : SQLITE_IOERR,
                 .calls = rng_chance(&r, 50) ? 1 : 1000000};
    new_model(w);
    n_reached += fail_once(w, rng_next(&r) >> 16, f);
  }
  return n_reached;
}

/* ---- all of it */

static void report(world *w, const char *what, long n_bad, long n) {
  char name[200];
  snprintf(name, sizeof name, "crash: %s: %ld", what, n);
  if (w->n_bad == n_bad)
    tap_ok(name);
  else
    tap_bad(name, "%ld of them wrong", w->n_bad - n_bad);
}

int main(int argc, char **argv) {
  world w = {.tablets = true, .seed = 1};
  int crashes = TEST_SANITIZED ? 45 : 150;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--ordinary") == 0) w.tablets = false;
    if (i + 1 < argc && strcmp(argv[i], "--crashes") == 0) crashes = atoi(argv[++i]);
    if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) w.seed = strtoull(argv[++i], NULL, 10);
  }
  if (!world_open(&w, "crash")) return 2;

  int part = (crashes + 1) / 2;
  long n_bad = w.n_bad, n_before = w.n_crashes;
  sweep(&w, part);
  report(&w, "at every call of a series", n_bad, w.n_crashes - n_before);
  n_bad = w.n_bad, n_before = w.n_crashes;
  wander(&w, part);
  report(&w, "at random calls", n_bad, w.n_crashes - n_before);
  n_bad = w.n_bad;
  long n_reached = failures(&w, part);
  report(&w, "calls that fail", n_bad, n_reached);
  CHECK("crash: the failing calls were reached", n_reached * 3 > part);
  if (w.tablets) CHECK("crash: there were changes in bulk", changes_in_bulk > part / 2);
  printf("-- %ld crashes (%ld in COMMIT, of which %ld came through), %ld transactions, %ld changes "
         "in bulk\n",
         w.n_crashes, w.n_in_commit, w.n_kept, w.n_txns, changes_in_bulk);
  world_close(&w);
  return tap_done();
}
