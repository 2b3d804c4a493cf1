/*
** Runs the queries of a suite on every side, compares the answers and takes the times.
**
** 1. The first of SQLite and DuckDB that answers a query is what the other sides are
**    compared with. A side with another answer has no time.
** 2. Sides take turns run by run, as in bench.c. SQLite needs minutes for some of these
**    queries: one that takes it longer than SLOW_MS is run once, and once only is also run
**    what warplite leaves to SQLite.
** 3. Which engine ran a query is told in the report, not judged: the test (check.c) judges.
*/
#include <pthread.h>
#include "run.h"

#define SLOW_MS 2000

static int stop_late(void *deadline) {
  return *(double *)deadline > 0 && now_ms() > *(double *)deadline;
}

static const char *text_for(const struct text_query *q, int side) {
  return sides[side].kind == SIDE_DUCK ? q->duck_published : q->published;
}

static void fail(struct bench *b, const char *suite, const char *query, int side, const char *why) {
  fprintf(stderr, "suites: %s %s on %s: %s\n", suite, query, sides[side].name, why);
  b->n_failures++;
}

/* Answers compared, and one time of each side where more are not worth the wait. */
static void compare_sides(struct plan *p, const struct many *u, const struct text_query *q,
                          struct result *r, double *deadline) {
  struct bench *b = &p->b;
  struct answer want = {0};
  int reference = -1;
  char why[WHY] = "";
  for (int s = 0; s < N_SIDES; s++) {
    struct timing *t = &r->side[s];
    struct answer got = {0};
    struct digest touch = {.full = false}, all = {.full = true, .keep = &got};
    double ms;
    if (!b->on[s]) continue;
    *deadline = p->sqlite_limit_s > 0 ? now_ms() + p->sqlite_limit_s * 1e3 : 0;
    bool ok = s == 0 || side_run(b, &sides[s], text_for(q, s), &touch, &t->first_ms, why);
    if (ok) ok = side_run(b, &sides[s], text_for(q, s), &all, &ms, why);
    bool stopped = !ok && stop_late(deadline);
    *deadline = 0;
    if (sides[s].engine) {
      snprintf(t->reason, sizeof t->reason, "%s", warplite_reason(b->db));
      t->elsewhere = !ran_there(b, &sides[s]);
      if (b->verbose) printf("%-5s%-6s%s\n", q->name, sides[s].name, t->reason);
    }
    if (stopped) {
      printf("%s %s on %s: stopped after %.0f s\n", u->name, q->name, sides[s].name,
             p->sqlite_limit_s);
    } else if (!ok) {
      fail(b, u->name, q->name, s, why);
    } else if (reference < 0 && !sides[s].engine) {
      reference = s;
      want = got;
      got = (struct answer){0};
      r->n_rows = want.n_rows;
      t->same = true;
    } else if (reference < 0) {
      fail(b, u->name, q->name, s, "neither SQLite nor DuckDB has an answer to compare with");
    } else {
      bool lax = sides[s].kind == SIDE_DUCK || sides[reference].kind == SIDE_DUCK;
      t->same = answer_same(&want, &got, q->ordered, REAL_TOLERANCE, lax, why, sizeof why);
      if (!t->same) fail(b, u->name, q->name, s, why);
    }
    if (t->same && ((s == 0 && ms > SLOW_MS) || t->elsewhere)) t->ms[t->n++] = ms;
    answer_free(&got);
  }
  answer_free(&want);
}

static void take_times(struct plan *p, const struct many *u, const struct text_query *q,
                       struct result *r) {
  struct bench *b = &p->b;
  char why[WHY] = "";
  bool single[N_SIDES];
  for (int s = 0; s < N_SIDES; s++) single[s] = r->side[s].n > 0;
  for (int run = 0; run < b->n_runs; run++)
    for (int s = 0; s < N_SIDES; s++) {
      struct digest touch = {.full = false};
      struct timing *t = &r->side[s];
      double ms;
      if (!b->on[s] || !t->same || single[s] || (s == 0 && run >= b->n_sqlite_runs)) continue;
      bool ok = side_run(b, &sides[s], text_for(q, s), &touch, &ms, why);
      if (ok && touch.n_rows != r->n_rows) {
        snprintf(why, sizeof why, "a timed run had another number of rows");
        ok = false;
      }
      if (ok) {
        t->ms[t->n++] = ms;
      } else {
        fail(b, u->name, q->name, s, why);
        t->same = false;
        t->n = 0;
      }
    }
  for (int s = 0; s < N_SIDES; s++)
    qsort(r->side[s].ms, (size_t)r->side[s].n, sizeof *r->side[s].ms, compare_doubles);
}

struct duck_loading {
  struct duck *duck;
  const struct tables *tables;
  double scale;
  bool ok;
  char why[WHY];
};

static void *load_duck(void *arg) {
  struct duck_loading *l = arg;
  l->ok = store_duck(l->duck, l->tables, l->scale, l->why, sizeof l->why);
  return NULL;
}

/* Fills DuckDB and SQLite at the same time. */
static bool load_both(struct plan *p, const struct many *u, double scale, char *why, size_t n_why) {
  struct bench *b = &p->b;
  struct duck_loading l = {&b->duck, u->tables, scale, false, "no thread to fill it"};
  pthread_t thread;
  int duck = side_called("duckdb");
  bool started = b->on[duck] && pthread_create(&thread, NULL, load_duck, &l) == 0;
  bool ok = store_sqlite(&b->db, p->data, u->tables, scale, p->keys, why, n_why);
  if (started) pthread_join(thread, NULL);
  if (b->on[duck] && !l.ok) {
    printf("duckdb: left out (%s)\n", l.why);
    b->on[duck] = false;
  }
  return ok;
}

/* Leaves out the sides whose device is not there, with a word. */
static void probe_devices(struct bench *b, const char *sql) {
  for (int s = 0; s < N_SIDES; s++) {
    struct digest touch = {.full = false};
    char why[WHY] = "";
    double ms;
    if (!b->on[s] || !sides[s].device) continue;
    b->on[s] = side_run(b, &sides[s], sql, &touch, &ms, why);
    if (!b->on[s]) printf("%s: left out (%s)\n", sides[s].name, why);
  }
}

bool suite_measure(struct plan *p, const struct many *u, struct json *j) {
  struct bench *b = &p->b;
  struct query_list list = {0};
  struct result *results = NULL;
  struct query *named = NULL;
  bool twins[QUERIES_MAX], wanted[N_SIDES], ok = false;
  double scale = scale_of(p, u), deadline = 0, start = now_ms();
  char why[WHY] = "out of memory";
  int n = 0;
  memcpy(wanted, b->on, sizeof wanted);
  if (!queries_read(&list, p->queries, u->name, why, sizeof why)) goto done;
  results = calloc((size_t)list.n, sizeof *results);
  named = calloc((size_t)list.n, sizeof *named);
  if (!results || !named || !load_both(p, u, scale, why, sizeof why)) goto done;
  if (warplite_enable(b->db) != SQLITE_OK) {
    snprintf(why, sizeof why, "warplite_enable: %s", warplite_errmsg(b->db));
    goto done;
  }
  if (!set_extra(b, why)) goto done;
  printf("\n%s: filled or found in %.1f s\n", u->title, (now_ms() - start) / 1e3);
  fflush(stdout);
  probe_devices(b, u->probe);
  b->lenient = true;
  if (p->sqlite_limit_s > 0) sqlite3_progress_handler(b->db, 100000, stop_late, &deadline);
  for (int i = 0; i < list.n; i++) {
    const struct text_query *q = &list.query[i];
    if (!query_wanted(p, q->name)) continue;
    named[n] = (struct query){.name = q->name, .sql = q->published};
    results[n].query = &named[n];
    twins[n] = q->twin;
    compare_sides(p, u, q, &results[n], &deadline);
    take_times(p, u, q, &results[n]);
    n++;
  }
  suite_report(b, u, scale, results, twins, n);
  suite_json(j, b, u, scale, results, n);
  ok = true;
done:
  if (!ok) {
    fprintf(stderr, "suites: %s: %s\n", u->name, why);
    b->n_failures++;
  }
  if (b->duck.lib) duck_close(&b->duck);
  sqlite3_close(b->db);
  b->db = NULL;
  b->lenient = false;
  memcpy(b->on, wanted, sizeof wanted);
  queries_free(&list);
  free(results);
  free(named);
  return ok;
}
