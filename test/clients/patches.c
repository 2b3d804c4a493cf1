/*
** Updates of few rows of a tablet table, which are stored as patches of segments: every type of
** column and value beside an ordinary table, many changes one after the other, rollbacks, a second
** connection, files of the first format, and that neither the file nor the patches grow without
** bound.
**
**     patches [BUILD]
**
** Invariants:
** 1. The tablet table t and the ordinary table o get the same statements and must have the same
**    rows, read through SQLite and natively.
** 2. The checksums of the segments show whether a statement was stored as a patch.
*/
#include <unistd.h>

#include "changes.h"
#include "patches_old.h"

enum { N_COLS = 9, ZONE = 72, ROWS = 66500 };

static const char *const decl = "a INT, b INT, c REAL, d REAL, e TEXT, f TEXT, g, h BLOB, n INT";
static const char *const fill =
    "WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM k WHERE i<%d) SELECT i%%1000, "
    "i*7919, i/4.0, i/7.0, 'word '||(i%%40), 'text '||(i*7919%%100003), CASE i%%4 WHEN 0 THEN i "
    "WHEN 1 THEN i+0.5 WHEN 2 THEN 'm'||i END, CAST('blob '||i AS BLOB), CASE WHEN i%%3 THEN i END "
    "FROM k";

static sqlite3 *open_db(const char *file, const char *engine) {
  sqlite3 *db = NULL;
  if (sqlite3_open(file, &db) || !use_engine(db, engine)) exit(2);
  run_sql(db, "PRAGMA synchronous=OFF", false);
  return db;
}

/* Runs a text on both tables: every @ stands for the table's name. */
static int both(sqlite3 *db, const char *text) {
  int rc = SQLITE_OK;
  for (int k = 0; k < 2 && !rc; k++) {
    char *sql = sqlite3_mprintf("%s", text);
    for (char *p = sql; *p; p++)
      if (*p == '@') *p = "ot"[k];
    rc = run_sql(db, sql, k == 1);
    if (rc) printf("  %s: %s\n", sql, sqlite3_errmsg(db));
    sqlite3_free(sql);
  }
  return rc;
}

static bool make_tables(sqlite3 *db, int n_rows) {
  char *sql =
      sqlite3_mprintf("CREATE TABLE o(%s); CREATE VIRTUAL TABLE t USING tablet(%s)", decl, decl);
  char *rows = sqlite3_mprintf(fill, n_rows), *insert = sqlite3_mprintf("INSERT INTO @ %s", rows);
  int rc = run_sql(db, sql, false);
  if (!rc) rc = both(db, insert);
  sqlite3_free(sql);
  sqlite3_free(rows);
  sqlite3_free(insert);
  return rc == SQLITE_OK;
}

static long number(sqlite3 *db, const char *sql) {
  char text[100];
  return atol(one_text(db, sql, text, sizeof text));
}

static long patch_bytes(sqlite3 *db) {
  char sql[200];
  snprintf(sql, sizeof sql, "SELECT coalesce(sum(length(head) - %d), 0) FROM t_tablet",
           (N_COLS + 1) * ZONE);
  return number(db, sql);
}

/* Whether both tables have the same rows; with check: also by other queries, and the tablet table
** is sound. */
static bool is_same(sqlite3 *db, const char *name, bool check) {
  static const char *const queries[] = {
      "SELECT rowid, * FROM %s ORDER BY rowid",
      "SELECT count(*), count(a), sum(a % 1000), min(a), max(b), count(n), min(f), max(e) FROM %s",
      "SELECT rowid, a FROM %s WHERE a > 1000 OR a < 0 ORDER BY rowid",
      "SELECT rowid, c FROM %s WHERE c > 1e6 ORDER BY rowid",
      "SELECT e, count(*), sum(n) FROM %s GROUP BY e ORDER BY e",
      "SELECT rowid FROM %s WHERE e = 'new word' ORDER BY rowid",
      "SELECT count(*) FROM %s WHERE n IS NULL",
      "SELECT typeof(g), count(*) FROM %s GROUP BY 1 ORDER BY 1"};
  char why[500];
  int rc;
  for (size_t i = 0; i < (check ? sizeof queries / sizeof *queries : 2); i++) {
    char ordinary[200], tablet[200];
    snprintf(ordinary, sizeof ordinary, queries[i], "o");
    snprintf(tablet, sizeof tablet, queries[i], "t");
    uint64_t want = digest_query(db, ordinary, false, 1, &rc);
    for (int native = 0; native < 2; native++) {
      uint64_t got = digest_query(db, tablet, native, 1, &rc);
      if (rc) return tap_bad(name, "%s: %s", tablet, sqlite3_errmsg(db));
      if (got != want)
        return tap_bad(name, "%s: other rows, %s", tablet, native ? warplite_reason(db) : "sqlite");
    }
  }
  if (check && strcmp(one_text(db, "SELECT warplite_check('t')", why, sizeof why), "ok") != 0)
    return tap_bad(name, "%s", why);
  return true;
}

/* ---- one statement after the other */

static const struct change_case {
  char how; /* 'p': stored as a patch; 'w': a segment is written again; ' ': either */
  const char *sql;
} cases[] = {
    {'p', "UPDATE @ SET a = a + 1 WHERE rowid % 500 = 3"},
    {'p', "UPDATE @ SET a = a + 1 WHERE rowid % 500 = 3"},
    {'p', "UPDATE @ SET a = 9000000000000000000 - rowid WHERE rowid % 700 = 5"},
    {'p', "UPDATE @ SET a = -9223372036854775807 - 1 WHERE rowid % 900 = 6"},
    {'p', "UPDATE @ SET a = 9223372036854775807 WHERE rowid BETWEEN 65500 AND 65600"},
    {'p', "UPDATE @ SET a = NULL WHERE rowid % 800 = 7"},
    {'p', "UPDATE @ SET a = 5 WHERE a IS NULL"},
    {'p', "UPDATE @ SET n = NULL WHERE rowid % 800 = 7"},
    {'p', "UPDATE @ SET n = -n WHERE rowid % 400 = 1"},
    {'p', "UPDATE @ SET c = c / 3 WHERE rowid % 500 = 3"},
    {'p', "UPDATE @ SET c = 1e308 * 10 WHERE rowid % 500 = 4"},
    {'p', "UPDATE @ SET c = -0.0, d = -0.0 WHERE rowid % 500 = 5"},
    {'p', "UPDATE @ SET d = NULL WHERE rowid % 500 = 5"},
    {'p', "UPDATE @ SET d = 7 WHERE rowid % 500 = 6"},
    {'p', "UPDATE @ SET e = 'word 3' WHERE rowid % 500 = 3"},
    {'p', "UPDATE @ SET e = 'new word' WHERE rowid % 500 = 4"},
    {'p', "UPDATE @ SET e = e || rowid WHERE rowid % 700 = 4"},
    {'p', "UPDATE @ SET e = NULL WHERE rowid % 600 = 4"},
    {'p', "UPDATE @ SET e = '' WHERE rowid % 600 IN (4, 5)"},
    {'p', "UPDATE @ SET f = f || '!' WHERE rowid % 500 = 3"},
    {'p', "UPDATE @ SET f = NULL WHERE rowid % 500 = 5"},
    {'p', "UPDATE @ SET f = '' WHERE rowid % 500 = 5"},
    {'p', "UPDATE @ SET g = 'patched' WHERE rowid % 500 = 0"},
    {'p', "UPDATE @ SET g = rowid * 1.5 WHERE rowid % 500 = 1"},
    {'p', "UPDATE @ SET g = NULL WHERE rowid % 500 = 2"},
    {'p', "UPDATE @ SET h = CAST('other ' || rowid AS BLOB) WHERE rowid % 500 = 2"},
    {'p', "UPDATE @ SET h = NULL WHERE rowid % 500 = 2"},
    {'p', "UPDATE @ SET a = b, b = a, e = 'two' WHERE rowid % 501 = 2"},
    {'w', "UPDATE @ SET g = x'00' WHERE rowid % 500 = 0"},  /* a type that it does not have */
    {'w', "UPDATE @ SET b = 'text' WHERE rowid % 500 = 0"}, /* the same */
    {'w', "UPDATE @ SET f = printf('%0200d', rowid) WHERE rowid % 400 = 0"}, /* too long */
    {'w', "UPDATE @ SET a = a + 1 WHERE rowid % 20 = 3"},                    /* too many */
    {' ', "UPDATE @ SET a = 1 WHERE a = 123456789"},                         /* none */
    {' ', "UPDATE @ SET a = 77 WHERE rowid = 503"}, /* one row, in the delta */
    {'p', "UPDATE @ SET a = a + 1 WHERE rowid % 500 = 3"},
    {' ', "INSERT INTO @(rowid, a) VALUES(90000, 5)"},
    {' ', "DELETE FROM @ WHERE rowid % 501 = 2"},
    {' ', "DELETE FROM @ WHERE rowid = 505"},
    {'p', "UPDATE @ SET d = d + 1, e = 'x' WHERE rowid % 600 = 1"},
    {' ', "INSERT INTO @(a, e) SELECT rowid, 'late' FROM o WHERE rowid % 600 = 1 AND rowid "
          "< 66500"},
};

static void one_by_one(const char *engine) {
  static const char *const sums = "SELECT group_concat(hex(substr(data, 89, 8))) FROM t_segment";
  static char segments[2][2000]; /* their checksums, before and after a statement */
  char name[300];
  sqlite3 *db = open_db(":memory:", engine);
  if (!CHECK("patches: set-up", make_tables(db, ROWS))) exit(tap_done());
  long before = patch_bytes(db);
  one_text(db, sums, segments[1], sizeof segments[1]);
  CHECK("patches: none at first", before == 0);
  CHECK("patches: format 1", number(db, "SELECT v FROM t_info WHERE k='format'") == 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct change_case *c = &cases[i];
    snprintf(name, sizeof name, "patches [%s]: %s", engine, c->sql);
    if (both(db, c->sql)) {
      tap_bad(name, "%s", sqlite3_errmsg(db));
      continue;
    }
    long after = patch_bytes(db);
    bool now = i % 2;
    one_text(db, sums, segments[now], sizeof segments[now]);
    bool skip = strcmp(engine, "sim") == 0 && i % 5 < 4; /* it is slow */
    if (!skip && !is_same(db, name, i % 8 == 7)) continue;
    bool kept = strcmp(segments[now], segments[!now]) == 0;
    if (c->how != ' ' && kept != (c->how == 'p'))
      tap_bad(name, "its segments %s", kept ? "did not change" : "changed");
    else if (c->how == 'p' && !after)
      tap_bad(name, "there are no patches");
    else
      tap_ok(name);
    before = after;
  }
  CHECK("patches: format 2", number(db, "SELECT v FROM t_info WHERE k='format'") == 2);
  CHECK("patches: there are some", before > 0);
  CHECK("patches: optimize", !run_sql(db, "INSERT INTO t(t) VALUES('optimize')", true));
  CHECK("patches: optimize applies them", patch_bytes(db) == 0);
  if (is_same(db, "patches: after optimize", true)) tap_ok("patches: after optimize");
  sqlite3_close(db);
}

/* ---- transactions, connections, files */

static bool step_both(sqlite3 *db, const char *sql, const char *name) {
  return both(db, sql) == SQLITE_OK && is_same(db, name, false);
}

static void rollbacks(void) {
  sqlite3 *db = open_db(":memory:", "cpu");
  bool ok = make_tables(db, ROWS);
  ok = ok && !run_sql(db, "BEGIN", false) &&
       step_both(db, "UPDATE @ SET a = -1, e = 'gone' WHERE rowid % 500 = 3", "patches: rollback");
  ok = ok && !run_sql(db, "ROLLBACK", false) && is_same(db, "patches: rollback", true);
  CHECK("patches: a rollback removes them", ok && patch_bytes(db) == 0);
  CHECK("patches: and the format", number(db, "SELECT v FROM t_info WHERE k='format'") == 1);
  ok = step_both(db, "UPDATE @ SET a = -2 WHERE rowid % 500 = 3", "patches: rollback");
  long bytes = patch_bytes(db);
  ok = ok && !run_sql(db, "BEGIN; SAVEPOINT s", false) &&
       step_both(db, "UPDATE @ SET a = -3, b = NULL WHERE rowid % 400 = 3", "patches: savepoint") &&
       !run_sql(db, "ROLLBACK TO s", false) && is_same(db, "patches: savepoint", false) &&
       patch_bytes(db) == bytes &&
       step_both(db, "UPDATE @ SET a = a - 1 WHERE rowid % 300 = 3", "patches: savepoint") &&
       !run_sql(db, "RELEASE s; COMMIT", false) && is_same(db, "patches: savepoint", true);
  CHECK("patches: a savepoint", ok && patch_bytes(db) > bytes);
  /* a statement that fails after rows were found */
  ok = run_sql(db,
               "UPDATE t SET a = abs(CASE rowid WHEN 66003 THEN -9223372036854775807 - 1 ELSE "
               "a END) WHERE rowid % 500 = 3",
               true) == SQLITE_ERROR;
  CHECK("patches: a statement that fails", ok && is_same(db, "patches: a failure", true));
  sqlite3_close(db);
}

static void connections(const char *file, const char *mode) {
  char name[100], sql[100];
  snprintf(name, sizeof name, "patches: two connections, %s", mode);
  snprintf(sql, sizeof sql, "PRAGMA journal_mode=%s", mode);
  unlink(file);
  sqlite3 *a = open_db(file, "cpu");
  bool ok = !run_sql(a, sql, false) && make_tables(a, ROWS) && is_same(a, name, false);
  sqlite3 *b = open_db(file, "cpu");
  ok = ok && is_same(b, name, false);
  for (int i = 0; i < 6 && ok; i++) {
    sqlite3 *w = i % 2 ? a : b, *r = i % 2 ? b : a;
    char *one =
        sqlite3_mprintf("UPDATE @ SET a = a + %d, e = 'c%d' WHERE rowid %% 400 = %d", i, i, i % 3);
    ok = !run_sql(w, "BEGIN", false) && step_both(w, one, name);
    if (strcmp(mode, "WAL") == 0) ok = ok && is_same(r, name, false); /* the version before */
    ok = ok && !run_sql(w, i == 5 ? "ROLLBACK" : "COMMIT", false) && is_same(r, name, i == 3) &&
         is_same(w, name, false);
    sqlite3_free(one);
  }
  ok = ok && patch_bytes(b) > 0 && !run_sql(b, "INSERT INTO t(t) VALUES('optimize')", true) &&
       is_same(a, name, true);
  sqlite3_close(a);
  sqlite3_close(b);
  CHECK(name, ok);
}

/* Many changes one after the other, each after the file was opened again or not. */
static void long_sequence(const char *file) {
  enum { STEPS = TEST_SANITIZED ? 30 : 60, MOST_PATCHES = 64 << 10 };
  unlink(file);
  sqlite3 *db = open_db(file, "cpu");
  bool ok = make_tables(db, ROWS);
  long pages = 0, last = 0, n_folds = 0, most = 0;
  for (int i = 0; i < STEPS && ok; i++) {
    char *sql = sqlite3_mprintf("UPDATE @ SET a = %d, c = c + 0.1, e = 'w%d' WHERE rowid %% 131 = "
                                "%d",
                                i * i * 977, i % 7, i * 7 % 131);
    ok = both(db, sql) == SQLITE_OK &&
         (i % 6 || is_same(db, "patches: a long sequence", i % 4 == 0));
    sqlite3_free(sql);
    long bytes = patch_bytes(db);
    n_folds += bytes < last;
    if (bytes > most) most = bytes;
    last = bytes;
    if (i == STEPS / 3) pages = number(db, "PRAGMA page_count");
    if (i % 10 != 9) continue;
    sqlite3_close(db);
    db = open_db(file, "cpu");
  }
  CHECK("patches: a long sequence", ok && is_same(db, "patches: a long sequence", true));
  CHECK("patches: they are applied from time to time", n_folds > STEPS / 20);
  CHECK("patches: the directory stays small", most > 0 && most <= 2 * MOST_PATCHES);
  CHECK("patches: the file stays small", number(db, "PRAGMA page_count") < pages + pages / 4);
  sqlite3_close(db);
}

/* Tablets of other sizes: one row, a few, one more than a tablet. */
static void sizes(void) {
  static const int n_rows[] = {1, 2, 63, 64, 600, 4097, 65536, 65537};
  for (size_t i = 0; i < sizeof n_rows / sizeof *n_rows; i++) {
    char name[100];
    snprintf(name, sizeof name, "patches: %d rows", n_rows[i]);
    sqlite3 *db = open_db(":memory:", "cpu");
    bool ok = make_tables(db, n_rows[i]) &&
              step_both(db, "UPDATE @ SET a = -5 WHERE rowid % 7 = 1 AND rowid < 600", name) &&
              step_both(db, "UPDATE @ SET a = -6, g = 'last' WHERE rowid > 65500", name) &&
              step_both(db, "UPDATE @ SET e = NULL WHERE rowid % 900 < 2", name) &&
              step_both(db, "UPDATE @ SET n = NULL", name) &&
              step_both(db, "UPDATE @ SET n = 1 WHERE rowid % 500 = 1", name) &&
              step_both(db, "UPDATE @ SET n = NULL WHERE rowid % 500 = 1", name);
    CHECK(name, ok && is_same(db, name, true));
    sqlite3_close(db);
  }
}

/* A file that was written before there were patches: it is read, and can be patched. */
static void old_format(const char *file) {
  static const char *const queries[] = {"SELECT * FROM %s ORDER BY id",
                                        "SELECT s, count(*), sum(a), sum(r) FROM %s GROUP BY s"};
  bool ok = true;
  unlink(file);
  sqlite3 *db = open_db(file, "cpu");
  char *sql = sqlite3_mprintf("CREATE TABLE o(%s); CREATE VIRTUAL TABLE t USING tablet(%s)",
                              old_decl, old_decl);
  ok = !run_sql(db, sql, false) && !run_sql(db, old_rows, false) && !run_sql(db, old_file, false);
  sqlite3_free(sql);
  sqlite3_close(db);
  db = open_db(file, "cpu");
  for (int step = 0; step < 3 && ok; step++) {
    char text[300];
    for (int k = 0; k < 4 && ok; k++) {
      int rc;
      snprintf(text, sizeof text, queries[k / 2], "o");
      uint64_t want = digest_query(db, text, false, 1, &rc);
      snprintf(text, sizeof text, queries[k / 2], "t");
      ok = digest_query(db, text, k % 2, 1, &rc) == want && !rc;
    }
    ok = ok && strcmp(one_text(db, "SELECT warplite_check('t')", text, sizeof text), "ok") == 0;
    long format = number(db, "SELECT v FROM t_info WHERE k='format'");
    ok = ok && format == (step == 0 ? 1 : 2);
    if (step == 0) ok = ok && !both(db, "UPDATE @ SET a = 1000 + id WHERE id % 16 = 2");
    if (step == 1) ok = ok && !run_sql(db, "INSERT INTO t(t) VALUES('optimize')", false);
  }
  CHECK("patches: a file of format 1", ok);
  sqlite3_close(db);
}

int main(int argc, char **argv) {
  const char *tmp = getenv("TMPDIR");
  char file[300];
  (void)argc;
  (void)argv;
  snprintf(file, sizeof file, "%s/patches-%d.db", tmp ? tmp : "/tmp", (int)getpid());
  one_by_one("cpu");
  if (!TEST_SANITIZED) one_by_one("sim");
  rollbacks();
  sizes();
  connections(file, "DELETE");
  connections(file, "WAL");
  long_sequence(file);
  old_format(file);
  unlink(file);
  return tap_done();
}
