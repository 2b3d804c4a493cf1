/*
** SQLite's rule for the affinity of a column or CAST: 'A' blob, 'B' text, 'C' numeric,
** 'D' integer, 'E' real, by words that the declared type contains.
*/
#ifndef WL_AFFINITY_H
#define WL_AFFINITY_H

char wl_affinity_of_type(const char *decl); /* NULL or "" is 'A' */

#endif
