/*
** A whole SELECT: one core, or a compound of several, with WITH, ORDER BY and LIMIT. Every SELECT
** becomes a query of its own; what stands round it decides whether it stays one. Part of the
** binder, and its way in.
**
** Invariants:
** 1. A compound is a query over one derived source, whose arms are its cores or queries made of
**    them: UNION, INTERSECT and EXCEPT are DISTINCT queries over what stands to their left.
** 2. UNION, INTERSECT and EXCEPT give their rows in order, as SQLite's do.
*/
#include "sql/bind_impl.h"
#include <string.h>

static wl_status new_binder(binder *parent, const wl_select *s, bool in_from, binder **out) {
  binder *b = *out = WL_NEW(parent->arena, binder);
  if (!b) return wl_nomem(parent->err);
  *b = (binder){.arena = parent->arena,
                .catalog = parent->catalog,
                .all = parent->all,
                .parent = parent,
                .in_from = in_from,
                .schema = parent->schema,
                .sql = parent->sql,
                .named = parent->named,
                .select = s,
                .err = parent->err};
  b->q = WL_NEW(b->arena, wl_query);
  if (!b->q) return wl_nomem(b->err);
  b->q->decides = -1;
  return WL_OK;
}

static wl_status limits(binder *b, const wl_select *s) {
  wl_status rc = s->limit ? wl_bind_expr(b, s->limit, &b->q->limit) : WL_OK;
  return !rc && s->offset ? wl_bind_expr(b, s->offset, &b->q->offset) : rc;
}

/* ---- one core */

static wl_status core(binder *b) {
  const wl_select *s = b->select;
  int place;
  wl_status rc = s->from ? wl_bind_from(b, s->from)
                         : wl_bind_source(b, (wl_bsource){.name = "one row"}, &place);
  if (!rc) rc = wl_bind_core(b);
  if (!rc && b->right)
    rc = b->n_outers ? wl_not_taken(b->err, "RIGHT or FULL JOIN in a subquery that refers outwards")
                     : wl_bind_right(b);
  if (!rc) rc = wl_bind_implied(b);
  wl_query *q = b->q;
  if (rc) return rc;
  const wl_bsource *first = &q->sources[0];
  q->simple = q->n_sources == 1 && first->table && q->n_subs == 0;
  q->schema = first->schema;
  q->table = first->table ? first->table : first->name;
  q->table_id = first->table_id;
  return WL_OK;
}

/* A row of VALUES. */
static wl_status values_row(binder *b, const wl_expr *row) {
  wl_query *q = b->q;
  int place, n = 0;
  for (const wl_expr_list *l = row->list; l; l = l->next) n++;
  wl_status rc = wl_bind_source(b, (wl_bsource){.name = "one row"}, &place);
  q->results = WL_NEW_N(b->arena, wl_bexpr *, n + 1);
  if (!q->results) return wl_nomem(b->err);
  for (const wl_expr_list *l = row->list; l && !rc; l = l->next)
    rc = wl_bind_expr(b, l->expr, &q->results[q->n_results++]);
  q->table = "one row";
  return rc;
}

/* ---- names of results */

static const wl_expr *without_collate(const wl_expr *e) {
  while (e->kind == WL_E_COLLATE) e = e->a;
  return e;
}

wl_status wl_bind_names(binder *b, const wl_select *s, const wl_query *q, const char ***out) {
  const char **names = *out = WL_NEW_N(b->arena, const char *, q->n_results + 1);
  if (!names) return wl_nomem(b->err);
  while (s->prior) s = s->prior;
  if (s->is_values) {
    for (int k = 0; k < q->n_results; k++) names[k] = wl_arena_printf(b->arena, "column%d", k + 1);
    return b->arena->failed ? wl_nomem(b->err) : WL_OK;
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
      names[k] = wl_arena_strndup(b->arena, b->sql + e->pos, e->end - e->pos);
    if (!names[k]) return wl_nomem(b->err);
  }
  for (int k = 0; k < q->n_results; k++) {
    wl_status rc = wl_bind_unique(b, names, k, NULL, NULL);
    if (rc) return rc;
  }
  return WL_OK;
}

/* ---- compounds */

/* The collation of column k: that of the leftmost arm that has one. */
static wl_u8 column_coll(wl_query **arms, int n, int k, bool *has) {
  for (int i = 0; i < n; i++)
    if (arms[i]->results[k]->has_coll) {
      *has = true;
      return arms[i]->results[k]->coll;
    }
  *has = false;
  return WL_COLL_BINARY;
}

static wl_u8 coll_of(const wl_bexpr *e) {
  return e->has_coll ? e->coll : WL_COLL_BINARY;
}

/* Columns whose collation is not the same in all arms. *out: NULL if there are none. */
static wl_status mixed_colls(binder *b, wl_query **arms, int n, bool **out) {
  bool any = false, *mixed = WL_NEW_N(b->arena, bool, arms[0]->n_results + 1);
  if (!mixed) return wl_nomem(b->err);
  for (int i = 1; i < n; i++)
    for (int k = 0; k < arms[0]->n_results; k++)
      any |= mixed[k] |= coll_of(arms[i]->results[k]) != coll_of(arms[0]->results[k]);
  *out = any ? mixed : NULL;
  return WL_OK;
}

typedef struct compound {
  binder *home;
  wl_query **arms; /* those bound so far that have not been put together; all for collations */
  int n_arms;
  wl_query **all;
  int n_all;
  bool typed; /* as in wl_derived: ORDER BY makes SQLite put a long one together in steps */
} compound;

static wl_status concat(compound *c, wl_derived **out) {
  wl_status rc = wl_bind_derived(c->home, c->arms[0], out);
  if (rc) return rc;
  (*out)->arms = WL_NEW_N(c->home->arena, wl_query *, c->n_arms);
  if (!(*out)->arms) return wl_nomem(c->home->err);
  memcpy((*out)->arms, c->arms, (size_t)c->n_arms * sizeof *c->arms);
  (*out)->n_arms = c->n_arms;
  (*out)->typed = c->typed;
  return WL_OK;
}

/* All columns of source 0 as results, ordered by all of them if told. */
static wl_status all_columns(compound *c, binder *b, int n, bool sorted) {
  wl_query *q = b->q;
  q->results = WL_NEW_N(b->arena, wl_bexpr *, n + 1);
  q->order = WL_NEW_N(b->arena, wl_border, n + 1);
  if (!q->results || !q->order) return wl_nomem(b->err);
  for (int k = 0; k < n; k++) {
    bool has;
    wl_u8 coll = column_coll(c->all, c->n_all, k, &has);
    wl_status rc = wl_bind_column(b, 0, k, c->all[0]->results[k]->affinity, coll, &q->results[k]);
    if (rc) return rc;
    q->results[k]->has_coll = has;
    if (sorted) q->order[q->n_order++] = (wl_border){q->results[k], false, false};
  }
  q->n_results = n;
  q->table = "compound";
  return WL_OK;
}

/* What has been put together so far with the arm `right` by UNION, INTERSECT or EXCEPT. */
static wl_status combine(compound *c, wl_compound op, wl_query *right, wl_query **out) {
  binder *b;
  wl_derived *d;
  int place, n = c->all[0]->n_results;
  wl_status rc = new_binder(c->home, NULL, true, &b);
  if (rc) return rc;
  if (op == WL_COMPOUND_UNION) c->arms[c->n_arms++] = right;
  rc = concat(c, &d);
  if (!rc) rc = wl_bind_source(b, (wl_bsource){.derived = d, .name = "left side"}, &place);
  if (!rc) rc = all_columns(c, b, n, true);
  b->q->distinct = b->q->combines = true;
  *out = b->q;
  if (rc || op == WL_COMPOUND_UNION) return rc;
  wl_bexpr *on = NULL;
  rc = wl_bind_derived(c->home, right, &d);
  wl_bsource to = {.how = op == WL_COMPOUND_EXCEPT ? WL_HOW_ANTI : WL_HOW_SEMI,
                   .derived = d,
                   .name = "right side"};
  if (!rc) rc = wl_bind_source(b, to, &place);
  for (int k = 0; k < n && !rc; k++) {
    wl_bexpr *r, *same;
    bool has;
    rc = wl_bind_column(b, place, k, '@', WL_COLL_BINARY, &r);
    if (!rc) rc = wl_bind_compare(b, WL_B_IS, WL_OP_EQ, b->q->results[k], r, &same);
    if (rc) break;
    same->cmp_affinity = '@';
    same->cmp_coll = column_coll(c->all, c->n_all, k, &has);
    rc = wl_bind_and(b, &on, same);
  }
  if (!rc) b->q->sources[place].on = on;
  return rc;
}

/* The result column of one arm that an ORDER BY term names: an alias comes before a column. */
static int arm_column(const binder *arm, const wl_expr *term) {
  if (!arm->result_cols) return -1; /* VALUES */
  for (int k = 0; k < arm->q->n_results && !term->table; k++) {
    const wl_result_col *c = arm->result_cols[k];
    if (c && c->alias && sqlite3_stricmp(c->alias, term->name) == 0) return k;
  }
  for (int k = 0; k < arm->q->n_results; k++) {
    const wl_result_col *c = arm->result_cols[k];
    const wl_expr *e = c ? without_collate(c->expr) : NULL;
    if (e && (e->kind != WL_E_NAME || (term->table && !e->table) ||
              (term->table && sqlite3_stricmp(e->table, term->table) != 0)))
      continue;
    if (!e && term->table) continue; /* of a star, whose tables are not noted */
    if (sqlite3_stricmp(e ? e->name : arm->result_names[k], term->name) == 0) return k;
  }
  return -1;
}

/* ORDER BY of a compound names its columns, by number or by name. */
static wl_status compound_order(binder *b, const wl_select *s, binder **arms, int n) {
  wl_query *q = b->q;
  int n_terms = q->n_results + 1;
  for (const wl_order_term *t = s->order_by; t; t = t->next) n_terms++;
  q->order = WL_NEW_N(b->arena, wl_border, n_terms);
  bool *named = WL_NEW_N(b->arena, bool, q->n_results + 1);
  if (!q->order || !named) return wl_nomem(b->err);
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
    /* a qualified name may mean a column that is written otherwise: only the first arm can tell */
    for (int a = 0; a < (e->table ? 1 : n) && k < 0 && e->kind == WL_E_NAME; a++)
      k = arm_column(arms[a], e);
    if (k < 0) return wl_not_taken(b->err, "ORDER BY an expression of a compound SELECT");
    if (coll && (s->group_by || s->having)) /* SQLite 3.40 groups the whole compound by it then */
      return wl_not_taken(b->err, "ORDER BY … COLLATE of a compound that ends in GROUP BY");
    for (int a = 0; a < n && coll; a++) /* SQLite 3.40 then drops rows that UNION ALL keeps */
      if (arms[a]->q->distinct)
        return wl_not_taken(b->err, "ORDER BY … COLLATE of a compound with SELECT DISTINCT");
    wl_border *o = &q->order[q->n_order++];
    o->expr = q->results[k];
    o->desc = t->desc;
    o->nulls_last = t->nulls ? t->nulls == 2 : t->desc;
    named[k] = true;
    wl_status rc = coll ? wl_bind_collate(b, coll, o->expr, &o->expr) : WL_OK;
    if (rc) return rc;
  }
  /* of a UNION and the like SQLite then sorts by the other columns too */
  for (int k = 0; k < q->n_results && s->compound != WL_COMPOUND_UNION_ALL; k++)
    if (!named[k]) q->order[q->n_order++] = (wl_border){q->results[k], false, false};
  return WL_OK;
}

/* A core of a compound as one query: VALUES of several rows are a derived source's. */
static wl_status arm_of(binder *b, const wl_select *s, binder **out) {
  wl_status rc = new_binder(b, s, true, out);
  if (rc) return rc;
  (*out)->in_compound = true;
  if (!s->is_values) return core(*out);
  if (!s->values->next) return values_row(*out, s->values->expr);
  int n = 0, place;
  for (const wl_expr_list *l = s->values; l; l = l->next) n++;
  compound c = {.home = b};
  c.arms = c.all = WL_NEW_N(b->arena, wl_query *, n);
  if (!c.arms) return wl_nomem(b->err);
  for (const wl_expr_list *l = s->values; l && !rc; l = l->next) {
    binder *row;
    rc = new_binder(b, s, true, &row);
    if (!rc) rc = values_row(row, l->expr);
    if (!rc && row->n_outers) rc = wl_not_taken(b->err, "VALUES that refer outwards");
    if (!rc) c.arms[c.n_arms++] = row->q;
  }
  c.n_all = c.n_arms;
  (*out)->last_arm = rc ? NULL : c.arms[c.n_arms - 1];
  wl_derived *d;
  if (!rc) rc = concat(&c, &d);
  if (!rc) rc = wl_bind_source(*out, (wl_bsource){.derived = d, .name = "values"}, &place);
  return rc ? rc : all_columns(&c, *out, c.all[0]->n_results, false);
}

static wl_status compound_of(binder *b, const wl_select *last) {
  int n = 0, i = 0;
  for (const wl_select *s = last; s; s = s->prior) n++;
  compound c = {.home = b, .typed = last->order_by && last->prior && last->prior->prior};
  for (const wl_order_term *t = last->order_by; t; t = t->next)
    c.typed |= t->expr->kind == WL_E_COLLATE; /* SQLite makes it a subquery in FROM then */
  const wl_select **cores = WL_NEW_N(b->arena, const wl_select *, n);
  binder **binders = WL_NEW_N(b->arena, binder *, n);
  c.arms = WL_NEW_N(b->arena, wl_query *, n);
  c.all = WL_NEW_N(b->arena, wl_query *, n);
  if (!cores || !binders || !c.arms || !c.all) return wl_nomem(b->err);
  i = n;
  for (const wl_select *s = last; s; s = s->prior) cores[--i] = s;
  wl_status rc = WL_OK;
  for (i = 0; i < n && !rc; i++) {
    wl_compound op = i ? cores[i]->compound : WL_COMPOUND_UNION_ALL;
    rc = arm_of(b, cores[i], &binders[i]);
    if (rc) break;
    if (binders[i]->n_outers) return wl_not_taken(b->err, "a compound SELECT that refers outwards");
    c.all[c.n_all++] = binders[i]->q;
    if (op == WL_COMPOUND_UNION_ALL) {
      c.arms[c.n_arms++] = binders[i]->q;
      continue;
    }
    wl_query *q = NULL;
    rc = combine(&c, op, binders[i]->q, &q);
    c.n_arms = 1;
    c.arms[0] = q;
  }
  wl_derived *d;
  int place;
  if (!rc) rc = concat(&c, &d);
  if (!rc) rc = wl_bind_source(b, (wl_bsource){.derived = d, .name = "compound"}, &place);
  if (!rc) rc = all_columns(&c, b, c.all[0]->n_results, false);
  b->first_arm = binders[0];
  if (!rc) rc = mixed_colls(b, c.all, c.n_all, &b->mixed);
  for (int k = 0; !rc && k < c.all[0]->n_results; k++)
    for (i = 1; i < c.n_all; i++)
      b->affinities |= c.all[i]->results[k]->affinity != c.all[0]->results[k]->affinity;
  if (!rc) b->last_arm = binders[n - 1]->last_arm ? binders[n - 1]->last_arm : binders[n - 1]->q;
  if (!rc && last->order_by) rc = compound_order(b, last, binders, n);
  return rc;
}

/* ---- columns that nothing reads, of subqueries and views that were taken in */

static void mark(const wl_bexpr *e, bool *seen, bool *used) {
  if (!e || seen[e->id]) return;
  seen[e->id] = true;
  if (e->kind == WL_B_OUTER) return; /* what it refers to is another query's */
  if (e->kind == WL_B_COLUMN) used[e->slot] = true;
  for (int k = 0; k < e->n_list; k++) mark(e->list[k], seen, used);
  mark(e->a, seen, used);
  mark(e->b, seen, used);
}

static wl_status prune(binder *b) {
  wl_query *q = b->q;
  bool *seen = WL_NEW_N(b->arena, bool, q->n_exprs + 1);
  bool *used = WL_NEW_N(b->arena, bool, q->n_cols + 1);
  if (!seen || !used) return wl_nomem(b->err);
  for (int k = 0; k < q->n_results; k++) mark(q->results[k], seen, used);
  for (int k = 0; k < q->n_groups; k++) mark(q->groups[k], seen, used);
  for (int k = 0; k < q->n_order; k++) mark(q->order[k].expr, seen, used);
  for (int k = 0; k < q->n_sources; k++) mark(q->sources[k].on, seen, used);
  for (int k = 0; k < q->n_aggs; k++) {
    mark(q->aggs[k].arg, seen, used);
    mark(q->aggs[k].separator, seen, used);
  }
  mark(q->where, seen, used);
  mark(q->having, seen, used);
  mark(q->limit, seen, used);
  mark(q->offset, seen, used);
  int n = 0;
  for (int k = 0; k < q->n_cols; k++) {
    if (!used[k]) continue;
    b->nodes[k]->slot = n;
    b->nodes[n] = b->nodes[k];
    q->cols[n++] = q->cols[k];
  }
  q->n_cols = n;
  return WL_OK;
}

/* ---- whole statements */

wl_status wl_bind_select(binder *parent, const wl_select *s, bool in_from, binder **child,
                         wl_query **out) {
  binder *b;
  wl_status rc = new_binder(parent, s, in_from, &b);
  if (rc) return rc;
  if (b->all->depth > WL_MAX_NESTING) return wl_not_taken(b->err, "queries nested too deeply");
  b->all->depth++;
  if (s->with) rc = wl_bind_ctes(b, s->with);
  if (!rc && (s->prior || s->is_values))
    rc = compound_of(b, s);
  else if (!rc)
    rc = core(b);
  if (!rc) rc = limits(b, s);
  if (!rc) rc = prune(b);
  b->all->depth--;
  *child = b;
  *out = b->q;
  return rc;
}

wl_status wl_bind_depends(binder *b, const char *schema, const char *name, wl_u64 id) {
  wl_binding *all = b->all;
  /* t and main.t are two: a table of another database may come before the first */
  for (int k = 0; k < all->n_deps; k++) {
    const wl_bdep *d = &all->deps[k];
    if (d->id == id && !d->schema == !schema && (!schema || strcmp(d->schema, schema) == 0) &&
        strcmp(d->name, name) == 0)
      return WL_OK;
  }
  wl_status rc = WL_BIND_ROOM(b, all->deps, all->n_deps, all->size_deps);
  if (!rc) all->deps[all->n_deps++] = (wl_bdep){schema, name, id};
  return rc;
}

/* Shared nodes make the tree a graph with more paths than there is time for: what was found of the
** latest ones is kept. */
enum { LATEST = 256 };
typedef struct latest {
  const wl_bexpr *e[LATEST];
  wl_u64 sources[LATEST];
} latest;

static wl_u64 sources_of(const wl_bexpr *e, latest *l) {
  if (!e || e->kind == WL_B_OUTER) return 0; /* what it refers to is another query's */
  if (e->kind == WL_B_COLUMN) return 1ULL << e->source;
  bool inner = e->a || e->b || e->n_list;
  if (inner && l->e[e->id % LATEST] == e) return l->sources[e->id % LATEST];
  wl_u64 m = e->kind == WL_B_FOUND ? 1ULL << e->source : 0;
  for (int k = 0; k < e->n_list; k++) m |= sources_of(e->list[k], l);
  m |= sources_of(e->a, l) | sources_of(e->b, l);
  l->e[e->id % LATEST] = e;
  l->sources[e->id % LATEST] = m;
  return m;
}

wl_u64 wl_bexpr_sources(const wl_bexpr *e) {
  latest l = {0};
  return sources_of(e, &l);
}

wl_status wl_bind(wl_arena *arena, const char *sql, const wl_stmt *stmt, const wl_catalog *catalog,
                  wl_query **out, wl_error *err) {
  wl_binding all = {.arena = arena, .catalog = catalog, .err = err};
  binder root = {.arena = arena, .catalog = catalog, .all = &all, .sql = sql, .err = err}, *b;
  wl_query none = {0};
  root.q = &none;
  root.in_from = true; /* nothing stands round it */
  wl_status rc = wl_bind_select(&root, stmt->select, true, &b, out);
  if (rc) return rc;
  wl_query *q = *out;
  q->n_derived = all.n_derived;
  q->calls = all.calls;
  q->n_calls = all.n_calls;
  q->deps = all.deps;
  q->n_deps = all.n_deps;
  return arena->failed ? wl_nomem(err) : WL_OK;
}
