/*
** For functions that take the name of a table or change the schema; see functions.h.
*/
#include "api/functions.h"

char *wl_schema_of(sqlite3 *db, const char *name, int *rc) {
  sqlite3_stmt *q = NULL;
  char *found = NULL;
  *rc = sqlite3_prepare_v2(db,
                           "SELECT l.schema FROM pragma_table_list AS l JOIN pragma_database_list "
                           "AS d ON d.name = l.schema WHERE l.name = ?1 COLLATE NOCASE "
                           "ORDER BY d.seq <> 1, d.seq LIMIT 1",
                           -1, &q, NULL);
  if (*rc) return NULL;
  sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
  *rc = sqlite3_step(q);
  if (*rc == SQLITE_ROW) found = sqlite3_mprintf("%s", sqlite3_column_text(q, 0));
  *rc = *rc == SQLITE_ROW && !found               ? SQLITE_NOMEM
        : *rc == SQLITE_ROW || *rc == SQLITE_DONE ? SQLITE_OK
                                                  : *rc;
  sqlite3_finalize(q);
  return found;
}

wl_status wl_schema_failed(const wl_schema_change *j, int rc, wl_error *err) {
  if (rc == SQLITE_NOMEM) return wl_nomem(err);
  return wl_fail(err, (wl_status)(rc & 0xff), "%s: %s", j->function, sqlite3_errmsg(j->db));
}

wl_status wl_schema_run(const wl_schema_change *j, char *sql, wl_error *err) {
  if (!sql) return wl_nomem(err);
  int rc = sqlite3_exec(j->db, sql, NULL, NULL, NULL);
  sqlite3_free(sql);
  return rc ? wl_schema_failed(j, rc, err) : WL_OK;
}

static wl_status locked(const wl_schema_change *j, wl_error *err) {
  return wl_fail(err, (wl_status)SQLITE_LOCKED,
                 "%s: %.100s is locked: another statement of this connection is still running",
                 j->function, j->table);
}

/* The number of statements in progress, including the one that calls the function. */
static int n_running(sqlite3 *db) {
  int n = 0;
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, NULL); s; s = sqlite3_next_stmt(db, s))
    n += sqlite3_stmt_busy(s) != 0;
  return n;
}

/* Fails if the calling statement itself reads a table, because then no table can be dropped. */
static wl_status try_drop(const wl_schema_change *j, wl_error *err) {
  wl_status rc =
      wl_schema_run(j, sqlite3_mprintf("CREATE TABLE \"%w\".\"%w\"(x)", j->schema, j->other), err);
  if (!rc)
    rc = wl_schema_run(j, sqlite3_mprintf("DROP TABLE \"%w\".\"%w\"", j->schema, j->other), err);
  return rc == (wl_status)SQLITE_LOCKED ? locked(j, err) : rc;
}

wl_status wl_schema_make_change(wl_schema_change *j, wl_status (*steps)(void *arg, wl_error *err),
                                void *arg, wl_error *err) {
  wl_error lost = {0};
  int legacy = 0;
  bool alone = sqlite3_get_autocommit(j->db) != 0;
  if (n_running(j->db) > 1)
    return locked(j, err); /* undoing schema changes would end the other statements */
  sqlite3_int64 last = sqlite3_last_insert_rowid(j->db);
  sqlite3_uint64 number;
  sqlite3_randomness((int)sizeof number, &number);
  /* The name does not begin with warplite_: SQLite would run the statements (see route.c). */
  sqlite3_snprintf(sizeof j->other, j->other, "wl_change_%016llx", number);
  sqlite3_db_config(j->db, SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, -1, &legacy);
  sqlite3_db_config(j->db, SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, 1, NULL);
  wl_status rc = wl_schema_run(j, sqlite3_mprintf("SAVEPOINT %s", j->other), err);
  if (!rc) {
    rc = try_drop(j, err);
    if (!rc) rc = steps(arg, err);
    if (!rc) rc = wl_schema_run(j, sqlite3_mprintf("RELEASE %s", j->other), err);
    if (rc && !sqlite3_get_autocommit(j->db)) {
      /* A RELEASE that commits could fail, as the first one may have. */
      char *sql = alone ? sqlite3_mprintf("ROLLBACK")
                        : sqlite3_mprintf("ROLLBACK TO %s; RELEASE %s", j->other, j->other);
      wl_status back = wl_schema_run(j, sql, &lost);
      (void)back; /* report the first error */
    }
  }
  sqlite3_db_config(j->db, SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, legacy, NULL);
  sqlite3_set_last_insert_rowid(j->db, last);
  return rc;
}
