/*
** How the running SQLite behaves where versions of SQLite give different answers. It is found by
** experiment, once per process, because version numbers do not tell for every build.
*/
#ifndef WL_QUIRKS_H
#define WL_QUIRKS_H

#include "base/sqlite.h"
#include <stdbool.h>

typedef struct wl_quirks {
  /* Digits of a REAL as text, unless a connection changes it: 15, or 17 in newer versions. */
  int real_digits;
  /* In FULL JOIN … USING(x), x compares like the left table's x; in older versions, like an
  ** expression. */
  bool using_as_column;
  /* A COLLATE in the bounds of BETWEEN also applies to the expression around the BETWEEN. */
  bool between_collates;
  /* x IN ((SELECT …)) means x IN (SELECT …); in older versions, the inner SELECT gave one value. */
  bool in_parentheses;
  /* The affinity of a column of a compound in FROM depends on all arms, not just the first. */
  bool compound_affinity;
  /* A WITH entry that is used several times may still be flattened into the query. That changes
  ** plain columns next to an aggregate over no rows. */
  bool with_taken_in;
} wl_quirks;

wl_quirks wl_quirks_get(void);
/* The integer result of a query; 0 if it fails, as in versions that lack a feature it uses. */
int wl_quirks_ask(sqlite3 *db, const char *sql);

#endif
