/*
** warplite_query(): the Arrow stream read by the book and compared with SQLite's rows.
**
** Invariants:
** 1. The reader trusts nothing but the specification: offsets, validity bits that may be
**    absent, children longer than their parent, null counts of -1.
** 2. The expected format of a column follows from the values SQLite gives, by the rule in
**    the public header.
*/
#include <string.h>

#include "../engines.h"
#include "../rows.h"
#include "../tap.h"

static const char *engine;

typedef struct item { /* one value out of an array */
  int type;
  int64_t i;
  double r;
  const char *bytes;
  int n;
} item;

static bool bit(const void *bits, int64_t i) {
  return ((const unsigned char *)bits)[i / 8] >> (i % 8) & 1;
}

/* The value at a logical index; false if the array is not as its format says. */
static bool item_at(const char *format, const struct ArrowArray *a, int64_t at, item *out) {
  int64_t i = at + a->offset;
  memset(out, 0, sizeof *out);
  if (at < 0 || at >= a->length) return false;
  if (!strcmp(format, "n")) {
    out->type = SQLITE_NULL;
    return a->n_buffers == 0;
  }
  if (!strcmp(format, "+ud:0,1,2,3")) {
    static const char *const kinds[] = {"l", "g", "u", "z"};
    if (a->n_buffers != 2 || a->n_children != 4) return false;
    int kind = ((const int8_t *)a->buffers[0])[i];
    if (kind < 0 || kind > 3) return false;
    return item_at(kinds[kind], a->children[kind], ((const int32_t *)a->buffers[1])[i], out);
  }
  bool bytes = !strcmp(format, "u") || !strcmp(format, "z");
  if (a->n_buffers != (bytes ? 3 : 2)) return false;
  if (a->buffers[0] && !bit(a->buffers[0], i)) {
    out->type = SQLITE_NULL;
  } else if (!strcmp(format, "l")) {
    out->type = SQLITE_INTEGER;
    out->i = ((const int64_t *)a->buffers[1])[i];
  } else if (!strcmp(format, "g")) {
    out->type = SQLITE_FLOAT;
    out->r = ((const double *)a->buffers[1])[i];
  } else if (bytes) {
    const int32_t *off = a->buffers[1];
    if (off[i] < 0 || off[i + 1] < off[i]) return false;
    out->type = *format == 'u' ? SQLITE_TEXT : SQLITE_BLOB;
    out->n = off[i + 1] - off[i];
    out->bytes = (const char *)a->buffers[2] + off[i];
  } else {
    return false;
  }
  return true;
}

static bool item_same(const item *x, const rows *r, const cell *c) {
  if (x->type == SQLITE_FLOAT && c->type == SQLITE_INTEGER) return x->r == (double)c->u.i;
  if (x->type != c->type) return false;
  switch (x->type) {
  case SQLITE_INTEGER: return x->i == c->u.i;
  case SQLITE_FLOAT: return !memcmp(&x->r, &c->u.r, sizeof x->r);
  case SQLITE_NULL: return true;
  default: return x->n == c->n && (!x->n || !memcmp(x->bytes, r->bytes + c->u.off, (size_t)x->n));
  }
}

/* The format a column must have; "" where the header leaves it open. */
static const char *expected_format(const rows *r, int col, const char *decl) {
  bool kinds[6] = {false}, exact = true;
  for (size_t i = (size_t)col; i < r->n_cells; i += (size_t)r->n_col) {
    const cell *c = &r->cells[i];
    kinds[c->type] = true;
    if (c->type == SQLITE_INTEGER) /* 2^63 is no int64, and casting it back undefined */
      exact &= (double)c->u.i < 9223372036854775808.0 && (int64_t)(double)c->u.i == c->u.i;
  }
  bool i = kinds[SQLITE_INTEGER], f = kinds[SQLITE_FLOAT], t = kinds[SQLITE_TEXT],
       b = kinds[SQLITE_BLOB];
  if (!i && !f && !t && !b) {
    if (!decl) return "n";
    if (!strcmp(decl, "INTEGER")) return "l";
    if (!strcmp(decl, "REAL")) return "g";
    if (!strcmp(decl, "TEXT")) return "u";
    return !strcmp(decl, "BLOB") ? "z" : "";
  }
  if (i + f + t + b == 1) return i ? "l" : f ? "g" : t ? "u" : "z";
  if (i && f && !t && !b && exact) return "g";
  return "+ud:0,1,2,3";
}

/* Whether a format can hold what another one does: rows that came to nothing count too. */
static bool holds(const char *format, const char *want) {
  return !strcmp(format, want) || !strcmp(want, "n") || !strcmp(format, "+ud:0,1,2,3") ||
         (!strcmp(format, "g") && !strcmp(want, "l"));
}

/* wider: rows that do not come may have had a say in the format. */
static bool check_schema(const char *label, const struct ArrowSchema *s, const rows *r,
                         sqlite3_stmt *st, bool wider) {
  if (strcmp(s->format, "+s")) return tap_bad(label, "the stream is of %s", s->format);
  if (s->n_children != r->n_col)
    return tap_bad(label, "%lld children, SQLite %d columns", (long long)s->n_children, r->n_col);
  for (int c = 0; c < r->n_col; c++) {
    const struct ArrowSchema *k = s->children[c];
    const char *want = expected_format(r, c, sqlite3_column_decltype(st, c));
    if (strcmp(k->name, sqlite3_column_name(st, c)))
      return tap_bad(label, "column %d is named %s, SQLite %s", c, k->name,
                     sqlite3_column_name(st, c));
    if (*want && strcmp(k->format, want) && !(wider && holds(k->format, want)))
      return tap_bad(label, "column %d has format %s, not %s", c, k->format, want);
    if (!strcmp(k->format, "+ud:0,1,2,3")) {
      static const char *const kinds[] = {"l", "g", "u", "z"};
      if (k->n_children != 4) return tap_bad(label, "a union of %lld", (long long)k->n_children);
      for (int i = 0; i < 4; i++)
        if (strcmp(k->children[i]->format, kinds[i]))
          return tap_bad(label, "union member %d has format %s", i, k->children[i]->format);
    } else if (!(k->flags & ARROW_FLAG_NULLABLE)) {
      for (size_t i = (size_t)c; i < r->n_cells; i += (size_t)r->n_col)
        if (r->cells[i].type == SQLITE_NULL)
          return tap_bad(label, "column %d holds NULL and is not nullable", c);
    }
  }
  return true;
}

/* One batch against the rows from `row` on. */
static bool check_batch(const char *label, const struct ArrowSchema *s, const struct ArrowArray *a,
                        const rows *r, size_t row) {
  if (a->n_children != r->n_col || a->n_buffers != 1)
    return tap_bad(label, "a batch of %lld children", (long long)a->n_children);
  if (a->null_count > 0) return tap_bad(label, "the struct itself has nulls");
  if (row + (size_t)a->length > r->n_rows) return tap_bad(label, "more rows than SQLite");
  for (int c = 0; c < r->n_col; c++) {
    const struct ArrowArray *k = a->children[c];
    int64_t n_null = 0;
    if (k->length < a->length + a->offset)
      return tap_bad(label, "column %d is shorter than its batch", c);
    for (int64_t i = 0; i < a->length; i++) {
      const cell *want = &r->cells[(row + (size_t)i) * (size_t)r->n_col + (size_t)c];
      item x;
      char t[200];
      if (!item_at(s->children[c]->format, k, i + a->offset, &x))
        return tap_bad(label, "row %zu column %d cannot be read", row + (size_t)i, c);
      if (!item_same(&x, r, want))
        return tap_bad(label, "row %zu column %d differs from SQLite's %s", row + (size_t)i, c,
                       cell_text(r, want, t, sizeof t));
      n_null += x.type == SQLITE_NULL;
    }
    if (*s->children[c]->format != '+' && k->null_count >= 0 && k->length == a->length &&
        k->null_count != n_null)
      return tap_bad(label, "column %d says %lld nulls, has %lld", c, (long long)k->null_count,
                     (long long)n_null);
  }
  return true;
}

static void check_query(sqlite3 *db, const char *sql, bool native, bool wider) {
  char label[300];
  rows r;
  struct ArrowArrayStream s;
  struct ArrowSchema schema, again;
  struct ArrowArray a;
  sqlite3_stmt *st = NULL;
  size_t row = 0;
  int n_batches = 0;
  snprintf(label, sizeof label, "arrow [%s] %.200s", engine, sql);
  memset(&r, 0, sizeof r);
  memset(&s, 0, sizeof s);
  rows_query(&r, db, sqlite3_prepare_v2, sql);
  sqlite3_prepare_v2(db, sql, -1, &st, NULL);
  int rc = warplite_query(db, sql, &s);
  if (rc != SQLITE_OK || !s.release) {
    tap_bad(label, "code %d: %s", rc, warplite_errmsg(db));
    goto done;
  }
  if (native && strcmp(engine, "sqlite") && !strncmp(warplite_reason(db), "sqlite", 6)) {
    tap_bad(label, "not native: %s", warplite_reason(db));
    s.release(&s);
    goto done;
  }
  if (s.get_schema(&s, &schema) != 0) {
    tap_bad(label, "no schema: %s", s.get_last_error(&s));
    s.release(&s);
    goto done;
  }
  bool good = check_schema(label, &schema, &r, st, wider && strcmp(engine, "sqlite"));
  while (good) {
    memset(&a, 0, sizeof a);
    if (s.get_next(&s, &a) != 0) {
      good = tap_bad(label, "get_next: %s", s.get_last_error(&s));
      break;
    }
    if (!a.release) break;
    good = check_batch(label, &schema, &a, &r, row);
    row += (size_t)a.length;
    n_batches++;
    a.release(&a);
    if (good && a.release) good = tap_bad(label, "a released array keeps its release");
  }
  if (good && row != r.n_rows) good = tap_bad(label, "%zu rows, SQLite %zu", row, r.n_rows);
  if (good) { /* the end stays the end, and the schema can be had again */
    memset(&a, 1, sizeof a);
    if (s.get_next(&s, &a) != 0 || a.release) good = tap_bad(label, "a batch after the end");
  }
  if (good) {
    if (s.get_schema(&s, &again) != 0) {
      good = tap_bad(label, "no second schema");
    } else {
      if (strcmp(again.format, schema.format)) good = tap_bad(label, "another second schema");
      again.release(&again);
    }
  }
  s.release(&s);
  if (good && s.release) good = tap_bad(label, "a released stream keeps its release");
  /* the schema outlives the stream */
  if (good && schema.n_children != r.n_col)
    good = tap_bad(label, "the schema went with the stream");
  schema.release(&schema);
  if (good) tap_ok(label);
done:
  sqlite3_finalize(st);
  rows_free(&r);
}

static sqlite3 *open_db(void) {
  sqlite3 *db;
  if (sqlite3_open(":memory:", &db) || !use_engine(db, engine)) {
    tap_bad("arrow", "cannot set the engine: %s", sqlite3_errmsg(db));
    exit(tap_done());
  }
  sqlite3_exec(
      db,
      "CREATE TABLE t(i INTEGER, r REAL, s TEXT, b BLOB, x, ir, n INTEGER, nr REAL, nt TEXT, nb "
      "BLOB, nn);"
      "INSERT INTO t WITH RECURSIVE c(k) AS (SELECT 1 UNION ALL SELECT k+1 FROM c WHERE k<3000)"
      " SELECT CASE WHEN k%7 THEN k*1000003 END, CASE WHEN k%5 THEN k/8.0 END,"
      " CASE k%6 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE 'text '||k END,"
      " CASE k%4 WHEN 0 THEN NULL WHEN 1 THEN x'' ELSE CAST('b'||k AS BLOB) END,"
      " CASE k%5 WHEN 0 THEN k WHEN 1 THEN k/2.0 WHEN 2 THEN 't'||k WHEN 3 THEN x'00ff' END,"
      " CASE WHEN k%2 THEN k ELSE k/4.0 END, NULL, NULL, NULL, NULL, NULL FROM c;"
      "CREATE TABLE big(x); INSERT INTO big VALUES(9007199254740993),(0.5);"
      "CREATE TABLE utf(s TEXT); INSERT INTO utf VALUES('é日本'),(NULL),(CAST(x'610062' AS TEXT));"
      "CREATE TABLE e(i INTEGER, r REAL, s TEXT, b BLOB, x, v VARCHAR(5));",
      NULL, NULL, NULL);
  return db;
}

/* Arrays and schemas live on when stream and connection are gone. */
static void check_outliving(void) {
  sqlite3 *db = open_db();
  struct ArrowArrayStream s;
  struct ArrowSchema schema;
  struct ArrowArray a;
  memset(&s, 0, sizeof s);
  memset(&a, 0, sizeof a);
  if (warplite_query(db, "SELECT i, s, x FROM t WHERE i IS NOT NULL", &s) != SQLITE_OK) {
    tap_bad("arrow: outliving", "%s", warplite_errmsg(db));
    sqlite3_close(db);
    return;
  }
  CHECK("arrow: outliving: schema", s.get_schema(&s, &schema) == 0);
  CHECK("arrow: outliving: batch", s.get_next(&s, &a) == 0 && a.release && a.length > 0);
  s.release(&s);
  CHECK("arrow: the connection closes after its stream", sqlite3_close(db) == SQLITE_OK);
  item x;
  CHECK("arrow: a batch read after the end of all",
        a.release && item_at("l", a.children[0], a.offset, &x) && x.i == 1000003);
  CHECK("arrow: a schema read after the end of all", !strcmp(schema.children[1]->name, "s"));
  schema.release(&schema);
  if (!a.release) return;
  /* a child moved out lives by itself, as the specification has it */
  struct ArrowArray child = *a.children[0], text = *a.children[1], mixed = *a.children[2];
  for (int i = 0; i < 3; i++) a.children[i]->release = NULL;
  a.release(&a);
  CHECK("arrow: a child moved out", item_at("l", &child, 0, &x) && x.i == 1000003);
  if (child.release) child.release(&child);
  CHECK("arrow: a second child, after the first",
        item_at("u", &text, 1, &x) && x.n == 6 && !memcmp(x.bytes, "text 2", 6));
  if (text.release) text.release(&text);
  CHECK("arrow: a union moved out",
        item_at("+ud:0,1,2,3", &mixed, 0, &x) && x.type == SQLITE_FLOAT && x.r == 0.5);
  if (mixed.release) mixed.release(&mixed);
}

static void check_errors(void) {
  static const char *const bad[] = {"SELECT nosuch FROM t", "SELECT", "SELECT * FROM nosuch",
                                    "SELEC 1"};
  sqlite3 *db = open_db();
  char label[100];
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct ArrowArrayStream s;
    sqlite3_stmt *st = NULL;
    memset(&s, 0, sizeof s);
    snprintf(label, sizeof label, "arrow [%s] error of %s", engine, bad[i]);
    int rc = warplite_query(db, bad[i], &s);
    char said[300];
    snprintf(said, sizeof said, "%s", warplite_errmsg(db));
    int theirs = sqlite3_prepare_v2(db, bad[i], -1, &st, NULL);
    if (rc != theirs)
      tap_bad(label, "code %d, SQLite %d", rc, theirs);
    else if (s.release)
      tap_bad(label, "a stream was given");
    else if (strcmp(said, sqlite3_errmsg(db)))
      tap_bad(label, "\"%s\", SQLite \"%s\"", said, sqlite3_errmsg(db));
    else
      tap_ok(label);
    sqlite3_finalize(st);
  }
  /* an error while running comes from the call or from the stream, never as a short result */
  struct ArrowArrayStream s;
  struct ArrowArray a;
  memset(&s, 0, sizeof s);
  memset(&a, 0, sizeof a);
  sqlite3_exec(db, "CREATE TABLE o(x INTEGER); INSERT INTO o VALUES(9223372036854775807),(1)", NULL,
               NULL, NULL);
  int rc = warplite_query(db, "SELECT sum(x) FROM o", &s);
  if (rc == SQLITE_OK) {
    rc = s.get_next(&s, &a);
    CHECK("arrow: overflow is told by the stream",
          rc != 0 && s.get_last_error(&s) && strstr(s.get_last_error(&s), "overflow"));
    if (a.release) a.release(&a);
    s.release(&s);
  } else {
    CHECK("arrow: overflow is told", strstr(warplite_errmsg(db), "overflow") != NULL);
  }
  static const struct {
    const char *sql;
    int n_cols;
  } explained[] = {{"EXPLAIN SELECT i FROM t", 8},
                   {"EXPLAIN QUERY PLAN SELECT i FROM t", 4},
                   {"EXPLAIN SELECT i FROM t GROUP BY i", 8},
                   {"EXPLAIN DELETE FROM t", 8},
                   {"EXPLAIN ANALYZE SELECT i FROM t", 4},
                   {"/* x */ explain analyze values(1)", 4}};
  for (size_t i = 0; i < sizeof explained / sizeof explained[0]; i++) {
    struct ArrowArrayStream e;
    struct ArrowArray rows;
    if (warplite_query(db, explained[i].sql, &e) != SQLITE_OK) {
      tap_bad(explained[i].sql, "%s", warplite_errmsg(db));
      continue;
    }
    bool good =
        e.get_next(&e, &rows) == 0 && rows.release && rows.n_children == explained[i].n_cols;
    if (rows.release) rows.release(&rows);
    e.release(&e);
    CHECK(explained[i].sql, good);
  }
  CHECK("arrow: closes after errors", sqlite3_close(db) == SQLITE_OK);
}

/* The reason after EXPLAIN QUERY PLAN is the one in the first line of the plan. */
static void check_explained_reason(void) {
  sqlite3 *db = open_db();
  struct ArrowArrayStream s;
  struct ArrowArray a = {0};
  const char *name = "arrow: the reason of an explained statement";
  if (warplite_query(db, "EXPLAIN QUERY PLAN SELECT i FROM t WHERE i > 5", &s) != SQLITE_OK) {
    tap_bad(name, "%s", warplite_errmsg(db));
  } else {
    if (s.get_next(&s, &a) == 0 && a.release && a.length > 0) {
      const int32_t *ends = a.children[3]->buffers[1];
      const char *line = a.children[3]->buffers[2];
      const char *reason = warplite_reason(db);
      size_t n = (size_t)(ends[1] - ends[0]);
      if (strcmp(engine, "sqlite") == 0 || (strlen(reason) == n && memcmp(reason, line, n) == 0))
        tap_ok(name);
      else
        tap_bad(name, "%s, but the plan says %.*s", reason, (int)n, line);
      a.release(&a);
    } else {
      tap_bad(name, "no rows");
    }
    s.release(&s);
  }
  sqlite3_close(db);
}

/* Writes after the call are not in the stream. */
static void check_snapshot(void) {
  sqlite3 *db = open_db();
  struct ArrowArrayStream s;
  struct ArrowArray a;
  int64_t n = 0;
  memset(&s, 0, sizeof s);
  if (warplite_query(db, "SELECT i FROM t", &s) == SQLITE_OK) {
    sqlite3_exec(db, "DELETE FROM t WHERE rowid>10", NULL, NULL, NULL);
    for (;;) {
      memset(&a, 0, sizeof a);
      if (s.get_next(&s, &a) != 0 || !a.release) break;
      n += a.length;
      a.release(&a);
    }
    s.release(&s);
  }
  if (n == 3000)
    tap_ok("arrow: a stream sees one snapshot");
  else
    tap_bad("arrow: a stream sees one snapshot", "%lld rows of 3000", (long long)n);
  check_query(db, "SELECT count(*) FROM t", true, false);
  CHECK("arrow: closes after a snapshot", sqlite3_close(db) == SQLITE_OK);
}

int main(int argc, char **argv) {
  static const char *const native[] = {
      "SELECT i, r, s, b, x FROM t",
      "SELECT * FROM t WHERE i>100000",
      "SELECT ir, ir+1, i+r FROM t",
      "SELECT n, nr, nt, nb, nn FROM t",
      "SELECT i AS \"a name\", 'lit', NULL, 1.5, x'00' FROM t LIMIT 5",
      "SELECT ir-i, ir*2, ir+0.5, -ir, ir+ir FROM t",
      "SELECT i FROM t LIMIT 10 OFFSET 2995",
      "SELECT i, s FROM t WHERE 0",
      "SELECT count(*), sum(i), max(s), total(r) FROM t",
      "SELECT ?1 IS NULL, ?1, i FROM t LIMIT 3",
      "SELECT x FROM big",
      "SELECT * FROM utf",
      "SELECT * FROM e",
      "SELECT i, i FROM t WHERE s='text 2'",
  };
  static const char *const filtered[] = {
      "SELECT x FROM t WHERE rowid%5=0", "SELECT x FROM t WHERE rowid%5<2",
      "SELECT x FROM t WHERE rowid%5=4", "SELECT min(x), max(x) FROM t",
      "SELECT ir FROM t WHERE rowid%2",  "SELECT x, s FROM t WHERE s IS NULL",
  };
  static const char *const other[] = {
      "SELECT i%3, count(*) FROM t GROUP BY 1",
      "SELECT s FROM t ORDER BY s LIMIT 20",
      "SELECT 1, 'x'",
      "VALUES(1,'a'),(2.5,NULL)",
      "SELECT upper(s) FROM t LIMIT 4",
  };
  static const char *const engines[] = {"sqlite", "cpu", "sim", "cuda"};
  (void)argv;
  for (int e = 0; e < (getenv("WL_TEST_CUDA") ? 4 : 3); e++) {
    engine = engines[e];
    sqlite3 *db = open_db();
    for (size_t i = 0; i < sizeof native / sizeof native[0]; i++)
      check_query(db, native[i], true, false);
    for (size_t i = 0; i < sizeof filtered / sizeof filtered[0]; i++)
      check_query(db, filtered[i], true, true);
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
      check_query(db, other[i], false, false);
    CHECK("arrow: the connection closes", sqlite3_close(db) == SQLITE_OK);
    check_outliving();
    check_errors();
    check_explained_reason();
    check_snapshot();
  }
  (void)argc;
  return tap_done();
}
