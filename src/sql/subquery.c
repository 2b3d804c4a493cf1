/*
** Subqueries in expressions. One that refers to nothing outside is run before the query (a sub:
** a value, a truth, a list) or joined (IN). One that does is turned into a join:
**
**   EXISTS, IN          a SEMI, ANTI or MARK join with the subquery's table, its WHERE as the
**                       condition; with several tables, with the rows of its join
**   scalar aggregate    where it refers outwards by equalities alone: grouped by their inner
**                       sides, and joined LEFT by them
**   all others          the different outer values it depends on become one of its own sources;
**                       what it gives for each of them is joined by these values
**
** Part of the binder.
**
** Invariants:
** 1. Such a join never gives a row twice: SEMI, ANTI and MARK by what they are, LEFT because it
**    is by group keys, or `single` makes a second match SQLite's affair.
*/
#include "sql/bind_impl.h"
#include <string.h>

typedef enum use { USE_SEMI, USE_ANTI, USE_MARK } use;

static bool has_outer(const wl_bexpr *e) {
  if (!e) return false;
  if (e->kind == WL_B_OUTER) return true;
  for (int k = 0; k < e->n_list; k++)
    if (has_outer(e->list[k])) return true;
  return has_outer(e->a) || has_outer(e->b);
}

/* Whether it reads rows of the subquery itself. */
static bool has_inner(const wl_bexpr *e) {
  if (!e || e->kind == WL_B_OUTER) return false;
  if (e->kind == WL_B_COLUMN || e->kind == WL_B_AGG || e->kind == WL_B_FOUND) return true;
  for (int k = 0; k < e->n_list; k++)
    if (has_inner(e->list[k])) return true;
  return has_inner(e->a) || has_inner(e->b);
}

/* Whether it refers outwards elsewhere than in WHERE; results: but for the results. */
static bool outer_elsewhere(const wl_query *q, bool results) {
  bool yes = has_outer(q->having) || has_outer(q->limit) || has_outer(q->offset);
  for (int k = 0; k < q->n_results && results; k++) yes |= has_outer(q->results[k]);
  for (int k = 0; k < q->n_groups; k++) yes |= has_outer(q->groups[k]);
  for (int k = 0; k < q->n_aggs; k++)
    yes |= has_outer(q->aggs[k].arg) || has_outer(q->aggs[k].separator);
  for (int k = 0; k < q->n_sources; k++) yes |= has_outer(q->sources[k].on);
  return yes;
}

static wl_status add_sub(binder *b, wl_query *q, char kind, int *out) {
  wl_status rc = WL_BIND_ROOM(b, b->q->subs, b->q->n_subs, b->size_subs);
  if (rc) return rc;
  *out = b->q->n_subs;
  b->q->subs[b->q->n_subs++] = (wl_bsub){q, kind};
  return WL_OK;
}

/* Binds a subquery of an expression. Of a compound the last arm says what affinity its columns
** have there, though in FROM it is the first. */
static wl_status bind_sub(binder *b, const wl_select *s, binder **child, wl_query **q) {
  wl_status rc = wl_bind_select(b, s, false, child, q);
  const wl_query *last = rc ? NULL : (*child)->last_arm;
  if (last) (*q)->sources[0].derived->mixed = (*child)->mixed;
  for (int k = 0; last && k < last->n_results; k++)
    (*q)->results[k]->affinity = last->results[k]->affinity;
  return rc;
}

/* LIMIT of at least one row, without OFFSET, changes nothing for EXISTS. */
static bool harmless_limit(const wl_query *q) {
  if (q->offset) return false;
  return !q->limit || (q->limit->kind == WL_B_CONST && q->limit->value.t == WL_T_INT &&
                       (wl_i64)q->limit->value.v != 0);
}

/* ---- the subquery with the outer values it depends on among its sources */

/* Whether it can be computed from columns alone. */
static bool of_columns(const wl_bexpr *e) {
  if (!e) return true;
  if (e->kind == WL_B_OUTER || e->kind == WL_B_SUB || e->kind == WL_B_INSUB ||
      e->kind == WL_B_FOUND || e->kind == WL_B_AGG)
    return false;
  for (int k = 0; k < e->n_list; k++)
    if (!of_columns(e->list[k])) return false;
  return of_columns(e->a) && of_columns(e->b);
}

/* The conjuncts of WHERE over these sources alone: rows that they drop need no values. */
static wl_status same_where(wl_graft *g, const wl_bexpr *e, wl_u64 sources) {
  if (!e) return WL_OK;
  if (e->kind == WL_B_AND) {
    wl_status rc = same_where(g, e->a, sources);
    return rc ? rc : same_where(g, e->b, sources);
  }
  wl_bexpr *x;
  if ((wl_bexpr_sources(e) & ~sources) || !of_columns(e)) return WL_OK;
  wl_status rc = wl_graft_expr(g, e, &x);
  return rc ? rc : wl_bind_and(g->to, &g->to->q->where, x);
}

/* The different values of the outer expressions, as a query. */
static wl_status outer_values(binder *b, const binder *child, wl_query **out) {
  wl_query *q = b->q;
  wl_u64 mask = 0;
  for (int k = 0; k < child->n_outers; k++) {
    if (has_outer(child->outers[k]->a))
      return wl_not_taken(b->err, "a subquery that refers to a query further out");
    mask |= wl_bexpr_sources(child->outers[k]->a);
  }
  if (b->right || !b->n_from || mask == 0 || (b->n_from < 64 && mask >> b->n_from))
    return wl_not_taken(b->err, "a subquery that refers to a join it is itself part of");
  binder *d = WL_NEW(b->arena, binder);
  if (!d) return wl_nomem(b->err);
  *d = (binder){.arena = b->arena, .catalog = b->catalog, .all = b->all, .err = b->err};
  d->q = WL_NEW(b->arena, wl_query);
  if (!d->q) return wl_nomem(b->err);
  d->q->decides = -1;
  d->q->distinct = true;
  wl_graft g;
  wl_status rc = wl_graft_open(&g, d, q);
  int place, only = __builtin_ctzll(mask);
  /* a source that may lack its row is not all there is to its columns */
  bool one = (mask & (mask - 1)) == 0 && q->sources[only].how == WL_HOW_INNER;
  for (int s = 0; s < b->n_from && !rc; s++) {
    if (one && s != only) continue;
    wl_bsource copy = q->sources[s];
    copy.on = NULL;
    if (one) copy.how = WL_HOW_INNER;
    if (copy.how != WL_HOW_INNER && copy.how != WL_HOW_LEFT)
      return wl_not_taken(b->err, "a subquery that refers to a join with subqueries");
    rc = wl_bind_source(d, copy, &place);
  }
  if (one) g.source_base = -only;
  for (int s = 0; s < b->n_from && !rc && !one; s++) {
    if (q->sources[s].on && wl_bexpr_sources(q->sources[s].on) >> b->n_from)
      return wl_not_taken(b->err, "a subquery that refers to a join with subqueries");
    wl_bexpr *on;
    rc = wl_graft_expr(&g, q->sources[s].on, &on);
    if (!rc) d->q->sources[s].on = on;
  }
  wl_u64 all = b->n_from < 64 ? (1ULL << b->n_from) - 1 : ~0ULL;
  if (!rc) rc = same_where(&g, q->where, one ? mask : all);
  d->q->results = WL_NEW_N(b->arena, wl_bexpr *, child->n_outers);
  if (!d->q->results) return wl_nomem(b->err);
  for (int k = 0; k < child->n_outers && !rc; k++)
    rc = wl_graft_expr(&g, child->outers[k]->a, &d->q->results[d->q->n_results++]);
  d->q->table = "outer values";
  *out = d->q;
  return rc;
}

/* Makes the outer values a source of the subquery, and what referred to them columns of it. */
static wl_status take_values(binder *b, binder *child) {
  wl_query *values = NULL;
  wl_derived *d = NULL;
  int place;
  wl_status rc = outer_values(b, child, &values);
  if (!rc) rc = wl_bind_derived(b, values, &d);
  if (!rc) rc = wl_bind_source(child, (wl_bsource){.derived = d, .name = "outer values"}, &place);
  for (int k = 0; k < child->n_outers && !rc; k++) {
    wl_bexpr *o = child->outers[k], *col;
    rc = wl_bind_column(child, place, k, o->affinity, o->has_coll ? o->coll : WL_COLL_BINARY, &col);
    if (rc) break;
    col->has_coll = o->has_coll;
    o->kind = WL_B_CAST; /* the value as it is */
    o->op = WL_OP_POS;
    o->a = col;
  }
  child->q->simple = false;
  return rc;
}

/* outer IS column, for each outer value; the columns are the first ones of source place. */
static wl_status same_values(binder *b, wl_bexpr **outers, int n, int place, wl_bexpr **on) {
  for (int k = 0; k < n; k++) {
    wl_bexpr *col, *same;
    wl_status rc = wl_bind_column(b, place, k, outers[k]->affinity, outers[k]->coll, &col);
    if (!rc) rc = wl_bind_compare(b, WL_B_IS, WL_OP_EQ, outers[k], col, &same);
    if (rc) return rc;
    same->cmp_affinity = '@';
    same->cmp_coll = WL_COLL_BINARY;
    rc = wl_bind_and(b, on, same);
    if (rc) return rc;
  }
  return WL_OK;
}

/* The subquery's results: the outer values, then its own. */
static wl_status with_values(binder *child, wl_bexpr **outers_of, int n, bool grouped) {
  wl_query *q = child->q;
  wl_bexpr **results = WL_NEW_N(child->arena, wl_bexpr *, n + q->n_results + 1);
  wl_bexpr **groups = WL_NEW_N(child->arena, wl_bexpr *, n + q->n_groups + 1);
  if (!results || !groups) return wl_nomem(child->err);
  memcpy(results, outers_of, (size_t)n * sizeof *results);
  memcpy(groups, outers_of, (size_t)n * sizeof *groups);
  if (q->n_results) memcpy(results + n, q->results, (size_t)q->n_results * sizeof *results);
  if (q->n_groups) memcpy(groups + n, q->groups, (size_t)q->n_groups * sizeof *groups);
  q->results = results;
  q->n_results += n;
  if (grouped) {
    q->groups = groups;
    q->n_groups += n;
    q->grouped = q->aggregate = true;
  }
  q->order = NULL;
  q->n_order = 0;
  q->limit = NULL;
  return WL_OK;
}

/* ---- EXISTS and IN as joins */

static wl_join_how how_of(use u) {
  return u == USE_SEMI ? WL_HOW_SEMI : u == USE_ANTI ? WL_HOW_ANTI : WL_HOW_MARK;
}

/* x = result, for each of IN's left sides; result: as seen in b. */
static wl_status equal_results(binder *b, wl_bexpr **xs, wl_bexpr **results, int n, wl_bexpr **on) {
  for (int k = 0; k < n; k++) {
    wl_bexpr *eq;
    wl_status rc = wl_bind_compare(b, WL_B_COMPARE, WL_OP_EQ, xs[k], results[k], &eq);
    if (!rc) eq->index = 1;
    if (!rc) rc = wl_bind_and(b, on, eq);
    if (rc) return rc;
  }
  return WL_OK;
}

/* IN compares with the subquery's own result, so a COLLATE written there counts as one written
** at the comparison. (A column of a subquery in FROM has no more than a collation.) */
static void keep_explicit(wl_bexpr *as_seen, const wl_bexpr *result) {
  if (result->explicit_coll) as_seen->explicit_coll = true;
}

/* Its one source becomes one of b's. */
static wl_status join_table(binder *b, const wl_query *q, wl_bexpr **xs, int n_xs, use u,
                            int *place) {
  wl_graft g;
  wl_bsource s = q->sources[0];
  wl_status rc = wl_graft_open(&g, b, q);
  s.how = how_of(u);
  s.on = NULL;
  if (!rc) rc = wl_graft_query(&g);
  if (!rc) rc = wl_bind_source(b, s, place);
  if (rc) return rc;
  g.source_base = *place;
  wl_bexpr *on = NULL, **results = WL_NEW_N(b->arena, wl_bexpr *, n_xs + 1);
  if (!results) return wl_nomem(b->err);
  rc = wl_graft_expr(&g, q->where, &on);
  for (int k = 0; k < n_xs && !rc; k++) {
    rc = wl_graft_expr(&g, q->results[k], &results[k]);
    if (!rc) rc = wl_bind_as_column(b, results[k], &results[k]);
    if (!rc) keep_explicit(results[k], q->results[k]);
  }
  if (!rc) rc = equal_results(b, xs, results, n_xs, &on);
  b->q->sources[*place].on = on;
  return rc;
}

typedef struct splitting {
  binder *child;
  int place;
} splitting;

/* What reads the subquery's rows alone becomes one of its results, and a column of its source. */
static wl_status split_node(wl_graft *g, const wl_bexpr *e, wl_bexpr **out) {
  splitting *s = g->arg;
  wl_query *q = s->child->q;
  if (has_outer(e) || !has_inner(e)) return WL_OK;
  int k = 0;
  while (k < q->n_results && q->results[k] != e) k++;
  if (k == q->n_results) q->results[q->n_results++] = (wl_bexpr *)(size_t)e;
  g->to->q->sources[s->place].derived->n_cols = q->n_results;
  wl_status rc =
      wl_bind_column(g->to, s->place, k, e->affinity, e->has_coll ? e->coll : WL_COLL_BINARY, out);
  if (!rc) (*out)->has_coll = e->has_coll;
  return rc;
}

static int count_nodes(const wl_query *q) {
  return q->n_exprs + q->n_results + 4;
}

/* Conjuncts of e: those that refer outwards, and the others. */
static wl_status split_where(binder *child, wl_bexpr *e, wl_bexpr **inner, wl_bexpr **outer) {
  if (!e) return WL_OK;
  if (e->kind == WL_B_AND) {
    wl_status rc = split_where(child, e->a, inner, outer);
    return rc ? rc : split_where(child, e->b, inner, outer);
  }
  return wl_bind_and(child, has_outer(e) ? outer : inner, e);
}

/* The rows of its join, by what the outer query wants of them. */
static wl_status join_rows(binder *b, binder *child, wl_bexpr **xs, int n_xs, use u, int *place) {
  wl_query *q = child->q;
  wl_bexpr *inner = NULL, *outer = NULL, *on = NULL;
  wl_bexpr **wanted = q->results, **results = WL_NEW_N(b->arena, wl_bexpr *, n_xs + 1);
  wl_derived *d = NULL;
  wl_status rc = results ? split_where(child, q->where, &inner, &outer) : wl_nomem(b->err);
  if (rc) return rc;
  q->where = inner;
  q->results = WL_NEW_N(b->arena, wl_bexpr *, count_nodes(q));
  if (!q->results) return wl_nomem(b->err);
  q->n_results = 0;
  q->n_order = 0;
  q->limit = NULL;
  q->distinct = true;
  q->simple = false;
  rc = wl_bind_derived(b, q, &d);
  wl_bsource to = {.how = how_of(u), .derived = d, .name = "subquery"};
  if (!rc) rc = wl_bind_source(b, to, place);
  wl_graft g;
  splitting s = {child, rc ? 0 : *place};
  if (!rc) rc = wl_graft_open(&g, b, q);
  if (rc) return rc;
  g.node = split_node;
  g.arg = &s;
  rc = wl_graft_expr(&g, outer, &on);
  for (int k = 0; k < n_xs && !rc; k++) {
    rc = wl_graft_expr(&g, wanted[k], &results[k]);
    if (!rc) keep_explicit(results[k], wanted[k]);
  }
  if (!rc) rc = equal_results(b, xs, results, n_xs, &on);
  b->q->sources[*place].on = on;
  return rc;
}

/* Whether DISTINCT drops rows that IN could tell from those it keeps: 'A' beside 'a' under NOCASE,
** where IN compares them as they are; 1.0 beside 1, where IN compares them as text. */
static bool distinct_matters(const wl_query *q, wl_bexpr **xs, int n_xs) {
  for (int k = 0; q->distinct && k < n_xs; k++) {
    const wl_bexpr *r = q->results[k];
    wl_bexpr as_compared = *r;
    wl_u8 coll = r->has_coll ? r->coll : WL_COLL_BINARY;
    as_compared.has_coll = true;
    if (coll != WL_COLL_BINARY && wl_bind_compare_coll(xs[k], &as_compared) != coll) return true;
    if (r->affinity != 'B' && wl_bind_compare_affinity(xs[k], r) == 'B') return true;
  }
  return false;
}

/* EXISTS (n_xs = 0) or IN as a join; *place: the new source. */
static wl_status join_subquery(binder *b, binder *child, wl_bexpr **xs, int n_xs, use u,
                               int *place) {
  wl_query *q = child->q;
  if (n_xs && q->n_results != n_xs)
    return wl_not_taken(b->err, "a subquery of %d columns", q->n_results);
  if (n_xs && (q->limit || q->offset) && child->n_outers)
    return wl_not_taken(b->err, "LIMIT in a subquery that refers outwards");
  if (!n_xs && !harmless_limit(q)) return wl_not_taken(b->err, "LIMIT in EXISTS");
  bool limited = n_xs && (q->limit || q->offset);
  bool plain = !q->aggregate && !child->right && !outer_elsewhere(q, false) &&
               !distinct_matters(q, xs, n_xs);
  if (plain && !limited && q->n_sources == 1 && q->sources[0].how == WL_HOW_INNER &&
      (q->sources[0].table || q->sources[0].derived))
    return join_table(b, q, xs, n_xs, u, place);
  if (child->n_outers == 0) {
    wl_derived *d = NULL;
    wl_bexpr *on = NULL, **results = WL_NEW_N(b->arena, wl_bexpr *, n_xs + 1);
    wl_status rc = results ? wl_bind_derived(b, q, &d) : wl_nomem(b->err);
    wl_bsource to = {.how = how_of(u), .derived = d, .name = "subquery"};
    if (!rc) rc = wl_bind_source(b, to, place);
    for (int k = 0; k < n_xs && !rc; k++) {
      const wl_bexpr *r = q->results[k];
      rc = wl_bind_column(b, *place, k, r->affinity, r->has_coll ? r->coll : WL_COLL_BINARY,
                          &results[k]);
      if (!rc) results[k]->has_coll = r->has_coll;
      if (!rc) keep_explicit(results[k], r);
    }
    if (!rc) rc = equal_results(b, xs, results, n_xs, &on);
    if (!rc) b->q->sources[*place].on = on;
    return rc;
  }
  if (plain) return join_rows(b, child, xs, n_xs, u, place);
  int n = child->n_outers;
  wl_bexpr **outers = WL_NEW_N(b->arena, wl_bexpr *, n + 1);
  wl_bexpr **results = WL_NEW_N(b->arena, wl_bexpr *, n_xs + 1), *on = NULL;
  wl_derived *d = NULL;
  if (!outers || !results) return wl_nomem(b->err);
  for (int k = 0; k < n; k++) outers[k] = child->outers[k]->a;
  if (!n_xs) q->n_results = 0;
  wl_status rc = take_values(b, child);
  if (!rc) rc = with_values(child, child->outers, n, q->aggregate);
  if (!rc && !q->aggregate) q->distinct = true;
  if (!rc) rc = wl_bind_derived(b, q, &d);
  wl_bsource to = {.how = how_of(u), .derived = d, .name = "subquery"};
  if (!rc) rc = wl_bind_source(b, to, place);
  if (!rc) rc = same_values(b, outers, n, *place, &on);
  for (int k = 0; k < n_xs && !rc; k++) {
    const wl_bexpr *r = q->results[n + k];
    rc = wl_bind_column(b, *place, n + k, r->affinity, r->has_coll ? r->coll : WL_COLL_BINARY,
                        &results[k]);
    if (!rc) keep_explicit(results[k], r);
  }
  if (!rc) rc = equal_results(b, xs, results, n_xs, &on);
  if (!rc) b->q->sources[*place].on = on;
  return rc;
}

static bool has_aggregate(const wl_bexpr *e) {
  if (!e) return false;
  if (e->kind == WL_B_AGG) return true;
  for (int k = 0; k < e->n_list; k++)
    if (has_aggregate(e->list[k])) return true;
  return has_aggregate(e->a) || has_aggregate(e->b);
}

/* Whether comparing under an affinity leaves x as it is. A REAL that is compared with an integer
** column, or looked for in a list, becomes an integer. */
static bool stays(char affinity, const wl_bexpr *x, const wl_bexpr *other, int n_list) {
  if (x->affinity == 'E')
    return other ? other->affinity < 'C' || other->affinity == 'E' : n_list < 3;
  return affinity >= 'C' ? x->affinity >= 'C' : x->affinity == 'B';
}

/* Whether comparing applies to an outer value an affinity that is not its own. Beside groups SQLite
** 3.40 then changes the group's own value. */
static bool changes_outer(const wl_bexpr *e) {
  if (!e) return false;
  for (int k = 0; e->cmp_affinity > 'A' && k < 2 + e->n_list; k++) {
    const wl_bexpr *side = k == 0 ? e->a : k == 1 ? e->b : e->list[k - 2];
    const wl_bexpr *other = k == 0 ? e->b : e->a;
    if (has_outer(side) && !stays(e->cmp_affinity, side, other, e->n_list)) return true;
  }
  for (int k = 0; k < e->n_list; k++)
    if (changes_outer(e->list[k])) return true;
  return changes_outer(e->a) || changes_outer(e->b);
}

/* Where there are groups, not rows, what the subquery and IN's left sides refer to is noted: the
** groups must settle it. */
static wl_status check_place(binder *b, const binder *child, wl_bexpr **xs, int n_xs,
                             wl_beside *to) {
  memset(to, 0, sizeof *to);
  if (!b->after_groups || b->in_agg) return WL_OK;
  if (changes_outer(child->q->where))
    return wl_not_taken(b->err, "a subquery beside groups that compares their values under another "
                                "affinity");
  to->outers = WL_NEW_N(b->arena, wl_bexpr *, child->n_outers + n_xs + 1);
  if (!to->outers) return wl_nomem(b->err);
  for (int k = 0; k < child->n_outers + n_xs; k++) {
    wl_bexpr *e = k < n_xs ? xs[k] : child->outers[k - n_xs]->a;
    if (has_aggregate(e)) return wl_not_taken(b->err, "a subquery that refers to an aggregate");
    to->outers[to->n++] = e;
  }
  return WL_OK;
}

static wl_status note_beside(binder *b, wl_beside *s, wl_bexpr *value) {
  if (!s->outers) return WL_OK;
  s->value = value;
  wl_status rc = WL_BIND_ROOM(b, b->beside, b->n_beside, b->size_beside);
  if (!rc) b->beside[b->n_beside++] = *s;
  return rc;
}

static wl_status found(binder *b, int source, wl_bexpr **out) {
  *out = wl_bind_node(b, WL_B_FOUND);
  if (!*out) return wl_nomem(b->err);
  (*out)->source = source;
  return WL_OK;
}

static wl_status exists(binder *b, const wl_expr *e, use u, wl_bexpr **out) {
  binder *child;
  wl_query *q;
  int k;
  *out = NULL;
  wl_status rc = wl_bind_select(b, e->select, false, &child, &q);
  if (rc) return rc;
  if (child->n_outers == 0) {
    rc = add_sub(b, q, 'e', &k);
    *out = rc ? NULL : wl_bind_node(b, WL_B_SUB);
    if (!*out) return rc ? rc : wl_nomem(b->err);
    (*out)->index = k;
    return wl_bind_negate(b, u == USE_ANTI, out);
  }
  if (q->limit && q->limit->kind == WL_B_CONST && q->limit->value.t == WL_T_INT &&
      q->limit->value.v == 0)
    return wl_bind_constant(b, wl_int(u == USE_ANTI), out);
  wl_beside beside;
  rc = check_place(b, child, NULL, 0, &beside);
  if (!rc && q->aggregate && !q->grouped && !q->having && harmless_limit(q))
    return wl_bind_constant(b, wl_int(u != USE_ANTI), out); /* there is always one row */
  if (!rc && q->aggregate && !q->grouped)
    return wl_not_taken(b->err, "EXISTS over an aggregate with HAVING");
  if (!rc) rc = join_subquery(b, child, NULL, 0, u, &k);
  if (rc || u != USE_MARK) return rc;
  rc = found(b, k, out);
  return rc ? rc : note_beside(b, &beside, *out);
}

wl_status wl_bind_exists(binder *b, const wl_expr *e, wl_bexpr **out) {
  return exists(b, e, USE_MARK, out);
}

/* x IN table is x IN (SELECT * FROM table). */
static wl_status select_of(binder *b, const wl_expr *e, const wl_select **out) {
  *out = e->select;
  if (e->select) return WL_OK;
  if (e->list) return wl_not_taken(b->err, "IN a table-valued function");
  wl_select *s = WL_NEW(b->arena, wl_select);
  wl_from_item *f = WL_NEW(b->arena, wl_from_item);
  wl_result_col *c = WL_NEW(b->arena, wl_result_col);
  if (!s || !f || !c) return wl_nomem(b->err);
  f->name = e->name;
  f->schema = e->schema;
  c->star = true;
  s->cols = c;
  s->from = f;
  *out = s;
  return WL_OK;
}

static wl_status in_select(binder *b, const wl_expr *e, use u, wl_bexpr **out) {
  binder *child;
  wl_query *q;
  const wl_select *select = NULL;
  int k, n = 1;
  bool row = e->a->kind == WL_E_VECTOR;
  *out = NULL;
  if (row && b->right) /* SQLite 3.40 gives some rows several times */
    return wl_not_taken(b->err, "row values IN (SELECT ...) beside a RIGHT or FULL JOIN");
  for (const wl_expr_list *l = row ? e->a->list : NULL; l; l = l->next) n += l != e->a->list;
  wl_bexpr **xs = WL_NEW_N(b->arena, wl_bexpr *, n + 1);
  wl_status rc = xs ? select_of(b, e, &select) : wl_nomem(b->err);
  if (!rc && !row) rc = wl_bind_expr(b, e->a, &xs[0]);
  k = 0;
  for (const wl_expr_list *l = row ? e->a->list : NULL; l && !rc; l = l->next)
    rc = wl_bind_expr(b, l->expr, &xs[k++]);
  if (!rc) rc = bind_sub(b, select, &child, &q);
  if (rc) return rc;
  if (row && u == USE_MARK) return wl_not_taken(b->err, "row values are not native here");
  if (b->after_groups && !b->in_agg && child->n_outers == 0) {
    /* beside groups: against the list of its values */
    rc = add_sub(b, q, 'l', &k);
    wl_bexpr *cmp;
    if (!rc) rc = wl_bind_compare(b, WL_B_COMPARE, WL_OP_EQ, xs[0], q->results[0], &cmp);
    *out = rc ? NULL : wl_bind_node(b, WL_B_INSUB);
    if (!*out) return rc ? rc : wl_nomem(b->err);
    (*out)->index = k;
    (*out)->a = xs[0];
    (*out)->cmp_affinity = cmp->cmp_affinity;
    (*out)->cmp_coll = cmp->cmp_coll;
    return WL_OK;
  }
  wl_beside beside;
  rc = check_place(b, child, xs, n, &beside);
  bool correlated = child->n_outers > 0;
  if (!rc && correlated && q->aggregate && !q->grouped)
    return wl_not_taken(b->err, "IN over an aggregate that refers outwards");
  if (!rc) rc = join_subquery(b, child, xs, n, u, &k);
  if (rc || u != USE_MARK) return rc;
  rc = found(b, k, out);
  if (rc) return rc;
  (*out)->a = xs[0];
  (*out)->op = WL_OP_EQ; /* IN: where nothing is found, NULLs decide between false and NULL */
  (*out)->index = correlated;
  return note_beside(b, &beside, *out);
}

wl_status wl_bind_in_select(binder *b, const wl_expr *e, wl_bexpr **out) {
  wl_status rc = in_select(b, e, USE_MARK, out);
  return rc ? rc : wl_bind_negate(b, e->negated, out);
}

wl_status wl_bind_conjunct(binder *b, const wl_expr *e, wl_bexpr **out) {
  if (e->kind == WL_E_EXISTS) return exists(b, e, USE_SEMI, out);
  if (e->kind == WL_E_UNARY && e->op == WL_OP_NOT && e->a->kind == WL_E_EXISTS)
    return exists(b, e->a, USE_ANTI, out);
  if (e->kind == WL_E_IN && !e->has_list && !e->negated) return in_select(b, e, USE_SEMI, out);
  return wl_bind_expr(b, e, out);
}

/* ---- scalar subqueries */

/* What an aggregate over no rows is: in place of each in an expression. */
static wl_status empty_node(wl_graft *g, const wl_bexpr *e, wl_bexpr **out) {
  const wl_query *q = g->from;
  if (e->kind == WL_B_COLUMN) return wl_bind_constant(g->to, wl_null(), out);
  if (e->kind != WL_B_AGG) return WL_OK;
  wl_agg_fn fn = q->aggs[e->index].fn;
  return wl_bind_constant(g->to,
                          fn == WL_FN_COUNT   ? wl_int(0)
                          : fn == WL_FN_TOTAL ? wl_real(0)
                                              : wl_null(),
                          out);
}

/* The value where the join found a row, else what the aggregates are over no rows. */
static wl_status or_empty(binder *b, const wl_query *q, const wl_bexpr *result, int source,
                          wl_bexpr *value, wl_bexpr **out) {
  *out = value;
  if (result->kind == WL_B_AGG && q->aggs[result->index].fn != WL_FN_COUNT &&
      q->aggs[result->index].fn != WL_FN_TOTAL)
    return WL_OK; /* NULL, as is a column of no row */
  wl_graft g;
  wl_status rc = wl_graft_open(&g, b, q);
  wl_bexpr *x = rc ? NULL : wl_bind_node(b, WL_B_CASE);
  if (x) x->list = WL_NEW_N(b->arena, wl_bexpr *, 3);
  if (rc || !x || !x->list) return rc ? rc : wl_nomem(b->err);
  g.node = empty_node;
  rc = found(b, source, &x->list[0]);
  x->list[1] = value;
  if (!rc) rc = wl_graft_expr(&g, result, &x->list[2]);
  x->n_list = 3;
  x->affinity = value->affinity;
  *out = x;
  return rc;
}

/* Whether grouping by the inner side of an equality finds just the rows that it would. */
static bool groupable(const wl_bexpr *e, const wl_bexpr **inner, const wl_bexpr **outer) {
  if (e->kind != WL_B_COMPARE || e->op != WL_OP_EQ) return false;
  bool turned = has_outer(e->a);
  *outer = turned ? e->a : e->b;
  *inner = turned ? e->b : e->a;
  if (has_inner(*outer) || has_outer(*inner) || !has_inner(*inner)) return false;
  if (e->cmp_affinity >= 'C' && (*inner)->affinity < 'C') return false;
  if (e->cmp_affinity == 'B' && (*inner)->affinity != 'B') return false;
  return e->cmp_coll == ((*inner)->has_coll ? (*inner)->coll : WL_COLL_BINARY);
}

static bool all_groupable(const wl_bexpr *e, int *n) {
  if (!e) return true;
  if (e->kind == WL_B_AND) return all_groupable(e->a, n) && all_groupable(e->b, n);
  const wl_bexpr *i, *o;
  ++*n;
  return groupable(e, &i, &o);
}

static void list_groupable(const wl_bexpr *e, wl_bexpr **inner, const wl_bexpr **outer,
                           const wl_bexpr **conds, int *n) {
  if (!e) return;
  if (e->kind == WL_B_AND) {
    list_groupable(e->a, inner, outer, conds, n);
    list_groupable(e->b, inner, outer, conds, n);
    return;
  }
  const wl_bexpr *i = NULL;
  groupable(e, &i, &outer[*n]);
  conds[*n] = e;
  inner[(*n)++] = (wl_bexpr *)(size_t)i;
}

/* An aggregate that refers outwards by equalities alone: one group for each of their values. */
static wl_status group_by_keys(binder *b, binder *child, wl_bexpr *inner, const wl_bexpr *outer,
                               int n, wl_bexpr **out) {
  wl_query *q = child->q;
  wl_bexpr *result = q->results[0], *on = NULL, *value;
  wl_bexpr **keys = WL_NEW_N(b->arena, wl_bexpr *, n + 1);
  const wl_bexpr **outers = WL_NEW_N(b->arena, const wl_bexpr *, n + 1);
  const wl_bexpr **conds = WL_NEW_N(b->arena, const wl_bexpr *, n + 1);
  wl_derived *d = NULL;
  int place, m = 0;
  if (!keys || !outers || !conds) return wl_nomem(b->err);
  list_groupable(outer, keys, outers, conds, &m);
  q->where = inner;
  q->simple = false;
  wl_status rc = with_values(child, keys, n, true);
  if (!rc) rc = wl_bind_derived(b, q, &d);
  wl_bsource to = {.how = WL_HOW_LEFT, .single = true, .derived = d, .name = "subquery"};
  if (!rc) rc = wl_bind_source(b, to, &place);
  wl_graft g;
  if (!rc) rc = wl_graft_open(&g, b, q);
  for (int k = 0; k < n && !rc; k++) {
    wl_bexpr *col, *o, *eq;
    rc = wl_bind_column(b, place, k, keys[k]->affinity,
                        keys[k]->has_coll ? keys[k]->coll : WL_COLL_BINARY, &col);
    if (!rc) col->has_coll = keys[k]->has_coll;
    if (!rc) rc = wl_graft_expr(&g, outers[k], &o);
    if (!rc) rc = wl_bind_compare(b, WL_B_COMPARE, WL_OP_EQ, o, col, &eq);
    if (rc) break;
    eq->cmp_affinity = conds[k]->cmp_affinity; /* which side stood left counts */
    eq->cmp_coll = conds[k]->cmp_coll;
    rc = wl_bind_and(b, &on, eq);
  }
  if (!rc) rc = wl_bind_column(b, place, n, result->affinity, WL_COLL_BINARY, &value);
  if (rc) return rc;
  value->has_coll = false;
  b->q->sources[place].on = on;
  return or_empty(b, q, result, place, value, out);
}

wl_status wl_bind_scalar(binder *b, const wl_expr *e, wl_bexpr **out) {
  binder *child;
  wl_query *q;
  int k;
  wl_status rc = bind_sub(b, e->select, &child, &q);
  if (rc) return rc;
  if (q->n_results != 1) return wl_not_taken(b->err, "row values are not native here");
  if (child->n_outers == 0) {
    rc = add_sub(b, q, 'v', &k);
    wl_bexpr *x = *out = rc ? NULL : wl_bind_node(b, WL_B_SUB);
    if (!x) return rc ? rc : wl_nomem(b->err);
    x->index = k;
    x->affinity = q->results[0]->affinity;
    return WL_OK;
  }
  wl_beside beside;
  rc = check_place(b, child, NULL, 0, &beside);
  if (rc) return rc;
  wl_bexpr *inner = NULL, *outer = NULL;
  int n = 0;
  bool mixed = has_outer(q->results[0]);
  if (mixed && q->aggregate) return wl_not_taken(b->err, "an aggregate beside outer values");
  rc = split_where(child, q->where, &inner, &outer);
  if (rc) return rc;
  bool one = q->aggregate && !q->grouped; /* gives one row for any outer values */
  if (q->having && one) return wl_not_taken(b->err, "HAVING in a subquery that refers outwards");
  if ((q->limit || q->offset) && !(one && harmless_limit(q)))
    return wl_not_taken(b->err, "LIMIT in a subquery that refers outwards");
  if (child->right) return wl_not_taken(b->err, "RIGHT or FULL JOIN in such a subquery");
  if (one && !q->bare && !outer_elsewhere(q, true) && all_groupable(outer, &n)) {
    rc = group_by_keys(b, child, inner, outer, n, out);
    return rc ? rc : note_beside(b, &beside, *out);
  }
  /* the other way: for each of the different outer values */
  n = child->n_outers;
  wl_bexpr *result = q->results[0], *on = NULL, *value;
  wl_bexpr **outers = WL_NEW_N(b->arena, wl_bexpr *, n + 1);
  wl_derived *d = NULL;
  int place;
  if (!outers) return wl_nomem(b->err);
  for (k = 0; k < n; k++) outers[k] = child->outers[k]->a;
  rc = take_values(b, child);
  if (!rc) rc = with_values(child, child->outers, n, q->aggregate);
  if (!rc && !q->aggregate) q->distinct = true;
  if (!rc) rc = wl_bind_derived(b, q, &d);
  wl_bsource to = {.how = WL_HOW_LEFT, .single = true, .derived = d, .name = "subquery"};
  if (!rc) rc = wl_bind_source(b, to, &place);
  if (!rc) rc = same_values(b, outers, n, place, &on);
  if (!rc) rc = wl_bind_column(b, place, n, result->affinity, WL_COLL_BINARY, &value);
  if (rc) return rc;
  value->has_coll = false;
  b->q->sources[place].on = on;
  *out = value;
  if (one) rc = or_empty(b, q, result, place, value, out);
  return rc ? rc : note_beside(b, &beside, *out);
}
