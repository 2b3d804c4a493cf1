/*
** Takes the three times of a query on every side, and compares the answers.
**
** Stands between the programs (bench.c, suites/measure.c), which have the queries and files, and
** the sides (side.h).
**
** 1. All sides run in one process and take turns run by run, so that whatever slows the machine for
**    a while slows all of them.
** 2. Cold: the published text, on a connection of its own to a file that the operating system has
**    cached. No other connection is open, so nothing of an earlier run is in memory. Fresh: keep=0,
**    other literals in every run, warm-up included. Repeated: the published text again and again.
** 3. Of SQLite and DuckDB, the first that answers a text is the reference for the others. If both are
**    left out, it is the first side of warplite. Every
**    fresh run is compared with the reference of its own text, the other runs with that of the
**    published text. A timed run only touches its result, but its number of rows is compared. After
**    each fresh run, after the first cold run and before the repeated ones the text also runs off
**    the clock, and is compared in full. A side with another answer has no time.
** 4. SQLite runs no more often than asked for where DuckDB can be the reference. It needs minutes
**    for some queries. One that takes longer than SLOW_MS is timed by the run that is compared, and
**    where DuckDB can be the reference it runs once only. What warplite leaves to SQLite runs once
**    only, too.
*/
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "side.h"
#include "suites/literals.h"

#define SLOW_MS 2000
#define N_COLD  3

/* Sums of reals are taken in another order: their last digits differ, by less than this. */
#define REAL_TOLERANCE 1e-9
/* The same of one sum, relative to the sum of the magnitudes. */
#define REAL_SUM_TOLERANCE 1e-12

/* What one query took on one side. */
struct timing {
  double ms[MAX_RUNS]; /* in the order of the runs */
  int n;
  bool failed;    /* it had no answer, or another than the reference */
  bool elsewhere; /* another engine ran it than was asked for: the reason says why */
  char reason[WHY];
};

/* The answer that others are compared with. */
struct reference {
  int side; /* -1: there is none */
  struct digest digest;
  struct answer rows;
  double magnitude; /* for abs_sql */
};

struct result {
  const struct query *query;
  struct run_texts texts;
  struct reference published;
  int64_t n_rows[N_TIMES]; /* of the first run */
  bool slow, stopped;      /* in SQLite */
  struct timing time[N_TIMES][MAX_SIDES];
};

/* What a round does: take times, compare answers, or both. */
struct round {
  enum time_kind kind;
  int run; /* the number of the text */
  bool timed, compared;
  int turn; /* the number of the round: another side begins each time */
};

static inline bool result_start(struct result *r, const struct bench *b, const char *suite,
                                const struct query *q, char *why) {
  memset(r, 0, sizeof *r);
  r->query = q;
  r->published.side = -1;
  return run_texts_make(&r->texts, suite, q->name, q->sql, q->duck_sql,
                        b->times[FRESH] ? b->n_runs + 2 : 1, why, WHY);
}

static inline void result_free(struct result *r) {
  run_texts_free(&r->texts);
  answer_free(&r->published.rows);
}

static inline void measure_fail(struct bench *b, const struct result *r, enum time_kind kind,
                                int side, const char *why) {
  fprintf(stderr, "%s, %s on %s: %s\n", r->query->name, time_names[kind], b->sides[side].name, why);
  b->n_failures++;
}

/* Whether an answer is the reference's; why gets what differs. */
static inline bool same_answer(const struct bench *b, const struct query *q,
                               const struct reference *want, int side, const struct digest *got,
                               const struct answer *rows, char *why) {
  bool duck = b->sides[side].kind == SIDE_DUCK || b->sides[want->side].kind == SIDE_DUCK;
  const struct digest *w = &want->digest;
  if (q->by_rows) return answer_same(&want->rows, rows, q->ordered, REAL_TOLERANCE, duck, why, WHY);
  if (q->abs_sql) {
    double error = fabs(got->first_real - w->first_real);
    if (got->n_rows == 1 && got->n_columns == w->n_columns && got->has_first_real &&
        error <= REAL_SUM_TOLERANCE * want->magnitude)
      return true;
    snprintf(why, WHY, "%.17g, not %.17g", got->first_real, w->first_real);
    return false;
  }
  if (duck && q->duck_bag ? digest_same_bag(w, got, q->duck_order) : digest_equal(w, got))
    return true;
  snprintf(why, WHY, "%lld rows of %d columns, checksum %016llx, not %lld of %d, %016llx",
           (long long)got->n_rows, got->n_columns, (unsigned long long)digest_all(got),
           (long long)w->n_rows, w->n_columns, (unsigned long long)digest_all(w));
  return false;
}

/* Whether neither SQLite nor DuckDB takes part: then the first side of warplite that answers is the
** reference, and the others must give the same. */
static inline bool is_alone(const struct bench *b) {
  for (int s = 0; s < b->n_sides; s++)
    if (b->on[s] && !b->sides[s].engine) return false;
  return true;
}

/* Runs the text in full. The answer is compared with the reference, or becomes it. */
static inline bool run_and_compare(struct bench *b, struct result *r, int side, const char *sql,
                                   struct reference *ref, double *ms, char *why) {
  struct answer rows = {0};
  struct digest all = {.full = true, .keep = r->query->by_rows ? &rows : NULL};
  const struct side *s = &b->sides[side];
  bool ok = side_run(b, s, sql, &all, ms, why);
  if (ok && ref->side < 0 && (!s->engine || is_alone(b))) {
    ref->side = side;
    ref->digest = all;
    ref->rows = rows;
    rows = (struct answer){0};
    if (r->query->abs_sql) {
      struct digest sum = {.full = true};
      double ignored;
      ok = side_run(b, s, r->query->abs_sql, &sum, &ignored, why);
      ref->magnitude = sum.first_real;
    }
  } else if (ok && ref->side < 0) {
    snprintf(why, WHY, "neither SQLite nor DuckDB has an answer to compare with");
    ok = false;
  } else if (ok) {
    ok = same_answer(b, r->query, ref, side, &all, &rows, why);
  }
  answer_free(&rows);
  return ok;
}

/* Whether SQLite takes part in a round, see 4 above. */
static inline bool sqlite_runs(const struct bench *b, const struct result *r, const struct round *o,
                               const struct reference *ref) {
  int n = r->time[o->kind][0].n;
  bool wanted = o->timed && n < b->n_sqlite_runs;
  bool needed = o->compared && ref->side < 0 && !(has_duck(b) && o->timed);
  if (r->stopped) return false;
  if (r->slow && (n > 0 || !o->timed) && (has_duck(b) || ref->side >= 0)) return false;
  return wanted || needed;
}

static inline bool takes_part(const struct bench *b, const struct result *r, const struct round *o,
                              const struct reference *ref, int side) {
  const struct timing *t = &r->time[o->kind][side];
  if (!b->on[side] || t->failed || (t->elsewhere && t->n > 0)) return false;
  if (side > 0) return true;
  return sqlite_runs(b, r, o, ref);
}

/* The clocked run and the compared run of one side, on the connection that is open. opened_ms is
** what it took to open it. */
static inline bool run_side(struct bench *b, struct result *r, const struct round *o, int side,
                            double opened_ms, struct reference *ref, char *why) {
  const struct side *s = &b->sides[side];
  struct timing *t = &r->time[o->kind][side];
  const char *sql = s->kind == SIDE_DUCK ? r->texts.duck_sql[o->run] : r->texts.sql[o->run];
  bool slow = side == 0 && r->slow, timed = o->timed && (side > 0 || t->n < b->n_sqlite_runs);
  bool compared = o->compared && ref->side != side;
  bool touched = timed && !(slow && compared);
  struct digest touch = {.full = false};
  double ms = 0;
  if (touched) {
    if (!side_run(b, s, sql, &touch, &ms, why)) return false;
    t->ms[t->n++] = opened_ms + ms;
    if (t->n == 1) r->n_rows[o->kind] = touch.n_rows;
  }
  bool ok = !compared || run_and_compare(b, r, side, sql, ref, &ms, why);
  if (s->engine) {
    snprintf(t->reason, sizeof t->reason, "%s", warplite_reason(b->db));
    t->elsewhere = !ran_there(b, s);
  }
  if (!ok) return false;
  if (timed && compared && !touched) {
    t->ms[t->n++] = opened_ms + ms;
    r->n_rows[o->kind] = ref->digest.n_rows;
  }
  if (side == 0 && ms > SLOW_MS) r->slow = true;
  if (ref->side >= 0 && touched && touch.n_rows != ref->digest.n_rows) {
    snprintf(why, WHY, "a timed run had %lld rows, not %lld", (long long)touch.n_rows,
             (long long)ref->digest.n_rows);
    return false;
  }
  return true;
}

/*
** The side that is the kth to run: SQLite, then the sides of DuckDB, one of which may be the
** reference, then warplite's. What a side finds in the processor's caches depends on the side
** before it, so the sides of each group begin in turns.
*/
static inline int side_in_turn(const struct bench *b, int k, int turn) {
  int low = 0, high = 1;
  while (k >= high) {
    low = high;
    while (high < b->n_sides && !b->sides[high].engine == !b->sides[low].engine) high++;
  }
  return low + (k - low + turn) % (high - low);
}

/* All sides, one after the other. */
static inline void run_round(struct bench *b, struct result *r, struct round o,
                             struct reference *ref) {
  b->fresh = o.kind == FRESH;
  for (int k = 0; k < b->n_sides; k++) {
    int side = side_in_turn(b, k, o.turn);
    struct timing *t = &r->time[o.kind][side];
    char why[WHY] = "";
    double opened_ms = 0;
    if (!takes_part(b, r, &o, ref, side)) continue;
    bool ok = o.kind != COLD || open_cold(b, &b->sides[side], &opened_ms, why);
    b->deadline = b->sqlite_limit_s > 0 ? now_ms() + b->sqlite_limit_s * 1e3 : 0;
    if (ok) ok = run_side(b, r, &o, side, opened_ms, ref, why);
    bool stopped = !ok && b->sides[side].kind != SIDE_DUCK && stop_late(b);
    b->deadline = 0;
    if (b->verbose && b->sides[side].engine && o.compared)
      printf("%-5s%-9s%-8s%s\n", r->query->name, time_names[o.kind], b->sides[side].name,
             t->reason);
    if (o.kind == COLD) close_cold(b, &b->sides[side]);
    if (ok) continue;
    t->failed = true;
    t->n = 0;
    if (stopped) {
      if (side == 0) r->stopped = true;
      printf("%s on %s: stopped after %.0f s\n", r->query->name, b->sides[side].name,
             b->sqlite_limit_s);
    } else {
      measure_fail(b, r, o.kind, side, why);
    }
  }
  b->fresh = false;
}

/* No connection may be open. */
static inline void measure_cold(struct bench *b, struct result *r) {
  for (int i = 0; i < N_COLD && i < b->n_runs; i++)
    run_round(b, r, (struct round){COLD, 0, true, i == 0, i}, &r->published);
}

/* Run 1 is the warm-up, the others are timed. Each has a reference of its own. */
static inline void measure_fresh(struct bench *b, struct result *r) {
  for (int run = 1; run <= b->n_runs + 1; run++) {
    struct reference ref = {.side = -1};
    run_round(b, r, (struct round){FRESH, run, run > 1, true, run}, &ref);
    answer_free(&ref.rows);
  }
}

static inline void measure_repeated(struct bench *b, struct result *r) {
  run_round(b, r, (struct round){REPEATED, 0, false, true, 0}, &r->published);
  for (int i = 0; i < b->n_runs; i++)
    run_round(b, r, (struct round){REPEATED, 0, true, false, i}, &r->published);
}

/* Reads a file once, so that the operating system has it in memory. */
static inline void read_through(const char *path) {
  static char buffer[1 << 20];
  FILE *f = path ? fopen(path, "rb") : NULL;
  while (f && fread(buffer, 1, sizeof buffer, f) == sizeof buffer) continue;
  if (f) fclose(f);
}

/* The two phases of a suite: cold runs first, while no connection is open. */
static inline void measure_all_cold(struct bench *b, struct result *r, int n) {
  if (!b->times[COLD]) return;
  read_through(b->file);
  read_through(b->duck_file);
  for (int q = 0; q < n; q++) measure_cold(b, &r[q]);
}

static inline void measure_all_warm(struct bench *b, struct result *r, int n) {
  for (int q = 0; q < n; q++) {
    if (b->times[FRESH]) measure_fresh(b, &r[q]);
    if (b->times[REPEATED]) measure_repeated(b, &r[q]);
  }
}

/* Leaves out the sides whose device is not there, with a word. */
static inline void probe_devices(struct bench *b, const char *sql) {
  for (int s = 0; s < b->n_sides; s++) {
    struct digest touch = {.full = false};
    char why[WHY] = "";
    double ms;
    if (!b->on[s] || !b->sides[s].device) continue;
    b->on[s] = side_run(b, &b->sides[s], sql, &touch, &ms, why);
    if (!b->on[s]) printf("%s: left out (%s)\n", b->sides[s].name, why);
  }
}

#endif
