/*
** A file with tablet tables and its model, ordinary tables in memory: what the tests of durability
** share (crash.c, kills.c). After a crash the file must hold what the model holds.
*/
#ifndef TEST_MODEL_H
#define TEST_MODEL_H

#include "changes.h"
#include "disk.h"

enum { MAX_SHOWN = 8, N_MODES = 4 };

static const char *const modes[N_MODES] = {"DELETE", "TRUNCATE", "PERSIST", "WAL"};
static const char *const disk_name = "/disk/db";

typedef struct world {
  bool tablets;
  const char *self;
  uint64_t seed;
  char dir[200], file[300], base[300]; /* the database after a crash; as it was made */
  sqlite3 *model;
  long n_crashes, n_in_commit, n_kept, n_txns, n_bad;
} world;

static inline void bad(world *w, const char *what, const char *why) {
  if (w->n_bad++ < MAX_SHOWN) tap_bad(what, "%s", why);
}

static inline void must_do(int rc, sqlite3 *db, const char *what) {
  if (rc == SQLITE_OK) return;
  tap_bad(what, "%s", db ? sqlite3_errmsg(db) : "cannot");
  exit(tap_done());
}

static inline sqlite3 *open_db(const char *name, const char *vfs) {
  sqlite3 *db = NULL;
  must_do(sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs), db, "open");
  if (!use_engine(db, "cpu")) must_do(SQLITE_ERROR, db, "enable");
  return db;
}

static inline bool is_wal(const char *mode) {
  return strcmp(mode, "WAL") == 0;
}

/*
** Small pages and a cache of ten: a transaction spills before it commits. In WAL mode SQLite before
** 3.50.2 loses what was committed if a savepoint is rolled back after a spill and the process ends
** before the next checkpoint. Statements of tablet tables that fail must not meet that, so they
** spill here, too. Ordinary tables do meet it, and so does ROLLBACK TO: see kind_of().
*/
static inline void configure(sqlite3 *db, const char *mode, bool tablets) {
  char sql[200];
  snprintf(sql, sizeof sql,
           "PRAGMA cache_size=10; PRAGMA synchronous=EXTRA; PRAGMA journal_mode=%s; "
           "PRAGMA wal_autocheckpoint=300; PRAGMA cache_spill=%s",
           mode, is_wal(mode) && !tablets ? "OFF" : "ON");
  must_do(run_sql(db, sql, false), db, "configure");
}

static inline changes_kind kind_of(const char *mode, bool tablets) {
  return is_wal(mode) && tablets ? CHANGES_KEPT : CHANGES_ANY;
}

static inline void new_model(world *w) {
  sqlite3_close(w->model);
  w->model = NULL;
  must_do(sqlite3_open(":memory:", &w->model), w->model, "model");
  must_do(changes_setup(w->model, false), w->model, "model");
}

static inline void make_base(world *w) {
  unlink(w->base);
  sqlite3 *db = open_db(w->base, NULL);
  must_do(run_sql(db, "PRAGMA page_size=1024; PRAGMA synchronous=OFF", false), db, "base");
  must_do(changes_setup(db, w->tablets), db, "base");
  must_do(sqlite3_close(db), NULL, "base");
}

static inline void unlink_logs(const char *file) {
  static const char *const suffixes[] = {"-journal", "-wal", "-shm"};
  char name[400];
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, "%s%s", file, suffixes[i]);
    unlink(name);
  }
}

static inline bool copy_file(const char *from, const char *to) {
  unlink_logs(to);
  disk_wipe();
  bool ok = disk_load(from, disk_name) && disk_save(disk_name, to);
  disk_wipe();
  return ok;
}

/* The file and the model as they were at first. */
static inline void start_over(world *w) {
  new_model(w);
  if (!copy_file(w->base, w->file)) must_do(SQLITE_IOERR, NULL, "copy");
}

static inline bool world_open(world *w, const char *name) {
  static char self[300];
  const char *tmp = getenv("TMPDIR");
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  self[n > 0 ? n : 0] = 0;
  w->self = self;
  snprintf(w->dir, sizeof w->dir, "%s/%s-XXXXXX", tmp ? tmp : "/tmp", name);
  if (!mkdtemp(w->dir)) return false;
  snprintf(w->file, sizeof w->file, "%s/db", w->dir);
  snprintf(w->base, sizeof w->base, "%s/base", w->dir);
  disk_register();
  make_base(w);
  return true;
}

static inline void world_close(world *w) {
  sqlite3_close(w->model);
  unlink(w->file);
  unlink(w->base);
  unlink_logs(w->file);
  rmdir(w->dir);
}

/* The file as it is after the crash must be sound and hold what the model holds. unsure: the model
** has a transaction open, and the file may hold it or not. */
static inline void compare(world *w, bool unsure, const char *what) {
  char why[600];
  int rc, rc_taken, rc_model;
  sqlite3 *db = open_db(w->file, NULL);
  run_sql(db, "PRAGMA synchronous=OFF", false);
  uint64_t got = changes_digest(db, false, &rc);
  uint64_t want = changes_digest(w->model, false, &rc_model);
  if (rc) {
    snprintf(why, sizeof why, "reading: %s", sqlite3_errmsg(db));
    bad(w, what, why);
  }
  if (unsure) {
    bool kept = got == want;
    w->n_in_commit++;
    w->n_kept += kept;
    must_do(run_sql(w->model, kept ? "COMMIT" : "ROLLBACK", false), w->model, "model");
    want = changes_digest(w->model, false, &rc_model);
  }
  if (!rc && got != want)
    bad(w, what, unsure ? "neither the last nor the next transaction's rows" : "other rows");
  uint64_t taken = changes_digest(db, true, &rc_taken);
  if (!rc && (rc_taken || taken != got)) {
    snprintf(why, sizeof why, "warplite_prepare sees other rows: %s", sqlite3_errmsg(db));
    bad(w, what, why);
  }
  if (!is_sound(db, w->tablets, why, sizeof why)) bad(w, what, why);
  must_do(run_sql(db, "PRAGMA journal_mode=DELETE", false), db, "back to a plain file");
  must_do(sqlite3_close(db), NULL, "close");
}

#endif
