/*
** SQLite's rule for the affinity of a column or CAST, based on words that the declared type
** contains: 'A' blob, 'B' text, 'C' numeric, 'D' integer, 'E' real.
*/
#ifndef WL_AFFINITY_H
#define WL_AFFINITY_H

char wl_affinity_of_type(const char *decl); /* NULL or "" is 'A' */

#endif
