/*
** Collects what the cost model (plan/place.h) needs to know about a query: rows, columns in memory,
** the device.
*/
#ifndef WL_PLACE_QUERY_H
#define WL_PLACE_QUERY_H

#include "route/statement_text.h"

struct wl_device;

/* The device of the settings. NULL: there is none, and err says why. */
struct wl_device *wl_place_device(wl_conn *c, wl_error *err);

/* Chooses an engine by settings and cost, before anything is loaded. params: the values of the
** parameters, by number; NULL if they are not known yet. by_batch: as in wl_place_table. */
wl_status wl_place_query(wl_conn *c, wl_statement_text *t, const wl_val *params, bool by_batch,
                         wl_placement *out, wl_error *err) WL_MUST;

/* Adds a warning to the reason why SQLite must run a statement, if that will take long. where: what
** wl_place_query() has set; zeros if it has not run. */
void wl_place_query_warn(wl_conn *c, wl_statement_text *t, const wl_val *params,
                         const wl_placement *where, wl_error *reason);

/* Notes how long a native run took that loaded nothing. The next estimate for its text is corrected
** by it. */
void wl_place_measured(wl_conn *c, wl_statement_text *t, const wl_placement *where, double ns);
/* Notes that a native run gave up, or could not be compiled over the loaded columns, so that SQLite
** had to begin. It most likely will again. */
void wl_place_gave_up(wl_statement_text *t);

/* Notes how many steps of its virtual machine SQLite took for a text that was left to it. If these
** took far longer than estimated, later estimates for the text are corrected, and it returns true.
** With parameters, two runs in a row must have taken longer. */
bool wl_place_sqlite_took(wl_conn *c, const char *sql, size_t n_sql, int n_steps);

/* Notes that the statement will run where the placement says: what it costs that columns are not on
** the device, or that the device could not run any part of it (refused). */
void wl_place_starts(wl_conn *c, wl_statement_text *t, const wl_placement *where, bool refused);

/* Changes the placement to the CPU because the device cannot be used, and says why. */
void wl_place_leave_device(wl_placement *where, const wl_error *why);

/* Whether the query reads a table or another query. */
bool wl_query_reads_any(const wl_query *q);

/* Whether the result of a query is just columns of an ordinary table, with enough rows to copy them
** by column. Then sets the reason. */
wl_status wl_query_is_columns(wl_conn *c, const wl_query *q, bool *is, char *reason, size_t n,
                              wl_error *err) WL_MUST;

#endif
