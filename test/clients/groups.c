/*
** Random GROUP BY, HAVING, DISTINCT, ORDER BY and LIMIT queries against SQLite, row by row in
** order, types and bits included. No table has an index, so SQLite scans in rowid order and
** everything that depends on it must agree. Reals are dyadic: their sums are exact.
** Everything runs on the CPU and again on the simulated device. Usage:
** groups [folder, ignored] [seed] [queries a table] [engine: cpu, sim or cuda instead of both]
*/
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../engines.h"
#include "../tablets.h"

static unsigned long long seed = 1;
static unsigned rnd(unsigned n) {
  seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(seed >> 33) % n;
}
#define PICK(list) list[rnd(sizeof list / sizeof *list)]

static void run(sqlite3 *db, const char *sql) {
  char *msg = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &msg)) {
    printf("not ok groups: %s - %s\n", sql, msg);
    exit(1);
  }
}

static char text[4000];
static void add(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  size_t n = strlen(text);
  vsnprintf(text + n, sizeof text - n, fmt, ap);
  va_end(ap);
}

static const char *key(void) {
  static const char *const keys[] = {"a",
                                     "c",
                                     "d",
                                     "b",
                                     "a%3",
                                     "a+0.0",
                                     "c||''",
                                     "a IS NULL",
                                     "d COLLATE NOCASE",
                                     "c COLLATE BINARY",
                                     "typed",
                                     "CASE WHEN a>2 THEN a ELSE c END",
                                     "b>0",
                                     "big",
                                     "a*1000003",
                                     "k%50000",
                                     "k*b",
                                     "k/3",
                                     "w",
                                     "w||c",
                                     "w||c COLLATE NOCASE",
                                     "w||' ' COLLATE RTRIM",
                                     "substr(w,69)",
                                     "upper(c)||'x'",
                                     "substr(c,2)",
                                     "w||k",
                                     "'x'||'y'"};
  return PICK(keys);
}
static const char *agg(void) {
  static const char *const aggs[] = {"count(*)",
                                     "count(d)",
                                     "sum(a)",
                                     "sum(b)",
                                     "total(b)",
                                     "avg(a)",
                                     "min(d)",
                                     "max(d)",
                                     "min(c)",
                                     "max(c)",
                                     "sum(typed)",
                                     "min(b)",
                                     "max(a)",
                                     "sum(a*b)",
                                     "count(c)+1",
                                     "sum(k)",
                                     "total(k)",
                                     "max(b)-min(b)",
                                     "sum(d)",
                                     "avg(typed)",
                                     "sum(big)",
                                     "min(w)",
                                     "max(w)",
                                     "min(w||k)",
                                     "max(w||k)",
                                     "max(w COLLATE NOCASE)",
                                     "min(w||' ' COLLATE RTRIM)",
                                     "max(d COLLATE NOCASE)",
                                     "min(c COLLATE BINARY)",
                                     "min(CASE WHEN a>2 THEN b ELSE d END)"};
  static const char *const distinct[] = {"count(DISTINCT a)",
                                         "count(DISTINCT b)",
                                         "count(DISTINCT c)",
                                         "count(DISTINCT d)",
                                         "sum(DISTINCT a)",
                                         "sum(DISTINCT b)",
                                         "sum(DISTINCT typed)",
                                         "sum(DISTINCT d)",
                                         "avg(DISTINCT a)",
                                         "total(DISTINCT d)",
                                         "count(DISTINCT k)",
                                         "sum(DISTINCT big)",
                                         "count(DISTINCT big)",
                                         "count(DISTINCT d COLLATE NOCASE)",
                                         "count(DISTINCT w)",
                                         "count(DISTINCT w||c COLLATE NOCASE)",
                                         "count(DISTINCT w||k)",
                                         "sum(DISTINCT w)",
                                         "sum(DISTINCT k%700||w)",
                                         "avg(DISTINCT k%90||c COLLATE NOCASE)",
                                         "total(DISTINCT CASE WHEN a>1 THEN a ELSE k||'e2' END)",
                                         "sum(DISTINCT a||'.5 ' COLLATE RTRIM)",
                                         "count(DISTINCT typed)",
                                         "max(DISTINCT a)",
                                         "count(DISTINCT a*b)",
                                         "group_concat(DISTINCT a)",
                                         "group_concat(DISTINCT c)",
                                         "count(DISTINCT a) + count(DISTINCT c COLLATE BINARY)"};
  static const char *const filtered[] = {"count(*)",
                                         "count(d)",
                                         "sum(a)",
                                         "sum(b)",
                                         "avg(a)",
                                         "min(d)",
                                         "max(c)",
                                         "total(a)",
                                         "min(a)",
                                         "sum(DISTINCT a)",
                                         "count(DISTINCT d)",
                                         "group_concat(a)"};
  static const char *const filters[] = {"a>1", "c<>'b'", "d IS NULL", "b>0 OR a=2", "0", "1"};
  static const char *const concats[] = {"group_concat(a)",    "group_concat(b)",
                                        "group_concat(c,'')", "group_concat(d,a)",
                                        "group_concat(c,d)",  "group_concat(typed,NULL)"};
  static char made[100];
  switch (rnd(8)) {
  case 0: return PICK(distinct);
  case 1:
    snprintf(made, sizeof made, "%s FILTER (WHERE %s)", PICK(filtered), PICK(filters));
    return made;
  case 2: return PICK(concats);
  default: return PICK(aggs);
  }
}
/* An IN list of 4 to 30: keys and aggregates among the constants. */
static void add_list(const char *const *keys, int n_keys) {
  unsigned n = 4 + rnd(rnd(3) ? 5 : 27);
  if (n_keys && rnd(2))
    add("%s", keys[rnd((unsigned)n_keys)]);
  else
    add("%s", agg());
  add(rnd(4) ? " IN (" : " NOT IN (");
  for (unsigned i = 0; i < n; i++) {
    add(i ? "," : "");
    switch (rnd(12)) {
    case 0: add("%s", agg()); break;
    case 1: add("%s", n_keys ? keys[rnd((unsigned)n_keys)] : "NULL"); break;
    case 2: add("'a'"); break;
    case 3: add("%u.5", rnd(9)); break;
    default: add("%d", (int)rnd(20) - 3);
    }
  }
  add(")");
}

/* A column beside the groups. */
static const char *bare(void) {
  static const char *const bares[] = {"a", "b", "c", "d", "k", "typed", "big", "a+k", "d||c"};
  return PICK(bares);
}

static void make_query(void) {
  static const char *const where[] = {
      "a>1", "b<10", "c<>'B'", "d IS NOT NULL", "k%7<5", "a IS NULL OR a<4", "0", "typed>3"};
  static const char *const direction[] = {"", " ASC", " DESC", " DESC NULLS FIRST", " NULLS LAST"};
  const char *keys[3];
  int n_keys = rnd(2) ? 1 + (int)rnd(3) : 0, n_out = 1 + (int)rnd(4), whole = rnd(6) == 0;
  int with_bare = rnd(5) == 0;
  text[0] = 0;
  add("SELECT %s", rnd(4) ? "" : "DISTINCT ");
  for (int i = 0; i < n_keys; i++) keys[i] = key();
  if (n_keys) whole = 0;
  for (int i = 0; i < n_out; i++) {
    add(i ? ", " : "");
    if ((n_keys || whole) && rnd(8) == 0) {
      add_list(keys, n_keys);
      continue;
    }
    add("%s", with_bare && i && rnd(2) && (n_keys || whole) ? bare()
              : n_keys ? (rnd(2) ? keys[rnd((unsigned)n_keys)] : agg())
              : whole  ? agg()
                       : key());
  }
  add(" FROM t");
  if (rnd(2)) add(" WHERE %s", PICK(where));
  for (int i = 0; i < n_keys; i++) add("%s%s", i ? ", " : " GROUP BY ", keys[i]);
  if ((n_keys || whole) && rnd(3) == 0) {
    add(" HAVING ");
    if (rnd(4) == 0)
      add_list(keys, n_keys);
    else
      add("%s%s", agg(), rnd(2) ? ">1" : " IS NOT NULL");
  }
  if (rnd(2)) {
    int n = 1 + (int)rnd(3);
    for (int i = 0; i < n; i++) {
      add(i ? ", " : " ORDER BY ");
      if (rnd(3) == 0)
        add("%d", 1 + (int)rnd((unsigned)n_out));
      else if ((n_keys || whole) && rnd(8) == 0)
        add_list(keys, n_keys);
      else
        add("%s", n_keys ? (rnd(2) ? keys[rnd((unsigned)n_keys)] : agg()) : whole ? agg() : key());
      add("%s", PICK(direction));
    }
  }
  static const char *const ends[] = {"9223372036854775807", "9223372036854775806",
                                     "-9223372036854775808", "-1"};
  bool cut = rnd(3) == 0;
  if (cut && rnd(8) == 0)
    add(" LIMIT %s", PICK(ends));
  else if (cut)
    add(" LIMIT %u", rnd(20));
  if (cut && rnd(20) == 0)
    add(" OFFSET %s", PICK(ends));
  else if (cut && rnd(3) == 0)
    add(" OFFSET %u", rnd(5));
}

/* 0: same. why says what differs. */
static int differ(sqlite3 *db, sqlite3_stmt *a, sqlite3_stmt *b, char *why, size_t n) {
  for (long row = 0;; row++) {
    int ra = sqlite3_step(a), rb;
    char message[200];
    snprintf(message, sizeof message, "%s", sqlite3_errmsg(db));
    rb = sqlite3_step(b);
    if (ra != rb ||
        (ra != SQLITE_ROW && ra != SQLITE_DONE && strcmp(message, sqlite3_errmsg(db)))) {
      snprintf(why, n, "row %ld: result %d (%s), SQLite %d (%s)", row, ra, message, rb,
               sqlite3_errmsg(db));
      return 1;
    }
    if (ra != SQLITE_ROW) return 0;
    for (int c = 0; c < sqlite3_column_count(b); c++) {
      double x = sqlite3_column_double(a, c), y = sqlite3_column_double(b, c);
      int same = sqlite3_column_type(a, c) == sqlite3_column_type(b, c);
      if (same && sqlite3_column_type(a, c) == SQLITE_FLOAT)
        same = memcmp(&x, &y, 8) == 0;
      else if (same) {
        int na = sqlite3_column_bytes(a, c), nb = sqlite3_column_bytes(b, c);
        same = na == nb && (na == 0 || memcmp(sqlite3_column_blob(a, c), sqlite3_column_blob(b, c),
                                              (size_t)na) == 0);
      }
      if (same) continue;
      snprintf(why, n, "row %ld column %d is %s, SQLite %s", row, c,
               (const char *)sqlite3_column_text(a, c), (const char *)sqlite3_column_text(b, c));
      return 1;
    }
  }
}

static bool tablets; /* make tablet tables of the tables first (test/tablets.h) */

static int all_sizes(const char *engine, int queries) {
  static const int sizes[] = {0, 1, 2, 60, 1025, 70000, 200000};
  int failed = 0, device = strcmp(engine, "cpu") != 0;
  int all_grouped = 0;
  for (int s = 0; s < 7; s++) {
    sqlite3 *db;
    sqlite3_open(":memory:", &db);
    if (!use_engine(db, engine)) return 2;
    char threads[80];
    snprintf(threads, sizeof threads, "SELECT warplite_set('threads','%d')", s % 4 + 1);
    run(db, threads);
    run(db, "CREATE TABLE t(k INTEGER PRIMARY KEY, a INTEGER, b REAL, c TEXT COLLATE NOCASE, d, "
            "typed NUMERIC, big INTEGER, w TEXT)");
    snprintf(
        text, sizeof text,
        "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM n WHERE x<%d)"
        "INSERT INTO t SELECT x, CASE WHEN x*7%%11 THEN x*7919%%13-4 END, (x*31%%257-128)*0.25,"
        " CASE x%%5 WHEN 0 THEN 'b' WHEN 1 THEN 'B' WHEN 2 THEN 'a' WHEN 3 THEN NULL ELSE "
        "'c'||(x%%4) END,"
        " CASE x*13%%9 WHEN 0 THEN 1 WHEN 1 THEN 1.0 WHEN 2 THEN 'A' WHEN 3 THEN 'a' WHEN 4 THEN "
        "x'41' WHEN 5 THEN NULL"
        " WHEN 6 THEN -2.5 WHEN 7 THEN '1' ELSE x%%3 END,"
        " (x%%16)*0.5, CASE WHEN x%%50 THEN (x%%2000)*%s ELSE %s END,"
        " CASE WHEN x%%17 THEN CASE x%%3 WHEN 0 THEN 'Word' ELSE 'word' END||printf('%%0*d',"
        " x%%5*16, x%%3001)||CASE x%%4 WHEN 0 THEN '' ELSE ' ' END END FROM n WHERE %d>0",
        sizes[s], rnd(2) ? "1000" : "4611686018427387", rnd(2) ? "9223372036854775807" : "-5",
        sizes[s]);
    run(db, text);
    rng r = {.s = seed * 7919u + (uint64_t)s};
    if (tablets && !tablets_convert(db, "t", &r)) {
      printf("not ok groups: no tablet table of %d rows\n", sizes[s]);
      sqlite3_close(db);
      return 1;
    }
    int native = 0, there = 0, grouped = 0, sorted = 0, bad = 0,
        n = sizes[s] > 10000 ? queries / 8 : queries;
    for (int i = 0; i < n && bad < 5; i++) {
      sqlite3_stmt *ours = NULL, *theirs = NULL;
      char why[500] = "";
      make_query();
      int ra = warplite_prepare(db, text, -1, &ours, NULL),
          rb = sqlite3_prepare_v2(db, text, -1, &theirs, NULL);
      int wrong = ra != rb;
      if (wrong)
        snprintf(why, sizeof why, "prepare gives %d, SQLite %d", ra, rb);
      else if (ra == SQLITE_OK)
        wrong = differ(db, ours, theirs, why, sizeof why);
      if (wrong) {
        printf("not ok groups: %d rows: %s - %s (%s)\n", sizes[s], text, why, warplite_reason(db));
        bad++;
      }
      native += strncmp(warplite_reason(db), "sqlite: ", 8) != 0;
      there += strncmp(warplite_reason(db), "gpu: ", 5) == 0;
      grouped += strstr(warplite_reason(db), "; groups by ") != NULL;
      sorted += strstr(warplite_reason(db), " on the gpu") != NULL &&
                strncmp(warplite_reason(db), "gpu: ", 5) == 0;
      sqlite3_finalize(ours);
      sqlite3_finalize(theirs);
    }
    if (!bad) printf("ok groups: %s: %d queries over %d rows agree\n", engine, n, sizes[s]);
    int enough = native * 5 >= n * 3; /* keys that only look different are SQLite's */
    /* DISTINCT and ORDER BY of text, and what must be judged in row order, are the CPU's */
    if (device) enough &= there * 5 >= n;
    /* of a few queries there may be none that groups there; of all there must be */
    all_grouped += grouped;
    bool few = n < 40;
    if (device && sizes[s]) enough &= (few || grouped > 0) && sorted > 0;
    printf("%s groups: %s: %d of %d native over %d rows, %d on the device, which grouped %d and "
           "sorted %d\n",
           enough ? "ok" : "not ok", engine, native, n, sizes[s], there, grouped, sorted);
    failed |= bad || !enough;
    sqlite3_close(db);
  }
  if (device && !all_grouped) {
    printf("not ok groups: %s: nothing was grouped on the device\n", engine);
    failed = true;
  }
  return failed;
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[argc - 1], "--tablets")) {
    tablets = true;
    argc--;
  }
  int queries = argc > 3 ? atoi(argv[3]) : 400;
  if (argc > 2) seed = strtoull(argv[2], NULL, 10);
  if (argc > 4) return all_sizes(argv[4], queries);
  int failed = all_sizes("cpu", queries);
  return all_sizes("sim", queries) || failed;
}
