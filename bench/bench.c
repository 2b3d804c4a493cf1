/*
** The benchmark: the 13 queries of the Sphyraena paper, the 10 of the Virginian code and a
** suite of one-table questions, on SQLite, DuckDB and warplite, every answer compared with
** SQLite's.
**
** This file holds the options and the loop over suites, queries and runs. The queries
** and data are in suite.h and onetable.h, the sides in side.h and duck.h, reading and
** comparing results in digest.h, output in report.h and verdict.h, the small-table check in
** small.h.
**
** 1. All sides run in one process and take turns run by run, so that whatever slows the
**    machine for a while slows all of them.
** 2. Before any timed run of a query each side has run it once to warm up and once to be
**    checked against SQLite in full; timed runs only touch the results, but their row
**    counts are compared too.
** 3. The exit status is 0 only if every answer was SQLite's and every warplite side ran
**    on the engine it asked for; in the one-table suite it may run elsewhere, and the
**    report says why. A side that is absent is left out with a word.
*/

#include <errno.h>
#include "report.h"
#include "side.h"
#include "small.h"
#include "suite.h"
#include "verdict.h"

#define REAL_SUM_TOLERANCE 1e-12
#define SIM_MAX_ROWS       200000
#define QUICK_ROWS         200000
#define DEFAULT_SIDES      "sqlite,duckdb,cpu1,cpu,cuda,prepare,prepare-cuda"

struct options {
  int64_t n_rows; /* 0: each suite's own */
  const char *suite;
  const char *sides;
  const char *json;
  const char *duck_path;
  bool small;
};

static void usage(FILE *out) {
  fprintf(out,
          "usage: bench [options]\n"
          "  --suite s|v|t|all  Sphyraena, Virginian, one table; several letters are several\n"
          "                     (default: all)\n"
          "  --rows N           rows of the table (default: 5000000, Virginian 8000000)\n"
          "  --runs N           timed runs a query and side (default: 5; SQLite: 3)\n"
          "  --quick            %d rows, 3 runs\n"
          "  --small            only the check on a table of 100 rows\n"
          "  --engines LIST     sides, by commas (default: %s)\n"
          "                     SQLite always checks the answers; it is timed only if listed\n"
          "  --duckdb FILE      DuckDB's shared library; bench/run fetches it\n"
          "  --duckdb-float     4-byte reals in DuckDB; rows at the edge may differ\n"
          "  --no-duckdb        leave DuckDB out\n"
          "  --set NAME=VALUE   a setting for warplite, any number of times\n"
          "  --keep 0|1         0: no lookup outlives its statement (default: 1)\n"
          "  --json FILE        where the results go (default: bench/out/result.json)\n"
          "  -v                 print what warplite_reason() says of each query\n"
          "sides:\n",
          QUICK_ROWS, DEFAULT_SIDES);
  for (int s = 0; s < N_SIDES; s++) fprintf(out, "  %-16s %s\n", sides[s].name, sides[s].what);
}

/* A sum of reals may differ from SQLite's in its last digits, nothing else may differ. */
static bool same_answer(struct bench *b, const struct query *q, int side, const struct digest *want,
                        const struct digest *got, char *why) {
  if (q->abs_sql) {
    struct digest sum = {.full = true};
    double ms;
    if (!side_run(b, &sides[0], q->abs_sql, &sum, &ms, why)) return false;
    double error = fabs(got->first_real - want->first_real);
    if (got->n_rows == 1 && got->n_columns == want->n_columns && got->has_first_real &&
        error <= REAL_SUM_TOLERANCE * sum.first_real)
      return true;
    snprintf(why, WHY, "%.17g, SQLite has %.17g", got->first_real, want->first_real);
    return false;
  }
  bool bag = q->duck_bag && sides[side].kind == SIDE_DUCK;
  if (bag ? digest_same_bag(want, got, q->duck_order) : digest_equal(want, got)) return true;
  snprintf(why, WHY, "%lld rows of %d columns, checksum %016llx; SQLite has %lld of %d, %016llx",
           (long long)got->n_rows, got->n_columns, (unsigned long long)digest_all(got),
           (long long)want->n_rows, want->n_columns, (unsigned long long)digest_all(want));
  return false;
}

static void fail(struct bench *b, const struct query *q, int side, const char *why) {
  fprintf(stderr, "bench: %s on %s: %s\n", q->name, sides[side].name, why);
  b->n_failures++;
}

/* Warm-up and check of one query on every side, then the timed runs by turns. */
static void run_query(struct bench *b, const struct query *q, struct result *r) {
  struct digest want = {0};
  char why[WHY] = "";
  double ms;
  memset(r, 0, sizeof *r);
  r->query = q;
  for (int s = 0; s < N_SIDES; s++) {
    struct digest touch = {.full = false}, got = {.full = true};
    struct timing *t = &r->side[s];
    if (!b->on[s]) continue;
    bool first = s > 0 || b->n_sqlite_runs > 0;
    if ((first && !side_run(b, &sides[s], q->sql, &touch, &t->first_ms, why)) ||
        !side_run(b, &sides[s], q->sql, &got, &ms, why)) {
      fail(b, q, s, why);
      continue;
    }
    if (sides[s].engine) {
      snprintf(t->reason, sizeof t->reason, "%s", warplite_reason(b->db));
      t->elsewhere = !ran_there(b, &sides[s]);
      if (b->verbose) printf("%-4s %-12s %s\n", q->name, sides[s].name, t->reason);
    }
    if (s == 0) {
      want = got;
      r->n_rows = got.n_rows;
    }
    t->same = same_answer(b, q, s, &want, &got, why);
    if (!t->same) fail(b, q, s, why);
  }
  for (int run = 0; run < b->n_runs || run < b->n_sqlite_runs; run++) {
    for (int s = 0; s < N_SIDES; s++) {
      struct digest touch = {.full = false};
      struct timing *t = &r->side[s];
      int n_runs = s == 0 ? b->n_sqlite_runs : t->elsewhere ? 1 : b->n_runs;
      if (!b->on[s] || !t->same || run >= n_runs) continue;
      if (!side_run(b, &sides[s], q->sql, &touch, &ms, why)) {
        fail(b, q, s, why);
        t->same = false;
      } else if (touch.n_rows != r->n_rows) {
        fail(b, q, s, "a timed run had another number of rows");
        t->same = false;
      } else {
        t->ms[t->n++] = ms;
      }
    }
  }
  for (int s = 0; s < N_SIDES; s++) {
    struct timing *t = &r->side[s];
    if (!t->same) t->n = 0;
    qsort(t->ms, (size_t)t->n, sizeof *t->ms, compare_doubles);
  }
}

/* Leaves out the sides that this machine or this size has no room for, with a word. */
static void probe_sides(struct bench *b, int64_t n_rows) {
  char why[WHY];
  for (int s = 0; s < N_SIDES; s++) {
    struct digest touch = {.full = false};
    double ms;
    if (!b->on[s] || !sides[s].device) continue;
    if (strcmp(sides[s].device, "sim") == 0) {
      if (n_rows <= SIM_MAX_ROWS) continue; /* it is always there: a failure is a failure */
      snprintf(why, sizeof why, "the simulator is for checking; ask for %d rows or fewer",
               SIM_MAX_ROWS);
    } else if (side_run(b, &sides[s], "SELECT max(id) FROM test", &touch, &ms, why)) {
      continue;
    }
    printf("%s: left out (%s)\n", sides[s].name, why);
    b->on[s] = false;
  }
}

static bool run_suite(struct bench *b, const struct suite *u, int64_t n_rows, struct json *j,
                      struct verdict *v) {
  struct result *results = calloc((size_t)u->n_queries, sizeof *results);
  bool wanted[N_SIDES], ok = false;
  char why[WHY] = "out of memory";
  memcpy(wanted, b->on, sizeof wanted);
  if (!results || !sqlite_load(&b->db, u, n_rows, why)) goto done;
  if (warplite_enable(b->db) != SQLITE_OK) {
    snprintf(why, sizeof why, "warplite_enable: %s", warplite_errmsg(b->db));
    goto done;
  }
  if (!set_extra(b, why)) goto done; /* a bad --set is said once, not once a query */
  for (int s = 0; s < N_SIDES; s++) {
    if (!b->on[s] || sides[s].kind != SIDE_DUCK) continue;
    if (duck_load(&b->duck, u, n_rows, b->duck_float, why, sizeof why)) continue;
    printf("duckdb: left out (%s)\n", why);
    b->on[s] = false;
  }
  for (int s = 0; s < N_SIDES; s++)
    if (u->strings && sides[s].kind == SIDE_ROWS) b->on[s] = false;
  probe_sides(b, n_rows);
  b->lenient = u->strings;
  for (int q = 0; q < u->n_queries; q++) run_query(b, &u->queries[q], &results[q]);
  report_table(b, u, n_rows, results, u->n_queries);
  json_suite(j, b, u, n_rows, results, u->n_queries);
  if (u->strings) report_ratios(b, results, u->n_queries);
  for (int q = 0; q < u->n_queries; q++) verdict_add(v, b, &results[q]);
  ok = true;
done:
  if (!ok) {
    fprintf(stderr, "bench: %s: %s\n", u->title, why);
    b->n_failures++;
  }
  if (b->duck.lib) duck_close(&b->duck);
  sqlite3_close(b->db);
  b->db = NULL;
  memcpy(b->on, wanted, sizeof wanted);
  b->lenient = false;
  free(results);
  return ok;
}

static bool choose_sides(struct bench *b, const char *list) {
  for (const char *p = list; *p;) {
    size_t n = strcspn(p, ",");
    bool known = false;
    for (int s = 0; s < N_SIDES; s++) {
      if (strlen(sides[s].name) != n || strncmp(sides[s].name, p, n) != 0) continue;
      b->on[s] = known = true;
    }
    if (!known) {
      fprintf(stderr, "bench: no side is called \"%.*s\"\n", (int)n, p);
      return false;
    }
    p += n + (p[n] == ',');
  }
  if (!b->on[0]) b->n_sqlite_runs = 0;
  b->on[0] = true; /* the others are compared with SQLite, which is timed only where it is listed */
  return true;
}

static bool parse_count(const char *text, int64_t max, int64_t *out) {
  char *end;
  errno = 0;
  *out = strtoll(text, &end, 10);
  if (*text && !*end && !errno && *out >= 1 && *out <= max) return true;
  fprintf(stderr, "bench: %s is not a number from 1 to %lld\n", text, (long long)max);
  return false;
}

/* 0: go on; else the exit status and one. */
static int parse_options(struct bench *b, struct options *o, int argc, char **argv) {
  bool duckdb = true;
  for (int i = 1; i < argc; i++) {
    const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
    int64_t n;
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
      usage(stdout);
      return 1;
    } else if (strcmp(name, "-v") == 0) {
      b->verbose = true;
    } else if (strcmp(name, "--quick") == 0) {
      o->n_rows = QUICK_ROWS;
      b->n_runs = b->n_sqlite_runs = 3;
    } else if (strcmp(name, "--small") == 0) {
      o->small = true;
    } else if (strcmp(name, "--no-duckdb") == 0) {
      duckdb = false;
    } else if (strcmp(name, "--duckdb-float") == 0) {
      b->duck_float = true;
    } else if (!value) {
      fprintf(stderr, "bench: %s is unknown or wants a value\n", name);
      usage(stderr);
      return 3;
    } else {
      i++;
      if (strcmp(name, "--rows") == 0) {
        if (!parse_count(value, INT32_MAX, &o->n_rows)) return 3;
      } else if (strcmp(name, "--runs") == 0) {
        if (!parse_count(value, MAX_RUNS, &n)) return 3;
        b->n_runs = (int)n;
        if (b->n_sqlite_runs > b->n_runs) b->n_sqlite_runs = b->n_runs;
      } else if (strcmp(name, "--suite") == 0) {
        o->suite = value;
      } else if (strcmp(name, "--engines") == 0) {
        o->sides = value;
      } else if (strcmp(name, "--json") == 0) {
        o->json = value;
      } else if (strcmp(name, "--duckdb") == 0) {
        o->duck_path = value;
      } else if (strcmp(name, "--set") == 0) {
        char *equals = strchr(argv[i], '=');
        if (equals) *equals = '\0';
        if (!equals || !add_setting(b, argv[i], equals + 1)) {
          fprintf(stderr, "bench: --set wants name=value, at most %d times\n", MAX_SETS);
          return 3;
        }
      } else if (strcmp(name, "--keep") == 0) {
        if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) {
          fprintf(stderr, "bench: --keep is 0 or 1, not %s\n", value);
          return 3;
        }
        add_setting(b, "keep", value);
      } else {
        fprintf(stderr, "bench: unknown option %s\n", name);
        usage(stderr);
        return 3;
      }
    }
  }
  if (strcmp(o->suite, "all") == 0) o->suite = "svt";
  if (!*o->suite || o->suite[strspn(o->suite, "svt")]) {
    fprintf(stderr, "bench: --suite is of the letters s, v and t, or all\n");
    return 3;
  }
  if (!choose_sides(b, o->sides)) return 3;
  for (int s = 0; s < N_SIDES; s++) {
    char why[WHY] = "its library was not named; bench/run fetches it";
    if (sides[s].kind != SIDE_DUCK || !b->on[s] || o->small) continue;
    if (duckdb && o->duck_path && duck_find(&b->duck, o->duck_path, why, sizeof why)) continue;
    if (duckdb) printf("duckdb: left out (%s)\n", why);
    b->duck.lib = NULL;
    b->on[s] = false;
  }
  return 0;
}

int main(int argc, char **argv) {
  static struct verdict v;
  static struct bench b = {.n_runs = 5, .n_sqlite_runs = 3};
  struct options o = {.suite = "all", .sides = DEFAULT_SIDES};
  int rc = parse_options(&b, &o, argc, argv);
  if (rc) return rc - 1;
  if (!o.json) o.json = o.small ? "bench/out/small.json" : "bench/out/result.json";

  struct json j = json_create(o.json);
  if (!j.out) {
    fprintf(stderr, "bench: cannot write %s: %s\n", o.json, strerror(errno));
    return 2;
  }
  json_open(&j, NULL, '{');
  json_facts(&j, &b);
  json_string(&j, "keep", keep_of(&b));
  if (o.small) {
    small_run(&b, &j);
  } else {
    json_open(&j, "suites", '[');
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
      if (!strchr(o.suite, suites[i].letter)) continue;
      run_suite(&b, &suites[i], o.n_rows ? o.n_rows : suites[i].n_rows, &j, &v);
    }
    json_close(&j, ']');
    verdict_print(&v, &j);
  }
  json_number(&j, "failures", b.n_failures);
  json_close(&j, '}');
  fputc('\n', j.out);
  if (fclose(j.out) != 0) {
    fprintf(stderr, "bench: cannot write %s\n", o.json);
    return 2;
  }
  printf("\nwritten: %s\n", o.json);
  if (b.n_failures) fprintf(stderr, "bench: %d failures\n", b.n_failures);
  return b.n_failures ? 1 : 0;
}
