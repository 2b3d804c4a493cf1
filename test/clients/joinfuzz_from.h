/*
** Random FROM clauses for joinfuzz.c: which relations, joined how, on what.
**
** Invariants:
** 1. scope.n_rows is about what the joins give. Where all combinations would be more than
**    maker.room, the sources meet by an equality.
** 2. The large table stands beside others only by equality, once in a FROM, and never where an
**    outer join would keep all its rows.
*/
#ifndef TEST_JOINFUZZ_FROM_H
#define TEST_JOINFUZZ_FROM_H

#include "joinfuzz_expr.h"

static relation *derived_table(maker *m, char **sql, int depth);

static bool is_big(const relation *t) {
  return t->n_rows >= BIG_ROWS;
}

static relation *values_table(maker *m, char **sql) {
  relation *t = &m->sub[m->n_subs++];
  int n_cols = 1 + rng_below(m->r, 3), n_rows = 1 + rng_below(m->r, 4);
  *t = (relation){.n_cols = n_cols, .n_rows = n_rows};
  char *s = "(VALUES ";
  for (int i = 0; i < n_rows; i++)
    for (int c = 0; c < n_cols; c++) {
      s = SAY(m, "%s%s%s%s", s,
              c   ? ","
              : i ? ",("
                  : "(",
              literal(m).sql, c + 1 < n_cols ? "" : ")");
      t->col[c].holds = V_MANY;
      snprintf(t->col[c].name, sizeof t->col[c].name, "column%d", (c + 1) % 100);
    }
  *sql = SAY(m, "%s)", s);
  return t;
}

/* One row of constants that may not be there. */
static relation *row_table(maker *m, char **sql) {
  relation *t = &m->sub[m->n_subs++];
  *t = (relation){.n_cols = 1 + rng_below(m->r, 2), .n_rows = 1, .one_row = true};
  char *s = "(SELECT ";
  for (int c = 0; c < t->n_cols; c++) {
    snprintf(t->col[c].name, sizeof t->col[c].name, "%c", 'a' + (m->n_alias + c) % 6);
    t->col[c].holds = V_MANY;
    s = SAY(m, "%s%s%s AS %s", s, c ? ", " : "", literal(m).sql, t->col[c].name);
  }
  *sql = SAY(m, "%s%s)", s, rng_chance(m->r, 40) ? " WHERE 0" : "");
  return t;
}

/* Chooses a relation that fits beside so many rows; its text without an alias. */
static const relation *pick_relation(maker *m, double beside, int depth, char **sql) {
  const schema *s = m->s;
  const relation *t = NULL;
  for (int i = 0; i < 12; i++) {
    bool sub = m->n_subs < MAX_SUBS - 4 && m->room_for_subqueries > 0 && depth > 0;
    if (m->n_ctes && rng_chance(m->r, 30)) {
      t = &m->sub[m->cte[rng_below(m->r, m->n_ctes)]];
    } else if (sub && i < 3 && rng_chance(m->r, 16)) {
      m->room_for_subqueries--;
      t = derived_table(m, sql, depth - 1);
      if (t->n_rows * beside <= m->room * 4) return t;
      continue;
    } else if (sub && i == 0 && rng_chance(m->r, 4)) {
      return values_table(m, sql);
    } else if (sub && i == 0 && rng_chance(m->r, 4)) {
      return row_table(m, sql);
    } else if (s->n_rels > s->n_tables && rng_chance(m->r, 18)) {
      t = &s->rel[s->n_tables + rng_below(m->r, s->n_rels - s->n_tables)];
    } else {
      t = &s->rel[rng_below(m->r, s->n_tables)];
    }
    if (t->n_rows < 1 && rng_chance(m->r, 85)) continue;
    if (!is_big(t) && t->n_rows * beside <= m->room) break;
  }
  if (is_big(t) || t->n_rows * beside > m->room) {
    t = &s->rel[0];
    for (int i = 1; i < s->n_tables; i++)
      if (s->rel[i].n_rows < t->n_rows && s->rel[i].n_rows > 0) t = &s->rel[i];
  }
  *sql = SAY(m, "%s", t->name);
  return t;
}

static char *add_source(maker *m, scope *sc, const relation *t, char *sql) {
  source *s = &sc->src[sc->n++];
  s->rel = t;
  bool bare = t->name[0] && rng_chance(m->r, 25);
  for (const scope *o = sc; o && bare; o = o->outer)
    for (int i = 0; i < o->n - (o == sc); i++) bare &= strcmp(o->src[i].alias, t->name) != 0;
  if (bare) {
    snprintf(s->alias, sizeof s->alias, "%s", t->name);
    return sql;
  }
  snprintf(s->alias, sizeof s->alias, "x%d", m->n_alias++);
  return SAY(m, "%s%s%s", sql, rng_chance(m->r, 70) ? " AS " : " ", s->alias);
}

/* ---- conditions between what is there, sources 0 … at-1, and what comes */

static char *equality(maker *m, const scope *sc, int at, bool by_key) {
  const source *a = &sc->src[rng_below(m->r, at)], *b = &sc->src[at + rng_below(m->r, sc->n - at)];
  val x = column_of(m, sc, a), y = column_of(m, sc, b);
  for (int i = 0; i < 3 && !(x.holds & y.holds & ~(unsigned)V_COLLATED); i++)
    y = column_of(m, sc, b); /* likely to meet */
  if (by_key && key_of(b))
    y.sql = SAY(m, "%s.%s", b->alias, key_of(b));
  else if (by_key && key_of(a))
    x.sql = SAY(m, "%s.%s", a->alias, key_of(a));
  if (rng_chance(m->r, 50)) return SAY(m, "%s=%s", x.sql, y.sql);
  return SAY(m, "%s=%s", y.sql, x.sql);
}

static char *on_condition(maker *m, const scope *sc, int at, int depth) {
  static const char *const between[] = {
      "%s<%s",   "%s>=%s",       "%s IS %s",     "%s<>%s",
      "%s=%s+1", "%s||''=%s",    "%s LIKE %s",   "%s=%s COLLATE NOCASE",
      "+%s=%s",  "%s IS NOT %s", "%s IN (%s,1)", "CAST(%s AS TEXT)=%s"};
  int k = rng_below(m->r, 100);
  if (k < 44) return equality(m, sc, at, rng_chance(m->r, 35));
  if (k < 51) return SAY(m, "%s AND %s", equality(m, sc, at, false), equality(m, sc, at, false));
  if (k < 58)
    return SAY(m, "%s AND %s", equality(m, sc, at, false), condition(m, sc, depth > 0 ? 1 : 0));
  if (k < 63) return SAY(m, "%s OR %s", equality(m, sc, at, false), equality(m, sc, at, false));
  if (k < 78) {
    val x = column_of(m, sc, &sc->src[rng_below(m->r, at)]);
    val y = column_of(m, sc, &sc->src[at + rng_below(m->r, sc->n - at)]);
    return keep(m, format(PICK(m->r, between), x.sql, y.sql));
  }
  if (k < 82) { /* one side only */
    scope one = {.n = 1, .src = {sc->src[rng_below(m->r, sc->n)]}};
    return condition(m, &one, 0);
  }
  if (k < 86) {
    static const char *const constants[] = {"1", "0", "NULL", "'1'", "1=1", "2>3", "x''"};
    return SAY(m, "%s", PICK(m->r, constants));
  }
  if (k < 90)
    return SAY(m, "%s BETWEEN %s AND %s", column_of(m, sc, &sc->src[sc->n - 1]).sql,
               column_of(m, sc, &sc->src[0]).sql, leaf(m, sc).sql);
  return condition(m, sc, depth);
}

/* Whether a side has a column once, or as one by USING. */
static bool has_one(const scope *sc, int n_with_it, const char *name) {
  return n_with_it == 1 || (n_with_it > 1 && n_with_it == n_merged(sc, name));
}

/* Names that both sides have, for USING: each must have them once, or merged into one. Now and then
** the right side, in parentheses, has them several times; then the first counts. */
static int common_columns(maker *m, const scope *sc, int at, const scope *right, const char **names,
                          bool *clear) {
  int n = 0;
  *clear = true;
  for (int i = 0; i < right->n; i++)
    for (int c = 0; c < right->src[i].rel->n_cols; c++) {
      const char *name = right->src[i].rel->col[c].name;
      int left = n_with(sc, at, name), known = 0;
      while (known < n && strcmp(names[known], name) != 0) known++;
      if (known < n || left == 0) continue;
      bool one = has_one(right, n_with(right, right->n, name), name);
      if (n < MAX_COLS && has_one(sc, left, name) && (one || rng_chance(m->r, 30)))
        names[n++] = name;
      else
        *clear = false;
    }
  return n;
}

/* A name is one column now, of this many sources more. */
static void merge_column(scope *sc, const char *name, int more) {
  for (int i = 0; i < sc->n_merged; i++)
    if (!strcmp(sc->merged[i].name, name)) {
      sc->merged[i].n += more;
      return;
    }
  if (sc->n_merged == MAX_MERGED) return;
  sc->merged[sc->n_merged].n = 1 + more;
  snprintf(sc->merged[sc->n_merged++].name, sizeof sc->merged[0].name, "%s", name);
}

static char *using_clause(maker *m, scope *sc, const scope *right, const char **names, int n) {
  int first = rng_below(m->r, n), many = 1 + rng_below(m->r, n > 2 ? 2 : n);
  char *s = "";
  for (int i = 0; i < many; i++) {
    const char *name = names[(first + i) % n];
    s = SAY(m, "%s%s%s", s, i ? "," : "", name);
    merge_column(sc, name, n_with(right, right->n, name));
  }
  return SAY(m, " USING (%s)", s);
}

/* How two sides that are both in the scope now are joined; returns the text of both. inside: the
** scope of the right one alone. */
static char *join_sides(maker *m, scope *sc, int at, const scope *inside, char *left, char *right,
                        double new_rows, int depth) {
  static const char *const plain[] = {", ", " JOIN ", " JOIN ", " INNER JOIN ", " CROSS JOIN "};
  static const char *const outer[] = {" LEFT JOIN ",  " LEFT JOIN ", " LEFT OUTER JOIN ",
                                      " RIGHT JOIN ", " FULL JOIN ", " FULL OUTER JOIN "};
  static const char *const natural[] = {" NATURAL JOIN ", " NATURAL LEFT JOIN ",
                                        " NATURAL RIGHT JOIN ", " NATURAL FULL JOIN ",
                                        " NATURAL INNER JOIN "};
  const char *names[MAX_COLS];
  int often = inside->n > 1 ? 2 : 1; /* how much oftener USING stands behind parentheses */
  bool tight = sc->n_rows * new_rows > m->room, big = false;
  for (int i = 0; i < sc->n; i++) big |= is_big(sc->src[i].rel);
  bool clear = false;
  int n_common = common_columns(m, sc, at, inside, names, &clear);
  double most = sc->n_rows * new_rows;
  double meet = sc->n_rows > new_rows ? sc->n_rows : new_rows;
  if (tight || big) {
    const char *op = !big && rng_chance(m->r, 40) ? PICK(m->r, outer) : " JOIN ";
    if (big) meet = sc->n_rows < new_rows ? sc->n_rows : new_rows;
    sc->n_rows = meet;
    return SAY(m, "%s%s%s ON %s", left, op, right, equality(m, sc, at, true));
  }
  if (n_common && (clear || rng_chance(m->r, 1)) && rng_chance(m->r, 14 * often)) {
    for (int i = 0; i < n_common; i++)
      merge_column(sc, names[i], n_with(inside, inside->n, names[i]));
    sc->n_rows = meet * 2;
    return SAY(m, "%s%s%s", left, PICK(m->r, natural), right);
  }
  const char *op = rng_chance(m->r, 50) ? PICK(m->r, outer) : PICK(m->r, plain);
  sc->outer_join |= strstr(op, "T ") || strstr(op, "LL ") || strstr(op, "OUTER");
  if (n_common && rng_chance(m->r, 22 * often) && op[0] != ',') {
    sc->n_rows = meet * 2;
    return SAY(m, "%s%s%s%s", left, op, right, using_clause(m, sc, inside, names, n_common));
  }
  sc->n_rows = most;
  if (rng_chance(m->r, op[0] == ',' ? 95 : 8)) return SAY(m, "%s%s%s", left, op, right);
  sc->n_rows = most / 3 > meet ? most / 3 : meet;
  return SAY(m, "%s%s%s ON %s", left, op, right, on_condition(m, sc, at, depth));
}

static char *from_list(maker *m, scope *sc, int n, int depth) {
  char *sql = NULL, *text;
  for (int i = 0; i < n; i++) {
    int at = sc->n;
    double new_rows;
    scope inner = {.outer = sc->outer};
    if (i > 0 && n - i >= 2 && rng_chance(m->r, 22)) {
      int more = n - i >= 3 && rng_chance(m->r, 40) ? 3 : 2;
      text = SAY(m, "(%s)", from_list(m, &inner, more, depth > 1 ? 1 : depth));
      for (int k = 0; k < inner.n; k++) {
        sc->src[sc->n] = inner.src[k];
        sc->src[sc->n++].hidden = true;
      }
      new_rows = inner.n_rows;
      i += more - 1;
    } else {
      const relation *t = NULL;
      if (i == n - 1 && i > 0 && m->may_be_big && m->s->big >= 0) {
        t = &m->s->rel[m->s->big];
        text = SAY(m, "%s", t->name);
        m->may_be_big = false;
      } else {
        t = pick_relation(m, i ? sc->n_rows : 1, depth, &text);
      }
      text = add_source(m, sc, t, text);
      inner.src[inner.n++] = sc->src[sc->n - 1];
      new_rows = t->n_rows > 1 ? t->n_rows : 1;
    }
    if (!sql) {
      sql = text;
      sc->n_rows = new_rows;
    } else {
      sql = join_sides(m, sc, at, &inner, sql, text, new_rows, depth);
    }
    for (int k = 0; k < inner.n_merged; k++)
      if (!n_merged(sc, inner.merged[k].name))
        merge_column(sc, inner.merged[k].name, inner.merged[k].n - 1);
  }
  return sql;
}

static char *from_clause(maker *m, scope *sc, int most, int depth) {
  int k = rng_below(m->r, 100);
  int n = k < 14 ? 1 : k < 56 ? 2 : k < 80 ? 3 : k < 92 ? 4 : 5;
  if (m->may_be_big && n < 2) n = 2;
  char *sql = from_list(m, sc, n < most ? n : most, depth);
  sc->done = true;
  return sql;
}

#endif
