/*
** The tables of the router benchmark, and how it stops when something goes wrong.
*/
#ifndef ROUTER_DATA_H
#define ROUTER_DATA_H

#include <sqlite3.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "query.h"

static void fatal(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fprintf(stderr, "router: ");
  vfprintf(stderr, fmt, args);
  fprintf(stderr, "\n");
  va_end(args);
  exit(2);
}

static void exec(sqlite3 *db, const char *sql) {
  char *message = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) fatal("%s: %s", sql, message);
}

static sqlite3_stmt *prepared(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
    fatal("%s: %s", sql, sqlite3_errmsg(db));
  return s;
}

static void insert(sqlite3_stmt *s) {
  if (sqlite3_step(s) != SQLITE_DONE) fatal("INSERT: %s", sqlite3_errmsg(sqlite3_db_handle(s)));
  sqlite3_reset(s);
}

/* t: the large table. a is unique and random, k has 100 rows per value, ts rises with the rowid, s
** is text, c has 8 values of very different frequency, z is 1 in a thousandth of the rows, u is
** mostly NULL. */
static void fill_t(sqlite3 *db, long n, long n_d, struct generator *g) {
  static const char *const colors[] = {"red", "green", "blue", "black", "white", "grey", "pink"};
  sqlite3_stmt *s = prepared(db, "INSERT INTO t VALUES(?,?,?,?,?,?,?,?,?,?,?,?)");
  char text[32], note[64];
  uint64_t step = 2654435761u % (uint64_t)n | 1;
  while (n % (long)step == 0 && step > 1) step += 2;
  for (long i = 1; i <= n; i++) {
    uint64_t r = generator_bits(g);
    sqlite3_bind_int64(s, 1, i);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)((uint64_t)i * step % (uint64_t)n));
    sqlite3_bind_int64(s, 3, (sqlite3_int64)(r % (uint64_t)(n / 100 + 5)));
    sqlite3_bind_int64(s, 4, 1600000000 + i * 10 + (long)(r >> 20 & 31));
    snprintf(text, sizeof text, "name%08lu", (unsigned long)((r >> 8) % (uint64_t)n));
    sqlite3_bind_text(s, 5, text, -1, SQLITE_TRANSIENT);
    unsigned color = (unsigned)__builtin_ctz((unsigned)(r >> 33) | 64);
    sqlite3_bind_text(s, 6, colors[color], -1, SQLITE_STATIC);
    sqlite3_bind_double(s, 7, (double)(r >> 40 & 4095) * 0.25);
    sqlite3_bind_int64(s, 8, (sqlite3_int64)((r >> 12) % 1000));
    sqlite3_bind_int(s, 9, (r >> 5) % 1000 == 0);
    if (r % 4)
      sqlite3_bind_null(s, 10);
    else
      sqlite3_bind_int64(s, 10, (sqlite3_int64)(r >> 50));
    sqlite3_bind_int64(s, 11, 1 + (sqlite3_int64)((r >> 17) % (uint64_t)n_d));
    snprintf(note, sizeof note, "note %lx about %lu", (unsigned long)(r & 0xffffff),
             (r >> 30) % 97);
    sqlite3_bind_text(s, 12, note, -1, SQLITE_TRANSIENT);
    insert(s);
  }
  sqlite3_finalize(s);
}

static void fill_others(sqlite3 *db, long n, long n_d, struct generator *g) {
  char text[32];
  sqlite3_stmt *s = prepared(db, "INSERT INTO d VALUES(?,?,?)");
  for (long i = 1; i <= n_d; i++) {
    sqlite3_bind_int64(s, 1, i);
    snprintf(text, sizeof text, "dim%05ld", i);
    sqlite3_bind_text(s, 2, text, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)(generator_bits(g) % 20));
    insert(s);
  }
  sqlite3_finalize(s);
  s = prepared(db, "INSERT INTO e(t, q, p) VALUES(?,?,?)");
  for (long i = 1; i <= n / 2; i++) {
    uint64_t r = generator_bits(g);
    sqlite3_bind_int64(s, 1, 1 + (sqlite3_int64)(r % (uint64_t)n));
    sqlite3_bind_int64(s, 2, (sqlite3_int64)((r >> 32) % 50));
    sqlite3_bind_double(s, 3, (double)(r >> 40 & 1023) * 0.25);
    insert(s);
  }
  sqlite3_finalize(s);
  s = prepared(db, "INSERT INTO w VALUES(?,?,?)");
  for (long i = 1; i <= n / 4; i++) {
    uint64_t r = generator_bits(g);
    sqlite3_bind_int64(s, 1, (sqlite3_int64)(r % (uint64_t)(n / 50 + 1)));
    sqlite3_bind_int64(s, 2, i);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)(r >> 54));
    insert(s);
  }
  sqlite3_finalize(s);
}

#endif
