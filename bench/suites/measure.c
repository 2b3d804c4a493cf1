/*
** Measures a suite: fills the files, takes the times (../measure.h) and reports them (../report.h).
**
** Which engine ran a query is told in the report, not judged: the test (check.c) judges.
*/
#include <pthread.h>
#include "run.h"

struct duck_loading {
  struct duck *duck;
  const struct tables *tables;
  const char *folder;
  double scale;
  char path[512];
  bool ok;
  char why[WHY];
};

static void *load_duck(void *arg) {
  struct duck_loading *l = arg;
  l->ok = store_duck(l->duck, l->folder, l->tables, l->scale, l->path, sizeof l->path, l->why,
                     sizeof l->why);
  return NULL;
}

/* Fills the files of DuckDB and SQLite at the same time, where they are not there yet. */
static bool fill_files(struct plan *p, const struct many *u, double scale, char *why) {
  static char file[512];
  static struct duck_loading l;
  struct bench *b = &p->b;
  pthread_t thread;
  l = (struct duck_loading){.duck = &b->duck,
                            .tables = u->tables,
                            .folder = p->data,
                            .scale = scale,
                            .why = "no thread to fill it"};
  bool started = has_duck(b) && pthread_create(&thread, NULL, load_duck, &l) == 0;
  bool ok = store_file(p->data, u->tables, scale, p->keys, file, sizeof file, why, WHY);
  if (started) pthread_join(thread, NULL);
  if (has_duck(b) && !l.ok) leave_out_duck(b, l.why);
  b->file = file;
  b->duck_file = has_duck(b) ? l.path : NULL;
  return ok;
}

static const struct result *result_called(struct result *const *r, int n, const char *name) {
  for (int q = 0; q < n; q++)
    if (strcmp(r[q]->query->name, name) == 0) return r[q];
  return NULL;
}

/* A condition over strings against one over numbers: the same rows, or the paper's pair. */
static void put_pairs(const struct bench *b, struct result *const *r, int n) {
  static const char *const pairs[][2] = {{"1", "n1"}, {"2", "n2"}, {"5", "9"}};
  enum time_kind kind = b->times[FRESH] ? FRESH : b->times[COLD] ? COLD : REPEATED;
  if (!result_called(r, n, "n1")) return;
  printf("%s, strings over numbers, times as long:\n", time_names[kind]);
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    const struct result *text = result_called(r, n, pairs[i][0]);
    const struct result *number = result_called(r, n, pairs[i][1]);
    if (!text || !number) continue;
    printf("  %s over %-4s", pairs[i][0], pairs[i][1]);
    for (int s = 0; s < b->n_sides; s++) {
      if (!b->on[s]) continue;
      printf("  %s", b->sides[s].name);
      put_ratio(time_on(text, kind, s), time_on(number, kind, s), 6, 2);
    }
    printf("\n");
  }
}

static void report(const struct bench *b, const struct many *u, double scale,
                   struct result *const *r, int n, struct json *j) {
  char title[128];
  snprintf(title, sizeof title, "%s, %g %s", u->title, scale, u->what);
  report_tables(b, title, r, n);
  put_pairs(b, r, n);
  json_open(j, NULL, '{');
  json_string(j, "suite", u->title);
  json_number(j, "scale", scale);
  if (b->db) json_devices(j, b->db);
  json_queries(j, b, r, n);
  json_sums(j, b, r, n);
  json_close(j, '}');
}

/* The files, the sides that there are, and the queries' texts; leaves no connection open. */
static bool prepare(struct plan *p, const struct many *u, double scale, char *why) {
  struct bench *b = &p->b;
  double start = now_ms();
  if (!fill_files(p, u, scale, why) || !open_file(b, true, why) || !set_extra(b, why)) return false;
  printf("\n%s: filled or found in %.1f s\n", u->title, (now_ms() - start) / 1e3);
  fflush(stdout);
  probe_devices(b, u->probe); /* a device that is not there is an error here */
  b->lenient = true;
  close_file(b);
  return true;
}

bool suite_measure(struct plan *p, const struct many *u, struct json *j) {
  struct bench *b = &p->b;
  struct query_list list = {0};
  struct result *results = calloc(QUERIES_MAX, sizeof *results), *pointers[QUERIES_MAX];
  struct query named[QUERIES_MAX] = {0};
  bool wanted[MAX_SIDES], ok = false;
  double scale = scale_of(p, u);
  char why[WHY] = "out of memory";
  int n = 0;
  memcpy(wanted, b->on, sizeof wanted);
  if (!results || !queries_read(&list, p->queries, u->name, why, sizeof why) ||
      !prepare(p, u, scale, why))
    goto done;
  for (int i = 0; i < list.n; i++) {
    const struct text_query *q = &list.query[i];
    if (!query_wanted(p, q->name)) continue;
    named[n] = (struct query){.name = q->name,
                              .sql = q->sql,
                              .duck_sql = q->duck_sql,
                              .by_rows = true,
                              .ordered = q->ordered,
                              .twin = q->twin};
    pointers[n] = &results[n];
    if (!result_start(&results[n], b, u->name, &named[n], why)) goto done;
    n++;
  }
  measure_all_cold(b, results, n);
  if (b->times[FRESH] || b->times[REPEATED]) {
    if (!open_file(b, true, why)) goto done;
    if (has_duck(b) && !duck_copy(&b->duck, b->duck_file, why, sizeof why)) leave_out_duck(b, why);
    measure_all_warm(b, results, n);
  }
  report(b, u, scale, pointers, n, j);
  ok = true;
done:
  if (!ok) {
    fprintf(stderr, "suites: %s: %s\n", u->name, why);
    b->n_failures++;
  }
  if (b->duck.lib) duck_close(&b->duck);
  close_file(b);
  b->lenient = false;
  memcpy(b->on, wanted, sizeof wanted);
  for (int i = 0; results && i < QUERIES_MAX; i++) result_free(&results[i]);
  free(results);
  queries_free(&list);
  return ok;
}
