/*
** The demonstration: a few questions to a SQLite database of a million sales, answered
** by SQLite and by warplite, both times side by side.
**
** Stands outside the library, as any program that uses it: it opens a file, calls
** warplite_enable() and warplite_prepare(), and steps statements. Settings are the
** defaults, so the router decides; warplite_load() is called first, as a program does
** that knows it will ask about a table.
**
** 1. The database is written under another name and renamed when it is whole, so a file
**    that is there is a file that is complete.
** 2. Prices and discounts are multiples of 1/64: sums of them are exact in any order, so
**    warplite's answers must be SQLite's to the last bit, and the program fails if not.
*/

#include <errno.h>
#include <time.h>
#include "digest.h"

#define RUNS 3

static const char *const questions[] = {
    "SELECT count(*), sum(quantity), avg(price), max(price) FROM sales",

    "SELECT sum(quantity * price * (1 - discount)) FROM sales\n"
    "  WHERE shop BETWEEN 10 AND 19 AND discount IS NOT NULL",

    "SELECT count(*), min(day), max(day) FROM sales\n"
    "  WHERE product IN ('tea', 'coffee') AND day >= '2023-07-01'",

    "SELECT sum(CASE WHEN discount IS NULL THEN quantity ELSE 0 END), sum(quantity % 2) FROM sales",

    "SELECT count(coupon), count(*), total(price) FROM sales\n"
    "  WHERE quantity * 3 + shop > 60 OR coupon = 'SPRING'",

    "SELECT id, product, quantity * price FROM sales\n"
    "  WHERE price > 60 AND quantity >= 19 AND NOT shop & 1",
};

/* Every column is a hash of the row's number, so that no run looks like another row's. */
static const char *const make_sql =
    "PRAGMA journal_mode = OFF;"
    "PRAGMA synchronous = OFF;"
    "CREATE TABLE sales("
    "  id INTEGER PRIMARY KEY, day TEXT, shop INTEGER, product TEXT, quantity INTEGER,"
    "  price REAL, discount REAL, coupon TEXT);"
    "BEGIN;"
    "WITH RECURSIVE"
    "  n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000),"
    "  r(i, a, b, c) AS (SELECT i, i * 2654435761 >> 7 & 65535, i * 2246822519 >> 9 & 65535,"
    "                    i * 3266489917 >> 11 & 65535 FROM n)"
    "INSERT INTO sales SELECT i,"
    "  date('2023-01-01', '+' || (i * 365 / 1000001) || ' days'),"
    "  a % 50,"
    "  CASE b % 6 WHEN 0 THEN 'tea' WHEN 1 THEN 'coffee' WHEN 2 THEN 'bread'"
    "             WHEN 3 THEN 'milk' WHEN 4 THEN 'apples' ELSE 'honey' END,"
    "  1 + c % 20,"
    "  0.5 + (a * 7 + b) % 4096 / 64.0,"
    "  CASE WHEN c % 5 = 0 THEN (1 + b % 16) / 64.0 END,"
    "  CASE WHEN b % 11 = 0 THEN 'SPRING' WHEN b % 13 = 0 THEN 'AUTUMN' END"
    " FROM r;"
    "COMMIT;";

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static bool make_database(const char *path) {
  char temporary[4096], *message = NULL;
  sqlite3 *db = NULL;
  FILE *there = fopen(path, "rb");
  if (there) {
    fclose(there);
    return true;
  }
  if (snprintf(temporary, sizeof temporary, "%s.part", path) >= (int)sizeof temporary) {
    fprintf(stderr, "demo: the path is too long\n");
    return false;
  }
  printf("making %s, a million sales ...\n", path);
  fflush(stdout);
  remove(temporary);
  bool ok = sqlite3_open(temporary, &db) == SQLITE_OK &&
            sqlite3_exec(db, make_sql, NULL, NULL, &message) == SQLITE_OK;
  if (!ok) fprintf(stderr, "demo: %s: %s\n", temporary, message ? message : sqlite3_errmsg(db));
  sqlite3_free(message);
  sqlite3_close(db);
  if (ok && rename(temporary, path) != 0) {
    fprintf(stderr, "demo: %s: %s\n", path, strerror(errno));
    ok = false;
  }
  if (!ok) remove(temporary);
  return ok;
}

/* The first row in the shell's list mode. */
static void print_row(sqlite3_stmt *stmt) {
  printf("  answer    ");
  for (int c = 0; c < sqlite3_column_count(stmt); c++) {
    const unsigned char *text = sqlite3_column_text(stmt, c);
    printf("%s%s", c ? "|" : "", text ? (const char *)text : "");
  }
}

typedef int (*prepare_call)(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);

/* The best time of a few runs, each from text to last row; negative when one failed. */
static double time_question(sqlite3 *db, prepare_call prepare, const char *sql) {
  double best = -1;
  for (int run = 0; run < RUNS; run++) {
    sqlite3_stmt *stmt = NULL;
    struct digest touch = {0};
    double start = now_ms();
    int rc = prepare(db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK) rc = digest_sqlite(&touch, stmt);
    double ms = now_ms() - start;
    if (rc != SQLITE_OK) fprintf(stderr, "demo: %s\n", sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
    if (rc != SQLITE_OK) return -1;
    if (best < 0 || ms < best) best = ms;
  }
  return best;
}

/* Reads all of an answer; prints the first row of SQLite's. */
static bool read_answer(sqlite3 *db, prepare_call prepare, const char *sql, struct digest *d,
                        bool print) {
  sqlite3_stmt *stmt = NULL;
  int rc = prepare(db, sql, -1, &stmt, NULL);
  *d = (struct digest){.full = true};
  if (rc == SQLITE_OK && print && sqlite3_step(stmt) == SQLITE_ROW) print_row(stmt);
  if (rc == SQLITE_OK) rc = sqlite3_reset(stmt);
  if (rc == SQLITE_OK) rc = digest_sqlite(d, stmt);
  if (rc != SQLITE_OK) fprintf(stderr, "demo: %s\n", sqlite3_errmsg(db));
  sqlite3_finalize(stmt);
  if (print && d->n_rows > 1) printf("   (first of %lld rows)", (long long)d->n_rows);
  if (print) printf("\n");
  return rc == SQLITE_OK;
}

static bool ask(sqlite3 *db, const char *sql) {
  struct digest want, got;
  printf("\n%s\n", sql);
  if (!read_answer(db, sqlite3_prepare_v2, sql, &want, true)) return false;
  if (!read_answer(db, warplite_prepare, sql, &got, false)) return false;
  if (!digest_equal(&want, &got)) {
    fprintf(stderr, "demo: warplite's answer is not SQLite's\n");
    return false;
  }
  double sqlite_ms = time_question(db, sqlite3_prepare_v2, sql);
  double warplite_ms = time_question(db, warplite_prepare, sql);
  if (sqlite_ms < 0 || warplite_ms < 0) return false;
  printf("  SQLite    %8.2f ms\n", sqlite_ms);
  printf("  warplite  %8.2f ms   %.1fx\n", warplite_ms, sqlite_ms / warplite_ms);
  printf("  ran on    %s\n", warplite_reason(db));
  return true;
}

int main(int argc, char **argv) {
  sqlite3 *db = NULL;
  int rc = 1;
  if (argc != 2) {
    fprintf(stderr, "usage: demo DATABASE   (made if it is not there)\n");
    return 2;
  }
  if (!make_database(argv[1])) return 1;
  if (sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
    fprintf(stderr, "demo: %s: %s\n", argv[1], sqlite3_errmsg(db));
    goto done;
  }
  if (warplite_enable(db) != SQLITE_OK) {
    fprintf(stderr, "demo: %s\n", warplite_errmsg(db));
    goto done;
  }
  double start = now_ms();
  if (sqlite3_exec(db, "SELECT warplite_load('sales')", NULL, NULL, NULL) != SQLITE_OK) {
    fprintf(stderr, "demo: loading: %s\n", sqlite3_errmsg(db));
    goto done;
  }
  printf("%s: 1,000,000 rows, read into columns in %.0f ms\n", argv[1], now_ms() - start);
  for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
    if (!ask(db, questions[i])) goto done;
  rc = 0;
done:
  sqlite3_close(db);
  return rc;
}
