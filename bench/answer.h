/*
** A result kept whole, and the comparison of two of them: for queries whose reals come from
** sums, where a checksum would not forgive the last digits.
**
** Stands behind the readers of digest.h: where a digest has an answer to keep, every value
** read is put there too.
**
** 1. Columns are kept apart, so a row-wise and a column-wise reader fill it alike.
** 2. Rows are compared in order, or as a bag; a column (bit of `ordered`) whose order the
**    query promises is then compared in order by itself.
** 3. Texts, integers and NULLs are the same or differ. Reals may differ by the tolerance,
**    relative to the larger one. `lax` lets an integer equal a real, as between engines
**    that give a sum another type.
*/
#ifndef BENCH_ANSWER_H
#define BENCH_ANSWER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>

enum { ANSWER_COLUMNS = 16 };

struct answer_cell {
  int type, n; /* SQLITE_INTEGER …; bytes of a text */
  union {
    int64_t i;
    double r;
    size_t at; /* into the column's bytes */
  } u;
};

struct answer_column {
  struct answer_cell *cells;
  int64_t n, n_size;
  char *bytes;
  size_t n_bytes, n_bytes_size;
  bool real; /* holds a real */
};

struct answer {
  struct answer_column column[ANSWER_COLUMNS];
  int n_columns;
  int64_t n_rows;
};

static inline void answer_free(struct answer *a) {
  for (int c = 0; c < ANSWER_COLUMNS; c++) {
    free(a->column[c].cells);
    free(a->column[c].bytes);
  }
  memset(a, 0, sizeof *a);
}

static inline struct answer_cell *answer_cell(struct answer *a, int c, int type) {
  struct answer_column *k = &a->column[c];
  if (k->n == k->n_size) {
    k->n_size = k->n_size * 2 + 64;
    k->cells = realloc(k->cells, (size_t)k->n_size * sizeof *k->cells);
    if (!k->cells) abort();
  }
  struct answer_cell *x = &k->cells[k->n++];
  *x = (struct answer_cell){.type = type};
  k->real |= type == SQLITE_FLOAT;
  return x;
}

static inline void answer_bytes(struct answer *a, int c, int type, const void *p, int64_t n) {
  struct answer_column *k = &a->column[c];
  struct answer_cell *x = answer_cell(a, c, type);
  if (k->n_bytes + (size_t)n > k->n_bytes_size) {
    k->n_bytes_size = k->n_bytes_size * 2 + (size_t)n + 256;
    k->bytes = realloc(k->bytes, k->n_bytes_size);
    if (!k->bytes) abort();
  }
  x->n = (int)n;
  x->u.at = k->n_bytes;
  if (n) memcpy(k->bytes + k->n_bytes, p, (size_t)n);
  k->n_bytes += (size_t)n;
}

static inline double answer_number(const struct answer_cell *x) {
  return x->type == SQLITE_FLOAT ? x->u.r : (double)x->u.i;
}

static inline bool answer_is_number(const struct answer_cell *x) {
  return x->type == SQLITE_FLOAT || x->type == SQLITE_INTEGER;
}

/* An order for sorting two answers alike; numbers of either type stand among each other. */
static inline int answer_order(const struct answer_column *ka, const struct answer_cell *a,
                               const struct answer_column *kb, const struct answer_cell *b) {
  if (answer_is_number(a) && answer_is_number(b)) {
    if (a->type == SQLITE_INTEGER && b->type == SQLITE_INTEGER)
      return a->u.i < b->u.i ? -1 : a->u.i > b->u.i;
    double x = answer_number(a), y = answer_number(b);
    return x < y ? -1 : x > y;
  }
  if (a->type != b->type) return a->type < b->type ? -1 : 1;
  if (a->type == SQLITE_NULL) return 0;
  int n = a->n < b->n ? a->n : b->n;
  int d = n ? memcmp(ka->bytes + a->u.at, kb->bytes + b->u.at, (size_t)n) : 0;
  return d ? d : a->n - b->n;
}

static inline bool answer_same_cell(const struct answer_column *ka, const struct answer_cell *a,
                                    const struct answer_column *kb, const struct answer_cell *b,
                                    double tolerance, bool lax) {
  if (a->type != b->type && !(lax && answer_is_number(a) && answer_is_number(b))) return false;
  if (answer_order(ka, a, kb, b) == 0) return true;
  if (!answer_is_number(a) || (a->type == SQLITE_INTEGER && b->type == SQLITE_INTEGER))
    return false;
  double x = answer_number(a), y = answer_number(b);
  return fabs(x - y) <= tolerance * fmax(fabs(x), fabs(y));
}

/* Rows by their exact columns first: reals, which may differ a little, decide last. */
static inline int answer_order_rows(const struct answer *a, const bool *real, int64_t i,
                                    int64_t j) {
  for (int pass = 0; pass < 2; pass++)
    for (int c = 0; c < a->n_columns; c++) {
      const struct answer_column *k = &a->column[c];
      if (real[c] != (pass == 1)) continue;
      int d = answer_order(k, &k->cells[i], k, &k->cells[j]);
      if (d) return d;
    }
  return 0;
}

static inline void answer_sift(const struct answer *a, const bool *real, int64_t *rows,
                               int64_t root, int64_t n) {
  for (int64_t kid; (kid = 2 * root + 1) < n; root = kid) {
    if (kid + 1 < n && answer_order_rows(a, real, rows[kid], rows[kid + 1]) < 0) kid++;
    if (answer_order_rows(a, real, rows[root], rows[kid]) >= 0) return;
    int64_t row = rows[root];
    rows[root] = rows[kid];
    rows[kid] = row;
  }
}

/* The rows' numbers, sorted (heap sort: C11 has no qsort with a context). */
static inline int64_t *answer_rows(const struct answer *a, const bool *real, bool sort) {
  int64_t n = a->n_rows, *rows = malloc((size_t)(n + 1) * sizeof *rows);
  if (!rows) abort();
  for (int64_t i = 0; i < n; i++) rows[i] = i;
  if (!sort) return rows;
  for (int64_t i = n / 2; i-- > 0;) answer_sift(a, real, rows, i, n);
  for (int64_t m = n; m-- > 1;) {
    int64_t row = rows[0];
    rows[0] = rows[m];
    rows[m] = row;
    answer_sift(a, real, rows, 0, m);
  }
  return rows;
}

static inline void answer_text(const struct answer_column *k, const struct answer_cell *x,
                               char *out, size_t n) {
  switch (x->type) {
  case SQLITE_INTEGER: snprintf(out, n, "%lld", (long long)x->u.i); break;
  case SQLITE_FLOAT: snprintf(out, n, "%.17g", x->u.r); break;
  case SQLITE_NULL: snprintf(out, n, "NULL"); break;
  default: snprintf(out, n, "'%.*s'", x->n < 40 ? x->n : 40, k->bytes + x->u.at);
  }
}

/* ordered: bits of columns; all bits set: whole rows in order. why gets what differs. */
static inline bool answer_same(const struct answer *want, const struct answer *got,
                               unsigned ordered, double tolerance, bool lax, char *why,
                               size_t n_why) {
  bool real[ANSWER_COLUMNS], bag = ordered != ~0u, same = true;
  if (want->n_rows != got->n_rows || want->n_columns != got->n_columns) {
    snprintf(why, n_why, "%lld rows of %d columns, not %lld of %d", (long long)got->n_rows,
             got->n_columns, (long long)want->n_rows, want->n_columns);
    return false;
  }
  for (int c = 0; c < want->n_columns; c++) real[c] = want->column[c].real || got->column[c].real;
  int64_t *a = answer_rows(want, real, bag), *b = answer_rows(got, real, bag);
  for (int64_t i = 0; i < want->n_rows && same; i++)
    for (int c = 0; c < want->n_columns && same; c++) {
      const struct answer_column *ka = &want->column[c], *kb = &got->column[c];
      const struct answer_cell *x = &ka->cells[a[i]], *y = &kb->cells[b[i]];
      char tx[64], ty[64];
      same = answer_same_cell(ka, x, kb, y, tolerance, lax);
      if (same && bag && (ordered >> c & 1)) {
        x = &ka->cells[i];
        y = &kb->cells[i];
        same = answer_same_cell(ka, x, kb, y, tolerance, lax);
      }
      if (same) continue;
      answer_text(ka, x, tx, sizeof tx);
      answer_text(kb, y, ty, sizeof ty);
      snprintf(why, n_why, "row %lld%s, column %d: %s, not %s", (long long)i,
               bag ? " when sorted" : "", c, ty, tx);
    }
  free(a);
  free(b);
  return same;
}

#endif
