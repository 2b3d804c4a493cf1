/*
** Rewriting: from the bound query that says what the text says to one that runs as it stands. This
** is the only place where queries are rewritten; sql/bind.h states what holds before and after.
**
** Every query is rewritten from the inside out, so what a query reads has been rewritten before it.
** Of one query the passes are, in this order:
**   1. compound.c            UNION, INTERSECT and EXCEPT in FROM become DISTINCT queries and joins
**   2. flatten.c             subqueries, views and WITH entries in FROM become part of the query
**   3. rewrite_subquery.c    subqueries of expressions become subs (run first) or joins
**   4. grouped_columns.c     which row columns beside groups come from
**   5. rewrite_right_join.c  RIGHT and FULL joins become LEFT ones
**   6. implied_terms.c       adds to WHERE what its ORs imply
** Passes 1 to 3 are one walk over the query, clause by clause as in the text.
*/
#ifndef WL_PLAN_REWRITE_H
#define WL_PLAN_REWRITE_H

#include "sql/bind.h"

/* Rewrites the bound query of a statement, which is used up. WL_NOT_TAKEN with the reason where it
** is not known how to run it. */
wl_status wl_rewrite(wl_arena *arena, wl_query *bound, wl_query **out, wl_error *err) WL_MUST;

#endif
