/*
** The values of a query with aggregates or groups that are neither: values of subqueries, bare
** columns (read from one row of each group), and columns if there is no row at all. This pass needs
** to know what flattened columns stand for. One of the rewrites of a query.
*/
#include "base/quirks.h"
#include "plan/rewrite/rewrite_impl.h"
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

/* Whether aggregate k equals an earlier one of those marked in `seen`. SQLite computes it only
** once. */
static bool is_repeated(const wl_query *q, const bool *seen, int k) {
  const wl_bagg *a = &q->aggs[k];
  for (int i = 0; i < q->n_aggs; i++) {
    const wl_bagg *o = &q->aggs[i];
    if (seen[i] && o->fn == a->fn && o->distinct == a->distinct && o->filtered == a->filtered &&
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
** In a query with aggregates or groups, every value comes from the groups, or it is a bare column
** of one row of each group. If there is a min() or max(), the last one decides: the row is the
** first that has its value. Otherwise it is the first row. SQLite collects the aggregates of the
** result list, then of ORDER BY, then of HAVING.
*/
static wl_status find_bare_columns(const wl_edit *to) {
  wl_query *q = to->q;
  bool ok = from_groups(q, q->having), elsewhere = q->grouped;
  for (int k = 0; k < q->n_aggs; k++) elsewhere |= q->aggs[k].where != 'o';
  if (!elsewhere) return wl_not_taken(to->err, "an aggregate that is only in ORDER BY");
  for (int k = 0; k < q->n_results && ok; k++) ok = from_groups(q, q->results[k]);
  for (int k = 0; k < q->n_order && ok; k++) ok = from_groups(q, q->order[k].expr);
  q->decides = -1;
  if (ok) return WL_OK;
  q->bare = true;
  bool *seen = WL_NEW_N(to->arena, bool, q->n_aggs + 1);
  if (!seen) return wl_nomem(to->err);
  for (const char *where = "roh"; *where; where++)
    for (int k = 0; k < q->n_aggs; k++) {
      const wl_bagg *a = &q->aggs[k];
      if (a->where != *where || (a->fn != WL_FN_MIN && a->fn != WL_FN_MAX) ||
          is_repeated(q, seen, k))
        continue;
      seen[k] = true;
      q->decides = k;
    }
  /* a single min() or max() of a column that WHERE makes constant: SQLite then reads only one
  ** row */
  if (!q->grouped && q->n_aggs == 1 && q->decides >= 0 && tests_null(q->where))
    return wl_not_taken(to->err,
                        "a bare column next to min() or max() of a value that WHERE makes NULL");
  if (q->decides >= 0 && (q->aggs[q->decides].filtered || q->aggs[q->decides].distinct))
    return wl_not_taken(to->err, "a bare column next to a min() or max() with DISTINCT or FILTER");
  return WL_OK;
}

/* Makes expressions with of_row set NULL if there are no rows. */
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
** Aggregates without GROUP BY return a row even if there are no rows. Bare columns are NULL in it.
** SQLite flattens subqueries with a FROM, so their constants stay constants. A column of a subquery
** without FROM remains a column, so it is NULL.
*/
static wl_status handle_no_rows(wl_edit *to) {
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

/* Adds the values of subqueries that are computed for groups to the group keys. The other keys must
** determine them. */
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
        return wl_not_taken(
            r->edit.err,
            "a subquery that refers to a bare column (neither aggregated nor in GROUP BY)");
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
  if (!rc && q->aggregate && !q->grouped && r->has_of_row) rc = handle_no_rows(&r->edit);
  if (!rc && q->aggregate) rc = find_bare_columns(&r->edit);
  if (!rc && q->bare && !q->grouped && wl_quirks_get().with_taken_in && reads_shared_with(r->bound))
    return wl_not_taken(r->edit.err,
                        "a bare column next to an aggregate, over a WITH entry used several times");
  return rc;
}
