/*
** Writes bound expressions as text for EXPLAIN QUERY PLAN. It is close to SQL, and long texts are
** cut.
*/
#ifndef WL_EXPRTEXT_H
#define WL_EXPRTEXT_H

#include "store/store.h"
#include "plan/join.h"

/* The names of the columns of a source that q reads. All results live in the arena. */
const char *wl_exprtext_columns(wl_arena *arena, wl_store *store, const wl_query *q, int source);
const char *wl_exprtext_expr(wl_arena *arena, wl_store *store, const wl_query *q,
                             const wl_bexpr *e);
/* The expressions, joined by AND. */
const char *wl_exprtext_list(wl_arena *arena, wl_store *store, const wl_query *q,
                             const wl_jlist *l);

#endif
