/*
** Whether the application has replaced functions of SQLite that a query uses. SQLite then computes
** something else, so it must run the query.
**
** Nothing tells when a function is added: SQLite prepares its statements again only when a function
** of the same name, number of arguments and encoding existed. So the functions are listed each time
** a statement that calls some is prepared, which takes about 45 us. A library that sees all calls
** which create functions can set wl_function_count. Then they are listed again only when the count
** has changed.
*/
#ifndef WL_OVERRIDES_H
#define WL_OVERRIDES_H

#include "route/conn.h"
#include "sql/bind.h"

/* How many functions have been created or removed on a connection so far; never 0 if it knows. NULL
** or 0: nobody knows. */
typedef wl_u64 wl_function_counter(sqlite3 *db);
extern wl_function_counter *wl_function_count;

/* WL_NOT_TAKEN if the application has replaced a built-in function that the query uses. */
wl_status wl_overrides_check(wl_conn *c, const wl_query *q, wl_error *err) WL_MUST;
/* The same for any built-in function. */
wl_status wl_overrides_check_all(wl_conn *c, wl_error *err) WL_MUST;

#endif
