/*
** Compounds: arms with UNION, INTERSECT or EXCEPT between them become arms that are read one after
** the other. One of the rewrites of a query.
**
**     a UNION b       a DISTINCT query over the rows of a and b
**     a INTERSECT b   a DISTINCT query over the rows of a, joined SEMI with those of b
**     a EXCEPT b      the same, joined ANTI
**
** These return their rows sorted, as SQLite does. Everything to the left of such an operator is
** combined first.
**
** If such an operator reads an arm with DISTINCT, the DISTINCT is dropped, as in SQLite, because it
** may use another collation than the operator. With an ORDER BY, SQLite runs the arms separately,
** so DISTINCT stays.
*/
#include "plan/rewrite/rewrite_impl.h"
#include <string.h>

/* The rows of some arms of a compound, one after the other. */
static wl_status concat(const wl_edit *statement, wl_query **arms, int n, bool typed,
                        wl_derived **out) {
  wl_status rc = wl_edit_derived(statement, arms[0], out);
  if (rc) return rc;
  wl_derived *d = *out;
  d->arms = WL_NEW_N(statement->arena, wl_query *, n);
  if (!d->arms) return wl_nomem(statement->err);
  memcpy(d->arms, arms, (size_t)n * sizeof *arms);
  d->n_arms = n;
  d->typed = typed;
  d->rewritten = true;
  return WL_OK;
}

/* left.c IS right.c for all columns, without affinity. The collations are those of all arms so
** far. */
static wl_status same_rows(wl_edit *to, int right, wl_query *const *all, int n_all, wl_bexpr **on) {
  for (int k = 0; k < to->q->n_results; k++) {
    wl_bexpr *col, *same;
    bool has;
    wl_status rc = wl_edit_column(to, right, k, '@', WL_COLL_BINARY, &col);
    if (!rc) rc = wl_edit_compare(to, WL_B_IS, WL_OP_EQ, to->q->results[k], col, &same);
    if (rc) return rc;
    same->cmp_affinity = '@';
    same->cmp_coll = wl_arms_coll(all, n_all, k, &has);
    rc = wl_edit_and(to, on, same);
    if (rc) return rc;
  }
  return WL_OK;
}

/* The query that combines arm `last` of a compound with everything to its left. */
static wl_status combine(const wl_edit *statement, const wl_derived *d, int last, wl_query **left,
                         int n_left, wl_query **out) {
  wl_compound op = d->ops[last];
  wl_query *right = d->arms[last];
  wl_edit to;
  wl_derived *rows;
  int place;
  wl_status rc = wl_edit_open(&to, statement);
  if (op == WL_COMPOUND_UNION) left[n_left++] = right;
  if (!rc) rc = concat(statement, left, n_left, d->typed_steps, &rows);
  const char *name = op == WL_COMPOUND_UNION ? "compound" : "left side";
  if (!rc) rc = wl_edit_source(&to, (wl_bsource){.derived = rows, .name = name}, &place);
  if (!rc) rc = wl_edit_arm_columns(&to, d->arms, last + 1);
  if (rc) return rc;
  wl_query *q = *out = to.q;
  q->order = WL_NEW_N(to.arena, wl_border, q->n_results + 1);
  if (!q->order) return wl_nomem(to.err);
  for (int k = 0; k < q->n_results; k++)
    q->order[q->n_order++] = (wl_border){.expr = q->results[k]};
  q->distinct = q->combines = true;
  if (op == WL_COMPOUND_UNION) return WL_OK;
  rc = concat(statement, &right, 1, false, &rows);
  wl_bsource other = {.how = op == WL_COMPOUND_EXCEPT ? WL_HOW_ANTI : WL_HOW_SEMI,
                      .derived = rows,
                      .name = "right side"};
  wl_bexpr *on = NULL;
  if (!rc) rc = wl_edit_source(&to, other, &place);
  if (!rc) rc = same_rows(&to, place, d->arms, last + 1, &on);
  if (!rc) q->sources[place].on = on;
  return rc;
}

wl_status wl_rewrite_compound(const wl_edit *statement, wl_derived *d, bool ordered) {
  int n = 0;
  bool distinct = false; /* a UNION, INTERSECT or EXCEPT follows */
  for (int k = d->n_arms - 1; k >= 0 && !ordered; k--) {
    distinct |= d->ops[k] != WL_COMPOUND_UNION_ALL;
    if (distinct) d->arms[k]->distinct = false;
  }
  wl_query **left = WL_NEW_N(statement->arena, wl_query *, d->n_arms);
  if (!left) return wl_nomem(statement->err);
  for (int k = 0; k < d->n_arms; k++) {
    if (d->ops[k] == WL_COMPOUND_UNION_ALL) {
      left[n++] = d->arms[k];
      continue;
    }
    wl_query *q;
    wl_status rc = combine(statement, d, k, left, n, &q);
    if (rc) return rc;
    left[0] = q;
    n = 1;
  }
  d->arms = left;
  d->n_arms = n;
  d->ops = NULL;
  return WL_OK;
}
