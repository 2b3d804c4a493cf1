/*
** FROM: tables, views, subqueries, WITH entries and joins in parentheses become sources of the
** query. Join clauses become conditions. Part of the binder.
**
** Invariants:
** 1. Every item is one source, except inner joins in parentheses. Their sources become sources of
**    the query.
** 2. If there is a RIGHT or FULL join, every source has its own ON. Otherwise the ON of an inner
**    join is the inner_on of the last source in that join.
*/
#include "base/quirks.h"
#include "sql/bind_impl.h"
#include "sql/lex.h"
#include <string.h>

static wl_status new_item(binder *b, const wl_from_item *s, wl_item **out) {
  *out = &b->items[b->n_items++];
  (*out)->join = s->join;
  (*out)->source = -1;
  (*out)->name = s->alias ? s->alias : s->name;
  return WL_OK;
}

static wl_join_how how_of(const wl_from_item *s) {
  return s->join == WL_JOIN_LEFT    ? WL_HOW_LEFT
         : s->join == WL_JOIN_RIGHT ? WL_HOW_RIGHT
         : s->join == WL_JOIN_FULL  ? WL_HOW_FULL
                                    : WL_HOW_INNER;
}

/* ---- subqueries, views and WITH entries */

/* Records what must be checked at run time for a compound in FROM. Does nothing for other
** queries. */
static wl_status compound_item(const binder *child, wl_query *q) {
  if (!child->first_arm) return WL_OK;
  q->sources[0].derived->typed = true;
  q->sources[0].derived->mixed = child->mixed;
  if (child->affinities_differ && wl_quirks_get().compound_affinity)
    return wl_not_taken(child->edit.err, "a compound in FROM whose arms differ in affinity");
  return WL_OK;
}

/* The names of a subquery's columns. columns: names given by a view or WITH, or NULL. */
static wl_status column_names(binder *child, const wl_select *select, const wl_query *q,
                              const wl_expr_list *columns, const char ***out) {
  wl_status rc = wl_bind_names(child, select, q, out);
  int k = 0;
  for (const wl_expr_list *l = columns; l && !rc && k < q->n_results; l = l->next)
    (*out)[k++] = l->expr->name;
  return rc;
}

/* A subquery as an item of FROM. */
static wl_status sub_item(binder *b, const wl_from_item *s, const wl_select *select,
                          const wl_expr_list *columns) {
  binder *child;
  wl_query *q;
  wl_item *item;
  wl_derived *d;
  wl_status rc = wl_bind_select(b, select, true, &child, &q);
  if (!rc) rc = new_item(b, s, &item);
  if (rc) return rc;
  item->n_cols = q->n_results;
  rc = compound_item(child, q);
  if (!rc) rc = column_names(child, select, q, columns, &item->names);
  if (!rc) rc = wl_edit_derived(&b->edit, q, &d);
  if (rc) return rc;
  d->may_flatten = true;
  wl_bsource to = {.how = how_of(s), .derived = d, .name = item->name ? item->name : "subquery"};
  return wl_edit_source(&b->edit, to, &item->source);
}

/* ---- WITH */

wl_status wl_bind_ctes(binder *b, const wl_cte *with) {
  for (const wl_cte *c = with; c; c = c->next) {
    wl_with_entry *n = WL_NEW(b->edit.arena, wl_with_entry);
    if (!n) return wl_nomem(b->edit.err);
    n->cte = c;
    n->home = b;
    n->next = b->named;
    b->named = n;
  }
  return WL_OK;
}

/* How often the FROM clauses of a SELECT, at any depth, mention a name. */
static int mentions(const wl_select *s, const char *name);

/* The same for a SELECT whose own WITH may define the name as something else. */
static int mentions_inside(const wl_select *s, const char *name) {
  for (const wl_cte *c = s ? s->with : NULL; c; c = c->next)
    if (sqlite3_stricmp(c->name, name) == 0) return 0;
  return mentions(s, name);
}

static int mentions_expr(const wl_expr *e, const char *name) {
  if (!e) return 0;
  int n = mentions_inside(e->select, name) + mentions_expr(e->a, name) + mentions_expr(e->b, name) +
          mentions_expr(e->c, name);
  for (const wl_expr_list *l = e->list; l; l = l->next) n += mentions_expr(l->expr, name);
  if (e->kind == WL_E_IN && !e->has_list && !e->select && e->name && !e->schema &&
      sqlite3_stricmp(e->name, name) == 0)
    n++;
  return n;
}
static int mentions_from(const wl_from_item *f, const char *name) {
  int n = 0;
  for (; f; f = f->next) {
    n += f->name && !f->schema && sqlite3_stricmp(f->name, name) == 0;
    n += mentions_inside(f->select, name) + mentions_from(f->nested, name) +
         mentions_expr(f->on, name);
  }
  return n;
}
static int mentions(const wl_select *s, const char *name) {
  int n = 0;
  for (; s; s = s->prior) {
    n += mentions_from(s->from, name) + mentions_expr(s->where, name) +
         mentions_expr(s->having, name) + mentions_expr(s->limit, name) +
         mentions_expr(s->offset, name);
    for (const wl_result_col *c = s->cols; c; c = c->next) n += mentions_expr(c->expr, name);
    for (const wl_expr_list *l = s->group_by; l; l = l->next) n += mentions_expr(l->expr, name);
    for (const wl_expr_list *l = s->values; l; l = l->next) n += mentions_expr(l->expr, name);
    for (const wl_order_term *t = s->order_by; t; t = t->next) n += mentions_expr(t->expr, name);
    for (const wl_cte *c = s->with; c; c = c->next) n += mentions_inside(c->select, name);
  }
  return n;
}

/* Binds a WITH entry that is used several times, in the query where it was written. */
static wl_status bind_shared_entry(binder *b, wl_with_entry *n) {
  const wl_cte *c = n->cte;
  binder scope = *n->home, *child;
  wl_query *q;
  n->open = true;
  wl_status rc = wl_bind_select(&scope, c->select, true, &child, &q);
  n->open = false;
  if (rc) return rc;
  if (q->n_outers) return wl_not_taken(b->edit.err, "a WITH entry that refers to an outer query");
  rc = compound_item(child, q);
  if (!rc) rc = column_names(child, c->select, q, c->columns, &n->names);
  if (!rc) rc = wl_edit_derived(&b->edit, q, &n->derived);
  if (!rc) n->derived->shared = true;
  return rc;
}

/* A WITH entry as an item of FROM. As in SQLite, an entry that is used several times is computed
** once. The difference is visible next to aggregates. */
static wl_status cte_item(binder *b, const wl_from_item *s, wl_with_entry *n) {
  const wl_cte *c = n->cte;
  if (n->open) return wl_not_taken(b->edit.err, "recursive WITH is not native");
  wl_from_item as = *s;
  if (!as.alias) as.alias = s->name;
  wl_item *item;
  if (!n->n_uses) n->n_uses = mentions(n->home->select, c->name);
  bool shared = c->materialized == 1 || (n->n_uses > 1 && c->materialized != 2);
  if (!shared) {
    const wl_with_entry *named = b->named;
    n->open = true;
    b->named = n->home->named; /* it may also mention entries that come after it */
    wl_status rc = sub_item(b, &as, c->select, c->columns);
    b->named = named;
    n->open = false;
    return rc;
  }
  wl_status rc = n->derived ? WL_OK : bind_shared_entry(b, n);
  if (!rc) rc = new_item(b, &as, &item);
  if (rc) return rc;
  item->names = n->names;
  item->n_cols = n->derived->n_cols;
  wl_bsource to = {.how = how_of(s), .derived = n->derived, .name = item->name};
  return wl_edit_source(&b->edit, to, &item->source);
}

static wl_with_entry *find_with_entry(binder *b, const wl_from_item *s) {
  if (s->schema) return NULL;
  for (const wl_with_entry *n = b->named; n; n = n->next)
    if (sqlite3_stricmp(n->cte->name, s->name) == 0) return (wl_with_entry *)(size_t)n;
  return NULL;
}

/* ---- views */

/* A view's text: CREATE … VIEW … [(names)] AS select. */
static wl_status view_item(binder *b, const wl_from_item *s, const wl_table *view) {
  wl_stmt *stmt;
  size_t body = 0, n = strlen(view->view_sql);
  wl_expr_list *columns = NULL;
  if (b->all->depth > WL_MAX_NESTING) return wl_not_taken(b->edit.err, "views nested too deeply");
  wl_status rc = wl_parse_view(b->edit.arena, view->view_sql, n, &columns, &body, b->edit.err);
  if (!rc) rc = wl_parse(b->edit.arena, view->view_sql + body, n - body, &stmt, b->edit.err);
  if (rc == WL_ERROR || (!rc && stmt->kind != WL_STMT_SELECT))
    rc = wl_not_taken(b->edit.err, "the view %s cannot be parsed", view->name);
  if (rc) return rc;
  /* names in the view do not depend on where it is used */
  const wl_with_entry *named = b->named;
  const char *schema = b->schema, *sql = b->sql;
  binder *parent = b->parent;
  b->named = NULL;
  b->schema = strcmp(view->schema, "temp") == 0 ? NULL : view->schema;
  b->sql = view->view_sql + body;
  b->parent = NULL;
  b->all->depth++;
  rc = sub_item(b, s, stmt->select, columns);
  b->all->depth--;
  b->named = named;
  b->schema = schema;
  b->sql = sql;
  b->parent = parent;
  if (!rc) b->items[b->n_items - 1].schema = s->alias ? NULL : view->schema;
  return rc;
}

/* ---- tables */

static wl_status table_item(binder *b, const wl_from_item *s) {
  wl_table *t;
  wl_item *item;
  const char *schema = s->schema ? s->schema : b->schema;
  wl_status rc = wl_bind_table(b, schema, s->name, &t, b->edit.err);
  if (!rc) rc = wl_bind_depends(b, schema, s->name, t->id);
  if (rc) return rc;
  if (t->view_sql) return view_item(b, s, t);
  rc = new_item(b, s, &item);
  if (rc) return rc;
  item->table = t;
  item->n_cols = t->n_cols;
  item->schema = s->alias ? NULL : t->schema;
  wl_bsource to = {
      .how = how_of(s), .schema = schema, .table = s->name, .table_id = t->id, .name = item->name};
  return wl_edit_source(&b->edit, to, &item->source);
}

/* ---- joins */

static wl_status join_list(binder *b, const wl_from_item *from);

/* A join in parentheses that becomes a separate query. */
static wl_status nested_as_query(binder *b, const wl_from_item *s) {
  wl_item *item;
  if (s->alias) return wl_not_taken(b->edit.err, "a parenthesised join with an alias");
  binder *g;
  wl_status rc = wl_bind_open(b, NULL, true, &g);
  if (!rc) rc = wl_bind_from(g, s->nested);
  if (rc) return rc;
  if (g->edit.q->n_outers)
    return wl_not_taken(b->edit.err, "a parenthesised join that refers to an outer query");
  for (int k = 0; k < g->n_items && g->has_right && wl_quirks_get().using_as_column; k++)
    if (g->items[k].n_using)
      return wl_not_taken(b->edit.err, "USING with RIGHT or FULL JOIN inside parentheses");
  rc = new_item(b, s, &item);
  if (!rc) rc = wl_nested_open(b, g->items, g->n_items, g, item);
  wl_derived *d = NULL;
  if (!rc) rc = wl_edit_derived(&b->edit, g->edit.q, &d);
  wl_bsource to = {.how = how_of(s), .derived = d, .name = "join"};
  return rc ? rc : wl_edit_source(&b->edit, to, &item->source);
}

/* A join in parentheses whose sources become sources of the query. Inner joins can run in any
** order, so the parentheses only matter for names. */
static wl_status nested_as_sources(binder *b, const wl_from_item *s) {
  wl_item *items = b->items, *item;
  int n = b->n_items;
  wl_status rc = join_list(b, s->nested);
  wl_item *members = b->items;
  int n_members = b->n_items;
  b->items = items;
  b->n_items = n;
  if (!rc) rc = new_item(b, s, &item);
  return rc ? rc : wl_nested_open(b, members, n_members, NULL, item);
}

static wl_status one_source(binder *b, const wl_from_item *s) {
  if (s->is_call) return wl_not_taken(b->edit.err, "%s is a table-valued function", s->name);
  if (s->nested) return nested_as_query(b, s);
  if (s->select) return sub_item(b, s, s->select, NULL);
  wl_with_entry *c = find_with_entry(b, s);
  return c ? cte_item(b, s, c) : table_item(b, s);
}

/* The names that USING or NATURAL joins by. For NATURAL these are the columns of the last item that
** also exist to its left. */
static wl_status using_names(binder *b, const wl_from_item *s, const char ***out, int *n) {
  const wl_item *last = &b->items[b->n_items - 1];
  *n = 0;
  *out = NULL;
  for (const wl_expr_list *l = s->using_cols; l; l = l->next) {
    wl_status rc = WL_EDIT_ROOM(&b->edit, *out, *n);
    if (rc) return rc;
    (*out)[(*n)++] = l->expr->name;
  }
  for (int k = 0; k < last->n_cols && s->natural; k++) {
    const char *name = wl_bind_item_name(last, k);
    const wl_item *left = b->items;
    if (wl_bind_item_hides(last, k)) continue;
    while (left < last && wl_bind_item_find(left, name) < 0) left++;
    if (left == last) continue;
    wl_status rc = WL_EDIT_ROOM(&b->edit, *out, *n);
    if (rc) return rc;
    (*out)[(*n)++] = name;
  }
  return WL_OK;
}

/* Whether a column is never NULL in its table. */
static bool never_null(const wl_item *item, int k) {
  const wl_table *t = item->table;
  return t && (t->cols[k].rowid || t->cols[k].not_null);
}

/* SQLite 3.40 assumes that a USING column on the left is never NULL if it is never NULL in its
** table. This is wrong for rows that an outer join added: an index can then find a NULL on the
** right. */
static bool finds_null(const binder *b, const wl_item *left, int k, const wl_item *right, int r) {
  bool outer = left->join == WL_JOIN_LEFT || left->join == WL_JOIN_FULL || left->before_right;
  bool dropped = right->join != WL_JOIN_LEFT && !b->has_right; /* an inner join drops such rows */
  return outer && !dropped && never_null(left, k) && !never_null(right, r);
}

/* Builds left = right for each name. With RIGHT or FULL joins, left is the first of several columns
** that is not NULL. */
static wl_status using_condition(binder *b, const char **names, int n, wl_bexpr **on) {
  wl_item *last = &b->items[b->n_items - 1];
  for (int k = 0; k < n; k++) {
    wl_bexpr **left = WL_NEW_N(b->edit.arena, wl_bexpr *, b->n_items), *l, *r, *eq;
    int n_left = 0, c = wl_bind_item_find(last, names[k]), of_last = c;
    wl_status rc = left ? WL_OK : wl_nomem(b->edit.err);
    if (!rc && c >= 0) rc = wl_bind_item(b, last, c, &r);
    bool found = c >= 0;
    for (wl_item *i = b->items; i < last && !rc; i++) {
      c = wl_bind_item_find(i, names[k]);
      if (c < 0 || (n_left && (!b->has_right || !wl_bind_item_joins(i, names[k])))) continue;
      if (found && finds_null(b, i, c, last, of_last))
        return wl_not_taken(b->edit.err,
                            "USING (%s), which is never NULL in %s, after an outer join", names[k],
                            i->table->name);
      rc = wl_bind_item(b, i, c, &left[n_left++]);
    }
    if (!rc && (!n_left || !found))
      rc = wl_not_taken(b->edit.err, "the column in USING (%s) cannot be resolved", names[k]);
    l = rc ? NULL : left[0];
    if (!rc && n_left > 1) rc = wl_bind_joined(b, left, n_left, &l);
    if (!rc) rc = wl_bind_compare(b, WL_B_COMPARE, WL_OP_EQ, l, r, &eq);
    if (!rc) rc = wl_edit_and(&b->edit, on, eq);
    if (rc) return rc;
  }
  return WL_OK;
}

/* Whether e is LIKE with an integer. In the ON of a LEFT JOIN, if that integer is the rowid, SQLite
** 3.40 turns the LIKE into a search that loses the row on the left. */
static bool like_integer(const wl_bexpr *e) {
  if (!e) return false;
  if (e->kind == WL_B_CALL && (e->index == WL_NATIVE_LIKE || e->index == WL_NATIVE_GLOB))
    return e->list[1]->affinity == 'D';
  return (e->kind == WL_B_AND) && (like_integer(e->a) || like_integer(e->b));
}

static bool has_right(const wl_from_item *from) {
  for (const wl_from_item *s = from; s; s = s->next)
    if (s->join == WL_JOIN_RIGHT || s->join == WL_JOIN_FULL) return true;
  return false;
}

/* An item of FROM with its join clause. */
static wl_status join_item(binder *b, const wl_from_item *s) {
  int n_names, first = b->edit.q->n_sources;
  const char **names;
  wl_bexpr *on = NULL;
  bool outer_join = s->join == WL_JOIN_LEFT || b->has_right;
  bool flat = s->nested && !s->alias && !outer_join && !has_right(s->nested);
  wl_status rc = flat ? nested_as_sources(b, s) : one_source(b, s);
  if (!rc) rc = using_names(b, s, &names, &n_names);
  if (!rc) rc = using_condition(b, names, n_names, &on);
  if (rc) return rc;
  wl_item *item = &b->items[b->n_items - 1];
  item->using_names = names;
  item->n_using = n_names;
  if (s->join == WL_JOIN_RIGHT || s->join == WL_JOIN_FULL)
    for (wl_item *i = b->items; i < item; i++) i->before_right = true;
  if (s->on) {
    wl_bexpr *cond;
    rc = wl_bind_expr(b, s->on, &cond);
    if (!rc) rc = wl_edit_and(&b->edit, &on, cond);
  }
  if (rc) return rc;
  if (s->join != WL_JOIN_INNER && like_integer(on))
    return wl_not_taken(b->edit.err, "LIKE of an integer in the ON of an outer join");
  wl_query *q = b->edit.q;
  if (!outer_join) return wl_edit_and(&b->edit, &q->sources[q->n_sources - 1].inner_on, on);
  q->sources[first].on = on;
  return WL_OK;
}

static wl_status join_list(binder *b, const wl_from_item *from) {
  int n = 0;
  wl_status rc = WL_OK;
  for (const wl_from_item *s = from; s; s = s->next) n++;
  b->items = WL_NEW_N(b->edit.arena, wl_item, n);
  b->n_items = 0;
  if (!b->items) return wl_nomem(b->edit.err);
  for (const wl_from_item *s = from; s && !rc; s = s->next) rc = join_item(b, s);
  return rc;
}

wl_status wl_bind_from(binder *b, const wl_from_item *from) {
  b->has_right = has_right(from);
  b->in_where = true; /* no aggregates in ON */
  wl_status rc = join_list(b, from);
  b->in_where = false;
  return rc;
}
