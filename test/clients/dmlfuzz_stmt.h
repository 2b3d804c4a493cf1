/*
** Random INSERT, UPDATE and DELETE statements for dmlfuzz.c.
**
** Invariants:
** 1. What a statement does is determined: UPDATE … FROM matches at most one row, and where the
**    order of the scan shows, the text has HERE in the place where NOT INDEXED may go, so that
**    the caller can make SQLite scan by rowid.
** 2. With `plain` there is nothing that SQLite refuses for virtual tables or must do differently.
*/
#ifndef TEST_DMLFUZZ_STMT_H
#define TEST_DMLFUZZ_STMT_H

#include "dmlfuzz_table.h"

#define HERE "\x01" /* becomes NOT INDEXED, or nothing */

typedef struct dml_stmt {
  char *sql;       /* with HERE in it, perhaps */
  bool insert;     /* SQLite may have to choose rowids */
  bool touchy;     /* the order in which rows are visited shows in what the table holds */
  bool has_select; /* of an INSERT: the order of the source shows */
} dml_stmt;

static const char *or_clause(dml_maker *m, bool *any) {
  static const char *const all[] = {" OR ROLLBACK", " OR ABORT", " OR FAIL", " OR IGNORE",
                                    " OR REPLACE"};
  *any = rng_chance(m->r, 30);
  m->careful |= *any;
  return *any ? all[rng_chance(m->r, 20) ? rng_below(m->r, 2) : 2 + rng_below(m->r, 3)] : "";
}

static void put_returning(dml_maker *m, sqlite3_str *o, const dml_table *t, int percent) {
  if (m->plain || !rng_chance(m->r, percent)) return;
  m->n_names = 0;
  add_columns(m, "", t);
  const char *target = m->target;
  m->target = NULL;
  switch (rng_below(m->r, 5)) {
  case 0: sqlite3_str_appendall(o, " RETURNING *"); break;
  case 1: sqlite3_str_appendall(o, " RETURNING rowid, *"); break;
  case 2: sqlite3_str_appendf(o, " RETURNING %s AS out, typeof(%s)", m->name[0], m->name[0]); break;
  default:
    sqlite3_str_appendall(o, " RETURNING ");
    put_expr(m, o, 2);
    if (rng_chance(m->r, 50)) {
      sqlite3_str_appendall(o, ", ");
      put_expr(m, o, 1);
    }
  }
  m->target = target;
}

static void put_with(dml_maker *m, sqlite3_str *o, int percent, bool *with) {
  *with = rng_chance(m->r, percent);
  if (!*with) return;
  switch (rng_below(m->r, 3)) {
  case 0:
    sqlite3_str_appendall(o, "WITH w(x, y) AS (VALUES (1, 'a'), (2, 'b'), (12, NULL)) ");
    break;
  case 1: sqlite3_str_appendall(o, "WITH w(x, y) AS (SELECT id, p FROM u WHERE id < 12) "); break;
  default:
    sqlite3_str_appendall(o,
                          "WITH RECURSIVE w(x, y) AS (SELECT 1, 'a' UNION ALL SELECT x + 1, y || "
                          "x FROM w WHERE x < 9) ");
  }
}

/* A value for a column, in INSERT. */
static void put_cell(dml_maker *m, sqlite3_str *o, const dml_table *t, int c, bool last) {
  if (c < 0 || c == t->rowid_col)
    put_rowid(m, o, true, last);
  else if (rng_chance(m->r, 6))
    put_expr(m, o, 1);
  else
    put_value(m, o, t->col[c].affinity);
}

/* An expression over the names at hand that suits a column in INSERT … SELECT. */
static void put_source_expr(dml_maker *m, sqlite3_str *o, const dml_table *t, int c) {
  if (c < 0 || c == t->rowid_col) {
    int k = rng_below(m->r, 5);
    if (k == 0)
      sqlite3_str_appendall(o, "NULL");
    else /* never near the greatest */
      sqlite3_str_appendf(o, "CAST(%s AS INTEGER) %% 1000 + %d", m->name[any_name(m)],
                          k == 1 ? 1 : rng_below(m->r, 4000));
    return;
  }
  int i = any_name(m);
  if (m->affinity[i] == t->col[c].affinity || rng_chance(m->r, 40))
    sqlite3_str_appendall(o, m->name[i]);
  else
    put_expr(m, o, 2);
}

/* Which columns an INSERT names: cols[], -1 for the rowid. 0: none are named, so all. */
static int choose_columns(dml_maker *m, const dml_table *t, int *cols, bool *named) {
  rng *r = m->r;
  int n = 0;
  *named = rng_chance(r, 55);
  if (!*named) {
    for (int i = 0; i < t->n_cols; i++) cols[n++] = i;
    return n;
  }
  /* the rowid under two names: the later one counts, and a virtual table does not know which */
  if (rng_chance(r, t->rowid_col < 0 ? 25 : m->plain ? 0 : 5)) cols[n++] = -1;
  for (int i = 0; i < t->n_cols; i++) {
    bool must_be = t->col[i].not_null && !t->col[i].has_default;
    if (m->plain && t->has_default) must_be = true;
    if (rng_chance(r, must_be ? 97 : 65) || (m->plain && must_be)) cols[n++] = i;
  }
  if (n == 0) cols[n++] = 0;
  if (m->plain && n == 1 && cols[0] < 0) cols[n++] = 0;
  for (int i = n - 1; i > 0 && rng_chance(r, 50); i--) {
    int j = rng_below(r, i + 1), x = cols[i];
    cols[i] = cols[j];
    cols[j] = x;
  }
  return n;
}

/* SET items; what an expression may use is in m. */
static void put_set(dml_maker *m, sqlite3_str *o, const dml_table *t, bool upsert, bool *touchy) {
  rng *r = m->r;
  int used = 0, n = 1 + (rng_chance(r, 35) ? rng_below(r, 3) : 0);
  if (t->n_cols > 1 && rng_chance(r, 8)) {
    int a = rng_below(r, t->n_cols), b = (a + 1) % t->n_cols;
    if (a != t->rowid_col && b != t->rowid_col) {
      *touchy |= t->col[a].in_key | t->col[b].in_key;
      sqlite3_str_appendf(o, "(%s, %s) = ", t->col[a].name, t->col[b].name);
      if (rng_chance(r, 35)) {
        sqlite3_str_appendf(o, "(SELECT p, q FROM u WHERE u.id = %d)", rng_below(r, 14));
        return;
      }
      sqlite3_str_appendall(o, "(");
      put_expr(m, o, 2);
      sqlite3_str_appendall(o, ", ");
      put_expr(m, o, 2);
      sqlite3_str_appendall(o, ")");
      return;
    }
  }
  for (int i = 0; i < n; i++) {
    int c = rng_chance(r, 4) ? -1 : rng_below(r, t->n_cols);
    /* SQLite computes all rows of a virtual table first, and a row may be moved twice */
    bool twice = m->plain && m->replace && (c < 0 || c == t->rowid_col);
    if (twice && t->n_cols == 1 && i == 0)
      sqlite3_str_appendf(o, "%s = %s", t->col[0].name, t->col[0].name);
    if (twice && i == 0 && t->n_cols > 1)
      c = t->rowid_col == 0 ? 1 : 0;
    else if (twice)
      continue;
    int slot = c == t->rowid_col ? 0 : c + 1; /* the rowid has two names */
    if (used >> slot & 1) continue;
    used |= 1 << slot;
    if (i) sqlite3_str_appendall(o, ", ");
    if (c < 0 || c == t->rowid_col) {
      const char *name = c < 0 ? "rowid" : t->col[c].name;
      *touchy = true;
      sqlite3_str_appendf(o, "%s = ", name);
      if (rng_chance(r, 50) && !m->careful) /* it may overflow */
        sqlite3_str_appendf(o, "%s%s + %d", upsert ? "excluded." : "", name, rng_below(r, 30) - 2);
      else
        put_rowid(m, o, rng_chance(r, 10), !upsert);
      continue;
    }
    *touchy |= t->col[c].in_key;
    sqlite3_str_appendf(o, "%s = ", t->col[c].name);
    if (rng_chance(r, 35))
      put_value(m, o, t->col[c].affinity);
    else
      put_expr(m, o, 2);
  }
}

/* ---- INSERT */

static bool alike(const dml_table *t, int i, int k) {
  bool all = t->key[i].n == t->key[k].n;
  for (int a = 0; a < t->key[i].n && all; a++) {
    bool has = false;
    for (int b = 0; b < t->key[k].n; b++) has |= t->key[i].cols[a] == t->key[k].cols[b];
    all = has;
  }
  return all;
}

static void put_upsert(dml_maker *m, sqlite3_str *o, const dml_table *t, const char *alias) {
  rng *r = m->r;
  char prefix[32];
  unsigned used = 0;
  /* a subquery over the table itself is computed once, when it is first needed */
  const char *target = m->target;
  m->target = NULL;
  for (int n = 1 + rng_chance(r, 25); n > 0; n--) {
    bool open = n == 1 && rng_chance(r, 25), touchy = false;
    int k = t->n_keys && rng_chance(r, 70) ? rng_below(r, t->n_keys) : MAX_KEYS;
    /* SQLite 3.40 leaves an index without its row where two clauses have one target */
    bool again = used >> k & 1;
    for (int i = 0; i < t->n_keys && k < MAX_KEYS; i++) again |= used >> i & 1 && alike(t, i, k);
    if (again && n > 1) continue;
    open |= again;
    if (!open) used |= 1u << k;
    sqlite3_str_appendall(o, " ON CONFLICT");
    if (!open && k < MAX_KEYS) {
      for (int i = 0; i < t->key[k].n; i++)
        sqlite3_str_appendf(o, "%s%s", i ? ", " : " (", t->col[t->key[k].cols[i]].name);
      sqlite3_str_appendall(o, ")");
    } else if (!open && n == 1 && used == 1u << k && rng_chance(r, 3)) {
      sqlite3_str_appendf(o, " (%s)", t->col[rng_below(r, t->n_cols)].name);
    } else if (!open) {
      sqlite3_str_appendf(
          o, " (%s)", t->rowid_col >= 0 && rng_chance(r, 60) ? t->col[t->rowid_col].name : "rowid");
    }
    if (rng_chance(r, 30)) {
      sqlite3_str_appendall(o, " DO NOTHING");
      continue;
    }
    snprintf(prefix, sizeof prefix, "%s.", alias);
    m->n_names = 0;
    add_columns(m, "excluded.", t);
    add_columns(m, rng_chance(r, 50) ? "" : prefix, t);
    sqlite3_str_appendall(o, " DO UPDATE SET ");
    put_set(m, o, t, true, &touchy);
    if (rng_chance(r, 25)) {
      sqlite3_str_appendall(o, " WHERE ");
      put_cond(m, o, 1);
    }
  }
  m->target = target;
}

/* The source of an INSERT … SELECT: its columns, FROM, WHERE, ORDER BY, LIMIT. */
static void put_source(dml_maker *m, sqlite3_str *o, const dml_table *t, const dml_table *from,
                       const int *cols, int n, bool with, int limit) {
  rng *r = m->r;
  int kind = with ? 2 : rng_below(r, 2);
  m->n_names = 0;
  if (kind == 0)
    add_source(m, "");
  else if (kind == 1)
    add_columns(m, "", from);
  else
    add_name(m, "", "x", 'i'), add_name(m, "", "y", 't');
  sqlite3_str_appendall(o, "SELECT ");
  for (int i = 0; i < n; i++) {
    if (i) sqlite3_str_appendall(o, ", ");
    put_source_expr(m, o, t, cols[i]);
  }
  sqlite3_str_appendf(o, " FROM %s", kind == 0 ? "u" : kind == 1 ? from->name : "w");
  if (kind == 1) sqlite3_str_appendall(o, HERE);
  sqlite3_str_appendall(o, " WHERE ");
  if (rng_chance(r, 60))
    put_cond(m, o, 1);
  else
    sqlite3_str_appendall(o, "true");
  if (kind != 2 && rng_chance(r, 25))
    sqlite3_str_appendf(o, " ORDER BY %s%s, rowid", m->name[any_name(m)],
                        rng_chance(r, 50) ? " DESC" : "");
  if (rng_chance(r, 30) || (kind == 1 && limit < 1000))
    sqlite3_str_appendf(o, " LIMIT %d", 1 + rng_below(r, limit));
}

/* from: a table to select from, the target itself perhaps. limit: most rows to take from it. */
static void make_insert(dml_maker *m, const dml_table *t, const dml_table *from, int limit,
                        dml_stmt *s) {
  rng *r = m->r;
  int cols[MAX_COLS + 1], n;
  bool named, with = false, any_or = false;
  const char *alias = t->name;
  sqlite3_str *o = sqlite3_str_new(NULL);
  m->n_names = 0;
  s->insert = true;
  if (rng_chance(r, 4) && !(m->plain && t->has_default)) {
    sqlite3_str_appendf(o, "INSERT%s INTO %s DEFAULT VALUES", or_clause(m, &any_or), t->name);
    put_returning(m, o, t, 30);
    s->sql = must(sqlite3_str_finish(o));
    return;
  }
  bool select = rng_chance(r, 30), upsert = !m->plain && rng_chance(r, 25);
  m->careful |= upsert;
  put_with(m, o, select ? 25 : 2, &with);
  if (rng_chance(r, 10)) {
    m->careful = true;
    sqlite3_str_appendf(o, "REPLACE INTO %s", t->name);
  } else
    sqlite3_str_appendf(o, "INSERT%s INTO %s%s", or_clause(m, &any_or),
                        rng_chance(r, 6) ? "main." : "", t->name);
  if (rng_chance(r, 5)) {
    alias = "z";
    sqlite3_str_appendall(o, " AS z");
  }
  n = choose_columns(m, t, cols, &named);
  for (int i = 0; named && i < n; i++)
    sqlite3_str_appendf(o, "%s%s", i ? ", " : "(", cols[i] < 0 ? "rowid" : t->col[cols[i]].name);
  sqlite3_str_appendall(o, named ? ") " : " ");
  if (select) {
    s->has_select = true;
    put_source(m, o, t, from, cols, n, with, limit);
  } else {
    int n_rows = rng_chance(r, 55) ? 1 : 1 + rng_below(r, 5);
    m->careful &= n_rows > 1;
    if (n <= MAX_COLS && rng_chance(r, 1)) cols[n++] = 0; /* an error */
    sqlite3_str_appendall(o, "VALUES ");
    for (int k = 0; k < n_rows; k++) {
      sqlite3_str_appendall(o, k ? ", (" : "(");
      for (int i = 0; i < n; i++) {
        if (i) sqlite3_str_appendall(o, ", ");
        put_cell(m, o, t, cols[i], k == n_rows - 1);
      }
      sqlite3_str_appendall(o, ")");
    }
  }
  if (upsert) put_upsert(m, o, t, alias);
  put_returning(m, o, t, 25);
  s->sql = must(sqlite3_str_finish(o));
}

/* ---- UPDATE and DELETE */

static void put_order(dml_maker *m, sqlite3_str *o, const dml_table *t, dml_stmt *s) {
  rng *r = m->r;
  if (!rng_chance(r, 12)) return;
  s->touchy = true;
  if (rng_chance(r, 75))
    sqlite3_str_appendf(o, " ORDER BY %s%s, rowid%s", t->col[rng_below(r, t->n_cols)].name,
                        rng_chance(r, 50) ? " DESC" : "", rng_chance(r, 30) ? " DESC" : "");
  sqlite3_str_appendf(o, " LIMIT %d", rng_below(r, 8));
  if (rng_chance(r, 30)) sqlite3_str_appendf(o, " OFFSET %d", rng_below(r, 4));
}

static void make_update(dml_maker *m, const dml_table *t, dml_stmt *s) {
  rng *r = m->r;
  /* SQLite 3.40 does not undo an UPDATE … FROM of a virtual table that fails half-way */
  bool with, any_or, from = rng_chance(r, 12) && !m->plain;
  const char *alias = !from && rng_chance(r, 8) ? "z" : t->name;
  char prefix[32];
  sqlite3_str *o = sqlite3_str_new(NULL);
  put_with(m, o, 6, &with);
  const char * or = or_clause(m, &any_or);
  m->replace = !strcmp(or, " OR REPLACE");
  sqlite3_str_appendf(o, "UPDATE%s %s", or, t->name);
  s->touchy = any_or;
  if (alias != t->name) sqlite3_str_appendf(o, " AS %s", alias);
  sqlite3_str_appendall(o, HERE " SET ");
  snprintf(prefix, sizeof prefix, "%s.", alias);
  m->n_names = 0;
  add_columns(m, from || rng_chance(r, 20) ? prefix : "", t);
  if (from) add_source(m, "f.");
  if (rng_chance(r, 2) && !m->plain && !m->big && t->rowid_col != 0)
    /* every row sees what the rows before it have become */
    sqlite3_str_appendf(o, "%s = (SELECT count(*) FROM %s AS y NOT INDEXED WHERE y.%s < %s.%s)",
                        t->col[0].name, t->name, t->col[t->n_cols - 1].name, alias,
                        t->col[t->n_cols - 1].name),
        s->touchy = true;
  else
    put_set(m, o, t, false, &s->touchy);
  if (with && rng_chance(r, 60) && t->n_cols > 1 && !strstr(sqlite3_str_value(o), "SET (")) {
    sqlite3_str_appendf(o, ", %s = (SELECT max(x) FROM w)", t->col[1].name);
    s->touchy |= t->col[1].in_key;
  }
  if (from) {
    bool grouped = rng_chance(r, 30);
    int c = rng_below(r, t->n_cols);
    sqlite3_str_appendf(o, " FROM %s AS f WHERE f.id = %s%s",
                        grouped ? "(SELECT id % 7 AS id, max(p) AS p, count(*) AS q, min(r) AS r "
                                  "FROM u GROUP BY id % 7)"
                                : "u",
                        prefix, rng_chance(r, 40) ? "rowid" : t->col[c].name);
    if (rng_chance(r, 30)) {
      sqlite3_str_appendall(o, " AND ");
      put_cond(m, o, 1);
    }
  } else if (rng_chance(r, 85)) {
    sqlite3_str_appendall(o, " WHERE ");
    put_cond(m, o, 2);
  }
  put_returning(m, o, t, 25);
  if (!from) put_order(m, o, t, s);
  s->sql = must(sqlite3_str_finish(o));
}

static void make_delete(dml_maker *m, const dml_table *t, dml_stmt *s) {
  rng *r = m->r;
  bool with, alias = rng_chance(r, 8);
  sqlite3_str *o = sqlite3_str_new(NULL);
  put_with(m, o, 5, &with);
  sqlite3_str_appendf(o, "DELETE FROM %s%s" HERE, t->name, alias ? " AS z" : "");
  m->n_names = 0;
  add_columns(m, alias && rng_chance(r, 60) ? "z." : "", t);
  /* a subquery over the table itself is computed when SQLite first needs it, rows being gone then
   */
  const char *target = m->target;
  m->target = NULL;
  if (rng_chance(r, 94)) {
    sqlite3_str_appendall(o, " WHERE ");
    if (with)
      sqlite3_str_appendf(o, "%s IN (SELECT x FROM w)", m->name[any_name(m)]);
    else
      put_cond(m, o, 2);
    if (rng_chance(r, 40)) {
      sqlite3_str_appendall(o, " AND ");
      put_cond(m, o, 1);
    }
  }
  m->target = target;
  put_returning(m, o, t, 25);
  put_order(m, o, t, s);
  s->sql = must(sqlite3_str_finish(o));
}

/* ---- many rows at once, from the numbers 1 … of table n */

static void put_bulk_expr(dml_maker *m, sqlite3_str *o, const dml_table *t, int c) {
  rng *r = m->r;
  static const int steps[] = {1, 2, 3, 7, 1000};
  if (c < 0 || c == t->rowid_col) {
    if (rng_chance(r, 50))
      sqlite3_str_appendall(o, "NULL");
    else
      sqlite3_str_appendf(o, "x * %d + %d", PICK(r, steps), rng_below(r, 100000));
    return;
  }
  if (m->late && t->col[c].not_null && rng_chance(r, 30)) {
    sqlite3_str_appendf(o, "nullif(x, %d)", m->late);
    return;
  }
  if (t->col[c].in_key) {
    sqlite3_str_appendall(o, t->col[c].affinity == 't' ? "'k' || (" : "(");
    if (m->late) /* the key of an early row */
      sqlite3_str_appendf(o, "iif(x = %d, %d, x) * 7919 %% 70001", m->late, 1 + rng_below(r, 3));
    else
      sqlite3_str_appendall(o, "x");
    sqlite3_str_appendf(o, " + %d)", rng_below(r, 200000));
    return;
  }
  switch (rng_below(r, 9)) {
  case 0: put_value(m, o, t->col[c].affinity); break;
  case 1: sqlite3_str_appendall(o, "x % 10"); break;
  case 2: sqlite3_str_appendall(o, "x * 0.5"); break;
  case 3: sqlite3_str_appendall(o, "'w' || (x % 100)"); break;
  case 4: sqlite3_str_appendall(o, "CASE WHEN x % 7 = 0 THEN NULL ELSE x END"); break;
  case 5: sqlite3_str_appendall(o, "x * 1000003"); break;
  case 6:
    sqlite3_str_appendall(o, "CASE x % 5 WHEN 0 THEN x WHEN 1 THEN x / 4.0 WHEN 2 THEN 's' || x "
                             "WHEN 3 THEN NULL ELSE -x END");
    break;
  case 7: sqlite3_str_appendall(o, "'text of row ' || x"); break;
  default: sqlite3_str_appendall(o, "x"); break;
  }
}

/* late: of some hundred rows, the last breaks a constraint; in any round. */
static void make_bulk_insert(dml_maker *m, const dml_table *t, bool late, dml_stmt *s) {
  static const int sizes[] = {4095, 4096, 4097, 5000, 10000, 30000, 65535, 65536, 65537, 70000};
  rng *r = m->r;
  int cols[MAX_COLS + 1];
  bool named, any_or, recursive = late || rng_chance(r, 15);
  int n = choose_columns(m, t, cols, &named), k = late ? 100 + rng_below(r, 500) : PICK(r, sizes);
  m->late = late || rng_chance(r, 30) ? k : 0;
  sqlite3_str *o = sqlite3_str_new(NULL);
  m->n_names = 0;
  add_name(m, "", "x", 'i');
  sqlite3_str_appendf(o, "INSERT%s INTO %s", or_clause(m, &any_or), t->name);
  for (int i = 0; named && i < n; i++)
    sqlite3_str_appendf(o, "%s%s", i ? ", " : "(", cols[i] < 0 ? "rowid" : t->col[cols[i]].name);
  sqlite3_str_appendall(o, named ? ") " : " ");
  if (recursive)
    sqlite3_str_appendf(o,
                        "WITH RECURSIVE g(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM g WHERE x < "
                        "%d) ",
                        k);
  sqlite3_str_appendall(o, "SELECT ");
  for (int i = 0; i < n; i++) {
    if (i) sqlite3_str_appendall(o, ", ");
    put_bulk_expr(m, o, t, cols[i]);
  }
  sqlite3_str_appendf(o, " FROM %s", recursive ? "g" : "n");
  if (!recursive) sqlite3_str_appendf(o, " WHERE x <= %d", k);
  put_returning(m, o, t, 5);
  m->late = 0;
  s->insert = s->has_select = true;
  s->sql = must(sqlite3_str_finish(o));
}

/* UPDATE or DELETE of a share of the rows. */
/* A condition that a few of many rows meet, next to each other or far apart. */
static void put_few(rng *r, sqlite3_str *o) {
  int k = 100 + rng_below(r, 900);
  switch (rng_below(r, 4)) {
  case 0:
  case 1: sqlite3_str_appendf(o, " WHERE rowid %% %d = %d", k, rng_below(r, 5)); break;
  case 2: {
    int first = rng_chance(r, 40) ? 65536 - k / 2 : rng_below(r, 100000);
    sqlite3_str_appendf(o, " WHERE rowid BETWEEN %d AND %d", first, first + k);
    break;
  }
  default: sqlite3_str_appendf(o, " WHERE rowid %% %d < 3 AND rowid > %d", k, rng_below(r, 60000));
  }
}

/* UPDATE or DELETE of a few of many rows. Often the same column, with values of another width, of
** another type, or NULL. */
static void make_few_change(dml_maker *m, const dml_table *t, dml_stmt *s) {
  static const char *const values[] = {"NULL",
                                       "rowid",
                                       "-rowid",
                                       "rowid * 1000003",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "rowid / 8.0",
                                       "rowid / 3.0",
                                       "1e300",
                                       "-0.0",
                                       "''",
                                       "'few'",
                                       "'few ' || rowid % 5",
                                       "'text ' || rowid",
                                       "CAST(rowid AS BLOB)",
                                       "0"};
  rng *r = m->r;
  sqlite3_str *o = sqlite3_str_new(NULL);
  int c = rng_chance(r, 60) ? t->n_cols - 1 : rng_below(r, t->n_cols);
  m->n_names = 0;
  add_columns(m, "", t);
  if (rng_chance(r, 85) && c != t->rowid_col) {
    sqlite3_str_appendf(o, "UPDATE %s" HERE " SET %s = ", t->name, t->col[c].name);
    s->touchy = t->col[c].in_key;
    if (rng_chance(r, 70))
      sqlite3_str_appendall(o, PICK(r, values));
    else
      put_value(m, o, t->col[c].affinity);
    int d = rng_below(r, t->n_cols);
    if (d != c && d != t->rowid_col && rng_chance(r, 25)) {
      sqlite3_str_appendf(o, ", %s = %s", t->col[d].name, PICK(r, values));
      s->touchy |= t->col[d].in_key;
    }
  } else {
    sqlite3_str_appendf(o, "DELETE FROM %s" HERE, t->name);
  }
  put_few(r, o);
  s->sql = must(sqlite3_str_finish(o));
}

static void make_bulk_change(dml_maker *m, const dml_table *t, dml_stmt *s) {
  rng *r = m->r;
  bool update = rng_chance(r, 65), any_or = false;
  int k = 2 + rng_below(r, 30);
  sqlite3_str *o = sqlite3_str_new(NULL);
  m->n_names = 0;
  add_columns(m, "", t);
  const char *target = m->target;
  m->target = NULL;
  if (update) {
    const char * or = rng_chance(r, 30) ? or_clause(m, &any_or) : "";
    m->replace = !strcmp(or, " OR REPLACE");
    sqlite3_str_appendf(o, "UPDATE%s %s" HERE " SET ", or, t->name);
    s->touchy = any_or;
    put_set(m, o, t, false, &s->touchy);
  } else {
    sqlite3_str_appendf(o, "DELETE FROM %s" HERE, t->name);
  }
  switch (rng_below(r, 6)) {
  case 0: sqlite3_str_appendf(o, " WHERE rowid %% %d = %d", k, rng_below(r, k)); break;
  case 1: sqlite3_str_appendf(o, " WHERE rowid %% %d <> %d", k, rng_below(r, k)); break;
  case 2: sqlite3_str_appendf(o, " WHERE rowid > %d", rng_below(r, 140000)); break;
  case 3:
    sqlite3_str_appendf(o, " WHERE rowid BETWEEN %d AND %d", rng_below(r, 70000),
                        30000 + rng_below(r, 110000));
    break;
  case 4:
    sqlite3_str_appendall(o, " WHERE ");
    put_cond(m, o, 1);
    break;
  default: break;
  }
  put_returning(m, o, t, 4);
  m->target = target;
  s->sql = must(sqlite3_str_finish(o));
}

#endif
