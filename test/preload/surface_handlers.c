/*
** Callbacks of the application: authorizer, trace, profile, progress, busy, hooks, functions,
** collations, the log; and interrupts.
*/
#include "surface.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const texts[] = {
    "SELECT sum(a), max(c) FROM t WHERE b > ?1", "SELECT id, a FROM t WHERE b > 600",
    "SELECT k.name, count(*) FROM t JOIN k ON k.id = t.a GROUP BY 1", "SELECT n FROM v WHERE a = 7",
    NULL};

/* ---- the authorizer */

static int policy; /* 0: OK, 1: DENY reading t.c, 2: IGNORE t.a, 3: DENY select */
static int n_asked;

static int authorizer(void *arg, int c, const char *a, const char *b, const char *d,
                      const char *e) {
  n_asked++;
  say("  asked %d %s %s %s %s", c, a ? a : "-", b ? b : "-", d ? d : "-", e ? e : "-");
  if (policy == 1 && c == SQLITE_READ && strcmp(b, "c") == 0) return SQLITE_DENY;
  if (policy == 2 && c == SQLITE_READ && strcmp(b, "a") == 0) return SQLITE_IGNORE;
  if (policy == 3 && c == SQLITE_SELECT) return SQLITE_DENY;
  return SQLITE_OK;
}

static void authorizers(sqlite3 *db) {
  for (int i = 0; texts[i]; i++) {
    title("authorizer %d", i);
    sqlite3_stmt *before = prepare(db, texts[i]);
    rows(db, before, 2, 0);
    sqlite3_reset(before);
    for (policy = 0; policy < 4; policy++) {
      say("policy %d", policy);
      sqlite3_set_authorizer(db, authorizer, NULL);
      rows(db, before, 2, 0);
      code(db, "reset", sqlite3_reset(before));
      sqlite3_stmt *s = prepare(db, texts[i]);
      for (int again = 0; again < 3 && s; again++) {
        rows(db, s, 2, 0);
        code(db, "reset", sqlite3_reset(s));
      }
      sqlite3_set_authorizer(db, NULL, NULL);
      if (s) rows(db, s, 2, 0);
      if (s) code(db, "reset", sqlite3_reset(s));
      rows(db, before, 2, 0);
      sqlite3_reset(before);
      sqlite3_finalize(s);
    }
    done(db, before);
  }
  say("asked %d", n_asked);
}

/* ---- trace and profile */

static int trace(unsigned event, void *arg, void *p, void *x) {
  if (event == SQLITE_TRACE_STMT) say("  trace statement [%s] [%s]", sqlite3_sql(p), (char *)x);
  if (event == SQLITE_TRACE_PROFILE) say("  trace profile [%s]", sqlite3_sql(p));
  if (event == SQLITE_TRACE_ROW)
    say("  trace row of [%s] data %d", sqlite3_sql(p), sqlite3_data_count(p));
  if (event == SQLITE_TRACE_CLOSE) say("  trace close");
  return 0;
}

static void old_trace(void *arg, const char *sql) {
  say("  old trace [%s]", sql);
}
static void old_profile(void *arg, const char *sql, sqlite3_uint64 ns) {
  say("  old profile [%s]", sql);
}

static void read_some(sqlite3 *db) {
  for (int i = 0; texts[i]; i++) {
    sqlite3_stmt *s = prepare(db, texts[i]);
    sqlite3_bind_int(s, 1, 100);
    rows(db, s, 3, 0);
    code(db, "reset", sqlite3_reset(s));
    rows(db, s, 500, 1);
    done(db, s);
  }
}

static void traces(sqlite3 *db) {
  title("trace");
  for (unsigned mask = 1; mask < 16; mask += mask < 4 ? 1 : 4) {
    sqlite3_trace_v2(db, mask, trace, NULL);
    read_some(db);
  }
  sqlite3_trace_v2(db, 0, NULL, NULL);
  sqlite3_stmt *s = prepare(db, texts[1]);
  rows(db, s, 2, 0);
  sqlite3_trace_v2(db, 15, trace, NULL);
  rows(db, s, 2, 0);
  code(db, "reset", sqlite3_reset(s));
  sqlite3_trace_v2(db, 0, NULL, NULL);
  done(db, s);
  sqlite3_trace(db, old_trace, NULL);
  sqlite3_profile(db, old_profile, NULL);
  read_some(db);
  sqlite3_trace(db, NULL, NULL);
  sqlite3_profile(db, NULL, NULL);
}

/* ---- progress and interrupts */

static int n_progress, stop_at;
static int progress(void *arg) {
  n_progress++;
  return stop_at && n_progress >= stop_at;
}

static void handlers(sqlite3 *db) {
  title("progress");
  for (int n = 1; n < 60; n *= 3) {
    for (stop_at = 0; stop_at < 200; stop_at = stop_at * 8 + 1) {
      n_progress = 0;
      sqlite3_progress_handler(db, n, progress, NULL);
      read_some(db);
      say("called %d", n_progress);
      sqlite3_progress_handler(db, 0, NULL, NULL);
    }
  }
  sqlite3_progress_handler(db, 1000000, progress, NULL);
  stop_at = 0;
  read_some(db);
  sqlite3_progress_handler(db, 0, NULL, NULL);
  title("interrupt");
  sqlite3_stmt *s = prepare(db, texts[1]), *u = prepare(db, texts[0]);
  sqlite3_interrupt(db);
  rows(db, s, 2, 0);
  rows(db, u, 1, 0);
  sqlite3_interrupt(db);
  row(s, 0);
  rows(db, s, 2, 0);
  rows(db, u, 1, 0);
  code(db, "reset", sqlite3_reset(s));
  code(db, "reset", sqlite3_reset(u));
  rows(db, s, 2, 0);
  sqlite3_interrupt(db);
  code(db, "reset", sqlite3_reset(s));
  rows(db, s, 2, 0);
  rows(db, s, 2, 0);
  sqlite3_interrupt(db);
  rows(db, s, 1, 0);
  rows(db, s, 2, 0); /* starts again without a reset */
  code(db, "reset", sqlite3_reset(s));
  rows(db, s, 2, 0);
  sqlite3_interrupt(db);
  done(db, s);
  done(db, u);
}

/* ---- locks */

static int busy(void *arg, int n) {
  say("  busy %d", n);
  return n < 2;
}

static void locks(sqlite3 *db) {
  title("busy");
  sqlite3 *other = surface_open("handlers.db");
  sqlite3_stmt *s = prepare(db, texts[1]), *u = prepare(db, texts[0]);
  sqlite3_busy_handler(db, busy, NULL);
  rows(db, s, 1, 0);
  sqlite3_reset(s);
  run(other, "PRAGMA locking_mode=exclusive; BEGIN EXCLUSIVE; UPDATE k SET name=name");
  rows(db, s, 2, 0);
  code(db, "reset", sqlite3_reset(s));
  rows(db, u, 2, 0);
  code(db, "reset", sqlite3_reset(u));
  sqlite3_stmt *p = prepare(db, "SELECT max(b) FROM t");
  if (p) rows(db, p, 2, 0);
  sqlite3_finalize(p);
  run(other, "ROLLBACK");
  sqlite3_close(other);
  rows(db, s, 2, 0);
  rows(db, u, 2, 0);
  done(db, s);
  done(db, u);
  sqlite3_busy_handler(db, NULL, NULL);
}

/* ---- functions and collations */

static int n_called;
static void twice(sqlite3_context *c, int n, sqlite3_value **v) {
  n_called++;
  sqlite3_result_int64(c, 2 * sqlite3_value_int64(v[0]));
}
/* Runs a query of its own. */
static void nested(sqlite3_context *c, int n, sqlite3_value **v) {
  sqlite3_stmt *s = NULL;
  sqlite3_prepare_v2(sqlite3_context_db_handle(c), "SELECT sum(a), count(*) FROM t WHERE b > ?", -1,
                     &s, NULL);
  sqlite3_bind_value(s, 1, v[0]);
  if (sqlite3_step(s) == SQLITE_ROW) sqlite3_result_value(c, sqlite3_column_value(s, 0));
  sqlite3_finalize(s);
}
static int reversed(void *arg, int n, const void *a, int m, const void *b) {
  int c = memcmp(b, a, (size_t)(n < m ? n : m));
  return c ? c : m - n;
}

static void definitions(sqlite3 *db) {
  static const char *const sql[] = {"SELECT twice(id), abs(a) FROM t WHERE id < 30",
                                    "SELECT sum(abs(a)), max(upper(c)) FROM t",
                                    "SELECT nested(id) FROM t WHERE id < 4",
                                    "SELECT c FROM t WHERE id < 20 ORDER BY c COLLATE reversed",
                                    "SELECT c FROM t WHERE id < 20 ORDER BY c COLLATE nocase DESC",
                                    NULL};
  title("functions");
  sqlite3_stmt *s = prepare(db, sql[1]);
  rows(db, s, 1, 0);
  int utf8 = SQLITE_UTF8;
  code(db, "define", sqlite3_create_function(db, "twice", 1, utf8, NULL, twice, NULL, NULL));
  code(db, "define", sqlite3_create_function(db, "nested", 1, utf8, NULL, nested, NULL, NULL));
  code(db, "define", sqlite3_create_collation(db, "reversed", utf8, NULL, reversed));
  code(db, "define", sqlite3_create_function(db, "twice", 1, utf8, NULL, twice, NULL, NULL));
  rows(db, s, 1, 0);
  code(db, "reset", sqlite3_reset(s));
  for (int i = 0; sql[i]; i++) {
    sqlite3_stmt *q = prepare(db, sql[i]);
    rows(db, q, 50, 0);
    done(db, q);
  }
  say("called %d", n_called);
  code(db, "replace abs", sqlite3_create_function(db, "abs", 1, utf8, NULL, twice, NULL, NULL));
  rows(db, s, 2, 0);
  code(db, "reset", sqlite3_reset(s));
  code(db, "replace upper",
       sqlite3_create_function(db, "upper", 1, SQLITE_UTF16, NULL, twice, NULL, NULL));
  for (int i = 0; sql[i]; i++) {
    sqlite3_stmt *q = prepare(db, sql[i]);
    rows(db, q, 50, 0);
    done(db, q);
  }
  code(db, "replace nocase", sqlite3_create_collation(db, "nocase", utf8, NULL, reversed));
  sqlite3_stmt *q = prepare(db, sql[4]);
  rows(db, q, 50, 0);
  done(db, q);
  say("called %d", n_called);
  done(db, s);
}

/* An extension that replaces a function while a connection is being opened. */
static int extend(sqlite3 *db, char **message, const void *api) {
  return sqlite3_create_function(db, "abs", 1, SQLITE_UTF8, NULL, twice, NULL, NULL);
}

static void extensions(void) {
  title("extension");
  sqlite3_auto_extension((void (*)(void))extend);
  sqlite3 *db = surface_open("handlers.db");
  sqlite3_stmt *s = prepare(db, "SELECT sum(abs(a)), max(abs(id)), count(*) FROM t");
  rows(db, s, 2, 0);
  done(db, s);
  sqlite3_reset_auto_extension();
  code(db, "close", sqlite3_close(db));
}

/* ---- hooks */

static int commit(void *arg) {
  say("  commit");
  return 0;
}
static void rollback(void *arg) {
  say("  rollback");
}
static void update(void *arg, int op, const char *d, const char *t, sqlite3_int64 r) {
  say("  update %d %s %s %lld", op, d, t, r);
}

/* Errors, with what SQLite writes to its log. */
static void logs(sqlite3 *db) {
  static const char *const sql[] = {
      "SELECT abs(id - 9223372036854775807 - 11) FROM t WHERE id < 20",
      "SELECT sum(9223372036854775807) FROM t", "SELECT json(c) FROM t WHERE id > 5", NULL};
  title("log");
  for (int i = 0; sql[i]; i++) {
    sqlite3_stmt *s = prepare(db, sql[i]);
    rows(db, s, 30, 0);
    done(db, s);
  }
}

static void hooks(sqlite3 *db) {
  title("hooks");
  sqlite3_commit_hook(db, commit, NULL);
  sqlite3_rollback_hook(db, rollback, NULL);
  sqlite3_update_hook(db, update, NULL);
  sqlite3_stmt *s = prepare(db, texts[1]);
  rows(db, s, 2, 0);
  run(db, "UPDATE k SET name='h' WHERE id=5");
  rows(db, s, 2, 0);
  run(db, "BEGIN; DELETE FROM k WHERE id=5; ROLLBACK");
  rows(db, s, 500, 1);
  done(db, s);
}

static void logged(void *arg, int rc, const char *message) {
  say("  log %d %s", rc, message);
}

void surface_handlers(void) {
  sqlite3_shutdown();
  sqlite3_config(SQLITE_CONFIG_LOG, logged, NULL);
  sqlite3 *db = surface_open("handlers.db");
  surface_fill(db);
  authorizers(db);
  traces(db);
  handlers(db);
  locks(db);
  hooks(db);
  logs(db);
  definitions(db);
  code(db, "close", sqlite3_close(db));
  extensions();
  db = surface_open("handlers.db");
  sqlite3_trace_v2(db, 15, trace, NULL);
  authorizers(db);
  sqlite3_close(db);
  sqlite3_shutdown();
  sqlite3_config(SQLITE_CONFIG_LOG, NULL, NULL);
}
