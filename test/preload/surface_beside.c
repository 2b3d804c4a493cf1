/*
** Calls beside a native statement: what they leave as the connection's error, and what the
** statement or another connection sees of them. The random programs have found these.
*/
#include "surface.h"
#include <stdio.h>
#include <string.h>

/* A statement that has returned two rows. */
static sqlite3_stmt *begin(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = prepare(db, sql);
  rows(db, s, 2, 0);
  return s;
}

/* After sqlite3_column_blob() a text or a number that is text is not converted to UTF-16. */
static void blobs_of_texts(sqlite3 *db) {
  title("bytes16 after blob");
  sqlite3_stmt *s = prepare(db, "SELECT id, c, b, '' FROM t");
  sqlite3_step(s);
  for (int i = 0; i < 4; i++) {
    const void *p = sqlite3_column_blob(s, i);
    say("%d: %d bytes, %d in UTF-16, type %d", p != NULL, sqlite3_column_bytes(s, i),
        sqlite3_column_bytes16(s, i), sqlite3_column_type(s, i));
  }
  sqlite3_step(s);
  for (int i = 0; i < 4; i++) {
    sqlite3_column_bytes(s, i);
    sqlite3_column_blob(s, i);
    say("%d in UTF-16, then %d", sqlite3_column_bytes16(s, i), sqlite3_column_bytes(s, i));
  }
  done(db, s);
}

static void no_function(sqlite3_context *x, int n, sqlite3_value **v) {
  sqlite3_result_null(x);
}

/* Calls that succeed and leave the error of the connection as it is. */
static void errors_that_stay(sqlite3 *db) {
  title("errors that stay");
  sqlite3 *other = surface_open(NULL);
  sqlite3_stmt *s = NULL, *unused = NULL, *failed = NULL;
  sqlite3_prepare_v2(db, "INSERT INTO k VALUES(9999, 'x')", -1, &unused, NULL);
  sqlite3_prepare_v2(db, "SELECT b, id FROM t", -1, &s, NULL);
  sqlite3_step(s);
  code(db, "reset of a statement that has not run", sqlite3_reset(unused));
  sqlite3_step(s);
  int flags = SQLITE_UTF8;
  code(db, "function", sqlite3_create_function(db, "f", 1, flags, NULL, no_function, NULL, NULL));
  sqlite3_step(s);
  code(db, "finalize of a statement that has not run", sqlite3_finalize(unused));
  sqlite3_step(s);
  sqlite3_backup *b = sqlite3_backup_init(other, "main", db, "main");
  code(db, "backup", b != NULL);
  sqlite3_backup_finish(b);
  code(db, "prepare", sqlite3_prepare_v2(db, "SELECT ( FROM t", -1, &failed, NULL));
  say("%s", sqlite3_column_text(s, 0)); /* a REAL as text */
  say("offset %d", sqlite3_error_offset(db));
  code(db, "column", SQLITE_OK);
  sqlite3_column_int(s, 50);
  sqlite3_column_text16(s, 0);
  say("column out of range: %d", sqlite3_errcode(db)); /* with the offset of the error before */
  done(db, s);
  sqlite3_close(other);
}

/* A statement that has ended natively forbids to bind, also when nothing else is native. */
static void binds_after_the_end(sqlite3 *db) {
  title("bind after the end");
  sqlite3_stmt *s = prepare(db, "SELECT id FROM t WHERE id <= ?"), *other = NULL;
  sqlite3_bind_int(s, 1, 3);
  rows(db, s, 10, 0);
  sqlite3_prepare_v2(db, "SELECT 1", -1, &other, NULL);
  code(db, "bind", sqlite3_bind_int(s, 1, 5));
  sqlite3_finalize(other);
  code(db, "bind", sqlite3_bind_int(s, 1, 5));
  code(db, "reset", sqlite3_reset(s));
  code(db, "bind", sqlite3_bind_int(s, 1, 5));
  rows(db, s, 10, 0);
  done(db, s);
}

/* Values are converted after sqlite3_close_v2(), when nothing can be prepared. */
static void values_of_orphans(void) {
  title("after close_v2");
  sqlite3 *db = surface_open("beside.db");
  sqlite3_stmt *s = begin(db, "SELECT b, id, c FROM t");
  say("close %d", sqlite3_close_v2(db));
  for (int k = 0; k < 3; k++) {
    row(s, 4 + k);
    say("step %d", sqlite3_step(s));
  }
  say("finalize %d", sqlite3_finalize(s));
}

/* Values of the current row can be converted after an interrupt. */
static void values_after_interrupt(sqlite3 *db) {
  title("after an interrupt");
  sqlite3_stmt *s = begin(db, "SELECT b, id, c FROM t");
  sqlite3_interrupt(db);
  row(s, 4);
  row(s, 6);
  code(db, "step", sqlite3_step(s));
  done(db, s);
}

static int say_trace(unsigned what, void *arg, void *p, void *x) {
  say("trace %s", (const char *)x);
  return 0;
}

static int say_row(void *arg, int n, char **values, char **names) {
  say("exec %s", values && values[0] ? values[0] : "NULL");
  return 0;
}

/* Only the application's statements are traced. */
static void traces(void) {
  title("trace while reading");
  sqlite3 *db = surface_open("beside.db");
  sqlite3_stmt *s = begin(db, "SELECT b, id FROM t"), *w = NULL;
  sqlite3_trace_v2(db, SQLITE_TRACE_STMT, say_trace, NULL);
  rows(db, s, 5, 4);
  sqlite3_exec(db, "SELECT id FROM t WHERE id < 0", say_row, NULL, NULL);
  done(db, s);
  sqlite3_prepare_v2(db, "UPDATE k SET name = 'x' WHERE id = 3", -1, &w, NULL);
  say("close %d", sqlite3_close_v2(db));
  say("step %d", sqlite3_step(w));
  sqlite3_finalize(w);
}

/* A SELECT inside a function, with a limit that would not let warplite list the functions. */
static void nested(sqlite3_context *x, int n, sqlite3_value **v) {
  sqlite3_stmt *s = NULL;
  sqlite3_prepare_v2(sqlite3_context_db_handle(x), "SELECT sum(abs(a)), max(length(c)) FROM t", -1,
                     &s, NULL);
  if (sqlite3_step(s) == SQLITE_ROW) sqlite3_result_value(x, sqlite3_column_value(s, 0));
  sqlite3_finalize(s);
}

static void low_limits(sqlite3 *db) {
  title("low limits");
  sqlite3_create_function(db, "nested", 1, SQLITE_UTF8, NULL, nested, NULL, NULL);
  run(db, "BEGIN; UPDATE k SET name = name");
  int before = sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, 200);
  sqlite3_stmt *s = begin(db, "SELECT nested(id), id FROM t");
  done(db, s);
  run(db, "ROLLBACK");
  s = begin(db, "SELECT nested(id), id FROM t");
  done(db, s);
  sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, before);
}

/* Locks on an attached database: none by a SELECT from the schema, and a step after SQLITE_BUSY
** goes on with the statement. */
static void locks_of_attached(void) {
  title("locks of an attached database");
  char sql[1200];
  sqlite3 *db = surface_open("beside.db"), *owner = surface_open("attached.db");
  run(owner, "CREATE TABLE u(x); INSERT INTO u VALUES(1),(2)");
  snprintf(sql, sizeof sql, "ATTACH '%s/attached.db' AS aux", surface_folder);
  run(db, sql);
  run(db, "BEGIN");
  sqlite3_stmt *s = prepare(db, "SELECT count(*) > 0 FROM sqlite_schema");
  rows(db, s, 2, 0);
  done(db, s);
  say("aux %d", sqlite3_txn_state(db, "aux"));
  run(owner, "INSERT INTO u VALUES(3)");
  run(db, "COMMIT");
  run(owner, "BEGIN EXCLUSIVE");
  sqlite3_stmt *reading = begin(db, "SELECT id FROM t");
  s = prepare(db, "SELECT sum(x) FROM aux.u");
  for (int k = 0; k < 2; k++) {
    rows(db, s, 1, 0);
    state(db, s);
  }
  run(owner, "COMMIT");
  done(db, reading);
  rows(db, s, 2, 0);
  state(db, s);
  done(db, s);
  sqlite3_close(db);
  sqlite3_close(owner);
}

/* ---- automatic extensions */

static int n_opened, n_second;

static void always_seven(sqlite3_context *x, int n, sqlite3_value **v) {
  sqlite3_result_int(x, 7);
}

/* It replaces functions that a private connection might use. */
static int first_extension(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
  n_opened++;
  sqlite3_create_function(db, "seven", 0, SQLITE_UTF8, NULL, always_seven, NULL, NULL);
  return sqlite3_create_function(db, "typeof", 1, SQLITE_UTF8, NULL, always_seven, NULL, NULL);
}

static int second_extension(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
  n_second++;
  if (n_second != 2) return SQLITE_OK;
  *message = sqlite3_mprintf("the second time");
  return SQLITE_CONSTRAINT;
}

static void use_opened(const char *sql) {
  sqlite3 *db = surface_open("beside.db");
  sqlite3_stmt *s = prepare(db, sql);
  rows(db, s, 50, 0);
  done(db, s);
  sqlite3_close(db);
  say("%d connections, the second extension %d times", n_opened, n_second);
}

static void automatic_extensions(void) {
  typedef void entry(void);
  title("automatic extensions");
  for (int k = 0; k < 2; k++) say("%d", sqlite3_auto_extension((entry *)first_extension));
  use_opened("SELECT count(*), sum(length(c) + seven()), min(upper(c)), typeof(1) FROM t");
  say("%d", sqlite3_auto_extension((entry *)second_extension));
  use_opened("SELECT strftime('%Y', a), CAST(b AS TEXT), typeof(a), count(*) FROM t GROUP BY 1, 2");
  sqlite3 *db = NULL;
  int rc = sqlite3_open(":memory:", &db);
  say("%d %s", rc, sqlite3_errmsg(db));
  sqlite3_close(db);
  for (int k = 0; k < 2; k++) say("%d", sqlite3_cancel_auto_extension((entry *)first_extension));
  use_opened("SELECT max(c), typeof(max(a)) FROM t");
  sqlite3_reset_auto_extension();
  say("%d", sqlite3_cancel_auto_extension((entry *)second_extension));
  use_opened("SELECT max(c), typeof(min(a)) FROM t");
}

void surface_beside(void) {
  sqlite3 *db = surface_open("beside.db");
  surface_fill(db);
  automatic_extensions(); /* before libwarplite opens connections of its own */
  blobs_of_texts(db);
  errors_that_stay(db);
  binds_after_the_end(db);
  values_after_interrupt(db);
  low_limits(db);
  say("close %d", sqlite3_close(db));
  values_of_orphans();
  traces();
  locks_of_attached();
}
