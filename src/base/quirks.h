/*
** Where versions of SQLite differ in the answers they give: how the running one does it. Found by
** trying, once in a process, since no version number is right for every build.
*/
#ifndef WL_QUIRKS_H
#define WL_QUIRKS_H

#include <stdbool.h>

typedef struct wl_quirks {
  /* Digits of a REAL as text, unless a connection chooses otherwise: 15, in newer versions 17. */
  int real_digits;
  /* Of FULL JOIN … USING(x), x is compared like the left table's x; formerly like an expression. */
  bool using_as_column;
  /* A COLLATE in the bounds of BETWEEN holds for what the BETWEEN stands in. */
  bool between_collates;
  /* x IN ((SELECT …)) is x IN (SELECT …); formerly the inner SELECT gave one value. */
  bool in_parentheses;
  /* A column of a compound in FROM has an affinity that depends on all arms, not on the first. */
  bool compound_affinity;
  /* A WITH entry that is used several times may still become part of the query, which shows in
  ** columns beside aggregates over no rows. */
  bool with_taken_in;
} wl_quirks;

wl_quirks wl_quirks_get(void);

#endif
