/*
** Random expressions and conditions over several sources for joinfuzz.c. Subqueries in them come
** from joinfuzz_query.h.
**
** Invariants:
** 1. Nothing here fails while it runs (no abs(), no sum of large integers, no JSON): whether a
**    row is looked at before another condition drops it is the planner's to say.
** 2. val.holds is what column.holds is; a pattern that cannot tell says V_MANY.
** 3. The argument of an aggregate names columns of its own FROM only: otherwise the aggregate
**    would belong to the query around it.
*/
#ifndef TEST_JOINFUZZ_EXPR_H
#define TEST_JOINFUZZ_EXPR_H

#include "joinfuzz_schema.h"

enum { MAX_SOURCES = 6, MAX_OWNED = 4000, MAX_SUBS = 40, MAX_MERGED = 8, MAX_BINDS = 3 };

typedef struct source {
  char alias[16];
  const relation *rel;
  bool hidden; /* in parentheses: no rowid */
} source;

/* The FROM of one SELECT, with the SELECT around it. */
typedef struct scope {
  source src[MAX_SOURCES];
  int n;
  struct { /* columns of USING and NATURAL, and how many sources have them */
    char name[16];
    int n;
  } merged[MAX_MERGED];
  int n_merged;
  bool done;     /* no more sources come: a name without its table is safe */
  double n_rows; /* about */
  bool outer_join;
  const struct scope *outer;
} scope;

typedef struct val {
  char *sql;
  unsigned holds;
  bool exact;
} val;

typedef struct maker {
  rng *r;
  const schema *s;
  char *owned[MAX_OWNED]; /* all text of the query at hand */
  int n_owned;
  int n_alias;
  relation sub[MAX_SUBS]; /* subqueries in FROM and CTEs */
  int n_subs;
  int cte[3], n_ctes; /* of those, what WITH names */
  int room_for_subqueries;
  double room;     /* how many combinations of rows SQLite may have to look at */
  bool open;       /* the answer hangs on an order that SQL leaves open */
  bool may_be_big; /* the large table may be used */
  bool no_binds;   /* views have no parameters */
} maker;

static char *keep(maker *m, char *s) {
  if (m->n_owned == MAX_OWNED) abort();
  return m->owned[m->n_owned++] = s;
}

#define SAY(m, ...) keep((m), format(__VA_ARGS__))

static void forget(maker *m) {
  while (m->n_owned > 0) sqlite3_free(m->owned[--m->n_owned]);
}

/* ---- leaves */

static int n_with(const scope *sc, int n, const char *name) {
  int found = 0;
  for (int i = 0; i < n; i++)
    for (int c = 0; c < sc->src[i].rel->n_cols; c++)
      found += !strcmp(sc->src[i].rel->col[c].name, name);
  return found;
}

/* How many of the sources USING and NATURAL have made one of, by this name. */
static int n_merged(const scope *sc, const char *name) {
  for (int i = 0; i < sc->n_merged; i++)
    if (!strcmp(sc->merged[i].name, name)) return sc->merged[i].n;
  return 0;
}

/* Only one source has it, here and further out: no table name is needed. */
static bool is_alone(const scope *sc, const char *name) {
  int n = 0;
  for (; sc; sc = sc->outer) n += n_with(sc, sc->n, name);
  return n == 1;
}

static val literal(maker *m) {
  kind k = rng_chance(m->r, 45) ? K_SMALL : (kind)rng_below(m->r, K_MIXED + 1);
  if (rng_chance(m->r, 6)) return (val){"NULL", 0, true};
  return (val){keep(m, value_of(m->r, k)),
               k == K_SMALL  ? V_INT
               : k == K_WORD ? V_TEXT
                             : V_MANY,
               k == K_SMALL};
}

static val column_of(maker *m, const scope *sc, const source *s) {
  const relation *t = s->rel;
  if (rng_chance(m->r, 6) && t->has_rowid && !s->hidden)
    return (val){SAY(m, "%s.rowid", s->alias), V_INT, false};
  const column *c = &t->col[rng_below(m->r, t->n_cols)];
  if (sc->done && rng_chance(m->r, 50) && n_merged(sc, c->name) > 0 &&
      n_merged(sc, c->name) == n_with(sc, sc->n, c->name))
    return (val){SAY(m, "%s", c->name), V_MANY | V_COLLATED, false};
  if (sc->done && rng_chance(m->r, 20) && is_alone(sc, c->name))
    return (val){SAY(m, "%s", c->name), c->holds, c->exact};
  return (val){SAY(m, "%s.%s", s->alias, c->name), c->holds, c->exact};
}

/* A column, of the SELECTs around now and then. */
static val any_column(maker *m, const scope *sc) {
  while (sc && (sc->n == 0 || (sc->outer && rng_chance(m->r, 25)))) {
    if (!sc->outer && sc->n == 0) return literal(m);
    sc = sc->outer;
  }
  if (!sc) return literal(m);
  return column_of(m, sc, &sc->src[rng_below(m->r, sc->n)]);
}

static val leaf(maker *m, const scope *sc) {
  int k = rng_below(m->r, 100);
  if (k < 77) return any_column(m, sc);
  if (k < 80 && !m->no_binds)
    return (val){SAY(m, "?%d", 1 + rng_below(m->r, MAX_BINDS)), V_MANY, false};
  return literal(m);
}

/* The unique column of a source, or NULL. */
static const char *key_of(const source *s) {
  return s->rel->key[0] && (s->rel->key[0] == 'k' || !s->hidden) ? s->rel->key : NULL;
}

/* ---- patterns: '#' an expression, '@' a leaf, '$' a column, '{' a pattern for LIKE, '^' a
 * condition */

static val expr(maker *m, const scope *sc, int depth);
static char *condition(maker *m, const scope *sc, int depth);
static val scalar_subquery(maker *m, const scope *sc, int depth);
static char *subquery_test(maker *m, const scope *sc, int depth);

static const char *const like_patterns[] = {"'a%'", "'%b%'", "'%'", "''", "'A_c'", "'1%'", "'_'"};

static char *grow(maker *m, const scope *sc, const char *pattern, int depth) {
  char *s = "";
  const char *p = pattern;
  while (*p) {
    size_t n = strcspn(p, "#@${^");
    char c = p[n];
    const char *part = c == '#'   ? expr(m, sc, depth).sql
                       : c == '@' ? leaf(m, sc).sql
                       : c == '$' ? any_column(m, sc).sql
                       : c == '{' ? PICK(m->r, like_patterns)
                       : c == '^' ? condition(m, sc, depth)
                                  : "";
    s = SAY(m, "%s%.*s%s", s, (int)n, p, part);
    p += n + (c ? 1 : 0);
  }
  return s;
}

static val expr(maker *m, const scope *sc, int depth) {
  static const struct {
    const char *pattern;
    unsigned holds;
  } shapes[] = {{"(#+#)", V_MANY},
                {"(# - #)", V_MANY},
                {"(#*#)", V_MANY},
                {"(#/#)", V_MANY},
                {"(#%@)", V_MANY},
                {"(#||#)", V_TEXT},
                {"(- #)", V_MANY},
                {"(+@)", V_MANY | V_COLLATED},
                {"(#=#)", V_INT},
                {"(#<#)", V_INT},
                {"(# IS @)", V_INT},
                {"(@ IS NULL)", V_INT},
                {"(^)", V_INT},
                {"(NOT ^)", V_INT},
                {"typeof(#)", V_TEXT},
                {"length(#)", V_INT},
                {"upper(@)", V_TEXT},
                {"substr(@,1,2)", V_MANY},
                {"CAST(# AS INTEGER)", V_INT},
                {"CAST(@ AS TEXT)", V_MANY | V_COLLATED},
                {"CAST(@ AS REAL)", V_REAL},
                {"coalesce(#,#)", V_MANY},
                {"ifnull(@,@)", V_MANY},
                {"nullif(@,@)", V_MANY},
                {"iif(^,#,@)", V_MANY},
                {"CASE WHEN ^ THEN # WHEN ^ THEN # ELSE @ END", V_MANY},
                {"CASE @ WHEN @ THEN # ELSE @ END", V_MANY},
                {"CASE WHEN ^ THEN @ END", V_MANY},
                {"max(@,@)", V_MANY},
                {"min(@,@,1)", V_MANY},
                {"(@ COLLATE NOCASE)", V_MANY},
                {"((@,#) IN ((@,@),(@,@)))", V_INT},
                {"(# IS TRUE COLLATE NOCASE)", V_INT},
                {"(@ LIKE x'2561' ESCAPE NULL)", V_INT},
                {"hex(CAST(@ AS BLOB))", V_TEXT},
                {"length(CAST(@ AS BLOB))", V_INT},
                {"json_array(typeof(#),CAST(@ AS TEXT))", V_TEXT},
                {"json_object('k',(SELECT json_array(length(@))))", V_TEXT},
                {"json_array(ifnull(CAST(@ AS TEXT),json_array(1)))", V_TEXT},
                {"(@ IN (@,@,@))", V_INT},
                {"(@ IN (1,2,@,3,'a',@))", V_INT},
                {"(# NOT IN (0,1,2,3,4,5,6,7,8,9,@,'b',@))", V_INT}};
  if (depth <= 0 || rng_chance(m->r, 35)) return leaf(m, sc);
  if (rng_chance(m->r, 10) && m->room_for_subqueries > 0) return scalar_subquery(m, sc, depth - 1);
  int i = rng_below(m->r, (int)(sizeof shapes / sizeof shapes[0]));
  char *sql = grow(m, sc, shapes[i].pattern, depth - 1);
  /* an explicit collation inside reaches out of most operators */
  return (val){sql, shapes[i].holds | (strstr(sql, "COLLATE") ? V_COLLATED : 0u), false};
}

static char *condition(maker *m, const scope *sc, int depth) {
  static const char *const plain[] = {"$=@",
                                      "$<@",
                                      "$<=@",
                                      "$>@",
                                      "$>=@",
                                      "$<>@",
                                      "$ IS @",
                                      "$ IS NOT @",
                                      "$ IS NULL",
                                      "$ IS NOT NULL",
                                      "$ NOTNULL",
                                      "$ BETWEEN @ AND @",
                                      "$ NOT BETWEEN @ AND @",
                                      "$ LIKE {",
                                      "$ NOT LIKE {",
                                      "$ IN (@,@,@)",
                                      "$ NOT IN (@,1)",
                                      "$ IN (1,2,3,'a','b',@,@)",
                                      "$ COLLATE NOCASE=@",
                                      "$=@ COLLATE RTRIM",
                                      "$ IS TRUE",
                                      "$ IS TRUE COLLATE NOCASE",
                                      "$ IS NOT FALSE COLLATE RTRIM",
                                      "($,@) IN ((@,@),(@,@))",
                                      "($,@) BETWEEN (@,@) AND (@,@)",
                                      "$ LIKE @ ESCAPE NULL",
                                      "$ NOT LIKE x'61' ESCAPE NULL",
                                      "($,@)=(@,@)",
                                      "($,@)<(@,@)",
                                      "$"};
  static const char *const deep[] = {
      "(^ AND ^)", "(^ OR ^)",      "(^ OR @ IS NULL)", "NOT (^)",    "#=#",
      "#<#",       "# IS NOT NULL", "(^) IS NOT TRUE",  "# IN (#,@)", "# BETWEEN @ AND #"};
  if (depth > 0 && m->room_for_subqueries > 0 && rng_chance(m->r, 18))
    return subquery_test(m, sc, depth - 1);
  if (depth > 0 && rng_chance(m->r, 40)) return grow(m, sc, PICK(m->r, deep), depth - 1);
  return grow(m, sc, PICK(m->r, plain), 0);
}

/* A value that can be told apart only by its bits, if need be that of a column's type. */
static val plain_value(maker *m, const scope *sc, int depth) {
  for (int i = 0; i < 6; i++) {
    val v = rng_chance(m->r, 80) ? any_column(m, sc) : expr(m, sc, depth);
    if (one_face(v.holds) && v.sql[0] != '?') return v;
  }
  static const char *const shapes[] = {"typeof(@)", "length(@)", "(@ IS NULL)", "(@=@)"};
  int i = rng_below(m->r, 4);
  return (val){grow(m, sc, shapes[i], 0), i ? V_INT : V_TEXT, false};
}

/* ---- aggregates whose value is the same in any order; `one` keeps to values of one face */

static val aggregate(maker *m, const scope *around, int depth, bool one) {
  if (rng_chance(m->r, 4)) { /* from 4 entries on a list of constants is a set */
    const char *in = rng_chance(m->r, 70) ? "IN" : "NOT IN";
    val x = aggregate(m, around, depth, one), y = aggregate(m, around, depth, one);
    return (val){SAY(m, "(%s %s (0,1,2,%s,'a'))", x.sql, in, y.sql), V_INT, false};
  }
  scope inner = *around, *sc = &inner;
  inner.outer = NULL;
  int k = rng_below(m->r, 100);
  const char *filter = "";
  if (rng_chance(m->r, 10)) filter = SAY(m, " FILTER (WHERE %s)", condition(m, sc, 0));
  if (k < 18 || sc->n == 0) return (val){SAY(m, "count(*)%s", filter), V_INT, false};
  if (k < 28) return (val){SAY(m, "count(%s)%s", any_column(m, sc).sql, filter), V_INT, false};
  if (k < 40)
    return (val){SAY(m, "count(DISTINCT %s)%s", any_column(m, sc).sql, filter), V_INT, false};
  if (k < 65) {
    val v = one ? plain_value(m, sc, 0) : any_column(m, sc);
    const char *shape = rng_chance(m->r, 50) ? "min(%s)%s" : "max(%s)%s";
    return (val){keep(m, format(shape, v.sql, filter)), v.holds, false};
  }
  if (k < 90) {
    for (int i = 0; i < 8; i++) {
      static const char *const sums[] = {"sum(%s)%s", "sum(%s)%s", "total(%s)%s", "avg(%s)%s",
                                         "sum(DISTINCT %s)%s"};
      val v = any_column(m, sc);
      if (!v.exact) continue;
      int s = rng_below(m->r, 5);
      return (val){keep(m, format(sums[s], v.sql, filter)), V_MANY, false};
    }
  }
  static const char *const shapes[] = {"sum(CASE WHEN ^ THEN 1 ELSE 0 END)",
                                       "sum(length(@))",
                                       "count(#)",
                                       "count(nullif(@,@))",
                                       "sum(@ IS NULL)",
                                       "max(length(@))"};
  return (val){SAY(m, "%s%s", grow(m, sc, PICK(m->r, shapes), depth), filter), V_INT, false};
}

#endif
