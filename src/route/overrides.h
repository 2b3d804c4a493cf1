/*
** Whether the application has replaced functions of SQLite that a query uses. SQLite then computes
** something else, so it must run the query.
**
** Nothing tells when a function is added: SQLite prepares its statements again only when a function
** of the same name, number of arguments and encoding existed. So the functions are listed each time
** a statement that calls some is prepared, which takes about 45 us. The preload library sees all
** calls that create functions, and sets wl_conn.no_functions if there was none.
*/
#ifndef WL_OVERRIDES_H
#define WL_OVERRIDES_H

#include "route/conn.h"
#include "sql/bind.h"

/* WL_NOT_TAKEN if the application has replaced a built-in function that the query uses. */
wl_status wl_overrides_check(wl_conn *c, const wl_query *q, wl_error *err) WL_MUST;
/* The same for any built-in function. */
wl_status wl_overrides_check_all(wl_conn *c, wl_error *err) WL_MUST;

#endif
