/*
** Random queries over one table for the fuzzer (fuzz.c), kept as trees so that they can be
** shrunk.
**
** Invariants:
** 1. A sum whose value may depend on the order of addition stands alone as a result column
**    (query.sum_of), so that it can be forgiven its last digits. ORDER BY, HAVING, DISTINCT
**    and expressions use only aggregates that are exact in any order.
** 2. A query in plain style keeps to what every engine takes natively since the beginning;
**    the others use all there is.
*/
#ifndef TEST_FUZZ_QUERY_H
#define TEST_FUZZ_QUERY_H

#include "fuzz_table.h"

enum { MAX_OUT = 6, MAX_TERMS = 3, MAX_KIDS = 9, MAX_BINDS = 3, MAX_NODES = 4000 };

/* An expression: text and parts by turns, lit[0] kid[0] lit[1] … */
typedef struct ex {
  int n_kids;
  char *lit[MAX_KIDS + 1];
  struct ex *kid[MAX_KIDS];
} ex;

/* What a query reads from. A column that is called one is there too where that is not the table. */
typedef enum from_kind {
  FROM_TABLE,
  FROM_SUBQUERY, /* the table's columns */
  FROM_BESIDE,   /* the table, and a row without a table */
  FROM_ROW,      /* no table, but a row */
  FROM_NOTHING   /* no FROM */
} from_kind;

typedef struct query {
  bool aggregate, distinct, star;
  from_kind from;
  ex *inner;  /* WHERE of the subquery, or NULL */
  bool empty; /* the row is not there */
  int n_out, n_groups, n_order;
  ex *out[MAX_OUT];
  ex *sum_of[MAX_OUT]; /* what is summed, where the result is an inexact sum */
  ex *where, *having;
  ex *group[MAX_TERMS];
  ex *order[MAX_TERMS];
  const char *direction[MAX_TERMS];
  char limit[80];
} query;

typedef struct maker {
  rng *r;
  const table *t;
  bool plain;
  from_kind from; /* of the query at hand */
  ex nodes[MAX_NODES];
  int n_nodes;
} maker;

/* A node from a pattern in which every '#' stands for a part. */
static ex *node_of(maker *m, const char *pattern, ex **kids) {
  ex *e = &m->nodes[m->n_nodes++ % MAX_NODES];
  for (int i = 0; i <= MAX_KIDS; i++) {
    sqlite3_free(e->lit[i]);
    e->lit[i] = NULL;
  }
  e->n_kids = 0;
  for (const char *p = pattern;; p++) {
    const char *hash = strchr(p, '#');
    int n = hash ? (int)(hash - p) : (int)strlen(p);
    e->lit[e->n_kids] = format("%.*s", n, p);
    if (!hash) return e;
    e->kid[e->n_kids] = kids[e->n_kids];
    e->n_kids++;
    p = hash;
  }
}

static ex *text_node(maker *m, char *s) {
  ex *e = node_of(m, "", NULL);
  sqlite3_free(e->lit[0]);
  e->lit[0] = s;
  return e;
}

static char *render(const ex *e) {
  char *s = format("%s", e->lit[0]);
  for (int i = 0; i < e->n_kids; i++) {
    char *k = render(e->kid[i]), *next = format("%s%s%s", s, k, e->lit[i + 1]);
    sqlite3_free(k);
    sqlite3_free(s);
    s = next;
  }
  return s;
}

static ex *column(maker *m) {
  if (m->from == FROM_NOTHING) return text_node(m, value(m->r, F_MIXED));
  if (m->from == FROM_ROW || (m->from && rng_chance(m->r, 15))) return text_node(m, format("one"));
  if (m->from == FROM_SUBQUERY) return text_node(m, format("c%d", rng_below(m->r, m->t->n_cols)));
  if (rng_chance(m->r, 8) && (m->t->has_rowid || m->t->has_k)) {
    bool k = m->t->has_k && (!m->t->has_rowid || rng_chance(m->r, 50));
    return text_node(m, format(k ? "k" : "rowid"));
  }
  return text_node(m, format("c%d", rng_below(m->r, m->t->n_cols)));
}

static ex *leaf(maker *m) {
  int k = rng_below(m->r, 100);
  if (k < 68) return column(m);
  if (k < 75) return text_node(m, format("?%d", 1 + rng_below(m->r, MAX_BINDS)));
  if (k < 76) return text_node(m, format("\"no such column\""));
  if (k < 90) return text_node(m, value(m->r, (flavour)rng_below(m->r, N_EXACT)));
  return text_node(m, value(m->r, F_MIXED));
}

static ex *expr(maker *m, int depth);
static ex *condition(maker *m);

static const char *const patterns[] = {"'%a%'", "'a%'",  "'%c'",    "'_b%'",  "'%'",    "''",
                                       "'A%'",  "'abc'", "'%b%c%'", "'row%'", "'%-1%'", "'a_c'",
                                       "'%é%'", "'___'", "'%1%'",   "'i%m%'"};
static const char *const blob_patterns[] = {"x'61'", "x'2561'", "x'25'", "x''"};
static const char *const globs[] = {"'*a*'", "'a*'", "'[a-c]*'", "'*[^b]'",
                                    "'??c'", "'*'",  "'ABC'"};
static const char *const escaped[] = {"'a\\%c'", "'%\\_%'", "'\\a%'", "'%\\\\'"};
static const char *const times[] = {"'%Y'", "'%Y-%m-%d'", "'%s'", "'%H:%M'", "'%j %w'"};

/* A node with new parts, made from left to right: '#' an expression, '@' a leaf, '{' a
** pattern for LIKE, '}' one for GLOB, '&&' one with escapes, ';' a blob for LIKE, '`' a time
** format. */
static ex *grow(maker *m, const char *pattern, int depth) {
  char shape[160];
  ex *kid[MAX_KIDS] = {0};
  int n = 0;
  snprintf(shape, sizeof shape, "%s", pattern);
  for (char *p = shape; *p; p++) {
    const char *text = *p == '{'                  ? PICK(m->r, patterns)
                       : *p == '}'                ? PICK(m->r, globs)
                       : *p == '&' && p[1] == '&' ? PICK(m->r, escaped)
                       : *p == '`'                ? PICK(m->r, times)
                       : *p == ';'                ? PICK(m->r, blob_patterns)
                                                  : NULL;
    if (*p == '#') {
      kid[n++] = expr(m, depth - rng_below(m->r, 2));
    } else if (*p == '@') {
      kid[n++] = leaf(m);
      *p = '#';
    } else if (text) {
      kid[n++] = text_node(m, format("%s", text));
      if (*p == '&') memmove(p, p + 1, strlen(p));
      *p = '#';
    }
  }
  return node_of(m, shape, kid);
}

static ex *expr(maker *m, int depth) {
  static const char *const binary[] = {"(#+#)",
                                       "(#-#)",
                                       "(#*#)",
                                       "(#/#)",
                                       "(#%#)",
                                       "(#&#)",
                                       "(#|#)",
                                       "(#<<#)",
                                       "(#>>#)",
                                       "(#=#)",
                                       "(#==#)",
                                       "(#<>#)",
                                       "(#<#)",
                                       "(#<=#)",
                                       "(#>#)",
                                       "(#>=#)",
                                       "(#!=#)",
                                       "(#||#)",
                                       "(# AND #)",
                                       "(# OR #)",
                                       "(# IS #)",
                                       "(# IS NOT #)",
                                       "(# IS DISTINCT FROM #)",
                                       "(# IS NOT DISTINCT FROM #)"};
  static const char *const unary[] = {"(-#)",        "(+#)",
                                      "(~#)",        "(NOT #)",
                                      "(# ISNULL)",  "(# NOTNULL)",
                                      "(# IS NULL)", "(# IS NOT NULL)",
                                      "(# IS TRUE)", "(# IS NOT FALSE)"};
  static const char *const truth[] = {"(# IS TRUE COLLATE NOCASE)",
                                      "(# IS NOT FALSE COLLATE RTRIM)",
                                      "(# IS (FALSE COLLATE NOCASE))",
                                      "(# IS DISTINCT FROM TRUE COLLATE BINARY)",
                                      "(# IS NOT (TRUE))",
                                      "(# IS (@ IN ()))"};
  static const char *const rows[] = {"((@,#) IN ((@,@),(@,#)))",
                                     "((#,@) NOT IN ((@,@)))",
                                     "((@,@) IN ((@,@),(@,@),(@,#)))",
                                     "((@ COLLATE NOCASE,@) IN ((@,@),(@,@)))",
                                     "((@,#) IN ((@ COLLATE NOCASE,@),(@,@)))",
                                     "((@,#) IN ((@,@),(@ COLLATE RTRIM,@)))",
                                     "((@,@) BETWEEN (@,#) AND (@,@))",
                                     "((@,#)<(@,@))",
                                     "((@,@)=(#,@))",
                                     "((@,@) IS NOT (@,@))",
                                     "((@,@)>=(# COLLATE NOCASE,@))"};
  static const char *const subqueries[] = {"(# COLLATE BINARY IN (SELECT DISTINCT @ FROM t))",
                                           "(# IN (SELECT DISTINCT @ FROM t))",
                                           "(@ COLLATE NOCASE NOT IN (SELECT DISTINCT # FROM t))",
                                           "(@ IN (SELECT @ FROM t GROUP BY 1))",
                                           "(@ IN (SELECT @ FROM t UNION SELECT @ FROM t))",
                                           "((@,@) IN (SELECT DISTINCT @,@ FROM t))",
                                           "(SELECT max(#) FROM t WHERE @)"};
  static const char *const json[] = {"json_array(#,@)",
                                     "json_object('k',#)",
                                     "json_quote(@)",
                                     "json_array((SELECT json_array(@)))",
                                     "json_object('k',(SELECT max(json_quote(@)) FROM t))",
                                     "json_array(nullif(json_array(@),@))",
                                     "json_array(CASE WHEN # THEN json_array(@) ELSE @ END)",
                                     "json_set('{}','$.a',(SELECT json_array(@) WHERE #))",
                                     "json_array(replace(json_array(@),@,'x'))",
                                     "json_array(@->0)",
                                     "json_array((VALUES(json_array(@))))"};
  static const char *const cast[] = {"CAST(# AS INTEGER)", "CAST(# AS REAL)", "CAST(# AS TEXT)",
                                     "CAST(# AS BLOB)", "CAST(# AS NUMERIC)"};
  static const char *const collate[] = {"(# COLLATE NOCASE=#)",
                                        "(#<# COLLATE RTRIM)",
                                        "(# COLLATE BINARY>#)",
                                        "(# COLLATE NOCASE)",
                                        "(# COLLATE NOCASE BETWEEN # AND #)",
                                        "(# COLLATE NOCASE IN (#,#))"};
  static const char *const other[] = {"(# BETWEEN # AND #)",
                                      "(# NOT BETWEEN # AND #)",
                                      "(# IN (@,@,@))",
                                      "(# NOT IN (#,@))",
                                      "(# IN (@))",
                                      "(# IN ())",
                                      "CASE WHEN # THEN # WHEN # THEN # ELSE # END",
                                      "CASE # WHEN # THEN # WHEN # THEN # END",
                                      "CASE # WHEN # THEN # ELSE @ END",
                                      "CASE WHEN # THEN # END",
                                      "coalesce(#,#,#)",
                                      "ifnull(#,#)",
                                      "nullif(#,#)",
                                      "nullif(# COLLATE NOCASE,@)",
                                      "iif(#,#,#)",
                                      "abs(@)"};
  static const char *const like[] = {"(@ LIKE {)",
                                     "(# LIKE {)",
                                     "(@ NOT LIKE {)",
                                     "(@ GLOB })",
                                     "(@ NOT GLOB })",
                                     "(@ LIKE && ESCAPE '\\')",
                                     "(@ LIKE @)",
                                     "(# LIKE { AND @ LIKE {)",
                                     "(@ || '' LIKE {)",
                                     "(@ LIKE ;)",
                                     "(@ LIKE ; ESCAPE NULL)",
                                     "(@ LIKE { ESCAPE NULL)",
                                     "(@ NOT LIKE @ ESCAPE NULL)",
                                     "(; LIKE @)",
                                     "(@ GLOB ;)",
                                     "(@ LIKE NULL ESCAPE 'a')",
                                     "(@ LIKE { ESCAPE @)"};
  static const char *const functions[] = {"round(#)",
                                          "round(#,2)",
                                          "min(#,#)",
                                          "max(#,#,@)",
                                          "typeof(#)",
                                          "sign(#)",
                                          "length(#)",
                                          "upper(@)",
                                          "lower(#)",
                                          "substr(#,2)",
                                          "substr(@,@,3)",
                                          "substr(@,-2,2)",
                                          "instr(#,@)",
                                          "trim(#)",
                                          "ltrim(@,'a')",
                                          "rtrim(@)",
                                          "replace(@,'a','xy')",
                                          "replace(#,@,@)",
                                          "hex(#)",
                                          "quote(#)",
                                          "printf('%d|%s',#,@)",
                                          "printf('%.3f %08x',@,@)",
                                          "strftime(`,@)",
                                          "date(@)",
                                          "datetime(@,'+1 day')",
                                          "unixepoch(@)",
                                          "julianday(@)",
                                          "date(@,'unixepoch')",
                                          "json_extract(@,'$.a')",
                                          "json_valid(#)",
                                          "json_type(@)",
                                          "char(65+(@&31),97)",
                                          "unicode(#)",
                                          "zeroblob(2)",
                                          "abs(#)",
                                          "like(@,@)",
                                          "glob('*a*',@)",
                                          "likely(#)"};
  int d = depth - 1, k = rng_below(m->r, 100);
  if (depth <= 0 || k < 8) return leaf(m);
  if (!m->plain && k < 10) return grow(m, PICK(m->r, json), d);
  if (!m->plain && k < 12) return grow(m, PICK(m->r, subqueries), d);
  if (!m->plain && k < 24) return grow(m, PICK(m->r, functions), d);
  if (!m->plain && k < 33) return grow(m, PICK(m->r, like), d);
  if (k < 58) return grow(m, PICK(m->r, binary), d);
  if (k < 66) return grow(m, PICK(m->r, unary), d);
  if (k < 68) return grow(m, PICK(m->r, truth), d);
  if (k < 74) return grow(m, PICK(m->r, cast), d);
  if (k < 78) return grow(m, PICK(m->r, collate), d);
  if (k < 82) return grow(m, PICK(m->r, rows), d);
  return grow(m, PICK(m->r, other), d);
}

/* n things of a kind, between commas. */
static ex *list_of(maker *m, const query *q, ex *(*thing)(maker *m, const query *q), int n) {
  ex *kids[2] = {thing(m, q), NULL};
  if (n == 1) return kids[0];
  kids[1] = list_of(m, q, thing, n - 1);
  return node_of(m, "#,#", kids);
}

static ex *any_leaf(maker *m, const query *q) {
  (void)q;
  return rng_chance(m->r, 30) ? leaf(m)
                              : text_node(m, value(m->r, (flavour)rng_below(m->r, N_EXACT)));
}

/* x IN a list of 4 to 30: from 4 on a list of constants is a set. */
static ex *long_list(maker *m, const query *q, ex *x, ex *(*thing)(maker *m, const query *q)) {
  int n = 4 + rng_below(m->r, rng_chance(m->r, 70) ? 5 : 27);
  ex *kids[2] = {x, list_of(m, q, thing, n)};
  return node_of(m, rng_chance(m->r, 80) ? "(# IN (#))" : "(# NOT IN (#))", kids);
}

/* A condition that an index might serve. */
static ex *condition(maker *m) {
  static const char *const shapes[] = {
      "@=@",         "@>@",       "@<=@",        "@ BETWEEN @ AND @", "@ IN (@,@,@)",
      "@>@ AND @<@", "@ IS NULL", "@=@ AND @>@", "@=@ OR @=@"};
  return grow(m, PICK(m->r, shapes), 1);
}

/* An aggregate whose value does not depend on the order of its inputs. */
static ex *exact_aggregate(maker *m) {
  static const char *const any[] = {"count(#)", "min(#)", "max(#)"};
  static const char *const sums[] = {"sum(#)", "total(#)", "avg(#)"};
  static const char *const rich[] = {"count(DISTINCT #)",
                                     "count(*) FILTER (WHERE #)",
                                     "min(#) FILTER (WHERE #)",
                                     "count(DISTINCT @)",
                                     "max(#) FILTER (WHERE @ IS NOT NULL)",
                                     "group_concat(@)",
                                     "group_concat(#,'; ')",
                                     "group_concat(DISTINCT @)",
                                     "json_group_array(@)",
                                     "json_group_array(DISTINCT @)",
                                     "json_group_object(ifnull(#,0),@)"};
  if (!m->plain && rng_chance(m->r, 35)) return grow(m, PICK(m->r, rich), 1);
  for (int i = 0; i < 8; i++) {
    int c = rng_below(m->r, m->t->n_cols);
    if (m->t->flavour[c] >= N_EXACT) continue;
    if (rng_chance(m->r, 50)) break;
    ex *kid = text_node(m, format("c%d", c));
    const char *shape = !m->plain && rng_chance(m->r, 20) ? "sum(DISTINCT #)" : PICK(m->r, sums);
    return node_of(m, shape, &kid);
  }
  if (rng_chance(m->r, 20)) return text_node(m, format("count(*)"));
  ex *kid = expr(m, 2);
  return node_of(m, PICK(m->r, any), &kid);
}

/* Beside groups: aggregates, keys, columns, parameters, constants. */
static ex *grouped_leaf(maker *m, const query *q) {
  if (rng_chance(m->r, 12)) return exact_aggregate(m);
  if (q->n_groups && rng_chance(m->r, 15)) return q->group[rng_below(m->r, q->n_groups)];
  if (!m->plain && rng_chance(m->r, 5)) return column(m);
  if (rng_chance(m->r, 8)) return text_node(m, format("?%d", 1 + rng_below(m->r, MAX_BINDS)));
  return text_node(m, rng_chance(m->r, 60) ? format("%d", rng_below(m->r, 9))
                                           : value(m->r, (flavour)rng_below(m->r, N_EXACT)));
}

static ex *grouped_list(maker *m, const query *q) {
  ex *x = q->n_groups && rng_chance(m->r, 40) ? q->group[rng_below(m->r, q->n_groups)]
                                              : exact_aggregate(m);
  return long_list(m, q, x, grouped_leaf);
}

static void make_results(maker *m, query *q) {
  static const char *const over[] = {"(#+#)", "(#-#)", "(#>#)", "(#||#)", "(# IS #)", "(#*#)"};
  static const char *const sums[] = {"sum(#)", "total(#)", "avg(#)"};
  q->n_out = 1 + rng_below(m->r, rng_chance(m->r, 50) ? 2 : MAX_OUT);
  for (int i = 0; i < q->n_out; i++) {
    if (!q->aggregate) {
      q->out[i] =
          rng_chance(m->r, 3) ? long_list(m, q, expr(m, 1), any_leaf) : expr(m, rng_below(m->r, 4));
    } else if (rng_chance(m->r, 6)) {
      q->out[i] = grouped_list(m, q);
    } else if (q->n_groups && rng_chance(m->r, 45)) {
      q->out[i] = q->group[rng_below(m->r, q->n_groups)];
    } else if (!m->plain && rng_chance(m->r, m->from ? 30 : 4)) {
      q->out[i] = column(m); /* a column beside the groups */
    } else if (rng_chance(m->r, 30)) {
      q->sum_of[i] = expr(m, rng_below(m->r, 3));
      q->out[i] = node_of(m, PICK(m->r, sums), &q->sum_of[i]);
    } else if (rng_chance(m->r, 15)) {
      ex *sides[2] = {exact_aggregate(m), exact_aggregate(m)};
      q->out[i] = node_of(m, PICK(m->r, over), sides);
    } else {
      q->out[i] = exact_aggregate(m);
    }
  }
}

static ex *order_term(maker *m, const query *q) {
  if (rng_chance(m->r, 35)) {
    int k = rng_below(m->r, q->n_out);
    if (!q->sum_of[k]) return text_node(m, format("%d", 1 + k));
  }
  ex *e;
  if (!q->aggregate)
    e = rng_chance(m->r, 65) ? column(m) : expr(m, 2);
  else if (rng_chance(m->r, 6))
    e = grouped_list(m, q);
  else if (q->n_groups && rng_chance(m->r, 60))
    e = q->group[rng_below(m->r, q->n_groups)];
  else
    e = exact_aggregate(m);
  static const char *const under[] = {"# COLLATE NOCASE", "# COLLATE NOCASE", "# COLLATE RTRIM",
                                      "# COLLATE BINARY"};
  return rng_chance(m->r, 12) ? node_of(m, PICK(m->r, under), &e) : e;
}

/* A number for LIMIT or OFFSET: small, now and then at an end of 64 bits or a parameter. */
static void cut_text(maker *m, char out[32], int most) {
  static const char *const ends[] = {"9223372036854775807",  "9223372036854775806",
                                     "9223372036854775805",  "-9223372036854775807",
                                     "-9223372036854775808", "4611686018427387904"};
  if (rng_chance(m->r, 12))
    snprintf(out, 32, "%s", PICK(m->r, ends));
  else if (rng_chance(m->r, 4))
    snprintf(out, 32, "?%d", 1 + rng_below(m->r, MAX_BINDS));
  else
    snprintf(out, 32, "%d", rng_below(m->r, most) - 2);
}

static void make_query(maker *m, query *q) {
  static const char *const directions[] = {
      "", "", "", " ASC", " DESC", " DESC", " NULLS LAST", " DESC NULLS FIRST"};
  memset(q, 0, sizeof *q);
  m->n_nodes = 0;
  m->plain = rng_chance(m->r, 55);
  m->from = FROM_TABLE;
  if (rng_chance(m->r, m->t->encoding ? 60 : 2)) m->from = FROM_NOTHING;
  if (!m->plain && rng_chance(m->r, 12))
    m->from = (from_kind)(FROM_SUBQUERY + rng_below(m->r, FROM_ROW - FROM_SUBQUERY + 1));
  q->from = m->from;
  q->empty = rng_chance(m->r, 50);
  if (q->from == FROM_SUBQUERY && rng_chance(m->r, 60)) q->inner = condition(m);
  q->aggregate = rng_chance(m->r, 45);
  q->star = !q->aggregate && q->from != FROM_NOTHING && rng_chance(m->r, 5);
  if (q->aggregate && rng_chance(m->r, 65)) {
    q->n_groups = 1 + rng_below(m->r, MAX_TERMS);
    for (int i = 0; i < q->n_groups; i++)
      q->group[i] = rng_chance(m->r, 65) ? column(m) : expr(m, 2);
  }
  make_results(m, q);
  q->distinct = rng_chance(m->r, 12);
  for (int i = 0; i < q->n_out; i++)
    if (q->sum_of[i]) q->distinct = false;
  if (rng_chance(m->r, 60))
    q->where = rng_chance(m->r, 40)  ? condition(m)
               : rng_chance(m->r, 5) ? long_list(m, q, expr(m, 1), any_leaf)
                                     : expr(m, 1 + rng_below(m->r, 3));
  if (q->n_groups && rng_chance(m->r, 25)) {
    ex *e = rng_chance(m->r, 20) ? grouped_list(m, q) : exact_aggregate(m);
    q->having = node_of(m, rng_chance(m->r, 50) ? "#>1" : "# IS NOT NULL", &e);
  }
  if (!q->star && rng_chance(m->r, 45)) {
    q->n_order = 1 + rng_below(m->r, MAX_TERMS);
    for (int i = 0; i < q->n_order; i++) {
      q->order[i] = order_term(m, q);
      q->direction[i] = PICK(m->r, directions);
    }
  }
  if (rng_chance(m->r, 28)) {
    char a[32], b[32];
    cut_text(m, a, 30);
    cut_text(m, b, 20);
    int n = snprintf(q->limit, sizeof q->limit, " LIMIT %s", a);
    if (rng_chance(m->r, 40)) snprintf(q->limit + n, sizeof q->limit - (size_t)n, " OFFSET %s", b);
  }
}

static char *join(char *s, const char *before, const ex *e, const char *after) {
  char *text = render(e), *next = format("%s%s%s%s", s, before, text, after);
  sqlite3_free(text);
  sqlite3_free(s);
  return next;
}

/* The text of FROM, which may be empty. */
static char *from_text(const query *q) {
  switch (q->from) {
  case FROM_SUBQUERY: {
    char *where = q->inner ? render(q->inner) : format("0");
    char *s = format(" FROM (SELECT *, 'One' AS one FROM t WHERE %s) AS t", where);
    sqlite3_free(where);
    return s;
  }
  case FROM_BESIDE: return format(" FROM t, (SELECT 'One' AS one) AS e");
  case FROM_ROW: return format(" FROM (SELECT 1 AS one WHERE %d) AS t", !q->empty);
  case FROM_NOTHING: return format("");
  default: return format(" FROM t");
  }
}

static char *query_text(const query *q) {
  char *s = format("SELECT %s%s", q->distinct ? "DISTINCT " : "", q->star ? "*" : "");
  for (int i = 0; i < q->n_out && !q->star; i++) s = join(s, i ? ", " : "", q->out[i], "");
  char *of = from_text(q), *from = format("%s%s", s, of);
  sqlite3_free(of);
  sqlite3_free(s);
  s = from;
  if (q->where) s = join(s, " WHERE ", q->where, "");
  for (int i = 0; i < q->n_groups; i++) s = join(s, i ? ", " : " GROUP BY ", q->group[i], "");
  if (q->having) s = join(s, " HAVING ", q->having, "");
  for (int i = 0; i < q->n_order; i++)
    s = join(s, i ? ", " : " ORDER BY ", q->order[i], q->direction[i]);
  char *all = format("%s%s", s, q->limit);
  sqlite3_free(s);
  return all;
}

#endif
