/*
** Parameters of a statement that travel as one argument of a virtual table: the SQL function
** wl_args() makes one value of them, which only warplite can read.
*/
#ifndef WL_ARGS_H
#define WL_ARGS_H

#include "base/sqlite.h"

int wl_args_register(sqlite3 *db);
/* Appends wl_args(list[0], …): SQL for all of them. A function has few arguments, so many of them
** become calls of wl_args() inside one another. */
void wl_args_append(sqlite3_str *s, const char *const *list, int n);
/* The values of such an argument, which it owns; how many. 0: it is none, or v is NULL. */
int wl_args_values(sqlite3_value *v, sqlite3_value ***out);

#endif
