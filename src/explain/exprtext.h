/*
** Bound expressions as text, for EXPLAIN QUERY PLAN: near to SQL, and cut where it gets long.
*/
#ifndef WL_EXPRTEXT_H
#define WL_EXPRTEXT_H

#include "store/store.h"
#include "plan/join.h"

/* The columns of a source that q reads, by name. All of these live in the arena. */
const char *wl_exprtext_columns(wl_arena *arena, wl_store *store, const wl_query *q, int source);
const char *wl_exprtext_expr(wl_arena *arena, wl_store *store, const wl_query *q,
                             const wl_bexpr *e);
/* With AND between them. */
const char *wl_exprtext_list(wl_arena *arena, wl_store *store, const wl_query *q,
                             const wl_jlist *l);

#endif
