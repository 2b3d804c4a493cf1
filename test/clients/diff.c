/*
** The differential test: random one-table queries through warplite against SQLite on the
** same connection, over random schemas full of awkward values.
**
**     diff --engine sqlite|cpu|sim|cuda [--seed S] [--n N] [--tablets] [--verbose]
**
** --tablets makes tablet tables of the tables first (test/tablets.h).
**
** A failure is shrunk (result columns, WHERE, LIMIT, rows, expressions) and printed as a
** script with schema, data and query.
**
** Invariants:
** 1. The same seed makes the same queries. Table number i of a run depends only on the
**    seed and i, so a failure is reached again without what came before it.
** 2. Rows are compared in order; as a multiset only if SQLite's plan uses an index and
**    there is no LIMIT.
** 3. A REAL from sum(), total() or avg() may differ by 1e-12 of the sum of |x|, and by
**    anything if that sum is not finite. Such results stand alone: expressions over
**    aggregates only use those whose value is exact in any order.
** 4. At least 80 % of the queries must run natively, or the test shows nothing.
*/
#include <string.h>

#include "../engines.h"
#include "../rng.h"
#include "../rows.h"
#include "../tablets.h"
#include "../tap.h"
#include "values.h"

enum { MAX_COLS = 6, MAX_ROWS = 64, MAX_OUT = 6, MAX_KIDS = 7, MAX_BINDS = 3, MAX_NODES = 4000 };

/* An expression: text and parts by turns, lit[0] kid[0] lit[1] … so that it can be shrunk. */
typedef struct ex {
  int n_kids;
  char *lit[MAX_KIDS + 1];
  struct ex *kid[MAX_KIDS];
} ex;

typedef enum flavour {
  F_SMALL,
  F_DYADIC,
  F_BOOL,
  F_WIDE,
  F_SPECIAL_INT,
  F_WILD_REAL,
  F_NULLS,
  F_WORDS,
  F_NUMERIC_TEXT,
  F_ODD_TEXT,
  F_BLOBS,
  F_MIXED,
  N_FLAVOURS
} flavour;

typedef struct table {
  char schema[600];
  int n_cols;
  flavour flavour[MAX_COLS];
  bool has_rowid;
  int n_rows;
  char *row[MAX_ROWS]; /* "(1,'a',…)" */
  bool gone[MAX_ROWS]; /* shrunk away */
  int times;           /* the rows are put in this many times over, for size */
  char index[80];
} table;

typedef struct query {
  bool aggregate, star;
  int n_out;
  ex *out[MAX_OUT];
  ex *sum_of[MAX_OUT]; /* what is summed, where the result is an inexact sum */
  ex *where;
  char limit[80];
} query;

typedef struct world {
  rng r;
  const char *engine;
  bool tablets;
  long table_no;
  table t;
  query q;
  char *binds[2][MAX_BINDS]; /* SQL literals, two sets for two runs of a statement */
  ex nodes[MAX_NODES];
  int n_nodes;
  rows got, want;
  char reason[300];
  long n_run, n_native, n_engine;
} world;

/* ---- values */

static char *value(world *w, flavour f) {
  switch (f) {
  case F_SMALL: return format("%d", rng_below(&w->r, 41) - 20);
  case F_DYADIC: return format("%!.3f", (rng_below(&w->r, 4001) - 2000) / 8.0);
  case F_BOOL: return format("%d", rng_below(&w->r, 2));
  case F_WIDE: return format("%s", PICK(&w->r, wide_ints));
  case F_SPECIAL_INT: return format("%s", PICK(&w->r, edge_ints));
  case F_WILD_REAL: return format("%s", PICK(&w->r, wild_reals));
  case F_NULLS: return format("NULL");
  case F_WORDS: return format("%s", PICK(&w->r, words));
  case F_NUMERIC_TEXT: return format("%s", PICK(&w->r, numeric_texts));
  case F_ODD_TEXT: return format("%s", PICK(&w->r, odd_texts));
  case F_BLOBS: return format("%s", PICK(&w->r, blobs));
  default: return value(w, (flavour)rng_below(&w->r, F_MIXED));
  }
}

/* ---- tables */

static void make_table(world *w) {
  static const char *const types[] = {"INTEGER",
                                      "INT",
                                      "REAL",
                                      "TEXT",
                                      "BLOB",
                                      "NUMERIC",
                                      "",
                                      "VARCHAR(20)",
                                      "DOUBLE",
                                      "TEXT COLLATE NOCASE",
                                      "TEXT COLLATE RTRIM",
                                      "BOOLEAN"};
  static const char *const plain[] = {"INTEGER", "REAL", "NUMERIC", "", "INT", "DOUBLE"};
  table *t = &w->t;
  bool numeric = rng_chance(&w->r, 50);
  int key = rng_below(&w->r, 100);
  memset(t, 0, sizeof *t);
  t->n_cols = 1 + rng_below(&w->r, MAX_COLS);
  t->has_rowid = true;
  size_t n = (size_t)snprintf(t->schema, sizeof t->schema, "CREATE TABLE t(");
  if (key < 25) {
    n += (size_t)snprintf(t->schema + n, sizeof t->schema - n, "k INTEGER PRIMARY KEY, ");
  } else if (key < 32) {
    t->has_rowid = false;
    n += (size_t)snprintf(t->schema + n, sizeof t->schema - n, "k INTEGER NOT NULL PRIMARY KEY, ");
  }
  for (int c = 0; c < t->n_cols; c++) {
    t->flavour[c] = (flavour)rng_below(&w->r, numeric ? F_WORDS : N_FLAVOURS);
    n += (size_t)snprintf(t->schema + n, sizeof t->schema - n, "%sc%d %s", c ? ", " : "", c,
                          numeric ? PICK(&w->r, plain) : PICK(&w->r, types));
  }
  snprintf(t->schema + n, sizeof t->schema - n, ")%s", t->has_rowid ? "" : " WITHOUT ROWID");
  t->n_rows = rng_chance(&w->r, 10) ? rng_below(&w->r, 2) : rng_below(&w->r, MAX_ROWS) + 1;
  if (t->n_rows > MAX_ROWS) t->n_rows = MAX_ROWS;
  t->times = 1;
  if (key >= 32 && rng_chance(&w->r, 12)) t->times = rng_chance(&w->r, 8) ? 3000 : 40;
  for (int i = 0; i < t->n_rows; i++) {
    char *row = key < 32 ? format("(%d", i * 3 - 20) : format("(");
    for (int c = 0; c < t->n_cols; c++) {
      char *v = rng_chance(&w->r, 15) ? format("NULL") : value(w, t->flavour[c]);
      char *next = format("%s%s%s", row, c || key < 32 ? "," : "", v);
      sqlite3_free(v);
      sqlite3_free(row);
      row = next;
    }
    t->row[i] = format("%s)", row);
    sqlite3_free(row);
  }
  if (rng_chance(&w->r, 8))
    snprintf(t->index, sizeof t->index, "CREATE INDEX t_c0 ON t(c%d)", rng_below(&w->r, t->n_cols));
}

static void free_table(table *t) {
  for (int i = 0; i < t->n_rows; i++) sqlite3_free(t->row[i]);
}

static void put(FILE *script, sqlite3 *db, const char *sql) {
  if (script) fprintf(script, "%s;\n", sql);
  if (db && sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
    fprintf(stderr, "diff: %s\n  %s\n", sqlite3_errmsg(db), sql);
    abort();
  }
}

/* Makes the table in a database, or writes the script that would. */
static void fill(const table *t, FILE *script, sqlite3 *db) {
  put(script, db, t->schema);
  for (int i = 0; i < t->n_rows; i++) {
    if (t->gone[i]) continue;
    char *sql = format("INSERT INTO t VALUES%s", t->row[i]);
    put(script, db, sql);
    sqlite3_free(sql);
  }
  if (t->times > 1) {
    char *sql = format("INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i+1 FROM n "
                       "WHERE i<%d) SELECT t.* FROM n, t",
                       t->times);
    put(script, db, sql);
    sqlite3_free(sql);
  }
  if (t->index[0]) put(script, db, t->index);
}

static sqlite3 *open_db(world *w) {
  sqlite3 *db;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK || !use_engine(db, w->engine)) {
    tap_bad("diff", "cannot set the engine: %s", sqlite3_errmsg(db));
    exit(tap_done());
  }
  fill(&w->t, NULL, db);
  rng r = {.s = (uint64_t)w->table_no * 7919u};
  if (w->tablets && w->t.has_rowid && !tablets_convert(db, "t", &r)) {
    tap_bad("diff", "no tablet table can be made of %s", w->t.schema);
    exit(tap_done());
  }
  return db;
}

/* ---- expressions */

/* A node from a pattern in which every '#' stands for a part. */
static ex *node(world *w, const char *pattern, ...) {
  va_list ap;
  ex *e = &w->nodes[w->n_nodes++ % MAX_NODES];
  for (int i = 0; i <= MAX_KIDS; i++) {
    sqlite3_free(e->lit[i]);
    e->lit[i] = NULL;
  }
  e->n_kids = 0;
  va_start(ap, pattern);
  for (const char *p = pattern;; p++) {
    const char *hash = strchr(p, '#');
    int n = hash ? (int)(hash - p) : (int)strlen(p);
    e->lit[e->n_kids] = format("%.*s", n, p);
    if (!hash) break;
    e->kid[e->n_kids++] = va_arg(ap, ex *);
    p = hash;
  }
  va_end(ap);
  return e;
}

static ex *text_node(world *w, char *s) {
  ex *e = node(w, "");
  sqlite3_free(e->lit[0]);
  e->lit[0] = s;
  return e;
}

static char *render(const ex *e) {
  char *s = format("%s", e->lit[0]);
  for (int i = 0; i < e->n_kids; i++) {
    char *k = render(e->kid[i]), *next = format("%s%s%s", s, k, e->lit[i + 1]);
    sqlite3_free(k);
    sqlite3_free(s);
    s = next;
  }
  return s;
}

static ex *leaf(world *w) {
  int k = rng_below(&w->r, 100);
  if (k < 65) return text_node(w, format("c%d", rng_below(&w->r, w->t.n_cols)));
  if (k < 70) return text_node(w, format(w->t.has_rowid ? "rowid" : "k"));
  if (k < 75) return text_node(w, format("?%d", 1 + rng_below(&w->r, MAX_BINDS)));
  if (k < 76) return text_node(w, format("\"no such column\""));
  if (k < 90) return text_node(w, value(w, (flavour)rng_below(&w->r, 3)));
  return text_node(w, value(w, F_MIXED));
}

static ex *expr(world *w, int depth);

/* A node with new parts, made from left to right: '#' an expression, '@' a leaf. */
static ex *grow(world *w, const char *pattern, int depth) {
  char shape[120];
  ex *kid[MAX_KIDS] = {0};
  int n = 0;
  snprintf(shape, sizeof shape, "%s", pattern);
  for (char *p = shape; *p; p++) {
    if (*p == '#') kid[n++] = expr(w, depth - rng_below(&w->r, 2));
    if (*p != '@') continue;
    kid[n++] = leaf(w);
    *p = '#';
  }
  return node(w, shape, kid[0], kid[1], kid[2], kid[3], kid[4], kid[5], kid[6]);
}

static ex *expr(world *w, int depth) {
  static const char *const binary[] = {"(#+#)",
                                       "(#-#)",
                                       "(#*#)",
                                       "(#/#)",
                                       "(#%#)",
                                       "(#&#)",
                                       "(#|#)",
                                       "(#<<#)",
                                       "(#>>#)",
                                       "(#=#)",
                                       "(#==#)",
                                       "(#<>#)",
                                       "(#<#)",
                                       "(#<=#)",
                                       "(#>#)",
                                       "(#>=#)",
                                       "(#!=#)",
                                       "(#||#)",
                                       "(# AND #)",
                                       "(# OR #)",
                                       "(# IS #)",
                                       "(# IS NOT #)",
                                       "(# IS DISTINCT FROM #)",
                                       "(# IS NOT DISTINCT FROM #)"};
  static const char *const unary[] = {"(-#)",        "(+#)",           "(~#)",
                                      "(NOT #)",     "(# ISNULL)",     "(# NOTNULL)",
                                      "(# IS NULL)", "(# IS NOT NULL)"};
  static const char *const cast[] = {"CAST(# AS INTEGER)", "CAST(# AS REAL)", "CAST(# AS TEXT)",
                                     "CAST(# AS BLOB)", "CAST(# AS NUMERIC)"};
  static const char *const collate[] = {"(# COLLATE NOCASE=#)",
                                        "(#<# COLLATE RTRIM)",
                                        "(# COLLATE BINARY>#)",
                                        "(# COLLATE NOCASE)",
                                        "(# COLLATE NOCASE BETWEEN # AND #)",
                                        "(# COLLATE NOCASE IN (#,#))"};
  static const char *const other[] = {"(# BETWEEN # AND #)",
                                      "(# NOT BETWEEN # AND #)",
                                      "(# IN (@,@,@))",
                                      "(# NOT IN (#,@))",
                                      "(# IN (@))",
                                      "(# IN ())",
                                      "CASE WHEN # THEN # WHEN # THEN # ELSE # END",
                                      "CASE # WHEN # THEN # WHEN # THEN # END",
                                      "CASE # WHEN # THEN # ELSE @ END",
                                      "CASE WHEN # THEN # END",
                                      "coalesce(#,#,#)",
                                      "ifnull(#,#)",
                                      "nullif(#,#)",
                                      "nullif(# COLLATE NOCASE,@)",
                                      "iif(#,#,#)",
                                      "abs(@)"};
  int d = depth - 1, k = rng_below(&w->r, 100);
  if (depth <= 0) return leaf(w);
  if (k < 8) return leaf(w);
  if (k < 58) return grow(w, PICK(&w->r, binary), d);
  if (k < 68) return grow(w, PICK(&w->r, unary), d);
  if (k < 74) return grow(w, PICK(&w->r, cast), d);
  if (k < 78) return grow(w, PICK(&w->r, collate), d);
  return grow(w, PICK(&w->r, other), d);
}

/* An aggregate whose value does not depend on the order of its inputs. */
static ex *exact_aggregate(world *w) {
  static const char *const any[] = {"count(#)", "min(#)", "max(#)"};
  static const char *const sums[] = {"sum(#)", "total(#)", "avg(#)"};
  for (int i = 0; i < 8; i++) {
    int c = rng_below(&w->r, w->t.n_cols);
    if (w->t.flavour[c] > F_BOOL) continue;
    if (rng_chance(&w->r, 50)) break;
    return node(w, PICK(&w->r, sums), text_node(w, format("c%d", c)));
  }
  if (rng_chance(&w->r, 20)) return text_node(w, format("count(*)"));
  return node(w, PICK(&w->r, any), expr(w, 2));
}

static void make_query(world *w) {
  static const char *const over[] = {"(#+#)", "(#-#)", "(#>#)", "(#||#)", "(# IS #)", "(#*#)"};
  static const char *const sums[] = {"sum(#)", "total(#)", "avg(#)"};
  query *q = &w->q;
  memset(q, 0, sizeof *q);
  q->aggregate = rng_chance(&w->r, 35);
  q->star = !q->aggregate && rng_chance(&w->r, 5);
  q->n_out = 1 + rng_below(&w->r, rng_chance(&w->r, 50) ? 2 : MAX_OUT);
  for (int i = 0; i < q->n_out; i++) {
    if (!q->aggregate) {
      q->out[i] = expr(w, rng_below(&w->r, 4));
    } else if (rng_chance(&w->r, 45)) {
      q->sum_of[i] = expr(w, rng_below(&w->r, 3));
      q->out[i] = node(w, PICK(&w->r, sums), q->sum_of[i]);
    } else if (rng_chance(&w->r, 20)) {
      ex *left = exact_aggregate(w), *right = exact_aggregate(w);
      q->out[i] = node(w, PICK(&w->r, over), left, right);
    } else {
      q->out[i] = exact_aggregate(w);
    }
  }
  if (rng_chance(&w->r, 65)) q->where = expr(w, 1 + rng_below(&w->r, 3));
  if (rng_chance(&w->r, 25)) {
    int n = snprintf(q->limit, sizeof q->limit, " LIMIT %d", rng_below(&w->r, 30) - 2);
    if (rng_chance(&w->r, 50))
      snprintf(q->limit + n, sizeof q->limit - (size_t)n, " OFFSET %d", rng_below(&w->r, 30) - 2);
  }
}

static char *query_text(const query *q) {
  char *s = format(q->star ? "SELECT *" : "SELECT ");
  for (int i = 0; i < q->n_out && !q->star; i++) {
    char *e = render(q->out[i]), *next = format("%s%s%s", s, i ? ", " : "", e);
    sqlite3_free(e);
    sqlite3_free(s);
    s = next;
  }
  char *where = q->where ? render(q->where) : NULL;
  char *all = format("%s FROM t%s%s%s", s, where ? " WHERE " : "", where ? where : "", q->limit);
  sqlite3_free(where);
  sqlite3_free(s);
  return all;
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

/*
** How far a sum may be off: 1e-12, or what SQLite's rounding at every row amounts to if that
** is more, of the sum of its finite inputs' sizes; infinite if that
** sum is, since then it depends on the order whether SQLite passes infinity on the way.
*/
static double slack(world *w, sqlite3 *db, int out, int set) {
  double total = INFINITY;
  sqlite3_stmt *st = NULL;
  char *e = render(w->q.sum_of[out]), *where = w->q.where ? render(w->q.where) : format("1");
  double relative = 1e-12;
  char *sql = format("SELECT total(CASE WHEN abs(CAST(%s AS REAL))<9e999 THEN abs(CAST(%s AS "
                     "REAL)) END), count(*) FROM t WHERE %s",
                     e, e, where);
  if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK) {
    bind(w, db, st, set);
    if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) == SQLITE_FLOAT)
      total = sqlite3_column_double(st, 0);
    /* SQLite rounds at every row */
    relative = fmax(relative, 1.2e-16 * sqlite3_column_double(st, 1));
  }
  sqlite3_finalize(st);
  sqlite3_free(sql);
  sqlite3_free(e);
  sqlite3_free(where);
  return total * relative;
}

/* Makes sums that are close enough the same, so that the rest can be compared by bits. */
static void forgive_sums(world *w, sqlite3 *db, int set) {
  if (w->got.rc != SQLITE_DONE || w->want.rc != SQLITE_DONE || w->got.n_rows != 1 ||
      w->want.n_rows != 1 || w->got.n_col != w->q.n_out)
    return;
  for (int i = 0; i < w->q.n_out; i++) {
    cell *a = &w->got.cells[i], *b = &w->want.cells[i];
    if (!w->q.sum_of[i] || (a->type == b->type && a->u.i == b->u.i)) continue;
    bool real = a->type == SQLITE_FLOAT && b->type == SQLITE_FLOAT;
    bool lost = (a->type == SQLITE_FLOAT || a->type == SQLITE_NULL) &&
                (b->type == SQLITE_FLOAT || b->type == SQLITE_NULL);
    double s = slack(w, db, i, set);
    if ((real && fabs(a->u.r - b->u.r) <= s) || (lost && isinf(s))) *a = *b;
  }
}

/* Runs the query both ways, twice each with other parameters; false if they differ. */
static bool agree(world *w, sqlite3 *db, char *why, size_t n_why) {
  char *sql = query_text(&w->q);
  sqlite3_stmt *a = NULL, *b = NULL;
  bool same = true;
  int rc_a = warplite_prepare(db, sql, -1, &a, NULL), rc_b;
  rows_clear(&w->got);
  rows_clear(&w->want);
  if (rc_a != SQLITE_OK) rows_fail(&w->got, db, rc_a);
  rc_b = sqlite3_prepare_v2(db, sql, -1, &b, NULL);
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
      rows_step(&w->got, db, a);
      if (set == 0) snprintf(w->reason, sizeof w->reason, "%s", warplite_reason(db));
      rows_step(&w->want, db, b);
      sqlite3_reset(a);
      sqlite3_reset(b);
      if (w->q.aggregate) forgive_sums(w, db, set);
      same = rows_same(&w->got, &w->want, false, why, n_why);
      if (!same && w->t.index[0] && !w->q.limit[0] && plan_uses_index(db, sql)) {
        rows_sort(&w->got);
        rows_sort(&w->want);
        same = rows_same(&w->got, &w->want, false, why, n_why);
      }
    }
  }
  sqlite3_finalize(a);
  sqlite3_finalize(b);
  sqlite3_free(sql);
  return same;
}

/* ---- shrinking */

static bool still_fails(world *w) {
  char why[900];
  sqlite3 *db = open_db(w);
  bool same = agree(w, db, why, sizeof why);
  sqlite3_close(db);
  return !same;
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

static void shrink(world *w) {
  query *q = &w->q;
  if (w->t.times > 1) {
    int old = w->t.times;
    w->t.times = 1;
    if (!still_fails(w)) w->t.times = old;
  }
  if (w->t.index[0]) {
    char c = w->t.index[0];
    w->t.index[0] = 0;
    if (!still_fails(w)) w->t.index[0] = c;
  }
  if (q->limit[0]) {
    char c = q->limit[0];
    q->limit[0] = 0;
    if (!still_fails(w)) q->limit[0] = c;
  }
  if (q->where) {
    ex *old = q->where;
    q->where = NULL;
    if (!still_fails(w)) q->where = old;
  }
  for (int i = 0; i < q->n_out && q->n_out > 1;) {
    query old = *q;
    memmove(&q->out[i], &q->out[i + 1], sizeof(ex *) * (size_t)(q->n_out - i - 1));
    memmove(&q->sum_of[i], &q->sum_of[i + 1], sizeof(ex *) * (size_t)(q->n_out - i - 1));
    q->n_out--;
    if (!still_fails(w)) {
      *q = old;
      i++;
    }
  }
  for (int size = 32; size >= 1 && w->t.times == 1; size /= 2) {
    for (int from = 0; from < w->t.n_rows; from += size) {
      bool old[MAX_ROWS];
      memcpy(old, w->t.gone, sizeof old);
      for (int i = from; i < from + size && i < w->t.n_rows; i++) w->t.gone[i] = true;
      if (!still_fails(w)) memcpy(w->t.gone, old, sizeof old);
    }
  }
  if (q->where) shrink_expr(w, &q->where);
  for (int i = 0; i < q->n_out && !q->star; i++) {
    if (!q->aggregate)
      shrink_expr(w, &q->out[i]);
    else if (!q->sum_of[i]) /* the aggregate itself must stay */
      for (int k = 0; k < q->out[i]->n_kids; k++) shrink_expr(w, &q->out[i]->kid[k]);
  }
}

static void report(world *w, const char *name, const char *first_why) {
  char why[900] = "";
  sqlite3 *db;
  if (still_fails(w))
    shrink(w);
  else
    printf("  (does not fail on a fresh connection)\n");
  db = open_db(w);
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
  tap_bad(name, "%s", why);
  sqlite3_free(sql);
}

int main(int argc, char **argv) {
  world *w = must(calloc(1, sizeof *w));
  uint64_t seed = 1;
  long n = 2000;
  bool verbose = false;
  int n_failed = 0;
  char why[900], name[100];
  w->engine = "cpu";
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--engine") && i + 1 < argc)
      w->engine = argv[++i];
    else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
      seed = strtoull(argv[++i], NULL, 10);
    else if (!strcmp(argv[i], "--n") && i + 1 < argc)
      n = atol(argv[++i]);
    else if (!strcmp(argv[i], "--tablets"))
      w->tablets = true;
    else if (!strcmp(argv[i], "--verbose"))
      verbose = true;
    else {
      fprintf(stderr, "usage: diff --engine E [--seed S] [--n N] [--tablets] [--verbose]\n");
      return 2;
    }
  }
  for (long table_no = 0; w->n_run < n && n_failed < 5; table_no++) {
    w->r.s = seed * 1000003u + (uint64_t)table_no;
    rng_next(&w->r);
    make_table(w);
    w->table_no = table_no;
    sqlite3 *db = open_db(w);
    for (int k = 0; k < (w->t.times > 100 ? 4 : 40) && w->n_run < n && n_failed < 5; k++) {
      w->n_nodes = 0;
      make_query(w);
      for (int i = 0; i < 2 * MAX_BINDS; i++) {
        char **slot = &w->binds[i / MAX_BINDS][i % MAX_BINDS];
        sqlite3_free(*slot);
        *slot = value(w, F_MIXED);
      }
      bool same = agree(w, db, why, sizeof why);
      if (verbose) {
        char *sql = query_text(&w->q);
        printf("  %s\n    %zu rows, %s\n", sql, w->want.n_rows, w->reason);
        sqlite3_free(sql);
      }
      w->n_run++;
      w->n_native += strncmp(w->reason, "sqlite", 6) != 0;
      w->n_engine +=
          !strncmp(w->reason, engine_prefix(w->engine), strlen(engine_prefix(w->engine)));
      if (!same) {
        n_failed++;
        snprintf(name, sizeof name, "diff seed %llu table %ld query %d [%s]",
                 (unsigned long long)seed, table_no, k, w->engine);
        report(w, name, why);
        break; /* the table was shrunk */
      }
    }
    sqlite3_close(db);
    free_table(&w->t);
  }
  snprintf(name, sizeof name, "diff [%s] %ld queries agree with SQLite", w->engine, w->n_run);
  if (!n_failed) tap_ok(name);
  double native = 100.0 * (double)w->n_native / (double)w->n_run;
  double engine = 100.0 * (double)w->n_engine / (double)w->n_run;
  printf("  native %.1f %%, by the engine asked for %.1f %%\n", native, engine);
  if (strcmp(w->engine, "sqlite")) {
    snprintf(name, sizeof name, "diff [%s] share of native runs", w->engine);
    if (native < 80)
      tap_bad(name, "%.1f %%, less than 80 %%", native);
    else if (engine < 30)
      tap_bad(name, "%.1f %% by the engine asked for, less than 30 %%", engine);
    else
      tap_ok(name);
  }
  rows_free(&w->got);
  rows_free(&w->want);
  for (int i = 0; i < MAX_NODES; i++)
    for (int k = 0; k <= MAX_KIDS; k++) sqlite3_free(w->nodes[i].lit[k]);
  for (int i = 0; i < 2 * MAX_BINDS; i++) sqlite3_free(w->binds[i / MAX_BINDS][i % MAX_BINDS]);
  free(w);
  return tap_done();
}
