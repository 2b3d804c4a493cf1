/*
** Turns an ordinary table of a test into a tablet table with the same rows. On the way some rows
** are deleted and come back, and others come and go, so that there are rows in the delta, rows
** that are gone, dead ones and tablets that are not full. What SQLite reads through the virtual
** table is then compared with the ordinary table, row by row.
*/
#ifndef TEST_TABLETS_H
#define TEST_TABLETS_H

#include <stdint.h>
#include <stdlib.h>

#include "engines.h"
#include "rng.h"

static inline bool tablets_do(sqlite3 *db, char *sql) {
  char *msg = NULL;
  int rc = sql ? sqlite3_exec(db, sql, NULL, NULL, &msg) : SQLITE_NOMEM;
  if (rc) printf("  tablets: %.300s: %s\n", sql, msg ? msg : "");
  sqlite3_free(msg);
  sqlite3_free(sql);
  return rc == SQLITE_OK;
}

/* One integer of a query; -1 if there is none. */
static inline sqlite3_int64 tablets_ask(sqlite3 *db, char *sql) {
  sqlite3_stmt *s = NULL;
  sqlite3_int64 n = -1;
  if (sql && sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK &&
      sqlite3_step(s) == SQLITE_ROW)
    n = sqlite3_column_int64(s, 0);
  sqlite3_finalize(s);
  sqlite3_free(sql);
  return n;
}

/* Rows that one of the two has and the other has not, in the order of rowids. */
static inline bool tablets_same(sqlite3 *db, const char *a, const char *b) {
  sqlite3_stmt *x = NULL, *y = NULL;
  char *p = sqlite3_mprintf("SELECT _rowid_, * FROM \"%w\" ORDER BY _rowid_", a);
  char *q = sqlite3_mprintf("SELECT _rowid_, * FROM \"%w\" ORDER BY _rowid_", b);
  bool same = sqlite3_prepare_v2(db, p, -1, &x, NULL) == SQLITE_OK &&
              sqlite3_prepare_v2(db, q, -1, &y, NULL) == SQLITE_OK &&
              sqlite3_column_count(x) == sqlite3_column_count(y);
  while (same) {
    int rc = sqlite3_step(x);
    same = rc == sqlite3_step(y);
    if (rc != SQLITE_ROW) break;
    for (int i = 0; i < sqlite3_column_count(x) && same; i++) {
      same = sqlite3_column_type(x, i) == sqlite3_column_type(y, i) &&
             sqlite3_column_bytes(x, i) == sqlite3_column_bytes(y, i);
      if (same && sqlite3_column_bytes(x, i))
        same = memcmp(sqlite3_column_blob(x, i), sqlite3_column_blob(y, i),
                      (size_t)sqlite3_column_bytes(x, i)) == 0;
    }
  }
  sqlite3_finalize(x);
  sqlite3_finalize(y);
  sqlite3_free(p);
  sqlite3_free(q);
  return same;
}

/* False, with a message, where it cannot be done; the table is then gone. */
static inline bool tablets_convert(sqlite3 *db, const char *t, rng *r) {
  char *columns = NULL;
  sqlite3_stmt *s = NULL;
  char *sql = sqlite3_mprintf("SELECT sql FROM sqlite_schema WHERE type='table' AND name=%Q", t);
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) {
    const char *text = (const char *)sqlite3_column_text(s, 0);
    const char *from = strchr(text, '('), *end = strrchr(text, ')');
    if (from && end > from) columns = sqlite3_mprintf("%.*s", (int)(end - from - 1), from + 1);
  }
  sqlite3_finalize(s);
  sqlite3_free(sql);
  if (!columns) return false;
  sqlite3_str *names = sqlite3_str_new(db);
  char *info = sqlite3_mprintf("SELECT name FROM pragma_table_info(%Q)", t);
  if (sqlite3_prepare_v2(db, info, -1, &s, NULL) == SQLITE_OK)
    while (sqlite3_step(s) == SQLITE_ROW)
      sqlite3_str_appendf(names, ", \"%w\"", sqlite3_column_text(s, 0));
  sqlite3_finalize(s);
  sqlite3_free(info);
  char *list = sqlite3_str_finish(names);
  int some = 2 + rng_below(r, 9), which = rng_below(r, some), junk = rng_below(r, 3);
#define FOLD(P)                                                                                    \
  (!ok || !rng_chance(r, P) ||                                                                     \
   tablets_do(db, sqlite3_mprintf("INSERT INTO \"%w\"(\"%w\") VALUES('fold')", t, t)))
  bool ok = tablets_do(db, sqlite3_mprintf("ALTER TABLE \"%w\" RENAME TO \"%w_was\"", t, t));
  if (ok)
    ok =
        tablets_do(db, sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\" USING tablet(%s)", t, columns));
  sqlite3_int64 most =
      tablets_ask(db, sqlite3_mprintf("SELECT ifnull(max(_rowid_), 0) FROM \"%w_was\"", t));
  if (ok && rng_chance(r, 50)) ok = tablets_do(db, sqlite3_mprintf("BEGIN"));
  if (ok)
    ok = tablets_do(db, sqlite3_mprintf("INSERT INTO \"%w\"(_rowid_%s) SELECT _rowid_%s FROM "
                                        "\"%w_was\"",
                                        t, list, list, t));
  ok = FOLD(70) && ok;
  if (ok)
    ok = tablets_do(
        db, sqlite3_mprintf("DELETE FROM \"%w\" WHERE abs(_rowid_ %% %d) = %d", t, some, which));
  ok = FOLD(60) && ok;
  bool strangers = junk && most < 1000000000 && !strstr(columns, "INTEGER PRIMARY KEY") &&
                   !strstr(columns, "UNIQUE");
  if (ok && strangers)
    ok =
        tablets_do(db, sqlite3_mprintf("INSERT INTO \"%w\"(_rowid_%s) SELECT _rowid_ + %lld%s FROM "
                                       "\"%w_was\" WHERE abs(_rowid_ %% 5) < %d",
                                       t, list, most + 3, list, t, junk));
  ok = FOLD(50) && ok;
  if (ok && rng_chance(r, 80))
    ok = tablets_do(db, sqlite3_mprintf("INSERT INTO \"%w\"(_rowid_%s) SELECT _rowid_%s FROM "
                                        "\"%w_was\" WHERE abs(_rowid_ %% %d) = %d",
                                        t, list, list, t, some, which));
  else if (ok)
    ok = tablets_do(db, sqlite3_mprintf("DELETE FROM \"%w_was\" WHERE abs(_rowid_ %% %d) = %d", t,
                                        some, which));
  ok = FOLD(50) && ok;
  if (ok && strangers)
    ok = tablets_do(db, sqlite3_mprintf("DELETE FROM \"%w\" WHERE _rowid_ > %lld", t, most));
  ok = FOLD(50) && ok;
  if (ok && !sqlite3_get_autocommit(db)) ok = tablets_do(db, sqlite3_mprintf("COMMIT"));
#undef FOLD
  char *was = sqlite3_mprintf("%s_was", t);
  if (ok && !tablets_same(db, t, was)) {
    printf("  tablets: %s has other rows than before\n", t);
    ok = false;
  }
  if (ok) ok = tablets_do(db, sqlite3_mprintf("DROP TABLE \"%w\"", was));
  sqlite3_free(was);
  sqlite3_free(list);
  sqlite3_free(columns);
  return ok;
}

#endif
