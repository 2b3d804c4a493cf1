/*
** What a query with aggregates or groups gives beside them: values of subqueries, columns of one
*row
** of each group, columns where there is no row at all. It needs to know what columns of flattened
** subqueries are. One of the rewrites of a query.
*/
#include "base/quirks.h"
#include "plan/rewrite_impl.h"
#include <string.h>

/* Whether e can be computed from the group keys and aggregates alone. */
static bool from_groups(const wl_query *q, const wl_bexpr *e) {
  if (!e) return true;
  for (int k = 0; k < q->n_groups; k++)
    if (wl_bexpr_same(q->groups[k], e)) return true;
  if (e->kind == WL_B_COLUMN || e->kind == WL_B_FOUND) return false;
  if (e->kind == WL_B_OUTER) return true;
  for (int k = 0; k < e->n_list; k++)
    if (!from_groups(q, e->list[k])) return false;
  return e->kind == WL_B_AGG || (from_groups(q, e->a) && from_groups(q, e->b));
}

/* Whether an aggregate is one that SQLite has met before it, of those marked: it computes it
** once. */
static bool repeated(const wl_query *q, const bool *met, int k) {
  const wl_bagg *a = &q->aggs[k];
  for (int i = 0; i < q->n_aggs; i++) {
    const wl_bagg *o = &q->aggs[i];
    if (met[i] && o->fn == a->fn && o->distinct == a->distinct && o->filtered == a->filtered &&
        wl_bexpr_same(o->arg, a->arg))
      return true;
  }
  return false;
}

/* Whether a conjunct is x IS NULL or x IS y. */
static bool tests_null(const wl_bexpr *e) {
  if (!e) return false;
  if (e->kind == WL_B_AND) return tests_null(e->a) || tests_null(e->b);
  return e->kind == WL_B_ISNULL || e->kind == WL_B_IS;
}

/*
** In a query with aggregates or groups, what is given comes from the groups, or it is a column
** of one row of each: where the last min() or max() was met first, or the first row if there is
** none. SQLite takes up the aggregates of the result list, then of ORDER BY, then of HAVING.
*/
static wl_status find_bare_columns(const wl_edit *to) {
  wl_query *q = to->q;
  bool ok = from_groups(q, q->having), elsewhere = q->grouped;
  for (int k = 0; k < q->n_aggs; k++) elsewhere |= q->aggs[k].where != 'o';
  if (!elsewhere) return wl_not_taken(to->err, "an aggregate in ORDER BY alone");
  for (int k = 0; k < q->n_results && ok; k++) ok = from_groups(q, q->results[k]);
  for (int k = 0; k < q->n_order && ok; k++) ok = from_groups(q, q->order[k].expr);
  q->decides = -1;
  if (ok) return WL_OK;
  q->bare = true;
  bool *met = WL_NEW_N(to->arena, bool, q->n_aggs + 1);
  if (!met) return wl_nomem(to->err);
  for (const char *where = "roh"; *where; where++)
    for (int k = 0; k < q->n_aggs; k++) {
      const wl_bagg *a = &q->aggs[k];
      if (a->where != *where || (a->fn != WL_FN_MIN && a->fn != WL_FN_MAX) || repeated(q, met, k))
        continue;
      met[k] = true;
      q->decides = k;
    }
  /* one min() or max() of a column that WHERE makes constant: SQLite then reads one row only */
  if (!q->grouped && q->n_aggs == 1 && q->decides >= 0 && tests_null(q->where))
    return wl_not_taken(to->err, "a column beside min() or max() of what WHERE says is NULL");
  if (q->decides >= 0 && (q->aggs[q->decides].filtered || q->aggs[q->decides].distinct))
    return wl_not_taken(to->err,
                        "a column beside the groups and a min() or max() of some rows only");
  return WL_OK;
}

/* What is of_row becomes NULL where there are no rows. */
static wl_status null_without_rows(wl_copy *c, const wl_bexpr *e, wl_bexpr **out) {
  wl_bexpr *count = c->arg, *null;
  if (e->kind == WL_B_OUTER || e->kind == WL_B_COLUMN || e->kind == WL_B_AGG)
    *out = (wl_bexpr *)(size_t)e;
  if (!e->of_row) return WL_OK;
  wl_status rc = wl_edit_constant(c->to, wl_null(), &null);
  if (!rc) rc = wl_edit_case(c->to, count, (wl_bexpr *)(size_t)e, null, out);
  if (rc) return rc;
  (*out)->affinity = e->affinity;
  (*out)->coll = e->coll;
  (*out)->has_coll = e->has_coll;
  return WL_OK;
}

/*
** Aggregates without GROUP BY give a row for no rows, too, and columns beside them are NULL there.
** SQLite takes subqueries with a FROM into the query, so that a constant of theirs stays one. A
** column of one without FROM remains a column.
*/
static wl_status of_no_rows(wl_edit *to) {
  wl_query *q = to->q;
  wl_bexpr *count;
  wl_copy c;
  wl_status rc = wl_edit_aggregate(to, (wl_bagg){.fn = WL_FN_COUNT, .where = 'r'}, &count);
  if (!rc) rc = wl_copy_open(&c, to, q);
  if (rc) return rc;
  c.node = null_without_rows;
  c.arg = count;
  for (int k = 0; k < q->n_results && !rc; k++)
    rc = wl_copy_expr(&c, q->results[k], &q->results[k]);
  for (int k = 0; k < q->n_order && !rc; k++)
    rc = wl_copy_expr(&c, q->order[k].expr, &q->order[k].expr);
  return rc ? rc : wl_copy_expr(&c, q->having, &q->having);
}

/* What subqueries beside the groups give, as group keys: the other keys must decide it. */
static wl_status group_by_subqueries(wl_rewriter *r) {
  wl_query *q = r->edit.q;
  int n = q->n_groups;
  if (!r->n_group_subqueries) return WL_OK;
  wl_bexpr **groups = WL_NEW_N(r->edit.arena, wl_bexpr *, n + r->n_group_subqueries + 1);
  if (!groups) return wl_nomem(r->edit.err);
  if (n) memcpy(groups, q->groups, (size_t)n * sizeof *groups);
  for (int k = 0; k < r->n_group_subqueries; k++) {
    const wl_group_subquery *s = &r->group_subqueries[k];
    for (int i = 0; i < s->n; i++)
      if (!q->grouped || !from_groups(q, s->refers_to[i]))
        return wl_not_taken(r->edit.err, "a subquery that refers to columns beside the groups");
    groups[n++] = s->value;
  }
  q->groups = groups;
  q->n_groups = n;
  return WL_OK;
}

static bool reads_shared_with(const wl_query *bound) {
  for (int k = 0; k < bound->n_sources; k++)
    if (bound->sources[k].derived && bound->sources[k].derived->shared) return true;
  return false;
}

wl_status wl_rewrite_grouped_columns(wl_rewriter *r) {
  wl_query *q = r->edit.q;
  wl_status rc = group_by_subqueries(r);
  if (!rc && q->aggregate && !q->grouped && r->has_of_row) rc = of_no_rows(&r->edit);
  if (!rc && q->aggregate) rc = find_bare_columns(&r->edit);
  if (!rc && q->bare && !q->grouped && wl_quirks_get().with_taken_in && reads_shared_with(r->bound))
    return wl_not_taken(r->edit.err,
                        "columns beside aggregates, of a WITH entry used several times");
  return rc;
}
