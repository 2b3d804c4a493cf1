/*
** Random declarations for dmlfuzz.c: the text between the parentheses of CREATE TABLE, which is
** also what a tablet table is declared with.
**
** Invariants:
** 1. Most rows of random values pass: constraints are loose, few columns are NOT NULL.
** 2. For `plain` no column is both NOT NULL and has a DEFAULT: a virtual table cannot know a NULL
**    that was given from one that stands for a missing column.
*/
#ifndef TEST_DMLFUZZ_TABLE_H
#define TEST_DMLFUZZ_TABLE_H

#include "dmlfuzz_expr.h"

static void put_check(rng *r, sqlite3_str *o, dml_table *t) {
  dml_col *a = &t->col[rng_below(r, t->n_cols)], *b = &t->col[rng_below(r, t->n_cols)];
  a->in_check = b->in_check = true;
  if (rng_chance(r, 40)) sqlite3_str_appendf(o, "CONSTRAINT \"ck %d\" ", rng_below(r, 9));
  sqlite3_str_appendall(o, rng_chance(r, 80) ? "CHECK (" : "check  ( ");
  switch (rng_below(r, 9)) {
  case 0: sqlite3_str_appendf(o, "%s <> 7", a->name); break;
  case 1: sqlite3_str_appendf(o, "%s IS NULL OR  %s IS NOT 'abc'", a->name, b->name); break;
  case 2: sqlite3_str_appendf(o, "typeof(%s) <> 'blob'", a->name); break;
  case 3: sqlite3_str_appendf(o, "length(%s) < 40", a->name); break;
  case 4: sqlite3_str_appendf(o, "%s <= 1000 OR %s > 2", a->name, b->name); break;
  case 5: sqlite3_str_appendf(o, "%s NOT IN (3, 'b', 5.5)", a->name); break;
  case 6: sqlite3_str_appendf(o, "NOT (%s = 4 AND %s = 4)", a->name, b->name); break;
  case 7: sqlite3_str_appendf(o, "%s || %s <> '1212'", a->name, b->name); break;
  default: sqlite3_str_appendf(o, "coalesce(%s, 0) + coalesce(%s, 0) < 9e15", a->name, b->name);
  }
  sqlite3_str_appendall(o, ")");
}

static void add_key(dml_table *t, int n, const int *cols) {
  t->key[t->n_keys].n = n;
  for (int i = 0; i < n; i++) {
    t->key[t->n_keys].cols[i] = cols[i];
    t->col[cols[i]].in_key = true;
  }
  t->n_keys++;
}

static void put_column(rng *r, bool plain, sqlite3_str *o, dml_table *t, int i, bool *has_key) {
  static const struct {
    const char *name;
    char affinity;
  } types[] = {{"INTEGER", 'i'},          {"INT", 'i'},     {"BIGINT", 'i'},       {"REAL", 'r'},
               {"DOUBLE", 'r'},           {"FLOAT", 'r'},   {"TEXT", 't'},         {"TEXT", 't'},
               {"VARCHAR(9)", 't'},       {"CHAR(3)", 't'}, {"BLOB", 'b'},         {"", 'b'},
               {"NUMERIC", 'n'},          {"BOOLEAN", 'n'}, {"DECIMAL(9,2)", 'n'}, {"STRING", 'n'},
               {"UNSIGNED BIG INT", 'i'}, {"ANY", 'n'}};
  static const char *const defaults[] = {"0",
                                         "1",
                                         "-5",
                                         "+7",
                                         "'abc'",
                                         "NULL",
                                         "2.5",
                                         "-0.5",
                                         "(1 + 2)",
                                         "x'0102'",
                                         "''",
                                         "' 12 '",
                                         "(length('abc') || 'x')",
                                         "9223372036854775807",
                                         "TRUE",
                                         "1e3",
                                         "(-0.0)",
                                         "'12abc'"};
  dml_col *c = &t->col[i];
  int k = rng_below(r, (int)(sizeof types / sizeof *types));
  if (rng_chance(r, 4))
    snprintf(c->name, sizeof c->name, "\"%c %s\"", 'a' + i, rng_chance(r, 50) ? "col" : "Select");
  else
    snprintf(c->name, sizeof c->name, "%c", 'a' + i);
  c->affinity = types[k].affinity;
  c->is_integer = !strcmp(types[k].name, "INTEGER");
  if (i == 0 && rng_chance(r, 35)) {
    t->rowid_col = 0;
    c->affinity = 'i';
    *has_key = true;
    sqlite3_str_appendf(o, "%s INTEGER PRIMARY KEY", c->name);
    return;
  }
  sqlite3_str_appendf(o, "%s%s%s", c->name, *types[k].name ? " " : "", types[k].name);
  if (rng_chance(r, c->affinity == 't' ? 35 : 6))
    sqlite3_str_appendf(o, " COLLATE %s", rng_chance(r, 50) ? "NOCASE" : "RTRIM");
  if (rng_chance(r, 15)) {
    c->not_null = true;
    sqlite3_str_appendall(o, rng_chance(r, 20) ? " CONSTRAINT nn NOT NULL" : " NOT NULL");
  }
  if (!(plain && c->not_null) && rng_chance(r, c->not_null ? 45 : 25)) {
    c->has_default = t->has_default = true;
    sqlite3_str_appendf(o, " DEFAULT %s", PICK(r, defaults));
  }
  if (t->n_keys < 2 && rng_chance(r, 9)) {
    bool primary = !*has_key && rng_chance(r, 50);
    *has_key |= primary;
    if (primary && !strcmp(types[k].name, "INTEGER"))
      t->rowid_col = i;
    else
      add_key(t, 1, &i);
    sqlite3_str_appendall(o, primary ? " PRIMARY KEY" : " UNIQUE");
  }
}

/* A constraint of the table: PRIMARY KEY or UNIQUE over one to three columns. */
static void put_key(rng *r, sqlite3_str *o, dml_table *t, bool *has_key) {
  int cols[3], n = 1 + rng_below(r, t->n_cols < 3 ? t->n_cols : 3), first = rng_below(r, t->n_cols);
  for (int i = 0; i < n; i++) cols[i] = (first + i) % t->n_cols;
  bool primary = !*has_key && rng_chance(r, 40), alone = n == 1 && primary;
  *has_key |= primary;
  sqlite3_str_appendf(o, ", %s (", primary ? "PRIMARY KEY" : "UNIQUE");
  for (int i = 0; i < n; i++)
    sqlite3_str_appendf(o, "%s%s%s", i ? ", " : "", t->col[cols[i]].name,
                        alone || !rng_chance(r, 8) ? ""
                        : rng_chance(r, 50)        ? " COLLATE NOCASE"
                                                   : " DESC");
  sqlite3_str_appendall(o, ")");
  if (alone && t->col[cols[0]].is_integer)
    t->rowid_col = cols[0];
  else
    add_key(t, n, cols);
}

/* A new declaration; t->name is kept. */
static void make_declaration(rng *r, bool plain, dml_table *t) {
  const char *name = t->name;
  memset(t, 0, sizeof *t);
  t->name = name;
  t->rowid_col = -1;
  t->n_cols = 1 + rng_below(r, MAX_COLS);
  sqlite3_str *o = sqlite3_str_new(NULL);
  bool has_key = false;
  for (int i = 0; i < t->n_cols; i++) {
    if (i) sqlite3_str_appendall(o, ", ");
    put_column(r, plain, o, t, i, &has_key);
    if (rng_chance(r, 4)) {
      /* only over the columns that are there already: the names of the others are not made yet */
      int n = t->n_cols;
      t->n_cols = i + 1;
      sqlite3_str_appendall(o, " ");
      put_check(r, o, t);
      t->n_cols = n;
    }
  }
  for (int k = 0; k < 2; k++)
    if (rng_chance(r, 16)) put_key(r, o, t, &has_key);
  while (rng_chance(r, 25)) {
    sqlite3_str_appendall(o, ", ");
    put_check(r, o, t);
  }
  t->decl = must(sqlite3_str_finish(o));
}

#endif
