/*
** Random tables for the fuzzer (fuzz.c): schema, indexes and rows full of awkward values.
**
** Invariants:
** 1. A table is a function of its seed alone.
** 2. Rows are kept as text, one INSERT each, so that a failure can be shrunk row by row and
**    printed as a script. OR IGNORE passes over rows that a key or NOT NULL refuses.
*/
#ifndef TEST_FUZZ_TABLE_H
#define TEST_FUZZ_TABLE_H

#include <sqlite3.h>
#include <string.h>

#include "../rng.h"
#include "../rows.h"
#include "values.h"

enum { MAX_COLS = 7, MAX_ROWS = 64, MAX_INDEXES = 3 };

/* What a column's values are like. The first N_EXACT can be summed in any order. */
typedef enum flavour {
  F_SMALL,
  F_DYADIC,
  F_BOOL,
  N_EXACT,
  F_WIDE = N_EXACT,
  F_EDGE_INT,
  F_WILD_REAL,
  F_NULLS,
  F_WORDS, /* few distinct texts */
  F_NUMERIC_TEXT,
  F_ODD_TEXT,
  F_ALIKE,  /* texts and a few blobs that begin alike, for some bytes more or fewer than a word */
  F_SERIAL, /* all distinct */
  F_DATES,
  F_JSON,
  F_BLOBS,
  F_MIXED,
  N_FLAVOURS
} flavour;

typedef struct table {
  const char *encoding; /* of the database, or NULL: UTF-8 */
  char schema[900];
  int n_cols;
  flavour flavour[MAX_COLS];
  bool real[MAX_COLS]; /* its integers become REALs */
  bool has_rowid, has_k, strict;
  int n_rows;
  char *row[MAX_ROWS]; /* "(1,'a',…)" */
  bool gone[MAX_ROWS]; /* shrunk away */
  int times;           /* the rows are put in this many times over, for size */
  char index[MAX_INDEXES][200];
  bool analyze;
  bool bad_end;   /* behind all rows one at which abs() fails */
  int like_limit; /* on a pattern of LIKE, if not 0 */
} table;

static const char *const dates[] = {"'2024-02-29'",
                                    "'2024-02-29 12:34:56'",
                                    "'1970-01-01'",
                                    "'12:00'",
                                    "2460000.5",
                                    "0",
                                    "1700000000",
                                    "'2000-01-01T00:00:00.123'",
                                    "'now is no date'",
                                    "'-4713-11-24'",
                                    "1e10"};
static const char *const jsons[] = {"'{\"a\":1,\"b\":[1,2.5,\"x\"]}'",
                                    "'{\"a\":null}'",
                                    "'[1,2,3]'",
                                    "'{\"a\":{\"b\":\"t\"}}'",
                                    "'7'",
                                    "'\"s\"'",
                                    "'{\"a\":true}'"};

static char *alike(rng *r) {
  static const unsigned char start[] = "abCde f\xff", ends[] = {'a', 'A', ' ', 0, 'z', '[', 0x80};
  char hex[2 * 48 + 1];
  int n = rng_chance(r, 50) ? 20 : rng_below(r, 40), more = rng_below(r, 5);
  for (int i = 0; i < n + more; i++) {
    int c = i < n ? start[i % (int)(sizeof start - 1)] : PICK(r, ends);
    if (i < n && c >= 'a' && c <= 'z' && rng_chance(r, 5)) c -= 32;
    snprintf(hex + 2 * i, 3, "%02x", (unsigned)c);
  }
  hex[2 * (n + more)] = 0;
  return rng_chance(r, 10) ? format("x'%s'", hex) : format("CAST(x'%s' AS TEXT)", hex);
}

static char *value(rng *r, flavour f) {
  switch (f) {
  case F_SMALL: return format("%d", rng_below(r, 41) - 20);
  case F_DYADIC: return format("%!.3f", (rng_below(r, 4001) - 2000) / 8.0);
  case F_BOOL: return format("%d", rng_below(r, 2));
  case F_WIDE: return format("%s", PICK(r, wide_ints));
  case F_EDGE_INT: return format("%s", PICK(r, edge_ints));
  case F_WILD_REAL: return format("%s", PICK(r, wild_reals));
  case F_NULLS: return format("NULL");
  case F_WORDS: return format("%s", PICK(r, words));
  case F_NUMERIC_TEXT: return format("%s", PICK(r, numeric_texts));
  case F_ODD_TEXT: return format("%s", PICK(r, odd_texts));
  case F_ALIKE: return alike(r);
  case F_SERIAL:
    return format("'%s%d'", rng_chance(r, 50) ? "row " : "Item-", rng_below(r, 1 << 30));
  case F_DATES: return format("%s", PICK(r, dates));
  case F_JSON: return format("%s", PICK(r, jsons));
  case F_BLOBS: return format("%s", PICK(r, blobs));
  default: return value(r, (flavour)rng_below(r, F_MIXED));
  }
}

/* ---- schema */

typedef struct writer {
  char *to;
  size_t n, size;
} writer;

static void put(writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(writer *w, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(w->to + w->n, w->size - w->n, fmt, ap);
  va_end(ap);
  w->n += (size_t)n;
  if (w->n >= w->size) abort();
}

/* A strict table takes only what its types say. */
static const char *strict_type(rng *r, flavour *f) {
  static const flavour ints[] = {F_SMALL, F_BOOL, F_WIDE, F_EDGE_INT};
  static const flavour numbers[] = {F_SMALL, F_DYADIC, F_WILD_REAL, F_WIDE};
  static const flavour texts[] = {F_WORDS, F_NUMERIC_TEXT, F_ODD_TEXT, F_SERIAL};
  switch (rng_below(r, 5)) {
  case 0: *f = PICK(r, ints); return rng_chance(r, 50) ? "INT" : "INTEGER";
  case 1: *f = PICK(r, numbers); return "REAL";
  case 2: *f = PICK(r, texts); return rng_chance(r, 70) ? "TEXT" : "TEXT COLLATE NOCASE";
  case 3: *f = F_BLOBS; return "BLOB";
  default: *f = (flavour)rng_below(r, N_FLAVOURS); return "ANY";
  }
}

static void put_columns(rng *r, writer *w, const table *t, int most) {
  static const char *const colls[] = {
      "", "", "", "", " COLLATE NOCASE", " COLLATE RTRIM", " COLLATE BINARY"};
  static const char *const directions[] = {"", "", " ASC", " DESC", " DESC"};
  int n = 1 + rng_below(r, most < t->n_cols ? most : t->n_cols), first = rng_below(r, t->n_cols);
  for (int i = 0; i < n; i++)
    put(w, "%sc%d%s%s", i ? ", " : "", (first + i) % t->n_cols, PICK(r, colls),
        PICK(r, directions));
}

static void make_indexes(rng *r, table *t) {
  for (int i = 0; i < MAX_INDEXES; i++) {
    writer w = {t->index[i], 0, sizeof t->index[i]};
    t->index[i][0] = 0;
    if (!rng_chance(r, 22)) continue;
    put(&w, "CREATE INDEX t_%d ON t(", i);
    if (rng_chance(r, 8)) put(&w, "c%d || '', ", rng_below(r, t->n_cols));
    put_columns(r, &w, t, 3);
    put(&w, ")");
    if (rng_chance(r, 12)) put(&w, " WHERE c%d IS NOT NULL", rng_below(r, t->n_cols));
  }
  t->analyze = rng_chance(r, 10);
}

static void make_schema(rng *r, table *t) {
  static const char *const types[] = {"INTEGER",
                                      "INT",
                                      "REAL",
                                      "TEXT",
                                      "BLOB",
                                      "NUMERIC",
                                      "",
                                      "VARCHAR(20)",
                                      "DOUBLE",
                                      "TEXT COLLATE NOCASE",
                                      "TEXT COLLATE RTRIM",
                                      "BOOLEAN",
                                      "TEXT"};
  static const char *const plain[] = {"INTEGER", "REAL", "NUMERIC", "", "INT", "DOUBLE"};
  writer w = {t->schema, 0, sizeof t->schema};
  bool numeric = rng_chance(r, 35);
  int key = rng_below(r, 100);
  t->n_cols = 1 + rng_below(r, MAX_COLS);
  t->strict = rng_chance(r, 15);
  t->has_rowid = key >= 12;
  t->has_k = key < 40 && key >= 8;
  put(&w, "CREATE TABLE t(");
  if (t->has_k) put(&w, "k INTEGER %sPRIMARY KEY, ", t->has_rowid ? "" : "NOT NULL ");
  for (int c = 0; c < t->n_cols; c++) {
    const char *type;
    t->flavour[c] = (flavour)rng_below(r, numeric ? F_WORDS : N_FLAVOURS);
    if (t->strict)
      type = strict_type(r, &t->flavour[c]);
    else
      type = numeric ? PICK(r, plain) : PICK(r, types);
    t->real[c] = !strcmp(type, "REAL") || !strcmp(type, "DOUBLE");
    put(&w, "%sc%d %s", c ? ", " : "", c, type);
  }
  if (key < 8) {
    put(&w, ", PRIMARY KEY(");
    put_columns(r, &w, t, 3);
    put(&w, ")");
  }
  put(&w, ")%s%s%s", t->strict ? " STRICT" : "", t->strict && !t->has_rowid ? "," : "",
      t->has_rowid ? "" : " WITHOUT ROWID");
}

static void make_table(rng *r, table *t) {
  static const char *const encodings[] = {"UTF-16le", "UTF-16be"};
  memset(t, 0, sizeof *t);
  if (rng_chance(r, 3)) t->encoding = PICK(r, encodings);
  make_schema(r, t);
  make_indexes(r, t);
  t->n_rows = rng_chance(r, 8) ? rng_below(r, 2) : rng_below(r, MAX_ROWS) + 1;
  t->times = 1;
  if (!t->has_k && t->has_rowid && rng_chance(r, 7)) t->times = rng_chance(r, 12) ? 3000 : 40;
  t->bad_end = rng_chance(r, t->times > 1 ? 30 : 3);
  t->like_limit = rng_chance(r, 6) ? 1 + rng_below(r, 6) : 0;
  int nulls = rng_chance(r, 20) ? 70 : 12; /* now and then mostly NULL */
  for (int i = 0; i < t->n_rows; i++) {
    char *row = t->has_k ? format("(%d", i * 3 - 20) : format("(");
    for (int c = 0; c < t->n_cols; c++) {
      char *v = rng_chance(r, nulls) ? format("NULL") : value(r, t->flavour[c]);
      char *next = format("%s%s%s", row, c || t->has_k ? "," : "", v);
      sqlite3_free(v);
      sqlite3_free(row);
      row = next;
    }
    t->row[i] = format("%s)", row);
    sqlite3_free(row);
  }
}

static void free_table(table *t) {
  for (int i = 0; i < t->n_rows; i++) sqlite3_free(t->row[i]);
}

/* ---- into a database, or onto paper */

static void exec(FILE *script, sqlite3 *db, const char *sql) {
  if (script) fprintf(script, "%s;\n", sql);
  if (!db) return;
  int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  if (rc == SQLITE_OK || (rc == SQLITE_CONSTRAINT && !strncmp(sql, "INSERT", 6))) return;
  fprintf(stderr, "fuzz: %s\n  %s\n", sqlite3_errmsg(db), sql);
  abort();
}

static void fill(const table *t, FILE *script, sqlite3 *db) {
  if (t->encoding) {
    char *sql = format("PRAGMA encoding='%s'", t->encoding);
    exec(script, db, sql);
    sqlite3_free(sql);
  }
  exec(script, db, t->schema);
  for (int i = 0; i < t->n_rows; i++) {
    if (t->gone[i]) continue;
    char *sql = format("INSERT OR IGNORE INTO t VALUES%s", t->row[i]);
    exec(script, db, sql);
    sqlite3_free(sql);
  }
  if (t->times > 1) {
    char *sql = format("INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i+1 FROM n "
                       "WHERE i<%d) SELECT t.* FROM n, t",
                       t->times);
    exec(script, db, sql);
    sqlite3_free(sql);
  }
  if (t->bad_end) {
    char *row = t->has_k ? format("(1000000") : format("(");
    for (int c = 0; c < t->n_cols; c++) {
      /* sums as REALs are compared by their bits, so no large number where they must be exact */
      bool small = t->real[c] || t->flavour[c] < N_EXACT;
      char *next = format("%s%s%s", row, c || t->has_k ? "," : "",
                          small ? "-0.5" : "-9223372036854775807-1");
      sqlite3_free(row);
      row = next;
    }
    char *sql = format("INSERT OR IGNORE INTO t VALUES%s)", row);
    exec(script, db, sql);
    sqlite3_free(sql);
    sqlite3_free(row);
  }
  if (t->like_limit && db) sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, t->like_limit);
  if (t->like_limit && script) fprintf(script, ".limit like_pattern_length %d\n", t->like_limit);
  for (int i = 0; i < MAX_INDEXES; i++)
    if (t->index[i][0]) exec(script, db, t->index[i]);
  if (t->analyze) exec(script, db, "ANALYZE");
}

#endif
