/*
** The kinds of joins that a bound query and a program have.
*/
#ifndef WL_JOIN_HOW_H
#define WL_JOIN_HOW_H

#include <stdbool.h>

/* What happens to a row, depending on the matching rows of another source. RIGHT and FULL occur
** only in queries. In a program they are INNER and LEFT, followed by a Mark. */
typedef enum wl_join_how {
  WL_HOW_INNER, /* one row for each match */
  WL_HOW_LEFT,  /* one row for each match; without a match, one row with NULLs */
  WL_HOW_SEMI,  /* the row, if there is a match */
  WL_HOW_ANTI,  /* the row, if there is no match */
  WL_HOW_MARK,  /* the row, with its first match if there is one */
  WL_HOW_RIGHT, /* INNER, and then the rows of the other source that matched no row */
  WL_HOW_FULL   /* LEFT, and then the rows of the other source that matched no row */
} wl_join_how;

/* Whether a row continues at most once, whatever the number of matches. */
static inline bool wl_how_finds_one(wl_join_how how) {
  return how == WL_HOW_SEMI || how == WL_HOW_ANTI || how == WL_HOW_MARK;
}

/* Whether rows of the joined source are kept that matched no row. */
static inline bool wl_how_keeps_unmatched(wl_join_how how) {
  return how == WL_HOW_RIGHT || how == WL_HOW_FULL;
}

#endif
