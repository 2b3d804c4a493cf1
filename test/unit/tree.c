/*
** Estimates from the pages of b-trees: random trees, whose ranges are compared with exact counts,
** and files with changed bytes, which must give some number or none, without a crash.
*/
#include "loaded.h"
#include "store/tree.h"

/* An estimate may be off by this factor plus the entries of some leaves. */
#define FACTOR 3.0
enum { LEAVES = 6 };

static char path[300];

static sqlite3 *fresh(void) {
  static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
  char file[320];
  for (int i = 0; i < 4; i++) {
    snprintf(file, sizeof file, "%s%s", path, ends[i]);
    unlink(file);
  }
  return must_open(path);
}

static wl_i64 number(sqlite3 *db, const char *sql) {
  sqlite3_stmt *q = NULL;
  wl_i64 n = -1;
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
    n = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  return n;
}

static wl_u32 root_of(sqlite3 *db, const char *name) {
  char sql[200];
  snprintf(sql, sizeof sql, "SELECT rootpage FROM sqlite_schema WHERE name='%s'", name);
  return (wl_u32)number(db, sql);
}

/* How the keys of a table are made; ?1 is the number of the row, ?2 a random number. */
static const struct {
  const char *name, *id, *a, *s;
} shapes[] = {
    {"dense", "?1", "?2 % 100000", "'key' || (?2 % 5000)"},
    {"sparse", "?1 * 1000003", "?1", "'k' || ?1"},
    {"negative and huge rowids", "?2", "?2 % 7", "char(97 + abs(?2 % 26)) || ?1"},
    {"skewed", "?1 + (?1 > 3000) * 4000000000", "CASE WHEN ?2 % 10 THEN 5 ELSE ?2 % 1000 END",
     "CASE WHEN ?2 % 3 THEN 'same' ELSE ?2 || '' END"},
    {"mixed types", "?1",
     "CASE ?1 % 4 WHEN 0 THEN NULL WHEN 1 THEN ?2 % 999 WHEN 2 THEN ?2 / 7.0"
     " ELSE 'text' || ?2 % 50 END",
     "CASE ?1 % 3 WHEN 0 THEN NULL WHEN 1 THEN x'00ff' ELSE 'Text' || ?2 % 300 END"},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static void fill(sqlite3 *db, int shape, int n, rng *r) {
  sqlite3_stmt *q = NULL;
  char sql[600];
  snprintf(sql, sizeof sql, "INSERT OR IGNORE INTO t SELECT %s, %s, %s, hex(zeroblob(?2 %% 40))",
           shapes[shape].id, shapes[shape].a, shapes[shape].s);
  must_exec(db, "BEGIN");
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL)) printf("# %s\n", sqlite3_errmsg(db));
  for (int i = 1; i <= n; i++) {
    sqlite3_bind_int64(q, 1, i);
    sqlite3_bind_int64(q, 2, (wl_i64)rng_next(r));
    sqlite3_step(q);
    sqlite3_reset(q);
  }
  sqlite3_finalize(q);
  must_exec(db, "COMMIT");
}

/* A tree of the test, with what SQL calls its columns. */
static const struct {
  const char *name;
  const char *cols[2];
  wl_tree tree;
} trees[] = {
    {"t", {"id"}, {.of_table = true}},
    {"t_a", {"a"}, {.n_cols = 1}},
    {"t_a_desc", {"a"}, {.n_cols = 1, .desc = {true}}},
    {"t_s", {"s"}, {.n_cols = 1}},
    {"t_s_nocase", {"s"}, {.n_cols = 1, .coll = {WL_COLL_NOCASE}}},
    {"t_s_a", {"s", "a"}, {.n_cols = 2}},
    {"w", {"a", "id"}, {.n_cols = 2}},
};
enum { N_TREES = sizeof trees / sizeof *trees };

typedef struct picked {
  sqlite3_value *v[2];
} picked;

static void drop_picked(picked *p) {
  for (int i = 0; i < 2; i++) sqlite3_value_free(p->v[i]);
}

/* Takes the values of a random row as the bound. No statement stays open, so that the snapshot of a
** WAL can be pinned. */
static bool pick(sqlite3 *db, int k, rng *r, int n_cols, picked *keep, wl_tree_bound *out) {
  char sql[300];
  sqlite3_stmt *q = NULL;
  memset(out, 0, sizeof *out);
  const char *table = strcmp(trees[k].name, "w") == 0 ? "w" : "t";
  snprintf(sql, sizeof sql, "SELECT %s%s%s FROM %s LIMIT 1 OFFSET %d", trees[k].cols[0],
           n_cols > 1 ? ", " : "", n_cols > 1 ? trees[k].cols[1] : "", table, rng_below(r, 4000));
  bool found = !sqlite3_prepare_v2(db, sql, -1, &q, NULL) && sqlite3_step(q) == SQLITE_ROW;
  for (int i = 0; i < n_cols && found; i++)
    keep->v[i] = sqlite3_value_dup(sqlite3_column_value(q, i));
  sqlite3_finalize(q);
  if (!found) return false;
  out->n = n_cols;
  out->after = rng_chance(r, 50);
  for (int i = 0; i < n_cols; i++) {
    sqlite3_value *v = keep->v[i];
    switch (sqlite3_value_type(v)) {
    case SQLITE_INTEGER: out->key[i] = wl_int(sqlite3_value_int64(v)); break;
    case SQLITE_FLOAT: out->key[i] = wl_real(sqlite3_value_double(v)); break;
    case SQLITE_TEXT:
      out->key[i] = wl_text(sqlite3_value_text(v), (wl_u32)sqlite3_value_bytes(v));
      break;
    default: return false; /* SQL cannot compare with NULL */
    }
  }
  return true;
}

/* The exact number of entries, counted in SQL, where rows have no order with NULL. */
static double exact(sqlite3 *db, int k, const wl_tree_bound *low, const wl_tree_bound *high,
                    const picked *a, const picked *z) {
  const wl_tree *t = &trees[k].tree;
  const wl_tree_bound *ends[2] = {low, high};
  const picked *values[2] = {a, z};
  sqlite3_stmt *q = NULL;
  sqlite3_str *sql = sqlite3_str_new(db);
  sqlite3_str_appendf(sql, "SELECT count(*) FROM %s WHERE 1",
                      strcmp(trees[k].name, "w") == 0 ? "w" : "t");
  for (int e = 0; e < 2; e++) {
    if (!ends[e]) continue;
    bool greater = (e == 0) != t->desc[0];
    const char *op = ends[e]->after == (e == 0) ? (greater ? ">" : "<") : greater ? ">=" : "<=";
    const char *coll = t->coll[0] == WL_COLL_NOCASE ? " COLLATE NOCASE" : "";
    if (ends[e]->n == 1)
      sqlite3_str_appendf(sql, " AND (%s%s %s ?%d%s", trees[k].cols[0], coll, op, 1 + 2 * e,
                          greater ? ")" : "");
    else
      sqlite3_str_appendf(sql, " AND ((%s, %s) %s (?%d, ?%d)%s", trees[k].cols[0], trees[k].cols[1],
                          op, 1 + 2 * e, 2 + 2 * e, greater ? ")" : "");
    if (!greater) sqlite3_str_appendf(sql, " OR %s IS NULL)", trees[k].cols[0]);
  }
  char *text = sqlite3_str_finish(sql);
  double n = -1;
  if (sqlite3_prepare_v2(db, text, -1, &q, NULL)) printf("# %s: %s\n", text, sqlite3_errmsg(db));
  for (int e = 0; q && e < 2; e++)
    for (int i = 0; ends[e] && i < ends[e]->n; i++)
      sqlite3_bind_value(q, 1 + 2 * e + i, values[e]->v[i]);
  if (q && sqlite3_step(q) == SQLITE_ROW) n = sqlite3_column_double(q, 0);
  sqlite3_finalize(q);
  sqlite3_free(text);
  return n;
}

/* Compares some ranges of one tree. */
static void check_tree(const char *label, sqlite3 *db, wl_store *s, int k, rng *r) {
  wl_tree tree = trees[k].tree;
  wl_trees in;
  wl_tree_shape shape;
  wl_error err = {0};
  char name[300], bad[300] = "";
  int n_ranges = 0;
  tree.root = root_of(db, trees[k].name);
  snprintf(name, sizeof name, "%s, %s", label, trees[k].name);
  for (int i = 0; i < 25 && !*bad; i++) {
    picked a = {{NULL}}, z = {{NULL}};
    wl_tree_bound low, high;
    int n_cols = tree.n_cols > 1 && rng_chance(r, 50) ? 2 : 1;
    bool has_low = rng_chance(r, 80) && pick(db, k, r, n_cols, &a, &low);
    bool has_high = rng_chance(r, 80) && pick(db, k, r, n_cols, &z, &high);
    double want = exact(db, k, has_low ? &low : NULL, has_high ? &high : NULL, &a, &z), got = -1;
    wl_status rc = wl_trees_begin(s, "main", &in, &err);
    bool known =
        !rc && wl_tree_measure(&in, &tree, &shape) &&
        wl_tree_range(&in, &tree, &shape, has_low ? &low : NULL, has_high ? &high : NULL, &got);
    wl_trees_end(&in);
    double room = known ? LEAVES * (shape.cells[shape.depth - 1] + 1) : 0;
    if (rc)
      snprintf(bad, sizeof bad, "%.200s", err.text);
    else if (!known)
      snprintf(bad, sizeof bad, "unknown");
    else if (got > want * FACTOR + room || got * FACTOR + room < want)
      snprintf(bad, sizeof bad, "range %d: %.0f entries, not %.0f (depth %d)", i, got, want,
               shape.depth);
    n_ranges++;
    drop_picked(&a);
    drop_picked(&z);
  }
  if (*bad)
    tap_bad(name, "%s", bad);
  else
    tap_ok(name);
}

/* Entries per key, against the exact average. */
static void check_per_key(const char *label, sqlite3 *db, wl_store *s, int k) {
  wl_tree tree = trees[k].tree;
  wl_trees in;
  wl_tree_shape shape;
  wl_error err;
  double got = 0;
  char sql[200], name[300];
  tree.root = root_of(db, trees[k].name);
  snprintf(sql, sizeof sql, "SELECT count(*) / count(DISTINCT ifnull(%s%s, 0.125)) FROM t",
           trees[k].cols[0], tree.coll[0] ? " COLLATE NOCASE" : "");
  double want = (double)number(db, sql);
  bool known = !wl_trees_begin(s, "main", &in, &err) && wl_tree_measure(&in, &tree, &shape) &&
               wl_tree_per_key(&in, &tree, &shape, 1, &got);
  wl_trees_end(&in);
  snprintf(name, sizeof name, "%s, %s: entries per key", label, trees[k].name);
  /* A sample says little about a few very common keys. */
  if (known && got >= 1 && got < want * 60 + 60 && got * 60 + 60 > want)
    tap_ok(name);
  else
    tap_bad(name, "%g, not %g", got, want);
}

static void check_random(int n) {
  rng r = {7};
  for (int i = 0; i < n; i++) {
    char label[200], pragmas[200];
    int shape = i % N_SHAPES, page_size = 512 << rng_below(&r, 5);
    bool wal = rng_chance(&r, 50);
    static const int counts[] = {0, 1, 40, 700, 6000, 30000};
    int n_rows = counts[rng_below(&r, 6)];
    snprintf(pragmas, sizeof pragmas,
             "PRAGMA page_size=%d; PRAGMA journal_mode=%s;"
             "PRAGMA synchronous=OFF",
             page_size, wal ? "WAL" : "DELETE");
    sqlite3 *db = fresh();
    must_exec(db, pragmas);
    must_exec(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, a, s, x);"
                  "CREATE TABLE w(a, id, PRIMARY KEY(a, id)) WITHOUT ROWID;"
                  "CREATE INDEX t_a ON t(a); CREATE INDEX t_a_desc ON t(a DESC);"
                  "CREATE INDEX t_s ON t(s); CREATE INDEX t_s_nocase ON t(s COLLATE NOCASE);"
                  "CREATE INDEX t_s_a ON t(s, a)");
    fill(db, shape, n_rows, &r);
    if (rng_chance(&r, 40)) must_exec(db, "DELETE FROM t WHERE id % 5 < 3");
    if (rng_chance(&r, 20))
      must_exec(db, "DELETE FROM t WHERE rowid IN (SELECT id FROM t LIMIT 3000)");
    must_exec(db, "INSERT INTO w SELECT a, id FROM t WHERE a IS NOT NULL");
    wl_store *s;
    wl_error err;
    if (wl_store_open(db, &s, &err)) exit(1);
    snprintf(label, sizeof label, "%s, %d rows, pages of %d, %s", shapes[shape].name, n_rows,
             page_size, wal ? "WAL" : "DELETE");
    for (int k = 0; k < N_TREES; k++) check_tree(label, db, s, k, &r);
    for (int k = 1; k < 5; k++)
      if (n_rows > 100) check_per_key(label, db, s, k);
    wl_store_close(s);
    sqlite3_close(db);
  }
}

/* A connection that has written in its transaction sees pages that are not in the file. */
static void check_refused(void) {
  wl_store *s;
  wl_error err;
  wl_trees in;
  sqlite3 *db = fresh();
  must_exec(db, "PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1)");
  if (wl_store_open(db, &s, &err)) exit(1);
  must_exec(db, "BEGIN; INSERT INTO t VALUES(2)");
  CHECK("refused after a write", wl_trees_begin(s, "main", &in, &err) == WL_NOT_TAKEN);
  wl_trees_end(&in);
  must_exec(db, "ROLLBACK");
  CHECK("allowed after the transaction", wl_trees_begin(s, "main", &in, &err) == WL_OK);
  wl_trees_end(&in);
  wl_store_close(s);
  sqlite3_close(db);
  if (sqlite3_open(":memory:", &db)) exit(1);
  if (wl_store_open(db, &s, &err)) exit(1);
  must_exec(db, "CREATE TABLE t(a)");
  CHECK("refused in memory", wl_trees_begin(s, "main", &in, &err) == WL_NOT_TAKEN);
  wl_trees_end(&in);
  wl_store_close(s);
  sqlite3_close(db);
}

/* Changes bytes of the file and asks for ranges. Any number is accepted. */
static void check_corrupt(int n) {
  rng r = {3};
  sqlite3 *db = fresh();
  must_exec(db, "PRAGMA page_size=512; CREATE TABLE t(id INTEGER PRIMARY KEY, a, s, x);"
                "CREATE INDEX t_s_a ON t(s, a); CREATE INDEX t_a ON t(a)");
  fill(db, 4, 3000, &r);
  wl_u32 roots[] = {root_of(db, "t"), root_of(db, "t_s_a"), root_of(db, "t_a")};
  long n_pages = (long)number(db, "PRAGMA page_count");
  sqlite3_close(db);
  int n_known = 0;
  for (int i = 0; i < n; i++) {
    FILE *f = fopen(path, "r+b");
    long at = 512 + (long)(rng_next(&r) % (wl_u64)((n_pages - 1) * 512));
    if (rng_chance(&r, 50)) at = ((long)roots[rng_below(&r, 3)] - 1) * 512 + rng_below(&r, 60);
    fseek(f, at, SEEK_SET);
    int old = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(rng_below(&r, 256), f);
    fclose(f);
    db = must_open(path);
    wl_store *s;
    wl_error err;
    wl_trees in;
    if (wl_store_open(db, &s, &err)) exit(1);
    if (!wl_trees_begin(s, "main", &in, &err)) {
      for (int k = 0; k < 3; k++) {
        wl_tree tree = {.root = roots[k], .of_table = k == 0, .n_cols = k ? 3 - k : 0};
        wl_tree_bound low = {.n = 1, .key = {wl_int(rng_below(&r, 3000))}};
        wl_tree_shape shape;
        double rows = 0;
        if (!wl_tree_measure(&in, &tree, &shape)) continue;
        n_known += wl_tree_range(&in, &tree, &shape, &low, NULL, &rows);
        n_known += wl_tree_per_key(&in, &tree, &shape, 1, &rows);
      }
    }
    wl_trees_end(&in);
    wl_store_close(s);
    sqlite3_close(db);
    if (i % 3) { /* otherwise the change stays */
      f = fopen(path, "r+b");
      fseek(f, at, SEEK_SET);
      fputc(old, f);
      fclose(f);
    }
  }
  CHECK("changed bytes do no harm", n_known > 0);
}

int main(int argc, char **argv) {
  const char *dir = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/tree-%d.db", dir ? dir : "/tmp", (int)getpid());
  if (!bind_sqlite()) return 1;
  check_random(argc > 1 ? atoi(argv[1]) : 25);
  check_refused();
  check_corrupt(argc > 1 ? atoi(argv[1]) * 10 : 300);
  sqlite3_close(fresh());
  unlink(path);
  return tap_done();
}
