/*
** warplite_check('t'): whether a tablet table is whole.
*/
#include "api/conn.h"
#include "base/mem.h"
#include "tablet/write.h"
#include <string.h>

/* Opens a read transaction on the table, which also connects it. */
static sqlite3_stmt *hold(sqlite3 *db, const char *schema, const char *name, int *rc) {
  sqlite3_stmt *s = NULL;
  char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\".\"%w_info\", (SELECT 1 FROM \"%w\".\"%w\" "
                              "LIMIT 0)",
                              schema, name, schema, name);
  *rc = sql ? sqlite3_prepare_v2(db, sql, -1, &s, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (!*rc) *rc = sqlite3_step(s);
  if (*rc == SQLITE_ROW || *rc == SQLITE_DONE) *rc = SQLITE_OK;
  return s;
}

static void complain(sqlite3_context *ctx, int rc, const char *text) {
  sqlite3_result_error(ctx, text, -1);
  sqlite3_result_error_code(ctx, rc);
}

void wl_check(sqlite3_context *ctx, int n, sqlite3_value **args) {
  wl_conn *c = sqlite3_user_data(ctx);
  const char *text = (const char *)sqlite3_value_text(args[0]);
  char *schema = NULL, *problem = NULL, *message = NULL;
  sqlite3_stmt *held = NULL;
  wl_error err = {0};
  int rc = SQLITE_OK;
  (void)n;
  if (!text) {
    complain(ctx, SQLITE_ERROR, "warplite_check needs the name of a tablet table");
    return;
  }
  const char *dot = strchr(text, '.'), *name = text;
  schema = wl_schema_of(c->db, text, &rc);
  if (!rc && !schema && dot) {
    schema = sqlite3_mprintf("%.*s", (int)(dot - text), text);
    name = dot + 1;
  }
  if (!rc && schema) held = hold(c->db, schema, name, &rc);
  wl_tablets *t = !rc && schema ? wl_tablets_find(c->db, schema, name) : NULL;
  if ((rc & 0xff) == SQLITE_CORRUPT) {
    sqlite3_result_text(ctx, sqlite3_errmsg(c->db), -1, SQLITE_TRANSIENT);
  } else if (!t) {
    message = rc && rc != SQLITE_ERROR
                  ? sqlite3_mprintf("%s", sqlite3_errmsg(c->db))
                  : sqlite3_mprintf("%s is no tablet table that can be read%s%s", text,
                                    rc ? ": " : "", rc ? sqlite3_errmsg(c->db) : "");
    complain(ctx, rc ? rc : SQLITE_ERROR, message ? message : "out of memory");
  } else {
    wl_status st = wl_tablets_check(t, &problem, &err);
    if (st)
      complain(ctx, (int)st, err.text);
    else
      sqlite3_result_text(ctx, problem ? problem : "ok", -1, SQLITE_TRANSIENT);
  }
  sqlite3_finalize(held);
  sqlite3_free(schema);
  sqlite3_free(problem);
  sqlite3_free(message);
}
