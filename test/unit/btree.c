/*
** The loader that decodes b-tree pages: every value and type as SQLite gives it, over
** tables of all kinds and files in all states; and that it was this loader that ran, or,
** where its rules do not hold, that it was not.
*/
#include "loaded.h"
#include "base/authorizer.h"
#include "warplite.h"
#include <dlfcn.h>

static char dir[200], path[300], other[300];

static sqlite3 *fresh(const char *pragmas) {
  char extra[320];
  static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
  for (int i = 0; i < 4; i++) {
    snprintf(extra, sizeof extra, "%s%s", path, ends[i]);
    unlink(extra);
  }
  sqlite3 *db = must_open(path);
  must_exec(db, "PRAGMA synchronous=OFF");
  must_exec(db, pragmas);
  return db;
}

static void check_random(int n) {
  rng r = {1};
  for (int k = 0; k < n; k++) {
    char pragmas[200], label[300];
    int page_size = 512 << rng_below(&r, 8), key_col, n_done = 0;
    static const char *const vacuum[] = {"NONE", "FULL", "INCREMENTAL"};
    static const char *const journal[] = {"DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF", "WAL"};
    const char *av = vacuum[rng_below(&r, 3)], *jm = journal[rng_below(&r, 6)];
    snprintf(pragmas, sizeof pragmas,
             "PRAGMA page_size=%d; PRAGMA auto_vacuum=%s; PRAGMA journal_mode=%s;"
             "CREATE TABLE before(a); INSERT INTO before VALUES(zeroblob(3000))",
             page_size, av, jm);
    sqlite3 *db = fresh(pragmas);
    int n_cols = create_table(db, &r, 12, &key_col);
    insert_rows(db, &r, rng_below(&r, 700), n_cols, key_col, rng_chance(&r, 20) ? 200000 : 3000);
    static const char *const steps[] = {"DELETE FROM t WHERE rowid%3=0",
                                        "DROP TABLE IF EXISTS before",
                                        "VACUUM",
                                        "ALTER TABLE t ADD COLUMN x1",
                                        "ALTER TABLE t ADD COLUMN x2 REAL DEFAULT 7",
                                        "ALTER TABLE t ADD COLUMN x3 TEXT DEFAULT 12.50",
                                        "ALTER TABLE t ADD COLUMN x4 DEFAULT x'0102'",
                                        "ALTER TABLE t ADD COLUMN x5 INT DEFAULT '42'",
                                        "ALTER TABLE t ADD COLUMN x6 NUMERIC DEFAULT 'no'",
                                        "CREATE TABLE after AS SELECT * FROM t",
                                        "DELETE FROM t WHERE rowid%7<3",
                                        "INSERT INTO t SELECT * FROM after WHERE 0",
                                        "PRAGMA incremental_vacuum(5)",
                                        "INSERT INTO t(c0) SELECT NULL FROM t LIMIT 40",
                                        "CREATE INDEX IF NOT EXISTS i ON t(c0)",
                                        "DELETE FROM t"};
    for (; n_done < 6 && rng_chance(&r, 75); n_done++) {
      int i = rng_below(&r, 16);
      if (i == 15 && rng_chance(&r, 80)) continue;
      sqlite3_exec(db, steps[i], NULL, NULL, NULL); /* a column may be there already */
    }
    snprintf(label, sizeof label, "random table %d: %d columns, pages of %d, auto_vacuum %s, %s", k,
             n_cols, page_size, av, jm);
    check_table(label, db, "main", "t", BY_PAGES);
    sqlite3_close(db);
  }
}

static void check_counts(void) {
  static const int counts[] = {0, 1, 2, 65535, 65536, 65537, 131072, 200000};
  for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
    char sql[400], label[100];
    sqlite3 *db = fresh("CREATE TABLE t(a INTEGER, b REAL, c TEXT, d)");
    snprintf(sql, sizeof sql,
             "INSERT INTO t WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k)"
             " SELECT n, n/3, 'row '||n, CASE n%%5 WHEN 0 THEN NULL WHEN 1 THEN 'x' ELSE n END"
             " FROM k LIMIT %d",
             counts[k]);
    must_exec(db, sql);
    snprintf(label, sizeof label, "%d rows", counts[k]);
    check_table(label, db, "main", "t", BY_PAGES);
    sqlite3_close(db);
  }
}

/* Columns added by later loads line up with those that are there. */
static void check_later_columns(void) {
  sqlite3 *db =
      fresh("CREATE TABLE t(a INTEGER, id INTEGER PRIMARY KEY, b REAL, c TEXT);"
            "INSERT INTO t(a,b,c) WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k)"
            " SELECT n%100, n/4.0, 'row '||n FROM k LIMIT 70000");
  wl_store *s;
  wl_error err;
  loaded l;
  if (wl_store_open(db, &s, &err)) exit(1);
  static const int wanted[][2] = {{3, 3}, {1, -1}, {-1, 2}, {0, 3}};
  for (int k = 0; k < 4; k++) {
    char label[60];
    bool same = load_and_compare(s, db, "main", "t", wanted[k], 1 + (k > 0), true, &l);
    snprintf(label, sizeof label, "columns %d and %d", wanted[k][0], wanted[k][1]);
    if (same && !l.rc && l.by_pages)
      tap_ok(label);
    else
      tap_bad(label, "%s", l.why);
  }
  wl_store_close(s);
  sqlite3_close(db);
}

static void check_key_quirks(void) {
  static const struct {
    const char *label, *sql;
  } cases[] = {
      {"INTEGER PRIMARY KEY DESC is no rowid",
       "CREATE TABLE t(a, id INTEGER PRIMARY KEY DESC); INSERT INTO t VALUES(1,5),(2,NULL),(3,7)"},
      {"PRIMARY KEY(id DESC) is the rowid", "CREATE TABLE t(id INTEGER, a, PRIMARY KEY(id DESC)); "
                                            "INSERT INTO t VALUES(NULL,5),(-7,NULL)"},
      {"INT PRIMARY KEY is no rowid",
       "CREATE TABLE t(id INT PRIMARY KEY, a); INSERT INTO t VALUES(9,5),(NULL,2),(NULL,3)"},
      {"UNIQUE PRIMARY KEY", "CREATE TABLE t(a TEXT UNIQUE PRIMARY KEY, b INTEGER UNIQUE); INSERT "
                             "INTO t VALUES(NULL,5),('x',NULL)"},
      {"two key columns", "CREATE TABLE t(a INTEGER, b INTEGER, PRIMARY KEY(a,b)); INSERT INTO t "
                          "VALUES(NULL,5),(1,NULL)"},
      {"\"INTEGER\" quoted",
       "CREATE TABLE t(a \"INTEGER\" PRIMARY KEY, b); INSERT INTO t VALUES(NULL,5),(8,1)"},
      {"autoincrement",
       "CREATE TABLE t(b, a INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t(b) VALUES(4),(5)"},
      {"STRICT", "CREATE TABLE t(a INT, b REAL, c ANY, d TEXT) STRICT; INSERT INTO t "
                 "VALUES(1,2,'3',4),(NULL,NULL,3.0,'x')"},
      {"columns called rowid and oid",
       "CREATE TABLE t(rowid TEXT, oid, a); INSERT INTO t VALUES('r',2,3),('s',4,5)"},
      {"REAL columns that hold integers",
       "CREATE TABLE t(a REAL, b DOUBLE, c FLOAT); INSERT INTO t "
       "VALUES(1,-7,1e10),(0,0.0,-0.0),(9007199254740993,'12','x')"},
      {"a dropped column", "CREATE TABLE t(a, b REAL, c); INSERT INTO t VALUES(1,2,3),(4,5,6); "
                           "ALTER TABLE t DROP COLUMN a"},
      {"a renamed table",
       "CREATE TABLE u(a, b REAL); INSERT INTO u VALUES(1,2); ALTER TABLE u RENAME TO t"},
      {"huge rowids", "CREATE TABLE t(a); INSERT INTO t(rowid,a) VALUES(9223372036854775807,1),"
                      "(-9223372036854775808,2),(0,3),(-1,4),(127,5),(128,6)"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    sqlite3 *db = fresh(cases[k].sql);
    check_table(cases[k].label, db, "main", "t", BY_PAGES);
    sqlite3_close(db);
  }
}

/* Where the rules do not hold, SQLite steps the table, and the answer is the same. */
static void check_refusals(void) {
  static const struct {
    const char *label, *sql;
  } cases[] = {
      {"WITHOUT ROWID",
       "CREATE TABLE t(a PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO t VALUES(1,2)"},
      {"a virtual column", "CREATE TABLE t(a, g AS (a+1), b); INSERT INTO t VALUES(1,2)"},
      {"a stored column", "CREATE TABLE t(a, g AS (a+1) STORED, b); INSERT INTO t VALUES(1,2)"},
      {"WAL in exclusive mode", "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL;"
                                "CREATE TABLE t(a); INSERT INTO t VALUES(1)"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    sqlite3 *db = fresh(cases[k].sql);
    check_table(cases[k].label, db, "main", "t", BY_STEPS);
    sqlite3_close(db);
  }
  sqlite3 *db = must_open(":memory:");
  must_exec(db, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
  must_exec(db, "CREATE TEMP TABLE u(a); INSERT INTO u VALUES(1)");
  must_exec(db, "ATTACH '' AS x; CREATE TABLE x.v(a); INSERT INTO v VALUES(1)");
  check_table("a memory database", db, "main", "t", BY_STEPS);
  check_table("a temporary table", db, "temp", "u", BY_STEPS);
  check_table("a temporary database", db, "x", "v", BY_STEPS);
  sqlite3_close(db);
  db = fresh("PRAGMA page_size=4096");
  int reserve = 32;
  sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserve);
  must_exec(db, "VACUUM; CREATE TABLE t(a); INSERT INTO t VALUES('x')");
  check_table("reserved bytes", db, "main", "t", BY_STEPS);
  sqlite3_close(db);
}

static int authorize(void *what, int op, const char *a, const char *b, const char *c,
                     const char *d) {
  (void)a, (void)c, (void)d;
  return op == SQLITE_READ && b && !strcmp(b, "b") ? *(int *)what : SQLITE_OK;
}

static void check_authorizer(void) {
  sqlite3 *db = fresh("CREATE TABLE t(a, b); INSERT INTO t VALUES(1,2)");
  wl_store *s;
  wl_error err;
  loaded l;
  int verdict;
  const int cols[] = {0, 1};
  void *lib = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_NOLOAD);
  wl_set_authorizer *unseen =
      lib ? (wl_set_authorizer *)dlsym(lib, "sqlite3_set_authorizer") : NULL;
  bool blind = wl_authorizer_blind;
  for (verdict = SQLITE_DENY; verdict <= SQLITE_IGNORE; verdict++) {
    if (wl_store_open(db, &s, &err)) exit(1);
    warplite_set_authorizer(db, authorize, &verdict);
    load_and_compare(s, db, "main", "t", cols, 2, true, &l);
    warplite_set_authorizer(db, NULL, NULL);
    bool same = load_and_compare(s, db, "main", "t", cols, 2, true, &l);
    CHECK("a load under an authorizer is what the file holds", same && !l.rc && l.by_pages);
    wl_store_close(s);
    if (!unseen) continue;
    if (wl_store_open(db, &s, &err)) exit(1);
    wl_authorizer_blind = true;
    unseen(db, authorize, &verdict);
    load_and_compare(s, db, "main", "t", cols, 2, true, &l);
    CHECK("nothing is loaded under one that cannot be seen", l.rc == WL_NOT_TAKEN);
    unseen(db, NULL, NULL);
    wl_authorizer_blind = blind;
    wl_store_close(s);
  }
  sqlite3_close(db);
}

/* ---- WAL */

static void check_wal(void) {
  sqlite3 *db = fresh("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(a, b);"
                      "INSERT INTO t VALUES(1,'one'),(2,'two')");
  sqlite3 *two = must_open(path);
  must_exec(two, "PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=OFF");
  check_table("WAL: all in the log", db, "main", "t", BY_PAGES);
  check_table("WAL: all in the log, another connection", two, "main", "t", BY_PAGES);
  must_exec(two, "PRAGMA wal_checkpoint");
  check_table("WAL: all copied", db, "main", "t", BY_PAGES);
  must_exec(two, "INSERT INTO t SELECT a, b||b FROM t; INSERT INTO t VALUES(9, zeroblob(50000))");
  check_table("WAL: part in the log, written by another", db, "main", "t", BY_PAGES);

  wl_store *s;
  wl_error err;
  loaded l;
  bool same;
  /* An old snapshot held open: newer frames are there and must not be seen. */
  if (wl_store_open(db, &s, &err)) exit(1);
  must_exec(db, "BEGIN; SELECT count(*) FROM t");
  must_exec(two, "UPDATE t SET a=a+100; INSERT INTO t VALUES(10,'new')");
  same = load_and_compare(s, db, "main", "t", NULL, 0, true, &l);
  CHECK("WAL: an old snapshot that is not pinned is stepped", same && !l.rc && !l.by_pages);
  must_exec(db, "COMMIT");
  wl_store_close(s);
  /* Pinned, then held open while others write and checkpoint. */
  if (wl_store_open(db, &s, &err)) exit(1);
  wl_table *t;
  bool exact;
  CHECK("WAL: the table is there", wl_store_table(s, "main", "t", &t, &err) == WL_OK);
  wl_source_estimate(t->source, &exact);
  must_exec(db, "BEGIN; SELECT count(*) FROM t");
  must_exec(two,
            "UPDATE t SET a=a+1000; DELETE FROM t WHERE a%2; INSERT INTO t VALUES(11,'newer')");
  same = load_and_compare(s, db, "main", "t", NULL, 0, false, &l);
  if (!CHECK("WAL: an old snapshot that is pinned", same && !l.rc && l.by_pages))
    printf("-- %s\n", l.why);
  wl_source_unload(t->source);
  sqlite3_exec(two, "PRAGMA wal_checkpoint", NULL, NULL, NULL);
  same = load_and_compare(s, db, "main", "t", NULL, 0, false, &l);
  CHECK("WAL: the same after a checkpoint up to it", same && !l.rc);
  must_exec(db, "COMMIT");
  wl_store_close(s);
  must_exec(two, "PRAGMA wal_checkpoint(RESTART)");
  must_exec(two, "INSERT INTO t VALUES(12,'restarted')");
  check_table("WAL: restarted", db, "main", "t", BY_PAGES);
  must_exec(two, "PRAGMA wal_checkpoint(TRUNCATE)");
  check_table("WAL: truncated", db, "main", "t", BY_PAGES);
  /* A reader of the file alone, while the log is restarted and filled. */
  if (wl_store_open(db, &s, &err)) exit(1);
  must_exec(db, "BEGIN; SELECT count(*) FROM t");
  must_exec(two, "UPDATE t SET b='gone'");
  same = load_and_compare(s, db, "main", "t", NULL, 0, true, &l);
  CHECK("WAL: a reader of the file beside a new log", same && !l.rc);
  must_exec(db, "COMMIT");
  wl_store_close(s);
  sqlite3_close(two);
  /* Without this SELECT, SQLite 3.40 itself would go on showing its old pages after the switch. */
  must_exec(db, "SELECT * FROM t; PRAGMA journal_mode=DELETE");
  check_table("WAL: back to a rollback journal", db, "main", "t", BY_PAGES);
  sqlite3_close(db);
}

/* A reader holds a checkpoint back to before our snapshot. The checkpoint copies only the newest
** version of a page. If that is newer than our snapshot, the file does not get the version that we
** must see, although its frame counts as copied. */
static void check_wal_partial(bool in_transaction) {
  const char *label = in_transaction ? "WAL: a partial checkpoint during a transaction"
                                     : "WAL: a partial checkpoint during a statement";
  sqlite3 *db = fresh("PRAGMA journal_mode=WAL; CREATE TABLE t(a INTEGER PRIMARY KEY, b);"
                      "INSERT INTO t WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k)"
                      " SELECT n, 100 FROM k LIMIT 1000; PRAGMA wal_checkpoint(TRUNCATE)");
  sqlite3 *writer = must_open(path), *old = must_open(path);
  wl_store *s;
  wl_table *t;
  wl_error err;
  wl_snapshot snap;
  loaded l = {0};
  bool changed, exact;
  int cols[] = {-1, 0, 1};
  if (wl_store_open(db, &s, &err) || wl_store_table(s, "main", "t", &t, &err)) exit(1);
  must_exec(writer, "UPDATE t SET b=b+1 WHERE a=1"); /* a frame of the first leaf */
  must_exec(old, "BEGIN; SELECT * FROM t");
  must_exec(writer, "UPDATE t SET b=b+1 WHERE a=1000"); /* a frame of the last leaf */
  wl_source_estimate(t->source, &exact);
  if (in_transaction) must_exec(db, "BEGIN; SELECT * FROM t");
  l.rc = wl_source_begin(t->source, &changed, &err);
  must_exec(writer, "UPDATE t SET b=b+1 WHERE a=1; PRAGMA wal_checkpoint");
  if (!l.rc) l.rc = wl_source_acquire(t->source, cols, 3, &snap, &err);
  const char *why_not = "";
  bool by_pages = !l.rc && wl_store_loaded_by_pages(t, &why_not);
  bool same = !l.rc && same_table(db, t, cols, 3, &snap, &l);
  if (same && by_pages)
    tap_ok(label);
  else
    tap_bad(label, "%s%s", l.why, why_not);
  if (!l.rc) wl_snapshot_release(&snap);
  wl_store_end(s);
  wl_store_close(s);
  sqlite3_close(db);
  sqlite3_close(writer);
  sqlite3_close(old);
}

/* Some statements of the random test fail: a checkpoint beside a reader, a COMMIT without BEGIN. */
static void try_exec(sqlite3 *db, const char *sql) {
  sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* One random step: a commit, a checkpoint, or the begin or end of a transaction. old is a reader
** whose transactions hold checkpoints back. */
static void wal_step(rng *r, int k, sqlite3 *db, sqlite3 *two, sqlite3 *old) {
  static const char open_snapshot[] = "BEGIN; SELECT count(*) FROM t";
  char sql[200];
  int x = rng_below(r, 600);
  switch (rng_below(r, 20)) {
  case 0:
  case 1: try_exec(db, rng_chance(r, 50) ? open_snapshot : "BEGIN"); return;
  case 2: try_exec(db, "COMMIT"); return;
  case 3:
    try_exec(old, "COMMIT");
    if (rng_chance(r, 70)) try_exec(old, open_snapshot);
    return;
  case 4: try_exec(two, "PRAGMA wal_checkpoint"); return;
  case 5: try_exec(two, "PRAGMA wal_checkpoint(TRUNCATE)"); return;
  case 6: snprintf(sql, sizeof sql, "DELETE FROM t WHERE a%%97=%d", x % 97); break;
  case 7: snprintf(sql, sizeof sql, "INSERT INTO t VALUES(%d, zeroblob(%d))", k, x * 9); break;
  case 8:
    snprintf(sql, sizeof sql, "UPDATE t SET a=a+1, b=b||%d WHERE rowid%%%d=0", k % 10, 5 + x % 90);
    break;
  default: snprintf(sql, sizeof sql, "UPDATE t SET a=a+1 WHERE rowid=%d", x);
  }
  try_exec(rng_chance(r, 90) ? two : db, sql);
}

/* Random commits, checkpoints and open snapshots: whatever the loader, the rows are right. */
static void check_wal_random(int n) {
  rng r = {3};
  sqlite3 *db = fresh("PRAGMA page_size=1024; PRAGMA journal_mode=WAL; CREATE TABLE t(a, b);"
                      "INSERT INTO t WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k)"
                      " SELECT n, 'row '||n FROM k LIMIT 500");
  sqlite3 *two = must_open(path), *old = must_open(path);
  must_exec(two, "PRAGMA synchronous=OFF; PRAGMA wal_autocheckpoint=200");
  int n_pages = 0, n_steps = 0, n_bad = 0;
  wl_store *s;
  wl_table *t;
  wl_error err;
  loaded l;
  if (wl_store_open(db, &s, &err) || wl_store_table(s, "main", "t", &t, &err)) exit(1);
  for (int k = 0; k < n; k++) {
    wal_step(&r, k, db, two, old);
    if (rng_chance(&r, 50)) continue;
    if (rng_chance(&r, 50)) wl_source_unload(t->source); /* to load an old snapshot again */
    bool same = load_and_compare(s, db, "main", "t", NULL, 0, rng_chance(&r, 70), &l);
    if (!same && n_bad++ < 5) tap_bad("random WAL", "step %d: %s", k, l.why);
    if (!l.rc) *(l.by_pages ? &n_pages : &n_steps) += 1;
  }
  wl_store_close(s);
  sqlite3_close(db);
  sqlite3_close(two);
  sqlite3_close(old);
  if (n_bad == 0) tap_ok("random WAL");
  if (n_pages > n / 20 && n_steps > 0)
    tap_ok("random WAL: both loaders ran");
  else
    tap_bad("random WAL: both loaders ran", "%d by pages, %d by steps", n_pages, n_steps);
}

static void check_others(void) {
  /* In an attached database, with other writers waiting, and after a rollback of our own. */
  sqlite3 *db = fresh("CREATE TABLE main_table(a)");
  char *sql = sqlite3_mprintf(
      "ATTACH %Q AS \"odd \"\"name\"; CREATE TABLE \"odd \"\"name\".\"t\"\"x\"(a, \"b\"\"c\");"
      "INSERT INTO \"t\"\"x\" VALUES(1,2),(3,zeroblob(9000))",
      other);
  must_exec(db, sql);
  sqlite3_free(sql);
  check_table("attached, odd names", db, "odd \"name", "t\"x", BY_PAGES);
  must_exec(db, "BEGIN; UPDATE \"t\"\"x\" SET a=a+1; ROLLBACK");
  check_table("after a rollback", db, "odd \"name", "t\"x", BY_PAGES);
  sqlite3 *two = must_open(other);
  must_exec(two, "BEGIN IMMEDIATE; UPDATE \"t\"\"x\" SET a=55");
  check_table("while another is about to commit", db, "odd \"name", "t\"x", BY_PAGES);
  must_exec(two, "COMMIT");
  check_table("after it has", db, "odd \"name", "t\"x", BY_PAGES);
  sqlite3_close(two);
  sqlite3_close(db);

  /* A value longer than the limit that was set since is SQLite's error to raise. */
  db = fresh("CREATE TABLE t(a, b); INSERT INTO t VALUES(1, zeroblob(5000))");
  wl_store *s;
  wl_error err;
  loaded l;
  const int cols[] = {0, 1};
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1000);
  if (wl_store_open(db, &s, &err)) exit(1);
  load_and_compare(s, db, "main", "t", cols, 2, true, &l);
  CHECK("a value over the length limit", l.rc == WL_TOOBIG && !l.by_pages);
  wl_store_close(s);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1000000);
  /* A budget that the table does not fit. */
  must_exec(db, "INSERT INTO t WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k)"
                " SELECT n*1000003, hex(zeroblob(20)) FROM k LIMIT 100000");
  if (wl_store_open(db, &s, &err)) exit(1);
  wl_store_set_budget(s, 1000000);
  load_and_compare(s, db, "main", "t", cols, 2, true, &l);
  CHECK("over the budget", l.rc == WL_NOT_TAKEN && strstr(l.why, "host_budget"));
  wl_store_set_budget(s, 100000000);
  bool same = load_and_compare(s, db, "main", "t", cols, 2, true, &l);
  CHECK("within the budget", same && !l.rc && l.by_pages);
  wl_store_close(s);
  sqlite3_close(db);
}

static wl_status stop(void *n, wl_error *err) {
  return ++*(int *)n < 3 ? WL_OK : wl_fail(err, WL_INTERRUPT, "interrupted");
}

static void check_stop(void) {
  sqlite3 *db = fresh("PRAGMA page_size=65536; CREATE TABLE t(a);"
                      "INSERT INTO t WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k)"
                      " SELECT zeroblob(30000) FROM k LIMIT 2000");
  wl_store *s;
  wl_error err;
  loaded l;
  int n = 0;
  if (wl_store_open(db, &s, &err)) exit(1);
  wl_store_set_threads(s, 1);
  wl_store_set_check(s, stop, &n);
  load_and_compare(s, db, "main", "t", NULL, 0, true, &l);
  CHECK("a load that is interrupted", l.rc == WL_INTERRUPT && n == 3);
  wl_store_set_check(s, NULL, NULL);
  bool same = load_and_compare(s, db, "main", "t", NULL, 0, true, &l);
  CHECK("and then not", same && !l.rc && l.by_pages);
  wl_store_close(s);
  sqlite3_close(db);
}

/* Every allocation fails once: no crash, no leak, and a right answer or an error. */
static void check_nomem(void) {
  sqlite3 *db = fresh("CREATE TABLE t(a INTEGER, b REAL, c TEXT);"
                      "INSERT INTO t WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k)"
                      " SELECT n, n/3.0, 'row '||n||hex(zeroblob(n%50*100)) FROM k LIMIT 400;"
                      "ALTER TABLE t ADD COLUMN d TEXT DEFAULT 'def'");
  int n_failed = 0;
  bool fine = true;
  for (long k = 1; k < 400 && fine; k++) {
    wl_store *s;
    wl_error err;
    wl_table *t;
    wl_snapshot snap;
    bool changed;
    const int cols[] = {0, 1, 2, 3};
    loaded l;
    if (wl_store_open(db, &s, &err) || wl_store_table(s, "main", "t", &t, &err) ||
        wl_source_begin(t->source, &changed, &err))
      exit(1);
    wl_mem_fail_after(k);
    wl_status rc = wl_source_acquire(t->source, cols, 4, &snap, &err);
    wl_mem_fail_after(0);
    if (rc == WL_OK) {
      fine = same_table(db, t, cols, 4, &snap, &l);
      wl_snapshot_release(&snap);
    } else {
      n_failed++;
    }
    wl_store_end(s);
    wl_store_close(s);
    if (rc == WL_OK) break;
  }
  CHECK("out of memory at every allocation", fine && n_failed > 20);
  sqlite3_close(db);
}

int main(void) {
  const char *tmp = getenv("TMPDIR");
  snprintf(dir, sizeof dir, "%.150s/btree-XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(dir) || !bind_sqlite()) return 1;
  snprintf(path, sizeof path, "%s/x.db", dir);
  snprintf(other, sizeof other, "%s/other.db", dir);
  check_counts();
  check_later_columns();
  check_key_quirks();
  check_refusals();
  check_authorizer();
  check_wal();
  check_wal_partial(false);
  check_wal_partial(true);
  check_wal_random(TEST_SANITIZED ? 400 : 3000);
  check_others();
  check_nomem();
  check_stop();
  check_random(TEST_SANITIZED ? 25 : 120);
  sqlite3_close(fresh(""));
  unlink(path);
  unlink(other);
  rmdir(dir);
  return tap_done();
}
