/*
** Two databases for dmlfuzz.c, and a step of a script on both: the oracle, an ordinary table in
** SQLite, and the other side, a tablet table of the same declaration. What is compared is
** everything that a program can see.
**
** Invariants:
** 1. A step is a text, or one of a few commands. A script is a list of steps, the first of which
**    make the tables; running it again from empty databases gives the same differences.
** 2. A step whose effect SQLite leaves open is skipped on both sides: when it would have to choose
**    a rowid at random, or when the order of a scan by an index would show.
** 3. total_changes() is not compared: the shadow tables count in it.
*/
#ifndef TEST_DMLFUZZ_PAIR_H
#define TEST_DMLFUZZ_PAIR_H

#include <unistd.h>

#include "../engines.h"
#include "dmlfuzz_stmt.h"
#include "outcome.h"

typedef enum step_kind {
  STEP_CREATE,   /* sql: the declaration; table */
  STEP_SQL,      /* anything else that is not compared in a special way */
  STEP_INSERT,   /* of table */
  STEP_CHANGE,   /* UPDATE or DELETE of table */
  STEP_READ,     /* sql: a SELECT, with HERE; by cursor and natively */
  STEP_OPTIMIZE, /* the tablet side alone */
  STEP_CHECK,    /* warplite_check, the tablet side alone */
  STEP_REOPEN
} step_kind;

typedef struct step {
  step_kind kind;
  const char *table;
  char *sql;
  int n_sets; /* the statement runs with each of these; 0 is as 1 */
  char *binds[2][DML_BINDS];
  bool touchy, has_select;
  bool once; /* only the first row of RETURNING is fetched */
} step;

typedef enum differ {
  SAME,
  SKIPPED,
  IN_CREATE,
  IN_CODE,
  IN_MESSAGE,
  IN_ROWS, /* what RETURNING gave */
  IN_CHANGES,
  IN_ROWID,
  IN_AUTOCOMMIT,
  IN_SHAPE, /* of the prepared statement */
  IN_CURSOR,
  IN_NATIVE,
  IN_CHECK
} differ;

static const char *const differ_names[] = {
    "same",          "skipped",    "CREATE",     "result code", "message",         "rows",
    "changes()",     "last rowid", "autocommit", "statement",   "table by cursor", "table natively",
    "warplite_check"};

enum { STORES = 4 };

typedef struct pair {
  /* how */
  const char *engine, *route, *dir;
  const char *perturb; /* what to spoil on the other side, in the 20th statement */
  bool twin, plain;
  int store;  /* 0: in memory, 1: a file, 2: a file in WAL mode, 3: with a small cache, too */
  bool tight; /* the smallest host_budget */
  /* the databases */
  sqlite3 *want_db, *got_db, *eval; /* eval: for the values of parameters */
  int n_open;
  bool changes_known, has_check;
  rows want, got;
  char why[1200], reason[300];
  bool ran; /* the latest step ran, and changed rows */
  long n_perturb;
} pair;

/* ---- opening */

static void path_of(const pair *p, char side, char *path, size_t n) {
  if (p->store)
    snprintf(path, n, "%s/dmlfuzz-%ld-%c.db", p->dir, (long)getpid(), side);
  else
    snprintf(path, n, ":memory:");
}

static sqlite3 *open_side(pair *p, char side) {
  char path[400];
  sqlite3 *db = NULL;
  path_of(p, side, path, sizeof path);
  bool ok = sqlite3_open(path, &db) == SQLITE_OK;
  if (ok && side == 'b') ok = use_engine(db, p->engine) && use_setting(db, "route", p->route);
  if (ok && side == 'b' && p->tight) ok = use_setting(db, "host_budget", "65536");
  if (!ok) {
    fprintf(stderr, "dmlfuzz: %s: %s\n", path, sqlite3_errmsg(db));
    exit(2);
  }
  sqlite3_extended_result_codes(db, 0);
  sqlite3_exec(db,
               p->store == 3   ? "PRAGMA page_size=1024; PRAGMA synchronous=off;"
                                 "PRAGMA journal_mode=wal; PRAGMA cache_size=5"
               : p->store == 2 ? "PRAGMA synchronous=off; PRAGMA journal_mode=wal"
                               : "PRAGMA synchronous=off",
               NULL, NULL, NULL);
  return db;
}

static bool has_function(sqlite3 *db, const char *name) {
  sqlite3_stmt *st = NULL;
  bool has = false;
  if (sqlite3_prepare_v2(db, "SELECT 1 FROM pragma_function_list WHERE name = ?", -1, &st, NULL) ==
      SQLITE_OK) {
    sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    has = sqlite3_step(st) == SQLITE_ROW;
  }
  sqlite3_finalize(st);
  return has;
}

static void pair_connect(pair *p) {
  p->want_db = open_side(p, 'a');
  p->got_db = open_side(p, 'b');
  p->has_check = has_function(p->got_db, "warplite_check");
  p->changes_known = true;
}

static bool pair_disconnect(pair *p) {
  bool ok = sqlite3_close(p->want_db) == SQLITE_OK;
  ok &= sqlite3_close(p->got_db) == SQLITE_OK;
  return ok;
}

static void pair_remove(pair *p) {
  static const char *const tails[] = {"", "-journal", "-wal", "-shm"};
  char path[400], whole[420];
  for (int k = 0; p->store && k < 12; k++) {
    path_of(p, "abc"[k % 3], path, sizeof path);
    snprintf(whole, sizeof whole, "%s%s", path, tails[k / 3]);
    unlink(whole);
  }
}

static void copy_to(const char *from, const char *to) {
  char block[65536];
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  for (size_t n; in && out && (n = fread(block, 1, sizeof block, in)) > 0;)
    fwrite(block, 1, n, out);
  if (in) fclose(in);
  if (out) fclose(out);
}

/* A number for all that a database of the other side holds. */
static uint64_t contents(sqlite3 *db) {
  static const char *const tables[] = {"t", "s", "u"};
  uint64_t h = 14695981039346656037u;
  for (int k = 0; k < 3; k++) {
    sqlite3_stmt *q = NULL;
    char *sql = format("SELECT rowid, * FROM %s ORDER BY rowid", tables[k]);
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK)
      while (sqlite3_step(q) == SQLITE_ROW)
        for (int c = 0; c < sqlite3_column_count(q); c++) {
          const unsigned char *text = sqlite3_column_blob(q, c);
          int n = sqlite3_column_bytes(q, c), type = sqlite3_column_type(q, c);
          h = (h ^ (uint64_t)type ^ (uint64_t)n << 8) * 1099511628211u;
          for (int i = 0; i < n; i++) h = (h ^ text[i]) * 1099511628211u;
        }
    sqlite3_finalize(q);
    sqlite3_free(sql);
  }
  return h;
}

/* What would be there if the process ended now: a copy of the file and of its WAL. */
static bool survives(pair *p) {
  char file[400], copy[400], wal[420], copied[420];
  if (p->store < 3) return true;
  path_of(p, 'b', file, sizeof file);
  path_of(p, 'c', copy, sizeof copy);
  snprintf(wal, sizeof wal, "%s-wal", file);
  snprintf(copied, sizeof copied, "%s-wal", copy);
  copy_to(file, copy);
  copy_to(wal, copied);
  sqlite3 *db = NULL;
  if (sqlite3_open(copy, &db) || !use_engine(db, "sqlite")) exit(2);
  bool same = contents(db) == contents(p->got_db);
  sqlite3_close(db);
  return same;
}

static int limit_of(sqlite3 *db) {
  sqlite3_stmt *q = NULL;
  int n = -1;
  if (sqlite3_prepare_v2(db, "PRAGMA cache_spill", -1, &q, NULL) == SQLITE_OK &&
      sqlite3_step(q) == SQLITE_ROW)
    n = sqlite3_column_int(q, 0);
  sqlite3_finalize(q);
  return n;
}

/* ---- one statement on one side */

typedef struct outcome {
  int changes, autocommit, readonly, n_params;
  sqlite3_int64 rowid;
} outcome;

static void bind_all(pair *p, sqlite3_stmt *st, char *const *binds) {
  int n = sqlite3_bind_parameter_count(st);
  for (int i = 1; i <= n && i <= DML_BINDS; i++) {
    sqlite3_stmt *v = NULL;
    char *sql = format("SELECT %s", binds[i - 1] ? binds[i - 1] : "NULL");
    if (sqlite3_prepare_v2(p->eval, sql, -1, &v, NULL) == SQLITE_OK &&
        sqlite3_step(v) == SQLITE_ROW)
      sqlite3_bind_value(st, i, sqlite3_column_value(v, 0));
    sqlite3_finalize(v);
    sqlite3_free(sql);
  }
}

static void take(sqlite3 *db, outcome *out) {
  out->changes = sqlite3_changes(db);
  out->autocommit = sqlite3_get_autocommit(db);
  out->rowid = sqlite3_last_insert_rowid(db);
}

static void run_set(pair *p, sqlite3 *db, sqlite3_stmt *st, const step *s, int set, rows *to,
                    outcome *out) {
  rows_clear(to);
  bind_all(p, st, s->binds[set]);
  if (s->once) {
    int rc = sqlite3_step(st);
    to->prepared = true;
    to->rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_DONE : rc;
    to->n_rows = rc == SQLITE_ROW;
    if (to->rc != SQLITE_DONE) rows_fail(to, db, rc);
  } else {
    rows_step(to, db, st);
  }
  sqlite3_reset(st);
  take(db, out);
}

/* ---- comparing */

static differ judge_rows(pair *p, bool sorted) {
  static const bool last[MAX_COLS + 8];
  if (sorted) {
    sort_rows(&p->want, last);
    sort_rows(&p->got, last);
  }
  if (rows_same(&p->got, &p->want, false, p->why, sizeof p->why)) return SAME;
  if (p->got.rc != p->want.rc || p->got.xrc != p->want.xrc) return IN_CODE;
  return p->got.rc != SQLITE_DONE ? IN_MESSAGE : IN_ROWS;
}

static differ judge_outcome(pair *p, const outcome *got, const outcome *want) {
  char *why = p->why;
  size_t n = sizeof p->why;
  if (got->autocommit != want->autocommit) {
    snprintf(why, n, "autocommit is %d, SQLite %d", got->autocommit, want->autocommit);
    return IN_AUTOCOMMIT;
  }
  if (p->changes_known && got->changes != want->changes) {
    snprintf(why, n, "changes() is %d, SQLite %d", got->changes, want->changes);
    return IN_CHANGES;
  }
  if (got->rowid != want->rowid) {
    snprintf(why, n, "last_insert_rowid() is %lld, SQLite %lld", got->rowid, want->rowid);
    return IN_ROWID;
  }
  return SAME;
}

/* Spoils what the other side says, to try the comparison itself. */
static void perturb(pair *p, const step *s, outcome *got) {
  if (!p->perturb || s->kind < STEP_INSERT || s->kind > STEP_CHANGE || !p->ran) return;
  if (!strcmp(p->perturb, "changes") && ++p->n_perturb == 20) got->changes++;
  if (!strcmp(p->perturb, "rowid") && ++p->n_perturb == 20) got->rowid++;
  if (!strcmp(p->perturb, "code") && ++p->n_perturb == 20) p->got.rc = SQLITE_MISUSE;
  if (!strcmp(p->perturb, "message") && p->got.err[0] && ++p->n_perturb == 5) p->got.err[0] ^= 1;
  if (!strcmp(p->perturb, "rows") && p->got.n_cells && ++p->n_perturb == 5) {
    cell *x = &p->got.cells[0]; /* a type that needs no bytes behind it */
    x->type = x->type == SQLITE_NULL ? SQLITE_INTEGER : SQLITE_NULL;
    if (x->type == SQLITE_INTEGER) x->u.i = 1;
  }
  if (!strcmp(p->perturb, "table") && ++p->n_perturb % 20 == 0) {
    char *sql =
        format("DELETE FROM %s WHERE rowid = (SELECT max(rowid) FROM %s)", s->table, s->table);
    sqlite3_exec(p->got_db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
  }
}

/* Whether a line of the plan has a word, and not another. */
static bool plan_says(sqlite3 *db, const char *sql, const char *word, const char *without) {
  sqlite3_stmt *st = NULL;
  bool says = false;
  char *eqp = format("EXPLAIN QUERY PLAN %s", sql);
  if (sqlite3_prepare_v2(db, eqp, -1, &st, NULL) == SQLITE_OK)
    while (sqlite3_step(st) == SQLITE_ROW) {
      const char *line = (const char *)sqlite3_column_text(st, 3);
      says |= strstr(line, word) && !(without && strstr(line, without));
    }
  sqlite3_finalize(st);
  sqlite3_free(eqp);
  return says;
}

/* Whether the plan of the oracle reads through an index. */
static bool by_index(pair *p, const char *sql) {
  return plan_says(p->want_db, sql, "INDEX", NULL);
}

/* Or so near to it that a statement may come to it: the next rowid after it is random. */
static bool has_greatest_rowid(pair *p, const char *table) {
  sqlite3_stmt *st = NULL;
  bool has = false;
  char *sql = format("SELECT 1 FROM %s WHERE rowid > 9223372036854700000", table);
  if (sqlite3_prepare_v2(p->want_db, sql, -1, &st, NULL) == SQLITE_OK)
    has = sqlite3_step(st) == SQLITE_ROW;
  sqlite3_finalize(st);
  sqlite3_free(sql);
  return has;
}

/* The text with HERE filled in. */
static char *fill_here(const char *sql, const char *with) {
  sqlite3_str *o = sqlite3_str_new(NULL);
  for (const char *q; (q = strchr(sql, HERE[0])) != NULL; sql = q + 1)
    sqlite3_str_appendf(o, "%.*s%s", (int)(q - sql), sql, with);
  sqlite3_str_appendall(o, sql);
  return must(sqlite3_str_finish(o));
}

/* The text that both sides run, or NULL where the outcome would be open. *sorted: the order of
** rows is open. */
static char *settle(pair *p, const step *s, bool *sorted) {
  char *sql = fill_here(s->sql, "");
  *sorted = false;
  if (s->kind == STEP_INSERT && has_greatest_rowid(p, s->table)) goto skip;
  if (s->kind == STEP_SQL || s->kind == STEP_READ) return sql;
  if (s->kind == STEP_INSERT && !s->has_select) return sql;
  /* through SQLite, which may find the rows in any case, a virtual table may be read in the order
  ** of an OR or IN */
  if ((s->touchy || s->has_select) &&
      (plan_says(p->got_db, sql, "MULTI-INDEX", NULL) ||
       plan_says(p->got_db, sql, "VIRTUAL TABLE INDEX", "INDEX 0:")))
    goto skip;
  if (!by_index(p, sql)) return sql;
  if (strchr(s->sql, HERE[0]) && (s->touchy || s->has_select)) {
    sqlite3_free(sql);
    sql = fill_here(s->sql, " NOT INDEXED");
    if (!by_index(p, sql)) return sql;
  }
  bool from = s->kind == STEP_CHANGE && strstr(sql, " AS f WHERE f.id = ");
  *sorted = true;
  if (from || !(s->touchy || s->has_select)) return sql;
skip:
  sqlite3_free(sql);
  return NULL;
}

/* ---- steps */

static differ run_statement(pair *p, const step *s) {
  sqlite3_stmt *want = NULL, *got = NULL;
  outcome a = {0}, b = {0};
  bool sorted;
  char *sql = settle(p, s, &sorted);
  differ d = SAME;
  if (!sql) {
    p->changes_known = false; /* EXPLAIN of a write sets it */
    return SKIPPED;
  }
  prepare_fn *prepare = p->plain ? sqlite3_prepare_v2 : warplite_prepare;
  rows_clear(&p->want);
  rows_clear(&p->got);
  int rc_want = sqlite3_prepare_v2(p->want_db, sql, -1, &want, NULL);
  int rc_got = prepare(p->got_db, sql, -1, &got, NULL);
  snprintf(p->reason, sizeof p->reason, "%s", warplite_reason(p->got_db));
  p->want.rc = p->got.rc = SQLITE_DONE;
  if (rc_want != SQLITE_OK) rows_fail(&p->want, p->want_db, rc_want);
  if (rc_got != SQLITE_OK) rows_fail(&p->got, p->got_db, rc_got);
  if (rc_want != SQLITE_OK || rc_got != SQLITE_OK) {
    d = judge_rows(p, false);
    goto done;
  }
  if (sqlite3_stmt_readonly(want) != sqlite3_stmt_readonly(got) ||
      sqlite3_bind_parameter_count(want) != sqlite3_bind_parameter_count(got) ||
      sqlite3_column_count(want) != sqlite3_column_count(got)) {
    snprintf(p->why, sizeof p->why,
             "readonly %d, %d parameters, %d columns; SQLite %d, %d parameters, %d columns",
             sqlite3_stmt_readonly(got), sqlite3_bind_parameter_count(got),
             sqlite3_column_count(got), sqlite3_stmt_readonly(want),
             sqlite3_bind_parameter_count(want), sqlite3_column_count(want));
    d = IN_SHAPE;
    goto done;
  }
  for (int k = 0; d == SAME && k < (s->n_sets ? s->n_sets : 1); k++) {
    if (k && s->kind == STEP_INSERT && has_greatest_rowid(p, s->table)) break;
    run_set(p, p->want_db, want, s, k, &p->want, &a);
    run_set(p, p->got_db, got, s, k, &p->got, &b);
    p->ran = s->kind == STEP_INSERT || s->kind == STEP_CHANGE;
    if (s->kind == STEP_SQL && strchr("IURDW", sql[0]) && strncmp(sql, "RE", 2) &&
        strncmp(sql, "RO", 2))
      p->changes_known = true;
    /* of a virtual table SQLite counts rows that were replaced before their turn, too */
    if (p->ran) p->changes_known = !(p->plain && !p->twin && strstr(sql, "UPDATE OR REPLACE"));
    perturb(p, s, &b);
    /* which row fails first is open when the order is */
    if (sorted && p->want.rc == SQLITE_CONSTRAINT && p->got.rc == SQLITE_CONSTRAINT)
      p->got.xrc = p->want.xrc, memcpy(p->got.err, p->want.err, sizeof p->got.err);
    d = judge_rows(p, sorted);
    if (d == SAME) d = judge_outcome(p, &b, &a);
  }
done:
  sqlite3_finalize(want);
  sqlite3_finalize(got);
  sqlite3_free(sql);
  return d;
}

static differ judge_read(pair *p, bool maybe, differ as) {
  differ d = judge_rows(p, false);
  if (d == IN_ROWS && maybe) d = judge_rows(p, true);
  return d == SAME ? SAME : as;
}

/* A SELECT by the virtual table's cursor and natively. Through SQLite the rows of a WHERE may come
** in another order, as by the parts of an OR; natively they come by rowid. */
static differ run_read(pair *p, const step *s) {
  char *sql = fill_here(s->sql, " NOT INDEXED"),
       *mine = fill_here(s->sql, p->twin ? " NOT INDEXED" : "");
  outcome a, b;
  bool open = by_index(p, sql), where = strstr(sql, " WHERE ") != NULL;
  take(p->want_db, &a);
  rows_query(&p->want, p->want_db, sqlite3_prepare_v2, sql);
  rows_query(&p->got, p->got_db, sqlite3_prepare_v2, mine);
  differ d = p->want.prepared ? judge_read(p, open || where, IN_CURSOR) : SKIPPED;
  if (d == SAME && !p->plain) {
    if (where) rows_query(&p->want, p->want_db, sqlite3_prepare_v2, sql);
    rows_query(&p->got, p->got_db, warplite_prepare, mine);
    snprintf(p->reason, sizeof p->reason, "%s", warplite_reason(p->got_db));
    d = judge_read(p, open || (where && !strncmp(p->reason, "sqlite", 6)), IN_NATIVE);
  }
  take(p->got_db, &b);
  if (d == SAME) d = judge_outcome(p, &b, &a);
  sqlite3_free(sql);
  sqlite3_free(mine);
  return d;
}

static differ run_create(pair *p, const step *s) {
  char *sql = format("CREATE TABLE %s(%s)", s->table, s->sql);
  rows_query(&p->want, p->want_db, sqlite3_prepare_v2, sql);
  if (!p->twin) {
    sqlite3_free(sql);
    sql = format("CREATE VIRTUAL TABLE %s USING tablet(%s)", s->table, s->sql);
  }
  rows_query(&p->got, p->got_db, sqlite3_prepare_v2, sql);
  sqlite3_free(sql);
  /* the rows of the shadow tables */
  p->changes_known = false;
  sqlite3_set_last_insert_rowid(p->got_db, sqlite3_last_insert_rowid(p->want_db));
  if ((p->want.rc == SQLITE_DONE) == (p->got.rc == SQLITE_DONE)) return SAME;
  snprintf(p->why, sizeof p->why, "CREATE gives %d %.400s, SQLite %d %.400s", p->got.rc, p->got.err,
           p->want.rc, p->want.err);
  return IN_CREATE;
}

static differ run_check(pair *p, const step *s) {
  if (p->twin || !p->has_check) return SAME;
  char *sql = format("SELECT warplite_check(%Q)", s->table);
  rows_query(&p->got, p->got_db, sqlite3_prepare_v2, sql);
  sqlite3_free(sql);
  if (p->got.rc == SQLITE_DONE && p->got.n_rows == 1 && p->got.cells[0].type == SQLITE_TEXT &&
      !strcmp(p->got.bytes + p->got.cells[0].u.off, "ok"))
    return SAME;
  snprintf(p->why, sizeof p->why, "warplite_check says %d %.300s", p->got.rc,
           p->got.rc != SQLITE_DONE ? p->got.err
           : p->got.n_rows && p->got.cells[0].type == SQLITE_TEXT
               ? p->got.bytes + p->got.cells[0].u.off
               : "no text");
  return IN_CHECK;
}

static differ run_optimize(pair *p, const step *s) {
  if (p->twin) return SAME;
  char *sql = format("INSERT INTO %s(%s) VALUES('optimize')", s->table, s->table);
  rows_query(&p->got, p->got_db, p->plain ? sqlite3_prepare_v2 : warplite_prepare, sql);
  sqlite3_free(sql);
  p->changes_known = false;
  sqlite3_set_last_insert_rowid(p->got_db, sqlite3_last_insert_rowid(p->want_db));
  if (p->got.rc == SQLITE_DONE) return SAME;
  snprintf(p->why, sizeof p->why, "optimize: %d %.300s", p->got.rc, p->got.err);
  return IN_CODE;
}

static differ run_step(pair *p, const step *s) {
  p->why[0] = p->reason[0] = 0;
  p->ran = false;
  switch (s->kind) {
  case STEP_CREATE: return run_create(p, s);
  case STEP_READ: return run_read(p, s);
  case STEP_OPTIMIZE: return run_optimize(p, s);
  case STEP_CHECK: return run_check(p, s);
  case STEP_REOPEN:
    if (!p->store) return SAME;
    if (!pair_disconnect(p)) {
      snprintf(p->why, sizeof p->why, "the connection does not close");
      return IN_CODE;
    }
    pair_connect(p);
    return SAME;
  default: break;
  }
  bool begun = !sqlite3_get_autocommit(p->got_db);
  differ d = run_statement(p, s);
  if (d != SAME || !sqlite3_get_autocommit(p->got_db) || p->twin) return d;
  if (limit_of(p->got_db) != limit_of(p->want_db)) {
    snprintf(p->why, sizeof p->why, "cache_spill is %d", limit_of(p->got_db));
    return IN_CODE;
  }
  if (!begun || survives(p)) return SAME;
  snprintf(p->why, sizeof p->why, "a crash would lose what was committed");
  return IN_CHECK;
}

#endif
