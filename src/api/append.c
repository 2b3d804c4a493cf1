/*
** warplite_append(): appends the rows of an Arrow stream to a tablet table. Each array of the
** stream is inserted by its own statement, all inside one savepoint.
*/
#include "api/enable.h"
#include "api/functions.h"
#include "base/authorizer.h"
#include "tablet/write/arrow_append.h"
#include "warplite.h"
#include <stdio.h>
#include <string.h>

static int fail(wl_conn *c, int rc, const char *text) {
  snprintf(c->errmsg, sizeof c->errmsg, "%s", text);
  return rc;
}

/* Appends all arrays through the statement. */
static int append_all(wl_conn *c, sqlite3_stmt *stmt, struct ArrowArrayStream *in) {
  struct ArrowSchema schema = {0};
  struct ArrowArray rows = {0};
  int rc = SQLITE_OK;
  if (in->get_schema(in, &schema)) {
    const char *why = in->get_last_error ? in->get_last_error(in) : NULL;
    return fail(c, SQLITE_ERROR, why ? why : "the stream has no schema");
  }
  while (!rc) {
    if (in->get_next(in, &rows)) {
      const char *why = in->get_last_error ? in->get_last_error(in) : NULL;
      rc = fail(c, SQLITE_ERROR, why ? why : "the stream failed");
      break;
    }
    if (!rows.release) break;
    wl_append a = {&schema, &rows, c->set.threads, WL_OK};
    rc = sqlite3_bind_pointer(stmt, 1, &a, WL_APPEND_TYPE, NULL);
    if (!rc) {
      sqlite3_step(stmt);
      rc = sqlite3_reset(stmt);
    }
    if (rc) fail(c, rc, sqlite3_errmsg(c->db));
    if (a.status == WL_NOT_TAKEN) rc = SQLITE_CONSTRAINT;
    sqlite3_bind_null(stmt, 1);
    rows.release(&rows);
  }
  if (schema.release) schema.release(&schema);
  return rc;
}

int warplite_append(sqlite3 *db, const char *zSchema, const char *zTable,
                    struct ArrowArrayStream *in) {
  wl_error err = {0};
  sqlite3_stmt *stmt = NULL;
  char *sql = NULL, *schema = NULL;
  bool saved = false, alone = false;
  if (!db || !zTable || !in || !in->release) return SQLITE_MISUSE;
  int rc = warplite_enable(db);
  if (rc) return rc;
  sqlite3_mutex_enter(sqlite3_db_mutex(db));
  wl_conn *c = wl_enable(db, &err);
  if (!c) {
    rc = SQLITE_NOMEM;
    goto done;
  }
  /* The hidden column has the table's name. Preparing this also connects the table. */
  if (!zSchema) {
    schema = wl_schema_of(db, zTable, &rc);
    if (rc) fail(c, rc, sqlite3_errmsg(db));
    if (rc) goto done;
    zSchema = schema ? schema : "main";
  }
  sql = sqlite3_mprintf("INSERT INTO \"%w\".\"%w\"(\"%w\") VALUES(?)", zSchema, zTable, zTable);
  wl_mask *mask = NULL; /* IGNORE: nothing is inserted, as with INSERT */
  rc = sql ? wl_ask_prepare(db, sql, -1, &stmt, NULL, &mask) : SQLITE_NOMEM;
  wl_mask_free(mask);
  if (rc == SQLITE_NOMEM) {
    fail(c, rc, "out of memory");
    goto done;
  }
  if (rc || !wl_tablets_find(db, zSchema, zTable)) {
    const char *why = rc ? sqlite3_errmsg(db) : "";
    if (strstr(why, "has no column named")) why = ""; /* any table but a tablet table lacks it */
    snprintf(c->errmsg, sizeof c->errmsg, "warplite_append: %.100s is not a tablet table%s%.300s",
             zTable, *why ? ": " : "", why);
    rc = SQLITE_NOTFOUND;
    goto done;
  }
  alone = sqlite3_get_autocommit(db) != 0;
  rc = sqlite3_exec(db, "SAVEPOINT warplite_append", NULL, NULL, NULL);
  saved = !rc;
  if (rc) fail(c, rc, sqlite3_errmsg(db));
  if (!rc) rc = append_all(c, stmt, in);
  sqlite3_finalize(stmt);
  stmt = NULL;
  if (!rc) {
    rc = sqlite3_exec(db, "RELEASE warplite_append", NULL, NULL, NULL);
    if (rc) fail(c, rc, sqlite3_errmsg(db));
  }
  if (rc && saved && !sqlite3_get_autocommit(db))
    sqlite3_exec(db, alone ? "ROLLBACK" : "ROLLBACK TO warplite_append; RELEASE warplite_append",
                 NULL, NULL, NULL);
done:
  sqlite3_finalize(stmt);
  sqlite3_free(sql);
  sqlite3_free(schema);
  sqlite3_mutex_leave(sqlite3_db_mutex(db));
  in->release(in);
  return rc;
}
