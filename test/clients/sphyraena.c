/*
** A client of include/sphyraena.h. The 13 published queries, with and without streaming, and values
** of all types: rows are compared with SQLite's, blocks with those of the CPU byte by byte, and the
** device that was chosen must have run them. Then staging, freshness, parameters, printing. On the
** CPU and the simulator, and with WL_TEST_CUDA on CUDA.
*/
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "../rng.h"
#include "staged.h"

/* ---- comparing */

/* Whether one value of a block is a cell of SQLite's rows. */
static bool value_same(const sphyraena_results *res, int64_t row, int col, const rows *want,
                       const cell *x, bool loose) {
  const void *at = sphyraena_value(res, row, col);
  const sphyraena_bytes *bytes = at;
  static const char zeros[16];
  int type = sphyraena_type(res, row, col), all = res->types[col];
  if ((uintptr_t)at % 8 || type != x->type) return false;
  if (type != SPHYRAENA_NULL && all != type && all != SPHYRAENA_MIXED) return false;
  if (at != res->r + (size_t)row * res->stride + res->offsets[col]) return false;
  switch (type) {
  case SPHYRAENA_NULL: return !memcmp(at, zeros, 8);
  case SPHYRAENA_INTEGER: return *(const int64_t *)at == x->u.i;
  case SPHYRAENA_REAL:
    if (loose) return fabs(*(const double *)at - x->u.r) <= 1e-12 * fabs(x->u.r);
    return !memcmp(at, &x->u.r, 8);
  default:
    return bytes->size == x->n && bytes->at >= 0 && (size_t)(bytes->at + bytes->size) < res->size &&
           !memcmp(sphyraena_text(res, row, col), want->bytes + x->u.off, (size_t)x->n) &&
           sphyraena_text(res, row, col)[x->n] == 0;
  }
}

/* The types of the columns are those that occur. */
static bool types_right(const sphyraena_results *res) {
  for (int k = 0; k < res->columns; k++) {
    int seen = SPHYRAENA_NULL;
    for (int64_t i = 0; i < res->rows; i++) {
      int t = sphyraena_type(res, i, k);
      if (t != SPHYRAENA_NULL) seen = seen == SPHYRAENA_NULL || seen == t ? t : SPHYRAENA_MIXED;
    }
    if (res->types[k] != seen) return false;
  }
  return true;
}

/* Checks the results of the latest SELECT. */
static bool same_as_sqlite(sphyraena *s, const char *name, const char *sql, bool loose) {
  const sphyraena_results *res = s->results_cpu;
  rows_query(&r, s->db, sqlite3_prepare_v2, sql);
  if (!res || r.rc != SQLITE_DONE) return tap_bad(name, "no results: %s %s", s->message, r.err);
  if ((size_t)res->rows != r.n_rows || res->columns != r.n_col)
    return tap_bad(name, "%lld rows of %d columns, not %zu of %d", (long long)res->rows,
                   res->columns, r.n_rows, r.n_col);
  for (int64_t i = 0; i < res->rows; i++)
    for (int k = 0; k < res->columns; k++)
      if (!value_same(res, i, k, &r, &r.cells[(size_t)i * (size_t)r.n_col + (size_t)k], loose))
        return tap_bad(name, "row %lld, column %d differs", (long long)i, k);
  if (!types_right(res)) return tap_bad(name, "types[] are not those of the values");
  char names[4096] = "";
  size_t n = 0;
  for (int k = 0; k < res->columns; k++)
    n += (size_t)snprintf(names + n, sizeof names - n, "%s\x1f", res->names[k]);
  if (strcmp(names, r.names)) return tap_bad(name, "names %s", names);
  return true;
}

/* ---- the published queries */

static const char *const published[] = {
    "SELECT id, uniformi, normali5 FROM test WHERE uniformi > 60 AND normali5 < 0",
    "SELECT id, uniformf, normalf5 FROM test WHERE uniformf > 60 AND normalf5 < 0",
    "SELECT id, uniformi, normali5 FROM test WHERE uniformi > -60 AND normali5 < 5",
    "SELECT id, uniformf, normalf5 FROM test WHERE uniformf > -60 AND normalf5 < 5",
    "SELECT id, normali5, normali20 FROM test WHERE (normali20 + 40) > (uniformi - 10)",
    "SELECT id, normalf5, normalf20 FROM test WHERE (normalf20 + 40) > (uniformf - 10)",
    "SELECT id, normali5, normali20 FROM test WHERE normali5 * normali20 BETWEEN -5 AND 5",
    "SELECT id, normalf5, normalf20 FROM test WHERE normalf5 * normalf20 BETWEEN -5 AND 5",
    "SELECT id, uniformi, normali5, normali20 FROM test WHERE NOT uniformi OR NOT normali5 OR NOT "
    "normali20",
    "SELECT id, uniformf, normalf5, normalf20 FROM test WHERE NOT uniformf OR NOT normalf5 OR NOT "
    "normalf20",
    "SELECT SUM(normalf20) FROM test",
    "SELECT AVG(uniformi) FROM test WHERE uniformi > 0",
    "SELECT MAX(normali5), MIN(normali5) FROM test",
};
enum { N_PUBLISHED = sizeof published / sizeof *published, N_TEST = 70000 };

static double uniform(rng *g) {
  return (double)(rng_next(g) >> 11) / 9007199254740992.0;
}
static double normal(rng *g, double sigma) {
  double sum = -6;
  for (int i = 0; i < 12; i++) sum += uniform(g);
  return sigma * sum;
}

static bool make_test(sqlite3 *db) {
  sqlite3_stmt *s = NULL;
  rng g = {2010};
  if (!run(db, "CREATE TABLE test(id INTEGER PRIMARY KEY, uniformi INTEGER, normali5 INTEGER, "
               "normali20 INTEGER, uniformf REAL, normalf5 REAL, normalf20 REAL); BEGIN") ||
      sqlite3_prepare_v2(db, "INSERT INTO test VALUES(?,?,?,?,?,?,?)", -1, &s, NULL))
    return false;
  for (int i = 1; i <= N_TEST; i++) {
    sqlite3_bind_int(s, 1, i);
    sqlite3_bind_int(s, 2, (int)(uniform(&g) * 199) - 99);
    sqlite3_bind_int(s, 3, (int)normal(&g, 5));
    sqlite3_bind_int(s, 4, (int)normal(&g, 20));
    sqlite3_bind_double(s, 5, (float)(uniform(&g) * 198 - 99));
    sqlite3_bind_double(s, 6, i % 100 ? (float)normal(&g, 5) : 0);
    sqlite3_bind_double(s, 7, (float)normal(&g, 20));
    sqlite3_step(s);
    sqlite3_reset(s);
  }
  sqlite3_finalize(s);
  return run(db, "COMMIT");
}

/* Blocks of the CPU, to compare those of the other devices with. */
typedef struct block {
  size_t size, stride;
  char *r;
} block;

static bool same_block(block *b, const sphyraena_results *res) {
  if (b->r)
    return b->size == res->size && b->stride == res->stride && !memcmp(b->r, res->r, b->size);
  *b = (block){res->size, res->stride, must(malloc(res->size + 1))};
  memcpy(b->r, res->r, res->size);
  return true;
}

static void run_published(const char *device) {
  static block blocks[N_PUBLISHED];
  sqlite3 *db;
  sphyraena s;
  char name[200];
  sqlite3_open(":memory:", &db);
  bool ready = make_test(db) && sphyraena_init(&s, db, 0, 0, 1) == SPHYRAENA_SUCCESS &&
               sphyraena_set_device(&s, device) == SPHYRAENA_SUCCESS &&
               sphyraena_prepare_data(&s, "SELECT * FROM test") == SPHYRAENA_SUCCESS &&
               sphyraena_transfer_data(&s) == SPHYRAENA_SUCCESS;
  if (!ready) {
    tap_bad(device, "%s", sphyraena_errmsg(&s));
    return;
  }
  bool is_cpu = !strcmp(device, "cpu");
  snprintf(name, sizeof name, "[%s] all columns are staged", device);
  CHECK(name, s.data_cpu && s.data_cpu->tables == 1 && s.data_cpu->columns == 7 &&
                  s.data_cpu->size > N_TEST * 15 && s.data_cpu->size < N_TEST * 30 &&
                  number(db, "SELECT count(*) FROM warplite_cache WHERE rows = 70000") == 7);
  snprintf(name, sizeof name, "[%s] and on the device", device);
  if (is_cpu)
    CHECK(name, !s.data_gpu);
  else
    CHECK(name, s.data_gpu && s.data_gpu->columns == 7 &&
                    s.data_gpu->size >= s.data_cpu->size / 2 &&
                    number(db, "SELECT count(*) FROM warplite_cache WHERE on_device") == 7);
  for (int streaming = 0; streaming < 2; streaming++)
    for (int i = 0; i < N_PUBLISHED; i++) {
      snprintf(name, sizeof name, "[%s%s] query %d", device, streaming ? ", streaming" : "", i + 1);
      if (streaming) s.stream_width = 1 + i % 9, s.threads_per_block = 16 << i % 7;
      if (!fetch(&s, published[i], streaming)) {
        tap_bad(name, "%s", sphyraena_errmsg(&s));
        continue;
      }
      if (!ran_on(&s, device)) {
        tap_bad(name, "%s", warplite_reason(db));
        continue;
      }
      if (!is_cpu && streaming && !strstr(warplite_reason(db), "stream")) {
        tap_bad(name, "did not stream: %s", warplite_reason(db));
        continue;
      }
      if (!same_as_sqlite(&s, name, published[i], i == 10 || i == 11)) continue;
      if (same_block(&blocks[i], s.results_cpu))
        tap_ok(name);
      else
        tap_bad(name, "the block differs from that of the CPU");
    }
  if (!is_cpu) {
    snprintf(name, sizeof name, "[%s] what was transferred was used there", device);
    CHECK(name, number(db, "SELECT min(device_hits) > 0 FROM warplite_cache") == 1);
  }
  snprintf(name, sizeof name, "[%s] cleanup drops the columns", device);
  CHECK(name, sphyraena_cleanup(&s) == SPHYRAENA_SUCCESS &&
                  number(db, "SELECT count(*) FROM warplite_cache") == 0);
  snprintf(name, sizeof name, "[%s] closes", device);
  CHECK(name, sqlite3_close(db) == SQLITE_OK);
}

/* ---- values of all types */

static const char *const value_queries[] = {
    "SELECT * FROM v",
    "SELECT id, t FROM v WHERE id <= 65536",
    "SELECT id FROM v WHERE id = 7",
    "SELECT i, f, t, b, m, n FROM v WHERE id < 6",
    "SELECT * FROM v WHERE id < 0",
    "SELECT n FROM v WHERE n IS NULL",
    "SELECT m FROM v WHERE typeof(m) IN ('integer', 'real')", /* 1 and 1.0 stay different */
    "SELECT m, id FROM v WHERE typeof(m) = 'blob'",
    "SELECT CASE WHEN id % 2 THEN id ELSE id + 0.0 END AS x FROM v WHERE id < 100",
    "SELECT t, count(*), max(f), min(i) FROM v GROUP BY t ORDER BY t",
    "SELECT v.id, w.id, w.name FROM v JOIN w ON w.name = v.t WHERE v.id < 500 ORDER BY v.id",
    "SELECT upper(t) || id FROM v WHERE id % 1000 = 1 ORDER BY f DESC",
    "SELECT (SELECT max(id) FROM w) AS a, NULL AS b, 'x' AS c, x'01' AS d",
    "SELECT id, row_number() OVER (ORDER BY id DESC) FROM v WHERE id < 50", /* SQLite runs it */
    "SELECT 1 AS a, 2 AS a, 3",
    "SELECT id FROM v ORDER BY id DESC LIMIT 5 OFFSET 65530",
};
enum { N_VALUES = sizeof value_queries / sizeof *value_queries };

static void run_values(const char *device) {
  static block blocks[N_VALUES];
  sqlite3 *db;
  sphyraena s;
  char name[200];
  sqlite3_open(":memory:", &db);
  bool ready = run(db, values) && !sphyraena_init(&s, db, 64 << 20, 64 << 20, 0) &&
               !sphyraena_set_device(&s, device) &&
               !sphyraena_prepare_data(
                   &s, "SELECT v.*, w.* FROM v, w WHERE v.id > (SELECT min(id) FROM w)") &&
               !sphyraena_transfer_data(&s);
  if (!ready) tap_bad(device, "%s", sphyraena_errmsg(&s));
  snprintf(name, sizeof name, "[%s] a join stages the columns of its tables", device);
  CHECK(name, s.data_cpu && s.data_cpu->tables == 2 && s.data_cpu->columns == 9);
  for (int i = 0; i < N_VALUES && ready; i++) {
    snprintf(name, sizeof name, "[%s] %.150s", device, value_queries[i]);
    if (!fetch(&s, value_queries[i], 0)) {
      tap_bad(name, "%s", sphyraena_errmsg(&s));
      continue;
    }
    if (!same_as_sqlite(&s, name, value_queries[i], false)) continue;
    if (same_block(&blocks[i], s.results_cpu))
      tap_ok(name);
    else
      tap_bad(name, "the block differs from that of the CPU");
  }
  snprintf(name, sizeof name, "[%s] the mode of transfer does not show", device);
  bool same = true;
  for (int i = 0; i < N_VALUES && ready; i++)
    same &= fetch(&s, value_queries[i], 1) && same_block(&blocks[i], s.results_cpu);
  CHECK(name, same);
  snprintf(name, sizeof name, "[%s] a SELECT that only SQLite can run", device);
  CHECK(name,
        !sphyraena_prepare_data(&s, "WITH RECURSIVE c(x) AS (SELECT 5 UNION SELECT x - 1 FROM"
                                    " c WHERE x) SELECT rank() OVER (ORDER BY name), x FROM w,"
                                    " c ON w.id = x") &&
            !sphyraena_transfer_data(&s) && s.data_cpu->tables == 1 && s.data_cpu->columns == 2 &&
            fetch(&s, "SELECT name FROM w", 0) && ran_on(&s, device));
  /* what is kept under a name can be staged too */
  snprintf(name, sizeof name, "[%s] the rows of a SELECT under a name", device);
  run(db, "SELECT warplite_load('joined', 'SELECT v.id, w.name FROM v JOIN w ON w.name = v.t')");
  bool staged = !sphyraena_prepare_data(&s, "SELECT * FROM joined") && !sphyraena_transfer_data(&s);
  const char *sql = "SELECT name, count(*) FROM joined WHERE id > 100 GROUP BY name ORDER BY name";
  if (!staged || !fetch(&s, sql, 0))
    tap_bad(name, "%s", sphyraena_errmsg(&s));
  else if (!ran_on(&s, device))
    tap_bad(name, "%s", warplite_reason(db));
  else if (same_as_sqlite(&s, name, sql, false))
    tap_ok(name);
  sphyraena_cleanup(&s);
  snprintf(name, sizeof name, "[%s] closes again", device);
  CHECK(name, sqlite3_close(db) == SQLITE_OK);
}

/* ---- the published example */

static void example(void) {
  sqlite3 *db;
  sphyraena s;
  sqlite3_open("example.db", &db);
  run(db, "CREATE TABLE test_table(column1 INTEGER, column2 INTEGER);"
          "WITH RECURSIVE c(x) AS (VALUES(0) UNION ALL SELECT x+1 FROM c WHERE x < 999)"
          " INSERT INTO test_table SELECT x, (x * 7) % 1000 FROM c;");
  CHECK("example: open, stage, select, fetch",
        sphyraena_init(&s, db, 10 << 20, 10 << 20, 1) == SPHYRAENA_SUCCESS &&
            sphyraena_prepare_data(&s, "SELECT * FROM test_table") == SPHYRAENA_SUCCESS &&
            sphyraena_transfer_data(&s) == SPHYRAENA_SUCCESS &&
            sphyraena_select(&s, "SELECT column1, column2 FROM test_table WHERE column1 < column2",
                             0) == SPHYRAENA_SUCCESS &&
            !s.results_cpu && s.results_gpu &&
            sphyraena_transfer_results(&s) == SPHYRAENA_SUCCESS && s.results_cpu && !s.results_gpu);
  int64_t want =
      number(db, "SELECT column2 FROM test_table WHERE column1 < column2 LIMIT 1 OFFSET 10");
  const sphyraena_results *res = s.results_cpu;
  int64_t got;
  memcpy(&got, res->r + 10 * res->stride + res->offsets[1], sizeof got);
  CHECK("example: row 10, column 1", got == want && want > 0);
  CHECK("example: fetching again is harmless",
        sphyraena_transfer_results(&s) == SPHYRAENA_SUCCESS && s.results_cpu == res);
  CHECK("sqlite3_close() waits for the cleanup", sqlite3_close(db) == SQLITE_BUSY);
  CHECK("example: cleanup", sphyraena_cleanup(&s) == SPHYRAENA_SUCCESS &&
                                sphyraena_cleanup(&s) == SPHYRAENA_SUCCESS && !s.db &&
                                !s.results_cpu && !s.data_cpu);
  CHECK("example: closes", sqlite3_close(db) == SQLITE_OK);
  unlink("example.db");
}

/* ---- freshness, parameters, settings, printing */

static void several(void) {
  sqlite3 *db;
  sphyraena s, other;
  sqlite3_open(":memory:", &db);
  run(db, values);
  sphyraena_init(&s, db, 0, 0, 1);
  sphyraena_init(&other, db, 0, 0, 1);
  sphyraena_set_device(&s, "sim");
  sphyraena_set_device(&other, "cpu");
  sphyraena_prepare_data(&s, "SELECT * FROM w");
  sphyraena_transfer_data(&s);
  sphyraena_prepare_data(&other, "SELECT id FROM w");
  run(db, "INSERT INTO w VALUES(300, 'new'); UPDATE w SET name = 'changed' WHERE id = 5");
  const char *sql = "SELECT * FROM w WHERE id IN (5, 300)";
  CHECK("a changed table is read again", fetch(&s, sql, 0) && s.results_cpu->rows == 2 &&
                                             same_as_sqlite(&s, "a changed table", sql, false) &&
                                             ran_on(&s, "sim"));
  run(db, "BEGIN; DELETE FROM w WHERE id = 300");
  CHECK("inside a transaction that has written", fetch(&s, sql, 0) && s.results_cpu->rows == 1);
  run(db, "ROLLBACK");
  run(db, "ALTER TABLE w ADD COLUMN more DEFAULT 7");
  CHECK("a changed schema", fetch(&s, sql, 0) && s.results_cpu->columns == 3 &&
                                same_as_sqlite(&s, "a changed schema", sql, false));
  CHECK("another sphyraena on the connection",
        fetch(&other, "SELECT count(*) FROM w", 0) && ran_on(&other, "cpu") &&
            *(const int64_t *)sphyraena_value(other.results_cpu, 0, 0) == 301 &&
            s.results_cpu->columns == 3);
  CHECK("columns that were not staged",
        fetch(&s, "SELECT sum(i % 10) FROM v", 1) && s.results_cpu->rows == 1 && ran_on(&s, "sim"));

  CHECK("parameters are NULL",
        fetch(&s, "SELECT id FROM w WHERE id > ?1 AND name <> :n", 0) && s.results_cpu->rows == 0);
  sqlite3_bind_int(s.stmt_cpu, 1, 290);
  sqlite3_bind_text(s.stmt_cpu, 2, "text 295", -1, SQLITE_STATIC);
  CHECK("until they are bound", !sphyraena_vm(&s) && !s.results_cpu &&
                                    !sphyraena_transfer_results(&s) && s.results_cpu->rows == 9);
  sqlite3_bind_int(s.stmt_cpu, 1, 298);
  CHECK("vm_streaming", !sphyraena_vm_streaming(&s) && !sphyraena_transfer_results(&s) &&
                            s.results_cpu->rows == 2 && ran_on(&s, "sim"));

  run(db, "SELECT warplite_set('engine', 'sqlite')");
  fetch(&s, "SELECT count(*) FROM v", 0);
  bool chosen = ran_on(&s, "sim");
  rows_query(&r, db, warplite_prepare, "SELECT count(*) FROM v");
  CHECK("the connection keeps its own settings",
        chosen && !strcmp(warplite_reason(db), "sqlite: the setting engine=sqlite"));
  CHECK("auto follows them",
        !sphyraena_set_device(&s, "auto") && fetch(&s, sql, 0) &&
            !strcmp(warplite_reason(db), "sqlite: the setting engine=sqlite") &&
            same_as_sqlite(&s, "auto", sql, false) && !sphyraena_transfer_data(&s) && !s.data_gpu);
  run(db, "SELECT warplite_set('engine', 'gpu'), warplite_set('device', 'sim'), "
          "warplite_set('route', 'always')");
  CHECK("auto follows them to the device",
        fetch(&s, sql, 0) && ran_on(&s, "sim") && !sphyraena_transfer_data(&s) && s.data_gpu);
  CHECK("another device has no data", !sphyraena_set_device(&s, "cpu") && !s.data_gpu);
  CHECK("cleans up both", !sphyraena_cleanup(&s) && !sphyraena_cleanup(&other));
  CHECK("several: closes", sqlite3_close(db) == SQLITE_OK);
}

/* What is printed to stdout. */
static const char *printed(sphyraena *s, int n) {
  static char text[4096];
  fflush(stdout);
  int out = dup(1), file = open("printed", O_RDWR | O_CREAT | O_TRUNC, 0600);
  dup2(file, 1);
  sphyraena_print_results(s, n);
  fflush(stdout);
  dup2(out, 1);
  close(out);
  ssize_t k = pread(file, text, sizeof text - 1, 0);
  text[k > 0 ? k : 0] = 0;
  close(file);
  unlink("printed");
  return text;
}

static void printing(void) {
  sqlite3 *db;
  sphyraena s;
  sqlite3_open(":memory:", &db);
  run(db, values);
  sphyraena_init(&s, db, 0, 0, 1);
  sphyraena_prepare_data(&s, "SELECT * FROM v");
  CHECK("prints why there are no results", strstr(printed(&s, 3), "sphyraena_select()"));
  sphyraena_select(&s, "SELECT id, f AS \"a real\", t, b, n FROM v WHERE id IN (1, 4, 6)", 0);
  CHECK("prints some rows", !strcmp(printed(&s, 1), "id|a real|t|b|n\n"
                                                    "1|0.333333333333333|text 1|x'31'|1\n"));
  CHECK("prints all rows", !strcmp(printed(&s, -1), "id|a real|t|b|n\n"
                                                    "1|0.333333333333333|text 1|x'31'|1\n"
                                                    "4|NULL|NULL|NULL|4\n"
                                                    "6|2.0|text 6|x'36'|NULL\n"));
  CHECK("prints names alone", !strcmp(printed(&s, 0), "id|a real|t|b|n\n"));
  CHECK("prints nothing of NULL", strstr(printed(NULL, 1), "no sphyraena"));
  sphyraena_cleanup(&s);
  sqlite3_close(db);
}

int main(void) {
  const char *devices[] = {"cpu", "sim", getenv("WL_TEST_CUDA") ? "cuda" : NULL};
  for (int i = 0; i < 3 && devices[i]; i++) {
    run_published(devices[i]);
    run_values(devices[i]);
  }
  example();
  several();
  printing();
  rows_free(&r);
  return tap_done();
}
