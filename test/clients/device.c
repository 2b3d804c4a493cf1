/*
** GROUP BY, DISTINCT and ORDER BY on a device: that it was the device that did them, in which
** way, and that the answers are SQLite's and, for sums of reals, the CPU's bits. Tables of 0 and
** 1 row, of one row more than a tile and than a tablet; keys of every range; budgets that
** make tables grow and keys come in passes. On the simulator, and with WL_TEST_CUDA on CUDA.
*/
#include "../engines.h"
#include "../rng.h"
#include "../tap.h"
#include <stdlib.h>

static void must(sqlite3 *db, const char *sql) {
  char *msg = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &msg)) tap_bad(sql, "%s", msg);
  sqlite3_free(msg);
}

typedef struct digest {
  unsigned long long h;
  long n_rows;
  int rc;
} digest;

/* Everything a statement gives, with types, bits and order, in one number. */
static digest take(sqlite3_stmt *s) {
  digest d = {1469598103934665603ULL, 0, 0};
  while ((d.rc = sqlite3_step(s)) == SQLITE_ROW) {
    d.n_rows++;
    for (int c = 0; c < sqlite3_column_count(s); c++) {
      unsigned char bytes[9] = {(unsigned char)sqlite3_column_type(s, c)};
      double r = sqlite3_column_double(s, c);
      sqlite3_int64 i = sqlite3_column_int64(s, c);
      memcpy(bytes + 1, bytes[0] == SQLITE_FLOAT ? (void *)&r : (void *)&i, 8);
      for (int k = 0; k < 9; k++) d.h = (d.h ^ bytes[k]) * 1099511628211ULL;
      const unsigned char *p =
          bytes[0] >= SQLITE3_TEXT && bytes[0] < SQLITE_NULL ? sqlite3_column_blob(s, c) : NULL;
      for (int k = 0; p && k < sqlite3_column_bytes(s, c); k++)
        d.h = (d.h ^ p[k]) * 1099511628211ULL;
    }
  }
  sqlite3_finalize(s);
  return d;
}

static digest native(sqlite3 *db, const char *engine, const char *sql, char *reason) {
  sqlite3_stmt *s = NULL;
  use_engine(db, engine);
  warplite_prepare(db, sql, -1, &s, NULL);
  digest d = take(s);
  snprintf(reason, 300, "%s", warplite_reason(db));
  return d;
}

/* way: what the reason must say; NULL: anything, "cpu": not on the device. oracle: compare with
** SQLite too, which adds reals in row order. */
static void check(sqlite3 *db, const char *engine, const char *label, const char *sql,
                  const char *way, bool oracle) {
  char name[400], reason[300], other[300];
  snprintf(name, sizeof name, "device [%s] %s: %s", engine, label, sql);
  digest d = native(db, engine, sql, reason), c = native(db, "cpu", sql, other);
  bool right = way == NULL ||
               (strcmp(way, "cpu") == 0 ? strncmp(reason, "cpu: ", 5) == 0
                                        : strncmp(reason, "gpu: ", 5) == 0 && strstr(reason, way));
  if (d.rc != c.rc || d.n_rows != c.n_rows || d.h != c.h)
    tap_bad(name, "%ld rows (%d), the CPU %ld (%d): %s", d.n_rows, d.rc, c.n_rows, c.rc, reason);
  else if (!right)
    tap_bad(name, "not \"%s\": %s", way, reason);
  else if (oracle) {
    sqlite3_stmt *s = NULL;
    sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    digest o = take(s);
    if (d.rc != o.rc || d.n_rows != o.n_rows || d.h != o.h)
      tap_bad(name, "%ld rows (%d), SQLite %ld (%d): %s", d.n_rows, d.rc, o.n_rows, o.rc, reason);
    else
      tap_ok(name);
  } else
    tap_ok(name);
}

static sqlite3 *open_rows(int n) {
  sqlite3 *db;
  char sql[1200];
  sqlite3_open(":memory:", &db);
  must(db, "CREATE TABLE t(k INTEGER PRIMARY KEY, a INTEGER, b INTEGER, r REAL, odd REAL, w "
           "INTEGER, s TEXT, u)");
  snprintf(sql, sizeof sql,
           "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x < %d)"
           "INSERT INTO t SELECT x, CASE WHEN x*7%%11 THEN x*7919%%13-6 END, x*40503%%1000-500,"
           " (x*31%%257-128)*0.25, CASE x%%12 WHEN 0 THEN 9e999 WHEN 1 THEN -9e999"
           " WHEN 2 THEN 1e308 WHEN 3 THEN -1e308 WHEN 4 THEN 5e-324 WHEN 5 THEN 1e-300"
           " WHEN 6 THEN NULL WHEN 7 THEN 1e30 ELSE x*0.1 END,"
           " CASE x%%5 WHEN 0 THEN 9223372036854775807 WHEN 1 THEN -9223372036854775807-1"
           " WHEN 2 THEN NULL ELSE x*1000000007*%s END,"
           " 'text '||(x%%7), CASE x%%3 WHEN 0 THEN x WHEN 1 THEN 'x' ELSE 0.5 END FROM c WHERE "
           "%d > 0",
           n, "1003", n);
  must(db, sql);
  return db;
}

typedef struct one {
  const char *sql, *way;
  bool oracle;
} one;

/* Integers and reals, none of them equal; the number of a text. */
#define MIXED "CASE WHEN k%3 THEN r+0.125 ELSE b END"
#define TEXTS "((k||'.25')+0)"

static const one list[] = {
    /* by address, in shared memory */
    {"SELECT a, count(*), count(a), sum(b), min(b), max(r), sum(r), avg(b) FROM t GROUP BY a",
     "shared memory", true},
    {"SELECT a, b%3, count(w), min(w), max(w), total(b) FROM t WHERE k%3 GROUP BY a, b%3",
     "shared memory", true},
    {"SELECT count(*), sum(k) FROM t GROUP BY a IS NULL, b > 0", "shared memory", true},
    {"SELECT a, sum(odd), avg(odd), min(odd), max(odd), total(odd*r) FROM t GROUP BY a",
     "shared memory", false},
    {"SELECT a, sum(odd) FROM t WHERE odd < 1e300 AND odd > -1e300 GROUP BY a", "shared memory",
     false},
    {"SELECT a, min(r*0.0), max(r*0.0), min(-r*0.0), max(-r*0.0) FROM t GROUP BY a",
     "shared memory", true},
    {"SELECT a, sum(" MIXED "), avg(" MIXED "), min(" MIXED "), max(" MIXED ") FROM t GROUP BY a",
     "shared memory", true},
    {"SELECT a, sum(" TEXTS "), max(" TEXTS ") FROM t GROUP BY a", "shared memory", true},
    {"SELECT sum(" MIXED "), total(" MIXED "), min(" MIXED "), max(" MIXED "), max(" TEXTS
     ") FROM t",
     NULL, true},
    {"SELECT 5, count(*) FROM t GROUP BY 'x' = 'x'", "shared memory", true},
    {"SELECT count(*), sum(b) FROM t GROUP BY NULL", "shared memory", true},
    {"SELECT a, count(s), count(u) FROM t GROUP BY a HAVING count(*) > 2 ORDER BY 2 DESC, 1 LIMIT "
     "5",
     "shared memory, sorted on the gpu", true},
    /* all rows in one group; every row its own */
    {"SELECT k*0, count(*), sum(r), min(k), max(k) FROM t GROUP BY k*0", "shared memory", true},
    {"SELECT k, count(*), sum(r), min(w), max(w), sum(odd) FROM t GROUP BY k", NULL, false},
    {"SELECT -k, count(*), sum(b), total(r), min(r) FROM t GROUP BY -k", NULL, true},
    /* by hash */
    {"SELECT k*100000007, count(*), sum(r), max(b) FROM t GROUP BY k*100000007", "by hash", true},
    {"SELECT b*900000000000000, a, count(*), sum(odd) FROM t GROUP BY b*900000000000000, a",
     "by hash", false},
    {"SELECT k*100000007, sum(" MIXED "), max(" MIXED ") FROM t GROUP BY 1", "by hash", true},
    {"SELECT w, b, sum(" MIXED "), min(" MIXED ") FROM t GROUP BY w, b", "by hash", true},
    {"SELECT w, count(*), sum(b) FROM t GROUP BY w", "by hash", true},
    {"SELECT r, count(*), sum(b), total(r) FROM t GROUP BY r", "by hash", true},
    {"SELECT odd, count(*), sum(b) FROM t GROUP BY odd", "by hash", true},
    {"SELECT r*0.0, count(*) FROM t GROUP BY r*0.0", "by hash", true},
    {"SELECT -r*0.0, b*0.0, count(*), sum(k) FROM t GROUP BY -r*0.0, b*0.0", "by hash", true},
    {"SELECT w, r, a, count(*), sum(b) FROM t GROUP BY w, r, a", "by hash", true},
    {"SELECT s||k, count(*) FROM t GROUP BY s||k", "groups by hash, transfer", true},
    {"SELECT u, count(*) FROM t GROUP BY u", "groups by hash, transfer", true},
    {"SELECT a, sum(w) FROM t WHERE w < 0 GROUP BY a", NULL, true},
    {"SELECT a, max(s||k) FROM t GROUP BY a", "shared memory, transfer", true},
    {"SELECT max(s||k), min(u), max(u), count(*) FROM t", "", true},
    /* order */
    {"SELECT k, a, s FROM t ORDER BY a", "; sorted on the gpu", true},
    {"SELECT k, a, s, u FROM t ORDER BY a DESC, b, r DESC", "; sorted on the gpu", true},
    {"SELECT k FROM t ORDER BY w NULLS LAST, odd DESC NULLS FIRST, k DESC", "; sorted on the gpu",
     true},
    {"SELECT k, w FROM t ORDER BY w DESC", "; sorted on the gpu", true},
    {"SELECT k, odd FROM t ORDER BY odd", "; sorted on the gpu", true},
    {"SELECT k, r*0.0 FROM t ORDER BY r*0.0, -k", "; sorted on the gpu", true},
    {"SELECT k FROM t WHERE b > 100 ORDER BY r, b LIMIT 10 OFFSET 3", "; sorted on the gpu", true},
    {"SELECT k FROM t ORDER BY 'x', 1.5", "; sorted on the gpu", true},
    {"SELECT k FROM t ORDER BY 1 > 2, 1.5, NULL", "; sorted on the gpu", true},
    {"SELECT k FROM t ORDER BY r LIMIT 0", NULL, true},
    {"SELECT s, k FROM t ORDER BY s||k, k", "; sorted on the gpu", true},
    /* distinct */
    {"SELECT DISTINCT a, r FROM t", "; distinct on the gpu", true},
    {"SELECT DISTINCT r*0.0 FROM t", "; distinct on the gpu", true},
    {"SELECT DISTINCT 1 FROM t", "; distinct on the gpu", true},
    {"SELECT DISTINCT a FROM t LIMIT 5", "; distinct on the gpu", true},
    {"SELECT DISTINCT w, a FROM t ORDER BY a DESC, w", "; distinct and sorted on the gpu", true},
    {"SELECT DISTINCT a FROM t ORDER BY b LIMIT 4", "; distinct and sorted on the gpu", true},
    {"SELECT DISTINCT s||k FROM t ORDER BY s", "; distinct and sorted on the cpu", true},
};

/* Text that repeats itself is kept as codes, if every tablet of it does. */
static const one codes[] = {
    {"SELECT s, count(*), min(r) FROM t GROUP BY s", "shared memory", true},
    {"SELECT s, a, sum(r) FROM t WHERE k%2 GROUP BY s, a", "shared memory", true},
    {"SELECT s, k FROM t ORDER BY s DESC, k", "; sorted on the gpu", true},
    {"SELECT s, k FROM t ORDER BY s COLLATE NOCASE, a LIMIT 20", "; sorted on the gpu", true},
    {"SELECT DISTINCT s, a FROM t ORDER BY s", "; distinct and sorted on the gpu", true},
    {"SELECT DISTINCT u, a FROM t WHERE k < 500", "groups by hash, transfer", true},
};

static void sizes(const char *engine) {
  /* a tile of the simulator is 256 rows, a tablet 65,536 */
  static const int n_rows[] = {0, 1, 2, 257, 4000, 65536, 65537};
  for (int i = 0; i < (int)(sizeof n_rows / sizeof *n_rows); i++) {
    sqlite3 *db = open_rows(n_rows[i]);
    char label[40];
    snprintf(label, sizeof label, "%d rows", n_rows[i]);
    /* in small tables spans are small, too: then the way is open */
    for (int k = 0; k < (int)(sizeof list / sizeof *list); k++)
      check(db, engine, label, list[k].sql, n_rows[i] >= 4000 ? list[k].way : NULL, list[k].oracle);
    for (int k = 0; k < (int)(sizeof codes / sizeof *codes); k++)
      check(db, engine, label, codes[k].sql,
            n_rows[i] == 4000 || n_rows[i] == 65536 ? codes[k].way : NULL, codes[k].oracle);
    sqlite3_close(db);
  }
}

/* ---- ORDER BY of texts and of values of several types */

/* s: texts, most of them distinct, that begin alike in groups, with NULLs; c and e: the same under
** other collations, with spaces and NULs; m: every type, integers beyond 2^53 and reals that equal
** some of them; z: blobs; x: what begins alike for long. */
static sqlite3 *open_texts(int n) {
  sqlite3 *db;
  char sql[1600];
  sqlite3_open(":memory:", &db);
  must(db, "CREATE TABLE w(k INTEGER PRIMARY KEY, a INTEGER, s TEXT, c TEXT COLLATE NOCASE, e TEXT "
           "COLLATE RTRIM, m, z BLOB, x TEXT); CREATE TABLE v(k INTEGER PRIMARY KEY, s TEXT)");
  snprintf(
      sql, sizeof sql,
      "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x < %d), "
      "d AS (SELECT x, x*7919%%65521 AS h FROM c) INSERT INTO w SELECT x, x%%5,"
      " CASE WHEN x%%17 THEN substr('a common start of it', 1, h%%21)||(h*31%%9973) END,"
      " substr('The Same START', 1, h%%9)||CASE x%%6 WHEN 0 THEN CAST(x'00' AS TEXT)||h WHEN 1 "
      "THEN '' WHEN 2 THEN 'k' WHEN 3 THEN 'K' ELSE char(65+h%%60) END,"
      " substr('a b  c   d    ', 1, h%%15)||substr('                   ', 1, h%%20),"
      " CASE h%%11 WHEN 0 THEN NULL WHEN 1 THEN 9007199254740992+h%%7 WHEN 2 THEN"
      " 9007199254740992.0+h%%7 WHEN 3 THEN 9223372036854775807-h%%3 WHEN 4 THEN"
      " 9223372036854775808.0 WHEN 5 THEN CAST(h AS TEXT) WHEN 6 THEN CAST(h||'' AS BLOB) WHEN"
      " 7 THEN -9223372036854775807-h%%2 WHEN 8 THEN h*0.5 WHEN 9 THEN -h*0.0 ELSE h/4 END,"
      " CASE WHEN x%%9 THEN CAST(substr('blobs begin alike', 1, h%%18)||h AS BLOB) ELSE x'' END,"
      " substr('%s', 1, h%%40*8)||h FROM c JOIN d USING(x) WHERE %d > 0",
      n,
      "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdef"
      "ghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuv"
      "wxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz",
      n);
  must(db, sql);
  must(db, "INSERT INTO v SELECT k, substr(s, -4) FROM w WHERE k <= 100");
  return db;
}

/* Checks queries over such tables of several sizes. way: what the note says where there are rows. */
static void check_texts(const char *engine, const char *const *queries, size_t n, const char *way) {
  static const int n_rows[] = {0, 1, 2, 257, 5000, 65537};
  for (int i = 0; i < (int)(sizeof n_rows / sizeof *n_rows); i++) {
    sqlite3 *db = open_texts(n_rows[i]);
    char label[40];
    snprintf(label, sizeof label, "%d rows", n_rows[i]);
    for (size_t k = 0; k < n; k++)
      check(db, engine, label, queries[k], n_rows[i] >= 257 ? way : NULL, true);
    sqlite3_close(db);
  }
}

static void texts(const char *engine) {
  static const char *const queries[] = {
      "SELECT k, s FROM w ORDER BY s",
      "SELECT k, s FROM w ORDER BY s DESC, k DESC",
      "SELECT k FROM w ORDER BY s NULLS LAST",
      "SELECT k FROM w ORDER BY s DESC NULLS FIRST, z",
      "SELECT k FROM w ORDER BY s DESC NULLS FIRST, a LIMIT 20 OFFSET 3",
      "SELECT k, s FROM w ORDER BY s LIMIT 1",
      "SELECT k, s FROM w WHERE s IS NOT NULL ORDER BY s LIMIT 100",
      "SELECT k FROM w ORDER BY s COLLATE NOCASE, s COLLATE RTRIM DESC, s",
      "SELECT k, c FROM w ORDER BY c",
      "SELECT k FROM w ORDER BY c DESC, a LIMIT 50",
      "SELECT k FROM w ORDER BY c COLLATE BINARY DESC",
      "SELECT k, e FROM w ORDER BY e",
      "SELECT k FROM w ORDER BY e DESC, e COLLATE BINARY",
      "SELECT k, m FROM w ORDER BY m",
      "SELECT k, m FROM w ORDER BY m DESC, s",
      "SELECT k FROM w ORDER BY m NULLS LAST, s DESC, z",
      "SELECT k FROM w ORDER BY m DESC NULLS FIRST LIMIT 300",
      "SELECT k FROM w ORDER BY a DESC, m COLLATE NOCASE, c",
      "SELECT k, z FROM w ORDER BY z",
      "SELECT k FROM w ORDER BY z DESC, m",
      "SELECT k FROM w ORDER BY a, s LIMIT 77",
      "SELECT k FROM w ORDER BY x",
      "SELECT k FROM w ORDER BY x COLLATE NOCASE DESC, a",
      "SELECT k FROM w ORDER BY 'same'||substr(k, 1, 0)",
      "SELECT k FROM w ORDER BY 'same'||substr(k, 1, 0), a+0.5, s LIMIT 9",
      "SELECT k FROM w ORDER BY m IS NULL, CASE WHEN m IS NULL THEN s ELSE m END, a",
      "SELECT w.k, v.s FROM w JOIN v ON v.k = w.a ORDER BY v.s||'', w.s DESC",
      "SELECT w.k, v.s FROM w LEFT JOIN v ON v.k = w.k ORDER BY v.s, w.m, w.k",
      "SELECT w.k, v.k FROM w JOIN v ON v.k%10 = w.a WHERE w.k%7 = 0 ORDER BY w.s, v.s||'', v.k",
      "SELECT w.k, v.k FROM w LEFT JOIN v ON v.k%50 = w.k ORDER BY v.s DESC, w.m",
      "SELECT a||'/', count(*) FROM w GROUP BY a ORDER BY 'g'||-a",
      "SELECT a, max(k)||'' FROM w GROUP BY a ORDER BY CASE WHEN a < 3 THEN a||'' ELSE a END DESC",
      "SELECT DISTINCT a FROM w ORDER BY s LIMIT 4",
      "SELECT DISTINCT a, k%3 FROM w ORDER BY 'x'||(k%3), m, a",
  };
  check_texts(engine, queries, sizeof queries / sizeof *queries, "sorted on the gpu");
}

/* Groups whose keys are texts or values of several types. The device finishes them, and the next
** pipeline reads their keys there. */
static void text_groups(const char *engine) {
  static const one of[] = {
      {"SELECT s, count(*), sum(a), min(k) FROM w GROUP BY s", "groups by hash, transfer", true},
      {"SELECT s, count(*) FROM w GROUP BY s ORDER BY s DESC", "groups by hash, transfer", true},
      {"SELECT s, max(k) FROM w GROUP BY s ORDER BY 2 DESC, 1 LIMIT 7",
       "groups by hash, sorted on the gpu", true},
      {"SELECT s, count(*) FROM w GROUP BY s HAVING s > 'common' AND count(*) < 9",
       "groups by hash, transfer", true},
      {"SELECT upper(s)||length(s), avg(k) FROM w GROUP BY s HAVING s LIKE 'a%' OR s IS NULL",
       "groups by hash, transfer", true},
      {"SELECT c, count(*), total(a) FROM w GROUP BY c", "groups by hash, transfer", true},
      {"SELECT c, sum(k) FROM w GROUP BY c ORDER BY c DESC LIMIT 20 OFFSET 3",
       "groups by hash, transfer", true},
      {"SELECT e, count(*) FROM w GROUP BY e", "groups by hash, transfer", true},
      {"SELECT e, count(*) FROM w GROUP BY e HAVING e <> '' ORDER BY count(*), e LIMIT 30",
       "groups by hash, sorted on the gpu", true},
      {"SELECT m, count(*) FROM w GROUP BY m", "groups by hash, transfer", true},
      {"SELECT m, sum(a) FROM w GROUP BY m HAVING m IS NOT NULL ORDER BY m DESC",
       "groups by hash, transfer", true},
      {"SELECT m+0, count(*) FROM w GROUP BY m", "groups by hash, transfer", true},
      {"SELECT z, count(*) FROM w GROUP BY z", "groups by hash, transfer", true},
      {"SELECT x, count(*) FROM w GROUP BY x ORDER BY x DESC LIMIT 100", "groups by hash, transfer",
       true},
      {"SELECT a, s, m, count(*) FROM w GROUP BY a, s, m", "groups by hash, transfer", true},
      {"SELECT s, a, c, k%3, count(*) FROM w GROUP BY s, a, c, 4 ORDER BY s DESC, a, c DESC, 4",
       "groups by hash, transfer", true},
      {"SELECT m, z, e, count(*) FROM w GROUP BY m, z, e", "groups by hash, transfer", true},
      {"SELECT substr(s, 3, 1), count(*), count(DISTINCT m), sum(DISTINCT a) FROM w GROUP BY 1",
       "groups by hash, transfer", true},
      {"SELECT DISTINCT s FROM w", "groups by hash, transfer", true},
      {"SELECT DISTINCT m, a FROM w", "groups by hash, transfer", true},
      {"SELECT DISTINCT c, s FROM w ORDER BY s, c LIMIT 40", "groups by hash, sorted on the gpu",
       true},
      {"SELECT count(*), max(n), sum(length(s)) FROM (SELECT s, count(*) AS n FROM w GROUP BY s)",
       NULL, true},
      {"SELECT a, (SELECT count(*) FROM (SELECT DISTINCT s FROM w)) FROM w GROUP BY a||''", NULL,
       true},
      {"SELECT v.s||'', count(*), sum(w.k) FROM w JOIN v ON v.k = w.a GROUP BY 1, w.s",
       "groups by hash, transfer", true},
  };
  static const int n_rows[] = {0, 1, 2, 257, 5000, 65537};
  for (int i = 0; i < (int)(sizeof n_rows / sizeof *n_rows); i++) {
    sqlite3 *db = open_texts(n_rows[i]);
    char label[40];
    snprintf(label, sizeof label, "%d rows", n_rows[i]);
    for (int k = 0; k < (int)(sizeof of / sizeof *of); k++)
      check(db, engine, label, of[k].sql, n_rows[i] >= 5000 ? of[k].way : NULL, true);
    sqlite3_close(db);
  }
}

/* min(), max() and sums of distinct values that are texts or of several types. */
static void text_bests(const char *engine) {
  static const char *const queries[] = {
      "SELECT min(s), max(s), count(*) FROM w",
      "SELECT min(c), max(c), hex(max(c)) FROM w",
      "SELECT min(e)||'|', max(e)||'|' FROM w",
      "SELECT min(m), max(m), min(z), max(z) FROM w",
      "SELECT min(m COLLATE NOCASE), max(m COLLATE RTRIM), sum(a) FROM w WHERE k%7 < 3",
      "SELECT a, min(s), max(s), min(x), count(s) FROM w GROUP BY a",
      "SELECT a, min(c), max(c), min(e)||'|', max(e) FROM w GROUP BY a",
      "SELECT k%3, min(m), max(m), min(z), max(z), total(a) FROM w GROUP BY 1",
      "SELECT s, max(x), min(m) FROM w GROUP BY s",
      "SELECT k, max(s), min(m), max(c) FROM w GROUP BY k",
      "SELECT k%1000, max(s||k), min(s||(k%3)) FROM w GROUP BY 1 HAVING max(s||k) > 'b' ORDER BY "
      "max(s||k) DESC LIMIT 20",
      "SELECT min(x), max(s), min(m) FROM w WHERE k < 0",
      "SELECT min(m) FROM w WHERE m IS NULL",
      "SELECT max(CASE k%3 WHEN 0 THEN 1 WHEN 1 THEN 1.0 ELSE s END) FROM w",
      "SELECT a, min(CASE k%3 WHEN 0 THEN 1 WHEN 1 THEN 1.0 ELSE s END) FROM w GROUP BY a",
      "SELECT min('const'), max(x||''), count(DISTINCT s), sum(DISTINCT a) FROM w",
      "SELECT sum(DISTINCT k%500||s), total(DISTINCT s), avg(DISTINCT k%90||'.25') FROM w",
      "SELECT a, sum(DISTINCT k%500||s), total(DISTINCT z), count(DISTINCT s) FROM w GROUP BY a",
      "SELECT s, avg(DISTINCT k||''), sum(DISTINCT CASE WHEN k%2 THEN k ELSE k||'.5' END) FROM w "
      "GROUP BY s HAVING sum(DISTINCT CASE WHEN k%2 THEN k ELSE k||'.5' END) > 9",
      "SELECT v.s, max(w.s), min(w.x) FROM w JOIN v ON v.k = w.a GROUP BY v.s",
      "SELECT count(*), min(b), max(b) FROM (SELECT a, max(s) AS b FROM w GROUP BY a, k%50)",
  };
  check_texts(engine, queries, sizeof queries / sizeof *queries, "");
}

/* Texts that agree in thousands of bytes, and texts of which each agrees with the others in eight
** bytes more than the one before it. */
static void alike_texts(const char *engine) {
  static const one of[] = {
      {"SELECT k FROM b ORDER BY long||k%7", "; sorted on the gpu", true},
      {"SELECT k FROM b ORDER BY long||k%7 DESC, k DESC", "; sorted on the gpu", true},
      {"SELECT k FROM b ORDER BY (long||k%7) COLLATE NOCASE LIMIT 5", "; sorted on the gpu", true},
      {"SELECT k FROM b ORDER BY z DESC", "; sorted on the gpu", true},
      {"SELECT k FROM b ORDER BY more||(k%1)", "; sorted on the cpu: many texts begin alike", true},
      {"SELECT k FROM b WHERE k <= 100 ORDER BY more||(k%1) DESC", "; sorted on the gpu", true},
      {"SELECT k FROM b ORDER BY more||(k%1) LIMIT 3", "; sorted on the cpu: many texts", true},
      {"SELECT k FROM b ORDER BY more||(k%1) DESC LIMIT 3", "; sorted on the gpu", true},
  };
  sqlite3 *db;
  sqlite3_open(":memory:", &db);
  must(db,
       "CREATE TABLE b(k INTEGER PRIMARY KEY, long TEXT, more TEXT, z BLOB);"
       "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x < 300) "
       "INSERT INTO b SELECT x, replace(hex(zeroblob(CASE WHEN x%10 THEN 3000 ELSE 70000 END)), "
       "'0', 'y')||(x*7%50), replace(hex(zeroblob(4*x)), '0', 'x')||'y', NULL FROM c;"
       "UPDATE b SET z = CAST(long||k%7 AS BLOB)");
  for (int k = 0; k < (int)(sizeof of / sizeof *of); k++)
    check(db, engine, "texts that begin alike", of[k].sql, of[k].way, of[k].oracle);
  sqlite3_close(db);
}

/* Ranges around each way's limits; on the simulator, whose shared memory is known. */
static void spans(const char *engine) {
  static const struct {
    int span;
    const char *way;
  } of[] = {{1, "shared memory"},    {2, "shared memory"},    {95, "shared memory"},
            {97, "shared memory"},   {3071, "shared memory"}, {3073, "shared memory"},
            {6143, "shared memory"}, {6144, "shared memory"}, {6145, "by address"},
            {65535, "by address"},   {65536, "by address"},   {65537, "by hash"},
            {1 << 22, "by hash"}};
  sqlite3 *db;
  sqlite3_open(":memory:", &db);
  must(db, "CREATE TABLE e(k INTEGER PRIMARY KEY, x INTEGER, n INTEGER)");
  for (int i = 0; i < (int)(sizeof of / sizeof *of); i++) {
    char sql[500], label[40];
    int s = of[i].span;
    snprintf(sql, sizeof sql,
             "DELETE FROM e; WITH RECURSIVE c(v) AS (VALUES(0) UNION ALL SELECT v+1 FROM c WHERE "
             "v < 3000) INSERT INTO e SELECT NULL, CASE v WHEN 0 THEN -70 WHEN 1 THEN %d ELSE "
             "v*48271%%%d-70 END, CASE WHEN v%%7 THEN v*48271%%%d END FROM c",
             s - 71, s, s > 1 ? s - 1 : 1);
    must(db, sql);
    snprintf(label, sizeof label, "a span of %d", s);
    const char *way = strcmp(engine, "sim") ? NULL : of[i].way;
    check(db, engine, label, "SELECT x, count(*) FROM e GROUP BY x", way, true);
    check(db, engine, label, "SELECT n, count(*), sum(k), min(x), max(x) FROM e GROUP BY n", NULL,
          true);
  }
  sqlite3_close(db);
}

/* Tables that grow, keys in passes, too little room; rows in several launches. */
static void budgets(const char *engine) {
  static const struct {
    const char *budget, *sql, *way;
  } of[] = {
      {"900M", "SELECT k*100000007, count(*), sum(b) FROM t GROUP BY 1", "by hash"},
      {"4M", "SELECT k*100000007, count(*), sum(b) FROM t GROUP BY 1", "passes"},
      {"4M", "SELECT w, r, count(*), sum(b) FROM t GROUP BY w, r", "passes"},
      {"4M", "SELECT w, b, sum(" MIXED "), min(" MIXED ") FROM t GROUP BY w, b", "passes"},
      {"40M", "SELECT k, sum(" MIXED "), max(" MIXED ") FROM t GROUP BY k", "passes"},
      {"16M", "SELECT k, count(*), sum(r), sum(odd) FROM t GROUP BY k", "passes"},
      {"40M", "SELECT k, count(*), sum(r), sum(odd) FROM t GROUP BY k", "by address, 3 passes"},
      {"4M", "SELECT a, count(*), sum(r), min(b) FROM t GROUP BY a", "shared memory"},
      {"0", "SELECT count(DISTINCT k), sum(DISTINCT b), count(*) FROM t", ""},
      {"16M", "SELECT a, count(DISTINCT b), count(DISTINCT k%1000), sum(r) FROM t GROUP BY a",
       "shared memory"},
      {"4M", "SELECT count(DISTINCT k) FROM t", "cpu"},
      {"12M", "SELECT k%50000, count(DISTINCT b%3), count(*), min(w) FROM t GROUP BY 1", ""},
      {"0", "SELECT s||(k%90000), count(*), sum(b), count(DISTINCT a) FROM t GROUP BY 1",
       "groups by hash, transfer"},
      {"0", "SELECT DISTINCT s||(k%90000) FROM t", "groups by hash, transfer"},
      {"64M",
       "SELECT s||(k%3000), u, count(*) FROM t GROUP BY 1, 2 HAVING count(*) > 2 ORDER BY 1 "
       "DESC LIMIT 9",
       ""},
      {"12M", "SELECT s||(k%2000), a, b, count(*), sum(r) FROM t GROUP BY 1, 2, 3", "passes"},
      {"16M", "SELECT s||(k%100000), count(*) FROM t GROUP BY 1", "cpu"},
      {"0", "SELECT k%70000, max(s||k), min(u) FROM t GROUP BY 1", "groups by address, transfer"},
      {"32M", "SELECT k, max(s||k), count(*) FROM t GROUP BY k", "cpu"},
      {"12M", "SELECT max(s||k), min(s||(k+100000)) FROM t", ""},
      {"8M", "SELECT k, a FROM t ORDER BY b, a", "; sorted on the cpu: the rows come in"},
      {"12M", "SELECT k, a FROM t ORDER BY s||k, a", "; sorted on the cpu: the rows come in"},
      {"12M", "SELECT k, u FROM t ORDER BY u DESC, s||k LIMIT 20", "; sorted on the cpu: the rows"},
      {"60M", "SELECT k, s FROM t ORDER BY s||k, a", "; sorted on the gpu"},
      {"8M", "SELECT k, a FROM t ORDER BY b, a LIMIT 20", "; sorted on the cpu: the rows come in"},
      {"8M", "SELECT DISTINCT a, b FROM t ORDER BY b DESC LIMIT 30 OFFSET 5",
       "on the cpu: the rows"},
      {"8M", "SELECT DISTINCT a FROM t ORDER BY r LIMIT 9", "on the cpu: the rows"},
      {"8M", "SELECT DISTINCT b FROM t", "on the cpu: the rows"},
      {"700K", "SELECT count(*), sum(x.b), max(x.a) FROM t JOIN t x ON x.k = t.k+1", "a join in"},
      {"700K", "SELECT t.a, count(x.k), sum(x.b) FROM t LEFT JOIN t x ON x.k = t.k+1 GROUP BY t.a",
       "a join in"},
      {"64K", "SELECT k, count(*) FROM t GROUP BY k", "cpu"},
      {"64K", "SELECT k, a FROM t ORDER BY b", "cpu"},
  };
  sqlite3 *db = open_rows(200000);
  for (int i = 0; i < (int)(sizeof of / sizeof *of); i++) {
    char label[60];
    snprintf(label, sizeof label, "200000 rows, device_budget %s", of[i].budget);
    use_engine(db, engine);
    use_setting(db, "device_budget", of[i].budget);
    check(db, engine, label, of[i].sql, of[i].way, strstr(of[i].sql, "odd") == NULL);
  }
  use_setting(db, "device_budget", "0");
  sqlite3_close(db);
}

/* Every way for the columns to get there, in one launch and in several. */
static void transfers(const char *engine) {
  static const char *const modes[] = {"serial", "stream", "mapped", "cached"};
  static const char *const queries[] = {
      "SELECT a, count(*), sum(r), min(w), max(b), sum(odd) FROM t GROUP BY a",
      "SELECT k%70000, count(*), sum(r), avg(b) FROM t GROUP BY 1",
      "SELECT w, r, count(*), sum(k) FROM t GROUP BY w, r",
      "SELECT s||(k%3000), count(*), sum(k), count(DISTINCT s||a) FROM t GROUP BY 1",
      "SELECT a, min(s||k), max(u), min(s||(k%70)) FROM t GROUP BY a",
      "SELECT u, s||a, count(*) FROM t GROUP BY 1, 2 HAVING u LIKE '%1%' ORDER BY 2 DESC, 1",
      "SELECT k, s, r FROM t WHERE k%3=1 ORDER BY r, b DESC",
      "SELECT k, s||'!' FROM t ORDER BY b LIMIT 30",
      "SELECT k, u FROM t WHERE k%2 ORDER BY u DESC, s||b",
      "SELECT s||(k%70001), r FROM t ORDER BY 1 LIMIT 300 OFFSET 50",
      "SELECT DISTINCT a, r FROM t",
      "SELECT a, count(s||k), count(*) FROM t GROUP BY a",
  };
  sqlite3 *db = open_rows(200000);
  for (int m = 0; m < 4; m++)
    for (int big = 0; big < 2; big++)
      for (int k = 0; k < (int)(sizeof queries / sizeof *queries); k++) {
        char label[60];
        snprintf(label, sizeof label, "transfer=%s, device_budget %s", modes[m], big ? "0" : "12M");
        use_engine(db, engine);
        use_setting(db, "transfer", modes[m]);
        use_setting(db, "device_budget", big ? "0" : "12M");
        check(db, engine, label, queries[k], big ? "; " : NULL, k > 0);
      }
  sqlite3_close(db);
}

/* Random queries, most of whose keys are numbers. None is the bare rowid: grouped by that and other
** terms, SQLite leaves the groups in rowid order. */
static void random_queries(const char *engine, int n_rows, int n) {
  static const char *const keys[] = {
      "a",     "b",      "r",   "w",     "a%3", "k%1000", "+k", "-b", "odd",  "a+b",  "b*77",
      "r*0.0", "a IS 2", "b/7", "b*1.0", "k>9", "w%9",    "-r", "u",  "s||b", "u||w", "s"};
  static const char *const aggs[] = {
      "count(*)", "count(a)",      "sum(a)",         "sum(r)",         "min(w)",        "max(w)",
      "avg(b)",   "min(r)",        "max(-r*0.0)",    "sum(b*k)",       "count(s)",      "total(b)",
      "sum(r*b)", "min(b)+max(k)", "sum(" MIXED ")", "max(" MIXED ")", "sum(" TEXTS ")"};
  static const char *const where[] = {"a>1", "b<10", "r<>0", "w IS NOT NULL", "k%7<5", "0"};
  static const char *const way[] = {"", " DESC", " NULLS LAST", " DESC NULLS FIRST"};
#define ANY(l) l[rng_below(&rnd, (int)(sizeof l / sizeof *l))]
  rng rnd = {(uint64_t)n_rows};
  sqlite3 *db = open_rows(n_rows);
  for (int i = 0; i < n; i++) {
    char sql[1000] = "SELECT ", label[40];
    int n_keys = rng_below(&rnd, 4), n_out = 1 + rng_below(&rnd, 3), at = 7;
    const char *k[3] = {ANY(keys), ANY(keys), ANY(keys)};
    bool distinct = rng_chance(&rnd, 25);
    if (distinct) at += snprintf(sql + at, sizeof sql - (size_t)at, "DISTINCT ");
    for (int j = 0; j < n_out; j++)
      at += snprintf(sql + at, sizeof sql - (size_t)at, "%s%s", j ? ", " : "",
                     !n_keys                ? ANY(keys)
                     : rng_chance(&rnd, 50) ? k[rng_below(&rnd, n_keys)]
                                            : ANY(aggs));
    at += snprintf(sql + at, sizeof sql - (size_t)at, " FROM t");
    if (rng_chance(&rnd, 40))
      at += snprintf(sql + at, sizeof sql - (size_t)at, " WHERE %s", ANY(where));
    for (int j = 0; j < n_keys; j++)
      at += snprintf(sql + at, sizeof sql - (size_t)at, "%s%s", j ? ", " : " GROUP BY ", k[j]);
    for (int j = 0, m = rng_below(&rnd, 4); j < m; j++)
      at += snprintf(sql + at, sizeof sql - (size_t)at, "%s%s%s", j ? ", " : " ORDER BY ",
                     !n_keys                ? ANY(keys)
                     : rng_chance(&rnd, 50) ? k[rng_below(&rnd, n_keys)]
                                            : ANY(aggs),
                     ANY(way));
    if (rng_chance(&rnd, 30))
      at += snprintf(sql + at, sizeof sql - (size_t)at, " LIMIT %d", rng_below(&rnd, 30));
    snprintf(label, sizeof label, "random, %d rows", n_rows);
    check(db, engine, label, sql, NULL, true);
  }
  sqlite3_close(db);
}

int main(void) {
  const char *engines[] = {"sim", getenv("WL_TEST_CUDA") ? "cuda" : NULL};
  for (int e = 0; e < 2 && engines[e]; e++) {
    sizes(engines[e]);
    texts(engines[e]);
    alike_texts(engines[e]);
    text_groups(engines[e]);
    text_bests(engines[e]);
    spans(engines[e]);
    budgets(engines[e]);
    transfers(engines[e]);
    random_queries(engines[e], 300, TEST_SANITIZED ? 100 : 400);
    random_queries(engines[e], 5000, TEST_SANITIZED ? 30 : 150);
    random_queries(engines[e], 70000, TEST_SANITIZED ? 5 : 25);
  }
  return tap_done();
}
