/*
** Accounts that several connections keep at once, for procs.c and shared.c: transactions that keep
** a sum and a count right, reads that must find them so, and checks of the tables.
**
** Invariants:
** 1. In acct a + b is 1000 in every row; meta has the number of rows, the sum of a, and a serial
**    number that goes up by one with every commit that changes them.
** 2. SQLITE_BUSY and SQLITE_LOCKED, in any of their forms, are the only errors there may be.
*/
#ifndef TEST_ACCOUNTS_H
#define TEST_ACCOUNTS_H

#include <time.h>

#include "changes.h"

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct worker {
  sqlite3 *db;
  rng r;
  double until;
  long n_done, n_busy, n_checks;
  sqlite3_int64 serial; /* the last one seen */
  char why[700];        /* what is wrong */
} worker;

/* Whether to go on: notes what is no fault, and what is. */
static bool is_fine(worker *k, int rc, const char *sql) {
  if (rc == SQLITE_OK) return true;
  if ((rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED) {
    k->n_busy++;
  } else if (!k->why[0]) {
    snprintf(k->why, sizeof k->why, "%s: %s (%d)", sql, sqlite3_errmsg(k->db), rc);
  }
  return false;
}

static bool act(worker *k, const char *sql, bool taken) {
  return is_fine(k, run_sql(k->db, sql, taken), sql);
}

/* The integers of a query's one row. */
static bool ask(worker *k, const char *sql, bool taken, sqlite3_int64 *out, int n) {
  sqlite3_stmt *q = NULL;
  int rc = taken ? warplite_prepare(k->db, sql, -1, &q, NULL)
                 : sqlite3_prepare_v2(k->db, sql, -1, &q, NULL);
  if (!rc) rc = sqlite3_step(q);
  for (int i = 0; rc == SQLITE_ROW && i < n; i++) out[i] = sqlite3_column_int64(q, i);
  if (rc == SQLITE_ROW) rc = sqlite3_step(q);
  bool ok = is_fine(k, rc == SQLITE_DONE ? SQLITE_OK : rc, sql);
  sqlite3_finalize(q);
  return ok;
}

/* ---- writing */

/* Adds to the count and the sum of meta, and one to the serial number. */
static bool keep_books(worker *k, sqlite3_int64 rows, sqlite3_int64 sum, bool taken) {
  char sql[300];
  snprintf(sql, sizeof sql,
           "UPDATE meta SET n=n+%lld WHERE k='count'; UPDATE meta SET n=n+%lld WHERE k='sum'; "
           "UPDATE meta SET n=n+1 WHERE k='serial'",
           (long long)rows, (long long)sum);
  return act(k, sql, taken);
}

static bool move_money(worker *k, bool taken) {
  char sql[200];
  int by = rng_below(&k->r, 100) - 50, m = 1 + rng_below(&k->r, 40);
  snprintf(sql, sizeof sql, "UPDATE acct SET a=a+(%d), b=b-(%d) WHERE id%%%d=%d", by, by, m,
           rng_below(&k->r, m));
  if (!act(k, sql, taken)) return false;
  return keep_books(k, 0, (sqlite3_int64)by * sqlite3_changes(k->db), taken);
}

static bool open_accounts(worker *k, bool taken) {
  char sql[300];
  int n = rng_chance(&k->r, 50) ? 1 : 1 + rng_below(&k->r, 200);
  if (n == 1) {
    snprintf(sql, sizeof sql, "INSERT INTO acct(a,b,note) VALUES(1, 999, 'one %d')",
             rng_below(&k->r, 9));
  } else {
    snprintf(sql, sizeof sql,
             "INSERT INTO acct(a,b,note) SELECT n, 1000-n, 'note '||n FROM seq WHERE n<=%d", n);
  }
  return act(k, sql, taken) && keep_books(k, n, (sqlite3_int64)n * (n + 1) / 2, taken);
}

static bool close_accounts(worker *k, bool taken) {
  char sql[300], where[100];
  sqlite3_int64 x[2];
  if (rng_chance(&k->r, 50))
    snprintf(where, sizeof where, "id=%d", 1 + rng_below(&k->r, 3000));
  else
    snprintf(where, sizeof where, "id>400 AND id%%%d=0", 2 + rng_below(&k->r, 9));
  snprintf(sql, sizeof sql, "SELECT count(*), coalesce(sum(a),0) FROM acct WHERE %s", where);
  if (!ask(k, sql, taken, x, 2)) return false;
  snprintf(sql, sizeof sql, "DELETE FROM acct WHERE %s", where);
  if (!act(k, sql, taken)) return false;
  if (sqlite3_changes(k->db) != x[0] && !k->why[0]) {
    snprintf(k->why, sizeof k->why, "%s: %d changes of %lld", sql, sqlite3_changes(k->db),
             (long long)x[0]);
    return false;
  }
  return keep_books(k, -x[0], -x[1], taken);
}

static bool write_once(worker *k, bool tablets) {
  bool taken = rng_chance(&k->r, 50) && tablets;
  int kind = rng_below(&k->r, 100);
  /* a deferred one may find that another was faster */
  if (!act(k, rng_chance(&k->r, 70) ? "BEGIN IMMEDIATE" : "BEGIN", false)) return false;
  bool ok = kind < 40   ? move_money(k, taken)
            : kind < 65 ? open_accounts(k, taken)
            : kind < 95 ? close_accounts(k, taken)
            : tablets   ? act(k, "INSERT INTO acct(acct) VALUES('optimize')", false)
                        : true;
  if (ok && rng_chance(&k->r, 90) && act(k, "COMMIT", false)) {
    k->n_done++;
  } else if (!sqlite3_get_autocommit(k->db)) {
    act(k, "ROLLBACK", false);
  }
  return ok;
}

/* ---- reading */

static const char *const books =
    "SELECT count(*), sum(a), sum(b), (SELECT n FROM meta WHERE k='count'), (SELECT n FROM meta "
    "WHERE k='sum'), (SELECT n FROM meta WHERE k='serial') FROM acct";

static bool are_right(worker *k, const sqlite3_int64 *x, bool taken, const char *when) {
  bool ok = x[0] == x[3] && x[1] == x[4] && x[1] + x[2] == 1000 * x[0] && x[5] >= k->serial;
  if (!ok && !k->why[0])
    snprintf(k->why, sizeof k->why,
             "%s, %s: %lld rows of %lld, sums %lld of %lld and %lld, serial %lld after %lld", when,
             taken ? warplite_reason(k->db) : "plain", (long long)x[0], (long long)x[3],
             (long long)x[1], (long long)x[4], (long long)x[2], (long long)x[5],
             (long long)k->serial);
  k->serial = x[5];
  return ok;
}

/* warplite_check must find a whole table, whatever is written meanwhile. */
static bool check_once(worker *k) {
  static const char *const tables[] = {"acct", "meta", "main.acct"};
  char sql[100];
  sqlite3_stmt *q = NULL;
  snprintf(sql, sizeof sql, "SELECT warplite_check('%s')", tables[rng_below(&k->r, 3)]);
  int rc = sqlite3_prepare_v2(k->db, sql, -1, &q, NULL);
  if (!rc) rc = sqlite3_step(q);
  const char *said = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(q, 0) : NULL;
  bool ok = is_fine(k, rc == SQLITE_ROW ? SQLITE_OK : rc, sql);
  if (ok && (!said || strcmp(said, "ok") != 0)) {
    snprintf(k->why, sizeof k->why, "%s: %s", sql, said ? said : "NULL");
    ok = false;
  }
  sqlite3_finalize(q);
  k->n_checks += ok;
  return ok;
}

static bool read_once(worker *k, bool tablets) {
  bool taken = rng_chance(&k->r, 60);
  sqlite3_int64 x[6], y[6], bad = 0;
  if (tablets && rng_chance(&k->r, 15)) return check_once(k);
  if (rng_chance(&k->r, 50)) { /* one statement */
    if (!ask(k, books, taken, x, 6)) return false;
    k->n_done++;
    return are_right(k, x, taken, "one statement");
  }
  if (!act(k, "BEGIN", false)) return false;
  bool ok = ask(k, books, taken, x, 6) && are_right(k, x, taken, "in a transaction");
  ok = ok && ask(k, "SELECT count(*) FROM acct WHERE a+b<>1000", !taken, &bad, 1);
  if (ok && tablets && rng_chance(&k->r, 15)) ok = check_once(k);
  ok = ok && ask(k, books, !taken, y, 6) && are_right(k, y, !taken, "later in it");
  if (ok && (bad || memcmp(x, y, sizeof x) != 0) && !k->why[0])
    snprintf(k->why, sizeof k->why, "a transaction saw two states: serials %lld and %lld, %lld bad",
             (long long)x[5], (long long)y[5], (long long)bad);
  k->n_done += ok;
  if (!sqlite3_get_autocommit(k->db)) act(k, "COMMIT", false);
  return ok;
}

/* The tables with their first rows. */
static inline int setup_accounts(sqlite3 *db, const char *mode, bool tablets) {
  char sql[1000];
  snprintf(sql, sizeof sql,
           "PRAGMA journal_mode=%s;"
           "CREATE TABLE seq(n INTEGER PRIMARY KEY);"
           "INSERT INTO seq WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k WHERE "
           "n<400) SELECT n FROM k;"
           "CREATE %s acct%s(id INTEGER PRIMARY KEY, a INT NOT NULL, b INT, note TEXT);"
           "CREATE %s meta%s(k TEXT PRIMARY KEY, n INT);"
           "INSERT INTO meta VALUES('count',400),('sum',80200),('serial',1);"
           "INSERT INTO acct(a,b,note) SELECT n, 1000-n, 'first' FROM seq",
           mode, tablets ? "VIRTUAL TABLE" : "TABLE", tablets ? " USING tablet" : "",
           tablets ? "VIRTUAL TABLE" : "TABLE", tablets ? " USING tablet" : "");
  return run_sql(db, sql, false);
}

/* Whether the file and the accounts are right at the end; else says why. */
static inline bool accounts_are_sound(worker *k, bool tablets, char *why, size_t n) {
  sqlite3_int64 x[6];
  bool ok = strcmp(one_text(k->db, "PRAGMA integrity_check", why, n), "ok") == 0;
  if (ok && tablets)
    ok = strcmp(one_text(k->db, "SELECT warplite_check('acct')", why, n), "ok") == 0 &&
         strcmp(one_text(k->db, "SELECT warplite_check('meta')", why, n), "ok") == 0;
  for (int taken = 0; taken < 2 && ok; taken++) {
    ok = ask(k, books, taken, x, 6) && are_right(k, x, taken, "at the end");
    snprintf(why, n, "%s", k->why);
  }
  return ok;
}

#endif
