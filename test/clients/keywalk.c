/*
** Ranges and order of a key of a tablet table through plain SQLite, against an ordinary table with
** the same rows: random keys of all types, affinities and collations, bounds that are parameters,
** literals and columns of other affinities, rows in tablets and in the delta.
**
**     keywalk BUILD          (the folder is not used)
*/
#include <string.h>

#include "../rows.h"
#include "../tap.h"
#include "warplite.h"

enum { N_TABLES = TEST_SANITIZED ? 15 : 60, N_QUERIES = 120 };

static uint64_t state = 88172645463325252ULL;

static unsigned below(unsigned n) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (unsigned)(state >> 33) % n;
}

#define PICK(list) list[below(sizeof list / sizeof *list)]

/* A random value as a literal; the result is one of a few static buffers. */
static const char *value(void) {
  static char bufs[8][32];
  static int k;
  char *b = bufs[k++ % 8];
  static const char *const odd[] = {"NULL", "''", "' x'", "'0a'", "'-'", "'A'", "'a '", "7.0"};
  switch (below(7)) {
  case 0: return PICK(odd);
  case 1: snprintf(b, 32, "'%u'", below(60)); break;
  case 2: snprintf(b, 32, "'%c%u'", "abcXYZ "[below(7)], below(9)); break;
  case 3: snprintf(b, 32, "%.3f", (double)below(60000) / 1000 - 3); break;
  case 4: snprintf(b, 32, "x'%02x'", below(90)); break;
  default: snprintf(b, 32, "%d", (int)below(65) - 5); break;
  }
  return b;
}

static bool run(sqlite3 *db, const char *sql) {
  char *err = NULL;
  int rc = sqlite3_exec(db, sql, NULL, NULL, &err);
  if (rc != SQLITE_OK && rc != SQLITE_CONSTRAINT) tap_bad(sql, "%s", err);
  sqlite3_free(err);
  return rc == SQLITE_OK;
}

/* The same statement on both tables: %s is the table. */
static void both(sqlite3 *db, const char *sql) {
  for (int i = 0; i < 2; i++) {
    char text[300];
    snprintf(text, sizeof text, sql, i ? "t" : "o");
    run(db, text);
  }
}

static void fill(sqlite3 *db) {
  static const char *const types[] = {"", "TEXT", "INTEGER", "REAL", "BLOB", "NUMERIC"};
  static const char *const colls[] = {"", "", " COLLATE NOCASE", " COLLATE RTRIM"};
  char sql[300], columns[120];
  snprintf(columns, sizeof columns, "%sk %s UNIQUE%s, v, w INTEGER",
           below(3) ? "" : "id INTEGER PRIMARY KEY, ", PICK(types), PICK(colls));
  snprintf(sql, sizeof sql, "CREATE TABLE o(%s)", columns);
  run(db, sql);
  snprintf(sql, sizeof sql, "CREATE VIRTUAL TABLE t USING tablet(%s)", columns);
  run(db, sql);
  run(db, "CREATE TABLE x(a TEXT, b INTEGER, c, d NUMERIC)");
  for (int i = 0; i < 8; i++) {
    snprintf(sql, sizeof sql, "INSERT INTO x VALUES(%s,%s,%s,%s)", value(), value(), value(),
             value());
    run(db, sql);
  }
  unsigned kind = below(4); /* 2: texts alone, 3: numbers alone */
  for (unsigned i = 0, n = 5 + below(150); i < n; i++) {
    char key[32];
    snprintf(key, sizeof key, kind == 2 ? "'s%u'" : kind == 3 ? "%u" : "%.0u", i * 3);
    snprintf(sql, sizeof sql, "INSERT OR IGNORE INTO %%s(k, v, w) VALUES(%s,%s,%u)",
             kind >= 2 ? key : value(), value(), below(9));
    both(db, sql);
    if (below(20) == 0) run(db, "INSERT INTO t(t) VALUES('fold')");
    snprintf(sql, sizeof sql, "DELETE FROM %%s WHERE rowid = %u", 1 + below(60));
    if (below(10) == 0) both(db, sql);
    snprintf(sql, sizeof sql, "UPDATE OR IGNORE %%s SET k = %s WHERE rowid = %u", value(),
             1 + below(60));
    if (below(10) == 0) both(db, sql);
  }
}

/* Runs a query; every parameter of it has the same value. */
static void ask(sqlite3 *db, const char *sql, const char *parameter, rows *out) {
  char text[64];
  sqlite3_stmt *st = NULL, *p = NULL;
  rows_clear(out);
  snprintf(text, sizeof text, "SELECT %s", parameter);
  int rc = sqlite3_prepare_v2(db, text, -1, &p, NULL);
  if (!rc) rc = sqlite3_step(p) == SQLITE_ROW ? SQLITE_OK : SQLITE_ERROR;
  if (!rc) rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
  for (int i = 1; !rc && i <= sqlite3_bind_parameter_count(st); i++)
    sqlite3_bind_value(st, i, sqlite3_column_value(p, 0));
  sqlite3_finalize(p);
  if (rc)
    rows_fail(out, db, rc);
  else
    rows_step(out, db, st);
  sqlite3_finalize(st);
}

/* One random query on both tables; false after a message. */
static bool compare(sqlite3 *db, bool *walked) {
  static const char *const ops[] = {"<", "<=", ">", ">="};
  static const char *const orders[] = {
      "", "", " ORDER BY z.k", " ORDER BY z.k DESC", " ORDER BY z.k LIMIT 3", " ORDER BY z.k, z.v"};
  static const char *const results[] = {"z.rowid AS r, z.*", "z.rowid AS r, z.k", "DISTINCT z.k"};
  static rows a, b;
  char where[400] = "1", sql[700], parameter[32], why[600];
  bool join = below(10) < 3;
  snprintf(parameter, sizeof parameter, "%s", value());
  for (unsigned i = 0, n = 1 + below(3); i < n; i++) {
    char bound[32];
    if (join && below(2))
      snprintf(bound, sizeof bound, "x.%c", "abcd"[below(4)]);
    else
      snprintf(bound, sizeof bound, "%s", below(2) ? "?" : value());
    size_t used = strlen(where);
    snprintf(where + used, sizeof where - used, " AND z.k %s %s%s", PICK(ops), bound,
             below(8) ? "" : " COLLATE NOCASE");
  }
  if (below(5) == 0) strcat(where, " AND z.w > 3");
  if (below(5) == 0) strcat(where, " AND z.rowid BETWEEN 10 AND 50");
  const char *order = join ? "" : PICK(orders), *result = PICK(results);
  for (int i = 0; i < 2; i++) {
    snprintf(sql, sizeof sql, "SELECT %s FROM %s z%s WHERE %s%s", result, i ? "t" : "o",
             join ? ", x" : "", where, order);
    ask(db, sql, parameter, i ? &a : &b);
  }
  if (!*order) {
    rows_sort(&a);
    rows_sort(&b);
  }
  bool same = rows_same(&a, &b, false, why, sizeof why);
  if (!same) tap_bad(sql, "parameters %s: %s", parameter, why);
  char plan[800];
  snprintf(plan, sizeof plan, "EXPLAIN QUERY PLAN %s", sql);
  ask(db, plan, parameter, &a);
  for (size_t i = 0; i < a.n_cells; i++)
    if (a.cells[i].type == SQLITE_TEXT && strstr(a.bytes + a.cells[i].u.off, "INDEX -1:"))
      *walked = true;
  return same;
}

int main(void) {
  int n_walked = 0, n = 0;
  bool ok = true;
  for (int i = 0; i < N_TABLES && ok; i++) {
    sqlite3 *db;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK || warplite_enable(db) != SQLITE_OK) {
      tap_bad("open", "%s", sqlite3_errmsg(db));
      return tap_done();
    }
    fill(db);
    for (int q = 0; q < N_QUERIES && ok; q++, n++) {
      bool walked = false;
      ok = compare(db, &walked);
      n_walked += walked;
    }
    sqlite3_close(db);
  }
  if (ok) tap_ok("ranges of keys, as an ordinary table gives them");
  CHECK("most of them were walks", n_walked > n / 3);
  return tap_done();
}
