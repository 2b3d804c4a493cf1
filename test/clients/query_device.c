/*
** warplite_query_device(): rows that stay on the device, and rows that cannot. Each value is
** compared with SQLite's, after a copy to the host. On the CPU, on the simulator, and with
** WL_TEST_CUDA on CUDA.
**
** Invariants:
** 1. Each statement says where its rows must be. A device that leaves rows to the host where it
**    should not is a failure, and so is the opposite.
** 2. Memory of arrays stays the same while other statements run with little device memory.
*/
#include <pthread.h>
#include <string.h>

#include "../device_copy.h"
#include "../engines.h"
#include "../rows.h"
#include "../tap.h"

static const char *engine;

static bool has_device(void) {
  return strcmp(engine, "cpu") != 0;
}

static void must_run(sqlite3 *db, const char *sql) {
  char *msg = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &msg)) tap_bad(sql, "%s", msg);
  sqlite3_free(msg);
}

/* ---- reading */

/* A value of a column on the host, as a cell; bytes are in *bytes. */
static cell cell_at(const struct ArrowSchema *s, const struct ArrowArray *a, int64_t row,
                    const char **bytes) {
  cell c = {.type = SQLITE_NULL};
  char f = s->format[0];
  int64_t i = row + a->offset;
  if (f == '+') { /* a dense union */
    static const char *const kinds[] = {"l", "g", "u", "z"};
    int kind = ((const int8_t *)a->buffers[0])[i];
    struct ArrowSchema child = {.format = kinds[kind]};
    return cell_at(&child, a->children[kind], ((const int32_t *)a->buffers[1])[i], bytes);
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

static bool same_value(const cell *x, const char *bytes, const rows *r, const cell *want) {
  if (x->type == SQLITE_FLOAT && want->type == SQLITE_INTEGER) return x->u.r == (double)want->u.i;
  if (x->type != want->type) return false;
  if (x->type == SQLITE_NULL) return true;
  if (x->type == SQLITE_INTEGER || x->type == SQLITE_FLOAT) return x->u.i == want->u.i;
  return x->n == want->n && (!x->n || memcmp(bytes, r->bytes + want->u.off, (size_t)x->n) == 0);
}

/* Compares an array on the host with the rows of SQLite from `first` on. */
static bool same_rows(const char *name, const struct ArrowSchema *s, const struct ArrowArray *a,
                      const rows *r, size_t first) {
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
      cell x = cell_at(s->children[k], c, i, &bytes);
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
static bool same_array(const char *name, const struct ArrowSchema *s,
                       const struct ArrowDeviceArray *a, bool stays, const rows *r, size_t first) {
  struct ArrowArray copy;
  if (!stays) return same_rows(name, s, &a->array, r, first);
  if (!device_copy_array(a, s, &copy)) return tap_bad(name, "the array cannot be copied");
  bool same = same_rows(name, s, &copy, r, first);
  copy.release(&copy);
  return same;
}

static bool has_format(const struct ArrowSchema *s, const char *formats) {
  for (int64_t k = 0; k < s->n_children; k++)
    if (strchr(formats, s->children[k]->format[0])) return true;
  return false;
}

/* Reads a stream to its end. stays: the rows must be on the device. */
static bool check_stream(const char *name, struct ArrowDeviceArrayStream *s, const rows *want,
                         bool stays, int *n_arrays) {
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

static void check(sqlite3 *db, const char *sql, enum where where, int least_arrays) {
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

static sqlite3 *open_db(int n_rows) {
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

/* ---- statements */

static void check_statements(int n_rows) {
  sqlite3 *db = open_db(n_rows);
  bool many = n_rows > 1;
  check(db, "SELECT id, a, b, r FROM t", DEVICE, 0);
  check(db, "SELECT id, k, s, x FROM t", DEVICE, 0);
  check(db, "SELECT k FROM t WHERE a < 10", DEVICE, 0);
  check(db, "SELECT s, x, k FROM t WHERE a = 5", DEVICE, 0);
  check(db, "SELECT n, nt, NULL, a, z, -z FROM t WHERE a < 500", DEVICE, 0);
  check(db, "SELECT a, b FROM t WHERE a > 1000", DEVICE, 0);
  check(db, "SELECT a + b, r * 2, a > 3, 'constant', 7, 0.5, x'00ff' FROM t WHERE id % 2", DEVICE,
        0);
  check(db, "SELECT CASE WHEN a % 2 THEN a ELSE r END FROM t", DEVICE, 0);
  check(db, "SELECT s || '!', k || a, substr(s, 2, 5) FROM t WHERE r < 100", DEVICE, 0);
  /* without rows, the host makes the one group */
  enum where one = n_rows ? DEVICE : HOST;
  check(db, "SELECT sum(a), count(*), max(r), min(b), avg(r), total(a) FROM t", one, 0);
  check(db, "SELECT sum(b) FROM t WHERE a > 1000", one, 0);
  check(db, "SELECT a, count(*), sum(b) FROM t GROUP BY a", DEVICE, 0);
  check(db, "SELECT a, count(*) AS many FROM t GROUP BY a HAVING many > 1", DEVICE, 0);
  check(db, "SELECT id, a, r FROM t ORDER BY r, id", DEVICE, 0);
  check(db, "SELECT id, k, s FROM t ORDER BY b DESC, id", DEVICE, 0);
  check(db, "SELECT id, a FROM t ORDER BY a DESC, id LIMIT 10", DEVICE, 0);
  check(db, "SELECT id, a, k, s FROM t ORDER BY a DESC, id LIMIT 10 OFFSET 7", DEVICE, 0);
  check(db, "SELECT id, s, b FROM t LIMIT 9 OFFSET 4", DEVICE, 0);
  check(db, "SELECT id, s, b FROM t LIMIT 0", DEVICE, 0);
  check(db, "SELECT id FROM t LIMIT -1 OFFSET 100000", DEVICE, 0);
  check(db, "SELECT DISTINCT a, k FROM t ORDER BY a, k", DEVICE, 0);
  check(db, "SELECT DISTINCT a % 7 FROM t", DEVICE, 0);
  check(db, "SELECT t.id, u.w, u.k FROM t JOIN u ON u.k = t.a ORDER BY t.id, u.w", DEVICE, 0);
  check(db, "SELECT t.id, x.b FROM t JOIN t x ON x.a = t.a AND x.id < 40 ORDER BY t.id, x.id",
        DEVICE, 0);
  check(db, "SELECT q.a, q.n FROM (SELECT a, count(*) AS n FROM t GROUP BY a) q WHERE q.n < 90",
        DEVICE, 0);
  /* what cannot stay */
  check(db, "SELECT m FROM t", many ? HOST : DEVICE, 0);
  check(db, "SELECT id, row_number() OVER (ORDER BY id) FROM t WHERE id < 9", HOST, 0);
  if (many) check(db, "SELECT s || a, count(*) FROM t GROUP BY 1", HOST, 0);
  /* a dictionary has the texts of a small table */
  if (n_rows != 1)
    check(db, "SELECT DISTINCT substr(s, 1, 9) FROM t ORDER BY 1", n_rows > 60000 ? HOST : DEVICE,
          0);
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}

/* The rows of a join, whose order is not SQLite's: compares their number and sums. */
static void check_sums(sqlite3 *db, const char *a, const char *b, const char *from, int least) {
  char sql[300];
  struct ArrowDeviceArrayStream s;
  struct ArrowDeviceArray array;
  struct ArrowArray copy;
  struct ArrowSchema schema;
  rows want = {0};
  int64_t n = 0, sums[2] = {0, 0};
  int n_arrays = 0;
  if (!has_device()) return;
  snprintf(sql, sizeof sql, "SELECT count(*), total(%s), total(%s) FROM %s", a, b, from);
  rows_query(&want, db, sqlite3_prepare_v2, sql);
  snprintf(sql, sizeof sql, "SELECT %s, %s FROM %s", a, b, from);
  if (warplite_query_device(db, sql, &s)) {
    tap_bad(sql, "%s", warplite_errmsg(db));
    return;
  }
  bool good = s.get_schema(&s, &schema) == 0;
  for (; good && s.get_next(&s, &array) == 0 && array.array.release; n_arrays++) {
    good = device_copy_array(&array, &schema, &copy);
    array.array.release(&array.array);
    n += good ? copy.length : 0;
    for (int k = 0; k < 2 && good; k++)
      for (int64_t i = 0; i < copy.length; i++) {
        const char *bytes;
        cell c = cell_at(schema.children[k], copy.children[k], i, &bytes);
        sums[k] += c.type == SQLITE_INTEGER ? c.u.i : 0;
      }
    if (good) copy.release(&copy);
  }
  schema.release(&schema);
  s.release(&s);
  if (!good || n != want.cells[0].u.i || (double)sums[0] != want.cells[1].u.r ||
      (double)sums[1] != want.cells[2].u.r || n_arrays < least)
    tap_bad(sql, "%lld rows in %d arrays, sums %lld and %lld: %s", (long long)n, n_arrays,
            (long long)sums[0], (long long)sums[1], warplite_reason(db));
  else if (strstr(warplite_reason(db), "rows on the host"))
    tap_bad(sql, "%s", warplite_reason(db));
  else
    tap_ok(sql);
  rows_free(&want);
}

/* Several launches leave several arrays: blocks that are streamed, pieces of a join, and LIMIT, for
** which a device begins with a few tablets. */
static void check_several(void) {
  sqlite3 *db = open_db(400000);
  use_setting(db, "transfer", "stream");
  use_setting(db, "device_budget", "30000000");
  check(db, "SELECT id, a, r FROM t", DEVICE, 2);
  check(db, "SELECT id, s, x FROM t WHERE a < 100", DEVICE, 2);
  check(db, "SELECT id, a, r FROM t WHERE b % 3 LIMIT 200000 OFFSET 70000", DEVICE, 1);
  check(db, "SELECT id, a FROM t ORDER BY r, id", HOST, 0);
  check(db, "SELECT DISTINCT a, r FROM t", HOST, 0);
  /* there is room for the first arrays, but not for all: the statement runs again */
  use_setting(db, "device_budget", "6000000");
  check(db, "SELECT id, a, r FROM t", HOST, 0);
  check(db, "SELECT id, a, r, s FROM t WHERE a < 700", HOST, 0);
  use_setting(db, "transfer", "auto");
  use_setting(db, "device_budget", "0");
  check(db, "SELECT id, a, r FROM t LIMIT 300000 OFFSET 10", DEVICE, 2);
  check(db, "SELECT id, k FROM t LIMIT 1", DEVICE, 1);
  must_run(db, "CREATE TABLE v(a INTEGER, w INTEGER);"
               "INSERT INTO v SELECT a % 50, id FROM t WHERE id < 600");
  check(db, "SELECT count(*), sum(y.w) FROM v x JOIN v y ON x.a = y.a", DEVICE, 1);
  check_sums(db, "x.w", "y.w", "v x JOIN v y ON x.a = y.a JOIN v z ON z.a < x.a", 2);
  check_sums(db, "x.w", "y.w", "v x FULL JOIN v y ON x.w = y.w * 2", 2);
  check_sums(db, "x.w", "y.w", "v x LEFT JOIN v y ON x.w = y.a AND y.w > x.w * 3", 1);
  /* few rows of a large dictionary */
  must_run(db,
           "CREATE TABLE d(id INTEGER PRIMARY KEY, t TEXT);"
           "INSERT INTO d SELECT id, CASE WHEN id % 13 THEN 'entry ' || (id % 6000) END FROM t");
  check(db, "SELECT id, t FROM d WHERE id > 3 AND id < 300", DEVICE, 1);
  check(db, "SELECT t FROM d WHERE t = 'entry 77' AND id > 0", DEVICE, 1);
  check(db, "SELECT t, id FROM d WHERE id = 13", DEVICE, 1);
  check(db, "SELECT id, t FROM d WHERE id % 3", DEVICE, 1);
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}

/* ---- lifetimes */

/* The arrays of a statement, kept beside SQLite's rows. */
typedef struct held {
  rows want;
  struct ArrowDeviceArrayStream stream;
  struct ArrowSchema schema;
  struct ArrowDeviceArray arrays[16];
  int n;
} held;

static const char *const held_sql = "SELECT id, k, s, b FROM t WHERE a < 700";

static bool hold_rows(sqlite3 *db, const char *sql, held *h) {
  memset(h, 0, sizeof *h);
  rows_query(&h->want, db, sqlite3_prepare_v2, sql);
  if (warplite_query_device(db, sql, &h->stream) || h->stream.get_schema(&h->stream, &h->schema))
    return tap_bad(sql, "%s", warplite_errmsg(db));
  while (h->n < 16 && h->stream.get_next(&h->stream, &h->arrays[h->n]) == 0 &&
         h->arrays[h->n].array.release)
    h->n++;
  return true;
}

static bool still_same(const char *name, const held *h) {
  size_t row = 0;
  bool stays = h->schema.children[1]->format[0] == 'U';
  if (stays != has_device()) return tap_bad(name, "the rows are not where they should be");
  for (int k = 0; k < h->n; k++) {
    if (!same_array(name, &h->schema, &h->arrays[k], stays, &h->want, row)) return false;
    row += (size_t)h->arrays[k].array.length;
  }
  return row == h->want.n_rows || tap_bad(name, "%zu rows of %zu", row, h->want.n_rows);
}

static void release_arrays(held *h) {
  for (int k = 0; k < h->n; k++) h->arrays[k].array.release(&h->arrays[k].array);
  h->n = 0;
}

static void drop_rows(held *h) {
  release_arrays(h);
  if (h->schema.release) h->schema.release(&h->schema);
  if (h->stream.release) h->stream.release(&h->stream);
  rows_free(&h->want);
}

static void *release_elsewhere(void *arg) {
  release_arrays(arg);
  return NULL;
}

/* Arrays live on after the stream, the statement and the connection. */
static void check_outliving(void) {
  sqlite3 *db = open_db(3000);
  sqlite3_stmt *stmt = NULL;
  held h;
  pthread_t thread;
  if (!hold_rows(db, held_sql, &h)) return;
  h.stream.release(&h.stream);
  CHECK("the stream is released", h.stream.release == NULL);
  if (still_same("after the stream", &h)) tap_ok("query_device: after the stream");
  must_run(db, "DELETE FROM t WHERE id % 2");
  must_run(db, "UPDATE t SET a = a + 1, s = 'other', k = 'new'");
  check(db, "SELECT id, a, s, k FROM t", DEVICE, 1);
  if (still_same("after changes", &h)) tap_ok("query_device: after changes of the table");
  must_run(db, "DROP TABLE t");
  CHECK("closes while arrays are held", sqlite3_close(db) == SQLITE_OK);
  if (still_same("after the connection", &h)) tap_ok("query_device: after the connection");
  /* a child that was moved out of its parent lives on */
  struct ArrowArray moved = *h.arrays[0].array.children[1];
  h.arrays[0].array.children[1]->release = NULL;
  pthread_create(&thread, NULL, release_elsewhere, &h);
  pthread_join(thread, NULL);
  struct ArrowDeviceArray of = {.device_type = h.stream.device_type};
  struct ArrowArray copy;
  const char *bytes = NULL;
  bool stays = h.schema.children[1]->format[0] == 'U';
  if (stays && !device_copy_column(&of, h.schema.children[1], &moved, &copy))
    tap_bad("query_device: a child that was moved", "cannot be copied");
  cell x = cell_at(h.schema.children[1], stays ? &copy : &moved, 1, &bytes);
  CHECK("query_device: a child that was moved",
        same_value(&x, bytes, &h.want, &h.want.cells[h.want.n_col + 1]));
  if (stays) copy.release(&copy);
  moved.release(&moved);
  drop_rows(&h);
  /* a statement with parameters may be finalized and changed */
  db = open_db(100);
  rows want = {0};
  int n_arrays;
  rows_query(&want, db, sqlite3_prepare_v2, "SELECT id, s FROM t WHERE a > 300 AND k = 'kind 2'");
  sqlite3_prepare_v2(db, "SELECT id, s FROM t WHERE a > ?1 AND k = :kind", -1, &stmt, NULL);
  sqlite3_bind_int(stmt, 1, 300);
  sqlite3_bind_text(stmt, 2, "kind 2", -1, SQLITE_STATIC);
  int rc = warplite_query_stmt_device(stmt, &h.stream);
  sqlite3_finalize(stmt);
  if (rc)
    tap_bad("query_device: a statement with parameters", "%s", warplite_errmsg(db));
  else if (check_stream("query_device: a statement with parameters", &h.stream, &want, has_device(),
                        &n_arrays))
    tap_ok("query_device: a statement with parameters");
  if (!rc) h.stream.release(&h.stream);
  rows_free(&want);
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}

/* Two streams at once; one is released before it is read, and one before its end. */
static void check_two(void) {
  sqlite3 *db = open_db(2000);
  held a, b;
  struct ArrowDeviceArrayStream s;
  struct ArrowDeviceArray first;
  CHECK("opens", warplite_query_device(db, held_sql, &s) == SQLITE_OK);
  s.release(&s);
  if (!hold_rows(db, held_sql, &a) ||
      !hold_rows(db, "SELECT b, s, k, r FROM t ORDER BY id DESC", &b))
    return;
  CHECK("opens", warplite_query_device(db, "SELECT id, s FROM t", &s) == SQLITE_OK);
  CHECK("gives an array", s.get_next(&s, &first) == 0 && first.array.release);
  s.release(&s);
  first.array.release(&first.array);
  if (still_same("two streams: the first", &a) && still_same("two streams: the second", &b))
    tap_ok("query_device: two streams");
  drop_rows(&a);
  if (still_same("two streams: one is left", &b)) tap_ok("query_device: one of two streams");
  drop_rows(&b);
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}

/* Other statements need the memory of the device while arrays are held. */
static void check_eviction(void) {
  static const char *const others[] = {
      "SELECT a, b, r, s FROM t", "SELECT a, count(*), sum(r) FROM t GROUP BY a",
      "SELECT x, k, z FROM t WHERE a > 20", "SELECT b, a FROM t ORDER BY b, id LIMIT 500"};
  sqlite3 *db = open_db(20000);
  held h;
  if (!hold_rows(db, held_sql, &h)) return;
  for (int budget = 6000000; budget >= 500000; budget /= 2) {
    char text[20];
    snprintf(text, sizeof text, "%d", budget);
    use_setting(db, "device_budget", text);
    for (int k = 0; k < 4; k++) {
      struct ArrowDeviceArrayStream s;
      rows want = {0};
      int n_arrays;
      rows_query(&want, db, sqlite3_prepare_v2, others[k]);
      if (warplite_query_device(db, others[k], &s)) {
        tap_bad(others[k], "%s", warplite_errmsg(db));
        continue;
      }
      struct ArrowSchema schema;
      struct ArrowDeviceArray a;
      size_t row = 0;
      bool good = s.get_schema(&s, &schema) == 0;
      bool stays = !strstr(warplite_reason(db), "rows on the host") &&
                   strncmp(warplite_reason(db), "gpu:", 4) == 0;
      for (n_arrays = 0; good && s.get_next(&s, &a) == 0 && a.array.release; n_arrays++) {
        good = same_array(others[k], &schema, &a, stays, &want, row);
        row += (size_t)a.array.length;
        a.array.release(&a.array);
      }
      if (good && row == want.n_rows)
        tap_ok(others[k]);
      else
        tap_bad(others[k], "%zu rows of %zu, device_budget %d: %s", row, want.n_rows, budget,
                warplite_reason(db));
      schema.release(&schema);
      s.release(&s);
      rows_free(&want);
    }
    if (still_same("while memory is short", &h)) tap_ok("query_device: while memory is short");
  }
  if (has_device()) { /* the rows alone need more than this */
    use_setting(db, "device_budget", "1500000");
    check(db, "SELECT id, a, b, r, s, k FROM t", HOST, 0);
  }
  drop_rows(&h);
  use_setting(db, "device_budget", "0");
  check(db, held_sql, DEVICE, 1);
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}

/* ---- errors */

static void check_errors(void) {
  sqlite3 *db = open_db(1000);
  struct ArrowDeviceArrayStream s;
  struct ArrowDeviceArray a;
  sqlite3_stmt *stmt = NULL;
  CHECK("no connection", warplite_query_device(NULL, "SELECT 1", &s) == SQLITE_MISUSE);
  CHECK("no text", warplite_query_device(db, NULL, &s) == SQLITE_MISUSE);
  CHECK("no stream", warplite_query_device(db, "SELECT 1", NULL) == SQLITE_MISUSE);
  CHECK("no statement", warplite_query_stmt_device(NULL, &s) == SQLITE_MISUSE);
  CHECK("a wrong text", warplite_query_device(db, "SELECT nothing FROM t", &s) == SQLITE_ERROR &&
                            strstr(warplite_errmsg(db), "nothing") && !s.release);
  CHECK("no rows", warplite_query_device(db, "DELETE FROM u", &s) == SQLITE_ERROR && !s.release);
  sqlite3_prepare_v2(db, "SELECT id FROM t", -1, &stmt, NULL);
  sqlite3_step(stmt);
  CHECK("a running statement", warplite_query_stmt_device(stmt, &s) == SQLITE_MISUSE);
  sqlite3_finalize(stmt);
  /* the error comes after the rows before it, from a stream of rows on the host */
  int rc = warplite_query_device(db,
                                 "SELECT id, abs(CASE WHEN id = 900 THEN -9223372036854775807 - 1"
                                 " ELSE id END) FROM t",
                                 &s);
  int64_t n = 0;
  int e = 0;
  while (!rc && (e = s.get_next(&s, &a)) == 0 && a.array.release) {
    n += a.array.length;
    a.array.release(&a.array);
  }
  if (rc || !e || n != 900 || !strstr(s.get_last_error(&s), "overflow"))
    tap_bad("query_device: an error at a row", "code %d, %d, %lld rows: %s", rc, e, (long long)n,
            rc ? warplite_errmsg(db) : "");
  else
    tap_ok("query_device: an error at a row");
  if (!rc) s.release(&s);
  /* the schema changes between two runs of one text */
  check(db, "SELECT * FROM u", DEVICE, 1);
  must_run(db, "ALTER TABLE u ADD COLUMN more REAL DEFAULT 0.5");
  check(db, "SELECT * FROM u", DEVICE, 1);
  must_run(db, "ALTER TABLE u RENAME COLUMN w TO words");
  rc = warplite_query_device(db, "SELECT * FROM u", &s);
  struct ArrowSchema schema;
  if (!rc && !s.get_schema(&s, &schema)) {
    CHECK("a renamed column", strcmp(schema.children[1]->name, "words") == 0);
    schema.release(&schema);
    /* between two calls of one stream */
    must_run(db, "DROP TABLE u");
    CHECK("after DROP TABLE", s.get_next(&s, &a) == 0 && a.array.length == 100);
    a.array.release(&a.array);
    s.release(&s);
  } else {
    tap_bad("a renamed column", "code %d", rc);
  }
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}

int main(void) {
  static const char *const engines[] = {"cpu", "sim", "cuda"};
  static const int sizes[] = {0, 1, 1000, 65537};
  int n = getenv("WL_TEST_CUDA") ? 3 : 2;
  for (int e = 0; e < n; e++) {
    engine = engines[e];
    for (int k = 0; k < 4; k++) check_statements(sizes[k]);
    check_several();
    check_outliving();
    check_two();
    check_eviction();
    check_errors();
  }
  return tap_done();
}
