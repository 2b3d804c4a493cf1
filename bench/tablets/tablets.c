/*
** The benchmark of tablet tables beside SQLite's own: its options and its report.
**
**     tablets [--part dml|kv|functions]… [--rows N] [--keys N] [--sizes N,N…] [--runs N]
**             [--engine cpu|sim|cuda] [--route always|cost] [--function NAME] [--dir DIR]
**             [--json FILE] [--keep] [--check] [-v]
**
** Parts (all of them, if none is named):
**   dml        bulk statements on a table in a file (dml.c): --rows
**   kv         a table as a key/value store (keyvalue.c): --keys
**   functions  the functions of the CUDADB papers, in memory (functions.c): --sizes, --engine,
**              --function; --route cost: whether SQLite is faster where the router decides
**
** --check: one run, and a line for test/run that says whether both kinds of table agreed.
** Everything it needs it makes, in DIR; it takes the build folder alone to run.
*/
#include "tablets.h"

static int usage(void) {
  fprintf(stderr,
          "usage: tablets [--part dml|kv|functions]... [--rows N] [--keys N] [--sizes N,N...]"
          "\n               [--runs N (1 to %d)] [--engine cpu|sim|cuda] [--route always|cost] "
          "[--function NAME]\n               [--dir DIR] [--json FILE] [--keep] [--check] [-v]\n",
          MAX_RUNS);
  return 2;
}

static bool read_sizes(struct tablets *b, const char *text) {
  char *end;
  for (b->n_sizes = 0; b->n_sizes < 8; text = end + 1) {
    b->sizes[b->n_sizes] = strtoll(text, &end, 10);
    if (end == text || b->sizes[b->n_sizes] < 1000) return false;
    b->n_sizes++;
    if (*end != ',') return *end == 0;
  }
  return false;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(struct tablets *b, struct json *j);
  } parts[] = {{"dml", tablets_dml}, {"kv", tablets_kv}, {"functions", tablets_functions}};
  static struct tablets b = {.n_rows = 10000000,
                             .n_keys = 200000,
                             .sizes = {500000},
                             .n_sizes = 1,
                             .n_runs = 3,
                             .engine = "cpu",
                             .route = "always"};
  /* away from the sources everything goes into the folder it is run in */
  bool home = access("bench/out", W_OK) == 0;
  const char *path = home ? "bench/out/tablets.json" : "tablets.json";
  b.dir = home ? "bench/out" : ".";
  unsigned chosen = 0;
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (strcmp(argv[i], "-v") == 0) {
      b.verbose = true;
      continue;
    }
    if (strcmp(argv[i], "--check") == 0) {
      b.check = true;
      b.n_runs = 1;
      continue;
    }
    if (strcmp(argv[i], "--keep") == 0) {
      b.keep = true;
      continue;
    }
    if (!value) return usage();
    i++;
    if (strcmp(argv[i - 1], "--part") == 0) {
      unsigned before = chosen;
      for (unsigned k = 0; k < 3; k++)
        if (strcmp(value, parts[k].name) == 0) chosen |= 1u << k;
      if (chosen == before) return usage();
    } else if (strcmp(argv[i - 1], "--rows") == 0 && atoll(value) >= 1000) {
      b.n_rows = atoll(value);
    } else if (strcmp(argv[i - 1], "--keys") == 0 && atoll(value) >= 1000) {
      b.n_keys = atoll(value);
    } else if (strcmp(argv[i - 1], "--sizes") == 0 && read_sizes(&b, value)) {
      continue;
    } else if (strcmp(argv[i - 1], "--runs") == 0 && atoi(value) > 0 && atoi(value) <= MAX_RUNS) {
      b.n_runs = atoi(value);
    } else if (strcmp(argv[i - 1], "--engine") == 0 &&
               (!strcmp(value, "cpu") || !strcmp(value, "sim") || !strcmp(value, "cuda"))) {
      b.engine = value;
    } else if (strcmp(argv[i - 1], "--route") == 0 &&
               (!strcmp(value, "always") || !strcmp(value, "cost"))) {
      b.route = value;
    } else if (strcmp(argv[i - 1], "--function") == 0) {
      b.only = value;
    } else if (strcmp(argv[i - 1], "--dir") == 0) {
      b.dir = value;
    } else if (strcmp(argv[i - 1], "--json") == 0) {
      path = value;
    } else {
      return usage();
    }
  }
  struct json j = {fopen(path, "w"), true};
  if (!j.out) {
    fprintf(stderr, "tablets: cannot write %s: %s\n", path, strerror(errno));
    return 2;
  }
  json_open(&j, NULL, '{');
  json_facts(&j, &b.facts);
  json_number(&j, "runs", b.n_runs);
  for (unsigned k = 0; k < 3; k++)
    if (!chosen || chosen & 1u << k) parts[k].run(&b, &j);
  json_number(&j, "failures", b.n_failures);
  json_close(&j, '}');
  fputc('\n', j.out);
  if (fclose(j.out) != 0) {
    fprintf(stderr, "tablets: cannot write %s\n", path);
    return 2;
  }
  printf("\nwritten: %s\n", path);
  if (b.check && b.n_failures) printf("not ok tablets - %d failures\n", b.n_failures);
  if (b.check && !b.n_failures) printf("ok tablets\n");
  return b.n_failures ? 1 : 0;
}
