/*
** Random SELECTs over several tables for joinfuzz.c: cores, compounds, subqueries, CTEs, views.
**
** Invariants:
** 1. Inside a query every answer is one that SQL fixes: what DISTINCT, GROUP BY, UNION, min and
**    max see has one face, LIMIT stands behind an order that is total by a unique key. The few
**    subqueries that are otherwise set maker.open.
** 2. A sum that may depend on the order of addition is a result column of the whole query, with
**    a query of its own that says how large its parts are (out.slack).
** 3. query.key lists the terms of ORDER BY that can be seen in the result, as far as they go
**    before one that cannot.
*/
#ifndef TEST_JOINFUZZ_QUERY_H
#define TEST_JOINFUZZ_QUERY_H

#include "joinfuzz_cut.h"
#include "joinfuzz_from.h"
#include "joinfuzz_reduce.h"

enum { MAX_OUT = 8 };

typedef struct out {
  char *sql;
  char alias[16];
  unsigned holds;
  bool exact;
  bool bag;    /* group_concat: its parts in any order */
  char *slack; /* SELECT of the sum of |x| and the number of x */
} out;

typedef struct select_core {
  char *sql;
  out out[MAX_OUT];
  int n_out;
  bool star, distinct, grouped;
  double n_rows;
  char *total; /* terms of a total order, or NULL */
} select_core;

typedef struct core_options {
  int n_out; /* 0: as it comes */
  int n_sources, depth;
  bool one;   /* result columns of one face */
  bool top;   /* the result of the whole query */
  bool loose; /* may have sums that are not exact */
  bool named; /* columns get names that others have too */
  bool bare;  /* columns without affinity, so that all arms of a compound agree in it */
} core_options;

typedef struct query {
  char *sql;
  int n_out;
  bool star, open;
  bool in_order; /* rows are compared in their order, though there is no ORDER BY */
  bool bag[MAX_OUT];
  char *slack[MAX_OUT];
  struct {
    int out;
    bool fold; /* under another collation than BINARY */
  } key[MAX_OUT];
  int n_keys;
} query;

/* ---- result columns */

static void plain_out(maker *m, const scope *sc, const core_options *o, out *to) {
  val v;
  if (o->one)
    v = plain_value(m, sc, o->depth);
  else if (rng_chance(m->r, 60))
    v = any_column(m, sc);
  else
    v = expr(m, sc, 1 + rng_below(m->r, 2));
  to->sql = v.sql;
  to->holds = v.holds;
  to->exact = v.exact;
}

/* Sums of whatever there is, and texts put together: only in the last result. */
static bool loose_out(maker *m, const scope *sc, out *to, const char *tail) {
  static const char *const sums[] = {"sum(%s)", "total(%s)", "avg(%s)"};
  if (sc->n == 0) return false;
  scope inner = *sc;
  inner.outer = NULL;
  val v = any_column(m, &inner);
  to->holds = V_MANY;
  if (rng_chance(m->r, 35)) {
    to->sql = SAY(m, "group_concat(%s, char(31))", v.sql);
    to->bag = true;
  } else {
    char *x = SAY(m, "CAST(%s AS REAL)", v.sql);
    to->sql = keep(m, format(PICK(m->r, sums), x));
    to->slack =
        SAY(m, "SELECT total(CASE WHEN abs(%s)<9e999 THEN abs(%s) END), count(*)%s", x, x, tail);
  }
  return true;
}

static void grouped_out(maker *m, const scope *sc, const core_options *o, out *to, const val *key,
                        int n_keys, const char *tail) {
  static const char *const over[] = {"%s+%s", "%s||%s", "%s>%s", "coalesce(%s,%s)"};
  int k = rng_below(m->r, 100);
  val v;
  if (n_keys && k < 40) {
    v = key[rng_below(m->r, n_keys)];
  } else if (o->loose && !o->one && k < 50 && loose_out(m, sc, to, tail)) {
    return;
  } else if (n_keys && k < 56 && m->room_for_subqueries > 0 && !o->one && !strstr(key->sql, "?")) {
    const relation *t = &m->s->rel[rng_below(m->r, m->s->n_tables)];
    int a = m->n_alias++;
    if (is_big(t)) t = &m->s->rel[0];
    const char *column = t->col[rng_below(m->r, t->n_cols)].name;
    char *sql = rng_chance(m->r, 50) ? SAY(m, "(SELECT count(*) FROM %s AS x%d WHERE x%d.%s=%s)",
                                           t->name, a, a, column, key->sql)
                                     : SAY(m, "(%s IN (SELECT x%d.%s FROM %s AS x%d))", key->sql, a,
                                           column, t->name, a);
    v = (val){sql, V_INT, false};
  } else if (k < 62 && !o->one) {
    val x = aggregate(m, sc, 0, true), y = aggregate(m, sc, 0, true);
    v = (val){keep(m, format(PICK(m->r, over), x.sql, y.sql)), V_MANY, false};
  } else {
    v = aggregate(m, sc, o->depth, o->one || !o->top);
    for (int i = 0; o->one && !one_face(v.holds); i++)
      v = i < 5 ? aggregate(m, sc, 0, true) : (val){"count(*)", V_INT, false};
  }
  to->sql = v.sql;
  to->holds = v.holds;
  to->exact = v.exact;
}

/* A column of a row that is there once or not at all, beside aggregates: of no row it is NULL. */
static bool row_out(maker *m, const scope *sc, out *to) {
  for (int i = 0; i < sc->n && !sc->outer_join; i++) {
    const source *s = &sc->src[i];
    if (!s->rel->one_row) continue;
    to->sql = SAY(m, "%s.%s", s->alias, s->rel->col[rng_below(m->r, s->rel->n_cols)].name);
    to->holds = V_MANY;
    return true;
  }
  return false;
}

/* ---- one SELECT without ORDER BY and LIMIT */

/* of: the source that it depends on; NULL: any. */
static val group_key(maker *m, const scope *sc, const source *of, bool one) {
  static const struct {
    const char *pattern;
    unsigned holds;
  } shapes[] = {{"length(@)", V_INT},
                {"typeof(@)", V_TEXT},
                {"(@ IS NULL)", V_INT},
                {"(@+1)", V_MANY},
                {"coalesce(@,@)", V_MANY},
                {"(@||'')", V_TEXT},
                {"substr(@,1,1)", V_MANY},
                {"(CAST(@ AS TEXT)||'x')", V_TEXT},
                {"substr(CAST(@ AS TEXT),1,7)", V_TEXT}};
  scope inner = *sc;
  inner.outer = NULL;
  if (of) {
    inner.src[0] = *of;
    inner.n = 1;
    inner.done = false; /* a name alone may be one of another source, too */
  }
  for (int i = 0; i < 8; i++) {
    val v = column_of(m, &inner, &inner.src[rng_below(m->r, inner.n)]);
    if (rng_chance(m->r, 25)) {
      int k = rng_below(m->r, 9);
      v = (val){grow(m, &inner, shapes[k].pattern, 0), shapes[k].holds, false};
    }
    if (!one || one_face(v.holds)) return v;
  }
  return (val){grow(m, &inner, "typeof(@)", 0), V_TEXT, false};
}

static char *having(maker *m, const scope *sc, const val *key, int n_keys) {
  int k = rng_below(m->r, 100);
  val a = aggregate(m, sc, 0, true);
  if (k < 30) return SAY(m, "%s>%d", a.sql, rng_below(m->r, 3));
  if (k < 45) return SAY(m, "%s IS NOT NULL", a.sql);
  if (k < 60) return SAY(m, "count(*)>%d", rng_below(m->r, 3));
  if (k < 75 && n_keys) return SAY(m, "%s IS NOT NULL", key[0].sql);
  scope none = {.n_rows = sc->n_rows, .outer = sc->outer};
  if (k < 88 && m->room_for_subqueries > 0)
    return SAY(m, "%s>=%s", a.sql, scalar_subquery(m, &none, 0).sql);
  return SAY(m, "%s<=%s", a.sql, aggregate(m, sc, 0, true).sql);
}

/* A column of a view or a subquery, compared with a number as text: whether they are equal is by
** the column's affinity alone. NULL: there is none. */
static char *affinity_test(maker *m, const scope *sc) {
  static const char *const patterns[] = {"%s='%d'",
                                         "%s>'%d'",
                                         "%s IN ('%d')",
                                         "%s IN ('%d',7)",
                                         "%s IS '%d'",
                                         "'%d'=%s",
                                         "%s IN ('%d','1','2','3','4')"};
  for (int i = 0; i < sc->n; i++) {
    if (sc->src[i].rel->is_table || !sc->src[i].rel->n_cols) continue;
    const char *pattern = PICK(m->r, patterns);
    val x = column_of(m, sc, &sc->src[i]);
    int n = rng_below(m->r, 5);
    if (pattern[0] == '\'') return SAY(m, pattern, n, x.sql);
    return SAY(m, pattern, x.sql, n);
  }
  return NULL;
}

static void make_core(maker *m, const scope *outer, const core_options *o, select_core *to) {
  scope sc = {.outer = outer};
  int k = rng_below(m->r, 100), n_keys = 0;
  val key[3];
  memset(to, 0, sizeof *to);
  if (m->s->utf16 && rng_chance(m->r, 40)) k = 0;
  bool no_from = k < 3, whole = k >= 3 && k < 16, grouped = k >= 16 && k < 36;
  char *from = no_from ? "" : SAY(m, " FROM %s", from_clause(m, &sc, o->n_sources, o->depth));
  if (no_from) sc.n_rows = 1;
  char *test = rng_chance(m->r, 30) ? affinity_test(m, &sc) : NULL;
  if (test) from = SAY(m, "%s WHERE %s", from, test);
  if (rng_chance(m->r, no_from ? 10 : 38))
    from = SAY(m, "%s %s %s", from, test ? "AND" : "WHERE", condition(m, &sc, o->depth));
  to->grouped = grouped;
  to->distinct = !whole && !grouped && rng_chance(m->r, 14);
  core_options oo = *o;
  if (to->distinct && (!o->top || rng_chance(m->r, 65))) oo.one = true;
  if (grouped) {
    bool one = !o->top || o->one || rng_chance(m->r, 65);
    bool by_table = rng_chance(m->r, 15) && key_of(&sc.src[0]);
    n_keys = 1 + rng_below(m->r, 3);
    const source *of = rng_chance(m->r, 40) ? &sc.src[rng_below(m->r, sc.n)] : NULL;
    for (int i = 0; i < n_keys; i++) key[i] = group_key(m, &sc, of, one);
    if (by_table)
      key[0] = (val){SAY(m, "%s.%s", sc.src[0].alias, sc.src[0].rel->key), V_INT, false};
  }
  to->star =
      o->top && !o->n_out && !whole && !grouped && !no_from && !oo.one && rng_chance(m->r, 9);
  to->n_out = to->star ? 0 : o->n_out ? o->n_out : 1 + rng_below(m->r, 4);
  char *list = "";
  for (int i = 0; i < to->n_out; i++) {
    out *x = &to->out[i];
    bool row = whole && !oo.one && rng_chance(m->r, 30) && row_out(m, &sc, x);
    if (row) {
      /* it is */
    } else if (whole || grouped)
      grouped_out(m, &sc, &oo, x, key, n_keys, from);
    else
      plain_out(m, &sc, &oo, x);
    if (o->named)
      snprintf(x->alias, sizeof x->alias, "%c", 'a' + (m->n_alias + i) % 6);
    else if (o->top && rng_chance(m->r, 45))
      snprintf(x->alias, sizeof x->alias, "o%d", i + 1);
    if (o->bare) x->sql = SAY(m, "+%s", x->sql);
    list = SAY(m, "%s%s%s%s%s", list, i ? ", " : "", x->sql, x->alias[0] ? " AS " : "", x->alias);
  }
  if (to->star) {
    bool one = rng_chance(m->r, 40);
    list = one ? SAY(m, "%s.*", sc.src[rng_below(m->r, sc.n)].alias) : "*";
  }
  to->sql = SAY(m, "SELECT %s%s%s", to->distinct ? "DISTINCT " : "", list, from);
  char *keys = "";
  for (int i = 0; i < n_keys; i++) keys = SAY(m, "%s%s%s", keys, i ? ", " : "", key[i].sql);
  if (grouped) to->sql = SAY(m, "%s GROUP BY %s", to->sql, keys);
  if ((grouped || whole) && rng_chance(m->r, grouped ? 25 : 5))
    to->sql = SAY(m, "%s HAVING %s", to->sql, having(m, &sc, key, n_keys));
  to->n_rows = whole || no_from ? 1 : grouped ? sc.n_rows / 3 + 1 : sc.n_rows;
  if (grouped) to->total = keys;
  if (!grouped && !whole && !to->distinct && sc.n) {
    to->total = "";
    for (int i = 0; i < sc.n && to->total; i++)
      to->total = key_of(&sc.src[i]) ? SAY(m, "%s%s%s.%s", to->total, i ? ", " : "",
                                           sc.src[i].alias, sc.src[i].rel->key)
                                     : NULL;
  }
}

/* ---- several of them */

static char *values_core(maker *m, int n_out) {
  char *s = "VALUES ";
  int n = 1 + rng_below(m->r, 3);
  for (int i = 0; i < n; i++)
    for (int c = 0; c < n_out; c++)
      s = SAY(m, "%s%s%s%s", s,
              c   ? ","
              : i ? ",("
                  : "(",
              rng_chance(m->r, 60) ? keep(m, value_of(m->r, K_SMALL)) : PICK(m->r, join_words),
              c + 1 < n_out ? "" : ")");
  return s;
}

/* A compound of 2 to 4 arms in the place of a core; what it says of the columns is of all arms. */
static void make_compound(maker *m, const scope *outer, core_options o, select_core *to) {
  static const char *const ops[] = {" UNION ", " UNION ALL ", " UNION ALL ", " INTERSECT ",
                                    " EXCEPT "};
  int n = 2 + (rng_chance(m->r, 40) ? 1 + rng_below(m->r, 2) : 0);
  bool all = rng_chance(m->r, 25);
  if (!o.n_out) o.n_out = 1 + rng_below(m->r, 3);
  o.loose = false;
  o.bare = !o.top && rng_chance(m->r, 35);
  if (!o.top || rng_chance(m->r, 65)) o.one = true;
  o.n_sources = o.n_sources < 2 ? o.n_sources : 2;
  make_core(m, outer, &o, to);
  o.named = false;
  for (int i = 1; i < n; i++) {
    select_core arm = {0};
    if (i + 1 < n && rng_chance(m->r, 15)) /* ORDER BY may not follow it */
      arm.sql = values_core(m, o.n_out);
    else
      make_core(m, outer, &o, &arm);
    to->sql = SAY(m, "%s%s%s", to->sql, all ? " UNION ALL " : PICK(m->r, ops), arm.sql);
    to->n_rows += arm.n_rows;
    for (int c = 0; c < to->n_out; c++) {
      to->out[c].holds |= arm.n_out ? arm.out[c].holds : (unsigned)V_INT | V_TEXT;
      to->out[c].exact = false;
    }
  }
  to->total = NULL;
  to->distinct = to->grouped = false;
}

/* A SELECT inside another: now and then a compound, or cut by LIMIT behind a total order. */
static void inner_select(maker *m, const scope *outer, core_options o, select_core *to) {
  o.top = false;
  if (rng_chance(m->r, 18))
    make_compound(m, outer, o, to);
  else
    make_core(m, outer, &o, to);
  if (to->total && to->total[0] && rng_chance(m->r, 15)) {
    const char *n = cut_text(m, 0, 6);
    to->sql = SAY(m, "%s ORDER BY %s%s LIMIT %s", to->sql, to->total,
                  rng_chance(m->r, 30) ? " DESC" : "", n);
    if (rng_chance(m->r, 25)) to->sql = SAY(m, "%s OFFSET %s", to->sql, cut_text(m, 0, 3));
    if (!n[1] && atoi(n) < to->n_rows) to->n_rows = atoi(n);
  }
}

static void fill_relation(relation *t, const select_core *s) {
  t->n_cols = s->n_out;
  t->n_rows = s->n_rows > 1 ? s->n_rows : 1;
  for (int c = 0; c < s->n_out; c++) {
    snprintf(t->col[c].name, sizeof t->col[c].name, "%s", s->out[c].alias);
    t->col[c].holds = s->out[c].holds;
    t->col[c].exact = s->out[c].exact;
  }
}

static relation *derived_table(maker *m, char **sql, int depth) {
  relation *t = &m->sub[m->n_subs++];
  select_core s;
  double room = m->room;
  memset(t, 0, sizeof *t);
  m->room = room < 2000 ? room : 2000;
  m->n_alias++;
  inner_select(m, NULL, (core_options){.n_sources = 2, .depth = depth, .named = true}, &s);
  m->room = room;
  fill_relation(t, &s);
  *sql = SAY(m, "(%s)", s.sql);
  return t;
}

/* ---- subqueries in expressions */

/* Fewer combinations are left to what runs once for each row of sc. */
static double narrow(maker *m, const scope *sc) {
  double room = m->room, each = sc && sc->n_rows > 1 ? sc->n_rows : 1;
  m->room_for_subqueries--;
  m->room = room / each < 6 ? 6 : room / each;
  return room;
}

static const relation *keyed_table(maker *m) {
  const relation *t = &m->s->rel[0];
  for (int i = 0; i < 6; i++) {
    t = &m->s->rel[rng_below(m->r, m->s->n_tables)];
    if (t->n_rows <= m->room) return t;
  }
  return is_big(t) ? &m->s->rel[0] : t;
}

static val scalar_subquery(maker *m, const scope *sc, int depth) {
  double room = narrow(m, sc);
  scope inner = {.outer = rng_chance(m->r, 70) ? sc : NULL};
  int k = rng_below(m->r, 100);
  val v = {NULL, V_MANY, false};
  bool big = m->may_be_big;
  m->may_be_big = false;
  if (k < 50) {
    char *from = from_clause(m, &inner, rng_chance(m->r, 70) ? 1 : 2, depth);
    if (rng_chance(m->r, 80)) from = SAY(m, "%s WHERE %s", from, condition(m, &inner, depth));
    val a = aggregate(m, &inner, 0, true);
    v = (val){SAY(m, "(SELECT %s FROM %s)", a.sql, from), a.holds, false};
  } else if (k < 90) {
    const relation *t = keyed_table(m);
    char *from = add_source(m, &inner, t, SAY(m, "%s", t->name));
    inner.n_rows = t->n_rows;
    inner.done = true;
    val x = rng_chance(m->r, 70) ? column_of(m, &inner, &inner.src[0]) : expr(m, &inner, 1);
    const char *a = inner.src[0].alias;
    if (k < 62) {
      v.sql = SAY(m, "(SELECT %s FROM %s WHERE %s.%s=%s)", x.sql, from, a, t->key, leaf(m, sc).sql);
    } else if (k < 87) {
      char *where = rng_chance(m->r, 80) ? condition(m, &inner, depth) : "1";
      v.sql = SAY(
          m, "(SELECT %s FROM %s WHERE %s ORDER BY %s%s.%s%s LIMIT 1%s)", x.sql, from, where,
          rng_chance(m->r, 50) ? SAY(m, "%s DESC, ", column_of(m, &inner, &inner.src[0]).sql) : "",
          a, t->key, rng_chance(m->r, 40) ? " DESC" : "", rng_chance(m->r, 15) ? " OFFSET 1" : "");
    } else {
      v.sql = SAY(m, "(SELECT %s FROM %s WHERE %s)", x.sql, from, condition(m, &inner, 0));
      m->open = true;
    }
    v.holds = x.holds;
  } else {
    v.sql = SAY(m, "(SELECT %s)", expr(m, sc, 1).sql);
  }
  m->may_be_big = big;
  m->room = room;
  return v;
}

static char *exists(maker *m, const scope *sc, int depth) {
  scope inner = {.outer = rng_chance(m->r, 90) ? sc : NULL};
  char *from = from_clause(m, &inner, rng_chance(m->r, 80) ? 1 : 2, depth);
  char *where = "1";
  if (inner.outer && inner.outer->n && rng_chance(m->r, 65)) {
    val x = column_of(m, &inner, &inner.src[0]);
    val y = column_of(m, sc, &sc->src[rng_below(m->r, sc->n)]);
    where = SAY(m, rng_chance(m->r, 80) ? "%s=%s" : "%s<%s", x.sql, y.sql);
    if (rng_chance(m->r, 40)) where = SAY(m, "%s AND %s", where, condition(m, &inner, depth));
  } else if (rng_chance(m->r, 90)) {
    where = condition(m, &inner, depth);
  }
  static const char *const lists[] = {"1", "*", "NULL", "1"};
  return SAY(m, "%sEXISTS (SELECT %s FROM %s WHERE %s)", rng_chance(m->r, 45) ? "NOT " : "",
             PICK(m->r, lists), from, where);
}

static char *subquery_test(maker *m, const scope *sc, int depth) {
  static const char *const compare[] = {"%s=%s", "%s<%s", "%s>=%s", "%s IS %s", "%s<>%s"};
  double room = narrow(m, sc);
  int k = rng_below(m->r, 100);
  char *sql;
  bool big = m->may_be_big;
  m->may_be_big = false;
  if (k < 40) {
    sql = exists(m, sc, depth);
  } else if (k < 82) {
    select_core s;
    bool pair = k >= 72;
    const scope *outer = rng_chance(m->r, 45) ? sc : NULL;
    if (!outer) m->room = room < 2000 ? room : 2000;
    inner_select(m, outer,
                 (core_options){.n_out = pair ? 2 : 1,
                                .n_sources = rng_chance(m->r, 75) ? 1 : 2,
                                .depth = depth},
                 &s);
    const char *no = rng_chance(m->r, 45) ? "NOT " : "";
    if (pair)
      sql = SAY(m, "(%s,%s) %sIN (%s)", leaf(m, sc).sql, leaf(m, sc).sql, no, s.sql);
    else
      sql = SAY(m, "%s %sIN (%s)", leaf(m, sc).sql, no, s.sql);
  } else {
    m->room = room;
    m->room_for_subqueries++;
    val v = scalar_subquery(m, sc, depth);
    sql = keep(m, format(PICK(m->r, compare), leaf(m, sc).sql, v.sql));
  }
  m->may_be_big = big;
  m->room = room;
  return sql;
}

/* ---- the whole query */

static char *with_clause(maker *m) {
  char *s = "";
  int n = 1 + rng_below(m->r, 2);
  for (int i = 0; i < n; i++) {
    static const char *const how[] = {"", "", " MATERIALIZED", " NOT MATERIALIZED"};
    relation *t = &m->sub[m->n_subs];
    char *sql, *cols = "";
    int at = m->n_subs;
    t = derived_table(m, &sql, 1);
    snprintf(t->name, sizeof t->name, "w%d", i);
    if (rng_chance(m->r, 35)) {
      for (int c = 0; c < t->n_cols; c++) {
        snprintf(t->col[c].name, sizeof t->col[c].name, "%c", 'a' + (c + i) % 6);
        cols = SAY(m, "%s%s%s", cols, c ? "," : "", t->col[c].name);
      }
      cols = SAY(m, "(%s)", cols);
    }
    s = SAY(m, "%s%s%s%s AS%s %s", s, i ? ", " : "WITH ", t->name, cols, PICK(m->r, how), sql);
    m->cte[m->n_ctes++] = at;
  }
  return SAY(m, "%s ", s);
}

static const char *const directions[] = {
    "", "", "", " ASC", " DESC", " DESC", " NULLS LAST", " DESC NULLS FIRST"};

/* All result columns that are exact, by number, in some order. True if those are all. */
static bool order_by_all(maker *m, query *q, const select_core *s) {
  int n = s->n_out, at = rng_below(m->r, n), n_done = 0;
  char *terms = "";
  for (int i = 0; i < n; i++) {
    const out *x = &s->out[(at + i) % n];
    if (x->slack || x->bag) continue;
    terms =
        SAY(m, "%s%s%d%s", terms, n_done++ ? ", " : "", (at + i) % n + 1, PICK(m->r, directions));
    q->key[q->n_keys].out = (at + i) % n;
    q->key[q->n_keys++].fold = (x->holds & V_COLLATED) != 0;
  }
  if (n_done) q->sql = SAY(m, "%s ORDER BY %s", q->sql, terms);
  return n_done == n;
}

static void order_by_some(maker *m, query *q, const select_core *s, bool compound) {
  int n = 1 + rng_below(m->r, 2);
  bool seen = true;
  char *terms = "";
  for (int i = 0; i < n; i++) {
    int k = rng_below(m->r, s->n_out);
    const out *x = &s->out[k];
    if (x->slack || x->bag) {
      q->n_keys = 0; /* no ORDER BY after all */
      return;
    }
    bool fold = (x->holds & V_COLLATED) != 0;
    char *term = SAY(m, "%d", k + 1);
    if (x->alias[0] && rng_chance(m->r, 50))
      term = SAY(m, "%s", x->alias);
    else if (!compound && (strchr(x->sql, '.') || x->sql[0] == '(') &&
             !strchr("0123456789-.'?", x->sql[0]) && rng_chance(m->r, 50))
      term = x->sql;
    if (!compound && !s->distinct && !s->grouped && s->total && s->total[0] &&
        rng_chance(m->r, 8)) {
      term = SAY(m, "typeof(%.*s)", (int)strcspn(s->total, ","), s->total);
      seen = false;
    } else if (rng_chance(m->r, 8)) {
      term = SAY(m, "%s COLLATE NOCASE", term);
      fold = true;
    }
    terms = SAY(m, "%s%s%s%s", terms, i ? ", " : "", term, PICK(m->r, directions));
    if (!seen) continue;
    q->key[q->n_keys].out = k;
    q->key[q->n_keys++].fold = fold;
  }
  q->sql = SAY(m, "%s ORDER BY %s", q->sql, terms);
}

/* Wrong on purpose: both sides must say the same about it. */
static char *spoil(maker *m, char *sql) {
  static const char *const wrong[] = {
      "SELECT * FROM (%s) AS z WHERE nosuch=1",
      "SELECT z.nosuch FROM (%s) AS z",
      "SELECT k FROM t0 AS y, t0 AS z WHERE 1 IN (%s)",
      "SELECT count(*) FROM (%s) AS z WHERE count(*)>1",
      "%s UNION SELECT 1,2,3,4,5,6,7,8,9",
      "SELECT 1 FROM t0 WHERE (1,2,3,4,5,6,7)=(%s)",
      "SELECT 1 FROM t0 WHERE 1 IN (SELECT 1,2,3 FROM (%s))",
      "SELECT * FROM (%s) AS z JOIN t0 USING (nosuch)",
      "SELECT * FROM (%s) AS z NATURAL JOIN t0 ON 1",
      "SELECT max(count(*)) FROM (%s) AS z",
      "SELECT * FROM nosuch, (%s) AS z",
      "SELECT 1 FROM (%s) AS z ORDER BY 7",
      "SELECT 1 UNION SELECT 2 FROM (%s) AS z ORDER BY nosuch",
      "SELECT z.* FROM t0 AS y, (%s) AS zz",
      "WITH w(a,b,c,d,e,f,g) AS (%s) SELECT * FROM w",
      "SELECT 1 FROM t0 AS y LEFT JOIN t1 AS z ON y.nosuch=z.nosuch, (%s)"};
  return keep(m, format(PICK(m->r, wrong), sql));
}

static void make_query(maker *m, query *q) {
  select_core s;
  core_options o = {.n_sources = 5, .depth = 1 + rng_below(m->r, 3), .top = true, .loose = true};
  memset(q, 0, sizeof *q);
  m->n_alias = m->n_subs = m->n_ctes = 0;
  m->room_for_subqueries = rng_chance(m->r, 35) ? 0 : 1 + rng_below(m->r, 4);
  m->room = rng_chance(m->r, 2) ? 1e6 : rng_chance(m->r, 25) ? 20000 : 2000;
  m->open = false;
  m->may_be_big = m->s->big >= 0 && rng_chance(m->r, 8);
  if (m->may_be_big) m->room = 2000;
  if (rng_chance(m->r, 3)) {
    q->sql = cut_query(m);
    q->open = q->in_order = true;
    return;
  }
  if (rng_chance(m->r, 6)) {
    q->sql = tie_query(m);
    q->open = true;
    return;
  }
  if (rng_chance(m->r, 5)) {
    q->sql = reduced_query(m);
    return;
  }
  char *with = rng_chance(m->r, 14) ? with_clause(m) : "";
  bool compound = rng_chance(m->r, 13);
  if (compound)
    make_compound(m, NULL, o, &s);
  else
    make_core(m, NULL, &o, &s);
  q->sql = s.sql;
  q->n_out = s.n_out;
  q->star = s.star;
  bool total = false;
  int k = rng_below(m->r, 100);
  if (!s.star && k < 20)
    total = order_by_all(m, q, &s);
  else if (!s.star && k < 45)
    order_by_some(m, q, &s, compound);
  if (rng_chance(m->r, total ? 45 : q->n_keys ? 2 : 8)) {
    q->sql = SAY(m, "%s LIMIT %s", q->sql, cut_text(m, -1, 12));
    if (rng_chance(m->r, 35)) q->sql = SAY(m, "%s OFFSET %s", q->sql, cut_text(m, -1, 6));
    if (!total) m->open = true;
  }
  q->sql = SAY(m, "%s%s", with, q->sql);
  for (int i = 0; i < q->n_out; i++) {
    q->bag[i] = s.out[i].bag;
    if (s.out[i].slack) q->slack[i] = SAY(m, "%s%s", with, s.out[i].slack);
  }
  if (rng_chance(m->r, 1)) {
    q->sql = spoil(m, q->sql);
    q->n_keys = 0;
  }
  q->open = m->open;
}

/* The text of a view of the given sort: simple, aggregate, join, compound. */
static char *make_view(maker *m, int sort, relation *t) {
  select_core s;
  m->n_alias = rng_below(m->r, 6);
  m->n_subs = m->n_ctes = 0;
  m->room_for_subqueries = sort == 2 && rng_chance(m->r, 30) ? 1 : 0;
  m->room = 1000;
  m->may_be_big = false;
  m->no_binds = true;
  core_options o = {.n_sources = sort == 2 ? 3 : 1, .depth = 1, .named = true};
  if (sort == 3) {
    make_compound(m, NULL, o, &s);
  } else {
    for (int i = 0; i < 20; i++) {
      make_core(m, NULL, &o, &s);
      if (s.grouped == (sort == 1)) break;
    }
  }
  m->no_binds = false;
  memset(t, 0, sizeof *t);
  fill_relation(t, &s);
  return s.sql;
}

#endif
