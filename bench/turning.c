/*
** The turning points of the CUDADB papers: from which share of a table on does it pay to
** give a query to warplite instead of SQLite, which has an index on the column asked about?
**
**     turning [--runs N] [--quick] [--json FILE] [-v]
**
** Three integer columns: c1 unique, random in 1..N and indexed; c2 a group, 1..100; c3
** random in 1..65535. Tables of 50,000 to 500,000 rows in memory, queries that select 500
** to 10,000 rows by c1 (and some fewer, to find where SQLite wins), and then only give them,
** sort them by c3 or group them by c2.
**
** 1. Every side prepares, steps through all rows, reads all columns and finalizes, but for
**    "cpu batch", which takes the rows as Arrow batches. The sides take turns, run by run.
** 2. The columns are in memory before the clock starts; each side has run the query once
**    and given SQLite's rows.
** 3. The turning point of a table is the smallest share from which on warplite is faster at
**    every larger share measured; between two measured shares, by a straight line.
** 4. The exit status is 0 only if route=cost took at most 1.05 times SQLite's time plus 50
**    microseconds everywhere and every answer was SQLite's.
*/
#include <errno.h>
#include "json.h"

enum { MAX_TIMES = 501, N_SIZES = 6, N_COUNTS = 12 };
#define BAR_TIMES 1.05
#define BAR_US    50.0

static const int sizes[N_SIZES] = {50000, 100000, 200000, 300000, 400000, 500000};
static const int counts[N_COUNTS] = {20,   50,   100,  200,  500,  1000,
                                     1700, 2500, 4000, 6000, 8000, 10000};

struct function {
  const char *name, *sql; /* one %d: the largest c1 */
  double theirs;          /* the papers' turning point, percent */
};

static const struct function functions[] = {
    {"selection", "SELECT c1, c2, c3 FROM t WHERE c1 <= %d", 1.926},
    {"sorting", "SELECT c1, c2, c3 FROM t WHERE c1 <= %d ORDER BY c3", 2.061},
    {"grouping",
     "SELECT c2, count(*), sum(c3), min(c3), max(c3), avg(c3) FROM t WHERE c1 <= %d GROUP BY c2",
     0.491},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

enum who { SQLITE, COST, CPU, BATCH, CUDA, N_WHO };

static const struct {
  const char *name, *engine, *device, *route;
} whos[N_WHO] = {
    [SQLITE] = {"sqlite", NULL, NULL, NULL},    [COST] = {"cost", "auto", "cuda", "cost"},
    [CPU] = {"cpu", "cpu", NULL, "always"},     [BATCH] = {"cpu batch", "cpu", NULL, "always"},
    [CUDA] = {"cuda", "gpu", "cuda", "always"},
};

struct point {
  double us[N_WHO]; /* medians; 0: this side is not there */
  bool elsewhere[N_WHO];
  char ran[8]; /* the engine that route=cost chose */
};

struct turning {
  struct bench b; /* the connection, for the settings' calls */
  int n_runs;
  bool has_cuda, verbose;
  int n_failures;
};

static void failure(struct turning *t, const char *sql, const char *side, const char *why) {
  fprintf(stderr, "turning: %s on %s: %s\n", sql, side, why);
  t->n_failures++;
}

/* A fresh table; the permutation in c1 is the same on every run. */
static bool make(struct turning *t, int n, char *why) {
  sqlite3_stmt *st = NULL;
  struct generator g = {0xcdbULL + (uint64_t)n, 1, 0};
  int *perm = malloc((size_t)n * sizeof *perm);
  bool ok = perm && sqlite3_open(":memory:", &t->b.db) == SQLITE_OK &&
            sqlite3_exec(t->b.db, "CREATE TABLE t(c1 INTEGER, c2 INTEGER, c3 INTEGER); BEGIN", NULL,
                         NULL, NULL) == SQLITE_OK &&
            sqlite3_prepare_v2(t->b.db, "INSERT INTO t VALUES(?,?,?)", -1, &st, NULL) == SQLITE_OK;
  for (int i = 0; ok && i < n; i++) perm[i] = i + 1;
  for (int i = n - 1; ok && i > 0; i--) {
    int k = (int)(generator_bits(&g) % (uint64_t)(i + 1)), x = perm[i];
    perm[i] = perm[k];
    perm[k] = x;
  }
  for (int i = 0; ok && i < n; i++) {
    sqlite3_bind_int(st, 1, perm[i]);
    sqlite3_bind_int(st, 2, 1 + (int)(generator_bits(&g) % 100));
    sqlite3_bind_int(st, 3, 1 + (int)(generator_bits(&g) % 65535));
    ok = sqlite3_step(st) == SQLITE_DONE && sqlite3_reset(st) == SQLITE_OK;
  }
  sqlite3_finalize(st);
  ok = ok &&
       sqlite3_exec(t->b.db, "COMMIT; CREATE UNIQUE INDEX t1 ON t(c1)", NULL, NULL, NULL) ==
           SQLITE_OK &&
       warplite_enable(t->b.db) == SQLITE_OK &&
       sqlite3_exec(t->b.db, "SELECT warplite_load('t')", NULL, NULL, NULL) == SQLITE_OK;
  if (!ok) snprintf(why, WHY, "making the table: %s", sqlite3_errmsg(t->b.db));
  free(perm);
  return ok;
}

static bool settings(struct turning *t, int who, char *why) {
  if (!whos[who].engine) return true;
  return (!whos[who].device || set_one(t->b.db, "device", whos[who].device, why)) &&
         set_one(t->b.db, "engine", whos[who].engine, why) &&
         set_one(t->b.db, "route", whos[who].route, why);
}

/* One run in microseconds; negative, with why, when it failed. */
static double once(struct turning *t, int who, const char *sql, struct digest *d, char *why) {
  bool full = d->full;
  memset(d, 0, sizeof *d);
  d->full = full;
  double start = now_ms();
  if (who == BATCH) {
    struct ArrowArrayStream stream = {0};
    if (warplite_query(t->b.db, sql, &stream) != SQLITE_OK) {
      snprintf(why, WHY, "%s", warplite_errmsg(t->b.db));
      return -1;
    }
    if (!digest_arrow(d, &stream, why, WHY)) return -1;
  } else {
    sqlite3_stmt *st = NULL;
    int rc = (who == SQLITE ? sqlite3_prepare_v2 : warplite_prepare)(t->b.db, sql, -1, &st, NULL);
    if (rc == SQLITE_OK) rc = digest_sqlite(d, st);
    int rc2 = sqlite3_finalize(st);
    if (rc != SQLITE_OK || rc2 != SQLITE_OK) {
      snprintf(why, WHY, "%s", sqlite3_errmsg(t->b.db));
      return -1;
    }
  }
  return (now_ms() - start) * 1e3;
}

/* Whether the answers are the same; SQLite gives selected rows in the order of its index. */
static bool same(const struct function *f, const struct digest *a, const struct digest *b) {
  return strcmp(f->name, "selection") == 0 ? digest_same_bag(a, b, 0) : digest_equal(a, b);
}

static void measure(struct turning *t, const struct function *f, const char *sql,
                    struct point *out) {
  static double us[N_WHO][MAX_TIMES];
  char why[WHY] = "";
  struct digest want = {0};
  bool on[N_WHO];
  memset(out, 0, sizeof *out);
  for (int who = 0; who < N_WHO; who++) {
    struct digest d = {.full = true};
    on[who] =
        (who != CUDA || t->has_cuda) && settings(t, who, why) && once(t, who, sql, &d, why) >= 0;
    if (who == CUDA && !t->has_cuda) continue;
    if (who == SQLITE) want = d;
    if (!on[who]) {
      failure(t, sql, whos[who].name, why);
      continue;
    }
    if (!same(f, &want, &d)) failure(t, sql, whos[who].name, "the answer is not SQLite's");
    if (who == SQLITE) continue;
    const char *reason = warplite_reason(t->b.db);
    if (t->verbose) printf("%s\n  %s: %s\n", sql, whos[who].name, reason);
    if (who == COST)
      snprintf(out->ran, sizeof out->ran, "%.*s", (int)strcspn(reason, ":"), reason);
    else
      out->elsewhere[who] = strncmp(reason, whos[who].engine, strlen(whos[who].engine)) != 0;
  }
  for (int run = 0; run < t->n_runs; run++) {
    for (int who = 0; who < N_WHO; who++) {
      struct digest d = {.full = false};
      if (!on[who] || !settings(t, who, why)) continue;
      us[who][run] = once(t, who, sql, &d, why);
      if (us[who][run] >= 0) continue;
      failure(t, sql, whos[who].name, why);
      on[who] = false;
    }
  }
  for (int who = 0; who < N_WHO; who++) {
    if (!on[who]) continue;
    qsort(us[who], (size_t)t->n_runs, sizeof(double), compare_doubles);
    out->us[who] = sorted_median(us[who], t->n_runs);
  }
}

/* The share in percent from which on the side wins; negative: it does not, up to the largest. */
static double turning_point(const struct point *p, int who, int n_rows) {
  int k = N_COUNTS;
  while (k > 0 && p[k - 1].us[who] > 0 && p[k - 1].us[who] < p[k - 1].us[SQLITE]) k--;
  if (k == N_COUNTS) return -1;
  double rows = counts[k];
  if (k > 0) {
    double before = p[k - 1].us[who] - p[k - 1].us[SQLITE], after = p[k].us[SQLITE] - p[k].us[who];
    rows = counts[k - 1] + (counts[k] - counts[k - 1]) * before / (before + after);
  }
  return 100.0 * rows / n_rows;
}

static void put_point(double percent, bool first, int width) {
  char text[32];
  if (percent < 0)
    snprintf(text, sizeof text, "none");
  else
    snprintf(text, sizeof text, "%s%.3f %%", first ? "<= " : "", percent);
  printf("%*s", width, text);
}

/* One table's rows of the report; its share in the JSON file. */
static void report(const struct function *f, int n_rows, const struct point *p, struct json *j,
                   int *n_over) {
  for (int k = 0; k < N_COUNTS; k++) {
    double bar = BAR_TIMES * p[k].us[SQLITE] + BAR_US;
    bool over = p[k].us[COST] > bar;
    *n_over += over;
    printf("%-10s%9d%8d%9.3f%11.1f", f->name, n_rows, counts[k], 100.0 * counts[k] / n_rows,
           p[k].us[SQLITE]);
    printf("%11.1f %-7s", p[k].us[COST], p[k].ran);
    for (int who = CPU; who < N_WHO; who++) {
      if (p[k].us[who] > 0)
        printf("%11.1f%s", p[k].us[who], p[k].elsewhere[who] ? "*" : " ");
      else
        printf("%12s", "-");
    }
    printf("%s\n", over ? "  over the bar" : "");
    json_open(j, NULL, '{');
    json_string(j, "function", f->name);
    json_number(j, "rows", n_rows);
    json_number(j, "selected", counts[k]);
    for (int who = 0; who < N_WHO; who++)
      if (p[k].us[who] > 0) json_number(j, whos[who].name, p[k].us[who]);
    json_string(j, "cost_ran", p[k].ran);
    json_bool(j, "over_bar", over);
    json_close(j, '}');
  }
  fflush(stdout);
}

static int run(struct turning *t, struct json *j) {
  static struct point p[N_FUNCTIONS][N_SIZES][N_COUNTS];
  char why[WHY] = "", sql[256];
  int n_over = 0;
  printf("medians of %d runs, microseconds; * ran elsewhere than was asked\n\n", t->n_runs);
  printf("%-10s%9s%8s%9s%11s%11s %-7s%11s %11s %11s\n", "function", "rows", "select", "percent",
         "sqlite", "cost", "by", "cpu", "cpu batch", "cuda");
  json_open(j, "points", '[');
  for (int s = 0; s < N_SIZES; s++) {
    if (!make(t, sizes[s], why)) {
      failure(t, "t", "sqlite", why);
      sqlite3_close(t->b.db);
      continue;
    }
    struct digest d = {.full = false};
    t->has_cuda = settings(t, CUDA, why) && once(t, CUDA, "SELECT max(c3) FROM t", &d, why) >= 0 &&
                  strncmp(warplite_reason(t->b.db), "gpu", 3) == 0;
    for (int f = 0; f < N_FUNCTIONS; f++) {
      for (int k = 0; k < N_COUNTS; k++) {
        snprintf(sql, sizeof sql, functions[f].sql, counts[k]);
        measure(t, &functions[f], sql, &p[f][s][k]);
      }
      report(&functions[f], sizes[s], p[f][s], j, &n_over);
    }
    sqlite3_close(t->b.db);
  }
  json_close(j, ']');

  static const int shown[] = {CPU, BATCH, CUDA};
  printf("\nturning points with route=always, percent of the table (published: on the GPU of "
         "2012)\n\n");
  printf("%-10s%9s%16s%16s%16s%12s\n", "function", "rows", "cpu", "cpu batch", "cuda", "published");
  json_open(j, "turning_points", '[');
  for (int f = 0; f < N_FUNCTIONS; f++) {
    for (int s = 0; s < N_SIZES; s++) {
      printf("%-10s%9d", functions[f].name, sizes[s]);
      json_open(j, NULL, '{');
      json_string(j, "function", functions[f].name);
      json_number(j, "rows", sizes[s]);
      for (int k = 0; k < 3; k++) {
        int who = shown[k];
        if (p[f][s][0].us[who] <= 0 || p[f][s][0].elsewhere[who]) {
          printf("%16s", "-");
          continue;
        }
        double at = turning_point(p[f][s], who, sizes[s]);
        put_point(at, at * sizes[s] / 100 <= counts[0], 16);
        json_number(j, whos[who].name, at);
      }
      printf("%10.3f %%\n", functions[f].theirs);
      json_close(j, '}');
    }
  }
  json_close(j, ']');
  printf("\nroute=cost against %.2f x SQLite + %.0f us: %d of %d over the bar\n", BAR_TIMES, BAR_US,
         n_over, N_FUNCTIONS * N_SIZES * N_COUNTS);
  json_number(j, "over_bar", n_over);
  return n_over;
}

int main(int argc, char **argv) {
  static struct turning t = {.n_runs = 50};
  const char *path = "bench/out/turning.json";
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "-v") == 0) {
      t.verbose = true;
    } else if (strcmp(argv[i], "--quick") == 0) {
      t.n_runs = 5;
    } else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
      path = argv[++i];
    } else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0 &&
               atoi(argv[i + 1]) <= MAX_TIMES) {
      t.n_runs = atoi(argv[++i]);
    } else {
      fprintf(stderr, "usage: turning [--runs N (1 to %d)] [--quick] [--json FILE] [-v]\n",
              MAX_TIMES);
      return 2;
    }
  }
  struct json j = json_create(path);
  if (!j.out) {
    fprintf(stderr, "turning: cannot write %s: %s\n", path, strerror(errno));
    return 2;
  }
  json_open(&j, NULL, '{');
  json_facts(&j, &t.b);
  json_number(&j, "runs", t.n_runs);
  int n_over = run(&t, &j);
  json_number(&j, "failures", t.n_failures);
  json_close(&j, '}');
  fputc('\n', j.out);
  if (fclose(j.out) != 0) {
    fprintf(stderr, "turning: cannot write %s\n", path);
    return 2;
  }
  printf("written: %s\n", path);
  return t.n_failures || n_over ? 1 : 0;
}
