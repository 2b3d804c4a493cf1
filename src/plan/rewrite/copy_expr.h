/*
** Copies expressions of one bound query into another: those of a subquery that becomes part of the
** outer query, or those of a join that becomes a separate query.
*/
#ifndef WL_PLAN_COPY_EXPR_H
#define WL_PLAN_COPY_EXPR_H

#include "sql/query_edit.h"

/*
** The state of copying. A shared node stays shared: map[id] is the copy of the node with that id. A
** sub that a copied node reads is added to `to` once: sub_map[k] is 1 + its number there.
**
** By default the copy of a column belongs to source source_base + its source, and the copy of a
** WL_B_OUTER node is the expression that it refers to, because `to` is the outer query of `from`.
** `node`, if not NULL, is called first. It leaves *out NULL to get the default copy.
*/
typedef struct wl_copy {
  wl_edit *to;
  const wl_query *from;
  int source_base;
  wl_bexpr **map;
  int *sub_map;
  wl_status (*node)(struct wl_copy *c, const wl_bexpr *e, wl_bexpr **out);
  void *arg; /* argument for `node` */
} wl_copy;

wl_status wl_copy_open(wl_copy *c, wl_edit *to, const wl_query *from) WL_MUST;
wl_status wl_copy_expr(wl_copy *c, const wl_bexpr *e, wl_bexpr **out) WL_MUST; /* the copy of NULL
                                                                               ** is NULL */
/* Adds the costs of a whole query that becomes part of `to`. */
void wl_copy_costs(const wl_copy *c);

#endif
