/*
** Random values, expressions and conditions for dmlfuzz.c, written straight into the text of a
** statement.
**
** Invariants:
** 1. Nothing here depends on the plan, the time or the order of rows: no random(), no sum() of
**    reals, no LIMIT in a subquery without an order.
** 2. A parameter is numbered by its place in the text or by its name; what it is bound to is kept
**    beside the text as a literal. A parameter that got no value is NULL on both sides.
*/
#ifndef TEST_DMLFUZZ_EXPR_H
#define TEST_DMLFUZZ_EXPR_H

#include "values.h"

enum { MAX_COLS = 8, MAX_KEYS = 4, MAX_NAMES = 32, DML_BINDS = 12 };

typedef struct dml_col {
  char name[24];   /* as it is written, with quotes if it needs them */
  char affinity;   /* 'i' integer, 'r' real, 't' text, 'n' numeric, 'b' none */
  bool is_integer; /* the type is the very word INTEGER */
  bool not_null, has_default, in_key, in_check;
} dml_col;

typedef struct dml_table {
  const char *name;
  int n_cols, rowid_col; /* the INTEGER PRIMARY KEY, or -1 */
  dml_col col[MAX_COLS];
  int n_keys;
  struct {
    int n, cols[3];
  } key[MAX_KEYS];
  bool has_default; /* in any column */
  char *decl;       /* between the parentheses */
} dml_table;

/* What the text of one statement is made with. */
typedef struct dml_maker {
  rng *r;
  bool plain;   /* what virtual tables can do through SQLite alone */
  bool replace; /* the statement is UPDATE OR REPLACE */
  bool big;     /* the table has too many rows to look at all of them for each */
  /* An error that is not a constraint's, in the middle of a statement with OR FAIL, REPLACE,
  ** IGNORE or ROLLBACK, leaves the rows before it in SQLite: it opened no savepoint. */
  bool careful;
  int late;      /* of so many rows the last breaks a constraint, if there is one; or 0 */
  int params;    /* 0: literals only; '?': by place; '#': by number; ':' by name */
  bool unshared; /* a parameter that is there already will not do */
  int n_binds;
  char *binds[DML_BINDS];
  /* the names that an expression may use */
  int n_names;
  char name[MAX_NAMES][40];
  char affinity[MAX_NAMES];
  const char *target; /* the table being written; NULL: no subquery may read it */
} dml_maker;

static void add_name(dml_maker *m, const char *prefix, const char *name, char affinity) {
  if (m->n_names == MAX_NAMES) return;
  snprintf(m->name[m->n_names], sizeof m->name[0], "%s%s", prefix, name);
  m->affinity[m->n_names++] = affinity;
}

static void add_columns(dml_maker *m, const char *prefix, const dml_table *t) {
  for (int i = 0; i < t->n_cols; i++) add_name(m, prefix, t->col[i].name, t->col[i].affinity);
  add_name(m, prefix, "rowid", 'i');
}

/* The columns of the ordinary table of sources. */
static void add_source(dml_maker *m, const char *prefix) {
  add_name(m, prefix, "id", 'i');
  add_name(m, prefix, "p", 't');
  add_name(m, prefix, "q", 'b');
  add_name(m, prefix, "r", 'r');
}

/* ---- values */

static char *literal_of(rng *r, char affinity) {
  if (rng_chance(r, 6)) return format("NULL");
  if (rng_chance(r, 75)) switch (affinity) {
    case 'i':
    case 'n': return format("%d", rng_below(r, 24) - 2);
    case 'r': return format("%!.1f", rng_below(r, 40) / 2.0 - 2);
    case 't':
      return rng_chance(r, 70) ? format("%s", PICK(r, words)) : format("'k%d'", rng_below(r, 30));
    }
  switch (rng_below(r, 20)) {
  case 0: return format("%s", PICK(r, edge_ints));
  case 1: return format("%s", PICK(r, wide_ints));
  case 2:
  case 3: {
    /* a rowid equals the least integer as a REAL or not as SQLite's plan has it */
    const char *real = PICK(r, wild_reals);
    return format("%s", strcmp(real, "-9223372036854775808.0") ? real : "-1e19");
  }
  case 4:
  case 5:
  case 6: return format("%s", PICK(r, numeric_texts));
  case 7: return format("%s", PICK(r, odd_texts));
  case 8:
  case 9: return format("%s", PICK(r, blobs));
  case 10:
    return rng_chance(r, 90)
               ? format("1000000000000000.5")
               : format("replace(hex(zeroblob(%d)), '00', 'long')", rng_below(r, 3000));
  case 11:
  case 12:
  case 13: return format("%s", PICK(r, words));
  case 14: return format("%!.2f", rng_below(r, 400) / 4.0);
  default: return format("%d", rng_below(r, 24) - 2);
  }
}

/* A literal or a parameter. */
static void put_literal(dml_maker *m, sqlite3_str *o, char *text) {
  if (!m->params || m->n_binds == DML_BINDS || rng_chance(m->r, 50)) {
    sqlite3_str_appendall(o, text);
    sqlite3_free(text);
    return;
  }
  int k = m->n_binds;
  if (m->params != '?' && k > 0 && !m->unshared && rng_chance(m->r, 15)) {
    k = rng_below(m->r, k);
    sqlite3_free(text);
  } else {
    m->binds[m->n_binds++] = text;
  }
  if (m->params == '?')
    sqlite3_str_appendall(o, "?");
  else if (m->params == '#')
    sqlite3_str_appendf(o, "?%d", k + 1);
  else
    sqlite3_str_appendf(o, "%c%c%d", ":@$"[k % 3], 'p', k);
}

static void put_value(dml_maker *m, sqlite3_str *o, char affinity) {
  put_literal(m, o, literal_of(m->r, affinity));
}

/* For the rowid. Where it may be NULL, SQLite finds one; `last`: no row comes after this one, so
** that it may be the greatest. */
static void put_rowid(dml_maker *m, sqlite3_str *o, bool null, bool last) {
  static const char *const odd[] = {"'5'",   "5.0",   "5.5",    "'abc'",
                                    "x'35'", "' 7 '", "'7.0'",  "'1e1'",
                                    "-3",    "-1",    "'0x10'", "9223372036854775807.0",
                                    "''",    "0",     "-0.0",   "-9223372036854775808"};
  static const char *const wide[] = {"2147483648", "9007199254740993", "-9223372036854775808",
                                     "4611686018427387904", "1000000"};
  rng *r = m->r;
  int k = rng_below(r, 100);
  m->unshared = true;
  if (k < 15 && null)
    put_literal(m, o, format("NULL"));
  else if (k < 25 && !m->careful)
    put_literal(m, o, format("%s", PICK(r, odd)));
  else if (k < 28)
    put_literal(m, o, format("%s", PICK(r, wide)));
  else if (k < 30 && last)
    put_literal(m, o,
                format("%s", rng_chance(r, 80) ? "9223372036854775807" : "'9223372036854775807'"));
  else
    put_literal(m, o, format("%d", 1 + rng_below(r, k < 65 ? 20 : 200)));
  m->unshared = false;
}

/* ---- expressions */

static void put_cond(dml_maker *m, sqlite3_str *o, int depth);

static int any_name(dml_maker *m) {
  return rng_below(m->r, m->n_names);
}

static void put_expr(dml_maker *m, sqlite3_str *o, int depth) {
  static const char *const ops[] = {"+", "-", "*", "/", "%", "||", "&", "|", "<<", ">>"};
  static const char *const one[15] = {"abs",   "length", "upper", "lower", "typeof",
                                      "hex",   "quote",  "trim",  "round", "unicode",
                                      "rtrim", "-",      "~",     "+",     "NOT "};
  static const char *const types[] = {"INTEGER", "REAL", "TEXT", "BLOB", "NUMERIC"};
  rng *r = m->r;
  int k = m->n_names ? rng_below(r, 100) : 99;
  if (depth <= 0 || k < 25 || k >= 88) {
    int i = m->n_names ? any_name(m) : -1;
    if (i < 0 || rng_chance(r, 35))
      put_value(m, o, i < 0 ? 'b' : m->affinity[i]);
    else
      sqlite3_str_appendall(o, m->name[i]);
    return;
  }
  if (k < 55) {
    sqlite3_str_appendall(o, "(");
    put_expr(m, o, depth - 1);
    sqlite3_str_appendf(o, " %s ", PICK(r, ops));
    put_expr(m, o, depth - 1);
    sqlite3_str_appendall(o, ")");
  } else if (k < 68) {
    sqlite3_str_appendf(o, "%s(", one[m->careful + rng_below(r, 15 - m->careful)]);
    put_expr(m, o, depth - 1);
    sqlite3_str_appendall(o, ")");
  } else if (k < 74) {
    sqlite3_str_appendf(o, "%s(",
                        rng_chance(r, 50)   ? "coalesce"
                        : rng_chance(r, 50) ? "max"
                                            : "nullif");
    put_expr(m, o, depth - 1);
    sqlite3_str_appendall(o, ", ");
    put_expr(m, o, depth - 1);
    sqlite3_str_appendall(o, ")");
  } else if (k < 79) {
    sqlite3_str_appendall(o, "CASE WHEN ");
    put_cond(m, o, depth - 1);
    sqlite3_str_appendall(o, " THEN ");
    put_expr(m, o, depth - 1);
    if (rng_chance(r, 70)) {
      sqlite3_str_appendall(o, " ELSE ");
      put_expr(m, o, depth - 1);
    }
    sqlite3_str_appendall(o, " END");
  } else if (k < 83) {
    sqlite3_str_appendall(o, "CAST(");
    put_expr(m, o, depth - 1);
    sqlite3_str_appendf(o, " AS %s)", PICK(r, types));
  } else if (k < 86) {
    sqlite3_str_appendall(o, "substr(");
    put_expr(m, o, depth - 1);
    sqlite3_str_appendf(o, ", %d, %d)", rng_below(r, 5) - 1, rng_below(r, 6));
  } else if (m->target && rng_chance(r, 40)) {
    sqlite3_str_appendf(o, "(SELECT %s(rowid) FROM %s)", rng_chance(r, 50) ? "max" : "count",
                        m->target);
  } else {
    sqlite3_str_appendf(o, "(SELECT %s FROM u WHERE u.id = ", rng_chance(r, 50) ? "q" : "p");
    put_expr(m, o, 0);
    sqlite3_str_appendall(o, ")");
  }
}

static void put_cond(dml_maker *m, sqlite3_str *o, int depth) {
  static const char *const cmp[] = {"=", "=", "<", "<=", ">", ">=", "<>", "IS", "IS NOT", "=="};
  static const char *const patterns[] = {"'a%'", "'%b%'", "'_b_'", "'k1%'", "''", "'%'"};
  rng *r = m->r;
  int i = any_name(m), k = rng_below(r, 100);
  if (k < 16 && depth > 0) {
    sqlite3_str_appendall(o, "(");
    put_cond(m, o, depth - 1);
    sqlite3_str_appendall(o, rng_chance(r, 55) ? " AND " : " OR ");
    put_cond(m, o, depth - 1);
    sqlite3_str_appendall(o, ")");
  } else if (k < 50) {
    sqlite3_str_appendf(o, "%s %s ", m->name[i], PICK(r, cmp));
    put_value(m, o, m->affinity[i]);
  } else if (k < 56) {
    sqlite3_str_appendf(o, "%s IS %sNULL", m->name[i], rng_chance(r, 50) ? "NOT " : "");
  } else if (k < 63) {
    sqlite3_str_appendf(o, "%s %sIN (", m->name[i], rng_chance(r, 25) ? "NOT " : "");
    for (int n = rng_below(r, 4); n >= 0; n--) {
      put_value(m, o, m->affinity[i]);
      sqlite3_str_appendall(o, n ? ", " : ")");
    }
  } else if (k < 70) {
    sqlite3_str_appendf(o, "%s %sBETWEEN ", m->name[i], rng_chance(r, 20) ? "NOT " : "");
    put_value(m, o, m->affinity[i]);
    sqlite3_str_appendall(o, " AND ");
    put_value(m, o, m->affinity[i]);
  } else if (k < 74) {
    sqlite3_str_appendf(o, "%s %sLIKE %s", m->name[i], rng_chance(r, 20) ? "NOT " : "",
                        PICK(r, patterns));
  } else if (k < 80) {
    int n = 2 + rng_below(r, 6);
    sqlite3_str_appendf(o, "%s %% %d = %d", m->name[i], n, rng_below(r, n));
  } else if (k < 84 && depth > 0) {
    sqlite3_str_appendall(o, "NOT (");
    put_cond(m, o, depth - 1);
    sqlite3_str_appendall(o, ")");
  } else if (k < 87) {
    sqlite3_str_appendf(o, "%s %sIN (SELECT %s FROM u)", m->name[i],
                        rng_chance(r, 25) ? "NOT " : "", rng_chance(r, 50) ? "id" : "p");
  } else if (k < 89) {
    sqlite3_str_appendf(o, "EXISTS (SELECT 1 FROM u WHERE u.id = %s)", m->name[i]);
  } else if (k < 91 && m->target) {
    sqlite3_str_appendf(o, "%s >= (SELECT %s(rowid) / 2 FROM %s)", m->name[i],
                        rng_chance(r, 50) ? "max" : "count", m->target);
  } else {
    put_expr(m, o, 1 + (depth > 0));
    sqlite3_str_appendf(o, " %s ", PICK(r, cmp));
    put_expr(m, o, depth > 0);
  }
}

#endif
