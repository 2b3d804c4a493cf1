/*
** The SQL texts made from a change: pieces of the original, with numbered parameters. text.h and
** dml/run.c say what each is for.
*/
#include "dml/text.h"
#include "tablet/write/dmlrow.h"
#include "route/args.h"
#include "parse.h"
#include "sql/lex.h"
#include <string.h>

/* ---- pieces of the original */

static int param_at(const wl_dml *d, size_t pos) {
  int lo = 0, hi = d->n_param_at;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (d->param_at[mid].pos < pos)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < d->n_param_at && d->param_at[lo].pos == pos ? d->param_at[lo].index : 0;
}

static bool name_is(const char *sql, wl_token t, const char *name) {
  size_t n = strlen(name);
  bool quoted = strchr("\"[`'", sql[t.pos]) != NULL;
  if (t.n != n + (quoted ? 2 : 0)) return false;
  return sqlite3_strnicmp(sql + t.pos + quoted, name, (int)n) == 0;
}

int wl_change_excluded(const wl_change *m, int col) {
  return m->d->n_params + 2 + col; /* the rowid's is the first */
}

int wl_change_at(const wl_change *m) {
  return m->d->n_params + 2 + m->decl->n_cols;
}

/* The parameter for excluded.name. 0: there is no such column. */
static int excluded_param(const wl_change *m, wl_token name) {
  static const char *const rowids[] = {"rowid", "_rowid_", "oid"};
  for (int i = 0; i < m->decl->n_cols; i++)
    if (name_is(m->sql, name, m->decl->cols[i].name))
      return wl_change_excluded(m, i == m->decl->rowid_col ? WL_COL_ROWID : i);
  for (int k = 0; k < 3; k++)
    if (name_is(m->sql, name, rowids[k])) return wl_change_excluded(m, WL_COL_ROWID);
  return 0;
}

/*
** Appends a piece of the text. excluded: replaces references to the row excluded by parameters. In
** SQLite, too, they have neither affinity nor collation.
*/
static void put_piece(sqlite3_str *out, const wl_change *m, size_t pos, size_t end, bool excluded) {
  wl_lexer lex;
  wl_token t;
  size_t done = pos;
  wl_lex_init(&lex, m->sql, end);
  lex.pos = pos;
  for (int kind; (kind = wl_lex_next(&lex, &t)) > 0;) {
    int index = kind == WLT_VARIABLE ? param_at(m->d, t.pos) : 0;
    size_t past = t.pos + t.n;
    if (excluded && kind == WLT_ID && name_is(m->sql, t, "excluded")) {
      wl_lexer ahead = lex;
      wl_token dot, name;
      if (wl_lex_next(&ahead, &dot) == WLT_DOT && wl_lex_next(&ahead, &name) > 0) {
        index = excluded_param(m, name);
        past = name.pos + name.n;
        if (index) lex = ahead;
      }
    }
    if (!index) continue;
    sqlite3_str_append(out, m->sql + done, (int)(t.pos - done));
    /* No space is needed after the number, because the next token was separate before. */
    sqlite3_str_appendf(out, "?%d", index);
    done = past;
  }
  sqlite3_str_append(out, m->sql + done, (int)(end - done));
  sqlite3_str_appendall(out, "\n"); /* the piece may end in a comment */
}

static void put_span(sqlite3_str *out, const wl_change *m, wl_span s) {
  if (s.end > s.pos) put_piece(out, m, s.pos, s.end, false);
}

static void put_expr(sqlite3_str *out, const wl_change *m, const wl_expr *e, bool excluded) {
  put_piece(out, m, e->pos, e->end, excluded);
}

/* Appends a SELECT in exactly one pair of parentheses. */
static void put_select(sqlite3_str *out, const wl_change *m, const wl_expr *e, bool excluded) {
  wl_lexer lex;
  wl_token t;
  size_t from = e->pos, end = e->end, inner = e->pos;
  wl_lex_init(&lex, m->sql, e->end);
  lex.pos = e->pos;
  int opens = 0;
  while (wl_lex_next(&lex, &t) == WLT_LP) {
    opens++;
    from = inner;
    inner = t.pos;
  }
  from = inner; /* the last '(' */
  /* Of the closing parentheses, leave out the last opens - 1. */
  for (int k = 1; k < opens; k++) {
    wl_lexer back;
    size_t last = end;
    wl_lex_init(&back, m->sql, end);
    back.pos = from;
    while (wl_lex_next(&back, &t) > 0) last = t.pos;
    end = last;
  }
  put_piece(out, m, from, end, excluded);
}

static void put_value(sqlite3_str *out, const wl_change *m, const wl_setting *s, bool excluded) {
  if (!s->parts) {
    sqlite3_str_appendall(out, "(");
    put_expr(out, m, s->value, excluded);
    sqlite3_str_appendall(out, ")");
    return;
  }
  sqlite3_str_appendall(out, "(WITH \"wl row\"(");
  for (int i = 0; i < s->parts; i++) sqlite3_str_appendf(out, i ? ",c%d" : "c%d", i);
  sqlite3_str_appendall(out, ") AS ");
  put_select(out, m, s->value, excluded);
  sqlite3_str_appendf(out, " SELECT c%d FROM \"wl row\" LIMIT 1)", s->part);
}

static void put_table(sqlite3_str *out, const wl_change *m) {
  sqlite3_str_appendf(out, "\"%w\".\"%w\"", m->schema, wl_tablets_name(m->t));
  if (m->d->alias) sqlite3_str_appendf(out, " AS \"%w\"", m->d->alias);
}

static void put_rowid(sqlite3_str *out, const wl_change *m) {
  const wl_dml *d = m->d;
  sqlite3_str_appendf(out, "\"%w\".\"%w\"", d->alias ? d->alias : wl_tablets_name(m->t), m->rowid);
}

/* ---- the source */

char *wl_change_source_sql(const wl_change *m) {
  const wl_dml *d = m->d;
  sqlite3_str *s = sqlite3_str_new(m->conn->db);
  put_span(s, m, d->with_at);
  if (d->kind == WL_DML_INSERT) {
    bool nested = d->with && d->select->with;
    if (nested) sqlite3_str_appendall(s, "SELECT * FROM (");
    put_span(s, m, d->source_at);
    if (nested) sqlite3_str_appendall(s, ")");
    return sqlite3_str_finish(s);
  }
  sqlite3_str_appendall(s, "SELECT ");
  put_rowid(s, m);
  for (int i = 0; i < m->n_sets && !m->live; i++) {
    sqlite3_str_appendall(s, ", ");
    put_value(s, m, &m->sets[i], false);
  }
  sqlite3_str_appendall(s, " FROM ");
  put_table(s, m);
  if (d->from) {
    wl_lexer lex;
    wl_token t;
    size_t end = d->where ? d->where->pos : d->from_at.end;
    wl_lex_init(&lex, m->sql, d->from_at.end);
    lex.pos = d->from_at.pos;
    wl_lex_next(&lex, &t); /* FROM */
    size_t pos = lex.pos;
    if (d->where) /* skip WHERE backwards */
      while (wl_lex_next(&lex, &t) > 0 && t.pos < d->where->pos) end = t.pos;
    sqlite3_str_appendall(s, d->from->next ? ", (" : ", ");
    put_piece(s, m, pos, end, false);
    if (d->from->next) sqlite3_str_appendall(s, ")");
  }
  if (d->where) {
    sqlite3_str_appendall(s, " WHERE ");
    put_expr(s, m, d->where, false);
  }
  if (d->from && d->limit) {
    sqlite3_str_appendall(s, " GROUP BY ");
    put_rowid(s, m);
  }
  sqlite3_str_appendall(s, " ");
  put_span(s, m, d->tail_at);
  return sqlite3_str_finish(s);
}

char *wl_change_live_sql(const wl_change *m, int n) {
  sqlite3_str *s = sqlite3_str_new(m->conn->db);
  put_span(s, m, m->d->with_at);
  sqlite3_str_appendall(s, "SELECT ");
  put_rowid(s, m);
  for (int i = 0; i < m->n_sets; i++) {
    sqlite3_str_appendall(s, ", ");
    put_value(s, m, &m->sets[i], false);
  }
  sqlite3_str_appendall(s, " FROM ");
  put_table(s, m);
  sqlite3_str_appendall(s, " WHERE ");
  put_rowid(s, m);
  sqlite3_str_appendf(s, " IN (SELECT id FROM wl_rowids(?%d))", n);
  return sqlite3_str_finish(s);
}

/* ---- ON CONFLICT DO UPDATE */

char *wl_change_upsert_sql(const wl_change *m, const wl_clause *c) {
  sqlite3_str *s = sqlite3_str_new(m->conn->db);
  put_span(s, m, m->d->with_at);
  sqlite3_str_appendall(s, "SELECT ");
  for (int i = 0; i < c->n_sets; i++) {
    if (i) sqlite3_str_appendall(s, ", ");
    put_value(s, m, &c->sets[i], true);
  }
  sqlite3_str_appendall(s, " FROM ");
  put_table(s, m);
  sqlite3_str_appendall(s, " WHERE ");
  put_rowid(s, m);
  sqlite3_str_appendf(s, " = ?%d", wl_change_at(m));
  if (c->u->where) {
    sqlite3_str_appendall(s, " AND (");
    put_expr(s, m, c->u->where, true);
    sqlite3_str_appendall(s, ")");
  }
  return sqlite3_str_finish(s);
}

char *wl_change_target_sql(const wl_change *m, const wl_clause *c) {
  sqlite3_str *s = sqlite3_str_new(m->conn->db);
  for (const wl_order_term *t = c->u->target; t; t = t->next) {
    sqlite3_str_appendall(s, t == c->u->target ? "SELECT " : ", ");
    put_expr(s, m, t->expr, false);
  }
  sqlite3_str_appendall(s, " FROM ");
  put_table(s, m);
  return sqlite3_str_finish(s);
}

char *wl_change_clause_sql(const wl_change *m, const wl_clause *c) {
  sqlite3_str *s = sqlite3_str_new(m->conn->db);
  put_span(s, m, m->d->with_at);
  sqlite3_str_appendall(s, "UPDATE ");
  put_table(s, m);
  sqlite3_str_appendall(s, " SET ");
  bool first = true;
  for (const wl_assign *a = c->u->sets; a; a = a->next) {
    if (!first) sqlite3_str_appendall(s, ", ");
    first = false;
    if (a->row) sqlite3_str_appendall(s, "(");
    for (const wl_expr_list *l = a->names; l; l = l->next)
      sqlite3_str_appendf(s, l->next ? "\"%w\"," : "\"%w\"", l->expr->name);
    sqlite3_str_appendall(s, a->row ? ")=" : "=");
    put_expr(s, m, a->value, true);
  }
  if (c->u->where) {
    sqlite3_str_appendall(s, " WHERE ");
    put_expr(s, m, c->u->where, true);
  }
  return sqlite3_str_finish(s);
}

/* ---- texts for SQLite to check, without the parts that it refuses for virtual tables */

char *wl_change_checked_sql(const wl_change *m) {
  const wl_dml *d = m->d;
  sqlite3_str *s = sqlite3_str_new(m->conn->db);
  size_t end = d->kind == WL_DML_INSERT ? (d->upserts ? d->upserts_at.pos : d->returning_at.pos)
                                        : d->returning_at.pos;
  put_piece(s, m, d->with ? d->with_at.pos : d->start, end, false);
  put_span(s, m, d->tail_at);
  return sqlite3_str_finish(s);
}

/* ---- what the caller runs */

static bool has_params(const wl_dml *d, const wl_expr *e) {
  for (int i = 0; i < d->n_param_at; i++)
    if (d->param_at[i].pos >= e->pos && d->param_at[i].pos < e->end) return true;
  return false;
}

static int returned_column(const wl_change *m, const wl_expr *e) {
  for (int i = 0; e->kind == WL_E_NAME && i < m->decl->n_cols; i++)
    if (sqlite3_stricmp(m->decl->cols[i].name, e->name) == 0) return i;
  return -1;
}

/*
** RETURNING of a whole number in a REAL column gives an integer in SQLite if the row was inserted
** or updated, and our INSERT does the same. For a deleted row it gives a real, which wl_real()
** restores.
*/
static void put_deleted(sqlite3_str *s, const wl_change *m, int col) {
  const wl_decl_column *c = &m->decl->cols[col];
  /* It needs a name, also if the authorizer replaces the column by NULL. */
  sqlite3_str_appendf(s, c->affinity == 'E' ? "wl_real(\"%w\")" : "\"%w\"", c->name);
  sqlite3_str_appendf(s, " AS \"%w\"", c->name);
}

static bool has_real(const wl_change *m) {
  for (int i = 0; i < m->decl->n_cols; i++)
    if (m->decl->cols[i].affinity == 'E') return true;
  return false;
}

static void put_returned(sqlite3_str *s, const wl_change *m, const wl_result_col *c) {
  const wl_dml *d = m->d;
  bool deleted = d->kind == WL_DML_DELETE;
  int col = c->expr ? returned_column(m, c->expr) : -1;
  if (c->star && c->star_table) {
    sqlite3_str_appendf(s, "\"%w\".*", c->star_table);
  } else if (c->star && deleted) {
    for (int i = 0; i < m->decl->n_cols; i++) {
      if (i) sqlite3_str_appendall(s, ", ");
      put_deleted(s, m, i);
    }
  } else if (c->star) {
    sqlite3_str_appendall(s, "*");
  } else if (deleted && col >= 0 && !c->expr->table && !c->alias) {
    put_deleted(s, m, col);
  } else {
    bool plain = c->expr->kind == WL_E_NAME && !(col >= 0 && (c->alias || c->expr->table));
    bool real = deleted && !plain && has_real(m);
    if (real) sqlite3_str_appendall(s, "wl_real(");
    put_expr(s, m, c->expr, false);
    if (real) sqlite3_str_appendall(s, ")");
    if (c->alias)
      sqlite3_str_appendf(s, " AS \"%w\"", c->alias);
    else if (real && col >= 0)
      sqlite3_str_appendf(s, " AS \"%w\"", m->decl->cols[col].name);
    else if (real || has_params(d, c->expr)) /* its name is the text of the original */
      sqlite3_str_appendf(s, " AS \"%.*w\"", (int)(c->expr->end - c->expr->pos),
                          m->sql + c->expr->pos);
    else if (c->expr->kind == WL_E_NAME && col < 0 && m->decl->rowid_col >= 0 &&
             wl_rowid_name(c->expr->name))
      sqlite3_str_appendf(s, " AS \"%w\"", m->decl->cols[m->decl->rowid_col].name);
  }
}

static void put_returning(sqlite3_str *s, const wl_change *m) {
  for (const wl_result_col *c = m->d->returning; c; c = c->next) {
    sqlite3_str_appendall(s, c == m->d->returning ? " RETURNING " : ", ");
    put_returned(s, m, c);
  }
}

char *wl_change_outer_sql(const wl_change *m, const char *mask) {
  static const char *const explains[] = {"", "EXPLAIN ", "EXPLAIN QUERY PLAN "};
  static const char *const ors[] = {"", " OR ROLLBACK", " OR ABORT", " OR FAIL", "", ""};
  const wl_dml *d = m->d;
  const wl_decl *decl = m->decl;
  const char *name = wl_tablets_name(m->t);
  wl_i64 token = d->returning ? 0 : wl_dmlrun_token();
  sqlite3_str *s = sqlite3_str_new(m->conn->db);
  sqlite3_str_appendf(s, "%sINSERT%s INTO \"%w\".\"%w\"(", explains[d->explain], ors[d->conflict],
                      m->schema, name);
  if (d->returning) {
    if (decl->rowid_col < 0 || sqlite3_stricmp(m->rowid, decl->cols[decl->rowid_col].name) != 0)
      sqlite3_str_appendf(s, "%s,", m->rowid);
    for (int i = 0; i < decl->n_cols; i++) sqlite3_str_appendf(s, "\"%w\",", decl->cols[i].name);
  }
  sqlite3_str_appendf(s, "\"%w\") SELECT ", name);
  if (d->returning) {
    if (decl->rowid_col < 0 || sqlite3_stricmp(m->rowid, decl->cols[decl->rowid_col].name) != 0)
      sqlite3_str_appendall(s, "r,");
    for (int i = 0; i < decl->n_cols; i++) sqlite3_str_appendf(s, "c%d,", i);
    sqlite3_str_appendf(s, "k FROM wl_dml_%d(", decl->n_cols);
  } else {
    sqlite3_str_appendf(s, "%lld FROM wl_dml(", token);
  }
  sqlite3_str_appendf(s, "%Q,%lld", m->sql + d->body, token);
  int n = 0;
  const char **list = sqlite3_malloc64(((size_t)d->n_params + 1) * sizeof *list);
  if (!list) {
    sqlite3_free(sqlite3_str_finish(s));
    return NULL;
  }
  for (int i = 0; i < d->n_params; i++)
    if (d->params[i]) list[n++] = d->params[i];
  if (n) {
    sqlite3_str_appendall(s, ",");
    wl_args_append(s, list, n);
  }
  sqlite3_free(list);
  if (mask) sqlite3_str_appendf(s, n ? ",%Q" : ",NULL,%Q", mask);
  sqlite3_str_appendall(s, ")");
  put_returning(s, m);
  return sqlite3_str_finish(s);
}
