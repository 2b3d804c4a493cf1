/*
** A whole SELECT: one core, or a compound of several, with WITH, ORDER BY and LIMIT. Every SELECT
** becomes a separate query. This is the binder's entry point.
*/
#include "sql/bind_impl.h"
#include <assert.h>
#include <string.h>

wl_status wl_bind_open(binder *parent, const wl_select *s, bool in_from, binder **out) {
  binder *b = *out = WL_NEW(parent->edit.arena, binder);
  if (!b) return wl_nomem(parent->edit.err);
  *b = (binder){.catalog = parent->catalog,
                .all = parent->all,
                .parent = parent,
                .in_from = in_from,
                .schema = parent->schema,
                .sql = parent->sql,
                .named = parent->named,
                .select = s};
  wl_status rc = wl_edit_open(&b->edit, &parent->edit);
  if (!rc) b->edit.q->no_from = s && !s->from;
  return rc;
}

static wl_status limits(binder *b, const wl_select *s) {
  wl_status rc = s->limit ? wl_bind_expr(b, s->limit, &b->edit.q->limit) : WL_OK;
  return !rc && s->offset ? wl_bind_expr(b, s->offset, &b->edit.q->offset) : rc;
}

/* ---- one core */

static wl_status core(binder *b) {
  const wl_select *s = b->select;
  int place;
  wl_status rc = s->from ? wl_bind_from(b, s->from)
                         : wl_edit_source(&b->edit, (wl_bsource){.name = "one row"}, &place);
  return rc ? rc : wl_bind_core(b);
}

/* A row of VALUES. */
static wl_status values_row(binder *b, const wl_expr *row) {
  int place;
  wl_status rc = wl_edit_source(&b->edit, (wl_bsource){.name = "one row"}, &place);
  for (const wl_expr_list *l = row->list; l && !rc; l = l->next) {
    wl_bexpr *x;
    rc = wl_bind_expr(b, l->expr, &x);
    if (!rc) rc = wl_edit_result(&b->edit, x);
  }
  return rc;
}

/* ---- names of results */

static const wl_expr *without_collate(const wl_expr *e) {
  while (e->kind == WL_E_COLLATE) e = e->a;
  return e;
}

wl_status wl_bind_names(binder *b, const wl_select *s, const wl_query *q, const char ***out) {
  const char **names = *out = WL_NEW_N(b->edit.arena, const char *, q->n_results + 1);
  if (!names) return wl_nomem(b->edit.err);
  while (s->prior) s = s->prior;
  if (s->is_values) {
    for (int k = 0; k < q->n_results; k++)
      names[k] = wl_arena_printf(b->edit.arena, "column%d", k + 1);
    return b->edit.arena->failed ? wl_nomem(b->edit.err) : WL_OK;
  }
  binder *of = b->first_arm ? b->first_arm : b;
  for (int k = 0; k < q->n_results; k++) {
    const wl_result_col *c = of->result_cols[k];
    if (!c) {
      names[k] = of->result_names[k];
      continue;
    }
    const wl_expr *e = without_collate(c->expr);
    if (c->alias)
      names[k] = c->alias;
    else if (e->kind == WL_E_NAME)
      names[k] = e->name;
    else
      names[k] = wl_arena_strndup(b->edit.arena, b->sql + e->pos, e->end - e->pos);
    if (!names[k]) return wl_nomem(b->edit.err);
  }
  for (int k = 0; k < q->n_results; k++) {
    wl_status rc = wl_bind_unique(b, names, k, NULL, NULL);
    if (rc) return rc;
  }
  return WL_OK;
}

/* ---- compounds */

/* The columns whose collation differs between arms. *out is NULL if there are none. */
static wl_status mixed_colls(binder *b, wl_query **arms, int n, bool **out) {
  bool any = false, *mixed = WL_NEW_N(b->edit.arena, bool, arms[0]->n_results + 1);
  if (!mixed) return wl_nomem(b->edit.err);
  for (int i = 1; i < n; i++)
    for (int k = 0; k < arms[0]->n_results; k++)
      any |= mixed[k] |= wl_bexpr_coll(arms[i]->results[k]) != wl_bexpr_coll(arms[0]->results[k]);
  *out = any ? mixed : NULL;
  return WL_OK;
}

/* The rows of these arms, one arm after the other, become source 0 and the results of b's query. */
static wl_status read_arms(binder *b, wl_query **arms, int n, const char *name, wl_derived **out) {
  int place;
  wl_status rc = wl_edit_derived(&b->edit, arms[0], out);
  if (rc) return rc;
  (*out)->arms = arms;
  (*out)->n_arms = n;
  rc = wl_edit_source(&b->edit, (wl_bsource){.derived = *out, .name = name}, &place);
  return rc ? rc : wl_edit_arm_columns(&b->edit, arms, n);
}

/* The result column of one arm that an ORDER BY term names. An alias takes precedence over a
** column. */
static int arm_column(const binder *arm, const wl_expr *term) {
  if (!arm->result_cols) return -1; /* VALUES */
  for (int k = 0; k < arm->edit.q->n_results && !term->table; k++) {
    const wl_result_col *c = arm->result_cols[k];
    if (c && c->alias && sqlite3_stricmp(c->alias, term->name) == 0) return k;
  }
  for (int k = 0; k < arm->edit.q->n_results; k++) {
    const wl_result_col *c = arm->result_cols[k];
    const wl_expr *e = c ? without_collate(c->expr) : NULL;
    if (e && (e->kind != WL_E_NAME || (term->table && !e->table) ||
              (term->table && sqlite3_stricmp(e->table, term->table) != 0)))
      continue;
    if (!e && term->table) continue; /* it comes from a star, whose table is not recorded */
    if (sqlite3_stricmp(e ? e->name : arm->result_names[k], term->name) == 0) return k;
  }
  return -1;
}

/* ORDER BY of a compound names its columns, by number or by name. */
static wl_status compound_order(binder *b, const wl_select *s, binder **arms, int n) {
  wl_query *q = b->edit.q;
  int n_terms = q->n_results + 1;
  for (const wl_order_term *t = s->order_by; t; t = t->next) n_terms++;
  q->order = WL_NEW_N(b->edit.arena, wl_border, n_terms);
  bool *named = WL_NEW_N(b->edit.arena, bool, q->n_results + 1);
  if (!q->order || !named) return wl_nomem(b->edit.err);
  q->n_order = 0;
  for (const wl_order_term *t = s->order_by; t; t = t->next) {
    const wl_expr *e = t->expr;
    const char *coll = NULL;
    while (e->kind == WL_E_COLLATE) {
      if (!coll) coll = e->name;
      e = e->a;
    }
    wl_i64 i;
    int k = -1;
    if (wl_bind_term_number(e, &i) && i >= 1 && i <= q->n_results) k = (int)i - 1;
    /* a qualified name may mean a column that is written differently, so only the first arm
    ** counts */
    for (int a = 0; a < (e->table ? 1 : n) && k < 0 && e->kind == WL_E_NAME; a++)
      k = arm_column(arms[a], e);
    if (k < 0) return wl_not_taken(b->edit.err, "ORDER BY an expression of a compound SELECT");
    if (coll && (s->group_by || s->having)) /* then SQLite 3.40 groups the whole compound by it */
      return wl_not_taken(b->edit.err, "ORDER BY … COLLATE of a compound that ends in GROUP BY");
    for (int a = 0; a < n && coll; a++) /* then SQLite 3.40 drops rows that UNION ALL keeps */
      if (arms[a]->edit.q->distinct)
        return wl_not_taken(b->edit.err, "ORDER BY … COLLATE of a compound with SELECT DISTINCT");
    wl_border *o = &q->order[q->n_order++];
    o->expr = q->results[k];
    o->desc = t->desc;
    o->nulls_last = t->nulls ? t->nulls == 2 : t->desc;
    named[k] = true;
    wl_status rc = coll ? wl_bind_collate(b, coll, o->expr, &o->expr) : WL_OK;
    if (rc) return rc;
  }
  /* for UNION, EXCEPT and INTERSECT, SQLite then also sorts by the other columns */
  for (int k = 0; k < q->n_results && s->compound != WL_COMPOUND_UNION_ALL; k++)
    if (!named[k]) q->order[q->n_order++] = (wl_border){q->results[k], false, false};
  return WL_OK;
}

/* Binds a core of a compound as one query. VALUES with several rows become a derived source. */
static wl_status arm_of(binder *b, const wl_select *s, binder **out) {
  wl_status rc = wl_bind_open(b, s, true, out);
  if (rc) return rc;
  (*out)->in_compound = true;
  if (!s->is_values) return core(*out);
  if (!s->values->next) return values_row(*out, s->values->expr);
  int n = 0;
  wl_query **rows = WL_NEW_N(b->edit.arena, wl_query *, wl_list_length(s->values));
  wl_derived *d;
  if (!rows) return wl_nomem(b->edit.err);
  for (const wl_expr_list *l = s->values; l; l = l->next) {
    binder *row;
    rc = wl_bind_open(b, s, true, &row);
    if (!rc) rc = values_row(row, l->expr);
    if (rc) return rc;
    if (row->edit.q->n_outers)
      return wl_not_taken(b->edit.err, "VALUES that refer to an outer query");
    rows[n++] = row->edit.q;
  }
  (*out)->last_arm = rows[n - 1];
  return read_arms(*out, rows, n, "values", &d);
}

static wl_status compound_of(binder *b, const wl_select *last) {
  int n = 0, i = 0;
  for (const wl_select *s = last; s; s = s->prior) n++;
  binder **binders = WL_NEW_N(b->edit.arena, binder *, n);
  wl_query **arms = WL_NEW_N(b->edit.arena, wl_query *, n);
  wl_compound *ops = WL_NEW_N(b->edit.arena, wl_compound, n);
  const wl_select **cores = WL_NEW_N(b->edit.arena, const wl_select *, n);
  if (!cores || !binders || !arms || !ops) return wl_nomem(b->edit.err);
  i = n;
  for (const wl_select *s = last; s; s = s->prior) cores[--i] = s;
  wl_status rc = WL_OK;
  for (i = 0; i < n; i++) {
    rc = arm_of(b, cores[i], &binders[i]);
    if (rc) return rc;
    arms[i] = binders[i]->edit.q;
    if (arms[i]->n_outers)
      return wl_not_taken(b->edit.err, "a compound SELECT that refers to an outer query");
    ops[i] = i ? cores[i]->compound : WL_COMPOUND_UNION_ALL;
  }
  wl_derived *d = NULL;
  rc = read_arms(b, arms, n, "compound", &d);
  if (!rc) rc = mixed_colls(b, arms, n, &b->mixed);
  if (rc) return rc;
  d->ops = ops;
  /* with ORDER BY, SQLite builds a compound of more than two arms in steps; with COLLATE it uses a
  ** subquery in FROM */
  d->typed = last->order_by && n > 2;
  for (const wl_order_term *t = last->order_by; t; t = t->next)
    d->typed |= t->expr->kind == WL_E_COLLATE;
  d->typed_steps = d->typed;
  b->first_arm = binders[0];
  for (int k = 0; k < arms[0]->n_results; k++)
    for (i = 1; i < n; i++)
      b->affinities_differ |= arms[i]->results[k]->affinity != arms[0]->results[k]->affinity;
  b->last_arm = binders[n - 1]->last_arm ? binders[n - 1]->last_arm : arms[n - 1];
  return last->order_by ? compound_order(b, last, binders, n) : WL_OK;
}

/* ---- whole statements */

wl_status wl_bind_select(binder *parent, const wl_select *s, bool in_from, binder **child,
                         wl_query **out) {
  binder *b;
  wl_status rc = wl_bind_open(parent, s, in_from, &b);
  if (rc) return rc;
  if (b->all->depth > WL_MAX_NESTING) return wl_not_taken(b->edit.err, "queries nested too deeply");
  b->all->depth++;
  if (s->with) rc = wl_bind_ctes(b, s->with);
  if (!rc && (s->prior || s->is_values))
    rc = compound_of(b, s);
  else if (!rc)
    rc = core(b);
  if (!rc) rc = limits(b, s);
  b->all->depth--;
  *child = b;
  *out = b->edit.q;
  return rc;
}

wl_status wl_bind_depends(binder *b, const char *schema, const char *name, wl_u64 id) {
  wl_binding *all = b->all;
  /* t and main.t differ: t may be found in another database first */
  for (int k = 0; k < all->n_deps; k++) {
    const wl_bdep *d = &all->deps[k];
    if (d->id == id && !d->schema == !schema && (!schema || strcmp(d->schema, schema) == 0) &&
        strcmp(d->name, name) == 0)
      return WL_OK;
  }
  wl_status rc = WL_EDIT_ROOM(&b->edit, all->deps, all->n_deps);
  if (!rc) all->deps[all->n_deps++] = (wl_bdep){schema, name, id};
  return rc;
}

wl_status wl_bind(wl_arena *arena, const char *sql, const wl_stmt *stmt, const wl_catalog *catalog,
                  wl_query **out, wl_error *err) {
  wl_call_names calls = {0};
  wl_binding all = {0};
  wl_query none = {0};
  binder root = {.edit = {&none, arena, &calls, err},
                 .catalog = catalog,
                 .all = &all,
                 .sql = sql,
                 .in_from = true}; /* there is no outer query */
  binder *b;
  wl_status rc = wl_bind_select(&root, stmt->select, true, &b, out);
  if (rc) return rc;
  if (arena->failed) return wl_nomem(err);
  wl_query *q = *out;
  q->calls = calls.names;
  q->n_calls = calls.n;
  q->deps = all.deps;
  q->n_deps = all.n_deps;
  assert(wl_query_is_bound(q));
  return WL_OK;
}
