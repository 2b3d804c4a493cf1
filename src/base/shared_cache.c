/*
** See shared_cache.h. SQLite has no function for this. But it uses table locks only for a database
** whose cache can be shared, and EXPLAIN lists them.
*/
#include "base/shared_cache.h"
#include <string.h>

/* Whether another connection shares a cache with this one now. One of SQLite's two counters counts
** a shared cache fully for each connection, the other divides it among them. */
static bool is_shared_now(sqlite3 *db) {
  int used = 0, part = 0, high;
  sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_USED, &used, &high, 0);
  sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_USED_SHARED, &part, &high, 0);
  return part != used;
}

wl_status wl_shared_cache(sqlite3 *db, const char *schema, bool *out, bool *sure, wl_error *err) {
  sqlite3_stmt *q = NULL;
  *out = false;
  char *sql = sqlite3_mprintf("EXPLAIN SELECT 1 FROM \"%w\".sqlite_schema", schema);
  int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &q, NULL) : SQLITE_NOMEM;
  sqlite3_free(sql);
  while (!rc && !*out && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    const char *opcode = (const char *)sqlite3_column_text(q, 1);
    *out = opcode && strcmp(opcode, "TableLock") == 0;
    rc = SQLITE_OK;
  }
  sqlite3_finalize(q);
  *sure = rc != SQLITE_AUTH;
  if (!*sure) *out = is_shared_now(db);
  if (rc == SQLITE_OK || rc == SQLITE_DONE || rc == SQLITE_AUTH) return WL_OK;
  return rc == SQLITE_NOMEM ? wl_nomem(err) : wl_fail(err, (wl_status)rc, "%s", sqlite3_errmsg(db));
}
