/*
** What the cost model (plan/place.h) is told of a query: rows, columns in memory, the device. Only
** route.c asks.
*/
#ifndef WL_PLACE_QUERY_H
#define WL_PLACE_QUERY_H

#include "route/statement_text.h"

struct wl_device;

/* The device of the settings, or NULL, and err says why. */
struct wl_device *wl_place_device(wl_conn *c, wl_error *err);

/* The engine by settings and cost, before anything is loaded. */
wl_status wl_place_query(wl_conn *c, wl_statement_text *t, wl_placement *out,
                         wl_error *err) WL_MUST;

/* The device was wanted and cannot be used: the CPU, and why. */
void wl_place_leave_device(wl_placement *where, const wl_error *why);

/* Whether the query reads a table or another query. */
bool wl_query_reads_any(const wl_query *q);

/* Whether the rows of a query are columns of an ordinary table as they are, and enough of them to
 *be
 ** copied by column; the reason then. */
wl_status wl_query_is_columns(wl_conn *c, const wl_query *q, bool *is, char *reason, size_t n,
                              wl_error *err) WL_MUST;

#endif
