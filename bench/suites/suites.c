/*
** The suites of several tables: the Star Schema Benchmark, TPC-H and the queries of the 2014
** paper, on SQLite, DuckDB and warplite. `bench/run BUILD --suite NAME` runs this program;
** with --check it is the test that test/run runs.
**
** This file holds the options. The tables are made by ssb.c, tpch.c and works.c into the
** sinks of store.c; the queries are in bench/queries (queries.c), with literals that change
** (literals.c); measure.c runs, compares and prints, check.c tests.
**
** The exit status is 0 only if every answer was the right one; with --check, only if also
** every query ran on the engine that was asked for.
*/
#include <errno.h>
#include "../../test/tap.h"
#include "run.h"

#define DEFAULT_SIDES "sqlite,duckdb,cpu,cuda"

const struct many suites_of_tables[3] = {
    {"ssb", "Star Schema Benchmark", "of scale factor 1", &ssb_tables, 0.2,
     "SELECT max(lo_tax) FROM lineorder"},
    {"tpch", "TPC-H", "of scale factor 1", &tpch_tables, 0.1,
     "SELECT max(l_quantity) FROM lineitem"},
    {"w", "Digital humanities", "million documents and authors", &works_tables, 1,
     "SELECT max(nameid) FROM Authors"},
};
enum { N_MANY = 3 };

struct options {
  const char *suite, *sides, *json, *duck_path;
  const char *threads;
  bool check, no_sqlite, no_duckdb;
};

static void usage(FILE *out) {
  fprintf(
      out,
      "usage: suites [options]\n"
      "  --suite LIST       of ssb, tpch and w, by commas, or all (default: all)\n"
      "  --scale X          scale factor; of w: million documents and authors (default: ssb\n"
      "                     0.2, tpch 0.1, w 1; with --check 0.01)\n"
      "  --only LIST        these queries only, by commas\n"
      "  --times LIST       of cold, fresh and repeated, by commas (default: all three)\n"
      "  --threads LIST     numbers of threads, by commas: a column each (default: all cores)\n"
      "  --runs N           timed runs a query and side (default: 5; SQLite: 3)\n"
      "  --engines LIST     sides, by commas (default: " DEFAULT_SIDES ")\n"
      "  --no-sqlite        leave SQLite out: DuckDB's answers are then the right ones\n"
      "  --sqlite-limit S   stop a statement in SQLite after S seconds (default: 20; 0: never)\n"
      "  --duckdb FILE      DuckDB's shared library; bench/run fetches it\n"
      "  --no-duckdb        leave DuckDB out\n"
      "  --set NAME=VALUE   a setting for warplite, any number of times\n"
      "  --cached           columns stay on the device: --set transfer=cached\n"
      "  --uncached         columns go there for every query: --set transfer=serial\n"
      "  --keys             declare keys of several columns too, which are indexes in SQLite\n"
      "  --data FOLDER      where the files are kept (default: bench/out)\n"
      "  --queries FOLDER   where the queries are (default: bench/queries)\n"
      "  --json FILE        where the results go (default: bench/out/suites.json)\n"
      "  --check            test: every query against SQLite, and native; a device may\n"
      "                     leave a step to the CPU, and says so\n"
      "  --engine NAME      what is tested: cpu, sim or cuda (default: cpu)\n"
      "  --allow-sqlite     test: a query that is not native may run in SQLite\n"
      "  -v                 print what warplite_reason() says of each query\n"
      "sides:\n");
  for (int s = 0; s < N_KNOWN_SIDES; s++)
    fprintf(out, "  %-16s %s\n", known_sides[s].name, known_sides[s].what);
}

bool query_wanted(const struct plan *p, const char *name) {
  return !p->only || in_list(p->only, name);
}

double scale_of(const struct plan *p, const struct many *u) {
  return p->scale > 0 ? p->scale : u->scale;
}

static bool wrong(const char *format, const char *what) {
  fprintf(stderr, "suites: ");
  fprintf(stderr, format, what);
  fputc('\n', stderr);
  return false;
}

static bool parse_number(const char *text, double least, double most, double *out) {
  char *end;
  *out = strtod(text, &end);
  if (*text && !*end && *out >= least && *out <= most) return true;
  return wrong("%s is no number that makes sense here", text);
}

static bool parse_value(struct plan *p, struct options *o, const char *name, char *value) {
  double number;
  if (strcmp(name, "--suite") == 0) {
    o->suite = value;
  } else if (strcmp(name, "--scale") == 0) {
    return parse_number(value, 0.0001, 100, &p->scale);
  } else if (strcmp(name, "--only") == 0) {
    p->only = value;
  } else if (strcmp(name, "--runs") == 0) {
    if (!parse_number(value, 1, MAX_RUNS, &number)) return false;
    p->b.n_runs = (int)number;
    if (p->b.n_sqlite_runs > p->b.n_runs) p->b.n_sqlite_runs = p->b.n_runs;
  } else if (strcmp(name, "--engines") == 0) {
    o->sides = value;
  } else if (strcmp(name, "--sqlite-limit") == 0) {
    return parse_number(value, 0, 1e6, &p->b.sqlite_limit_s);
  } else if (strcmp(name, "--duckdb") == 0) {
    o->duck_path = value;
  } else if (strcmp(name, "--data") == 0) {
    p->data = value;
  } else if (strcmp(name, "--queries") == 0) {
    p->queries = value;
  } else if (strcmp(name, "--json") == 0) {
    o->json = value;
  } else if (strcmp(name, "--engine") == 0) {
    p->engine = value;
  } else if (strcmp(name, "--set") == 0) {
    char *equals = strchr(value, '=');
    if (!equals) return wrong("--set %s: not name=value", value);
    *equals = '\0';
    if (!add_setting(&p->b, value, equals + 1)) return wrong("--set %s: too many settings", value);
  } else if (strcmp(name, "--threads") == 0) {
    o->threads = value;
  } else if (strcmp(name, "--times") == 0) {
    if (!choose_times(&p->b, value))
      return wrong("--times is a list of cold, fresh and repeated, not %s", value);
  } else {
    usage(stderr);
    return wrong("unknown option %s", name);
  }
  return true;
}

static bool parse_flag(struct plan *p, struct options *o, const char *name) {
  bool cached = strcmp(name, "--cached") == 0;
  if (cached || strcmp(name, "--uncached") == 0) {
    if (!add_setting(&p->b, "transfer", cached ? "cached" : "serial")) return false;
  } else if (strcmp(name, "-v") == 0) {
    p->b.verbose = true;
  } else if (strcmp(name, "--keys") == 0) {
    p->keys = true;
  } else if (strcmp(name, "--check") == 0) {
    o->check = true;
  } else if (strcmp(name, "--allow-sqlite") == 0) {
    p->allow_sqlite = true;
  } else if (strcmp(name, "--no-sqlite") == 0) {
    o->no_sqlite = true;
  } else if (strcmp(name, "--no-duckdb") == 0) {
    o->no_duckdb = true;
  } else {
    return false;
  }
  return true;
}

int main(int argc, char **argv) {
  static struct plan p = {
      .b = {.n_runs = 5, .n_sqlite_runs = 3, .sqlite_limit_s = 20, .times = {true, true, true}},
      .queries = "bench/queries",
      .data = "bench/out",
      .engine = "cpu"};
  struct options o = {.suite = "all", .sides = DEFAULT_SIDES, .json = "bench/out/suites.json"};
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      usage(stdout);
      return 0;
    }
    if (parse_flag(&p, &o, argv[i])) continue;
    if (i + 1 == argc) {
      wrong("%s is unknown or wants a value", argv[i]);
      return 2;
    }
    if (!parse_value(&p, &o, argv[i], argv[i + 1])) return 2;
    i++;
  }
  bool all = strcmp(o.suite, "all") == 0;
  int n_chosen = 0;
  for (int i = 0; i < N_MANY; i++) n_chosen += all || in_list(o.suite, suites_of_tables[i].name);
  if (n_chosen == 0) {
    wrong("--suite %s: there are ssb, tpch and w", o.suite);
    return 2;
  }
  if (o.check) {
    const struct side *known = known_side(p.engine, strlen(p.engine));
    if (!known || known->kind != SIDE_ARROW) {
      wrong("--engine %s: there are cpu, sim and cuda", p.engine);
      return 2;
    }
    if (p.scale == 0) p.scale = 0.01;
    literals_check();
    for (int i = 0; i < N_MANY; i++)
      if (all || in_list(o.suite, suites_of_tables[i].name)) suite_check(&p, &suites_of_tables[i]);
    return tap_done();
  }
  if (!choose_sides(&p.b, o.sides, o.threads)) return 2;
  p.b.on[0] &= !o.no_sqlite;
  find_duck(&p.b, o.duck_path, !o.no_duckdb);

  struct json j = json_create(o.json);
  if (!j.out) {
    fprintf(stderr, "suites: cannot write %s: %s\n", o.json, strerror(errno));
    return 2;
  }
  json_open(&j, NULL, '{');
  json_facts(&j, &p.b);
  json_open(&j, "suites", '[');
  for (int i = 0; i < N_MANY; i++)
    if (all || in_list(o.suite, suites_of_tables[i].name))
      suite_measure(&p, &suites_of_tables[i], &j);
  json_close(&j, ']');
  json_number(&j, "failures", p.b.n_failures);
  json_close(&j, '}');
  fputc('\n', j.out);
  if (fclose(j.out) != 0) return wrong("cannot write %s", o.json), 2;
  printf("\nwritten: %s\n", o.json);
  if (p.b.n_failures) fprintf(stderr, "suites: %d failures\n", p.b.n_failures);
  return p.b.n_failures ? 1 : 0;
}
