/*
** The clauses of a SELECT without compounds, except FROM: results, WHERE, GROUP BY, HAVING, ORDER
** BY. Part of the binder.
*/
#include "sql/bind_impl.h"
#include <string.h>

/* ---- results */

static wl_status one_result(binder *b, wl_bexpr *e, const wl_result_col *c) {
  int n = b->edit.q->n_results;
  wl_status rc = WL_EDIT_ROOM(&b->edit, b->result_cols, n);
  if (rc) return rc;
  b->result_cols[n] = c;
  return wl_edit_result(&b->edit, e);
}

static wl_status star_column(binder *b, wl_item *item, int k) {
  const char *name = wl_bind_item_name(item, k);
  wl_bexpr *x = NULL;
  wl_status rc = WL_OK;
  bool joined = false;
  for (wl_item *j = item + 1; j < b->items + b->n_items && item->before_right; j++)
    joined |= wl_bind_item_joins(j, name);
  if (joined) rc = wl_bind_name(b, &(wl_expr){.kind = WL_E_NAME, .name = name}, &x);
  if (!rc && !x) rc = wl_bind_item(b, item, k, &x);
  if (!rc) rc = one_result(b, x, NULL);
  if (!rc) b->result_names[b->edit.q->n_results - 1] = name;
  return rc;
}

/* Whether column k of an item is part of * or t.*. The first of several columns that USING joins
** stands for all of them. */
static bool in_star(const wl_item *item, int k, const char *table, bool first) {
  const char *of = item->nested ? item->nested->cols[k].table : item->name;
  if (wl_bind_item_hides(item, k)) return false;
  if (table) return of && sqlite3_stricmp(of, table) == 0;
  if (item->nested && item->nested->cols[k].no_expand) return false;
  return first || !wl_bind_item_joins(item, wl_bind_item_name(item, k));
}

static wl_status star(binder *b, const wl_result_col *c) {
  wl_status rc = WL_OK;
  for (int i = 0; i < b->n_items; i++)
    for (int k = 0; k < b->items[i].n_cols && !rc; k++)
      if (in_star(&b->items[i], k, c->star_table, i == 0)) rc = star_column(b, &b->items[i], k);
  return rc;
}

static wl_status bind_results(binder *b) {
  int n = 1;
  for (int i = 0; i < b->n_items; i++) n += b->items[i].n_cols;
  int most = 1;
  for (const wl_result_col *c = b->select->cols; c; c = c->next) most += c->star ? n : 1;
  b->result_names = WL_NEW_N(b->edit.arena, const char *, most);
  if (!b->result_names) return wl_nomem(b->edit.err);
  for (const wl_result_col *c = b->select->cols; c; c = c->next) {
    wl_bexpr *x;
    wl_status rc = WL_OK;
    if (c->star) {
      rc = star(b, c);
    } else {
      rc = wl_bind_expr(b, c->expr, &x);
      if (!rc) rc = one_result(b, x, c);
    }
    if (rc) return rc;
  }
  return WL_OK;
}

/* ---- GROUP BY and ORDER BY */

/* The number that a term consists of. +1 and -(-1) also name the first result column. */
bool wl_bind_term_number(const wl_expr *e, wl_i64 *out) {
  if (e->kind == WL_E_INT) {
    *out = e->i;
    return e->i <= INT32_MAX;
  }
  if (e->kind != WL_E_UNARY || (e->op != WL_OP_POS && e->op != WL_OP_NEG)) return false;
  if (!wl_bind_term_number(e->a, out)) return false;
  if (e->op == WL_OP_NEG) *out = -*out;
  return true;
}

/* The result column that an ORDER BY or GROUP BY term names by number or, in ORDER BY, by alias.
** NULL if the term is an expression. */
static wl_bexpr *named_result(const binder *b, const wl_expr *e, bool by_alias) {
  const wl_query *q = b->edit.q;
  while (e->kind == WL_E_COLLATE) e = e->a;
  wl_i64 i;
  if (wl_bind_term_number(e, &i) && i >= 1 && i <= q->n_results) return q->results[i - 1];
  if (!by_alias || e->kind != WL_E_NAME || e->table) return NULL;
  for (int k = 0; k < q->n_results; k++) {
    const wl_result_col *c = b->result_cols[k];
    if (c && c->alias && sqlite3_stricmp(c->alias, e->name) == 0) return q->results[k];
  }
  return NULL;
}

/* Binds a term: the result that it names, with the term's own COLLATE, or an expression. */
static wl_status term(binder *b, const wl_expr *e, bool by_alias, wl_bexpr **out) {
  wl_bexpr *named = named_result(b, e, by_alias);
  if (!named) return wl_bind_expr(b, e, out);
  if (e->kind != WL_E_COLLATE) {
    *out = named;
    return WL_OK;
  }
  return wl_bind_collate(b, e->name, named, out);
}

static wl_status bind_groups(binder *b) {
  wl_query *q = b->edit.q;
  int n = wl_list_length(b->select->group_by);
  q->groups = WL_NEW_N(b->edit.arena, wl_bexpr *, n + 1);
  if (!q->groups) return wl_nomem(b->edit.err);
  q->grouped = n > 0;
  b->in_where = true; /* no aggregates here */
  for (const wl_expr_list *l = b->select->group_by; l; l = l->next) {
    wl_status rc = term(b, l->expr, false, &q->groups[q->n_groups]);
    if (rc) return rc;
    q->n_groups++;
  }
  b->in_where = false;
  return WL_OK;
}

static wl_status bind_order(binder *b) {
  wl_query *q = b->edit.q;
  int n = 0;
  for (const wl_order_term *t = b->select->order_by; t; t = t->next) n++;
  q->order = WL_NEW_N(b->edit.arena, wl_border, n + 1);
  if (!q->order) return wl_nomem(b->edit.err);
  for (const wl_order_term *t = b->select->order_by; t; t = t->next) {
    wl_border *o = &q->order[q->n_order++];
    wl_status rc = term(b, t->expr, true, &o->expr);
    if (rc) return rc;
    o->desc = t->desc;
    o->nulls_last = t->nulls ? t->nulls == 2 : t->desc;
  }
  return WL_OK;
}

/* Binds one conjunct of WHERE. A subquery that only filters rows becomes a join later, so it adds
** nothing to the operators per row. */
static wl_status conjunct(binder *b, const wl_expr *e, wl_bexpr **out) {
  if (e->kind == WL_E_EXISTS) return wl_bind_exists(b, e, out);
  if (e->kind == WL_E_UNARY && e->op == WL_OP_NOT && e->a->kind == WL_E_EXISTS) {
    wl_status rc = wl_bind_exists(b, e->a, out);
    return rc ? rc : wl_edit_negate(&b->edit, true, out);
  }
  if (e->kind == WL_E_IN && !e->has_list && !e->negated) return wl_bind_in_select(b, e, out);
  return wl_bind_expr(b, e, out);
}

static wl_status bind_where(binder *b, const wl_expr *e) {
  if (e->kind == WL_E_BINARY && e->op == WL_OP_AND) {
    wl_status rc = bind_where(b, e->a);
    return rc ? rc : bind_where(b, e->b);
  }
  wl_bexpr *x;
  wl_status rc = conjunct(b, e, &x);
  return rc ? rc : wl_edit_and(&b->edit, &b->edit.q->where, x);
}

wl_status wl_bind_core(binder *b) {
  const wl_select *s = b->select;
  wl_query *q = b->edit.q;
  wl_status rc = WL_OK;
  if (s->windows) return wl_not_taken(b->edit.err, "window functions are not native yet");
  b->aggregated = wl_bind_aggregated(s);
  if (s->where) {
    b->in_where = b->sees_alias = true;
    rc = bind_where(b, s->where);
    b->in_where = b->sees_alias = false;
    if (rc) return rc;
  }
  b->where = 'r';
  b->after_groups = b->aggregated;
  rc = bind_results(b);
  b->sees_alias = true;
  b->after_groups = false;
  if (!rc) rc = bind_groups(b);
  b->after_groups = b->aggregated;
  b->where = 'h';
  if (!rc && s->having) rc = wl_bind_expr(b, s->having, &q->having);
  b->where = 'o';
  if (!rc && !b->in_compound) rc = bind_order(b);
  b->sees_alias = b->after_groups = false;
  if (rc) return rc;
  q->distinct = s->distinct;
  q->aggregate |= q->grouped;
  if (s->having && !q->aggregate)
    return wl_not_taken(b->edit.err, "HAVING without groups is not native yet");
  /* counting a table's rows replaces SQLite's count() */
  return q->n_cols == 0 ? wl_edit_uses(&b->edit, "count") : WL_OK;
}
