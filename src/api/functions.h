/*
** warplite's SQL functions and tables, which wl_enable() registers.
*/
#ifndef WL_FUNCTIONS_H
#define WL_FUNCTIONS_H

#include "route/conn.h"

int wl_functions_register(wl_conn *c);
int wl_tables_register(wl_conn *c);       /* warplite_devices, warplite_cache, warplite_log */
int wl_select_table_register(wl_conn *c); /* the module warplite: a SELECT as a table */

/* warplite_convert(table [, 'tablet' | 'table']) */
void wl_convert(sqlite3_context *ctx, int n, sqlite3_value **args);
/* warplite_check(table) */
void wl_check(sqlite3_context *ctx, int n, sqlite3_value **args);

/* The name of the database that has a table of that name, in the order in which SQLite searches.
** The caller frees it with sqlite3_free(). NULL: there is none, or *rc is an error. */
char *wl_schema_of(sqlite3 *db, const char *name, int *rc);

#endif
