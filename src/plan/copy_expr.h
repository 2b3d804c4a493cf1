/*
** Copies expressions of one bound query into another: those of a subquery that becomes part of the
** query round it, or of a join that becomes a query of its own.
*/
#ifndef WL_PLAN_COPY_EXPR_H
#define WL_PLAN_COPY_EXPR_H

#include "sql/query_edit.h"

/*
** One copying. A node that is shared stays shared: `map` has the copy of each node by its id. A sub
** that a copied node reads becomes one of `to`, once: sub_map has 1 + its place there by its old
*one.
**
** The usual copy of a column is that of source source_base + its source, and of a WL_B_OUTER the
** expression it refers to: the query round `from` is the one it comes into. `node`, if not NULL, is
** asked first. It leaves *out NULL for the usual copy.
*/
typedef struct wl_copy {
  wl_edit *to;
  const wl_query *from;
  int source_base;
  wl_bexpr **map;
  int *sub_map;
  wl_status (*node)(struct wl_copy *c, const wl_bexpr *e, wl_bexpr **out);
  void *arg; /* for `node` */
} wl_copy;

wl_status wl_copy_open(wl_copy *c, wl_edit *to, const wl_query *from) WL_MUST;
wl_status wl_copy_expr(wl_copy *c, const wl_bexpr *e, wl_bexpr **out) WL_MUST; /* NULL: NULL */
/* Adds the costs of a whole query that becomes part of `to`. */
void wl_copy_costs(const wl_copy *c);

#endif
