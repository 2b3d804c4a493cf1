/*
** Reading results: all of a result folded into a few numbers that can be compared
** (digest), or every row or batch touched as a client would (touch).
**
** Stands behind every side: SQLite statements and Arrow streams here, DuckDB's chunks
** in duck.h, all ending in the same struct digest.
**
** 1. A column's hash depends on the type, the value and the place of each of its values,
**    so equal digests mean the same rows in the same order. The bag depends on the rows
**    alone, not on their order.
** 2. Columns are hashed apart and joined last: a row-wise and a column-wise reader of
**    the same result come to the same digest.
** 3. Touching reads something of every column of every row (SQLite) or of every batch
**    (Arrow, DuckDB: first and last value) so that nothing can be left uncomputed.
*/
#ifndef BENCH_DIGEST_H
#define BENCH_DIGEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>
#include "../test/device_copy.h"
#include "answer.h"
#include "warplite.h"

#define DIGEST_COLUMNS ANSWER_COLUMNS

struct digest {
  int64_t n_rows;
  int n_columns;
  bool full; /* false: touch only; hash[] then means nothing to compare */
  uint64_t hash[DIGEST_COLUMNS];
  uint64_t bag;       /* sum of the rows' hashes */
  uint64_t *rows;     /* of the batch being read: each row's hash so far … */
  int64_t n_size, at; /* … and the row that the next value belongs to */
  uint64_t touched;
  double first_real; /* column 0 of the first row, where that is a real */
  bool has_first_real;
  struct answer *keep; /* where there is one, a full reading puts every value there too */
};

static inline uint64_t digest_mix(uint64_t h, uint64_t x) {
  h = (h + x) * 0x9e3779b97f4a7c15ULL;
  return h ^ (h >> 32);
}

static inline uint64_t real_bits(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}

/* Makes ready for a batch of n rows: each reader says at which row (d->at) a value stands. */
static inline void digest_begin(struct digest *d, int64_t n) {
  if (n > d->n_size) {
    d->rows = realloc(d->rows, (size_t)n * sizeof *d->rows);
    if (!d->rows) abort();
    d->n_size = n;
  }
  memset(d->rows, 0, (size_t)n * sizeof *d->rows);
  d->at = 0;
}

static inline void digest_end(struct digest *d, int64_t n) {
  for (int64_t i = 0; i < n; i++) d->bag += digest_mix(d->rows[i], 0x51ed27ULL);
}

static inline void digest_free(struct digest *d) {
  free(d->rows);
  d->rows = NULL;
  d->n_size = 0;
}

static inline void digest_value(struct digest *d, int c, uint64_t h) {
  d->hash[c] = digest_mix(d->hash[c], h);
  d->rows[d->at] = digest_mix(d->rows[d->at], h);
}

static inline void digest_int(struct digest *d, int c, int64_t v) {
  if (d->keep) answer_cell(d->keep, c, SQLITE_INTEGER)->u.i = v;
  digest_value(d, c, digest_mix(SQLITE_INTEGER, (uint64_t)v));
}

static inline void digest_real(struct digest *d, int c, double v) {
  if (d->keep) answer_cell(d->keep, c, SQLITE_FLOAT)->u.r = v;
  if (c == 0 && !d->has_first_real) {
    d->first_real = v;
    d->has_first_real = true;
  }
  digest_value(d, c, digest_mix(SQLITE_FLOAT, real_bits(v)));
}

static inline void digest_null(struct digest *d, int c) {
  if (d->keep) answer_cell(d->keep, c, SQLITE_NULL);
  digest_value(d, c, SQLITE_NULL);
}

static inline void digest_bytes(struct digest *d, int c, int type, const void *p, int64_t n) {
  const unsigned char *b = p;
  uint64_t h = digest_mix((uint64_t)type, (uint64_t)n);
  if (d->keep) answer_bytes(d->keep, c, type, p, n);
  for (int64_t i = 0; i < n; i++) h = (h ^ b[i]) * 0x100000001b3ULL;
  digest_value(d, c, h);
}

static inline uint64_t digest_all(const struct digest *d) {
  uint64_t h = (uint64_t)d->n_rows;
  for (int c = 0; c < d->n_columns; c++) h = digest_mix(h, d->hash[c]);
  return h;
}

static inline bool digest_equal(const struct digest *a, const struct digest *b) {
  return a->n_rows == b->n_rows && a->n_columns == b->n_columns && digest_all(a) == digest_all(b);
}

/* The same rows in any order, but for the columns (bits) whose own order must be the same. */
static inline bool digest_same_bag(const struct digest *a, const struct digest *b,
                                   unsigned ordered) {
  if (a->n_rows != b->n_rows || a->n_columns != b->n_columns || a->bag != b->bag) return false;
  for (int c = 0; c < a->n_columns; c++)
    if ((ordered >> c & 1) && a->hash[c] != b->hash[c]) return false;
  return true;
}

/* ---- SQLite statements ---- */

static inline void digest_sqlite_row(struct digest *d, sqlite3_stmt *stmt) {
  for (int c = 0; c < d->n_columns; c++) {
    int type = sqlite3_column_type(stmt, c);
    switch (type) {
    case SQLITE_INTEGER: digest_int(d, c, sqlite3_column_int64(stmt, c)); break;
    case SQLITE_FLOAT: digest_real(d, c, sqlite3_column_double(stmt, c)); break;
    case SQLITE_TEXT: {
      const void *text = sqlite3_column_text(stmt, c);
      digest_bytes(d, c, type, text, sqlite3_column_bytes(stmt, c));
      break;
    }
    case SQLITE_BLOB: {
      const void *blob = sqlite3_column_blob(stmt, c);
      digest_bytes(d, c, type, blob, sqlite3_column_bytes(stmt, c));
      break;
    }
    default: digest_null(d, c);
    }
  }
}

/*
** Steps a statement to its end. When only touching, each column is read by the call that
** its type in the first row suggests, as a client that knows its table does.
*/
static inline int digest_sqlite(struct digest *d, sqlite3_stmt *stmt) {
  int rc, types[DIGEST_COLUMNS] = {0};
  d->n_columns = sqlite3_column_count(stmt);
  if (d->n_columns > DIGEST_COLUMNS) return SQLITE_TOOBIG;
  while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
    if (d->full) {
      digest_begin(d, 1);
      digest_sqlite_row(d, stmt);
      digest_end(d, 1);
    } else {
      if (d->n_rows == 0)
        for (int c = 0; c < d->n_columns; c++) types[c] = sqlite3_column_type(stmt, c);
      for (int c = 0; c < d->n_columns; c++) {
        if (types[c] == SQLITE_INTEGER) {
          d->touched ^= (uint64_t)sqlite3_column_int64(stmt, c);
        } else if (types[c] == SQLITE_FLOAT) {
          d->touched ^= real_bits(sqlite3_column_double(stmt, c));
        } else {
          const unsigned char *text = sqlite3_column_text(stmt, c);
          d->touched ^= text ? text[0] : 0u;
        }
      }
    }
    d->n_rows++;
  }
  digest_free(d);
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- Arrow streams ---- */

static inline bool arrow_valid(const struct ArrowArray *a, int64_t i) {
  const uint8_t *bits = a->n_buffers > 0 ? a->buffers[0] : NULL;
  return !bits || (bits[i >> 3] >> (i & 7) & 1);
}

/*
** One value, at place i of the buffers (offsets already added). False: a format that
** warplite.h does not promise.
*/
static inline bool digest_arrow_value(struct digest *d, int c, const struct ArrowSchema *s,
                                      const struct ArrowArray *a, int64_t i) {
  if (strncmp(s->format, "+ud:", 4) == 0) {
    int type = ((const int8_t *)a->buffers[0])[i];
    int32_t at = ((const int32_t *)a->buffers[1])[i];
    /* type ids are the digits after "+ud:", in the order of the children */
    const char *ids = s->format + 4;
    for (int k = 0; k < a->n_children; k++) {
      char *end;
      if (strtol(ids, &end, 10) == type)
        return digest_arrow_value(d, c, s->children[k], a->children[k],
                                  at + a->children[k]->offset);
      ids = *end == ',' ? end + 1 : end;
    }
    return false;
  }
  if (s->format[0] == '\0' || s->format[1] != '\0') return false;
  if (s->format[0] == 'n' || !arrow_valid(a, i)) {
    digest_null(d, c);
    return true;
  }
  switch (s->format[0]) {
  case 'l': digest_int(d, c, ((const int64_t *)a->buffers[1])[i]); return true;
  case 'g': digest_real(d, c, ((const double *)a->buffers[1])[i]); return true;
  case 'u':
  case 'z': {
    const int32_t *at = a->buffers[1];
    digest_bytes(d, c, s->format[0] == 'u' ? SQLITE_TEXT : SQLITE_BLOB,
                 (const char *)a->buffers[2] + at[i], at[i + 1] - at[i]);
    return true;
  }
  case 'U':
  case 'Z': {
    const int64_t *at = a->buffers[1];
    digest_bytes(d, c, s->format[0] == 'U' ? SQLITE_TEXT : SQLITE_BLOB,
                 (const char *)a->buffers[2] + at[i], at[i + 1] - at[i]);
    return true;
  }
  default: return false;
  }
}

static inline uint64_t touch_arrow_value(const struct ArrowSchema *s, const struct ArrowArray *a,
                                         int64_t i) {
  switch (s->format[0]) {
  case 'l':
  case 'g': {
    uint64_t bits;
    memcpy(&bits, (const char *)a->buffers[1] + 8 * i, sizeof bits);
    return bits;
  }
  case 'u':
  case 'z': return (uint64_t)((const int32_t *)a->buffers[1])[i + 1];
  case '+': return (uint64_t)((const int8_t *)a->buffers[0])[i];
  default: return 0;
  }
}

/* Reads all of an array. */
static inline bool digest_array(struct digest *d, const struct ArrowSchema *schema,
                                const struct ArrowArray *batch, char *why, size_t n_why) {
  digest_begin(d, batch->length);
  for (int c = 0; c < d->n_columns && batch->length > 0; c++) {
    const struct ArrowArray *a = batch->children[c];
    int64_t start = batch->offset + a->offset;
    for (d->at = 0; d->at < batch->length; d->at++) {
      if (digest_arrow_value(d, c, schema->children[c], a, start + d->at)) continue;
      snprintf(why, n_why, "column %d has the Arrow format %s", c, schema->children[c]->format);
      return false;
    }
  }
  digest_end(d, batch->length);
  return true;
}

/* Takes the stream: it is released here whatever happens. why gets a message on false. */
static inline bool digest_arrow(struct digest *d, struct ArrowArrayStream *stream, char *why,
                                size_t n_why) {
  struct ArrowSchema schema = {0};
  bool ok = false;
  if (stream->get_schema(stream, &schema) != 0) {
    const char *message = stream->get_last_error(stream);
    snprintf(why, n_why, "get_schema: %s", message ? message : "no message");
    goto done;
  }
  d->n_columns = (int)schema.n_children;
  if (schema.n_children > DIGEST_COLUMNS) {
    snprintf(why, n_why, "%lld columns are more than the reader has room for",
             (long long)schema.n_children);
    goto done;
  }
  for (;;) {
    struct ArrowArray batch = {0};
    if (stream->get_next(stream, &batch) != 0) {
      const char *message = stream->get_last_error(stream);
      snprintf(why, n_why, "get_next: %s", message ? message : "no message");
      goto done;
    }
    if (!batch.release) break;
    if (d->full && !digest_array(d, &schema, &batch, why, n_why)) {
      batch.release(&batch);
      goto done;
    }
    for (int c = 0; c < d->n_columns && batch.length > 0 && !d->full; c++) {
      const struct ArrowArray *a = batch.children[c];
      int64_t start = batch.offset + a->offset, end = start + batch.length;
      const struct ArrowSchema *s = schema.children[c];
      d->touched ^= touch_arrow_value(s, a, start) ^ touch_arrow_value(s, a, end - 1);
    }
    d->n_rows += batch.length;
    batch.release(&batch);
  }
  ok = true;
done:
  digest_free(d);
  if (schema.release) schema.release(&schema);
  stream->release(stream);
  return ok;
}

/* ---- device streams ---- */

/* Rows on a device are copied to be read in full. To touch them is to get their arrays: the host
** cannot read them, and their reader on the device need not wait. */
static inline bool digest_device_array(struct digest *d, const struct ArrowSchema *schema,
                                       const struct ArrowDeviceArray *batch, char *why,
                                       size_t n_why) {
  struct ArrowArray copy;
  if (!d->full) return true;
  if (batch->device_type == ARROW_DEVICE_CPU)
    return digest_array(d, schema, &batch->array, why, n_why);
  if (!device_copy_array(batch, schema, &copy)) {
    snprintf(why, n_why, "an array cannot be copied from the device");
    return false;
  }
  bool ok = digest_array(d, schema, &copy, why, n_why);
  copy.release(&copy);
  return ok;
}

/* Takes the stream, as digest_arrow() does. */
static inline bool digest_device(struct digest *d, struct ArrowDeviceArrayStream *stream, char *why,
                                 size_t n_why) {
  struct ArrowSchema schema = {0};
  struct ArrowDeviceArray batch;
  int rc = stream->get_schema(stream, &schema);
  bool ok = !rc && schema.n_children <= DIGEST_COLUMNS;
  if (!rc && !ok) snprintf(why, n_why, "more columns than the reader has room for");
  d->n_columns = (int)schema.n_children;
  while (ok && !(rc = stream->get_next(stream, &batch)) && batch.array.release) {
    ok = digest_device_array(d, &schema, &batch, why, n_why);
    d->n_rows += batch.array.length;
    batch.array.release(&batch.array);
  }
  if (rc) {
    const char *message = stream->get_last_error(stream);
    snprintf(why, n_why, "%s", message ? message : "no message");
  }
  digest_free(d);
  if (schema.release) schema.release(&schema);
  stream->release(stream);
  return ok && !rc;
}

#endif
