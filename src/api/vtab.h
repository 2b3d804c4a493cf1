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
/* The module of native statements. Its cursors are opened by xOpen and started by this: */
extern const sqlite3_module wl_native_module;
/* Starts a statement (WL_AT_START) in a cursor. It must have these columns: their number, and the
** hash of their names. Returns the result code of xFilter. */
int wl_native_start(sqlite3_vtab_cursor *p, wl_conn *conn, const wl_request *q, const wl_mask *mask,
                    int n_cols, wl_u64 labels);
/* Adds a declared type, as sqlite3_column_decltype() gives it, to a table declaration. */
void wl_append_type(sqlite3_str *s, const char *type);

#endif
