/*
** A query's whole result in memory, with what is needed to say whether two results are
** the same: values with their types, column names, and the error if there was one.
** The oracle of every test here is SQLite on the same connection.
**
** Invariants:
** 1. A rows keeps its buffers between runs (rows_clear), since the SQL test runner goes
**    through hundreds of thousands of queries.
** 2. A REAL is compared by its bits. Where the caller says `loose` (results of sum, total
**    and avg), a relative difference of 1e-12 passes.
*/
#ifndef TEST_ROWS_H
#define TEST_ROWS_H

#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cell {
  int type; /* SQLITE_INTEGER … */
  int n;    /* bytes of a TEXT or BLOB */
  union {
    int64_t i;
    double r;
    size_t off; /* into rows.bytes; a NUL follows */
  } u;
} cell;

typedef struct rows {
  int n_col;
  char names[4096]; /* each followed by \x1f */
  cell *cells;
  size_t n_rows, n_cells, cap_cells;
  char *bytes;
  size_t n_bytes, cap_bytes;
  bool prepared; /* the statement came to be: an error is one of running it */
  int rc, xrc;   /* SQLITE_DONE, or the error and its extended code */
  char err[512];
} rows;

static inline void *must(void *p) {
  if (!p) {
    fprintf(stderr, "out of memory\n");
    abort();
  }
  return p;
}

static inline void rows_clear(rows *r) {
  r->n_col = 0;
  r->n_rows = r->n_cells = r->n_bytes = 0;
  r->rc = r->xrc = 0;
  r->prepared = false;
  r->names[0] = r->err[0] = 0;
}

static inline void rows_free(rows *r) {
  free(r->cells);
  free(r->bytes);
  memset(r, 0, sizeof *r);
}

static inline void rows_fail(rows *r, sqlite3 *db, int rc) {
  r->rc = rc & 0xff;
  r->xrc = sqlite3_extended_errcode(db);
  snprintf(r->err, sizeof r->err, "%s", sqlite3_errmsg(db));
}

/* Steps a statement to its end and keeps everything it gave. */
static inline void rows_step(rows *r, sqlite3 *db, sqlite3_stmt *st) {
  int rc;
  size_t n_names = 0;
  r->prepared = true;
  rc = sqlite3_step(st);
  /* only now: the first step prepares anew where the schema has changed */
  r->n_col = sqlite3_column_count(st);
  for (int c = 0; c < r->n_col && n_names < sizeof r->names; c++)
    n_names += (size_t)snprintf(r->names + n_names, sizeof r->names - n_names, "%s\x1f",
                                sqlite3_column_name(st, c));
  for (; rc == SQLITE_ROW; rc = sqlite3_step(st)) {
    if (r->n_cells + (size_t)r->n_col > r->cap_cells) {
      r->cap_cells = r->cap_cells * 2 + (size_t)r->n_col + 64;
      r->cells = must(realloc(r->cells, r->cap_cells * sizeof(cell)));
    }
    for (int c = 0; c < r->n_col; c++) {
      cell *x = &r->cells[r->n_cells++];
      x->type = sqlite3_column_type(st, c);
      x->n = 0;
      x->u.i = 0;
      if (x->type == SQLITE_INTEGER) {
        x->u.i = sqlite3_column_int64(st, c);
      } else if (x->type == SQLITE_FLOAT) {
        x->u.r = sqlite3_column_double(st, c);
      } else if (x->type != SQLITE_NULL) {
        const void *p = x->type == SQLITE_TEXT ? (const void *)sqlite3_column_text(st, c)
                                               : sqlite3_column_blob(st, c);
        x->n = sqlite3_column_bytes(st, c);
        if (r->n_bytes + (size_t)x->n + 1 > r->cap_bytes) {
          r->cap_bytes = r->cap_bytes * 2 + (size_t)x->n + 256;
          r->bytes = must(realloc(r->bytes, r->cap_bytes));
        }
        x->u.off = r->n_bytes;
        if (x->n) memcpy(r->bytes + r->n_bytes, p, (size_t)x->n);
        r->n_bytes += (size_t)x->n;
        r->bytes[r->n_bytes++] = 0;
      }
    }
    r->n_rows++;
  }
  if (rc == SQLITE_DONE)
    r->rc = SQLITE_DONE;
  else
    rows_fail(r, db, rc);
}

typedef int prepare_fn(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);

/* Prepares, steps, finalizes. An error is part of the result. */
static inline void rows_query(rows *r, sqlite3 *db, prepare_fn *prepare, const char *sql) {
  sqlite3_stmt *st = NULL;
  rows_clear(r);
  int rc = prepare(db, sql, -1, &st, NULL);
  if (rc != SQLITE_OK)
    rows_fail(r, db, rc);
  else
    rows_step(r, db, st);
  sqlite3_finalize(st);
}

static inline bool cell_same(const rows *ra, const cell *a, const rows *rb, const cell *b,
                             bool loose) {
  if (a->type != b->type) return false;
  switch (a->type) {
  case SQLITE_NULL: return true;
  case SQLITE_INTEGER: return a->u.i == b->u.i;
  case SQLITE_FLOAT:
    if (a->u.i == b->u.i) return true;
    return loose && fabs(a->u.r - b->u.r) <= 1e-12 * fmax(fabs(a->u.r), fabs(b->u.r));
  default:
    return a->n == b->n &&
           (a->n == 0 || !memcmp(ra->bytes + a->u.off, rb->bytes + b->u.off, (size_t)a->n));
  }
}

/* A value as SQL text, for messages. */
static inline const char *cell_text(const rows *r, const cell *x, char *buf, int n_buf) {
  switch (x->type) {
  case SQLITE_NULL: sqlite3_snprintf(n_buf, buf, "NULL"); break;
  case SQLITE_INTEGER: sqlite3_snprintf(n_buf, buf, "%lld", (long long)x->u.i); break;
  case SQLITE_FLOAT: sqlite3_snprintf(n_buf, buf, "%!.17g", x->u.r); break;
  case SQLITE_TEXT:
    sqlite3_snprintf(n_buf, buf, "%.40Q(%d bytes)", r->bytes + x->u.off, x->n);
    break;
  default: {
    int k = sqlite3_snprintf(n_buf, buf, "x'") ? 2 : 2;
    for (int i = 0; i < x->n && i < 20 && k + 4 < n_buf; i++, k += 2)
      sqlite3_snprintf(n_buf - k, buf + k, "%02x", (unsigned char)r->bytes[x->u.off + (size_t)i]);
    sqlite3_snprintf(n_buf - k, buf + k, "'");
  }
  }
  return buf;
}

/* A total order on values, only so that two results can be sorted the same way. */
static inline int cell_order(const rows *r, const cell *a, const cell *b) {
  if (a->type != b->type) return a->type < b->type ? -1 : 1;
  switch (a->type) {
  case SQLITE_NULL: return 0;
  case SQLITE_FLOAT:
    if (a->u.r != b->u.r) return a->u.r < b->u.r ? -1 : 1;
    return a->u.i < b->u.i ? -1 : a->u.i > b->u.i;
  case SQLITE_INTEGER: return a->u.i < b->u.i ? -1 : a->u.i > b->u.i;
  default: {
    int n = a->n < b->n ? a->n : b->n;
    int d = n ? memcmp(r->bytes + a->u.off, r->bytes + b->u.off, (size_t)n) : 0;
    return d ? d : a->n - b->n;
  }
  }
}

static inline int rows_order(const void *x, const void *y, void *ctx) {
  const rows *r = ctx;
  const cell *a = x, *b = y;
  for (int c = 0; c < r->n_col; c++) {
    int d = cell_order(r, &a[c], &b[c]);
    if (d) return d;
  }
  return 0;
}

static inline void rows_sift(rows *r, size_t root, size_t n, cell *tmp) {
  size_t w = sizeof(cell) * (size_t)r->n_col, k = (size_t)r->n_col;
  for (size_t kid; (kid = 2 * root + 1) < n; root = kid) {
    if (kid + 1 < n && rows_order(r->cells + kid * k, r->cells + (kid + 1) * k, r) < 0) kid++;
    if (rows_order(r->cells + root * k, r->cells + kid * k, r) >= 0) return;
    memcpy(tmp, r->cells + root * k, w);
    memcpy(r->cells + root * k, r->cells + kid * k, w);
    memcpy(r->cells + kid * k, tmp, w);
  }
}

/* Heap sort: C11 has no qsort with a context. */
static inline void rows_sort(rows *r) {
  if (r->n_rows < 2 || r->n_col < 1) return;
  size_t w = sizeof(cell) * (size_t)r->n_col, k = (size_t)r->n_col;
  cell *tmp = must(malloc(w));
  for (size_t i = r->n_rows / 2; i-- > 0;) rows_sift(r, i, r->n_rows, tmp);
  for (size_t n = r->n_rows; n-- > 1;) {
    memcpy(tmp, r->cells, w);
    memcpy(r->cells, r->cells + n * k, w);
    memcpy(r->cells + n * k, tmp, w);
    rows_sift(r, 0, n, tmp);
  }
  free(tmp);
}

/* True if both are the same in everything but, perhaps, the order; `why` says what differs. */
static inline bool rows_same(const rows *a, const rows *b, bool loose, char *why, size_t n_why) {
  char ta[256], tb[256];
  if (a->rc != b->rc) {
    snprintf(why, n_why, "result code %d (%.200s), SQLite %d (%.200s)", a->rc, a->err, b->rc,
             b->err);
  } else if (a->rc != SQLITE_DONE && (strcmp(a->err, b->err) || a->xrc != b->xrc)) {
    snprintf(why, n_why, "error %d \"%.200s\", SQLite %d \"%.200s\"", a->xrc, a->err, b->xrc,
             b->err);
  } else if (a->rc != SQLITE_DONE && !a->n_rows && !b->n_rows) {
    return true; /* an error before the first row: of a changed schema one side may learn earlier */
  } else if (a->n_col != b->n_col) {
    snprintf(why, n_why, "%d columns, SQLite %d", a->n_col, b->n_col);
  } else if (strcmp(a->names, b->names)) {
    snprintf(why, n_why, "column names \"%.200s\", SQLite \"%.200s\"", a->names, b->names);
  } else if (a->n_rows != b->n_rows) {
    snprintf(why, n_why, "%zu rows, SQLite %zu", a->n_rows, b->n_rows);
  } else {
    for (size_t i = 0; i < a->n_cells; i++) {
      if (cell_same(a, &a->cells[i], b, &b->cells[i], loose)) continue;
      snprintf(why, n_why, "row %zu column %zu is %s, SQLite %s", i / (size_t)a->n_col,
               i % (size_t)a->n_col, cell_text(a, &a->cells[i], ta, sizeof ta),
               cell_text(b, &b->cells[i], tb, sizeof tb));
      return false;
    }
    return true;
  }
  return false;
}

/* SQLite's own plan reads through an index, and so in another order than the rowid's. */
static inline bool plan_uses_index(sqlite3 *db, const char *sql) {
  sqlite3_stmt *st = NULL;
  bool index = false;
  char *eqp = must(sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql));
  if (sqlite3_prepare_v2(db, eqp, -1, &st, NULL) == SQLITE_OK)
    while (sqlite3_step(st) == SQLITE_ROW)
      index |= strstr((const char *)sqlite3_column_text(st, 3), "INDEX") != NULL &&
               !strstr((const char *)sqlite3_column_text(st, 3), "VIRTUAL TABLE INDEX 0");
  sqlite3_finalize(st);
  sqlite3_free(eqp);
  return index;
}

#endif
