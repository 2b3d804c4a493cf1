/*
** What names mean: columns of the items of FROM, result columns by their alias, names of the outer
** queries. Part of the binder. SQLite has already checked that every name has exactly one meaning.
*/
#include "sql/bind_impl.h"
#include <string.h>

bool wl_bind_is_rowid(const char *s) {
  return sqlite3_stricmp(s, "rowid") == 0 || sqlite3_stricmp(s, "_rowid_") == 0 ||
         sqlite3_stricmp(s, "oid") == 0;
}

wl_status wl_bind_item(binder *b, wl_item *item, int k, wl_bexpr **out) {
  const wl_table *t = item->table;
  if (item->nested) return wl_nested_column(b, item, k, out);
  if (t) {
    bool rowid = k == t->n_cols;
    wl_status rc =
        wl_edit_column(&b->edit, item->source, rowid ? -1 : k, rowid ? 'D' : t->cols[k].affinity,
                       rowid ? WL_COLL_BINARY : t->cols[k].coll, out);
    /* the rowid has no collation, whatever name is used for it */
    if (!rc && (rowid || t->cols[k].rowid)) (*out)->has_coll = false;
    return rc;
  }
  const wl_bexpr *r = b->edit.q->sources[item->source].derived->arms[0]->results[k];
  return wl_edit_column(&b->edit, item->source, k, r->affinity, wl_bexpr_coll(r), out);
}

const char *wl_bind_item_name(const wl_item *item, int k) {
  return item->table ? item->table->cols[k].name : item->names[k];
}

bool wl_bind_item_hides(const wl_item *item, int k) {
  return item->table && item->table->cols[k].hidden;
}

int wl_bind_item_find(const wl_item *item, const char *name) {
  for (int k = 0; k < item->n_cols; k++)
    if (sqlite3_stricmp(wl_bind_item_name(item, k), name) == 0) return k;
  return -1;
}

static bool qualifies(const wl_item *item, const wl_expr *e) {
  if (!e->table) return true;
  if (sqlite3_stricmp(e->table, item->name ? item->name : "") != 0) return false;
  return !e->schema || (item->schema && sqlite3_stricmp(e->schema, item->schema) == 0);
}

bool wl_bind_item_joins(const wl_item *item, const char *name) {
  for (int k = 0; k < item->n_using; k++)
    if (sqlite3_stricmp(item->using_names[k], name) == 0) return true;
  return false;
}

/* Adds another column with the same name. If USING joins columns with one name, the left one stands
** for both. For a RIGHT join it is the right one, for a FULL join whichever is not NULL. */
static wl_status add_candidate(binder *b, wl_item *item, int k, const char *name, wl_bexpr **found,
                               int *n) {
  if (*n && (!wl_bind_item_joins(item, name) ||
             (item->join != WL_JOIN_RIGHT && item->join != WL_JOIN_FULL)))
    return WL_OK;
  if (item->join == WL_JOIN_RIGHT) *n = 0;
  return wl_bind_item(b, item, k, &found[(*n)++]);
}

/* Adds the matching columns of a join in parentheses. A column made by USING stands for those that
** it joins. If there are several others with the name, SQLite treats them like columns that an
** outside USING joins. */
static wl_status nested_columns(binder *b, wl_item *item, const wl_expr *e, wl_bexpr **found,
                                int *n) {
  wl_status rc = WL_OK;
  for (int k = 0; k < item->n_cols && !rc; k++) {
    const wl_nested_col *c = &item->nested->cols[k];
    if (!wl_nested_means(c, e)) continue;
    rc = add_candidate(b, item, k, e->name, found, n);
    if (!c->member) break;
  }
  return rc;
}

wl_status wl_bind_among(binder *b, wl_item *items, int n_items, const wl_expr *e, wl_bexpr **out) {
  int n = 0, n_tables = 0, most = 1;
  wl_item *last = NULL;
  wl_status rc = WL_OK;
  *out = NULL;
  for (int i = 0; i < n_items; i++) most += items[i].nested ? items[i].n_cols : 1;
  wl_bexpr **found = WL_NEW_N(b->edit.arena, wl_bexpr *, most);
  if (!found) return wl_nomem(b->edit.err);
  for (int i = 0; i < n_items && !rc; i++) {
    wl_item *item = &items[i];
    if (item->nested) {
      rc = nested_columns(b, item, e, found, &n);
      continue;
    }
    if (!qualifies(item, e)) continue;
    n_tables++;
    last = item;
    int k = wl_bind_item_find(item, e->name);
    if (k >= 0) rc = add_candidate(b, item, k, e->name, found, &n);
  }
  if (rc) return rc;
  if (n == 0 && n_tables == 1 && wl_bind_is_rowid(e->name) && last->table &&
      !last->table->without_rowid)
    return wl_bind_item(b, last, last->table->n_cols, out);
  if (n > 1) return wl_bind_joined(b, found, n, out);
  if (n) *out = found[0];
  return WL_OK;
}

/* Finds a result column by its alias, in clauses where SQLite allows this. */
static wl_status by_alias(binder *b, const wl_expr *e, wl_bexpr **out) {
  *out = NULL;
  if (e->table || !b->sees_alias || b->in_alias || !b->select) return WL_OK;
  for (int k = 0; k < b->edit.q->n_results; k++) { /* bound already */
    const wl_result_col *c = b->result_cols[k];
    if (!c || !c->alias || sqlite3_stricmp(c->alias, e->name) != 0) continue;
    *out = b->edit.q->results[k];
    return WL_OK;
  }
  for (const wl_result_col *c = b->select->cols; c; c = c->next) {
    if (!c->alias || !c->expr || sqlite3_stricmp(c->alias, e->name) != 0) continue;
    b->in_alias = true;
    wl_status rc = wl_bind_expr(b, c->expr, out);
    b->in_alias = false;
    return rc;
  }
  return WL_OK;
}

/* Makes an expression of the outer query usable here. */
static wl_status outer_reference(binder *b, wl_bexpr *e, wl_bexpr **out) {
  wl_query *q = b->edit.q;
  for (int k = 0; k < q->n_outers; k++)
    if (q->outers[k]->a == e) {
      *out = q->outers[k];
      return WL_OK;
    }
  wl_status rc = WL_EDIT_ROOM(&b->edit, q->outers, q->n_outers);
  wl_bexpr *x = rc ? NULL : wl_edit_node(&b->edit, WL_B_OUTER);
  if (!x) return rc ? rc : wl_nomem(b->edit.err);
  x->a = e;
  x->affinity = e->affinity;
  x->coll = e->coll;
  x->has_coll = e->has_coll;
  x->explicit_coll = e->explicit_coll;
  q->outers[q->n_outers++] = x;
  *out = x;
  return WL_OK;
}

/* Looks up a name in the outer queries. */
static wl_status outer_name(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_status rc;
  *out = NULL;
  if (!b->parent) return WL_OK;
  rc = b->in_from ? outer_name(b->parent, e, out) : wl_bind_name(b->parent, e, out);
  return rc || !*out ? rc : outer_reference(b, *out, out);
}

wl_status wl_bind_name(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_status rc = wl_bind_among(b, b->items, b->n_items, e, out);
  if (!rc && !*out) rc = by_alias(b, e, out);
  if (!rc && !*out) rc = outer_name(b, e, out);
  return rc;
}
