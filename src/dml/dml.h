/*
** INSERT, UPDATE and DELETE of tablet tables, as prepare sees them.
*/
#ifndef WL_DML_DML_H
#define WL_DML_DML_H

#include "route/conn.h"

int wl_dml_register(wl_conn *c);
/* The module wl_dml_<n_cols>, which RETURNING needs. */
wl_status wl_dml_module(wl_conn *c, int n_cols, wl_error *err) WL_MUST;

/* Whether SQLite's message may come of what it does not do with virtual tables alone. */
bool wl_dml_refused(const char *message, const char *sql, size_t n);
/* The statement that takes the original's place. original: SQLite's, or NULL where it refused it.
** WL_NOT_TAKEN: it stays, as it does where *out is NULL, and the reason is told then. WL_ERROR: *rc
** is what prepare gives, and the connection has the message. */
wl_status wl_dml_prepare(wl_conn *c, const char *sql, size_t n, sqlite3_stmt *original,
                         sqlite3_stmt **out, int *rc, wl_error *err) WL_MUST;

/* Asks the authorizer about a change that SQLite prepares again. *rc: SQLITE_AUTH, if it denies. */
wl_status wl_dml_ask(wl_conn *c, const char *sql, wl_mask **mask, int *rc, wl_error *err) WL_MUST;

#endif
