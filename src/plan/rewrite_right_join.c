/*
** RIGHT and FULL joins become LEFT joins. One of the rewrites of a query.
**
**     L RIGHT JOIN R ON c   becomes   R LEFT JOIN L ON c
**     L FULL JOIN R ON c    becomes   (L LEFT JOIN R ON c) and then (R without any L)
**
** L is everything to the left of the join. If that is more than one table, it becomes a derived
** source. FULL becomes a derived source with two arms.
*/
#include "plan/rewrite_impl.h"
#include <string.h>

/* Where the columns of a query move to. */
typedef struct column_moves {
  int *source;  /* by old source: the new source in which columns keep their numbers, or -1 */
  wl_bcol *col; /* by old slot: the new column */
  bool *null;   /* by old slot: the column is NULL in the new query */
} column_moves;

static wl_status move_node(wl_copy *c, const wl_bexpr *e, wl_bexpr **out) {
  const column_moves *m = c->arg;
  if (e->kind == WL_B_COLUMN) {
    if (m->null && m->null[e->slot]) return wl_edit_constant(c->to, wl_null(), out);
    wl_status rc = wl_edit_column(c->to, m->col[e->slot].source, m->col[e->slot].column,
                                  e->affinity, e->coll, out);
    if (!rc) (*out)->has_coll = e->has_coll;
    return rc;
  }
  if (e->kind != WL_B_FOUND) return WL_OK;
  *out = wl_edit_node(c->to, WL_B_FOUND);
  if (!*out) return wl_nomem(c->to->err);
  (*out)->source = m->source[e->source];
  (*out)->op = e->op;
  (*out)->index = e->index;
  return wl_copy_expr(c, e->a, &(*out)->a);
}

static wl_status open_moves(const wl_edit *edit, const wl_query *q, column_moves *m) {
  m->source = WL_NEW_N(edit->arena, int, q->n_sources + 1);
  m->col = WL_NEW_N(edit->arena, wl_bcol, q->n_cols + 1);
  m->null = WL_NEW_N(edit->arena, bool, q->n_cols + 1);
  if (!m->source || !m->col || !m->null) return wl_nomem(edit->err);
  for (int s = 0; s < q->n_sources; s++) m->source[s] = -1;
  return WL_OK;
}

static wl_status open_copy(wl_edit *to, const wl_query *from, column_moves *m, wl_copy *c) {
  wl_status rc = wl_copy_open(c, to, from);
  c->node = move_node;
  c->arg = m;
  return rc;
}

/* Makes all of q's columns that come from sources before `end` results of the copy. */
static wl_status add_result_columns(const wl_query *q, wl_copy *c, int end) {
  wl_query *to = c->to->q;
  to->results = WL_NEW_N(c->to->arena, wl_bexpr *, q->n_cols + 1);
  if (!to->results) return wl_nomem(c->to->err);
  for (int k = 0; k < q->n_cols; k++) {
    if (q->cols[k].source >= end) continue;
    wl_status rc = wl_copy_expr(c, q->col_nodes[k], &to->results[to->n_results++]);
    if (rc) return rc;
  }
  return WL_OK;
}

/* Everything to the left of source k, as one source: a table itself, or a derived source. cols: the
** new column numbers. */
static wl_status left_side(wl_edit *edit, int k, wl_bsource *out, int *cols) {
  wl_query *q = edit->q;
  for (int c = 0, n = 0; c < q->n_cols; c++)
    if (q->cols[c].source < k) cols[c] = k == 1 ? q->cols[c].column : n++;
  if (k == 1) {
    *out = q->sources[0];
    return WL_OK;
  }
  wl_edit to;
  wl_copy copy;
  column_moves m;
  wl_derived *d = NULL;
  wl_status rc = wl_edit_open(&to, edit);
  if (!rc) rc = open_moves(edit, q, &m);
  if (!rc) rc = open_copy(&to, q, &m, &copy);
  if (rc) return rc;
  wl_copy_costs(&copy);
  for (int c = 0; c < q->n_cols; c++) m.col[c] = q->cols[c];
  for (int s = 0; s < k && !rc; s++) {
    int place;
    wl_bsource source = q->sources[s];
    wl_bexpr *on;
    m.source[s] = s;
    rc = wl_copy_expr(&copy, source.on, &on);
    source.on = source.how == WL_HOW_LEFT ? on : NULL;
    if (!rc && source.how == WL_HOW_INNER) rc = wl_edit_and(&to, &to.q->where, on);
    if (!rc) rc = wl_edit_source(&to, source, &place);
  }
  if (!rc) rc = add_result_columns(q, &copy, k);
  if (!rc) rc = wl_edit_derived(edit, to.q, &d);
  *out = (wl_bsource){.derived = d, .name = "join"};
  return rc;
}

/* One arm of the FULL join at source k. The first is L LEFT JOIN R, the second is R without any
** L. */
static wl_status full_arm(wl_edit *edit, int k, const wl_bsource *left, const int *left_cols,
                          bool first, wl_query **out) {
  wl_query *q = edit->q;
  wl_edit to;
  wl_copy copy;
  column_moves m;
  int place, l = first ? 0 : 1, r = first ? 1 : 0;
  wl_bsource ls = *left, rs = q->sources[k];
  wl_bexpr *on;
  wl_status rc = wl_edit_open(&to, edit);
  if (!rc) rc = open_moves(edit, q, &m);
  if (!rc) rc = open_copy(&to, q, &m, &copy);
  if (rc) return rc;
  wl_copy_costs(&copy);
  for (int c = 0; c < q->n_cols; c++)
    m.col[c] = q->cols[c].source < k ? (wl_bcol){l, left_cols[c]} : (wl_bcol){r, q->cols[c].column};
  ls.on = rs.on = NULL;
  ls.how = first ? WL_HOW_INNER : WL_HOW_ANTI;
  rs.how = first ? WL_HOW_LEFT : WL_HOW_INNER;
  rc = wl_edit_source(&to, first ? ls : rs, &place);
  if (!rc) rc = wl_edit_source(&to, first ? rs : ls, &place);
  if (!rc) rc = wl_copy_expr(&copy, q->sources[k].on, &on);
  if (rc) return rc;
  to.q->sources[1].on = on;
  if (!first) { /* ON may use columns of L, which are copied; in the results they are NULL */
    rc = open_copy(&to, q, &m, &copy);
    for (int c = 0; c < q->n_cols; c++) m.null[c] = q->cols[c].source < k;
  }
  if (!rc) rc = add_result_columns(q, &copy, k + 1);
  *out = to.q;
  return rc;
}

/* The FULL join at source k with everything to its left becomes source 0 of `to`. */
static wl_status full_join(wl_edit *edit, int k, const wl_bsource *left, const int *left_cols,
                           wl_edit *to, column_moves *m) {
  const wl_query *q = edit->q;
  wl_query **arms = WL_NEW_N(edit->arena, wl_query *, 2);
  wl_derived *d = NULL;
  int place;
  wl_status rc = arms ? full_arm(edit, k, left, left_cols, true, &arms[0]) : wl_nomem(edit->err);
  if (!rc) rc = full_arm(edit, k, left, left_cols, false, &arms[1]);
  if (!rc) rc = wl_edit_derived(edit, arms[0], &d);
  if (rc) return rc;
  d->arms = arms;
  d->n_arms = 2;
  for (int c = 0, n = 0; c < q->n_cols; c++)
    if (q->cols[c].source <= k) m->col[c] = (wl_bcol){0, n++};
  return wl_edit_source(to, (wl_bsource){.derived = d, .name = "full join"}, &place);
}

/* The RIGHT join at source k becomes sources 0 and 1 of `to`. */
static wl_status right_join(const wl_query *q, int k, wl_bsource left, const int *left_cols,
                            wl_edit *to, column_moves *m) {
  wl_bsource right = q->sources[k];
  wl_copy copy;
  wl_bexpr *on;
  int place;
  right.how = WL_HOW_INNER;
  left.how = WL_HOW_LEFT;
  left.on = right.on = NULL;
  wl_status rc = wl_edit_source(to, right, &place);
  if (!rc) rc = wl_edit_source(to, left, &place);
  for (int c = 0; c < q->n_cols; c++)
    m->col[c] =
        q->cols[c].source < k ? (wl_bcol){1, left_cols[c]} : (wl_bcol){0, q->cols[c].column};
  if (!rc) rc = open_copy(to, q, m, &copy);
  if (!rc) rc = wl_copy_expr(&copy, q->sources[k].on, &on);
  if (!rc) to->q->sources[1].on = on;
  return rc;
}

/* Moves everything of q except its first sources into the new query. */
static wl_status move_rest(const wl_query *q, wl_edit *to, column_moves *m) {
  wl_copy copy;
  wl_query *n = to->q;
  wl_status rc = open_copy(to, q, m, &copy);
  wl_query shell = *n; /* keep the new sources, columns, subs and calls */
  *n = *q;
  n->sources = shell.sources, n->n_sources = shell.n_sources;
  n->cols = shell.cols, n->n_cols = shell.n_cols;
  n->col_nodes = shell.col_nodes;
  n->subs = shell.subs, n->n_subs = shell.n_subs;
  n->n_exprs = shell.n_exprs;
  n->results = WL_NEW_N(to->arena, wl_bexpr *, q->n_results + 1);
  n->groups = WL_NEW_N(to->arena, wl_bexpr *, q->n_groups + 1);
  n->order = WL_NEW_N(to->arena, wl_border, q->n_order + 1);
  n->aggs = WL_NEW_N(to->arena, wl_bagg, q->n_aggs + 1);
  if (!rc && to->arena->failed) rc = wl_nomem(to->err);
  if (rc) return rc;
  n->where = NULL;
  rc = wl_copy_expr(&copy, q->where, &n->where);
  for (int k = 0; k < q->n_aggs && !rc; k++) {
    n->aggs[k] = q->aggs[k];
    rc = wl_copy_expr(&copy, q->aggs[k].arg, &n->aggs[k].arg);
    if (!rc) rc = wl_copy_expr(&copy, q->aggs[k].separator, &n->aggs[k].separator);
  }
  for (int k = 0; k < q->n_results && !rc; k++)
    rc = wl_copy_expr(&copy, q->results[k], &n->results[k]);
  for (int k = 0; k < q->n_groups && !rc; k++)
    rc = wl_copy_expr(&copy, q->groups[k], &n->groups[k]);
  for (int k = 0; k < q->n_order && !rc; k++) {
    n->order[k] = q->order[k];
    rc = wl_copy_expr(&copy, q->order[k].expr, &n->order[k].expr);
  }
  if (!rc) rc = wl_copy_expr(&copy, q->having, &n->having);
  if (!rc) rc = wl_copy_expr(&copy, q->limit, &n->limit);
  if (!rc) rc = wl_copy_expr(&copy, q->offset, &n->offset);
  return rc;
}

/* Turns the join at source k, the first RIGHT or FULL join, into a LEFT join. *edit edits a new
** query afterwards. */
static wl_status rewrite_one(wl_edit *edit, int k) {
  wl_query *q = edit->q;
  wl_edit to;
  column_moves m;
  wl_copy copy;
  wl_bsource left;
  int *cols = WL_NEW_N(edit->arena, int, q->n_cols + 1);
  wl_status rc = cols ? left_side(edit, k, &left, cols) : wl_nomem(edit->err);
  if (!rc) rc = wl_edit_open(&to, edit);
  if (!rc) rc = open_moves(edit, q, &m);
  if (!rc && q->sources[k].how == WL_HOW_FULL)
    rc = full_join(edit, k, &left, cols, &to, &m);
  else if (!rc)
    rc = right_join(q, k, left, cols, &to, &m);
  for (int s = k + 1; s < q->n_sources && !rc; s++) {
    rc = wl_edit_source(&to, q->sources[s], &m.source[s]);
    for (int c = 0; c < q->n_cols; c++)
      if (q->cols[c].source == s) m.col[c] = (wl_bcol){m.source[s], q->cols[c].column};
  }
  if (!rc) rc = open_copy(&to, q, &m, &copy);
  for (int s = k + 1; s < q->n_sources && !rc; s++) {
    wl_bexpr *on;
    rc = wl_copy_expr(&copy, q->sources[s].on, &on);
    if (!rc) to.q->sources[m.source[s]].on = on;
  }
  if (!rc) rc = move_rest(q, &to, &m);
  *edit = to;
  return rc;
}

wl_status wl_rewrite_right_joins(wl_edit *edit) {
  wl_status rc = WL_OK;
  for (int k = 1; k < edit->q->n_sources && !rc; k++) {
    wl_join_how how = edit->q->sources[k].how;
    if (how != WL_HOW_RIGHT && how != WL_HOW_FULL) continue;
    rc = rewrite_one(edit, k);
    k = 0; /* the new query has other sources */
  }
  /* conditions of inner joins that remain */
  for (int s = 0; s < edit->q->n_sources && !rc; s++) {
    wl_bsource *source = &edit->q->sources[s];
    if (source->how != WL_HOW_INNER || !source->on) continue;
    rc = wl_edit_and(edit, &edit->q->where, source->on);
    source->on = NULL;
  }
  return rc;
}
