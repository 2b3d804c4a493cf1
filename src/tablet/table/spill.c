/*
** Spilling in WAL mode. Where a transaction outgrows its page cache, SQLite writes pages to the WAL
** before the commit. Before 3.50.2 it does that wrongly together with savepoints: once a page has
** been written twice, a rollback to a savepoint (which every failing statement inside a transaction
** is) leaves frames without checksums. They work until the process ends; then recovery stops at the
** first of them, and this commit and all later ones are lost.
**
** So a tablet table that is written while a savepoint is open turns spilling off until the
** savepoint is gone. Pages then stay in memory, but not without bound: past MOST_BYTES SQLite
** spills again, and if it is rolled back to the savepoint after that, the transaction cannot be
** committed.
**
** Invariants:
** 1. limit is set exactly while this object has raised SQLite's limit, and is what it was.
** 2. n_savepoints is what SQLite has told: savepoints of statements as well as those of SAVEPOINT.
*/
#include "tablet/table/table_impl.h"
#include <limits.h>

enum {
  FIXED_IN = 3050002,     /* SQLite 3.50.2 */
  MOST_BYTES = 128 << 20, /* of page cache, while spilling is off */
  WRITES_PER_LOOK = 16    /* at how large the cache is */
};

/* The answer of a PRAGMA of the table's database: a number, or whether it is a word. -1: there is
** none; an authorizer may deny it. */
static int ask(const wl_tablets *t, const char *pragma, const char *word) {
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
  ask(t, pragma, NULL);
}

static int count(const wl_tablets *t, int what) {
  int now = 0, most = 0;
  sqlite3_db_status(t->db, what, &now, &most, 0);
  return now;
}

/* The statement being run, if it writes: a SAVEPOINT or ROLLBACK TO does not count as one. */
static int n_writing(sqlite3 *db) {
  int n = 0;
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, NULL); s; s = sqlite3_next_stmt(db, s))
    n += sqlite3_stmt_busy(s) && !sqlite3_stmt_readonly(s);
  return n;
}

/* Whether a failure would undo a part of a transaction whose rest may then be committed. */
static bool is_at_risk(wl_tablets *t) {
  if (!t->spill.n_savepoints || sqlite3_libversion_number() >= FIXED_IN) return false;
  /* a statement that is a transaction of its own is rolled back with it */
  if (sqlite3_get_autocommit(t->db) && n_writing(t->db) < 2) return false;
  if (!t->spill.mode) t->spill.mode = ask(t, "journal_mode", "wal") == 0 ? 'o' : 'w';
  return t->spill.mode == 'w';
}

/* False: SQLite's limit could not be raised. */
static bool hold(wl_tablets *t) {
  int limit = ask(t, "cache_spill", NULL);
  /* OFF, if it was set inside the transaction, has no effect before its end: the limit has. */
  bool off = limit == 0;
  if (off) {
    ask(t, "cache_spill=ON", NULL);
    limit = ask(t, "cache_spill", NULL);
  }
  if (limit < 0) return false;
  t->spill.safe = limit == INT_MAX; /* another table has seen to it */
  if (t->spill.safe && off) set_limit(t, 0);
  if (t->spill.safe) return true;
  /* SQLite tells the larger of the limit and the size of the cache: a limit that is smaller, and
  ** so has no effect, cannot be known. With a limit of 1 it tells the size. */
  set_limit(t, 1);
  int size = ask(t, "cache_spill", NULL);
  t->spill.limit = limit > size ? limit : 1;
  set_limit(t, INT_MAX);
  if (off) set_limit(t, 0); /* the limit stays */
  t->spill.n_writes = 0;
  return true;
}

/* What the application has set meanwhile stays. */
static void release(wl_tablets *t) {
  if (!t->spill.limit) return;
  int now = ask(t, "cache_spill", NULL);
  if (now <= 0 || now == INT_MAX) set_limit(t, t->spill.limit);
  if (now == 0) set_limit(t, 0);
  t->spill.limit = 0;
}

void wl_spill_write(wl_tablets *t) {
  wl_spill *s = &t->spill;
  if (!s->n_savepoints || s->loose || s->safe) return;
  if (!s->limit) {
    s->safe = !is_at_risk(t);
    if (s->safe) return;
    s->loose = !hold(t);
    return;
  }
  if (++s->n_writes % WRITES_PER_LOOK || count(t, SQLITE_DBSTATUS_CACHE_USED) < MOST_BYTES) return;
  release(t);
  s->loose = true;
}

void wl_spill_savepoint(wl_tablets *t, int n) {
  wl_spill *s = &t->spill;
  int n_spilled = count(t, SQLITE_DBSTATUS_CACHE_SPILL);
  for (int i = s->n_savepoints; i <= n && i < WL_SPILL_LEVELS; i++) s->n_spilled[i] = n_spilled;
  s->n_savepoints = n + 1;
  s->safe = false;
}

void wl_spill_released(wl_tablets *t, int n) {
  t->spill.n_savepoints = n;
  t->spill.safe = false;
  if (n) return;
  t->spill.loose = false;
  release(t);
}

void wl_spill_rolled_back(wl_tablets *t, int n) {
  wl_spill *s = &t->spill;
  int level = n < WL_SPILL_LEVELS ? n : WL_SPILL_LEVELS - 1;
  s->n_savepoints = n + 1;
  if (s->loose && count(t, SQLITE_DBSTATUS_CACHE_SPILL) != s->n_spilled[level]) s->doomed = true;
}

void wl_spill_end(wl_tablets *t) {
  release(t);
  t->spill = (wl_spill){0};
}

wl_status wl_spill_check(const wl_tablets *t, wl_error *err) {
  if (!t->spill.doomed) return WL_OK;
  return wl_fail(err, (wl_status)SQLITE_ABORT_ROLLBACK,
                 "the transaction is rolled back: more than %d MiB written to table %.100s were "
                 "undone in it, and SQLite %s could lose such a commit in WAL mode; run the "
                 "transaction again, with PRAGMA cache_spill=OFF before it",
                 MOST_BYTES >> 20, t->name, sqlite3_libversion());
}
