/*
** Native statements as virtual tables.
*/
#ifndef WL_API_VTAB_H
#define WL_API_VTAB_H

#include "route/answer.h"

/* Makes the statement that replaces the original. WL_NOT_TAKEN: it cannot, and err says why. */
wl_status wl_vtab_prepare(wl_conn *c, wl_statement_text *t, sqlite3_stmt *original,
                          sqlite3_stmt **out, wl_error *err) WL_MUST;
/* The same for a text that it was called for before (t->stand_in is set). */
wl_status wl_vtab_prepare_seen(wl_conn *c, const wl_statement_text *t, sqlite3_stmt **out,
                               wl_error *err) WL_MUST;

#endif
