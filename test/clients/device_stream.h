/*
** Reading device streams in tests: each value of an array is compared with SQLite's, after a copy
** to the host. Also the tables of these tests.
**
** Invariant: a statement says where its rows must be. A device that leaves rows to the host where
** it should not is a failure, and so is the opposite.
*/
#ifndef DEVICE_STREAM_H
#define DEVICE_STREAM_H

#include <string.h>

#include "../device_copy.h"
#include "../engines.h"
#include "../rows.h"
#include "../stream_rows.h"
#include "../tap.h"

static const char *engine;

static inline bool has_device(void) {
  return strcmp(engine, "cpu") != 0;
}

static inline void must_run(sqlite3 *db, const char *sql) {
  char *msg = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &msg)) tap_bad(sql, "%s", msg);
  sqlite3_free(msg);
}

/* ---- reading */

static inline bool same_value(const cell *x, const char *bytes, const rows *r, const cell *want) {
  if (x->type == SQLITE_FLOAT && want->type == SQLITE_INTEGER) return x->u.r == (double)want->u.i;
  if (x->type != want->type) return false;
  if (x->type == SQLITE_NULL) return true;
  if (x->type == SQLITE_INTEGER || x->type == SQLITE_FLOAT) return x->u.i == want->u.i;
  return x->n == want->n && (!x->n || memcmp(bytes, r->bytes + want->u.off, (size_t)x->n) == 0);
}

/* Compares an array on the host with the rows of SQLite from `first` on. */
static inline bool same_rows(const char *name, const struct ArrowSchema *s,
                             const struct ArrowArray *a, const rows *r, size_t first) {
  if (a->n_children != r->n_col || first + (size_t)a->length > r->n_rows)
    return tap_bad(name, "%lld columns, %lld rows from %zu on; SQLite has %d, %zu",
                   (long long)a->n_children, (long long)a->length, first, r->n_col, r->n_rows);
  for (int k = 0; k < r->n_col; k++) {
    const struct ArrowArray *c = a->children[k];
    int64_t n_nulls = 0;
    if (c->length != a->length) return tap_bad(name, "column %d has another length", k);
    for (int64_t i = 0; i < a->length; i++) {
      const cell *want = &r->cells[(first + (size_t)i) * (size_t)r->n_col + (size_t)k];
      const char *bytes = NULL;
      char text[200];
      cell x = stream_cell(s->children[k], c, i, &bytes);
      n_nulls += x.type == SQLITE_NULL;
      if (!same_value(&x, bytes, r, want))
        return tap_bad(name, "row %zu, column %d: type %d, not %s", first + (size_t)i, k, x.type,
                       cell_text(r, want, text, sizeof text));
    }
    if (s->children[k]->format[0] != '+' && c->null_count != n_nulls)
      return tap_bad(name, "column %d has %lld NULLs, not %lld", k, (long long)n_nulls,
                     (long long)c->null_count);
  }
  return true;
}

/* Compares an array, where it is on the device after a copy. */
static inline bool same_array(const char *name, const struct ArrowSchema *s,
                              const struct ArrowDeviceArray *a, bool stays, const rows *r,
                              size_t first) {
  struct ArrowArray copy;
  if (!stays) return same_rows(name, s, &a->array, r, first);
  if (!device_copy_array(a, s, &copy)) return tap_bad(name, "the array cannot be copied");
  bool same = same_rows(name, s, &copy, r, first);
  copy.release(&copy);
  return same;
}

static inline bool has_format(const struct ArrowSchema *s, const char *formats) {
  for (int64_t k = 0; k < s->n_children; k++)
    if (strchr(formats, s->children[k]->format[0])) return true;
  return false;
}

/* Reads a stream to its end. stays: the rows must be on the device. */
static inline bool check_stream(const char *name, struct ArrowDeviceArrayStream *s,
                                const rows *want, bool stays, int *n_arrays) {
  int type = stays && strcmp(engine, "cuda") == 0 ? ARROW_DEVICE_CUDA : ARROW_DEVICE_CPU;
  struct ArrowSchema schema;
  struct ArrowDeviceArray a;
  size_t row = 0;
  if (s->device_type != type)
    return tap_bad(name, "device type %d, not %d", (int)s->device_type, type);
  if (s->get_schema(s, &schema)) return tap_bad(name, "there is no schema");
  bool good = true;
  if (has_format(&schema, stays ? "uz+" : "UZ")) good = tap_bad(name, "a format is not right");
  for (*n_arrays = 0; good; ++*n_arrays) {
    if (s->get_next(s, &a)) {
      good = tap_bad(name, "get_next: %s", s->get_last_error(s));
      break;
    }
    if (!a.array.release) break;
    good = same_array(name, &schema, &a, stays, want, row);
    if (good && (a.device_type != type || a.device_id != (type == ARROW_DEVICE_CPU ? -1 : 0)))
      good = tap_bad(name, "device type %d, device %d", (int)a.device_type, (int)a.device_id);
    row += (size_t)a.array.length;
    a.array.release(&a.array);
  }
  schema.release(&schema);
  if (good && row != want->n_rows) good = tap_bad(name, "%zu rows, not %zu", row, want->n_rows);
  return good;
}

enum where { HOST, DEVICE };

static inline void check(sqlite3 *db, const char *sql, enum where where, int least_arrays) {
  char name[400];
  rows want = {0};
  struct ArrowDeviceArrayStream s;
  bool stays = where == DEVICE && has_device();
  int n_arrays = 0;
  snprintf(name, sizeof name, "query_device [%s] %.300s", engine, sql);
  rows_query(&want, db, sqlite3_prepare_v2, sql);
  int rc = warplite_query_device(db, sql, &s);
  const char *reason = warplite_reason(db);
  bool good = true, says = strstr(reason, "; rows on the host: ") != NULL;
  if (rc)
    good = tap_bad(name, "code %d: %s", rc, warplite_errmsg(db));
  else if (stays && (strncmp(reason, "gpu:", 4) != 0 || says))
    good = tap_bad(name, "%s", reason);
  else if (!stays && has_device() && strncmp(reason, "gpu:", 4) == 0 && !says)
    good = tap_bad(name, "the reason does not say why the rows are on the host: %s", reason);
  if (good) good = check_stream(name, &s, &want, stays, &n_arrays);
  if (!rc) s.release(&s);
  if (good && stays && n_arrays < least_arrays)
    good = tap_bad(name, "%d arrays, not %d: %s", n_arrays, least_arrays, warplite_reason(db));
  if (good) tap_ok(name);
  rows_free(&want);
}

/* ---- tables */

static inline sqlite3 *open_db(int n_rows) {
  sqlite3 *db = NULL;
  sqlite3_open(":memory:", &db);
  if (!use_engine(db, engine)) {
    tap_bad("engine", "%s", sqlite3_errmsg(db));
    exit(1);
  }
  must_run(db,
           "CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, r REAL, k TEXT, s TEXT,"
           " x BLOB, m, n INTEGER, nt TEXT, z REAL)");
  char *sql = sqlite3_mprintf(
      "INSERT INTO t WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i < %d)"
      " SELECT i, i * 7919 %% 1000, CASE WHEN i %% 3 THEN i * 1000003 - 500000000000 END,"
      " CASE WHEN i %% 11 THEN i * 0.125 - 77 END,"
      " CASE WHEN i %% 7 THEN 'kind ' || (i %% 5) END,"
      " CASE i %% 4 WHEN 0 THEN '' WHEN 1 THEN NULL ELSE 'text number ' || i || ' ä€😀' END,"
      " CASE i %% 5 WHEN 0 THEN x'' WHEN 1 THEN NULL ELSE randomblob(i %% 13) END,"
      " CASE i %% 3 WHEN 0 THEN i WHEN 1 THEN 'w' || i ELSE i * 0.5 END, NULL, NULL,"
      " CASE i %% 2 WHEN 0 THEN -0.0 ELSE 1e308 * (i %% 3) END FROM c WHERE i < %d",
      n_rows, n_rows);
  must_run(db, sql);
  sqlite3_free(sql);
  must_run(db, "CREATE TABLE u(k INTEGER, w TEXT)");
  must_run(db,
           "INSERT INTO u WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c WHERE i < "
           "99) SELECT i * 5, 'word ' || i FROM c");
  return db;
}

#endif
