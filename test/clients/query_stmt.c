/*
** warplite_query_stmt(): the rows of a prepared statement as an Arrow stream, with the values that
** are bound to its parameters. The oracle is the statement itself, stepped by SQLite.
**
** Columns of the texts here are integers, reals or text, each of one type, so that reading the
** batches stays simple; test/clients/arrow.c looks at the formats.
*/
#include <string.h>

#include "../engines.h"
#include "../rows.h"
#include "../tap.h"

/* A value of a batch as text, the way SQLite writes it. */
static void cell_of(const struct ArrowSchema *f, const struct ArrowArray *a, int64_t row, char *out,
                    int n) {
  const uint8_t *valid = a->n_buffers ? a->buffers[0] : NULL;
  if (!a->n_buffers || (valid && !(valid[row >> 3] >> (row & 7) & 1))) {
    sqlite3_snprintf(n, out, "NULL");
  } else if (*f->format == 'l') {
    sqlite3_snprintf(n, out, "%lld", ((const int64_t *)a->buffers[1])[row]);
  } else if (*f->format == 'g') {
    sqlite3_snprintf(n, out, "%!.15g", ((const double *)a->buffers[1])[row]);
  } else {
    const int32_t *at = a->buffers[1];
    sqlite3_snprintf(n, out, "%.*s", at[row + 1] - at[row], (const char *)a->buffers[2] + at[row]);
  }
}

/* All rows of a stream as one text. */
static char *text_of_stream(struct ArrowArrayStream *s) {
  struct ArrowSchema f;
  struct ArrowArray a;
  sqlite3_str *out = sqlite3_str_new(NULL);
  if (s->get_schema(s, &f)) return sqlite3_str_finish(out);
  for (int64_t k = 0; k < f.n_children; k++) sqlite3_str_appendf(out, "%s;", f.children[k]->name);
  while (s->get_next(s, &a) == 0 && a.release) {
    for (int64_t row = 0; row < a.length; row++) {
      sqlite3_str_appendall(out, "|");
      for (int64_t k = 0; k < a.n_children; k++) {
        char cell[64];
        cell_of(f.children[k], a.children[k], row, cell, sizeof cell);
        sqlite3_str_appendf(out, "%s,", cell);
      }
    }
    a.release(&a);
  }
  f.release(&f);
  return sqlite3_str_finish(out);
}

/* The same of a statement, stepped. */
static char *text_of_steps(sqlite3_stmt *s) {
  sqlite3_str *out = sqlite3_str_new(NULL);
  for (int k = 0; k < sqlite3_column_count(s); k++)
    sqlite3_str_appendf(out, "%s;", sqlite3_column_name(s, k));
  while (sqlite3_step(s) == SQLITE_ROW) {
    sqlite3_str_appendall(out, "|");
    for (int k = 0; k < sqlite3_column_count(s); k++) {
      const char *v = (const char *)sqlite3_column_text(s, k);
      sqlite3_str_appendf(out, "%s,", v ? v : "NULL");
    }
  }
  sqlite3_reset(s);
  return sqlite3_str_finish(out);
}

/* Binds number i of a list of values. */
static void bind_one(sqlite3_stmt *s, int param, int i) {
  switch (i % 6) {
  case 0: sqlite3_bind_int(s, param, 7); break;
  case 1: sqlite3_bind_double(s, param, 0.1 + 0.2); break; /* expanded_sql would lose digits */
  case 2: sqlite3_bind_text(s, param, "it's 'w1'", -1, SQLITE_STATIC); break;
  case 3: sqlite3_bind_null(s, param); break;
  case 4: sqlite3_bind_int64(s, param, -9000000000000000000); break;
  default: sqlite3_bind_text(s, param, "w1", -1, SQLITE_STATIC);
  }
}

static const char *const texts[] = {
    "SELECT id, s FROM t WHERE x > ?1 ORDER BY id",
    "SELECT id, x FROM t WHERE s = ?2 AND x <> ?1 ORDER BY id",
    "SELECT count(*), sum(x) FROM t WHERE x <= :most",
    "SELECT x, count(*) FROM t WHERE s <> $word AND id > @least GROUP BY x ORDER BY x",
    "SELECT id FROM t WHERE x = ? OR id = ? OR s = ? ORDER BY id",
    "SELECT id FROM t WHERE x = ?5 ORDER BY id",
    "SELECT t.id, u.z FROM t JOIN u ON u.y = t.x WHERE u.z > ?1 ORDER BY t.id",
    "SELECT id, row_number() OVER (ORDER BY id) FROM t WHERE x > ?1 ORDER BY id",
    "INSERT INTO log(what) VALUES(?1) RETURNING typeof(what)",
};

static void check_texts(sqlite3 *db, const char *engine, prepare_fn *prepare, const char *how) {
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    for (int v = 0; v < 6; v++) {
      sqlite3_stmt *ours = NULL, *theirs = NULL;
      struct ArrowArrayStream stream;
      prepare(db, texts[i], -1, &ours, NULL);
      sqlite3_prepare_v2(db, texts[i], -1, &theirs, NULL);
      for (int k = 1; k <= sqlite3_bind_parameter_count(theirs); k++) {
        bind_one(ours, k, v + k);
        bind_one(theirs, k, v + k);
      }
      char *name = sqlite3_mprintf("%s [%s], values %d: %s", how, engine, v, texts[i]);
      int rc = warplite_query_stmt(ours, &stream);
      char *got =
          rc ? sqlite3_mprintf("error %d %s", rc, warplite_errmsg(db)) : text_of_stream(&stream);
      if (!rc) stream.release(&stream);
      bool native = strncmp(warplite_reason(db), "sqlite", 6) != 0;
      char *want = text_of_steps(theirs);
      if (strcmp(got, want))
        tap_bad(name, "%s, SQLite %s (%s)", got, want, warplite_reason(db));
      else if (native != (i < 7))
        tap_bad(name, "it ran in %s", warplite_reason(db));
      else
        tap_ok(name);
      /* the statement still has its values */
      char *again = text_of_steps(ours);
      if (i < 8) CHECK("the bindings stay", strcmp(again, want) == 0);
      sqlite3_free(again);
      sqlite3_free(got);
      sqlite3_free(want);
      sqlite3_free(name);
      sqlite3_finalize(ours);
      sqlite3_finalize(theirs);
    }
}

static void check_misuse(sqlite3 *db) {
  struct ArrowArrayStream stream;
  sqlite3_stmt *s = NULL;
  CHECK("no statement", warplite_query_stmt(NULL, &stream) == SQLITE_MISUSE);
  warplite_prepare(db, "SELECT id FROM t WHERE x > ?1", -1, &s, NULL);
  CHECK("no stream", warplite_query_stmt(s, NULL) == SQLITE_MISUSE);
  sqlite3_bind_int(s, 1, 0);
  sqlite3_step(s);
  CHECK("a running statement", warplite_query_stmt(s, &stream) == SQLITE_MISUSE);
  sqlite3_reset(s);
  CHECK("after a reset", warplite_query_stmt(s, &stream) == SQLITE_OK);
  sqlite3_finalize(s); /* the stream does not need it */
  char *rows = text_of_stream(&stream);
  CHECK("rows after finalize", rows && strlen(rows) > 20);
  stream.release(&stream);
  sqlite3_free(rows);
  sqlite3_prepare_v2(db, "DELETE FROM log", -1, &s, NULL);
  CHECK("a statement without rows", warplite_query_stmt(s, &stream) == SQLITE_ERROR);
  sqlite3_finalize(s);
}

int main(void) {
  static const char *const engines[] = {"cpu", "sim"};
  for (int e = 0; e < 2; e++) {
    sqlite3 *db = NULL;
    sqlite3_open(":memory:", &db);
    sqlite3_exec(db,
                 "CREATE TABLE t(id INTEGER PRIMARY KEY, x INT, s TEXT);"
                 "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 300)"
                 " INSERT INTO t SELECT i, i % 11, 'w' || (i % 4) FROM c;"
                 "CREATE TABLE u(y INT, z INT); INSERT INTO u VALUES(1,1),(7,2),(9,3);"
                 "CREATE TABLE log(what);",
                 NULL, NULL, NULL);
    if (!use_engine(db, engines[e])) return tap_bad("engine", "%s", sqlite3_errmsg(db)), 1;
    check_texts(db, engines[e], warplite_prepare, "warplite_prepare");
    check_texts(db, engines[e], sqlite3_prepare_v2, "sqlite3_prepare_v2");
    check_misuse(db);
    CHECK("closes", sqlite3_close(db) == SQLITE_OK);
  }
  return tap_done();
}
