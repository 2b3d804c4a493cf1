/*
** RIGHT joins of the first two sources become LEFT joins, which every machine has. One of the
** rewrites of a query.
**
**     L RIGHT JOIN R ON c   becomes   R LEFT JOIN L ON c
**
** Other RIGHT joins, and FULL joins, stay. The compiler makes two pipelines of them
** (program/pipelines.c). WHERE is tested after all joins. So the ON of an inner join becomes part
** of WHERE only if no RIGHT or FULL join comes after it.
*/
#include "plan/rewrite/rewrite_impl.h"

/* Exchanges sources 0 and 1. */
static void exchange(wl_query *q) {
  wl_bsource left = q->sources[0], right = q->sources[1];
  left.how = WL_HOW_LEFT;
  left.on = right.on;
  right.how = WL_HOW_INNER;
  right.on = NULL;
  q->sources[0] = right;
  q->sources[1] = left;
  for (int k = 0; k < q->n_cols; k++) {
    if (q->cols[k].source > 1) continue;
    q->cols[k].source = q->col_nodes[k]->source = 1 - q->cols[k].source;
  }
}

wl_status wl_rewrite_right_joins(wl_edit *edit) {
  wl_query *q = edit->q;
  wl_status rc = WL_OK;
  if (q->sources[1].how == WL_HOW_RIGHT) exchange(q);
  for (int s = q->n_sources - 1; s > 0 && !rc; s--) {
    wl_bsource *source = &q->sources[s];
    if (wl_how_keeps_unmatched(source->how)) break;
    if (source->how != WL_HOW_INNER || !source->on) continue;
    rc = wl_edit_and(edit, &q->where, source->on);
    source->on = NULL;
  }
  return rc;
}
