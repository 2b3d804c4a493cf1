/*
** Rewriting turns the bound query, which follows the text, into one that can be compiled directly.
** Queries are rewritten only here. sql/bind.h states the invariants before and after.
**
** Queries are rewritten from the inside out, so the queries that a query reads are rewritten first.
** The passes over one query are, in this order:
**   1. compound.c            UNION, INTERSECT and EXCEPT in FROM become DISTINCT queries and joins
**   2. flatten.c             subqueries, views and WITH entries in FROM become part of the query
**   3. subquery.c            subqueries in expressions become subs (run first) or joins
**   4. grouped_columns.c     decides which row of a group a bare column is read from
**   5. right_join.c          a RIGHT join of the first two sources becomes a LEFT join
**   6. implied_terms.c       adds to WHERE what its ORs imply
**   7. reduce_groups.c       a grouped query that is joined by its keys computes no group that the
**                            conditions on the other sources rule out
** Passes 1 to 3 are one walk over the query, clause by clause as in the text.
*/
#ifndef WL_PLAN_REWRITE_H
#define WL_PLAN_REWRITE_H

#include "sql/bind.h"

/* Rewrites the bound query of a statement. The bound query must not be used afterwards. Returns
** WL_NOT_TAKEN with the reason if there is no way to run it natively. */
wl_status wl_rewrite(wl_arena *arena, wl_query *bound, wl_query **out, wl_error *err) WL_MUST;

#endif
