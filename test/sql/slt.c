/*
** The sqllogictest runner: runs SQL test files through warplite under one engine.
**
**     slt --engine sqlite|cpu|sim|cuda [--small] [--sample N] [--stats] FILE...
**     slt --generate FILE           (fills in results and types from SQLite)
**
** Each query is checked twice: against the result recorded in the file, and value by
** value with its type against SQLite on the same connection. The format is that of the
** sqllogictest corpus with two additions for our own files: a line before a query,
**
**     engine native    cpu must run it under cpu, gpu under sim and cuda
**     engine taken     warplite must run it: cpu, or under sim and cuda either of the two
**     engine cpu       native on the CPU only: under sim and cuda the reason begins with cpu
**     engine sqlite    SQLite must run it under every engine
**
** and `query error`: the query must fail, with SQLite's code and message.
**
** Invariants:
** 1. One connection to an in-memory database a file; statements run in file order.
** 2. Row order is compared exactly. Only where the file sorts, or where nothing in the
**    query fixes an order and SQLite's own plan does not scan one table in rowid order,
**    rows are compared as a multiset; never with LIMIT.
** 3. --stats counts every query by its reason. A SELECT of one table has one FROM source that
**    is no view, no subquery and no compound; views are counted apart, among all queries.
** 4. --sample N runs every N-th query of a file and all statements: always the same ones.
** 5. --small is for devices with little memory: `native` means `taken`. At the end it says how many
**    queries ran on the device.
*/
#include <ctype.h>
#include <inttypes.h>
#include <strings.h>

#include "warplite.h"
#include "../rows.h"
#include "../tap.h"
#include "../engines.h"
#include "md5.h"

enum { MAX_SHOWN = 20, MAX_REASONS = 500 };

typedef struct reason_count {
  char text[200];
  long n_single, n_all; /* SELECTs of one table, all queries */
} reason_count;

typedef struct runner {
  const char *engine;
  bool generate, stats;
  bool small;
  long n_device, n_fell; /* native queries on the device, and on the CPU instead */
  bool live;             /* only the running SQLite counts: nothing recorded, no engine asserted */
  long sample;
  int n_shown;
  long n_queries, n_failed; /* of the file at hand */
  long total_queries;
  sqlite3 *db;
  rows got, want;
  reason_count reasons[MAX_REASONS];
  int n_reasons;
  char **lines;
  long n_lines;
  char *sql;
  size_t cap_sql;
  char **vals; /* formatted values, pointers into pool */
  size_t *offs;
  char *pool;
  size_t n_pool, cap_pool, n_vals, cap_vals;
} runner;

static void fail_at(runner *t, const char *file, long line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void fail_at(runner *t, const char *file, long line, const char *fmt, ...) {
  va_list ap;
  t->n_failed++;
  if (t->n_shown++ >= MAX_SHOWN) return;
  printf("  %s:%ld: [%s] ", file, line, t->engine);
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  printf("\n    %s\n", t->sql);
}

/* ---- reading the query's text, roughly */

/* Finds a keyword outside quotes. */
static const char *find_word(const char *s, const char *word) {
  size_t n = strlen(word);
  bool inside = false; /* of a word */
  for (; *s; s++) {
    if (*s == '\'' || *s == '"') {
      char q = *s++;
      while (*s && *s != q) s++;
      if (!*s) return NULL;
      inside = false;
      continue;
    }
    if (!inside && !strncasecmp(s, word, n) && !isalnum((unsigned char)s[n]) && s[n] != '_')
      return s;
    inside = isalnum((unsigned char)*s) || *s == '_';
  }
  return NULL;
}

/* One SELECT over one table: no join, compound, subquery or view. */
static bool is_single_table(const char *sql, const char *reason) {
  if (strstr(reason, ": it is a view")) return false;
  const char *from = find_word(sql, "FROM"), *sel = find_word(sql, "SELECT");
  if (!from || !sel || find_word(sel + 6, "SELECT") || find_word(from, "JOIN")) return false;
  static const char *const enders[] = {"WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT"};
  const char *end = from + strlen(from);
  for (size_t i = 0; i < sizeof enders / sizeof enders[0]; i++) {
    const char *p = find_word(from, enders[i]);
    if (p && p < end) end = p;
  }
  if (memchr(from, ',', (size_t)(end - from))) return false;
  return true;
}

static bool has_float_sum(const char *sql) {
  static const char *const names[] = {"sum", "total", "avg"};
  for (int i = 0; i < 3; i++)
    if (find_word(sql, names[i])) return true;
  return false;
}

/* SQLite's own plan scans anything but one table in rowid order. */
static bool plan_is_unordered(runner *t) {
  char *sql = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", t->sql);
  sqlite3_stmt *st = NULL;
  int n = 0;
  bool index = false;
  if (sqlite3_prepare_v2(t->db, sql, -1, &st, NULL) == SQLITE_OK) {
    while (sqlite3_step(st) == SQLITE_ROW) {
      const char *d = (const char *)sqlite3_column_text(st, 3);
      n++;
      if (d && strstr(d, "INDEX")) index = true;
    }
  }
  sqlite3_finalize(st);
  sqlite3_free(sql);
  return index || n != 1;
}

/* ---- statistics of reasons */

static void note_reason(runner *t, const char *reason) {
  char norm[200];
  size_t n = 0;
  for (const char *p = reason; *p && n + 2 < sizeof norm;) {
    if (isdigit((unsigned char)*p)) {
      norm[n++] = 'N';
      while (isdigit((unsigned char)*p) ||
             ((*p == '.' || *p == ',') && isdigit((unsigned char)p[1])))
        p++;
    } else if (*p == '"' || *p == '\'') {
      const char *q = strchr(p + 1, *p);
      norm[n++] = 'Q';
      p = q ? q + 1 : p + 1;
    } else {
      norm[n++] = *p++;
    }
  }
  norm[n] = 0;
  int i = 0;
  while (i < t->n_reasons && strcmp(t->reasons[i].text, norm)) i++;
  if (i == t->n_reasons) {
    if (i == MAX_REASONS) return;
    memcpy(t->reasons[i].text, norm, sizeof norm);
    t->n_reasons++;
  }
  t->reasons[i].n_all++;
  if (is_single_table(t->sql, reason)) t->reasons[i].n_single++;
}

static int by_count(const void *a, const void *b) {
  long x = ((const reason_count *)a)->n_all, y = ((const reason_count *)b)->n_all;
  return (x < y) - (x > y);
}

static void print_stats(runner *t) {
  long native[2] = {0, 0}, all[2] = {0, 0};
  qsort(t->reasons, (size_t)t->n_reasons, sizeof t->reasons[0], by_count);
  printf("%10s %10s  reason\n", "single", "all");
  for (int i = 0; i < t->n_reasons; i++) {
    reason_count *r = &t->reasons[i];
    printf("%10ld %10ld  %s\n", r->n_single, r->n_all, r->text);
    all[0] += r->n_single;
    all[1] += r->n_all;
    if (strncmp(r->text, "sqlite", 6)) {
      native[0] += r->n_single;
      native[1] += r->n_all;
    }
  }
  for (int k = 0; k < 2; k++)
    printf("%s: %ld of %ld native (%.1f %%)\n", k ? "all queries" : "single-table SELECTs",
           native[k], all[k], all[k] ? 100.0 * (double)native[k] / (double)all[k] : 0.0);
}

/* ---- values as sqllogictest writes them */

static void add_value(runner *t, const rows *r, const cell *x, char type) {
  char tmp[80];
  const char *s = tmp;
  size_t n;
  bool text = x->type == SQLITE_TEXT || x->type == SQLITE_BLOB;
  const char *bytes = text ? r->bytes + x->u.off : "";
  if (x->type == SQLITE_NULL) {
    s = "NULL";
  } else if (type == 'I') {
    int64_t v = x->type == SQLITE_INTEGER          ? x->u.i
                : text                             ? strtoll(bytes, NULL, 10)
                : x->u.r >= 9.2233720368547758e18  ? INT64_MAX
                : x->u.r <= -9.2233720368547758e18 ? INT64_MIN
                                                   : (int64_t)x->u.r;
    snprintf(tmp, sizeof tmp, "%" PRId64, v);
  } else if (type == 'R') {
    double v = x->type == SQLITE_INTEGER ? (double)x->u.i : text ? strtod(bytes, NULL) : x->u.r;
    sqlite3_snprintf(sizeof tmp, tmp, "%.3f", v);
  } else if (text) {
    s = *bytes ? bytes : "(empty)";
  } else if (x->type == SQLITE_INTEGER) {
    snprintf(tmp, sizeof tmp, "%" PRId64, x->u.i);
  } else {
    sqlite3_snprintf(sizeof tmp, tmp, "%!.15g", x->u.r);
  }
  n = strlen(s);
  if (t->n_pool + n + 1 > t->cap_pool) {
    t->cap_pool = t->cap_pool * 2 + n + 4096;
    t->pool = must(realloc(t->pool, t->cap_pool));
  }
  if (t->n_vals == t->cap_vals) {
    t->cap_vals = t->cap_vals * 2 + 256;
    t->offs = must(realloc(t->offs, t->cap_vals * sizeof(size_t)));
    t->vals = must(realloc(t->vals, t->cap_vals * sizeof(char *)));
  }
  char *to = t->pool + t->n_pool;
  memcpy(to, s, n + 1);
  if (type == 'T')
    for (size_t i = 0; i < n; i++)
      if ((unsigned char)to[i] < ' ' || (unsigned char)to[i] > '~') to[i] = '@';
  t->offs[t->n_vals++] = t->n_pool;
  t->n_pool += n + 1;
}

static int sort_width; /* values a row, for by_row */

static int by_row(const void *a, const void *b) {
  char *const *x = a, *const *y = b;
  for (int c = 0; c < sort_width; c++) {
    int d = strcmp(x[c], y[c]);
    if (d) return d;
  }
  return 0;
}

static void format_rows(runner *t, const rows *r, const char *types, const char *sort) {
  size_t n_types = strlen(types);
  t->n_pool = t->n_vals = 0;
  for (size_t i = 0; i < r->n_cells; i++) {
    size_t c = i % (size_t)r->n_col;
    add_value(t, r, &r->cells[i], c < n_types ? types[c] : 'T');
  }
  for (size_t i = 0; i < t->n_vals; i++) t->vals[i] = t->pool + t->offs[i];
  if (t->n_vals == 0) return;
  sort_width = !strcmp(sort, "valuesort") ? 1 : r->n_col;
  if (strcmp(sort, "nosort"))
    qsort(t->vals, t->n_vals / (size_t)sort_width, sizeof(char *) * (size_t)sort_width, by_row);
}

/* The formatted values against the lines after "----". */
static bool recorded_same(runner *t, long from, long to, char *why, size_t n_why) {
  const char *first = from < to ? t->lines[from] : "";
  const char *hash = strstr(first, " values hashing to ");
  if (hash && to - from == 1) {
    char hex[33];
    md5_state m;
    md5_init(&m);
    for (size_t i = 0; i < t->n_vals; i++) {
      md5_add(&m, t->vals[i], strlen(t->vals[i]));
      md5_add(&m, "\n", 1);
    }
    md5_hex(&m, hex);
    if ((size_t)strtoull(first, NULL, 10) == t->n_vals && !strcmp(hash + 19, hex)) return true;
    snprintf(why, n_why, "%zu values hashing to %s, recorded %s", t->n_vals, hex, first);
    return false;
  }
  if ((size_t)(to - from) != t->n_vals) {
    snprintf(why, n_why, "%zu values, recorded %ld", t->n_vals, to - from);
    return false;
  }
  for (size_t i = 0; i < t->n_vals; i++) {
    if (!strcmp(t->vals[i], t->lines[from + (long)i])) continue;
    snprintf(why, n_why, "value %zu is %s, recorded %s", i, t->vals[i], t->lines[from + (long)i]);
    return false;
  }
  return true;
}

/* ---- one query */

static void check_engine(runner *t, const char *file, long line, const char *assertion,
                         const char *reason) {
  if (t->live) return;
  const char *must_be = "sqlite:";
  bool device = !strcmp(t->engine, "sim") || !strcmp(t->engine, "cuda");
  if (!*assertion) return;
  if (device && t->small && !strcmp(assertion, "native")) {
    *(strncmp(reason, "gpu:", 4) ? &t->n_fell : &t->n_device) += 1;
    assertion = "taken";
  }
  if (strcmp(t->engine, "sqlite") && !strcmp(assertion, "native"))
    must_be = device ? "gpu:" : "cpu:";
  else if (strcmp(t->engine, "sqlite") && !strcmp(assertion, "cpu"))
    must_be = "cpu:";
  if (strcmp(t->engine, "sqlite") && !strcmp(assertion, "taken"))
    must_be = device && !strncmp(reason, "gpu:", 4) ? "gpu:" : "cpu:";
  if (strncmp(reason, must_be, strlen(must_be)))
    fail_at(t, file, line, "ran elsewhere than \"engine %s\" says: %s", assertion, reason);
  else if (device && !strcmp(assertion, "cpu") && !reason[5])
    fail_at(t, file, line, "fell to the CPU without a reason");
}

static void run_query(runner *t, const char *file, long line, const char *types, const char *sort,
                      const char *assertion, long from, long to) {
  char why[900], reason[300];
  bool loose = has_float_sum(t->sql), same, other_order = false;
  rows_query(&t->got, t->db, warplite_prepare, t->sql);
  snprintf(reason, sizeof reason, "%s", warplite_reason(t->db));
  rows_query(&t->want, t->db, sqlite3_prepare_v2, t->sql);
  t->n_queries++;
  if (t->stats) note_reason(t, reason);

  if (!strcmp(types, "error")) {
    if (t->want.rc == SQLITE_DONE && !t->live)
      fail_at(t, file, line, "SQLite gave no error");
    else if (!rows_same(&t->got, &t->want, loose, why, sizeof why))
      fail_at(t, file, line, "%s (%s)", why, reason);
    if (t->got.prepared) check_engine(t, file, line, assertion, reason);
    return;
  }
  if (t->want.rc != SQLITE_DONE && !t->live) {
    fail_at(t, file, line, "SQLite: %s", t->want.err);
    return;
  }
  check_engine(t, file, line, assertion, reason);
  same = rows_same(&t->got, &t->want, loose, why, sizeof why);
  if (!same && t->got.rc == SQLITE_DONE && !find_word(t->sql, "LIMIT") &&
      t->got.n_rows == t->want.n_rows &&
      (strcmp(sort, "nosort") || (!find_word(t->sql, "ORDER") && plan_is_unordered(t)))) {
    rows_sort(&t->got);
    rows_sort(&t->want);
    same = rows_same(&t->got, &t->want, loose, why, sizeof why);
    if (same && !strcmp(sort, "nosort")) { /* the recording has SQLite's order */
      rows_query(&t->want, t->db, sqlite3_prepare_v2, t->sql);
      other_order = true;
    }
  }
  if (!same) {
    fail_at(t, file, line, "%s (%s)", why, reason);
    return;
  }
  if (from < 0 || t->live) return; /* nothing recorded */
  format_rows(t, other_order ? &t->want : &t->got, types, sort);
  if (recorded_same(t, from, to, why, sizeof why)) return;
  if (loose) { /* a last digit may turn the third decimal */
    format_rows(t, &t->want, types, sort);
    if (recorded_same(t, from, to, why, sizeof why)) return;
  }
  fail_at(t, file, line, "%s (%s)", why, reason);
}

static void run_statement(runner *t, const char *file, long line, bool expect_error) {
  const char *tail = t->sql;
  int rc = SQLITE_OK;
  while (rc == SQLITE_OK && *tail) {
    sqlite3_stmt *st = NULL;
    rc = warplite_prepare(t->db, tail, -1, &st, &tail);
    if (rc == SQLITE_OK && st) {
      while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
      }
      if (rc == SQLITE_DONE) rc = SQLITE_OK;
    }
    if (rc != SQLITE_OK && !expect_error)
      fail_at(t, file, line, "statement failed: %s", sqlite3_errmsg(t->db));
    sqlite3_finalize(st);
  }
  if (rc == SQLITE_OK && expect_error) fail_at(t, file, line, "statement did not fail");
}

/* ---- files */

static char *read_whole(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  long len = ftell(f);
  rewind(f);
  char *s = must(malloc((size_t)len + 1));
  *n = fread(s, 1, (size_t)len, f);
  s[*n] = 0;
  fclose(f);
  return s;
}

static void split_lines(runner *t, char *s) {
  size_t cap = 1024;
  t->n_lines = 0;
  t->lines = must(malloc(cap * sizeof(char *)));
  while (*s) {
    char *end = strchr(s, '\n');
    if ((size_t)t->n_lines + 2 > cap)
      t->lines = must(realloc(t->lines, (cap *= 2) * sizeof(char *)));
    t->lines[t->n_lines++] = s;
    if (!end) break;
    *end = 0;
    if (end > s && end[-1] == '\r') end[-1] = 0;
    s = end + 1;
  }
}

/* Joins lines [from, to) into t->sql. */
static void join_sql(runner *t, long from, long to) {
  size_t n = 0;
  for (long i = from; i < to; i++) n += strlen(t->lines[i]) + 1;
  if (n + 1 > t->cap_sql) t->sql = must(realloc(t->sql, t->cap_sql = n * 2 + 64));
  char *p = t->sql;
  for (long i = from; i < to; i++) {
    size_t k = strlen(t->lines[i]);
    memcpy(p, t->lines[i], k);
    p += k;
    *p++ = i + 1 < to ? '\n' : 0;
  }
  if (from == to) *p = 0;
}

/* --generate: the record as it should be, from SQLite alone. */
static void generate_query(runner *t, FILE *out, const char *types, const char *sort) {
  char auto_types[256];
  int n_cols;
  rows_query(&t->want, t->db, sqlite3_prepare_v2, t->sql);
  if (!strcmp(types, "error") || t->want.rc != SQLITE_DONE) {
    fprintf(out, "query error\n%s\n", t->sql);
    if (strcmp(types, "error")) fprintf(stderr, "fails: %s\n  %s\n", t->sql, t->want.err);
    return;
  }
  n_cols = t->want.n_col < 255 ? t->want.n_col : 255;
  for (int c = 0; c < n_cols; c++) {
    auto_types[c] = 'I';
    for (size_t r = 0; r < t->want.n_rows; r++) {
      int type = t->want.cells[r * (size_t)t->want.n_col + (size_t)c].type;
      if (type != SQLITE_INTEGER && type != SQLITE_NULL) auto_types[c] = 'T';
    }
  }
  auto_types[n_cols] = 0;
  fprintf(out, "query %s %s\n%s\n----\n", auto_types, sort, t->sql);
  format_rows(t, &t->want, auto_types, sort);
  for (size_t i = 0; i < t->n_vals; i++) fprintf(out, "%s\n", t->vals[i]);
}

static void run_file(runner *t, const char *file) {
  size_t n_bytes;
  char *text = read_whole(file, &n_bytes), name[600], cond[64], arg[64], assertion[64] = "";
  const char *base = strrchr(file, '/');
  bool skip = false;
  long ordinal = 0;
  snprintf(name, sizeof name, "%s [%s]", base ? base + 1 : file, t->engine);
  if (base && base != file) { /* the corpus repeats names: show the folder too */
    const char *p = base;
    for (int k = 0; k < 3 && p > file; k++) do
        p--;
      while (p > file && *p != '/');
    snprintf(name, sizeof name, "%s [%s]", *p == '/' ? p + 1 : p, t->engine);
  }
  if (!text) {
    tap_bad(name, "cannot read %s", file);
    return;
  }
  split_lines(t, text);
  t->n_queries = t->n_failed = 0;
  if (sqlite3_open(":memory:", &t->db) != SQLITE_OK || !use_engine(t->db, t->engine)) {
    tap_bad(name, "cannot set the engine: %s", sqlite3_errmsg(t->db));
    goto done;
  }
  FILE *out = t->generate ? fopen(file, "wb") : NULL;
  for (long i = 0; i < t->n_lines;) {
    const char *l = t->lines[i];
    long start = i++;
    bool record = !strncmp(l, "statement", 9) || !strncmp(l, "query", 5);
    if (out && !record) fprintf(out, "%s\n", l);
    if (!*l || *l == '#') continue;
    if (sscanf(l, "skipif %63s", cond) == 1) {
      skip |= !strcmp(cond, "sqlite");
    } else if (sscanf(l, "onlyif %63s", cond) == 1) {
      skip |= strcmp(cond, "sqlite") != 0;
    } else if (sscanf(l, "engine %63s", arg) == 1) {
      memcpy(assertion, arg, sizeof arg);
      if (strcmp(arg, "native") && strcmp(arg, "taken") && strcmp(arg, "cpu") &&
          strcmp(arg, "sqlite"))
        fail_at(t, file, start + 1, "no such engine assertion: %s", arg);
    } else if (!strncmp(l, "hash-threshold", 14)) {
      /* how the file was recorded; results say themselves whether they are hashes */
    } else if (!strncmp(l, "halt", 4)) {
      if (!skip) break;
      skip = false;
    } else if (record) {
      bool query = *l == 'q';
      char types[256] = "", sort[32] = "nosort";
      long sql_from = i, sql_to, res_from = -1, res_to = -1;
      while (i < t->n_lines && *t->lines[i] && strcmp(t->lines[i], "----")) i++;
      sql_to = i;
      if (i < t->n_lines && !strcmp(t->lines[i], "----")) {
        res_from = ++i;
        while (i < t->n_lines && *t->lines[i]) i++;
        res_to = i;
      }
      if (query) {
        int k = sscanf(l, "query %255s %31s", types, sort);
        if (k < 2) memcpy(sort, "nosort", 7);
      } else {
        sscanf(l, "statement %63s", types);
      }
      if (!skip) {
        join_sql(t, sql_from, sql_to);
        if (!query) {
          if (out) fprintf(out, "%s\n%s\n", l, t->sql);
          run_statement(t, file, start + 1, !strcmp(types, "error"));
        } else if (out) {
          generate_query(t, out, types, sort);
        } else if (ordinal++ % t->sample == 0) {
          run_query(t, file, start + 1, types, sort, assertion, res_from, res_to);
        }
      }
      skip = false;
      assertion[0] = 0;
    } else {
      join_sql(t, start, start);
      fail_at(t, file, start + 1, "not understood: %s", l);
    }
  }
  if (out) {
    fclose(out);
  } else if (t->n_failed) {
    tap_bad(name, "%ld of %ld queries and statements failed", t->n_failed, t->n_queries);
  } else {
    size_t n = strlen(name);
    snprintf(name + n, sizeof name - n, " %ld queries", t->n_queries);
    tap_ok(name);
  }
  t->total_queries += t->n_queries;
done:
  if (sqlite3_close(t->db) != SQLITE_OK) {
    tap_bad(name, "the connection does not close: %s", sqlite3_errmsg(t->db));
    sqlite3_close_v2(t->db);
  }
  t->db = NULL;
  free(t->lines);
  free(text);
}

int main(int argc, char **argv) {
  runner *t = must(calloc(1, sizeof *t));
  int n_files = 0;
  t->engine = "cpu";
  t->sql = must(calloc(1, t->cap_sql = 64));
  t->sample = 1;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--engine") && i + 1 < argc) {
      t->engine = argv[++i];
    } else if (!strcmp(argv[i], "--sample") && i + 1 < argc) {
      t->sample = atol(argv[++i]);
      if (t->sample < 1) t->sample = 1;
    } else if (!strcmp(argv[i], "--stats")) {
      t->stats = true;
    } else if (!strcmp(argv[i], "--small")) {
      t->small = true;
    } else if (!strcmp(argv[i], "--live")) {
      t->live = true;
    } else if (!strcmp(argv[i], "--generate")) {
      t->generate = true;
      t->engine = "sqlite";
    } else if (argv[i][0] == '-') {
      fprintf(
          stderr,
          "usage: slt --engine E [--small] [--sample N] [--stats] [--live] [--generate] FILE...\n");
      return 2;
    } else {
      n_files++;
      run_file(t, argv[i]);
    }
  }
  if (!n_files) tap_bad("slt", "no files given");
  if (t->n_shown > MAX_SHOWN) printf("  … and %d more\n", t->n_shown - MAX_SHOWN);
  if (t->stats) print_stats(t);
  if (t->small)
    printf("%ld of %ld queries that a device can run ran there\n", t->n_device,
           t->n_device + t->n_fell);
  rows_free(&t->got);
  rows_free(&t->want);
  free(t->sql);
  free(t->vals);
  free(t->offs);
  free(t->pool);
  free(t);
  return tap_done();
}
