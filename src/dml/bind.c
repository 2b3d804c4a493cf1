/*
** Binds a change to its table: which column each value goes to, and which key each ON CONFLICT
** names. SQLite refuses some statements on virtual tables without checking all of their names.
** Those names are checked here, with SQLite's messages.
*/
#include "dml/change.h"
#include "base/mem.h"
#include "value/collation.h"
#include <string.h>

bool wl_rowid_name(const char *name) {
  return sqlite3_stricmp(name, "rowid") == 0 || sqlite3_stricmp(name, "_rowid_") == 0 ||
         sqlite3_stricmp(name, "oid") == 0;
}

/* The column of that name, WL_COL_ROWID (also for the name of its column), or WL_COL_NONE. */
static int column_of(const wl_change *m, const char *name) {
  for (int i = 0; i < m->decl->n_cols; i++)
    if (sqlite3_stricmp(m->decl->cols[i].name, name) == 0)
      return i == m->decl->rowid_col ? WL_COL_ROWID : i;
  return wl_rowid_name(name) ? WL_COL_ROWID : WL_COL_NONE;
}

static bool is_command(const wl_change *m, const char *name) {
  return column_of(m, name) == WL_COL_NONE && sqlite3_stricmp(name, wl_tablets_name(m->t)) == 0;
}

/* A database by its position in SQLite's search order: temp, main, then in the order of ATTACH. */
static const char *schema_at(sqlite3 *db, int k) {
  if (k < 2) return k ? "main" : "temp";
  return sqlite3_libversion_number() >= 3039000 ? sqlite3_db_name(db, k) : NULL;
}

/* Finds the tablet table that a statement names, and its schema. NULL: there is none. */
static wl_tablets *table_of(sqlite3 *db, const wl_dml *d, const char **schema) {
  *schema = d->schema;
  if (d->schema) return wl_tablets_find(db, d->schema, d->name);
  for (int k = 0; (*schema = schema_at(db, k)) != NULL; k++) {
    wl_tablets *t = wl_tablets_find(db, *schema, d->name);
    if (t) return t;
    if (sqlite3_table_column_metadata(db, *schema, d->name, NULL, NULL, NULL, NULL, NULL, NULL) ==
        SQLITE_OK)
      break; /* an ordinary table of that name comes first */
  }
  return NULL;
}

static wl_status find_table(wl_change *m, wl_error *err) {
  m->t = table_of(m->conn->db, m->d, &m->schema);
  if (!m->t) return wl_not_taken(err, "it does not change a tablet table");
  m->serial = wl_tablets_serial(m->t);
  m->schema = wl_arena_printf(&m->arena, "%s", m->schema);
  return m->arena.failed ? wl_nomem(err) : WL_OK;
}

/* ---- SET */

static wl_status bind_sets(wl_change *m, const wl_assign *list, wl_setting **out, int *n_out,
                           wl_error *err) {
  int n = 0;
  for (const wl_assign *s = list; s; s = s->next) n += wl_list_length(s->names);
  wl_setting *sets = *out = WL_NEW_N(&m->arena, wl_setting, n + 1);
  if (!sets) return wl_nomem(err);
  *n_out = 0;
  for (const wl_assign *s = list; s; s = s->next) {
    int parts = s->row ? wl_list_length(s->names) : 0, part = 0;
    if (parts == 1) parts = 0;
    const wl_expr_list *v = parts && s->value->kind == WL_E_VECTOR ? s->value->list : NULL;
    for (const wl_expr_list *l = s->names; l; l = l->next, part++) {
      int col = column_of(m, l->expr->name);
      if (col == WL_COL_NONE) return wl_fail(err, WL_ERROR, "no such column: %s", l->expr->name);
      int k = 0;
      while (k < *n_out && sets[k].col != col) k++; /* the last assignment counts */
      if (k == *n_out) ++*n_out;
      sets[k] = (wl_setting){col, v ? v->expr : s->value, part, v ? 0 : parts};
      if (v) v = v->next;
    }
  }
  return WL_OK;
}

/* ---- what an expression reads */

static bool select_has(const wl_change *m, const wl_select *s,
                       bool (*is)(const wl_change *m, const wl_expr *e, const wl_from_item *s));

typedef bool (*test)(const wl_change *m, const wl_expr *e, const wl_from_item *s);

static bool expr_has(const wl_change *m, const wl_expr *e, test is);

static bool list_has(const wl_change *m, const wl_expr_list *l, test is) {
  for (; l; l = l->next)
    if (expr_has(m, l->expr, is)) return true;
  return false;
}

static bool order_has(const wl_change *m, const wl_order_term *t, test is) {
  for (; t; t = t->next)
    if (expr_has(m, t->expr, is)) return true;
  return false;
}

static bool expr_has(const wl_change *m, const wl_expr *e, test is) {
  if (!e) return false;
  if (is(m, e, NULL)) return true;
  if (expr_has(m, e->a, is) || expr_has(m, e->b, is) || expr_has(m, e->c, is) ||
      list_has(m, e->list, is) || select_has(m, e->select, is))
    return true;
  for (const wl_window *w = e->window; w; w = w->next)
    if (list_has(m, w->partition, is) || order_has(m, w->order, is)) return true;
  return false;
}

static bool source_has(const wl_change *m, const wl_from_item *s, test is) {
  for (; s; s = s->next)
    if (is(m, NULL, s) || expr_has(m, s->on, is) || list_has(m, s->args, is) ||
        select_has(m, s->select, is) || source_has(m, s->nested, is))
      return true;
  return false;
}

static bool select_has(const wl_change *m, const wl_select *s, test is) {
  for (; s; s = s->prior) {
    for (const wl_cte *c = s->with; c; c = c->next)
      if (select_has(m, c->select, is)) return true;
    for (const wl_result_col *c = s->cols; c; c = c->next)
      if (expr_has(m, c->expr, is)) return true;
    if (list_has(m, s->values, is) || source_has(m, s->from, is) || expr_has(m, s->where, is) ||
        list_has(m, s->group_by, is) || expr_has(m, s->having, is) ||
        order_has(m, s->order_by, is) || expr_has(m, s->limit, is) || expr_has(m, s->offset, is))
      return true;
  }
  return false;
}

static bool is_cte(const wl_change *m, const char *name) {
  for (const wl_cte *c = m->d->with; c; c = c->next)
    if (sqlite3_stricmp(name, c->name) == 0) return true;
  return false;
}

/* Whether a source is the table itself, or something that may read it, such as a view or a
** function. WITH entries are not followed here, because an entry may name itself. */
static bool may_read_directly(const wl_change *m, const wl_expr *e, const wl_from_item *s) {
  const char *name = s ? s->name : e->kind == WL_E_IN ? e->name : NULL;
  if (!name) return false;
  if (sqlite3_stricmp(name, m->d->name) == 0) return true;
  if (is_cte(m, name)) return false;
  wl_table *t;
  wl_error ignored;
  const char *schema = s ? s->schema : e->schema;
  return wl_store_named(m->conn->store, schema, name, &t, &ignored) != WL_OK || t->view_sql;
}

/* The same, or any WITH entry if one of them may. */
static bool may_read_target(const wl_change *m, const wl_expr *e, const wl_from_item *s) {
  const char *name = s ? s->name : e->kind == WL_E_IN ? e->name : NULL;
  if (!name || !is_cte(m, name)) return may_read_directly(m, e, s);
  for (const wl_cte *c = m->d->with; c; c = c->next)
    if (select_has(m, c->select, may_read_directly)) return true;
  return sqlite3_stricmp(name, m->d->name) == 0;
}

static bool is_subquery(const wl_change *m, const wl_expr *e, const wl_from_item *s) {
  (void)m;
  (void)s;
  return e && (e->kind == WL_E_SELECT || e->kind == WL_E_EXISTS ||
               (e->kind == WL_E_IN && (e->select || e->name)));
}

static bool is_live(const wl_change *m) {
  const wl_dml *d = m->d;
  if (d->from) return false; /* SQLite also reads everything first */
  bool with = false;
  for (const wl_cte *c = d->with; c; c = c->next) with |= select_has(m, c->select, may_read_target);
  for (int i = 0; i < m->n_sets; i++) {
    if (m->sets[i].col == WL_COL_ROWID && d->conflict == WL_CONFLICT_REPLACE) return true;
    if (expr_has(m, m->sets[i].value, with ? is_subquery : may_read_target)) return true;
  }
  return false;
}

/* ---- ON CONFLICT */

static const wl_expr *without_collate(const wl_expr *e, const char **coll) {
  while (e->kind == WL_E_COLLATE) {
    if (!*coll) *coll = e->name;
    e = e->a;
  }
  return e;
}

/* Whether a term of the conflict target is this column of a key. */
static bool term_is(const wl_change *m, const wl_expr *e, int col, wl_u8 key_coll) {
  const char *coll = NULL;
  e = without_collate(e, &coll);
  if (e->kind != WL_E_NAME) return false;
  int k = column_of(m, e->name); /* for SQLite, too, the rowid is not a column of an index */
  return k == col && (!coll || wl_collation_is(coll, key_coll));
}

static wl_status bind_target(wl_change *m, const wl_upsert *u, int *key, wl_error *err) {
  *key = WL_KEY_ANY;
  if (!u->target) return WL_OK;
  int n = 0;
  for (const wl_order_term *t = u->target; t; t = t->next, n++) {
    const char *coll = NULL;
    const wl_expr *e = without_collate(t->expr, &coll);
    if (e->kind == WL_E_NAME && column_of(m, e->name) == WL_COL_NONE)
      return wl_fail(err, WL_ERROR, "no such column: %s", e->name);
  }
  const char *coll = NULL;
  const wl_expr *first = without_collate(u->target->expr, &coll);
  if (n == 1 && first->kind == WL_E_NAME && column_of(m, first->name) == WL_COL_ROWID) {
    *key = WL_KEY_ROWID;
    return WL_OK;
  }
  for (int k = 0; k < m->decl->n_keys; k++) {
    const wl_decl_key *d = &m->decl->keys[k];
    bool same = d->n == n;
    for (int i = 0; i < d->n && same; i++) {
      const wl_order_term *t = u->target;
      while (t && !term_is(m, t->expr, d->cols[i], d->colls[i])) t = t->next;
      same = t != NULL;
    }
    if (!same) continue;
    *key = k;
    return WL_OK;
  }
  char which[16] = "";
  int nth = u->next || u != m->d->upserts ? m->n_clauses : 0;
  if (nth) sqlite3_snprintf((int)sizeof which, which, "%r ", nth);
  return wl_fail(err, WL_ERROR, WL_NO_TARGET, which);
}

static wl_status bind_clauses(wl_change *m, wl_error *err) {
  int n = 0;
  for (const wl_upsert *u = m->d->upserts; u; u = u->next) n++;
  m->clauses = WL_NEW_N(&m->arena, wl_clause, n + 1);
  if (!m->clauses) return wl_nomem(err);
  for (const wl_upsert *u = m->d->upserts; u; u = u->next) {
    wl_clause *c = &m->clauses[m->n_clauses++];
    c->u = u;
    wl_status rc = bind_target(m, u, &c->key, err);
    if (!rc && u->updates) rc = bind_sets(m, u->sets, &c->sets, &c->n_sets, err);
    if (rc) return rc;
  }
  return WL_OK;
}

/* ---- INSERT */

static wl_status bind_insert(wl_change *m, wl_error *err) {
  const wl_dml *d = m->d;
  int n_cols = m->decl->n_cols;
  m->from = WL_NEW_N(&m->arena, int, n_cols + 1);
  if (!m->from) return wl_nomem(err);
  m->rowid_from = WL_COL_NONE;
  for (int i = 0; i < n_cols; i++) m->from[i] = WL_COL_NONE;
  for (const wl_expr_list *l = d->columns; l; l = l->next, m->n_source++) {
    int col = column_of(m, l->expr->name);
    if (col == WL_COL_NONE)
      return wl_fail(err, WL_ERROR, "table %s has no column named %s", wl_tablets_name(m->t),
                     l->expr->name);
    if (col == WL_COL_ROWID)
      m->rowid_from = m->n_source; /* of several rowids the last counts */
    else if (m->from[col] == WL_COL_NONE)
      m->from[col] = m->n_source; /* of several equal columns the first counts */
  }
  if (!d->columns && !d->default_values) {
    m->n_source = n_cols;
    for (int i = 0; i < n_cols; i++)
      if (i == m->decl->rowid_col)
        m->rowid_from = i;
      else
        m->from[i] = i;
  }
  if (d->default_values) {
    m->n_source = 0;
    m->rowid_from = WL_COL_NONE;
    for (int i = 0; i < n_cols; i++) m->from[i] = WL_COL_NONE;
  }
  return bind_clauses(m, err);
}

wl_status wl_change_bind(wl_change *m, wl_error *err) {
  if (m->d->kind == WL_DML_INSERT) return bind_insert(m, err);
  if (m->d->kind == WL_DML_DELETE) return WL_OK;
  wl_status rc = bind_sets(m, m->d->sets, &m->sets, &m->n_sets, err);
  if (!rc) m->live = is_live(m);
  return rc;
}

bool wl_change_is_current(wl_change *m) {
  const char *schema;
  wl_tablets *t = table_of(m->conn->db, m->d, &schema);
  if (!t || t != m->t || wl_tablets_serial(t) != m->serial) return false;
  if (m->d->kind != WL_DML_UPDATE) return true;
  return m->live == is_live(m); /* views may have changed */
}

/* Whether it writes to the hidden column for commands, which has the table's name. */
static bool commands(const wl_change *m) {
  for (const wl_expr_list *l = m->d->columns; l; l = l->next)
    if (is_command(m, l->expr->name)) return true;
  for (const wl_assign *a = m->d->sets; a; a = a->next)
    for (const wl_expr_list *l = a->names; l; l = l->next)
      if (is_command(m, l->expr->name)) return true;
  return false;
}

wl_status wl_change_open(wl_conn *c, const char *sql, size_t n, wl_change *m, wl_error *err) {
  *m = (wl_change){.conn = c};
  wl_arena_init(&m->arena);
  m->sql = wl_arena_strndup(&m->arena, sql, n);
  wl_status rc = m->sql ? wl_parse_dml(&m->arena, m->sql, n, &m->d, err) : wl_nomem(err);
  if (rc == WL_ERROR) rc = wl_not_taken(err, "warplite cannot parse it (%.200s)", err->text);
  if (!rc && !m->d) rc = wl_not_taken(err, "it is not an INSERT, UPDATE or DELETE");
  if (!rc) rc = find_table(m, err);
  if (rc) goto done;
  m->decl = wl_tablets_decl(m->t);
  static const char *const names[] = {"rowid", "_rowid_", "oid"};
  for (int k = 0; k < 3 && !m->rowid; k++) {
    m->rowid = names[k];
    for (int i = 0; i < m->decl->n_cols; i++)
      if (sqlite3_stricmp(m->decl->cols[i].name, names[k]) == 0) m->rowid = NULL;
  }
  if (!m->rowid && m->decl->rowid_col >= 0) m->rowid = m->decl->cols[m->decl->rowid_col].name;
  if (!m->rowid) rc = wl_not_taken(err, "columns hide every name of the rowid");
  if (!rc && commands(m)) rc = wl_not_taken(err, "it is a command to the table");
done:
  if (rc) wl_change_close(m);
  return rc;
}

void wl_change_close(wl_change *m) {
  wl_arena_close(&m->arena);
  *m = (wl_change){0};
}

/* ---- small statements */

/* The column that a conjunct of WHERE compares with one value, or WL_COL_NONE. */
static int fixed_column(const wl_change *m, const wl_expr *e) {
  if (e->kind != WL_E_BINARY || e->op != WL_OP_EQ) return WL_COL_NONE;
  const wl_expr *sides[] = {e->a, e->b};
  for (int k = 0; k < 2; k++) {
    const wl_expr *other = sides[1 - k];
    bool constant = other->kind == WL_E_PARAM || other->kind == WL_E_INT ||
                    other->kind == WL_E_TEXT || other->kind == WL_E_REAL;
    if (constant && sides[k]->kind == WL_E_NAME) return column_of(m, sides[k]->name);
  }
  return WL_COL_NONE;
}

static bool fixes(const wl_change *m, const wl_expr *e, int col) {
  if (!e) return false;
  if (e->kind == WL_E_BINARY && e->op == WL_OP_AND)
    return fixes(m, e->a, col) || fixes(m, e->b, col);
  return fixed_column(m, e) == col;
}

bool wl_change_single(const wl_change *m) {
  const wl_dml *d = m->d;
  if (d->kind == WL_DML_INSERT || d->from) return false;
  if (fixes(m, d->where, WL_COL_ROWID)) return true;
  for (int k = 0; k < m->decl->n_keys; k++) {
    bool all = true;
    for (int i = 0; i < m->decl->keys[k].n && all; i++) {
      int col = m->decl->keys[k].cols[i];
      all = fixes(m, d->where, col == m->decl->rowid_col ? WL_COL_ROWID : col);
    }
    if (all) return true;
  }
  return false;
}

bool wl_change_small(const wl_change *m) {
  const wl_dml *d = m->d;
  if (d->returning || d->upserts || d->from || d->order_by || d->limit || d->with) return false;
  if (d->kind == WL_DML_INSERT) {
    if (d->default_values || !d->select->is_values || d->select->prior) return false;
    int n = wl_list_length(d->select->values), n_rowids = 0;
    for (const wl_expr_list *l = d->columns; l; l = l->next)
      n_rowids += column_of(m, l->expr->name) == WL_COL_ROWID;
    if (n_rowids > 1) return false; /* the last one counts, and xUpdate cannot tell which that is */
    for (int i = 0; i < m->decl->n_cols; i++)
      if (m->decl->cols[i].dflt && (m->from[i] == WL_COL_NONE || m->decl->cols[i].not_null))
        return false; /* xUpdate cannot tell NULL from an omitted column */
    for (const wl_expr_list *l = d->select->values; l; l = l->next)
      if (expr_has(m, l->expr, is_subquery)) return false;
    return n <= 16;
  }
  if (m->live || expr_has(m, d->where, is_subquery)) return false;
  for (int i = 0; i < m->n_sets; i++)
    if (expr_has(m, m->sets[i].value, is_subquery)) return false;
  return wl_change_single(m);
}

wl_request wl_change_request(const wl_change *m, const char *sql) {
  const wl_dml *d = m->d;
  wl_request q = {.sql = sql, .n_sql = strlen(sql), .is_part = true, .copies = true};
  bool inserts = d->kind == WL_DML_INSERT;
  if (inserts && (!d->select || (d->select->is_values && !d->select->prior)))
    q.refused = "the rows are a VALUES list";
  else if (!inserts && wl_change_single(m))
    q.cheap = "at most one row, found by its key";
  return q;
}
