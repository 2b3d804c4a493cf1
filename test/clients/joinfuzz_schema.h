/*
** Random schemas for the fuzzer of queries over several tables (joinfuzz.c): small tables whose
** columns share names and values, so that joins meet, and views over them.
**
** Invariants:
** 1. A schema is a function of its seed alone, kept as statements that make it again.
** 2. column.holds says what the values of a column can be. Where one_face() is true of it,
**    values that compare equal are the same bits, so that DISTINCT, GROUP BY, UNION, min and max
**    have one answer whatever order rows come in.
** 3. relation.key names a column that is unique and never NULL in the table.
*/
#ifndef TEST_JOINFUZZ_SCHEMA_H
#define TEST_JOINFUZZ_SCHEMA_H

#include "values.h"

enum { MAX_COLS = 8, MAX_TABLES = 8, MAX_VIEWS = 5, MAX_STATEMENTS = 96, BIG_ROWS = 66000 };

enum {
  V_INT = 1,
  V_REAL = 2, /* reals, integral ones among them */
  V_FRAC = 4, /* reals that are no integers */
  V_TEXT = 8,
  V_BLOB = 16,
  V_COLLATED = 32, /* another collation than BINARY */
  V_MANY = 64      /* all of it: equal values may look different */
};

static inline bool one_face(unsigned holds) {
  return !(holds & (V_MANY | V_REAL)) && !((holds & V_TEXT) && (holds & V_COLLATED));
}

typedef struct column {
  char name[16];
  unsigned holds;
  bool exact; /* its sum is the same in any order */
} column;

typedef struct relation {
  char name[16];
  column col[MAX_COLS];
  int n_cols;
  double n_rows;
  bool is_table, has_rowid;
  bool one_row; /* a SELECT without FROM: its row is there, or not */
  char key[8];  /* "" if it has none */
} relation;

typedef struct schema {
  relation rel[MAX_TABLES + MAX_VIEWS];
  int n_tables, n_rels;
  int big; /* the table of BIG_ROWS, or -1 */
  bool utf16;
  char *sql[MAX_STATEMENTS];
  int n_sql;
} schema;

/* ---- values: few of them, so that they meet in joins */

typedef enum kind {
  K_SMALL,
  K_HALF,
  K_WORD,
  K_NUMERAL,
  K_EDGE,
  K_REAL,
  K_BLOB,
  K_TAG, /* of several types, but equal values look the same */
  K_MIXED
} kind;

static const char *const join_words[] = {"'a'",   "'A'",   "'a '", "'b'", "'abc'",  "'ABC'",
                                         "'Abc'", "'abc'", "''",   "'B'", "'zebra'"};
static const char *const numerals[] = {"'1'", "'2'",  "'3'", "'01'", "'1.0'", "' 1'",
                                       "'0'", "'-0'", "''",  "'2x'", "'1e0'", "'.5'"};
static const char *const join_edges[] = {
    "2147483647",        "2147483648",         "-2147483649",         "4294967296",
    "9007199254740992",  "9007199254740993",   "9223372036854775807", "-9223372036854775808",
    "-9007199254740993", "9223372036854775806"};
static const char *const join_reals[] = {"0.0",
                                         "-0.0",
                                         "1.0",
                                         "2.0",
                                         "0.5",
                                         "-1.0",
                                         "3.0",
                                         "0.1",
                                         "9007199254740992.0",
                                         "9007199254740994.0",
                                         "9223372036854775808.0",
                                         "-9223372036854775808.0",
                                         "2147483648.0",
                                         "1e300",
                                         "9e999",
                                         "-9e999",
                                         "5e-324"};
static const char *const join_blobs[] = {"x''", "x'61'", "x'31'", "x'00'", "x'616263'"};

static char *value_of(rng *r, kind k) {
  switch (k) {
  case K_SMALL: return format("%d", rng_below(r, 10) - (rng_chance(r, 10) ? 10 : 0));
  case K_HALF: return format("%!.1f", rng_below(r, 12) / 2.0);
  case K_WORD: return format("%s", PICK(r, join_words));
  case K_NUMERAL: return format("%s", PICK(r, numerals));
  case K_EDGE:
    return rng_chance(r, 30) ? format("%d", rng_below(r, 4)) : format("%s", PICK(r, join_edges));
  case K_REAL: return format("%s", PICK(r, join_reals));
  case K_BLOB: return format("%s", PICK(r, join_blobs));
  case K_TAG: return value_of(r, rng_chance(r, 60) ? K_WORD : rng_chance(r, 70) ? K_SMALL : K_BLOB);
  default:
    if (rng_chance(r, 6)) return format("%s", PICK(r, odd_texts));
    if (rng_chance(r, 6)) return format("%s", PICK(r, wide_ints));
    return value_of(r, (kind)rng_below(r, K_MIXED));
  }
}

/* What is in a column of this kind once the declared type has had its say. */
static unsigned holds_of(kind k, char affinity) {
  switch (k) {
  case K_SMALL:
  case K_EDGE: return affinity == 'r' ? V_REAL : affinity == 't' ? V_TEXT : V_INT;
  case K_HALF:
    return affinity == 'i' || affinity == 'n' ? V_INT | V_FRAC : affinity == 't' ? V_TEXT : V_REAL;
  case K_WORD: return V_TEXT;
  case K_NUMERAL: return affinity == 't' || affinity == 'b' ? V_TEXT : V_MANY;
  case K_BLOB: return V_BLOB;
  case K_TAG: return affinity == 'r' ? V_MANY : V_TEXT | V_BLOB | (affinity == 't' ? 0u : V_INT);
  default: return V_MANY;
  }
}

/* ---- tables */

static void run_sql(schema *s, sqlite3 *db, char *sql) {
  if (s->n_sql == MAX_STATEMENTS) abort();
  s->sql[s->n_sql++] = sql;
  int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  if (rc == SQLITE_OK) return;
  fprintf(stderr, "joinfuzz: %s\n  %s\n", sqlite3_errmsg(db), sql);
  abort();
}

static void make_columns(rng *r, relation *t, kind *kinds, char **decl) {
  static const struct {
    const char *name;
    char affinity;
  } types[] = {{"INTEGER", 'i'}, {"INT", 'i'},     {"REAL", 'r'},       {"DOUBLE", 'r'},
               {"TEXT", 't'},    {"TEXT", 't'},    {"VARCHAR(9)", 't'}, {"BLOB", 'b'},
               {"", 'b'},        {"NUMERIC", 'n'}, {"BOOLEAN", 'n'}};
  static const kind by_name[] = {K_SMALL, K_WORD, K_MIXED, K_HALF, K_SMALL, K_NUMERAL};
  int n = 2 + rng_below(r, 4), first = rng_below(r, 6);
  for (int i = 0; i < n; i++) {
    column *c = &t->col[t->n_cols++];
    int letter = (first + i) % 6;
    int type = rng_below(r, (int)(sizeof types / sizeof types[0]));
    kind k = rng_chance(r, 70) ? by_name[letter] : (kind)rng_below(r, K_MIXED + 1);
    if (rng_chance(r, 10)) k = K_TAG;
    const char *coll = rng_chance(r, 12)  ? " COLLATE NOCASE"
                       : rng_chance(r, 8) ? " COLLATE RTRIM"
                                          : "";
    snprintf(c->name, sizeof c->name, "%c", 'a' + letter);
    if (k == K_SMALL && rng_chance(r, 60)) type = 0;
    c->holds = holds_of(k, types[type].affinity) | (*coll ? V_COLLATED : 0u);
    c->exact = k == K_SMALL || k == K_HALF;
    kinds[i] = k;
    char *next = format("%s%s%s %s%s", *decl, **decl ? ", " : "", c->name, types[type].name, coll);
    sqlite3_free(*decl);
    *decl = next;
  }
}

static char *make_row(rng *r, const relation *t, const kind *kinds, const int *nulls, char *row) {
  int first = strcmp(t->key, "k") ? 0 : 1;
  for (int c = first; c < t->n_cols; c++) {
    char *v = rng_chance(r, nulls[c]) ? format("NULL") : value_of(r, kinds[c - first]);
    char *next = format("%s%s%s", row, c ? "," : "", v);
    sqlite3_free(v);
    sqlite3_free(row);
    row = next;
  }
  return row;
}

/* k counts up in one of several ways; far out, it meets the edges of other columns. */
static long long key_at(int style, int i) {
  switch (style) {
  case 0: return i;
  case 1: return i * 3LL - 4;
  case 2: return (1LL << 31) - 2 + i;
  case 3: return (1LL << 53) - 2 + i;
  default: return i + 1;
  }
}

static void make_table(rng *r, schema *s, sqlite3 *db, int n_rows) {
  relation *t = &s->rel[s->n_rels];
  kind kinds[MAX_COLS];
  int nulls[MAX_COLS], style = rng_below(r, 8), how = rng_below(r, 100);
  char *decl = format("");
  snprintf(t->name, sizeof t->name, "t%d", s->n_rels);
  t->is_table = true;
  t->has_rowid = how < 88;
  t->n_rows = n_rows;
  snprintf(t->key, sizeof t->key, how < 75 || how >= 88 ? "k" : "rowid");
  if (t->key[0] == 'k') {
    sqlite3_free(decl);
    decl = format(t->has_rowid ? "k INTEGER PRIMARY KEY" : "k INTEGER NOT NULL");
    t->col[t->n_cols++] = (column){"k", V_INT, style != 2 && style != 3};
  }
  make_columns(r, t, kinds, &decl);
  if (!t->has_rowid)
    run_sql(s, db, format("CREATE TABLE %s(%s, PRIMARY KEY(k)) WITHOUT ROWID", t->name, decl));
  else
    run_sql(s, db, format("CREATE TABLE %s(%s)", t->name, decl));
  sqlite3_free(decl);
  for (int c = 0; c < MAX_COLS; c++) nulls[c] = rng_chance(r, 35) ? 0 : rng_chance(r, 60) ? 15 : 60;
  for (int i = 0; i < n_rows;) {
    char *all = format("INSERT INTO %s VALUES", t->name);
    for (int k = 0; k < 100 && i < n_rows; k++, i++) {
      char *row = t->key[0] == 'k' ? format("%lld", key_at(style, i)) : format("");
      row = make_row(r, t, kinds, nulls, row);
      char *next = format("%s%s(%s)", all, k ? "," : "", row);
      sqlite3_free(all);
      sqlite3_free(row);
      all = next;
    }
    run_sql(s, db, all);
  }
  for (int i = 0; i < 2; i++) {
    if (!rng_chance(r, 25)) continue;
    const char *a = t->col[rng_below(r, t->n_cols)].name, *b = t->col[rng_below(r, t->n_cols)].name;
    run_sql(s, db,
            format("CREATE INDEX %s_%d ON %s(%s%s%s%s)", t->name, i, t->name, a,
                   rng_chance(r, 15) ? " COLLATE NOCASE" : "", a != b ? ", " : "",
                   a != b ? b : ""));
  }
  s->n_rels++;
}

/* Texts that repeat so little that they have no dictionary. There are too many rows for that, but
** the queries count only FEW_NAMES: each key finds one. */
static void make_names_table(rng *r, schema *s, sqlite3 *db) {
  enum { NAMES = 2200, FEW_NAMES = 300 };
  relation *t = &s->rel[s->n_rels];
  *t =
      (relation){.n_cols = 4, .n_rows = FEW_NAMES, .is_table = true, .has_rowid = true, .key = "k"};
  snprintf(t->name, sizeof t->name, "t%d", s->n_rels++);
  t->col[0] = (column){"k", V_INT, true};
  t->col[1] = (column){"a", V_INT, true};
  t->col[2] = (column){"b", V_TEXT, false};
  t->col[3] = (column){"c", V_TEXT, false};
  run_sql(s, db, format("CREATE TABLE %s(k INTEGER PRIMARY KEY, a INT, b TEXT, c TEXT)", t->name));
  run_sql(
      s, db,
      format("INSERT INTO %s WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE "
             "i<%d) SELECT i-3, i%%9, CASE WHEN i%%%d THEN 'name '||(i*%d%%1700) END, "
             "CASE WHEN i%%5 THEN char(97+i%%3)||i ELSE 'x' END FROM n",
             t->name, NAMES - 1, 2 + rng_below(r, 9), 1 + rng_below(r, 3)));
}

/* One row more than a tablet holds, and some. */
static void make_big_table(rng *r, schema *s, sqlite3 *db) {
  relation *t = &s->rel[s->n_rels];
  *t = (relation){.n_cols = 4, .n_rows = BIG_ROWS, .is_table = true, .has_rowid = true, .key = "k"};
  snprintf(t->name, sizeof t->name, "t%d", s->n_rels);
  t->col[0] = (column){"k", V_INT, true};
  t->col[1] = (column){"a", V_INT, true};
  t->col[2] = (column){"b", V_TEXT, false};
  t->col[3] = (column){"d", V_REAL, true};
  run_sql(s, db, format("CREATE TABLE %s(k INTEGER PRIMARY KEY, a INT, b TEXT, d REAL)", t->name));
  run_sql(
      s, db,
      format("INSERT INTO %s WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE "
             "i<%d) SELECT i, CASE WHEN i%%7 THEN i*%d%%66001 END, char(97+i%%26), "
             "(i%%40)*0.5 FROM n",
             t->name, BIG_ROWS - 1, rng_chance(r, 50) ? 1 : 7919));
  s->big = s->n_rels++;
}

static void make_tables(rng *r, schema *s, sqlite3 *db) {
  static const int sizes[] = {30, 5, 0, 300, 2, 30, 1, 5};
  int n = 5 + rng_below(r, 4), at = rng_below(r, 8);
  bool big = rng_chance(r, 8), names = rng_chance(r, 40);
  memset(s, 0, sizeof *s);
  s->big = -1;
  s->utf16 = rng_chance(r, 2);
  if (s->utf16)
    run_sql(s, db, format("PRAGMA encoding='UTF-16%s'", rng_chance(r, 50) ? "le" : "be"));
  for (int i = 0; i < n - big - names; i++) make_table(r, s, db, sizes[(at + i) % 8]);
  if (names) make_names_table(r, s, db);
  if (big) make_big_table(r, s, db);
  s->n_tables = s->n_rels;
  if (rng_chance(r, 15)) run_sql(s, db, format("ANALYZE"));
}

static void free_schema(schema *s) {
  for (int i = 0; i < s->n_sql; i++) sqlite3_free(s->sql[i]);
  s->n_sql = 0;
}

#endif
