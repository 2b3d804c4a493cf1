/*
** The benchmark: the 13 queries of the Sphyraena paper, the 10 of the Virginian code and a
** suite of one-table questions, on SQLite, DuckDB and warplite, every answer compared with
** SQLite's.
**
** This file holds the options and the loop over suites. The queries and data are in suite.h and
** onetable.h, the files in tables.h, the sides in side.h and duck.h, the runs in measure.h, reading
** and comparing results in digest.h, output in report.h and json.h, the small-table check in
** small.h.
**
** The exit status is 0 only if every answer was SQLite's and every warplite side ran on the engine
** it asked for; in the one-table suite it may run elsewhere, and the report says why. A side that
** is absent is left out with a word.
*/

#include <errno.h>
#include "report.h"
#include "side.h"
#include "small.h"
#include "suite.h"
#include "tables.h"

#define SIM_MAX_ROWS  200000
#define QUICK_ROWS    200000
#define DEFAULT_SIDES "sqlite,duckdb,cpu1,cpu,cuda,prepare,prepare-cuda"

struct options {
  int64_t n_rows; /* 0: each suite's own */
  const char *suite;
  const char *only; /* names of queries by commas; NULL: all */
  const char *sides;
  const char *json;
  const char *duck_path;
  const char *data; /* folder of the files */
  const char *threads;
  bool small;
};

static void usage(FILE *out) {
  fprintf(out,
          "usage: bench [options]\n"
          "  --suite s|v|t|all  Sphyraena, Virginian, one table; several letters are several\n"
          "                     (default: all)\n"
          "  --only LIST        these queries only, by commas\n"
          "  --rows N           rows of the table (default: 5000000, Virginian 8000000)\n"
          "  --times LIST       of cold, fresh and repeated, by commas (default: all three)\n"
          "  --threads LIST     numbers of threads, by commas: a column each (default: all cores)\n"
          "  --runs N           timed runs a query and side (default: 5; SQLite: 3)\n"
          "  --quick            %d rows, 3 runs\n"
          "  --small            only the check on a table of 100 rows\n"
          "  --engines LIST     sides, by commas (default: %s)\n"
          "                     SQLite always checks the answers; it is timed only if listed\n"
          "  --duckdb FILE      DuckDB's shared library; bench/run fetches it\n"
          "  --duckdb-float     4-byte reals in DuckDB; rows at the edge may differ\n"
          "  --no-duckdb        leave DuckDB out\n"
          "  --set NAME=VALUE   a setting for warplite, any number of times\n"
          "  --data FOLDER      where the files are kept (default: bench/out)\n"
          "  --json FILE        where the results go (default: bench/out/result.json)\n"
          "  -v                 print what warplite_reason() says of each query\n"
          "sides:\n",
          QUICK_ROWS, DEFAULT_SIDES);
  for (int s = 0; s < N_KNOWN_SIDES; s++)
    fprintf(out, "  %-16s %s\n", known_sides[s].name, known_sides[s].what);
}

/* Leaves out the sides that this machine or this size has no room for, with a word. */
static void probe_sides(struct bench *b, int64_t n_rows) {
  for (int s = 0; s < b->n_sides; s++) {
    if (!b->on[s] || !b->sides[s].device || strcmp(b->sides[s].device, "sim") != 0) continue;
    if (n_rows <= SIM_MAX_ROWS) continue;
    printf("%s: left out (the simulator is for checking; ask for %d rows or fewer)\n",
           b->sides[s].name, SIM_MAX_ROWS);
    b->on[s] = false;
  }
  probe_devices(b, "SELECT max(id) FROM test");
}

/* Fills the files, and sees which sides there are. Leaves no connection open. */
static bool prepare_suite(struct bench *b, const struct suite *u, const char *folder,
                          int64_t n_rows, char *why) {
  if (!make_files(b, folder, u, n_rows, why) || !open_file(b, true, why)) return false;
  if (!set_extra(b, why)) return false; /* a bad --set is said once, not once a query */
  for (int s = 0; s < b->n_sides; s++)
    if (u->strings && b->sides[s].kind == SIDE_ROWS) b->on[s] = false;
  probe_sides(b, n_rows);
  close_file(b);
  return true;
}

/* Fills results, and pointers to them, one a query. Returns how many there are. */
static int run_suite(struct bench *b, const struct suite *u, const struct options *o,
                     struct result *results, struct result **pointers, struct json *j) {
  int n = 0;
  bool wanted[MAX_SIDES], ok = false;
  int64_t n_rows = o->n_rows ? o->n_rows : u->n_rows;
  char why[WHY] = "", title[128], letter[2] = {u->letter, '\0'};
  memcpy(wanted, b->on, sizeof wanted);
  if (!prepare_suite(b, u, o->data, n_rows, why)) goto done;
  for (int q = 0; q < u->n_queries; q++) {
    if (o->only && !in_list(o->only, u->queries[q].name)) continue;
    pointers[n] = &results[n];
    if (!result_start(&results[n++], b, letter, &u->queries[q], why)) goto done;
  }
  b->lenient = u->strings;
  measure_all_cold(b, results, n);
  if (b->times[FRESH] || b->times[REPEATED]) {
    if (!open_file(b, true, why)) goto done;
    if (has_duck(b) && !duck_copy(&b->duck, b->duck_file, why, sizeof why)) leave_out_duck(b, why);
    measure_all_warm(b, results, n);
  }
  snprintf(title, sizeof title, "%s, %lld rows", u->title, (long long)n_rows);
  report_tables(b, title, pointers, n);
  json_open(j, NULL, '{');
  json_string(j, "suite", u->title);
  json_number(j, "rows", (double)n_rows);
  if (b->db) json_devices(j, b->db);
  json_queries(j, b, pointers, n);
  json_sums(j, b, pointers, n);
  json_close(j, '}');
  ok = true;
done:
  if (!ok) {
    fprintf(stderr, "bench: %s: %s\n", u->title, why);
    b->n_failures++;
  }
  if (b->duck.lib) duck_close(&b->duck);
  close_file(b);
  memcpy(b->on, wanted, sizeof wanted);
  b->lenient = false;
  return ok ? n : 0;
}

/* The queries that are asked of every engine in one list, across the suites. */
static void verdict(const struct bench *b, struct result **all, int n, struct json *j) {
  int n_listed = 0;
  for (int q = 0; q < n; q++)
    if (all[q]->query->listed) all[n_listed++] = all[q];
  if (n_listed == 0) return;
  printf("\n%d listed queries\n", n_listed);
  for (int kind = 0; kind < N_TIMES; kind++)
    if (b->times[kind]) put_judgement(b, all, n_listed, (enum time_kind)kind);
  json_open(j, "verdict", '{');
  json_sums(j, b, all, n_listed);
  json_close(j, '}');
}

static bool run_suites(struct bench *b, const struct options *o, struct json *j) {
  enum { N_SUITES = sizeof suites / sizeof *suites };
  int n_most = 0, n = 0;
  for (int i = 0; i < N_SUITES; i++) n_most += suites[i].n_queries;
  struct result *results = calloc((size_t)n_most, sizeof *results);
  struct result **pointers = calloc((size_t)n_most, sizeof *pointers);
  if (!results || !pointers) return false;
  json_open(j, "suites", '[');
  for (int i = 0; i < N_SUITES; i++) {
    if (!strchr(o->suite, suites[i].letter)) continue;
    n += run_suite(b, &suites[i], o, results + n, pointers + n, j);
  }
  json_close(j, ']');
  verdict(b, pointers, n, j);
  for (int q = 0; q < n_most; q++) result_free(&results[q]);
  free(results);
  free(pointers);
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
      } else if (strcmp(name, "--only") == 0) {
        o->only = value;
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
      } else if (strcmp(name, "--data") == 0) {
        o->data = value;
      } else if (strcmp(name, "--threads") == 0) {
        o->threads = value;
      } else if (strcmp(name, "--times") == 0) {
        if (!choose_times(b, value)) {
          fprintf(stderr, "bench: --times is a list of cold, fresh and repeated, not %s\n", value);
          return 3;
        }
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
  if (!choose_sides(b, o->sides, o->threads)) return 3;
  if (!b->on[0]) b->n_sqlite_runs = 0;
  b->on[0] = true; /* the others are compared with SQLite, which is timed only where it is listed */
  if (!o->small) find_duck(b, o->duck_path, duckdb);
  return 0;
}

int main(int argc, char **argv) {
  static struct bench b = {.n_runs = 5, .n_sqlite_runs = 3, .times = {true, true, true}};
  struct options o = {.suite = "all", .sides = DEFAULT_SIDES, .data = "bench/out"};
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
  if (o.small) {
    small_run(&b, &j);
  } else if (!run_suites(&b, &o, &j)) {
    fprintf(stderr, "bench: out of memory\n");
    return 2;
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
