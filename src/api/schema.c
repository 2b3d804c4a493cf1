/*
** Finds the database of a table name without schema, for functions that take a name.
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
