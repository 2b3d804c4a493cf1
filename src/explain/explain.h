/*
** EXPLAIN, EXPLAIN QUERY PLAN and EXPLAIN ANALYZE as SQLite sees them: SELECTs from tables of ours.
*/
#ifndef WL_EXPLAIN_H
#define WL_EXPLAIN_H

#include "route/route.h"

int wl_explain_register(wl_conn *c);

/* EXPLAIN or EXPLAIN QUERY PLAN of a text, which original is SQLite's statement of. refused: as
** wl_request has it. *d: what wl_route() says of the statement that is explained; the caller closes
** it. WL_NOT_TAKEN: SQLite's own stays. */
wl_status wl_explain_prepare(wl_conn *c, const char *sql, size_t n, const char *refused,
                             sqlite3_stmt *original, wl_decision *d, sqlite3_stmt **out,
                             wl_error *err) WL_MUST;

/* EXPLAIN ANALYZE: text is the statement without these words; original is SQLite's, of the same. */
wl_status wl_analyze_prepare(wl_conn *c, const char *text, size_t n, sqlite3_stmt *original,
                             sqlite3_stmt **out, wl_error *err) WL_MUST;
/* The text with these words made blank, so that places in it stay; sqlite3_free'd by the caller.
** NULL: it is something else. */
char *wl_analyze_text(const char *sql, int n_bytes);

#endif
