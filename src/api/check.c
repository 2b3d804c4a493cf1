/*
** warplite_check('t') checks that a tablet table is intact.
**
** Invariant: the whole check runs inside one read transaction, so all parts that it compares are of
** one version, whatever others commit meanwhile.
*/
#include "api/functions.h"
#include "base/mem.h"
#include "tablet/write/write.h"
#include <string.h>

/* Prepares a text and frees it. */
static int prepare(sqlite3 *db, char *sql, sqlite3_stmt **out) {
  *out = NULL;
  int rc = sql ? sqlite3_prepare_v2(db, sql, -1, out, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  return rc;
}

/* Opens a read transaction on a database. It lasts until the statement is finalized. */
static int open_read(sqlite3 *db, const char *schema, sqlite3_stmt **out) {
  int rc = prepare(db, sqlite3_mprintf("SELECT count(*) FROM \"%w\".sqlite_schema", schema), out);
  if (!rc) rc = sqlite3_step(*out);
  return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* Makes SQLite connect the table, if it is a virtual one. */
static int connect_table(sqlite3 *db, const char *schema, const char *name) {
  sqlite3_stmt *s;
  int rc = prepare(db, sqlite3_mprintf("SELECT 1 FROM \"%w\".\"%w\"", schema, name), &s);
  sqlite3_finalize(s);
  return rc;
}

/* Gives the type that SQLite lists for a name: "table", "view", "virtual" or "shadow", or "" if it
** lists none. */
static int type_of(sqlite3 *db, const char *schema, const char *name, char out[16]) {
  sqlite3_stmt *s;
  *out = 0;
  int rc = prepare(db,
                   sqlite3_mprintf("SELECT type FROM pragma_table_list WHERE schema = %Q COLLATE "
                                   "NOCASE AND name = %Q COLLATE NOCASE",
                                   schema, name),
                   &s);
  if (!rc) rc = sqlite3_step(s);
  if (rc == SQLITE_ROW) sqlite3_snprintf(16, out, "%s", sqlite3_column_text(s, 0));
  sqlite3_finalize(s);
  return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Sets the error. Frees text, which may be NULL. */
static void complain(sqlite3_context *ctx, int rc, char *text) {
  if (text) {
    sqlite3_result_error(ctx, text, -1);
    sqlite3_result_error_code(ctx, rc);
  } else {
    sqlite3_result_error_nomem(ctx);
  }
  sqlite3_free(text);
}

/* Sets the error for a name that is not a tablet table. */
static void refuse(sqlite3_context *ctx, const char *name, const char *type) {
  static const char *const words[][2] = {
      {"table", "an ordinary table; PRAGMA integrity_check checks it"},
      {"view", "a view"},
      {"virtual", "a virtual table of another module"},
      {"shadow", "a table behind a virtual table; name that one"},
      {"", "not a table of this connection"},
  };
  const char *what = "not a tablet table";
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(type, words[i][0]) == 0) what = words[i][1];
  complain(ctx, SQLITE_ERROR,
           sqlite3_mprintf("warplite_check checks tablet tables, and %s is %s", name, what));
}

static void check(sqlite3_context *ctx, wl_tablets *t) {
  char *problem = NULL;
  wl_error err = {0};
  wl_status st = wl_tablets_check(t, &problem, &err);
  if (st)
    complain(ctx, (int)st, sqlite3_mprintf("%s", err.text));
  else
    sqlite3_result_text(ctx, problem ? problem : "ok", -1, SQLITE_TRANSIENT);
  sqlite3_free(problem);
}

void wl_check(sqlite3_context *ctx, int n, sqlite3_value **args) {
  sqlite3 *db = ((wl_conn *)sqlite3_user_data(ctx))->db;
  const char *text = (const char *)sqlite3_value_text(args[0]), *name = text;
  sqlite3_stmt *held = NULL;
  char type[16] = "";
  int rc = SQLITE_OK;
  (void)n;
  if (!text) {
    complain(ctx, SQLITE_ERROR, sqlite3_mprintf("warplite_check needs the name of a tablet table"));
    return;
  }
  char *schema = wl_schema_of(db, text, &rc);
  const char *dot = strchr(text, '.');
  if (!rc && !schema && dot) {
    schema = sqlite3_mprintf("%.*s", (int)(dot - text), text);
    name = dot + 1;
    if (!schema) rc = SQLITE_NOMEM;
  }
  /* whether the database exists */
  bool exists = !rc && schema && sqlite3_db_readonly(db, schema) >= 0;
  if (exists) rc = open_read(db, schema, &held);
  if (exists && !rc) rc = type_of(db, schema, name, type);
  bool virtual = !rc && strcmp(type, "virtual") == 0;
  if (virtual) rc = connect_table(db, schema, name);
  wl_tablets *t = virtual && !rc ? wl_tablets_find(db, schema, name) : NULL;
  if (t)
    check(ctx, t);
  else if ((rc & 0xff) == SQLITE_CORRUPT)
    sqlite3_result_text(ctx, sqlite3_errmsg(db), -1, SQLITE_TRANSIENT);
  else if (rc)
    complain(ctx, rc, rc == SQLITE_NOMEM ? NULL : sqlite3_mprintf("%s", sqlite3_errmsg(db)));
  else
    refuse(ctx, text, type);
  sqlite3_finalize(held);
  sqlite3_free(schema);
}
