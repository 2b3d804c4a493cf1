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

#endif
