/*
** Parses the declaration of a tablet table; see declare.h. Called once for each connection that
** opens the table, with the texts that SQLite cut at the commas of CREATE VIRTUAL TABLE.
**
** Invariants:
** 1. The grammar is that of CREATE TABLE's columns and constraints. What follows the last thing
**    understood in an argument is a syntax error, never skipped.
** 2. Keys are gathered in the order of the text, as SQLite makes its indexes, and turned round at
**    the end: SQLite checks the index made last first.
*/
#include "tablet/table/declare.h"
#include "base/sqlite.h"
#include "parse.h"
#include "sql/lex.h"
#include "store/store.h"
#include "value/value.h"
#include "value/collation.h"
#include <string.h>

int wl_lemonFallback(int kind); /* of lemon's output: the token that may stand in, or 0 */

enum { COLL_OF_COLUMN = 255 }; /* a key that names no collation has its column's */

typedef struct parse {
  wl_arena *arena;
  wl_error *err;
  const char *const *args;
  int n_args, arg; /* the argument at hand */
  wl_lexer lex;
  int kind; /* the token at hand, not taken yet */
  wl_token tok;
  wl_token last;    /* the token taken last */
  const char *name; /* of the last CONSTRAINT, while it counts */
  wl_decl *d;
  int max_keys, max_checks;
} parse;

/* ---- tokens */

static void take(parse *p) {
  p->last = p->tok;
  p->kind = wl_lex_next(&p->lex, &p->tok);
}

static bool is_word(const parse *p, const char *word) {
  return p->kind > 0 && wl_lex_is(p->lex.sql, p->tok, word);
}

static bool take_word(parse *p, const char *word) {
  if (!is_word(p, word)) return false;
  take(p);
  return true;
}

static bool take_kind(parse *p, int kind) {
  if (p->kind != kind) return false;
  take(p);
  return true;
}

static wl_status syntax_error(parse *p) {
  if (p->kind == WL_LEX_END)
    return wl_fail(p->err, WL_ERROR, "near \"%s\": syntax error",
                   p->arg + 1 < p->n_args ? "," : ")");
  if (p->kind == WL_LEX_ILLEGAL)
    return wl_fail(p->err, WL_ERROR, "unrecognized token: \"%.*s\"", (int)p->tok.n,
                   p->lex.sql + p->tok.pos);
  return wl_fail(p->err, WL_ERROR, "near \"%.*s\": syntax error", (int)p->tok.n,
                 p->lex.sql + p->tok.pos);
}

static wl_status need(parse *p, int kind) {
  return take_kind(p, kind) ? WL_OK : syntax_error(p);
}

static wl_status need_word(parse *p, const char *word) {
  return take_word(p, word) ? WL_OK : syntax_error(p);
}

/* SQLite's id: a name, quoted or not, or a keyword that may serve as one. */
static bool is_id(const parse *p) {
  return p->kind == WLT_ID || (p->kind > 0 && wl_lemonFallback(p->kind) == WLT_ID);
}

/* SQLite's nm: what may name a column, a constraint, a collation. */
static bool is_name(const parse *p) {
  return is_id(p) || p->kind == WLT_INDEXED || p->kind == WLT_STRING || p->kind == WLT_JOIN_KW;
}

/* As SQLite takes quotes off: what begins with a quote ends at its match, the rest is dropped. */
char *wl_decl_unquoted(wl_arena *a, const char *s, size_t n) {
  char close = n ? s[0] : 0;
  if (close == '[') close = ']';
  if (close != '"' && close != '\'' && close != '`' && close != ']')
    return wl_arena_strndup(a, s, n);
  if (s[0] == ']') return wl_arena_strndup(a, s, n);
  char *out = wl_arena_alloc(a, n + 1);
  if (!out) return NULL;
  size_t k = 0;
  for (size_t i = 1; i < n; i++) {
    if (s[i] == close) {
      if (i + 1 >= n || s[i + 1] != close) break;
      i++;
    }
    out[k++] = s[i];
  }
  out[k] = 0;
  return out;
}

static wl_status take_name(parse *p, const char **out) {
  if (!is_name(p)) return syntax_error(p);
  take(p);
  *out = wl_decl_unquoted(p->arena, p->lex.sql + p->last.pos, p->last.n);
  return *out ? WL_OK : wl_nomem(p->err);
}

/* From the parenthesis at hand through its match; *from and *to are the text inside. */
static wl_status take_parens(parse *p, size_t *from, size_t *to) {
  wl_status rc = need(p, WLT_LP);
  *from = p->last.pos + 1;
  for (int depth = 1; !rc && depth > 0;) {
    depth += (p->kind == WLT_LP) - (p->kind == WLT_RP);
    if (p->kind <= 0) {
      rc = syntax_error(p);
    } else {
      take(p);
    }
  }
  *to = p->last.pos;
  return rc;
}

static wl_status take_collation(parse *p, wl_u8 *out) {
  const char *name = NULL;
  wl_status rc = take_name(p, &name);
  if (rc) return rc;
  int coll = wl_collation_find(name);
  if (coll < 0)
    return wl_fail(p->err, WL_ERROR,
                   "collation %s: a tablet table has BINARY, NOCASE and RTRIM, no other", name);
  *out = (wl_u8)coll;
  return WL_OK;
}

/* ---- what cannot be kept */

static wl_status refuse_conflict(parse *p) {
  if (p->kind != WLT_ON) return WL_OK;
  return wl_fail(p->err, WL_ERROR,
                 "a tablet table has no ON CONFLICT in a constraint: say OR in the statement");
}

static wl_status refuse_reference(parse *p) {
  return wl_fail(p->err, WL_ERROR, "a tablet table has no foreign keys");
}

static wl_status refuse_generated(parse *p) {
  return wl_fail(p->err, WL_ERROR, "a tablet table has no generated columns");
}

static wl_status refuse_autoincrement(parse *p) {
  return wl_fail(p->err, WL_ERROR, "a tablet table has no AUTOINCREMENT");
}

/* ---- keys and checks */

static wl_status add_key(parse *p, const int *cols, const wl_u8 *colls, int n, bool primary) {
  wl_decl *d = p->d;
  if (d->n_keys == p->max_keys) {
    int more = p->max_keys ? p->max_keys * 2 : 4;
    wl_decl_key *k = WL_NEW_N(p->arena, wl_decl_key, more);
    if (!k) return wl_nomem(p->err);
    if (d->n_keys) memcpy(k, d->keys, (size_t)d->n_keys * sizeof *k);
    d->keys = k;
    p->max_keys = more;
  }
  wl_decl_key *k = &d->keys[d->n_keys++];
  k->cols = WL_NEW_N(p->arena, int, n);
  k->colls = WL_NEW_N(p->arena, wl_u8, n);
  if (!k->cols || !k->colls) return wl_nomem(p->err);
  memcpy(k->cols, cols, (size_t)n * sizeof *cols);
  memcpy(k->colls, colls, (size_t)n * sizeof *colls);
  k->n = n;
  k->primary = primary;
  return WL_OK;
}

static bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static wl_status take_check(parse *p) {
  wl_decl *d = p->d;
  size_t from, to;
  wl_status rc = take_parens(p, &from, &to);
  if (rc) return rc;
  if (d->n_checks == p->max_checks) {
    int more = p->max_checks ? p->max_checks * 2 : 4;
    wl_decl_check *c = WL_NEW_N(p->arena, wl_decl_check, more);
    if (!c) return wl_nomem(p->err);
    if (d->n_checks) memcpy(c, d->checks, (size_t)d->n_checks * sizeof *c);
    d->checks = c;
    p->max_checks = more;
  }
  const char *sql = p->lex.sql;
  wl_decl_check *c = &d->checks[d->n_checks++];
  /* with its parentheses: a comment at the end of the text ends with its line */
  c->text = wl_arena_strndup(p->arena, sql + from - 1, to - from + 2);
  while (from < to && is_blank(sql[from])) from++;
  while (from < to && is_blank(sql[to - 1])) to--;
  /* SQLite takes the text for a name, and quotes at its beginning off */
  c->name = p->name ? p->name : wl_decl_unquoted(p->arena, sql + from, to - from);
  return c->text && c->name ? WL_OK : wl_nomem(p->err);
}

/* The column of a name, or -1. */
static int column_of(const wl_decl *d, const char *name) {
  for (int i = 0; i < d->n_cols; i++)
    if (sqlite3_stricmp(d->cols[i].name, name) == 0) return i;
  return -1;
}

/* A column of a key: a name, in parentheses too, with COLLATE and ASC or DESC. */
static wl_status take_key_column(parse *p, int *col, wl_u8 *coll) {
  const char *name = NULL;
  int depth = 0;
  *coll = COLL_OF_COLUMN;
  while (take_kind(p, WLT_LP)) depth++;
  bool plain = is_name(p);
  wl_status rc = plain ? take_name(p, &name) : WL_OK;
  while (!rc && plain) {
    if (depth > 0 && take_kind(p, WLT_RP)) {
      depth--;
    } else if (take_kind(p, WLT_COLLATE)) {
      rc = take_collation(p, coll);
    } else {
      break;
    }
  }
  if (rc) return rc;
  bool end = plain && depth == 0;
  end = end && (p->kind == WLT_RP || p->kind == WLT_COMMA || p->kind == WLT_ASC ||
                p->kind == WLT_DESC || p->kind == WLT_NULLS || is_word(p, "AUTOINCREMENT"));
  if (!end && (p->kind <= 0 || p->kind == WLT_RP)) return syntax_error(p);
  if (!end)
    return wl_fail(p->err, WL_ERROR,
                   "expressions prohibited in PRIMARY KEY and UNIQUE constraints");
  *col = column_of(p->d, name);
  if (*col < 0) return wl_fail(p->err, WL_ERROR, "no such column: %s", name);
  if (!take_kind(p, WLT_ASC)) take_kind(p, WLT_DESC);
  if (p->kind == WLT_NULLS) {
    take(p);
    return wl_fail(p->err, WL_ERROR, "unsupported use of NULLS %s",
                   p->kind == WLT_FIRST ? "FIRST" : "LAST");
  }
  return is_word(p, "AUTOINCREMENT") ? refuse_autoincrement(p) : WL_OK;
}

/* The types that SQLite knows by number. A column of another has its type as text. */
static const char *const standard_types[] = {"INTEGER", "ANY", "BLOB", "INT", "REAL", "TEXT"};

/* By identity: "INTEGER" 'and more' comes out as the same text, and is not the same. */
static bool is_integer(const wl_decl_column *c) {
  return c->type == standard_types[0];
}

/* PRIMARY KEY (…) or UNIQUE (…), from the parenthesis on. */
static wl_status take_key(parse *p, bool primary) {
  int n = 0, max = 0, *cols = NULL;
  wl_u8 *colls = NULL;
  wl_status rc = need(p, WLT_LP);
  while (!rc) {
    if (n == max) {
      int more = max ? max * 2 : 8;
      int *c = WL_NEW_N(p->arena, int, more);
      wl_u8 *k = WL_NEW_N(p->arena, wl_u8, more);
      if (!c || !k) return wl_nomem(p->err);
      if (n) memcpy(c, cols, (size_t)n * sizeof *c);
      if (n) memcpy(k, colls, (size_t)n * sizeof *k);
      cols = c;
      colls = k;
      max = more;
    }
    rc = take_key_column(p, &cols[n], &colls[n]);
    n++;
    if (!rc && !take_kind(p, WLT_COMMA)) break;
  }
  if (!rc) rc = need(p, WLT_RP);
  if (!rc) rc = refuse_conflict(p);
  if (rc) return rc;
  /* DESC does not count here, unlike behind the column itself */
  if (primary && n == 1 && p->d->rowid_col < 0 && is_integer(&p->d->cols[cols[0]])) {
    p->d->rowid_col = cols[0];
    return WL_OK;
  }
  return add_key(p, cols, colls, n, primary);
}

/* ---- columns */

static bool is_word_at_end(const char *s, size_t *n, const char *word) {
  size_t k = strlen(word);
  if (*n < k || sqlite3_strnicmp(s + *n - k, word, (int)k) != 0) return false;
  *n -= k;
  while (*n > 0 && is_blank(s[*n - 1])) --*n;
  return true;
}

/* SQLite makes a column of a virtual table hidden when its type has this word. */
static bool says_hidden(const char *type) {
  for (const char *s = type; *s; s++) {
    if (sqlite3_strnicmp(s, "hidden", 6) != 0) continue;
    if ((s == type || s[-1] == ' ') && (s[6] == 0 || s[6] == ' ')) return true;
  }
  return false;
}

static wl_status take_number(parse *p) {
  if (!take_kind(p, WLT_PLUS)) take_kind(p, WLT_MINUS);
  if (p->kind != WLT_INTEGER && p->kind != WLT_FLOAT) return syntax_error(p);
  take(p);
  return WL_OK;
}

/* No quotes, or one pair of them around it all. */
static bool is_one_word(const char *s, size_t n) {
  for (size_t i = 1; i + 1 < n; i++)
    if (strchr("'\"`[", s[i])) return false;
  return true;
}

static wl_status take_type(parse *p, wl_decl_column *c) {
  const char *sql = p->lex.sql;
  size_t from = p->tok.pos, n;
  c->type = "";
  c->affinity = 'A';
  if (!is_id(p) && p->kind != WLT_STRING) return WL_OK;
  while (is_id(p) || p->kind == WLT_STRING) take(p);
  if (take_kind(p, WLT_LP)) {
    wl_status rc = take_number(p);
    if (!rc && take_kind(p, WLT_COMMA)) rc = take_number(p);
    if (!rc) rc = need(p, WLT_RP);
    if (rc) return rc;
  }
  n = p->last.pos + p->last.n - from;
  size_t rest = n;
  if (is_word_at_end(sql + from, &rest, "always") && is_word_at_end(sql + from, &rest, "generated"))
    return refuse_generated(p);
  c->type = wl_decl_unquoted(p->arena, sql + from, n);
  if (!c->type) return wl_nomem(p->err);
  if (is_one_word(sql + from, n))
    for (size_t i = 0; i < sizeof standard_types / sizeof *standard_types; i++)
      if (sqlite3_stricmp(c->type, standard_types[i]) == 0) c->type = standard_types[i];
  if (says_hidden(c->type))
    return wl_fail(p->err, WL_ERROR, "a tablet table has no column of type %s", c->type);
  c->affinity = *c->type ? wl_affinity_of_type(c->type) : 'C';
  return WL_OK;
}

/* A literal as DEFAULT has it without parentheses, CURRENT_TIME and its like too. */
static bool is_term(const parse *p) {
  return p->kind == WLT_NULL || p->kind == WLT_FLOAT || p->kind == WLT_BLOB ||
         p->kind == WLT_STRING || p->kind == WLT_INTEGER || p->kind == WLT_NOW;
}

/* Whether a text is one literal, perhaps with a sign, perhaps in parentheses. */
static bool is_literal(const char *sql, size_t n) {
  wl_lexer lex;
  wl_token tok;
  wl_lex_init(&lex, sql, n);
  int depth = 0, kind = wl_lex_next(&lex, &tok);
  for (; kind == WLT_LP; kind = wl_lex_next(&lex, &tok)) depth++;
  if (kind == WLT_PLUS || kind == WLT_MINUS) kind = wl_lex_next(&lex, &tok);
  if (kind != WLT_NULL && kind != WLT_FLOAT && kind != WLT_BLOB && kind != WLT_STRING &&
      kind != WLT_INTEGER)
    return false;
  while ((kind = wl_lex_next(&lex, &tok)) == WLT_RP && depth > 0) depth--;
  return kind == WL_LEX_END && depth == 0;
}

/* A name that stands as a DEFAULT is a string, unless it is the bare word TRUE or FALSE. */
static wl_status take_name_default(parse *p, wl_decl_column *c) {
  const char *name = NULL;
  bool logical = is_word(p, "TRUE") || is_word(p, "FALSE");
  wl_status rc = take_name(p, &name);
  if (rc) return rc;
  char *quoted = logical ? NULL : sqlite3_mprintf("%Q", name);
  if (!logical && !quoted) return wl_nomem(p->err);
  if (logical) {
    c->dflt = wl_lex_is(p->lex.sql, p->last, "TRUE") ? "1" : "0";
  } else {
    c->dflt = wl_arena_strndup(p->arena, quoted, strlen(quoted));
  }
  sqlite3_free(quoted);
  c->constant = true;
  return c->dflt ? WL_OK : wl_nomem(p->err);
}

static wl_status take_default(parse *p, wl_decl_column *c) {
  size_t from = p->tok.pos, inner, end;
  if (p->kind == WLT_LP) {
    wl_status rc = take_parens(p, &inner, &end);
    if (rc) return rc;
  } else if (is_term(p)) {
    take(p);
  } else if (is_id(p) || p->kind == WLT_INDEXED) {
    return take_name_default(p, c);
  } else {
    if (!take_kind(p, WLT_PLUS) && !take_kind(p, WLT_MINUS)) return syntax_error(p);
    if (!is_term(p)) return syntax_error(p);
    take(p);
  }
  size_t n = p->last.pos + p->last.n - from;
  c->dflt = wl_arena_strndup(p->arena, p->lex.sql + from, n);
  c->constant = c->dflt && is_literal(c->dflt, n);
  return c->dflt ? WL_OK : wl_nomem(p->err);
}

/* [NOT] DEFERRABLE [INITIALLY …], which says nothing where there are no foreign keys. */
static wl_status take_deferrable(parse *p) {
  take(p);
  if (!take_word(p, "INITIALLY")) return WL_OK;
  return take_word(p, "DEFERRED") ? WL_OK : need_word(p, "IMMEDIATE");
}

static wl_status take_primary(parse *p, int col) {
  static const wl_u8 coll = COLL_OF_COLUMN;
  wl_status rc = need_word(p, "KEY");
  if (rc) return rc;
  bool desc = p->kind == WLT_DESC;
  if (desc || p->kind == WLT_ASC) take(p);
  rc = refuse_conflict(p);
  if (rc) return rc;
  if (is_word(p, "AUTOINCREMENT")) return refuse_autoincrement(p);
  if (!desc && p->d->rowid_col < 0 && is_integer(&p->d->cols[col])) {
    p->d->rowid_col = col;
    return WL_OK;
  }
  return add_key(p, &col, &coll, 1, true);
}

/* One constraint of a column; *end: there is none. */
static wl_status column_constraint(parse *p, int col, bool *end) {
  static const wl_u8 coll = COLL_OF_COLUMN;
  wl_decl_column *c = &p->d->cols[col];
  *end = false;
  if (take_word(p, "CONSTRAINT")) return take_name(p, &p->name);
  if (take_word(p, "DEFAULT")) return take_default(p, c);
  if (take_kind(p, WLT_NULL)) return refuse_conflict(p);
  if (take_kind(p, WLT_NOT)) {
    if (is_word(p, "DEFERRABLE")) return take_deferrable(p);
    wl_status rc = need(p, WLT_NULL);
    c->not_null = true;
    return rc ? rc : refuse_conflict(p);
  }
  if (is_word(p, "DEFERRABLE")) return take_deferrable(p);
  if (take_word(p, "PRIMARY")) return take_primary(p, col);
  if (take_word(p, "UNIQUE")) {
    wl_status rc = refuse_conflict(p);
    return rc ? rc : add_key(p, &col, &coll, 1, false);
  }
  if (take_word(p, "CHECK")) return take_check(p);
  if (take_kind(p, WLT_COLLATE)) return take_collation(p, &c->coll);
  if (is_word(p, "REFERENCES")) return refuse_reference(p);
  if (p->kind == WLT_AS || is_word(p, "GENERATED")) return refuse_generated(p);
  *end = true;
  return WL_OK;
}

static wl_status take_column(parse *p) {
  wl_decl *d = p->d;
  wl_decl_column *c = &d->cols[d->n_cols];
  bool end = false;
  p->name = NULL;
  wl_status rc = take_name(p, &c->name);
  if (!rc && column_of(d, c->name) >= 0)
    rc = wl_fail(p->err, WL_ERROR, "duplicate column name: %s", c->name);
  if (!rc) rc = take_type(p, c);
  if (!rc) d->n_cols++;
  while (!rc && !end) rc = column_constraint(p, d->n_cols - 1, &end);
  return rc;
}

/* ---- table constraints */

static bool is_table_constraint(const parse *p) {
  return is_word(p, "CONSTRAINT") || is_word(p, "PRIMARY") || is_word(p, "UNIQUE") ||
         is_word(p, "CHECK") || is_word(p, "FOREIGN");
}

static wl_status take_table_constraint(parse *p) {
  wl_status rc = WL_OK;
  if (take_word(p, "CONSTRAINT")) return take_name(p, &p->name);
  if (take_word(p, "UNIQUE")) return take_key(p, false);
  if (take_word(p, "CHECK")) {
    rc = take_check(p);
    return rc ? rc : refuse_conflict(p);
  }
  if (take_word(p, "PRIMARY")) {
    rc = need_word(p, "KEY");
    return rc ? rc : take_key(p, true);
  }
  return is_word(p, "FOREIGN") ? refuse_reference(p) : syntax_error(p);
}

/* ---- the whole */

static bool same_key(const wl_decl_key *a, const wl_decl_key *b) {
  return a->n == b->n && memcmp(a->cols, b->cols, (size_t)a->n * sizeof *a->cols) == 0 &&
         memcmp(a->colls, b->colls, (size_t)a->n * sizeof *a->colls) == 0;
}

/* Collations, duplicates, order. A key of the rowid alone is the rowid, which is checked first. */
static void finish_keys(wl_decl *d) {
  int n = 0;
  for (int i = 0; i < d->n_keys; i++) {
    wl_decl_key k = d->keys[i];
    int at = 0;
    for (int j = 0; j < k.n; j++)
      if (k.colls[j] == COLL_OF_COLUMN) k.colls[j] = d->cols[k.cols[j]].coll;
    if (k.n == 1 && k.cols[0] == d->rowid_col) continue;
    while (at < n && !same_key(&d->keys[at], &k)) at++;
    if (at < n) {
      d->keys[at].primary |= k.primary;
    } else {
      d->keys[n++] = k;
    }
  }
  d->n_keys = n;
  for (int i = 0; i < n / 2; i++) {
    wl_decl_key k = d->keys[i];
    d->keys[i] = d->keys[n - 1 - i];
    d->keys[n - 1 - i] = k;
  }
}

static wl_status keep_source(parse *p) {
  size_t n = 1;
  for (int i = 0; i < p->n_args; i++) n += strlen(p->args[i]) + 2;
  char *s = wl_arena_alloc(p->arena, n), *at = s;
  if (!s) return wl_nomem(p->err);
  for (int i = 0; i < p->n_args; i++) {
    size_t k = strlen(p->args[i]);
    if (i) at = (char *)memcpy(at, ", ", 2) + 2;
    at = (char *)memcpy(at, p->args[i], k) + k;
  }
  *at = 0;
  p->d->source = s;
  return WL_OK;
}

wl_status wl_declare(wl_arena *arena, const char *const *args, int n_args, wl_decl **out,
                     wl_error *err) {
  parse p = {.arena = arena, .err = err, .args = args, .n_args = n_args};
  bool columns = true;
  p.d = WL_NEW(arena, wl_decl);
  if (!p.d) return wl_nomem(err);
  p.d->cols = WL_NEW_N(arena, wl_decl_column, n_args + 1);
  if (!p.d->cols) return wl_nomem(err);
  p.d->rowid_col = -1;
  wl_status rc = keep_source(&p);
  for (p.arg = 0; !rc && p.arg < n_args; p.arg++) {
    wl_lex_init(&p.lex, args[p.arg], strlen(args[p.arg]));
    take(&p);
    if (columns && p.d->n_cols > 0 && is_table_constraint(&p)) {
      columns = false; /* a constraint's name of the last column still counts, as in SQLite */
    } else if (!columns) {
      p.name = NULL;
    }
    rc = columns ? take_column(&p) : take_table_constraint(&p);
    while (!rc && !columns && p.kind != WL_LEX_END) rc = take_table_constraint(&p);
    if (!rc && p.kind != WL_LEX_END) rc = syntax_error(&p);
  }
  if (!rc && p.d->n_cols == 0)
    rc = wl_fail(err, WL_ERROR, "a tablet table needs at least one column");
  if (rc) return rc;
  finish_keys(p.d);
  if (!wl_decl_rowid_name(p.d))
    return wl_fail(err, WL_ERROR,
                   "rowid, _rowid_ and oid cannot all three be columns of a tablet table");
  *out = p.d;
  return WL_OK;
}

const char *wl_decl_rowid_name(const wl_decl *d) {
  static const char *const names[] = {"rowid", "_rowid_", "oid"};
  if (d->rowid_col >= 0) return d->cols[d->rowid_col].name;
  for (int i = 0; i < 3; i++)
    if (column_of(d, names[i]) < 0) return names[i];
  return NULL;
}
