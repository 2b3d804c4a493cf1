/*
** The functions of the CUDADB papers on a tablet table, beside SQLite in memory, whose table has
** an index on the column asked about: selection, sorting, grouping, insertion by selection,
** update and deletion, and for each the turning point: the share of the table from which on it
** pays to give it to warplite with route=always.
**
** 1. Three integer columns: c1 unique, random in 1..N; c2 a group, 1..100; c3 random in 1..65535.
**    Both tables are in one database in memory and hold the same rows in the same order.
** 2. The share that a statement selects or changes is chosen by c1 <= share * N.
** 3. A statement that changes a table runs in a transaction that is rolled back outside the clock,
**    so every run finds the table as it was. Before the clock runs, each statement has been run
**    once on both sides, and its rows, or changes() and the sums over the changed table,
**    were equal.
** 4. The turning point is found as in turning.c: the smallest share from which on warplite is
**    faster at every larger one; between two measured shares by a straight line.
** 5. With --route cost the router decides, and both sides run on the same table: the ordinary one
**    with its index, then the tablet table. A point is lost if warplite takes more than BAR_TIMES
**    SQLite's time plus BAR_US. It is then measured twice more, with more runs, before it is
**    reported. It counts as a failure, except with --check.
*/
#include "tablets.h"

enum { N_SHARES = 12 };
static const double shares[N_SHARES] = {0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10};

static const struct function {
  const char *name, *sql; /* %s: the table, and the largest c1 */
  const char *changed;    /* the table that it changes; NULL: a query. %s: the table's name */
  double theirs;          /* the papers' turning point, percent */
} functions[] = {
    {"selection", "SELECT c1, c2, c3 FROM %s WHERE c1 <= %lld", NULL, 1.926},
    {"sorting", "SELECT c1, c2, c3 FROM %s WHERE c1 <= %lld ORDER BY c3, c1", NULL, 2.061},
    {"grouping",
     "SELECT c2, count(*), sum(c3), min(c3), max(c3), avg(c3) FROM %s WHERE c1 <= %lld GROUP BY c2",
     NULL, 0.491},
    {"insertion", "INSERT INTO %1$s_copy SELECT c1, c2, c3 FROM %1$s WHERE c1 <= %2$lld", "%s_copy",
     0.784},
    {"update", "UPDATE %s SET c3 = c3 + 1 WHERE c1 <= %lld", "%s", 0.161},
    {"deletion", "DELETE FROM %s WHERE c1 <= %lld", "%s", 0.784},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

enum who { SQLITE, ROUTED, PLAIN, NATIVE, BATCH, N_WHO };
static const char *const tables[N_WHO] = {"o", "o", "t", "t", "t"};
enum { ALWAYS = 1 << SQLITE | 1 << NATIVE | 1 << BATCH };
enum { ORDINARY = 1 << SQLITE | 1 << ROUTED, TABLET = 1 << PLAIN | 1 << NATIVE };
#define BAR_TIMES 1.1
#define BAR_US    20.0

static bool by_sqlite(int who) {
  return who == SQLITE || who == PLAIN;
}

struct point {
  double us[N_WHO];    /* medians; 0: it does not do that */
  char ran[N_WHO][16]; /* the engine */
  bool elsewhere;      /* the native side ran in another engine */
};

static const char *engine_of(const struct tablets *b) {
  return strcmp(b->engine, "cpu") == 0 ? "cpu" : "gpu";
}

static bool settings(struct tablets *b, sqlite3 *db) {
  char why[WHY];
  bool cpu = strcmp(b->engine, "cpu") == 0;
  bool ok = warplite_enable(db) == SQLITE_OK && (cpu || set_one(db, "device", b->engine, why)) &&
            set_one(db, "engine", engine_of(b), why) && set_one(db, "route", b->route, why);
  if (!ok) tablets_fail(b, b->engine, why);
  return ok;
}

static bool make(struct tablets *b, int64_t n, sqlite3 **db) {
  sqlite3_stmt *st = NULL;
  struct generator g = {0xcdbULL + (uint64_t)n, 1, 0};
  int32_t *perm = malloc((size_t)n * sizeof *perm);
  bool ok = perm && sqlite3_open(":memory:", db) == SQLITE_OK &&
            sqlite3_exec(*db,
                         "CREATE TABLE o(c1 INTEGER, c2 INTEGER, c3 INTEGER); "
                         "CREATE TABLE o_copy(c1 INTEGER, c2 INTEGER, c3 INTEGER); BEGIN",
                         NULL, NULL, NULL) == SQLITE_OK &&
            sqlite3_prepare_v2(*db, "INSERT INTO o VALUES(?,?,?)", -1, &st, NULL) == SQLITE_OK;
  for (int64_t i = 0; ok && i < n; i++) perm[i] = (int32_t)i + 1;
  for (int64_t i = n - 1; ok && i > 0; i--) {
    int64_t k = (int64_t)(generator_bits(&g) % (uint64_t)(i + 1));
    int32_t x = perm[i];
    perm[i] = perm[k];
    perm[k] = x;
  }
  for (int64_t i = 0; ok && i < n; i++) {
    sqlite3_bind_int(st, 1, perm[i]);
    sqlite3_bind_int(st, 2, 1 + (int)(generator_bits(&g) % 100));
    sqlite3_bind_int(st, 3, 1 + (int)(generator_bits(&g) % 65535));
    ok = sqlite3_step(st) == SQLITE_DONE && sqlite3_reset(st) == SQLITE_OK;
  }
  sqlite3_finalize(st);
  free(perm);
  ok = ok &&
       sqlite3_exec(*db, "COMMIT; CREATE UNIQUE INDEX o1 ON o(c1)", NULL, NULL, NULL) == SQLITE_OK;
  if (!ok) tablets_fail(b, "making the table", sqlite3_errmsg(*db));
  return ok && settings(b, *db) &&
         tablets_run(b, *db, sqlite3_prepare_v2,
                     "CREATE VIRTUAL TABLE t USING tablet(c1 INTEGER, c2 INTEGER, c3 INTEGER)") &&
         tablets_run(b, *db, sqlite3_prepare_v2,
                     "CREATE VIRTUAL TABLE t_copy USING tablet(c1 INTEGER, c2 INTEGER, c3 "
                     "INTEGER)") &&
         tablets_run(b, *db, warplite_prepare, "INSERT INTO t SELECT c1, c2, c3 FROM o");
}

/* What one run left behind, for comparing. */
struct outcome {
  struct digest d;
  sqlite3_int64 changes;
  char sums[256];
};

/* One run in microseconds; negative after a failure. */
static double once(struct tablets *b, sqlite3 *db, const struct function *f, int who, int64_t most,
                   struct outcome *out, char *ran) {
  char sql[512], why[WHY] = "";
  sqlite3_stmt *st = NULL;
  bool compare = out->d.full;
  memset(out, 0, sizeof *out);
  out->d.full = compare;
  snprintf(sql, sizeof sql, f->sql, tables[who], (long long)most);
  if (f->changed && !tablets_run(b, db, sqlite3_prepare_v2, "BEGIN")) return -1;
  double start = now_ms();
  int rc = SQLITE_OK;
  if (who == BATCH) {
    struct ArrowArrayStream stream = {0};
    rc = warplite_query(db, sql, &stream);
    if (rc != SQLITE_OK)
      snprintf(why, WHY, "%s", warplite_errmsg(db));
    else if (!digest_arrow(&out->d, &stream, why, WHY))
      rc = SQLITE_ERROR;
  } else {
    rc = (by_sqlite(who) ? sqlite3_prepare_v2 : warplite_prepare)(db, sql, -1, &st, NULL);
    if (rc == SQLITE_OK && f->changed)
      rc = sqlite3_step(st) == SQLITE_DONE ? SQLITE_OK : SQLITE_ERROR;
    else if (rc == SQLITE_OK)
      rc = digest_sqlite(&out->d, st);
    int rc2 = sqlite3_finalize(st);
    if (rc == SQLITE_OK) rc = rc2;
    if (rc != SQLITE_OK) snprintf(why, WHY, "%s", sqlite3_errmsg(db));
  }
  double us = (now_ms() - start) * 1e3;
  if (rc != SQLITE_OK) tablets_fail(b, sql, why);
  if (!by_sqlite(who) && ran) {
    const char *reason = warplite_reason(db);
    snprintf(ran, sizeof(((struct point *)0)->ran[0]), "%.*s", (int)strcspn(reason, ":"), reason);
  }
  if (!by_sqlite(who) && compare && b->verbose) printf("  %s\n    %s\n", sql, warplite_reason(db));
  if (f->changed) {
    char table[32];
    out->changes = sqlite3_changes64(db);
    snprintf(table, sizeof table, f->changed, tables[who]);
    snprintf(sql, sizeof sql,
             "SELECT count(*), sum(c1), sum(c2), sum(c3), sum(c1 %% 65521 * c3) FROM %s", table);
    if (compare && !tablets_ask(b, db, sqlite3_prepare_v2, sql, out->sums, sizeof out->sums))
      rc = SQLITE_ERROR;
    if (!tablets_run(b, db, sqlite3_prepare_v2, "ROLLBACK")) rc = SQLITE_ERROR;
  }
  return rc == SQLITE_OK ? us : -1;
}

static bool same(const struct function *f, const struct outcome *a, const struct outcome *c) {
  if (f->changed) return a->changes == c->changes && strcmp(a->sums, c->sums) == 0;
  /* SQLite gives selected rows in the order of its index */
  return strcmp(f->name, "selection") == 0 ? digest_same_bag(&a->d, &c->d, 0)
                                           : digest_equal(&a->d, &c->d);
}

/* sides: one bit for each that takes part. */
static void measure(struct tablets *b, sqlite3 *db, const struct function *f, int64_t most,
                    unsigned sides, int n_runs, struct point *out) {
  static double us[N_WHO][MAX_RUNS];
  struct outcome want = {.d = {.full = true}};
  int first = -1;
  if (f->changed) sides &= ~(1u << BATCH);
  for (int who = 0; who < N_WHO; who++) {
    struct outcome got = {.d = {.full = true}};
    if (!(sides >> who & 1)) continue;
    if (once(b, db, f, who, most, &got, out->ran[who]) < 0) return;
    if (first < 0) want = got;
    if (first < 0) first = who;
    if (!same(f, &want, &got)) {
      char why[700];
      snprintf(why, sizeof why, "not SQLite's outcome for c1 <= %lld: %lld, %s, not %lld, %s",
               (long long)most, (long long)got.changes, got.sums, (long long)want.changes,
               want.sums);
      tablets_fail(b, f->name, why);
    }
  }
  out->elsewhere = strcmp(out->ran[NATIVE], engine_of(b)) != 0;
  for (int run = 0; run < n_runs; run++)
    for (int who = 0; who < N_WHO; who++) {
      struct outcome got = {.d = {.full = false}};
      if (!(sides >> who & 1)) continue;
      us[who][run] = once(b, db, f, who, most, &got, NULL);
      if (us[who][run] < 0) return;
    }
  for (int who = 0; who < N_WHO; who++)
    if (sides >> who & 1) out->us[who] = median(us[who], n_runs);
}

/* The share from which on the side wins; negative: it does not, up to the largest. */
static double turning_point(const struct point *p, int who) {
  int k = N_SHARES;
  while (k > 0 && p[k - 1].us[who] > 0 && p[k - 1].us[who] < p[k - 1].us[SQLITE]) k--;
  if (k == N_SHARES) return -1;
  if (k == 0) return shares[0];
  double before = p[k - 1].us[who] - p[k - 1].us[SQLITE], after = p[k].us[SQLITE] - p[k].us[who];
  return shares[k - 1] + (shares[k] - shares[k - 1]) * before / (before + after);
}

static void put_point(const struct point *p, int who) {
  char text[32] = "none";
  double at = turning_point(p, who);
  if (p[0].us[who] <= 0)
    snprintf(text, sizeof text, "-");
  else if (at >= 0)
    snprintf(text, sizeof text, "%s%.3f %%", at <= shares[0] ? "<= " : "", at);
  printf("%14s", text);
}

static void one_size(struct tablets *b, struct json *j, sqlite3 *db, int64_t n) {
  static struct point p[N_FUNCTIONS][N_SHARES];
  printf("\n%lld rows; microseconds, medians of %d runs; * ran "
         "elsewhere\n\n%-11s%9s%12s%12s%14s%12s\n",
         (long long)n, b->n_runs, "function", "percent", "rows", "sqlite", b->engine, "batch");
  memset(p, 0, sizeof p);
  for (int f = 0; f < N_FUNCTIONS; f++) {
    if (b->only && strcmp(b->only, functions[f].name) != 0) continue;
    for (int k = 0; k < N_SHARES; k++) {
      int64_t most = (int64_t)((double)n * shares[k] / 100);
      measure(b, db, &functions[f], most, ALWAYS, b->n_runs, &p[f][k]);
      printf("%-11s%9.3f%12lld%12.1f%13.1f%s", functions[f].name, shares[k], (long long)most,
             p[f][k].us[SQLITE], p[f][k].us[NATIVE], p[f][k].elsewhere ? "*" : " ");
      if (p[f][k].us[BATCH] > 0)
        printf("%12.1f\n", p[f][k].us[BATCH]);
      else
        printf("%12s\n", "-");
      fflush(stdout);
      json_open(j, NULL, '{');
      json_string(j, "function", functions[f].name);
      json_number(j, "rows", (double)n);
      json_number(j, "selected", (double)most);
      json_number(j, "sqlite_us", p[f][k].us[SQLITE]);
      json_number(j, "native_us", p[f][k].us[NATIVE]);
      json_number(j, "batch_us", p[f][k].us[BATCH]);
      json_bool(j, "elsewhere", p[f][k].elsewhere);
      json_close(j, '}');
    }
  }
  printf("\nturning points on %lld rows, route=always, percent of the table\n\n%-11s%14s%14s%14s\n",
         (long long)n, "function", b->engine, "batch", "published");
  for (int f = 0; f < N_FUNCTIONS; f++) {
    if (b->only && strcmp(b->only, functions[f].name) != 0) continue;
    printf("%-11s", functions[f].name);
    put_point(p[f], NATIVE);
    put_point(p[f], BATCH);
    printf("%12.3f %%\n", functions[f].theirs);
    json_open(j, NULL, '{');
    json_string(j, "function", functions[f].name);
    json_number(j, "rows", (double)n);
    json_number(j, "turning_point", turning_point(p[f], NATIVE));
    if (!functions[f].changed) json_number(j, "batch_turning_point", turning_point(p[f], BATCH));
    json_number(j, "published", functions[f].theirs);
    json_close(j, '}');
  }
}

/* ---- the router decides */

static bool is_lost(const struct point *p, int plain, int ours) {
  return p->us[ours] > p->us[plain] * BAR_TIMES + BAR_US;
}

static bool loses(const struct point *p) {
  return is_lost(p, SQLITE, ROUTED) || is_lost(p, PLAIN, NATIVE);
}

/* Both sides of one table, by turns: what runs on the other table would clear the caches. */
static void measure_cost(struct tablets *b, sqlite3 *db, const struct function *f, int64_t most,
                         unsigned sides, struct point *p) {
  enum { MORE = 21 };
  int plain = sides == ORDINARY ? SQLITE : PLAIN, ours = sides == ORDINARY ? ROUTED : NATIVE;
  measure(b, db, f, most, sides, b->n_runs, p);
  for (int again = 0; again < 2 && is_lost(p, plain, ours) && !b->check; again++)
    measure(b, db, f, most, sides, b->n_runs < MORE ? MORE : b->n_runs, p);
}

static int cost_size(struct tablets *b, struct json *j, sqlite3 *db, int64_t n) {
  int n_lost = 0;
  printf("\n%lld rows; microseconds, medians of %d runs; * lost to SQLite\n\n%32s%32s%32s\n"
         "%-11s%9s%12s%12s%12s %-7s%12s%12s %-7s\n",
         (long long)n, b->n_runs, "", "ordinary table with an index", "tablet table", "function",
         "percent", "rows", "sqlite", "by cost", "ran", "sqlite", "by cost", "ran");
  for (int f = 0; f < N_FUNCTIONS; f++) {
    if (b->only && strcmp(b->only, functions[f].name) != 0) continue;
    for (int k = 0; k < N_SHARES; k++) {
      struct point p = {0};
      int64_t most = (int64_t)((double)n * shares[k] / 100);
      measure_cost(b, db, &functions[f], most, ORDINARY, &p);
      measure_cost(b, db, &functions[f], most, TABLET, &p);
      n_lost += loses(&p);
      printf("%-11s%9.3f%12lld%12.1f%12.1f%c%-7s%12.1f%12.1f%c%-7s\n", functions[f].name, shares[k],
             (long long)most, p.us[SQLITE], p.us[ROUTED], is_lost(&p, SQLITE, ROUTED) ? '*' : ' ',
             p.ran[ROUTED], p.us[PLAIN], p.us[NATIVE], is_lost(&p, PLAIN, NATIVE) ? '*' : ' ',
             p.ran[NATIVE]);
      fflush(stdout);
      json_open(j, NULL, '{');
      json_string(j, "function", functions[f].name);
      json_number(j, "rows", (double)n);
      json_number(j, "selected", (double)most);
      json_number(j, "sqlite_us", p.us[SQLITE]);
      json_number(j, "cost_us", p.us[ROUTED]);
      json_string(j, "cost_ran", p.ran[ROUTED]);
      json_number(j, "tablet_sqlite_us", p.us[PLAIN]);
      json_number(j, "tablet_cost_us", p.us[NATIVE]);
      json_string(j, "tablet_cost_ran", p.ran[NATIVE]);
      json_bool(j, "lost", loses(&p));
      json_close(j, '}');
    }
  }
  printf("\nroute=cost against %.2f x SQLite + %.0f us on %lld rows: %d lost\n", BAR_TIMES, BAR_US,
         (long long)n, n_lost);
  return n_lost;
}

void tablets_functions(struct tablets *b, struct json *j) {
  bool cost = strcmp(b->route, "cost") == 0;
  printf("\nfunctions of the CUDADB papers, tablet table on %s, SQLite in memory with an index\n",
         b->engine);
  json_open(j, "functions", '{');
  json_string(j, "engine", b->engine);
  json_string(j, "route", b->route);
  json_open(j, "points", '[');
  for (int s = 0; s < b->n_sizes; s++) {
    sqlite3 *db = NULL;
    bool made = make(b, b->sizes[s], &db);
    if (made && cost) {
      int n_lost = cost_size(b, j, db, b->sizes[s]);
      if (!b->check) b->n_failures += n_lost;
    } else if (made) {
      one_size(b, j, db, b->sizes[s]);
    }
    sqlite3_close(db);
  }
  json_close(j, ']');
  json_close(j, '}');
}
