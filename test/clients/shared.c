/*
** Connections in one process that share a cache: threads write tables in transactions and read
** them, over a file and in memory. A read must find what SQLite's table locks promise: in one
** transaction one state, and never half of another's. With read_uncommitted on, SQLite reads
** what others have not committed; a tablet table must refuse, and ordinary ones are SQLite's.
**
**     shared [--secs N] [--ordinary | --tablets] [BUILD]
**
** accounts.h has what the threads do.
*/
#include <pthread.h>
#include <unistd.h>

#include "accounts.h"

enum { N_WRITERS = 2, N_READERS = 4, N_THREADS = N_WRITERS + N_READERS };

typedef struct world {
  const char *uri, *mode;
  bool tablets, dirty; /* dirty: readers have read_uncommitted on */
  double until;
} world;

typedef struct one {
  world *w;
  worker k;
  int no;
  long n_refused;
  pthread_t thread;
} one;

static bool open_shared(const world *w, sqlite3 **db) {
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
  return sqlite3_open_v2(w->uri, db, flags, NULL) == SQLITE_OK && use_engine(*db, "cpu");
}

/* A read that may see anything: it must end, with rows or with an error that says why. */
static void read_dirty(one *o) {
  sqlite3_int64 x[6];
  bool taken = rng_chance(&o->k.r, 50);
  if (!ask(&o->k, books, taken, x, 6) && strstr(o->k.why, "read_uncommitted")) {
    o->k.why[0] = 0;
    o->n_refused++;
  }
  o->k.n_done++;
}

static void *work(void *arg) {
  one *o = arg;
  double last = o->w->until + 20; /* SQLite does not wait for table locks: some come late */
  while (!o->k.why[0] && now_s() < (o->k.n_done ? o->w->until : last)) {
    long n_busy = o->k.n_busy;
    if (o->no < N_WRITERS)
      write_once(&o->k, o->w->tablets);
    else if (o->w->dirty && o->no % 2)
      read_dirty(o);
    else
      read_once(&o->k, o->w->tablets);
    if (o->k.n_busy != n_busy) usleep((unsigned)rng_below(&o->k.r, 1000));
  }
  if (!sqlite3_get_autocommit(o->k.db)) run_sql(o->k.db, "ROLLBACK", false);
  return NULL;
}

/* What one connection reads in a transaction no other may change, as with SQLite's own tables. */
static void check_locks(const char *what, sqlite3 *a, sqlite3 *b) {
  char name[200], was[100], now[100];
  const char *sum = "SELECT count(*) || ' ' || sum(a) FROM acct";
  snprintf(name, sizeof name, "%s: a reader's rows are locked", what);
  one_text(a, sum, was, sizeof was); /* it is in memory now, if ever */
  int rc = run_sql(a, "BEGIN", false);
  if (!rc) rc = run_sql(a, sum, true);
  int locked = run_sql(b, "UPDATE acct SET a=a+1, b=b-1 WHERE id=7", false);
  one_text(a, sum, now, sizeof now);
  CHECK(name, rc == SQLITE_OK && (locked & 0xff) == SQLITE_LOCKED && strcmp(was, now) == 0);
  run_sql(a, "COMMIT", false);
  snprintf(name, sizeof name, "%s: a writer's rows are locked", what);
  rc = run_sql(b, "BEGIN; UPDATE acct SET a=a+1, b=b-1 WHERE id=7", false);
  locked = run_sql(a, sum, true);
  int back = run_sql(b, "ROLLBACK", false);
  one_text(a, sum, now, sizeof now);
  CHECK(name, !rc && (locked & 0xff) == SQLITE_LOCKED && !back && strcmp(was, now) == 0);
}

/* However a cache comes to be shared, columns are not read from memory. */
static void check_ways(const char *file) {
  const char *count = "SELECT count(*), sum(a) FROM t";
  for (int way = 0; way < 4; way++) {
    sqlite3 *db = NULL;
    char uri[400], name[100];
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
    snprintf(uri, sizeof uri, "file:%s%s", file, way == 1 ? "?cache=shared" : "");
    if (way == 3) sqlite3_enable_shared_cache(1);
    int rc = sqlite3_open_v2(uri, &db, flags | (way == 2 ? SQLITE_OPEN_SHAREDCACHE : 0), NULL);
    sqlite3_enable_shared_cache(0);
    if (rc || !use_engine(db, "cpu")) exit(2);
    run_sql(db, "CREATE TABLE IF NOT EXISTS t(a); INSERT INTO t VALUES(1),(2)", false);
    rc = run_sql(db, count, true);
    bool shared = strstr(warplite_reason(db), "shared cache") != NULL;
    snprintf(name, sizeof name, "shared: way %d is seen", way);
    CHECK(name, rc == SQLITE_OK && shared == (way > 0));
    if (way == 0) { /* the same of a database that is attached, and attached again */
      static const char *const uris[] = {"file:%s2", "file:%s2?cache=shared", "file:%s2"};
      for (int i = 0; i < 3; i++) {
        char other[400];
        snprintf(other, sizeof other, uris[i], file);
        char *sql = sqlite3_mprintf("ATTACH %Q AS o; CREATE TABLE IF NOT EXISTS o.u(a)", other);
        rc = run_text(db, sql);
        if (!rc) rc = run_sql(db, "SELECT count(*), sum(a) FROM o.u", true);
        shared = strstr(warplite_reason(db), "shared cache") != NULL;
        snprintf(name, sizeof name, "shared: attached, %s", i == 1 ? "shared" : "alone");
        CHECK(name, rc == SQLITE_OK && shared == (i == 1));
        run_sql(db, "DETACH o", false);
      }
    }
    sqlite3_close(db);
  }
}

static void run_world(world *w, double secs) {
  char name[200], what[120], why[700];
  one all[N_THREADS] = {0};
  worker first = {0};
  long n[2] = {0}, busy = 0, checks = 0, refused = 0;
  snprintf(what, sizeof what, "shared: %s, %s%s", w->mode, w->tablets ? "tablets" : "ordinary",
           w->dirty ? ", read_uncommitted" : "");
  snprintf(name, sizeof name, "%s: set-up", what);
  if (!open_shared(w, &first.db) || setup_accounts(first.db, w->mode, w->tablets)) {
    tap_bad(name, "%s", sqlite3_errmsg(first.db));
    sqlite3_close(first.db);
    return;
  }
  for (int i = 0; i < N_THREADS; i++) {
    all[i] = (one){.w = w, .no = i, .k = {.r = {(uint64_t)i + 1}}};
    if (!open_shared(w, &all[i].k.db)) exit(2);
    run_sql(all[i].k.db, "PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=100", false);
    sqlite3_busy_timeout(all[i].k.db, 100);
    if (w->dirty && i >= N_WRITERS && i % 2)
      run_sql(all[i].k.db, "PRAGMA read_uncommitted=ON", false);
  }
  if (!w->dirty) check_locks(what, all[0].k.db, all[1].k.db);
  w->until = now_s() + secs;
  for (int i = 0; i < N_THREADS; i++) pthread_create(&all[i].thread, NULL, work, &all[i]);
  for (int i = 0; i < N_THREADS; i++) {
    one *o = &all[i];
    pthread_join(o->thread, NULL);
    sqlite3_close(o->k.db);
    snprintf(name, sizeof name, "%s: %s %d", what, i < N_WRITERS ? "writer" : "reader", i);
    if (o->k.why[0])
      tap_bad(name, "%.600s", o->k.why);
    else
      tap_ok(name);
    n[i >= N_WRITERS] += o->k.n_done;
    busy += o->k.n_busy;
    checks += o->k.n_checks;
    refused += o->n_refused;
  }
  snprintf(name, sizeof name, "%s: all came along", what);
  CHECK(name, n[0] > 0 && n[1] > 0);
  if (w->dirty && w->tablets) {
    snprintf(name, sizeof name, "%s: dirty reads are refused", what);
    CHECK(name, refused > 0);
  }
  snprintf(name, sizeof name, "%s: at the end", what);
  if (accounts_are_sound(&first, w->tablets, why, sizeof why))
    tap_ok(name);
  else
    tap_bad(name, "%s", why);
  sqlite3_close(first.db);
  printf("-- %s: %ld written, %ld read, %ld checks, busy or locked %ld times, %ld refused\n", what,
         n[0], n[1], checks, busy, refused);
}

int main(int argc, char **argv) {
  double secs = TEST_SANITIZED ? 1.5 : 0.5;
  int kinds = 3;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--ordinary") == 0) kinds = 1;
    if (strcmp(argv[i], "--tablets") == 0) kinds = 2;
    if (i + 1 < argc && strcmp(argv[i], "--secs") == 0) secs = atof(argv[++i]);
  }
  const char *tmp = getenv("TMPDIR");
  char dir[200], uri[400], file[300];
  snprintf(dir, sizeof dir, "%s/shared-XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(dir)) return 2;
  snprintf(file, sizeof file, "%s/ways", dir);
  check_ways(file);
  unlink(file);
  snprintf(file, sizeof file, "%s/ways2", dir);
  unlink(file);
  static const char *const modes[] = {"WAL", "DELETE", "MEMORY"};
  for (int m = 0; m < 3; m++)
    for (int tablets = 0; tablets < 2; tablets++)
      for (int dirty = 0; dirty < 2; dirty++) {
        if (!(kinds & (tablets ? 2 : 1))) continue;
        snprintf(file, sizeof file, "%s/%s%d%d.db", dir, modes[m], tablets, dirty);
        snprintf(uri, sizeof uri, "file:%s?cache=shared%s", file, m == 2 ? "&mode=memory" : "");
        run_world(&(world){.uri = uri, .mode = modes[m], .tablets = tablets, .dirty = dirty}, secs);
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
