/*
** What the clients of include/sphyraena.h share: a database with values of all types, and a SELECT
** that runs and fetches its rows.
*/
#ifndef TEST_STAGED_H
#define TEST_STAGED_H

#include <string.h>

#include "sphyraena.h"

#include "../rows.h"
#include "../tap.h"

static rows r;

static inline bool run(sqlite3 *db, const char *sql) {
  return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* The first value of a query, as a number. */
static inline int64_t number(sqlite3 *db, const char *sql) {
  rows_query(&r, db, sqlite3_prepare_v2, sql);
  return r.n_rows && r.cells[0].type == SQLITE_INTEGER ? r.cells[0].u.i : -1;
}

/* Runs a SELECT and fetches its rows. */
static inline bool fetch(sphyraena *s, const char *sql, int streaming) {
  return sphyraena_select(s, sql, streaming) == SPHYRAENA_SUCCESS &&
         sphyraena_transfer_results(s) == SPHYRAENA_SUCCESS;
}

static inline bool ran_on(const sphyraena *s, const char *device) {
  const char *reason = warplite_reason(s->db);
  char part[16];
  snprintf(part, sizeof part, "(%s)", device);
  if (!strcmp(device, "cpu")) return !strncmp(reason, "cpu:", 4);
  return !strncmp(reason, "gpu:", 4) && strstr(reason, part);
}

static const char values[] =
    "CREATE TABLE v(id INTEGER PRIMARY KEY, i INTEGER, f REAL, t TEXT, b BLOB, m, n INTEGER);"
    "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x < 65537)"
    " INSERT INTO v SELECT x, x * 1000003, x / 3.0, 'text ' || (x % 300), CAST(x AS BLOB),"
    "  CASE x % 5 WHEN 0 THEN x WHEN 1 THEN x * 0.5 WHEN 2 THEN 'm' || x WHEN 3 THEN "
    "  x'00ff' END, CASE WHEN x % 3 THEN x END FROM c;"
    "UPDATE v SET i = 9223372036854775807, f = 9e999, t = '', b = x'', m = 1 WHERE id = 2;"
    "UPDATE v SET i = -9223372036854775807 - 1, f = -0.0, t = 'a' || char(0) || 'b', b = x'610062' "
    " WHERE id = 3;"
    "UPDATE v SET i = NULL, f = NULL, t = NULL, b = NULL, m = NULL WHERE id = 4;"
    "CREATE TABLE w(id INTEGER PRIMARY KEY, name TEXT);"
    "WITH RECURSIVE c(x) AS (VALUES(0) UNION ALL SELECT x+1 FROM c WHERE x < 299)"
    " INSERT INTO w SELECT x, 'text ' || x FROM c;";

#endif
