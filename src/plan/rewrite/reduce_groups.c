/*
** A grouped query that is joined by its group keys need not compute groups that no row of the other
** sources can ask for. Conditions on those sources become SEMI joins inside the grouped query:
**
**     SELECT … FROM part p, lineitem l
**     WHERE p.brand = 'B' AND l.qty < (SELECT avg(qty) FROM lineitem WHERE partkey = p.partkey)
**
** computes the averages of all parts. With `AND partkey IN (SELECT partkey FROM part WHERE …)` it
** computes those of a few. One of the rewrites of a query.
**
** Invariants:
** 1. A group is kept or dropped as a whole: its rows are equal under the comparison that is added.
** 2. Every group that a row of the result needs is kept. The conditions that are copied must hold
**    for each row of the result, so any of them can also be left out.
** 3. SQLite may compute the other groups too, and fail. So the plan leaves the SEMI joins out if
**    computing a group may fail (wl_jplan_in.may_fail), which depends on the data.
*/
#include "plan/rewrite/rewrite_impl.h"

enum { MAX_KEYS = 8, MAX_NODES = 1000 };
enum { MAX_ARM_SOURCES = 16 }; /* of the grouped query, with those that reduce it */

/* outer = a group key. */
typedef struct group_key {
  const wl_bexpr *equality, *inner;
  const wl_bexpr *outer; /* a column of the outer query */
} group_key;

typedef struct reducing {
  wl_edit *to; /* the outer query */
  wl_edit arm; /* the grouped query */
  int source;  /* its number as a source of the outer query */
  int n_keys;
  group_key keys[MAX_KEYS];
} reducing;

/* Calls fn for each conjunct until it returns an error. */
static wl_status each_conjunct(wl_bexpr *e, wl_status (*fn)(void *arg, wl_bexpr *e), void *arg) {
  if (!e) return WL_OK;
  if (e->kind != WL_B_AND) return fn(arg, e);
  wl_status rc = each_conjunct(e->a, fn, arg);
  return rc ? rc : each_conjunct(e->b, fn, arg);
}

/* The conditions that every row of the result with a row of source s satisfies. */
static wl_bexpr *conditions(const wl_query *q, int s) {
  return q->sources[s].how == WL_HOW_INNER ? q->where : q->sources[s].on;
}

/* Whether some groups can be left out: no LIMIT counts them, and none depends on the order of rows,
** which another source might change. */
static bool can_reduce(const wl_bsource *s) {
  if (!s->derived || s->derived->n_arms != 1 || s->derived->ops || s->derived->shared) return false;
  if (s->how == WL_HOW_MARK || wl_how_keeps_unmatched(s->how)) return false;
  const wl_query *q = s->derived->arms[0];
  if (!q->grouped || q->bare || q->limit || q->offset) return false;
  for (int k = 0; k < q->n_aggs; k++)
    if (wl_agg_joins_text(q->aggs[k].fn)) return false;
  for (int k = 0; k < q->n_sources; k++) /* reduces: done when an inner query was rewritten */
    if (wl_how_keeps_unmatched(q->sources[k].how) || q->sources[k].reduces) return false;
  return true;
}

static bool is_group(const wl_query *q, const wl_bexpr *e) {
  for (int k = 0; k < q->n_groups; k++)
    if (wl_bexpr_same(q->groups[k], e)) return true;
  return false;
}

/* Notes the equality if it compares a group key with a column of an inner source. */
static wl_status note_key(void *arg, wl_bexpr *e) {
  reducing *r = arg;
  const wl_query *q = r->to->q;
  if (e->kind != WL_B_COMPARE || e->op != WL_OP_EQ || r->n_keys == MAX_KEYS) return WL_OK;
  for (int turn = 0; turn < 2; turn++) {
    const wl_bexpr *mine = turn ? e->b : e->a, *other = turn ? e->a : e->b;
    if (mine->kind != WL_B_COLUMN || mine->source != r->source || mine->index < 0 ||
        other->kind != WL_B_COLUMN || q->sources[other->source].how != WL_HOW_INNER ||
        !q->sources[other->source].table)
      continue;
    const wl_bexpr *inner = r->arm.q->results[mine->index];
    if (is_group(r->arm.q, inner) && wl_bexpr_sources(inner) && wl_groups_as_compared(e, inner))
      r->keys[r->n_keys++] = (group_key){e, inner, other};
  }
  return WL_OK;
}

/* ---- one SEMI join */

/* The source of the outer query whose conditions are copied. */
typedef struct reducer {
  reducing *r;
  int from, place; /* its number in the outer query, and in the grouped one */
  const group_key *key;
  const wl_bexpr *column; /* of the source; it equals the key */
  wl_bexpr *filters;      /* in the outer query */
} reducer;

/* Whether a condition can be computed in another query too, and cannot fail. Shared nodes have many
** paths, so *n_left limits them. */
static bool can_copy(const wl_bexpr *e, int *n_left) {
  if (!e) return true;
  if (--*n_left < 0 || e->kind == WL_B_OUTER || e->kind == WL_B_SUB || e->kind == WL_B_INSUB ||
      e->kind == WL_B_FOUND || e->kind == WL_B_AGG || e->fallible || e->of_time ||
      (e->kind == WL_B_CALL && e->index == WL_NATIVE_NONE))
    return false;
  for (int k = 0; k < e->n_list; k++)
    if (!can_copy(e->list[k], n_left)) return false;
  return can_copy(e->a, n_left) && can_copy(e->b, n_left);
}

static wl_status add_filter(void *arg, wl_bexpr *e) {
  reducer *x = arg;
  int n_left = MAX_NODES;
  if (wl_bexpr_sources(e) != 1ULL << x->from || !can_copy(e, &n_left)) return WL_OK;
  return wl_edit_and(x->r->to, &x->filters, e);
}

/* Whether comparing a and b by this equality is the same as comparing either with c in that way: no
** side is converted. */
static bool same_kind(const wl_bexpr *equality, const wl_bexpr *a, const wl_bexpr *b,
                      const wl_bexpr *c) {
  wl_u8 coll = equality->cmp_coll;
  return a->affinity == b->affinity && a->affinity == c->affinity && wl_bexpr_coll(a) == coll &&
         wl_bexpr_coll(b) == coll && wl_bexpr_coll(c) == coll;
}

/* The column that unary plus, COLLATE or a subquery's result shows unchanged. */
static const wl_bexpr *shown(const wl_bexpr *e) {
  while (e->kind == WL_B_CAST && e->op == WL_OP_POS) e = e->a;
  return e;
}

/* Finds a column of the source that must equal the outer side of the key. */
static wl_status find_column(void *arg, wl_bexpr *e) {
  reducer *x = arg;
  if (x->column || e->kind != WL_B_COMPARE || e->op != WL_OP_EQ) return WL_OK;
  for (int turn = 0; turn < 2; turn++) {
    const wl_bexpr *mine = shown(turn ? e->b : e->a), *other = shown(turn ? e->a : e->b);
    if (mine->kind == WL_B_COLUMN && mine->source == x->from && other == x->key->outer &&
        e->cmp_coll == x->key->equality->cmp_coll && same_kind(e, mine, other, x->key->inner))
      x->column = mine;
  }
  return WL_OK;
}

/* Columns of the source are those of its copy in the grouped query. */
static wl_status copy_column(wl_copy *c, const wl_bexpr *e, wl_bexpr **out) {
  const reducer *x = c->arg;
  if (e->kind != WL_B_COLUMN) return WL_OK;
  wl_status rc = wl_edit_column(c->to, x->place, e->index, e->affinity, e->coll, out);
  if (!rc) (*out)->has_coll = e->has_coll;
  return rc;
}

static wl_status equal_key(reducer *x, wl_copy *c, wl_bexpr **on) {
  wl_bexpr *column, *eq;
  wl_edit *arm = &x->r->arm;
  wl_status rc = wl_copy_expr(c, x->column, &column);
  if (!rc)
    rc = wl_edit_compare(arm, WL_B_COMPARE, WL_OP_EQ, (wl_bexpr *)(size_t)x->key->inner, column,
                         &eq);
  if (rc) return rc;
  eq->cmp_affinity = x->key->equality->cmp_affinity;
  eq->cmp_coll = x->key->equality->cmp_coll;
  return wl_edit_and(arm, on, eq);
}

/* Adds the source to the grouped query if conditions on it restrict the group keys. */
static wl_status add_reducer(reducing *r, int from) {
  const wl_query *q = r->to->q;
  wl_bsource s = q->sources[from];
  reducer x = {.r = r, .from = from, .place = -1};
  wl_copy c;
  if (!s.table || (s.how != WL_HOW_INNER && s.how != WL_HOW_SEMI)) return WL_OK;
  wl_bexpr *on = NULL, *filters = NULL, *all = conditions(q, from);
  wl_status rc = each_conjunct(all, add_filter, &x);
  if (rc || !x.filters) return rc;
  rc = wl_copy_open(&c, &r->arm, q);
  c.node = copy_column;
  c.arg = &x;
  for (int k = 0; k < r->n_keys && !rc; k++) {
    x.key = &r->keys[k];
    x.column = x.key->outer->source == from ? x.key->outer : NULL;
    if (!x.column) rc = each_conjunct(all, find_column, &x);
    if (rc || !x.column) continue;
    s = (wl_bsource){.how = WL_HOW_SEMI,
                     .reduces = true,
                     .schema = s.schema,
                     .table = s.table,
                     .table_id = s.table_id,
                     .name = s.name};
    if (x.place < 0) rc = wl_edit_source(&r->arm, s, &x.place);
    if (!rc) rc = equal_key(&x, &c, &on);
  }
  if (rc || x.place < 0) return rc;
  rc = wl_copy_expr(&c, x.filters, &filters);
  if (!rc) rc = wl_edit_and(&r->arm, &on, filters);
  r->arm.q->sources[x.place].on = on;
  return rc;
}

wl_status wl_rewrite_reduce_groups(wl_edit *to) {
  wl_query *q = to->q;
  wl_status rc = WL_OK;
  for (int s = 0; s < q->n_sources && !rc; s++) {
    if (!can_reduce(&q->sources[s])) continue;
    reducing r = {.to = to, .source = s, .arm = *to};
    r.arm.q = q->sources[s].derived->arms[0];
    rc = each_conjunct(conditions(q, s), note_key, &r);
    for (int from = 0; r.n_keys && from < q->n_sources && !rc; from++)
      if (from != s && r.arm.q->n_sources < MAX_ARM_SOURCES) rc = add_reducer(&r, from);
  }
  return rc;
}
