/*
** Whether the rows of a query come in the order in which SQLite returns them, and whether LIMIT may
** therefore cut them.
*/
#ifndef WL_QUERY_ORDER_H
#define WL_QUERY_ORDER_H

#include "plan/place.h"
#include "store/store.h"

/* Whether SQLite's plan for the query is a scan of one table, so that the plan shows the order of
** its rows. Subqueries of LIMIT and OFFSET do not count: they run before the scan. */
bool wl_query_scans_table(const wl_query *q);

/* Whether ORDER BY contains all results, so that it determines the order of rows completely. */
bool wl_query_order_total(const wl_query *q);

/* Whether ORDER BY contains every key of GROUP BY, so that no two groups are equal in it. */
bool wl_query_orders_groups(const wl_query *q);

/* Whether an expression is the rowid of source s, which is a table. */
bool wl_query_is_rowid(wl_store *store, const wl_query *q, const wl_bexpr *e, int s);

/* *rowid_order: rows come in the order in which SQLite reads its tables. *unordered: SQLite's order
** is not known. top: q is the statement itself, and facts_rowid_order says whether SQLite's plan
** scans by rowid. */
void wl_query_order(wl_store *store, const wl_query *q, bool facts_rowid_order, bool top,
                    bool *rowid_order, bool *unordered);

/* If LIMIT cuts the rows of the statement's own join and SQLite's plan determines their order,
** finds the source that determines it (wl_query.ordered_by). */
void wl_query_find_order(wl_store *store, wl_query *q, const wl_plan_facts *facts);

/* Returns WL_NOT_TAKEN if LIMIT cuts rows that have no defined order. unordered: those of q have
** none. */
wl_status wl_query_cut(const wl_query *q, bool unordered, wl_error *err) WL_MUST;

/* Returns WL_NOT_TAKEN if LIMIT cuts rows without a defined order, in this query or in one that it
** depends on. */
wl_status wl_query_cuts(wl_store *store, const wl_query *q, bool top, wl_error *err) WL_MUST;

#endif
