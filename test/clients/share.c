/*
** Connections of one process over one file: they share columns where that is right, have their own
** where it is not, and always give SQLite's answers.
**
**     share [--seconds N] [--rows N] [--connections N] [BUILD]
**
** Invariants:
** 1. Whether columns are shared is seen in warplite_cache, and how many bytes the process holds in
**    warplite_devices.
** 2. Answers are compared with those of a connection that SQLite alone serves.
** 3. Memory is measured in processes of their own, by VmRSS.
*/
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../engines.h"
#include "../tap.h"

enum { MB = 1 << 20, N_READERS = 64, TOTAL = 100000, N_ACCOUNTS = 1000 };

static int seconds = 2, n_rows = TEST_SANITIZED ? 60000 : 800000, n_connections = 50;

/* ---- connections and questions */

static sqlite3 *open_as(const char *uri, const char *engine, const char *vfs) {
  sqlite3 *db = NULL;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
  if (sqlite3_open_v2(uri, &db, flags, vfs) || (engine && !use_engine(db, engine))) {
    printf("not ok open %s - %s\n", uri, sqlite3_errmsg(db));
    exit(1);
  }
  sqlite3_busy_timeout(db, 20000);
  return db;
}
static sqlite3 *open_native(const char *uri) {
  return open_as(uri, "cpu", NULL);
}
static sqlite3 *open_plain(const char *uri) {
  return open_as(uri, NULL, NULL);
}

static void must_run(sqlite3 *db, const char *sql) {
  char *msg = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &msg) == SQLITE_OK) return;
  printf("not ok run - %s: %s\n", sql, msg);
  exit(1);
}

/* The first value of the answer, as an integer. native: warplite must run it itself. */
static sqlite3_int64 number(sqlite3 *db, const char *sql, bool native) {
  sqlite3_stmt *q = NULL;
  sqlite3_int64 n = -1;
  int rc =
      native ? warplite_prepare(db, sql, -1, &q, NULL) : sqlite3_prepare_v2(db, sql, -1, &q, NULL);
  if (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) n = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  if (rc != SQLITE_ROW || (native && strncmp(warplite_reason(db), "cpu:", 4))) {
    tap_bad(sql, "%d: %s; %s", rc, sqlite3_errmsg(db), native ? warplite_reason(db) : "");
    return -1;
  }
  return n;
}
static sqlite3_int64 used(sqlite3 *db) {
  return number(db, "SELECT used FROM warplite_devices WHERE kind='cpu'", false);
}
/* 1: the columns of t are shared, 0: private, -1: there are none, or some of both. */
static int is_shared(sqlite3 *db) {
  return (int)number(db,
                     "SELECT CASE WHEN count(*)=0 OR min(shared)<>max(shared) THEN -1 "
                     "ELSE max(shared) END FROM warplite_cache WHERE \"column\" IS NOT NULL",
                     false);
}
static const char sum[] = "SELECT sum(a+b) FROM t";

static void fill(sqlite3 *db, int n) {
  char *sql = sqlite3_mprintf(
      "BEGIN; CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, c TEXT, d REAL);"
      "INSERT INTO t WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<%d)"
      " SELECT n, n*7919%%12000007, n*104729%%100000007, 'text number '||(n*31%%1200000), n/7.0"
      " FROM k; COMMIT",
      n);
  must_run(db, sql);
  sqlite3_free(sql);
}

static void make_file(const char *name, const char *mode, int n) {
  char *sql = sqlite3_mprintf("PRAGMA journal_mode=%s", mode);
  unlink(name);
  sqlite3 *db = open_plain(name);
  must_run(db, sql);
  fill(db, n);
  sqlite3_close(db);
  sqlite3_free(sql);
}

/* ---- who shares */

static void check_shared(const char *mode) {
  char label[100];
  make_file("share.db", mode, 3000);
  sqlite3 *a = open_native("share.db"), *b = open_native("share.db"), *p = open_plain("share.db");
  sqlite3_int64 right = number(p, sum, false);
  bool same = number(a, sum, true) == right;
  sqlite3_int64 one = used(a);
  same &= number(b, sum, true) == right;
  snprintf(label, sizeof label, "share: %s: two connections have one copy", mode);
  CHECK(label, same && is_shared(a) == 1 && is_shared(b) == 1 && one > 0 && used(b) == one);
  /* A write moves both to a new version, which they share again. */
  must_run(p, "UPDATE t SET a=a+1 WHERE id=5");
  right = number(p, sum, false);
  same = number(a, sum, true) == right && number(b, sum, true) == right;
  snprintf(label, sizeof label, "share: %s: and of the next version", mode);
  CHECK(label, same && is_shared(a) == 1 && is_shared(b) == 1 && used(b) <= one + one / 8);
  /* So do its own writes. */
  must_run(a, "UPDATE t SET a=a+1 WHERE id=6");
  right = number(p, sum, false);
  same = number(b, sum, true) == right && number(a, sum, true) == right;
  snprintf(label, sizeof label, "share: %s: and after a write of its own", mode);
  CHECK(label, same && is_shared(a) == 1 && used(b) <= one + one / 8);
  sqlite3_close(a);
  same = number(b, sum, true) == right;
  snprintf(label, sizeof label, "share: %s: one closes, the other goes on", mode);
  CHECK(label, same && used(b) <= one + one / 8);
  sqlite3_close(b);
  b = open_native("share.db");
  snprintf(label, sizeof label, "share: %s: nothing is left after the last close", mode);
  CHECK(label, used(b) == 0);
  sqlite3_close(b);
  sqlite3_close(p);
}

/* A WAL database that nobody has written since it was opened: its index has no salt. */
static void check_unwritten_wal(void) {
  make_file("share.db", "WAL", 2000);
  sqlite3 *a = open_native("share.db"), *b = open_native("share.db");
  bool same = number(a, sum, true) == number(b, sum, true);
  CHECK("share: a WAL without salt is shared", same && is_shared(a) == 1 && is_shared(b) == 1);
  must_run(b, "UPDATE t SET a=a+1 WHERE id=7");
  sqlite3_int64 was = number(a, sum, true);
  must_run(b, "PRAGMA wal_checkpoint(TRUNCATE)");
  must_run(b, "UPDATE t SET a=a+1 WHERE id=7");
  must_run(b, "PRAGMA wal_checkpoint(TRUNCATE)");
  sqlite3_int64 now = number(a, sum, true);
  CHECK("share: and its next versions are told apart",
        now == was + 1 && number(b, sum, true) == now);
  sqlite3_close(a);
  sqlite3_close(b);
}

static void check_tablets(void) {
  unlink("share.db");
  sqlite3 *a = open_native("share.db"), *b = open_native("share.db");
  must_run(a, "CREATE VIRTUAL TABLE t USING tablet(id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);"
              "INSERT INTO t WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE "
              "n<70000) SELECT n, n*7, n*3 FROM k;");
  must_run(a, "CREATE TABLE other(x)");
  sqlite3_int64 right = number(a, sum, true), one = used(a);
  bool same = number(b, sum, true) == right;
  CHECK("share: tablet tables have one copy",
        same && is_shared(b) == 1 && used(b) <= one + one / 8);
  must_run(a, "INSERT INTO other VALUES(1)"); /* the table itself stays as it is */
  same = number(a, sum, true) == right && number(b, sum, true) == right;
  CHECK("share: also after a write to another table", same && used(b) <= one + one / 8);
  must_run(a, "BEGIN; UPDATE t SET a=a+1 WHERE id=1");
  same = number(a, sum, true) == right + 1;
  CHECK("share: a tablet table inside a write transaction is private", same && is_shared(a) == 0);
  must_run(a, "COMMIT");
  same = number(b, sum, true) == right + 1 && number(a, sum, true) == right + 1;
  CHECK("share: and shared after it", same && is_shared(a) == 1 && is_shared(b) == 1);
  must_run(a, "BEGIN; UPDATE t SET a=a+1 WHERE id=2");
  same = number(a, sum, true) == right + 2;
  must_run(a, "ROLLBACK");
  same &= number(a, sum, true) == right + 1;
  CHECK("share: a rollback shows nobody what it took back",
        same && number(b, sum, true) == right + 1);
  sqlite3_close(a);
  sqlite3_close(b);
}

/* ---- versions in use at the same time */

static void check_versions(void) {
  make_file("share.db", "WAL", 3000);
  sqlite3 *a = open_native("share.db"), *b = open_native("share.db"), *c = open_native("share.db");
  sqlite3 *w = open_plain("share.db"), *old = open_plain("share.db");
  must_run(w, "UPDATE t SET a=a+1 WHERE id=1");
  number(a, sum, true);
  must_run(a, "BEGIN");
  must_run(old, "BEGIN");
  sqlite3_int64 first = number(old, sum, false);
  bool same = number(a, sum, true) == first;
  for (int k = 0; k < 5; k++) {
    must_run(w, "UPDATE t SET a=a+10 WHERE id=2");
    sqlite3_int64 now = number(w, sum, false);
    same &= now != first && number(b, sum, true) == now && number(c, sum, true) == now;
    same &= number(a, sum, true) == number(old, sum, false);
  }
  CHECK("share: every connection sees its own version", same && is_shared(b) == 1);
  sqlite3_int64 hits = number(a, "SELECT min(uses-hits) FROM warplite_cache", false);
  CHECK("share: the old version stays loaded while a transaction reads it", hits == 1);
  must_run(a, "COMMIT");
  must_run(old, "COMMIT");
  sqlite3_int64 now = number(w, sum, false);
  CHECK("share: after the transaction it sees the newest", number(a, sum, true) == now);
  sqlite3 *all[] = {a, b, c, w, old};
  for (int k = 0; k < 5; k++) sqlite3_close(all[k]);
}

/* A connection that reads in explicit transactions only, as some frameworks do. */
static void check_transactions(void) {
  make_file("share.db", "WAL", 3000);
  sqlite3 *a = open_native("share.db"), *b = open_native("share.db"), *w = open_plain("share.db");
  bool same = true;
  int n_shared = 0;
  for (int k = 0; k < 5; k++) {
    must_run(w, "UPDATE t SET a=a+10 WHERE id=2"); /* frames that are not copied yet */
    sqlite3_int64 now = number(w, sum, false);
    must_run(a, "BEGIN");
    must_run(b, "BEGIN");
    same &= number(a, sum, true) == now && number(b, sum, true) == now;
    n_shared += is_shared(a) == 1 && is_shared(b) == 1;
    must_run(a, "COMMIT");
    must_run(b, "COMMIT");
  }
  CHECK("share: transactions that only read share", same && n_shared == 5);
  sqlite3_close(a);
  sqlite3_close(b);
  sqlite3_close(w);
}

/* A pool whose connections read in transactions, each at another version, and are idle then. */
static void check_idle(const char *mode) {
  enum { N = 8 };
  char label[100];
  sqlite3 *dbs[N];
  sqlite3_int64 one = 0;
  make_file("share.db", mode, 3000);
  sqlite3 *w = open_plain("share.db");
  for (int k = 0; k < N; k++) {
    dbs[k] = open_native("share.db");
    must_run(w, "UPDATE t SET a=a+10 WHERE id=2");
    must_run(dbs[k], "BEGIN");
    number(dbs[k], sum, true);
    must_run(dbs[k], "COMMIT");
    if (k == 0) one = used(dbs[k]);
  }
  snprintf(label, sizeof label, "share: %s: idle connections keep no old versions", mode);
  CHECK(label, one > 0 && used(dbs[0]) <= one + one / 8);
  for (int k = 0; k < N; k++) sqlite3_close(dbs[k]);
  sqlite3_close(w);
}

/* ---- a connection closes in the middle of another's statement */

static void check_close(void) {
  make_file("share.db", "DELETE", 200000);
  sqlite3 *a = open_native("share.db"), *b = open_native("share.db");
  sqlite3_stmt *q = NULL;
  sqlite3_int64 got = 0, right = number(a, "SELECT sum(a) FROM t", true);
  warplite_prepare(b, "SELECT a FROM t", -1, &q, NULL);
  for (int k = 0; k < 100 && sqlite3_step(q) == SQLITE_ROW; k++) got += sqlite3_column_int64(q, 0);
  sqlite3_close(a);
  a = open_native("share.db");
  bool same = number(a, "SELECT sum(a) FROM t", true) == right;
  number(a, "SELECT warplite_unload('t')", false);
  sqlite3_close(a);
  while (sqlite3_step(q) == SQLITE_ROW) got += sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  CHECK("share: a statement goes on when others close and unload", same && got == right);
  sqlite3_close(b);
}

/* ---- other files under the same name */

static void check_replaced(void) {
  make_file("share.db", "DELETE", 3000);
  sqlite3 *a = open_native("share.db"), *p = open_plain("share.db");
  sqlite3_int64 old = number(a, sum, true);
  make_file("other.db", "DELETE", 3000); /* as many transactions, as many pages */
  sqlite3 *w = open_plain("other.db");
  must_run(w, "UPDATE t SET a=a+1 WHERE id=9");
  sqlite3_close(w);
  w = open_plain("share.db");
  must_run(w, "UPDATE t SET a=a WHERE id=9");
  sqlite3_close(w);
  number(a, sum, true);
  rename("other.db", "share.db");
  sqlite3 *b = open_native("share.db"), *q = open_plain("share.db");
  CHECK("share: a file replaced by rename: new connections see the new file",
        number(b, sum, true) == old + 1 && number(q, sum, false) == old + 1);
  CHECK("share: and old connections the old one",
        number(a, sum, true) == number(p, sum, false) && number(a, sum, true) == old);
  sqlite3 *all[] = {a, b, p, q};
  for (int k = 0; k < 4; k++) sqlite3_close(all[k]);
}

static void check_links(void) {
  make_file("share.db", "DELETE", 3000);
  unlink("link.db");
  if (link("share.db", "link.db")) return tap_skip("share: hard links", strerror(errno));
  sqlite3 *a = open_native("share.db"), *b = open_native("link.db");
  bool same = number(a, sum, true) == number(b, sum, true);
  CHECK("share: hard links have a copy each",
        same && used(a) == 2 * number(a, "SELECT sum(bytes) FROM warplite_cache", false));
  must_run(b, "UPDATE t SET a=a+1 WHERE id=3");
  CHECK("share: and see each other's commits", number(a, sum, true) == number(b, sum, true));
  sqlite3_close(a);
  sqlite3_close(b);
  unlink("link.db");
}

/* A file made anew behind a DETACH may get the same inode. */
static void check_detached(void) {
  bool same = true;
  sqlite3 *a = open_native(":memory:"), *b = open_native(":memory:");
  for (int k = 0; k < 20; k++) {
    sqlite3_int64 want = 0;
    make_file("share.db", "DELETE", 50);
    if (k % 2) {
      sqlite3 *w = open_plain("share.db");
      must_run(w, "UPDATE t SET a=a+5 WHERE id=4");
      sqlite3_close(w);
    }
    sqlite3 *p = open_plain("share.db");
    want = number(p, sum, false);
    sqlite3_close(p);
    sqlite3 *db = k & 2 ? a : b;
    must_run(db, "ATTACH 'share.db' AS x");
    same &= number(db, "SELECT sum(a+b) FROM x.t", true) == want;
    must_run(db, "DETACH x");
  }
  CHECK("share: a file made anew after DETACH", same);
  sqlite3_close(a);
  sqlite3_close(b);
}

/* ---- what must be private */

static int allow(void *arg, int code, const char *a, const char *b, const char *c, const char *d) {
  (void)arg, (void)code, (void)a, (void)b, (void)c, (void)d;
  return SQLITE_OK;
}

static void check_private(const char *what, const char *uri, const char *vfs, const char *setup) {
  char label[150];
  sqlite3 *a = open_as(uri, "cpu", vfs), *p = open_plain("share.db");
  if (setup) must_run(a, setup);
  if (!strcmp(what, "an authorizer")) warplite_set_authorizer(a, allow, NULL);
  sqlite3_int64 right = number(p, sum, false);
  snprintf(label, sizeof label, "share: %s: right, and private", what);
  CHECK(label, number(a, sum, true) == right && is_shared(a) == 0);
  sqlite3_close(a);
  sqlite3_close(p);
}

/* A connection that wrote in exclusive mode commits without moving the change counter, also in its
** first transaction after the mode. */
static void check_exclusive(void) {
  make_file("share.db", "DELETE", 3000);
  sqlite3 *a = open_native("share.db");
  must_run(a, "PRAGMA locking_mode=EXCLUSIVE; UPDATE t SET a=a+1 WHERE id=1");
  sqlite3_int64 n = number(a, sum, true);
  CHECK("share: exclusive locking mode: right, and private", is_shared(a) == 0);
  must_run(a, "PRAGMA locking_mode=NORMAL; BEGIN");
  bool same = number(a, sum, true) == n && is_shared(a) == 0;
  must_run(a, "UPDATE t SET a=a+1 WHERE id=1; COMMIT");
  sqlite3 *b = open_native("share.db");
  same &= number(b, sum, true) == n + 1 && number(a, sum, true) == n + 1;
  CHECK("share: after exclusive mode nobody sees an old version", same);
  sqlite3_close(a);
  sqlite3_close(b);
}

/* A VFS of the test's own: SQLite's, under another name. */
static void add_vfs(void) {
  static sqlite3_vfs shim;
  shim = *sqlite3_vfs_find(NULL);
  shim.zName = "share_shim";
  shim.pNext = NULL;
  sqlite3_vfs_register(&shim, 0);
}

static void check_all_private(void) {
  add_vfs();
  make_file("share.db", "DELETE", 3000);
  check_private("immutable", "file:share.db?immutable=1", NULL, NULL);
  check_private("nolock", "file:share.db?nolock=1", NULL, NULL);
  check_private("another VFS", "share.db", "share_shim", NULL);
  check_private("exclusive mode that only reads", "share.db", NULL,
                "PRAGMA locking_mode=EXCLUSIVE");
  check_private("an authorizer", "share.db", NULL, NULL);
  check_private("a memory database", ":memory:", NULL,
                "ATTACH 'share.db' AS x; CREATE TABLE t AS SELECT * FROM x.t; DETACH x");
  check_private("a temporary table", ":memory:", NULL,
                "ATTACH 'share.db' AS x; CREATE TEMP TABLE t AS SELECT * FROM x.t; DETACH x");
  sqlite3 *w = open_plain("share.db");
  must_run(w, "ALTER TABLE t ADD COLUMN g AS (a+1) VIRTUAL");
  sqlite3_close(w);
  check_private("columns computed when read", "share.db", NULL, NULL);
  check_exclusive();
}

/* ---- what a load calls, and what limits it */

/* f(x) is x + 1. Every 500 calls it changes the file and queries the table that is being loaded. */
static sqlite3 *asked;
static int n_calls, n_asked;

static void add_one(sqlite3_context *ctx, int n, sqlite3_value **args) {
  (void)n;
  sqlite3_result_int64(ctx, sqlite3_value_int64(args[0]) + 1);
  if (++n_calls % 500 || !asked) return;
  sqlite3 *db = asked;
  sqlite3_stmt *q = NULL;
  char *sql = sqlite3_mprintf("CREATE TABLE z%d(x); UPDATE z%d SET x=1", n_asked, n_asked);
  asked = NULL; /* not within itself */
  must_run(db, sql);
  if (warplite_prepare(db, "SELECT sum(g), count(*) FROM t", -1, &q, NULL) == SQLITE_OK)
    n_asked +=
        sqlite3_step(q) == SQLITE_ROW && sqlite3_column_int64(q, 0) == 3000 * 3001 / 2 + 3000;
  sqlite3_finalize(q);
  sqlite3_free(sql);
  asked = db;
}

static void check_function(const char *mode) {
  char label[100];
  int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  unlink("share.db");
  sqlite3 *a = open_native("share.db");
  char *sql = sqlite3_mprintf("PRAGMA journal_mode=%s", mode);
  must_run(a, sql);
  sqlite3_free(sql);
  sqlite3_create_function(a, "f", 1, flags, NULL, add_one, NULL, NULL);
  must_run(a, "CREATE TABLE t(a INTEGER, g AS (f(a)) VIRTUAL);"
              "INSERT INTO t(a) WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE "
              "n<3000) SELECT n FROM k");
  asked = a;
  n_asked = 0;
  sqlite3_int64 n = number(a, "SELECT sum(g) FROM t", true);
  asked = NULL;
  snprintf(label, sizeof label, "share: %s: a load calls a function that queries and changes",
           mode);
  CHECK(label, n == number(a, "SELECT sum(g) FROM t", true) && n_asked > 4);
  sqlite3_close(a);
}

/* SQLite refuses texts that are longer than the limit, also those that were loaded before. */
static void check_length_limit(bool tablets) {
  unlink("share.db");
  sqlite3 *a = open_native("share.db");
  must_run(a, tablets ? "CREATE VIRTUAL TABLE t USING tablet(c TEXT)" : "CREATE TABLE t(c TEXT)");
  must_run(a, "INSERT INTO t VALUES('short'), (printf('%0900d', 1))");
  bool same = number(a, "SELECT max(length(c)) FROM t", true) == 900;
  sqlite3_limit(a, SQLITE_LIMIT_LENGTH, 800);
  sqlite3_stmt *q = NULL;
  int rc = warplite_prepare(a, "SELECT max(length(c)) FROM t", -1, &q, NULL);
  if (!rc) rc = sqlite3_step(q);
  sqlite3_finalize(q);
  CHECK(tablets ? "share: a lower limit of lengths counts for loaded tablets, too"
                : "share: a lower limit of lengths counts for loaded columns, too",
        same && rc == SQLITE_TOOBIG);
  sqlite3_close(a);
}

/* Columns go where SQLite's hard heap limit is low, also if another connection does not know of the
** limit yet. */
static void check_heap_limit(void) {
  enum { N_COLS = 16 };
  make_file("share.db", "DELETE", 100000);
  sqlite3 *a = open_native("share.db"), *idle = open_native("share.db");
  sqlite3_str *make = sqlite3_str_new(NULL);
  for (int k = 0; k < N_COLS; k++)
    sqlite3_str_appendf(make, "%s b*100000000+%d AS c%d", k ? "," : "CREATE TABLE u AS SELECT", k,
                        k);
  sqlite3_str_appendall(make, " FROM t");
  char *sql = sqlite3_str_finish(make);
  must_run(a, sql);
  sqlite3_free(sql);
  must_run(a, "SELECT warplite_set('threads', 2)"); /* every thread needs memory */
  bool same = number(idle, "SELECT count(*) FROM u", true) == 100000;
  sqlite3_hard_heap_limit64(sqlite3_memory_used() + 8 * MB);
  for (int k = 0; k < N_COLS; k++) {
    sql = sqlite3_mprintf("SELECT count(c%d) FROM u WHERE c%d>0", k, k);
    same &= number(a, sql, true) == 100000;
    sqlite3_free(sql);
  }
  CHECK("share: old columns go before SQLite's hard heap limit is reached", same);
  sqlite3_hard_heap_limit64(0);
  sqlite3_close(a);
  sqlite3_close(idle);
}

/* ---- placement */

/* A query that is not worth a load is, once another connection has loaded the columns. */
static void check_placement(void) {
  make_file("share.db", "DELETE", 30000);
  sqlite3 *a = open_native("share.db"), *b = open_native("share.db");
  use_setting(b, "route", "cost");
  use_setting(b, "engine", "auto");
  number(a, "SELECT sum(a+b), count(c) FROM t WHERE d > 5", true);
  sqlite3_stmt *q = NULL;
  warplite_prepare(b, "SELECT sum(a+b), count(c) FROM t WHERE d > 5", -1, &q, NULL);
  sqlite3_step(q);
  sqlite3_finalize(q);
  CHECK("share: placement sees what another connection has loaded",
        !strncmp(warplite_reason(b), "cpu:", 4));
  sqlite3_close(a);
  sqlite3_close(b);
}

/* ---- many readers, one writer */

typedef struct crowd {
  const char *engine;
  double until;
  atomic_long n_reads, n_writes, n_native;
  atomic_bool wrong;
} crowd;

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* On a busy machine the writer may come late. */
static bool goes_on(crowd *c) {
  double now = now_s();
  if (atomic_load(&c->wrong)) return false;
  return now < c->until || (atomic_load(&c->n_writes) < 5 && now < c->until + 60);
}

static void *read_all(void *arg) {
  crowd *c = arg;
  sqlite3 *db = open_as("crowd.db", c->engine, NULL);
  use_setting(db, "threads", "2");
  bool inside = false;
  for (long k = 0; goes_on(c); k++) {
    sqlite3_stmt *q = NULL;
    if (k % 8 == 5) inside = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK;
    const char *sql = k % 3 == 1 ? "SELECT sum(x.v), count(*) FROM acct x JOIN acct y ON x.id=y.id"
                                 : "SELECT sum(v), count(*) FROM acct";
    int rc = warplite_prepare(db, sql, -1, &q, NULL);
    if (!rc) rc = sqlite3_step(q);
    bool ok = rc == SQLITE_ROW && sqlite3_column_int64(q, 0) == TOTAL &&
              sqlite3_column_int64(q, 1) == N_ACCOUNTS;
    bool busy = (rc & 0xff) == SQLITE_BUSY;
    sqlite3_finalize(q);
    if (!ok && !busy && !atomic_exchange(&c->wrong, true))
      tap_bad("share: a read beside the writer", "%d: %s", rc, sqlite3_errmsg(db));
    const char *prefix = engine_prefix(c->engine);
    atomic_fetch_add(&c->n_native, ok && !strncmp(warplite_reason(db), prefix, strlen(prefix)));
    atomic_fetch_add(&c->n_reads, ok);
    if (inside && k % 8 == 7) inside = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK;
  }
  sqlite3_close(db);
  return NULL;
}

static void *write_all(void *arg) {
  crowd *c = arg;
  sqlite3 *db = open_native("crowd.db");
  for (long k = 0; goes_on(c); k++) {
    char *sql = sqlite3_mprintf("BEGIN IMMEDIATE; UPDATE acct SET v=v-1 WHERE id=%ld;"
                                "UPDATE acct SET v=v+1 WHERE id=%ld; COMMIT",
                                k % N_ACCOUNTS + 1, k * 7 % N_ACCOUNTS + 1);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
      atomic_fetch_add(&c->n_writes, 1);
    else if (!sqlite3_get_autocommit(db))
      sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_free(sql);
    usleep(3000);
  }
  sqlite3_close(db);
  return NULL;
}

static void check_crowd(const char *mode, bool tablets, const char *engine) {
  char label[150], *sql;
  pthread_t threads[N_READERS + 1];
  crowd c = {.engine = engine};
  int n = TEST_SANITIZED && seconds < 10 ? 24 : N_READERS; /* a short run must get somewhere */
  unlink("crowd.db");
  unlink("crowd.db-wal");
  sqlite3 *db = open_native("crowd.db");
  sql = sqlite3_mprintf(
      "PRAGMA journal_mode=%s; PRAGMA synchronous=OFF; CREATE %s(id INTEGER PRIMARY KEY, v "
      "INTEGER);"
      "INSERT INTO acct WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE n<%d)"
      " SELECT n, %d FROM k",
      mode, tablets ? "VIRTUAL TABLE acct USING tablet" : "TABLE acct", N_ACCOUNTS,
      TOTAL / N_ACCOUNTS);
  must_run(db, sql);
  sqlite3_free(sql);
  c.until = now_s() + seconds;
  for (int k = 0; k < n; k++) pthread_create(&threads[k], NULL, read_all, &c);
  pthread_create(&threads[n], NULL, write_all, &c);
  for (int k = 0; k <= n; k++) pthread_join(threads[k], NULL);
  snprintf(label, sizeof label, "share: %d threads read and one writes, %s, %s%s", n, engine, mode,
           tablets ? ", tablets" : "");
  printf("  %s: %ld reads (%ld native), %ld commits\n", label, atomic_load(&c.n_reads),
         atomic_load(&c.n_native), atomic_load(&c.n_writes));
  CHECK(label,
        !atomic_load(&c.wrong) && atomic_load(&c.n_native) > 0 && atomic_load(&c.n_writes) > 0);
  sqlite3_close(db);
}

/* ---- fork */

static void check_fork(void) {
  make_file("share.db", "DELETE", 3000);
  sqlite3 *a = open_native("share.db");
  sqlite3_int64 right = number(a, sum, true);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    sqlite3 *b = open_native("share.db");
    bool same = number(b, sum, true) == right;
    must_run(b, "UPDATE t SET a=a+1 WHERE id=1");
    same &= number(b, sum, true) == right + 1;
    sqlite3_close(b);
    _exit(same ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK("share: a child has its own connection", WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK("share: the parent sees the child's commit", number(a, sum, true) == right + 1);
  sqlite3_close(a);
}

/* ---- memory */

static const char *const queries[] = {"SELECT sum(a), avg(b), max(d) FROM t WHERE a > 5",
                                      "SELECT count(*), min(c) FROM t WHERE c LIKE '%77%'",
                                      "SELECT a % 10, sum(b) FROM t GROUP BY 1",
                                      "SELECT count(*) FROM t x JOIN t y ON x.id = y.a"};

static long resident(void) {
  char line[256];
  long n = -1;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (!strncmp(line, "VmRSS:", 6)) n = atol(line + 6) * 1024;
  if (f) fclose(f);
  return n;
}

/* In a process of its own: what so many connections take above the start, while they are open and
** after the last has closed. */
static bool measure(int n, bool native, long out[2]) {
  int ends[2];
  if (pipe(ends)) return false;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    sqlite3 *dbs[200];
    long got[2], start;
    sqlite3 *first = native ? open_native(":memory:") : open_plain(":memory:");
    start = resident();
    for (int k = 0; k < n; k++) {
      dbs[k] = native ? open_native("big.db") : open_plain("big.db");
      for (size_t i = 0; i < sizeof queries / sizeof *queries - !native; i++)
        number(dbs[k], queries[i], native);
    }
    got[0] = resident() - start;
    for (int k = 0; k < n; k++) sqlite3_close(dbs[k]);
    got[1] = resident() - start;
    sqlite3_close(first);
    _exit(write(ends[1], got, sizeof got) == (ssize_t)sizeof got ? 0 : 1);
  }
  close(ends[1]);
  bool ok = read(ends[0], out, 2 * sizeof *out) == (ssize_t)(2 * sizeof *out);
  close(ends[0]);
  int status;
  waitpid(child, &status, 0);
  return ok;
}

static void check_memory(void) {
  long one[2], many[2], one_plain[2], many_plain[2];
  make_file("big.db", "DELETE", n_rows);
  bool ok = measure(1, true, one) && measure(n_connections, true, many) &&
            measure(1, false, one_plain) && measure(n_connections, false, many_plain);
  long a = one[0] - one_plain[0], b = many[0] - many_plain[0];
  struct stat st = {0};
  stat("big.db", &st);
  printf(
      "  a file of %ld MB: one connection %ld MB (SQLite %ld), %d connections %ld MB (SQLite %ld); "
      "after the last close %ld and %ld MB more than at the start\n",
      (long)st.st_size / MB, one[0] / MB, one_plain[0] / MB, n_connections, many[0] / MB,
      many_plain[0] / MB, one[1] / MB, many[1] / MB);
  CHECK("share: many connections take at most 1.2 times the memory of one", ok && b <= a + a / 5);
  CHECK("share: after the last close the memory is given back", ok && many[1] < 20 * MB);
  unlink("big.db");
}

int main(int argc, char **argv) {
  for (int i = 1; i + 1 < argc; i++) {
    if (!strcmp(argv[i], "--seconds")) seconds = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--rows")) n_rows = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--connections")) n_connections = atoi(argv[i + 1]);
  }
  char folder[] = "share.XXXXXX";
  if (!mkdtemp(folder) || chdir(folder)) {
    tap_bad("share", "no folder to work in");
    return tap_done();
  }
  if (!TEST_SANITIZED) check_memory(); /* first, while the process is small */
  check_shared("DELETE");
  check_shared("WAL");
  check_unwritten_wal();
  check_tablets();
  check_versions();
  check_transactions();
  check_idle("WAL");
  check_idle("DELETE");
  check_close();
  check_replaced();
  check_links();
  check_detached();
  check_all_private();
  check_function("WAL");
  check_function("DELETE");
  check_length_limit(false);
  check_length_limit(true);
  check_heap_limit();
  check_placement();
  check_fork();
  check_crowd("WAL", false, "cpu");
  check_crowd("DELETE", false, "cpu");
  check_crowd("WAL", true, "cpu");
  check_crowd("WAL", true, "sim");
  static const char *const names[] = {"share.db",     "share.db-wal", "share.db-shm", "crowd.db",
                                      "crowd.db-wal", "crowd.db-shm", "other.db"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(names[i]);
  if (!chdir("..")) rmdir(folder);
  return tap_done();
}
