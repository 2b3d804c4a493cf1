/*
** The differential fuzzer: random tables, random queries over them, SQLite on the same
** connection as the oracle.
**
**     fuzz [--engine sqlite|cpu|sim|cuda] [--queries N] [--seed S] [--table T] [--streams]
**          [--verbose]
**
** What is not native runs in SQLite, is counted by reason and proves nothing. A difference
** is shrunk (clauses, result columns, rows, indexes, expressions) and printed as a script
** with both answers. --table T begins with table T of the seed, to see a failure again.
** --streams reads the rows from device streams, and counts those that stay on the device.
**
** Invariants:
** 1. Table T of a run, and the queries over it, depend only on the seed and T.
** 2. Rows are compared in order. Only where there is neither ORDER BY nor LIMIT and SQLite's
**    own plan reads through an index, or groups without sorting, as a multiset; and those of a
**    join, unless there is a LIMIT.
** 3. A REAL from sum(), total() or avg() may differ by 1e-12 of the sum of |x| over all rows
**    that pass WHERE, and by anything if that sum is not finite.
*/
#include "../engines.h"
#include "../stream_rows.h"
#include "../tap.h"
#include "fuzz_query.h"
#include "outcome.h"

enum { MAX_FAILED = 5, PER_TABLE = 40 };

typedef struct world {
  rng r;
  const char *engine;
  bool streams; /* the rows come from warplite_query_stmt_device() */
  table t;
  query q;
  maker m;
  char *binds[2][MAX_BINDS]; /* SQL literals, two sets for two runs of a statement */
  rows got, want;
  char reason[300];
  long n_run, n_native, n_engine, n_errors;
  reasons reasons;
} world;

static sqlite3 *open_db(world *w) {
  sqlite3 *db;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK || !use_engine(db, w->engine)) {
    tap_bad("fuzz", "cannot set the engine: %s", sqlite3_errmsg(db));
    exit(tap_done());
  }
  fill(&w->t, NULL, db);
  return db;
}

/* ---- running and comparing */

static void bind(world *w, sqlite3 *db, sqlite3_stmt *st, int set) {
  int n = sqlite3_bind_parameter_count(st);
  for (int i = 1; i <= n && i <= MAX_BINDS; i++) {
    sqlite3_stmt *v = NULL;
    char *sql = format("SELECT %s", w->binds[set][i - 1]);
    if (sqlite3_prepare_v2(db, sql, -1, &v, NULL) == SQLITE_OK && sqlite3_step(v) == SQLITE_ROW)
      sqlite3_bind_value(st, i, sqlite3_column_value(v, 0));
    sqlite3_finalize(v);
    sqlite3_free(sql);
  }
}

/* How far a sum may be off; infinite if its inputs' sizes add up to infinity, since then it
** depends on the order whether SQLite passes that on the way. */
static double slack(world *w, sqlite3 *db, int out, int set) {
  double total = INFINITY, relative = 1e-12;
  sqlite3_stmt *st = NULL;
  char *e = render(w->q.sum_of[out]), *where = w->q.where ? render(w->q.where) : format("1");
  char *from = from_text(&w->q);
  char *sql = format("SELECT total(CASE WHEN abs(CAST(%s AS REAL))<9e999 THEN abs(CAST(%s AS "
                     "REAL)) END), count(*)%s WHERE %s",
                     e, e, from, where);
  sqlite3_free(from);
  if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK) {
    bind(w, db, st, set);
    if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) == SQLITE_FLOAT)
      total = sqlite3_column_double(st, 0);
    relative = fmax(relative, 1.2e-16 * sqlite3_column_double(st, 1)); /* it rounds at every row */
  }
  sqlite3_finalize(st);
  sqlite3_free(sql);
  sqlite3_free(e);
  sqlite3_free(where);
  return total * relative;
}

/* Makes sums that are close enough the same, so that the rest can be compared by bits. */
static void forgive_sums(world *w, sqlite3 *db, int set) {
  const query *q = &w->q;
  /* also the rows before an error */
  if (w->got.rc != w->want.rc || w->got.n_rows != w->want.n_rows || w->got.n_col != q->n_out ||
      w->want.n_col != q->n_out)
    return;
  for (int i = 0; i < q->n_out; i++) {
    double s = -1;
    for (size_t k = 0; q->sum_of[i] && k < w->got.n_rows; k++) {
      cell *a = &w->got.cells[k * (size_t)q->n_out + (size_t)i];
      const cell *b = &w->want.cells[k * (size_t)q->n_out + (size_t)i];
      if (a->type == b->type && a->u.i == b->u.i) continue;
      bool real = a->type == SQLITE_FLOAT && b->type == SQLITE_FLOAT;
      bool lost = (a->type == SQLITE_FLOAT || a->type == SQLITE_NULL) &&
                  (b->type == SQLITE_FLOAT || b->type == SQLITE_NULL);
      if (!lost) continue;
      if (s < 0) s = slack(w, db, i, set);
      if ((real && fabs(a->u.r - b->u.r) <= s) || isinf(s)) *a = *b;
    }
  }
}

/* Rows in an order that the last digits of a sum do not change. */
static void sort_answer(const query *q, rows *r) {
  bool sum[2 * MAX_COLS + MAX_OUT] = {false};
  for (int c = 0; c < q->n_out && !q->star; c++) sum[c] = q->sum_of[c] != NULL;
  sort_rows(r, sum);
}

/* Whether SQL leaves the order of the rows open, and SQLite's plan makes use of that. */
static bool order_open(world *w, sqlite3 *db, const char *sql) {
  sqlite3_stmt *st = NULL;
  bool index = false, sorts = false;
  bool join = w->q.from == FROM_BESIDE || strstr(sql + 6, "SELECT");
  if (join && (w->q.n_order || !w->q.limit[0])) return true; /* ties come in any order */
  if (w->q.limit[0] || w->q.n_order) return false;
  char *eqp = format("EXPLAIN QUERY PLAN %s", sql);
  if (sqlite3_prepare_v2(db, eqp, -1, &st, NULL) == SQLITE_OK)
    while (sqlite3_step(st) == SQLITE_ROW) {
      const char *d = (const char *)sqlite3_column_text(st, 3);
      index |= strstr(d, "INDEX") != NULL;
      sorts |= strstr(d, "FOR GROUP BY") != NULL;
    }
  sqlite3_finalize(st);
  sqlite3_free(eqp);
  return index || (w->q.n_groups && !sorts);
}

/* Runs the query both ways, twice each with other parameters; false if they differ. */
static bool agree(world *w, sqlite3 *db, char *why, size_t n_why) {
  char *sql = query_text(&w->q);
  sqlite3_stmt *a = NULL, *b = NULL;
  bool same = true;
  rows_clear(&w->got);
  rows_clear(&w->want);
  w->reason[0] = 0;
  int rc_a = warplite_prepare(db, sql, -1, &a, NULL);
  if (rc_a != SQLITE_OK) rows_fail(&w->got, db, rc_a);
  int rc_b = sqlite3_prepare_v2(db, sql, -1, &b, NULL);
  if (rc_b != SQLITE_OK) rows_fail(&w->want, db, rc_b);
  if (rc_a != SQLITE_OK || rc_b != SQLITE_OK) {
    same = rows_same(&w->got, &w->want, false, why, n_why);
  } else {
    int n_sets = sqlite3_bind_parameter_count(b) ? 2 : 1;
    if (sqlite3_bind_parameter_count(a) != sqlite3_bind_parameter_count(b)) {
      snprintf(why, n_why, "%d parameters, SQLite %d", sqlite3_bind_parameter_count(a),
               sqlite3_bind_parameter_count(b));
      same = false;
    }
    for (int set = 0; set < n_sets && same; set++) {
      rows_clear(&w->got);
      rows_clear(&w->want);
      bind(w, db, a, set);
      bind(w, db, b, set);
      uint64_t reals = 0;
      if (w->streams)
        rows_device(&w->got, db, a, &reals);
      else
        rows_step(&w->got, db, a);
      if (set == 0) snprintf(w->reason, sizeof w->reason, "%s", warplite_reason(db));
      rows_step(&w->want, db, b);
      if (w->streams) rows_forgive_stream(&w->got, &w->want, reals);
      sqlite3_reset(a);
      sqlite3_reset(b);
      same = rows_same(&w->got, &w->want, false, why, n_why);
      if (!same && order_open(w, db, sql)) {
        if (w->got.rc != SQLITE_DONE) /* which rows come before an error is open then, too */
          w->got.n_rows = w->want.n_rows = w->got.n_cells = w->want.n_cells = 0;
        sort_answer(&w->q, &w->got);
        sort_answer(&w->q, &w->want);
      }
      if (!same) {
        if (w->q.aggregate) forgive_sums(w, db, set);
        same = rows_same(&w->got, &w->want, false, why, n_why);
      }
    }
  }
  sqlite3_finalize(a);
  sqlite3_finalize(b);
  sqlite3_free(sql);
  return same;
}

/* ---- shrinking: whatever can go without the difference going */

static bool still_fails(world *w) {
  char why[900];
  sqlite3 *db = open_db(w);
  bool same = agree(w, db, why, sizeof why);
  sqlite3_close(db);
  return !same && w->want.prepared; /* not by becoming a wrong statement */
}

/* Tries to put one of its parts in the place of an expression, from the top down. */
static void shrink_expr(world *w, ex **slot) {
  for (bool again = true; again;) {
    again = false;
    for (int i = 0; i < (*slot)->n_kids && !again; i++) {
      ex *old = *slot;
      *slot = old->kid[i];
      if (still_fails(w))
        again = true;
      else
        *slot = old;
    }
  }
  for (int i = 0; i < (*slot)->n_kids; i++) shrink_expr(w, &(*slot)->kid[i]);
}

/* Changes to the world that are kept if it still fails. */
static void shrink_clauses(world *w) {
  for (int step = 0; step < 8 + MAX_INDEXES; step++) {
    table t = w->t;
    query q = w->q;
    switch (step) {
    case 0: w->t.times = 1; break;
    case 1: w->t.analyze = false; break;
    case 2: w->q.limit[0] = 0; break;
    case 3: w->q.where = NULL; break;
    case 4: w->q.having = NULL; break;
    case 5: w->q.distinct = false; break;
    case 6: w->t.bad_end = false; break;
    case 7: w->t.like_limit = 0; break;
    default: w->t.index[step - 8][0] = 0;
    }
    if (still_fails(w)) continue;
    w->t = t;
    w->q = q;
  }
}

/* Takes out one of n things behind each other; false if none could go. */
#define DROP(array, n, i)                                                                          \
  memmove(&(array)[i], &(array)[(i) + 1], sizeof *(array) * (size_t)((n) - (i)-1))

static void shrink_lists(world *w) {
  query *q = &w->q;
  for (int i = q->n_out - 1; i >= 0 && q->n_out > 1; i--) {
    query old = *q;
    DROP(q->out, q->n_out, i);
    DROP(q->sum_of, q->n_out, i);
    q->n_out--;
    if (!still_fails(w)) *q = old;
  }
  for (int i = q->n_order - 1; i >= 0; i--) {
    query old = *q;
    DROP(q->order, q->n_order, i);
    DROP(q->direction, q->n_order, i);
    q->n_order--;
    if (!still_fails(w)) *q = old;
  }
  for (int i = q->n_groups - 1; i >= 0; i--) {
    query old = *q;
    DROP(q->group, q->n_groups, i);
    q->n_groups--;
    if (!still_fails(w)) *q = old;
  }
}

static void shrink(world *w) {
  query *q = &w->q;
  shrink_clauses(w);
  shrink_lists(w);
  for (int size = 32; size >= 1 && w->t.times == 1; size /= 2) {
    for (int from = 0; from < w->t.n_rows; from += size) {
      bool old[MAX_ROWS];
      memcpy(old, w->t.gone, sizeof old);
      for (int i = from; i < from + size && i < w->t.n_rows; i++) w->t.gone[i] = true;
      if (!still_fails(w)) memcpy(w->t.gone, old, sizeof old);
    }
  }
  if (q->where) shrink_expr(w, &q->where);
  if (q->inner) shrink_expr(w, &q->inner);
  for (int i = 0; i < q->n_groups; i++) shrink_expr(w, &q->group[i]);
  for (int i = 0; i < q->n_order; i++) shrink_expr(w, &q->order[i]);
  for (int i = 0; i < q->n_out && !q->star; i++) {
    if (!q->aggregate)
      shrink_expr(w, &q->out[i]);
    else if (!q->sum_of[i]) /* the aggregate itself must stay */
      for (int k = 0; k < q->out[i]->n_kids; k++) shrink_expr(w, &q->out[i]->kid[k]);
  }
  shrink_clauses(w);
}

/* ---- telling */

static void report(world *w, const char *name, const char *first_why) {
  char why[900] = "";
  if (still_fails(w))
    shrink(w);
  else
    printf("  (does not fail on a fresh connection)\n");
  sqlite3 *db = open_db(w);
  if (agree(w, db, why, sizeof why)) snprintf(why, sizeof why, "%s", first_why);
  sqlite3_close(db);
  char *sql = query_text(&w->q);
  printf("-- script\n");
  fill(&w->t, stdout, NULL);
  if (strchr(sql, '?'))
    for (int set = 0; set < 2; set++)
      for (int i = 0; i < MAX_BINDS; i++)
        printf("-- run %d: ?%d is %s\n", set + 1, i + 1, w->binds[set][i]);
  printf("%s;\n-- %s\n-- %s\n", sql, w->reason, why);
  print_rows("warplite", &w->got);
  print_rows("SQLite", &w->want);
  tap_bad(name, "%s", why);
  sqlite3_free(sql);
}

static void summary(world *w, uint64_t seed) {
  char name[120];
  double native = 100.0 * (double)w->n_native / (double)w->n_run;
  double engine = 100.0 * (double)w->n_engine / (double)w->n_run;
  printf("  seed %llu, engine %s: %ld queries, %ld native (%.1f %%), %ld of them on %s (%.1f %%), "
         "%ld failed in SQLite too\n",
         (unsigned long long)seed, w->engine, w->n_run, w->n_native, native, w->n_engine, w->engine,
         engine, w->n_errors);
  if (!strcmp(w->engine, "sqlite")) return;
  snprintf(name, sizeof name, "fuzz [%s] share of native runs", w->engine);
  if (native < 45)
    tap_bad(name, "%.1f %%, less than 45 %%", native);
  else if (engine < 15)
    tap_bad(name, "%.1f %% by the engine asked for, less than 15 %%", engine);
  else
    tap_ok(name);
}

static int run(world *w, uint64_t seed, long first, long n, bool verbose) {
  char why[900], name[120];
  int n_failed = 0;
  for (long table_no = first; w->n_run < n && n_failed < MAX_FAILED; table_no++) {
    w->r.s = seed * 1000003u + (uint64_t)table_no;
    rng_next(&w->r);
    make_table(&w->r, &w->t);
    sqlite3 *db = open_db(w);
    for (int k = 0; k < (w->t.times > 100 ? 4 : PER_TABLE) && w->n_run < n; k++) {
      make_query(&w->m, &w->q);
      for (int i = 0; i < 2 * MAX_BINDS; i++) {
        char **slot = &w->binds[i / MAX_BINDS][i % MAX_BINDS];
        sqlite3_free(*slot);
        *slot = value(&w->r, F_MIXED);
      }
      bool same = agree(w, db, why, sizeof why);
      if (verbose) {
        char *sql = query_text(&w->q);
        printf("  %s\n    %zu rows, %s\n", sql, w->want.n_rows, w->reason);
        sqlite3_free(sql);
      }
      w->n_run++;
      w->n_errors += w->want.rc != SQLITE_DONE;
      w->n_native += w->reason[0] && strncmp(w->reason, "sqlite", 6) != 0;
      w->n_engine +=
          !strncmp(w->reason, engine_prefix(w->engine), strlen(engine_prefix(w->engine))) &&
          !strstr(w->reason, "rows on the host");
      note_reason(&w->reasons, w->reason);
      if (same) continue;
      n_failed++;
      snprintf(name, sizeof name, "fuzz --engine %s --seed %llu --table %ld (query %d of it)",
               w->engine, (unsigned long long)seed, table_no, k);
      report(w, name, why);
      break; /* the table was shrunk */
    }
    sqlite3_close(db);
    free_table(&w->t);
  }
  return n_failed;
}

int main(int argc, char **argv) {
  world *w = must(calloc(1, sizeof *w));
  uint64_t seed = 1;
  long n = 5000, first = 0;
  bool verbose = false;
  w->engine = "cpu";
  w->m.r = &w->r;
  w->m.t = &w->t;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--engine") && i + 1 < argc)
      w->engine = argv[++i];
    else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
      seed = strtoull(argv[++i], NULL, 10);
    else if (!strcmp(argv[i], "--queries") && i + 1 < argc)
      n = atol(argv[++i]);
    else if (!strcmp(argv[i], "--table") && i + 1 < argc)
      first = atol(argv[++i]);
    else if (!strcmp(argv[i], "--streams"))
      w->streams = true;
    else if (!strcmp(argv[i], "--verbose"))
      verbose = true;
    else {
      fprintf(stderr, "usage: fuzz [--engine E] [--queries N] [--seed S] [--table T] [--streams] "
                      "[--verbose]\n");
      return 2;
    }
  }
  int n_failed = run(w, seed, first, n, verbose);
  char name[120];
  snprintf(name, sizeof name, "fuzz [%s] seed %llu: %ld queries agree with SQLite", w->engine,
           (unsigned long long)seed, w->n_run);
  if (!n_failed) tap_ok(name);
  summary(w, seed);
  print_reasons(&w->reasons, 25);
  rows_free(&w->got);
  rows_free(&w->want);
  for (int i = 0; i < MAX_NODES; i++)
    for (int k = 0; k <= MAX_KIDS; k++) sqlite3_free(w->m.nodes[i].lit[k]);
  for (int i = 0; i < 2 * MAX_BINDS; i++) sqlite3_free(w->binds[i / MAX_BINDS][i % MAX_BINDS]);
  free(w);
  return tap_done();
}
