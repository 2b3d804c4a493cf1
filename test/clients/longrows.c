/*
** Tablet tables whose texts and blobs together are longer than SQLite's longest blob: tablets must
** end before a segment is. SQLITE_LIMIT_LENGTH is lowered, so that little is already much.
**
**     longrows BUILD          (the folder is not used)
*/
#include <string.h>

#include "../tap.h"
#include "warplite.h"

#define MANY "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<%d) "
enum { LIMIT = 1000000 };

static int run(sqlite3 *db, bool native, const char *sql, sqlite3_int64 *out) {
  sqlite3_stmt *s = NULL;
  int rc = (native ? warplite_prepare : sqlite3_prepare_v2)(db, sql, -1, &s, NULL);
  if (!rc && sqlite3_step(s) == SQLITE_ROW && out)
    *out = sqlite3_column_type(s, 0) == SQLITE_TEXT
               ? strcmp((const char *)sqlite3_column_text(s, 0), "ok") == 0
               : sqlite3_column_int64(s, 0);
  int end = sqlite3_finalize(s);
  rc = rc ? rc : end;
  if (rc) tap_bad(sql, "%s", sqlite3_errmsg(db));
  return rc;
}

static void same(sqlite3 *db, const char *what) {
  static const char *const sums[] = {"count(*)",
                                     "sum(a)",
                                     "sum(length(b))",
                                     "sum(length(c))",
                                     "max(c) = (SELECT max(c) FROM src)",
                                     "max(hex(b)) = (SELECT max(hex(b)) FROM src)"};
  sqlite3_int64 ok = 0;
  bool bad = run(db, false, "SELECT warplite_check('t')", &ok) || !ok;
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    for (int native = 0; native < 2; native++) {
      sqlite3_int64 got = -1, want = -2;
      char *q = sqlite3_mprintf("SELECT %s FROM t", sums[i]);
      char *p = sqlite3_mprintf("SELECT %s FROM src", sums[i]);
      bad |= run(db, native, q, &got) || run(db, false, p, &want) || got != want;
      sqlite3_free(q);
      sqlite3_free(p);
    }
  }
  if (bad)
    tap_bad(what, "the tablet table is not what its source is");
  else
    tap_ok(what);
}

static void sizes(sqlite3 *db, int n, int n_blob, int n_hex) {
  char *sql = sqlite3_mprintf("INSERT INTO src " MANY
                              "SELECT i, randomblob(%d), hex(randomblob(%d))||i FROM c",
                              n, n_blob, n_hex);
  run(db, false, "DELETE FROM src", NULL);
  run(db, false, sql, NULL);
  sqlite3_free(sql);
  for (int native = 0; native < 2; native++) {
    run(db, native, "DELETE FROM t", NULL);
    run(db, native, "INSERT INTO t SELECT * FROM src", NULL);
    same(db, native ? "inserted at once" : "inserted row by row");
    run(db, native, "INSERT INTO t(t) VALUES('fold')", NULL);
    same(db, "folded");
    run(db, native, "DELETE FROM t WHERE a % 2", NULL);
    run(db, native, "INSERT INTO t SELECT * FROM src WHERE a % 2", NULL);
    run(db, native, "INSERT INTO t(t) VALUES('optimize')", NULL);
    same(db, "packed");
  }
}

int main(void) {
  sqlite3 *db;
  if (sqlite3_open(":memory:", &db) || warplite_enable(db)) {
    tap_bad("open", "%s", sqlite3_errmsg(db));
    return tap_done();
  }
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, LIMIT);
  run(db, false, "SELECT warplite_set('route', 'always')", NULL);
  run(db, false, "CREATE TABLE src(a INTEGER PRIMARY KEY, b, c TEXT)", NULL);
  run(db, false, "CREATE VIRTUAL TABLE t USING tablet(a INTEGER PRIMARY KEY, b, c TEXT)", NULL);
  sizes(db, 300, 10000, 6000);
  sizes(db, 40000, 60, 5);
  sqlite3_close(db);
  return tap_done();
}
