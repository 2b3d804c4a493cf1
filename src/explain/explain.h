/*
** EXPLAIN, EXPLAIN QUERY PLAN and EXPLAIN ANALYZE. SQLite runs each as a SELECT from a table of
** ours.
*/
#ifndef WL_EXPLAIN_H
#define WL_EXPLAIN_H

#include "route/route.h"

int wl_explain_register(wl_conn *c);

/* Prepares EXPLAIN or EXPLAIN QUERY PLAN. original is SQLite's statement of the same text. refused:
** as in wl_request. *d: what wl_route() decides about the explained statement; the caller closes
** it. WL_NOT_TAKEN: SQLite's own EXPLAIN is used. */
wl_status wl_explain_prepare(wl_conn *c, const char *sql, size_t n, const char *refused,
                             sqlite3_stmt *original, wl_decision *d, sqlite3_stmt **out,
                             wl_error *err) WL_MUST;

/* Prepares EXPLAIN ANALYZE. text is the statement without these words, and original is SQLite's
** statement of it. */
wl_status wl_analyze_prepare(wl_conn *c, const char *text, size_t n, sqlite3_stmt *original,
                             sqlite3_stmt **out, wl_error *err) WL_MUST;
/* Copies the text of an EXPLAIN ANALYZE with these two words replaced by blanks, so that positions
** stay the same. The caller frees it with sqlite3_free(). NULL: it is another statement. */
char *wl_analyze_text(const char *sql, int n_bytes);

#endif
