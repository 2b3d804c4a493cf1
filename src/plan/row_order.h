/*
** In which order the rows of a query come, beside the order in which SQLite gives them, and whether
** LIMIT may cut them there.
*/
#ifndef WL_QUERY_ORDER_H
#define WL_QUERY_ORDER_H

#include "plan/place.h"
#include "store/store.h"

/* ORDER BY names all results, so that the order of rows is settled. */
bool wl_query_order_total(const wl_query *q);

/* *rowid_order: rows come in the order in which SQLite reads its tables. *unordered: nothing is
** known of the order in which SQLite does. top: it is the statement itself, of whose scan facts say
** whether that is by rowid. */
void wl_query_order(wl_store *store, const wl_query *q, bool facts_rowid_order, bool top,
                    bool *rowid_order, bool *unordered);

/* Where LIMIT cuts the rows of the statement's own join and SQLite's plan fixes their order, finds
** the source that it goes by (wl_query.ordered_by). */
void wl_query_find_order(wl_store *store, wl_query *q, const wl_plan_facts *facts);

/* WL_NOT_TAKEN if LIMIT cuts rows that have no order: unordered says so of those of q. */
wl_status wl_query_cut(const wl_query *q, bool unordered, wl_error *err) WL_MUST;

/* WL_NOT_TAKEN if LIMIT cuts rows without an order, in this query or one that it depends on. */
wl_status wl_query_cuts(wl_store *store, const wl_query *q, bool top, wl_error *err) WL_MUST;

#endif
