/*
** The differential fuzzer for queries over several tables: joins, subqueries, compounds, CTEs and
** views over random schemas, SQLite on the same connection as the oracle.
**
**     joinfuzz [--engine cpu|sim|cuda|replan] [--queries N] [--seed S] [--only K] [--ties]
**              [--strict] [--share P] [--verbose]
**
** What is not native runs in SQLite, is counted by reason and proves nothing; fewer native
** queries than --share percent is a failure. A difference is shrunk and written as a script into
** TMPDIR. --only K runs query K of the seed alone. `--engine replan` runs no warplite: it holds
** SQLite against SQLite without its optimizations and with unordered scans reversed, to try the
** comparison itself.
**
** Invariants:
** 1. Query K of a run depends only on the seed and K, and so does its schema.
** 2. Without ORDER BY answers are compared as multisets, with one also the sequence of the sort
**    keys. A total order leaves nothing open but the order of rows that compare equal.
** 3. A REAL from sum(), total() or avg() may differ by 1e-12 of the sum of |x|; group_concat()
**    may have its parts in any order.
** 4. An answer that differs only in which of several equal values it shows (1 for 1.0, 'a' for
**    'A' under NOCASE) is a difference as well, told apart from the others; --ties lets it pass.
** 5. Where SQLite gives warplite's answer by another plan, and SQL fixes the answer, the query is
**    counted apart and passes: one of SQLite's two answers is a bug of its own. --strict has it
**    fail.
** 6. SQLite runs first and under a limit of steps; what it does not finish is skipped.
*/
#include <unistd.h>

#include "../engines.h"
#include "../tablets.h"
#include "../tap.h"
#include "joinfuzz_query.h"
#include "joinfuzz_shrink.h"
#include "outcome.h"

enum { PER_SCHEMA = 250, MAX_FAILED = 5, MAX_SEEN = 256 };
enum { STEPS = 20000, MOST_STEPS = 250 };
typedef enum verdict { SAME, PLAN, TIES, WRONG } verdict;

typedef struct fuzzer {
  const char *engine;
  bool replan, ties, strict, verbose, tablets, authorizer;
  double share;
  uint64_t seed;
  sqlite3 *db;
  schema s;
  rng r;
  maker m;
  query q;
  char *binds[MAX_BINDS];
  rows got, want;
  char reason[300], why[900];
  int steps;            /* of SQLite's, in units of STEPS */
  bool asking;          /* a query is being prepared: the authorizer has its say */
  uint64_t whim;        /* which questions it answers by IGNORE or DENY */
  uint64_t asked;       /* all that it was asked, as one number … */
  uint64_t asked_by_us; /* … for warplite_prepare … */
  bool asked_wrong;     /* … and that is not what SQLite asks */
  long n_ignored;
  long n_run, n_native, n_engine, n_errors, n_empty, n_slow, n_ties, n_plan, n_wrong;
  reasons reasons;
} fuzzer;

/* ---- schemas */

static int on_progress(void *arg) {
  fuzzer *f = arg;
  return ++f->steps > MOST_STEPS;
}

static void limit_steps(fuzzer *f, bool on) {
  f->steps = 0;
  sqlite3_progress_handler(f->db, on ? STEPS : 0, on ? on_progress : NULL, f);
}

/* A view that fails, is slow or large is not for use. */
static void make_views(fuzzer *f) {
  for (int i = 0; i < MAX_VIEWS; i++) {
    relation *t = &f->s.rel[f->s.n_rels];
    char *sql = make_view(&f->m, i % 4, t);
    snprintf(t->name, sizeof t->name, "v%d", i);
    run_sql(&f->s, f->db, format("CREATE VIEW %s AS %s", t->name, sql));
    limit_steps(f, true);
    char *count = format("SELECT count(*) FROM %s", t->name);
    rows_query(&f->want, f->db, sqlite3_prepare_v2, count);
    sqlite3_free(count);
    limit_steps(f, false);
    forget(&f->m);
    t->n_rows = f->want.rc == SQLITE_DONE ? (double)f->want.cells[0].u.i : BIG_ROWS;
    if (t->n_rows < 2000)
      f->s.n_rels++;
    else
      run_sql(&f->s, f->db, format("DROP VIEW %s", t->name));
  }
}

/* All tables that have rowids and no columns that a tablet table cannot have. */
static void make_tablets(fuzzer *f, long number) {
  rng r = {.s = f->seed * 7919u + (uint64_t)number};
  for (int i = 0; i < f->s.n_tables; i++) {
    char *sql = format("SELECT count(*) FROM pragma_table_list(%Q) WHERE type = 'table' AND NOT wr "
                       "AND NOT strict AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(%Q) WHERE "
                       "hidden)",
                       f->s.rel[i].name, f->s.rel[i].name);
    if (tablets_ask(f->db, sql) == 1 && !tablets_convert(f->db, f->s.rel[i].name, &r)) {
      tap_bad("joinfuzz", "no tablet table can be made of %s", f->s.rel[i].name);
      exit(tap_done());
    }
  }
}

/* Answers one question in sixteen by IGNORE, one in a hundred by DENY; others with each query. */
static int authorize(void *arg, int code, const char *a, const char *b, const char *c,
                     const char *d) {
  fuzzer *f = arg;
  const char *const texts[] = {a, b, c, d};
  if (!f->asking) return SQLITE_OK;
  rng one = {.s = f->whim + (uint64_t)code};
  for (int k = 0; k < 4; k++) {
    for (const char *p = texts[k]; p && *p; p++) one.s = rng_next(&one) + (unsigned char)*p;
    one.s = rng_next(&one) + (texts[k] != NULL);
  }
  uint64_t x = rng_next(&one);
  f->asked = f->asked * 1000003u + x;
  if (code != SQLITE_READ && code != SQLITE_FUNCTION) return SQLITE_OK;
  f->n_ignored += x % 16 == 0;
  return x % 16 == 0 ? SQLITE_IGNORE : x % 101 == 0 ? SQLITE_DENY : SQLITE_OK;
}

static void open_schema(fuzzer *f, long number) {
  const char *engine = f->replan ? "sqlite" : f->engine;
  if (sqlite3_open(":memory:", &f->db) != SQLITE_OK || !use_engine(f->db, engine)) {
    tap_bad("joinfuzz", "cannot set the engine: %s", sqlite3_errmsg(f->db));
    exit(tap_done());
  }
  f->r.s = f->seed * 1000003u + (uint64_t)number * 2;
  rng_next(&f->r);
  make_tables(&f->r, &f->s, f->db);
  if (f->tablets) make_tablets(f, number);
  make_views(f);
  if (f->authorizer) warplite_set_authorizer(f->db, authorize, f);
}

static void close_schema(fuzzer *f) {
  if (sqlite3_close(f->db) != SQLITE_OK) tap_bad("joinfuzz", "the connection does not close");
  free_schema(&f->s);
}

/* ---- running */

static void bind(fuzzer *f, sqlite3_stmt *st) {
  int n = sqlite3_bind_parameter_count(st);
  for (int i = 1; i <= n && i <= MAX_BINDS; i++) {
    sqlite3_stmt *v = NULL;
    char *sql = format("SELECT %s", f->binds[i - 1]);
    if (sqlite3_prepare_v2(f->db, sql, -1, &v, NULL) == SQLITE_OK && sqlite3_step(v) == SQLITE_ROW)
      sqlite3_bind_value(st, i, sqlite3_column_value(v, 0));
    sqlite3_finalize(v);
    sqlite3_free(sql);
  }
}

static void answer(fuzzer *f, prepare_fn *prepare, const char *sql, rows *to) {
  sqlite3_stmt *st = NULL;
  rows_clear(to);
  f->asked = 0;
  f->asking = true;
  int rc = prepare(f->db, sql, -1, &st, NULL);
  f->asking = false;
  if (rc != SQLITE_OK) {
    rows_fail(to, f->db, rc);
  } else {
    bind(f, st);
    rows_step(to, f->db, st);
  }
  sqlite3_finalize(st);
}

/* SQLite under its limit of steps; false if it did not come to an end. */
static bool oracle(fuzzer *f, const char *sql, rows *to) {
  limit_steps(f, true);
  answer(f, sqlite3_prepare_v2, sql, to);
  limit_steps(f, false);
  return to->rc != SQLITE_INTERRUPT;
}

/* SQLite by another plan. */
static bool replanned(fuzzer *f, const char *sql, rows *to) {
  sqlite3_test_control(SQLITE_TESTCTRL_OPTIMIZATIONS, f->db, 0xffffffffu);
  sqlite3_exec(f->db, "PRAGMA reverse_unordered_selects=1", NULL, NULL, NULL);
  bool done = oracle(f, sql, to);
  sqlite3_exec(f->db, "PRAGMA reverse_unordered_selects=0", NULL, NULL, NULL);
  sqlite3_test_control(SQLITE_TESTCTRL_OPTIMIZATIONS, f->db, 0);
  return done;
}

/* ---- comparing */

static cell *cell_at(const rows *r, size_t row, int col) {
  return &r->cells[row * (size_t)r->n_col + (size_t)col];
}

/* A value as one that stands for all that equal it. `fold`: texts under NOCASE or RTRIM too. */
static cell normal(rows *r, const cell *x, bool fold) {
  cell y = *x;
  if (x->type == SQLITE_FLOAT && x->u.r >= -9223372036854775808.0 &&
      x->u.r < 9223372036854775808.0 && (double)(int64_t)x->u.r == x->u.r) {
    y.type = SQLITE_INTEGER;
    y.u.i = (int64_t)x->u.r;
  }
  if (x->type == SQLITE_TEXT && fold) {
    char *p = r->bytes + x->u.off;
    for (int i = 0; i < x->n; i++)
      if (p[i] >= 'A' && p[i] <= 'Z') p[i] += 'a' - 'A';
    while (y.n > 0 && p[y.n - 1] == ' ') y.n--;
  }
  return y;
}

static void normalize(rows *r) {
  for (size_t i = 0; i < r->n_cells; i++) r->cells[i] = normal(r, &r->cells[i], true);
}

static int fold_compare(const rows *ra, const cell *a, const rows *rb, const cell *b) {
  int n = a->n, k = b->n;
  const char *p = ra->bytes + a->u.off, *q = rb->bytes + b->u.off;
  while (n > 0 && p[n - 1] == ' ') n--;
  while (k > 0 && q[k - 1] == ' ') k--;
  return n == k ? sqlite3_strnicmp(p, q, n) : 1;
}

/* Row by row the sort keys that can be seen must be equal, as SQL has it. */
static bool keys_agree(fuzzer *f) {
  for (size_t i = 0; i < f->got.n_rows; i++)
    for (int k = 0; k < f->q.n_keys; k++) {
      int c = f->q.key[k].out;
      if (c >= f->got.n_col) continue;
      cell a = normal(&f->got, cell_at(&f->got, i, c), false);
      cell b = normal(&f->want, cell_at(&f->want, i, c), false);
      if (cell_same(&f->got, &a, &f->want, &b, false)) continue;
      if (f->q.key[k].fold && a.type == SQLITE_TEXT && b.type == SQLITE_TEXT &&
          !fold_compare(&f->got, &a, &f->want, &b))
        continue;
      snprintf(f->why, sizeof f->why, "the order: row %zu differs in sort key %d (column %d)", i, k,
               c);
      return false;
    }
  return true;
}

typedef struct part {
  const char *text;
  size_t n;
} part;

static int by_text(const void *x, const void *y) {
  const part *a = x, *b = y;
  int d = memcmp(a->text, b->text, a->n < b->n ? a->n : b->n);
  return d ? d : (a->n > b->n) - (a->n < b->n);
}

/* The parts of a group_concat() with char(31) between them, in one order. */
static void sort_parts(rows *r, const cell *x) {
  if (x->type != SQLITE_TEXT || x->n == 0) return;
  char *text = r->bytes + x->u.off, *copy = must(malloc((size_t)x->n));
  size_t n = 0;
  part *parts = must(malloc(((size_t)x->n + 1) * sizeof *parts));
  memcpy(copy, text, (size_t)x->n);
  for (const char *p = copy, *end = copy + x->n; p <= end;) {
    const char *stop = memchr(p, 31, (size_t)(end - p));
    if (!stop) stop = end;
    parts[n++] = (part){p, (size_t)(stop - p)};
    p = stop + 1;
  }
  qsort(parts, n, sizeof *parts, by_text);
  for (size_t i = 0; i < n; i++) {
    if (i) *text++ = 31;
    memcpy(text, parts[i].text, parts[i].n);
    text += parts[i].n;
  }
  free(parts);
  free(copy);
}

static double slack_of(fuzzer *f, int c) {
  double slack = INFINITY;
  rows parts = {0};
  if (oracle(f, f->q.slack[c], &parts) && parts.rc == SQLITE_DONE &&
      parts.cells[0].type == SQLITE_FLOAT)
    slack = parts.cells[0].u.r * fmax(1e-12, 1.2e-16 * (double)parts.cells[1].u.i);
  rows_free(&parts);
  return slack;
}

/* Makes sums that are close enough the same, so that the rest can be compared by bits. */
static void forgive_sums(fuzzer *f) {
  for (int c = 0; c < f->q.n_out && c < f->got.n_col; c++) {
    double slack = -1;
    for (size_t i = 0; f->q.slack[c] && i < f->got.n_rows; i++) {
      cell *a = cell_at(&f->got, i, c), *b = cell_at(&f->want, i, c);
      if (cell_same(&f->got, a, &f->want, b, false)) continue;
      bool reals = a->type == SQLITE_FLOAT && b->type == SQLITE_FLOAT;
      bool lost = (a->type == SQLITE_FLOAT || a->type == SQLITE_NULL) &&
                  (b->type == SQLITE_FLOAT || b->type == SQLITE_NULL);
      if (!lost) continue;
      if (slack < 0) slack = slack_of(f, c);
      if ((reals && fabs(a->u.r - b->u.r) <= slack) || isinf(slack)) *a = *b;
    }
  }
}

/* Compares got with want and says in f->why what is wrong. Leaves both sorted if need be. */
static verdict judge(fuzzer *f) {
  bool last[MAX_SEEN] = {false};
  rows *a = &f->got, *b = &f->want;
  if (rows_same(a, b, false, f->why, sizeof f->why)) return SAME;
  if (f->q.in_order) return WRONG;
  if (a->rc != SQLITE_DONE || b->rc != SQLITE_DONE || a->n_rows != b->n_rows ||
      a->n_col != b->n_col || strcmp(a->names, b->names) || a->n_col > MAX_SEEN)
    return WRONG;
  char why[sizeof f->why];
  memcpy(why, f->why, sizeof why);
  bool ordered = keys_agree(f);
  for (int c = 0; c < f->q.n_out && c < a->n_col; c++) {
    last[c] = f->q.slack[c] != NULL;
    for (size_t i = 0; f->q.bag[c] && i < a->n_rows; i++) {
      sort_parts(a, cell_at(a, i, c));
      sort_parts(b, cell_at(b, i, c));
    }
  }
  char order[sizeof f->why];
  memcpy(order, f->why, sizeof order);
  sort_rows(a, last);
  sort_rows(b, last);
  forgive_sums(f);
  if (rows_same(a, b, false, f->why, sizeof f->why)) {
    if (ordered) return SAME;
    memcpy(f->why, order, sizeof order);
    return WRONG;
  }
  if (!ordered) return WRONG;
  /* equal values that look different? */
  normalize(a);
  normalize(b);
  sort_rows(a, last);
  sort_rows(b, last);
  return rows_same(a, b, false, why, sizeof why) ? TIES : WRONG;
}

/* Where rows have no order for LIMIT to cut, that is known before the run: EXPLAIN says it too. */
static bool explained(fuzzer *f, const char *sql) {
  static const char cut[] = "LIMIT without ORDER BY over rows that have no order";
  rows plan = {0};
  if (!f->got.prepared || !strstr(f->reason, cut)) return true;
  char *text = format("EXPLAIN QUERY PLAN %s", sql);
  answer(f, warplite_prepare, text, &plan);
  sqlite3_free(text);
  const char *top = plan.n_rows && plan.n_col == 4 ? plan.bytes + plan.cells[3].u.off : "cpu:";
  /* of a statement without tables it shows SQLite's plan alone */
  bool same = strstr(top, cut) || (strncmp(top, "cpu:", 4) && strncmp(top, "gpu:", 4));
  if (!same) snprintf(f->why, sizeof f->why, "EXPLAIN does not say that SQLite runs it");
  rows_free(&plan);
  return same;
}

/* SQLite loses the sign of -0.0 in columns of a subquery that its plan keeps in a table for a
** while, which no SQL can see. */
static void positive_zeros(rows *r) {
  for (size_t i = 0; i < r->n_cells; i++)
    if (r->cells[i].type == SQLITE_FLOAT && r->cells[i].u.r == 0) r->cells[i].u.r = 0;
}

/* Runs a query both ways. False if SQLite did not finish. */
static bool run_both(fuzzer *f, const char *sql, verdict *v) {
  if (!oracle(f, sql, &f->want)) return false;
  uint64_t asked = f->asked;
  f->reason[0] = 0;
  if (f->replan) {
    if (!replanned(f, sql, &f->got)) return false;
  } else {
    answer(f, warplite_prepare, sql, &f->got);
    f->asked_by_us = f->asked; /* judging may run more */
    snprintf(f->reason, sizeof f->reason, "%s", warplite_reason(f->db));
  }
  positive_zeros(&f->want);
  positive_zeros(&f->got);
  *v = judge(f);
  if (*v == SAME && !f->replan && !explained(f, sql)) *v = WRONG;
  if (f->asked_by_us != asked && !f->replan) { /* SQLite begins anew where it meets a new schema */
    sqlite3_stmt *st = NULL;
    f->asked = 0;
    f->asking = true;
    sqlite3_prepare_v2(f->db, sql, -1, &st, NULL);
    f->asking = false;
    sqlite3_finalize(st);
    asked = f->asked;
  }
  f->asked_wrong = !f->replan && f->asked_by_us != asked;
  if (f->asked_wrong) {
    snprintf(f->why, sizeof f->why, "the authorizer was asked other things");
    *v = WRONG;
  }
  return true;
}

/* SQLite gives warplite's answer too, by another plan: joins of RIGHT and FULL in 3.40 have such
** cases, and so has the affinity of a compound's columns. */
static bool hangs_on_plan(fuzzer *f) {
  if (f->replan || f->q.open) return false;
  char why[sizeof f->why];
  memcpy(why, f->why, sizeof why);
  bool same = replanned(f, f->q.sql, &f->want);
  if (same) {
    answer(f, warplite_prepare, f->q.sql, &f->got);
    same = judge(f) == SAME;
  }
  memcpy(f->why, why, sizeof why);
  return same;
}

/* ---- telling */

/* For shrinking: the answers differ as multisets, and SQLite's does not hang on its plan. */
static bool differs(void *ctx, const char *sql) {
  fuzzer *f = ctx;
  verdict v;
  query q = f->q;
  rows other = {0};
  f->q.n_keys = f->q.n_out = 0;
  bool bad = run_both(f, sql, &v) && v == WRONG && f->want.rc == SQLITE_DONE;
  if (bad && !f->replan) {
    bool done = replanned(f, sql, &other);
    rows mine = f->got;
    f->got = other;
    oracle(f, sql, &f->want);
    bad = done && judge(f) == SAME;
    other = f->got;
    f->got = mine;
  }
  rows_free(&other);
  f->q = q;
  return bad;
}

static void write_report(fuzzer *f, long number, const char *sql, const char *how) {
  char path[300];
  const char *dir = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/joinfuzz-%llu-%ld%s.sql", dir ? dir : "/tmp",
           (unsigned long long)f->seed, number, how);
  FILE *out = fopen(path, "w");
  if (!out) return;
  write_script(&f->s, f->db, out);
  for (int i = 0; i < MAX_BINDS && strchr(sql, '?'); i++)
    fprintf(out, "-- ?%d is %s\n.param set ?%d \"%s\"\n", i + 1, f->binds[i], i + 1, f->binds[i]);
  fprintf(out, "%s;\n", sql);
  fclose(out);
  printf("-- script: %s\n", path);
}

static void print_both(fuzzer *f, const char *sql) {
  answer(f, sqlite3_prepare_v2, sql, &f->want);
  if (f->replan)
    replanned(f, sql, &f->got);
  else
    answer(f, warplite_prepare, sql, &f->got);
  print_rows(f->replan ? "SQLite by another plan" : "warplite", &f->got);
  print_rows("SQLite", &f->want);
}

static void report(fuzzer *f, long number, verdict v) {
  char name[160], why[sizeof f->why], reason[sizeof f->reason];
  bool bags = false;
  memcpy(why, f->why, sizeof why);
  memcpy(reason, f->reason, sizeof reason);
  for (int i = 0; i < f->q.n_out; i++) bags |= f->q.bag[i] || f->q.slack[i];
  snprintf(name, sizeof name, "joinfuzz --engine %s --seed %llu --only %ld", f->engine,
           (unsigned long long)f->seed, number);
  printf("-- %s\n-- %s\n%s;\n", name, reason, f->q.sql);
  for (int i = 0; i < MAX_BINDS && strchr(f->q.sql, '?'); i++)
    printf("-- ?%d is %s\n", i + 1, f->binds[i]);
  print_both(f, f->q.sql);
  write_report(f, number, f->q.sql, "");
  if (!f->replan) {
    rows mine = f->got;
    memset(&f->got, 0, sizeof f->got);
    bool done = replanned(f, f->q.sql, &f->got);
    bool same = done && (oracle(f, f->q.sql, &f->want), judge(f) == SAME);
    printf("-- SQLite's own answer %s\n", !done  ? "takes too long by another plan"
                                          : same ? "is the same by another plan"
                                                 : "changes with its plan");
    rows_free(&mine);
  }
  if (v == WRONG && !bags && differs(f, f->q.sql)) {
    char *less = shrink_text(f->q.sql, differs, f);
    shrink_rows(&f->s, f->db, less, differs, f);
    printf("-- smaller:\n%s;\n", less);
    print_both(f, less);
    write_report(f, number, less, "-small");
    sqlite3_free(less);
  }
  tap_bad(name, "%s%s", v == TIES ? "(equal values, another of them shown) " : "", why);
}

static void summary(fuzzer *f) {
  char name[160];
  double n = f->n_run ? (double)f->n_run : 1;
  printf(
      "  seed %llu, engine %s: %ld queries, %ld native (%.1f %%), %ld of them on %s (%.1f %%)\n"
      "  %ld failed in SQLite too, %ld without rows, %ld skipped as slow%s\n"
      "  %ld differences, %ld more only in which of equal values they show, %ld where SQLite gives "
      "both by other plans\n",
      (unsigned long long)f->seed, f->engine, f->n_run, f->n_native,
      100.0 * (double)f->n_native / n, f->n_engine, f->engine, 100.0 * (double)f->n_engine / n,
      f->n_errors, f->n_empty, f->n_slow, f->replan ? ", or as open" : "", f->n_wrong, f->n_ties,
      f->n_plan);
  print_reasons(&f->reasons, 25);
  if (f->replan || f->share <= 0) return;
  snprintf(name, sizeof name, "joinfuzz [%s] share of native runs", f->engine);
  if (100.0 * (double)f->n_native / n < f->share)
    tap_bad(name, "%.1f %%, less than %.1f %%", 100.0 * (double)f->n_native / n, f->share);
  else
    tap_ok(name);
}

/* ---- the run */

static void make_nth(fuzzer *f, long number) {
  f->r.s = f->seed * 1000003u + (uint64_t)number * 2 + 1;
  rng_next(&f->r);
  forget(&f->m);
  make_query(&f->m, &f->q);
  for (int i = 0; i < MAX_BINDS; i++) {
    sqlite3_free(f->binds[i]);
    f->binds[i] = value_of(&f->r, (kind)rng_below(&f->r, K_MIXED + 1));
  }
}

/* True if the schema is as it was. */
static bool run_one(fuzzer *f, long number) {
  verdict v;
  make_nth(f, number);
  f->whim = f->seed * 31 + (uint64_t)number;
  if (f->verbose) printf("%ld: %s\n", number, f->q.sql), fflush(stdout);
  if (f->replan && f->q.open) {
    f->n_slow++;
    return true;
  }
  if (!run_both(f, f->q.sql, &v)) {
    f->n_slow++;
    return true;
  }
  if (f->verbose) printf("    %zu rows, %s %s\n", f->want.n_rows, f->reason, f->want.err);
  f->n_run++;
  f->n_errors += f->want.rc != SQLITE_DONE;
  f->n_empty += f->want.rc == SQLITE_DONE && f->want.n_rows == 0;
  f->n_native += f->reason[0] && strncmp(f->reason, "sqlite", 6) != 0;
  f->n_engine += !strncmp(f->reason, engine_prefix(f->engine), strlen(engine_prefix(f->engine)));
  bool prepared = f->want.prepared;
  if (!f->replan) note_reason(&f->reasons, prepared ? f->reason : "an error");
  if (v == WRONG && !f->asked_wrong && hangs_on_plan(f)) v = PLAN;
  f->n_plan += v == PLAN;
  f->n_ties += v == TIES;
  f->n_wrong += v == WRONG;
  if (v == SAME || (v == PLAN && !f->strict) || (v == TIES && f->ties)) return true;
  report(f, number, v);
  return false;
}

int main(int argc, char **argv) {
  fuzzer *f = must(calloc(1, sizeof *f));
  long n = 5000, only = -1;
  f->engine = "cpu";
  f->seed = 1;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--engine") && i + 1 < argc)
      f->engine = argv[++i];
    else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
      f->seed = strtoull(argv[++i], NULL, 10);
    else if (!strcmp(argv[i], "--queries") && i + 1 < argc)
      n = atol(argv[++i]);
    else if (!strcmp(argv[i], "--only") && i + 1 < argc)
      only = atol(argv[++i]);
    else if (!strcmp(argv[i], "--share") && i + 1 < argc)
      f->share = atof(argv[++i]);
    else if (!strcmp(argv[i], "--ties"))
      f->ties = true;
    else if (!strcmp(argv[i], "--strict"))
      f->strict = true;
    else if (!strcmp(argv[i], "--tablets"))
      f->tablets = true;
    else if (!strcmp(argv[i], "--authorizer"))
      f->authorizer = true;
    else if (!strcmp(argv[i], "--verbose"))
      f->verbose = true;
    else {
      fprintf(stderr, "usage: joinfuzz [--engine cpu|sim|cuda|replan] [--queries N] [--seed S] "
                      "[--only K] [--ties] [--strict] [--share P] [--tablets] [--authorizer] "
                      "[--verbose]\n");
      return 2;
    }
  }
  f->replan = !strcmp(f->engine, "replan");
  f->m.r = &f->r;
  f->m.s = &f->s;
  int n_failed = 0;
  if (only >= 0) {
    open_schema(f, only / PER_SCHEMA);
    n_failed += !run_one(f, only);
    close_schema(f);
  } else {
    for (long k = 0; k < n && n_failed < (f->replan ? 1000 : MAX_FAILED);) {
      bool whole = true;
      open_schema(f, k / PER_SCHEMA);
      for (long end = (k / PER_SCHEMA + 1) * PER_SCHEMA; k < n && k < end && whole; k++)
        whole = run_one(f, k);
      n_failed += !whole; /* the schema was shrunk, the next query takes a new one */
      close_schema(f);
    }
  }
  char name[160];
  snprintf(name, sizeof name, "joinfuzz [%s] seed %llu: %ld queries agree with SQLite", f->engine,
           (unsigned long long)f->seed, f->n_run);
  if (!n_failed) tap_ok(name);
  summary(f);
  forget(&f->m);
  for (int i = 0; i < MAX_BINDS; i++) sqlite3_free(f->binds[i]);
  rows_free(&f->got);
  rows_free(&f->want);
  free(f);
  return tap_done();
}
