/*
** Bulk statements: a table of the Sphyraena data in a file, with SQLite's default journal.
**
** 1. Both sides begin with the same file, which holds the data in an ordinary table `test`, and
**    run the same statements in the same order, each inside BEGIN … COMMIT. Every run begins with
**    that file again; the sides take turns.
** 2. What changes() says and sums over the whole table are compared after every statement, outside
**    the clock.
** 3. The scans are the first statement of a new connection: nothing of the table is in memory but
**    in the operating system's cache. The connection's opening is not in the time.
** 4. A file's size is that after DROP TABLE test and VACUUM, before any UPDATE.
*/
#include "tablets.h"
#include <sys/stat.h>

enum { ORDINARY, TABLET, N_KINDS };

#define COLUMNS                                                                                    \
  "id INTEGER PRIMARY KEY, uniformi INTEGER, normali5 INTEGER, normali20 INTEGER, uniformf REAL, " \
  "normalf5 REAL, normalf20 REAL"

static const struct kind {
  const char *name, *create;
  prepare_call *prepare;
} kinds[N_KINDS] = {
    {"ordinary", "CREATE TABLE t(" COLUMNS ")", sqlite3_prepare_v2},
    {"tablet", "CREATE VIRTUAL TABLE t USING tablet(" COLUMNS ")", warplite_prepare},
};

static const struct step {
  const char *name, *sql;
  bool scan;  /* a query, on a new connection */
  double bar; /* times faster that it must be; 0: for information */
} steps[] = {
    {"INSERT SELECT", "INSERT INTO t SELECT * FROM test", false, 3},
    {"first scan", "SELECT sum(normalf20) FROM t", true, 20},
    {"first scan, all columns",
     "SELECT count(*), sum(id), sum(uniformi), sum(normali5), max(normali20), avg(uniformf), "
     "min(normalf5), sum(normalf20) FROM t",
     true, 0},
    {"UPDATE 1 %", "UPDATE t SET normali5 = normali5 + 1 WHERE uniformi BETWEEN 10 AND 11", false,
     10},
    {"DELETE 1 %", "DELETE FROM t WHERE uniformi BETWEEN 20 AND 21", false, 10},
    {"UPDATE 50 %", "UPDATE t SET normalf5 = normalf5 * 2 WHERE uniformi > 0", false, 4},
    {"DELETE 50 %", "DELETE FROM t WHERE uniformi > 0", false, 3},
};
enum { N_STEPS = sizeof steps / sizeof *steps };

struct times {
  double statement[N_STEPS][N_KINDS][MAX_RUNS], whole[N_STEPS][N_KINDS][MAX_RUNS];
  sqlite3_int64 changes[N_STEPS][N_KINDS];
  char sums[N_STEPS][N_KINDS][512];
  double bytes[N_KINDS];
};

/* Sums that come out the same in whatever order they are made. */
static const char sums_sql[] =
    "SELECT count(*), sum(id), sum(uniformi * id), sum(normali5), sum(normali20 + id % 1000), "
    "sum(CAST(uniformf * 1000 AS INTEGER)), sum(CAST(normalf5 * 1000 AS INTEGER)), "
    "sum(CAST(normalf20 * 1000 AS INTEGER)) FROM t";

static bool make_base(struct tablets *b, const char *path) {
  sqlite3 *db = NULL;
  sqlite3_stmt *st = NULL;
  unlink(path);
  bool ok =
      sqlite3_open(path, &db) == SQLITE_OK &&
      sqlite3_exec(db,
                   "PRAGMA journal_mode = off; PRAGMA synchronous = off; "
                   "CREATE TABLE test(" COLUMNS "); BEGIN",
                   NULL, NULL, NULL) == SQLITE_OK &&
      sqlite3_prepare_v2(db, "INSERT INTO test VALUES(?,?,?,?,?,?,?)", -1, &st, NULL) == SQLITE_OK;
  struct generator g = generator_start(&suites[0]);
  for (int64_t n = 0; ok && n < b->n_rows; n++) {
    struct row r;
    generator_row(&g, &r);
    sqlite3_bind_int64(st, 1, r.id);
    for (int k = 0; k < 3; k++) sqlite3_bind_int(st, 2 + k, r.i[k]);
    for (int k = 0; k < 3; k++) sqlite3_bind_double(st, 5 + k, r.f[k]);
    ok = sqlite3_step(st) == SQLITE_DONE && sqlite3_reset(st) == SQLITE_OK;
  }
  sqlite3_finalize(st);
  ok = ok && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
  if (!ok) tablets_fail(b, "making the data", sqlite3_errmsg(db));
  sqlite3_close(db);
  return ok;
}

static bool copy_file(struct tablets *b, const char *from, const char *to) {
  static char buffer[1 << 20];
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  size_t n;
  bool ok = in && out;
  while (ok && (n = fread(buffer, 1, sizeof buffer, in)) > 0) ok = fwrite(buffer, 1, n, out) == n;
  /* what is not written yet would be written inside somebody's time */
  ok = ok && fflush(out) == 0 && fsync(fileno(out)) == 0;
  if (in) fclose(in);
  if (out && fclose(out) != 0) ok = false;
  if (!ok) tablets_fail(b, to, strerror(errno));
  return ok;
}

static bool open_side(struct tablets *b, const char *path, int kind, sqlite3 **db) {
  bool ok = sqlite3_open(path, db) == SQLITE_OK;
  if (ok && kind == TABLET) ok = warplite_enable(*db) == SQLITE_OK;
  if (!ok) tablets_fail(b, path, sqlite3_errmsg(*db));
  return ok;
}

static double file_bytes(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 ? (double)st.st_size : 0;
}

/* The size of the table alone, from a copy of the file. */
static bool measure_size(struct tablets *b, const char *path, int kind, double *out) {
  char copy[600];
  sqlite3 *db = NULL;
  snprintf(copy, sizeof copy, "%s.size", path);
  bool ok = copy_file(b, path, copy) && open_side(b, copy, kind, &db) &&
            tablets_run(b, db, sqlite3_prepare_v2, "DROP TABLE test") &&
            tablets_run(b, db, sqlite3_prepare_v2, "VACUUM");
  sqlite3_close(db);
  *out = file_bytes(copy);
  unlink(copy);
  return ok;
}

static bool run_step(struct tablets *b, sqlite3 *db, int s, int kind, int run, struct times *t) {
  const struct kind *k = &kinds[kind];
  double start = now_ms();
  if (steps[s].scan) {
    bool ok = tablets_ask(b, db, k->prepare, steps[s].sql, t->sums[s][kind], 512);
    t->statement[s][kind][run] = t->whole[s][kind][run] = now_ms() - start;
    return ok;
  }
  if (!tablets_run(b, db, sqlite3_prepare_v2, "BEGIN")) return false;
  double begun = now_ms();
  if (!tablets_run(b, db, k->prepare, steps[s].sql)) return false;
  double done = now_ms();
  t->changes[s][kind] = sqlite3_changes64(db);
  bool ok = tablets_run(b, db, sqlite3_prepare_v2, "COMMIT");
  t->whole[s][kind][run] = now_ms() - start;
  t->statement[s][kind][run] = done - begun;
  return ok && tablets_ask(b, db, k->prepare, sums_sql, t->sums[s][kind], 512);
}

static bool run_side(struct tablets *b, const char *base, int kind, int run, struct times *t) {
  char path[512];
  sqlite3 *db = NULL;
  snprintf(path, sizeof path, "%s/tablets-%s.db", b->dir, kinds[kind].name);
  bool ok = copy_file(b, base, path) && open_side(b, path, kind, &db) &&
            tablets_run(b, db, sqlite3_prepare_v2, kinds[kind].create);
  for (int s = 0; ok && s < N_STEPS; s++) {
    if (steps[s].scan || (s > 0 && steps[s - 1].scan)) {
      sqlite3_close(db);
      db = NULL;
      if (s == 1 && run == 0) ok = measure_size(b, path, kind, &t->bytes[kind]);
      ok = ok && open_side(b, path, kind, &db);
    }
    ok = ok && run_step(b, db, s, kind, run, t);
  }
  sqlite3_close(db);
  if (!b->keep || run + 1 < b->n_runs) unlink(path);
  return ok;
}

static void report(struct tablets *b, struct json *j, struct times *t) {
  printf("\n%-26s%12s%12s%12s%12s%9s%8s\n", "", "ordinary", "", "tablet", "", "", "");
  printf("%-26s%12s%12s%12s%12s%9s%8s\n", "milliseconds", "statement", "transaction", "statement",
         "transaction", "times", "bar");
  json_open(j, "steps", '[');
  for (int s = 0; s < N_STEPS; s++) {
    double m[2][N_KINDS];
    for (int k = 0; k < N_KINDS; k++) {
      m[0][k] = median(t->statement[s][k], b->n_runs);
      m[1][k] = median(t->whole[s][k], b->n_runs);
    }
    double ratio = m[1][ORDINARY] / m[1][TABLET];
    bool same = t->changes[s][0] == t->changes[s][1] && strcmp(t->sums[s][0], t->sums[s][1]) == 0;
    /* sums of reals are SQLite's up to their last bits, which depend on the order of adding */
    if (steps[s].scan) same = true;
    bool met = ratio >= steps[s].bar;
    printf("%-26s%12.1f%12.1f%12.1f%12.1f%8.1fx", steps[s].name, m[0][ORDINARY], m[1][ORDINARY],
           m[0][TABLET], m[1][TABLET], ratio);
    if (steps[s].bar > 0) printf("%7.0fx%s", steps[s].bar, met ? "" : "  below the bar");
    printf("\n");
    if (!same) {
      char why[1200];
      snprintf(why, sizeof why, "changes %lld and %lld, sums\n  %s\n  %s",
               (long long)t->changes[s][0], (long long)t->changes[s][1], t->sums[s][0],
               t->sums[s][1]);
      tablets_fail(b, steps[s].name, why);
    }
    json_open(j, NULL, '{');
    json_string(j, "name", steps[s].name);
    json_string(j, "sql", steps[s].sql);
    for (int k = 0; k < N_KINDS; k++) {
      json_open(j, kinds[k].name, '{');
      json_number(j, "statement_ms", m[0][k]);
      json_number(j, "transaction_ms", m[1][k]);
      json_number(j, "changes", (double)t->changes[s][k]);
      json_close(j, '}');
    }
    json_number(j, "ratio", ratio);
    if (steps[s].bar > 0) json_number(j, "bar", steps[s].bar);
    if (steps[s].bar > 0) json_bool(j, "met", met);
    json_bool(j, "same", same);
    json_close(j, '}');
  }
  json_close(j, ']');
  double share = t->bytes[TABLET] / t->bytes[ORDINARY];
  printf("%-26s%21.1f MB%21.1f MB%8.2fx%8s%s\n", "file", t->bytes[ORDINARY] / 1e6,
         t->bytes[TABLET] / 1e6, share, "0.5x", share <= 0.5 ? "" : "  above the bar");
  json_number(j, "ordinary_bytes", t->bytes[ORDINARY]);
  json_number(j, "tablet_bytes", t->bytes[TABLET]);
  json_number(j, "share", share);
}

void tablets_dml(struct tablets *b, struct json *j) {
  static struct times t;
  char base[512];
  snprintf(base, sizeof base, "%s/tablets-base.db", b->dir);
  printf("Sphyraena data, %lld rows in a file, medians of %d runs; times: by transaction\n",
         (long long)b->n_rows, b->n_runs);
  fflush(stdout);
  if (!make_base(b, base)) return;
  bool ok = true;
  for (int run = 0; ok && run < b->n_runs; run++)
    for (int k = 0; ok && k < N_KINDS; k++) ok = run_side(b, base, k, run, &t);
  if (!b->keep) unlink(base);
  if (!ok) return;
  json_open(j, "dml", '{');
  json_number(j, "rows", (double)b->n_rows);
  report(b, j, &t);
  json_close(j, '}');
}
