/*
** warplite's SQL functions and tables, which wl_enable() registers.
*/
#ifndef WL_FUNCTIONS_H
#define WL_FUNCTIONS_H

#include "route/conn.h"

int wl_functions_register(wl_conn *c);
int wl_tables_register(wl_conn *c);       /* warplite_devices, warplite_cache, warplite_log */
int wl_select_table_register(wl_conn *c); /* the module warplite: a SELECT as a table */
/* Why a statement is not one SELECT, or cannot be a table: "needs …". NULL: it is, or can be.
** tail: the text behind the statement. */
const char *wl_select_refused(sqlite3_stmt *s, const char *tail);
const char *wl_select_no_table(sqlite3_stmt *s, const char *tail);

/* warplite_load(table), warplite_load(name, select), warplite_unload(table) */
void wl_load(sqlite3_context *ctx, int n, sqlite3_value **args);
void wl_load_select(sqlite3_context *ctx, int n, sqlite3_value **args);
void wl_unload(sqlite3_context *ctx, int n, sqlite3_value **args);
/* Sets the error of a function's call. */
void wl_result_error(sqlite3_context *ctx, const wl_error *err);
/* warplite_convert(table [, 'tablet' | 'table']) */
void wl_convert(sqlite3_context *ctx, int n, sqlite3_value **args);
/* warplite_check(table) */
void wl_check(sqlite3_context *ctx, int n, sqlite3_value **args);

/* The name of the database that has a table of that name, in the order in which SQLite searches.
** The caller frees it with sqlite3_free(). NULL: there is none, or *rc is an error. */
char *wl_schema_of(sqlite3 *db, const char *name, int *rc);

/* A change of the schema by several statements, inside one savepoint: after an error nothing has
** changed. */
typedef struct wl_schema_change {
  sqlite3 *db;
  const char *function; /* the SQL function that makes it, for messages */
  const char *schema, *table;
  char other[64]; /* set when it starts: a name that no table has */
} wl_schema_change;

/* Runs the steps. ALTER TABLE RENAME leaves views as they are meanwhile (legacy_alter_table). DROP
** TABLE is impossible while another statement of the connection reads; this is checked before
** anything changes. */
wl_status wl_schema_make_change(wl_schema_change *j, wl_status (*steps)(void *arg, wl_error *err),
                                void *arg, wl_error *err) WL_MUST;
/* Runs one statement to its end. Frees sql with sqlite3_free(); NULL: out of memory. */
wl_status wl_schema_run(const wl_schema_change *j, char *sql, wl_error *err) WL_MUST;
/* The error of a statement that failed with this code. */
wl_status wl_schema_failed(const wl_schema_change *j, int rc, wl_error *err);

#endif
