/*
** The names of SQLite's three collations.
*/
#ifndef WL_COLLATION_H
#define WL_COLLATION_H

#include <stdbool.h>

/* The name of a collation (WL_COLL_... in value.h). */
const char *wl_collation_name(int coll);
/* The collation with this name, ignoring case. -1: not one of the three, or name is NULL. */
int wl_collation_find(const char *name);
/* Whether this is the collation's name. */
bool wl_collation_is(const char *name, int coll);

#endif
