/*
** Joins in parentheses that come after another source of FROM. SQLite turns each of them into a
** subquery that returns all its columns. Names, USING, NATURAL and * follow the same rules here,
** whether the join becomes a separate query or part of the outer query. Part of the binder.
**
** The columns of (a JOIN b USING (x)) are, in this order: x, the columns of a, the columns of b.
** From outside:
**   - A name without a table means x before a.x and b.x. So with a RIGHT or FULL join inside, it is
**     the one that is not NULL.
**   - USING and NATURAL use names that are made unique, as for any subquery. They mean the first x.
**   - * leaves out a.x and b.x.
**
** Invariants:
** 1. Hidden columns are not columns of the join.
*/
#include "sql/bind_impl.h"
#include <string.h>

static bool is_truth(const char *name) {
  return sqlite3_stricmp(name, "true") == 0 || sqlite3_stricmp(name, "false") == 0;
}

wl_status wl_bind_unique(binder *b, const char **names, int k, const bool *by_using, bool *clash) {
  enum { NUMBERED = 4 }; /* after these, SQLite uses random numbers */
  int count = 0, j = 0;
  if (is_truth(names[k])) names[k] = wl_arena_printf(b->edit.arena, "column%d", k + 1);
  size_t n = names[k] ? strlen(names[k]) : 0;
  for (; names[k]; j = 0) {
    while (j < k && sqlite3_stricmp(names[j], names[k]) != 0) j++;
    if (j == k) return WL_OK;
    if (by_using && by_using[j]) *clash = true;
    size_t end = n;
    while (end > 1 && names[k][end - 1] >= '0' && names[k][end - 1] <= '9') end--;
    if (count == 0 && end > 1 && names[k][end - 1] == ':') n = end - 1;
    if (++count > NUMBERED)
      names[k] = wl_arena_printf(b->edit.arena, "%.*s:?%d", (int)n, names[k], ++b->all->n_unnamed);
    else
      names[k] = wl_arena_printf(b->edit.arena, "%.*s:%d", (int)n, names[k], count);
  }
  return wl_nomem(b->edit.err);
}

/* ---- the columns */

static int most_columns(const wl_item *members, int n) {
  int most = 0;
  for (int i = 0; i < n; i++) most += members[i].n_cols + members[i].n_using;
  return most;
}

/* Describes column k of a member as it can be written outside the parentheses. */
static wl_nested_col column_of(wl_item *member, int k) {
  if (member->nested) {
    wl_nested_col c = member->nested->cols[k];
    return (wl_nested_col){.schema = c.schema,
                           .table = c.table,
                           .column = c.column,
                           .no_expand = c.no_expand,
                           .member = member,
                           .k = k};
  }
  return (wl_nested_col){.schema = member->schema,
                         .table = member->name,
                         .column = wl_bind_item_name(member, k),
                         .member = member,
                         .k = k};
}

static void list_columns(wl_nested *to, const char **names, int *n) {
  for (int i = 0; i < to->n_members; i++) {
    wl_item *m = &to->members[i], *next = i + 1 < to->n_members ? m + 1 : NULL;
    for (int u = 0; next && u < next->n_using; u++) {
      names[*n] = next->using_names[u];
      to->cols[(*n)++] = (wl_nested_col){.column = next->using_names[u]};
    }
    for (int k = 0; k < m->n_cols; k++) {
      const char *name = wl_bind_item_name(m, k);
      if (wl_bind_item_hides(m, k)) continue;
      wl_nested_col c = column_of(m, k);
      c.no_expand |= wl_bind_item_joins(m, name) || (next && wl_bind_item_joins(next, name));
      names[*n] = name;
      to->cols[(*n)++] = c;
    }
  }
}

wl_status wl_nested_open(binder *b, wl_item *members, int n_members, binder *inner, wl_item *item) {
  int n = 0, most = most_columns(members, n_members);
  wl_nested *to = item->nested = WL_NEW(b->edit.arena, wl_nested);
  item->names = WL_NEW_N(b->edit.arena, const char *, most + 1);
  bool *by_using = WL_NEW_N(b->edit.arena, bool, most + 1);
  if (to) to->cols = WL_NEW_N(b->edit.arena, wl_nested_col, most + 1);
  if (!to || !to->cols || !item->names || !by_using) return wl_nomem(b->edit.err);
  to->members = members;
  to->n_members = n_members;
  to->inner = inner;
  list_columns(to, item->names, &n);
  for (int k = 0; k < n; k++) {
    wl_status rc = wl_bind_unique(b, item->names, k, by_using, &to->cols[k].no_expand);
    if (rc) return rc;
    by_using[k] = !to->cols[k].member;
  }
  item->n_cols = n;
  return WL_OK;
}

bool wl_nested_means(const wl_nested_col *c, const wl_expr *e) {
  if (sqlite3_stricmp(c->column, e->name) != 0) return false;
  if (!e->table) return true;
  if (!c->table || sqlite3_stricmp(c->table, e->table) != 0) return false;
  return !e->schema || (c->schema && sqlite3_stricmp(c->schema, e->schema) == 0);
}

/* ---- the values of the columns */

/* Column k, seen from inside the parentheses. */
static wl_status inside(binder *b, wl_nested *n, int k, wl_bexpr **out) {
  const wl_nested_col *c = &n->cols[k];
  if (c->member) return wl_bind_item(b, c->member, c->k, out);
  wl_expr name = {.kind = WL_E_NAME, .name = c->column};
  return wl_bind_among(b, n->members, n->n_members, &name, out);
}

/* Makes column k a result of the query that the join becomes. Columns with the same value inside
** share one result. */
static wl_status as_result(wl_nested *n, int k, int *out) {
  wl_nested_col *c = &n->cols[k];
  const wl_query *q = n->inner->edit.q;
  if (!c->result) {
    wl_bexpr *x;
    int i = 0;
    wl_status rc = inside(n->inner, n, k, &x);
    while (!rc && i < q->n_results && q->results[i] != x) i++;
    if (!rc && i == q->n_results) rc = wl_edit_result(&n->inner->edit, x);
    if (rc) return rc;
    c->result = i + 1;
  }
  *out = c->result - 1;
  return WL_OK;
}

wl_status wl_nested_column(binder *b, wl_item *item, int k, wl_bexpr **out) {
  wl_nested *n = item->nested;
  if (!n->inner) return inside(b, n, k, out);
  wl_status rc = as_result(n, k, &k);
  if (rc) return rc;
  const wl_query *q = n->inner->edit.q;
  const wl_bexpr *r = q->results[k];
  b->edit.q->sources[item->source].derived->n_cols = q->n_results;
  return wl_edit_column(&b->edit, item->source, k, r->affinity, wl_bexpr_coll(r), out);
}
