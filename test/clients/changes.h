/*
** Random transactions over tablet tables, for the tests of durability, and the model they are
** held against: the same statements over ordinary tables in memory.
**
** Invariants:
** 1. What a transaction does depends on the random numbers alone, never on what a statement did:
**    another process with the same seed makes the same transactions.
** 2. A statement that breaks a constraint must break it in both; anything else must succeed in
**    both, unless the disk is in trouble.
*/
#ifndef TEST_CHANGES_H
#define TEST_CHANGES_H

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../engines.h"
#include "../rng.h"
#include "../tap.h"

enum { MAX_CHANGES = 12, MAX_SQL = 400 };

typedef struct change {
  char sql[MAX_SQL];
  bool taken;    /* through warplite_prepare */
  bool not_both; /* only tablet tables know it: the model leaves it out */
} change;

/* What a transaction is made of. */
typedef enum changes_kind {
  CHANGES_ANY,
  CHANGES_KEPT,    /* no ROLLBACK TO; one in four statements fails after many rows */
  CHANGES_FAILING, /* the same; one in two */
  CHANGES_BULK     /* statements of thousands of rows */
} changes_kind;

typedef struct changes {
  int n;
  change at[MAX_CHANGES];
  bool commit;
} changes;

static const char *const changes_t =
    "id INTEGER PRIMARY KEY, a INT, s TEXT COLLATE NOCASE, r REAL, d TEXT NOT NULL DEFAULT 'd', "
    "u UNIQUE, CHECK(a IS NULL OR a < 1000000)";
static const char *const changes_v = "x, y BLOB";
static const char *const changes_b =
    "k INT, w TEXT, f REAL NOT NULL DEFAULT 1.5"; /* the large one */

static long changes_in_bulk; /* statements that were written in bulk */

/* Runs all of a text; the first error ends it. */
static inline int run_sql(sqlite3 *db, const char *sql, bool taken) {
  while (*sql) {
    sqlite3_stmt *q = NULL;
    int rc =
        taken ? warplite_prepare(db, sql, -1, &q, &sql) : sqlite3_prepare_v2(db, sql, -1, &q, &sql);
    if (rc) return rc;
    if (!q) break;
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
    }
    sqlite3_finalize(q);
    if (rc != SQLITE_DONE) return rc;
  }
  return SQLITE_OK;
}

/* One statement of a transaction; ordinary tables know no commands. */
static inline int run_change(sqlite3 *db, const change *c, bool tablets) {
  if (c->not_both && !tablets) return SQLITE_OK;
  int rc = run_sql(db, c->sql, c->taken && tablets);
  if (!rc && c->taken && tablets) changes_in_bulk += strstr(warplite_reason(db), "in bulk") != NULL;
  return rc;
}

static inline int run_text(sqlite3 *db, char *sql) {
  int rc = run_sql(db, sql, false);
  sqlite3_free(sql);
  return rc;
}

/* The tables with their first rows. */
static inline int changes_setup(sqlite3 *db, bool tablets) {
  const char *head = tablets ? "CREATE VIRTUAL TABLE %s USING tablet(%s)" : "CREATE TABLE %s(%s)";
  int rc = run_sql(db,
                   "CREATE TABLE seq(n INTEGER PRIMARY KEY, w TEXT);"
                   "INSERT INTO seq WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM k "
                   "WHERE n<5200) SELECT n, 'word '||(n*n%37) FROM k;"
                   "CREATE TABLE o(n INTEGER PRIMARY KEY, w)",
                   false);
  if (!rc) rc = run_text(db, sqlite3_mprintf(head, "t", changes_t));
  if (!rc) rc = run_text(db, sqlite3_mprintf(head, "v", changes_v));
  if (!rc) rc = run_text(db, sqlite3_mprintf(head, "b", changes_b));
  if (!rc)
    rc = run_sql(db,
                 "INSERT INTO t(a,s,r,d,u) SELECT n%50, w, n/4.0, 'd', n*2 FROM seq WHERE "
                 "n<=400;"
                 "INSERT INTO v(x,y) SELECT w, CAST(w AS BLOB) FROM seq WHERE n%2 AND n<=400;"
                 "INSERT INTO b(k,w,f) SELECT n, w, n*0.5 FROM seq",
                 tablets);
  if (!rc && tablets) rc = run_sql(db, "INSERT INTO t(t) VALUES('optimize')", false);
  return rc;
}

/* ---- one statement */

static const char *some_value(rng *r, char *out, size_t n) {
  switch (rng_below(r, 6)) {
  case 0: snprintf(out, n, "NULL"); break;
  case 1: snprintf(out, n, "%d", rng_below(r, 200) - 100); break;
  case 2: snprintf(out, n, "%d.25", rng_below(r, 1000)); break;
  case 3: snprintf(out, n, "'text %d'", rng_below(r, 30)); break;
  case 4: snprintf(out, n, "%lld", (long long)(rng_next(r) >> 20)); break;
  default: snprintf(out, n, "x'00%02x'", rng_below(r, 256)); break;
  }
  return out;
}

static void insert_one(rng *r, change *c) {
  static const char *const ors[] = {"", "", "", " OR IGNORE", " OR REPLACE"};
  const char * or = ors[rng_below(r, 5)];
  char x[60], y[60];
  if (rng_chance(r, 30)) {
    snprintf(c->sql, MAX_SQL, "INSERT INTO v(x,y) VALUES(%s,%s)", some_value(r, x, sizeof x),
             some_value(r, y, sizeof y));
  } else if (rng_chance(r, 30)) {
    snprintf(c->sql, MAX_SQL, "INSERT%s INTO t(id,a,s,r,u) VALUES(%d,%d,'id %d',0.5,%d)", or,
             1 + rng_below(r, 3000), rng_below(r, 100), rng_below(r, 9), rng_below(r, 5000));
  } else {
    snprintf(c->sql, MAX_SQL, "INSERT%s INTO t(a,s,r,u) VALUES(%d,%s,%s,%d)", or,
             rng_below(r, 1000), some_value(r, x, sizeof x), some_value(r, y, sizeof y),
             5000 + rng_below(r, 100000));
  }
}

static void insert_many(rng *r, change *c) {
  int n = 1 + rng_below(r, 400), k = rng_below(r, 1000);
  switch (rng_below(r, 4)) {
  case 0:
    snprintf(c->sql, MAX_SQL,
             "INSERT INTO t(a,s,r,d) SELECT n%%%d, w||%d, n*0.5, 'many' FROM seq WHERE n<=%d",
             1 + k % 60, k % 5, n);
    break;
  case 1:
    snprintf(c->sql, MAX_SQL,
             "INSERT OR IGNORE INTO t(a,s,r,d,u) SELECT n, w, n, 'u', n*3+%d FROM seq WHERE n<=%d",
             k, n);
    break;
  case 2:
    snprintf(c->sql, MAX_SQL,
             "INSERT INTO t(a,s,r,d) SELECT a, s, r, d FROM t WHERE id%%%d=%d AND id<%d", 11,
             k % 11, 2000);
    break;
  default:
    snprintf(c->sql, MAX_SQL,
             "INSERT INTO v(x,y) SELECT n*%d, w FROM seq WHERE n BETWEEN %d AND 400", k + 1, n);
    break;
  }
}

static void update_some(rng *r, change *c) {
  int k = rng_below(r, 1000);
  switch (rng_below(r, 8)) {
  case 0: snprintf(c->sql, MAX_SQL, "UPDATE t SET r=r+0.25 WHERE id=%d", k * 2); break;
  case 1:
    snprintf(c->sql, MAX_SQL, "UPDATE t SET s='changed '||a, a=a+1 WHERE a%%%d=%d AND a<900000",
             2 + k % 9, k % 3);
    break;
  case 2:
    snprintf(c->sql, MAX_SQL, "UPDATE t SET r=id*0.5, d=d||'.' WHERE id BETWEEN %d AND %d", k,
             k + 300);
    break;
  case 3: snprintf(c->sql, MAX_SQL, "UPDATE t SET u=NULL WHERE u%%%d=0", 3 + k % 20); break;
  case 4: snprintf(c->sql, MAX_SQL, "UPDATE t SET id=id+%d WHERE id=%d", 20000 + k, k); break;
  case 5: snprintf(c->sql, MAX_SQL, "UPDATE v SET y=x, x=%d WHERE rowid%%7=%d", k, k % 7); break;
  case 6: snprintf(c->sql, MAX_SQL, "UPDATE t SET a=1000000 WHERE id=%d", k); break;
  default: snprintf(c->sql, MAX_SQL, "UPDATE v SET x=NULL"); break;
  }
}

static void delete_some(rng *r, change *c) {
  int k = rng_below(r, 1000);
  switch (rng_below(r, 7)) {
  case 0: snprintf(c->sql, MAX_SQL, "DELETE FROM t WHERE id=%d", k * 2); break;
  case 1: snprintf(c->sql, MAX_SQL, "DELETE FROM t WHERE id%%%d=%d", 2 + k % 5, k % 2); break;
  case 2: snprintf(c->sql, MAX_SQL, "DELETE FROM t WHERE id>%d", 900 + k); break;
  case 3: snprintf(c->sql, MAX_SQL, "DELETE FROM v WHERE rowid>%d", 250 + k); break;
  case 4: snprintf(c->sql, MAX_SQL, "DELETE FROM v WHERE rowid%%3=%d", k % 3); break;
  case 5:
    snprintf(c->sql, MAX_SQL, "DELETE FROM t WHERE id BETWEEN %d AND %d", k * 2, k * 2 + 200);
    break;
  default: snprintf(c->sql, MAX_SQL, k < 150 ? "DELETE FROM t" : "DELETE FROM t WHERE a<3"); break;
  }
}

/* Statements over a table of thousands of rows, which go to tablets at once, or to patches. */
static void change_large(rng *r, change *c) {
  int k = rng_below(r, 1000);
  switch (rng_below(r, 9)) {
  case 6: snprintf(c->sql, MAX_SQL, "UPDATE b SET f=f+%d WHERE rowid%%50=%d", k, k % 50); break;
  case 7:
    snprintf(c->sql, MAX_SQL, "UPDATE b SET k=%d, w='few '||k%%%d WHERE rowid%%40=%d", k * k * k,
             1 + k % 9, k % 40);
    break;
  case 8: snprintf(c->sql, MAX_SQL, "UPDATE b SET w=NULL WHERE rowid%%60=%d", k % 60); break;
  case 0:
  case 1:
    snprintf(c->sql, MAX_SQL, "INSERT INTO b(k,w,f) SELECT n+%d, w||%d, n*0.25 FROM seq WHERE n>%d",
             k, k % 7, k);
    break;
  case 2:
    snprintf(c->sql, MAX_SQL, "UPDATE b SET f=k*0.5, w='b'||k%%%d WHERE k>%d", 1 + k, k);
    break;
  case 3: snprintf(c->sql, MAX_SQL, "UPDATE b SET k=NULL WHERE rowid%%%d=0", 2 + k % 3); break;
  case 4: snprintf(c->sql, MAX_SQL, "DELETE FROM b WHERE rowid%%2=%d", k % 2); break;
  default: /* of its end rarely: what is inserted next then comes row by row */
    snprintf(c->sql, MAX_SQL,
             k < 150 ? "DELETE FROM b WHERE rowid>900" : "DELETE FROM b WHERE k<4500");
    break;
  }
}

/* Statements of many rows, of which the last breaks a constraint. */
static void fail_late(rng *r, change *c) {
  static const char *const last[] = {
      "SELECT 1, 'x', 1, 'x', %d+7919",                             /* of the same statement */
      "SELECT 1, 'x', 1, 'x', (SELECT max(u) FROM t WHERE u < %d)", /* of the table */
      "SELECT 1000000, 'x', %d, 'x', -1",                           /* CHECK */
      "SELECT 1, 'x', %d, NULL, -2",                                /* NOT NULL */
  };
  static const char *const ors[] = {"", "", "", "", " OR FAIL"};
  int k = rng_below(r, 1000), first = 1000000 + k * 10000, n = 1 << (1 + rng_below(r, 12));
  int how = rng_below(r, 4);
  char tail[120];
  switch (rng_below(r, 8)) {
  case 0: snprintf(c->sql, MAX_SQL, "UPDATE t SET u=min(id,%d)+%d", k, first); break;
  case 1:
    snprintf(c->sql, MAX_SQL,
             "UPDATE t SET r=r+1, d=CASE WHEN id=(SELECT max(id) FROM t) THEN NULL ELSE d||%d END",
             k % 10);
    break;
  case 2:
    snprintf(c->sql, MAX_SQL,
             "INSERT INTO b(k,w,f) SELECT n, w, CASE WHEN n<%d THEN n END FROM seq", 5200 - k % 3);
    c->taken = true;
    break;
  default:
    snprintf(tail, sizeof tail, last[how], first);
    if (how == 3) c->taken = true; /* SQLite's own INSERT takes the default */
    snprintf(c->sql, MAX_SQL,
             "INSERT%s INTO t(a,s,r,d,u) SELECT n, w, n*0.5, 'late', %d+n*7919%%10007 FROM seq "
             "WHERE n<=%d "
             "UNION ALL %s",
             ors[rng_below(r, 5)], first, n, tail);
    break;
  }
}

static void any_change(rng *r, change *c) {
  int kind = rng_below(r, 100);
  c->not_both = false;
  c->taken = rng_chance(r, 50);
  if (kind < 35) {
    insert_one(r, c);
  } else if (kind < 50) {
    insert_many(r, c);
  } else if (kind < 68) {
    update_some(r, c);
  } else if (kind < 86) {
    delete_some(r, c);
  } else if (kind < 91) {
    change_large(r, c);
    c->taken = rng_chance(r, 95); /* row by row they take their time */
  } else if (kind < 93) {
    fail_late(r, c);
  } else if (kind < 96) {
    snprintf(c->sql, MAX_SQL, "INSERT OR REPLACE INTO o VALUES(%d, 'w%d')", rng_below(r, 300),
             kind);
  } else {
    static const char *const names[] = {"t", "v", "b"};
    const char *name = names[rng_below(r, 3)];
    snprintf(c->sql, MAX_SQL, "INSERT INTO %s(%s) VALUES('optimize')", name, name);
    c->not_both = true;
    c->taken = false;
  }
}

static void one_of_kind(rng *r, change *c, changes_kind kind) {
  if (kind == CHANGES_BULK) {
    change_large(r, c);
    c->taken = true;
    c->not_both = false;
  } else {
    any_change(r, c);
    if (kind != CHANGES_ANY && !c->not_both && rng_chance(r, kind == CHANGES_KEPT ? 25 : 50))
      fail_late(r, c);
  }
}

static inline void changes_make(rng *r, changes *x, changes_kind kind) {
  x->n = 1 + rng_below(r, MAX_CHANGES - 4);
  x->commit = !rng_chance(r, 12);
  for (int i = 0; i < x->n; i++) one_of_kind(r, &x->at[i], kind);
  if (x->n >= 3 && rng_chance(r, 25)) { /* a savepoint around the middle, undone or not */
    x->at[x->n] = x->at[x->n - 1];
    x->at[x->n - 1] = (change){.sql = "ROLLBACK TO s; RELEASE s"};
    if (rng_chance(r, 40) || kind != CHANGES_ANY) strcpy(x->at[x->n - 1].sql, "RELEASE s");
    x->n++;
    memmove(&x->at[2], &x->at[1], (size_t)(x->n - 1) * sizeof x->at[0]);
    x->at[1] = (change){.sql = "SAVEPOINT s"};
    x->n++;
  }
}

/* ---- what the tables hold, as one number; 0 with the error on the connection */

static uint64_t digest_bytes(uint64_t h, const void *p, int n) {
  for (int i = 0; i < n; i++) h = (h ^ ((const unsigned char *)p)[i]) * 1099511628211u;
  return h;
}

static uint64_t digest_query(sqlite3 *db, const char *sql, bool taken, uint64_t h, int *rc) {
  sqlite3_stmt *q = NULL;
  *rc = taken ? warplite_prepare(db, sql, -1, &q, NULL) : sqlite3_prepare_v2(db, sql, -1, &q, NULL);
  if (*rc) return 0;
  while ((*rc = sqlite3_step(q)) == SQLITE_ROW)
    for (int i = 0; i < sqlite3_column_count(q); i++) {
      int type = sqlite3_column_type(q, i);
      int64_t v = type == SQLITE_INTEGER ? sqlite3_column_int64(q, i) : 0;
      double d = type == SQLITE_FLOAT ? sqlite3_column_double(q, i) : 0;
      h = digest_bytes(h, &type, sizeof type);
      if (type == SQLITE_INTEGER) h = digest_bytes(h, &v, sizeof v);
      if (type == SQLITE_FLOAT) h = digest_bytes(h, &d, sizeof d);
      if (type != SQLITE_TEXT && type != SQLITE_BLOB) continue;
      const void *p = sqlite3_column_blob(q, i);
      int n = sqlite3_column_bytes(q, i);
      h = digest_bytes(digest_bytes(h, &n, sizeof n), p, n);
    }
  *rc = *rc == SQLITE_DONE ? SQLITE_OK : *rc;
  sqlite3_finalize(q);
  return h;
}

static inline uint64_t changes_digest(sqlite3 *db, bool taken, int *rc) {
  static const char *const all[] = {
      "SELECT id,a,s,r,d,u FROM t ORDER BY id", "SELECT rowid,x,y FROM v ORDER BY rowid",
      "SELECT rowid,k,w,f FROM b ORDER BY rowid", "SELECT n,w FROM o ORDER BY n"};
  uint64_t h = 14695981039346656037u;
  *rc = SQLITE_OK;
  for (int i = 0; i < 4 && !*rc; i++) h = digest_query(db, all[i], taken, h, rc);
  return h;
}

/* The one text that a query gives; "" when it fails. */
static inline const char *one_text(sqlite3 *db, const char *sql, char *out, size_t n) {
  sqlite3_stmt *q = NULL;
  out[0] = 0;
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
    snprintf(out, n, "%s", (const char *)sqlite3_column_text(q, 0));
  if (sqlite3_finalize(q) && !out[0]) snprintf(out, n, "error: %s", sqlite3_errmsg(db));
  return out;
}

/* Whether SQLite and warplite_check find the file sound; else says why. */
static inline bool is_sound(sqlite3 *db, bool tablets, char *why, size_t n) {
  one_text(db, "PRAGMA integrity_check", why, n);
  if (strcmp(why, "ok") != 0) return false;
  if (!tablets) return true;
  one_text(db, "SELECT warplite_check('t')", why, n);
  if (strcmp(why, "ok") == 0) one_text(db, "SELECT warplite_check('v')", why, n);
  if (strcmp(why, "ok") == 0) one_text(db, "SELECT warplite_check('b')", why, n);
  return strcmp(why, "ok") == 0;
}

#endif
