/*
** INSERT, UPDATE and DELETE of tablet tables, as warplite_prepare() uses them.
*/
#ifndef WL_DML_DML_H
#define WL_DML_DML_H

#include "route/conn.h"

int wl_dml_register(wl_conn *c);
/* Registers the module wl_dml_<n_cols>, which RETURNING needs. */
wl_status wl_dml_module(wl_conn *c, int n_cols, wl_error *err) WL_MUST;

/* Whether SQLite's error may come only from what it refuses for virtual tables. */
bool wl_dml_refused(const char *message, const char *sql, size_t n);
/* Makes the statement that replaces the original. original: SQLite's statement, or NULL if it
** refused it. WL_NOT_TAKEN: the original stays. WL_OK with *out NULL: the original stays too, and
** the reason is set. WL_ERROR: *rc is the code for prepare, and the connection has the message. */
wl_status wl_dml_prepare(wl_conn *c, const char *sql, size_t n, sqlite3_stmt *original,
                         sqlite3_stmt **out, int *rc, wl_error *err) WL_MUST;

/* Asks the authorizer about a change that SQLite prepares again. *rc: SQLITE_AUTH if it denies. */
wl_status wl_dml_ask(wl_conn *c, const char *sql, wl_mask **mask, int *rc, wl_error *err) WL_MUST;

#endif
