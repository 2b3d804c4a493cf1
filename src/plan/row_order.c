/*
** See row_order.h. Called when a statement is prepared or explained, so that both say what will
** happen, and again when it runs.
*/
#include "plan/row_order.h"

static bool uses_sub(const wl_bexpr *e, int sub) {
  if (!e) return false;
  if ((e->kind == WL_B_SUB || e->kind == WL_B_INSUB) && e->index == sub) return true;
  for (int k = 0; k < e->n_list; k++)
    if (uses_sub(e->list[k], sub)) return true;
  return uses_sub(e->a, sub) || uses_sub(e->b, sub);
}

bool wl_query_scans_table(const wl_query *q) {
  for (int k = 0; k < q->n_subs; k++)
    if (!uses_sub(q->limit, k) && !uses_sub(q->offset, k)) return false;
  return q->n_sources == 1 && q->sources[0].table;
}

bool wl_query_order_total(const wl_query *q) {
  for (int i = 0; i < q->n_results; i++) {
    int k = 0;
    while (k < q->n_order && !wl_bexpr_same(q->results[i], q->order[k].expr)) k++;
    if (k == q->n_order) return false;
  }
  return q->n_order > 0;
}

bool wl_query_orders_groups(const wl_query *q) {
  for (int i = 0; i < q->n_groups; i++) {
    int k = 0;
    while (k < q->n_order && !wl_bexpr_same(q->groups[i], q->order[k].expr)) k++;
    if (k == q->n_order) return false;
  }
  return q->grouped;
}

/* Whether the query is a join. Sources that only drop rows do not count. */
static bool is_join(const wl_query *q) {
  for (int s = 1; s < q->n_sources; s++)
    if (!q->sources[s].reduces) return true;
  return false;
}

/* Whether its rows come in the same order as in SQLite, whatever SQLite's plan is. */
static bool in_known_order(wl_store *store, const wl_query *q) {
  const wl_bsource *first = &q->sources[0];
  wl_table *t;
  wl_error ignored;
  if (wl_query_order_total(q)) return true;
  if (is_join(q) || q->n_order || q->grouped || q->distinct) return false;
  if (q->aggregate) return true; /* one row */
  if (first->derived) {
    for (int k = 0; k < first->derived->n_arms; k++)
      if (!in_known_order(store, first->derived->arms[k])) return false;
    return true;
  }
  if (!first->table) return true;
  /* Without indexes there is only one order of scanning. */
  return !wl_store_table(store, first->schema, first->table, &t, &ignored) && !t->indexed;
}

/* Whether the kind of join gives at most one match for any row. */
static bool joins_one(const wl_bsource *s) {
  return wl_how_finds_one(s->how) || s->single;
}

/* Whether it has at most one row: a SELECT without FROM, perhaps joined with its subqueries. */
static bool one_row(const wl_query *q) {
  for (int s = 0; s < q->n_sources; s++)
    if ((q->sources[s].table || q->sources[s].derived) && !joins_one(&q->sources[s])) return false;
  return true;
}

static bool is_rowid(const wl_query *q, const wl_bexpr *e, const wl_table *t, int s) {
  if (e->kind != WL_B_COLUMN) return false;
  const wl_bcol *c = &q->cols[e->slot];
  return c->source == s && (c->column < 0 || t->cols[c->column].rowid);
}

bool wl_query_is_rowid(wl_store *store, const wl_query *q, const wl_bexpr *e, int s) {
  const wl_bsource *src = &q->sources[s];
  wl_table *t;
  wl_error ignored;
  return src->table && !wl_store_table(store, src->schema, src->table, &t, &ignored) &&
         is_rowid(q, e, t, s);
}

/* Whether SQLite need not sort for GROUP BY, because a key is the rowid: then each row is a group,
** and the groups come in the order of the scan. */
static bool groups_by_rowid(wl_store *store, const wl_query *q) {
  const wl_bsource *first = &q->sources[0];
  wl_table *t;
  wl_error ignored;
  if (!q->grouped || !first->table ||
      wl_store_table(store, first->schema, first->table, &t, &ignored))
    return false;
  for (int k = 0; k < q->n_groups; k++)
    if (is_rowid(q, q->groups[k], t, 0)) return true;
  return false;
}

void wl_query_order(wl_store *store, const wl_query *q, bool facts_rowid_order, bool top,
                    bool *rowid_order, bool *unordered) {
  *rowid_order = false;
  *unordered = true;
  if ((top && q->ordered_by) || one_row(q)) {
    *rowid_order = true;
    *unordered = false;
    return;
  }
  if (is_join(q) || q->combines) return;
  if (top && wl_query_scans_table(q)) {
    *rowid_order = facts_rowid_order;
    *unordered = false;
    return;
  }
  wl_query rows = *q; /* the same query without grouping, DISTINCT and ORDER BY */
  rows.aggregate = rows.grouped = rows.distinct = false;
  rows.n_order = 0;
  *rowid_order = in_known_order(store, &rows);
  if (*rowid_order) *unordered = groups_by_rowid(store, q);
}

/* ---- joins that keep the order of one of their tables */

/* Whether some conjunct compares the rowid of source s for equality with an expression over the
** `known` sources. */
static bool by_rowid(const wl_query *q, const wl_bexpr *e, const wl_table *t, int s, wl_u64 known) {
  if (!e) return false;
  if (e->kind == WL_B_AND) return by_rowid(q, e->a, t, s, known) || by_rowid(q, e->b, t, s, known);
  if (e->kind != WL_B_COMPARE || e->op != WL_OP_EQ) return false;
  for (int turn = 0; turn < 2; turn++) {
    const wl_bexpr *mine = turn ? e->b : e->a, *other = turn ? e->a : e->b;
    if (!(wl_bexpr_sources(other) & ~known) && is_rowid(q, mine, t, s)) return true;
  }
  return false;
}

/* Whether a row of the known sources matches at most one row of source s. */
static bool at_most_one(wl_store *store, const wl_query *q, int s, wl_u64 known) {
  const wl_bsource *src = &q->sources[s];
  wl_table *t;
  wl_error ignored;
  if (joins_one(src)) return true;
  if (!src->table || wl_store_table(store, src->schema, src->table, &t, &ignored)) return false;
  return by_rowid(q, src->how == WL_HOW_INNER ? q->where : src->on, t, s, known);
}

/* The only source with this name in the statement if it is a table that may be scanned, else -1. */
static int source_named(const wl_query *q, const char *name) {
  int found = -1;
  for (int s = 0; s < q->n_sources; s++) {
    if (!q->sources[s].name || sqlite3_stricmp(q->sources[s].name, name) != 0) continue;
    if (found >= 0 || !q->sources[s].table || q->sources[s].how != WL_HOW_INNER) return -1;
    found = s;
  }
  return found;
}

static bool keeps_unmatched(const wl_query *q) {
  for (int s = 0; s < q->n_sources; s++)
    if (wl_how_keeps_unmatched(q->sources[s].how)) return true;
  return false;
}

void wl_query_find_order(wl_store *store, wl_query *q, const wl_plan_facts *facts) {
  bool rowid_order, unordered;
  q->ordered_by = 0;
  wl_query_order(store, q, false, true, &rowid_order, &unordered);
  if (!unordered || !(q->limit || q->offset) || q->n_order || q->aggregate || q->distinct ||
      q->combines || q->like_param || q->n_sources < 2 || !facts->outer_in_order ||
      keeps_unmatched(q))
    return;
  int first = source_named(q, facts->outer);
  if (first < 0) return;
  wl_u64 known = 1ULL << first, all = q->n_sources < 64 ? (1ULL << q->n_sources) - 1 : ~0ULL;
  for (bool more = true; more;) {
    more = false;
    for (int s = 0; s < q->n_sources; s++) {
      if (known >> s & 1 || !at_most_one(store, q, s, known)) continue;
      known |= 1ULL << s;
      more = true;
    }
  }
  if (known == all) q->ordered_by = first + 1;
}

/* Whether every term of ORDER BY is a result, so that equal results are equal in ORDER BY. */
static bool orders_by_results(const wl_query *q) {
  for (int k = 0; k < q->n_order; k++) {
    int i = 0;
    while (i < q->n_results && !wl_bexpr_same(q->results[i], q->order[k].expr)) i++;
    if (i == q->n_results && q->order[k].expr->kind != WL_B_CONST) return false;
  }
  return true;
}

wl_status wl_query_cut(const wl_query *q, bool unordered, wl_error *err) {
  if (q->distinct && unordered && !orders_by_results(q))
    return wl_not_taken(err, "DISTINCT with ORDER BY of something else over rows that have no "
                             "defined order: the first of equal rows decides");
  bool cuts = (q->limit || q->offset) && unordered && !(q->aggregate && !q->grouped);
  if (cuts && q->n_order == 0)
    return wl_not_taken(err, "LIMIT without ORDER BY over rows that have no defined order");
  return WL_OK;
}

wl_status wl_query_cuts(wl_store *store, const wl_query *q, bool top, wl_error *err) {
  bool rowid_order, unordered;
  wl_query_order(store, q, false, top, &rowid_order, &unordered);
  wl_status rc = wl_query_cut(q, unordered, err);
  for (int s = 0; s < q->n_sources && !rc; s++) {
    const wl_derived *d = q->sources[s].derived;
    for (int k = 0; d && k < d->n_arms && !rc; k++)
      rc = wl_query_cuts(store, d->arms[k], false, err);
  }
  for (int k = 0; k < q->n_subs && !rc; k++)
    rc = wl_query_cuts(store, q->subs[k].query, false, err);
  return rc;
}
