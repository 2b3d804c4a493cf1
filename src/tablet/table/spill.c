/*
** Avoids a bug of SQLite in WAL mode. When a transaction outgrows its page cache, SQLite spills:
** it writes pages to the WAL before the commit. Before 3.50.2 it does so wrongly together with
** savepoints. Once a page has been written twice, a rollback to a savepoint leaves frames without
** checksums. (Every statement that fails inside a transaction is such a rollback.) The frames work
** until the process ends. Then recovery stops at the first of them, and this commit and all later
** ones are lost.
**
** So when a tablet table is written while a savepoint is open, it turns spilling off until the
** savepoint ends. Pages then stay in memory, up to MOST_BYTES. Above that SQLite may spill again,
** and if it then rolls back to the savepoint, the transaction must not be committed.
**
** Invariants:
** 1. limit is not 0 exactly while this object has raised SQLite's limit. It is the old limit.
** 2. n_savepoints is what SQLite has reported. It includes the savepoints of single statements.
*/
#include "tablet/table/table_impl.h"
#include <assert.h>
#include <limits.h>

enum {
  FIXED_IN = 3050002,     /* SQLite 3.50.2 */
  MOST_BYTES = 128 << 20, /* the largest page cache while spilling is off */
  WRITES_PER_LOOK = 16    /* the size of the cache is checked after this many writes */
};

/* Runs a PRAGMA on the table's database. Returns its number or, if word is not NULL, whether its
** text is that word. -1: no answer; an authorizer may deny it. */
static int run_pragma(const wl_tablets *t, const char *pragma, const char *word) {
  sqlite3_stmt *s = NULL;
  int out = -1;
  char *sql = sqlite3_mprintf("PRAGMA \"%w\".%s", t->schema, pragma);
  if (sql && sqlite3_prepare_v2(t->db, sql, -1, &s, NULL) == SQLITE_OK &&
      sqlite3_step(s) == SQLITE_ROW) {
    const char *text = (const char *)sqlite3_column_text(s, 0);
    out = !word ? sqlite3_column_int(s, 0) : text && sqlite3_stricmp(text, word) == 0;
  }
  sqlite3_finalize(s);
  sqlite3_free(sql);
  return out;
}

static void set_limit(const wl_tablets *t, int pages) {
  char pragma[40];
  sqlite3_snprintf(sizeof pragma, pragma, "cache_spill=%d", pages);
  run_pragma(t, pragma, NULL);
}

static int db_status(const wl_tablets *t, int what) {
  int now = 0, most = 0;
  sqlite3_db_status(t->db, what, &now, &most, 0);
  return now;
}

/* The number of statements in progress that write. SAVEPOINT and ROLLBACK TO do not count. */
static int n_writing(sqlite3 *db) {
  int n = 0;
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, NULL); s; s = sqlite3_next_stmt(db, s))
    n += sqlite3_stmt_busy(s) && !sqlite3_stmt_readonly(s);
  return n;
}

/* Whether a failure would undo only a part of a transaction, so that the rest may be committed. */
static bool is_at_risk(wl_tablets *t) {
  if (!t->spill.n_savepoints || sqlite3_libversion_number() >= FIXED_IN) return false;
  /* without a transaction, a statement that fails is rolled back as a whole */
  if (sqlite3_get_autocommit(t->db) && n_writing(t->db) < 2) return false;
  if (!t->spill.mode) t->spill.mode = run_pragma(t, "journal_mode", "wal") == 0 ? 'o' : 'w';
  return t->spill.mode == 'w';
}

/* Raises SQLite's limit so that it does not spill. False: that is not possible. */
static bool raise_limit(wl_tablets *t) {
  assert(!t->spill.limit);
  int limit = run_pragma(t, "cache_spill", NULL);
  /* Setting OFF inside the transaction has no effect before its end, but the limit has. */
  bool off = limit == 0;
  if (off) {
    run_pragma(t, "cache_spill=ON", NULL);
    limit = run_pragma(t, "cache_spill", NULL);
  }
  if (limit < 0) return false;
  t->spill.safe = limit == INT_MAX; /* another table has raised it already */
  if (t->spill.safe && off) set_limit(t, 0);
  if (t->spill.safe) return true;
  /* SQLite returns the larger of the limit and the cache size. So it does not reveal a limit below
  ** the cache size, which has no effect anyway. With a limit of 1 it returns the cache size. */
  set_limit(t, 1);
  int size = run_pragma(t, "cache_spill", NULL);
  t->spill.limit = limit > size ? limit : 1;
  set_limit(t, INT_MAX);
  if (off) set_limit(t, 0); /* the limit stays */
  t->spill.n_writes = 0;
  return true;
}

/* Restores SQLite's limit, unless the application has set another one meanwhile. */
static void restore_limit(wl_tablets *t) {
  if (!t->spill.limit) return;
  int now = run_pragma(t, "cache_spill", NULL);
  if (now <= 0 || now == INT_MAX) set_limit(t, t->spill.limit);
  if (now == 0) set_limit(t, 0);
  t->spill.limit = 0;
}

void wl_spill_write(wl_tablets *t) {
  wl_spill *s = &t->spill;
  if (!s->n_savepoints || s->spilling_allowed || s->safe) return;
  if (!s->limit) {
    s->safe = !is_at_risk(t);
    if (s->safe) return;
    s->spilling_allowed = !raise_limit(t);
    return;
  }
  if (++s->n_writes % WRITES_PER_LOOK || db_status(t, SQLITE_DBSTATUS_CACHE_USED) < MOST_BYTES)
    return;
  restore_limit(t);
  s->spilling_allowed = true;
}

void wl_spill_savepoint(wl_tablets *t, int n) {
  wl_spill *s = &t->spill;
  int n_spilled = db_status(t, SQLITE_DBSTATUS_CACHE_SPILL);
  for (int i = s->n_savepoints; i <= n && i < WL_SPILL_LEVELS; i++) s->n_spilled[i] = n_spilled;
  s->n_savepoints = n + 1;
  s->safe = false;
}

void wl_spill_released(wl_tablets *t, int n) {
  t->spill.n_savepoints = n;
  t->spill.safe = false;
  if (n) return;
  t->spill.spilling_allowed = false;
  restore_limit(t);
}

void wl_spill_rolled_back(wl_tablets *t, int n) {
  wl_spill *s = &t->spill;
  int level = n < WL_SPILL_LEVELS ? n : WL_SPILL_LEVELS - 1;
  s->n_savepoints = n + 1;
  if (s->spilling_allowed && db_status(t, SQLITE_DBSTATUS_CACHE_SPILL) != s->n_spilled[level])
    s->must_roll_back = true;
}

void wl_spill_end(wl_tablets *t) {
  restore_limit(t);
  t->spill = (wl_spill){0};
}

wl_status wl_spill_check(const wl_tablets *t, wl_error *err) {
  if (!t->spill.must_roll_back) return WL_OK;
  return wl_fail(err, (wl_status)SQLITE_ABORT_ROLLBACK,
                 "the transaction is rolled back: it undid more than %d MiB written to table "
                 "%.100s, and SQLite %s could lose such a commit in WAL mode; run the transaction "
                 "again after PRAGMA cache_spill=OFF",
                 MOST_BYTES >> 20, t->name, sqlite3_libversion());
}
