/*
** The differential fuzzer for statements that write: the same random INSERT, UPDATE, DELETE,
** transactions and savepoints on an ordinary table in SQLite, the oracle, and on a tablet table of
** the same declaration.
**
**     dmlfuzz [--n STATEMENTS] [--seed S] [--engine cpu|sim|cuda|sqlite] [--route always|cost]
**             [--plain] [--bulk PERCENT] [--only ROUND] [--stats] [--verbose] [--no-shrink]
**             [--twin] [--perturb changes|rowid|code|message|rows|table] [--script FILE]
**
** After every statement these must agree: result code and message, changes(),
** last_insert_rowid(), autocommit, what RETURNING gave; after every few, and after the end of
** every transaction, the whole table, read by the virtual table's cursor and natively. Some rounds
** have a file in WAL mode and a cache of five pages, which spills: there a copy of file and WAL, as
** a crash would leave them, must hold what was committed. Others have the smallest host_budget.
**
** --plain writes and reads the tablet table through SQLite alone, in what virtual tables allow.
** --bulk: the share of rounds with large tables (default 8), and statements over thousands of rows
** or, one after the other, over a few hundred. --only runs one
** round of the seed. A difference is shrunk and written as a script into TMPDIR, which --script
** runs on both sides. --twin has an ordinary table on the other side too, to try the test itself;
** with --perturb the other side's answers are spoilt, and the test passes if that is found.
**
** Invariants:
** 1. A round depends only on the seed, its number and the options.
** 2. What SQL or SQLite leaves open is not run (dmlfuzz_pair.h, dmlfuzz_stmt.h).
*/
#include "../tap.h"
#include "dmlfuzz_script.h"

enum { PER_ROUND = 200, PER_BULK_ROUND = 40, FAILED_MOST = 5 };

typedef struct fuzzer {
  pair p;
  script s;
  rng r;
  dml_table t[2];
  int n_tables;
  uint64_t seed;
  int bulk_percent;
  bool bulk, few, stats, verbose, no_shrink; /* few: the bulk round is mostly of few rows */
  long n_run, n_errors, n_skipped, n_reads, n_returning, n_in_bulk, n_changed;
  int since_read;
  reasons dml, reads;
} fuzzer;

/* ---- steps */

static long ask(fuzzer *f, const char *fmt, const char *name) {
  sqlite3_stmt *st = NULL;
  char *sql = sqlite3_mprintf(fmt, name);
  long n = 0;
  if (sqlite3_prepare_v2(f->p.want_db, sql, -1, &st, NULL) == SQLITE_OK &&
      sqlite3_step(st) == SQLITE_ROW)
    n = (long)sqlite3_column_int64(st, 0);
  sqlite3_finalize(st);
  sqlite3_free(sql);
  return n;
}

static void add_tables(fuzzer *f) {
  rng *r = &f->r;
  static const char *const names[] = {"t", "s"};
  f->n_tables = f->bulk || !rng_chance(r, 35) ? 1 : 2;
  for (int i = 0; i < f->n_tables; i++) {
    sqlite3_free(f->t[i].decl);
    f->t[i].name = names[i];
    make_declaration(r, f->p.plain, &f->t[i]);
    add_step(&f->s, STEP_CREATE, names[i], format("%s", f->t[i].decl));
  }
  add_step(&f->s, STEP_SQL, NULL,
           format("CREATE TABLE u(id INTEGER PRIMARY KEY, p TEXT, q, r REAL)"));
  sqlite3_str *o = sqlite3_str_new(NULL);
  sqlite3_str_appendall(o, "INSERT INTO u VALUES ");
  for (int i = 0; i < 16; i++) {
    sqlite3_str_appendf(o, "%s(%d", i ? ", " : "", i + 1);
    for (int c = 0; c < 3; c++) {
      char *x = literal_of(r, "tbr"[c]);
      sqlite3_str_appendf(o, ", %s", x);
      sqlite3_free(x);
    }
    sqlite3_str_appendall(o, ")");
  }
  add_step(&f->s, STEP_SQL, NULL, must(sqlite3_str_finish(o)));
  if (!f->bulk) return;
  add_step(&f->s, STEP_SQL, NULL, format("CREATE TABLE n(x INTEGER PRIMARY KEY)"));
  add_step(&f->s, STEP_SQL, NULL,
           format("INSERT INTO n WITH RECURSIVE g(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM g "
                  "WHERE x < 70000) SELECT x FROM g"));
}

static void add_whole(fuzzer *f) {
  for (int i = 0; i < f->n_tables; i++)
    add_step(&f->s, STEP_READ, f->t[i].name,
             format("SELECT rowid AS rowid, * FROM %s" HERE, f->t[i].name));
  f->since_read = 0;
}

static void add_transaction(fuzzer *f) {
  rng *r = &f->r;
  int k = rng_below(r, 100), n = 1 + rng_below(r, 3);
  if (sqlite3_get_autocommit(f->p.want_db)) k = k < 92 ? k % 40 : k;
  char *sql;
  bool end = k >= 40;
  if (k < 25)
    sql = sqlite3_get_autocommit(f->p.want_db) || k < 3
              ? format("BEGIN%s", k % 3 == 0   ? ""
                                  : k % 3 == 1 ? " IMMEDIATE"
                                               : " DEFERRED")
              : format("SAVEPOINT s%d", n);
  else if (k < 40)
    sql = format("SAVEPOINT s%d", n);
  else if (k < 55)
    sql = format("RELEASE s%d", n);
  else if (k < 70 && f->p.store != 3) /* which SQLite itself gets wrong after a spill */
    sql = format("ROLLBACK TO s%d", n);
  else if (k < 88)
    sql = format("%s", k & 1 ? "COMMIT" : "END");
  else
    sql = format("ROLLBACK");
  add_step(&f->s, STEP_SQL, NULL, sql);
  if (end) add_whole(f);
}

static void add_where(fuzzer *f, dml_maker *m, const dml_table *t) {
  sqlite3_str *o = sqlite3_str_new(NULL);
  m->params = m->n_names = 0;
  m->target = NULL;
  add_columns(m, "", t);
  sqlite3_str_appendf(o, "SELECT rowid AS rowid, * FROM %s" HERE " WHERE ", t->name);
  put_cond(m, o, 2);
  add_step(&f->s, STEP_READ, t->name, must(sqlite3_str_finish(o)));
}

/* Texts must not grow without end. */
static void add_cut(fuzzer *f, const dml_table *t) {
  sqlite3_str *o = sqlite3_str_new(NULL);
  sqlite3_str_appendf(o, "DELETE FROM %s WHERE length(%s) > 3000", t->name, t->col[0].name);
  for (int i = 1; i < t->n_cols; i++)
    sqlite3_str_appendf(o, " OR length(%s) > 3000", t->col[i].name);
  add_step(&f->s, STEP_CHANGE, t->name, must(sqlite3_str_finish(o)));
}

static void add_dml(fuzzer *f, dml_maker *m, const dml_table *t) {
  rng *r = &f->r;
  dml_stmt s = {0};
  long n_rows = ask(f, "SELECT count(*) FROM %s", t->name);
  long most = f->bulk ? 140000 : 120;
  const dml_table *from = rng_chance(r, 70) ? t : &f->t[rng_below(r, f->n_tables)];
  int k = rng_below(r, 100);
  if (has_greatest_rowid(&f->p, t->name) && rng_chance(r, 50)) {
    s.sql = format("DELETE FROM %s WHERE rowid = 9223372036854775807", t->name);
  } else if (f->bulk && n_rows < most && k < (n_rows < 4000 ? 70 : 12)) {
    make_bulk_insert(m, t, false, &s);
    f->n_in_bulk++;
  } else if (t->n_keys && n_rows < most && rng_chance(r, f->p.store == 3 ? 15 : 4)) {
    make_bulk_insert(m, t, true, &s);
  } else if (f->bulk && k < (f->few ? 75 : 45)) {
    if (f->few && k < 60)
      make_few_change(m, t, &s);
    else
      make_bulk_change(m, t, &s);
    f->n_in_bulk++;
  } else if (k < (n_rows > most ? 20 : n_rows < 10 ? 80 : 55)) {
    make_insert(m, t, from, n_rows > most || !f->bulk ? 12 : 5000, &s);
  } else if (k < 85) {
    make_update(m, t, &s);
  } else {
    make_delete(m, t, &s);
  }
  step *x = add_step(&f->s, s.insert ? STEP_INSERT : STEP_CHANGE, t->name, s.sql);
  x->touchy = s.touchy;
  x->has_select = s.has_select;
  x->once = rng_chance(r, 3) && strstr(s.sql, " RETURNING ");
  x->n_sets = m->n_binds && !m->careful && rng_chance(r, 25) ? 2 : 1;
  for (int i = 0; i < m->n_binds; i++) {
    x->binds[0][i] = m->binds[i];
    if (x->n_sets < 2) continue;
    char *other = literal_of(r, "irtnb"[rng_below(r, 5)]);
    bool greatest = strstr(other, "9223372036854775807") != NULL; /* as a rowid it must come last */
    if (greatest) sqlite3_free(other);
    x->binds[1][i] = greatest ? format("7") : other;
  }
  f->n_returning += strstr(s.sql, " RETURNING ") != NULL;
  if (++f->since_read >= (f->bulk ? 8 : 5)) add_whole(f);
}

/* Adds one step or a few. */
static void add_steps(fuzzer *f, long number) {
  static const int styles[] = {0, 0, 0, 0, '?', '#', ':'};
  rng *r = &f->r;
  const dml_table *t = &f->t[rng_below(r, f->n_tables)];
  int k = rng_below(r, 100);
  dml_maker m = {.r = r, .plain = f->p.plain, .params = PICK(r, styles), .target = t->name};
  m.big = f->bulk;
  if (f->p.plain && rng_chance(r, 90)) m.target = NULL;
  if (number % 25 == 24)
    add_cut(f, t);
  else if (k < 78)
    add_dml(f, &m, t);
  else if (k < 88)
    add_transaction(f);
  else if (k < 93)
    add_where(f, &m, t);
  else if (k < 94)
    add_step(&f->s, STEP_OPTIMIZE, t->name, NULL);
  else if (k < 96)
    add_step(&f->s, STEP_CHECK, t->name, NULL);
  else if (k < 98)
    add_step(&f->s, STEP_REOPEN, NULL, NULL);
  else
    add_step(&f->s, STEP_SQL, NULL,
             format(k & 1 ? "UPDATE u SET q = id + %d WHERE id %% 4 = 1"
                          : "INSERT OR REPLACE INTO u SELECT %d %% 20, p, q, r FROM u WHERE id = 3",
                    rng_below(r, 100)));
}

/* ---- rounds */

static void report(fuzzer *f, long round, differ d) {
  char name[200], path[300], why[sizeof f->p.why];
  script *s = &f->s;
  memcpy(why, f->p.why, sizeof why);
  const char *opts = f->p.plain ? " --plain" : f->p.twin ? " --twin" : "";
  snprintf(name, sizeof name, "dmlfuzz --engine %s --route %s%s --bulk %d --seed %llu --only %ld",
           f->p.engine, f->p.route, opts, f->bulk_percent, (unsigned long long)f->seed, round);
  printf("-- %s\n-- %s: %s\n-- %s\n", name, differ_names[d], why, f->p.reason);
  script last = {&s->of[s->n - 1], 1, 1};
  write_script(&last, f->p.twin, stdout);
  print_rows("warplite", &f->p.got);
  print_rows("SQLite", &f->p.want);
  pair_disconnect(&f->p);
  pair_remove(&f->p);
  char again[sizeof why];
  int at = -1;
  if (!f->p.perturb && replay(&f->p, s, NULL, &at, again) == d && at == s->n - 1) {
    if (!f->no_shrink) shrink(&f->p, s, d, 20);
    printf("-- smaller:\n");
    replay(&f->p, s, NULL, &at, again);
    if (s->n < 40) write_script(s, f->p.twin, stdout);
    printf("-- %s\n", again);
  } else if (!f->p.perturb) {
    printf("-- it does not happen again when the steps are repeated\n");
  }
  snprintf(path, sizeof path, "%s/dmlfuzz-%llu-%ld.sql", f->p.dir, (unsigned long long)f->seed,
           round);
  FILE *out = f->p.perturb ? NULL : fopen(path, "w");
  if (out) {
    write_script(s, f->p.twin, out);
    fclose(out);
    printf("-- script: %s\n", path);
  }
  if (f->p.perturb)
    tap_ok(name);
  else
    tap_bad(name, "%s: %s", differ_names[d], why);
}

static void count(fuzzer *f, const step *s, differ d) {
  f->n_skipped += d == SKIPPED;
  if (d == SKIPPED) return;
  if (s->kind == STEP_READ) {
    f->n_reads++;
    note_reason(&f->reads, f->p.reason);
  } else if (s->kind == STEP_INSERT || s->kind == STEP_CHANGE || s->kind == STEP_SQL) {
    f->n_run++;
    f->n_errors += f->p.want.rc != SQLITE_DONE;
    if (s->kind != STEP_SQL) note_reason(&f->dml, f->p.want.prepared ? f->p.reason : "an error");
    if (f->p.ran) f->n_changed += sqlite3_changes(f->p.want_db);
  }
}

/* False: a difference was found. */
static bool run_round(fuzzer *f, long round, long most) {
  clear_script(&f->s);
  f->r.s = f->seed * 1000003u + (uint64_t)round;
  rng_next(&f->r);
  f->bulk = rng_chance(&f->r, f->bulk_percent);
  f->few = f->bulk && rng_chance(&f->r, 60);
  f->p.store = rng_chance(&f->r, 40) ? 0 : 1 + rng_below(&f->r, STORES - 1);
  f->p.tight = rng_chance(&f->r, 20);
  f->p.n_perturb = 0;
  f->since_read = 0;
  pair_remove(&f->p);
  pair_connect(&f->p);
  add_tables(f);
  int per_round = f->bulk ? PER_BULK_ROUND : PER_ROUND, n = 0;
  long first = f->n_run;
  for (int i = 0; f->n_run - first < per_round && n <= most + 400; i++) {
    if (i == f->s.n) {
      if (f->n_run >= most + first && f->since_read == 0) break;
      if (f->n_run >= most + first)
        add_whole(f);
      else
        add_steps(f, n);
      n++;
    }
    const step *s = &f->s.of[i];
    if (f->verbose && s->sql) printf("%d: %s\n", i, s->sql), fflush(stdout);
    differ d = run_step(&f->p, s);
    if (f->verbose) printf("    %s %s %s\n", differ_names[d], f->p.reason, f->p.want.err);
    if (s->kind == STEP_CREATE && f->p.want.rc != SQLITE_DONE) {
      fprintf(stderr, "dmlfuzz: %s: %s\n", f->p.want.err, s->sql);
      exit(2);
    }
    if (d != SAME && d != SKIPPED) {
      while (f->s.n > i + 1) { /* what was to come */
        script rest = {&f->s.of[--f->s.n], 1, 1};
        clear_script(&rest);
      }
      report(f, round, d);
      return false;
    }
    count(f, s, d);
  }
  bool closed = pair_disconnect(&f->p);
  pair_remove(&f->p);
  if (!closed) tap_bad("dmlfuzz", "the connection does not close");
  return closed;
}

static int run_file(fuzzer *f, const char *path) {
  char why[sizeof f->p.why];
  int at = 0;
  if (!read_script(&f->s, path)) {
    fprintf(stderr, "dmlfuzz: cannot read %s\n", path);
    return 2;
  }
  for (f->p.store = 0; f->p.store < STORES; f->p.store++) {
    differ d = replay(&f->p, &f->s, NULL, &at, why);
    if (d == SAME) continue;
    script last = {&f->s.of[at], 1, 1};
    write_script(&last, f->p.twin, stdout);
    tap_bad(path, "%s: %s", differ_names[d], why);
    return tap_done();
  }
  tap_ok(path);
  return tap_done();
}

static void summary(fuzzer *f) {
  printf("  seed %llu, engine %s%s: %ld statements (%ld errors, %ld with RETURNING, %ld over many "
         "rows), %ld rows changed, %ld reads, %ld skipped\n",
         (unsigned long long)f->seed, f->p.engine,
         f->p.plain  ? ", plain"
         : f->p.twin ? ", twin"
                     : "",
         f->n_run, f->n_errors, f->n_returning, f->n_in_bulk, f->n_changed, f->n_reads,
         f->n_skipped);
  if (!f->stats) return;
  printf("  writing:\n");
  print_reasons(&f->dml, 25);
  printf("  reading:\n");
  print_reasons(&f->reads, 15);
}

static int usage(void) {
  fprintf(stderr, "usage: dmlfuzz [--n STATEMENTS] [--seed S] [--engine cpu|sim|cuda|sqlite]\n"
                  "               [--route always|cost] [--plain] [--bulk PERCENT] [--only ROUND]\n"
                  "               [--stats] [--verbose] [--no-shrink] [--twin] [--script FILE]\n"
                  "               [--perturb changes|rowid|code|message|rows|table]\n");
  return 2;
}

int main(int argc, char **argv) {
  fuzzer *f = must(calloc(1, sizeof *f));
  long n = 5000, only = -1;
  const char *file = NULL, *dir = getenv("TMPDIR");
  f->p.engine = "cpu";
  f->p.route = "always";
  f->p.dir = dir ? dir : "/tmp";
  f->seed = 1;
  f->bulk_percent = 8;
  for (int i = 1; i < argc; i++) {
    const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
    bool takes = true;
    if (!strcmp(a, "--n") && v)
      n = atol(v);
    else if (!strcmp(a, "--seed") && v)
      f->seed = strtoull(v, NULL, 10);
    else if (!strcmp(a, "--engine") && v)
      f->p.engine = v;
    else if (!strcmp(a, "--route") && v)
      f->p.route = v;
    else if (!strcmp(a, "--bulk") && v)
      f->bulk_percent = atoi(v);
    else if (!strcmp(a, "--only") && v)
      only = atol(v);
    else if (!strcmp(a, "--perturb") && v)
      f->p.perturb = v;
    else if (!strcmp(a, "--script") && v)
      file = v;
    else {
      takes = false;
      bool *flag = !strcmp(a, "--plain")       ? &f->p.plain
                   : !strcmp(a, "--twin")      ? &f->p.twin
                   : !strcmp(a, "--stats")     ? &f->stats
                   : !strcmp(a, "--verbose")   ? &f->verbose
                   : !strcmp(a, "--no-shrink") ? &f->no_shrink
                                               : NULL;
      if (!flag) return usage();
      *flag = true;
    }
    i += takes;
  }
  if (sqlite3_open(":memory:", &f->p.eval) != SQLITE_OK) return 2;
  if (file) return run_file(f, file);
  int n_failed = 0;
  if (only >= 0)
    n_failed += !run_round(f, only, PER_ROUND);
  else
    for (long k = 0; f->n_run < n && n_failed < (f->p.perturb ? 1 : FAILED_MOST); k++)
      n_failed += !run_round(f, k, n - f->n_run);
  char name[200];
  snprintf(name, sizeof name, "dmlfuzz [%s%s] seed %llu: %ld statements agree with SQLite",
           f->p.engine, f->p.plain ? ", plain" : "", (unsigned long long)f->seed, f->n_run);
  if (f->p.perturb && !n_failed)
    tap_bad("dmlfuzz --perturb", "a spoilt answer was not found: %s", f->p.perturb);
  else if (!n_failed)
    tap_ok(name);
  summary(f);
  clear_script(&f->s);
  free(f->s.of);
  for (int i = 0; i < 2; i++) sqlite3_free(f->t[i].decl);
  rows_free(&f->p.want);
  rows_free(&f->p.got);
  sqlite3_close(f->p.eval);
  free(f);
  return tap_done();
}
