/*
** A table loaded through the store beside the same table stepped by SQLite, for the tests
** of the loaders: every value with its type, and which loader it was.
*/
#ifndef TEST_LOADED_H
#define TEST_LOADED_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../rng.h"
#include "../tap.h"
#include "api/enable.h"
#include "base/mem.h"
#include "store/store.h"

/* By its own name, so that the program is linked with SQLite. */
#undef sqlite3_libversion_number
extern int sqlite3_libversion_number(void);

static inline bool bind_sqlite(void) {
  return sqlite3_libversion_number() > 0 && wl_api_bind(NULL);
}

enum { BY_STEPS = 0, BY_PAGES = 1, BY_ANY = 2 };

typedef struct loaded {
  wl_status rc; /* of the load */
  bool by_pages;
  char why[600]; /* what differs, or why it was not loaded by pages */
} loaded;

static inline bool same_value(wl_val v, sqlite3_stmt *q, int i) {
  switch (sqlite3_column_type(q, i)) {
  case SQLITE_INTEGER: return v.t == WL_T_INT && (wl_i64)v.v == sqlite3_column_int64(q, i);
  case SQLITE_FLOAT: return v.t == WL_T_REAL && v.v == wl_f64_bits(sqlite3_column_double(q, i));
  case SQLITE_NULL: return v.t == WL_T_NULL;
  case SQLITE_TEXT:
    return v.t == WL_T_TEXT && v.n == (wl_u32)sqlite3_column_bytes(q, i) &&
           (!v.n || !memcmp(wl_bytes(v), sqlite3_column_text(q, i), v.n));
  default:
    return v.t == WL_T_BLOB && v.n == (wl_u32)sqlite3_column_bytes(q, i) &&
           (!v.n || !memcmp(wl_bytes(v), sqlite3_column_blob(q, i), v.n));
  }
}

/* Every row of the columns in snap against SQLite; false with the difference in l->why. */
static inline bool same_table(sqlite3 *db, const wl_table *t, const int *cols, int n,
                              const wl_snapshot *snap, loaded *l) {
  sqlite3_stmt *q = NULL;
  sqlite3_str *sql = sqlite3_str_new(db);
  for (int i = 0; i < n; i++)
    sqlite3_str_appendf(sql, i ? ",\"%w\"" : "SELECT \"%w\"",
                        cols[i] < 0 ? t->rowid_name : t->cols[cols[i]].name);
  sqlite3_str_appendf(sql, " FROM \"%w\".\"%w\" NOT INDEXED", t->schema, t->name);
  char *text = sqlite3_str_finish(sql);
  wl_i64 row = 0;
  bool same = true;
  int rc = sqlite3_prepare_v2(db, text, -1, &q, NULL);
  while (!rc && same && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    rc = SQLITE_OK;
    if (row >= snap->n_rows) {
      snprintf(l->why, sizeof l->why, "%lld rows, SQLite has more", snap->n_rows);
      same = false;
    }
    for (int i = 0; i < n && same; i++) {
      wl_val v = wl_column_value(snap->cols[i], row);
      if (same_value(v, q, i)) continue;
      snprintf(l->why, sizeof l->why,
               "row %lld, column %d: type %d, value %lld, length %u; "
               "SQLite's is %.60s",
               row, cols[i], v.t, (wl_i64)v.v, v.n, sqlite3_column_text(q, i));
      same = false;
    }
    row++;
  }
  if (same && rc != SQLITE_DONE) {
    snprintf(l->why, sizeof l->why, "SQLite says %s", sqlite3_errmsg(db));
    same = false;
  }
  if (same && row != snap->n_rows) {
    snprintf(l->why, sizeof l->why, "%lld rows, SQLite has %lld", snap->n_rows, row);
    same = false;
  }
  sqlite3_finalize(q);
  sqlite3_free(text);
  return same;
}

/*
** Loads columns of a table (cols NULL: the rowid and all, in order) and compares. How it is
** called matters in WAL mode: `pinned` asks for the estimate first, as a query does.
*/
static inline bool load_and_compare(wl_store *s, sqlite3 *db, const char *schema, const char *name,
                                    const int *cols, int n, bool pinned, loaded *l) {
  wl_table *t;
  wl_error err = {0};
  wl_snapshot snap;
  bool changed, same = true, exact;
  int all[200];
  memset(l, 0, sizeof *l);
  l->rc = wl_store_table(s, schema, name, &t, &err);
  for (int i = 0; i < n && !l->rc && cols; i++) /* a damaged schema may have other columns */
    if (cols[i] >= t->n_cols || (cols[i] < 0 && !t->rowid_name)) cols = NULL;
  if (!l->rc && !cols) {
    n = 0;
    if (t->rowid_name) all[n++] = -1;
    for (int i = 0; i < t->n_cols && n < 200; i++) all[n++] = i;
    cols = all;
  }
  if (!l->rc && pinned) wl_source_estimate(t->source, &exact);
  if (!l->rc) l->rc = wl_source_begin(t->source, &changed, &err);
  if (!l->rc) l->rc = wl_source_acquire(t->source, cols, n, &snap, &err);
  if (!l->rc) {
    const char *why_not;
    l->by_pages = wl_store_loaded_by_pages(t, &why_not);
    snprintf(l->why, sizeof l->why, "loaded by %s: %s", l->by_pages ? "pages" : "steps", why_not);
    same = same_table(db, t, cols, n, &snap, l);
    wl_snapshot_release(&snap);
  } else {
    snprintf(l->why, sizeof l->why, "%.500s", err.text);
  }
  wl_store_end(s);
  return same;
}

/* The whole check, on a store of its own. */
static inline bool check_table(const char *label, sqlite3 *db, const char *schema, const char *name,
                               int loader) {
  wl_store *s;
  wl_error err;
  loaded l;
  if (wl_store_open(db, &s, &err)) return tap_bad(label, "%s", err.text);
  bool same = load_and_compare(s, db, schema, name, NULL, 0, true, &l);
  wl_store_close(s);
  if (!same || l.rc) return tap_bad(label, "%s", l.why);
  if (loader != BY_ANY && (int)l.by_pages != loader) return tap_bad(label, "%s", l.why);
  return tap_ok(label);
}

static inline void must_exec(sqlite3 *db, const char *sql) {
  char *msg = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &msg) == SQLITE_OK) return;
  tap_bad("set-up", "%.200s: %s", sql, msg);
  exit(tap_done());
}

static inline sqlite3 *must_open(const char *path) {
  sqlite3 *db;
  if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI,
                      NULL) == SQLITE_OK)
    return db;
  tap_bad("set-up", "%s: %s", path, sqlite3_errmsg(db));
  exit(tap_done());
}

/* ---- random tables */

static inline void append_value(sqlite3_str *s, rng *r, int max_bytes) {
  static const char *const odd[] = {"0",
                                    "1",
                                    "-1",
                                    "127",
                                    "-128",
                                    "128",
                                    "32767",
                                    "-32769",
                                    "8388607",
                                    "-8388609",
                                    "2147483647",
                                    "-2147483649",
                                    "140737488355327",
                                    "-140737488355329",
                                    "9223372036854775807",
                                    "-9223372036854775808",
                                    "0.0",
                                    "-0.0",
                                    "1e308*10",
                                    "-1e308*10",
                                    "2.5",
                                    "1e15",
                                    "9007199254740993.0",
                                    "''",
                                    "x''",
                                    "'a'||char(0)||'b'",
                                    "'12'",
                                    "' 7 '",
                                    "'1e3'",
                                    "5e-324",
                                    "0.1",
                                    "3.0",
                                    "-4e18"};
  switch (rng_below(r, 8)) {
  case 0: sqlite3_str_appendall(s, "NULL"); break;
  case 1: sqlite3_str_appendf(s, "%lld", (wl_i64)rng_next(r) >> rng_below(r, 64)); break;
  case 2: sqlite3_str_appendf(s, "%d/8.0", rng_below(r, 2000000) - 1000000); break;
  case 3: sqlite3_str_appendf(s, "'text %d'", rng_below(r, 100000)); break;
  case 4: /* a type of one byte, or of two */
    sqlite3_str_appendf(s, "substr(hex(%s(40)),1,%d)",
                        rng_chance(r, 50) ? "randomblob" : "zeroblob",
                        rng_chance(r, 50) ? 54 + rng_below(r, 8) : rng_below(r, 70));
    break;
  case 5:
    if (rng_chance(r, 10)) {
      int n = rng_below(r, max_bytes);
      sqlite3_str_appendf(s, rng_chance(r, 50) ? "randomblob(%d)" : "hex(zeroblob(%d))", n);
      break;
    } /* fall through */
  default: sqlite3_str_appendall(s, odd[rng_below(r, (int)(sizeof odd / sizeof *odd))]);
  }
}

/* Fills table t, which has n_cols columns, key_col of them the rowid or -1. */
static inline void insert_rows(sqlite3 *db, rng *r, int n_rows, int n_cols, int key_col,
                               int max_bytes) {
  must_exec(db, "BEGIN");
  for (int i = 0; i < n_rows; i++) {
    sqlite3_str *s = sqlite3_str_new(db);
    sqlite3_str_appendall(s, "INSERT OR IGNORE INTO t VALUES(");
    for (int k = 0; k < n_cols; k++) {
      if (k) sqlite3_str_appendall(s, ",");
      if (k != key_col)
        append_value(s, r, max_bytes);
      else if (rng_chance(r, 70))
        sqlite3_str_appendall(s, "NULL");
      else
        sqlite3_str_appendf(s, "%lld", (wl_i64)rng_next(r) >> rng_below(r, 64));
    }
    sqlite3_str_appendall(s, ")");
    char *sql = sqlite3_str_finish(s);
    sqlite3_exec(db, sql, NULL, NULL, NULL); /* after the largest rowid there may be none */
    sqlite3_free(sql);
  }
  must_exec(db, "COMMIT");
}

/* A random rowid table; returns the number of columns and the one that is the rowid. */
static inline int create_table(sqlite3 *db, rng *r, int max_cols, int *key_col) {
  static const char *const types[] = {"INTEGER", "REAL",  "TEXT",    "BLOB", "NUMERIC", "",
                                      "INT",     "FLOAT", "BOOLEAN", "DATE", "ANY"};
  int n = 1 + rng_below(r, max_cols);
  sqlite3_str *s = sqlite3_str_new(db);
  *key_col = rng_chance(r, 60) ? rng_below(r, n) : -1;
  sqlite3_str_appendall(s, "CREATE TABLE t(");
  for (int i = 0; i < n; i++)
    sqlite3_str_appendf(s, "%sc%d %s", i ? "," : "", i,
                        i == *key_col
                            ? rng_chance(r, 50) ? "INTEGER PRIMARY KEY" : "integer primary key asc"
                            : types[rng_below(r, 11)]);
  sqlite3_str_appendall(s, ")");
  char *sql = sqlite3_str_finish(s);
  must_exec(db, sql);
  sqlite3_free(sql);
  return n;
}

#endif
