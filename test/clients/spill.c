/*
** Spilling in WAL mode (src/tablet/table/spill.c): while a savepoint is open that a tablet table was
** written in, SQLite keeps changed pages in memory. Before and after, PRAGMA cache_spill is what
** the user made it. kills.c shows what that is good for.
*/
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "changes.h"

static char file[300];

static sqlite3 *open_mode(const char *mode) {
  char sql[300];
  sqlite3 *db = NULL;
  unlink(file);
  if (sqlite3_open(file, &db) || !use_engine(db, "cpu")) exit(2);
  snprintf(sql, sizeof sql,
           "PRAGMA page_size=1024; PRAGMA journal_mode=%s; PRAGMA synchronous=OFF;"
           "PRAGMA cache_size=20",
           mode);
  if (run_sql(db, sql, false) || changes_setup(db, true)) exit(2);
  return db;
}

static int status(sqlite3 *db, int what) {
  int now = 0, most = 0;
  sqlite3_db_status(db, what, &now, &most, 0);
  return now;
}

static int limit_of(sqlite3 *db) {
  char text[60];
  return atoi(one_text(db, "PRAGMA cache_spill", text, sizeof text));
}

static const char *const many =
    "INSERT INTO t(a,s,r,d,u) SELECT n, w, n, 'd', n*7919%9973+100000 FROM seq WHERE n<=3000";
static const char *const failing =
    "INSERT INTO t(a,s,r,d,u) SELECT n, w, n, 'd', n*7919%9973+100000 FROM seq WHERE n<=3000 "
    "UNION ALL SELECT 1, 'x', 1, 'x', 2";
static const char *const replacing =
    "INSERT OR REPLACE INTO t(a,s,r,d,u) SELECT n, w, n, 'd', n*7919%9973+100000 FROM seq "
    "WHERE n<=3000 UNION ALL SELECT 1000000, 'x', 1, 'x', 2";

/* One statement inside a transaction: what it gives, whether SQLite spilled meanwhile, and whether
** the limit is what it was. */
static void one(const char *mode, const char *set, const char *sql, bool taken, bool fails,
                bool spills) {
  char name[400];
  snprintf(name, sizeof name, "spill: %s, %s, %.40s%s%s", mode, set, sql, taken ? ", taken" : "",
           fails ? ", fails" : "");
  sqlite3 *db = open_mode(mode);
  run_sql(db, set, false);
  int limit = limit_of(db);
  bool ok = run_sql(db, "BEGIN; INSERT INTO o VALUES(1,1)", false) == SQLITE_OK;
  int before = status(db, SQLITE_DBSTATUS_CACHE_SPILL);
  int rc = run_sql(db, sql, taken);
  bool spilled = status(db, SQLITE_DBSTATUS_CACHE_SPILL) != before;
  if (!ok || rc != (fails ? SQLITE_CONSTRAINT : SQLITE_OK))
    tap_bad(name, "%d %s", rc, sqlite3_errmsg(db));
  else if (spilled != spills)
    tap_bad(name, spilled ? "SQLite spilled" : "SQLite did not spill");
  else if (limit_of(db) != limit)
    tap_bad(name, "cache_spill was %d and is %d", limit, limit_of(db));
  else if (run_sql(db, "COMMIT", false))
    tap_bad(name, "COMMIT: %s", sqlite3_errmsg(db));
  else
    tap_ok(name);
  sqlite3_close(db);
}

/* The limit after each of several ways to leave a savepoint. */
static void leaving(void) {
  static const char *const ways[] = {"RELEASE s; COMMIT",
                                     "COMMIT",
                                     "ROLLBACK",
                                     "ROLLBACK TO s; RELEASE s; COMMIT",
                                     "INSERT OR ROLLBACK INTO t(id,u) VALUES(1,1)",
                                     "DROP TABLE t"};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    char name[200];
    sqlite3 *db = open_mode("WAL");
    run_sql(db, "PRAGMA cache_spill=777; BEGIN; SAVEPOINT s", false);
    bool ok = run_sql(db, many, false) == SQLITE_OK;
    int inside = limit_of(db), rc = run_sql(db, ways[i], false);
    snprintf(name, sizeof name, "spill: the limit after %s", ways[i]);
    if (!ok || inside <= 777 || limit_of(db) != 777)
      tap_bad(name, "%d inside, %d after (%d)", inside, limit_of(db), rc);
    else
      tap_ok(name);
    sqlite3_close(db);
  }
}

/* What the application sets while it is raised stays; OFF inside a transaction, which SQLite heeds
** only after it, does not have the failing statement spill. */
static void set_meanwhile(void) {
  static const int limits[] = {0, 555};
  for (int i = 0; i < 2; i++) {
    char name[200], sql[60];
    sqlite3 *db = open_mode("WAL");
    run_sql(db, "PRAGMA cache_spill=777; BEGIN; SAVEPOINT s", false);
    bool ok = run_sql(db, many, false) == SQLITE_OK;
    snprintf(sql, sizeof sql, "PRAGMA cache_spill=%d", limits[i]);
    run_sql(db, sql, false);
    run_sql(db, "RELEASE s; COMMIT", false);
    snprintf(name, sizeof name, "spill: %s while a savepoint is open", sql);
    CHECK(name, ok && limit_of(db) == limits[i]);
    run_sql(db, "PRAGMA cache_spill=ON", false);
    CHECK("spill: and the limit when it is on again", limit_of(db) == (i ? 555 : 777));
    sqlite3_close(db);
  }
  sqlite3 *db = open_mode("WAL");
  run_sql(db, "BEGIN; INSERT INTO o VALUES(1,1); PRAGMA cache_spill=OFF", false);
  int before = status(db, SQLITE_DBSTATUS_CACHE_SPILL), rc = run_sql(db, failing, false);
  CHECK("spill: OFF inside the transaction",
        rc == SQLITE_CONSTRAINT && status(db, SQLITE_DBSTATUS_CACHE_SPILL) == before &&
            run_sql(db, "COMMIT", false) == SQLITE_OK && limit_of(db) == 0);
  sqlite3_close(db);
}

/* Constraints of many rows are looked at before the first is written. */
static void checked_first(void) {
  static const char *const statements[] = {
      "INSERT INTO t(a,s,r,d,u) SELECT n, w, n, 'd', min(n,5000)+100000 FROM seq",
      "INSERT INTO t(a,s,r,d,u) SELECT n, w, n, 'd', iif(n=5000, 2, n+100000) FROM seq",
      "INSERT INTO t(a,s,r,d,u) SELECT n+994900, w, n, 'd', n+100000 FROM seq",
      "INSERT INTO b(k,w,f) SELECT n, w, nullif(n,5100) FROM seq",
      ("INSERT INTO t(a,s,r,d,u) SELECT n, w, iif(n=5000, abs(-9223372036854775807-1), 1), 'd', "
       "n+100000 FROM seq"),
      "UPDATE b SET f=nullif(k,5100)"};
  for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
    char name[200];
    sqlite3 *db = open_mode("WAL");
    run_sql(db, "BEGIN", false);
    int before = sqlite3_total_changes(db), rc = run_sql(db, statements[i], true);
    snprintf(name, sizeof name, "spill: nothing is written by %.70s", statements[i]);
    CHECK(name, rc == (strstr(statements[i], "abs") ? SQLITE_ERROR : SQLITE_CONSTRAINT) &&
                    sqlite3_total_changes(db) == before);
    sqlite3_close(db);
  }
}

static int deny_pragmas(void *arg, int what, const char *a, const char *b, const char *c,
                        const char *d) {
  (void)arg, (void)a, (void)b, (void)c, (void)d;
  return what == SQLITE_PRAGMA ? SQLITE_DENY : SQLITE_OK;
}

/* The application's authorizer is not asked about what turns spilling off. */
static void denied(void) {
  sqlite3 *db = open_mode("WAL");
  sqlite3_set_authorizer(db, deny_pragmas, NULL);
  run_sql(db, "BEGIN; INSERT INTO o VALUES(1,1)", false);
  int rc = run_sql(db, failing, false), end = run_sql(db, "COMMIT", false);
  CHECK("spill: a statement fails where PRAGMA is denied", rc == SQLITE_CONSTRAINT && !end);
  sqlite3_close(db);
}

/* Sets an authorizer by SQLite's own function, so that warplite does not know of it. */
static void set_unseen(sqlite3 *db, int (*call)(void *, int, const char *, const char *,
                                                const char *, const char *)) {
  typedef int set_fn(sqlite3 *,
                     int (*)(void *, int, const char *, const char *, const char *, const char *),
                     void *);
  void *sqlite = dlopen("libsqlite3.so.0", RTLD_LAZY | RTLD_NOLOAD);
  set_fn *set = sqlite ? (set_fn *)(size_t)dlsym(sqlite, "sqlite3_set_authorizer") : NULL;
  (set ? set : sqlite3_set_authorizer)(db, call, NULL);
}

/* Where spilling cannot be turned off, a statement that spilled and failed must not be committed
** around. */
static void denied_unseen(void) {
  sqlite3 *db = open_mode("WAL");
  set_unseen(db, deny_pragmas);
  run_sql(db, "BEGIN; INSERT INTO o VALUES(1,1)", false);
  int rc = run_sql(db, failing, false), end = run_sql(db, "COMMIT", false);
  CHECK("spill: a statement fails where spilling goes on", rc == SQLITE_CONSTRAINT);
  CHECK("spill: its transaction is rolled back", end == SQLITE_ABORT && sqlite3_get_autocommit(db));
  CHECK("spill: and says so", strstr(sqlite3_errmsg(db), "could lose") != NULL);
  CHECK("spill: the next one works", run_sql(db, "BEGIN; INSERT INTO o VALUES(2,2)", false) == 0 &&
                                         run_sql(db, many, false) == 0 &&
                                         run_sql(db, "COMMIT", false) == 0);
  sqlite3_close(db);
}

/* A transaction need not fit in memory: past a bound it spills, and then it is all or nothing. */
static void large(void) {
  enum { MB = 1 << 20 };
  char text[60];
  sqlite3 *db = open_mode("WAL");
  run_sql(db, "BEGIN", false);
  int rc = run_sql(
      db, "INSERT INTO v(x,y) SELECT n, zeroblob(1000000) FROM seq WHERE n<=250 RETURNING 1", true);
  CHECK("spill: 250 MB row by row", rc == SQLITE_OK);
  CHECK("spill: are not kept in memory", status(db, SQLITE_DBSTATUS_CACHE_USED) < 200 * MB &&
                                             status(db, SQLITE_DBSTATUS_CACHE_SPILL) > 0);
  CHECK("spill: and are committed", run_sql(db, "COMMIT", false) == SQLITE_OK);
  one_text(db, "SELECT warplite_check('v')", text, sizeof text);
  CHECK("spill: and are sound", strcmp(text, "ok") == 0);
  run_sql(db, "BEGIN; INSERT INTO o VALUES(7,7)", false);
  rc = run_sql(db,
               "INSERT INTO t(s,u) SELECT zeroblob(1000000), n+100000 FROM seq WHERE n<=200 "
               "UNION ALL SELECT 'x', 100001 RETURNING 1",
               true);
  int end = run_sql(db, "COMMIT", false);
  CHECK("spill: 200 MB that fail", rc == SQLITE_CONSTRAINT);
  CHECK("spill: take their transaction with them", end == SQLITE_ABORT && limit_of(db) == 20);
  one_text(db, "SELECT count(*) FROM o", text, sizeof text);
  CHECK("spill: all of it", strcmp(text, "0") == 0 && sqlite3_get_autocommit(db));
  sqlite3_close(db);
}

int main(void) {
  static const char *const sets[] = {"PRAGMA cache_size=20", "PRAGMA cache_spill=60",
                                     "PRAGMA cache_size=-30", "PRAGMA cache_spill=OFF"};
  const char *tmp = getenv("TMPDIR");
  snprintf(file, sizeof file, "%s/spill-%d.db", tmp ? tmp : "/tmp", (int)getpid());
  if (sqlite3_libversion_number() >= 3050002) {
    tap_skip("spill", "this SQLite does not need it");
    return tap_done();
  }
  for (int k = 0; k < 4; k++)
    for (int taken = 0; taken < 2; taken++) {
      one("WAL", sets[k], many, taken, false, false);
      one("WAL", sets[k], failing, taken, true, false);
      one("WAL", sets[k], replacing, taken, true, false);
      one("DELETE", sets[k], many, taken, false, k < 3);
    }
  leaving();
  set_meanwhile();
  checked_first();
  denied();
  denied_unseen();
  large();
  unlink(file);
  return tap_done();
}
