/*
** Grouped queries for joinfuzz.c that are joined by their group keys with a table, of which
** conditions leave few rows: most groups need not be computed (plan/rewrite/reduce_groups.c).
*/
#ifndef TEST_JOINFUZZ_REDUCE_H
#define TEST_JOINFUZZ_REDUCE_H

#include "joinfuzz_expr.h"

static const relation *table_below(maker *m, double most) {
  const relation *t = &m->s->rel[rng_below(m->r, m->s->n_tables)];
  return t->n_rows <= most ? t : &m->s->rel[0];
}

static scope scope_of(const relation *t, const char *alias) {
  scope sc = {.n = 1, .n_rows = t->n_rows};
  sc.src[0].rel = t;
  snprintf(sc.src[0].alias, sizeof sc.src[0].alias, "%s", alias);
  return sc;
}

static const char *column_name(maker *m, const relation *t) {
  return t->col[rng_below(m->r, t->n_cols)].name;
}

/* The left side decides the collation. */
static char *equal(maker *m, const char *a, const char *x, const char *b, const char *y) {
  return rng_chance(m->r, 50) ? SAY(m, "%s.%s=%s.%s", a, x, b, y)
                              : SAY(m, "%s.%s=%s.%s", b, y, a, x);
}

/* Conditions on x, and perhaps a join or an IN that restrict its column q. */
static char *restriction(maker *m, const scope *x, const char *q, char **from) {
  const relation *t = table_below(m, 300);
  scope z = scope_of(t, "z");
  const char *c = column_name(m, t);
  char *some = condition(m, &z, rng_below(m->r, 2)), *where = "1";
  if (rng_chance(m->r, 60)) where = condition(m, x, rng_below(m->r, 2));
  if (rng_chance(m->r, 40))
    where = SAY(m, "%s AND x.%s IN (SELECT z.%s FROM %s z WHERE %s)", where, q, c, t->name, some);
  else if (rng_chance(m->r, 25) && t->n_rows < 50) {
    *from = SAY(m, "%s, %s z", *from, t->name);
    where = SAY(m, "%s AND %s AND %s", where, equal(m, "z", c, "x", q), some);
  }
  return where;
}

static char *reduced_query(maker *m) {
  static const char *const ops[] = {">", "<", "=", ">=", "IS NOT"};
  const relation *t = table_below(m, 300), *u = table_below(m, 300);
  scope x = scope_of(t, "x"), y = scope_of(u, "y");
  const char *q = column_name(m, t), *s = column_name(m, t), *p = column_name(m, u),
             *r = column_name(m, u), *show = column_name(m, t);
  bool two = rng_chance(m->r, 30);
  char *from = SAY(m, "%s x", t->name), *where = restriction(m, &x, q, &from);
  char *agg = aggregate(m, &y, 0, true).sql;
  char *some = rng_chance(m->r, 40) ? SAY(m, " AND %s", condition(m, &y, 0)) : "";
  char *keys = equal(m, "y", p, "x", q);
  if (two) keys = SAY(m, "%s AND %s", keys, equal(m, "y", r, "x", s));
  if (rng_chance(m->r, 50)) {
    char *value = SAY(m, "(SELECT %s FROM %s y WHERE %s%s)", agg, u->name, keys, some);
    if (rng_chance(m->r, 50))
      return SAY(m, "SELECT x.%s, %s FROM %s WHERE %s", show, value, from, where);
    return SAY(m, "SELECT x.%s, x.%s FROM %s WHERE %s AND x.%s%s%s", show, q, from, where,
               column_name(m, t), PICK(m->r, ops), value);
  }
  char *by = SAY(m, two ? "y.%s, y.%s" : "y.%s", p, r);
  char *groups = SAY(m, "SELECT y.%s AS p, y.%s AS r, %s AS v FROM %s y WHERE 1%s GROUP BY %s", p,
                     two ? r : p, agg, u->name, some, by);
  if (rng_chance(m->r, 30)) groups = SAY(m, "%s HAVING count(*)>%d", groups, rng_below(m->r, 3));
  keys = equal(m, "g", "p", "x", q);
  if (two) keys = SAY(m, "%s AND %s", keys, equal(m, "g", "r", "x", s));
  if (rng_chance(m->r, 25))
    return SAY(m, "SELECT x.%s FROM %s WHERE %s AND %sEXISTS (SELECT 1 FROM (%s) g WHERE %s)", show,
               from, where, rng_chance(m->r, 40) ? "NOT " : "", groups, keys);
  if (strchr(from, ',') || rng_chance(m->r, 40))
    return SAY(m, "SELECT x.%s, g.v FROM %s, (%s) g WHERE %s AND %s", show, from, groups, keys,
               where);
  return SAY(m, "SELECT x.%s, g.v FROM %s LEFT JOIN (%s) g ON %s WHERE %s", show, from, groups,
             keys, where);
}

#endif
