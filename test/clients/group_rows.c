/*
** Groups that are found by the row numbers of joined sources, held against SQLite with 1, 2 and 7
** threads, over ordinary and tablet tables, with enough memory and with little. Both sources have
** more rows than a tablet. Reals are dyadic, so their sums are exact in SQLite, too.
**
**     group_rows [folder, ignored]
**
** Invariants:
** 1. EXPLAIN QUERY PLAN shows that groups are found by row.
** 2. With enough memory every query is native. With little, SQLite may run it, and the reason names
**    the setting.
*/
#include "../engines.h"
#include "../rows.h"
#include "../tablets.h"
#include "../tap.h"

enum { N_NAMES = 66000, N_SALES = 210000 };

static const char *const queries[] = {
    "SELECT name, count(*), sum(price), min(n), max(price) FROM sale JOIN who ON sale.who=who.id"
    " GROUP BY name",
    "SELECT who.id, name, rank, sum(n), avg(price) FROM sale JOIN who ON sale.who=who.id"
    " GROUP BY name, who.id, rank ORDER BY name DESC, who.id, rank DESC",
    "SELECT name, n%2, count(*), sum(price) FROM sale LEFT JOIN who ON sale.who=who.id"
    " GROUP BY name, n%2",
    "SELECT upper(name), length(name), sum(n) FROM sale LEFT JOIN who ON sale.who=who.id"
    " GROUP BY 1, 2",
    "SELECT substr(name,1,9), total(n), count(price) FROM sale JOIN who ON sale.who=who.id"
    " GROUP BY 1",
    "SELECT name, sum(price) FROM sale JOIN who ON sale.who=who.id GROUP BY name"
    " HAVING count(*)>2 ORDER BY 2 DESC, 1 LIMIT 20",
    "SELECT a.name, b.rank, sum(n) FROM sale JOIN who a ON sale.who=a.id JOIN who b ON b.id=a.id+1"
    " GROUP BY a.name, b.rank, b.tag",
    "SELECT tag, count(*), sum(price) FROM sale FULL JOIN who ON sale.who=who.id GROUP BY tag, "
    "name",
    "SELECT DISTINCT name, tag FROM sale JOIN who ON sale.who=who.id ORDER BY 1, 2",
};

static bool make_tables(sqlite3 *db) {
  char *sql = sqlite3_mprintf(
      "CREATE TABLE who(id INTEGER PRIMARY KEY, name TEXT, rank REAL, tag);"
      "CREATE TABLE sale(id INTEGER PRIMARY KEY, who INTEGER, n INTEGER, price REAL);"
      "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM c WHERE i<%d)"
      " INSERT INTO who SELECT i, CASE WHEN i%%9 THEN 'name '||(i*7919%%50000) END, i*0.5,"
      "  CASE i%%3 WHEN 0 THEN 't'||i/2 WHEN 1 THEN i/2 END FROM c;"
      "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM c WHERE i<%d)"
      " INSERT INTO sale SELECT i, CASE WHEN i%%11 THEN i*104729%%%d END, i%%100-50,"
      "  CASE WHEN i%%5 THEN (i%%4096-2000)*0.25 END FROM c;",
      N_NAMES, N_SALES, N_NAMES + 900);
  bool ok = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
  sqlite3_free(sql);
  return ok;
}

static bool found_by_row(sqlite3 *db, const char *sql) {
  char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
  sqlite3_stmt *s = NULL;
  bool found = false;
  if (warplite_prepare(db, text, -1, &s, NULL) == SQLITE_OK)
    while (sqlite3_step(s) == SQLITE_ROW)
      found |= strstr((const char *)sqlite3_column_text(s, 3), "by row of ") != NULL;
  sqlite3_finalize(s);
  sqlite3_free(text);
  return found;
}

typedef struct counts {
  int native, left; /* runs with little memory */
} counts;

/* Runs a query with a budget. spare: there is enough memory. */
static void check_run(sqlite3 *db, const char *label, const char *sql, const rows *want, bool spare,
                      counts *c) {
  rows got = {0};
  char why[900];
  if (spare && !found_by_row(db, sql)) tap_bad(label, "groups are not found by row");
  rows_query(&got, db, warplite_prepare, sql);
  const char *reason = warplite_reason(db);
  bool native = !strncmp(reason, "cpu", 3);
  if (!spare && native) c->native++;
  if (!spare && !native) c->left++;
  if (!native && (spare || !strstr(reason, "host_budget")))
    tap_bad(label, "%s", reason);
  else if (!rows_same(&got, want, false, why, sizeof why))
    tap_bad(label, "%s", why);
  else
    tap_ok(label);
  rows_free(&got);
}

static void check_tables(sqlite3 *db, const char *tables) {
  static const struct {
    const char *threads, *budget;
  } runs[] = {{"1", "1G"}, {"2", "1G"}, {"7", "1G"}, {"2", "40M"}, {"1", "12M"}, {"7", "20M"}};
  counts c = {0};
  char label[400];
  for (size_t k = 0; k < sizeof queries / sizeof *queries; k++) {
    rows want = {0};
    rows_query(&want, db, sqlite3_prepare_v2, queries[k]);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
      snprintf(label, sizeof label, "%s, threads=%s, host_budget=%s: %s", tables, runs[i].threads,
               runs[i].budget, queries[k]);
      if (!use_setting(db, "threads", runs[i].threads) ||
          !use_setting(db, "host_budget", runs[i].budget))
        tap_bad(label, "%s", sqlite3_errmsg(db));
      check_run(db, label, queries[k], &want, !strcmp(runs[i].budget, "1G"), &c);
    }
    rows_free(&want);
  }
  snprintf(label, sizeof label, "%s: little memory is enough for some queries, not for others",
           tables);
  if (c.native && c.left)
    tap_ok(label);
  else
    tap_bad(label, "%d runs were native, %d were not", c.native, c.left);
  use_setting(db, "host_budget", "1G");
}

/* Two rows have one name. Their sums are not rounded before they are added: (2^53 + 1) + (1 - 2^53)
** is 2. */
static void check_exact(sqlite3 *db) {
  static const char sql[] = "SELECT name, sum(x) FROM part JOIN pair ON pair.id=part.pair"
                            " GROUP BY name ORDER BY name LIMIT 1";
  rows got = {0};
  int rc = sqlite3_exec(db,
                        "CREATE TABLE pair(id INTEGER PRIMARY KEY, name TEXT);"
                        "CREATE TABLE part(pair INTEGER, x REAL);"
                        "WITH RECURSIVE c(i) AS (VALUES(3) UNION ALL SELECT i+1 FROM c WHERE "
                        "i<3000) INSERT INTO pair SELECT i, 'other '||i FROM c;"
                        "INSERT INTO pair VALUES(1,'one'),(2,'one');"
                        "INSERT INTO part SELECT id, id FROM pair;"
                        "DELETE FROM part WHERE pair<3;"
                        "INSERT INTO part VALUES(1,9007199254740992.0),(1,1.0),(2,1.0),"
                        "(2,-9007199254740992.0)",
                        NULL, NULL, NULL);
  if (!found_by_row(db, sql)) tap_bad("an exact sum", "groups are not found by row");
  rows_query(&got, db, warplite_prepare, sql);
  CHECK("sums of rows with one name are joined before they are rounded",
        rc == SQLITE_OK && got.n_rows == 1 && got.cells[1].type == SQLITE_FLOAT &&
            got.cells[1].u.r == 2.0 && !strncmp(warplite_reason(db), "cpu", 3));
  rows_free(&got);
}

int main(void) {
  sqlite3 *db = NULL;
  rng r = {.s = 5};
  if (sqlite3_open(":memory:", &db) || !use_engine(db, "cpu") || !make_tables(db) ||
      !use_setting(db, "keep", "0")) {
    tap_bad("group_rows", "set-up: %s", sqlite3_errmsg(db));
    return tap_done();
  }
  check_tables(db, "tables");
  check_exact(db);
  if (tablets_convert(db, "who", &r) && tablets_convert(db, "sale", &r))
    check_tables(db, "tablet tables");
  else
    tap_bad("group_rows", "no tablet tables can be made: %s", sqlite3_errmsg(db));
  CHECK("group_rows: the connection closes", sqlite3_close(db) == SQLITE_OK);
  return tap_done();
}
