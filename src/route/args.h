/*
** Passes the parameters of a statement as one argument of a virtual table. The SQL function
** wl_args() packs them into one value that only warplite can read.
*/
#ifndef WL_ARGS_H
#define WL_ARGS_H

#include "base/sqlite.h"

int wl_args_register(sqlite3 *db);
/* Appends wl_args(list[0], …). SQLite limits the number of arguments of a function, so long lists
** become nested calls. */
void wl_args_append(sqlite3_str *s, const char *const *list, int n);
/* Gives the values packed in v, which v owns, and returns their number. Returns 0 if v is NULL or
** no such value. */
int wl_args_values(sqlite3_value *v, sqlite3_value ***out);

#endif
