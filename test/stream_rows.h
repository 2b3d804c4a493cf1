/*
** A result that comes through an ArrowDeviceArrayStream, as rows (rows.h).
**
** Invariant: rows that are on a device are copied as their reader would (device_copy.h).
*/
#ifndef STREAM_ROWS_H
#define STREAM_ROWS_H

#include "device_copy.h"
#include "rows.h"

/* A value of a column on the host, as a cell; bytes are in *bytes. */
static inline cell stream_cell(const struct ArrowSchema *s, const struct ArrowArray *a, int64_t row,
                               const char **bytes) {
  cell c = {.type = SQLITE_NULL};
  char f = s->format[0];
  int64_t i = row + a->offset;
  if (f == '+') { /* a dense union */
    static const char *const kinds[] = {"l", "g", "u", "z"};
    int kind = ((const int8_t *)a->buffers[0])[i];
    struct ArrowSchema child = {.format = kinds[kind]};
    return stream_cell(&child, a->children[kind], ((const int32_t *)a->buffers[1])[i], bytes);
  }
  const uint8_t *valid = f == 'n' ? NULL : a->buffers[0];
  if (f == 'n' || (valid && !(valid[i >> 3] >> (i & 7) & 1))) return c;
  if (f == 'l') {
    c.type = SQLITE_INTEGER;
    c.u.i = ((const int64_t *)a->buffers[1])[i];
  } else if (f == 'g') {
    c.type = SQLITE_FLOAT;
    c.u.r = ((const double *)a->buffers[1])[i];
  } else {
    bool large = f == 'U' || f == 'Z';
    const int32_t *small = a->buffers[1];
    const int64_t *wide = a->buffers[1];
    int64_t at = large ? wide[i] : small[i], end = large ? wide[i + 1] : small[i + 1];
    c.type = f == 'u' || f == 'U' ? SQLITE_TEXT : SQLITE_BLOB;
    c.n = (int)(end - at);
    *bytes = (const char *)a->buffers[2] + at;
  }
  return c;
}

/* Adds a value to the rows. */
static inline void rows_add(rows *r, cell c, const char *bytes) {
  if (r->n_cells == r->cap_cells) {
    r->cap_cells = r->cap_cells * 2 + 64;
    r->cells = must(realloc(r->cells, r->cap_cells * sizeof(cell)));
  }
  if (c.type == SQLITE_TEXT || c.type == SQLITE_BLOB) {
    if (r->n_bytes + (size_t)c.n + 1 > r->cap_bytes) {
      r->cap_bytes = r->cap_bytes * 2 + (size_t)c.n + 256;
      r->bytes = must(realloc(r->bytes, r->cap_bytes));
    }
    if (c.n) memcpy(r->bytes + r->n_bytes, bytes, (size_t)c.n);
    c.u.off = r->n_bytes;
    r->n_bytes += (size_t)c.n;
    r->bytes[r->n_bytes++] = 0;
  }
  r->cells[r->n_cells++] = c;
}

static inline void rows_add_array(rows *r, const struct ArrowSchema *s,
                                  const struct ArrowArray *a) {
  for (int64_t row = 0; row < a->length; row++, r->n_rows++)
    for (int k = 0; k < r->n_col; k++) {
      const char *bytes = NULL;
      cell c = stream_cell(s->children[k], a->children[k], row, &bytes);
      rows_add(r, c, bytes);
    }
}

/* Reads all rows of a prepared statement from a device stream. An error is part of the result; its
** message is the stream's. A copy that fails is one, too. *reals: see rows_forgive_stream(). */
static inline void rows_device(rows *r, sqlite3 *db, sqlite3_stmt *st, uint64_t *reals) {
  struct ArrowDeviceArrayStream s;
  struct ArrowSchema schema;
  struct ArrowDeviceArray a;
  struct ArrowArray copy;
  size_t n_names = 0;
  r->prepared = true;
  *reals = 0;
  r->rc = warplite_query_stmt_device(st, &s);
  if (r->rc) {
    snprintf(r->err, sizeof r->err, "%s", warplite_errmsg(db));
    return;
  }
  int rc = s.get_schema(&s, &schema);
  r->n_col = rc ? 0 : (int)schema.n_children;
  bool large = false; /* rows on a device */
  for (int c = 0; c < r->n_col; c++) {
    n_names += (size_t)snprintf(r->names + n_names, sizeof r->names - n_names, "%s\x1f",
                                schema.children[c]->name);
    *reals |= (uint64_t)(schema.children[c]->format[0] == 'g') << c;
    large |= strchr("UZ", schema.children[c]->format[0]) != NULL;
  }
  while (!rc && !(rc = s.get_next(&s, &a)) && a.array.release) {
    bool on_device = large || a.device_type != ARROW_DEVICE_CPU;
    if (on_device && !device_copy_array(&a, &schema, &copy)) rc = SQLITE_ERROR;
    if (!rc) rows_add_array(r, &schema, on_device ? &copy : &a.array);
    if (on_device && !rc) copy.release(&copy);
    a.array.release(&a.array);
  }
  const char *why = rc ? s.get_last_error(&s) : NULL;
  if (rc) snprintf(r->err, sizeof r->err, "%s", why ? why : "an array cannot be copied");
  if (schema.release) schema.release(&schema);
  s.release(&s);
  r->rc = rc ? SQLITE_ERROR : SQLITE_DONE;
}

/* Takes from `want` what a stream does not show: that an integer among reals is one (reals: the
** columns that have reals in the stream, as bits), and the code of an error. */
static inline void rows_forgive_stream(rows *got, rows *want, uint64_t reals) {
  for (size_t i = 0; i < want->n_cells; i++) {
    cell *c = &want->cells[i];
    if (c->type != SQLITE_INTEGER || !(reals >> i % (size_t)want->n_col & 1)) continue;
    c->type = SQLITE_FLOAT;
    c->u.r = (double)c->u.i;
  }
  if (got->rc == SQLITE_DONE || want->rc == SQLITE_DONE) return;
  got->rc = want->rc;
  got->xrc = want->xrc;
  snprintf(got->err, sizeof got->err, "%s", want->err);
}

#endif
