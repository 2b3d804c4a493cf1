/*
** LIMIT and OFFSET for joinfuzz.c: numbers at the ends of 64 bits, and joins that keep the order of
** one of their tables, so that LIMIT cuts them where SQLite would.
*/
#ifndef TEST_JOINFUZZ_CUT_H
#define TEST_JOINFUZZ_CUT_H

#include "joinfuzz_expr.h"

/* A number of rows for LIMIT or OFFSET: small, now and then at an end of 64 bits. */
static const char *cut_text(maker *m, int from, int most) {
  static const char *const ends[] = {"9223372036854775807", "9223372036854775806",
                                     "9223372036854775805", "-9223372036854775808"};
  return rng_chance(m->r, 12) ? PICK(m->r, ends) : SAY(m, "%d", from + rng_below(m->r, most));
}

/* One table, of whose rows each finds one row of others at most, cut by LIMIT: SQLite gives them in
** the order of its scan of that table, or of another, and so must warplite. */
static char *cut_query(maker *m) {
  const relation *t = &m->s->rel[rng_below(m->r, m->s->n_tables)];
  const char *from = SAY(m, "%s x0", t->name), *where = "1", *out = "";
  for (int i = 1 + rng_below(m->r, 3); i > 0; i--) {
    const relation *u = &m->s->rel[rng_below(m->r, m->s->n_tables)];
    const char *mine = t->col[rng_below(m->r, t->n_cols)].name,
               *its = u->col[rng_below(m->r, u->n_cols)].name,
               *other = u->col[rng_below(m->r, u->n_cols)].name;
    switch (rng_below(m->r, 6)) {
    case 0:
      out = SAY(m, "%s, (SELECT %s(y.%s) FROM %s y WHERE y.%s=x0.%s)", out,
                rng_chance(m->r, 50) ? "count" : "max", other, u->name, its, mine);
      break;
    case 1:
      where = SAY(m, "%s AND %sEXISTS (SELECT 1 FROM %s y WHERE y.%s=x0.%s)", where,
                  rng_chance(m->r, 30) ? "NOT " : "", u->name, its, mine);
      break;
    case 2:
      where = SAY(m, "%s AND x0.%s IN (SELECT y.%s FROM %s y)", where, mine, its, u->name);
      break;
    case 3:
      where = SAY(m, "%s AND x0.%s>=(SELECT min(y.%s) FROM %s y WHERE y.%s=x0.%s)", where, mine,
                  other, u->name, its, mine);
      break;
    default:
      if (!u->has_rowid) break;
      from = SAY(m, "%s%s JOIN %s z%d ON z%d.rowid=x0.%s", from,
                 rng_chance(m->r, 50) ? " LEFT" : "", u->name, i, i, mine);
      out = SAY(m, "%s, z%d.%s", out, i, its);
    }
  }
  if (rng_chance(m->r, 30))
    where = SAY(m, "%s AND x0.%s IS NOT NULL", where, t->col[rng_below(m->r, t->n_cols)].name);
  return SAY(m, "SELECT x0.%s, x0.%s%s FROM %s WHERE %s LIMIT %s OFFSET %s",
             t->has_rowid ? "rowid" : t->col[0].name, t->col[0].name, out, from, where,
             cut_text(m, 0, 9), cut_text(m, -1, 6));
}

/* A join whose ORDER BY leaves ties, cut by LIMIT, now and then with DISTINCT or GROUP BY. Which of
** the equal rows are in the answer is decided by the order of SQLite's loops. */
static char *tie_query(maker *m) {
  static const char *const directions[] = {"", "", " DESC"};
  const relation *t[3];
  char *from = "", *list = "", *terms = "";
  int n = 2 + rng_below(m->r, 2), n_list = 1 + rng_below(m->r, 2), n_terms = 1 + rng_below(m->r, 2);
  for (int i = 0; i < n; i++) {
    t[i] = &m->s->rel[rng_below(m->r, m->s->n_tables)];
    const char *mine = t[i]->col[rng_below(m->r, t[i]->n_cols)].name;
    int before = i ? rng_below(m->r, i) : 0;
    const char *its = t[before]->col[rng_below(m->r, t[before]->n_cols)].name;
    if (i)
      from = SAY(m, "%s%s JOIN %s x%d ON x%d.%s=x%d.%s", from,
                 rng_chance(m->r, 25)   ? " LEFT"
                 : rng_chance(m->r, 20) ? " CROSS"
                                        : "",
                 t[i]->name, i, i, mine, before, its);
    else
      from = SAY(m, "%s x0", t[0]->name);
  }
  for (int i = 0; i < n_list; i++) {
    int k = rng_below(m->r, n);
    list =
        SAY(m, "%s%sx%d.%s", list, i ? ", " : "", k, t[k]->col[rng_below(m->r, t[k]->n_cols)].name);
  }
  bool grouped = rng_chance(m->r, 20), distinct = rng_chance(m->r, 40);
  for (int i = 0; i < n_terms; i++) {
    int k = rng_below(m->r, n);
    const char *column = t[k]->col[rng_below(m->r, t[k]->n_cols)].name;
    terms = SAY(m, grouped ? "%s%smax(x%d.%s)%s" : "%s%sx%d.%s%s", terms, i ? ", " : "", k, column,
                PICK(m->r, directions));
  }
  return SAY(m, "SELECT %s%s%s FROM %s%s%s ORDER BY %s LIMIT %d OFFSET %d",
             distinct ? "DISTINCT " : "", list, grouped ? ", count(*)" : "", from,
             grouped ? " GROUP BY " : "", grouped ? list : "", terms, 1 + rng_below(m->r, 9),
             rng_below(m->r, 4));
}

#endif
